"""Launches for which a device has no memory, in smaller ones."""

from jaxalign.pairs.gpu import device_memory, device_sequences, launch_errors
from jaxalign.pairs.gpu.device_job import DeviceJob
from jaxalign.pairs.gpu.launch_plan import smaller
from jaxalign.pairs.gpu.launch_size import launch_bytes
from jaxalign.runtime import device_errors


def within(job: DeviceJob, launch) -> list:
    """A launch, in smaller ones where one like it found no memory before: in the
    smallest that hold its pairs where none is as small as that one."""
    task, most = job.task, device_memory.limit(job.device)
    while most is not None and most < launch_bytes(task, job.kernels, launch):
        if parts := smaller(task, job.kernels, launch, most):
            return parts
        most *= 2
    return [launch]


def halves(job: DeviceJob, launch, error, alone=False) -> list:
    """The pairs of a launch that found no memory in smaller ones, or the same again
    where there are none and others were in flight beside it."""
    task, kernels = job.task, job.kernels
    if not device_errors.out_of_memory(error):
        raise launch_errors.failure(task, launch, job.device, error) from error
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
        raise launch_errors.refusal(task, launch, needed, job.device, error) from error
    return parts or [launch]
