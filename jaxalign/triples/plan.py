"""Align one triple: what it needs, which traceback, and the result."""

import time
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from jaxalign.errors import CertificateError, MemoryPlanError
from jaxalign.model import bounds
from jaxalign.model.triple import TripleAlignment
from jaxalign.runtime import device_errors
from jaxalign.runtime.devices import precision
from jaxalign.runtime.memory import forget_programs, show_bytes
from jaxalign.triples import engine, fill_choice
from jaxalign.triples.batch import aligned, batches, fills, walks
from jaxalign.triples.dp.recurrence import MODELS, matrices_in
from jaxalign.triples.engine import Part, Triple
from jaxalign.triples.result import results
from jaxalign.triples.tracebacks import (
    chunk_faces,
    chunk_grid,
    chunks,
    divide_and_conquer,
)

SCHEDULES = ("auto", *engine.FILLS)
CHUNKED = ("bt1", "bt2", "bt3")
TRACEBACKS = ("auto", "store", "split", *CHUNKED)
# What is compiled for each shape of a box.
COMPILED = (
    *(engine.fill, engine.begin, engine.advance, engine.finish, engine.walk),
    *(chunk_faces.fill, chunk_faces.start_point, chunk_faces.again),
    *(fills, walks, divide_and_conquer.joined),
)


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


def triples_of(sequences, scoring, asked: Asked) -> list[Triple]:
    """Sequences 3n, 3n + 1, 3n + 2 of a call as a ``Triple``, the longest last."""
    lengths, kernels = sequences.lengths.reshape(-1, 3), asked.kernels
    if not len(lengths):
        return []
    made = _maker(sequences, lengths, scoring, asked)
    all_of, how = range(len(lengths)), (asked.named, asked.traceback is not None)

    def refused(n):
        return kernels is None or fill_choice.refusal(made(n), kernels, *how)

    if not refused(lengths.sum(axis=1).argmax()):  # nor any that is shorter
        return [made(n, kernels) for n in all_of]
    return [made(n, None if refused(n) else kernels) for n in all_of]


def _maker(sequences, lengths, scoring, asked):
    """A function of n that makes triple n; what all have in common is found once."""
    orders = np.argsort(lengths, axis=1, kind="stable").tolist()
    dtypes, cost = _dtypes(lengths, scoring), (scoring.open, scoring.extend)
    plain, symmetric = (scoring.scores,) * 3, scoring.symmetric
    matrices = cache(lambda order: matrices_in(order, plain))
    codes, at = sequences.codes, sequences.offsets.tolist()
    words = MODELS[asked.gap_model], asked.mode, asked.schedule

    def made(n, kernels=None) -> Triple:
        order = tuple(orders[n])
        some = [codes[at[m] : at[m + 1]] for m in (3 * n + axis for axis in order)]
        scores = plain if symmetric else matrices(order)
        done = {"seconds": {}, "cells": 0}
        return Triple(
            tuple(some), order, scores, cost, dtypes[n], *words, kernels, done
        )

    return made


def _dtypes(lengths, scoring) -> list[str]:
    """Of the scores of each triple; where the longest is fine, all are."""
    totals = lengths.sum(axis=1)
    if (all_of := bounds.triple_dtype([totals.max()], scoring)) == "int32":
        return [all_of] * len(totals)
    return [bounds.triple_dtype([total], scoring) for total in totals]


def make_plan(triple: Triple, asked: Asked) -> dict:
    """Which traceback will run, and in how many bytes.

    ``auto`` is ``store`` where that fits the budget, or needs no more than ``split``,
    which divides until each part fits.

    Raises
    ------
    MemoryPlanError
        Nothing that was asked for fits.
    """
    part = engine.whole(triple)
    chosen = asked.traceback
    if chosen == "auto":
        stored, split = (bytes_of(triple, part, asked, x) for x in ("store", "split"))
        chosen = "store" if stored <= max(asked.budget, split) else "split"
    needed = bytes_of(triple, part, asked, chosen)
    if needed > asked.budget:
        _refuse(triple, asked, chosen, needed)
    implementation, schedule = fill_choice.name_of(triple, asked.schedule)
    return {
        "cells": _cells(triple),
        "gap_model": asked.gap_model,
        "states": triple.model.states,
        "implementation": implementation,
        "schedule": schedule,
        "traceback": chosen,
        "dtype": triple.dtype,
        "bytes": needed,
        "budget_bytes": asked.budget,
    }


