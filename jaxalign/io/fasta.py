"""Read FASTA into one flat code array; a fault is named by line and column."""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TextIO

import numpy as np

from jaxalign.errors import InputError, UsageError
from jaxalign.io.locate import Place, header_line, letter_place
from jaxalign.io.source import in_memory, keep, label, open_text
from jaxalign.model.alphabet import (
    BAD,
    UNKNOWN_POLICIES,
    Alphabet,
    Sequences,
    substitute_unknown,
)

OTHER = re.compile(r"[^\x00-\x7f]")


@dataclass(frozen=True, eq=False)
class RawRecords:
    """The records of one FASTA file, before any alphabet is chosen.

    Attributes
    ----------
    source : str
        The path as given; "-" is standard input.
    names : tuple of str
        First word of each header.
    text : ndarray, shape (total,), uint8
        The ASCII letters of all records, end to end, white space dropped; a
        character outside ASCII stands here as 0.
    offsets : ndarray, shape (n + 1,), int64
        Record ``i`` is ``text[offsets[i]:offsets[i + 1]]``.
    buffer : bytes or None
        The input itself where it cannot be read twice (standard input, pipes).
    before : int
        Records of the file that come before these, for a block of it.
    """

    source: str
    names: tuple[str, ...]
    text: np.ndarray
    offsets: np.ndarray
    buffer: bytes | None = field(default=None, repr=False)
    before: int = 0

    def __len__(self) -> int:
        """Return the number of records."""
        return len(self.names)


def read(
    path: str | os.PathLike[str], alphabet: Alphabet, unknown: str = "error"
) -> Sequences:
    """Read a FASTA file and encode it.

    Parameters
    ----------
    path : path or "-"
        Plain, gzip, bzip2 or xz, told apart by their first bytes; "-" reads
        standard input.
    alphabet : Alphabet
        The letters of the substitution matrix.
    unknown : {"error", "X", "mask"}
        What to do with a letter the alphabet lacks, see `encode`.

    Returns
    -------
    sequences : Sequences
        Names (first word of each header) and uint8 codes, in file order.

    Raises
    ------
    InputError
        See `read_raw` and `encode`.

    Examples
    --------
    >>> from jaxalign.model.scoring import Scoring
    >>> proteins = read("proteins.fasta.gz", Scoring().alphabet)  # doctest: +SKIP
    """
    return encode(read_raw(path), alphabet, unknown)


def read_raw(path: str | os.PathLike[str], buffer: bytes | None = None) -> RawRecords:
    """Read the records of a FASTA file as text.

    Lines that start with ";" and blank lines are skipped, white space inside
    sequences is dropped, and a header without sequence is a record of length 0.

    Parameters
    ----------
    path : path or "-"
        Plain, gzip, bzip2 or xz; "-" reads standard input.
    buffer : bytes, optional
        What `io.source.keep` returned, if it was asked before.

    Returns
    -------
    raw : RawRecords

    Raises
    ------
    InputError
        The file is missing, damaged or empty, does not start with ">", or a
        record has no name or the name of an earlier record.
    MemoryPlanError
        What it holds does not fit into memory.
    """
    source = os.fspath(path)
    with in_memory(source):
        buffer = keep(source) if buffer is None else buffer
        with open_text(source, buffer) as handle:
            check_first_line(source, handle)
            names, parts = zip(*records(handle), strict=True)
        raw = raw_records(source, names, parts, buffer)
        check_names(raw)
    return raw


def raw_records(
    source: str,
    names: Sequence[str],
    parts: Sequence[bytes],
    buffer: bytes | None,
) -> RawRecords:
    """Names and letters of some records as one flat text."""
    offsets = np.zeros(len(names) + 1, np.int64)
    np.cumsum([len(part) for part in parts], out=offsets[1:])
    flat = np.frombuffer(b"".join(parts), np.uint8)
    return RawRecords(source, tuple(names), flat, offsets, buffer)


def encode(raw: RawRecords, alphabet: Alphabet, unknown: str = "error") -> Sequences:
    """Translate the letters of all records in one look-up.

    Parameters
    ----------
    raw : RawRecords
        What `read_raw` returned.
    alphabet : Alphabet
        The letters of the substitution matrix.
    unknown : {"error", "X", "mask"}
        "error" refuses every letter the alphabet lacks; "X" reads U, O and J of
        proteins as the wildcard; "mask" reads every letter A-Z the alphabet lacks
        as the wildcard. Digits, "-" and other signs are always refused.

    Returns
    -------
    sequences : Sequences

    Raises
    ------
    InputError
        A letter is refused; the message names file, record, line and column.
    UsageError
        `unknown` is none of the three.
    """
    return encode_counted(raw, alphabet, unknown)[0]


