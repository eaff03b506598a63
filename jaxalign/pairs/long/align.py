"""Score, end cell and path of one long pair, by a fill of blocks.

The table of a very large pair is filled in *slabs*, some columns of all rows each. What
is known after a slab, its lines, is all that the next one and the path need, so a run
that was interrupted goes on from there.

Two devices may compute the score of a pair: each fills a half of its table. The columns
up to the middle one are filled from the start, and those behind it from the end: that
is a fill from the start of both sequences turned round. The best path lies in one half,
or crosses the middle column (docs/recurrences.md has the proof). Columns are divided,
not rows, because every fill keeps H and F of its last column.
"""

import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxalign.errors import JaxalignError
from jaxalign.model import bounds
from jaxalign.pairs.cpu import execute
from jaxalign.pairs.cpu.long_pair import PairResult
from jaxalign.pairs.dp import walk
from jaxalign.pairs.long import fill, pruning
from jaxalign.pairs.long.blocks import (
    MINUS_INFINITY,
    NO_BOUND,
    Fill,
    Line,
    LineGrid,
    LongPair,
    Spot,
    TableBlock,
    block_of,
    whole,
)
from jaxalign.pairs.long.path import counts_of, path
from jaxalign.pairs.plan import Piece, Run, SavedState, Task, Worker
from jaxalign.pairs.result import of_pair

Progress = Callable[[int], object] | None


