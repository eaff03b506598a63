"""Errors of a launch as a user should read them: which job, which launch."""

from jaxalign.errors import DeviceFailure, MemoryPlanError
from jaxalign.runtime.device_errors import REMEDY, first_line
from jaxalign.runtime.devices import show_bytes


def refusal(task, launch, needed: int, device, error) -> MemoryPlanError:
    """The least launch of some pairs did not fit."""
    return MemoryPlanError(
        f"{device}: no memory for {_launch(task, launch)}, the least that holds these "
        f"pairs, which takes about {show_bytes(needed)} beside the result, of "
        f"{job_words(task)}: {first_line(error)}; free memory of the GPU, or "
        "`--device cpu`"
    )


def failure(task, launch, device, error) -> DeviceFailure:
    """Anything else that ends a launch; whatever ran beside it has ended, too."""
    return DeviceFailure(
        f"{device} failed at {_launch(task, launch)} of {job_words(task)}: "
        f"{first_line(error)}; {REMEDY}"
    )


def _launch(task, launch) -> str:
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


def job_words(task) -> str:
    return f"a job of {task.job.pairs:,} pairs, {task.mode}, output {task.output}"
