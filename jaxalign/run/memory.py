"""Memory, planned before work starts."""

import os
import re

from jaxalign.errors import MemoryPlanError, UsageError

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
UNITS |= {"ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


def parse_bytes(text) -> int:
    """``"2GiB"``, ``"500MB"`` or a number of bytes -> bytes.

    Raises
    ------
    UsageError
        Not a positive size.
    """
    if isinstance(text, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?i?)b?\s*", text.lower())
        if not found:
            raise UsageError(f"memory budget {text!r}: write it as 2GiB or 500MB")
        text = float(found[1]) * UNITS[found[2]]
    if not text > 0:
        raise UsageError(f"memory budget {text!r}: a size above 0 is needed")
    return int(text)


def default_budget() -> int:
    """Half of the memory that is free now."""
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (ValueError, OSError, AttributeError):
        return 2**31


def show_bytes(count: int) -> str:
    """Bytes for people: ``1.5 GiB``."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.3g} {unit}"
        count /= 1024
    return f"{count:.4g} TiB"


def refuse_over(needed: int, budget: int, what: str) -> None:
    """Refuse a plan before it starts, with the size that would fit."""
    if needed > budget:
        raise MemoryPlanError(
            f"{what} needs {show_bytes(needed)}, the memory budget is "
            f"{show_bytes(budget)}: a budget of {needed} bytes would fit"
        )
