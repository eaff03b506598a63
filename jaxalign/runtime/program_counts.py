# pyright: strict
"""How many programs this process has loaded or compiled, and how long that took."""

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Generator
from contextlib import contextmanager


class ProgramCounts:
    """Counts and seconds of all threads together; who listens is told of compiling.

    ``seconds`` are those of ``trace``, ``lower``, ``compile``, ``load`` and ``store``,
    summed over threads that may work side by side; ``calls`` how often each was done.
    """

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.calls: Counter[str] = Counter()
        self.begun = self.ended = 0  # programs to compile, and compiled
        self._listeners: list[Callable[[int, int], None]] = []
        self._lock = threading.Lock()

    @contextmanager
    def timed(self, what: str) -> Generator[None]:
        """Count a step, and its seconds."""
        began = time.perf_counter()
        try:
            yield
        finally:
            with self._lock:
                self.seconds[what] += time.perf_counter() - began
                self.calls[what] += 1

    @contextmanager
    def compiling(self) -> Generator[None]:
        """Count a program that is being compiled."""
        self._tell(1, 0)
        try:
            yield
        finally:
            self._tell(0, 1)

    @contextmanager
    def listener(self, listen: Callable[[int, int], None]) -> Generator[None]:
        """``listen(ended, begun)`` whenever a compilation begins or ends: of those
        that are begun, so many have ended."""
        self._listeners.append(listen)
        try:
            yield
        finally:
            self._listeners.remove(listen)

    def _tell(self, begun: int, ended: int) -> None:
        with self._lock:
            self.begun, self.ended = self.begun + begun, self.ended + ended
            now = self.ended, self.begun
        for listen in list(self._listeners):
            listen(*now)


COUNTS = ProgramCounts()
programs_listener = COUNTS.listener
