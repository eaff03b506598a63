"""A stream of zstd: by Python from 3.14 on, else by pyarrow."""

import importlib
import io
from typing import Any, BinaryIO

MAGIC = b"\x28\xb5\x2f\xfd"
BUFFER = 1 << 18


def opened(raw: BinaryIO) -> BinaryIO:
    """Decompress the bytes of a file.

    Raises
    ------
    ImportError
        Neither Python nor pyarrow can read zstd.
    """
    try:
        zstd: Any = importlib.import_module("compression.zstd")
    except ImportError:
        return io.BufferedReader(_ArrowStream(raw), BUFFER)
    return io.BufferedReader(zstd.open(raw), BUFFER)


class _ArrowStream(io.RawIOBase):
    """pyarrow's stream, which can be read from its beginning again."""

    def __init__(self, raw: BinaryIO):
        self._arrow: Any = importlib.import_module("pyarrow")
        self._raw, self._at = raw, 0
        self._before: list[Any] = []  # which would close the file when they go
        self._stream = self._begin()

    def _begin(self) -> Any:
        self._raw.seek(0)
        self._at = 0
        file = self._arrow.PythonFile(self._raw, "r")
        return self._arrow.CompressedInputStream(file, "zstd")

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if (offset, whence) == (0, io.SEEK_SET):
            self._before.append(self._stream)
            self._stream = self._begin()
        elif (offset, whence) != (0, io.SEEK_CUR):
            raise io.UnsupportedOperation("seek to another place than the first")
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        some = self._stream.read(len(buffer))
        buffer[: len(some)] = some
        self._at += len(some)
        return len(some)
