"""A job run part by part: the next ones are planned and computed meanwhile."""

import time
from collections import deque
from dataclasses import replace

from jaxalign.pairs import engine
from jaxalign.pairs.parts import part_batches, query_ranges
from jaxalign.pairs.plan import Plan, Task, WholeCodes, merge
from jaxalign.pairs.proofs import survivors
from jaxalign.runtime import pipeline


def stream(task: Task, some: list[query_ranges.Part], progress=None, busy=None):
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
    batches: deque[part_batches.Batch] = deque()

    def runs():
        for batch in part_batches.planned(task, some, reserved):
            batches.append(batch)
            yield engine.start(batch.plan)

    cells, began = sum(part.cells for part in some), time.perf_counter()
    whole = replace(task, reserved=reserved)
    for run in engine.compute(runs(), whole, cells, progress, busy, ahead):
        now = time.perf_counter()
        run.seconds, began = now - began, now
        yield from part_batches.parts_of(batches.popleft(), run)


def _whole_codes(task: Task) -> tuple[WholeCodes, ...]:
    """What the parts of a task share on a device."""
    sides = task.queries.codes, task.targets.codes
    return tuple(map(WholeCodes, sides[:1] if sides[0] is sides[1] else sides))


def _room(task: Task, some: list[query_ranges.Part]) -> tuple[int, int]:
    """How many parts are planned or at work ahead, and the bytes of those in memory."""
    held = query_ranges.parts_held(len(task.devices))
    ahead = held - pipeline.WRITERS
    return ahead, query_ranges.reserved_bytes(task, some, held)


def plan_parts(task: Task, some: list[query_ranges.Part]) -> Plan:
    """The plan of a streamed run: that of its heaviest part, and how many there are."""
    _, reserved = _room(task, some)
    heaviest = max(some, key=lambda part: part.cells)
    figures = engine.plan_rows(*query_ranges.tasks_of(task, heaviest, reserved)).figures
    whole = {"pairs": sum(part.stop - part.start for part in some)}
    whole |= {"cells": sum(part.cells for part in some), "parts": len(some)}
    whole |= survivors.bound_figures(task)
    return Plan(task, (), figures | whole, tuple(some))


def merge_all(tables) -> dict:
    """What (part, table) say of their parts -> what they say of the job."""
    return merge([table.info for _, table in tables]) | {"parts": len(tables)}
