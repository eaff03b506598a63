"""The columns a table can be written with: own names, BLAST's and MMseqs2's."""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from jaxalign.errors import UsageError, nearest_word
from jaxalign.model.alignment import SPANS
from jaxalign.model.identity import BY_PATH, IDENTITIES
from jaxalign.model.names import all_written
from jaxalign.model.numbers import printed_beside, texts_beside
from jaxalign.model.table import Table

CHUNK = 10_000  # rows whose texts are in memory

BASE = ("query", "target", "score")
COUNTS = ("columns", "identities", "gap_openings", "gaps")
STATISTICS = ("bits", "evalue")
LENGTHS = ("query_length", "target_length")
Values = np.ndarray | list[str]


@dataclass(frozen=True)
class Column:
    """One output column: its heading, printf template and values.

    `values` gives an array, or a list of text, with one entry per row. A column of
    names says in `names` which index column, "query" or "target", it spells out. Text
    files have ``shown(values)``.
    """

    name: str
    template: str
    values: Callable[[Table], Values]
    names: str | None = None
    shown: Callable[[Any], Any] = lambda values: values


def resolve(
    table: Table, columns: Sequence[str] | None, identity: str
) -> tuple[Column, ...]:
    """Look up output columns by name; default: all that the table holds.

    Names are the table's own, or those of BLAST and MMseqs2. ``identity`` is the
    definition behind the default columns and ``fident``.
    """
    if identity not in IDENTITIES:
        raise UsageError(_choices("identity", identity, IDENTITIES))
    return tuple(
        _column(table, n, identity) for n in columns or default(table, identity)
    )


def default(table: Table, identity: str) -> tuple[str, ...]:
    """Name the columns written when none are asked for."""
    optional = tuple(name for name in STATISTICS if name in table.columns)
    if "strand" in table.columns:
        optional += ("sstrand",)
    if "columns" in table.columns:
        return (*BASE, *optional, f"identity_{identity}", *COUNTS, *SPANS, *LENGTHS)
    if "max_identities" in table.columns:
        return (*BASE, f"identity_{identity}", "max_identities", *LENGTHS)
    return (*BASE, *optional)


def frame_values(
    table: Table,
    columns: Sequence[str] | None,
    identity: str,
    names: Callable[[str], Any],
) -> dict[str, Any]:
    """Values of columns by name, for data frames.

    columns : None for those of the table, CIGARs, and after ``output="identity"`` what
        a file has.
    names : of a side, "query" or "target": what stands in the column of its names.
    """
    if columns is None and "max_identities" not in table.columns:
        paths = ("cigar",) if table.operations is not None else ()
        columns = (*table.columns, *paths)
    return {
        column.name: names(column.names) if column.names else column.values(table)
        for column in resolve(table, columns, identity)
    }


def require(table: Table, output: str, what: str) -> None:
    """Raise UsageError unless the table was computed with this output or more."""
    present = {
        "stats": "columns" in table.columns,
        "identity": "columns" in table.columns or "max_identities" in table.columns,
        "alignment": table.operations is not None,
    }
    if not present[output]:
        raise UsageError(
            f"{what} needs a result computed with output={output!r}; this one has "
            f"only {', '.join(table.columns)}"
        )


def chunks(table: Table, rows: int = CHUNK) -> Iterator[Table]:
    """Cut a table into tables of at most `rows` rows; nothing is copied."""
    for start in range(0, len(table), rows):
        yield part(table, start, min(start + rows, len(table)))


def part(table: Table, start: int, stop: int) -> Table:
    """Return the rows from `start` up to `stop` as a table of views."""
    offsets = table.operation_offsets
    return dataclasses.replace(
        table,
        columns={name: v[start:stop] for name, v in table.columns.items()},
        operation_offsets=None if offsets is None else offsets[start : stop + 1],
    )


def _column(table: Table, name: str, identity: str) -> Column:
    if name in _RENAMED:
        return dataclasses.replace(_column(table, _RENAMED[name], identity), name=name)
    if name == "fident":
        return _identity(table, name, identity, "%.4f", 1)
    if name == "pident":
        return _identity(table, name, "alignment", "%.3f", 100)
    if name.startswith("identity_") and name[9:] in IDENTITIES:
        return _identity(table, name, name[9:], "%.4f", 1)
    if name in ("query", "target"):
        return Column(name, "%s", partial(_names, name), names=name)
    if name == "cigar":
        require(table, "alignment", "column 'cigar'")
        return Column(name, "%s", lambda t: t.cigar())
    if name in _DERIVED:
        needs, template, values = _DERIVED[name]
        if needs:
            require(table, needs, f"column {name!r}")
        shown = Column.shown
        if name in _SHOWN:
            shown = partial(_SHOWN[name], table.cuts)
        return Column(name, template, values, shown=shown)
    # A stored column. %.15g gives back the decimal a scaled score was divided into.
    if name in (*SPANS, *COUNTS):
        require(table, "stats", f"column {name!r}")
    if name not in table.columns:
        raise UsageError(_choices("column", name, known(table)))
    exact = name == "score" or table.columns[name].dtype.kind != "f"
    return Column(name, "%.15g" if exact else "%.6g", lambda t: t.columns[name])


