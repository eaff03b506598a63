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
    """Write a result to a file or to standard output.

    The file appears under its name when it is complete; after a failure nothing
    is left behind.

    Parameters
    ----------
    table : Table
        What `align_pairs` or `align_all` returned. A control character in a name is
        an escape in the formats of text (``jaxalign.model.names``); SAM and the
        splitters' formats refuse it, Parquet holds names as they are.
    path : path or "-"
        The output file; "-" is standard output, where the default format is tsv.
    format : {"tsv", "m8", "sam", "paf", "fasta", "pair", "parquet"}, optional
        By the suffix of `path` when not given; also "graphpart", "hestia" and
        "datasail", which have no suffix of their own (``io.splits``).
    columns : sequence of str, optional
        For tsv and parquet: own column names (0-based, half-open spans), or those
        of BLAST and MMseqs2 (spans from 1, inclusive). `evalue` and `bits` are nan
        where unknown.
    identity : str, default "alignment"
        The identity definition of the default columns and of `fident`; `pident`
        is always identities over alignment columns, as in BLAST.
    force : bool, default False
        Replace an existing file.

    Raises
    ------
    UsageError
        Unknown format, suffix or column; a column or format the table has no data
        for; the file exists and `force` is false; the folder is missing.

    Examples
    --------
    >>> write(table, "result.tsv", columns=["qseqid", "sseqid"])  # doctest: +SKIP
    """
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
