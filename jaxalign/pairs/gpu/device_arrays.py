"""The device's half of ``pairs.gpu.dispatch``: ids to arrays, kernels, findings to
rows.

A launch is one program (``launched``), from ids to rows. Nothing here waits but
``add``.

Rows that a filter may keep go to the host. A filter is decided twice: on the device in
float32 with some slack, so that most of what it drops never crosses, then on the host
exactly (``pairs.result``). Where only the nearest of each query are wanted
(``pairs.plan.NearestOnly``), the identities of a launch are compared with each other
exactly, as quotients of integers.
"""

from collections.abc import Sequence, Sized
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import SingleDeviceSharding

from jaxalign.model.alignment import SPANS
from jaxalign.model.identity import denominator
from jaxalign.pairs.result import PATH_COUNTS, Rows
from jaxalign.runtime import programs
from jaxalign.runtime.devices import Device, bucket
from jaxalign.runtime.pipeline import in_threads
from jaxalign.runtime.programs import program
from jaxalign.words import gpu
from jaxalign.words.gpu import RUN

if TYPE_CHECKING:
    from jaxalign.model.identity import Filters
    from jaxalign.pairs.gpu.launches import Launch


# Rows of a column copied to the host at once, by one of COPY_THREADS
TRANSFER_ROWS = 2**24
SMALL_ROWS = 2**17  # of a column that is copied as it is: threads would take longer
LEAST_ROWS, ROWS_RATIO = 2**12, 16  # rungs of columns of up to ``TRANSFER_ROWS``
COPY_THREADS = 16
HOST_MEMORY = "pinned_host"  # a device writes it, and the host reads it


class Order(NamedTuple):
    """How pairs become rows: pair (i, j) is row ``base[i] + j``; of two sides that may
    be swapped, the one of smaller ``rank`` is the query of the launch.

    half : int32 (), whose pairs are asked for: 0, of any query and target; 1, of two
        sequences of one set, which may be swapped; 2, of a sequence and itself as well
    """

    base: jax.Array  # int32
    rank: jax.Array  # int32
    half: jax.Array


class RequestedPairs(NamedTuple):
    """The pairs of a launch and their rows, (Q, T) or (N,)."""

    row: jax.Array  # of the result, beyond its last for pairs that are not asked for
    mask: jax.Array
    swapped: jax.Array  # computed with their sides swapped


class LaunchResult(NamedTuple):
    """The result of a launch, sides swapped back, (Q, T) or (N,) where not said."""

    columns: dict
    row: jax.Array  # as of ``RequestedPairs``
    mask: jax.Array  # of ``RequestedPairs``, without ``overflow``
    overflow: jax.Array | None  # pairs whose score may have left int16
    runs: jax.Array | None  # joined, one path after the other, start to end
    totals: jax.Array  # (3,): pairs to run again, runs of the longest path, all runs


def padded_ids(indices: np.ndarray, size: int):
    """int32 (size,), -1 beyond the last."""
    ids = np.full(size, -1, np.int32)
    ids[: len(indices)] = indices
    return ids


class Form(NamedTuple):
    """The static arguments of the program of a launch, beside shapes.

    sizes : letters of a query and of a target
    letters : (function, options) that lay out targets of any lengths, or None
    align, options : the function of the kernels, and its static arguments
    split : the function that splits a score of identities, or None
    capacity : room for the runs of all paths, 0 for none
    """

    sizes: tuple[int, int]
    letters: Any
    zipped: bool
    align: Any
    options: tuple[tuple[str, Any], ...]
    split: Any
    capacity: int
    proven: bool  # else scores may have left int16


class LaunchArrays(NamedTuple):
    """The arrays that a launch reads, on the device.

    queries, targets : ``device_job.DeviceSequences``; i, j : int32 (slots,),
    (places,), -1 where none is; pairs : int32, of the result; stacks : of the queries
    """

    problem: Any
    queries: Any
    targets: Any
    i: Any
    j: Any
    order: Order
    pairs: Any
    stacks: Any


