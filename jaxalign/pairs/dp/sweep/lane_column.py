"""One column of a strip of ``lane_fill``: some rows of one or two queries against a
column of every lane."""

from functools import partial

import jax.numpy as jnp
from jax import lax

from jaxalign.affine import Gaps, neg_inf
from jaxalign.pairs.dp import directions, recurrence
from jaxalign.pairs.dp.call import one_function
from jaxalign.pairs.dp.matrix_rows import row_of
from jaxalign.pairs.dp.sweep import TILE, lane_best, lane_scores


def step(block, rows, read, vertical, gaps, tie, first, s, local, fused):
    """The step over one column of all lanes: a function (j, carry)."""
    lanes, dtype = block.codes.shape[1], gaps.open.dtype
    gap, best, coded = _row_of_cells(local, fused)

    def column(j, carry):
        h, f, diag, last_row, e_row, halves, track = carry
        up, e = row_of(last_row, j), row_of(e_row, j)
        above, horizontal = up, gaps
        if tie is not None:
            # F of a lane's column 0 is minus infinity: a path cannot extend it. (No
            # score is higher for it: there F is what opening a gap gives.)
            cut = lax.select(
                lax.eq(lax.full((lanes,), j, jnp.int32), first),
                lax.full((lanes,), -neg_inf(dtype), dtype),
                lax.broadcast(gaps.extend, (lanes,)),
            )
            horizontal = Gaps(gaps.open, cut)
        new_h, new_f, codes = [], [], []
        for k, s_k in enumerate(read(j)):
            down = Gaps(vertical[0][k], vertical[1][k])
            if tie is None:
                e, f_k = gap(e, up, down), gap(f[k], h[k], horizontal)
                up = best(diag, s_k, e, f_k)
            else:
                row = diag, up, h[k], e, f[k], s_k, down, horizontal, tie
                up, e, f_k, code = coded[k % 4](*row)
                codes.append(code)
            diag = h[k]
            new_h.append(up)
            new_f.append(f_k)
        if halves is not None:
            columns = block.tiles * TILE
            start = (s * (rows // 4) * columns + j) * lanes
            halves = _store(halves, codes, start, columns * lanes)
        track = lane_best.follow(track, new_h, lax.rem(j, jnp.int32(TILE)), tie, fused)
        last_row = lax.dynamic_update_slice(last_row, up[None], (j, jnp.int32(0)))
        e_row = lax.dynamic_update_slice(e_row, e[None], (j, jnp.int32(0)))
        return tuple(new_h), tuple(new_f), above, last_row, e_row, halves, track

    return column


def _row_of_cells(local, fused):
    """Functions of a row of cells: E or F, and H, as scores need them; and all with a
    nibble, for each place in a half.

    Functions of their own, so that nothing is computed twice; and where each gives one
    array, the next finds it in registers.
    """

    def wide(gaps, like):
        return Gaps(*(x if x.ndim else lax.broadcast(x, like.shape) for x in gaps))

    def gap(longer, new, gaps):
        return recurrence.gap(longer, new, wide(gaps, new))

    def best(diag, s, e, f):
        s = lane_scores.from_profile(*s, diag.dtype) if isinstance(s, tuple) else s
        return recurrence.best(diag, s, e, f, local)

    def coded(diag, up, left, e, f, s, vertical, horizontal, tie, *, place):
        s = lane_scores.from_profile(*s, diag.dtype) if isinstance(s, tuple) else s
        gaps = wide(vertical, diag), wide(horizontal, diag)
        cell = recurrence.pair_cell(diag, up, left, e, f, s, *gaps, tie, local)
        code = directions.nibble(cell, local, jnp.uint16, 4 * (3 - place))
        return cell.h, cell.e, cell.f, code

    places = [one_function(partial(coded, place=place), fused) for place in range(4)]
    return one_function(gap, fused), one_function(best, fused), places


def _store(halves, codes, place, stride):
    """Four nibbles a lane into each half; ``stride`` lies between two halves."""
    for q in range(len(codes) // 4):
        half = codes[4 * q] | codes[4 * q + 1] | codes[4 * q + 2] | codes[4 * q + 3]
        halves = lax.dynamic_update_slice(halves, half, (place + q * stride,))
    return halves
