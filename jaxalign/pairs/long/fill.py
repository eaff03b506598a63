"""Blocks of one long pair filled, on a CPU and on a GPU.

A block filled tile by tile on a CPU: the tiles of an anti-diagonal in threads.

A tile is a strip of ``pairs.dp.wavefront`` with both of its borders. Of the table only
a row and a column are kept, and the lines of the grid.

A block filled by the kernel of one long pair, on all multiprocessors of a GPU.

Lines stay on the device; what is needed of them is fetched by parts. Small blocks are
filled on the host's CPU, which finds cells exactly.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxalign.pairs.cpu.long_pair import fill_strip
from jaxalign.pairs.dp import wavefront
from jaxalign.pairs.long import pruning
from jaxalign.pairs.long.blocks import (
    MINUS_INFINITY,
    NO_BOUND,
    Line,
    LineGrid,
    LongPair,
    Narrow,
    Spot,
    TableBlock,
    ToCell,
    narrow,
    whole,
    widened,
)
from jaxalign.runtime.devices import bucket, default_device, first_device, on_cpu
from jaxalign.runtime.programs import program, stored

TILE_ROWS, TILE_COLUMNS = 512, 4096  # a diagonal of 512 rows stays in the first cache
SMALL_TILE_COLUMNS = 1024  # of a block that has few of them, so that it is divided
MIN_TILE = 64
LINES = 32  # of the grid in either direction, about


def fill_by_tiles(
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

    bound : int, optional, tiles that no path to this score enters are not computed
    until : (i, j), optional, the cell in which these paths end; by default any end of
        the pair
    keep : bool, whether lines inside of the block are kept
    lines : of the grid in either direction at most, ``LINES`` by default
    tile : (rows, columns), optional
    share : of so many blocks side by side, which have the columns of one together
    progress : called with the cells of each anti-diagonal of tiles, but pruned ones
    """
    rows = (LINES if lines is None else lines) if keep else 1
    max_lines = rows, max(1, rows // share)
    # Tiles that are wide, since each begins and ends with short diagonals; but as
    # many side by side as there are threads, and a block of few columns is divided.
    wide = TILE_COLUMNS if block.columns > TILE_COLUMNS else SMALL_TILE_COLUMNS
    while wide > SMALL_TILE_COLUMNS and wide * threads > block.columns:
        wide //= 2
    usual = (
        min(TILE_ROWS, bucket(block.rows, size=MIN_TILE)),
        min(wide, bucket(block.columns, size=MIN_TILE)),
    )
    tile = tile or usual
    state = _State(pair, block, bound, max_lines, tile, until)
    across = list(range(0, block.columns, state.tile[1]))
    down = list(range(0, block.rows, state.tile[0]))
    device = default_device()

    def compute(place: tuple[int, int]) -> int:
        # Threads do not inherit JAX's default device.
        with nullcontext() if device is None else jax.default_device(device):
            return _compute(state, place)

    with ThreadPoolExecutor(threads) as pool:
        for d in range(len(down) + len(across) - 1):
            first, last = max(d - len(across) + 1, 0), min(d, len(down) - 1)
            tiles = [(down[r], across[d - r]) for r in range(first, last + 1)]
            cells = list(pool.map(compute, tiles))
            if progress is not None:
                progress(sum(cells))
    row_lines = {block.i + i: line for i, line in state.rows.items()}
    column_lines = {block.j + j: line for j, line in state.columns.items()}
    spots = sorted(state.spots, key=lambda x: (-x.score, x.rows, x.columns))[:1]
    return LineGrid(block, row_lines, column_lines, tuple(spots), state.cells)


class _State:
    """The last row and column that were computed, corners between, and what is kept.

    Tiles of an anti-diagonal touch no cell of one another.
    """

    def __init__(
        self,
        pair: LongPair,
        block: TableBlock,
        bound: int,
        max_lines: tuple[int, int],
        tile: tuple[int, int],
        until: tuple[int, int] | None,
    ):
        self.pair, self.block, self.bound, self.tile = pair, block, bound, tile
        self.until = until
        self.row = Line(block.top.h.copy(), block.top.gap.copy())
        self.column = Line(block.left.h.copy(), block.left.gap.copy())
        across, down = range(0, block.columns, tile[1]), range(0, block.rows, tile[0])
        self.corners = {(0, j): int(block.top.h[j]) for j in across}
        self.corners |= {(i, 0): int(block.left.h[i]) for i in down}
        self.rows = _lines(block.rows, tile[0], block.columns, max_lines[0])
        self.columns = _lines(block.columns, tile[1], block.rows, max_lines[1])
        for i, line in self.rows.items():
            line.h[0], line.gap[0] = block.left.h[i], MINUS_INFINITY
        for j, line in self.columns.items():
            line.h[0], line.gap[0] = block.top.h[j], MINUS_INFINITY
        self.spots: list[Spot] = []
        self.cells = 0


def _lines(length: int, step: int, size: int, limit: int) -> dict[int, Line]:
    """Room for the lines of a grid: the last one, and every so many steps one."""
    spacing = step * max(1, -(-length // (step * limit)))
    places = [*range(spacing, length, spacing), length]
    return {
        k: Line(*(np.full(size + 1, MINUS_INFINITY, np.int32) for _ in range(2)))
        for k in places
        if k > 0
    }


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
    high = max(int(top.h.max()), int(left.h.max()))
    no_path = not pair.local and high <= MINUS_INFINITY // 2
    pruned = no_path or not pruning.reaches(pair, block, state.bound, state.until)
    if pruned:
        bottom, right = (
            Line(*(np.full(k + 1, MINUS_INFINITY, np.int32) for _ in range(2)))
            for k in (columns, rows)
        )
    else:
        bottom, right = _filled(state, block)
        state.cells += rows * columns
    state.corners[i + rows, j + columns] = int(bottom.h[-1])
    for line, edge, at in ((state.row, bottom, j), (state.column, right, i)):
        line.h[at + 1 : at + len(edge.h)] = edge.h[1:]
        line.gap[at + 1 : at + len(edge.gap)] = edge.gap[1:]
    for lines, number, edge, at in (
        (state.rows, i + rows, bottom, j),
        (state.columns, j + columns, right, i),
    ):
        if number in lines:
            lines[number].h[at + 1 : at + len(edge.h)] = edge.h[1:]
            lines[number].gap[at + 1 : at + len(edge.gap)] = edge.gap[1:]
    return 0 if pruned else rows * columns


def _filled(state: _State, block: TableBlock) -> tuple[Line, Line]:
    """Bottom and right of a tile; in local mode its best is put among the spots."""
    pair = state.pair
    rows, columns = state.tile
    query = np.zeros(rows, np.int32)
    query[: block.rows] = pair.query[block.i : block.i + block.rows]
    target = np.zeros(columns, np.int32)
    target[: block.columns] = pair.target[block.j : block.j + block.columns]
    inputs = narrow(pair, block)
    filled = fill_block(pair, inputs, query, target, block.rows, block.columns)
    if pair.local:
        best = np.asarray(filled.row_best)[: block.rows + 1]
        i = int(best.argmax())
        row, j = block.i + i, block.j + int(np.asarray(filled.row_column)[i])
        state.spots.append(Spot(int(best[i]), (row, row), (j, j)))
    lines = []
    right = filled.last_column, filled.last_gap
    for (h, gap), size in ((filled.bottom, block.columns), (right, block.rows)):
        h, gap = np.asarray(h)[: size + 1], np.asarray(gap)[: size + 1]
        lines.append(widened(h, gap, inputs))
    return lines[0], lines[1]


def fill_block(
    pair: LongPair,
    inputs: Narrow,
    query: np.ndarray,
    target: np.ndarray,
    m: int | np.int32,
    n: int | np.int32,
    codes: jax.Array | None = None,
) -> wavefront.Strip:
    """The strip of a small block: m rows and n columns of padded letters.

    codes : room for its directions, where these are wanted
    """

    def padded(line: Line, size: int) -> Any:  # what lies behind does not matter
        return (np.resize(x, size + 1) if len(x) <= size else x for x in line)

    top = wavefront.Top(*padded(inputs.top, len(target)))
    left = tuple(padded(inputs.left, len(query)))
    fused = first_device().platform == "cpu"
    return fill_strip(
        query, target, m, n, 0, top, inputs.problem, m + n + 1 if fused else None,
        codes, left, local=pair.local, fused=fused,
    )  # fmt: skip


FEW_LINES = 24  # of a large block: 1.8 GB where both sides have 4.6 million letters
LARGE_CELLS = 2**36
# Of other blocks lines are as far apart. A path goes from row to row; chunks with cells
# of a column that is stored take twice as long.
LINE_ROWS, LINE_COLUMNS = 512, 8192
# Between these no line is inside, so that a block would be filled again without end.
HOST_CELLS = LINE_ROWS * LINE_COLUMNS  # of a block, at most
TALL_ROWS = 2**19  # from so many on a lane has 16 rows, not 8
LEAST_PART, PARTS_RATIO = 2**12, 8  # cells of a line that come to the host
SEGMENTS = 64  # of the columns, at most, in local mode


@dataclass(frozen=True, eq=False)
class DeviceLine:
    """A line on a device; its first cell is on the border of the block."""

    arrays: Any  # int32 (lines, 2, room)
    number: int
    first: int
    length: int

    def part(self, first: int, last: int) -> Line:
        """Cells ``first`` to ``last`` on the host."""
        size = last - first + 1
        room = min(bucket(size, PARTS_RATIO, LEAST_PART), self.arrays.shape[-1])
        start = min(max(first - 1, 0), self.arrays.shape[-1] - room)
        values = np.asarray(_part(self.arrays, self.number, start, room))
        h, gap = (np.full(size, MINUS_INFINITY, np.int32) for _ in range(2))
        skipped = int(first == 0)
        at = first - 1 + skipped - start
        h[skipped:] = values[0, at : at + size - skipped]
        gap[skipped:] = values[1, at : at + size - skipped]
        if skipped:
            h[0] = self.first
        return Line(h, gap)

    @property
    def h(self) -> np.ndarray:
        return self.part(0, self.length).h

    def most_beside(self, first: int, last: int, to: ToCell) -> int:
        """As that of ``Line``."""
        return int(_most_beside(self.arrays, self.number, first, last, to))


@program(("size",))
def _part(arrays: jax.Array, number: int, start: int, size: int):
    return lax.dynamic_slice(arrays, (number, 0, start), (1, 2, size))[0]


@program()
def _most_beside(
    arrays: jax.Array, number: int, first: int, last: int, to: ToCell
) -> jax.Array:
    h = arrays[number, 0]
    j = 1 + jnp.arange(h.shape[0], dtype=jnp.int32)
    outside = ((j < first) | (j > last)) & (j <= to.column)
    outside &= h > MINUS_INFINITY // 2
    return jnp.where(outside, to.most(jnp, h, j), MINUS_INFINITY).max()


def fill_on_gpu(
    pair: LongPair,
    block: TableBlock,
    bound: int = NO_BOUND,
    *,
    kernels: Any,
    until: tuple[int, int] | None = None,
    keep: bool = True,
    threads: int = 1,
    rows: int | None = None,
    steps: int | None = None,
    interpret: Any = None,
    packed: bool | None = None,
    small: int = HOST_CELLS,
    share: int = 1,
    progress: Callable[[int], Any] | None = None,
) -> LineGrid:
    """As ``fill_by_tiles``.

    kernels : the package ``kernels_pallas``
    rows, steps : of a lane, and of a chunk
    packed : whether registers have values of 16 bits, by default where those hold the
        pair; values that do not fit are found, and the block is filled in int32
    small : a block of so many cells, or fewer, is filled on the host
    """
    if block.rows * block.columns <= small:
        with on_cpu():
            return fill_by_tiles(
                pair, block, bound, until=until, keep=keep, threads=threads, share=share
            )
    for of_16_bits in (packed, False):
        sizes = sizes_of(
            pair, block, kernels, keep, rows, steps, interpret, of_16_bits, share
        )
        about = bound, kernels, sizes, until, interpret
        lines, segment = _launch(pair, block, *about)
        if not sizes.shape.packed or not np.asarray(lines.lost)[: sizes.bands].any():
            break
    grid = _grid(pair, block, lines, sizes, segment)
    if progress is not None:
        progress(block.rows * block.columns)
    return grid


def _launch(
    pair: LongPair,
    block: TableBlock,
    bound: int,
    kernels: Any,
    sizes: "_Sizes",
    until: tuple[int, int] | None = None,
    interpret: Any = None,
) -> tuple[Any, int]:
    """(lines of a block, on the device; chunks of a segment)."""
    arrays, segment = arrays_of(pair, block, bound, kernels, sizes, until)
    s = sizes.shape
    static = {"s": s, "segments": -(-s.chunks // segment), "interpret": interpret}
    run = stored(kernels.long_block, tuple(static))
    return run(arrays, pair.scores, **static), segment


def outlined(pair: LongPair, kernels: Any) -> None:
    """The programs that fill the table of a pair (``runtime.programs.outline``)."""
    block = whole(pair)
    sizes = sizes_of(pair, block, kernels, True, None, None)
    lines, _ = _launch(pair, block, NO_BOUND, kernels, sizes)
    for arrays in (lines.rows, lines.columns):
        room = arrays.shape[-1]
        for length in {min(LEAST_PART * PARTS_RATIO**k, room) for k in range(4)}:
            _part(arrays, 0, 0, length)
    _most_beside(lines.rows, 0, 0, 0, ToCell(0, 0, 0, 0))


@dataclass(frozen=True)
class _Sizes:
    """Static sizes of a launch, and its lines."""

    shape: Any  # kernels_pallas.LongFill
    bands: int
    chunks: int
    band_step: int  # a line every so many bands
    capture: int  # a line every so many columns


def sizes_of(
    pair: LongPair,
    block: TableBlock,
    kernels: Any,
    keep: bool,
    rows: int | None,
    steps: int | None,
    interpret: Any = None,
    packed: bool | None = None,
    share: int = 1,
) -> _Sizes:
    large = block.rows * block.columns >= LARGE_CELLS
    # Rows and columns that a launch has room for: all blocks between the lines of a
    # large pair, which lie between bands, are one program.
    room = block.rows, block.columns
    if pair.m * pair.n >= LARGE_CELLS and not large:
        tallest = -(-pair.m // FEW_LINES) + 32 * 64
        room = max(room[0], tallest), max(room[1], -(-pair.n // FEW_LINES))
    steps = steps or (64 if room[1] >= 2**16 else 32)
    rows = rows or (16 if room[0] >= TALL_ROWS else 8)
    if packed is None:  # whether values of 16 bits hold the pair
        shape = kernels.LongFill(rows, pair.local, 4, 1, 2, steps=steps, packed=True,
                                 target=kernels.this_target())  # fmt: skip
        costs = pair.scores, pair.open, pair.extend
        packed = kernels.long_fits_packed(*costs, pair.m + pair.n, shape)
    bands, chunks = kernels.long_sizes(block.rows, block.columns, rows, steps, packed)
    largest = kernels.long_sizes(*room, rows, steps, packed)
    band_rows = rows * 32 * (2 if packed else 1)
    if large:
        band_step = -(-bands // FEW_LINES)
        capture = -(-block.columns // max(1, FEW_LINES // share))
    else:
        band_step, capture = max(1, LINE_ROWS // band_rows), LINE_COLUMNS
    if not keep:
        band_step, capture = bands, block.columns
    room_bands = -(-bands // 4) * 4 if large else bucket(largest[0], size=4)
    room_chunks = chunks if large else bucket(largest[1], size=4)
    columns = block.columns if large else room_chunks * steps * 4
    shape = kernels.LongFill(
        rows,
        pair.local,
        room_bands,
        room_chunks,
        len(pair.scores) + 1,
        slots=1 + (bands - 1) // band_step if large else 1 + room_bands // band_step,
        captures=-(-columns // capture) if keep else 1,
        steps=steps,
        last_row=not pair.local and "target_end" in pair.free,
        packed=packed,
        plain=interpret is not None,
        target=kernels.this_target(),
    )
    return _Sizes(shape, bands, chunks, band_step, capture)


def arrays_of(
    pair: LongPair,
    block: TableBlock,
    bound: int,
    kernels: Any,
    sizes: _Sizes,
    until: tuple[int, int] | None = None,
):
    """(kernels_pallas.LongBlock, chunks of a segment)."""
    s, padding = sizes.shape, len(pair.scores)
    height, width = s.bands * s.band, 4 * s.width
    query = np.full(height, padding, np.uint8)
    query[: block.rows] = pair.query[block.i : block.i + block.rows]
    target = np.full(width, padding, np.uint8)
    target[: block.columns] = pair.target[block.j : block.j + block.columns]
    top = np.full((2, width), MINUS_INFINITY, np.int32)
    left = np.full((2, height), MINUS_INFINITY, np.int32)
    for room, line in ((top, block.top), (left, block.left)):
        room[0, : len(line.h) - 1] = line.h[1:]
        room[1, : len(line.h) - 1] = line.gap[1:]
    slots = np.zeros(s.bands + 1, np.int32)
    inner = range(sizes.band_step, sizes.bands, sizes.band_step)
    slots[list(inner)] = np.arange(1, len(inner) + 1)
    segment = -(-s.chunks // SEGMENTS) if pair.local else s.chunks
    costs = pruning.end_costs(pair, until)
    end = until or (pair.m, pair.n)
    numbers = kernels.LongNumbers(
        n=block.columns,
        m=block.rows,
        open=pair.open,
        extend=pair.extend,
        chunks=sizes.chunks,
        bands=sizes.bands,
        capture=sizes.capture,
        bound=bound,
        rest_rows=end[0] - block.i,
        rest_columns=end[1] - block.j,
        step_score=max(int(pair.scores.max(initial=0)), 0),
        query_extend=costs[0],
        target_extend=costs[1],
        stored_chunks=segment,
    )
    numbers = type(numbers)(*(np.int32(x) for x in numbers))
    corner = np.int32(block.top.h[0])
    return kernels.LongBlock(numbers, query, target, top, left, corner, slots), segment


def _grid(
    pair: LongPair, block: TableBlock, lines: Any, sizes: _Sizes, segment: int
) -> LineGrid:
    s = sizes.shape
    rows: dict[int, Any] = {}
    for k, band in enumerate(range(sizes.band_step, sizes.bands, sizes.band_step)):
        i = band * s.band
        rows[block.i + i] = DeviceLine(
            lines.rows, k + 1, int(block.left.h[i]), block.columns
        )
    columns: dict[int, Any] = {}
    ends = [*range(sizes.capture, block.columns, sizes.capture), block.columns]
    for k, j in enumerate(ends):
        columns[block.j + j] = DeviceLine(
            lines.columns, k, int(block.top.h[j]), block.rows
        )
    last = columns[block.j + block.columns].h
    row = np.full(block.columns + 1, MINUS_INFINITY, np.int32)
    row[0], row[-1] = block.left.h[-1], last[-1]
    if s.last_row:
        row[1:] = np.maximum(
            np.asarray(lines.last_row)[: block.columns], MINUS_INFINITY
        )
    # Of the last row nobody asks for more: blocks begin at lines above.
    rows[block.i + block.rows] = Line(row, np.full_like(row, MINUS_INFINITY))
    chunks = int(np.asarray(lines.computed, np.int64)[: sizes.bands].sum())
    cells = min(chunks * s.band * s.steps * 4, block.rows * block.columns)
    # Where the best of the block may lie: the last lane is behind.
    best, spots = np.asarray(lines.best)[: sizes.bands], []
    places = zip(*np.nonzero(best == best.max()), strict=True) if pair.local else ()
    for band, number in places:
        wide = segment * s.steps * 4
        first, last = band * s.band + 1, min((band + 1) * s.band, block.rows)
        before = max(int(number) * wide - (s.lanes - 1) * 4, 0)
        end = min((int(number) + 1) * wide, block.columns)
        across = block.j + before + 1, block.j + end
        down = block.i + int(first), block.i + int(last)
        spots.append(Spot(int(best.max()), down, across))
    return LineGrid(block, rows, columns, tuple(spots), cells)