@program(("form",))
def launched(arrays: LaunchArrays, *, form: Form) -> LaunchResult:
    """The rows of a launch."""
    sides, pairs = gather(arrays, form)
    result = _aligned(arrays, sides, form)
    if form.proven:
        result = result._replace(overflow=None)
    row, mask, swapped = pairs
    if form.split is not None:
        score, matches = form.split(result.score)
        columns = {"score": score, "max_identities": matches}
    else:
        columns = {"score": result.score}
        if result.columns is not None:
            spans = result.start_i, result.end_i, result.start_j, result.end_j
            turned = spans[2:] + spans[:2]
            for name, span, swapped_span in zip(SPANS, spans, turned, strict=True):
                columns[name] = jnp.where(swapped, swapped_span, span)
            columns |= {name: getattr(result, name) for name in PATH_COUNTS}
    overflow = None if result.overflow is None else result.overflow & mask
    zero = jnp.int32(0)
    repeat = zero if overflow is None else overflow.sum(dtype=jnp.int32)
    right = mask if overflow is None else mask & ~overflow
    if not form.capacity:
        totals = jnp.stack([repeat, zero, zero])
        return LaunchResult(columns, row, right, overflow, None, totals)
    count = jnp.where(right, result.count, 0)
    runs, starts = _join(result.runs, count, swapped, form.capacity)
    columns |= {"count": count, "first": starts}
    totals = jnp.stack([repeat, count.max(), count.sum(dtype=jnp.int32)])
    return LaunchResult(columns, row, right, overflow, runs, totals)


@program(("form",))
def launched_scores(arrays: LaunchArrays, *, form: Form):
    """The scores of a launch, int32 (slots, places)."""
    sides, _ = gather(arrays, form)
    return _aligned(arrays, sides, form).score


def _aligned(arrays: LaunchArrays, sides: tuple, form: Form):
    """The kernels' ``Result``."""
    extra = {} if arrays.stacks is None else {"stacks": arrays.stacks}
    return form.align(arrays.problem, *sides, **extra, **dict(form.options))


def gather(arrays: LaunchArrays, form: Form):
    """Gather the inputs of ``kernels.align``, (q, m, t, n, tie), and their
    ``RequestedPairs``.

    Whose pairs are asked for is data: jobs of one set and of two share programs.
    """
    _, queries, targets, i, j, order, pairs, _ = arrays
    sizes, letters, zipped = form[:3]
    q, m = _padded(queries, i, sizes[0])
    if letters is None:
        t, n = _padded(targets, j, sizes[1])
    else:
        (lay, options), n = letters, _lengths(targets, j)
        t = lay(targets.codes, targets.start[jnp.maximum(j, 0)], n, **dict(options))
    if not zipped:
        i, j = jnp.broadcast_arrays(i[:, None], j[None, :])
    mask = (i >= 0) & (j >= 0)
    before = order.rank[i] < order.rank[j]
    mask &= (order.half == 0) | before | ((order.half == 2) & (i == j))
    # Pairs whose sides are not to be swapped are wanted with i <= j alone.
    swapped = (order.half > 0) & (i > j)
    first, last = jnp.where(swapped, j, i), jnp.where(swapped, i, j)
    beyond = jnp.arange(mask.size, dtype=jnp.int32).reshape(mask.shape) + pairs
    row = jnp.where(mask, order.base[first] + last, beyond)
    return (q, m, t, n, swapped), RequestedPairs(row, mask, swapped)


def _padded(side: Any, ids: jax.Array, size: int):
    """uint8 (count, size) and int32 (count,); nothing where an id is -1."""
    start = side.start[jnp.maximum(ids, 0)]
    place = start[:, None] + jnp.arange(size, dtype=jnp.int32)[None, :]
    return side.codes.at[place].get(mode="clip"), _lengths(side, ids)


def _lengths(side: Any, ids: jax.Array):
    return jnp.where(ids >= 0, side.length[jnp.maximum(ids, 0)], 0)


def _join(runs: jax.Array, count: jax.Array, swapped: jax.Array, capacity: int):
    """Runs (R, ...), end to start -> (one path after the other, start to end, uint32
    (capacity,); where each begins). I and D (1 and 2) change places with the sides."""
    pairs, length = count.size, count.reshape(-1)
    starts = jnp.cumsum(length) - length
    # The pair of every place: what is read is as long as the paths, not as R of each.
    pair = jnp.arange(pairs, dtype=jnp.int32)
    pair = jnp.repeat(pair, length, total_repeat_length=capacity)
    r = (starts + length - 1)[pair] - jnp.arange(capacity, dtype=jnp.int32)
    joined = runs.reshape(-1, pairs).at[r, pair].get(mode="clip").astype(jnp.uint32)
    turned = swapped.reshape(-1)[pair] & ((joined & 15) != 0)
    joined = jnp.where(turned, joined ^ jnp.uint32(3), joined)
    return joined, starts.reshape(count.shape)


