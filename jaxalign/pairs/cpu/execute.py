"""One piece of a job on the device: codes in, flat columns out."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

from jaxalign.affine import Gaps
from jaxalign.model import bounds
from jaxalign.model.scoring import FREE_ENDS, Scoring
from jaxalign.pairs import schedule, windows
from jaxalign.pairs.cpu import eight_bits, long_pair, partition
from jaxalign.pairs.cpu.lane_packing import (
    backtrack_room,
    block_of,
    profile_room,
    queries_of,
    wide,
)
from jaxalign.pairs.cpu.partition import STRIP_ROWS
from jaxalign.pairs.dp import window_program
from jaxalign.pairs.dp.window_program import WindowProblem
from jaxalign.pairs.plan import Piece, Task, zipped
from jaxalign.pairs.result import Rows, cells_of, collect, of_pair
from jaxalign.pairs.run_state import PieceScores, Run, Worker
from jaxalign.runtime.devices import first_device, precision
from jaxalign.runtime.programs import program, stored

STATIC_FIELDS = (
    "lanes", "rows", "columns", "longest", "slots", "places", "capacity", "zipped",
)  # fmt: skip
load_block = stored(window_program.load_block, ("shared", "differences"))
run_window_program = stored(window_program.run_window, window_program.STATIC)


def pieces_of(task: Task, blocks: list[windows.Window]) -> list[Piece]:
    """The pieces of some windows; those of one program are a group."""
    return [
        Piece(
            task,
            window,
            schedule.estimate(task.job, window),
            compute_window,
            scores_of_window,
            (*(getattr(window, name) for name in STATIC_FIELDS),
             task.dtype(window.m, window.n)),
        )
        for window in blocks
    ]  # fmt: skip


def pair_pieces_of(task: Task, pairs: list[tuple[int, int]]) -> list[Piece]:
    """The pieces of some pairs, each alone."""
    lengths = task.queries.lengths, task.targets.lengths
    cells = [int(lengths[0][i] * lengths[1][j]) for i, j in pairs]
    every = zip(pairs, cells, strict=True)
    return [Piece(task, pair, n, compute_pair, scores_of_pair) for pair, n in every]


def regroup(task: Task, queries: np.ndarray, targets: np.ndarray) -> list[Piece]:
    """The pieces, heaviest first, of some pairs of a search: each query against its
    targets, with few programs."""
    return _heaviest_first(
        task, partition.regroup(task.job, queries, targets, task.window_budget)
    )


def pieces_beyond(run: Run) -> list[Piece]:
    """The pieces of the pairs of a run whose scores left 8 bits: pairs of like lengths
    together. None of them is left in ``run.beyond``."""
    beyond, run.beyond = run.beyond, []
    pieces: list[Piece] = []
    for task in dict.fromkeys(task for task, _ in beyond):
        sides = zip(*(pairs for one, pairs in beyond if one is task), strict=True)
        some = zipped(task, *(np.concatenate(side) for side in sides))
        split = partition.zip_together(some.job, some.window_budget)
        pieces += _heaviest_first(some, split)
    return pieces


def _heaviest_first(task: Task, split: windows.Partition) -> list[Piece]:
    if task.implementation is None:
        split = partition.without_lone(task.job, split)
    single = pair_pieces_of(task, split.pairs)
    cost = [partition.swept_cells(task.job, window) for window in split.blocks]
    cost += [partition.LONE_CELL_COST[0] * piece.cells for piece in single]
    pieces = [*pieces_of(task, split.blocks), *single]
    return [pieces[k] for k in schedule.heaviest_first(cost)]


def compute_window(run: Run, worker: Worker, piece: Piece) -> None:
    """Compute a window, and put its rows into the result of the run; in 8 bits where
    that pays, and the few pairs that leave them into ``run.beyond``."""
    task, window = piece.task, piece.content
    high = eight_bits.limit(task) if task.large and not window.zipped else 0
    if high and eight_bits.to_be_tried(worker):
        rows, beyond = _narrow_rows(task, window, worker, high)
        if rows is not None:
            if len(beyond[0]):
                run.beyond.append((task, beyond))
            return _put(run, worker, rows)
    _put(run, worker, run_window(task, window, worker))


def compute_pair(run: Run, worker: Worker, piece: Piece) -> None:
    """Compute a pair alone, and put its row into the result of the run."""
    _put(run, worker, run_pair(piece.task, piece.content))


def _put(run: Run, worker: Worker, rows: Rows) -> None:
    run.output.put(rows)
    worker.tell(rows.cells)


def scores_of_window(_run: Run, worker: Worker, piece: Piece) -> Iterator[PieceScores]:
    """The scores of a window of a search."""
    window = piece.content
    scores = window_scores(piece.task, window, worker)
    yield PieceScores(window.queries, window.targets, *scores)


def scores_of_pair(_run: Run, _worker: Worker, piece: Piece) -> Iterator[PieceScores]:
    """The score of a pair of a search."""
    i, j = (np.array([side]) for side in piece.content)
    yield PieceScores(i, j, pair_score(piece.task, piece.content))


def problem_of(
    scoring: Scoring, free: frozenset, dtype: str, identity: bool = False,
    base: int | None = None,
) -> WindowProblem:  # fmt: skip
    """Scores and gaps of the proven dtype, in NumPy: a program takes them sooner than
    the device has them one by one."""
    scores, *gaps = bounds.scaled(scoring, dtype, identity, base)
    pad = gaps[0]
    small = dtype != "int64" and np.abs(scores).max(initial=0) < 128 and pad < 128
    wildcard = scoring.alphabet.wildcard_code
    return WindowProblem(
        np.asarray(scores, "int8" if small else dtype),
        Gaps(*(np.asarray(g, dtype) for g in gaps)),
        {end: np.asarray(end in free) for end in FREE_ENDS},
        np.asarray(wildcard, np.int32),
    )


def _problem(task: Task, dtype: str, base: int | None = None):
    identity = task.output == "identity"
    return problem_of(task.scoring, task.free, dtype, identity, base)


def run_window(task: Task, w: windows.Window, worker: Worker) -> Rows:
    """All pairs of a window, in the backtrack buffer of a thread."""
    dtype = task.dtype(w.m, w.n)
    with precision(dtype):
        result, met = _on_device(task, w, worker, dtype)
        result = jax.tree.map(np.asarray, result)
    return collect(task, result, met)


def _narrow_rows(task: Task, w: windows.Window, worker: Worker, high: int):
    """(rows, pairs beyond) of a window in 8 bits: the rows of all pairs that score
    ``high`` at most, and the other pairs (queries, targets) as the result has them; no
    rows where these are too many."""
    with precision("int8"):
        result, met = _on_device(task, w, worker, "int8")
        result = jax.tree.map(np.asarray, result)
    shape = met.wanted.shape
    over = met.wanted & (result.score[: shape[0], : shape[1]] > high)
    if eight_bits.too_many(worker, over.sum(), met.wanted.sum()):
        return None, None
    i, j, flip = (x[over] for x in (met.query, met.target, met.swapped))
    rows = collect(task, result, met._replace(wanted=met.wanted & ~over))
    rows = rows._replace(cells=cells_of(task, met))
    return rows, (np.where(flip, j, i), np.where(flip, i, j))


def window_scores(task: Task, w: windows.Window, worker: Worker):
    """The scores of a window of a ``cross`` job, in 8 bits where ``worker.byte_limit``
    says up to which score these hold them.

    Returns
    -------
    scores : integers (slots, places), left on the device
    beyond : (queries, targets) or None
        Indices of the pairs whose score 8 bits do not hold; it is -1 there.
    """
    if worker.byte_limit and eight_bits.to_be_tried(worker):
        narrow = _scores(task, w, worker, "int8")
        score, over = _beyond(narrow, np.int16(worker.byte_limit))
        count = len(w.queries), len(w.targets)
        q, t = np.nonzero(np.asarray(over)[: count[0], : count[1]])
        if not eight_bits.too_many(worker, len(q), count[0] * count[1]):
            return score, (w.queries[q], w.targets[t])
    return _scores(task, w, worker, task.dtype(w.m, w.n)), None


def _scores(task: Task, w: windows.Window, worker: Worker, dtype: str):
    with precision(dtype):
        return _on_device(task, w, worker, dtype)[0].score


@program()
def _beyond(score: jax.Array, high: jax.Array):
    """Scores, -1 instead of those above ``high``; and which these are."""
    over = score > high
    return jnp.where(over, -1, score), over


def _on_device(task: Task, w: windows.Window, worker: Worker, dtype: str):
    """(device result, the pairs it holds)."""
    by_differences = task.large or task.output == "identity"
    cells = eight_bits.differences(task, w) if by_differences else None
    problem = _problem(task, dtype, None if cells is None else cells.base)
    block = block_of(task, w)
    shared = not w.zipped and not task.scoring.by_position
    cpu = first_device(task.devices).platform == "cpu"
    differences = None if cells is None else cells.cell
    room = None
    if shared and cpu:
        dtype_of_room = differences or problem.scores.dtype
        shape = len(problem.scores) + 1, w.columns + 2, w.lanes
        room = profile_room(worker, shape, dtype_of_room)
    block = load_block(
        block, problem, task.local, shared=shared, room=room, differences=differences
    )
    worker.profile = block.scores if shared else None
    met = task.job.meets(w)
    queries, m = queries_of(task, w)
    start = np.zeros(w.slots, np.int32)
    start[: len(met.wanted)] = met.wanted.argmax(axis=1)
    result, backtrack = run_window_program(
        block,
        queries,
        m,
        start,
        np.int32(len(met.wanted)),
        wide(w, met.swapped),
        problem,
        backtrack_room(worker, w.capacity) if task.paths else None,
        local=task.local,
        rows=STRIP_ROWS,
        longest=w.longest,
        paths=task.paths,
        steps=task.output == "alignment",
        fused=cpu,
        costs=eight_bits.costs(task, w, dtype) if task.large else None,
        opening=None if cells is None else cells.opening,
        base=1 if cells is None else cells.base,
    )
    worker.backtrack = backtrack
    if cells is not None and cells.base > 1:
        result = result._replace(score=_rebased(result.score, cells.base, dtype))
    return result, met


def _rebased(score: jax.Array, base: int, dtype: str) -> np.ndarray:
    """Scores of identities of another base, with that of their dtype."""
    scores, matches = np.divmod(np.asarray(score), base)
    return scores * bounds.IDENTITY_BASE[dtype] + matches


def run_pair(task: Task, pair: tuple[int, int]) -> Rows:
    """One pair by anti-diagonals, in checkpointed strips where it is long."""
    result, dtype = _alone(task, *pair)
    return of_pair(task, pair, result, np.dtype(dtype))


def pair_score(task: Task, pair: tuple[int, int]) -> jax.Array:
    """The score of one pair, (1, 1)."""
    result, dtype = _alone(task, *pair)
    with precision(dtype):
        return jnp.full((1, 1), result.score, dtype)


def _alone(task: Task, i: int, j: int):
    """(long_pair.PairResult, dtype) of one pair."""
    query, target = task.queries[i], task.targets[j]
    dtype = task.dtype(len(query), len(target))
    result_dtype = "int32" if dtype == "int16" else dtype  # what its indices are anyway
    rows = long_pair.strip_rows(len(query), len(target), task.window_budget)
    fused = first_device(task.devices).platform == "cpu"

    def aligned(tried: str, high: int | None):
        with precision(tried):
            return long_pair.align_long(
                query, target, _problem(task, tried), task.local, task.paths, rows,
                fused=fused, high=high,
            )  # fmt: skip

    tries = _tries(task, dtype) if fused else [(result_dtype, None)]
    results = (aligned(*one) for one in tries)
    return next(pair for pair in results if pair is not None), result_dtype


def _tries(task: Task, dtype: str):
    """(dtype, score up to which it is exact, or None): int16 takes half the time, and
    the lengths alone seldom prove that it holds a long pair."""
    high = bounds.narrow_high(task.scoring, task.mode, "int16")
    if dtype == "int32" and high and task.output != "identity":
        yield "int16", high
    yield dtype, None
