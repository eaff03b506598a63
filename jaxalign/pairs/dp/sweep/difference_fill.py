"""Global tables on a CPU by differences of neighbouring cells, narrow at any length.

The difference recurrence of Suzuki and Kasahara (BMC Bioinformatics 19:45, 2018): H
itself grows with the lengths, but H of a cell less H of the next one does not. With
o = gap_open and q = gap_open - gap_extend, all of these lie in 0 ... max(S) + 2 * o:

    u[i,j] = H[i,j] - H[i-1,j] + o          x[i,j] = E[i+1,j] - H[i,j] + o
    v[i,j] = H[i,j] - H[i,j-1] + o          y[i,j] = F[i,j+1] - H[i,j] + o
    z[i,j] = H[i,j] - H[i-1,j-1] + 2 * o
           = max(S(q[i], t[j]) + 2 * o, x[i-1,j] + v[i-1,j], y[i,j-1] + u[i,j-1])

The score is H at the top of the last column plus the differences down that column, so
rows below the last of a query are left out of that sum, and pad columns before a target
keep the differences of its column 0. ``model.bounds.fits_differences`` says which
scorings 8 bits hold, ``differences_base`` how many matches of an identity 16 bits hold
in the low digits. Blocks of 2 x 2 cells and their loops are those of ``lane_cells``;
Where each lane has a query of
its own, ``lane_cells`` looks up the scores of a tile.

Global alignments by differences: the same cells with backtrack.

Whether a gap goes on is known where x and y are computed, a cell before their nibble is
due. So x and y are greater by one here wherever going on costs no more than opening a
gap, and 0 where it costs more:

    x[i,j] = max(0, E[i,j] - H[i,j] + q + 1),   E goes on below (i,j) where x[i,j] > 0

Two rows of a column are one loop over the lanes, and their nibbles one byte.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxalign.one_function import one_function
from jaxalign.pairs.dp.directions import C_LEFT, C_UP, DIAGONAL, LEFT, UP
from jaxalign.pairs.dp.matrix_rows import put_row, row_of
from jaxalign.pairs.dp.recurrence import border
from jaxalign.pairs.dp.sweep import TILE, lane_cells
from jaxalign.pairs.dp.sweep.lane_cells import (
    BLOCK_COLUMNS,
    BLOCK_ROWS,
    from_profile,
    halves,
    put_column,
    together,
)
from jaxalign.pairs.dp.sweep.lane_fill import (
    UNROLLED_STEPS,
    Block,
    Query,
    by_chunks,
    in_pairs,
    inside_index,
    per_lane,
    unrolled,
)

if TYPE_CHECKING:
    from jaxalign.affine import Gaps


def column_of(
    scores: jax.Array,
    letters: Sequence[jax.Array],
    opening: int,
    tie: jax.Array,
    strip: jax.Array,
    count: jax.Array,
):
    """The step over a column of all lanes: a function (j, (v, x, u, y, backtrack)).

    scores, letters : as in ``difference_fill``
    opening : gap_open - gap_extend
    tie : uint8 (B,), 1 where left goes before up
    strip : int32 (), which of the query
    count : int32 (), columns of the block that are in use
    """
    lanes = scores.shape[2]
    score = one_function(partial(from_profile, dtype=jnp.uint8))
    # A function of its own, or LLVM does not make vectors of its loop.
    cells = one_function(partial(_block, opening=opening))

    def step(j: jax.Array, carry: tuple):
        v, x, u, y, backtrack = carry
        above, gap, new_u, new_y = row_of(v, j), row_of(x, j), [], []
        for k in range(0, len(letters), BLOCK_ROWS):
            block_rows = slice(k, k + BLOCK_ROWS)
            s = [score(scores, a, j) for a in letters[block_rows]]
            u_k, y_k, above, gap, code = cells(
                u[block_rows], y[block_rows], above, gap, s, tie
            )
            start = ((strip * len(letters) + k) // BLOCK_ROWS * count + j) * lanes
            backtrack = lax.dynamic_update_slice(
                backtrack, code, (start,), allow_negative_indices=False
            )
            new_u += u_k
            new_y += y_k
        rows = put_row(v, above, j), put_row(x, gap, j)
        return *rows, tuple(new_u), tuple(new_y), backtrack

    return step


def _block(
    u: Sequence[jax.Array],
    y: Sequence[jax.Array],
    v: jax.Array,
    x: jax.Array,
    s: Sequence[jax.Array],
    tie: jax.Array,
    *,
    opening: int,
):
    """u and y of two rows, v and x of the second, and the nibbles of both."""
    u, y, code = list(u), list(y), None
    unit, open_cost = lax.full_like(v, 1), lax.full_like(v, opening + 1)
    for k in range(BLOCK_ROWS):
        e, f = (lax.max(gap, unit) - unit for gap in (x, y[k]))
        e, f = e + v, f + u[k]
        z = lax.max(s[k], lax.max(e, f))
        nibble = _nibble(e, f, z, s[k], x, y[k], tie, 4 * (BLOCK_ROWS - 1 - k))
        code = nibble if code is None else code | nibble
        opened = z - open_cost
        x, y[k] = (lax.max(gap, opened) - opened for gap in (e, f))
        u[k], v = z - v, z - u[k]
    return together(u, y, v, x, code)


def _nibble(
    e: jax.Array,
    f: jax.Array,
    z: jax.Array,
    d: jax.Array,
    x: jax.Array,
    y: jax.Array,
    tie: jax.Array,
    shift: int,
):
    """The direction code (``directions.nibble``) of a cell, shifted into place."""

    def where(which: jax.Array, value: int, fallback: jax.Array):
        return lax.select(which, lax.full_like(z, value << shift), fallback)

    b = where(lax.ge(e, f + tie), UP, lax.full_like(z, LEFT << shift))
    b = where(lax.eq(z, d), DIAGONAL, b)
    zero = lax.full_like(z, 0)
    return b | where(lax.gt(x, zero), C_UP, zero) | where(lax.gt(y, zero), C_LEFT, zero)


def shifted(scores: jax.Array, gaps: "Gaps", cell: jax.typing.DTypeLike):
    """Padded scores S as the cells take them: S + 2 * gap_open, in their dtype."""
    return (scores.astype(jnp.int32) + 2 * gaps.open.astype(jnp.int32)).astype(cell)


def fill(
    block: Block, query: Query, gaps: "Gaps", free: Mapping[str, Any],
    backtrack: jax.Array | None = None, *, opening: int, base: int = 1, rows: int,
    fused: bool = True,
):  # fmt: skip
    """H of row m in the last column of every tile, of use where a target ends there.

    block : Block, whose profile has ``shifted`` scores, uint8 or uint16
    query : Query; where each lane has its own, the block has ``shifted`` scores of two
        letters (A + 1, A + 1), no profile
    gaps : Gaps, scalars of a dtype that holds all scores
    free : dict of bool scalars, of which the two free starts count
    backtrack : as in ``lane_fill.fill``; None where each lane has its own query
    opening, base : static, gap_open - gap_extend, and what scores are multiples of,
        beside a match
    rows, fused : static; ``rows`` divides M

    Returns cells : (L / TILE, B), dtype of the gaps; backtrack : written, or None.
    """
    lanes, (count, wide) = block.codes.shape[1], query.codes.shape
    cell = block.scores.dtype
    top = border(block.length[block.target], free["target_start"], gaps)
    v = _border(inside_index(block), free["target_start"], gaps, cell)
    below = jnp.zeros((count // rows, rows, lanes), cell)
    laid_out = in_pairs if backtrack is None else lambda columns: columns
    v, x = map(laid_out, (v, jnp.zeros_like(v)))
    if wide == lanes:
        scores = lane_cells.bytes_of(block.scores, base), block.codes
    else:
        scores = laid_out(block.scores)
    state = top, v, x, below, below, backtrack
    i = 1 + jnp.arange(count, dtype=jnp.int32).reshape(-1, rows)
    query_rows = _Rows(
        query.codes.reshape(-1, rows, wide),
        _border(i, free["query_start"], gaps, cell),
        jnp.clip(query.length[None, :] - i[:, :1] + 1, 0, rows).astype(cell),
    )
    tie = None if backtrack is None else query.tie.astype(cell)
    constants = scores, block.begins, gaps.open, tie

    def chunks(
        state: tuple,
        constants: tuple,
        query_rows: "_Rows",
        first: jax.Array,
        last: jax.Array,
        strips: jax.Array,
    ):
        def fill_strip(tiles: tuple, s: jax.Array, state: tuple):
            given_rows = tiles, last, constants, query_rows
            return _strip(*given_rows, s, state, opening=opening, base=base)

        return by_chunks(fill_strip, state, lanes, first, last, strips)

    sweep = one_function(chunks, fused)
    top, *_, backtrack = sweep(
        state, constants, query_rows, query.tile, block.tiles, query.strips
    )
    return top, backtrack


class _Rows(NamedTuple):
    """Rows of queries, by strip."""

    letters: jax.Array  # int32 (strips, rows, W)
    start: jax.Array  # (strips, rows), u in column 0
    inside: jax.Array  # (strips, W), how many rows lie above the end of the query


def _border(
    index: jax.Array, free: jax.Array, gaps: "Gaps", cell: jax.typing.DTypeLike
):
    """u or v of residue ``index`` of a sequence, counted from 1, in column or row 0."""
    first = jnp.where(index == 1, 0, gaps.open - gaps.extend)
    return jnp.where(free | (index < 1), gaps.open, first).astype(cell)


def _strip(
    tiles: tuple[jax.Array, jax.Array], last: jax.Array, constants: tuple,
    query_rows: _Rows, s: jax.Array, state: tuple, *, opening: int, base: int,
):  # fmt: skip
    """One strip: rows s * rows + 1 ... s * rows + rows against some tiles."""
    scores, begins, gap_open, tie = constants
    corner, v, x, *columns, backtrack = state
    letters, start, inside = jax.tree.map(lambda a: row_of(a, s), query_rows)
    rows, lanes = len(letters), begins.shape[1]
    u, y = (tuple(row_of(row_of(a, s), k) for k in range(rows)) for a in columns)
    start = [lax.broadcast(row_of(start, k), (lanes,)) for k in range(rows)]
    looked_up, words = isinstance(scores, tuple), None
    if looked_up:
        words = lane_cells.words_of(scores[0], letters.astype(jnp.uint8))
    letters = [row_of(letters, k) for k in range(rows)]
    add = one_function(_add)

    def tile(t: jax.Array, carry: tuple):
        corner, v, x, u, y, backtrack = carry
        at_start = row_of(begins, t)
        u = tuple(lax.select(at_start, a, b) for a, b in zip(start, u, strict=True))
        y = tuple(lax.select(at_start, lax.full_like(a, 0), a) for a in y)
        wide = BLOCK_COLUMNS
        if words is not None:
            profile = lane_cells.tile_of(words, scores[1], t)
            places = [lax.full((1,), k, jnp.int32) for k in range(rows)]
            first = t * jnp.int32(TILE // BLOCK_COLUMNS)
            widen = partial(lane_cells.widened, base=base, cell=v.dtype)
            column = _columns(in_pairs(profile), places, opening, first, widen)
        elif backtrack is None:
            column = _columns(scores, letters, opening)
        else:
            wide, places = 1, (row_of(tie, t), s, last * TILE)
            column = column_of(scores, letters, opening, *places)
        turns = TILE // (wide * UNROLLED_STEPS)
        inner = v, x, u, y, backtrack
        inner = lax.fori_loop(t * turns, (t + 1) * turns, unrolled(column), inner)
        v, x, u, y, backtrack = inner
        below = add(row_of(corner, t), per_lane(inside, lanes), gap_open, u)
        return put_row(corner, below, t), v, x, u, y, backtrack

    state = corner, v, x, u, y, backtrack
    corner, v, x, u, y, backtrack = lax.fori_loop(*tiles, tile, state)
    put = partial(lax.dynamic_update_index_in_dim, index=s, axis=0)
    after = (lax.concatenate([a[None] for a in values], 0) for values in (u, y))
    return corner, v, x, *map(put, columns, after), backtrack


def _add(
    above: jax.Array, inside: jax.Array, gap_open: jax.Array, u: Sequence[jax.Array]
):
    """H below the first ``inside`` rows of a strip, of H above it."""
    for k, row in enumerate(u):
        change = lax.convert_element_type(row, above.dtype) - gap_open
        there = lax.gt(inside, lax.full_like(inside, k))
        above += lax.select(there, change, lax.full_like(change, 0))
    return above


def _columns(
    scores: jax.Array,
    letters: Sequence[jax.Array],
    opening: int,
    first: jax.Array | int = 0,
    widen: Callable[[jax.Array], jax.Array] | None = None,
):
    """The step over two columns of all lanes: a function (p, (v, x, u, y, None)).

    first : row p of the first two columns in ``scores``
    widen : function of scores that are bytes, to be called as they are read
    """

    def read(scores: jax.Array, letters: jax.Array, j: jax.Array):
        row = from_profile(scores, letters, j, dtype=scores.dtype)
        return row if widen is None else widen(row)

    score = one_function(read)
    row = one_function(row_of)

    def step(p: jax.Array, carry: tuple):
        v, x, u, y, nothing = carry
        above, gap, new_u, new_y = halves(row(v, p)), halves(row(x, p)), [], []
        at = p - first if widen else p
        for k in range(0, len(letters), BLOCK_ROWS):
            block_rows = slice(k, k + BLOCK_ROWS)
            s = [halves(score(scores, a, at)) for a in letters[block_rows]]
            above, gap, u_k, y_k = _difference_block(
                above, gap, u[block_rows], y[block_rows], s, opening
            )
            new_u += u_k
            new_y += y_k
        for c in range(BLOCK_COLUMNS):
            v, x = put_column(v, above[c], p, c), put_column(x, gap[c], p, c)
        return v, x, tuple(new_u), tuple(new_y), nothing

    return step


def _difference_block(
    v: Sequence[jax.Array],
    x: Sequence[jax.Array],
    u: Sequence[jax.Array],
    y: Sequence[jax.Array],
    s: Sequence[Sequence[jax.Array]],
    opening: int,
):
    """v and x of the last row, u and y of the last column of a block of cells."""
    v, x, u, y = list(v), list(x), list(u), list(y)
    q = lax.full_like(v[0], opening)
    for k in range(BLOCK_ROWS):
        for c in range(BLOCK_COLUMNS):
            e, f = x[c] + v[c], y[k] + u[k]
            z = lax.max(s[k][c], lax.max(e, f))
            opened = z - q
            # x = max(E, H - q) - (H - q), one subtraction that stops at 0
            x[c], y[k] = (lax.max(gap, opened) - opened for gap in (e, f))
            u[k], v[c] = z - v[c], z - u[k]
    return together(v, x, u, y)
