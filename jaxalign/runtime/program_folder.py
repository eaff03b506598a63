# pyright: strict
"""The folder of compiled programs: files that outlive the process that made them.

A file is named after all that its program depends on (``runtime.program_key``), so
that home folders may be shared by unlike machines. Whatever cannot be read whole, or
belongs to somebody else, is no entry. The oldest files go when the folder is full.
"""

import os
import stat
import tempfile
import zlib
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

from jaxalign.runtime import machine

FOLDER = "JAXALIGN_CACHE_DIR"  # another folder; empty, or "off": none
MAX_BYTES = 2**30
MAGIC = b"jaxalign program 1\n"
SUFFIX, NOTE_SUFFIX = ".program", ".note"
DIGEST_BYTES = 32


def program_folder() -> str | None:
    """Where programs are kept; None if they are not, or if no folder is safe."""
    folder = os.environ.get(FOLDER)
    if folder is None:
        folder = default_folder()
    elif folder.lower() in ("", "off") or not os.path.isabs(folder):
        return None
    return folder if folder is not None and is_private(folder) else None


def default_folder() -> str | None:
    """``jaxalign`` in the user's cache folder; None for a user without one.

    A relative ``XDG_CACHE_HOME`` is ignored, as the XDG Base Directory Specification
    wants it.
    """
    home = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(home):
        try:
            home = str(Path.home() / ".cache")
        except (RuntimeError, KeyError):  # no HOME, and no entry of this user's number
            return None
    return os.path.join(home, "jaxalign") if os.path.isabs(home) else None


def is_private(folder: str) -> bool:
    """Whether a folder is this user's and closed to others, made so where it can be.

    A program in it is run: who may write there could have any program run. A folder
    that others could only read is closed; one that they could write to is not used,
    since it may hold their programs by now.
    """
    try:
        os.makedirs(os.path.dirname(folder), exist_ok=True)
        os.makedirs(folder, 0o700, exist_ok=True)
        state = os.stat(folder, follow_symlinks=False)
        mine = stat.S_ISDIR(state.st_mode) and state.st_uid == os.getuid()
        if not mine or state.st_mode & 0o022:
            return False
        if state.st_mode & 0o777 != 0o700:
            os.chmod(folder, 0o700)
        return os.access(folder, os.W_OK)
    except (OSError, ValueError):
        return False


def read(folder: str, name: str) -> bytes | None:
    """The content of an entry; None if there is none, or it is damaged or foreign."""
    path = os.path.join(folder, name + SUFFIX)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            state = os.fstat(descriptor)
            if state.st_uid != os.getuid() or state.st_mode & 0o022:
                return None
            whole = file.read()
        with suppress(OSError):
            os.utime(path)  # the oldest files go first
    except OSError:
        return None
    begin = len(MAGIC) + DIGEST_BYTES
    digest, body = whole[len(MAGIC) : begin], whole[begin:]
    if not whole.startswith(MAGIC) or digest != _digest(body):
        return None
    try:
        return zlib.decompress(body)
    except zlib.error:
        return None


def write(folder: str, name: str, content: bytes) -> None:
    """Add an entry, or replace it, in one step; a folder that cannot take it stays as
    it is."""
    body = zlib.compress(content, 1)
    temporary = None
    try:
        descriptor, temporary = tempfile.mkstemp(prefix=".", suffix=".new", dir=folder)
        with open(descriptor, "wb") as file:
            file.write(MAGIC + _digest(body) + body)
        os.replace(temporary, os.path.join(folder, name + SUFFIX))
        _remove_oldest(folder)
    except OSError:
        if temporary is not None:
            with suppress(OSError):
                os.unlink(temporary)


def leave_note(folder: str, text: str) -> None:
    """Note something about programs of this machine and this code that are there."""
    with suppress(OSError), open(_note(folder, text), "xb"):
        pass


def has_note(folder: str, text: str) -> bool:
    """Whether the same was noted before, on a machine like this one."""
    return os.path.exists(_note(folder, text))


def _note(folder: str, text: str) -> str:
    name = blake2b((text + machine.summary()).encode(), digest_size=16).hexdigest()
    return os.path.join(folder, name + NOTE_SUFFIX)


def entries(folder: str) -> list[tuple[str, os.stat_result]]:
    """Names and states of all entries."""
    found: list[tuple[str, os.stat_result]] = []
    with suppress(OSError), os.scandir(folder) as files:
        for file in files:
            if file.name.endswith(SUFFIX):
                with suppress(OSError):  # another process has removed it
                    state = file.stat(follow_symlinks=False)
                    found.append((file.name.removesuffix(SUFFIX), state))
    return found


def program_files() -> dict[str, str | int]:
    """The folder, how many programs are in it, and how many bytes these have."""
    folder = program_folder()
    if folder is None:
        return {"folder": "none"}
    sizes = [state.st_size for _, state in entries(folder)]
    return {"folder": folder, "programs": len(sizes), "bytes": sum(sizes)}


def _digest(body: bytes) -> bytes:
    return blake2b(body, digest_size=DIGEST_BYTES).digest()


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
