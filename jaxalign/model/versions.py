# pyright: strict
"""Versions of the packages that a result depends on."""

import platform
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version


def package_versions(packages: Iterable[str]) -> dict[str, str]:
    """Versions of some packages, ``unknown`` where one is not installed, and Python."""
    versions = {name: _version(name) for name in packages}
    return versions | {"python": platform.python_version()}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"
