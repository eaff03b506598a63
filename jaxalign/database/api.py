"""The public functions of database search: each a numbered straight line."""

import os
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from jaxalign import inputs
from jaxalign.database import scan
from jaxalign.errors import JaxalignError
from jaxalign.io import encoded_database, fasta_blocks, output
from jaxalign.model import statistics
from jaxalign.model.alphabet import Sequences, from_parts
from jaxalign.model.numbers import check_whole
from jaxalign.model.scoring import Scoring, as_scoring
from jaxalign.model.table import Table, join
from jaxalign.pairs import api
from jaxalign.pairs.options import every_pair, make_task

TOP = 300


def search(
    queries,
    database,
    scoring=None,
    *,
    top=TOP,
    mode="local",
    align_top=True,
    unknown="error",
    progress=None,
    **options,
) -> Table:
    """Align every query with every sequence of a database, and report the best.

    Nothing is filtered or sampled: every score is computed. Only the best of each query
    leave the device, and only those are aligned again with their paths.

    Parameters
    ----------
    queries : as in ``align_pairs``; a file is read whole
    database : as in ``align_pairs``
        A path is an index (``index_database``) or FASTA, plain or gz, bz2, xz; FASTA
        is read in blocks and never held whole.
    scoring : Scoring, or the name or file of a matrix, optional
    top : int
        Hits of a query at most.
    mode, free_ends : as in ``align_pairs``
        In local mode a sequence without a positive score is no hit.
    align_top : bool
        Whether to align the hits; without, the table has scores alone.
    unknown : {"error", "X", "mask"}
        For FASTA: what to do with a letter the alphabet lacks.
    progress : callable (cells done, cells in all or None), optional
    **options : free_ends, implementation, memory_budget, threads, window
        As in ``align_pairs``; an implementation is that of the scan.

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
    # 1 check and encode, 2 scan in blocks, 3 the hits as rows, 4 align them, 5 bits
    scoring = as_scoring(scoring)
    check_whole("top", top, "1 or more hits are needed", optional=False)
    queries = read_queries(queries, scoring, unknown)
    held = in_memory(database, scoring)
    substituted = [0]
    if held is None:
        blocks = _read(database, scoring.alphabet, unknown, substituted)
    else:
        blocks = _parts(held)
    nothing = from_parts((), [], scoring.alphabet)
    options = every_pair(options)
    asked = options | {"mode": mode, "output": "score"}
    task = replace(make_task("cross", queries, nothing, scoring, **asked), top=int(top))
    tell = _teller(progress, queries, held)
    found = scan.scan(task, blocks, keep=held is None, tell=tell)
    found.info["substituted"] = substituted[0]
    table = _rows(task, found, held)
    if align_top:
        options |= {"mode": mode, "implementation": _with_paths(task.implementation)}
        table = _aligned(table, options)
    return _with_statistics(table, found)


def index_database(source, path, scoring=None, *, unknown="error", force=False) -> dict:
    """Encode a FASTA file once, for ``search`` and wherever sequences are taken.

    Parameters
    ----------
    source : path
        FASTA, plain or gz, bz2, xz; read in blocks.
    path : path
        The index to write; it appears when it is complete.
    scoring : Scoring, optional
        Its alphabet is that of the index.
    unknown : {"error", "X", "mask"}
        What to do with a letter the alphabet lacks.
    force : bool
        Replace an existing file.

    Returns
    -------
    dict
        ``records``, ``residues``, ``longest``, ``bytes`` and ``substituted``.

    Raises
    ------
    InputError, UsageError
    """
    output.check_inputs(os.fspath(path), [os.fspath(source)])
    alphabet = as_scoring(scoring).alphabet
    count = [0]

    def blocks():
        for block, substituted in fasta_blocks.read_blocks(source, alphabet, unknown):
            count[0] += substituted
            yield block

    made = encoded_database.create(os.fspath(path), blocks(), alphabet, force)
    return made | {"substituted": count[0]}


def open_database(path, verify=False) -> Sequences:
    """Map an index made by ``index_database``: 15 ms for 10^8 residues.

    Parameters
    ----------
    path : path
    verify : bool
        Read all of it and compare checksums.

    Returns
    -------
    Sequences
        For ``search``, ``align_all`` and everything else that takes sequences.

    Raises
    ------
    InputError
        The file is missing, no index, of another version, cut short or damaged.
    """
    return encoded_database.open_database(path, verify)


def read_queries(queries, scoring: Scoring, unknown) -> Sequences:
    """The queries, those of a file too."""
    return inputs.sets(scoring, queries, unknown=unknown)[0]


def in_memory(database, scoring: Scoring) -> Sequences | None:
    """The database where it is in memory or mapped, None for FASTA."""
    if not isinstance(database, inputs.PATH) or encoded_database.is_database(database):
        return inputs.sets(scoring, database)[0]
    return None


def _parts(sequences: Sequences) -> Iterator[Sequences]:
    """Blocks of a set, as ``io.fasta_blocks`` cuts them."""
    start, count = 0, len(sequences)
    while start < count:
        limit = sequences.offsets[start] + scan.RESIDUES
        stop = int(np.searchsorted(sequences.offsets, limit, side="left"))
        stop = min(max(stop, start + 1), start + scan.RECORDS, count)
        yield sequences.between(start, stop)
        start = stop


def _read(path, alphabet, unknown, substituted: list) -> Iterator[Sequences]:
    sizes = scan.RESIDUES, scan.RECORDS
    for block, count in fasta_blocks.read_blocks(path, alphabet, unknown, *sizes):
        substituted[0] += count
        yield block


def _teller(progress, queries, held):
    """Cells done, and in all where the size of the database is known."""
    if progress is None:
        return None
    total = None
    if held is not None:
        total = int(queries.lengths.sum()) * int(held.lengths.sum())
    return lambda done: progress(done, total)


def _with_paths(implementation):
    return None if implementation == "striped" else implementation


def _rows(task, found, held) -> Table:
    """The hits as a table of scores."""
    query, place = np.nonzero(found.index >= 0)
    index, score = found.index[query, place], found.score[query, place]
    targets = held
    if held is None:
        kept = sorted(found.kept)
        index = np.searchsorted(np.array(kept, np.int64), index)
        names, codes = ([found.kept[i][k] for i in kept] for k in (0, 1))
        targets = from_parts(names, codes, task.scoring.alphabet)
    scale = task.scoring.scale
    columns = {
        "query": query.astype(np.int32),
        "target": index.astype(np.int32),
        "score": score if scale == 1 else score / scale,
    }
    ran = found.info["implementation"]
    return Table(columns, task.queries, targets, task.scoring, task.mode, task.free,
                 ran, found.info)  # fmt: skip


def _aligned(table: Table, options) -> Table:
    """The same rows with their paths: a ``zip`` job of the hits, in blocks."""
    parts = [_paths(table, hits, options) for hits in _blocks_of_hits(table)]
    whole = join(parts, {})
    seconds = sum(part.info["seconds"] for part in parts)
    info = table.info | {"align_seconds": seconds}
    info["seconds"] += seconds
    info["halved_launches"] += sum(part.info["halved_launches"] for part in parts)
    columns = whole.columns | {name: table[name] for name in ("query", "target")}
    return replace(table, columns=columns, info=info, operations=whole.operations,
                   operation_offsets=whole.operation_offsets)  # fmt: skip


def _blocks_of_hits(table: Table) -> list[np.ndarray]:
    """Row numbers, in runs of as many residues as a block of the database has."""
    m, n = table.lengths()
    run = np.cumsum(m + n) // scan.RESIDUES
    return np.split(np.arange(len(table)), np.flatnonzero(np.diff(run)) + 1)


def _paths(table: Table, hits, options) -> Table:
    queries = table.queries.take(table["query"][hits])
    targets = table.targets.take(table["target"][hits])
    options = options | {"output": "alignment"}
    made = api.align_pairs(queries, targets, table.scoring, **options)
    if (made["score"] != table["score"][hits]).any():
        raise JaxalignError("a hit's path scores other than its scan: this is a bug")
    return made


def _with_statistics(table: Table, found) -> Table:
    known = statistics.parameters(table.scoring, table.mode)
    score, m = table["score"], table.lengths()[0]
    database = found.residues, found.sequences
    columns = {
        "bits": statistics.bits(score, known),
        "evalue": statistics.evalues(score, m, *database, known),
    }
    info = table.info | dict(zip(("residues", "sequences"), database, strict=True))
    return replace(table, columns=table.columns | columns, info=info)
