"""A small database by rows, in NumPy: all scores, and of each query the best.

The scores come as a table, queries times sequences, so nothing stays on a device.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from typing import Any

import numpy as np

from jaxalign.database import hit_list
from jaxalign.database.hit_list import Hits, sequences_of
from jaxalign.database.options import SearchOptions, pair_options
from jaxalign.errors import JaxalignError
from jaxalign.model.alphabet import Sequences
from jaxalign.model.table import Table, along_plus, join
from jaxalign.pairs import by_rows, engine, jobs
from jaxalign.pairs.api import pairs_table
from jaxalign.pairs.options import PairOptions
from jaxalign.pairs.plan import Plan, Task, merge
from jaxalign.runtime.devices import host_device


def small_plan(task: Task, block: Sequences) -> Plan | None:
    """The plan of a database of one block by rows; None where the scan of
    ``database.scan`` is to compute it.

    Raises
    ------
    UsageError, MemoryPlanError
        Rows are named, and cannot compute it.
    """
    at_once = len(block) < hit_list.BLOCK_RECORDS
    at_once &= int(block.offsets[-1]) < hit_list.BLOCK_RESIDUES
    if not at_once and task.implementation != "rows":
        return None
    return by_rows.plan_by_rows(_scores_task(task, block))


def scan_small(
    task: Task, blocks: Iterable[Sequences], keep: bool, tell: Callable | None = None
) -> Hits:
    """The best ``task.top`` of each query, as of ``database.scan.scan``."""
    shape = task.shape[0], 0
    hits = Hits(np.zeros(shape, np.int64), np.zeros(shape, np.int32))
    cells_done = 0
    for block in blocks:
        part = engine.plan(_scores_task(task, block))
        tells = None if tell is None else partial(_tell, tell, cells_done)
        table = engine.run(part, tells)
        known = hits.info["implementation"]
        hits.info = merge([hits.info, table.info]) if known else table.info
        _add_scores(task, hits, table["score"], block)
        cells_done += part.task.job.cells
        if keep:
            wanted = np.unique(hits.index)
            hit_list.keep(hits.records, wanted, hits.sequences, block)
        hits.sequences += len(block)
        hits.residues += int(block.lengths.sum())
    return hits


def _scores_task(task: Task, block: Sequences) -> Task:
    return replace(task, targets=block, top=None)


def _tell(tell: Callable, before: int, cells: int, _all: int) -> None:
    tell(before + cells)


def _add_scores(task: Task, hits: Hits, scores: np.ndarray, block: Sequences) -> None:
    """Join the scores of a block with the best so far; equal ones as they come."""
    shape = task.shape[0], len(block)
    scores = np.rint(scores * task.scoring.scale).astype(np.int64).reshape(shape)
    index = np.arange(hits.sequences, hits.sequences + len(block), dtype=np.int32)
    least = 1 if task.local else np.iinfo(np.int64).min
    index = np.where(scores >= least, index, hit_list.NO_HIT)
    index = np.concatenate([hits.index, index], axis=1)
    scores = np.concatenate([hits.score.astype(np.int64), scores], axis=1)
    order = np.lexsort((-scores, index == hit_list.NO_HIT), axis=1)[:, : task.top]
    hits.index = np.take_along_axis(index, order, axis=1)
    longest = (int(x.lengths.max(initial=0)) for x in (task.queries, block))
    wide = hits.score.dtype == np.int64 and hits.sequences
    wide = wide or task.dtype(*longest) == "int64"
    best = np.take_along_axis(scores, order, axis=1)
    hits.score = best if wide else best.astype(np.int32)


# ------------------------------------------------------------------------------
# The hits of a scan as a table, the same with their paths, and those of both strands:
# each query twice, and its best hits of both together.

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
        if all(small_plan(task, block) is not None for block in first):
            return scan_small(task, blocks, keep, tell)
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
