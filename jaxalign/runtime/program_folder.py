# pyright: strict
"""Compiled programs in files: the user's folder of them, and packs made elsewhere.

The folder is ``jaxalign`` in the user's cache folder, or in the one that a variable
names. A file is named after all that its program depends on (``runtime.program_key``),
so that home folders may be shared by unlike machines. Whatever cannot be read whole, or
belongs to somebody else, is no entry. The oldest files go when the folder is full.

A file has four parts: the line ``MAGIC``; the SHA-256 of all that follows, in hex, on a
line; the header, JSON on a line; the executable, compressed by zlib. The header holds
the file's own name, the number of bytes of the executable, and what the maker knows of
the program. Nothing in it is pickled.

A pack is a folder of programs for a kind of GPU, which a job reads and never writes to.
It is the folder that a variable of the environment names, or the package
``jaxalign_programs``. Its manifest says for which GPUs, versions and sources it was
made; a pack for others is warned of once, and not used. Where some sources have
changed, it serves the verbs whose programs are made of others.
"""

import json
import os
import stat
import tempfile
import time
import warnings
import zlib
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from jaxalign.errors import UsageError
from jaxalign.runtime import machine

MAGIC = b"jaxalign program 2\n"
DIGEST_BYTES = 64
FOLDER = "JAXALIGN_CACHE_DIR"  # in place of the user's; empty, or "off": none
SUBFOLDER = "jaxalign"  # in either, and ours
MAX_BYTES = 2**30
SUFFIX, NEW_SUFFIX = ".program", ".new"
ABANDONED = 3600.0  # seconds after which nobody writes a new file any more
READ_ONLY = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
VARIABLE, PACKAGE = "JAXALIGN_PROGRAMS", "jaxalign_programs"
MANIFEST, FORMAT = "pack.json", 2
VALUE_ERRORS = (ValueError, LookupError, TypeError, ArithmeticError, RecursionError)
UNREADABLE = (*VALUE_ERRORS, zlib.error)  # what damaged content raises
ROOT = 0  # a package may be of the administrator of a machine


def pack(name: str, about: dict[str, Any], executable: bytes) -> bytes:
    """Make the content of the file of a program.

    name : that of the file, without its suffix
    about : what is known of the program, as JSON can hold it
    executable : what XLA has serialised
    """
    header = json.dumps({**about, "name": name, "bytes": len(executable)})
    body = header.encode() + b"\n" + zlib.compress(executable, 1)
    return MAGIC + sha256(body).hexdigest().encode() + b"\n" + body


def unpack(name: str, content: bytes) -> tuple[dict[str, Any], bytes] | None:
    """Read (what is known of a program, its executable); None if the content is of
    another format, incomplete, changed, or of another name."""
    start = len(MAGIC) + DIGEST_BYTES + 1
    body = content[start:]
    if content[:start] != MAGIC + sha256(body).hexdigest().encode() + b"\n":
        return None
    try:
        header, _, compressed = body.partition(b"\n")
        about = json.loads(header)
        size, stream = about["bytes"], zlib.decompressobj()
        # So many bytes and no more, whatever the compressed ones would become.
        executable = stream.decompress(compressed, max(size, 1))
        whole = len(executable) == size and stream.eof and about["name"] == name
    except UNREADABLE:
        return None
    return (about, executable) if whole else None


def program_folder() -> str | None:
    """Find the folder of programs; None if there is to be none, or none is safe."""
    place = os.environ.get(FOLDER)
    if place is None:
        # The XDG Base Directory Specification has a relative path ignored.
        place = os.environ.get("XDG_CACHE_HOME", "")
        if not os.path.isabs(place):
            try:
                place = str(Path.home() / ".cache")
            except (RuntimeError, KeyError):  # no HOME, and no entry of this user
                return None
    elif place.lower() in ("", "off"):
        return None
    if not os.path.isabs(place):
        return None
    folder = os.path.join(place, SUBFOLDER)
    return folder if is_private(folder) else None


def is_private(folder: str) -> bool:
    """Whether only this user may write to a folder; create it, closed to others, if it
    is missing.

    A program in it is run: who may write there could have any program run. What was
    there before keeps its mode.
    """
    try:
        os.makedirs(os.path.dirname(folder), exist_ok=True)
        with suppress(FileExistsError):
            os.mkdir(folder, 0o700)
        state = os.stat(folder, follow_symlinks=False)
        mine = stat.S_ISDIR(state.st_mode) and state.st_uid == os.getuid()
        others_write = state.st_mode & 0o022
        return mine and not others_write and os.access(folder, os.W_OK)
    except (OSError, ValueError):
        return False


