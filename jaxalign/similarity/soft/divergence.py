"""How far two models of one pair are from each other.

With scores s_p, s_q of an alignment under two models,

    KL(p, q) = (F_q / T_q - F_p / T_p) + E_p[s_p / T_p - s_q / T_q]

A score is linear in the similarity and in the costs of gaps between pairs, so its
expectation is a derivative of F_p along them. It is not linear in what hangs over where
both starts, or both ends, are free: the smaller of two costs counts, and p and q may
disagree about which that is. There the cost of every cell of the table is a variable of
its own (``overhang.by_cell``), and so is always the score of the alignment without
pairs: in these the score is linear.
"""

from functools import partial

import jax
import jax.numpy as jnp

from jaxalign.similarity.arrays import COSTLY, FORBIDDEN, ModeRules
from jaxalign.similarity.band import without_band
from jaxalign.similarity.cost_table import Weights
from jaxalign.similarity.overhang import by_cell
from jaxalign.similarity.soft.dp import free_energy
from jaxalign.similarity.soft.dp.kernels import Banded, Block, Kernels
from jaxalign.similarity.soft.slopes import slope


def divergence(
    weights: tuple[Weights, Weights],
    temperatures: tuple[jax.Array, jax.Array],
    rules: ModeRules,
    block: Block,
    cells: bool,
) -> jax.Array:
    """KL(p, q) of two models of one shape, a scalar; inf where q forbids what p does.

    ``cells`` says that the two may choose differently at an end where both sequences
    hang over freely: the tables then have overhangs by cell.
    """
    (p, q), (t_p, t_q) = weights, temperatures
    if cells:
        (p, q), block = _by_cell(weights, rules, block)
    turn = jax.tree.map(lambda x, y: _finite(x) / t_p - _finite(y) / t_q, p, q)
    at = {"weights": p, "temperature": t_p}
    along = slope(partial(_score, block), at, rules, {"weights": turn})
    # One after the other, so that their tables do not stand side by side.
    q, along = jax.lax.optimization_barrier((q, along))
    value = free_energy.score(q, t_q, rules, block) / t_q - along.value / t_p
    value = jnp.maximum(value + along.along, 0)
    means = jax.lax.stop_gradient(along.gradient["weights"])
    return jnp.where(_refuses(q, means), jnp.inf, value)


def _score(block: Block, at: dict, rules: ModeRules):
    return free_energy.score(at["weights"], at["temperature"], rules, block)


def _by_cell(weights: tuple[Weights, Weights], rules: ModeRules, block: Block):
    """Weights with overhangs by cell, and the passes that take them."""
    if isinstance(block, Banded):
        p, q = (without_band(x, rules, block.width) for x in weights)
        return (p, q), block.block
    p, q = (x._replace(overhang=by_cell(x.overhang, rules)) for x in weights)
    return (p, q), block.otherwise if isinstance(block, Kernels) else block


def _finite(x: jax.Array):
    """Zero where a score or a cost is infinite: its expectation is 0."""
    return jnp.where(jnp.abs(x) < COSTLY, x, 0)


def _refuses(q: Weights, means: Weights):
    """Whether anything that happens under p is infinitely unlikely under q."""
    unlikely = jax.tree.map(lambda x: jnp.abs(x) >= -FORBIDDEN / 10, q)
    happens = jax.tree.map(lambda x, mean: jnp.any(x & (mean != 0)), unlikely, means)
    return jnp.any(jnp.stack(jax.tree.leaves(happens)))
