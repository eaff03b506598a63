# pyright: strict, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
"""The public functions of jobs too large for one table: all pairs of a set in parts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Unpack

from jaxalign.inputs import SetLike
from jaxalign.model.scoring import ScoringLike
from jaxalign.model.table import Table
from jaxalign.pairs.jobs import parts_all, parts_of, share, stream_parts
from jaxalign.pairs.options import PairOptions, StreamKeywords
from jaxalign.pairs.parts.query_ranges import Part
from jaxalign.runtime import pipeline
from jaxalign.signatures import with_options

WRITERS = pipeline.WRITERS  # parts that a caller of ``stream_all`` may write at a time


@with_options(PairOptions)
def stream_all(
    sequences: SetLike, scoring: ScoringLike = None, **options: Unpack[StreamKeywords]
) -> Iterator[tuple[Part, Table]]:
    """Align all pairs of a set, part by part: for results that memory cannot hold.

    The next parts are planned and computed while the caller has one. One below the
    other, the tables are what ``align_all`` returns.

    Parameters
    ----------
    include_self, cluster, **options : as in ``align_all``
    skip : collection of int
        Parts that are not wanted, because they are there already.
    shard : (int, int), optional
        (k, n): only the k-th of n shares of the parts, from 1; each part is in one
        share, and shares are alike in cells.
    part_rows : int, optional
        Rows of a part at most, unless a single query has more, and half as many more of
        the last; by default 2^22, of a smaller job a thirty-second, of 64 queries or
        more. Parts depend on the lengths of the sequences and on this, on nothing else.

    Yields
    ------
    Part
        ``index``, and ``start`` and ``stop``: which rows of the whole result, counted
        before filters.
    Table
        Those rows, or what the filters keep of them.

    Examples
    --------
    >>> import jaxalign
    >>> sequences = ["MKTAYIA", "MKTAIA", "MRV"]
    >>> for part, table in jaxalign.stream_all(sequences, part_rows=1):
    ...     print(part.index, part.start, part.stop, table["score"].tolist())
    0 0 2 [16, -7]
    1 2 3 [-6]
    """
    return parts_of(sequences, scoring, PairOptions(**options))


__all__ = ["WRITERS", "parts_all", "share", "stream_all", "stream_parts"]
