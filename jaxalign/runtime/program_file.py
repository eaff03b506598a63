# pyright: strict
"""The file of a compiled program: a header of JSON, then the bytes of the executable.

A file has four parts: the line ``MAGIC``; the SHA-256 of all that follows, in hex, on
a line; the header, JSON on a line; the executable, compressed by zlib. The header says
its own name, so that a file under the name of another is known, the number of bytes of
the executable, and whatever the maker knows of the program. Nothing in it is pickled.
"""

import json
import zlib
from hashlib import sha256
from typing import Any

MAGIC = b"jaxalign program 2\n"
DIGEST_BYTES = 64
NAME, SIZE = "name", "bytes"


class Damaged(Exception):
    """A file is not what its name says."""


def pack(name: str, about: dict[str, Any], executable: bytes) -> bytes:
    """The content of the file of a program.

    Parameters
    ----------
    name : that of the file, without its suffix
    about : what is known of the program, as JSON can hold it
    executable : what XLA has serialised
    """
    header = json.dumps({**about, NAME: name, SIZE: len(executable)})
    body = header.encode() + b"\n" + zlib.compress(executable, 1)
    return MAGIC + _digest(body) + b"\n" + body


def unpack(name: str, content: bytes) -> tuple[dict[str, Any], bytes]:
    """(what is known of a program, its executable).

    Raises
    ------
    Damaged
        The content is of another format, incomplete, changed, or of another name.
    """
    begin = len(MAGIC) + DIGEST_BYTES + 1
    body = content[begin:]
    if content[:begin] != MAGIC + _digest(body) + b"\n":
        raise Damaged(name)
    try:
        header, _, compressed = body.partition(b"\n")
        about = json.loads(header)
        executable = _decompressed(compressed, about[SIZE])
    except (ValueError, LookupError, TypeError, zlib.error) as error:
        raise Damaged(name) from error
    if about[NAME] != name:
        raise Damaged(name)
    return about, executable


def _decompressed(compressed: bytes, size: int) -> bytes:
    """So many bytes and no more, whatever the compressed ones would become."""
    stream = zlib.decompressobj()
    executable = stream.decompress(compressed, max(size, 1))
    if len(executable) != size or not stream.eof:
        raise ValueError
    return executable


def _digest(body: bytes) -> bytes:
    return sha256(body).hexdigest().encode()
