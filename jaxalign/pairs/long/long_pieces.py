"""Which pairs of a task are long, and their pieces."""

from functools import partial
from typing import Any

import jax
import numpy as np

from jaxalign.model import bounds
from jaxalign.pairs.cpu import execute
from jaxalign.pairs.cpu.long_pair import PairResult
from jaxalign.pairs.long import align, gpu_fill, tile_fill
from jaxalign.pairs.long.blocks import Fill, LongPair
from jaxalign.pairs.long.halves import Halves
from jaxalign.pairs.plan import Piece, Task
from jaxalign.pairs.result import of_pair
from jaxalign.pairs.run_state import Run, Worker

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
    return int(min(max(room, 4), tile_fill.LINES))


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
    result = align.align(pair, fill, task.paths, **options)
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
        return partial(gpu_fill.fill, kernels=kernels, threads=threads)
    most = lines(pair.m, pair.n, task.window_budget)
    return partial(tile_fill.fill, threads=threads, lines=most)


def _slabs_of(run: Run, piece: Piece, kernels: Any) -> align.Slabs:
    """The slabs of a pair, and what is saved of it."""
    task, (i, j) = piece.task, piece.content
    cells = SLAB_CELLS if kernels is None else GPU_SLAB_CELLS
    most = lines(len(task.queries[i]), len(task.targets[j]), task.window_budget)
    saved = None if run.saved is None else run.saved.part(f"pair{i},{j}")
    return align.Slabs(cells, most, saved)


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
