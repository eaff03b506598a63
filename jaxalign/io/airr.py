"""AIRR rearrangement tables: one chain a line, the columns named by a heading.

The format is that of the AIRR Community (Vander Heiden et al. 2018): tab-separated text
whose column ``junction_aa`` is the CDR3 with the two residues around it.
"""

from jaxalign.errors import InputError
from jaxalign.io.source import label, open_text

JUNCTION = "junction_aa"


def is_table(path: str, buffer: bytes | None = None) -> bool:
    """Whether a file is a table, and no FASTA: its first line is no heading of that.

    ``buffer`` : what ``io.source.keep`` returned.
    """
    with open_text(path, buffer) as handle:
        line = next((line for line in handle if line.strip()), "")
    return not line.startswith(">")


def read(path: str, buffer: bytes | None = None) -> dict[str, list[str]]:
    """The columns of a table, by their names, as text.

    ``buffer`` : what ``io.source.keep`` returned.

    Raises
    ------
    InputError
        The file cannot be read or is empty, a column comes twice or ``junction_aa`` is
        missing, or a line has more or fewer fields than the heading.
    """
    with open_text(path, buffer) as handle:
        heading = next(handle, "").rstrip("\r\n")
        names = heading.split("\t")
        _check(path, names)
        rows = []
        for number, line in enumerate(handle, 2):
            fields = line.rstrip("\r\n").split("\t")
            if not line.strip():
                continue
            if len(fields) != len(names):
                raise InputError(
                    f"{label(path)}, line {number}: {len(fields)} fields, the heading "
                    f"has {len(names)}"
                )
            rows.append(fields)
    columns = zip(*rows, strict=True) if rows else ([] for _ in names)
    return {name: list(column) for name, column in zip(names, columns, strict=True)}


def _check(path: str, names: list[str]) -> None:
    """Refuse a heading that is none."""
    if names == [""]:
        raise InputError(f"{label(path)}: the file is empty")
    if twice := [name for name in names if names.count(name) > 1]:
        raise InputError(f"{label(path)}, line 1: column {twice[0]!r} comes twice")
    if JUNCTION not in names:
        raise InputError(
            f"{label(path)}, line 1: no column {JUNCTION!r} in the heading "
            f"({', '.join(names)[:200]}): a table of AIRR rearrangements has one"
        )
