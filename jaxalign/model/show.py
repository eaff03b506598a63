"""Results for people: text and HTML for ``print`` and notebooks, pages, charts, dots.

A page is one file of HTML that needs no network. Its charts are SVG: bars on a
logarithmic scale, and shares as stacked bars; every chart has a title and a
description, which screen readers and tests read. A dot plot shows how alike two
sequences are around every pair of residues.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import fields
from html import escape
from itertools import groupby, islice
from math import ceil, log, log10
from reprlib import Repr
from typing import Any

import numpy as np

from jaxalign.model.alphabet import ranks
from jaxalign.model.names import written
from jaxalign.model.scoring import Scoring

WIDTH = 60  # columns of an alignment in one block
HEAD = 5  # rows of a table shown from its beginning, and from its end
LONGEST = 24  # letters of a name in a cell of a table
GAP = "-"
_SHORT = Repr()
_SHORT.maxstring, _SHORT.maxother = 60, 200


def marks(query: str, target: str, scoring: Scoring, start: int = 0) -> str:
    """A sign a column: ``|`` identical, ``:`` scores above 0, ``.`` another pair;
    ``start`` is where the query begins."""
    q, t = (np.frombuffer(row.encode(), np.uint8) for row in (query, target))
    paired = (q != ord(GAP)) & (t != ord(GAP))
    a, b = scoring.alphabet.encode(q[paired]), scoring.alphabet.encode(t[paired])
    rows = a
    if scoring.by_position:
        rows = (start - 1 + np.cumsum(q != ord(GAP)))[paired]
    scores = scoring.scores[0] if scoring.tracks else scoring.scores  # of amino acids
    kinds = np.where(scores[rows, b] > 0, ord(":"), ord("."))
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

    names, rows, starts : sequences of equal length. Starts count from 0, as spans do.
    signs : one a column.
    under : below the last row, else below the first.
    Yields str. A line, without its end.
    """
    place = len(rows) - 1 if under else 0
    for piece, lines in _numbered([*map(written, names)], rows, starts, len(signs)):
        yield ""
        for n, (head, tail) in enumerate(lines):
            yield f"{head}{rows[n][piece]}{tail}"
            if n == place:
                yield f"{'':{len(head)}}{signs[piece]}".rstrip()


def _numbered(
    names: Sequence[str], rows: Sequence[str], starts: Sequence[int], columns: int
) -> Iterator[tuple[slice, list[tuple[str, str]]]]:
    """Yield the columns of each block, and what stands before and behind its rows."""
    at, width = list(starts), max(map(len, names))
    digits = len(str(max(map(sum, zip(starts, map(len, rows), strict=True)))))
    for first in range(0, columns, WIDTH):
        piece, lines = slice(first, first + WIDTH), []
        for n, (name, row) in enumerate(zip(names, rows, strict=True)):
            residues = len(row[piece]) - row[piece].count(GAP)
            number, at[n] = at[n] + (residues > 0), at[n] + residues
            lines.append(
                (f"{name:<{width}} {number:>{digits}} ", f" {at[n]:>{digits}}")
            )
        yield piece, lines


ALIGNMENT_STYLE = """
.jaxalign-rows { line-height: 1.35; overflow-x: auto; }
.jaxalign-rows .i { background: rgba(46, 139, 87, .40); }
.jaxalign-rows .s { background: rgba(218, 165, 32, .35); }
.jaxalign-rows .o { background: rgba(205, 92, 92, .30); }
.jaxalign-rows .g { background: rgba(128, 128, 128, .22); }
"""
SHOWN_BLOCKS = 20  # of a long alignment in a notebook


