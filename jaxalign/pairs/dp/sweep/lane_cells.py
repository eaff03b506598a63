"""The cells of a strip of ``lane_fill``, column by column, in loops over the lanes.

Local scores on a CPU: two rows and two columns of cells in one loop over the lanes.

XLA:CPU makes a loop of its own of every array, so that a value which more than one
array needs goes by way of memory. Only a reduction of several arrays at once is one
loop for all of them: here each array is the maximum of two copies of itself. What they
share stays in registers: E and H between the two rows, F between the two columns.

LLVM makes vectors of such a loop as long as it has to ask at most 128 times whether two
of its arrays overlap, which it cannot know: eight are written and twelve read, so there
is no room for a third row or column, nor for gap costs that are not constants of the
program (docs/logs/cpu-sweep.md, rung 18; ``tests/pairs/test_vector_width.py``).

One column of a strip of ``lane_fill``: some rows of a query against a column of every
lane, scores alone (``score_step``) or with directions (``path_step``); and the best
cell of every tile, found on the way (``follow``, ``keep``).

Of directions two rows of cells are one loop over the lanes (``together``), in which all
that a direction compares stays in registers, and is as wide as the scores. Six arrays
are written and at most 16 read, for which LLVM asks 111 times whether two overlap. A
third row would ask more often than the 128 times it allows.

Scores are read for all lanes of a block at once. Where lanes have a query each, a
strip's scores with every letter of a target lie in words of four rows, a byte each, so
one look-up serves four cells. For tables filled by differences the scores of a tile are
looked up before it is filled (``words_of``, ``tile_of``): then its blocks of cells read
them as they read a profile. A byte holds a shifted score ``s``
(``difference_fill.shifted``) as it is, or, of an identity, as ``2 * (s // base) + s %
base``: the match is its lowest bit.
"""

from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxalign.affine import Gaps, neg_inf
from jaxalign.one_function import one_function
from jaxalign.pairs.dp import directions, matrix_rows, recurrence
from jaxalign.pairs.dp.matrix_rows import put_row, row_of
from jaxalign.pairs.dp.sweep import TILE

BLOCK_ROWS, BLOCK_COLUMNS = 2, 2  # of a block
BYTE_ROWS = 2  # cells of a byte of backtrack
LOOK_UPS = 2048  # of one loop: more would be spread over threads, which JAX 0.10 cannot
WORD_ROWS = 4  # whose bytes are a word


class Block(NamedTuple):
    """Targets in lanes: T of them, in B lanes of L columns. ``tiles`` are used."""

    codes: jax.Array  # uint8 (L, B), or uint16 of two tracks; A where no residue is
    target: jax.Array  # int32 (L / TILE, B), the target that a tile belongs to
    origin: jax.Array  # int32 (L / TILE, B), column of that target's first residue
    begins: jax.Array  # bool (L / TILE, B), the first tile of a target
    lane: jax.Array  # int32 (T,)
    first: jax.Array  # int32 (T,), column of the first residue
    length: jax.Array  # int32 (T,); first + length is a multiple of TILE
    tiles: jax.Array  # int32 ()
    targets: jax.Array  # int32 (), how many of the T are real
    # jax.Array: database profile (A+1, L+2, B), or by row; of two tracks (2, …)
    scores: Any = None


def tables_of(block: Block, letters: jax.Array):
    """Where every lane has a query of its own: its rows' scores of each target letter,
    four rows a uint32, so that one look-up serves four cells. ((A+1) * B,) each; none
    where lanes share a query, or scores need more than 8 bits."""
    lanes = block.codes.shape[1]
    narrow = block.scores.dtype == jnp.int8 and letters.shape[0] % 4 == 0
    narrow &= block.codes.dtype == jnp.uint8  # of one track
    if letters.shape[1] != lanes or not narrow:
        return ()
    # (rows, B, A+1): lane by lane, so that a strip's table is gathered in whole rows.
    scores = lax.bitcast_convert_type(block.scores[letters], jnp.uint8)
    wide = scores.astype(jnp.uint32).reshape(-1, 4, lanes * scores.shape[-1])
    shifts = jnp.arange(0, 32, 8, dtype=jnp.uint32)[None, :, None]
    return tuple(jnp.sum(wide << shifts, axis=1, dtype=jnp.uint32))


