"""The device's half of ``pairs.gpu.dispatch``: ids to arrays, kernels, findings to
rows.

A launch is one program (``launched``), from ids to rows. Nothing here waits but
``add``.
"""

from collections.abc import Callable, Sequence, Sized
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import SingleDeviceSharding

from jaxalign.model.table import SPANS
from jaxalign.pairs.result import PATH_COUNTS
from jaxalign.runtime import device_errors
from jaxalign.runtime.devices import Device
from jaxalign.runtime.lengths import bucket
from jaxalign.runtime.pipeline import in_threads
from jaxalign.runtime.programs import program

# Rows of a column copied to the host at once, by one of COPY_THREADS
TRANSFER_ROWS = 2**24
SMALL_ROWS = 2**17  # of a column that is copied as it is: threads would take longer
LEAST_ROWS, ROWS_RATIO = 2**12, 16  # rungs of columns of up to ``TRANSFER_ROWS``
COPY_THREADS = 16
HOST_MEMORY = "pinned_host"  # a device writes it, and the host reads it


class Order(NamedTuple):
    """How pairs become rows: pair (i, j) is row ``base[i] + j``; of two sides that may
    be swapped, the one of smaller ``rank`` is the query of the launch."""

    base: jax.Array  # int32
    rank: jax.Array  # int32


class RequestedPairs(NamedTuple):
    """The pairs of a launch and their rows, (Q, T) or (N,)."""

    row: jax.Array  # of the result, beyond its last for pairs that are not asked for
    wanted: jax.Array
    swapped: jax.Array  # computed with their sides swapped


class LaunchResult(NamedTuple):
    """The result of a launch, sides swapped back, (Q, T) or (N,) where not said."""

    columns: dict
    row: jax.Array  # as of ``RequestedPairs``
    wanted: jax.Array  # … but without those of ``again``
    again: jax.Array | None  # pairs whose score may have left int16
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
    tied : whether a pair whose sides are swapped ends at another of equal cells
    align, options : the function of the kernels, and its static arguments
    split : the function that splits a score of identities, or None
    capacity : room for the runs of all paths, 0 for none
    """

    sizes: tuple[int, int]
    letters: Any
    zipped: bool
    kind: str
    tied: bool
    inclusive: bool
    align: Any
    options: tuple[tuple[str, Any], ...]
    split: Any
    capacity: int
    proven: bool  # else scores may have left int16


class LaunchArrays(NamedTuple):
    """The arrays that a launch reads, on the device.

    queries, targets : ``device_sequences.DeviceSequences``; i, j : int32 (slots,),
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
    return launch_result(result, pairs, split=form.split, capacity=form.capacity)


@program(("form",))
def launched_scores(arrays: LaunchArrays, *, form: Form):
    """The scores of a launch, int32 (slots, places)."""
    sides, _ = gather(arrays, form)
    return _aligned(arrays, sides, form).score


def _aligned(arrays: LaunchArrays, sides: tuple, form: Form):
    """The kernels' ``Result``."""
    more = {} if arrays.stacks is None else {"stacks": arrays.stacks}
    return form.align(arrays.problem, *sides, **more, **dict(form.options))


def gather(arrays: LaunchArrays, form: Form):
    """((q, m, t, n, tie), ``RequestedPairs``): what ``kernels.align`` reads, and where
    it belongs."""
    _, queries, targets, i, j, order, pairs, _ = arrays
    sizes, letters, zipped, kind, tied, inclusive = form[:6]
    q, m = _padded(queries, i, sizes[0])
    if letters is None:
        t, n = _padded(targets, j, sizes[1])
    else:
        (lay, options), n = letters, _lengths(targets, j)
        t = lay(targets.codes, targets.start[jnp.maximum(j, 0)], n, **dict(options))
    if not zipped:
        i, j = jnp.broadcast_arrays(i[:, None], j[None, :])
    wanted = (i >= 0) & (j >= 0)
    if kind == "all":
        before = order.rank[i] < order.rank[j]
        wanted &= before | (i == j) if inclusive else before
    # Pairs whose sides are not to be swapped are wanted with i <= j alone.
    swapped = i > j if kind == "all" else jnp.zeros_like(wanted)
    first, last = jnp.where(swapped, j, i), jnp.where(swapped, i, j)
    beyond = jnp.arange(wanted.size, dtype=jnp.int32).reshape(wanted.shape) + pairs
    row = jnp.where(wanted, order.base[first] + last, beyond)
    sides = q, m, t, n, swapped if kind == "all" and tied else None
    return sides, RequestedPairs(row, wanted, swapped)


