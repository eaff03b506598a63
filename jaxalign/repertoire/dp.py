"""Which rows of words differ in few bits: all pairs, one bit of a result each."""

import jax
import jax.numpy as jnp

LANES = 32  # pairs of a word of the result


def near_words(queries: jax.Array, targets: jax.Array, limits: jax.Array) -> jax.Array:
    """Bits of pairs whose words differ in at most ``limits`` bits.

    Parameters
    ----------
    queries : uint32 (words, q)
    targets : uint32 (words, 32, groups)
        Target k of a set stands at (k // groups, k % groups).
    limits : int32 (32, groups)
        Of each target; -1 for none.

    Returns
    -------
    uint32 (q, groups)
        Bit b of [i, g] is for query i and target b * groups + g.
    """
    near = jnp.zeros((queries.shape[1], targets.shape[2]), jnp.uint32)
    for lane in range(LANES):
        differ = jnp.zeros(near.shape, jnp.int32)
        for word in range(queries.shape[0]):
            unequal = queries[word][:, None] ^ targets[word, lane][None, :]
            differ += jax.lax.population_count(unequal).astype(jnp.int32)
        bit = jnp.uint32(1 << lane)
        near |= jnp.where(differ <= limits[lane][None, :], bit, jnp.uint32(0))
    return near


# ------------------------------------------------------------------------------
# Pairs of a mask as lists of a fixed size, and their sums, all on the device.


def mask_pairs(
    mask: jax.Array, most_words: int, most_pairs: int
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Pairs of the bits of a mask.

    Parameters
    ----------
    mask : uint32 (q, groups)
        Of ``near_words``.
    most_words, most_pairs : int
        Room for words that are not 0, and for pairs.

    Returns
    -------
    counts : int32 (2,)
        Words that are not 0 and pairs; there may be more than there is room for.
    query, target : int32 (most_pairs,)
        Pairs by words; those beyond the count have no meaning.
    """
    groups, flat = mask.shape[1], mask.reshape(-1)
    words = jnp.count_nonzero(flat).astype(jnp.int32)
    (place,) = jnp.nonzero(flat, size=most_words, fill_value=0)
    inside = jnp.arange(most_words) < words
    lanes = jnp.arange(LANES, dtype=jnp.uint32)
    words_inside = jnp.where(inside, flat[place], jnp.uint32(0))
    bits = (words_inside[:, None] >> lanes[None, :]) & jnp.uint32(1)
    pairs = jnp.count_nonzero(bits).astype(jnp.int32)
    (bit,) = jnp.nonzero(bits.reshape(-1), size=most_pairs, fill_value=0)
    query, group = jnp.divmod(place[bit // LANES], groups)
    target = bit % LANES * groups + group
    counts = jnp.stack([words, pairs])
    return counts, query.astype(jnp.int32), target.astype(jnp.int32)


def tile_pairs(
    queries: jax.Array, targets: jax.Array, limits: jax.Array, most: tuple[int, int]
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """``mask_pairs`` of ``near_words``; ``most`` is the room for words and pairs."""
    return mask_pairs(near_words(queries, targets, limits), *most)


def near_sums(
    queries: jax.Array,
    targets: jax.Array,
    limits: jax.Array,
    x: jax.Array,
    y: jax.Array,
    left: jax.Array,
    table: jax.Array,
    most: tuple[int, int, int],
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Pairs of a tile whose sums are at most ``left`` of the target.

    Parameters
    ----------
    queries, targets, limits : as of ``near_words``
    x, y : uint8 (positions, q), uint8 (positions, targets)
        Letters that are compared.
    left : int32 (targets,)
    table : int32 (letters * letters,)
    most : three int
        Room for words of the mask, for pairs that are looked at, and for results.

    Returns
    -------
    counts : int32 (3,)
        How many there are of each; with more than there is room for, results lack some.
    query, target, total : int32 (most[2],)
    """
    mask = near_words(queries, targets, limits)
    counts, query, target = mask_pairs(mask, most[0], most[1])
    letters = round(len(table) ** 0.5)
    sums = jnp.zeros(most[1], jnp.int32)
    for position in range(len(x)):
        first = x[position][query].astype(jnp.int32) * letters
        sums += table[first + y[position][target].astype(jnp.int32)]
    near = (sums <= left[target]) & (jnp.arange(most[1]) < counts[1])
    results = jnp.count_nonzero(near).astype(jnp.int32)
    (some,) = jnp.nonzero(near, size=most[2], fill_value=0)
    counts = jnp.append(counts, results)
    return counts, query[some], target[some], sums[some]


def first_columns(rows: jax.Array, most: int) -> jax.Array:
    """The first columns of some rows; ``most`` is static."""
    return rows[:, :most]
