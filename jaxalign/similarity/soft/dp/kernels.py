"""Functions that stand in for the two passes of ``soft.dp.free_energy``: compiled for a
device."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxalign.similarity.arrays import COSTLY, ModeRules
from jaxalign.similarity.cost_table import Weights


class Kernels(NamedTuple):
    """Two functions of one pair that replace the two passes, for gap costs that are
    numbers and with adjacent gaps; what hangs over they derive from the costs.

    Both take (similarity, costs (4,): open and extend of the query's residues, then of
    the target's, rules, unit), all over T; ``unit`` is a power of two near 1 / T.
    ``score`` returns log Z as (high, rest), ``expected`` these, the posterior (M, N)
    and, if its last argument is true, the expected payers (4,). ``otherwise`` is the
    ``block`` for entropies; with ``pairs_only`` for all but gradients by the similarity
    alone, and for scores without a gradient.
    """

    score: Callable
    expected: Callable
    otherwise: int | None
    pairs_only: bool = False


class Banded(NamedTuple):
    """A band of half width ``width`` (``similarity.band``), and the engine in it."""

    width: int
    block: int | None


Block = int | str | Kernels | Banded | None


def log_z(
    function: Callable[..., Any],
    scaled: Weights,
    temperature: jax.Array,
    rules: ModeRules,
):
    """Score by a function of ``Kernels``, and what else that returns; ``scaled`` are
    weights over T."""
    (open_e, open_f), (extend_e, extend_f) = scaled.opening, scaled.extending
    costs = jnp.stack([open_e, extend_e, open_f, extend_f])
    high, rest, *more = function(scaled.similarity, costs, rules, _unit(temperature))
    high = jax.lax.stop_gradient(high)
    value = temperature * high + temperature * rest
    return jnp.where(high + rest > -COSTLY / 2, value, -jnp.inf), *more


def _unit(temperature: jax.Array):
    """A power of two near 1 / T, at least 1; from its bits, since exp2 may round."""
    exponent = jnp.floor(-jnp.log2(jax.lax.stop_gradient(temperature)))
    bits = (jnp.clip(exponent, 0, 100).astype(jnp.int32) + 127) << 23
    return jax.lax.bitcast_convert_type(bits, jnp.float32)
