# pyright: strict
"""This machine and this code, as compiled programs depend on them; needs no JAX.

``gpu_use`` says whether a GPU is used here, and if not, why, and what to install.
"""

import os
import platform
import re
import threading
from functools import cache
from hashlib import blake2b
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from jaxalign.runtime.devices import first_device

PACKAGES = ("jaxalign", "kernels_pallas")
DRIVER = Path("/proc/driver/nvidia/version")  # where the kernel module is loaded
PLUGINS = "jax_cuda13_plugin", "jax_cuda12_plugin"
CUDA_13_DRIVER = 580  # the first that runs CUDA 13

_reading = threading.Lock()
_root = Path(__file__).resolve().parents[2]
# ``from M import A, B`` with or without parentheses, and ``import M``, at any depth
_IMPORTS = re.compile(
    rf"^[ \t]*(?:from[ \t]+((?:{'|'.join(PACKAGES)})[\w.]*)[ \t]+import[ \t]+"
    r"(\([^)]*\)|[^\n#]*)|import[ \t]+([^\n#]*))",
    re.MULTILINE,
)
_NAME = re.compile(rf"\b(?:{'|'.join(PACKAGES)})(?:\.\w{{1,80}})*")


def code_digest(text: str) -> str:
    """Digest the sources that a program is made of: the modules of this project that a
    text names, and all that these import, so that a program outlives changes elsewhere.

    text : names of modules, or of what is in them, with dots
    """
    with _reading:  # threads that need it at once would read all files each
        return _digest_of(_with_imports(frozenset(modules_of(text))))


def modules_of(text: str) -> list[str]:
    """The modules of this project that a text names, or names what is in them."""
    return sorted({*filter(None, map(_home, _NAME.findall(text)))})


@cache
def _digest_of(modules: frozenset[str]) -> str:
    digest = blake2b(digest_size=16)
    for module in sorted(modules):
        digest.update(f"{module}\0{_source(module)[0]}\0".encode())
    return digest.hexdigest()


@cache
def _with_imports(modules: frozenset[str]) -> frozenset[str]:
    """These modules, and those that they import, directly or not."""
    seen, unread = set(modules), list(modules)
    while unread:
        imported = _source(unread.pop())[1] - seen
        seen |= imported
        unread += imported
    return frozenset(seen)


@cache
def _source(module: str) -> tuple[str, frozenset[str]]:
    """(digest of a module's source, the modules of this project that it imports).

    A package that loads its names when they are used imports all that is in it.
    """
    path = _path(module)
    content = path.read_text(encoding="utf-8")
    imported: set[str | None] = set()
    for home, names, plain in _IMPORTS.findall(content):
        imported |= {_home(name) for name in _NAME.findall(plain)}
        words = [x.split()[0] for x in names.strip("() \n").split(",") if x.split()]
        imported |= {_home(f"{home}.{word}") for word in words}
    if path.name == "__init__.py" and "def __getattr__" in content:
        files = path.parent.rglob("*.py")
        places = (x.relative_to(_root).with_suffix("").parts for x in files)
        imported |= {_home(".".join(place)) for place in places}
    digest = blake2b(content.encode(), digest_size=16).hexdigest()
    return digest, frozenset(filter(None, imported))


@cache
def _home(name: str) -> str | None:
    """The module that a name with dots is, or is in; None if it is not of here."""
    while name and not _path(name).is_file():
        name = name.rpartition(".")[0]
    return name or None


def _path(module: str) -> Path:
    path = _root.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


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
