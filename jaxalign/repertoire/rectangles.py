"""Rectangles of pairs that may be near: who compares them, and how.

Rows have words, and near pairs differ in few bits of these. Where pairs are few, all
are compared; else XLA on the CPU writes a mask of a tile, whose pairs the host
compares. The GPU kernels count near pairs, then list them with their distances; they
compute sums over positions and edit distances alone (``RowDistances``), and
everything else is computed on the CPU.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from itertools import cycle
from typing import Any

import numpy as np

from jaxalign.model.alphabet import spans
from jaxalign.runtime.devices import at_once, bucket, first_device, on_cpu
from jaxalign.runtime.pipeline import in_threads

LANES = 32  # targets of a word of a mask
MAX_LISTED = 2**15  # pairs of a rectangle that are listed rather than looked for
# Pairs of a job whose sums take less time than JAX to start.
MAX_WITHOUT_JAX = 2**21
THREADS_OF_A_DEVICE = 8  # of the host; 0.4 GB each, of a GPU's memory
LEAST_ROOM, ROOMS_RATIO, MAX_ROOM = 2**14, 4, 2**20  # rows of an array
LETTER_BYTES = 32  # letters of a row are padded to a multiple
LIST_ROOM = 2**22  # pairs of a call
LEAST_LIST, LISTS_RATIO = 2**12, 4  # pairs that come to the host
# Near pairs of a call: their places are int32.
MAX_NEAR = 2**30
TABLE_LETTERS = 32  # of the kernels
MAX_EDIT_ROWS = 32  # letters of a query of edit distances
NO_LETTER = TABLE_LETTERS - 1  # beyond a row
STATIC = "room", "edits"  # arguments of the kernels
Check = Callable[[np.ndarray, np.ndarray], None]


@dataclass(frozen=True, eq=False)
class RowDistances:
    """Exact distances of a rectangle: sums over positions, or edit distances, which
    the GPU kernels compute themselves.

    x, y : uint8 (queries, letters), uint8 (targets, letters)
    largest : int (targets,). The largest distance of a near pair.
    add : takes the rows of near pairs, and their distances.
    table : int32 (letters, letters) or None. What is summed; None of edit distances.
    """

    x: np.ndarray
    y: np.ndarray
    largest: np.ndarray
    add: Callable[[np.ndarray, np.ndarray, np.ndarray], None]
    table: np.ndarray | None = None

    @property
    def by_kernels(self) -> bool:
        """Whether the kernels compute them."""
        if self.table is None:
            return self.x.shape[1] <= MAX_EDIT_ROWS
        return len(self.table) <= NO_LETTER


@dataclass(frozen=True, eq=False)
class Rectangle:
    """Some rows against others.

    queries, targets : uint32 (words, rows)
    limits : int32 (targets,). How many bits a query may differ in.
    triangle : both sides are the same rows, and a target follows its query.
    check : takes the rows of pairs that may be near.
    """

    queries: np.ndarray
    targets: np.ndarray
    limits: np.ndarray
    triangle: bool
    check: Check
    distances: RowDistances | None = None

    @property
    def pairs(self) -> int:
        return self.queries.shape[1] * self.targets.shape[1]

    @property
    def by_kernels(self) -> bool:
        """Whether the kernels compute the distances of its pairs."""
        return self.distances is not None and self.distances.by_kernels


@dataclass(frozen=True)
class Machine:
    """Host threads, bytes and devices that a job may use; none is JAX's default one."""

    threads: int
    budget: int
    devices: tuple[Any, ...] = ()


def padded(rows: np.ndarray, count: int, value: int = 0) -> np.ndarray:
    """Pad rows (n, m) to ``count`` columns."""
    room = (0, 0), (0, count - rows.shape[1])
    return np.pad(rows, room, constant_values=value) if room[1][1] else rows


