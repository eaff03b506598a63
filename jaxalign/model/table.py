"""Many alignments as columns: numpy arrays, no object a pair."""

from dataclasses import dataclass, field, replace

import numpy as np

from jaxalign.errors import UsageError
from jaxalign.model import operations as ops
from jaxalign.model.alignment import Alignment
from jaxalign.model.alphabet import Sequences
from jaxalign.model.identity import denominator, ratio
from jaxalign.model.scoring import Scoring

OUTPUTS = ("score", "identity", "stats", "alignment")


@dataclass(frozen=True, eq=False)
class Table:
    """Results of many pairs, in input order.

    ``columns`` maps names to arrays of one length: always ``query`` and ``target``
    (int32, indices into ``queries`` and ``targets``) and ``score``; with
    ``output="identity"`` also ``max_identities``; with ``"stats"`` the spans,
    ``columns``, ``identities``, ``gap_openings`` and ``gaps`` (all int32) of the path;
    with ``"alignment"`` also ``operations`` (uint32 runs, flat) and their offsets.
    """

    columns: dict
    queries: Sequences
    targets: Sequences
    scoring: Scoring
    mode: str
    free_ends: frozenset = frozenset()
    implementation: str = ""
    info: dict = field(default_factory=dict)
    operations: np.ndarray | None = None
    operation_offsets: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.columns["score"])

    def __getitem__(self, name: str) -> np.ndarray:
        return self.columns[name]

    def row(self, index: int) -> dict:
        """One row as a dict, with names in place of indices."""
        row = {name: column[index].item() for name, column in self.columns.items()}
        row["query"] = self.queries.names[row["query"]]
        row["target"] = self.targets.names[row["target"]]
        return row

    def lengths(self):
        """(query lengths, target lengths) of every row, int64."""
        m = self.queries.lengths[self.columns["query"]]
        return m, self.targets.lengths[self.columns["target"]]

    def identity(self, kind: str = "alignment") -> np.ndarray:
        """Identity of every row over the denominator ``kind``, float64.

        ``nan`` where the denominator is 0. Counts are the path's ``identities``, or
        ``max_identities`` where no path was computed.
        """
        counts = self.columns.get("identities", self.columns.get("max_identities"))
        if counts is None:
            raise UsageError("no identities in a table of scores: use output='stats'")
        return ratio(counts, denominator(kind, self.columns, *self.lengths()))

    def filter(self, mask) -> "Table":
        """The rows where ``mask`` is true."""
        kept = np.flatnonzero(mask)
        columns = {name: column[kept] for name, column in self.columns.items()}
        if self.operations is None:
            return replace(self, columns=columns)
        runs, offsets = gather_runs(self.operations, self.operation_offsets, kept)
        return replace(
            self, columns=columns, operations=runs, operation_offsets=offsets
        )

    def runs(self, index: int) -> np.ndarray:
        """Run-length operations of one row."""
        if self.operations is None:
            raise UsageError("no paths in this table: use output='alignment'")
        start, end = self.operation_offsets[index : index + 2]
        return self.operations[start:end]

    def alignment(self, index: int) -> Alignment:
        """One row as an ``Alignment``."""
        row = self.row(index)
        query = self.queries.text(self.columns["query"][index])
        target = self.targets.text(self.columns["target"][index])
        spans = [row[name] for name in SPANS]
        return Alignment(
            query,
            target,
            row["score"],
            *spans,
            self.runs(index),
            self.scoring,
            self.mode,
            self.free_ends,
            row["query"],
            row["target"],
            self.implementation,
        )

    def cigar(self, index: int, eqx: bool = False) -> str:
        """CIGAR of one row."""
        if not eqx:
            return ops.cigar(self.runs(index))
        return self.alignment(index).cigar(eqx=True)

    def to_pandas(self):
        """``pandas.DataFrame`` with names in place of indices."""
        import pandas as pd

        return pd.DataFrame(self._named_columns())

    def to_arrow(self):
        """``pyarrow.Table``; names are dictionary-encoded (needs pyarrow)."""
        import pyarrow as pa

        columns = {name: pa.array(col) for name, col in self.columns.items()}
        for side, names in (("query", self.queries), ("target", self.targets)):
            columns[side] = pa.DictionaryArray.from_arrays(
                self.columns[side], pa.array(names.names, pa.string())
            )
        if self.operations is not None:
            columns["cigar"] = pa.array([self.cigar(i) for i in range(len(self))])
        return pa.table(columns)

    def _named_columns(self) -> dict:
        columns = dict(self.columns)
        for side, names in (("query", self.queries), ("target", self.targets)):
            columns[side] = np.array(names.names, object)[self.columns[side]]
        if self.operations is not None:
            columns["cigar"] = [self.cigar(i) for i in range(len(self))]
        return columns


def compact(table: Table) -> Table:
    """The same rows; of the targets only those that occur, in their order."""
    used, index = np.unique(table["target"], return_inverse=True)
    columns = table.columns | {"target": index.astype(np.int32)}
    return replace(table, columns=columns, targets=table.targets.take(used))


def joined(tables) -> Table:
    """The rows of tables of one kind, one after the other; the rest is the first's."""
    names = tables[0].columns
    columns = {name: np.concatenate([t[name] for t in tables]) for name in names}
    if tables[0].operations is None:
        return replace(tables[0], columns=columns)
    counts = [np.diff(table.operation_offsets) for table in tables]
    offsets = np.concatenate([[0], np.cumsum(np.concatenate(counts))])
    runs = np.concatenate([table.operations for table in tables])
    return replace(
        tables[0], columns=columns, operations=runs, operation_offsets=offsets
    )


SPANS = ("query_start", "query_end", "target_start", "target_end")


def gather_runs(runs, offsets, rows):
    """The ragged rows ``rows`` of (runs, offsets), in that order."""
    counts = np.diff(offsets)[rows]
    new = np.concatenate([[0], np.cumsum(counts)])
    index = np.arange(new[-1]) + np.repeat(offsets[rows] - new[:-1], counts)
    return runs[index], new
