"""Sequences of any letters, as codes made from the letters themselves.

Edit distances need no alphabet: two letters are the same, or they are not. So letters
are the characters of a str, as they stand there: ``a`` is not ``A``.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from jaxalign.errors import InputError
from jaxalign.model.alphabet import Sequences, checked_offsets, is_flat
from jaxalign.model.items import item_of, items_of
from jaxalign.model.selection import ranks

FEW = 4096  # texts that are joined at once: copies of more leave the cache
STRETCH = 2**18  # values that are looked at together
MAX_TABLE = 2**21  # values that a table has room for; those of Unicode are fewer


@dataclass(frozen=True, eq=False)
class LetterCodes:
    """Some sequences as one flat array of codes, and the number of codes.

    Attributes
    ----------
    codes : uint8, uint16 or uint32 (letters,), each less than ``size``
    offsets : int64 (n + 1,)
    size : int
        Of all sets that were encoded together; some codes may have no letter.
    """

    codes: np.ndarray
    offsets: np.ndarray
    size: int

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> np.ndarray:
        return self.codes[self.offsets[index] : self.offsets[index + 1]]

    @property
    def lengths(self) -> np.ndarray:
        """(n,) int64."""
        return np.diff(self.offsets)

    @property
    def starts(self) -> np.ndarray:
        """(n,) int64: where each begins."""
        return self.offsets[:-1]

    def chosen(self, which: np.ndarray) -> "LetterCodes":
        """Some of the sequences, by their numbers, int64."""
        if len(which) and (np.diff(which) == 1).all():  # a part, without a copy
            offsets = self.offsets[which[0] : which[-1] + 2]
            codes = self.codes[offsets[0] : offsets[-1]]
            return LetterCodes(codes, offsets - offsets[0], self.size)
        lengths = self.lengths[which]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        places = np.repeat(self.starts[which], lengths) + ranks(lengths)
        return LetterCodes(self.codes[places], offsets, self.size)

    def folded(self, size: int) -> "LetterCodes":
        """The same with at most ``size`` codes, some of which stand for several. No
        distance is greater than before."""
        if self.size <= size:
            return self
        return LetterCodes((self.codes % size).astype(np.uint8), self.offsets, size)


def encode(*sets: Any) -> tuple[LetterCodes, list[int]]:
    """Sets of sequences, one after the other, and how many each has.

    Parameters
    ----------
    *sets : Sequences, mapping or iterable of sequences, or flat ``(codes, offsets)``
        Sequences in the forms of ``jaxalign.model.items``. Numbers of an array are
        letters.

    Raises
    ------
    InputError
        It is no set, or some sequences are text and others numbers.
    """
    parts = [_letters(sequences) for sequences in sets]
    lengths = np.concatenate([part.lengths for part in parts])
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    filled = [part for part in parts if part.lengths.any()]
    if len({part.text for part in filled}) > 1:
        raise InputError(
            "some sequences are text and others numbers: what is the same?"
        )
    flat = _joined([array for part in filled for array in part.flat])
    if filled and all(part.known for part in filled):
        size, codes = _fewer(flat, set().union(*(part.known for part in filled)))
    else:
        size, codes = _numbered(flat)
    return LetterCodes(codes, offsets, size), [len(part.lengths) for part in parts]


class _SetLetters(NamedTuple):
    """The letters of a set, as numbers in arrays one after the other."""

    flat: list[np.ndarray]
    lengths: np.ndarray
    text: bool
    known: set[int]  # those of an ASCII text, or of bytes


def _fewer(flat: np.ndarray, known: set[int]) -> tuple[int, np.ndarray]:
    """(a number of letters, numbers below it instead of ASCII)."""
    low, high = min(known), max(known)
    if (high - low + 1).bit_length() == len(known).bit_length():
        flat -= np.uint8(low)  # as short as ranks
        return high - low + 1, flat
    ranks = np.zeros(256, np.uint8)
    ranks[sorted(known)] = np.arange(len(known))
    codes = flat.tobytes().translate(ranks.tobytes())
    return len(known), np.frombuffer(codes, np.uint8)


def _numbered(flat: np.ndarray) -> tuple[int, np.ndarray]:
    """(how many different values there are, the rank of each)."""
    if flat.min(initial=0) < 0 or flat.max(initial=0) >= MAX_TABLE:
        known, codes = np.unique(flat, return_inverse=True)
        return len(known), codes.astype(np.min_scalar_type(len(known)))
    seen = np.zeros(int(flat.max(initial=0)) + 1, bool)
    seen[flat] = True
    size = int(np.count_nonzero(seen))
    ranks = (np.cumsum(seen) - 1).clip(0).astype(np.min_scalar_type(size))
    return size, ranks.take(flat, mode="clip")


def _letters(data: Any) -> _SetLetters:
    if isinstance(data, Sequences):
        letters = data.alphabet.letters.encode()
        flat = data.codes.tobytes().translate(letters.ljust(256))
        flat = np.frombuffer(flat, np.uint8)
        return _SetLetters([flat], data.lengths, True, _known(flat))
    if is_flat(data):
        flat = _numbers(data[0])
        offsets = checked_offsets(data[1], len(flat))
        known = _known(flat) if flat.dtype == np.uint8 else set[int]()
        return _SetLetters([flat], np.diff(offsets), False, known)
    items = items_of(data)
    try:
        return _of_texts(items)
    except TypeError:  # some are no str
        items = [item_of(item, k).content for k, item in enumerate(items)]
    items = [x.decode("latin-1") if isinstance(x, bytes) else x for x in items]
    if all(isinstance(item, str) for item in items):
        return _of_texts(items)
    arrays = [_numbers(item) for item in items if len(item)]
    lengths = np.array([*map(len, items)], np.int64)
    return _SetLetters(arrays, lengths, False, set())


def _joined(arrays: list[np.ndarray]) -> np.ndarray:
    """Numbers of several arrays one after the other, as their ranks where no integer
    of NumPy holds all of them: int64 beside uint64 would be float64, which takes
    neighbours for equal."""
    flat = [np.zeros(0, np.uint8), *arrays]
    if np.result_type(*flat).kind != "f":
        return np.concatenate(flat)
    exact = np.concatenate([array.astype(object) for array in flat])
    return np.unique(exact, return_inverse=True)[1]


def _of_texts(texts: list[str]) -> _SetLetters:
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    flat, at, known = np.empty(lengths.sum(), np.uint8), 0, set()
    for k in range(0, len(texts), FEW):
        text = "".join(texts[k : k + FEW])
        if not text.isascii():
            points = "".join(texts).encode("utf-32-le", "surrogatepass")
            return _SetLetters([np.frombuffer(points, "<u4")], lengths, True, set())
        letters = text.encode()
        flat[at : at + len(letters)] = np.frombuffer(letters, np.uint8)
        _add_letters(known, letters, flat[at : at + len(letters)])
        at += len(letters)
    return _SetLetters([flat], lengths, True, known)


def _known(flat: np.ndarray) -> set[int]:
    """The values of an array of bytes."""
    known: set[int] = set()
    for at in range(0, len(flat), STRETCH):
        few = flat[at : at + STRETCH]
        _add_letters(known, few.tobytes(), few)
    return known


def _add_letters(known: set[int], letters: bytes, values: np.ndarray) -> None:
    """Add the letters of a text, of which an array has the values."""
    # To look for a letter that is there takes no time.
    span = range(int(values.min(initial=255)), int(values.max(initial=0)) + 1)
    known.update(c for c in span if c not in known and c in letters)


def _numbers(item: Any) -> np.ndarray:
    array = np.asarray(item)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InputError(
            "the letters of a sequence are those of a text or whole numbers in one "
            f"dimension, not {array.dtype} of shape {array.shape}"
        )
    return array
