"""Divide a set so that parts have their shares of every label too.

Pieces along the strongest links are put into parts as whole groups are, by labels too;
then an end of every link across goes, and a search moves the borders. It weighs what is
kept against the surplus of labels, less and less of it. What is left falls into pieces,
which are put into parts once more. Several sizes of pieces and orders are tried; the
division that keeps most, less its distance from the shares of labels, is taken.
"""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from jaxalign.homology import removal
from jaxalign.homology.assignment import assign, tally, wanted
from jaxalign.homology.links import Links, components
from jaxalign.homology.separator import change, neighbours

PIECES = (1.0, 1.3, 1.6, 2.0, 3.0, 5.0)  # of a part, at most
ORDERS, VERTICES, FEWEST = 6, 25_000, 2  # tried a size: at most; in all vertices; least
SURPLUS = (1.0, 0.5, 0.25)  # what a sequence too many of a label counts, in turn
DEVIATION = 0.5  # what (sequences - share)^2 / share of a part and label counts
PASSES, STALLED = 12, 300  # of the search; steps without a better state
OVER = 1.1  # a part may have a tenth more than its share
ROUNDS = 10


@dataclass(frozen=True, eq=False)
class Balance:
    """Parts that are asked for, by labels.

    Attributes
    ----------
    ratios : float64 (parts,)
    labels : int32 (n,)
    weight : int64 (n,) or None
    """

    ratios: np.ndarray
    labels: np.ndarray
    weight: np.ndarray | None

    @property
    def target(self) -> np.ndarray:
        """Sequences of every part and label, float64 (parts, labels)."""
        return self.ratios[:, None] * np.bincount(self.labels)

    @property
    def room(self) -> np.ndarray:
        return np.maximum(np.ceil(self.ratios * len(self.labels) * OVER), 1)

    def value(self, part: np.ndarray) -> float:
        """Sequences that stay, less how far labels are from their shares of these."""
        counts = self.counts(part)
        shares = self.ratios[:, None] * counts.sum(axis=0)
        away = float(((counts - shares) ** 2 / np.maximum(shares, 0.5)).sum())
        empty = int((counts.sum(axis=1) == 0).sum()) * len(part)
        return self.kept(part) - DEVIATION * away - empty

    def kept(self, part: np.ndarray) -> float:
        inside = part >= 0
        return float(inside.sum() if self.weight is None else self.weight[inside].sum())

    def counts(self, part: np.ndarray) -> np.ndarray:
        """Sequences of every part and label, float64 (parts, labels)."""
        counts, inside = np.zeros_like(self.target), part >= 0
        np.add.at(counts, (part[inside], self.labels[inside]), 1)
        return counts


def divide(links: Links, balance: Balance, seed: int) -> np.ndarray:
    """A part for every sequence, int32 (n,), -1 for what is taken out."""
    count = len(balance.labels)
    graph = removal.graph_of(count, links)
    orders = min(ORDERS, max(FEWEST, VERTICES // max(count, 1)))
    best, highest = np.full(count, -1, np.int32), -np.inf
    for pieces in PIECES:
        limit = max(count / len(balance.ratios) / pieces, 1)
        groups, _ = removal.along_links(count, links, limit)
        groups = np.unique(groups, return_inverse=True)[1].astype(np.int32)
        for order in range(orders):
            random = np.random.default_rng((seed, order))
            part = _start(groups, graph, balance, (seed, order), random)
            for surplus in SURPLUS:
                part = _improve(part, graph, balance, surplus, random)
                again = _placed_again(part, links, graph, balance, seed)
                value = balance.value(again)
                if value > highest:
                    best, highest = again, value
    return best


def _start(
    groups: np.ndarray,
    graph: csr_array,
    balance: Balance,
    seed: tuple[int, int],
    random: np.random.Generator,
) -> np.ndarray:
    """Groups in parts, by labels, without a link across."""
    tallies = tally(groups, balance.labels)
    chosen, _ = assign(tallies, wanted(balance.ratios, tallies), seed)
    part, room = chosen[groups].astype(np.int32), balance.room
    part = removal.move_to_neighbours(part, graph, room, ROUNDS, random)
    part = removal.cover(part, graph, len(room), balance.weight)
    return removal.come_back(part, graph, room, balance.weight)


def _placed_again(
    part: np.ndarray, links: Links, graph: csr_array, balance: Balance, seed: int
) -> np.ndarray:
    """The pieces of what is kept, put into parts once more; then what has links into
    one part at most comes back."""
    inside = part >= 0
    among = inside[links.i] & inside[links.j]
    pieces = components(len(part), [(links.i[among], links.j[among])])
    pieces = np.unique(pieces[inside], return_inverse=True)[1].astype(np.int32)
    tallies = np.zeros((int(pieces.max(initial=-1)) + 1, balance.target.shape[1] + 1))
    counts = tally(pieces, balance.labels[inside])
    tallies[:, : counts.shape[1]] = counts
    chosen, _ = assign(tallies, wanted(balance.ratios, tallies), seed)
    again = part.copy()
    again[inside] = chosen[pieces]
    again = again if balance.value(again) >= balance.value(part) else part
    back = removal.come_back(again, graph, balance.room, balance.weight)
    return back if balance.value(back) >= balance.value(again) else again


def _improve(
    part: np.ndarray,
    graph: csr_array,
    balance: Balance,
    surplus: float,
    random: np.random.Generator,
) -> np.ndarray:
    """Parts as good or better: what is kept less ``surplus`` for each too many."""
    best, value = part, -np.inf
    for _ in range(PASSES):
        moved, better = _one_pass(best.copy(), graph, balance, surplus, random)
        if better <= value:
            break
        best, value = moved, better
    return best


def _one_pass(
    part: np.ndarray,
    graph: csr_array,
    balance: Balance,
    surplus: float,
    random: np.random.Generator,
) -> tuple[np.ndarray, float]:
    """A pass, in which no vertex goes into a part twice: (the best state, its value).

    What is out goes into a part, and its neighbours elsewhere go out: that which costs
    least first.
    """
    labels, weight, target = balance.labels, balance.weight, balance.target
    near = neighbours(part, graph, len(target), weight)
    counts, sizes = balance.counts(part), np.zeros(len(target))
    total, entered = balance.kept(part), np.zeros(len(part), bool)

    def value() -> float:
        return total - surplus * float(np.maximum(counts - target, 0).sum())

    best, highest, stalled = part.copy(), value(), 0
    while stalled < STALLED:
        out = np.flatnonzero((part < 0) & ~entered)
        if not len(out):
            break
        cost = near[out].sum(axis=1)[:, None] - near[out] + random.random((len(out), 1))
        cost = cost + surplus * (counts >= target).T[labels[out]]
        if weight is not None:
            cost = cost - weight[out][:, None]
        at, new = np.unravel_index(np.argmin(cost), cost.shape)
        v = int(out[at])
        linked = graph.indices[graph.indptr[v] : graph.indptr[v + 1]]
        across = linked[(part[linked] >= 0) & (part[linked] != new)]
        for u in across.tolist():
            counts[part[u], labels[u]] -= 1
            total -= 1 if weight is None else int(weight[u])
            change(u, -1, part, near, sizes, graph, weight)
        change(v, int(new), part, near, sizes, graph, weight)
        counts[new, labels[v]] += 1
        total += 1 if weight is None else int(weight[v])
        entered[v], now = True, value()
        stalled = 0 if now > highest else stalled + 1
        if now > highest:
            best, highest = part.copy(), now
    return best, highest
