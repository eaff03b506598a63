"""JAX primitives of kernels that take a batch: ``vmap``, and other devices."""

from collections.abc import Callable, Collection
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import mlir


def fold_into_batch(
    primitive: Primitive,
    arrays: Any,
    axes: Any,
    shared: Collection[int] = (),
    **form: Any,
):
    """The batching rule of a primitive whose arrays have axis 0 for the batch: the new
    axis becomes a part of it. ``form`` are the parameters of the primitive. Arrays of
    the numbers ``shared``, not the first, may stand once for the batch, and do so while
    no axis is theirs."""
    count = next(
        x.shape[axis] for x, axis in zip(arrays, axes, strict=True) if axis is not None
    )
    size = arrays[0].shape[1 if axes[0] == 0 else 0]

    def fold(k: int, x: jax.Array, axis: int | None):
        once = k in shared
        if axis is None:
            if once and len(x) == 1:
                return x
            x = jnp.broadcast_to(x, (count, *x.shape))
        else:
            x = jnp.moveaxis(x, axis, 0)
        if once:
            x = jnp.broadcast_to(x, (count, size, *x.shape[2:]))
        return x.reshape(-1, *x.shape[2:])

    folded = map(fold, range(len(arrays)), arrays, axes)
    values = primitive.bind(*folded, **form)
    split = [x.reshape(count, -1, *x.shape[1:]) for x in values]
    return split, [0] * len(split)


def lower_to(primitive: Primitive, by_kernel: Callable, plainly: Callable) -> None:
    """Have a primitive run ``by_kernel`` on CUDA, and ``plainly`` elsewhere; both
    return lists."""
    for function, platform in ((plainly, None), (by_kernel, "cuda")):
        lowering = mlir.lower_fun(function, multiple_results=True)
        mlir.register_lowering(primitive, lowering, platform=platform)
