"""The pairs of a job in blocks, and which pairs of a block may pass its filters.

A GPU counts common subsequences of some queries with many targets at once
(``gpu.lcs_launches``), and says itself which are near the cut. On a CPU a block has
the targets that lie in lanes, and the host compares all with the least count of their
lengths.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jaxalign.bits import lcs_rows
from jaxalign.bits.lanes import LCS_LANES, MAX_SPREAD, SHORT, SHORT_LANES
from jaxalign.pairs.proofs import proof
from jaxalign.pairs.proofs.proof import Proofs
from jaxalign.runtime.lengths import by_length

if TYPE_CHECKING:
    from jaxalign.pairs.proofs.lcs_launches import LcsLaunches
    from jaxalign.pairs.windows import PairMatrix


WORD_BITS = 64  # columns of a target that an LCS takes together
MAX_TARGETS_BY_ROWS = 1024  # of a block

Pairs = tuple[np.ndarray, np.ndarray, np.ndarray]  # (i, j, most identical pairs)
Look = Callable[[object], Pairs]


class TargetBlock(NamedTuple):
    """Some targets, and which queries they meet on a CPU: those from place ``first`` to
    place ``last`` in the order of falling lengths. ``place``: the targets are queries
    too, those from there on, and a query meets those before it in that order."""

    targets: np.ndarray
    first: int
    last: int
    place: int | None = None


class LaunchBlock(NamedTuple):
    """Some rows, and the columns, the first ``met`` of them, that each meets on a GPU;
    both are indices, longest first. ``swapped``: rows are targets, columns queries."""

    rows: np.ndarray
    columns: np.ndarray
    met: np.ndarray
    swapped: bool = False


def looks(proofs: Proofs) -> Iterator[Look]:
    """Functions of a device, each of which finds some of the pairs that may pass."""
    if proofs.task.kind == "zip":
        yield from (partial(_look_at_run, proofs, x) for x in _zip_runs(proofs))
        return
    for block in _blocks_of_gpu(proofs) if proofs.launches else ():
        yield partial(_look_by_launch, proofs, block)
    for block in _blocks_of_cpu(proofs):
        yield partial(_look_at_block, proofs, block)


class _Sides(NamedTuple):
    """The two sides of a task, longest first."""

    queries: np.ndarray
    own: int  # of the queries, the first: they are targets too
    others: np.ndarray  # the other targets
    long: int  # queries, and others, that a kernel cannot take
    beyond: int


def _sides(proofs: Proofs) -> _Sides:
    job, queries, launches = proofs.task.job, proofs.order, proofs.launches
    own = len(queries) if proofs.task.kind == "all" else 0
    others = by_length(job.target_lengths[own:]) + own
    if launches is None:
        return _Sides(queries, own, others, len(queries), len(others))
    # A kernel has the shorter sequence in registers.
    long = int(np.count_nonzero(job.query_lengths > launches.longest))
    beyond = int(np.count_nonzero(job.target_lengths[others] > launches.longest))
    return _Sides(queries, own, others, long, beyond)


def _blocks_of_gpu(proofs: Proofs) -> Iterator[LaunchBlock]:
    """The pairs of a task, each once, but those of two long sequences."""
    job, launches = proofs.task.job, proofs.launches
    queries, own, others, long, beyond = _sides(proofs)
    for first, last in _launches(launches, job.query_lengths[queries], long):
        rows, places = queries[first:last], np.arange(first, last)
        for columns in _pieces(launches, queries[: min(own, last)]):
            met = np.clip(places + bool(job.include_self), 0, len(columns))
            yield LaunchBlock(rows, columns, met)
            places = places - len(columns)
        for columns in _pieces(launches, others):
            yield LaunchBlock(rows, columns, np.full(len(rows), len(columns)))
    for first, last in _launches(launches, job.target_lengths[others], beyond):
        rows = others[first:last]
        for columns in _pieces(launches, queries[:long]):
            yield LaunchBlock(rows, columns, np.full(len(rows), len(columns)), True)


def _blocks_of_cpu(proofs: Proofs) -> Iterator[TargetBlock]:
    """The pairs of a task, each once; where there is a GPU, of two long sequences."""
    lengths = proofs.task.job.target_lengths
    queries, own, others, long, beyond = _sides(proofs)
    for first in range(0, long, proof.MAX_QUERIES):
        last = min(first + proof.MAX_QUERIES, long)
        least = _least_targets(last - first) if proofs.by_rows else 1
        for at, targets in _runs(queries[: min(own, last)], lengths, least):
            yield TargetBlock(targets, max(first, at), last, at)
        for _, targets in _runs(others[:beyond], lengths, least):
            yield TargetBlock(targets, first, last)


def _launches(
    launches: "LcsLaunches", falling: np.ndarray, first: int
) -> Iterator[tuple[int, int]]:
    """(first, last) of the rows of launches, from a first row on."""
    while first < len(falling):
        last = min(first + launches.query_count, len(falling))
        yield first, last
        first = last


def _pieces(launches: "LcsLaunches", columns: np.ndarray) -> Iterator[np.ndarray]:
    """The columns of launches."""
    for at in range(0, len(columns), launches.targets):
        yield columns[at : at + launches.targets]


def _least_targets(queries: int) -> int:
    """The targets of a block by rows at least, which so many queries meet: calls of
    NumPy for few pairs take longer than what they compute."""
    return min(lcs_rows.STEP_PAIRS // max(queries, 1), MAX_TARGETS_BY_ROWS)


def _runs(targets: np.ndarray, lengths: np.ndarray, least: int = 1) -> Iterator[tuple]:
    """(place, targets of a block) of targets, longest first: as many as are lanes, or
    ``least``."""
    falling, at = lengths[targets], 0
    while at < len(targets):
        count = max(block_size(falling, at), least)
        yield at, targets[at : at + count]
        at += count


def _look_at_block(proofs: Proofs, block: TargetBlock, _device: object) -> Pairs:
    """The pairs of a block that may pass."""
    if block.place is None or proofs.symmetric:
        return _look_by_length_classes(proofs, block)
    job, t = proofs.task.job, block.targets[None]
    q = proofs.order[block.first : block.last, None]
    wanted = np.arange(t.size)[None] < _met(job, block)[:, None]
    i, j = np.broadcast_arrays(q, t)
    if block.place is not None:
        i, j = np.minimum(q, t), np.maximum(q, t)
    m, n = job.query_lengths[i], job.target_lengths[j]
    wanted &= proofs.may_pass(m, n)
    rows, most = np.asarray(wanted.any(axis=1)), np.minimum(m, n)
    if _counted_on_cpu(proofs) and rows.any():
        some = _reach(rows)
        most[some] = _lcs_on_cpu(proofs, block, some)
        passing = proofs.by_subsequence(most[some], m[some], n[some]) & wanted[some]
        wanted = np.zeros_like(wanted)
        wanted[some] = passing
    return i[wanted], j[wanted], most[wanted]


def _counted_on_cpu(proofs: Proofs) -> bool:
    """Whether subsequences of blocks are counted. A GPU aligns two sequences that are
    too long for its kernel sooner than a CPU counts theirs."""
    return proofs.lcs and proofs.launches is None


def _look_by_length_classes(proofs: Proofs, block: TargetBlock) -> Pairs:
    """The same, where it does not matter which of two sequences comes first."""
    job, q = proofs.task.job, proofs.order[block.first : block.last]
    m, of_query = proof.classes_of(job.query_lengths[q])
    n, of_target = proof.classes_of(job.target_lengths[block.targets])
    may = proofs.may_pass(m[:, None], n[None])
    rows = np.asarray(may.any(axis=1))[of_query]
    if not rows.any():
        return q[:0], q[:0], q[:0]
    some, least = _reach(rows), np.zeros(may.shape, np.int64)
    if _counted_on_cpu(proofs):
        most = _lcs_on_cpu(proofs, block, some)
        least = proofs.least_count(m[:, None], n[None])
    else:
        most = np.minimum(m[of_query[some], None], n[None, of_target])
    least = np.where(may, least, proof.NEVER)
    rows, columns = proof.near(most, least, of_query[some], of_target)
    met = columns < _met(job, block)[rows + some.start]
    rows, columns = rows[met], columns[met]
    i, j = q[rows + some.start], block.targets[columns]
    if block.place is not None:
        i, j = np.minimum(i, j), np.maximum(i, j)
    return i, j, most[rows, columns]


def _look_by_launch(proofs: Proofs, block: LaunchBlock, device: Any) -> Pairs:
    """The same on a GPU; the host compares one pair of each two lengths."""
    job, launches = proofs.task.job, proofs.launches
    of_rows, of_columns = job.query_lengths, job.target_lengths
    if block.swapped:
        of_rows, of_columns = of_columns, of_rows
    falling = of_rows[block.rows], of_columns[block.columns]
    reach = _reach_of_lengths(proofs, *falling, block.swapped)
    if reach is None:
        return block.rows[:0], block.columns[:0], block.columns[:0]
    rows, columns = block.rows[reach[0]], block.columns[reach[1]]
    met = np.clip(block.met[reach[0]] - reach[1].start, 0, len(columns))
    near = launches.candidates(rows, columns, met, proofs.bound, device, block.swapped)
    i, j = rows[near.row], columns[near.column]
    if block.swapped:
        i, j = j, i
    elif proofs.task.kind == "all":
        i, j = np.minimum(i, j), np.maximum(i, j)
    m, n = job.query_lengths[i], job.target_lengths[j]
    passing = proofs.may_pass(m, n) & proofs.by_subsequence(near.value, m, n)
    return i[passing], j[passing], near.value[passing]


def _reach_of_lengths(
    proofs: Proofs, m: np.ndarray, n: np.ndarray, swapped: bool
) -> tuple[slice, slice] | None:
    """The rows and columns, of falling lengths, whose lengths leave any pair."""
    (rows, of_row), (columns, of_column) = map(proof.classes_of, (m, n))
    sides = rows[:, None], columns[None]
    near = proofs.may_pass(*(sides[::-1] if swapped else sides))
    if not near.any():
        return None
    own, others = np.asarray(near.any(axis=1)), np.asarray(near.any(axis=0))
    return _reach(own[of_row]), _reach(others[of_column])


def _met(job: "PairMatrix", block: TargetBlock) -> np.ndarray:
    """How many of its targets, the first, each query of a block meets."""
    if block.place is None:
        return np.full(block.last - block.first, len(block.targets))
    places = np.arange(block.first, block.last) - block.place
    return np.clip(places + bool(job.include_self), 0, len(block.targets))


def _reach(flags: np.ndarray) -> slice:
    """From the first flag to the last."""
    (places,) = np.nonzero(flags)
    return slice(int(places[0]), int(places[-1]) + 1)


def _lcs_on_cpu(proofs: Proofs, block: TargetBlock, rows: slice) -> np.ndarray:
    """LCS of some of the queries of a block with its targets."""
    task, targets = proofs.task, block.targets
    alphabet = task.scoring.alphabet
    if proofs.by_rows:
        some = proofs.order[block.first : block.last][rows]
        return lcs_rows.lcs_block(task.queries, some, task.targets, targets, alphabet)
    from jaxalign.bits import lcs_windows

    group = block.first // proof.MAX_QUERIES
    first = block.first - group * proof.MAX_QUERIES
    some = slice(first + rows.start, first + rows.stop)
    letters = proofs.letters[group]
    return lcs_windows.lcs_block(letters, some, task.targets, targets, alphabet)


def _zip_runs(proofs: Proofs) -> list[np.ndarray]:
    """Zipped pairs, those of like sizes together."""
    job = proofs.task.job
    m, n = job.query_lengths, job.target_lengths
    order = np.lexsort((-m, -(n // WORD_BITS)))
    return [some for _, some in _runs(order, n)]


def _look_at_run(proofs: Proofs, pairs: np.ndarray, _device: object) -> Pairs:
    """The zipped pairs among some that may pass."""
    from jaxalign.bits import lcs_windows

    task = proofs.task
    m, n = task.job.query_lengths[pairs], task.job.target_lengths[pairs]
    wanted, most = proofs.may_pass(m, n), np.minimum(m, n)
    if proofs.lcs and wanted.any():
        few = pairs[wanted]
        alphabet = task.scoring.alphabet
        lcs = lcs_windows.lcs_zipped(task.queries, task.targets, few, few, alphabet)
        most[wanted] = lcs
        wanted[wanted] = proofs.by_subsequence(lcs, m[wanted], n[wanted])
    return pairs[wanted], pairs[wanted], most[wanted]


def block_size(lengths: np.ndarray, at: int) -> int:
    """How many of some targets, longest first, are lanes of an LCS from place ``at``
    on: fewer where the others are much shorter than the first."""
    few, many = LCS_LANES
    if lengths[at] <= SHORT:
        return SHORT_LANES
    last = lengths[min(at + many, len(lengths)) - 1]
    return many if lengths[at] <= MAX_SPREAD * last else few
