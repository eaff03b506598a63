"""Edit distances of many pairs at once, by bit-parallel words.

Bits lie along queries, which all threads of a program share, and a thread has a target
of its own, as for common subsequences (``bits.lcs``). It keeps P and N, where a column
of the table rises and falls from a letter of the query to the next, and takes them
through its letters c (Myers 1999, Hyyrö 2003):

    D = (((M[c] & P) + P) ^ P) | M[c] | N,    U = N | ~(D | P),    V = D & P & ~S,
    H = U << 1,    P' = V << 1 | ~(D | H),    N' = D & H | S.

That is ten instructions for 32 cells, and two loads: AND, add with carry, LOP3, OR,
LOP3, LOP3, two funnel shifts, LOP3, LOP3. What a letter takes beside its words matters
where these are few, and bits beyond a query are lost. So queries lie one after the
other in a *stack* of words, each in a *slot* of as many bits. A slot begins with a bit
that stands for row 0 of the table, and what follows the letters is at least a bit.

These are the separators S. Row 0 rises with each letter: its U is 1 since N is, which
comes from S of the letter before. Separators have P = M = 0 but for what comes up from
the last letter of a query to the bit after it. There the carry of the sum ends, a bit
later at the latest, and V is 0. The padding letter matches separators alone, and before
it S is 0. Then U and H are 0, and it changes nothing before a target's first letter:
targets end together.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax

from kernels_pallas.bits.match_words import (
    LETTERS_OF_WORD,
    WORD_BITS,
    TargetBlocks,
    every_pair,
    match_words,
    row_words,
    table_of,
)
from kernels_pallas.core.mosaic import THREADS, Threads, one_bits
from kernels_pallas.edits.edit_words import next_row

STACK_WORD_COUNTS = (17, 21, 25, 29, 33, 37, 41, 49)  # of each a program
SEPARATORS = 2  # bits of a slot at least that are no letters
MAX_EDIT_QUERY = STACK_WORD_COUNTS[-1] * WORD_BITS - SEPARATORS  # letters
WORD_COST, LETTER_COST = 10, 10  # instructions, of a letter of a target


def edit_stack(longest: int) -> tuple[int, int]:
    """Words of a stack, and queries in it, that take the least time for queries of at
    most so many letters, up to ``MAX_EDIT_QUERY``."""
    choices = [
        (words, words * WORD_BITS // (longest + SEPARATORS))
        for words in STACK_WORD_COUNTS
    ]

    def cost(choice):
        words, slots = choice
        return (WORD_COST * words + LETTER_COST) / slots

    return min((choice for choice in choices if choice[1]), key=cost)


@partial(jax.jit, static_argnames=("words", "padding", "stacks"))
def edit_table(codes, first, lengths, slots, *, words: int, padding: int, stacks: int):
    """Match words of queries: int32 (stacks, size), rows of ``row_words(words)``.

    Parameters
    ----------
    codes : uint8 (X,); first, lengths : int32 (Q,)
    slots : int32, queries of a stack: query q is in stack q // slots
    words : static; a slot has 32 * words // slots bits, two more than letters at least
    padding : static, the letter after the last
    stacks : static
    """
    bits = words * WORD_BITS
    room = bits // slots
    bit = jnp.arange(bits, dtype=jnp.int32)[None, :]
    slot = bit // room
    query = jnp.arange(stacks, dtype=jnp.int32)[:, None] * slots + slot
    inside = (slot < slots) & (query < len(lengths))
    query = jnp.where(inside, query, 0)
    place = bit - slot * room - 1
    letters = codes.at[first[query] + place].get(mode="clip").astype(jnp.int32)
    inside &= (place >= 0) & (place < lengths[query])
    # The last row has no bits: nothing is the letter after the padding letter.
    return table_of(jnp.where(inside, letters, padding), padding + 1)


@partial(jax.jit, static_argnames=("words", "padding", "rows", "interpret"))
def edit_distances(
    table, layout, blocks: TargetBlocks, lengths,
    *, words: int, padding: int, rows: int, interpret=None,
):  # fmt: skip
    """Edit distance of queries to every target.

    Parameters
    ----------
    table : int32 (stacks, size), of ``edit_table``
    layout : int32 (4,), queries of a stack, and of all stacks, ``rows`` at most; the
        first block of targets that any of them meets, and the one after the last
    blocks : of ``target_blocks``, with ``front``
    lengths : int32 (N,), of targets
    words, padding : static, as of ``edit_table``
    rows : static
    interpret : parameters of the GPU interpreter, for tests

    Returns
    -------
    int32 (rows, N)
        Rows beyond the queries, and blocks that none meets, may hold anything.
    """
    program = partial(_edit_program, words=words, padding=padding, rows=rows)
    return every_pair(program, table, (*blocks, lengths, layout), interpret, rows)


def _edit_program(table, starts, steps, letters, lengths, layout, out, match, *,
                  words, size, blocks, padding, rows, plain):  # fmt: skip
    """The queries of a stack against the targets of one block."""
    th = Threads(plain)
    stack, block = lax.axis_index("query"), lax.axis_index("block")
    match, thread = match_words(th, table, match, stack, size), th.index()
    slots, start, width = layout[0], starts[block], row_words(words)
    met = (stack * slots < layout[1]) & (layout[2] <= block) & (block < layout[3])
    steps = jnp.where(met, steps[block], jnp.int32(0))
    last_row = jnp.int32(letters.shape[0] // THREADS - 1)

    def four_letters(t):
        """Those of the next block after the last."""
        row = jnp.minimum(start + t, last_row)
        return th.load(letters, thread, base=row, stride=THREADS)[0]

    def place_of(four, k):
        return (th.shift_right(four, 8 * k) & 255 if k else four & 255) * width

    def row(place):
        return [partial(_word, th, match, place, w) for w in range(words)]

    def separators(place):
        """S before a letter: the row of the padding letter, or nothing before that."""
        letter = jnp.maximum(place, th.splat((padding - 1) * width))
        return [partial(_word, th, match, letter, width + w) for w in range(words)]

    def step(t, state):
        four, rises, falls = state
        following = four_letters(t + 1)
        places = [place_of(four, k) for k in range(LETTERS_OF_WORD)]
        places.append(place_of(following, 0))
        for place, after in zip(places, places[1:], strict=False):
            masks, edge = row(place), (th.splat(0),)
            rises, falls, _ = next_row(th, rises, falls, masks, edge, separators(after))
        return following, rises, falls

    inside = [~word() for word in row(th.splat(padding * width))]
    four = four_letters(jnp.int32(0))
    falls = tuple(word() for word in separators(place_of(four, 0)))
    state = four, tuple(inside), falls
    _, rises, falls = lax.fori_loop(jnp.int32(0), steps, step, state)
    (length,) = th.load(lengths, thread, base=block, stride=THREADS)
    room = lax.div(jnp.int32(words * WORD_BITS), slots)

    def add_slot(rise, fall, state):
        """Add what a word has of a slot; store the distance where the slot ends.

        state : the slot, its first bit in the word, the total so far
        """
        slot, begin, total = state
        slot_bits = th.splat(_bits(begin, begin + room))
        total = total + one_bits(th, rise & slot_bits) - one_bits(th, fall & slot_bits)
        query, ends = stack * slots + slot, begin + room <= WORD_BITS
        where = th.splat((ends & (query < rows)).astype(jnp.int32))
        at, ends = query * blocks + block, ends.astype(jnp.int32)
        th.store(out, thread, (total + length,), base=at, stride=THREADS, where=where)
        return slot + ends, begin + room, total & th.splat(ends - 1)

    def in_word(state):
        slot, begin, _ = state
        return (begin < WORD_BITS) & (slot < slots)

    slot, total = jnp.int32(0), th.splat(0)
    for w, word in enumerate(row(th.splat(padding * width))):
        inside = ~word()
        add = partial(add_slot, rises[w] & inside, falls[w] & inside)
        # A slot that does not end in a word goes on in the next one.
        state = slot, slot * room - w * WORD_BITS, total
        slot, _, total = lax.while_loop(in_word, add, state)


def _word(th: Threads, rows, place, word: int):
    return th.load(rows, place, more=word)[0]


def _bits(begin, end):
    """A word of the bits from ``begin`` on, before ``end``: int32."""
    first = jnp.maximum(begin, jnp.int32(0))
    beyond = WORD_BITS - jnp.minimum(end, jnp.int32(WORD_BITS))
    ones = jnp.int32(-1)
    return lax.shift_left(ones, first) & lax.shift_right_logical(ones, beyond)
