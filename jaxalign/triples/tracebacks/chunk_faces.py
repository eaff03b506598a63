"""The faces of all chunks of BT1, BT2 and BT3 in a few arrays, and the fills that read
them.

A face is stored once, at the chunk that makes it: the chunk below it, beside it or
under it reads it from there.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxalign.affine import neg_inf
from jaxalign.runtime.programs import program
from jaxalign.triples import engine
from jaxalign.triples.dp import choice_walk
from jaxalign.triples.dp.boxes import Box, Faces, FillOutputs, TripleScoring
from jaxalign.triples.dp.recurrence import Model
from jaxalign.triples.tracebacks.chunk_grid import Grid, bottom_count, outputs_of


class FaceStore(NamedTuple):
    """H of every chunk's last layers and, as many channels again, start points.

    south (I, J, K, C, V, W), east (I, J, K, C, U, W), bottoms (I, J, K, L, C, U, V);
    ``end`` and ``begin`` (S,) are H and start points at the end of the region.
    """

    south: jax.Array
    east: jax.Array
    bottoms: jax.Array
    end: jax.Array
    begin: jax.Array


class PaddedRegion(NamedTuple):
    """A region that is cut into chunks: its letters, with padding, its free ends, and
    the ``seed`` of its first cell."""

    letters: tuple
    free: Any  # as ``seed``: of NumPy until a program takes it
    seed: Any
    costs: TripleScoring


class StaticGrid(NamedTuple):
    """The static part of a ``Grid``, for which programs are compiled."""

    schedule: str
    model: Model
    outputs: FillOutputs
    steps: tuple
    shape: tuple
    cubes: bool  # whether the third axis is cut, too


def static_of(grid: Grid) -> StaticGrid:
    """The static part of a grid."""
    triple = grid.triple
    words = triple.schedule, triple.model, outputs_of(grid)
    return StaticGrid(*words, grid.steps, grid.shape, grid.cubes)


def padded_region(grid: Grid) -> PaddedRegion:
    """The letters of a region, with room for its last chunk's box."""
    pairs = zip(grid.room, grid.steps, grid.shape, strict=True)
    room = tuple(count * step + size + grid.height for count, step, size in pairs)
    box = engine.box_of(grid.triple, grid.region, np.zeros(0), room)
    seed = engine.seed_of(grid.triple, (grid.region.start,))
    return PaddedRegion(tuple(box[:3]), box.free, seed, grid.triple.scoring)


def empty_store(grid: Grid) -> FaceStore:
    """Faces of minus infinity, before the first chunk."""
    (rows, columns, deep), states = grid.shape, grid.triple.model.states
    dtype = jnp.dtype(grid.triple.dtype)
    full = partial(jnp.full, fill_value=neg_inf(dtype), dtype=dtype)
    return FaceStore(
        full((*grid.room, 2 * states, columns, deep)),
        full((*grid.room, 2 * states, rows, deep)),
        full((*grid.room, bottom_count(grid), 2 * states, rows, columns)),
        full((states,)),
        jnp.zeros(states, jnp.int32),
    )


@program(("static",), donate_argnames="store")
def fill(
    static: StaticGrid,
    store: FaceStore,
    padded: PaddedRegion,
    chunks: jax.Array,
    sizes: jax.Array,
    stop: jax.Array,
) -> FaceStore:
    """Fill some chunks (n, 3) of ``sizes`` (n, 3) that do not need each other."""

    def one(chunk: jax.Array, size: jax.Array):
        box, faces = _inputs(static, store, padded, chunk, size)
        fills = engine.FILLS[static.schedule]
        return fills.fill(static.model, static.outputs, box, padded.costs, faces, stop)

    filled = jax.vmap(one)(chunks, sizes)
    at = tuple(chunks.T)
    lowest = store.bottoms
    if filled.bottoms is not None:
        lowest = lowest.at[at].set(filled.bottoms)
    return FaceStore(
        store.south.at[at].set(filled.south),
        store.east.at[at].set(filled.east),
        lowest,
        filled.end[0],
        filled.begin[0].astype(jnp.int32),
    )


