"""Groups that stand one after the other: where each begins, and who is in it."""

from collections.abc import Iterator

import numpy as np


def begins(*columns: np.ndarray) -> np.ndarray:
    """Whether each row of sorted columns differs from the one before it, bool (n,)."""
    new = np.zeros(len(columns[0]), bool)
    new[:1] = True
    for column in columns:
        new[1:] |= column[1:] != column[:-1]
    return new


def ranks(sizes: np.ndarray) -> np.ndarray:
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


def renumbered(labels: np.ndarray) -> np.ndarray:
    """The same groups, numbered from 0 in the order of their first members, int32."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    order = np.empty(len(first), np.int32)
    order[np.argsort(first)] = np.arange(len(first), dtype=np.int32)
    return order[inverse]
