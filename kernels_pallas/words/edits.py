"""Edit distances of many pairs at once, by bit-parallel words.

Bits lie along queries, which all threads of a program share, and a thread has a target
of its own, as for common subsequences (``words.lcs``). It keeps P and N, where a column
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

Of pairs, each with its own query, a thread has one. Bits lie along the *columns*, one
of its two sequences, and the thread takes P and N of ``words`` words through the
letters of the other one. No other thread can use its match words, so these have to be
few and cheap to make. A code of few bits has a row of match words for each letter.
Other codes fall into two or three *fields* of bits: a row has the columns where a field
has a value, and the columns of a letter are the AND of a row of each field. A protein
of five bits takes 4 + 4 + 2 rows instead of 26. The words of the threads of a warp lie
side by side in shared memory, so each finds its own in a bank of its own, whichever row
it reads.

More columns than ``words`` words hold are a *group* after the other. What crosses from
a group to the next are three bits a letter: the carry of the sum, and the highest bits
of U and V. They wait in global memory.

Bits beyond the last column may be anything, since nothing comes down from them: the sum
of the differences leaves them out. Padding letters come before the first letter of the
other sequence. They match no column and have h = 0, so that they change nothing.
"""

import operator
from functools import partial, reduce
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental.pallas import mosaic_gpu as plgpu

from kernels_pallas.core.mosaic import (
    THREADS,
    Threads,
    kernel,
    one_bits,
    words_of,
)
from kernels_pallas.words.lcs import (
    LETTERS_OF_WORD,
    WORD_BITS,
    TargetBlocks,
    every_pair,
    match_words,
    row_words,
    table_of,
)

ASM_WORDS = 8  # words of a statement
STACK_WORD_COUNTS = (17, 21, 25, 29, 33, 37, 41, 49)  # of each a program
SEPARATORS = 2  # bits of a slot at least that are no letters
MAX_EDIT_QUERY = STACK_WORD_COUNTS[-1] * WORD_BITS - SEPARATORS  # letters
WORD_COST, LETTER_COST = 10, 10  # instructions, of a letter of a target
PAIR_WORD_COUNTS = (1, 2, 4, 6, 8, 10, 12, 16)  # of all columns
GROUP_WORD_COUNTS = (12, 16)  # of a group, where there are several
ROWS_OF_WORD = WORD_BITS // LETTERS_OF_WORD  # rows of letters, whose bits fill a word
MAX_ROWS_READ = PAIR_WORD_COUNTS[-1] * ROWS_OF_WORD  # from the first of a block on
FEW_CODES = 4  # that share a program


def next_row(
    th: Threads,
    rises: tuple,
    falls: tuple,
    masks: Any,
    edge: tuple,
    separators: Any = (),
) -> tuple:
    """P and N of the next letter, their words from the lowest on, and the edge.

    masks : functions without arguments -> match words
    edge : (h,), 0 or 1, or what lies left of the words: the carry of the sum, 0 or 1,
        and the words U and V, of which the highest bit counts
    separators : as ``masks``, if at all: bits where V is 0 and N becomes 1
    """
    up: list = []
    down: list = []
    for at in range(0, len(rises), ASM_WORDS):
        part = slice(at, at + ASM_WORDS)
        match, cuts = ([word() for word in side[part]] for side in (masks, separators))
        count = len(match)
        new_words = (_plain_row if th.plain else _row)(
            rises[part], falls[part], match, cuts, *edge
        )
        up += new_words[:count]
        down += new_words[count : 2 * count]
        edge = tuple(new_words[2 * count :])
    return tuple(up), tuple(down), edge


