"""The part of a local table that its path can lie in, found backwards from its end.

Let V(x) be the best score of a path from the node x to the end cell, by Gotoh's
recurrence run backwards, and S the score of the table. What cannot be on the path of
the pair is *dead*, and leads no further: nodes with V <= 0, and the starts, which have
V >= S. All starts lie within a small box before the end
(docs/recurrences.md, "The live part of a local table").

Pairs lie in lanes, the last letters of their prefixes first. Strips of ``ROWS`` rows
sweep over the tiles that the row above left alive in any lane, and on for as long as
they find live nodes.
"""

from collections.abc import Sequence
from functools import partial, reduce
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxalign.affine import Gaps
from jaxalign.one_function import CPU_OPTIONS, one_function
from jaxalign.pairs.dp import matrix_rows, recurrence
from jaxalign.pairs.dp.matrix_rows import put_row, row_of
from jaxalign.pairs.dp.sweep import TILE, lane_cells
from jaxalign.pairs.dp.sweep.lane_cells import BLOCK_ROWS, together

LANES = 128
ROWS = 8  # of a strip
LETTERS = 1024  # before the end of a path that it may reach back
DEAD = -(2**14)  # less than any score of 8 bits, and far from the range of 16


class LivePairs(NamedTuple):
    """G groups of pairs in lanes, the letters of their prefixes from the last on.

    The end cell lies at most ``height`` rows and ``width`` columns before the last
    cell of both prefixes.
    """

    rows: jax.Array  # uint8 (G, LANES, LETTERS), pad letter A before the first
    columns: jax.Array  # the same
    score: jax.Array  # int16 (G, LANES)
    height: jax.Array  # int16 (G, LANES)
    width: jax.Array  # int16 (G, LANES)


class Reach(NamedTuple):
    """How many letters before the ends of both prefixes the paths can begin: int16
    (G, LANES). ``beyond`` is not 0 where live nodes go on beyond ``LETTERS``."""

    rows: jax.Array
    columns: jax.Array
    beyond: jax.Array


@partial(
    jax.jit, static_argnames=("costs", "fused"), compiler_options=CPU_OPTIONS
)  # fmt: skip
def reach(
    pairs: LivePairs, scores: jax.Array, count: jax.Array, costs: Gaps, fused: bool
):
    """Find how far before their ends the paths of some pairs can begin.

    scores : int8 (A, A), row = query letter
    count : int32 (), groups in use
    costs : static, Gaps of int
    """
    pad = jnp.full((), jnp.iinfo(jnp.int8).min, scores.dtype)
    table = matrix_rows.padded_scores(scores, pad, pad)
    table = lax.bitcast_convert_type(table, jnp.uint8)

    def group(g: jax.Array, out: Reach):
        lanes = tuple(row_of(x, g) for x in pairs)
        reached = in_lanes(*lanes, table)
        return Reach(*(put_row(x, y, g) for x, y in zip(out, reached, strict=True)))

    in_lanes = one_function(partial(_group, costs=costs, fused=fused), fused)
    empty = jnp.zeros_like(pairs.score)
    return lax.fori_loop(0, count, group, Reach(empty, empty, empty))


class _Strip(NamedTuple):
    """A strip as it sweeps over the columns."""

    v: tuple[jax.Array, ...]  # of the last column, by row: int16 (LANES,)
    f: tuple[jax.Array, ...]
    diagonal: jax.Array  # V above the last column
    row_v: jax.Array  # (LETTERS, LANES), of the last row; of the one above to the right
    row_e: jax.Array
    alive: jax.Array  # the largest V or E of the last row in this tile
    hits: tuple[jax.Array, ...]  # the largest V of every two rows
    reached: jax.Array  # the last column with a start, in this strip or above


