"""Align one triple: what it needs, which traceback, and the result."""

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jaxalign.dp.recurrence3 import MODELS
from jaxalign.errors import CertificateError, MemoryPlanError
from jaxalign.model.triple import TripleAlignment, gapped
from jaxalign.run import (
    bounds,
    three,
    three_batch,
    three_choice,
    three_chunks,
    three_grid,
    three_split,
)
from jaxalign.run.execute import precision
from jaxalign.run.memory import show_bytes
from jaxalign.run.three import Part, Triple

SCHEDULES = ("auto", *three.FILLS)
CHUNKED = ("bt1", "bt2", "bt3")
TRACEBACKS = ("auto", "store", "split", *CHUNKED)


@dataclass(frozen=True)
class Asked:
    """The words of a call, checked."""

    gap_model: str
    mode: str
    schedule: str
    traceback: str | None
    budget: int
    chunk: int | None = None
    height: int | None = None
    depth: int | None = None
    kernels: Any = None  # those of a GPU, where they may be used
    named: bool = False  # whether nothing else may be


def triple_of(sequences, scoring, asked: Asked, indices=(0, 1, 2)) -> Triple:
    """Sequences of a call as a ``Triple``, the longest last."""
    codes = tuple(sequences[n] for n in indices)
    matrices = (scoring.scores,) * 3
    lengths = [len(x) for x in codes]
    dtype = bounds.triple_dtype(lengths, scoring)
    model, cost = MODELS[asked.gap_model], (scoring.open, scoring.extend)
    order = tuple(np.argsort(lengths, kind="stable").tolist())
    done = {"seconds": {}, "cells": 0}
    words = dtype, model, asked.mode, asked.schedule, None, done
    triple = Triple(codes, (0, 1, 2), matrices, cost, *words).reordered(order)
    paths = asked.traceback is not None
    kernels, _ = three_choice.kernels_for(triple, asked.kernels, asked.named, paths)
    return replace(triple, kernels=kernels)


def make_plan(triple: Triple, asked: Asked) -> dict:
    """Which traceback will run, and in how many bytes.

    ``auto`` is ``store`` where that fits the budget, or needs no more than ``split``,
    which divides until each part fits.

    Raises
    ------
    MemoryPlanError
        Nothing that was asked for fits.
    """
    part = three.whole(triple)
    chosen = asked.traceback
    if chosen == "auto":
        stored, split = (bytes_of(triple, part, asked, x) for x in ("store", "split"))
        chosen = "store" if stored <= max(asked.budget, split) else "split"
    needed = bytes_of(triple, part, asked, chosen)
    if needed > asked.budget:
        _refuse(triple, asked, chosen, needed)
    implementation, schedule = three_choice.name_of(triple, asked.schedule)
    return {
        "cells": _cells(triple),
        "gap_model": asked.gap_model,
        "states": triple.model.states,
        "implementation": implementation,
        "schedule": schedule,
        "traceback": chosen,
        "dtype": triple.dtype,
        "bytes": needed,
        "budget": asked.budget,
    }


def bytes_of(triple: Triple, part: Part, asked: Asked, way: str | None) -> int:
    """Bytes that a traceback needs for a part, the least it can do with."""
    if way == "store":
        return three.store_bytes(triple, part)
    if way in CHUNKED:
        return sum(three_grid.bytes_needed(_grid(triple, part, asked)).values())
    return three.sweep_bytes(triple, part) * (2 if way == "split" else 1)


def _refuse(triple, asked, way, needed):
    """Name a budget that would do, and equal lengths that would fit this one."""
    fits, over = 0, 2**16
    while over - fits > 1:
        middle = (fits + over) // 2
        if _fits(triple, asked, way, middle):
            fits = middle
        else:
            over = middle
    lengths = " x ".join(str(n) for n in sorted(triple.lengths))
    raise MemoryPlanError(
        f"{lengths} residues with traceback {way} need {show_bytes(needed)}, the "
        f"memory budget is {show_bytes(asked.budget)}: a budget of {needed} bytes "
        f"would fit, or sequences of about {fits} residues each"
    )


def _fits(triple, asked, way, length) -> bool:
    """Whether three sequences of this length fit the budget."""
    try:
        part = Part((0, 0, 0), (length,) * 3)
        return bytes_of(triple, part, asked, way) <= asked.budget
    except MemoryPlanError:  # chunks of more points than a pointer can name
        return False


