"""Launches on a GPU: codes go to the device once, results come back once.

``run.engine`` hands in the kernels (the package ``kernels_pallas``), so that this file
needs no GPU to be imported. Launches are issued without waiting for each other. What a
launch finds is put into the columns of the result, whole or a part, on the device, in
input order; of several devices each has its own pairs in columns of all. What filters
thin out or no device can hold goes to the host launch by launch (``run.crossing``).
"""

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import numpy as np

from jaxalign.run import crossing, gpu_arrays, gpu_held
from jaxalign.run.device import default_device
from jaxalign.run.gpu_arrays import Found, Order
from jaxalign.run.gpu_held import Held
from jaxalign.run.gpu_memory import budget, holds
from jaxalign.run.gpu_range import highest, numbers
from jaxalign.run.launch import zipped
from jaxalign.run.launch_size import MEAN_RUNS, RUNS, Launch
from jaxalign.run.windows import bucket, cells

AHEAD = 3  # launches issued and not yet looked at
COMPILERS = 8  # compilations side by side


@dataclass
class Job:
    """What all launches of a run share; ``kept`` and ``mean`` runs grow as needed."""

    task: Any
    kernels: Any
    sides: tuple  # of Loaded
    order: Order
    problem: Any
    held: Held | None = None  # None where rows go to the host, launch by launch
    out: Any = None  # results.Output
    tell: Any = None  # callable (cells more done)
    interpret: Any = None
    kept: int = RUNS  # of a path
    mean: int = MEAN_RUNS  # of all paths of a launch, a pair
    compiled: set = field(default_factory=set)  # static sizes

    @property
    def steps(self) -> bool:
        return self.task.output == "alignment"

    def capacity(self, launch) -> int:
        return self.mean * launch.pairs


def run(job: Job, launches, out, tell, whole=True) -> None:
    """Some launches of a task; rows to ``out`` (``results.Output``).

    whole : no other thread has launches on this device for ``out``, so that rows may be
        held there until ``gpu_held.collect``
    """
    task, shared = job.task, job
    if whole and holds(task):
        shared.held = shared.held or gpu_held.empty(task)
    held = shared.held if whole else None
    job = replace(job, held=held, out=out, tell=tell)  # other threads have theirs
    again = _all(job, launches)
    if again:
        # Exactly the pairs whose score may have left int16.
        sides = (np.concatenate(side) for side in zip(*again, strict=True))
        _all(job, _in_int32(job, *sides), counted=True)
    shared.kept, shared.mean = max(shared.kept, job.kept), max(shared.mean, job.mean)


def _in_int32(job: Job, queries, targets):
    """Launches of pairs that share no side."""
    task = job.task
    high = highest(task)
    return zipped(task, job.kernels, queries, targets, budget(task), high, wide=True)


def prepare(task, kernels, interpret=None) -> Job:
    """The codes and what else launches read, on JAX's default device.

    interpret : parameters of the GPU interpreter, for tests.
    """
    return Job(task, kernels, *_shared(task, kernels), interpret=interpret)


def scores(job: Job, launch) -> jax.Array:
    """The scores of a launch, left on the device: int32 (slots, places)."""
    call, options = _call(job, launch)
    arrays, _ = _gathered(job, launch)
    return call(job.problem, *arrays, **options).score


def _all(job: Job, launches, counted=False) -> list:
    """Issue launches, some ahead of those looked at; pairs that have to run again."""
    waiting, again = deque(), []
    for launch in launches:
        waiting.append((launch, _issue(job, launch), job.kept))
        if len(waiting) >= AHEAD:
            again += _look(job, *waiting.popleft(), counted)
    while waiting:
        again += _look(job, *waiting.popleft(), counted)
    return again


