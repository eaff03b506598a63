"""Score, end cell and path of one long pair, by a fill of blocks.

The table of a very large pair is filled in *slabs*, some columns of all rows each. What
is known after a slab, its lines, is all that the next one and the path need, so a run
that was interrupted goes on from there.
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
from jaxalign.pairs.plan import Piece, Task
from jaxalign.pairs.result import of_pair
from jaxalign.pairs.run_state import Run, SavedState, Worker

Progress = Callable[[int], object] | None


class Slabs(NamedTuple):
    """How a table is divided: by its cells alone."""

    cells: int  # of a slab at least
    most: int  # slabs
    saved: SavedState | None = None  # of the pair, or of a half

    def count(self, cells: int) -> int:
        return int(min(max(1, -(-cells // self.cells)), self.most))


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

    Parameters
    ----------
    fill : ``tile_fill.fill``, or that of a GPU, with its options bound
    paths : whether the path is wanted, too
    pruned : whether blocks that no best path enters are left out
    progress : called with cells of the whole table as they are filled
    slabs : in which the table is filled, by default as one
    threads : of the path; those of the fill are among its options
    """
    if (result := _result_of(slabs.saved)) is not None:
        return result
    bound = pruning.first_bound(pair) if pruned else NO_BOUND
    grids = fill_slabs(pair, pair.n, fill, bound, paths, progress, slabs)
    end = _end(pair, grids)
    if end.score < bound:
        raise JaxalignError(
            f"a fill found {end.score}, a path scores {bound}: the fill is wrong"
        )
    result = PairResult(end.score, end.i, end.j)
    if paths:
        result = _with_path(pair, grids, fill, end, threads)
    if slabs.saved is not None and len(grids) > 1:
        numbers, steps = np.array(result[:-1], np.int64), result.steps
        more = {"numbers": numbers} | ({} if steps is None else {"steps": steps})
        slabs.saved.put(more, without=[*slabs.saved.all()])
    return result


def _with_path(
    pair: LongPair, grids: list[LineGrid], fill: Fill, end: _End, threads: int
) -> PairResult:
    if pair.local and end.score <= 0:
        return PairResult(0, 0, 0, steps=np.zeros(0, np.uint8))
    end = _exact_end(pair, grids, fill, end)
    start, steps = path(pair, grids, (end.i, end.j), end.score, fill, threads)
    counts = counts_of(pair, start, steps)
    return PairResult(*end, *start, **counts, steps=steps)


def _result_of(saved: SavedState | None) -> PairResult | None:
    """The result of a pair that was aligned before a run was interrupted."""
    arrays = {} if saved is None else saved.all()
    if "numbers" not in arrays:
        return None
    return PairResult(*arrays["numbers"].tolist(), steps=arrays.get("steps"))


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

    Parameters
    ----------
    bound : the score of a path, so that no path of the best score is left out
    keep : whether lines inside of the slabs are kept, and not the last column alone
    """
    count, table = slabs.count(pair.m * columns), whole(pair)
    saved = slabs.saved or SavedState()
    grids = _grids_of(pair, saved)
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
        arrays, number = _arrays_of(grid), len(grids)
        if grids and not keep:
            grids[-1] = replace(grids[-1], columns={})
        before = () if keep else (f"{number - 1}.{name}" for name in COLUMN_ARRAYS)
        more = {f"{number}.{name}": array for name, array in arrays.items()}
        grids.append(_grid_of(pair, arrays, left))
        saved.put(more, without=before)
        j += size
    return grids


COLUMN_ARRAYS = "columns", "column_lines"


def _arrays_of(grid: LineGrid) -> dict[str, np.ndarray]:
    """A slab's lines, on the host, and whatever else is known of it."""
    block = grid.block
    arrays = {"place": np.array([block.j, block.columns, grid.cells])}
    spots = [(spot.score, *spot.rows, *spot.columns) for spot in grid.spots]
    arrays["spots"] = np.array(spots, np.int64).reshape(-1, 5)
    for names, lines, length in (
        (("rows", "row_lines"), grid.rows, block.columns),
        (COLUMN_ARRAYS, grid.columns, block.rows),
    ):
        values = [np.stack(line.part(0, length)) for line in lines.values()]
        arrays |= zip(names, (np.array([*lines]), np.stack(values)), strict=True)
    return arrays


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


