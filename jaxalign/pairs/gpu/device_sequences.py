"""The sequences of a job on a device: flat codes, in arrays of a few sizes.

Blocks of a database whose codes nobody can change stay on the device as long as they
are on the host: a search of few queries takes less time than to copy them there. So do
the codes of a job that runs in parts, as long as it runs.
"""

from collections.abc import Iterable
from threading import Lock
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxalign.model.alphabet import Sequences
from jaxalign.pairs.gpu import device_memory
from jaxalign.pairs.gpu.launch_size import MANY_LETTERS
from jaxalign.pairs.plan import WholeCodes
from jaxalign.runtime.devices import first_device
from jaxalign.runtime.lengths import bucket
from jaxalign.runtime.programs import program

# Room in arrays of a side, beyond which it is a power of two: each is a compilation of
# all programs that gather letters. A block of a database has 2^26 letters, and the rest
# of a sequence.
LETTER_ROOMS, SEQUENCE_ROOMS = (MANY_LETTERS, 2**26 + 2**22), (2**16, 2**20)
PIECE = 2**22  # many letters go to the device in pieces, a whole number of each room

_copying = Lock()  # codes are copied by the first thread that needs them

KEPT_SHARE = 1 / 8  # of the memory of a device, for blocks that stay there


class DeviceSequences(NamedTuple):
    """One side on the device: flat codes, where each sequence begins, its length."""

    codes: jax.Array  # uint8, one more than there are residues
    start: jax.Array  # int32
    length: jax.Array  # int32


_kept: WeakKeyDictionary[Sequences, dict] = WeakKeyDictionary()  # device -> itself
_whole: WeakKeyDictionary[WholeCodes, dict] = WeakKeyDictionary()  # device -> codes


def load_block(block: Sequences) -> DeviceSequences:
    """``load`` for a block of a database, which stays on the device if its codes cannot
    be written and there is room."""
    if block.codes.flags.writeable:
        return load(block)
    device = first_device()
    by_device = _kept.setdefault(block, {})
    if device not in by_device:
        loaded = load(block)
        others = [x[device] for x in list(_kept.values()) if device in x]
        taken = sum(x.nbytes for some in (*others, loaded) for x in some)
        if taken > KEPT_SHARE * device_memory.of_device(device):
            return loaded
        by_device[device] = loaded
    return by_device[device]


def forget(device: Any) -> None:
    """Give back the memory of what stays on a device."""
    for by_device in (*_kept.values(), *_whole.values()):
        by_device.pop(device, None)


def load(
    sequences: Sequences,
    letters: int = 0,
    count: int = 0,
    wholes: Iterable[WholeCodes] = (),
) -> DeviceSequences:
    """One side of a task, to the device, in arrays for so many letters at least and so
    many sequences; of letters that are some of ``wholes`` these are taken."""
    count = places_of(sequences, count)
    codes, begin = letters_of(sequences, wholes, letters)
    places = sequences.starts + begin, sequences.lengths
    numbers = (padded_integers(x, count) for x in places)
    # One call for all three: each takes a millisecond.
    return jax.device_put(DeviceSequences._make([codes, *numbers]))


def places_of(sequences: Sequences, count: int = 0) -> int:
    """So many sequences, of a side, as its arrays have room for at least; where there
    are many letters, always the same."""
    many = len(sequences.codes) >= MANY_LETTERS
    return max(count, SEQUENCE_ROOMS[-1]) if many else count


def outlined(
    sequences: Sequences,
    letters: int = 0,
    count: int = 0,
    wholes: Iterable[WholeCodes] = (),
) -> DeviceSequences:
    """The shapes of ``load``; many letters come piece by piece, by programs."""
    mine = (x for x in wholes if x.begin(sequences.codes) is not None)
    whole = next(mine, None)
    codes = sequences.codes if whole is None else whole.codes
    needed = max(len(codes), letters if whole is None else 0) + 1
    letters_there = jax.ShapeDtypeStruct((_room(needed, LETTER_ROOMS),), np.uint8)
    if len(codes) >= MANY_LETTERS:
        piece = jax.ShapeDtypeStruct((PIECE,), np.uint8)
        letters_there = _with_piece(
            _no_letters(size=letters_there.size), piece, np.int32(0)
        )
    room = _room(max(len(sequences), places_of(sequences, count)), SEQUENCE_ROOMS)
    numbers = jax.ShapeDtypeStruct((room,), np.int32)
    return DeviceSequences._make([letters_there, numbers, numbers])


def letters_of(
    sequences: Sequences, wholes: Iterable[WholeCodes] = (), least: int = 0
) -> tuple:
    """(codes for JAX's default device, where those of the sequences begin): their own,
    for so many at least, or one of ``wholes`` that they are some of."""
    for whole in wholes:
        begin = whole.begin(sequences.codes)
        if begin is not None:
            return _on_device(whole), begin
    return _letters(sequences.codes, least), 0


def _on_device(whole: WholeCodes) -> jax.Array:
    """All codes of a job, on JAX's default device."""
    device = first_device()
    with _copying:
        there = _whole.setdefault(whole, {})
        if device not in there:
            there[device] = jax.device_put(_letters(whole.codes, 0))
        return there[device]


def padded_integers(values: np.ndarray, count: int = 0) -> np.ndarray:
    """int32, for so many sequences at least."""
    return _long(values, np.int32, count, SEQUENCE_ROOMS)


def _letters(codes: np.ndarray, least: int) -> np.ndarray | jax.Array:
    """Codes in an array for so many letters at least, and one more; many of them on the
    device, piece by piece, without a copy on the host."""
    needed = max(len(codes), least) + 1
    if len(codes) < MANY_LETTERS:
        return _long(codes, np.uint8, needed, LETTER_ROOMS)
    array = _no_letters(size=_room(needed, LETTER_ROOMS))
    for start in range(0, len(codes), PIECE):
        piece = codes[start : start + PIECE]
        if len(piece) < PIECE:
            piece = np.pad(piece, (0, PIECE - len(piece)))
        array = _with_piece(array, piece, np.int32(start))
    return array


@program(("size",))
def _no_letters(*, size: int):
    return jnp.zeros(size, jnp.uint8)


@program(donate_argnums=0)
def _with_piece(array: jax.Array, piece: jax.Array, start: jax.Array):
    return lax.dynamic_update_slice(array, piece, (start,))


def _room(needed: int, sizes: tuple[int, ...]):
    """One of some sizes, or a power of two beyond."""
    return next((x for x in sizes if x >= needed), bucket(needed, 2, sizes[-1]))


def _long(
    values: np.ndarray, dtype: type, least: int, sizes: tuple[int, ...]
) -> np.ndarray:
    """An array of one of the sizes of ``_room``."""
    size = _room(max(len(values), least), sizes)
    array = np.zeros(size, dtype)
    array[: len(values)] = values
    return array
