# pyright: strict
"""This machine and this code, as compiled programs depend on them; needs no JAX.

``gpu_use`` says whether a GPU is used here, and if not, why, and what to install.
"""

import os
import platform
import re
import sys
import threading
from functools import cache
from hashlib import blake2b
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from jaxalign.runtime.devices import first_device

PACKAGES = ("jaxalign", "kernels_pallas")
PROGRAM_MAKERS = ("jax", "jaxlib")
DRIVER = Path("/proc/driver/nvidia/version")  # where the kernel module is loaded
PLUGINS = "jax_cuda13_plugin", "jax_cuda12_plugin"
CUDA_13_DRIVER = 580  # the first that runs CUDA 13

_digesting = threading.Lock()


def code_digest() -> str:
    """Digest of the package's sources, part of the key of every program."""
    with _digesting:  # threads that need it at once would read all files each
        return _code_digest()


@cache
def _code_digest() -> str:
    digest = blake2b(digest_size=16)
    root = str(Path(__file__).resolve().parents[2])
    folders = (x for package in PACKAGES for x in os.walk(os.path.join(root, package)))
    paths = (os.path.join(x, name) for x, _, names in folders for name in names)
    for path in sorted(x for x in paths if x.endswith(".py")):
        digest.update(os.path.relpath(path, root).encode() + b"\0")
        with open(path, "rb") as file:
            digest.update(file.read() + b"\0")
    return digest.hexdigest()


def processor() -> str:
    """Model and features of the processor, and how many of them XLA has threads for."""
    count = os.cpu_count()
    if hasattr(os, "sched_getaffinity"):
        count = len(os.sched_getaffinity(0))
    model = f"{platform.machine()} {platform.processor()} {count}"
    try:
        lines = Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines()
    except OSError:
        return model
    features = ("vendor_id", "cpu family", "model", "stepping", "flags", "Features")
    return model + "".join(x for x in lines if x.startswith(features))


def driver() -> str | None:
    """The version of the driver of NVIDIA's GPUs; None where there is none."""
    try:
        return DRIVER.read_text(encoding="utf-8").splitlines()[0]
    except (OSError, IndexError):
        return None


@cache
def summary() -> str:
    """Describe code, processor, driver and the versions of Python and JAX."""
    parts = [sys.version, code_digest(), processor(), driver()]
    for name in PROGRAM_MAKERS:
        try:
            parts.append(version(name))
        except PackageNotFoundError:
            parts.append(None)
    return repr(parts)


def gpu_use() -> dict[str, str]:
    """``used`` (yes or no) and ``why``; where something can be done, ``hint``.

    A GPU older than Ampere is used by XLA, without the kernels of this project.
    """
    from jaxalign.runtime.backend import kernels  # which small jobs do not import

    package, why = kernels()
    if package is not None:
        return {"used": "yes", "why": f"its kernels run: {why}"}
    if first_device().platform in ("gpu", "cuda"):
        return {"used": "yes", "why": f"through XLA, without kernels: {why}"}
    text = driver()
    if text is None:
        return {"used": "no", "why": "there is no NVIDIA driver on this machine"}
    match = re.search(r"\b(\d{3})\.\d+", text)
    major = int(match[1]) if match else 0
    if not any(map(find_spec, PLUGINS)):
        extra = "cuda13" if major >= CUDA_13_DRIVER else "cuda12"
        return {
            "used": "no",
            "why": f"the driver is there ({major}), JAX's part for CUDA is not",
            "hint": f'pip install "jax[{extra}]=={version("jax")}"',
        }
    platforms = os.environ.get("JAX_PLATFORMS", "")
    if platforms:
        why, hint = f"JAX_PLATFORMS is {platforms}", "unset JAX_PLATFORMS"
    else:
        why = "JAX finds no GPU, though driver and plugin are there"
        hint = "nvidia-smi and CUDA_VISIBLE_DEVICES say which GPUs a process may use"
    return {"used": "no", "why": why, "hint": hint}
