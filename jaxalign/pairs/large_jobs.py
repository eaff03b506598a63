# pyright: strict, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
"""The public functions of jobs too large for one table: all pairs of a set in parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Unpack

from jaxalign import inputs
from jaxalign.inputs import SetLike
from jaxalign.model.alphabet import Sequences
from jaxalign.model.scoring import ScoringLike, as_scoring
from jaxalign.model.table import Table
from jaxalign.pairs.jobs import stream
from jaxalign.pairs.options import PairOptions, StreamKeywords, make_task
from jaxalign.pairs.parts import query_ranges
from jaxalign.pairs.parts.query_ranges import Part
from jaxalign.pairs.plan import Task
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


def parts_of(
    sequences: SetLike, scoring: ScoringLike, options: PairOptions
) -> Iterator[tuple[Part, Table]]:
    """``stream_all``, its options packed."""
    scoring = as_scoring(scoring)
    (sequences,) = inputs.sets(scoring, sequences)
    task = make_task("all", sequences, sequences, scoring, options)
    return stream_parts(task, query_ranges.cut_of(task, options.part_rows), options)


def stream_parts(
    task: Task, parts: Sequence[Part], options: PairOptions
) -> Iterator[tuple[Part, Table]]:
    """Those parts of a task, or of a plan by parts, that the options ask for."""
    parts = share(list(parts), options.shard)
    parts = [part for part in parts if part.index not in options.skip]
    return stream(task, parts, options)


def parts_all(
    sequences: Sequences, *, include_self: bool = False, part_rows: int | None = None
) -> list[Part]:
    """The parts that ``stream_all`` makes of some ``Sequences``."""
    return query_ranges.cut(sequences.lengths, include_self, part_rows)


def share(parts: list[Part], shard: tuple[int, int] | None = None) -> list[Part]:
    """The parts of a shard (k, n); all where it is None."""
    return parts if shard is None else query_ranges.shard(parts, *shard)
