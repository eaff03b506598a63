"""Which pairs a job asks for, and which of them a window holds.

A window is a rectangle of the *pair matrix* (2011 gpu-pairalign paper): some queries
against a block of targets in lanes. ``pairs.cpu.partition`` makes them.

Devices get windows as in the task manager of that paper, longest processing time first:
windows stand in one queue, in order of estimated cells, heaviest first; a device that
falls idle takes the next one. Were all devices alike and the estimates exact, the last
device would end within (4/3 - 1/(3m)) of the best of all schedules on m devices
(Graham, 1969, theorem 2).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import heapify, heapreplace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from jaxalign.model.show import brief
from jaxalign.runtime.devices import by_length
from jaxalign.runtime.pipeline import in_threads

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


# Threads that write indices of rows, queries at a time
INDEX_THREADS, INDEX_QUERIES = 4, 1024


def contained(rows: np.ndarray, rising: np.ndarray) -> np.ndarray:
    """Tell which rows of a result, from 0 on, rising rows have: bool, of each."""
    return np.append(rising, -1)[np.searchsorted(rising, rows)] == rows


class PairBlock(Protocol):
    """Queries against targets: a window, or a launch of a GPU."""

    @property
    def queries(self) -> np.ndarray: ...

    @property
    def targets(self) -> np.ndarray: ...

    @property
    def zipped(self) -> bool: ...


@dataclass(frozen=True)
class Window:
    """Indices into the two sets, where each target is, and the static sizes.

    ``zipped``: query k meets target k only (a query a lane). Otherwise a row is one
    query that meets all targets; of zipped pairs it is the query of all of them.

    A ``team`` of several queries, neighbours in the order of length, is a row of few
    long sequences, which are both its queries and its targets: lanes then have half as
    many copies of each target as a team has queries, and each copy meets one of them
    (``PairMatrix.meets``).
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
    places: int  # targets it has room for
    capacity: int  # bytes of backtrack, 0 for none
    zipped: bool
    m: int  # longest query
    n: int  # longest target
    team: int = 1  # queries of a row


class Partition(NamedTuple):
    """A pair matrix in blocks (windows, or launches of a GPU), and the pairs (i, j)
    that are better computed alone, or that no block can hold."""

    blocks: list
    pairs: list[tuple[int, int]]


class WindowPairs(NamedTuple):
    """Pairs of a window, (Q, T): indices of both sides as computed, a mask of the pairs
    asked for, and of those whose sides are swapped."""

    query: np.ndarray
    target: np.ndarray
    mask: np.ndarray
    swapped: np.ndarray


class WholeJob(NamedTuple):
    """Figures of a whole job, so that its parts have the same static sizes: the longest
    sequences of both sides, cells, targets and their letters."""

    longest: tuple[int, int]
    cells: int
    targets: int
    letters: int