def _group(
    rows: jax.Array, columns: jax.Array, score: jax.Array, height: jax.Array,
    width: jax.Array, table: jax.Array, costs: Gaps, fused: bool,
):  # fmt: skip
    """``reach`` of one group. Nodes are counted from the ends of both prefixes."""
    zero, dead = lax.full_like(score, 0), lax.full_like(score, DEAD)
    letters, codes = (lax.transpose(x, (1, 0)) for x in (rows, columns))
    index = lax.broadcasted_iota(jnp.int16, codes.shape, 0) + jnp.int16(1)
    ends = lax.le(index, lax.broadcast(width, (LETTERS,)))
    row_v = lax.select(ends, lax.full_like(index, 0), lax.full_like(index, DEAD))
    row_e = lax.full_like(index, DEAD)
    lowest = _largest(height)
    widest = lax.div(_largest(width), jnp.int32(TILE))
    two_rows = one_function(partial(_two_rows, costs), fused)
    follow, read = one_function(_follow, fused), one_function(_score, fused)
    seed = one_function(_seed, fused)

    def unfinished(state: tuple):
        s, first, last, *_ = state
        going = lax.le(first, last) | lax.le(s * ROWS, lowest)
        return going & lax.lt(s, jnp.int32(LETTERS // ROWS))

    def strip(state: tuple):
        s, first, last, row_v, row_e, depth, reached, beyond = state
        # Rows in which the end cell may lie begin at the end of the prefix.
        begins = lax.le(s * ROWS, lowest)
        first = lax.select(begins, jnp.int32(0), first)
        last = lax.select(begins, lax.max(last, widest), last)
        strip_letters = lax.dynamic_slice_in_dim(letters, s * ROWS, ROWS)
        words = lane_cells.words_of(table, strip_letters, fused)
        seeds = [seed(s * ROWS + k, height) for k in range(ROWS + 1)]
        at_border = lax.eq(first, jnp.int32(0))
        diagonal, *left = (lax.select(at_border, x, dead) for x in seeds)

        def going_on(state: tuple):
            t, border, *_ = state
            going = lax.le(t, last) | lax.ge(border, jnp.int32(0))
            return going & lax.lt(t, jnp.int32(LETTERS // TILE))

        def tile(state: tuple):
            t, _, first_alive, last_alive, swept = state
            scores = lane_cells.tile_of(words, codes, t, fused)

            def column(p: jax.Array, swept: _Strip):
                c = t * TILE + p
                up, e = row_of(swept.row_v, c), row_of(swept.row_e, c)
                ends = seed(c + 1, width)
                diag, next_diagonal = swept.diagonal, up
                v, f, hits = [], [], []
                for k in range(0, ROWS, BLOCK_ROWS):
                    block = slice(k, k + BLOCK_ROWS)
                    s_k = [read(scores, jnp.int32(r), p) for r in range(ROWS)[block]]
                    v_k, f_k, e, hit = two_rows(
                        diag, up, swept.v[block], e, swept.f[block], s_k, score, ends,
                        seeds[1:][block],
                    )  # fmt: skip
                    diag, up = swept.v[k + BLOCK_ROWS - 1], v_k[-1]
                    v += v_k
                    f += f_k
                    hits.append(hit)
                alive, hits, reached = follow(
                    up, e, hits, score, c + 1, swept.alive, swept.hits, swept.reached
                )
                rows = put_row(swept.row_v, up, c), put_row(swept.row_e, e, c)
                lines = tuple(v), tuple(f), next_diagonal
                return _Strip(*lines, *rows, alive, tuple(hits), reached)

            swept = swept._replace(alive=dead)
            swept = lax.fori_loop(jnp.int32(0), jnp.int32(TILE), column, swept)
            border = reduce(lax.max, (*swept.v, *swept.f, swept.diagonal))
            is_alive = lax.ge(_largest(swept.alive), jnp.int32(0))
            first_alive = lax.select(is_alive, lax.min(first_alive, t), first_alive)
            last_alive = lax.select(is_alive, t, last_alive)
            return t + 1, _largest(border), first_alive, last_alive, swept

        lines = tuple(left), (dead,) * ROWS, diagonal
        hits = (dead,) * (ROWS // BLOCK_ROWS)
        swept = _Strip(*lines, row_v, row_e, dead, hits, reached)
        none = jnp.int32(LETTERS), jnp.int32(-1)
        swept_tiles = first, jnp.int32(-1), *none, swept
        t, _, first, last, swept = lax.while_loop(going_on, tile, swept_tiles)
        for k, hit in enumerate(swept.hits):
            row = lax.convert_element_type(s * ROWS + (k + 1) * BLOCK_ROWS, jnp.int16)
            there = lax.ge(hit, score)
            depth = lax.select(there, lax.broadcast(row, depth.shape), depth)
        # Nodes of the last letters, from which live ones may go on
        border = reduce(lax.max, (*swept.v, *swept.f))
        is_last = lax.eq(t, jnp.int32(LETTERS // TILE))
        beyond = lax.max(beyond, lax.select(is_last, border, dead))
        rows = swept.row_v, swept.row_e
        return s + 1, first, last, *rows, depth, swept.reached, beyond

    state = jnp.int32(0), jnp.int32(0), widest, row_v, row_e, zero, zero, dead
    state = lax.while_loop(unfinished, strip, state)
    _, _, _, row_v, row_e, depth, reached, beyond = state
    is_last = lax.eq(state[0], jnp.int32(LETTERS // ROWS))
    last = lax.reduce(lax.max(row_v, row_e), jnp.int16(DEAD), lax.max, (0,))
    beyond = lax.max(beyond, lax.select(is_last, last, dead))
    beyond = lax.convert_element_type(lax.ge(beyond, zero), jnp.int16)
    return depth, reached, beyond


def _largest(values: jax.Array):
    """int32 (), the largest of all lanes."""
    low = jnp.int16(jnp.iinfo(jnp.int16).min)
    return lax.convert_element_type(lax.reduce(values, low, lax.max, (0,)), jnp.int32)


def _seed(index: jax.Array, ends: jax.Array):
    """V of the nodes that may be the end cell, of one side: 0 up to ``ends``."""
    index = lax.broadcast(lax.convert_element_type(index, ends.dtype), ends.shape)
    inside = lax.le(index, ends)
    return lax.select(inside, lax.full_like(ends, 0), lax.full_like(ends, DEAD))


def _score(scores: jax.Array, row: jax.Array, p: jax.Array):
    byte = lax.dynamic_slice(scores, (row, p, jnp.int32(0)), (1, 1, scores.shape[2]))
    signed = lax.bitcast_convert_type(lax.squeeze(byte, (0, 1)), jnp.int8)
    return lax.convert_element_type(signed, jnp.int16)


def _two_rows(
    costs: Gaps, diag: jax.Array, up: jax.Array, left: Sequence[jax.Array],
    e: jax.Array, f: Sequence[jax.Array], s: Sequence[jax.Array], score: jax.Array,
    column_ends: jax.Array, row_ends: Sequence[jax.Array],
):  # fmt: skip
    """(V, F, E of the last row, the largest V before any died) of two nodes of every
    lane, in one loop."""
    gaps = Gaps(*(lax.full_like(diag, x) for x in costs))
    dead, zero = lax.full_like(diag, DEAD), lax.full_like(diag, 0)
    v, new_f, hit = [], [], dead
    for k in range(BLOCK_ROWS):
        e = recurrence.gap(e, up, gaps)
        new_f.append(recurrence.gap(f[k], left[k], gaps))
        value = recurrence.best(diag, s[k], e, new_f[k], False)
        hit = lax.max(hit, value)
        is_alive = lax.gt(value, zero) & lax.lt(value, score)
        ends = lax.min(column_ends, row_ends[k])
        diag, up = left[k], lax.max(lax.select(is_alive, value, dead), ends)
        v.append(up)
    return together(v, new_f, e, hit)


def _follow(
    v: jax.Array, e: jax.Array, column_hits: Sequence[jax.Array], score: jax.Array,
    c: jax.Array, alive: jax.Array, hits: Sequence[jax.Array], reached: jax.Array,
):  # fmt: skip
    """A column joins what is known of the strip."""
    is_hit = lax.ge(reduce(lax.max, column_hits), score)
    place = lax.broadcast(lax.convert_element_type(c, reached.dtype), reached.shape)
    reached = lax.select(is_hit, lax.max(place, reached), reached)
    new_hits = [lax.max(x, y) for x, y in zip(column_hits, hits, strict=True)]
    return together(lax.max(alive, lax.max(v, e)), new_hits, reached)
