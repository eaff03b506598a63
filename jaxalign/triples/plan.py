"""The plan of a triple, which is shown and then run: its traceback, and its bytes; and
many triples, in batches of boxes of one shape."""

import time
from collections.abc import Iterable
from dataclasses import replace
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxalign.errors import CertificateError, MemoryPlanError
from jaxalign.model import bounds
from jaxalign.model.alphabet import Sequences
from jaxalign.model.scoring import Scoring
from jaxalign.model.triple import TripleAlignment
from jaxalign.options import Progress
from jaxalign.runtime import programs
from jaxalign.runtime.devices import first_device, precision, show_bytes
from jaxalign.runtime.pipeline import in_advance
from jaxalign.runtime.programs import program
from jaxalign.triples import engine, gpu, tracebacks
from jaxalign.triples.dp import planes, recurrence
from jaxalign.triples.dp.recurrence import (
    MODELS,
    Box,
    FillOutputs,
    Model,
    TripleScoring,
    backwards,
    matrices_in,
)
from jaxalign.triples.options import (
    CHUNKED,
    KERNEL_SCHEDULE,
    SCHEDULE_OF_FILL,
    TripleRequest,
)
from jaxalign.triples.result import (
    EMPTY_REGION,
    Region,
    ScoredPath,
    Tally,
    Triple,
    TriplePlan,
    alignments,
)

MAX_TRIPLES = 256  # of one batch


def triples_of(
    sequences: Sequences, scoring: Scoring, request: TripleRequest
) -> list[Triple]:
    """Sequences 3n, 3n + 1, 3n + 2 of a call as a ``Triple``, the longest last."""
    lengths, options = sequences.lengths.reshape(-1, 3), request.options
    if not len(lengths):
        return []
    # Common parts are computed once; a dtype that holds the longest holds all.
    orders, totals = np.argsort(lengths, axis=1, kind="stable"), lengths.sum(axis=1)
    dtypes = [bounds.triple_dtype([totals.max()], scoring)] * len(totals)
    if dtypes[0] != "int32":
        dtypes = [bounds.triple_dtype([total], scoring) for total in totals]
    cost, plain = (scoring.open, scoring.extend), (scoring.scores,) * 3
    matrices = cache(lambda order: matrices_in(order, plain))
    codes, at = sequences.codes, sequences.offsets.tolist()
    words = MODELS[options.gap_model], options.mode, options.schedule

    def make(n: int, kernels: Any = None) -> Triple:
        order = tuple(orders[n].tolist())
        letters = [codes[at[m] : at[m + 1]] for m in (3 * n + axis for axis in order)]
        scores = plain if scoring.symmetric else matrices(order)
        return Triple(tuple(letters), order, scores, cost, dtypes[n], *words, kernels)

    kernels, paths = request.kernels, options.traceback is not None

    def refused(n: int):
        return kernels is None or gpu.refusal(make(n), kernels, request.named, paths)

    numbers = range(len(lengths))
    if not refused(totals.argmax()):  # nor any that is shorter
        return [make(n, kernels) for n in numbers]
    return [make(n, None if refused(n) else kernels) for n in numbers]


def make_plan(triple: Triple, request: TripleRequest) -> TriplePlan:
    """The plan of a triple.

    ``auto`` is ``store`` where that fits the budget, or needs no more than ``split``,
    which divides until each region fits. A plan over budget is refused with a budget
    and lengths that would fit.
    """
    region, traceback = engine.whole(triple), request.options.traceback
    if traceback == "auto":
        stored, split = (
            bytes_of(triple, region, request, way) for way in ("store", "split")
        )
        traceback = "store" if stored <= max(request.budget, split) else "split"
    plan = _plan_with(traceback, triple, request)
    if plan.bytes <= request.budget:
        return plan

    def fits(length: int) -> bool:
        region = Region((0, 0, 0), (length,) * 3)
        try:
            return bytes_of(triple, region, request, plan.traceback) <= request.budget
        except MemoryPlanError:  # chunks of more points than a pointer can name
            return False

    largest, over = 0, 2**16
    while over - largest > 1:
        middle = (largest + over) // 2
        largest, over = (middle, over) if fits(middle) else (largest, middle)
    lengths = " x ".join(str(n) for n in sorted(triple.lengths))
    raise MemoryPlanError(
        f"{lengths} residues with traceback {plan.traceback or 'none'} need "
        f"{show_bytes(plan.bytes)}, the "
        f"memory budget is {show_bytes(plan.budget_bytes)}: a budget of {plan.bytes} "
        f"bytes would fit, or sequences of about {largest} residues each"
    )


