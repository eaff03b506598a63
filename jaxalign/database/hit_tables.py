"""The hits of a scan as a table, the same with their paths, and those of both strands:
each query twice, and its best hits of both together."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain, islice
from typing import Any

import numpy as np

from jaxalign.database import hit_list, small_scan
from jaxalign.database.hit_list import Hits, sequences_of
from jaxalign.database.options import SearchOptions, pair_options
from jaxalign.errors import JaxalignError
from jaxalign.model.alphabet import Sequences
from jaxalign.model.strand_rows import along_plus
from jaxalign.model.table import Table, join
from jaxalign.pairs import jobs
from jaxalign.pairs.api import pairs_table
from jaxalign.pairs.options import PairOptions
from jaxalign.pairs.plan import Task
from jaxalign.runtime.devices import host_device

ROWS_CELLS = 2**27  # half a second of NumPy

Strands = tuple[int, ...] | None


def scan(
    task: Task,
    blocks: Iterator[Sequences],
    keep: bool,
    tell: Any,
    begun: Hits | None = None,
    watch: Callable[[Hits], object] | None = None,
) -> Hits:
    """The best hits, by rows where the database is small.

    begun, watch : of a scan that goes on, or is to: the hits so far, and who takes them
    """
    if task.implementation in (None, "rows") and begun is None:
        first = list(islice(blocks, 1))
        blocks = chain(first, blocks)
        if all(small_scan.plan(task, block) is not None for block in first):
            return small_scan.scan(task, blocks, keep, tell)
    from jaxalign.database.scan import scan as scan_compiled

    return scan_compiled(task, blocks, keep, tell, begun, watch)


def rows(task: Task, hits: Any, database: Sequences | None) -> Table:
    """The hits as a table of scores."""
    query, place = np.nonzero(hits.index >= 0)
    index, score = hits.index[query, place], hits.score[query, place]
    targets = database
    if targets is None:
        indices, targets = sequences_of(hits.records, task.scoring.alphabet)
        index = np.searchsorted(indices, index)
    scale = task.scoring.scale
    columns = {
        "query": query.astype(np.int32),
        "target": index.astype(np.int32),
        "score": score if scale == 1 else score / scale,
    }
    return Table(
        columns=columns,
        queries=task.queries,
        targets=targets,
        scoring=task.scoring,
        mode=task.mode,
        free_ends=task.free,
        implementation=hits.info["implementation"],
        info=hits.info,
    )


def _path_options(options: SearchOptions, table: Table) -> PairOptions:
    """Those of the hits' paths. The GPU kernels have none of a profile's: few are
    computed by rows, and many on all cores of the host."""
    if table.scoring.by_position and "pallas" in table.implementation:
        m, n = table.lengths()
        many, host = int((m * n).sum()) > ROWS_CELLS, host_device()
        ways = {"implementation": "rows", "devices": None}
        if many and host is not None:
            ways = {"implementation": "sweep", "devices": [host]}
        options = replace(options, **ways)
    return jobs.beside(pair_options(options, "alignment"), table.info["cells"])


def aligned(table: Table, options: SearchOptions) -> Table:
    """The same rows with their paths: a ``zip`` job of the hits, in blocks."""
    chosen = _path_options(options, table)
    parts = [_paths(table, hits, chosen) for hits in _blocks_of_hits(table)]
    paths = join(parts, {})
    seconds = sum(part.info["seconds"] for part in parts)
    info = table.info | {"align_seconds": seconds}
    info["seconds"] += seconds
    info["halved_launches"] += sum(part.info["halved_launches"] for part in parts)
    columns = paths.columns | {
        name: table.columns[name] for name in ("query", "target")
    }
    return replace(table, columns=columns, info=info, operations=paths.operations,
                   operation_offsets=paths.operation_offsets)  # fmt: skip


def _blocks_of_hits(table: Table) -> list[np.ndarray]:
    """Row numbers, in runs of as many residues as a block of the database has."""
    m, n = table.lengths()
    run = np.cumsum(m + n) // hit_list.BLOCK_RESIDUES
    return np.split(np.arange(len(table)), np.flatnonzero(np.diff(run)) + 1)


def _paths(table: Table, hits: np.ndarray, options: PairOptions) -> Table:
    queries = table.queries.take(table.columns["query"][hits])
    targets = table.targets.take(table.columns["target"][hits])
    paths = pairs_table(queries, targets, table.scoring, options)
    if (paths.columns["score"] != table.columns["score"][hits]).any():
        raise JaxalignError("a hit's path scores other than its scan: this is a bug")
    return paths


def best_of_strands(
    table: Table, queries: Sequences, strands: Strands, top: int
) -> Table:
    """The best ``top`` rows of each query, of all its strands: by score, then by the
    order of the database, then plus before minus."""
    if strands is None or len(strands) == 1:
        return table
    strand, query = np.divmod(table.columns["query"], max(len(queries), 1))
    order = np.lexsort(
        (strand, table.columns["target"], -table.columns["score"], query)
    )
    sorted_query = query[order]
    rank = np.arange(len(order)) - np.searchsorted(sorted_query, sorted_query)
    return table.filter(order[rank < top])


def with_strands(table: Table, queries: Sequences, strands: Strands) -> Table:
    """The same rows of the queries as they were given (``strand_rows.along_plus``);
    ``info`` says which strands were aligned."""
    if strands is None:
        return table
    which, query = np.divmod(table.columns["query"], max(len(queries), 1))
    columns = table.columns | {"query": query.astype(np.int32)}
    table = replace(table, columns=columns, info=table.info | {"strands": strands})
    return along_plus(table, queries, np.array(strands, np.int8)[which])
