"""Results as data frames: pandas, Arrow and polars, each imported when asked for.

Columns are a dict of arrays or lists of one length.
"""

from typing import Any

import numpy as np

from jaxalign.errors import UsageError


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
    """The module ``pyarrow``.

    Raises
    ------
    UsageError
        It is not installed.
    """
    try:
        import pyarrow
    except ImportError as error:
        raise _missing("arrow", "pyarrow", "'jaxalign[parquet]'") from error
    return pyarrow


def _missing(call: str, library: str, package: str | None = None) -> UsageError:
    cure = f"pip install {package or library}"
    return UsageError(f"to_{call} needs {library}: {cure}")


def _plain(column: np.ndarray | list):
    """An object array of texts as a list, which polars reads as texts."""
    if isinstance(column, np.ndarray) and column.dtype == object:
        return column.tolist()
    return column
