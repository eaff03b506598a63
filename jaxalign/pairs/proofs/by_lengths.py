"""Proofs by two lengths: evaluated once for two lengths, not for every pair."""

from collections.abc import Callable

import numpy as np

from jaxalign.pairs.windows import PairMatrix

ROWS = 256  # of a table of pairs, at a time
NEVER = 2**30  # identical pairs: more than any two sequences have

LengthTest = Callable[[np.ndarray, np.ndarray], np.ndarray]


def excluded_pairs(
    job: PairMatrix, tests: dict[str, LengthTest], last: str | None, survivors: int
) -> dict[str, int]:
    """How many pairs of a job each proof is the first to exclude.

    Parameters
    ----------
    tests : proofs by lengths, function (m, n) -> bool array: which pairs may pass
    last : the proof that excludes all others that are not kept; None: there is none
    kept : pairs that no proof excludes
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

    def passes(m, n):
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


def near(counts, least, queries, targets) -> tuple[np.ndarray, np.ndarray]:
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
