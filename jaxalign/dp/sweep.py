"""One query against a block of targets, one target a lane: the fast CPU fill.

Rows are taken in strips of ``rows``; a strip sweeps over the columns of all lanes at
once and keeps H and F of its rows, while H and E of its last row wait in a boundary
row for the strip below. H, E and F are never stored beyond that.

Targets are right-aligned: they end in the same column, and begin at ``offset``. The
columns before a lane's first hold what column 0 holds, so every border case (the four
free ends are run-time flags) is data: a pad column scores 0 where the query's start is
free, which keeps H = 0, and ``-open`` where it is not, which leaves H to E. Rows below
the last of a query cost no gap to go down, so that they carry row m unchanged.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxalign.dp import directions, recurrence
from jaxalign.dp.call import one_function
from jaxalign.dp.recurrence import Gaps, border, neg_inf


class Block(NamedTuple):
    """Targets in lanes. ``columns`` of the static L are used; lane l holds residue
    j of its target in column ``offset[l] + j``."""

    codes: jax.Array  # uint8 (L, B), pad letter A before the target begins
    offset: jax.Array  # int32 (B,)
    columns: jax.Array  # int32 ()
    scores: jax.Array  # database profile (L, A+1, B), or the table (A+1, A+1)


class Query(NamedTuple):
    """Rows: one query for all lanes, or one a lane."""

    codes: jax.Array  # int32 (M,) or (M, B), pad letter A below the last row
    length: jax.Array  # int32 (B,)
    strips: jax.Array  # int32 (), how many strips the longest needs
    tie: jax.Array  # score dtype (B,), 1 where left goes before up


class Filled(NamedTuple):
    """What the end-cell rule needs (``ends``), and the backtrack."""

    last_row: jax.Array  # H[m, :] by column (L, B)
    corner: jax.Array  # H[m, n] (B,)
    column_best: jax.Array  # max of H[:, n] (B,), and its smallest row
    column_row: jax.Array
    best: jax.Array  # local: max of all cells (B,), its row and its column (1-based)
    best_row: jax.Array
    best_column: jax.Array
    halves: jax.Array | None  # uint16, flat: (half, column < columns, lane)


def fill(block, query, gaps, free, halves=None, *, local, rows=16, fused=True):
    """Fill all tables of a block.

    Parameters
    ----------
    free : dict of bool scalars, the four free ends of the rows/columns orientation
    halves : uint16 (capacity,) to be overwritten with backtrack, or None
    local, rows, fused : static; ``rows`` divides M; with backtrack it is a
        multiple of 4

    Returns
    -------
    Filled
        Right as long as no value leaves the range of ``gaps.open.dtype``: the caller
        proves that (``run.bounds``).
    """
    state = _before(block, query, gaps, free, halves, local)

    def strip(s, state):
        return _strip(s, state, block, query, gaps, free, local, rows, fused)

    return lax.fori_loop(0, query.strips, strip, state)[0]


def _before(block, query, gaps, free, halves, local):
    """Row 0: boundary rows H[0, :], E = -inf, and column n's candidate in row 0."""
    dtype = gaps.open.dtype
    lanes = block.offset.shape[0]
    j = (
        jnp.arange(block.codes.shape[0], dtype=jnp.int32)[:, None]
        - block.offset[None, :]
        + 1
    )
    h = border(j, free["target_start"] | local, gaps).astype(dtype)
    corner = border(
        block.columns - block.offset, free["target_start"] | local, gaps
    ).astype(dtype)
    zero = jnp.zeros(lanes, jnp.int32)
    filled = Filled(
        h, corner, corner, zero, jnp.zeros(lanes, dtype), zero, zero, halves
    )
    return filled, jnp.full_like(h, neg_inf(dtype))


def _strip(s, state, block, query, gaps, free, local, rows, fused):
    """One strip: rows s*rows + 1 ... s*rows + rows against every column."""
    filled, e_row = state
    dtype, lanes = gaps.open.dtype, block.offset.shape[0]
    i = s * rows + 1 + jnp.arange(rows, dtype=jnp.int32)[:, None]
    letters = lax.dynamic_slice_in_dim(query.codes, s * rows, rows)
    inside = i <= query.length[None, :]
    vertical = Gaps(
        *(jnp.where(inside, g, 0).astype(dtype) for g in (gaps.open, gaps.extend))
    )
    # Column 0, with the value of row m below row m.
    start = jnp.minimum(i, query.length[None, :])
    start = border(start, free["query_start"] | local, gaps).astype(dtype)
    above = jnp.minimum(s * rows, query.length)
    above = border(above, free["query_start"] | local, gaps).astype(dtype)
    minus = jnp.full(lanes, neg_inf(dtype))
    track = _track(filled, rows, local)
    carry = (tuple(start), (minus,) * rows, above, filled.last_row, e_row)
    sweep = one_function(
        lambda *args: _columns(*args, local, rows, fused), enabled=fused
    )
    h, f, _, last_row, e_row, halves, track = sweep(
        carry + (filled.halves, track),
        block,
        tuple(letters),
        tuple(map(tuple, vertical)),
        gaps,
        query.tie,
        s,
    )
    filled = filled._replace(last_row=last_row, halves=halves, corner=h[-1])
    if local:
        return _best_of_strip(filled, track, s * rows, query.tie), e_row
    return _last_column(filled, h, inside, s * rows), e_row