def _plan_with(traceback: str | None, triple: Triple, request: TripleRequest):
    region, schedule = engine.whole(triple), triple.schedule
    names = {name: fill for fill, name in SCHEDULE_OF_FILL.items()}
    fill = names[schedule]
    if triple.kernels:
        fill, schedule = "pallas", KERNEL_SCHEDULE
    return TriplePlan(
        cells=region.cells,
        gap_model=request.options.gap_model,
        states=triple.model.states,
        implementation=fill,
        schedule=schedule,
        traceback=traceback,
        dtype=triple.dtype,
        bytes=bytes_of(triple, region, request, traceback),
        budget_bytes=request.budget,
    )


def bytes_of(
    triple: Triple, region: Region, request: TripleRequest, traceback: str | None
) -> int:
    """Least bytes of a traceback of a region."""
    if traceback == "store":
        return tracebacks.device_bytes(triple, region)
    if traceback in CHUNKED:
        grid = tracebacks.grid_for(triple, region, request, traceback)
        return sum(tracebacks.grid_bytes(grid).values())
    return engine.sweep_bytes(triple, region) * (2 if traceback == "split" else 1)


def run(
    sequences: Sequences,
    scoring: Scoring,
    request: TripleRequest,
    progress: Progress = None,
    saved: Any = None,
) -> TripleAlignment:
    """Plan and align the three sequences of a set.

    saved : the state of a run that was interrupted, or may be; of GPU kernels none
    """
    (triple,) = triples_of(sequences, scoring, request)
    plan = make_plan(triple, request)
    if progress:
        total = plan.cells * (2 if plan.traceback == "split" else 1)
        triple.tally.listener = lambda cells: progress(min(cells, total), total)
    if not triple.kernels:
        triple.tally.saved = saved
    start = time.perf_counter()
    letters = "three sequences of {:,} x {:,} x {:,} letters".format(*triple.lengths)
    try:
        with precision(triple.dtype), programs.explained(letters):
            path = _align(triple, request, plan)
    except CertificateError:
        if request.named:
            raise
        return run(sequences, scoring, replace(request, kernels=None), progress, saved)
    triple.tally.seconds["total"] = time.perf_counter() - start
    texts, names = _threes(sequences.texts()), _threes(sequences.names)
    return alignments(texts, names, scoring, plan, [triple], [path])[0]


