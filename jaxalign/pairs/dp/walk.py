"""Linear-time traceback: from direction nibbles to operations, many pairs at once.

The walk of the 2011 paper (its kernel 2): after a move up it goes on up while the c_up
bit of the cell just left is set, likewise left; else the b bits of the cell decide.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

M, I, D = 0, 1, 2  # noqa: E741  (BAM's codes: I consumes query, D consumes target)
DONE = 3


class PathCounts(NamedTuple):
    """Counts of the paths; all int32 (B,).

    ``steps`` is uint8 (T, B), one operation a step **from the end to the start**,
    ``DONE`` after the last, or None.
    """

    i: jax.Array
    j: jax.Array
    identities: jax.Array
    columns: jax.Array
    gap_openings: jax.Array
    gaps: jax.Array
    move: jax.Array  # what a gap still open at (i, j) must go on with, else M
    last: jax.Array  # the operation nearest the start, M where there is none
    steps: jax.Array | None


class WalkBorders(NamedTuple):
    """Where a walk ends: ``top`` stops it on row 0 (target_start is free or the mode
    is local), ``left`` on column 0, ``floor`` on the given row whatever is free."""

    top: jax.Array
    left: jax.Array
    floor: jax.Array


def start(end_i: Any, end_j: Any, steps: jax.Array | None = None) -> PathCounts:
    """A walk that has not begun, at its end cell."""
    zero = end_i * 0  # of NumPy, where the ends are
    return PathCounts(end_i, end_j, zero, zero, zero, zero, zero, zero, steps)


def walk(
    begin: PathCounts,
    nibble_at: Callable[[jax.Array, jax.Array], jax.Array],
    same_at: Callable[[jax.Array, jax.Array], jax.Array],
    rules: WalkBorders,
) -> PathCounts:
    """Walk every pair to its start cell.

    Parameters
    ----------
    begin : Walked
        ``start(...)``, or where a walk was left at a ``floor``.
    nibble_at : (i, j) -> uint8 (B,)
        Direction nibble of cell (i, j), asked for i, j >= 1 only; elsewhere its
        value does not matter.
    same_at : (i, j) -> bool (B,)
        Whether residues i - 1 and j - 1 are identical.
    """

    def unfinished(state: tuple[PathCounts, jax.Array, jax.Array]):
        return jnp.any(~state[1])

    def step(state: tuple[PathCounts, jax.Array, jax.Array]):
        walked, ended, t = state
        op, move = _next(walked, nibble_at(walked.i, walked.j), rules)
        op = jnp.where(ended, DONE, op)
        walked = _advance(walked, op, move, same_at(walked.i, walked.j), t)
        return walked, _done(walked, op, rules), t + 1

    begin_state = (begin, _done(begin, jnp.zeros_like(begin.i), rules), jnp.int32(0))
    return lax.while_loop(unfinished, step, begin_state)[0]


def _next(walked: PathCounts, nibble: jax.Array, rules: WalkBorders):
    """(operation or DONE, the move a gap must go on with after it)."""
    nibble = nibble.astype(jnp.int32)
    b, c_up, c_left = nibble >> 2, (nibble >> 1) & 1, nibble & 1
    op = jnp.where(b == 3, M, jnp.where(b == 1, I, jnp.where(b == 2, D, DONE)))
    op = jnp.where(walked.move == M, op, walked.move)
    move = jnp.where((op == I) & (c_up == 1), I, M)
    move = jnp.where((op == D) & (c_left == 1), D, move)
    on_border = (walked.i == 0) | (walked.j == 0)
    op = jnp.where(on_border, jnp.where(walked.i == 0, D, I), op)
    return op, jnp.where(on_border, M, move)


def _done(walked: PathCounts, op: jax.Array, rules: WalkBorders):
    """Whether the start cell is reached (or the floor, for a walk in strips)."""
    at_top, at_left = walked.i == 0, walked.j == 0
    stop = (at_top & (rules.top | at_left)) | (at_left & (rules.left | at_top))
    return stop | (op == DONE) | (walked.i <= rules.floor)


def _advance(
    walked: PathCounts, op: jax.Array, move: jax.Array, same: jax.Array, t: jax.Array
):
    going = op != DONE
    is_gap = going & (op != M)
    opened = is_gap & ((op != walked.last) | (walked.columns == 0))
    steps = walked.steps
    if steps is not None:
        row = op.astype(jnp.uint8)[None]
        steps = lax.dynamic_update_slice(steps, row, (t, jnp.int32(0)))
    add = jnp.int32
    return PathCounts(
        walked.i - add(going & (op != D)),
        walked.j - add(going & (op != I)),
        walked.identities + add((op == M) & same),
        walked.columns + add(going),
        walked.gap_openings + add(opened),
        walked.gaps + add(is_gap),
        jnp.where(going, move, walked.move),
        jnp.where(going, op, walked.last),
        steps,
    )