def pairs_of(mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(queries, targets) of the bits of a mask, uint32 (queries, groups)."""
    groups = mask.shape[1]
    flat = mask.reshape(-1)
    place = np.flatnonzero(flat)
    octets = flat[place].astype("<u4").view(np.uint8).reshape(-1, 4)
    which, lane = np.nonzero(np.unpackbits(octets, axis=1, bitorder="little"))
    query, group = np.divmod(place[which], groups)
    return query, lane * groups + group


@dataclass(frozen=True)
class TileSize:
    """Queries and targets that are compared by one call."""

    queries: int
    targets: int


CPU_TILE = TileSize(512, 2**13)  # a mask stays in the cache of a core
# Pairs of a tile that are listed together, and bytes of one while it is compared
MAX_TILE_PAIRS, PAIR_BYTES = 2**22, 32


def check_all(rectangles: list[Rectangle], machine: Machine) -> None:
    """Check every candidate pair, rectangle by rectangle."""
    rectangles = [rectangle for rectangle in rectangles if rectangle.pairs]
    pairs_at_once = at_once(
        MAX_TILE_PAIRS, PAIR_BYTES * machine.threads, machine.budget
    )
    if sum(rectangle.pairs for rectangle in rectangles) <= MAX_WITHOUT_JAX:
        for rectangle in rectangles:
            check_listed(rectangle, pairs_at_once)
        return
    threads, devices = machine.threads, machine.devices or (first_device(),)
    computable = any(x.by_kernels for x in rectangles) and has_kernels(devices)
    kernels = _kernels() if computable else None
    if kernels is not None:  # each thread has arrays of its own on a device
        threads = min(threads, THREADS_OF_A_DEVICE * len(devices))
    pieces = _pieces(rectangles, devices, kernels, pairs_at_once)
    in_threads(lambda piece: piece(), pieces, threads)


def _pieces(
    rectangles: list[Rectangle],
    devices: tuple[Any, ...],
    kernels: Any,
    pairs_at_once: int,
) -> Iterator[Callable[[], None]]:
    """Yield functions that check one part of a rectangle each.

    Kernels take turns on the devices, with arrays of one size to share programs.

    pairs_at_once : pairs that a thread of the host checks at once
    """
    largest = max(max(x.queries.shape[1], x.targets.shape[1]) for x in rectangles)
    room = min(bucket(largest, ROOMS_RATIO, LEAST_ROOM), MAX_ROOM)
    for rectangle in rectangles:
        if rectangle.pairs <= MAX_LISTED:
            yield partial(check_listed, rectangle, pairs_at_once)
        elif kernels is not None and rectangle.by_kernels:
            turn = cycle(devices)
            for at in range(0, rectangle.targets.shape[1], room):
                for first in range(0, rectangle.queries.shape[1], room):
                    if not rectangle.triangle or first <= at:
                        part = _Part(rectangle, first, at, room)
                        yield partial(_check_by_kernels, part, kernels, next(turn))
        else:
            for first in range(0, rectangle.queries.shape[1], CPU_TILE.queries):
                yield partial(_check_row, rectangle, first, CPU_TILE, pairs_at_once)


def has_kernels(devices: tuple[Any, ...]) -> bool:
    """Whether kernels compare pairs on the devices."""
    device = next(iter(devices), None) or first_device()
    return not on_host(device) and _kernels() is not None


def _kernels() -> Any:
    """The package of GPU kernels, where they run."""
    from jaxalign.runtime import backend  # JAX is imported by who needs it

    return backend.kernels()[0]


def on_host(device: Any) -> bool:
    """Whether a device is a CPU."""
    return device.platform == "cpu"


def check_listed(rectangle: Rectangle, pairs_at_once: int) -> None:
    """Check all pairs of a rectangle, at most ``pairs_at_once`` at once."""
    for at in range(0, rectangle.pairs, pairs_at_once):
        places = np.arange(at, min(at + pairs_at_once, rectangle.pairs))
        q, t = np.divmod(places, rectangle.targets.shape[1])
        if rectangle.triangle:
            q, t = q[t > q], t[t > q]
        rectangle.check(q, t)


def _check_row(
    rectangle: Rectangle, first: int, size: TileSize, pairs_at_once: int
) -> None:
    """Check a tile of queries against all targets, ``pairs_at_once`` pairs at most."""
    queries = padded(rectangle.queries[:, first : first + size.queries], size.queries)
    first_target = first // size.targets * size.targets if rectangle.triangle else 0
    for at in range(first_target, rectangle.targets.shape[1], size.targets):
        span = slice(at, at + size.targets)
        targets = padded(rectangle.targets[:, span], size.targets)
        limits = padded(rectangle.limits[span][None], size.targets, -1)
        shape = LANES, size.targets // LANES
        targets = targets.reshape(-1, *shape)
        with on_cpu():
            mask = np.asarray(_near_words()(queries, targets, limits.reshape(shape)))
        counts = np.bitwise_count(mask).sum(axis=1, dtype=np.int64)
        for start, stop in spans(counts, pairs_at_once):
            q, t = pairs_of(mask[start:stop])
            q, t = q + (first + start), t + at
            real = q < rectangle.queries.shape[1]
            if rectangle.triangle:
                real &= t > q
            rectangle.check(q[real], t[real])


@cache
def _near_words() -> Any:
    """The compiled program; JAX is imported by who needs it."""
    from jaxalign.repertoire.dp import near_words
    from jaxalign.runtime.programs import program

    return program()(near_words)


@dataclass(frozen=True, eq=False)
class _Part:
    """Queries and targets of a rectangle from a place on, at most ``room`` of each."""

    rectangle: Rectangle
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
    def distances(self) -> RowDistances:
        assert self.rectangle.distances is not None
        return self.rectangle.distances

    @property
    def edits(self) -> bool:
        return self.distances.table is None

    @property
    def triangle(self) -> bool:
        return self.rectangle.triangle and self.first == self.at

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
        if self.distances.table is not None:
            letters = len(self.distances.table)
            table[:letters, :letters] = self.distances.table
        largest = self.distances.largest[self.targets]
        limits = self.rectangle.limits[self.targets][None], largest[None]
        sides = (padded(x.astype(np.int32), self.room, -1)[0] for x in limits)
        return kernels.NearLimits(*sides, table.reshape(-1))

    def sizes(self, kernels: Any, first: int, last: int) -> Any:
        """``NearSizes`` of some of the queries."""
        targets = min(self.room, self.rectangle.targets.shape[1] - self.at)
        rows, letters = self.distances.x.shape[1], self.distances.y.shape[1]
        words = letters if self.edits else -(-rows // 4)
        numbers = first, last, targets, int(self.triangle), words, rows
        return kernels.NearSizes(*map(np.int32, numbers))


def _arrays(part: _Part, kernels: Any) -> tuple[Any, Any, Any]:
    """``NearRows`` of both sides of a part, and its ``NearLimits``, on the host."""
    rectangle, distances = part.rectangle, part.distances
    x, y = distances.x[part.queries], distances.y[part.targets]
    queries = part.rows(kernels, rectangle.queries[:, part.queries], x)
    targets = part.rows(kernels, rectangle.targets[:, part.targets], y)
    return queries, targets, part.limits(kernels)


def _with_matches(queries: Any, kernels: Any) -> Any:
    """The queries of edit distances, with match vectors in place of letters."""
    from jaxalign.runtime.programs import stored

    return queries._replace(letters=stored(kernels.match_rows)(queries.letters))


def _check_by_kernels(part: _Part, kernels: Any, device: Any) -> None:
    """Add the near pairs of a part."""
    import jax

    from jaxalign.runtime import programs

    explained = programs.explained("near receptors", device)
    with explained, jax.default_device(device):
        queries, *targets_and_limits = jax.device_put(_arrays(part, kernels))
        if part.edits:
            queries = _with_matches(queries, kernels)
        count = len(part.distances.x[part.queries])
        _list(part, kernels, (queries, *targets_and_limits), 0, count)


def outlined(kernels: Any, room: int, edits: bool) -> None:
    """The programs of a part (``runtime.programs.outline``) of receptors of usual
    lengths, of edit distances or of sums."""
    from jaxalign.runtime.programs import stored

    words, letters = np.zeros((2, room), np.uint32), np.zeros((room, 1), np.uint8)
    largest, table = np.zeros(room, int), None if edits else np.zeros((1, 1), int)
    distances = RowDistances(letters, letters, largest, lambda *_: None, table)
    sides = words, words, np.zeros(room, int), False, lambda *_: None
    part = _Part(Rectangle(*sides, distances), 0, 0, room)
    queries, targets, limits = _arrays(part, kernels)
    if edits:
        queries = _with_matches(queries, kernels)
    arrays = queries, targets, limits
    sizes = part.sizes(kernels, 0, room)
    ends, _ = stored(kernels.near_ends, STATIC)(*arrays, sizes, edits=edits)
    options = {"room": LIST_ROOM, "edits": edits}
    write = stored(kernels.near_list, STATIC)
    pairs = write(*arrays, sizes, ends, np.int32(0), **options)
    size = LEAST_LIST
    while size <= LIST_ROOM:
        _first_columns()(pairs, count=size)
        size *= LISTS_RATIO


def _list(part: _Part, kernels: Any, arrays: Any, first: int, last: int) -> None:
    """Add the near pairs of some queries, by halves if one list cannot hold them."""
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
        size = min(bucket(count, LISTS_RATIO, LEAST_LIST), LIST_ROOM)
        query, target, distance = np.asarray(_first_columns()(pairs, count=size))[
            :, :count
        ]
        part.distances.add(query + part.first, target + part.at, distance)


@cache
def _first_columns() -> Any:
    """The compiled program of ``first_columns``."""
    from jaxalign.repertoire.dp import first_columns
    from jaxalign.runtime.programs import program

    return program(("count",))(first_columns)
