"""The 4-bit backtrack code and its packing: the one tie rule lives here.

A nibble holds the paper's four boolean matrices, high bit to low bit
``b_left b_up c_up c_left``:

=====  =====================================================================
b      11 diagonal, 01 up (E), 10 left (F), 00 stop (local, H == 0)
c_up   E[i,j] came from E[i-1,j]: having gone up from (i,j), go up again
c_left F[i,j] came from F[i,j-1]: having gone left from (i,j), go left again
=====  =====================================================================

The c bits stand in the cell the move leaves (the GPU form of the 2011 paper).

Tie rule: diagonal, then up, then left; in local mode stop before diagonal; inside a
gap extend before close; end cell: smallest query index, then target index.

Layout: 8 consecutive cells of a column are one uint32, row r of the group in nibble
``7 - r % 8``, so ``words[r // 8, j]``. The sweep writes *bytes*, 2 cells each, row r in
nibble ``1 - r % 2``; four bytes make a word.
"""

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
from jax import lax

if TYPE_CHECKING:
    from jaxalign.pairs.dp.recurrence import Cell


DIAGONAL, UP, LEFT = 12, 4, 8
C_UP, C_LEFT = 2, 1


def nibble(
    cell: "Cell", local: bool, dtype: jax.typing.DTypeLike = jnp.uint8, shift: int = 0
):
    """The direction code of a ``recurrence.Cell``, already shifted into place."""

    def code(value: int):
        return lax.full_like(cell.h, value << shift, dtype)

    b = lax.select(cell.vertical, code(UP), code(LEFT))
    b = lax.select(cell.diagonal, code(DIAGONAL), b)
    if local:
        b = lax.select(lax.gt(cell.h, lax.full_like(cell.h, 0)), b, code(0))
    c = lax.select(cell.up_extends, code(C_UP), code(0))
    return b | c | lax.select(cell.left_extends, code(C_LEFT), code(0))


def pack(nibbles: jax.Array):
    """(8 * w, n) nibbles -> (w, n) uint32 words, row 0 in the highest nibble."""
    rows = nibbles.astype(jnp.uint32).reshape(-1, 8, nibbles.shape[-1])
    shifts = jnp.arange(28, -1, -4, dtype=jnp.uint32)[None, :, None]
    return jnp.sum(rows << shifts, axis=1, dtype=jnp.uint32)


def unpack(words: jax.Array):
    """(w, n) uint32 words -> (8 * w, n) nibbles; the inverse of ``pack``."""
    rows, columns = words.shape
    shifts = jnp.arange(28, -1, -4, dtype=jnp.uint32)[None, :, None]
    nibbles = (words[:, None, :] >> shifts) & 15
    return nibbles.astype(jnp.uint8).reshape(8 * rows, columns)


def split(nibbles: jax.Array):
    """Nibbles -> the four boolean matrices, as a dict (for eyes, not for speed)."""
    names = ("b_left", "b_up", "c_up", "c_left")
    bits = ((nibbles >> bit) & 1 for bit in (3, 2, 1, 0))
    return {name: bit.astype(bool) for name, bit in zip(names, bits, strict=True)}
