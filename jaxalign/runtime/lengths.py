"""Lengths of sequences: in order, and rounded up so that few programs serve all."""

import numpy as np


def by_length(lengths: np.ndarray) -> np.ndarray:
    """Indices, longest first, stable."""
    lengths = np.asarray(lengths)
    longest = lengths.max(initial=0)
    # NumPy sorts numbers of 16 bits by radix, many times as fast.
    small = lengths.size and 0 <= lengths.min() and longest < 2**16
    falling = (longest - lengths).astype(np.uint16) if small else -lengths
    return np.argsort(falling, kind="stable")


def bucket(length: int, step: int = 2, size: int = 64) -> int:
    """The next of size, size * step, size * step^2 ... that holds ``length``."""
    while size < length:
        size *= step
    return size
