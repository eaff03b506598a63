"""The k best alignments of one pair: the ordered form of ``fill`` with lists.

Each state of a cell keeps the k largest values with which a path can reach it, and
where each comes from. In that form every set of pairs is exactly one path, so k
different paths are k different alignments.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxalign.similarity.arrays import FORBIDDEN
from jaxalign.similarity.cost_table import CostTable, Weights
from jaxalign.similarity.loops import begun
from jaxalign.similarity.skewed import skew

IN_PAIR, IN_UP, IN_LEFT = 0, 1, 2  # states; E is UP, F is LEFT


class SeveralPaths(NamedTuple):
    """By rank, the best first: ``score`` (k,), the cell of the last pair ``end_i``,
    ``end_j`` and the cell before the first one ``i``, ``j`` (k,), 0 where there is no
    pair; ``partners`` int32 (k, M)."""

    score: jax.Array
    end_i: jax.Array
    end_j: jax.Array
    i: jax.Array
    j: jax.Array
    partners: jax.Array


def several_best(weights: Weights, rules, k: int) -> SeveralPaths:
    """The k alignments of largest score; those that do not exist have ``FORBIDDEN`` or
    less."""
    table = CostTable(weights, rules)
    rows, dtype = table.rows, weights.overhang.empty.dtype
    none = jnp.full((rows, k), FORBIDDEN, dtype)
    padded = jnp.pad(weights.similarity, ((1, 0), (1, 0)), constant_values=FORBIDDEN)
    d = jnp.arange(rows + table.shape[1], dtype=jnp.int32)
    xs = {"d": d, "similarity": skew(padded, FORBIDDEN)} | table.scanned
    where = jnp.zeros((rows, k), jnp.int32)
    # The alignment without pairs stands in (0, 0).
    empty = jnp.maximum(weights.overhang.empty, FORBIDDEN)
    best = none.at[0, 0].set(empty)
    start = (none, none, none, none, none, best, where, where)
    carry, sources = lax.scan(_step(table, k), begun(start, rules.m), xs)
    values, j, rank = (x.reshape(-1) for x in carry[5:])
    score, at = _largest(values[None], k)
    i = (at[0] // k).astype(jnp.int32)
    ends = i, j[at[0]], rank[at[0]]
    i, j, partners = jax.vmap(lambda *end: _walk(sources, end, k))(*ends)
    return SeveralPaths(score[0], *ends[:2], i, j, partners)


def _step(table: CostTable, k: int):
    adjacent = table.rules.adjacent
    number = jnp.arange(k, dtype=jnp.int32)

    def step(carry, x):
        p1, e1, f1, b1, b2, best, best_j, best_rank = carry
        d = x["d"]
        cost = {name: _column(table.at(name, x, d)) for name in table.costs}
        p = _column(x["similarity"]).astype(b1.dtype) + _down(b2)
        new, more = _down(p1) - cost["open_e"], _down(e1) - cost["extend_e"]
        e, from_e = _largest(jnp.concatenate([new, more], 1), k)
        turn = jnp.where(adjacent, e1 - cost["open_f"], FORBIDDEN)
        parts = p1 - cost["open_f"], turn, f1 - cost["extend_f"]
        f, from_f = _largest(jnp.concatenate(parts, 1), k)
        starts = _column(table.start(x, d)[0])
        b, from_b = _largest(jnp.concatenate([p, e, f, starts], 1), k)
        total = jnp.where(
            _column(table.core(d)), p + _column(table.end(x, d)[0]), FORBIDDEN
        )
        best, at = _largest(jnp.concatenate([best, total], 1), k)
        j = jnp.broadcast_to(_column(d - table.i), total.shape)
        rank = jnp.broadcast_to(number[None], total.shape)
        best_j, best_rank = (
            jnp.take_along_axis(jnp.concatenate(x, 1), at, 1)
            for x in ((best_j, j), (best_rank, rank))
        )
        sources = (x.astype(jnp.uint8) for x in (from_b, from_e, from_f))
        return (p, e, f, b, b1, best, best_j, best_rank), jnp.stack([*sources])

    return step


def _column(x):
    """A number, or a value for each lane, beside lists (R, k)."""
    return x[:, None] if x.ndim else x


def _down(x):
    """The lists of the row above."""
    return jnp.concatenate([jnp.full_like(x[:1], FORBIDDEN), x[:-1]])


def _largest(x, k: int):
    """(the k largest of each row (R, C), falling, their columns); of equals the first
    come first."""
    values, places = [], []
    lanes = jnp.arange(x.shape[1], dtype=jnp.int32)[None]
    for _ in range(k):
        at = jnp.argmax(x, axis=1)[:, None].astype(jnp.int32)
        values.append(jnp.take_along_axis(x, at, 1))
        places.append(at)
        x = jnp.where(lanes == at, -jnp.inf, x)
    return jnp.concatenate(values, 1), jnp.concatenate(places, 1)


def _walk(sources, end, k: int):
    """From the last pair back: (cell before the first pair, partners)."""
    rows = sources.shape[2] - 1

    def unfinished(state):
        return (state[0] > 0) & (state[1] > 0) & ~state[4]

    def step(state):
        i, j, kind, rank, _, partners = state
        pair = kind == IN_PAIR
        partners = partners.at[jnp.where(pair, i - 1, rows)].set(j - 1)
        # A pair follows a list of its own; gaps are listed where they stand.
        k_i = i - jnp.where(kind == IN_LEFT, 0, 1)
        k_j = j - jnp.where(kind == IN_UP, 0, 1)
        at = jnp.where(pair, k_i + k_j, i + j), jnp.where(pair, k_i, i)
        source = sources[at[0], kind, at[1], rank].astype(jnp.int32)
        done = pair & (source >= 3 * k)
        return k_i, k_j, source // k, source % k, done, partners

    i, j, rank = end
    partners = jnp.full(rows + 1, -1, jnp.int32)
    state = (i, j, jnp.int32(IN_PAIR), rank, jnp.bool_(False), partners)
    i, j, *_, partners = lax.while_loop(unfinished, step, begun(state, sources))
    return i, j, partners[:rows]
