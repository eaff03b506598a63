"""Pairs whose words differ in few bits: tile by tile, on any device."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from jaxalign.repertoire import by_kernels, on_device
from jaxalign.repertoire.rectangles import (
    LANES,
    Rectangle,
    check_mask,
    padded,
)
from jaxalign.runtime.devices import first_device
from jaxalign.runtime.pipeline import in_threads

MAX_LISTED = 2**15  # pairs of a rectangle that are listed rather than looked for
# Pairs of a job whose sums take less time than JAX to start.
MAX_WITHOUT_JAX = 2**21
THREADS_OF_A_DEVICE = 8  # of the host; 0.4 GB each, of a GPU's memory


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
    devices = devices or (first_device(),)
    if not on_host(devices[0]):  # each has arrays of its own there
        threads = min(threads, THREADS_OF_A_DEVICE * len(devices))
    in_threads(lambda piece: piece(), _pieces(rectangles, devices), threads)


def _pieces(
    rectangles: list[Rectangle], devices: tuple[Any, ...]
) -> Iterator[Callable[[], None]]:
    """Functions that check a part of a rectangle each."""
    kernels = _kernels() if has_kernels(devices) else None
    room = by_kernels.room_of(rectangles) if kernels else 0
    for one in rectangles:
        if one.pairs <= MAX_LISTED:
            yield partial(check_listed, one)
        elif on_host(devices[0]):
            for first in range(0, one.queries.shape[1], CPU_TILE.queries):
                yield partial(_check_row, one, first, CPU_TILE)
        elif kernels and by_kernels.takes(one):
            yield from by_kernels.pieces(one, devices, kernels, room)
        else:
            yield from on_device.pieces(one, devices)


def has_kernels(devices: tuple[Any, ...]) -> bool:
    """Whether kernels compare pairs on the devices."""
    device = next(iter(devices), None) or first_device()
    return not on_host(device) and _kernels() is not None


def _kernels() -> Any:
    """The package of GPU kernels, where they run."""
    from jaxalign.runtime import backend  # JAX is imported by who needs it

    return backend.kernels()[0]


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


@cache
def _near_words() -> Any:
    """The compiled program; JAX is imported by who needs it."""
    from jaxalign.repertoire.dp.packed import near_words
    from jaxalign.runtime.programs import program

    return program()(near_words)
