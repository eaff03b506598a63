"""Posteriors of many soft tables, from the values that ``soft.forward`` stores.

The march goes back over the same steps: each cell splits the posteriors that arrive
from E below, F to the right and M on the diagonal among its own states by their
weights. Every split is normalised on its own, so nothing exceeds 1, and the flows
through the gap moves are the expected numbers of residues that pay for them.

With ``dual`` every number is a pair, itself and its tangent, and the tangents leave the
kernel.
"""

import math
from functools import partial

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental.pallas import mosaic_gpu as plgpu

from kernels_pallas.core.mosaic import Threads, kernel
from kernels_pallas.similarity.soft.cells import (
    apply,
    exp_of,
    exp_tangent,
    extensions,
    opens,
    reverse_cell,
    run_cost,
    shares,
    smooth,
)
from kernels_pallas.similarity.soft.forward import either, hang
from kernels_pallas.similarity.soft.shapes import (
    LOG_ZERO,
    Soft,
    SoftInputs,
    SoftSizes,
    block_of,
    scratch,
    view_of,
)


def reverse(inputs: SoftInputs, values, log_z, shape, s: Soft, sizes: SoftSizes,
            interpret=None):  # fmt: skip
    """Run the reverse pass on the values that ``forward`` returned.

    ``log_z`` float32 (pairs * 4,) has (high, rest, tangent, 0) of each pair, ``shape``
    is (m, n). Returns the posterior (pairs, m, columns of all steps), of which nothing
    is written beyond the lengths, and sums (pairs, 4, lanes), the payers of
    ``GapCosts`` in a lane's rows.
    """
    pairs = sizes.programs * s.groups
    wide = sizes.width - s.columns
    shapes = [(pairs, shape[0], wide), (sizes.programs, 4, s.threads)]
    flat = [jax.ShapeDtypeStruct((math.prod(x),), jnp.float32) for x in shapes]
    run = kernel(
        partial(_reverse_program, s=s, sizes=sizes, height=shape[0]), flat,
        [plgpu.SMEM((scratch(s),), jnp.float32)], (sizes.programs,), ("program",),
        interpret, s.warpgroups,
    )  # fmt: skip
    values = [x.reshape(-1) for x in values]
    arrays = inputs.numbers, inputs.blocks, inputs.steps, log_z, *values
    posterior, sums = run(*arrays, *inputs.changes[1:])
    sums = sums.reshape(sizes.programs, 4, s.groups, s.lanes)
    sums = jnp.moveaxis(sums, 1, 2).reshape(pairs, 4, s.lanes)
    return posterior.reshape(shapes[0]), sums


