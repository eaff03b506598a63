"""Scores of lanes that have a query each, for tables filled by differences.

A strip's scores with every letter of a target lie in words of four rows, a byte each,
so one look-up serves four cells. The scores of a tile are looked up before it is
filled: then its blocks of cells read them as they read a profile.

A byte holds a shifted score ``s`` (``difference_fill.shifted``) as it is, or, of an
identity, as ``2 * (s // base) + s % base``: the match is its lowest bit.
"""

from functools import partial, reduce

import jax
import jax.numpy as jnp
from jax import lax

from jaxalign.one_function import one_function
from jaxalign.pairs.dp import matrix_rows
from jaxalign.pairs.dp.matrix_rows import put_row, row_of
from jaxalign.pairs.dp.sweep import TILE
from jaxalign.pairs.dp.sweep.lane_scores import LOOK_UPS

WORD_ROWS = 4  # whose bytes are a word


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
