"""Improve what is taken out of a graph so that its parts have no link across.

The search of Fiduccia and Mattheyses (1982) for separators, as graph partitioners have
it: a vertex that was taken out goes into a part, its neighbours in other parts are
taken out, the step that costs least first, and the best state on the way is kept.
"""

import numpy as np
from scipy.sparse import csr_array

PASSES = 8
STALLED = 300  # steps without a better state, after which a pass ends


def improve(part: np.ndarray, graph: csr_array, shares, random) -> np.ndarray:
    """Parts of vertices, as good or better.

    Parameters
    ----------
    part : int32 (n,)
        -1 for a vertex that is taken out; no link lies across.
    graph : csr_array (n, n)
        Both directions of every link.
    shares : removal.Shares
    random : numpy.random.Generator
        Breaks ties.
    """
    best, value = part, shares.value(part)
    for _ in range(PASSES):
        moved = _one_pass(best.copy(), graph, shares, random)
        better = shares.value(moved)
        if better <= value:
            break
        best, value = moved, better
    return best


def _one_pass(part, graph, shares, random) -> np.ndarray:
    """A pass, in which no vertex goes into a part twice."""
    room, parts = shares.room, len(shares.target)
    near = _neighbours(part, graph, parts)
    sizes = np.bincount(part[part >= 0], minlength=parts).astype(np.float64)
    entered = np.zeros(len(part), bool)
    best, value, stalled = part.copy(), shares.value(part), 0
    while stalled < STALLED:
        out = np.flatnonzero((part < 0) & ~entered)
        if not len(out):
            break
        # cost[v, p]: neighbours that leave where v goes into part p
        cost = near[out].sum(axis=1)[:, None] - near[out] + random.random((len(out), 1))
        cost[:, sizes + 1 > room] = np.inf
        at, new = np.unravel_index(np.argmin(cost), cost.shape)
        if not np.isfinite(cost[at, new]):
            break
        v = out[at]
        linked = graph.indices[graph.indptr[v] : graph.indptr[v + 1]]
        leaving = linked[(part[linked] >= 0) & (part[linked] != new)]
        for u in leaving.tolist():
            _change(u, -1, part, near, sizes, graph)
        _change(v, int(new), part, near, sizes, graph)
        entered[v] = True
        now = shares.value(part)
        stalled = 0 if now > value else stalled + 1
        if now > value:
            best, value = part.copy(), now
    return best


def _neighbours(part, graph, parts: int) -> np.ndarray:
    """Neighbours of every vertex in every part, int64 (n, parts)."""
    inside = np.zeros((len(part), parts), np.int32)
    placed = np.flatnonzero(part >= 0)
    inside[placed, part[placed]] = 1
    return (graph @ inside).astype(np.int64)


def _change(v: int, new: int, part, near, sizes, graph) -> None:
    """Put a vertex into a part, or take it out with -1."""
    linked = graph.indices[graph.indptr[v] : graph.indptr[v + 1]]
    if part[v] >= 0:
        near[linked, part[v]] -= 1
        sizes[part[v]] -= 1
    if new >= 0:
        near[linked, new] += 1
        sizes[new] += 1
    part[v] = new