def _inputs(
    static: StaticGrid,
    store: FaceStore,
    padded: PaddedRegion,
    chunk: jax.Array,
    size: jax.Array,
    above: jax.Array | None = None,
    deep: int | None = None,
):
    """(box, faces) of a chunk; of its layers from ``above`` on, ``deep`` with the one
    before them."""
    (rows, columns, all_deep), states = static.shape, static.model.states
    minus, zero = neg_inf(store.south.dtype), jnp.zeros((), jnp.int32)
    first = zero if above is None else above
    shape = rows, columns, deep or all_deep
    origin = chunk * jnp.asarray(static.steps, jnp.int32) + jnp.stack(
        [zero, zero, first]
    )
    letters = [
        lax.dynamic_slice(x, (origin[n],), (shape[n],))
        for n, x in enumerate(padded.letters)
    ]
    seed = jnp.where(jnp.all(origin == 0), jnp.asarray(padded.seed), minus)
    inside = padded.free >= 0
    free = jnp.where(inside, padded.free - origin[:, None], engine.NO_FREE_END)
    a, b, c = letters
    box = Box(a, b, c, seed, size, jnp.maximum(free, engine.NO_FREE_END))

    def face(array: jax.Array, axis: int):
        before = chunk.at[axis].add(-1)
        h = array[tuple(before)][..., :states, :, :]  # of the last one, for none
        h = jnp.where(before[axis] >= 0, h, minus)
        if above is None:
            return h
        padding = [(0, 0)] * 2 + [(0, shape[2])]
        h = jnp.pad(h, padding, constant_values=minus)
        return lax.dynamic_slice_in_dim(h, first, shape[2], axis=2)

    return box, Faces(
        face(store.south, 0), face(store.east, 1), _top(static, store, chunk, above)
    )


def _top(
    static: StaticGrid, store: FaceStore, chunk: jax.Array, above: jax.Array | None
):
    """The layer before a chunk, or before its layer ``above``; None at the table's
    edge, where chunks are as deep as it."""
    height, states = static.outputs.height, static.model.states
    if not height or (not static.cubes and above is None):
        return None
    minus = neg_inf(store.bottoms.dtype)
    before = chunk.at[2].add(-1)
    last = static.steps[2] // height if static.cubes else 0
    top = jnp.where(before[2] >= 0, store.bottoms[tuple(before)][last, :states], minus)
    if above is None:
        return top
    layer = store.bottoms[tuple(chunk)][above // height, :states]
    return jnp.where(above > 0, layer, top)


@program(("static",))
def start_point(static: StaticGrid, store: FaceStore, chunk: jax.Array, at: jax.Array):
    """The start point stored for a point (u, v, w, state) of a chunk's last layers."""
    (u, v, w, state), place = at, tuple(chunk)
    channel = static.model.states + state
    rows, columns = static.shape[:2]
    south, east = (x[place][channel] for x in (store.south, store.east))
    start = jnp.where(u == rows - 1, south[v, w], east[u, w])
    if static.outputs.height:
        lowest = store.bottoms[place][w // static.outputs.height, channel, u, v]
        start = jnp.where((u == rows - 1) | (v == columns - 1), start, lowest)
    return start.astype(jnp.int32)


@program(("static", "deep"))
def fill_and_walk(
    static: StaticGrid,
    store: FaceStore,
    padded: PaddedRegion,
    chunks: jax.Array,
    above: jax.Array,
    ends: jax.Array,
    seeded: jax.Array,
    deep: int | None,
    stop: jax.Array,
):
    """Fill segments once more, with choices, and walk each from its end."""
    outputs = FillOutputs(free=static.outputs.free, choices=True)
    fills = engine.FILLS[static.schedule]
    shape = *static.shape[:2], deep or static.shape[2]

    def one(chunk: jax.Array, above: jax.Array, end: jax.Array, seeded: jax.Array):
        first = None if deep is None and static.outputs.height == 0 else above
        box, faces = _inputs(static, store, padded, chunk, end[:3], first, deep)
        filled = fills.fill(static.model, outputs, box, padded.costs, faces, stop)
        choice_at = partial(fills.choice_at, static.model, filled.choices)
        return choice_walk.walk(static.model, choice_at, end, sum(shape), seeded)

    return jax.vmap(one)(chunks, above, ends, seeded)
