"""A JAX function of PyTorch's tensors, with derivatives of every order.

Tensors and arrays share memory. On a CPU a tensor is read through NumPy, which is
several times as fast as DLPack; on a GPU through DLPack, which has the two streams wait
for each other. A result has been computed, or its stream waits for it, before the
tensor exists, so inputs may be changed in place afterwards.

``jax.vjp`` of a function is two programs: its values with what the pullback needs, and
the pullback. A gradient that is to be differentiated in its turn
(``create_graph=True``) is another JAX function, of the inputs and the cotangents, and
goes the same way.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch

from jaxalign.errors import DeviceError, UsageError
from jaxalign.similarity.arguments import check_costs

CUDA_ALIGNMENT = 256  # XLA reads memory that begins at a multiple of so many bytes
# Options that are no numbers: a program is made for their values.
RULES = frozenset(("mode", "free_ends", "adjacent_gaps", "band", "implementation"))
NUMBERS = (float, int, np.ndarray, np.generic, torch.Tensor)


def share_gpu_memory() -> None:
    """Have JAX take GPU memory as it needs it, beside PyTorch's, where the user has not
    said otherwise: by default it takes three quarters of all when it starts. Of no
    effect once it has started."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")


def call_public(public: Callable[..., Any], arguments: Any, options: Any) -> Any:
    """Call a public function of JAX's arrays with tensors.

    Tensors, NumPy arrays and numbers are the arrays of a program. All else (``RULES``,
    letters, a ``Scoring``) belongs to the function that is compiled.
    """
    check_numbers(options)
    rules = tuple((k, _hashable(options[k])) for k in sorted(RULES & options.keys()))
    numbers = {name: x for name, x in options.items() if name not in RULES}
    leaves, tree = jax.tree.flatten((arguments, numbers))
    constants = tuple(None if isinstance(x, NUMBERS) else x for x in leaves)
    function = _function(public, tree, constants, rules)
    values = call(function, *(x for x in leaves if isinstance(x, NUMBERS)))
    return jax.tree.unflatten(function.tree, values)


@lru_cache(maxsize=1024)
def _function(
    public: Callable[..., Any],
    tree: Any,
    constants: tuple[Any, ...],
    rules: tuple[tuple[str, Any], ...],
) -> ArrayFunction:
    def of_arrays(*arrays: Any):
        iterator = iter(arrays)
        leaves = [next(iterator) if x is None else x for x in constants]
        arguments, numbers = jax.tree.unflatten(tree, leaves)
        return public(*arguments, **numbers, **{k: _option(x) for k, x in rules})

    return ArrayFunction(of_arrays)


class Corridor(tuple[Any, ...]):
    """A band by rows, hashable: (shape, bytes) of each of its two arrays."""


def _hashable(rule: Any) -> Any:
    """The value of an option as part of a key."""
    kinds = (torch.Tensor, np.ndarray, list, tuple)
    if isinstance(rule, (tuple, list)) and any(isinstance(x, kinds) for x in rule):
        sides = (x.cpu().numpy() if isinstance(x, torch.Tensor) else x for x in rule)
        arrays = (np.ascontiguousarray(x, np.int32) for x in sides)
        return Corridor((x.shape, x.tobytes()) for x in arrays)
    return frozenset(rule) if isinstance(rule, (set, list)) else rule


def _option(rule: Any) -> Any:
    """The inverse of ``_hashable``."""
    if not isinstance(rule, Corridor):
        return rule
    return tuple(np.frombuffer(x, np.int32).reshape(shape) for shape, x in rule)


def check_numbers(options: dict[str, Any]) -> None:
    """Refuse numbers that are no costs and no temperature; tensors are not looked at,
    since that would wait for their device.
    """

    def number(x: Any) -> Any:
        if isinstance(x, (tuple, list)):
            return tuple(map(number, x))
        return x if isinstance(x, (float, int)) else float("nan")

    names = ("gap_open", "gap_extend", "temperature")
    _check(*(number(options.get(name, 1.0)) for name in names))


