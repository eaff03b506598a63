"""Results as data frames: pandas, Arrow and polars, each imported when asked for.

Columns are a dict of arrays or lists of one length.
"""

import os
from collections.abc import Sequence
from html import escape
from importlib import import_module
from typing import Any, Protocol, runtime_checkable

import numpy as np

from jaxalign.errors import UsageError, shortened
from jaxalign.model import WRITERS
from jaxalign.model.names import visible


def to_pandas(columns: dict):
    """Columns -> ``pandas.DataFrame``."""
    try:
        import pandas
    except ImportError as error:
        raise _missing("pandas", "pandas") from error
    return pandas.DataFrame(columns)


def to_arrow(columns: dict):
    """Columns -> ``pyarrow.Table``."""
    return pyarrow().table(columns)


def to_polars(columns: dict):
    """Columns -> ``polars.DataFrame``; texts as ``String``."""
    try:
        import polars
    except ImportError as error:
        raise _missing("polars", "polars") from error
    return polars.DataFrame({name: _plain(column) for name, column in columns.items()})


def pyarrow() -> Any:
    """The module ``pyarrow``."""
    try:
        import pyarrow
    except ImportError as error:
        raise _missing("arrow", "pyarrow") from error
    return pyarrow


def _missing(call: str, library: str) -> UsageError:
    return UsageError(f"to_{call} needs {library}: pip install {library}")


def _plain(column: np.ndarray | list):
    """An object array of texts as a list, which polars reads as texts."""
    if isinstance(column, np.ndarray) and column.dtype == object:
        return column.tolist()
    return column


# ------------------------------------------------------------------------------
# The methods of a result that is columns with a heading: a class that has ``columns``
# and ``heading`` takes them all from ``METHODS``.


class Columnar(Protocol):
    """Result with rows that are not alignments."""

    def columns(self) -> dict[str, Any]:
        """The rows as columns: arrays of one length, by name."""
        ...

    def heading(self) -> str:
        """The result in one line."""
        ...


def selected(columns: dict[str, Any], names: Sequence[str] | None) -> dict[str, Any]:
    """Choose columns by name, in that order; all of them for None.

    Raises UsageError: there is no such column.
    """
    for name in names or ():
        if name not in columns:
            raise UsageError(f"column {name!r}: choose from {', '.join(columns)}")
    return columns if names is None else {name: columns[name] for name in names}


def columns_of(result: Any) -> dict[str, Any]:
    """The rows of a result as columns; ``columns`` of an alignment is a number."""
    is_method = callable(type(result).columns)
    return result.columns() if is_method else result._columns()


def as_pandas(self: Any, columns: Sequence[str] | None = None) -> Any:
    """Return the result as a ``pandas.DataFrame`` (needs pandas).

    Parameters
    ----------
    columns : sequence of str, optional
        Names of columns; by default all.

    Raises
    ------
    UsageError
        pandas is missing, or there is no such column.
    """
    return to_pandas(selected(columns_of(self), columns))


def as_arrow(self: Any, columns: Sequence[str] | None = None) -> Any:
    """Return the result as a ``pyarrow.Table`` (needs pyarrow).

    Parameters
    ----------
    columns : sequence of str, optional
        Names of columns; by default all.

    Raises
    ------
    UsageError
        pyarrow is missing, or there is no such column.
    """
    return to_arrow(selected(columns_of(self), columns))


def as_polars(self: Any, columns: Sequence[str] | None = None) -> Any:
    """Return the result as a ``polars.DataFrame`` (needs polars).

    Parameters
    ----------
    columns : sequence of str, optional
        Names of columns; by default all.

    Raises
    ------
    UsageError
        polars is missing, or there is no such column.
    """
    return to_polars(selected(columns_of(self), columns))


def write(
    self: Columnar,
    path: str | os.PathLike[str],
    force: bool = False,
    columns: Sequence[str] | None = None,
) -> None:
    """Write ``columns()`` as .tsv, .csv or .parquet, as the suffix says.

    Parameters
    ----------
    path : path
        ``-`` is standard output.
    force : bool
        Replace an existing file.
    columns : sequence of str, optional
        Names of columns; by default all.

    Raises
    ------
    UsageError
        No such format or column, or the file exists.
    """
    writer = import_module(WRITERS["columns"])
    selection, cuts = selected(self.columns(), columns), getattr(self, "cuts", ())
    writer.write_columns(os.fspath(path), selection, force, cuts)


def short(self: Columnar) -> str:
    """The name of the class and the heading, for ``repr``."""
    return shortened(f"<{type(self).__name__}: {self.heading()}>")


def html(self: Columnar) -> str:
    """``str`` of the result as a paragraph, for a notebook."""
    text = escape(visible(shortened(str(self))))
    return f"<p>{text.replace(chr(10), '<br>')}</p>"


# to_pandas, to_arrow, to_polars, write, __repr__ and _repr_html_
METHODS = as_pandas, as_arrow, as_polars, write, short, html


# ------------------------------------------------------------------------------
# The calls that every result has, whether it holds one alignment or a million.


@runtime_checkable
class AlignmentResult(Protocol):
    """The calls that ``Alignment``, ``Table`` and ``TripleAlignment`` share.

    Of an ``Alignment`` each call gives one answer. Of a ``Table`` it gives one answer
    a row, in the order of the rows: ``table.cigar()[k]`` is
    ``table.alignment(k).cigar()``. Of a ``TripleAlignment`` CIGARs and identities are
    those of its three induced pairs, (a, b), (a, c) and (b, c).

    ``str`` prints the alignment, of a table its first and last rows. ``repr`` is one
    short line, whatever the size of the result.
    """

    def rows(self) -> Any:
        """The gapped rows, ``-`` for a gap.

        Returns
        -------
        (str, str), of a table a list of those, of a triple (str, str, str)

        Raises
        ------
        UsageError
            The result was computed without its path.
        """
        ...

    def cigar(self) -> Any:
        """CIGAR: M, I (consumes the query), D (consumes the target).

        Returns
        -------
        str, of a table a list of str, of a triple three

        Raises
        ------
        UsageError
            The result was computed without its path.
        """
        ...

    def identity(self, kind: str = "alignment") -> Any:
        """Identical pairs over the denominator ``kind`` (``jaxalign.model.identity``).

        Returns
        -------
        float, of a table float64 (rows,), of a triple three floats
            ``nan`` where the denominator is 0.

        Raises
        ------
        UsageError
            An unknown kind, or one that needs what was not computed.
        """
        ...

    def rescore(self) -> Any:
        """The score, counted anew from the path, the matrix and the gap costs.

        Returns
        -------
        int or float, of a table an array (rows,)

        Raises
        ------
        UsageError
            The result was computed without its path.
        """
        ...

    def to_pandas(self, columns: Sequence[str] | None = None) -> Any:
        """``pandas.DataFrame``, one row an alignment (needs pandas)."""
        ...

    def to_arrow(self, columns: Sequence[str] | None = None) -> Any:
        """``pyarrow.Table``, one row an alignment (needs pyarrow)."""
        ...

    def to_polars(self, columns: Sequence[str] | None = None) -> Any:
        """``polars.DataFrame``, one row an alignment (needs polars)."""
        ...

    def _repr_html_(self) -> str:
        """HTML for a notebook."""
        ...
