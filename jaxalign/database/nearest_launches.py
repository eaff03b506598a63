"""The nearest sequences of a piece of a corpus by identity, on GPUs.

A GPU counts the common subsequences of all pairs of a piece, and keeps them. Of each
query it tells the host the largest bounds, whose pairs raise the bar of the query;
then how many pairs of each bin of targets reach that bar; then which, of the queries
where they are few. A query of which many are left is aligned with all targets of the
bins that hold most of them: side by side they share work, and a list of pairs takes the
host many times as long as a launch takes the device.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxalign.database.nearest_state import (
    QUERIES_AT_ONCE,
    NearestState,
    PairJob,
    align,
    bars_of,
    rectangles,
    zipped,
)
from jaxalign.model.identity import Filters, IdentityBound, share
from jaxalign.pairs.gpu.device_arrays import FILTER_SLACK
from jaxalign.pairs.plan import Task
from jaxalign.pairs.proofs import lcs_launches
from jaxalign.pairs.proofs.lcs_launches import LcsLaunches
from jaxalign.runtime.devices import by_length
from jaxalign.runtime.programs import program
from jaxalign.words import gpu

FIRST_PAIRS = 8  # of a query, aligned before its others are looked at
BIN = gpu.THREADS  # targets that are counted together: launches have whole bins
LAUNCHES_KEPT = 16  # whose counts are on the devices at once, 67 MB each if wide
MAX_LEFT = 1 / 64  # of the pairs of a query, beyond which many are left
CROWDED = 1 / 32  # of the pairs of a bin, from which on it is aligned whole
LIKE_LENGTHS = 64  # letters by which queries of like bars differ at most
NO_PAIR = -2.0  # the bound where there is no candidate: below every bar


@dataclass(frozen=True, eq=False)
class PieceBounds:
    """The bounds of a piece of a corpus; those of the first queries are being computed.

    Attributes
    ----------
    task : Task
        Of kind ``cross``; its targets are the piece.
    kind : {"longer", "shorter", "mean"}
        What identical pairs are divided by.
    groups : list of int64 arrays
        Queries that the kernel takes, longest first; a group is counted at once.
    long : int64 (queries,)
        Those that it cannot take.
    columns : int64 (targets,)
        Longest first.
    """

    task: Task
    kind: str
    launches: LcsLaunches
    groups: list[np.ndarray]
    long: np.ndarray
    columns: np.ndarray
    first_bounds: "LaunchBounds | None"


def begin(task: Task, kind: str, launches: LcsLaunches) -> PieceBounds:
    """Start to count the common subsequences of the first queries of a piece on
    GPUs."""
    columns = by_length(task.targets.lengths)
    rows = by_length(task.queries.lengths)
    long = int(np.count_nonzero(task.queries.lengths > launches.longest))
    pieces = -(-len(columns) // launches.targets)
    step = max(LAUNCHES_KEPT // pieces, 1) * launches.query_count
    groups = [rows[at : at + step] for at in range(long, len(rows), step)]
    first_bounds = (
        bounds_of(task, kind, launches, groups[0], columns) if groups else None
    )
    return PieceBounds(task, kind, launches, groups, rows[:long], columns, first_bounds)


def fold(piece: PieceBounds, state: NearestState) -> None:
    """Join the pairs of a piece of a corpus with the nearest so far."""
    task, columns, top = piece.task, piece.columns, state.index.shape[1]
    # Of queries that are too long for the kernel lengths alone bound identities.
    bound = IdentityBound(piece.kind, 0.0)
    for row in piece.long:
        query = np.array([row])
        m, n = task.queries.lengths[query], task.targets.lengths[columns]
        shorter, least = np.minimum(m, n), bound.least(m, n)
        largest = share(shorter, np.maximum(least, 1), np)
        order = np.argsort(-largest, kind="stable")[:FIRST_PAIRS]
        align(task, zipped(task, np.full(len(order), row), columns[order]), state)
        bar = bars_of(state)[0][query]
        candidates = columns[(largest >= bar) & (least > 0)]
        align(task, rectangles(task, query, candidates, bar, top), state)
    for number, rows in enumerate(piece.groups):
        bounds = piece.first_bounds if number == 0 else None
        about = task, piece.kind, piece.launches, rows, columns
        bounds = bounds or bounds_of(*about)
        # The pairs with the largest bounds come first: they raise the bars of the rest.
        row, column, value = bounds.best(max(FIRST_PAIRS, 2 * top))
        passing = value >= bars_of(state)[0][bounds.rows[row]] - FILTER_SLACK
        first = zipped(task, bounds.rows[row[passing]], columns[column[passing]])
        align(task, first, state)
        align(task, _jobs(bounds, state), state)


@dataclass(frozen=True, eq=False)
class _CountedLaunch:
    """Numbers of common subsequences, rows by columns, on a device.

    sides : float32 (3, rows), (3, columns): lengths and halves of denominators
    first : the first row, the first column
    """

    lcs: jax.Array
    sides: tuple[np.ndarray, np.ndarray]
    first: tuple[int, int]
    shape: tuple[int, int]
    device: Any

    @property
    def room(self) -> tuple[int, int]:
        """Rows and columns that fit the launch."""
        rows, columns = self.lcs.shape
        return rows, columns

    def fill(self, of_bins: np.ndarray, values: jax.Array) -> None:
        """Copy the values of a launch to its place among the values of all launches."""
        rows, bins = self.shape[0], -(-self.shape[1] // BIN)
        i, j = self.first[0], self.first[1] // BIN
        of_bins[i : i + rows, j : j + bins] = np.asarray(values)[:rows, :bins]


@dataclass(frozen=True, eq=False)
class LaunchBounds:
    """Upper bounds on the identical pairs of a group of queries with all targets of a
    piece.

    Attributes
    ----------
    rows : int64 (rows,)
        The queries.
    columns : int64 (columns,)
        The targets, longest first.
    room : int
        Of the pairs of a launch that reach bars, at first.
    """

    task: Task
    bound: IdentityBound
    rows: np.ndarray
    columns: np.ndarray
    launches: list[_CountedLaunch]
    room: int

    def best(self, per_row: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return (row, column, bound) of the pairs with the largest bounds: at most one
        of each bin and ``per_row`` of each row."""
        value = self._of_bins(np.float32)
        place = self._of_bins(np.int64)
        for launch, (highest, which) in self._of_launches(_highest):
            launch.fill(value, highest)
            launch.fill(place, which)
        per_row = min(per_row, value.shape[1])
        bins = np.argpartition(-value, per_row - 1)[:, :per_row].reshape(-1)
        row = np.repeat(np.arange(len(self.rows)), per_row)
        real = value[row, bins] > NO_PAIR
        row, bins = row[real], bins[real]
        return row, bins * BIN + place[row, bins], value[row, bins]

    def reaching(self, bars: np.ndarray) -> np.ndarray:
        """Count the pairs of each row and bin of columns whose bounds reach the bar of
        the row: int64 (rows, bins)."""
        counts = self._of_bins(np.int64)
        for launch, values in self._of_launches(_reaching, bars):
            launch.fill(counts, values)
        return counts

    def near(
        self, bars: np.ndarray, ranges: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return (row, column, most identical pairs) of all pairs that reach the bars
        of their rows; a few pairs below the bars may be among them.

        ranges : int64 (rows, 2), a range of columns of each row that is left out
        """
        pieces = []
        for launch in self.launches:
            spans = np.clip(ranges - launch.first[1], 0, launch.shape[1])
            sides = (self._of(launch, x) for x in (bars, spans[:, 0], spans[:, 1]))
            reaching = self._program(_near, launch, *sides)
            with jax.default_device(launch.device):
                hits = gpu.chosen(reaching, launch.room, self.room)
            row, column = hits.row + launch.first[0], hits.column + launch.first[1]
            pieces.append((row, column, hits.value.astype(np.int64)))
        row, column, value = (np.concatenate(x) for x in zip(*pieces, strict=True))
        return row, column, value

    def _of_bins(self, dtype: type) -> np.ndarray:
        return np.zeros((len(self.rows), -(-len(self.columns) // BIN)), dtype)

    def _of(self, launch: _CountedLaunch, values: np.ndarray) -> np.ndarray:
        """Slice and pad values of all rows for a launch."""
        part = values[launch.first[0] : launch.first[0] + launch.shape[0]]
        dtype = np.float32 if part.dtype == np.float64 else np.int32
        return np.pad(part, (0, launch.lcs.shape[0] - len(part))).astype(dtype)

    def _program(
        self, question: Callable, launch: _CountedLaunch, *operands: np.ndarray
    ) -> Callable:
        """Bind one of the programs below to the arrays of a launch; its size is left
        open."""
        filters, shape = self.task.filters, np.array(launch.shape, np.int32)
        counted = _Counted(launch.lcs, *launch.sides, shape, filters.thresholds)
        join = self.bound.sides(1, 1)[2]
        form = filters.of_lengths
        return partial(question, counted, *operands, filters=form, join=join)

    def _of_launches(self, question: Callable, *of_rows: np.ndarray) -> list[tuple]:
        """Start a program for every launch: [(launch, result on the device)]; waits for
        none.

        of_rows : numbers of the rows that the program takes
        """
        answers = []
        for launch in self.launches:
            sides = (self._of(launch, x) for x in of_rows)
            with jax.default_device(launch.device):
                answer = self._program(question, launch, *sides)(width=BIN)
            answers.append((launch, answer))
        return answers


def bounds_of(
    task: Task,
    kind: str,
    launches: LcsLaunches,
    rows: np.ndarray,
    columns: np.ndarray,
) -> LaunchBounds:
    """Bound the pairs of a group of queries with all targets of a task.

    rows, columns : indices of queries and targets, longest first
    """
    bound, devices, each = IdentityBound(kind, 0.0), task.devices or (None,), []
    width = max(launches.targets // BIN, 1) * BIN  # whole bins
    starts = range(0, len(rows), launches.query_count), range(0, len(columns), width)
    for number, first in enumerate(product(*starts)):
        i = rows[first[0] : first[0] + launches.query_count]
        j = columns[first[1] : first[1] + width]
        device = devices[number % len(devices)] or jax.devices()[0]
        lcs = launches.counted(i, j, device)
        each.append(_counted(task, bound, lcs, i, j, first, device))
    return LaunchBounds(task, bound, rows, columns, each, launches.sizes.pairs)


def _counted(
    task: Task, bound: IdentityBound, lcs: jax.Array, i: np.ndarray, j: np.ndarray,
    first: tuple[int, int], device: Any,
) -> _CountedLaunch:  # fmt: skip
    """The launch of some queries and targets that counted ``lcs``."""
    rows = lcs_launches.halves(task.queries.lengths[i], bound, lcs.shape[0])
    columns = lcs_launches.halves(task.targets.lengths[j], bound, lcs.shape[1])
    return _CountedLaunch(lcs, (rows, columns), first, (len(i), len(j)), device)


def outlined(task: Task, kind: str, launches: LcsLaunches) -> Iterator[Task]:
    """The programs that bound the pairs of a task (``runtime.programs.outline``);
    yields the tasks that align pairs."""
    rows, columns = (by_length(x.lengths) for x in (task.queries, task.targets))
    queries, bound = rows[: launches.query_count], IdentityBound(kind, 0.0)
    for lcs in lcs_launches.outlined(launches):
        launch = _counted(task, bound, lcs, queries, columns[:1], (0, 0), None)
        about = task, bound, queries, columns, [launch]
        bounds = LaunchBounds(*about, launches.sizes.pairs)
        bars, span = np.zeros(len(queries)), np.zeros(len(queries), np.int64)
        bounds._of_launches(_highest)
        bounds._of_launches(_reaching, bars)
        sides = (bounds._of(launch, x) for x in (bars, span, span))
        select = bounds._program(_near, launch, *sides)
        for size in gpu.rooms(launch.room, bounds.room):
            select(size=size, start=np.int32(0))
    bars = np.zeros(len(task.queries))
    dense = rectangles(task, rows[:QUERIES_AT_ONCE], columns, bars, 1)
    first = np.repeat(rows, FIRST_PAIRS)
    listed = zipped(task, first, np.resize(columns, len(first)))
    yield from (job.task for jobs in (dense, listed) for job in jobs)


def _jobs(bounds: LaunchBounds, state: NearestState) -> Iterator[PairJob]:
    """Yield the pairs whose bounds reach the bars, as the bars are when the first is
    planned."""
    task, rows, columns = bounds.task, bounds.rows, bounds.columns
    bars, places = (x[rows] for x in bars_of(state))
    counts, ranges = bounds.reaching(bars), np.zeros((len(rows), 2), np.int64)
    crowded = np.flatnonzero(counts.sum(axis=1) > MAX_LEFT * len(columns))
    like = task.queries.lengths[rows[crowded]] // LIKE_LENGTHS
    crowded = crowded[np.lexsort((bars[crowded], like))]
    sizes = np.minimum(len(columns) - BIN * np.arange(counts.shape[1]), BIN)
    for at in range(0, len(crowded), QUERIES_AT_ONCE):
        batch = crowded[at : at + QUERIES_AT_ONCE]
        # The range of columns that holds every crowded bin: lengths of targets fall
        # from column to column, and those of a query's length reach its bar most often.
        reaching = counts[batch].sum(axis=0)
        (bins,) = np.nonzero(reaching >= np.maximum(CROWDED * sizes * len(batch), 1))
        if len(bins):
            last = min((int(bins[-1]) + 1) * BIN, len(columns))
            ranges[batch] = int(bins[0]) * BIN, last
        sides = rows[batch], columns[slice(*ranges[batch[0]])]
        yield from rectangles(task, *sides, bars[batch], state.index.shape[1])
    row, column, value = bounds.near(bars, ranges)
    query, target = rows[row], columns[column]
    m, n = task.queries.lengths[query], task.targets.lengths[target]
    least = bounds.bound.least(m, n)
    identity = share(value, least, np)
    nearer = (identity == bars[row]) & (target < places[row])
    nearer = ((identity > bars[row]) | nearer) & (least > 0)
    nearer &= task.filters.length_mask(m, n)
    yield from zipped(task, query[nearer], target[nearer])


class _Counted(NamedTuple):
    """A launch as the programs below read it.

    lcs : int16 (rows, columns); rows, columns : float32 (3, ...), lengths and halves of
    denominators; shape : int32 (2,), how many there are; thresholds : of ``Filters``
    """

    lcs: jax.Array
    rows: jax.Array | np.ndarray
    columns: jax.Array | np.ndarray
    shape: jax.Array | np.ndarray
    thresholds: jax.Array | np.ndarray


@program(("filters", "join", "width"))
def _highest(counted: _Counted, *, filters: Filters, join: str, width: int):
    """Find (the largest bound, its place) of each row and bin."""
    bounds = _bounds(counted, filters, join)
    bins = bounds.reshape(len(bounds), -1, width)
    return bins.max(axis=2), bins.argmax(axis=2).astype(jnp.int32)


@program(("filters", "join", "width"))
def _reaching(
    counted: _Counted, bars: jax.Array, *, filters: Filters, join: str, width: int
):
    """Count the bounds of each row and bin that reach a bar."""
    mask = _bounds(counted, filters, join) >= bars[:, None] - FILTER_SLACK
    return mask.reshape(len(mask), -1, width).sum(axis=2, dtype=jnp.int32)


@program(("filters", "join", "size"))
def _near(
    counted: _Counted,
    bars: jax.Array,
    first: jax.Array,
    last: jax.Array,
    start: jax.Array,
    *,
    filters: Filters,
    join: str,
    size: int,
):
    """Select the pairs whose bounds reach a bar (``gpu.compact``), without a range of
    columns of each row."""
    place = jnp.arange(counted.lcs.shape[1], dtype=jnp.int32)[None]
    mask = (place < first[:, None]) | (place >= last[:, None])
    mask &= _bounds(counted, filters, join) >= bars[:, None] - FILTER_SLACK
    return gpu.compact(mask, counted.lcs, size, start)


def _bounds(counted: _Counted, filters: Filters, join: str) -> jax.Array:
    """Bound the identities, float32 (rows, columns); ``NO_PAIR`` beyond the last row
    and column, and where lengths leave no pair."""
    filters, lcs = filters.with_thresholds(counted.thresholds), counted.lcs
    m, n = counted.rows[:, :, None], counted.columns[:, None, :]
    least = getattr(jnp, join)(m[1], n[2])
    in_range = filters.length_mask(m[0] + 0 * n[0], n[0] + 0 * m[0], jnp, FILTER_SLACK)
    row, column = (jnp.arange(size, dtype=jnp.int32) for size in lcs.shape)
    inside = (row < counted.shape[0])[:, None] & (column < counted.shape[1])[None]
    bound = lcs.astype(jnp.float32) / jnp.maximum(least, jnp.float32(0.5))
    return jnp.where(in_range & (least > 0) & inside, bound, jnp.float32(NO_PAIR))
