"""A small database by rows, in NumPy: all scores, and of each query the best.

The scores come as a table, queries times sequences, so nothing stays on a device.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from typing import Any

import numpy as np

from jaxalign.database import pieces
from jaxalign.database.options import pair_options
from jaxalign.database.pieces import BlockPiece, Hits, no_hits, sequences_of
from jaxalign.errors import JaxalignError
from jaxalign.model.alphabet import Sequences, best_rows
from jaxalign.model.scoring import Scoring
from jaxalign.model.table import Table, along_plus, join
from jaxalign.options import PairOptions, SearchOptions
from jaxalign.pairs import by_rows, engine, jobs
from jaxalign.pairs.api import pairs_table
from jaxalign.pairs.options import make_task
from jaxalign.pairs.plan import Plan, Task
from jaxalign.pairs.proofs import proof
from jaxalign.runtime.devices import at_once, host_device
from jaxalign.runtime.pipeline import read_ahead


def with_room(
    blocks: Iterable[Sequences],
    queries: Sequences,
    scoring: Scoring,
    options: PairOptions,
    top: int,
) -> Iterator[Sequences]:
    """Yield blocks of a database after their longest sequence has been found to fit the
    budget beside the longest query, as a hit.

    Raises MemoryPlanError: it does not.
    """
    for block in blocks:
        task = make_task("cross", queries, block, scoring, options)
        proof.with_room(replace(task, top=top))
        yield block


def small_plan(task: Task, block: Sequences) -> Plan | None:
    """Plan a database of one block by rows; None where ``database.scan`` is to compute
    it.

    Raises UsageError, MemoryPlanError: rows are named, and cannot compute it
    """
    residues, records = pieces.sizes_of(task.parts_budget)
    whole = len(block) < records and len(block.codes) < residues
    if not whole and task.implementation != "rows":
        return None
    return by_rows.plan_by_rows(replace(task, targets=block, top=None))


def _pieces_by_rows(task: Task, block: Sequences) -> Iterator[BlockPiece]:
    """Yield pieces of a block, as many pairs as the budget has room for."""
    pairs = at_once(by_rows.MAX_PAIRS, by_rows.PAIR_BYTES, task.budget)
    step = max(pairs // max(task.shape[0], 1), 1)
    for start in range(0, len(block), step):
        last = start + step >= len(block)
        yield BlockPiece(block.between(start, start + step), block if last else None)


def _fold_by_rows(
    task: Task, hits: Hits, piece: BlockPiece, report_progress: Any
) -> None:
    """Join the scores of a block with the best so far."""
    block = piece.targets
    plan = engine.plan(replace(task, targets=block, top=None))
    table = engine.run(plan, report_progress)
    hits.count(table.info)
    scores = np.rint(table["score"] * task.scoring.scale).astype(np.int64)
    scores = scores.reshape(task.shape[0], len(block))
    least = 1 if task.local else np.iinfo(np.int64).min
    query, target = np.nonzero(scores >= least)
    longest = (int(x.lengths.max(initial=0)) for x in (task.queries, block))
    wide = hits.score.dtype == np.int64 or task.dtype(*longest) == "int64"
    index = (target + hits.sequences).astype(np.int32)
    dtype = "int64" if wide else "int32"
    hits.add(task.top or 0, query, scores[query, target], index, dtype)


# ------------------------------------------------------------------------------
# The hits of a scan as a table, the same with their paths, and those of both strands:
# each query twice, and its best hits of both together.

ROWS_CELLS = 2**27  # half a second of NumPy

Strands = tuple[int, ...] | None


def scan(
    task: Task,
    blocks: Iterator[Sequences],
    keep: bool,
    report_progress: Any = None,
    hits: Hits | None = None,
    on_block: Callable[[Hits], object] | None = None,
) -> Hits:
    """Find the best ``task.top`` of each query in all blocks of a database, by rows
    where it is small.

    The task is of kind ``cross`` and output ``score``, and its targets are not used.
    Blocks come in the order of the database.

    keep : keep names and codes of the hits, of a database that cannot be read twice
    """
    hits, small = no_hits(task.shape[0]) if hits is None else hits, False
    open_to_rows = hits.info["implementation"] in ("", "rows")
    if task.implementation in (None, "rows") and open_to_rows:
        first = list(islice(blocks, 1))
        blocks = chain(first, blocks)
        small = all(small_plan(task, block) is not None for block in first)
    if small:
        parts = chain.from_iterable(map(partial(_pieces_by_rows, task), blocks))
        fold = partial(_fold_by_rows, task)
    else:
        from jaxalign.database.scan import BestOnDevice, prepared

        parts = read_ahead(prepared(task, blocks, hits.sequences))
        fold = BestOnDevice(task, hits).fold
    letters = int(task.queries.lengths.sum())
    for so_far in pieces.scan(hits, parts, fold, letters, report_progress, keep):
        if on_block is not None:
            on_block(so_far)
    return hits


def rows(task: Task, hits: Any, database: Sequences | None) -> Table:
    """Return the hits as a table of scores."""
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
    """Return the options of the paths of the hits. The GPU kernels give no paths of a
    profile: a small job is computed by rows, a large one on all cores of the host."""
    if table.scoring.by_position and "pallas" in table.implementation:
        m, n = table.lengths()
        is_large, host = int((m * n).sum()) > ROWS_CELLS, host_device()
        ways = {"implementation": "rows", "devices": None}
        if is_large and host is not None:
            ways = {"implementation": "sweep", "devices": [host]}
        options = replace(options, **ways)
    return jobs.with_kernels(pair_options(options, "alignment"), table.info["cells"])


def aligned(table: Table, options: SearchOptions) -> Table:
    """Align the hits with their paths: a ``zip`` job, in blocks."""
    path_options = _path_options(options, table)
    # Blocks of hits have as many residues as a block of the database.
    m, n = table.lengths()
    block = np.cumsum(m + n) // pieces.BLOCK_RESIDUES
    blocks = np.split(np.arange(len(table)), np.flatnonzero(np.diff(block)) + 1)
    parts = []
    for hits in blocks:
        queries = table.queries.take(table.columns["query"][hits])
        targets = table.targets.take(table.columns["target"][hits])
        paths = pairs_table(queries, targets, table.scoring, path_options)
        if (paths.columns["score"] != table.columns["score"][hits]).any():
            text = "a hit's path scores other than its scan: this is a bug"
            raise JaxalignError(text)
        parts.append(paths)
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


def best_of_strands(
    table: Table, queries: Sequences, strands: Strands, top: int
) -> Table:
    """Select the best ``top`` rows of each query over all its strands: by score, then
    by the order of the database, then plus before minus."""
    if strands is None or len(strands) == 1:
        return table
    strand, query = np.divmod(table.columns["query"], max(len(queries), 1))
    keys = -table.columns["score"], table.columns["target"], strand
    return table.filter(best_rows(query, keys, top)[0])


def with_strands(table: Table, queries: Sequences, strands: Strands) -> Table:
    """Number the queries as the caller gave them (``model.table.along_plus``); ``info``
    says which strands were aligned."""
    if strands is None:
        return table
    which, query = np.divmod(table.columns["query"], max(len(queries), 1))
    columns = table.columns | {"query": query.astype(np.int32)}
    table = replace(table, columns=columns, info=table.info | {"strands": strands})
    return along_plus(table, queries, np.array(strands, np.int8)[which])
