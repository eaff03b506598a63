"""Read FASTA into one flat code array; a fault is named by line and column.

A file is read by chunks of whole records, which threads split in NumPy. Most chunks are
plain: nothing but letters in the lines of a sequence. All others are read line by line,
by ``records``. ``read`` makes one block of all chunks, and ``read_blocks`` blocks of a
file that may be larger than memory. Where a fault stands is found by a second read
(``header_line``, ``letter_place``).

``read_family`` reads aligned FASTA, and ``pfam`` the seed alignments that are shipped.
"""

import io
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TextIO

import numpy as np

from jaxalign.errors import InputError, UsageError
from jaxalign.model.alphabet import (
    AS_WRITTEN,
    BAD,
    NUCLEIC,
    UNKNOWN_POLICIES,
    Alphabet,
    Names,
    Reading,
    Sequences,
    as_ascii,
    hashes_of,
    named_alphabet,
    names_of,
    substitute_unknown,
)
from jaxalign.model.profile import FAMILY_GAP, Family
from jaxalign.model.source import (
    STDIN,
    in_memory,
    keep,
    label,
    open_bytes,
    open_text,
    reads_again,
    states_path,
)
from jaxalign.model.strands import protein_letters
from jaxalign.runtime.pipeline import default_threads, in_advance

CHUNK, LEAST_CHUNK = 2**20, 2**16  # bytes that are read at once
THREADS = min(2, default_threads())
STRETCH = 2**16  # characters of a line that are in memory together
NEWLINE, HEADER, COMMENT, STOP = 10, ord(">"), ord(";"), ord("*")
SPACE, DELETE = 32, 127  # what is between them is visible
VISIBLE = bytes(x if SPACE < x < DELETE else BAD for x in range(256))
NAME_WIDTH, PADDING = 32, b"\n" * 128  # of most names, and of any that is looked up
# Of a heading of UniProt, and of UniRef
TAXON_WORDS, TAXON_DIGITS, EQUALS = (b"OX", b"TaxID"), 9, ord("=")
TAXON = re.compile(r"\b(?:OX|TaxID)=(\d{1,9})\b", re.ASCII)
IS_WORD = np.array([bool(re.match(r"\w", chr(x), re.ASCII)) for x in range(256)])
INDENTED = re.compile(rb"\n[\t\x0b\x0c\x1c-\x1f ]+>")
NO_TAXON = -1
IS_SPACE = np.array([chr(sign).isspace() for sign in range(256)])
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
OTHER = re.compile(r"[^\x00-\x7f]")


@dataclass(frozen=True, eq=False)
class RawRecords:
    """The records of one FASTA file, before any alphabet is chosen.

    source : the path as given; "-" is standard input.
    names : first word of each header: a tuple, or ``Names`` of a block.
    text : ndarray, uint8. The ASCII letters of all records, end to end, white space
        dropped; a character outside ASCII stands here as 0. Of ``read_blocks`` codes.
    offsets : ndarray, shape (n + 1,), int64. Record ``i`` is
        ``text[offsets[i]:offsets[i + 1]]``.
    buffer : the input itself where it cannot be read twice (standard input, pipes).
    before : records of the file that come before these, for a block of it.
    substituted : letters that were read as the wildcard.
    """

    source: str
    names: Any
    text: np.ndarray
    offsets: np.ndarray
    buffer: bytes | None = field(default=None, repr=False)
    before: int = 0
    substituted: int = 0

    def __len__(self) -> int:
        """Return the number of records."""
        return len(self.names)

    def texts(self) -> list[str]:
        """Return the letters of each record, as they stand in the file."""
        text, ends = self.text.tobytes().decode("latin-1"), self.offsets.tolist()
        return [text[start:stop] for start, stop in pairwise(ends)]


class ChunkRecords(NamedTuple):
    """Names and letters of consecutive records: uint8 letters end to end, or codes
    where they are encoded, and the length of each record."""

    names: Names | list[str]
    text: np.ndarray
    lengths: np.ndarray
    encoded: bool = False


