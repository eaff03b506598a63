"""The program of a launch: its arrays, its call, and compiling those of a whole job."""

from concurrent.futures import Future
from contextlib import suppress

import jax
import numpy as np

from jaxalign.pairs.gpu import device_arrays, launch_size, transfer
from jaxalign.pairs.gpu.device_arrays import Form, LaunchArrays, LaunchResult
from jaxalign.pairs.gpu.device_job import DeviceJob
from jaxalign.pairs.gpu.device_memory import budget
from jaxalign.pairs.gpu.launch_failures import within
from jaxalign.pairs.gpu.launch_plan import zipped
from jaxalign.pairs.gpu.launch_size import Launch
from jaxalign.pairs.gpu.score_types import Highest
from jaxalign.pairs.windows import Partition
from jaxalign.runtime.device_errors import RuntimeFailure
from jaxalign.runtime.devices import default_device
from jaxalign.runtime.pipeline import in_background

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
        once=task.once,
        inclusive=task.include_self,
        align=kernels.align,
        options=tuple(options.items()),
        split=kernels.split_identity if job.task.output == "identity" else None,
        capacity=launch.mean_runs * launch.pairs,
        proven=launch.proven,
    )
