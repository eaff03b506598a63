"""Formats that homology splitters read: GraphPart, Hestia-GOOD and DataSAIL.

graphpart
    ``graphpart precomputed --edge-file``: ``id1,id2,identity``, no heading. An id ends
    at the first ``|``, as in GraphPart's own FASTA headings.
hestia
    A table ``query,target,metric`` of 0-based record numbers and identities, for
    ``HestiaGenerator.calculate_partitions(sim_df=...)``.
datasail
    ``datasail --e-sim``: a square table, tab-separated, ids in first row and column.

Sources: graph-part 1.0.2, precomputed_utils.load_edge_list; hestia-good 1.2.2,
similarity.sim_df2mtx; datasail 1.4.0, reader.utils.read_clustering_file.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from jaxalign.errors import UsageError
from jaxalign.io.columns import chunks, require
from jaxalign.model.names import CONTROL
from jaxalign.model.table import Table


def graphpart(table: Table, identity: str) -> Iterator[str]:
    """Yield an edge list. Pairs that are not listed are taken for unlike."""
    require(table, "identity", "format 'graphpart'")
    queries, targets = (
        _ids(names, ",", "graphpart", "|")
        for names in (table.queries.names, table.targets.names)
    )
    for part in chunks(table):
        rows = _rows(part, identity)
        yield "".join(f"{queries[i]},{targets[j]},{x!r}\n" for i, j, x in rows)


def hestia(table: Table, identity: str) -> Iterator[str]:
    """Yield record numbers and identities below the heading query,target,metric."""
    require(table, "identity", "format 'hestia'")
    yield "query,target,metric\n"
    for part in chunks(table):
        yield "".join(f"{i},{j},{x!r}\n" for i, j, x in _rows(part, identity))


def datasail(table: Table, identity: str) -> Iterator[str]:
    """Yield the square of identities, 1 on the diagonal; pairs without a row are 0.

    Raises
    ------
    UsageError
        The table is not of one set against itself.
    """
    require(table, "identity", "format 'datasail'")
    if table.queries is not table.targets:
        raise UsageError("format 'datasail' is a square: of one set against itself")
    names = _ids(table.queries.names, "\t", "datasail")
    square = np.zeros((len(names), len(names)), np.float32)
    values = _identities(table, identity)
    square[table["query"], table["target"]] = values
    square[table["target"], table["query"]] = values
    np.fill_diagonal(square, 1)
    yield "\t".join(["ID", *names]) + "\n"
    for name, row in zip(names, square, strict=True):
        yield name + "".join(f"\t{x:.6g}" for x in row.tolist()) + "\n"


def _rows(table: Table, identity: str):
    """(query, target, identity) of each row; floats print so that they read back."""
    values = _identities(table, identity).tolist()
    return zip(table["query"].tolist(), table["target"].tolist(), values, strict=True)


def _identities(table: Table, identity: str) -> np.ndarray:
    """Fractions; where nothing can be identical, 0."""
    return np.nan_to_num(table.identity(identity))


def _ids(names: Sequence[str], separator: str, format: str, end: str | None = None):
    """Names as the tool reads them.

    Raises
    ------
    UsageError
        A name holds the separator or a control character, or two are the same.
    """
    ids = [name.split(end, 1)[0] if end else name for name in names]
    for name in ids:
        fits = separator not in name and not CONTROL.search(name)
        if not fits or name != name.strip() or not name:
            raise UsageError(f"format {format!r} cannot hold the name {name!r}")
    if len(set(ids)) < len(ids):
        raise UsageError(
            f"format {format!r} needs names that differ{_why(names, ids, end)}"
        )
    return ids


def _why(names: Sequence[str], ids: list[str], end: str | None) -> str:
    """Which two names are one, if only their beginnings are, and what helps."""
    first: dict[str, int] = {}
    number = next(k for k, id in enumerate(ids) if first.setdefault(id, k) != k)
    id, other = names[first[ids[number]]], names[number]
    if end is None or id == other:
        return ""
    return (
        f": it reads a name up to the first {end!r}, so {id!r} and {other!r} are both "
        f"{ids[number]!r}; keep what differs, as the accession number: "
        r"sed 's/^>[a-z]*|\([^|]*\)|.*/>\1/' IN > OUT"
    )
