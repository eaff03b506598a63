r"""Names in text: a control character in a name cannot end a field, a row or a line.

A name is written as it stands, unless it holds a control character (C0, DEL, C1, one of
Unicode's two line separators, or a surrogate, which stands for a byte that is no UTF-8)
or something that would be read back as an escape. In such a name a tab is ``\t``, a
line feed ``\n``, a carriage return ``\r``, any other control character ``\xHH`` or
``\uHHHH``, and a backslash is doubled. ``read_back`` gives every name back as it was,
written in either way.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

STRETCH = 2**12  # names that are looked at together
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_ESCAPE = re.compile(r"\\(?:([tnr\\])|x([0-9a-f]{2})|u([0-9a-f]{4}))")
_SHORT = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\\": "\\\\"}
_LONG = {escape[1]: letter for letter, escape in _SHORT.items()}


def written(name: str) -> str:
    r"""A name as text files and messages hold it, on one line and in one field.

    Parameters
    ----------
    name : str

    Returns
    -------
    str

    Examples
    --------
    >>> print(written("sp|P69905"), written("a\tb\\c"))
    sp|P69905 a\tb\\c
    """
    if not (CONTROL.search(name) or _ESCAPE.search(name)):
        return name
    doubled = name.replace("\\", "\\\\")
    return CONTROL.sub(lambda match: _escape(match[0]), doubled)


def all_written(names: Sequence[str]) -> Sequence[str]:
    """Escape many names as ``written`` does; no copy if none needs it."""
    text = "".join(names)
    if "\\" not in text and not CONTROL.search(text):
        return names
    return tuple(map(written, names))


def visible(text: str) -> str:
    r"""Text that a terminal prints and does not obey: control characters are escapes,
    but for tabs and line feeds, and nothing else changes.

    Examples
    --------
    >>> print(visible("a\x1b[31mb"))
    a\x1b[31mb
    """
    return CONTROL.sub(
        lambda match: match[0] if match[0] in "\t\n" else _escape(match[0]), text
    )


def read_back(text: str) -> str:
    r"""Undo ``written``.

    Examples
    --------
    >>> read_back(written("a\tb\\t\n")) == "a\tb\\t\n"
    True
    """
    return _ESCAPE.sub(_letter, text)


def _escape(letter: str) -> str:
    code = ord(letter)
    return _SHORT.get(letter) or (f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}")


def _letter(match: re.Match) -> str:
    short, two, four = match.groups()
    return _LONG[short] if short else chr(int(two or four, 16))


@dataclass(frozen=True, eq=False)
class Names:
    """Names end to end, decoded when they are asked for: those of a large file.

    text : ndarray, uint8, UTF-8
    places : ndarray, int64, shape (n + 1,): where each begins, and the end
    """

    text: np.ndarray
    places: np.ndarray

    def __len__(self) -> int:
        return len(self.places) - 1

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            start, stop, _ = index.indices(len(self))
            return Names(self.text, self.places[start : stop + 1])
        index = range(len(self))[index]
        start, stop = self.places[index : index + 2]
        return self.text[start:stop].tobytes().decode(errors="replace")

    def __iter__(self) -> Iterator[str]:
        for first in range(0, len(self), STRETCH):
            places = self.places[first : first + STRETCH + 1]
            text = self.text[places[0] : places[-1]].tobytes()
            sides = pairwise((places - places[0]).tolist())
            yield from (text[a:b].decode(errors="replace") for a, b in sides)


def names_of(names: Iterable[str]) -> Names:
    """Encode names end to end; no copy of those that are."""
    if isinstance(names, Names):
        text, places = names.text, names.places
        return Names(text[places[0] : places[-1]], places - places[0])
    words = [name.encode(errors="surrogatepass") for name in names]
    places = np.zeros(len(words) + 1, np.int64)
    np.cumsum([len(word) for word in words], out=places[1:])
    return Names(np.frombuffer(b"".join(words), np.uint8), places)


def hashes_of(names: Iterable[str]) -> np.ndarray:
    """A hash of each name, int64, the same in every process: of each of its bytes a
    random number times that of its place, summed."""
    encoded = names_of(names)
    widths = np.diff(encoded.places)
    dice = np.random.default_rng(2011)
    of_byte = dice.integers(2**63, size=256)
    of_place = dice.integers(2**62, size=int(widths.max(initial=0))) * 2 + 1
    hashes = np.zeros(len(widths), np.int64)
    for first in range(0, len(widths), STRETCH):
        places = encoded.places[first : first + STRETCH + 1]
        text = encoded.text[places[0] : places[-1]]
        starts = np.repeat(places[:-1], widths[first : first + STRETCH])
        products = of_byte[text] * of_place[np.arange(*places[[0, -1]]) - starts]
        sums = np.concatenate([[0], np.cumsum(products)])  # of int64: they wrap around
        hashes[first : first + STRETCH] = np.diff(sums[places - places[0]])
    return hashes
