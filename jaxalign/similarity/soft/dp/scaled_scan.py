"""The two passes without logarithms: linear weights, one power of two a diagonal.

No exponential stands in the recurrence, so this is faster than ``soft.dp.scan``; in
return weights far below the largest of their diagonal vanish. How much that can matter
is bounded afterwards, from the values of both directions: a weight lost on diagonal d
is below the smallest normal number, and what it could have become is that times the
largest weight of the other direction. The sum of these bounds over the cells
is a bound on the probability lost; above ``MAX_LOST_PROBABILITY`` the result is refused
(nan).

Everything added is positive, so that rounding is relative: at most some eight
operations a diagonal, of half a unit each.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from jaxalign.similarity.arrays import FORBIDDEN, begun, down, up
from jaxalign.similarity.costs import Costs, CostTable, Weights
from jaxalign.similarity.soft.dp.scan import collect, diagonals, first_flow, successors

ScaledValues = tuple[jax.Array, ...]  # those that ``forward`` returns
# As large as the rounding of one probability.
MAX_LOST_PROBABILITY = 1e-7
# Sums, products and factors of a cell that may fall below the smallest number.
LOSSES_PER_CELL = 16
# log 2 in two parts; products of the first with whole numbers below 2^13 are exact.
LN2_HIGH, LN2_LOW = 0.693115234375, 3.1946184945309417e-05


def forward(table: CostTable, weights: Weights):
    """Values by diagonal: m, e, f (D, R), exponent c (D,), sum of what ends there, and
    the largest of a cell, so that e and f are kept only for gradients of gap costs."""
    xs = diagonals(table, weights.similarity)
    xs["similarity"] = jnp.exp(xs["similarity"])
    dtype = weights.similarity.dtype
    zero = jnp.zeros(table.rows, dtype)

    def step(carry: tuple[Any, ...], x: Any):
        m1, e1, f1, t1, b1, b2, c = carry
        d = x["d"]
        cost = {name: jnp.exp(-table.at(name, x, d)) for name in table.costs}
        m = x["similarity"] * down(b2, 0)
        e = down(m1, 0) * cost["open_e"] + down(e1, 0) * cost["extend_e"]
        f = t1 * cost["open_f"] + f1 * cost["extend_f"]
        t = m + jnp.where(table.rules.adjacent, e, 0)
        b = jnp.exp(table.start(x, d)[0] - c * LN2_HIGH - c * LN2_LOW) + (m + e + f)
        j = d - table.i
        inside = (table.i <= table.rules.m) & (j >= 0) & (j <= table.rules.n)
        shift, k = _power(jnp.where(inside, b, 0))
        m, e, f, t, b, b1 = (y * shift for y in (m, e, f, t, b, b1))
        ends = jnp.sum(m * jnp.exp(table.end(x, d)[0]))
        largest = jnp.max(lax.stop_gradient(m + e + f))
        return (m, e, f, t, b, b1, c + k), (m, e, f, c + k, ends, largest)

    start = (zero, zero, zero, zero, zero, zero, jnp.zeros((), dtype))
    return lax.scan(step, begun(start, table.rules.m), xs)[1], xs


def _power(x: jax.Array):
    """(2^-k, k) with 2^k near the largest of x; 1 and 0 where all are 0."""
    largest = lax.stop_gradient(jnp.max(x))
    k = jnp.floor(jnp.log2(jnp.where(largest > 0, largest, 1)))
    k = jnp.clip(k, -120, 120)
    return jnp.exp2(-k), k


def logs(values: ScaledValues):
    """(high, low, ends) of ``free_energy.sum_up``: natural logs by diagonal."""
    *_, c, ends, _ = values
    alive = ends > 0
    log = jnp.where(alive, jnp.log(jnp.where(alive, ends, 1)), FORBIDDEN)
    return lax.stop_gradient(c * LN2_HIGH), lax.stop_gradient(c * LN2_LOW), log


def reverse(
    table: CostTable,
    weights: Weights,
    values: ScaledValues,
    xs: Costs,
    log_z: tuple[jax.Array, jax.Array],
    outputs: frozenset[str],
):
    """Flow and output as those of ``soft.dp.scan.reverse``, and the bound on what is
    lost.

    ``log_z`` is the log partition function as (high, rest).
    """
    m, e, f, c, _, largest = values
    dtype = weights.similarity.dtype
    later = successors(table)
    zero = jnp.zeros(table.rows, dtype)
    sums = first_flow(table, dtype, outputs).sums
    tiny = jnp.finfo(dtype).tiny * LOSSES_PER_CELL * table.rows

    def over_z(exponent: jax.Array):
        return (exponent * LN2_HIGH - log_z[0]) + (exponent * LN2_LOW - log_z[1])

    def step(carry: tuple[Any, ...], x: Any):
        q1, q2, e1, f1, r, sums, lost = carry
        x, (m, e, f, c, largest), similarity = x
        d = x["d"]
        cost = {name: jnp.exp(-table.after(name, x, d)) for name in table.costs}
        start, start_a, start_b = table.start(x, d)
        end, end_a, end_b = table.end(x, d)
        to_m, to_e, to_f = up(q2), up(e1), f1
        turn = jnp.where(table.rules.adjacent, cost["open_f"] * to_f, 0)
        closing = jnp.exp(end - r * LN2_HIGH - r * LN2_LOW)
        of_m = closing + to_m + cost["open_e"] * to_e + cost["open_f"] * to_f
        of_e = to_m + cost["extend_e"] * to_e + turn
        of_f = to_m + cost["extend_f"] * to_f
        share = jnp.exp(over_z(c + r))
        starting = jnp.exp(start + over_z(r)) * to_m
        ending = jnp.exp(end + over_z(c)) * m
        flows = {
            "open_e": -m * cost["open_e"] * to_e * share,
            "extend_e": -e * cost["extend_e"] * to_e * share,
            "open_f": -(m * cost["open_f"] * to_f + e * turn) * share,
            "extend_f": -f * cost["extend_f"] * to_f * share,
            "start_query": -starting * start_a,
            "start_target": -starting * start_b,
            "end_query": -ending * end_a,
            "end_target": -ending * end_b,
        }
        largest = jnp.max(of_m + of_e + of_f) + largest + 1
        lost = lost + lax.stop_gradient(tiny * largest * share)
        out = {"similarity": m * of_m * share} if "similarity" in outputs else {}
        sums = collect(table, sums, flows, out, outputs)
        q = similarity * of_m
        shift, k = _power(lax.max(of_m, q))
        q, q1, of_e, of_f = (y * shift for y in (q, q1, of_e, of_f))
        return (q, q1, of_e, of_f, r + k, sums, lost), out

    nothing = jnp.zeros((), dtype)
    begin = (zero, zero, zero, zero, nothing, sums, nothing)
    begin = begun(begin, table.rules.m)
    reads = later, (m, e, f, c, largest), xs["similarity"]
    carry, out = lax.scan(step, begin, reads, reverse=True)
    return carry[5], out, carry[6]
