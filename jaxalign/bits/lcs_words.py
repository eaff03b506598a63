"""Longest common subsequences by bit-parallel words.

Crochemore, Iliopoulos, Pinzon and Reid (2001), in the form of Hyyrö (2004). Bit j of V
says that row i of the table of LCS does not rise from column j to column j + 1; M[c]
has the bits of the columns whose letter is c. A letter c of the query takes V to the
next row,

    U = V & M[c],    V' = (V + U) | (V & ~M[c]),

and the zero bits of the last V are the length of the LCS. A letter that matches nothing
leaves V as it is, so it may stand for the wildcard and for padding.

The bits of a target lie in words of 64, its first column in the lowest bit of the first
word, and targets lie side by side in lanes. Targets of up to 32 letters take words of
32, of which an instruction has twice as many. All lanes read the same letter of a
query, so that the match words of a step are one row. Of the sum V + U only the carry
joins one word to the next: it is the highest bit of U | (V & ~sum), since U is part of
V.

Words come in blocks of ``BLOCK_WORDS``, and a block is one letter behind the block
before it: a step needs the carry that the block before left in the step before. Within
a step XLA computes the carries of a block once for each of its words, so a block is
short. JAX's 64-bit mode has to be on.
"""

from collections.abc import Callable, Sequence
from functools import partial

import jax
import jax.numpy as jnp
from jax import lax

from jaxalign.one_function import one_function

WORD_BITS = 64
MAX_WORDS = 16  # of a target that are swept at once; those of a longer one in groups
BLOCK_WORDS = 2
PADDING = 8  # letters without a match before and after a query: a step for each block


def _next_word(v: jax.Array, match: jax.Array, carry: jax.Array | None):
    """(the word of the next row, its carry)."""
    u = v & match
    total = v + u if carry is None else v + u + carry
    highest = jnp.asarray(8 * v.dtype.itemsize - 1, v.dtype)
    over = lax.shift_right_logical(u | (v & ~total), highest)
    return total | (v & ~match), over


def _next_row(
    words: Sequence[jax.Array],
    carries: tuple[jax.Array, ...],
    match: Callable[[int, int], jax.Array],
    first: jax.Array | None,
):
    """The words of all blocks a letter later, and what each carries to the next one.

    match : function (block, word) -> match words, of the letter that the block is at
    first : the carry into the first block, or None
    """
    words, behind = list(words), []
    for block, start in enumerate(range(0, len(words), BLOCK_WORDS)):
        carry = carries[block - 1] if block else first
        for word in range(start, min(start + BLOCK_WORDS, len(words))):
            words[word], carry = _next_word(words[word], match(block, word), carry)
        behind.append(carry)
    return tuple(words), tuple(behind)


