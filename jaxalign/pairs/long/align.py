"""Score, end cell and path of one long pair, by a fill of blocks."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from jaxalign.errors import JaxalignError
from jaxalign.pairs.cpu.long_pair import PairResult
from jaxalign.pairs.dp import ends, walk
from jaxalign.pairs.long import pruning
from jaxalign.pairs.long.blocks import (
    NO_BOUND,
    Fill,
    LineGrid,
    LongPair,
    Spot,
    block_of,
    whole,
)
from jaxalign.pairs.long.path import path

Progress = Callable[[int], object] | None


class _End(NamedTuple):
    score: int
    i: int
    j: int


def align(
    pair: LongPair,
    fill: Fill,
    paths: bool,
    pruned: bool = True,
    progress: Progress = None,
) -> PairResult:
    """Align one pair.

    Parameters
    ----------
    fill : ``tile_fill.fill``, or that of a GPU, with its options bound
    paths : whether the path is wanted, too
    pruned : whether blocks that no best path enters are left out
    progress : called with cells of the whole table as they are filled
    """
    grid, end = _scored(pair, fill, paths, pruned, progress)
    if not paths:
        return PairResult(end.score, end.i, end.j)
    if pair.local and end.score <= 0:
        return PairResult(0, 0, 0, steps=np.zeros(0, np.uint8))
    start, steps = path(pair, grid, (end.i, end.j), end.score, fill)
    return PairResult(
        end.score, end.i, end.j, start[0], start[1], **_counts(pair, start, steps),
        steps=steps,
    )  # fmt: skip


def _scored(
    pair: LongPair, fill: Fill, keep: bool, pruned: bool, progress: Progress
) -> tuple[LineGrid, _End]:
    """The grid of the whole pair, and its score with its end cell.

    The bound is the score of a path, so no path of the best score is left out.
    """
    block = whole(pair)
    bound = pruning.first_bound(pair) if pruned else NO_BOUND
    grid = fill(pair, block, bound, keep=keep, progress=progress)
    end = _end(pair, grid)
    if end.score < bound:
        raise JaxalignError(
            f"a fill found {end.score}, a path scores {bound}: the fill is wrong"
        )
    return grid, _exact_end(pair, grid, fill, end) if keep else end


def _end(pair: LongPair, grid: LineGrid) -> _End:
    """The end cell; in local mode a cell near it."""
    if pair.local:
        spot = max(grid.spots, key=lambda spot: spot.score, default=None)
        if spot is None or spot.score <= 0:
            return _End(0, 0, 0)
        return _End(spot.score, spot.rows[0], spot.columns[0])
    row, column = grid.rows[pair.m].h, grid.columns[pair.n].h
    i, j = int(column.argmax()), int(row.argmax())
    corner = int(row[-1]), pair.m, pair.n
    cells = corner, (int(column[i]), i, pair.n), (int(row[j]), pair.m, j)
    corner, by_column, by_row = (
        ends.EndCell._make(np.asarray(x, np.int32) for x in cell) for cell in cells
    )
    free = {end: end in pair.free for end in ("query_end", "target_end")}
    cell = ends.border_end(corner, by_column, by_row, free, 0)
    score, i, j = map(int, cell)
    return _End(score, i, j)


def _exact_end(pair: LongPair, grid: LineGrid, fill: Fill, end: _End) -> _End:
    """In local mode, where a grid says in which blocks a score is, the cell: the first
    row wins, then the first column."""
    spots = [spot for spot in grid.spots if spot.score == end.score]
    if not pair.local or not spots or end.score <= 0:
        return end
    # The smallest row lies in the first rows that have the score.
    rows = min(spot.rows for spot in spots)
    cells: list[_End] = []
    for spot in spots:
        if _is_cell(spot):
            cells.append(_End(spot.score, spot.rows[0], spot.columns[0]))
        elif spot.rows == rows:
            cells += _cells_of(pair, grid, fill, spot)
    return min(cells, key=lambda end: (end.i, end.j))


def _is_cell(spot: Spot) -> bool:
    return spot.rows[0] == spot.rows[1] and spot.columns[0] == spot.columns[1]


def _cells_of(pair: LongPair, grid: LineGrid, fill: Fill, spot: Spot) -> list[_End]:
    """The first cell with the score of a spot in each block that it is in, if there is
    one, by filling these again."""
    cells: list[_End] = []
    i = min(spot.rows[1], grid.block.i + grid.block.rows)
    j = min(spot.columns[1], grid.block.j + grid.block.columns)
    while j > max(spot.columns[0] - 1, grid.block.j):
        block = block_of(grid, i, j)
        inner = fill(pair, block)
        end = _end(pair, inner)
        if end.score == spot.score:
            cells.append(_exact_end(pair, inner, fill, end))
        j = block.j
    return cells


def _counts(pair: LongPair, start: tuple[int, int], steps: np.ndarray) -> dict:
    """The counts of a path, as a ``PairResult`` has them."""
    gap = steps != walk.M
    opens = gap.copy()
    opens[1:] &= steps[1:] != steps[:-1]
    i = start[0] + np.cumsum(steps != walk.D)[~gap] - 1
    j = start[1] + np.cumsum(steps != walk.I)[~gap] - 1
    letters = pair.query[i]
    same = (letters == pair.target[j]) & (letters != int(pair.problem.wildcard))
    return {
        "identities": int(same.sum()),
        "columns": len(steps),
        "gap_openings": int(opens.sum()),
        "gaps": int(gap.sum()),
    }
