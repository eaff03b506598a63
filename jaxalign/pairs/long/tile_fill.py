"""A block filled tile by tile on a CPU: the tiles of an anti-diagonal in threads.

A tile is a strip of ``pairs.dp.wavefront`` with both of its borders. Of the table only
a row and a column are kept, and the lines of the grid.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from jaxalign.one_function import CPU_OPTIONS
from jaxalign.pairs.dp import wavefront
from jaxalign.pairs.long import pruning
from jaxalign.pairs.long.blocks import (
    MINUS_INFINITY,
    NO_BOUND,
    Line,
    LineGrid,
    LongPair,
    Spot,
    TableBlock,
    narrow,
    widened,
)
from jaxalign.runtime.devices import default_device, first_device
from jaxalign.runtime.lengths import bucket
from jaxalign.runtime.programs import program

if TYPE_CHECKING:
    from jaxalign.pairs.dp.window_program import WindowProblem


TILE_ROWS, TILE_COLUMNS = 512, 4096  # a diagonal of 512 rows stays in the first cache
SMALL_TILE_COLUMNS = 1024  # of a block that has few of them, so that it is divided
MIN_TILE = 64
LINES = 32  # of the grid in either direction, about


@program(("local", "fused"), compiler_options=CPU_OPTIONS)
def _tile(
    query: jax.Array,
    target: jax.Array,
    m: jax.Array,
    n: jax.Array,
    top: tuple[jax.Array, jax.Array],
    left: tuple[jax.Array, jax.Array],
    problem: "WindowProblem",
    *,
    local: bool,
    fused: bool,
):
    """Bottom (H, E), right (H, F) and the best of each row with its first column."""
    top = wavefront.Top(*top)
    filled = wavefront.strip(
        query, target, m, n, 0, top, problem.scores, problem.gaps, problem.free,
        m + n + 1 if fused else None, left=left, local=local, fused=fused,
    )  # fmt: skip
    right = filled.last_column, filled.last_gap
    return filled.bottom, right, filled.row_best, filled.row_column


def fill(
    pair: LongPair,
    block: TableBlock,
    bound: int = NO_BOUND,
    *,
    until: tuple[int, int] | None = None,
    keep: bool = True,
    threads: int = 1,
    lines: int | None = None,
    tile: tuple[int, int] | None = None,
    share: int = 1,
    progress: Callable[[int], Any] | None = None,
) -> LineGrid:
    """Fill a block.

    Parameters
    ----------
    bound : int, optional
        Tiles that no path to this score enters are not computed.
    until : (i, j), optional
        The cell in which these paths end; by default any end of the pair.
    keep : bool
        Whether lines inside of the block are kept.
    lines : of the grid in either direction at most, ``LINES`` by default
    tile : (rows, columns), optional
    share : of so many blocks side by side, which have the columns of one together
    progress : called with the cells of each anti-diagonal of tiles, but pruned ones
    """
    rows = (LINES if lines is None else lines) if keep else 1
    most = rows, max(1, rows // share)
    tile = tile or _tile_size(block, threads)
    state = _State(pair, block, bound, most, tile, until)
    across = list(range(0, block.columns, state.tile[1]))
    down = list(range(0, block.rows, state.tile[0]))
    compute = partial(_on_device, default_device(), state)
    with ThreadPoolExecutor(threads) as pool:
        for d in range(len(down) + len(across) - 1):
            first, last = max(d - len(across) + 1, 0), min(d, len(down) - 1)
            tiles = [(down[r], across[d - r]) for r in range(first, last + 1)]
            cells = list(pool.map(compute, tiles))
            if progress is not None:
                progress(sum(cells))
    return state.grid()


def _tile_size(block: TableBlock, threads: int) -> tuple[int, int]:
    """Tiles that are wide, since each begins and ends with short diagonals; but as many
    side by side as there are threads, and a block of few columns is divided."""
    columns = TILE_COLUMNS if block.columns > TILE_COLUMNS else SMALL_TILE_COLUMNS
    while columns > SMALL_TILE_COLUMNS and columns * threads > block.columns:
        columns //= 2
    sides = (TILE_ROWS, block.rows), (columns, block.columns)
    rows, columns = (min(most, bucket(k, size=MIN_TILE)) for most, k in sides)
    return rows, columns


class _State:
    """The last row and column that were computed, corners between, and what is kept.

    Tiles of an anti-diagonal touch no cell of one another.
    """

    def __init__(
        self,
        pair: LongPair,
        block: TableBlock,
        bound: int,
        most: tuple[int, int],
        tile: tuple[int, int],
        until: tuple[int, int] | None,
    ):
        self.pair, self.block, self.bound, self.tile = pair, block, bound, tile
        self.until = until
        self.row = Line(block.top.h.copy(), block.top.gap.copy())
        self.column = Line(block.left.h.copy(), block.left.gap.copy())
        self.corners = {
            (0, j): int(block.top.h[j]) for j in range(0, block.columns, tile[1])
        }
        self.corners |= {
            (i, 0): int(block.left.h[i]) for i in range(0, block.rows, tile[0])
        }
        self.rows = _lines(block.rows, tile[0], block.columns, most[0])
        self.columns = _lines(block.columns, tile[1], block.rows, most[1])
        for i, line in self.rows.items():
            line.h[0], line.gap[0] = block.left.h[i], MINUS_INFINITY
        for j, line in self.columns.items():
            line.h[0], line.gap[0] = block.top.h[j], MINUS_INFINITY
        self.spots: list[Spot] = []
        self.cells = 0

    def grid(self) -> LineGrid:
        block = self.block
        spots = tuple(
            sorted(self.spots, key=lambda x: (-x.score, x.rows, x.columns))[:1]
        )
        return LineGrid(
            block,
            {block.i + i: line for i, line in self.rows.items()},
            {block.j + j: line for j, line in self.columns.items()},
            spots,
            self.cells,
        )


def _lines(length: int, step: int, size: int, most: int) -> dict[int, Line]:
    """Room for the lines of a grid: the last one, and every so many steps one."""
    spacing = step * max(1, -(-length // (step * most)))
    places = [*range(spacing, length, spacing), length]
    return {
        k: Line(*(np.full(size + 1, MINUS_INFINITY, np.int32) for _ in range(2)))
        for k in places
        if k > 0
    }


def _on_device(device: Any, state: _State, place: tuple[int, int]) -> int:
    """``_compute`` in another thread, whose default device JAX does not inherit."""
    with nullcontext() if device is None else jax.default_device(device):
        return _compute(state, place)


def _compute(state: _State, place: tuple[int, int]) -> int:
    """Fill a tile from what its neighbours left, or leave minus infinity."""
    i, j = place
    pair, outer = state.pair, state.block
    rows = min(state.tile[0], outer.rows - i)
    columns = min(state.tile[1], outer.columns - j)
    # Copies: the first cell of each is the last one of another tile's border.
    top = Line(*(x.copy() for x in state.row.part(j, j + columns)))
    left = Line(*(x.copy() for x in state.column.part(i, i + rows)))
    top.h[0] = left.h[0] = state.corners.pop((i, j))
    block = TableBlock(outer.i + i, outer.j + j, rows, columns, top, left)
    empty = pruning.is_empty(block, pair.local)
    pruned = empty or not pruning.reaches(pair, block, state.bound, state.until)
    if pruned:
        bottom, right = (
            Line(*(np.full(k + 1, MINUS_INFINITY, np.int32) for _ in range(2)))
            for k in (columns, rows)
        )
    else:
        bottom, right = _filled(state, block)
        state.cells += rows * columns
    state.corners[i + rows, j + columns] = int(bottom.h[-1])
    for line, new, at in ((state.row, bottom, j), (state.column, right, i)):
        line.h[at + 1 : at + len(new.h)] = new.h[1:]
        line.gap[at + 1 : at + len(new.gap)] = new.gap[1:]
    for lines, number, new, at in (
        (state.rows, i + rows, bottom, j),
        (state.columns, j + columns, right, i),
    ):
        if number in lines:
            lines[number].h[at + 1 : at + len(new.h)] = new.h[1:]
            lines[number].gap[at + 1 : at + len(new.gap)] = new.gap[1:]
    return 0 if pruned else rows * columns


def _filled(state: _State, block: TableBlock) -> tuple[Line, Line]:
    """Bottom and right of a tile; in local mode its best is put among the spots."""
    pair = state.pair
    rows, columns = state.tile
    query = np.zeros(rows, np.int32)
    query[: block.rows] = pair.query[block.i : block.i + block.rows]
    target = np.zeros(columns, np.int32)
    target[: block.columns] = pair.target[block.j : block.j + block.columns]
    given = narrow(pair, block)
    lines = padded(given.top, columns), padded(given.left, rows)
    bottom, right, best, column = _tile(
        query, target, block.rows, block.columns, *lines, given.problem,
        local=pair.local, fused=first_device().platform == "cpu",
    )  # fmt: skip
    if pair.local:
        best = np.asarray(best)[: block.rows + 1]
        i = int(best.argmax())
        row, j = block.i + i, block.j + int(np.asarray(column)[i])
        state.spots.append(Spot(int(best[i]), (row, row), (j, j)))
    lines = []
    for (h, gap), size in ((bottom, block.columns), (right, block.rows)):
        h, gap = np.asarray(h)[: size + 1], np.asarray(gap)[: size + 1]
        lines.append(widened(h, gap, given))
    return lines[0], lines[1]


def padded(line: Line, size: int) -> Line:
    """A line with room for a whole tile; what lies behind its end does not matter."""
    return Line(*(np.resize(x, size + 1) if len(x) <= size else x for x in line))
