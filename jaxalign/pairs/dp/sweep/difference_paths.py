"""Global alignments by differences: the cells of ``difference_fill`` with backtrack.

Whether a gap goes on is known where x and y are computed, a cell before their nibble is
due. So x and y are greater by one here wherever going on costs no more than opening a
gap, and 0 where it costs more:

    x[i,j] = max(0, E[i,j] - H[i,j] + q + 1),   E goes on below (i,j) where x[i,j] > 0

Two rows of a column are one loop over the lanes, and their nibbles one byte.
"""

from collections.abc import Sequence
from functools import partial

import jax
import jax.numpy as jnp
from jax import lax

from jaxalign.one_function import one_function
from jaxalign.pairs.dp.directions import C_LEFT, C_UP, DIAGONAL, LEFT, UP
from jaxalign.pairs.dp.matrix_rows import put_row, row_of
from jaxalign.pairs.dp.sweep.cell_blocks import BLOCK_ROWS, together
from jaxalign.pairs.dp.sweep.lane_scores import from_profile


def column_of(
    scores: jax.Array,
    letters: Sequence[jax.Array],
    opening: int,
    tie: jax.Array,
    strip: jax.Array,
    count: jax.Array,
):
    """The step over a column of all lanes: a function (j, (v, x, u, y, backtrack)).

    Parameters
    ----------
    scores, letters : as in ``difference_fill``
    opening : gap_open - gap_extend
    tie : uint8 (B,), 1 where left goes before up
    strip : int32 (), which of the query
    count : int32 (), columns of the block that are in use
    """
    lanes = scores.shape[2]
    score = one_function(partial(from_profile, dtype=jnp.uint8))
    # A function of its own, or LLVM does not make vectors of its loop.
    cells = one_function(partial(_block, opening=opening))

    def step(j: jax.Array, carry: tuple):
        v, x, u, y, backtrack = carry
        above, gap, new_u, new_y = row_of(v, j), row_of(x, j), [], []
        for k in range(0, len(letters), BLOCK_ROWS):
            some = slice(k, k + BLOCK_ROWS)
            s = [score(scores, a, j) for a in letters[some]]
            u_k, y_k, above, gap, code = cells(u[some], y[some], above, gap, s, tie)
            start = ((strip * len(letters) + k) // BLOCK_ROWS * count + j) * lanes
            backtrack = lax.dynamic_update_slice(
                backtrack, code, (start,), allow_negative_indices=False
            )
            new_u += u_k
            new_y += y_k
        rows = put_row(v, above, j), put_row(x, gap, j)
        return *rows, tuple(new_u), tuple(new_y), backtrack

    return step


def _block(
    u: Sequence[jax.Array],
    y: Sequence[jax.Array],
    v: jax.Array,
    x: jax.Array,
    s: Sequence[jax.Array],
    tie: jax.Array,
    *,
    opening: int,
):
    """u and y of two rows, v and x of the second, and the nibbles of both."""
    u, y, code = list(u), list(y), None
    one, more = lax.full_like(v, 1), lax.full_like(v, opening + 1)
    for k in range(BLOCK_ROWS):
        e, f = (lax.max(gap, one) - one for gap in (x, y[k]))
        e, f = e + v, f + u[k]
        z = lax.max(s[k], lax.max(e, f))
        nibble = _nibble(e, f, z, s[k], x, y[k], tie, 4 * (BLOCK_ROWS - 1 - k))
        code = nibble if code is None else code | nibble
        opened = z - more
        x, y[k] = (lax.max(gap, opened) - opened for gap in (e, f))
        u[k], v = z - v, z - u[k]
    return together(u, y, v, x, code)


def _nibble(
    e: jax.Array,
    f: jax.Array,
    z: jax.Array,
    d: jax.Array,
    x: jax.Array,
    y: jax.Array,
    tie: jax.Array,
    shift: int,
):
    """The direction code (``directions.nibble``) of a cell, shifted into place."""

    def where(which: jax.Array, value: int, other: jax.Array):
        return lax.select(which, lax.full_like(z, value << shift), other)

    b = where(lax.ge(e, f + tie), UP, lax.full_like(z, LEFT << shift))
    b = where(lax.eq(z, d), DIAGONAL, b)
    zero = lax.full_like(z, 0)
    return b | where(lax.gt(x, zero), C_UP, zero) | where(lax.gt(y, zero), C_LEFT, zero)
