"""The one place where threads of a job start, wait, fail and are interrupted.

``run`` is the loop of every job. One thread plans part n + 1 while others compute part
n, piece by piece, and the caller writes part n - 1. Pieces wait in one queue, from
which every idle thread takes the next one. ``teller`` and ``watcher`` let a caller hear
how far they are. ``in_threads``, ``in_advance`` and ``in_background`` are for what is
no job: a function of many arguments, the next items of a loop, a single call.
``COUNTS`` says how many programs the process has loaded or compiled.
"""

import os
import queue
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any


def default_threads() -> int:
    """The cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


PARTS_AHEAD = 2  # parts planned or computed while the caller has one
# Parts that are written at a time; memory is planned for them. One thread writes 3
# million rows of identities a second, and a GPU computes 14 million.
WRITERS = min(6, max(2, default_threads() // 4))


@dataclass(eq=False)
class Work:
    """Rows of a result, their pieces, and the number of pieces still to compute."""

    content: Any
    pieces: Sequence
    remaining: int = field(init=False)

    def __post_init__(self):
        self.remaining = len(self.pieces)


class Stopped(Exception):
    """A long piece raises this to end early, because nobody waits for its result."""


class _PipelineState:
    """The queues, the error and the end of one run, which its threads share."""

    def __init__(self, parts_ahead: int, workers: int, ending: threading.Event):
        self.room = threading.Semaphore(parts_ahead + 1)
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
    parts_ahead: int = PARTS_AHEAD,
    ending: threading.Event | None = None,
) -> Iterator[Work]:
    """Compute works piece by piece, and yield them whole and in order.

    With ``parts_ahead`` 0 a single worker runs in the caller's thread. Else a separate
    thread reads ``works``, at most ``parts_ahead`` beyond the one that was yielded.
    Each of ``workers`` is called once, in its thread, and returns a function (work,
    piece) that computes a piece. ``ending`` is set when no more results are needed: a
    long piece may check it and raise ``Stopped``.

    An error of planning or computing ends all threads at their next piece, and is
    raised here; so does an interrupt, but nobody waits for the threads then.
    """
    if parts_ahead == 0 and len(workers) == 1:
        compute = workers[0]()
        for work in works:
            for piece in work.pieces:
                compute(work, piece)
            work.remaining = 0
            yield work
        return
    shared = _PipelineState(parts_ahead, len(workers), ending or threading.Event())
    threads = [threading.Thread(target=_plan, args=(shared, works))]
    threads += [threading.Thread(target=_work, args=(shared, w)) for w in workers]
    for thread in threads:
        thread.start()
    try:
        while (work := shared.begun.get()) is not None:
            with shared.changed:
                shared.changed.wait_for(
                    lambda work=work: not work.remaining or shared.error
                )
            if shared.error:
                break
            yield work
            shared.room.release()
        if shared.error:
            raise shared.error
    except KeyboardInterrupt:  # who interrupts does not wait for a piece to end
        threads.clear()
        raise
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
                item[0].remaining -= 1
                shared.changed.notify_all()
    except BaseException as error:
        shared.stop(error)


def in_threads(function: Callable, pieces: Iterable, threads: int) -> list:
    """Map a function over pieces in threads; cancel the rest when one fails."""
    if threads == 1:
        return [function(piece) for piece in pieces]
    pool = ThreadPoolExecutor(threads)
    try:
        return list(pool.map(function, pieces))
    finally:  # also when it is interrupted
        pool.shutdown(cancel_futures=True)


def in_advance(
    function: Callable,
    items: Iterable,
    count: int,
    by_caller: Callable[[Any], bool] = lambda item: False,
) -> Generator:
    """Yield results of a function, in order; the next ``count`` are computed meanwhile,
    side by side. An error of the items is raised behind the results before it.

    by_caller : whether an item is computed by the caller, with nothing beside it
    """
    items, waiting, failed = iter(items), deque[Future](), None
    pool = ThreadPoolExecutor(count)
    try:
        while True:
            try:
                item = next(items)
            except StopIteration:
                break
            except Exception as error:
                failed = error
                break
            in_pool = not by_caller(item)
            if in_pool:
                waiting.append(pool.submit(function, item))
            while len(waiting) > (count if in_pool else 0):
                yield waiting.popleft().result()
            if not in_pool:
                yield function(item)
        while waiting:
            yield waiting.popleft().result()
        if failed is not None:
            raise failed
    finally:  # also where nobody wants the others
        pool.shutdown(cancel_futures=True)


def read_ahead(items: Iterable) -> Iterator:
    """Yield items, computing the next one in a thread meanwhile."""
    items, end = iter(items), object()
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, items, end)
        while (item := coming.result()) is not end:
            coming = pool.submit(next, items, end)
            yield item


def in_background(function: Callable, pieces: Iterable, threads: int) -> list[Future]:
    """Start calls of a function without waiting for them."""
    pool = ThreadPoolExecutor(threads)
    futures = [pool.submit(function, piece) for piece in pieces]
    pool.shutdown(wait=False)
    return futures


def teller(
    progress: Callable[[int, int], object] | None, total: int
) -> Callable[[int], None]:
    """Return a thread-safe function that adds up cells and reports progress."""
    lock, sum_of_cells = threading.Lock(), 0

    def add_cells(cells: int) -> None:
        nonlocal sum_of_cells
        with lock:
            sum_of_cells += cells
            if progress:
                progress(sum_of_cells, total)

    return add_cells


def watcher(
    busy: Callable[[int, int], object] | None, devices: int
) -> Callable[[object, int], None]:
    """Return a thread-safe function that counts devices at work."""
    lock, at_work = threading.Lock(), dict[object, int]()

    def change_count(device: object, change: int) -> None:
        with lock:
            at_work[device] = at_work.get(device, 0) + change
            if busy:
                busy(sum(count > 0 for count in at_work.values()), devices)

    return change_count


class ProgramCounts:
    """Counts and seconds of all threads together; listeners hear of compilations.

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
        start = time.perf_counter()
        try:
            yield
        finally:
            with self._lock:
                self.seconds[what] += time.perf_counter() - start
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

    def _tell(self, started: int, ended: int) -> None:
        with self._lock:
            self.begun, self.ended = self.begun + started, self.ended + ended
            counts = self.ended, self.begun
        for listen in list(self._listeners):
            listen(*counts)


COUNTS = ProgramCounts()
programs_listener = COUNTS.listener
