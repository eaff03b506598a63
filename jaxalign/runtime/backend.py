# pyright: strict
"""The GPU kernels, where they run; the only importer of ``kernels_pallas``."""

import os
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import kernels_pallas
from jaxalign.runtime.devices import first_device


def kernels() -> tuple[Any, str]:
    """The package of kernels where it runs, else None; and why (not)."""
    package: Any = kernels_pallas  # it loads its names when they are used
    works, why = package.supported(first_device())
    return package if works else None, why


# ------------------------------------------------------------------------------
# Whether a GPU is used here, and if not, why, and what to install.

DRIVER = Path("/proc/driver/nvidia/version")  # where the kernel module is loaded
PLUGINS = "jax_cuda13_plugin", "jax_cuda12_plugin"
CUDA_13_DRIVER = 580  # the first that runs CUDA 13


def gpu_use() -> dict[str, str]:
    """``used`` (yes or no) and ``why``; where something can be done, ``hint``.

    A GPU older than Ampere is used by XLA, without the kernels of this project.
    """

    package, why = kernels()
    if package is not None:
        return {"used": "yes", "why": f"its kernels run: {why}"}
    if first_device().platform in ("gpu", "cuda"):
        return {"used": "yes", "why": f"through XLA, without kernels: {why}"}
    version = driver_version()
    if version is None:
        return {"used": "no", "why": "there is no NVIDIA driver on this machine"}
    if not any(map(find_spec, PLUGINS)):
        extra = "cuda13" if version >= CUDA_13_DRIVER else "cuda12"
        return {
            "used": "no",
            "why": f"the driver is there ({version}), JAX's part for CUDA is not",
            "hint": f'pip install "jaxalign[{extra}]"',
        }
    platforms = os.environ.get("JAX_PLATFORMS", "")
    if platforms:
        why, hint = f"JAX_PLATFORMS is {platforms}", "unset JAX_PLATFORMS"
    else:
        why = "JAX finds no GPU, though driver and plugin are there"
        hint = "nvidia-smi and CUDA_VISIBLE_DEVICES say which GPUs a process may use"
    return {"used": "no", "why": why, "hint": hint}


def driver_version() -> int | None:
    """The major version of the NVIDIA driver, 0 where it does not say; None without."""
    if not DRIVER.exists():
        return None
    match = re.search(r"\b(\d{3})\.\d+", DRIVER.read_text(encoding="utf-8"))
    return int(match[1]) if match else 0
