"""Tiles between checkpoints are filled again, each thread the tile of its own pair.

Values are scaled by 32 here: the low bits of a candidate name its direction, and the
maximum carries the name along.
"""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from kernels_pallas.core.copies import copy_table
from kernels_pallas.core.fused import fused
from kernels_pallas.core.mosaic import THREADS, WARPGROUP, Threads, where
from kernels_pallas.pairs.shapes import Fill, Numbers

TILE_SCALE = 32
# Low bits of H: which candidate won. Up and left change places where tie is set.
TILE_DIAGONAL, TILE_FIRST, TILE_SECOND, TILE_STOP = 12, 8, 4, 16
EXTENDS_UP, EXTENDS_LEFT = 2, 1  # low bits of E and F
_ROW_LETTERS = 32  # of ``layout.walk_table``


@dataclass(frozen=True)
class WalkSizes:
    """Static sizes of a launch of walks."""

    pairs: int
    blocks: int
    rows: int  # words of a query's row letters


class PairView(NamedTuple):
    """The pair of every thread, words a thread."""

    th: Threads
    s: Fill
    sizes: WalkSizes
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
    query: jax.Array  # row of ``WalkInputs.rows``
    m: jax.Array
    columns: jax.Array  # n
    pad: jax.Array  # rows of the first strip that stand above the query
    lead: jax.Array  # columns of the first step that come before the target
    tie: jax.Array  # 1 where the pair's sides are swapped
    strips: jax.Array
    first_record: jax.Array
    strip_records: jax.Array
    start: jax.Array  # row of the block's first letters
    ends: jax.Array  # steps of its longest target

    def record(self, k):
        """The first record of strip ``k``."""
        return self.first_record + k * self.strip_records


def load_pair(refs, table, nibbles, barrier, s: Fill, sizes, warpgroups):
    """The pair of each thread, and 1 in threads that have one; others repeat the last
    pair."""
    th = s.threads
    program, warpgroup = lax.axis_index("program"), jnp.int32(0)
    if warpgroups > 1:
        warpgroup = lax.axis_index(WARPGROUP)
        program = program * warpgroups + warpgroup
    first = warpgroup if warpgroups > 1 else None
    copy_table(th, refs["table"], 0, table, barrier, first)
    table = th.read_only(table)
    refs = {k: ref if k == "table" else th.read_only(ref) for k, ref in refs.items()}
    n = Numbers(*(refs["numbers"][k] for k in range(len(Numbers._fields))))
    thread = th.index()
    number = thread + th.splat(program * THREADS)
    pair = jnp.minimum(number, th.splat(sizes.pairs - 1))
    which = pair & (s.tables - 1)
    place = shift(th, pair, s.tables)
    group, item = place & (s.groups - 1), shift(th, place, s.groups)
    first = lax.div(item, th.splat(sizes.blocks))
    block = item - first * sizes.blocks if s.shared else item
    target = block * s.groups + group
    query = first if s.shared else target
    (m,) = th.load(refs["query_lengths"], 2 * query + which)
    (columns,) = th.load(refs["target_lengths"], 2 * target + which)
    (strips,) = th.load(refs["strips"], first if s.shared else block)
    (tie,) = th.load(refs["tie"], pair)
    (record,) = th.load(refs["first_record"], item)
    (strip_records,) = th.load(refs["strip_records"], block)
    (start,) = th.load(refs["starts"], block)
    (total,) = th.load(refs["steps"], 2 * block + 1)
    last = shift(th, columns + (s.columns - 1), s.columns) * s.columns
    view = PairView(
        th=th, s=s, sizes=sizes, n=n, refs=refs, table=table, nibbles=nibbles,
        warpgroup=warpgroup, thread=thread, pair=pair, item=item, block=block,
        group=group, which=which, query=query * s.tables + which, m=m,
        columns=columns, pad=strips * s.strip - m, lead=last - columns, tie=tie,
        strips=strips, first_record=record, strip_records=strip_records, start=start,
        ends=jnp.maximum(total - (s.lanes - 1), 0),
    )  # fmt: skip
    return view, (number < th.splat(sizes.pairs)).astype(jnp.int32)


