"""Groups of many sizes, one after the other, and where work on them is cut."""

from collections.abc import Iterator

import numpy as np


def counted(sizes: np.ndarray) -> np.ndarray:
    """0 … size - 1 of each size, one after the other."""
    ends = np.cumsum(sizes)
    return np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - sizes, sizes)


def spans(sizes: np.ndarray, most: int) -> Iterator[tuple[int, int]]:
    """(start, stop) of runs of groups with ``most`` members together, or of one group
    that has more."""
    ends = np.cumsum(sizes)
    start = 0
    while start < len(ends):
        before = ends[start - 1] if start else 0
        stop = int(np.searchsorted(ends, before + most, side="right"))
        stop = max(stop, start + 1)
        yield start, stop
        start = stop
