"""One piece of a job on the device: codes in, flat columns out.

A CPU fills some scores in 8 bits, twice the lanes of 16 an instruction, and some
identities in 16. Local scores are tried in 8 bits. Without paths a score of 0 is held
near the bottom of the range. A score that 8 bits do not hold is seen
(``model.bounds``), and such pairs are computed again in more bits. Global tables are
filled by differences, which 8 bits provably hold at any length; with the matches of an
identity in the low digits these take 16.

Paths of long pairs, and of hits of a search, are local tables of their own: scores come
first, with the strips and tiles that hold the end cell, then the few residues before it
that a path can have (``pairs/dp/sweep/live_part.py``). Hits are scored in windows of
their queries, as the search was.

Callers whose JAX program has a ``jax.sharding.Mesh`` get windows as one SPMD program,
in which every device fills one: windows of one static shape are stacked along a new
leading axis, which ``shard_map`` cuts over all axes of the mesh.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from inspect import unwrap
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec

from jaxalign.affine import Gaps
from jaxalign.model import bounds
from jaxalign.model.alignment import SPANS
from jaxalign.model.alphabet import SequenceViews, stacked
from jaxalign.model.scoring import FREE_ENDS, Scoring
from jaxalign.pairs import by_rows, pair_matrix
from jaxalign.pairs.by_rows import lone_pairs
from jaxalign.pairs.cpu import long_pair, partition
from jaxalign.pairs.cpu.partition import (
    LIVE_CELLS,
    MAX_LIVE_LETTERS,
    SHORT_PAIRS,
    STRIP_ROWS,
    Room,
    ScoreBytes,
)
from jaxalign.pairs.dp import directions, wavefront, window_program
from jaxalign.pairs.dp.sweep import TILE, live_part
from jaxalign.pairs.dp.sweep.lane_cells import Constants
from jaxalign.pairs.dp.sweep.lane_fill import Block
from jaxalign.pairs.dp.window_program import WindowProblem
from jaxalign.pairs.pair_matrix import Window, WindowPairs
from jaxalign.pairs.plan import (
    MAX_WINDOW_BYTES,
    Piece,
    PieceScores,
    Run,
    Task,
    Worker,
    zipped,
)
from jaxalign.pairs.result import Rows, cells_of, collect, of_pair
from jaxalign.runtime.devices import (
    bucket,
    first_device,
    precision,
    refuse_without_threads,
)
from jaxalign.runtime.programs import program, stored

CACHE_LINE = 64  # bytes
USUAL_COSTS = Scoring().open, Scoring().extend  # those of most local jobs
# With one pair in so many beyond them, a window is filled again …
MAX_OVERFLOW_RATIO = 32
WINDOWS_SKIPPED = 4  # … and so many windows of that thread are not tried
LIVE_JOB_CELLS = 10**9  # of a job without teams; less has few programs
# Zipped pairs of one query in a row from which on it has windows of its own, and the
# cells of their mean table
SAME_QUERY, HIT_CELLS = 64, 2**13
LIVE_GROUPS = 8  # of ``live_part.LANES`` pairs whose live parts are found in one call
LIVE_PAIRS = 2**14  # of a piece
# Of live parts: the longest sides of those that share a program, pairs side by side
BOX_SIZES, BOX_LANES = (128, 512), 128
NEVER = 2**30  # letters of a live part that is not used


def _on_cpu(task: Task) -> bool:
    return first_device(task.devices).platform == "cpu"


def eight_bit_limit(task: Task) -> int:
    """Highest local score at which windows are tried in 8 bits first, which takes one
    more program; 0 if they are not. Zipped windows are not: each lane looks up the
    scores of its own query. Tables of a profile are not: the pairs that overflow could
    not share its positions."""
    tried = task.kind != "zip" and task.output != "identity" and task.mesh is None
    if task.top is None:
        tried &= not task.scoring.by_position
    if not (tried and (task.large or _is_live(task)) and _on_cpu(task)):
        return 0
    return _highest_byte(task, task.paths)


def _highest_byte(task: Task, paths: bool) -> int:
    """Highest local score that 8 bits hold, of tables with paths or of scores alone."""
    zero = 0 if paths else bounds.least_zero(task.scoring, "int8")
    return bounds.narrow_high(task.scoring, task.mode, "int8", zero)


def _live_limit(task: Task) -> int:
    """Highest score up to which paths of a task are found in live parts of tables, 0
    where none are."""
    return partition.live_limit(task) if _on_cpu(task) else 0


def _is_live(task: Task) -> bool:
    """Whether windows of long tables are scored first, though the task is not large:
    few long sequences leave lanes empty, and 8 bits are four times as fast."""
    if task.job.cells < partition.TEAM_JOB_CELLS or not _live_limit(task):
        return False
    return task.job.cells >= LIVE_JOB_CELLS or partition.has_long_tables(task.job)


def has_live_part(task: Task, window: Window) -> bool:
    """Whether paths of a window that is tried in 8 bits are computed from scores and
    live parts of tables."""
    if window.zipped or max(window.rows, window.columns) > MAX_LIVE_LETTERS:
        return False
    count = len(window.queries) * len(window.targets)
    cells = pair_matrix.estimate(task.job, window)
    return cells >= LIVE_CELLS * count and _live_limit(task) > 0


def has_teams(task: Task) -> bool:
    """Whether windows may have teams of queries: they are scored in 8 bits, and the
    paths found in live parts of tables."""
    return partition.may_have_teams(task) and eight_bit_limit(task) > 0


def pairs_by_query(task: Task) -> tuple[np.ndarray, np.ndarray]:
    """Find the zipped pairs, such as hits of a search, whose query is that of
    ``SAME_QUERY`` neighbours or more, and which are filled as windows of that query:
    the first pair of each one's query, int64 (P,), and the pairs, int64 (P,)."""
    count, none = task.job.pairs, np.zeros(0, np.int64)
    excluded = task.kind != "zip" or task.rows is not None or count < SAME_QUERY
    excluded |= task.implementation == "wavefront"
    if excluded or task.job.cells < HIT_CELLS * count:
        return none, none
    if max(task.job.most) > MAX_LIVE_LETTERS // 2 or not _live_limit(task):
        return none, none
    codes, lengths = task.queries.codes, task.queries.lengths
    spans = list(zip(task.queries.starts.tolist(), lengths.tolist(), strict=True))
    same = np.append(False, lengths[1:] == lengths[:-1])
    for k in np.flatnonzero(same).tolist():
        (first, n), (second, _) = spans[k - 1], spans[k]
        same[k] = np.array_equal(codes[first : first + n], codes[second : second + n])
    first = np.maximum.accumulate(np.where(same, 0, np.arange(count)))
    repeats = np.bincount(first, minlength=count)[first]
    (pairs,) = np.nonzero(repeats >= SAME_QUERY)
    return first[pairs], pairs


