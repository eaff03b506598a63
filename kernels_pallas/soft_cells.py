"""One cell of the soft recurrence, forwards and backwards, and what hangs over.

States as in the 2011 paper's letters: M, residues i and j are a pair; E, residue i of
the query stands against a gap; F, residue j of the target does. Everything is divided
by the temperature and relative to a base.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from kernels_pallas.reals import Reals


class Costs(NamedTuple):
    """Gap costs, float32 (128,)."""

    open_e: jax.Array
    extend_e: jax.Array
    open_f: jax.Array
    extend_f: jax.Array


class Side(NamedTuple):
    """What overhangs cost on one side: the cheaper one where ``both`` ends are free,
    else weights (0 or 1) of the query's and of the target's."""

    both: jax.Array
    query: jax.Array
    target: jax.Array


def forward_cell(r: Reals, cost: Costs, s, diagonal, e, f, start):
    """M, A, B of a cell, E of the cell below and F of the cell to its right.

    M[i,j] = s[i,j] + B[i-1,j-1]
    A[i,j] = lse(M, E, F);  B[i,j] = lse(start[i,j], A[i,j])
    E[i+1,j] = lse(M[i,j] - open, E[i,j] - extend)
    F[i,j+1] = lse(lse(M, E)[i,j] - open, F[i,j] - extend)
    """
    m = s + diagonal
    me = r.lse(m, e)
    a = r.lse(me, f)
    b = r.lse(start, a)
    below = r.lse(m - cost.open_e, e - cost.extend_e)
    right = r.lse(me - cost.open_f, f - cost.extend_f)
    return m, a, b, below, right


def reverse_cell(r: Reals, cost: Costs, values, start, ending, arriving):
    """Posteriors of M, E, F of a cell, and what it sends through each gap move.

    ``arriving`` are the posteriors of E[i+1,j], F[i,j+1] and M[i+1,j+1], which are
    split by what each predecessor weighs; ``ending`` is the probability to end here.
    """
    m, e, f = values
    to_e, to_f, to_m = arriving
    of_e = split(r, to_e, m - cost.open_e, e - cost.extend_e)
    of_f = split(r, to_f, m - cost.open_f, e - cost.open_f, f - cost.extend_f)
    of_m = split(r, to_m, m, e, f, start)
    new_m = ending + of_e[0] + of_f[0] + of_m[0]
    new_e = of_e[1] + of_f[1] + of_m[1]
    new_f = of_f[2] + of_m[2]
    flows = of_e[0], of_e[1], of_f[0] + of_f[1], of_f[2]
    return (new_m, new_e, new_f), flows, of_m[3]


def split(r: Reals, total, *values):
    """``total`` among predecessors of these log weights."""
    largest = values[0]
    for value in values[1:]:
        largest = jnp.maximum(largest, value)
    parts = [r.exp(value - largest) for value in values]
    scale = total * r.inverse(sum(parts[1:], parts[0]))
    return [part * scale for part in parts]


def run_cost(length, opening, extending):
    """What ``length`` residues that hang over cost, float32 (128,)."""
    return opens(length) * opening + extensions(length) * extending


def opens(length):
    """1 where there is an overhang, else 0."""
    return jnp.clip(length, 0.0, 1.0)


def extensions(length):
    """Its residues but the first."""
    return jnp.maximum(length - 1.0, 0.0)


def shares(r: Reals, side: Side, query, target):
    """How much of two overhangs is paid, for their costs: 0 or 1, halves in a tie."""
    one, half, zero = (r.splat(x) for x in (1.0, 0.5, 0.0))
    cheaper = jnp.where(query == target, half, jnp.where(query < target, one, zero))
    a = jnp.where(side.both, cheaper, side.query)
    b = jnp.where(side.both, one - cheaper, side.target)
    return a, b


