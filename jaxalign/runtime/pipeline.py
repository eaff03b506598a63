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
    """Some rows of a result, their pieces, and how many are not computed yet."""

    content: Any
    pieces: Sequence
    left: int = field(init=False)

    def __post_init__(self):
        self.left = len(self.pieces)


class Stopped(Exception):
    """A long piece raises this to end early, because nobody waits for its result."""


class _PipelineState:
    """The queues, the error and the end of one run, which its threads share."""

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
    """Compute works piece by piece, and yield them whole and in order.

    A single worker that plans nothing ``ahead`` is the caller's thread. Else a thread
    of its own reads ``works``, at most ``ahead`` beyond the one that was
    yielded. Each of ``workers`` is called once, in its thread, and returns a function
    (work, piece) that computes a piece. ``ending`` is set when no more results are
    wanted: a long piece may look at it and raise ``Stopped``.

    An error of planning or computing ends all threads at their next piece, and is
    raised here; so does an interrupt, but nobody waits for the threads then.
    """
    if ahead == 0 and len(workers) == 1:
        yield from _in_turn(works, workers[0]())
        return
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
    except KeyboardInterrupt:  # who interrupts does not wait for a piece to end
        threads.clear()
        raise
    finally:
        shared.stop()
        for thread in threads:
            thread.join()


def _in_turn(works: Iterable[Work], compute: Callable) -> Iterator[Work]:
    for work in works:
        for piece in work.pieces:
            compute(work, piece)
        work.left = 0
        yield work


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


def in_threads(function: Callable, pieces: Iterable, threads: int) -> list:
    """Results of a function, in threads; the others are dropped when one fails."""
    if threads == 1:
        return [function(piece) for piece in pieces]
    pool = ThreadPoolExecutor(threads)
    try:
        return list(pool.map(function, pieces))
    finally:  # also when it is interrupted
        pool.shutdown(cancel_futures=True)


def in_advance(function: Callable, items: Iterable, count: int) -> Generator:
    """Yield results of a function, in order; the next ``count`` are computed meanwhile,
    side by side."""
    waiting: deque[Future] = deque()
    pool = ThreadPoolExecutor(count)
    try:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) > count:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:  # also where nobody wants the others
        pool.shutdown(cancel_futures=True)


def read_ahead(items: Iterable) -> Iterator:
    """The same items, the next one computed in a thread while one is in use."""
    items, end = iter(items), object()
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, items, end)
        while (item := coming.result()) is not end:
            coming = pool.submit(next, items, end)
            yield item


def in_background(function: Callable, pieces: Iterable, threads: int) -> list[Future]:
    """Begin calls of a function, for which nobody need wait."""
    pool = ThreadPoolExecutor(threads)
    futures = [pool.submit(function, piece) for piece in pieces]
    pool.shutdown(wait=False)
    return futures


def teller(
    progress: Callable[[int, int], object] | None, total: int
) -> Callable[[int], None]:
    """A function that adds up cells, whichever thread they come from."""
    lock, sum_of_cells = threading.Lock(), 0

    def tell(cells: int) -> None:
        nonlocal sum_of_cells
        with lock:
            sum_of_cells += cells
            if progress:
                progress(sum_of_cells, total)

    return tell


def watcher(
    busy: Callable[[int, int], object] | None, devices: int
) -> Callable[[object, int], None]:
    """A function that counts devices at work; each may have several threads."""
    lock, at_work = threading.Lock(), dict[object, int]()

    def watch(device: object, change: int) -> None:
        with lock:
            at_work[device] = at_work.get(device, 0) + change
            if busy:
                busy(sum(count > 0 for count in at_work.values()), devices)

    return watch


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
