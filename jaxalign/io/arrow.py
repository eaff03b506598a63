"""Parquet by pyarrow, an optional dependency; names are dictionary-encoded."""

from collections.abc import Sequence
from typing import Any

from jaxalign.errors import UsageError
from jaxalign.io.columns import Column, chunks, default, part, resolve
from jaxalign.io.mapped import program_version
from jaxalign.model.table import Table

ROW_GROUP = 1_000_000


def parquet(
    table: Table, path: str, columns: Sequence[str] | None, identity: str
) -> None:
    """Write a table as zstd Parquet, one row group per million rows.

    Parameters
    ----------
    table : Table
    path : str
        The file to write; replaced when there.
    columns : sequence of str, optional
        As for tsv; by default also `cigar` where paths were kept.
    identity : str
        As for tsv.

    Raises
    ------
    UsageError
        pyarrow is not installed, or a column cannot be written.
    """
    pa, pq = _pyarrow()
    if columns is None:
        kept = ("cigar",) if table.operations is not None else ()
        columns = (*default(table, identity), *kept)
    chosen = resolve(table, columns, identity)
    names = {
        "query": pa.array(table.queries.names, pa.string()),
        "target": pa.array(table.targets.names, pa.string()),
    }
    # The batch of no rows gives the types, also when the table itself is empty.
    schema = _batch(pa, part(table, 0, 0), chosen, names).schema
    schema = schema.with_metadata(_metadata(table))
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for rows in chunks(table, ROW_GROUP):
            writer.write_table(_batch(pa, rows, chosen, names))


def _batch(
    pa: Any, rows: Table, chosen: Sequence[Column], names: dict[str, Any]
) -> Any:
    arrays = [_array(pa, rows, column, names) for column in chosen]
    return pa.Table.from_arrays(arrays, [column.name for column in chosen])


def _array(pa: Any, rows: Table, column: Column, names: dict[str, Any]) -> Any:
    if column.names:
        indices = pa.array(rows[column.names].astype("int32", copy=False))
        return pa.DictionaryArray.from_arrays(indices, names[column.names])
    values = column.values(rows)
    return pa.array(values, pa.string() if isinstance(values, list) else None)


def _metadata(table: Table) -> dict[str, str]:
    return {
        "jaxalign.version": program_version(),
        "jaxalign.scoring": str(table.scoring),
        "jaxalign.mode": table.mode,
        "jaxalign.free_ends": ",".join(sorted(table.free_ends)),
        "jaxalign.implementation": table.implementation,
    }


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise UsageError(
            "format 'parquet' needs pyarrow: pip install 'jaxalign[parquet]'"
        ) from error
    return pyarrow, pyarrow.parquet