def scores_of(
    block: Block,
    letters: Sequence[jax.Array],
    tables: tuple[jax.Array, ...],
    first_column: jax.Array | None,
    j: jax.Array,
    *,
    dtype: jax.typing.DTypeLike,
    fused: bool,
):
    """Substitution scores of the rows of a strip in column j: (B,) each, or where they
    stand in the profile, to be read by the row itself. ``first_column`` is that of the
    profile of a tile, or None."""
    lanes = block.codes.shape[1]
    if tables:
        width, lanes = block.scores.shape[1], block.codes.shape[1]

        def find(codes: jax.Array, *tables: jax.Array):
            lane = lax.iota(jnp.int32, lanes)
            index = lane * width + lax.convert_element_type(codes, jnp.int32)
            return [x.at[index].get(mode="promise_in_bounds") for x in tables]

        words = one_function(find, fused)(row_of(block.codes, j), *tables)
        scores = []
        for word in words:
            word = lax.bitcast_convert_type(word, jnp.int32)
            for k in range(4):
                top = lax.shift_left(word, lax.full_like(word, 24 - 8 * k))
                score = lax.shift_right_arithmetic(top, lax.full_like(word, 24))
                scores.append(lax.convert_element_type(score, dtype))
        return scores
    if letters[0].shape[0] == lanes and block.codes.dtype != jnp.uint8:

        def add_up(letters: jax.Array, codes: jax.Array, *tables: jax.Array):
            codes, parts = lax.convert_element_type(codes, jnp.int32), []
            for k, table in enumerate(tables):
                row, column = (matrix_rows.track_codes(x, k) for x in (letters, codes))
                at = row * block.scores.shape[2] + column
                part = table.at[at].get(mode="promise_in_bounds")
                parts.append(lax.convert_element_type(part, dtype))
            return lax.add(*parts)

        look_up = one_function(add_up, fused)
        tables = tuple(lax.reshape(x, (x.size,)) for x in block.scores)
        codes = row_of(block.codes, j)
        return [look_up(x, codes, *tables) for x in letters]
    if letters[0].shape[0] == lanes:
        codes = lax.convert_element_type(row_of(block.codes, j), jnp.int32)
        flat = lax.reshape(block.scores, (block.scores.size,))
        at = [x * block.scores.shape[1] + codes for x in letters]
        scores = [flat.at[index].get(mode="promise_in_bounds") for index in at]
        return [lax.convert_element_type(score, dtype) for score in scores]
    j = j if first_column is None else j - first_column
    return [(block.scores, row_letters, j) for row_letters in letters]


def from_profile(
    scores: jax.Array, letters: jax.Array, j: jax.Array, dtype: jax.typing.DTypeLike
):
    """The row of the database profile of a letter (1,) in column j: (B,); of two
    tracks the sum of a row of each."""
    tracks = scores.shape[0] if scores.ndim > 3 else 1
    size, parts = (*(1,) * (scores.ndim - 1), scores.shape[-1]), []
    for k in range(tracks):
        letter = matrix_rows.track_codes(letters, k) if tracks > 1 else letters
        start = lax.squeeze(letter, (0,)), j, jnp.int32(0)
        start = start if scores.ndim == 3 else (jnp.int32(k), *start)
        row = lax.dynamic_slice(scores, start, size, allow_negative_indices=False)
        row = lax.squeeze(row, range(scores.ndim - 1))
        parts.append(lax.convert_element_type(row, dtype))
    return reduce(lax.add, parts)