def columns(names: Sequence[str], rows: int) -> dict[str, jax.Array]:
    """int32, zero, of so many rows at least: one of a few sizes."""
    size = bucket(rows, ROWS_RATIO, LEAST_ROWS)
    if rows > TRANSFER_ROWS:
        size = bucket(rows, 2, TRANSFER_ROWS)
    return dict(zip(names, _zeros(count=len(names), size=size), strict=True))


@program(("count", "size"))
def _zeros(*, count: int, size: int):
    return [jnp.zeros(size, jnp.int32) for _ in range(count)]


@program(donate_argnames=("columns", "runs"))
def put(
    columns: dict[str, jax.Array], runs: jax.Array, end: jax.Array, result: LaunchResult
):
    """Write the columns and runs of a launch into those of the result."""
    values = result.columns
    if result.runs is not None:
        values = values | {"first": values["first"] + end}
        runs = jax.lax.dynamic_update_slice(runs, result.runs, (end,))
        # Where there are more, the launch is issued again.
        end = end + jnp.minimum(result.totals[2], len(result.runs))
    row = result.row.reshape(-1)

    def put(column: jax.Array, values: jax.Array):
        values = values.reshape(-1)
        return column.at[row].set(values, mode="drop", unique_indices=True)

    return {name: put(x, values[name]) for name, x in columns.items()}, runs, end


@program(("size",))
def grow(runs: jax.Array, *, size: int):
    return jnp.zeros(size, runs.dtype).at[: len(runs)].set(runs)


@program(("size",))
def in_order(runs: jax.Array, count: jax.Array, first: jax.Array, *, size: int):
    """Joined runs of all launches in the order of the rows: (size,)."""
    starts = jnp.cumsum(count) - count
    shift = jnp.repeat(first - starts, count, total_repeat_length=size)
    places = jnp.arange(size, dtype=jnp.int32)
    return runs.at[places + shift].get(mode="clip")


def add(parts: Sequence[jax.Array], into: np.ndarray) -> None:
    """Add the first values of arrays, each on a device of its own, to one on the host.

    In pieces side by side, which the devices in turn sum and copy: each has a way of
    its own to the host. Four H200 brought 1.7e9 rows in 0.27 s so, by memory that is
    not pinned in 1.3 (docs/logs/gpu-scaling.md, cause 5). Small ones come as they are.
    """
    if len(parts[0]) <= SMALL_ROWS:
        for part in parts:
            into += np.asarray(part)[: len(into)]
        return
    size = piece_rows(parts[0])

    def add_piece(numbered: tuple[int, int]):
        k, start = numbered
        device = parts[k % len(parts)].device
        part = into[start : start + size]
        try:
            total: Any = None  # of all parts, summed on one device
            for column in parts:
                with jax.default_device(column.device):
                    of_column = piece(column, np.int32(start), size=size)
                with jax.default_device(device):
                    of_column = jax.device_put(of_column, device)
                    total = of_column if total is None else total + of_column
            values = np.asarray(_near(total, device))
        except programs.RuntimeFailure as error:
            if not programs.out_of_memory(error):
                raise
            # Whole columns as they lie there, which takes no memory of the device.
            values = np.zeros(size, into.dtype)
            for whole in parts:
                values += np.asarray(whole)[start : start + size]
        part += values[: len(part)]

    in_threads(add_piece, enumerate(range(0, len(into), size)), COPY_THREADS)


def piece_rows(column: Sized) -> int:
    """Rows of a column that are copied at once."""
    return min(TRANSFER_ROWS, len(column))


def _near(values: jax.Array, device: Device):
    """Values in memory of the host, where its device writes there itself."""
    kinds = {memory.kind for memory in device.addressable_memories()}
    if device.platform == "cpu" or HOST_MEMORY not in kinds:
        return values
    return jax.device_put(values, SingleDeviceSharding(device, memory_kind=HOST_MEMORY))


@program(("size",))
def piece(values: jax.Array, start: jax.Array, *, size: int):
    """Some values of a column."""
    return jax.lax.dynamic_slice(values, (start,), (size,))


MAX_ROWS = 2**31 - 2**24  # of a result; int32 counts them and the places of a launch
LEAST_ROWS_SENT = 2**14  # that there is room for where a filter has passed
FILTER_SLACK = 1e-5  # of a threshold, above what float32 loses
NEAREST_BINS = 128  # of the targets of a launch, one pair of each of which is compared
LIMB = 15  # bits: a product of a count and a length is held in two integers


