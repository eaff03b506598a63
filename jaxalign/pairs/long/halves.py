"""The score of a long pair by two devices, which fill a half of its table each.

The columns up to the middle one are filled from the start, and those behind it from the
end: that is a fill from the start of both sequences turned round. The best path lies in
one half, or crosses the middle column (docs/recurrences.md has the proof). Columns are
divided, not rows, because every fill keeps H and F of its last column.
"""

import threading
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from jaxalign.errors import JaxalignError
from jaxalign.pairs.long import pruning
from jaxalign.pairs.long.align import WHOLE, Slabs, fill_slabs
from jaxalign.pairs.long.blocks import (
    MINUS_INFINITY,
    NO_BOUND,
    Fill,
    Line,
    LineGrid,
    LongPair,
)

TURNED = {
    "query_start": "query_end",
    "query_end": "query_start",
    "target_start": "target_end",
    "target_end": "target_start",
}


def turned(pair: LongPair) -> LongPair:
    """Both sequences from the end: of each alignment there is one with its score."""
    free = pair.problem.free
    return replace(
        pair,
        query=np.ascontiguousarray(pair.query[::-1]),
        target=np.ascontiguousarray(pair.target[::-1]),
        free=frozenset(TURNED[end] for end in pair.free),
        problem=pair.problem._replace(free={end: free[TURNED[end]] for end in free}),
    )


class Halves:
    """Both halves of the table of a pair, and what is known of them.

    Parameters
    ----------
    pair : of two columns or more
    pruned : whether blocks that no best path enters are left out
    slabs : in which each half is filled, by default as one
    """

    def __init__(self, pair: LongPair, pruned: bool = True, slabs: Slabs = WHOLE):
        self.pair, middle, self._slabs = pair, pair.n // 2, slabs
        self._sides = (pair, middle), (turned(pair), pair.n - middle)
        self._lock = threading.Lock()
        self._bound = None if pruned else NO_BOUND
        self._grids: dict[int, list[LineGrid]] = {}

    def fill(
        self, number: int, fill: Fill, progress: Callable[[int], object] | None = None
    ) -> int | None:
        """Fill a half, 0 or 1; either has a thread of its own.

        Returns
        -------
        int or None
            The score of the pair, where the other half is filled already.
        """
        (pair, columns), slabs = self._sides[number], self._slabs
        if slabs.saved is not None:
            slabs = slabs._replace(saved=slabs.saved.part(f"half{number}"))
        bound = self._best_bound()
        grids = fill_slabs(pair, columns, fill, bound, False, progress, slabs)
        with self._lock:
            self._grids[number] = grids
            if len(self._grids) < 2:
                return None
        return self._score()

    def _best_bound(self) -> int:
        """The score of some path of the pair, found by whoever needs it first."""
        with self._lock:
            if self._bound is None:
                self._bound = pruning.first_bound(self.pair)
            return self._bound

    def _score(self) -> int:
        pairs = [(pair, self._grids[k]) for k, (pair, _) in enumerate(self._sides)]
        best = max(*(_best_inside(*one) for one in pairs), _best_across(*pairs))
        if self._bound is not None and best < self._bound:
            raise JaxalignError(
                f"two fills found {best}, a path scores {self._bound}: one is wrong"
            )
        return best


def _best_inside(pair: LongPair, grids: list[LineGrid]) -> int:
    """The best score of a path that ends in a half, before its last column."""
    if pair.local:
        return max((spot.score for grid in grids for spot in grid.spots), default=0)
    if "target_end" not in pair.free:
        return MINUS_INFINITY
    return max(int(grid.rows[pair.m].h.max()) for grid in grids)


def _best_across(
    left: tuple[LongPair, list[LineGrid]], right: tuple[LongPair, list[LineGrid]]
) -> int:
    """The best score of a path through the middle column."""
    before, after = _middle(*left), _middle(*right)
    after = Line(after.h[::-1], after.gap[::-1])
    pair = left[0]
    # A gap that goes on behind the middle has paid for two openings.
    across = _sums(before.gap, after.gap) + (pair.open - pair.extend)
    return int(np.maximum(_sums(before.h, after.h), across).max())


def _middle(pair: LongPair, grids: list[LineGrid]) -> Line:
    """H and F of the last column of a half; a border that is a gap is one, too."""
    grid = grids[-1]
    columns = grid.block.j + grid.block.columns
    line = grid.columns[columns].part(0, pair.m)
    gap = line.gap.copy()
    if columns and not (pair.local or "target_start" in pair.free):
        gap[0] = line.h[0]
    return Line(line.h, gap)


def _sums(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """int64; minus infinity where either is."""
    sums = before.astype(np.int64) + after
    none = np.minimum(before, after) <= MINUS_INFINITY // 2
    return np.where(none, MINUS_INFINITY, sums)
