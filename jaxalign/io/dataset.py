"""A result as a folder of Parquet parts and a manifest, that a later run can complete.

``part-00000.parquet`` ... hold the rows in input order, part after part; a part is
written beside its name, synchronised and renamed, so it is whole or not there.
``_part-00000.json`` ... hold queries, rows and SHA-256 of each part; such an entry is
there before its part, so a part that does not fit its entry was damaged later.
``_manifest.json`` says what the parts are parts of; readers of Parquet folders skip
names that begin with ``_`` or a dot.
"""

import glob
import os
import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from jaxalign.errors import InputError, UsageError
from jaxalign.io import arrow, output, source
from jaxalign.io.part_files import (
    FREE,
    UNREADABLE,
    entry_of,
    entry_path,
    part_path,
    read_json,
    synchronise,
    write_json,
)
from jaxalign.model.table import Table

MANIFEST = "_manifest.json"
PART = re.compile(r"part-(\d{5,18})\.parquet", re.ASCII)


def is_dataset(path: str) -> bool:
    """Whether a folder holds a dataset, complete or not."""
    return os.path.isfile(os.path.join(path, MANIFEST))


def begin(path: str, manifest: dict, resume: bool, force: bool, join: bool) -> None:
    """Make the folder, or check that it is of the same run.

    ``manifest`` holds what the run depends on; its entries named in ``FREE`` may
    differ. With ``resume`` there may be parts already, and with ``join`` others
    (shards) write parts of the same run. ``force`` removes the parts and the manifest
    that are there.

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
        if there:  # else another run may have begun meanwhile
            _remove_parts(path)
        write_json(os.path.join(path, MANIFEST), manifest)


def _remove_parts(path: str) -> None:
    for pattern in ("part-*.parquet", "_part-*.json"):
        for name in glob.glob(os.path.join(glob.escape(path), pattern)):
            os.remove(name)


def _names(path: str) -> list[str]:
    """The names of files in the folder, which is made where it is not there."""
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
            file = os.path.join(path, name)
            raise UsageError(f"{file}: is no part of this run; remove it")


def read_manifest(path: str) -> dict:
    """The manifest of a dataset.

    Raises
    ------
    InputError
        There is none, or it is damaged.
    """
    try:
        return read_json(os.path.join(path, MANIFEST))
    except UNREADABLE as error:
        raise InputError(f"{path}: no {MANIFEST} that can be read ({error})") from error


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


def write_part(
    table: Table,
    path: str,
    part: Any,
    manifest: dict,
    columns: Sequence[str] | None,
    identity: str,
) -> None:
    """Write one part, a ``pairs.parts.query_ranges.Part``, and its entry; it has its
    name when it is whole and on the disk.

    Raises
    ------
    JaxalignError
        It cannot be written, or the disk is full; parts that are finished stay.
    """
    name, entry = part_path(path, part.index), entry_of(manifest, part)
    about = {"jaxalign.run": entry["run"], "jaxalign.rows": f"{part.start}:{part.stop}"}

    def fill(temporary: str) -> None:
        arrow.parquet(table, temporary, columns, identity, about)
        synchronise(temporary)
        known = {"kept": len(table), "sha256": source.sha256(temporary)}
        write_json(entry_path(path, part.index), entry | known)

    with output.naming(name, "; what is finished stays, --resume goes on from there"):
        output.replace_file(name, fill)
        synchronise(path)


@contextmanager
def writing(
    path: str, writers: int, *about: Any
) -> Iterator[Callable[[Table, Any], None]]:
    """A function (table, part) that lets threads write parts, so many at a time;
    ``about`` is manifest, columns and identity, as of ``write_part``.

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
        for future in waiting:
            future.result()
