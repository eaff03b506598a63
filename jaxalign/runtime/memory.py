"""Memory, planned before work starts."""

import re
from math import inf
from pathlib import Path

import numpy as np

from jaxalign.errors import MemoryPlanError, UsageError

SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*((?:[kmgt]i?)?)b?\s*", re.ASCII)
BYTE_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
BYTE_UNITS |= {"ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


def parse_bytes(text) -> int:
    """``"2GiB"``, ``"500MB"`` or a number of bytes -> bytes.

    Raises
    ------
    UsageError
        Not a size of a byte or more.
    """
    size = text
    if isinstance(text, str):
        found = SIZE.fullmatch(text.lower())
        if not found:
            raise UsageError(f"memory budget {text!r}: write it as 2GiB or 500MB")
        size = float(found[1]) * BYTE_UNITS[found[2]]
    numbers = int, float, np.integer, np.floating
    if not isinstance(size, numbers) or isinstance(size, bool) or not 1 <= size < inf:
        raise UsageError(f"memory budget {text!r}: a size of 1 byte or more is needed")
    return int(size)


def budget(asked=None) -> int:
    """The bytes asked for, or half of what is available now."""
    return _available() // 2 if asked is None else parse_bytes(asked)


def _available() -> int:
    """Bytes the system could give without swapping; 4 GiB where it cannot say."""
    try:
        found = re.search(
            r"MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text()
        )
        return int(found[1]) * 1024
    except (OSError, TypeError):
        return 2**32


def show_bytes(count: float) -> str:
    """Bytes for people: ``1.5 GiB``."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.3g} {unit}"
        count /= 1024
    return f"{count:.4g} TiB"


def refuse_over(needed: int, limit: int, what: str) -> None:
    """Refuse a plan before it starts, with the size that would fit."""
    if needed > limit:
        raise MemoryPlanError(
            f"{what}: {show_bytes(needed)} needed, the memory budget is "
            f"{show_bytes(limit)}: a budget of {needed} bytes would fit"
        )
