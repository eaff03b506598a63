"""Forward and reverse pass of many soft tables: log weights, then posteriors.

A group of G lanes has one table: a warp, or the four or eight of a program. Lane g
keeps K rows and works on the U columns of step t - g, so that lanes work on one
anti-diagonal of blocks. The values of its last row go to the next lane by ``shfl``,
from warp to warp through shared memory.

Each lane keeps its values relative to its base, which follows the largest of them after
every step, so that float32 keeps its digits for sequences of any length. Bases are
multiples of a unit, a power of two near 1 / T, so that nothing is rounded.

Borders are data: columns before the first carry forbidden scores, which leave the
state of column 0 as it is. With ``dual`` every number is a pair, itself and its
tangent; without, a tuple of one.
"""

from functools import partial

import jax.numpy as jnp
from jax import lax
from jax.experimental.pallas import mosaic_gpu as plgpu

from kernels_pallas.core.mosaic import Threads, kernel
from kernels_pallas.similarity.soft_cells import (
    LOG_ZERO,
    Soft,
    SoftInputs,
    SoftSizes,
    apply,
    block_of,
    exp_of,
    exp_tangent,
    extensions,
    forward_cell,
    load_scores,
    opens,
    reverse_cell,
    run_cost,
    scratch,
    shares,
    smooth,
    view_of,
)


def forward(inputs: SoftInputs, s: Soft, sizes: SoftSizes, keep: bool, interpret=None):
    """Run the forward pass: the sums over ends in a lane's rows (largest log, sum
    relative to it, base, tangent of the sum); with ``keep`` M, E, F of all cells, then
    their tangents, and the bases."""
    programs, steps = sizes.programs, sizes.steps
    shapes = [(programs, 4, s.threads)]
    if keep:
        shapes += [(programs, steps, s.quads, s.threads, 4)]
        shapes += [(programs, steps, s.threads)]
    run = kernel(
        partial(_forward_program, s=s, sizes=sizes), shapes,
        [plgpu.SMEM((scratch(s),), jnp.float32)], (programs,), ("program",), interpret,
        s.warpgroups, jnp.float32,
    )  # fmt: skip
    return run(*inputs[:4], *inputs.changes)


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
    block_scores = load_scores(view, scores, jnp.int32(0))
    step = partial(_forward_step, view, scores, stores, shared)
    count = steps[view.program]
    carry = lax.fori_loop(
        jnp.int32(0), count, step, (state, (out, zero), total, block_scores)
    )
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


def _forward_step(view, scores, stores, shared, t, carry):
    """Fill U columns of every lane."""
    s, r = view.s, view.r
    (b, f, corner, base), out, total, block_scores = carry
    # The values of the lane above, and the difference of its base.
    handed, base_above = out
    flat = [x for value in handed for x in value] + [base_above]
    *flat, base_above = r.next_lane(flat, s.lanes, False, shared, t & 1, view.thread)
    width = 1 + s.dual
    row_above = [tuple(flat[k : k + width]) for k in range(0, len(flat), width)]
    delta = (base_above - base) * view.unit
    next_scores = load_scores(view, scores, t + 1)
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
            values = *view.cost, block_scores[k][u], diagonal[u], e[u], f[k], start
            tables[1][k, u], tables[2][k, u] = e[u], f[k]
            m, a, b_cell, e[u], f[k] = apply(partial(forward_cell, r), *values)
            tables[0][k, u] = m
            diagonal[u], b[k] = b[k], b_cell
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
    return (b, f, corner, base + units), out, total, next_scores


