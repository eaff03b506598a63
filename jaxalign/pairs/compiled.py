"""Plans for what XLA compiles: windows of a CPU, launches of a GPU, pairs alone.

Nothing else of ``pairs.engine`` imports JAX, which takes longer than a small job by
rows (``pairs.small_jobs``).
"""

from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import replace
from itertools import compress
from typing import get_args

import jax
import numpy as np

from jaxalign.errors import DeviceError, MemoryPlanError, UsageError
from jaxalign.pairs import pair_matrix
from jaxalign.pairs.by_rows import lone_pairs
from jaxalign.pairs.cpu import execute, long_pair, partition
from jaxalign.pairs.gpu import device_job, dispatch, launches
from jaxalign.pairs.long import align
from jaxalign.pairs.options import IMPLEMENTATIONS, Implementation
from jaxalign.pairs.pair_matrix import Partition
from jaxalign.pairs.pair_matrix import pairs as pairs_of
from jaxalign.pairs.plan import Piece, Plan, Task, describe
from jaxalign.pairs.proofs.lcs_launches import LcsLaunches, sizes_of
from jaxalign.pairs.run_state import Run, Worker
from jaxalign.runtime.backend import kernels_pallas
from jaxalign.runtime.devices import Device, first_device, refuse_over, show_bytes


def choose(
    implementation: str | None, devices: tuple = ()
) -> tuple[Implementation, str]:
    """(implementation, why) on some devices, or on JAX's default one. A named one is
    never exchanged for another.

    Raises
    ------
    UsageError
        Unknown name.
    DeviceError
        ``pallas`` where its kernels cannot run.
    """
    named = [x for x in get_args(Implementation) if x == implementation]
    if implementation is not None and not named:
        names = ", ".join(IMPLEMENTATIONS)
        raise UsageError(f"unknown implementation {implementation!r}: one of {names}")
    device = first_device(devices)
    works, why = kernels_pallas.supported(device)
    if implementation == "pallas" and not works:
        raise DeviceError(f"pallas: {why}")
    if named:
        return named[0], "asked for"
    if works:
        return "pallas", f"GPU kernels, {why}"
    reason = f"one query against many targets in lanes, on {device.platform}"
    no_gpu = device.platform == "cpu"
    return "sweep", reason if no_gpu else f"{reason}; no kernels: {why}"


def plan(task: Task) -> Plan:
    """The plan of a task; it says which implementation will run, and why.

    Raises
    ------
    MemoryPlanError, UsageError, DeviceError
    """
    name, why = _choose_for(task)
    if name == "pallas":
        limit = device_job.budget(task)
        whole = _whole_gpu(task)
        figures, split = whole or launches.make_plan(task, kernels_pallas, limit)
        blocks = dispatch.pieces_of(task, split.blocks)
        others = "long pairs" if whole else "pairs beyond the kernels"
    else:
        figures, split = _plan_windows(task)
        blocks = execute.pieces_of(task, split.blocks)
        others = "pairs too long, or too few, for a window" if name == "sweep" else None
    by_rows, alone = [], split.pairs
    if alone and task.implementation is None:
        by_rows, alone = lone_pairs(task, alone)
    by_blocks, alone = _by_blocks(task, alone, name == "pallas")
    tiles = bool(by_blocks) and name != "pallas"
    ways = {
        name: bool(blocks) or (bool(by_blocks) and not tiles),
        "rows": bool(by_rows),
        "wavefront": bool(alone) or tiles,
    }
    if split.pairs and others:
        used = [way for way, is_used in ways.items() if is_used]
        how = " and ".join(used[bool(blocks) :])
        others = f"{others} by {how}" + (", in strips" if alone else "")
        others += align.way_of(by_blocks)
        why = f"{why}; {others}" if blocks else others
        name = ", ".join(used)
    pieces = [*blocks, *by_rows, *by_blocks, *execute.pair_pieces_of(task, alone)]
    pieces = [pieces[k] for k in pair_matrix.heaviest_first([x.cells for x in pieces])]
    devices = _names(task.devices if task.mesh is None else task.mesh.devices.flat)
    loads = pair_matrix.schedule([piece.cells for piece in pieces], len(devices)).loads
    figures |= {"devices": devices, "device_cells": list(loads)}
    figures |= {"budget_bytes": task.budget, "implementation": name, "reason": why}
    if task.mesh is None:
        pieces = _joined(task, pieces)
    return Plan(task, tuple(pieces), figures)


