"""Open a text input by path or from standard input, compressed or not.

Python opens gzip, bzip2 and xz, and from 3.14 on zstd, which pyarrow opens before;
isal, where it is installed, inflates gzip in half the time. A stream that is damaged is
an error, also where it is the second one in a file.
"""

import bz2
import hashlib
import importlib
import io
import lzma
import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any, BinaryIO, TextIO

from jaxalign.errors import InputError, MemoryPlanError
from jaxalign.model.names import written
from jaxalign.model.system import is_endless

STDIN = "-"
PIECE_BYTES = 2**24
MOST_BYTES = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2

BUFFER = 2**18  # the openers of lzma and bz2 read a byte at a time without one
_DAMAGE = (EOFError, zlib.error, lzma.LZMAError, OSError)


def label(source: str) -> str:
    """Name an input the way messages print it."""
    return "standard input" if source == STDIN else written(source)


_kept: dict[object, Any] | None = None


@contextmanager
def streams_kept() -> Iterator[None]:
    """Keep the bytes of standard input and of pipes, so that a command may read its
    inputs as often as it reads files; and the versions of files, which may not change
    meanwhile."""
    global _kept
    _kept = {}
    try:
        yield
    finally:
        _kept = None


def states_path(source: str) -> str:
    """The file of the states beside that of the amino acids: ``set_ss.fasta`` beside
    ``set.fasta``, as Foldseek has the databases ``set_ss`` and ``set``."""
    name, end = os.path.splitext(source)
    if end in (".gz", ".bz2", ".xz", ".zst"):
        name, inner = os.path.splitext(name)
        end = inner + end
    return f"{name}_ss{end}"


def is_stream(source: str) -> bool:
    """Whether an input is standard input, a pipe or a device, and no file."""
    there = os.path.exists(source) and not os.path.isdir(source)
    return source == STDIN or (there and not os.path.isfile(source))


def reads_again(source: str) -> bool:
    """Whether an input gives the same bytes when it is opened again: a file, and inside
    ``streams_kept`` all but a folder."""
    return os.path.isfile(source) or (_kept is not None and not os.path.isdir(source))


def bytes_once(source: str, read: Callable[[], bytes]) -> bytes:
    """The bytes of a pipe or of standard input, by whatever name; inside
    ``streams_kept`` they are read once and kept.

    read : reads all of it
    """
    if _kept is None:
        return read()
    try:
        state = os.fstat(sys.stdin.fileno()) if source == STDIN else os.stat(source)
        name = (state.st_dev, state.st_ino)
    except (OSError, ValueError, AttributeError):  # none of the system's
        name = source
    if name not in _kept:
        _kept[name] = read()
    return _kept[name]


def keep(source: str) -> bytes | None:
    """Read an input that can be read only once; None for a regular file.

    Standard input and pipes cannot be opened again to look for the line of an error.
    """
    if source == STDIN:
        if sys.stdin is None:
            raise InputError("standard input: closed, nothing can be read")
        refuse_endless(source, "/dev/stdin")
        return bytes_once(source, partial(_whole, source))
    try:
        if stat.S_ISREG(os.stat(source).st_mode):
            return None
        refuse_endless(source, source)
        return bytes_once(source, partial(_whole, source))
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise _unreadable(source, error) from error


def refuse_endless(source: str, file: str) -> None:
    """Refuse a device that has no end."""
    if is_endless(file):
        raise InputError(f"{label(source)}: is a device that has no end; name a file")


def _whole(source: str) -> bytes:
    """Read a stream that may be endless, up to half of the machine's memory."""
    data = bytearray()
    stdin = nullcontext(sys.stdin.buffer) if source == STDIN else None
    with stdin or open(source, "rb") as handle:
        while piece := handle.read(PIECE_BYTES):
            data += piece
            if len(data) > MOST_BYTES:
                raise MemoryPlanError(
                    f"{label(source)}: has more than {MOST_BYTES:,} bytes, half of "
                    "this machine's memory, and no end so far; save it in a file, and "
                    "name that"
                )
    return bytes(data)


@contextmanager
def in_memory(source: str) -> Iterator[None]:
    """Name the input in memory errors: no other option would need less memory."""
    try:
        yield
    except MemoryPlanError:
        raise
    except MemoryError as error:
        raise MemoryPlanError(
            f"{label(source)}: its content does not fit into memory; compressed data "
            "grow when they are read"
        ) from error