def _moved(x, shift, r):
    """Move a value to another base; forbidden values stay forbidden."""
    return (jnp.maximum(x[0] + shift, r.splat(LOG_ZERO)), *x[1:])


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
        remaining = view.m - view.top - (k + 1.0), view.n - j[u]
        trail = hang(view, view.end, *remaining, zero)
        logs.append(tuple(x + y for x, y in zip(m, trail, strict=True)))
    top, sum_, ground, d_sum = total
    best = largest([x[0] for x in logs])
    old = top - (base - ground) * view.unit
    better = best > old
    peak = jnp.maximum(best, old)
    scale = r.exp(old - peak)
    sum_, d_sum = sum_ * scale, d_sum * scale
    for x in logs:
        part = r.exp(x[0] - peak)
        sum_ = sum_ + part
        if s.dual:
            d_sum = d_sum + part * x[1]
    top = jnp.where(better, best, top)
    return top, sum_, jnp.where(better, base, ground), d_sum


def largest(values):
    """Largest of a list of numbers, in a tree."""
    while len(values) > 1:
        values = [
            jnp.maximum(*values[k : k + 2]) if k + 1 < len(values) else values[k]
            for k in range(0, len(values), 2)
        ]
    return values[0]


# ------------------------------------------------------------------------------
# Posteriors of many soft tables, from the values that ``forward`` stores.
#
# Steps run backwards: each cell splits the posteriors that arrive from E below, F to
# the right and M on the diagonal among its states by their weights. Each split is
# normalised, so nothing exceeds 1, and the flows through the gap moves are the expected
# numbers of residues that pay for them.
#
# With ``dual`` every number is a pair, itself and its tangent, and the kernel returns
# the tangents.


def reverse(inputs: SoftInputs, values, log_z, shape, s: Soft, sizes: SoftSizes,
            interpret=None):  # fmt: skip
    """Run the reverse pass on the values that ``forward`` returned.

    ``log_z`` float32 (pairs * 4,) has (high, rest, tangent, 0) of each pair; ``shape``
    is (m, n). Returns the posterior (pairs, m, columns of all steps), unwritten beyond
    the lengths, and sums (pairs, 4, lanes): the payers, in the order of ``GapCosts``,
    in a lane's rows.
    """
    pairs = sizes.programs * s.groups
    wide = sizes.width - s.columns
    shapes = [(pairs, shape[0], wide), (sizes.programs, 4, s.groups, s.lanes)]
    run = kernel(
        partial(_reverse_program, s=s, sizes=sizes, height=shape[0]), shapes,
        [plgpu.SMEM((scratch(s),), jnp.float32)], (sizes.programs,), ("program",),
        interpret, s.warpgroups, jnp.float32,
    )  # fmt: skip
    values = [x.reshape(-1) for x in values]
    arrays = inputs.numbers, inputs.blocks, inputs.steps, log_z, *values
    posterior, sums = run(*arrays, *inputs.changes[1:])
    return posterior, jnp.moveaxis(sums, 1, 2).reshape(pairs, 4, s.lanes)


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
    block_values = _values(view, values, bases, count - 1)
    nothing = (none,) * s.rows
    carry = nothing, nothing, none, (none,) * (2 * s.columns), (none,) * 4, block_values
    step = partial(
        _reverse_step, view, values, bases, posterior, shared, z, height, count
    )
    m, _, _, _, sums, _ = lax.fori_loop(jnp.int32(0), count, step, carry)
    for k in range(s.rows):  # M of column 1 starts behind column 0
        sums = _pay(view, sums, m[k], view.start, view.top + (k + 0.0), none[0])
    for k, value in enumerate(sums):
        at = view.thread + k * s.threads
        r.store(out, at, value[-1:], view.program, 4 * s.threads)


def _values(view, values, bases, t):
    """Load M, E, F by row and column, tangents, and the base of step ``t``; a lane
    without a block loads those of its nearest step."""
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


