# pyright: strict
"""This machine and this code, as compiled programs depend on them; needs no JAX."""

import os
import platform
import sys
import threading
from functools import cache
from hashlib import blake2b
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("jaxalign", "kernels_pallas")
PROGRAM_MAKERS = ("jax", "jaxlib")

_digesting = threading.Lock()


def code_digest() -> str:
    """A digest of all our sources: a program of other code is another program."""
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
    known = f"{platform.machine()} {platform.processor()} {count}"
    try:
        lines = Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines()
    except OSError:
        return known
    telling = ("vendor_id", "cpu family", "model", "stepping", "flags", "Features")
    return known + "".join(x for x in lines if x.startswith(telling))


def driver() -> str | None:
    """The version of the driver of NVIDIA's GPUs; None where there is none."""
    try:
        return Path("/proc/driver/nvidia/version").read_text().splitlines()[0]
    except (OSError, IndexError):
        return None


@cache
def summary() -> str:
    """All of these, and the versions of Python and of JAX."""
    known = [sys.version, code_digest(), processor(), driver()]
    for name in PROGRAM_MAKERS:
        try:
            known.append(version(name))
        except PackageNotFoundError:
            known.append(None)
    return repr(known)
