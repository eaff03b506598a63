"""Choose an implementation, say why, and run a job on it.

Pieces of a job are independent, so each host thread takes the next one; XLA's loop uses
one core, so threads are what fills a CPU. With several devices, each thread belongs to
one of them.
"""

import threading
import time
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace

import jax

from jaxalign.errors import DeviceError, UsageError
from jaxalign.pairs import result, schedule, windows
from jaxalign.pairs.cpu import execute, spmd
from jaxalign.pairs.gpu import (
    device_memory,
    device_result,
    dispatch,
    launch_plan,
    score_types,
)
from jaxalign.pairs.gpu.launch_errors import job_words
from jaxalign.pairs.plan import Task, make_plan, merge
from jaxalign.runtime import device_errors, pipeline
from jaxalign.runtime.backend import kernels_pallas
from jaxalign.runtime.devices import first_device
from jaxalign.runtime.progress import teller, watcher

IMPLEMENTATIONS = ("sweep", "wavefront", "pallas", "striped")


def choose(implementation: str | None, devices=()) -> tuple[str, str]:
    """(implementation, why) on some devices, or on JAX's default one. A named one is
    never exchanged for another.

    Raises
    ------
    UsageError
        Unknown name.
    DeviceError
        ``pallas`` where its kernels cannot run.
    """
    if implementation is not None and implementation not in IMPLEMENTATIONS:
        names = ", ".join(IMPLEMENTATIONS)
        raise UsageError(f"unknown implementation {implementation!r}: one of {names}")
    device = first_device(devices)
    works, why = kernels_pallas.supported(device)
    if implementation == "pallas" and not works:
        raise DeviceError(f"pallas: {why}")
    if implementation:
        return implementation, "asked for"
    if works:
        return "pallas", f"GPU kernels, {why}"
    reason = f"one query against many targets in lanes, on {device.platform}"
    no_gpu = device.platform == "cpu"
    return "sweep", reason if no_gpu else f"{reason}; no kernels: {why}"


def plan(task: Task) -> tuple[dict, list]:
    """(plan, pieces) of a task; the plan says which implementation will run.

    Raises
    ------
    MemoryPlanError, UsageError, DeviceError
    """
    asked = task.implementation if task.mesh is None else "sweep"
    name, why = choose(asked, task.devices)
    letters = len(task.scoring.scores)
    if name == "pallas" and letters > score_types.LETTERS and not task.implementation:
        most = score_types.LETTERS
        name, why = "sweep", f"{letters} letters; the GPU kernels take {most}"
    if name == "striped" and task.paths:
        raise UsageError("striped computes scores, no paths: output score or identity")
    if task.mesh is not None:
        why = f"one program over a mesh of {task.mesh.devices.size} devices"
    if name == "pallas":
        made, pieces = launch_plan.make_plan(
            task, kernels_pallas, device_memory.budget(task)
        )
        others = "pairs beyond the kernels"
    else:
        made, pieces = make_plan(task)
        others = "pairs too long, or too few, for a window" if name == "sweep" else None
    if made["checkpointed_pairs"] and others:
        others = f"{others} by wavefront, in strips"
        why = f"{why}; {others}" if made["windows"] else others
        name = f"{name}, wavefront" if made["windows"] else "wavefront"
    cells = [schedule.estimate(task.job, piece) for piece in pieces]
    pieces = [pieces[k] for k in schedule.heaviest_first(cells)]
    devices = task.devices if task.mesh is None else task.mesh.devices.flat
    devices = _names(devices)
    loads = schedule.plan(cells, len(devices)).loads
    made |= {"devices": devices, "device_cells": list(loads)}
    made |= {"budget_bytes": task.budget}
    return made | {"implementation": name, "reason": why}, pieces


def _names(devices) -> list[str]:
    devices = list(devices) or jax.devices()[:1]
    return [f"{device.platform}:{device.id}" for device in devices]


@dataclass(eq=False)
class Content:
    """What a ``flow.Work`` is made of: the task of its rows, its plan, its result."""

    task: Task
    info: dict
    output: result.Output
    jobs: dict = field(default_factory=dict)  # (task, device) -> gpu.Job
    locks: dict = field(default_factory=dict)  # the same


def prepare(task: Task, computed: list[Task]) -> pipeline.Work:
    """Plan some tasks whose rows are those of one; nothing is computed yet."""
    plans = [plan(one) for one in computed]
    pieces = [
        (one, piece)
        for one, (_, pieces) in zip(computed, plans, strict=True)
        for piece in _batched(one, pieces)
    ]
    info = merge([made for made, _ in plans])
    info |= {"pairs": task.job.pairs, "cells": task.job.cells}
    content = Content(task, info, result.Output(task))
    return pipeline.Work(content, pieces)


