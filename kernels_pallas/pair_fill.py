"""The fill of many tables at once: scores, end cells, checkpoints.

A group of G lanes of a warp shares one table, or two in the 16-bit halves of its
registers. Lane g keeps K rows of a strip of G * K and works on the U columns of step
t - g, so that the lanes work on one anti-diagonal of blocks. What the last row of a
lane hands down goes to the next lane by ``shfl``; only queries longer than a strip
have a boundary row in memory.

Borders are data, not branches. Queries stand at the bottom of their strips, and the
pad rows above them copy row 0; columns before a target's first copy column 0. Both
follow from the scores of pad letters (``layout.extended_scores``), so the four free
ends are numbers given at run time, of which the inner loop knows nothing.
"""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu

from kernels_pallas.mosaic import THREADS, Threads, kernel

# Packed backtrack. The low bits of H say which candidate won; among equals the larger
# tag does, so the order of the tie rule is theirs: stop, diagonal, then up or left.
# The lowest bit of E and F says that the gap was extended. U carries OPENED, which is
# the diagonal's tag too: what H said is then H - U without a mask.
SCALE = 8
STOP, OPENED, FIRST, SECOND = 6, 4, 2, 0
EXTENDED = OPENED + 1


@dataclass(frozen=True)
class Fill:
    """Static choices of a fill; every combination is one compilation."""

    rows: int  # K rows a lane, a multiple of 4
    lanes: int  # G lanes a group, a power of two up to 32
    columns: int  # U columns a step, 1, 2 or 4
    local: bool
    packed: bool  # two tables a register, int16
    shared: bool = True  # queries by profile; else every table has a query of its own
    tile: int = 0  # steps between two checkpoints of columns, 0 for no checkpoints
    words: bool = False  # packed backtrack: 4 bits a cell, 4 rows of both tables a word
    plain: bool = False  # jnp twins, for the interpreter

    @property
    def scale(self) -> int:
        """What stored values are multiplied with: tags take the low bits."""
        return SCALE if self.words else 1

    @property
    def strip(self) -> int:
        """Rows of a strip."""
        return self.rows * self.lanes

    @property
    def groups(self) -> int:
        """Groups of a program."""
        return THREADS // self.lanes

    @property
    def slots(self) -> int:
        """Last columns a thread stores: two tables of a list end apart."""
        return 1 if self.shared else self.tables

    @property
    def tables(self) -> int:
        """Tables a register."""
        return 2 if self.packed else 1


class Numbers(NamedTuple):
    """Run-time scalars of a fill, int32: ``layout.numbers`` makes them.

    Border modes store H + extend * (i + j), where extending a gap is free, plus a bias
    that keeps every value positive; registers hold U = H - cost.
    """

    cost: jax.Array  # local: gap open; border modes: open - extend
    extend: jax.Array  # local: gap extend; border modes: 0
    floor: jax.Array  # local: what a score of 0 is stored as
    corner: jax.Array  # U of cell (0, 0)
    row_base: jax.Array  # U of (0, j) is row_base + row_slope * j
    row_slope: jax.Array
    column_base: jax.Array  # U of (i, 0) is column_base + column_slope * i
    column_slope: jax.Array
    low: jax.Array  # an E that no alignment uses
    unskew: jax.Array  # border modes: extend
    rows_end: jax.Array  # 1 where the best of row m is wanted


class Filled(NamedTuple):
    """What a fill leaves, int32; ``ends`` reads it. None where not asked for."""

    best: jax.Array | None = None  # local: (items, 128), largest H
    row_best: jax.Array | None = None  # border modes: (items, 128), best U of row m
    row_column: jax.Array | None = None  # and its column
    column: jax.Array | None = None  # (items, S, slots, 128, K): U of column n
    handed: jax.Array | None = None  # (items, S, T, 128, 2U): U and E of row K - 1
    kept: jax.Array | None = None  # (items, S, T / tile, 2K / 4, 128, 4): U, then F
    peaks: jax.Array | None = None  # local: (items, S, T / tile, 128): best of a tile
    nibbles: jax.Array | None = None  # (items, S, T, U, K / 16, 128, 4): words


