"""Arguments of a public function -> the JAX function of its tensors and numbers."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import jax
import numpy as np
import torch

from jaxalign.errors import UsageError
from jaxalign.similarity.arguments import check_costs
from jaxalign.torch.calls import ArrayFunction

# Options that are no numbers: a program is made for their values.
RULES = frozenset(("mode", "free_ends", "adjacent_gaps", "band", "implementation"))
NUMBERS = (float, int, np.ndarray, np.generic, torch.Tensor)


def function_of(
    public: Callable[..., Any], arguments: tuple[Any, ...], options: dict[str, Any]
) -> tuple[ArrayFunction, list[Any]]:
    """The function of arrays that ``public`` is for these arguments, and the arrays.

    Tensors, NumPy arrays and numbers are its arrays. All else (``RULES``, letters, a
    ``Scoring``) belongs to the function.
    """
    rules = tuple((k, hashable(options[k])) for k in sorted(RULES & options.keys()))
    numbers = {name: x for name, x in options.items() if name not in RULES}
    leaves, tree = jax.tree.flatten((arguments, numbers))
    constants = tuple(None if isinstance(x, NUMBERS) else x for x in leaves)
    arrays = [x for x in leaves if isinstance(x, NUMBERS)]
    return _function(public, tree, constants, rules), arrays


@lru_cache(maxsize=1024)
def _function(
    public: Callable[..., Any],
    tree: Any,
    constants: tuple[Any, ...],
    rules: tuple[tuple[str, Any], ...],
) -> ArrayFunction:
    def of_arrays(*arrays: Any):
        rest = iter(arrays)
        leaves = [next(rest) if x is None else x for x in constants]
        arguments, numbers = jax.tree.unflatten(tree, leaves)
        return public(*arguments, **numbers, **{name: given(x) for name, x in rules})

    return ArrayFunction(of_arrays)


class Corridor(tuple[Any, ...]):
    """A band by rows, hashable: (shape, bytes) of each of its two arrays."""


def hashable(rule: Any) -> Any:
    """The value of an option as part of a key."""
    if isinstance(rule, (tuple, list)) and any(map(_is_array, rule)):
        arrays = (np.ascontiguousarray(_host(x), np.int32) for x in rule)
        return Corridor((x.shape, x.tobytes()) for x in arrays)
    if isinstance(rule, (set, list)):
        return frozenset(rule)
    return rule


def given(rule: Any) -> Any:
    """The inverse of ``hashable``, for the public function."""
    if not isinstance(rule, Corridor):
        return rule
    return tuple(np.frombuffer(x, np.int32).reshape(shape) for shape, x in rule)


def _is_array(x: Any) -> bool:
    return isinstance(x, (torch.Tensor, np.ndarray, list, tuple))


def _host(x: Any) -> Any:
    return x.cpu().numpy() if isinstance(x, torch.Tensor) else x


def check_numbers(options: dict[str, Any]) -> None:
    """Refuse numbers that are no costs and no temperature. Tensors are not looked at,
    since that would wait for their device.

    Raises
    ------
    UsageError
        A negative cost, extending that costs more than opening, or a temperature not
        above 0.
    """
    names = ("gap_open", "gap_extend", "temperature")
    _check(*(_known(options.get(name, 1.0)) for name in names))


def _known(number: Any) -> Any:
    if isinstance(number, (tuple, list)):
        return tuple(map(_known, number))
    return number if isinstance(number, (float, int)) else float("nan")


@lru_cache(maxsize=1024)
def _check(gap_open: Any, gap_extend: Any, temperature: Any) -> None:
    check_costs(gap_open, gap_extend, None, ())
    if temperature <= 0:
        raise UsageError("the temperature must be above 0; `align` is the limit at 0")
