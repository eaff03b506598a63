"""Best scores of many tables, and the decisions of every cell.

A lane of a warp owns 16 columns of a table and marches down its rows. Lane l works on
row t - l in step t, so that lanes work on one anti-diagonal; H, P and F of its last
column go to the next lane by ``shfl``. A row of a similarity lies in one piece of
memory, so that lanes side by side read what is side by side.

A warp has T tables. Their lanes lie one after the other, and are taken in passes of 32:
a table of 400 columns has 25 lanes, and five of them have 125, which are four passes.
Where a table goes on in the next pass, its column between the two is in memory.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from kernels_pallas.core.mosaic import Threads, kernel, where, word_of
from kernels_pallas.core.reals import WARP, Reals
from kernels_pallas.similarity import hard_cells
from kernels_pallas.similarity.hard_cells import (
    COLUMNS,
    FORBIDDEN,
    WARPS,
    Hard,
    HardInputs,
    HardSizes,
    HardView,
    bits_of,
    keep_masks,
    load_row,
    masked,
)


def fill(inputs: HardInputs, s: Hard, z: HardSizes, interpret=None):
    """Run the fill; a dict of the arrays of ``shapes_of``.

    ``rows`` is H of row m; in local mode, with paths only, of the row of the lane's
    best. ``column`` has the four columns that contain the last one.
    """
    shapes = shapes_of(s, z)
    floats = {"rows", "best", "column", "between"}
    run = kernel(
        partial(_fill_program, s=s, z=z, names=tuple(shapes)), list(shapes.values()),
        [], (z.warps // WARPS,), ("program",), interpret,
        dtypes=[jnp.float32 if name in floats else jnp.int32 for name in shapes],
    )  # fmt: skip
    out = dict(zip(shapes, run(*inputs), strict=True))
    out.pop("between", None)
    return out


def shapes_of(s: Hard, z: HardSizes) -> dict[str, tuple[int, ...]]:
    """Shapes of the arrays that the fill writes."""
    lanes = z.warps, z.passes, WARP
    shapes: dict[str, tuple[int, ...]] = {}
    if s.paths:
        shapes["decisions"] = (*lanes[:2], z.steps, WARP, s.words)
    if s.paths or not s.local:
        shapes["rows"] = (*lanes, COLUMNS)
    if s.local:
        shapes["best"] = lanes
        if s.paths:
            shapes["best_row"] = lanes
    if s.last_column:
        shapes["column"] = (z.warps * s.tables, z.rows, 4)
    if z.passes > 1:
        shapes["between"] = (z.warps, z.rows, 4)
    return shapes


def _fill_program(*refs, s: Hard, z: HardSizes, names):
    inputs, out = (
        refs[: -len(names)],
        dict(zip(names, refs[-len(names) :], strict=True)),
    )
    th = Threads(s.plain)
    *read, steps = inputs
    inputs = HardInputs._make([*map(th.read_only, read), steps])
    program = lax.axis_index("program")
    least, largest = steps[2 * program], steps[2 * program + 1]

    def pass_of(k, carry):
        view = _view(th, s, z, inputs, program, k)
        _pass(view, out, least, largest)
        if z.passes > 1:
            th.wait()
        return carry

    if z.passes == 1:
        pass_of(jnp.int32(0), None)
    else:
        lax.fori_loop(jnp.int32(0), jnp.int32(z.passes), pass_of, jnp.int32(0))


def _view(th: Threads, s: Hard, z: HardSizes, inputs: HardInputs, program, k):
    """Constants of a thread in pass ``k``."""
    r, thread = Reals(th), th.index()
    lane = thread & (WARP - 1)
    warp = program * WARPS + lax.shift_right_logical(thread, th.splat(5))
    place, rank = th.load(inputs.places, lane * 2, 2, k, 2 * WARP)
    number = warp * s.tables + place
    table = jnp.minimum(number, th.splat(z.batch - 1))
    costs = r.load(inputs.costs, th.splat(0), 4, table, 4)
    m, n, open_left, first_row = th.load(inputs.sizes, th.splat(0), 4, table, 4)
    column = rank * COLUMNS
    words = z.columns * z.itemsize // 4
    quads = [
        jnp.minimum(rank * (4 * z.quads) + 4 * q, th.splat(words - 4))
        for q in range(z.quads)
    ]
    keep = keep_masks(th, z, column, n) if s.local else ()
    at = [jnp.minimum(column + u, th.splat(z.columns)) for u in range(COLUMNS + 1)]
    if s.local:
        top = [r.splat(0.0)] * len(at)
    else:
        top = [r.load(inputs.top, x, 1, table, z.columns + 1)[0] for x in at]
    e, opens = hard_cells.first_row(r, s, inputs.scores, top[1:], costs)
    return HardView(
        r=r, s=s, z=z, inputs=inputs, thread=thread, lane=lane,
        slot=warp * z.passes + k, warp=warp, number=number, table=table,
        first_row=first_row, rank=rank, first=rank == 0, real=column < n, m=m, n=n,
        open_left=open_left != 0, costs=costs, quads=tuple(quads), keep=keep,
        start=(tuple(top[1:]), e, opens, top[0]),
    )  # fmt: skip


def _pass(view: HardView, out, least, largest):
    """Fill all rows of 32 lanes."""
    r, th, s = view.r, view.r.th, view.s
    zero = r.splat(0.0)
    handed = (zero,) * 3
    track = (th.splat(0),) * (1 + s.paths) if s.local else ()
    carry = (*view.start, handed, _ahead(view, out, jnp.int32(0)), track)
    total = jnp.where(largest > 0, largest + (WARP - 1), 0)
    first = jnp.minimum(total, WARP)
    # All lanes are within their tables, and none in its last row.
    last = jnp.clip(least - 1, first, total)
    step = partial(_fill_step, view, out)
    # The start values are needed only while tables begin.
    carry = lax.fori_loop(jnp.int32(0), first, partial(step, True, True), carry)
    carry = lax.fori_loop(first, last, partial(step, False, False), carry)
    carry = lax.fori_loop(last, total, partial(step, True, False), carry)
    if s.local:
        best, *row = carry[-1]
        if s.paths:
            th.store(out["best_row"], view.lane, tuple(row), view.slot, WARP)
        best = lax.bitcast_convert_type(best, jnp.float32)
        r.store(out["best"], view.lane, (best,), view.slot, WARP)


def _ahead(view: HardView, out, t):
    """Load the scores of step ``t``, and the values left of the first lane."""
    r, th, z = view.r, view.r.th, view.z
    row = jnp.clip(t - view.lane, 0, z.rows - 1)
    place = view.first_row + row * z.across
    words = load_row(th, view.inputs.scores, z, view.quads, place)
    column_zero, between = (), ()
    if not view.s.local:
        column_zero = r.load(view.inputs.left, row + 1, 1, view.table, z.rows + 1)
    if z.passes > 1:
        source = out["between"]
        between = r.load(source, row * 4, 4, view.warp, 4 * z.rows)[:3]
    return words, column_zero, between


def _left(view: HardView, handed, column_zero, between):
    """H, P and F of the column before the lane's first."""
    r, th = view.r, view.r.th
    values = r.next_lane(handed, WARP, False, None, None, view.thread)
    if between:
        first_lane = view.lane == th.splat(0)
        values = [
            jnp.where(first_lane, x, y) for x, y in zip(between, values, strict=True)
        ]
    h = column_zero[0] if column_zero else r.splat(0.0)
    low = r.splat(FORBIDDEN)
    border = h, h if view.s.local else jnp.where(view.open_left, h, low), low
    return [jnp.where(view.first, x, y) for x, y in zip(border, values, strict=True)]


