"""A result as a folder of Parquet parts and a manifest, that a later run can complete.

``part-00000.parquet`` ... hold the rows in input order, part after part; a part is
written beside its name, synchronised and renamed, so it is whole or not there.
``_part-00000.json`` ... hold queries, rows and SHA-256 of each part; such an entry is
there before its part, so a part that does not fit its entry was damaged later.
``_manifest.json`` says what the parts are parts of; readers of Parquet folders skip
names that begin with ``_`` or a dot.
"""

import glob
import hashlib
import json
import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from jaxalign.errors import InputError, UsageError
from jaxalign.io import arrow, output, source
from jaxalign.model.table import Table

MANIFEST = "_manifest.json"
PART = re.compile(r"part-(\d{5,18})\.parquet", re.ASCII)
FREE = ("versions",)  # entries that may differ: results do not depend on them
ABSENT, WHOLE = "absent", "whole"
UNCHECKED, DAMAGED = "without a checksum", "damaged"
UNREADABLE = (OSError, ValueError, RecursionError)  # of JSON
NAMED = 3  # parts of a message


def is_dataset(path: str) -> bool:
    """Whether a folder holds a dataset, complete or not."""
    return os.path.isfile(os.path.join(path, MANIFEST))


def begin(path: str, manifest: dict, resume: bool, force: bool, join: bool) -> None:
    """Make the folder, or check that it is of the same run.

    Parameters
    ----------
    path : str
        The folder.
    manifest : dict
        What the run depends on (JSON); entries named in ``FREE`` may differ.
    resume : bool
        There may be parts already.
    force : bool
        Remove the parts and the manifest that are there.
    join : bool
        Others write parts of the same run (shards).

    Raises
    ------
    UsageError
        There is a dataset and neither ``resume``, ``force`` nor ``join`` is asked for;
        its manifest is another one; the folder holds other things, or is none.
    InputError
        The manifest is damaged.
    """
    with output.naming(path):
        # Names first: another shard writes its manifest before its parts.
        names = _names(path)
        there = is_dataset(path)
        if names and not there:
            raise UsageError(f"{path}: is a folder with other files; give a new one")
        if there and not force:
            _check_same(path, manifest)
            _check_names(path, names, manifest["parts"])
            if not (resume or join):
                raise UsageError(
                    f"{path}: exists; use --resume to complete it, or --force to begin "
                    "anew"
                )
            return
        for pattern in ("part-*.parquet", "_part-*.json"):
            for name in glob.glob(os.path.join(glob.escape(path), pattern)):
                os.remove(name)
        _write_json(os.path.join(path, MANIFEST), manifest)


def _names(path: str) -> list[str]:
    """What lies in the folder, which is made where it is not there."""
    if os.path.lexists(path) and not os.path.isdir(path):
        raise UsageError(f"{path}: is no folder; parts need a new one")
    if not os.path.isdir(path):
        output.check(path, True)
        os.makedirs(path, exist_ok=True)
    return [name for name in os.listdir(path) if not name.startswith(".")]


def _check_same(path: str, manifest: dict) -> None:
    there = read_manifest(path)
    names = sorted((there.keys() | manifest.keys()) - set(FREE))
    other = [name for name in names if there.get(name) != manifest.get(name)]
    if not other:
        return
    said = "; ".join(
        f"{n}: {there.get(n)} there, {manifest.get(n)} here" for n in other
    )
    if len(said) > 600:
        said = ", ".join(other)
    raise UsageError(
        f"{path}: its manifest is of another run ({said}); give a new folder, or use "
        "--force to begin anew"
    )


def _check_names(path: str, names: list[str], count: int) -> None:
    """Refuse what readers of the folder would take for rows of it."""
    parts = {os.path.basename(part_path(path, index)) for index in range(count)}
    for name in sorted(set(names) - parts):
        if name.startswith("part-") or name.endswith(".parquet"):
            raise UsageError(
                f"{os.path.join(path, name)}: is no part of this run; remove it, or "
                "use --force to begin anew"
            )


def read_manifest(path: str) -> dict:
    """The manifest of a dataset.

    Raises
    ------
    InputError
        There is none, or it is damaged.
    """
    try:
        return _read_json(os.path.join(path, MANIFEST))
    except UNREADABLE as error:
        raise InputError(f"{path}: no {MANIFEST} that can be read ({error})") from error


def digest(manifest: dict) -> str:
    """SHA-256 of the entries that results depend on; each part carries it."""
    held = {name: value for name, value in manifest.items() if name not in FREE}
    return hashlib.sha256(json.dumps(held, sort_keys=True).encode()).hexdigest()


