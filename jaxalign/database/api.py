# pyright: strict, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
"""Public functions of database search."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal, Unpack

import numpy as np

from jaxalign import inputs
from jaxalign.database import fitted, pieces
from jaxalign.database.hits import (
    aligned,
    best_of_strands,
    rows,
    scan,
    with_further,
    with_room,
    with_strands,
)
from jaxalign.database.options import check_hsps, pair_options
from jaxalign.errors import UsageError
from jaxalign.inputs import SetLike
from jaxalign.io import encoded_database, fasta, output
from jaxalign.keywords import IndexKeywords, SearchKeywords, StreamSearchKeywords
from jaxalign.model.alphabet import (
    Alphabet,
    Reading,
    Sequences,
    as_sequences,
    from_parts,
    named_alphabet,
    reading_of,
)
from jaxalign.model.numbers import check_whole
from jaxalign.model.profile import Profile, as_query
from jaxalign.model.scoring import Scoring, ScoringLike, as_scoring
from jaxalign.model.strands import strands_of
from jaxalign.model.table import Table, by_strands
from jaxalign.options import Progress, SearchOptions, SearchProgress
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
    """Align every query with every sequence of a database, and report the best hits.

    Every score is computed, without a heuristic filter. Only the best hits of each
    query leave the device, and only those are aligned with their paths.

    Parameters
    ----------
    queries : path, mapping, iterable, Sequences, flat ``(codes, offsets)`` or Profile
        A file is read whole. For a ``Profile`` the result shows its consensus, and only
        the gap costs of the scoring are used.
    database : path, mapping, iterable, Sequences or flat ``(codes, offsets)``
        A path is an index (``index_database``) or FASTA (plain, gz, bz2, xz or zst).
        FASTA is read in blocks, and never held whole.
    scoring : Scoring, or the name or file of a matrix, optional
        BLOSUM62 with gap costs 11 and 1 by default.
    top : int
        Largest number of hits per query.
    mode : {"local", "global", "semiglobal"}, default "local"
        How sequences are aligned. In local mode, a sequence must score above 0 to be a
        hit.
    align_top : bool
        Align the hits; otherwise the table has only scores.
    hsps : int
        Largest number of alignments of a hit, in mode local. After the best one, each
        is the best that shares no aligned pair of residues with those before (Waterman
        and Eggert 1987), and has an E-value of at most 1.
    strand : {"both", "plus", "minus"}, optional
        Strands of the queries to align, for nucleotides. The table then has a column
        ``strand``, 1 or -1; spans count along the plus strands, and the path of a row
        with -1 is that of the reverse complement of its query. By default both for
        ``blastn``'s scoring in local mode, and plus otherwise.
    statistics : {"published", "fitted"}
        Source of lambda and K for bits and E-values: NCBI's tables, or a fit to the
        scores of each query with a sample of this database, in local mode. With
        "fitted", ``table.info`` has ``statistics``, ``lambda`` and ``K`` (one per
        query), and ``fitted_to``: ``database``; ``shuffled`` if too many sequences are
        related to the query, so that their letters were shuffled; or ``none`` if no fit
        was possible, and bits and E-values are nan.
    unknown : {"error", "X", "mask"}
        For FASTA: what to do with a letter that the alphabet lacks.
    progress : callable, optional
        Called with (cells done, cells in all or None).
    implementation : {"rows", "sweep", "wavefront", "pallas"}, optional
        Use this implementation for the scan, on the first device, or fail.

    Returns
    -------
    Table
        Sorted by query, then by falling score; equal scores in database order.
        Further alignments of a hit follow its best one. Columns
        are those of ``output="alignment"`` (of ``"score"`` without ``align_top``), and
        ``bits`` and ``evalue``, which are nan if the scoring has no published
        statistics. ``target`` indexes ``table.targets``: the database itself, or for
        FASTA the hits in file order.

    Raises
    ------
    InputError
        If a letter is not in the alphabet, a file cannot be read, or an index has
        another alphabet.
    UsageError, MemoryPlanError, DeviceError
        As ``align_pairs``.

    Notes
    -----
    The scan follows Liu et al. (2006), with the two stages of CUDASW++ (2009).

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
    # 1 check and encode, 2 scan in blocks, 3 the hits as rows, 4 align them, 5 their
    # further alignments, 6 bits
    query_set, scoring = _as_query(queries, scoring, options)
    check_whole("top", options.top, "1 or more hits are needed", optional=False)
    check_hsps(options, scoring)
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
    statistic, info = fitted.statistic_of(table, hits, sample, options)
    hit = np.arange(len(table))
    if options.align_top:
        table = aligned(table, options)
    if options.hsps > 1:
        table, hit = with_further(
            table, options, lambda score, hit: statistic(score, hit)[1]
        )
    bits, evalues = statistic(table.columns["score"], hit)
    columns = table.columns | {"bits": bits, "evalue": evalues}
    table = replace(table, columns=columns, info=table.info | info)
    return with_strands(table, encoded, signs)


