"""The state of a loop before its first step."""

from typing import Any

import jax


def begun(state: Any, like: jax.Array):
    """``state`` (a pytree of arrays) with the type that a step gives it: inside of
    ``shard_map`` it varies over the axes over which the array ``like`` does."""
    axes = jax.typeof(like).manual_axis_type.varying

    def vary(x: jax.Array):
        names = tuple(axes - jax.typeof(x).manual_axis_type.varying)
        return jax.lax.pcast(x, names, to="varying") if names else x

    return jax.tree.map(vary, state) if axes else state
