"""A part of a table along a diagonal, with directions, and a walk through it.

*Lane* o has the cells (i, i + o) of a block, o = 1 ... W, below row 0, which is given.
What lies beside the lanes is left out: a path that leaves them passes one of the outer
lanes, whose best tells whether it can be as good as the path that is walked.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxalign.affine import Gaps, neg_inf
from jaxalign.one_function import CPU_OPTIONS, one_function
from jaxalign.pairs.dp import directions, matrix_rows, recurrence, walk
from jaxalign.runtime.programs import program


class BandWalk(NamedTuple):
    """Where a walk leaves a band on row 0, and the best H - i * match of the cells of
    either outer lane."""

    j: jax.Array
    move: jax.Array
    count: jax.Array
    steps: jax.Array  # uint8 (T,), from the end
    below: jax.Array  # lane 1
    above: jax.Array  # lane W


class _Lanes(NamedTuple):
    """Cells of every other lane, on one anti-diagonal; all int32 (W / 2,)."""

    h: jax.Array
    e: jax.Array
    f: jax.Array
    best: jax.Array


class _BandInputs(NamedTuple):
    """Arrays of a band: the row above by the parity of lanes, scores, letters."""

    top: tuple
    scores: jax.Array  # int8 (A, M + W): of each row, reversed
    target: jax.Array  # uint8
    gaps: Gaps
    match: jax.Array


@program(("fused",), compiler_options=CPU_OPTIONS)
def fill_and_walk(query, target, i, j, move, top, scores, gaps, match, *, fused):
    """Fill a band, and walk from cell (i, j) to row 0.

    Parameters
    ----------
    query : uint8 (M,), with i <= M
    target : uint8 (M + W,)
    top : (H, E) of row 0, int32 (W,), of columns 1 ... W
    scores : int8 (A, A)
    """
    rows, half = query.shape[0], top[0].shape[0] // 2
    beside = jnp.zeros(half, query.dtype)
    letters = jnp.concatenate([beside, query, beside])[::-1]
    by_lane = [tuple(x[parity::2] for x in top) for parity in (0, 1)]
    by_row = scores[letters].T
    given = _BandInputs(tuple(by_lane), by_row, target, gaps, match)
    minus = jnp.full(half, neg_inf(top[0].dtype), top[0].dtype)
    start = (_Lanes(minus, minus, minus, minus),) * 2
    codes = jnp.zeros((rows + half + 1, 2 * half), jnp.uint8)
    steps = i + ((j - i - 1) >> 1) + 1
    run = one_function(partial(_steps, rows=rows, fused=fused), fused)
    (odd, even), codes = run(start, codes, given, steps)
    walked = _walk(codes, i, j, move, half, 2 * rows + 2 * half)
    return BandWalk(
        walked.j[0], walked.move[0], walked.columns[0], walked.steps[:, 0],
        odd.best[0], even.best[-1],
    )  # fmt: skip


def _steps(
    start: tuple, codes: jax.Array, given: _BandInputs, count, *, rows: int, fused
):
    """Two anti-diagonals a step: i + j = 2 s + 1, of odd lanes, and 2 s + 2, of even
    ones. In lane 2 k + 1 or 2 k + 2 both have i = s - k."""
    half = start[0].h.shape[0]
    minus = lax.full((half,), neg_inf(start[0].h.dtype), start[0].h.dtype)
    k = lax.iota(jnp.int32, half)
    gaps = Gaps(*(lax.broadcast(g, (half,)) for g in given.gaps))
    alone = partial(one_function, enabled=fused)
    cells = alone(partial(_cells, gaps=gaps, match=lax.broadcast(given.match, (half,))))

    def step(s, state):
        (odd, even), codes = state
        i = lax.broadcast(s, (half,)) - k
        first = jnp.int32(rows + half) - s
        by_letter = [
            lax.dynamic_slice_in_dim(row, first, half)
            for row in (lax.index_in_dim(given.scores, a, keepdims=False)
                        for a in range(given.scores.shape[0]))
        ]  # fmt: skip
        left = [lax.concatenate([minus[:1], x[:-1]], 0) for x in (even.h, even.f)]
        up = even.h, even.e
        text = lax.dynamic_slice_in_dim(given.target, s, half)
        new_odd, code = cells(odd, up, tuple(left), i, by_letter, text, given.top[0])
        up = [lax.concatenate([x[1:], minus[:1]], 0) for x in (new_odd.h, new_odd.e)]
        left = new_odd.h, new_odd.f
        text = lax.dynamic_slice_in_dim(given.target, s + 1, half)
        new_even, more = cells(even, tuple(up), left, i, by_letter, text, given.top[1])
        row = lax.concatenate([code, more], 0)
        return (new_odd, new_even), matrix_rows.put_row(codes, row, s)

    return lax.fori_loop(0, count, step, (start, codes))


def _cells(lanes: _Lanes, up, left, i, by_letter, text, top, *, gaps, match):
    """New cells of lanes, and their directions."""
    s = matrix_rows.by_code(by_letter, text).astype(i.dtype)
    given = i == lax.full_like(i, 0)
    e = recurrence.gap(up[1], up[0], gaps)
    f = recurrence.gap(left[1], left[0], gaps)
    h = recurrence.best(lanes.h, s, e, f, False)
    cell = recurrence.compared(h, e, f, lanes.h + s, up[1], left[1], gaps, gaps, None)
    code = directions.nibble(cell, False, jnp.uint8)
    h, e = lax.select(given, top[0], h), lax.select(given, top[1], e)
    f = lax.select(given, lax.full_like(f, neg_inf(f.dtype)), f)
    return _Lanes(h, e, f, lax.max(lanes.best, h - i * match)), code


def _walk(codes, i, j, move, half: int, longest: int):
    steps = jnp.full((longest, 1), walk.DONE, jnp.uint8)
    begin = walk.start(i[None], j[None], steps)._replace(move=move[None])
    always = jnp.ones((), bool)

    def nibble_at(i, j):
        lane = j - i - 1
        column = (lane & 1) * half + (lane >> 1)
        return codes.at[i + (lane >> 1), column].get(mode="clip").astype(jnp.int32)

    def same_at(i, _):
        return i < 0

    rules = walk.WalkBorders(always, always, jnp.int32(-1))
    return walk.walk(begin, nibble_at, same_at, rules)
