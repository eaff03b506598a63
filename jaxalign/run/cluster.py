"""Many machines: the parts of a job as tasks on Ray (``jaxalign[cluster]``).

Each task is one part, computed by ``run.engine`` with the CPUs or the GPU it was given.
Some more parts are handed out than there are workers, never all; a part whose worker or
machine is lost is computed again. Rows come back in order, so the result is the same.
"""

import os
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version

from jaxalign.errors import DeviceError, UsageError
from jaxalign.run import launch, memory, streamed
from jaxalign.run.parts import Part
from jaxalign.run.task import Task

AGAIN = 20  # times a part is computed anew after a loss
WAITING = 2  # parts handed out for each worker; those beyond one wait
KEPT = ("JAX_COMPILATION_CACHE_DIR", "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS")


@dataclass(frozen=True)
class Share:
    """What one task gets, and how many of them run at once."""

    cpus: int
    gpus: int
    workers: int
    on_a_node: int


def stream(task: Task, some: list[Part], address: str, progress=None, busy=None):
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
    ray = _connect(address)
    share = share_of(ray.nodes())
    work = ray.remote(num_cpus=share.cpus, num_gpus=share.gpus, max_retries=AGAIN)
    work = work(_compute)
    whole = ray.put(task)
    ready = _Ready(ray, sum(part.cells for part in some), progress, busy, share)
    todo, pending = iter(some), []
    try:
        while True:
            while len(pending) < WAITING * share.workers:
                if (part := next(todo, None)) is None:
                    break
                pending.append((part, work.remote(whole, part, share, _version())))
            if not pending:
                return
            part, found = pending[0]
            ready.wait(pending)
            yield part, *_fetch(ray, found)
            pending.pop(0)
    finally:
        for _, reference in pending:
            ray.cancel(reference, force=False)


def share_of(nodes: list[dict]) -> Share:
    """A GPU for each task where there are some, else the CPUs of the smallest machine.

    Examples
    --------
    >>> nodes = [{"Alive": True, "Resources": {"CPU": cpus}} for cpus in (8, 4)]
    >>> share_of(nodes)
    Share(cpus=4, gpus=0, workers=3, on_a_node=2)
    """
    held = [node["Resources"] for node in nodes if node["Alive"]]
    gpus = [int(one.get("GPU", 0)) for one in held]
    if any(gpus):
        return Share(1, 1, sum(gpus), max(gpus))
    cpus = [int(one.get("CPU", 0)) for one in held if one.get("CPU", 0) >= 1]
    if not cpus:
        raise DeviceError("the cluster has neither CPUs nor GPUs to compute on")
    least = min(cpus)
    slots = [count // least for count in cpus]
    return Share(least, 0, sum(slots), max(slots))


def _compute(task: Task, part: Part, share: Share, version: str):
    """One part, on a worker."""
    if version != _version():
        raise DeviceError(f"jaxalign {_version()} on a worker, {version} here")
    # Ray limits OpenMP to the CPUs of a task; XLA's loops are threads of our own.
    threads = launch.IN_FLIGHT if share.gpus else share.cpus
    budget = min(task.budget, memory.budget() // share.on_a_node)
    task = replace(task, threads=threads, budget=budget)
    ((_, columns, paths, info),) = streamed.stream(task, [part])
    return columns, paths, info


class _Ready:
    """Waits for the first of the parts handed out, and counts all that are done."""

    def __init__(self, ray, total, progress, busy, share):
        self.ray, self.total, self.share = ray, total, share
        self.progress, self.busy = progress, busy
        self.cells, self.seen = 0, set()

    def wait(self, pending) -> None:
        first = pending[0][1]
        while True:
            left = [ref for part, ref in pending if part.index not in self.seen]
            if self.busy:
                self.busy(min(len(left), self.share.workers), self.share.workers)
            if first not in left:
                return
            done, _ = self.ray.wait(left, num_returns=1, fetch_local=False)
            for part, reference in pending:
                if reference in done:
                    self.seen.add(part.index)
                    self.cells += part.cells
            if self.progress:
                self.progress(self.cells, self.total)


def _fetch(ray, reference):
    """The result of a part; a refusal on a worker is one here."""
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        raise (error.cause or error) from None


def _connect(address: str):
    """The module ``ray``, connected."""
    try:
        import ray  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise UsageError(
            "a cluster needs Ray: pip install 'jaxalign[cluster]'"
        ) from error
    if ray.is_initialized():
        return ray
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    try:
        ray.init(
            address=address,
            runtime_env={"env_vars": kept} if kept else None,
            log_to_driver=False,
            logging_level="ERROR",
        )
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise DeviceError(f"--cluster {address}: no Ray cluster ({error})") from error
    return ray


def _version() -> str:
    try:
        return version("jaxalign")
    except PackageNotFoundError:
        return "unknown"
