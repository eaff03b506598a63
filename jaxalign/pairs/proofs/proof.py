"""Which pairs of a job may pass its filters, by proofs that need no alignment.

Three of them, the cheapest first: the ratio of the lengths, the shorter length as a
bound on the identical pairs, the longest common subsequence (LCS) as a bound on them
(``model.identity``). What two lengths prove is evaluated once for two lengths,
not for every pair.

The pairs of a job come in blocks. A GPU counts common subsequences of some queries with
many targets at once (``lcs_launches``), and says itself which are near the cut. On a
CPU a block has the targets that lie in lanes, and the host compares all with the least
count of their lengths.

The surviving pairs are aligned one by one, and the rows are the same as without the
proofs. Where most pairs survive, all are aligned: they share more work then.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from math import inf
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from jaxalign.errors import MemoryPlanError
from jaxalign.model.identity import (
    IdentityBound,
    denominator,
    identity_bound,
    relative_said,
    share,
    why_none,
)
from jaxalign.model.numbers import exact
from jaxalign.pairs import by_rows, engine
from jaxalign.pairs.pair_matrix import PairMatrix, contained
from jaxalign.pairs.plan import Piece, Plan, Task, zipped
from jaxalign.pairs.result import equal_texts
from jaxalign.runtime.devices import by_length, refuse_over
from jaxalign.runtime.pipeline import in_threads
from jaxalign.words.match_vectors import LCS_LANES, MAX_SPREAD, SHORT, SHORT_LANES
from jaxalign.words.rows import STEP_PAIRS, lcs_block

if TYPE_CHECKING:
    from jaxalign.pairs.plan import Run, Worker


# Cells of a job whose common subsequences are counted, unless an implementation is
# named: in NumPy, and from where on by what is compiled for it, of zipped pairs too
# (docs/logs/lcs-filter.md). A GPU aligns fewer pairs sooner than a CPU counts theirs.
LEAST_CELLS_BY_ROWS, LEAST_CELLS, LEAST_CELLS_ZIPPED = 10**6, 2 * 10**10, 10**10
LEAST_CELLS_OF_A_GPU = 2 * 10**11
MAX_QUERIES = 4096  # whose letters lie side by side on a CPU
ROWS = 256  # of a table of pairs, at a time
NEVER = 2**30  # identical pairs: more than any two sequences have

LengthTest = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass
class Survivors:
    """Pairs (i, j) of a task that may pass, how many others each proof excludes, and,
    where it is known, the most identical pairs that each can have."""

    i: np.ndarray
    j: np.ndarray
    excluded: dict[str, int] = field(default_factory=dict)
    max_identities: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class Proofs:
    """The proofs of a task: which of its pairs cannot pass, before any is aligned."""

    task: Task
    bound: IdentityBound | None
    lcs: bool  # whether common subsequences are counted …
    launches: Any = None  # … by launches on GPUs (``gpu.lcs_launches.LcsLaunches``)
    by_rows: bool = False  # … or in NumPy
    relative: bool = False  # whether highest scores bound relative scores

    @property
    def by_lengths(self) -> dict[str, LengthTest]:
        """The inequalities of lengths, and which pairs of lengths they leave."""
        filters, bound = self.task.proved, self.bound
        tests: dict[str, LengthTest] = {}
        if (ratio := filters.min_length_ratio) is not None:
            tests[f"lengths: min(m, n) / max(m, n) < {ratio}"] = self.like_lengths
        if bound is not None:
            # No more is identical than the shorter sequence has.
            tests[f"lengths: min(m, n) / {self.cut}"] = lambda m, n: bound.possible(
                np.minimum(m, n), m, n
            )
        return tests

    @property
    def cut(self) -> str:
        """Denominator and cut of the bound."""
        if self.bound is None:
            return ""
        least = self.task.proved.cut_name or exact(self.bound.cut)
        return f"{self.bound} < {least}"

    def like_lengths(self, m: np.ndarray, n: np.ndarray) -> np.ndarray:
        """Which pairs of lengths m and n have the ratio that the filters ask for."""
        same = self.task.equals_alike  # two empty texts may be: they are equal
        return self.task.proved.length_mask(m, n) | (same & (m == n))

    def may_pass(self, m: np.ndarray, n: np.ndarray) -> np.ndarray:
        """Which pairs of lengths m and n their lengths leave."""
        m, n = np.broadcast_arrays(m, n)
        return np.logical_and.reduce([test(m, n) for test in self.by_lengths.values()])

    @property
    def symmetric(self) -> bool:
        """Whether a pair passes with its two sequences swapped too."""
        return self.bound is None or self.bound.symmetric

    @cached_property
    def highest_scores(self) -> list[np.ndarray]:
        """Bounds on the scores of queries and of targets with any sequence."""
        scoring, sides = self.task.scoring, (self.task.queries, self.task.targets)
        return [scoring.highest_scores(x) / scoring.scale for x in sides]

    def may_reach(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Which pairs (i, j) their highest scores leave (docs/conventions.md)."""
        filters, (queries, targets) = self.task.proved, self.highest_scores
        of_queries, of_targets = self.task.self_scores
        below = denominator(filters.self_score, {}, of_queries[i], of_targets[j])
        highest = np.minimum(queries[i], targets[j])
        return share(highest, below, np) >= filters.min_relative_score

    def by_subsequence(
        self, lcs: np.ndarray, m: np.ndarray, n: np.ndarray
    ) -> np.ndarray:
        """Which pairs longest common subsequences leave."""
        assert self.bound is not None
        return self.bound.possible(lcs, m, n)

    def least_count(self, m: np.ndarray, n: np.ndarray) -> np.ndarray:
        """The least subsequences of pairs of lengths m and n that leave them."""
        assert self.bound is not None
        return self.bound.least_count(m, n)

    def excluded(self, survivors: int) -> dict[str, int]:
        """Count the pairs that each inequality excludes if ``survivors`` remain."""
        lcs = f"LCS: lcs / {self.cut}" if self.lcs else None
        if self.relative:
            filters = self.task.proved
            said = relative_said(filters.self_score, filters.min_relative_score or 0)
            lcs = f"highest score: {said.replace('>=', '<')}"
        return excluded_pairs(self.task.job, self.by_lengths, lcs, survivors)

    @cached_property
    def letters(self) -> list:
        """The queries in that order, some at a time, as an LCS reads them."""
        from jaxalign.words.match_vectors import query_letters

        task, size = self.task, MAX_QUERIES
        padding = task.scoring.alphabet.size
        starts = range(0, len(self.order), size)
        groups = [self.order[at : at + size] for at in starts]
        vectors = (query_letters(task.letters[0], x, padding) for x in groups)
        return list(vectors)

    @cached_property
    def order(self) -> np.ndarray:
        """The queries, longest first."""
        return by_length(self.task.job.query_lengths)


