"""From the directions of ``fill`` to partners: a walk back from the end cell."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxalign.similarity.hard.dp.fill import (
    GO_LEFT,
    GO_UP,
    LEFT,
    PAIR,
    STOP,
    TO_PAIR,
    UP,
    ScoredFill,
)
from jaxalign.similarity.loops import begun

# What a path must do next, beside UP, LEFT and PAIR: as H says, or pair or other gap.
FREELY, AFTER_GAP = 0, 4
STEPS_AT_A_TIME = 4


class PartnerPath(NamedTuple):
    """``partners`` int32 (M,), and the cell (``i``, ``j``) where the walk ended: before
    the first pair, or on row 0 or column 0."""

    partners: jax.Array
    i: jax.Array
    j: jax.Array


def walk(filled: ScoredFill, *, ordered: bool) -> PartnerPath:
    """The path of one pair."""
    codes = filled.directions
    rows = filled.table.shape[0]
    after_up, after_left = (PAIR, AFTER_GAP) if ordered else (AFTER_GAP, PAIR)
    other = UP if ordered else LEFT  # the gap that may stand before this one

    def unfinished(state: tuple[jax.Array, ...]):
        return ~state[3]

    def step(state: tuple[jax.Array, ...]):
        i, j, move, done, partners = state
        done = done | (i == 0) | (j == 0)
        code = codes[i + j, filled.table.lane(i, i + j)].astype(jnp.int32)
        after_gap = jnp.where(code & TO_PAIR, PAIR, other)
        op = jnp.where(move == AFTER_GAP, after_gap, move)
        op = jnp.where(move == FREELY, code & PAIR, op)
        done = done | (op == STOP)
        op = jnp.where(done, STOP, op)
        at = jnp.where(op == PAIR, i - 1, rows)
        partners = partners.at[at].set(j - 1)
        move = jnp.where(op == PAIR, FREELY, move)
        move = jnp.where(op == UP, jnp.where(code & GO_UP, UP, after_up), move)
        move = jnp.where(op == LEFT, jnp.where(code & GO_LEFT, LEFT, after_left), move)
        i = i - jnp.where((op == PAIR) | (op == UP), 1, 0)
        j = j - jnp.where((op == PAIR) | (op == LEFT), 1, 0)
        return i, j, move, done, partners

    def steps(state: tuple[jax.Array, ...]):
        for _ in range(STEPS_AT_A_TIME):
            state = step(state)
        return state

    begin = jnp.int32(PAIR if ordered else FREELY)
    partners = jnp.full(rows + 1, -1, jnp.int32)  # the last takes what is no pair
    state = (filled.i, filled.j, begin, jnp.bool_(False), partners)
    state = begun(state, codes)
    i, j, _, _, partners = lax.while_loop(unfinished, steps, state)
    return PartnerPath(partners[:rows], i, j)
