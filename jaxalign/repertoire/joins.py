"""Distances of things with several parts, from the graphs of their parts.

A receptor has chains, and a chain has a CDR3 sequence and a V gene. Where the distance
of two of them is a sum, or the largest, of their parts' distances, every part is within
the cutoff: so it is enough to look at pairs that the graph of one part links.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from jaxalign.model.selection import ranks, spans
from jaxalign.repertoire.edges import EdgeList, Edges, least

PAIRS_AT_ONCE = 2**22


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Values within the cutoff of each value, itself too, by rows.

    Attributes
    ----------
    starts : int64 (rows + 1,)
    columns : int64 (links,)
        Rising in each row.
    distance : int64 (links,)
    width : int
        How many columns there may be.
    """

    starts: np.ndarray
    columns: np.ndarray
    distance: np.ndarray
    width: int

    def look_up(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Distances int64 of pairs of values; -1 of pairs that are not linked."""
        rows = np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))
        keys, wanted = rows * self.width + self.columns, i * self.width + j
        place = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
        if not len(keys):
            return np.full(len(i), -1, np.int64)
        return np.where(keys[place] == wanted, self.distance[place], -1)


def neighbours(edges: Edges, rows: int, width: int, symmetric: bool) -> Neighbours:
    """The neighbours of values, from edges i < j (``symmetric``) or across two sets."""
    i, j, distance = (x.astype(np.int64) for x in edges.sides)
    if symmetric:
        own = np.arange(rows)
        i, j = np.concatenate([j, own, i]), np.concatenate([i, own, j])
        distance = np.concatenate([distance, np.zeros(rows, np.int64), distance])
    order = np.argsort(i * width + j, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(i, minlength=rows))])
    return Neighbours(starts, j[order], distance[order], width)


def from_square(matrix: np.ndarray, cutoff: int) -> Neighbours:
    """The neighbours of values whose distances are all known, int (rows, width)."""
    i, j = np.nonzero(matrix <= cutoff)
    edges = Edges(i, j, matrix[i, j])
    return neighbours(edges, *matrix.shape, symmetric=False)


def expanded(
    graph: Neighbours, a: np.ndarray, b: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Pairs of things whose values are linked: (i, j, distance), some at a time.

    Parameters
    ----------
    a, b : int64 (things,)
        The value of each thing of either side; -1 for none.
    """
    order = np.argsort(b, kind="stable")
    first = np.searchsorted(b[order], np.arange(graph.width))
    many = np.searchsorted(b[order], np.arange(graph.width), side="right") - first
    per_link = many[graph.columns]
    sums = np.concatenate([[0], np.cumsum(per_link)])
    pairs = np.where(a >= 0, sums[graph.starts[a + 1]] - sums[graph.starts[a]], 0)
    for start, stop in spans(pairs, PAIRS_AT_ONCE):
        things = np.flatnonzero(a[start:stop] >= 0) + start
        links = np.diff(graph.starts)[a[things]]
        i = np.repeat(things, links)
        link = np.repeat(graph.starts[a[things]], links) + ranks(links)
        size = per_link[link]
        i, link = np.repeat(i, size), np.repeat(link, size)
        j = order[first[graph.columns[link]] + ranks(size)]
        yield i, j, graph.distance[link]


def join(
    graphs: list[Neighbours],
    a: np.ndarray,
    b: np.ndarray,
    combine: str,
    cutoff: int,
    one_set: bool,
    budget: int,
) -> Edges:
    """Edges of things, from the graphs of their parts.

    Parameters
    ----------
    a, b : int64 (things, parts)
        The values of either side.
    combine : {"sum", "all", "any"}
        The distance is the sum of the parts' distances, the largest, or the least.
    one_set : bool
        Both sides are the same things: edges i < j alone.

    Raises
    ------
    MemoryPlanError
        They exceed the budget.
    """
    edges = EdgeList(budget)
    if combine == "any":
        drivers = range(len(graphs))
    else:
        drivers = [_fewest(graphs, a, b)]
    for part in drivers:
        for i, j, distance in expanded(graphs[part], a[:, part], b[:, part]):
            real = i < j if one_set else np.ones(len(i), bool)
            i, j, distance = i[real], j[real], distance[real]
            if combine != "any":
                for other in set(range(len(graphs))) - {part}:
                    more = graphs[other].look_up(a[i, other], b[j, other])
                    linked = more >= 0
                    i, j, distance = i[linked], j[linked], distance[linked]
                    more = more[linked]
                    both = distance + more, np.maximum(distance, more)
                    distance = both[combine == "all"]
            near = distance <= cutoff
            edges.add(i[near], j[near], distance[near])
    return least(edges.parts)


def _fewest(graphs: list[Neighbours], a: np.ndarray, b: np.ndarray) -> int:
    """The part whose graph links fewest things."""

    def pairs(part: int) -> int:
        graph = graphs[part]
        some = b[b[:, part] >= 0, part]
        many = np.bincount(some, minlength=graph.width)[graph.columns]
        sums = np.concatenate([[0], np.cumsum(many)])
        known = a[a[:, part] >= 0, part]
        return int((sums[graph.starts[known + 1]] - sums[graph.starts[known]]).sum())

    return min(range(len(graphs)), key=pairs)
