"""A Ray cluster: a connection, what one task gets, and results as they arrive."""

import os
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from jaxalign.errors import DeviceError, UsageError

ENVIRONMENT = (
    "JAX_COMPILATION_CACHE_DIR",
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS",
)


@dataclass(frozen=True)
class Share:
    """What one task gets, and how many of them run at once."""

    cpus: int
    gpus: int
    workers: int
    on_a_node: int


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


class Arrivals:
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


def fetch(ray, reference):
    """The result of a part; a refusal on a worker is one here."""
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        raise (error.cause or error) from None


def connect(address: str):
    """The module ``ray``, connected."""
    try:
        import ray  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise UsageError(
            "a cluster needs Ray: pip install 'jaxalign[cluster]'"
        ) from error
    if ray.is_initialized():
        return ray
    kept = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
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


def installed_version() -> str:
    try:
        return version("jaxalign")
    except PackageNotFoundError:
        return "unknown"
