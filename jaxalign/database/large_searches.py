"""The public function of searches with many queries: part by part."""

import os
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from jaxalign.database import api
from jaxalign.errors import UsageError
from jaxalign.model.numbers import check_whole
from jaxalign.model.scoring import as_scoring
from jaxalign.model.table import Table
from jaxalign.pairs.large_jobs import share
from jaxalign.pairs.parts import query_ranges
from jaxalign.pairs.parts.query_ranges import Part

PACKED = 4  # residues a byte of a compressed file, about


def stream_search(
    queries,
    database,
    scoring=None,
    *,
    top=api.TOP,
    unknown="error",
    skip=(),
    shard=None,
    part_rows=None,
    progress=None,
    **options,
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
    scoring = as_scoring(scoring)
    queries = api.read_queries(queries, scoring, unknown)
    held = api.in_memory(database, scoring)
    some = share(parts_search(queries, held, database, top, part_rows), shard)
    some = [part for part in some if part.index not in skip]
    source = database if held is None else held
    options |= {"top": top, "unknown": unknown}
    return _parts(queries, source, scoring, some, progress, options)


def _parts(queries, database, scoring, some, progress, options):
    before = 0
    total = sum(part.cells for part in some) if hasattr(database, "lengths") else None
    for part in some:
        tell = progress and _teller(progress, before, total)
        few = queries.between(part.first, part.last)
        found = api.search(few, database, scoring, progress=tell, **options)
        before += found.info["cells"]
        columns = found.columns | {"query": found["query"] + np.int32(part.first)}
        yield part, replace(found, columns=columns, queries=queries)


def _teller(progress, before, total):
    return lambda done, _all: progress(before + done, total)


def parts_search(queries, held, database, top, part_rows=None) -> list[Part]:
    """The parts that ``stream_search`` makes.

    held : the database where it is in memory or mapped, else None
    """
    check_whole("top", top, "1 or more hits are needed", optional=False)
    residues = _size(database) if held is None else int(held.lengths.sum())
    rows = query_ranges.checked(part_rows) or query_ranges.ROWS
    return query_ranges.cut_search(queries.lengths, int(top), residues, rows)


def _size(path) -> int:
    """Residues of a FASTA file, about, without reading it."""
    if not os.path.isfile(path):
        raise UsageError(f"{path}: parts need a file, which can be read again")
    packed = os.fspath(path).endswith((".gz", ".bz2", ".xz"))
    return os.path.getsize(path) * (PACKED if packed else 1)
