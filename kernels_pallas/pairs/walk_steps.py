"""Steps of walks and their runs, as ``jaxalign.pairs.dp.walk`` defines them."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from kernels_pallas.core.mosaic import where
from kernels_pallas.pairs.tiles import (
    EXTENDS_LEFT,
    EXTENDS_UP,
    TILE_DIAGONAL,
    shift,
    target_letter,
)

M, I, D, DONE = 0, 1, 2, 3  # BAM's codes: I consumes query, D consumes target


class WalkState(NamedTuple):
    """A walk, as ``jaxalign.pairs.dp.walk`` has it, and its unfinished run."""

    i: jax.Array
    j: jax.Array
    move: jax.Array
    last: jax.Array
    identities: jax.Array
    columns: jax.Array
    openings: jax.Array
    gaps: jax.Array
    count: jax.Array
    length: jax.Array
    going: jax.Array


def inside_table(i, j):
    return ((i > 0) & (j > 0)).astype(jnp.int32)


def take_step(view, state, nibble, tags, active, real, out, runs):
    """One step of every active walk: the tie rule is in the nibble already."""
    b = nibble & 12
    op = where(b == TILE_DIAGONAL, M, where(b == tags[0], I, D))
    op = where(b == 0, DONE, op)
    op = where(state.move == M, op, state.move)
    move = where((op == I) & ((nibble & EXTENDS_UP) != 0), I, M)
    move = where((op == D) & ((nibble & EXTENDS_LEFT) != 0), D, move)
    went = active & (op != DONE)
    same = went & (op == M) & identical(view, state.i, state.j)
    state = add_run(view, state, op, went, 1, real, out, runs)
    step = went.astype(jnp.int32)
    i = state.i - where(op != D, step, 0)
    j = state.j - where(op != I, step, 0)
    stopped = active & (op == DONE)
    return state._replace(
        i=i,
        j=j,
        move=where(went, move, state.move),
        identities=state.identities + same.astype(jnp.int32),
        going=where(stopped, 0, state.going) * inside_table(i, j),
    )


def identical(view, i, j):
    """Whether residues i and j are the same letter, and not the wildcard."""
    th = view.th
    place = jnp.maximum(i - 1 + view.pad, 0)
    (four,) = th.load(view.refs["rows"], shift(th, place, 4), 1, view.query,
                      view.sizes.rows)  # fmt: skip
    a = lax.shift_right_logical(four, 8 * (place & 3)) & 255
    b = target_letter(view, jnp.maximum(j + view.lead, 1))
    return (a + 1 == b) & (a != view.refs["wildcard"][0])


def add_run(view, state, op, went, length, real, out, runs):
    """Add ``length`` columns of ``op`` to the path, as part of its run or a new one."""
    new = went & ((op != state.last) | (state.columns == 0))
    closed = new & (state.columns > 0)
    store_run(view, state, closed, real, out, runs)
    length = where(went, length, 0)
    gap = went & (op != M)
    add = jnp.int32
    return state._replace(
        last=where(went, op, state.last),
        columns=state.columns + length,
        openings=state.openings + add(new & gap),
        gaps=state.gaps + where(gap, length, 0),
        count=state.count + add(closed),
        length=where(new, 0, state.length) + length,
    )


def store_run(view, state, closed, real, out, runs):
    if runs:
        word = (state.length << 4) | state.last
        fits = closed & (state.count < runs)
        where = fits.astype(jnp.int32) * real
        at = jnp.minimum(state.count, runs - 1)
        view.th.store(out[-1], view.pair, (word,), at, view.sizes.pairs, where)


def finish(view, state, real, out, runs):
    """The rest of the path on row 0 or column 0, where it costs, and the counts."""
    th, refs = view.th, view.refs
    top, left = refs["free"][0] != 0, refs["free"][1] != 0
    on_top = (state.i == 0) & (state.j > 0) & ~top
    on_left = (state.j == 0) & (state.i > 0) & ~left
    remaining = where(on_top, state.j, state.i)
    op = where(on_top, D, I)
    state = add_run(view, state, op, on_top | on_left, remaining, real, out, runs)
    state = state._replace(i=where(on_left, 0, state.i), j=where(on_top, 0, state.j))
    any_column = state.columns > 0
    store_run(view, state, any_column, real, out, runs)
    count = state.count + any_column.astype(jnp.int32)
    values = (state.i, state.j, state.identities, state.columns, state.openings,
              state.gaps, count)  # fmt: skip
    for ref, value in zip(out, values, strict=False):
        th.store(ref, view.pair, (value,), where=real)
