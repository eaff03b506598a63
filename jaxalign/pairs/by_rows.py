"""Jobs by rows, in NumPy, sooner than a compiler has begun with them.

Whether a job is small depends on its lengths, mode and output, and on nothing that ran
before; jobs that come again may be compiled (``pairs.amortized``).
``JAXALIGN_ROWS=off`` in the environment leaves every job to the compiled
implementations, unless ``rows`` is named.

One pair goes from two sequences to its alignment with nothing in between. In a window
any pairs may be together, since nothing is compiled for them. Those of like longer
sides are: the longer side of a pair is its columns, and a row is as wide as the longest
of them. A pair leaves the rows when its shorter side ends.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from jaxalign.errors import MemoryPlanError, UsageError
from jaxalign.model import bounds, operations
from jaxalign.model.alignment import Alignment
from jaxalign.model.alphabet import Sequences, first_track, stacked
from jaxalign.model.scoring import Scoring
from jaxalign.pairs.dp import rows
from jaxalign.pairs.pair_matrix import WindowPairs
from jaxalign.pairs.plan import (
    MAX_WINDOW_BYTES,
    Piece,
    Plan,
    Run,
    Task,
    Worker,
    describe,
)
from jaxalign.pairs.result import Rows, collect
from jaxalign.runtime.devices import is_placed, refuse_over, show_bytes

ROW_CELLS = 2**16  # of all pairs of a window: half the rows are half the calls of NumPy
OTHER_SIDE = {"query": "target", "target": "query"}
SWITCH = "JAXALIGN_ROWS"
# One core of an AMD EPYC, NumPy 2.4, proteins (benchmarks.whole_process --fills).
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
LONG_RATIO, LONG_TARGET = 4, 2**11  # letters of a target, for positions of a profile
MAX_CELLS, MAX_PAIRS = 2**31, 2**20  # beyond them nothing is estimated
PAIR_BYTES = 80  # of a pair, of the plan of all windows


def aligned(
    query: Sequences, target: Sequences, scoring: Scoring, mode: str, free: frozenset
) -> Alignment | None:
    """Align the first sequences of two sets; None if that is no small job, or JAX was
    told where to compute."""
    m, n = len(query.codes), len(target.codes)
    small = m * n <= MAX_PAIR_CELLS and is_short(m * n, min(m, n), paths=True)
    if not small or is_placed() or _switched_off():
        return None
    swapped = bool(is_swapped(m, n, scoring))
    dtype = bounds.score_dtype(m, n, scoring, mode, margin=margin_of(m, n, scoring))
    codes = [query.codes[None], target.codes[None]][:: -1 if swapped else 1]
    lengths = [np.array([m]), np.array([n])][:: -1 if swapped else 1]
    problem = problem_of(scoring, dtype, free, mode == "local", swapped)
    places = filled_codes(codes[0], codes[1], scoring.by_position, swapped)
    filled = rows.fill(places[0], lengths[0], places[1], lengths[1], problem, dtype,
                       True)  # fmt: skip
    wildcard = scoring.alphabet.wildcard_code
    letters = codes if scoring.tracks is None else [first_track(x) for x in codes]
    walked = rows.walk(filled, letters[0], letters[1], wildcard)
    steps = walked.steps[::-1, 0]
    steps = steps[steps != rows.DONE]
    rows_span, columns_span = (
        (int(start[0]), int(end[0]))
        for start, end in ((walked.i, filled.i), (walked.j, filled.j))
    )
    if swapped:
        rows_span, columns_span = columns_span, rows_span
        steps = rows.OTHER[steps]
    runs, _ = operations.run_lengths(steps, np.array([len(steps)]))
    score = int(filled.score[0])
    return Alignment(
        query.text(0),
        target.text(0),
        score if scoring.scale == 1 else score / scoring.scale,
        *rows_span,
        *columns_span,
        runs,
        scoring,
        mode,
        free,
        query.names[0],
        target.names[0],
        "rows",
        states=(query.states(0), target.states(0)) if scoring.tracks else None,
    )


def margin_of(m: int, n: int, scoring: Scoring) -> int:
    """The most that rows add to a score: their extend, to the end of the columns."""
    return (m + n + rows.STRIPES + 2) * scoring.extend


def problem_of(
    scoring: Scoring,
    dtype: str,
    free: frozenset,
    local: bool,
    swapped: bool,
    identity: bool = False,
) -> rows.RowsProblem:
    """The problem of a fill: scores, gaps and free ends.

    swapped : rows of the fill are the target
    """
    scores, opening, extending = bounds.scaled(scoring, dtype, identity)
    scores = np.asarray(scores, np.int64)
    if swapped:
        ends = (end.split("_") for end in free)
        scores = np.ascontiguousarray(scores.swapaxes(-1, -2))
        free = frozenset(f"{OTHER_SIDE[side]}_{which}" for side, which in ends)
    costs = scoring.gap_costs
    extending = 0 if costs else extending  # nothing is added to values
    return rows.RowsProblem(scores, opening, extending, free, local, swapped, costs)


def has_long_target(m: Any, n: Any):
    """Whether the positions of a profile are the rows of a fill, since n letters as
    rows would be many and narrow; otherwise they are the columns, of which the scores
    are looked up once for all rows."""
    return n > np.maximum(LONG_RATIO * m, LONG_TARGET)


def is_swapped(m: Any, n: Any, scoring: Scoring):
    """Whether the rows of a fill are the target; always with costs by position."""
    if scoring.gap_costs is not None:
        return np.ones_like(m, bool)
    return ~has_long_target(m, n) if scoring.by_position else m > n


def filled_codes(
    of_rows: np.ndarray, of_columns: np.ndarray, by_position: bool, swapped: bool
) -> tuple[np.ndarray | None, np.ndarray]:
    """The codes of both sides as ``rows.fill`` takes them: of a profile its
    positions."""
    if not by_position:
        return of_rows, of_columns
    if not swapped:
        return None, of_columns
    return of_rows, np.broadcast_to(np.arange(of_columns.shape[1]), of_columns.shape)


@dataclass(frozen=True, eq=False)
class RowsWindow:
    """Pairs of a window, most rows first; ``swapped``: rows are the target."""

    query: np.ndarray
    target: np.ndarray
    m: np.ndarray  # rows of each, falling
    n: np.ndarray  # columns
    swapped: bool
    dtype: str
    forbidden: np.ndarray | None = None  # cells, as ``rows.fill`` takes them

    @property
    def filled_cells(self) -> int:
        """The cells that are filled: every row to the end of the longest."""
        return int(self.m.sum()) * int(self.n.max(initial=0))


class RowsResult(NamedTuple):
    """One row of arrays, (1, P), as ``pairs.result.collect`` takes them."""

    score: np.ndarray
    end_i: np.ndarray | None = None
    end_j: np.ndarray | None = None
    walked: rows.RowsPaths | None = None


def partition(
    task: Task, budget: int, pairs: Sequence[tuple[int, int]] | None = None
) -> list[RowsWindow] | None:
    """All pairs of a task, or some (i, j), in windows of at most ``budget`` bytes each;
    None where a pair needs more."""
    query, target = task.job.index() if pairs is None else np.array(pairs).T
    m, n = task.queries.lengths[query], task.targets.lengths[target]
    windows = []
    identity = task.output == "identity"
    dtype_of = bounds.identity_dtype if identity else bounds.score_dtype
    by_target = is_swapped(m, n, task.scoring)
    for swapped in (False, True):
        remaining = np.flatnonzero(by_target == swapped)
        short, long = (n, m) if swapped else (m, n)
        remaining = remaining[np.argsort(-long[remaining], kind="stable")]
        while len(remaining):
            # As many of the next pairs as fit
            max_pairs = max(ROW_CELLS // (int(long[remaining[0]]) + 1), 1)
            count = min(len(remaining), max_pairs, task.window or len(remaining))
            while count:
                subset = remaining[:count]
                subset = subset[np.argsort(-short[subset], kind="stable")]
                sides = short[subset], long[subset]
                largest = int(sides[0][0]), int(sides[1].max())
                margin = margin_of(*largest, task.scoring)
                dtype = dtype_of(*largest, task.scoring, task.mode, margin=margin)
                window = RowsWindow(
                    query[subset], target[subset], *sides, swapped, dtype
                )
                if window_bytes(task, window) <= budget:
                    break
                count //= 2
            else:
                return None
            windows.append(window)
            remaining = remaining[count:]
    return windows


def window_bytes(task: Task, window: RowsWindow) -> int:
    """Bytes of a window: profile, rows, directions, and the walk."""
    sides = int(window.m.max(initial=0)), int(window.n.max(initial=0))
    return len(window.m) * _pair_bytes(task, *sides, np.dtype(window.dtype).itemsize)


def _pair_bytes(task: Task, m: Any, n: Any, score_bytes: int):
    m, n = m + 1, n + 1
    alphabet = task.scoring.alphabet
    letters = alphabet.size + (alphabet.states.size + 8 if alphabet.states else 0)
    size = n * (score_bytes * (letters + 14) + 16) + 16 * m
    return size + m * n + 48 * (m + n) if task.paths else size


def pieces_of(task: Task, windows: list[RowsWindow]) -> list[Piece]:
    """The pieces of some windows."""
    return [Piece(task, x, x.filled_cells, compute) for x in windows]


def compute(run: Run, worker: Worker, piece: Piece) -> None:
    """Compute a window, and put its rows into the result of the run."""
    rows_of_window = rows_of(piece.task, piece.content)
    run.output.put(rows_of_window)
    worker.report_progress(rows_of_window.cells)


def rows_of(task: Task, window: RowsWindow) -> Rows:
    """The rows of the result of a window."""
    queries = stacked(task.queries, window.query)
    targets = stacked(task.targets, window.target)
    problem = problem_of(
        task.scoring,
        window.dtype,
        task.free,
        task.local,
        window.swapped,
        task.output == "identity",
    )
    sides = (targets, queries) if window.swapped else (queries, targets)
    codes = filled_codes(*sides, task.scoring.by_position, window.swapped)
    filled = rows.fill(codes[0], window.m, codes[1], window.n, problem, window.dtype,
                       task.paths, window.forbidden)  # fmt: skip
    # (1, P) arrays, in the caller's orientation
    result = RowsResult(filled.score.astype(window.dtype)[None])
    if task.paths:
        wildcard = task.scoring.alphabet.wildcard_code
        letters = [first_track(x) for x in sides]
        walked = rows.walk(filled, letters[0], letters[1], wildcard)
        end, start, steps = (filled.i, filled.j), (walked.i, walked.j), None
        if task.output == "alignment":
            steps = rows.OTHER[walked.steps] if window.swapped else walked.steps
        if window.swapped:
            end, start = end[::-1], start[::-1]
        walked = walked._replace(i=start[0], j=start[1], steps=steps)
        walked = walked._make(None if x is None else x[None] for x in walked)
        end_i, end_j = (x.astype(np.int32)[None] for x in end)
        result = RowsResult(result.score, end_i, end_j, walked)
    pair = window.query[None], window.target[None]
    whole = np.ones(pair[0].shape, bool)
    return collect(task, result, WindowPairs(*pair, whole, ~whole))


def plan_by_rows(task: Task) -> Plan | None:
    """Plan a task by rows; None if it needs a compiled program.

    Raises UsageError: rows are named, and devices or a mesh too; MemoryPlanError: rows
    are named, and the result or a pair does not fit the budget.
    """
    named = task.implementation == "rows"
    named |= rows_alone(task)
    if named and (task.devices or task.mesh is not None):
        raise UsageError("rows computes with NumPy: leave out devices and mesh")
    if not seems_small(task):
        return None  # whatever its windows are
    budget = task.window_budget
    windows = partition(task, budget) if budget > 0 else None
    if windows is None:
        if not named:
            return None
        # Bytes of the window that holds any pair of the task, and no other one
        query, target = task.job.index()
        m, n = task.queries.lengths[query], task.targets.lengths[target]
        each = _pair_bytes(task, np.minimum(m, n), np.maximum(m, n), 8)
        pair = int(each.max(initial=0))
        if pair > MAX_WINDOW_BYTES:
            raise MemoryPlanError(
                f"rows cannot compute a pair that needs {show_bytes(pair)}, more than "
                f"{show_bytes(MAX_WINDOW_BYTES)}: leave out the implementation"
            )
        needed = task.result_bytes + pair * task.threads
        refuse_over(needed, task.budget, f"{task.job.pairs:,} pairs")
        return None
    cells, row_count = _sizes_of(windows)
    share = task.job.total / max(task.job.cells, 1)  # of a part: the whole job's
    if not named and not is_short(cells * share, row_count * share, task.paths):
        return None
    seconds = _seconds(cells, row_count, task.paths)
    why = f"a small job: about {seconds:.2g} s in NumPy, without a compiler"
    return _plan(task, windows, "asked for" if named else why)


def _plan(task: Task, windows: list[RowsWindow], why: str) -> Plan:
    """The plan of some windows."""
    needed = [window_bytes(task, window) for window in windows]
    figures = describe(task, len(windows), 0, needed, {x.dtype for x in windows})
    figures |= {"threads": 1, "devices": ["cpu"]}
    figures |= {"device_cells": [_sizes_of(windows)[0]], "budget_bytes": task.budget}
    figures |= {"implementation": "rows", "reason": why}
    return Plan(task, tuple(pieces_of(task, windows)), figures)


def plan_forbidding(task: Task, cells: np.ndarray) -> Plan:
    """Plan local alignments that pair no residues of some cells.

    task : of kind zip and mode local, with ``implementation="rows"``
    cells : int64 (3, cells). Pair, residue of the query and residue of the target.

    Raises MemoryPlanError: the path of a pair does not fit the budget
    """
    windows = partition(task, task.window_budget)
    if windows is None:
        m, n = task.queries.lengths, task.targets.lengths
        pair = int(_pair_bytes(task, np.minimum(m, n), np.maximum(m, n), 8).max())
        raise MemoryPlanError(
            f"a further alignment of a pair needs {show_bytes(pair)}, more than "
            f"{show_bytes(task.window_budget)}: leave out hsps"
        )
    # The window of each pair, and its place there
    place = np.zeros((2, len(task.queries)), np.int64)
    for k, window in enumerate(windows):
        place[0, window.query] = k
        place[1, window.query] = np.arange(len(window.query))
    of_window, at = place[:, cells[0]]
    swapped = np.array([window.swapped for window in windows])[of_window]
    row, column = np.where(swapped, cells[2:0:-1], cells[1:]) + 1
    order = np.lexsort((row, of_window))
    forbidden = np.stack([row, at, column])[:, order]
    bounds = np.searchsorted(of_window[order], np.arange(1, len(windows)))
    parts = np.split(forbidden, bounds, axis=1)
    windows = [replace(x, forbidden=y) for x, y in zip(windows, parts, strict=True)]
    return _plan(task, windows, "residues that must not be paired")


def seems_small(task: Task) -> bool:
    """Whether a task asks for rows, or is small enough for them by its cells."""
    if task.implementation == "rows" or rows_alone(task):
        return True
    return _may(task) and is_short(task.job.total, 0, task.paths)


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
    if task.scoring.gap_costs is not None:
        small[:] = True
    if _may(task):
        small |= m * n <= LONE_CELLS
        if is_short(float((m * n)[~small].sum()), float(m[~small].sum()), task.paths):
            small[:] = True
    small_pairs = [
        pair for pair, is_small in zip(pairs, small, strict=True) if is_small
    ]
    windows = partition(task, task.window_budget, small_pairs) if small_pairs else []
    if not windows:
        return [], pairs
    large_pairs = [
        pair for pair, is_small in zip(pairs, small, strict=True) if not is_small
    ]
    return pieces_of(task, windows), large_pairs


def seconds_of(windows: list[RowsWindow], paths: bool) -> float:
    """Estimate the seconds of some windows."""
    return _seconds(*_sizes_of(windows), paths)


def _sizes_of(windows: list[RowsWindow]) -> tuple[int, int]:
    """Count the cells and rows of some windows."""
    cells = sum(window.filled_cells for window in windows)
    return cells, sum(len(window.m) and int(window.m[0]) for window in windows)


def _seconds(cells: float, rows: float, paths: bool) -> float:
    """Seconds of windows of so many cells and rows, padding included, in NumPy."""
    cost = CELL_SECONDS if paths else CELL_SECONDS * 2 / 3
    steps = 2 * rows * STEP_SECONDS if paths else 0.0
    return cells * cost + rows * ROW_SECONDS + steps


def is_short(cells: float, rows: float = 0, paths: bool = False) -> bool:
    """Whether the estimated time of so many cells and rows is short enough for
    NumPy."""
    gpu = may_have_gpu()
    ratio = PATHS_RATIO if paths and not gpu else 1
    return _seconds(cells, rows, paths) <= ratio * MAX_SECONDS[gpu]


def may_have_gpu() -> bool:
    """Whether the machine has an NVIDIA driver: known without JAX."""
    return os.path.exists(NVIDIA)


def rows_alone(task: Task) -> bool:
    """Whether nothing else has the costs by position of a task."""
    zipped = task.paths or task.job.kind == "zip"
    of_rows = task.scoring.gap_costs is not None and zipped
    return of_rows and task.implementation is None and task.mesh is None


def _may(task: Task) -> bool:
    """Whether a task leaves its implementation open and looks small."""
    small = task.job.total <= MAX_CELLS and task.job.pairs <= MAX_PAIRS
    return small and _is_open(task)


def _is_open(task: Task) -> bool:
    """Whether a task leaves its implementation open: no device, no mesh, no search."""
    if task.implementation or task.devices or task.mesh is not None:
        return False
    return task.top is None and not _switched_off()


def _switched_off() -> bool:
    return os.environ.get(SWITCH, "").lower() in ("off", "0")
