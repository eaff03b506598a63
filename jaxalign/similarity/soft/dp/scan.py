"""The two passes over anti-diagonals behind ``soft.dp.free_energy``: values, then
shares.

States of a cell (i, j): M, residues i and j are a pair; E, residue i of the query
stands against a gap; F, residue j of the target does. Between two pairs all E come
before all F, so that a set of pairs is exactly one path. Everything is divided by the
temperature, and the values of diagonal d are kept relative to a base, an integer near
their largest: float32 then keeps its digits however long the sequences are.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxalign.similarity.arrays import COSTLY, FORBIDDEN
from jaxalign.similarity.cost_table import Costs, CostTable
from jaxalign.similarity.loops import begun
from jaxalign.similarity.skewed import down, up


class ForwardValues(NamedTuple):
    """A forward pass, by diagonal.

    ``m, e, f`` (D, R) relative to ``base`` = ``high + low``, all (D,); ``ends`` (D,)
    the log weight of all paths that end on the diagonal, relative to it as well.
    """

    m: jax.Array
    e: jax.Array
    f: jax.Array
    high: jax.Array
    low: jax.Array
    ends: jax.Array


class Ends(NamedTuple):
    """``base`` and ``ends`` of ``ForwardValues``, (D,) each."""

    high: jax.Array
    low: jax.Array
    ends: jax.Array


def lse(a: jax.Array, b: jax.Array):
    """log(exp(a) + exp(b)); smooth where a == b, to every order.

    Which one is larger is chosen, not computed: max and abs have kinks. No custom rule
    either: before JAX 0.12 ``jvp`` of ``grad`` drops those of functions in a loop.
    """
    first = a >= b
    large, small = lax.select(first, a, b), lax.select(first, b, a)
    return large + jnp.log1p(jnp.exp(small - large))


def first_carry(table: CostTable, dtype: Any):
    """Before diagonal 0: M, E, F, M or E (before F), B of two diagonals, and base."""
    dead = jnp.full(table.rows, FORBIDDEN, dtype)
    zero = jnp.zeros((), dtype)
    return begun((dead, dead, dead, dead, dead, dead, zero, zero), table.rules.m)


def forward(
    table: CostTable, carry: tuple[jax.Array, ...], xs: Costs
) -> tuple[tuple, ForwardValues]:
    """Diagonals ``xs["d"]`` in order -> (carry, everything they hold)."""
    return lax.scan(partial(_advance, table), carry, xs)


def forward_ends(
    table: CostTable, carry: tuple[jax.Array, ...], xs: Costs
) -> tuple[tuple, Ends]:
    """The same without the tables: all that a score needs."""

    def step(carry: tuple[jax.Array, ...], x: Any):
        carry, values = _advance(table, carry, x)
        return carry, Ends(values.high, values.low, values.ends)

    return lax.scan(step, carry, xs)


def _advance(
    table: CostTable, carry: tuple[jax.Array, ...], x: Costs
) -> tuple[tuple, ForwardValues]:
    """One diagonal.

    M[i,j] = s[i,j] + B[i-1,j-1]            B = lse(start[i,j], M, E, F)
    E[i,j] = lse(M[i-1,j] - open, E[i-1,j] - extend)
    F[i,j] = lse(lse(M, E)[i,j-1] - open, F[i,j-1] - extend)
    """
    *lanes, high, low = carry
    d = x["d"]
    m1, e1, f1, t1, b1, b2 = (table.ahead(y, d) for y in lanes)
    cost = {name: table.at(name, x, d) for name in table.costs}
    m = x["similarity"] + down(b2, FORBIDDEN)
    e = lse(
        down(m1, FORBIDDEN) - cost["open_e"], down(e1, FORBIDDEN) - cost["extend_e"]
    )
    f = lse(t1 - cost["open_f"], f1 - cost["extend_f"])
    me = lse(m, e)
    a = lse(me, f)
    b = lse(table.start(x, d)[0] - high - low, a)
    best = jnp.max(jnp.where(table.core(d), a, FORBIDDEN))
    shift = jnp.where(best > -COSTLY / 2, jnp.round(best), 0)
    shift = lax.stop_gradient(shift)
    t, floor = jnp.where(table.rules.adjacent, me, m), lax.full_like(m, FORBIDDEN)
    m, e, f, t, b, b1 = (lax.max(y - shift, floor) for y in (m, e, f, t, b, b1))
    high, low = two_sum(high, low, shift)
    ends = _log_sum(m + table.end(x, d)[0])
    return (m, e, f, t, b, b1, high, low), ForwardValues(m, e, f, high, low, ends)


def two_sum(high: jax.Array, low: jax.Array, more: jax.Array):
    """(high + low) + more with the rounding error of the sum kept in low."""
    total = high + more
    part = total - high
    return total, low + ((high - (total - part)) + (more - part))


def _log_sum(x: jax.Array):
    largest = lax.stop_gradient(jnp.max(x))
    return largest + jnp.log(jnp.sum(jnp.exp(x - largest)))


class Flow(NamedTuple):
    """The reverse pass between two diagonals: posteriors of d + 1 and of d + 2."""

    m1: jax.Array
    e1: jax.Array
    f1: jax.Array
    m2: jax.Array
    sums: dict  # (R,) each: by row, or by column in the lane where the column is


def first_flow(table: CostTable, dtype: Any, outputs: frozenset[str]) -> Flow:
    zero = jnp.zeros(table.rows, dtype)
    arrays = table.costs | table.hangs | {"entropy": (zero, 0)}
    sums = {name: zero for name in sorted(outputs & set(arrays) - table.by_diagonal)}
    return begun(Flow(zero, zero, zero, zero, sums), table.rules.m)


def reverse(
    table: CostTable,
    flow: Flow,
    xs: Costs,
    values: ForwardValues,
    shares: jax.Array,
    outputs: frozenset[str],
):
    """Push the posterior back: each cell splits what arrives among its predecessors.

    ``shares`` (D,) is the probability that the path ends on the diagonal. Every split
    is normalised on its own, so nothing can exceed 1 and dead cells carry exactly 0.
    The cell at hand is the predecessor: it sees its own M, E, F and takes its share of
    the posteriors of E[i+1,j], F[i,j+1] and M[i+1,j+1].

    Returns (flow, by diagonal: posterior, column sums and full flows of ``outputs``).
    """
    adjacent = table.rules.adjacent

    def step(flow: Flow, x: Any):
        x, value, share = x
        d = x["d"]
        cost = {name: table.after(name, x, d) for name in table.costs}
        m1, e1, f1, m2 = (table.back(y, d) for y in flow[:4])
        start, start_a, start_b = table.start(x, d)
        end, end_a, end_b = table.end(x, d)
        m, e, f = value.m, value.e, value.f
        ending = share * jnp.exp(m + end - value.ends)
        to_e, to_f, to_m = up(e1), f1, up(m2)
        turn = jnp.where(adjacent, e, FORBIDDEN)
        of_e = _split(to_e, m - cost["open_e"], e - cost["extend_e"])
        of_f = _split(
            to_f, m - cost["open_f"], turn - cost["open_f"], f - cost["extend_f"]
        )
        of_m = _split(to_m, m, e, f, start - value.high - value.low)
        new_m = ending + of_e[0] + of_f[0] + of_m[0]
        new_e = of_e[1] + of_f[1] + of_m[1]
        new_f = of_f[2] + of_m[2]
        flows = {
            "open_e": -of_e[0],
            "extend_e": -of_e[1],
            "open_f": -(of_f[0] + of_f[1]),
            "extend_f": -of_f[2],
            "start_query": -of_m[3] * start_a,
            "start_target": -of_m[3] * start_b,
            "end_query": -ending * end_a,
            "end_target": -ending * end_b,
        }
        if "entropy" in outputs:
            splits = ((to_e, of_e), (to_f, of_f), (to_m, of_m))
            flows["entropy"] = sum(_surprise(*split) for split in splits) - xlogx(
                ending
            )
        out = {"similarity": new_m} if "similarity" in outputs else {}
        sums = collect(table, flow.sums, flows, out, outputs)
        return Flow(new_m, new_e, new_f, m1, sums), out

    return lax.scan(step, flow, (xs, values, shares), reverse=True)


def collect(
    table: CostTable,
    sums: dict[str, jax.Array],
    flows: dict[str, jax.Array],
    out: dict[str, jax.Array],
    outputs: frozenset[str],
):
    """Add the flows of a diagonal to their sums; into ``out`` what leaves the loop.

    A sum by column stands in the lane where its column is, one lane down a step, and
    is complete when it reaches lane 0.
    """
    added = {}
    for name, total in sums.items():
        if _by_column(table, name):
            added[name] = up(total) + flows[name]
            out[name] = added[name][0]
        else:
            added[name] = total + flows[name]
    for name in sorted(outputs & table.by_diagonal):
        out[name] = flows[name]
    return added


def _by_column(table: CostTable, name: str):
    arrays = table.costs | table.hangs
    return name in arrays and arrays[name][1] == 1 and arrays[name][0].ndim == 1


def _split(total: jax.Array, *values: jax.Array):
    """``total`` among predecessors of these log weights."""
    largest = values[0]
    for value in values[1:]:
        largest = lax.max(largest, value)
    largest = lax.stop_gradient(largest)
    parts = [jnp.exp(value - largest) for value in values]
    scale = total / sum(parts[1:], parts[0])
    return [part * scale for part in parts]


def _surprise(total: jax.Array, parts: Sequence[jax.Array]):
    """-sum of part log(part / total): what this split adds to the entropy."""
    return xlogx(total) - sum(xlogx(part) for part in parts)


def xlogx(p: jax.Array):
    """p log p, 0 at 0; derivatives up to the third are finite.

    They divide by p up to three times: below the third root of the smallest number the
    logarithm is a constant, which changes a term by less than that root.
    """
    return p * jnp.log(jnp.maximum(p, jnp.finfo(p.dtype).tiny ** (1 / 3)))
