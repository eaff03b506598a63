"""Substitution scores of a strip of rows, read for all lanes of a block at once.

Where lanes have a query each, a strip's scores with every letter of a target lie in
words of four rows, a byte each, so one look-up serves four cells. For tables filled by
differences the scores of a tile are looked up before it is filled (``words_of``,
``tile_of``): then its blocks of cells read them as they read a profile. A byte holds a
shifted score ``s`` (``difference_fill.shifted``) as it is, or, of an identity, as
``2 * (s // base) + s % base``: the match is its lowest bit.
"""

from collections.abc import Sequence
from functools import partial, reduce
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxalign.one_function import one_function
from jaxalign.pairs.dp import matrix_rows
from jaxalign.pairs.dp.matrix_rows import put_row, row_of
from jaxalign.pairs.dp.sweep import TILE

LOOK_UPS = 2048  # of one loop: more would be spread over threads, which JAX 0.10 cannot
WORD_ROWS = 4  # whose bytes are a word


class Block(NamedTuple):
    """Targets in lanes: T of them, in B lanes of L columns. ``tiles`` are used."""

    codes: jax.Array  # uint8 (L, B), pad letter A where no residue is
    target: jax.Array  # int32 (L / TILE, B), the target that a tile belongs to
    origin: jax.Array  # int32 (L / TILE, B), column of that target's first residue
    begins: jax.Array  # bool (L / TILE, B), the first tile of a target
    lane: jax.Array  # int32 (T,)
    first: jax.Array  # int32 (T,), column of the first residue
    length: jax.Array  # int32 (T,); first + length is a multiple of TILE
    tiles: jax.Array  # int32 ()
    targets: jax.Array  # int32 (), how many of the T are real
    scores: Any = None  # jax.Array: database profile (A+1, L+2, B), or by row


def tables_of(block: Block, letters: jax.Array):
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
    block: Block,
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
    block: Block, letters: Sequence[jax.Array], t: jax.Array, fused: bool
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
    block: Block, letters: jax.Array, j: jax.Array, dtype: jax.typing.DTypeLike
):
    width = block.scores.shape[1]
    codes = lax.convert_element_type(row_of(block.codes, j), jnp.int32)
    index = letters * width + codes
    flat = lax.reshape(block.scores, (block.scores.size,))
    picked = flat.at[index].get(mode="promise_in_bounds")
    return lax.convert_element_type(picked, dtype)


def bytes_of(scores: jax.Array, base: int):
    """Shifted scores (A + 1, A + 1), uint8 or uint16, as bytes."""
    if base > 1:
        scores = scores // base * 2 + scores % base
    return scores.astype(jnp.uint8)


def words_of(table: jax.Array, letters: jax.Array, fused: bool = True):
    """The scores of a strip, four rows a word: a list of uint32 (A + 1, B).

    table : uint8 (A + 1, A + 1), row = query letter; letters : uint8 (rows, B)
    """
    (rows, lanes), count = letters.shape, len(table)

    def of_letter(scores: jax.Array, letters: jax.Array):
        entries = [lax.index_in_dim(scores, a, keepdims=False) for a in range(count)]
        entries = [lax.broadcast(x, letters.shape) for x in entries]
        return matrix_rows.by_code(entries, letters)

    def four_rows(scores: jax.Array):
        wide = lax.convert_element_type(scores, jnp.uint32)
        words = [row_of(wide, k) for k in range(WORD_ROWS)]
        words = [lax.shift_left(x, lax.full_like(x, 8 * k))
                 for k, x in enumerate(words)]  # fmt: skip
        return reduce(lax.bitwise_or, words)

    choose, join = one_function(of_letter, fused), one_function(four_rows, fused)

    def put_words(letter: jax.Array, words: list[jax.Array]):
        scores = choose(row_of(columns, letter), letters)
        return [
            put_row(x, join(scores[k : k + WORD_ROWS]), letter)
            for k, x in zip(range(0, rows, WORD_ROWS), words, strict=True)
        ]

    columns = lax.transpose(table, (1, 0))
    empty = lax.full((count, lanes), 0, jnp.uint32)
    empty = [empty] * (rows // WORD_ROWS)
    return lax.fori_loop(jnp.int32(0), jnp.int32(count), put_words, empty)


def tile_of(words: list[jax.Array], codes: jax.Array, t: jax.Array, fused: bool = True):
    """The scores of tile t for the rows of a strip: uint8 (rows, TILE, B).

    words : of ``words_of``; codes : uint8 (L, B)
    """
    lanes, rows = codes.shape[1], WORD_ROWS * len(words)
    together = TILE  # columns
    while together > 1 and together * lanes > LOOK_UPS:
        together //= 2

    def look_up(word: jax.Array, codes: jax.Array):
        lane = lax.broadcasted_iota(jnp.int32, codes.shape, 1)
        at = lax.convert_element_type(codes, jnp.int32) * lanes + lane
        return word.reshape(-1).at[at].get(mode="promise_in_bounds")

    find = one_function(look_up, fused)
    units = [one_function(partial(_row, k), fused) for k in range(WORD_ROWS)]

    def columns(c: jax.Array, scores: jax.Array):
        some = lax.dynamic_slice_in_dim(codes, t * TILE + c * together, together)
        for w, word in enumerate(words):
            four = find(word, some)
            for k, unit in enumerate(units):
                start = jnp.int32(WORD_ROWS * w + k), c * together, jnp.int32(0)
                scores = lax.dynamic_update_slice(scores, unit(four)[None], start)
        return scores

    empty = lax.full((rows, TILE, lanes), 0, jnp.uint8)
    return lax.fori_loop(0, TILE // together, columns, empty)


def _row(k: int, words: jax.Array):
    """Row k of the four of some words."""
    byte = lax.shift_right_logical(words, lax.full_like(words, 8 * k))
    return lax.convert_element_type(byte, jnp.uint8)


def widened(byte: jax.Array, base: int, cell: jax.typing.DTypeLike):
    """Bytes as the cells take them."""
    wide = lax.convert_element_type(byte, cell)
    if base == 1:
        return wide
    one, factor = lax.full_like(wide, 1), lax.full_like(wide, base)
    return lax.shift_right_logical(wide, one) * factor + (wide & one)