def _as_query(
    queries: SetLike | Profile, scoring: ScoringLike, options: SearchOptions
) -> tuple[Any, Scoring]:
    """The queries and their scoring. Where none is given, local alignments of a profile
    have the gap costs of its positions."""
    own_gaps = scoring is None and options.mode == "local"
    scoring = as_scoring(scoring, by_position=True, tracks=True)
    query_set: Any = queries
    if isinstance(query_set, Profile):
        query_set, scoring = as_query(query_set, None if own_gaps else scoring)
    return query_set, scoring


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
    """Encode a FASTA file once, for ``search`` and any function that takes sequences.

    The index keeps taxa of headings (``OX=``, ``TaxID=``) for ``search_complexes``.

    Parameters
    ----------
    source : path
        FASTA (plain, gz, bz2, xz or zst), read in blocks.
    path : path
        The index to write. It appears when it is complete.
    scoring : Scoring, optional
        Determines the alphabet of the index. One of two tracks keeps both; a scoring of
        either one reads its track.
    unknown : {"error", "X", "mask"}
        What to do with a letter that the alphabet lacks.
    force : bool
        Replace an existing file.
    progress : callable, optional
        Called with (residues done, None).

    Returns
    -------
    dict of str to int
        ``records``, ``residues``, ``longest``, ``bytes`` and ``substituted`` (letters
        read as the wildcard).

    Raises
    ------
    InputError
        If the file cannot be read, or a letter is not in the alphabet.
    UsageError
        If ``path`` exists and ``force`` is false, or an option is unknown.
    """
    output.check_inputs(os.fspath(path), [os.fspath(source)])
    alphabet = as_scoring(scoring, tracks=True).alphabet
    reading = reading_of(SearchOptions(**options))
    count, residues, taxa = [0], 0, []

    def blocks() -> Iterator[Sequences]:
        nonlocal residues
        about = alphabet, reading
        for block, substituted in fasta.read_blocks(source, *about, taxa=taxa):
            count[0] += substituted
            residues += len(block.codes)
            if progress:
                progress(residues, None)
            yield block

    target = os.fspath(path)
    sizes = encoded_database.create(target, blocks(), alphabet, force, taxa)
    return sizes | {"substituted": count[0]}


@with_options(SearchOptions)
def open_database(path: str | os.PathLike[str], verify: bool = False) -> Sequences:
    """Memory-map an index made by ``index_database``: 15 ms for 10^8 residues.

    Parameters
    ----------
    path : path
        The index.
    verify : bool
        Read the whole file and compare its checksums. Otherwise only the header, the
        offsets and the range of the letters are checked, so a letter that a disk or a
        copy turned into another one goes unnoticed.

    Returns
    -------
    Sequences
        For ``search``, ``align_all`` and any function that takes sequences. On a GPU,
        its residues stay on the device after the first search, while this object lives.

    Raises
    ------
    InputError
        If the file is missing, truncated, damaged, of another version, or no index.
    """
    return encoded_database.open_database(path, verify)


@with_options(SearchOptions)
def read_structures(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    unreadable: Literal["error", "remove"] = "error",
    processes: int | None = 1,
    progress: Progress = None,
) -> Sequences:
    """Read the protein chains of structures: amino acids and 3Di states.

    Parameters
    ----------
    paths : path, or sequence of paths
        PDB, mmCIF or BinaryCIF (plain, gz, bz2, xz or zst), or folders of them.
    unreadable : {"error", "remove"}
        Files that cannot be read, or have no protein chain, are refused, or left out
        with a warning.
    processes : int or None
        Processes that read files side by side, None for one a core. They are started
        anew, so a script that asks for more than one guards its own start
        (``if __name__ == "__main__"``).
    progress : callable, optional
        Called with (files read, files in all).

    Returns
    -------
    Sequences
        A chain each, in the order of the files: ``names`` FILE_CHAIN, ``codes`` uint16
        (residues,) with the amino acid in the lower byte and the state in the upper
        one, ``offsets`` int64 (chains + 1,). Scorings of both tracks take it, such as
        ``Scoring.preset("foldseek")``, and those of one of them. ``track(0)`` are the
        amino acids, ``track(1)`` the states; X stands for residues that are none of the
        20, and for states of residues without N, CA or C.

    Raises
    ------
    InputError
        A file cannot be read, none has a protein chain, or two chains have one name.
    UsageError
        If ``unreadable`` or ``processes`` is none of these.

    Notes
    -----
    States are those of biotite's ``to_3di``, which are Foldseek's (van Kempen et al.,
    Nature Biotechnology 42:243, 2024).
    """
    from jaxalign.io import structures  # and a pool of processes

    if isinstance(paths, str | os.PathLike):
        paths = [paths]
    files = [x for path in paths for x in structures.files_of(path)]
    about = unreadable, processes, progress
    chains, errors = structures.read_files(files, *about)
    for error in errors:
        warnings.warn(f"left out: {error}", stacklevel=2)
    letters, states = (
        as_sequences({x.name: getattr(x, track) for x in chains}, named_alphabet(kind))
        for track, kind in (("letters", "protein"), ("states", "3di"))
    )
    return letters.with_states(states)


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
    "check_hsps",
    "hits_of",
    "in_memory",
    "index_database",
    "open_database",
    "read_blocks",
    "read_structures",
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
    """Search part by part, with some queries at a time against the whole database.

    Together, the tables are the result of ``search``. An index (``index_database``) is
    mapped once; FASTA is read again for every part. The database cannot be standard
    input.

    Parameters
    ----------
    part_rows : int, optional
        Maximum rows per part, counting ``top`` for each query; a single query may have
        more. Default 2^22. Parts depend only on this, ``top``, the lengths of the
        queries and the size of the database.

    Yields
    ------
    Part
        Its queries: ``index``, ``first`` and ``last``.
    Table
        Their hits, as from ``search``; ``query`` indexes all queries.

    Raises
    ------
    InputError, UsageError, MemoryPlanError, DeviceError
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
    query_set, scoring = _as_query(queries, scoring, options)
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
        raise UsageError(
            f"{database}: a result in parts reads the database several times; give a "
            "file"
        )
    else:
        residues = residues_about(os.fspath(database))
    rows = part_stream.checked(part_rows) or part_stream.PART_ROWS
    return part_stream.cut_search(queries.lengths, int(top), residues, rows)
