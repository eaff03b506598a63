"""The arrays of a window: targets in their lanes, queries in their slots, in NumPy, and
the arrays on a device that the next window of a thread writes over."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxalign.pairs.dp.sweep import TILE
from jaxalign.pairs.dp.sweep.lane_fill import Block
from jaxalign.pairs.run_state import Worker


def block_of(task, w) -> Block:
    """The targets in their lanes, without their scores."""
    pad = task.scoring.alphabet.size
    codes = np.full((w.lanes, w.columns), pad, np.uint8)
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
    to = first[:count] + w.lane * w.columns
    places = zip(to.tolist(), source.tolist(), length[:count].tolist(), strict=True)
    for i, j, n in places:
        flat[i : i + n] = letters[j : j + n]
    origin = first[target]
    tiles = np.int32(w.last.max(initial=TILE) // TILE)
    by_row = [np.ascontiguousarray(x.T) for x in (codes, target, origin, begins)]
    places = lane, first, length
    return Block._make([*by_row, *places, tiles, np.int32(count), None])


def queries_of(task, w):
    """Codes (Q, M, W) and lengths (Q, W) of the rows of queries."""
    wide = w.lanes if w.zipped else 1
    codes, m = _padded(task.queries, w.queries, w.rows, w.slots * wide)
    codes = codes.reshape(w.slots, wide, w.rows).transpose(0, 2, 1)
    return np.ascontiguousarray(codes), m.reshape(w.slots, wide)


def wide(w, bits):
    """(Q, T) bool in the window's static size."""
    padded = np.zeros((w.slots, w.places), bool)
    padded[: bits.shape[0], : bits.shape[1]] = bits
    return padded


def _padded(sequences, indices, length, count):
    """uint8 (count, length) codes and int32 (count,) lengths of some sequences."""
    codes = np.zeros((count, length), np.uint8)
    lengths = np.zeros(count, np.int32)
    for row, index in enumerate(indices):
        one = sequences[index]
        codes[row, : len(one)] = one
        lengths[row] = len(one)
    return codes, lengths


def profile_room(worker: Worker, shape: tuple[int, ...], dtype) -> jax.Array:
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
