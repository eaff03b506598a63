"""The state of a plan while it runs: of the whole run and of each of its threads."""

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jaxalign.pairs.plan import Plan

if TYPE_CHECKING:  # a job by rows imports no JAX
    import jax


Arrays = dict[str, np.ndarray]


@dataclass(eq=False)
class SavedState:
    """Arrays from which an interrupted run resumes; each part has its own.

    ``arrays`` are those of the run that was interrupted, and what is put beside them.
    ``save`` is called whenever there are more, with a function that returns them all.
    """

    arrays: Arrays = field(default_factory=dict)
    save: Callable[[Callable[[], Arrays]], object] = lambda _arrays: None
    prefix: str = ""
    _lock: Any = field(default_factory=threading.Lock)

    def part(self, name: str) -> "SavedState":
        """The state of a part of the run."""
        return SavedState(self.arrays, self.save, f"{self.prefix}{name}.", self._lock)

    def all(self) -> Arrays:
        """The arrays of this part, by their names in it."""
        with self._lock:
            entries = [x for x in self.arrays.items() if x[0].startswith(self.prefix)]
        return {name.removeprefix(self.prefix): array for name, array in entries}

    def put(self, arrays: Arrays, without: Iterable[str] = ()) -> None:
        """Arrays of this part, after some that are not needed any more are dropped."""
        with self._lock:
            for name in without:
                self.arrays.pop(self.prefix + name, None)
            self.arrays.update({self.prefix + name: x for name, x in arrays.items()})
            self.save(lambda: dict(self.arrays))


@dataclass(eq=False)
class Run:
    """A plan while it runs: its rows so far, and what its devices hold."""

    plan: Plan
    output: Any  # ``pairs.result.Output``; None: scores of a search stay on the devices
    kernels: Any = None  # the package ``kernels_pallas``
    saved: SavedState | None = None  # of very large pairs; None: nobody goes on
    device_jobs: dict = field(default_factory=dict)  # (id of a task, device) -> its job
    locks: dict = field(default_factory=dict)  # the same -> a lock
    # (task, (queries, targets)) of the pairs of windows whose scores left 8 bits
    beyond: list = field(default_factory=list)
    halves: dict = field(default_factory=dict)  # (id of a task, i, j) -> ``Halves``
    other_implementations: set = field(default_factory=set)  # beside the plan's
    seconds: float = 0.0

    def lock(self, key: tuple) -> threading.Lock:
        """The lock of one entry of ``device_jobs`` or ``halves``."""
        return self.locks.setdefault(key, threading.Lock())


@dataclass(eq=False)
class Worker:
    """A host thread of a run, its device, and what it leaves to its next piece."""

    device: Any = None  # None: JAX chooses
    report_progress: Callable = lambda _cells: None  # of cells that are done
    only: bool = True  # no other thread has this device
    backtrack: "jax.Array | None" = None  # the buffer of the last window
    profile: "jax.Array | None" = None  # and its database profile
    byte_limit: int = 0  # local scores up to it are tried in 8 bits; 0: none are
    windows_to_skip: int = 0  # that are not tried in 8 bits


class PieceScores(NamedTuple):
    """The scores of some pairs of a search, on the device, and the pairs among them
    that left 8 bits, or None."""

    queries: np.ndarray
    targets: np.ndarray
    score: "jax.Array"  # (slots, places): the first rows and columns are theirs
    beyond: tuple | None = None
