"""Plans for what XLA compiles: windows of a CPU, launches of a GPU, pairs alone.

``pairs.engine`` imports this when a job needs it: importing JAX takes longer than a
small job by rows (``pairs.by_rows``).
"""

from contextlib import nullcontext
from dataclasses import replace
from itertools import compress
from typing import get_args

import jax
import numpy as np

from jaxalign.errors import DeviceError, MemoryPlanError, UsageError
from jaxalign.options import Implementation
from jaxalign.pairs import pair_matrix
from jaxalign.pairs.by_rows import MAX_PAIRS, lone_pairs
from jaxalign.pairs.cpu import execute, long_pair, partition
from jaxalign.pairs.cpu.execute import directions_of as directions_of
from jaxalign.pairs.cpu.execute import pieces_beyond as pieces_beyond
from jaxalign.pairs.cpu.execute import regroup as regroup
from jaxalign.pairs.cpu.execute import run_mesh as run_mesh
from jaxalign.pairs.cpu.execute import whole_table as whole_table
from jaxalign.pairs.gpu import device_job, dispatch, launches
from jaxalign.pairs.gpu.dispatch import collect as collect
from jaxalign.pairs.long import align
from jaxalign.pairs.options import IMPLEMENTATIONS
from jaxalign.pairs.pair_matrix import Partition
from jaxalign.pairs.pair_matrix import pairs as pairs_of
from jaxalign.pairs.plan import Piece, Plan, Run, Task, describe
from jaxalign.pairs.proofs.lcs_launches import LcsLaunches, sizes_of
from jaxalign.runtime.backend import kernels_pallas
from jaxalign.runtime.devices import (
    Device,
    first_device,
    host_device,
    refuse_over,
    show_bytes,
)


