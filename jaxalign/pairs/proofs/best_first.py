"""Targets of a block that may be nearer to a query than the nearest one known so far.

No alignment has more identical pairs than the longest common subsequence (LCS), so
``LCS / denominator`` is the most that the identity of a pair can be. What is below the
*bar* of its query, the best identity known for it, need not be aligned; and the pairs
with the largest bounds are aligned first, because they raise the bar most.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from jaxalign.model.identity import IdentityBound, share
from jaxalign.pairs.by_rows import seems_small
from jaxalign.pairs.plan import Task
from jaxalign.pairs.proofs import proof
from jaxalign.pairs.proofs.proof import block_size
from jaxalign.runtime.devices import at_once, by_length
from jaxalign.runtime.pipeline import in_threads
from jaxalign.words.rows import lcs_block

ROWS_AT_ONCE = 16  # queries whose bounds a thread compares with their bars
NO_BAR = -1.0  # of a query of which nothing is known
TIE_BREAK = 1e-6  # of an identity: no result depends on it
ALIGNED = -1  # in place of the count of a pair that has been aligned
PAIR_BYTES_BY_ROWS = 40  # of a pair whose subsequence is counted in NumPy


@dataclass(frozen=True, eq=False)
class BoundTable:
    """Most identical pairs that each query can have with each target of a block.

    task : Task, of kind ``cross``; its targets are the block
    order : int64 (targets,), the targets, longest first: the columns of ``counts``
    counts : int16 or int32 (queries, targets), ``ALIGNED`` once a pair has been
    kind : what identical pairs are divided by
    distinct, repeats : int64 (classes,), the lengths of targets, and how many of each
        there are
    """

    task: Task
    order: np.ndarray
    counts: np.ndarray
    kind: str
    distinct: np.ndarray
    repeats: np.ndarray

    def least(self, queries: slice) -> np.ndarray:
        """Denominators of some queries, float64 (queries, classes), of each length of a
        target one; 0 where a pair is no candidate."""
        m = self.task.queries.lengths[queries, None]
        i, j = np.broadcast_arrays(m, self.distinct[None])
        least = np.array(IdentityBound(self.kind, 0.0).least(i, j), np.float64)
        least[~self.task.filters.length_mask(i, j)] = 0
        return least


@dataclass(frozen=True, eq=False)
class Candidates:
    """Pairs to be aligned next, and how many others may pass.

    query, column : int64 (pairs,), column of ``BoundTable.counts``
    remaining : int64 (queries,), other pairs of each query whose bound is not below its
        bar
    """

    query: np.ndarray
    column: np.ndarray
    remaining: np.ndarray


def bound_table(task: Task, kind: str) -> BoundTable:
    """The bounds of all pairs of a task.

    task : Task, of kind ``cross``. Its filters may have a ``min_length_ratio``.
    kind : {"longer", "shorter", "mean"}, what identical pairs are divided by
    """
    m, n = task.queries.lengths, task.targets.lengths
    order = by_length(n)
    distinct, of_target = proof.classes_of(n[order])
    repeats = np.bincount(of_target, minlength=len(distinct))
    # Bounds by lengths, and by LCS where that pays: all queries with blocks of targets
    falling = n[order]
    longest = min(int(m.max(initial=0)), int(n.max(initial=0)))
    dtype = np.int16 if longest < np.iinfo(np.int16).max else np.int32
    shorter = (np.minimum(x, longest).astype(dtype) for x in (m, falling))
    counts = np.minimum.outer(*shorter)
    if task.job.total >= proof.LEAST_CELLS_BY_ROWS:
        starts = [0]
        while starts[-1] < len(order):
            starts.append(starts[-1] + block_size(falling, starts[-1]))
        by_rows = seems_small(task) or task.job.total < proof.LEAST_CELLS
        lcs = _by_rows(task) if by_rows else _compiled(task)

        def fill(block: int) -> None:
            columns = slice(starts[block], starts[block + 1])
            lcs(order[columns], counts[:, columns])

        in_threads(fill, range(len(starts) - 1), 1 if by_rows else task.threads)
    return BoundTable(task, order, counts, kind, distinct, repeats)


def _by_rows(task: Task) -> Callable[[np.ndarray, np.ndarray], None]:
    rows = by_length(task.queries.lengths)

    def count(targets: np.ndarray, out: np.ndarray) -> None:
        step = at_once(len(rows), PAIR_BYTES_BY_ROWS * len(targets), task.budget)
        for at in range(0, len(rows), step):
            group = rows[at : at + step]
            sides = task.letters[0], group, task.letters[1], targets
            out[group] = lcs_block(*sides, task.scoring.alphabet)

    return count


def _compiled(task: Task) -> Callable[[np.ndarray, np.ndarray], None]:
    from jaxalign.words import cpu
    from jaxalign.words.match_vectors import query_letters

    rows, limit = by_length(task.queries.lengths), proof.MAX_QUERIES
    alphabet, groups = task.scoring.alphabet, []
    for at in range(0, len(rows), limit):
        group = rows[at : at + limit]
        groups.append((group, query_letters(task.letters[0], group, alphabet.size)))

    def count(targets: np.ndarray, out: np.ndarray) -> None:
        for group, letters in groups:
            sides = letters, slice(0, len(group)), task.letters[1], targets
            out[group] = cpu.lcs_block(*sides, alphabet)

    return count


def candidates(
    table: BoundTable, bars: np.ndarray, places: np.ndarray, limit: int
) -> Candidates:
    """Select the best candidates of each query, at most ``limit``.

    bars : float64 (queries,), the best identities known, ``NO_BAR`` for none
    places : int64 (queries,), targets of the block before this one may have the same
        identity and be nearer, because they come first; 0 where none of the block is
    limit : int
    """
    count = len(bars)

    def candidates_of(first: int) -> tuple[np.ndarray, ...]:
        """The fields of ``Candidates`` for some queries."""
        queries = slice(first, min(first + ROWS_AT_ONCE, count))
        # The fewest identical pairs above a bar, and at it; the same where no number is
        # at it, ``NEVER`` where a pair is no candidate. The product is rounded, and so
        # is the quotient: either way by one at most.
        bar, least = bars[queries, None], table.least(queries)
        equal = np.ceil(bar * least).astype(np.int64)
        equal -= share(equal - 1, least, np) >= bar
        equal += share(equal, least, np) < bar
        equal = np.where(bar < 0, 0, equal)
        higher = equal + (share(equal, least, np) == bar)
        higher, equal = (np.where(least <= 0, proof.NEVER, x) for x in (higher, equal))
        rows, columns, remaining = [], [], []
        for row, query in enumerate(range(queries.start, queries.stop)):
            sides = higher[row], equal[row], int(places[query])
            selection = _reaching(table, *sides, query)
            remaining.append(max(len(selection) - limit, 0))
            if remaining[-1]:
                below = np.repeat(least[row], table.repeats)[selection]
                bounds = table.counts[query, selection] / below
                selection = _largest(table, bounds, selection, limit)
            rows.append(np.full(len(selection), query, np.int64))
            columns.append(selection)
        counts = np.array(remaining, np.int64)
        return np.concatenate(rows), np.concatenate(columns), counts

    results = in_threads(
        candidates_of, range(0, count, ROWS_AT_ONCE), table.task.threads
    )
    none = np.zeros(0, np.int64)
    sides = zip((none, none, none), *results, strict=True)
    return Candidates(*(np.concatenate(side) for side in sides))


def _reaching(
    table: BoundTable, higher: np.ndarray, equal: np.ndarray, place: int, query: int
) -> np.ndarray:
    """Columns whose bound is above the bar of a query, or at it and before a place."""
    counts = table.counts[query]
    largest = np.iinfo(counts.dtype).max
    least = np.minimum(higher, largest).astype(counts.dtype)
    mask = counts >= np.repeat(least, table.repeats)
    if place > 0:
        least = np.minimum(equal, largest).astype(counts.dtype)
        ties = (counts == np.repeat(least, table.repeats)) & (table.order < place)
        mask |= ties & np.repeat(equal < higher, table.repeats)
    return np.flatnonzero(mask)


def _largest(
    table: BoundTable, bounds: np.ndarray, columns: np.ndarray, limit: int
) -> np.ndarray:
    """Select the columns with the largest bounds."""
    # Among about equal ones the first of the block, since it would win a tie.
    rank = TIE_BREAK * table.order[columns] / len(table.order) - bounds
    return np.sort(columns[np.argpartition(rank, limit - 1)[:limit]])