class Differences(NamedTuple):
    """How global tables are filled by differences
    (``pairs/dp/sweep/difference_fill.py``)."""

    cell: str  # dtype of a difference
    base: int  # score * base + matches is filled; 1 of a score alone
    opening: int  # to open a gap, beside its residues: a constant of the program


def eight_bit_differences(task: Task, window: Window) -> Differences | None:
    """Choose how to fill a window by differences: scores in 8 bits, identities in 16.
    None if its tables hold scores themselves."""
    ends = {"query_end", "target_end"} & set(task.free)
    identity = task.output == "identity"
    excluded = bool(task.scoring.by_position or task.scoring.tracks)
    excluded |= task.mesh is not None
    # What lanes look up takes longer than the cells of short sequences.
    excluded |= window.zipped and (task.paths or window.lanes == SHORT_PAIRS)
    if task.mode == "local" or ends or excluded:
        return None
    if not ((task.large or identity) and _on_cpu(task)):
        return None
    scoring, cell, base = task.scoring, "uint8", 1
    if identity:
        cell, base = "uint16", bounds.differences_base(scoring, "uint16")
        fits = min(window.m, window.n) < base
        fits &= task.dtype(window.m, window.n) == "int32"
    else:
        fits = bounds.fits_differences(scoring, cell, task.paths)
    if window.zipped:
        fits &= bounds.fits_bytes(scoring, base)
    opening = base * (scoring.open - scoring.extend)
    return Differences(cell, base, opening) if fits else None


def room_of(task: Task) -> Room:
    """The bytes that windows of a task may have, of the widest dtypes that these are
    filled in."""
    profiles: dict[str, int] = {}

    def score_bytes(window: Window) -> ScoreBytes:
        dtype = task.dtype(window.m, window.n)
        if dtype not in profiles:
            tracks = 1 if task.scoring.tracks is None else 2  # a profile of each
            profiles[dtype] = tracks * _problem(task, dtype).scores.dtype.itemsize
        cells, size = eight_bit_differences(task, window), np.dtype(dtype).itemsize
        if cells is not None:
            return ScoreBytes(np.dtype(cells.cell).itemsize, size)
        return ScoreBytes(profiles[dtype], size)

    return Room(task.window_budget, score_bytes)


def to_be_tried(worker: Worker) -> bool:
    """Whether a thread tries its next window in 8 bits."""
    worker.windows_to_skip -= 1
    return worker.windows_to_skip < 0


def too_many(worker: Worker, beyond: int, pairs: int) -> bool:
    """Whether so many pairs of a window overflow 8 bits that it is filled again; then
    the thread does not try its next windows."""
    if beyond * MAX_OVERFLOW_RATIO <= pairs:
        return False
    worker.windows_to_skip = WINDOWS_SKIPPED
    return True


