"""Tables by anti-diagonal: row d of a skewed one holds the cells j = d - i.

(R, C) becomes (R + C - 1, R). It is done by padding each row and reading the flat array
with rows one shorter, so that row i slips i places to the right; a gather or a scatter
would cost more than a recurrence.
"""

import jax
import jax.numpy as jnp
from jax import lax


def skew(table: jax.Array, fill: float):
    """(R, C) -> (R + C - 1, R), ``out[d, i] = table[i, d - i]``, else ``fill``."""
    rows, columns = table.shape
    diagonals = rows + columns - 1
    wide = jnp.pad(
        table, ((0, 0), (0, diagonals + 1 - columns)), constant_values=fill
    ).reshape(-1)
    return wide[: rows * diagonals].reshape(rows, diagonals).T


def unskew(diagonals: jax.Array, columns: int):
    """(R + C - 1, R) -> (R, C): the inverse of ``skew``."""
    count, rows = diagonals.shape
    flat = jnp.pad(diagonals.T.reshape(-1), (0, rows))
    return flat.reshape(rows, count + 1)[:, :columns]


def down(x: jax.Array, fill: float):
    """x[i - 1] at lane i: what the row above holds."""
    return jnp.concatenate([jnp.full(1, fill, x.dtype), x[:-1]])


def up(x: jax.Array):
    """x[i + 1] at lane i, 0 in the last lane."""
    return jnp.concatenate([x[1:], jnp.zeros(1, x.dtype)])


def reversed_columns(x: jax.Array, rows: int):
    """Prepare a vector over columns (C,) for ``columns_at``, zeros outside it."""
    return jnp.pad(x, (rows, rows + 2))[::-1]


def columns_at(prepared: jax.Array, rows: int, d: jax.Array):
    """x[d - i] at lane i, from ``reversed_columns(x, rows)``; 0 outside."""
    start = prepared.shape[0] - 1 - rows - d
    return lax.dynamic_slice(prepared, (start,), (rows,))