def read_program(folder: str, name: str) -> tuple[dict[str, Any], bytes] | None:
    """Read an entry; None if there is none, or it is foreign, or damaged, and then it
    is removed."""
    path = os.path.join(folder, name + SUFFIX)
    content = content_of(path, (os.getuid(),))
    if content is None:
        return None
    parts = unpack(name, content)
    with suppress(OSError):
        if parts is None:
            os.unlink(path)
        else:
            os.utime(path)  # the oldest files go first
    return parts


def content_of(path: str, owners: tuple[int, ...]) -> bytes | None:
    """Read a file that one of ``owners`` owns and nobody else may write to.

    Whatever else has this name, a pipe or a device say, is opened without waiting for
    anybody, and not read.
    """
    try:
        descriptor = os.open(path, READ_ONLY)
        try:
            state = os.fstat(descriptor)
            mine = stat.S_ISREG(state.st_mode) and state.st_uid in owners
            if not mine or state.st_mode & 0o022 or state.st_size > MAX_BYTES:
                return None
            with open(descriptor, "rb", closefd=False) as file:
                return file.read()
        finally:
            os.close(descriptor)
    except OSError:
        return None


def write_program(
    folder: str, name: str, about: dict[str, Any], executable: bytes
) -> None:
    """Add an entry, or replace it, in one step; a folder that cannot take it stays as
    it is.

    New files of processes that ended while they wrote them are removed, and the oldest
    entries beyond ``MAX_BYTES``.
    """
    temporary = None
    try:
        content = pack(name, about, executable)
        descriptor, temporary = tempfile.mkstemp(NEW_SUFFIX, ".", folder)
        with open(descriptor, "wb") as file:
            file.write(content)
        os.replace(temporary, os.path.join(folder, name + SUFFIX))
        for stem, state in entries(folder, NEW_SUFFIX):
            if state.st_mtime < time.time() - ABANDONED:
                with suppress(OSError):
                    os.unlink(os.path.join(folder, stem + NEW_SUFFIX))
        by_age = sorted(entries(folder), key=lambda entry: entry[1].st_mtime)
        excess = sum(state.st_size for _, state in by_age) - MAX_BYTES
        for stem, state in by_age:
            if excess <= 0:
                break
            with suppress(OSError):
                os.unlink(os.path.join(folder, stem + SUFFIX))
            excess -= state.st_size
    except OSError:
        if temporary is not None:
            with suppress(OSError):
                os.unlink(temporary)


def entries(folder: str, suffix: str = SUFFIX) -> list[tuple[str, os.stat_result]]:
    """Names, without their suffix, and states of all entries."""
    listing: list[tuple[str, os.stat_result]] = []
    with suppress(OSError), os.scandir(folder) as files:
        for file in files:
            if file.name.endswith(suffix):
                with suppress(OSError):  # another process has removed it
                    state = file.stat(follow_symlinks=False)
                    if stat.S_ISREG(state.st_mode):
                        listing.append((file.name.removesuffix(suffix), state))
    return listing


def program_files() -> dict[str, str | int]:
    """The folder, how many programs are in it, and how many bytes these have."""
    folder = program_folder()
    if folder is None:
        return {"folder": "none"}
    sizes = [state.st_size for _, state in entries(folder)]
    return {"folder": folder, "programs": len(sizes), "bytes": sum(sizes)}


@dataclass(frozen=True)
class Pack:
    """A pack that fits a device."""

    folder: str
    architecture: str  # such as sm_90


def pack_place() -> str | None:
    """The folder of the pack; None where there is none."""
    named = os.environ.get(VARIABLE)
    if named is not None:
        return None if named.lower() in ("", "off") else os.path.abspath(named)
    package = find_spec(PACKAGE)
    folders = list(package.submodule_search_locations or ()) if package else []
    return folders[0] if folders else None


@cache
def pack_of(device: Any) -> Pack | None:
    """Find the pack for a GPU; None, with a warning, if it does not fit."""
    capability = str(getattr(device, "compute_capability", ""))
    folder = pack_place() if device.platform == "gpu" else None
    if folder is None or not capability:
        return None
    pack = Pack(folder, f"sm_{capability.replace('.', '')}")
    why = _why_not(pack)
    if why is None:
        return pack
    warnings.warn(f"programs in {folder} are not used: {why}", stacklevel=2)
    return None


