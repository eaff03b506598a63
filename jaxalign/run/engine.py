"""Choose an implementation, say why, and run a job on it.

The only importer of ``kernels_pallas``. Pieces of a job are independent, so each host
thread takes the next one; XLA's loop uses one core, so threads are what fills a CPU.
"""

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import jax

import kernels_pallas
from jaxalign.errors import DeviceError, UsageError
from jaxalign.run import execute, gpu, launch, results, windows
from jaxalign.run.launch import LETTERS
from jaxalign.run.task import Task, make_plan

IMPLEMENTATIONS = ("sweep", "wavefront", "pallas")


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
