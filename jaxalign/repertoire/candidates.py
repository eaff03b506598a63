"""Pairs whose words differ in few bits: tile by tile, on any device."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from jaxalign.runtime.pipeline import in_threads

LANES = 32  # targets of a word of a mask
MAX_LISTED = 2**15  # pairs of a rectangle that are listed rather than looked for
# Pairs of a job whose sums take less time than JAX to start.
MAX_WITHOUT_JAX = 2**21

Check = Callable[[np.ndarray, np.ndarray], None]


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
    """

    queries: np.ndarray
    targets: np.ndarray
    limits: np.ndarray
    triangle: bool
    check: Check

    @property
    def pairs(self) -> int:
        return self.queries.shape[1] * self.targets.shape[1]


@dataclass(frozen=True)
class TileSize:
    """Queries and targets that are compared by one call."""

    queries: int
    targets: int


# A mask stays in the cache of a core; a GPU has a thread for each of its words.
CPU_TILE, GPU_TILE = TileSize(512, 2**13), TileSize(2**12, 2**17)


def check_all(rectangles: list[Rectangle], threads: int) -> None:
    """Have every pair that may be near checked, rectangle by rectangle."""
    rectangles = [one for one in rectangles if one.pairs]
    small = sum(one.pairs for one in rectangles) <= MAX_WITHOUT_JAX
    pieces = [piece for one in rectangles for piece in _pieces(one, small)]
    in_threads(lambda piece: piece(), pieces, threads)


def _pieces(one: Rectangle, small: bool) -> Iterator[Callable[[], None]]:
    """Functions that check some rows of a rectangle each."""
    if small or one.pairs <= MAX_LISTED:
        yield lambda: _check_listed(one)
        return
    size = _tile_size()
    for first in range(0, one.queries.shape[1], size.queries):
        yield lambda first=first: _check_row(one, first, size)


def _check_listed(one: Rectangle) -> None:
    q, t = np.divmod(np.arange(one.pairs), one.targets.shape[1])
    if one.triangle:
        q, t = q[t > q], t[t > q]
    one.check(q, t)


def _check_row(one: Rectangle, first: int, size: TileSize) -> None:
    """Check a tile of queries against all targets."""
    queries = _padded(one.queries[:, first : first + size.queries], size.queries)
    begin = first // size.targets * size.targets if one.triangle else 0
    for at in range(begin, one.targets.shape[1], size.targets):
        some = slice(at, at + size.targets)
        targets = _padded(one.targets[:, some], size.targets)
        limits = _padded(one.limits[some][None], size.targets, -1)
        shape = LANES, size.targets // LANES
        mask = _near_words()(
            queries, targets.reshape(-1, *shape), limits.reshape(shape)
        )
        q, t = pairs_of(np.asarray(mask))
        q, t = q + first, t + at
        real = q < one.queries.shape[1]
        if one.triangle:
            real &= t > q
        one.check(q[real], t[real])


def _padded(rows: np.ndarray, count: int, value: int = 0) -> np.ndarray:
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


def _tile_size() -> TileSize:
    from jaxalign.runtime.devices import first_device

    return CPU_TILE if first_device().platform == "cpu" else GPU_TILE
