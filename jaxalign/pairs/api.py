# pyright: strict, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
"""The public functions: each a numbered straight line, with no arithmetic of its own.

Modes: ``global``, ``semiglobal`` (all four ends free, the empty overlap counts as 0),
``local``; ``free_ends`` with mode ``global`` frees any of ``query_start``,
``query_end``, ``target_start``, ``target_end``: residues of *that* sequence that hang
over there cost nothing. An insertion may stand next to a deletion.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, Unpack, get_args, overload

import numpy as np

from jaxalign import inputs
from jaxalign.errors import UsageError
from jaxalign.inputs import SequenceLike, SetLike
from jaxalign.keywords import (
    AlignKeywords,
    AllKeywords,
    MatrixKeywords,
    PairsKeywords,
    PlanKeywords,
)
from jaxalign.model.alignment import Alignment
from jaxalign.model.choices import EndKeywords
from jaxalign.model.identity import denominator, ratio, usual_identity
from jaxalign.model.profile import Profile, as_query
from jaxalign.model.scoring import ScoringLike, as_scoring, resolve_ends
from jaxalign.model.strands import MINUS, reverse_complement
from jaxalign.model.table import Table
from jaxalign.options import Execution, Implementation, PairOptions
from jaxalign.pairs import by_rows
from jaxalign.pairs.engine import start_jax
from jaxalign.pairs.jobs import (
    all_table,
    pairs_table,
    plan_of,
    plan_sets,
    run,
    run_plan,
)
from jaxalign.pairs.options import check, filters_of, symmetric
from jaxalign.pairs.plan import Plan, SavedState, added
from jaxalign.runtime.devices import describe_device, select_device
from jaxalign.runtime.machine import gpu_use
from jaxalign.runtime.pipeline import default_threads
from jaxalign.signatures import with_options

SymmetricIdentity = Literal["shorter", "longer", "mean"]  # and without a path


@with_options(PairOptions)
def scores_matrix(
    queries: SetLike,
    targets: SetLike | None = None,
    scoring: ScoringLike = None,
    **options: Unpack[MatrixKeywords],
) -> np.ndarray:
    """Score all queries against all targets, or a set against itself.

    Returns
    -------
    (n, m) int32, or float64 where the scoring is fractional

    Raises
    ------
    InputError, UsageError, MemoryPlanError, DeviceError

    Examples
    --------
    >>> import jaxalign
    >>> jaxalign.scores_matrix(["MKV", "MRV"])
    array([[14, 11],
           [11, 14]], dtype=int32)
    """
    scoring = as_scoring(scoring)
    sets = (queries,) if targets is None else (queries, targets)
    queries, *target_sets = inputs.sets(scoring, *sets)
    pair_options = PairOptions(**options, output="score")
    if not target_sets and symmetric(scoring, pair_options):
        table = all_table(queries, scoring, replace(pair_options, include_self=True))
        n = len(table.queries)
        matrix = np.zeros((n, n), table["score"].dtype)
        matrix[table["query"], table["target"]] = table["score"]
        matrix[table["target"], table["query"]] = table["score"]
        return matrix
    targets = target_sets[0] if target_sets else queries
    table = run("cross", queries, targets, scoring, pair_options)
    return table["score"].reshape(len(queries), len(targets))


@with_options(PairOptions)
def distance_matrix(
    sequences: SetLike,
    scoring: ScoringLike = None,
    *,
    identity: SymmetricIdentity | None = None,
    **options: Unpack[MatrixKeywords],
) -> np.ndarray:
    """Compute 1 - identity of all pairs, for guide trees; symmetric, zero diagonal.

    Identities are ``max_identities``: no path, no dependence on argument order.

    Parameters
    ----------
    identity : {"shorter", "longer", "mean"}, optional
        By default ``longer``; ``shorter`` in mode local and where an end is free.

    Returns
    -------
    (n, n) float64, 1 where the denominator is 0
    """
    scoring = as_scoring(scoring)
    pair_options = PairOptions(**options, output="identity")
    if identity is None:
        free = resolve_ends(pair_options.mode, pair_options.free_ends)
        identity = usual_identity(pair_options.mode, free)
    if identity not in get_args(SymmetricIdentity):
        raise UsageError(f"identity {identity!r} is not symmetric, or needs a path")
    if not symmetric(scoring, pair_options):
        raise UsageError("a distance needs a symmetric matrix and symmetric free ends")
    table = all_table(sequences, scoring, pair_options)
    below = denominator(identity, table.columns, *table.lengths())
    distance = np.zeros((len(table.queries),) * 2)
    values = 1 - np.nan_to_num(ratio(table["max_identities"], below))
    distance[table["query"], table["target"]] = values
    return distance + distance.T


@overload
def dp_table(
    query: SequenceLike,
    target: SequenceLike,
    scoring: ScoringLike = None,
    *,
    gaps: Literal[False] = False,
    **options: Unpack[EndKeywords],
) -> np.ndarray: ...


@overload
def dp_table(
    query: SequenceLike,
    target: SequenceLike,
    scoring: ScoringLike = None,
    *,
    gaps: Literal[True],
    **options: Unpack[EndKeywords],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...


@with_options(PairOptions)
def dp_table(
    query: SequenceLike,
    target: SequenceLike,
    scoring: ScoringLike = None,
    *,
    gaps: bool = False,
    **options: Unpack[EndKeywords],
) -> np.ndarray | tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Compute H of one pair, and E, F on request: (m + 1, n + 1) int32, scaled.

    E ends in a gap in the target (vertical), F in the query (horizontal); minus
    infinity is a large negative number. Divide by ``scoring.scale`` for real scores.

    Parameters
    ----------
    gaps : bool, default False
        Return (H, E, F).

    Examples
    --------
    >>> import jaxalign
    >>> jaxalign.dp_table("MK", "MK", mode="local")
    array([[ 0,  0,  0],
           [ 0,  5,  0],
           [ 0,  0, 10]], dtype=int32)
    """
    from jaxalign.pairs.compiled import whole_table

    h, e, f = whole_table(*_one_pair(query, target, scoring, options))
    return (h, e, f) if gaps else h


