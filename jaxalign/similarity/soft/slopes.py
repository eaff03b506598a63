"""Derivatives of the soft score by a few numbers, or along one direction, and their
gradients.

The gradient of a slope u . dF/dx is the product of the Hessian with u, and the Hessian
is symmetric: one forward-mode pass through the gradient finds it. That needs the memory
of a gradient; reverse mode through a gradient would keep all that it computes.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero


@partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def by_scalars(
    function: Callable[..., jax.Array], names: tuple[str, ...], x: dict, rest: Any
):
    """The gradient of ``function(x, rest)``, a scalar, by the entries of some names of
    ``x``, all of whose leaves are scalars; ``rest`` has no derivative."""
    return jax.grad(lambda y: function(x | y, rest))({name: x[name] for name in names})


@partial(by_scalars.defjvp, symbolic_zeros=True)
def _by_scalars_jvp(
    function: Callable[..., jax.Array],
    names: tuple[str, ...],
    primals: tuple[Any, ...],
    tangents: tuple[Any, ...],
):
    x, rest = primals
    moved = _moved(tangents[0])
    value = by_scalars(function, names, x, rest)
    leaves, tree = jax.tree.flatten({name: x[name] for name in names})
    changes = []
    for k, leaf in enumerate(leaves):
        unit = [jnp.full_like(y, float(y_k == k)) for y_k, y in enumerate(leaves)]
        turn = jax.tree.unflatten(tree, unit)
        *_, product = _product(function, x, rest, turn, moved)
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
    function: Callable[..., jax.Array], x: dict, rest: Any, direction: dict
) -> Slope:
    """Of ``function(x, rest)``, a scalar, along ``direction``, which has the arrays of
    some names of ``x``."""
    at = {name: x[name] for name in direction}
    value, gradient = jax.value_and_grad(lambda y: function(x | y, rest))(at)
    return Slope(value, _dot(gradient, direction, value), gradient)


@partial(slope.defjvp, symbolic_zeros=True)
def _slope_jvp(
    function: Callable[..., jax.Array],
    primals: tuple[Any, ...],
    tangents: tuple[Any, ...],
):
    x, rest, direction = primals
    moved, turned = _moved(tangents[0]), _moved(tangents[2])
    names = moved | direction
    value, along, gradient, product = _product(function, x, rest, direction, names)
    turn = _dot(product, moved, value) + _dot(gradient, turned, value)
    constant = {name: gradient[name] for name in direction}
    still = jax.tree.map(jnp.zeros_like, constant)
    change = Slope(_dot(gradient, moved, value), turn, still)
    return Slope(value, along, constant), change


def _product(
    function: Callable[..., jax.Array],
    x: dict[str, Any],
    rest: Any,
    direction: dict[str, Any],
    names: Iterable[str],
):
    """(value, its derivative along the direction, gradient, Hessian times direction);
    the last two for the entries of these names."""

    def gradient(y: dict[str, Any]):
        chosen = {name: (x | y)[name] for name in names}
        return jax.value_and_grad(lambda z: function(x | y | z, rest))(chosen)

    at = {name: x[name] for name in direction}
    (value, slopes), (along, product) = jax.jvp(gradient, (at,), (direction,))
    return value, along, slopes, product


def _moved(tangents: dict) -> dict:
    """The entries that are not known to be zero."""
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
