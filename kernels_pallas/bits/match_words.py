"""Kernels of bit-parallel words share match words of queries, letters of targets, and a
program for each query and each 128 targets.

Bits lie along a query, which all threads of a program share: its *match words*, for
each letter the places that hold it, are in shared memory. A thread has a target of its
own. The rows of match words have an odd number of words, so that the threads of a warp,
which read the same word of up to 32 different letters, find them in different banks.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.experimental.pallas import mosaic_gpu as plgpu

from kernels_pallas.core.mosaic import THREADS, Threads, kernel

WORD_BITS = 32
LETTERS_OF_WORD = 4  # a byte each


class TargetBlocks(NamedTuple):
    """Letters of targets, 128 of them a block, from ``target_blocks``."""

    starts: jax.Array  # int32 (B,), the row where each block begins
    steps: jax.Array  # int32 (B,), its rows: of its longest target
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
    """Lay out targets from a flat array, best longest first.

    Parameters
    ----------
    codes : uint8 (X,)
    first, lengths : int32 (N,), N a multiple of 128
    padding : static, a letter that matches nothing
    room : static, rows of all blocks at least: a row has four letters of 128 targets
    front : static, whether padding comes before the letters of a target, not after
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
    """Words of a row of match words: an odd number."""
    return words | 1


def table_of(letters: jax.Array, padding: int):
    """Match words of queries: int32 (Q, size), rows of ``row_words``.

    Parameters
    ----------
    letters : int32 (Q, bits), a multiple of 32; what is beyond 0 to ``padding`` matches
        nothing
    padding : the last letter
    """
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
    """Run a program for every row of a table and every block of targets.

    Parameters
    ----------
    program : function of the table, the arrays, the result, room for match words, and
        by name ``size``, ``blocks`` and ``plain``
    table : int32 (Q, size), of ``table_of``
    arrays : those of ``TargetBlocks``, and others after them
    rows : static, of the result, unless Q

    Returns
    -------
    int32 (rows, N)
    """
    queries, size = table.shape
    count, rows = arrays[0].shape[0], rows or queries
    about = {"size": size, "blocks": count, "plain": interpret is not None}
    run = kernel(
        partial(program, **about),
        [jax.ShapeDtypeStruct((rows * count * THREADS,), jnp.int32)],
        [plgpu.SMEM((size,), jnp.int32)],
        (queries, count),
        ("query", "block"),
        interpret,
    )
    (values,) = run(table.reshape(-1), *arrays)
    return values.reshape(rows, count * THREADS)


def match_words(th: Threads, table: Any, match: Any, query: Any, size: int):
    """The match words of a query, from the table to shared memory, to be read."""
    thread = th.index()
    for at in range(0, size, THREADS):
        (word,) = th.load(table, thread, base=query, stride=size, more=at)
        th.store(match, thread, (word,), more=at)
    th.wait()
    return th.read_only(match)