STATIC_FIELDS = (
    "lanes", "rows", "columns", "longest", "slots", "places", "capacity", "zipped",
    "team",
)  # fmt: skip
live_reach = stored(live_part.reach, ("costs", "fused"))
load_block = stored(window_program.load_block, ("shared", "differences"))
run_window_program = stored(window_program.run_window, window_program.STATIC)


def pieces_of(task: Task, blocks: list[Window]) -> list[Piece]:
    """Make a piece of each window; windows of one program form a group."""
    return [
        Piece(
            task,
            window,
            pair_matrix.estimate(task.job, window),
            compute_window,
            scores_of_window,
            (*(getattr(window, name) for name in STATIC_FIELDS),
             task.dtype(window.m, window.n)),
        )
        for window in blocks
    ]  # fmt: skip


def pair_pieces_of(task: Task, pairs: list[tuple[int, int]]) -> list[Piece]:
    """Make a piece of each pair."""
    lengths = task.queries.lengths, task.targets.lengths
    cells = [int(lengths[0][i] * lengths[1][j]) for i, j in pairs]
    every = zip(pairs, cells, strict=True)
    return [Piece(task, pair, n, compute_pair, scores_of_pair) for pair, n in every]


def regroup(task: Task, queries: np.ndarray, targets: np.ndarray) -> list[Piece]:
    """Make pieces, heaviest first, of the pairs of a search: each query against its
    targets, with few programs."""
    room = room_of(task)
    return _heaviest_first(task, partition.regroup(task.job, queries, targets, room))


def pieces_beyond(run: Run) -> list[Piece]:
    """Make pieces of the pairs of a run whose path is in the live part of their table,
    and empty ``run.live``; where there are none, of those to be aligned as a whole, by
    similar lengths, and empty ``run.beyond``."""
    live, run.live = run.live, []
    pieces: list[Piece] = []
    for task in dict.fromkeys(task for task, _ in live):
        ends = np.concatenate([ends for owner, ends in live if owner is task], axis=1)
        # A group takes as long as its longest live part, which grows with the score and
        # with the span of the end.
        key = ends[2] + ends[4] - ends[3] + ends[6] - ends[5]
        ends = ends[:, np.argsort(-key, kind="stable")]
        for first in range(0, ends.shape[1], LIVE_PAIRS):
            part = LiveEnds(*ends[:, first : first + LIVE_PAIRS])
            pieces.append(Piece(task, part, len(part.query), compute_live))
    if pieces:
        return pieces
    beyond, run.beyond = run.beyond, []
    for task in dict.fromkeys(task for task, _ in beyond):
        sides = zip(*(pairs for owner, pairs in beyond if owner is task), strict=True)
        pairs_task = zipped(task, *(np.concatenate(side) for side in sides))
        split = partition.cut(pairs_task.job, room_of(pairs_task), few_programs=True)
        if task.implementation is None:
            split = partition.without_lone(pairs_task.job, split)
            in_rows, single = lone_pairs(pairs_task, split.pairs)
            pieces, split = [*pieces, *in_rows], split._replace(pairs=single)
        pieces += _heaviest_first(pairs_task, split)
    return pieces


def _heaviest_first(task: Task, split: pair_matrix.Partition) -> list[Piece]:
    if task.implementation is None and task.scoring.gap_costs is None:
        split = partition.without_lone(task.job, split)
    single = pair_pieces_of(task, split.pairs)
    cost = [partition.swept_cells(task.job, window) for window in split.blocks]
    cost += [partition.LONE_CELL_COST[0] * piece.cells for piece in single]
    pieces = [*pieces_of(task, split.blocks), *single]
    return [pieces[k] for k in pair_matrix.heaviest_first(cost)]


def compute_window(run: Run, worker: Worker, piece: Piece) -> None:
    """Compute a window and store its rows in the run. It is tried in 8 bits where that
    pays; the few pairs that overflow go to ``run.beyond``."""
    task, window = piece.task, piece.content
    of_hits = task.kind == "zip" and not window.zipped
    high = 0 if window.zipped else eight_bit_limit(task)
    is_live = high > 0 and has_live_part(task, window)
    tried = high and (task.large or is_live) and to_be_tried(worker)
    if of_hits or window.team > 1 or (tried and is_live):
        dtype = "int16" if of_hits else "int8"
        if (scored := _live_ends(task, window, worker, dtype)) is not None:
            cells, ends, beyond = scored
            run.live.append((task, ends))
            if len(beyond[0]):
                run.beyond.append((task, beyond))
            return worker.report_progress(cells)
    elif tried:
        rows, beyond = _narrow_rows(task, window, worker, high)
        if rows is not None:
            if len(beyond[0]):
                run.beyond.append((task, beyond))
            return _put(run, worker, rows)
    _put(run, worker, run_window(task, window, worker))


