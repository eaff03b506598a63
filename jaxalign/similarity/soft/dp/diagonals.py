"""One pair as the loops of ``soft.dp.scan`` see it: rows by diagonal."""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from jaxalign.similarity.arrays import FORBIDDEN
from jaxalign.similarity.band import BandTable
from jaxalign.similarity.cost_table import CostTable
from jaxalign.similarity.skewed import skew, unskew


def diagonals(
    table: CostTable,
    similarity: jax.Array | None,
    rows_of: Callable[[str, jax.Array], jax.Array] = lambda _, x: x,
):
    """The input of the forward scan: d, the scores and the full costs, all skewed.

    Without ``similarity`` its scores are left out. ``rows_of`` cuts arrays (D, ...)
    into what one scan takes (blocks, or itself).
    """
    count = sum(table.shape) + 1
    xs = {"d": jnp.arange(count, dtype=jnp.int32)}
    if similarity is not None and isinstance(table, BandTable):
        xs["similarity"] = table.by_lanes(similarity)
    elif similarity is not None:
        whole = jnp.pad(similarity, ((1, 0), (1, 0)), constant_values=FORBIDDEN)
        xs["similarity"] = skew(whole, FORBIDDEN)
    return {name: rows_of(name, x) for name, x in (xs | table.scanned).items()}


def successors(
    table: CostTable, rows_of: Callable[[str, jax.Array], jax.Array] = lambda _, x: x
):
    """The input of the reverse scan: full gap costs one diagonal later."""
    count = sum(table.shape) + 1
    xs = {"d": jnp.arange(count, dtype=jnp.int32)}
    for name, x in table.scanned.items():
        later = jnp.pad(x[1:], ((0, 1), (0, 0))) if name in table.costs else x
        xs[name] = later
    return {name: rows_of(name, x) for name, x in xs.items()}


def as_table(table: CostTable, out: dict) -> dict:
    """The output of the reverse scan with its posterior as (M, N)."""
    if "similarity" not in out:
        return out
    if isinstance(table, BandTable):
        return out | {"similarity": table.as_table(out["similarity"])}
    whole = unskew(out["similarity"], table.shape[1] + 1)
    return out | {"similarity": whole[1:, 1:]}
