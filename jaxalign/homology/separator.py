"""Improve what is taken out of a graph so that its parts have no link across.

The search of Fiduccia and Mattheyses (1982) for separators, as graph partitioners have
it: a vertex that was taken out goes into a part, its neighbours in other parts are
taken out, the step that costs least first, and the best state on the way is kept.
"""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

SLACK = 1 / 3  # of its share, that a part may have more or less
PASSES = 8
STALLED = 300  # steps without a better state, after which a pass ends


@dataclass(frozen=True, eq=False)
class Shares:
    """The shares that parts should have of the members that are divided.

    Attributes
    ----------
    target : float64 (parts,)
        Of all sequences, those that are not divided here too.
    rest : int
        Sequences that will be put beside them, in any part.
    weight : int64 (n,) or None
        What every member counts, where they do not count the same.
    """

    target: np.ndarray
    rest: int
    weight: np.ndarray | None = None

    @property
    def room(self) -> np.ndarray:
        """Members of a part at most, (parts,)."""
        return most_members(self.target)

    def room_beside(self, count: int) -> np.ndarray:
        """Of ``count`` members those of a part at most, (parts,), where every other
        part is to have as many as it should."""
        least = np.maximum(self.least, 1)
        return np.clip(count - (least.sum() - least), 1, self.room)

    @property
    def least(self) -> np.ndarray:
        """Members that a part should have, (parts,), with those of the rest."""
        return np.floor(self.target * (1 - SLACK))

    def value(self, part: np.ndarray) -> float:
        """Members kept, by their weight, less those for which a part has no room, and
        those that parts lack and the rest cannot fill in; a part that stays empty is
        worst."""
        inside = part >= 0
        sizes = np.bincount(part[inside], minlength=len(self.target))
        lacking = np.maximum(self.least - sizes, 0).sum()
        empty = max((sizes == 0).sum() - self.rest, 0) * len(part)
        over = np.maximum(sizes - self.room, 0).sum()
        loss = float(over + max(lacking - self.rest, 0) + empty)
        if self.weight is None:
            return float(sizes.sum()) - loss
        return float(self.weight[inside].sum()) - loss * float(self.weight.max())

    def imbalance(self, part: np.ndarray) -> float:
        """How far sizes are from shares: less is better of two that keep as many."""
        sizes = np.bincount(part[part >= 0], minlength=len(self.target))
        return float(np.abs(sizes - self.target).sum())


def most_members(target: np.ndarray) -> np.ndarray:
    """Members of a part at most, (parts,), that should have ``target`` of all."""
    return np.maximum(np.ceil(target * (1 + SLACK)), 1)


def improve(
    part: np.ndarray, graph: csr_array, shares: Shares, random: np.random.Generator
) -> np.ndarray:
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


def _one_pass(
    part: np.ndarray, graph: csr_array, shares: Shares, random: np.random.Generator
) -> np.ndarray:
    """A pass, in which no vertex goes into a part twice."""
    room, parts = shares.room, len(shares.target)
    near, weight = neighbours(part, graph, parts, shares.weight), shares.weight
    sizes = np.bincount(part[part >= 0], minlength=parts).astype(np.float64)
    entered = np.zeros(len(part), bool)
    best, value, stalled = part.copy(), shares.value(part), 0
    while stalled < STALLED:
        out = np.flatnonzero((part < 0) & ~entered)
        if not len(out):
            break
        # cost[v, p]: neighbours that leave where v goes into part p
        leaving = near[out].sum(axis=1)[:, None] - near[out]
        cost = leaving + random.random((len(out), 1))
        if weight is not None:  # who costs nothing comes first
            cost -= weight[out][:, None] + (leaving == 0) * float(weight.sum())
        cost[:, sizes + 1 > room] = np.inf
        at, new = np.unravel_index(np.argmin(cost), cost.shape)
        if not np.isfinite(cost[at, new]):
            break
        v = out[at]
        linked = graph.indices[graph.indptr[v] : graph.indptr[v + 1]]
        across = linked[(part[linked] >= 0) & (part[linked] != new)]
        for u in across.tolist():
            change(u, -1, part, near, sizes, graph, weight)
        change(v, int(new), part, near, sizes, graph, weight)
        entered[v] = True
        now = shares.value(part)
        stalled = 0 if now > value else stalled + 1
        if now > value:
            best, value = part.copy(), now
    return best


def neighbours(
    part: np.ndarray, graph: csr_array, parts: int, weight: np.ndarray | None
) -> np.ndarray:
    """Neighbours of every vertex in every part, by their weight, int64 (n, parts)."""
    inside = np.zeros((len(part), parts), np.int64)
    placed = np.flatnonzero(part >= 0)
    inside[placed, part[placed]] = 1 if weight is None else weight[placed]
    return (graph @ inside).astype(np.int64)


def change(
    v: int,
    new: int,
    part: np.ndarray,
    near: np.ndarray,
    sizes: np.ndarray,
    graph: csr_array,
    weight: np.ndarray | None,
) -> None:
    """Put a vertex into a part, or take it out with -1."""
    linked = graph.indices[graph.indptr[v] : graph.indptr[v + 1]]
    counted = 1 if weight is None else int(weight[v])
    if part[v] >= 0:
        near[linked, part[v]] -= counted
        sizes[part[v]] -= 1
    if new >= 0:
        near[linked, new] += counted
        sizes[new] += 1
    part[v] = new
