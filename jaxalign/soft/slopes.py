"""Derivatives of the soft score by a few numbers, or along one direction, and their
gradients.

The gradient of a slope u . dF/dx is the product of the Hessian with u, and the Hessian
is symmetric: one forward-mode pass through the gradient finds it. That needs the memory
of a gradient; reverse mode through a gradient would keep all that it computes.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero


@partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def by_scalars(function, names: tuple[str, ...], x: dict, rest):
    """The gradient of ``function(x, rest)``, a scalar, by the entries of some names of
    ``x``, all of whose leaves are scalars; ``rest`` has no derivative."""
    return jax.grad(lambda y: function(x | y, rest))({name: x[name] for name in names})


@partial(by_scalars.defjvp, symbolic_zeros=True)
def _by_scalars_jvp(function, names, primals, tangents):
    x, rest = primals
    moved = _moved(tangents[0])
    value = by_scalars(function, names, x, rest)
    leaves, tree = jax.tree.flatten({name: x[name] for name in names})
    changes = []
    for k, leaf in enumerate(leaves):
        unit = [jnp.full_like(y, float(y_k == k)) for y_k, y in enumerate(leaves)]
        _, product = _product(function, x, rest, jax.tree.unflatten(tree, unit), moved)
        changes.append(_dot(product, moved, leaf))
    return value, jax.tree.unflatten(tree, changes)


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def along(function, x: dict, rest, direction: dict):
    """The derivative of ``function(x, rest)``, a scalar, along ``direction``, which has
    the arrays of some names of ``x``."""
    at = {name: x[name] for name in direction}
    return jax.jvp(lambda y: function(x | y, rest), (at,), (direction,))[1]


@partial(along.defjvp, symbolic_zeros=True)
def _along_jvp(function, primals, tangents):
    x, rest, direction = primals
    moved, turned = _moved(tangents[0]), _moved(tangents[2])
    value = along(function, x, rest, direction)
    gradient, product = _product(function, x, rest, direction, moved | turned)
    return value, _dot(product, moved, value) + _dot(gradient, turned, value)


def _product(function, x, rest, direction, names):
    """(gradient, Hessian times direction) for the entries of these names."""

    def gradient(y):
        chosen = {name: (x | y)[name] for name in names}
        return jax.grad(lambda z: function(x | y | z, rest))(chosen)

    at = {name: x[name] for name in direction}
    return jax.jvp(gradient, (at,), (direction,))


def _moved(tangents: dict) -> dict:
    """The entries that are not known to be zero."""
    return {
        name: tangent
        for name, tangent in tangents.items()
        if not all(isinstance(t, SymbolicZero) for t in _leaves(tangent))
    }


def _dot(gradient: dict, tangents: dict, like):
    """The sum of products over all leaves, a scalar."""
    total = jnp.zeros_like(like)
    for name in sorted(tangents):
        pairs = zip(_leaves(gradient[name]), _leaves(tangents[name]), strict=True)
        for g, t in pairs:
            if not isinstance(t, SymbolicZero):
                total = total + jnp.sum(g * t)
    return total


def _leaves(tree):
    return jax.tree.leaves(tree, is_leaf=lambda x: isinstance(x, SymbolicZero))
