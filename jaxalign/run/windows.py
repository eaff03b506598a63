"""The pair matrix cut into windows: sorted by length, under a memory budget.

A window is a rectangle of the *pair matrix* (2011 gpu-pairalign paper): some queries
against a block of targets in lanes. Sequences are sorted longest first, so lanes of a
block have similar lengths and little of it is padding; results go back to input order.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from heapq import heapreplace
from typing import NamedTuple

import numpy as np

from jaxalign.dp.sweep import TILE

ROWS = 8  # rows of a strip: one uint32 backtrack word; measured in docs/kernels.md
LANES = (256, 128, 16)  # 128 beat all narrower blocks; 16 is for small memory
QUERIES = 32  # rows of queries of a window at most
TEAMS = 1500  # sequences; from here on the triangle's waste is less than a tenth
COLUMNS = 1024  # of a block, where its longest target is not longer
SMALL_BACKTRACK = 2**21  # halves, 4 MB
STEP_BYTES = 2**25  # operations kept by one window at most


@dataclass(frozen=True)
class Window:
    """Indices into the two sets, where each target is, and the static sizes.

    ``zipped``: query k meets target k only (a query a lane). Otherwise a row is one
    query that meets all targets, or a team of two of which each target meets one.
    """

    queries: np.ndarray  # longest first
    targets: np.ndarray
    lane: np.ndarray  # of each target
    last: np.ndarray  # one beyond its last column: a multiple of TILE
    lanes: int
    rows: int  # length bucket of the queries
    columns: int  # bucket of the columns
    longest: int  # length bucket of the targets
    slots: int  # rows of queries the compiled program has room for
    each: int  # queries of a row, 1 or 2
    places: int  # targets it has room for
    capacity: int  # uint16 halves of backtrack, 0 for none
    zipped: bool
    m: int  # longest query
    n: int  # longest target


class Pairs(NamedTuple):
    """(Q, T) arrays: indices of both sides as computed, which pairs are asked for,
    and which of them the result has the other way round."""

    query: np.ndarray
    target: np.ndarray
    wanted: np.ndarray
    swapped: np.ndarray


@dataclass(frozen=True)
class Job:
    """Which pairs, by lengths only: ``all`` (i < j), ``cross`` or ``zip``.

    ``once`` says that a pair may be computed with its two sides swapped.
    """

    kind: str
    query_lengths: np.ndarray
    target_lengths: np.ndarray
    include_self: bool = False
    once: bool = True
    paths: bool = True
    steps: bool = False
    window: int | None = None  # pairs of a side of a window, None: what pays

    @property
    def pairs(self) -> int:
        n, t = len(self.query_lengths), len(self.target_lengths)
        if self.kind == "all":
            return n * (n + 1) // 2 if self.include_self else n * (n - 1) // 2
        return n if self.kind == "zip" else n * t

    @property
    def cells(self) -> int:
        """Sum of m * n over the pairs asked for."""
        m = self.query_lengths.astype(object)
        if self.kind == "zip":
            return int((self.query_lengths * self.target_lengths).sum())
        if self.kind == "cross":
            return int(m.sum()) * int(self.target_lengths.sum()) if len(m) else 0
        total = int(self.query_lengths.sum())
        squares = int((self.query_lengths**2).sum())
        return (total * total + (1 if self.include_self else -1) * squares) // 2

    def position(self, i, j):
        """Row of the result of pair (i, j)."""
        n, t = len(self.query_lengths), len(self.target_lengths)
        i, j = np.asarray(i, np.int64), np.asarray(j, np.int64)
        if self.kind == "zip":
            return i
        if self.kind == "cross":
            return i * t + j
        if self.include_self:
            return i * (2 * n - i + 1) // 2 + j - i
        return i * (2 * n - i - 1) // 2 + j - i - 1

    def index(self):
        """(query, target) index of every row, int32."""
        n, t = len(self.query_lengths), len(self.target_lengths)
        if self.kind == "zip":
            return (np.arange(n, dtype=np.int32),) * 2
        if self.kind == "cross":
            grid = np.indices((n, t), np.int32).reshape(2, -1)
            return grid[0], grid[1]
        i, j = np.triu_indices(n, 0 if self.include_self else 1)
        return i.astype(np.int32), j.astype(np.int32)

    def meets(self, window: Window) -> Pairs:
        """The pairs of a window, in the orientation in which it computes them."""
        j = window.targets[None, :]
        if window.zipped:
            return Pairs(j, j, np.ones(j.shape, bool), np.zeros(j.shape, bool))
        second = self.second(window)
        i, j = np.broadcast_arrays(window.queries[:: window.each, None], j)
        if window.each == 2:
            partners = np.full(len(i), -1)
            partners[: len(window.queries) // 2] = window.queries[1::2]
            i = np.where(second, partners[:, None], i)
            return Pairs(i, j, (i != j) & (i >= 0), i > j)
        if self.kind == "cross":
            return Pairs(i, j, np.ones(i.shape, bool), np.zeros(i.shape, bool))
        if not self.once:
            wanted = (i <= j) if self.include_self else (i < j)
            return Pairs(i, j, wanted, np.zeros(i.shape, bool))
        # Each unordered pair once, longer as query: order of length, then of input.
        before = self.rank[i] < self.rank[j]
        return Pairs(i, j, before | (i == j) if self.include_self else before, i > j)

    def second(self, window: Window):
        """(Q, T) bool, W = 2: which targets meet the second query of a team.

        Ranks 2q and 2q + 1 make team q. Of the four pairs between two teams the upper
        team computes first with first and second with second, the lower team the other
        two; so every team meets every target once and no pair comes twice.
        """
        if window.each == 1:
            return None
        own = self.rank[window.queries[::2, None]] // 2
        team, place = np.divmod(self.rank[window.targets[None, :]], 2)
        return (team != own) & ((place == 1) ^ (team < own))

    @property
    def teams(self) -> bool:
        """Whether two queries share a sweep. That leaves nothing of a triangle's
        square to be computed in vain, and costs a tenth more a cell: so for few."""
        some = self.kind == "all" and self.once and not self.include_self
        return some and self.window != 1 and len(self.query_lengths) < TEAMS

    @property
    def triangle(self) -> bool:
        """Whether a query meets only the targets that follow it."""
        return self.kind == "all" and self.once and not self.teams

    @cached_property
    def rank(self) -> np.ndarray:
        """Place of every sequence in the order longest first."""
        order = by_length(self.query_lengths)
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        return rank


def pairs(job: Job, piece) -> list[tuple[int, int]]:
    """The single pairs (i, j) of a piece, in input orientation."""
    if not isinstance(piece, Window):
        return [piece]
    i, j, wanted, flip = job.meets(piece)
    first, last = np.where(flip, j, i)[wanted], np.where(flip, i, j)[wanted]
    return list(zip(first.tolist(), last.tolist(), strict=True))


def by_length(lengths) -> np.ndarray:
    """Indices, longest first, stable."""
    return np.argsort(-np.asarray(lengths), kind="stable")


def bucket(length: int, step: int = 2) -> int:
    """The next of 64, 64 * step, 64 * step^2 ... that holds ``length``."""
    size = 64
    while size < length:
        size *= step
    return size


def window_bytes(window: Window, score_bytes: int, steps: bool) -> int:
    """Device bytes of a window: profile, boundary rows, backtrack, operations."""
    wide = window.lanes * (window.columns + window.rows * window.zipped)
    profile = 0 if window.zipped else 26 * window.lanes * window.columns
    held = profile * (1 if score_bytes == 2 else score_bytes) + wide * 6
    held += 2 * score_bytes * window.lanes * window.columns
    held += 2 * window.capacity
    if steps:
        held += 2 * window.slots * window.places * (window.rows + window.longest)
    return held + 48 * window.slots * window.places


def pack(lengths, lanes: int, limit: int | None = None):
    """Targets, longest first, one after the other into the lane with the most room.

    Each begins a tile, so it takes a multiple of TILE columns, and one at least.
    Starts never decrease along the order. With a ``limit`` of columns, as many targets
    as fill the lanes best.

    Returns
    -------
    lane, last : int32 (T,)
        The lane of each, and the column after its last.
    """
    heap = [(0, lane) for lane in range(lanes)]
    lane, last, area, top = [], [], 0, 0
    best, kept = 0.0, 0
    for length in lengths:
        used, here = heap[0]
        end = used + TILE * max(1, -(-int(length) // TILE))
        if limit and end > limit and lane:
            break
        heapreplace(heap, (end, here))
        lane.append(here)
        last.append(end)
        area, top = area + int(length), max(top, end)
        if area >= 0.97 * best * top:
            best, kept = max(best, area / top), len(lane)
    kept = len(lane) if len(lane) == len(lengths) else kept
    return np.array(lane[:kept], np.int32), np.array(last[:kept], np.int32)


def least_bytes(job: Job, i: int, j: int) -> int:
    """Bytes of the narrowest window that holds pair (i, j)."""
    q, t = np.array([i]), np.array([j])
    if job.kind == "zip":
        return window_bytes(_zip_shape(job, q, LANES[-1]), 4, job.steps)
    return window_bytes(_shape(job, q, t, LANES[-1]), 4, job.steps)


def _coarse(job) -> bool:
    """Few length buckets: a compilation costs more than padding saves."""
    return job.cells < 2 * 10**10


def cut(job: Job, budget: int) -> Iterator[Window | tuple[int, int]]:
    """Windows that need at most ``budget`` bytes each, heaviest first.

    A pair whose backtrack alone exceeds the budget comes out as (i, j), to be aligned
    by checkpoints.
    """
    if job.kind == "zip":
        yield from _cut_zip(job, budget)
        return
    order, queries = by_length(job.target_lengths), by_length(job.query_lengths)
    lanes, start = _lanes(job, order), 0
    while start < len(order):
        block = order[start : start + _next_block(job, order[start:], lanes)]
        start += len(block)
        below = queries[:start] if job.triangle else queries
        yield from _cut_block(job, below, block, lanes, budget)


def _next_block(job, order, lanes) -> int:
    """How many of the next targets (longest first) make a block."""
    if job.window:
        return job.window
    lengths = job.target_lengths[order]
    return len(pack(lengths, lanes, max(COLUMNS, int(lengths[0]) + TILE))[0])


def _lanes(job, order) -> int:
    """The number of lanes that needs the least time, were all rows alike.

    A column costs about as much as 32 lanes even with none. In a triangle a query
    sweeps from the first target it meets, so the fewer lanes, the less in vain.
    """

    def cost(lanes):
        lane, last = pack(job.target_lengths[order], lanes)
        begin = last - _tiled(job.target_lengths[order])
        columns = int(last.max(initial=0))
        swept = len(begin) * columns
        swept -= int(begin.sum()) if job.triangle else 0
        return swept * (lanes + 32)

    return min(LANES[:2], key=cost)


def _capacity(job, m, used, rows, columns, lanes) -> int:
    """uint16 backtrack, one for 4 cells, of m rows and the columns used; of a whole
    bucket where that is small, so that a small job compiles one program."""
    if not job.paths:
        return 0
    whole = rows * columns * lanes // 4
    needed = max(1, -(-m // ROWS)) * (ROWS // 4) * used * lanes
    return whole if whole <= SMALL_BACKTRACK else bucket(needed, 4)


def _tiled(lengths):
    """Columns that targets take."""
    return TILE * np.maximum(1, -(-np.asarray(lengths) // TILE))


def _cut_block(job, queries, block, lanes, budget):
    """One block of targets against all its queries, in windows of similar rows."""
    at = 0
    while at < len(queries):
        shape = _shape(job, queries[at:], block, lanes)
        part = queries[at : at + shape.slots * shape.each]
        yield from _narrow(job, part, block, lanes, budget)
        at += len(part)


def _narrow(job, queries, block, lanes, budget):
    """Fewer lanes or targets until the window fits; then single pairs."""
    window = _shape(job, queries, block, lanes)
    if window_bytes(window, 4, job.steps) <= budget:
        yield window
    elif lanes > LANES[-1]:
        fewer = next(x for x in LANES if x < lanes)
        while len(block):
            count = _next_block(job, block, fewer)
            yield from _narrow(job, queries, block[:count], fewer, budget)
            block = block[count:]
    elif len(block) > lanes:
        for start in range(0, len(block), lanes):
            part = block[start : start + lanes]
            yield from _narrow(job, queries, part, lanes, budget)
    else:
        yield from pairs(job, window)


def _shape(job, queries, block, lanes) -> Window:
    """The window of some queries and targets: coarse buckets for a small job."""
    coarse = _coarse(job)
    lane, last = pack(job.target_lengths[block], lanes)
    used, m = (
        int(last.max(initial=TILE)),
        int(job.query_lengths[queries].max(initial=0)),
    )
    n = int(job.target_lengths[block].max(initial=0))
    longest = int(job.target_lengths.max(initial=0))
    rows = bucket(int(job.query_lengths.max(initial=0)) if coarse else m)
    longest = bucket(longest if coarse else n)
    columns = max(bucket(used, 4 if coarse else 2), longest)
    each = 2 if job.teams else 1
    slots = min((job.window or 2 * QUERIES) // each, QUERIES)
    places = max(lanes, bucket(len(block), 4))
    if job.steps:
        slots = min(slots, max(1, STEP_BYTES // (places * (rows + longest))))
        slots = 2 ** int(np.log2(slots))
    held = _capacity(job, m, used, rows, columns, lanes)
    return Window(
        queries,
        block,
        lane,
        last,
        lanes,
        rows,
        columns,
        longest,
        slots,
        each,
        places,
        held,
        False,
        m,
        n,
    )


def _cut_zip(job, budget):
    """Pairs that share no side: sorted by size, a query a lane."""
    order = by_length(job.query_lengths * (job.target_lengths + 1))
    lanes = job.window or (LANES[1] if len(order) > LANES[-1] else LANES[-1])
    for start in range(0, len(order), lanes):
        yield from _narrow_zip(job, order[start : start + lanes], lanes, budget)


def _zip_shape(job, part, lanes) -> Window:
    m = int(job.query_lengths[part].max(initial=0))
    n = int(job.target_lengths[part].max(initial=0))
    used = int(_tiled(n))
    size = bucket(max(m, used), 2)
    held = _capacity(job, m, used, size, size, lanes)
    lane = np.arange(len(part), dtype=np.int32)
    last = _tiled(job.target_lengths[part]).astype(np.int32)
    return Window(
        part, part, lane, last, lanes, size, size, size, 1, 1, lanes, held, True, m, n
    )


def _narrow_zip(job, part, lanes, budget):
    window = _zip_shape(job, part, lanes)
    if window_bytes(window, 4, job.steps) <= budget:
        yield window
    elif lanes <= LANES[-1]:
        yield from pairs(job, window)
    else:
        fewer = next(x for x in LANES if x < lanes)
        for start in range(0, len(part), fewer):
            yield from _narrow_zip(job, part[start : start + fewer], fewer, budget)
