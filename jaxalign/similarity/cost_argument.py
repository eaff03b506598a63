"""The options ``gap_open`` and ``gap_extend`` of a function of similarities, checked.

A cost is a number, an array of the batch shape, (..., m, n), or a pair (of the query's
residues, of the target's) of numbers, vectors (..., m) and (..., n), or (..., m, n).
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.core import Tracer

from jaxalign.errors import UsageError
from jaxalign.similarity.arrays import Gap
from jaxalign.similarity.scores import real_numbers

# A gap cost: one, or a pair (of the query's residues, of the target's).
GapCost = jax.typing.ArrayLike | Sequence[Any]


def gap(
    name: str,
    cost: GapCost,
    fit: Callable[..., tuple[jax.Array, int | None]],
    batch: tuple[int, ...],
    m: int,
    n: int,
) -> Gap:
    """The two sides of a cost, each (array, axis) as ``fit`` gives it.

    Raises
    ------
    UsageError
        No number, or a shape that is none of those above, or two of them.
    """
    if isinstance(cost, str):
        raise UsageError(
            f"{name}={cost!r}: a number, or an array of numbers, is needed"
        )
    if isinstance(cost, (tuple, list)):
        if len(cost) != 2:
            raise UsageError(f"{name}: one cost, or a pair (query's, target's)")
        sides = zip(cost, ("query", "target"), (m, n), strict=True)
        gaps = (
            _one_gap(name, x, fit, batch, (m, n), side, length)
            for x, side, length in sides
        )
        return Gap(*gaps)
    cost = real_numbers(name, cost)
    shape = cost.shape
    full = len(shape) >= 2 and shape[-2:] == (m, n)
    each = f"one cost for each pair of the batch {batch}"
    if full and shape == batch:
        raise _two_ways(name, shape, each, f"for each cell {m, n}, as (..., {m}, {n})")
    if shape and not full and shape != batch:
        raise UsageError(
            f"{name} of shape {shape}: a number, {batch}, (..., {m}, {n}), or a "
            "pair (query's, target's)"
        )
    fitted = fit(cost, rank=2 if full else 0)
    return Gap(fitted, fitted)


def _one_gap(
    name: str,
    cost: GapCost,
    fit: Callable[..., tuple[jax.Array, int | None]],
    batch: tuple[int, ...],
    cells: tuple[int, int],
    side: str,
    length: int,
):
    """One of a pair of costs: of the residues of ``side``."""
    cost = real_numbers(name, cost)
    shape = cost.shape
    if not shape:
        return fit(cost, rank=0)
    full = len(shape) >= 2 and shape[-2:] == cells
    vector = shape[-1:] == (length,)
    residues = f"for each of {length} residues of the {side}, as (..., {length})"
    if vector and shape == batch:
        each = f"one cost for each pair of the batch {batch}"
        raise _two_ways(name, shape, each, residues)
    if full and vector and shape[:-1] == batch[-len(shape) + 1 :]:
        raise _two_ways(name, shape, f"for each cell {cells}", residues)
    if full:
        return fit(cost, rank=2)
    if not vector:
        raise UsageError(f"{name} of shape {shape}: (..., {length}) is needed")
    return fit(cost, rank=1)


def _two_ways(name: str, shape: tuple[int, ...], one: str, other: str) -> UsageError:
    return UsageError(
        f"{name} of shape {shape} can be read two ways: {one}, or {other}; give it all "
        "axes, those of the batch first, with 1 where it is the same"
    )


def check_costs(
    opening: GapCost, extending: GapCost, lengths: Any, batch: tuple[int, ...]
) -> None:
    """Refuse costs that are no costs, as far as they are known: inside ``jit`` they may
    not be.

    Raises
    ------
    UsageError
        A negative cost within the lengths; of numbers, extending that costs more than
        opening. By place it may, and an infinite one forbids to extend.
    """
    sides = [_known_sides(cost) for cost in (opening, extending)]
    for name, both in zip(("gap_open", "gap_extend"), sides, strict=True):
        for side, cost in enumerate(both):
            low = None if cost is None else _lowest(cost, side, lengths, batch)
            if low is not None and low < 0:
                raise UsageError(f"{name} = {low:g}: a cost is a number, 0 or more")
    for first, more in zip(*sides, strict=True):
        if first is None or more is None:
            continue
        if {first.shape, more.shape} <= {(), batch}:
            _check_numbers(*np.broadcast_arrays(first, more))


def _known_sides(cost: GapCost) -> list[np.ndarray | None]:
    """The cost of the query's residues and of the target's; None inside ``jit``."""
    both = cost if isinstance(cost, (tuple, list)) else (cost, cost)
    return [
        None if isinstance(x, Tracer) else np.asarray(x).astype(float) for x in both
    ]


def _lowest(
    cost: np.ndarray, side: int, lengths: Any, batch: tuple[int, ...]
) -> float | None:
    """The lowest entry within the lengths; None where there is none, or none known."""
    if not (cost < 0).any() or cost.shape in ((), batch) or lengths is None:
        return cost.min(initial=np.inf)
    pair = isinstance(lengths, (tuple, list))
    ends = lengths if pair else (lengths[..., 0], lengths[..., 1])
    if any(isinstance(x, Tracer) for x in ends):
        return None
    m, n = (np.asarray(x)[..., None] for x in ends)
    rank = cost.ndim - len(batch) if cost.ndim > len(batch) else cost.ndim
    if rank == 1:
        inside = np.arange(cost.shape[-1]) < (m, n)[side]
    else:
        i, j = (np.arange(k) for k in cost.shape[-2:])
        inside = (i < m)[..., :, None] & (j < n)[..., None, :]
    return np.where(inside, cost, np.inf).min(initial=np.inf)


def _check_numbers(opening: np.ndarray, extending: np.ndarray) -> None:
    wrong = (extending > opening) & np.isfinite(extending)
    if wrong.any():
        raise UsageError(
            f"gap_extend = {extending[wrong][0]:g} exceeds gap_open = "
            f"{opening[wrong][0]:g}: extending may not cost more than opening"
        )
