"""A table of names and what belongs to them: labels, or parts of a split.

Text of two or more columns, apart by tabs, or by commas in a file without tabs. The
first line is a heading where it begins with ``name`` or ``AC``, as GraphPart's does,
and no sequence of that name could be meant. It may say which column is meant; else it
is the second.
"""

from collections.abc import Collection

from jaxalign.errors import InputError
from jaxalign.io.source import label, open_text
from jaxalign.model.names import read_back, written

HEADINGS = ("name", "ac")


def read(
    path: str, names: Collection[str], columns: tuple[str, ...] = ()
) -> dict[str, str]:
    """A column by the first.

    Parameters
    ----------
    path : path or "-"
    names : collection of str
        Of the sequences that the table is about: the row of one of them is no heading.
    columns : tuple of str
        What the heading may call the column that is meant; else it is the second.

    Raises
    ------
    InputError
        A line has one column, a name comes twice, there is no line, or the first one
        may be a heading or a sequence.
    """
    rows = _rows(path)
    column = 1
    if rows and _is_heading(path, rows, names, columns):
        _, heading = rows.pop(0)
        column = next((k for k, x in enumerate(heading) if x in columns), 1)
    table: dict[str, str] = {}
    for number, fields in rows:
        if len(fields) <= column or not fields[0] or not fields[column]:
            raise InputError(
                f"{label(path)}, line {number}: a name and what belongs to it are "
                "needed, apart by a tab"
            )
        name = read_back(fields[0])
        if name in table:
            raise InputError(f"{label(path)}, line {number}: {name!r} comes twice")
        table[name] = read_back(fields[column])
    if not table:
        raise InputError(f"{label(path)}: the file names no sequence")
    return table


def _rows(path: str) -> list[tuple[int, list[str]]]:
    """The number and the fields of every line that is not blank."""
    with open_text(path) as handle:
        lines = [line.rstrip("\n") for line in handle]
    separator = "\t" if any("\t" in line for line in lines) else ","
    return [
        (number, [field.strip() for field in line.split(separator)])
        for number, line in enumerate(lines, 1)
        if line.strip()
    ]


def _is_heading(path: str, rows: list, names: Collection[str], columns) -> bool:
    """Whether the first row is none of a sequence.

    Raises
    ------
    InputError
        It begins with the name of a sequence that has no other row, and goes on like a
        heading.
    """
    (number, (first, *fields)), *others = rows
    if first.lower() not in HEADINGS or not fields:
        return False
    if read_back(first) not in names:
        return True
    if not set(fields) & set(columns):
        return False
    if any(fields[0] == first for _, fields in others):
        return True
    raise InputError(
        f"{label(path)}, line {number}: {written(first)!r} is a sequence and may be a "
        f"heading\nhint: put the line name<TAB>{columns[0]} before it if it is a "
        "sequence; else give that sequence a line"
    )


def lines(columns: dict, written) -> "list[str]":
    """Columns as text, a heading first; ``written`` makes a value one field."""
    rows = zip(*columns.values(), strict=True)
    heading = "\t".join(columns) + "\n"
    return [heading, *("\t".join(map(written, row)) + "\n" for row in rows)]
