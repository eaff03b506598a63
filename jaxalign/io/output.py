"""Write beside the final name, then rename: a file is whole or it is not there."""

import glob
import os
import platform
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from jaxalign.errors import JaxalignError, UsageError
from jaxalign.model.names import visible

STDOUT, STANDARD_OUTPUT = "-", "standard output"
COMPRESSED = (".gz", ".bz2", ".xz", ".zst")  # of files that are read
TEMPORARIES: set[str] = set()  # files that are being written; who ends the process
# removes them
# Of the job that runs, for the message of its end: the share that is done, and the
# file or folder from which --resume goes on, with the share that it keeps.
SHARE: dict[str, float] = {}
RESUMABLE: dict[str, str] = {}


def check(path: str, force: bool) -> None:
    """Refuse an output path, a file name or "-", before any work is done for it."""
    if path == STDOUT:
        return
    if not is_name(path):
        raise UsageError(f"{path!r}: not a valid file name")
    folder = os.path.dirname(os.path.realpath(path))
    if not os.path.isdir(folder):
        raise UsageError(f"{path}: the folder {os.path.dirname(path)} does not exist")
    if os.path.isdir(path):
        raise UsageError(f"{path}: is a folder; give a file name")
    if os.path.isfile(path) and not force:
        raise UsageError(
            f"{path}: exists; use force=True to replace it, or another name"
        )


def is_name(path: str) -> bool:
    """Whether a file could have this name: no NUL character, and no surrogate that
    stands for no byte."""
    try:
        return b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        return False


def file_in(folder: str, name: str, suffix: str) -> str:
    """Name a file of a folder after something in the data."""
    if name != os.path.basename(name) or not is_name(name) or name[:1] in ("", "."):
        raise UsageError(f"{name!r} cannot name a file in {folder}: rename it")
    return os.path.join(folder, name + suffix)


def check_inputs(path: str | None, inputs: Iterable[str | None]) -> None:
    """Refuse an output that is the same file as an input."""
    if path in (None, STDOUT) or not os.path.isfile(path):
        return
    for source in filter(None, inputs):
        file = "/dev/stdin" if source == "-" else source
        if os.path.exists(file) and os.path.samefile(path, file):
            raise UsageError(f"{path}: is the input {source}; give another name")


@contextmanager
def naming(path: str, hint: str = "") -> Iterator[None]:
    """Re-raise system errors with the name of the file that cannot be written."""
    try:
        yield
    except BrokenPipeError:  # the reader has enough
        raise
    except OSError as error:
        kind = UsageError if isinstance(error, PermissionError) else JaxalignError
        why = error.strerror or error
        raise kind(f"{path}: cannot be written ({why}){hint}") from error


def write_text(path: str, pieces: Iterable[str]) -> None:
    """Write pieces of text to a file, whole or not at all, or to standard output."""
    if path == STDOUT:
        stream = standard_output()
        if stream.isatty():  # which would obey what is in a name
            pieces = map(visible, pieces)
        with naming(STANDARD_OUTPUT):
            stream.writelines(pieces)
        return

    def fill(temporary: str) -> None:
        with open(temporary, "w", encoding="utf-8", newline="\n") as handle:
            handle.writelines(pieces)

    write_file(path, fill)


def standard_output() -> TextIO:
    """Standard output."""
    if sys.stdout is None:
        raise JaxalignError(f"{STANDARD_OUTPUT}: cannot be written (closed)")
    return sys.stdout


def write_file(path: str, fill: Callable[[str], None]) -> None:
    """Let ``fill`` write a temporary file in the same folder, then rename it; a
    symbolic link is followed."""
    with naming(path):
        if os.path.exists(path) and not stat.S_ISREG(os.stat(path).st_mode):
            # A pipe or /dev/null must be written to, never replaced.
            fill(path)
        else:
            replace_file(os.path.realpath(path), fill)


def replace_file(path: str, fill: Callable[[str], None]) -> None:
    """Write a file as ``write_file`` does, but replace a symbolic link and raise system
    errors unchanged."""
    # Remove unlocked temporaries of this machine, whose process was killed. Locks of
    # another machine may be invisible here; its temporaries have its name.
    for name in glob.glob(f"{glob.escape(_prefix(path))}*.tmp"):
        with suppress(OSError, AttributeError):  # Windows has no such flags
            handle = os.open(name, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                if _lock(handle, wait=False):
                    os.remove(name)
            finally:
                os.close(handle)
    mode = None
    with suppress(OSError):  # the file that is replaced keeps its mode
        state = os.lstat(path)
        mode = stat.S_IMODE(state.st_mode) if stat.S_ISREG(state.st_mode) else None
    with _temporary(path, mode) as temporary:
        fill(temporary)
        if mode is not None:
            os.chmod(temporary, mode)
        os.replace(temporary, path)


def remove_temporaries() -> None:
    """Remove incomplete temporary files before the process exits."""
    for name in list(TEMPORARIES):
        with suppress(OSError):
            os.remove(name)


def resumable() -> str:
    """The end of a message about an interruption: what --resume goes on from."""
    states = ", ".join(f"{path} keeps {x}" for path, x in [*RESUMABLE.items()])
    return f": {states}, --resume continues" if states else ""


@contextmanager
def _temporary(path: str, mode: int | None) -> Iterator[str]:
    """A new file beside another, which nobody can foresee; it is locked for as long as
    its process lives. Nobody may read it who may not read a file of this ``mode``."""
    while True:
        name = f"{_prefix(path)}{os.urandom(8).hex()}.tmp"
        TEMPORARIES.add(name)
        opened = 0o666 if mode is None else mode & 0o666 | 0o600
        handle = os.open(name, os.O_CREAT | os.O_EXCL | os.O_RDWR, opened)
        _lock(handle, wait=True)
        if os.path.exists(name):  # else it was taken for abandoned, not locked yet
            break
        os.close(handle)
    try:
        yield name
    finally:
        with suppress(FileNotFoundError):
            os.remove(name)
        TEMPORARIES.discard(name)
        os.close(handle)


def _prefix(path: str) -> str:
    """Prefix of temporary files of this machine; a name has 255 bytes at most."""
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name[:40]}.{platform.node()}.")


def _lock(handle: int, wait: bool) -> bool:
    """Try to lock a file; return whether it is locked. Windows and some file systems
    cannot."""
    try:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):
        return False
    return True
