"""The program of a launch: its arrays, its call, and compiling those of a whole job."""

from concurrent.futures import Future
from contextlib import suppress

import jax
import numpy as np

from jaxalign.pairs.gpu import device_arrays, launch_size, transfer
from jaxalign.pairs.gpu.device_arrays import LaunchResult
from jaxalign.pairs.gpu.device_job import DeviceJob
from jaxalign.pairs.gpu.device_memory import budget
from jaxalign.pairs.gpu.launch_plan import zipped
from jaxalign.pairs.gpu.memory_retry import within
from jaxalign.pairs.gpu.score_types import Highest
from jaxalign.pairs.windows import Partition
from jaxalign.runtime.device_errors import RuntimeFailure
from jaxalign.runtime.devices import default_device
from jaxalign.runtime.pipeline import in_background
from jaxalign.runtime.programs import stored

# Compilations side by side: tracing and lowering hold Python's lock, so that more would
# all end late, and no launch could begin meanwhile.
COMPILE_THREADS = 4
# Static arguments of the kernels.
STATIC = ("runs", "shape", "interpret", "records")


def issue(job: DeviceJob, launch) -> LaunchResult:
    """Issue a launch; nothing waits."""
    call, options = _call(job, launch)
    arrays, pairs = _gathered(job, launch)
    result = call(job.problem, *arrays, **options)
    return device_arrays.launch_result(
        result._replace(overflow=None) if launch.proven else result,
        pairs,
        split=job.kernels.split_identity if job.task.output == "identity" else None,
        capacity=job.capacity(launch) if job.steps else 0,
    )


def launch_scores(job: DeviceJob, launch) -> jax.Array:
    call, options = _call(job, launch)
    arrays, _ = _gathered(job, launch)
    return call(job.problem, *arrays, **options).score


def compile_all(job: DeviceJob, launches) -> list[Future]:
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

    def prepare_one(launch):
        call, options = _call(job, launch)
        # What fails here fails again where the launch is issued.
        with suppress(RuntimeFailure), jax.default_device(device):
            arrays, _ = _gathered(job, launch)
            call.prepare(job.problem, *arrays, **options)

    return in_background(prepare_one, distinct.values(), COMPILE_THREADS)


def _new(job: DeviceJob, launches) -> dict:
    """Launches of static sizes that are not compiled, one of each."""
    distinct = {
        (x.rows, x.columns, x.room, x.records, x.slots, x.places, x.dtype, x.shape): x
        for x in launches
    }
    return {key: x for key, x in distinct.items() if key not in job.compiled}


def in_int32(job: DeviceJob, queries, targets) -> Partition:
    """Launches of pairs that share no side, and the pairs that fit none: int32 holds
    all that int16 may not, in twice the memory."""
    task = job.task
    sides, high = (queries, targets), Highest(task)
    return zipped(task, job.kernels, *sides, budget(task), high, wide=True)


def launch_ids(launch) -> list:
    """Of both sides of a launch."""
    queries = launch.places if launch.zipped else launch.slots
    return [
        device_arrays.padded_ids(launch.queries, queries),
        device_arrays.padded_ids(launch.targets, launch.places),
    ]


def _gathered(job: DeviceJob, launch) -> tuple:
    """The arrays that a launch aligns, and ``Asked``."""
    task, letters = job.task.job, None
    if launch.room:
        options = ("room", launch.room), ("shape", launch.shape)
        letters = job.kernels.letters, options
    return device_arrays.gather(
        *job.sides,
        *launch_ids(launch),
        job.order,
        np.int32(min(task.pairs, transfer.MAX_ROWS)),
        sizes=(launch.rows, launch.columns),
        letters=letters,
        zipped=launch.zipped,
        kind=task.kind,
        once=task.once,
        inclusive=task.include_self,
    )


def _call(job: DeviceJob, launch) -> tuple:
    """The function of the kernels that a launch calls, and its static arguments."""
    options = {
        "runs": job.path_runs if job.steps else 0,
        "shape": launch.shape,
        "interpret": job.interpret,
    }
    options |= {"records": launch.records} if launch.records else {}
    if launch.shape.stacks:
        options["stacks"] = launch_size.stacks_of(job.task, job.kernels, launch)
    return stored(job.kernels.align, STATIC), options
