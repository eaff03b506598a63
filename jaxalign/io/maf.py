"""Multiple Alignment Format of two sequences, as genome browsers and LAST have it."""

import re
from collections.abc import Iterator, Sequence

from jaxalign.errors import UsageError
from jaxalign.io.columns import chunks, require
from jaxalign.io.sam_paf import program_version, score_text
from jaxalign.model.table import Table

_NAME = re.compile(r"[!-~]+")  # fields are divided by white space


def maf(table: Table) -> Iterator[str]:
    """Yield MAF: a block an alignment, the target first.

    Starts are from 0, of a query on the minus strand from the beginning of its reverse
    complement, as the format has it. An alignment without columns has no block.
    """
    require(table, "alignment", "format 'maf'")
    _check_names(table.queries.names)
    _check_names(table.targets.names)
    about = f"jaxalign {program_version()}, {table.mode}, {table.scoring}"
    yield f"##maf version=1\n# {about}\n"
    for part in chunks(table):
        yield "".join(_blocks(part))


def _blocks(part: Table) -> Iterator[str]:
    strands = part.columns.get("strand")
    for row in range(len(part)):
        alignment = part.alignment(row)
        query, target = alignment.rows()
        if not query:
            continue
        minus = strands is not None and strands[row] < 0
        a = alignment
        sides = (
            (a.target_name, a.target_start, a.target_end, "+", len(a.target), target),
            (a.query_name, a.query_start, a.query_end, "-" if minus else "+",
             len(a.query), query),
        )  # fmt: skip
        lines = (
            f"s {name} {start} {end - start} {strand} {length} {text}\n"
            for name, start, end, strand, length, text in sides
        )
        yield f"\na score={score_text(a.score)}\n" + "".join(lines)


def _check_names(names: Sequence[str]) -> None:
    for name in names:
        if not _NAME.fullmatch(name):
            raise UsageError(
                f"format 'maf' cannot hold the name {name!r} (MAF allows printable "
                "ASCII without white space); write tsv or paf instead"
            )
