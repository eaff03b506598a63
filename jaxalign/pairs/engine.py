"""Choose who computes a job, and run its plan.

A small job is computed by rows in NumPy (``pairs.small_jobs``), any other one by what
XLA compiles (``pairs.compiled``), which is imported for it. Pieces of a job are
independent, so each host thread takes the next one; XLA's loop uses one core, so
threads are what fills a CPU. With several devices, each thread belongs to one of them.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from functools import partial
from itertools import chain, islice

from jaxalign.pairs import small_jobs
from jaxalign.pairs.plan import Piece, Plan, Task, merge
from jaxalign.pairs.result import Output
from jaxalign.pairs.run_state import Run, Worker
from jaxalign.runtime import pipeline
from jaxalign.runtime.pipeline import teller, watcher


def plan(task: Task) -> Plan:
    """The plan of a task; it says which implementation will run, and why.

    Raises
    ------
    MemoryPlanError, UsageError, DeviceError
    """
    by_rows = small_jobs.plan(task)
    return _compiled().plan(task) if by_rows is None else by_rows


def _compiled():
    """What JAX computes, imported by the first job that needs it."""
    from jaxalign.pairs import compiled

    return compiled


def plan_rows(task: Task, computed: list[Task]) -> Plan:
    """The plan of the rows of a task that some tasks compute."""
    plans = [plan(one) for one in computed]
    figures = merge([one.figures for one in plans])
    figures |= {"pairs": task.job.pairs, "cells": task.job.cells}
    return Plan(task, tuple(piece for one in plans for piece in one.pieces), figures)


def start(plan: Plan) -> Run:
    """The run of a plan; nothing is computed yet."""
    kernels = None if small_jobs.is_by_rows(plan) else _compiled().kernels_pallas
    return Run(plan, Output(plan.task), kernels)


def run(plan: Plan, progress=None, busy=None, refine: Callable | None = None):
    """Run a plan.

    Parameters
    ----------
    refine : function Plan -> Plan, optional
        What makes the plan that is run, of the one that was shown.

    Returns
    -------
    columns : dict of arrays, in input order
    paths : (operations, offsets) or None
    info : dict
        The figures of the plan, and ``seconds``.
    """
    began = time.perf_counter()
    plan = plan if refine is None else refine(plan)
    task, current = plan.task, start(plan)
    if task.mesh is None:
        list(compute([current], task, task.job.cells, progress, busy))
        if current.device_jobs:
            _compiled().collect(current)
    else:
        worker = Worker(tell=teller(progress, task.job.cells))
        _compiled().run_mesh(current, worker)
    current.seconds = time.perf_counter() - began
    return *current.output.finish(), summary(current)


def summary(run: Run) -> dict:
    """The figures of a plan, and how its run went."""
    halved = sum(len(job.halved) for job in run.device_jobs.values())
    return run.plan.figures | {"seconds": run.seconds, "halved_launches": halved}


def compute(
    runs: Iterable[Run],
    task: Task,
    cells: int,
    progress,
    busy,
    ahead=pipeline.PARTS_AHEAD,
) -> Iterator[Run]:
    """Runs, ``ahead`` of them at a time, of a task on its devices; yields each when all
    its pieces are done."""
    ending, runs = threading.Event(), iter(runs)
    tell = partial(_tell, ending, teller(progress, cells))
    watch = watcher(busy, len(task.devices) or 1)
    first = list(islice(runs, 1))
    by_rows = all(small_jobs.is_by_rows(run.plan) for run in first)
    # Calls of NumPy are too short for threads: they would wait for Python's lock.
    devices = [None] if by_rows else _compiled().places(task)
    only = len(devices) == len(set(devices))
    workers, again = (
        [partial(_worker, Worker(d, one, only), watch) for d in devices]
        for one in (tell, teller(None, 0))
    )
    works = (pipeline.Work(run, run.plan.pieces) for run in chain(first, runs))
    for work in pipeline.run(works, workers, ahead, ending):
        run = work.content
        if run.beyond:  # their cells were told before
            pieces = _compiled().pieces_beyond(run)
            list(pipeline.run(iter([pipeline.Work(run, pieces)]), again))
        yield run


def _tell(ending: threading.Event, tell, cells) -> None:
    """Tell of a launch or a window; after Ctrl-C no other one of a list is issued."""
    if ending.is_set():
        raise pipeline.Stopped
    tell(cells)


def _worker(worker: Worker, watch):
    """A host thread's function (work, piece)."""

    def compute_one(work: pipeline.Work, piece: Piece):
        watch(worker.device, 1)
        device = worker.device
        with _compiled().on_device(device) if device else nullcontext():
            piece.compute(work.content, worker, piece)
        watch(worker.device, -1)

    return compute_one