@contextmanager
def open_text(source: str, buffer: bytes | None = None) -> Iterator[TextIO]:
    """Open an input as text lines, whatever its compression.

    The text is UTF-8; any line end counts as a newline, and a byte that is no UTF-8
    becomes U+FFFD. What ``keep`` returned is read in place of the path, and must be
    where the input is read twice.
    """
    with open_bytes(source, buffer) as stream:
        yield io.TextIOWrapper(stream, encoding="utf-8-sig", errors="replace")


@contextmanager
def open_bytes(source: str, buffer: bytes | None = None) -> Iterator[BinaryIO]:
    """Open an input as bytes, decompressed; see ``open_text``."""
    with in_memory(source):
        buffer = keep(source) if buffer is None else buffer
        try:
            raw: Any = open(source, "rb") if buffer is None else io.BytesIO(buffer)
        except (OSError, ValueError) as error:
            raise _unreadable(source, error) from error
    with in_memory(source), raw:
        version = None if buffer is not None else _version(source, raw)
        head, name, stream = raw.read(6), None, raw
        raw.seek(0)
        for start, (what, hint) in _FOREIGN.items():
            if head.startswith(start):
                raise InputError(f"{label(source)}: {what}\nhint: {hint}")
        for kind, (magic, opener) in _OPENERS.items():
            if head.startswith(magic):
                try:
                    name, stream = kind, io.BufferedReader(opener(raw), BUFFER)
                except EOFError as error:
                    raise _cut_short(source, kind) from error
                except ImportError as error:
                    raise InputError(
                        f"{label(source)}: zstd needs Python 3.14 or pyarrow: pip "
                        "install pyarrow, or give standard input what zstd -dc prints"
                    ) from error
        try:
            yield stream
        except _DAMAGE as error:
            why = f"the {name} data are corrupt ({error})"
            if name is None:
                why = f"reading failed ({error})"
            elif isinstance(error, EOFError):
                raise _cut_short(source, name) from error
            raise InputError(f"{label(source)}: {why}") from error
        if version is not None:
            _version(source, raw, version)


def _version(source: str, file: BinaryIO, version: tuple | None = None) -> tuple:
    """Identify what an open file holds, by its inode, size and date.

    Raises InputError: it held something else before, by ``version``, or when a command
    opened it first
    """
    state = os.fstat(file.fileno())
    current = state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns
    if _kept is not None:
        version = _kept.setdefault(("version", os.path.realpath(source)), current)
    if version not in (None, current):
        raise InputError(
            f"{label(source)}: changed while it was read\nhint: start again when it is "
            "complete"
        )
    return current


def sha256(source: str, buffer: bytes | None = None) -> str | None:
    """SHA-256 of a file as stored; None for an input that cannot be read again."""
    if buffer is not None:
        return hashlib.sha256(buffer).hexdigest()
    if not reads_again(source):
        return None
    if (buffer := keep(source)) is not None:
        return hashlib.sha256(buffer).hexdigest()
    with open(source, "rb") as handle:
        _version(source, handle)
        return hashlib.file_digest(handle, "sha256").hexdigest()


def _unreadable(source: str, error: OSError | ValueError) -> InputError:
    if isinstance(error, ValueError):  # a zero in it, or half a pair of surrogates
        return InputError(f"{label(source)}: no file can have this name")
    if isinstance(error, FileNotFoundError):
        return InputError(f"{label(source)}: no such file")
    if isinstance(error, IsADirectoryError):
        return InputError(f"{label(source)}: is a folder, and a file is needed")
    return InputError(f"{label(source)}: cannot be read ({error.strerror})")


def _cut_short(source: str, name: str) -> InputError:
    why = f"the {name} data end too early; the file is truncated"
    return InputError(f"{label(source)}: {why}\nhint: copy or download it again")


class _Inflater:
    """A stream of gzip, inflated piece by piece, with the methods of ``bz2``'s."""

    def __init__(self) -> None:
        try:
            library: Any = importlib.import_module("isal.isal_zlib")
        except ImportError:
            library = zlib
        self._stream, self._error = library.decompressobj(31), library.error

    def decompress(self, data: bytes, size: int) -> bytes:
        try:
            return self._stream.decompress(self._stream.unconsumed_tail + data, size)
        except self._error as error:
            raise zlib.error(*error.args) from error

    @property
    def eof(self) -> bool:
        return self._stream.eof

    @property
    def needs_input(self) -> bool:
        return not self._stream.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._stream.unused_data


