"""Runs that can be completed after an interruption: a file of arrays, or a folder.

``SavedRun`` has a path and a description of all that its results depend on: a run is
resumed only where the description is the same.

Of a run with one output, the file ``OUT.partial`` holds arrays and the description,
with a SHA-256 of all.

Of a run with parts, ``part-00000.parquet`` ... hold the rows in input order; a part is
written beside its name, synchronised and renamed, so it is whole or not there.
``_part-00000.json`` ... hold queries, rows and SHA-256 of each part: such an entry is
there before its part, so a part that does not fit it was damaged later.
``_manifest.json`` has the description; readers of Parquet folders skip names that begin
with ``_`` or a dot.
"""

import glob
import hashlib
import json
import os
import re
import time
import zipfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import Any

import numpy as np

from jaxalign.errors import InputError, UsageError
from jaxalign.io import arrow, output
from jaxalign.model import source
from jaxalign.model.table import Table

SUFFIX = ".partial"
EVERY = 60.0  # seconds between two states
MANIFEST, CHECKSUM, DATASET_MANIFEST = "manifest", "checksum", "_manifest.json"
PART = re.compile(r"part-(\d{5,18})\.parquet", re.ASCII)
UNREADABLE_JSON = (OSError, ValueError, RecursionError)
FREE = ("versions",)  # entries that may differ: results do not depend on them
ABSENT, WHOLE = "absent", "whole"
UNCHECKED, DAMAGED = "without a checksum", "damaged"
NAMED = 3  # parts of a message

Arrays = dict[str, np.ndarray]


