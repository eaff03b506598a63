# pyright: strict
"""The folder of compiled programs: files that outlive the process that made them.

It is ``jaxalign`` in the user's cache folder, or in the one that a variable names. A
file is named after all that its program depends on (``runtime.program_key``), so that
home folders may be shared by unlike machines. Whatever cannot be read whole, or belongs
to somebody else, is no entry. The oldest files go when the folder is full.
"""

import json
import os
import stat
import tempfile
import time
import warnings
import zlib
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from jaxalign.errors import UsageError
from jaxalign.runtime import program_key

# ------------------------------------------------------------------------------
# The file of a compiled program: a header of JSON, then the bytes of the executable.
#
# A file has four parts: the line ``MAGIC``; the SHA-256 of all that follows, in hex, on
# a line; the header, JSON on a line; the executable, compressed by zlib. The header
# says its own name, so that a file under the name of another is known, the number of
# bytes of the executable, and whatever the maker knows of the program. Nothing in it is
# pickled.

MAGIC = b"jaxalign program 2\n"
DIGEST_BYTES = 64
NAME_STRUCT, SIZE = "name", "bytes"


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
    header = json.dumps({**about, NAME_STRUCT: name, SIZE: len(executable)})
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
    if about[NAME_STRUCT] != name:
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


FOLDER = "JAXALIGN_CACHE_DIR"  # in place of the user's; empty, or "off": none
SUBFOLDER = "jaxalign"  # in either, and ours
MAX_BYTES = 2**30
SUFFIX, NEW_SUFFIX = ".program", ".new"
ABANDONED = 3600.0  # seconds after which nobody writes a new file any more
READ_ONLY = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


def program_folder() -> str | None:
    """Where programs are kept; None if they are not, or if no folder is safe."""
    place = os.environ.get(FOLDER)
    if place is None:
        place = _cache_home()
    elif place.lower() in ("", "off"):
        return None
    if place is None or not os.path.isabs(place):
        return None
    folder = os.path.join(place, SUBFOLDER)
    return folder if is_private(folder) else None


def _cache_home() -> str | None:
    """The user's cache folder; None for a user without one.

    A relative ``XDG_CACHE_HOME`` is ignored, as the XDG Base Directory Specification
    wants it.
    """
    home = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(home):
        return home
    try:
        return str(Path.home() / ".cache")
    except (RuntimeError, KeyError):  # no HOME, and no entry of this user's number
        return None


def is_private(folder: str) -> bool:
    """Whether a folder, which is made closed to others if it is not there, is this
    user's, and nobody else may write to it.

    A program in it is run: who may write there could have any program run. What was
    there before keeps its mode.
    """
    try:
        os.makedirs(os.path.dirname(folder), exist_ok=True)
        with suppress(FileExistsError):
            os.mkdir(folder, 0o700)
        state = os.stat(folder, follow_symlinks=False)
        mine = stat.S_ISDIR(state.st_mode) and state.st_uid == os.getuid()
        others_write = state.st_mode & 0o022
        return mine and not others_write and os.access(folder, os.W_OK)
    except (OSError, ValueError):
        return False


def read_program(folder: str, name: str) -> tuple[dict[str, Any], bytes] | None:
    """The parts of an entry; None if there is none, or it is foreign, or damaged, and
    then it is removed."""
    path = os.path.join(folder, name + SUFFIX)
    content = _content(path)
    if content is None:
        return None
    try:
        parts = unpack(name, content)
    except Damaged:
        with suppress(OSError):
            os.unlink(path)
        return None
    with suppress(OSError):
        os.utime(path)  # the oldest files go first
    return parts


def _content(path: str) -> bytes | None:
    """The bytes of a file of this user that nobody else may write to."""
    return content_of(path, (os.getuid(),))


def content_of(path: str, owners: tuple[int, ...]) -> bytes | None:
    """The bytes of a file of one of some users that nobody else may write to.

    Whatever else has this name, a pipe or a device say, is opened without waiting for
    anybody, and not read.
    """
    try:
        descriptor = os.open(path, READ_ONLY)
        try:
            state = os.fstat(descriptor)
            mine = stat.S_ISREG(state.st_mode) and state.st_uid in owners
            if not mine or state.st_mode & 0o022 or state.st_size > MAX_BYTES:
                return None
            with open(descriptor, "rb", closefd=False) as file:
                return file.read()
        finally:
            os.close(descriptor)
    except OSError:
        return None


def write_program(
    folder: str, name: str, about: dict[str, Any], executable: bytes
) -> None:
    """Add an entry, or replace it, in one step; a folder that cannot take it stays as
    it is."""
    temporary = None
    try:
        content = pack(name, about, executable)
        descriptor, temporary = tempfile.mkstemp(NEW_SUFFIX, ".", folder)
        with open(descriptor, "wb") as file:
            file.write(content)
        os.replace(temporary, os.path.join(folder, name + SUFFIX))
        _remove_abandoned(folder)
        _remove_oldest(folder)
    except OSError:
        if temporary is not None:
            with suppress(OSError):
                os.unlink(temporary)


def entries(folder: str, suffix: str = SUFFIX) -> list[tuple[str, os.stat_result]]:
    """Names, without their suffix, and states of all entries."""
    known: list[tuple[str, os.stat_result]] = []
    with suppress(OSError), os.scandir(folder) as files:
        for file in files:
            if file.name.endswith(suffix):
                with suppress(OSError):  # another process has removed it
                    state = file.stat(follow_symlinks=False)
                    if stat.S_ISREG(state.st_mode):
                        known.append((file.name.removesuffix(suffix), state))
    return known