@with_options(PairOptions)
def directions(
    query: SequenceLike,
    target: SequenceLike,
    scoring: ScoringLike = None,
    **options: Unpack[EndKeywords],
) -> dict[str, np.ndarray]:
    """Compute the four boolean matrices of one pair, (m, n) each, as the 2011 paper.

    Keys ``b_left, b_up, c_up, c_left``; also ``words``, uint32 (ceil(m / 8), n), the
    packed form the walk reads (``pairs.dp.directions``).
    """
    from jaxalign.pairs.compiled import directions_of

    return directions_of(*_one_pair(query, target, scoring, options))


def _one_pair(
    query: SequenceLike, target: SequenceLike, scoring: ScoringLike, ends: EndKeywords
) -> tuple[Any, ...]:
    """Codes, scoring, mode and free ends of one pair."""
    scoring, options = as_scoring(scoring), PairOptions(**ends)
    free = resolve_ends(options.mode, options.free_ends)
    sides = inputs.singles(scoring, query=query, target=target)
    a, b = (sequences[0] for sequences in sides)
    return a, b, scoring, options.mode, free


@overload
def align(
    query: SequenceLike | Profile,
    target: SequenceLike,
    scoring: ScoringLike = None,
    *,
    return_directions: Literal[False] = False,
    **options: Unpack[AlignKeywords],
) -> Alignment: ...


@overload
def align(
    query: SequenceLike | Profile,
    target: SequenceLike,
    scoring: ScoringLike = None,
    *,
    return_directions: Literal[True],
    **options: Unpack[AlignKeywords],
) -> tuple[Alignment, dict[str, np.ndarray]]: ...


