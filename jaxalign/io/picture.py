"""Pictures for people; they need matplotlib (the extra ``plot``).

The suffix of a file is its format. An SVG holds its texts as texts, and what a picture
is about has an id there, as ``bar-0.5``, ``cut``, ``dots``, ``path`` or ``joint-0``.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from jaxalign.errors import UsageError
from jaxalign.io import output
from jaxalign.model.names import written

FORMATS = ("png", "svg", "pdf")
BLUE, RED = "#3b6ea8", "#c0392b"
DPI = 150
MOST_LEAVES = 1000  # names of a dendrogram, a line each
MOST_ROWS, MOST_NAMED = 2000, 40  # of a heat map
LEAF_HEIGHT = 0.16  # inches
LONGEST_NAME = 40
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "jaxalign",
    "font.size": 9,
}


def check(path: str) -> None:
    """Refuse a picture before any work is done for it."""
    if _suffix(path) not in FORMATS:
        raise UsageError(f"{path}: not a picture format; use .png, .svg or .pdf")
    _matplotlib()


def heat_map(
    path: str,
    table: np.ndarray,
    rows: str,
    columns: str,
    label: str = "probability",
    colours: str = "Greys",
    names: Sequence[str] = (),
) -> None:
    """Shares (m, n) from 0 to 1 in colours of matplotlib, by default dark where they
    are large; rows have names, unless there are too many."""

    def draw(axes: Any) -> None:
        shown = axes.imshow(table, cmap=colours, vmin=0, vmax=1, gid="table")
        shown.set_interpolation("nearest")
        axes.set(xlabel=columns, ylabel=rows)
        if 0 < len(names) <= MOST_NAMED:
            axes.set_yticks(range(len(names)), [_name(name) for name in names])
            axes.set_xticks([])
        axes.figure.colorbar(shown, ax=axes, shrink=0.7, label=label)

    _write(path, (6, 6), draw)


def coverage(path: str, codes: np.ndarray, identity: np.ndarray, name: str) -> None:
    """Rows of an alignment, the most alike to the query at the top, and a line of how
    many have a residue at each position, as ColabFold draws them.

    codes : int8 (rows, m), -1 where a row has no residue
    identity : float64 (rows,), from 0 to 1, with the query
    name : of the query
    """

    def draw(axes: Any) -> None:
        order, (rows, positions) = np.argsort(identity, kind="stable"), codes.shape
        present = codes[order] >= 0
        table = np.where(present, identity[order, None], np.nan)
        look: dict[str, Any] = {"interpolation": "nearest", "aspect": "auto"}
        look |= {"origin": "lower", "extent": (0, positions, 0, rows), "gid": "rows"}
        shown = axes.imshow(table, cmap="rainbow_r", vmin=0, vmax=1, **look)
        places = np.arange(positions) + 0.5
        axes.plot(places, present.sum(0), color="black", gid="depth", clip_on=False)
        axes.set(xlabel=f"position of {_name(name)}", ylabel="sequences")
        axes.figure.colorbar(shown, ax=axes, label="identity with the query")

    _write(path, (7, 4), draw)


def histogram(
    path: str,
    counts: np.ndarray,
    edges: np.ndarray,
    axis: str,
    title: str,
    cut: float | None = None,
    unit: str = "pairs",
) -> None:
    """Counts as bars on a logarithmic scale, with a dashed line at the cut.

    counts : int (n,)
    edges : float (n + 1,)
    axis, title : what is measured, and what the reader should know of it
    unit : what is counted
    """

    def draw(axes: Any) -> None:
        look = {"align": "edge", "color": BLUE, "edgecolor": "white", "linewidth": 0.5}
        for count, left, right in zip(counts, edges, edges[1:], strict=False):
            if count:
                axes.bar(left, count, right - left, gid=f"bar-{left:g}", **look)
        if cut is not None:
            axes.axvline(cut, color=RED, linestyle="--", label="cut", gid="cut")
            axes.legend(frameon=False)
        axes.set(xlim=(edges[0], edges[-1]), xlabel=axis, ylabel=unit, title=title)
        _logarithmic(axes, counts)

    _write(path, (7, 3.5), draw)


def bars(
    path: str,
    labels: Sequence[str],
    counts: np.ndarray,
    axis: str,
    title: str,
    unit: str,
) -> None:
    """Counts as bars with a label each, on a logarithmic scale."""

    def draw(axes: Any) -> None:
        for label, count in zip(labels, counts, strict=True):
            axes.bar(label, count, color=BLUE, gid=f"bar-{label}")
        axes.set(xlabel=axis, ylabel=unit, title=title)
        _logarithmic(axes, counts)

    _write(path, (7, 3.5), draw)


def dot_plot(
    path: str,
    dots: np.ndarray,
    size: tuple[int, int],
    line: np.ndarray,
    names: Sequence[str],
    title: str,
    reverse: np.ndarray | None = None,
) -> None:
    """Dot plot of the similarity around every pair of residues, with a path.

    dots : float (rows, columns). From 0 to 1; a row is one residue of the query or
        several.
    size : (m, n). Residues of the query and the target.
    line : (rows, columns). Corners of the path, in residues.
    names : (query, target)
    reverse : dots of the opposite strand of the query, in blue.
    """

    def draw(axes: Any) -> None:
        extent = (0, max(size[1], 1), max(size[0], 1), 0)
        look: dict[str, Any] = {"vmin": 0, "vmax": 1, "extent": extent}
        look |= {"interpolation": "nearest", "aspect": "equal"}
        axes.imshow(dots, cmap="Greys", gid="dots", **look)
        axes.plot(line[1], line[0], color=RED, linewidth=1, gid="path", clip_on=False)
        if reverse is not None:
            axes.imshow(
                np.ones_like(reverse), cmap="winter_r", gid="reverse", alpha=reverse,
                **look,
            )  # fmt: skip
        axes.set(xlabel=_name(names[1]), ylabel=_name(names[0]), title=title)
        axes.set(xlim=extent[:2], ylim=extent[2:])

    _write(path, (6, 6), draw)


def dendrogram(
    path: str,
    lines: Iterable[tuple[np.ndarray, np.ndarray]],
    names: Sequence[str],
    axis: str,
    title: str,
) -> None:
    """A tree with its root at the left and a name a leaf.

    lines : list of (heights, places). The four corners of every joint; the k-th leaf
        has the place k.
    names : of the leaves, from the bottom
    """

    def draw(axes: Any) -> None:
        for k, (heights, places) in enumerate(lines):
            axes.plot(heights, places, color=BLUE, linewidth=1, gid=f"joint-{k}")
        axes.set_yticks(range(len(names)), [_name(name) for name in names])
        axes.tick_params("y", length=0)
        axes.yaxis.tick_right()
        axes.spines[["left", "top", "right"]].set_visible(False)
        axes.set(xlabel=axis, title=title, ylim=(-0.7, len(names) - 0.3))
        axes.set_xlim(left=0)
        axes.invert_xaxis()

    _write(path, (7, 1.2 + LEAF_HEIGHT * len(names)), draw)


def _logarithmic(axes: Any, counts: np.ndarray) -> None:
    """Set a logarithmic scale on which a count of 1 has a visible bar."""
    axes.set_yscale("log")
    axes.set_ylim(0.7, 2 * max(*counts, 5))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.spines[["top", "right"]].set_visible(False)


def _name(name: str) -> str:
    """Escape a name for a label: matplotlib reads text between dollars as a formula."""
    text = written(name).replace("$", r"\$")
    return text if len(text) <= LONGEST_NAME else text[: LONGEST_NAME - 3] + "..."


def _suffix(path: str) -> str:
    return os.path.splitext(path)[1].lower().removeprefix(".")


def _write(path: str, inches: tuple[float, float], draw: Callable) -> None:
    """Draw and write a figure without touching the backend of the process."""
    context, agg, figure_of = _matplotlib()
    with context(STYLE):
        figure = figure_of(figsize=inches, layout="constrained")
        canvas = agg(figure)
        draw(figure.add_subplot())
        kind = _suffix(path)
        dated = (
            {} if kind == "png" else {"Date" if kind == "svg" else "CreationDate": None}
        )
        about = {"format": kind, "dpi": DPI, "metadata": dated}
        output.write_file(path, lambda name: canvas.print_figure(name, **about))


def _matplotlib():
    """(context of styles, canvas, figure)."""
    try:
        from matplotlib import rc_context  # pyright: ignore[reportMissingImports]
        from matplotlib.backends.backend_agg import FigureCanvasAgg  # pyright: ignore[reportMissingImports]
        from matplotlib.figure import Figure  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise UsageError(
            "a picture needs matplotlib: pip install matplotlib"
        ) from error
    return rc_context, FigureCanvasAgg, Figure