class _Decompressed(io.RawIOBase):
    """The bytes of a compressed file, which can be read again from the first."""

    def __init__(self, raw: BinaryIO, pieces: Callable[[BinaryIO], Iterator[bytes]]):
        self._raw, self._pieces = raw, pieces
        self._before: list[Iterator[bytes]] = []  # pyarrow's would close the file
        self.seek(0)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if (offset, whence) == (0, io.SEEK_SET):
            self._raw.seek(0)
            self._at, self._piece = 0, b""
            self._before.append(self._pieces(self._raw))
        elif (offset, whence) != (0, io.SEEK_CUR):
            raise io.UnsupportedOperation("seek to another place than the first")
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        self._piece = self._piece or next(self._before[-1], b"")
        content = self._piece[: len(buffer)]
        self._piece = self._piece[len(content) :]
        buffer[: len(content)] = content
        self._at += len(content)
        return len(content)


def _streams(raw: BinaryIO, magic: bytes, decompressor: Callable[[], Any]) -> Iterator:
    """Decompress each stream of a file. Python's own readers of bzip2 and xz take
    whatever follows the first stream, one with a damaged head too, for its end."""
    data = raw.read(BUFFER)
    while data:
        data += raw.read(len(magic))
        if not data.startswith(magic):
            raise OSError("a stream has a damaged head, or something else follows")
        stream = decompressor()
        piece = stream.decompress(data, BUFFER)
        while not stream.eof:
            if piece:
                yield piece
            data = raw.read(BUFFER) if stream.needs_input else b""
            if stream.needs_input and not data:
                raise EOFError
            piece = stream.decompress(data, BUFFER)
        if piece:
            yield piece
        data = stream.unused_data.lstrip(b"\0")  # of padding
        while not data and (data := raw.read(BUFFER)):
            data = data.lstrip(b"\0")


def _arrow_zstd(raw: BinaryIO) -> Iterator[bytes]:
    arrow: Any = importlib.import_module("pyarrow")
    stream = arrow.CompressedInputStream(arrow.PythonFile(raw, "r"), "zstd")
    while True:  # a stream that goes would close the file
        yield stream.read(BUFFER)


def _open_zstd(raw: BinaryIO) -> Any:
    try:
        zstd: Any = importlib.import_module("compression.zstd")
    except ImportError:
        importlib.import_module("pyarrow")
        return _Decompressed(raw, _arrow_zstd)
    return zstd.open(raw)


def _open_gzip(raw: BinaryIO) -> Any:
    """Open gzip; of BGZF, the blocks of which samtools and bgzip write, its last block
    is an empty one, and a file that was cut between two blocks lacks it."""
    if raw.read(18)[12:16] == b"BC\x02\0":
        raw.seek(-len(BGZF_END), io.SEEK_END)
        if raw.read() != BGZF_END:
            raise EOFError("no mark of its end")
    return _Decompressed(raw, lambda x: _streams(x, GZIP, _Inflater))


def _opener(magic: bytes, decompressor: Callable[[], Any]) -> Callable[[BinaryIO], Any]:
    return lambda raw: _Decompressed(raw, lambda x: _streams(x, magic, decompressor))


GZIP = b"\x1f\x8b"


BGZF_END = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")
# What a file begins with; a frame to skip, of one of 16 kinds, may come before zstd.
_OPENERS: dict[str, tuple[tuple[bytes, ...], Callable[..., Any]]] = {
    "gzip": ((GZIP,), _open_gzip),
    "bzip2": ((b"BZh",), _opener(b"BZh", bz2.BZ2Decompressor)),
    "xz": ((b"\xfd7zXZ\0",), _opener(b"\xfd7zXZ\0", lzma.LZMADecompressor)),
    "zstd": (
        (
            b"\x28\xb5\x2f\xfd",
            *(bytes([0x50 + x]) + b"\x2a\x4d\x18" for x in range(16)),
        ),
        _open_zstd,
    ),
}
_RECODE = "iconv -f UTF-16 -t UTF-8, or save it as UTF-8"
_UNPACK = "unpack it, and give the file inside"
# What is no text of one file. Text in UTF-32 begins as UTF-16 does.
_FOREIGN = {
    b"\xff\xfe": ("the text is UTF-16, as Windows writes it", _RECODE),
    b"\xfe\xff": ("the text is UTF-16", _RECODE),
    b"PK\x03\x04": ("is a zip archive", _UNPACK),
    b"7z\xbc\xaf\x27\x1c": ("is a 7z archive", _UNPACK),
    b"Rar!": ("is a rar archive", _UNPACK),
    b"\x1f\x9d": ("is packed by compress", "uncompress -c prints what is in it"),
    b"\x04\x22\x4d\x18": ("is packed by lz4", "lz4 -dc prints what is in it"),
    b"PAR1\x15": ("is a Parquet table", "its name has to end with .parquet"),
    b"JAXALN": ("is an index of jaxalign", "give it as a file"),
}