def _reverse_program(numbers, blocks, steps, log_z, values, bases, *refs, s, sizes,
                     height):  # fmt: skip
    *changes, posterior, out, shared = refs
    th = Threads(s.plain, s.threads // s.warpgroups)
    numbers, blocks, log_z, values, bases, *changes = map(
        th.read_only, (numbers, blocks, log_z, values, bases, *changes)
    )
    view = view_of(th, s, sizes, numbers, blocks, *changes)
    r = view.r
    none = (r.splat(0.0),) * (1 + s.dual)
    z = r.load(log_z, 4 * view.pair, 4)
    count = steps[view.program]
    ahead = _values(view, values, bases, count - 1)
    nothing = (none,) * s.rows
    carry = nothing, nothing, none, (none,) * (2 * s.columns), (none,) * 4, ahead
    step = partial(_step, view, values, bases, posterior, shared, z, height, count)
    m, _, _, _, sums, _ = lax.fori_loop(jnp.int32(0), count, step, carry)
    for k in range(s.rows):  # M of column 1 starts behind column 0
        sums = _pay(view, sums, m[k], view.start, view.top + (k + 0.0), none[0])
    for k, value in enumerate(sums):
        at = view.thread + k * s.threads
        r.store(out, at, value[-1:], view.program, 4 * s.threads)


def _values(view, values, bases, t):
    """M, E, F by row and column, tangents, and the base; some other step's where a
    lane has no block."""
    s, th, sizes = view.s, view.r.th, view.sizes
    c = jnp.clip(t - view.lane, th.splat(0), jnp.maximum(view.blocks - 1, th.splat(0)))
    at = jnp.minimum(c + view.lane, sizes.steps - 1)
    step = view.program * sizes.steps + at
    flat = []
    for q in range(s.quads):
        place = (view.thread + q * s.threads) * 4
        flat += view.r.load(values, place, 4, step, s.quads * s.threads * 4)
    base = view.r.load(bases, view.thread, 1, step, s.threads)
    return tuple(flat) + base


def _step(view, values, bases, posterior, shared, z, height, count, x, carry):
    """U columns of every lane, backwards."""
    s, r = view.s, view.r
    t = count - 1 - x
    m_last, to_f, corner, out, sums, now = carry
    row_below = _from_below(view, out, shared, x & 1)
    ahead = _values(view, values, bases, jnp.maximum(t - 1, 0))
    zero = r.splat(0.0)
    c, inside = block_of(view, t)
    j = [(c * s.columns + (u + 1)).astype(jnp.float32) for u in range(s.columns)]
    base = now[-1] * view.unit
    over_z = jnp.where(inside, (base - z[0]) - z[1], r.splat(LOG_ZERO))
    over_z = (over_z, -z[2])[: 1 + s.dual]
    to_e, to_m, to_f = list(row_below[::2]), list(m_last), list(to_f)
    diagonal, added, p = [*row_below[3::2], corner], sums, {}
    for line in reversed(range(s.rows + s.columns - 1)):
        for u in reversed(range(s.columns)):
            k = line - u
            if not 0 <= k < s.rows:
                continue
            i = view.top + (k + 1.0)
            cell = _cell(s, now, k * s.columns + u)
            left = view.m - i, view.n - j[u]
            trail = hang(view, view.end, *left, zero)
            (ending,) = apply(partial(_ending, r), cell[0], trail, over_z)
            start = hang(view, view.start, i, j[u], base)
            arriving = to_e[u], to_f[k], diagonal[u]
            m, to_e[u], to_f[k], *flows, begun = apply(
                partial(reverse_cell, r), *view.cost, *cell, start, ending, *arriving
            )
            diagonal[u], to_m[k], p[k, u] = to_m[k], m, m
            added = [_plus(x, y) for x, y in zip(added, flows, strict=True)]
            added = _pay(view, added, begun, view.start, i, j[u])
            added = _pay(view, added, ending, view.end, *left)
    for u in range(s.columns):  # M of row 1 starts behind row 0
        first = tuple(jnp.where(view.first, x, zero) for x in p[0, u])
        added = _pay(view, added, first, view.start, zero, j[u] - 1.0)
    sums = tuple(either(inside, x, y) for x, y in zip(added, sums, strict=True))
    m_first = tuple(either(inside, x, y) for x, y in zip(to_m, m_last, strict=True))
    _store(view, posterior, p, c, inside, height)
    out = tuple(y for u in range(s.columns) for y in (to_e[u], p[0, u]))
    return m_first, tuple(to_f), row_below[1], out, sums, ahead


def _from_below(view, out, shared, turn):
    """The values of the lane below; 0 from beyond the last row."""
    s, r = view.s, view.r
    flat = [x for y in out for x in y]
    flat = r.next_lane(flat, s.lanes, True, shared, turn, view.thread)
    below = view.lane < view.bands - 1
    flat = [jnp.where(below, x, r.splat(0.0)) for x in flat]
    width = 1 + s.dual
    return [tuple(flat[k : k + width]) for k in range(0, len(flat), width)]


def _cell(s: Soft, now, at):
    """M, E, F of a cell, with their tangents."""
    return [
        tuple(now[at + (state + 3 * part) * s.cells] for part in range(1 + s.dual))
        for state in range(3)
    ]


def _ending(r, m, trail, over_z):
    """The probability to end in a cell."""
    return (smooth(r, exp_of, exp_tangent)(m + trail + over_z),)


def _pay(view, sums, weight, side, k, l):
    """Add the payers of overhangs of k and l residues, with the probability ``weight``.

    Which of two free ends is the cheaper changes nowhere but in a tie.
    """
    open_e, extend_e, open_f, extend_f = (x[0] for x in view.cost)
    query, target = run_cost(k, open_e, extend_e), run_cost(l, open_f, extend_f)
    a, b = shares(view.r, side, query, target)
    paid = a * opens(k), a * extensions(k), b * opens(l), b * extensions(l)
    return [
        tuple(x + w * y for x, w in zip(total, weight, strict=True))
        for total, y in zip(sums, paid, strict=True)
    ]


def _plus(a, b):
    return tuple(x + y for x, y in zip(a, b, strict=True))


def _store(view, posterior, p, c, inside, height):
    """Rows of U posteriors, where there is a row."""
    s = view.s
    wide = view.sizes.width - s.columns
    first = view.lane * s.rows
    at = first * wide + c * s.columns
    for k in range(s.rows):
        where = (inside & (first + k < height)).astype(jnp.int32)
        values = tuple(p[k, u][-1] for u in range(s.columns))
        view.r.store(posterior, at, values, view.pair, height * wide, where, k * wide)
