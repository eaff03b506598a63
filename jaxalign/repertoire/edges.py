"""Edges of a graph: pairs of sequences and their distances, sorted."""

from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import numpy as np

from jaxalign.errors import MemoryPlanError
from jaxalign.model.selection import begins
from jaxalign.repertoire.ordering import (
    BITS,
    bits_of,
    in_order,
    pack_all,
    unpacked,
    write_all,
)
from jaxalign.runtime.pipeline import in_threads

EDGE_BYTES = 12  # two numbers of sequences, a distance
WORK_COPIES = 5  # of the edges, while a matrix is made of them


@dataclass(frozen=True, eq=False)
class Edges:
    """Pairs (i, j) and their distances, int32 (edges,) each."""

    i: np.ndarray
    j: np.ndarray
    distance: np.ndarray

    def __len__(self) -> int:
        return len(self.i)

    @property
    def sides(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.i, self.j, self.distance


def no_edges() -> Edges:
    """An empty set of edges."""
    return Edges(*(np.zeros(0, np.int32) for _ in range(3)))


def joined(parts: list[Edges]) -> Edges:
    """All edges of some sets, one after the other."""
    sides = zip(no_edges().sides, *(x.sides for x in parts), strict=True)
    return Edges(*(np.concatenate(side) for side in sides))


def least(parts: list[Edges], threads: int = 1) -> Edges:
    """All edges of some sets by i and j, of those of one pair the one with the least
    distance."""
    bits = _bits_of_sides(parts, threads)
    if sum(bits) > BITS:
        return _least_of_many(joined(parts))
    keys = pack_all([x.sides for x in parts], bits, threads)
    low = bits[2]
    ranges = in_threads(
        lambda x: x[begins(x >> np.uint64(low))], in_order(keys, low, threads), threads
    )
    count = sum(map(len, ranges))
    edges = Edges(*(np.empty(count, np.int32) for _ in range(3)))

    def write(place: slice, some: np.ndarray) -> None:
        for side, column in zip(edges.sides, unpacked(some, bits), strict=True):
            side[place] = column

    write_all(ranges, write, threads)
    return edges


def _bits_of_sides(parts: list[Edges], threads: int) -> tuple[int, int, int]:
    """How many bits hold the numbers of each side."""
    largest = in_threads(
        lambda x: [int(side.max(initial=0)) for side in x.sides], parts, threads
    )
    i, j, distance = (bits_of(max(x)) for x in zip([0] * 3, *largest, strict=True))
    return i, j, distance


def _least_of_many(edges: Edges) -> Edges:
    order = np.lexsort((edges.distance, edges.j, edges.i))
    i, j, distance = (x[order] for x in edges.sides)
    first = begins(i, j)
    return Edges(i[first], j[first], distance[first])


@dataclass(eq=False)
class EdgeList:
    """Edges that threads find, as far as a budget of bytes allows."""

    budget: int
    parts: list[Edges] = field(default_factory=list)
    count: int = 0
    lock: Any = field(default_factory=Lock)

    def add(self, i: np.ndarray, j: np.ndarray, distance: np.ndarray) -> None:
        """Add some.

        Raises
        ------
        MemoryPlanError
            They exceed the budget.
        """
        with self.lock:
            self.parts.append(Edges(*(x.astype(np.int32) for x in (i, j, distance))))
            self.count += len(i)
            if self.count * EDGE_BYTES * WORK_COPIES > self.budget:
                raise MemoryPlanError(
                    f"{self.count:,} pairs, and more to come, are within the cutoff: "
                    f"they exceed the memory budget of {self.budget:,} bytes; a lower "
                    "cutoff has fewer, and stream_repertoire needs memory for a block "
                    "of rows alone"
                )