def coloured(
    heading: str,
    names: Sequence[str],
    rows: Sequence[str],
    starts: Sequence[int],
    signs: str,
    meanings: Mapping[str, tuple[str, str]],
) -> str:
    """Gapped rows as HTML in blocks, whose columns have the colours of their signs.

    meanings : for every sign the class of its style, and the words of the legend.
    """
    legend = ", ".join(
        f'<span class="{style}">{escape(words)}</span>'
        for style, words in dict.fromkeys(meanings.values())
    )
    parts = []
    blocks = _numbered([*map(cell, names)], rows, starts, len(signs))
    for piece, lines in islice(blocks, SHOWN_BLOCKS):
        parts.append("\n")
        runs, first = [], piece.start
        for sign, run in groupby(signs[piece]):
            runs.append((meanings[sign][0], slice(first, first := first + len([*run]))))
        for row, (head, tail) in zip(rows, lines, strict=True):
            parts.append(escape(head))
            for style, run in runs:
                parts.append(f'<span class="{style}">{escape(row[run])}</span>')
            parts.append(f"{tail}\n")
    if (hidden := len(signs) - SHOWN_BLOCKS * WIDTH) > 0:
        parts.append(f"\n... {hidden:,} more columns: print() shows all of them\n")
    return (
        f"<div><style>{ALIGNMENT_STYLE}</style>{escape(heading)}"
        f'<pre class="jaxalign-rows">{legend}\n{"".join(parts)}</pre></div>'
    )


def some_rows(count: int) -> list[int | None]:
    """Indices of the rows to show; None stands for omitted rows."""
    if count <= 2 * HEAD + 1:
        return list(range(count))
    return [*range(HEAD), None, *range(count - HEAD, count)]


def listed(texts: Sequence[str]) -> str:
    """Texts with commas, of many the first and the last ones."""
    rows = some_rows(len(texts))
    omitted = f"... ({len(texts) - 2 * HEAD:,} more)"
    return ", ".join(omitted if k is None else texts[k] for k in rows)


def brief(self: Any) -> str:
    """The fields of an object with the sizes of long ones, for ``repr``."""
    names = getattr(self, "_fields", None) or [field.name for field in fields(self)]
    shown = (f"{name}={_brief(getattr(self, name))}" for name in names)
    return f"{type(self).__name__}({', '.join(shown)})"


def _brief(value: Any) -> str:
    kind = type(value).__name__
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"<{value.dtype} {tuple(value.shape)}>"
    long = isinstance(value, Sized) and len(value) > 4
    if long and not isinstance(value, (str, range)):
        return f"<{kind} of {len(value):,}>"
    return _SHORT.repr(value)


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


PAGE_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto;
  padding: 0 1rem; color: #222; background: #fff; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