def _grids_of(pair: LongPair, saved: SavedState) -> list[LineGrid]:
    """The slabs of a run that was interrupted."""
    grids: list[LineGrid] = []
    left = whole(pair).left
    while arrays := saved.part(f"{len(grids)}").all():
        grid = _grid_of(pair, arrays, left)
        left = grid.columns.get(grid.block.j + grid.block.columns, left)
        grids.append(grid)
    return grids


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
    i, j = int(column.argmax()), int(row.argmax())
    corner = int(row[-1]), pair.m, pair.n
    cells = corner, (int(column[i]), i, pair.n), (int(row[j]), pair.m, j)
    corner, by_column, by_row = (
        walk.EndCell._make(np.asarray(x, np.int32) for x in cell) for cell in cells
    )
    free = {end: end in pair.free for end in ("query_end", "target_end")}
    cell = walk.border_end(corner, by_column, by_row, free, 0)
    score, i, j = map(int, cell)
    return _End(score, i, j)


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
        if _is_cell(spot):
            cells.append(_End(spot.score, spot.rows[0], spot.columns[0]))
        elif spot.rows[0] <= last:
            cells += _cells_of(pair, grid, fill, spot)
    return min(cells, key=lambda end: (end.i, end.j))


def _is_cell(spot: Spot) -> bool:
    return spot.rows[0] == spot.rows[1] and spot.columns[0] == spot.columns[1]


def _cells_of(pair: LongPair, grid: LineGrid, fill: Fill, spot: Spot) -> list[_End]:
    """The first cell with the score of a spot in each block that it is in, if there is
    one, by filling these again."""
    cells: list[_End] = []
    i = min(spot.rows[1], grid.block.i + grid.block.rows)
    j = min(spot.columns[1], grid.block.j + grid.block.columns)
    while j > max(spot.columns[0] - 1, grid.block.j):
        block = block_of(grid, i, j)
        inner = fill(pair, block)
        end = _end(pair, [inner])
        if end.score == spot.score:
            cells.append(_exact_end(pair, [inner], fill, end))
        j = block.j
    return cells


# ------------------------------------------------------------------------------
# The score of a long pair by two devices, which fill a half of its table each.
#
# The columns up to the middle one are filled from the start, and those behind it from
# the end: that is a fill from the start of both sequences turned round. The best path
# lies in one half, or crosses the middle column (docs/recurrences.md has the proof).
# Columns are divided, not rows, because every fill keeps H and F of its last column.

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
    """Both halves of the table of a pair, and what is known of them.

    Parameters
    ----------
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

        Returns
        -------
        int or None
            The score of the pair, where the other half is filled already.
        """
        (pair, columns), slabs = self._sides[number], self._slabs
        if slabs.saved is not None:
            slabs = slabs._replace(saved=slabs.saved.part(f"half{number}"))
        bound = self._best_bound()
        grids = fill_slabs(pair, columns, fill, bound, False, progress, slabs)
        with self._lock:
            self._grids[number] = grids
            if len(self._grids) < 2:
                return None
        return self._score()

    def _best_bound(self) -> int:
        """The score of some path of the pair, found by whoever needs it first."""
        with self._lock:
            if self._bound is None:
                self._bound = pruning.first_bound(self.pair)
            return self._bound

    def _score(self) -> int:
        pairs = [(pair, self._grids[k]) for k, (pair, _) in enumerate(self._sides)]
        best = max(*(_best_inside(*one) for one in pairs), _best_across(*pairs))
        if self._bound is not None and best < self._bound:
            raise JaxalignError(
                f"two fills found {best}, a path scores {self._bound}: one is wrong"
            )
        return best


def _best_inside(pair: LongPair, grids: list[LineGrid]) -> int:
    """The best score of a path that ends in a half, before its last column."""
    if pair.local:
        return max((spot.score for grid in grids for spot in grid.spots), default=0)
    if "target_end" not in pair.free:
        return MINUS_INFINITY
    return max(int(grid.rows[pair.m].h.max()) for grid in grids)


def _best_across(
    left: tuple[LongPair, list[LineGrid]], right: tuple[LongPair, list[LineGrid]]
) -> int:
    """The best score of a path through the middle column."""
    before, after = _middle(*left), _middle(*right)
    after = Line(after.h[::-1], after.gap[::-1])
    pair = left[0]
    # A gap that goes on behind the middle has paid for two openings.
    across = _sums(before.gap, after.gap) + (pair.open - pair.extend)
    return int(np.maximum(_sums(before.h, after.h), across).max())


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


# ------------------------------------------------------------------------------
# Which pairs of a task are long, and their pieces.

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
    return (m * n >= cells) & (_largest(task) * (m + n + 4096) < SCORE_BITS)


def _largest(task: Task) -> int:
    """The most that a step changes a score by."""
    largest = int(np.abs(task.scoring.scores).max(initial=0))
    return max(largest, task.scoring.open, task.scoring.extend)