class Slabs(NamedTuple):
    """How a table is divided: by its cells alone."""

    cells: int  # of a slab at least
    limit: int  # slabs
    saved: SavedState | None = None  # of the pair, or of a half

    def count(self, cells: int) -> int:
        return int(min(max(1, -(-cells // self.cells)), self.limit))


WHOLE = Slabs(2**62, 1)


class _End(NamedTuple):
    score: int
    i: int
    j: int


def align(
    pair: LongPair,
    fill: Fill,
    paths: bool,
    pruned: bool = True,
    progress: Progress = None,
    slabs: Slabs = WHOLE,
    threads: int = 1,
) -> PairResult:
    """Align one pair.

    fill : ``fill_by_tiles``, or ``fill_on_gpu``, with its options bound
    paths : whether the path is wanted, too
    pruned : whether blocks that no best path enters are left out
    progress : called with cells of the whole table as they are filled
    slabs : in which the table is filled, by default as one
    threads : of the path; those of the fill are among its options
    """
    arrays = {} if slabs.saved is None else slabs.saved.all()
    if "numbers" in arrays:  # aligned before a run was interrupted
        return PairResult(*arrays["numbers"].tolist(), steps=arrays.get("steps"))
    bound = pruning.first_bound(pair) if pruned else NO_BOUND
    grids = fill_slabs(pair, pair.n, fill, bound, paths, progress, slabs)
    end = _end(pair, grids)
    if end.score < bound:
        raise JaxalignError(
            f"the best score is {end.score}, but a path scores {bound}: this is a bug"
        )
    result = PairResult(end.score, end.i, end.j)
    if paths and pair.local and end.score <= 0:
        result = PairResult(0, 0, 0, steps=np.zeros(0, np.uint8))
    elif paths:
        end = _exact_end(pair, grids, fill, end)
        start, steps = path(pair, grids, (end.i, end.j), end.score, fill, threads)
        counts = counts_of(pair, start, steps)
        result = PairResult(*end, *start, **counts, steps=steps)
    if slabs.saved is not None and len(grids) > 1:
        numbers, steps = np.array(result[:-1], np.int64), result.steps
        end_arrays = {"numbers": numbers} | ({} if steps is None else {"steps": steps})
        slabs.saved.put(end_arrays, without=[*slabs.saved.all()])
    return result


def fill_slabs(
    pair: LongPair,
    columns: int,
    fill: Fill,
    bound: int,
    keep: bool,
    progress: Progress,
    slabs: Slabs,
) -> list[LineGrid]:
    """The grids of the slabs of the first columns of a table, from the left.

    bound : the score of a path, so that no path of the best score is left out
    keep : whether lines inside of the slabs are kept, and not the last column alone
    """
    count, table = slabs.count(pair.m * columns), whole(pair)
    saved = slabs.saved or SavedState()
    # The slabs of a run that was interrupted
    grids: list[LineGrid] = []
    left = whole(pair).left
    while arrays := saved.part(f"{len(grids)}").all():
        grid = _grid_of(pair, arrays, left)
        left = grid.columns.get(grid.block.j + grid.block.columns, left)
        grids.append(grid)
    if count == 1 and not grids:
        top = table.top.part(0, columns)
        block = TableBlock(0, 0, pair.m, columns, top, table.left)
        return [fill(pair, block, bound, keep=keep, progress=progress)]
    j = 0 if not grids else grids[-1].block.j + grids[-1].block.columns
    if progress is not None and j:
        progress(pair.m * j)
    while j < columns:
        size = min(-(-columns // count), columns - j)
        left = grids[-1].columns[j] if grids else table.left
        block = TableBlock(0, j, pair.m, size, table.top.part(j, j + size), left)
        grid = fill(pair, block, bound, keep=keep, progress=progress, share=count)
        # A slab's lines, on the host, and whatever else is known of it
        inner, number = grid.block, len(grids)
        arrays = {"place": np.array([inner.j, inner.columns, grid.cells])}
        spots = [(spot.score, *spot.rows, *spot.columns) for spot in grid.spots]
        arrays["spots"] = np.array(spots, np.int64).reshape(-1, 5)
        for names, lines_of, length in (
            (("rows", "row_lines"), grid.rows, inner.columns),
            (COLUMN_ARRAYS, grid.columns, inner.rows),
        ):
            values = [np.stack(line.part(0, length)) for line in lines_of.values()]
            stacked = np.array([*lines_of]), np.stack(values)
            arrays |= zip(names, stacked, strict=True)
        if grids and not keep:
            grids[-1] = replace(grids[-1], columns={})
        before = () if keep else (f"{number - 1}.{name}" for name in COLUMN_ARRAYS)
        slab_arrays = {f"{number}.{name}": array for name, array in arrays.items()}
        grids.append(_grid_of(pair, arrays, left))
        saved.put(slab_arrays, without=before)
        j += size
    return grids


COLUMN_ARRAYS = "columns", "column_lines"


def _grid_of(pair: LongPair, arrays: dict[str, np.ndarray], left: Line) -> LineGrid:
    """The grid of a slab; without lines of columns where these are not there."""
    j, columns, cells = arrays["place"].tolist()
    top = whole(pair).top.part(j, j + columns)
    block = TableBlock(0, j, pair.m, columns, top, left)
    rows, across = (
        {number: Line(*line) for number, line in zip(numbers, lines, strict=True)}
        for numbers, lines in (
            (arrays["rows"].tolist(), arrays["row_lines"]),
            (
                arrays.get("columns", np.zeros(0)).tolist(),
                arrays.get("column_lines", ()),
            ),
        )
    )
    spots = (
        Spot(score, (a, b), (c, d)) for score, a, b, c, d in arrays["spots"].tolist()
    )
    return LineGrid(block, rows, across, tuple(spots), cells)


def _end(pair: LongPair, grids: list[LineGrid]) -> _End:
    """The end cell; in local mode a cell near it."""
    if pair.local:
        spots = (spot for grid in grids for spot in grid.spots)
        spot = max(spots, key=lambda spot: spot.score, default=None)
        if spot is None or spot.score <= 0:
            return _End(0, 0, 0)
        return _End(spot.score, spot.rows[0], spot.columns[0])
    rows = [grid.rows[pair.m].h for grid in grids]
    row = np.concatenate([rows[0], *(h[1:] for h in rows[1:])])
    column = grids[-1].columns[pair.n].h
    free = {end: end in pair.free for end in ("query_end", "target_end")}
    return _End(*walk.host_end(row, column, free))


def _exact_end(pair: LongPair, grids: list[LineGrid], fill: Fill, end: _End) -> _End:
    """In local mode, where a grid says in which blocks a score is, the cell: the first
    row wins, then the first column."""
    spots = [(grid, x) for grid in grids for x in grid.spots if x.score == end.score]
    if not pair.local or not spots or end.score <= 0:
        return end
    # The first row with the score is not below the last one of any spot.
    last = min(spot.rows[1] for _, spot in spots)
    cells: list[_End] = []
    for grid, spot in spots:
        if spot.rows[0] == spot.rows[1] and spot.columns[0] == spot.columns[1]:
            cells.append(_End(spot.score, spot.rows[0], spot.columns[0]))
        elif spot.rows[0] <= last:
            # Fill the blocks of the spot again: some have a cell with its score.
            i = min(spot.rows[1], grid.block.i + grid.block.rows)
            j = min(spot.columns[1], grid.block.j + grid.block.columns)
            while j > max(spot.columns[0] - 1, grid.block.j):
                block = block_of(grid, i, j)
                inner = fill(pair, block)
                inner_end = _end(pair, [inner])
                if inner_end.score == spot.score:
                    cells.append(_exact_end(pair, [inner], fill, inner_end))
                j = block.j
    return min(cells, key=lambda end: (end.i, end.j))


TURNED = {
    "query_start": "query_end",
    "query_end": "query_start",
    "target_start": "target_end",
    "target_end": "target_start",
}


def turned(pair: LongPair) -> LongPair:
    """Both sequences from the end: of each alignment there is one with its score."""
    free = pair.problem.free
    return replace(
        pair,
        query=np.ascontiguousarray(pair.query[::-1]),
        target=np.ascontiguousarray(pair.target[::-1]),
        free=frozenset(TURNED[end] for end in pair.free),
        problem=pair.problem._replace(free={end: free[TURNED[end]] for end in free}),
    )


class Halves:
    """Both halves of the table of a pair, and their state.

    pair : of two columns or more
    pruned : whether blocks that no best path enters are left out
    slabs : in which each half is filled, by default as one
    """

    def __init__(self, pair: LongPair, pruned: bool = True, slabs: Slabs = WHOLE):
        self.pair, middle, self._slabs = pair, pair.n // 2, slabs
        self._sides = (pair, middle), (turned(pair), pair.n - middle)
        self._lock = threading.Lock()
        self._bound = None if pruned else NO_BOUND
        self._grids: dict[int, list[LineGrid]] = {}

    def fill(
        self, number: int, fill: Fill, progress: Callable[[int], object] | None = None
    ) -> int | None:
        """Fill a half, 0 or 1; either has a thread of its own.

        Returns int or None, the score of the pair, where the other half is filled
        already.
        """
        (pair, columns), slabs = self._sides[number], self._slabs
        if slabs.saved is not None:
            slabs = slabs._replace(saved=slabs.saved.part(f"half{number}"))
        with self._lock:  # the score of some path, found by whoever needs it first
            if self._bound is None:
                self._bound = pruning.first_bound(self.pair)
            bound = self._bound
        grids = fill_slabs(pair, columns, fill, bound, False, progress, slabs)
        with self._lock:
            self._grids[number] = grids
            if len(self._grids) < 2:
                return None
        return self._score()

    def _score(self) -> int:
        pairs = [(pair, self._grids[k]) for k, (pair, _) in enumerate(self._sides)]
        bests: list[int] = []
        for pair, grids in pairs:  # paths that end in a half, before its last column
            if pair.local:
                spots = (spot.score for grid in grids for spot in grid.spots)
                bests.append(max(spots, default=0))
            elif "target_end" in pair.free:
                bests.append(max(int(grid.rows[pair.m].h.max()) for grid in grids))
        # Paths through the middle column; a gap that goes on has paid two openings.
        before, after = (_middle(*sides) for sides in pairs)
        gaps = _sums(before.gap, after.gap[::-1]) + (self.pair.open - self.pair.extend)
        bests.append(int(np.maximum(_sums(before.h, after.h[::-1]), gaps).max()))
        best = max(bests)
        if self._bound is not None and best < self._bound:
            raise JaxalignError(
                f"the best score is {best}, but a path scores {self._bound}: this is a "
                "bug"
            )
        return best


def _middle(pair: LongPair, grids: list[LineGrid]) -> Line:
    """H and F of the last column of a half; a border that is a gap is one, too."""
    grid = grids[-1]
    columns = grid.block.j + grid.block.columns
    line = grid.columns[columns].part(0, pair.m)
    gap = line.gap.copy()
    if columns and not (pair.local or "target_start" in pair.free):
        gap[0] = line.h[0]
    return Line(line.h, gap)


def _sums(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """int64; minus infinity where either is."""
    sums = before.astype(np.int64) + after
    none = np.minimum(before, after) <= MINUS_INFINITY // 2
    return np.where(none, MINUS_INFINITY, sums)


LONG_CELLS = 2**26  # of a pair that is worth tiles and threads of its own
# On a GPU, where many pairs are one launch, a job has few long ones.
GPU_LONG_CELLS, FEW_PAIRS = 2**28, 16
HALVED_CELLS = 2**36  # of a pair whose score two devices compute
# Of a slab at least, after which a run can go on: a minute or more of a CPU, and some
# ten seconds of a GPU.
SLAB_CELLS, GPU_SLAB_CELLS = 2**36, 2**45
SCORE_BITS = 2**29  # above it lies no score that int32 holds beside minus infinity
LINE_BYTES = 8  # H and a gap
TILE_BYTES = 2**26  # of the tiles of all threads, and the path


def are_long(task: Task, pairs: list[tuple[int, int]], cells: int | None = None):
    """Which of some pairs are aligned block by block, bool (pairs,).

    cells : the least of such a pair, by default ``LONG_CELLS``
    """
    cells = LONG_CELLS if cells is None else cells
    if task.output == "identity" or task.scoring.by_position or not pairs:
        return np.zeros(len(pairs), bool)
    i, j = np.array(pairs).T
    m, n = task.queries.lengths[i].astype(np.int64), task.targets.lengths[j]
    # The most that a step changes a score by
    largest = int(np.abs(task.scoring.scores).max(initial=0))
    largest = max(largest, task.scoring.open, task.scoring.extend)
    return (m * n >= cells) & (largest * (m + n + 4096) < SCORE_BITS)


def on_gpu(task: Task, kernels: Any) -> list[tuple[int, int]]:
    """Select all pairs of a task if they are few and each deserves a whole GPU; else
    none."""
    few_pairs = task.job.pairs <= FEW_PAIRS and task.top is None
    if not few_pairs or not task.job.pairs:
        return []
    i, j = (x.tolist() for x in task.job.pair(np.arange(task.job.pairs)))
    pairs = list(zip(i, j, strict=True))
    large = are_long(task, pairs, GPU_LONG_CELLS).all()
    return pairs if large and fit(task, pairs, kernels) else []


def fit(task: Task, pairs: list[tuple[int, int]], kernels: Any) -> bool:
    """Whether the kernels hold the scores of some pairs, at least one."""
    longest = max(len(task.queries[i]) + len(task.targets[j]) for i, j in pairs)
    costs = task.scoring.scores, task.scoring.open, task.scoring.extend
    return kernels.long_fits(*costs, longest)


def bytes_needed(m: int, n: int, budget: int) -> int:
    """Bytes of a long pair: lines, and tiles."""
    return LINE_BYTES * (lines(m, n, budget) + 2) * (m + n) + TILE_BYTES


def lines(m: int, n: int, budget: int) -> int:
    """Lines of the whole table in either direction that a budget has room for."""
    room = (budget - TILE_BYTES) // (LINE_BYTES * (m + n)) - 2
    return int(min(max(room, 4), fill.LINES))


def pieces_of(
    task: Task, pairs: list[tuple[int, int]], kernels: Any = None
) -> list[Piece]:
    """The pieces of long pairs, on a GPU where there are ``kernels``; threads of the
    task are shared by them."""
    # Scores of the largest have two devices each. A path is found by one, since its
    # ties are broken from the end.
    halved = np.zeros(len(pairs), bool)
    if task.output == "score" and len(task.devices) >= 2 * len(pairs):
        halved = are_long(task, pairs, HALVED_CELLS)
    threads = max(1, task.threads // max(len(pairs) + int(halved.sum()), 1))
    compute = partial(_compute, threads=threads, kernels=kernels)
    pieces: list[Piece] = []
    for k, (i, j) in enumerate(pairs):
        m, n = len(task.queries[i]), len(task.targets[j])
        ways = [(n, compute)]
        if halved[k]:
            ways = [
                (
                    columns,
                    partial(compute, half=half, device=task.devices[2 * k + half]),
                )
                for half, columns in enumerate((n // 2, n - n // 2))
            ]
        for columns, compute_one in ways:
            how = compute_one, execute.scores_of_pair
            pieces.append(Piece(task, (i, j), m * columns, *how))
    return pieces


def _compute(
    run: Run,
    worker: Worker,
    piece: Piece,
    threads: int,
    kernels: Any,
    half: int | None = None,
    device: Any = None,
) -> None:
    """Align a long pair, or fill a half of its table on a device, and put its row into
    the result of the run; of halves, whoever fills the second one does."""
    task, (i, j) = piece.task, piece.content
    max_lines = lines(len(task.queries[i]), len(task.targets[j]), task.window_budget)
    cells = SLAB_CELLS if kernels is None else GPU_SLAB_CELLS
    saved = None if run.saved is None else run.saved.part(f"pair{i},{j}")
    slabs = Slabs(cells, max_lines, saved)
    fill_one = partial(fill.fill_by_tiles, threads=threads, lines=max_lines)
    if kernels is not None:
        fill_one = partial(fill.fill_on_gpu, kernels=kernels, threads=threads)
    remaining = piece.cells

    def report_progress(cells: int) -> None:
        """Report each cell once, even if it is filled again, and the last cell last."""
        nonlocal remaining
        cells = min(cells, remaining - 1)
        remaining -= cells
        worker.report_progress(cells)

    if half is None:
        options = {"progress": report_progress, "slabs": slabs, "threads": threads}
        result = align(pair_of(task, i, j), fill_one, task.paths, **options)
    else:
        key = id(task), i, j
        with run.lock(key):
            if key not in run.halves:
                run.halves[key] = Halves(pair_of(task, i, j), slabs=slabs)
        with jax.default_device(device):
            score = run.halves[key].fill(half, fill_one, report_progress)
        result = None if score is None else PairResult(score, 0, 0)
    if result is not None:
        run.output.put(of_pair(task, (i, j), result, np.dtype(np.int32)))
    worker.report_progress(remaining)


def pair_of(task: Task, i: int, j: int) -> LongPair:
    """A pair of a task, in int32."""
    scoring = task.scoring
    return LongPair(
        np.ascontiguousarray(task.queries[i]),
        np.ascontiguousarray(task.targets[j]),
        bounds.scaled(scoring, "int32", False)[0].astype(np.int32),
        scoring.open,
        scoring.extend,
        frozenset(task.free),
        task.local,
        execute.problem_of(scoring, task.free, "int32"),
    )
