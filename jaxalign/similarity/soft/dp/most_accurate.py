"""The alignment of maximum expected accuracy, as a program.

``model.pairing.most_accurate`` with the same ties: a longest common subsequence with
weights, where gaps cost nothing.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax import lax

from jaxalign.similarity.loops import begun


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

    first = begun(jnp.zeros(columns + 1, gain.dtype), gain)
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
    start = begun((jnp.int32(rows), jnp.int32(columns), partners), gain)
    return lax.while_loop(unfinished, step, start)[2][:rows]


def spans_of(
    partners: jax.Array, m: jax.Array, n: jax.Array, free: Sequence[bool], local: bool
):
    """Spans int32 (4,) of an alignment: ``model.pairing.written`` as a program.

    ``free`` : bools of query_start, query_end, target_start, target_end (static).
    """
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
    q0, t0 = _outside(first, heads, free[0], free[2], local)
    q1, t1 = _outside(m - 1 - last, n - 1 - tails, free[1], free[3], local)
    spans = jnp.stack([q0, m - q1, t0, n - t1])
    zero = jnp.zeros_like(m)
    nothing = local or all(free)
    empty = (zero,) * 4 if nothing else (zero, m, zero, n)
    return jnp.where(paired, spans, jnp.stack(empty))


def _outside(k: jax.Array, l: jax.Array, query: bool, target: bool, local: bool):
    if local:
        return k, l
    if query and target:
        return jnp.where(k >= l, k, 0), jnp.where(k >= l, 0, l)
    zero = jnp.zeros_like(k)
    return (k if query else zero), (l if target else zero)


def accurate(posterior: jax.Array, threshold: jax.Array, m: jax.Array, n: jax.Array):
    """(expected number of correct pairs, partners); nan and none where a probability
    within the lengths is nan."""
    partners = most_accurate(posterior - threshold, m, n)
    i = jnp.arange(posterior.shape[0], dtype=jnp.int32)
    inside = (i[:, None] < m) & (
        jnp.arange(posterior.shape[1], dtype=jnp.int32)[None, :] < n
    )
    unknown = jnp.any(jnp.isnan(posterior) & inside)
    if 0 in posterior.shape:
        return jnp.zeros((), posterior.dtype), partners
    held = posterior[i, jnp.maximum(partners, 0)]
    score = jnp.sum(jnp.where(partners >= 0, held, 0))
    score = jnp.where(unknown, jnp.nan, score)
    return score, jnp.where(unknown, -1, partners)