def profile_of_tile(
    block: Block, letters: Sequence[jax.Array], t: jax.Array, fused: bool
):
    """The database profile of a tile for the rows of a strip, which nothing else
    needs where they are positions: (rows, TILE, B), the dtype of the scores."""
    lanes, count = block.codes.shape[1], block.scores.shape[1]
    together = TILE  # columns
    while together > 1 and together * lanes > LOOK_UPS:
        together //= 2

    def look_up(row: jax.Array, codes: jax.Array):
        entries = [lax.index_in_dim(row, a, keepdims=False) for a in range(count)]
        return matrix_rows.by_code(
            [lax.broadcast(x, codes.shape) for x in entries], codes
        )

    look_up_row = one_function(look_up, fused)
    rows = [row_of(block.scores, lax.index_in_dim(x, 0, keepdims=False))
            for x in letters]  # fmt: skip

    def columns(c: jax.Array, scores: jax.Array):
        at = t * TILE + c * together
        codes = lax.dynamic_slice_in_dim(block.codes, at, together).reshape(-1)
        for k, row in enumerate(rows):
            row_scores = look_up_row(row, codes).reshape(1, together, lanes)
            start = jnp.int32(k), c * together, jnp.int32(0)
            scores = lax.dynamic_update_slice(scores, row_scores, start)
        return scores

    empty = lax.full((len(rows), TILE, lanes), 0, block.scores.dtype)
    return lax.fori_loop(0, TILE // together, columns, empty)


def bytes_of(scores: jax.Array, base: int):
    """Shifted scores (A + 1, A + 1), uint8 or uint16, as bytes."""
    if base > 1:
        scores = scores // base * 2 + scores % base
    return scores.astype(jnp.uint8)


def words_of(table: jax.Array, letters: jax.Array, fused: bool = True):
    """The scores of a strip, four rows a word: a list of uint32 (A + 1, B).

    table : uint8 (A + 1, A + 1), row = query letter; letters : uint8 (rows, B)
    """
    (rows, lanes), count = letters.shape, len(table)

    def of_letter(scores: jax.Array, letters: jax.Array):
        entries = [lax.index_in_dim(scores, a, keepdims=False) for a in range(count)]
        entries = [lax.broadcast(x, letters.shape) for x in entries]
        return matrix_rows.by_code(entries, letters)

    def four_rows(scores: jax.Array):
        wide = lax.convert_element_type(scores, jnp.uint32)
        words = [row_of(wide, k) for k in range(WORD_ROWS)]
        words = [lax.shift_left(x, lax.full_like(x, 8 * k))
                 for k, x in enumerate(words)]  # fmt: skip
        return reduce(lax.bitwise_or, words)

    choose, join = one_function(of_letter, fused), one_function(four_rows, fused)

    def put_words(letter: jax.Array, words: list[jax.Array]):
        scores = choose(row_of(columns, letter), letters)
        return [
            put_row(x, join(scores[k : k + WORD_ROWS]), letter)
            for k, x in zip(range(0, rows, WORD_ROWS), words, strict=True)
        ]

    columns = lax.transpose(table, (1, 0))
    empty = lax.full((count, lanes), 0, jnp.uint32)
    empty = [empty] * (rows // WORD_ROWS)
    return lax.fori_loop(jnp.int32(0), jnp.int32(count), put_words, empty)


def tile_of(words: list[jax.Array], codes: jax.Array, t: jax.Array, fused: bool = True):
    """The scores of tile t for the rows of a strip: uint8 (rows, TILE, B).

    words : of ``words_of``; codes : uint8 (L, B)
    """
    lanes, rows = codes.shape[1], WORD_ROWS * len(words)
    together = TILE  # columns
    while together > 1 and together * lanes > LOOK_UPS:
        together //= 2

    def look_up(word: jax.Array, codes: jax.Array):
        lane = lax.broadcasted_iota(jnp.int32, codes.shape, 1)
        at = lax.convert_element_type(codes, jnp.int32) * lanes + lane
        return word.reshape(-1).at[at].get(mode="promise_in_bounds")

    find = one_function(look_up, fused)
    units = [one_function(partial(_row, k), fused) for k in range(WORD_ROWS)]

    def columns(c: jax.Array, scores: jax.Array):
        tile_codes = lax.dynamic_slice_in_dim(codes, t * TILE + c * together, together)
        for w, word in enumerate(words):
            four = find(word, tile_codes)
            for k, unit in enumerate(units):
                start = jnp.int32(WORD_ROWS * w + k), c * together, jnp.int32(0)
                scores = lax.dynamic_update_slice(scores, unit(four)[None], start)
        return scores

    empty = lax.full((rows, TILE, lanes), 0, jnp.uint8)
    return lax.fori_loop(0, TILE // together, columns, empty)


def _row(k: int, words: jax.Array):
    """Row k of the four of some words."""
    byte = lax.shift_right_logical(words, lax.full_like(words, 8 * k))
    return lax.convert_element_type(byte, jnp.uint8)


def widened(byte: jax.Array, base: int, cell: jax.typing.DTypeLike):
    """Bytes as the cells take them."""
    wide = lax.convert_element_type(byte, cell)
    if base == 1:
        return wide
    unit, factor = lax.full_like(wide, 1), lax.full_like(wide, base)
    return lax.shift_right_logical(wide, unit) * factor + (wide & unit)


class Constants(NamedTuple):
    """Integers that are constants of a program of local scores. ``zero`` is what a
    score of 0 is held as: far below 0, a narrow dtype holds scores twice as high."""

    open: int
    extend: int
    zero: int = 0

    @property
    def least(self) -> int:
        """The start of E and F: no lower than a gap that opens at a score of 0."""
        return self.zero - self.open


def together(*values: Any):
    """The same values (pytrees of (B,) arrays), computed by one loop."""
    flat, tree = jax.tree.flatten(values)
    low = [jnp.iinfo(x.dtype).min for x in flat]
    init = [jnp.asarray(x, y.dtype) for x, y in zip(low, flat, strict=True)]
    twice = [lax.broadcast(x, (2,)) for x in flat]

    def larger(first: Sequence[jax.Array], second: Sequence[jax.Array]):
        return [lax.max(x, y) for x, y in zip(first, second, strict=True)]

    return jax.tree.unflatten(tree, lax.reduce(twice, init, larger, (0,)))


def halves(pair: jax.Array) -> list[jax.Array]:
    """The columns of a row of two, (2 * B,): (B,) each."""
    lanes = pair.shape[0] // BLOCK_COLUMNS
    return [lax.slice_in_dim(pair, c * lanes, (c + 1) * lanes)
            for c in range(BLOCK_COLUMNS)]  # fmt: skip


def columns_of(
    rows: int,
    scores: jax.Array,
    letters: Sequence[jax.Array],
    dtype: jax.typing.DTypeLike,
    costs: Constants,
    first: jax.Array | None = None,
    by_position: jax.Array | None = None,
    member: jax.Array | None = None,
):
    """The step over two columns of all lanes: a function (p, carry).

    rows : of the strip
    scores : (A + 1, L / 2, 2 * B), the database profile, two columns a row
    letters : int32 (W,) for each row, of the queries of a team
    dtype : of H, E and F
    costs : Constants
    first : row p of the first two columns in ``scores``; None for 0
    by_position : (rows, 4), of ``position_costs``, in place of the constants
    member : uint8 (2 * B,), the query of the team in each lane; None where W = 1

    The carry is that of ``sweep``: H and F of the rows, the diagonal, then H and E of
    the row above, (L / 2, 2 * B) each, and the best H so far.
    """
    # Functions of their own, so that the loops of a block read plain arrays.
    score = one_function(partial(_of_team, dtype=dtype))
    row, last = one_function(row_of), one_function(lambda pair: halves(pair)[-1])

    def step(p: jax.Array, carry: tuple):
        h, f, diag, above_h, above_e, nothing, (best,) = carry
        pair_h, pair_e = row(above_h, p), row(above_e, p)
        up, e, left, new_h, new_f = halves(pair_h), halves(pair_e), diag, [], []
        at = p if first is None else p - first
        for k in range(0, rows, BLOCK_ROWS):
            block_rows = slice(k, k + BLOCK_ROWS)
            s = [halves(score(scores, x, at, member)) for x in letters[block_rows]]
            lines = h[block_rows], f[block_rows], left, up, e, s, best
            if by_position is None:
                h_k, f_k, up, e, best = _block(*lines, costs)
            else:
                of_rows = by_position[block_rows]
                h_k, f_k, up, e, best = _position_block(*lines, of_rows, costs.zero)
            left = h[k + BLOCK_ROWS - 1]
            new_h += h_k
            new_f += f_k
        for c in range(BLOCK_COLUMNS):
            above_h = put_column(above_h, up[c], p, c)
            above_e = put_column(above_e, e[c], p, c)
        diag = last(pair_h)
        return tuple(new_h), tuple(new_f), diag, above_h, above_e, nothing, (best,)

    return step


def _of_team(
    scores: jax.Array,
    letters: jax.Array,
    j: jax.Array,
    member: jax.Array | None,
    dtype: jax.typing.DTypeLike,
):
    """``from_profile`` of the letter that the query of each lane has."""
    letters_of = (lax.slice_in_dim(letters, k, k + 1) for k in range(letters.shape[0]))
    rows = [from_profile(scores, letter, j, dtype) for letter in letters_of]
    return rows[0] if member is None else matrix_rows.by_code(rows, member)


def _block(
    h: Sequence[jax.Array],
    f: Sequence[jax.Array],
    diag: jax.Array,
    up: Sequence[jax.Array],
    e: Sequence[jax.Array],
    s: Sequence[Sequence[jax.Array]],
    best: jax.Array,
    costs: Constants,
):
    """H and F of the last column, H and E of the last row, and the best of all cells.

    Lists by row (``h``, ``f``, to the left of the block) or by column (``up``, ``e``,
    above it); ``diag`` is H above and to the left; ``s`` scores by row and column.
    """
    gaps = Gaps(lax.full_like(diag, costs.open), lax.full_like(diag, costs.extend))
    h, f, up, e, h_cells = list(h), list(f), list(up), list(e), []
    for k in range(BLOCK_ROWS):
        corner, diag = diag, h[k]  # H to the left of the row above, and of this row
        for c in range(BLOCK_COLUMNS):
            e[c] = recurrence.gap(e[c], up[c], gaps)
            f[k] = recurrence.gap(f[k], h[k], gaps)
            h[k] = recurrence.best(corner, s[k][c], e[c], f[k], True, costs.zero)
            corner, up[c] = up[c], h[k]
            h_cells.append(h[k])
    return _edges(h, f, up, e, lax.max(best, reduce(lax.max, h_cells)))


def _edges(h: list, f: list, up: list, e: list, best: jax.Array):
    """Return the last column and row of a block, and the best of all cells, computed
    together."""
    *first, _ = up  # H of the last row and column is also the last of ``h``
    h, f, first, e, best = together(h, f, first, e, best)
    return h, f, [*first, h[-1]], e, best


def position_costs(costs: jax.Array, rows: jax.Array):
    """The costs of some rows of the table as ``_position_block`` takes them, (M, 4):
    to open and to extend E into the next row, and F in this one.

    costs : (4, positions) open_e, extend_e, open_f, extend_f (``model.scoring``)
    rows : int32 (M,), positions; beyond the last one nothing is gained
    """
    pad = jnp.pad(costs, ((0, 0), (0, 1)))
    last = costs.shape[1]
    below, rows = (jnp.minimum(x, last) for x in (rows + 1, rows))
    return jnp.stack([pad[0, below], pad[1, below], pad[2, rows], pad[3, rows]], 1)


def _position_block(
    h: Sequence[jax.Array],
    f: Sequence[jax.Array],
    diag: jax.Array,
    up: Sequence[jax.Array],
    e: Sequence[jax.Array],
    s: Sequence[Sequence[jax.Array]],
    best: jax.Array,
    costs: jax.Array,
    zero: int,
):
    """``_block`` with costs by position, whose E opens behind a pair alone
    (``pairs.dp.rows``). E and F are held as the next cell takes them, so that neither
    the pair nor X is kept: no array more is read than with constants but the costs.
    """

    def cost(k: int, which: int):
        return lax.broadcast(costs[k, which], diag.shape)

    h, f, up, e, h_cells = list(h), list(f), list(up), list(e), []
    floor = lax.full_like(diag, zero)
    for k in range(BLOCK_ROWS):
        open_e, extend_e, open_f, extend_f = (cost(k, x) for x in range(4))
        corner, diag = diag, h[k]
        for c in range(BLOCK_COLUMNS):
            pair = lax.max(corner + s[k][c], floor)
            x = lax.max(pair, e[c])
            h[k] = lax.max(x, f[k])
            e[c] = lax.max(e[c] - extend_e, pair - open_e)
            f[k] = lax.max(f[k] - extend_f, x - open_f)
            corner, up[c] = up[c], h[k]
            h_cells.append(h[k])
    return _edges(h, f, up, e, lax.max(best, reduce(lax.max, h_cells)))


def put_column(array: jax.Array, values: jax.Array, p: jax.Array, c: int):
    start = p, jnp.int32(c * values.shape[0])
    return lax.dynamic_update_slice(
        array, values[None], start, allow_negative_indices=False
    )


def path_step(
    block: Block, read: Callable[[jax.Array], list], vertical: tuple, gaps: Gaps,
    tie: jax.Array, first: jax.Array, s: jax.Array, local: bool, fused: bool,
):  # fmt: skip
    """The step over one column of all lanes: a function (j, carry).

    block : Block
    read : (j) -> the scores of each row, or where they stand in the profile
    vertical : costs down the column, by row: (open, extend)
    gaps : Gaps, along a row
    tie : score dtype (B,), 1 where left goes before up
    first : score dtype (B,), column of the target's first residue, counted from the
        first of this tile; none of this tile where it is another's
    s : int32 (), the strip
    """
    score = one_function(partial(from_profile, dtype=tie.dtype), fused)
    two_rows = one_function(partial(_two_rows, local), fused)
    close = one_function(_closed, fused)
    lanes, columns = block.codes.shape[1], block.tiles * TILE

    def column(j: jax.Array, carry: tuple):
        h, f, above, last_row, e_row, backtrack, track = carry
        up, e = row_of(last_row, j), row_of(e_row, j)
        diag, new_above, new_h, new_f = above, up, [], []
        place = lax.rem(j, jnp.int32(TILE))
        horizontal = close(gaps, first, place)
        scores = [score(*x) if isinstance(x, tuple) else x for x in read(j)]
        for k in range(0, len(scores), BYTE_ROWS):
            two = slice(k, k + BYTE_ROWS)
            down = [Gaps(*x) for x in zip(*vertical, strict=True)][two]
            h_k, f_k, e, byte = two_rows(
                diag, up, h[two], e, f[two], scores[two], down, horizontal, tie
            )
            diag, up = h[k + BYTE_ROWS - 1], h_k[-1]
            new_h += h_k
            new_f += f_k
            row = (s * len(scores) + k) // BYTE_ROWS
            start = (row * columns + j) * lanes
            backtrack = lax.dynamic_update_slice(
                backtrack, byte, (start,), allow_negative_indices=False
            )
        track = follow(track, new_h, place, tie, fused)
        rows = put_row(last_row, up, j), put_row(e_row, e, j)
        return tuple(new_h), tuple(new_f), new_above, *rows, backtrack, track

    return column


def _two_rows(
    local: bool, diag: jax.Array, up: jax.Array, left: Sequence[jax.Array],
    e: jax.Array, f: Sequence[jax.Array], s: Sequence[jax.Array],
    vertical: Sequence[Gaps], horizontal: Gaps, tie: jax.Array,
):  # fmt: skip
    """(H, F, E of the last row, byte) of two cells of every lane, in one loop."""
    h, new_f, byte = [], [], None
    horizontal = in_lanes(horizontal, diag)
    for k in range(BYTE_ROWS):
        down = in_lanes(vertical[k], diag)
        row = diag, up, left[k], e, f[k], s[k], down, horizontal, tie
        cell = recurrence.pair_cell(*row, local)
        code = directions.nibble(cell, local, shift=4 * (BYTE_ROWS - 1 - k))
        byte = code if byte is None else byte | code
        diag, up, e = left[k], cell.h, cell.e
        h.append(cell.h)
        new_f.append(cell.f)
    return together(h, new_f, e, byte)


def _closed(gaps: Gaps, first: jax.Array, place: jax.Array):
    """Costs along a row. F of a lane's column 0 is minus infinity: a path cannot extend
    it. (No score is higher for it: there F is what opening a gap gives.)"""
    row = lax.broadcast(lax.convert_element_type(place, first.dtype), first.shape)
    cut = lax.full_like(first, -neg_inf(first.dtype))
    extend = lax.select(
        lax.eq(first, row), cut, lax.broadcast(gaps.extend, first.shape)
    )
    return Gaps(gaps.open, extend)


def score_step(
    read: Callable[[jax.Array], list],
    vertical: tuple,
    gaps: Gaps,
    local: bool,
    fused: bool,
):
    """The step over one column of all lanes: a function (j, carry)."""

    # Functions of their own, so that nothing is computed twice; and where each gives
    # one array, the next finds it in registers.
    def gap_of(longer: jax.Array, h: jax.Array, gaps: Gaps):
        return recurrence.gap(longer, h, in_lanes(gaps, h))

    def best_of(
        diag: jax.Array,
        s: jax.Array | tuple[jax.Array, jax.Array, jax.Array],
        e: jax.Array,
        f: jax.Array,
    ):
        s = from_profile(*s, diag.dtype) if isinstance(s, tuple) else s
        return recurrence.best(diag, s, e, f, local)

    gap, best = one_function(gap_of, fused), one_function(best_of, fused)

    def column(j: jax.Array, carry: tuple):
        h, f, diag, last_row, e_row, nothing, track = carry
        up, e = row_of(last_row, j), row_of(e_row, j)
        above, new_h, new_f = up, [], []
        for k, s_k in enumerate(read(j)):
            down = Gaps(vertical[0][k], vertical[1][k])
            e, f_k = gap(e, up, down), gap(f[k], h[k], gaps)
            up = best(diag, s_k, e, f_k)
            diag = h[k]
            new_h.append(up)
            new_f.append(f_k)
        track = follow(track, new_h, lax.rem(j, jnp.int32(TILE)), None, fused)
        rows = put_row(last_row, up, j), put_row(e_row, e, j)
        return tuple(new_h), tuple(new_f), above, *rows, nothing, track

    return column


def in_lanes(gaps: Gaps, like: jax.Array):
    """Gap costs of each lane, where they may be scalars."""
    return Gaps(*(x if x.ndim else lax.broadcast(x, like.shape) for x in gaps))


def track(h: Sequence[jax.Array], local: bool, paths: bool, zero: int = 0):
    """Local mode: the running best of a tile; with backtrack, its row and column."""
    first = lax.full_like(h[0], 0)
    if not local:
        return ()
    return (first, first, first) if paths else (lax.full_like(h[0], zero),)


def follow(
    track: tuple[jax.Array, ...],
    h: Sequence[jax.Array],
    place: jax.Array,
    tie: jax.Array | None,
    fused: bool,
):
    """The column ``place`` of the tile, counted from 0, joins the running best: its
    value, the row in the strip and the column. The smallest row goes first, then the
    column; the other way round where the two sides are swapped."""
    if len(track) < 3:
        return tuple(reduce(lax.max, h, best) for best in track)

    def join(
        best: jax.Array,
        row: jax.Array,
        at: jax.Array,
        place: jax.Array,
        tie: jax.Array,
        *h: jax.Array,
    ):
        value, k = h[0], lax.full_like(row, 0)
        for i, h_i in enumerate(h[1:], 1):
            k = lax.select(lax.gt(h_i, value), lax.full_like(k, i), k)
            value = lax.max(value, h_i)
        equal = (
            lax.eq(value, best) & lax.lt(k, row) & lax.eq(tie, lax.full_like(tie, 0))
        )
        better = lax.gt(value, best) | equal
        places = lax.broadcast(place, at.shape)
        at, row = lax.select(better, places, at), lax.select(better, k, row)
        return together(lax.max(value, best), row, at)

    # Converted here: LLVM's vectors have as many lanes as the widest type of a loop
    # allows.
    place = lax.convert_element_type(place, track[0].dtype)
    return one_function(join, fused)(*track, place, tie, *h)


def best_of_column(h: Sequence[jax.Array]):
    """(value, row) of the last column: rows below m repeat m, so they never win."""
    best, row = h[0], lax.full_like(h[0], 0)
    for k, value in enumerate(h):
        row = lax.select(lax.gt(value, best), lax.full_like(row, k), row)
        best = lax.max(best, value)
    return best, row, None


def keep(
    filled: Any,
    t: jax.Array,
    new_best: tuple,
    corner: tuple | None,
    tie: jax.Array | None,
    fused: bool,
):
    """Fold the best of a strip in tile t into what the strips above left there.
    ``corner``: the first row of the strip, the first column of the tile.

    A function of its own: fused with the stores, its reads would have XLA copy the
    whole arrays for every tile.
    """
    if filled.row is None:
        best = lax.max(new_best[0], row_of(filled.best, t))
        return filled._replace(best=put_row(filled.best, best, t))
    old_arrays = filled.best, filled.row, filled.column
    old = [None if x is None else row_of(x, t) for x in old_arrays]
    merged = one_function(_join, fused)(new_best, old, corner, tie)
    best, row, column = (
        x if x is None else put_row(x, y, t)
        for x, y in zip(old_arrays, merged, strict=True)
    )
    return filled._replace(best=best, row=row, column=column)


def keep_strips(filled: Any, t: jax.Array, new_best: Any, s: jax.Array):
    """Fold the best of strip s in tile t into what the strips above left there, with
    the first and the last strip that has it."""

    def join(
        value: jax.Array, best: jax.Array, first: jax.Array, last: jax.Array,
        s: jax.Array,
    ):  # fmt: skip
        strip = lax.convert_element_type(lax.broadcast(s, first.shape), first.dtype)
        first = lax.select(lax.gt(value, best), strip, first)
        last = lax.select(lax.ge(value, best), strip, last)
        return together(lax.max(value, best), first, last)

    old = (row_of(x, t) for x in (filled.best, filled.row, filled.column))
    best, first, last = one_function(join)(new_best, *old, s)
    return filled._replace(
        best=put_row(filled.best, best, t),
        row=put_row(filled.row, first, t),
        column=put_row(filled.column, last, t),
    )


def _join(new_best: tuple, old: Sequence, corner: tuple, tie: jax.Array | None):
    """The better of two cells of a tile: of this strip, and of the strips above."""
    (value, k, place), (first_row, first_column) = new_best, corner
    best, row, column = old
    better = lax.gt(value, best)
    if place is not None and tie is not None:  # both with paths alone
        at = lax.convert_element_type(place, jnp.int32) + first_column
        positive = lax.gt(lax.min(tie, value), lax.full_like(value, 0))
        better |= positive & lax.eq(value, best) & lax.lt(at, column)
        column = lax.select(better, at, column)
    i = lax.convert_element_type(k, jnp.int32) + first_row
    return lax.max(value, best), lax.select(better, i, row), column