@dataclass(frozen=True)
class PairMatrix:
    """Which pairs, by lengths only: ``all`` (i < j), ``cross`` or ``zip``.

    ``all`` may have fewer queries than targets: then the first of them are the queries.
    ``once`` says that a pair may be computed with its two sides swapped. ``size`` and
    ``shift``: the pairs are some of those of ``all`` on ``size`` sequences, target 0 is
    number ``shift`` of them, and rows count as they do there; ``whole`` is the job that
    this is a part of. ``rows`` are those of zipped pairs that are some of another job.
    """

    kind: str
    query_lengths: np.ndarray
    target_lengths: np.ndarray
    include_self: bool = False
    once: bool = True
    paths: bool = True
    steps: bool = False
    window: int | None = None  # pairs of a side of a window, None: what pays
    size: int | None = None
    shift: int = 0
    whole: WholeJob | None = None
    rows: np.ndarray | None = None

    __repr__ = brief

    @cached_property
    def most(self) -> tuple[int, int]:
        """The longest query and target, of the whole where these are some of it."""
        if self.whole is not None:
            return self.whole.longest
        sides = self.query_lengths, self.target_lengths
        m, n = (int(side.max(initial=0)) for side in sides)
        return m, n

    @cached_property
    def total(self) -> int:
        """Cells, of the whole where this is a part."""
        return self.cells if self.whole is None else self.whole.cells

    @cached_property
    def pairs(self) -> int:
        n, t = len(self.query_lengths), len(self.target_lengths)
        if self.kind == "all":
            return n * (2 * t - n + (1 if self.include_self else -1)) // 2
        return n if self.kind == "zip" else n * t

    @cached_property
    def cells(self) -> int:
        """Sum of m * n over the pairs asked for."""
        if self.kind == "zip":
            return int((self.query_lengths * self.target_lengths).sum())
        if self.kind == "cross":
            return int(self.query_lengths.sum()) * int(self.target_lengths.sum())
        before = np.cumsum(self.target_lengths)[: len(self.query_lengths)]
        before -= self.query_lengths if self.include_self else 0
        after = self.target_lengths.sum() - before
        return int((self.query_lengths * after).sum())

    def position(self, i: "ArrayLike", j: "ArrayLike"):
        """Row of the result of pair (i, j)."""
        t = len(self.target_lengths)
        i, j = np.asarray(i, np.int64), np.asarray(j, np.int64)
        if self.kind == "zip":
            return i if self.rows is None else self.rows[i]
        if self.kind == "cross" and self.size is None:
            return i * t + j
        n, j = self.size or t, j + self.shift
        if self.include_self:
            return i * (2 * n - i + 1) // 2 + j - i
        return i * (2 * n - i - 1) // 2 + j - i - 1

    def pair(self, row: "ArrayLike"):
        """The pair (i, j) of a row of the result: ``position`` turned round."""
        t, row = len(self.target_lengths), np.asarray(row, np.int64)
        if self.kind == "zip":
            return row, row
        if self.kind == "cross":
            return np.divmod(row, max(t, 1))
        i = np.arange(len(self.query_lengths), dtype=np.int64)
        first = i + (0 if self.include_self else 1)
        starts = self.position(i, first)
        i = np.searchsorted(starts, row, "right") - 1
        # A last query that meets nobody begins where the one before it ends.
        i = np.minimum(i, max(t - 2 + self.include_self, 0))
        return i, row - starts[i] + first[i]

    def index(self):
        """(query, target) index of every row, int32."""
        n, t = len(self.query_lengths), len(self.target_lengths)
        if self.kind == "zip":
            return (np.arange(n, dtype=np.int32),) * 2
        if self.kind == "cross":
            grid = np.indices((n, t), np.int32).reshape(2, -1)
            return grid[0], grid[1]
        first, columns = np.arange(n) + (not self.include_self), np.arange(t)
        columns, ends = columns.astype(np.int32), np.cumsum(t - first)
        query, target = (np.empty(self.pairs, np.int32) for _ in range(2))

        def fill(start: int):
            for i in range(start, min(start + INDEX_QUERIES, n)):
                rows = slice(ends[i] - (t - first[i]), ends[i])
                query[rows], target[rows] = i, columns[first[i] :]

        # Long slices are assigned without Python's lock: launches go on meanwhile.
        if n > INDEX_QUERIES:
            in_threads(fill, range(0, n, INDEX_QUERIES), INDEX_THREADS)
        else:
            fill(0)
        return query, target

    def meets(self, window: PairBlock) -> WindowPairs:
        """The pairs of a window, in the orientation in which it computes them."""
        j = window.targets[None, :]
        if window.zipped or self.kind == "zip":
            return WindowPairs(j, j, np.ones(j.shape, bool), np.zeros(j.shape, bool))
        team = getattr(window, "team", 1)
        if team > 1:
            return self._meets_in_teams(window.queries, window.targets, team)
        i, j = np.broadcast_arrays(window.queries[:, None], j)
        if self.kind == "cross":
            return WindowPairs(i, j, np.ones(i.shape, bool), np.zeros(i.shape, bool))
        if not self.once:
            mask = (i <= j) if self.include_self else (i < j)
            return WindowPairs(i, j, mask, np.zeros(i.shape, bool))
        # Each unordered pair once, longer as query: order of length, then of input.
        before = self.rank[i] < self.rank[j]
        return WindowPairs(
            i, j, before | (i == j) if self.include_self else before, i > j
        )

    def _meets_in_teams(self, queries: np.ndarray, targets: np.ndarray, team: int):
        """``meets`` of all pairs of neighbours in the order of length, in teams: of two
        teams, each query of one meets every second of the other, and each of the other
        the rest of it."""
        copies, first_rank = team // 2, self.rank[targets[0]]
        first = (self.rank[queries[::team], None] - first_rank) // team
        second, place = divmod(self.rank[targets] - first_rank, team)
        copy, last = np.arange(len(targets)) % copies, len(targets) // copies - 1
        step = np.where(first < second, 2 * copy, 2 * copy + 1)
        step = np.where(first == second, copy + 1, step)
        met = first * team + (place + step) % team
        # Half a team apart, each of two sequences would meet the other.
        twice = (first == second) & (copy == copies - 1) & (place >= copies)
        mask = (met <= last) & ~twice
        i = targets[np.minimum(met, last) * copies]
        i, j = np.broadcast_arrays(i, targets[None, :])
        return WindowPairs(i, j, mask, i > j)

    @property
    def triangle(self) -> bool:
        """Whether a query meets only the targets that follow it."""
        return self.kind == "all" and self.once

    @cached_property
    def falling(self) -> tuple[np.ndarray, np.ndarray]:
        """Lengths of both sides, longest first."""
        sides = self.query_lengths, self.target_lengths
        queries, targets = (side[by_length(side)] for side in sides)
        return queries, targets

    def longest(self, places: int) -> np.ndarray:
        """Lengths of the longest targets; of a part what none of the whole exceeds, so
        that all parts have the same sizes."""
        return np.full(places, self.most[1]) if self.whole else self.falling[1][:places]

    @cached_property
    def rank(self) -> np.ndarray:
        """Place of every sequence in the order longest first."""
        order = by_length(self.query_lengths)
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        return rank


