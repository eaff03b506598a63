"""A function of one pair over a batch, wherever the batch lies.

An array of a mesh with explicit axes says in its type how it is divided, and inside
``shard_map`` a type says over which axes a value varies. A loop wants the same type
before and after each step, so each device computes its share as if it were alone.
"""

from functools import reduce
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, PartitionSpec


def over_batch(one: Any, arrays: Any, axes: Any) -> Any:
    """``vmap`` of ``one`` over axis 0 of ``arrays``; ``axes`` are 0, or None for what
    the whole batch shares. No device needs what another one has."""
    arrays = alike(arrays)
    mapped = jax.vmap(one, (axes,))
    leaves, tree = jax.tree.flatten(arrays)
    flat = jax.tree.leaves(axes, is_leaf=lambda x: x is None)
    pairs = [*zip(leaves, flat, strict=True)]
    shards = [found for x, axis in pairs if axis == 0 and (found := _explicit(x))]
    if not shards:
        return mapped(arrays)
    mesh, names = shards[0]
    specs = [PartitionSpec() if axis is None else PartitionSpec(names) for axis in flat]
    leaves = [
        jax.sharding.reshard(x, jax.sharding.NamedSharding(mesh, spec))
        for x, spec in zip(leaves, specs, strict=True)
    ]
    run = jax.shard_map(
        lambda *leaves: mapped(alike(jax.tree.unflatten(tree, leaves))),
        mesh=mesh,
        in_specs=tuple(specs),
        out_specs=PartitionSpec(names),
    )
    return run(*leaves)


def alike(arrays: Any) -> Any:
    """Arrays that vary over the same manual axes, those of any."""
    arrays = jax.tree.map(jnp.asarray, arrays)
    every = [_varies(x) for x in jax.tree.leaves(arrays)]
    union = reduce(frozenset.union, every, frozenset())
    if not union:
        return arrays
    return jax.tree.map(lambda x: _vary(x, union - _varies(x)), arrays)


def _vary(x: Any, names: frozenset[str]) -> Any:
    return jax.lax.pcast(x, tuple(names), to="varying") if names else x


def _varies(x: Any) -> frozenset[str]:
    return frozenset(jax.typeof(x).manual_axis_type.varying)


def divided(*arrays: Any) -> bool:
    """Whether axis 0 of some array is divided by an explicit mesh."""
    return any(x.ndim and _explicit(x) for x in arrays)


def _explicit(x: Any) -> tuple[Any, Any] | None:
    """(mesh, names of the axes that divide axis 0) of an explicit mesh."""
    sharding = jax.typeof(x).sharding
    spec = sharding.spec
    if not len(spec) or spec[0] is None:
        return None
    names = spec[0] if isinstance(spec[0], tuple) else (spec[0],)
    types = dict(zip(sharding.mesh.axis_names, sharding.mesh.axis_types, strict=True))
    if any(types[name] != AxisType.Explicit for name in names):
        return None
    return sharding.mesh, spec[0]
