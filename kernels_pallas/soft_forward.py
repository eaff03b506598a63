"""Values of many soft tables at once: log weights of all paths into every cell.

A group of G lanes has one table: a warp, or the four of a program. Lane g keeps K rows
and works on the U columns of step t - g, so that lanes work on one anti-diagonal of
blocks. What its last row hands down goes to the next lane by ``shfl``, from warp to
warp through shared memory.

Each lane keeps its values relative to a base of its own, which follows the largest of
them after every step: float32 keeps its digits however long the sequences are. Bases
are multiples of a unit, a power of two near 1 / T, so that nothing is rounded.

Borders are data: columns before the first carry forbidden scores, which leave the
state of column 0 as it is.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental.pallas import mosaic_gpu as plgpu

from kernels_pallas.mosaic import THREADS, Threads, kernel
from kernels_pallas.soft_cells import forward_cell, run_cost, shares
from kernels_pallas.soft_shapes import (
    DEAD,
    Inputs,
    Sizes,
    Soft,
    block_of,
    load_scores,
    scratch,
    view_of,
)


def forward(inputs: Inputs, s: Soft, sizes: Sizes, keep: bool, interpret=None):
    """Run it.

    Returns
    -------
    ends : float32 (programs, 4, 128)
        Log of the sum over ends in a lane's rows: largest, sum relative to it, base.
    values : (programs, steps, 3 K U / 4, 128, 4) and bases (programs, steps, 128)
        M, E, F of all cells, where ``keep`` asks for them.
    """
    programs, steps = sizes.programs, sizes.steps
    shapes = [(programs, 4, THREADS)]
    if keep:
        shapes += [(programs, steps, 3 * s.cells // 4, THREADS, 4)]
        shapes += [(programs, steps, THREADS)]
    flat = [jax.ShapeDtypeStruct((_size(x),), jnp.float32) for x in shapes]
    run = kernel(
        partial(_forward_program, s=s, sizes=sizes), flat,
        [plgpu.SMEM((scratch(s),), jnp.float32)], (programs,), ("program",), interpret,
    )  # fmt: skip
    return [x.reshape(shape) for x, shape in zip(run(*inputs), shapes, strict=True)]


def _size(shape):
    size = 1
    for n in shape:
        size *= n
    return size


def _forward_program(scores, numbers, blocks, steps, ends, *refs, s, sizes):
    *kept, shared = refs
    th = Threads(s.plain)
    scores, numbers, blocks = map(th.held, (scores, numbers, blocks))
    view = view_of(th, s, sizes, numbers, blocks)
    r, dead, zero = view.r, view.r.splat(DEAD), view.r.splat(0.0)
    rows = [_start(view, view.top + (k + 1.0), zero) for k in range(s.rows)]
    corner = _start(view, view.top, zero)
    state = (tuple(rows), (dead,) * s.rows, corner, zero)
    out = (rows[-1], dead) * s.columns + (zero,)
    total = (dead, zero, zero)
    fresh = load_scores(view, scores, jnp.int32(0))
    step = partial(_step, view, scores, kept, shared)
    count = steps[view.program]
    carry = lax.fori_loop(jnp.int32(0), count, step, (state, out, total, fresh))
    for k, value in enumerate(carry[2]):
        r.store(ends, view.thread + k * THREADS, (value,), view.program, 4 * THREADS)


def _start(view, i, j):
    """Log weight of starting behind cell (i, j)."""
    query = run_cost(i, view.cost.open_e, view.cost.extend_e)
    target = run_cost(j, view.cost.open_f, view.cost.extend_f)
    a, b = shares(view.r, view.start, query, target)
    return -(a * query + b * target)


def _step(view, scores, kept, shared, t, carry):
    """U columns of every lane."""
    s, r, cost = view.s, view.r, view.cost
    (b, f, corner, base), out, total, now = carry
    turn = t & 1
    come = r.next_lane(out, s.lanes, False, shared, turn)
    fresh = load_scores(view, scores, t + 1)
    delta = (come[-1] - base) * view.unit
    dead, zero = r.splat(DEAD), r.splat(0.0)
    c, inside = block_of(view, t)
    j = [(c * s.columns + (u + 1)).astype(jnp.float32) for u in range(s.columns)]
    shift = base * view.unit
    above, e = [], []
    for u in range(s.columns):
        top = _start(view, zero, j[u]) - shift
        above.append(jnp.where(view.first, top, jnp.maximum(come[2 * u] + delta, dead)))
        e.append(
            jnp.where(view.first, dead, jnp.maximum(come[2 * u + 1] + delta, dead))
        )
    b, f = list(b), list(f)
    diagonal = [corner] + above[:-1]
    m_all, e_all, f_all, a_last = {}, {}, {}, []
    # Columns are taken one row apart: cells side by side do not wait for each other.
    for line in range(s.rows + s.columns - 1):
        for u in range(s.columns):
            k = line - u
            if not 0 <= k < s.rows:
                continue
            start = _start(view, view.top + (k + 1.0), j[u]) - shift
            e_all[k, u], f_all[k, u] = e[u], f[k]
            m, a, new, e[u], f[k] = forward_cell(
                r, cost, now[k][u], diagonal[u], e[u], f[k], start
            )
            m_all[k, u] = m
            diagonal[u], b[k] = b[k], new
            if u == s.columns - 1:
                a_last.append(a)
    if kept:
        _keep(view, kept, t, inside, (m_all, e_all, f_all), base)
    out = tuple(x for u in range(s.columns) for x in (_below(b, diagonal, s, u), e[u]))
    out = out + (base,)
    total = _end_here(view, m_all, j, base, total)
    best = _largest(a_last)
    moved = jnp.where(best > r.splat(DEAD / 20), best, zero)
    units = lax.round(moved * view.per_unit, lax.RoundingMethod.TO_NEAREST_EVEN)
    moved = units * view.unit
    b, f = (tuple(jnp.maximum(x - moved, dead) for x in y) for y in (b, f))
    corner = jnp.maximum(above[-1] - moved, dead)
    return (b, f, corner, base + units), out, total, fresh


def _below(b, diagonal, s, u):
    """B of the last row in column u: the next column's cell saw it as its diagonal."""
    return b[-1] if u == s.columns - 1 else diagonal[u + 1]


