"""Rows of a matrix, read and written in a loop, and a table read at many codes at once.

No index is negative, which JAX would look at each time; and no gather reads the table,
so that vectors of any width do it.
"""

import jax
import jax.numpy as jnp
from jax import lax

MAX_SELECT_CODES = 32  # entries: beyond them a gather is better


def row_of(array: jax.Array, j: jax.Array | int):
    return lax.squeeze(
        lax.dynamic_slice_in_dim(array, j, 1, allow_negative_indices=False), (0,)
    )


def put_row(array: jax.Array, row: jax.Array, t: jax.Array | int):
    return lax.dynamic_update_slice(
        array, row[None], (t, jnp.int32(0)), allow_negative_indices=False
    )


def by_code(entries: list[jax.Array], codes: jax.Array):
    """``entries[c]`` wherever ``codes`` is c: one bit of the code halves the choice.

    Parameters
    ----------
    entries : list of at most ``MAX_SELECT_CODES`` arrays of the shape of ``codes``
    codes : integers below ``len(entries)``
    """
    bit = 1
    while len(entries) > 1:
        on = (codes & lax.full_like(codes, bit)) != lax.full_like(codes, 0)
        pairs = (entries[k : k + 2] for k in range(0, len(entries), 2))
        entries = [lax.select(on, *x[::-1]) if len(x) == 2 else x[0] for x in pairs]
        bit *= 2
    return entries[0]
