"""Many alignments as columns: numpy arrays, no object a pair.

``lettered`` makes a table of alignments by position, and ``by_strands`` and
``along_plus`` are for both strands of queries: as sequences, and as rows that say
their strand.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, get_args, overload

import numpy as np

from jaxalign.errors import UsageError
from jaxalign.model import WRITERS, frames, operations, show
from jaxalign.model.alignment import SPANS, Alignment
from jaxalign.model.alphabet import (
    Sequences,
    first_track,
    from_parts,
    gather_runs,
    ranks,
    row_numbers,
)
from jaxalign.model.choices import Output
from jaxalign.model.identity import denominator, ratio, usual_identity
from jaxalign.model.scoring import Scoring
from jaxalign.model.strands import (
    MINUS,
    PLUS,
    complement_codes,
    other_strand,
    reverse_complement,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


OUTPUTS: tuple[str, ...] = get_args(Output)
BLOCK = 2**16  # rows made into Python objects at a time, by an iteration
STEPS = 2**22  # of paths whose letters are compared at a time


@dataclass(frozen=True, eq=False)
class Table:
    """Results of many pairs, in input order.

    ``columns`` maps names to arrays (rows,). It always has ``query`` and ``target``
    (int32, indices into ``queries`` and ``targets``) and ``score``; with
    ``output="identity"`` also ``max_identities``; with ``"stats"`` the spans,
    ``columns``, ``identities``, ``gap_openings`` and ``gaps`` of the path (all int32).
    With ``"alignment"`` the table also has ``operations`` (uint32 runs, flat) and their
    offsets. If strands were considered, it has ``strand``, 1 or -1 (int8), and query
    spans count along the plus strand.

    ``len(table)`` counts the rows, and a ``for`` loop yields each like ``row``.
    ``table["score"]`` is a column, ``table[3]`` a row; ``table[10:20]`` and
    ``table[mask]`` are tables. It is a ``Result`` (``jaxalign.model.frames``).
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
    cuts: tuple[float, ...] = ()  # that rows were kept by: no text is rounded across

    def __len__(self) -> int:
        return len(self.columns["score"])

    @overload
    def __getitem__(self, key: str) -> np.ndarray: ...
    @overload
    def __getitem__(self, key: int) -> dict: ...
    @overload
    def __getitem__(self, key: slice | list | np.ndarray) -> "Table": ...
    def __getitem__(self, key: str | int | slice | list | np.ndarray):
        """A column by name, a row by number, a table by a slice or as ``filter``."""
        if isinstance(key, str):
            return self.columns[key]
        if isinstance(key, slice):
            return self._between(key)
        if isinstance(key, (int, np.integer)) and not isinstance(key, bool):
            return self.row(int(key))
        return self.filter(key)

    def __iter__(self) -> Iterator[dict]:
        """The rows, each as ``row`` gives it."""
        for start in range(0, len(self), BLOCK):
            part = self[start : start + BLOCK]
            lists = {name: column.tolist() for name, column in part.columns.items()}
            for side, names in (("query", self.queries), ("target", self.targets)):
                lists[side] = [names.names[k] for k in lists[side]]
            for values in zip(*lists.values(), strict=True):
                yield dict(zip(lists, values, strict=True))

    def row(self, index: int) -> dict:
        """Return row ``index`` as a dict, with names in place of indices.

        Raises
        ------
        IndexError
            If there is no such row.
        """
        row = {name: column[index].item() for name, column in self.columns.items()}
        row["query"] = self.queries.names[row["query"]]
        row["target"] = self.targets.names[row["target"]]
        return row

    def lengths(self):
        """Return (query lengths, target lengths) of every row, int64 (rows,) each."""
        m = self.queries.lengths[self.columns["query"]]
        return m, self.targets.lengths[self.columns["target"]]

    def identity(self, kind: str = "alignment") -> np.ndarray:
        """Compute the identity of every row, float64 (rows,), 0 to 1.

        ``kind`` is the denominator; where it is 0, the identity is ``nan``. The
        numerator is ``identities`` of the path, or ``max_identities`` if no path was
        computed.
        """
        counts = self.columns.get("identities", self.columns.get("max_identities"))
        if counts is None:
            raise UsageError("no identities in a table of scores: use output='stats'")
        return ratio(counts, denominator(kind, self.columns, *self.lengths()))

    def filter(self, which: "ArrayLike") -> "Table":
        """Select rows, with their paths.

        Parameters
        ----------
        which : bool (rows,), or integers
            A mask with one value per row; or the indices of rows, in the order wanted,
            negative ones counted from the end.

        Returns
        -------
        Table

        Raises
        ------
        UsageError
            If a mask has another length, a row does not exist, or ``which`` is neither
            bool nor integer.

        Examples
        --------
        >>> import jaxalign
        >>> table = jaxalign.align_all(["MKTAYIA", "MKTAIA", "MRV"])
        >>> table.filter([2, 0])["score"].tolist()
        [-6, 16]
        >>> len(table.filter(table["score"] > 0))
        1
        """
        rows = row_numbers(which, len(self))
        columns = {name: column[rows] for name, column in self.columns.items()}
        if self.operations is None or self.operation_offsets is None:
            return replace(self, columns=columns)
        runs, offsets = gather_runs(self.operations, self.operation_offsets, rows)
        return replace(
            self, columns=columns, operations=runs, operation_offsets=offsets
        )

    def runs(self, index: int) -> np.ndarray:
        """Return the run-length operations of row ``index``, uint32."""
        runs, offsets = self._paths()
        index = range(len(self))[index]
        start, end = offsets[index : index + 2]
        return runs[start:end]

    def alignment(self, index: int) -> Alignment:
        """Return row ``index`` as an ``Alignment``; if ``strand`` is -1, that of the
        reverse complement of the query."""
        runs, row = self.runs(index), self.row(index)
        query = self.queries.text(self.columns["query"][index])
        target = self.targets.text(self.columns["target"][index])
        spans = [row[name] for name in SPANS]
        if row.get("strand") == MINUS:
            query = other_strand(query, self.scoring.alphabet)
            spans[:2] = len(query) - spans[1], len(query) - spans[0]
        return Alignment(
            query=query,
            target=target,
            score=row["score"],
            **dict(zip(SPANS, spans, strict=True)),
            operations=runs,
            scoring=self.scoring,
            mode=self.mode,
            free_ends=self.free_ends,
            query_name=row["query"],
            target_name=row["target"],
            implementation=self.implementation,
            strand=row.get("strand"),
            states=self._states(index),
        )

    def _states(self, index: int) -> tuple[str, str] | None:
        """The second tracks of a row, None where there is one."""
        if self.scoring.tracks is None:
            return None
        at = self.columns["query"][index], self.columns["target"][index]
        return self.queries.states(at[0]), self.targets.states(at[1])

    def alignments(self) -> Iterator[Alignment]:
        """Yield every row as an ``Alignment``."""
        return map(self.alignment, range(len(self)))

    @overload
    def cigar(self, index: None = None, eqx: bool = False) -> list[str]: ...
    @overload
    def cigar(self, index: int, eqx: bool = False) -> str: ...
    def cigar(self, index: int | None = None, eqx: bool = False):
        """Return the CIGAR of one row, or without an ``index`` a list of all.

        ``eqx`` writes ``=`` and ``X`` instead of M."""
        if index is None:
            table = self.with_matches() if eqx else self
            table._paths()
            return [table.cigar(k) for k in range(len(self))]
        if not eqx:
            return operations.cigar(self.runs(index))
        return self.alignment(index).cigar(eqx=True)

    def with_matches(self) -> "Table":
        """Return the table with ``=`` (equal letters) and ``X`` in place of M in its
        paths, as SAM and PAF allow."""
        paths, starts = self._paths()
        sizes = np.cumsum(paths >> 4, dtype=np.int64)
        ends = np.concatenate([[0], sizes])[starts]
        cuts = np.searchsorted(ends, np.arange(STEPS, ends[-1], STEPS))
        bounds = np.unique([0, *cuts.tolist(), len(self)]).tolist()
        runs, counts = [np.zeros(0, np.uint32)], [np.zeros(1, np.int64)]
        for part in (self[a:b] for a, b in pairwise(bounds)):
            sides = part._covered("query"), part._covered("target")
            split, offsets = operations.split_matches(*part._paths(), *sides)
            runs.append(split)
            counts.append(np.diff(offsets))
        return replace(
            self,
            operations=np.concatenate(runs),
            operation_offsets=np.cumsum(np.concatenate(counts)),
        )

    def _covered(self, side: str) -> np.ndarray:
        """Codes of the residues of a side that the paths cover, uint8, row after row;
        of the minus strand those of the reverse complement."""
        data = self.queries if side == "query" else self.targets
        first, last = (
            data.starts[self.columns[side]] + self.columns[f"{side}_{end}"]
            for end in ("start", "end")
        )
        counts = last - first
        places = ranks(counts)
        minus = np.zeros(len(self), bool)
        if side == "query" and "strand" in self.columns:
            minus = self.columns["strand"] == MINUS
        if not minus.any():
            return first_track(data.codes[np.repeat(first, counts) + places])
        minus, first, last = (np.repeat(x, counts) for x in (minus, first, last))
        codes = data.codes[np.where(minus, last - 1 - places, first + places)]
        return np.where(minus, complement_codes(data.alphabet)[codes], codes)

    def rows(self) -> list[tuple[str, str]]:
        """Return the two gapped rows of every alignment; needs
        ``output="alignment"``."""
        self._paths()
        return [alignment.rows() for alignment in self.alignments()]

    def rescore(self) -> np.ndarray:
        """Recompute the score of every path; needs ``output="alignment"``."""
        self._paths()
        scores = [alignment.rescore() for alignment in self.alignments()]
        return np.array(scores, self.columns["score"].dtype)

    def __str__(self) -> str:
        lines = show.lines_of(*self._cells())
        return "\n".join((self._heading(), "", *lines))

    def __repr__(self) -> str:
        return f"<Table of {self._heading()}>"

    def _repr_html_(self) -> str:
        return show.html_of(self._heading(), *self._cells())

    def write(
        self,
        path: str | os.PathLike[str],
        format: str | None = None,
        columns: Sequence[str] | None = None,
        identity: str | None = None,
        force: bool = False,
    ) -> None:
        """Write the rows to a file.

        The file appears under its name when it is complete; a failure leaves nothing
        behind.

        Parameters
        ----------
        path : path or "-"
            The output file. "-" is standard output, with tsv as its default format.
        format : str, optional
            "tsv", "csv", "m8", "sam", "paf", "maf", "fasta", "pair" or "parquet"; by
            default from the suffix of `path`. "graphpart", "hestia" and "datasail" have
            no suffix. Text formats escape control characters in names; SAM and the
            formats of splitters refuse them, and Parquet keeps names as they are.
        columns : sequence of str, optional
            For tsv, csv and parquet: columns of the table (0-based, half-open spans),
            or those of BLAST and MMseqs2 (spans from 1, inclusive). `evalue` and `bits`
            are nan if unknown.
        identity : str, optional
            The identity definition of the default columns and of `fident`; `pident` is
            always identities over alignment columns, as in BLAST. By default
            "alignment"; after ``output="identity"``, which has no alignment columns,
            "longer" for end-to-end alignments and "shorter" otherwise.
        force : bool, default False
            Replace an existing file.

        Raises
        ------
        UsageError
            If a format, suffix or column is unknown, the table lacks the data for it,
            the file exists and `force` is false, or the folder is missing.

        Examples
        --------
        >>> import jaxalign
        >>> table = jaxalign.align_all(["MKTAYIA", "MKTAIA"])
        >>> table.write("-", columns=["query", "target", "score"])
        query   target  score
        seq1    seq2    16
        """
        write = import_module(WRITERS["Table"]).write
        write(self, path, format, columns, self._kind(identity), force)

    def to_pandas(
        self, columns: Sequence[str] | None = None, identity: str | None = None
    ) -> Any:
        """Return a ``pandas.DataFrame`` with names in place of indices (needs pandas).

        Parameters
        ----------
        columns : sequence of str, optional
            Names of columns, as in ``write``. By default the columns of the table and
            the CIGARs of its paths; after ``output="identity"`` also the identity and
            both lengths, in residues.
        identity : str, optional
            The identity definition of the default columns and of `fident`, as in
            ``write``.

        Raises
        ------
        UsageError
            pandas is missing, or the table has no data for a column.

        Examples
        --------
        >>> import jaxalign
        >>> table = jaxalign.align_all(["MKTAYIA", "MKTAIA"], output="identity")
        >>> table.to_pandas(["identity_longer", "query_length"]).values.tolist()
        [[0.8571428571428571, 7.0]]
        """
        return frames.to_pandas(self._values(columns, identity, self._names))

    def to_polars(
        self, columns: Sequence[str] | None = None, identity: str | None = None
    ) -> Any:
        """Return a ``polars.DataFrame`` with names in place of indices (needs polars).

        Parameters
        ----------
        columns, identity
            As in ``to_pandas``.

        Raises
        ------
        UsageError
            polars is missing, or the table has no data for a column.
        """
        return frames.to_polars(self._values(columns, identity, self._names))

    def to_arrow(
        self, columns: Sequence[str] | None = None, identity: str | None = None
    ) -> Any:
        """Return a ``pyarrow.Table`` with dictionary-encoded names (needs pyarrow).

        Parameters
        ----------
        columns, identity
            As in ``to_pandas``.

        Raises
        ------
        UsageError
            pyarrow is missing, or the table has no data for a column.
        """
        pa = frames.pyarrow()

        def coded(side: str) -> Any:
            names = self.queries.names if side == "query" else self.targets.names
            texts = pa.array(names, pa.string())
            return pa.DictionaryArray.from_arrays(self.columns[side], texts)

        values = self._values(columns, identity, coded)
        return frames.to_arrow(
            {
                name: pa.array(x, pa.string()) if isinstance(x, list) else x
                for name, x in values.items()
            }
        )

    def _values(
        self,
        columns: Sequence[str] | None,
        identity: str | None,
        names: Callable[[str], Any],
    ) -> dict[str, Any]:
        """Values of columns, with ``names`` of a side in place of its indices."""
        values = import_module(WRITERS["Table columns"]).frame_values
        return values(self, columns, self._kind(identity), names)

    def _kind(self, identity: str | None) -> str:
        """The identity definition that is meant where none is named."""
        if identity is None and "max_identities" in self.columns:
            return usual_identity(self.mode, self.free_ends)
        return identity or "alignment"

    def _names(self, side: str) -> np.ndarray:
        index = self.columns[side]
        texts = self.queries.names if side == "query" else self.targets.names
        # A mapped database may have many more names than the rows use.
        if len(index) < len(texts):
            return np.array([texts[k] for k in index.tolist()], object)
        return np.array(texts, object)[index]

    def _between(self, rows: slice) -> "Table":
        """Slice rows; a contiguous slice is a view."""
        start, stop, step = rows.indices(len(self))
        if step != 1:
            return self.filter(np.arange(len(self))[rows])
        stop = max(start, stop)
        columns = {name: column[start:stop] for name, column in self.columns.items()}
        if self.operations is None:
            return replace(self, columns=columns)
        offsets = self.operation_offsets[start : stop + 1]
        runs = self.operations[offsets[0] : offsets[-1]]
        offsets = offsets - offsets[0]
        return replace(
            self, columns=columns, operations=runs, operation_offsets=offsets
        )

    def _paths(self) -> tuple[np.ndarray, np.ndarray]:
        """Operations of all rows, and their offsets."""
        if self.operations is None or self.operation_offsets is None:
            raise UsageError("no paths in this table: use output='alignment'")
        return self.operations, self.operation_offsets

    def _heading(self) -> str:
        return (
            f"{show.counted(len(self), 'alignment')}: {len(self.queries):,} x "
            f"{len(self.targets):,} sequences; {self.mode}; {self.scoring}"
        )

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        """Heading and rows as texts, a row of dots where rows are left out."""
        heading = list(self.columns)
        rows = (None if k is None else self.row(k) for k in show.some_rows(len(self)))
        dots = ["..."] * len(heading)
        return heading, [
            dots if row is None else list(map(show.cell, row.values())) for row in rows
        ]


