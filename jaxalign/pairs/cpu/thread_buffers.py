"""Device arrays of a thread that its next window writes over."""

import jax
import jax.numpy as jnp

from jaxalign.pairs.run_state import Worker


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
