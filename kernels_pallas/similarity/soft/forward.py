"""Values of many soft tables at once: log weights of all paths into every cell.

A group of G lanes has one table: a warp, or the four or eight of a program. Lane g
keeps K rows and works on the U columns of step t - g, so that lanes work on one
anti-diagonal of blocks. The values of its last row go to the next lane by ``shfl``,
from warp to warp through shared memory.

Each lane keeps its values relative to a base of its own, which follows the largest of
them after every step: float32 keeps its digits however long the sequences are. Bases
are multiples of a unit, a power of two near 1 / T, so that nothing is rounded.

Borders are data: columns before the first carry forbidden scores, which leave the
state of column 0 as it is. With ``dual`` every number is a pair, itself and its
tangent; without, a tuple of one.
"""

import math
from functools import partial

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental.pallas import mosaic_gpu as plgpu

from kernels_pallas.core.mosaic import Threads, kernel
from kernels_pallas.similarity.soft.cells import apply, forward_cell, run_cost, shares
from kernels_pallas.similarity.soft.shapes import (
    LOG_ZERO,
    Soft,
    SoftInputs,
    SoftSizes,
    block_of,
    load_scores,
    scratch,
    view_of,
)


def forward(inputs: SoftInputs, s: Soft, sizes: SoftSizes, keep: bool, interpret=None):
    """Run the forward pass.

    Returns
    -------
    ends : float32 (programs, 4, 128)
        Log of the sum over ends in a lane's rows: largest, sum relative to it, base;
        tangent of the sum.
    values : (programs, steps, 3 K U / 4, 128, 4) and bases (programs, steps, 128)
        M, E, F of all cells, then their tangents, with ``keep``.
    """
    programs, steps = sizes.programs, sizes.steps
    shapes = [(programs, 4, s.threads)]
    if keep:
        shapes += [(programs, steps, s.quads, s.threads, 4)]
        shapes += [(programs, steps, s.threads)]
    flat = [jax.ShapeDtypeStruct((math.prod(x),), jnp.float32) for x in shapes]
    run = kernel(
        partial(_forward_program, s=s, sizes=sizes), flat,
        [plgpu.SMEM((scratch(s),), jnp.float32)], (programs,), ("program",), interpret,
        s.warpgroups,
    )  # fmt: skip
    outputs = run(*inputs[:4], *inputs.changes)
    return [x.reshape(shape) for x, shape in zip(outputs, shapes, strict=True)]


