"""Paths of many pairs: one thread walks one pair.

From checkpoints: a fill with ``Fill.tile`` stores U and E of the last row of every lane
(``bottom_rows``) and U and F of every row at some columns (``checkpoints``). A lane's K
rows by the columns between two checkpoints are a tile. The thread fills a tile that its
path enters once more, with 4-bit directions in shared memory, walks through it, and
goes on with the next (BT1 of Li, Ranka and Sahni 2014, for pairs).

Tiles between checkpoints are filled again, each thread the tile of its own pair.

Values are scaled by 32 here: the low bits of a candidate name its direction, and the
maximum carries the name along.
"""

from dataclasses import dataclass
from functools import partial
from math import prod
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental.pallas import mosaic_gpu as plgpu

from kernels_pallas.core.exchange import copy_scratch, copy_table
from kernels_pallas.core.mosaic import THREADS, WARPGROUP, Threads, kernel, where
from kernels_pallas.core.reals import fused
from kernels_pallas.pairs.config import Fill, FillInputs, FillOutput, Numbers
from kernels_pallas.pairs.layout import ROW_LETTERS

TILE_SCALE = 32
# Low bits of H: which candidate won. Up and left change places where tie is set.
TILE_DIAGONAL, TILE_FIRST, TILE_SECOND, TILE_STOP = 12, 8, 4, 16
EXTENDS_UP, EXTENDS_LEFT = 2, 1  # low bits of E and F


