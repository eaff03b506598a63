"""Charts of a report as SVG: bars on a logarithmic scale, shares as stacked bars.

Every chart has a title and a description, which screen readers and tests read.
"""

from collections.abc import Sequence
from html import escape
from math import log10

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 720, 220, 60, 40, 12
COLOURS = (
    "#3b6ea8", "#d98032", "#4f9d69", "#b5533c", "#8a6bb1", "#8c7355",
    "#c77cad", "#7f7f7f", "#a9a93b", "#4fb0b5", "#294c73", "#a05a1f",
)  # fmt: skip
PROVED = "#c9c9c9"


def figure(chart: str, caption: str) -> str:
    """A chart above what it shows, in words."""
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

    Parameters
    ----------
    labels, counts, colours : one a bar
    line : float, optional
        A dashed line at so many bars from the left.
    marks : texts, one a bar, optional
        Written below the left side of the bar; by default the label, below its middle.
    unit : str
        What is counted.
    """
    top = max(1.0, log10(max([*counts, 1])) * 1.05)
    step, floor = (WIDTH - LEFT - 10) / max(len(counts), 1), HEIGHT - BOTTOM
    parts = [_opening(title, HEIGHT)]
    for power in range(int(top) + 1):
        y = floor - (floor - TOP) * power / top if power else floor
        parts.append(_gridline(y, f"{10**power:,}"))
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


def stacked(
    title: str, rows: Sequence[tuple[str, Sequence[int]]], names: Sequence[str]
) -> str:
    """Shares of each row as one bar, a colour a name."""
    height = 26 * len(rows) + 18 * -(-len(names) // 4) + 14
    parts, wide = [_opening(title, height)], WIDTH - 2 * LEFT - 10
    for number, (row, counts) in enumerate(rows):
        x, y, total = 2.0 * LEFT, 4 + 26 * number, max(sum(counts), 1)
        parts.append(_text(x - 8, y + 15, row, "end"))
        for name, count, colour in _coloured(names, counts):
            if not count:
                continue
            width = wide * count / total
            parts.append(
                f'<rect x="{x:.1f}" y="{y}" width="{width:.2f}" height="20" '
                f'fill="{colour}"><title>{escape(row)}, {escape(name)}: {count:,} '
                f"({count / total:.1%})</title></rect>"
            )
            x += width
    for k, (name, _, colour) in enumerate(_coloured(names, [0] * len(names))):
        x, y = 2 * LEFT + k % 4 * 145, 26 * len(rows) + 10 + 18 * (k // 4)
        parts.append(f'<rect x="{x}" y="{y}" width="11" height="11" fill="{colour}"/>')
        parts.append(_text(x + 16, y + 10, name[:18], "start"))
    return "".join([*parts, "</svg>"])


def _coloured(names: Sequence[str], counts: Sequence[int]):
    colours = (COLOURS[k % len(COLOURS)] for k in range(len(names)))
    return zip(names, counts, colours, strict=True)


def _opening(title: str, height: int) -> str:
    return (
        f'<svg role="img" viewBox="0 0 {WIDTH} {height}" '
        f'aria-label="{escape(title, quote=True)}"><title>{escape(title)}</title>'
    )


def _gridline(y: float, label: str) -> str:
    line = f'<line x1="{LEFT}" x2="{WIDTH - 10}" y1="{y:.1f}" y2="{y:.1f}" class="g"/>'
    return line + _text(LEFT - 6, y + 4, label, "end")


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
