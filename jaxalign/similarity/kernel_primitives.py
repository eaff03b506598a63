"""JAX primitives of kernels that take a batch: ``vmap``, and other devices."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import mlir


def fold_into_batch(primitive: Primitive, arrays: Any, axes: Any, **form: Any):
    """The batching rule of a primitive whose arrays have axis 0 for the batch: the new
    axis becomes a part of it. ``form`` are the parameters of the primitive."""
    count = next(
        x.shape[axis] for x, axis in zip(arrays, axes, strict=True) if axis is not None
    )

    def fold(x: jax.Array, axis: int | None):
        if axis is None:
            x = jnp.broadcast_to(x, (count, *x.shape))
        else:
            x = jnp.moveaxis(x, axis, 0)
        return x.reshape(-1, *x.shape[2:])

    values = primitive.bind(*map(fold, arrays, axes), **form)
    split = [x.reshape(count, -1, *x.shape[1:]) for x in values]
    return split, [0] * len(split)


def lower_to(primitive: Primitive, by_kernel: Callable, plainly: Callable) -> None:
    """Have a primitive run ``by_kernel`` on CUDA, and ``plainly`` elsewhere; both
    return lists."""
    for function, platform in ((plainly, None), (by_kernel, "cuda")):
        lowering = mlir.lower_fun(function, multiple_results=True)
        mlir.register_lowering(primitive, lowering, platform=platform)