def _whole_gpu(task: Task) -> tuple[dict, Partition] | None:
    """The plan of few long pairs, each on a whole GPU; None of any other job."""
    pairs = align.on_gpu(task, kernels_pallas)
    if not pairs:
        return None
    refuse_over(task.result_bytes, task.budget, f"{task.job.pairs:,} pairs")
    needed = [_long_bytes(task, pair) for pair in pairs]
    return describe(task, 0, len(pairs), needed, {"int32"}), Partition([], pairs)


def _long_bytes(task: Task, pair: tuple[int, int]) -> int:
    size = len(task.queries[pair[0]]), len(task.targets[pair[1]])
    return align.bytes_needed(*size, task.window_budget)


def _by_blocks(task: Task, pairs: list, on_gpu: bool) -> tuple[list[Piece], list]:
    """(pieces of those pairs that are long, the others)."""
    are_long = _are_long(task, pairs, on_gpu)
    if not are_long.any():
        return [], pairs
    long = list(compress(pairs, are_long))
    others = list(compress(pairs, ~are_long))
    kernels = kernels_pallas if on_gpu else None
    return align.pieces_of(task, long, kernels), others


def _are_long(task: Task, pairs: list, on_gpu: bool = False):
    """Which of some pairs are aligned by blocks, bool (pairs,), by GPU kernels or on a
    CPU. A search, which looks at scores on the device, has none."""
    if not pairs or task.top is not None or task.mesh is not None:
        return np.zeros(len(pairs), bool)
    if not (on_gpu or _on_cpu(task)):
        return np.zeros(len(pairs), bool)
    if on_gpu and not align.fit(task, pairs, kernels_pallas):
        return np.zeros(len(pairs), bool)
    return align.are_long(task, pairs)


def _on_cpu(task: Task) -> bool:
    return first_device(task.devices).platform == "cpu"


def lcs_launches(task: Task) -> LcsLaunches | None:
    """Launches that count common subsequences on GPUs; None where none can."""
    if not launches.takes(task):
        return None
    if task.implementation not in (None, "pallas") or task.mesh is not None:
        return None
    if choose(task.implementation, task.devices)[0] != "pallas":
        return None
    return LcsLaunches(task, kernels_pallas, sizes=sizes_of(task))


def _choose_for(task: Task) -> tuple[str, str]:
    """``choose`` for a task, with what its alphabet, output and mesh ask for."""
    named = task.implementation if task.mesh is None else "sweep"
    name, why = choose(named, task.devices)
    if name == "pallas" and not launches.takes(task) and not task.implementation:
        letters, most = task.scoring.alphabet.size, launches.MAX_LETTERS
        why = f"{letters} letters; the GPU kernels take {most}"
        if letters <= most:
            why = "a profile; the GPU kernels have its scores, no paths or single pairs"
        name = "sweep"
    if task.mesh is not None:
        why = f"one program over a mesh of {task.mesh.devices.size} devices"
    return name, why


def _names(devices: Iterable[Device]) -> list[str]:
    devices = list(devices) or jax.devices()[:1]
    return [f"{device.platform}:{device.id}" for device in devices]


def _joined(task: Task, pieces: list[Piece]) -> list[Piece]:
    """Launches of a GPU in lists, since they need not wait for each other: several
    lists for each of some devices, but one for a part of a job. A search, which looks
    at each launch, and pieces of no group have them as they are."""
    together = [piece for piece in pieces if piece.group == dispatch.GROUP]
    others = [piece for piece in pieces if piece.group != dispatch.GROUP]
    if not together or task.top is not None:
        return pieces
    several = len(task.devices) > 1 and task.reserved is None
    lists = pair_matrix.lists(together, len(task.devices)) if several else [together]
    return [*map(dispatch.join, lists), *others]


def run_mesh(run: Run, worker: Worker) -> None:
    """All pieces of a run on a mesh."""
    execute.run_mesh(run, worker)


