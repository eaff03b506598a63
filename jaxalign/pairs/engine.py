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
from jaxalign.pairs.plan import (
    Piece,
    Plan,
    Progress,
    Run,
    SavedState,
    Task,
    Worker,
    merge,
)
from jaxalign.pairs.result import Output, table_of
from jaxalign.runtime import pipeline
from jaxalign.runtime.devices import start_device
from jaxalign.runtime.pipeline import teller, watcher

# Cells of a job by rows, hundredths of a second, from which on programs may pay
WORTH_CELLS = 2**22


def plan(task: Task) -> Plan:
    """The plan of a task; it says which implementation will run, and why."""
    by_rows = plan_by_rows(task) if task.implementation in (None, "rows") else None
    return _compiled().plan_compiled(task) if by_rows is None else by_rows


def start_jax() -> None:
    """Start JAX with its device, and import what is compiled."""
    start_device()
    _compiled().choose(None)


def _compiled():
    """The compiled implementations, imported by the first job that needs them."""
    from jaxalign.pairs import compiled

    return compiled


def by_kernels(task: Task) -> bool:
    """Whether GPU kernels compute a task that is too large for NumPy."""
    return _compiled().choose(task.implementation, task.devices)[0] == "pallas"


def plan_rows(task: Task, computed: list[Task]) -> Plan:
    """The plan of the rows of a task that some tasks compute."""
    plans = [plan(part) for part in computed]
    figures = merge([part.figures for part in plans])
    figures |= {"pairs": task.job.pairs, "cells": task.job.cells}
    return Plan(task, tuple(piece for part in plans for piece in part.pieces), figures)


def start(plan: Plan, saved: SavedState | None = None) -> Run:
    """The run of a plan; nothing is computed yet. Here alone it is decided whether a
    job by rows goes compiled, since it has come again."""
    if plan.by_rows and sum(plan.figures["device_cells"]) >= WORTH_CELLS:
        from jaxalign.pairs.amortized import cheaper

        plan = cheaper(plan)
    kernels = None if plan.by_rows else _compiled().kernels_pallas
    return Run(plan, Output(plan.task), kernels, saved)


def run(
    plan: Plan,
    progress: Progress = None,
    busy: Progress = None,
    start_time: float | None = None,
    saved: SavedState | None = None,
) -> Table:
    """Run a plan: its rows in input order, with its figures and ``seconds``.

    start_time : when the job did, by ``time.perf_counter``; by default now
    saved : the state of a run that was interrupted, or may be
    """
    start_time = time.perf_counter() if start_time is None else start_time
    task, current = plan.task, start(plan, saved)
    if task.mesh is None:
        for _ in compute([current], task, task.job.cells, progress, busy):
            pass
        if current.device_jobs:
            _compiled().collect(current)
    else:
        worker = Worker(report_progress=teller(progress, task.job.cells))
        _compiled().run_mesh(current, worker)
    current.seconds = time.perf_counter() - start_time
    columns, paths = current.output.finish()
    return table_of(task, columns, paths, summary(current))


def summary(run: Run) -> dict:
    """The figures of a plan, and how its run went."""
    halved = sum(len(job.halved) for job in run.device_jobs.values())
    figures = run.plan.figures | {"seconds": run.seconds, "halved_launches": halved}
    if run.other_implementations:
        names = figures["implementation"], *sorted(run.other_implementations)
        figures |= {"implementation": ", ".join(names)}
    return {"ran": figures["implementation"]} | figures


def compute(
    runs: Iterable[Run],
    task: Task,
    cells: int,
    progress: Progress,
    busy: Progress,
    runs_ahead: int = pipeline.PARTS_AHEAD,
) -> Iterator[Run]:
    """Run a task on its devices, ``runs_ahead`` runs at a time; yield each run when all
    its pieces are done."""
    ending, runs = threading.Event(), iter(runs)
    report = teller(progress, cells) if progress else None

    def report_progress(cells: int) -> None:
        """Report a finished launch or window; after Ctrl-C no other one is issued."""
        if ending.is_set():
            raise pipeline.Stopped
        if report:
            report(cells)

    first = list(islice(runs, 1))
    if all(run.plan.by_rows for run in first):
        # Calls of NumPy are too short for threads: they would wait for Python's lock.
        devices, runs_ahead = [None], 0
    else:
        devices = _compiled().places(task)
    report_busy = watcher(busy, len(task.devices) or 1) if busy else None
    workers = _workers(devices, report_progress, report_busy)
    works = (pipeline.Work(run, run.plan.pieces) for run in chain(first, runs))
    for work in pipeline.run(works, workers, runs_ahead, ending):
        run = work.content
        while run.beyond or run.live:  # their cells were told before
            if run.device_jobs:  # what devices hold of them is not to be their row
                _compiled().collect(run)
            overflow = pipeline.Work(run, _compiled().pieces_beyond(run))
            workers_beyond = _workers(devices, lambda _cells: None, report_busy)
            list(pipeline.run([overflow], workers_beyond))
        yield run


def _workers(
    devices: list, report_progress: Callable, report_busy: Callable | None
) -> list[Callable]:
    """A thread's function (work, piece) for each place in a list of devices."""
    only = len(devices) == len(set(devices))

    def worker_on(device: Any) -> Callable:
        worker = Worker(device, report_progress, only)

        def compute_one(work: pipeline.Work, piece: Piece) -> None:
            if report_busy:
                report_busy(device, 1)
            with _compiled().on_device(device) if device else nullcontext():
                piece.compute(work.content, worker, piece)
            if report_busy:
                report_busy(device, -1)

        return compute_one

    return [partial(worker_on, device) for device in devices]
