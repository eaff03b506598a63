"""The program of a launch: its arrays, its call, and compiling those of a whole job.

Launches for which a device has no memory are run in smaller ones, and errors say as a
user should read them which job it was, and which launch.
"""

from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING

import jax
import numpy as np

from jaxalign.errors import DeviceFailure, MemoryPlanError
from jaxalign.pairs.gpu import (
    device_arrays,
    device_memory,
    device_sequences,
    launch_size,
    transfer,
)
from jaxalign.pairs.gpu.device_arrays import Form, LaunchArrays, LaunchResult
from jaxalign.pairs.gpu.device_job import DeviceJob
from jaxalign.pairs.gpu.device_memory import budget
from jaxalign.pairs.gpu.launch_plan import smaller, zipped
from jaxalign.pairs.gpu.launch_size import Launch, launch_bytes
from jaxalign.pairs.gpu.score_types import Highest
from jaxalign.pairs.windows import Partition
from jaxalign.runtime import device_errors
from jaxalign.runtime.device_errors import REMEDY, RuntimeFailure, first_line
from jaxalign.runtime.devices import Device, default_device, show_bytes
from jaxalign.runtime.pipeline import in_background

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


# Compilations side by side: tracing and lowering hold Python's lock, so that more would
# all end late, and no launch could begin meanwhile.
COMPILE_THREADS = 4


def issue(job: DeviceJob, launch: Launch) -> LaunchResult:
    """Issue a launch; nothing waits."""
    return device_arrays.launched(_arrays(job, launch), form=_form(job, launch))


def launch_scores(job: DeviceJob, launch: Launch) -> jax.Array:
    return device_arrays.launched_scores(_arrays(job, launch), form=_form(job, launch))


def compile_all(job: DeviceJob, launches: list[Launch]) -> list[Future]:
    """Begin to compile what launches need that is new, side by side: a kernel takes
    seconds. A launch waits for its own program alone. Scores that may leave int16 will
    need int32, too, on whichever device."""
    launches = [part for launch in launches for part in within(job, launch)]
    distinct = _new(job, launches)
    unproven = next((x for x in launches if not x.proven), None)
    if distinct and unproven and not job.task.paths:
        wide = in_int32(job, unproven.queries[:1], unproven.targets[:1]).blocks
        distinct |= _new(job, wide)
    job.compiled.update(distinct)
    if len(distinct) < 2 or job.interpret is not None:
        return []

    # Of this thread; others have JAX's own, and what is compiled for one is compiled
    # again when it is called with another.
    device = default_device()

    def prepare_one(launch: Launch):
        # What fails here fails again where the launch is issued.
        with suppress(RuntimeFailure), jax.default_device(device):
            arrays, form = _arrays(job, launch), _form(job, launch)
            call = device_arrays.launched
            if job.task.top is not None:
                call = device_arrays.launched_scores
            call.prepare(arrays, form=form)

    return in_background(prepare_one, distinct.values(), COMPILE_THREADS)


def _new(job: DeviceJob, launches: list[Launch]) -> dict:
    """Launches of static sizes that are not compiled, one of each."""
    distinct = {x.sizes: x for x in launches}
    return {key: x for key, x in distinct.items() if key not in job.compiled}


def in_int32(job: DeviceJob, queries: np.ndarray, targets: np.ndarray) -> Partition:
    """Launches of pairs that share no side, and the pairs that fit none: int32 holds
    all that int16 may not, in twice the memory."""
    task = job.task
    sides, high = (queries, targets), Highest(task)
    return zipped(task, job.kernels, *sides, budget(task), high, wide=True)


def launch_ids(launch: Launch) -> list:
    """Of both sides of a launch."""
    queries = launch.places if launch.zipped else launch.slots
    return [
        device_arrays.padded_ids(launch.queries, queries),
        device_arrays.padded_ids(launch.targets, launch.places),
    ]


def _arrays(job: DeviceJob, launch: Launch) -> LaunchArrays:
    """The arrays that a launch reads."""
    stacks = None
    if launch.shape.stacks:
        stacks = launch_size.stacks_of(job.task, job.kernels, launch)
    pairs = np.int32(min(job.task.job.pairs, transfer.MAX_ROWS))
    (queries, targets), (i, j) = job.sides, launch_ids(launch)
    return LaunchArrays(job.problem, queries, targets, i, j, job.order, pairs, stacks)


def _form(job: DeviceJob, launch: Launch) -> Form:
    """The static arguments of the program of a launch."""
    task, letters, kernels = job.task.job, None, job.kernels
    if launch.room:
        like = kernels.letters_shape(launch.shape)
        letters = kernels.letters, (("room", launch.room), ("shape", like))
    options = {
        "runs": launch.path_runs,
        "shape": launch.shape,
        "interpret": job.interpret,
    }
    options |= {"records": launch.records} if launch.records else {}
    return Form(
        sizes=(launch.rows, launch.columns),
        letters=letters,
        zipped=launch.zipped,
        kind=task.kind,
        # A score is the same wherever it ends, and parts of a job swap no sides.
        tied=task.once and job.task.output != "score",
        inclusive=task.include_self,
        align=kernels.align,
        options=tuple(options.items()),
        split=kernels.split_identity if job.task.output == "identity" else None,
        capacity=launch.mean_runs * launch.pairs,
        proven=launch.proven,
    )
