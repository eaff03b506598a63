"""Paths from checkpoints: only the tiles that a path crosses are filled again.

One thread walks one pair. A fill with ``Fill.tile`` left U and E of the last row of
every lane (``handed``) and U and F of every row at some columns (``kept``): a lane's K
rows by the C columns between two such checkpoints are a tile. The thread fills a tile
once more, keeps its 4-bit directions in shared memory, walks through it, and goes on
with the next (BT1 of Li, Ranka and Sahni 2014, for pairs).

Values are scaled by 32 here: the low bits of a candidate name its direction, and the
maximum carries the name along.
"""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu

from kernels_pallas.mosaic import THREADS, WARPGROUP, Threads, kernel, where
from kernels_pallas.pair_fill import Fill, Filled, Inputs, Numbers, size_of

SCALE = 32
# Low bits of H: which candidate won. Up and left change places where tie is set.
DIAGONAL, FIRST, SECOND, STOP = 12, 8, 4, 16
EXTENDS_UP, EXTENDS_LEFT = 2, 1  # low bits of E and F
M, I, D, DONE = 0, 1, 2, 3  # BAM's codes: I consumes query, D consumes target


class Pairs(NamedTuple):
    """What the walks need beside the fill; int32, a word a pair where not said."""

    rows: jax.Array  # (queries, S * strip / 4): letters of rows, a byte each
    table: jax.Array  # (1, x, 256): ``layout.extended_scores``
    score: jax.Array
    i: jax.Array  # end cell; for ``find``: first and last tile to look into
    j: jax.Array
    tie: jax.Array  # 1 where the pair's sides are swapped
    free: jax.Array  # (2,): 1 where a walk stops on row 0, on column 0
    wildcard: jax.Array  # (1,): letter of a row that is identical to nothing


class Walks(NamedTuple):
    """A word a pair, in the order (item, group, table); int32.

    ``runs`` (R, pairs) holds length << 4 | operation (0 M, 1 I, 2 D, as BAM does),
    **from the end of the path to its start**; ``count`` of them are valid.
    """

    i: jax.Array
    j: jax.Array
    identities: jax.Array
    columns: jax.Array
    gap_openings: jax.Array
    gaps: jax.Array
    count: jax.Array
    runs: jax.Array | None


def walk(inputs: Inputs, filled: Filled, pairs: Pairs, s: Fill, runs: int,
         interpret=None) -> Walks:  # fmt: skip
    """Walk every pair from its end cell; ``runs`` (R, static) may be 0."""
    names = [*Walks._fields[:-1], "runs"]
    total = pairs.i.shape[0]
    shapes = [(total,)] * 7 + [(max(runs, 1), total)]
    scratch = 128 if s.words else s.columns * s.tile * s.rows // 8 * THREADS
    body = _word_program if s.words else _walk_program
    few = s.words or s.rows <= 24  # registers
    out = _launch(body, inputs, filled, pairs, s, shapes, scratch, interpret, few,
                  runs=runs)  # fmt: skip
    found = Walks(**dict(zip(names, out, strict=True)))
    return found if runs else found._replace(runs=None)


def find(inputs: Inputs, filled: Filled, pairs: Pairs, s: Fill, interpret=None):
    """Local mode: the end cells, in the tiles that ``ends.candidates`` names.

    Returns i and j, (pairs,) int32; 0 where there is no tile to look into.
    """
    shapes = [pairs.i.shape] * 2
    return _launch(_find_program, inputs, filled, pairs, s, shapes, 128, interpret,
                   s.rows <= 24)  # fmt: skip