def _why_not(pack: Pack) -> str | None:
    """Explain why a pack does not fit; None if it does."""
    content = content_of(os.path.join(pack.folder, MANIFEST), _owners())
    if content is None:
        return f"there is no {MANIFEST} that only you, or root, may write to"
    try:
        manifest = json.loads(content)
        makers, targets = manifest["makers"], manifest["architectures"]
        sources, same_format = manifest["sources"], manifest["format"] == FORMAT
        texts = [*targets, *(x for pair in sources.values() for x in pair)]
        parts: tuple[object, ...] = makers, targets, sources
        if [*map(type, parts)] != [dict, list, dict] or {*map(type, texts)} - {str}:
            return f"{MANIFEST} is damaged"
        served = _same_sources(sources)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return f"{MANIFEST} is damaged"
    if not same_format:
        return f"{MANIFEST} is of another format"
    from jaxalign.runtime import program_key  # which imports JAX

    for name, value in program_key.pack_makers().items():
        if makers.get(name) != value:
            return f"{name} is {value}, and they are for {makers.get(name)}"
    if pack.architecture not in targets:
        return f"this is {pack.architecture}, and they are for {', '.join(targets)}"
    if not any(served.values()):
        return "the sources that they are made of have changed"
    return None


def _same_sources(sources: dict[str, list[str]]) -> dict[str, bool]:
    """For each verb, whether the sources that its programs are made of are these."""
    return {
        verb: machine.code_digest(modules) == digest
        for verb, (modules, digest) in sources.items()
    }


def pack_facts(device: Any) -> dict[str, str]:
    """The folder of the pack for a GPU, the verbs it serves, and those whose sources
    have changed since."""
    pack = pack_of(device)
    if pack is None:
        return {}
    content = content_of(os.path.join(pack.folder, MANIFEST), _owners())
    served = _same_sources(json.loads(content or b"{}").get("sources", {}))
    facts = {"pack": pack.folder}
    for name, state in (("pack_serves", True), ("pack_is_outdated_for", False)):
        if verbs := [verb for verb, same in served.items() if same == state]:
            facts[name] = ", ".join(verbs)
    return facts


def read_packed(pack: Pack, name: str) -> tuple[dict[str, Any], bytes] | None:
    """The parts of a program; None if there is none, or it is foreign or damaged."""
    content = content_of(os.path.join(pack.folder, name + SUFFIX), _owners())
    return None if content is None else unpack(name, content)


def _owners() -> tuple[int, ...]:
    return os.getuid(), ROOT


def begin_pack(folder: Path) -> None:
    """Make the folder of a pack, or empty it: it may be one that was not finished. The
    manifest goes first, so that no pack seems complete that is not."""
    if folder.exists():
        is_pack = folder.is_dir() and all(
            file.is_file() and (file.name == MANIFEST or file.suffix == SUFFIX)
            for file in folder.iterdir()
        )
        if not is_pack:
            why = "there is something else than a pack of programs"
            raise UsageError(f"{folder}: {why}")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MANIFEST).unlink(missing_ok=True)
    for file in folder.glob(f"*{SUFFIX}"):
        file.unlink()


def claim(folder: Path, name: str) -> bool:
    """Begin the file of a program; False if another process has begun it."""
    try:
        (folder / (name + SUFFIX)).open("xb").close()
    except FileExistsError:
        return False
    return True


def write_packed(
    folder: Path, name: str, about: dict[str, Any], executable: bytes
) -> int:
    """Add a program; returns the bytes of its file."""
    path, content = folder / (name + SUFFIX), pack(name, about, executable)
    path.write_bytes(content)
    path.chmod(0o644)
    return len(content)


def finish_pack(
    folder: Path, architectures: list[str], modules: dict[str, set[str]]
) -> None:
    """Write the manifest, which completes the pack.

    modules : for each verb, those that make its programs
    """
    from jaxalign.runtime import program_key

    texts = {verb: " ".join(sorted(names)) for verb, names in modules.items()}
    manifest = {
        "format": FORMAT,
        "architectures": architectures,
        "makers": program_key.pack_makers(),
        "sources": {k: [text, machine.code_digest(text)] for k, text in texts.items()},
    }
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n")
    (folder / MANIFEST).chmod(0o644)
