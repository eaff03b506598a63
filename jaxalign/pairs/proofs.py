"""Which pairs of a job may pass its filters, by proofs that need no alignment.

Three of them, the cheapest first: the ratio of the lengths, the shorter length as a
bound on the identical pairs, the longest common subsequence (LCS) as a bound on them
(``model.identity_bounds``).
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import cycle
from typing import Any, NamedTuple

import numpy as np

from jaxalign.model.identity_bounds import IdentityBound, identity_bound
from jaxalign.pairs import small_jobs
from jaxalign.pairs.cpu import lcs_rows
from jaxalign.pairs.cpu.lane_packing import block_size
from jaxalign.pairs.plan import Task
from jaxalign.pairs.windows import by_length

MAX_QUERIES = 4096  # of a block
MAX_BLOCK_PAIRS = 2**20  # of a launch: 50 MB of numbers for each thread
# Cells of a job whose common subsequences are counted, unless an implementation is
# named: in NumPy, and from where on by what is compiled for it, of zipped pairs too
# (docs/logs/lcs-filter.md). A GPU aligns fewer pairs sooner than a CPU counts theirs.
LEAST_CELLS_BY_ROWS, LEAST_CELLS, LEAST_CELLS_ZIPPED = 10**6, 10**11, 10**10
LEAST_CELLS_OF_A_GPU = 2 * 10**11
WORD_BITS = 64  # columns of a target that an LCS takes together


class TargetBlock(NamedTuple):
    """Some targets, and which queries they meet: those from place ``first`` to place
    ``last`` in the order of falling lengths. ``place``: the targets are queries too,
    those from there on, and a query meets those before it in that order."""

    targets: np.ndarray
    first: int
    last: int
    place: int | None = None


@dataclass
class Survivors:
    """Pairs (i, j) of a task that may pass, and how many others each proof excludes."""

    i: np.ndarray
    j: np.ndarray
    excluded: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Proofs:
    """What is known of the pairs of a task before they are aligned."""

    task: Task
    bound: IdentityBound | None
    lcs: bool  # whether common subsequences are counted …
    launches: Any = None  # … by launches on GPUs (``gpu.lcs_launches.LcsLaunches``)
    by_rows: bool = False  # … or in NumPy

    @property
    def names(self) -> tuple[str, str, str]:
        """The three inequalities."""
        filters, bound = self.task.filters, self.bound
        ratio = f"lengths: min(m, n) / max(m, n) < {filters.min_length_ratio}"
        cut = f"{bound} < {bound.cut:.15g}" if bound else ""
        return ratio, f"lengths: min(m, n) / {cut}", f"LCS: lcs / {cut}"

    def by_length(self, m, n, wanted, each=1) -> tuple[np.ndarray, dict[str, int]]:
        """(the pairs wanted that lengths leave, how many they exclude); ``each`` says
        how many pairs each of these stands for."""
        filters, counts = self.task.filters, {}
        if filters.min_length_ratio is not None:
            kept = wanted & filters.length_mask(m, n)
            counts[self.names[0]] = _lost(wanted, kept, each)
            wanted = kept
        if self.bound is not None:
            kept = wanted & self.bound.possible(np.minimum(m, n), m, n)
            counts[self.names[1]] = _lost(wanted, kept, each)
            wanted = kept
        return wanted, counts

    def by_subsequence(self, lcs, m, n, wanted) -> tuple[np.ndarray, dict[str, int]]:
        """The same by longest common subsequences."""
        assert self.bound is not None
        kept = wanted & self.bound.possible(lcs, m, n)
        return kept, {self.names[2]: _lost(wanted, kept, 1)}

    @cached_property
    def letters(self) -> list:
        """The queries in that order, some at a time, as an LCS reads them."""
        from jaxalign.pairs.cpu import lcs_windows

        task, starts = self.task, range(0, len(self.order), MAX_QUERIES)
        padding = task.scoring.alphabet.size
        groups = [self.order[at : at + MAX_QUERIES] for at in starts]
        some = (lcs_windows.query_letters(task.queries, x, padding) for x in groups)
        return list(some)

    @cached_property
    def order(self) -> np.ndarray:
        """The queries, longest first."""
        return by_length(self.task.job.query_lengths)


def _lost(before: np.ndarray, after: np.ndarray, each) -> int:
    """How many pairs are no longer there."""
    return int(((before & ~after) * each).sum())


def proofs_of(task: Task) -> Proofs | None:
    """What may be proved of the pairs of a task; None if nothing may."""
    if not task.filters or task.mesh is not None:
        return None
    bound = None
    if task.bounded:
        bound = identity_bound(task.filters, task.mode, task.free)
    if bound is None and task.filters.min_length_ratio is None:
        return None
    if bound is None:
        return Proofs(task, bound, False)
    named, cells = task.implementation, task.job.total
    few = cells < (LEAST_CELLS_ZIPPED if task.kind == "zip" else LEAST_CELLS)
    alone = named == "rows" or small_jobs.seems_small(task)
    if alone or (named is None and few and not small_jobs.may_have_gpu()):
        return _by_rows(task, bound)
    from jaxalign.pairs import compiled

    launches = compiled.lcs_launches(task)
    if named is None and few and launches is None:
        return _by_rows(task, bound)
    lcs = bool(named) or not launches or cells >= LEAST_CELLS_OF_A_GPU
    return Proofs(task, bound, lcs, launches if lcs else None)


def _by_rows(task: Task, bound: IdentityBound) -> Proofs:
    """Proofs without a compiler. Zipped pairs have a target each, whose words take
    longer to make than they save."""
    lcs = task.kind != "zip" and task.job.total >= LEAST_CELLS_BY_ROWS
    return Proofs(task, bound, lcs, by_rows=True)


def find(proofs: Proofs) -> Survivors:
    """The pairs that may pass, in the order of rows, and how many cannot."""
    task = proofs.task
    zipped = task.kind == "zip"
    pieces = _zip_runs(proofs) if zipped else list(_blocks(proofs))
    look = _look_at_run if zipped else _look_at_block
    places = cycle(task.devices or (None,))
    # Calls of NumPy are too short for threads: they would wait for Python's lock.
    pool = ThreadPoolExecutor(1 if proofs.by_rows else task.threads)
    try:
        found = list(pool.map(partial(look, proofs), pieces, places))
    finally:  # also when it is interrupted
        pool.shutdown(cancel_futures=True)
    none = np.zeros(0, np.int64)
    i = np.concatenate([none, *(one.i for one in found)])
    j = np.concatenate([none, *(one.j for one in found)])
    order = np.argsort(task.job.position(i, j), kind="stable")
    return Survivors(i[order], j[order], excluded_by_all(found))


def excluded_by_all(found: Iterable[Survivors]) -> dict[str, int]:
    """How many pairs each proof excludes in all of some."""
    counts: Counter[str] = Counter()
    for one in found:
        counts.update(one.excluded)
    return dict(counts)


def _blocks(proofs: Proofs) -> Iterator[TargetBlock]:
    """The pairs of a task, each once."""
    task, count = proofs.task, len(proofs.order)
    own = count if task.kind == "all" else 0
    lengths = task.job.target_lengths
    others = by_length(lengths[own:]) + own
    most = proofs.launches.targets if proofs.launches else None
    step = max(MAX_BLOCK_PAIRS // most, 1) if most else MAX_QUERIES
    step = min(step, MAX_QUERIES)
    for first in range(0, count, step):
        last = min(first + step, count)
        for at, targets in _runs(proofs.order[: min(own, last)], lengths, most):
            yield TargetBlock(targets, max(first, at), last, at)
        for _, targets in _runs(others, lengths, most):
            yield TargetBlock(targets, first, last)


def _runs(targets: np.ndarray, lengths: np.ndarray, most=None) -> Iterator[tuple]:
    """(place, targets of a block) of targets, longest first, ``most`` of them or as
    many as are lanes of a CPU."""
    falling, at = lengths[targets], 0
    while at < len(targets):
        count = most or block_size(falling, at)
        yield at, targets[at : at + count]
        at += count


def _look_at_block(proofs: Proofs, block: TargetBlock, device) -> Survivors:
    """The pairs of a block that may pass."""
    if proofs.launches is not None and block.place is None:
        longest = proofs.task.job.query_lengths[proofs.order[block.first]]
        if longest <= proofs.launches.longest:
            return _look_by_launch(proofs, block, device)
    job, t = proofs.task.job, block.targets[None]
    q = proofs.order[block.first : block.last, None]
    wanted = np.ones((len(q), t.size), bool)
    i, j = np.broadcast_arrays(q, t)
    if block.place is not None:
        later = np.arange(block.first, block.last)[:, None]
        before = np.arange(block.place, block.place + t.size)[None]
        wanted = (later >= before) if job.include_self else (later > before)
        i, j = np.minimum(q, t), np.maximum(q, t)
    m, n = job.query_lengths[i], job.target_lengths[j]
    wanted, counts = proofs.by_length(m, n, wanted)
    rows = wanted.any(axis=1)
    if proofs.lcs and rows.any():
        some = _reach(rows)
        lcs = _lcs(proofs, block, some, device)
        kept, more = proofs.by_subsequence(lcs, m[some], n[some], wanted[some])
        wanted, counts = np.zeros_like(wanted), counts | more
        wanted[some] = kept
    return Survivors(i[wanted], j[wanted], counts)


def _look_by_launch(proofs: Proofs, block: TargetBlock, device) -> Survivors:
    """The same on a GPU, which says itself which pairs are near the cut: of each length
    of a target the host compares one."""
    job, t = proofs.task.job, block.targets
    q = proofs.order[block.first : block.last]
    m, (n, each) = (
        job.query_lengths[q],
        np.unique(job.target_lengths[t], return_counts=True),
    )
    wanted = np.ones((len(m), len(n)), bool)
    wanted, counts = proofs.by_length(m[:, None], n[None], wanted, each[None])
    left = int((wanted * each[None]).sum())
    counts[proofs.names[2]] = left
    if not left:
        return Survivors(q[:0], t[:0], counts)
    q = q[_reach(wanted.any(axis=1))]
    some = n[_reach(wanted.any(axis=0))]
    t = t[(job.target_lengths[t] >= some[0]) & (job.target_lengths[t] <= some[-1])]
    near = proofs.launches.candidates(q, t, proofs, device)
    i, j = q[near.query], t[near.target]
    m, n = job.query_lengths[i], job.target_lengths[j]
    kept, _ = proofs.by_length(m, n, np.ones(len(i), bool))
    kept, _ = proofs.by_subsequence(near.lcs, m, n, kept)
    counts[proofs.names[2]] -= int(np.count_nonzero(kept))
    return Survivors(i[kept], j[kept], counts)


def _reach(flags: np.ndarray) -> slice:
    """From the first flag to the last."""
    (places,) = np.nonzero(flags)
    return slice(int(places[0]), int(places[-1]) + 1)


def _lcs(proofs: Proofs, block: TargetBlock, some: slice, device) -> np.ndarray:
    """LCS of some of the queries of a block with its targets."""
    first, last = block.first + some.start, block.first + some.stop
    if proofs.launches is None:
        return _lcs_on_cpu(proofs, first, last, block.targets)
    # A kernel has the queries in registers, and takes no longer ones.
    lengths = proofs.task.job.query_lengths[proofs.order[first:last]]
    begin = first + int(np.count_nonzero(lengths > proofs.launches.longest))
    lcs = np.zeros((last - first, len(block.targets)), np.int32)
    for at, targets in _runs(block.targets, proofs.task.job.target_lengths):
        if begin == first:
            break
        inside = slice(at, at + len(targets))
        lcs[: begin - first, inside] = _lcs_on_cpu(proofs, first, begin, targets)
    queries = proofs.order[begin:last]
    lcs[begin - first :] = proofs.launches.count(queries, block.targets, device)
    return lcs


def _lcs_on_cpu(proofs: Proofs, first: int, last: int, targets) -> np.ndarray:
    """LCS of the queries from place ``first`` to ``last`` with some targets."""
    if proofs.by_rows:
        task, some = proofs.task, proofs.order[first:last]
        alphabet = task.scoring.alphabet
        return lcs_rows.lcs_block(task.queries, some, task.targets, targets, alphabet)
    from jaxalign.pairs.cpu import lcs_windows

    task, group = proofs.task, first // MAX_QUERIES
    some = slice(first - group * MAX_QUERIES, last - group * MAX_QUERIES)
    letters = proofs.letters[group]
    return lcs_windows.lcs_block(
        letters, some, task.targets, targets, task.scoring.alphabet
    )


def _zip_runs(proofs: Proofs) -> list[np.ndarray]:
    """Zipped pairs, those of like sizes together."""
    job = proofs.task.job
    m, n = job.query_lengths, job.target_lengths
    order = np.lexsort((-m, -(n // WORD_BITS)))
    return [some for _, some in _runs(order, n)]


def _look_at_run(proofs: Proofs, pairs: np.ndarray, _device) -> Survivors:
    """The zipped pairs among some that may pass."""
    from jaxalign.pairs.cpu import lcs_windows

    task = proofs.task
    m, n = task.job.query_lengths[pairs], task.job.target_lengths[pairs]
    wanted, counts = proofs.by_length(m, n, np.ones(len(pairs), bool))
    if proofs.lcs and wanted.any():
        few = pairs[wanted]
        alphabet = task.scoring.alphabet
        lcs = lcs_windows.lcs_zipped(task.queries, task.targets, few, few, alphabet)
        kept, more = proofs.by_subsequence(lcs, m[wanted], n[wanted], wanted[wanted])
        wanted[wanted], counts = kept, counts | more
    return Survivors(pairs[wanted], pairs[wanted], counts)
