"""Launches that fail: those for which a device has no memory are run in smaller ones,
and errors say as a user should read them which job it was, and which launch."""

from typing import TYPE_CHECKING

from jaxalign.errors import DeviceFailure, MemoryPlanError
from jaxalign.pairs.gpu import device_memory, device_sequences
from jaxalign.pairs.gpu.device_job import DeviceJob
from jaxalign.pairs.gpu.launch_plan import smaller
from jaxalign.pairs.gpu.launch_size import Launch, launch_bytes
from jaxalign.runtime import device_errors
from jaxalign.runtime.device_errors import REMEDY, RuntimeFailure, first_line
from jaxalign.runtime.devices import Device, show_bytes

if TYPE_CHECKING:
    from jaxalign.pairs.plan import Task


def within(job: DeviceJob, launch: Launch) -> list:
    """A launch, in smaller ones where one like it found no memory before: in the
    smallest that hold its pairs where none is as small as that one."""
    task, most = job.task, device_memory.limit(job.device)
    while most is not None and most < launch_bytes(task, job.kernels, launch):
        if parts := smaller(task, job.kernels, launch, most):
            return parts
        most *= 2
    return [launch]


def halves(
    job: DeviceJob, launch: Launch, error: RuntimeFailure, alone: bool = False
) -> list:
    """The pairs of a launch that found no memory in smaller ones, or the same again
    where there are none and others were in flight beside it."""
    task, kernels = job.task, job.kernels
    if not device_errors.out_of_memory(error):
        raise failure(task, launch, job.device, error) from error
    device_sequences.forget(job.device)
    needed = launch_bytes(task, kernels, launch)
    half = device_memory.power(needed // 2)
    parts = smaller(task, kernels, launch, half)
    parts = parts or smaller(task, kernels, launch, needed - 1)
    if parts:
        most = max(launch_bytes(task, kernels, part) for part in parts)
        device_memory.lower(job.device, max(half, most))
        job.halved.append(launch)
    elif alone:
        raise refusal(task, launch, needed, job.device, error) from error
    return parts or [launch]


def refusal(
    task: "Task",
    launch: Launch,
    needed: int,
    device: Device,
    error: RuntimeFailure,
) -> MemoryPlanError:
    """The least launch of some pairs did not fit."""
    return MemoryPlanError(
        f"{device}: no memory for {_launch(task, launch)}, the least that holds these "
        f"pairs, which takes about {show_bytes(needed)} beside the result, of "
        f"{job_words(task)}: {first_line(error)}; free memory of the GPU, or "
        "`--device cpu`"
    )


def failure(
    task: "Task", launch: Launch, device: Device, error: RuntimeFailure
) -> DeviceFailure:
    """Anything else that ends a launch; whatever ran beside it has ended, too."""
    return DeviceFailure(
        f"{device} failed at {_launch(task, launch)} of {job_words(task)}: "
        f"{first_line(error)}; {REMEDY}"
    )


def _launch(task: "Task", launch: Launch) -> str:
    """``a launch of 64 queries x 4,096 targets (up to 900 x 812 letters, int16)``."""
    sides = (
        (task.job.query_lengths, launch.queries),
        (task.job.target_lengths, launch.targets),
    )
    m, n = (int(lengths[some].max(initial=0)) for lengths, some in sides)
    count = f"{len(launch.queries):,} queries x {len(launch.targets):,} targets"
    if launch.zipped:
        count = f"{len(launch.queries):,} pairs"
    return f"a launch of {count} (up to {m:,} x {n:,} letters, {launch.dtype})"


def job_words(task: "Task") -> str:
    return f"a job of {task.job.pairs:,} pairs, {task.mode}, output {task.output}"