def to_host(
    job: Any,
    launch: "Launch",
    ids: list[np.ndarray],
    result: "LaunchResult",
    passing: "PassingPairs | None",
    total: int,
    cells: int,
) -> Rows:
    """Rows of a launch on the host; ``total`` runs of all its paths, and its cells."""
    at, columns = columns_to_host(job, ids, launch.zipped, result, passing)
    pairs, paths = job.task.job, None
    numbered = pairs.rows is None and pairs.pairs < MAX_ROWS
    if numbered and RUN * len(at) >= np.size(result.row):
        rows = np.asarray(result.row).reshape(-1)[at].astype(np.int64)
    else:  # few: numbered sooner on the host than those of all places come there
        q, t = (at, at) if launch.zipped else np.unravel_index(at, result.mask.shape)
        i, j = launch.queries[q], launch.targets[t]
        if pairs.kind == "all" and pairs.once:
            i, j = np.minimum(i, j), np.maximum(i, j)
        rows = pairs.position(i, j)
    if result.runs is not None:
        first, counts = columns.pop("first"), columns.pop("count").astype(np.int64)
        paths = rows_in_order(np.asarray(result.runs)[:total], first, counts), counts
    return Rows(rows, columns, paths, cells)


def rows_in_order(
    runs: np.ndarray | jax.Array, first: np.ndarray, counts: np.ndarray
) -> np.ndarray:
    """Runs of paths one after the other, on the host: some from ``first`` of each."""
    counts = counts.astype(np.int64)
    shift = np.repeat(first - (np.cumsum(counts) - counts), counts)
    return np.asarray(runs)[np.arange(len(shift)) + shift]


class PassingPairs(NamedTuple):
    """The pairs of a launch that its filters may keep, on the device.

    count : int32 (), how many there are; at : int32 (size,), places of the first of
    them in the grid of the launch; columns : (size,), of these
    """

    count: jax.Array
    at: jax.Array
    columns: dict[str, jax.Array]


