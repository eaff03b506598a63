"""The second read: where in a FASTA file a record or a letter stands."""

from collections.abc import Iterator
from typing import NamedTuple

from jaxalign.errors import InputError
from jaxalign.io.source import label, open_text

STRETCH = 2**16  # characters of a line that are in memory together


class Place(NamedTuple):
    """A letter with its line and column, both counted from 1."""

    line: int
    column: int
    letter: str


class Stretch(NamedTuple):
    """Characters of a line of a record, or of its header."""

    line: int
    before: int  # characters of the line that come before these
    text: str
    record: int  # from 0
    is_header: bool


def header_line(source: str, buffer: bytes | None, record: int) -> int:
    """Return the line number (from 1) of the header of a record (from 0)."""
    for stretch in _content(source, buffer):
        if stretch.record == record and stretch.is_header:
            return stretch.line
    raise _changed(source)


def letter_place(source: str, buffer: bytes | None, record: int, inside: int) -> Place:
    """Find a letter by its position (from 0) inside a record (from 0)."""
    left = inside
    for line, before, text, current, is_header in _content(source, buffer):
        if current < record or is_header:
            continue
        if current > record:
            break
        count = len("".join(text.split()))
        if left < count:
            columns = [c for c, letter in enumerate(text) if not letter.isspace()]
            at = columns[left]
            return Place(line, before + at + 1, text[at])
        left -= count
    raise _changed(source)


def _content(source: str, buffer: bytes | None) -> Iterator[Stretch]:
    """The lines that ``fasta.records`` reads, in pieces: a line may be a genome."""
    record, number, before, first = -1, 1, 0, ""
    with open_text(source, buffer) as handle:
        while text := handle.readline(STRETCH):
            if not first:
                first = text.lstrip()[:1]
                record += first == ">"
            if first and first != ";":
                yield Stretch(number, before, text, record, first == ">")
            before += len(text)
            if text.endswith("\n"):
                number, before, first = number + 1, 0, ""


def _changed(source: str) -> InputError:
    return InputError(f"{label(source)}: the file changed while it was being read")
