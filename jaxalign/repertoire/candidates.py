"""Pairs whose words differ in few bits: tile by tile, on any device."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from jaxalign.repertoire.dp.sums import pair_sums
from jaxalign.runtime.devices import first_device
from jaxalign.runtime.pipeline import in_threads

LANES = 32  # targets of a word of a mask
MAX_LISTED = 2**15  # pairs of a rectangle that are listed rather than looked for
# Pairs of a job whose sums take less time than JAX to start.
MAX_WITHOUT_JAX = 2**21

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
    """

    queries: np.ndarray
    targets: np.ndarray
    limits: np.ndarray
    triangle: bool
    check: Check
    sums: PositionSums | None = None

    @property
    def pairs(self) -> int:
        return self.queries.shape[1] * self.targets.shape[1]


@dataclass(frozen=True)
class Machine:
    """Host threads, bytes and devices that a job may use; none is JAX's default one."""

    threads: int
    budget: int
    devices: tuple[Any, ...] = ()


@dataclass(frozen=True)
class TileSize:
    """Queries and targets that are compared by one call."""

    queries: int
    targets: int


CPU_TILE = TileSize(512, 2**13)  # a mask stays in the cache of a core


def check_all(
    rectangles: list[Rectangle], threads: int, devices: tuple[Any, ...] = ()
) -> None:
    """Have every pair that may be near checked, rectangle by rectangle."""
    rectangles = [one for one in rectangles if one.pairs]
    if sum(one.pairs for one in rectangles) <= MAX_WITHOUT_JAX:
        for one in rectangles:
            check_listed(one)
        return
    in_threads(lambda piece: piece(), _pieces(rectangles, devices), threads)


def _pieces(rectangles, devices: tuple[Any, ...]) -> Iterator[Callable[[], None]]:
    """Functions that check a part of a rectangle each."""
    devices = devices or (first_device(),)
    for one in rectangles:
        if one.pairs <= MAX_LISTED:
            yield partial(check_listed, one)
        elif on_host(devices[0]):
            for first in range(0, one.queries.shape[1], CPU_TILE.queries):
                yield partial(_check_row, one, first, CPU_TILE)
        else:
            from jaxalign.repertoire import on_device

            yield from on_device.pieces(one, devices)


def on_host(device: Any) -> bool:
    """Whether masks of a device are looked at by the host."""
    return device.platform == "cpu"


def check_listed(one: Rectangle) -> None:
    """Check all pairs of a rectangle."""
    q, t = np.divmod(np.arange(one.pairs), one.targets.shape[1])
    if one.triangle:
        q, t = q[t > q], t[t > q]
    one.check(q, t)


def _check_row(one: Rectangle, first: int, size: TileSize) -> None:
    """Check a tile of queries against all targets."""
    queries = padded(one.queries[:, first : first + size.queries], size.queries)
    begin = first // size.targets * size.targets if one.triangle else 0
    for at in range(begin, one.targets.shape[1], size.targets):
        some = slice(at, at + size.targets)
        targets = padded(one.targets[:, some], size.targets)
        limits = padded(one.limits[some][None], size.targets, -1)
        shape = LANES, size.targets // LANES
        mask = _near_words()(
            queries, targets.reshape(-1, *shape), limits.reshape(shape)
        )
        check_mask(one, np.asarray(mask), first, at)


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


@cache
def _near_words() -> Any:
    """The compiled program; JAX is imported by who needs it."""
    from jaxalign.repertoire.dp.packed import near_words
    from jaxalign.runtime.programs import program

    return program()(near_words)
