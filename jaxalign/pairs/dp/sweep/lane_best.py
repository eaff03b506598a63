"""The best cell of every tile, found as a strip sweeps over it."""

from collections.abc import Sequence
from functools import reduce
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from jaxalign.one_function import one_function
from jaxalign.pairs.dp.matrix_rows import put_row, row_of
from jaxalign.pairs.dp.sweep.cell_blocks import together


def track(h: Sequence[jax.Array], local: bool, paths: bool, zero: int = 0):
    """Local mode: the running best of a tile; with backtrack, its row and column."""
    first = lax.full_like(h[0], 0)
    if not local:
        return ()
    return (first, first, first) if paths else (lax.full_like(h[0], zero),)


def follow(
    track: tuple[jax.Array, ...],
    h: Sequence[jax.Array],
    place: jax.Array,
    tie: jax.Array | None,
    fused: bool,
):
    """The column ``place`` of the tile, counted from 0, joins the running best: its
    value, the row in the strip and the column. The smallest row goes first, then the
    column; the other way round where the two sides are swapped."""
    if len(track) < 3:
        return tuple(reduce(lax.max, h, best) for best in track)

    def join(
        best: jax.Array,
        row: jax.Array,
        at: jax.Array,
        place: jax.Array,
        tie: jax.Array,
        *h: jax.Array,
    ):
        value, k = h[0], lax.full_like(row, 0)
        for i, h_i in enumerate(h[1:], 1):
            k = lax.select(lax.gt(h_i, value), lax.full_like(k, i), k)
            value = lax.max(value, h_i)
        equal = (
            lax.eq(value, best) & lax.lt(k, row) & lax.eq(tie, lax.full_like(tie, 0))
        )
        better = lax.gt(value, best) | equal
        here = lax.broadcast(place, at.shape)
        at, row = lax.select(better, here, at), lax.select(better, k, row)
        return together(lax.max(value, best), row, at)

    # Converted here: LLVM's vectors have as many lanes as the widest type of a loop
    # allows.
    place = lax.convert_element_type(place, track[0].dtype)
    return one_function(join, fused)(*track, place, tie, *h)


def best_of_column(h: Sequence[jax.Array]):
    """(value, row) of the last column: rows below m repeat m, so they never win."""
    best, row = h[0], lax.full_like(h[0], 0)
    for k, value in enumerate(h):
        row = lax.select(lax.gt(value, best), lax.full_like(row, k), row)
        best = lax.max(best, value)
    return best, row, None


def keep(
    filled: Any,
    t: jax.Array,
    new_best: tuple,
    corner: tuple | None,
    tie: jax.Array | None,
    fused: bool,
):
    """Fold the best of a strip in tile t into what the strips above left there.
    ``corner``: the first row of the strip, the first column of the tile.

    A function of its own: fused with the stores, its reads would have XLA copy the
    whole arrays for every tile.
    """
    if filled.row is None:
        best = lax.max(new_best[0], row_of(filled.best, t))
        return filled._replace(best=put_row(filled.best, best, t))
    old_arrays = filled.best, filled.row, filled.column
    old = [None if x is None else row_of(x, t) for x in old_arrays]
    new = one_function(_join, fused)(new_best, old, corner, tie)
    best, row, column = (
        x if x is None else put_row(x, y, t)
        for x, y in zip(old_arrays, new, strict=True)
    )
    return filled._replace(best=best, row=row, column=column)


def _join(new_best: tuple, old: Sequence, corner: tuple, tie: jax.Array | None):
    """The better of two cells of a tile: of this strip, and of the strips above."""
    (value, k, place), (first_row, first_column) = new_best, corner
    best, row, column = old
    better = lax.gt(value, best)
    if place is not None and tie is not None:  # both with paths alone
        at = lax.convert_element_type(place, jnp.int32) + first_column
        positive = lax.gt(lax.min(tie, value), lax.full_like(value, 0))
        better |= positive & lax.eq(value, best) & lax.lt(at, column)
        column = lax.select(better, at, column)
    i = lax.convert_element_type(k, jnp.int32) + first_row
    return lax.max(value, best), lax.select(better, i, row), column
