"""The posterior of one pair, and its derivatives in both modes.

Its Jacobian is a part of the Hessian of the soft score, hence the transpose of another
part: P moves with S, costs and temperature as their expectations move with S. Forward
mode is one forward-mode pass through the gradient of the score, and reverse mode is the
same pass along the cotangent. A JAX primitive says so, since autodiff would transpose
the pass and keep all that it computes.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from jaxalign.similarity.arrays import ModeRules
from jaxalign.similarity.cost_table import Weights
from jaxalign.similarity.mesh_batch import alike
from jaxalign.similarity.soft.dp.free_energy import expected, from_names, to_names
from jaxalign.similarity.soft.dp.kernels import Block

PAIRS = ("similarity",)


@partial(jax.custom_jvp, nondiff_argnums=(3,))
def posterior(weights: Weights, temperature: jax.Array, rules: ModeRules, block: Block):
    """(M, N): the probability that residues i and j are a pair."""
    outputs = frozenset(PAIRS)
    return expected(weights, temperature, rules, block, outputs).gradient.similarity


@partial(posterior.defjvp, symbolic_zeros=True)
def _posterior_jvp(block: Block, primals: tuple[Any, ...], tangents: tuple[Any, ...]):
    weights, temperature, rules = primals
    d_weights, d_temperature, _ = tangents
    p = posterior(weights, temperature, rules, block)
    moved = to_names(d_weights) | {"entropy": d_temperature}
    moved = {k: t for k, t in moved.items() if not isinstance(t, SymbolicZero)}
    if not moved:
        return p, jnp.zeros_like(p)
    tables = to_names(weights) | {"entropy": temperature}, rules
    tables, moved = alike((tables, moved))
    leaves, tree = jax.tree.flatten(tables)
    names = tuple(sorted(moved))
    (change,) = product.bind(
        *leaves,
        *(moved[name] for name in names),
        tree=tree,
        along=names,
        into=PAIRS,
        block=block,
        batches=0,
    )
    return p, change


product = Primitive("soft_curvature")
product.multiple_results = True


def _product(
    *arrays: jax.Array,
    tree: Any,
    along: tuple[str, ...],
    into: tuple[str, ...],
    block: Block,
    batches: int,
):
    """The change of the expectations ``into`` with the weights ``along``."""

    def of_one(leaves: Any, directions: Any):
        named, rules = jax.tree.unflatten(tree, leaves)

        def gradient(moved: Any):
            at = named | moved
            expectation = expected(
                from_names(at), at["entropy"], rules, block, frozenset(into)
            )
            means = to_names(expectation.gradient)
            means["entropy"] = expectation.entropy
            return [means[name] for name in into]

        at = {name: named[name] for name in along}
        changed = dict(zip(along, directions, strict=True))
        _, out = jax.jvp(gradient, (at,), (changed,))
        # Kernels count overhangs with the costs: there these have no mean.
        return [
            jnp.zeros_like(named[name]) if x is None else x
            for name, x in zip(into, out, strict=True)
        ]

    for _ in range(batches):
        of_one = jax.vmap(of_one)
    return of_one(*_parts(arrays, tree))


def _parts(arrays: Sequence[jax.Array], tree: Any):
    """(what the expectations are of, directions)."""
    count = tree.num_leaves
    return list(arrays[:count]), list(arrays[count:])


def _shapes(*arrays: Any, tree: Any, into: tuple[str, ...], **_: Any):
    named, _ = jax.tree.unflatten(tree, _parts(arrays, tree)[0])
    return [named[name].update(weak_type=False) for name in into]


def _batched(
    arrays: Sequence[jax.Array],
    axes: Sequence[int | None],
    *,
    batches: int,
    **settings: Any,
):
    """All arrays get the new axis, so that results have it too."""
    pairs = [*zip(arrays, axes, strict=True)]
    count = next(x.shape[axis] for x, axis in pairs if axis is not None)
    arrays = [
        jnp.broadcast_to(x, (count, *x.shape))
        if axis is None
        else jnp.moveaxis(x, axis, 0)
        for x, axis in pairs
    ]
    values = product.bind(*arrays, batches=batches + 1, **settings)
    return values, [0] * len(values)


def _jvp(
    primals: tuple[Any, ...], tangents: tuple[Any, ...], *, tree: Any, **settings: Any
):
    """Linear in the directions; by the weights it is differentiated as it stands."""
    value = product.bind(*primals, tree=tree, **settings)
    tables, directions = _parts(primals, tree)
    moved, turned = _parts(tangents, tree)
    turned = [ad.instantiate_zeros(x) for x in turned]
    change = product.bind(*tables, *turned, tree=tree, **settings)
    at = [k for k, x in enumerate(moved) if not isinstance(x, ad.Zero)]
    if not at:
        return value, change

    def by_tables(*some: Any):
        every = dict(enumerate(tables)) | dict(zip(at, some, strict=True))
        return _product(*every.values(), *directions, tree=tree, **settings)

    both = [tables[k] for k in at], [moved[k] for k in at]
    _, third = jax.jvp(by_tables, *both)
    return value, [x + y for x, y in zip(change, third, strict=True)]


def _transposed(
    cotangents: Sequence[Any],
    *arrays: Any,
    tree: Any,
    along: tuple[str, ...],
    into: tuple[str, ...],
    **settings: Any,
):
    """The Hessian is symmetric."""
    tables, _ = _parts(arrays, tree)
    back = [ad.instantiate_zeros(x) for x in cotangents]
    out = product.bind(*tables, *back, tree=tree, along=into, into=along, **settings)
    return [None] * len(tables) + out


product.def_impl(
    lambda *arrays, **settings: jax.jit(partial(product.bind, **settings))(*arrays)
)
product.def_abstract_eval(_shapes)
batching.primitive_batchers[product] = _batched
ad.primitive_jvps[product] = _jvp
ad.primitive_transposes[product] = _transposed
mlir.register_lowering(product, mlir.lower_fun(_product, multiple_results=True))
