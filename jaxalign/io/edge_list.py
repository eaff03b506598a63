"""Edges of a graph as text or Parquet, block by block, and its matrix as ``.npz``."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from jaxalign.io import arrow, output
from jaxalign.model.names import written

# (i, j, distance), integers (edges,) each.
Block = tuple[Any, Any, Any]
HEADING = "receptor\tneighbour\tdistance\n"


def write_text(
    path: str, blocks: Iterable[Block], rows: Sequence[str], columns: Sequence[str]
) -> None:
    """Write a tsv with a heading: names of both ends, and the distance."""
    output.write_text(path, _lines(blocks, rows, columns))


def _lines(
    blocks: Iterable[Block], rows: Sequence[str], columns: Sequence[str]
) -> Iterator[str]:
    yield HEADING
    for i, j, distance in blocks:
        edges: Iterable[tuple[int, int, int]]
        edges = zip(i.tolist(), j.tolist(), distance.tolist(), strict=True)
        yield "".join(
            f"{written(rows[a])}\t{written(columns[b])}\t{d}\n" for a, b, d in edges
        )


def write_parquet(
    path: str, blocks: Iterable[Block], rows: Sequence[str], columns: Sequence[str]
) -> None:
    """Write zstd Parquet with the same columns, a row group a block; names are
    dictionary-encoded.

    Raises
    ------
    UsageError
        pyarrow is not installed.
    """
    pa, pq = arrow.pyarrow()
    names = [pa.array(list(side), pa.string()) for side in (rows, columns)]
    text = pa.dictionary(pa.int32(), pa.string())
    titles = HEADING.split()
    kinds = (text, text, pa.int32())
    schema = pa.schema(list(zip(titles, kinds, strict=True)))

    def fill(temporary: str) -> None:
        with pq.ParquetWriter(temporary, schema, compression="zstd") as writer:
            for *ends, distance in blocks:
                arrays = [
                    pa.DictionaryArray.from_arrays(pa.array(x, pa.int32()), name)
                    for x, name in zip(ends, names, strict=True)
                ]
                arrays.append(pa.array(distance, pa.int32()))
                writer.write_table(pa.Table.from_arrays(arrays, schema=schema))

    output.write_file(path, fill)
