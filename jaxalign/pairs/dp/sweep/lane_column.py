"""One column of a strip of ``lane_fill``, scores alone: some rows of a query
against a column of every lane."""

import jax.numpy as jnp
from jax import lax

from jaxalign.affine import Gaps
from jaxalign.one_function import one_function
from jaxalign.pairs.dp import recurrence
from jaxalign.pairs.dp.matrix_rows import put_row, row_of
from jaxalign.pairs.dp.sweep import TILE, lane_best, lane_scores


def step(read, vertical, gaps, local, fused):
    """The step over one column of all lanes: a function (j, carry)."""
    gap, best = _row_of_cells(local, fused)

    def column(j, carry):
        h, f, diag, last_row, e_row, nothing, track = carry
        up, e = row_of(last_row, j), row_of(e_row, j)
        above, new_h, new_f = up, [], []
        for k, s_k in enumerate(read(j)):
            down = Gaps(vertical[0][k], vertical[1][k])
            e, f_k = gap(e, up, down), gap(f[k], h[k], gaps)
            up = best(diag, s_k, e, f_k)
            diag = h[k]
            new_h.append(up)
            new_f.append(f_k)
        track = lane_best.follow(track, new_h, lax.rem(j, jnp.int32(TILE)), None, fused)
        rows = put_row(last_row, up, j), put_row(e_row, e, j)
        return tuple(new_h), tuple(new_f), above, *rows, nothing, track

    return column


def _row_of_cells(local, fused):
    """Functions of a row of cells: E or F, and H.

    Functions of their own, so that nothing is computed twice; and where each gives one
    array, the next finds it in registers.
    """

    def gap(longer, new, gaps):
        return recurrence.gap(longer, new, in_lanes(gaps, new))

    def best(diag, s, e, f):
        s = lane_scores.from_profile(*s, diag.dtype) if isinstance(s, tuple) else s
        return recurrence.best(diag, s, e, f, local)

    return one_function(gap, fused), one_function(best, fused)


def in_lanes(gaps, like):
    """Gap costs of each lane, where they may be scalars."""
    return Gaps(*(x if x.ndim else lax.broadcast(x, like.shape) for x in gaps))
