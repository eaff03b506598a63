"""The windows of a search: scores that stay on the device, on a CPU in 8 bits first.

A pair whose score leaves 8 bits is computed again, each query against its own such
targets, once there are enough of them or at the end.
"""

import threading
import time
from functools import partial

import numpy as np

from jaxalign.pairs import compiled, engine
from jaxalign.pairs.plan import Task
from jaxalign.pairs.run_state import Run, Worker
from jaxalign.runtime import pipeline
from jaxalign.runtime.pipeline import teller

PAIRS_TO_REGROUP = 2**16  # pairs: their indices take a megabyte


def prepare(task: Task) -> Run:
    """The run of a ``cross`` job of scores: what a GPU reads is on its way there."""
    run = Run(compiled.plan(task), None, compiled.kernels_pallas)
    compiled.compile_launches(run)
    return run


def scores(run: Run, take, tell=None) -> dict:
    """Fill the windows of a prepared run, whose scores stay on the device; returns the
    plan and ``seconds``.

    ``take(queries, targets, scores)`` gets indices of the two sets and a device array
    (slots, places) whose first rows and columns are theirs; several threads call it. A
    local score of -1 comes again, in another window. ``tell`` is called with the cells
    so far and those of the job.
    """
    plan, began = run.plan, time.perf_counter()
    task = plan.task
    overflow, quiet = OverflowPairs(), teller(None, 0)  # cells are told once
    limit = compiled.byte_limit(plan)
    tell_all = teller(tell, task.job.cells)

    def worker(device, byte_limit, tell):
        state = Worker(device, tell, byte_limit=byte_limit)
        again = worker(device, 0, quiet) if byte_limit else None

        def take_all(_, piece):
            with compiled.on_device(device):
                for part in piece.scores(run, state, piece):
                    take_one(*part)

        def take_one(queries, targets, score, beyond):
            score.block_until_ready()  # or ``take`` waits, and others for it
            take(queries, targets, score)
            m, n = task.queries.lengths[queries], task.targets.lengths[targets]
            tell(int(m.sum()) * int(n.sum()))
            if again and beyond is not None and (enough := overflow.add(*beyond)):
                for piece in compiled.regroup(task, *enough):
                    again(None, piece)

        return take_all

    def fill(pieces, byte_limit, tell):
        places = compiled.places(task)
        workers = [partial(worker, device, byte_limit, tell) for device in places]
        for _ in pipeline.run(iter([pipeline.Work(run, pieces)]), workers):
            pass

    fill(plan.pieces, limit, tell_all)
    if left := overflow.rest():
        fill(compiled.regroup(task, *left), 0, quiet)
    run.seconds = time.perf_counter() - began
    return engine.summary(run)


class OverflowPairs:
    """Indices (query, target) of pairs to be computed again; threads share it."""

    def __init__(self):
        self._lock, self._sides, self._count = threading.Lock(), [], 0

    def add(self, queries, targets):
        """Take some; when there are enough, give all of them, (queries, targets)."""
        with self._lock:
            self._sides.append((queries, targets))
            self._count += len(queries)
            return self._all() if self._count >= PAIRS_TO_REGROUP else None

    def rest(self):
        """All that are left, or None."""
        with self._lock:
            return self._all() if self._count else None

    def _all(self):
        sides = zip(*self._sides, strict=True)
        queries, targets = (np.concatenate(side) for side in sides)
        self._sides, self._count = [], 0
        return queries, targets
