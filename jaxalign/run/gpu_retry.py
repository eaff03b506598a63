"""Launches for which a device has no memory, in smaller ones."""

from jaxalign.run import gpu_errors, gpu_memory
from jaxalign.run.gpu_job import Job
from jaxalign.run.launch import smaller
from jaxalign.run.launch_size import launch_bytes


def within(job: Job, launch) -> list:
    """A launch, in smaller ones where one like it found no memory before."""
    task, most = job.task, gpu_memory.limit(job.device)
    if most is None or launch_bytes(task, job.kernels, launch) <= most:
        return [launch]
    return smaller(task, job.kernels, launch, most) or [launch]


def halves(job: Job, launch, error, alone=False) -> list:
    """The pairs of a launch that found no memory in smaller ones, or the same again
    where there are none and others were in flight beside it."""
    task, kernels = job.task, job.kernels
    if not gpu_errors.out_of_memory(error):
        raise gpu_errors.failure(task, launch, job.device, error) from error
    needed = launch_bytes(task, kernels, launch)
    half = gpu_memory.power(needed // 2)
    parts = smaller(task, kernels, launch, half)
    parts = parts or smaller(task, kernels, launch, needed - 1)
    if parts:
        most = max(launch_bytes(task, kernels, part) for part in parts)
        gpu_memory.lower(job.device, max(half, most))
        job.halved.append(launch)
    elif alone:
        raise gpu_errors.refusal(task, launch, needed, job.device, error) from error
    return parts or [launch]
