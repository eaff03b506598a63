"""Sequences of any letters, as codes made from the letters themselves.

Edit distances need no alphabet: two letters are the same, or they are not. So letters
are the characters of a str, as they stand there: ``a`` is not ``A``.
"""

from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from jaxalign.errors import InputError
from jaxalign.model.alphabet import Sequences, is_flat
from jaxalign.model.items import item_of, items_of

MAX_TABLE = 2**21  # values that a table has room for; those of Unicode are fewer


@dataclass(frozen=True, eq=False)
class LetterCodes:
    """Some sequences as one flat array of codes, and the number of different codes.

    Attributes
    ----------
    codes : uint8, uint16 or uint32 (letters,), each less than ``size``
    offsets : int64 (n + 1,)
    size : int
        Of all sets that were encoded together.
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

    def folded(self, size: int) -> "LetterCodes":
        """The same with at most ``size`` codes, some of which stand for several. No
        distance is greater than before."""
        if self.size <= size:
            return self
        return LetterCodes((self.codes % size).astype(np.uint8), self.offsets, size)


def encode(*sets: Any) -> list[LetterCodes]:
    """Sets of sequences -> their codes, the same for the same letter in all of them.

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
    flat = [_flat(one) for one in sets]
    kinds = {text for _, offsets, text in flat if offsets[-1]}
    if len(kinds) > 1:
        raise InputError(
            "some sequences are text and others numbers: what is the same?"
        )
    size, codes = _numbered(np.concatenate([x for x, _, _ in flat]))
    parts = np.split(codes, np.cumsum([len(x) for x, _, _ in flat])[:-1])
    return [
        LetterCodes(part, offsets, size)
        for part, (_, offsets, _) in zip(parts, flat, strict=True)
    ]


def _numbered(flat: np.ndarray) -> tuple[int, np.ndarray]:
    """(how many different values there are, the rank of each)."""
    if flat.min(initial=0) < 0 or flat.max(initial=0) >= MAX_TABLE:
        known, codes = np.unique(flat, return_inverse=True)
        return len(known), codes.astype(np.min_scalar_type(len(known)))
    seen = np.zeros(int(flat.max(initial=0)) + 1, bool)
    seen[flat] = True
    size = int(np.count_nonzero(seen))
    ranks = (np.cumsum(seen) - 1).clip(0).astype(np.min_scalar_type(size))
    return size, ranks.take(flat)


def _flat(data: Any) -> tuple[np.ndarray, np.ndarray, bool]:
    """(letters as numbers, offsets, whether they are text)."""
    if isinstance(data, Sequences):
        data = data.texts()
    if is_flat(data):
        return np.asarray(data[0]), np.asarray(data[1], np.int64), False
    items = [item_of(one, k).content for k, one in enumerate(items_of(data))]
    items = [x.decode("latin-1") if isinstance(x, bytes) else x for x in items]
    offsets = np.array([*accumulate(map(len, items), initial=0)], np.int64)
    if all(isinstance(one, str) for one in items):
        text = "".join(items)
        if text.isascii():
            return np.frombuffer(text.encode(), np.uint8), offsets, True
        numbers = text.encode("utf-32-le", "surrogatepass")
        return np.frombuffer(numbers, "<u4"), offsets, True
    arrays = [_numbers(one) for one in items if len(one)]
    return np.concatenate([np.zeros(0, np.uint8), *arrays]), offsets, False


def _numbers(one: Any) -> np.ndarray:
    array = np.asarray(one)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InputError(
            "the letters of a sequence are those of a text or whole numbers in one "
            f"dimension, not {array.dtype} of shape {array.shape}"
        )
    return array


def joined(one: LetterCodes, other: LetterCodes) -> LetterCodes:
    """The sequences of one set and then those of another, encoded together."""
    codes = np.concatenate([one.codes, other.codes])
    offsets = np.concatenate([one.offsets, other.offsets[1:] + one.offsets[-1]])
    return LetterCodes(codes, offsets, one.size)
