"""Edit distances of many pairs at once, by bit-parallel words.

Bits lie along a query, which all threads of a program share, and a thread has a target
of its own, as for common subsequences (``pairs.lcs``). It keeps P and N, where a column
of the table rises and falls from a letter of the query to the next, and takes them
through its letters c (Myers 1999, Hyyrö 2003):

    D = (((M[c] & P) + P) ^ P) | M[c] | N,    U = N | ~(D | P),    V = D & P,
    H = U << 1 | h,    P' = V << 1 | ~(D | H),    N' = D & H.

That is ten instructions for 32 cells, and a load: AND, add with carry, LOP3, OR, LOP3,
AND, two funnel shifts, LOP3, AND. What a letter takes beside its words matters where
these are few. So h stands behind the match words of its letter, and a multiplication,
which another unit does, brings it to U << 1 | h. A query ends at the highest bit of its
last word. The
bits before its first letter match the padding letter alone and begin with P = 0. The
padding letter has h = 0, others h = 1, so that it changes nothing before a target's
first letter (``jaxalign.pairs.dp.edit_bits``): targets end together.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax

from kernels_pallas.core.mosaic import THREADS, Threads
from kernels_pallas.pairs.edit_words import next_row, one_bits
from kernels_pallas.pairs.match_words import (
    LETTERS_OF_WORD,
    WORD_BITS,
    TargetBlocks,
    every_pair,
    match_words,
    row_words,
    table_of,
)

EDIT_WORD_COUNTS = (1, 2, 4, 6, 8, 10, 12, 16, 20, 24, 32, 48)  # of each a program
MAX_EDIT_QUERY = EDIT_WORD_COUNTS[-1] * WORD_BITS  # letters, whose words fit registers


def edit_words(longest: int) -> int:
    """``words`` for queries of at most so many letters, up to ``MAX_EDIT_QUERY``."""
    return next(words for words in EDIT_WORD_COUNTS if words * WORD_BITS >= longest)


def edit_row_words(words: int) -> int:
    """Words of a row of match words and h: an odd number."""
    return row_words(words + 1)


@partial(jax.jit, static_argnames=("words", "padding"))
def edit_table(codes, first, lengths, *, words: int, padding: int):
    """Match words of queries: int32 (Q, size), rows of ``edit_row_words(words)``.

    Parameters
    ----------
    codes : uint8 (X,); first, lengths : int32 (Q,)
    words : static; no query has more than 32 times as many letters
    padding : static, the letter after the last
    """
    place = jnp.arange(words * WORD_BITS, dtype=jnp.int32)[None, :]
    place = place - (words * WORD_BITS - lengths[:, None])
    letters = codes.at[first[:, None] + place].get(mode="clip").astype(jnp.int32)
    letters = jnp.where(place >= 0, letters, padding)
    return table_of(letters, padding, edit_row_words(words))


@partial(jax.jit, static_argnames=("words", "padding", "interpret"))
def edits(table, blocks: TargetBlocks, *, words: int, padding: int, interpret=None):
    """Edit distance of every query to every target.

    Parameters
    ----------
    table : int32 (Q, size), of ``edit_table``
    blocks : of ``target_blocks``, with ``front``
    words, padding : static, as of ``edit_table``
    interpret : parameters of the GPU interpreter, for tests

    Returns
    -------
    int32 (Q, N)
    """
    program = partial(_edit_program, words=words, padding=padding)
    return every_pair(program, table, blocks, interpret)


def _edit_program(table, starts, steps, letters, out, match, *,
                  words, size, blocks, padding, plain):  # fmt: skip
    """One query against the targets of one block."""
    th = Threads(plain)
    query, block = lax.axis_index("query"), lax.axis_index("block")
    rows, thread = match_words(th, table, match, query, size), th.index()
    start = starts[block]
    last = th.splat(padding * edit_row_words(words))

    def step(t, state):
        (four,) = th.load(letters, thread, base=start + t, stride=THREADS)
        for k in range(LETTERS_OF_WORD):
            code = lax.shift_right_logical(four, th.splat(8 * k)) & 255
            place = code * edit_row_words(words)
            rise = _mask(th, rows, place, words)
            masks = [partial(_mask, th, rows, place, w) for w in range(words)]
            rises, falls, total = state
            rises, falls, _ = next_row(th, rises, falls, masks, (rise,))
            state = rises, falls, total + rise
        return state

    begin = tuple(~_mask(th, rows, last, w) for w in range(words))
    nothing = th.splat(0)
    state = begin, (nothing,) * words, nothing
    rises, falls, total = lax.fori_loop(jnp.int32(0), steps[block], step, state)
    for rise, fall in zip(rises, falls, strict=True):
        total = total + one_bits(th, rise) - one_bits(th, fall)
    th.store(out, thread, (total,), base=query * blocks + block, stride=THREADS)


def _mask(th: Threads, rows, place, word: int):
    return th.load(rows, place, more=word)[0]