@with_options(PairOptions)
def align(
    query: SequenceLike | Profile,
    target: SequenceLike,
    scoring: ScoringLike = None,
    *,
    return_directions: bool = False,
    **options: Unpack[AlignKeywords],
) -> Alignment | tuple[Alignment, dict[str, np.ndarray]]:
    """Align two sequences.

    Parameters
    ----------
    query, target : str, (name, str), Path, uint8 codes, biotite or Biopython sequence
        See ``jaxalign.inputs``; a file has one record. The query may be a ``Profile``:
        then its consensus stands for it, and of the scoring the gap costs count.
    scoring : Scoring, or the name or file of a matrix, optional
        BLOSUM62, 11/1 by default.
    return_directions : bool
        Return (Alignment, the result of ``directions``) instead.

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
    scoring = as_scoring(scoring)
    query_input: Any = query
    if isinstance(query_input, Profile):
        query_input, scoring = as_query(query_input, scoring)
    if return_directions and scoring.by_position:
        raise UsageError("return_directions is for two sequences, not for a profile")
    pair_options = PairOptions(**options, output="alignment")
    a, b = inputs.singles(scoring, query=query_input, target=target)
    alignment = None
    # Does nothing say what computes, which strand, or who is told of it?
    wishes = pair_options.implementation, pair_options.devices, pair_options.mesh
    wishes += pair_options.memory_budget, pair_options.strand
    wishes += pair_options.progress, pair_options.busy
    if all(value is None for value in wishes):
        free = check(pair_options)
        alignment = by_rows.aligned(a, b, scoring, pair_options.mode, free)
    if alignment is None:
        alignment = pairs_table(a, b, scoring, pair_options).alignment(0)
    if not return_directions:
        return alignment
    a = reverse_complement(a) if alignment.strand == MINUS else a
    ends: EndKeywords = {"mode": pair_options.mode, "free_ends": pair_options.free_ends}
    return alignment, directions(a, b, scoring, **ends)


@with_options(PairOptions)
def align_pairs(
    queries: SetLike,
    targets: SetLike,
    scoring: ScoringLike = None,
    **options: Unpack[PairsKeywords],
) -> Table:
    """Align query k with target k; one sequence on a side meets all of the other.

    Parameters
    ----------
    queries, targets : path, mapping, iterable, Sequences or flat ``(codes, offsets)``
        A file (FASTA or an index), names to sequences, or sequences as ``align`` takes
        them; see ``jaxalign.inputs``. A str is a path here.
    scoring : Scoring, or the name or file of a matrix, optional
    mode : {"global", "semiglobal", "local"}
    free_ends : iterable of str, optional
    strand : {"both", "plus", "minus"}, optional
        Of nucleotides: which strand of a query is aligned, or of both the one that
        scores more, of equals plus. Column ``strand`` and spans are as in ``search``.
    output : {"stats", "score", "identity", "alignment"}
        What to compute; see ``Table`` for the columns. ``identity`` needs no path: it
        maximises (score, identical pairs), so it is the same for (a, b) and (b, a).
    implementation : {"rows", "sweep", "wavefront", "pallas"}, optional
        A named one never falls back; rows is NumPy alone, as usual for small jobs.
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
        ``coverage`` is "both", "query" or "target"), and none that are nan;
        ``table.info["pairs"]`` counts all. ``min_cov`` is refused where it is always 1,
        in mode global without free ends. Usually identities are over the columns of the
        alignment; with ``output="identity"`` over the longer sequence, or the shorter
        one in mode local and where an end is free.
    min_length_ratio : float, optional
        Keep only pairs whose shorter length is at least this share of the longer one.
        No other pair is aligned; of both strands, all are scored.
    filter : bool
        Do not align pairs of which it is proved that ``min_identity`` drops them. The
        rows are the same without. ``table.info["excluded"]`` counts them by proof.
    progress : callable (cells done, cells in all), optional
    busy : callable (devices at work, devices in all), optional

    Returns
    -------
    Table
        One row a pair, in input order.

    Raises
    ------
    InputError
        A letter is none of the alphabet, a file cannot be read, or the sides differ.
    UsageError
        An unknown word, strands of proteins, or a type of nucleotides and a scoring of
        proteins; where only the letters say so, a warning.
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
    return pairs_table(queries, targets, scoring, PairOptions(**options))