def _padded(side: Any, ids: jax.Array, size: int):
    """uint8 (count, size) and int32 (count,); nothing where an id is -1."""
    start = side.start[jnp.maximum(ids, 0)]
    place = start[:, None] + jnp.arange(size, dtype=jnp.int32)[None, :]
    return side.codes.at[place].get(mode="clip"), _lengths(side, ids)


def _lengths(side: Any, ids: jax.Array):
    return jnp.where(ids >= 0, side.length[jnp.maximum(ids, 0)], 0)


def launch_result(
    result: Any, pairs: RequestedPairs, *, split: Callable | None, capacity: int
) -> LaunchResult:
    """``kernels.Result`` of a launch -> ``LaunchResult``."""
    row, wanted, swapped = pairs
    columns = _oriented(result, swapped, split)
    again = None if result.overflow is None else result.overflow & wanted
    zero = jnp.int32(0)
    repeat = zero if again is None else again.sum(dtype=jnp.int32)
    right = wanted if again is None else wanted & ~again
    if not capacity:
        totals = jnp.stack([repeat, zero, zero])
        return LaunchResult(columns, row, right, again, None, totals)
    count = jnp.where(right, result.count, 0)
    runs, begin = _join(result.runs, count, swapped, capacity)
    columns |= {"count": count, "first": begin}
    totals = jnp.stack([repeat, count.max(), count.sum(dtype=jnp.int32)])
    return LaunchResult(columns, row, right, again, runs, totals)


def _oriented(result: Any, swapped: jax.Array, split: Callable | None) -> dict:
    """Columns of the pairs with their sides swapped back."""
    if split is not None:
        return dict(zip(("score", "max_identities"), split(result.score), strict=True))
    columns = {"score": result.score}
    if result.columns is None:
        return columns
    spans = result.start_i, result.end_i, result.start_j, result.end_j
    others = spans[2:] + spans[:2]
    for name, own, other in zip(SPANS, spans, others, strict=True):
        columns[name] = jnp.where(swapped, other, own)
    return columns | {name: getattr(result, name) for name in PATH_COUNTS}


def _join(runs: jax.Array, count: jax.Array, swapped: jax.Array, capacity: int):
    """Runs (R, ...), end to start -> (one path after the other, start to end, uint32
    (capacity,); where each begins). I and D (1 and 2) change places with the sides."""
    pairs, length = count.size, count.reshape(-1)
    begin = jnp.cumsum(length) - length
    # The pair of every place: what is read is as long as the paths, not as R of each.
    pair = jnp.arange(pairs, dtype=jnp.int32)
    pair = jnp.repeat(pair, length, total_repeat_length=capacity)
    r = (begin + length - 1)[pair] - jnp.arange(capacity, dtype=jnp.int32)
    joined = runs.reshape(-1, pairs).at[r, pair].get(mode="clip").astype(jnp.uint32)
    turned = swapped.reshape(-1)[pair] & ((joined & 15) != 0)
    return jnp.where(turned, joined ^ jnp.uint32(3), joined), begin.reshape(count.shape)


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
    """Columns and runs with those of a launch in place."""
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
    begin = jnp.cumsum(count) - count
    shift = jnp.repeat(first - begin, count, total_repeat_length=size)
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
            values = np.asarray(_near(_sum(parts, start, size, device), device))
        except device_errors.RuntimeFailure as error:
            if not device_errors.out_of_memory(error):
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


def _sum(parts: Sequence[jax.Array], start: int, size: int, device: Device):
    """Values from some place on of all parts, summed on one device."""
    total: Any = None
    for part in parts:
        with jax.default_device(part.device):
            values = piece(part, np.int32(start), size=size)
        with jax.default_device(device):
            values = jax.device_put(values, device)
            total = values if total is None else total + values
    return total


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
