"""Partners of many tables, from the decisions of ``hard.fill``: a warp walks a table.

Its threads read the decisions of 32 rows of the lane that the path is in, a row each.
Pairs in a row are one step, whatever their number: each thread looks at the cell of its
row on the diagonal, and a vote says how many follow each other. All threads take the
other steps together: ``shfl`` hands out the row where the path is. They keep the
partners of their rows and store them when the path leaves.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from kernels_pallas.core.mosaic import Threads, kernel, where, word_of
from kernels_pallas.core.reals import WARP
from kernels_pallas.similarity.hard.shapes import COLUMNS, WARPS, Hard, HardSizes

# What the path does next; a gap that has just opened follows a pair or the other gap.
FREELY, PAIR, UP, LEFT, AFTER_GAP = range(5)
COUNT = """{ .reg .pred p; .reg .b32 x; setp.ne.b32 p, $1, 0;
vote.sync.ballot.b32 x, p, -1; shr.u32 x, x, $2; not.b32 x, x; brev.b32 x, x;
clz.b32 $0, x; }"""
COLUMN_BITS = COLUMNS.bit_length() - 1


class WalkingState(NamedTuple):
    """Words that all threads of a warp share, but for ``partner``, of its own row."""

    i: jax.Array
    j: jax.Array
    move: jax.Array
    going: jax.Array  # 1 until the path ends
    partner: jax.Array


def walk(decisions, i, j, s: Hard, z: HardSizes, interpret=None):
    """Walk every table back from its end cell.

    Parameters
    ----------
    decisions : as ``fill`` returns them
    i, j : int32 (W * T,)

    Returns
    -------
    partners : int32 (W * T, rows), defined between the ends of the path alone
    i, j : int32 (W * T,), the cell where the path begins
    """
    count = z.warps * s.tables
    table = jnp.arange(count, dtype=jnp.int32)
    warp, place = table // s.tables, table % s.tables
    ends = jnp.stack([i, j, warp * z.passes, place * z.lanes], 1).reshape(-1)
    types = [jax.ShapeDtypeStruct((count * z.rows,), jnp.int32)]
    types += [jax.ShapeDtypeStruct((count * 2,), jnp.int32)]
    run = kernel(
        partial(_walk_tables, s=s, z=z), types, [], (count // WARPS,), ("program",),
        interpret,
    )  # fmt: skip
    partners, begin = run(decisions.reshape(-1), ends)
    return partners.reshape(count, z.rows), *begin.reshape(count, 2).T


def _walk_tables(decisions, ends, partners, begin, *, s: Hard, z: HardSizes):
    th = Threads(s.plain)
    decisions, ends = map(th.read_only, (decisions, ends))
    thread = th.index()
    warp_lane = thread & (WARP - 1)
    warp = lax.shift_right_logical(thread, th.splat(5))
    table = lax.axis_index("program") * WARPS + warp
    i, j, slots, lanes = th.load(ends, th.splat(0), 4, table, 4)
    state = WalkingState(i, j, th.splat(FREELY), _going(i, j), th.splat(-1))

    def window(carry):
        _, state = carry
        top = state.i  # rows 1 ... top have the numbers 0 ... top - 1
        rank = lax.shift_right_logical(jnp.maximum(state.j - 1, 0), th.splat(4))
        index = lanes + rank
        lane = index & (WARP - 1)
        slot = slots + lax.shift_right_logical(index, th.splat(5))
        row = top - 1 - warp_lane
        at = jnp.clip(row, 0, z.rows - 1) + lane + slot * z.steps
        words = th.load(decisions, lane * s.words, s.words, at, s.words * WARP)
        words = words[:3]
        state = state._replace(partner=th.splat(-1))
        inside = partial(_inside, th, top, rank)
        carry = th.any(inside(state)), state

        def step(carry):
            _, state = carry
            state = _run(th, s, words, top, warp_lane, rank, inside(state), state)
            state = _step(th, s, words, top, warp_lane, inside(state), state)
            return th.any(inside(state)), state

        _, state = lax.while_loop(lambda x: x[0] != 0, step, carry)
        passed = (row >= state.i).astype(jnp.int32)
        at = jnp.maximum(row, 0)
        th.store(partners, at, (state.partner,), table, z.rows, passed)
        return th.any(state.going), state

    carry = th.any(state.going), state
    _, state = lax.while_loop(lambda x: x[0] != 0, window, carry)
    th.store(begin, th.splat(0), (state.i, state.j), table, 2,
             (warp_lane == 0).astype(jnp.int32))  # fmt: skip


def _going(i, j):
    return ((i > 0) & (j > 0)).astype(jnp.int32)


def _inside(th: Threads, top, rank, state: WalkingState):
    """1 while the path is in the rows and columns at hand."""
    same = lax.shift_right_logical(state.j - 1, th.splat(COLUMN_BITS)) == rank
    return state.going * (same & (top - state.i < WARP)).astype(jnp.int32)


def _run(
    th: Threads, s: Hard, words, top, warp_lane, rank, active, state: WalkingState
):
    """As many pairs as follow each other on the diagonal."""
    before = top - state.i  # rows that the path has left
    k = warp_lane - before
    column = state.j - 1 - k
    shift = (COLUMNS - 1) - (column & (COLUMNS - 1))
    here = lax.shift_right_logical(words[1], shift)
    pairs = (here & 0x10001) == 0  # neither up nor left
    if s.local:
        goes = lax.shift_right_logical(words[2], shift) & 1
        pairs = pairs & (goes != 0)
    # A column before the first one is in no lane.
    same = lax.shift_right_arithmetic(column, th.splat(COLUMN_BITS)) == rank
    pairs = pairs & same & (k >= 0) & (state.i > k)
    freely = (active != 0) & (state.move == FREELY)
    count = _count_from(th, pairs.astype(jnp.int32), where(freely, before, WARP))
    paired = (k >= 0) & (k < count)
    partner = where(paired, column, state.partner)
    i, j = state.i - count, state.j - count
    return WalkingState(i, j, state.move, state.going * _going(i, j), partner)


def _count_from(th: Threads, flags, first):
    """How many threads of the warp in a row, from number ``first``, have flags."""
    if th.plain:
        rows = flags.reshape(-1, WARP) != 0
        rank = jnp.arange(WARP, dtype=jnp.int32)[None]
        first = first.reshape(-1, WARP)
        stops = jnp.where(~rows & (rank >= first[:, :1]), rank, WARP)
        count = jnp.min(stops, 1, keepdims=True) - first
        return jnp.maximum(count, 0).reshape(-1)
    return word_of(COUNT, flags, first)


def _step(th: Threads, s: Hard, words, top, warp_lane, active, state: WalkingState):
    """One column of the alignment."""
    went = active != 0
    source = where(went, top - state.i, 0)
    decisions = [_from(th, word, source) for word in words]
    shift = (COLUMNS - 1) - ((state.j - 1) & (COLUMNS - 1))

    def flag(word, more):
        return (lax.shift_right_logical(decisions[word], shift + more) & 1) != 0

    opens_up, opens_left = flag(0, 0), flag(0, 16)
    after_pair = where(flag(1, 0), LEFT, PAIR)
    freely = where(flag(1, 16), UP, after_pair)
    op = where(state.move == AFTER_GAP, after_pair, state.move)
    op = where(state.move == FREELY, freely, op)
    going = state.going
    if s.local:
        stops = (state.move == FREELY) & (flag(2, 0) == False)  # noqa: E712
        going = where(went & stops, 0, going)
        went = went & (going != 0)
    move = where(op == UP, where(opens_up, AFTER_GAP, UP), FREELY)
    move = where(op == LEFT, where(opens_left, PAIR, LEFT), move)
    here = went & (op == PAIR) & (warp_lane == top - state.i)
    partner = where(here, state.j - 1, state.partner)
    i = where(went & (op != LEFT), state.i - 1, state.i)
    j = where(went & (op != UP), state.j - 1, state.j)
    move = where(went, move, state.move)
    return WalkingState(i, j, move, going * _going(i, j), partner)


def _from(th: Threads, word, source):
    """The word of thread ``source`` of the warp."""
    if th.plain:
        return word[(th.index() & -WARP) + source]
    return word_of("shfl.sync.idx.b32 $0, $1, $2, 31, -1;", word, source)
