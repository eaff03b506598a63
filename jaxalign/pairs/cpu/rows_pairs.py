"""Pairs by rows, computed in NumPy: one alone, or a window of some pairs of a task.

One pair goes from two sequences to its alignment with nothing in between. In a window
any pairs may be together, since nothing is compiled for them. Those of like longer
sides are: the longer side of a pair is its columns, and a row is as wide as the longest
of them. A pair leaves the rows when its shorter side ends.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from jaxalign.model import bounds, operations
from jaxalign.model.alignment import Alignment
from jaxalign.model.alphabet import Sequences
from jaxalign.model.scoring import Scoring
from jaxalign.model.selection import stacked
from jaxalign.pairs.dp import rows, rows_walk
from jaxalign.pairs.plan import Piece, Task, describe
from jaxalign.pairs.result import Rows, collect
from jaxalign.pairs.run_state import Run, Worker
from jaxalign.pairs.windows import WindowPairs

ROW_CELLS = 2**16  # of all pairs of a window: half the rows are half the calls of NumPy
OTHER_SIDE = {"query": "target", "target": "query"}
DTYPES = ("int16", "int32", "int64")


def alignment(
    query: Sequences, target: Sequences, scoring: Scoring, mode: str, free: frozenset
) -> Alignment:
    """The alignment of the first sequences of two sets.

    free : the free ends
    """
    m, n = len(query.codes), len(target.codes)
    swapped = m > n or scoring.by_position  # the longer side has the columns
    dtype = score_dtype(m, n, scoring, mode)
    codes = [query.codes[None], target.codes[None]][:: -1 if swapped else 1]
    lengths = [np.array([m]), np.array([n])][:: -1 if swapped else 1]
    columns = codes[1]
    if scoring.by_position:
        columns = np.broadcast_to(np.arange(m), columns.shape)
    problem = problem_of(scoring, dtype, free, mode == "local", swapped)
    filled = rows.fill(codes[0], lengths[0], columns, lengths[1], problem, dtype, True)
    wildcard = scoring.alphabet.wildcard_code
    walked = rows_walk.walk(filled, codes[0], codes[1], wildcard)
    steps = walked.steps[::-1, 0]
    steps = steps[steps != rows_walk.DONE]
    rows_span, columns_span = (
        (int(start[0]), int(end[0]))
        for start, end in ((walked.i, filled.i), (walked.j, filled.j))
    )
    if swapped:
        rows_span, columns_span = columns_span, rows_span
        steps = rows_walk.OTHER[steps]
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
    )


def score_dtype(m: int, n: int, scoring: Scoring, mode: str) -> str:
    """The narrowest dtype that holds all scores; rows are held with their extend."""
    known = _range(m, n, scoring, mode)
    return next((d for d in DTYPES if bounds.fits(known, d)), DTYPES[-1])


def identities_fit(m: int, n: int, scoring: Scoring, mode: str) -> bool:
    """Whether int32 holds all scores with identities in their low digits."""
    factor = bounds.IDENTITY_BASE["int32"]
    return bounds.fits(_range(m, n, scoring, mode), "int32", factor)


def _range(m: int, n: int, scoring: Scoring, mode: str) -> bounds.Range:
    known = bounds.score_range(m, n, scoring, mode)
    columns = n + rows.STRIPES  # those that there is room for
    return replace(known, high=known.high + (m + columns + 2) * scoring.extend)


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
        scores = np.ascontiguousarray(scores.T)
        free = frozenset(f"{OTHER_SIDE[side]}_{which}" for side, which in ends)
    return rows.RowsProblem(scores, opening, extending, free, local, swapped)


@dataclass(frozen=True, eq=False)
class RowsWindow:
    """Some pairs, those of the most rows first; ``swapped``: rows are the target."""

    query: np.ndarray
    target: np.ndarray
    m: np.ndarray  # rows of each, falling
    n: np.ndarray  # columns
    swapped: bool
    dtype: str

    @property
    def filled_cells(self) -> int:
        """The cells that are filled: every row to the end of the longest."""
        return int(self.m.sum()) * int(self.n.max(initial=0))


class RowsResult(NamedTuple):
    """One row of arrays, (1, P), as ``pairs.result.collect`` takes them."""

    score: np.ndarray
    end_i: np.ndarray | None = None
    end_j: np.ndarray | None = None
    walked: rows_walk.RowsPaths | None = None


def partition(
    task: Task, budget: int, pairs: Sequence[tuple[int, int]] | None = None
) -> list[RowsWindow] | None:
    """All pairs of a task, or some (i, j), in windows of at most ``budget`` bytes each;
    None where a pair needs more."""
    query, target = task.job.index() if pairs is None else np.array(pairs).T
    m, n = task.queries.lengths[query], task.targets.lengths[target]
    windows = []
    by_position = task.scoring.by_position  # which are columns: they have a profile
    for swapped in (False, True):
        some = np.flatnonzero(((m > n) | by_position) == swapped)
        columns = (m if swapped else n)[some]
        some = some[np.argsort(-columns, kind="stable")]
        while len(some):
            window = _next(task, budget, query, target, some, swapped)
            if window is None:
                return None
            windows.append(window)
            some = some[len(window.query) :]
    return windows


def _next(
    task: Task,
    budget: int,
    query: np.ndarray,
    target: np.ndarray,
    some: np.ndarray,
    swapped: bool,
) -> RowsWindow | None:
    """The window of the first of some pairs, as many of them as fit."""
    m, n = task.queries.lengths, task.targets.lengths
    widest = int(m[query[some[0]]] if swapped else n[target[some[0]]])
    count = min(len(some), max(ROW_CELLS // (widest + 1), 1), task.window or len(some))
    while count:
        pairs = some[:count]
        sides = m[query[pairs]], n[target[pairs]]
        short, long = sides[::-1] if swapped else sides
        order = np.argsort(-short, kind="stable")
        pairs, short, long = pairs[order], short[order], long[order]
        dtype = _dtype(task, int(short[0]), int(long.max()))
        window = RowsWindow(query[pairs], target[pairs], short, long, swapped, dtype)
        if window_bytes(task, window) <= budget:
            return window
        count //= 2
    return None


def window_bytes(task: Task, window: RowsWindow) -> int:
    """Bytes of a window: profile, rows, directions, and the walk."""
    sides = int(window.m.max(initial=0)), int(window.n.max(initial=0))
    return len(window.m) * _pair_bytes(task, *sides, np.dtype(window.dtype).itemsize)


def _pair_bytes(task: Task, m: Any, n: Any, score_bytes: int):
    m, n = m + 1, n + 1
    size = n * (score_bytes * (len(task.scoring.scores) + 14) + 16) + 16 * m
    return size + m * n + 48 * (m + n) if task.paths else size


def largest_pair_bytes(task: Task) -> int:
    """Bytes of the window that holds any pair of a task, and no other one."""
    query, target = task.job.index()
    m, n = task.queries.lengths[query], task.targets.lengths[target]
    each = _pair_bytes(task, np.minimum(m, n), np.maximum(m, n), 8)
    return int(each.max(initial=0))


def _dtype(task: Task, m: int, n: int) -> str:
    """The narrowest dtype that holds all scores, or identities beside them."""
    narrow = score_dtype(m, n, task.scoring, task.mode)
    if task.output != "identity":
        return narrow
    wide = identities_fit(m, n, task.scoring, task.mode)
    return "int32" if task.dtype(m, n) == "int32" and wide else "int64"


def pieces_of(task: Task, windows: list[RowsWindow]) -> list[Piece]:
    """The pieces of some windows."""
    return [Piece(task, x, x.filled_cells, compute, scores_of_window) for x in windows]


def figures_of(task: Task, windows: list[RowsWindow]) -> dict:
    """The figures of a plan of some windows."""
    needed = [window_bytes(task, window) for window in windows]
    return describe(task, len(windows), 0, needed, {x.dtype for x in windows})


def compute(run: Run, worker: Worker, piece: Piece) -> None:
    """Compute a window, and put its rows into the result of the run."""
    rows_of_window = rows_of(piece.task, piece.content)
    run.output.put(rows_of_window)
    worker.tell(rows_of_window.cells)


def scores_of_window(_run: Run, _worker: Worker, _piece: Piece) -> Iterator:
    """Scores that stay on a device: there is none (``database.small_scan``)."""
    raise NotImplementedError("a search by rows has its own scan")


def rows_of(task: Task, window: RowsWindow) -> Rows:
    """The rows of the result of a window."""
    queries, targets = (
        stacked(side, index)
        for side, index in (
            (task.queries, window.query),
            (task.targets, window.target),
        )
    )
    problem = problem_of(
        task.scoring,
        window.dtype,
        task.free,
        task.local,
        window.swapped,
        task.output == "identity",
    )
    sides = (targets, queries) if window.swapped else (queries, targets)
    columns = sides[1]
    if task.scoring.by_position:
        columns = np.broadcast_to(np.arange(columns.shape[1]), columns.shape)
    filled = rows.fill(sides[0], window.m, columns, window.n, problem, window.dtype,
                       task.paths)  # fmt: skip
    walked = None
    if task.paths:
        wildcard = task.scoring.alphabet.wildcard_code
        walked = rows_walk.walk(filled, *sides, wildcard)
    result = _result(task, window, filled, walked)
    pair = window.query[None], window.target[None]
    whole = np.ones(pair[0].shape, bool)
    return collect(task, result, WindowPairs(*pair, whole, ~whole))


def _result(
    task: Task,
    window: RowsWindow,
    filled: rows.RowsFilled,
    walked: rows_walk.RowsPaths | None,
) -> RowsResult:
    """Fill and walk as (1, P) arrays, in the caller's orientation."""
    score = filled.score.astype(window.dtype)[None]
    if walked is None:
        return RowsResult(score)
    end = filled.i, filled.j
    start, steps = (walked.i, walked.j), None
    if window.swapped:
        end, start = end[::-1], start[::-1]
    if task.output == "alignment":
        steps = rows_walk.OTHER[walked.steps] if window.swapped else walked.steps
    walked = walked._replace(i=start[0], j=start[1], steps=steps)
    walked = walked._make(None if x is None else x[None] for x in walked)
    i, j = (x.astype(np.int32)[None] for x in end)
    return RowsResult(score, i, j, walked)