def compact(table: Table) -> Table:
    """Drop targets that no row refers to, keeping their order."""
    used, index = np.unique(table["target"], return_inverse=True)
    columns = table.columns | {"target": index.astype(np.int32)}
    return replace(table, columns=columns, targets=table.targets.take(used))


def join(tables: Iterable[Table], info: dict) -> Table:
    """Concatenate one or more tables of the same sequences."""
    tables = list(tables)
    columns = {name: np.concatenate([t[name] for t in tables])
             for name in tables[0].columns}  # fmt: skip
    named = info.get("implementation", tables[0].implementation)
    table = replace(tables[0], columns=columns, info=info, implementation=named)
    if table.operations is None:
        return table
    paths: list[Any] = [(t.operations, t.operation_offsets) for t in tables]
    runs = np.concatenate([runs for runs, _ in paths])
    counts = np.concatenate([np.diff(offsets) for _, offsets in paths])
    offsets = np.concatenate([[0], np.cumsum(counts)])
    return replace(table, operations=runs, operation_offsets=offsets)


class Steps(NamedTuple):
    """The steps of many paths, one after the other, (steps,) each.

    ``row`` is the row of the table and ``kind`` M, I or D. ``query`` and ``target`` are
    the residues of the step; of a side that it does not consume, the one before it.
    """

    row: np.ndarray
    kind: np.ndarray
    query: np.ndarray
    target: np.ndarray


