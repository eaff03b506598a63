"""Which rows of words differ in few bits: all pairs, one bit of a result each."""

import jax
import jax.numpy as jnp

LANES = 32  # pairs of a word of the result


def near_words(queries: jax.Array, targets: jax.Array, limits: jax.Array) -> jax.Array:
    """Bits of pairs whose words differ in at most ``limits`` bits.

    queries : uint32 (words, q)
    targets : uint32 (words, 32, groups). Target k of a set stands at (k // groups, k %
        groups).
    limits : int32 (32, groups). Of each target; -1 for none.
    Returns uint32 (q, groups). Bit b of [i, g] is for query i and target b * groups +
    g.
    """
    mask = jnp.zeros((queries.shape[1], targets.shape[2]), jnp.uint32)
    for lane in range(LANES):
        differ = jnp.zeros(mask.shape, jnp.int32)
        for word in range(queries.shape[0]):
            unequal = queries[word][:, None] ^ targets[word, lane][None, :]
            differ += jax.lax.population_count(unequal).astype(jnp.int32)
        bit = jnp.uint32(1 << lane)
        mask |= jnp.where(differ <= limits[lane][None, :], bit, jnp.uint32(0))
    return mask


def first_columns(rows: jax.Array, count: int) -> jax.Array:
    """Cut rows to their first ``count`` columns; ``count`` is static."""
    return rows[:, :count]
