"""Edit distances of pairs, each with its own query, by bit-parallel words.

A thread has a pair. Bits lie along the *columns*, one of its two sequences, and the
thread takes P and N of ``words`` words through the letters of the other one
(``edits.edits`` has the recurrence). No other thread can use its match words, so
these have to be few and cheap to make. A code of few bits has a row of match words for
each letter. Other codes fall into two or three *fields* of bits: a row has the columns
where a field has a value, and the columns of a letter are the AND of a row of each
field. A protein of five bits takes 4 + 4 + 2 rows instead of 26. The words of the
threads of a warp lie side by side in shared memory, so each finds its own in a bank of
its own, whichever row it reads.

More columns than ``words`` words hold are a *group* after the other. What crosses from
a group to the next are three bits a letter: the carry of the sum, and the highest bits
of U and V. They wait in global memory.

Bits beyond the last column may be anything, since nothing comes down from them: the sum
of the differences leaves them out. Padding letters come before the first letter of the
other sequence. They match no column and have h = 0, so that they change nothing.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental.pallas import mosaic_gpu as plgpu

from kernels_pallas.bits.match_words import (
    LETTERS_OF_WORD,
    WORD_BITS,
    TargetBlocks,
)
from kernels_pallas.core.mosaic import THREADS, Threads, kernel, one_bits
from kernels_pallas.edits.edit_words import next_row

PAIR_WORD_COUNTS = (1, 2, 4, 6, 8, 10, 12, 16)  # of all columns
GROUP_WORD_COUNTS = (12, 16)  # of a group, where there are several
ROWS_OF_WORD = WORD_BITS // LETTERS_OF_WORD  # rows of letters, whose bits fill a word
MAX_ROWS_READ = PAIR_WORD_COUNTS[-1] * ROWS_OF_WORD  # from the first of a block on
FEW_CODES = 4  # that share a program


class CodeField(NamedTuple):
    """Some bits of a letter, and the rows of match words of their values."""

    shift: int  # the lowest bit
    bits: int
    first: int  # row
    rows: int


def pair_padding(codes: int) -> int:
    """The padding letter of codes from 0 up to ``codes - 1``, 255 codes at most."""
    return FEW_CODES if codes <= FEW_CODES else 2 ** codes.bit_length() - 1


def code_fields(padding: int) -> list[CodeField]:
    """The fields of codes from 0 up to ``padding``."""
    bits = padding.bit_length()
    parts = 1 if bits < 4 else 2 if bits == 4 else 3
    fields: list[CodeField] = []
    shift = row = 0
    for part in range(parts):
        width = bits // parts + (part < bits % parts)
        rows = min(2**width, (padding >> shift) + 1)
        fields.append(CodeField(shift, width, row, rows))
        shift, row = shift + width, row + rows
    return fields


@partial(jax.jit, static_argnames=("words", "padding", "several", "interpret"))
def pair_edits(
    columns: TargetBlocks, width, letters: TargetBlocks, height,
    *, words: int, padding: int, several: bool = False, interpret=None,
):  # fmt: skip
    """Edit distances of pairs.

    Parameters
    ----------
    columns : of ``target_blocks``, without ``front``, and room for ``MAX_ROWS_READ``
        more rows than those of the blocks
    letters : of ``target_blocks``, with ``front``
    width, height : int32 (N,), lengths of the sequences of both
    words : static, of ``PAIR_WORD_COUNTS``; sequences of ``columns`` have at most 32
        letters a word, or any number if ``several``
    padding : static, of ``pair_padding``: the padding letter of both
    several : static, whether there may be groups of columns
    interpret : parameters of the GPU interpreter, for tests

    Returns
    -------
    int32 (N,)
    """
    count = columns.starts.shape[0]
    program = _groups_program if several else _columns_program
    rows = sum(field.rows for field in code_fields(padding))
    results = [jax.ShapeDtypeStruct((count * THREADS,), jnp.int32)]
    if several:
        results.append(jax.ShapeDtypeStruct(letters.letters.shape, jnp.int32))
    about = {"words": words, "padding": padding, "plain": interpret is not None}
    run = kernel(
        partial(program, **about),
        results,
        [plgpu.SMEM((rows * words * THREADS,), jnp.int32)],
        (count,),
        ("block",),
        interpret,
    )
    return run(*columns, width, *letters, height)[0]


class _Block(NamedTuple):
    """The pairs of a program, as all their groups need them."""

    th: Threads
    words: int
    padding: int
    columns: tuple  # the first row of a block, and the letters of all
    letters: tuple  # the same, and how many rows
    table: jax.Array  # match words
    width: jax.Array  # columns of each thread


class _PairRefs(NamedTuple):
    """The inputs of a launch, as ``pair_edits`` takes them."""

    columns: TargetBlocks
    width: jax.Array
    letters: TargetBlocks
    height: jax.Array


def _given(refs: tuple) -> tuple[_PairRefs, tuple]:
    """The inputs among the arrays of a program, and those that follow them."""
    fields = len(TargetBlocks._fields)
    columns, letters = refs[:fields], refs[fields + 1 : 2 * fields + 1]
    width, height = refs[fields], refs[2 * fields + 1]
    sides = TargetBlocks(*columns), width, TargetBlocks(*letters), height
    return _PairRefs(*sides), refs[2 * fields + 2 :]


def _block_of(th: Threads, given: _PairRefs, words, padding, table):
    """The pairs of this program, and the rows of each."""
    block, (columns, width, letters, height) = lax.axis_index("block"), given
    (w,) = th.load(width, th.index(), base=block, stride=THREADS)
    (rows,) = th.load(height, th.index(), base=block, stride=THREADS)
    about = _Block(
        th=th, words=words, padding=padding,
        columns=(columns.starts[block], columns.letters),
        letters=(letters.starts[block], letters.steps[block], letters.letters),
        table=table, width=w,
    )  # fmt: skip
    return about, rows


def _columns_program(*refs, words, padding, plain):
    """128 pairs whose columns are no more than the words hold."""
    th, block = Threads(plain), lax.axis_index("block")
    given, (out, table) = _given(refs)
    about, total = _block_of(th, given, words, padding, table)
    total = _group(about, jnp.int32(0), total, None)
    th.store(out, th.index(), (total,), base=block, stride=THREADS)


def _groups_program(*refs, words, padding, plain):
    """128 pairs of any lengths."""
    th, block = Threads(plain), lax.axis_index("block")
    given, (out, edges, table) = _given(refs)
    about, total = _block_of(th, given, words, padding, table)
    _begin_edges(about, edges)
    rows = words * ROWS_OF_WORD
    groups = lax.div(given.columns.steps[block] + jnp.int32(rows - 1), jnp.int32(rows))

    def group(g, total):
        return _group(about, g, total, edges)

    total = lax.fori_loop(jnp.int32(0), groups, group, total)
    th.store(out, th.index(), (total,), base=block, stride=THREADS)


def _group(about: _Block, group, total, edges):
    """Take a group of columns through all letters; adds the differences of its last
    row to a total.

    edges : three bits of each letter left of the group, replaced by those right of it;
        None where there is one group
    """
    th, words = about.th, about.words
    thread = th.index()
    start, steps, letters = about.letters
    rows = _match_words(about, group)

    def step(t, state):
        rises, falls = state
        (four,) = th.load(letters, thread, base=start + t, stride=THREADS)
        if edges is not None:
            (left,) = th.load(edges, thread, base=start + t, stride=THREADS)
            right = th.splat(0)
        for k in range(LETTERS_OF_WORD):
            code = _letter(th, four, k)
            edge = (_real(about, code),) if edges is None else _edge(th, left, k)
            masks = _masks(about, rows, code)
            rises, falls, edge = next_row(th, rises, falls, masks, edge)
            if edges is not None:
                right = right | _edge_bits(th, edge, k)
        if edges is not None:
            th.store(edges, thread, (right,), base=start + t, stride=THREADS)
        return rises, falls

    state = (th.splat(-1),) * words, (th.splat(0),) * words
    rises, falls = lax.fori_loop(jnp.int32(0), steps, step, state)
    left = about.width - th.splat(group * (words * WORD_BITS))
    for k, (rise, fall) in enumerate(zip(rises, falls, strict=True)):
        inside = _first_bits(th, left - WORD_BITS * k)
        total = total + one_bits(th, rise & inside) - one_bits(th, fall & inside)
    return total


def _letter(th: Threads, four, k: int):
    return _down(th, four, 8 * k) & 255


def _real(about: _Block, code):
    """h: 0 of the padding letter, else 1."""
    return jnp.minimum(about.th.splat(about.padding) - code, about.th.splat(1))


def _masks(about: _Block, rows, code) -> list:
    """Functions without arguments -> match words of a letter of each thread."""
    th, words = about.th, about.words
    places = []
    for field in code_fields(about.padding):
        value = _down(th, code, field.shift) & (2**field.bits - 1)
        place = value * (words * THREADS) + th.index()
        places.append((place, field.first * words * THREADS))

    def mask(word: int):
        common = [
            th.load(rows, place, more=first + word * THREADS)[0]
            for place, first in places
        ]
        return _and(common)

    return [partial(mask, word) for word in range(words)]


def _match_words(about: _Block, group):
    """Fill the table with the match words of a group of columns; it is returned, to be
    read."""
    th, words, table = about.th, about.words, about.table
    start, columns = about.columns
    thread, fields = th.index(), code_fields(about.padding)

    def fill(w, _):
        row = start + (group * words + w) * ROWS_OF_WORD
        planes = [th.splat(0)] * about.padding.bit_length()
        for q in range(ROWS_OF_WORD):
            more = q * THREADS
            (four,) = th.load(columns, thread, base=row, stride=THREADS, more=more)
            planes = [
                plane | _up(th, _bits_of_letters(th, four, k), LETTERS_OF_WORD * q)
                for k, plane in enumerate(planes)
            ]
        place = thread + th.splat(w * THREADS)
        for field in fields:
            chosen = planes[field.shift : field.shift + field.bits]
            for value in range(field.rows):
                sides = [x if value >> k & 1 else ~x for k, x in enumerate(chosen)]
                more = (field.first + value) * words * THREADS
                th.store(table, place, (_and(sides),), more=more)
        return jnp.int32(0)

    lax.fori_loop(jnp.int32(0), jnp.int32(words), fill, jnp.int32(0))
    return th.read_only(table)


def _bits_of_letters(th: Threads, four, k: int):
    """Bit k of four letters, in the lowest four bits."""
    few = _down(th, four, k) & 0x01010101
    # A product brings bit 8 * j to place 28 + j.
    return _down(th, few * sum(1 << (28 - 7 * j) for j in range(LETTERS_OF_WORD)), 28)


def _begin_edges(about: _Block, edges) -> None:
    """The edges of the first group: U is h, V and the carry are 0."""
    th, thread = about.th, about.th.index()
    start, steps, letters = about.letters

    def step(t, _):
        (four,) = th.load(letters, thread, base=start + t, stride=THREADS)
        word = th.splat(0)
        for k in range(LETTERS_OF_WORD):
            real = _real(about, _letter(th, four, k))
            word = word | _up(th, real, LETTERS_OF_WORD + k)
        th.store(edges, thread, (word,), base=start + t, stride=THREADS)
        return jnp.int32(0)

    lax.fori_loop(jnp.int32(0), steps, step, jnp.int32(0))


def _edge(th: Threads, word, k: int) -> tuple:
    """The edge of letter k of four, for ``next_row``: carry, U and V."""
    return _down(th, word, k) & 1, _up(th, word, 27 - k), _up(th, word, 23 - k)


def _edge_bits(th: Threads, edge, k: int):
    """The edge of letter k, as bits k, 4 + k and 8 + k of a word."""
    carry, up, down = edge
    up = _down(th, up, 27 - k) & (1 << LETTERS_OF_WORD + k)
    down = _down(th, down, 23 - k) & (1 << 2 * LETTERS_OF_WORD + k)
    return _up(th, carry, k) | up | down


def _first_bits(th: Threads, count):
    """A word of its first bits, none for a count below 0 and all for one above 32."""
    count = jnp.minimum(jnp.maximum(count, th.splat(0)), th.splat(WORD_BITS))
    half = lax.shift_right_logical(count, th.splat(1))  # no shift by all bits at once
    return ~lax.shift_left(lax.shift_left(th.splat(-1), half), count - half)


def _and(words):
    common = words[0]
    for word in words[1:]:
        common = common & word
    return common


def _down(th: Threads, words, count: int):
    return th.shift_right(words, count) if count else words


def _up(th: Threads, words, count: int):
    return lax.shift_left(words, th.splat(count)) if count else words
