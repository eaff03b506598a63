"""The pairs of a job that may pass its filters; no other one is aligned.

The pairs left (``pairs.proofs.proof``) are aligned one by one, and the rows are the
same as without the proofs. Where most pairs are left, all are aligned: they share more
work then.
"""

from collections.abc import Callable
from dataclasses import replace
from queue import SimpleQueue
from typing import TYPE_CHECKING

import numpy as np

from jaxalign.model.identity_bounds import identity_bound, why_none
from jaxalign.pairs import engine
from jaxalign.pairs.plan import Piece, Plan, Task, zipped
from jaxalign.pairs.proofs import blocks
from jaxalign.pairs.proofs.proof import Proofs, Survivors, proofs_of
from jaxalign.runtime.pipeline import in_threads

if TYPE_CHECKING:
    from jaxalign.pairs.run_state import Run, Worker


# Cells of the pairs left, of all: beyond, a sweep of all takes less than the pairs left
# each in a lane of its own (docs/logs/lcs-filter.md)
MAX_LEFT, MAX_LEFT_OF_A_GPU = 0.25, 0.15
LAUNCHES_OF_A_DEVICE = 3  # one runs, one waits, one is with the host


def bound_figures(task: Task) -> dict:
    """The bound of the filters, for a plan; nothing where there is no cut."""
    if task.filters.min_identity is None:
        return {}
    if not task.bounded:
        return {"bound": "none: filter=False, every pair is aligned"}
    if task.mesh is not None:
        return {"bound": "none on a mesh: every pair is aligned"}
    bound = identity_bound(task.filters, task.mode, task.free)
    if bound is None:
        return {"bound": f"none: {why_none(task.filters)}; every pair is aligned"}
    return {"bound": f"identity <= lcs / {bound}"}


def look(task: Task) -> Survivors | None:
    """The pairs of a task that may pass; None where all are to be aligned, because
    nothing is proved of them or most are left."""
    proofs = proofs_of(task)
    if proofs is None:
        return None
    survivors = find(proofs)
    most = MAX_LEFT if proofs.launches is None else MAX_LEFT_OF_A_GPU
    few = cells_of(task, survivors) <= most * task.job.cells
    return survivors if few and any(survivors.excluded.values()) else None


def on_gpu(task: Task, prepare: bool = False) -> bool:
    """Whether GPUs look at the pairs of a task; with ``prepare`` what they run is
    compiled from now on."""
    proofs = proofs_of(task)
    launches = None if proofs is None else proofs.launches
    if launches is not None and prepare:
        launches.prepare()
    return launches is not None


def look_at_parts(task: Task, some: list[Task], starts: list[int]) -> list:
    """``look`` at consecutive parts of a task together.

    task : of the rows of all these parts
    some : the tasks of the rows of each part
    starts : the first query of each part, counted from the first of all
    """
    survivors = look(task)
    if survivors is None:
        return [None] * len(some)
    ends = np.searchsorted(survivors.i, [*starts[1:], task.shape[0]])
    each, first = [], 0
    for own, start, last in zip(some, starts, ends, strict=True):
        proofs = proofs_of(own)
        assert proofs is not None
        of_part = Survivors(survivors.i[first:last], survivors.j[first:last])
        sides = shifted(task, of_part, -start)
        each.append(Survivors(*sides, proofs.excluded(int(last) - first)))
        first = int(last)
    return each


def shifted(
    task: Task, survivors: Survivors, first: int
) -> tuple[np.ndarray, np.ndarray]:
    """(i, j) of pairs of a part, counted as in the whole of which ``first`` is its
    first query; of a set its targets begin there, too."""
    return (
        survivors.i + first,
        survivors.j + first if task.kind == "all" else survivors.j,
    )


def cells_of(task: Task, survivors: Survivors) -> int:
    """Cells of the pairs that may pass."""
    m, n = task.job.query_lengths[survivors.i], task.job.target_lengths[survivors.j]
    return int((m * n).sum())


def plan(task: Task, whole: Plan | None = None) -> Plan:
    """The plan of those pairs of a task that may pass its filters.

    whole : the plan of all pairs, where that is known
    """
    survivors = look(task) if task.filtered else None
    if survivors is not None:
        return plan_of(task, survivors)
    whole = engine.plan(task) if whole is None else whole
    if not task.filtered:
        return whole
    return replace(whole, figures=whole.figures | figures_of(task, None))


def plan_of(task: Task, survivors: Survivors) -> Plan:
    """The plan of a task of which some pairs may pass."""
    plan = engine.plan(zipped(task, survivors.i, survivors.j))
    rest = task.job.cells - cells_of(task, survivors)
    others = Piece(plan.task, rest, 0, _tell_of_excluded, _no_scores)
    return Plan(
        task, (others, *plan.pieces), plan.figures | figures_of(task, survivors)
    )


def figures_of(task: Task, survivors: Survivors | None) -> dict:
    """Counts of the pairs of a task, aligned or not, for its result.

    survivors : None where all pairs are aligned
    """
    figures = {"pairs": task.job.pairs, "cells": task.job.cells}
    filters = task.filters
    if filters.min_identity is None and filters.min_length_ratio is None:
        return figures
    if survivors is None:
        excluded = {}
        figures |= {f"aligned_{name}": count for name, count in figures.items()}
    else:
        excluded, cells = survivors.excluded, cells_of(task, survivors)
        figures |= {"aligned_pairs": len(survivors.i), "aligned_cells": cells}
    return figures | {"excluded": excluded} | bound_figures(task)


def _tell_of_excluded(_run: "Run", worker: "Worker", piece: Piece) -> None:
    """Progress: the cells of the pairs that are not aligned are done."""
    worker.tell(piece.content)


def _no_scores(_run: "Run", _worker: "Worker", _piece: Piece):
    raise NotImplementedError("a search has no filters")


def find(proofs: Proofs) -> Survivors:
    """The pairs that may pass, in the order of rows, and how many cannot."""
    task, places = proofs.task, _places(proofs)
    idle: SimpleQueue = SimpleQueue()  # devices, for each thread that may have one
    for device in places:
        idle.put(device)

    def look_on_one(look: Callable):
        device = idle.get()
        try:
            return look(device)
        finally:
            idle.put(device)

    results = in_threads(look_on_one, blocks.looks(proofs), len(places))
    none = np.zeros(0, np.int64)
    sides = zip((none, none, none), *results, strict=True)
    i, j, most = (np.concatenate(side) for side in sides)
    order = np.argsort(task.job.position(i, j), kind="stable")
    return Survivors(i[order], j[order], proofs.excluded(len(order)), most[order])


def _places(proofs: Proofs) -> list:
    """The device of every thread that looks at pairs; None is JAX's own choice."""
    devices, threads = proofs.task.devices or (None,), proofs.task.threads
    if proofs.by_rows:  # calls of NumPy are too short: they would wait for each other
        threads = 1
    elif proofs.launches is not None:
        threads = min(threads, LAUNCHES_OF_A_DEVICE * len(devices))
    return [devices[k % len(devices)] for k in range(threads)]
