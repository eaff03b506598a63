"""The arrays of one pair: similarity, gap costs, lengths and rules."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

# Finite, so that a difference of two is 0 and never NaN; -inf is read as this.
FORBIDDEN = -1e30
# Costs are cut here: exp(-COSTLY) is 0 already, and FORBIDDEN minus it stays finite.
COSTLY = 1e29


class ModeRules(NamedTuple):
    """Run-time mode: scalars, so that one program serves every mode.

    ``m``, ``n`` int32 lengths; the others bool.
    """

    m: jax.Array
    n: jax.Array
    query_start: jax.Array
    query_end: jax.Array
    target_start: jax.Array
    target_end: jax.Array
    local: jax.Array
    adjacent: jax.Array


class CorridorRules(NamedTuple):
    """``ModeRules`` of a band by rows: residue i of the query may meet those of the
    target from ``first[i]`` to ``last[i]``, int32 (M,), neither of which falls."""

    m: jax.Array
    n: jax.Array
    query_start: jax.Array
    query_end: jax.Array
    target_start: jax.Array
    target_end: jax.Array
    local: jax.Array
    adjacent: jax.Array
    first: jax.Array
    last: jax.Array


class Gap(NamedTuple):
    """Costs of residues that stand against a gap.

    ``e`` of the query's residues: scalar, (M,) or (M, N); ``f`` of the target's:
    scalar, (N,) or (M, N). Entry (i, j) of a full one belongs to the cell (i + 1,
    j + 1); row 0 and column 0 of the table use the nearest entry.
    """

    e: Any  # in gradients None where it is not asked for
    f: Any


class Factors(NamedTuple):
    """Similarity as dot products: ``query`` (M, K) with ``target`` (N, K)."""

    query: jax.Array
    target: jax.Array

    @property
    def shape(self) -> tuple[int, ...]:
        """That of the product, leading axes included."""
        batch = jnp.broadcast_shapes(self.query.shape[:-2], self.target.shape[:-2])
        return (*batch, self.query.shape[-2], self.target.shape[-2])

    @property
    def dtype(self):
        return jnp.promote_types(self.query.dtype, self.target.dtype)


def multiplied(similarity: jax.Array | Factors):
    """The product of ``Factors``, in float32 from narrower ones; an array stays as it
    is.

    Products of 16-bit numbers are exact in float32, and a GPU multiplies them three
    times as fast as the same numbers in 32 bits.
    """
    if not isinstance(similarity, Factors):
        return similarity
    query, target = (x.astype(similarity.dtype) for x in similarity)
    wide = similarity.dtype if similarity.dtype.itemsize >= 4 else jnp.float32
    form = "...ik,...jk->...ij"
    return jnp.einsum(form, query, target, preferred_element_type=wide)


def payable(gap: Gap, rules: ModeRules) -> Gap:
    """Costs that are finite, and large beyond the lengths. Gaps beside an empty
    sequence have the costs of its first row or column, which is padding."""

    def side(cost: jax.Array, axis: int):
        inside = jnp.bool_(True)
        for place, length in enumerate((rules.m, rules.n)):
            if cost.ndim == 2 or (cost.ndim == 1 and place == axis):
                at = 0 if cost.ndim == 1 else place
                index = lax.broadcasted_iota(jnp.int32, cost.shape, at)
                inside &= index < (length if place == axis else jnp.maximum(length, 1))
        return jnp.where(inside, jnp.minimum(cost, COSTLY), COSTLY)

    return Gap(side(gap.e, 0), side(gap.f, 1))


def masked(factors: Factors, rules: ModeRules) -> Factors:
    """Factors with zero vectors beyond the lengths."""
    a, b = factors
    rows = jnp.arange(a.shape[0], dtype=jnp.int32)[:, None] < rules.m
    columns = jnp.arange(b.shape[0], dtype=jnp.int32)[:, None] < rules.n
    return Factors(jnp.where(rows, a, 0), jnp.where(columns, b, 0))
