"""What phase 1 keeps of all chunks, in a few arrays, and the fills that read them.

A face is stored once, at the chunk that makes it: the chunk below it, beside it or
under it reads it from there.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxalign.affine import neg_inf
from jaxalign.triples import engine
from jaxalign.triples.dp import choice_walk
from jaxalign.triples.dp.boxes import Box, Costs, Faces, Want
from jaxalign.triples.dp.recurrence import Model
from jaxalign.triples.tracebacks.chunk_grid import Grid, bottoms, wanted

NOWHERE = -9  # no free end


class Kept(NamedTuple):
    """H of every chunk's last layers and, as many channels again, start points.

    south (I, J, K, C, V, W), east (I, J, K, C, U, W), bottoms (I, J, K, L, C, U, V);
    ``end`` and ``begin`` (S,) are H and start points at the end of the part.
    """

    south: jax.Array
    east: jax.Array
    bottoms: jax.Array
    end: jax.Array
    begin: jax.Array


class Whole(NamedTuple):
    """The part that is cut: padded letters, free ends, ``seed`` of its first cell."""

    letters: tuple
    free: jax.Array
    seed: jax.Array
    costs: Costs


class Cut(NamedTuple):
    """The static part of a ``Grid``: what programs are compiled for."""

    schedule: str
    model: Model
    want: Want
    steps: tuple
    shape: tuple
    cubes: bool  # whether the third axis is cut, too


def cut_of(grid: Grid) -> Cut:
    triple = grid.triple
    words = triple.schedule, triple.model, wanted(grid)
    return Cut(*words, grid.steps, grid.shape, grid.cut)


def whole_of(grid: Grid) -> Whole:
    """The letters of a part, with room for its last chunk's box."""
    pairs = zip(grid.room, grid.steps, grid.shape, strict=True)
    room = tuple(count * step + size + grid.height for count, step, size in pairs)
    box = engine.box_of(grid.triple, grid.part, np.zeros(0), room)
    seed = engine.seed_of(grid.triple, (grid.part.start,))
    return Whole(tuple(box[:3]), box.free, seed, grid.triple.costs)


def nothing(grid: Grid) -> Kept:
    """Faces of minus infinity, before the first chunk."""
    (rows, columns, deep), states = grid.shape, grid.triple.model.states
    dtype = jnp.dtype(grid.triple.dtype)
    full = partial(jnp.full, fill_value=neg_inf(dtype), dtype=dtype)
    return Kept(
        full((*grid.room, 2 * states, columns, deep)),
        full((*grid.room, 2 * states, rows, deep)),
        full((*grid.room, bottoms(grid), 2 * states, rows, columns)),
        full((states,)),
        jnp.zeros(states, jnp.int32),
    )


@partial(jax.jit, static_argnames="cut", donate_argnames="kept")
def fill(cut: Cut, kept: Kept, whole: Whole, chunks, sizes, stop) -> Kept:
    """Fill some chunks (n, 3) of ``sizes`` (n, 3) that do not need each other."""

    def one(chunk, size):
        box, faces = _inputs(cut, kept, whole, chunk, size)
        room = engine.FILLS[cut.schedule]
        return room.fill(cut.model, cut.want, box, whole.costs, faces, stop)

    filled = jax.vmap(one)(chunks, sizes)
    at = tuple(chunks.T)
    lowest = kept.bottoms
    if filled.bottoms is not None:
        lowest = lowest.at[at].set(filled.bottoms)
    return Kept(
        kept.south.at[at].set(filled.south),
        kept.east.at[at].set(filled.east),
        lowest,
        filled.end[0],
        filled.begin[0].astype(jnp.int32),
    )


def _inputs(cut: Cut, kept, whole, chunk, size, above=None, deep=None):
    """(box, faces) of a chunk; of its layers from ``above`` on, ``deep`` with the one
    before them."""
    (rows, columns, all_deep), states = cut.shape, cut.model.states
    minus, zero = neg_inf(kept.south.dtype), jnp.zeros((), jnp.int32)
    first = zero if above is None else above
    shape = rows, columns, deep or all_deep
    origin = chunk * jnp.asarray(cut.steps, jnp.int32) + jnp.stack([zero, zero, first])
    letters = [
        lax.dynamic_slice(x, (origin[n],), (shape[n],))
        for n, x in enumerate(whole.letters)
    ]
    seed = jnp.where(jnp.all(origin == 0), jnp.asarray(whole.seed), minus)
    inside = whole.free >= 0
    free = jnp.where(inside, whole.free - origin[:, None], NOWHERE)
    box = Box(*letters, seed, size, jnp.maximum(free, NOWHERE))

    def face(array, axis):
        before = chunk.at[axis].add(-1)
        held = array[tuple(before)][..., :states, :, :]  # of the last one, for none
        held = jnp.where(before[axis] >= 0, held, minus)
        if above is None:
            return held
        padding = [(0, 0)] * 2 + [(0, shape[2])]
        held = jnp.pad(held, padding, constant_values=minus)
        return lax.dynamic_slice_in_dim(held, first, shape[2], axis=2)

    return box, Faces(
        face(kept.south, 0), face(kept.east, 1), _top(cut, kept, chunk, above)
    )


def _top(cut: Cut, kept, chunk, above):
    """The layer before a chunk, or before its layer ``above``; None at the table's
    edge, where chunks are as deep as it."""
    height, states = cut.want.height, cut.model.states
    if not height or (not cut.cubes and above is None):
        return None
    minus = neg_inf(kept.bottoms.dtype)
    before = chunk.at[2].add(-1)
    last = cut.steps[2] // height if cut.cubes else 0
    top = jnp.where(before[2] >= 0, kept.bottoms[tuple(before)][last, :states], minus)
    if above is None:
        return top
    own = kept.bottoms[tuple(chunk)][above // height, :states]
    return jnp.where(above > 0, own, top)


@partial(jax.jit, static_argnames="cut")
def start_point(cut: Cut, kept: Kept, chunk, at):
    """The start point kept for a point (u, v, w, state) of a chunk's last layers."""
    (u, v, w, state), own = at, tuple(chunk)
    channel = cut.model.states + state
    rows, columns = cut.shape[:2]
    south, east = (x[own][channel] for x in (kept.south, kept.east))
    found = jnp.where(u == rows - 1, south[v, w], east[u, w])
    if cut.want.height:
        lowest = kept.bottoms[own][w // cut.want.height, channel, u, v]
        found = jnp.where((u == rows - 1) | (v == columns - 1), found, lowest)
    return found.astype(jnp.int32)


@partial(jax.jit, static_argnames=("cut", "deep"))
def again(cut: Cut, kept: Kept, whole: Whole, chunks, above, ends, seeded, deep, stop):
    """Fill segments once more, with choices, and walk each from its end."""
    want = Want(free=cut.want.free, choices=True)
    room, shape = engine.FILLS[cut.schedule], (*cut.shape[:2], deep or cut.shape[2])

    def one(chunk, above, end, seeded):
        first = None if deep is None and cut.want.height == 0 else above
        what = cut, kept, whole, chunk, end[:3], first, deep
        box, faces = _inputs(*what)
        choices = room.fill(cut.model, want, box, whole.costs, faces, stop).choices
        choice_at = partial(room.choice_at, cut.model, choices)
        return choice_walk.walk(cut.model, choice_at, end, sum(shape), seeded)

    return jax.vmap(one)(chunks, above, ends, seeded)
