"""Fill many tables at once: scores, end cells, checkpoints.

A group of G lanes of a warp shares one table, or two in the 16-bit halves of its
registers. Lane g keeps K rows of a strip of G * K and works on the U columns of step
t - g, so that the lanes work on one anti-diagonal of blocks. What the last row of a
lane hands down goes to the next lane by ``shfl``; only queries longer than a strip
have a boundary row in memory.

Borders are data, not branches. Queries stand at the bottom of their strips, and the
pad rows above them copy row 0; columns before a target's first copy column 0. Both
follow from the scores of pad letters (``layout.extended_scores``), so the four free
ends are numbers given at run time, of which the inner loop knows nothing.

Values of a fill, and those on the borders of a table.

A value is int32 (128,), or int16 (256,) where two tables share a register.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu

from kernels_pallas.core.exchange import copy_scratch, copy_table
from kernels_pallas.core.mosaic import THREADS, Threads, kernel, where
from kernels_pallas.core.reals import Emitter, fused
from kernels_pallas.pairs.config import (
    Fill,
    FillInputs,
    FillOutput,
    Numbers,
    output_shapes,
    records_of_strip,
)
from kernels_pallas.pairs.layout import COSTS, ROW_LETTERS


class FillView(NamedTuple):
    """A program's place and sizes, the same for every step; lists have a word for
    each table of a register."""

    th: Threads
    s: Fill
    n: Numbers
    v: "ScoreArithmetic"
    item: jax.Array
    block: jax.Array
    thread: jax.Array
    lane: jax.Array
    group: jax.Array
    columns: tuple  # n
    ends: list  # steps up to the target's last column
    lead: list  # columns of the first step that come before the target
    pad: list  # rows of the first strip that stand above the query
    count: jax.Array  # strips
    tail: jax.Array  # first step with a last column
    total: jax.Array  # steps of a strip
    start: jax.Array  # row of the block's first letters
    room: jax.Array | int  # rows of the boundary before this query's
    targets: Any
    table: jax.Ref  # scores in shared memory
    out: dict
    strip_room: int  # strips that the longest query may take
    first_record: jax.Array
    strip_records: jax.Array
    mask: jax.Array | None = None  # stacked: bits that a lane takes from the one above

    def record(self, k):
        """The first record of strip ``k``."""
        return self.first_record + k * self.strip_records


@dataclass(frozen=True)
class ScoreArithmetic:
    """Arithmetic on values: int32 (128,), or int16 (256,) where tables are packed."""

    th: Threads | Emitter
    s: Fill

    def of(self, value) -> Any:
        """A scalar as a value. It is a word first: built of two halves, it would be
        put together again at every use."""
        return self.read(self.word(value))

    def join(self, low, *high) -> Any:
        """The words of the two tables as one value; of one where nothing is packed."""
        if not self.s.packed:
            return low
        return self.th.halves((low & 0xFFFF) | (high[0] << 16))

    def read(self, word) -> Any:
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

    def joined(self, number):
        """A word for ``plus``, of a scalar for each table."""
        return self.th.splat(number * 65537) if self.s.joined else self.word(number)

    def plus(self, value, word):
        """value + word, where halves of ``word`` are below 0: as two numbers where the
        target adds halves, else as in ``add``."""
        return self.add(value, word) if self.s.joined else value + self.read(word)

    def sum(self, word, *addends):
        """The word of scores of one track, or the sum of two."""
        th: Any = self.th
        halves = self.s.packed and self.s.local and not self.s.joined
        for score in addends:
            if halves:
                word = th.words(th.halves(word) + th.halves(score))
            else:
                word = word + score
        return word

    def both(self, low: jax.Array, high: jax.Array) -> Any:
        """Two bools (128,) as a mask of values."""
        if not self.s.packed:
            return low
        yes: Any = self.th.splat(1)
        no: Any = self.th.splat(0)
        low, high = (jnp.where(x, yes, no) for x in (low, high))
        return self.join(low, high) != self.of(0)


def column_zero(view, rows):
    """U of (i, 0) for a row i of every table, int32 (128,) each; rows above the query
    are copies of row 0."""
    n = view.n
    return _border(view, rows, n.column_base, n.column_slope)


def row_zero(view, t):
    """U and E of row 0 in the columns of step ``t``, as words for the first strip."""
    n, v, s, th = view.n, view.v, view.s, view.th
    words = []
    for u in range(s.columns):
        columns = [th.splat(s.columns * t + u + 1) - x for x in view.lead]
        words.append(th.words(_border(view, columns, n.row_base, n.row_slope)))
        words.append(v.word(n.low))
    return tuple(words)


def _border(view, places, base, slope):
    """The corner up to place 0 of row 0 or column 0, and base + slope * place beyond.

    Each table by itself in int32, and joined then: where halves were compared, ptxas
    13.0 used the wrong word (docs/logs/gpu-pairs.md, "A word for another").
    """
    corner = view.n.corner
    values = (where(x <= 0, corner, base + slope * x) for x in places[: view.s.tables])
    return view.v.join(*values)


def load_words(th, ref, at, count, base, stride):
    """``Threads.load`` of any multiple of 4 words, or of 1 or 2."""
    part = min(count, 4)
    words = ()
    for k in range(0, count, part):
        words += th.load(ref, at * count + k, part, base, stride * count)
    return words


def store_words(th, ref, at, words, base, stride, where=None):
    """``Threads.store`` of as many words as ``load_words`` takes."""
    count, part = len(words), min(len(words), 4)
    for k in range(0, count, part):
        th.store(ref, at * count + k, words[k : k + part], base, stride * count, where)


def fill_step(view, k, rows, t, carry):
    """Run step ``t`` of strip ``k``: U more columns in every lane. Returns the
    carry."""
    s, th, v, n = view.s, view.th, view.v, view.n
    u_rows, f_rows, corner, out, prefetch, track = carry
    first = view.lane == th.splat(0)

    # Lane 0 has its row above and its letters from memory, others from the lane before.
    def handed_down(words):
        pairs = zip(prefetch[words], out[words], strict=True)
        return tuple(jnp.where(first, a, th.shift_up(b, s.lanes)) for a, b in pairs)

    def values(words):
        entering = handed_down(words)
        if s.stacks:  # where a query begins, the values of row 0
            entering = (word & view.mask for word in entering)
            if s.joined or s.gap_costs:  # else that is 0
                entering = (word | (v.word(n.corner) & ~view.mask) for word in entering)
        return tuple(map(v.read, entering))

    (letters,) = handed_down(slice(-1, None))
    above = values(slice(0, -1, 2))
    e = above if s.linear else values(slice(1, -1, 2))
    prefetch = load_above(view, k, t + 1)
    # Both halves in one 32-bit addition: neither borrows, see ``ScoreArithmetic.add``.
    cost = th.splat(-n.cost * (65537 if s.packed else 1))
    constants = (v.of(n.floor), v.joined(-n.extend)) if s.local else ()
    lines = u_rows, f_rows, above, e
    where = letters, view.lane, rows or ()
    best = track[:1] if s.local else ()
    inputs = lines, corner, best, cost, constants, where
    like = *lines, best
    cells = partial(_cells, s=s)
    u_rows, f_rows, up, e, best = fused(th, cells, view.table, inputs, like)
    words = [th.words(x) for pair in zip(up, e, strict=True) for x in pair]
    store_below(view, k, t, words)
    if s.local:
        track = best + track[1:]
    else:
        last_column(view, k, t, u_rows)
        track = last_row(view, k, t, up, track)
    out = (*words, letters)
    return u_rows, f_rows, above[-1], out, prefetch, track


def _cells(th, table, values, s):
    """Compute the U columns of a step: U and F of all rows, U and E of the last row,
    and the best (``core.reals``)."""
    # Letters of the 2011 paper; U = H - open is stored in place of H.
    # E[i,j] = max(E[i-1,j] - extend, U[i-1,j])
    # F[i,j] = max(F[i,j-1] - extend, U[i,j-1])
    # H[i,j] = max(U[i-1,j-1] + (S + open), E[i,j], F[i,j])     local: and 0
    # In border modes extending a gap costs nothing (``Numbers``). Where gaps are linear
    # E[i,j] is U[i-1,j], and F[i,j] is U[i,j-1]. Columns of a step
    # are taken one row apart: two cells that do not wait for each other stand side by
    # side.
    # With gap costs by position (docs/recurrences.md) H itself is stored, and E and F
    # plus what opening them costs, so that a sum is one instruction with a maximum:
    # P = max(H[i-1,j-1] + S, 0), X = max(E[i,j] - open_e[i], P)
    # H = max(F[i,j] - open_f[i], X)
    # E[i+1,j] = max(E[i,j] - open_e[i] - extend_e[i+1] + open_e[i+1], X)
    # F[i,j+1] = max(F[i,j] - extend_f[i], X)
    # E opens behind P; that X has E, too, changes nothing, as to extend costs no more.
    (u_rows, f_rows, up, e), corner, best, cost, constants, where = values
    v, largest = ScoreArithmetic(th, s), th.maximum
    scores, gap_costs = _scores_of(th, table, where, s), _costs_of(th, table, where, s)
    u_rows, f_rows, e, best = list(u_rows), list(f_rows), list(e), list(best)
    diagonal, up = [corner, *up[:-1]], list(up)
    floor, longer = constants or (None, None)
    for line in range(s.rows + s.columns - 1):
        for c in range(s.columns):
            r = line - c
            if not 0 <= r < s.rows:
                continue
            if s.gap_costs:
                open_e, extend_e, open_f, extend_f = gap_costs(r)
                pair = largest(v.plus(diagonal[c], scores(c, r)), floor)
                best[0] = largest(best[0], pair)
                x = largest(v.plus(e[c], open_e), pair)
                diagonal[c] = u_rows[r]
                u_rows[r] = up[c] = largest(v.plus(f_rows[r], open_f), x)
                e[c] = largest(v.plus(e[c], extend_e), x)
                f_rows[r] = largest(v.plus(f_rows[r], extend_f), x)
                continue
            if s.linear:
                e[c], f_rows[r] = up[c], u_rows[r]
            elif s.local:
                e[c] = largest(v.plus(e[c], longer), up[c])
                f_rows[r] = largest(v.plus(f_rows[r], longer), u_rows[r])
            else:
                e[c] = largest(e[c], up[c])
                f_rows[r] = largest(f_rows[r], u_rows[r])
            score = scores(c, r)
            if s.local:
                h = largest(v.plus(diagonal[c], score), e[c])
                h = largest(largest(h, f_rows[r]), floor)
                best[0] = largest(best[0], h)
            else:
                h = largest(v.add(diagonal[c], score), e[c])
                h = largest(h, f_rows[r])
            diagonal[c] = u_rows[r]
            # Of border modes with linear gaps, U is H.
            u_rows[r] = up[c] = h if s.linear and not s.local else v.add(h, cost)
    return tuple(u_rows), tuple(f_rows), tuple(up), tuple(e), tuple(best)


def load_above(view, k, t):
    """Load U and E above row 0 of the strip in step ``t``, 2U words, and the letters
    of that step. Only the first lane of a group uses them."""
    th, s = view.th, view.s
    # After its last step a block has one more row of letters, all beyond the end.
    t = jnp.minimum(t, view.total - (s.lanes - 1))
    letters = th.load(view.targets, view.group, 1, view.start + t, s.groups)

    def from_memory():
        if s.tile:  # step t of the first lane is step t + G - 1 of the last
            base = view.record(k - 1) + t + s.lanes - 1
            at, stride = view.group * s.lanes + s.lanes - 1, THREADS
            source = view.out["bottom_rows"]
        else:
            base, stride = view.room + view.start + t, s.groups
            at, source = view.group, view.out["boundary"]
        return load_words(th, source, at, 2 * s.columns, base, stride)

    if view.strip_room == 1:
        return row_zero(view, t) + letters
    # Beyond the last column of the block nothing was stored.
    stored = (k > 0) & (t < view.total - (s.lanes - 1))
    above = lax.cond(stored, from_memory, partial(row_zero, view, t))
    return tuple(above) + letters


def _scores_of(th, table, where, s):
    """Make a function (column of the step, row) -> word of biased substitution
    scores."""
    letters, lane, rows = where
    loaded, v = {}, ScoreArithmetic(th, s)

    def letter(c, track=0):
        return th.shift_right(letters, 8 * (c + track * s.track_bytes)) & 255

    def by_profile(c, r):
        # Four rows a load; lanes of a group side by side, so that no two of them
        # meet in a bank whatever letters they have.
        if c not in loaded:
            loaded[c] = [letter(c, k) * s.strip + lane * 4 for k in range(s.tracks)]
        if (c, r // 4) not in loaded:
            offset = (r // 4) * (4 * s.lanes) + s.gap_costs * COSTS * s.strip
            fours = [th.load(table, at, 4, offset=offset) for at in loaded[c]]
            loaded[c, r // 4] = [v.sum(*words) for words in zip(*fours, strict=True)]
        return loaded[c, r // 4][r % 4]

    def by_tables(c, r):
        # Of two tracks: ``rows`` has the letters of both, of each table.
        def look_up(pair, track):
            row = th.shift_right(rows[r], 8 * (2 * pair + track)) & 255
            at = row * ROW_LETTERS + letter(c + pair * s.columns, track)
            return th.load(table, at, offset=pair * ROW_LETTERS**2)[0]

        tracks = [[look_up(x, track) for x in range(s.tables)] for track in (0, 1)]
        return v.sum(*(low + high[0] if high else low for low, *high in tracks))

    def by_table(c, r):
        low = (rows[r] & 0xFFFF) + letter(c)
        (score,) = th.load(table, low)
        if not s.packed:
            return score
        high = th.shift_right(rows[r], 16) + letter(c + s.columns)
        return score + th.load(table, high)[0]

    if s.shared:
        return by_profile
    return by_table if s.tracks == 1 else by_tables


def _costs_of(th, table, where, s):
    """Make a function row -> words of its gap costs, ``COSTS`` of them, loaded once a
    step; a profile has them before its scores."""
    (_, lane, _), loaded = where, {}

    def by_row(r):
        if r // 4 not in loaded:
            offsets = (k * s.strip + (r // 4) * (4 * s.lanes) for k in range(COSTS))
            fours = (th.load(table, lane * 4, 4, offset=x) for x in offsets)
            loaded[r // 4] = list(zip(*fours, strict=True))
        return loaded[r // 4][r % 4]

    return by_row


def store_below(view, k, t, words):
    """Store the boundary row for the strip below; with checkpoints, the last row of
    every lane."""
    s, th = view.s, view.th
    if s.tile:
        base = view.record(k) + t
        store_words(th, view.out["bottom_rows"], view.thread, words, base, THREADS)
    elif view.strip_room > 1:
        last = (view.lane == th.splat(s.lanes - 1)).astype(jnp.int32)
        step = t - (s.lanes - 1)
        inside = (step >= 0) & (k + 1 < view.count)
        last = last * th.splat(inside.astype(jnp.int32))
        base = view.room + view.start + jnp.maximum(step, 0)
        store_words(th, view.out["boundary"], view.group, words, base, s.groups, last)


def last_column(view, k, t, rows):
    """Store U of column n for ``ends``, in border modes."""
    th, s = view.th, view.s
    words = [th.words(x) for x in rows]
    base = view.item * view.strip_room + k

    def store():
        for table, end in enumerate(view.ends[: 1 if s.shared else s.tables]):
            mask = (th.splat(t) - view.lane == end - 1).astype(jnp.int32)
            for c in range(0, s.rows, 4):
                at = (view.thread + table * THREADS) * s.rows + c
                room = s.slots * THREADS * s.rows
                th.store(view.out["column"], at, words[c : c + 4], base, room, mask)

    pl.when(t >= view.tail)(store)


def last_row(view, k, t, up, track):
    """Update the best of row m and its first column, in border modes, if a path may end
    there.

    Stored values are skewed; U[m,j] - extend * j compares between columns.
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
            value = up[c] - v.join(*(n.unskew * x for x in j))
            better = inside & (value > best)
            best = jnp.where(better, value, best)
            place = jnp.where(better, at, place)
        return best, place

    has_row_m = (n.rows_end != 0) & (k == view.count - 1)
    return tuple(lax.cond(has_row_m, follow, lambda: track))


