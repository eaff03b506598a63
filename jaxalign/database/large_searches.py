# pyright: strict, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
"""The public function of searches with many queries: part by part."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Unpack

import numpy as np

from jaxalign import inputs
from jaxalign.database import api
from jaxalign.database.options import SearchOptions, StreamSearchKeywords
from jaxalign.errors import UsageError
from jaxalign.inputs import SetLike
from jaxalign.model.alphabet import Sequences
from jaxalign.model.numbers import check_whole
from jaxalign.model.profile import Profile, as_query
from jaxalign.model.scoring import Scoring, ScoringLike, as_scoring
from jaxalign.model.strands import strands_of
from jaxalign.model.table import Table
from jaxalign.pairs.jobs import share
from jaxalign.pairs.parts import query_ranges
from jaxalign.pairs.parts.query_ranges import Part
from jaxalign.signatures import with_options

PACKED = 4  # residues a byte of a compressed file, about


@with_options(SearchOptions)
def stream_search(
    queries: SetLike | Profile,
    database: SetLike,
    scoring: ScoringLike = None,
    **options: Unpack[StreamSearchKeywords],
) -> Iterator[tuple[Part, Table]]:
    """Search part by part, some queries at a time against the whole database.

    One below the other, the tables are what ``search`` returns; an index
    (``index_database``) is mapped once, FASTA is read anew for every part.

    Parameters
    ----------
    queries, database, scoring, top, unknown, progress, **options : as in ``search``
        The database cannot be standard input.
    skip, shard : as in ``stream_all``
    part_rows : int, optional
        Rows of a part at most, ``top`` counted for each query, unless a single query
        has more; 2^22 by default. Parts depend on the lengths of the queries, on
        ``top``, on the size of the database and on this, on nothing else.

    Yields
    ------
    Part
        ``index``, ``first`` and ``last``: which queries.
    Table
        Their hits, as of ``search``; ``query`` counts in all queries.

    Raises
    ------
    As ``search``.

    Examples
    --------
    >>> import jaxalign
    >>> database = [("a", "MKTAYIAKQR"), ("b", "GGGG"), ("c", "MKTAIAKQR")]
    >>> queries = ["MKTAYIA", "GGG"]
    >>> for part, hits in jaxalign.stream_search(queries, database, part_rows=300):
    ...     print(part.index, hits["query"].tolist(), hits["score"].tolist())
    0 [0, 0] [34, 19]
    1 [1] [18]
    """
    return hits_by_parts(queries, database, scoring, SearchOptions(**options))


def hits_by_parts(
    queries: SetLike | Profile,
    database: SetLike,
    scoring: ScoringLike,
    options: SearchOptions,
) -> Iterator[tuple[Part, Table]]:
    """``stream_search``, its options packed."""
    wanted, scoring = as_query(queries, as_scoring(scoring, by_position=True))
    encoded = inputs.sets(scoring, wanted, unknown=options.unknown)[0]
    sequences = api.in_memory(database, scoring)
    parts = parts_search(encoded, sequences, database, options.top, options.part_rows)
    parts = [x for x in share(parts, options.shard) if x.index not in options.skip]
    source = database if sequences is None else sequences
    return _parts(encoded, source, scoring, parts, options)


def _parts(
    queries: Sequences,
    database: Any,
    scoring: Scoring,
    parts: list[Part],
    options: SearchOptions,
) -> Iterator[tuple[Part, Table]]:
    before, progress = 0, options.progress
    known = isinstance(database, Sequences)
    strands = strands_of(options.strand, scoring, options.mode) or (1,)
    total = sum(part.cells for part in parts) * len(strands) if known else None
    for part in parts:
        tell = progress and _teller(progress, before, total)
        rows = queries.between(part.first, part.last)
        hits = api.hits_of(rows, database, scoring, replace(options, progress=tell))
        before += hits.info["cells"]
        columns = hits.columns | {"query": hits["query"] + np.int32(part.first)}
        yield part, replace(hits, columns=columns, queries=queries)


def _teller(
    progress: Callable[[int, int | None], object], before: int, total: int | None
) -> Callable[[int, int | None], object]:
    return lambda cells, _all: progress(before + cells, total)


def parts_search(
    queries: Sequences,
    sequences: Sequences | None,
    database: Any,
    top: int,
    part_rows: int | None = None,
) -> list[Part]:
    """The parts that ``stream_search`` makes.

    sequences : the database where it is in memory or mapped, else None
    """
    check_whole("top", top, "1 or more hits are needed", optional=False)
    residues = _size(database) if sequences is None else int(sequences.lengths.sum())
    rows = query_ranges.checked(part_rows) or query_ranges.PART_ROWS
    return query_ranges.cut_search(queries.lengths, int(top), residues, rows)


def _size(path: Any) -> int:
    """Residues of a FASTA file, about, without reading it."""
    if not os.path.isfile(path):
        raise UsageError(f"{path}: parts need a file, which can be read again")
    packed = os.fspath(path).endswith((".gz", ".bz2", ".xz"))
    return os.path.getsize(path) * (PACKED if packed else 1)