def bytes_of(triple: Triple, part: Part, asked: Asked, way: str | None) -> int:
    """Bytes that a traceback needs for a part, the least it can do with."""
    if way == "store":
        return engine.store_bytes(triple, part)
    if way in CHUNKED:
        return sum(chunk_grid.bytes_needed(_grid(triple, part, asked)).values())
    return engine.sweep_bytes(triple, part) * (2 if way == "split" else 1)


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
        f"{lengths} residues with traceback {way or 'none'} need "
        f"{show_bytes(needed)}, the "
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
    forget_programs(COMPILED)
    (triple,) = triples_of(sequences, scoring, asked)
    plan = make_plan(triple, asked)
    if progress:
        total = plan["cells"] * (2 if plan["traceback"] == "split" else 1)
        triple.done["progress"] = lambda done: progress(min(done, total), total)
    began = time.perf_counter()
    try:
        with precision(triple.dtype), device_errors.explained(_letters(triple)):
            score, part, columns = _solved(triple, asked, plan)
    except CertificateError:
        if asked.named:
            raise
        return run(sequences, scoring, replace(asked, kernels=None), progress)
    triple.done["seconds"]["total"] = time.perf_counter() - began
    texts, names = [tuple(sequences.texts())], [sequences.names]
    solved = [(score, part, columns)]
    return results(texts, names, scoring, asked, plan, [triple], solved)[0]


def _solved(triple: Triple, asked: Asked, plan: dict):
    """(score, the part aligned, its columns or None)."""
    part, way = engine.whole(triple), plan["traceback"]
    if triple.mode == "local":
        with triple.timed("ends"):
            if way is None:
                return max(engine.best_cell(triple, part)[0], 0), part, None
            score, part = engine.local_part(triple)
        if score == 0:
            return 0, part, np.zeros(0, np.uint8)
        triple = replace(triple, mode="global")
    if way is None:
        with triple.timed("fill"):
            return engine.score(triple, part), part, None
    score, columns = _traced(triple, part, asked, way)
    return score, part, columns


def _traced(triple, part, asked, way):
    """(score, columns) of a part, by a named traceback."""
    if way == "store":
        return engine.stored(triple, part)
    if way == "split":
        # Asked for by name, it divides even what could be stored whole.
        limit = asked.budget
        if asked.traceback == "split":
            limit = min(limit, engine.store_bytes(triple, part) // 16)
        return divide_and_conquer.aligned(triple, part, limit)
    grid = _grid(triple, part, asked)
    triple.done["bytes"] = chunk_grid.bytes_needed(grid)
    return chunks.aligned(grid)


def _grid(triple, part, asked):
    """The chunks asked for; else those of the paper or, where many are filled at once
    and memory holds their faces, cubes."""
    sizes = chunk_grid.sizes(triple, asked.chunk, asked.height, asked.depth)
    what = triple, part, asked.traceback
    if not (asked.height or asked.depth) and chunk_grid.many_at_once():
        cubes = chunk_grid.grid_of(*what, *sizes[:1] * 3)
        if sum(chunk_grid.bytes_needed(cubes).values()) <= asked.budget:
            return cubes
    return chunk_grid.grid_of(*what, *sizes)


def run_many(sequences, scoring, asked: Asked, progress=None) -> list[TripleAlignment]:
    """Align the triples 3n, 3n + 1, 3n + 2 of a set, in batches of one shape."""
    triples = triples_of(sequences, scoring, asked)
    texts, names = _threes(sequences.texts()), _threes(sequences.names)
    out: dict[int, TripleAlignment] = {}
    cells, done = [_cells(t) for t in triples], 0
    for batch in batches(triples, asked.budget):
        forget_programs(COMPILED)
        paths = asked.traceback is not None
        some = [triples[n] for n in batch]
        try:
            with device_errors.explained(f"{len(some):,} triples"):
                solved = aligned(some, paths)
        except (CertificateError, MemoryPlanError):  # those run alone, below
            continue
        one = engine.store_bytes if paths else engine.sweep_bytes
        needed = one(some[0], engine.whole(some[0]))  # of one shape, so are their bytes
        plan = {"traceback": "store" if paths else None, "bytes": needed}
        told = [texts[n] for n in batch], [names[n] for n in batch]
        found = results(*told, scoring, asked, plan, some, solved)
        out |= zip(batch, found, strict=True)
        done += sum(cells[n] for n in batch)
        if progress:
            progress(done, sum(cells))
    for n in set(range(len(triples))) - set(out):
        out[n] = run(sequences.between(3 * n, 3 * n + 3), scoring, asked)
    return [out[n] for n in range(len(triples))]


def _letters(triple: Triple) -> str:
    """What it is, for a message."""
    a, b, c = triple.lengths
    return f"three sequences of {a:,} x {b:,} x {c:,} letters"


def _threes(items) -> list[tuple]:
    return list(zip(*[iter(items)] * 3, strict=True))


def _cells(triple: Triple) -> int:
    a, b, c = triple.lengths
    return (a + 1) * (b + 1) * (c + 1)
