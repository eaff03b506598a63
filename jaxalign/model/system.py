"""Files that have no end or can be read once, and versions of packages, as the system
knows them."""

import os
import platform
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

MEMORY_DEVICES, NULL = 1, 3  # numbers of Linux; /dev/null ends at once


def is_endless(file: str | os.PathLike[str] | int) -> bool:
    """Whether a file, or what is open by this number, is a device such as /dev/zero.

    Of what cannot be looked at, opening it says why.
    """
    try:
        state = os.stat(file)
    except (OSError, ValueError, TypeError):
        return False
    device = os.major(state.st_rdev), os.minor(state.st_rdev)
    memory = device[0] == MEMORY_DEVICES and device[1] != NULL
    return stat.S_ISBLK(state.st_mode) or (stat.S_ISCHR(state.st_mode) and memory)


STDIN = "-"
_kept: dict[object, bytes] | None = None


@contextmanager
def streams_kept() -> Iterator[None]:
    """Keep the bytes of standard input and of pipes, so that a command may read its
    inputs as often as it reads files."""
    global _kept
    _kept = {}
    try:
        yield
    finally:
        _kept = None


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


def package_versions(packages: Iterable[str]) -> dict[str, str]:
    """Versions of some packages, ``unknown`` where one is not installed, and Python."""
    from importlib.metadata import PackageNotFoundError, version  # slow to import

    versions: dict[str, str] = {}
    for name in packages:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            versions[name] = "unknown"
    return versions | {"python": platform.python_version()}


def program_version() -> str:
    """The installed version of jaxalign, or "unknown"."""
    return package_versions(["jaxalign"])["jaxalign"]