def proofs_of(task: Task) -> Proofs | None:
    """The proofs of the pairs of a task; None if nothing can be proved."""
    if not task.filtered or task.mesh is not None:
        return None
    bound = None
    if task.bounded:
        bound = identity_bound(task.proved, task.mode, task.free)
    filters = task.proved
    relative = filters.min_relative_score is not None and bound is None and task.bounded
    # No highest score is below the smaller self score.
    relative &= filters.self_score != "shorter"
    if bound is None and filters.min_length_ratio is None and not relative:
        return None
    if bound is None:
        return Proofs(task, bound, False, by_rows=relative, relative=relative)
    named, cells = task.implementation, task.job.total
    small = cells < (LEAST_CELLS_ZIPPED if task.kind == "zip" else LEAST_CELLS)
    rows_only = named == "rows" or by_rows.seems_small(task)
    if rows_only or (named is None and small and not by_rows.may_have_gpu()):
        return _by_rows(task, bound)
    from jaxalign.pairs import compiled

    launches = compiled.lcs_launches(task)
    if named is None and small and launches is None:
        return _by_rows(task, bound)
    lcs = bool(named) or not launches or cells >= LEAST_CELLS_OF_A_GPU
    return Proofs(task, bound, lcs, launches if lcs else None)


def _by_rows(task: Task, bound: IdentityBound) -> Proofs:
    """Proofs without a compiler. Zipped pairs have a target each, whose words take
    longer to make than they save."""
    lcs = task.kind != "zip" and task.job.total >= LEAST_CELLS_BY_ROWS
    return Proofs(task, bound, lcs, by_rows=True)