def choose(
    implementation: str | None, devices: tuple = ()
) -> tuple[Implementation, str]:
    """Choose an implementation for some devices, or JAX's default one: (name, reason).
    A named one is never exchanged for another.

    Raises UsageError: unknown name; DeviceError: ``pallas`` where its kernels cannot
    run.
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


def plan_compiled(task: Task) -> Plan:
    """Plan a task: its pieces, its implementation and the reason for it."""
    by_position = task.scoring.gap_costs is not None
    zipped = task.paths or task.job.kind == "zip"
    of_one_query = task.implementation in (None, "sweep", "pallas") and not task.mesh
    if by_position and (zipped or not of_one_query):
        raise UsageError(
            f"{task.scoring}: sweep and pallas have scores of one query, rows paths "
            "and zipped pairs; leave out implementation and mesh"
        )
    # 1. Choose: alphabet, output and mesh may ask for another implementation.
    named = task.implementation if task.mesh is None else "sweep"
    name, why = choose(named, task.devices)
    if name == "pallas" and not launches.takes(task) and not task.implementation:
        letters, max_letters = launches.letters_of(task), launches.MAX_LETTERS
        also = " and gap costs by position" * by_position
        why = f"{letters} letters{also}; the GPU kernels take {max_letters}"
        if task.scoring.by_position and task.job.kind == "zip":
            why = "a profile; the GPU kernels take no single pairs of it"
        name = "sweep"
        # On a GPU each column of a window is some launches of XLA: cores are faster.
        if not task.devices and (host := host_device()) is not None:
            task, why = replace(task, devices=(host,)), f"{why}; on the host"
    if task.mesh is not None:
        why = f"one program over a mesh of {task.mesh.devices.size} devices"
    # 2. Cut the pair matrix into windows or launches; few long pairs have a GPU each.
    one_track = not task.scoring.tracks  # which blocks of long pairs take
    if name == "pallas" and one_track and (long := align.on_gpu(task, kernels_pallas)):
        refuse_over(task.result_bytes, task.budget, f"{task.job.pairs:,} pairs")
        needed = [_long_bytes(task, pair) for pair in long]
        figures = describe(task, 0, len(long), needed, {"int32"})
        blocks, split, remainder = [], Partition([], long), "long pairs"
    elif name == "pallas":
        limit, kernels = device_job.budget(task), kernels_pallas
        refuse_over(task.result_bytes, task.budget, f"{task.job.pairs:,} pairs")
        split = launches.cut(task, kernels, limit)
        if split.pairs and task.implementation == "pallas":
            raise MemoryPlanError(
                f"pallas cannot compute {len(split.pairs):,} of the pairs (too many "
                f"letters, too large scores, or more than {show_bytes(limit)} of "
                "device memory): leave out the implementation"
            )
        needed = [launches.launch_bytes(task, kernels, x) for x in split.blocks]
        dtypes = {x.dtype for x in split.blocks}
        sizes = len(split.blocks), len(split.pairs)
        figures = describe(task, *sizes, needed, dtypes)
        figures["threads"] = min(task.threads, launches.THREADS_OF_A_DEVICE)
        blocks = dispatch.pieces_of(task, split.blocks)
        remainder = "pairs beyond the kernels"
    else:
        figures, split = _plan_windows(task)
        blocks = execute.pieces_of(task, split.blocks)
        lengths = "pairs too long, or too few, for a window"
        remainder = lengths if name == "sweep" else None
    # 3. The other pairs: by rows, block by block, or in strips
    by_rows, single_pairs = [], split.pairs
    if single_pairs and task.implementation is None:
        by_rows, single_pairs = lone_pairs(task, single_pairs)
    by_blocks, single_pairs = _by_blocks(task, single_pairs, name == "pallas")
    tiles = bool(by_blocks) and name != "pallas"
    ways = {
        name: bool(blocks) or (bool(by_blocks) and not tiles),
        "rows": bool(by_rows) or (by_position and bool(single_pairs)),
        "wavefront": (bool(single_pairs) and not by_position) or tiles,
    }
    if split.pairs and remainder:
        used = [way for way, is_used in ways.items() if is_used]
        how = " and ".join(used[bool(blocks) :])
        remainder = f"{remainder} by {how}" + (", in strips" if single_pairs else "")
        halved = len({piece.content for piece in by_blocks}) < len(by_blocks)
        remainder += ", in blocks" * bool(by_blocks)
        remainder += ", a half on each of two devices" * halved
        why = f"{why}; {remainder}" if blocks else remainder
        name = ", ".join(used)
    # 4. Order the pieces, and say how devices share them.
    in_strips = execute.pair_pieces_of(task, single_pairs) if single_pairs else []
    pieces = [*blocks, *by_rows, *by_blocks, *in_strips]
    named = task.devices if task.mesh is None else task.mesh.devices.flat
    devices = [f"{x.platform}:{x.id}" for x in list(named) or jax.devices()[:1]]
    schedule = pair_matrix.schedule([piece.cells for piece in pieces], len(devices))
    pieces = [pieces[k] for k in schedule.order]
    figures |= {"devices": devices, "device_cells": list(schedule.loads)}
    figures |= {"budget_bytes": task.budget, "implementation": name, "reason": why}
    # Launches need not wait for each other, so they come in lists: several for each of
    # some devices, but one for a part of a job. A search looks at each launch.
    together = [piece for piece in pieces if piece.group == dispatch.GROUP]
    if together and task.mesh is None and task.top is None:
        single_pieces = [piece for piece in pieces if piece.group != dispatch.GROUP]
        several = len(task.devices) > 1 and task.reserved is None
        count = len(task.devices)
        lists = pair_matrix.lists(together, count) if several else [together]
        pieces = [*map(dispatch.join, lists), *single_pieces]
    return Plan(task, tuple(pieces), figures)


def _long_bytes(task: Task, pair: tuple[int, int]) -> int:
    size = len(task.queries[pair[0]]), len(task.targets[pair[1]])
    return align.bytes_needed(*size, task.window_budget)


def _by_blocks(task: Task, pairs: list, on_gpu: bool) -> tuple[list[Piece], list]:
    """Split pairs into pieces by blocks, for the long ones, and the other pairs."""
    are_long = _are_long(task, pairs, on_gpu)
    if not are_long.any():
        return [], pairs
    long = list(compress(pairs, are_long))
    short_pairs = list(compress(pairs, ~are_long))
    kernels = kernels_pallas if on_gpu else None
    return align.pieces_of(task, long, kernels), short_pairs


def _are_long(task: Task, pairs: list, on_gpu: bool = False):
    """Mark the pairs to align by blocks, on a GPU or a CPU: bool (pairs,). A search has
    none, since it looks at scores on the device, and neither have two tracks."""
    if not pairs or task.top is not None or task.mesh is not None:
        return np.zeros(len(pairs), bool)
    if task.scoring.tracks:
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
    if task.scoring.tracks or not launches.takes(task):
        return None
    if task.implementation not in (None, "pallas") or task.mesh is not None:
        return None
    if choose(task.implementation, task.devices)[0] != "pallas":
        return None
    return LcsLaunches(task, kernels_pallas, sizes=sizes_of(task))


def compile_launches(run: Run) -> None:
    """Compile the programs of a run's launches in parallel, if it has any."""
    task = run.plan.task
    if not run.plan.figures["implementation"].startswith("pallas"):
        return
    if launches_of_run := dispatch.launches_of(run, task):
        device = next(iter(task.devices), None)
        with on_device(device):
            dispatch.compile_all(dispatch.job_of(run, task, device), launches_of_run)


