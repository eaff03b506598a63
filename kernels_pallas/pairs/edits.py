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
from jax.experimental.pallas import mosaic_gpu as plgpu

from kernels_pallas.core.mosaic import (
    THREADS,
    WORD_LAYOUT,
    WORD_TYPE,
    Threads,
    word_of,
    words_of,
)
from kernels_pallas.pairs.match_words import (
    LETTERS_OF_WORD,
    WORD_BITS,
    TargetBlocks,
    every_pair,
    match_words,
    row_words,
    table_of,
)

ASM_WORDS = 8  # words of a statement
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
            state = (*_next_row(th, rises, falls, masks, rise), total + rise)
        return state

    begin = tuple(~_mask(th, rows, last, w) for w in range(words))
    nothing = th.splat(0)
    state = begin, (nothing,) * words, nothing
    rises, falls, total = lax.fori_loop(jnp.int32(0), steps[block], step, state)
    for rise, fall in zip(rises, falls, strict=True):
        total = total + _one_bits(th, rise) - _one_bits(th, fall)
    th.store(out, thread, (total,), base=query * blocks + block, stride=THREADS)


def _mask(th: Threads, rows, place, word: int):
    return th.load(rows, place, more=word)[0]


def _one_bits(th: Threads, word):
    if th.plain:
        return lax.population_count(word)
    return word_of("popc.b32 $0, $1;", word, alone=True)


def _next_row(th: Threads, rises, falls, masks, rise) -> tuple:
    """P and N of the next letter, their words from the lowest on.

    masks : functions without arguments -> match words; rise : h, 0 or 1
    """
    edge: tuple = (rise,)
    up: list = []
    down: list = []
    for at in range(0, len(rises), ASM_WORDS):
        part = slice(at, at + ASM_WORDS)
        some = rises[part], falls[part], [mask() for mask in masks[part]]
        count = len(some[0])
        made = (_plain_row if th.plain else _row)(*some, *edge)
        up += made[:count]
        down += made[count : 2 * count]
        edge = tuple(made[2 * count :])
    return tuple(up), tuple(down)


def _plain_row(rises, falls, match, *edge) -> list:
    """P and N of some words, the carry of the sum and the last U and V, in ``jnp``.

    edge : h, or these three of the words before
    """
    one, zero = jnp.uint32(1), jnp.zeros(rises[0].shape, jnp.int32)
    carry, up, down = (zero, edge[0] << 31, zero) if len(edge) == 1 else edge

    def unsigned(x):
        return lax.bitcast_convert_type(x, jnp.uint32)

    over = carry.astype(jnp.uint32)
    up, down, made = unsigned(up), unsigned(down), []
    for p, n, m in zip(rises, falls, match, strict=True):
        p, n, m = map(unsigned, (p, n, m))
        both = m & p
        total = both + p + over
        over = lax.shift_right_logical(both | (p & ~total), jnp.uint32(31))
        d = (total ^ p) | m | n
        before, up, down = (up, down), n | ~(d | p), d & p
        h, v = (
            lax.shift_left(x, one) | lax.shift_right_logical(y, jnp.uint32(31))
            for x, y in zip((up, down), before, strict=True)
        )
        made.append((v | ~(d | h), d & h))
    made = [side for sides in zip(*made, strict=True) for side in sides]
    return [lax.bitcast_convert_type(x, jnp.int32) for x in (*made, over, up, down)]


def _row(rises, falls, match, *edge) -> list:
    """The same by PTX; the carry stays in the condition code from word to word."""
    count = len(rises)
    outs = 2 * count + 3
    given = [f"${outs + k}" for k in range(3 * count + len(edge))]
    p, n, m = (given[side * count :][:count] for side in range(3))
    before, first = given[3 * count :], len(edge) == 1
    lines = [f".reg .b32 c, h, v, {_names('d', count)};"]
    lines += [f".reg .b32 {_names('u', count)}, {_names('w', count)};"]
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
            f"and.b32 w{k}, d{k}, {p[k]};",
            *edges,
            f"lop3.b32 ${k}, v, d{k}, h, 0xf1;",  # V | ~(D | H)
            f"and.b32 ${count + k}, d{k}, h;",
        ]
    lines.append(f"mov.b32 ${2 * count + 1}, u{count - 1};")
    lines.append(f"mov.b32 ${2 * count + 2}, w{count - 1};")
    inputs = [*rises, *falls, *match, *edge]
    kinds = ",".join(["=&r"] * outs + ["r"] * len(inputs))

    @plgpu.inline_mgpu(
        arg_types=(WORD_LAYOUT,) * len(inputs), return_type=(WORD_TYPE,) * outs
    )
    def row(_, *given):
        return words_of("{ " + " ".join(lines) + " }", kinds, outs, given)

    return list(row(*inputs))


def _names(letter: str, count: int) -> str:
    return ", ".join(f"{letter}{k}" for k in range(count))
