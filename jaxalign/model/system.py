"""Files that have no end, and versions of packages, as the system knows them."""

import os
import platform
import stat
from collections.abc import Iterable

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
