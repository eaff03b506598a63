"""Longest common subsequences of many pairs by bit-parallel words, and helpers that
kernels with such words share.

Bits lie along a query, which all threads of a program share: its *match words*, for
each letter the places that hold it, are in shared memory. A thread has a target of its
own, and a program a query and 128 targets. The rows of match words have an odd number
of words, so that the threads of a warp, which read the same word of up to 32 different
letters, find them in different banks. A thread keeps V, a bit for every letter of the
query, in registers, and takes it through the letters c of its target one after the
other (Hyyrö 2004):

    U = V & M[c],    V' = (V + U) | (V & ~M[c]).

That is three instructions for 32 cells: AND, add with carry, LOP3. Zero bits of the
last V are the length of the LCS. A letter that matches nothing leaves V as it is, so it
stands for the wildcard and for what lies beyond the end of a target.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental.pallas import mosaic_gpu as plgpu

from kernels_pallas.core.mosaic import (
    THREADS,
    Threads,
    kernel,
    word_of,
    words_of,
)

WORD_BITS = 32
LETTERS_OF_WORD = 4  # a byte each
ASM_WORDS = 16  # of V that one statement adds up; a carry crosses in a register
# Words of V; of each a program
WORD_COUNTS = (2, 4, 8, 12, 16, 24, 32, 64, 128)  # each is a compilation
MAX_QUERY = WORD_COUNTS[-1] * WORD_BITS  # letters of a query, whose V fits registers


class TargetBlocks(NamedTuple):
    """Letters of targets in blocks of 128 targets, from ``target_blocks``."""

    starts: jax.Array  # int32 (B,), the first row of each block
    steps: jax.Array  # int32 (B,), its rows, by its longest target
    letters: jax.Array  # int32 (rows * 128,): four letters of each target


@partial(jax.jit, static_argnames=("padding", "room", "front"))
def target_blocks(
    codes: jax.Array,
    first: jax.Array,
    lengths: jax.Array,
    *,
    padding: int,
    room: int,
    front: bool = False,
) -> TargetBlocks:
    """Lay out targets from a flat array; fastest with the longest first.

    Parameters
    ----------
    codes : uint8 (X,)
    first, lengths : int32 (N,), N a multiple of 128
    padding : static, a letter that matches nothing
    room : static, at least the rows of all blocks; a row has four letters of 128
        targets
    front : static, whether padding precedes the letters of a target
    """
    steps = -(-lengths.reshape(-1, THREADS).max(1) // LETTERS_OF_WORD)
    starts = jnp.cumsum(steps) - steps
    count = steps.shape[0]
    block = jnp.arange(count, dtype=jnp.int32)
    block = jnp.repeat(block, steps, total_repeat_length=room)
    step = jnp.arange(room, dtype=jnp.int32) - starts[block]
    member = block[:, None] * THREADS + jnp.arange(THREADS, dtype=jnp.int32)[None, :]
    words = jnp.zeros((room, THREADS), jnp.int32)
    for k in range(LETTERS_OF_WORD):
        j = (step * LETTERS_OF_WORD + k)[:, None]
        if front:
            j = j + (lengths[member] - (steps[block] * LETTERS_OF_WORD)[:, None])
        letter = codes.at[first[member] + j].get(mode="clip").astype(jnp.int32)
        letter = jnp.where((j >= 0) & (j < lengths[member]), letter, padding)
        words = words | (letter << (8 * k))
    return TargetBlocks(starts, steps, words.reshape(-1))


def row_words(words: int) -> int:
    """Words in a row of match words, with padding to an odd number."""
    return words | 1


def table_of(letters: jax.Array, padding: int):
    """Match words of queries: int32 (Q, size), rows of ``row_words``, from letters
    (Q, bits), of which those outside 0 to ``padding`` match nothing."""
    words = letters.shape[1] // WORD_BITS
    letters = letters.reshape(-1, words, WORD_BITS)
    bit = jnp.int32(1) << jnp.arange(WORD_BITS, dtype=jnp.int32).reshape(1, 1, 1, -1)
    every = jnp.arange(padding + 1, dtype=jnp.int32).reshape(1, -1, 1, 1)
    match = jnp.where(letters[:, None] == every, bit, 0).sum(-1, dtype=jnp.int32)
    match = jnp.pad(match, ((0, 0), (0, 0), (0, row_words(words) - words)))
    flat = match.reshape(len(letters), -1)
    return jnp.pad(flat, ((0, 0), (0, -flat.shape[1] % THREADS)))


def every_pair(
    program: Callable, table: Any, arrays: Any, interpret: Any, rows: int | None = None
):
    """Run a program for every row of a table (Q, size) and every block of targets, the
    first of the arrays: int32 (rows, N), ``rows`` being Q by default.

    The program takes the table, the arrays, the result and scratch for match words.
    """
    queries, size = table.shape
    count, height = arrays[0].shape[0], queries if rows is None else rows
    about = {"size": size, "blocks": count, "plain": interpret is not None}
    run = kernel(
        partial(program, **about),
        [(height, count * THREADS)],
        [plgpu.SMEM((size,), jnp.int32)],
        (queries, count),
        ("query", "block"),
        interpret,
    )
    return run(table.reshape(-1), *arrays)[0]


def match_words(th: Threads, table: Any, match: Any, query: Any, size: int):
    """Copy the match words of a query to shared memory, and return them for reading."""
    thread = th.index()
    for at in range(0, size, THREADS):
        (word,) = th.load(table, thread, base=query, stride=size, offset=at)
        th.store(match, thread, (word,), offset=at)
    th.wait()
    return th.read_only(match)


@partial(jax.jit, static_argnames=("words", "padding", "wildcard"))
def match_table(
    codes: jax.Array,
    first: jax.Array,
    lengths: jax.Array,
    *,
    words: int,
    padding: int,
    wildcard: int,
):
    """Match words of queries: int32 (Q, size), rows of ``row_words(words)``.

    Parameters
    ----------
    codes : uint8 (X,); first, lengths : int32 (Q,)
    words : static, at least a 32nd of the letters of the longest query
    padding : static, the letter after the last; its row is 0, as that of ``wildcard``
    """
    place = jnp.arange(words * WORD_BITS, dtype=jnp.int32)[None, :]
    letters = codes.at[first[:, None] + place].get(mode="clip").astype(jnp.int32)
    inside = (place < lengths[:, None]) & (letters != wildcard)
    return table_of(jnp.where(inside, letters, -1), padding)


def query_words(longest: int) -> int:
    """``words`` for queries of up to ``longest`` letters, at most ``MAX_QUERY``."""
    return next(words for words in WORD_COUNTS if words * WORD_BITS >= longest)


@partial(jax.jit, static_argnames=("words", "interpret"))
def subsequences(
    table: jax.Array, blocks: TargetBlocks, *, words: int, interpret: Any = None
):
    """Compute the LCS of every query with every target.

    Parameters
    ----------
    table : int32 (Q, size), of ``match_table``
    blocks : TargetBlocks
    words : static, as of ``match_table``
    interpret : parameters of the GPU interpreter, for tests

    Returns
    -------
    int32 (Q, N)
    """
    return every_pair(partial(_lcs_program, words=words), table, blocks, interpret)


@partial(jax.jit, static_argnames=("words", "padding", "wildcard", "interpret"))
def subsequence_counts(
    codes: jax.Array,
    first: jax.Array,
    lengths: jax.Array,
    blocks: TargetBlocks,
    *,
    words: int,
    padding: int,
    wildcard: int,
    interpret: Any = None,
):
    """``match_table`` and ``subsequences`` as one program: int16 (Q, N)."""
    options = {"padding": padding, "wildcard": wildcard}
    table = match_table(codes, first, lengths, words=words, **options)
    counts = subsequences(table, blocks, words=words, interpret=interpret)
    return counts.astype(jnp.int16)


def _lcs_program(table: jax.Array, starts, steps, letters, out, match: Any, *,
                 words: int, size, blocks, plain):  # fmt: skip
    """Compare one query with the targets of one block."""
    th = Threads(plain)
    query, block = lax.axis_index("query"), lax.axis_index("block")
    rows, thread = match_words(th, table, match, query, size), th.index()
    start = starts[block]

    def step(t, state):
        (four,) = th.load(letters, thread, base=start + t, stride=THREADS)
        for k in range(LETTERS_OF_WORD):
            code = lax.shift_right_logical(four, th.splat(8 * k)) & 255
            place = code * row_words(words)
            masks = [th.load(rows, place, offset=w)[0] for w in range(words)]
            state = next_row(th, state, masks)
        return state

    ones = (th.splat(-1),) * words
    last = lax.fori_loop(jnp.int32(0), steps[block], step, ones)
    total = th.splat(0)
    for word in last:
        if th.plain:
            zeros = lax.population_count(~word)
        else:
            asm = "{ .reg .b32 n; not.b32 n, $1; popc.b32 $0, n; }"
            zeros = word_of(asm, word, pure=True)
        total = total + zeros
    th.store(out, thread, (total,), base=query * blocks + block, stride=THREADS)


def next_row(th: Threads, words: tuple[jax.Array, ...], match: Any) -> tuple:
    """V of the next letter: (V + (V & M)) | (V & ~M), its words from the lowest on."""
    carry, new_words = None, ()
    for at in range(0, len(words), ASM_WORDS):
        part = words[at : at + ASM_WORDS], match[at : at + ASM_WORDS]
        has_next = at + ASM_WORDS < len(words)
        *part_words, carry = (_plain_row if th.plain else _row)(*part, carry, has_next)
        new_words += tuple(part_words)
    return new_words


def _plain_row(
    words: tuple[jax.Array, ...], match: Any, carry: jax.Array | None, _has_next: bool
) -> list:
    """Some words of the next row, and their carry, in ``jnp``."""
    new_words, over = [], jnp.uint32(0) if carry is None else carry.astype(jnp.uint32)
    for word, mask in zip(words, match, strict=True):
        v, m = (lax.bitcast_convert_type(x, jnp.uint32) for x in (word, mask))
        u = v & m
        total = v + u + over
        over = lax.shift_right_logical(u | (v & ~total), jnp.uint32(31))
        new_words.append(lax.bitcast_convert_type(total | (v & ~m), jnp.int32))
    return [*new_words, over.astype(jnp.int32)]


def _row(
    words: tuple[jax.Array, ...], match: Any, carry: jax.Array | None, has_next: bool
) -> list:
    """``_plain_row`` in PTX: the carry stays in the condition code between words."""
    count, outs = len(words), len(words) + bool(has_next)
    v = [f"${outs + k}" for k in range(count)]
    m = [f"${outs + count + k}" for k in range(count)]
    lines = [f".reg .b32 {', '.join(f'u{k}' for k in range(count))};"]
    lines += [f"and.b32 u{k}, {v[k]}, {m[k]};" for k in range(count)]
    if carry is not None:  # 0 or 1 + (2^32 - 1): the carry
        lines += [".reg .b32 c;", f"add.cc.u32 c, ${outs + 2 * count}, 0xffffffff;"]
    for k in range(count):
        first, last = k == 0 and carry is None, k == count - 1 and not has_next
        add = "add" if first else "addc"
        lines.append(f"{add}{'' if last else '.cc'}.u32 u{k}, {v[k]}, u{k};")
    if has_next:
        lines.append(f"addc.u32 ${count}, 0, 0;")
    # sum | (V & ~M)
    lines += [f"lop3.b32 ${k}, u{k}, {v[k]}, {m[k]}, 0xf4;" for k in range(count)]
    inputs = [*words, *match, *([] if carry is None else [carry])]
    kinds = ",".join(["=&r"] * outs + ["r"] * len(inputs))
    new_words = words_of("{ " + " ".join(lines) + " }", kinds, outs, inputs)
    return [*new_words, *([] if has_next else [None])]
