"""The programs of launches, listed from lengths alone: nothing is computed, and no GPU
is needed (``runtime.program_outline``)."""

from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from jaxalign.pairs.gpu import (
    device_arrays,
    device_job,
    device_memory,
    device_sequences,
    launch_call,
    launch_plan,
    transfer,
)
from jaxalign.pairs.gpu.device_arrays import LaunchResult
from jaxalign.pairs.gpu.device_job import DeviceJob, order_of, problem_of
from jaxalign.pairs.gpu.launch_size import Launch
from jaxalign.runtime.program_outline import shapes_of

if TYPE_CHECKING:
    from jaxalign.pairs.plan import Task


# Room for the rows of a launch that pass filters
FILTER_RUNGS = transfer.LEAST_ROWS, 16 * transfer.LEAST_ROWS


def of_task(task: "Task", kernels: Any) -> None:
    """The programs of a task of pairs, from the sequences to the columns on the host;
    with int32 where int16 may not hold all scores."""
    job = job_of(task, kernels)
    launches, _ = launch_plan.cut(task, kernels, device_memory.LAUNCH_BYTES)
    some = _distinct(launches)
    if unproven := [x for x in some if not x.proven]:
        first = unproven[0].queries[:1], unproven[0].targets[:1]
        some += _distinct(launch_call.in_int32(job, *first).blocks)
    of_launches(job, some)


def of_launches(job: DeviceJob, launches: list[Launch]) -> None:
    """The programs of some launches, and of what they put into a result."""
    task, columns = job.task, None
    if device_memory.holds(task):
        columns = device_arrays.columns(device_job.names_of(task), task.job.pairs)
    for launch in launches:
        result = launch_call.issue(job, launch)
        if columns is None:
            _to_host(job, launch, result)
            continue
        runs = jax.ShapeDtypeStruct((device_job.LEAST_RUNS,), np.uint32)
        end = jax.ShapeDtypeStruct((), np.int32)
        columns, *_ = device_arrays.put(columns, runs, end, result)
    if columns is None:
        return
    if task.output == "alignment":
        runs = jax.ShapeDtypeStruct((device_job.LEAST_RUNS,), np.uint32)
        count, first = columns["count"], columns["first"]
        runs = device_arrays.in_order(runs, count, first, size=device_job.LEAST_RUNS)
        _pieces(runs)
    _pieces(columns["score"])


def _pieces(column: jax.Array) -> None:
    """The program that copies a column to the host, if it is long."""
    if column.size <= device_arrays.SMALL_ROWS:
        return
    device_arrays.piece(column, np.int32(0), size=device_arrays.piece_rows(column))


def scores_of_task(task: "Task", kernels: Any) -> list:
    """The programs of the scores of a search; these, as shapes, launch by launch."""
    job = job_of(task, kernels)
    launches, _ = launch_plan.cut(task, kernels, device_memory.LAUNCH_BYTES)
    return [launch_call.launch_scores(job, launch) for launch in _distinct(launches)]


def job_of(task: "Task", kernels: Any) -> DeviceJob:
    """``dispatch.prepare`` in shapes."""
    job = task.job
    sizes = (job.whole.letters, job.whole.targets) if job.whole else (0, 0)
    targets = device_sequences.outlined(task.targets, *sizes, task.whole_codes)
    queries = targets
    if job.kind != "all":
        queries = device_sequences.outlined(task.queries, *sizes, task.whole_codes)
    order = shapes_of(order_of(task, *map(np.zeros, task.shape)))
    problem = shapes_of(problem_of(task, kernels))
    return DeviceJob(task, kernels, (queries, targets), order, problem)


def _distinct(launches: list[Launch]) -> list[Launch]:
    """A launch of each static size."""
    return list({x.sizes: x for x in launches}.values())


def _to_host(job: DeviceJob, launch: Launch, result: LaunchResult) -> None:
    """The programs that take rows of a launch to the host, of few and of more."""
    if not job.task.filtered:
        return
    ids = launch_call.launch_ids(launch)
    sizes = {min(size, launch.pairs) for size in FILTER_RUNGS}
    for size in sorted(sizes):
        transfer.passing_of(job, ids, launch.zipped, result, size)
