"""Memory of GPUs: what a launch may take, and where the rows of a result are held.

The bytes of a launch shape its arrays, and so its program. They are the same on every
device of which JAX may have ``USUAL_BYTES`` or more, whatever is free of it, and a
quarter of a smaller one.
"""

from typing import TYPE_CHECKING

import jax

from jaxalign.pairs.gpu.launch_plan import THREADS_OF_A_DEVICE
from jaxalign.pairs.gpu.transfer import MAX_ROWS
from jaxalign.runtime.devices import Device

if TYPE_CHECKING:
    from jaxalign.pairs.plan import Task


# Bytes of a device whose allocator does not say (``platform``)
UNKNOWN_DEVICE_BYTES = 2**32
# Bytes of a launch: a pool that grows finds so much in one piece, and more buy little
# (docs/gpu-kernels.md); those of a result that is put together on a device; and those
# of the smallest devices that have both.
LAUNCH_BYTES, RESULT_BYTES, USUAL_BYTES, LARGE_BYTES = 2**33, 2**34, 2**34, 2**35
MEAN_RUNS = 16  # of a path, in a result

_limits: dict = {}  # device -> bytes of launches, once a larger one found no memory


def budget(task: "Task") -> int:
    """Device bytes for one launch."""
    available = _limit(task)
    return LAUNCH_BYTES if available >= USUAL_BYTES else power(available) // 4


def power(count: int) -> int:
    """The power of two up to a count, 1 at least."""
    return 2 ** (max(count, 1).bit_length() - 1)


def limit(device: Device) -> int | None:
    """Bytes that a launch on a device may take, None until one found no memory."""
    return _limits.get(device)


def lower(device: Device, count: int) -> None:
    """Launches on a device take so many bytes at most from now on, in whichever job of
    this process: to try larger ones costs seconds each, while JAX waits for memory."""
    _limits[device] = min(count, limit(device) or count)


def threads_of(task: "Task") -> int:
    """Host threads of a device; one is enough where no rows go to the host between."""
    several = task.reserved is not None or (len(task.devices) > 1 and not holds(task))
    return THREADS_OF_A_DEVICE if several or task.top else 1


def holds(task: "Task") -> bool:
    """Whether the rows of a task may be put together where they are computed; paths,
    which have no places of their own, on one device alone."""
    joined = task.output == "alignment" and len(task.devices) > 1
    return not task.filtered and not joined and _fits(task)


def _limit(task: "Task") -> int:
    """Bytes of the smallest device of a task."""
    return min(of_device(one) for one in task.devices or jax.devices()[:1])


def of_device(device: Device) -> int:
    """Bytes that JAX may have of a device."""
    stats = device.memory_stats() or {}
    return stats.get("bytes_limit", UNKNOWN_DEVICE_BYTES)


def _result_bytes(task: "Task") -> int:
    """Device bytes of a whole result; runs are there twice when they are ordered."""
    columns = 11 if task.paths else 2
    runs = 2 * MEAN_RUNS + 4 if task.output == "alignment" else 0
    return 4 * task.job.pairs * (columns + runs)


def _fits(task: "Task") -> bool:
    """Whether the result is kept on the device; its rows are counted in int32."""
    rows = task.job.pairs * (2 * MEAN_RUNS if task.output == "alignment" else 1)
    available = _limit(task)
    most = RESULT_BYTES if available >= LARGE_BYTES else power(available) // 4
    return rows < MAX_ROWS and _result_bytes(task) < most