def _keep(view, kept, t, inside, tables, base):
    """Store M, E, F of the step, four numbers of a thread side by side."""
    s, r = view.s, view.r
    flat = [x[k, u] for x in tables for k in range(s.rows) for u in range(s.columns)]
    where = inside.astype(jnp.int32)
    at = view.program * view.sizes.steps + t
    quads = len(flat) // 4
    for q in range(quads):
        place = (view.thread + q * THREADS) * 4
        values = tuple(flat[4 * q : 4 * q + 4])
        r.store(kept[0], place, values, at, quads * THREADS * 4, where)
    r.store(kept[1], view.thread, (base,), at, THREADS, where)


def trail(view, i, j):
    """Log weight of ending in cell (i, j)."""
    query = run_cost(view.m - i, view.cost.open_e, view.cost.extend_e)
    target = run_cost(view.n - j, view.cost.open_f, view.cost.extend_f)
    a, b = shares(view.r, view.end, query, target)
    return -(a * query + b * target)


def _end_here(view, m_all, j, base, total):
    """Add the paths that end in this step."""
    r, s = view.r, view.s
    logs = [
        m_all[k, u] + trail(view, view.top + (k + 1.0), j[u])
        for k in range(s.rows)
        for u in range(s.columns)
    ]
    top, sum_, ground = total
    best = _largest(logs)
    held = top - (base - ground) * view.unit
    better = best > held
    new = jnp.maximum(best, held)
    sum_ = sum_ * r.exp(held - new)
    for x in logs:
        sum_ = sum_ + r.exp(x - new)
    top = jnp.where(better, best, top)
    return top, sum_, jnp.where(better, base, ground)


def _largest(values):
    while len(values) > 1:
        values = [
            jnp.maximum(*values[k : k + 2]) if k + 1 < len(values) else values[k]
            for k in range(0, len(values), 2)
        ]
    return values[0]
