"""Rows of text, one alignment a line: tsv with a heading and BLAST's m8."""

from collections.abc import Iterator, Sequence

from jaxalign.io.columns import Column, chunks, require, resolve
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
        values = (column.values(part) for column in chosen)
        lists = [v if isinstance(v, list) else v.tolist() for v in values]
        yield "".join(map(template.__mod__, zip(*lists, strict=True)))
