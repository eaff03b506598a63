"""The rows of a launch that go from a GPU to the host: those a filter may keep.

A filter is decided twice: on the device in float32 with some slack, so that most of
what it drops never crosses, then on the host exactly (``pairs.result``). Where only the
nearest of each query are wanted (``pairs.plan.NearestOnly``), the identities of a
launch are compared with each other exactly, as quotients of integers.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxalign.bits import few_pairs
from jaxalign.bits.few_pairs import RUN
from jaxalign.model.identity import denominator
from jaxalign.pairs.result import Rows
from jaxalign.runtime.lengths import bucket
from jaxalign.runtime.programs import program

if TYPE_CHECKING:
    from jaxalign.model.identity import Filters
    from jaxalign.pairs.gpu.device_arrays import LaunchResult
    from jaxalign.pairs.gpu.launch_size import Launch
    from jaxalign.pairs.windows import PairMatrix


MAX_ROWS = 2**31 - 2**24  # of a result; int32 counts them and the places of a launch
LEAST_ROWS = 2**14  # that there is room for where a filter has passed
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
    """Rows of a launch whose result is kept on the host.

    As ``columns_to_host``; total : runs of all its paths; cells : of the launch
    """
    at, columns = columns_to_host(job, ids, launch.zipped, result, passing)
    rows, paths = _rows(job.task.job, launch, result, at), None
    if result.runs is not None:
        first, counts = columns.pop("first"), columns.pop("count").astype(np.int64)
        paths = in_order(np.asarray(result.runs)[:total], first, counts), counts
    return Rows(rows, columns, paths, cells)


def in_order(
    runs: np.ndarray | jax.Array, first: np.ndarray, counts: np.ndarray
) -> np.ndarray:
    """Runs of paths one after the other, on the host: some from ``first`` of each."""
    counts = counts.astype(np.int64)
    shift = np.repeat(first - (np.cumsum(counts) - counts), counts)
    return np.asarray(runs)[np.arange(len(shift)) + shift]


def _rows(job: "PairMatrix", launch: "Launch", result: "LaunchResult", at: np.ndarray):
    """Rows of the result of some places of a launch; few are numbered sooner on the
    host than those of all places come there."""
    all_known = job.rows is None and job.pairs < MAX_ROWS
    if all_known and RUN * len(at) >= np.size(result.row):
        return np.asarray(result.row).reshape(-1)[at].astype(np.int64)
    q, t = (at, at) if launch.zipped else np.unravel_index(at, result.wanted.shape)
    i, j = launch.queries[q], launch.targets[t]
    if job.kind == "all" and job.once:
        i, j = np.minimum(i, j), np.maximum(i, j)
    return job.position(i, j)


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
    """(places in the grid (P,), columns (P,)) of a launch, on the host.

    job : DeviceJob; ids : of both sides; passing : of the result, chosen before
    Pairs that run again are left out.
    """
    if not job.task.filtered:
        # Taking by number is 8 x a 2-D mask.
        at = np.flatnonzero(np.asarray(result.wanted))
        columns = {n: np.asarray(x).reshape(-1)[at] for n, x in result.columns.items()}
        return at, columns
    passing = passing or passing_of(job, ids, zipped, result)
    count = int(passing.count)
    if count > len(passing.at):
        size = bucket(count, 16, LEAST_ROWS)
        passing = passing_of(job, ids, zipped, result, size)
    columns = {name: np.asarray(x)[:count] for name, x in passing.columns.items()}
    return np.asarray(passing.at)[:count], columns


def passing_of(
    job: Any,
    ids: list[np.ndarray],
    zipped: bool,
    result: "LaunchResult",
    size: int = LEAST_ROWS,
) -> PassingPairs:
    """The pairs of a launch that filters may keep, with room for so many; nothing
    waits. As ``columns_to_host``."""
    task = job.task
    lengths = [side.length for side in job.sides]
    form, thresholds = task.filters.form, task.filters.thresholds
    scale = np.float32(task.scoring.scale)
    grid = result.columns, result.wanted, *ids, *lengths, thresholds, scale
    size = min(size, result.wanted.size)
    if task.nearest is not None and not zipped:
        bars = task.nearest.bars[ids[0]].astype(np.float32)
        more = bars, job.sides[1].start, np.int32(task.nearest.top)
        return PassingPairs(*_nearest_passing(*grid, *more, filters=form, size=size))
    swaps = task.job.kind == "all" and task.job.once
    options = {"filters": form, "zipped": zipped, "swaps": swaps}
    return PassingPairs(*_passing(*grid, **options, size=size))


@program(("filters", "zipped", "swaps", "size"))
def _passing(
    columns: dict[str, jax.Array],
    wanted: jax.Array,
    i: jax.Array,
    j: jax.Array,
    m: jax.Array,
    n: jax.Array,
    thresholds: jax.Array,
    scale: jax.Array,
    *,
    filters: "Filters",
    zipped: bool,
    swaps: bool,
    size: int,
):
    """All pairs that pass, and some that miss by a hair (float32).

    columns, wanted : grids of a launch; i, j : its ids; m, n : lengths of all
    thresholds, filters : of ``Filters``, and their form
    """
    filters = filters.with_thresholds(thresholds)
    if not zipped:
        i, j = jnp.broadcast_arrays(i[:, None], j[None, :])
    if swaps:
        i, j = jnp.minimum(i, j), jnp.maximum(i, j)
    seen, m, n = _as_table(columns, scale, m, i, n, j)
    mask = wanted & filters.mask(seen, m, n, jnp, FILTER_SLACK)
    return _first_pairs(mask, columns, size)


@program(("filters", "size"))
def _nearest_passing(
    columns: dict[str, jax.Array],
    wanted: jax.Array,
    i: jax.Array,
    j: jax.Array,
    m: jax.Array,
    n: jax.Array,
    thresholds: jax.Array,
    scale: jax.Array,
    bars: jax.Array,
    start: jax.Array,
    top: jax.Array,
    *,
    filters: "Filters",
    size: int,
):
    """The pairs of ``_passing`` that reach the bar of their query and are among its
    nearest of the launch, and few others.

    bars : (slots,), in place of a ``min_identity``
    start : where each target begins; top : pairs of a query
    """
    filters = replace(filters.with_thresholds(thresholds), min_identity=bars[:, None])
    i, j = jnp.broadcast_arrays(i[:, None], j[None, :])
    seen, m, n = _as_table(columns, scale, m, i, n, j)
    mask = wanted & filters.mask(seen, m, n, jnp, FILTER_SLACK)
    # A denominator may be a half.
    below = 2 * denominator(filters.identity, seen, m, n, jnp)
    count = columns["identities" if "identities" in columns else "max_identities"]
    pairs = count, below.astype(jnp.int32), start[jnp.maximum(j, 0)]
    pairs = RankedPairs(
        *(jnp.where(mask, x, no) for x, no in zip(pairs, NOBODY, strict=True))
    )
    mask &= ~_nearer(_last_wanted(pairs, top), pairs)
    return _first_pairs(mask, columns, size)


def _as_table(
    columns: dict[str, jax.Array],
    scale: jax.Array,
    m: jax.Array,
    i: jax.Array,
    n: jax.Array,
    j: jax.Array,
):
    """(columns as a table has them, lengths of both sides) of a grid, float32."""
    m, n = (x[jnp.maximum(k, 0)].astype(jnp.float32) for x, k in ((m, i), (n, j)))
    seen = {name: values.astype(jnp.float32) for name, values in columns.items()}
    return seen | {"score": seen["score"] / scale}, m, n


def _first_pairs(mask: jax.Array, columns: dict[str, jax.Array], size: int):
    """``PassingPairs`` of a mask."""
    count, index = few_pairs.first_places(mask, size)
    columns = {name: x.reshape(-1)[index] for name, x in columns.items()}
    return count, index, columns


class RankedPairs(NamedTuple):
    """Pairs as they are compared, int32: identity is count / below, up to a factor that
    is one for all; of equals the first start comes first."""

    count: jax.Array
    below: jax.Array
    start: jax.Array


NOBODY = RankedPairs(*np.array([-1, 1, 2**31 - 1], np.int32))  # farther than any pair


def _nearer(one: RankedPairs, other: RankedPairs) -> jax.Array:
    """Whether pairs come before others: count / below is larger, which products tell
    without rounding."""
    mine, others = _product(one.count, other.below), _product(other.count, one.below)
    high, low = (x > y for x, y in zip(mine, others, strict=True))
    same = [x == y for x, y in zip(mine, others, strict=True)]
    return high | (same[0] & (low | (same[1] & (one.start < other.start))))


def _product(count: jax.Array, below: jax.Array) -> tuple[jax.Array, jax.Array]:
    """count * below = high * 2^LIMB + low: identities are counted up to 2^13."""
    low = count * (below & (2**LIMB - 1))
    return count * (below >> LIMB) + (low >> LIMB), low & (2**LIMB - 1)


def _last_wanted(pairs: RankedPairs, top: jax.Array) -> RankedPairs:
    """A pair of each row (rows, 1), as near as which at least ``top`` others are.

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

    def nearest(one: tuple, other: tuple):
        first = _nearer(RankedPairs(*one), RankedPairs(*other))
        return tuple(jnp.where(first, x, y) for x, y in zip(one, other, strict=True))

    best = RankedPairs(*lax.reduce(tuple(bins), tuple(NOBODY), nearest, (1,)))
    one, other = (
        RankedPairs(*(jnp.expand_dims(x, axis) for x in best)) for axis in (2, 1)
    )
    before = _nearer(one, other).sum(axis=1, dtype=jnp.int32)
    last = jnp.where(before < top, before, -1).argmax(axis=1)[:, None]
    known = top <= NEAREST_BINS
    values = (jnp.take_along_axis(x, last, axis=1) for x in best)
    return RankedPairs(
        *(jnp.where(known, x, no) for x, no in zip(values, NOBODY, strict=True))
    )
