# pyright: strict
"""The folder of compiled programs: files that outlive the process that made them.

It is ``jaxalign`` in the user's cache folder, or in the one that a variable names. A
file is named after all that its program depends on (``runtime.program_key``), so that
home folders may be shared by unlike machines. Whatever cannot be read whole, or belongs
to somebody else, is no entry. The oldest files go when the folder is full.
"""

import os
import stat
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from jaxalign.runtime import program_file

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


def read(folder: str, name: str) -> tuple[dict[str, Any], bytes] | None:
    """The parts of an entry; None if there is none, or it is foreign, or damaged, and
    then it is removed."""
    path = os.path.join(folder, name + SUFFIX)
    content = _content(path)
    if content is None:
        return None
    try:
        parts = program_file.unpack(name, content)
    except program_file.Damaged:
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


def write(folder: str, name: str, about: dict[str, Any], executable: bytes) -> None:
    """Add an entry, or replace it, in one step; a folder that cannot take it stays as
    it is."""
    temporary = None
    try:
        content = program_file.pack(name, about, executable)
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
