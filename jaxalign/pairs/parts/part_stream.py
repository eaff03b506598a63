"""A job run part by part: the next parts are planned and computed meanwhile.

A part in which most pairs may pass is a batch of its own. Of the others the few pairs
that may pass are aligned together with those of the parts that follow: a window needs
pairs of like lengths, of which one part may have too few.
"""

import time
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from functools import partial, reduce
from typing import Any, NamedTuple

import numpy as np

from jaxalign.model.selection import gather_runs
from jaxalign.pairs import engine
from jaxalign.pairs.parts import query_ranges
from jaxalign.pairs.parts.query_ranges import Part
from jaxalign.pairs.plan import SUMMED, Plan, Progress, Task, WholeCodes, added, merge
from jaxalign.pairs.proofs import survivors
from jaxalign.pairs.proofs.proof import Survivors
from jaxalign.pairs.run_state import Run
from jaxalign.runtime import pipeline


class Limits(NamedTuple):
    """How much is done at once."""

    looked_at: int  # pairs of parts that are looked at together; 0: each part alone
    pairs: int  # of a batch, which then takes no further part …
    parts: int  # … nor beyond so many: an interrupted run computes them again
    groups_ahead: int = 0  # parts looked at while what was found before is planned


# A core counts the subsequences of 10^6 pairs a second, a GPU of 1,000 times as many;
# few pairs at a time would leave it idle.
ON_CPU, ON_GPU = Limits(0, 2**16, 8), Limits(2**27, 2**20, 64, 2)


class Batch(NamedTuple):
    """Consecutive parts, the plan of their rows, and what is said of each alone."""

    parts: list[Part]
    plan: Plan
    figures: list[dict]


class _Looked(NamedTuple):
    """A part, the task of its rows, and its pairs that may pass."""

    part: Part
    task: Task
    passing: Survivors


def stream(
    task: Task,
    some: list[query_ranges.Part],
    progress: Progress = None,
    busy: Progress = None,
):
    """Run parts of a task of all pairs of a set, or of two; the next ones are planned
    and computed while the caller has one.

    Yields
    ------
    part, columns, paths, info
        As of ``run``, part by part, in order; indices are those of the whole set.
        ``seconds`` is the time since the part before.
    """
    task = replace(task, whole_codes=_whole_codes(task))
    ahead, reserved = _room(task, some)
    batches: deque[Batch] = deque()

    def runs():
        for batch in planned(task, some, reserved):
            batches.append(batch)
            yield engine.start(batch.plan)

    cells, began = sum(part.cells for part in some), time.perf_counter()
    whole = replace(task, reserved=reserved)
    for run in engine.compute(runs(), whole, cells, progress, busy, ahead):
        now = time.perf_counter()
        run.seconds, began = now - began, now
        yield from parts_of(batches.popleft(), run)


def _whole_codes(task: Task) -> tuple[WholeCodes, ...]:
    """The letters that the parts of a task share on a device."""
    sides = task.queries.codes, task.targets.codes
    return tuple(map(WholeCodes, sides[:1] if sides[0] is sides[1] else sides))


def _room(task: Task, some: list[query_ranges.Part]) -> tuple[int, int]:
    """How many parts are planned or at work ahead, and the bytes of those in memory."""
    count = query_ranges.parts_held(len(task.devices))
    ahead = count - pipeline.WRITERS
    return ahead, query_ranges.reserved_bytes(task, some, count)


def tasks_of(task: Task, some: list[Part]) -> Iterator[Task]:
    """The tasks that compute some parts, as ``stream`` has them."""
    task = replace(task, whole_codes=_whole_codes(task))
    _, reserved = _room(task, some)
    for part in some:
        yield from query_ranges.tasks_of(task, part, reserved)[1]


def plan_parts(task: Task, some: list[query_ranges.Part]) -> Plan:
    """The plan of a streamed run: that of its heaviest part, and how many there are."""
    _, reserved = _room(task, some)
    heaviest = max(some, key=lambda part: part.cells)
    figures = engine.plan_rows(*query_ranges.tasks_of(task, heaviest, reserved)).figures
    whole = {"pairs": sum(part.stop - part.start for part in some)}
    whole |= {"cells": sum(part.cells for part in some), "parts": len(some)}
    whole |= survivors.bound_figures(task)
    return Plan(task, (), figures | whole, tuple(some))


def merge_all(tables: list[tuple]) -> dict:
    """The figures of (part, table) pairs, merged to those of the job."""
    return merge([table.info for _, table in tables]) | {"parts": len(tables)}


