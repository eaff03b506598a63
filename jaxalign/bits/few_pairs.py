"""Launches of bit-parallel words: where their sequences lie, and the few pairs of a
launch that are wanted.

The sizes of launches differ as little as can be, so that they share programs.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxalign.runtime.lengths import bucket

if TYPE_CHECKING:
    from jaxalign.model.letters import LetterCodes
    from jaxalign.model.selection import CodedSequences


THREADS = 128  # columns of a program of a kernel
LETTERS_OF_WORD = 4
LEAST_ROWS = 2**15  # room for letters: one program for most launches
LEAST_PAIRS = 2**14  # room for pairs
MOST_ROOMS = 8  # of pairs, looked at one after the other by the same program
RUN = 32  # places that are looked at together


class FewPairs(NamedTuple):
    """Places (P,) in the rows and columns of a launch, int64, and what is known of
    these pairs."""

    row: np.ndarray
    column: np.ndarray
    value: np.ndarray


def places(
    sequences: "CodedSequences | LetterCodes", which: np.ndarray, room: int
) -> tuple[np.ndarray, np.ndarray]:
    """int32 (room,): where some sequences begin, and their lengths; 0 beyond."""
    sides = sequences.starts[which], sequences.lengths[which]
    first, length = (np.pad(x, (0, room - len(x))).astype(np.int32) for x in sides)
    return first, length


def columns_of(
    sequences: "CodedSequences | LetterCodes",
    which: np.ndarray,
    count: int,
    least: int = LEAST_ROWS,
) -> tuple[np.ndarray, np.ndarray, int]:
    """``places`` of the columns of a launch of up to ``count``, longest first, and room
    for the rows of their letters (``kernels_pallas.target_blocks``), so many at
    least."""
    first, length = places(sequences, which, -(-count // THREADS) * THREADS)
    longest = length.reshape(-1, THREADS).max(1)
    rows = int((-(-longest // LETTERS_OF_WORD)).sum())
    return first, length, bucket(rows, 4, least)


def chosen(
    count_and_places: Callable, shape: tuple[int, int], least: int = LEAST_PAIRS
) -> FewPairs:
    """The pairs that are wanted of so many rows and columns on a device.

    count_and_places : function (``size``, ``start``) -> ``compact`` of them
    least : pairs that there is room for at least

    Where there is no room for all, the same program takes the next ones, since another
    room would be another program. Only many times as many have such a room.
    """
    start, size, pieces = 0, least, []
    while True:
        count, *places = count_and_places(size=size, start=np.int32(start))
        count = int(count)
        if count > MOST_ROOMS * size:
            size = min(bucket(count, 8, least), shape[0] * shape[1])
            continue
        place, some = (np.asarray(x)[:count] for x in places)
        pieces.append((place.astype(np.int64), some))
        if count <= size:
            break
        start = int(place[-1]) + 1
    place, some = (np.concatenate(x) for x in zip(*pieces, strict=True))
    return FewPairs(*np.divmod(place, shape[1]), some)


def compact(mask: jax.Array, values: jax.Array, size: int, start: jax.Array):
    """(number of pairs of a mask from a flat place on, flat places (size,) of the first
    of them, their values), in a program."""
    rows, columns = (lax.broadcasted_iota(jnp.int32, mask.shape, k) for k in (0, 1))
    count, index = first_places(mask & (rows * mask.shape[1] + columns >= start), size)
    return count, index, values.reshape(-1)[index]


def first_places(mask: jax.Array, size: int):
    """(how many places of a mask are true, the first of them, flat: int32 (size,)), in
    a program.

    Few are, so they are found among runs of ``RUN`` places that have any.
    """
    runs = mask.reshape(-1)
    runs = jnp.pad(runs, (0, -runs.size % RUN)).reshape(-1, RUN)
    some = runs.any(axis=1)
    which = _first(some, min(size, len(runs)))
    inside = jnp.arange(len(which), dtype=jnp.int32) < some.sum(dtype=jnp.int32)
    few = runs[which] & inside[:, None]
    at = _first(few.reshape(-1), size)
    index = (which[at // RUN] * RUN + at % RUN).astype(jnp.int32)
    return mask.sum(dtype=jnp.int32), index


def _first(mask: jax.Array, size: int):
    """int32 (size,): the first places where a mask is true, 0 beyond the last.

    ``jnp.nonzero`` adds every place to a histogram, which takes a GPU ten times as long
    as to look for each place that is wanted.
    """
    count = jnp.cumsum(mask, dtype=jnp.int32)
    wanted = jnp.arange(1, size + 1, dtype=jnp.int32)
    place = jnp.searchsorted(count, wanted).astype(jnp.int32)
    return jnp.where(wanted <= count[-1], place, 0)
