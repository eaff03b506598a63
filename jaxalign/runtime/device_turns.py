# pyright: strict
"""Programs of a GPU are compiled or launched, one or the other at a time.

While XLA compiles for a GPU it tries variants of a program there, in memory of JAX's
pool and on a stream of its own. It waits for what was launched before, but it knows
nothing of what another thread launches meanwhile, in memory that the trials may have.
"""

import threading
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager


class DeviceTurns:
    """Threads that do the same may do it side by side; those that do the other wait."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._at_work: Counter[str] = Counter()

    @contextmanager
    def compiling(self) -> Generator[None]:
        """No launch begins meanwhile."""
        with self._turn("compile", "launch"):
            yield

    @contextmanager
    def launching(self) -> Generator[None]:
        """Nothing is compiled meanwhile; launches themselves are not waited for."""
        with self._turn("launch", "compile"):
            yield

    @contextmanager
    def _turn(self, own: str, other: str) -> Generator[None]:
        with self._changed:
            self._changed.wait_for(lambda: not self._at_work[other])
            self._at_work[own] += 1
        try:
            yield
        finally:
            with self._changed:
                self._at_work[own] -= 1
                self._changed.notify_all()
