"""Posteriors of many soft tables, from the values that ``soft_forward`` kept.

The march goes back over the same steps: each cell splits the posteriors that arrive
from E below, F to the right and M on the diagonal among its own states by what these
weigh. Every split is normalised on its own, so nothing exceeds 1, and the flows
through the gap moves are the expected numbers of residues that pay for them.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental.pallas import mosaic_gpu as plgpu

from kernels_pallas.mosaic import THREADS, Threads, kernel
from kernels_pallas.soft_cells import (
    extensions,
    opens,
    reverse_cell,
    run_cost,
    shares,
)
from kernels_pallas.soft_shapes import (
    DEAD,
    Inputs,
    Sizes,
    Soft,
    block_of,
    scratch,
    view_of,
)


def reverse(inputs: Inputs, values, log_z, shape, s: Soft, sizes: Sizes,
            interpret=None):  # fmt: skip
    """Run it.

    Parameters
    ----------
    values : as ``forward`` keeps them
    log_z : float32 (pairs * 2,), (high, rest) of each
    shape : (m, n)

    Returns
    -------
    posterior : (pairs, m, columns of all steps); nothing is written beyond the lengths
    sums : (pairs, 4, lanes): payers of ``Costs`` in a lane's rows
    """
    pairs = sizes.programs * s.groups
    wide = sizes.width - s.columns
    shapes = [(pairs, shape[0], wide), (sizes.programs, 4, THREADS)]
    flat = [jax.ShapeDtypeStruct((x * y * z,), jnp.float32) for x, y, z in shapes]
    run = kernel(
        partial(_reverse_program, s=s, sizes=sizes, height=shape[0]), flat,
        [plgpu.SMEM((scratch(s),), jnp.float32)], (sizes.programs,), ("program",),
        interpret,
    )  # fmt: skip
    values = [x.reshape(-1) for x in values]
    posterior, sums = run(inputs.numbers, inputs.blocks, inputs.steps, log_z, *values)
    sums = sums.reshape(sizes.programs, 4, s.groups, s.lanes)
    sums = jnp.moveaxis(sums, 1, 2).reshape(pairs, 4, s.lanes)
    return posterior.reshape(shapes[0]), sums


def _reverse_program(numbers, blocks, steps, log_z, values, bases, posterior, out,
                     shared, *, s, sizes, height):  # fmt: skip
    th = Threads(s.plain)
    numbers, blocks, log_z, values, bases = map(
        th.held, (numbers, blocks, log_z, values, bases)
    )
    view = view_of(th, s, sizes, numbers, blocks)
    r, zero = view.r, view.r.splat(0.0)
    z = r.load(log_z, 2 * view.pair, 2)
    count = steps[view.program]
    fresh = _values(view, values, bases, count - 1)
    nothing = (zero,) * s.rows
    carry = nothing, nothing, zero, (zero,) * (2 * s.columns), (zero,) * 4, fresh
    step = partial(_step, view, values, bases, posterior, shared, z, height, count)
    m, _, _, _, sums, _ = lax.fori_loop(jnp.int32(0), count, step, carry)
    sums = list(sums)
    for k in range(s.rows):  # M of column 1 starts behind column 0
        _add_hang(view, sums, m[k], view.start, view.top + (k + 0.0), zero)
    for k, value in enumerate(sums):
        r.store(out, view.thread + k * THREADS, (value,), view.program, 4 * THREADS)


def _values(view, values, bases, t):
    """M, E, F by row and column, and the base; some other step's where a lane has
    no block."""
    s, th = view.s, view.r.th
    c = jnp.clip(t - view.lane, th.splat(0), jnp.maximum(view.blocks - 1, th.splat(0)))
    at = c + view.lane
    at = jnp.minimum(at, view.sizes.steps - 1)
    quads = 3 * s.cells // 4
    step = at * (quads * THREADS * 4)
    stride = view.sizes.steps * quads * THREADS * 4
    flat = []
    for q in range(quads):
        place = step + (view.thread + q * THREADS) * 4
        flat += view.r.load(values, place, 4, view.program, stride)
    place = at * THREADS + view.thread
    base = view.r.load(bases, place, 1, view.program, view.sizes.steps * THREADS)
    return tuple(flat) + base


def _step(view, values, bases, posterior, shared, z, height, count, x, carry):
    """U columns of every lane, backwards."""
    s, r = view.s, view.r
    t = count - 1 - x
    to_m, to_f, corner, out, sums, now = carry
    come = r.next_lane(out, s.lanes, True, shared, x & 1)
    fresh = _values(view, values, bases, jnp.maximum(t - 1, 0))
    zero = r.splat(0.0)
    below = view.lane < view.bands - 1
    come = [jnp.where(below, value, zero) for value in come]
    c, inside = block_of(view, t)
    j = [(c * s.columns + (u + 1)).astype(jnp.float32) for u in range(s.columns)]
    base = now[-1] * view.unit
    over_z = jnp.where(inside, (base - z[0]) - z[1], r.splat(DEAD))
    to_e, to_m, to_f = list(come[::2]), list(to_m), list(to_f)
    diagonal = [*come[3::2], corner]
    added = list(sums)
    p = {}
    for line in reversed(range(s.rows + s.columns - 1)):
        for u in reversed(range(s.columns)):
            k = line - u
            if not 0 <= k < s.rows:
                continue
            i = view.top + (k + 1.0)
            at = k * s.columns + u
            cell = tuple(now[at + state * s.cells] for state in range(3))
            (start, *starting), (end, *ending_) = _ends(view, i, j[u])
            ending = r.exp(cell[0] + end + over_z)
            arriving = to_e[u], to_f[k], diagonal[u]
            (m, to_e[u], to_f[k]), flows, begun = reverse_cell(
                r, view.cost, cell, start - base, ending, arriving
            )
            diagonal[u], to_m[k], p[k, u] = to_m[k], m, m
            added = [x + y for x, y in zip(added, flows, strict=True)]
            _pay(added, begun, starting, i, j[u])
            _pay(added, ending, ending_, view.m - i, view.n - j[u])
    for u in range(s.columns):  # M of row 1 starts behind row 0
        first = jnp.where(view.first, p[0, u], zero)
        _add_hang(view, added, first, view.start, zero, j[u] - 1.0)
    sums = tuple(jnp.where(inside, x, y) for x, y in zip(added, sums, strict=True))
    held = tuple(
        jnp.where(inside, x, y) for x, y in zip(to_m, carry[0], strict=True)
    )
    _store(view, posterior, p, c, inside, height)
    out = tuple(y for u in range(s.columns) for y in (to_e[u], p[0, u]))
    return held, tuple(to_f), come[1], out, sums, fresh


def _ends(view, i, j):
    """Log weights of starting behind and of ending in a cell, and shares of costs."""
    found = []
    for side, k, l in ((view.start, i, j), (view.end, view.m - i, view.n - j)):
        query = run_cost(k, view.cost.open_e, view.cost.extend_e)
        target = run_cost(l, view.cost.open_f, view.cost.extend_f)
        a, b = shares(view.r, side, query, target)
        found.append((-(a * query + b * target), a, b))
    return found


def _pay(sums, weight, paid, k, l):
    """Add what overhangs of k and l residues pay, with that probability."""
    a, b = (weight * share for share in paid)
    sums[0], sums[1] = sums[0] + a * opens(k), sums[1] + a * extensions(k)
    sums[2], sums[3] = sums[2] + b * opens(l), sums[3] + b * extensions(l)


def _add_hang(view, sums, weight, side, k, l):
    query = run_cost(k, view.cost.open_e, view.cost.extend_e)
    target = run_cost(l, view.cost.open_f, view.cost.extend_f)
    _pay(sums, weight, shares(view.r, side, query, target), k, l)


def _store(view, posterior, p, c, inside, height):
    """Rows of U posteriors, where there is a row."""
    s = view.s
    wide = view.sizes.width - s.columns
    for k in range(s.rows):
        row = view.lane * s.rows + k
        where = (inside & (row < height)).astype(jnp.int32)
        at = row * wide + c * s.columns
        values = tuple(p[k, u] for u in range(s.columns))
        view.r.store(posterior, at, values, view.pair, height * wide, where)
