"""Which pairs of a task are long, and their pieces."""

from functools import partial
from typing import Any

import numpy as np

from jaxalign.model import bounds
from jaxalign.pairs.cpu import execute
from jaxalign.pairs.long import align, gpu_fill, tile_fill
from jaxalign.pairs.long.blocks import LongPair
from jaxalign.pairs.plan import Piece, Task
from jaxalign.pairs.result import of_pair
from jaxalign.pairs.run_state import Run, Worker

LONG_CELLS = 2**26  # of a pair that is worth tiles and threads of its own
# On a GPU, where many pairs are one launch, a job has few long ones.
GPU_LONG_CELLS, FEW_PAIRS = 2**28, 16
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
    if not few or task.devices[1:] or not task.job.pairs:
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
    return int(min(max(room, 4), tile_fill.LINES))


def pieces_of(
    task: Task, pairs: list[tuple[int, int]], kernels: Any = None
) -> list[Piece]:
    """The pieces of long pairs, on a GPU where there are ``kernels``; threads of the
    task are shared by the pairs."""
    threads = max(1, task.threads // max(len(pairs), 1))
    compute = partial(_compute, threads=threads, kernels=kernels)
    lengths = task.queries.lengths, task.targets.lengths
    return [
        Piece(
            task,
            (i, j),
            int(lengths[0][i]) * int(lengths[1][j]),
            compute,
            execute.scores_of_pair,
        )
        for i, j in pairs
    ]


def _compute(
    run: Run, worker: Worker, piece: Piece, threads: int, kernels: Any
) -> None:
    """Align a long pair, and put its row into the result of the run."""
    task, (i, j) = piece.task, piece.content
    pair = pair_of(task, i, j)
    progress = _Progress(worker, pair.m * pair.n)
    if kernels is None:
        most = lines(pair.m, pair.n, task.window_budget)
        fill = partial(tile_fill.fill, threads=threads, lines=most)
    else:
        fill = partial(gpu_fill.fill, kernels=kernels, threads=threads)
    result = align.align(pair, fill, task.paths, progress=progress.tell)
    run.output.put(of_pair(task, (i, j), result, np.dtype(np.int32)))
    progress.end()


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
