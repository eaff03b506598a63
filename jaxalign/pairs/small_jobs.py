"""Jobs that are done sooner by rows, in NumPy, than a compiler has begun with them.

``JAXALIGN_ROWS=off`` in the environment leaves every job to the compiled
implementations, unless ``rows`` is named.
"""

import os
import sys
from math import inf
from typing import NamedTuple

import numpy as np

from jaxalign.errors import MemoryPlanError, UsageError
from jaxalign.pairs.cpu import rows_window
from jaxalign.pairs.plan import MAX_WINDOW_BYTES, Piece, Plan, Task
from jaxalign.runtime.memory import refuse_over, show_bytes
from jaxalign.runtime.program_folder import has_note, leave_note, program_folder

SWITCH = "JAXALIGN_ROWS"
# One core of an AMD EPYC, NumPy 2.4, proteins (benchmarks/small_jobs.py).
ROW_SECONDS = 13e-6  # of a row of a window: a dozen calls of NumPy …
CELL_SECONDS = 4e-9  # … and so much a cell; without a path two thirds of it
STEP_SECONDS = 6e-6  # of a step of the walk of a window
# Before the first result of what XLA compiles (benchmarks/whole_process.py), on a
# machine without a GPU, and with one.
NVIDIA = "/proc/driver/nvidia/version"


class StartSeconds(NamedTuple):
    """What passes before something compiled begins."""

    jax: float  # to import it
    program: float  # to compile one of the job
    load: float  # … or to load it from the user's folder


# On a GPU half of what a program takes: it is stored, and later processes load it.
START = {False: StartSeconds(0.6, 2.0, 0.1), True: StartSeconds(1.5, 3.0, 0.3)}
CALL_SECONDS = 0.01  # of a job whose programs are there
COMPILED_CELL_SECONDS = 1e-9  # of a thread, with a path
LONE_CELLS = 2**19  # of a pair alone, which the anti-diagonals take 1.5 to 2 ms for
LEAST_SIDE = 64  # of a window of zipped pairs
MAX_CELLS, MAX_PAIRS = 2**31, 2**20  # beyond them nothing is estimated
_sizes_ready = set()  # of programs that this process has compiled or loaded
_seconds_by_rows = {}  # sizes of jobs -> how long this process has computed some


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
    windows = rows_window.partition(task, budget) if budget > 0 else None
    if windows is None:
        if named:
            _refuse(task)
        return None
    cells = sum(window.filled_cells for window in windows)
    rows = sum(len(window.m) and int(window.m[0]) for window in windows)
    share = task.job.total / max(task.job.cells, 1)  # of a part: the whole job's
    small, why = choose_way(cells * share, rows * share, task)
    if not named and not small:
        return None
    figures = rows_window.figures_of(task, windows)
    figures |= {"threads": 1, "devices": ["cpu"], "device_cells": [cells]}
    figures |= {"budget_bytes": task.budget, "implementation": "rows"}
    figures |= {"reason": "asked for" if named else why}
    return Plan(task, tuple(rows_window.pieces_of(task, windows)), figures)


def seems_small(task: Task) -> bool:
    """Whether rows, without a compiler, may be the way, as far as cells tell."""
    if task.implementation == "rows":
        return True
    return _may(task) and choose_way(task.job.total, 0, task)[0]


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
    if cells[~small].sum() * CELL_SECONDS < seconds_to_start(task):
        small[:] = True
    few = [pair for pair, is_small in zip(pairs, small, strict=True) if is_small]
    windows = rows_window.partition(task, task.window_budget, few) if few else []
    if not windows:
        return [], pairs
    others = [pair for pair, is_small in zip(pairs, small, strict=True) if not is_small]
    return rows_window.pieces_of(task, windows), others


def choose_way(cells: float, rows: float, task: Task) -> tuple[bool, str]:
    """Whether a job is done sooner by rows than compiled, and why.

    Once jobs of its size have taken so long by rows that they would have paid for the
    compiler, it starts for a job that is twice as fast then.

    cells, rows : of all windows by rows, padding included
    """
    cost = CELL_SECONDS if task.paths else CELL_SECONDS * 2 / 3
    steps = 2 * rows * STEP_SECONDS if task.paths else 0.0
    by_rows = cells * cost + rows * ROW_SECONDS + steps
    compiled = CALL_SECONDS + cells * COMPILED_CELL_SECONDS / task.threads
    start = seconds_to_start(task, by_rows - compiled)
    pays = _seconds_by_rows.get(_sizes(task), 0.0) >= start and 2 * compiled < by_rows
    why = f"a small job: about {by_rows:.2g} s in NumPy, without a compiler"
    return by_rows <= compiled + start and not pays, why


def seconds_to_start(task: Task, spare: float = inf) -> float:
    """What passes before a compiled job begins to compute: little where its programs
    are in memory; else JAX may have to be imported, and the programs loaded or
    compiled. Whether they are in the folder is asked where ``spare`` seconds, which
    rows would take more, depend on it."""
    missing = _sizes(task) - _sizes_ready
    if not missing:
        return 0.0
    start = START[may_have_gpu()]
    imported = 0.0 if "jax" in sys.modules else start.jax
    loaded = imported + len(missing) * start.load
    compiled = imported + max(len(missing) / task.threads, 1) * start.program
    if not loaded < spare <= compiled:
        return compiled
    folder = program_folder()
    stored = folder and all(has_note(folder, _note(size)) for size in missing)
    return loaded if stored else compiled


def may_have_gpu() -> bool:
    """Whether the machine has an NVIDIA driver: known without JAX."""
    return os.path.exists(NVIDIA)


def is_by_rows(plan: Plan) -> bool:
    """Whether nothing of a plan is compiled."""
    return plan.figures.get("implementation") == "rows"


def note(plan: Plan, seconds: float) -> None:
    """A plan has run: what it compiled is there for the next one of its size."""
    tasks = {id(piece.task): piece.task for piece in plan.pieces}
    sizes = frozenset().union(*map(_sizes, tasks.values())) or _sizes(plan.task)
    if is_by_rows(plan):
        _seconds_by_rows[sizes] = _seconds_by_rows.get(sizes, 0.0) + seconds
        return
    folder = program_folder() if sizes - _sizes_ready else None
    for size in sizes - _sizes_ready if folder else ():
        leave_note(folder, _note(size))
    _sizes_ready.update(sizes)


def _sizes(task: Task) -> frozenset:
    """What the programs of a task depend on, one for each of them, about. Zipped pairs
    lie in windows whose sides are a power of two."""
    kind = task.kind == "zip", task.local, task.output
    if task.kind == "zip":
        sides = np.maximum(task.queries.lengths, task.targets.lengths)
        sides = np.frexp(np.maximum(sides, LEAST_SIDE) - 0.5)[1]
        return frozenset((*kind, side) for side in np.unique(sides).tolist())
    sides = (max(length, 1).bit_length() for length in task.job.most)
    return frozenset([(*kind, *sides)])


def _note(size: tuple) -> str:
    return f"jobs of size {size} have their programs here"


def _may(task: Task) -> bool:
    """Whether a task leaves open who computes it, and is small at first sight."""
    if task.implementation or task.devices or task.mesh is not None:
        return False
    if task.top is not None or os.environ.get(SWITCH, "").lower() in ("off", "0"):
        return False
    return task.job.total <= MAX_CELLS and task.job.pairs <= MAX_PAIRS
