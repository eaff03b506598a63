"""Choose an implementation, say why, and run a job on it.

The only importer of ``kernels_pallas``. Pieces of a job are independent, so each host
thread takes the next one; XLA's loop uses one core, so threads are what fills a CPU.
"""

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np

import kernels_pallas
from jaxalign.errors import DeviceError, UsageError
from jaxalign.run import execute, gpu, launch, results, windows
from jaxalign.run.launch import LETTERS
from jaxalign.run.task import Task, make_plan

IMPLEMENTATIONS = ("sweep", "wavefront", "pallas", "striped")


def choose(implementation: str | None) -> tuple[str, str]:
    """(implementation, why). A named one is never exchanged for another.

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
    works, why = kernels_pallas.supported()
    if implementation == "pallas" and not works:
        raise DeviceError(f"pallas: {why}")
    if implementation:
        return implementation, "asked for"
    if works:
        return "pallas", f"GPU kernels, {why}"
    platform = jax.default_backend()
    reason = f"one query against many targets in lanes, on {platform}"
    return "sweep", reason if platform == "cpu" else f"{reason}; no kernels: {why}"


def default_threads() -> int:
    """The cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def plan(task: Task) -> tuple[dict, list]:
    """(plan, pieces) of a task; the plan says which implementation will run.

    Raises
    ------
    MemoryPlanError, UsageError, DeviceError
    """
    name, why = choose(task.implementation)
    letters = len(task.scoring.scores)
    if name == "pallas" and letters > LETTERS and not task.implementation:
        name, why = "sweep", f"{letters} letters; the GPU kernels take {LETTERS}"
    if name == "striped" and task.paths:
        raise UsageError("striped computes scores, no paths: output score or identity")
    if name == "pallas":
        made, pieces = launch.make_plan(task, kernels_pallas, gpu.budget(task))
        if made["checkpointed_pairs"]:
            why += "; pairs beyond the kernels by wavefront, in checkpointed strips"
            name = "pallas, wavefront" if made["windows"] else "wavefront"
        return made | {"implementation": name, "reason": why}, pieces
    made, pieces = make_plan(task)
    if made["checkpointed_pairs"] and name == "sweep":
        why += "; pairs beyond the memory by wavefront, in checkpointed strips"
        name = "sweep, wavefront" if made["windows"] else "wavefront"
    return made | {"implementation": name, "reason": why}, pieces


def run(task: Task, progress=None):
    """Run a job.

    Returns
    -------
    columns : dict of arrays, in input order
    paths : (operations, offsets) or None
    info : dict
        The plan, and ``seconds``.
    """
    info, pieces = plan(task)
    out = results.Output(task, progress)
    scratch = threading.local()
    began = time.perf_counter()
    launches = [piece for piece in pieces if isinstance(piece, launch.Launch)]
    if launches:
        gpu.run(task, kernels_pallas, launches, out)
        pieces = [piece for piece in pieces if not isinstance(piece, launch.Launch)]

    def work(piece):
        if out.failed:
            return
        if isinstance(piece, windows.Window):
            out.put(execute.run_window(task, piece, scratch))
        else:
            out.put(execute.run_pair(task, piece))

    with ThreadPoolExecutor(info["threads"]) as pool:
        pending = [pool.submit(work, piece) for piece in pieces]
        try:
            for future in pending:
                future.result()
        except BaseException:
            out.failed = True  # lets the other threads stop at their next piece
            raise
    info["seconds"] = time.perf_counter() - began
    return out.columns, out.assemble(), info


def scores(task: Task, take, tell=None) -> dict:
    """Fill the windows of a ``cross`` job of scores, which stay on the device.

    Parameters
    ----------
    task : Task
    take : callable (queries, targets, scores)
        Indices of the two sets and a device array (slots, places) whose first rows and
        columns are theirs; called from several threads.
    tell : callable (cells done, cells in all), optional

    Returns
    -------
    dict
        The plan, and ``seconds``.
    """
    info, pieces = plan(task)
    scratch, done, lock = threading.local(), [0], threading.Lock()
    on_gpu = any(isinstance(piece, launch.Launch) for piece in pieces)
    job = gpu.prepare(task, kernels_pallas) if on_gpu else None
    began = time.perf_counter()

    def work(piece):
        queries, targets, found = _scores(task, piece, scratch, job)
        take(queries, targets, found)
        found.block_until_ready()  # the memory of a window a thread, no more
        with lock:
            m, n = task.queries.lengths[queries], task.targets.lengths[targets]
            done[0] += int(m.sum()) * int(n.sum())
            if tell:
                tell(done[0], task.job.cells)

    _in_threads(work, pieces, info["threads"])
    return info | {"seconds": time.perf_counter() - began}


def _scores(task, piece, scratch, job):
    """(queries, targets, device scores) of a piece."""
    if isinstance(piece, launch.Launch):
        found = gpu.scores(job, piece)
    elif isinstance(piece, windows.Window):
        found = execute.window_scores(task, piece, scratch)
    else:
        i, j = piece
        return np.array([i]), np.array([j]), execute.pair_score(task, piece)
    return piece.queries, piece.targets, found


def _in_threads(work, pieces, threads: int) -> None:
    """Call ``work`` for every piece; the first failure stops the rest."""
    failed = threading.Event()

    def careful(piece):
        if not failed.is_set():
            work(piece)

    with ThreadPoolExecutor(threads) as pool:
        pending = [pool.submit(careful, piece) for piece in pieces]
        try:
            for future in pending:
                future.result()
        except BaseException:
            failed.set()
            raise