def _columns(carry, block, letters, vertical, gaps, tie, s, local, rows, fused):
    """The sweep over columns; a loop of one function on the CPU."""
    lanes = block.offset.shape[0]
    ties = None if carry[5] is None else tie

    def column(j, carry):
        h, f, diag, last_row, e_row, halves, track = carry
        up = _row(last_row, j)
        e = _row(e_row, j)
        above = up
        # F of a lane's column 0 is minus infinity: its first column cannot extend.
        cut = lax.select(
            lax.eq(lax.full((lanes,), j, jnp.int32), block.offset),
            lax.full((lanes,), -neg_inf(gaps.open.dtype), gaps.open.dtype),
            lax.broadcast(gaps.extend, (lanes,)),
        )
        horizontal = Gaps(lax.broadcast(gaps.open, (lanes,)), cut)
        new_h, new_f, codes = [], [], []
        for k in range(rows):
            score = _score(block, letters[k], j, gaps.open.dtype)
            gap = Gaps(vertical[0][k], vertical[1][k])
            up, e, f_k, code = _cell_row(
                (diag, up, h[k], e, f[k], score), gap, horizontal, ties, k, local, fused
            )
            diag = h[k]
            new_h.append(up)
            new_f.append(f_k)
            codes.append(code)
        if halves is not None:
            place = (s * (rows // 4) * block.columns + j) * lanes
            halves = _store(halves, codes, place, block.columns * lanes)
        track = _follow(track, new_h, j, local)
        last_row = lax.dynamic_update_slice(last_row, up[None], (j, jnp.int32(0)))
        e_row = lax.dynamic_update_slice(e_row, e[None], (j, jnp.int32(0)))
        return tuple(new_h), tuple(new_f), above, last_row, e_row, halves, track

    return lax.fori_loop(jnp.int32(0), block.columns, column, carry)


def _cell_row(values, vertical, horizontal, tie, k, local, fused):
    """One row of cells, a function of its own so that nothing is computed twice."""

    def row(diag, up, left, e, f, s, vertical, horizontal, tie):
        cell = recurrence.pair_cell(
            diag, up, left, e, f, s, vertical, horizontal, tie, local
        )
        if tie is None:
            return cell.h, cell.e, cell.f, None
        code = directions.nibble(cell, local, jnp.uint16, 4 * (3 - k % 4))
        return cell.h, cell.e, cell.f, code

    return one_function(row, enabled=fused)(*values, vertical, horizontal, tie)


def _row(array, j):
    return lax.squeeze(lax.dynamic_slice_in_dim(array, j, 1), (0,))


def _score(block, letter, j, dtype):
    """Substitution scores of one row in column j: a row of the profile, or a look-up
    where every lane has a query of its own."""
    lanes = block.offset.shape[0]
    if letter.ndim == 0:
        zero = jnp.int32(0)
        picked = lax.dynamic_slice(block.scores, (j, letter, zero), (1, 1, lanes))
        return lax.convert_element_type(lax.squeeze(picked, (0, 1)), dtype)
    width = block.scores.shape[1]
    index = letter * width + lax.convert_element_type(_row(block.codes, j), jnp.int32)
    flat = lax.reshape(block.scores, (width * width,))
    picked = flat.at[index].get(mode="promise_in_bounds")
    return lax.convert_element_type(picked, dtype)


def _store(halves, codes, place, stride):
    """Four nibbles a lane into each half; ``stride`` lies between two halves."""
    for q in range(len(codes) // 4):
        half = codes[4 * q] | codes[4 * q + 1] | codes[4 * q + 2] | codes[4 * q + 3]
        halves = lax.dynamic_update_slice(halves, half, (place + q * stride,))
    return halves


def _track(filled, rows, local):
    """Local mode: the running best. With backtrack, one a row and its column."""
    if not local:
        return ()
    if filled.halves is None:
        return (filled.best,)
    zero = jnp.zeros_like(filled.best)
    return (zero,) * rows, (zero,) * rows


def _follow(track, h, j, local):
    if not local:
        return track
    if len(track) == 1:
        best = track[0]
        for h_k in h:
            best = lax.max(best, h_k)
        return (best,)
    values, places = track
    here = lax.full_like(h[0], 0) + lax.convert_element_type(j + 1, h[0].dtype)
    places = tuple(
        lax.select(lax.gt(h_k, v), here, p)
        for h_k, v, p in zip(h, values, places, strict=True)
    )
    return tuple(lax.max(h_k, v) for h_k, v in zip(h, values, strict=True)), places


def _best_of_strip(filled, track, above, tie):
    """Fold a strip's rows into the best: smallest row, then column; the other way
    round where the two sides are swapped."""
    if len(track) == 1:
        return filled._replace(best=track[0])
    best, row, column = filled.best, filled.best_row, filled.best_column
    for k, (value, place) in enumerate(zip(*track, strict=True)):
        place = place.astype(jnp.int32)
        earlier = (tie > 0) & (value == best) & (value > 0) & (place < column)
        better = (value > best) | earlier
        best = jnp.where(better, value, best)
        row = jnp.where(better, above + k + 1, row)
        column = jnp.where(better, place, column)
    return filled._replace(best=best, best_row=row, best_column=column)


def _last_column(filled, h, inside, above):
    """Fold H[i, n] of a strip's rows into the best of column n."""
    best, row = filled.column_best, filled.column_row
    for k, value in enumerate(h):
        better = (value > best) & inside[k]
        best = jnp.where(better, value, best)
        row = jnp.where(better, above + k + 1, row)
    return filled._replace(column_best=best, column_row=row)
