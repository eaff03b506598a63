"""From an end cell to a path: where the score is read, and the traceback.

The traceback goes from direction nibbles to operations, many pairs at once, in linear
time: the walk of the 2011 paper (its kernel 2). After a move up it goes on up while
the c_up bit of the cell just left is set, likewise left; else the b bits decide.

End cells: where the score is read, and which of several cells it is.

Candidates: (m, n) always; all of row m where the target's end is free; all of column n
where the query's end is free; in local mode every cell. Among equals the smallest query
index wins, then the smallest target index. A pair whose two sides are swapped (tie = 1,
rows are the user's target) prefers the smallest column first.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxalign.affine import Gaps
from jaxalign.one_function import one_function
from jaxalign.pairs.dp.matrix_rows import put_row, row_of
from jaxalign.pairs.dp.recurrence import border
from jaxalign.pairs.dp.sweep import TILE, lane_cells, lane_fill


class EndCell(NamedTuple):
    """Score and end cell, numbers or arrays; rows i and columns j count residues
    consumed. Of a row that is known, ``i`` may be None."""

    score: Any
    i: Any
    j: Any


def border_end(
    corner: EndCell,
    column: EndCell,
    row: EndCell,
    free: Mapping[str, Any],
    tie: jax.Array | int,
):
    """Global and free-end modes.

    corner, column, row : End, (m, n), the best of column n (smallest i) and the best of
        row m (smallest j); both bests include the corner
    free : dict of bool scalars
    tie : 1 where the smallest column goes before the smallest row
    """
    by_column = free["query_end"] & (column.i < corner.i)
    by_row = free["target_end"] & (row.j < corner.j)
    row_first = (row.score > column.score) | ((row.score == column.score) & (tie > 0))
    row_or_corner = _choose(by_row, row, corner)
    return _choose(by_column & ~(by_row & row_first), column, row_or_corner)


def host_end(row: Any, column: Any, free: Mapping[str, Any]) -> EndCell:
    """``border_end`` of one pair, from arrays of NumPy: H of row m, (n + 1,), and of
    column n, (m + 1,); as Python integers."""
    m, n, i, j = len(column) - 1, len(row) - 1, column.argmax(), row.argmax()
    cells = (row[n], m, n), (column[i], i, n), (row[j], m, j)
    corner, by_column, by_row = (EndCell._make(map(jnp.asarray, x)) for x in cells)
    return EndCell._make(map(int, border_end(corner, by_column, by_row, free, 0)))


def _choose(which: jax.Array, yes: EndCell, no: EndCell):
    return EndCell(*(jnp.where(which, a, b) for a, b in zip(yes, no, strict=True)))


def corner(last_cells: jax.Array, block: lane_fill.Block, m: jax.Array):
    """(m, n) of every target, of H[m, :] in the last column of every tile."""
    n = block.length
    return EndCell(last_cells[(block.first + n) // TILE - 1, block.lane], m, n)


def sweep_end(
    filled: lane_fill.BlockFill,
    block: lane_fill.Block,
    m: jax.Array,
    gaps: Gaps,
    free: Mapping[str, Any],
    tie: jax.Array,
    *,
    local: bool,
    fused: bool,
):
    """The end cell of every target of a ``lane_fill.BlockFill``; m and tie are (T,).

    Targets before the query's first tile hold nothing of use, but a cell of their table
    all the same: from any such cell a walk ends.
    """
    n = block.length
    last = (block.first + n) // TILE - 1, block.lane
    if local:
        best = EndCell(filled.best, filled.row, filled.column)
        best = _running(best, block, tie, fused)
        score, i, column = jax.tree.map(lambda x: x[last], best)
        cell = EndCell(score, m, n)
        if i is not None:
            inside = score > 0
            j = jnp.where(inside, column - block.first + 1, 0)
            cell = EndCell(score, jnp.where(inside, i, 0), j)
    else:
        corner = EndCell(filled.last_row[block.first + n - 1, block.lane], m, n)
        column = EndCell(filled.best[last], filled.row[last], n)
        # The best of row m so far in the target of each tile; columns of the block.
        lowest = jnp.iinfo(filled.last_row.dtype).min
        h = jnp.where(lane_fill.inside_index(block) >= 1, filled.last_row, lowest)
        h = h.reshape(-1, TILE, h.shape[-1])
        place = jnp.argmax(h, axis=1).astype(jnp.int32)
        tile = jnp.arange(len(h), dtype=jnp.int32)[:, None]
        row_best = EndCell(jnp.max(h, axis=1), None, tile * TILE + place)
        along = _running(row_best, block, jnp.zeros_like(block.lane), fused)
        row = jax.tree.map(lambda x: x[last], along)
        first = border(m, free["query_start"], gaps)  # H[m, 0]
        j = jnp.where(first >= row.score, 0, row.j - block.first + 1)
        row = EndCell(jnp.maximum(row.score, first), m, j)
        cell = border_end(corner, column, row, free, tie)
    return EndCell(cell.score, jnp.clip(cell.i, 0, m), jnp.clip(cell.j, 0, n))


def _running(tiles_best: EndCell, block: lane_fill.Block, tie: jax.Array, fused: bool):
    """The best cell of every tile (L / TILE, B) -> the best so far of its target.

    Tiles come in the order of columns, so an equal value of a later tile wins only by
    a smaller row, and only where rows go before columns (tie = 0).
    """

    def run(
        tiles_best: EndCell, begins: jax.Array, rows_first: jax.Array, tiles: jax.Array
    ):
        def tile(t: jax.Array, state: tuple[EndCell, EndCell]):
            best, out = state
            tile_best = jax.tree.map(lambda x: row_of(x, t), tiles_best)
            better = row_of(begins, t) | lax.gt(tile_best.score, best.score)
            if tile_best.i is not None:
                equal = lax.eq(tile_best.score, best.score)
                equal &= lax.lt(tile_best.i, best.i)
                better |= equal & row_of(rows_first, t)
            best = jax.tree.map(lambda x, y: lax.select(better, x, y), tile_best, best)
            return best, jax.tree.map(lambda x, y: put_row(x, y, t), out, best)

        zero = jax.tree.map(lambda x: row_of(x, 0), tiles_best)
        return lax.fori_loop(0, tiles, tile, (zero, tiles_best))[1]

    rows_first = (tie == 0)[block.target]
    return one_function(run, fused)(tiles_best, block.begins, rows_first, block.tiles)


class EndRegion(NamedTuple):
    """The strips of rows and the tiles of columns that hold an end cell, first and last
    of each: int32 (T,). Tiles are those of the block."""

    first_strip: jax.Array
    last_strip: jax.Array
    first_tile: jax.Array
    last_tile: jax.Array


def end_regions(
    filled: lane_fill.BlockFill, block: lane_fill.Block, tie: jax.Array,
    tile: jax.Array, fused: bool,
):  # fmt: skip
    """The best local score of every target and an ``EndRegion`` that holds its end
    cell, from a fill with ``strips``; tie is bool (T,).

    The end has the smallest row of all best cells: it is in the first strip that has
    one, and in any tile that has one in that strip. Where tie is 1 it has the smallest
    column: it is in the first tile that has one, in any strip.
    """
    zero = jnp.zeros(filled.best.shape, jnp.int16)

    def run(
        filled_tiles: tuple[jax.Array, ...], begins: jax.Array, tie: jax.Array,
        first_tile: jax.Array, tiles: jax.Array, state: tuple[jax.Array, ...],
    ):  # fmt: skip
        def tile(t: jax.Array, state: tuple):
            (best, *region), out = state
            value, first, last = (row_of(x, t) for x in filled_tiles)
            columns, place = row_of(tie, t), lax.broadcast(t, first.shape)
            place = lax.convert_element_type(place, first.dtype)
            equal = lax.eq(value, best) & ~columns
            further = equal & lax.eq(first, region[0])
            better = row_of(begins, t) | lax.gt(value, best)
            better |= equal & lax.lt(first, region[0])
            candidate = value, first, lax.select(columns, last, first), place, place
            region[3] = lax.select(further, place, region[3])
            sides = zip(candidate, (best, *region), strict=True)
            merged = lane_cells.together(*(lax.select(better, *x) for x in sides))
            return merged, tuple(
                put_row(x, y, t) for x, y in zip(out, merged, strict=True)
            )

        initial = tuple(row_of(x, 0) for x in state)
        return lax.fori_loop(first_tile, tiles, tile, (initial, state))[1]

    tiles_of = filled.best, filled.row, filled.column
    state = filled.best, zero, zero, zero, zero
    inputs = tiles_of, block.begins, tie[block.target], tile, block.tiles, state
    state = one_function(run, fused)(*inputs)
    last = (block.first + block.length) // TILE - 1, block.lane
    best, *region = (x[last] for x in state)
    return best, EndRegion._make(region)


M, I, D = 0, 1, 2  # noqa: E741  (BAM's codes: I consumes query, D consumes target)
DONE = 3


class PathCounts(NamedTuple):
    """Counts of the paths; all int32 (B,).

    ``steps`` is uint8 (T, B), one operation a step **from the end to the start**,
    ``DONE`` after the last, or None.
    """

    i: jax.Array
    j: jax.Array
    identities: jax.Array
    columns: jax.Array
    gap_openings: jax.Array
    gaps: jax.Array
    move: jax.Array  # what a gap still open at (i, j) must go on with, else M
    last: jax.Array  # the operation nearest the start, M where there is none
    steps: jax.Array | None


class WalkBorders(NamedTuple):
    """Where a walk ends: ``top`` stops it on row 0 (target_start is free or the mode
    is local), ``left`` on column 0, ``floor`` on the given row whatever is free."""

    top: jax.Array
    left: jax.Array
    floor: jax.Array


def start(end_i: Any, end_j: Any, steps: jax.Array | None = None) -> PathCounts:
    """A walk that has not begun, at its end cell."""
    zero = end_i * 0  # of NumPy, where the ends are
    return PathCounts(end_i, end_j, zero, zero, zero, zero, zero, zero, steps)


def walk(
    initial: PathCounts,
    nibble_at: Callable[[jax.Array, jax.Array], jax.Array],
    same_at: Callable[[jax.Array, jax.Array], jax.Array],
    rules: WalkBorders,
) -> PathCounts:
    """Walk every pair to its start cell.

    initial : Walked, ``start(...)``, or where a walk was left at a ``floor``
    nibble_at : (i, j) -> uint8 (B,), direction nibble of cell (i, j), asked for i, j >=
        1 only; elsewhere its value does not matter
    same_at : (i, j) -> bool (B,), whether residues i - 1 and j - 1 are identical
    """

    def unfinished(state: tuple[PathCounts, jax.Array, jax.Array]):
        return jnp.any(~state[1])

    def step(state: tuple[PathCounts, jax.Array, jax.Array]):
        walked, ended, t = state
        op, move = _next(walked, nibble_at(walked.i, walked.j), rules)
        op = jnp.where(ended, DONE, op)
        same = same_at(walked.i, walked.j)
        going = op != DONE
        is_gap = going & (op != M)
        opened = is_gap & ((op != walked.last) | (walked.columns == 0))
        steps = walked.steps
        if steps is not None:
            row = op.astype(jnp.uint8)[None]
            steps = lax.dynamic_update_slice(steps, row, (t, jnp.int32(0)))
        add = jnp.int32
        walked = PathCounts(
            walked.i - add(going & (op != D)),
            walked.j - add(going & (op != I)),
            walked.identities + add((op == M) & same),
            walked.columns + add(going),
            walked.gap_openings + add(opened),
            walked.gaps + add(is_gap),
            jnp.where(going, move, walked.move),
            jnp.where(going, op, walked.last),
            steps,
        )
        return walked, _done(walked, op, rules), t + 1

    at_end = _done(initial, jnp.zeros_like(initial.i), rules)
    begin_state = initial, at_end, jnp.int32(0)
    return lax.while_loop(unfinished, step, begin_state)[0]


def _next(walked: PathCounts, nibble: jax.Array, rules: WalkBorders):
    """(operation or DONE, the move a gap must go on with after it)."""
    nibble = nibble.astype(jnp.int32)
    b, c_up, c_left = nibble >> 2, (nibble >> 1) & 1, nibble & 1
    op = jnp.where(b == 3, M, jnp.where(b == 1, I, jnp.where(b == 2, D, DONE)))
    op = jnp.where(walked.move == M, op, walked.move)
    move = jnp.where((op == I) & (c_up == 1), I, M)
    move = jnp.where((op == D) & (c_left == 1), D, move)
    on_border = (walked.i == 0) | (walked.j == 0)
    op = jnp.where(on_border, jnp.where(walked.i == 0, D, I), op)
    return op, jnp.where(on_border, M, move)


def _done(walked: PathCounts, op: jax.Array, rules: WalkBorders):
    """Whether the start cell is reached (or the floor, for a walk in strips)."""
    at_top, at_left = walked.i == 0, walked.j == 0
    stop = (at_top & (rules.top | at_left)) | (at_left & (rules.left | at_top))
    return stop | (op == DONE) | (walked.i <= rules.floor)