def _batched(task: Task, pieces: list) -> list:
    """Launches of a GPU in lists, whose launches need not wait for each other: several
    for each of some devices, but one for a part of a job. The others as they are."""
    launches = [piece for piece in pieces if isinstance(piece, launch_plan.Launch)]
    others = [piece for piece in pieces if not isinstance(piece, launch_plan.Launch)]
    if len(task.devices) <= 1 or task.reserved is not None:
        return [*filter(None, [launches]), *others]
    return [*schedule.lists(launches, len(task.devices)), *others]


def run(task: Task, progress=None, busy=None):
    """Run a job.

    Returns
    -------
    columns : dict of arrays, in input order
    paths : (operations, offsets) or None
    info : dict
        The plan, and ``seconds``.
    """
    work = prepare(task, [task])
    began = time.perf_counter()
    if task.mesh is None:
        watched = progress, busy
        (work,) = compute(iter([work]), task, task.job.cells, *watched)
        collect(work.content)
    else:
        tell = teller(progress, task.job.cells)
        for rows in spmd.run(task, [piece for _, piece in work.pieces]):
            work.content.output.put(rows)
            tell(rows.cells)
    seconds = time.perf_counter() - began
    return *work.content.output.finish(), summary(work.content, seconds)


def collect(content: Content, jobs=None) -> None:
    """What devices hold of a result, all of its jobs or some: to the host."""
    jobs = list(content.jobs.values()) if jobs is None else jobs
    with device_errors.explained(f"the result of {job_words(content.task)}"):
        device_result.collect(jobs, content.output)


def summary(content: Content, seconds: float) -> dict:
    """The plan of a task and how it went."""
    halved = sum(len(job.halved) for job in content.jobs.values())
    return content.info | {"seconds": seconds, "halved_launches": halved}


def compute(works, task: Task, cells: int, progress, busy, ahead=pipeline.AHEAD):
    """Works (iterator of ``flow.Work``, ``ahead`` of them at a time) of a task on its
    devices; yields each when all its pieces are done."""
    ending = threading.Event()
    tell = partial(_tell, ending, teller(progress, cells))
    watch = watcher(busy, len(task.devices) or 1)
    devices = places(task)
    alone = len(devices) == len(set(devices))
    workers = [partial(_worker, device, tell, watch, alone) for device in devices]
    return pipeline.run(works, workers, ahead, ending)


def _tell(ending: threading.Event, tell, cells) -> None:
    """Tell of a launch or a window; after Ctrl-C no other one of a list is issued."""
    if ending.is_set():
        raise pipeline.Stopped
    tell(cells)


def places(task: Task) -> list:
    """The device of every host thread, None where JAX chooses; a GPU may have several,
    so that it has work while one brings results to the host."""
    devices = task.devices or (None,)
    count = task.threads
    if choose(task.implementation, task.devices)[0] == "pallas":
        count = min(count, device_memory.threads_of(task)) * len(devices)
    return [devices[k % len(devices)] for k in range(count)]


def _worker(device, tell, watch, alone):
    """What a host thread, the only one of a device or not, needs to compute pieces."""
    scratch = SimpleNamespace()

    def one(work: pipeline.Work, item):
        watch(device, 1)
        with jax.default_device(device) if device else nullcontext():
            _compute(work, *item, device, scratch, tell, alone)
        watch(device, -1)

    return one


def _compute(work, task, piece, device, scratch, tell, alone) -> None:
    """Compute a piece, and put its rows where they belong; ``alone``: by the only
    thread of its device."""
    content = work.content
    if isinstance(piece, list):
        job = gpu_job(content, task, device)
        dispatch.compile_all(
            job, _launches(work, task)
        )  # what others have may be next here
        # Rows are held there if no other thread has launches for them on this device.
        whole = task is content.task and (alone or len(work.pieces) == 1)
        with device_errors.explained(f"the launches of {job_words(task)}", device):
            dispatch.run(job, piece, content.output, tell, whole)
        if task.reserved is not None:
            collect(content, [job])
        return
    if isinstance(piece, windows.Window):
        rows = execute.run_window(task, piece, scratch)
    else:
        rows = execute.run_pair(task, piece)
    content.output.put(rows)
    tell(rows.cells)


def _launches(work: pipeline.Work, task: Task) -> list:
    """All launches of a task."""
    lists = (some for own, some in work.pieces if own is task)
    return [launch for some in lists if isinstance(some, list) for launch in some]


def gpu_job(content, task, device):
    """What launches of a task share on a device, made by the first who asks."""
    key = id(task), device
    with content.locks.setdefault(key, threading.Lock()):  # devices prepare at once
        if key not in content.jobs:
            with device_errors.explained(f"the sequences of {job_words(task)}", device):
                content.jobs[key] = dispatch.prepare(task, kernels_pallas)
    return content.jobs[key]
