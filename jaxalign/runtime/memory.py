# pyright: strict
"""Memory: budgets, planned before work starts, and the maps of compiled programs.

XLA's programs for a CPU lie in memory maps, some 40 of one box of three sequences with
JAX 0.12 and 180 with 0.10. Linux lets a process have 65,530 (``vm.max_map_count``), and
XLA ends a process that is refused one. Programs of pairs come in few sizes; those of
triples come in thousands, and are forgotten where maps run short (``programs``).
"""

import re
from itertools import count
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from jaxalign.errors import MemoryPlanError, UsageError

SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*((?:[kmgt]i?)?)b?\s*", re.ASCII)
NUMBERS: Any = (int, float, np.integer, np.floating)
PREFIXES = "kmgt"
BYTES_OF_PREFIX = (
    {"": 1}
    | {name: 1000**n for n, name in enumerate(PREFIXES, 1)}
    | {f"{name}i": 1024**n for n, name in enumerate(PREFIXES, 1)}
)
BYTES_IF_UNKNOWN = 2**32  # where the system does not say what is free
MAPS = Path("/proc/self/maps")  # on Linux
MAX_MEMORY_MAPS = 2**15
CALLS_BETWEEN_LOOKS = 4  # counting takes up to 0.04 s, a triple adds up to 4,000 maps
_calls = count(1)


def parse_bytes(size: Any) -> int:
    """``"2GiB"``, ``"500MB"`` or a number of bytes -> bytes.

    Raises
    ------
    UsageError
        Not a size of a byte or more.
    """
    count: Any = _bytes_of(size) if isinstance(size, str) else size
    is_number = isinstance(count, NUMBERS) and not isinstance(count, bool)
    if not is_number or not 1 <= count < inf:
        raise UsageError(f"memory budget {size!r}: a size of 1 byte or more is needed")
    return int(count)


def _bytes_of(text: str) -> float:
    """The bytes of a number with a unit."""
    match = SIZE.fullmatch(text.lower())
    if not match:
        raise UsageError(f"memory budget {text!r}: write it as 2GiB or 500MB")
    return float(match[1]) * BYTES_OF_PREFIX[match[2]]


def budget(size: Any = None) -> int:
    """The bytes of a size, by default half of what is available now."""
    return _available() // 2 if size is None else parse_bytes(size)


def _available() -> int:
    """Bytes the system could give without swapping."""
    try:
        table = Path("/proc/meminfo").read_text()
    except OSError:
        return BYTES_IF_UNKNOWN
    match = re.search(r"MemAvailable:\s+(\d+) kB", table)
    return int(match[1]) * 1024 if match else BYTES_IF_UNKNOWN


def show_bytes(count: float) -> str:
    """Bytes for people: ``1.5 GiB``."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.3g} {unit}"
        count /= 1024
    return f"{count:.4g} TiB"


def refuse_over(needed: int, limit: int, subject: str) -> None:
    """Refuse a plan before it starts, with the size that would fit."""
    if needed > limit:
        raise MemoryPlanError(
            f"{subject}: {show_bytes(needed)} needed, the memory budget is "
            f"{show_bytes(limit)}: a budget of {needed} bytes would fit"
        )


def maps_run_short() -> bool:
    """Whether the process has too many memory maps; looks at every fourth call."""
    if next(_calls) % CALLS_BETWEEN_LOOKS or not MAPS.exists():
        return False
    return MAPS.read_bytes().count(b"\n") > MAX_MEMORY_MAPS
