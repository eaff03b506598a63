"""The contents of lanes: targets of any lengths one after the other, or a pair each."""

from heapq import heapreplace

import numpy as np

from jaxalign.pairs.dp.sweep import TILE
from jaxalign.runtime.lengths import by_length

EMPTY_COLUMN_LANES = 32  # lanes that a column costs as much as, even with none
MAX_KNOWN_BLOCKS = 8
SHORT = 32  # letters of short sequences
SHORT_PAIRS = 2048  # of those in a window: a call takes as long as 1,000 of them
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
    packed = _known.get((lengths.tobytes(), lanes)) if limit is None else None
    if packed is None:
        packed = _packed(lengths, lanes, limit)
        if len(_known) >= MAX_KNOWN_BLOCKS:  # threads may have added one each
            _known.clear()
        _known[lengths[: len(packed[0])].tobytes(), lanes] = packed
    return packed


def _packed(lengths, lanes, limit):
    heap = [(0, lane) for lane in range(lanes)]
    lane, last, area, top = [], [], 0, 0
    best, count = 0.0, 0
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
            best, count = max(best, area / top), len(lane)
    count = len(lane) if len(lane) == len(lengths) else count
    arrays = np.array(lane[:count], np.int32), np.array(last[:count], np.int32)
    for array in arrays:
        array.flags.writeable = False
    return arrays


def spans(lengths, lanes: int) -> np.ndarray:
    """int64 (T,): columns from the first of every target, longest first, to the end of
    the last of those that follow: what a query sweeps that meets it and them."""
    _, last = pack(lengths, lanes)
    ends = np.maximum.accumulate(last[::-1])[::-1]
    return np.asarray(ends - (last - tiled(lengths)), np.int64)


def zip_lanes(job, pairs: int, lanes: tuple[int, ...]) -> int:
    """Lanes of windows of zipped pairs, of those that windows have."""
    if max(job.most) <= SHORT and not job.paths and pairs > lanes[0]:
        return SHORT_PAIRS
    return lanes[1] if pairs > lanes[-1] else lanes[-1]


def alike(m, n, lanes: int) -> np.ndarray:
    """Pairs of lengths (P,) in the best of some orders for windows of so many: by
    cells, which suits sides of like lengths, or by one side in groups of windows, and
    in each group by the other, which suits few queries that meet many targets."""
    windows = -(-len(m) // lanes)
    size = max(-(-windows // max(round(windows**0.5), 1)), 1) * lanes
    orders = [by_length(m * (n + 1))]
    for first, second in ((m, n), (n, m)):
        order = by_length(first)
        groups = [order[k : k + size] for k in range(0, len(order), size)]
        orders.append(
            np.concatenate([x[by_length(second[x])] for x in groups or [order]])
        )

    def filled(order):
        starts = np.arange(0, len(order), lanes)
        most = (np.maximum.reduceat(x[order], starts) for x in (m, n))
        return int(np.prod([*most], axis=0).sum()) if len(order) else 0

    return min(orders, key=filled)