class Inputs(NamedTuple):
    """Arrays of a launch, all int32 (``layout`` makes them).

    Q queries (pairs of queries where two tables share a register), B blocks of
    targets, S strips, T steps.
    """

    numbers: jax.Array  # (11,)
    strips: jax.Array  # (Q,) or, for lists, (B,)
    steps: jax.Array  # (2 * B,): first step with a last column, number of steps
    heights: jax.Array  # (2 * Q,) or, for lists, (2 * B * groups,): m, both tables
    lengths: jax.Array  # (2 * B * groups,): n, both tables
    targets: jax.Array  # (B * T * groups,): a byte a letter, U a table
    scores: jax.Array  # (Q * S, x, 256) profiles, or (1, x, 256) the two tables
    letters: jax.Array  # lists: (B * S * 128 * K,) row offsets of both tables
    tie: jax.Array  # (items * groups * 2,): 1 where left goes before up, both tables


def fill(inputs: Inputs, s: Fill, strips: int, interpret=None) -> Filled:
    """Fill every table of a launch; ``strips`` is S."""
    blocks = inputs.steps.shape[0] // 2
    queries = inputs.strips.shape[0] if s.shared else 1
    steps = inputs.targets.shape[0] // (blocks * s.groups)
    held = held_steps(s, steps)
    shapes = shapes_of(s, queries * blocks, strips, steps, held)
    run = kernel(
        partial(
            _program, s=s, names=tuple(shapes), sizes=(blocks, strips, steps, held)
        ),
        [jax.ShapeDtypeStruct((size_of(x),), jnp.int32) for x in shapes.values()],
        [plgpu.SMEM(inputs.scores.shape[1:], jnp.int32), plgpu.Barrier()],
        (queries, blocks),
        ("query", "block"),
        interpret,
    )
    out = {
        name: array.reshape(shape)
        for (name, shape), array in zip(shapes.items(), run(*inputs), strict=True)
    }
    out.pop("boundary", None)
    return Filled(**out)


