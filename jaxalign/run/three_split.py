"""Divide and conquer for three sequences: a path in the memory of a few planes.

Hirschberg's division for triples (Huang 1993, "Alignment of three sequences in
quadratic space"): the longest sequence is cut in the middle, the first half is filled
forwards, the second backwards, and where and in which state the two meet is where
their sum is greatest. Parts that fit the budget are stored and walked.
"""

from dataclasses import replace

import numpy as np

from jaxalign.run.three import (
    Part,
    Triple,
    relabelled,
    store_bytes,
    stored,
    sweep,
    turned,
)


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
    return score, turned(columns, np.argsort(order).tolist()).astype(np.uint8)


def meet(triple: Triple, part: Part):
    """(score, cell, state) of a best path where it first reaches the middle of axis c.

    F_p(i, j) is the best path from the start to (i, j, middle) in state p, B_p(i, j)
    the best way on from there; any p, i, j that maximises the sum lies on a best path.
    """
    middle = (part.low[2] + part.high[2]) // 2
    upper = replace(part, high=(*part.high[:2], middle), end=None)
    lower = replace(part, low=(*part.low[:2], middle))
    rows, columns = part.extent[0] + 2, part.extent[1] + 2
    f = sweep(triple, upper, layer=True).layer
    b = sweep(triple, lower, reverse=True, layer=True).layer
    total = f[:, 1:rows, 1:columns] + b[:, rows - 1 : 0 : -1, columns - 1 : 0 : -1]
    best = int(total.argmax())
    state, i, j = np.unravel_index(best, total.shape)
    score = int(total[state, i, j])
    return score, (part.low[0] + int(i), part.low[1] + int(j), middle), int(state)
