"""Queries against a block of targets packed in lanes: the fast CPU fill.

Rows are taken in strips of ``rows``; a strip sweeps over the columns of all lanes at
once and keeps H and F of its rows, while H and E of its last row wait in a boundary
row for the strip below. Columns are taken in chunks whose profile stays in the cache;
H and F of a strip wait in a boundary column for the next chunk. H, E and F are never
stored beyond that.

A lane holds targets one after the other, each in tiles of its own (``TILE`` columns),
ending with its last tile and beginning wherever that leaves it. The columns before its
first residue hold what column 0 holds, so every border case (the four free ends are
run-time flags) is data: a pad column scores 0 where the query's start is free, which
keeps H = 0, and ``-open`` where it is not, which leaves H to E. Rows below the last of
a query cost no gap to go down, so that they carry row m unchanged.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxalign.affine import Gaps, neg_inf
from jaxalign.one_function import one_function
from jaxalign.pairs.dp.matrix_rows import row_of
from jaxalign.pairs.dp.recurrence import border
from jaxalign.pairs.dp.sweep import TILE, lane_cells
from jaxalign.pairs.dp.sweep.lane_cells import Block

UNROLLED_STEPS = 2  # a turn of the loop takes
CHUNK_CELLS = 2**17  # columns of a lane that a chunk has, all lanes together


class Query(NamedTuple):
    """Rows: W = 1 query for all lanes, or one a lane (W = B), or a team of W."""

    codes: jax.Array  # int32 (M, W), pad letter A below the last row
    length: jax.Array  # int32 (W,)
    strips: jax.Array  # int32 (), how many strips the longest needs
    tile: jax.Array  # int32 (), tiles before it are left out
    tie: jax.Array  # score dtype (L / TILE, B), 1 where left goes before up
    # Score dtype (M, 4), costs by position as of ``lane_cells.position_costs``
    costs: jax.Array | None = None
    member: jax.Array | None = None  # uint8 (L / TILE, B), which of the team's it is


class BlockFill(NamedTuple):
    """The end cells that ``walk.sweep_end`` chooses from, by tile, and the backtrack.

    ``best`` is the best cell among the columns of a tile in local mode; else the best
    of its last column, of use where a target ends there.
    """

    last_row: jax.Array  # H[m, :] by column (L, B)
    best: jax.Array  # (L / TILE, B)
    row: jax.Array | None  # int32 (L / TILE, B); None for a local score alone
    # int32 (L / TILE, B), of the block, of local paths only. With the strips of local
    # scores, ``row`` is the first strip that has the best, and ``column`` the last.
    column: jax.Array | None
    backtrack: jax.Array | None  # uint8: (rows / 2, column < TILE * tiles, lane)


def fill(
    block: Block, query: Query, gaps: Gaps, free: Mapping[str, Any],
    backtrack: jax.Array | None = None, *, local: bool, rows: int = 16,
    fused: bool = True, costs: lane_cells.Constants | None = None, strips: bool = False,
):  # fmt: skip
    """Fill all tables of a block.

    free : dict of bool scalars, the four free ends of the rows/columns orientation
    backtrack : uint8 (capacity,) to be overwritten, or None
    local, rows, fused : static; ``rows`` divides M; it is even
    costs : static, ``blocks.Constants``: ``gaps`` as constants of the program, for
        local scores (W < B), which are then a third faster
    strips : static; with ``costs``, also which strips have the best of each tile

    Returns Filled, with ``costs.zero`` added to all scores. Right as long as no value
    leaves the range of ``gaps.open.dtype``: the caller proves that (``model.bounds``).
    """
    # Row 0: H[0, :] and E = -inf in the boundary row, and column n's candidate
    top = free["target_start"] | local
    h = border(inside_index(block), top, gaps)
    best = border(block.length[block.target], top, gaps)
    best = jnp.where(local, 0, best).astype(h.dtype)
    zero = jnp.zeros(best.shape, jnp.int16 if strips else jnp.int32)
    row = None if local and backtrack is None and not strips else zero
    place = zero if local and row is not None else None
    filled, minus = BlockFill(h, best, row, place, backtrack), neg_inf(h.dtype)
    # H, F (strips, rows, B) and the diagonal (strips, B) left of the first chunk: every
    # target begins with what its own column 0 has.
    lanes = block.codes.shape[1]
    wide = jnp.full((query.codes.shape[0] // rows, rows, lanes), minus, h.dtype)
    state = filled, jnp.full_like(h, minus), (wide, wide, wide[:, 0])
    has_lane_queries = query.codes.shape[1] == lanes  # tables are made for every strip
    static: Any = {"local": local, "fused": fused, "costs": costs}

    def chunks(
        state: tuple, block: Block, query: Query, gaps: Gaps, borders: "_Borders"
    ):
        def fill_strip(tiles: tuple, s: jax.Array, state: tuple):
            inputs = tiles, block, query, gaps, borders
            return _strip(
                *inputs, s, state, as_function=fused and has_lane_queries, **static
            )

        return by_chunks(
            fill_strip, state, lanes, query.tile, block.tiles, query.strips
        )

    borders = _borders(query, gaps, free["query_start"] | local, rows)
    sweep = one_function(chunks, enabled=fused and not has_lane_queries)
    if costs is None:
        return sweep(state, block, query, gaps, borders)[0]
    filled, e_row, column = state
    h, best, start, above = (
        x + jnp.asarray(costs.zero, x.dtype)
        for x in (filled.last_row, filled.best, borders.start, borders.above)
    )
    start, above = start[..., :1], above[..., :1]  # 0 in local tables of any query
    by_position = None
    if query.costs is not None:
        by_position = query.costs.reshape(-1, rows, query.costs.shape[1])
    borders = _Borders(borders.letters, by_position, None, start, above)  # no dead code
    filled = filled._replace(last_row=in_pairs(h), best=best)
    state = filled, in_pairs(jnp.full_like(e_row, costs.least)), column
    if block.scores.ndim > 2:
        block = block._replace(scores=in_pairs(block.scores))
    filled = sweep(state, block, query, gaps, borders)[0]
    return filled._replace(last_row=filled.last_row.reshape(-1, lanes))


def by_chunks(
    strip: Callable, state: Any, lanes: int, first: jax.Array, last: jax.Array,
    strips: jax.Array,
) -> Any:  # fmt: skip
    """The loops of a fill: over chunks of tiles, and in each over strips of rows.

    strip : function (tiles, s, state), fills strip s in the tiles (first, end) of a
        chunk
    first, last, strips : int32 (), tiles, the last not included, and strips
    """
    size = jnp.int32(max(1, CHUNK_CELLS // (TILE * lanes)))  # tiles of a chunk

    def chunk(c: jax.Array, state: Any):
        tiles = lax.max(first, c * size), lax.min(last, (c + 1) * size)
        return lax.fori_loop(0, strips, partial(strip, tiles), state)

    end = lax.div(last + (size - 1), size)
    return lax.fori_loop(lax.div(first, size), end, chunk, state)


def in_pairs(columns: jax.Array):
    """(..., L, B) -> (..., L / 2, 2 * B): two columns a row."""
    *batch, count, lanes = columns.shape
    wide = lane_cells.BLOCK_COLUMNS
    return columns.reshape(*batch, count // wide, wide * lanes)


def inside_index(block: Block):
    """j of every column (L, B), counted from 1 within its own target; <= 0 before."""
    origin = jnp.repeat(block.origin, TILE, axis=0)
    return jnp.arange(origin.shape[0], dtype=jnp.int32)[:, None] - origin + 1


class _Borders(NamedTuple):
    """The cells left of column 1 by strip: (strips, rows, W), ``above`` (strips, W)."""

    letters: jax.Array
    # Down a column: none below the last row. Costs by position: (strips, rows, 4)
    open: jax.Array | None
    extend: jax.Array | None
    start: jax.Array  # column 0, with the value of row m below row m
    above: jax.Array  # the row above the strip


def _borders(query: Query, gaps: Gaps, left: jax.Array | bool, rows: int):
    count, wide = query.codes.shape
    shape = count // rows, rows, wide
    i = 1 + jnp.arange(count, dtype=jnp.int32)[:, None]
    inside = i <= query.length[None, :]
    down = (jnp.where(inside, g, 0).astype(g.dtype) for g in gaps)
    start = border(jnp.minimum(i, query.length[None, :]), left, gaps)
    above = border(jnp.minimum(i[::rows] - 1, query.length[None, :]), left, gaps)
    return _Borders._make(
        [*(x.reshape(shape) for x in (query.codes, *down, start)), above]
    )


def _strip(
    tiles: tuple[jax.Array, jax.Array], block: Block, query: Query, gaps: Gaps,
    borders: _Borders, s: jax.Array, state: tuple, *, local: bool, fused: bool,
    as_function: bool, costs: lane_cells.Constants | None,
):  # fmt: skip
    """One strip: rows s*rows + 1 ... s*rows + rows against some tiles of columns."""
    filled, e_row, column = state
    edges = jax.tree.map(lambda x: row_of(x, s), borders)
    *wide, diag = (row_of(x, s) for x in column)
    opens = edges.open if costs is not None else None
    letters, *down, start, h, f = (
        None if x is None else tuple(row_of(x, k) for k in range(len(x)))
        for x in (edges.letters, edges.open, edges.extend, edges.start, *wide)
    )
    vertical = tuple(down) if opens is None else opens
    sweep = one_function(
        lambda *args: _tiles(*args, local=local, fused=fused, costs=costs),
        enabled=as_function,
    )
    filled, e_row, h, f, diag = sweep(
        (filled, e_row, h, f, diag), tiles, block, letters,
        lane_cells.tables_of(block, edges.letters), vertical,
        (start, edges.above), gaps, query, s,
    )  # fmt: skip
    after = (*(lax.concatenate([y[None] for y in x], 0) for x in (h, f)), diag)
    put = partial(lax.dynamic_update_index_in_dim, index=s, axis=0)
    return filled, e_row, tuple(map(put, column, after))


def _tiles(
    state: tuple, tiles: tuple[jax.Array, jax.Array], block: Block,
    letters: tuple[jax.Array, ...], tables: tuple[jax.Array, ...], vertical: Any,
    column0: tuple, gaps: Gaps, query: Query, s: jax.Array, *, local: bool, fused: bool,
    costs: lane_cells.Constants | None,
):  # fmt: skip
    """The sweep of a strip over its tiles; loops of one function on the CPU."""
    rows, lanes = len(letters), block.codes.shape[1]
    lowest = neg_inf(gaps.open.dtype) if costs is None else costs.least
    minus = lax.full((lanes,), lowest, gaps.open.dtype)
    paths = state[0].backtrack is not None
    by_position = block.scores.ndim == 2 and letters[0].shape[0] != lanes
    to_lanes = partial(per_lane, lanes=lanes)

    def tile(t: jax.Array, carry: tuple):
        filled, e_row, h, f, diag = carry
        begins = row_of(block.begins, t)
        start, above = jax.tree.map(to_lanes, column0)
        h = tuple(lax.select(begins, x, y) for x, y in zip(start, h, strict=True))
        f = tuple(lax.select(begins, minus, x) for x in f)
        diag = lax.select(begins, above, diag)
        tie = row_of(query.tie, t) if paths else None
        scores, row_letters, first_column = block.scores, letters, None
        if by_position:
            scores = lane_cells.profile_of_tile(block, letters, t, fused)
            scores = scores if costs is None else in_pairs(scores)
            row_letters = tuple(lax.full((1,), k, jnp.int32) for k in range(rows))
            first_column = t * TILE
        if costs is None:
            read = partial(
                lane_cells.scores_of, block._replace(scores=scores), row_letters,
                tables, first_column, dtype=gaps.open.dtype, fused=fused,
            )  # fmt: skip
            # Costs down a column, by row: scalars where there is nothing to load
            scalar = vertical[0][0].shape[0] == 1
            convert = partial(lax.squeeze, dimensions=(0,)) if scalar else to_lanes
            gap = jax.tree.map(convert, vertical)
            if tie is not None:
                # First columns of targets, counted from that of tile t; -1 before it
                origin = row_of(block.origin, t) - t * TILE
                place = lax.clamp(jnp.int32(-1), origin, jnp.int32(TILE))
                first = lax.convert_element_type(place, gaps.open.dtype)
                column = lane_cells.path_step(
                    block, read, gap, gaps, tie, first, s, local, fused
                )
            else:
                column = lane_cells.score_step(read, gap, gaps, local, fused)
            wide = 1
        else:
            wide = lane_cells.BLOCK_COLUMNS
            first_column = None if first_column is None else lax.div(first_column, wide)
            strip = rows, scores, row_letters, gaps.open.dtype, costs, first_column
            by_costs = None if isinstance(vertical, tuple) else vertical
            member = None if query.member is None else row_of(query.member, t)
            if member is not None:
                member = lax.concatenate([member] * wide, 0)
            column = lane_cells.columns_of(*strip, by_costs, member)
        inner = h, f, diag, filled.last_row, e_row, filled.backtrack
        zero = 0 if costs is None else costs.zero
        inner += (lane_cells.track(h, local, paths, zero),)
        turns = TILE // (wide * UNROLLED_STEPS)
        inner = lax.fori_loop(t * turns, (t + 1) * turns, unrolled(column), inner)
        h, f, diag, last_row, e_row, backtrack, track = inner
        filled = filled._replace(last_row=last_row, backtrack=backtrack)
        strip_best = (*track, None, None)[:3] if local else lane_cells.best_of_column(h)
        # No dead code (``one_function``): a score alone does not ask where it is.
        corner = None if filled.row is None else (s * rows + 1, t * TILE)
        if costs is not None and filled.row is not None:
            filled = lane_cells.keep_strips(filled, t, strip_best[0], s)
        else:
            filled = lane_cells.keep(filled, t, strip_best, corner, tie, fused)
        return filled, e_row, h, f, diag

    first, end = tiles
    return lax.fori_loop(first, end, tile, state)


def per_lane(values: jax.Array, lanes: int):
    """(W,) values of the queries -> (B,), what each lane's query has."""
    if values.shape[0] == lanes:
        return values
    return lax.broadcast(lax.squeeze(values, (0,)), (lanes,))


def unrolled(column: Callable[[jax.Array, tuple], tuple]):
    """Several columns a step: the second writes H and F where the first has read them,
    so that nothing is copied."""

    def step(p: jax.Array, carry: tuple):
        for k in range(UNROLLED_STEPS):
            carry = column(UNROLLED_STEPS * p + k, carry)
        return carry

    return step