def _plain_row(
    rises: tuple, falls: tuple, match: Any, cuts: Any, *edge: jax.Array
) -> list:
    """P and N of some words, the carry of the sum and the last U and V, in ``jnp``;
    ``edge`` is h, or these three of the words before."""
    cuts = cuts or [jnp.zeros(rises[0].shape, jnp.int32)] * len(rises)
    unit, zero = jnp.uint32(1), jnp.zeros(rises[0].shape, jnp.int32)
    carry, up, down = (zero, edge[0] << 31, zero) if len(edge) == 1 else edge

    def unsigned(x):
        return lax.bitcast_convert_type(x, jnp.uint32)

    over = carry.astype(jnp.uint32)
    up, down, new_words = unsigned(up), unsigned(down), []
    for words in zip(rises, falls, match, cuts, strict=True):
        p, n, m, cut = map(unsigned, words)
        matched = m & p
        total = matched + p + over
        over = lax.shift_right_logical(matched | (p & ~total), jnp.uint32(31))
        d = (total ^ p) | m | n
        before, up, down = (up, down), n | ~(d | p), d & p & ~cut
        h, v = (
            lax.shift_left(x, unit) | lax.shift_right_logical(y, jnp.uint32(31))
            for x, y in zip((up, down), before, strict=True)
        )
        new_words.append((v | ~(d | h), (d & h) | cut))
    new_words = [side for sides in zip(*new_words, strict=True) for side in sides]
    return [
        lax.bitcast_convert_type(x, jnp.int32) for x in (*new_words, over, up, down)
    ]


def _row(rises: tuple, falls: tuple, match: Any, cuts: Any, *edge: jax.Array) -> list:
    """``_plain_row`` in PTX: the carry stays in the condition code between words."""
    count = len(rises)
    outs = 2 * count + 3
    inputs = [*rises, *falls, *match, *cuts, *edge]
    operands = [f"${outs + k}" for k in range(len(inputs))]
    p, n, m, s = (operands[side * count :][:count] for side in range(4))
    before, first = operands[3 * count + len(cuts) :], len(edge) == 1
    names = [", ".join(f"{letter}{k}" for k in range(count)) for letter in "duw"]
    lines = [f".reg .b32 c, h, v, {names[0]};"]
    lines += [f".reg .b32 {names[1]}, {names[2]};"]
    lines += [f"and.b32 d{k}, {m[k]}, {p[k]};" for k in range(count)]
    if not first:  # 0 or 1 + (2^32 - 1): the carry
        lines.append(f"add.cc.u32 c, {before[0]}, 0xffffffff;")
    for k in range(count):
        add = "add" if k == 0 and first else "addc"
        lines.append(f"{add}.cc.u32 d{k}, d{k}, {p[k]};")
    lines.append(f"addc.u32 ${2 * count}, 0, 0;")
    for k in range(count):
        if k == 0 and first:
            edges = f"mad.lo.u32 h, u0, 2, {before[0]};", "shl.b32 v, w0, 1;"
        else:
            up, down = (f"u{k - 1}", f"w{k - 1}") if k else before[1:]
            edges = (
                f"shf.l.wrap.b32 h, {up}, u{k}, 1;",
                f"shf.l.wrap.b32 v, {down}, w{k}, 1;",
            )
        lines += [
            f"lop3.b32 d{k}, d{k}, {p[k]}, {m[k]}, 0xbe;",  # (sum ^ P) | M
            f"or.b32 d{k}, d{k}, {n[k]};",
            f"lop3.b32 u{k}, {n[k]}, d{k}, {p[k]}, 0xf1;",  # N | ~(D | P)
            f"lop3.b32 w{k}, d{k}, {p[k]}, {s[k]}, 0x40;"  # D & P & ~S
            if cuts
            else f"and.b32 w{k}, d{k}, {p[k]};",
            *edges,
            f"lop3.b32 ${k}, v, d{k}, h, 0xf1;",  # V | ~(D | H)
            f"lop3.b32 ${count + k}, d{k}, h, {s[k]}, 0xea;"  # D & H | S
            if cuts
            else f"and.b32 ${count + k}, d{k}, h;",
        ]
    lines.append(f"mov.b32 ${2 * count + 1}, u{count - 1};")
    lines.append(f"mov.b32 ${2 * count + 2}, w{count - 1};")
    kinds = ",".join(["=&r"] * outs + ["r"] * len(inputs))
    return list(words_of("{ " + " ".join(lines) + " }", kinds, outs, inputs))


