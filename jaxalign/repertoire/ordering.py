"""Many numbers in order, by several threads: each sorts a part, then a range of all.

An edge is one number of 64 bits: to sort these is many times faster than ``lexsort``.
"""

from collections.abc import Callable
from functools import partial

import numpy as np

from jaxalign.runtime.pipeline import in_threads

BITS = 64
RANGES = 4  # of a thread
SAMPLE = 2**12  # numbers that ranges are cut by, of each part at most


def bits_of(largest: int) -> int:
    """How many bits hold numbers up to the largest."""
    return max(int(largest), 0).bit_length()


def packed(columns: tuple[np.ndarray, ...], bits: tuple[int, ...]) -> np.ndarray:
    """Rows of columns as numbers, the first column highest: uint64 (rows,)."""
    keys = columns[0].astype(np.uint64)
    for column, width in zip(columns[1:], bits[1:], strict=True):
        keys <<= np.uint64(width)
        keys |= column.astype(np.uint64)
    return keys


def in_order(parts: list[np.ndarray], unit: int, threads: int) -> list[np.ndarray]:
    """All numbers of some arrays, which are sorted in place: sorted arrays that follow
    each other.

    Parameters
    ----------
    parts : list of uint64 (n,)
    unit : int
        Numbers that differ in so many of their last bits alone are in one array.
    """
    in_threads(np.ndarray.sort, parts, threads)
    if threads == 1 and len(parts) == 1:
        return parts
    bounds = _bounds(parts, unit, RANGES * threads if threads > 1 else 1)
    cuts = [[0, *np.searchsorted(part, bounds).tolist(), len(part)] for part in parts]

    def one(k: int) -> np.ndarray:
        some = [x[cut[k] : cut[k + 1]] for x, cut in zip(parts, cuts, strict=True)]
        numbers = np.concatenate([np.zeros(0, np.uint64), *some])
        numbers.sort()
        return numbers

    return in_threads(one, range(len(bounds) + 1), threads)


def _bounds(parts: list[np.ndarray], unit: int, count: int) -> np.ndarray:
    """Numbers that cut all into ``count`` ranges of like sizes, or fewer."""
    some = [part[:: max(len(part) // SAMPLE, 1)] for part in parts]
    sample = np.sort(np.concatenate([np.zeros(0, np.uint64), *some]))
    places = np.arange(1, count) * len(sample) // count
    chosen = sample[places] if len(sample) else sample
    return np.unique(chosen >> np.uint64(unit) << np.uint64(unit))


def write_all(
    ranges: list[np.ndarray], write: Callable[[slice, np.ndarray], None], threads: int
) -> None:
    """Call ``write`` for each array with its place among all numbers."""
    ends = np.cumsum([len(x) for x in ranges]).tolist()

    def one(k: int) -> None:
        write(slice(ends[k] - len(ranges[k]), ends[k]), ranges[k])

    in_threads(one, range(len(ranges)), threads)


def unpacked(keys: np.ndarray, bits: tuple[int, ...]) -> list[np.ndarray]:
    """The columns of ``packed`` again, int32 each."""
    columns, shift = [], 0
    for width in reversed(bits):
        mask = np.uint64(2**width - 1)
        columns.append(((keys >> np.uint64(shift)) & mask).astype(np.int32))
        shift += width
    return columns[::-1]


def pack_all(
    parts: list[tuple[np.ndarray, ...]], bits: tuple[int, ...], threads: int
) -> list[np.ndarray]:
    """``packed`` of each part."""
    return in_threads(partial(packed, bits=bits), parts, threads)
