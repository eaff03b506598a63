"""Devices, meshes of them, precision and memory: the means a machine gives to a job.

JAX is imported by the functions: a process chooses its device before it starts.

JAX computes in threads, and a forked child has only the thread that forked: what it
asks of JAX waits for ever. A call that needs JAX in a process that was forked after JAX
had started is refused. The fork itself, and children that ask nothing of JAX, are left
alone; so are children forked before JAX starts.

Memory has a budget, planned before work starts. XLA's programs for a CPU lie in memory
maps, some 40 of one box of three sequences with JAX 0.12 and 180 with 0.10. Linux lets
a process have 65,530 (``vm.max_map_count``), and XLA ends a process that is refused
one. Programs of pairs come in few sizes; those of triples come in thousands, and are
forgotten where maps run short (``programs``).

Of a Ray cluster there are a connection, what one task gets, and results as they arrive.
"""

import os
import re
import sys
import weakref
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from itertools import count
from math import inf
from operator import index
from pathlib import Path
from typing import Any

import numpy as np

from jaxalign.errors import DeviceError, MemoryPlanError, UsageError
from jaxalign.runtime import forks

Device = Any  # of JAX, whose stubs do not name the type
SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*((?:[kmgt]i?)?)b?\s*", re.ASCII)
NUMBERS: Any = (int, float, np.integer, np.floating)
PREFIXES = "kmgt"
BYTES_OF_PREFIX = (
    {"": 1}
    | {name: 1000**n for n, name in enumerate(PREFIXES, 1)}
    | {f"{name}i": 1024**n for n, name in enumerate(PREFIXES, 1)}
)
BYTES_IF_UNKNOWN = 2**32  # where the system does not say what is free
# Parts of a memory budget, of which each kind of block has one: blocks that are read,
# bounds, candidates, jobs and what these compute are in memory side by side.
BLOCK_SHARES = 16
# Without a budget, what parts and blocks are made for, whatever memory is free
USUAL_BYTES = 2**33
# Of a residue and a record that are read, three blocks of which are in memory
RESIDUE_BYTES, RECORD_BYTES = 2, 64
MAPS = Path("/proc/self/maps")  # on Linux
MAX_MEMORY_MAPS = 2**15
CALLS_BETWEEN_LOOKS = 4  # counting takes up to 0.04 s, a triple adds up to 4,000 maps
_calls = count(1)


def select_device(platform: str) -> list[Device]:
    """Make JAX use a platform (auto, cpu, gpu); returns its devices."""
    if platform == "cpu":
        _jax().config.update("jax_platforms", "cpu")
    try:
        return _jax().devices(None if platform == "auto" else platform)
    except RuntimeError as error:
        jax = f"jax[cuda12]=={version('jax')}"
        gpu = f'\nhint: pip install "{jax}", or with [cuda13]'
        hint = gpu if platform == "gpu" else ""
        raise DeviceError(f"--device {platform}: {error}{hint}") from error


def describe_device(devices: Sequence[Device]) -> dict[str, str | int]:
    """Platform, kind and number of devices."""
    first = devices[0]
    return {
        "platform": first.platform,
        "kind": first.device_kind,
        "count": len(devices),
    }


def resolve_devices(devices: Any = None) -> tuple[Device, ...]:
    """Resolve the devices of a run.

    devices : "all", int or str of ints ("0,1"), sequence of ints or of jax devices.
        Numbers count this process's devices of JAX's platform. None: the one of
        ``jax.default_device``, which threads do not inherit, or none in particular.
    """
    if devices is None:
        return () if default_device() is None else (first_device(),)
    local = _jax().local_devices()
    if devices == "all":
        return tuple(local)
    if isinstance(devices, str):
        devices = devices.split(",")
    names: list[Any] = [*devices] if hasattr(devices, "__iter__") else [devices]
    selection = tuple(_device(name, local) for name in names)
    if not selection or len(set(selection)) < len(selection):
        raise UsageError(f"devices = {names}: name one or more devices, each once")
    return selection


