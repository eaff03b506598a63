# pyright: strict, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
"""Pairs of which the other strand of the query is aligned, or the better one of both.

Of both strands the scores are one job, and the rows of the better ones another.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from jaxalign.model.identity import Filters
from jaxalign.model.selection import views
from jaxalign.model.strand_rows import along_plus, by_strands
from jaxalign.model.strands import MINUS, PLUS
from jaxalign.model.table import Table
from jaxalign.pairs import engine
from jaxalign.pairs.options import PairOptions
from jaxalign.pairs.plan import Plan, QueryStrands, Task, merge
from jaxalign.pairs.run_state import SavedState

RunPlan = Callable[[Plan, PairOptions, SavedState | None], Table]


def plan(one: Plan, strands: QueryStrands) -> Plan:
    """The plan of some strands of the queries.

    Parameters
    ----------
    one : of the rows of one strand, that which is aligned or the plus strand of both
    """
    one = replace(one, strands=strands)
    if len(strands.signs) == 1:
        return one
    task, both = one.task, by_strands(strands.queries, strands.signs)
    targets = task.targets
    if task.kind == "zip":
        targets = views(targets, np.tile(np.arange(len(targets)), 2))
    about = {"output": "score", "filters": Filters(), "single_target": None}
    scores = engine.plan(replace(task, queries=both, targets=targets, **about))
    return replace(one, figures=_of_both(scores, one, task), scores=scores)


def _of_both(
    scores: Mapping[str, Any], rows: Mapping[str, Any], task: Task
) -> dict[str, Any]:
    """The figures of the scores of both strands and of the rows of one, together."""
    if task.output == "score":
        return {**scores, "pairs": task.job.pairs}
    shared = {name: value for name, value in rows.items() if name in scores}
    figures = {**rows, **merge([dict(scores), shared])}
    figures |= {"pairs": rows["pairs"], "cells": scores["cells"]}
    if "aligned_cells" in rows:
        figures["aligned_cells"] = scores["cells"]
    return figures


def run(
    plan: Plan,
    strands: QueryStrands,
    options: PairOptions,
    run_one: RunPlan,
    saved: SavedState | None = None,
) -> Table:
    """The rows of the strand that is aligned, or of both the one that scores more.

    run_one : runs the plan of one strand, or of scores
    """
    if plan.scores is None:
        table = run_one(replace(plan, strands=None), options, saved)
        signs = np.full(len(table), strands.signs[0], np.int8)
    else:
        table, signs = _better(plan.task, plan.scores, options, run_one, saved)
    table = replace(table, info=table.info | {"strands": strands.signs})
    return along_plus(table, strands.queries, signs)


def _better(
    task: Task,
    plan: Plan,
    options: PairOptions,
    run_one: RunPlan,
    saved: SavedState | None,
) -> tuple[Table, np.ndarray]:
    """(the rows of the strand that scores more, of equals plus; which one it is).

    task : of the rows of one strand
    plan : of the scores of both
    """
    paths, cells = task.output != "score", plan["cells"]
    total = cells + paths * task.job.cells
    first, second = (saved and saved.part(name) for name in ("scores", "rows"))
    scores = run_one(plan, _told_after(options, 0, total), first)
    plus, minus = scores["score"].reshape(2, -1)
    pair, is_minus = np.arange(len(plus)), minus > plus
    signs = np.where(is_minus, MINUS, PLUS).astype(np.int8)
    if not paths:
        table = _rows_of(task, scores.filter(pair + is_minus * len(pair)), pair)
        passing = task.filters.mask(table.columns, *table.lengths())
        return table.filter(passing), signs[passing]
    several = task.kind == "zip"
    query = pair + is_minus * len(pair) if several else is_minus.astype(int)
    queries = views(plan.task.queries, query)
    one = engine.plan(replace(task, kind="zip", queries=queries))
    table = run_one(one, _told_after(options, cells, total), second)
    info = _of_both(scores.info, table.info, task)
    pair = table["query"]
    columns = table.columns | {"query": pair if several else 0 * pair}
    return replace(table, columns=columns, info=info), signs[pair]


def _rows_of(task: Task, scores: Table, pair: np.ndarray) -> Table:
    """Scores of either strand as rows of a task."""
    pair = pair.astype(np.int32)
    columns = scores.columns | {"query": pair if task.kind == "zip" else 0 * pair}
    columns["target"] = pair if task.single_target is None else 0 * pair
    targets = task.targets if task.single_target is None else task.single_target
    info = scores.info | {"pairs": len(pair)}
    return replace(scores, columns=columns, targets=targets, info=info)


def _told_after(options: PairOptions, cells: int, total: int) -> PairOptions:
    """Options of a job that begins when so many cells are done of a total."""
    if (progress := options.progress) is None:
        return options

    def tell(more: int, _all: int) -> None:
        progress(cells + more, total)

    return replace(options, progress=tell)
