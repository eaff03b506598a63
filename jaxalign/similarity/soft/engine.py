"""The soft functions of one pair, and one program for a batch of them.

**Slopes** are derivatives of the score by a few numbers, or along one direction, with
gradients of their own. The gradient of a slope u . dF/dx is the product of the Hessian
with u, and the Hessian is symmetric: one forward-mode pass through the gradient finds
it. That needs the memory of a gradient; reverse mode through a gradient would keep all
that it computes.

**Divergence.** With scores s_p, s_q of an alignment under two models,

    KL(p, q) = (F_q / T_q - F_p / T_p) + E_p[s_p / T_p - s_q / T_q]

A score is linear in the similarity and in the costs of gaps between pairs, so its
expectation is a derivative of F_p along them. It is not linear in what hangs over where
both starts, or both ends, are free: the smaller of two costs counts, and p and q may
disagree about which that is. There the cost of every cell of the table is a variable of
its own (``costs.by_cell``), and so is always the score of the alignment without
pairs: in these the score is linear.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero

from jaxalign.runtime.programs import program
from jaxalign.similarity.arguments import (
    COSTLY,
    FORBIDDEN,
    MAX_TEMPERATURE,
    MIN_TEMPERATURE,
    Factors,
    Gap,
    ModeRules,
)
from jaxalign.similarity.arrays import is_valid, map_pairs, masked, multiplied, payable
from jaxalign.similarity.band import empty_fits, without_band
from jaxalign.similarity.costs import Weights, by_cell, no_overhang, overhang
from jaxalign.similarity.soft.dp import free_energy, paths
from jaxalign.similarity.soft.dp.free_energy import posterior as pair_posterior
from jaxalign.similarity.soft.dp.paths import spans_of
from jaxalign.similarity.soft.dp.scan import Banded, Kernels
from jaxalign.similarity.soft.options import (
    Settings,
    SoftPair,
)


@partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def by_scalars(
    function: Callable[..., jax.Array], names: tuple[str, ...], x: dict, fixed: Any
):
    """Gradient of a scalar ``function(x, fixed)`` by the entries ``names`` of ``x``.

    The leaves of these entries are scalars; ``fixed`` has no derivative.
    """
    return jax.grad(lambda y: function(x | y, fixed))({name: x[name] for name in names})


@partial(by_scalars.defjvp, symbolic_zeros=True)
def _by_scalars_jvp(
    function: Callable[..., jax.Array],
    names: tuple[str, ...],
    primals: tuple[Any, ...],
    tangents: tuple[Any, ...],
):
    x, fixed = primals
    moved = _moved(tangents[0])
    value = by_scalars(function, names, x, fixed)
    leaves, tree = jax.tree.flatten({name: x[name] for name in names})
    changes = []
    for k, leaf in enumerate(leaves):
        unit = [jnp.full_like(y, float(y_k == k)) for y_k, y in enumerate(leaves)]
        turn = jax.tree.unflatten(tree, unit)
        *_, product = _product(function, x, fixed, turn, moved)
        changes.append(_dot(product, moved, leaf))
    return value, jax.tree.unflatten(tree, changes)


class Slope(NamedTuple):
    """``value`` of a function, its derivative ``along`` a direction, and the
    ``gradient`` by the names of the direction, which is a constant to derivatives."""

    value: jax.Array
    along: jax.Array
    gradient: dict


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def slope(
    function: Callable[..., jax.Array], x: dict, fixed: Any, direction: dict
) -> Slope:
    """Differentiate a scalar ``function(x, fixed)`` along ``direction``, which has the
    arrays of some names of ``x``."""
    at = {name: x[name] for name in direction}
    value, gradient = jax.value_and_grad(lambda y: function(x | y, fixed))(at)
    return Slope(value, _dot(gradient, direction, value), _mapped(gradient, value))


@partial(slope.defjvp, symbolic_zeros=True)
def _slope_jvp(
    function: Callable[..., jax.Array],
    primals: tuple[Any, ...],
    tangents: tuple[Any, ...],
):
    x, fixed, direction = primals
    moved, turned = _moved(tangents[0]), _moved(tangents[2])
    names = moved | direction
    value, along, gradient, product = _product(function, x, fixed, direction, names)
    turn = _dot(product, moved, value) + _dot(gradient, turned, value)
    constant = _mapped({name: gradient[name] for name in direction}, value)
    still = jax.tree.map(jnp.zeros_like, constant)
    change = Slope(_dot(gradient, moved, value), turn, still)
    return Slope(value, along, constant), change


def _product(
    function: Callable[..., jax.Array],
    x: dict[str, Any],
    fixed: Any,
    direction: dict[str, Any],
    names: Iterable[str],
):
    """(value, its derivative along the direction, gradient, Hessian times direction);
    the last two for the entries of these names."""

    def gradient(y: dict[str, Any]):
        values = {name: (x | y)[name] for name in names}
        return jax.value_and_grad(lambda z: function(x | y | z, fixed))(values)

    at = {name: x[name] for name in direction}
    (value, slopes), (along, product) = jax.jvp(gradient, (at,), (direction,))
    return value, along, slopes, product


def _mapped(gradient: dict, value: jax.Array) -> dict:
    """A gradient that ``vmap`` maps if it maps the value. Some of it may be constant,
    and JAX takes what a function maps for what its rule of ``jvp`` maps."""
    return jax.tree.map(lambda x: jnp.where(value == value, x, x), gradient)


def _moved(tangents: dict) -> dict:
    """Drop entries that are symbolic zeros."""
    return {
        name: tangent
        for name, tangent in tangents.items()
        if not all(isinstance(t, SymbolicZero) for t in _leaves(tangent))
    }


def _dot(gradient: dict, tangents: dict, like: jax.Array):
    """The sum of products over all leaves, a scalar."""
    total = jnp.zeros_like(like)
    for name in sorted(tangents):
        pairs = zip(_leaves(gradient[name]), _leaves(tangents[name]), strict=True)
        for g, t in pairs:
            if not isinstance(t, SymbolicZero):
                total = total + jnp.sum(g * t)
    return total


def _leaves(tree: Any):
    return jax.tree.leaves(tree, is_leaf=lambda x: isinstance(x, SymbolicZero))


def _finite(x: jax.Array):
    """Zero where a score or a cost is infinite: its expectation is 0."""
    return jnp.where(jnp.abs(x) < COSTLY, x, 0)


SUMMARY = frozenset(("similarity", "entropy"))  # what ``summary`` needs beside a score


@program(("function", "axes", "batch", "settings", "extra"))
def over_batch(
    function: Callable[..., Any],
    arrays: Any,
    axes: Any,
    batch: tuple[int, ...],
    settings: Settings | None,
    extra: tuple[Any, ...] = (),
):
    """``function`` of one pair over flattened batch axes, as one program.

    ``axes`` are those of ``vmap``; ``extra`` goes to the function after the settings.
    """
    return map_pairs(
        lambda single: function(single, settings, *extra), arrays, axes, batch
    )


def known(pair: SoftPair):
    """Whether the numbers of a pair mean something; a bool scalar."""
    t = pair.temperature
    return is_valid(pair) & (t >= MIN_TEMPERATURE) & (t <= MAX_TEMPERATURE)


def _if_known(pair: SoftPair):
    """A factor of results: 1, or nan, for gradients too."""
    valid = known(jax.lax.stop_gradient(pair))
    return jnp.where(valid, 1, jnp.nan).astype(pair.temperature.dtype)


def score(pair: SoftPair, settings: Settings):
    """The soft score of a pair, a scalar."""
    weights, rules = model(pair, settings)
    value = free_energy.score(weights, pair.temperature, rules, settings.block)
    return value * _if_known(pair)


def posterior(pair: SoftPair, settings: Settings):
    """Probabilities (m, n) of the pairs of residues."""
    factor, pair = _if_known(pair), _written_out(pair)
    weights, rules = model(pair, settings)
    p = pair_posterior(weights, pair.temperature, rules, settings.block)
    return jnp.multiply(p, factor)


def gaps(pair: SoftPair, settings: Settings, shared: tuple[bool, bool]):
    """Expected payers of gap_open and of gap_extend, in the shapes of the costs: where
    ``shared`` says that a cost is of both sequences, of both together."""
    names = ("gap_open", "gap_extend")
    x, rules = pair._asdict(), pair.rules
    del x["rules"]
    costs = {
        n: x[n].e if is_shared else x[n]
        for n, is_shared in zip(names, shared, strict=True)
    }
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
    factor, pair = _if_known(pair), _written_out(pair)
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
    """KL(p, q) of two models of one shape, a scalar; inf where q forbids what p does,
    nan where p allows no alignment.

    ``cells`` says that the two may choose differently at an end where both sequences
    hang over freely: the tables then have overhangs by cell.
    """
    of_p, of_q = map(_written_out, pairs)
    # Costs of one shape: of a number, and of one by residue, as of one by cell.
    of_p, of_q = _with_costs_of(of_p, of_q), _with_costs_of(of_q, of_p)
    (p, rules), (q, _) = (model(x, settings) for x in (of_p, of_q))
    (t_p, t_q), block = (of_p.temperature, of_q.temperature), settings.block
    # Overhangs by cell, and the passes that take them.
    if cells and isinstance(block, Banded):
        p, q = (without_band(x, rules, block.width) for x in (p, q))
        block = block.block
    elif cells:
        p, q = (x._replace(overhang=by_cell(x.overhang, rules)) for x in (p, q))
        block = block.otherwise if isinstance(block, Kernels) else block
    turn = jax.tree.map(lambda x, y: _finite(x) / t_p - _finite(y) / t_q, p, q)

    def score_at(at: dict, rules: ModeRules):
        return free_energy.score(at["weights"], at["temperature"], rules, block)

    at = {"weights": p, "temperature": t_p}
    along = slope(score_at, at, rules, {"weights": turn})
    # One after the other, so that their tables do not stand side by side.
    q, along = jax.lax.optimization_barrier((q, along))
    value = free_energy.score(q, t_q, rules, block) / t_q - along.value / t_p
    value = jnp.maximum(value + along.along, 0)
    means = jax.lax.stop_gradient(along.gradient["weights"])
    # Whether anything that happens under p is infinitely unlikely under q.
    unlikely = jax.tree.map(lambda x: jnp.abs(x) >= COSTLY, q)
    happens = jax.tree.map(lambda x, mean: jnp.any(x & (mean != 0)), unlikely, means)
    refused = jnp.any(jnp.stack(jax.tree.leaves(happens)))
    value = jnp.where(refused, jnp.inf, value)
    value = jnp.where(jnp.isneginf(along.value), jnp.nan, value)
    return value * _if_known(of_p) * _if_known(of_q)


def _with_costs_of(pair: SoftPair, partner: SoftPair) -> SoftPair:
    """Spread gap costs to the shapes of another pair's, where these have more axes."""

    def spread(cost: jax.Array, like: jax.Array, axis: int) -> jax.Array:
        if cost.ndim >= like.ndim:
            return cost
        cost = jnp.expand_dims(cost, 1 - axis) if cost.ndim else cost
        return jnp.broadcast_to(cost, like.shape)

    gaps = zip(pair[1:3], partner[1:3], strict=True)
    opening, extending = (Gap(*map(spread, gap, like, range(2))) for gap, like in gaps)
    return pair._replace(gap_open=opening, gap_extend=extending)


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
    return log_p * _if_known(pair)


