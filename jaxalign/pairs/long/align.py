"""Score, end cell and path of one long pair, by a fill of blocks.

The table of a very large pair is filled in *slabs*, some columns of all rows each. What
is known after a slab, its lines, is all that the next one and the path need, so a run
that was interrupted goes on from there.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from jaxalign.errors import JaxalignError
from jaxalign.pairs.cpu.long_pair import PairResult
from jaxalign.pairs.dp import ends
from jaxalign.pairs.long import pruning
from jaxalign.pairs.long.blocks import (
    NO_BOUND,
    Fill,
    Line,
    LineGrid,
    LongPair,
    Spot,
    TableBlock,
    block_of,
    whole,
)
from jaxalign.pairs.long.path import counts_of, path
from jaxalign.pairs.run_state import SavedState

Progress = Callable[[int], object] | None


class Slabs(NamedTuple):
    """How a table is divided: by its cells alone."""

    cells: int  # of a slab at least
    most: int  # slabs
    saved: SavedState | None = None  # of the pair, or of a half

    def count(self, cells: int) -> int:
        return int(min(max(1, -(-cells // self.cells)), self.most))


WHOLE = Slabs(2**62, 1)


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
    slabs: Slabs = WHOLE,
    threads: int = 1,
) -> PairResult:
    """Align one pair.

    Parameters
    ----------
    fill : ``tile_fill.fill``, or that of a GPU, with its options bound
    paths : whether the path is wanted, too
    pruned : whether blocks that no best path enters are left out
    progress : called with cells of the whole table as they are filled
    slabs : in which the table is filled, by default as one
    threads : of the path; those of the fill are among its options
    """
    if (result := _result_of(slabs.saved)) is not None:
        return result
    bound = pruning.first_bound(pair) if pruned else NO_BOUND
    grids = fill_slabs(pair, pair.n, fill, bound, paths, progress, slabs)
    end = _end(pair, grids)
    if end.score < bound:
        raise JaxalignError(
            f"a fill found {end.score}, a path scores {bound}: the fill is wrong"
        )
    result = PairResult(end.score, end.i, end.j)
    if paths:
        result = _with_path(pair, grids, fill, end, threads)
    if slabs.saved is not None and len(grids) > 1:
        numbers, steps = np.array(result[:-1], np.int64), result.steps
        more = {"numbers": numbers} | ({} if steps is None else {"steps": steps})
        slabs.saved.put(more, without=[*slabs.saved.all()])
    return result


def _with_path(
    pair: LongPair, grids: list[LineGrid], fill: Fill, end: _End, threads: int
) -> PairResult:
    if pair.local and end.score <= 0:
        return PairResult(0, 0, 0, steps=np.zeros(0, np.uint8))
    end = _exact_end(pair, grids, fill, end)
    start, steps = path(pair, grids, (end.i, end.j), end.score, fill, threads)
    counts = counts_of(pair, start, steps)
    return PairResult(*end, *start, **counts, steps=steps)


def _result_of(saved: SavedState | None) -> PairResult | None:
    """The result of a pair that was aligned before a run was interrupted."""
    arrays = {} if saved is None else saved.all()
    if "numbers" not in arrays:
        return None
    return PairResult(*arrays["numbers"].tolist(), steps=arrays.get("steps"))


def fill_slabs(
    pair: LongPair,
    columns: int,
    fill: Fill,
    bound: int,
    keep: bool,
    progress: Progress,
    slabs: Slabs,
) -> list[LineGrid]:
    """The grids of the slabs of the first columns of a table, from the left.

    Parameters
    ----------
    bound : the score of a path, so that no path of the best score is left out
    keep : whether lines inside of the slabs are kept, and not the last column alone
    """
    count, table = slabs.count(pair.m * columns), whole(pair)
    saved = slabs.saved or SavedState()
    grids = _grids_of(pair, saved)
    if count == 1 and not grids:
        top = table.top.part(0, columns)
        block = TableBlock(0, 0, pair.m, columns, top, table.left)
        return [fill(pair, block, bound, keep=keep, progress=progress)]
    j = 0 if not grids else grids[-1].block.j + grids[-1].block.columns
    if progress is not None and j:
        progress(pair.m * j)
    while j < columns:
        size = min(-(-columns // count), columns - j)
        left = grids[-1].columns[j] if grids else table.left
        block = TableBlock(0, j, pair.m, size, table.top.part(j, j + size), left)
        grid = fill(pair, block, bound, keep=keep, progress=progress, share=count)
        arrays, number = _arrays_of(grid), len(grids)
        if grids and not keep:
            grids[-1] = replace(grids[-1], columns={})
        before = () if keep else (f"{number - 1}.{name}" for name in COLUMN_ARRAYS)
        more = {f"{number}.{name}": array for name, array in arrays.items()}
        grids.append(_grid_of(pair, arrays, left))
        saved.put(more, without=before)
        j += size
    return grids


COLUMN_ARRAYS = "columns", "column_lines"


def _arrays_of(grid: LineGrid) -> dict[str, np.ndarray]:
    """A slab's lines, on the host, and whatever else is known of it."""
    block = grid.block
    arrays = {"place": np.array([block.j, block.columns, grid.cells])}
    spots = [(spot.score, *spot.rows, *spot.columns) for spot in grid.spots]
    arrays["spots"] = np.array(spots, np.int64).reshape(-1, 5)
    for names, lines, length in (
        (("rows", "row_lines"), grid.rows, block.columns),
        (COLUMN_ARRAYS, grid.columns, block.rows),
    ):
        values = [np.stack(line.part(0, length)) for line in lines.values()]
        arrays |= zip(names, (np.array([*lines]), np.stack(values)), strict=True)
    return arrays


