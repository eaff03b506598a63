"""Paths of many pairs: one thread walks one pair.

From checkpoints: a fill with ``Fill.tile`` stores U and E of the last row of every lane
(``bottom_rows``) and U and F of every row at some columns (``checkpoints``). A lane's K
rows by the columns between two checkpoints are a tile. The thread fills a tile that its
path enters once more, with 4-bit directions in shared memory, walks through it, and
goes on with the next (BT1 of Li, Ranka and Sahni 2014, for pairs).
"""

import math
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental.pallas import mosaic_gpu as plgpu

from kernels_pallas.core.copies import copy_scratch
from kernels_pallas.core.mosaic import THREADS, kernel, where
from kernels_pallas.pairs.shapes import Fill, FillInputs, FillOutput
from kernels_pallas.pairs.tiles import (
    TILE_SCALE,
    WalkSizes,
    first_column,
    load_pair,
    refill,
    shift,
    tags_of,
    tile_of,
    value_of,
)
from kernels_pallas.pairs.walk_steps import WalkState, finish, inside_table, take_step

TABLE_BYTES = 1024  # of the scores in shared memory, for each of four warpgroups


class WalkInputs(NamedTuple):
    """Inputs of the walks beside the fill's; int32, a word a pair if not noted."""

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
    """Local mode: the end cells, in the tiles that ``end_tiles`` names.

    Returns i and j, (pairs,) int32; 0 where there is no tile to look into.
    """
    shapes = [pairs.i.shape] * 2
    return _launch(_find_program, inputs, output, pairs, s, shapes, 128, interpret)


