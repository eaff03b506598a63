"""Some rows of many: which ones are meant, and their ragged paths."""

import numpy as np
from numpy.typing import ArrayLike

from jaxalign.errors import UsageError


def row_numbers(which: ArrayLike, count: int) -> np.ndarray:
    """A mask of ``count`` truth values, or numbers of rows -> numbers from 0.

    Raises
    ------
    UsageError
        See ``Table.filter``.
    """
    which = np.asarray(which)
    if which.ndim != 1:
        raise UsageError(f"rows of shape {which.shape}: one mask or list is needed")
    if which.dtype == bool:
        if len(which) != count:
            raise UsageError(f"a mask of {len(which):,} for {count:,} rows")
        return np.flatnonzero(which)
    if not len(which):
        return np.zeros(0, np.intp)
    if which.dtype.kind not in "iu":
        raise UsageError(
            f"rows by {which.dtype}: a mask of bool, or integers, are needed"
        )
    outside = (which < -count) | (which >= count)
    if outside.any():
        raise UsageError(f"row {which[outside][0]}: the table has {count:,} rows")
    return np.where(which < 0, which + count, which).astype(np.intp)


def gather_runs(runs: np.ndarray, offsets: np.ndarray, rows: np.ndarray):
    """The ragged rows ``rows`` of (runs, offsets), in that order."""
    counts = np.diff(offsets)[rows]
    new = np.concatenate([[0], np.cumsum(counts)])
    index = np.arange(new[-1]) + np.repeat(offsets[rows] - new[:-1], counts)
    return runs[index], new
