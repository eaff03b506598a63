"""Many triples: ``vmap`` of ``triples.dp.planes`` over triples whose boxes have one
shape."""

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxalign.runtime.devices import precision
from jaxalign.runtime.programs import program
from jaxalign.triples import engine, gpu
from jaxalign.triples.dp import choice_walk, planes
from jaxalign.triples.dp.boxes import Box, FillOutputs, TripleScoring
from jaxalign.triples.dp.recurrence import Model, backwards
from jaxalign.triples.result import EMPTY_REGION, Region, ScoredPath, Triple
from jaxalign.triples.tracebacks import stored_box

MAX_TRIPLES = 256  # of one batch


def batches(triples: list[Triple], budget: int) -> list[list[int]]:
    """Indices of triples that run together: of one shape and dtype, of the same
    matrices, within a budget.

    A triple whose choices alone exceed the budget is left out.
    """
    groups = {}
    for n, triple in enumerate(triples):
        matrices = tuple(map(id, triple.matrices))
        groups.setdefault((_shape_of(triple), triple.dtype, matrices), []).append(n)
    parts = []
    for group in groups.values():
        first = triples[group[0]]
        size = budget // stored_box.device_bytes(first, engine.whole(first))
        size = min(size, MAX_TRIPLES)
        starts = range(0, len(group), size) if size else ()
        parts += [group[start : start + size] for start in starts]
    return parts


def _shape_of(triple: Triple):
    """The shape that triples which run together share."""
    if triple.kernels and triple.mode == "global":
        return "kernels", *gpu.rounded(triple.lengths)
    return engine.shape_of(engine.whole(triple))


def align(triples: list[Triple], paths: bool) -> list[ScoredPath]:
    """Scores, and with ``paths`` their columns, of triples of one shape and dtype."""
    regions = [engine.whole(triple) for triple in triples]
    with precision(triples[0].dtype):
        if triples[0].mode == "local":
            return _align_locally(triples, regions, paths)
        return _trace_back(triples, regions, paths)


def _align_locally(triples: list[Triple], regions: list[Region], paths: bool):
    """The ends by one sweep, the starts by one back; then the cells between them."""
    ends = _best_cells(triples, regions)
    if not paths:
        pairs = zip(ends, regions, strict=True)
        return [ScoredPath(max(score, 0), region) for (score, _), region in pairs]
    before = [Region((0, 0, 0), cell) for _, cell in ends]
    starts = _best_cells(triples, before, reverse=True)
    pairs = zip(ends, starts, strict=True)
    cores = [
        Region(low, high) if score > 0 else EMPTY_REGION
        for (score, high), (_, low) in pairs
    ]
    inner = [replace(triple, mode="global") for triple in triples]
    return _trace_back(inner, cores, paths)


def _best_cells(triples: list[Triple], regions: list[Region], reverse: bool = False):
    outputs = engine.best_outputs(triples[0], reverse)
    filled = _sweep(triples, regions, reverse, **outputs)
    best, best_w = np.asarray(filled.best), np.asarray(filled.best_w)
    pairs = zip(regions, best, best_w, strict=False)
    return [engine.greatest_cell(*each, reverse) for each in pairs]


def _trace_back(triples: list[Triple], regions: list[Region], paths: bool):
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
    begin = np.ones((len(filled.end), 4), np.int32)
    begin[:count, :3] += [region.extent for region in regions]
    begin[:count, 3] = [state for _, state in ends]
    longest = engine.padded_length(int(begin[:, :3].sum(axis=1).max()))
    traces = walks(triples[0].model, filled.choices, begin, longest)
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

    def one(box: Box, costs: TripleScoring):
        return planes.fill(model, outputs, box, costs, None, stop)

    return jax.vmap(one)(box, costs)


@program(("model", "longest"))
def walks(model: Model, choices: jax.Array, begin: jax.Array, longest: int):
    """The path through every box of a batch."""

    def one(choices: jax.Array, begin: jax.Array):
        choice_at = partial(planes.choice_at, model, choices)
        return choice_walk.walk(model, choice_at, begin, longest)

    return jax.vmap(one)(choices, begin)