def collect(run: Run) -> None:
    """Bring what devices hold of a run into its result."""
    if run.device_jobs:
        dispatch.collect(run)


def compile_launches(run: Run) -> None:
    """Compile what the launches of a run need, side by side, if it has any."""
    task = run.plan.task
    launches = None
    if run.plan.figures["implementation"].startswith("pallas"):
        launches = dispatch.launches_of(run, task)
    if launches:
        device = next(iter(task.devices), None)
        with on_device(device):
            dispatch.compile_all(dispatch.job_of(run, task, device), launches)


def byte_limit(plan: Plan) -> int:
    """The local score up to which the windows of a search are tried in 8 bits first;
    0: they are not."""
    large = plan.task.large and plan.figures["windows"]
    return execute.eight_bit_limit(plan.task) if large else 0


def regroup(task: Task, queries: np.ndarray, targets: np.ndarray) -> list[Piece]:
    """The pieces, heaviest first, of the pairs of a search whose scores left 8 bits."""
    return execute.regroup(task, queries, targets)


def pieces_beyond(run: Run) -> list[Piece]:
    """The pieces of the pairs of a run whose scores left 8 bits."""
    return execute.pieces_beyond(run)


def places(task: Task) -> list:
    """The device of every host thread, None where JAX chooses; a GPU may have several,
    so that it has work while one brings results to the host."""
    devices = task.devices or (None,)
    count = task.threads
    if choose(task.implementation, task.devices)[0] == "pallas":
        count = min(count, device_job.threads_of(task)) * len(devices)
    return [devices[k % len(devices)] for k in range(count)]


def on_device(device: Device | None):
    """A context in which JAX computes on a device, None: on its own choice."""
    return jax.default_device(device) if device else nullcontext()


def _plan_windows(task: Task) -> tuple[dict, Partition]:
    """The figures of a run, before it begins, and its windows and single pairs.

    Raises
    ------
    MemoryPlanError
        The result and a piece for every thread exceed the budget; or checkpoints are
        needed where another implementation is named.
    """
    fit = task.result_bytes + 2**20 * task.threads
    if fit <= task.budget:
        figures, split = _cut_windows(task)
        if _bytes(figures) <= task.budget:
            return figures, split
    # Bytes of a piece follow the budget: grow it until the plan fits, and name that.
    while (needed := _bytes(_cut_windows(replace(task, budget=fit))[0])) > fit:
        fit = needed
    refuse_over(fit, task.budget, f"{task.job.pairs:,} pairs")
    return _cut_windows(task)


def _bytes(figures: dict) -> int:
    return figures["result_bytes"] + figures["window_bytes"] * figures["threads"]


def _cut_windows(task: Task) -> tuple[dict, Partition]:
    """(figures, partition) within the task's budget, as far as the pairs can be cut."""
    limit = task.window_budget
    split = partition.cut(task.job, limit)
    if task.implementation is None:
        split = partition.without_lone(task.job, split)
    if task.implementation == "wavefront":
        single = [pair for w in split.blocks for pair in pairs_of(task.job, w)]
        split = Partition([], [*single, *split.pairs])
    sizes = [(len(task.queries[i]), len(task.targets[j])) for i, j in split.pairs]
    if task.implementation == "sweep" and sizes:
        if limit >= partition.MAX_NARROW_BYTES:
            size = show_bytes(partition.MAX_NARROW_BYTES)
            raise MemoryPlanError(
                f"{len(sizes):,} pairs do not fit a window of {size} with "
                "their backtrack: leave the implementation open, or name wavefront"
            )
        needed = [partition.least_bytes(task.job, *pair) for pair in split.pairs]
    else:
        needed = [long_pair.bytes_needed(*size, limit) for size in sizes]
        for k in _are_long(task, split.pairs).nonzero()[0].tolist():
            needed[k] = _long_bytes(task, split.pairs[k])
    needed += [partition.window_bytes(w, 4, task.job.steps) for w in split.blocks]
    dtypes = {task.dtype(*shape) for shape in sizes}
    dtypes |= {task.dtype(w.m, w.n) for w in split.blocks}
    if task.large or task.output == "identity":
        dtypes |= execute.dtypes_of(task, split.blocks)
    return describe(task, len(split.blocks), len(sizes), needed, dtypes), split