def _fill_step(view: HardView, out, careful, beginning, t, carry):
    """Fill a row of every lane. ``careful``: lanes may be before their first or past
    their last row; ``beginning``: lanes may be at their first row."""
    h_row, e_row, opens_e, corner, handed, step_inputs, track = carry
    th, s, z = view.r.th, view.s, view.z
    row = t - view.lane
    words, column_zero, between = step_inputs
    h_left, p, f = _left(view, handed, column_zero, between)
    next_inputs = _ahead(view, out, t + 1)
    if beginning:
        begins = row == th.splat(0)
        h_start, e_start, opens_start, corner_start = view.start
        h_row, e_row = (
            [jnp.where(begins, x, y) for x, y in zip(a, b, strict=True)]
            for a, b in ((h_start, h_row), (e_start, e_row))
        )
        opens_e = jnp.where(begins, opens_start, opens_e)
        corner = jnp.where(begins, corner_start, corner)
    if s.local:
        words = masked(th, z, words, view.keep)
    lines = tuple(h_row), tuple(e_row), opens_e
    scores = view.inputs.scores
    lines, (p, f), words = hard_cells.row(
        view.r, s, z, scores, lines, (corner, p, f), tuple(view.costs), words
    )
    h_row = lines[0]
    if s.paths:
        base = view.slot * z.steps + t
        th.store(out["decisions"], view.lane * s.words, words, base, s.words * WARP)
    handed = h_row[-1], p, f
    # H, P and F of the last lane, for the first one of the next pass.
    if z.passes > 1:
        where = view.lane == th.splat(WARP - 1)
        place = row
        if careful:
            where = where & (row >= 0) & (row < z.rows)
            place = jnp.clip(row, 0, z.rows - 1)
        values = *handed, handed[0]
        where = where.astype(jnp.int32)
        view.r.store(out["between"], place * 4, values, view.warp, 4 * z.rows, where)
    track = _store_ends(view, out, row, careful, h_row, track)
    return *lines, h_left, handed, next_inputs, track


