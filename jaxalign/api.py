"""The public functions: each a numbered straight line, with no arithmetic of its own.

Modes: ``global``, ``semiglobal`` (all four ends free, the empty overlap counts as 0),
``local``; ``free_ends`` with mode ``global`` frees any of ``query_start``,
``query_end``, ``target_start``, ``target_end``: residues of *that* sequence that hang
over there cost nothing. An insertion may stand next to a deletion.
"""

from dataclasses import replace

import numpy as np

from jaxalign.errors import InputError, UsageError
from jaxalign.model.alphabet import Sequences, as_sequences
from jaxalign.model.identity import BY_PATH, denominator, ratio
from jaxalign.model.scoring import Scoring, is_symmetric, resolve_ends
from jaxalign.model.table import OUTPUTS, Table
from jaxalign.run import engine, memory, tables
from jaxalign.run.device import describe_device, select_device


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
    query, target : str, (name, str), uint8 codes or biotite sequence
    scoring : Scoring, optional
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
    query, target = _named(query, "query"), _named(target, "target")
    options |= {"mode": mode, "free_ends": free_ends, "output": "alignment"}
    found = align_pairs([query], [target], scoring, **options).alignment(0)
    if not return_directions:
        return found
    return found, directions(query, target, scoring, mode=mode, free_ends=free_ends)


def _named(sequence, name):
    return sequence if isinstance(sequence, tuple) else (name, sequence)


def align_pairs(queries, targets, scoring=None, **options) -> Table:
    """Align query k with target k; one sequence on a side meets all of the other.

    Parameters
    ----------
    queries, targets : Sequences, or a list of strings, (name, str), codes or biotite
        sequences, or flat ``(codes, offsets)``
    scoring : Scoring, optional
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
    progress : callable (cells done, cells in all), optional

    Returns
    -------
    Table
        One row a pair, in input order.

    Raises
    ------
    InputError
        A letter is not in the alphabet, or the sides differ in length.
    UsageError
        An unknown mode, output or implementation.
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
    scoring = scoring or Scoring()
    queries = as_sequences(queries, scoring.alphabet)
    targets = as_sequences(targets, scoring.alphabet)
    kind, queries, paired = _pairing(queries, targets)
    table = _run(kind, queries, paired, scoring, **options)
    if len(paired) == len(targets):
        return table
    only = np.zeros_like(table["target"])  # one target, paired with every query
    return replace(table, columns=table.columns | {"target": only}, targets=targets)


def align_all(sequences, scoring=None, *, include_self=False, **options) -> Table:
    """Align all pairs i < j of a set (i <= j with ``include_self``), row by row.

    Parameters and errors as in ``align_pairs``. Every pair is computed once, whatever
    the window; results do not depend on windows, threads or the order of work.

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
    scoring = scoring or Scoring()
    sequences = as_sequences(sequences, scoring.alphabet)
    return _run(
        "all", sequences, sequences, scoring, include_self=include_self, **options
    )


def scores_matrix(queries, targets=None, scoring=None, **options) -> np.ndarray:
    """Scores of all queries against all targets, or of a set against itself.

    Returns
    -------
    (n, m) int32, or float64 where the scoring is fractional

    Examples
    --------
    >>> import jaxalign
    >>> jaxalign.scores_matrix(["MKV", "MRV"])
    array([[14, 11],
           [11, 14]], dtype=int32)
    """
    scoring = scoring or Scoring()
    queries = as_sequences(queries, scoring.alphabet)
    options = options | {"output": "score"}
    if targets is None and _symmetric(scoring, options):
        return _square(align_all(queries, scoring, include_self=True, **options))
    targets = queries if targets is None else as_sequences(targets, scoring.alphabet)
    table = _run("cross", queries, targets, scoring, **options)
    return table["score"].reshape(len(queries), len(targets))


