"""The contents of lanes: targets of any lengths one after the other, or a pair each.

The arrays of a window are made in NumPy, targets in their lanes and queries in their
slots; those on a device are written over by the next window of a thread.
"""

from heapq import heapreplace
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

from jaxalign.pairs.dp.sweep import TILE
from jaxalign.pairs.dp.sweep.lane_fill import Block
from jaxalign.pairs.run_state import Worker
from jaxalign.runtime.lengths import by_length

if TYPE_CHECKING:
    from jaxalign.model.selection import CodedSequences
    from jaxalign.pairs.plan import Task
    from jaxalign.pairs.windows import PairMatrix, Window


CACHE_LINE = 64  # bytes
EMPTY_COLUMN_LANES = 32  # lanes that a column costs as much as, even with none
MAX_KNOWN_BLOCKS = 8
SHORT = 32  # letters of short sequences
SHORT_PAIRS = 2048  # of those in a window: a call takes as long as 1,000 of them
# (lengths, lanes) -> lane, last: a block is packed to find where it ends, then shaped.
_known: dict[tuple[bytes, int], tuple[np.ndarray, np.ndarray]] = {}


def tiled(lengths: np.ndarray | int):
    """Columns that targets take."""
    return TILE * np.maximum(1, -(-np.asarray(lengths) // TILE))


def pack(lengths: np.ndarray, lanes: int, limit: int | None = None):
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


def _packed(lengths: np.ndarray, lanes: int, limit: int | None):
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


def spans(lengths: np.ndarray, lanes: int) -> np.ndarray:
    """int64 (T,): columns from the first of every target, longest first, to the end of
    the last of those that follow: what a query sweeps that meets it and them."""
    _, last = pack(lengths, lanes)
    ends = np.maximum.accumulate(last[::-1])[::-1]
    return np.asarray(ends - (last - tiled(lengths)), np.int64)


def zip_lanes(job: "PairMatrix", pairs: int, lanes: tuple[int, ...]) -> int:
    """Lanes of windows of zipped pairs, of those that windows have."""
    if max(job.most) <= SHORT and not job.paths and pairs > lanes[0]:
        return SHORT_PAIRS
    return lanes[1] if pairs > lanes[-1] else lanes[-1]


def alike(m: np.ndarray, n: np.ndarray, lanes: int) -> np.ndarray:
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

    def filled(order: np.ndarray):
        starts = np.arange(0, len(order), lanes)
        most = (np.maximum.reduceat(x[order], starts) for x in (m, n))
        return int(np.prod([*most], axis=0).sum()) if len(order) else 0

    return min(orders, key=filled)


def block_of(task: "Task", w: "Window") -> Block:
    """The targets in their lanes, without their scores."""
    pad = task.scoring.alphabet.size
    # An odd number of cache lines a lane: of a power of two, the lines of a column all
    # fall into the same few sets of the cache, and turning it takes five times as long.
    stride = (-(-w.columns // CACHE_LINE) | 1) * CACHE_LINE
    codes = np.full((w.lanes, stride), pad, np.uint8)
    target = np.zeros((w.lanes, w.columns // TILE), np.int32)
    begins = np.zeros(target.shape, bool)
    lane, first, length = (np.zeros(w.places, np.int32) for _ in range(3))
    count = len(w.targets)
    source = task.targets.starts[w.targets]
    lane[:count], length[:count] = w.lane, task.job.target_lengths[w.targets]
    first[:] = TILE  # places that stay empty: a target of no residues in tile 0
    first[:count] = w.last - length[:count]
    begin = np.minimum(first[:count], w.last - 1) // TILE
    begins[w.lane, begin] = True
    tiles = w.last // TILE - begin
    at = w.lane * target.shape[1] + begin - (np.cumsum(tiles) - tiles)
    at = np.repeat(at, tiles) + np.arange(tiles.sum())
    target.reshape(-1)[at] = np.repeat(np.arange(count), tiles)
    letters, flat = task.targets.codes, codes.reshape(-1)
    to = first[:count] + w.lane * stride
    places = zip(to.tolist(), source.tolist(), length[:count].tolist(), strict=True)
    for i, j, n in places:
        flat[i : i + n] = letters[j : j + n]
    origin = first[target]
    tiles = np.int32(w.last.max(initial=TILE) // TILE)
    codes = codes[:, : w.columns]
    by_row = [np.ascontiguousarray(x.T) for x in (codes, target, origin, begins)]
    places = lane, first, length
    return Block._make([*by_row, *places, tiles, np.int32(count), None])


def queries_of(task: "Task", w: "Window"):
    """Codes (Q, M, W) and lengths (Q, W) of the rows of queries."""
    wide = w.lanes if w.zipped else 1
    codes, m = _padded(task.queries, w.queries, w.rows, w.slots * wide)
    codes = codes.reshape(w.slots, wide, w.rows).transpose(0, 2, 1)
    return np.ascontiguousarray(codes), m.reshape(w.slots, wide)


def wide(w: "Window", bits: np.ndarray):
    """(Q, T) bool in the window's static size."""
    padded = np.zeros((w.slots, w.places), bool)
    padded[: bits.shape[0], : bits.shape[1]] = bits
    return padded


def _padded(sequences: "CodedSequences", indices: np.ndarray, length: int, count: int):
    """uint8 (count, length) codes and int32 (count,) lengths of some sequences."""
    codes = np.zeros((count, length), np.uint8)
    lengths = np.zeros(count, np.int32)
    for row, index in enumerate(indices):
        one = sequences[index]
        codes[row, : len(one)] = one
        lengths[row] = len(one)
    return codes, lengths


def profile_room(
    worker: Worker, shape: tuple[int, ...], dtype: jax.typing.DTypeLike
) -> jax.Array:
    """Where the profile of a window is written: over the last one of its thread."""
    room = worker.profile
    if room is None or (room.shape, room.dtype) != (shape, dtype) or room.is_deleted():
        return jnp.zeros(shape, dtype)
    return room


def backtrack_room(worker: Worker, capacity: int) -> jax.Array:
    """The buffer the last window gave back, where it has the right size."""
    buffer = worker.backtrack
    if buffer is None or buffer.shape[0] != capacity or buffer.is_deleted():
        return jnp.zeros(capacity, jnp.uint8)
    return buffer