class Place(NamedTuple):
    """A letter with its line and column, both counted from 1."""

    line: int
    column: int
    letter: str


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


def read_raw(
    path: str | os.PathLike[str],
    buffer: bytes | None = None,
    reading: Reading = AS_WRITTEN,
) -> RawRecords:
    """Read the records of a FASTA file as text.

    Lines that start with ";" and blank lines are skipped, white space inside
    sequences is dropped, and a header without sequence is a record of length 0.

    Parameters
    ----------
    path : path or "-"
        Plain, gzip, bzip2 or xz; "-" reads standard input.
    buffer : bytes, optional
        What `model.source.keep` returned, if it was asked before.

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
        (raw,) = _raw_blocks(source, buffer, sys.maxsize, sys.maxsize, reading, {})
        _check_names(raw)
        return replace(raw, names=tuple(raw.names))


def read_blocks(
    path: str | os.PathLike[str],
    alphabet: Alphabet,
    reading: Reading = AS_WRITTEN,
    residues: int = 2**26,
    records: int = 2**20,
    counts: dict[str, int] | None = None,
    taxa: list[np.ndarray] | None = None,
) -> Iterator[tuple[Sequences, int]]:
    """Yield blocks of a FASTA file, encoded, and how many residues of each were read as
    the wildcard because of ``unknown``; checks and errors are those of ``read``.

    counts : of names in files before this one, where they are numbered
    taxa : filled with the taxa of the records (``record_taxa``), where they are wanted

    A block ends with the record that reaches either number. An error comes when its
    block is read; earlier blocks have been yielded by then.
    """
    source, hashes = os.fspath(path), NameHashes()
    if alphabet.states is not None:
        about = reading, residues, records
        first = read_blocks(source, replace(alphabet, states=None), *about, {}, taxa)
        path = _states_beside(source)
        second = read_blocks(path, alphabet.states, *about, {})
        for block, states in zip_longest(first, second):
            if block is None or states is None:
                raise InputError(f"{label(source)}, {label(path)}: unequal lengths")
            yield block[0].with_states(states[0]), block[1] + states[1]
        return
    counts = {} if counts is None else counts
    compared = hashes if reading.names == "error" else None
    about = residues, records, reading, counts, taxa, alphabet
    _check_policy(reading.unknown)
    for raw in _raw_blocks(source, keep(source), *about):
        _check_names(raw, compared)
        yield _sequences(raw, raw.text, alphabet), raw.substituted


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


def proteins_alone(raw: RawRecords) -> RawRecords:
    """Replace the letters of nucleotides among proteins by X."""
    text = "".join(map(protein_letters, raw.texts())).encode("latin-1")
    return replace(raw, text=np.frombuffer(text, np.uint8))


def encode_counted(
    raw: RawRecords, alphabet: Alphabet, unknown: str = "error"
) -> tuple[Sequences, int]:
    """Encode records as `encode` does, and count letters read as the wildcard.

    raw, alphabet, unknown : as for `encode`.
    """
    _check_policy(unknown)
    if alphabet.states is not None:
        states = read_raw(_states_beside(raw.source))
        first, count = encode_counted(raw, replace(alphabet, states=None), unknown)
        second, of_states = encode_counted(states, alphabet.states, unknown)
        return first.with_states(second), count + of_states
    with in_memory(raw.source):
        codes, substituted = substitute_unknown(raw.text, alphabet, unknown)
        return _sequences(raw, codes, alphabet), substituted


def _states_beside(source: str) -> str:
    """The file of the second track of a FASTA file.

    Raises InputError: none is there.
    """
    path = states_path(source)
    if source == STDIN or not os.path.exists(path):
        raise InputError(
            f"{label(source)}: the scoring has two tracks, and {path} with the states "
            "is not there\nhint: `jaxalign structures` writes both"
        )
    return path


def _check_policy(unknown: str) -> None:
    if unknown not in UNKNOWN_POLICIES:
        choices = ", ".join(UNKNOWN_POLICIES)
        raise UsageError(
            f"unknown = {unknown!r} is not a policy; choose from {choices}"
        )


def _sequences(raw: RawRecords, codes: np.ndarray, alphabet: Alphabet) -> Sequences:
    """Name encoded records; refuse a letter that the alphabet lacks."""
    if codes.max(initial=0) == BAD:
        bad = codes == BAD
        position = int(np.argmax(bad))
        record = int(np.searchsorted(raw.offsets, position, side="right")) - 1
        inside = position - int(raw.offsets[record])
        place = letter_place(raw.source, raw.buffer, raw.before + record, inside)
        extra, number = int(bad.sum()) - 1, raw.before + record + 1
        hint = _hint(place, alphabet, float(bad.mean()))
        further = f" (and {extra} more unknown letter{'s' * (extra > 1)})"
        raise InputError(
            f"{label(raw.source)}, line {place.line}, column {place.column}: "
            f"record {number} ({raw.names[record]!r}) holds {place.letter!r}"
            f"{further if extra else ''}; {alphabet.rule()}{hint}"
        )
    return Sequences(raw.names, codes, raw.offsets, alphabet)


def _raw_blocks(
    source: str,
    buffer: bytes | None,
    residues: int,
    records: int,
    reading: Reading,
    counts: dict[str, int],
    taxa: list[np.ndarray] | None = None,
    alphabet: Alphabet | None = None,
) -> Iterator[RawRecords]:
    """Yield the records of a file in blocks, encoded where an alphabet is given; each
    ends with the record that reaches either number. ``counts`` : of the names so far,
    where they are numbered."""
    with open_text(source, buffer) as handle:
        check_first_line(source, handle)
    names, lengths = list[Names](), list[np.ndarray]()  # of chunks, for a block
    # One array that grows, and the next as large: parts would be copied once more.
    room = np.zeros(0, np.uint8)
    before = size = count = substituted = 0

    def block() -> RawRecords:
        offsets = np.concatenate([[0], np.cumsum(np.concatenate(lengths))])
        about = offsets, buffer, before, substituted
        return RawRecords(source, _joined(names), room[:size], *about)

    about = max(residues, LEAST_CHUNK), alphabet, reading.strip_stop, taxa
    with open_bytes(source, buffer) as handle:
        for new_names, text, widths, encoded in record_chunks(handle, *about):
            if reading.names == "number":
                new_names = numbered(new_names, counts)
            new_names = names_of(new_names)
            while len(widths):
                ends = np.cumsum(widths)
                reach = int(np.searchsorted(ends, residues - size)) + 1
                stop = min(reach, records - count, len(widths))
                letters = int(ends[stop - 1])
                part, text = text[:letters], text[letters:]
                if alphabet is not None and not encoded:
                    part, hits = substitute_unknown(part, alphabet, reading.unknown)
                    substituted += hits
                if size + letters > len(room):
                    larger = np.empty(max(size + letters, 2 * len(room)), np.uint8)
                    larger[:size] = room[:size]
                    room = larger
                room[size : size + letters] = part
                names.append(new_names[:stop])
                lengths.append(widths[:stop])
                size, count = size + letters, count + stop
                new_names, widths = new_names[stop:], widths[stop:]
                if size >= residues or count >= records:
                    yield block()
                    before += count
                    size = count = substituted = 0
                    names, lengths, room = [], [], np.empty(len(room), np.uint8)
    if count:
        yield block()


def numbered(names: Iterable[str], counts: dict[str, int]) -> list[str]:
    """Give each name that comes again the first number that makes it unique.

    counts : of each name so far, the number to try next; is changed

    Examples
    --------
    >>> numbered(["a", "b", "a", "a_2", "a"], {})
    ['a', 'b', 'a_2', 'a_2_2', 'a_3']
    """
    renamed = []
    for name in names:
        unique = name
        while unique and unique in counts:
            unique = f"{name}_{counts[name]}"
            counts[name] += 1
        counts[unique] = 2
        renamed.append(unique)
    return renamed


def _joined(parts: Sequence[Names]) -> Names:
    """Put the names of parts one after the other."""
    names = [*map(names_of, parts)]
    sizes = np.cumsum([0, *(len(x.text) for x in names)])
    places = [x.places[1:] + size for x, size in zip(names, sizes, strict=False)]
    text = np.concatenate([x.text for x in names])
    return Names(text, np.concatenate([[0], *places]))


def record_chunks(
    handle: BinaryIO,
    size: int = sys.maxsize,
    alphabet: Alphabet | None = None,
    strip_stop: bool = False,
    taxa: list[np.ndarray] | None = None,
) -> Iterator[ChunkRecords]:
    """Yield the records of a stream of bytes, in order; before the first record there
    are only blank lines and comments.

    size : bytes that are read at once, ``CHUNK`` at most
    alphabet : encode the chunks of which it has every letter
    strip_stop : take a stop off the end of each sequence
    taxa : filled with the taxa of the records, where they are wanted
    """

    def split(chunk: bytearray) -> tuple[np.ndarray | None, ChunkRecords]:
        numbers = None if taxa is None else record_taxa(chunk)
        return numbers, _split(chunk, alphabet, strip_stop)

    chunks = _whole_records(handle, min(size, CHUNK))
    # A short file needs no thread, and of a genome two are not in memory.
    for numbers, chunk_records in in_advance(
        split, chunks, THREADS, lambda chunk: not CHUNK // 2 < len(chunk) < 16 * CHUNK
    ):
        if taxa is not None:
            taxa.append(numbers)
        yield chunk_records


def _whole_records(handle: BinaryIO, size: int) -> Iterator[bytearray]:
    """Yield chunks of a stream; each ends before a record or with the stream."""
    chunk, first = bytearray(), True
    while True:
        start = len(chunk)
        chunk += bytes(max(size, start // 8))  # more of a record that may be a genome
        with memoryview(chunk) as view:
            stop = start + handle.readinto(view[start:])  # type: ignore[attr-defined]
        del chunk[stop:]
        if stop == start:
            break
        if chunk.find(b"\r", start) >= 0:
            # It ends a line, alone or before a newline; blank lines do not.
            chunk = chunk.replace(b"\r", b"\n")
        if first:
            chunk, first = chunk.removeprefix(BYTE_ORDER_MARK), False
        # A search for one byte is fast, one for two is not.
        end = chunk.rfind(b">", max(start, 1))
        while end > 0 and chunk[end - 1] != NEWLINE:
            end = chunk.rfind(b">", max(start, 1), end)
        if end > 0:
            remainder = chunk[end:]  # the record that it ends within
            del chunk[end:]
            yield chunk
            chunk = remainder
    if chunk:
        yield chunk


def _split(
    chunk: bytearray, alphabet: Alphabet | None, strip_stop: bool
) -> ChunkRecords:
    """Split a chunk into its records."""
    plain = None
    if alphabet is not None and not strip_stop:
        plain = _plain(chunk, alphabet.table.tobytes())
    if plain is not None:
        return plain._replace(encoded=True)
    plain = _plain(chunk, VISIBLE)
    if plain is None:
        stream = io.BytesIO(chunk)
        chunk.clear()  # it may be a genome
        text = io.TextIOWrapper(stream, encoding="utf-8", errors="replace")
        chunk_records = list(records(text))
        letters = np.frombuffer(b"".join(part for _, part in chunk_records), np.uint8)
        lengths = np.array([len(part) for _, part in chunk_records], np.int64)
        plain = ChunkRecords([name for name, _ in chunk_records], letters, lengths)
    if not strip_stop:
        return plain
    names, letters, lengths, _ = plain
    ends, stopped = np.cumsum(lengths), lengths > 0
    stopped[stopped] = letters[ends[stopped] - 1] == STOP
    return ChunkRecords(names, np.delete(letters, ends[stopped] - 1), lengths - stopped)


def _plain(chunk: bytearray, table: bytes) -> ChunkRecords | None:
    """Parse a chunk of plain records at once, its letters translated by a table; None
    unless it begins with a header and the table has all that is in its other lines."""
    if not chunk.startswith(b">"):
        return None
    if not chunk.endswith(PADDING):
        chunk += PADDING  # of blank lines
    data = np.frombuffer(chunk, np.uint8)
    newlines = np.flatnonzero(data == NEWLINE)
    begins = data[newlines[:-1] + 1]  # of each line but the first
    if (begins == COMMENT).any():
        return None
    # Of the newlines of a record the first one ends its header.
    last = np.append(np.flatnonzero(begins == HEADER), len(newlines) - 1)
    first = np.append(0, last[:-1] + 1)
    stops = newlines[last] + 1
    heads, ends = np.append(0, stops[:-1]), newlines[first]
    lengths = stops - ends - 1 - (last - first)
    # Headers become zeros, which are dropped with the newlines.
    widths = np.stack([ends - heads, stops - ends], axis=1).ravel()
    of_letters = np.repeat(np.tile(np.array([0, 255], np.uint8), len(heads)), widths)
    letters = bytearray(len(chunk))
    np.bitwise_and(of_letters, data, out=np.frombuffer(letters, np.uint8))
    del of_letters
    text = np.frombuffer(letters.translate(table, b"\0\n"), np.uint8)
    if len(text) != lengths.sum() or text.max(initial=0) == BAD:
        return None
    names = _first_words(chunk, heads + 1)
    if names is None:
        sides = zip(heads.tolist(), ends.tolist(), strict=True)
        headers = (chunk[i + 1 : j].decode("utf-8", "replace") for i, j in sides)
        names = [*map(header_name, headers)]
    return ChunkRecords(names, text, lengths)


def _first_words(chunk: bytearray, starts: np.ndarray) -> Names | None:
    """The words at some places of a chunk; None if one is longer than the padding, is
    not of visible ASCII, or is empty."""
    for width in (NAME_WIDTH, len(PADDING)):
        # Elements that overlap: so many bytes from each place on.
        every = np.ndarray(len(chunk) - width + 1, f"V{width}", chunk, strides=(1,))
        letters = every[starts].view(np.uint8).reshape(-1, width)
        widths = (letters <= SPACE).argmax(axis=1)
        if not IS_SPACE[letters[np.arange(len(widths)), widths]].all():
            continue
        # Compared as bytes, which is the fastest.
        of_names = np.arange(width, dtype=np.uint8) < widths.astype(np.uint8)[:, None]
        text = letters[of_names]
        if widths.all() and text.max() < DELETE:
            return Names(text, np.append(0, np.cumsum(widths)))
    return None


def records(handle: TextIO) -> Iterator[tuple[str, bytes]]:
    """Yield the name and the letters of each record."""
    header, lines = None, []
    for line in map(str.strip, handle):
        if line.startswith(">"):
            if header is not None:
                yield header_name(header), b"".join(lines)
            header, lines = line[1:], []
        elif line and line[0] != ";":
            lines.append(_letters(line))
    if header is not None:
        yield header_name(header), b"".join(lines)


def read_taxa(path: str | os.PathLike[str]) -> np.ndarray:
    """Read the taxon of every record of a FASTA file from its heading, int32
    (records,); ``NO_TAXON`` for none. Sequences are passed over."""
    with open_bytes(os.fspath(path)) as handle:
        taxa = [record_taxa(chunk) for chunk in _whole_records(handle, CHUNK)]
    return np.concatenate([np.zeros(0, np.int32), *taxa])


def record_taxa(chunk: bytes | bytearray) -> np.ndarray:
    """Find the taxa of whole records, int32 (records,): ``OX=9606`` in a heading of
    UniProt, ``TaxID=9606`` in one of UniRef.

    Examples
    --------
    >>> record_taxa(b">sp|P69905|HBA_HUMAN OX=9606 GN=HBA1 PE=1\\nMV\\n>b\\nG")
    array([9606,   -1], dtype=int32)
    """
    if not (chunk.startswith(b">") and chunk.isascii()) or INDENTED.search(chunk):
        text = io.TextIOWrapper(io.BytesIO(chunk), encoding="utf-8", errors="replace")
        headings = [line for line in map(str.strip, text) if line.startswith(">")]
        return np.array([*map(taxon_of, headings)], np.int32)
    data = np.frombuffer(chunk + b"\n" * (TAXON_DIGITS + 2), np.uint8)
    newlines = np.flatnonzero(data[:-1] == NEWLINE)
    heads = newlines[data[newlines + 1] == HEADER] + 1
    heads = np.concatenate([[0], heads])
    ends = newlines[np.searchsorted(newlines, heads)]
    # Of each "=" the word before it, which a sign that is of no word begins.
    signs = np.flatnonzero(data == EQUALS)
    named = np.zeros(len(signs), bool)
    for word in TAXON_WORDS:
        place = np.maximum(signs - len(word), 1)
        equal = ~IS_WORD[data[place - 1]] & (place + len(word) == signs)
        for k, letter in enumerate(word):
            equal &= data[place + k] == letter
        named |= equal
    signs = signs[named]
    # Of its digits the number; another sign that is of no word ends it.
    numbers, digits = np.zeros(len(signs), np.int32), np.zeros(len(signs), np.int64)
    for k in range(TAXON_DIGITS):
        digit = data[signs + 1 + k].astype(np.int32) - ord("0")
        goes_on = (digits == k) & (digit >= 0) & (digit <= 9)
        numbers[goes_on] = 10 * numbers[goes_on] + digit[goes_on]
        digits += goes_on
    record = np.searchsorted(heads, signs, side="right") - 1
    whole = (digits > 0) & ~IS_WORD[data[signs + 1 + digits]] & (signs < ends[record])
    taxa = np.full(len(heads), NO_TAXON, np.int32)
    taxa[record[whole][::-1]] = numbers[whole][::-1]  # the first one of a heading
    return taxa


def taxon_of(heading: str) -> int:
    """Find the taxon in a heading, as ``record_taxa`` does; ``NO_TAXON`` for none."""
    match = TAXON.search(heading)
    return int(match[1]) if match else NO_TAXON


def header_name(header: str) -> str:
    """The first word of a header."""
    return (header.split(maxsplit=1) or [""])[0]


def _letters(line: str) -> bytes:
    """Strip white space from a line and encode it, one byte per character; characters
    outside ASCII become 0, which is never a letter."""
    letters = "".join(line.split())
    if not letters.isascii():
        letters = OTHER.sub("\0", letters)
    return letters.encode("ascii")


KINDS_OF_TEXT = {  # first sign -> what it may be
    "@": "FASTQ; awk 'NR % 4 == 1 {print \">\" substr($0, 2)} NR % 4 == 2' makes FASTA",
    "LOCUS": "GenBank",
    "ID ": "EMBL or UniProt text",
    "#": "an alignment in Stockholm, or a table",
    "CLUSTAL": "an alignment in Clustal",
    "HMMER": "a profile of HMMER",
    "%PDF": "PDF",
    "data_": "mmCIF; `jaxalign structures` makes FASTA of its chains",
    "HEADER": "PDB; `jaxalign structures` makes FASTA of its chains",
}


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
            shown = line if len(line) <= 40 else line[:40] + "..."
            hint = next((y for x, y in KINDS_OF_TEXT.items() if line.startswith(x)), "")
            hint = f"\nhint: this looks like {hint}" if hint else ""
            raise InputError(
                f"{label(source)}, line {number}, column 1: a FASTA file starts with a "
                f"'>' header line, this one with {shown!r}{hint}"
            )
    what = "holds no record, only blank or ';' lines" if number else "is empty"
    what += ", or the pipe was read before" * (not reads_again(source) and not number)
    raise InputError(f"{label(source)}: the file {what}; FASTA needs a '>' line")


class NameHashes:
    """Set of name hashes, 8 bytes a name: sorted runs, each at least twice as long as
    the next one."""

    def __init__(self):
        self._runs: list[np.ndarray] = []

    def add(self, hashes: np.ndarray) -> np.ndarray:
        """Add hashes of names; return the places, int64, of those that were there."""
        rising = np.sort(hashes)
        repeated = np.zeros(len(hashes), bool)
        repeated[1:] = rising[1:] == rising[:-1]
        for run in self._runs:
            place = np.minimum(np.searchsorted(run, rising), len(run) - 1)
            repeated |= run[place] == rising
        order = np.zeros(0, np.int64)
        if repeated.any():  # else no order of equal ones is asked for
            order = np.argsort(hashes, kind="stable")[repeated]
        while self._runs and len(self._runs[-1]) < 2 * len(rising):
            rising = np.sort(np.concatenate([self._runs.pop(), rising]), kind="stable")
        if len(rising):
            self._runs.append(rising)
        return np.sort(order)


def _check_names(raw: RawRecords, hashes: NameHashes | None = None) -> None:
    """Refuse an empty name, or one that comes twice among these records or, where the
    names of earlier blocks are known, in the file."""
    encoded = names_of(raw.names)
    hashes = NameHashes() if hashes is None else hashes
    is_new = not len(hashes.add(hashes_of(encoded)))
    if is_new and np.diff(encoded.places).all():
        return
    first: dict[str, int] = {}
    for record, name in enumerate(raw.names, raw.before):
        if not name:
            line = header_line(raw.source, raw.buffer, record)
            raise InputError(
                f"{label(raw.source)}, line {line}, column 1: record {record + 1} "
                "has an empty header; the first word after '>' is its name"
            )
        if name in first:
            raise _duplicate(raw, name, first[name], record)
        first[name] = record
    # A hash was there before: the file says whether the name was, too.
    with open_text(raw.source, raw.buffer) as handle:
        for record, (name, _) in zip(range(raw.before), records(handle)):  # noqa: B905
            if name in first:
                raise _duplicate(raw, name, record, first[name])


def _duplicate(raw: RawRecords, name: str, first: int, second: int) -> InputError:
    """Build the error for two records with one name."""
    line = header_line(raw.source, raw.buffer, second)
    line_of_first = header_line(raw.source, raw.buffer, first)
    return InputError(
        f"{label(raw.source)}, line {line}, column 1: record {second + 1} has the name "
        f"{name!r} of record {first + 1} (line {line_of_first}); names, the first word "
        "of each header, must differ\nhint: --names number numbers them"
    )


MANY = 0.1  # of letters that no nucleotide has: a third of a protein's


def _hint(place: Place, alphabet: Alphabet, share: float) -> str:
    """Say what to do about a letter.

    share : that of all letters which the alphabet lacks
    """
    letter, wildcard = place.letter.upper(), alphabet.wildcard
    if letter in "-.":
        return "\nhint: sequences go in unaligned; take the gaps out"
    if letter == "*":
        return "\nhint: --strip-stop takes a stop off the end of each sequence"
    if wildcard is None or not ("A" <= letter <= "Z"):
        return ""
    if alphabet.kind == "dna" and letter == "U":
        return "\nhint: --alphabet rna reads U, and T as U"
    if alphabet.kind == "protein" and letter in "UOJ":
        return f"\nhint: --unknown X reads U, O and J as {wildcard}"
    if alphabet.kind in NUCLEIC and share >= MANY:
        return "\nhint: these are letters of proteins, the scoring is of nucleotides"
    return f"\nhint: --unknown mask reads every letter outside it as {wildcard}"


def header_line(source: str, buffer: bytes | None, record: int) -> int:
    """Return the line number (from 1) of the header of a record (from 0)."""
    for line, _, _, current, is_header in _content(source, buffer):
        if current == record and is_header:
            return line
    raise _changed(source)


def letter_place(source: str, buffer: bytes | None, record: int, inside: int) -> Place:
    """Find a letter by its position (from 0) inside a record (from 0)."""
    remaining = inside
    for line, before, text, current, is_header in _content(source, buffer):
        if current < record or is_header:
            continue
        if current > record:
            break
        count = len("".join(text.split()))
        if remaining < count:
            columns = [c for c, letter in enumerate(text) if not letter.isspace()]
            at = columns[remaining]
            return Place(line, before + at + 1, text[at])
        remaining -= count
    raise _changed(source)


def _content(
    source: str, buffer: bytes | None
) -> Iterator[tuple[int, int, str, int, bool]]:
    """Yield the lines that ``records`` reads, in pieces, since a line may be a genome:
    its number, the characters before a piece, the piece, the record from 0, and whether
    it is of a header."""
    record, number, before, first = -1, 1, 0, ""
    with open_text(source, buffer) as handle:
        while text := handle.readline(STRETCH):
            if not first:
                first = text.lstrip()[:1]
                record += first == ">"
            if first and first != ";":
                yield number, before, text, record, first == ">"
            before += len(text)
            if text.endswith("\n"):
                number, before, first = number + 1, 0, ""


def _changed(source: str) -> InputError:
    return InputError(f"{label(source)}: the file changed while it was being read")


def read_family(
    path: str | os.PathLike[str], alphabet: Alphabet | None = None
) -> Family:
    """Read an aligned FASTA file; ``-`` and ``.`` are gaps.

    Parameters
    ----------
    path : path, as of ``io.fasta.read_raw``
    alphabet : Alphabet, optional
        Protein by default.

    Raises
    ------
    InputError
        No FASTA, rows of unequal length, or a letter that is not in the alphabet.
    """
    alphabet, raw = alphabet or named_alphabet("protein"), read_raw(path)
    widths = np.diff(raw.offsets)
    if (unequal := widths != widths[0]).any():
        record = int(unequal.argmax())
        line = header_line(raw.source, raw.buffer, record)
        raise InputError(
            f"{raw.source}, line {line}: a row of {widths[record]} columns, where the "
            f"first has {widths[0]}"
        )
    codes = alphabet.encode(raw.text).astype(np.int16)
    codes[np.isin(raw.text, as_ascii("-."))] = FAMILY_GAP
    if (bad := codes == BAD).any():
        at = divmod(int(bad.argmax()), int(widths[0]))
        place = letter_place(raw.source, raw.buffer, *at)
        raise InputError(
            f"{raw.source}, line {place.line}, column {place.column}: "
            f"{place.letter!r}; {alphabet.rule()}"
        )
    name = Path(raw.source).stem
    return Family(name, raw.names, codes.reshape(len(raw), int(widths[0])))


def pfam(alphabet: Alphabet | None = None) -> dict[str, Family]:
    """Read the bundled Pfam seed alignments, by name.

    Examples
    --------
    >>> from jaxalign.io import fasta
    >>> {name: len(family) for name, family in fasta.pfam().items()}["fn3"]
    98
    """
    folder = resources.files("jaxalign.data") / "pfam"
    with resources.as_file(folder) as real:
        files = sorted(real.glob("*.fasta"))
        return {path.stem: read_family(path, alphabet) for path in files}
