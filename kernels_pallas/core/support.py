"""Whether the kernels run here; imports no more of Pallas than it has to."""

from functools import cache
from importlib import import_module
from typing import Any

import jax

from kernels_pallas.core.target import HOPPER, TARGETS, target_of

# JAX of this version and newer has Mosaic GPU for GPUs before Hopper.
OLDER_GPUS_SINCE = (0, 11)


@cache
def supported(device: Any = None) -> tuple[bool, str]:
    """Whether the kernels run on a device, JAX's first by default, and why (not)."""
    device = device or jax.devices()[0]
    if device.platform not in ("gpu", "cuda"):
        return False, f"the device is a {device.platform}, not an NVIDIA GPU"
    capability = str(getattr(device, "compute_capability", "0"))
    target = target_of(capability)
    if target is None:
        least = "{}.{}".format(*TARGETS[0].capability)
        return False, f"compute capability {capability} is below {least}"
    if target.capability < HOPPER.capability and jax_version() < OLDER_GPUS_SINCE:
        needed = "{}.{}".format(*OLDER_GPUS_SINCE)
        why = f"JAX {jax.__version__} has kernels for compute capability 9.0 and newer"
        return False, f"{why}, {needed} has them for {capability}, too"
    try:
        import_module("jax.experimental.pallas.mosaic_gpu")
    except ImportError as error:
        return False, f"JAX {jax.__version__} has no Mosaic GPU here: {error}"
    return True, f"compute capability {capability}, {target.form}, {target.evidence}"


def jax_version() -> tuple[int, int]:
    """JAX's major and minor number."""
    major, minor, *_ = jax.__version__.split(".")
    return int(major), int(minor)
