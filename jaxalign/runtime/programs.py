"""Compiled programs, forgotten before a process has too many.

XLA's programs for a CPU lie in memory maps, some 40 of one box of three sequences with
JAX 0.12 and 180 with 0.10. Linux lets a process have 65,530 (``vm.max_map_count``), and
XLA ends a process that is refused one. Programs of pairs come in few sizes; those of
triples come in thousands.
"""

from itertools import count
from pathlib import Path

MAPS = Path("/proc/self/maps")  # on Linux
MAX_MAPS = 2**15
# Calls between looks: counting takes up to 0.04 s, a triple adds up to 4,000
CALLS_BETWEEN_LOOKS = 4
_calls = count(1)


def crowded() -> bool:
    """Whether the process has over ``MAX_MAPS`` maps; looks at every fourth call."""
    if next(_calls) % CALLS_BETWEEN_LOOKS or not MAPS.exists():
        return False
    return MAPS.read_bytes().count(b"\n") > MAX_MAPS


def forget(functions) -> None:
    """Let jitted functions forget what they have compiled where there are too many."""
    if crowded():
        for function in functions:
            function.clear_cache()