def finished(
    path: str, manifest: dict, parts: Iterable[Any]
) -> tuple[list[int], list[str]]:
    """Which of some parts are there as they were written, by their SHA-256.

    Parameters
    ----------
    parts : iterable of ``pairs.parts.query_ranges.Part``

    Returns
    -------
    list of int
        Their indices.
    list of str
        Lines for a user about those that are there and have to be computed again.

    Raises
    ------
    UsageError
        A part is of another run.
    """
    parts = list(parts)
    with ThreadPoolExecutor() as pool:
        states = list(pool.map(lambda part: _state(path, manifest, part), parts))
    some = list(zip(parts, states, strict=True))
    lines = [
        _line(path, kind, [part.index for part, state in some if state == kind])
        for kind in (UNCHECKED, DAMAGED)
        if kind in states
    ]
    return [part.index for part, state in some if state == WHOLE], lines


def _state(path: str, manifest: dict, part: Any) -> str:
    """One of the four states of a part."""
    name = part_path(path, part.index)
    if not os.path.lexists(name):
        return ABSENT
    try:
        entry = _read_json(entry_path(path, part.index))
        whole = source.sha256(name) == entry["sha256"] is not None
    except FileNotFoundError:
        return UNCHECKED
    except (*UNREADABLE, KeyError):
        return DAMAGED
    expected = _entry(manifest, part)
    if whole and entry.get("run") != expected["run"]:
        raise UsageError(f"{name}: is of another run; remove it or use --force")
    return WHOLE if whole and entry | expected == entry else DAMAGED


def _line(path: str, state: str, indices: list[int]) -> str:
    names = [os.path.basename(part_path(path, index)) for index in indices[:NAMED]]
    names += ["…"] * (len(indices) > NAMED)
    count = "1 part is" if len(indices) == 1 else f"{len(indices):,} parts are"
    again = f"{count} {state} and computed again"
    return f"{path}: {again}: {', '.join(names)}"


def _entry(manifest: dict, part: Any) -> dict:
    """What is known of a part before it is computed."""
    return {
        "run": digest(manifest),
        "part": part.index,
        "queries": [part.first, part.last],
        "rows": [part.start, part.stop],
    }


def complete(path: str) -> tuple[int, int]:
    """(parts that are there, parts in all) of a dataset.

    Raises
    ------
    InputError
        The manifest is damaged.
    """
    count = read_manifest(path).get("parts")
    if type(count) is not int or count < 0:
        raise InputError(f"{path}: {MANIFEST} is damaged: parts = {count!r}")
    names = (PART.fullmatch(name) for name in os.listdir(path))
    return sum(int(name[1]) < count for name in names if name), count


def part_path(path: str, index: int) -> str:
    """The file of a part."""
    return os.path.join(path, f"part-{index:05}.parquet")


def entry_path(path: str, index: int) -> str:
    """The file that holds the checksum of a part."""
    return os.path.join(path, f"_part-{index:05}.json")


def write_part(
    table: Table,
    path: str,
    part: Any,
    manifest: dict,
    columns: Sequence[str] | None,
    identity: str,
) -> None:
    """Write one part: it has its name when it is whole and on the disk.

    Parameters
    ----------
    table : Table
        Its rows.
    part : ``pairs.parts.query_ranges.Part``
        ``index``; ``first`` and ``last``, its queries; ``start`` and ``stop``, its rows
        before filters.

    Raises
    ------
    JaxalignError
        It cannot be written, the disk is full; parts that are finished stay.
    """
    name, entry = part_path(path, part.index), _entry(manifest, part)
    about = {"jaxalign.run": entry["run"], "jaxalign.rows": f"{part.start}:{part.stop}"}

    def fill(temporary: str) -> None:
        arrow.parquet(table, temporary, columns, identity, about)
        _synchronise(temporary)
        known = {"kept": len(table), "sha256": source.sha256(temporary)}
        _write_json(entry_path(path, part.index), entry | known)

    with output.naming(name, "; what is finished stays, --resume goes on from there"):
        output.replace_file(name, fill)
        _synchronise(path)


@contextmanager
def writing(path: str, writers: int, *about) -> Iterator[Callable[[Table, Any], None]]:
    """A function (table, part) that lets threads write parts, so many at a time.

    about : manifest, columns and identity, as of ``write_part``

    Raises
    ------
    JaxalignError
        A part cannot be written: at one of the next calls, or at the end.
    """
    waiting: deque = deque()
    with ThreadPoolExecutor(writers) as pool:

        def write(table: Table, part: Any) -> None:
            while len(waiting) >= writers:
                waiting.popleft().result()
            waiting.append(pool.submit(write_part, table, path, part, *about))

        yield write
        for one in waiting:
            one.result()


def _read_json(path: str) -> dict:
    with open(path, encoding="utf-8") as handle:
        content = json.load(handle)
    if not isinstance(content, dict):
        raise ValueError("no JSON object")
    repr(content)  # a RecursionError here, and not in a message about it
    return content


def _write_json(path: str, content: dict) -> None:
    def fill(temporary: str) -> None:
        with open(temporary, "w", encoding="utf-8") as handle:
            handle.write(json.dumps(content, indent=2) + "\n")
        _synchronise(temporary)

    output.replace_file(path, fill)


def _synchronise(path: str) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    handle = os.open(path or ".", os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