class SavedRun:
    """A run that a later one can complete.

    path : the output: a file, beside which the state is a file with this name and
        ``.partial``, or a folder of parts.
    description : dict, or a function that returns it when it is needed first. Plain
        values, all that results depend on; of a folder with the number of ``parts``,
        and those of ``FREE`` may differ.
    """

    def __init__(self, path: str, description: dict | Callable[[], dict]):
        self.path, self.state_path = path, path + SUFFIX
        self._description = description
        self._written = time.monotonic()
        self._seconds = 0.0  # that the last state took to write

    @cached_property
    def description(self) -> dict:
        """All that the results depend on."""
        about = self._description
        return about() if callable(about) else about

    @cached_property
    def _text(self) -> str:
        return json.dumps(self.description, sort_keys=True)

    def is_begun(self, resume: bool, force: bool = False) -> bool:
        """Whether there is the state of an interrupted run, which is to be completed.

        Raises UsageError: there is one, and nobody says what is to become of it
        """
        path = self.state_path
        if not os.path.lexists(path):
            return False
        if not os.path.isfile(path):
            raise UsageError(
                f"{path}: is not a file, but the state of the run belongs there; "
                "remove it"
            )
        if not (resume or force):
            raise UsageError(
                f"{path}: belongs to an interrupted run; use --resume to complete it, "
                "or --force to start over"
            )
        return resume

    def load(self, resume: bool, force: bool = False) -> Arrays | None:
        """Read the arrays of an interrupted run; None where there is none."""
        path = self.state_path
        if not self.is_begun(resume, force):
            return None
        try:
            with open(path, "rb") as raw:
                file = np.load(raw, allow_pickle=False)
                arrays = {name: file[name] for name in file.files}
            whole = str(arrays.pop(CHECKSUM)) == _checksum_of(arrays)
            description = str(arrays.pop(MANIFEST))
        except Exception:  # damaged files fail in as many ways as there are
            whole, arrays, description = False, {}, ""
        anew = "use --force without --resume to start over"
        if not whole:
            raise UsageError(f"{path}: is damaged, or of another version; {anew}")
        if description != self._text:
            raise UsageError(f"{path}: is of another run; {anew}")
        output.RESUMABLE[path] = "what was done before"
        return arrays

    def save(self, arrays: Callable[[], Arrays], unless_begun: bool = False) -> None:
        """Write the arrays of a state once a minute at most; a state that takes seconds
        to write is written as many times less often.

        unless_begun : write them at once where there is no state yet, and only there
        """
        start, waiting = time.monotonic(), EVERY * max(self._seconds, 1.0)
        early = start - self._written < waiting
        if self.state_path in output.RESUMABLE if unless_begun else early:
            return

        def fill(temporary: str) -> None:
            # ``np.savez`` takes some names for options of its own.
            values = arrays() | {MANIFEST: np.array(self._text)}
            values[CHECKSUM] = np.array(_checksum_of(values))
            with zipfile.ZipFile(temporary, "w") as file:
                for name, array in values.items():
                    with file.open(f"{name}.npy", "w", force_zip64=True) as part:
                        np.lib.format.write_array(part, array, allow_pickle=False)

        output.write_file(self.state_path, fill)
        share = output.SHARE.get("done")
        share_text = "what was done" if share is None else f"{100 * share:.0f} %"
        output.RESUMABLE[self.state_path] = share_text
        self._written = time.monotonic()
        self._seconds = self._written - start

    def remove(self) -> None:
        """Remove the state of a run that is complete."""
        with output.naming(self.state_path), suppress(FileNotFoundError):
            os.remove(self.state_path)
        output.RESUMABLE.pop(self.state_path, None)

    def begin(self, resume: bool, force: bool, join: bool) -> None:
        """Make the folder, or check that it is of the same run.

        With ``resume`` there may be parts already, and with ``join`` others (shards)
        write parts of the same run. ``force`` removes the parts and the description
        that are there.
        """
        path = self.path
        with output.naming(path):
            # Names first: another shard writes the description before its parts.
            names = _names(path)
            exists = is_dataset(path)
            if names and not exists:
                raise UsageError(
                    f"{path}: is a folder with other files; give a new one"
                )
            if exists and not force:
                there, about = read_manifest(path), self.description
                fields = sorted((there.keys() | about.keys()) - set(FREE))
                differing = [x for x in fields if there.get(x) != about.get(x)]
                if differing:
                    said = "; ".join(
                        f"{x}: {there.get(x)} there, {about.get(x)} here"
                        for x in differing
                    )
                    if len(said) > 600:
                        said = ", ".join(differing)
                    raise UsageError(
                        f"{path}: its manifest is of another run ({said}); give a new "
                        "folder, or use --force to start over"
                    )
                _check_names(path, names, about["parts"])
                if not (resume or join):
                    raise UsageError(
                        f"{path}: exists; use --resume to complete it, or --force to "
                        "start over"
                    )
                return
            if exists:  # else another run may have begun meanwhile
                for pattern in ("part-*.parquet", "_part-*.json"):
                    for name in glob.glob(os.path.join(glob.escape(path), pattern)):
                        os.remove(name)
            write_json(os.path.join(path, DATASET_MANIFEST), self.description)

    def finished(self, parts: Iterable[Any]) -> tuple[list[int], list[str]]:
        """Find the parts that are there as they were written, by their SHA-256.

        Returns (list of int, list of str). Their indices, and lines for a user about
        parts that are there and have to be computed again.
        """
        parts = list(parts)
        with ThreadPoolExecutor() as pool:
            states = list(pool.map(self._state, parts))
        pairs = list(zip(parts, states, strict=True))
        lines = [
            _line(self.path, kind, [part.index for part, x in pairs if x == kind])
            for kind in (UNCHECKED, DAMAGED)
            if kind in states
        ]
        return [part.index for part, state in pairs if state == WHOLE], lines

    def _state(self, part: Any) -> str:
        """State of a part: absent, whole, unchecked or damaged."""
        name = part_path(self.path, part.index)
        if not os.path.lexists(name):
            return ABSENT
        if not os.path.isfile(name):
            return DAMAGED
        try:
            entry = read_json(entry_path(self.path, part.index))
            unchanged = source.sha256(name) == entry["sha256"] is not None
        except FileNotFoundError:
            return UNCHECKED
        except (*UNREADABLE_JSON, KeyError):
            return DAMAGED
        expected = self._entry(part)
        if unchanged and entry.get("run") != expected["run"]:
            raise UsageError(f"{name}: is of another run; remove it or use --force")
        return WHOLE if unchanged and entry | expected == entry else DAMAGED

    def _entry(self, part: Any) -> dict:
        """Entry of a part before it is computed."""
        return {
            "run": digest(self.description),
            "part": part.index,
            "queries": [part.first, part.last],
            "rows": [part.start, part.stop],
        }

    def write_part(
        self, table: Table, part: Any, columns: Sequence[str] | None, identity: str
    ) -> None:
        """Write one part, a ``pairs.part_stream.Part``, and its entry; it has its name
        when it is whole and on the disk."""
        name, entry = part_path(self.path, part.index), self._entry(part)
        about = {"jaxalign.run": entry["run"]}
        about |= {"jaxalign.rows": f"{part.start}:{part.stop}"}

        def fill(temporary: str) -> None:
            arrow.parquet(table, temporary, columns, identity, about)
            synchronise(temporary)
            outcome = {"kept": len(table), "sha256": source.sha256(temporary)}
            write_json(entry_path(self.path, part.index), entry | outcome)

        hint = "; what is finished stays, --resume goes on from there"
        with output.naming(name, hint):
            output.replace_file(name, fill)
            synchronise(self.path)
        output.RESUMABLE[self.path] = "the parts that are finished"

    @contextmanager
    def writing(
        self, writers: int, columns: Sequence[str] | None, identity: str
    ) -> Iterator[Callable[[Table, Any], None]]:
        """Yield a function (table, part) that lets threads write parts, so many at a
        time."""
        waiting: deque = deque()
        with ThreadPoolExecutor(writers) as pool:

            def write(table: Table, part: Any) -> None:
                while len(waiting) >= writers:
                    waiting.popleft().result()
                about = table, part, columns, identity
                waiting.append(pool.submit(self.write_part, *about))

            yield write
            for future in waiting:
                future.result()


