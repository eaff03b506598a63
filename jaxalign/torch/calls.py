"""A JAX function as a function of PyTorch's tensors, with derivatives of every order.

``jax.vjp`` of it is two programs: its values with what the pullback needs, and the
pullback. A gradient that is to be differentiated in its turn (``create_graph=True``) is
another JAX function, of the inputs and the cotangents, and goes the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import lru_cache
from typing import Any

import jax
import torch

from jaxalign.torch.tensors import as_array, as_tensor, device_of


class ArrayFunction:
    """A JAX function of flat arrays, its programs and its derivatives; the same object
    for the same function.

    Parameters
    ----------
    function : (*arrays) -> pytree of arrays

    Attributes
    ----------
    tree : structure of the result, known when it has run
    """

    def __init__(self, function: Callable[..., Any]):
        self.function, self.run = function, jax.jit(function)
        self.tree: Any = None
        self._forward: dict[tuple[bool, ...], Any] = {}
        self._gradient: dict[tuple[bool, ...], ArrayFunction] = {}

    def forward(self, moved: tuple[bool, ...]) -> Callable[..., Any]:
        """(*arrays) -> (result, pullback to the arrays that ``moved`` chooses)."""
        if moved not in self._forward:

            def values(*arrays: Any):
                chosen = [x for x, at in zip(arrays, moved, strict=True) if at]
                return jax.vjp(self._by(arrays, moved), *chosen)

            self._forward[moved] = jax.jit(values)
        return self._forward[moved]

    def gradient(self, moved: tuple[bool, ...]) -> ArrayFunction:
        """The function (*arrays, *cotangents) -> cotangents of the chosen arrays."""
        if moved not in self._gradient:

            def pulled(*values: Any):
                arrays, cotangents = values[: len(moved)], values[len(moved) :]
                _, pullback = self.forward(moved)(*arrays)
                return pullback(jax.tree.unflatten(self.tree, cotangents))

            self._gradient[moved] = ArrayFunction(pulled)
        return self._gradient[moved]

    def _by(self, arrays: Sequence[Any], moved: tuple[bool, ...]):
        def of_chosen(*chosen: Any):
            rest = iter(chosen)
            both = zip(arrays, moved, strict=True)
            return self.function(*(next(rest) if at else x for x, at in both))

        return of_chosen


@jax.jit
def _pull(pullback: Callable[..., Any], cotangents: Any):
    return pullback(cotangents)


class TensorCall(torch.autograd.Function):
    """``ArrayFunction`` of tensors and numbers."""

    @staticmethod
    def forward(ctx: Any, function: ArrayFunction, *values: Any) -> Any:
        """Tensors of the leaves of the result."""
        moved = tuple(ctx.needs_input_grad[1:])
        with settings(values):
            arrays = map(as_array, values)
            result, ctx.pullback = function.forward(moved)(*arrays)
        leaves, function.tree = jax.tree.flatten(result)
        ctx.function, ctx.moved = function, moved
        ctx.numbers = [None if isinstance(x, torch.Tensor) else x for x in values]
        tensors = (x if isinstance(x, torch.Tensor) else None for x in values)
        ctx.save_for_backward(*tensors)
        return tuple(map(as_tensor, leaves))

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor) -> Any:
        """Cotangents of the tensors that need them."""
        saved = ctx.saved_tensors  # an error where one was changed in place
        pairs = zip(saved, ctx.numbers, strict=True)
        values = [number if x is None else x for x, number in pairs]
        if torch.is_grad_enabled():  # create_graph=True
            function = ctx.function.gradient(ctx.moved)
            pulled = call(function, *values, *cotangents)
        else:
            with settings((*values, *cotangents)):
                tree = ctx.function.tree
                arrays = jax.tree.unflatten(tree, list(map(as_array, cotangents)))
                pulled = map(as_tensor, _pull(ctx.pullback, arrays))
        rest = iter(pulled)
        return None, *(next(rest) if at else None for at in ctx.moved)


def call(function: ArrayFunction, *values: Any) -> Sequence[torch.Tensor]:
    """The leaves of the result, as tensors."""
    if torch.is_grad_enabled() and any(map(_needs_gradient, values)):
        return TensorCall.apply(function, *values)
    with settings(values):
        result = function.run(*map(as_array, values))
    leaves, function.tree = jax.tree.flatten(result)
    return tuple(map(as_tensor, leaves))


def _needs_gradient(x: Any) -> bool:
    return isinstance(x, torch.Tensor) and x.requires_grad


def settings(values: Sequence[Any]) -> AbstractContextManager[Any]:
    """JAX as these values need it: 64 bits where one has them, and their device."""
    tensors = [x for x in values if isinstance(x, torch.Tensor)]
    wide = any(x.dtype == torch.float64 for x in tensors)
    on_cpu = device_of(tensors).type == "cpu"
    stack = ExitStack()
    if wide:
        stack.enter_context(jax.enable_x64(True))
    if on_cpu and _has_gpu():
        stack.enter_context(jax.default_device(jax.devices("cpu")[0]))
    return stack


@lru_cache(1)
def _has_gpu() -> bool:
    return jax.default_backend() != "cpu"