def edit_stack(longest: int) -> tuple[int, int]:
    """The fastest stack, as (words, slots), for queries of at most ``longest`` letters,
    up to ``MAX_EDIT_QUERY``."""
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
    words : static; a slot has 32 * words // slots bits, at least its letters and two
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
    layout : int32 (4,), queries of a stack and of all stacks (at most ``rows``), and
        the half-open range of blocks of targets to compare them with
    blocks : of ``target_blocks``, with ``front``
    lengths : int32 (N,), of targets
    words, padding : static, as of ``edit_table``
    rows : static
    interpret : parameters of the GPU interpreter, for tests

    Returns
    -------
    int32 (rows, N)
        Undefined in rows beyond the queries and in blocks outside the range.
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
        """Four letters of row ``t``; after the last row, those of the next block."""
        row = jnp.minimum(start + t, last_row)
        return th.load(letters, thread, base=row, stride=THREADS)[0]

    def place_of(four, k):
        return (th.shift_right(four, 8 * k) & 255 if k else four & 255) * width

    def row(place):
        return [partial(_word, th, match, place, w) for w in range(words)]

    def separators(place):
        """S before a letter: the row of the padding letter, or 0 before padding."""
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
        """Add the bits of a slot within a word; store the distance if the slot ends."""
        slot, first_bit, total = state
        # A word of the bits of the slot.
        end, ones = first_bit + room, jnp.int32(-1)
        first = jnp.maximum(first_bit, jnp.int32(0))
        beyond = WORD_BITS - jnp.minimum(end, jnp.int32(WORD_BITS))
        bits = lax.shift_left(ones, first) & lax.shift_right_logical(ones, beyond)
        slot_bits = th.splat(bits)
        total = total + one_bits(th, rise & slot_bits) - one_bits(th, fall & slot_bits)
        query, ends = stack * slots + slot, first_bit + room <= WORD_BITS
        where = th.splat((ends & (query < rows)).astype(jnp.int32))
        at, ends = query * blocks + block, ends.astype(jnp.int32)
        th.store(out, thread, (total + length,), base=at, stride=THREADS, where=where)
        return slot + ends, first_bit + room, total & th.splat(ends - 1)

    def in_word(state):
        slot, first_bit, _ = state
        return (first_bit < WORD_BITS) & (slot < slots)

    slot, total = jnp.int32(0), th.splat(0)
    for w, word in enumerate(row(th.splat(padding * width))):
        inside = ~word()
        add = partial(add_slot, rises[w] & inside, falls[w] & inside)
        # A slot that does not end in a word goes on in the next one.
        state = slot, slot * room - w * WORD_BITS, total
        slot, _, total = lax.while_loop(in_word, add, state)


def _word(th: Threads, rows, place, word: int):
    return th.load(rows, place, offset=word)[0]


class CodeField(NamedTuple):
    """A range of bits of a letter, and the rows of match words for its values."""

    shift: int  # the lowest bit
    bits: int
    first: int  # row
    rows: int


def pair_padding(codes: int) -> int:
    """The padding letter for codes 0 to ``codes - 1`` (at most 255 codes)."""
    return FEW_CODES if codes <= FEW_CODES else 2 ** codes.bit_length() - 1


