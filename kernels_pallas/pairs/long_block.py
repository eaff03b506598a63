"""A block of one long pair, from codes and lines to lines: one program."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from kernels_pallas.pairs.long_fill import fill
from kernels_pallas.pairs.long_shapes import (
    COLUMNS,
    MINUS_INFINITY,
    LongFill,
    LongInputs,
    LongNumbers,
    opening,
    profile_words,
    target_words,
)


class LongBlock(NamedTuple):
    """A block as the host has it, with room for a whole ``LongFill``."""

    numbers: LongNumbers
    query: jax.Array  # uint8 (R T,), the padding letter behind the end
    target: jax.Array  # uint8 (4 width,), likewise
    top: jax.Array  # int32 (2, 4 width): H and E of the row above, from column 1 on
    left: jax.Array  # int32 (2, R T): H and F of the column before, from row 1 on
    corner: jax.Array  # int32 (): H between the two
    slots: (
        jax.Array
    )  # int32 (R + 1,): the slot of the row above each band, and of the last


class LongLines(NamedTuple):
    """Lines of a block that was filled."""

    rows: jax.Array  # int32 (slots, 2, 4 width): H and E
    columns: jax.Array  # int32 (captures, 2, R T): H and F
    last_row: jax.Array  # int32 (4 width,): H of row m, or nothing
    best: jax.Array  # int32 (R, segments): local mode
    computed: jax.Array  # int32 (R,): chunks that were not pruned
    lost: jax.Array  # int32 (R,): not 0 where values left the range of 16 bits


@partial(jax.jit, static_argnames=("s", "segments", "interpret"))
def long_block(
    block: LongBlock, scores, s: LongFill, segments: int = 1, interpret=None
):
    """Fill a block.

    Parameters
    ----------
    scores : int32 (A, A), row = query letter; A is ``s.letters`` - 1
    s : static
    segments : static; in local mode each has a best

    Returns
    -------
    LongLines
    """
    n = block.numbers
    inputs, top = inputs_of(block, scores, s)
    out = fill(inputs, top, s, segments, interpret)
    width, height = COLUMNS * s.width, s.bands * s.band
    # The row of each slot, and the column of each capture.
    bands = jnp.zeros(s.slots, jnp.int32).at[block.slots].max(jnp.arange(s.bands + 1))
    i, j = (1 + jnp.arange(size, dtype=jnp.int32) for size in (height, width))
    captured = (1 + jnp.arange(s.captures, dtype=jnp.int32)) * n.capture
    captured = jnp.minimum(captured, n.n)

    lower = opening(n, s)

    def h_of(u, places, cost=lower):
        if s.skewed:
            cost = cost - n.extend * places
        return jnp.where(u <= MINUS_INFINITY // 2, MINUS_INFINITY, u + cost)

    def lines(pairs, places):
        by_line = jnp.swapaxes(pairs.reshape(pairs.shape[0], -1, 2), 1, 2)
        open_only = jnp.stack([lower, jnp.zeros_like(lower)])[None, :, None]
        return h_of(by_line, places[:, None], open_only)

    return LongLines(
        lines(out.rows, (bands * s.band)[:, None] + j[None]),
        lines(out.columns, captured[:, None] + i[None]),
        h_of(out.last_row, n.m + j[: len(out.last_row)]),
        out.best.max(-1), out.computed, out.lost,
    )  # fmt: skip


def inputs_of(block: LongBlock, scores, s: LongFill):
    """The inputs of ``long_fill.fill``, and the row above."""
    n, lower = block.numbers, opening(block.numbers, s)

    def words(line):
        places = 1 + jnp.arange(line.shape[1], dtype=jnp.int32)
        skew = (n.extend * places)[None] if s.skewed else 0
        u, gap = jnp.where(line <= MINUS_INFINITY // 2, MINUS_INFINITY, line + skew)
        u = jnp.where(u <= MINUS_INFINITY, u, u - lower)
        return jnp.stack([u, gap], -1)

    top, left = words(block.top), words(block.left)
    corner = jnp.where(block.corner <= MINUS_INFINITY // 2, MINUS_INFINITY,
                       block.corner - lower)  # fmt: skip
    above = jnp.concatenate([corner[None], left[:-1, 0]]).reshape(-1, s.rows)[:, 0]
    inputs = LongInputs(
        jnp.stack([jnp.asarray(x, jnp.int32) for x in n]),
        profile_words(scores, block.query, n, s),
        target_words(block.target, s),
        left.reshape(-1),
        above,
        block.slots,
    )
    return inputs, top.reshape(s.width, -1, 2)
