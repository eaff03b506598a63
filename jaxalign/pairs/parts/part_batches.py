"""Parts that are computed together: of consecutive ones, the few pairs that may pass.

A part in which most pairs may pass is a batch of its own. Of the others, a window
needs pairs of like lengths, of which one part may have too few.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from jaxalign.model.selection import gather_runs
from jaxalign.pairs import engine, survivors
from jaxalign.pairs.parts import query_ranges
from jaxalign.pairs.parts.query_ranges import Part
from jaxalign.pairs.plan import SUMMED, Plan, Task
from jaxalign.pairs.proofs import Survivors, excluded_by_all
from jaxalign.pairs.run_state import Run

ENOUGH_PAIRS = 2**16  # of a batch, which then takes no further part …
MAX_PARTS = 8  # … nor beyond so many: an interrupted run computes them again


class Batch(NamedTuple):
    """Consecutive parts, the plan of their rows, and what is said of each alone."""

    parts: list[Part]
    plan: Plan
    figures: list[dict]


class _Looked(NamedTuple):
    """A part, the task of its rows, and its pairs that may pass."""

    part: Part
    task: Task
    found: Survivors


def planned(task: Task, some: list[Part], reserved: int) -> Iterator[Batch]:
    """The batches of some parts of a task, in order."""
    waiting: list[_Looked] = []
    for part, own, computed in query_ranges.iterate(task, some, reserved):
        if waiting and not _takes(waiting, part):
            yield _together(task, waiting, reserved)
            waiting = []
        found = survivors.look(own)
        if found is not None:
            waiting.append(_Looked(part, own, found))
            continue
        if waiting:
            yield _together(task, waiting, reserved)
            waiting = []
        plan = engine.plan_rows(own, computed)
        figures = plan.figures | survivors.figures_of(own, None)
        yield Batch([part], replace(plan, figures=figures), [{}])
    if waiting:
        yield _together(task, waiting, reserved)


def _takes(waiting: list[_Looked], part: Part) -> bool:
    """Whether a batch takes one more part."""
    pairs = sum(len(one.found.i) for one in waiting)
    follows = waiting[-1].part.last == part.first
    return follows and pairs < ENOUGH_PAIRS and len(waiting) < MAX_PARTS


def _together(task: Task, looked: list[_Looked], reserved: int) -> Batch:
    """One plan of the pairs of some parts."""
    parts = [one.part for one in looked]
    first, last = parts[0], parts[-1]
    band = replace(first, last=last.last, stop=last.stop)
    band = replace(band, cells=sum(part.cells for part in parts))
    own, _ = query_ranges.tasks_of(task, band, reserved)
    sides = [
        np.concatenate([side + (one.part.first - first.first) for one, side in some])
        for some in (
            [(one, one.found.i) for one in looked],
            [(one, one.found.j) for one in looked],
        )
    ]
    excluded = excluded_by_all(one.found for one in looked)
    plan = survivors.plan_of(own, Survivors(*sides, excluded))
    each = [survivors.figures_of(one.task, one.found) for one in looked]
    return Batch(parts, plan, each)


def parts_of(batch: Batch, run: Run) -> Iterator[tuple]:
    """(part, columns, paths, info) of the parts of a batch that has run; the first one
    says what was computed for all."""
    columns, paths = run.output.finish()
    for side in ("query", "target"):
        columns[side] += np.int32(batch.parts[0].first)
    info = engine.summary(run)
    if len(batch.parts) == 1:
        yield batch.parts[0], columns, paths, info | batch.figures[0]
        return
    ends = np.searchsorted(columns["query"], [part.last for part in batch.parts])
    start = 0
    for part, stop, figures in zip(batch.parts, ends, batch.figures, strict=True):
        rows = np.arange(start, stop)
        some = {name: values[start:stop] for name, values in columns.items()}
        runs = None if paths is None else gather_runs(*paths, rows)
        yield part, some, runs, info | figures
        info = info | {name: 0 for name in SUMMED if name in info}
        info["device_cells"] = [0] * len(info["device_cells"])
        start = stop