def _look(job: Job, launch, found, kept, counted) -> list:
    """Wait for a launch; if its paths are longer than thought, issue it again.

    kept : runs of a path that it had room for.
    """
    repeat, longest, total = (int(x) for x in np.asarray(found.totals))
    _known(job, found, total)
    if job.steps and (longest > kept or total > len(found.runs)):
        job.kept = bucket(longest, 2, job.kept)
        job.mean = bucket(-(-total // launch.pairs), 2, job.mean)
        found = _issue(job, launch)
        _known(job, found, total)
    done = 0 if counted else cells(job.task.job, launch)
    if job.held is None:
        ids = _ids(launch)
        job.out.put(crossing.to_host(job, launch, ids, found, total, done))
    job.tell(done)
    if not repeat:
        return []
    at = np.nonzero(np.asarray(found.again))
    return [(launch.queries[at[0]], launch.targets[at[-1]])]


def _known(job, found, total):
    if job.held is not None and job.steps:
        job.held.known += min(total, len(found.runs))


def _shared(task, kernels):
    """(the two sides, the order, the problem) on the device."""
    job, count = task.job, len(task.queries)
    sizes = (job.whole.letters, job.whole.targets) if job.whole else (0, 0)
    targets = gpu_arrays.load(task.targets, *sizes)
    queries = targets  # or the first of them
    if job.kind != "all":
        queries = gpu_arrays.load(task.queries, *sizes)
    rank = job.rank if job.kind == "all" and job.once else np.arange(len(task.targets))
    base = np.zeros(count) if job.kind == "zip" else job.position(np.arange(count), 0)
    order = Order(*(gpu_arrays.numbered(x, sizes[1]) for x in (base, rank)))
    wildcard = task.scoring.alphabet.wildcard_code
    problem = kernels.problem_of(*numbers(task), task.free, wildcard)
    return (queries, targets), order, problem


def compile_all(job: Job, launches) -> None:
    """Compile what launches need that is new, side by side: a kernel takes seconds.
    Scores that may leave int16 will need int32, too, on whichever device."""
    distinct = _new(job, launches)
    unproven = next((x for x in launches if not x.proven), None)
    if distinct and unproven and not job.task.paths:
        made = _in_int32(job, unproven.queries[:1], unproven.targets[:1])
        distinct |= _new(job, (x for x in made if isinstance(x, Launch)))
    job.compiled.update(distinct)

    # Of this thread; others have JAX's own, and what is compiled for one is compiled
    # again when it is called with another.
    device = default_device()

    def make(launch):
        call, options = _call(job, launch)
        with jax.default_device(device):
            arrays, _ = _gathered(job, launch)
            call.lower(job.problem, *arrays, **options).compile()  # JAX keeps it

    if len(distinct) > 1 and job.interpret is None:
        with ThreadPoolExecutor(COMPILERS) as pool:
            list(pool.map(make, distinct.values()))


def _new(job: Job, launches) -> dict:
    """Launches of static sizes that are not compiled, one of each."""
    distinct = {
        (x.rows, x.columns, x.room, x.records, x.slots, x.places, x.dtype, x.shape): x
        for x in launches
    }
    return {key: x for key, x in distinct.items() if key not in job.compiled}


def _ids(launch) -> list:
    """Of both sides of a launch."""
    queries = launch.places if launch.zipped else launch.slots
    return [
        gpu_arrays.padded_ids(launch.queries, queries),
        gpu_arrays.padded_ids(launch.targets, launch.places),
    ]


def _gathered(job: Job, launch) -> tuple:
    """The arrays that a launch aligns, and ``Asked``."""
    task, letters = job.task.job, None
    if launch.room:
        options = ("room", launch.room), ("shape", launch.shape)
        letters = job.kernels.letters, options
    return gpu_arrays.gathered(
        *job.sides,
        *_ids(launch),
        job.order,
        np.int32(min(task.pairs, crossing.ROWS)),
        sizes=(launch.rows, launch.columns),
        letters=letters,
        zipped=launch.zipped,
        kind=task.kind,
        once=task.once,
        inclusive=task.include_self,
    )


def _call(job: Job, launch) -> tuple:
    """The function of the kernels that a launch calls, and its static arguments."""
    kernels, task = job.kernels, job.task
    options = {
        "local": task.local,
        "dtype": launch.dtype,
        "paths": task.paths,
        "runs": job.kept if job.steps else 0,
        "shape": launch.shape,
        "interpret": job.interpret,
    }
    options |= {"records": launch.records} if launch.records else {}
    return kernels.align_list if launch.zipped else kernels.align_block, options


def _issue(job: Job, launch) -> Found:
    """Issue a launch, and what puts its findings into the result; nothing waits."""
    call, options = _call(job, launch)
    arrays, asked = _gathered(job, launch)
    made = call(job.problem, *arrays, **options)
    found = gpu_arrays.found(
        made._replace(overflow=None) if launch.proven else made,
        asked,
        split=job.kernels.split_identity if job.task.output == "identity" else None,
        capacity=job.capacity(launch) if job.steps else 0,
    )
    if job.held is not None:
        gpu_held.put(job.held, found, (AHEAD + 1) * job.capacity(launch))
    return found
