"""Names that were seen before, 8 bytes a name, whatever the name."""

from collections.abc import Sequence

import numpy as np


class NameHashes:
    """Hashes of names, in sorted runs, each at least twice as long as the next one."""

    def __init__(self):
        self._runs: list[np.ndarray] = []

    def add(self, names: Sequence[str]) -> np.ndarray:
        """Take some names; the places of those, int64, whose hash was there before."""
        new = np.array([hash(name) for name in names], np.int64)
        order = np.argsort(new, kind="stable")
        rising = new[order]
        again = np.zeros(len(new), bool)
        again[1:] = rising[1:] == rising[:-1]
        for run in self._runs:
            place = np.minimum(np.searchsorted(run, rising), len(run) - 1)
            again |= run[place] == rising
        self._keep(rising)
        return np.sort(order[again])

    def _keep(self, rising: np.ndarray) -> None:
        while self._runs and len(self._runs[-1]) < 2 * len(rising):
            rising = np.sort(np.concatenate([self._runs.pop(), rising]), kind="stable")
        if len(rising):
            self._runs.append(rising)