def draw(pair_and_key: tuple[SoftPair, jax.Array], settings: Settings, count: int):
    """``count`` alignments of one pair: partners (count, m)."""
    pair, key = pair_and_key
    valid, pair = known(pair), _written_out(pair)
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
    """(expected number of correct pairs, partners, spans, lengths) of one posterior;
    nan and none where a probability within the lengths is nan."""
    posterior, threshold, m, n = arrays
    partners = paths.most_accurate(posterior - threshold, m, n)
    i, j = (jnp.arange(size, dtype=jnp.int32) for size in posterior.shape)
    inside = (i[:, None] < m) & (j[None, :] < n)
    unknown = jnp.any(jnp.isnan(posterior) & inside)
    score = jnp.zeros((), posterior.dtype)
    if 0 not in posterior.shape:
        probabilities = posterior[i, jnp.maximum(partners, 0)]
        score = jnp.sum(jnp.where(partners >= 0, probabilities, 0))
        score = jnp.where(unknown, jnp.nan, score)
        partners = jnp.where(unknown, -1, partners)
    spans = spans_of(partners, m, n, free, local)
    return score, partners, spans, jnp.stack([m, n])


def _written_out(pair: SoftPair) -> SoftPair:
    """Replace embeddings by their product, zero beyond the lengths."""
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
