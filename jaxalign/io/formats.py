"""Write a table of alignments in the format its file name asks for."""

import os
from collections.abc import Callable, Iterator, Sequence

from jaxalign.errors import UsageError
from jaxalign.io import arrow, output, text_formats
from jaxalign.io.columns import Column, chunks, require, resolve, texts
from jaxalign.io.delimited import csv_text
from jaxalign.model.table import Table

SUFFIXES = {
    ".tsv": "tsv",
    ".csv": "csv",
    ".m8": "m8",
    ".sam": "sam",
    ".paf": "paf",
    ".maf": "maf",
    ".fasta": "fasta",
    ".fa": "fasta",
    ".pair": "pair",
    ".srspair": "pair",
    ".parquet": "parquet",
}
SPLITS: dict[str, Callable[..., Iterator[str]]] = {
    "graphpart": text_formats.graphpart,
    "hestia": text_formats.hestia,
    "datasail": text_formats.datasail,
}
FORMATS = (*dict.fromkeys(SUFFIXES.values()), *SPLITS)
WITH_COLUMNS = ("tsv", "csv", "parquet")
M8 = (
    "qseqid", "sseqid", "pident", "length", "mismatch", "gapopen",
    "qstart", "qend", "sstart", "send", "evalue", "bits",
)  # fmt: skip


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
    format_name = resolve_format(path, format)
    if columns is not None and format_name not in WITH_COLUMNS:
        raise UsageError(
            f"format {format_name!r} has fixed columns; use tsv, csv or parquet"
        )
    output.check(path, force)
    if format_name == "parquet":
        output.write_file(path, lambda p: arrow.parquet(table, p, columns, identity))
    else:
        writers = TEXTS | SPLITS
        about = dict.fromkeys(WITH_COLUMNS, (columns, identity))
        about |= dict.fromkeys(SPLITS, (identity,))
        output.write_text(
            path, writers[format_name](table, *about.get(format_name, ()))
        )


def write_while(
    path: str,
    columns: Sequence[str] | None,
    identity: str,
    force: bool,
    compute: Callable[[Callable[[Table], None]], None],
) -> None:
    """Write a Parquet file while its rows are computed.

    compute : is called once with a function that writes a table below those before; the
        file has its name when it has returned
    """
    output.check(path, force)

    def fill(temporary: str) -> None:
        with arrow.writing(temporary, columns, identity) as write:
            compute(write)

    output.write_file(path, fill)


def resolve_format(path: str, format: str | None = None) -> str:
    """Check ``format`` against ``FORMATS``, or infer it from the path's suffix."""
    if format is None:
        suffix = os.path.splitext(path)[1].lower()
        format = "tsv" if path == output.STDOUT else SUFFIXES.get(suffix)
        if format is None and os.path.isdir(path):
            raise UsageError(f"{path}: is a folder; name a file in it")
        if format is None and suffix in output.COMPRESSED:
            plain, _ = os.path.splitext(path)
            raise UsageError(f"{path}: outputs are not compressed; give {plain}")
        if format is None:
            raise UsageError(
                f"{path}: the suffix {suffix!r} is not a format; use one of "
                f"{', '.join(SUFFIXES)} or give the format ({', '.join(FORMATS)})"
            )
    if format not in FORMATS:
        raise UsageError(
            f"format {format!r} is unknown; choose from {', '.join(FORMATS)}"
        )
    if format == "parquet" and path == output.STDOUT:
        raise UsageError("format 'parquet' is binary; give a file name in place of '-'")
    return format


def tsv(table: Table, columns: Sequence[str] | None, identity: str) -> Iterator[str]:
    """Yield a heading and one tab-separated line per row, in pieces of text."""
    selection = resolve(table, columns, identity)
    yield "\t".join(column.name for column in selection) + "\n"
    yield from _lines(table, selection)


def csv(table: Table, columns: Sequence[str] | None, identity: str) -> Iterator[str]:
    """Yield ``tsv`` with commas; a field that has one is quoted."""
    selection = resolve(table, columns, identity)
    yield csv_text([[column.name for column in selection]])
    for piece in chunks(table):
        pairs = zip(selection, texts(selection, piece), strict=True)
        fields = (map(column.template.__mod__, values) for column, values in pairs)
        yield csv_text(zip(*fields, strict=True))


def m8(table: Table) -> Iterator[str]:
    """Yield the 12 columns of BLAST's tabular output: no heading, from 1."""
    require(table, "stats", "format 'm8'")
    yield from _lines(table, resolve(table, M8, "alignment"))


def _lines(table: Table, selection: Sequence[Column]) -> Iterator[str]:
    template = "\t".join(column.template for column in selection) + "\n"
    for part in chunks(table):
        yield "".join(map(template.__mod__, zip(*texts(selection, part), strict=True)))


TEXTS: dict[str, Callable[..., Iterator[str]]] = {
    "tsv": tsv,
    "csv": csv,
    "m8": m8,
    "sam": text_formats.sam,
    "paf": text_formats.paf,
    "maf": text_formats.maf,
    "fasta": text_formats.fasta,
    "pair": text_formats.pair,
}