def shift(th, value, divisor):
    """value // a power of two."""
    return lax.shift_right_logical(value, th.splat(divisor.bit_length() - 1))


def value_of(view, word):
    """The pair's own half of a fill's word, scaled."""
    if view.s.packed:
        other = (1 - view.which) * 16
        word = lax.shift_right_arithmetic(word << other, view.th.splat(16))
    return word * TILE_SCALE


def row_above(view, k, g, column):
    """U and E of the row above lane ``g`` of strip ``k`` in a padded column >= 1."""
    th, s, n = view.th, view.s, view.n
    step = shift(th, column - 1, s.columns)
    within = (column - 1) & (s.columns - 1)
    # Step t of the lane is step t - 1 of the lane before; the first lane's rows come
    # from the last lane of the strip above, G - 1 steps after its own step.
    lane = where(g > 0, g - 1, s.lanes - 1)
    time = where(g > 0, step + g - 1, step + s.lanes - 1)
    strip = where(g > 0, k, k - 1)
    time = jnp.clip(time, 0, jnp.maximum(view.strip_records - 1, 0))
    base = view.record(jnp.maximum(strip, 0)) + time
    words = 2 * s.columns
    at = (view.group * s.lanes + lane) * words + 2 * within
    u, e = th.load(view.refs["bottom_rows"], at, 2, base, THREADS * words)
    j = column - view.lead
    top = where(j <= 0, n.corner, n.row_base + n.row_slope * j) * TILE_SCALE
    inside = (g > 0) | (k > 0)
    return (
        where(inside, value_of(view, u), top),
        where(inside, value_of(view, e), n.low * TILE_SCALE),
    )


