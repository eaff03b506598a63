"""Columns of rearrangements as rows of receptors: one chain a row, or a cell a row."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jaxalign.errors import InputError, UsageError
from jaxalign.repertoire.receptors import Chain, ReceptorRows

ARMS = {
    "TRA": "VJ", "TRG": "VJ", "IGK": "VJ", "IGL": "VJ",
    "TRB": "VDJ", "TRD": "VDJ", "IGH": "VDJ",
}  # fmt: skip
# How many of a chain there were; the first column that is there decides.
ABUNDANCE = ("umi_count", "duplicate_count", "consensus_count")
JUNCTION, GENE, CELL = "junction_aa", "v_call", "cell_id"
NAMES = ("sequence_id", CELL)


def rows_of(
    columns: Mapping[str, Sequence[Any]], chains: str | None, origin: str = ""
) -> ReceptorRows:
    """The rows of a table of rearrangements.

    Parameters
    ----------
    columns : mapping of names of columns to their values
        ``junction_aa``; ``v_call``, ``locus``, ``cell_id``, ``sequence_id`` and counts
        are read where they are needed.
    chains : {"VJ", "VDJ", "sum", "all", "any"} or None
        One arm alone, or both arms of each cell; None is for tables of one arm.

    Raises
    ------
    InputError
        A column is missing, or a locus is unknown.
    UsageError
        There are chains of both arms, and ``chains`` does not say what is meant.
    """
    table = {name: [_text(x) for x in values] for name, values in columns.items()}
    if JUNCTION not in table:
        raise InputError(f"{origin or 'table'}: no column {JUNCTION!r}")
    if len({len(values) for values in table.values()}) > 1:
        raise InputError(f"{origin or 'table'}: columns differ in length")
    arms = _arms(table, origin)
    if chains in ("sum", "all", "any"):
        return _cells(table, arms, origin)
    known = set(arms) - {None}
    if chains is None and len(known) > 1:
        raise UsageError(
            f"{origin or 'table'}: chains of both arms, VJ and VDJ: chains='VJ' or "
            "'VDJ' takes one, 'sum', 'all' or 'any' both of each cell"
        )
    if chains is not None and None in arms:
        row = arms.index(None)
        raise InputError(
            f"{origin or 'table'}, row {row + 1}: neither locus nor v_call says which "
            f"arm it is, which chains={chains!r} needs"
        )
    some = [row for row, arm in enumerate(arms) if chains in (None, arm)]
    left = len(arms) - len(some)
    notes = (f"{left:,} rows of the other arm are left out",) if left else ()
    name = chains or next(iter(known), "CDR3")
    chain = Chain(str(name), *_taken(table, some))
    return ReceptorRows(_names(table, some), (chain,), origin, notes)


def _text(value: Any) -> str | None:
    """A value of a table; what is empty is None."""
    if value is None or value != value or value == "":
        return None
    return str(value)


def _arms(table: dict[str, list], origin: str) -> list[str | None]:
    """The arm of every row, None where nothing says it."""
    count = len(table[JUNCTION])
    loci = table.get("locus") or [None] * count
    genes = table.get(GENE) or [None] * count
    values: list[str | None] = []
    for row, (locus, gene) in enumerate(zip(loci, genes, strict=True)):
        name = locus or (gene or "")[:3]
        arm = ARMS.get(name.upper())
        if arm is None and locus:
            raise InputError(
                f"{origin or 'table'}, row {row + 1}: locus {locus!r} is unknown; "
                f"known: {', '.join(ARMS)}"
            )
        values.append(arm)
    return values


def _taken(table: dict[str, list], some: list[int]) -> tuple[list, list | None]:
    genes = table.get(GENE)
    cdr3 = [table[JUNCTION][row] for row in some]
    return cdr3, None if genes is None else [genes[row] for row in some]


def _names(table: dict[str, list], some: list[int]) -> list[str]:
    columns = [table[name] for name in NAMES if name in table]
    named = ((row, next((c[row] for c in columns if c[row]), None)) for row in some)
    return [name or f"row{row + 1}" for row, name in named]


def _cells(table: dict[str, list], arms: list[str | None], origin: str) -> ReceptorRows:
    """A row a cell: of each arm the most abundant chain, of equals the first."""
    if CELL not in table:
        raise InputError(f"{origin or 'table'}: no column {CELL!r}, which pairs chains")
    abundance = _abundance(table)
    cells: dict[str, dict[str, int]] = {}
    more = 0
    for row, (cell, arm) in enumerate(zip(table[CELL], arms, strict=True)):
        if cell is None or arm is None:
            missing = CELL if cell is None else "locus or v_call"
            raise InputError(f"{origin or 'table'}, row {row + 1}: no {missing}")
        chains = cells.setdefault(cell, {})
        other = chains.get(arm)
        more += other is not None
        if other is None or abundance[row] > abundance[other]:
            chains[arm] = row
    notes = (f"{more:,} further chains of cells are left out",) if more else ()
    genes = table.get(GENE)
    chains_of_cells = []
    for arm in ("VJ", "VDJ"):
        rows = [chains.get(arm) for chains in cells.values()]
        cdr3 = [None if row is None else table[JUNCTION][row] for row in rows]
        known = genes and [None if row is None else genes[row] for row in rows]
        chains_of_cells.append(Chain(arm, cdr3, known))
    return ReceptorRows(list(cells), tuple(chains_of_cells), origin, notes)


def _abundance(table: dict[str, list]) -> np.ndarray:
    """How many there are of the chain of each row; 0 where nothing says it."""
    count = len(table[JUNCTION])
    column = next((table[name] for name in ABUNDANCE if name in table), [None] * count)
    values = np.zeros(count)
    for row, value in enumerate(column):
        try:
            values[row] = float(value or 0)
        except ValueError:
            raise InputError(f"row {row + 1}: count {value!r} is no number") from None
    return values
