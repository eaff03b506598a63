"""A table of names and what belongs to them: labels, or parts of a split.

Text of two or more columns, apart by tabs, or by commas in a file without tabs; or
Parquet, where the suffix says so. The first line is a heading where it begins with one
of ``HEADINGS``, or has the name of the column that is meant, and does not begin with
the name of a sequence. It may say which column is meant; else it is the second.
"""

import csv
import io
import os
from collections.abc import Callable, Collection

import numpy as np

from jaxalign.errors import InputError, UsageError
from jaxalign.io import arrow, output
from jaxalign.io.known_names import KnownNames
from jaxalign.io.source import label, open_text
from jaxalign.model.names import read_back, written

HEADINGS = (
    "name", "ac", "id", "accession", "entry", "identifier", "sequence", "seqid",
    "seq_id", "header", "protein", "query",
)  # fmt: skip
PARQUET = ".parquet"
SEPARATORS = {"": "\t", ".tsv": "\t", ".txt": "\t", ".csv": ","}
Rows = list[tuple[int, list[str]]]


def read(
    path: str,
    names: Collection[str] | KnownNames,
    columns: tuple[str, ...] = (),
    column: str | None = None,
) -> dict[str, str]:
    """A column by the first.

    Parameters
    ----------
    path : path or "-"
    names : collection of str, or KnownNames
        Of the sequences that the table is about: the row of one of them is no heading.
    columns : tuple of str
        What the heading may call the column that is meant, the first that is there;
        else it is the second.
    column : str, optional
        What the heading has to call it.

    Raises
    ------
    InputError
        A line has one column, a name comes twice, there is no line, the first one may
        be a heading or a sequence, or there is no such column.
    """
    known = names if isinstance(names, KnownNames) else KnownNames(names)
    rows, place = rows_of(path), 1
    if rows and is_heading(path, rows, known, (column,) if column else columns):
        _, heading = rows.pop(0)
        place = _column(path, heading, columns, column)
    elif column is not None:
        raise InputError(f"{label(path)}: there is no heading with a column {column!r}")
    table: dict[str, str] = {}
    for number, fields in rows:
        if len(fields) <= place or not fields[0] or not fields[place]:
            raise InputError(
                f"{label(path)}, line {number}: a name and what belongs to it are "
                "needed, apart by a tab"
            )
        name = known.resolve(read_back(fields[0]))
        if name in table:
            raise InputError(f"{label(path)}, line {number}: {name!r} comes twice")
        table[name] = read_back(fields[place])
    if not table:
        raise InputError(f"{label(path)}: the file names no sequence")
    return table


def rows_of(path: str) -> Rows:
    """The number and the fields of every line that is not blank.

    Raises
    ------
    InputError
    """
    if path.lower().endswith(PARQUET):
        return list(enumerate(arrow.read_rows(path), 1))
    with open_text(path) as handle:
        lines = [line.rstrip("\n") for line in handle]
    if any("\t" in line for line in lines):
        split = (line.split("\t") for line in lines)
    else:
        split = (next(csv.reader([line], skipinitialspace=True), []) for line in lines)
    try:
        return [
            (number, [field.strip() for field in fields])
            for number, (line, fields) in enumerate(zip(lines, split, strict=True), 1)
            if line.strip()
        ]
    except csv.Error as error:
        raise InputError(f"{label(path)}: {error}") from error


def is_heading(
    path: str, rows: Rows, known: KnownNames, columns: tuple[str, ...]
) -> bool:
    """Whether the first row is none of a sequence.

    Raises
    ------
    InputError
        It begins with the name of a sequence that has no other row, and goes on like a
        heading.
    """
    (number, (first, *fields)), *others = rows
    named = first.lower() in HEADINGS
    tells = {field.lower() for field in fields} & {name.lower() for name in columns}
    if not fields or not (named or tells):
        return False
    if known.resolve(read_back(first)) not in known.names:
        return True
    if not named or not tells:
        return False
    if any(fields[0] == first for _, fields in others):
        return True
    raise InputError(
        f"{label(path)}, line {number}: {written(first)!r} is a sequence and may be a "
        f"heading\nhint: put the line name<TAB>{columns[0]} before it if it is a "
        "sequence; else give that sequence a line"
    )


def _column(
    path: str, heading: list[str], columns: tuple[str, ...], column: str | None
) -> int:
    """The column that a heading says is meant."""
    if column is not None and column in heading[1:]:
        return heading.index(column, 1)
    if column is not None:
        raise InputError(
            f"{label(path)}: no column is called {column!r}; there are "
            f"{', '.join(map(written, heading[1:]))}"
        )
    lower = [name.lower() for name in heading]
    return next((lower.index(x, 1) for x in columns if x in lower[1:]), 1)


def check_format(path: str | None) -> None:
    """Refuse a list whose suffix names no format of lists.

    Raises
    ------
    UsageError
    """
    if path in (None, output.STDOUT) or not os.path.basename(path):
        return
    suffix = os.path.splitext(path)[1].lower()
    if suffix == PARQUET:
        arrow.pyarrow()
    elif suffix not in SEPARATORS:
        raise UsageError(
            f"{path}: the suffix {suffix!r} names no format of lists; they are .tsv, "
            ".csv and .parquet"
        )


def write(path: str, columns: dict, field: Callable[[object], str]) -> None:
    """Write columns in the format that the suffix of the path names.

    Parameters
    ----------
    path : str
        A file name or "-".
    columns : dict of arrays of equal lengths
    field : function
        Makes a value one field of text.
    """
    suffix = os.path.splitext(path)[1].lower()
    if suffix == PARQUET:
        arrays = {name: np.asarray(values) for name, values in columns.items()}
        output.write_file(
            path, lambda temporary: arrow.write_columns(temporary, arrays)
        )
    else:
        separator = SEPARATORS.get(suffix, "\t")
        output.write_text(path, lines(columns, field, separator))


def lines(
    columns: dict, field: Callable[[object], str], separator: str = "\t"
) -> list[str]:
    """Columns as text, a heading first; ``field`` makes a value one field."""
    rows = zip(*columns.values(), strict=True)
    texts = [list(columns), *(list(map(field, row)) for row in rows)]
    if separator == "\t":
        return ["\t".join(fields) + "\n" for fields in texts]
    buffer = io.StringIO()
    csv.writer(buffer, delimiter=separator, lineterminator="\n").writerows(texts)
    return buffer.getvalue().splitlines(keepends=True)
