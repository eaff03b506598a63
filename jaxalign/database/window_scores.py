"""The windows of a search: scores that stay on the device, on a CPU in 8 bits first.

A pair whose score leaves 8 bits is computed again, each query against its own such
targets, once there are enough of them or at the end.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from types import SimpleNamespace
from typing import NamedTuple

import jax
import numpy as np

from jaxalign.pairs import engine, windows
from jaxalign.pairs.cpu import execute, partition
from jaxalign.pairs.gpu import dispatch, launch_plan
from jaxalign.pairs.plan import Task
from jaxalign.runtime import pipeline
from jaxalign.runtime.progress import teller

ENOUGH = 2**16  # pairs: their indices take a megabyte


class Scored(NamedTuple):
    """The scores of a piece, and the pairs of it that left 8 bits, or None."""

    queries: np.ndarray
    targets: np.ndarray
    score: jax.Array
    beyond: tuple | None


def scores(task: Task, take, tell=None) -> dict:
    """Fill the windows of a ``cross`` job of scores, which stay on the device.

    Parameters
    ----------
    task : Task
    take : callable (queries, targets, scores)
        Indices of the two sets and a device array (slots, places) whose first rows and
        columns are theirs; called from several threads. A local score of -1 comes
        again, in another window.
    tell : callable (cells done, cells in all), optional

    Returns
    -------
    dict
        The plan, and ``seconds``.
    """
    info, pieces = engine.plan(task)
    content = engine.Content(task, info, None)
    began = time.perf_counter()
    beyond, quiet = Pairs(), teller(None, 0)  # cells are told once
    high = execute.narrow(task) if info["windows"] else 0

    def worker(device, high, told):
        scratch = SimpleNamespace()
        again = worker(device, 0, quiet) if high else None

        def one(_, piece):
            with jax.default_device(device) if device else nullcontext():
                for found in _scores(content, piece, device, scratch, high):
                    pass_on(found)

        def pass_on(found: Scored):
            queries, targets, score, pairs = found
            score.block_until_ready()  # or ``take`` waits, and others for it
            take(queries, targets, score)
            m, n = task.queries.lengths[queries], task.targets.lengths[targets]
            told(int(m.sum()) * int(n.sum()))
            if again and pairs is not None and (enough := beyond.add(*pairs)):
                for window in partition.regroup(task.job, *enough, task.window_budget):
                    again(None, window)

        return one

    def fill(pieces, high, told):
        places = engine.places(task)
        workers = [partial(worker, device, high, told) for device in places]
        for _ in pipeline.run(iter([pipeline.Work(content, pieces)]), workers):
            pass

    launches = [piece for piece in pieces if isinstance(piece, launch_plan.Launch)]
    if launches:
        first = (task.devices or (None,))[0]
        with jax.default_device(first) if first else nullcontext():
            dispatch.compile_all(engine.gpu_job(content, task, first), launches)
    fill(pieces, high, teller(tell, task.job.cells))
    if left := beyond.rest():
        fill(partition.regroup(task.job, *left, task.window_budget), 0, quiet)
    if high:
        info["dtypes"] = ["int8", *info["dtypes"]]
    return engine.summary(content, time.perf_counter() - began)


def _scores(content, piece, device, scratch, high) -> Iterator[Scored]:
    task = content.task
    if isinstance(piece, launch_plan.Launch):
        job = engine.gpu_job(content, task, device)
        for part, found in dispatch.scores(job, piece):
            yield Scored(part.queries, part.targets, found, None)
    elif isinstance(piece, windows.Window):
        found = execute.window_scores(task, piece, scratch, high)
        yield Scored(piece.queries, piece.targets, *found)
    else:
        i, j = piece
        found = execute.pair_score(task, piece)
        yield Scored(np.array([i]), np.array([j]), found, None)


class Pairs:
    """Indices (query, target) of pairs to be computed again; threads share it."""

    def __init__(self):
        self._lock, self._held, self._count = threading.Lock(), [], 0

    def add(self, queries, targets):
        """Take some; when there are enough, give all of them, (queries, targets)."""
        with self._lock:
            self._held.append((queries, targets))
            self._count += len(queries)
            return self._all() if self._count >= ENOUGH else None

    def rest(self):
        """All that are left, or None."""
        with self._lock:
            return self._all() if self._count else None

    def _all(self):
        sides = zip(*self._held, strict=True)
        queries, targets = (np.concatenate(side) for side in sides)
        self._held, self._count = [], 0
        return queries, targets
