# pyright: strict
"""A Ray cluster: a connection, what one task gets, and results as they arrive."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from jaxalign.errors import DeviceError, UsageError

COPIED_VARIABLES = (  # of the environment, to every worker
    "JAXALIGN_CACHE_DIR",
    "JAX_COMPILATION_CACHE_DIR",
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS",
)


@dataclass(frozen=True)
class Share:
    """The CPUs or the GPU of one task, and how many tasks run at once."""

    cpus: int
    gpus: int
    workers: int
    on_a_node: int


def share_of(nodes: Sequence[dict[str, Any]]) -> Share:
    """A GPU for each task where there are some, else the CPUs of the smallest machine.

    Examples
    --------
    >>> nodes = [{"Alive": True, "Resources": {"CPU": cpus}} for cpus in (8, 4)]
    >>> share_of(nodes)
    Share(cpus=4, gpus=0, workers=3, on_a_node=2)
    """
    machines = [node["Resources"] for node in nodes if node["Alive"]]
    gpus = [int(machine.get("GPU", 0)) for machine in machines]
    if any(gpus):
        return Share(1, 1, sum(gpus), max(gpus))
    cpus = [int(machine.get("CPU", 0)) for machine in machines]
    cpus = [count for count in cpus if count >= 1]
    if not cpus:
        raise DeviceError("the cluster has neither CPUs nor GPUs to compute on")
    least = min(cpus)
    slots = [count // least for count in cpus]
    return Share(least, 0, sum(slots), max(slots))


class Arrivals:
    """The parts that have arrived: waits for the first, counts the cells of all."""

    def __init__(
        self,
        ray: Any,
        total: int,
        progress: Callable[[int, int], object] | None,
        busy: Callable[[int, int], object] | None,
        share: Share,
    ):
        self.ray, self.total, self.share = ray, total, share
        self.progress, self.busy = progress, busy
        self.cells, self.seen = 0, set[int]()

    def wait(self, pending: Sequence[tuple[Any, Any]]) -> None:
        """Return once the first of the (part, reference) pairs has arrived."""
        first = pending[0][1]
        while True:
            left = [ref for part, ref in pending if part.index not in self.seen]
            if self.busy:
                self.busy(min(len(left), self.share.workers), self.share.workers)
            if first not in left:
                return
            arrived, _ = self.ray.wait(left, num_returns=1, fetch_local=False)
            for part, reference in pending:
                if reference in arrived:
                    self.seen.add(part.index)
                    self.cells += part.cells
            if self.progress:
                self.progress(self.cells, self.total)


def fetch(ray: Any, reference: Any) -> Any:
    """The result of a part; a refusal on a worker is one here."""
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        raise (error.cause or error) from None


def connect(address: str) -> Any:
    """The module ``ray``, connected."""
    try:
        ray: Any = import_module("ray")
    except ImportError as error:
        raise UsageError(
            "a cluster needs Ray: pip install 'jaxalign[cluster]'"
        ) from error
    if ray.is_initialized():
        return ray
    variables = {
        name: os.environ[name] for name in COPIED_VARIABLES if name in os.environ
    }
    try:
        ray.init(
            address=address,
            runtime_env={"env_vars": variables} if variables else None,
            log_to_driver=False,
            logging_level="ERROR",
        )
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise DeviceError(f"--cluster {address}: no Ray cluster ({error})") from error
    return ray


def installed_version() -> str:
    """The version of the installed package; workers must have the same."""
    try:
        return version("jaxalign")
    except PackageNotFoundError:
        return "unknown"
