"""The soft functions of one pair, and one program for a batch of them."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.core import Tracer

from jaxalign.errors import UsageError
from jaxalign.runtime.programs import program
from jaxalign.similarity import mesh_batch
from jaxalign.similarity.arrays import (
    FORBIDDEN,
    Factors,
    Gap,
    ModeRules,
    masked,
    multiplied,
    payable,
)
from jaxalign.similarity.band import empty_fits
from jaxalign.similarity.cost_table import Weights
from jaxalign.similarity.overhang import no_overhang, overhang
from jaxalign.similarity.soft.divergence import divergence as model_divergence
from jaxalign.similarity.soft.dp import free_energy, paths
from jaxalign.similarity.soft.dp.kernels import Banded
from jaxalign.similarity.soft.dp.most_accurate import accurate, spans_of
from jaxalign.similarity.soft.dp.posterior import posterior as pair_posterior
from jaxalign.similarity.soft.options import (
    MAX_TEMPERATURE,
    MIN_TEMPERATURE,
    Settings,
    SoftPair,
)
from jaxalign.similarity.soft.slopes import by_scalars
from jaxalign.similarity.validity import is_valid

SUMMARY = frozenset(("similarity", "entropy"))  # what ``summary`` needs beside a score


def over_batch(
    function: Callable[..., Any],
    arrays: Any,
    axes: Any,
    batch: tuple[int, ...],
    settings: Settings | None,
    more: tuple[Any, ...] = (),
):
    """``function`` of one pair over flattened batch axes, as one program.

    ``axes`` are those of ``vmap``; ``more`` goes to the function after the settings.

    Raises
    ------
    UsageError
        ``scaled`` weights cannot prove the result; inside ``jit`` it is nan instead.
    """
    values = _program(function, arrays, axes, batch, settings, more)
    first = jax.tree.leaves(values)[0]
    scaled = settings is not None and settings.block == free_energy.SCALED
    if scaled and not isinstance(first, Tracer):
        lost = jnp.isnan(first).any(tuple(range(len(batch), first.ndim)))
        if lost.any() and (lost & _program(known, arrays, axes, batch, settings)).any():
            raise UsageError(
                "implementation 'scaled' loses too much here: scores are too large "
                "for the temperature; 'log' and 'blocked' hold"
            )
    return values


@program(("function", "axes", "batch", "settings", "more"))
def _program(
    function: Callable[..., Any],
    arrays: Any,
    axes: Any,
    batch: tuple[int, ...],
    settings: Settings | None,
    more: tuple[Any, ...] = (),
):
    if not batch:
        return function(mesh_batch.alike(arrays), settings, *more)
    values = mesh_batch.over_batch(
        lambda one: function(one, settings, *more), arrays, axes
    )
    return jax.tree.map(lambda x: x.reshape(*batch, *x.shape[1:]), values)


def known(arrays: Any, settings: Settings):  # noqa: ARG001
    """Whether the numbers of a pair, or of two, mean something; a bool scalar."""
    valid = jnp.bool_(True)
    for x in jax.tree.leaves(arrays, is_leaf=lambda x: isinstance(x, SoftPair)):
        if isinstance(x, SoftPair):
            t = x.temperature
            valid &= is_valid(x) & (t >= MIN_TEMPERATURE) & (t <= MAX_TEMPERATURE)
    return valid


def _if_known(pair: SoftPair, settings: Settings):
    """A factor of results: 1, or nan, for gradients too."""
    valid = known(jax.lax.stop_gradient(pair), settings)
    return jnp.where(valid, 1, jnp.nan).astype(pair.temperature.dtype)


def score(pair: SoftPair, settings: Settings):
    """The soft score of a pair, a scalar."""
    weights, rules = model(pair, settings)
    value = free_energy.score(weights, pair.temperature, rules, settings.block)
    return value * _if_known(pair, settings)


def posterior(pair: SoftPair, settings: Settings):
    """Probabilities (m, n) of the pairs of residues."""
    factor, pair = _if_known(pair, settings), _written_out(pair)
    weights, rules = model(pair, settings)
    p = pair_posterior(weights, pair.temperature, rules, settings.block)
    return jnp.multiply(p, factor)


def gaps(pair: SoftPair, settings: Settings, one: tuple[bool, bool]):
    """Expected payers of gap_open and of gap_extend, in the shapes of the costs: where
    ``one`` says that a cost is of both sequences, of both together."""
    names = ("gap_open", "gap_extend")
    x, rules = pair._asdict(), pair.rules
    del x["rules"]
    costs = {n: x[n].e if both else x[n] for n, both in zip(names, one, strict=True)}
    function = partial(_score_of, settings)
    if all(cost.ndim == 0 for cost in jax.tree.leaves(costs)):
        slopes = by_scalars(function, names, x | costs, rules)
    else:
        slopes = jax.grad(lambda y: function(x | y, rules))(costs)
    return tuple(jax.tree.map(jnp.negative, slopes[name]) for name in names)


def entropy(pair: SoftPair, settings: Settings):
    """Entropy of the distribution, a scalar in nats: the derivative by T."""
    x, rules = pair._asdict(), pair.rules
    del x["rules"]
    names = ("temperature",)
    return by_scalars(partial(_score_of, settings), names, x, rules)["temperature"]


def summary(pair: SoftPair, settings: Settings):
    """(score, posterior, entropy) of a pair, by one forward and one reverse fill."""
    factor, pair = _if_known(pair, settings), _written_out(pair)
    weights, rules = model(pair, settings)
    means = free_energy.expected(
        weights, pair.temperature, rules, settings.block, SUMMARY
    )
    values = means.score, means.gradient.similarity, means.entropy
    return jax.tree.map(partial(jnp.multiply, factor), values)


def _score_of(settings: Settings, x: dict, rules: ModeRules):
    """The score of the arrays by name; a cost of both sequences may stand once."""
    costs = {name: x[name] for name in ("gap_open", "gap_extend")}
    for name, cost in costs.items():
        costs[name] = cost if isinstance(cost, Gap) else Gap(cost, cost)
    return score(SoftPair(**(x | costs), rules=rules), settings)


def divergence(pairs: tuple[SoftPair, SoftPair], settings: Settings, cells: bool):
    """KL(p, q) of two models of one shape."""
    p, q = map(_written_out, pairs)
    (of_p, rules), (of_q, _) = (model(x, settings) for x in (p, q))
    temperatures = p.temperature, q.temperature
    value = model_divergence((of_p, of_q), temperatures, rules, settings.block, cells)
    return value * _if_known(p, settings) * _if_known(q, settings)


def log_prob(pair_and_partners: tuple[SoftPair, jax.Array], settings: Settings):
    """Log probability of the alignment with these partners (m,)."""
    pair, partners = pair_and_partners
    weights, rules = model(pair, settings)
    path = paths.path_score(weights, rules, partners, _band(settings))
    every = free_energy.score(weights, pair.temperature, rules, settings.block)
    legal = path > -jnp.inf
    gap = jnp.where(legal, path, 0) - jnp.where(legal, every, 0)
    log_p = gap / pair.temperature
    # Above 0 by rounding alone, and with the gradient of any other.
    log_p = log_p - jax.lax.stop_gradient(jnp.maximum(log_p, 0))
    log_p = jnp.where(legal, log_p, -jnp.inf)
    return log_p * _if_known(pair, settings)


def draw(pair_and_key: tuple[SoftPair, jax.Array], settings: Settings, count: int):
    """``count`` alignments of one pair: partners (count, m)."""
    pair, key = pair_and_key
    valid, pair = known(pair, settings), _written_out(pair)
    weights, rules = model(pair, settings)
    band = _band(settings)
    partners = paths.sample(key, weights, pair.temperature, rules, count, band)
    return jnp.where(valid, partners, -1)


def most_accurate(
    arrays: tuple[jax.Array, jax.Array, jax.Array, jax.Array],
    _: None,
    free: Sequence[bool],
    local: bool,
):
    """(score, partners, spans, lengths) of one posterior."""
    posterior, threshold, m, n = arrays
    score, partners = accurate(posterior, threshold, m, n)
    spans = spans_of(partners, m, n, free, local)
    return score, partners, spans, jnp.stack([m, n])


def _written_out(pair: SoftPair) -> SoftPair:
    """With the product of its vectors; nothing beyond the lengths gets into it."""
    if not isinstance(pair.similarity, Factors):
        return pair
    return pair._replace(similarity=multiplied(masked(pair.similarity, pair.rules)))


def _band(settings: Settings) -> int | None:
    return settings.block.width if isinstance(settings.block, Banded) else None


def model(pair: SoftPair, settings: Settings):
    """Weights and rules of one pair, differentiable."""
    rules = pair.rules
    if not isinstance(settings.block, int):  # arrays of that size are kept anyway
        pair = _written_out(pair)
    elif isinstance(pair.similarity, Factors):
        pair = pair._replace(similarity=masked(pair.similarity, rules))
    opening, extending = (payable(x, rules) for x in (pair.gap_open, pair.gap_extend))
    shape = pair.similarity.shape
    if settings.local:
        hang = no_overhang(shape, pair.similarity.dtype)
    else:
        band = _band(settings)
        fits = None if band is None else empty_fits(band, rules)
        hang = overhang(opening, extending, shape, rules, FORBIDDEN, fits)
    return Weights(pair.similarity, opening, extending, hang), rules
