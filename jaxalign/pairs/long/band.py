"""The path through a part of a table that is near a diagonal, where that is proven.

From a cell whose score is known, the path goes up through a band of lanes to a line of
the grid. Whatever lies beside the band, or left of the block, is left out if no path of
that score to the cell comes from there (docs/recurrences.md).
"""

import numpy as np

from jaxalign.pairs.dp.matrix_rows import MAX_SELECT_CODES
from jaxalign.pairs.long.band_fill import fill_and_walk
from jaxalign.pairs.long.blocks import MINUS_INFINITY, LineGrid, LongPair, ToCell
from jaxalign.pairs.long.walk_place import WalkPlace
from jaxalign.runtime.devices import first_device, on_cpu

LANES = 256
ROWS = 2048  # of a band at most


def through(
    pair: LongPair, grid: LineGrid, place: WalkPlace, pieces: list[np.ndarray]
) -> WalkPlace | None:
    """Walk to a line of a grid above a cell, or None where no band leads to one."""
    if pair.scores.shape[1] > MAX_SELECT_CODES or pair.problem.scores.dtype != np.int8:
        return None
    lines = {grid.block.i: grid.block.top, **grid.rows}
    most = place.reach or ROWS
    while near := [i for i in lines if 0 < place.i - i <= most]:
        i = min(near)
        new = _to_line(pair, grid, place, i, lines[i], pieces)
        if new is not None:
            return new._replace(reach=min(2 * most, ROWS))
        most = (place.i - i) // 2
    return None


def _to_line(pair, grid: LineGrid, place: WalkPlace, i: int, line, pieces):
    outer, rows = grid.block, place.i - i
    # The end lies in the middle lane; column 0 of the band is a column of the block.
    origin = place.j - rows - LANES // 2
    if origin < outer.j or rows > ROWS:
        return None
    first, last = origin + 1, min(origin + LANES, outer.j + outer.columns)
    inside = line.part(first - outer.j, last - outer.j)
    top = np.full((2, LANES), MINUS_INFINITY, np.int32)
    top[0, : len(inside.h)], top[1, : len(inside.gap)] = inside
    if _reaches_beside(pair, grid, place, i, line, (first, last)):
        return None
    query, target = np.zeros(ROWS, np.uint8), np.zeros(ROWS + LANES, np.uint8)
    query[:rows] = pair.query[i : place.i]
    letters = pair.target[origin : origin + rows + LANES]
    target[: len(letters)] = letters
    match = max(int(pair.scores.max(initial=0)), 0)
    with on_cpu():
        walked = fill_and_walk(
            query, target, np.int32(rows), np.int32(place.j - origin),
            np.int32(place.move), (top[0], top[1]), pair.problem.scores,
            pair.problem.gaps, np.int32(match),
            fused=first_device().platform == "cpu",
        )  # fmt: skip
    beside = LANES // 2
    below = int(walked.below) + match * rows - pair.extend * (beside - 1)
    above = int(walked.above) + match * (rows - beside) - pair.extend * beside
    if max(below, above) >= place.score:
        return None
    steps = np.asarray(walked.steps)[: int(walked.count)]
    pieces.append(steps)
    return place.after(pair, steps, (i, origin + int(walked.j)), int(walked.move))


def _reaches_beside(
    pair: LongPair, grid: LineGrid, place: WalkPlace, i: int, line, lanes: tuple
) -> bool:
    """Whether a path of the score of a place may come from beside the lanes: from
    elsewhere in the line, from the left of the block, or, in local mode, from a cell
    below the line, where it begins."""
    outer, rows = grid.block, place.i - i
    match = max(int(pair.scores.max(initial=0)), 0)
    if pair.local and match * rows >= place.score:
        return True
    first, last = (column - outer.j for column in lanes)
    to = ToCell(rows, place.j - outer.j, match, pair.extend)
    if line.most_beside(first, last, to) >= place.score:
        return True
    left = outer.left.h[i - outer.i : place.i - outer.i + 1].astype(np.int64)
    across = ToCell(place.j - outer.j, rows, match, pair.extend)
    return int(across.most(np, left, np.arange(rows + 1)).max()) >= place.score