def program_files() -> dict[str, str | int]:
    """The folder, how many programs are in it, and how many bytes these have."""
    folder = program_folder()
    if folder is None:
        return {"folder": "none"}
    sizes = [state.st_size for _, state in entries(folder)]
    return {"folder": folder, "programs": len(sizes), "bytes": sum(sizes)}


def _remove_abandoned(folder: str) -> None:
    """Remove new files of processes that ended while they wrote them."""
    for name, state in entries(folder, NEW_SUFFIX):
        if state.st_mtime < time.time() - ABANDONED:
            with suppress(OSError):
                os.unlink(os.path.join(folder, name + NEW_SUFFIX))


def _remove_oldest(folder: str) -> None:
    """Keep to ``MAX_BYTES``."""
    known = sorted(entries(folder), key=lambda entry: entry[1].st_mtime)
    excess = sum(state.st_size for _, state in known) - MAX_BYTES
    for name, state in known:
        if excess <= 0:
            return
        with suppress(OSError):
            os.unlink(os.path.join(folder, name + SUFFIX))
        excess -= state.st_size


# ------------------------------------------------------------------------------
# Packs: folders of programs that were made elsewhere, for a kind of GPU.
#
# A pack is read and never written to by a job. It is the folder that a variable of the
# environment names, or the package ``jaxalign_programs``. Its manifest says for which
# GPUs, versions and sources it was made: a pack that is for others is named once, and
# not used. Its files are those of ``program_file``: JSON and what XLA has serialised,
# with a digest of both and the file's own name. Nothing in them is pickled.

VARIABLE, PACKAGE = "JAXALIGN_PROGRAMS", "jaxalign_programs"
MANIFEST, FORMAT = "pack.json", 1
ROOT = 0  # a package may be of the administrator of a machine


@dataclass(frozen=True)
class Pack:
    """A pack that fits a device."""

    folder: str
    architecture: str  # such as sm_90


def pack_place() -> str | None:
    """The folder of the pack; None where there is none."""
    named = os.environ.get(VARIABLE)
    if named is not None:
        return None if named.lower() in ("", "off") else os.path.abspath(named)
    package = find_spec(PACKAGE)
    folders = list(package.submodule_search_locations or ()) if package else []
    return folders[0] if folders else None


@cache
def pack_of(device: Any) -> Pack | None:
    """The pack for a GPU; None where there is none that fits, which is said."""
    capability = str(getattr(device, "compute_capability", ""))
    folder = pack_place() if device.platform == "gpu" else None
    if folder is None or not capability:
        return None
    pack = Pack(folder, f"sm_{capability.replace('.', '')}")
    why = _why_not(pack)
    if why is None:
        return pack
    warnings.warn(f"programs in {folder} are not used: {why}", stacklevel=2)
    return None


def _why_not(pack: Pack) -> str | None:
    """Why a pack does not fit; None where it does."""
    content = content_of(os.path.join(pack.folder, MANIFEST), _owners())
    if content is None:
        return f"there is no {MANIFEST} that only you, or root, may write to"
    try:
        manifest = json.loads(content)
        makers, targets = manifest["makers"], manifest["architectures"]
        known = manifest["format"] == FORMAT
    except (ValueError, LookupError, TypeError):
        return f"{MANIFEST} is damaged"
    if not known:
        return f"{MANIFEST} is of another format"
    own = program_key.pack_makers()
    for name, value in own.items():
        if makers.get(name) != value:
            return f"{name} is {value}, and they are for {makers.get(name)}"
    if pack.architecture not in targets:
        return f"this is {pack.architecture}, and they are for {', '.join(targets)}"
    return None


def read_packed(pack: Pack, name: str) -> tuple[dict[str, Any], bytes] | None:
    """The parts of a program; None if there is none, or it is foreign or damaged."""
    path = os.path.join(pack.folder, name + SUFFIX)
    content = content_of(path, _owners())
    if content is None:
        return None
    try:
        return unpack(name, content)
    except Damaged:
        return None


def _owners() -> tuple[int, ...]:
    return os.getuid(), ROOT


def begin_pack(folder: Path) -> None:
    """Make the folder of a pack.

    Raises
    ------
    UsageError
        There is something else.
    """
    if folder.exists() and not (folder / MANIFEST).is_file() and any(folder.iterdir()):
        raise UsageError(f"{folder}: there is something else than a pack of programs")
    folder.mkdir(parents=True, exist_ok=True)
    for file in folder.glob(f"*{SUFFIX}"):
        file.unlink()


def write_packed(
    folder: Path, name: str, about: dict[str, Any], executable: bytes
) -> int:
    """Add a program; the bytes of its file."""
    content = pack(name, about, executable)
    return _write(folder / (name + SUFFIX), content)


def finish_pack(folder: Path, architectures: list[str]) -> None:
    """Write the manifest: now it is a pack."""
    makers = program_key.pack_makers()
    manifest = {"format": FORMAT, "architectures": architectures, "makers": makers}
    _write(folder / MANIFEST, json.dumps(manifest, indent=1).encode() + b"\n")


def _write(path: Path, content: bytes) -> int:
    path.write_bytes(content)
    path.chmod(0o644)
    return len(content)
