"""The files of a folder of parts: their names, their checksums, how they are read.

A part that does not fit its entry, ``_part-00000.json``, was damaged after it was
written, because the entry is there before the part.
"""

import hashlib
import json
import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from jaxalign.errors import UsageError
from jaxalign.io import output, source
from jaxalign.model.input_files import is_endless

FREE = ("versions",)  # entries that may differ: results do not depend on them
ABSENT, WHOLE = "absent", "whole"
UNCHECKED, DAMAGED = "without a checksum", "damaged"
UNREADABLE = (OSError, ValueError, RecursionError)  # of JSON
NAMED = 3  # parts of a message


def digest(manifest: dict) -> str:
    """SHA-256 of the entries that results depend on; each part carries it."""
    entries = {name: value for name, value in manifest.items() if name not in FREE}
    return hashlib.sha256(json.dumps(entries, sort_keys=True).encode()).hexdigest()


def finished(
    path: str, manifest: dict, parts: Iterable[Any]
) -> tuple[list[int], list[str]]:
    """Which of some parts are there as they were written, by their SHA-256: their
    indices, and lines for a user about those that are there and have to be computed
    again.

    Raises
    ------
    UsageError
        A part is of another run.
    """
    parts = list(parts)
    with ThreadPoolExecutor() as pool:
        states = list(pool.map(lambda part: _state(path, manifest, part), parts))
    pairs = list(zip(parts, states, strict=True))
    lines = [
        _line(path, kind, [part.index for part, state in pairs if state == kind])
        for kind in (UNCHECKED, DAMAGED)
        if kind in states
    ]
    return [part.index for part, state in pairs if state == WHOLE], lines


def _state(path: str, manifest: dict, part: Any) -> str:
    """One of the four states of a part."""
    name = part_path(path, part.index)
    if not os.path.lexists(name):
        return ABSENT
    try:
        entry = read_json(entry_path(path, part.index))
        unchanged = source.sha256(name) == entry["sha256"] is not None
    except FileNotFoundError:
        return UNCHECKED
    except (*UNREADABLE, KeyError):
        return DAMAGED
    expected = entry_of(manifest, part)
    if unchanged and entry.get("run") != expected["run"]:
        raise UsageError(f"{name}: is of another run; remove it or use --force")
    return WHOLE if unchanged and entry | expected == entry else DAMAGED


def _line(path: str, state: str, indices: list[int]) -> str:
    names = [os.path.basename(part_path(path, index)) for index in indices[:NAMED]]
    names += ["…"] * (len(indices) > NAMED)
    count = "1 part is" if len(indices) == 1 else f"{len(indices):,} parts are"
    again = f"{count} {state} and computed again"
    return f"{path}: {again}: {', '.join(names)}"


def entry_of(manifest: dict, part: Any) -> dict:
    """The entry of a part, as it is known before it is computed."""
    return {
        "run": digest(manifest),
        "part": part.index,
        "queries": [part.first, part.last],
        "rows": [part.start, part.stop],
    }


def part_path(path: str, index: int) -> str:
    """The file of a part."""
    return os.path.join(path, f"part-{index:05}.parquet")


def entry_path(path: str, index: int) -> str:
    """The file that holds the checksum of a part."""
    return os.path.join(path, f"_part-{index:05}.json")


def read_json(path: str) -> dict:
    """An object of JSON.

    Raises
    ------
    OSError, ValueError, RecursionError
    """
    if is_endless(path):
        raise ValueError("a device that has no end")
    with open(path, encoding="utf-8") as handle:
        content = json.load(handle)
    if not isinstance(content, dict):
        raise ValueError("no JSON object")
    repr(content)  # a RecursionError here, and not in a message about it
    return content


def write_json(path: str, content: dict) -> None:
    """Write an object of JSON, whole and on the disk or not at all."""

    def fill(temporary: str) -> None:
        with open(temporary, "w", encoding="utf-8") as handle:
            handle.write(json.dumps(content, indent=2) + "\n")
        synchronise(temporary)

    output.replace_file(path, fill)


def synchronise(path: str) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    handle = os.open(path or ".", os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
