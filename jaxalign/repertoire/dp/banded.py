"""Scores of global alignments with linear gap costs, near the diagonal, many pairs."""

import numpy as np

LOWEST = -(2**30)


def banded_scores(
    scores: np.ndarray, x: np.ndarray, y: np.ndarray, gap: int, band: range
) -> np.ndarray:
    """Best scores of alignments that stay in a band, int32 (P,).

    With H(i, j) the best score of i letters of x and j letters of y,

        H(i, j) = max(H(i-1, j-1) + S(x_i, y_j), H(i-1, j) - gap, H(i, j-1) - gap)

    (Needleman and Wunsch 1970, with linear costs), where j - i is in the band and
    H is lower than any score elsewhere. All pairs are computed side by side.

    Parameters
    ----------
    scores : int (letters, letters)
    x, y : uint8 (P, m), uint8 (P, n)
    gap : int
        Cost of each letter beside a gap.
    band : range
        Values of j - i; 0 and n - m are among them.
    """
    (count, m), n = x.shape, y.shape[1]
    letters = len(scores)
    flat = np.ascontiguousarray(scores, np.int32).reshape(-1)
    rows = np.ascontiguousarray(x.T).astype(np.uint16) * np.uint16(letters)
    columns = np.ascontiguousarray(y.T)
    # One value a diagonal: that of the row above until it is replaced.
    values = [_border(d, gap, n, count) for d in band]
    for i in range(m):
        for k, d in enumerate(band):
            j = i + d
            if j == -1:
                values[k] = np.full(count, -(i + 1) * gap, np.int32)
            if not 0 <= j < n:
                continue
            best = values[k] + flat[rows[i] + columns[j]]
            if k + 1 < len(values) and j + 1 <= n:
                np.maximum(best, values[k + 1] - gap, out=best)
            if k and j >= 0:
                np.maximum(best, values[k - 1] - gap, out=best)
            values[k] = best
    return values[band.index(n - m)]


def _border(j: int, gap: int, n: int, count: int) -> np.ndarray:
    """H(0, j)."""
    return np.full(count, -j * gap if 0 <= j <= n else LOWEST, np.int32)