def _store_ends(view: HardView, out, row, careful, h_row, track):
    """Store H where a path may end."""
    r, th, s, z = view.r, view.r.th, view.s, view.z
    inside = view.real
    if careful:
        inside = inside & (row >= 0) & (row < view.m)
    if s.local:
        best, *best_row = track
        values = [bits_of(x) for x in h_row]
        while len(values) > 1:  # in a tree
            values = [jnp.maximum(*values[k : k + 2]) for k in range(0, len(values), 2)]
        ends = inside & (values[0] > best)
        best = jnp.where(ends, values[0], best)
        track = best, *(jnp.where(ends, row, x) for x in best_row)
        if not s.paths:
            return track
    elif careful:
        ends = inside & (row == view.m - 1)
    else:
        ends = None
    if ends is not None:
        where = ends.astype(jnp.int32)
        base = view.slot * WARP + view.lane
        for u in range(0, COLUMNS, 4):
            r.store(
                out["rows"], th.splat(u), tuple(h_row[u : u + 4]), base, COLUMNS, where
            )
    if s.last_column:
        at = jnp.clip(row, 0, z.rows - 1) * 4 if careful else row * 4
        last_quad = lax.shift_right_logical(view.n - 1, th.splat(2)) - view.rank * 4
        for q in range(COLUMNS // 4):
            where = (inside & (last_quad == q)).astype(jnp.int32)
            values = tuple(h_row[4 * q : 4 * q + 4])
            r.store(out["column"], at, values, view.number, 4 * z.rows, where)
    return track


# ------------------------------------------------------------------------------
# Partners of many tables, from the decisions of ``hard.fill``: a warp walks a table.
#
# Its threads read the decisions of 32 rows of the lane that the path is in, a row each.
# Pairs in a row are one step, whatever their number: each thread looks at the cell of
# its row on the diagonal, and a vote says how many follow each other. All threads take
# the other steps together: ``shfl`` hands out the row where the path is. They keep the
# partners of their rows and store them when the path leaves.

# What the path does next; a gap that has just opened follows a pair or the other gap.
FREELY, PAIR, UP, LEFT, AFTER_GAP = range(5)
COUNT = """{ .reg .pred p; .reg .b32 x; setp.ne.b32 p, $1, 0;
vote.sync.ballot.b32 x, p, -1; shr.u32 x, x, $2; not.b32 x, x; brev.b32 x, x;
clz.b32 $0, x; }"""
COLUMN_BITS = COLUMNS.bit_length() - 1


class WalkingState(NamedTuple):
    """Words that a warp's threads share, except ``partner`` of the thread's row."""

    i: jax.Array
    j: jax.Array
    move: jax.Array
    going: jax.Array  # 1 until the path ends
    partner: jax.Array


def walk(decisions, i, j, s: Hard, z: HardSizes, interpret=None):
    """Walk every table back from its end cell (i, j), int32 (W * T,) each: partners
    (W * T, rows), undefined outside the path, and the cell where the path begins."""
    count = z.warps * s.tables
    table = jnp.arange(count, dtype=jnp.int32)
    warp, place = table // s.tables, table % s.tables
    ends = jnp.stack([i, j, warp * z.passes, place * z.lanes], 1).reshape(-1)
    run = kernel(
        partial(_walk_tables, s=s, z=z), [(count, z.rows), (count, 2)], [],
        (count // WARPS,), ("program",), interpret,
    )  # fmt: skip
    partners, starts = run(decisions.reshape(-1), ends)
    return partners, *starts.T


def _walk_tables(decisions, ends, partners, starts, *, s: Hard, z: HardSizes):
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
            state = _walk_step(th, s, words, top, warp_lane, inside(state), state)
            return th.any(inside(state)), state

        _, state = lax.while_loop(lambda x: x[0] != 0, step, carry)
        passed = (row >= state.i).astype(jnp.int32)
        at = jnp.maximum(row, 0)
        th.store(partners, at, (state.partner,), table, z.rows, passed)
        return th.any(state.going), state

    carry = th.any(state.going), state
    _, state = lax.while_loop(lambda x: x[0] != 0, window, carry)
    th.store(starts, th.splat(0), (state.i, state.j), table, 2,
             (warp_lane == 0).astype(jnp.int32))  # fmt: skip


def _going(i, j):
    return ((i > 0) & (j > 0)).astype(jnp.int32)


def _inside(th: Threads, top, rank, state: WalkingState):
    """1 while the path is in the window of rows and columns."""
    same = lax.shift_right_logical(state.j - 1, th.splat(COLUMN_BITS)) == rank
    return state.going * (same & (top - state.i < WARP)).astype(jnp.int32)


def _run(
    th: Threads, s: Hard, words, top, warp_lane, rank, active, state: WalkingState
):
    """Take the run of pairs on the diagonal."""
    before = top - state.i  # rows that the path has left
    k = warp_lane - before
    column = state.j - 1 - k
    shift = (COLUMNS - 1) - (column & (COLUMNS - 1))
    flags = lax.shift_right_logical(words[1], shift)
    pairs = (flags & 0x10001) == 0  # neither up nor left
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
    """Length of the run of threads with flags, from thread ``first`` of the warp."""
    if th.plain:
        rows = flags.reshape(-1, WARP) != 0
        rank = jnp.arange(WARP, dtype=jnp.int32)[None]
        first = first.reshape(-1, WARP)
        stops = jnp.where(~rows & (rank >= first[:, :1]), rank, WARP)
        count = jnp.min(stops, 1, keepdims=True) - first
        return jnp.maximum(count, 0).reshape(-1)
    return word_of(COUNT, flags, first)


def _walk_step(
    th: Threads, s: Hard, words, top, warp_lane, active, state: WalkingState
):
    """Take one column of the alignment."""
    went = active != 0
    source = where(went, top - state.i, 0)
    if th.plain:
        decisions = [word[(th.index() & -WARP) + source] for word in words]
    else:
        asm = "shfl.sync.idx.b32 $0, $1, $2, 31, -1;"
        decisions = [word_of(asm, word, source) for word in words]
    shift = (COLUMNS - 1) - ((state.j - 1) & (COLUMNS - 1))

    def flag(word, offset):
        return (lax.shift_right_logical(decisions[word], shift + offset) & 1) != 0

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
    paired = went & (op == PAIR) & (warp_lane == top - state.i)
    partner = where(paired, state.j - 1, state.partner)
    i = where(went & (op != LEFT), state.i - 1, state.i)
    j = where(went & (op != UP), state.j - 1, state.j)
    move = where(went, move, state.move)
    return WalkingState(i, j, move, going * _going(i, j), partner)