def distance_matrix(
    sequences, scoring=None, *, identity="shorter", **options
) -> np.ndarray:
    """1 - identity of all pairs, for guide trees; symmetric, zero diagonal.

    Identities are ``max_identities``: no path, no dependence on argument order.

    Parameters
    ----------
    identity : {"shorter", "longer", "mean"}

    Returns
    -------
    (n, n) float64, 1 where the denominator is 0
    """
    if identity in BY_PATH or identity in ("query", "target"):
        raise UsageError(f"identity {identity!r} is not symmetric, or needs a path")
    scoring = scoring or Scoring()
    if not _symmetric(scoring, options):
        raise UsageError("a distance needs a symmetric matrix and symmetric free ends")
    table = align_all(sequences, scoring, **(options | {"output": "identity"}))
    below = denominator(identity, table.columns, *table.lengths())
    distance = np.zeros((len(table.queries),) * 2)
    values = 1 - np.nan_to_num(ratio(table["max_identities"], below))
    distance[table["query"], table["target"]] = values
    return distance + distance.T


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
    scoring = scoring or Scoring()
    free = resolve_ends(mode, free_ends)
    a, b = (as_sequences([x], scoring.alphabet)[0] for x in (query, target))
    h, e, f = tables.whole(a, b, scoring, mode, free)
    return (h, e, f) if gaps else h


def directions(query, target, scoring=None, *, mode="global", free_ends=None) -> dict:
    """The four boolean matrices of one pair, (m, n) each, as the 2011 paper has them.

    Keys ``b_left, b_up, c_up, c_left``; also ``words``, uint32 (ceil(m / 8), n), the
    packed form the walk reads (``dp.directions``).
    """
    scoring = scoring or Scoring()
    free = resolve_ends(mode, free_ends)
    a, b = (as_sequences([x], scoring.alphabet)[0] for x in (query, target))
    return tables.directions_of(a, b, scoring, mode, free)


def plan(queries, targets=None, scoring=None, **options) -> dict:
    """What a run would do and need, without doing it: pairs, cells, windows, bytes.

    Raises
    ------
    MemoryPlanError
        It exceeds the budget.
    """
    scoring = scoring or Scoring()
    queries = as_sequences(queries, scoring.alphabet)
    if targets is None:
        task = _task("all", queries, queries, scoring, **options)
    else:
        targets = as_sequences(targets, scoring.alphabet)
        task = _task(*_pairing(queries, targets), scoring, **options)
    return engine.plan(task)[0]


def _pairing(queries: Sequences, targets: Sequences):
    """zip, or one against all."""
    if len(queries) == 1 and len(targets) != 1:
        return "cross", queries, targets
    if len(targets) == 1 and len(queries) != 1:
        targets = targets.take([0] * len(queries))
    if len(queries) != len(targets):
        raise InputError(
            f"{len(queries)} queries and {len(targets)} targets: pairs are zipped, so "
            "there must be as many, or one on a side"
        )
    return "zip", queries, targets


def _symmetric(scoring, options) -> bool:
    ends = resolve_ends(options.get("mode", "global"), options.get("free_ends"))
    return is_symmetric(scoring, ends)


def _square(table):
    n = len(table.queries)
    matrix = np.zeros((n, n), table["score"].dtype)
    matrix[table["query"], table["target"]] = table["score"]
    matrix[table["target"], table["query"]] = table["score"]
    return matrix


def _task(
    kind,
    queries,
    targets,
    scoring,
    *,
    mode="global",
    free_ends=None,
    output="stats",
    include_self=False,
    implementation=None,
    memory_budget=None,
    threads=None,
    window=None,
):
    if output not in OUTPUTS:
        raise UsageError(f"unknown output {output!r}: one of {', '.join(OUTPUTS)}")
    if threads is not None and threads < 1:
        raise UsageError(f"threads = {threads}: 1 or more are needed")
    if window is not None and window < 1:
        raise UsageError(f"window = {window}: 1 or more are needed")
    return engine.Task(
        kind,
        queries,
        targets,
        scoring,
        mode,
        resolve_ends(mode, free_ends),
        output,
        include_self,
        implementation,
        memory.budget(memory_budget),
        threads or engine.default_threads(),
        window,
    )


def _run(kind, queries, targets, scoring, progress=None, **options) -> Table:
    task = _task(kind, queries, targets, scoring, **options)
    columns, paths, info = engine.run(task, progress)
    runs, offsets = paths or (None, None)
    return Table(
        columns,
        queries,
        targets,
        scoring,
        task.mode,
        task.free,
        info["implementation"],
        info,
        runs,
        offsets,
    )


__all__ = [
    "align",
    "align_all",
    "align_pairs",
    "describe_device",
    "directions",
    "distance_matrix",
    "dp_table",
    "plan",
    "scores_matrix",
    "select_device",
]