table { border-collapse: collapse; } td, th { padding: .2rem .7rem; text-align: left;
  border-bottom: 1px solid #ddd; } td.n, th.n { text-align: right; }
figure { margin: 1rem 0; } figcaption { color: #444; font-size: .9rem; }
svg { width: 100%; height: auto; font: 11px sans-serif; } svg .g { stroke: #e4e4e4; }
pre { overflow-x: auto; background: #f6f6f6; padding: .7rem; font-size: 12px; }
summary { cursor: pointer; } .ok { color: #1c6b34; } .leak { color: #a3261b; }
.warn { color: #8a5a00; }
"""


def page(title: str, sections: Iterable[Iterable[str]]) -> str:
    """Assemble an HTML page from the lines of its sections."""
    head = (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{PAGE_STYLE}</style></head><body>\n"
    )
    lines = (f"{line}\n" for section in sections for line in section)
    return "".join([head, *lines, "</body></html>\n"])


CHART_WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 720, 220, 60, 40, 12
COLOURS = (
    "#3b6ea8", "#d98032", "#4f9d69", "#b5533c", "#8a6bb1", "#8c7355",
    "#c77cad", "#7f7f7f", "#a9a93b", "#4fb0b5", "#294c73", "#a05a1f",
)  # fmt: skip
PROVED = "#c9c9c9"


def figure(chart: str, caption: str) -> str:
    """Put a chart above its caption."""
    return f"<figure>{chart}<figcaption>{escape(caption)}</figcaption></figure>"


def log_bars(
    title: str,
    labels: Sequence[str],
    counts: Sequence[int],
    colours: Sequence[str],
    line: float | None = None,
    marks: Sequence[str] | None = None,
    unit: str = "pairs",
) -> str:
    """Counts as bars whose heights are logarithms.

    labels, counts, colours : one a bar
    line : a dashed line at so many bars from the left.
    marks : texts, one a bar. Written below the left side of the bar; by default the
        label, below its middle.
    unit : what is counted.
    """
    top = max(1.0, log10(max([*counts, 1])) * 1.05)
    step, floor = (CHART_WIDTH - LEFT - 10) / max(len(counts), 1), HEIGHT - BOTTOM
    parts = [_opening(title, HEIGHT)]
    for power in range(int(top) + 1):
        y, right = floor - (floor - TOP) * power / top, CHART_WIDTH - 10
        parts.append(
            f'<line x1="{LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" class="g"/>'
        )
        parts.append(_text(LEFT - 6, y + 4, f"{10**power:,}", "end"))
    for k, (name, count, colour) in enumerate(
        zip(labels, counts, colours, strict=True)
    ):
        x = LEFT + k * step
        if count:
            # One pair has a bar too: a tenth of a power of ten more for every bar.
            height = (floor - TOP) * max(log10(count), 0.1) / top
            parts.append(
                f'<rect x="{x + 1:.1f}" y="{floor - height:.1f}" '
                f'width="{max(step - 2, 1):.1f}" height="{height:.1f}" '
                f'fill="{colour}"><title>{escape(name)}: {count:,} {unit}</title>'
                "</rect>"
            )
        if marks is None:
            parts.append(_text(x + step / 2, floor + 16, name, "middle"))
        elif marks[k]:
            parts.append(_text(x, floor + 16, marks[k], "middle"))
    if line is not None:
        x = LEFT + line * step
        parts.append(
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{floor}" stroke="#b00" '
            'stroke-dasharray="5 3"><title>the cut</title></line>'
        )
    return "".join([*parts, "</svg>"])


def stacked_bars(
    title: str, rows: Sequence[tuple[str, Sequence[int]]], names: Sequence[str]
) -> str:
    """Shares of each row as one bar, a colour a name."""
    height = 26 * len(rows) + 18 * -(-len(names) // 4) + 14
    colours = [COLOURS[k % len(COLOURS)] for k in range(len(names))]
    parts, wide = [_opening(title, height)], CHART_WIDTH - 2 * LEFT - 10
    for number, (row, counts) in enumerate(rows):
        x, y, total = 2.0 * LEFT, 4 + 26 * number, max(sum(counts), 1)
        parts.append(_text(x - 8, y + 15, row, "end"))
        for name, count, colour in zip(names, counts, colours, strict=True):
            if not count:
                continue
            width = wide * count / total
            parts.append(
                f'<rect x="{x:.1f}" y="{y}" width="{width:.2f}" height="20" '
                f'fill="{colour}"><title>{escape(row)}, {escape(name)}: {count:,} '
                f"({count / total:.1%})</title></rect>"
            )
            x += width
    for k, (name, colour) in enumerate(zip(names, colours, strict=True)):
        x, y = 2 * LEFT + k % 4 * 145, 26 * len(rows) + 10 + 18 * (k // 4)
        parts.append(f'<rect x="{x}" y="{y}" width="11" height="11" fill="{colour}"/>')
        parts.append(_text(x + 16, y + 10, name[:18], "start"))
    return "".join([*parts, "</svg>"])


def _opening(title: str, height: int) -> str:
    return (
        f'<svg role="img" viewBox="0 0 {CHART_WIDTH} {height}" '
        f'aria-label="{escape(title, quote=True)}"><title>{escape(title)}</title>'
    )


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


WINDOW = 11  # residues along a diagonal, around the pair
PIXELS = 1000  # a side at most
WORD_PIXELS = 500  # so that a line of them is seen
MOST_SUMS = 2**26  # pairs of residues whose windows are summed; beyond, words are found
EXPECTED = 1000  # equal words of two random sequences
MOST_PLACES = 32  # of a word in the target; a word of more is a repeat, and left out
WORDS_AT_ONCE = 2**20


def dot_plot(
    query: Any,
    target: np.ndarray,
    scores: np.ndarray,
    window: int = WINDOW,
    pixels: int = PIXELS,
    backwards: bool = False,
):
    """Scores summed along diagonals, as shades.

    query, target : codes (m,), (n,)
    scores : (letters, letters)
    window : an odd number of residues; beyond the ends of a sequence nothing is added.
    pixels : rows and columns at most. A pixel of several pairs has the greatest of
        them.
    backwards : whether the query is the reverse complement of what the rows are about,
        so that row 0 has its last residues.
    Returns float32 (rows, columns). 0 where the sum is 0 or less, 1 where it is
    greatest.
    """
    half, (m, n) = window // 2, (len(query), len(target))
    around = np.asarray(scores, np.float32)[:, target]
    around = np.pad(around, ((0, 0), (half, half)))
    height, width = (max(1, -(-length // pixels)) for length in (m, n))
    columns = np.arange(0, n, width)
    shades = np.zeros((-(-m // height), len(columns)), np.float32)
    for i in range(m):
        sums = np.zeros(n, np.float32)
        for k in range(max(-half, -i), min(half, m - 1 - i) + 1):
            sums += around[query[i + k], half + k : half + k + n]
        row = shades[(m - 1 - i if backwards else i) // height]
        np.maximum(row, np.maximum.reduceat(sums, columns), out=row)
    return shades / max(shades.max(initial=0), 1e-9)


def word_length(m: int, n: int, letters: int) -> int:
    """Letters of a word that two random sequences share about ``EXPECTED`` times."""
    return max(2, ceil(log(max(m * n / EXPECTED, 2)) / log(max(letters, 2))))


def word_dots(
    query: np.ndarray,
    target: np.ndarray,
    letters: int,
    word: int,
    pixels: int = WORD_PIXELS,
    backwards: bool = False,
) -> np.ndarray:
    """Equal words of two sequences as shades, in time that grows with their lengths.

    query, target : codes (m,), (n,)
    letters : a word with a code from here on, as of a wildcard, equals none.
    word : letters of a word. One at more than ``MOST_PLACES`` places of the target is
        left out.
    pixels, backwards : as of ``dot_plot``
    Returns float32 (rows, columns). The words of a pixel over those of a diagonal
    through it, 1 at most and a quarter at least; 0 where there is none.
    """
    m, n = len(query), len(target)
    height, width = (max(1, -(-length // pixels)) for length in (m, n))
    counts = np.zeros((-(-m // height), -(-n // width)), np.float32)
    places, keys = _words(target, letters, word)
    for first in range(0, m, WORDS_AT_ONCE):
        piece = query[first : first + WORDS_AT_ONCE + word - 1]
        at, sought = _words(piece, letters, word)
        left, right = (
            np.searchsorted(keys, sought, side) for side in ("left", "right")
        )
        hits = np.where(right - left <= MOST_PLACES, right - left, 0)
        i = np.repeat(at + first, hits)
        j = places[np.repeat(left, hits) + ranks(hits)]
        # Two words may have one key.
        equal = np.ones(len(i), bool)
        for k in range(word):
            equal &= query[i + k] == target[j + k]
        i, j = i[equal], j[equal]
        rows = (m - 1 - i if backwards else i) // height
        np.add.at(counts, (rows, j // width), 1)
    shades = np.clip(counts / min(height, width), 0.25, 1)
    return np.where(counts > 0, shades, 0).astype(np.float32)


def _words(codes: np.ndarray, letters: int, word: int) -> tuple[np.ndarray, np.ndarray]:
    """Places of the words of known letters alone, by a key of each, uint64."""
    count = max(len(codes) - word + 1, 0)
    keys, complete = np.zeros(count, np.uint64), np.ones(count, bool)
    for k in range(word):
        piece = codes[k : k + count]
        keys = keys * np.uint64(1_000_003) + piece.astype(np.uint64)
        complete &= piece < letters
    places = np.flatnonzero(complete)
    places = places[np.argsort(keys[places])]
    return places, keys[places]
