"""Rectangles by the GPU kernels: near pairs are counted, then listed on the device."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from jaxalign.repertoire.rectangles import (
    EditDistances,
    PositionSums,
    Rectangle,
    padded,
)
from jaxalign.runtime.lengths import bucket

LEAST_ROOM, MAX_ROOM = 2**14, 2**20  # rows of an array
LETTER_BYTES = 32  # letters of a row are padded to a multiple
LIST_ROOM = 2**22  # pairs of a call
LEAST_LIST = 2**12  # pairs that come to the host
# Near pairs of a call: their places are int32.
MAX_NEAR = 2**30
TABLE_LETTERS = 32  # of the kernels
MAX_EDIT_ROWS = 32  # letters of a query of edit distances
NO_LETTER = TABLE_LETTERS - 1  # beyond a row
STATIC = "room", "edits"  # arguments of the kernels
Piece = Callable[[], None]


def takes(one: Rectangle) -> bool:
    """Whether the kernels compute the distances of a rectangle."""
    if one.edits is not None:
        return one.edits.x.shape[1] <= MAX_EDIT_ROWS
    return one.sums is not None and len(one.sums.table) <= NO_LETTER


def room_of(rectangles: list[Rectangle]) -> int:
    """Rows of the arrays of all calls: one size, so that programs are few."""
    sides = (one.queries.shape[1] for one in rectangles)
    others = (one.targets.shape[1] for one in rectangles)
    largest = max(*sides, *others, LEAST_ROOM)
    return min(bucket(largest, 4, LEAST_ROOM), MAX_ROOM)


def pieces(
    one: Rectangle, devices: tuple[Any, ...], kernels: Any, room: int
) -> Iterator[Piece]:
    """Functions that look for the near pairs of a part of a rectangle each, on the
    devices in turn."""
    number = 0
    for at in range(0, one.targets.shape[1], room):
        for first in range(0, one.queries.shape[1], room):
            if one.triangle and first > at:
                continue
            device = devices[number % len(devices)]
            number += 1
            yield partial(_check, _Part(one, first, at, room), kernels, device)


@dataclass(frozen=True, eq=False)
class _Part:
    """Queries and targets of a rectangle from a place on, at most ``room`` of each."""

    one: Rectangle
    first: int
    at: int
    room: int

    @property
    def queries(self) -> slice:
        return slice(self.first, self.first + self.room)

    @property
    def targets(self) -> slice:
        return slice(self.at, self.at + self.room)

    @property
    def distances(self) -> PositionSums | EditDistances:
        distances = self.one.edits or self.one.sums
        assert distances is not None
        return distances

    @property
    def edits(self) -> bool:
        return self.one.edits is not None

    @property
    def triangle(self) -> bool:
        return self.one.triangle and self.first == self.at

    def rows(self, kernels: Any, codes: np.ndarray, letters: np.ndarray) -> Any:
        """``NearRows`` of one side, four letters a word."""
        width = -(-max(letters.shape[1], 1) // LETTER_BYTES) * LETTER_BYTES
        wide = np.full((self.room, width), NO_LETTER, np.uint8)
        wide[: len(letters), : letters.shape[1]] = letters
        codes = np.ascontiguousarray(padded(codes, self.room).T)
        return kernels.NearRows(
            codes.reshape(-1).view(np.int32), wide.view("<u4").view(np.int32)
        )

    def limits(self, kernels: Any) -> Any:
        """``NearLimits``; two places beyond a row have no distance."""
        table = np.zeros((TABLE_LETTERS,) * 2, np.int32)
        if self.one.sums is not None:
            letters = len(self.one.sums.table)
            table[:letters, :letters] = self.one.sums.table
        left = self.distances.left[self.targets]
        some = self.one.limits[self.targets][None], left[None]
        sides = (padded(x.astype(np.int32), self.room, -1)[0] for x in some)
        return kernels.NearLimits(*sides, table.reshape(-1))

    def sizes(self, kernels: Any, first: int, last: int) -> Any:
        """``NearSizes`` of some of the queries."""
        targets = min(self.room, self.one.targets.shape[1] - self.at)
        rows, letters = self.distances.x.shape[1], self.distances.y.shape[1]
        words = letters if self.edits else -(-rows // 4)
        numbers = first, last, targets, int(self.triangle), words, rows
        return kernels.NearSizes(*map(np.int32, numbers))


def _check(part: _Part, kernels: Any, device: Any) -> None:
    """Add the near pairs of a part."""
    import jax

    from jaxalign.runtime import device_errors
    from jaxalign.runtime.programs import stored

    one, distances = part.one, part.distances
    x, y = distances.x[part.queries], distances.y[part.targets]
    explained = device_errors.explained("near receptors", device)
    with explained, jax.default_device(device):
        queries = part.rows(kernels, one.queries[:, part.queries], x)
        targets = part.rows(kernels, one.targets[:, part.targets], y)
        given = queries, targets, part.limits(kernels)
        queries, *others = jax.device_put(given)
        if part.edits:
            match = stored(kernels.match_rows)(queries.letters)
            queries = queries._replace(letters=match)
        _list(part, kernels, (queries, *others), 0, len(x))


def _list(part: _Part, kernels: Any, arrays: Any, first: int, last: int) -> None:
    """Add the near pairs of some queries; where they are too many for one list, those
    of either half."""
    from jaxalign.runtime.programs import stored

    sizes = part.sizes(kernels, first, last)
    ends, total = stored(kernels.near_ends, STATIC)(*arrays, sizes, edits=part.edits)
    total = float(total)
    if total > MAX_NEAR:
        half = (first + last) // 2
        _list(part, kernels, arrays, first, half)
        _list(part, kernels, arrays, half, last)
        return
    write = stored(kernels.near_list, STATIC)
    options = {"room": LIST_ROOM, "edits": part.edits}
    for start in range(0, int(total), LIST_ROOM):
        pairs = write(*arrays, sizes, ends, np.int32(start), **options)
        count = min(int(total) - start, LIST_ROOM)
        most = min(bucket(count, 4, LEAST_LIST), LIST_ROOM)
        query, target, distance = np.asarray(_some()(pairs, most=most))[:, :count]
        part.distances.add(query + part.first, target + part.at, distance)


@cache
def _some() -> Any:
    """The compiled program of ``first_columns``."""
    from jaxalign.repertoire.dp.hits import first_columns
    from jaxalign.runtime.programs import program

    return program(("most",))(first_columns)
