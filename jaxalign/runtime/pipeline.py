"""Planning, computing and writing at the same time, in three kinds of threads.

One thread plans part n + 1 while others compute part n, a piece each, and the caller
writes part n - 1. Pieces wait in one queue, and whoever is idle takes the next one.
"""

import os
import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any


def default_threads() -> int:
    """The cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


PARTS_AHEAD = 2  # parts planned or at work while the caller has one
# Parts that whoever has them may write at a time; memory is planned so. One thread
# writes 3 million rows of identities a second, a GPU computes 14 million.
WRITERS = min(6, max(2, default_threads() // 4))


@dataclass(eq=False)
class Work:
    """Some rows of a result: what is to be computed for them, and how much is left."""

    content: Any
    pieces: list
    left: int = field(init=False)

    def __post_init__(self):
        self.left = len(self.pieces)


class Stopped(Exception):
    """What a long piece raises to end early, since nobody waits for its result."""


class _PipelineState:
    """What the threads of one run share."""

    def __init__(self, ahead: int, workers: int, ending: threading.Event):
        self.room = threading.Semaphore(ahead + 1)
        self.changed = threading.Condition()
        self.pieces, self.begun = queue.SimpleQueue(), queue.SimpleQueue()
        self.workers, self.stopped, self.ending = workers, False, ending
        self.error: BaseException | None = None

    def stop(self, error: BaseException | None = None) -> None:
        """Let every thread end after what it does now."""
        with self.changed:
            self.stopped, self.error = True, self.error or error
            self.changed.notify_all()
        self.ending.set()
        self.room.release()
        self.begun.put(None)
        for _ in range(self.workers):
            self.pieces.put(None)


def run(
    works: Iterable[Work],
    workers: list[Callable[[], Callable]],
    ahead: int = PARTS_AHEAD,
    ending: threading.Event | None = None,
) -> Iterator[Work]:
    """Compute works piece by piece, and give them back whole and in order.

    Parameters
    ----------
    works : iterable of Work
        Read in a thread of its own, at most ``ahead`` beyond the one given back.
    workers : list of callables
        One a thread: called there once, it gives the callable (work, piece) that
        computes a piece.
    ending : threading.Event, optional
        Set when no more results are wanted: a long piece may look at it and raise
        ``Stopped``.

    Raises
    ------
    Whatever planning or computing has raised; threads end at their next piece.
    """
    shared = _PipelineState(ahead, len(workers), ending or threading.Event())
    threads = [threading.Thread(target=_plan, args=(shared, works))]
    threads += [threading.Thread(target=_work, args=(shared, w)) for w in workers]
    for thread in threads:
        thread.start()
    try:
        while (work := shared.begun.get()) is not None:
            with shared.changed:
                shared.changed.wait_for(lambda work=work: not work.left or shared.error)
            if shared.error:
                break
            yield work
            shared.room.release()
        if shared.error:
            raise shared.error
    finally:
        shared.stop()
        for thread in threads:
            thread.join()


def _plan(shared: _PipelineState, works: Iterable[Work]) -> None:
    try:
        works = iter(works)
        while True:
            shared.room.acquire()
            work = None if shared.stopped else next(works, None)
            if work is None:
                break
            shared.begun.put(work)
            for piece in work.pieces:
                shared.pieces.put((work, piece))
        shared.begun.put(None)
        for _ in range(shared.workers):
            shared.pieces.put(None)
    except BaseException as error:
        shared.stop(error)


def _work(shared: _PipelineState, worker: Callable[[], Callable]) -> None:
    try:
        compute = worker()
        while (item := shared.pieces.get()) is not None and not shared.stopped:
            compute(*item)
            with shared.changed:
                item[0].left -= 1
                shared.changed.notify_all()
    except BaseException as error:
        shared.stop(error)
