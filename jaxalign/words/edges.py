"""Edges of a graph: pairs of sequences and their distances, sorted by several threads.

An edge is one number of 64 bits: to sort these is many times faster than ``lexsort``.
Each thread sorts a part, then a range of all.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import Any

import numpy as np

from jaxalign.errors import MemoryPlanError
from jaxalign.model.alphabet import begins
from jaxalign.model.show import brief
from jaxalign.runtime.pipeline import in_threads

BITS = 64
RANGES = 4  # of a thread
SAMPLE = 2**12  # numbers that ranges are cut by, of each part at most
EDGE_BYTES = 12  # two numbers of sequences, a distance
WORK_COPIES = 5  # of the edges, while a matrix is made of them


def bits_of(largest: int) -> int:
    """Count the bits of numbers up to the largest."""
    return max(int(largest), 0).bit_length()


def packed(columns: tuple[np.ndarray, ...], bits: tuple[int, ...]) -> np.ndarray:
    """Rows of columns as numbers, the first column highest: uint64 (rows,)."""
    keys = columns[0].astype(np.uint64)
    for column, width in zip(columns[1:], bits[1:], strict=True):
        keys <<= np.uint64(width)
        keys |= column.astype(np.uint64)
    return keys


def in_order(parts: list[np.ndarray], unit: int, threads: int) -> list[np.ndarray]:
    """Sort the numbers of all arrays into consecutive sorted arrays.

    The arrays are sorted in place.

    parts : list of uint64 (n,)
    unit : numbers that differ in so many of their last bits alone are in one array.
    """
    in_threads(np.ndarray.sort, parts, threads)
    if threads == 1 and len(parts) == 1:
        return parts
    # Numbers that cut all into ranges of like sizes
    count = RANGES * threads if threads > 1 else 1
    pieces = [part[:: max(len(part) // SAMPLE, 1)] for part in parts]
    sample = np.sort(np.concatenate([np.zeros(0, np.uint64), *pieces]))
    bounds = (
        sample[np.arange(1, count) * len(sample) // count] if len(sample) else sample
    )
    bounds = np.unique(bounds >> np.uint64(unit) << np.uint64(unit))
    cuts = [[0, *np.searchsorted(part, bounds).tolist(), len(part)] for part in parts]

    def sorted_range(k: int) -> np.ndarray:
        pieces = [x[cut[k] : cut[k + 1]] for x, cut in zip(parts, cuts, strict=True)]
        numbers = np.concatenate([np.zeros(0, np.uint64), *pieces])
        numbers.sort()
        return numbers

    return in_threads(sorted_range, range(len(bounds) + 1), threads)


def write_all(
    ranges: list[np.ndarray], write: Callable[[slice, np.ndarray], None], threads: int
) -> None:
    """Call ``write`` for each array with its place among all numbers."""
    ends = np.cumsum([len(x) for x in ranges]).tolist()

    def write_range(k: int) -> None:
        write(slice(ends[k] - len(ranges[k]), ends[k]), ranges[k])

    in_threads(write_range, range(len(ranges)), threads)


def unpacked(keys: np.ndarray, bits: tuple[int, ...]) -> list[np.ndarray]:
    """The columns of ``packed`` again, int32 each."""
    columns, shift = [], 0
    for width in reversed(bits):
        mask = np.uint64(2**width - 1)
        columns.append(((keys >> np.uint64(shift)) & mask).astype(np.int32))
        shift += width
    return columns[::-1]


def pack_all(
    parts: list[tuple[np.ndarray, ...]], bits: tuple[int, ...], threads: int
) -> list[np.ndarray]:
    """``packed`` of each part."""
    return in_threads(partial(packed, bits=bits), parts, threads)


@dataclass(frozen=True, eq=False)
class EdgeSet:
    """Pairs (i, j) and their distances, int32 (edges,) each."""

    i: np.ndarray
    j: np.ndarray
    distance: np.ndarray

    __repr__ = brief

    def __len__(self) -> int:
        return len(self.i)

    @property
    def sides(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.i, self.j, self.distance


def no_edges() -> EdgeSet:
    """An empty set of edges."""
    return EdgeSet(*(np.zeros(0, np.int32) for _ in range(3)))


def least(parts: list[EdgeSet], threads: int = 1) -> EdgeSet:
    """Merge edges, sorted by i and j; a pair keeps its least distance."""
    largest = in_threads(
        lambda x: [int(side.max(initial=0)) for side in x.sides], parts, threads
    )
    bits = tuple(bits_of(max(x)) for x in zip([0] * 3, *largest, strict=True))
    if sum(bits) > BITS:
        sides = zip(no_edges().sides, *(x.sides for x in parts), strict=True)
        i, j, distance = (np.concatenate(side) for side in sides)
        order = np.lexsort((distance, j, i))
        i, j, distance = (x[order] for x in (i, j, distance))
        first = begins(i, j)
        return EdgeSet(i[first], j[first], distance[first])
    keys = pack_all([x.sides for x in parts], bits, threads)
    low = bits[2]
    ranges = in_threads(
        lambda x: x[begins(x >> np.uint64(low))], in_order(keys, low, threads), threads
    )
    count = sum(map(len, ranges))
    edges = EdgeSet(*(np.empty(count, np.int32) for _ in range(3)))

    def write(place: slice, numbers: np.ndarray) -> None:
        for side, column in zip(edges.sides, unpacked(numbers, bits), strict=True):
            side[place] = column

    write_all(ranges, write, threads)
    return edges


@dataclass(eq=False)
class EdgeList:
    """Edges that threads find, as far as a budget of bytes allows.

    ``limit`` is the word for the largest distance, and ``advice`` follows in the error.
    """

    budget: int
    limit: str
    advice: str = ""
    parts: list[EdgeSet] = field(default_factory=list)
    count: int = 0
    lock: Any = field(default_factory=Lock)

    def add(self, i: np.ndarray, j: np.ndarray, distance: np.ndarray) -> None:
        """Add edges."""
        edges = EdgeSet(*(x.astype(np.int32) for x in (i, j, distance)))
        with self.lock:
            self.parts.append(edges)
            self.count += len(i)
            if self.count * EDGE_BYTES * WORK_COPIES > self.budget:
                raise MemoryPlanError(
                    f"{self.count:,} pairs so far are within the {self.limit}: "
                    f"they exceed the memory budget of {self.budget:,} "
                    f"bytes; raise the budget, or lower the {self.limit}{self.advice}"
                )
