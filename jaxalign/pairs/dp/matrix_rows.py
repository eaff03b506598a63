"""Rows of a matrix, read and written in a loop; no index is negative, which JAX would
look at each time."""

import jax.numpy as jnp
from jax import lax


def row_of(array, j):
    return lax.squeeze(
        lax.dynamic_slice_in_dim(array, j, 1, allow_negative_indices=False), (0,)
    )


def put_row(array, row, t):
    return lax.dynamic_update_slice(
        array, row[None], (t, jnp.int32(0)), allow_negative_indices=False
    )