def run(sequences, scoring, asked: Asked, progress=None) -> TripleAlignment:
    """Plan and align the three sequences of a set."""
    triple = triple_of(sequences, scoring, asked)
    plan = make_plan(triple, asked)
    if progress:
        total = plan["cells"] * (2 if plan["traceback"] == "split" else 1)
        triple.done["progress"] = lambda done: progress(min(done, total), total)
    began = time.perf_counter()
    try:
        with precision(triple.dtype):
            score, part, columns = _solved(triple, asked, plan)
    except CertificateError:
        if asked.named:
            raise
        return run(sequences, scoring, replace(asked, kernels=None), progress)
    triple.done["seconds"]["total"] = time.perf_counter() - began
    return result(
        sequences, (0, 1, 2), scoring, asked, plan, triple, score, part, columns
    )


def _solved(triple: Triple, asked: Asked, plan: dict):
    """(score, the part aligned, its columns or None)."""
    part, way = three.whole(triple), plan["traceback"]
    if triple.mode == "local":
        with triple.timed("ends"):
            if way is None:
                return max(three.best_cell(triple, part)[0], 0), part, None
            score, part = three.local_part(triple)
        if score == 0:
            return 0, part, np.zeros(0, np.uint8)
        triple = replace(triple, mode="global")
    if way is None:
        with triple.timed("fill"):
            return three.score(triple, part), part, None
    score, columns = _traced(triple, part, asked, way)
    return score, part, columns


def _traced(triple, part, asked, way):
    """(score, columns) of a part, by a named traceback."""
    if way == "store":
        return three.stored(triple, part)
    if way == "split":
        # Asked for by name, it divides even what could be stored whole.
        limit = asked.budget
        if asked.traceback == "split":
            limit = min(limit, three.store_bytes(triple, part) // 16)
        return three_split.aligned(triple, part, limit)
    grid = _grid(triple, part, asked)
    triple.done["bytes"] = three_grid.bytes_needed(grid)
    return three_chunks.aligned(grid)


def _grid(triple, part, asked):
    sizes = three_grid.sizes(triple, asked.chunk, asked.height, asked.depth)
    return three_grid.grid_of(triple, part, asked.traceback, *sizes)


def run_many(sequences, scoring, asked: Asked, progress=None) -> list[TripleAlignment]:
    """Align the triples 3n, 3n + 1, 3n + 2 of a set, in batches of one shape."""
    indices = [(n, n + 1, n + 2) for n in range(0, len(sequences), 3)]
    triples = [triple_of(sequences, scoring, asked, at) for at in indices]
    out: dict[int, TripleAlignment] = {}
    cells, done = [_cells(t) for t in triples], 0
    for batch in three_batch.batches(triples, asked.budget):
        paths = asked.traceback is not None
        try:
            found = three_batch.aligned([triples[n] for n in batch], paths)
        except CertificateError:  # those run alone, below
            continue
        for n, solved in zip(batch, found, strict=True):
            one = three.store_bytes if paths else three.sweep_bytes
            needed = one(triples[n], three.whole(triples[n]))
            plan = {"traceback": "store" if paths else None, "bytes": needed}
            what = sequences, indices[n], scoring, asked, plan, triples[n]
            out[n] = result(*what, *solved)
        done += sum(cells[n] for n in batch)
        if progress:
            progress(done, sum(cells))
    for n in set(range(len(triples))) - set(out):
        out[n] = run(sequences.take(indices[n]), scoring, asked)
    return [out[n] for n in range(len(triples))]


def _cells(triple: Triple) -> int:
    return int(np.prod([n + 1 for n in triple.lengths], dtype=object))


def result(
    sequences, indices, scoring, asked, plan, triple, score, part, columns
) -> TripleAlignment:
    """What a caller gets: rows in the caller's order, scores unscaled."""
    implementation, schedule = three_choice.name_of(triple, asked.schedule)
    back = np.argsort(triple.order)
    texts = tuple(sequences.text(n) for n in indices)
    rows = spans = None
    if columns is not None:
        spans = tuple((int(part.low[n]), int(part.high[n])) for n in back)
        pieces = zip(texts, spans, back, strict=True)
        rows = tuple(
            gapped(text[slice(*span)], columns, 4 >> int(axis))
            for text, span, axis in pieces
        )
    return TripleAlignment(
        texts,
        tuple(sequences.names[n] for n in indices),
        score if scoring.scale == 1 else score / scoring.scale,
        rows,
        spans,
        scoring,
        asked.gap_model,
        asked.mode,
        schedule,
        plan["traceback"],
        implementation,
        triple.done["cells"],
        dict(triple.done["seconds"]),
        dict(triple.done.get("bytes", {})) | {"planned": plan["bytes"]},
    )
