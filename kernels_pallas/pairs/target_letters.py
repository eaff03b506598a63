"""Letters of targets as a fill reads them, in the columns of their blocks.

0 comes before a target, 1 after it, a + 2 is residue a.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from kernels_pallas.pairs.shapes import Fill


class Letters(NamedTuple):
    """Letters of targets of any lengths, block after block, from ``letters``."""

    starts: jax.Array  # int32 (B,), the row where each block begins
    words: jax.Array  # int32 (room * groups,)


def letters_shape(s: Fill) -> Fill:
    """The shape whose letters lie as those of another one: one for all such."""
    return Fill(4, s.lanes, s.columns, local=True, packed=True)


@partial(jax.jit, static_argnames=("shape", "room"))
def letters(codes, first, lengths, *, shape: Fill, room: int) -> Letters:
    """Lay out targets of any lengths from a flat array.

    Each block gets as many rows as its longest target needs. This is a program of its
    own, so that those of kernels do not depend on the size of a data set.

    Parameters
    ----------
    codes : uint8 (X,)
    first, lengths : int32 (N,), where each target begins, and how long it is
    shape : static, that of the fill
    room : static, rows of letters of all blocks, at least ``config.rows_of``
    """
    s, spare = shape, -len(lengths) % shape.block
    first, lengths = jnp.pad(first, (0, spare)), jnp.pad(lengths, (0, spare))
    ends = -(-lengths // s.columns)
    longest = ends.reshape(-1, s.groups).max(1)
    rows = jnp.where(longest > 0, longest + 1, 0)
    starts = before(rows)
    count = rows.shape[0]
    block = jnp.arange(count, dtype=jnp.int32)
    block = jnp.repeat(block, rows, total_repeat_length=room)
    step = jnp.arange(room, dtype=jnp.int32) - starts[block]
    # (row, group, column of the step)
    target = block[:, None] * s.groups + jnp.arange(s.groups, dtype=jnp.int32)[None, :]
    lead = (-lengths % s.columns)[target][:, :, None]
    j = (step[:, None] * s.columns)[:, :, None] - lead
    j = j + jnp.arange(s.columns, dtype=jnp.int32).reshape(1, 1, -1)
    at = jnp.maximum(j, 0) + first[target][:, :, None]
    letters = codes.at[at].get(mode="clip")
    letters = _with_pads(letters, j, lengths[target][:, :, None])
    return Letters(starts, in_bytes(letters).reshape(-1))


def in_blocks(targets, n, s: Fill) -> Letters:
    """Letters of the blocks of a launch, as in ``FillInputs``."""
    if isinstance(targets, Letters):
        return targets
    words = columns(targets, n, s)
    count, steps = words.shape[0] // s.groups, words.shape[1]
    starts = jnp.arange(count, dtype=jnp.int32) * steps
    words = words.reshape(count, s.groups, steps).transpose(0, 2, 1)
    return Letters(starts, words.reshape(-1))


def columns(codes, lengths, s: Fill) -> jax.Array:
    """Letters of targets a step: words with U bytes each, (N, T)."""
    steps = -(-codes.shape[1] // s.columns) + 1
    lead = -lengths % s.columns
    place = jnp.arange(steps * s.columns, dtype=jnp.int32)[None, :]
    j = place - lead[:, None]
    letters = jnp.take_along_axis(codes, jnp.clip(j, 0), axis=1, mode="clip")
    letters = _with_pads(letters, j, lengths[:, None])
    return in_bytes(letters.reshape(-1, steps, s.columns))


def _with_pads(codes, j, lengths):
    """Letters of the extended alphabet in columns ``j`` of targets."""
    letter = jnp.where(j < lengths, codes.astype(jnp.int32) + 2, 1)
    return jnp.where(j < 0, 0, letter)


def before(sizes):
    """The place where each part begins; 0 for parts without a size, so that no place is
    beyond the end."""
    return jnp.where(sizes > 0, jnp.cumsum(sizes) - sizes, 0)


def in_bytes(letters):
    """(..., k) letters -> words, the first in the lowest byte."""
    shift = 8 * jnp.arange(letters.shape[-1], dtype=jnp.int32)
    return jnp.sum(letters << shift.reshape((1,) * (letters.ndim - 1) + (-1,)), -1)
