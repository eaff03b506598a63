"""End cells: where the score is read, and which of several cells it is.

Candidates: (m, n) always; all of row m where the target's end is free; all of column n
where the query's end is free; in local mode every cell. Among equals the smallest
query index wins, then the smallest target index. A pair whose two sides are swapped
(tie = 1, rows are the user's target) prefers the smallest column first.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxalign.dp.recurrence import border


class End(NamedTuple):
    """Score and end cell; rows i and columns j count residues consumed."""

    score: jax.Array
    i: jax.Array
    j: jax.Array


def border_end(corner, column, row, free, tie):
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


def _choose(which, yes, no):
    return End(*(jnp.where(which, a, b) for a, b in zip(yes, no, strict=True)))


def sweep_end(filled, block, m, gaps, free, tie, local):
    """The end cell of every lane of a ``sweep.Filled``."""
    n = block.columns - block.offset
    if local:
        inside = filled.best_column > 0
        j = jnp.where(inside, filled.best_column - block.offset, 0)
        return End(filled.best, filled.best_row, j)
    column = jnp.arange(filled.last_row.shape[0], dtype=jnp.int32)[:, None]
    j = column - block.offset[None, :] + 1
    usable = (j >= 1) & (column < block.columns)
    lowest = jnp.iinfo(filled.corner.dtype).min
    h = jnp.where(usable, filled.last_row, lowest)
    at = jnp.argmax(h, axis=0).astype(jnp.int32)
    best = jnp.take_along_axis(h, at[None, :], axis=0)[0]
    first = border(m, free["query_start"], gaps).astype(best.dtype)  # H[m, 0]
    j = jnp.where(first >= best, 0, at - block.offset + 1)
    return border_end(
        End(filled.corner, m, n),
        End(filled.column_best, filled.column_row, n),
        End(jnp.maximum(best, first), m, j),
        free,
        tie,
    )
