"""Many machines: the parts of a job as tasks on Ray (``jaxalign[cluster]``).

Each task is one part, computed by ``pairs.engine`` with the CPUs or the GPU it was
given. Some more parts are handed out than there are workers, never all; a part whose
worker or machine is lost is computed again. Rows come back in order, so the result is
the same."""

from dataclasses import replace

from jaxalign.errors import DeviceError, UsageError
from jaxalign.pairs.gpu import launch_plan
from jaxalign.pairs.parts import part_stream
from jaxalign.pairs.parts.query_ranges import Part
from jaxalign.pairs.plan import Progress, Task
from jaxalign.runtime.devices import budget_of
from jaxalign.runtime.ray_cluster import (
    Arrivals,
    Share,
    connect,
    fetch,
    installed_version,
    share_of,
)

MAX_RETRIES = 20  # times a part is computed anew after a loss
PARTS_PER_WORKER = 2  # parts handed out for each worker; those beyond one wait


def stream(
    task: Task,
    some: list[Part],
    address: str,
    progress: Progress = None,
    busy: Progress = None,
):
    """As ``streamed.stream``, on the machines of a Ray cluster.

    Parameters
    ----------
    address : str
        "auto" for the cluster this machine belongs to, or "HOST:PORT".

    Raises
    ------
    UsageError
        Ray is not installed, or devices are named: Ray gives each part its device.
    DeviceError
        No cluster answers, or its machines have another version of jaxalign.
    """
    if task.devices:
        raise UsageError("a cluster chooses devices by itself: leave out devices")
    ray = connect(address)
    share = share_of(ray.nodes())
    work = ray.remote(num_cpus=share.cpus, num_gpus=share.gpus, max_retries=MAX_RETRIES)
    work = work(_compute)
    whole = ray.put(task)
    ready = Arrivals(ray, sum(part.cells for part in some), progress, busy, share)
    todo, pending = iter(some), []
    try:
        while True:
            while len(pending) < PARTS_PER_WORKER * share.workers:
                if (part := next(todo, None)) is None:
                    break
                pending.append(
                    (part, work.remote(whole, part, share, installed_version()))
                )
            if not pending:
                return
            part, coming = pending[0]
            ready.wait(pending)
            yield part, *fetch(ray, coming)
            pending.pop(0)
    finally:
        for _, reference in pending:
            ray.cancel(reference, force=False)


def _compute(task: Task, part: Part, share: Share, version: str):
    """One part, on a worker."""
    if version != installed_version():
        raise DeviceError(f"jaxalign {installed_version()} on a worker, {version} here")
    # Ray limits OpenMP to the CPUs of a task; XLA's loops are threads of our own.
    threads = launch_plan.THREADS_OF_A_DEVICE if share.gpus else share.cpus
    budget = min(task.budget, budget_of() // share.on_a_node)
    task = replace(task, threads=threads, budget=budget)
    ((_, columns, paths, info),) = part_stream.stream(task, [part])
    return columns, paths, info
