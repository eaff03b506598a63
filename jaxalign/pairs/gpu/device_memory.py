"""Memory of GPUs: what a launch may take, and where the rows of a result are held."""

import jax

from jaxalign.pairs.gpu.launch_plan import THREADS_OF_A_DEVICE
from jaxalign.pairs.gpu.launch_size import MEAN_RUNS
from jaxalign.pairs.gpu.transfer import MAX_ROWS

MEMORY_SHARE = 0.8  # of the device memory that JAX may have
# Bytes of a device whose allocator does not say (``platform``)
UNKNOWN_DEVICE_BYTES = 2**32
# Bytes of a launch at most: a pool that grows finds so much in one piece, and more buy
# little (docs/gpu-kernels.md).
MAX_LAUNCH_BYTES = 2**34

_limits: dict = {}  # device -> bytes of launches, once a larger one found no memory


def budget(task) -> int:
    """Device bytes for one launch, beside the result and as much again: what launches
    issued meanwhile read and have found, and what XLA takes to tune a program. Beside
    those of the other threads where a device has several.

    A power of two: sets of somewhat different sizes then have the same launches, and
    their programs.
    """
    threads = threads_of(task)
    in_use = threads * _result_bytes(task) if _fits(task) else 0
    free = int(MEMORY_SHARE * _limit(task) - in_use) // (2 * threads)
    return power(min(free, MAX_LAUNCH_BYTES))


def power(count: int) -> int:
    """The power of two up to a count, 1 at least."""
    return 2 ** (max(count, 1).bit_length() - 1)


def limit(device) -> int | None:
    """Bytes that a launch on a device may take, None until one found no memory."""
    return _limits.get(device)


def lower(device, count: int) -> None:
    """Launches on a device take so many bytes at most from now on, in whichever job of
    this process: to try larger ones costs seconds each, while JAX waits for memory."""
    _limits[device] = min(count, limit(device) or count)


def threads_of(task) -> int:
    """Host threads of a device; one is enough where no rows go to the host between."""
    several = task.reserved is not None or (len(task.devices) > 1 and not holds(task))
    return THREADS_OF_A_DEVICE if several or task.top else 1


def holds(task) -> bool:
    """Whether the rows of a task may be put together where they are computed; paths,
    which have no places of their own, on one device alone."""
    joined = task.output == "alignment" and len(task.devices) > 1
    return not task.filtered and not joined and _fits(task)


def _limit(task) -> int:
    """Bytes of the smallest device of a task."""
    return min(of_device(one) for one in task.devices or jax.devices()[:1])


def of_device(device) -> int:
    """Bytes that JAX may have of a device."""
    stats = device.memory_stats() or {}
    return stats.get("bytes_limit", UNKNOWN_DEVICE_BYTES)


def _result_bytes(task) -> int:
    """Device bytes of a whole result; runs are there twice when they are ordered."""
    columns = 11 if task.paths else 2
    runs = 2 * MEAN_RUNS + 4 if task.output == "alignment" else 0
    return 4 * task.job.pairs * (columns + runs)


def _fits(task) -> bool:
    """Whether the result is kept on the device; its rows are counted in int32."""
    rows = task.job.pairs * (2 * MEAN_RUNS if task.output == "alignment" else 1)
    return rows < MAX_ROWS and _result_bytes(task) < MEMORY_SHARE * _limit(task) / 3
