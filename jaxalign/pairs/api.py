"""The public functions: each a numbered straight line, with no arithmetic of its own.

Modes: ``global``, ``semiglobal`` (all four ends free, the empty overlap counts as 0),
``local``; ``free_ends`` with mode ``global`` frees any of ``query_start``,
``query_end``, ``target_start``, ``target_end``: residues of *that* sequence that hang
over there cost nothing. An insertion may stand next to a deletion.
"""

from dataclasses import replace

import numpy as np

from jaxalign import inputs
from jaxalign.errors import UsageError
from jaxalign.model.scoring import as_scoring, resolve_ends
from jaxalign.model.table import Table, join
from jaxalign.pairs import engine
from jaxalign.pairs.dp_table import directions_of, whole
from jaxalign.pairs.options import (
    every_pair,
    make_task,
    pairing,
    run,
    stream,
    table_of,
    watched_in,
)
from jaxalign.pairs.parts import part_stream, query_ranges
from jaxalign.pairs.plan import Plan
from jaxalign.runtime.devices import describe_device, select_device
from jaxalign.runtime.mesh import ambient as ambient_mesh


def align(
    query,
    target,
    scoring=None,
    *,
    mode="global",
    free_ends=None,
    return_directions=False,
    **options,
):
    """Align two sequences.

    Parameters
    ----------
    query, target : str, (name, str), Path, uint8 codes, biotite or Biopython sequence
        See ``jaxalign.inputs``; a file has one record.
    scoring : Scoring, or the name or file of a matrix, optional
        BLOSUM62, 11/1 by default.
    mode, free_ends : see the module
    return_directions : bool
        Return (Alignment, the result of ``directions``) instead.
    **options : as in ``align_pairs``

    Returns
    -------
    Alignment

    Raises
    ------
    InputError, UsageError, MemoryPlanError

    Examples
    --------
    >>> import jaxalign
    >>> scoring = jaxalign.Scoring(match=2, mismatch=-1, gap_open=1, gap_extend=1)
    >>> a = jaxalign.align("ATCTCGTATGAT", "GTCTATCAC", scoring, mode="local")
    >>> a.score, a.cigar(), a.rows()
    (10, '2M1I5M', ('TCGTATGA', 'TC-TATCA'))
    """
    if options.get("output", "alignment") != "alignment":
        raise UsageError("align gives a whole alignment: it takes no output")
    scoring = as_scoring(scoring)
    query, target = inputs.singles(scoring, query=query, target=target)
    options = every_pair(options) | {"output": "alignment"}
    options |= {"mode": mode, "free_ends": free_ends}
    found = align_pairs(query, target, scoring, **options).alignment(0)
    if not return_directions:
        return found
    return found, directions(query, target, scoring, mode=mode, free_ends=free_ends)


def align_pairs(queries, targets, scoring=None, **options) -> Table:
    """Align query k with target k; one sequence on a side meets all of the other.

    Parameters
    ----------
    queries, targets : path, mapping, iterable, Sequences or flat ``(codes, offsets)``
        A file (FASTA or an index), names to sequences, or sequences as ``align`` takes
        them; see ``jaxalign.inputs``. A str is a path here.
    scoring : Scoring, or the name or file of a matrix, optional
    mode : {"global", "semiglobal", "local"}
    free_ends : iterable of str, optional
    output : {"stats", "score", "identity", "alignment"}
        What to compute; see ``Table`` for the columns. ``identity`` needs no path: it
        maximises (score, identical pairs), so it is the same for (a, b) and (b, a).
    implementation : {"sweep", "wavefront", "pallas", "striped"}, optional
        A named one never falls back; striped computes scores alone.
    memory_budget : int or str, optional
        Bytes, or ``"2GiB"``; half of the free memory by default.
    threads : int, optional
        Host threads, a window each; all cores by default.
    window : int, optional
        Queries and targets of a window at most; results do not depend on it.
    devices : "all", int, or sequence of ints or jax devices, optional
        Which of JAX's devices compute, windows in order of estimated cells, each taken
        by whichever is idle. JAX's default device by default.
    mesh : jax.sharding.Mesh, optional
        One program over all its devices, a window on each (``shard_map``); by default
        the mesh of ``jax.set_mesh``, where there is one.
    min_score, min_identity, min_cov : float, optional
        Keep only rows with at least this score, identity (a fraction; over the
        denominator ``identity``, of ``Table.identity``) and coverage (a fraction;
        ``coverage`` is "both", "query" or "target").
    progress : callable (cells done, cells in all), optional
    busy : callable (devices at work, devices in all), optional

    Returns
    -------
    Table
        One row a pair, in input order.

    Raises
    ------
    InputError
        A letter is not in the alphabet, a file cannot be read, or the sides differ in
        length.
    UsageError
        An unknown mode, output or implementation, or a type of nucleotides and a
        scoring of proteins; where only the letters say so, a warning.
    MemoryPlanError
        The plan exceeds the budget.

    Notes
    -----
    Gotoh's affine recurrence with the backtrack of the 2011 gpu-pairalign paper.

    Examples
    --------
    >>> import jaxalign
    >>> table = jaxalign.align_pairs(["MKTAYIA", "MKV"], ["MKTAIA", "MRV"])
    >>> table["score"].tolist(), table["identities"].tolist()
    ([16, 11], [6, 2])
    """
    # 1 validate and encode, 2 decide who meets whom, 3 run
    scoring = as_scoring(scoring)
    queries, targets = inputs.sets(scoring, queries, targets)
    kind, queries, paired = pairing(queries, targets)
    if options.get("mesh") is None and not options.get("devices"):
        options["mesh"] = ambient_mesh()
    table = run(kind, queries, paired, scoring, **options)
    if len(paired) == len(targets):
        return table
    only = np.zeros_like(table["target"])  # one target, paired with every query
    return replace(table, columns=table.columns | {"target": only}, targets=targets)


