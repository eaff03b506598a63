"""The traceback ``store``: one box with the choices of all its cells, and a walk.

The fastest, where memory holds the choices; the others fill smaller boxes of the same
kind and join their paths.
"""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from jaxalign.affine import neg_inf
from jaxalign.runtime.programs import program
from jaxalign.triples import engine, gpu
from jaxalign.triples.dp import recurrence
from jaxalign.triples.dp.recurrence import Model, relabel, turn
from jaxalign.triples.engine import FILLS, padded_length, sweep
from jaxalign.triples.result import Region, Triple


def align_stored(triple: Triple, region: Region) -> tuple[int, np.ndarray]:
    """(score, columns from start to end) of a best path through a region."""
    if triple.kernels:
        triple.tally.add(region.cells)
        with triple.tally.timed("fill and walk"):
            return gpu.solve([triple], [region], True)[0]
    with triple.tally.timed("fill"):
        filled = engine.sweep(triple, region, choices=True)
        score, state = engine.best_end(region, filled.end)
    with triple.tally.timed("walk"):
        begin = np.array([*(n + 1 for n in region.extent), state], np.int32)
        longest = padded_length(int(begin[:3].sum()))
        path = walk(triple.schedule, triple.model, filled.choices, begin, longest)
        return score, np.asarray(path.columns)[: int(path.count)][::-1]


@program(("schedule", "model", "longest"))
def walk(
    schedule: str, model: Model, choices: jax.Array, begin: jax.Array, longest: int
):
    """``choice_walk.walk`` to the seed, over choices in the order of a schedule."""
    choice_at = partial(FILLS[schedule].choice_at, model, choices)
    return recurrence.walk(model, choice_at, begin, longest)


def device_bytes(triple: Triple, region: Region) -> int:
    """Device bytes of ``align``: the choices of all planes or layers, and planes."""
    if triple.kernels:
        return gpu.bytes_of(triple, region, paths=True)
    cells = FILLS[triple.schedule].stored_cells(engine.shape_of(region))
    return recurrence.choice_bytes(triple.model, cells) + engine.sweep_bytes(
        triple, region
    )


# ------------------------------------------------------------------------------
# The traceback ``split``, divide and conquer: a path in the memory of a few planes.
#
# Hirschberg's division for triples (Huang 1993, "Alignment of three sequences in
# quadratic space"): the longest sequence is cut in the middle, the first half is filled
# forwards, the second backwards, and where and in which state the two meet is where
# their sum is greatest. Parts that fit the budget go to ``stored_box``.


def align_split(triple: Triple, region: Region, budget: int) -> tuple[int, np.ndarray]:
    """(score, columns from start to end) of a best path through a region.

    ``budget`` bounds the bytes of one stored region; 0 divides to the end.
    """
    order = tuple(np.argsort(region.extent, kind="stable").tolist())
    if order != (0, 1, 2):
        return _reordered(triple, region, budget, order)
    if region.extent[2] < 2 or device_bytes(triple, region) <= budget:
        return align_stored(triple, region)
    with triple.tally.timed("split"):
        score, *middle = meet(triple, region)
    _, first = align_split(
        triple, replace(region, high=middle[0], end=middle[1]), budget
    )
    _, tail = align_split(
        triple, replace(region, low=middle[0], start=middle[1]), budget
    )
    return score, np.concatenate([first, tail])


def _reordered(triple: Triple, region: Region, budget: int, order: tuple[int, ...]):
    """The longest axis last: states and columns are those of the new order."""
    same = relabel(triple.model, order)
    region = Region(
        tuple(region.low[n] for n in order),
        tuple(region.high[n] for n in order),
        same[region.start],
        None if region.end is None else same[region.end],
    )
    score, columns = align_split(triple.reordered(order), region, budget)
    back = turn(columns, np.argsort(order).tolist())
    return score, np.asarray(back, np.uint8)


def meet(triple: Triple, region: Region):
    """(score, cell, state) of a best path where it first reaches the middle of axis c.

    F_p(i, j) is the best path from the start to (i, j, middle) in state p, B_p(i, j)
    the best way on from there; any p, i, j that maximises the sum lies on a best path.
    """
    middle = (region.low[2] + region.high[2]) // 2
    upper = replace(region, high=(*region.high[:2], middle), end=None)
    lower = replace(region, low=(*region.low[:2], middle))
    f = sweep(triple, upper, layer=True).layer
    b = sweep(triple, lower, reverse=True, layer=True).layer
    assert f is not None and b is not None  # for pyright: layer=True
    score, at = join(f, b, np.array(region.extent[:2], np.int32))
    state, u, v = (int(n) for n in np.unravel_index(int(at), f.shape))
    cell = region.low[0] + u - 1, region.low[1] + v - 1, middle
    return int(score), cell, state


@program()
def join(f: jax.Array, b: jax.Array, extent: jax.Array):
    """(score, flat index) of the best meeting of layers (S, U, V), the second reversed.

    Cell u of the first is cell extent + 2 - u of the second. Two minus infinities would
    wrap, so only reachable cells are added.
    """
    u = jnp.arange(f.shape[1], dtype=jnp.int32)
    v = jnp.arange(f.shape[2], dtype=jnp.int32)
    b = b.at[:, extent[0] + 2 - u, :].get(mode="clip")
    b = b.at[:, :, extent[1] + 2 - v].get(mode="clip")
    inside = ((u >= 1) & (u <= extent[0] + 1))[None, :, None]
    inside = inside & ((v >= 1) & (v <= extent[1] + 1))[None, None, :]
    minus = neg_inf(f.dtype)
    reached = (f > minus // 2) & (b > minus // 2) & jnp.broadcast_to(inside, f.shape)
    total = jnp.where(reached, f + jnp.where(reached, b, 0), minus).ravel()
    at = jnp.argmax(total)
    return total[at], at
