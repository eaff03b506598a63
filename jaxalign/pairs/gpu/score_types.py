"""Which type the GPU kernels may hold the scores of some pairs in."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxalign.model import bounds

if TYPE_CHECKING:
    from jaxalign.model.selection import CodedSequences
    from jaxalign.pairs.plan import Task


MAX_LETTERS = 30  # an alphabet of the kernels
SAFE_SCORE = 2**13  # a quarter of int16
LETTERS_AT_ONCE = 2**22  # whose scores are added up


def numbers(task: "Task"):
    """(scores, gap open, gap extend) of a task as the kernels see them."""
    return bounds.scaled(task.scoring, "int32", task.output == "identity")


@dataclass(frozen=True)
class Highest:
    """Upper bounds of the scores of every query and target of a task, int64; each side
    is computed when it is asked for, since a large database takes a while."""

    task: Any

    @cached_property
    def queries(self) -> np.ndarray:
        best = self._scores.max(1)
        if self.task.scoring.by_position:
            return np.full(len(self.task.queries), best.sum())
        if self.task.queries is self.task.targets and self._symmetric:
            return self.targets
        return _most(self.task.queries, best)

    @cached_property
    def targets(self) -> np.ndarray:
        return _most(self.task.targets, self._scores.max(0))

    @cached_property
    def _scores(self) -> np.ndarray:
        return np.maximum(numbers(self.task)[0], 0)

    @property
    def _symmetric(self) -> bool:
        return (self._scores.max(0) == self._scores.max(1)).all()


def _most(side: "CodedSequences", best: np.ndarray) -> np.ndarray:
    """By composition; by length where that is far from any limit, which is faster."""
    most = side.lengths * int(best.max(initial=0))
    (far,) = np.nonzero(most >= SAFE_SCORE)
    # Zipped pairs may have the same sequence many times.
    starts, first, which = np.unique(
        side.starts[far], return_index=True, return_inverse=True
    )
    stops = starts + side.lengths[far][first]
    most[far] = _sums(side.codes, starts, stops, best)[which]
    return most


def _sums(
    codes: np.ndarray, starts: np.ndarray, stops: np.ndarray, best: np.ndarray
) -> np.ndarray:
    """Sums of the best scores of the letters from rising starts up to stops, int64."""
    sums, at = np.zeros(len(starts), np.int64), 0
    while at < len(starts):
        last = max(at + 1, int(np.searchsorted(stops, starts[at] + LETTERS_AT_ONCE)))
        begin, end = int(starts[at]), int(stops[at:last].max())
        before = np.zeros(end - begin + 1, np.int64)
        np.cumsum(best[codes[begin:end]], out=before[1:])
        some = slice(at, last)
        sums[some] = before[stops[some] - begin] - before[starts[some] - begin]
        at = last
    return sums


def takes(task: "Task") -> bool:
    """Whether the kernels have the letters of a task; of a profile scores of blocks."""
    alone = task.paths or task.job.kind == "zip"
    beyond = task.scoring.by_position and alone
    return task.scoring.alphabet.size <= MAX_LETTERS and not beyond


def least_type(
    task: "Task", kernels: Any, m: int, n: int, limits: Iterable[int]
) -> tuple[str, bool] | None:
    """``dtype_of`` by the lengths alone or, while a smaller type may do, by one after
    the other of some limits of the scores, each of which takes longer to compute."""
    least = ("int32" if task.output == "identity" else "int16"), True
    by_length = min(m, n) * int(numbers(task)[0].max(initial=0))
    chosen = None
    for limit in chain([by_length], limits):
        chosen = dtype_of(task, kernels, m, n, limit)
        if chosen == least:
            break
    return chosen


def dtype_of(
    task: "Task", kernels: Any, m: int, n: int, high: int
) -> tuple[str, bool] | None:
    """(int16 or int32, whether its range is proved), None where the kernels cannot.

    m, n : the longest query and target; high : no score is above. Local int16 may go
    unproved: the kernels then mark the pairs that have to run again in int32. Not in a
    search, whose scores are used as they come.
    """
    identity = task.output == "identity"
    if not takes(task):
        return None
    if identity and min(m, n) >= bounds.IDENTITY_BASE["int32"]:
        return None
    holds = partial(kernels.fits, *numbers(task), m, n, task.local, high)
    holds = partial(holds, paths=task.paths)
    if not identity and holds(dtype="int16"):
        return "int16", True
    free = task.local and not identity and task.top is None
    free = free and not task.scoring.by_position  # which no list takes
    if free and kernels.detects(*numbers(task)):
        return "int16", False
    return ("int32", True) if holds(dtype="int32") else None