def align_all(
    sequences,
    scoring=None,
    *,
    include_self=False,
    cluster=None,
    part_rows=None,
    **options,
) -> Table:
    """Align all pairs i < j of a set (i <= j with ``include_self``), row by row.

    Parameters and errors as in ``align_pairs``; ``cluster`` is the address of a Ray
    cluster, or "auto", whose machines get parts of ``part_rows`` rows. Every
    pair is computed once; results do not depend on windows, threads, devices, machines
    or the order of work.

    Returns
    -------
    Table
        n (n - 1) / 2 rows: (0, 1), (0, 2) ... (1, 2) ...

    Examples
    --------
    >>> import jaxalign
    >>> table = jaxalign.align_all(["MKTAYIA", "MKTAIA", "MRV"], output="score")
    >>> list(zip(table["query"].tolist(), table["target"].tolist()))
    [(0, 1), (0, 2), (1, 2)]
    """
    scoring = as_scoring(scoring)
    (sequences,) = inputs.sets(scoring, sequences)
    watched, options = watched_in(options)
    task = make_task("all", sequences, sequences, scoring, include_self, **options)
    if cluster is None and not task.filters:
        return table_of(task, *engine.run(engine.plan(task), *watched))
    found = list(stream(task, query_ranges.cut_of(task, part_rows), watched, cluster))
    return join((table for _, table in found), part_stream.merge_all(found))


def dp_table(query, target, scoring=None, *, mode="global", free_ends=None, gaps=False):
    """H of one pair, and E, F on request: (m + 1, n + 1) int32, scaled integers.

    E ends in a gap in the target (vertical), F in the query (horizontal); minus
    infinity is a large negative number. Divide by ``scoring.scale`` for real scores.

    Examples
    --------
    >>> import jaxalign
    >>> jaxalign.dp_table("MK", "MK", mode="local")
    array([[ 0,  0,  0],
           [ 0,  5,  0],
           [ 0,  0, 10]], dtype=int32)
    """
    scoring = as_scoring(scoring)
    free = resolve_ends(mode, free_ends)
    a, b = (one[0] for one in inputs.singles(scoring, query=query, target=target))
    h, e, f = whole(a, b, scoring, mode, free)
    return (h, e, f) if gaps else h


def directions(query, target, scoring=None, *, mode="global", free_ends=None) -> dict:
    """The four boolean matrices of one pair, (m, n) each, as the 2011 paper has them.

    Keys ``b_left, b_up, c_up, c_left``; also ``words``, uint32 (ceil(m / 8), n), the
    packed form the walk reads (``pairs.dp.directions``).
    """
    scoring = as_scoring(scoring)
    free = resolve_ends(mode, free_ends)
    a, b = (one[0] for one in inputs.singles(scoring, query=query, target=target))
    return directions_of(a, b, scoring, mode, free)


def plan(queries, targets=None, scoring=None, **options) -> Plan:
    """What a run would do and need, without doing it: pairs, cells, windows, bytes.

    Parameters as of ``align_pairs``, or without ``targets`` of ``align_all``; with
    ``parts=True`` or ``part_rows`` of ``stream_all``: then bytes and windows are those
    of its heaviest part, and ``parts`` says how many there are.

    Raises
    ------
    MemoryPlanError
        It exceeds the budget.
    """
    scoring = as_scoring(scoring)
    include_self = options.pop("include_self", False)
    part_rows = options.pop("part_rows", None)
    by_parts = options.pop("parts", part_rows is not None)
    if targets is None:
        (queries,) = inputs.sets(scoring, queries)
        task = make_task("all", queries, queries, scoring, include_self, **options)
        if by_parts or task.filters:
            return part_stream.plan_parts(task, query_ranges.cut_of(task, part_rows))
    else:
        queries, targets = inputs.sets(scoring, queries, targets)
        task = make_task(*pairing(queries, targets), scoring, **options)
    return engine.plan(task)


__all__ = [
    "align",
    "align_all",
    "align_pairs",
    "describe_device",
    "directions",
    "dp_table",
    "plan",
    "select_device",
]