def held_steps(s: Fill, steps: int) -> int:
    """Steps that checkpoints have room for: a lane's last column comes G - 1 steps
    after the first lane's."""
    held = steps + s.lanes
    return -(-held // s.tile) * s.tile if s.tile else held


def shapes_of(s: Fill, items, strips, steps, held) -> dict:
    """Names and shapes of what a launch writes."""
    names = ("best",) if s.local else ("row_best", "row_column")
    shapes = {name: (items, THREADS) for name in names}
    if s.words:
        shapes["nibbles"] = items, strips, held, s.columns, s.rows // 16, THREADS, 4
    if not s.local:
        shapes["column"] = items, strips, s.slots, THREADS, s.rows
    words = 2 * s.columns
    if not s.tile:
        room = steps if strips > 1 else 1
        return shapes | {"boundary": (items, room, s.groups, words)}
    tiles = held // s.tile
    shapes["handed"] = items, strips, held, THREADS, words
    shapes["kept"] = items, strips, tiles, s.rows // 2, THREADS, 4
    return shapes | ({"peaks": (items, strips, tiles, THREADS)} if s.local else {})


def size_of(shape):
    size = 1
    for n in shape:
        size *= n
    return size


def _program(numbers, strips, steps, heights, lengths, targets, scores, letters, tie,
             *refs, s: Fill, names, sizes):  # fmt: skip
    """One query (or two) against the targets of one block."""
    blocks, most, length, held = sizes
    *out, table, barrier = refs
    out = dict(zip(names, out, strict=True))
    th = Threads(s.plain)
    heights, lengths, targets, letters = map(
        th.held, (heights, lengths, targets, letters)
    )
    query, block = lax.axis_index("query"), lax.axis_index("block")
    item = query * blocks + block
    thread = th.index()
    lane = thread & (s.lanes - 1)
    group = lax.shift_right_logical(thread, th.splat(s.lanes.bit_length() - 1))
    n = Numbers(*(numbers[k] * s.scale for k in range(len(Numbers._fields))))
    if s.words:
        tagged = ("corner", "row_base", "column_base")
        n = n._replace(**{name: getattr(n, name) + OPENED for name in tagged})
    v = _Values(th, s, n)
    place = block * s.groups + group
    m = th.load(heights, th.splat(2 * query) if s.shared else 2 * place, 2)
    columns = th.load(lengths, 2 * place, 2)
    # Targets end in the last column of a step: ``lead`` columns come before them.
    ends = [lax.shift_right_logical(x + (s.columns - 1), _log(th, s)) for x in columns]
    lead = [x * s.columns - y for x, y in zip(ends, columns, strict=True)]
    count = strips[query if s.shared else block]
    tail, total = steps[2 * block], steps[2 * block + 1]
    pad = [count * s.strip - x for x in m]
    view = _View(
        th, s, n, v, item, block, thread, lane, group, columns, ends, lead, pad,
        count, tail, total, targets, table, out, most, length, held, None, None,
    )  # fmt: skip
    if s.words:
        up, left = _tags(view, tie)
        view = view._replace(up=up, left=left)

    def strip(k, track):
        if s.shared:
            _load_table(th, scores.at[query * most + k], table, barrier)
        rows = _own_letters(view, letters, k) if not s.shared else None
        return _strip(view._replace(table=th.held(table)), k, rows, track)

    if not s.shared:
        _load_table(th, scores.at[0], table, barrier)
    track = lax.fori_loop(jnp.int32(0), count, strip, _start(view, m))
    for name, value in zip(names, track[-1:] if s.local else track, strict=False):
        th.store(out[name], thread, (th.words(value),), item, THREADS)


def _tags(view, tie):
    """Words that tag E and F: FIRST for up and SECOND for left, or the reverse."""
    th, s = view.th, view.s
    place = view.item * s.groups + view.group
    swapped = view.v.both(*(x != 0 for x in th.load(tie, 2 * place, 2)))
    first, second = view.v.of(FIRST), view.v.of(SECOND)
    up, left = jnp.where(swapped, second, first), jnp.where(swapped, first, second)
    return th.words(up), th.words(left)


def _load_table(th, source, table, barrier):
    """Scores of a strip to shared memory, once nobody reads those before them."""
    th.wait()
    plgpu.copy_gmem_to_smem(source, table, barrier)
    plgpu.barrier_wait(barrier)


def _log(th, s):
    return th.splat(s.columns.bit_length() - 1)


class _View(NamedTuple):
    """What every step of a program sees."""

    th: Threads
    s: Fill
    n: Numbers
    v: "_Values"
    item: jax.Array
    block: jax.Array
    thread: jax.Array
    lane: jax.Array
    group: jax.Array
    columns: list
    ends: list
    lead: list
    pad: list
    count: jax.Array
    tail: jax.Array
    total: jax.Array
    targets: jax.Ref
    table: jax.Ref
    out: dict
    most: int
    length: int
    held: int
    up: jax.Array | None  # tags of up and left
    left: jax.Array | None


@dataclass(frozen=True)
class _Values:
    """Arithmetic on values: int32 (128,), or int16 (256,) where tables are packed."""

    th: Threads
    s: Fill
    n: Numbers

    def of(self, value):
        """A scalar as a value. A word is made first: built of two halves, it would be
        put together again at every use."""
        return self.read(self.word(value))

    def join(self, low, high):
        """The words of the two tables as one value."""
        if not self.s.packed:
            return low
        return self.th.halves((low & 0xFFFF) | (high << 16))

    def read(self, word):
        return self.th.halves(word) if self.s.packed else word

    def word(self, value):
        """A scalar in a word, once for each table."""
        if self.s.packed:
            value = (value & 0xFFFF) + (value << 16)
        return self.th.splat(value)

    def add(self, value, word):
        """value + word as one 32-bit addition, which Hopper can do beside its min-max
        pipe. Right where no half overflows: values are biased to be positive, and a
        negative low half of ``word`` has borrowed from the high one."""
        if not self.s.packed:
            return value + word
        return self.th.halves(self.th.words(value) + word)

    def both(self, low, high):
        """Two bools (128,) as a mask of values."""
        if not self.s.packed:
            return low
        one, zero = self.th.splat(1), self.th.splat(0)
        low, high = (jnp.where(x, one, zero) for x in (low, high))
        return self.join(low, high) != self.of(0)


def _column_zero(view, i):
    """U of (i, 0) for values i; rows above the query are copies of row 0."""
    n, v = view.n, view.v
    below = v.of(n.column_base) + v.of(n.column_slope) * i
    return jnp.where(i <= v.of(0), v.of(n.corner), below)


def _row_zero(view, t):
    """Words U and E of row 0 in the columns of step ``t``, for the first strip."""
    n, v, s = view.n, view.v, view.s
    words = []
    for u in range(s.columns):
        j = v.join(*(view.th.splat(s.columns * t + u + 1) - x for x in view.lead))
        inside = v.of(n.row_base) + v.of(n.row_slope) * j
        words.append(view.th.words(jnp.where(j <= v.of(0), v.of(n.corner), inside)))
        words.append(v.word(n.low))
    return tuple(words)


def _handed_down(view, k, t):
    """What row 0 of the strip needs from above in step ``t``, 2U words, and the
    letters of that step. Only the first lane of a group uses them."""
    th, s = view.th, view.s
    t = jnp.minimum(t, view.length - 1)
    at = th.splat(t * s.groups) + view.group
    letters = th.load(view.targets, at, 1, view.block, view.length * s.groups)

    def from_memory():
        if s.tile:  # step t of the first lane is step t + G - 1 of the last
            base = (view.item * view.most + k - 1) * view.held + t + s.lanes - 1
            at, stride = view.group * s.lanes + s.lanes - 1, THREADS
            source = view.out["handed"]
        else:
            base, stride = view.item * view.length + t, s.groups
            at, source = view.group, view.out["boundary"]
        return _load_words(th, source, at, 2 * s.columns, base, stride)

    if view.most == 1:
        return _row_zero(view, t) + letters
    # Beyond the last column of the block nothing was handed down.
    known = (k > 0) & (t < view.total - (s.lanes - 1))
    above = lax.cond(known, from_memory, partial(_row_zero, view, t))
    return tuple(above) + letters


def _load_words(th, ref, at, count, base, stride):
    part = min(count, 4)
    words = ()
    for k in range(0, count, part):
        words += th.load(ref, at * count + k, part, base, stride * count)
    return words


def _store_words(th, ref, at, words, base, stride, where=None):
    count, part = len(words), min(len(words), 4)
    for k in range(0, count, part):
        th.store(ref, at * count + k, words[k : k + part], base, stride * count, where)


def _start(view, m):
    """Bests before the first strip; of row m, H[m, 0] is known."""
    v, n = view.v, view.n
    if view.s.local:
        return (v.of(n.floor),) * (2 if view.s.tile else 1)
    return _column_zero(view, v.join(*m)), v.of(0)


def _own_letters(view, letters, k):
    """Lists: what picks a row of the table, for the K rows of this lane."""
    s, th = view.s, view.th
    base = view.block * view.most + k
    at = view.thread * s.rows
    words = ()
    for c in range(0, s.rows, 4):
        words += th.load(letters, at + c, 4, base, THREADS * s.rows)
    return words


def _strip(view, k, rows, track):
    """All columns of strip ``k``."""
    s, th, v = view.s, view.th, view.v
    top = v.join(*(k * s.strip + view.lane * s.rows - x for x in view.pad))
    u = tuple(_column_zero(view, top + v.of(r + 1)) for r in range(s.rows))
    bottom = top + v.of(s.rows)
    e = v.of(view.n.column_base + view.n.cost)
    e = jnp.where(bottom <= v.of(0), v.of(view.n.corner), e)
    out = (th.words(u[-1]), th.words(e)) * s.columns
    f = u
    if s.words:
        bare = _same_bits(s, -SCALE)
        e = v.read((th.words(e) & bare) | view.up)
        f = tuple(v.read((th.words(x) & bare) | view.left) for x in u)
        out = (th.words(u[-1]), th.words(e)) * s.columns
    before = th.splat(_BEFORE_BYTES)
    fresh = _handed_down(view, k, jnp.int32(0))
    carry = (u, f, _column_zero(view, top), out + (before,), fresh, track)
    step = partial(_step, view, k, rows)
    if not s.tile:
        return lax.fori_loop(jnp.int32(0), view.total, step, carry)[-1]

    def tile(x, carry):
        _keep(view, k, x, carry)
        carry = lax.fori_loop(x * s.tile, (x + 1) * s.tile, step, carry)
        return _peak(view, k, x, carry)

    tiles = lax.div(view.total + (s.tile - 1), jnp.int32(s.tile))
    return lax.fori_loop(jnp.int32(0), tiles, tile, carry)[-1]


# Letter 0 of the extended alphabet, "before the target", in every byte.
_BEFORE_BYTES = 0


def _keep(view, k, x, carry):
    """Checkpoint of columns: U and F of all rows, before tile ``x``."""
    s, th = view.s, view.th
    values = [th.words(value) for value in carry[0] + carry[1]]
    tiles = view.held // s.tile
    base = (view.item * view.most + k) * tiles + x
    for c in range(s.rows // 2):
        at = view.thread * 4 + c * 4 * THREADS
        words = values[4 * c : 4 * c + 4]
        th.store(view.out["kept"], at, words, base, 2 * s.rows * THREADS)


def _peak(view, k, x, carry):
    """Local mode: keep the best of tile ``x`` and begin anew."""
    s, th = view.s, view.th
    if not s.local:
        return carry
    best, total = carry[-1]
    tiles = view.held // s.tile
    base = (view.item * view.most + k) * tiles + x
    th.store(view.out["peaks"], view.thread, (th.words(best),), base, THREADS)
    floor = view.v.of(view.n.floor)
    return carry[:-1] + ((floor, jnp.maximum(best, total)),)


def _step(view, k, rows, t, carry):
    """U columns of every lane."""
    s, th, v, n = view.s, view.th, view.v, view.n
    u_rows, f_rows, corner, out, fresh, track = carry
    first = view.lane == th.splat(0)
    come = tuple(
        jnp.where(first, a, th.shift_up(b, s.lanes))
        for a, b in zip(fresh, out, strict=True)
    )
    fresh = _handed_down(view, k, t + 1)
    above = [v.read(word) for word in come[: 2 * s.columns : 2]]
    e = [v.read(word) for word in come[1 : 2 * s.columns : 2]]
    scores = _scores(view, rows, come[-1])
    u_rows, f_rows = list(u_rows), list(f_rows)
    diagonal, up = [corner] + above[:-1], list(above)
    best = track[0]
    # Both halves in one 32-bit addition: neither borrows, see ``_Values.add``.
    cost = th.splat(-n.cost * (65537 if s.packed else 1))
    floor = v.of(n.floor + (STOP if s.words else 0))
    longer = v.of(-n.extend)
    trace = _Trace(view, k, t, longer) if s.words else None
    # Letters of the 2011 paper; U = H - open is what is kept of H.
    # E[i,j] = max(E[i-1,j] - extend, U[i-1,j])
    # F[i,j] = max(F[i,j-1] - extend, U[i,j-1])
    # H[i,j] = max(U[i-1,j-1] + (S + open), E[i,j], F[i,j])     local: and 0
    # In border modes extending a gap costs nothing (``Numbers``). Columns of a step
    # are taken one row apart: two cells that do not wait for each other stand side by
    # side.
    for line in range(s.rows + s.columns - 1):
        for c in range(s.columns):
            r = line - c
            if not 0 <= r < s.rows:
                continue
            if trace:
                e[c] = jnp.maximum(e[c] + trace.up_longer, up[c])
                f_rows[r] = jnp.maximum(f_rows[r] + trace.left_longer, u_rows[r])
                e_said, f_said = e[c], f_rows[r]
                e[c], f_rows[r] = trace.tagged(e[c], f_rows[r])
            elif s.local:
                e[c] = jnp.maximum(e[c] + longer, up[c])
                f_rows[r] = jnp.maximum(f_rows[r] + longer, u_rows[r])
            else:
                e[c] = jnp.maximum(e[c], up[c])
                f_rows[r] = jnp.maximum(f_rows[r], u_rows[r])
            score = scores(c, r)
            if s.local:
                h = jnp.maximum(diagonal[c] + v.read(score), e[c])
                h = jnp.maximum(jnp.maximum(h, f_rows[r]), floor)
                best = jnp.maximum(best, h)
            else:
                h = jnp.maximum(v.add(diagonal[c], score), e[c])
                h = jnp.maximum(h, f_rows[r])
            if trace:
                said, h = (h, e_said, f_said), trace.opened(h)
                trace.keep(c, r, said, (h, e[c], f_rows[r]))
            diagonal[c] = u_rows[r]
            u_rows[r] = up[c] = v.add(h, cost)
    words = [th.words(x) for pair in zip(up, e, strict=True) for x in pair]
    _hand_down(view, k, t, words)
    if s.local:
        track = (best,) + track[1:]
    else:
        _last_column(view, k, t, u_rows)
        track = _last_row(view, k, t, up, track)
    done = tuple(words) + (come[-1],)
    return tuple(u_rows), tuple(f_rows), above[-1], done, fresh, track


def _same_bits(s, bits):
    """The same bits in both halves of a word, as a signed 32-bit number."""
    if not s.packed:
        return bits
    both = (bits & 0xFFFF) * 0x10001
    return both - 2**32 if both >= 2**31 else both


class _Trace:
    """Packed backtrack of the columns of a step: 4 rows of both tables a word.

    A nibble is b (which tag won H, halved), then c_left, then c_up. The row of a word
    that was filled first is in the highest nibble of its half.
    """

    def __init__(self, view, k, t, longer):
        self.view = view
        s, v = view.s, view.v
        self.base = ((view.item * view.most + k) * view.held + t) * s.columns
        # An E that is extended comes with its own tag on; it leaves with EXTENDED.
        extended = longer + v.of(EXTENDED)
        self.up_longer = extended + v.read(self._negative(view.up))
        self.left_longer = extended + v.read(self._negative(view.left))
        self.bits, self.tag = (
            _same_bits(s, -SCALE),
            view.th.splat(_same_bits(s, OPENED)),
        )
        # Of every row: OPENED - OPENED for H and E, tags, and F's part eight times.
        of_f = view.left * 8 - 8 * _same_bits(s, OPENED)
        self.owed = (view.up + of_f) * 0x1111
        self.open = [None] * s.columns
        self.full = [[] for _ in range(s.columns)]

    def _negative(self, tag):
        th, v = self.view.th, self.view.v
        return th.words(v.of(0) - v.read(tag))

    def tagged(self, e, f):
        """E and F without what they said, with the tags that they have in H."""
        th, v, bare = self.view.th, self.view.v, self.bits
        e, f = (
            (th.words(e) & bare) | self.view.up,
            (th.words(f) & bare) | self.view.left,
        )
        return v.read(e), v.read(f)

    def opened(self, h):
        """H with the tag of U."""
        th, v = self.view.th, self.view.v
        return v.read((th.words(h) & self.bits) | self.tag)

    def keep(self, c, r, said, left):
        """Add a row: H, E and F with what they said, and what was left of them.

        A difference is a tag; sums of tags are taken over whole words, so that this
        runs on the pipe of IMAD. Halves may borrow on the way, the sum of four rows
        fits into them again. E and F lose their own tags too many, which ``owed``
        gives back.
        """
        th, s = self.view.th, self.view.s
        h, e, f = (th.words(x) - th.words(y) for x, y in zip(said, left, strict=True))
        nibble = h + e + f * 8
        self.open[c] = nibble if r % 4 == 0 else self.open[c] * 16 + nibble
        if r % 4 == 3:
            self.full[c].append(self.open[c] + self.owed)
        if r % 16 == 15:
            base = (self.base + c) * (s.rows // 16) + r // 16
            th.store(self.view.out["nibbles"], self.view.thread * 4,
                     tuple(self.full[c]), base, THREADS * 4)  # fmt: skip
            self.full[c] = []


def _scores(view, rows, letters):
    """A function (column of the step, row) -> word of biased substitution scores."""
    s, th = view.s, view.th
    loaded = {}

    def letter(c):
        return lax.shift_right_logical(letters, th.splat(8 * c)) & 255

    def by_profile(c, r):
        # Four rows a load; lanes of a group side by side, so that no two of them
        # meet in a bank whatever letters they have.
        if (c, r // 4) not in loaded:
            at = letter(c) * s.strip + view.lane * 4 + (r // 4) * (4 * s.lanes)
            loaded[c, r // 4] = th.load(view.table, at, 4)
        return loaded[c, r // 4][r % 4]

    def by_table(c, r):
        low = (rows[r] & 0xFFFF) + letter(c)
        (score,) = th.load(view.table, low)
        if not s.packed:
            return score
        high = lax.shift_right_logical(rows[r], th.splat(16)) + letter(c + s.columns)
        return score + th.load(view.table, high)[0]

    return by_profile if s.shared else by_table


def _hand_down(view, k, t, words):
    """What the strip below needs, or all lanes where checkpoints are kept."""
    s, th = view.s, view.th
    if s.tile:
        base = (view.item * view.most + k) * view.held + t
        _store_words(th, view.out["handed"], view.thread, words, base, THREADS)
    elif view.most > 1:
        last = (view.lane == th.splat(s.lanes - 1)).astype(jnp.int32)
        step = t - (s.lanes - 1)
        inside = (step >= 0) & (step < view.length) & (k + 1 < view.count)
        last = last * th.splat(inside.astype(jnp.int32))
        base = view.item * view.length + jnp.clip(step, 0, view.length - 1)
        _store_words(th, view.out["boundary"], view.group, words, base, s.groups, last)


def _last_column(view, k, t, rows):
    """Border modes: U of column n, for ``ends`` to choose from."""
    th, s = view.th, view.s
    words = [th.words(x) for x in rows]
    base = view.item * view.most + k

    def store():
        for table, end in enumerate(view.ends[: 1 if s.shared else s.tables]):
            here = (th.splat(t) - view.lane == end - 1).astype(jnp.int32)
            for c in range(0, s.rows, 4):
                at = (view.thread + table * THREADS) * s.rows + c
                room = s.slots * THREADS * s.rows
                th.store(view.out["column"], at, words[c : c + 4], base, room, here)

    pl.when(t >= view.tail)(store)


def _last_row(view, k, t, up, track):
    """Border modes: the best of row m and its first column, where it is wanted.

    What is stored is skewed; U[m,j] - extend * j compares between columns.
    """
    v, th, n, s = view.v, view.th, view.n, view.s

    def follow():
        best, place = track
        step = (th.splat(t) - view.lane) * s.columns
        for c in range(s.columns):
            j = [step + (c + 1) - x for x in view.lead]
            inside = v.both(
                *((x > 0) & (x <= y) for x, y in zip(j, view.columns, strict=True))
            )
            at = v.join(*j)
            value = up[c] - v.of(n.unskew) * at
            better = inside & (value > best)
            best = jnp.where(better, value, best)
            place = jnp.where(better, at, place)
        return best, place

    wanted = (n.rows_end != 0) & (k == view.count - 1)
    return tuple(lax.cond(wanted, follow, lambda: track))
