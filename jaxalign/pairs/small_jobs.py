"""Jobs that are done sooner by rows, in NumPy, than a compiler has begun with them.

``JAXALIGN_ROWS=off`` in the environment leaves every job to the compiled
implementations, unless ``rows`` is named.
"""

import os

import numpy as np

from jaxalign.errors import MemoryPlanError, UsageError
from jaxalign.pairs.cpu import rows_window
from jaxalign.pairs.plan import MAX_WINDOW_BYTES, Piece, Plan, Task
from jaxalign.runtime.memory import refuse_over, show_bytes

SWITCH = "JAXALIGN_ROWS"
# One core of an AMD EPYC, NumPy 2.4, proteins (benchmarks/small_jobs.py).
ROW_SECONDS = 13e-6  # of a row of a window: a dozen calls of NumPy …
CELL_SECONDS = 4e-9  # … and so much a cell; without a path two thirds of it
STEP_SECONDS = 6e-6  # of a step of the walk of a window
# Before the first result of what XLA compiles: importing JAX takes 0.6 s, loading the
# programs of a job that are on disk 0.4 s, and compiling them 2 to 5 s.
START_SECONDS = 1.5
CALL_SECONDS = 0.01  # of a job whose programs are there
COMPILED_CELL_SECONDS = 1e-9  # of a thread, with a path
LONE_CELLS = 2**19  # of a pair alone, which the anti-diagonals take 1.5 to 2 ms for
MAX_CELLS, MAX_PAIRS = 2**31, 2**20  # beyond them nothing is estimated
_sizes_ready = set()  # of jobs that this process has compiled programs for
_seconds_by_rows = {}  # size of jobs -> how long this process has computed some


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
    if not named and not _may(task):
        return None
    budget = task.window_budget
    windows = rows_window.partition(task, budget) if budget > 0 else None
    if windows is None:
        if named:
            _refuse(task)
        return None
    cells = sum(window.filled_cells for window in windows)
    rows = sum(len(window.m) and int(window.m[0]) for window in windows)
    share = task.job.total / max(task.job.cells, 1)  # of a part: the whole job's
    size = _size(task)
    ready, spent = size in _sizes_ready, _seconds_by_rows.get(size, 0.0)
    work = cells * share, rows * share
    small, why = choose_way(*work, task.threads, ready, task.paths, spent)
    if not named and not small:
        return None
    figures = rows_window.figures_of(task, windows)
    figures |= {"threads": 1, "devices": ["cpu"], "device_cells": [cells]}
    figures |= {"budget_bytes": task.budget, "implementation": "rows"}
    figures |= {"reason": "asked for" if named else why}
    return Plan(task, tuple(rows_window.pieces_of(task, windows)), figures)


def _refuse(task: Task) -> None:
    """Refuse a job that is to be computed by rows and does not fit the budget."""
    pair = rows_window.largest_pair_bytes(task)
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
    rows are no slower than these once they are there; nor are they for all pairs,
    where that takes less than the programs."""
    if not pairs or not _may(task):
        return [], pairs
    i, j = np.array(pairs).T
    cells = task.queries.lengths[i] * task.targets.lengths[j]
    small = cells <= LONE_CELLS
    ready = _size(task) in _sizes_ready
    if not ready and cells[~small].sum() * CELL_SECONDS < START_SECONDS:
        small[:] = True
    few = [pair for pair, is_small in zip(pairs, small, strict=True) if is_small]
    windows = rows_window.partition(task, task.window_budget, few) if few else []
    if not windows:
        return [], pairs
    others = [pair for pair, is_small in zip(pairs, small, strict=True) if not is_small]
    return rows_window.pieces_of(task, windows), others


def choose_way(
    cells: float,
    rows: float,
    threads: int,
    programs_ready: bool,
    paths: bool = True,
    spent: float = 0.0,
) -> tuple[bool, str]:
    """Whether a job is done sooner by rows than compiled, and why.

    Parameters
    ----------
    cells, rows : of all windows by rows, padding included
    threads : int
        Of the compiled way; by rows there is one.
    programs_ready : bool
        Whether programs for jobs of this size are compiled and loaded.
    paths : bool
    spent : float
        Seconds that jobs of this size have taken by rows. Once they would have paid for
        a compiler, it may start for a job that is twice as fast then.

    Examples
    --------
    >>> choose_way(330 * 340, 330, 2, False)
    (True, 'a small job: about 0.0087 s in NumPy, without a compiler')
    >>> choose_way(1e10, 1e5, 2, False)[0]
    False
    """
    cost = CELL_SECONDS if paths else CELL_SECONDS * 2 / 3
    steps = 2 * rows * STEP_SECONDS if paths else 0.0
    by_rows = cells * cost + rows * ROW_SECONDS + steps
    compiled = CALL_SECONDS + cells * COMPILED_CELL_SECONDS / threads
    pays = spent >= START_SECONDS and 2 * compiled < by_rows
    if not (programs_ready or pays):
        compiled += START_SECONDS
    why = f"a small job: about {by_rows:.2g} s in NumPy, without a compiler"
    return by_rows <= compiled, why


def is_by_rows(plan: Plan) -> bool:
    """Whether nothing of a plan is compiled."""
    return plan.figures.get("implementation") == "rows"


def note(plan: Plan, seconds: float) -> None:
    """A plan has run: what it compiled is there for the next one of its size."""
    size = _size(plan.task)
    if is_by_rows(plan):
        _seconds_by_rows[size] = _seconds_by_rows.get(size, 0.0) + seconds
    else:
        _sizes_ready.add(size)


def _size(task: Task) -> tuple:
    """What the programs of a task depend on, about."""
    sides = tuple(max(length, 1).bit_length() for length in task.job.most)
    return task.kind == "zip", task.local, task.output, sides


def _may(task: Task) -> bool:
    """Whether a task leaves open who computes it, and is small at first sight."""
    if task.implementation or task.devices or task.mesh is not None:
        return False
    if task.top is not None or os.environ.get(SWITCH, "").lower() in ("off", "0"):
        return False
    return task.job.total <= MAX_CELLS and task.job.pairs <= MAX_PAIRS
