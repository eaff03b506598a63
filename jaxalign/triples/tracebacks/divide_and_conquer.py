"""Divide and conquer for three sequences: a path in the memory of a few planes.

Hirschberg's division for triples (Huang 1993, "Alignment of three sequences in
quadratic space"): the longest sequence is cut in the middle, the first half is filled
forwards, the second backwards, and where and in which state the two meet is where
their sum is greatest. Parts that fit the budget are stored and walked.
"""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

from jaxalign.affine import neg_inf
from jaxalign.triples.dp.recurrence import relabelled, turned
from jaxalign.triples.engine import Part, Triple, store_bytes, stored, sweep


def aligned(triple: Triple, part: Part, budget: int) -> tuple[int, np.ndarray]:
    """(score, columns from start to end) of a best path through a part.

    ``budget`` bounds the bytes of one stored part; 0 divides to the end.
    """
    order = tuple(np.argsort(part.extent, kind="stable").tolist())
    if order != (0, 1, 2):
        return _reordered(triple, part, budget, order)
    if part.extent[2] < 2 or store_bytes(triple, part) <= budget:
        return stored(triple, part)
    with triple.timed("split"):
        score, *middle = meet(triple, part)
    _, first = aligned(triple, replace(part, high=middle[0], end=middle[1]), budget)
    _, rest = aligned(triple, replace(part, low=middle[0], start=middle[1]), budget)
    return score, np.concatenate([first, rest])


def _reordered(triple, part, budget, order):
    """The longest axis last: states and columns are those of the new order."""
    same = relabelled(triple.model, order)
    part = Part(
        tuple(part.low[n] for n in order),
        tuple(part.high[n] for n in order),
        same[part.start],
        None if part.end is None else same[part.end],
    )
    score, columns = aligned(triple.reordered(order), part, budget)
    back = turned(columns, np.argsort(order).tolist())
    return score, np.asarray(back, np.uint8)


def meet(triple: Triple, part: Part):
    """(score, cell, state) of a best path where it first reaches the middle of axis c.

    F_p(i, j) is the best path from the start to (i, j, middle) in state p, B_p(i, j)
    the best way on from there; any p, i, j that maximises the sum lies on a best path.
    """
    middle = (part.low[2] + part.high[2]) // 2
    upper = replace(part, high=(*part.high[:2], middle), end=None)
    lower = replace(part, low=(*part.low[:2], middle))
    f = sweep(triple, upper, layer=True).layer
    b = sweep(triple, lower, reverse=True, layer=True).layer
    assert f is not None and b is not None  # asked for
    score, at = joined(f, b, np.array(part.extent[:2], np.int32))
    state, u, v = (int(n) for n in np.unravel_index(int(at), f.shape))
    cell = part.low[0] + u - 1, part.low[1] + v - 1, middle
    return int(score), cell, state


@jax.jit
def joined(f, b, extent):
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
