"""Substitution scores of a strip of rows, read for all lanes of a block at once."""

from collections.abc import Sequence
from typing import Any, Protocol

import jax
import jax.numpy as jnp
from jax import lax

from jaxalign.one_function import one_function
from jaxalign.pairs.dp import matrix_rows
from jaxalign.pairs.dp.matrix_rows import row_of
from jaxalign.pairs.dp.sweep import TILE

LOOK_UPS = 2048  # of one loop: more would be spread over threads, which JAX 0.10 cannot


class ScoredBlock(Protocol):
    """A ``lane_fill.Block`` that has its scores."""

    @property
    def codes(self) -> jax.Array: ...

    @property
    def tiles(self) -> jax.Array: ...

    @property
    def scores(self) -> Any: ...


def tables_of(block: ScoredBlock, letters: jax.Array):
    """Where every lane has a query of its own: its rows' scores of each target letter,
    four rows a uint32, so that one look-up serves four cells. ((A+1) * B,) each; none
    where lanes share a query, or scores need more than 8 bits."""
    lanes = block.codes.shape[1]
    narrow = block.scores.dtype == jnp.int8 and letters.shape[0] % 4 == 0
    if letters.shape[1] != lanes or not narrow:
        return ()
    # (rows, B, A+1): lane by lane, so that a strip's table is gathered in whole rows.
    scores = lax.bitcast_convert_type(block.scores[letters], jnp.uint8)
    wide = scores.astype(jnp.uint32).reshape(-1, 4, lanes * scores.shape[-1])
    shifts = jnp.arange(0, 32, 8, dtype=jnp.uint32)[None, :, None]
    return tuple(jnp.sum(wide << shifts, axis=1, dtype=jnp.uint32))


def scores_of(
    block: ScoredBlock,
    letters: Sequence[jax.Array],
    tables: tuple[jax.Array, ...],
    begin: jax.Array | None,
    j: jax.Array,
    *,
    dtype: jax.typing.DTypeLike,
    fused: bool,
):
    """Substitution scores of the rows of a strip in column j: (B,) each, or where they
    stand in the profile, to be read by the row itself. ``begin`` is the column that a
    profile of a tile begins with, or None."""
    lanes = block.codes.shape[1]
    if tables:
        return _look_up_four(block, tables, j, dtype, fused)
    if letters[0].shape[0] == lanes:
        return [_look_up(block, one, j, dtype) for one in letters]
    j = j if begin is None else j - begin
    return [(block.scores, one, j) for one in letters]


def from_profile(
    scores: jax.Array, letters: jax.Array, j: jax.Array, dtype: jax.typing.DTypeLike
):
    """The row of the database profile of a letter (1,) in column j: (B,)."""
    start = lax.squeeze(letters, (0,)), j, jnp.int32(0)
    row = lax.dynamic_slice(
        scores, start, (1, 1, scores.shape[2]), allow_negative_indices=False
    )
    return lax.convert_element_type(lax.squeeze(row, (0, 1)), dtype)


def profile_of_tile(
    block: ScoredBlock, letters: Sequence[jax.Array], t: jax.Array, fused: bool
):
    """The database profile of a tile for the rows of a strip, which nothing else
    needs where they are positions: (rows, TILE, B), the dtype of the scores."""
    lanes, count = block.codes.shape[1], block.scores.shape[1]
    together = TILE  # columns
    while together > 1 and together * lanes > LOOK_UPS:
        together //= 2

    def look_up(row: jax.Array, codes: jax.Array):
        entries = [lax.index_in_dim(row, a, keepdims=False) for a in range(count)]
        return matrix_rows.by_code(
            [lax.broadcast(x, codes.shape) for x in entries], codes
        )

    one = one_function(look_up, fused)
    rows = [row_of(block.scores, lax.index_in_dim(x, 0, keepdims=False))
            for x in letters]  # fmt: skip

    def columns(c: jax.Array, scores: jax.Array):
        at = t * TILE + c * together
        codes = lax.dynamic_slice_in_dim(block.codes, at, together).reshape(-1)
        for k, row in enumerate(rows):
            new = one(row, codes).reshape(1, together, lanes)
            start = jnp.int32(k), c * together, jnp.int32(0)
            scores = lax.dynamic_update_slice(scores, new, start)
        return scores

    empty = lax.full((len(rows), TILE, lanes), 0, block.scores.dtype)
    return lax.fori_loop(0, TILE // together, columns, empty)


def _look_up(
    block: ScoredBlock, letters: jax.Array, j: jax.Array, dtype: jax.typing.DTypeLike
):
    width = block.scores.shape[1]
    codes = lax.convert_element_type(row_of(block.codes, j), jnp.int32)
    index = letters * width + codes
    flat = lax.reshape(block.scores, (block.scores.size,))
    picked = flat.at[index].get(mode="promise_in_bounds")
    return lax.convert_element_type(picked, dtype)


def _look_up_four(
    block: ScoredBlock,
    tables: tuple[jax.Array, ...],
    j: jax.Array,
    dtype: jax.typing.DTypeLike,
    fused: bool,
):
    width, lanes = block.scores.shape[1], block.codes.shape[1]

    def find(codes: jax.Array, *tables: jax.Array):
        lane = lax.iota(jnp.int32, lanes)
        index = lane * width + lax.convert_element_type(codes, jnp.int32)
        return [x.at[index].get(mode="promise_in_bounds") for x in tables]

    words = one_function(find, fused)(row_of(block.codes, j), *tables)
    scores = []
    for word in words:
        word = lax.bitcast_convert_type(word, jnp.int32)
        for k in range(4):
            top = lax.shift_left(word, lax.full_like(word, 24 - 8 * k))
            score = lax.shift_right_arithmetic(top, lax.full_like(word, 24))
            scores.append(lax.convert_element_type(score, dtype))
    return scores