class LiveEnds(NamedTuple):
    """Pairs, their scores, and half-open spans of both that the last residue of their
    paths is in: int32 (P,) each."""

    query: np.ndarray
    target: np.ndarray
    score: np.ndarray
    query_first: np.ndarray
    query_end: np.ndarray
    target_first: np.ndarray
    target_end: np.ndarray


def _live_ends(task: Task, w: Window, worker: Worker, dtype: str):
    """Score a window in 8 bits, or hits in 16: (cells, LiveEnds as an array, the pairs
    beyond), or None if too many pairs overflow 8 bits, and others can do with them."""
    high = _live_limit(task)
    if dtype == "int8":
        high = _highest_byte(task, paths=False)
    with precision(dtype):
        result, met = _on_device(task, w, worker, dtype, strips=True)
        result = jax.tree.map(np.asarray, result)
    q, t = np.nonzero(met.mask)
    i, j, flip = (x[q, t] for x in (met.query, met.target, met.swapped))
    score, region = result.score[q, t], [x[q, t] for x in result.region]
    over = score > high
    narrow = dtype == "int8" and w.team == 1
    if narrow and too_many(worker, over.sum(), len(over)):
        return None
    # Strips and tiles as spans of residues; of a pair that scores 0, empty ones
    first_strip, last_strip, first_tile, last_tile = (
        x.astype(np.int32) for x in region
    )
    m = task.job.query_lengths[i]
    before = (w.last - task.job.target_lengths[w.targets])[t]
    positive = score > 0
    rows = first_strip * STRIP_ROWS, np.minimum((last_strip + 1) * STRIP_ROWS, m)
    columns = np.maximum(first_tile * TILE - before, 0), (last_tile + 1) * TILE - before
    sides = [x * positive for x in (*rows, *columns)]
    turned = sides[2:] + sides[:2]
    sides = [np.where(flip, *x) for x in zip(turned, sides, strict=True)]
    pairs = np.where(flip, j, i), np.where(flip, i, j)
    ends = np.stack([*pairs, score, *sides]).astype(np.int32)
    return cells_of(task, met), ends[:, ~over], tuple(x[over] for x in pairs)


def compute_live(run: Run, worker: Worker, piece: Piece) -> None:
    """Find the live parts of the tables of some pairs, fill these and store the rows.
    Pairs that may reach back too far are aligned as a whole."""
    task, ends = piece.task, piece.content
    starts, beyond = _live_starts(task, ends)
    stops = ends.query_end, ends.target_end
    longest = np.maximum(*(end - x for x, end in zip(starts, stops, strict=True)))
    beyond |= longest > BOX_SIZES[-1]
    longest[beyond] = NEVER
    for size, below in zip(BOX_SIZES, (-1, *BOX_SIZES), strict=False):
        (boxed,) = np.nonzero((longest > below) & (longest <= size))
        part, sides = zipped(task, ends.query[boxed], ends.target[boxed]), {}
        for name, start, end in zip(("queries", "targets"), starts, stops, strict=True):
            side, start = getattr(part, name), start[boxed]
            lengths = end[boxed] - start
            sides[name] = SequenceViews(side.codes, side.starts + start, lengths)
        whole = pair_matrix.WholeJob((size, size), 0, max(len(boxed), 1), 0)
        # Rows come by their numbers in this list, to be shifted
        sides |= {"rows": np.arange(len(boxed)), "whole": whole, "window": BOX_LANES}
        boxes = replace(part, **sides)
        split = partition.cut(boxes.job, room_of(boxes), few_programs=True)
        rows_of_boxes = [run_window(boxes, window, worker) for window in split.blocks]
        rows_of_boxes += [run_pair(boxes, pair) for pair in split.pairs]
        for rows in rows_of_boxes:
            shifts = (x[boxed[rows.at]] for x in starts for _ in range(2))
            for name, shift in zip(SPANS, shifts, strict=True):
                rows.columns[name] = rows.columns[name] + shift
            run.output.put(rows._replace(at=part.rows[rows.at]))
    if beyond.any():
        run.beyond.append((task, (ends.query[beyond], ends.target[beyond])))