def _forward_program(scores, numbers, blocks, steps, *refs, s, sizes):
    changes, (ends, *stores, shared) = refs[: 2 * s.dual], refs[2 * s.dual :]
    th = Threads(s.plain, s.threads // s.warpgroups)
    scores, numbers, blocks, *changes = map(
        th.read_only, (scores, numbers, blocks, *changes)
    )
    view = view_of(th, s, sizes, numbers, blocks, *changes[1:])
    scores = (scores, *changes[:1])
    r, zero = view.r, view.r.splat(0.0)
    dead = (r.splat(LOG_ZERO), zero)[: 1 + s.dual]
    rows = [_start(view, view.top + (k + 1.0), zero, zero) for k in range(s.rows)]
    corner = _start(view, view.top, zero, zero)
    state = (tuple(rows), (dead,) * s.rows, corner, zero)
    out = (rows[-1], dead) * s.columns
    total = (r.splat(LOG_ZERO), zero, zero, zero)
    ahead = load_scores(view, scores, jnp.int32(0))
    step = partial(_step, view, scores, stores, shared)
    count = steps[view.program]
    carry = lax.fori_loop(jnp.int32(0), count, step, (state, (out, zero), total, ahead))
    for k, value in enumerate(carry[2]):
        r.store(
            ends, view.thread + k * s.threads, (value,), view.program, 4 * s.threads
        )


def _start(view, i, j, shift):
    """Log weight of starting behind cell (i, j), relative to ``shift``."""
    return hang(view, view.start, i, j, shift)


def hang(view, side, k, l, shift):
    """Log weight of an overhang of k and l residues, relative to ``shift``."""

    def run(open_e, extend_e, open_f, extend_f):
        query, target = run_cost(k, open_e, extend_e), run_cost(l, open_f, extend_f)
        a, b = shares(view.r, side, query, target)
        return (-(a * query + b * target) - shift,)

    return apply(run, *view.cost)[0]


def _step(view, scores, stores, shared, t, carry):
    """U columns of every lane."""
    s, r = view.s, view.r
    (b, f, corner, base), out, total, now = carry
    row_above, delta = _from_above(view, out, base, shared, t & 1)
    ahead = load_scores(view, scores, t + 1)
    zero = r.splat(0.0)
    dead = (r.splat(LOG_ZERO), zero)[: 1 + s.dual]
    c, inside = block_of(view, t)
    j = [(c * s.columns + (u + 1)).astype(jnp.float32) for u in range(s.columns)]
    shift = base * view.unit
    above, e = [], []
    for u in range(s.columns):
        top = _start(view, zero, j[u], shift)
        above.append(either(view.first, top, _moved(row_above[2 * u], delta, r)))
        e.append(either(view.first, dead, _moved(row_above[2 * u + 1], delta, r)))
    b, f = list(b), list(f)
    diagonal = [corner] + above[:-1]
    tables, a_last = ({}, {}, {}), []
    # Columns are taken one row apart: cells side by side do not wait for each other.
    for line in range(s.rows + s.columns - 1):
        for u in range(s.columns):
            k = line - u
            if not 0 <= k < s.rows:
                continue
            start = _start(view, view.top + (k + 1.0), j[u], shift)
            values = *view.cost, now[k][u], diagonal[u], e[u], f[k], start
            tables[1][k, u], tables[2][k, u] = e[u], f[k]
            m, a, new, e[u], f[k] = apply(partial(forward_cell, r), *values)
            tables[0][k, u] = m
            diagonal[u], b[k] = b[k], new
            if u == s.columns - 1:
                a_last.append(a[0])
    if stores:
        _store_values(view, stores, t, inside, tables, base)
    # B of the last row: the next column's cell saw it as its diagonal.
    below = [*diagonal[1:], b[-1]]
    out = tuple(x for pair in zip(below, e, strict=True) for x in pair), base
    total = _end_here(view, tables[0], j, base, total)
    best = largest(a_last)
    best = jnp.where(best > r.splat(LOG_ZERO / 20), best, zero)
    units = lax.round(best * view.per_unit, lax.RoundingMethod.TO_NEAREST_EVEN)
    moved = -units * view.unit
    b, f = (tuple(_moved(x, moved, r) for x in y) for y in (b, f))
    corner = _moved(above[-1], moved, r)
    return (b, f, corner, base + units), out, total, ahead


def _from_above(view, out, base, shared, turn):
    """The values of the lane above, and the difference of its base."""
    values, its_base = out
    flat = [x for value in values for x in value] + [its_base]
    *flat, its_base = view.r.next_lane(
        flat, view.s.lanes, False, shared, turn, view.thread
    )
    width = 1 + view.s.dual
    row_above = [tuple(flat[k : k + width]) for k in range(0, len(flat), width)]
    return row_above, (its_base - base) * view.unit


def _moved(x, more, r):
    """A value relative to another base; forbidden ones stay so."""
    return (jnp.maximum(x[0] + more, r.splat(LOG_ZERO)), *x[1:])


def either(mask, a, b):
    return tuple(jnp.where(mask, x, y) for x, y in zip(a, b, strict=True))


def _store_values(view, stores, t, inside, tables, base):
    """Store M, E, F of the step, four numbers of a thread side by side."""
    s, r = view.s, view.r
    flat = [
        x[k, u][part]
        for part in range(1 + s.dual)
        for x in tables
        for k in range(s.rows)
        for u in range(s.columns)
    ]
    where = inside.astype(jnp.int32)
    at = view.program * view.sizes.steps + t
    for q in range(s.quads):
        place = (view.thread + q * s.threads) * 4
        values = tuple(flat[4 * q : 4 * q + 4])
        r.store(stores[0], place, values, at, s.quads * s.threads * 4, where)
    r.store(stores[1], view.thread, (base,), at, s.threads, where)


def _end_here(view, m_all, j, base, total):
    """Add the paths that end in this step."""
    r, s = view.r, view.s
    zero = r.splat(0.0)
    logs = []
    for (k, u), m in m_all.items():
        left = view.m - view.top - (k + 1.0), view.n - j[u]
        trail = hang(view, view.end, *left, zero)
        logs.append(tuple(x + y for x, y in zip(m, trail, strict=True)))
    top, sum_, ground, d_sum = total
    best = largest([x[0] for x in logs])
    old = top - (base - ground) * view.unit
    better = best > old
    new = jnp.maximum(best, old)
    scale = r.exp(old - new)
    sum_, d_sum = sum_ * scale, d_sum * scale
    for x in logs:
        part = r.exp(x[0] - new)
        sum_ = sum_ + part
        if s.dual:
            d_sum = d_sum + part * x[1]
    top = jnp.where(better, best, top)
    return top, sum_, jnp.where(better, base, ground), d_sum


def largest(values):
    """The largest of some numbers of each thread, in a tree."""
    while len(values) > 1:
        values = [
            jnp.maximum(*values[k : k + 2]) if k + 1 < len(values) else values[k]
            for k in range(0, len(values), 2)
        ]
    return values[0]
