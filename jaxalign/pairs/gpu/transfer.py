"""The rows of a launch that go from a GPU to the host: those a filter may keep.

A filter is decided twice: on the device in float32 with some slack, so that most of
what it drops never crosses, then on the host exactly (``pairs.result``).
"""

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxalign.bits import few_pairs
from jaxalign.bits.few_pairs import RUN
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


def to_host(
    job: Any,
    launch: "Launch",
    ids: list[np.ndarray],
    result: "LaunchResult",
    total: int,
    cells: int,
) -> Rows:
    """Rows of a launch whose result is kept on the host.

    As ``columns_to_host``; total : runs of all its paths; cells : of the launch
    """
    at, columns = columns_to_host(job, ids, launch.zipped, result)
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


def columns_to_host(
    job: Any, ids: list[np.ndarray], zipped: bool, result: "LaunchResult"
):
    """(places in the grid (P,), columns (P,)) of a launch, on the host.

    job : DeviceJob; ids : of both sides; result : LaunchResult
    Pairs that run again are left out.
    """
    task = job.task
    wanted = result.wanted
    if not task.filtered:
        at = np.flatnonzero(np.asarray(wanted))  # taking by number is 8 x a 2-D mask
        columns = {n: np.asarray(x).reshape(-1)[at] for n, x in result.columns.items()}
        return at, columns
    count, size = None, LEAST_ROWS
    while count is None or count > size:
        size = min(bucket(count or 1, 16, LEAST_ROWS), wanted.size)
        passing = passing_of(job, ids, zipped, result, wanted, size)
        count = int(passing[0])
    _, index, columns = passing
    columns = {name: np.asarray(x)[:count] for name, x in columns.items()}
    return np.asarray(index)[:count], columns


def passing_of(
    job: Any,
    ids: list[np.ndarray],
    zipped: bool,
    result: "LaunchResult",
    wanted: jax.Array,
    size: int,
) -> tuple:
    """(number of the pairs of a launch that a filter may keep, places (size,) of the
    first, their columns), on the device."""
    task = job.task
    swaps = task.job.kind == "all" and task.job.once
    options = {"filters": task.filters.form, "zipped": zipped, "swaps": swaps}
    numbers = task.filters.thresholds, np.float32(task.scoring.scale)
    lengths = [side.length for side in job.sides]
    given = result.columns, wanted, *ids, *lengths, *numbers
    return _passing(*given, **options, size=size)


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
    m, n = (x[jnp.maximum(k, 0)].astype(jnp.float32) for x, k in ((m, i), (n, j)))
    seen = {name: values.astype(jnp.float32) for name, values in columns.items()}
    seen["score"] = seen["score"] / scale
    mask = wanted & filters.mask(seen, m, n, jnp, FILTER_SLACK)
    count, index = few_pairs.first_places(mask, size)
    columns = {name: x.reshape(-1)[index] for name, x in columns.items()}
    return count, index, columns