def _launch(body, inputs, output, pairs, s, shapes, scratch, interpret, **more):
    total = pairs.i.shape[0]
    names = ("numbers", "strips", "starts", "steps", "query_lengths", "target_lengths",
             "targets", "first_record", "strip_records")  # fmt: skip
    arrays = {name: getattr(inputs, name) for name in names} | pairs._asdict()
    for name in ("bottom_rows", "checkpoints", "peaks"):
        if getattr(output, name) is not None:
            arrays[name] = getattr(output, name)
    sizes = WalkSizes(total, inputs.strip_records.shape[0], pairs.rows.shape[1])
    warpgroups = _warpgroups(s, scratch * 4 + TABLE_BYTES)
    run = kernel(
        partial(
            body, names=tuple(arrays), s=s, sizes=sizes, warpgroups=warpgroups, **more
        ),
        [jax.ShapeDtypeStruct((math.prod(x),), jnp.int32) for x in shapes],
        [
            plgpu.SMEM(pairs.table.shape[1:], jnp.int32),
            plgpu.SMEM((warpgroups * scratch,), jnp.int32),
            *copy_scratch(s.target),
        ],
        (-(-total // (THREADS * warpgroups)),),
        ("program",),
        interpret,
        warpgroups,
    )
    arrays = {k: v.reshape(-1) if k != "table" else v for k, v in arrays.items()}
    out = run(*arrays.values())
    return [x.reshape(y) for x, y in zip(out, shapes, strict=True)]


def _warpgroups(s: Fill, scratch_bytes: int) -> int:
    """Warpgroups of a program, as many as their registers and shared memory allow; of
    the latter each takes so much, with its share of the table."""
    if s.rows > 24 or s.plain:
        return 1
    return min(4, s.target.shared_bytes // scratch_bytes)


def _begin(refs, names, s: Fill, sizes: WalkSizes, warpgroups: int):
    """The pair of each thread, 1 in threads that have one, outputs and first state."""
    inputs, scratch = dict(zip(names, refs, strict=False)), -2 - s.target.bulk_copies
    out, (table, nibbles, *barrier) = refs[len(names) : scratch], refs[scratch:]
    view, real = load_pair(inputs, table, nibbles, barrier, s, sizes, warpgroups)
    th = view.th
    (i,), (j,) = (th.load(view.refs[name], view.pair) for name in "ij")
    zero = th.splat(0)
    return view, real, out, WalkState._make([i, j, *[zero] * 8, inside_table(i, j)])


def _walk_program(*refs, names, s: Fill, sizes: WalkSizes, warpgroups: int, runs: int):
    """128 walks."""
    view, real, out, state = _begin(refs, names, s, sizes, warpgroups)
    th, tags = view.th, tags_of(view)

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
    """Directions of a column, 8 rows a word, row 0 lowest (``tiles.refill``)."""

    count: int

    def __call__(self, th, cells):
        return tuple(_nibbles(th, cells[8 * c : 8 * c + 8]) for c in range(self.count))


def _nibbles(th, cells):
    """A word of the directions of 8 rows."""
    word = None
    for h, e, f in cells:
        nibble = (((h & 12) | (e & -13)) & -2) | (f & 1)
        top = nibble << 28
        word = top if word is None else th.shift_right(word, 4) | top
    return word


class Heights(NamedTuple):
    """H of a column without their tags (``tiles.refill``)."""

    count: int

    def __call__(self, th, cells):
        return tuple(h & -TILE_SCALE for h, _, _ in cells)


def _store_nibbles(view, state, slot, column, words, active):
    for c, word in enumerate(words):
        at = _nibble_place(view, slot, c)
        view.th.store(view.nibbles, at, (word,), where=active.astype(jnp.int32))
    return state


def _nibble_place(view, slot, part):
    """The word of a thread's directions: in its own bank, whatever the column."""
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
        at = _nibble_place(view, slot, shift(th, row, 8))
        (word,) = th.load(view.nibbles, at)
        nibble = lax.shift_right_logical(word, 4 * (row & 7)) & 15
        state = take_step(view, state, nibble, tags, active, real, out, runs)
        return th.any(here(state)), state

    carry = (th.any(here(state)), state)
    return lax.while_loop(lambda carry: carry[0] != 0, step, carry)[1]


def _find_program(*refs, names, s: Fill, sizes: WalkSizes, warpgroups: int):
    """128 searches among the tiles whose best is the pair's score."""
    inputs, scratch = dict(zip(names, refs, strict=False)), -2 - s.target.bulk_copies
    out, (table, nibbles, *barrier) = refs[len(names) : scratch], refs[scratch:]
    view, real = load_pair(inputs, table, nibbles, barrier, s, sizes, warpgroups)
    th = view.th
    (score,) = th.load(view.refs["score"], view.pair)
    (begin,), (end,) = (th.load(view.refs[name], view.pair) for name in "ij")
    none = th.splat(2**30)
    best = (score + view.n.floor) * TILE_SCALE

    def seek(carry):
        """On to the next tile that has the score, or beyond the last."""
        _, at = carry
        k, g, x = _tile_at(view, at, at <= end)
        # Strips that the pair does not need hold anything.
        here = (_peak(view, k, g, x) == best) & (k * s.strip < view.pad + view.m)
        on = ((at <= end) & ~here).astype(jnp.int32)
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
        visit = partial(_first_hits, view, score * TILE_SCALE)
        hits = refill(view, k, g, x, last, Heights(s.rows), visit, (none,) * s.rows)
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


def _tile_at(view, place, exists):
    """Strip, lane and column of a tile as ``end_tiles`` counts them; of the first tile
    in threads without ``some`` to look into. A block of empty targets has no tiles."""
    th, s = view.th, view.s
    tiles, lines = lax.div(view.strip_records, th.splat(s.tile)), view.strips * s.lanes
    length = jnp.maximum(where(view.tie != 0, lines, tiles), 1)
    place = where(exists, place, 0)
    high = lax.div(place, length)
    low = place - high * length
    line, x = where(view.tie != 0, low, high), where(view.tie != 0, high, low)
    return shift(th, line, s.lanes), line & (s.lanes - 1), x


def _peak(view, k, g, x):
    """Best of a tile, scaled as in a tile filled again."""
    th, s = view.th, view.s
    base = lax.div(view.record(k), th.splat(s.tile)) + x
    thread = view.group * s.lanes + g
    (word,) = th.load(view.refs["peaks"], thread, 1, base, THREADS)
    return value_of(view, word)


def _first_hits(view, score, hits, slot, column, heights, active):
    """First column of every row in which H is the score."""
    goal = score + view.n.floor * TILE_SCALE
    first = []
    for hit, h in zip(hits, heights, strict=True):
        here = active & (h == goal) & (column < hit)
        first.append(where(here, column, hit))
    return tuple(first)