def on_gpu(task: Task, kernels: Any) -> list[tuple[int, int]]:
    """All pairs of a task, if they are few and each is for a whole GPU; else none."""
    few = task.job.pairs <= FEW_PAIRS and task.top is None
    if not few or not task.job.pairs:
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
    halved = _are_halved(task, pairs)
    count = len(pairs) + sum(halved)
    options = {"threads": max(1, task.threads // max(count, 1)), "kernels": kernels}
    compute = partial(_compute, **options)
    pieces: list[Piece] = []
    for k, (i, j) in enumerate(pairs):
        m, n = len(task.queries[i]), len(task.targets[j])
        if halved[k]:
            for half, columns in enumerate((n // 2, n - n // 2)):
                about = {"half": half, "device": task.devices[2 * k + half]}
                one = partial(_compute_half, **options, **about)
                pieces.append(_piece(task, (i, j), m * columns, one))
        else:
            pieces.append(_piece(task, (i, j), m * n, compute))
    return pieces


def way_of(pieces: list[Piece]) -> str:
    """Words about the pieces of long pairs, for a plan."""
    halved = len({piece.content for piece in pieces}) < len(pieces)
    return ", in blocks" * bool(pieces) + ", a half on each of two devices" * halved


def _piece(task: Task, pair: tuple[int, int], cells: int, compute: Any) -> Piece:
    return Piece(task, pair, cells, compute, execute.scores_of_pair)


def _are_halved(task: Task, pairs: list[tuple[int, int]]) -> list[bool]:
    """Which pairs have two devices each. A path is found by one, since its ties are
    broken from the end."""
    if task.output != "score" or len(task.devices) < 2 * len(pairs):
        return [False] * len(pairs)
    return are_long(task, pairs, HALVED_CELLS).tolist()


def _compute(
    run: Run, worker: Worker, piece: Piece, threads: int, kernels: Any
) -> None:
    """Align a long pair, and put its row into the result of the run."""
    task, (i, j) = piece.task, piece.content
    pair = pair_of(task, i, j)
    progress = _Progress(worker, piece.cells)
    fill, slabs = _fill_of(task, pair, threads, kernels), _slabs_of(run, piece, kernels)
    options = {"progress": progress.tell, "slabs": slabs, "threads": threads}
    result = align(pair, fill, task.paths, **options)
    run.output.put(of_pair(task, (i, j), result, np.dtype(np.int32)))
    progress.end()


def _compute_half(
    run: Run,
    worker: Worker,
    piece: Piece,
    half: int,
    device: Any,
    threads: int,
    kernels: Any,
) -> None:
    """Fill a half of a long pair on a device; who fills the second one puts the score
    into the result of the run."""
    task, (i, j) = piece.task, piece.content
    key = id(task), i, j
    with run.lock(key):
        if key not in run.halves:
            slabs = _slabs_of(run, piece, kernels)
            run.halves[key] = Halves(pair_of(task, i, j), slabs=slabs)
    halves = run.halves[key]
    progress = _Progress(worker, piece.cells)
    fill = _fill_of(task, halves.pair, threads, kernels)
    with jax.default_device(device):
        score = halves.fill(half, fill, progress.tell)
    if score is not None:
        result = PairResult(score, 0, 0)
        run.output.put(of_pair(task, (i, j), result, np.dtype(np.int32)))
    progress.end()


def _fill_of(task: Task, pair: LongPair, threads: int, kernels: Any) -> Fill:
    if kernels is not None:
        return partial(fill.fill_on_gpu, kernels=kernels, threads=threads)
    most = lines(pair.m, pair.n, task.window_budget)
    return partial(fill.fill_by_tiles, threads=threads, lines=most)


def _slabs_of(run: Run, piece: Piece, kernels: Any) -> Slabs:
    """The slabs of a pair, and what is saved of it."""
    task, (i, j) = piece.task, piece.content
    cells = SLAB_CELLS if kernels is None else GPU_SLAB_CELLS
    most = lines(len(task.queries[i]), len(task.targets[j]), task.window_budget)
    saved = None if run.saved is None else run.saved.part(f"pair{i},{j}")
    return Slabs(cells, most, saved)


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


class _Progress:
    """Tells of the cells of a pair once, whatever is filled again."""

    def __init__(self, worker: Worker, cells: int):
        self.worker, self.left = worker, cells

    def tell(self, cells: int) -> None:
        """Some cells are filled; the last ones are when the pair is."""
        cells = min(cells, self.left - 1)
        self.left -= cells
        self.worker.tell(cells)

    def end(self) -> None:
        """The pair is aligned."""
        self.worker.tell(self.left)
