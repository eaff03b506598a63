"""A table of probabilities as a picture; needs matplotlib (``jaxalign[plot]``)."""

from jaxalign.errors import UsageError
from jaxalign.io import output


def write(path: str, table, rows: str, columns: str) -> None:
    """Draw an (m, n) table, dark where it is large, to a file named by its format.

    Raises
    ------
    UsageError
        matplotlib is not installed, or does not write such a file.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UsageError("a picture needs matplotlib: jaxalign[plot]") from error
    figure = Figure(figsize=(6, 6), layout="constrained")
    canvas = FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    shown = axes.imshow(table, cmap="Greys", vmin=0, vmax=1, interpolation="nearest")
    axes.set(xlabel=columns, ylabel=rows)
    figure.colorbar(shown, ax=axes, shrink=0.7, label="probability")
    kind = path.rpartition(".")[2].lower()
    if kind not in canvas.get_supported_filetypes():
        raise UsageError(f"{path}: no picture format; .png, .pdf and .svg are")
    output.write_file(path, lambda temporary: figure.savefig(temporary, format=kind))