def columns_to_host(
    job: Any,
    ids: list[np.ndarray],
    zipped: bool,
    result: "LaunchResult",
    passing: PassingPairs | None = None,
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """(places in the grid (P,), columns (P,)) of a launch, on the host, without pairs
    that run again; ``passing`` are those of the result, if chosen before."""
    if not job.task.filtered:
        # Taking by number is 8 x a 2-D mask.
        at = np.flatnonzero(np.asarray(result.mask))
        columns = {n: np.asarray(x).reshape(-1)[at] for n, x in result.columns.items()}
        return at, columns
    passing = passing or passing_of(job, ids, zipped, result)
    count = int(passing.count)
    if count > len(passing.at):
        size = bucket(count, 16, LEAST_ROWS_SENT)
        passing = passing_of(job, ids, zipped, result, size)
    columns = {name: np.asarray(x)[:count] for name, x in passing.columns.items()}
    return np.asarray(passing.at)[:count], columns


def passing_of(
    job: Any,
    ids: list[np.ndarray],
    zipped: bool,
    result: "LaunchResult",
    size: int = LEAST_ROWS_SENT,
) -> PassingPairs:
    """The pairs of a launch that filters may keep, with room for so many; nothing
    waits. As ``columns_to_host``."""
    task, nearest = job.task, None
    if task.nearest is not None and not zipped:
        bars = task.nearest.bars[ids[0]].astype(np.float32)
        nearest = bars, job.sides[1].start, np.int32(task.nearest.top)
    lengths = tuple(side.length for side in job.sides)
    scale = np.float32(task.scoring.scale)
    return _passing(
        result.columns, result.mask, tuple(ids), lengths, task.filters.thresholds,
        scale, np.bool_(task.job.kind == "all" and task.job.once), nearest,
        filters=task.filters.form, zipped=zipped, size=min(size, result.mask.size),
    )  # fmt: skip


@program(("filters", "zipped", "size"))
def _passing(
    columns: dict[str, jax.Array],
    requested: jax.Array,
    ids: tuple[jax.Array, jax.Array],
    lengths: tuple[jax.Array, jax.Array],
    thresholds: jax.Array,
    scale: jax.Array,
    swaps: jax.Array,
    nearest: tuple[jax.Array, jax.Array, jax.Array] | None = None,
    *,
    filters: "Filters",
    zipped: bool,
    size: int,
) -> PassingPairs:
    """Find all pairs that pass, and a few that miss by float32 slack; with ``nearest``,
    only the nearest of each query and a few others.

    columns, requested : grids of a launch
    lengths : of all sequences of both sides
    thresholds, filters : of ``Filters``, and their form
    swaps : whether the smaller of two numbers is the query's
    nearest : (bars, start, top), optional, (slots,) the least identity of a query, in
        place of ``min_identity``; where each target begins; pairs of a query
    """
    i, j = ids
    filters = filters.with_thresholds(thresholds)
    if nearest is not None:
        filters = replace(filters, min_identity=nearest[0][:, None])
    if not zipped:
        i, j = jnp.broadcast_arrays(i[:, None], j[None, :])
    swaps &= i > j
    i, j = jnp.where(swaps, j, i), jnp.where(swaps, i, j)
    pairs = zip(lengths, (i, j), strict=True)
    m, n = (x[jnp.maximum(k, 0)].astype(jnp.float32) for x, k in pairs)
    seen = {name: values.astype(jnp.float32) for name, values in columns.items()}
    seen |= {"score": seen["score"] / scale}
    mask = requested & filters.mask(seen, m, n, jnp, FILTER_SLACK)
    if nearest is not None:
        _, start, top = nearest
        # A denominator may be a half.
        below = 2 * denominator(filters.identity, seen, m, n, jnp)
        count = columns["identities" if "identities" in columns else "max_identities"]
        ranked = count, below.astype(jnp.int32), start[jnp.maximum(j, 0)]
        ranked = RankedPairs(
            *(jnp.where(mask, x, no) for x, no in zip(ranked, NOBODY, strict=True))
        )
        mask &= ~_nearer(_last_wanted(ranked, top), ranked)
    count, index = gpu.first_places(mask, size)
    columns = {name: x.reshape(-1)[index] for name, x in columns.items()}
    return PassingPairs(count, index, columns)


class RankedPairs(NamedTuple):
    """Pairs as they are compared, int32: identity is count / below, up to a factor that
    is one for all; of equals the first start comes first."""

    count: jax.Array
    below: jax.Array
    start: jax.Array


NOBODY = RankedPairs(*np.array([-1, 1, 2**31 - 1], np.int32))  # farther than any pair


def _nearer(pairs: RankedPairs, rivals: RankedPairs) -> jax.Array:
    """Whether pairs come before others: count / below is larger, which products tell
    without rounding."""
    mine = _product(pairs.count, rivals.below)
    theirs = _product(rivals.count, pairs.below)
    high, low = (x > y for x, y in zip(mine, theirs, strict=True))
    same = [x == y for x, y in zip(mine, theirs, strict=True)]
    return high | (same[0] & (low | (same[1] & (pairs.start < rivals.start))))


def _product(count: jax.Array, below: jax.Array) -> tuple[jax.Array, jax.Array]:
    """count * below = high * 2^LIMB + low: identities are counted up to 2^13."""
    low = count * (below & (2**LIMB - 1))
    return count * (below >> LIMB) + (low >> LIMB), low & (2**LIMB - 1)


def _last_wanted(pairs: RankedPairs, top: jax.Array) -> RankedPairs:
    """Find, for each row (rows, 1), a pair that at least ``top`` others equal or
    exceed.

    It is the last of the ``top`` nearest ones of bins, of each of which the nearest is
    known. Neighbours, which may be copies, are in different bins.
    """
    spare = -pairs.count.shape[1] % NEAREST_BINS
    bins = [
        jnp.pad(x, ((0, 0), (0, spare)), constant_values=no).reshape(
            len(x), -1, NEAREST_BINS
        )
        for x, no in zip(pairs, NOBODY, strict=True)
    ]

    def nearest(pair: tuple, rival: tuple):
        first = _nearer(RankedPairs(*pair), RankedPairs(*rival))
        return tuple(jnp.where(first, x, y) for x, y in zip(pair, rival, strict=True))

    best = RankedPairs(*lax.reduce(tuple(bins), tuple(NOBODY), nearest, (1,)))
    rows, columns = (
        RankedPairs(*(jnp.expand_dims(x, axis) for x in best)) for axis in (2, 1)
    )
    before = _nearer(rows, columns).sum(axis=1, dtype=jnp.int32)
    last = jnp.where(before < top, before, -1).argmax(axis=1)[:, None]
    has_bins = top <= NEAREST_BINS
    values = (jnp.take_along_axis(x, last, axis=1) for x in best)
    return RankedPairs(
        *(jnp.where(has_bins, x, no) for x, no in zip(values, NOBODY, strict=True))
    )
