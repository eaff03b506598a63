"""A small database by rows, in NumPy: all scores, and of each query the best.

The scores come as a table, queries times sequences, so nothing stays on a device.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

import numpy as np

from jaxalign.database import hit_list
from jaxalign.database.hit_list import Hits
from jaxalign.model.alphabet import Sequences
from jaxalign.pairs import engine, small_jobs
from jaxalign.pairs.plan import Plan, Task, merge


def plan(task: Task, block: Sequences) -> Plan | None:
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
    return small_jobs.plan(_scores_task(task, block))


def scan(
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
        _fold(task, hits, table["score"], block)
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


def _fold(task: Task, hits: Hits, scores: np.ndarray, block: Sequences) -> None:
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