def planned(task: Task, some: list[Part], reserved: int) -> Iterator[Batch]:
    """The batches of some parts of a task, in order."""
    waiting: list[_Looked] = []
    limits = ON_GPU if survivors.on_gpu(task, prepare=True) else ON_CPU
    for part, own, computed, passing in _looked_at(task, some, reserved, limits):
        if waiting and not _takes(waiting, part, limits):
            yield _batch(task, waiting, reserved)
            waiting = []
        if passing is not None:
            waiting.append(_Looked(part, own, passing))
            continue
        if waiting:
            yield _batch(task, waiting, reserved)
            waiting = []
        plan = engine.plan_rows(own, computed)
        figures = plan.figures | survivors.figures_of(own, None)
        yield Batch([part], replace(plan, figures=figures), [{}])
    if waiting:
        yield _batch(task, waiting, reserved)


def _looked_at(task: Task, some: list[Part], reserved: int, limits: Limits):
    """Part, task of its rows, tasks that compute them, its pairs that may pass or None
    where all are to be aligned; of some parts, in order."""
    look, groups = partial(_look, task, reserved), _groups(some, limits)
    if limits.groups_ahead:
        looked = pipeline.in_advance(look, groups, limits.groups_ahead)
    else:
        looked = map(look, groups)
    for group in looked:
        yield from group


def _look(task: Task, reserved: int, parts: list[Part]) -> list[tuple]:
    """``_looked_at`` of consecutive parts."""
    tasks = [query_ranges.tasks_of(task, part, reserved) for part in parts]
    own = [one for one, _ in tasks]
    if len(parts) > 1:
        band, _ = query_ranges.tasks_of(task, _band(parts), reserved)
        starts = [part.first - parts[0].first for part in parts]
        each = survivors.look_at_parts(band, own, starts)
    else:
        each = map(survivors.look, own)
    together = zip(parts, tasks, each, strict=True)
    return [(part, *both, passing) for part, both, passing in together]


def _groups(some: list[Part], limits: Limits) -> Iterator[list[Part]]:
    """Consecutive parts that are looked at together."""
    group: list[Part] = []
    for part in some:
        pairs = part.stop - group[0].start if group else 0
        if group and (group[-1].last != part.first or pairs > limits.looked_at):
            yield group
            group = []
        group.append(part)
    if group:
        yield group


def _band(parts: list[Part]) -> Part:
    """Consecutive parts as one."""
    cells = sum(part.cells for part in parts)
    return replace(parts[0], last=parts[-1].last, stop=parts[-1].stop, cells=cells)


def _takes(waiting: list[_Looked], part: Part, limits: Limits) -> bool:
    """Whether a batch takes one more part."""
    pairs = sum(len(one.passing.i) for one in waiting)
    follows = waiting[-1].part.last == part.first
    return follows and pairs < limits.pairs and len(waiting) < limits.parts


def _batch(task: Task, looked: list[_Looked], reserved: int) -> Batch:
    """One plan of the pairs of some parts."""
    parts = [one.part for one in looked]
    first = parts[0]
    own, _ = query_ranges.tasks_of(task, _band(parts), reserved)
    shifts = [one.part.first - first.first for one in looked]
    pairs = zip(looked, shifts, strict=True)
    some = [survivors.shifted(task, one.passing, shift) for one, shift in pairs]
    i, j = (np.concatenate(side) for side in zip(*some, strict=True))
    excluded = reduce(added, (one.passing.excluded for one in looked))
    plan = survivors.plan_of(own, Survivors(i, j, excluded))
    each = [survivors.figures_of(one.task, one.passing) for one in looked]
    return Batch(parts, plan, each)


def parts_of(batch: Batch, run: Run) -> Iterator[tuple]:
    """(part, columns, paths, info) of the parts of a batch that has run; the first one
    says what was computed for all."""
    columns, paths = run.output.finish()
    pairs = Survivors(columns["query"], columns["target"])
    shift = batch.parts[0].first
    sides = survivors.shifted(batch.plan.task, pairs, shift)
    columns |= dict(zip(("query", "target"), sides, strict=True))
    info: dict[str, Any] = engine.summary(run)
    if len(batch.parts) == 1:
        yield batch.parts[0], columns, paths, info | batch.figures[0]
        return
    ends = np.searchsorted(columns["query"], [part.last for part in batch.parts])
    start = 0
    for part, stop, figures in zip(batch.parts, ends, batch.figures, strict=True):
        rows = np.arange(start, stop)
        some = {name: values[start:stop] for name, values in columns.items()}
        runs = None if paths is None else gather_runs(paths[0], paths[1], rows)
        yield part, some, runs, info | figures
        info = info | {name: 0 for name in SUMMED if name in info}
        info["device_cells"] = [0] * len(info["device_cells"])
        start = stop
