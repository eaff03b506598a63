"""Which parts of a table no best path enters (docs/recurrences.md has the proof)."""

import numpy as np

from jaxalign.pairs.long import chain
from jaxalign.pairs.long.blocks import (
    MINUS_INFINITY,
    NO_BOUND,
    Line,
    LongPair,
    TableBlock,
)

MIN_CELLS = 2**24  # of a pair in which a path is looked for first


def rest(
    pair: LongPair,
    i: np.ndarray | int,
    j: np.ndarray | int,
    until: tuple[int, int] | None = None,
):
    """The most that a path can score from cell (i, j) on, to any end or to the cell
    ``until``: int64.

    No letter scores more than with its best partner. Of the longer rest as many letters
    as it is longer are in gaps, which cost at least ``extend`` each, unless that end is
    free.
    """
    k, h = until or (pair.m, pair.n)
    rows, columns = k - np.asarray(i, np.int64), h - np.asarray(j, np.int64)
    most = np.minimum(
        pair.most_of_query[i] - pair.most_of_query[k],
        pair.most_of_target[j] - pair.most_of_target[h],
    )
    query, target = end_costs(pair, until)
    cost = query * np.maximum(rows - columns, 0)
    cost = cost + target * np.maximum(columns - rows, 0)
    return most - cost


def end_costs(pair: LongPair, until: tuple[int, int] | None = None) -> tuple[int, int]:
    """The least that one more letter of the query's rest costs, and of the target's."""
    if until is not None:
        return pair.extend, pair.extend
    if pair.local:
        return 0, 0
    query, target = (
        0 if end in pair.free else pair.extend for end in ("query_end", "target_end")
    )
    return query, target


def reaches(
    pair: LongPair,
    block: TableBlock,
    bound: int,
    until: tuple[int, int] | None = None,
) -> bool:
    """Whether a path through the border of a block may score ``bound``."""
    if bound <= NO_BOUND:
        return True
    i, j = block.i, block.j
    along = np.arange(len(block.top.h)) + j, np.arange(len(block.left.h)) + i
    ends = _high(pair, block.top) + rest(pair, i, along[0], until)
    best = max(
        int(ends.max()),
        int((_high(pair, block.left) + rest(pair, along[1], j, until)).max()),
    )
    if pair.local:
        best = max(best, int(rest(pair, i, j, until)))
    return best >= bound


def _high(pair: LongPair, line: Line) -> np.ndarray:
    """H is at least E and F, but for cells of minus infinity."""
    return line.h.astype(np.int64)


def is_empty(block: TableBlock, local: bool) -> bool:
    """Whether no path enters a block."""
    high = max(int(block.top.h.max()), int(block.left.h.max()))
    return not local and high <= MINUS_INFINITY // 2


def first_bound(pair: LongPair) -> int:
    """The score of some path, so that one of the best score reaches it. ``NO_BOUND`` of
    a small pair."""
    if pair.m * pair.n < MIN_CELLS:
        return NO_BOUND
    return max(along_border(pair), chain.path_score(pair))


def along_border(pair: LongPair) -> int:
    """The score of an alignment that pairs nothing: the better way round."""
    if pair.local:
        return 0
    m, n = (pair.open + pair.extend * (k - 1) if k else 0 for k in (pair.m, pair.n))
    free = pair.free
    above = n * ("target_start" not in free) + m * ("query_end" not in free)
    below = m * ("query_start" not in free) + n * ("target_end" not in free)
    return -min(above, below)
