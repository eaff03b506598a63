"""The pair matrix cut into windows: sorted by length, under a memory budget.

Sequences are sorted longest first, and the targets of a block packed into its lanes one
after the other, so little of it is padding; results go back to input order.

Lanes hold targets of any lengths one after the other, or a pair each.
"""

from collections.abc import Callable
from dataclasses import replace
from heapq import heapreplace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from jaxalign.model import bounds
from jaxalign.pairs.dp.sweep import TILE
from jaxalign.pairs.pair_matrix import PairMatrix, Partition, Window, pairs
from jaxalign.runtime.devices import bucket, by_length

if TYPE_CHECKING:
    from jaxalign.pairs.plan import Task

EMPTY_COLUMN_LANES = 32  # lanes that a column costs as much as, even with none
# Blocks of the fewest lanes that one of the most is cut into, for each of its queries
MAX_KNOWN_BLOCKS = 256
SHORT = 32  # letters of short sequences
SHORT_PAIRS = 2048  # of those in a window: a call takes as long as 1,000 of them
# (lengths, lanes, limit) -> lane, last: a block is packed to find where it ends, then
# shaped.
_known: dict[tuple[bytes, int, int | None], tuple[np.ndarray, np.ndarray]] = {}


def tiled(lengths: np.ndarray | int):
    """Columns that targets take."""
    return TILE * np.maximum(1, -(-np.asarray(lengths) // TILE))


def pack(lengths: np.ndarray, lanes: int, limit: int | None = None):
    """Targets, longest first, one after the other into the lane with the most room.

    Each begins a tile, so it takes a multiple of TILE columns, and one at least.
    Starts never decrease along the order. With a ``limit`` of columns, as many targets
    as fill the lanes best.

    Returns lane, last : int32 (T,), not to be written to, the lane of each, and the
    column after its last.
    """
    lengths = np.asarray(lengths, np.int64)
    packed = _known.get((lengths.tobytes(), lanes, limit))
    if packed is None:
        heap = [(0, lane) for lane in range(lanes)]
        lane, last, area, top = [], [], 0, 0
        best, count = 0.0, 0
        for length, columns in zip(
            lengths.tolist(), tiled(lengths).tolist(), strict=True
        ):
            used, number = heap[0]
            end = used + columns
            if limit and end > limit and lane:
                break
            heapreplace(heap, (end, number))
            lane.append(number)
            last.append(end)
            area, top = area + length, end if end > top else top
            if area >= 0.97 * best * top:
                best, count = max(best, area / top), len(lane)
        count = len(lane) if len(lane) == len(lengths) else count
        packed = np.array(lane[:count], np.int32), np.array(last[:count], np.int32)
        for array in packed:
            array.flags.writeable = False
        if len(_known) >= MAX_KNOWN_BLOCKS:  # threads may have added one each
            _known.clear()
        _known[lengths[: len(packed[0])].tobytes(), lanes, None] = packed
        _known[lengths.tobytes(), lanes, limit] = packed
    return packed


def spans(lengths: np.ndarray, lanes: int) -> np.ndarray:
    """Columns that a query sweeps to meet target t and all shorter ones: int64 (T,),
    from the first column of target t to the last column of any of them."""
    _, last = pack(lengths, lanes)
    ends = np.maximum.accumulate(last[::-1])[::-1]
    return np.asarray(ends - (last - tiled(lengths)), np.int64)


def alike(m: np.ndarray, n: np.ndarray, lanes: int) -> np.ndarray:
    """Pairs of lengths (P,) in the best of some orders for windows of so many: by
    cells, which suits sides of like lengths, or by one side in groups of windows, and
    in each group by the other, which suits few queries that meet many targets."""
    windows = -(-len(m) // lanes)
    size = max(-(-windows // max(round(windows**0.5), 1)), 1) * lanes
    orders = [by_length(m * (n + 1))]
    for first, second in ((m, n), (n, m)):
        order = by_length(first)
        groups = [order[k : k + size] for k in range(0, len(order), size)]
        orders.append(
            np.concatenate([x[by_length(second[x])] for x in groups or [order]])
        )

    def filled(order: np.ndarray):
        starts = np.arange(0, len(order), lanes)
        largest = (np.maximum.reduceat(x[order], starts) for x in (m, n))
        return int(np.prod([*largest], axis=0).sum()) if len(order) else 0

    return min(orders, key=filled)


STRIP_ROWS = 8  # rows of a strip: one uint32 backtrack word (docs/logs/cpu-sweep.md)
LANES = (256, 128, 16)  # 128 beat all narrower blocks; 16 is for small memory
WINDOW_QUERIES = 32  # rows of queries of a window at most
# Cells of a table, the mean of a window, from which on the live part pays
LIVE_CELLS = 2**16
TEAM_JOB_CELLS = 2 * 10**8  # of a job; less takes a second by rows in NumPy
MAX_LIVE_LETTERS = 2**18  # of a window, whose strips and tiles 16 bits number
# Queries of a team: what its cells cost as much as, beside those of a single query
TEAM_COST = {2: 1.05, 4: 1.4, 8: 2.0}
TEAM_PROGRAM_CELLS = 5 * 10**9  # of a block, whose scores take a third of a second
# Of a block; or half as much again as its longest target, if more
WINDOW_COLUMNS = 1024
SMALL_BACKTRACK_BYTES = 2**22
LARGE_BACKTRACK_BYTES = 2**26
# Cells of a pair; pairs of a window: when to think of each
LONG_PAIR_CELLS, MANY_PAIRS = 2**18, 128
LONE_CELL_COST = (9, 3)  # cells of a lane for one alone; a lane that looks up is slower
# Bytes of a window of the fewest lanes: larger pairs are faster alone
MAX_NARROW_BYTES = 2**30
# Of zipped pairs without paths: rows and columns that there is room for at least,
# unless pairs are short
SHORT_ROOM, MIN_ROOM = 64, 512
STEP_BYTES = 2**25  # operations kept by one window at most


class ScoreBytes(NamedTuple):
    """Bytes of a score in the profile of a window, and in its rows and columns."""

    profile: int = 4
    table: int = 4


class Room(NamedTuple):
    """The bytes that a window may have, and those of its scores."""

    budget: int
    score_bytes: Callable[[Window], ScoreBytes] = lambda _window: ScoreBytes()


def window_bytes(window: Window, steps: bool, room: Room) -> int:
    """Device bytes of a window: profile, boundary rows and columns, backtrack,
    operations. Scores are those of ``room`` where the widest have none."""
    wide = window.lanes * (window.columns + window.rows * window.zipped)
    profile = 0 if window.zipped else 26 * window.lanes * window.columns
    lines = 2 * window.lanes * (window.columns + window.rows)
    size = window.capacity + wide * 6 + 48 * window.slots * window.places
    if steps and window.capacity:
        size += 2 * window.slots * window.places * (window.rows + window.longest)
    scores = ScoreBytes()
    if size + profile * scores.profile + lines * scores.table > room.budget:
        scores = room.score_bytes(window)
    return size + profile * scores.profile + lines * scores.table


def without_lone(job: PairMatrix, split: Partition) -> Partition:
    """Turn windows of few long pairs into single pairs, since most of their lanes would
    be empty. A cell by anti-diagonals costs as much as ``LONE_CELL_COST`` cells of a
    lane."""
    shared, single = [], [*split.pairs]
    for window in split.blocks:
        count = len(window.queries) * (1 if window.zipped else len(window.targets))
        lone = window.m * window.n >= LONG_PAIR_CELLS and count <= MANY_PAIRS
        if lone:
            m, n = job.query_lengths, job.target_lengths
            cells = sum(int(m[i]) * int(n[j]) for i, j in pairs(job, window))
            lone = cells * LONE_CELL_COST[window.zipped] < swept_cells(job, window)
        if lone:
            single += pairs(job, window)
        else:
            shared.append(window)
    return Partition(shared, single)


def swept_cells(job: PairMatrix, window: Window) -> int:
    """The cells that a window fills: all of its lanes, to the end of the longest."""
    rows = window.m
    if not window.zipped:
        rows = int(job.query_lengths[window.queries[:: window.team]].sum())
    return rows * int(window.last.max(initial=TILE)) * window.lanes


def least_bytes(job: PairMatrix, i: int, j: int, room: Room) -> int:
    """Bytes of the narrowest window that holds pair (i, j)."""
    q, t = np.array([i]), np.array([j])
    if job.kind == "zip":
        window = _zip_shape(job, q, LANES[-1])
    else:
        window = _shape(job, q, t, LANES[-1])
    return window_bytes(window, job.steps, room)


def cut(
    job: PairMatrix,
    room: Room,
    few_programs: bool = False,
    by_query: tuple[np.ndarray, np.ndarray] | None = None,
    teams: bool = False,
) -> Partition:
    """Windows that there is room for, heaviest first.

    A pair whose backtrack alone exceeds the budget is to be aligned by checkpoints.

    few_programs : zipped pairs, some of another job: all with one program
    by_query : zipped pairs whose scores come first, as ``regroup`` takes them
    teams : scores come first, and those of a block against itself by teams of queries
        where that sweeps fewer cells
    """
    split = Partition([], [])
    if job.kind == "zip":
        # Pairs of similar sizes, one query a lane
        lanes = LANES[1] if job.pairs > LANES[-1] else LANES[-1]
        if max(job.most) <= SHORT and not job.paths and job.pairs > LANES[0]:
            lanes = SHORT_PAIRS
        lanes = job.window or lanes
        zipped = np.arange(job.pairs)
        if by_query is not None and len(by_query[1]):
            scores = replace(job, paths=False, steps=False)
            split = regroup(scores, *by_query, room)
            zipped = np.setdiff1d(zipped, by_query[1])
        lengths = job.query_lengths[zipped], job.target_lengths[zipped]
        order = zipped[alike(*lengths, lanes)]
        for start in range(0, len(order), lanes):
            part = order[start : start + lanes]
            _narrow_zip(job, split, part, lanes, room, few_programs)
        return _same_backtrack(job, split, room) if few_programs else split
    order = queries = by_length(job.target_lengths)
    if job.query_lengths is not job.target_lengths:
        queries = by_length(job.query_lengths)
    # The number of lanes that needs the least time, were all rows alike. In a
    # triangle the fewer lanes, the less in vain.
    lengths, triangle = job.target_lengths[order], job.triangle
    teams &= triangle and len(queries) == len(order)
    teams &= not (job.include_self or job.whole or job.window)

    def cost(lanes: int):
        if triangle:
            swept = spans(lengths, lanes).sum()
        else:  # about what they take packed: all queries sweep to the end
            columns = tiled(lengths)
            swept = max(columns.max(initial=0), columns.sum() / lanes)
        return swept * (lanes + EMPTY_COLUMN_LANES)

    lanes, start = min(LANES[:2], key=cost), 0
    while start < len(order):
        block = order[start : start + _next_block(job, order[start:], lanes)]
        start += len(block)
        below = queries[:start] if triangle else queries
        if teams and (of_block := _in_teams(job, block, room)):
            split.blocks.extend(of_block)
            below = below[: -len(block)]
        # One block of targets against all its queries, in windows of similar rows.
        at = 0
        while at < len(below):
            slots = min(job.window or WINDOW_QUERIES, WINDOW_QUERIES)
            if job.steps:  # fewer, for the room that their operations take
                slots = _shape(job, below[at:], block, lanes).slots
            part = below[at : at + slots]
            _narrow(job, split, part, block, lanes, room)
            at += len(part)
    return _same_backtrack(job, split, room)


def regroup(
    job: PairMatrix, queries: np.ndarray, targets: np.ndarray, room: Room
) -> Partition:
    """Some pairs (P,): each query against its targets, all with few programs. Of a
    ``zip`` job ``targets`` are the pairs, and ``queries`` the first pair of the query.
    """
    split = Partition([], [])
    order = np.lexsort((-job.target_lengths[targets], queries))
    queries, targets = queries[order], targets[order]
    ends = np.flatnonzero(np.diff(queries, append=-1)) + 1
    for start, end in pairwise([0, *ends.tolist()]):
        query, remaining = queries[start : start + 1], targets[start:end]
        while len(remaining):
            count = _next_block(job, remaining, LANES[1])
            part = remaining[:count]
            _narrow(job, split, query, part, LANES[1], room, few_programs=True)
            remaining = remaining[count:]
    return _same_backtrack(job, split, room)


def has_long_tables(job: PairMatrix) -> bool:
    """Whether all pairs of a set have long enough tables for teams, on average."""
    is_long = job.cells >= LIVE_CELLS * job.pairs
    return job.kind == "all" and is_long and max(job.most) <= MAX_LIVE_LETTERS


def may_have_teams(task: "Task") -> bool:
    """Whether a CPU fills windows of a task by teams of queries, where 8 bits hold its
    scores: it is large, and paths are found in live parts of long tables."""
    is_large = task.job.cells >= TEAM_JOB_CELLS
    return is_large and has_long_tables(task.job) and live_limit(task) > 0


def live_limit(task: "Task") -> int:
    """Highest score up to which paths of a task are found in live parts of tables on a
    CPU, 0 where none are."""
    if not task.paths or not task.local or task.filters.min_score is not None:
        return 0
    if task.scoring.by_position or task.scoring.tracks or task.mesh is not None:
        return 0
    if max(task.scoring.highest, -task.scoring.lowest) > np.iinfo("int8").max:
        return 0
    return bounds.narrow_high(task.scoring, task.mode, "int16")


def _in_teams(job: PairMatrix, order: np.ndarray, room: Room) -> list[Window]:
    """Windows of the scores of the sequences of a block against each other, by teams of
    queries; none where that does not pay."""
    lanes, lengths = LANES[1], job.target_lengths[order]
    if _next_block(job, order, lanes) < len(order):
        return []
    swept = {1: float((lengths * spans(lengths, lanes)).sum())}
    for team in TEAM_COST:
        copies = np.repeat(order, team // 2)
        if _next_block(job, copies, lanes) == len(copies):
            columns = pack(job.target_lengths[copies], lanes)[1].max()
            swept[team] = TEAM_COST[team] * int(lengths[::team].sum()) * int(columns)
    team = min(swept, key=lambda team: swept[team])
    # Where other queries meet the block, too, teams take another program.
    price = TEAM_PROGRAM_CELLS if len(order) < len(job.target_lengths) else 0
    if team == 1 or (swept[1] - swept[team]) * lanes < price:
        return []
    scores, block = replace(job, paths=False, steps=False), np.repeat(order, team // 2)
    blocks = []
    for start in range(0, len(order), WINDOW_QUERIES * team):
        part = order[start : start + WINDOW_QUERIES * team]
        window = replace(_shape(scores, part, block, lanes), team=team)
        if (fitted := _fitted(scores, window, room)) is None:
            return []
        blocks.append(fitted)
    return blocks


def _next_block(job: PairMatrix, order: np.ndarray, lanes: int) -> int:
    """Count the next targets, longest first, that make a block."""
    if job.window:
        return job.window
    lengths = job.target_lengths[order]
    room = max(WINDOW_COLUMNS, 3 * int(lengths[0]) // 2 + TILE)
    max_targets = int(np.searchsorted(np.cumsum(tiled(lengths)), lanes * room)) + 1
    return len(pack(lengths[:max_targets], lanes, room)[0])


def _capacity(
    job: PairMatrix, m: int, used: int, rows: int, columns: int, lanes: int
) -> int:
    """Bytes of backtrack, one for 2 cells, of m rows and the columns used. Small ones
    take a whole bucket, so that a small job compiles one program and all parts of a job
    share theirs."""
    if not job.paths:
        return 0
    whole = rows * columns * lanes // 2
    if whole <= (LARGE_BACKTRACK_BYTES if job.whole else SMALL_BACKTRACK_BYTES):
        return whole
    needed = _backtrack(m, used, lanes)
    return bucket(needed, 4 if needed < LARGE_BACKTRACK_BYTES else 2)


def _backtrack(m: int, used: int, lanes: int) -> int:
    return max(1, -(-m // STRIP_ROWS)) * (STRIP_ROWS // 2) * used * lanes


def _same_backtrack(job: PairMatrix, split: Partition, room: Room) -> Partition:
    """Give all windows the largest backtrack size, where it fits: each size is a
    program, and threads reuse their buffer for the next window."""
    capacity = max((window.capacity for window in split.blocks), default=0)
    large = (replace(window, capacity=capacity) for window in split.blocks)
    blocks = [
        same
        if window_bytes(same, job.steps, room) <= _limit(same, room.budget)
        else window
        for window, same in zip(split.blocks, large, strict=True)
    ]
    return Partition(blocks, split.pairs)


def _limit(window: Window, budget: int) -> int:
    return budget if window.lanes > LANES[-1] else min(budget, MAX_NARROW_BYTES)


def _fitted(job: PairMatrix, window: Window, room: Room) -> Window | None:
    """Fit a window within the budget: unchanged, or with the backtrack that there is
    room for (the same for all of its shape, which share a program); None if it does
    not fit."""
    limit = _limit(window, room.budget)
    room = room._replace(budget=limit)
    if window_bytes(window, job.steps, room) <= limit:
        return window
    needed = _backtrack(window.m, int(window.last.max(initial=TILE)), window.lanes)
    spare = limit + window.capacity - window_bytes(window, job.steps, room)
    spare -= spare % (STRIP_ROWS // 2 * TILE * window.lanes)
    capacity = min(window.capacity, spare)
    return replace(window, capacity=capacity) if capacity >= needed else None


def _narrow(
    job: PairMatrix, split: Partition, queries: np.ndarray, block: np.ndarray,
    lanes: int, room: Room, few_programs: bool = False,
):  # fmt: skip
    """Fewer lanes or targets until the window fits; then single pairs."""
    window = _shape(job, queries, block, lanes, few_programs)
    if (fitted := _fitted(job, window, room)) is not None:
        split.blocks.append(fitted)
    elif lanes > LANES[-1]:
        fewer = next(x for x in LANES if x < lanes)
        while len(block):
            count = _next_block(job, block, fewer)
            _narrow(job, split, queries, block[:count], fewer, room, few_programs)
            block = block[count:]
    elif len(block) > lanes:
        for start in range(0, len(block), lanes):
            part = block[start : start + lanes]
            _narrow(job, split, queries, part, lanes, room, few_programs)
    else:
        split.pairs.extend(pairs(job, window))


def _shape(
    job: PairMatrix,
    queries: np.ndarray,
    block: np.ndarray,
    lanes: int,
    few_programs: bool = False,
) -> Window:
    """Shape a window of queries and targets, with coarse buckets for a small job or for
    ``few_programs``."""
    # Few length buckets: a compilation costs more than padding saves, and without
    # operations padding costs next to nothing.
    coarse = (not job.steps or job.cells < 2 * 10**10) or few_programs
    lane, last = pack(job.target_lengths[block], lanes)
    used = int(last.max(initial=TILE))
    m = int(job.query_lengths[queries].max(initial=0))
    n = int(job.target_lengths[block].max(initial=0))
    rows, longest = map(bucket, job.most if coarse else (m, n))
    columns = max(bucket(used, 4 if coarse else 2), longest)
    if few_programs and not job.paths:  # nothing else asks how long a target is
        columns = longest = bucket(used, 16)
    slots = min(job.window or WINDOW_QUERIES, WINDOW_QUERIES)
    common = job.whole and lanes > LANES[-1]  # split: one size for most of them
    places = max(lanes, bucket(len(block), 4, 256 if common else 64))
    if job.whole and (job.kind == "all" or job.size is not None):
        # As much room in every part as a block of the whole takes: a program more is
        # seconds, and tens of megabytes.
        targets, mean = job.whole.targets, job.whole.letters // job.whole.targets
        full = min(-(-targets // lanes), max(WINDOW_COLUMNS // int(tiled(mean)), 1))
        columns = max(columns, bucket(full * int(tiled(mean)), 4 if coarse else 2))
        places = max(places, bucket(min(full * lanes, targets), 4, 64))
    if job.steps:
        slots = min(slots, max(1, STEP_BYTES // (places * (rows + longest))))
        slots = 2 ** int(np.log2(slots))
    capacity = _capacity(job, m, used, rows, columns, lanes)
    sizes = lanes, rows, columns, longest, slots, places, capacity
    return Window(queries, block, lane, last, *sizes, False, m, n)


def _zip_shape(
    job: PairMatrix, part: np.ndarray, lanes: int, few_programs: bool = False
) -> Window:
    m = int(job.query_lengths[part].max(initial=0))
    n = int(job.target_lengths[part].max(initial=0))
    used = int(tiled(n))
    size = bucket(int(tiled(max(job.most))) if few_programs else max(m, used))
    if not job.paths and size > SHORT_ROOM:  # room costs little, and a program seconds
        size = bucket(size, 4, MIN_ROOM)
    capacity = _capacity(job, m, used, size, size, lanes)
    lane = np.arange(len(part), dtype=np.int32)
    last = tiled(job.target_lengths[part]).astype(np.int32)
    sizes = lanes, size, size, size, 1, lanes, capacity
    return Window(part, part, lane, last, *sizes, True, m, n)


def _narrow_zip(
    job: PairMatrix,
    split: Partition,
    part: np.ndarray,
    lanes: int,
    room: Room,
    few_programs: bool = False,
):
    window = _zip_shape(job, part, lanes, few_programs)
    if (fitted := _fitted(job, window, room)) is not None:
        split.blocks.append(fitted)
    elif lanes <= LANES[-1]:
        split.pairs.extend(pairs(job, window))
    else:
        fewer = next(x for x in LANES if x < lanes)
        for start in range(0, len(part), fewer):
            _narrow_zip(
                job, split, part[start : start + fewer], fewer, room, few_programs
            )
