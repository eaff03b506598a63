"""Where a walk is, and the score of the path from there to the start."""

from typing import NamedTuple

import numpy as np

from jaxalign.pairs.dp import walk
from jaxalign.pairs.long.blocks import LongPair


class WalkPlace(NamedTuple):
    """Where a walk is, and the operation that its gap has to go on with, else M.

    ``score`` is H of the cell, or E or F where a gap goes on.
    """

    i: int
    j: int
    score: int
    move: int = walk.M
    ended: bool = False
    reach: int = 0  # rows of the next band, or 0: as long bands as there are

    def after(
        self, pair: LongPair, steps: np.ndarray, cell: tuple[int, int], move: int
    ) -> "WalkPlace":
        """The place in another cell, some steps on."""
        score = self.score - _score(pair, self, steps, move)
        return WalkPlace(*cell, score, move, reach=self.reach)


def _score(pair: LongPair, place: WalkPlace, steps: np.ndarray, move: int) -> int:
    """The score of steps from a place. Opening a gap is paid by its last letter on the
    way to the start, which is none of them if the gap goes on."""
    pairs = steps == walk.M
    i = place.i - np.cumsum(steps != walk.D)[pairs]
    j = place.j - np.cumsum(steps != walk.I)[pairs]
    paired = int(pair.scores[pair.query[i], pair.target[j]].sum(dtype=np.int64))
    gaps = steps[~pairs]
    turns = np.ones(len(steps), bool)
    turns[1:] = steps[1:] != steps[:-1]
    opened = int((turns & ~pairs).sum()) - (move != walk.M and len(steps) > 0)
    return paired - pair.extend * len(gaps) - (pair.open - pair.extend) * opened
