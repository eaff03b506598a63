"""The words that options take, as types; nothing else is imported for them."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

Mode = Literal["global", "semiglobal", "local"]
FreeEnd = Literal["query_start", "query_end", "target_start", "target_end"]
Output = Literal["score", "identity", "stats", "alignment"]
Identity = Literal[
    "alignment", "full", "aligned", "shorter", "longer", "mean", "query", "target"
]
Coverage = Literal["both", "query", "target", "shorter"]
Strand = Literal["both", "plus", "minus"]
Statistics = Literal["published", "fitted"]
UnknownLetters = Literal["error", "X", "mask"]
RepeatedNames = Literal["error", "number"]
GapModel = Literal["quasi-natural", "natural", "linear"]


@dataclass(frozen=True)
class Edges:
    """Pairs of sequences with a value, as evidence beside alignments.

    Parameters
    ----------
    table : path, or (names, names, values)
        A tsv, csv or Parquet file, plain or compressed: two names and values per row. A
        pair is listed once or several times, in either direction: one row that passes
        is enough.
    at_least, at_most : float
        The cut, one of the two: a row passes at this value too.
    column : str or int, optional
        The title of the column of values, or its number from 1. By default the third.
    join : {"or", "and"}
        ``or``: a pair that passes is linked. ``and``: no other pair is linked by its
        alignment.
    unknown : {"error", "count"}
        What to do with rows that name no sequence of the set: refuse or count them.

    Examples
    --------
    >>> import jaxalign
    >>> some = {"a": "MKTAYIA", "b": "WWPHGE", "c": "MRVLLK"}
    >>> edges = jaxalign.Edges((["a"], ["c"], [0.8]), at_least=0.5)
    >>> jaxalign.cluster(some, min_identity=0.9, edges=[edges]).labels.tolist()
    [0, 1, 0]
    """

    table: Any
    at_least: float | None = None
    at_most: float | None = None
    column: str | int | None = None
    join: Literal["or", "and"] = "or"
    unknown: Literal["error", "count"] = "error"

    def __repr__(self) -> str:
        table = self.table
        if isinstance(table, (tuple, list)) and table:
            table = f"{len(table[-1]):,} pairs"
        cut = f"at_least={self.at_least}"
        if self.at_least is None:
            cut = f"at_most={self.at_most}"
        return f"Edges({str(table)!r:.200}, {cut}, join={self.join!r})"


class EndKeywords(TypedDict, total=False):
    """Options for free end gaps of pair alignment."""

    mode: Mode
    free_ends: Collection[FreeEnd] | None
