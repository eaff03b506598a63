"""The windows of a search: scores that stay on the device, on a CPU in 8 bits first.

A pair whose score leaves 8 bits is computed again, each query against its own such
targets, once there are enough of them or at the end.
"""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from jaxalign.pairs import compiled, engine
from jaxalign.pairs.plan import Piece, Task
from jaxalign.pairs.run_state import PieceScores, Run, Worker
from jaxalign.runtime import pipeline
from jaxalign.runtime.pipeline import teller

PAIRS_TO_REGROUP = 2**16  # pairs: their indices take a megabyte


def prepare(task: Task) -> Run:
    """The run of a ``cross`` job of scores: what a GPU reads is on its way there."""
    run = Run(compiled.plan(task), None, compiled.kernels_pallas)
    compiled.compile_launches(run)
    return run


def scores(run: Run, take: Callable, tell: Callable | None = None) -> dict:
    """Fill the windows of a prepared run, whose scores stay on the device; returns the
    plan and ``seconds``.

    ``take(queries, targets, scores)`` gets indices of the two sets and a device array
    (slots, places) whose first rows and columns are theirs; several threads call it. A
    local score of -1 comes again, in another window. ``tell`` is called with the cells
    so far and those of the job.
    """
    plan, began = run.plan, time.perf_counter()
    state, quiet = _Scores(run, take), teller(None, 0)  # cells are told once
    _fill(
        state,
        plan.pieces,
        compiled.byte_limit(plan),
        teller(tell, plan.figures["cells"]),
    )
    if pairs := state.overflow.all_left():
        _fill(state, compiled.regroup(plan.task, *pairs), 0, quiet)
    run.seconds = time.perf_counter() - began
    return engine.summary(run)


class OverflowPairs:
    """Indices (query, target) of pairs to be computed again; threads share it."""

    def __init__(self):
        self._lock, self._sides, self._count = threading.Lock(), [], 0

    def add(self, queries: np.ndarray, targets: np.ndarray) -> tuple | None:
        """Take some; when there are enough, give all of them, (queries, targets)."""
        with self._lock:
            self._sides.append((queries, targets))
            self._count += len(queries)
            return self._all() if self._count >= PAIRS_TO_REGROUP else None

    def all_left(self) -> tuple | None:
        """All that are left, or None."""
        with self._lock:
            return self._all() if self._count else None

    def _all(self) -> tuple:
        sides = zip(*self._sides, strict=True)
        queries, targets = (np.concatenate(side) for side in sides)
        self._sides, self._count = [], 0
        return queries, targets


@dataclass(frozen=True)
class _Scores:
    """A run, who takes its scores, and its pairs that left 8 bits."""

    run: Run
    take: Callable
    overflow: OverflowPairs = field(default_factory=OverflowPairs)


def _fill(
    state: _Scores, pieces: Sequence[Piece], byte_limit: int, tell: Callable
) -> None:
    """Compute pieces in the threads of all devices."""
    workers = [
        partial(_worker, state, Worker(device, tell, byte_limit=byte_limit))
        for device in compiled.places(state.run.plan.task)
    ]
    for _ in pipeline.run([pipeline.Work(state.run, pieces)], workers):
        pass


def _worker(state: _Scores, worker: Worker) -> Callable:
    """A host thread's function (work, piece)."""

    def compute_one(_work: pipeline.Work, piece: Piece) -> None:
        with compiled.on_device(worker.device):
            for part in piece.scores(state.run, worker, piece):
                _take(state, worker, part)

    return compute_one


def _take(state: _Scores, worker: Worker, part: PieceScores) -> None:
    """Hand on some scores; of a thread with enough pairs beyond 8 bits, these too."""
    task = state.run.plan.task
    part.score.block_until_ready()  # or ``take`` waits, and others for it
    state.take(part.queries, part.targets, part.score)
    m = task.queries.lengths[part.queries]
    worker.tell(int(m.sum()) * int(task.targets.lengths[part.targets].sum()))
    if worker.byte_limit == 0 or part.beyond is None:
        return
    if pairs := state.overflow.add(*part.beyond):
        again = _worker(state, Worker(worker.device, teller(None, 0)))
        for piece in compiled.regroup(task, *pairs):
            again(pipeline.Work(state.run, [piece]), piece)
