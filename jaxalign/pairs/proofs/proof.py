"""Which pairs of a job may pass its filters, by proofs that need no alignment.

Three of them, the cheapest first: the ratio of the lengths, the shorter length as a
bound on the identical pairs, the longest common subsequence (LCS) as a bound on them
(``model.identity_bounds``). What two lengths prove is evaluated once for two lengths,
not for every pair.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np

from jaxalign.model.identity_bounds import IdentityBound, identity_bound
from jaxalign.pairs import small_jobs
from jaxalign.pairs.plan import Task
from jaxalign.pairs.windows import PairMatrix
from jaxalign.runtime.lengths import by_length

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
    most: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class Proofs:
    """The proofs of a task: which of its pairs cannot pass, before any is aligned."""

    task: Task
    bound: IdentityBound | None
    lcs: bool  # whether common subsequences are counted …
    launches: Any = None  # … by launches on GPUs (``gpu.lcs_launches.LcsLaunches``)
    by_rows: bool = False  # … or in NumPy

    @property
    def by_lengths(self) -> dict[str, LengthTest]:
        """The inequalities of lengths, and which pairs of lengths they leave."""
        filters, bound = self.task.filters, self.bound
        tests: dict[str, LengthTest] = {}
        if filters.min_length_ratio is not None:
            ratio = filters.min_length_ratio
            tests[f"lengths: min(m, n) / max(m, n) < {ratio}"] = filters.length_mask
        if bound is not None:
            tests[f"lengths: min(m, n) / {self.cut}"] = partial(_by_shorter, bound)
        return tests

    @property
    def cut(self) -> str:
        """Denominator and cut of the bound."""
        if self.bound is None:
            return ""
        least = self.task.filters.cut_name or f"{self.bound.cut:.15g}"
        return f"{self.bound} < {least}"

    def may_pass(self, m: np.ndarray, n: np.ndarray) -> np.ndarray:
        """Which pairs of lengths m and n their lengths leave."""
        m, n = np.broadcast_arrays(m, n)
        return np.logical_and.reduce([test(m, n) for test in self.by_lengths.values()])

    @property
    def symmetric(self) -> bool:
        """Whether a pair passes with its two sequences swapped too."""
        return self.bound is None or self.bound.symmetric

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
        """How many pairs of the task each inequality excludes, where ``survivors``
        are left."""
        lcs = f"LCS: lcs / {self.cut}" if self.lcs else None
        return excluded_pairs(self.task.job, self.by_lengths, lcs, survivors)

    @cached_property
    def letters(self) -> list:
        """The queries in that order, some at a time, as an LCS reads them."""
        from jaxalign.bits.match_words import query_letters

        task, most = self.task, MAX_QUERIES
        padding = task.scoring.alphabet.size
        starts = range(0, len(self.order), most)
        groups = [self.order[at : at + most] for at in starts]
        some = (query_letters(task.queries, x, padding) for x in groups)
        return list(some)

    @cached_property
    def order(self) -> np.ndarray:
        """The queries, longest first."""
        return by_length(self.task.job.query_lengths)


def _by_shorter(bound: IdentityBound, m: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Which pairs may pass, as no more is identical than the shorter sequence has."""
    return bound.possible(np.minimum(m, n), m, n)


def proofs_of(task: Task) -> Proofs | None:
    """The proofs of the pairs of a task; None if nothing can be proved."""
    if not task.filtered or task.mesh is not None:
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


def excluded_pairs(
    job: PairMatrix, tests: dict[str, LengthTest], last: str | None, survivors: int
) -> dict[str, int]:
    """How many pairs of a job each proof is the first to exclude.

    Parameters
    ----------
    tests : proofs by lengths, function (m, n) -> bool array: which pairs may pass
    last : the proof that excludes all others that are not kept; None: there is none
    survivors : pairs that no proof excludes
    """
    left, counts = job.pairs, {}
    tested: list[LengthTest] = []
    for name, test in tests.items():
        tested.append(test)
        after = _count(job, tested)
        counts[name], left = left - after, after
    return counts if last is None else counts | {last: left - survivors}


def _count(job: PairMatrix, tests: list[LengthTest]) -> int:
    """Pairs of a job whose lengths pass all tests."""

    def passes(m: np.ndarray, n: np.ndarray):
        return np.logical_and.reduce([test(m, n) for test in tests])

    m, n = job.query_lengths, job.target_lengths
    if job.kind == "zip":
        return int(np.count_nonzero(passes(m, n)))
    (rows, of_query, m_counts), (columns, _, n_counts) = map(_distinct, (m, n))
    table = passes(*np.broadcast_arrays(rows[:, None], columns[None]))
    # Float64 is exact here, and has a fast product.
    total = int(m_counts @ (table.astype(float) @ n_counts.astype(float)))
    if job.kind == "cross" or not total:
        return total
    # A query meets those after it alone, and itself or not.
    square = passes(*np.broadcast_arrays(rows[:, None], rows[None]))
    own = int(m_counts @ square.diagonal())
    if (square == square.T).all():
        every = int(m_counts @ (square.astype(float) @ m_counts.astype(float)))
        before = (every - own) // 2
    else:
        before = _before(square, of_query)
    return total - before - (0 if job.include_self else own)


def _before(square: np.ndarray, of_query: np.ndarray) -> int:
    """Pairs (i, j), j < i, of some queries whose lengths pass.

    square : of two of their lengths; of_query : which length each has
    """
    count = 0
    for first in range(0, len(of_query), ROWS):
        i = of_query[first : first + ROWS]
        some = square[np.ix_(i, of_query[: first + ROWS])]
        count += int(np.count_nonzero(np.tril(some, first - 1)))
    return count


def _distinct(lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(distinct lengths, which of them each is, how many are)."""
    if not len(lengths):
        none = np.zeros(0, np.int64)
        return none, none, none
    counts = np.bincount(lengths)
    (distinct,) = np.nonzero(counts)
    which = np.zeros(len(counts), np.int64)
    which[distinct] = np.arange(len(distinct))
    return distinct, which[lengths], counts[distinct]


def classes_of(lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(distinct lengths, which of them each is) of lengths that fall."""
    new = np.ones(len(lengths), bool)
    new[1:] = lengths[1:] != lengths[:-1]
    return lengths[new], np.cumsum(new) - 1


def near(
    counts: np.ndarray, least: np.ndarray, queries: np.ndarray, targets: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Places (P,) of the queries and the targets whose count is not too low.

    Parameters
    ----------
    counts : int16, int32 (queries, targets)
    least : integers (classes, classes)
        The least count of two lengths, or ``NEVER``.
    queries, targets : integers (queries,), (targets,)
        The class of each.
    """
    highest = np.iinfo(counts.dtype).max
    least = np.minimum(least, highest).astype(counts.dtype)
    wide = np.take(least, targets, axis=1)
    mask = counts >= np.take(wide, queries, axis=0)
    return np.divmod(_nonzero(mask.reshape(-1)), max(len(targets), 1))


def _nonzero(mask: np.ndarray) -> np.ndarray:
    """``numpy.flatnonzero`` of a mask that is true in few places: eight at a time."""
    whole = len(mask) // 8 * 8
    (eights,) = np.nonzero(mask[:whole].view(np.uint64))
    place = (eights[:, None] * 8 + np.arange(8)).reshape(-1)
    place = np.concatenate([place, np.arange(whole, len(mask))])
    return place[mask[place]]