def excluded_pairs(
    job: PairMatrix, tests: dict[str, LengthTest], last: str | None, survivors: int
) -> dict[str, int]:
    """Count the pairs of a job that each proof is the first to exclude.

    tests : proofs by lengths, function (m, n) -> bool array: which pairs may pass
    last : the proof that excludes all others that are not kept; None: there is none
    survivors : pairs that no proof excludes
    """
    remaining, counts = job.pairs, {}
    tested: list[LengthTest] = []
    for name, test in tests.items():
        tested.append(test)
        after = _count(job, tested)
        counts[name], remaining = remaining - after, after
    return counts if last is None else counts | {last: remaining - survivors}


def _count(job: PairMatrix, tests: list[LengthTest]) -> int:
    """Pairs of a job whose lengths pass all tests."""

    def passes(m: np.ndarray, n: np.ndarray):
        return np.logical_and.reduce([test(m, n) for test in tests])

    m, n = job.query_lengths, job.target_lengths
    if job.kind == "zip":
        return int(np.count_nonzero(passes(m, n)))
    (rows, m_counts), (columns, n_counts) = map(_distinct, (m, n))
    table = passes(*np.broadcast_arrays(rows[:, None], columns[None]))
    # Float64 is exact here, and has a fast product.
    total = int(m_counts @ (table.astype(float) @ n_counts.astype(float)))
    if job.kind == "cross" or not total:
        return total
    # A query meets those after it alone, and itself or not.
    square = passes(*np.broadcast_arrays(rows[:, None], rows[None]))
    self_pairs = int(m_counts @ square.diagonal())
    if (square == square.T).all():
        every = int(m_counts @ (square.astype(float) @ m_counts.astype(float)))
        before = (every - self_pairs) // 2
    else:
        # Pairs (i, j), j < i, of some queries whose lengths pass
        before, of_query = 0, np.searchsorted(rows, m)
        for first in range(0, len(of_query), ROWS):
            i = of_query[first : first + ROWS]
            passing = square[np.ix_(i, of_query[: first + ROWS])]
            before += int(np.count_nonzero(np.tril(passing, first - 1)))
    return total - before - (0 if job.include_self else self_pairs)