def _reverse_step(view, values, bases, posterior, shared, z, height, count, x, carry):
    """Compute posteriors of U columns of every lane."""
    s, r = view.s, view.r
    t = count - 1 - x
    m_last, to_f, corner, out, sums, block_values = carry
    # The values of the lane below; 0 from beyond the last row.
    flat = [value for pair in out for value in pair]
    flat = r.next_lane(flat, s.lanes, True, shared, x & 1, view.thread)
    below = view.lane < view.bands - 1
    flat = [jnp.where(below, value, r.splat(0.0)) for value in flat]
    width = 1 + s.dual
    row_below = [tuple(flat[k : k + width]) for k in range(0, len(flat), width)]
    next_values = _values(view, values, bases, jnp.maximum(t - 1, 0))
    zero = r.splat(0.0)
    c, inside = block_of(view, t)
    j = [(c * s.columns + (u + 1)).astype(jnp.float32) for u in range(s.columns)]
    base = block_values[-1] * view.unit
    over_z = jnp.where(inside, (base - z[0]) - z[1], r.splat(LOG_ZERO))
    over_z = (over_z, -z[2])[: 1 + s.dual]
    to_e, to_m, to_f = list(row_below[::2]), list(m_last), list(to_f)
    exponential = smooth(r, exp_of, exp_tangent)

    def probability(m, trail, over_z):
        """Of a path that ends in a cell."""
        return (exponential(m + trail + over_z),)

    diagonal, added, p = [*row_below[3::2], corner], sums, {}
    for line in reversed(range(s.rows + s.columns - 1)):
        for u in reversed(range(s.columns)):
            k = line - u
            if not 0 <= k < s.rows:
                continue
            i = view.top + (k + 1.0)
            # M, E, F of the cell, with their tangents.
            at, numbers = k * s.columns + u, block_values
            cell = [
                tuple(numbers[at + x * s.cells] for x in range(state, 3 * width, 3))
                for state in range(3)
            ]
            remaining = view.m - i, view.n - j[u]
            trail = hang(view, view.end, *remaining, zero)
            (ending,) = apply(probability, cell[0], trail, over_z)
            start = hang(view, view.start, i, j[u], base)
            arriving = to_e[u], to_f[k], diagonal[u]
            m, to_e[u], to_f[k], *flows, beginning = apply(
                partial(reverse_cell, r), *view.cost, *cell, start, ending, *arriving
            )
            diagonal[u], to_m[k], p[k, u] = to_m[k], m, m
            added = [
                tuple(x + y for x, y in zip(*pair, strict=True))
                for pair in zip(added, flows, strict=True)
            ]
            added = _pay(view, added, beginning, view.start, i, j[u])
            added = _pay(view, added, ending, view.end, *remaining)
    for u in range(s.columns):  # M of row 1 starts behind row 0
        first = tuple(jnp.where(view.first, x, zero) for x in p[0, u])
        added = _pay(view, added, first, view.start, zero, j[u] - 1.0)
    sums = tuple(either(inside, x, y) for x, y in zip(added, sums, strict=True))
    m_first = tuple(either(inside, x, y) for x, y in zip(to_m, m_last, strict=True))
    _store(view, posterior, p, c, inside, height)
    out = tuple(y for u in range(s.columns) for y in (to_e[u], p[0, u]))
    return m_first, tuple(to_f), row_below[1], out, sums, next_values


def _pay(view, sums, weight, side, k, l):
    """Add the payers of overhangs of k and l residues, with probability ``weight``.

    The choice of the cheaper of two free ends is constant except in a tie.
    """
    open_e, extend_e, open_f, extend_f = (x[0] for x in view.cost)
    query, target = run_cost(k, open_e, extend_e), run_cost(l, open_f, extend_f)
    a, b = shares(view.r, side, query, target)
    paid = a * opens(k), a * extensions(k), b * opens(l), b * extensions(l)
    return [
        tuple(x + w * y for x, w in zip(total, weight, strict=True))
        for total, y in zip(sums, paid, strict=True)
    ]


def _store(view, posterior, p, c, inside, height):
    """Store rows of U posteriors, within the height of the table."""
    s = view.s
    wide = view.sizes.width - s.columns
    first = view.lane * s.rows
    at = first * wide + c * s.columns
    for k in range(s.rows):
        where = (inside & (first + k < height)).astype(jnp.int32)
        values = tuple(p[k, u][-1] for u in range(s.columns))
        view.r.store(posterior, at, values, view.pair, height * wide, where, k * wide)
