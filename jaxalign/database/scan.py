"""Every query against every sequence of a database: the best of each, exactly.

Two stages, as in CUDASW++: subjects up to a length share lanes, many at a time; each of
the few that are longer than the rest can fill lanes with has many lanes to itself. The
scores of a window stay on the device (Liu et al. 2006): only the best K of each query
leave it, once for a block of the database. The next block is read, planned and brought
to the device while one is computed.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import jax
import jax.numpy as jnp
import numpy as np

from jaxalign.database.dp import best_hits
from jaxalign.database.pieces import BlockPiece, Hits, tell_after
from jaxalign.model.alphabet import Sequences
from jaxalign.pairs import compiled, engine
from jaxalign.pairs.gpu import dispatch
from jaxalign.pairs.plan import Piece, Run, Task, Worker
from jaxalign.runtime import pipeline, programs
from jaxalign.runtime.devices import first_device, precision, refuse_over
from jaxalign.runtime.pipeline import teller
from jaxalign.runtime.programs import stored

# ------------------------------------------------------------------------------
# The windows of a search: scores that stay on the device, on a CPU in 8 bits first.
#
# A pair whose score leaves 8 bits is computed again, each query against its own such
# targets, once there are enough of them or at the end.

PAIRS_TO_REGROUP = 2**16  # pairs: their indices take a megabyte


def prepare(task: Task) -> Run:
    """The run of a ``cross`` job of scores: what a GPU reads is on its way there."""
    run = Run(compiled.plan_compiled(task), None, compiled.kernels_pallas)
    compiled.compile_launches(run)
    return run


def scores(run: Run, take: Callable, report_progress: Callable | None = None) -> dict:
    """Fill the windows of a prepared run, whose scores stay on the device; return the
    plan and ``seconds``.

    ``take(queries, targets, scores)`` gets indices of the two sets and a device array
    (slots, places) whose first rows and columns are theirs; several threads call it. A
    local score of -1 comes again, in another window. ``report_progress`` is called with
    the cells so far and the cells of the job.
    """
    plan, start = run.plan, time.perf_counter()
    state, quiet = _Scores(run, take), teller(None, 0)  # cells are told once
    _fill(
        state,
        plan.pieces,
        compiled.byte_limit(plan),
        teller(report_progress, plan.figures["cells"]),
    )
    if pairs := state.overflow.all_left():
        _fill(state, compiled.regroup(plan.task, *pairs), 0, quiet)
    run.seconds = time.perf_counter() - start
    return engine.summary(run)


class OverflowPairs:
    """Indices (query, target) of pairs to be computed again; threads share it."""

    def __init__(self):
        self._lock, self._sides, self._count = threading.Lock(), [], 0

    def add(self, queries: np.ndarray, targets: np.ndarray) -> tuple | None:
        """Collect pairs; once there are enough, return all of them, (queries,
        targets)."""
        with self._lock:
            self._sides.append((queries, targets))
            self._count += len(queries)
            return self._all() if self._count >= PAIRS_TO_REGROUP else None

    def all_left(self) -> tuple | None:
        """Return all remaining pairs, or None."""
        with self._lock:
            return self._all() if self._count else None

    def _all(self) -> tuple:
        sides = zip(*self._sides, strict=True)
        queries, targets = (np.concatenate(side) for side in sides)
        self._sides, self._count = [], 0
        return queries, targets


@dataclass(frozen=True)
class _Scores:
    """A run, the function that takes its scores, and its pairs that exceed 8 bits."""

    run: Run
    take: Callable
    overflow: OverflowPairs = field(default_factory=OverflowPairs)


def _fill(
    state: _Scores, pieces: Sequence[Piece], byte_limit: int, report_progress: Callable
) -> None:
    """Compute pieces in the threads of all devices."""
    workers = [
        partial(_worker, state, Worker(device, report_progress, byte_limit=byte_limit))
        for device in compiled.places(state.run.plan.task)
    ]
    for _ in pipeline.run([pipeline.Work(state.run, pieces)], workers):
        pass


def _worker(state: _Scores, worker: Worker) -> Callable:
    """Make the function (work, piece) of a host thread."""

    task = state.run.plan.task
    rows, columns = task.queries.lengths, task.targets.lengths

    def compute_one(_work: pipeline.Work, piece: Piece) -> None:
        with compiled.on_device(worker.device):
            for part in piece.scores(state.run, worker, piece):
                part.score.block_until_ready()  # or ``take`` waits, and others for it
                state.take(part.queries, part.targets, part.score)
                cells = int(rows[part.queries].sum()) * int(columns[part.targets].sum())
                worker.report_progress(cells)
                if worker.byte_limit == 0 or part.beyond is None:
                    continue
                # Pairs that exceed 8 bits are regrouped once there are enough.
                if pairs := state.overflow.add(*part.beyond):
                    compute = _worker(state, Worker(worker.device, teller(None, 0)))
                    for wide in compiled.regroup(task, *pairs):
                        compute(pipeline.Work(state.run, [wide]), wide)

    return compute_one


STAGE_LANES = 128
MIN_PLACES = 1024  # for hits of a query, where as many are asked for

add_hits, merge_hits = stored(best_hits.add), stored(best_hits.merge)


class StageCosts(NamedTuple):
    """The cost of a row of the query on one core, in one unit (docs/kernels.md)."""

    lanes: float  # a column of all lanes
    wavefront: float  # a column of one subject with many lanes to itself
    start: float  # of a job: the program of the second stage is loaded or compiled


ROOMS = 4, 16, 64, 256, 1024, 4096  # rows of best hits: each number is a program
STAGE_COSTS = {"cpu": StageCosts(50, 4, 2e9)}  # on a GPU nothing is set apart


def _room(task: Task) -> int:
    """Round the number of queries up to rows of best hits."""
    queries = task.shape[0]
    return next((rows for rows in ROOMS if rows >= queries), queries)


def outlined(task: Task, block: Sequences, kernels: Any) -> None:
    """Outline the programs of a scan of a block on a GPU
    (``runtime.programs.outline``)."""
    task = replace(task, targets=block, top=_places(task, len(block)))
    shape, dtype = (_room(task), task.top), _dtype(task, None)
    best = best_hits.BestHits._make(
        jax.ShapeDtypeStruct(shape, x) for x in (dtype, np.int32)
    )
    single, index = np.arange(1), np.arange(task.shape[1])
    for launch in dispatch.outline_of_scores(task, kernels):
        window = _Windows(_room(task), index)(single, single, launch.shape)
        add_hits(best, launch, *window, _least(task, dtype))


def prepared(
    task: Task, blocks: Iterable[Sequences], first: int
) -> Iterator[BlockPiece]:
    """Yield blocks, each with its stages, ready to run: (run, index of its targets),
    first the subjects in lanes, then the long ones."""
    rows, costs = int(task.queries.lengths.sum()), None
    if task.implementation is None:
        costs = STAGE_COSTS.get(first_device(task.devices).platform)
    for block in blocks:
        stop, lengths = first + len(block), block.lengths
        whole = replace(task, targets=block, top=_places(task, stop))
        parts, stages = [(np.arange(len(block)), task.implementation)], []
        if costs:
            long = lengths > longest_in_lanes(lengths, rows, costs)
            parts = [(np.flatnonzero(~long), task.implementation)]
            parts.append((np.flatnonzero(long), "wavefront"))
        for index, implementation in parts:
            if not index.size or not task.shape[0]:
                continue
            part = replace(whole, implementation=implementation)
            if len(index) < len(block):
                part = replace(part, targets=block.take(index))
            stages.append((prepare(part), index + first))
        yield BlockPiece(block, block, stages)
        first = stop


class BestOnDevice:
    """The best hits of a task, which stay on the device from block to block."""

    def __init__(self, task: Task, hits: Hits):
        self.task, self.best = task, None
        if hits.index.shape[1]:
            with precision(str(hits.score.dtype)):
                arrays = jax.device_put((hits.score, hits.index))
            self.best = best_hits.BestHits(*arrays)

    def fold(
        self, hits: Hits, piece: BlockPiece, report_progress: Callable | None
    ) -> None:
        """Join the scores of a block with the best so far."""
        cells = 0
        for run, index in piece.work:
            report_run = tell_after(report_progress, cells)
            self.best, info = _fold(run, index, self.best, report_run)
            hits.count(info)
            cells += run.plan.task.job.cells
        if self.best is not None:
            queries = self.task.shape[0]
            hits.score, hits.index = (np.asarray(x)[:queries] for x in self.best)


def longest_in_lanes(lengths: np.ndarray, rows: int, costs: StageCosts) -> int:
    """Find the length above which a subject is better aligned by itself.

    A block takes as many columns as its longest subject has residues, or as all its
    residues need in ``STAGE_LANES`` lanes: lanes beside a very long subject stay empty.
    With the k longest subjects set apart, the columns of the block cost ``costs.lanes``
    each and the residues of the k subjects ``costs.wavefront`` each, for every one of
    ``rows`` rows.
    """
    falling = np.append(np.sort(lengths)[::-1], 0)
    apart = np.cumsum(falling) - falling
    columns = np.maximum(falling, (apart[-1] - apart) / STAGE_LANES)
    cost = rows * (columns * costs.lanes + apart * costs.wavefront)
    cost[1:] += costs.start
    return int(falling[np.argmin(cost)])


def _fold(
    run: Run,
    index: np.ndarray,
    best: best_hits.BestHits | None,
    report_progress: Callable[[int, int], object] | None,
) -> tuple[best_hits.BestHits, dict]:
    """Join the scores of a run with the best so far; return the best, and the info of
    the run."""
    task = run.plan.task
    window_of = _Windows(_room(task), index, task.targets)
    dtype, lock = _dtype(task, best), threading.Lock()
    with precision(dtype):
        # the best so far in the dtype, rows and places of the task
        shape = window_of.room, task.top or 0
        if best is None:
            best = best_hits.empty(shape[0], shape[1], dtype)
        elif best.score.dtype != dtype or best.score.shape != shape:
            lowest = [jnp.iinfo(x).min for x in (best.score.dtype, dtype)]
            score = best.score.astype(dtype)
            score = jnp.where(score == lowest[0], lowest[1], score)
            room = [(0, x - y) for x, y in zip(shape, score.shape, strict=True)]
            best = best_hits.BestHits(
                jnp.pad(score, room, constant_values=lowest[1]),
                jnp.pad(best.index, room, constant_values=best_hits.NO_HIT),
            )
    home = best.score.device
    bests = {home: best}  # one a device: scores stay where they are

    def take(queries: np.ndarray, targets: np.ndarray, scores: Any):
        device = scores.device
        windows = window_of(queries, targets, scores.shape, device)
        with precision(dtype), lock:
            with jax.default_device(device):
                so_far = bests.get(device) or best_hits.empty(shape[0], shape[1], dtype)
                least = _least(task, dtype)
                bests[device] = add_hits(so_far, scores, *windows, least)

    with programs.explained("the best hits of each query"):
        info = scores(run, take, report_progress)
        with precision(dtype):
            first, *remaining = (jax.device_put(b, home) for b in bests.values())
            for hits in remaining:
                first = merge_hits(first, hits)
        return jax.block_until_ready(first), info


def _dtype(task: Task, best: best_hits.BestHits | None) -> str:
    """Return int32 where all scores fit it, else int64; hits that are int64 stay so."""
    longest = (int(x.lengths.max(initial=0)) for x in (task.queries, task.targets))
    wide = best is not None and best.score.dtype == np.int64
    return "int64" if wide or task.dtype(*longest) == "int64" else "int32"


def _places(task: Task, sequences: int) -> int:
    """Return how many hits of a query have room: ``task.top``, but no more than there
    are sequences so far, rounded up so that few programs are compiled.

    Raises MemoryPlanError: they do not fit the budget beside their copy while hits are
        added
    """
    assert task.top is not None, "a search keeps the best of each query"
    places = min(task.top, max(MIN_PLACES, 2 ** (sequences - 1).bit_length()))
    entry = np.dtype(np.int64).itemsize + np.dtype(np.int32).itemsize
    needed = 2 * entry * task.shape[0] * places
    what = f"the best {places:,} hits of {task.shape[0]:,} queries"
    refuse_over(needed, task.budget, what)
    return places


def _least(task: Task, dtype: Any):
    """Return the lowest score of a hit: in local mode it is positive."""
    return np.asarray(1 if task.local else jnp.iinfo(dtype).min + 1, dtype)


# What ``_Windows`` made of blocks that stay on devices
_tables: WeakKeyDictionary[Sequences, dict] = WeakKeyDictionary()


class _Windows:
    """Windows as ``add_hits`` reads them: the query of each row; and of each column, in
    the order of the database, its place and its index.

    Windows of other queries have the same targets, so what was made last is kept; that
    of a block which nobody can write for all queries that meet it, on its device.
    """

    def __init__(
        self, room: int, index: np.ndarray, block: Sequences | None = None
    ) -> None:
        self.room, self._index = room, index
        self._on_device = block is not None and not block.codes.flags.writeable
        self._cached: dict[Any, tuple[np.ndarray, Any]] = {}
        if block is not None and self._on_device:
            self._cached = _tables.setdefault(block, {})

    def __call__(
        self,
        queries: np.ndarray,
        targets: np.ndarray,
        shape: tuple[int, ...],
        device: Any = None,
    ) -> tuple[np.ndarray, np.ndarray | jax.Array, np.ndarray | jax.Array]:
        """(rows, columns, indices) of a window of a shape: int32, beyond the last row
        of the best hits where there is no query."""
        slots, places = shape
        rows = np.full(slots, self.room, np.int32)
        rows[: len(queries)] = queries
        first = (int(x[0]) if len(x) else -1 for x in (targets, self._index))
        key = places, len(targets), *first, device
        cached = self._cached.get(key)
        if cached is not None and np.array_equal(cached[0], targets):
            return rows, cached[1][0], cached[1][1]
        index, table = self._index, np.zeros((2, places), np.int32)
        place = np.full(len(index), -1, np.int64)  # a sort takes longer than the fill
        place[targets] = np.arange(len(targets))
        order = place[place >= 0]  # ``index`` rises
        table[0, : len(order)] = order
        table[1] = best_hits.NO_HIT
        table[1, : len(order)] = index[targets][order]
        columns = jax.device_put(tuple(table), device) if self._on_device else table
        self._cached[key] = targets, columns
        return rows, columns[0], columns[1]