def code_fields(padding: int) -> list[CodeField]:
    """Split codes 0 to ``padding`` into fields of bits."""
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
    columns : from ``target_blocks`` without ``front``, with ``MAX_ROWS_READ`` spare
        rows after the blocks
    letters : from ``target_blocks`` with ``front``
    width, height : int32 (N,), lengths of the sequences in ``columns`` and ``letters``
    words : static, one of ``PAIR_WORD_COUNTS``; sequences of ``columns`` have at most
        32 letters a word, or any number if ``several``
    padding : static, from ``pair_padding``: the padding letter of both
    several : static, whether columns may need several groups
    interpret : parameters of the GPU interpreter, for tests

    Returns
    -------
    int32 (N,)
    """
    count = columns.starts.shape[0]
    program = _groups_program if several else _columns_program
    rows = sum(field.rows for field in code_fields(padding))
    edges = [letters.letters.shape] if several else []
    about = {"words": words, "padding": padding, "plain": interpret is not None}
    run = kernel(
        partial(program, **about),
        [(count * THREADS,), *edges],
        [plgpu.SMEM((rows * words * THREADS,), jnp.int32)],
        (count,),
        ("block",),
        interpret,
    )
    return run(*columns, width, *letters, height)[0]


class _Block(NamedTuple):
    """The pairs of a program, shared by all their groups of columns."""

    th: Threads
    words: int
    padding: int
    columns: tuple  # the first row of a block, and the letters of all
    letters: tuple  # first row, number of rows, and the letters of all
    table: jax.Array  # match words
    width: jax.Array  # columns of each thread


def _columns_program(*refs, words, padding, plain, several=False):
    """Compute 128 pairs whose columns fit one group of words; of ``several`` groups
    one after the other, whose edges are in the second result."""
    th, block = Threads(plain), lax.axis_index("block")
    (starts, steps, columns, width), (first, rows, letters, height) = (
        refs[:4],
        refs[4:8],
    )
    out, *edges, table = refs[8:]
    (w,) = th.load(width, th.index(), base=block, stride=THREADS)
    (total,) = th.load(height, th.index(), base=block, stride=THREADS)
    sides = (starts[block], columns), (first[block], rows[block], letters)
    about = _Block(th, words, padding, *sides, table, w)
    if several:
        _begin_edges(about, *edges)
        size = words * ROWS_OF_WORD
        groups = lax.div(steps[block] + jnp.int32(size - 1), jnp.int32(size))
        group = partial(_group, about, edges=edges[0])
        total = lax.fori_loop(jnp.int32(0), groups, group, total)
    else:
        total = _group(about, jnp.int32(0), total, None)
    th.store(out, th.index(), (total,), base=block, stride=THREADS)


def _groups_program(*refs, **options: Any):
    """Compute 128 pairs of any lengths."""
    _columns_program(*refs, **options, several=True)


def _group(about: _Block, group, total, edges):
    """Take a group of columns through all letters, and add the differences in its last
    row to ``total``.

    edges : three bits a letter from the left border of the group, overwritten by those
        at its right border; None for a single group
    """
    th, words = about.th, about.words
    thread = th.index()
    start, steps, letters = about.letters
    rows = _match_words(about, group)

    def step(t, state):
        rises, falls = state
        (four,) = th.load(letters, thread, base=start + t, stride=THREADS)
        if edges is not None:
            (left_edges,) = th.load(edges, thread, base=start + t, stride=THREADS)
            right = th.splat(0)
        for k in range(LETTERS_OF_WORD):
            code = _down(th, four, 8 * k) & 255
            if edges is None:
                edge = (_real(about, code),)
            else:  # carry, U and V of the letter
                carry = _down(th, left_edges, k) & 1
                edge = carry, *(_up(th, left_edges, x - k) for x in (27, 23))
            masks = _masks(about, rows, code)
            rises, falls, edge = next_row(th, rises, falls, masks, edge)
            if edges is not None:
                carry, up, down = edge
                up = _down(th, up, 27 - k) & (1 << LETTERS_OF_WORD + k)
                down = _down(th, down, 23 - k) & (1 << 2 * LETTERS_OF_WORD + k)
                right = right | (_up(th, carry, k) | up | down)
        if edges is not None:
            th.store(edges, thread, (right,), base=start + t, stride=THREADS)
        return rises, falls

    state = (th.splat(-1),) * words, (th.splat(0),) * words
    rises, falls = lax.fori_loop(jnp.int32(0), steps, step, state)
    remaining = about.width - th.splat(group * (words * WORD_BITS))
    for k, (rise, fall) in enumerate(zip(rises, falls, strict=True)):
        inside = _first_bits(th, remaining - WORD_BITS * k)
        total = total + one_bits(th, rise & inside) - one_bits(th, fall & inside)
    return total


def _real(about: _Block, code):
    """h: 0 for the padding letter, else 1."""
    return jnp.minimum(about.th.splat(about.padding) - code, about.th.splat(1))


def _masks(about: _Block, rows, code) -> list:
    """Functions that load the match words of a letter of each thread."""
    th, words = about.th, about.words
    places = []
    for field in code_fields(about.padding):
        value = _down(th, code, field.shift) & (2**field.bits - 1)
        place = value * (words * THREADS) + th.index()
        places.append((place, field.first * words * THREADS))

    def mask(word: int):
        at = word * THREADS
        loads = (th.load(rows, x, offset=first + at)[0] for x, first in places)
        return reduce(operator.and_, loads)

    return [partial(mask, word) for word in range(words)]


def _match_words(about: _Block, group):
    """Fill the table with the match words of a group of columns, and return it for
    reading."""
    th, words, table = about.th, about.words, about.table
    start, columns = about.columns
    thread, fields = th.index(), code_fields(about.padding)

    def fill(w, _):
        row = start + (group * words + w) * ROWS_OF_WORD
        planes = [th.splat(0)] * about.padding.bit_length()
        for q in range(ROWS_OF_WORD):
            offset = q * THREADS
            (four,) = th.load(columns, thread, base=row, stride=THREADS, offset=offset)
            planes = [
                plane | _up(th, _bits_of_letters(th, four, k), LETTERS_OF_WORD * q)
                for k, plane in enumerate(planes)
            ]
        place = thread + th.splat(w * THREADS)
        for field in fields:
            field_planes = planes[field.shift : field.shift + field.bits]
            for value in range(field.rows):
                sides = [
                    x if value >> k & 1 else ~x for k, x in enumerate(field_planes)
                ]
                offset = (field.first + value) * words * THREADS
                common = reduce(operator.and_, sides)
                th.store(table, place, (common,), offset=offset)
        return jnp.int32(0)

    lax.fori_loop(jnp.int32(0), jnp.int32(words), fill, jnp.int32(0))
    return th.read_only(table)


def _bits_of_letters(th: Threads, four, k: int):
    """Bit k of four letters, in the lowest four bits."""
    bits = _down(th, four, k) & 0x01010101
    # A product brings bit 8 * j to place 28 + j.
    return _down(th, bits * sum(1 << (28 - 7 * j) for j in range(LETTERS_OF_WORD)), 28)


def _begin_edges(about: _Block, edges) -> None:
    """Store the left edges of the first group: U is h, V and the carry are 0."""
    th, thread = about.th, about.th.index()
    start, steps, letters = about.letters

    def step(t, _):
        (four,) = th.load(letters, thread, base=start + t, stride=THREADS)
        word = th.splat(0)
        for k in range(LETTERS_OF_WORD):
            real = _real(about, _down(th, four, 8 * k) & 255)
            word = word | _up(th, real, LETTERS_OF_WORD + k)
        th.store(edges, thread, (word,), base=start + t, stride=THREADS)
        return jnp.int32(0)

    lax.fori_loop(jnp.int32(0), steps, step, jnp.int32(0))


def _first_bits(th: Threads, count):
    """A word with the lowest ``count`` bits set; ``count`` is clipped to 0 to 32."""
    count = jnp.minimum(jnp.maximum(count, th.splat(0)), th.splat(WORD_BITS))
    half = lax.shift_right_logical(count, th.splat(1))  # no shift by all bits at once
    return ~lax.shift_left(lax.shift_left(th.splat(-1), half), count - half)


def _down(th: Threads, words, count: int):
    return th.shift_right(words, count) if count else words


def _up(th: Threads, words, count: int):
    return lax.shift_left(words, th.splat(count)) if count else words
