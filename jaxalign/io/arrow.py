"""Parquet by pyarrow, an optional dependency; names are dictionary-encoded."""

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from jaxalign.errors import InputError, UsageError
from jaxalign.io.columns import Column, chunks, default, part, resolve
from jaxalign.model import operations
from jaxalign.model.system import program_version
from jaxalign.model.table import Table

ROW_GROUP, ROW_GROUP_OF_PATHS = 1_000_000, 250_000
AHEAD = 4  # row groups put together by threads while one is written


def parquet(
    table: Table,
    path: str,
    columns: Sequence[str] | None,
    identity: str,
    about: dict[str, str] | None = None,
) -> None:
    """Write a table as zstd Parquet, a row group for every million rows; with paths,
    for every 250,000.

    Columns and identity are as for tsv; by default there is also ``cigar`` where paths
    were kept. ``about`` is what the metadata of a part of a folder have in place of the
    implementation: a part has the same bytes, whoever computes it. Pages have
    checksums, which pyarrow compares with ``page_checksum_verification``.
    """
    with writing(path, columns, identity, about) as write:
        write(table)


@contextmanager
def writing(
    path: str,
    columns: Sequence[str] | None,
    identity: str,
    about: dict[str, str] | None = None,
) -> Iterator[Callable[[Table], None]]:
    """Yield a function that appends tables of one result to one Parquet file; the first
    table sets types and metadata."""
    modules = pyarrow()
    with ThreadPoolExecutor(AHEAD) as pool, ExitStack() as stack:
        file: Any = None

        def write(table: Table) -> None:
            nonlocal file
            # By default all columns, and CIGARs where paths were kept.
            names = columns
            if names is None:
                paths = ("cigar",) if table.operations is not None else ()
                names = (*default(table, identity), *paths)
            selection = resolve(table, names, identity)
            if file is None:
                opened = _opened(modules, path, table, selection, about)
                file = stack.enter_context(opened)
            texts = _names_of(modules[0], table)
            size = ROW_GROUP if table.operations is None else ROW_GROUP_OF_PATHS
            waiting: deque = deque()
            for rows in chunks(table, size):
                waiting.append(pool.submit(_batch, modules[0], rows, selection, texts))
                if len(waiting) > AHEAD:
                    file.write_table(waiting.popleft().result())
            for batch in waiting:
                file.write_table(batch.result())

        yield write


def _opened(
    modules: tuple[Any, Any],
    path: str,
    table: Table,
    selection: Sequence[Column],
    about: dict[str, str] | None,
) -> Any:
    """Open a Parquet writer with the schema of a table."""
    pa, pq = modules
    # The batch of no rows gives the types, also when the table itself is empty.
    empty = part(table, 0, 0)
    schema = _batch(pa, empty, selection, _names_of(pa, empty)).schema
    metadata = {
        "jaxalign.version": program_version(),
        "jaxalign.scoring": str(table.scoring),
        "jaxalign.mode": table.mode,
        "jaxalign.free_ends": ",".join(sorted(table.free_ends)),
    }
    ran = {"jaxalign.implementation": table.implementation}
    schema = schema.with_metadata(metadata | (ran if about is None else about))
    options: dict[str, Any] = {"compression": "zstd", "write_page_checksum": True}
    # The least and the greatest text of a row group would take three quarters of the
    # time, and no reader skips row groups by them.
    numbers = [x.name for x in schema if pa.types.is_primitive(x.type)]
    options["write_statistics"] = numbers or False
    return pq.ParquetWriter(path, schema, **options)


def _batch(
    pa: Any, rows: Table, selection: Sequence[Column], names: dict[str, Any]
) -> Any:
    arrays = [_array(pa, rows, column, names) for column in selection]
    return pa.Table.from_arrays(arrays, [column.name for column in selection])


def _names_of(pa: Any, table: Table) -> dict[str, tuple[int, Any]]:
    """Per side (first index, names from it on): a part of a job uses few names."""
    sides = {"query": table.queries.names, "target": table.targets.names}
    parts = {}
    for side, names in sides.items():
        first, stop = _range(table[side])
        parts[side] = first, _texts(pa, names[first:stop])
    return parts


def _range(used: np.ndarray) -> tuple[int, int]:
    """Smallest index that occurs, and largest plus 1."""
    return (int(used.min()), int(used.max()) + 1) if len(used) else (0, 0)


def _array(pa: Any, rows: Table, column: Column, names: dict[str, Any]) -> Any:
    if column.names:
        indices = rows[column.names]
        first, stop = _range(indices)
        before, texts = names[column.names]
        # A row group holds its dictionary, which is of its own names alone.
        dictionary = texts.slice(first - before, stop - first)
        indices = indices.astype("int32", copy=False) - np.int32(first)
        return pa.DictionaryArray.from_arrays(_numbers(pa, indices), dictionary)
    if column.name == "cigar":
        text, offsets = operations.cigars(rows.operations, rows.operation_offsets)
        return _joined_texts(pa, text, offsets)
    values = column.values(rows)
    return _texts(pa, values) if isinstance(values, list) else _numbers(pa, values)


# ``pyarrow.array`` would do all this, but imports pandas where it is installed, which
# takes longer than writing most tables.


def _numbers(pa: Any, values: np.ndarray) -> Any:
    kind = pa.from_numpy_dtype(values.dtype)
    data = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(kind, len(values), [None, data])


def _texts(pa: Any, texts: Sequence[str]) -> Any:
    encoded = [text.encode() for text in texts]
    offsets = np.cumsum([0, *map(len, encoded)])
    return _joined_texts(pa, b"".join(encoded), offsets)


def _joined_texts(pa: Any, text: Any, offsets: np.ndarray) -> Any:
    """Arrow text; a row group has less than 2 GiB of it."""
    buffers = (pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(text))
    return pa.StringArray.from_buffers(len(offsets) - 1, *buffers)


def write_columns(path: str, columns: dict[str, np.ndarray]) -> None:
    """Write arrays of equal lengths as zstd Parquet, texts as dictionaries."""
    pa, pq = pyarrow()
    arrays = {
        name: pa.array(values.tolist(), pa.string()).dictionary_encode()
        if values.dtype == object
        else pa.array(values)
        for name, values in columns.items()
    }
    pq.write_table(pa.table(arrays), path, compression="zstd")


def read_rows(path: str) -> list[list[str]]:
    """Read a Parquet file as rows of text, a heading first; null and nan become
    empty."""
    pa, pq = pyarrow()
    if not os.path.isfile(path):  # of a folder all files would be read
        raise InputError(f"{path}: cannot be read as Parquet (no such file)")
    try:
        table = pq.read_table(path)
        columns = table.to_pydict()  # in which nan alone is unlike itself
    except (OSError, ValueError, pa.ArrowException) as error:
        why = next(iter(str(error).splitlines()), type(error).__name__)
        raise InputError(f"{path}: cannot be read as Parquet ({why})") from error
    rows = zip(*columns.values(), strict=True)
    texts = (["" if x is None or x != x else str(x) for x in row] for row in rows)
    return [list(columns), *texts]


def pyarrow() -> tuple[Any, Any]:
    """The modules ``pyarrow`` and ``pyarrow.parquet``, or a UsageError."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise UsageError(
            "format 'parquet' needs pyarrow: pip install pyarrow"
        ) from error
    return pyarrow, pyarrow.parquet
