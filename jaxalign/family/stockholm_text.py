"""Rows of a3m as a Stockholm alignment, in which every residue has a column."""

import re
from collections.abc import Iterator, Sequence

POSITION = re.compile("[A-Z-]")


def lines(names: Sequence[str], rows: Sequence[str]) -> Iterator[str]:
    """The file, line by line; ``#=GC RF`` marks the positions of the query."""
    widths = _widths(rows)
    longest = max(len("#=GC RF"), *map(len, names))
    yield "# STOCKHOLM 1.0\n\n"
    for name, row in zip(names, rows, strict=True):
        yield f"{name:{longest}} {_padded(row, widths)}\n"
    marks = "x".join("." * width for width in widths)
    yield f"{'#=GC RF':{longest}} {marks}\n//\n"


def _widths(rows: Sequence[str]) -> list[int]:
    """The longest insertion before each position, and behind the last."""
    each = ([len(part) for part in POSITION.split(row)] for row in rows)
    return [max(lengths) for lengths in zip(*each, strict=True)]


def _padded(row: str, widths: list[int]) -> str:
    """A row with points where others have more residues between positions."""
    inserted = POSITION.split(row)
    pieces = [part.ljust(width, ".") for part, width in zip(inserted, widths)]  # noqa: B905
    positions = [*POSITION.findall(row), ""]
    return "".join(a + b for a, b in zip(pieces, positions, strict=True))