def byte_limit(plan: Plan) -> int:
    """Highest local score at which a search tries its windows in 8 bits first; 0 if it
    does not."""
    large = plan.task.large and plan.figures["windows"]
    return execute.eight_bit_limit(plan.task) if large else 0


def places(task: Task) -> list:
    """List a device for every host thread, None where JAX chooses. A GPU may have
    several threads, so that it has work while one copies results to the host."""
    devices = task.devices or (None,)
    count = task.threads
    if choose(task.implementation, task.devices)[0] == "pallas":
        count = min(count, device_job.threads_of(task)) * len(devices)
    return [devices[k % len(devices)] for k in range(count)]


def on_device(device: Device | None):
    """Context in which JAX computes on a device; None leaves the choice to JAX."""
    return jax.default_device(device) if device else nullcontext()


def _plan_windows(task: Task) -> tuple[dict, Partition]:
    """Plan the windows and single pairs of a task: (figures, partition).

    Raises MemoryPlanError: the result and a piece for every thread exceed the budget;
    or checkpoints are needed where another implementation is named.
    """
    fit = task.result_bytes + 2**20 * task.threads
    if fit <= task.budget:
        figures, split = _cut_windows(task)
        if _bytes(figures) <= task.budget:
            return figures, split
    # Bytes of a piece follow the budget: grow it until the plan fits, and name that. A
    # large result that does not fit by itself is not cut: windows fit what is left for
    # them, and so does every pair alone if the longest does.
    if task.result_bytes > task.budget and task.job.pairs > MAX_PAIRS:
        window = partition.LARGE_BACKTRACK_BYTES
        fit = task.result_bytes + window * task.threads
        m, n = (int(x.lengths.max(initial=0)) for x in (task.queries, task.targets))
        fits_alone = long_pair.bytes_needed(m, n, window) <= window
        if fits_alone and task.implementation != "sweep":
            refuse_over(fit, task.budget, f"{task.job.pairs:,} pairs")
    while (needed := _bytes(_cut_windows(replace(task, budget=fit))[0])) > fit:
        fit = needed
    refuse_over(fit, task.budget, f"{task.job.pairs:,} pairs")
    return _cut_windows(task)


def _bytes(figures: dict) -> int:
    return figures["result_bytes"] + figures["window_bytes"] * figures["threads"]


def _cut_windows(task: Task) -> tuple[dict, Partition]:
    """Cut a task within its budget, as far as its pairs can be cut: (figures,
    partition)."""
    limit, room = task.window_budget, execute.room_of(task)
    by_query = execute.pairs_by_query(task)
    is_small = task.job.cells < partition.TEAM_JOB_CELLS  # it asks nobody
    teams = not is_small and execute.has_teams(task)
    split = partition.cut(task.job, room, by_query=by_query, teams=teams)
    if task.implementation is None and task.scoring.gap_costs is None:
        split = partition.without_lone(task.job, split)
    if task.implementation == "wavefront":
        single = [pair for w in split.blocks for pair in pairs_of(task.job, w)]
        split = Partition([], [*single, *split.pairs])
    sizes = [(len(task.queries[i]), len(task.targets[j])) for i, j in split.pairs]
    if task.implementation == "sweep" and sizes:
        if limit >= partition.MAX_NARROW_BYTES:
            size = show_bytes(partition.MAX_NARROW_BYTES)
            raise MemoryPlanError(
                f"sweep cannot compute {len(sizes):,} of the pairs, which need more "
                f"than {size}: leave out the implementation, or name wavefront"
            )
        needed = [partition.least_bytes(task.job, *pair, room) for pair in split.pairs]
    else:
        needed = [long_pair.bytes_needed(*size, limit) for size in sizes]
        for k in _are_long(task, split.pairs).nonzero()[0].tolist():
            needed[k] = _long_bytes(task, split.pairs[k])
    steps = task.job.steps
    needed += [partition.window_bytes(w, steps, room) for w in split.blocks]
    dtypes = {task.dtype(*shape) for shape in sizes}
    dtypes |= {task.dtype(w.m, w.n) for w in split.blocks}
    # Narrow dtypes in which windows are filled
    dtypes |= {"int8"} if split.blocks and execute.eight_bit_limit(task) else set()
    if task.large or task.output == "identity":
        each = (execute.eight_bit_differences(task, w) for w in split.blocks)
        dtypes |= {differences.cell for differences in each if differences is not None}
    return describe(task, len(split.blocks), len(sizes), needed, dtypes), split
