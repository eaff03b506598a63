"""Jobs that are done by rows, in NumPy, sooner than a compiler has begun with them.

Whether a job is small depends on its lengths, mode and output, and on nothing that ran
before. ``JAXALIGN_ROWS=off`` in the environment leaves every job to the compiled
implementations, unless ``rows`` is named.
"""

import os

import numpy as np

from jaxalign.errors import MemoryPlanError, UsageError
from jaxalign.model.alignment import Alignment
from jaxalign.model.alphabet import Sequences
from jaxalign.model.scoring import Scoring
from jaxalign.pairs.cpu import rows_pairs
from jaxalign.pairs.plan import MAX_WINDOW_BYTES, Piece, Plan, Task
from jaxalign.runtime.devices import (
    ambient_mesh,
    default_device,
    refuse_over,
    show_bytes,
)

SWITCH = "JAXALIGN_ROWS"
# One core of an AMD EPYC, NumPy 2.4, proteins (benchmarks/small_jobs.py).
ROW_SECONDS = 13e-6  # of a row of a window: a dozen calls of NumPy …
CELL_SECONDS = 4e-9  # … and so much a cell; without a path two thirds of it
STEP_SECONDS = 6e-6  # of a step of the walk of a window
# A compiler takes 2.6 s for the first job of a size, and a stored program 0.1 s in each
# process; on a GPU, which is busy for a hundredth of that then, rows pay less.
MAX_SECONDS = {False: 1.5, True: 0.5}
# … and twice as many with paths on a CPU: these take a program for each size of
# windows, whose lanes look up their scores and are no faster than rows for zipped pairs
PATHS_RATIO = 2
NVIDIA = "/proc/driver/nvidia/version"
LONE_CELLS = 2**19  # of a pair alone, which the anti-diagonals take 1.5 to 2 ms for
# … of which identities are wanted: anti-diagonals take four times as long as rows, for
# their scores are wider than a byte
LONE_IDENTITY_CELLS = 2**26
MAX_PAIR_CELLS = 2**26  # of a pair whose directions are held, whatever the budget
MAX_CELLS, MAX_PAIRS = 2**31, 2**20  # beyond them nothing is estimated


def aligned(
    query: Sequences, target: Sequences, scoring: Scoring, mode: str, free: frozenset
) -> Alignment | None:
    """The alignment of one pair; None where that is not small."""
    m, n = len(query.codes), len(target.codes)
    small = m * n <= MAX_PAIR_CELLS and _is_short(m * n, min(m, n), paths=True)
    chosen_by_jax = default_device() is not None or ambient_mesh() is not None
    if not small or chosen_by_jax or _switched_off():
        return None
    return rows_pairs.alignment(query, target, scoring, mode, free)


def plan(task: Task) -> Plan | None:
    """The plan of a task by rows; None where something compiled is to compute it.

    Raises
    ------
    UsageError
        Rows are named, and devices or a mesh too.
    MemoryPlanError
        Rows are named, and the result or a pair does not fit the budget.
    """
    named = task.implementation == "rows"
    if named and (task.devices or task.mesh is not None):
        raise UsageError("rows computes in NumPy: leave out devices and mesh")
    if not seems_small(task):
        return None  # whatever its windows are
    budget = task.window_budget
    windows = rows_pairs.partition(task, budget) if budget > 0 else None
    if windows is None:
        if named:
            _refuse(task)
        return None
    cells = sum(window.filled_cells for window in windows)
    rows = sum(len(window.m) and int(window.m[0]) for window in windows)
    share = task.job.total / max(task.job.cells, 1)  # of a part: the whole job's
    if not named and not _is_short(cells * share, rows * share, task.paths):
        return None
    figures = rows_pairs.figures_of(task, windows)
    figures |= {"threads": 1, "devices": ["cpu"], "device_cells": [cells]}
    figures |= {"budget_bytes": task.budget, "implementation": "rows"}
    seconds = _seconds(cells, rows, task.paths)
    why = f"a small job: about {seconds:.2g} s in NumPy, without a compiler"
    why = "asked for" if named else why
    pieces = tuple(rows_pairs.pieces_of(task, windows))
    return Plan(task, pieces, figures | {"reason": why})


def seems_small(task: Task) -> bool:
    """Whether rows, without a compiler, may be the way, as far as cells tell."""
    if task.implementation == "rows":
        return True
    return _may(task) and _is_short(task.job.total, 0, task.paths)


def _refuse(task: Task) -> None:
    """Refuse a job that is to be computed by rows and does not fit the budget."""
    pair = rows_pairs.largest_pair_bytes(task)
    if pair > MAX_WINDOW_BYTES:
        raise MemoryPlanError(
            f"a pair needs {show_bytes(pair)} with its directions, by rows at most "
            f"{show_bytes(MAX_WINDOW_BYTES)}: leave the implementation open"
        )
    needed = task.result_bytes + pair * task.threads
    refuse_over(needed, task.budget, f"{task.job.pairs:,} pairs")


def lone_pairs(task: Task, pairs: list) -> tuple[list[Piece], list]:
    """(pieces by rows, the other pairs) of pairs that are too few for a window of the
    sweep. Each size of a pair would be programs of its own, and up to ``LONE_CELLS``
    rows are no slower than these; nor are they for all pairs, where these are a small
    job, and for all identities but those of very long pairs."""
    if not pairs or not _is_open(task):
        return [], pairs
    i, j = np.array(pairs).T
    m, n = task.queries.lengths[i], task.targets.lengths[j]
    small = np.zeros(len(pairs), bool)
    if task.output == "identity" and not may_have_gpu():
        small |= m * n <= LONE_IDENTITY_CELLS
    if _may(task):
        small |= m * n <= LONE_CELLS
        if _is_short(float((m * n)[~small].sum()), float(m[~small].sum()), task.paths):
            small[:] = True
    few = [pair for pair, is_small in zip(pairs, small, strict=True) if is_small]
    windows = rows_pairs.partition(task, task.window_budget, few) if few else []
    if not windows:
        return [], pairs
    others = [pair for pair, is_small in zip(pairs, small, strict=True) if not is_small]
    return rows_pairs.pieces_of(task, windows), others


def _seconds(cells: float, rows: float, paths: bool) -> float:
    """Seconds of windows of so many cells and rows, padding included, in NumPy."""
    cost = CELL_SECONDS if paths else CELL_SECONDS * 2 / 3
    steps = 2 * rows * STEP_SECONDS if paths else 0.0
    return cells * cost + rows * ROW_SECONDS + steps


def is_short(cells: float) -> bool:
    """Whether scores of so many cells may be computed by rows."""
    return _is_short(cells, 0, paths=False)


def _is_short(cells: float, rows: float, paths: bool) -> bool:
    gpu = may_have_gpu()
    ratio = PATHS_RATIO if paths and not gpu else 1
    return _seconds(cells, rows, paths) <= ratio * MAX_SECONDS[gpu]


def may_have_gpu() -> bool:
    """Whether the machine has an NVIDIA driver: known without JAX."""
    return os.path.exists(NVIDIA)


def _may(task: Task) -> bool:
    """Whether a task leaves open who computes it, and is small at first sight."""
    small = task.job.total <= MAX_CELLS and task.job.pairs <= MAX_PAIRS
    return small and _is_open(task)


def _is_open(task: Task) -> bool:
    """Whether a task leaves open who computes it."""
    if task.implementation or task.devices or task.mesh is not None:
        return False
    return task.top is None and not _switched_off()


def _switched_off() -> bool:
    return os.environ.get(SWITCH, "").lower() in ("off", "0")
