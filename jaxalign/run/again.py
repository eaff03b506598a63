"""Pairs whose scores have left 8 bits, until there are enough for windows of them."""

import threading

import numpy as np

ENOUGH = 2**16  # pairs: their indices take a megabyte


class Pairs:
    """Indices (query, target) of pairs to be computed again; threads share it."""

    def __init__(self):
        self._lock, self._held, self._count = threading.Lock(), [], 0

    def add(self, queries, targets):
        """Take some; when there are enough, give all of them, (queries, targets)."""
        with self._lock:
            self._held.append((queries, targets))
            self._count += len(queries)
            return self._all() if self._count >= ENOUGH else None

    def rest(self):
        """All that are left, or None."""
        with self._lock:
            return self._all() if self._count else None

    def _all(self):
        sides = zip(*self._held, strict=True)
        queries, targets = (np.concatenate(side) for side in sides)
        self._held, self._count = [], 0
        return queries, targets
