"""A table of probabilities as a picture; needs matplotlib (``jaxalign[plot]``)."""

from jaxalign.errors import UsageError
from jaxalign.io import output


def check(path: str) -> None:
    """Refuse a picture before any work is done for it.

    Raises
    ------
    UsageError
        matplotlib is not installed, or does not write such a file.
    """
    canvas, _ = _canvas()
    if _kind(path) not in canvas.get_supported_filetypes():
        raise UsageError(f"{path}: no picture format; .png, .pdf and .svg are")


def write(path: str, table, rows: str, columns: str) -> None:
    """Draw an (m, n) table, dark where it is large; the suffix is the format."""
    canvas, figure = _canvas()
    axes = figure.add_subplot()
    shown = axes.imshow(table, cmap="Greys", vmin=0, vmax=1, interpolation="nearest")
    axes.set(xlabel=columns, ylabel=rows)
    figure.colorbar(shown, ax=axes, shrink=0.7, label="probability")
    output.write_file(path, lambda name: canvas.print_figure(name, format=_kind(path)))


def _kind(path: str) -> str:
    return path.rpartition(".")[2].lower()


def _canvas():
    """A canvas and its figure, beside whatever backend the process has."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg  # pyright: ignore[reportMissingImports]
        from matplotlib.figure import Figure  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise UsageError("a picture needs matplotlib: jaxalign[plot]") from error
    figure = Figure(figsize=(6, 6), layout="constrained")
    return FigureCanvasAgg(figure), figure
