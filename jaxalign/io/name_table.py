"""A table of names and what belongs to them: labels, or parts of a split.

Text of two or more columns, apart by tabs, or by commas in a file without tabs. A first
line that begins with ``name`` or ``AC``, as GraphPart's does, is its heading and may
say which column is meant. Else it is the second.
"""

from jaxalign.errors import InputError
from jaxalign.io.source import label, open_text
from jaxalign.model.names import read_back

HEADINGS = ("name", "ac")


def read(path: str, columns: tuple[str, ...] = ()) -> dict[str, str]:
    """A column by the first.

    Parameters
    ----------
    path : path or "-"
    columns : tuple of str
        What the heading may call the column that is meant; else it is the second.

    Raises
    ------
    InputError
        A line has one column, a name comes twice, or there is no line.
    """
    found: dict[str, str] = {}
    with open_text(path) as handle:
        lines = [line.rstrip("\n") for line in handle]
    separator = "\t" if any("\t" in line for line in lines) else ","
    column = 1
    for number, line in enumerate(lines, 1):
        fields = [field.strip() for field in line.split(separator)]
        if not line.strip():
            continue
        if not found and fields[0].lower() in HEADINGS:
            column = next((k for k, x in enumerate(fields) if x in columns), 1)
            continue
        if len(fields) <= column or not fields[0] or not fields[column]:
            raise InputError(
                f"{label(path)}, line {number}: a name and what belongs to it are "
                "needed, apart by a tab"
            )
        name = read_back(fields[0])
        if name in found:
            raise InputError(f"{label(path)}, line {number}: {name!r} comes twice")
        found[name] = read_back(fields[column])
    if not found:
        raise InputError(f"{label(path)}: the file names no sequence")
    return found


def lines(columns: dict, written) -> "list[str]":
    """Columns as text, a heading first; ``written`` makes a value one field."""
    rows = zip(*columns.values(), strict=True)
    heading = "\t".join(columns) + "\n"
    return [heading, *("\t".join(map(written, row)) + "\n" for row in rows)]