def _identity(table: Table, name: str, kind: str, template: str, factor: int) -> Column:
    require(
        table,
        "stats" if kind in BY_PATH else "identity",
        f"column {name!r} (identity {kind!r})",
    )
    decimals = 4 if factor == 1 else 3
    return Column(
        name,
        template,
        lambda t: factor * t.identity(kind),
        shown=lambda shares: _beside_cuts(table.cuts, shares, decimals, factor),
    )


def _beside_cuts(
    cuts: Sequence[float], shares: np.ndarray, decimals: int, whole: int = 1
) -> np.ndarray:
    """Shares of a whole that are not printed as 1, or a cut of two decimals, which they
    are below; and on their side of the ``cuts`` of the rows, fractions."""
    steps = 100 / whole
    percents = np.ceil(shares * steps) / steps
    of_rows = (cut * whole for cut in cuts)
    return printed_beside(shares, decimals, percents, *of_rows, whole)


def _names(side: str, table: Table) -> list[str]:
    names = (table.queries if side == "query" else table.targets).names
    return [names[i] for i in table.columns[side].tolist()]


def known(table: Table) -> tuple[str, ...]:
    """List every column name `write` accepts for a table."""
    identities = tuple(f"identity_{kind}" for kind in IDENTITIES)
    names = (*BASE, *identities, *COUNTS, *SPANS, *LENGTHS, "cigar")
    named = ("pident", "fident", *_RENAMED, *_DERIVED)
    return tuple(dict.fromkeys((*names, *table.columns, *named)))


def texts(columns: Sequence[Column], table: Table) -> list[Sequence[Any]]:
    """List the values of columns, with names escaped as in text files."""
    lists: list[Sequence[Any]] = []
    for column in columns:
        values: Any = column.shown(column.values(table))
        values = values if isinstance(values, list) else values.tolist()
        lists.append(all_written(values) if column.names else values)
    return lists


def _lengths(side: str) -> Callable[[Table], np.ndarray]:
    return lambda t: t.lengths()[side == "target"]


def _covered(side: str) -> Callable[[Table], np.ndarray]:
    def values(table: Table) -> np.ndarray:
        span = table.columns[f"{side}_end"] - table.columns[f"{side}_start"]
        length = _lengths(side)(table)
        return np.where(length > 0, span / np.maximum(length, 1), np.nan)

    return values


def _first(name: str) -> Callable[[Table], np.ndarray]:
    # BLAST and MMseqs2 count from 1; their inclusive end is our exclusive one.
    return lambda t: t.columns[name] + 1


def _subject(on_minus: str, on_plus: str, first: int) -> Callable[[Table], np.ndarray]:
    # BLAST counts a subject from its end where the query's other strand was aligned.
    def values(table: Table) -> np.ndarray:
        plus = table[on_plus] + first
        if "strand" not in table.columns:
            return plus
        return np.where(table["strand"] < 0, table[on_minus] + (1 - first), plus)

    return values


def _strand(table: Table) -> list[str]:
    strand = table.columns.get("strand", np.ones(len(table), np.int8))
    return ["plus" if sign > 0 else "minus" for sign in strand.tolist()]


def _optional(name: str) -> Callable[[Table], np.ndarray]:
    def values(table: Table) -> np.ndarray:
        return table.columns.get(name, np.full(len(table), np.nan))

    return values


def _plain(_cuts: Sequence[float], values: np.ndarray) -> list[str]:
    # Without an exponent: programs that sort lines take 1.24e+04 for 1.24.
    return [f"{x:.0f}" if x >= 9999.5 else f"{x:.4g}" for x in values.tolist()]


def _choices(what: str, value: str, choices: Sequence[str]) -> str:
    meant = nearest_word(value, choices)
    hint = f"did you mean {meant}? " if meant else ""
    return f"{what} {value!r} is unknown; {hint}choose from {', '.join(choices)}"


_RENAMED = {
    "qseqid": "query", "sseqid": "target", "raw": "score", "alnlen": "columns",
    "length": "columns", "nident": "identities", "gapopen": "gap_openings",
    "qend": "query_end", "tend": "target_end",
    "qlen": "query_length", "slen": "target_length", "tlen": "target_length",
    "bitscore": "bits",
}  # fmt: skip

# name: (least output it needs, printf template, values)
_DERIVED: dict[str, tuple[str | None, str, Callable[[Table], Values]]] = {
    "query_length": (None, "%d", _lengths("query")),
    "target_length": (None, "%d", _lengths("target")),
    "qstart": ("stats", "%d", _first("query_start")),
    "tstart": ("stats", "%d", _first("target_start")),
    "sstart": ("stats", "%d", _subject("target_end", "target_start", 1)),
    "send": ("stats", "%d", _subject("target_start", "target_end", 0)),
    "sstrand": (None, "%s", _strand),
    "mismatch": ("stats", "%d", lambda t: t["columns"] - t["gaps"] - t["identities"]),
    "qcov": ("stats", "%.3f", _covered("query")),
    "tcov": ("stats", "%.3f", _covered("target")),
    "evalue": (None, "%s", _optional("evalue")),
    "bits": (None, "%s", _optional("bits")),
}
_SHOWN: dict[str, Callable[..., Any]] = {
    "bits": _plain,
    "evalue": lambda cuts, values: texts_beside(values, 3, *cuts),
} | dict.fromkeys(("qcov", "tcov"), partial(_beside_cuts, decimals=3))