def row_letters(view, k, g):
    """Offsets of the table rows of a lane's K rows."""
    th, s = view.th, view.s
    width = view.sizes.rows
    at = shift(th, k * s.strip + g * s.rows, 4)
    offsets = []
    for c in range(s.rows // 4):
        (four,) = th.load(view.refs["rows"], at + c, 1, view.query, width)
        for b in range(4):
            letter = lax.shift_right_logical(four, th.splat(8 * b)) & 255
            offsets.append(letter * _ROW_LETTERS)
    return offsets


def target_letter(view, column):
    """Letter of a padded column >= 1."""
    th, s = view.th, view.s
    step = shift(th, column - 1, s.columns)
    row = view.start + jnp.minimum(step, view.ends)
    (word,) = th.load(view.refs["targets"], view.group, 1, row, s.groups)
    byte = (column - 1) & (s.columns - 1)
    if not s.shared:
        byte = byte + view.which * s.columns
    return lax.shift_right_logical(word, 8 * byte) & 255


def first_column(view, g, x):
    """The padded number of the column before tile ``x`` of lane ``g``; 0 at least."""
    return jnp.maximum((x * view.s.tile - g) * view.s.columns, 0)


def _column_zero(view, i):
    n = view.n
    below = n.column_base + n.column_slope * i
    return where(i <= 0, n.corner, below) * TILE_SCALE


def refill(view, k, g, x, last, keep, visit, state):
    """Fill a tile again, from its first column up to the padded column ``last``.

    ``keep(th, cells)`` makes a tuple of words of every column, of (H, E, F) of its K
    rows with their tags, where ``th`` is that of a fused function (``core.fused``); it
    has ``keep.count`` words.

    ``visit(state, slot, column, kept, active)`` sees every column: its place in the
    tile, its padded number, what was kept of it, and where a thread has not reached
    its last.
    """
    th, s, n = view.th, view.s, view.n
    base = lax.div(view.record(k), th.splat(s.tile)) + x
    lane = (view.group * s.lanes + g) * 4
    words = []
    for c in range(s.rows // 2):
        words += th.load(view.refs["checkpoints"], lane + c * 4 * THREADS, 4, base,
                        2 * s.rows * THREADS)  # fmt: skip
    u = tuple(value_of(view, w) for w in words[: s.rows])
    first, second = tags_of(view)
    f = tuple(value_of(view, w) | second for w in words[s.rows :])
    offsets = row_letters(view, k, g)
    start = first_column(view, g, x)
    above, _ = row_above(view, k, g, jnp.maximum(start, 1))
    top = k * s.strip + g * s.rows - view.pad
    corner = where(start > 0, above, _column_zero(view, top))
    cost, longer = n.cost * TILE_SCALE, n.extend * TILE_SCALE

    def above_and_letter(at):
        at = jnp.clip(at, 1, jnp.maximum(last, 1))
        return *row_above(view, k, g, at), target_letter(view, at)

    constants = first, second, th.splat(n.floor * TILE_SCALE + TILE_STOP)
    on_up, on_left = EXTENDS_UP - first - longer, EXTENDS_LEFT - second - longer
    costs = th.splat(cost), on_up, on_left
    like = u, f, (first,) * keep.count
    cells = partial(_cells, s=s, keep=keep)

    def column(carry):
        _, slot, u, f, corner, (up, e, letter), state = carry
        at = start + 1 + slot
        active = at <= last
        ahead = above_and_letter(at + 1)  # arrives while this column is filled
        values = u, f, corner, up, e | first, constants, costs, offsets, letter
        next_corner = up
        u, f, directions = fused(th, cells, view.table, values, like)
        state = visit(state, slot, at, directions, active)
        more = th.any((at < last).astype(jnp.int32))
        return more, slot + 1, u, f, next_corner, ahead, state

    begin = th.any((start < last).astype(jnp.int32))
    carry = (begin, th.splat(0), u, f, corner, above_and_letter(start + 1), state)
    return lax.while_loop(lambda carry: carry[0] != 0, column, carry)[-1]


def _cells(th, table, values, s, keep):
    """U and F of the rows of a lane after one more column, and what is kept of it.

    The recurrence of ``pairs.fill``, where each maximum has the winner's tag: E that of
    ``first``, with EXTENDS_UP if it came from E, D TILE_DIAGONAL, ...
    """
    u, f, corner, up, e, (first, second, floor), costs, offsets, letter = values
    cost, on_up, on_left = costs
    u, f, cells, largest = list(u), list(f), [], th.maximum
    for r in range(s.rows):
        (score,) = th.load(table, offsets[r] + letter)
        e_t = largest(e + on_up, up)
        f_t = largest(f[r] + on_left, u[r])
        e, f[r] = (e_t & -TILE_SCALE) | first, (f_t & -TILE_SCALE) | second
        h = largest(largest(corner + score, e), f[r])
        if s.local:
            h = largest(h, floor)
        corner = u[r]
        u[r] = up = (h & -TILE_SCALE) - cost
        cells.append((h, e_t, f_t))
    return tuple(u), tuple(f), keep(th, cells)


def tags_of(view):
    """Tags of up and left; the first of the two depends on the pair."""
    swapped = view.tie != 0
    high_tag, low_tag = view.th.splat(TILE_FIRST), view.th.splat(TILE_SECOND)
    return where(swapped, low_tag, high_tag), where(swapped, high_tag, low_tag)


def tile_of(view, i, j):
    """Strip, lane, tile, row within the lane and padded column of a cell."""
    th, s = view.th, view.s
    place, column = i - 1 + view.pad, j + view.lead
    k = lax.div(place, th.splat(s.strip))
    inside = place - k * s.strip
    g = lax.div(inside, th.splat(s.rows))
    step = shift(th, column - 1, s.columns) + g
    x = lax.div(step, th.splat(s.tile))
    return k, g, x, inside - g * s.rows, column
