"""The pairs of a job in blocks, and which pairs of a block may pass its filters.

A GPU counts common subsequences of some queries with many targets at once
(``gpu.lcs_launches``), and says itself which are near the cut. On a CPU a block has
the targets that lie in lanes, and the host compares all with the least count of their
lengths.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from jaxalign.pairs import length_classes
from jaxalign.pairs.cpu import lcs_rows
from jaxalign.pairs.cpu.lane_packing import block_size
from jaxalign.pairs.windows import by_length

if TYPE_CHECKING:
    from jaxalign.pairs.proofs import Proofs

MAX_QUERIES = 4096  # of a block on a CPU
WORD_BITS = 64  # columns of a target that an LCS takes together

Pairs = tuple[np.ndarray, np.ndarray]  # (i, j)


class TargetBlock(NamedTuple):
    """Some targets, and which queries they meet: those from place ``first`` to place
    ``last`` in the order of falling lengths. ``place``: the targets are queries too,
    those from there on, and a query meets those before it in that order."""

    targets: np.ndarray
    first: int
    last: int
    place: int | None = None
    on_gpu: bool = False


def blocks_of(proofs: "Proofs") -> Iterator[TargetBlock]:
    """The pairs of a task that are not zipped, each once."""
    task, count = proofs.task, len(proofs.order)
    own = count if task.kind == "all" else 0
    lengths = task.job.target_lengths
    others = by_length(lengths[own:]) + own
    for first, last, most in _bands(proofs):
        for at, targets in _runs(proofs.order[: min(own, last)], lengths, most):
            yield TargetBlock(targets, max(first, at), last, at, most is not None)
        for _, targets in _runs(others, lengths, most):
            yield TargetBlock(targets, first, last, None, most is not None)


def _bands(proofs: "Proofs") -> Iterator[tuple[int, int, int | None]]:
    """(first, last, targets of a block or None for those of a CPU) of some queries. A
    kernel has the queries in registers, and takes none that is too long."""
    count, launches = len(proofs.order), proofs.launches
    falling, first = proofs.task.job.query_lengths[proofs.order], 0
    beyond = count
    if launches is not None:
        beyond = int(np.count_nonzero(falling > launches.longest))
    while first < count:
        if launches is None or first < beyond:
            last, most = min(first + MAX_QUERIES, beyond), None
        else:
            most = launches.targets
            last = min(first + launches.query_count(int(falling[first])), count)
        yield first, last, most
        first = last


def _runs(targets: np.ndarray, lengths: np.ndarray, most=None) -> Iterator[tuple]:
    """(place, targets of a block) of targets, longest first, ``most`` of them or as
    many as are lanes of a CPU."""
    falling, at = lengths[targets], 0
    while at < len(targets):
        count = most or block_size(falling, at)
        yield at, targets[at : at + count]
        at += count


def look_at_block(proofs: "Proofs", block: TargetBlock, device) -> Pairs:
    """The pairs of a block that may pass."""
    if block.on_gpu:
        return _look_by_launch(proofs, block, device)
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
    rows = wanted.any(axis=1)
    if proofs.lcs and rows.any():
        some = _reach(rows)
        lcs = _lcs_on_cpu(proofs, block, some)
        kept = proofs.by_subsequence(lcs, m[some], n[some]) & wanted[some]
        wanted = np.zeros_like(wanted)
        wanted[some] = kept
    return i[wanted], j[wanted]


def _look_by_length_classes(proofs: "Proofs", block: TargetBlock) -> Pairs:
    """The same, where it does not matter which of two sequences comes first."""
    job, q = proofs.task.job, proofs.order[block.first : block.last]
    m, of_query = length_classes.classes_of(job.query_lengths[q])
    n, of_target = length_classes.classes_of(job.target_lengths[block.targets])
    may = proofs.may_pass(m[:, None], n[None])
    rows = np.asarray(may.any(axis=1))[of_query]
    if not rows.any():
        return q[:0], q[:0]
    some, least = _reach(rows), np.zeros(may.shape, np.int64)
    if proofs.lcs and proofs.bound is not None:
        lcs = _lcs_on_cpu(proofs, block, some)
        least = proofs.bound.least_count(m[:, None], n[None])
    else:
        lcs = np.zeros((some.stop - some.start, len(of_target)), np.int16)
    least = np.where(may, least, length_classes.NEVER)
    rows, columns = length_classes.near(lcs, least, of_query[some], of_target)
    rows += some.start
    met = columns < _met(job, block)[rows]
    i, j = q[rows[met]], block.targets[columns[met]]
    if block.place is not None:
        i, j = np.minimum(i, j), np.maximum(i, j)
    return i, j


def _look_by_launch(proofs: "Proofs", block: TargetBlock, device) -> Pairs:
    """The same on a GPU; of each length of a target the host compares one."""
    job, t = proofs.task.job, block.targets
    q = proofs.order[block.first : block.last]
    lengths = np.unique(job.target_lengths[t])
    near = proofs.may_pass(job.query_lengths[q][:, None], lengths[None])
    if not near.any():
        return q[:0], t[:0]
    rows, some = _reach(near.any(axis=1)), lengths[near.any(axis=0)]
    falling = job.target_lengths[t]
    inside = _reach((falling >= some[0]) & (falling <= some[-1]))
    met = np.clip(_met(job, block) - inside.start, 0, inside.stop - inside.start)
    q, t = q[rows], t[inside]
    found = proofs.launches.candidates(q, t, met[rows], proofs.bound, device)
    i, j = q[found.query], t[found.target]
    if block.place is not None:
        i, j = np.minimum(i, j), np.maximum(i, j)
    m, n = job.query_lengths[i], job.target_lengths[j]
    kept = proofs.may_pass(m, n) & proofs.by_subsequence(found.lcs, m, n)
    return i[kept], j[kept]


def _met(job, block: TargetBlock) -> np.ndarray:
    """How many of its targets, the first, each query of a block meets."""
    if block.place is None:
        return np.full(block.last - block.first, len(block.targets))
    places = np.arange(block.first, block.last) - block.place
    return np.clip(places + bool(job.include_self), 0, len(block.targets))


def _reach(flags: np.ndarray) -> slice:
    """From the first flag to the last."""
    (places,) = np.nonzero(flags)
    return slice(int(places[0]), int(places[-1]) + 1)


def _lcs_on_cpu(proofs: "Proofs", block: TargetBlock, rows: slice) -> np.ndarray:
    """LCS of some of the queries of a block with its targets."""
    task, targets = proofs.task, block.targets
    alphabet = task.scoring.alphabet
    if proofs.by_rows:
        some = proofs.order[block.first : block.last][rows]
        return lcs_rows.lcs_block(task.queries, some, task.targets, targets, alphabet)
    from jaxalign.pairs.cpu import lcs_windows

    group = block.first // MAX_QUERIES
    first = block.first - group * MAX_QUERIES
    some = slice(first + rows.start, first + rows.stop)
    letters = proofs.letters[group]
    return lcs_windows.lcs_block(letters, some, task.targets, targets, alphabet)


def zip_runs(proofs: "Proofs") -> list[np.ndarray]:
    """Zipped pairs, those of like sizes together."""
    job = proofs.task.job
    m, n = job.query_lengths, job.target_lengths
    order = np.lexsort((-m, -(n // WORD_BITS)))
    return [some for _, some in _runs(order, n)]


def look_at_run(proofs: "Proofs", pairs: np.ndarray, _device) -> Pairs:
    """The zipped pairs among some that may pass."""
    from jaxalign.pairs.cpu import lcs_windows

    task = proofs.task
    m, n = task.job.query_lengths[pairs], task.job.target_lengths[pairs]
    wanted = proofs.may_pass(m, n)
    if proofs.lcs and wanted.any():
        few = pairs[wanted]
        alphabet = task.scoring.alphabet
        lcs = lcs_windows.lcs_zipped(task.queries, task.targets, few, few, alphabet)
        wanted[wanted] = proofs.by_subsequence(lcs, m[wanted], n[wanted])
    return pairs[wanted], pairs[wanted]
