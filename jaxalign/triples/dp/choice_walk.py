"""Linear-time traceback of three sequences: from stored choices to columns."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxalign.triples.dp.recurrence import Model


class ColumnPath(NamedTuple):
    """A walk: the point ``at`` which it ended, int32 (4,) u, v, w, state; the number of
    columns; and the columns, uint8 (T,), **from the end to the start**, then zeros."""

    at: jax.Array
    count: jax.Array
    columns: jax.Array


def walk(
    model: Model,
    choice_at: Callable[[jax.Array, jax.Array, jax.Array, jax.Array], jax.Array],
    begin: jax.Array,
    longest: int,
    seeded: bool | jax.Array = True,
) -> ColumnPath:
    """Walk from ``begin``, int32 (4,) u, v, w and state, to the seed (1, 1, 1), or to
    the layer before the box.

    ``choice_at(u, v, w, state)`` is the stored choice of a cell, int32. A path has at
    most ``longest`` columns (static), u + v + w. Without ``seeded`` no path starts at
    (1, 1, 1): the box lies further inside the table.
    """
    sources = _table(model, [[m.source for m in moves] for moves in model.moves])
    columns = _table(model, [[m.column for m in moves] for moves in model.moves])
    bits = jnp.asarray((4, 2, 1), jnp.int32)

    def unfinished(path: ColumnPath):
        at = path.at[:3]
        return jnp.all(at > 0) & (jnp.any(at > 1) | ~jnp.asarray(seeded))

    def step(path: ColumnPath):
        u, v, w, state = path.at
        choice = choice_at(u, v, w, state)
        column = columns[state, choice]
        residues = ((column & bits) > 0).astype(jnp.int32)
        at = jnp.append(path.at[:3] - residues, sources[state, choice])
        steps = path.columns.at[path.count].set(column.astype(jnp.uint8))
        return ColumnPath(at, path.count + 1, steps)

    empty = ColumnPath(begin, jnp.int32(0), jnp.zeros(longest, jnp.uint8))
    return lax.while_loop(unfinished, step, empty)


def _table(model: Model, rows: list[list[int]]):
    """Ragged rows -> int32 (S, 2^bits), 0 where there is no move."""
    full = [row + [0] * (2**model.bits - len(row)) for row in rows]
    return jnp.asarray(full, jnp.int32)
