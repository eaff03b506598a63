"""Write beside the final name, then rename: a file is whole or it is not there."""

import os
import stat
import sys
from collections.abc import Callable, Iterable

from jaxalign.errors import UsageError

STDOUT = "-"


def check(path: str, force: bool) -> None:
    """Refuse an output path before any work is done for it.

    Parameters
    ----------
    path : str
        A file name, or "-" for standard output.
    force : bool
        Allow to replace a file that exists.

    Raises
    ------
    UsageError
        The folder is missing, the path is a folder, or the file exists and
        `force` is false.
    """
    if path == STDOUT:
        return
    folder = os.path.dirname(os.path.realpath(path))
    if not os.path.isdir(folder):
        raise UsageError(f"{path}: the folder {os.path.dirname(path)} does not exist")
    if os.path.isdir(path):
        raise UsageError(f"{path}: is a folder; give a file name")
    if os.path.isfile(path) and not force:
        raise UsageError(
            f"{path}: exists; use --force (force=True) to replace it, or another name"
        )


def write_text(path: str, pieces: Iterable[str]) -> None:
    """Write pieces of text to a file, whole or not at all, or to standard output."""
    if path == STDOUT:
        sys.stdout.writelines(pieces)
        return
    write_file(path, lambda temporary: _fill(temporary, pieces))


def write_file(path: str, fill: Callable[[str], None]) -> None:
    """Let `fill` write a temporary file in the same folder, then rename it.

    Parameters
    ----------
    path : str
        The final name; a symbolic link is followed.
    fill : callable
        Given a path, writes the content there.

    Raises
    ------
    UsageError
        The file cannot be written there.
    """
    if os.path.exists(path) and not stat.S_ISREG(os.stat(path).st_mode):
        # A pipe or /dev/null must be written to, never replaced.
        fill(path)
        return
    final = os.path.realpath(path)
    folder, name = os.path.split(final)
    temporary = os.path.join(folder, f".{name[:200]}.{os.getpid()}.tmp")
    try:
        fill(temporary)
        os.replace(temporary, final)
    except PermissionError as error:
        raise UsageError(f"{path}: cannot be written ({error.strerror})") from error
    finally:
        if os.path.lexists(temporary):
            os.remove(temporary)


def _fill(path: str, pieces: Iterable[str]) -> None:
    with open(path, "w", encoding="utf-8", newline="\n") as handle:
        handle.writelines(pieces)
