"""Whether the kernels run here; imports no more of Pallas than it has to."""

from functools import cache
from importlib import import_module

import jax


@cache
def supported(device=None) -> tuple[bool, str]:
    """Whether the kernels run on a device, JAX's first by default, and why (not)."""
    device = device or jax.devices()[0]
    if device.platform not in ("gpu", "cuda"):
        return False, f"the device is a {device.platform}, not an NVIDIA GPU"
    capability = str(getattr(device, "compute_capability", "0"))
    if not capability.replace(".", "").isdigit() or float(capability) < 9.0:
        return False, f"compute capability {capability} is not Hopper's 9.0 or newer"
    try:
        import_module("jax.experimental.pallas.mosaic_gpu")
    except ImportError as error:
        return False, f"JAX {jax.__version__} has no Mosaic GPU here: {error}"
    return True, f"compute capability {capability}"
