"""A block of one long pair, from codes and lines to lines: one program."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from kernels_pallas.pairs.long_fill import fill
from kernels_pallas.pairs.long_shapes import (
    MINUS_INFINITY,
    LongFill,
    LongInputs,
    LongNumbers,
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
    open_only = jnp.stack([n.open, jnp.zeros_like(n.open)])[None, :, None]

    def h_of(u, cost=n.open):
        return jnp.where(u <= MINUS_INFINITY // 2, MINUS_INFINITY, u + cost)

    def lines(pairs):
        by_line = jnp.swapaxes(pairs.reshape(pairs.shape[0], -1, 2), 1, 2)
        return h_of(by_line, open_only)

    return LongLines(
        lines(out.rows), lines(out.columns), h_of(out.last_row), out.best.max(-1),
        out.computed,
    )  # fmt: skip


def inputs_of(block: LongBlock, scores, s: LongFill):
    """The inputs of ``long_fill.fill``, and the row above."""
    n = block.numbers

    def words(line):
        u, gap = jnp.where(line <= MINUS_INFINITY // 2, MINUS_INFINITY, line)
        u = jnp.where(u <= MINUS_INFINITY, u, u - n.open)
        return jnp.stack([u, gap], -1)

    top, left = words(block.top), words(block.left)
    corner = jnp.where(block.corner <= MINUS_INFINITY // 2, MINUS_INFINITY,
                       block.corner - n.open)  # fmt: skip
    above = jnp.concatenate([corner[None], left[:-1, 0]]).reshape(-1, s.rows)[:, 0]
    inputs = LongInputs(
        jnp.stack([jnp.asarray(x, jnp.int32) for x in n]),
        profile_words(scores, block.query, n.open, s),
        target_words(block.target, s),
        left.reshape(-1),
        above,
        block.slots,
    )
    return inputs, top.reshape(s.width, -1, 2)
