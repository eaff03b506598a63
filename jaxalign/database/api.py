# pyright: strict, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
"""The public functions of database search: each a numbered straight line."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Unpack

import numpy as np

from jaxalign import inputs
from jaxalign.database import fitted, pieces
from jaxalign.database.hits import (
    aligned,
    best_of_strands,
    rows,
    scan,
    with_room,
    with_strands,
)
from jaxalign.database.options import pair_options
from jaxalign.errors import UsageError
from jaxalign.inputs import SetLike
from jaxalign.io import encoded_database, fasta, output
from jaxalign.keywords import IndexKeywords, SearchKeywords, StreamSearchKeywords
from jaxalign.model.alphabet import Alphabet, Reading, Sequences, from_parts, reading_of
from jaxalign.model.numbers import check_whole
from jaxalign.model.profile import Profile, as_query
from jaxalign.model.scoring import Scoring, ScoringLike, as_scoring
from jaxalign.model.strands import strands_of
from jaxalign.model.table import Table, by_strands
from jaxalign.options import SearchOptions, SearchProgress
from jaxalign.pairs import part_stream
from jaxalign.pairs.jobs import share
from jaxalign.pairs.options import make_task
from jaxalign.pairs.part_stream import Part
from jaxalign.signatures import with_options


@with_options(SearchOptions)
def search(
    queries: SetLike | Profile,
    database: SetLike,
    scoring: ScoringLike = None,
    **options: Unpack[SearchKeywords],
) -> Table:
    """Align every query with every sequence of a database, and report the best.

    Nothing is filtered or sampled: every score is computed. Only the best of each query
    leave the device, and only those are aligned again with their paths.

    Parameters
    ----------
    queries : path, mapping, iterable, Sequences, flat ``(codes, offsets)`` or Profile
        A file is read whole. Of a ``Profile`` the consensus stands in the result, and
        of the scoring the gap costs count.
    database : path, mapping, iterable, Sequences or flat ``(codes, offsets)``
        A path is an index (``index_database``) or FASTA, plain or gz, bz2, xz, zst;
        FASTA is read in blocks and never held whole.
    scoring : Scoring, or the name or file of a matrix, optional
    top : int
        Hits of a query at most.
    mode : {"local", "global", "semiglobal"}, default "local"
        In local mode a sequence without a positive score is no hit.
    align_top : bool
        Whether to align the hits; without, the table has scores alone.
    strand : {"both", "plus", "minus"}, optional
        Of nucleotides: which strands of the queries are aligned. Then the table has a
        column ``strand``, 1 or -1, spans count along the plus strands, and the path of
        a row of -1 is that of the reverse complement of its query. By default
        ``blastn``'s scoring in local mode means both, and any other plus.
    statistics : {"published", "fitted"}
        Where lambda and K of bits and E-values come from: NCBI's table, or a fit to
        the scores of each query with a sample of this database, in local mode. Then
        ``table.info`` has ``statistics`` = "fitted", ``lambda`` and ``K``, one a query,
        and ``fitted_to``: ``database``; ``shuffled``, sequences of the database with
        their letters in random orders, where too many are related to the query; or
        ``none`` where these say nothing, and bits and E-values are nan.
    unknown : {"error", "X", "mask"}
        For FASTA: what to do with a letter the alphabet lacks.
    progress : callable (cells done, cells in all or None), optional
    implementation : {"rows", "sweep", "wavefront", "pallas"}, optional
        Of the scan, which the first device computes.

    Returns
    -------
    Table
        Sorted by query, then score from the best; equal scores in the order of the
        database. Columns of ``output="alignment"`` (of ``"score"`` without
        ``align_top``), and ``bits`` and ``evalue``, nan where the scoring has no
        published statistics. ``target`` counts in ``table.targets``: the database
        itself, or for FASTA the hits, in the order of the file.

    Raises
    ------
    InputError
        A letter is not in the alphabet, a file cannot be read, or an index has
        another alphabet.
    UsageError, MemoryPlanError, DeviceError
        As ``align_pairs``.

    Notes
    -----
    The scan of Liu et al. (2006), in the two stages of CUDASW++ (2009).

    Examples
    --------
    >>> import jaxalign
    >>> database = [("a", "MKTAYIAKQR"), ("b", "GGGG"), ("c", "MKTAIAKQR")]
    >>> hits = jaxalign.search(["MKTAYIA"], database, top=2)
    >>> [hits.row(k)["target"] for k in range(len(hits))], hits["score"].tolist()
    (['a', 'c'], [34, 19])
    """
    return hits_of(queries, database, scoring, SearchOptions(**options))


def hits_of(
    queries: SetLike | Profile,
    database: SetLike,
    scoring: ScoringLike,
    options: SearchOptions,
) -> Table:
    """``search``, its options packed."""
    # 1 check and encode, 2 scan in blocks, 3 the hits as rows, 4 align them, 5 bits
    scoring = as_scoring(scoring, by_position=True)
    query_set: Any = queries
    if isinstance(query_set, Profile):
        query_set, scoring = as_query(query_set, scoring)
    check_whole("top", options.top, "1 or more hits are needed", optional=False)
    signs = strands_of(options.strand, scoring, options.mode)
    encoded = inputs.sets(scoring, query_set, reading=reading_of(options))[0]
    inputs.tell_of_file(scoring, database, queries, encoded)
    stranded = by_strands(encoded, signs) if signs else encoded
    sequences, substituted = in_memory(database, scoring), [0]
    if sequences is None:
        about = reading_of(options), options.memory_budget, substituted
        blocks = read_blocks(database, scoring.alphabet, *about)
    else:
        blocks = iter(pieces.blocks_of(sequences))
    nothing = from_parts((), [], scoring.alphabet)
    task = make_task(
        "cross", stranded, nothing, scoring, pair_options(options, "score")
    )
    task = replace(task, top=int(options.top))
    report_progress = _teller(options, stranded, sequences)
    if options.align_top:
        with_paths = pair_options(options, "alignment")
        blocks = with_room(blocks, stranded, scoring, with_paths, int(options.top))
    sample = fitted.sample_of(options)
    blocks = blocks if sample is None else sample.watch(blocks)
    hits = scan(task, blocks, sequences is None, report_progress)
    hits.info["substituted"] = substituted[0]
    table = best_of_strands(rows(task, hits, sequences), encoded, signs, options.top)
    if options.align_top:
        table = aligned(table, options)
    table = fitted.added(table, hits, sample, options)
    return with_strands(table, encoded, signs)


@with_options(SearchOptions)
def index_database(
    source: str | os.PathLike[str],
    path: str | os.PathLike[str],
    scoring: ScoringLike = None,
    *,
    force: bool = False,
    progress: SearchProgress = None,
    **options: Unpack[IndexKeywords],
) -> dict[str, int]:
    """Encode a FASTA file once, for ``search`` and wherever sequences are taken.

    Parameters
    ----------
    source : path of FASTA, plain or gz, bz2, xz, zst; read in blocks
    path : path of the index, which appears when it is complete
    scoring : Scoring, optional
        Its alphabet is that of the index.
    unknown : {"error", "X", "mask"}
        What to do with a letter the alphabet lacks.
    force : bool
        Replace an existing file.
    progress : callable (residues done, None), optional

    Returns
    -------
    dict of ``records``, ``residues``, ``longest``, ``bytes`` and ``substituted``

    Raises
    ------
    InputError, UsageError
    """
    output.check_inputs(os.fspath(path), [os.fspath(source)])
    alphabet = as_scoring(scoring).alphabet
    reading = reading_of(SearchOptions(**options))
    count, residues = [0], 0

    def blocks() -> Iterator[Sequences]:
        nonlocal residues
        for block, substituted in fasta.read_blocks(source, alphabet, reading):
            count[0] += substituted
            residues += len(block.codes)
            if progress:
                progress(residues, None)
            yield block

    sizes = encoded_database.create(os.fspath(path), blocks(), alphabet, force)
    return sizes | {"substituted": count[0]}


@with_options(SearchOptions)
def open_database(path: str | os.PathLike[str], verify: bool = False) -> Sequences:
    """Map an index made by ``index_database``: 15 ms for 10^8 residues.

    Parameters
    ----------
    path : path
    verify : bool
        Read all of it and compare checksums.

    Returns
    -------
    Sequences
        For ``search``, ``align_all`` and everything else that takes sequences. On a GPU
        its residues stay on the device from the first search on, as long as it lives.

    Raises
    ------
    InputError
        The file is missing, no index, of another version, cut short or damaged.
    """
    return encoded_database.open_database(path, verify)


def in_memory(database: SetLike, scoring: Scoring) -> Sequences | None:
    """Encode or map the database; None for FASTA, which is read in blocks."""
    if not isinstance(database, inputs.PATH) or encoded_database.is_database(database):
        return inputs.sets(scoring, database)[0]
    return None


def read_blocks(
    path: Any,
    alphabet: Alphabet,
    reading: Reading,
    memory_budget: int | str | None,
    substituted: list[int],
) -> Iterator[Sequences]:
    """Read a FASTA file in blocks; ``substituted[0]`` counts letters that are read as
    the wildcard."""
    sizes = pieces.sizes_of(memory_budget)
    for block, count in fasta.read_blocks(path, alphabet, reading, *sizes):
        substituted[0] += count
        yield block


def _teller(
    options: SearchOptions, queries: Sequences, database: Sequences | None
) -> Callable[[int], object] | None:
    """Report the cells that are done, and their total where the size of the database is
    known."""
    if (progress := options.progress) is None:
        return None
    total = None
    if database is not None:
        total = int(queries.lengths.sum()) * int(database.lengths.sum())
    return lambda cells: progress(cells, total)


__all__ = [
    "SearchOptions",
    "hits_of",
    "in_memory",
    "index_database",
    "open_database",
    "read_blocks",
    "search",
]

# ------------------------------------------------------------------------------
# The public function of searches with many queries: part by part.

PACKED = 4  # residues a byte of a compressed file, about


@with_options(SearchOptions, like=(search,))
def stream_search(
    queries: SetLike | Profile,
    database: SetLike,
    scoring: ScoringLike = None,
    **options: Unpack[StreamSearchKeywords],
) -> Iterator[tuple[Part, Table]]:
    """Search part by part, some queries at a time against the whole database.

    Concatenated, the tables are what ``search`` returns. An index
    (``index_database``) is mapped once, FASTA is read anew for every part. The database
    cannot be standard input.

    Parameters
    ----------
    part_rows : int, optional
        Maximum rows per part, counting ``top`` for each query; a single query may have
        more. Default 2^22. Parts depend only on this, ``top``, the lengths of the
        queries and the size of the database.

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
    query_set, scoring = as_query(queries, as_scoring(scoring, by_position=True))
    encoded = inputs.sets(scoring, query_set, reading=reading_of(options))[0]
    inputs.tell_of_file(scoring, database, queries, encoded)
    sequences = in_memory(database, scoring)
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
    has_size = isinstance(database, Sequences)
    strands = strands_of(options.strand, scoring, options.mode) or (1,)
    total = sum(part.cells for part in parts) * len(strands) if has_size else None
    for part in parts:
        report = progress and _stream_teller(progress, before, total)
        rows = queries.between(part.first, part.last)
        hits = hits_of(rows, database, scoring, replace(options, progress=report))
        before += hits.info["cells"]
        columns = hits.columns | {"query": hits["query"] + np.int32(part.first)}
        yield part, replace(hits, columns=columns, queries=queries)


def _stream_teller(
    progress: Callable[[int, int | None], object], before: int, total: int | None
) -> Callable[[int, int | None], object]:
    return lambda cells, _all: progress(before + cells, total)


def residues_about(*paths: str) -> int:
    """Residues of files by their bytes, as they are not read; 0 of what is no file."""
    packed = output.COMPRESSED
    sizes = (
        os.path.getsize(path) * (PACKED if path.endswith(packed) else 1)
        for path in paths
        if os.path.isfile(path)
    )
    return sum(sizes)


def parts_search(
    queries: Sequences,
    sequences: Sequences | None,
    database: Any,
    top: int,
    part_rows: int | None = None,
) -> list[Part]:
    """Cut a search into the parts of ``stream_search``.

    sequences : the database where it is in memory or mapped, else None
    """
    check_whole("top", top, "1 or more hits are needed", optional=False)
    if sequences is not None:
        residues = int(sequences.lengths.sum())
    elif not os.path.isfile(database):
        raise UsageError(f"{database}: parts need a file, which can be read again")
    else:
        residues = residues_about(os.fspath(database))
    rows = part_stream.checked(part_rows) or part_stream.PART_ROWS
    return part_stream.cut_search(queries.lengths, int(top), residues, rows)
