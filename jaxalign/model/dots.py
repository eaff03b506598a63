"""The dot plot of two sequences: how alike they are around every pair of residues."""

from typing import Any

import numpy as np

WINDOW = 11  # residues along a diagonal, around the pair
PIXELS = 1000  # a side at most


def dots(
    query: Any,
    target: np.ndarray,
    scores: np.ndarray,
    window: int = WINDOW,
    pixels: int = PIXELS,
):
    """Scores summed along diagonals, as shades.

    Parameters
    ----------
    query, target : codes (m,), (n,)
    scores : (letters, letters)
    window : int
        An odd number of residues; beyond the ends of a sequence nothing is added.
    pixels : int
        Rows and columns at most. A pixel of several pairs has the greatest of them.

    Returns
    -------
    float32 (rows, columns)
        0 where the sum is 0 or less, 1 where it is greatest.
    """
    half, (m, n) = window // 2, (len(query), len(target))
    around = np.asarray(scores, np.float32)[:, target]
    around = np.pad(around, ((0, 0), (half, half)))
    height, columns = _block(m, pixels), np.arange(0, n, _block(n, pixels))
    shades = np.zeros((-(-m // height), len(columns)), np.float32)
    for i in range(m):
        sums = np.zeros(n, np.float32)
        for k in range(max(-half, -i), min(half, m - 1 - i) + 1):
            sums += around[query[i + k], half + k : half + k + n]
        row = shades[i // height]
        np.maximum(row, np.maximum.reduceat(sums, columns), out=row)
    return shades / max(shades.max(initial=0), 1e-9)


def _block(length: int, pixels: int) -> int:
    """Residues of a pixel."""
    return max(1, -(-length // pixels))
