# pyright: strict
"""Packs: folders of programs that were made elsewhere, for a kind of GPU.

A pack is read and never written to by a job. It is the folder that a variable of the
environment names, or the package ``jaxalign_programs``. Its manifest says for which
GPUs, versions and sources it was made: a pack that is for others is named once, and
not used. Its files are those of ``program_file``: JSON and what XLA has serialised,
with a digest of both and the file's own name. Nothing in them is pickled.
"""

import json
import os
import warnings
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from jaxalign.errors import UsageError
from jaxalign.runtime import program_file, program_folder, program_key

VARIABLE, PACKAGE = "JAXALIGN_PROGRAMS", "jaxalign_programs"
MANIFEST, FORMAT = "pack.json", 1
ROOT = 0  # a package may be of the administrator of a machine


@dataclass(frozen=True)
class Pack:
    """A pack that fits a device."""

    folder: str
    architecture: str  # such as sm_90


def place() -> str | None:
    """The folder of the pack; None where there is none."""
    named = os.environ.get(VARIABLE)
    if named is not None:
        return None if named.lower() in ("", "off") else os.path.abspath(named)
    package = find_spec(PACKAGE)
    folders = list(package.submodule_search_locations or ()) if package else []
    return folders[0] if folders else None


@cache
def pack_of(device: Any) -> Pack | None:
    """The pack for a GPU; None where there is none that fits, which is said."""
    capability = str(getattr(device, "compute_capability", ""))
    folder = place() if device.platform == "gpu" else None
    if folder is None or not capability:
        return None
    pack = Pack(folder, f"sm_{capability.replace('.', '')}")
    why = _why_not(pack)
    if why is None:
        return pack
    warnings.warn(f"programs in {folder} are not used: {why}", stacklevel=2)
    return None


def _why_not(pack: Pack) -> str | None:
    """Why a pack does not fit; None where it does."""
    content = program_folder.content_of(os.path.join(pack.folder, MANIFEST), _owners())
    if content is None:
        return f"there is no {MANIFEST} that only you, or root, may write to"
    try:
        manifest = json.loads(content)
        makers, targets = manifest["makers"], manifest["architectures"]
        known = manifest["format"] == FORMAT
    except (ValueError, LookupError, TypeError):
        return f"{MANIFEST} is damaged"
    if not known:
        return f"{MANIFEST} is of another format"
    own = program_key.pack_makers()
    for name, value in own.items():
        if makers.get(name) != value:
            return f"{name} is {value}, and they are for {makers.get(name)}"
    if pack.architecture not in targets:
        return f"this is {pack.architecture}, and they are for {', '.join(targets)}"
    return None


def read(pack: Pack, name: str) -> tuple[dict[str, Any], bytes] | None:
    """The parts of a program; None if there is none, or it is foreign or damaged."""
    path = os.path.join(pack.folder, name + program_folder.SUFFIX)
    content = program_folder.content_of(path, _owners())
    if content is None:
        return None
    try:
        return program_file.unpack(name, content)
    except program_file.Damaged:
        return None


def _owners() -> tuple[int, ...]:
    return os.getuid(), ROOT


def begin(folder: Path) -> None:
    """Make the folder of a pack.

    Raises
    ------
    UsageError
        There is something else.
    """
    if folder.exists() and not (folder / MANIFEST).is_file() and any(folder.iterdir()):
        raise UsageError(f"{folder}: there is something else than a pack of programs")
    folder.mkdir(parents=True, exist_ok=True)
    for file in folder.glob(f"*{program_folder.SUFFIX}"):
        file.unlink()


def write(folder: Path, name: str, about: dict[str, Any], executable: bytes) -> int:
    """Add a program; the bytes of its file."""
    content = program_file.pack(name, about, executable)
    return _write(folder / (name + program_folder.SUFFIX), content)


def finish(folder: Path, architectures: list[str]) -> None:
    """Write the manifest: now it is a pack."""
    makers = program_key.pack_makers()
    manifest = {"format": FORMAT, "architectures": architectures, "makers": makers}
    _write(folder / MANIFEST, json.dumps(manifest, indent=1).encode() + b"\n")


def _write(path: Path, content: bytes) -> int:
    path.write_bytes(content)
    path.chmod(0o644)
    return len(content)