def fill(inputs: FillInputs, s: Fill, strips: int, records: int = 0,
         interpret=None) -> FillOutput:  # fmt: skip
    """Fill every table of a launch; ``strips`` is S. Without ``records``, their
    number is that of targets of one length and queries of S strips."""
    blocks = inputs.steps.shape[0] // 2
    queries = inputs.strips.shape[0] if s.shared else 1
    rows = inputs.targets.shape[0] // s.groups
    all_records = queries * strips * blocks * records_of_strip(s, rows // blocks - 1)
    shapes = output_shapes(s, queries, blocks, strips, rows, records or all_records)
    run = kernel(
        partial(_fill_program, s=s, names=tuple(shapes), sizes=(blocks, strips, rows)),
        list(shapes.values()),
        [plgpu.SMEM(inputs.scores.shape[1:], jnp.int32), *copy_scratch(s.target)],
        (queries, blocks),
        ("query", "block"),
        interpret,
    )
    out = dict(zip(shapes, run(*inputs), strict=True))
    out.pop("boundary", None)
    return FillOutput(**out)


# Inputs that threads read by themselves.
READ_BY_THREADS = ("query_lengths", "target_lengths", "targets", "row_offsets", "masks")


def _fill_program(*refs, s: Fill, names, sizes):
    """Compare one query (or two) with the targets of one block."""
    blocks, strip_room, room = sizes
    count = len(FillInputs._fields)
    inputs, refs = FillInputs(*refs[:count]), refs[count:]
    out = dict(zip(names, refs, strict=False))
    table, *barrier = refs[len(names) :]
    th = s.threads
    inputs = inputs._replace(
        **{name: th.read_only(getattr(inputs, name)) for name in READ_BY_THREADS}
    )
    query, block = lax.axis_index("query"), lax.axis_index("block")
    item = query * blocks + block
    thread = th.index()
    lane = thread & (s.lanes - 1)
    group = lax.shift_right_logical(thread, th.splat(s.lanes.bit_length() - 1))
    n = Numbers(*(inputs.numbers[k] for k in range(len(Numbers._fields))))
    v = ScoreArithmetic(th, s)
    place = block * s.groups + group
    at = th.splat(2 * query) if s.shared else 2 * place
    m = th.load(inputs.query_lengths, at, 2)
    columns = th.load(inputs.target_lengths, 2 * place, 2)
    # Targets end in the last column of a step: ``lead`` columns come before them.
    bits = s.columns.bit_length() - 1
    ends = [
        lax.shift_right_logical(x + (s.columns - 1), th.splat(bits)) for x in columns
    ]
    lead = [x * s.columns - y for x, y in zip(ends, columns, strict=True)]
    tail, total = inputs.steps[2 * block], inputs.steps[2 * block + 1]
    count = jnp.where(total > 0, inputs.strips[query if s.shared else block], 0)
    pad = [count * s.strip - x for x in m]
    view = FillView(
        th=th, s=s, n=n, v=v, item=item, block=block, thread=thread, lane=lane,
        group=group, columns=columns, ends=ends, lead=lead, pad=pad, count=count,
        tail=tail, total=total, start=inputs.starts[block],
        room=query * room if s.shared else 0, targets=inputs.targets, table=table,
        out=out, strip_room=strip_room, first_record=inputs.first_record[item],
        strip_records=inputs.strip_records[block],
    )  # fmt: skip

    def strip(k, track):
        if s.shared:
            _load_table(th, inputs.scores, query * strip_room + k, table, barrier)
        rows = None
        if not s.shared:  # offsets of the table's rows, for the K rows of this lane
            rows, base, at = (), block * strip_room + k, thread * s.rows
            for c in range(0, s.rows, 4):
                rows += th.load(inputs.row_offsets, at + c, 4, base, THREADS * s.rows)
        strip_view = view._replace(table=th.read_only(table))
        if not s.stacks:
            return _strip(strip_view, k, rows, track)
        (mask,) = th.load(inputs.masks, lane, 1, query * strip_room + k, s.lanes)
        (best,) = _strip(strip_view._replace(mask=mask), k, rows, track)
        th.store(out["best"], thread, (th.words(best),), item * strip_room + k, THREADS)
        return track

    if not s.shared:
        _load_table(th, inputs.scores, 0, table, barrier)
    track = lax.fori_loop(jnp.int32(0), count, strip, _start(view, m))
    if s.stacks:
        return
    for name, value in zip(names, track[-1:] if s.local else track, strict=False):
        th.store(out[name], thread, (th.words(value),), item, THREADS)


def _load_table(th, scores, which, table, barrier):
    """Copy the scores of a strip to shared memory, after all threads are done with
    the previous ones."""
    th.wait()
    copy_table(th, scores, which, table, barrier)


def _start(view, m):
    """Best values before the first strip; of row m, H[m, 0] is known."""
    v, n = view.v, view.n
    if view.s.local:
        return (v.of(n.floor),) * (2 if view.s.tile else 1)
    return column_zero(view, m), v.of(0)


def _strip(view, k, rows, track):
    """Fill all columns of strip ``k``."""
    s, th, v = view.s, view.th, view.v
    top = [k * s.strip + view.lane * s.rows - x for x in view.pad[: s.tables]]
    u = tuple(column_zero(view, [x + (r + 1) for x in top]) for r in range(s.rows))
    below = view.n.column_base + view.n.cost
    e = v.join(*(where(x <= -s.rows, view.n.corner, below) for x in top))
    out = (th.words(u[-1]), th.words(e)) * s.columns
    # In every byte "before the target", of a second track its pad
    pad = sum(1 << 8 * k for k in range(s.track_bytes, s.tracks * s.track_bytes))
    before = th.splat(pad * (s.first_letters + 2))
    prefetch = load_above(view, k, jnp.int32(0))
    carry = (u, u, column_zero(view, top), out + (before,), prefetch, track)
    step = partial(fill_step, view, k, rows)
    if not s.tile:
        return lax.fori_loop(jnp.int32(0), view.total, step, carry)[-1]

    def tile(x, carry):
        # A checkpoint before the tile: U and F of all rows.
        values = [th.words(value) for value in carry[0] + carry[1]]
        base = lax.div(view.record(k), jnp.int32(s.tile)) + x
        for c in range(s.rows // 2):
            at = view.thread * 4 + c * 4 * THREADS
            words = values[4 * c : 4 * c + 4]
            th.store(view.out["checkpoints"], at, words, base, 2 * s.rows * THREADS)
        carry = lax.fori_loop(x * s.tile, (x + 1) * s.tile, step, carry)
        if not s.local:
            return carry
        # The best of the tile; the next one begins anew.
        best, total = carry[-1]
        base = lax.div(view.record(k), jnp.int32(s.tile)) + x
        th.store(view.out["peaks"], view.thread, (th.words(best),), base, THREADS)
        floor = v.of(view.n.floor)
        return carry[:-1] + ((floor, th.maximum(best, total)),)

    tiles = lax.div(view.total + (s.tile - 1), jnp.int32(s.tile))
    return lax.fori_loop(jnp.int32(0), tiles, tile, carry)[-1]
