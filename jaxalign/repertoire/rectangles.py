"""Rectangles of pairs that may be near, and how masks of them are read."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxalign.repertoire.dp.sums import pair_sums

LANES = 32  # targets of a word of a mask
Check = Callable[[np.ndarray, np.ndarray], None]


@dataclass(frozen=True, eq=False)
class PositionSums:
    """Exact distances of a rectangle: sums over positions.

    Attributes
    ----------
    table : int32 (letters, letters)
    x, y : uint8 (queries, positions), uint8 (targets, positions)
    left : int (targets,)
        The largest sum of a near pair.
    add : function
        Takes the rows of near pairs, and their sums.
    """

    table: np.ndarray
    x: np.ndarray
    y: np.ndarray
    left: np.ndarray
    add: Callable[[np.ndarray, np.ndarray, np.ndarray], None]

    def check(self, q: np.ndarray, t: np.ndarray) -> None:
        """Add those of some pairs that are near."""
        sums = pair_sums(self.table, self.x, self.y, q, t)
        near = sums <= self.left[t]
        self.add(q[near], t[near], sums[near])


@dataclass(frozen=True, eq=False)
class EditDistances:
    """Edit distances of a rectangle, for a GPU that computes them itself.

    Attributes
    ----------
    x, y : uint8 (queries, letters), uint8 (targets, letters)
    left : int (targets,)
        The largest distance of a near pair.
    add : function
        Takes the rows of near pairs, and their distances.
    """

    x: np.ndarray
    y: np.ndarray
    left: np.ndarray
    add: Callable[[np.ndarray, np.ndarray, np.ndarray], None]


@dataclass(frozen=True, eq=False)
class Rectangle:
    """Some rows against others.

    Attributes
    ----------
    queries, targets : uint32 (words, rows)
    limits : int32 (targets,)
        How many bits a query may differ in.
    triangle : bool
        Both sides are the same rows, and a target follows its query.
    check : function
        Takes the rows of pairs that may be near.
    sums : PositionSums or None
        Where distances are these: a GPU computes them itself.
    edits : EditDistances or None
        The same of edit distances.
    """

    queries: np.ndarray
    targets: np.ndarray
    limits: np.ndarray
    triangle: bool
    check: Check
    sums: PositionSums | None = None
    edits: EditDistances | None = None

    @property
    def pairs(self) -> int:
        return self.queries.shape[1] * self.targets.shape[1]


@dataclass(frozen=True)
class Machine:
    """Host threads, bytes and devices that a job may use; none is JAX's default one."""

    threads: int
    budget: int
    devices: tuple[Any, ...] = ()


def check_mask(one: Rectangle, mask: np.ndarray, first: int, at: int) -> None:
    """Check the pairs of a mask whose first query and target are these."""
    q, t = pairs_of(mask)
    q, t = q + first, t + at
    real = q < one.queries.shape[1]
    if one.triangle:
        real &= t > q
    one.check(q[real], t[real])


def padded(rows: np.ndarray, count: int, value: int = 0) -> np.ndarray:
    """Rows (n, m) with as many columns as wanted."""
    more = count - rows.shape[1]
    return np.pad(rows, ((0, 0), (0, more)), constant_values=value) if more else rows


def pairs_of(mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(queries, targets) of the bits of a mask, uint32 (queries, groups)."""
    groups = mask.shape[1]
    flat = mask.reshape(-1)
    place = np.flatnonzero(flat)
    octets = flat[place].astype("<u4").view(np.uint8).reshape(-1, 4)
    which, lane = np.nonzero(np.unpackbits(octets, axis=1, bitorder="little"))
    query, group = np.divmod(place[which], groups)
    return query, lane * groups + group