def _launch(body, inputs, filled, pairs, s, shapes, scratch, interpret, few,
            **more):  # fmt: skip
    total = pairs.i.shape[0]
    steps = inputs.steps.shape[0] // 2
    strips, held = (filled.handed if filled.nibbles is None else filled.nibbles).shape[
        1:3
    ]
    arrays = dict(
        numbers=inputs.numbers,
        strips=inputs.strips,
        heights=inputs.heights,
        lengths=inputs.lengths,
        targets=inputs.targets,
        **pairs._asdict(),
    )
    for name in ("handed", "kept", "peaks", "nibbles"):
        if getattr(filled, name) is not None:
            arrays[name] = getattr(filled, name)
    sizes = _Sizes(
        total,
        steps,
        strips,
        held,
        inputs.targets.shape[0] // (steps * s.groups),
        pairs.rows.shape[1],
    )
    warpgroups = 4 if few and not s.plain else 1
    run = kernel(
        partial(
            body, names=tuple(arrays), s=s, sizes=sizes, warpgroups=warpgroups, **more
        ),
        [jax.ShapeDtypeStruct((size_of(x),), jnp.int32) for x in shapes],
        [
            plgpu.SMEM(pairs.table.shape[1:], jnp.int32),
            plgpu.SMEM((warpgroups * scratch,), jnp.int32),
            plgpu.Barrier(),
        ],
        (-(-total // (THREADS * warpgroups)),),
        ("program",),
        interpret,
        warpgroups,
    )
    arrays = {k: v.reshape(-1) if k != "table" else v for k, v in arrays.items()}
    out = run(*arrays.values())
    return [x.reshape(y) for x, y in zip(out, shapes, strict=True)]


@dataclass(frozen=True)
class _Sizes:
    pairs: int
    blocks: int
    strips: int
    held: int  # steps
    length: int  # steps of targets
    rows: int  # words of a query's row letters


class _Pair(NamedTuple):
    """The pair of every thread."""

    th: Threads
    s: Fill
    sizes: _Sizes
    n: Numbers
    refs: dict
    table: jax.Ref
    nibbles: jax.Ref
    warpgroup: jax.Array
    thread: jax.Array
    pair: jax.Array
    item: jax.Array
    block: jax.Array
    group: jax.Array
    which: jax.Array  # table within its register
    query: jax.Array  # row of ``Pairs.rows``
    m: jax.Array
    columns: jax.Array
    pad: jax.Array
    lead: jax.Array
    tie: jax.Array


def _load_pair(refs, table, nibbles, barrier, s: Fill, sizes, warpgroups):
    """Where the pair of a thread lies; threads beyond the last repeat the last."""
    th = Threads(s.plain)

    def copy():
        plgpu.copy_gmem_to_smem(refs["table"].at[0], table, barrier)

    program, warpgroup = lax.axis_index("program"), jnp.int32(0)
    if warpgroups == 1:
        copy()
    else:
        warpgroup = lax.axis_index(WARPGROUP)
        program = program * warpgroups + warpgroup
        pl.when(warpgroup == 0)(copy)
    plgpu.barrier_wait(barrier)
    table = th.held(table)
    refs = {k: ref if k == "table" else th.held(ref) for k, ref in refs.items()}
    n = Numbers(*(refs["numbers"][k] for k in range(len(Numbers._fields))))
    thread = th.index()
    own = thread + th.splat(program * THREADS)
    pair = jnp.minimum(own, th.splat(sizes.pairs - 1))
    which = pair & (s.tables - 1)
    place = _shift(th, pair, s.tables)
    group, item = place & (s.groups - 1), _shift(th, place, s.groups)
    first = lax.div(item, th.splat(sizes.blocks))
    block = item - first * sizes.blocks if s.shared else item
    target = block * s.groups + group
    query = first if s.shared else target
    (m,) = th.load(refs["heights"], 2 * query + which)
    (columns,) = th.load(refs["lengths"], 2 * target + which)
    (strips,) = th.load(refs["strips"], first if s.shared else block)
    (tie,) = th.load(refs["tie"], pair)
    last = _shift(th, columns + (s.columns - 1), s.columns) * s.columns
    view = _Pair(
        th, s, sizes, n, refs, table, nibbles, warpgroup, thread, pair, item, block,
        group, which, query * s.tables + which, m, columns, strips * s.strip - m,
        last - columns, tie,
    )  # fmt: skip
    return view, (own < th.splat(sizes.pairs)).astype(jnp.int32)


def _shift(th, value, divisor):
    """value // a power of two."""
    return lax.shift_right_logical(value, th.splat(divisor.bit_length() - 1))


def _value(view, word):
    """The pair's own half of a fill's word, scaled, without tags of the fill."""
    if view.s.packed:
        other = (1 - view.which) * 16
        word = lax.shift_right_arithmetic(word << other, view.th.splat(16))
    if view.s.words:
        word = word & -view.s.scale
    return word * (SCALE // view.s.scale)


def _row_above(view, k, g, column):
    """U and E of the row above lane ``g`` of strip ``k`` in a padded column >= 1."""
    th, s, sizes, n = view.th, view.s, view.sizes, view.n
    step = _shift(th, column - 1, s.columns)
    within = (column - 1) & (s.columns - 1)
    # Step t of the lane is step t - 1 of the lane before; the first lane's rows come
    # from the last lane of the strip above, G - 1 steps after its own step.
    lane = where(g > 0, g - 1, s.lanes - 1)
    time = where(g > 0, step + g - 1, step + s.lanes - 1)
    strip = where(g > 0, k, k - 1)
    time = jnp.clip(time, 0, sizes.held - 1)
    base = (view.item * sizes.strips + jnp.maximum(strip, 0)) * sizes.held + time
    words = 2 * s.columns
    at = (view.group * s.lanes + lane) * words + 2 * within
    u, e = th.load(view.refs["handed"], at, 2, base, THREADS * words)
    j = column - view.lead
    top = where(j <= 0, n.corner, n.row_base + n.row_slope * j) * SCALE
    inside = (g > 0) | (k > 0)
    return (
        where(inside, _value(view, u), top),
        where(inside, _value(view, e), n.low * SCALE),
    )


def _letters(view, k, g):
    """Offsets of the table rows of a lane's K rows."""
    th, s = view.th, view.s
    width = view.sizes.rows
    at = _shift(th, k * s.strip + g * s.rows, 4)
    offsets = []
    for c in range(s.rows // 4):
        (four,) = th.load(view.refs["rows"], at + c, 1, view.query, width)
        for b in range(4):
            letter = lax.shift_right_logical(four, th.splat(8 * b)) & 255
            offsets.append(letter * _WIDTH)
    return offsets


_WIDTH = 32  # letters of a row of ``layout.walk_table``


def _target_letter(view, column):
    """Letter of a padded column >= 1."""
    th, s = view.th, view.s
    step = _shift(th, column - 1, s.columns)
    at = jnp.minimum(step, view.sizes.length - 1) * s.groups + view.group
    (word,) = th.load(view.refs["targets"], at, 1, view.block,
                      view.sizes.length * s.groups)  # fmt: skip
    byte = (column - 1) & (s.columns - 1)
    if not s.shared:
        byte = byte + view.which * s.columns
    return lax.shift_right_logical(word, 8 * byte) & 255


def _first_column(view, g, x):
    """Padded number of the column before tile ``x`` of lane ``g``; never under 0."""
    return jnp.maximum((x * view.s.tile - g) * view.s.columns, 0)


def _column_zero(view, i):
    n = view.n
    below = n.column_base + n.column_slope * i
    return where(i <= 0, n.corner, below) * SCALE


def _refill(view, k, g, x, last, visit, state):
    """Fill a tile again, from its first column up to the padded column ``last``.

    ``visit(state, slot, column, cells, active)`` sees every column: its place in the
    tile, its padded number, (H, E, F) of K rows with their tags, and where a thread
    has not reached its last.
    """
    th, s, sizes, n = view.th, view.s, view.sizes, view.n
    base = (view.item * sizes.strips + k) * (sizes.held // s.tile) + x
    lane = (view.group * s.lanes + g) * 4
    kept = []
    for c in range(s.rows // 2):
        kept += th.load(view.refs["kept"], lane + c * 4 * THREADS, 4, base,
                        2 * s.rows * THREADS)  # fmt: skip
    u = tuple(_value(view, w) for w in kept[: s.rows])
    first, second = _tags(view)
    f = tuple(_value(view, w) | second for w in kept[s.rows :])
    offsets = _letters(view, k, g)
    start = _first_column(view, g, x)
    above, _ = _row_above(view, k, g, jnp.maximum(start, 1))
    top = k * s.strip + g * s.rows - view.pad
    corner = where(start > 0, above, _column_zero(view, top))
    cost, longer = n.cost * SCALE, n.extend * SCALE

    def above_and_letter(at):
        at = jnp.minimum(at, last)
        return *_row_above(view, k, g, at), _target_letter(view, at)

    def column(carry):
        _, slot, u, f, corner, (up, e, letter), state = carry
        at = start + 1 + slot
        active = at <= last
        ahead = above_and_letter(at + 1)  # arrives while this column is filled
        next_corner = up
        u, f, cells, e = list(u), list(f), [], e | first
        # The recurrence of ``pair_fill``, where each maximum keeps who won: the tags
        # of E are FIRST, with EXTENDS_UP if it came from E, those of D DIAGONAL, ...
        for r in range(s.rows):
            (score,) = th.load(view.table, offsets[r] + letter)
            e_t = jnp.maximum(e + (EXTENDS_UP - first - longer), up)
            f_t = jnp.maximum(f[r] + (EXTENDS_LEFT - second - longer), u[r])
            e, f[r] = (e_t & -SCALE) | first, (f_t & -SCALE) | second
            h = jnp.maximum(jnp.maximum(corner + score, e), f[r])
            if s.local:
                h = jnp.maximum(h, n.floor * SCALE + STOP)
            corner = u[r]
            u[r] = up = (h & -SCALE) - cost
            cells.append((h, e_t, f_t))
        state = visit(state, slot, at, cells, active)
        more = th.any((at < last).astype(jnp.int32))
        return more, slot + 1, tuple(u), tuple(f), next_corner, ahead, state

    begin = th.any((start < last).astype(jnp.int32))
    carry = (begin, th.splat(0), u, f, corner, above_and_letter(start + 1), state)
    return lax.while_loop(lambda carry: carry[0] != 0, column, carry)[-1]


def _tags(view):
    """Tags of up and left: which of them goes first is the pair's."""
    swapped = view.tie != 0
    one, two = view.th.splat(FIRST), view.th.splat(SECOND)
    return where(swapped, two, one), where(swapped, one, two)


def _tile_of(view, i, j):
    """Strip, lane, tile, row within the lane and padded column of a cell."""
    th, s = view.th, view.s
    place, column = i - 1 + view.pad, j + view.lead
    k = lax.div(place, th.splat(s.strip))
    inside = place - k * s.strip
    g = lax.div(inside, th.splat(s.rows))
    step = _shift(th, column - 1, s.columns) + g
    x = lax.div(step, th.splat(s.tile))
    return k, g, x, inside - g * s.rows, column


class _State(NamedTuple):
    """A walk, as ``jaxalign.dp.walk`` has it, and its unfinished run."""

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


def _walk_program(*refs, names, s: Fill, sizes: _Sizes, warpgroups: int, runs: int):
    """128 walks."""
    inputs, out = dict(zip(names, refs, strict=False)), refs[len(names) : -3]
    view, real = _load_pair(inputs, *refs[-3:], s, sizes, warpgroups)
    th = view.th
    (i,), (j,) = (th.load(view.refs[name], view.pair) for name in "ij")
    zero = th.splat(0)
    state = _State(i, j, *[zero] * 8, _inside(i, j))
    first, second = _tags(view)

    def tile(carry):
        _, state = carry
        going = state.going != 0
        # Walks that are over fill a tile of row and column 1 in vain.
        i, j = (where(going, x, 1) for x in (state.i, state.j))
        k, g, x, row, column = _tile_of(view, i, j)
        start = _first_column(view, g, x)
        last = where(going, column, start)
        _refill(view, k, g, x, last, partial(_keep_nibbles, view), ())
        state = _walk_tile(
            view, state, start, i - row, (first, second), real, out, runs
        )
        return th.any(state.going), state

    carry = (th.any(state.going), state)
    state = lax.while_loop(lambda carry: carry[0] != 0, tile, carry)[1]
    _finish(view, state, real, out, runs)


def _word_program(*refs, names, s: Fill, sizes: _Sizes, warpgroups: int, runs: int):
    """128 walks over packed backtrack."""
    inputs, out = dict(zip(names, refs, strict=False)), refs[len(names) : -3]
    view, real = _load_pair(inputs, *refs[-3:], s, sizes, warpgroups)
    th = view.th
    (i,), (j,) = (th.load(view.refs[name], view.pair) for name in "ij")
    zero = th.splat(0)
    state = _State(i, j, *[zero] * 8, _inside(i, j))
    tags = _tags(view)
    rows = th.splat(s.rows)
    # Lanes of all strips are counted from the first, so that one division is enough.
    place = jnp.maximum(i - 1 + view.pad, 0)
    line = lax.div(place, rows)
    row = place - line * rows

    def step(carry):
        _, state, line, row = carry
        column = jnp.maximum(state.j + view.lead - 1, 0)
        g, k = line & (s.lanes - 1), _shift(th, line, s.lanes)
        t = _shift(th, column, s.columns) + g
        base = (view.item * sizes.strips + k) * sizes.held + t
        base = base * s.columns + (column & (s.columns - 1))
        base = base * (s.rows // 16) + _shift(th, row, 16)
        at = (view.group * s.lanes + g) * 4 + (_shift(th, row, 4) & 3)
        (word,) = th.load(view.refs["nibbles"], at, 1, base, THREADS * 4)
        bit = (3 - (row & 3)) * 4 + 16 * view.which
        nibble = _as_tags(lax.shift_right_logical(word, bit))
        active = state.going != 0
        before = state.i
        state = _step(view, state, nibble, tags, active, real, out, runs)
        row = row - (before - state.i)
        line = jnp.maximum(where(row < 0, line - 1, line), 0)
        row = where(row < 0, row + s.rows, row)
        return th.any(state.going), state, line, row

    carry = (th.any(state.going), state, line, row)
    state = lax.while_loop(lambda carry: carry[0] != 0, step, carry)[1]
    _finish(view, state, real, out, runs)


def _as_tags(nibble):
    """A nibble of ``pair_fill`` in the form that tiles have: b in the two high bits
    (0 stop, 3 diagonal), then c_up, then c_left."""
    b = (((nibble >> 1) + 1) & 3) << 2
    up, left = (nibble & 1) << 1, (nibble >> 3) & 1
    return b | up | left


def _inside(i, j):
    return ((i > 0) & (j > 0)).astype(jnp.int32)


def _keep_nibbles(view, state, slot, column, cells, active):
    """Directions of a column, 8 rows a word, row 0 lowest."""
    th, s = view.th, view.s
    for c in range(s.rows // 8):
        word = th.splat(0)
        for h, e, f in cells[8 * c : 8 * c + 8]:
            nibble = (((h & 12) | (e & -13)) & -2) | (f & 1)
            word = lax.shift_right_logical(word, th.splat(4)) | (nibble << 28)
        at = _nibble_place(view, slot, c)
        th.store(view.nibbles, at, (word,), where=active.astype(jnp.int32))
    return state


def _nibble_place(view, slot, part):
    """Where a thread's directions lie: its own bank, whatever the column."""
    s = view.s
    columns = s.columns * s.tile
    first = view.warpgroup * columns + slot
    return (first * (s.rows // 8) + part) * THREADS + view.thread


def _walk_tile(view, state, start, top, tags, real, out, runs):
    """Steps within the tile whose first row is ``top`` and whose columns come after
    the padded column ``start``."""
    th = view.th

    def here(state):
        inside = (state.i >= top) & (state.j + view.lead > start)
        return state.going * (inside & (state.i > 0) & (state.j > 0)).astype(jnp.int32)

    def step(carry):
        _, state = carry
        active = here(state) != 0
        row = where(active, state.i - top, 0)
        slot = where(active, state.j + view.lead - start - 1, 0)
        at = _nibble_place(view, slot, _shift(th, row, 8))
        (word,) = th.load(view.nibbles, at)
        nibble = lax.shift_right_logical(word, 4 * (row & 7)) & 15
        state = _step(view, state, nibble, tags, active, real, out, runs)
        return th.any(here(state)), state

    carry = (th.any(here(state)), state)
    return lax.while_loop(lambda carry: carry[0] != 0, step, carry)[1]


def _step(view, state, nibble, tags, active, real, out, runs):
    """One step of every active walk: the tie rule is in the nibble already."""
    b = nibble & 12
    op = where(b == DIAGONAL, M, where(b == tags[0], I, D))
    op = where(b == 0, DONE, op)
    op = where(state.move == M, op, state.move)
    move = where((op == I) & ((nibble & EXTENDS_UP) != 0), I, M)
    move = where((op == D) & ((nibble & EXTENDS_LEFT) != 0), D, move)
    went = active & (op != DONE)
    same = went & (op == M) & _identical(view, state.i, state.j)
    state = _run(view, state, op, went, 1, real, out, runs)
    one = went.astype(jnp.int32)
    i = state.i - where(op != D, one, 0)
    j = state.j - where(op != I, one, 0)
    stopped = active & (op == DONE)
    return state._replace(
        i=i,
        j=j,
        move=where(went, move, state.move),
        identities=state.identities + same.astype(jnp.int32),
        going=where(stopped, 0, state.going) * _inside(i, j),
    )


def _identical(view, i, j):
    """Whether residues i and j are the same letter, and not the wildcard."""
    th = view.th
    place = jnp.maximum(i - 1 + view.pad, 0)
    (four,) = th.load(view.refs["rows"], _shift(th, place, 4), 1, view.query,
                      view.sizes.rows)  # fmt: skip
    a = lax.shift_right_logical(four, 8 * (place & 3)) & 255
    b = _target_letter(view, jnp.maximum(j + view.lead, 1))
    return (a + 1 == b) & (a != view.refs["wildcard"][0])


def _run(view, state, op, went, length, real, out, runs):
    """Add ``length`` columns of ``op`` to the path, as part of its run or a new one."""
    new = went & ((op != state.last) | (state.columns == 0))
    closed = new & (state.columns > 0)
    _store_run(view, state, closed, real, out, runs)
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


def _store_run(view, state, closed, real, out, runs):
    if runs:
        word = (state.length << 4) | state.last
        fits = closed & (state.count < runs)
        where = fits.astype(jnp.int32) * real
        at = jnp.minimum(state.count, runs - 1)
        view.th.store(out[-1], view.pair, (word,), at, view.sizes.pairs, where)


def _finish(view, state, real, out, runs):
    """The rest of the path on row 0 or column 0, where it costs, and the counts."""
    th, refs = view.th, view.refs
    top, left = refs["free"][0] != 0, refs["free"][1] != 0
    on_top = (state.i == 0) & (state.j > 0) & ~top
    on_left = (state.j == 0) & (state.i > 0) & ~left
    rest = where(on_top, state.j, state.i)
    op = where(on_top, D, I)
    state = _run(view, state, op, on_top | on_left, rest, real, out, runs)
    state = state._replace(i=where(on_left, 0, state.i), j=where(on_top, 0, state.j))
    some = state.columns > 0
    _store_run(view, state, some, real, out, runs)
    count = state.count + some.astype(jnp.int32)
    values = (state.i, state.j, state.identities, state.columns, state.openings,
              state.gaps, count)  # fmt: skip
    for ref, value in zip(out, values, strict=False):
        th.store(ref, view.pair, (value,), where=real)


def _find_program(*refs, names, s: Fill, sizes: _Sizes, warpgroups: int):
    """128 searches among the tiles whose best is the pair's score."""
    inputs, out = dict(zip(names, refs, strict=False)), refs[len(names) : -3]
    view, real = _load_pair(inputs, *refs[-3:], s, sizes, warpgroups)
    th = view.th
    (score,) = th.load(view.refs["score"], view.pair)
    (begin,), (end,) = (th.load(view.refs[name], view.pair) for name in "ij")
    tiles = sizes.held // s.tile
    none = th.splat(2**30)

    def tile(carry):
        _, at, i, j = carry
        going = at <= end
        place = where(going, at, 0)
        line = lax.div(place, th.splat(tiles))
        k, g, x = _shift(th, line, s.lanes), line & (s.lanes - 1), place - line * tiles
        start = _first_column(view, g, x)
        limit = (x * s.tile - g + s.tile) * s.columns
        limit = jnp.minimum(limit, view.columns + view.lead)
        last = where(going, limit, start)
        visit = partial(_first_hits, view, score * SCALE)
        hits = _refill(view, k, g, x, last, visit, (none,) * s.rows)
        top = k * s.strip + g * s.rows + 1 - view.pad
        for r, column in enumerate(hits):
            row, here = top + r, column - view.lead
            by_row = (row < i) | ((row == i) & (here < j))
            by_column = (here < j) | ((here == j) & (row < i))
            earlier = (by_row & (view.tie == 0)) | (by_column & (view.tie != 0))
            better = earlier & (column < none)
            i, j = where(better, row, i), where(better, here, j)
        at = at + 1
        return th.any((at <= end).astype(jnp.int32)), at, i, j

    carry = (th.any((begin <= end).astype(jnp.int32)), begin, none, none)
    _, _, i, j = lax.while_loop(lambda carry: carry[0] != 0, tile, carry)
    for ref, value in zip(out, (i, j), strict=True):
        value = where(value < none, value, 0)
        th.store(ref, view.pair, (value,), where=real)


def _first_hits(view, score, hits, slot, column, cells, active):
    """First column of every row in which H is the score."""
    wanted = score + view.n.floor * SCALE
    found = []
    for hit, (h, _, _) in zip(hits, cells, strict=True):
        here = active & ((h & -SCALE) == wanted) & (column < hit)
        found.append(where(here, column, hit))
    return tuple(found)
