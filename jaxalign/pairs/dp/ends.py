"""End cells: where the score is read, and which of several cells it is.

Candidates: (m, n) always; all of row m where the target's end is free; all of column n
where the query's end is free; in local mode every cell. Among equals the smallest
query index wins, then the smallest target index. A pair whose two sides are swapped
(tie = 1, rows are the user's target) prefers the smallest column first.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxalign.affine import Gaps
from jaxalign.one_function import one_function
from jaxalign.pairs.dp.matrix_rows import put_row, row_of
from jaxalign.pairs.dp.recurrence import border
from jaxalign.pairs.dp.sweep import TILE, lane_fill


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

    Parameters
    ----------
    corner, column, row : End
        (m, n), the best of column n (smallest i) and the best of row m (smallest j);
        both bests include the corner.
    free : dict of bool scalars
    tie : 1 where the smallest column goes before the smallest row
    """
    by_column = free["query_end"] & (column.i < corner.i)
    by_row = free["target_end"] & (row.j < corner.j)
    row_first = (row.score > column.score) | ((row.score == column.score) & (tie > 0))
    rest = _choose(by_row, row, corner)
    return _choose(by_column & ~(by_row & row_first), column, rest)


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
    """The end cell of every target of a ``sweep.Filled``; m and tie are (T,).

    Targets before the query's first tile hold nothing of use, but a cell of their table
    all the same: from any such cell a walk ends.
    """
    cell = _sweep_end(filled, block, m, gaps, free, tie, local, fused)
    return EndCell(
        cell.score, jnp.clip(cell.i, 0, m), jnp.clip(cell.j, 0, block.length)
    )


def _sweep_end(
    filled: lane_fill.BlockFill,
    block: lane_fill.Block,
    m: jax.Array,
    gaps: Gaps,
    free: Mapping[str, Any],
    tie: jax.Array,
    local: bool,
    fused: bool,
):
    last = (block.first + block.length) // TILE - 1, block.lane
    if local:
        best = EndCell(filled.best, filled.row, filled.column)
        best = _running(best, block, tie, fused)
        score, i, column = jax.tree.map(lambda x: x[last], best)
        if i is None:
            return EndCell(score, m, block.length)
        inside = score > 0
        j = jnp.where(inside, column - block.first + 1, 0)
        return EndCell(score, jnp.where(inside, i, 0), j)
    n = block.length
    corner = EndCell(filled.last_row[block.first + n - 1, block.lane], m, n)
    column = EndCell(filled.best[last], filled.row[last], n)
    along = _best_of_row(filled.last_row, block, fused)
    row = jax.tree.map(lambda x: x[last], along)
    first = border(m, free["query_start"], gaps)  # H[m, 0]
    j = jnp.where(first >= row.score, 0, row.j - block.first + 1)
    row = EndCell(jnp.maximum(row.score, first), m, j)
    return border_end(corner, column, row, free, tie)


def _best_of_row(last_row: jax.Array, block: lane_fill.Block, fused: bool):
    """The best of row m so far in the target of each tile; columns of the block."""
    lowest = jnp.iinfo(last_row.dtype).min
    h = jnp.where(lane_fill.inside_index(block) >= 1, last_row, lowest)
    h = h.reshape(-1, TILE, h.shape[-1])
    place = jnp.argmax(h, axis=1).astype(jnp.int32)
    tile = jnp.arange(len(h), dtype=jnp.int32)[:, None]
    row_best = EndCell(jnp.max(h, axis=1), None, tile * TILE + place)
    return _running(row_best, block, jnp.zeros_like(block.lane), fused)


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
            new = jax.tree.map(lambda x: row_of(x, t), tiles_best)
            better = row_of(begins, t) | lax.gt(new.score, best.score)
            if new.i is not None:
                equal = lax.eq(new.score, best.score) & lax.lt(new.i, best.i)
                better |= equal & row_of(rows_first, t)
            best = jax.tree.map(lambda x, y: lax.select(better, x, y), new, best)
            return best, jax.tree.map(lambda x, y: put_row(x, y, t), out, best)

        zero = jax.tree.map(lambda x: row_of(x, 0), tiles_best)
        return lax.fori_loop(0, tiles, tile, (zero, tiles_best))[1]

    rows_first = (tie == 0)[block.target]
    return one_function(run, fused)(tiles_best, block.begins, rows_first, block.tiles)
