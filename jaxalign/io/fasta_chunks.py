"""FASTA by whole records of many megabytes at a time, in NumPy.

A chunk is a run of records. Most chunks are plain: ASCII letters, nothing else in the
lines of a sequence. All others are read line by line, as ``fasta.records`` does.
"""

import io
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

import numpy as np

from jaxalign.io import fasta

CHUNK = 2**24  # bytes that are read at once
NEWLINE, HEADER = 10, ord(">")
VISIBLE = bytes(range(33, 127))
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class ChunkRecords(NamedTuple):
    """Names and letters of consecutive records: uint8 letters end to end, and the
    length of each record."""

    names: list[str]
    text: np.ndarray
    lengths: np.ndarray


def chunks(handle: BinaryIO) -> Iterator[ChunkRecords]:
    """The records of a stream of bytes, in order; before the first record there are
    only blank lines and comments."""
    for chunk in _whole_records(handle):
        plain = _plain(chunk)
        yield plain if plain is not None else _by_line(chunk)


def _whole_records(handle: BinaryIO) -> Iterator[bytes]:
    """Pieces of a stream, each of which ends before a record, or with the stream."""
    pending, first = b"", True
    while piece := handle.read(CHUNK):
        if b"\r" in piece:  # ends a line, alone or before a newline; blank lines do not
            piece = piece.replace(b"\r", b"\n")
        if first:
            piece, first = piece.removeprefix(BYTE_ORDER_MARK), False
        pending = pending + piece if pending else piece
        end = pending.rfind(b"\n>") + 1
        if end:
            yield pending[:end]
            pending = pending[end:]
    if pending:
        yield pending


def _by_line(chunk: bytes) -> ChunkRecords:
    text = io.TextIOWrapper(io.BytesIO(chunk), encoding="utf-8", errors="replace")
    some = list(fasta.records(text))
    letters = np.frombuffer(b"".join(part for _, part in some), np.uint8)
    lengths = np.array([len(part) for _, part in some], np.int64)
    return ChunkRecords([name for name, _ in some], letters, lengths)


def _plain(chunk: bytes) -> ChunkRecords | None:
    """The records of a chunk that begins with a header; None where the lines of a
    sequence hold anything but visible ASCII characters."""
    if not chunk.startswith(b">") or b"\n;" in chunk:
        return None
    data = np.frombuffer(chunk, np.uint8)
    newlines = np.flatnonzero(data == NEWLINE)
    if not len(newlines) or newlines[-1] != len(data) - 1:
        newlines = np.append(newlines, len(data))
    # A header begins behind the newline before it: behind number -1 the first one.
    before = np.flatnonzero(data[newlines[:-1] + 1] == HEADER)
    before = np.concatenate([[-1], before])
    starts = np.append(newlines[before[1:]] + 1, len(data))
    ends = newlines[before + 1]
    heads = np.concatenate([[0], starts[:-1]]).tolist()
    sides = list(zip(heads, ends.tolist(), starts.tolist(), strict=True))
    text = b"".join([chunk[end + 1 : stop] for _, end, stop in sides])
    text = text.translate(None, b"\n")
    if text.translate(None, VISIBLE):
        return None
    # Of the newlines of a record the first one ends its header.
    lines = np.diff(np.append(before, len(newlines) - 1)) - 1
    lines[-1] -= newlines[-1] == len(data)
    lengths = np.maximum(starts - ends - 1, 0) - np.maximum(lines, 0)
    names = [_name(chunk, start, end) for start, end, _ in sides]
    return ChunkRecords(names, np.frombuffer(text, np.uint8), lengths)


def _name(chunk: bytes, start: int, end: int) -> str:
    header = chunk[start + 1 : end].decode("utf-8", "replace")
    return (header.split(maxsplit=1) or [""])[0]
