"""A task on a device: what its launches share, and its result as it grows there.

The result is in input order. A launch is put into it once all of it is there, since
what is put gives its memory away: a launch that fails must not take the rows of others
with it. Should memory be missing even so, the rows are ``Lost``, and their launches run
again without it.
"""

from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
import numpy as np

from jaxalign.model.table import SPANS
from jaxalign.pairs.gpu import device_arrays, device_sequences, transfer
from jaxalign.pairs.gpu.device_arrays import SMALL_ROWS, LaunchResult, Order
from jaxalign.pairs.gpu.score_types import numbers
from jaxalign.pairs.plan import Task
from jaxalign.pairs.result import PATH_COUNTS, Output
from jaxalign.runtime import device_errors
from jaxalign.runtime.lengths import bucket

LEAST_RUNS, RUNS_RATIO = 2**17, 8  # rungs of room for the runs of all paths


class Lost(Exception):
    """There was no memory to put a launch into a result; no row of it is to be used."""


@dataclass
class DeviceResult:
    """A result as it grows on the device."""

    columns: dict
    runs: jax.Array  # of all paths so far, in the order of launches
    end: jax.Array  # (): how many
    known: int = 0  # the same, on the host
    launches: list = field(default_factory=list)  # whose rows are here or will be
    cells_reported: int = 0  # their cells that progress has been told of


@dataclass
class DeviceJob:
    """Sequences, scoring and results that the launches of a task share on a device.

    A thread that runs some of them has a copy, of which the middle fields are its own;
    the last ones are those of all copies.
    """

    task: Task
    kernels: Any
    sides: tuple  # of ``device_sequences.DeviceSequences``
    order: Order
    problem: Any
    interpret: Any = None

    result: DeviceResult | None = None  # None: rows go to the host, launch by launch
    output: Any = None  # ``pairs.result.Output``
    tell: Any = None  # callable (cells more done)
    spilled: bool = False  # rows go to the host: there was no memory to hold them

    compiled: set = field(default_factory=set)  # static sizes
    halved: list = field(default_factory=list)  # launches that ran in halves

    @property
    def device(self):
        return self.sides[0].codes.device

    @property
    def steps(self) -> bool:
        return self.task.output == "alignment"


def load_sides(task: Task, kernels: Any):
    """(the two sides, the order, the problem) on the device."""
    job, count = task.job, task.shape[0]
    sizes = (job.whole.letters, job.whole.targets) if job.whole else (0, 0)
    load = partial(device_sequences.load, wholes=task.whole_codes)
    if task.top is None:
        targets = load(task.targets, *sizes)
    else:
        targets = device_sequences.load_block(task.targets)
    queries = targets  # or the first of them
    if job.kind != "all":
        queries = load(task.queries, *sizes)
    rank = job.rank if job.kind == "all" and job.once else np.arange(task.shape[1])
    base = np.zeros(count) if job.kind == "zip" else job.position(np.arange(count), 0)
    order = jax.device_put(order_of(task, base, rank))
    return (queries, targets), order, problem_of(task, kernels)


def order_of(task: Task, base: np.ndarray, rank: np.ndarray) -> Order:
    """An ``Order`` on the host, with room as the two sides have it."""
    count = task.job.whole.targets if task.job.whole else 0
    rooms = (device_sequences.places_of(x, count) for x in (task.queries, task.targets))
    places = zip((base, rank), rooms, strict=True)
    return Order._make(device_sequences.padded_integers(*x) for x in places)


def problem_of(task: Task, kernels: Any):
    """The scoring of a task, on the device."""
    wildcard = task.scoring.alphabet.wildcard_code
    return kernels.problem_of(*numbers(task), task.free, wildcard)


@contextmanager
def _lost():
    try:
        yield
    except device_errors.RuntimeFailure as error:
        if device_errors.out_of_memory(error):
            raise Lost from error
        raise


def names_of(task: Task) -> list[str]:
    """The columns of a result."""
    names = ["score"]
    names += ["max_identities"] if task.output == "identity" else []
    names += [*SPANS, *PATH_COUNTS] if task.paths else []
    return names + (["count", "first"] if task.output == "alignment" else [])


def empty_result(task: Task) -> DeviceResult:
    """Columns of the result on the device; runs of a path begin at ``first``.

    Raises
    ------
    Lost
    """
    with _lost():
        columns = device_arrays.columns(names_of(task), task.job.pairs)
        runs, end = jax.device_put((np.zeros(LEAST_RUNS, np.uint32), np.int32(0)))
        jax.block_until_ready((columns, runs, end))
    return DeviceResult(columns, runs, end)


def put_launch(whole: DeviceResult, result: LaunchResult, total: int) -> None:
    """Put the rows of a launch, which are there, into the whole result.

    total : runs of all its paths

    Raises
    ------
    Lost
    """
    with _lost():
        if result.runs is not None:
            needed = whole.known + len(result.runs)
            if needed > len(whole.runs):
                size = bucket(needed, RUNS_RATIO, LEAST_RUNS)
                whole.runs = device_arrays.grow(whole.runs, size=size)
            whole.known += min(total, len(result.runs))
        whole.columns, whole.runs, whole.end = device_arrays.put(
            whole.columns, whole.runs, whole.end, result
        )


def wait_for(whole: DeviceResult) -> None:
    """Wait until all launches are put into a result.

    Raises
    ------
    Lost
    """
    with _lost():
        jax.block_until_ready((whole.columns, whole.runs, whole.end))


def collect(jobs: list[DeviceJob], out: Output) -> None:
    """Bring the results of jobs of one task, each on its own device, to the host."""
    results = [job.result for job in jobs if job.result is not None]
    if not results:
        return
    columns = {name: [x.columns[name] for x in results] for name in results[0].columns}
    paths = None
    if "first" in columns:
        paths = _paths(results[0], columns, jobs[0].task.job.pairs)
    small = [x for parts in columns.values() for x in parts if x.size <= SMALL_ROWS]
    for column in small:
        column.copy_to_host_async()
    add = device_arrays.add
    out.take({name: partial(add, parts) for name, parts in columns.items()}, paths)
    for job in jobs:
        job.result = None


def _paths(whole: DeviceResult, columns: dict, rows: int):
    """(runs, how many of each row) of the paths of one device, in input order."""
    (count,), (first,) = columns.pop("count"), columns.pop("first")
    counts = np.zeros(rows, np.int32)
    device_arrays.add([count], counts)
    total = int(counts.sum(dtype=np.int64))
    runs = np.zeros(total, np.uint32)
    size = bucket(total, RUNS_RATIO, LEAST_RUNS)
    try:
        device_arrays.add(
            [device_arrays.in_order(whole.runs, count, first, size=size)], runs
        )
    except device_errors.RuntimeFailure as error:
        if not device_errors.out_of_memory(error):
            raise
        runs = transfer.in_order(whole.runs, np.asarray(first)[:rows], counts)
    return runs, counts.astype(np.int64)