def _distinct(lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(distinct lengths, how many are of each)."""
    counts = np.bincount(lengths, minlength=1)
    (distinct,) = np.nonzero(counts)
    return distinct, counts[distinct]


def classes_of(lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Classify falling lengths: (distinct lengths, index of each)."""
    starts = np.ones(len(lengths), bool)
    starts[1:] = lengths[1:] != lengths[:-1]
    return lengths[starts], np.cumsum(starts) - 1


def near(
    counts: np.ndarray, least: np.ndarray, queries: np.ndarray, targets: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Places (P,) of the queries and the targets whose count is not too low.

    counts : int16, int32 (queries, targets)
    least : integers (classes, classes), the least count of two lengths, or ``NEVER``
    queries, targets : integers (queries,), (targets,), the class of each
    """
    highest = np.iinfo(counts.dtype).max
    least = np.minimum(least, highest).astype(counts.dtype)
    wide = np.take(least, targets, axis=1)
    mask = counts >= np.take(wide, queries, axis=0)
    # ``numpy.flatnonzero`` of a mask that is true in few places: eight at a time.
    mask = mask.reshape(-1)
    whole = len(mask) // 8 * 8
    (eights,) = np.nonzero(mask[:whole].view(np.uint64))
    place = (eights[:, None] * 8 + np.arange(8)).reshape(-1)
    place = np.concatenate([place, np.arange(whole, len(mask))])
    return np.divmod(place[mask[place]], max(len(targets), 1))


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
        m, n = proofs.task.job.query_lengths, proofs.task.job.target_lengths
        like_sizes = np.lexsort((-m, -(n // WORD_BITS)))
        yield from (partial(_look_at_run, proofs, x) for _, x in _runs(like_sizes, n))
        return
    for block in _blocks_of_gpu(proofs) if proofs.launches else ():
        yield partial(_look_by_launch, proofs, block)
    for block in _blocks_of_cpu(proofs):
        yield partial(_look_at_block, proofs, block)


class _Sides(NamedTuple):
    """The two sides of a task, longest first."""

    queries: np.ndarray
    shared: int  # queries, the first, that are targets too
    other_targets: np.ndarray
    long: int  # queries that a kernel cannot take …
    beyond: int  # … and other targets


def _sides(proofs: Proofs) -> _Sides:
    job, queries, launches = proofs.task.job, proofs.order, proofs.launches
    shared = len(queries) if proofs.task.kind == "all" else 0
    other_targets = by_length(job.target_lengths[shared:]) + shared
    if launches is None:
        return _Sides(queries, shared, other_targets, len(queries), len(other_targets))
    # A kernel has the shorter sequence in registers.
    long = int(np.count_nonzero(job.query_lengths > launches.longest))
    beyond = int(np.count_nonzero(job.target_lengths[other_targets] > launches.longest))
    return _Sides(queries, shared, other_targets, long, beyond)


def _blocks_of_gpu(proofs: Proofs) -> Iterator[LaunchBlock]:
    """The pairs of a task, each once, but those of two long sequences."""
    job, launches = proofs.task.job, proofs.launches
    queries, shared, other_targets, long, beyond = _sides(proofs)
    count, size = launches.query_count, launches.targets
    for places in _even_pieces(np.arange(long, len(queries)), count):
        rows = queries[places]
        for columns in _pieces(queries[: min(shared, int(places[-1]) + 1)], size):
            met = np.clip(places + bool(job.include_self), 0, len(columns))
            yield LaunchBlock(rows, columns, met)
            places = places - len(columns)
        for columns in _pieces(other_targets, size):
            yield LaunchBlock(rows, columns, np.full(len(rows), len(columns)))
    for rows in _pieces(other_targets[beyond:], count):
        for columns in _pieces(queries[:long], size):
            yield LaunchBlock(rows, columns, np.full(len(rows), len(columns)), True)


def _blocks_of_cpu(proofs: Proofs) -> Iterator[TargetBlock]:
    """The pairs of a task, each once; where there is a GPU, of two long sequences."""
    lengths = proofs.task.job.target_lengths
    queries, shared, other_targets, long, beyond = _sides(proofs)
    for first in range(0, long, MAX_QUERIES):
        last = min(first + MAX_QUERIES, long)
        least = 1
        if proofs.by_rows:  # calls of NumPy for few pairs take longer than these
            least = min(STEP_PAIRS // max(last - first, 1), MAX_TARGETS_BY_ROWS)
        for at, targets in _runs(queries[: min(shared, last)], lengths, least):
            yield TargetBlock(targets, max(first, at), last, at)
        for _, targets in _runs(other_targets[:beyond], lengths, least):
            yield TargetBlock(targets, first, last)


def _even_pieces(indices: np.ndarray, size: int) -> list[np.ndarray]:
    """The rows of launches of up to ``size``, as many of each."""
    return np.array_split(indices, -(-len(indices) // size)) if len(indices) else []


def _pieces(indices: np.ndarray, size: int) -> Iterator[np.ndarray]:
    """Rows or columns of launches."""
    for at in range(0, len(indices), size):
        yield indices[at : at + size]


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
    if not proofs.relative and (block.place is None or proofs.symmetric):
        return _look_by_length_classes(proofs, block)
    job, t = proofs.task.job, block.targets[None]
    q = proofs.order[block.first : block.last, None]
    mask = np.arange(t.size)[None] < _met(job, block)[:, None]
    i, j = np.broadcast_arrays(q, t)
    if block.place is not None:
        i, j = np.minimum(q, t), np.maximum(q, t)
    m, n = job.query_lengths[i], job.target_lengths[j]
    mask &= proofs.may_pass(m, n) if proofs.by_lengths else True
    if proofs.relative:
        mask &= proofs.may_reach(i, j)
    rows, identities = np.asarray(mask.any(axis=1)), np.minimum(m, n)
    if _counted_on_cpu(proofs) and rows.any():
        reach = _reach(rows)
        identities[reach] = _lcs_on_cpu(proofs, block, reach)
        passing = proofs.by_subsequence(identities[reach], m[reach], n[reach])
        passing = passing & mask[reach]
        mask = np.zeros_like(mask)
        mask[reach] = passing
    return i[mask], j[mask], identities[mask]


def _counted_on_cpu(proofs: Proofs) -> bool:
    """Whether subsequences of blocks are counted. A GPU aligns two sequences that are
    too long for its kernel sooner than a CPU counts theirs."""
    return proofs.lcs and proofs.launches is None


def _look_by_length_classes(proofs: Proofs, block: TargetBlock) -> Pairs:
    """Find the pairs of a block that may pass, if the order of two sequences does not
    matter."""
    job, q = proofs.task.job, proofs.order[block.first : block.last]
    m, of_query = classes_of(job.query_lengths[q])
    n, of_target = classes_of(job.target_lengths[block.targets])
    may = proofs.may_pass(m[:, None], n[None])
    rows = np.asarray(may.any(axis=1))[of_query]
    if not rows.any():
        return q[:0], q[:0], q[:0]
    reach, least = _reach(rows), np.zeros(may.shape, np.int64)
    if _counted_on_cpu(proofs):
        identities = _lcs_on_cpu(proofs, block, reach)
        least = proofs.least_count(m[:, None], n[None])
    else:
        identities = np.minimum(m[of_query[reach], None], n[None, of_target])
    least = np.where(may, least, NEVER)
    rows, columns = near(identities, least, of_query[reach], of_target)
    met = columns < _met(job, block)[rows + reach.start]
    rows, columns = rows[met], columns[met]
    i, j = q[rows + reach.start], block.targets[columns]
    if block.place is not None:
        i, j = np.minimum(i, j), np.maximum(i, j)
    return i, j, identities[rows, columns]


def _look_by_launch(proofs: Proofs, block: LaunchBlock, device: Any) -> Pairs:
    """Find the pairs of a block that may pass on a GPU; the host compares one pair of
    each two lengths."""
    job, launches = proofs.task.job, proofs.launches
    of_rows, of_columns = job.query_lengths, job.target_lengths
    if block.swapped:
        of_rows, of_columns = of_columns, of_rows
    # The rows and columns whose lengths leave any pair
    m, of_row = classes_of(of_rows[block.rows])
    n, of_column = classes_of(of_columns[block.columns])
    sides = m[:, None], n[None]
    may = proofs.may_pass(*(sides[::-1] if block.swapped else sides))
    if not may.any():
        return block.rows[:0], block.columns[:0], block.columns[:0]
    reach = _reach(np.asarray(may.any(axis=1))[of_row])
    columns_reach = _reach(np.asarray(may.any(axis=0))[of_column])
    rows, columns = block.rows[reach], block.columns[columns_reach]
    met = np.clip(block.met[reach] - columns_reach.start, 0, len(columns))
    passed = launches.candidates(
        rows, columns, met, proofs.bound, device, block.swapped
    )
    i, j = rows[passed.row], columns[passed.column]
    if block.swapped:
        i, j = j, i
    elif proofs.task.kind == "all":
        i, j = np.minimum(i, j), np.maximum(i, j)
    m, n = job.query_lengths[i], job.target_lengths[j]
    # No subsequence is longer than a sequence: of lengths the ratio alone is left.
    passing = proofs.by_subsequence(passed.value, m, n) & proofs.like_lengths(m, n)
    return i[passing], j[passing], passed.value[passing]


def _met(job: "PairMatrix", block: TargetBlock) -> np.ndarray:
    """Count the targets, from the first, that each query of a block meets."""
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
        selection = proofs.order[block.first : block.last][rows]
        return lcs_block(task.letters[0], selection, task.letters[1], targets, alphabet)
    from jaxalign.words import cpu

    group = block.first // MAX_QUERIES
    first = block.first - group * MAX_QUERIES
    selection = slice(first + rows.start, first + rows.stop)
    letters = proofs.letters[group]
    return cpu.lcs_block(letters, selection, task.letters[1], targets, alphabet)


def _look_at_run(proofs: Proofs, pairs: np.ndarray, _device: object) -> Pairs:
    """The zipped pairs among some that may pass."""
    from jaxalign.words import cpu

    task = proofs.task
    m, n = task.job.query_lengths[pairs], task.job.target_lengths[pairs]
    mask, identities = proofs.may_pass(m, n), np.minimum(m, n)
    if proofs.relative:
        mask &= proofs.may_reach(pairs, pairs)
    if proofs.lcs and mask.any():
        candidates = pairs[mask]
        alphabet = task.scoring.alphabet
        lcs = cpu.lcs_zipped(*task.letters, candidates, candidates, alphabet)
        identities[mask] = lcs
        mask[mask] = proofs.by_subsequence(lcs, m[mask], n[mask])
    return pairs[mask], pairs[mask], identities[mask]


def block_size(lengths: np.ndarray, at: int) -> int:
    """Count the targets, longest first, that are lanes of an LCS from place ``at`` on:
    fewer where later ones are much shorter than the first."""
    narrow, wide = LCS_LANES
    if lengths[at] <= SHORT:
        return SHORT_LANES
    last = lengths[min(at + wide, len(lengths)) - 1]
    return wide if lengths[at] <= MAX_SPREAD * last else narrow


# Cells of the pairs left, of all: beyond, a sweep of all takes less than the pairs left
# each in a lane of its own (docs/logs/lcs-filter.md)
MAX_LEFT, MAX_LEFT_OF_A_GPU = 0.25, 0.15
LAUNCHES_OF_A_DEVICE = 3  # one runs, one waits, one is with the host

Places = SimpleQueue  # devices that take another launch, the longest idle first


def places_on_gpus(task: Task) -> Places:
    """The places of all launches of a task, and of parts of it that are looked at side
    by side: a device that is done with one launch takes the next of any part."""
    devices = task.devices or (None,)
    places: Places = SimpleQueue()
    for _ in range(LAUNCHES_OF_A_DEVICE):
        for device in devices:
            places.put(device)
    return places


def bound_figures(task: Task) -> dict:
    """The bound of the filters, for a plan; nothing where there is no cut."""
    if task.proved.min_identity is None:
        return {}
    if not task.bounded:
        return {"bound": "none: filter=False, every pair is aligned"}
    if task.mesh is not None:
        return {"bound": "none on a mesh: every pair is aligned"}
    bound = identity_bound(task.proved, task.mode, task.free)
    if bound is None:
        return {"bound": f"none: {why_none(task.proved)}; every pair is aligned"}
    return {"bound": f"identity <= lcs / {bound}"}


def look(task: Task, places: Places | None = None) -> Survivors | None:
    """Find the pairs of a task that may pass; None if all are aligned, because nothing
    is proved or most pass.

    places : where launches run, of several tasks that are looked at side by side
    """
    proofs = proofs_of(task)
    if proofs is None:
        return None
    limit = MAX_LEFT if proofs.launches is None else MAX_LEFT_OF_A_GPU
    survivors = find(proofs, places, limit)
    return None if survivors is None else worthwhile(task, survivors, limit)


def worthwhile(
    task: Task, survivors: Survivors, limit: float = MAX_LEFT
) -> Survivors | None:
    """The pairs that may pass; None where they have so many of all cells, beyond
    ``limit``, that all pairs are aligned sooner."""
    if cells_of(task, survivors) > limit * task.job.cells:
        return None
    return survivors if any(survivors.excluded.values()) else None


def on_gpu(task: Task, prepare: bool = False) -> bool:
    """Whether GPUs look at the pairs of a task; with ``prepare`` what they run is
    compiled from now on."""
    proofs = proofs_of(task)
    launches = None if proofs is None else proofs.launches
    if launches is not None and prepare:
        launches.prepare()
    return launches is not None


def look_at_parts(
    task: Task, parts: list[Task], starts: list[int], places: Places | None = None
) -> list:
    """``look`` at consecutive parts of a task together.

    task : of the rows of all these parts
    parts : the tasks of the rows of each part
    starts : the first query of each part, counted from the first of all
    """
    survivors = look(task, places)
    if survivors is None:
        return [None] * len(parts)
    ends = np.searchsorted(survivors.i, [*starts[1:], task.shape[0]])
    each, first = [], 0
    for part, start, last in zip(parts, starts, ends, strict=True):
        proofs = proofs_of(part)
        assert proofs is not None
        of_part = Survivors(survivors.i[first:last], survivors.j[first:last])
        sides = shifted(task, of_part, -start)
        each.append(Survivors(*sides, proofs.excluded(int(last) - first)))
        first = int(last)
    return each


def shifted(
    task: Task, survivors: Survivors, first: int
) -> tuple[np.ndarray, np.ndarray]:
    """Number pairs of a part, (i, j), as in a whole whose query ``first`` begins it;
    the targets of a set shift, too."""
    return (
        survivors.i + first,
        survivors.j + first if task.kind == "all" else survivors.j,
    )


def cells_of(task: Task, survivors: Survivors) -> int:
    """Cells of the pairs that may pass."""
    m, n = task.job.query_lengths[survivors.i], task.job.target_lengths[survivors.j]
    return int((m * n).sum())


def plan_survivors(task: Task, whole: Plan | None = None) -> Plan:
    """Plan the pairs of a task that may pass its filters.

    whole : the plan of all pairs, where that is known
    """
    survivors = look(task) if task.filtered else None
    if survivors is not None:
        return plan_of_survivors(task, survivors)
    whole = engine.plan(task) if whole is None else whole
    if not task.filtered:
        return whole
    return replace(whole, figures=whole.figures | figures_of(task, None))


def plan_of_survivors(task: Task, survivors: Survivors) -> Plan:
    """Plan a task some of whose pairs may pass."""
    plan = engine.plan(zipped(task, survivors.i, survivors.j))
    skipped_cells = task.job.cells - cells_of(task, survivors)

    def report_skipped(_run: "Run", worker: "Worker", piece: Piece) -> None:
        """Progress: the cells of the pairs that are not aligned are done."""
        worker.report_progress(piece.content)

    skipped = Piece(plan.task, skipped_cells, 0, report_skipped)
    return Plan(
        task, (skipped, *plan.pieces), plan.figures | figures_of(task, survivors)
    )


def figures_of(task: Task, survivors: Survivors | None) -> dict:
    """Counts of the pairs of a task, aligned or not, for its result.

    survivors : None where all pairs are aligned
    """
    figures = {"pairs": task.job.pairs, "cells": task.job.cells}
    filters = task.proved
    cuts = filters.min_identity, filters.min_length_ratio, filters.min_relative_score
    if cuts == (None,) * 3 and not task.scores_first:
        return figures
    if survivors is None:
        excluded = {}
        figures |= {f"aligned_{name}": count for name, count in figures.items()}
    else:
        excluded, cells = survivors.excluded, cells_of(task, survivors)
        figures |= {"aligned_pairs": len(survivors.i), "aligned_cells": cells}
    return figures | {"excluded": excluded} | bound_figures(task)


def find(
    proofs: Proofs, places: Places | None = None, limit: float = inf
) -> Survivors | None:
    """Find the pairs that may pass, in the order of rows, and count those that
    cannot; None, as soon as that is known, where they have more than a share ``limit``
    of all cells."""
    task, threads = proofs.task, proofs.task.threads
    if proofs.launches is not None:
        places = places or places_on_gpus(task)
        threads = min(threads, LAUNCHES_OF_A_DEVICE * max(len(task.devices), 1))
    else:
        places = None
        if proofs.by_rows:  # calls of NumPy are too short: they would wait
            threads = 1

    # Cells that the looks so far leave, at least: threads may lose what others add.
    left, room = [0], limit * task.job.cells
    none = np.zeros(0, np.int64)

    def look_on_one(look: Callable):
        if left[0] > room:
            return none, none, none
        device = None if places is None else places.get()
        try:
            pairs = look(device)
        finally:
            if places is not None:
                places.put(device)
        if limit < inf:
            left[0] += cells_of(task, Survivors(*pairs[:2]))
        return pairs

    results = in_threads(look_on_one, looks(proofs), threads)
    if left[0] > room:
        return None
    sides = zip((none, none, none), *results, strict=True)
    i, j, identities = (np.concatenate(side) for side in sides)
    rows = task.job.position(i, j)
    order = np.argsort(rows, kind="stable")
    # No letter that an LCS lacks tells them apart, nor does a state.
    if task.equals_alike and (proofs.lcs or proofs.relative):
        equal = equal_texts(task)
        equal_rows = task.job.position(*equal)
        added = ~contained(equal_rows, rows[order])
        if added.any():
            sides = zip((i, j), equal, strict=True)
            i, j = (np.concatenate([x, y[added]]) for x, y in sides)
            lengths = task.job.query_lengths[equal[0][added]]
            identities = np.concatenate([identities, lengths])
            order = np.argsort(np.append(rows, equal_rows[added]), kind="stable")
    return Survivors(i[order], j[order], proofs.excluded(len(order)), identities[order])


# ------------------------------------------------------------------------------
# A long pair that the budget cannot hold is refused before others are aligned.

PAIR_BYTES = 2**20  # beside a byte a cell, with which any pair fits
Planned = TypeVar("Planned")


def with_room(
    task: Task, reserved: int | None = None, names: Callable[[int], str] | None = None
) -> Task:
    """Give a task only as many threads as have room for its longest pair, of those that
    lengths do not exclude.

    reserved : bytes of results in memory, where they are not those of its pairs
    names : function from the number of a sequence to its name, where the task has none

    Raises MemoryPlanError: the budget has no room for the pair, which is named.
    """
    pair, rows = longest_pair(task), task.result_bytes if reserved is None else reserved
    if pair is None or (reserved is None and rows > task.budget and not task.filtered):
        return task  # whose result is too large in any case
    size = int(task.queries.lengths[pair[0]]), int(task.targets.lengths[pair[1]])
    single = zipped(task, *(np.array([side]) for side in pair))
    rows = single.result_bytes if task.filtered and reserved is None else rows
    single = replace(single, reserved=rows, top=None)
    if size[0] * size[1] + PAIR_BYTES <= single.window_budget:
        return task
    least = max(len(task.devices), 1)
    while True:
        try:
            engine.plan(single)
            return replace(task, threads=single.threads)
        except MemoryPlanError as error:
            if single.threads > least:
                single = replace(single, threads=max(single.threads // 2, least))
                continue
            if error.needed is None:
                raise
            needed = error.needed
        # Rows in memory take up to half of a larger budget, too.
        needed = needed if reserved is None else max(needed, 2 * (needed - rows))
        sides = zip((task.queries, task.targets), pair, size, strict=True)
        said = [
            f"{x.names[k] if x.names else names(k) if names else k} ({n:,} letters)"
            for x, k, n in sides
        ]
        refuse_over(needed, task.budget, " with ".join(said))
        return task


def planned(
    task: Task, plan: Callable[[Task], Planned], reserved: int | None = None
) -> Planned:
    """Plan a task by a function, with as many threads as its longest pair has room for;
    a refusal names that pair where it is too long."""
    pair = ""
    try:
        task = with_room(task, reserved)
    except MemoryPlanError as error:
        pair = f"; the longest pair is {str(error).split(':')[0]}"
        task = replace(task, threads=max(len(task.devices), 1))
    try:
        return plan(task)
    except MemoryPlanError as error:
        raise MemoryPlanError(f"{error}{pair}") from error


def longest_pair(task: Task) -> tuple[int, int] | None:
    """The pair of a task with most cells, of those that lengths leave; None: there is
    none."""
    m, n = task.queries.lengths, task.targets.lengths
    bound = identity_bound(task.proved, task.mode, task.free)
    proofs = Proofs(task, bound, lcs=False)
    if not task.job.pairs:
        return None
    if task.kind == "zip":
        place = int(np.argmax(np.where(proofs.may_pass(m, n), m * n, -1)))
        return (place, place) if proofs.may_pass(m[place], n[place]) else None
    one_set, best, sizes = task.kind == "all" and len(m) == len(n), -1, (0, 0)
    counts = dict(zip(*np.unique(m, return_counts=True), strict=True))
    partners = np.unique(n)[::-1]
    for length in sorted(counts, reverse=True):
        if length * partners[0] <= best:
            break
        passing = np.broadcast_to(proofs.may_pass(length, partners), partners.shape)
        if one_set and counts[length] == 1 and not task.include_self:
            passing = passing & (partners != length)
        if passing.any() and length * (partner := partners[passing.argmax()]) > best:
            best, sizes = int(length * partner), (length, partner)
    if best < 0:
        return None
    ends = np.flatnonzero(m == sizes[0])[0], np.flatnonzero(n == sizes[1])[-1]
    i, j = sorted(map(int, ends)) if one_set else map(int, ends)
    return i, j
