# pyright: strict, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
"""Public functions of pairs: each calls numbered steps, and computes nothing itself.

Modes are ``global``, ``semiglobal`` (all four ends are free, and the empty overlap
scores 0) and ``local``. ``free_ends``, with mode ``global``, frees any of
``query_start``, ``query_end``, ``target_start`` and ``target_end``: overhanging
residues of *that* sequence cost nothing there. An insertion may stand next to a
deletion.
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
    int32 (queries, targets), or float64 if the scoring has fractions

    Raises
    ------
    InputError, UsageError, MemoryPlanError, DeviceError
        As ``align_pairs``.

    Examples
    --------
    >>> import jaxalign
    >>> jaxalign.scores_matrix(["MKV", "MRV"])
    array([[14, 11],
           [11, 14]], dtype=int32)
    """
    scoring = as_scoring(scoring, tracks=True)
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
    """Compute 1 - identity of all pairs of a set, for guide trees.

    Identities are ``max_identities``, which depend neither on a path nor on the order
    of the two sequences.

    Parameters
    ----------
    identity : {"shorter", "longer", "mean"}, optional
        The length that identities are divided by. By default ``longer``, or ``shorter``
        in mode local and if an end is free.

    Returns
    -------
    float64 (n, n)
        Symmetric, with a zero diagonal; 1 where the denominator is 0.

    Raises
    ------
    InputError, UsageError, MemoryPlanError, DeviceError
        As ``align_pairs``.
    """
    scoring = as_scoring(scoring, tracks=True)
    pair_options = PairOptions(**options, output="identity")
    if identity is None:
        free = resolve_ends(pair_options.mode, pair_options.free_ends)
        identity = usual_identity(pair_options.mode, free)
    if identity not in get_args(SymmetricIdentity):
        raise UsageError(
            f"identity {identity!r} is not symmetric, or needs a path: choose shorter, "
            "longer or mean"
        )
    if not symmetric(scoring, pair_options):
        raise UsageError(
            f"a distance is the same in both orders: {scoring.matrix_name} and the "
            "free ends must treat both sequences alike"
        )
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
    """Compute the table H of one pair, and E and F on request.

    Alignments of E end with a gap in the target (vertical), those of F with a gap in
    the query (horizontal). Minus infinity is a large negative number.

    Parameters
    ----------
    gaps : bool, default False
        Return (H, E, F).

    Returns
    -------
    int32 (m + 1, n + 1), or three of them
        Scores times ``scoring.scale``.

    Raises
    ------
    InputError, UsageError
        As ``align``.

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
    """Compute the four backtracking matrices of one pair, as the 2011 paper defines
    them.

    Returns
    -------
    dict of str to array
        ``b_left``, ``b_up``, ``c_up`` and ``c_left``, bool (m, n); and ``words``,
        uint32 (ceil(m / 8), n), the packed form that the traceback reads
        (``pairs.dp.directions``).

    Raises
    ------
    InputError, UsageError
        As ``align``.

    Notes
    -----
    The gpu-pairalign paper of 2011; see the page of papers.
    """
    from jaxalign.pairs.compiled import directions_of

    return directions_of(*_one_pair(query, target, scoring, options))


def _one_pair(
    query: SequenceLike, target: SequenceLike, scoring: ScoringLike, ends: EndKeywords
) -> tuple[Any, ...]:
    """Codes, scoring, mode and free ends of one pair."""
    scoring, options = as_scoring(scoring, tracks=True), PairOptions(**ends)
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
        See ``jaxalign.inputs``; a file must have one record. The query may be a
        ``Profile``: the result shows its consensus, and only the gap costs of the
        scoring are used. Without a scoring, these are those of the profile's positions,
        where it has them and the mode is local.
    scoring : Scoring, or the name or file of a matrix, optional
        BLOSUM62 with gap costs 11 and 1 by default.
    return_directions : bool
        Return (Alignment, the result of ``directions``) instead.

    Returns
    -------
    Alignment

    Raises
    ------
    InputError, UsageError, MemoryPlanError, DeviceError
        As ``align_pairs``.

    Examples
    --------
    >>> import jaxalign
    >>> scoring = jaxalign.Scoring(match=2, mismatch=-1, gap_open=1, gap_extend=1)
    >>> a = jaxalign.align("ATCTCGTATGAT", "GTCTATCAC", scoring, mode="local")
    >>> a.score, a.cigar(), a.rows()
    (10, '2M1I5M', ('TCGTATGA', 'TC-TATCA'))
    """
    own_gaps = scoring is None and options.get("mode") == "local"
    scoring = as_scoring(scoring, tracks=True)
    query_input: Any = query
    if isinstance(query_input, Profile):
        query_input, scoring = as_query(query_input, None if own_gaps else scoring)
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
    """Align query k with target k, or one sequence with all of the other side.

    Parameters
    ----------
    queries, targets : path, mapping, iterable, Sequences or flat ``(codes, offsets)``
        A file (FASTA or an index), names to sequences, or sequences as ``align`` takes
        them; see ``jaxalign.inputs``. A str is a path.
    scoring : Scoring, or the name or file of a matrix, optional
        BLOSUM62 with gap costs 11 and 1 by default.
    mode : {"global", "semiglobal", "local"}
        How sequences are aligned; semiglobal makes all four end gaps free.
    free_ends : collection of str, optional
        Ends whose gaps are free, in mode global: any of "query_start", "query_end",
        "target_start", "target_end".
    strand : {"both", "plus", "minus"}, optional
        Strand of the queries to align, for nucleotides; plus by default. ``both`` keeps
        the strand with the higher score, plus if they are equal. The column ``strand``
        and the spans are as in ``search``.
    output : {"stats", "score", "identity", "alignment"}
        What to compute; see ``Table`` for the columns. ``identity`` needs no path: it
        maximises (score, identical pairs), so it is the same for (a, b) and (b, a).
    implementation : {"rows", "sweep", "wavefront", "pallas"}, optional
        Use this implementation or fail. ``rows`` needs only NumPy. By default ``rows``
        for small jobs, and otherwise the fastest that can run.
    memory_budget : int or str, optional
        Bytes, or text such as ``"2GiB"``. By default half of the free memory.
    threads : int, optional
        Host threads, each with one window at a time. By default all cores.
    window : int, optional
        Largest number of queries, and of targets, in a window. Results do not depend on
        it.
    devices : "all", int, or sequence of ints or jax devices, optional
        JAX devices to use. Each idle device takes the next window, the largest first.
        By default JAX's default device.
    mesh : jax.sharding.Mesh, optional
        Run one program over all devices of this mesh, a window on each (``shard_map``).
        By default the mesh of ``jax.set_mesh``, if there is one.
    min_score, min_identity, min_cov : float, optional
        Keep only rows with at least this score, this identity (0 to 1, over the
        denominator ``identity``) and this coverage (0 to 1, of the sequences that
        ``coverage`` names). Rows where the value is nan are dropped, and
        ``table.info["pairs"]`` counts all pairs. ``min_cov`` is refused in mode global
        without free ends, where coverage is always 1.
    min_length_ratio : float, optional
        Keep only pairs whose shorter length is at least this share of the longer one.
        Other pairs are not aligned; with ``strand="both"``, all pairs are scored.
    filter : bool
        Do not align pairs that provably fail ``min_identity``. Rows do not depend on
        it. ``table.info["excluded"]`` counts these pairs by proof.
    progress : callable, optional
        Called with (cells done, cells in all).
    busy : callable, optional
        Called with (devices at work, devices in all).

    Returns
    -------
    Table
        One row per pair, in input order.

    Raises
    ------
    InputError
        If a letter is not in the alphabet, a file cannot be read, or the two sides have
        different numbers of sequences, both above 1.
    UsageError
        If an option is unknown or has no effect in this call, strands are asked of
        proteins, or sequences of a nucleotide type meet a protein scoring (a warning if
        only their letters look like nucleotides).
    MemoryPlanError
        If the job exceeds the budget.
    DeviceError
        If the named implementation or device cannot run the job.

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
    """Align all pairs i < j of a set (i <= j with ``include_self``).

    Every pair is computed once. Results do not depend on windows, threads, devices,
    machines or the order of work.

    Parameters
    ----------
    cluster : str, optional
        The address of a Ray cluster, or "auto" for the cluster of this machine. Its
        machines compute parts of ``part_rows`` rows. Excludes ``devices``, ``mesh`` and
        ``threads``.

    Returns
    -------
    Table
        n (n - 1) / 2 rows, less those dropped by filters: (0, 1), (0, 2) ... (1, 2) ...

    Raises
    ------
    InputError, UsageError, MemoryPlanError, DeviceError
        As ``align_pairs``.

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
    """Plan a job without running it: pairs, cells, windows and bytes.

    Without ``targets``, it plans ``align_all``; with them, ``align_pairs``. With
    ``parts=True`` or ``part_rows`` it plans ``stream_all``: bytes and windows are those
    of its largest part, and ``parts`` is the number of parts.

    Returns
    -------
    Plan

    Raises
    ------
    InputError, UsageError, DeviceError
        As ``align_pairs``.
    MemoryPlanError
        If the job exceeds the budget.
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