def steps_of(table: Table) -> Steps:
    """Expand the steps of all paths of a table."""
    runs, offsets = (np.asarray(x) for x in table._paths())
    runs = runs[offsets[0] : offsets[-1]]
    row = np.repeat(np.arange(len(table)), np.diff(offsets))
    length, first = (runs >> 4).astype(np.int64), (offsets[:-1] - offsets[0])[row]
    kind, number = operations.expand(runs), np.arange(length.sum())
    steps_before = length.cumsum() - length

    def residues(skipping: int, start: np.ndarray) -> np.ndarray:
        """The last residue of a side at each step; ``skipping`` does not consume it."""
        consumed = (runs & 15) != skipping
        used = np.where(consumed, length, 0)
        before = used.cumsum() - used
        at = start.astype(np.int64)[row] + before - before[first]
        at = np.repeat(at - np.where(consumed, steps_before, 1), length)
        return np.add(at, number, out=at, where=kind != skipping)

    query = residues(operations.D, table["query_start"])
    target = residues(operations.I, table["target_start"])
    return Steps(np.repeat(row, length), kind, query, target)


COUNTS = ("identities", "columns", "gap_openings", "gaps")


def lettered(
    alignments: Sequence[Alignment],
    queries: Sequences,
    targets: Sequences,
    scoring: Scoring,
    mode: str,
) -> Table:
    """Build a table of alignments with any scores and the letters of two sets.

    alignments : of sequences with the names of ``queries`` and ``targets``. Their own
        letters do not count.
    scoring : of letters and identities
    mode : of all alignments
    """
    places = [
        {name: k for k, name in enumerate(side.names)} for side in (queries, targets)
    ]
    texts = queries.texts(), targets.texts()
    at = np.array(
        [(places[0][x.query_name], places[1][x.target_name]) for x in alignments],
        np.int32,
    ).reshape(-1, 2)
    rows = [
        replace(x, query=texts[0][i], target=texts[1][j])
        for x, (i, j) in zip(alignments, at.tolist(), strict=True)
    ]
    columns = {"query": at[:, 0], "target": at[:, 1]}
    columns["score"] = np.array([x.score for x in rows], float)
    for name in (*SPANS, *COUNTS):
        columns[name] = np.array([getattr(x, name) for x in rows], np.int32)
    runs = [x.operations for x in rows]
    offsets = np.concatenate([[0], np.cumsum([len(run) for run in runs])])
    return Table(
        columns=columns,
        queries=queries,
        targets=targets,
        scoring=scoring,
        mode=mode,
        free_ends=alignments[0].free_ends if alignments else frozenset(),
        implementation="scored",
        operations=np.concatenate([np.zeros(0, np.uint32), *runs]).astype(np.uint32),
        operation_offsets=offsets.astype(np.int64),
    )


def by_strands(queries: Sequences, strands: tuple[int, ...]) -> Sequences:
    """Concatenate the queries of each strand, plus strand first."""
    if strands == (PLUS,):
        return queries
    minus = reverse_complement(queries)
    if strands == (MINUS,):
        return minus
    sets = queries, minus
    parts = [sequences[k] for sequences in sets for k in range(len(sequences))]
    return from_parts((*queries.names, *queries.names), parts, queries.alphabet)


def along_plus(table: Table, queries: Sequences, strand: np.ndarray) -> Table:
    """Map rows back to the original queries and add a column ``strand``.

    Spans of a query count along its plus strand; operations stay those of the strand
    that is aligned, along the target.

    table : of either strand of each query, ``query`` an index into ``queries``
    strand : int8 (rows,), 1 or -1
    """
    columns = table.columns | {"strand": strand}
    if "query_start" in columns:
        m = queries.lengths[columns["query"]].astype(np.int32)
        start, end = columns["query_start"], columns["query_end"]
        columns["query_start"] = np.where(strand == MINUS, m - end, start)
        columns["query_end"] = np.where(strand == MINUS, m - start, end)
    return replace(table, columns=columns, queries=queries)
