"""Choose who computes a job, and run its plan.

A small job is computed by rows in NumPy (``pairs.by_rows``), any other one by what
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
from typing import Any

from jaxalign.model.table import Table
from jaxalign.pairs.by_rows import plan_by_rows
from jaxalign.pairs.plan import Piece, Plan, Progress, Task, merge
from jaxalign.pairs.result import Output, table_of
from jaxalign.pairs.run_state import Run, SavedState, Worker
from jaxalign.runtime import pipeline
from jaxalign.runtime.devices import start_device
from jaxalign.runtime.pipeline import teller, watcher


def plan(task: Task) -> Plan:
    """The plan of a task; it says which implementation will run, and why.

    Raises
    ------
    MemoryPlanError, UsageError, DeviceError
    """
    by_rows = None
    if task.implementation in (None, "rows"):
        by_rows = plan_by_rows(task)
    return _compiled().plan_compiled(task) if by_rows is None else by_rows


def start_jax() -> None:
    """Start JAX with its device, and import what is compiled."""
    start_device()
    _compiled().choose(None)


def _compiled():
    """The compiled implementations, imported by the first job that needs them."""
    from jaxalign.pairs import compiled

    return compiled


def plan_rows(task: Task, computed: list[Task]) -> Plan:
    """The plan of the rows of a task that some tasks compute."""
    plans = [plan(one) for one in computed]
    figures = merge([one.figures for one in plans])
    figures |= {"pairs": task.job.pairs, "cells": task.job.cells}
    return Plan(task, tuple(piece for one in plans for piece in one.pieces), figures)


def start(plan: Plan, saved: SavedState | None = None) -> Run:
    """The run of a plan; nothing is computed yet."""
    kernels = None if plan.by_rows else _compiled().kernels_pallas
    return Run(plan, Output(plan.task), kernels, saved)


def run(
    plan: Plan,
    progress: Progress = None,
    busy: Progress = None,
    began: float | None = None,
    saved: SavedState | None = None,
) -> Table:
    """Run a plan: its rows in input order, with its figures and ``seconds``.

    began : when the job did, by ``time.perf_counter``; by default now
    saved : the state of a run that was interrupted, or may be
    """
    began = time.perf_counter() if began is None else began
    task, current = plan.task, start(plan, saved)
    if task.mesh is None:
        for _ in compute([current], task, task.job.cells, progress, busy):
            pass
        if current.device_jobs:
            _compiled().collect(current)
    else:
        worker = Worker(tell=teller(progress, task.job.cells))
        _compiled().run_mesh(current, worker)
    current.seconds = time.perf_counter() - began
    columns, paths = current.output.finish()
    return table_of(task, columns, paths, summary(current))


def summary(run: Run) -> dict:
    """The figures of a plan, and how its run went."""
    halved = sum(len(job.halved) for job in run.device_jobs.values())
    figures = run.plan.figures | {"seconds": run.seconds, "halved_launches": halved}
    if run.other_implementations:
        names = figures["implementation"], *sorted(run.other_implementations)
        figures |= {"implementation": ", ".join(names)}
    return figures


def compute(
    runs: Iterable[Run],
    task: Task,
    cells: int,
    progress: Progress,
    busy: Progress,
    ahead: int = pipeline.PARTS_AHEAD,
) -> Iterator[Run]:
    """Runs, ``ahead`` of them at a time, of a task on its devices; yields each when all
    its pieces are done."""
    ending, runs, report = threading.Event(), iter(runs), teller(progress, cells)

    def tell(cells: int) -> None:
        """Tell of a launch or a window; after Ctrl-C no other one is issued."""
        if ending.is_set():
            raise pipeline.Stopped
        report(cells)

    first = list(islice(runs, 1))
    if all(run.plan.by_rows for run in first):
        # Calls of NumPy are too short for threads: they would wait for Python's lock.
        devices, ahead = [None], 0
    else:
        devices = _compiled().places(task)
    watch = watcher(busy, len(task.devices) or 1)
    workers = _workers(devices, tell, watch)
    works = (pipeline.Work(run, run.plan.pieces) for run in chain(first, runs))
    for work in pipeline.run(works, workers, ahead, ending):
        run = work.content
        if run.beyond:  # their cells were told before
            if run.device_jobs:  # what devices hold of them is not to be their row
                _compiled().collect(run)
            again = pipeline.Work(run, _compiled().pieces_beyond(run))
            list(pipeline.run([again], _workers(devices, teller(None, 0), watch)))
        yield run


def _workers(devices: list, tell: Callable, watch: Callable) -> list[Callable]:
    """A thread's function (work, piece) for each place in a list of devices."""
    only = len(devices) == len(set(devices))

    def worker_on(device: Any) -> Callable:
        worker = Worker(device, tell, only)

        def compute_one(work: pipeline.Work, piece: Piece) -> None:
            watch(device, 1)
            with _compiled().on_device(device) if device else nullcontext():
                piece.compute(work.content, worker, piece)
            watch(device, -1)

        return compute_one

    return [partial(worker_on, device) for device in devices]