def _checksum_of(arrays: Arrays) -> str:
    """SHA-256 of arrays, with their names, types and shapes."""
    state = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        state.update(repr((name, array.dtype.str, array.shape)).encode())
        state.update(np.ascontiguousarray(array).data)
    return state.hexdigest()


def about_file(path: str) -> dict:
    """Describe a file by its name, size and SHA-256: no scan is faster than its hash,
    and dates stay the same in copies and may in edits."""
    name = os.path.basename(path)
    return {"name": name, "bytes": os.path.getsize(path), "sha256": source.sha256(path)}


def digest(manifest: dict) -> str:
    """SHA-256 of the entries that results depend on; each part carries it."""
    entries = {name: value for name, value in manifest.items() if name not in FREE}
    return hashlib.sha256(json.dumps(entries, sort_keys=True).encode()).hexdigest()


def is_dataset(path: str) -> bool:
    """Whether a folder holds parts of a run, complete or not."""
    return os.path.isfile(os.path.join(path, DATASET_MANIFEST))


def _names(path: str) -> list[str]:
    """List the files of the folder; create it if it is missing."""
    if os.path.lexists(path) and not os.path.isdir(path):
        raise UsageError(f"{path}: is not a folder; parts need a new folder")
    if not os.path.isdir(path):
        output.check(path, True)
        os.makedirs(path, exist_ok=True)
    return [name for name in os.listdir(path) if not name.startswith(".")]


def _check_names(path: str, names: list[str], count: int) -> None:
    """Refuse files that readers of the folder would take for parts."""
    parts = {os.path.basename(part_path(path, index)) for index in range(count)}
    for name in sorted(set(names) - parts):
        if name.startswith("part-") or name.endswith(".parquet"):
            file = os.path.join(path, name)
            raise UsageError(f"{file}: is not a part of this run; remove it")


def read_manifest(path: str) -> dict:
    """Read the manifest of a dataset."""
    try:
        return read_json(os.path.join(path, DATASET_MANIFEST))
    except UNREADABLE_JSON as error:
        raise InputError(
            f"{path}: no {DATASET_MANIFEST} that can be read ({error}); use --force to "
            "start over"
        ) from error


def complete(path: str) -> tuple[int, int]:
    """Count (finished parts, all parts) of a dataset."""
    count = read_manifest(path).get("parts")
    if type(count) is not int or count < 0:
        raise InputError(f"{path}: {DATASET_MANIFEST} is damaged: parts = {count!r}")
    names = filter(None, map(PART.fullmatch, os.listdir(path)))
    numbers = [int(name[1]) for name in names]
    if max(numbers, default=-1) >= count:
        raise InputError(
            f"{path}: part {max(numbers)} exists, but the run has {count} parts"
        )
    return len(numbers), count


def _line(path: str, state: str, indices: list[int]) -> str:
    names = [os.path.basename(part_path(path, index)) for index in indices[:NAMED]]
    names += ["…"] * (len(indices) > NAMED)
    count = "1 part is" if len(indices) == 1 else f"{len(indices):,} parts are"
    summary = f"{count} {state} and computed again"
    return f"{path}: {summary}: {', '.join(names)}"


def part_path(path: str, index: int) -> str:
    """The file of a part."""
    return os.path.join(path, f"part-{index:05}.parquet")


def entry_path(path: str, index: int) -> str:
    """The file that holds the checksum of a part."""
    return os.path.join(path, f"_part-{index:05}.json")


def read_json(path: str) -> dict:
    """Read a JSON object."""
    if os.path.exists(path) and not os.path.isfile(path):
        raise ValueError("no file")
    with open(path, encoding="utf-8") as handle:
        content = json.load(handle)
    if not isinstance(content, dict):
        raise ValueError("no JSON object")
    repr(content)  # a RecursionError here, and not in a message about it
    return content


def write_json(path: str, content: dict) -> None:
    """Write a JSON object atomically and synchronise it to disk."""

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