@with_options(PairOptions, like=(align_pairs,))
def align_all(
    sequences: SetLike, scoring: ScoringLike = None, **options: Unpack[AllKeywords]
) -> Table:
    """Align all pairs i < j of a set (i <= j with ``include_self``), row by row.

    Every pair is computed once. Results do not depend on windows, threads, devices,
    machines or the order of work.

    Parameters
    ----------
    cluster : str, optional
        The address of a Ray cluster, or "auto", whose machines compute parts of
        ``part_rows`` rows. ``devices``, ``mesh`` and ``threads`` are refused with it.

    Returns
    -------
    Table
        n (n - 1) / 2 rows: (0, 1), (0, 2) ... (1, 2) ... Filters leave out some.

    Raises
    ------
    InputError, UsageError, MemoryPlanError, DeviceError

    Examples
    --------
    >>> import jaxalign
    >>> table = jaxalign.align_all(["MKTAYIA", "MKTAIA", "MRV"], output="score")
    >>> list(zip(table["query"].tolist(), table["target"].tolist()))
    [(0, 1), (0, 2), (1, 2)]
    """
    return all_table(sequences, scoring, PairOptions(**options))


@with_options(PairOptions, like=(align_all,))
def plan(
    queries: SetLike,
    targets: SetLike | None = None,
    scoring: ScoringLike = None,
    **options: Unpack[PlanKeywords],
) -> Plan:
    """Plan a run without running it: pairs, cells, windows, bytes.

    Without ``targets`` the run is that of ``align_all``, else of ``align_pairs``. With
    ``parts=True`` or ``part_rows`` it is that of ``stream_all``: bytes and windows are
    those of its heaviest part, and ``parts`` says how many there are.

    Raises
    ------
    MemoryPlanError
        It exceeds the budget.
    """
    return plan_of(queries, targets, scoring, PairOptions(**options))


# Cells that a core fills in a second (AMD EPYC with AVX-512, proteins of UniProt), and
# a GPU by the kernels (H100): by output, of pairs that proofs alone look at, and of
# soft alignments.
CELLS_A_SECOND = {
    "score": (1.2e10, 4e12),
    "identity": (4e9, 1.5e12),
    "stats": (3.5e9, 5e11),
    "alignment": (3e9, 5e11),
    "proofs": (1e11, 9e13),
    "posterior": (4e6, 5e8),
}
LONG_JOB = 60.0  # seconds from which on a job is worth a word before it


def expected_seconds(cells: float, output: str, options: Execution) -> float:
    """Seconds that a job takes, about; of a short one those of a CPU.

    cells : of all of its pairs
    output : of them, or ``proofs`` where these leave few pairs to align
    """
    of_core, of_gpu = CELLS_A_SECOND[output]
    if options.implementation == "rows":
        return cells * by_rows.CELL_SECONDS
    seconds = cells / of_core / (options.threads or default_threads())
    if seconds < LONG_JOB or not by_rows.may_have_gpu():
        return seconds
    if implementation_of(options)[0] != "pallas":
        return seconds
    from jaxalign.runtime.devices import resolve_devices

    return cells / of_gpu / max(len(resolve_devices(options.devices)), 1)


def implementation_of(options: Execution) -> tuple[Implementation, str]:
    """(implementation, why) of a job that is not small.

    Raises
    ------
    UsageError, DeviceError
    """
    from jaxalign.pairs import compiled
    from jaxalign.runtime.devices import resolve_devices

    if options.implementation == "rows":
        return "rows", "asked for"
    return compiled.choose(options.implementation, resolve_devices(options.devices))


__all__ = [
    "PairOptions",
    "SavedState",
    "added",
    "align",
    "align_all",
    "align_pairs",
    "describe_device",
    "all_table",
    "directions",
    "dp_table",
    "expected_seconds",
    "filters_of",
    "gpu_use",
    "implementation_of",
    "pairs_table",
    "plan",
    "plan_of",
    "plan_sets",
    "run_plan",
    "select_device",
    "start_jax",
]