def _sweep(
    match: Callable[[jax.Array, int], jax.Array],
    letters: jax.Array,
    shape: tuple[int, int],
    dtype: jnp.dtype,
    before: jax.Array | None = None,
):
    """Zero bits of the last row (lanes,) of some words, and their carries.

    match : function (letter, word) -> match words (lanes,); letters from
        ``-PADDING`` to ``letters + PADDING`` are asked for
    shape : (words, lanes)
    before : uint64 (rows, lanes) carries into the first word at each letter, or None
    """
    count, lanes = shape
    blocks = -(-count // BLOCK_WORDS)
    zero = lax.full((lanes,), jnp.asarray(0, dtype))
    ones = ~zero

    def step(i: jax.Array, state: tuple):
        words, carries, after = state
        first = (
            None if before is None else lax.dynamic_index_in_dim(before, i, 0, False)
        )
        words, carries = _next_row(
            words, carries, lambda block, word: match(i - block, word), first
        )
        if before is not None:  # the last block is at letter i - blocks + 1
            at = lax.max(i - jnp.int32(blocks - 1), jnp.int32(0))
            after = lax.dynamic_update_index_in_dim(after, carries[-1], at, 0)
        return words, carries, after

    after = None if before is None else lax.full_like(before, 0)
    state = (ones,) * count, (zero,) * blocks, after
    steps = letters + jnp.int32(blocks - 1)
    words, _, after = lax.fori_loop(jnp.int32(0), steps, step, state)
    total = zero
    for word in words:
        total = total + lax.population_count(~word)
    return total, after


def _subsequences(
    match: Callable[[jax.Array, jax.Array, int], jax.Array],
    letters: jax.Array,
    shape: tuple[int, int],
    dtype: jnp.dtype,
    groups: jax.Array,
    rows: int,
):
    """LCS (lanes,) of one query, or of a query a lane: int16 where there is one group
    of words, else int32.

    match : function (group, letter, word) -> match words (lanes,)
    rows : static, room for the letters of a query; 0: there is one group
    """
    if not rows:
        one = _sweep(lambda i, w: match(jnp.int32(0), i, w), letters, shape, dtype)
        return one[0].astype(jnp.int16)
    lanes = shape[1]

    def group(k: jax.Array, state: tuple[jax.Array, jax.Array]):
        total, carries = state
        zeros, carries = _sweep(
            lambda i, w: match(k, i, w), letters, shape, dtype, carries
        )
        return total + zeros, carries

    empty = (lax.full((n, lanes), jnp.asarray(0, dtype)) for n in (1, rows + PADDING))
    total, carries = empty
    state = total.reshape(lanes), carries
    lcs = lax.fori_loop(jnp.int32(0), groups, group, state)[0]
    return lcs.astype(jnp.int32)


def _word(match: jax.Array, group: jax.Array, letter: jax.Array, word: int):
    """Match words (lanes,) of a letter."""
    lanes = match.shape[-1]
    at = group, letter.astype(jnp.int32), jnp.int32(word), jnp.int32(0)
    return lax.dynamic_slice(match, at, (1, 1, 1, lanes)).reshape(lanes)


@partial(jax.jit, static_argnames=("rows",))
def lcs_of_queries(
    match: jax.Array,
    groups: jax.Array,
    letters: jax.Array,
    start: jax.Array,
    length: jax.Array,
    count: jax.Array,
    *,
    rows: int = 0,
):
    """LCS of some queries with each of some targets in lanes.

    Parameters
    ----------
    match : uint64 or uint32 (room for groups, letters + 1, words, lanes)
        A group has ``words`` of all targets; the last letter matches nothing.
    groups : int32
        As many as the longest target needs.
    letters : uint8 (F,)
        Queries one after the other, ``PADDING`` times the last letter before, between
        and after them.
    start, length : int32 (slots,)
        Where the letters of each query begin, and how many they are.
    count : int32
        The number of queries.
    rows : static
        0 where there is one group; else no query is longer.

    Returns
    -------
    int16 (slots, lanes), int32 where there are several groups
    """
    _, _, words, lanes = match.shape

    def all_queries(
        match: jax.Array,
        groups: jax.Array,
        letters: jax.Array,
        start: jax.Array,
        length: jax.Array,
        count: jax.Array,
    ):
        def one(q: jax.Array, results: jax.Array):
            first = lax.dynamic_index_in_dim(start, q, 0, False)

            def match_of(group: jax.Array, i: jax.Array, word: int):
                code = lax.dynamic_index_in_dim(letters, first + i, 0, False)
                return _word(match, group, code, word)

            m = lax.dynamic_index_in_dim(length, q, 0, False)
            shape = words, lanes
            lcs = _subsequences(match_of, m, shape, match.dtype, groups, rows)
            return lax.dynamic_update_index_in_dim(results, lcs, q, 0)

        kind = jnp.int32 if rows else jnp.int16
        results = lax.full((start.shape[0], lanes), kind(0))
        return lax.fori_loop(jnp.int32(0), count, one, results)

    return one_function(all_queries)(match, groups, letters, start, length, count)


@partial(jax.jit, static_argnames=("rows",))
def lcs_of_pairs(
    match: jax.Array,
    groups: jax.Array,
    letters: jax.Array,
    length: jax.Array,
    *,
    rows: int = 0,
):
    """LCS of pairs in lanes, each query with its own target.

    Parameters
    ----------
    match, groups, rows : as of ``lcs_of_queries``
    letters : uint8 (letters, lanes)
        A query a lane, ``PADDING`` times the last letter before it and as many at least
        after it.
    length : int32
        The longest of them.

    Returns
    -------
    int32 (lanes,)
    """
    _, _, words, lanes = match.shape

    def all_lanes(
        match: jax.Array, groups: jax.Array, letters: jax.Array, length: jax.Array
    ):
        lane = lax.iota(jnp.int32, lanes)

        def match_of(group: jax.Array, i: jax.Array, word: int):
            at = i + jnp.int32(PADDING)
            codes = lax.dynamic_index_in_dim(letters, at, 0, False)
            rows = lax.dynamic_slice(
                match,
                (group, jnp.int32(0), jnp.int32(word), jnp.int32(0)),
                (1, match.shape[1], 1, lanes),
            ).reshape(match.shape[1], lanes)
            return rows.at[codes.astype(jnp.int32), lane].get(
                mode="promise_in_bounds", unique_indices=True
            )

        shape = words, lanes
        lcs = _subsequences(match_of, length, shape, match.dtype, groups, rows)
        return lcs.astype(jnp.int32)

    return one_function(all_lanes)(match, groups, letters, length)