def _live_starts(task: Task, ends: LiveEnds) -> tuple[list[np.ndarray], np.ndarray]:
    """Where the live parts begin, of queries and of targets, and which pairs have
    longer ones than ``live_part.LETTERS``: int64 (P,), int64 (P,), bool (P,)."""
    lanes, room = live_part.LANES, live_part.LETTERS
    size, pad = LIVE_GROUPS * lanes, task.scoring.alphabet.size
    sides = (
        (task.queries, ends.query, ends.query_first, ends.query_end),
        (task.targets, ends.target, ends.target_first, ends.target_end),
    )
    turned = [side.codes[::-1] for side, *_ in sides]
    costs = Gaps(task.scoring.open, task.scoring.extend)
    scores = task.scoring.scores.astype(np.int8)
    starts, beyond = [np.zeros(len(ends.query), np.int64) for _ in sides], []
    for first in range(0, len(ends.query), size):
        chunk = slice(first, first + size)
        count = len(ends.query[chunk])
        letters, spans = [], []
        for codes, (side, which, span_start, end) in zip(turned, sides, strict=True):
            last = len(codes) - side.starts[which[chunk]] - end[chunk]
            view = SequenceViews(codes, last, np.minimum(end[chunk], room))
            letters.append(stacked(view, np.arange(count), pad, (size, room)))
            span = np.minimum(end[chunk] - span_start[chunk] - 1, room)
            spans.append(np.pad(span, (0, size - count)))
        score = np.pad(ends.score[chunk], (0, size - count))
        arrays = *letters, *(x.astype(np.int16) for x in (score, *spans))
        arrays = [x.reshape(LIVE_GROUPS, lanes, *x.shape[1:]) for x in arrays]
        groups = np.int32(-(-count // lanes))
        with precision("int16"):
            inputs = live_part.LivePairs._make(arrays), scores, groups
            reach = live_reach(*inputs, costs=costs, fused=True)
        reach = [np.asarray(x).reshape(-1)[:count] for x in reach]
        beyond.append(reach[2])
        for start, length, (*_, end) in zip(starts, reach[:2], sides, strict=True):
            start[chunk] = np.maximum(end[chunk] - length, 0)
    longer = np.maximum(ends.query_end, ends.target_end) > room
    return starts, (np.concatenate(beyond) > 0) & longer


def compute_pair(run: Run, worker: Worker, piece: Piece) -> None:
    """Compute a single pair and store its row in the run."""
    _put(run, worker, run_pair(piece.task, piece.content))


def run_pair(task: Task, pair: tuple[int, int]) -> Rows:
    """One pair by anti-diagonals, in checkpointed strips where it is long."""
    result, dtype = _alone(task, *pair)
    return of_pair(task, pair, result, np.dtype(dtype))


def _put(run: Run, worker: Worker, rows: Rows) -> None:
    run.output.put(rows)
    worker.report_progress(rows.cells)


def scores_of_window(_run: Run, worker: Worker, piece: Piece) -> Iterator[PieceScores]:
    """The scores of a window of a search."""
    window = piece.content
    scores = window_scores(piece.task, window, worker)
    yield PieceScores(window.queries, window.targets, *scores)


def scores_of_pair(_run: Run, _worker: Worker, piece: Piece) -> Iterator[PieceScores]:
    """The score of a pair of a search; with costs by position, by rows: those are the
    pairs that are too long for a window."""
    task = piece.task
    i, j = (np.array([side]) for side in piece.content)
    if task.scoring.gap_costs is not None:
        windows = by_rows.partition(task, MAX_WINDOW_BYTES, [piece.content])
        assert windows is not None
        score, dtype = by_rows.rows_of(task, windows[0]).columns["score"][0], "int32"
    else:
        result, dtype = _alone(task, *piece.content)
        score = result.score
    with precision(dtype):
        score = jnp.full((1, 1), score, dtype)
    yield PieceScores(i, j, score)


def problem_of(
    scoring: Scoring, free: frozenset, dtype: str, identity: bool = False,
    base: int | None = None,
) -> WindowProblem:  # fmt: skip
    """Scores and gaps of the proven dtype, in NumPy: a program takes them sooner than
    the device has them one by one."""
    scores, *gaps = bounds.scaled(scoring, dtype, identity, base)
    pad = gaps[0]
    small = dtype != "int64" and np.abs(scores).max(initial=0) < 128 and pad < 128
    wildcard, costs = scoring.alphabet.wildcard_code, None
    if scoring.gap_costs is not None:
        costs = np.stack(scoring.gap_costs).astype(dtype)
        costs = np.pad(costs, ((0, 0), (0, len(scores) - costs.shape[1])))
    return WindowProblem(
        np.asarray(scores, "int8" if small else dtype),
        Gaps(*(np.asarray(g, dtype) for g in gaps)),
        {end: np.asarray(end in free) for end in FREE_ENDS},
        np.asarray(wildcard, np.int32),
        costs,
    )


def _problem(task: Task, dtype: str, base: int | None = None):
    identity = task.output == "identity"
    return problem_of(task.scoring, task.free, dtype, identity, base)


def run_window(task: Task, w: Window, worker: Worker) -> Rows:
    """All pairs of a window, in the backtrack buffer of a thread."""
    dtype = task.dtype(w.m, w.n)
    with precision(dtype):
        result, met = _on_device(task, w, worker, dtype)
        result = jax.tree.map(np.asarray, result)
    return collect(task, result, met)


def _narrow_rows(task: Task, w: Window, worker: Worker, high: int):
    """Compute a window in 8 bits: (rows, overflow). The rows are of the pairs that
    score at most ``high``; the overflow is (queries, targets) in input orientation.
    Both are None if too many pairs overflow."""
    with precision("int8"):
        result, met = _on_device(task, w, worker, "int8")
        result = jax.tree.map(np.asarray, result)
    shape = met.mask.shape
    over = met.mask & (result.score[: shape[0], : shape[1]] > high)
    if too_many(worker, over.sum(), met.mask.sum()):
        return None, None
    i, j, flip = (x[over] for x in (met.query, met.target, met.swapped))
    rows = collect(task, result, met._replace(mask=met.mask & ~over))
    rows = rows._replace(cells=cells_of(task, met))
    return rows, (np.where(flip, j, i), np.where(flip, i, j))


def window_scores(task: Task, w: Window, worker: Worker):
    """Score a window of a ``cross`` job, in 8 bits first where ``worker.byte_limit`` is
    not 0.

    Returns scores : integers (slots, places), left on the device; beyond : (queries,
    targets) or None, indices of the pairs whose score 8 bits do not hold; it is -1
    there.
    """
    if worker.byte_limit and to_be_tried(worker):
        narrow = _scores(task, w, worker, "int8")
        score, over = _beyond(narrow, np.int16(worker.byte_limit))
        count = len(w.queries), len(w.targets)
        q, t = np.nonzero(np.asarray(over)[: count[0], : count[1]])
        if not too_many(worker, len(q), count[0] * count[1]):
            return score, (w.queries[q], w.targets[t])
    return _scores(task, w, worker, task.dtype(w.m, w.n)), None


def _scores(task: Task, w: Window, worker: Worker, dtype: str):
    with precision(dtype):
        return _on_device(task, w, worker, dtype)[0].score


@program()
def _beyond(score: jax.Array, high: jax.Array):
    """Replace scores above ``high`` by -1, and mark them."""
    over = score > high
    return jnp.where(over, -1, score), over


class WindowInputs(NamedTuple):
    """The inputs of the program of a window, as host arrays."""

    block: Block
    queries: np.ndarray
    m: np.ndarray
    start: np.ndarray
    count: np.int32
    tie: np.ndarray
    member: np.ndarray | None


def block_of(task: Task, w: Window) -> Block:
    """The targets in their lanes, without their scores."""
    pad = task.scoring.alphabet.padding
    # An odd number of cache lines a lane: of a power of two, the lines of a column all
    # fall into the same few sets of the cache, and turning it takes five times as long.
    stride = (-(-w.columns // CACHE_LINE) | 1) * CACHE_LINE
    codes = np.full((w.lanes, stride), pad, task.targets.codes.dtype)
    target = np.zeros((w.lanes, w.columns // TILE), np.int32)
    begins = np.zeros(target.shape, bool)
    lane, first, length = (np.zeros(w.places, np.int32) for _ in range(3))
    count = len(w.targets)
    source = task.targets.starts[w.targets]
    lane[:count], length[:count] = w.lane, task.job.target_lengths[w.targets]
    first[:] = TILE  # places that stay empty: a target of no residues in tile 0
    first[:count] = w.last - length[:count]
    first_tile = np.minimum(first[:count], w.last - 1) // TILE
    begins[w.lane, first_tile] = True
    tiles = w.last // TILE - first_tile
    at = w.lane * target.shape[1] + first_tile - (np.cumsum(tiles) - tiles)
    at = np.repeat(at, tiles) + np.arange(tiles.sum())
    target.reshape(-1)[at] = np.repeat(np.arange(count), tiles)
    letters, flat = task.targets.codes, codes.reshape(-1)
    to = first[:count] + w.lane * stride
    places = zip(to.tolist(), source.tolist(), length[:count].tolist(), strict=True)
    for i, j, n in places:
        flat[i : i + n] = letters[j : j + n]
    origin = first[target]
    tiles = np.int32(w.last.max(initial=TILE) // TILE)
    codes = codes[:, : w.columns]
    by_row = [np.ascontiguousarray(x.T) for x in (codes, target, origin, begins)]
    places = lane, first, length
    return Block._make([*by_row, *places, tiles, np.int32(count), None])


def window_inputs(task: Task, w: Window, met: WindowPairs) -> WindowInputs:
    """Host inputs of the program of a window with pairs ``met``."""
    # Codes (Q, M, W) and lengths (Q, W) of the rows of queries
    wide = w.lanes if w.zipped else w.team
    codes = stacked(task.queries, w.queries, shape=(w.slots * wide, w.rows))
    m = np.zeros(len(codes), np.int32)
    m[: len(w.queries)] = task.queries.lengths[w.queries]
    codes = codes.reshape(w.slots, wide, w.rows).transpose(0, 2, 1)
    queries, m = np.ascontiguousarray(codes), m.reshape(w.slots, wide)
    start = np.zeros(w.slots, np.int32)
    start[: len(met.mask)] = met.mask.argmax(axis=1)
    tie = np.zeros((w.slots, w.places), bool)
    tie[: len(met.swapped), : met.swapped.shape[1]] = met.swapped
    count = np.int32(len(met.mask))
    member = None
    if w.team > 1:
        member = np.zeros((w.slots, w.places), np.uint8)
        place = task.job.rank[met.query] - task.job.rank[w.targets[0]]
        member[: len(place), : place.shape[1]] = place % w.team
    return WindowInputs(block_of(task, w), queries, m, start, count, tie, member)


def reused(
    array: jax.Array | None, shape: tuple[int, ...], dtype: jax.typing.DTypeLike
) -> jax.Array:
    """The last array of a thread, to be written over, where it has the right shape."""
    if array is None or (array.shape, array.dtype) != (shape, dtype):
        return jnp.zeros(shape, dtype)
    return jnp.zeros(shape, dtype) if array.is_deleted() else array


def _on_device(task: Task, w: Window, worker: Worker, dtype: str, strips: bool = False):
    """(device result, the pairs it holds). Of a task of paths, ``strips`` asks for
    scores and the regions of their ends alone."""
    by_differences = task.large or task.output == "identity"
    cells = eight_bit_differences(task, w) if by_differences else None
    problem = _problem(task, dtype, None if cells is None else cells.base)
    met = task.job.meets(w)
    block, *inputs, member = window_inputs(task, w, met)
    shared = not w.zipped and not task.scoring.by_position
    cpu, costs = _on_cpu(task), None
    # Gap costs as constants of the program: local scores are then a third faster on a
    # CPU (``pairs/dp/sweep/lane_cells.py``), and other costs take another program,
    # which pays for a large job alone. Only such programs give strips.
    scores_alone = task.local and task.output == "score" and not w.zipped
    usual = (task.scoring.open, task.scoring.extend) == USUAL_COSTS
    by_position = task.scoring.gap_costs is not None  # which no other program has
    if strips or by_position or (scores_alone and (task.large or usual) and cpu):
        zero = bounds.least_zero(task.scoring, dtype) if dtype == "int8" else 0
        costs = Constants(task.scoring.open, task.scoring.extend, zero)
        if by_position:  # a program that profiles share
            costs = Constants(0, 0, zero)
    differences = None if cells is None else cells.cell
    room = None
    if shared and cpu:
        dtype_of_room = differences or problem.scores.dtype
        *tracks, _, letters = problem.scores.shape
        shape = *tracks, letters + 1, w.columns + 2, w.lanes
        room = reused(worker.profile, shape, dtype_of_room)
    block = load_block(
        block, problem, task.local, shared=shared, room=room, differences=differences
    )
    worker.profile = block.scores if shared else None
    paths = task.paths and not strips
    result, backtrack = run_window_program(
        block,
        *inputs,
        problem,
        reused(worker.backtrack, (w.capacity,), np.uint8) if paths else None,
        local=task.local,
        rows=STRIP_ROWS,
        longest=w.longest,
        paths=paths,
        steps=paths and task.output == "alignment",
        fused=cpu,
        costs=costs,
        opening=None if cells is None else cells.opening,
        base=1 if cells is None else cells.base,
        strips=strips,
        member=member,
    )
    worker.backtrack = backtrack if paths else worker.backtrack
    if cells is not None and cells.base > 1:
        # Scores of identities of another base, with that of their dtype.
        scores, matches = np.divmod(np.asarray(result.score), cells.base)
        result = result._replace(score=scores * bounds.IDENTITY_BASE[dtype] + matches)
    return result, met


def _alone(task: Task, i: int, j: int):
    """(long_pair.PairResult, dtype) of one pair."""
    query, target = task.queries[i], task.targets[j]
    dtype = task.dtype(len(query), len(target))
    result_dtype = "int32" if dtype == "int16" else dtype  # what its indices are anyway
    rows = long_pair.strip_rows(len(query), len(target), task.window_budget)
    fused = _on_cpu(task)

    def aligned(tried: str, high: int | None) -> Any:
        with precision(tried):
            return long_pair.align_long(
                query, target, _problem(task, tried), task.local, task.paths, rows,
                fused=fused, high=high,
            )  # fmt: skip

    if not fused:
        return aligned(result_dtype, None), result_dtype
    # int16 takes half the time, and lengths alone seldom prove that it holds a pair.
    high = bounds.narrow_high(task.scoring, task.mode, "int16")
    pair = None
    if dtype == "int32" and high and task.output != "identity":
        pair = aligned("int16", high)
    return aligned(dtype, None) if pair is None else pair, result_dtype


def run_mesh(run: Run, worker: Worker) -> None:
    """Compute all pieces of a run on a mesh; pieces without a group run one by one."""
    task, groups = run.plan.task, {}
    for piece in run.plan.pieces:
        groups.setdefault(piece.group, []).append(piece)
    for piece in groups.pop(None, []):
        piece.compute(run, worker, piece)
    count, identity = task.mesh.devices.size, task.output == "identity"
    for (*_, dtype), pieces in groups.items():
        for first in range(0, len(pieces), count):
            windows = [piece.content for piece in pieces[first : first + count]]
            met = [task.job.meets(w) for w in windows]
            pairs = zip(windows, met, strict=True)
            inputs = [window_inputs(task, w, of_window) for w, of_window in pairs]
            # A device without a window gets one of which no query is to be computed.
            inputs += [inputs[-1]._replace(count=np.int32(0))] * (count - len(inputs))
            stacked = jax.tree.map(lambda *values: np.stack(values), *inputs)
            with precision(dtype):
                stacked_results = _spmd(
                    stacked,
                    problem_of(task.scoring, task.free, dtype, identity),
                    mesh=task.mesh,
                    local=task.local,
                    shared=not windows[0].zipped,
                    capacity=windows[0].capacity if task.paths else None,
                    longest=windows[0].longest,
                    paths=task.paths,
                    steps=task.output == "alignment",
                )
            stacked_results = jax.tree.map(np.asarray, stacked_results)
            for k, of_window in enumerate(met):
                window_result = jax.tree.map(lambda x, k=k: x[k], stacked_results)
                _put(run, worker, collect(task, window_result, of_window))


@partial(
    jax.jit,
    static_argnames=(
        "mesh", "local", "shared", "capacity", "longest", "paths", "steps",
    ),
)  # fmt: skip
def _spmd(
    stacked: WindowInputs,
    problem: window_program.WindowProblem,
    *,
    mesh: Mesh,
    local: bool,
    shared: bool,
    capacity: int | None,
    **static: Any,
):
    """One window a device: results with the leading axis of the inputs."""
    over = PartitionSpec(mesh.axis_names)

    @partial(
        jax.shard_map,
        mesh=mesh,
        in_specs=(over, PartitionSpec()),
        out_specs=over,
        check_vma=False,
    )
    def each(stacked: WindowInputs, problem: window_program.WindowProblem):
        block, *query_inputs, _ = jax.tree.map(lambda values: values[0], stacked)
        block = unwrap(window_program.load_block)(block, problem, local, shared)
        backtrack = None if capacity is None else jnp.zeros(capacity, jnp.uint8)
        window_results, _ = unwrap(window_program.run_window)(
            block,
            *query_inputs,
            problem,
            backtrack,
            local=local,
            rows=STRIP_ROWS,
            fused=mesh.devices.flat[0].platform == "cpu",
            **static,
        )
        return jax.tree.map(lambda values: values[None], window_results)

    return each(stacked, problem)


def _filled_table(
    a: np.ndarray,
    b: np.ndarray,
    scoring: Scoring,
    mode: str,
    free: frozenset,
    codes: bool = False,
    tables: bool = False,
):
    refuse_without_threads()
    local = mode == "local"
    dtype = bounds.score_dtype(len(a), len(b), scoring, mode, widest=True)
    rows, columns = bucket(len(a)), bucket(len(b))
    query, target = np.zeros(rows, np.int32), np.zeros(columns, np.int32)
    query[: len(a)], target[: len(b)] = a, b
    with precision(dtype):
        problem = problem_of(scoring, free, dtype)
        top = wavefront.top_border(
            columns, problem.free["target_start"] | local, problem.gaps
        )
        room = wavefront.empty_codes(rows, columns) if codes else None
        args = (query, target, len(a), len(b), 0, top, problem, None, room)
        return long_pair.fill_strip(*args, local=local, tables=tables)


def whole_table(
    a: np.ndarray, b: np.ndarray, scoring: Scoring, mode: str, free: frozenset
):
    """(H, E, F) of codes a (m,), b (n,): (m + 1, n + 1), int32, or int64 if needed."""
    filled = _filled_table(a, b, scoring, mode, free, tables=True)
    inside = np.s_[: len(a) + 1, : len(b) + 1]
    return tuple(np.asarray(table)[inside] for table in filled.tables)


def directions_of(
    a: np.ndarray, b: np.ndarray, scoring: Scoring, mode: str, free: frozenset
) -> dict:
    """The four boolean matrices (m, n) and ``words`` uint32 (ceil(m / 8), n)."""
    codes = _filled_table(a, b, scoring, mode, free, codes=True).codes
    words = wavefront.words_of(codes, bucket(len(b)))
    words = words[: -(-len(a) // 8), : len(b)]
    matrices = directions.split(directions.unpack(words)[: len(a)])
    arrays = {name: np.asarray(matrix) for name, matrix in matrices.items()}
    return arrays | {"words": np.asarray(words)}