def pairs(job: PairMatrix, block: PairBlock) -> list[tuple[int, int]]:
    """The single pairs (i, j) of a window or a launch, in input orientation."""
    i, j, mask, flip = job.meets(block)
    first, last = np.where(flip, j, i)[mask], np.where(flip, i, j)[mask]
    return list(zip(first.tolist(), last.tolist(), strict=True))


def cells(job: PairMatrix, piece: PairBlock) -> int:
    """Sum of m * n over the pairs asked for in a launch of a GPU, quickly."""
    m, n = job.query_lengths[piece.queries], job.target_lengths[piece.targets]
    if piece.zipped:
        return int((m * n).sum())
    if job.kind == "cross":
        return int(m.sum()) * int(n.sum())
    if not job.once:
        pairs_met = job.meets(piece)
        return int((pairs_met.mask * (m[:, None] * n[None, :])).sum())
    # Targets come in the order of rank: a query meets those that follow it.
    rank = job.rank[piece.targets]
    side = "left" if job.include_self else "right"
    first = np.searchsorted(rank, job.rank[piece.queries], side)
    tails = np.append(np.cumsum(n[::-1])[::-1], 0)
    return int((m * tails[first]).sum())


MAX_HALVINGS = 6  # of the lists that devices take


@dataclass(frozen=True)
class Schedule:
    """Who would compute what, were all devices alike and the estimates exact.

    ``cells`` of each window, the ``order`` of the queue (indices, heaviest first), and
    ``windows``: for each device the indices it takes, in the order it takes them.
    """

    cells: tuple[int, ...]
    order: tuple[int, ...]
    windows: tuple[tuple[int, ...], ...]

    @property
    def loads(self) -> tuple[int, ...]:
        """Cells of each device."""
        return tuple(sum(self.cells[k] for k in taken) for taken in self.windows)

    @property
    def makespan(self) -> int:
        """Cells of the device that ends last."""
        return max(self.loads, default=0)

    @property
    def least(self) -> int:
        """No schedule ends before this: its share, and the heaviest window."""
        share = -(-sum(self.cells) // max(len(self.windows), 1))
        return max(share, max(self.cells, default=0))

    def __str__(self) -> str:
        head = f"{len(self.cells):,} windows, {sum(self.cells):,} cells"
        taken = zip(self.windows, self.loads, strict=True)
        lines = [
            f"device {k}: {len(windows):,} windows, {load:,} cells"
            for k, (windows, load) in enumerate(taken)
        ]
        over = self.makespan / self.least if self.least else 1
        return "\n".join([head, *lines, f"at most {over:.3f} times the least time"])


def schedule(cells: Sequence[int], devices: int) -> Schedule:
    """The schedule of windows with these cells on some devices that are alike.

    Parameters
    ----------
    cells : sequence of int
    devices : int
        1 or more.

    Examples
    --------
    >>> print(schedule([5, 5, 4, 4, 3, 3, 3], 3))
    7 windows, 27 cells
    device 0: 3 windows, 11 cells
    device 1: 2 windows, 8 cells
    device 2: 2 windows, 8 cells
    at most 1.222 times the least time
    """
    cells = tuple(int(x) for x in cells)
    order = heaviest_first(cells)
    idle = [(0, device) for device in range(devices)]
    heapify(idle)
    windows: list[list[int]] = [[] for _ in range(devices)]
    for k in order:
        load, device = idle[0]
        windows[device].append(k)
        heapreplace(idle, (load + cells[k], device))
    return Schedule(cells, order, tuple(map(tuple, windows)))


def heaviest_first(cells: Sequence[int]) -> tuple[int, ...]:
    """Sort indices by falling cells, stably."""
    return tuple(np.argsort(-np.asarray(cells, np.float64), kind="stable").tolist())


def lists(pieces: list, devices: int) -> list[list]:
    """Pieces, heaviest first, in lists for devices that are slow to begin a piece after
    another is done: each takes half of its share at once, then half of the rest, and so
    on (guided self-scheduling, Polychronopoulos and Kuck, 1987), so that they end
    together though one be slower.

    Examples
    --------
    >>> lists(list(range(8)), 2)
    [[0, 2], [1, 3], [4], [5], [6], [7]]
    """
    shares = [pieces[k::devices] for k in range(devices)]
    parts = 2 ** min(MAX_HALVINGS, max(len(shares[-1]), 1).bit_length() - 1)
    ends = [0, *(parts - parts // 2**k for k in range(1, parts.bit_length())), parts]
    lists_of = [
        [piece for k, piece in enumerate(share) if start <= k % parts < end]
        for start, end in pairwise(ends)
        for share in shares
    ]
    return [group for group in lists_of if group]


def estimate(job: PairMatrix, block: PairBlock) -> int:
    """Cells of a window or a launch: the sum of its query lengths times that of its
    target lengths, as in the paper."""
    m, n = job.query_lengths[block.queries], job.target_lengths[block.targets]
    if block.zipped:
        return int((m * n).sum())
    return int(m.sum()) * int(n.sum())
