"""The second read: where in a FASTA file a record or a letter stands."""

from collections.abc import Iterator
from typing import NamedTuple

from jaxalign.errors import InputError
from jaxalign.io.source import label, open_text

STRETCH = 2**16  # characters of a line that are looked at together


class Place(NamedTuple):
    """A letter with its line and column, both counted from 1."""

    line: int
    column: int
    letter: str


def header_line(source: str, buffer: bytes | None, record: int) -> int:
    """Return the line number (from 1) of the header of a record (from 0)."""
    for number, line, current in _content(source, buffer):
        if current == record and line.lstrip().startswith(">"):
            return number
    raise _changed(source)


def letter_place(source: str, buffer: bytes | None, record: int, inside: int) -> Place:
    """Find a letter by its position (from 0) inside a record (from 0)."""
    left = inside
    for number, line, current in _content(source, buffer):
        if current < record or line.lstrip().startswith(">"):
            continue
        if current > record:
            break
        for start in range(0, len(line), STRETCH):
            stretch = line[start : start + STRETCH]
            count = len("".join(stretch.split()))
            if left < count:
                columns = [
                    c for c, letter in enumerate(stretch) if not letter.isspace()
                ]
                at = columns[left]
                return Place(number, start + at + 1, stretch[at])
            left -= count
    raise _changed(source)


def _content(source: str, buffer: bytes | None) -> Iterator[tuple[int, str, int]]:
    # The same lines that biotite's read_iter uses, so that positions agree.
    record = -1
    with open_text(source, buffer) as handle:
        for number, line in enumerate(handle, 1):
            bare = line.strip()
            if not bare or bare.startswith(";"):
                continue
            record += bare.startswith(">")
            yield number, line, record


def _changed(source: str) -> InputError:
    return InputError(f"{label(source)}: the file changed while it was being read")