def encode_counted(
    raw: RawRecords, alphabet: Alphabet, unknown: str = "error"
) -> tuple[Sequences, int]:
    """Do the same as `encode` and say how many letters became the wildcard.

    Parameters
    ----------
    raw, alphabet, unknown
        As for `encode`.

    Returns
    -------
    sequences : Sequences
    substituted : int
        Number of residues read as the wildcard because of `unknown`.

    Raises
    ------
    InputError
        As for `encode`.
    """
    if unknown not in UNKNOWN_POLICIES:
        choices = ", ".join(UNKNOWN_POLICIES)
        raise UsageError(f"unknown={unknown!r} is no policy; choose from {choices}")
    with in_memory(raw.source):
        codes, substituted = substitute_unknown(raw.text, alphabet, unknown)
        bad = codes == BAD
        if bad.any():
            raise _bad_letter(raw, alphabet, bad)
    sequences = Sequences(raw.names, codes, raw.offsets, alphabet)
    return sequences, int(substituted)


def records(handle: TextIO) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the letters of each record."""
    header, lines = None, []
    for line in map(str.strip, handle):
        if line.startswith(">"):
            if header is not None:
                yield _name(header), b"".join(lines)
            header, lines = line[1:], []
        elif line and line[0] != ";":
            lines.append(_letters(line))
    if header is not None:
        yield _name(header), b"".join(lines)


def _name(header: str) -> str:
    return (header.split(maxsplit=1) or [""])[0]


def _letters(line: str) -> bytes:
    """A line without white space, one byte per character, which keeps columns right:
    what is not ASCII is 0, which is never a letter."""
    letters = "".join(line.split())
    if not letters.isascii():
        letters = OTHER.sub("\0", letters)
    return letters.encode("ascii")


def check_first_line(source: str, handle: TextIO) -> None:
    """Refuse a file that is empty or does not begin with a header."""
    # ``records`` drops what stands before the first ">" without a word.
    number = 0
    for number, line in enumerate(handle, 1):  # noqa: B007
        line = line.strip()
        if line.startswith(">"):
            handle.seek(0)
            return
        if line and not line.startswith(";"):
            raise _no_header(source, number, line)
    what = "holds no record, only blank or ';' lines" if number else "is empty"
    raise InputError(f"{label(source)}: the file {what}; FASTA needs a '>' line")


def _no_header(source: str, line_number: int, line: str) -> InputError:
    shown = line if len(line) <= 40 else line[:40] + "..."
    hint = "\nhint: this looks like FASTQ" if line.startswith("@") else ""
    return InputError(
        f"{label(source)}, line {line_number}, column 1: a FASTA file starts with a "
        f"'>' header line, this one with {shown!r}{hint}"
    )


def check_names(raw: RawRecords) -> None:
    """Refuse an empty name, or one that comes twice among these records."""
    if len(set(raw.names)) == len(raw.names) and "" not in raw.names:
        return
    first: dict[str, int] = {}
    for record, name in enumerate(raw.names):
        if not name:
            raise _nameless(raw, record)
        if name in first:
            raise duplicate(raw, raw.before + first[name], record)
        first[name] = record


def _nameless(raw: RawRecords, record: int) -> InputError:
    record += raw.before
    line = header_line(raw.source, raw.buffer, record)
    return InputError(
        f"{label(raw.source)}, line {line}, column 1: record {record + 1} has an empty "
        "header; the first word after '>' is its name"
    )


def duplicate(raw: RawRecords, first: int, second: int) -> InputError:
    """The name of record ``second`` of these is that of ``first`` of the file."""
    record = raw.before + second
    here = header_line(raw.source, raw.buffer, record)
    there = header_line(raw.source, raw.buffer, first)
    return InputError(
        f"{label(raw.source)}, line {here}, column 1: record {record + 1} has the name "
        f"{raw.names[second]!r} of record {first + 1} (line {there}); names, the first "
        "word of each header, must differ"
    )


def _bad_letter(raw: RawRecords, alphabet: Alphabet, bad: np.ndarray) -> InputError:
    position = int(np.argmax(bad))
    record = int(np.searchsorted(raw.offsets, position, side="right")) - 1
    inside = position - int(raw.offsets[record])
    place = letter_place(raw.source, raw.buffer, raw.before + record, inside)
    more = int(bad.sum()) - 1
    return InputError(
        f"{label(raw.source)}, line {place.line}, column {place.column}: record "
        f"{raw.before + record + 1} ({raw.names[record]!r}) holds {place.letter!r}"
        + (f" (and {more} more unknown letter{'s' * (more > 1)})" if more else "")
        + f"; {alphabet.rule()}"
        + _hint(place, alphabet)
    )


def _hint(place: Place, alphabet: Alphabet) -> str:
    letter, wildcard = place.letter.upper(), alphabet.wildcard
    if letter in "-.":
        return "\nhint: sequences go in unaligned; take the gaps out"
    if wildcard is None or not ("A" <= letter <= "Z"):
        return ""
    if alphabet.kind == "dna" and letter == "U":
        return "\nhint: --alphabet rna reads U"
    if alphabet.kind == "protein" and letter in "UOJ":
        return f"\nhint: --unknown X reads U, O and J as {wildcard}"
    return f"\nhint: --unknown mask reads every letter outside it as {wildcard}"
