"""Many triples: ``vmap`` of ``triples.dp.planes`` over triples whose boxes have one
shape."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from jaxalign.runtime.devices import precision
from jaxalign.triples import engine, gpu
from jaxalign.triples.dp import choice_walk, planes
from jaxalign.triples.dp.boxes import Box, Costs, Want
from jaxalign.triples.dp.recurrence import backwards
from jaxalign.triples.engine import NOTHING, Part, Triple

LARGEST_BATCH = 256


def batches(triples: list[Triple], budget: int) -> list[list[int]]:
    """Indices of triples that run together: of one shape and dtype, of the same
    matrices, within a budget.

    A triple whose choices alone exceed the budget is left out.
    """
    groups = {}
    for n, triple in enumerate(triples):
        matrices = tuple(map(id, triple.matrices))
        groups.setdefault((_like(triple), triple.dtype, matrices), []).append(n)
    cut = []
    for found in groups.values():
        each = engine.store_bytes(triples[found[0]], engine.whole(triples[found[0]]))
        size = min(budget // each, LARGEST_BATCH)
        starts = range(0, len(found), size) if size else ()
        cut += [found[start : start + size] for start in starts]
    return cut


def _like(triple: Triple):
    """What triples that run together have in common."""
    if triple.kernels and triple.mode == "global":
        return "kernels", *gpu.rounded(triple.lengths)
    return engine.shape_of(engine.whole(triple))


def aligned(triples: list[Triple], paths: bool):
    """[(score, part, columns or None)] of triples of one shape and dtype."""
    parts = [engine.whole(triple) for triple in triples]
    with precision(triples[0].dtype):
        if triples[0].mode == "local":
            return _local(triples, parts, paths)
        return _traced(triples, parts, paths)


def _local(triples, parts, paths):
    """The ends by one sweep, the starts by one back; then what lies between."""
    found = _best_cells(triples, parts)
    ends = [Part((0, 0, 0), cell) for _, cell in found]
    if not paths:
        pairs = zip(found, parts, strict=True)
        return [(max(score, 0), part, None) for (score, _), part in pairs]
    starts = _best_cells(triples, ends, reverse=True)
    pairs = zip(found, starts, strict=True)
    cores = [
        Part(low, high) if score > 0 else NOTHING for (score, high), (_, low) in pairs
    ]
    inner = [replace(triple, mode="global") for triple in triples]
    return _traced(inner, cores, paths)


def _best_cells(triples, parts, reverse=False):
    what = engine.best_wanted(triples[0], reverse)
    filled = _sweeps(triples, parts, reverse, **what)
    planes = zip(
        parts, np.asarray(filled.best), np.asarray(filled.best_w), strict=False
    )
    return [engine.found_cell(*each, reverse) for each in planes]


def _traced(triples, parts, paths):
    if triples[0].kernels:
        for triple, part in zip(triples, parts, strict=True):
            engine.count(triple, part.extent)
        solved = gpu.solved(triples, parts, paths)
        pairs = zip(solved, parts, strict=True)
        return [(score, part, columns) for (score, columns), part in pairs]
    filled = _sweeps(triples, parts, choices=paths)
    count = len(parts)
    pairs = zip(parts, np.asarray(filled.end)[:count], strict=True)
    ends = [engine.best_end(part, end) for part, end in pairs]
    if not paths:
        return [(ends[n][0], parts[n], None) for n in range(count)]
    begin = np.ones((len(filled.end), 4), np.int32)
    begin[:count, :3] += [part.extent for part in parts]
    begin[:count, 3] = [state for _, state in ends]
    longest = engine.padded(int(begin[:, :3].sum(axis=1).max()))
    walked = walks(triples[0].model, filled.choices, begin, longest)
    rows, counts = np.asarray(walked.columns), np.asarray(walked.count)
    return [(ends[n][0], parts[n], rows[n, : counts[n]][::-1]) for n in range(count)]


def _sweeps(triples, parts, reverse=False, **what):
    """Fill a part of each triple; the batch is padded to a power of two."""
    shapes = [engine.shape_of(part) for part in parts]
    shape = tuple(max(sizes) for sizes in zip(*shapes, strict=True))
    made = []
    for triple, part in zip(triples, parts, strict=True):
        seed = engine.seed_of(triple, None if reverse else (part.start,))
        made.append((engine.box_of(triple, part, seed, shape, reverse), triple.costs))
        engine.count(triple, part.extent)
    made += [made[0]] * (2 ** (len(made) - 1).bit_length() - len(made))
    box = Box(*map(np.stack, zip(*(box for box, _ in made), strict=True)))
    costs = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(c for _, c in made))
    model, want = triples[0].model, Want(free=triples[0].mode == "semiglobal", **what)
    stop = int(box.size.sum(axis=1).max())
    return fills(backwards(model) if reverse else model, want, box, costs, stop)


@partial(jax.jit, static_argnames=("model", "want"))
def fills(model, want, box: Box, costs: Costs, stop):
    def one(box, costs):
        return planes.fill(model, want, box, costs, None, stop)

    return jax.vmap(one)(box, costs)


@partial(jax.jit, static_argnames=("model", "longest"))
def walks(model, choices, begin, longest):
    def one(choices, begin):
        choice_at = partial(planes.choice_at, model, choices)
        return choice_walk.walk(model, choice_at, begin, longest)

    return jax.vmap(one)(choices, begin)
