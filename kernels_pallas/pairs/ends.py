"""Scores and end cells from the output of a fill; plain ``jnp``.

Candidates: (m, n) always; row m where the target's end is free; column n where the
query's end is free; in local mode every cell. Among equals the smallest query index
wins, then the smallest target index; the other way round where ``tie`` is set (the two
sides of the pair are swapped).

Local mode: the tiles in which an end cell may lie, from the best of every tile.

One program an item: its 128 threads read the bests of their own lanes, strip after
strip, tile after tile; plain ``jnp`` compares the lanes of a group.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from kernels_pallas.core.mosaic import THREADS, kernel, where
from kernels_pallas.pairs.config import Fill, FillInputs, FillOutput, Numbers
from kernels_pallas.pairs.layout import Problem, strips_of


class EndCells(NamedTuple):
    """The score and end cell of every pair, int32."""

    score: jax.Array
    i: jax.Array
    j: jax.Array


def by_table(words, s: Fill) -> jax.Array:
    """Words of threads (items, ..., 128) -> (items, ..., groups, tables, lanes)."""
    words = words.reshape(*words.shape[:-1], s.groups, s.lanes)
    if not s.packed:
        return words[..., None, :]
    halves = lax.bitcast_convert_type(words, jnp.int16).astype(jnp.int32)
    return jnp.swapaxes(halves, -1, -2)


def by_pair(values, s: Fill, queries: int) -> jax.Array:
    """(items, groups, tables, ...) -> (queries, targets, ...), or (pairs, ...)."""
    trailing = values.shape[3:]
    if not s.shared:
        return values.reshape(-1, *trailing)
    blocks = values.shape[0] * s.tables // queries
    shape = queries // s.tables, blocks, s.groups, s.tables, *trailing
    order = jnp.moveaxis(values.reshape(shape), 3, 1)
    return order.reshape(queries, blocks * s.groups, *trailing)


def by_item(values, s: Fill) -> jax.Array:
    """Undo ``by_pair``: (queries, targets) or (pairs,) to (items, ...)."""
    if not s.shared:
        return values.reshape(-1, s.groups, s.tables)
    queries, targets = values.shape
    shape = queries // s.tables, s.tables, targets // s.groups, s.groups
    return jnp.moveaxis(values.reshape(shape), 1, 3).reshape(-1, s.groups, s.tables)


def local_score(output: FillOutput, n: Numbers, s: Fill, queries: int) -> jax.Array:
    """Best H of every pair."""
    best = by_table(output.best, s).max(-1) - n.floor
    return by_pair(best, s, queries)


def stacked_score(output: FillOutput, n: Numbers, s: Fill, stacks, queries: int):
    """Best H of every pair of stacked queries: the best of the lanes of a query."""
    best = output.best
    assert best is not None  # local mode
    best = best.reshape(s.stacks, -1, *best.shape[1:])
    best = by_table(best, s) - n.floor  # items, blocks, S, groups, tables, lanes
    query = jnp.where(stacks.query >= 0, stacks.query, queries)
    best = best.transpose(0, 4, 2, 5, 1, 3).reshape(query.size, -1)
    return jax.ops.segment_max(best, query.reshape(-1), queries + 1)[:-1]


def border_end(
    output: FillOutput, problem: Problem, n: Numbers, s: Fill, m, columns, tie
):
    """End cells of border modes; m, columns (n) and ``tie`` are of the shape of the
    result."""
    queries, skew = m.shape[0], n.corner + n.unskew * (m + columns)

    def last(words):
        return by_pair(by_table(words, s)[..., -1], s, queries)

    # Strips of queries that share a register are counted together.
    highest = tallest(m, s)
    strip = (strips_of(highest, s) - 1)[..., None]
    bottom = _column(output, s, queries, slice(s.rows - 1, None))
    corner = jnp.take_along_axis(bottom, (strip + 1) * s.lanes - 1, -1)[..., 0] - skew
    value = last(output.row_best) - n.corner - n.unskew * m
    row = EndCells(value, m, last(output.row_column))
    corner = EndCells(corner, m, columns)

    def best_of_column():
        h, i = _best_of_column(output, n, s, m, (strip[..., 0] + 1) * s.strip)
        best = h - n.corner - n.unskew * columns
        top = border(columns, problem.target_start, problem)
        on_top = (top >= best) | (m == 0)
        top_end = EndCells(top, jnp.zeros_like(m), columns)
        return _choose(on_top, top_end, EndCells(best, i, columns))

    column = lax.cond(problem.query_end, best_of_column, lambda: corner)
    # For n = 0. Column 0 falls from 0 (or stays there): its first row is best.
    zero = jnp.zeros_like(m)
    empty = EndCells(border(m, problem.query_start, problem), m, zero)
    empty = empty, EndCells(zero, zero, zero), empty
    ends = (corner, column, row)
    ends = [_choose(columns == 0, a, b) for a, b in zip(empty, ends, strict=True)]
    return best_end(*ends, problem, tie)


def tallest(m, s: Fill):
    """Longest query of those that a program fills together, for every pair."""
    if s.shared:
        pairs = m.reshape(-1, s.tables, *m.shape[1:])
        return jnp.repeat(pairs.max(1), s.tables, 0)
    blocks = m.reshape(-1, s.block)
    return jnp.repeat(blocks.max(1), blocks.shape[1])


def _best_of_column(output: FillOutput, n: Numbers, s: Fill, m, rows):
    """Largest U - unskew * i of column n in rows 1 to m, and its first row: (pairs...),
    int32. ``rows`` are the rows at the end of all strips of a pair.

    One reduction a table reads the column as it lies; a copy with the rows of a pair
    side by side would take as much memory again.
    """
    columns = output.column
    assert columns is not None  # border modes
    lowest, strips = jnp.int32(-(2**31) + 1), columns.shape[1]
    words = columns.reshape(-1, strips, s.slots, s.groups, s.lanes, s.rows)
    place = jnp.arange(strips * s.strip, dtype=jnp.int32) + 1
    place = place.reshape(1, strips, 1, s.lanes, s.rows)
    bests = []
    for table in range(s.tables):
        above, last = (
            by_item(x, s)[:, None, :, table, None, None] for x in (m - rows, m)
        )
        i = place + above
        u = words[:, :, table % s.slots]
        if s.packed:
            u = (u if table else u << 16) >> 16
        h = jnp.where((i > 0) & (i <= last), u - n.unskew * jnp.maximum(i, 0), lowest)
        h, i = _first_best(h, i, (3, 4))
        bests.append(_first_best(h, i, (1,)))
    return (by_pair(jnp.stack(x, -1), s, m.shape[0]) for x in zip(*bests, strict=True))


def _first_best(h, i, axes):
    """Largest h over some axes, and the smallest i among equals."""

    def better(x, y):
        (h, i), (g, j) = x, y
        first = (h > g) | ((h == g) & (i < j))
        return jnp.where(first, h, g), jnp.where(first, i, j)

    none = jnp.int32(-(2**31)), jnp.int32(2**31 - 1)
    return lax.reduce((h, jnp.broadcast_to(i, h.shape)), none, better, axes)


def _column(output: FillOutput, s: Fill, queries, part):
    """U of column n, some rows of every lane: (pairs..., S * lanes * rows)."""
    words = jnp.swapaxes(output.column[..., part], -1, -2)  # items, S, slots, row, 128
    values = by_table(words, s)
    # items, S, slots, row, groups, tables, lanes
    if s.slots > 1:  # a table's column is in its own slot
        values = jnp.stack([values[:, :, k, :, :, k] for k in range(s.slots)], -2)
    else:
        values = values[:, :, 0]
    values = values.transpose(0, 3, 4, 1, 5, 2)  # items, groups, tables, S, lane, row
    return by_pair(values.reshape(*values.shape[:3], -1), s, queries)


def border(index, free, problem: Problem) -> jax.Array:
    """H on row 0 or column 0 at distance ``index``."""
    cost = problem.gap_open + (index - 1) * problem.gap_extend
    return jnp.where(free | (index <= 0), 0, -cost)


def best_end(
    corner: EndCells, column: EndCells, row: EndCells, problem: Problem, tie
) -> EndCells:
    """Choose the end cell from (m, n), column n and row m; the last two include (m,
    n)."""
    by_column = problem.query_end & (column.i < corner.i)
    by_row = problem.target_end & (row.j < corner.j)
    row_first = (row.score > column.score) | ((row.score == column.score) & tie)
    trailing = _choose(by_row, row, corner)
    return _choose(by_column & ~(by_row & row_first), column, trailing)


def _choose(which, yes, no):
    return EndCells(*(jnp.where(which, a, b) for a, b in zip(yes, no, strict=True)))


NO_TILE = 2**30  # above all places of tiles, and all scores


def end_tiles(
    inputs: FillInputs, output: FillOutput, s: Fill, score, tie, interpret=None
):
    """First and last tile that may contain a local end cell, (items, groups, tables).

    Score and tie come as ``ends.by_item`` gives them. A smaller row wins: tiles are
    counted by strip, lane, then column, and only those of the first lane with a cell
    of the score matter. For swapped pairs a smaller column does: they are counted by
    column first, and only those matter that begin before the first of them ends. Tiles
    in between may lack the score. First is above last where the score is 0.
    """
    items, blocks, peaks = score.shape[0], inputs.strip_records.shape[0], output.peaks
    assert peaks is not None  # a local fill with tiles
    run = kernel(
        partial(_end_program, s=s, blocks=blocks),
        [(items, s.tables, 3, s.groups, s.lanes)],
        [],
        (items,),
        ("item",),
        interpret,
    )
    floor = inputs.numbers[Numbers._fields.index("floor")]
    goals = jnp.where(score > 0, score + floor, NO_TILE)
    ties = tie.astype(jnp.int32)
    (places,) = run(inputs.strips, inputs.steps, inputs.first_record,
                    inputs.strip_records, goals.reshape(-1), ties.reshape(-1),
                    peaks.reshape(-1))  # fmt: skip
    key, first, last = (x.swapaxes(1, 2) for x in jnp.moveaxis(places, 2, 0))
    lane = lax.broadcasted_iota(jnp.int32, key.shape, key.ndim - 1)
    tie = tie[..., None].astype(bool)
    exists = first < NO_TILE
    line = jnp.where(exists, key * s.lanes + lane, NO_TILE)
    # A tile begins at step x * tile - lane of its lane.
    start = jnp.where(exists, key * s.tile - lane, NO_TILE)
    by_column = start < start.min(-1, keepdims=True) + s.tile
    mask = exists & jnp.where(tie, by_column, line == line.min(-1, keepdims=True))
    first = jnp.where(mask, first, NO_TILE).min(-1)
    return first, jnp.where(mask, last, -1).max(-1)


def _end_program(strips, steps, first_record, strip_records, scores, ties, peaks, out,
                 *, s: Fill, blocks: int):  # fmt: skip
    """Find, for every lane, the first strip (for swapped pairs: column of tiles)
    whose best is the score, and the first and last place in it."""
    th, item = s.threads, lax.axis_index("item")
    scores, ties, peaks = map(th.read_only, (scores, ties, peaks))
    query = lax.div(item, jnp.int32(blocks))
    block = item - query * blocks if s.shared else item
    count = strips[query if s.shared else item]
    tile = jnp.int32(s.tile)
    tiles = lax.div(strip_records[block], tile)
    used = lax.div(steps[2 * block + 1] + (s.tile - 1), tile)
    thread = th.index()
    bits = th.splat(s.lanes.bit_length() - 1)
    lane, group = thread & (s.lanes - 1), lax.shift_right_logical(thread, bits)
    at = group * s.tables
    stride = s.groups * s.tables
    goals = [th.load(scores, at + c, 1, item, stride)[0] for c in range(s.tables)]
    swaps = [th.load(ties, at + c, 1, item, stride)[0] for c in range(s.tables)]
    base = lax.div(first_record[item], tile)

    def tile_of(k, x, state):
        (word,) = th.load(peaks, thread, 1, base + k * tiles + x, THREADS)
        line = lane + k * s.lanes
        by_row, by_column = line * tiles + x, line + x * (count * s.lanes)
        after = []
        for c, (goal, swap) in enumerate(zip(goals, swaps, strict=True)):
            key, first, last = state[3 * c : 3 * c + 3]
            place = where(swap != 0, by_column, by_row)
            line_key = where(swap != 0, th.splat(x), th.splat(k))
            best = word
            if s.packed:
                half = word << 16 if c == 0 else word
                best = lax.shift_right_arithmetic(half, th.splat(16))
            is_goal = best == goal
            better, same = is_goal & (line_key < key), is_goal & (line_key == key)
            first = where(better, place, first)
            last = where(better | same, place, last)
            after += [where(better, line_key, key), first, last]
        return tuple(after)

    def strip(k, state):
        return lax.fori_loop(jnp.int32(0), used, partial(tile_of, k), state)

    none = th.splat(NO_TILE)
    state = (none, none, th.splat(-1)) * s.tables
    state = lax.fori_loop(jnp.int32(0), count, strip, state)
    for k, value in enumerate(state):
        th.store(out, thread + k * THREADS, (value,), item, 3 * s.tables * THREADS)
