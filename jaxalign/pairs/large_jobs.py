"""The public functions of jobs too large for one table: all pairs of a set in parts."""

from collections.abc import Iterator

from jaxalign import inputs
from jaxalign.model.scoring import as_scoring
from jaxalign.model.table import Table
from jaxalign.pairs.options import make_task, stream, watched_in
from jaxalign.pairs.parts import query_ranges
from jaxalign.pairs.parts.query_ranges import Part
from jaxalign.runtime import pipeline

WRITERS = pipeline.WRITERS  # parts that a caller of ``stream_all`` may write at a time


def stream_all(
    sequences,
    scoring=None,
    *,
    include_self=False,
    skip=(),
    shard=None,
    part_rows=None,
    cluster=None,
    **options,
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
    scoring = as_scoring(scoring)
    (sequences,) = inputs.sets(scoring, sequences)
    watched, options = watched_in(options)
    task = make_task("all", sequences, sequences, scoring, include_self, **options)
    some = share(query_ranges.cut_of(task, part_rows), shard)
    some = [part for part in some if part.index not in skip]
    return stream(task, some, watched, cluster)


def parts_all(sequences, *, include_self=False, part_rows=None) -> list[Part]:
    """The parts that ``stream_all`` makes of some ``Sequences``."""
    return query_ranges.cut(sequences.lengths, include_self, part_rows)


def share(some: list[Part], shard=None) -> list[Part]:
    """The parts of a shard (k, n); all where it is None."""
    return some if shard is None else query_ranges.shard(some, *shard)