@lru_cache(maxsize=1024)
def _check(gap_open: Any, gap_extend: Any, temperature: Any) -> None:
    check_costs(gap_open, gap_extend, None, ())
    if temperature <= 0:
        raise UsageError(
            f"temperature = {temperature}: must be above 0; `align` is the limit at 0"
        )


class ArrayFunction:
    """A JAX function of flat arrays, its programs and its derivatives; the same object
    for the same function.

    ``function`` gives a pytree of arrays, of the structure ``tree``, which is set when
    it has run.
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
                def of_moved(*inputs: Any):
                    iterator = iter(inputs)
                    pairs = zip(arrays, moved, strict=True)
                    return self.function(
                        *(next(iterator) if at else x for x, at in pairs)
                    )

                moved_arrays = [x for x, at in zip(arrays, moved, strict=True) if at]
                return jax.vjp(of_moved, *moved_arrays)

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
        return tuple(map(torch.from_dlpack, leaves))

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
                pulled = map(torch.from_dlpack, _pull(ctx.pullback, arrays))
        gradients = iter(pulled)
        return None, *(next(gradients) if at else None for at in ctx.moved)


def call(function: ArrayFunction, *values: Any) -> Sequence[torch.Tensor]:
    """Call a function and return the leaves of its result as tensors."""
    tensors = (x for x in values if isinstance(x, torch.Tensor))
    if torch.is_grad_enabled() and any(x.requires_grad for x in tensors):
        return TensorCall.apply(function, *values)
    with settings(values):
        result = function.run(*map(as_array, values))
    leaves, function.tree = jax.tree.flatten(result)
    return tuple(map(torch.from_dlpack, leaves))


def settings(values: Sequence[Any]) -> AbstractContextManager[Any]:
    """Enter the JAX settings of these values: 64 bits if any has them, and a device."""
    tensors = [x for x in values if isinstance(x, torch.Tensor)]
    on_cpu = device_of(tensors).type == "cpu"
    stack = ExitStack()
    if any(x.dtype == torch.float64 for x in tensors):
        stack.enter_context(jax.enable_x64(True))
    if on_cpu and jax.default_backend() != "cpu":
        stack.enter_context(jax.default_device(jax.devices("cpu")[0]))
    return stack


def device_of(tensors: list[torch.Tensor]) -> torch.device:
    """The device that computes: that of the tensors, some of which may be on a CPU."""
    accelerators = [x for x in {x.device for x in tensors} if x.type != "cpu"]
    if len(accelerators) > 1:
        names = " and ".join(sorted(map(str, accelerators)))
        raise UsageError(f"tensors lie on {names}: one device is needed")
    if not accelerators:
        return torch.device("cpu")
    if accelerators[0].type != "cuda":
        raise DeviceError(f"tensors lie on {accelerators[0]}: a CPU or CUDA is needed")
    return accelerators[0]


def as_array(x: Any) -> Any:
    """A tensor in a form that ``jax.jit`` takes; a number as it is."""
    if not isinstance(x, torch.Tensor):
        return x
    x = x.detach().contiguous()
    if not x.is_cuda:  # XLA itself copies memory that begins elsewhere
        if x.dtype == torch.bfloat16:  # which NumPy does not know
            return x.view(torch.int16).numpy().view(np.dtype(jnp.bfloat16))
        return x.numpy()
    if x.data_ptr() % CUDA_ALIGNMENT:
        x = x.clone()
    if x.dtype == torch.int64:
        x = x.to(torch.int32)
    try:
        return jax.dlpack.from_dlpack(x)
    except RuntimeError as error:
        if "cuda" in {device.platform for device in jax.devices()}:
            raise
        raise DeviceError(
            f"a tensor lies on {x.device}, and JAX sees no CUDA device: "
            f"pip install 'jax[cuda12]=={jax.__version__}'"
        ) from error
