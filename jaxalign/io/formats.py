"""Write a table of alignments in the format its file name asks for."""

import os
from collections.abc import Iterator, Sequence

from jaxalign.errors import UsageError
from jaxalign.io import arrow, output, pretty, rows, sam_paf, splits
from jaxalign.model.table import Table

SUFFIXES = {
    ".tsv": "tsv",
    ".m8": "m8",
    ".sam": "sam",
    ".paf": "paf",
    ".fasta": "fasta",
    ".fa": "fasta",
    ".pair": "pair",
    ".srspair": "pair",
    ".parquet": "parquet",
}
SPLITS = {
    "graphpart": splits.graphpart,
    "hestia": splits.hestia,
    "datasail": splits.datasail,
}
FORMATS = (*dict.fromkeys(SUFFIXES.values()), *SPLITS)
WITH_COLUMNS = ("tsv", "parquet")

_TEXT = {
    "m8": rows.m8,
    "sam": sam_paf.sam,
    "paf": sam_paf.paf,
    "fasta": pretty.fasta,
    "pair": pretty.pair,
}


def write(
    table: Table,
    path: str | os.PathLike[str],
    format: str | None = None,
    columns: Sequence[str] | None = None,
    identity: str = "alignment",
    force: bool = False,
) -> None:
    """Write a table to a file or to standard output, as ``Table.write`` says."""
    path = os.fspath(path)
    chosen = resolve_format(path, format)
    if columns is not None and chosen not in WITH_COLUMNS:
        raise UsageError(f"format {chosen!r} has fixed columns; use tsv or parquet")
    output.check(path, force)
    if chosen == "parquet":
        output.write_file(path, lambda p: arrow.parquet(table, p, columns, identity))
    else:
        output.write_text(path, _pieces(table, chosen, columns, identity))


def resolve_format(path: str, format: str | None = None) -> str:
    """The format asked for, one of ``FORMATS``, or the one of the path's suffix.

    Raises
    ------
    UsageError
        The format or the suffix is unknown, or parquet is to go to "-".
    """
    if format is None:
        suffix = os.path.splitext(path)[1].lower()
        format = "tsv" if path == output.STDOUT else SUFFIXES.get(suffix)
        if format is None:
            raise UsageError(
                f"{path}: the suffix {suffix!r} names no format; use one of "
                f"{', '.join(SUFFIXES)} or give the format ({', '.join(FORMATS)})"
            )
    if format not in FORMATS:
        raise UsageError(
            f"format {format!r} is unknown; choose from {', '.join(FORMATS)}"
        )
    if format == "parquet" and path == output.STDOUT:
        raise UsageError("format 'parquet' is binary; give a file name in place of '-'")
    return format


def _pieces(
    table: Table, format: str, columns: Sequence[str] | None, identity: str
) -> Iterator[str]:
    if format == "tsv":
        return rows.tsv(table, columns, identity)
    if format in SPLITS:
        return SPLITS[format](table, identity)
    return _TEXT[format](table)
