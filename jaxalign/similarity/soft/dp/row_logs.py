"""The two passes by logarithms for what ``soft.dp.row_scan`` cannot prove: the
recurrence of ``soft.dp.scan`` as a small program, which is compiled fast.

The values of an anti-diagonal are one array (4, M + 1): M, E and F of cell (i, j), with
i and j residues behind it, and S, the weight of what starts there. Costs of transitions
to M, E and F are a matrix (3, 4). So a step down is a product with that matrix in the
semiring of logarithms, and a step up splits what arrives at the three, each split
normalised on its own: nothing exceeds 1, whatever the scores are. As in
``soft.dp.scan``, a diagonal is kept relative to a base.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxalign.similarity.arrays import COSTLY, FORBIDDEN, begun, down, skew, unskew, up
from jaxalign.similarity.soft.dp.row_scan import (
    RowExpectation,
    RowForm,
    RowOverhang,
    RowTables,
    counts,
)
from jaxalign.similarity.soft.dp.scan import two_sum

Sides = tuple[RowOverhang, RowOverhang] | None  # at the start, and at the end
FLOATS_PER_CELL = 10  # of the diagonals: four values, their tables, what ends, flows


class OverhangShares(NamedTuple):
    """Overhangs of one pair: their ``cost``, and the parts of it that the query and the
    target pay, (M, N) each."""

    cost: jax.Array
    query: jax.Array
    target: jax.Array


def kept_bytes(shape: tuple[int, int]) -> int:
    """The memory that the passes take for a table of this shape."""
    return 4 * FLOATS_PER_CELL * sum(shape) * min(shape)


def expected(
    tables: RowTables, sides: Sides, empty: tuple[jax.Array, jax.Array], form: RowForm
) -> RowExpectation:
    """As ``row_scan.expected``, for all scores: nothing is lost.

    Costs are (B, 4). ``sides`` are the ``row_scan.overhangs``, None for local
    alignments, and ``empty`` is the ``row_scan.empty_alignment`` of the same tables.
    """
    if tables.scores.shape[1] <= tables.scores.shape[2]:
        return _expected(tables, sides, empty, form)
    # A diagonal is as long as the table has rows.
    turned = RowTables(
        tables.scores.swapaxes(1, 2),
        jnp.roll(tables.costs, 2, axis=1),
        *(tables.n, tables.m, tables.target_start, tables.target_end),
        *(tables.query_start, tables.query_end),
    )
    if sides is not None:
        sides = _turned(sides[0]), _turned(sides[1])
    empty = empty[0], jnp.roll(empty[1], 2, axis=1)
    means = _expected(turned, sides, empty, form)
    payers = means.payers
    return means._replace(
        posterior=means.posterior.swapaxes(1, 2),
        payers=None if payers is None else jnp.roll(payers, 2, axis=1),
    )


def _turned(side: RowOverhang) -> RowOverhang:
    """Of tables whose sequences have changed places."""
    weight = jnp.exp(-side.query)
    return RowOverhang(
        *(side.l, side.k, side.target, side.query, weight),
        *(side.both, side.target_pays, side.query_pays),
    )


def _expected(
    tables: RowTables, sides: Sides, empty: tuple[jax.Array, jax.Array], form: RowForm
) -> RowExpectation:
    columns = tables.scores.shape[2] + 1
    hangs = None if sides is None else [jax.vmap(_shares)(side) for side in sides]
    before, after = (1, 0), (0, 1)
    costs = jax.vmap(_transitions)(tables.costs)

    def by_diagonal(table: jax.Array, padding: tuple[int, int]):
        wide = jnp.pad(table, ((0, 0), padding, padding), constant_values=FORBIDDEN)
        return jax.vmap(lambda x: skew(x, FORBIDDEN), out_axes=1)(wide)

    scores = by_diagonal(tables.scores, before)
    nothing = jnp.zeros((*scores.shape[:2], 1), scores.dtype)
    start, end = nothing, nothing
    if hangs:
        start = by_diagonal(-hangs[0].cost, after)
        end = by_diagonal(-hangs[1].cost, before)
    down = jax.vmap(_down, in_axes=(0, 0, 0, 1, 1), out_axes=1)
    values, bases = down(tables.m, tables.n, costs, scores, start)
    # The largest is taken out of the bases first, which may be far larger.
    ends = jnp.maximum(values[:, :, 0] + end, FORBIDDEN)
    tops = jnp.sum(bases, axis=2) + jnp.max(ends, axis=2)
    best = (tops == jnp.max(tops, axis=0, keepdims=True))[..., None]
    high, low = jnp.max(jnp.where(best, bases, -jnp.inf), axis=0).T
    bases = (bases[..., 0] - high[None]) + (bases[..., 1] - low[None])
    logs = jnp.maximum(ends + bases[..., None], FORBIDDEN)
    none = jnp.maximum((empty[0] - high) - low, FORBIDDEN)
    largest = jnp.maximum(jnp.max(logs, axis=(0, 2)), none)
    ending, of_none = jnp.exp(logs - largest[None, :, None]), jnp.exp(none - largest)
    total = jnp.sum(ending, axis=(0, 2)) + of_none
    rest = low + (jnp.log(total) + largest)
    share = jnp.where(largest + high > -COSTLY / 2, 1 / total, 0)
    back = jax.vmap(_up, in_axes=(0, 1, 1, 0, None), out_axes=(1, 1, 0))
    posterior, starting, paid = back(costs, values, ending, share, form)

    def by_rows(diagonals: jax.Array):
        return jax.vmap(lambda x: unskew(x, columns), in_axes=1)(diagonals)

    posterior, payers = by_rows(posterior)[:, 1:, 1:], None
    if paid is not None:
        paid = jnp.sum(paid, axis=3)
        of_f = paid[:, 2, 0] + paid[:, 2, 1]
        gaps = paid[:, 1, 0], paid[:, 1, 1], of_f, paid[:, 2, 2]
        payers = jnp.stack(gaps, 1) + (of_none * share)[:, None] * empty[1]
    if payers is not None and starting is not None and sides and hangs:
        flows = by_rows(starting)[:, :-1, :-1], by_rows(ending)[:, 1:, 1:]
        flows = flows[0], flows[1] * share[:, None, None]
        for x in zip(flows, sides, hangs, strict=True):
            payers = payers + jax.vmap(_overhang_payers)(*x)
    return RowExpectation(high, rest, posterior, payers, jnp.zeros_like(rest))


def _transitions(costs: jax.Array):
    """From M, E, F and S, to M, E and F: (3, 4)."""
    open_e, more_e, open_f, more_f = costs
    never = jnp.full_like(open_e, COSTLY)
    zero = jnp.zeros_like(open_e)
    to_m, to_e = (zero, zero, zero, zero), (open_e, more_e, never, never)
    return jnp.stack([*to_m, *to_e, open_f, open_f, more_f, never]).reshape(3, 4)


def _down(
    m: jax.Array, n: jax.Array, costs: jax.Array, scores: jax.Array, start: jax.Array
):
    """Values (D, 4, M + 1) of a pair, over bases that are the sums of (D, 2).

    M[i,j] = s[i,j] + lse(M, E, F, S)[i-1,j-1]
    E[i,j] = lse(M[i-1,j] - open, E[i-1,j] - extend)
    F[i,j] = lse(M[i,j-1] - open, E[i,j-1] - open, F[i,j-1] - extend)
    """
    lanes = jnp.arange(scores.shape[1], dtype=jnp.int32)

    def step(carry: tuple[Any, ...], x: Any):
        values, to_m, base = carry
        d, similarity, start = x
        largest, parts = _sources(values, costs)
        into = largest + jnp.log(jnp.sum(parts, axis=1))
        of_m = similarity + down(to_m, FORBIDDEN)
        states = jnp.stack([of_m, down(into[1], FORBIDDEN), into[2]])
        inside = (lanes <= m) & (d - lanes <= n)
        best = jnp.max(jnp.where(inside, states, FORBIDDEN))
        shift = jnp.where(best > -COSTLY / 2, jnp.round(best), 0)
        base = jnp.stack(two_sum(*base, shift))
        start = jnp.broadcast_to((start - base[0]) - base[1], lanes.shape)
        values = jnp.concatenate([states - shift, start[None]])
        values = jnp.maximum(values, FORBIDDEN)
        return (values, into[0] - shift, base), (values, base)

    dead = jnp.full((4, len(lanes)), FORBIDDEN, scores.dtype)
    first = begun((dead, dead[0], jnp.zeros(2, scores.dtype)), scores)
    xs = jnp.arange(len(scores), dtype=jnp.int32), scores, start
    return lax.scan(step, first, xs)[1]


def _up(
    costs: jax.Array,
    values: jax.Array,
    ending: jax.Array,
    share: jax.Array,
    form: RowForm,
):
    """Of a pair, by diagonal, probabilities of pairs and of starts (D, M + 1); and the
    transitions (3, 4, M + 1). The last two are None without payers.

    The probabilities of the end are ``ending`` (D, M + 1) times ``share``.
    """

    def step(carry: tuple[Any, ...], x: Any):
        # Of the next diagonal, and of pairs of the one after it.
        states, pairs, paid = carry
        values, ending = x
        _, parts = _sources(values, costs)
        into = jnp.stack([up(pairs), up(states[1]), states[2]])
        flows = parts * (into / jnp.sum(parts, axis=1))[:, None]
        m, e, f, starting = jnp.sum(flows, axis=0)
        m = m + ending * share
        if not form.payers:
            return (jnp.stack([m, e, f]), states[0], None), (m, None)
        paid = paid + flows
        return (jnp.stack([m, e, f]), states[0], paid), (m, starting)

    nothing = jnp.zeros((3, *values.shape[1:]), values.dtype)
    paid = nothing if form.payers else None
    first = begun((nothing[:, 0], nothing[0, 0], paid), values)
    carry, flows = lax.scan(step, first, (values, ending), reverse=True)
    return *flows, carry[-1]


def _sources(values: jax.Array, costs: jax.Array):
    """Of M, E and F after cells: the largest log weight that they come from (3, M + 1),
    and all over that (3, 4, M + 1)."""
    logs = values[None] - costs[:, :, None]
    largest = jnp.max(logs, axis=1)
    return largest, jnp.exp(logs - largest[:, None])


def _shares(side: RowOverhang) -> OverhangShares:
    """Where both ends are free the cheaper counts, half of each if they are equal."""
    query, target = side.query[:, None], side.target[None]
    cheaper = jnp.where(query < target, 1.0, 0.0).astype(query.dtype)
    cheaper = jnp.where(query == target, 0.5, cheaper)
    alone = (x.astype(query.dtype) for x in (side.query_pays, side.target_pays))
    of_query, of_target = (
        jnp.where(side.both, x, pays)
        for x, pays in zip((cheaper, 1 - cheaper), alone, strict=True)
    )
    return OverhangShares(of_query * query + of_target * target, of_query, of_target)


def _overhang_payers(flow: jax.Array, side: RowOverhang, hang: OverhangShares):
    """The payers (4,) of overhangs that have these probabilities (M, N)."""
    by_row, by_column = (
        jnp.sum(flow * share, axis)
        for axis, share in ((1, hang.query), (0, hang.target))
    )
    query, target = (
        [jnp.sum(x * number) for number in counts(size, x.dtype)]
        for x, size in ((by_row, side.k), (by_column, side.l))
    )
    return jnp.stack([*query, *target])
