"""Rows of text, one alignment a line: tsv with a heading and BLAST's m8.

A control character in a name is written as an escape (``jaxalign.model.names``), so
that it ends neither a field nor a line.
"""

from collections.abc import Iterator, Sequence

from jaxalign.io.columns import Column, chunks, require, resolve, texts
from jaxalign.model.table import Table

M8 = (
    "qseqid", "sseqid", "pident", "length", "mismatch", "gapopen",
    "qstart", "qend", "sstart", "send", "evalue", "bits",
)  # fmt: skip


def tsv(table: Table, columns: Sequence[str] | None, identity: str) -> Iterator[str]:
    """Yield a heading and one tab-separated line per row, in pieces of text."""
    chosen = resolve(table, columns, identity)
    yield "\t".join(column.name for column in chosen) + "\n"
    yield from _lines(table, chosen)


def m8(table: Table) -> Iterator[str]:
    """Yield the 12 columns of BLAST's tabular output: no heading, from 1."""
    require(table, "stats", "format 'm8'")
    yield from _lines(table, resolve(table, M8, "alignment"))


def _lines(table: Table, chosen: Sequence[Column]) -> Iterator[str]:
    template = "\t".join(column.template for column in chosen) + "\n"
    for part in chunks(table):
        yield "".join(map(template.__mod__, zip(*texts(chosen, part), strict=True)))