def _align(triple: Triple, request: TripleRequest, plan: TriplePlan) -> ScoredPath:
    """The best path of a triple, or its score."""
    region, traceback = engine.whole(triple), plan.traceback
    if triple.mode == "local":
        # The region that a best local alignment covers, by two sweeps.
        with triple.tally.timed("ends"):
            best, high = engine.best_cell(triple, region)
            if traceback is None:
                return ScoredPath(max(best, 0), region)
            if best <= 0:
                return ScoredPath(0, EMPTY_REGION, np.zeros(0, np.uint8))
            before = Region((0, 0, 0), high)
            low = engine.best_cell(triple, before, reverse=True)[1]
        region = Region(low, high)
        triple = replace(triple, mode="global")
    if traceback is None:
        with triple.tally.timed("fill"):
            return ScoredPath(engine.score(triple, region), region)
    if traceback == "store":
        score, columns = tracebacks.align_stored(triple, region)
    elif traceback == "split":
        # One that is named divides even a region which could be stored whole.
        limit = request.budget
        if request.options.traceback == "split":
            limit = min(limit, tracebacks.device_bytes(triple, region) // 16)
        score, columns = tracebacks.align_split(triple, region, limit)
    else:
        grid = tracebacks.grid_for(triple, region, request, traceback)
        triple.tally.face_bytes = tracebacks.grid_bytes(grid)
        score, columns = tracebacks.align_chunks(grid)
    return ScoredPath(score, region, columns)


def run_many(
    sequences: Sequences,
    scoring: Scoring,
    request: TripleRequest,
    progress: Progress = None,
) -> list[TripleAlignment]:
    """Align the triples 3n, 3n + 1, 3n + 2 of a set, in batches of one shape."""
    triples = triples_of(sequences, scoring, request)
    texts, names = _threes(sequences.texts()), _threes(sequences.names)
    paths = request.options.traceback is not None
    out: dict[int, TripleAlignment] = {}
    device = first_device()  # threads do not know a caller's choice
    cells, tally = [engine.whole(triple).cells for triple in triples], Tally()
    if progress:
        tally.listener = lambda count: progress(count, sum(cells))

    def solved(numbers: list[int]) -> list[ScoredPath | None]:
        """Paths of a batch; None for triples that have to run alone, below."""
        batched = [triples[n] for n in numbers]
        try:
            subject = f"{len(batched):,} triples"
            with jax.default_device(device), programs.explained(subject):
                return [*align_batch(batched, paths)]
        except (CertificateError, MemoryPlanError):
            if len(numbers) == 1:
                return [None]
            half = len(numbers) // 2
            return solved(numbers[:half]) + solved(numbers[half:])

    # Kernels fill a batch while results are made of the one before.
    overlap = int(any(triple.kernels for triple in triples))
    parts = batches(triples, request.budget // (1 + overlap))
    solutions = in_advance(solved, parts, overlap) if overlap else map(solved, parts)
    for numbers, answers in zip(parts, solutions, strict=True):
        pairs = zip(numbers, answers, strict=True)
        aligned = [(n, path) for n, path in pairs if path is not None]
        if not aligned:
            continue
        each = [n for n, _ in aligned]
        batched = [triples[n] for n in each]
        labels = [texts[n] for n in each], [names[n] for n in each]
        plan = _plan_with(request.options.traceback and "store", batched[0], request)
        results = alignments(
            *labels, scoring, plan, batched, [path for _, path in aligned]
        )
        out |= zip(each, results, strict=True)
        tally.add(sum(cells[n] for n in each))
    for n in set(range(len(triples))) - set(out):
        out[n] = run(sequences.between(3 * n, 3 * n + 3), scoring, request)
    return [out[n] for n in range(len(triples))]


def batches(triples: list[Triple], budget: int) -> list[list[int]]:
    """Indices of triples that run together, of one shape and dtype, of the same
    matrices, within a budget; those with the most cells first.

    A batch is filled up to a power of two. A triple whose choices alone exceed the
    budget is left out.
    """
    groups = {}
    for n, triple in enumerate(triples):
        if triple.kernels:
            shape = "kernels", *gpu.rounded(triple.lengths)
        else:
            shape = engine.shape_of(engine.whole(triple))
        matrices = tuple(map(id, triple.matrices))
        groups.setdefault((shape, triple.dtype, matrices), []).append(n)
    parts = []
    for group in groups.values():
        first = triples[group[0]]
        size = budget // tracebacks.device_bytes(first, engine.whole(first))
        if not size:
            continue
        size = min(2 ** (size.bit_length() - 1), MAX_TRIPLES)
        group.sort(key=lambda n: triples[n].lengths, reverse=True)
        parts += [group[start : start + size] for start in range(0, len(group), size)]
    return sorted(parts, key=lambda part: triples[part[0]].lengths, reverse=True)


def align_batch(triples: list[Triple], paths: bool) -> list[ScoredPath]:
    """Scores, and with ``paths`` their columns, of triples of one shape and dtype."""
    regions = [engine.whole(triple) for triple in triples]
    with precision(triples[0].dtype):
        if triples[0].mode != "local":
            return _trace_batch(triples, regions, paths)
        # The ends by one sweep, the starts by one back; then the cells between them.
        ends = _best_cells(triples, regions)
        if not paths:
            pairs = zip(ends, regions, strict=True)
            return [ScoredPath(max(score, 0), region) for (score, _), region in pairs]
        before = [Region((0, 0, 0), cell) for _, cell in ends]
        starts = _best_cells(triples, before, reverse=True)
        cores = [
            Region(low, high) if score > 0 else EMPTY_REGION
            for (score, high), (_, low) in zip(ends, starts, strict=True)
        ]
        inner = [replace(triple, mode="global") for triple in triples]
        return _trace_batch(inner, cores, paths)


def _best_cells(triples: list[Triple], regions: list[Region], reverse: bool = False):
    """(score, cell) of the best local end of each region, or start going back."""
    if triples[0].kernels:
        for triple, region in zip(triples, regions, strict=True):
            triple.tally.add(region.cells)
        return gpu.best_cells(triples, regions, reverse)
    outputs = engine.best_outputs(triples[0], reverse)
    filled = _sweep(triples, regions, reverse, **outputs)
    best, best_w = np.asarray(filled.best), np.asarray(filled.best_w)
    pairs = zip(regions, best, best_w, strict=False)
    return [engine.greatest_cell(*each, reverse) for each in pairs]


def _trace_batch(triples: list[Triple], regions: list[Region], paths: bool):
    """The best path of each region, or its score."""
    if triples[0].kernels:
        for triple, region in zip(triples, regions, strict=True):
            triple.tally.add(region.cells)
        pairs = zip(gpu.solve(triples, regions, paths), regions, strict=True)
        return [ScoredPath(score, region, path) for (score, path), region in pairs]
    filled = _sweep(triples, regions, choices=paths)
    count = len(regions)
    pairs = zip(regions, np.asarray(filled.end)[:count], strict=True)
    ends = [engine.best_end(region, end) for region, end in pairs]
    if not paths:
        return [ScoredPath(ends[n][0], regions[n]) for n in range(count)]
    points = np.ones((len(filled.end), 4), np.int32)
    points[:count, :3] += [region.extent for region in regions]
    points[:count, 3] = [state for _, state in ends]
    longest = engine.padded_length(int(points[:, :3].sum(axis=1).max()))
    traces = walks(triples[0].model, filled.choices, points, longest)
    rows, counts = np.asarray(traces.columns), np.asarray(traces.count)
    columns = [rows[n, : counts[n]][::-1] for n in range(count)]
    return [ScoredPath(ends[n][0], regions[n], columns[n]) for n in range(count)]


def _sweep(
    triples: list[Triple], regions: list[Region], reverse: bool = False, **outputs: Any
):
    """Fill a region of each triple; the batch is padded to a power of two."""
    shapes = [engine.shape_of(region) for region in regions]
    shape = tuple(max(sizes) for sizes in zip(*shapes, strict=True))
    problems = []
    for triple, region in zip(triples, regions, strict=True):
        seed = engine.seed_of(triple, None if reverse else (region.start,))
        box = engine.box_of(triple, region, seed, shape, reverse)
        problems.append((box, triple.scoring))
        triple.tally.add(region.cells)
    problems += problems[:1] * (2 ** (len(problems) - 1).bit_length() - len(problems))
    box = Box._make(map(np.stack, zip(*(box for box, _ in problems), strict=True)))
    costs = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(c for _, c in problems))
    model = triples[0].model
    static = FillOutputs(free=triples[0].mode == "semiglobal", **outputs)
    stop = int(box.size.sum(axis=1).max())
    return fills(backwards(model) if reverse else model, static, box, costs, stop)


@program(("model", "outputs"))
def fills(
    model: Model, outputs: FillOutputs, box: Box, costs: TripleScoring, stop: jax.Array
):
    """``planes.fill`` of every box of a batch."""

    def fill_box(box: Box, costs: TripleScoring):
        return planes.fill(model, outputs, box, costs, None, stop)

    return jax.vmap(fill_box)(box, costs)


@program(("model", "longest"))
def walks(model: Model, choices: jax.Array, points: jax.Array, longest: int):
    """The path through every box of a batch."""

    def walk_box(choices: jax.Array, point: jax.Array):
        choice_at = partial(planes.choice_at, model, choices)
        return recurrence.walk(model, choice_at, point, longest)

    return jax.vmap(walk_box)(choices, points)


def _threes(items: Iterable[str]) -> list[tuple[str, str, str]]:
    each = iter(items)
    return list(zip(each, each, each, strict=True))
