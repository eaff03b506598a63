"""The parts that an audit compares: files, or one file and a list."""

import os
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from jaxalign.cli import link_job
from jaxalign.cli.link_job import LinkJob
from jaxalign.errors import InputError, UsageError
from jaxalign.homology.api import REMOVED, coverage
from jaxalign.io import name_table
from jaxalign.io.source import sha256
from jaxalign.model.alphabet import Sequences
from jaxalign.model.names import written

# As jaxalign, GraphPart and others call them.
PART_COLUMNS = ("part", "cluster", "fold", "split", "set", "partition", "subset")
SHOWN = 3  # names in a message


@dataclass(frozen=True, eq=False)
class AuditedParts:
    """Parts by their names, and how many sequences are in none.

    Attributes
    ----------
    sets : dict of Sequences
    left_out : dict of int
        ``removed``, ``unlisted``.
    """

    sets: dict[str, Sequences]
    left_out: dict[str, int]


def read(
    paths: Sequence[str],
    split: str | None,
    job: LinkJob,
    partial: bool,
    names: Sequence[str] = (),
    column: str | None = None,
) -> AuditedParts:
    """The parts of files, or of a list.

    Parameters
    ----------
    split : path of the list, or None
    partial : bool
        Whether sequences may be in no part.
    names : of parts that come first, where somebody has said them
    column : of the list; None where its heading says which one is meant

    Raises
    ------
    InputError
        Fewer than two parts, a name that is no sequence, or sequences in no part.
    """
    if split is None:
        names = names if len(names) == len(paths) else [_short(x) for x in paths]
        check_files(paths)
        names = paths if len(set(names)) < len(names) else names
        sets = dict(zip(names, job.read.sequences, strict=True))
        return AuditedParts(sets, {"removed": 0, "unlisted": 0})
    (data,) = job.read.sequences
    known = link_job.known_names(paths[0], job.read)
    table = name_table.read(split, known, PART_COLUMNS, column)
    members = _members(table, data, (split, *paths), names)
    removed = members.pop(REMOVED, [])
    sets = {name: data.take(sorted(rows)) for name, rows in members.items()}
    unlisted = [name for name in data.names if name not in table]
    left_out = {"removed": len(removed), "unlisted": len(unlisted)}
    if (removed or unlisted) and not partial:
        missing = [*(data.names[k] for k in removed[:SHOWN]), *unlisted]
        raise InputError(
            f"{split}: {coverage(sets.values(), left_out)}: {_some(missing)}\nhint: "
            "--partial audits the others, and the certificate says so"
        )
    if len(sets) < 2:
        raise InputError(f"{split}: has one part only, {', '.join(map(written, sets))}")
    return AuditedParts(sets, left_out)


def _members(
    table: dict[str, str], data: Sequences, where: Sequence[str], names: Sequence[str]
) -> dict:
    """The sequences of every part of a list; parts that are named come first."""
    numbers = {name: number for number, name in enumerate(data.names)}
    unknown = [name for name in table if name not in numbers]
    if unknown:
        raise InputError(
            f"{where[0]}: {len(unknown):,} names are not in {where[1]} "
            f"({_some(unknown)}); a name is the first word of a heading, whole"
        )
    members: dict[str, list[int]] = {name: [] for name in names}
    for name, part in table.items():
        members.setdefault(part, []).append(numbers[name])
    return members


def check_files(paths: Sequence[str]) -> None:
    """Refuse a file that is two parts.

    Raises
    ------
    UsageError
    """
    for number, path in enumerate(paths):
        for other in paths[:number]:
            files = os.path.isfile(path) and os.path.isfile(other)
            if path == other or (files and os.path.samefile(path, other)):
                same = path if path == other else f"{other} and {path}"
                raise UsageError(
                    f"{same}: one file is given as two parts, and every sequence of it "
                    "would be a leak; give each part its own file, or one file with "
                    "--split SPLIT.tsv"
                )


def _some(names: Collection[str]) -> str:
    return ", ".join(map(written, [*names][:SHOWN]))


def _short(path: str) -> str:
    """data/train.fasta.gz -> train."""
    return os.path.basename(path).split(".")[0] or path


def files(paths: Iterable[str], job: LinkJob) -> list[dict]:
    """Files that were read, and how, for a certificate."""
    unknown = job.verb.scoring.unknown
    read = zip(paths, job.read.hashes, job.read.sequences, strict=True)
    return [
        {"path": path, "sha256": digest, "records": len(sequences), "unknown": unknown}
        for path, digest, sequences in read
    ]


def listed(path: str | None, column: str | None = None) -> dict | None:
    """The list of a split, and its column where that is named, for a certificate."""
    if path is None:
        return None
    about = {"path": path, "sha256": sha256(path)}
    return about if column is None else about | {"column": column}
