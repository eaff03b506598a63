"""Errors of a device as a user should read them: one line, and what to try."""

from contextlib import contextmanager

import jax

from jaxalign.errors import DeviceFailure, JaxalignError, MemoryPlanError
from jaxalign.run.memory import show_bytes

RuntimeFailure = jax.errors.JaxRuntimeError
SIGNS = "RESOURCE_EXHAUSTED", "OUT_OF_MEMORY"  # of XLA, of CUDA
WIDTH = 200  # letters of JAX's message
REMEDY = (
    "`--device cpu` (in Python jax.default_device) does without the GPU; with "
    "XLA_PYTHON_CLIENT_ALLOCATOR=platform the launch at fault is named; please report "
    "it"
)


def out_of_memory(error: BaseException) -> bool:
    """Whether memory was missing, which smaller launches may need less of."""
    return any(sign in str(error) for sign in SIGNS)


def refusal(task, launch, needed: int, device, error) -> MemoryPlanError:
    """The least launch of some pairs did not fit."""
    return MemoryPlanError(
        f"{device}: no memory for {_launch(task, launch)}, the least that holds these "
        f"pairs, which takes about {show_bytes(needed)} beside the result, of "
        f"{_job(task)}: {first_line(error)}; free memory of the GPU, or `--device cpu`"
    )


def failure(task, launch, device, error) -> DeviceFailure:
    """Anything else that ends a launch; whatever ran beside it has ended, too."""
    return DeviceFailure(
        f"{device} failed at {_launch(task, launch)} of {_job(task)}: "
        f"{first_line(error)}; {REMEDY}"
    )


@contextmanager
def explained(what: str, task=None, device=None):
    """Errors of a device as those of the project, where no launch is to blame.

    what : of a task, if one is given, failed or found no memory
    """
    try:
        yield
    except RuntimeFailure as error:
        what = what if task is None else f"{what} of {_job(task)}"
        raise _plain(what, device or "the device", error) from error


def first_line(error) -> str:
    """The first line of a message of JAX, not all of it."""
    line = next(iter(str(error).splitlines()), type(error).__name__)
    return line if len(line) <= WIDTH else f"{line[:WIDTH]} …"


def _plain(what, device, error) -> JaxalignError:
    if out_of_memory(error):
        rest = "free some, compute less at a time or, on a GPU, use `--device cpu`"
        return MemoryPlanError(
            f"{device}: no memory for {what}: {first_line(error)}; {rest}"
        )
    return DeviceFailure(f"{device} failed at {what}: {first_line(error)}; {REMEDY}")


def _launch(task, launch) -> str:
    """``a launch of 64 queries x 4,096 targets (up to 900 x 812 letters, int16)``."""
    sides = (
        (task.job.query_lengths, launch.queries),
        (
            task.job.target_lengths,
            launch.targets,
        ),
    )
    m, n = (int(lengths[some].max(initial=0)) for lengths, some in sides)
    count = f"{len(launch.queries):,} queries x {len(launch.targets):,} targets"
    if launch.zipped:
        count = f"{len(launch.queries):,} pairs"
    return f"a launch of {count} (up to {m:,} x {n:,} letters, {launch.dtype})"


def _job(task) -> str:
    return f"a job of {task.job.pairs:,} pairs, {task.mode}, output {task.output}"
