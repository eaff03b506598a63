"""The sequences of a job on a device: flat codes, in arrays of a few sizes.

Blocks of a database whose codes nobody can change stay on the device as long as they
are on the host: a search of few queries takes less time than to copy them there.
"""

from typing import NamedTuple
from weakref import WeakKeyDictionary

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxalign.model.alphabet import Sequences
from jaxalign.pairs.gpu import device_memory
from jaxalign.pairs.windows import bucket
from jaxalign.runtime.devices import first_device
from jaxalign.runtime.programs import program

# Room in arrays of a side, beyond which it is a power of two.
LETTER_ROOMS, SEQUENCE_ROOMS = (2**20, 2**26), (2**12, 2**17)
# Letters that go to the device in pieces, of which each room holds a whole number
MANY_LETTERS, PIECE = 2**24, 2**22

KEPT_SHARE = 1 / 8  # of the memory of a device, for blocks that stay there


class DeviceSequences(NamedTuple):
    """One side on the device: flat codes, where each sequence begins, its length."""

    codes: jax.Array  # uint8, one more than there are residues
    start: jax.Array  # int32
    length: jax.Array  # int32


_kept: WeakKeyDictionary[Sequences, dict] = WeakKeyDictionary()  # device -> itself


def load_block(block: Sequences) -> DeviceSequences:
    """``load`` for a block of a database, which stays on the device if its codes cannot
    be written and there is room."""
    if block.codes.flags.writeable:
        return load(block)
    device = first_device()
    kept = _kept.setdefault(block, {})
    if device not in kept:
        loaded = load(block)
        others = [x[device] for x in list(_kept.values()) if device in x]
        taken = sum(x.nbytes for some in (*others, loaded) for x in some)
        if taken > KEPT_SHARE * device_memory.of_device(device):
            return loaded
        kept[device] = loaded
    return kept[device]


def forget(device) -> None:
    """Give back the memory of the blocks that stay on a device."""
    for kept in list(_kept.values()):
        kept.pop(device, None)


def load(sequences, letters=0, count=0) -> DeviceSequences:
    """One side of a task, to the device, in arrays for so many letters at least and so
    many sequences."""
    places = sequences.starts, sequences.lengths
    numbers = (padded_integers(x, count) for x in places)
    # One call for all three: each takes a millisecond.
    return jax.device_put(DeviceSequences(_letters(sequences.codes, letters), *numbers))


def padded_integers(values, count=0) -> np.ndarray:
    """int32, for so many sequences at least."""
    return _long(values, np.int32, count, SEQUENCE_ROOMS)


def _letters(codes, least) -> np.ndarray | jax.Array:
    """Codes in an array for so many letters at least, and one more; many of them on the
    device, piece by piece, without a copy on the host."""
    needed = max(len(codes), least) + 1
    if len(codes) < MANY_LETTERS:
        return _long(codes, np.uint8, needed, LETTER_ROOMS)
    array = jnp.zeros(_room(needed, LETTER_ROOMS), jnp.uint8)
    for start in range(0, len(codes), PIECE):
        piece = codes[start : start + PIECE]
        if len(piece) < PIECE:
            piece = np.pad(piece, (0, PIECE - len(piece)))
        array = _with_piece(array, piece, np.int32(start))
    return array


@program(donate_argnums=0)
def _with_piece(array, piece, start):
    return lax.dynamic_update_slice(array, piece, (start,))


def _room(needed, sizes):
    """One of some sizes, or a power of two beyond: every other size is a compilation of
    all programs that gather letters."""
    return next((x for x in sizes if x >= needed), bucket(needed, 2, sizes[-1]))


def _long(values, dtype, least, sizes) -> np.ndarray:
    """An array of one of the sizes of ``_room``."""
    size = _room(max(len(values), least), sizes)
    array = np.zeros(size, dtype)
    array[: len(values)] = values
    return array
