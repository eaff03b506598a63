"""Sums of a table over the positions of pairs of rows: distances without a gap."""

import numpy as np

STRETCH = 2**16  # pairs at a time: they stay in the cache


def pair_sums(
    table: np.ndarray, x: np.ndarray, y: np.ndarray, i: np.ndarray, j: np.ndarray
) -> np.ndarray:
    """Of rows ``i`` of x and rows ``j`` of y, int32 (P,).

    Parameters
    ----------
    table : int (letters, letters)
    x, y : uint8 (rows, positions)
    i, j : int (P,)
    """
    letters = len(table)
    flat = np.ascontiguousarray(table, np.int32).reshape(-1)
    sums = np.zeros(len(i), np.int32)
    rows = x.astype(np.uint16) * np.uint16(letters)
    for start in range(0, len(i), STRETCH):
        some = slice(start, start + STRETCH)
        sums[some] = flat[rows[i[some]] + y[j[some]]].sum(axis=1, dtype=np.int32)
    return sums
