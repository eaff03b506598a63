"""Single alignments under the soft model: the score of one, random ones, and the one of
maximum expected accuracy.

An alignment is the vector of *partners*: for each residue of the query the residue of
the target it is paired with (from 0, rising), -1 for none.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from jaxalign.similarity.arguments import COSTLY, FORBIDDEN, Factors, ModeRules
from jaxalign.similarity.arrays import loop_state
from jaxalign.similarity.band import allows, overhang_weight
from jaxalign.similarity.costs import CostTable, Overhang, Weights, cost_at
from jaxalign.similarity.soft.dp import free_energy, scan
from jaxalign.similarity.soft.dp.scan import Banded, diagonals

MATCH, GAP_E, GAP_F, START = 0, 1, 2, 3  # states of a walk


def path_score(
    weights: Weights, rules: ModeRules, partners: jax.Array, band: int | None = None
):
    """The score of one alignment, partners int32 (M,); -inf where it is not legal, or
    leaves the band.

    Differentiable in the weights. Partners are -1 or rise, and no residue beyond the
    lengths has one or is one.
    """
    rows, columns = weights.similarity.shape
    i = jnp.arange(rows, dtype=jnp.int32)
    j = jnp.arange(columns, dtype=jnp.int32)
    paired = (partners >= 0) & (i < rules.m) & (partners < rules.n)
    highest = jax.lax.cummax(jnp.where(paired, partners, -1))
    before = jnp.concatenate([jnp.full(1, -1, jnp.int32), highest])[:rows]
    sound = jnp.all(jnp.where(paired, partners > before, partners == -1))
    if rows == 0 or columns == 0:
        empty = weights.overhang.empty
        return jnp.where(sound & (empty > -COSTLY / 2), empty, -jnp.inf)
    to = jnp.where(paired, partners, 0)
    # Places beyond the table differ too, so that gradients add nothing up.
    apart = jnp.where(paired, partners, columns + i)
    once: Any = {"mode": "fill", "fill_value": 0, "unique_indices": True}
    s = weights.similarity
    if isinstance(s, Factors):
        s = jnp.sum(s.query * s.target.at[apart].get(**once), axis=-1)
    else:
        s = s.at[i, apart].get(**once)
    s = jnp.where(paired, s, 0)
    back = jnp.full(columns, -1, jnp.int32)
    back = back.at[apart].set(i, mode="drop", unique_indices=True)
    first, last = jnp.argmax(paired), rows - 1 - jnp.argmax(paired[::-1])
    first, last = first.astype(jnp.int32), last.astype(jnp.int32)
    # E after a pair stands in its column; F before a pair stands in the row above it.
    before = jax.lax.cummax(jnp.where(paired, i, -1))
    after = jax.lax.cummin(jnp.where(back >= 0, back, rows), reverse=True)
    inside_e = ~paired & (i > first) & (i < last)
    inside_f = (back < 0) & (j > to[first]) & (j < to[last])
    new_e = inside_e & (before == i - 1)
    new_f = inside_f & (jnp.concatenate([back[:1], back[:-1]]) >= 0)
    column = to[jnp.maximum(before, 0)]
    row = jnp.clip(after - 1, 0, rows - 1)
    opening, extending = weights.opening, weights.extending

    def paid(cost: jax.Array, *cells: jax.Array):
        """Costs of all residues of a sequence, in cells no two of which are one."""
        return cost if cost.ndim < 2 else cost.at[cells].get(**once)

    cost_e = jnp.where(new_e, paid(opening.e, i, column), 0)
    cost_e += jnp.where(inside_e & ~new_e, paid(extending.e, i, column), 0)
    cost_f = jnp.where(new_f, paid(opening.f, row, j), 0)
    cost_f += jnp.where(inside_f & ~new_f, paid(extending.f, row, j), 0)
    ends = jnp.zeros((), s.dtype)
    for side, cell in ("start", (first, to[first])), ("end", (last + 1, to[last] + 1)):
        hang = _hang_at(weights.overhang, side, *cell)
        ends += overhang_weight(hang, side, rules, band, *cell)
    total = jnp.sum(s) - jnp.sum(cost_e) - jnp.sum(cost_f) + ends
    right_unpaired = back[jnp.minimum(column + 1, columns - 1)] < 0
    illegal = ~rules.adjacent & jnp.any(new_e & right_unpaired)
    total = jnp.where(illegal, FORBIDDEN, total)
    if band is not None:
        outside = paired & ~allows(band, rules, i, to)
        outside |= inside_e & ~allows(band, rules, i, column)
        crossed = inside_f & ~allows(band, rules, row, j)
        total = jnp.where(jnp.any(outside) | jnp.any(crossed), FORBIDDEN, total)
    total = jnp.where(jnp.any(paired), total, weights.overhang.empty)
    return jnp.where(sound & (total > -COSTLY / 2), total, -jnp.inf)


def _hang_at(hang: Overhang, side: str, i: jax.Array, j: jax.Array) -> Overhang:
    """Costs of overhangs at one cell, by masks: of a look-up the gradients of a batch
    would be added up in one place."""

    def at_cell(x: jax.Array, axis: int):
        places = (i, j) if x.ndim == 2 else ((i, j)[axis],)
        for k, place in enumerate(places):
            index = lax.broadcasted_iota(jnp.int32, x.shape, k)
            x = jnp.where(index == place, x, 0)
        return jnp.sum(x)

    names = f"{side}_query", f"{side}_target"
    costs = (at_cell(getattr(hang, name), k) for k, name in enumerate(names))
    return hang._replace(**dict(zip(names, costs, strict=True)))


def sample(
    key: jax.Array,
    weights: Weights,
    temperature: jax.Array,
    rules: ModeRules,
    count: int,
    band: int | None = None,
):
    """``count`` alignments drawn from the model: partners, int32 (count, M).

    A walk back from a drawn end cell, each move by the shares of the reverse pass
    (stochastic traceback). Where none is legal, the empty one is returned.
    """
    rows, columns = weights.similarity.shape
    if rows == 0 or columns == 0:
        return jnp.full((count, rows), -1, jnp.int32)
    scaled = free_energy.over_temperature(weights, temperature, rules)
    block = None if band is None else Banded(band, None)
    table, _ = free_energy.table_of(scaled, rules, block)
    xs = diagonals(table, scaled.similarity)
    start = scan.first_carry(table, scaled.similarity.dtype)
    _, values = scan.forward(table, start, xs)
    ends = values.high, values.low, values.ends
    _, on, empty = free_energy.sum_up(ends, scaled.overhang.empty, temperature)
    chances = jnp.log(jnp.concatenate([on, empty[None]]))
    steps = rows + columns + 1
    # One draw for all: each takes XLA a second to compile.
    sizes = 4 * steps, 4 * steps + chances.size
    noise = jax.random.gumbel(key, (count, sizes[1] + table.rows), values.m.dtype)

    def sampled_path(noise: jax.Array):
        moves, of_end, of_lane = jnp.split(noise, sizes)
        d = jnp.argmax(chances + of_end).astype(jnp.int32)
        ended = d >= on.shape[0]
        d = jnp.where(ended, 0, d)
        rows = {name: x[d] for name, x in table.scanned.items()}
        logs = values.m[d] + table.end(rows, d)[0]
        i = table.row(d)[jnp.argmax(logs + of_lane)]
        moves = moves.reshape(steps, 4)
        return _walk(moves, table, scaled, values, (i, d - i, ended), band)

    return jax.vmap(sampled_path)(noise)


def _walk(
    noise: jax.Array,
    table: CostTable,
    weights: Weights,
    values: scan.ForwardValues,
    start: tuple[jax.Array, jax.Array, jax.Array],
    band: int | None,
):
    """Walk from the cell (i, j) of the last pair back to the start; Gumbel ``noise``
    (steps, 4) chooses."""
    rows = table.shape[0]
    steps = len(noise)
    turn = jnp.where(table.rules.adjacent, 0, FORBIDDEN)
    hang, forbidden = weights.overhang, jnp.asarray(FORBIDDEN, values.m.dtype)

    def step(state: tuple[jax.Array, ...], noise: jax.Array):
        i, j, kind, ended, partners = state
        at = jnp.where((kind == MATCH) & ~ended, i - 1, rows)
        partners = partners.at[at].set(j - 1, mode="drop")
        k, l = jnp.where(kind == GAP_F, i, i - 1), jnp.where(kind == GAP_E, j, j - 1)
        d = jnp.clip(k + l, 0, steps - 1)
        lane = table.lane(jnp.maximum(k, 0), d)
        inside = (lane >= 0) & (lane < table.rows)
        lane = jnp.clip(lane, 0, table.rows - 1)
        m, e, f = (jnp.where(inside, x[d, lane], forbidden) for x in values[:3])
        starting = overhang_weight(hang, "start", table.rules, band, k, l)
        starting = starting - values.high[d] - values.low[d]
        a, b = jnp.maximum(i - 1, 0), jnp.maximum(j - 1, 0)
        open_e, more_e = (
            cost_at(x.e, a, b, 0) for x in (weights.opening, weights.extending)
        )
        open_f, more_f = (
            cost_at(x.f, a, b, 1) for x in (weights.opening, weights.extending)
        )
        into = jnp.stack([
            jnp.stack([m, e, f, starting]),
            jnp.stack([m - open_e, e - more_e, forbidden, forbidden]),
            jnp.stack([m - open_f, e - open_f + turn, f - more_f, forbidden]),
        ])  # fmt: skip
        next_kind = jnp.argmax(into[jnp.minimum(kind, GAP_F)] + noise).astype(jnp.int32)
        ended = ended | (next_kind == START)
        return (k, l, next_kind, ended, partners), None

    partners = jnp.full(rows, -1, jnp.int32)
    i, j, ended = start
    state = loop_state((i, j, jnp.int32(MATCH), ended, partners), table.rules.m)
    return jax.lax.scan(step, state, noise)[0][4]


def most_accurate(gain: jax.Array, m: jax.Array, n: jax.Array):
    """Partners int32 (M,) of the largest sum of ``gain`` (M, N) within the lengths."""
    rows, columns = gain.shape
    i = jnp.arange(rows, dtype=jnp.int32)[:, None] < m
    j = jnp.arange(columns, dtype=jnp.int32)[None, :] < n
    gain = jnp.where(i & j, gain, -1)

    def row(above: jax.Array, gain: jax.Array):
        # best[i+1, j] = max(best[i, j], best[i, j-1] + gain, best[i+1, j-1])
        best = jnp.maximum(above[1:], above[:-1] + gain)
        best = jnp.concatenate([above[:1], best])
        best = lax.cummax(best)
        return best, best

    first = loop_state(jnp.zeros(columns + 1, gain.dtype), gain)
    _, table = lax.scan(row, first, gain)
    table = jnp.concatenate([first[None], table])

    def step(state: tuple[jax.Array, ...]):
        i, j, partners = state
        up = table[i, j] == table[i - 1, j]
        left = ~up & (table[i, j] == table[i, j - 1])
        at = jnp.where(up | left, rows, i - 1)
        partners = partners.at[at].set(j - 1)
        return i - jnp.where(left, 0, 1), j - jnp.where(up, 0, 1), partners

    def unfinished(state: tuple[jax.Array, ...]):
        return (state[0] > 0) & (state[1] > 0)

    partners = jnp.full(rows + 1, -1, jnp.int32)
    start = loop_state((jnp.int32(rows), jnp.int32(columns), partners), gain)
    return lax.while_loop(unfinished, step, start)[2][:rows]


def spans_of(
    partners: jax.Array, m: jax.Array, n: jax.Array, free: Sequence[bool], local: bool
):
    """Spans int32 (4,) of an alignment: ``model.alignment.packed_path`` as a program;
    ``free`` are static, in the order of ``FREE_ENDS``."""
    rows = partners.shape[0]
    if rows == 0:
        paired, first, last = jnp.bool_(False), jnp.int32(0), jnp.int32(0)
        heads = tails = jnp.int32(0)
    else:
        there = partners >= 0
        paired = jnp.any(there)
        first = jnp.argmax(there).astype(jnp.int32)
        last = (rows - 1 - jnp.argmax(there[::-1])).astype(jnp.int32)
        heads, tails = partners[first], partners[last]

    def outside(k: jax.Array, l: jax.Array, query: bool, target: bool):
        if local:
            return k, l
        if query and target:
            return jnp.where(k >= l, k, 0), jnp.where(k >= l, 0, l)
        zero = jnp.zeros_like(k)
        return (k if query else zero), (l if target else zero)

    q0, t0 = outside(first, heads, free[0], free[2])
    q1, t1 = outside(m - 1 - last, n - 1 - tails, free[1], free[3])
    spans = jnp.stack([q0, m - q1, t0, n - t1])
    zero = jnp.zeros_like(m)
    nothing = local or all(free)
    empty = (zero,) * 4 if nothing else (zero, m, zero, n)
    return jnp.where(paired, spans, jnp.stack(empty))
