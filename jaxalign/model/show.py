"""Alignments and tables as text and HTML, for ``print`` and for notebooks."""

from collections.abc import Iterator, Sequence
from html import escape

import numpy as np

from jaxalign.model.names import written
from jaxalign.model.scoring import Scoring

WIDTH = 60  # columns of an alignment in one block
HEAD = 5  # rows of a table shown from its beginning, and from its end
LONGEST = 24  # letters of a name in a cell of a table
GAP = "-"


def marks(query: str, target: str, scoring: Scoring, start: int = 0) -> str:
    """A sign a column: ``|`` identical, ``:`` scores above 0, ``.`` another pair;
    ``start`` is where the query begins."""
    q, t = (np.frombuffer(row.encode(), np.uint8) for row in (query, target))
    paired = (q != ord(GAP)) & (t != ord(GAP))
    a, b = scoring.alphabet.encode(q[paired]), scoring.alphabet.encode(t[paired])
    rows = a
    if scoring.by_position:
        rows = (start - 1 + np.cumsum(q != ord(GAP)))[paired]
    kinds = np.where(scoring.scores[rows, b] > 0, ord(":"), ord("."))
    signs = np.full(len(q), ord(" "), np.uint8)
    signs[paired] = np.where(scoring.identical[a, b], ord("|"), kinds)
    return signs.tobytes().decode()


def number(score: float) -> str:
    """A score the shortest way: 5, not 5.0; 292.5."""
    return f"{score:.15g}"


def counted(count: int, noun: str) -> str:
    """``1 row``, ``1,225 rows``."""
    return f"{count:,} {noun}" + "s" * (count != 1)


def blocks(
    names: Sequence[str],
    rows: Sequence[str],
    starts: Sequence[int],
    signs: str,
    under: bool = False,
) -> Iterator[str]:
    """Gapped rows in blocks of ``WIDTH`` columns, numbered from 1, with their signs.

    Parameters
    ----------
    names, rows, starts : sequences of equal length
        Starts count from 0, as spans do.
    signs : str
        One a column.
    under : bool
        Below the last row, else below the first.

    Yields
    ------
    str
        A line, without its end.
    """
    names, at = [written(name) for name in names], list(starts)
    width = max(map(len, names))
    digits = len(str(max(map(sum, zip(starts, map(len, rows), strict=True)))))
    place = len(rows) - 1 if under else 0
    for first in range(0, len(signs), WIDTH):
        piece = slice(first, first + WIDTH)
        yield ""
        for n, (name, row) in enumerate(zip(names, rows, strict=True)):
            residues = len(row[piece]) - row[piece].count(GAP)
            begin, at[n] = at[n] + (residues > 0), at[n] + residues
            yield f"{name:<{width}} {begin:>{digits}} {row[piece]} {at[n]:>{digits}}"
            if n == place:
                yield f"{'':{width + digits + 2}}{signs[piece]}".rstrip()


def preformatted(text: str) -> str:
    """Text as HTML, in a fixed pitch."""
    return f"<pre>{escape(text)}</pre>"


def some_rows(count: int) -> list[int | None]:
    """Which rows of a table are shown; None stands for those left out."""
    if count <= 2 * HEAD + 1:
        return list(range(count))
    return [*range(HEAD), None, *range(count - HEAD, count)]


def cell(value: object) -> str:
    """A value of a table as text."""
    if isinstance(value, float):
        return f"{value:.6g}"
    text = written(str(value))
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def lines_of(heading: Sequence[str], body: Sequence[Sequence[str]]) -> Iterator[str]:
    """Cells as lines of aligned columns."""
    columns = zip(heading, *body, strict=True)
    widths = [max(map(len, column)) for column in columns]
    for row in (heading, *body):
        padded = (f"{text:<{w}}" for text, w in zip(row, widths, strict=True))
        yield "  ".join(padded).rstrip()


def html_of(caption: str, heading: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """Cells as an HTML table under its caption, which scrolls where it is too wide."""
    head = "".join(f"<th>{escape(text)}</th>" for text in heading)
    rows = ("".join(f"<td>{escape(text)}</td>" for text in row) for row in body)
    lines = "".join(f"<tr>{row}</tr>" for row in rows)
    return (
        '<div style="overflow-x: auto"><table style="white-space: nowrap">'
        f'<caption style="text-align: left">{escape(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table></div>"
    )