@dataclass(frozen=True)
class WalkSizes:
    """Static sizes of a launch of walks."""

    pairs: int
    blocks: int
    rows: int  # words of a query's row letters
    by_position: bool  # a row of the table is a position of the query


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
    """The pair of each thread, and 1 in threads that have one; the others repeat the
    last pair."""
    th = s.threads
    program, warpgroup = lax.axis_index("program"), jnp.int32(0)
    if warpgroups > 1:
        warpgroup = lax.axis_index(WARPGROUP)
        program = program * warpgroups + warpgroup
    if not sizes.by_position:
        first = warpgroup if warpgroups > 1 else None
        copy_table(th, refs.pop("table"), 0, table, barrier, first)
    refs = {k: th.read_only(ref) for k, ref in refs.items()}
    table = refs["table"] if sizes.by_position else th.read_only(table)
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
    """The half of a fill's word that belongs to the pair, scaled."""
    if view.s.packed:
        shift = (1 - view.which) * 16
        word = lax.shift_right_arithmetic(word << shift, view.th.splat(16))
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
    """Offsets of the table rows of a lane's K rows; of two tracks in the halves of a
    word."""
    th, s = view.th, view.s
    if view.sizes.by_position:
        first = k * s.strip + g * s.rows - view.pad + 1
        return [jnp.clip(first + c, 0, view.m) * 32 for c in range(s.rows)]
    width = view.sizes.rows
    row_letters = ROW_LETTERS if s.tracks > 1 else 32
    at = shift(th, k * s.strip + g * s.rows, 4)
    offsets = []
    for c in range(s.rows // 4):
        tracks = [
            th.load(view.refs["rows"], at + (c + track), 1, view.query, width)[0]
            for track in range(0, width, width // s.tracks)
        ]
        for b in range(4):
            places = [
                (lax.shift_right_logical(four, th.splat(8 * b)) & 255) * row_letters
                for four in tracks
            ]
            offsets.append(places[0] if s.tracks == 1 else places[0] | places[1] << 16)
    return offsets


def target_letter(view, column):
    """Letter of a padded column >= 1; that of a second track in the high half."""
    th, s = view.th, view.s
    step = shift(th, column - 1, s.columns)
    row = view.start + jnp.minimum(step, view.ends)
    (word,) = th.load(view.refs["targets"], view.group, 1, row, s.groups)
    byte = (column - 1) & (s.columns - 1)
    if not s.shared:
        byte = byte + view.which * s.columns
    letter = lax.shift_right_logical(word, 8 * byte) & 255
    if s.tracks == 1:
        return letter
    second = lax.shift_right_logical(word, 8 * (byte + s.track_bytes)) & 255
    return letter | second << 16


def first_column(view, g, x):
    """The padded number of the column before tile ``x`` of lane ``g``; 0 at least."""
    return jnp.maximum((x * view.s.tile - g) * view.s.columns, 0)


def refill(view, k, g, x, last, keep, visit, state):
    """Fill a tile again, from its first column up to the padded column ``last``.

    ``keep(th, cells)`` makes a tuple of words of every column, of (H, E, F) of its K
    rows with their tags, where ``th`` is that of a fused function (``core.reals``); it
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
    column_zero = n.column_base + n.column_slope * top
    column_zero = where(top <= 0, n.corner, column_zero) * TILE_SCALE
    corner = where(start > 0, above, column_zero)
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
        next_letters = above_and_letter(at + 1)  # arrives while this column is filled
        values = u, f, corner, up, e | first, constants, costs, offsets, letter
        next_corner = up
        u, f, directions = fused(th, cells, view.table, values, like)
        state = visit(state, slot, at, directions, active)
        pending = th.any((at < last).astype(jnp.int32))
        return pending, slot + 1, u, f, next_corner, next_letters, state

    pending = th.any((start < last).astype(jnp.int32))
    carry = (pending, th.splat(0), u, f, corner, above_and_letter(start + 1), state)
    return lax.while_loop(lambda carry: carry[0] != 0, column, carry)[-1]


def _cells(th, table, values, s, keep):
    """Compute one more column of a lane: U and F of its rows, and the words to keep.

    The recurrence of ``pairs.fill``, where each maximum has the winner's tag: E that of
    ``first``, with EXTENDS_UP if it came from E, D TILE_DIAGONAL, ...
    """
    u, f, corner, up, e, (first, second, floor), costs, offsets, letter = values
    cost, on_up, on_left = costs
    u, f, cells, largest = list(u), list(f), [], th.maximum
    for r in range(s.rows):
        at = offsets[r] + letter
        if s.tracks == 1:
            (score,) = th.load(table, at)
        else:
            (score,) = th.load(table, at & 0xFFFF)
            score = score + th.load(table, th.shift_right(at, 16))[0]
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


M, I, D, DONE = 0, 1, 2, 3  # BAM's codes: I consumes query, D consumes target


class WalkState(NamedTuple):
    """A walk, as in ``jaxalign.pairs.dp.walk``, and its unfinished run."""

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
    """Take one step of every active walk; the nibble contains the tie rule."""
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
    """Whether residues i and j are the same letter, other than the wildcard."""
    th = view.th
    place = jnp.maximum(i - 1 + view.pad, 0)
    (four,) = th.load(view.refs["rows"], shift(th, place, 4), 1, view.query,
                      view.sizes.rows)  # fmt: skip
    a = lax.shift_right_logical(four, 8 * (place & 3)) & 255
    b = target_letter(view, jnp.maximum(j + view.lead, 1))
    if view.s.tracks > 1:
        b = b & 0xFFFF
    return (a + 1 == b) & (a != view.refs["wildcard"][0])


def add_run(view, state, op, went, length, real, out, runs):
    """Add ``length`` columns of ``op`` to the path, as part of its run or a new one."""
    is_new = went & ((op != state.last) | (state.columns == 0))
    closed = is_new & (state.columns > 0)
    store_run(view, state, closed, real, out, runs)
    length = where(went, length, 0)
    gap = went & (op != M)
    add = jnp.int32
    return state._replace(
        last=where(went, op, state.last),
        columns=state.columns + length,
        openings=state.openings + add(is_new & gap),
        gaps=state.gaps + where(gap, length, 0),
        count=state.count + add(closed),
        length=where(is_new, 0, state.length) + length,
    )


def store_run(view, state, closed, real, out, runs):
    if runs:
        word = (state.length << 4) | state.last
        fits = closed & (state.count < runs)
        where = fits.astype(jnp.int32) * real
        at = jnp.minimum(state.count, runs - 1)
        view.th.store(out[-1], view.pair, (word,), at, view.sizes.pairs, where)


def finish(view, state, real, out, runs):
    """Add the rest of the path on row 0 or column 0, where it costs, and store the
    counts."""
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


TABLE_BYTES = 1024  # of the scores in shared memory, for each of four warpgroups


class WalkInputs(NamedTuple):
    """Inputs of the walks beside the fill's; int32, a word a pair if not noted."""

    rows: jax.Array  # (queries, S * strip / 4), of ``layout.row_bytes``
    # ``layout.extended_scores``: (1, x, 256), or flat, a row a position of the query
    table: jax.Array
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


def walk(inputs: FillInputs, output: FillOutput, pairs: WalkInputs, s: Fill, runs: int,
         interpret=None) -> Walks:  # fmt: skip
    """Walk every pair from its end cell; ``runs`` (R, static) may be 0."""
    names = [*Walks._fields[:-1], "runs"]
    total = pairs.i.shape[0]
    shapes = [(total,)] * 7 + [(max(runs, 1), total)]
    scratch = s.columns * s.tile * s.rows // 8 * THREADS
    out = _launch(_walk_program, inputs, output, pairs, s, shapes, scratch, interpret,
                  runs=runs)  # fmt: skip
    walks = Walks(**dict(zip(names, out, strict=True)))
    return walks if runs else walks._replace(runs=None)


def find(
    inputs: FillInputs, output: FillOutput, pairs: WalkInputs, s: Fill, interpret=None
):
    """Find the end cells (i, j) of local mode in the tiles of ``end_tiles``, int32
    (pairs,) each; 0 where there is no tile to look into."""
    shapes = [pairs.i.shape] * 2
    return _launch(_find_program, inputs, output, pairs, s, shapes, 128, interpret)


def _launch(body, inputs, output, pairs, s, shapes, scratch, interpret, **options):
    total = pairs.i.shape[0]
    names = ("numbers", "strips", "starts", "steps", "query_lengths", "target_lengths",
             "targets", "first_record", "strip_records")  # fmt: skip
    arrays = {name: getattr(inputs, name) for name in names} | pairs._asdict()
    for name in ("bottom_rows", "checkpoints", "peaks"):
        if getattr(output, name) is not None:
            arrays[name] = getattr(output, name)
    by_position = pairs.table.ndim == 1  # too large for shared memory
    blocks, row_words = inputs.strip_records.shape[0], pairs.rows.shape[1]
    sizes = WalkSizes(total, blocks, row_words, by_position)
    in_shared = (1,) if by_position else pairs.table.shape[1:]
    # As many warpgroups as registers and shared memory of a program allow.
    warpgroups = 1
    if s.rows <= 24 and not s.plain:
        table_bytes = max(TABLE_BYTES, prod(in_shared))
        warpgroups = min(4, s.target.shared_bytes // (scratch * 4 + table_bytes))
    run = kernel(
        partial(
            body,
            names=tuple(arrays),
            s=s,
            sizes=sizes,
            warpgroups=warpgroups,
            **options,
        ),
        shapes,
        [
            plgpu.SMEM(in_shared, jnp.int32),
            plgpu.SMEM((warpgroups * scratch,), jnp.int32),
            *copy_scratch(s.target),
        ],
        (-(-total // (THREADS * warpgroups)),),
        ("program",),
        interpret,
        warpgroups,
    )
    return run(*(v if k == "table" else v.reshape(-1) for k, v in arrays.items()))


def _begin(refs, names, s: Fill, sizes: WalkSizes, warpgroups: int):
    """Load the pair of each thread, 1 in threads that have one, outputs, i and j."""
    inputs, scratch = dict(zip(names, refs, strict=False)), -2 - s.target.bulk_copies
    out, (table, nibbles, *barrier) = refs[len(names) : scratch], refs[scratch:]
    view, real = load_pair(inputs, table, nibbles, barrier, s, sizes, warpgroups)
    return view, real, out, [view.th.load(view.refs[x], view.pair)[0] for x in "ij"]


def _walk_program(*refs, names, s: Fill, sizes: WalkSizes, warpgroups: int, runs: int):
    """Walk 128 pairs."""
    view, real, out, (i, j) = _begin(refs, names, s, sizes, warpgroups)
    th, zero = view.th, view.th.splat(0)
    state = WalkState._make([i, j, *[zero] * 8, inside_table(i, j)])
    tags = tags_of(view)

    def tile(carry):
        _, state = carry
        going = state.going != 0
        i, j = (where(going, x, 1) for x in (state.i, state.j))
        k, g, x, row, column = tile_of(view, i, j)
        # Walks that are over fill the first tile of their item in vain: where a
        # sequence is empty, the cell (1, 1) lies in none.
        k, g, x = (where(going, y, 0) for y in (k, g, x))
        start = first_column(view, g, x)
        last = where(going, column, start)
        keep = Nibbles(s.rows // 8)
        refill(view, k, g, x, last, keep, partial(_store_nibbles, view), ())
        state = _walk_tile(view, state, start, i - row, tags, real, out, runs)
        return th.any(state.going), state

    carry = (th.any(state.going), state)
    state = lax.while_loop(lambda carry: carry[0] != 0, tile, carry)[1]
    finish(view, state, real, out, runs)


class Nibbles(NamedTuple):
    """Directions of a column, 8 rows a word, row 0 lowest (``refill``)."""

    count: int

    def __call__(self, th, cells):
        words = []
        for c in range(self.count):
            word = None
            for h, e, f in cells[8 * c : 8 * c + 8]:
                top = ((((h & 12) | (e & -13)) & -2) | (f & 1)) << 28
                word = top if word is None else th.shift_right(word, 4) | top
            words.append(word)
        return tuple(words)


class Heights(NamedTuple):
    """H of a column without tags (``refill``)."""

    count: int

    def __call__(self, th, cells):
        return tuple(h & -TILE_SCALE for h, _, _ in cells)


def _store_nibbles(view, state, slot, column, words, active):
    for c, word in enumerate(words):
        at = _nibble_place(view, slot, c)
        view.th.store(view.nibbles, at, (word,), where=active.astype(jnp.int32))
    return state


def _nibble_place(view, slot, part):
    """Word of a thread's directions, always in the thread's bank."""
    s = view.s
    columns = s.columns * s.tile
    first = view.warpgroup * columns + slot
    return (first * (s.rows // 8) + part) * THREADS + view.thread


def _walk_tile(view, state, start, top, tags, real, out, runs):
    """Take steps within the tile whose first row is ``top`` and whose columns come
    after the padded column ``start``."""
    th = view.th

    def is_inside(state):
        inside = (state.i >= top) & (state.j + view.lead > start)
        return state.going * (inside & (state.i > 0) & (state.j > 0)).astype(jnp.int32)

    def step(carry):
        _, state = carry
        active = is_inside(state) != 0
        row = where(active, state.i - top, 0)
        slot = where(active, state.j + view.lead - start - 1, 0)
        at = _nibble_place(view, slot, shift(th, row, 8))
        (word,) = th.load(view.nibbles, at)
        nibble = lax.shift_right_logical(word, 4 * (row & 7)) & 15
        state = take_step(view, state, nibble, tags, active, real, out, runs)
        return th.any(is_inside(state)), state

    carry = (th.any(is_inside(state)), state)
    return lax.while_loop(lambda carry: carry[0] != 0, step, carry)[1]


def _find_program(*refs, names, s: Fill, sizes: WalkSizes, warpgroups: int):
    """Search 128 pairs, in the tiles whose best is the pair's score."""
    view, real, out, (first_visit, end) = _begin(refs, names, s, sizes, warpgroups)
    th = view.th
    (score,) = th.load(view.refs["score"], view.pair)
    none = th.splat(2**30)
    best = (score + view.n.floor) * TILE_SCALE

    def seek(carry):
        """Go to the next tile with the score, or beyond the last tile."""
        _, at = carry
        k, g, x = _tile_at(view, at, at <= end)
        # Strips that the pair does not need hold anything.
        base = lax.div(view.record(k), th.splat(s.tile)) + x
        thread = view.group * s.lanes + g
        (word,) = th.load(view.refs["peaks"], thread, 1, base, THREADS)
        hit = (value_of(view, word) == best) & (k * s.strip < view.pad + view.m)
        on = ((at <= end) & ~hit).astype(jnp.int32)
        return th.any(on), at + on

    def tile(carry):
        _, at, i, j = carry
        at = lax.while_loop(lambda x: x[0] != 0, seek, (jnp.int32(1), at))[1]
        going = at <= end
        k, g, x = _tile_at(view, at, going)
        start = first_column(view, g, x)
        limit = (x * s.tile - g + s.tile) * s.columns
        limit = jnp.minimum(limit, view.columns + view.lead)
        last = where(going, limit, start)
        goal = score * TILE_SCALE + view.n.floor * TILE_SCALE

        def visit(hits, slot, column, heights, active):
            """First column of every row in which H is the score."""
            return tuple(
                where(active & (h == goal) & (column < hit), column, hit)
                for hit, h in zip(hits, heights, strict=True)
            )

        hits = refill(view, k, g, x, last, Heights(s.rows), visit, (none,) * s.rows)
        top = k * s.strip + g * s.rows + 1 - view.pad
        for r, column in enumerate(hits):
            row, place = top + r, column - view.lead
            by_row = (row < i) | ((row == i) & (place < j))
            by_column = (place < j) | ((place == j) & (row < i))
            earlier = (by_row & (view.tie == 0)) | (by_column & (view.tie != 0))
            better = earlier & (column < none)
            i, j = where(better, row, i), where(better, place, j)
        at = at + 1
        return th.any((at <= end).astype(jnp.int32)), at, i, j

    carry = (th.any((first_visit <= end).astype(jnp.int32)), first_visit, none, none)
    _, _, i, j = lax.while_loop(lambda carry: carry[0] != 0, tile, carry)
    for ref, value in zip(out, (i, j), strict=True):
        value = where(value < none, value, 0)
        th.store(ref, view.pair, (value,), where=real)


def _tile_at(view, place, exists):
    """Strip, lane and column of the tile with this number in ``end_tiles``; of the
    first tile unless it ``exists``. A block of empty targets has no tiles."""
    th, s = view.th, view.s
    tiles, lines = lax.div(view.strip_records, th.splat(s.tile)), view.strips * s.lanes
    length = jnp.maximum(where(view.tie != 0, lines, tiles), 1)
    place = where(exists, place, 0)
    high = lax.div(place, length)
    low = place - high * length
    line, x = where(view.tie != 0, low, high), where(view.tie != 0, high, low)
    return shift(th, line, s.lanes), line & (s.lanes - 1), x
