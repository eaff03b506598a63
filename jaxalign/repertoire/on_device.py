"""Rectangles on a GPU: masks, lists and sums stay there, and near pairs come back.

A tile of targets is put on the device once, and meets all queries. Where a tile has
more pairs than there is room for, its queries are halved; the host looks at the
smallest.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from jaxalign.repertoire.rectangles import (
    LANES,
    Rectangle,
    check_mask,
    padded,
)

POSITIONS = 8  # letters are padded to a multiple: few programs


@dataclass(frozen=True)
class DeviceTile:
    """Queries and targets of a call, and the room for pairs of them."""

    queries: int
    targets: int
    words: int
    pairs: int
    results: int
    least: int

    @property
    def room(self) -> tuple[int, int, int]:
        return self.words, self.pairs, self.results


GPU_TILE = DeviceTile(2**12, 2**17, 2**20, 2**20, 2**19, 2**7)


def pieces(one: Rectangle, devices: tuple[Any, ...]) -> Iterator[Callable[[], None]]:
    """Functions that check a tile of targets each, on the devices in turn."""
    size = GPU_TILE
    for number, at in enumerate(range(0, one.targets.shape[1], size.targets)):
        device = devices[number % len(devices)]
        yield lambda at=at, device=device: _check_column(one, at, size, device)


def _check_column(one: Rectangle, at: int, size: DeviceTile, device: Any) -> None:
    """Check all queries against a tile of targets."""
    import jax

    with jax.default_device(device):
        column = _Column.of(one, at, size)
        last = one.queries.shape[1]
        if one.triangle:  # queries after all of the targets meet none
            last = min(last, at + size.targets)
        for first in range(0, last, size.queries):
            column.check(first, size.queries)


@dataclass(frozen=True, eq=False)
class _Column:
    """A tile of targets on a device."""

    one: Rectangle
    at: int
    size: DeviceTile
    arrays: tuple[Any, ...]
    sums: tuple[Any, ...] | None

    @staticmethod
    def of(one: Rectangle, at: int, size: DeviceTile) -> "_Column":
        import jax

        some = slice(at, at + size.targets)
        shape = LANES, size.targets // LANES
        targets = padded(one.targets[:, some], size.targets).reshape(-1, *shape)
        limits = padded(one.limits[some][None], size.targets, -1).reshape(shape)
        sums = None
        if one.sums is not None:
            letters = _positions(one.sums.y[some])
            left = padded(one.sums.left[some][None], size.targets, -1)[0]
            table = np.ascontiguousarray(one.sums.table, np.int32).reshape(-1)
            parts = padded(letters, size.targets), left.astype(np.int32), table
            sums = tuple(map(jax.device_put, parts))
        arrays = jax.device_put(targets), jax.device_put(limits.astype(np.int32))
        return _Column(one, at, size, arrays, sums)

    def check(self, first: int, count: int) -> None:
        """Check queries from a place on against these targets."""
        if first >= self.one.queries.shape[1]:
            return
        some = slice(first, first + count)
        queries = padded(self.one.queries[:, some], count)
        counts, *pairs = self._run(queries, some, count)
        counts = np.asarray(counts).tolist()
        if all(x <= y for x, y in zip(counts, self.size.room, strict=False)):
            self._add(first, [np.asarray(x)[: counts[-1]] for x in pairs])
        elif count > self.size.least:
            self.check(first, count // 2)
            self.check(first + count // 2, count // 2)
        else:
            mask = np.asarray(_programs()["mask"](queries, *self.arrays))
            check_mask(self.one, mask, first, self.at)

    def _run(self, queries: np.ndarray, some: slice, count: int) -> Any:
        if self.sums is None or self.one.sums is None:
            most = self.size.words, self.size.pairs
            return _programs()["pairs"](queries, *self.arrays, most=most)
        letters = padded(_positions(self.one.sums.x[some]), count)
        y, left, table = self.sums
        parts = (*self.arrays, letters, y, left, table)
        return _programs()["sums"](queries, *parts, most=self.size.room)

    def _add(self, first: int, pairs: list[np.ndarray]) -> None:
        q, t = (x.astype(np.int64) for x in pairs[:2])
        q, t = q + first, t + self.at
        real = q < self.one.queries.shape[1]
        if self.one.triangle:
            real &= t > q
        if len(pairs) == 3 and self.one.sums is not None:
            self.one.sums.add(q[real], t[real], pairs[2][real])
        else:
            self.one.check(q[real], t[real])


def _positions(letters: np.ndarray) -> np.ndarray:
    """Letters by position, padded by one letter: equal letters have no distance."""
    more = -letters.shape[1] % POSITIONS
    return np.ascontiguousarray(np.pad(letters, ((0, 0), (0, more))).T)


@cache
def _programs() -> dict[str, Any]:
    """The compiled programs; JAX is imported by who needs it."""
    from jaxalign.repertoire.dp.hits import near_sums, tile_pairs
    from jaxalign.repertoire.dp.packed import near_words
    from jaxalign.runtime.programs import program

    return {
        "mask": program()(near_words),
        "pairs": program(("most",))(tile_pairs),
        "sums": program(("most",))(near_sums),
    }