def _grid_of(pair: LongPair, arrays: dict[str, np.ndarray], left: Line) -> LineGrid:
    """The grid of a slab; without lines of columns where these are not there."""
    j, columns, cells = arrays["place"].tolist()
    top = whole(pair).top.part(j, j + columns)
    block = TableBlock(0, j, pair.m, columns, top, left)
    rows, across = (
        {number: Line(*line) for number, line in zip(numbers, lines, strict=True)}
        for numbers, lines in (
            (arrays["rows"].tolist(), arrays["row_lines"]),
            (
                arrays.get("columns", np.zeros(0)).tolist(),
                arrays.get("column_lines", ()),
            ),
        )
    )
    spots = (
        Spot(score, (a, b), (c, d)) for score, a, b, c, d in arrays["spots"].tolist()
    )
    return LineGrid(block, rows, across, tuple(spots), cells)


def _grids_of(pair: LongPair, saved: SavedState) -> list[LineGrid]:
    """The slabs of a run that was interrupted."""
    grids: list[LineGrid] = []
    left = whole(pair).left
    while arrays := saved.part(f"{len(grids)}").all():
        grid = _grid_of(pair, arrays, left)
        left = grid.columns.get(grid.block.j + grid.block.columns, left)
        grids.append(grid)
    return grids


def _end(pair: LongPair, grids: list[LineGrid]) -> _End:
    """The end cell; in local mode a cell near it."""
    if pair.local:
        spots = (spot for grid in grids for spot in grid.spots)
        spot = max(spots, key=lambda spot: spot.score, default=None)
        if spot is None or spot.score <= 0:
            return _End(0, 0, 0)
        return _End(spot.score, spot.rows[0], spot.columns[0])
    rows = [grid.rows[pair.m].h for grid in grids]
    row = np.concatenate([rows[0], *(h[1:] for h in rows[1:])])
    column = grids[-1].columns[pair.n].h
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


def _exact_end(pair: LongPair, grids: list[LineGrid], fill: Fill, end: _End) -> _End:
    """In local mode, where a grid says in which blocks a score is, the cell: the first
    row wins, then the first column."""
    spots = [(grid, x) for grid in grids for x in grid.spots if x.score == end.score]
    if not pair.local or not spots or end.score <= 0:
        return end
    # The first row with the score is not below the last one of any spot.
    last = min(spot.rows[1] for _, spot in spots)
    cells: list[_End] = []
    for grid, spot in spots:
        if _is_cell(spot):
            cells.append(_End(spot.score, spot.rows[0], spot.columns[0]))
        elif spot.rows[0] <= last:
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
        end = _end(pair, [inner])
        if end.score == spot.score:
            cells.append(_exact_end(pair, [inner], fill, end))
        j = block.j
    return cells
