"""The soft functions of one pair, and one program for a batch of them."""

import jax
import jax.numpy as jnp
from jax.core import Tracer

from jaxalign.errors import UsageError
from jaxalign.runtime import mesh_batch
from jaxalign.runtime.programs import program
from jaxalign.similarity.arrays import COSTLY, FORBIDDEN, Factors, masked, multiplied
from jaxalign.similarity.cost_table import Weights
from jaxalign.similarity.overhang import no_overhang, overhang
from jaxalign.soft.dp import free_energy, paths
from jaxalign.soft.options import Settings, SoftPair


def over_batch(function, arrays, axes, batch, settings, more=()):
    """``function`` of one pair over flattened batch axes, as one program.

    ``axes`` are those of ``vmap``; ``more`` goes to the function after the settings.

    Raises
    ------
    UsageError
        ``scaled`` weights cannot prove the result; inside ``jit`` it is nan instead.
    """
    values = _program(function, arrays, axes, batch, settings, more)
    first = jax.tree.leaves(values)[0]
    if settings.block == free_energy.SCALED and not isinstance(first, Tracer):
        if jnp.any(jnp.isnan(first)):
            raise UsageError(
                "implementation 'scaled' loses too much here: scores are too large "
                "for the temperature; 'log' and 'blocked' hold"
            )
    return values


@program(("function", "axes", "batch", "settings", "more"))
def _program(function, arrays, axes, batch, settings, more):
    if not batch:
        return function(mesh_batch.alike(arrays), settings, *more)
    values = mesh_batch.over_batch(
        lambda one: function(one, settings, *more), arrays, axes
    )
    return jax.tree.map(lambda x: x.reshape(*batch, *x.shape[1:]), values)


def score(pair: SoftPair, settings: Settings):
    """The soft score of a pair, a scalar."""
    weights, rules = model(pair, settings)
    return free_energy.score(weights, pair.temperature, rules, settings.block)


def posterior(pair: SoftPair, settings: Settings):
    """Probabilities (m, n) of the pairs of residues."""
    pair = _written_out(pair)
    weights, rules = model(pair, settings)
    return free_energy.posterior(weights, pair.temperature, rules, settings.block)


def gaps(pair: SoftPair, settings: Settings):
    """Expected payers of gap_open and of gap_extend, in the shapes of the costs."""

    def of_costs(costs):
        return -score(pair._replace(gap_open=costs[0], gap_extend=costs[1]), settings)

    return jax.grad(of_costs)((pair.gap_open, pair.gap_extend))


def entropy(pair: SoftPair, settings: Settings):
    """Entropy of the distribution, a scalar in nats: the derivative by T."""
    return jax.grad(lambda t: score(pair._replace(temperature=t), settings))(
        pair.temperature
    )


def divergence(pairs, settings: Settings):
    """KL(p, q) of two models of one shape."""
    pairs = p, q = tuple(map(_written_out, pairs))
    names = ("similarity", "gap_open", "gap_extend")
    of_p, of_q = ({name: getattr(x, name) for name in names} for x in pairs)
    # Scores are linear in these, so a directional derivative is an expected score.
    f_p, expectation = jax.linearize(
        lambda changed: score(p._replace(**changed), settings), of_p
    )
    mean_p, mean_q = (expectation(jax.tree.map(_finite, x)) for x in (of_p, of_q))
    free = score(q, settings) / q.temperature - f_p / p.temperature
    value = free + mean_p / p.temperature - mean_q / q.temperature
    refused = jnp.where(of_q["similarity"] > FORBIDDEN / 10, 0, posterior(p, settings))
    return jnp.where(jnp.any(refused > 0), jnp.inf, jnp.maximum(value, 0))


def _finite(x):
    """Zero where a score or a cost is infinite: its expectation is 0."""
    return jnp.where(jnp.abs(x) < COSTLY, x, 0)


def log_prob(pair_and_partners, settings: Settings):
    """Log probability of the alignment with these partners (m,)."""
    pair, partners = pair_and_partners
    weights, rules = model(pair, settings)
    path = paths.path_score(weights, rules, partners)
    every = free_energy.score(weights, pair.temperature, rules, settings.block)
    legal = path > -jnp.inf
    gap = jnp.where(legal, path, 0) - jnp.where(legal, every, 0)
    return jnp.where(legal, jnp.minimum(gap / pair.temperature, 0), -jnp.inf)


def draw(pair_and_key, settings: Settings, count: int):
    """``count`` alignments of one pair: partners (count, m)."""
    pair, key = pair_and_key
    pair = _written_out(pair)
    weights, rules = model(pair, settings)
    return paths.sample(key, weights, pair.temperature, rules, count)


def _written_out(pair: SoftPair) -> SoftPair:
    """With the product of its vectors; nothing beyond the lengths gets into it."""
    if not isinstance(pair.similarity, Factors):
        return pair
    return pair._replace(similarity=multiplied(masked(pair.similarity, pair.rules)))


def model(pair: SoftPair, settings: Settings):
    """Weights and rules of one pair, differentiable."""
    rules = pair.rules
    if not isinstance(settings.block, int):  # arrays of that size are kept anyway
        pair = _written_out(pair)
    elif isinstance(pair.similarity, Factors):
        pair = pair._replace(similarity=masked(pair.similarity, rules))
    shape = pair.similarity.shape
    if settings.local:
        hang = no_overhang(*shape, pair.similarity.dtype)
    else:
        hang = overhang(pair.gap_open, pair.gap_extend, shape, rules, FORBIDDEN)
    return Weights(pair.similarity, pair.gap_open, pair.gap_extend, hang), rules
