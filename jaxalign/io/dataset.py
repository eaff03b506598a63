"""A result as a folder of Parquet parts and a manifest, that a later run can complete.

``part-00000.parquet`` ... hold the rows in input order, part after part; a part is
written beside its name, synchronised and renamed, so it is whole or not there.
``_manifest.json`` says what the parts are parts of; readers of Parquet folders skip
names that begin with ``_`` or a dot.
"""

import glob
import hashlib
import json
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from jaxalign.errors import InputError, JaxalignError, UsageError
from jaxalign.io import arrow, output
from jaxalign.model.table import Table

MANIFEST = "_manifest.json"
FREE = ("versions",)  # entries that may differ: results do not depend on them


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
        its manifest is another one; the folder holds other things.
    """
    if not os.path.isdir(path):
        output.check(path, True)
        os.makedirs(path, exist_ok=True)
    # Names first: another shard writes its manifest before its parts.
    names = [name for name in os.listdir(path) if not name.startswith(".")]
    found = is_dataset(path)
    if not found and names:
        raise UsageError(f"{path}: is a folder with other files; give a new one")
    if found and not force:
        _check_same(path, manifest)
        if not (resume or join):
            raise UsageError(
                f"{path}: exists; use --resume to complete it, or --force to begin anew"
            )
        return
    if found:
        for name in glob.glob(os.path.join(glob.escape(path), "part-*.parquet")):
            os.remove(name)
    text = json.dumps(manifest, indent=2) + "\n"
    output.write_file(os.path.join(path, MANIFEST), lambda name: _fill(name, text))


def _check_same(path: str, manifest: dict) -> None:
    held = read_manifest(path)
    names = sorted((held.keys() | manifest.keys()) - set(FREE))
    other = [name for name in names if held.get(name) != manifest.get(name)]
    if not other:
        return
    said = "; ".join(f"{n}: {held.get(n)} there, {manifest.get(n)} here" for n in other)
    if len(said) > 600:
        said = ", ".join(other)
    raise UsageError(
        f"{path}: its manifest is of another run ({said}); give a new folder, or use "
        "--force to begin anew"
    )


def read_manifest(path: str) -> dict:
    """The manifest of a dataset.

    Raises
    ------
    InputError
        There is none, or it is damaged.
    """
    try:
        with open(os.path.join(path, MANIFEST), encoding="utf-8") as handle:
            return json.load(handle)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: no {MANIFEST} that can be read ({error})") from error


def digest(manifest: dict) -> str:
    """SHA-256 of the entries that results depend on; each part carries it."""
    held = {name: value for name, value in manifest.items() if name not in FREE}
    return hashlib.sha256(json.dumps(held, sort_keys=True).encode()).hexdigest()


def finished(path: str, manifest: dict, parts: Iterable[int]) -> list[int]:
    """Which of some parts are there, whole, and of this run.

    Raises
    ------
    UsageError
        A part is of another run.
    """
    _, pq = arrow.pyarrow()
    mine, found = digest(manifest), []
    for index in parts:
        name = part_path(path, index)
        if not os.path.exists(name):
            continue
        try:
            held = pq.read_metadata(name).metadata or {}
        except Exception:  # damaged by whatever: it is computed again
            continue
        if held.get(b"jaxalign.run") != mine.encode():
            raise UsageError(f"{name}: is of another run; remove it or use --force")
        found.append(index)
    return found


def complete(path: str) -> tuple[int, int]:
    """(parts that are there, parts in all) of a dataset."""
    count = read_manifest(path)["parts"]
    return sum(os.path.exists(part_path(path, k)) for k in range(count)), count


def part_path(path: str, index: int) -> str:
    """The file of a part."""
    return os.path.join(path, f"part-{index:05}.parquet")


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
        ``index``, and ``start`` and ``stop``, its rows before filters.

    Raises
    ------
    JaxalignError
        It cannot be written, the disk is full; parts that are finished stay.
    """
    name = part_path(path, part.index)
    about = {"jaxalign.run": digest(manifest), "jaxalign.rows": f"{part.start}:"}
    about["jaxalign.rows"] += str(part.stop)
    folder, base = os.path.split(name)
    for left in glob.glob(os.path.join(glob.escape(folder), f".{base}.*.tmp")):
        os.remove(left)  # of a run that was killed

    def fill(temporary: str) -> None:
        arrow.parquet(table, temporary, columns, identity, about)
        _synchronise(temporary)

    try:
        output.write_file(name, fill)
        _synchronise(folder)
    except OSError as error:
        raise JaxalignError(
            f"{name}: cannot be written ({error.strerror or error}); what is finished "
            "stays, --resume goes on from there"
        ) from error


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


def _fill(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as handle:
        handle.write(text)
    _synchronise(path)


def _synchronise(path: str) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    handle = os.open(path or ".", os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
