"""The traceback ``split``, divide and conquer: a path in the memory of a few planes.

Hirschberg's division for triples (Huang 1993, "Alignment of three sequences in
quadratic space"): the longest sequence is cut in the middle, the first half is filled
forwards, the second backwards, and where and in which state the two meet is where
their sum is greatest. Parts that fit the budget go to ``stored_box``.
"""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

from jaxalign.affine import neg_inf
from jaxalign.runtime.programs import program
from jaxalign.triples.dp.recurrence import relabel, turn
from jaxalign.triples.engine import sweep
from jaxalign.triples.result import Region, Triple
from jaxalign.triples.tracebacks import stored_box


def align(triple: Triple, region: Region, budget: int) -> tuple[int, np.ndarray]:
    """(score, columns from start to end) of a best path through a region.

    ``budget`` bounds the bytes of one stored region; 0 divides to the end.
    """
    order = tuple(np.argsort(region.extent, kind="stable").tolist())
    if order != (0, 1, 2):
        return _reordered(triple, region, budget, order)
    if region.extent[2] < 2 or stored_box.device_bytes(triple, region) <= budget:
        return stored_box.align(triple, region)
    with triple.tally.timed("split"):
        score, *middle = meet(triple, region)
    _, first = align(triple, replace(region, high=middle[0], end=middle[1]), budget)
    _, tail = align(triple, replace(region, low=middle[0], start=middle[1]), budget)
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
    score, columns = align(triple.reordered(order), region, budget)
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
