"""Targets of any lengths, one after the other in the lanes of a block."""

from heapq import heapreplace

import numpy as np

from jaxalign.pairs.dp.sweep import TILE

EMPTY_COLUMN_LANES = 32  # lanes that a column costs as much as, even with none
MAX_KNOWN_BLOCKS = 8
# (lengths, lanes) -> lane, last: a block is packed to find where it ends, then shaped.
_known: dict[tuple[bytes, int], tuple[np.ndarray, np.ndarray]] = {}


def tiled(lengths):
    """Columns that targets take."""
    return TILE * np.maximum(1, -(-np.asarray(lengths) // TILE))


def pack(lengths, lanes: int, limit: int | None = None):
    """Targets, longest first, one after the other into the lane with the most room.

    Each begins a tile, so it takes a multiple of TILE columns, and one at least.
    Starts never decrease along the order. With a ``limit`` of columns, as many targets
    as fill the lanes best.

    Returns
    -------
    lane, last : int32 (T,), not to be written to
        The lane of each, and the column after its last.
    """
    lengths = np.asarray(lengths, np.int64)
    found = _known.get((lengths.tobytes(), lanes)) if limit is None else None
    if found is None:
        found = _packed(lengths, lanes, limit)
        if len(_known) >= MAX_KNOWN_BLOCKS:  # threads may have added one each
            _known.clear()
        _known[lengths[: len(found[0])].tobytes(), lanes] = found
    return found


def _packed(lengths, lanes, limit):
    heap = [(0, lane) for lane in range(lanes)]
    lane, last, area, top = [], [], 0, 0
    best, kept = 0.0, 0
    for length, columns in zip(lengths.tolist(), tiled(lengths).tolist(), strict=True):
        used, here = heap[0]
        end = used + columns
        if limit and end > limit and lane:
            break
        heapreplace(heap, (end, here))
        lane.append(here)
        last.append(end)
        area, top = area + length, end if end > top else top
        if area >= 0.97 * best * top:
            best, kept = max(best, area / top), len(lane)
    kept = len(lane) if len(lane) == len(lengths) else kept
    found = np.array(lane[:kept], np.int32), np.array(last[:kept], np.int32)
    for array in found:
        array.flags.writeable = False
    return found


def spans(lengths, lanes: int) -> np.ndarray:
    """int64 (T,): columns from the first of every target, longest first, to the end of
    the last of those that follow: what a query sweeps that meets it and them."""
    _, last = pack(lengths, lanes)
    ends = np.maximum.accumulate(last[::-1])[::-1]
    return np.asarray(ends - (last - tiled(lengths)), np.int64)