def first_device(devices: Iterable[Device | str] = ()) -> Device:
    """Resolve the first device or platform name, or JAX's default device."""
    refuse_without_threads()
    first = next(iter(devices), default_device())
    return (
        _jax().devices(first)[0] if first is None or isinstance(first, str) else first
    )


def start_device() -> None:
    """Import JAX, start its device, and bring a byte there: the first time takes
    seconds on a GPU."""
    _jax().device_put(np.zeros(1, np.uint8), first_device()).block_until_ready()


def default_device() -> Device | str | None:
    """This thread's default device or the name of its platform; None if none is set,
    as where nobody has imported JAX."""
    return _jax().config.jax_default_device if "jax" in sys.modules else None


def is_placed() -> bool:
    """Whether JAX was told where to compute: by a default device, or by a mesh."""
    return default_device() is not None or ambient_mesh() is not None


def ambient_mesh() -> Any:
    """Mesh of ``with jax.set_mesh(mesh):``; None outside of one, and while JAX traces
    another function, when it reports none."""
    if "jax" not in sys.modules:
        return None
    try:
        mesh = _jax().sharding.get_mesh()
    except ValueError:
        return None
    return None if mesh.empty else mesh


def precision(dtype: str) -> AbstractContextManager[Any]:
    """Return a context that enables JAX's 64-bit mode for int64."""
    return _jax().enable_x64(True) if dtype == "int64" else nullcontext()


def on_cpu() -> AbstractContextManager[Any]:
    """Return a context in which JAX computes on the CPU, if there is one."""
    host = None if first_device().platform == "cpu" else host_device()
    return nullcontext() if host is None else _jax().default_device(host)


def host_device() -> Device | None:
    """The CPU of this host; None where ``JAX_PLATFORMS`` names other devices alone."""
    try:
        return _jax().devices("cpu")[0]
    except RuntimeError:
        return None


def _jax() -> Any:
    """JAX, imported by the first function that needs it."""
    import jax

    return jax


def _device(name: Any, local: Sequence[Device]) -> Device:
    """Return a device, or look one up by number."""
    if hasattr(name, "platform"):
        return name
    try:
        number = int(name) if isinstance(name, str) else index(name)
    except (TypeError, ValueError):
        raise UsageError(f"device {name!r}: a number or 'all' is needed") from None
    if not 0 <= number < len(local):
        last, kind = len(local) - 1, local[0].platform
        raise DeviceError(
            f"device {number}: devices of {kind} are numbered 0 to {last}"
        )
    return local[number]


def refuse_without_threads() -> None:
    """Refuse to compute in a process that has lost JAX's threads."""
    if forks.threads_lost:
        raise DeviceError(
            "this process was forked after JAX had started, and JAX's threads do not "
            "survive in a forked child: this call would never return. Start workers "
            'with multiprocessing.get_context("spawn") or "forkserver", or fork before '
            "the first call that uses JAX"
        )


def parse_bytes(size: Any) -> int:
    """``"2GiB"``, ``"500MB"`` or a number of bytes -> bytes."""
    count: Any = size
    if isinstance(size, str):
        match = SIZE.fullmatch(size.lower())
        if not match:
            raise UsageError(f"memory budget {size!r}: write it as 2GiB or 500MB")
        count = float(match[1]) * BYTES_OF_PREFIX[match[2]]
    is_number = isinstance(count, NUMBERS) and not isinstance(count, bool)
    if not is_number or not 1 <= count < inf:
        raise UsageError(f"memory budget {size!r}: a size of 1 byte or more is needed")
    return int(count)


def budget_of(size: Any = None) -> int:
    """Memory budget in bytes, by default half of the available memory."""
    return _free_memory() // 2 if size is None else parse_bytes(size)


def parts_budget(size: Any = None) -> int:
    """Memory budget that parts and blocks are made for. What is counted depends on
    them, so without a budget it does not depend on the memory that is free."""
    return USUAL_BYTES if size is None else parse_bytes(size)


def at_once(limit: int, each: int, budget: int) -> int:
    """Things of a block: ``limit``, or as many as its share of a memory budget has room
    for; one at least. No result depends on it.

    each : bytes of one
    """
    return max(min(limit, budget // (BLOCK_SHARES * each)), 1)


def block_sizes(limit: tuple[int, int], size: Any) -> tuple[int, int]:
    """Residues and records of a block of sequences that are read: as many as a memory
    budget has room for."""
    each, budget = (RESIDUE_BYTES, RECORD_BYTES), parts_budget(size)
    residues, records = map(at_once, limit, each, (budget, budget))
    return residues, records


def _free_memory() -> int:
    """Bytes available without swapping."""
    try:
        table = Path("/proc/meminfo").read_text()
    except OSError:
        return BYTES_IF_UNKNOWN
    match = re.search(r"MemAvailable:\s+(\d+) kB", table)
    return int(match[1]) * 1024 if match else BYTES_IF_UNKNOWN


def show_bytes(count: float) -> str:
    """Format a number of bytes: ``1.5 GiB``."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.3g} {unit}"
        count /= 1024
    return f"{count:.4g} TiB"


def refuse_over(needed: int, limit: int, subject: str) -> None:
    """Refuse a plan before it starts, with the size that would fit."""
    if needed > limit:
        error = MemoryPlanError(
            f"{subject}: {show_bytes(needed)} needed, the memory budget is "
            f"{show_bytes(limit)}: a budget of {needed} bytes would fit"
        )
        error.needed = needed
        raise error


def maps_run_short() -> bool:
    """Whether the process has too many memory maps; looks at every fourth call."""
    if next(_calls) % CALLS_BETWEEN_LOOKS or not MAPS.exists():
        return False
    return MAPS.read_bytes().count(b"\n") > MAX_MEMORY_MAPS


# Orders of large arrays that nobody can write, by their identities: each query of many
# meets the same block of a database.
_orders: dict[int, tuple[weakref.ref, np.ndarray]] = {}
KEPT_LENGTHS = 2**14


def by_length(lengths: np.ndarray) -> np.ndarray:
    """Indices in order of decreasing length, stable."""
    lengths = np.asarray(lengths)
    is_shared = len(lengths) >= KEPT_LENGTHS and not lengths.flags.writeable
    key = id(lengths)
    if is_shared and (earlier := _orders.get(key)) and earlier[0]() is lengths:
        return earlier[1]
    longest = lengths.max(initial=0)
    # NumPy sorts numbers of 16 bits by radix, many times as fast.
    small = lengths.size and 0 <= lengths.min() and longest < 2**16
    falling = (longest - lengths).astype(np.uint16) if small else -lengths
    order = np.argsort(falling, kind="stable")
    if is_shared:
        order.flags.writeable = False
        _orders[key] = weakref.ref(lengths, lambda _: _orders.pop(key, None)), order
    return order


def bucket(length: int, step: int = 2, size: int = 64) -> int:
    """Smallest of size, size * step, size * step^2 ... that holds ``length``."""
    while size < length:
        size *= step
    return size


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
        raise DeviceError("the Ray cluster offers neither CPUs nor GPUs")
    least = min(cpus)
    slots = [count // least for count in cpus]
    return Share(least, 0, sum(slots), max(slots))


class Arrivals:
    """Wait for parts in order and count the cells of all that have arrived."""

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
            remaining = [ref for part, ref in pending if part.index not in self.seen]
            if self.busy:
                self.busy(min(len(remaining), self.share.workers), self.share.workers)
            if first not in remaining:
                return
            arrived, _ = self.ray.wait(remaining, num_returns=1, fetch_local=False)
            for part, reference in pending:
                if reference in arrived:
                    self.seen.add(part.index)
                    self.cells += part.cells
            if self.progress:
                self.progress(self.cells, self.total)


def fetch(ray: Any, reference: Any) -> Any:
    """Fetch the result of a part; re-raise a worker's error here."""
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        raise (error.cause or error) from None


def connect(address: str) -> Any:
    """Connect to a Ray cluster and return the module ``ray``."""
    try:
        ray: Any = import_module("ray")
    except ImportError as error:
        raise UsageError("a cluster needs Ray: pip install ray") from error
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
