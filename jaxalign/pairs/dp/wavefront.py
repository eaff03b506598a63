"""Two sequences by anti-diagonals: the papers' recurrence as one loop.

All cells of an anti-diagonal d = i + j depend only on the two before it (Li and
Becchi; Liu et al. 2006), so a step computes one diagonal as a vector over the rows i
and carries two diagonals of H and one of E and F. ``fill`` is for one pair; ``vmap``
makes a batch of it, and it lives inside any ``jit``. It reads like the papers, gives
the tables, and takes one long pair in strips (``pairs.cpu.long_pair``); the fast fill
on a CPU is ``sweep``.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxalign.affine import Gaps, neg_inf
from jaxalign.one_function import one_function
from jaxalign.pairs.dp import directions, matrix_rows, recurrence, walk
from jaxalign.pairs.dp.matrix_rows import put_row
from jaxalign.pairs.dp.recurrence import border


class Top(NamedTuple):
    """H and E of the row above a strip, by column 0..N: (N + 1,)."""

    h: jax.Array
    e: jax.Array


class Strip(NamedTuple):
    """A filled strip of rows.

    ``bottom`` is the row m of H and E; ``last_column`` H[0..M, n]; ``row_best`` and
    ``row_column`` (M + 1,) the maximum of each row of the strip and its first column;
    ``last_gap`` F[0..M, n], of a strip whose left column is given.
    Only on request: ``codes``, the nibble of cell (i, j) in [i + j, i], and ``tables``,
    H, E and F (M + 1, N + 1). What was not computed holds anything.
    """

    bottom: Top
    last_column: jax.Array
    row_best: jax.Array
    row_column: jax.Array
    codes: jax.Array | None  # uint8 (M + N + 1, M + 1)
    tables: tuple | None
    last_gap: jax.Array | None = None


def top_border(columns: int, free_start: jax.Array | bool, gaps: Gaps) -> Top:
    """Row 0 of a whole table: borders in H, minus infinity in E; (columns + 1,)."""
    h = border(jnp.arange(columns + 1, dtype=jnp.int32), free_start, gaps)
    return Top(h, jnp.full_like(h, neg_inf(h.dtype)))


def fill(
    query: jax.Array, target: jax.Array, m: jax.Array | int, n: jax.Array | int,
    scores: jax.Array, gaps: Gaps, free: Mapping[str, Any], *, local: bool = False,
    words: bool = False,
):  # fmt: skip
    """The whole table of one pair.

    query, target : integer codes (M,), (N,); what lies beyond m, n does not matter
    m, n : int32 scalars, the lengths
    scores : (A, A), row = query letter; or (M or more, A), row = query position
    gaps : Gaps of scalars; their dtype is the dtype of the scores
    free : dict of four bool scalars, ``query_start`` ... ``target_end``
    local, words : static; M is a multiple of 8 where words are wanted

    Returns ends.EndCell, score and end cell, int32 scalars; words : uint32 (M / 8, N)
    or None.
    """
    top = top_border(target.shape[0], free["target_start"] | local, gaps)
    codes = empty_codes(query.shape[0], target.shape[0]) if words else None
    filled = strip(
        query, target, m, n, 0, top, scores, gaps, free, codes=codes, local=local
    )
    packed = None
    if filled.codes is not None:
        packed = words_of(filled.codes, target.shape[0])
    if local:
        i = jnp.argmax(filled.row_best).astype(jnp.int32)
        j = jnp.where(filled.row_best[i] > 0, filled.row_column[i], 0)
        end = walk.EndCell(filled.row_best[i], jnp.where(j > 0, i, 0), j)
        return end, packed
    lowest = jnp.iinfo(filled.bottom.h.dtype).min
    along = jnp.arange(filled.bottom.h.shape[0], dtype=jnp.int32)
    row = jnp.where(along <= n, filled.bottom.h, lowest)
    down = jnp.arange(filled.last_column.shape[0], dtype=jnp.int32)
    column = jnp.where(down <= m, filled.last_column, lowest)
    i, j = jnp.argmax(column).astype(jnp.int32), jnp.argmax(row).astype(jnp.int32)
    corner = walk.EndCell(filled.last_column[m], m, n)
    by_column, by_row = walk.EndCell(column[i], i, n), walk.EndCell(row[j], m, j)
    return walk.border_end(corner, by_column, by_row, free, 0), packed


def empty_codes(rows: int, columns: int):
    """Room for the codes of a ``Strip``."""
    return jnp.zeros((rows + columns + 1, rows + 1), jnp.uint8)


def words_of(codes: jax.Array, columns: int):
    """The codes of a ``Strip`` as words: uint32 (M / 8, N)."""
    return directions.pack(_unskew(codes, columns)[1:])


def strip(
    query: jax.Array, target: jax.Array, m: jax.Array | int, n: jax.Array | int,
    above: jax.Array | int, top: Top, scores: jax.Array, gaps: Gaps,
    free: Mapping[str, Any], diagonals: jax.Array | int | None = None,
    codes: jax.Array | None = None, *, left: tuple[jax.Array, jax.Array] | None = None,
    local: bool = False, tables: bool = False, fused: bool = False,
) -> Strip:  # fmt: skip
    """Rows ``above`` + 1 ... ``above`` + M of a table whose row ``above`` is ``top``.

    Parameters as in ``fill``; m counts the rows of this strip that exist. Of all M + N
    + 1 diagonals the first ``diagonals`` are computed: m + n + 1 for the whole table.
    ``codes`` (``empty_codes``, or what an earlier strip gave) are written over, or None
    for none. ``left`` is column 0 where it is not that of a whole table: (H, F), each
    (M + 1,); ``last_gap`` is there then. ``fused`` (static) is for one pair on a CPU,
    where it is three times as
    fast if scores are of 8 bits and few letters.
    """
    rows, columns = query.shape[0], target.shape[0]
    # Wider look-ups would be spread over threads, for which JAX 0.10 has no way there.
    fused &= (
        scores.dtype == jnp.int8 and scores.shape[-1] <= matrix_rows.MAX_SELECT_CODES
    )
    fused &= gaps.open.dtype != jnp.int64
    i = jnp.arange(rows + 1, dtype=jnp.int32)
    sided = left is not None
    edge = border(above + i, free["query_start"] | local, gaps)
    minus = jnp.full_like(edge, neg_inf(edge.dtype))
    edge_gap = minus
    if left is not None:  # row 0 is the row above; what it holds is overwritten
        edge, edge_gap = left[0], jnp.where(i == 0, minus, left[1])
    column = edge.at[0].set(top.h[0])
    small = column.dtype == jnp.int16 and rows + columns < 2**15
    index = jnp.int16 if small else jnp.int32
    i = i.astype(index)
    query = matrix_rows.score_rows(scores, query, above)
    letters = jnp.concatenate([jnp.zeros(1, query.dtype), query])
    if fused:
        code = jnp.uint8 if scores.ndim == 2 else jnp.uint16
        padded = jnp.zeros(columns + 2 * rows + 2, code)
        target = padded.at[rows + 2 : -rows].set(target[::-1].astype(code))
    inputs = _StripInputs(
        i, column, edge_gap, minus, top, gaps,
        jnp.asarray(m, index), jnp.asarray(n, index),
        _of_rows(scores, letters) if fused else scores,
        None if fused else letters,
        target,
    )  # fmt: skip
    empty = jnp.full(columns + 2, neg_inf(column.dtype), column.dtype)
    last = minus, minus if sided else None
    start = (minus, minus, minus, minus, minus, i * 0, last, Top(empty, empty))
    whole = rows + columns + 1
    skewed = (jnp.zeros((whole, rows + 1), column.dtype),) * 3 if tables else None
    count = whole if diagonals is None else diagonals
    run = one_function(partial(_diagonals, local=local, fused=fused), fused)
    carry, (codes, skewed) = run(start, (codes, skewed), inputs, count)
    best, best_j, (last, last_gap), bottom = carry[4:]
    bottom = Top(*(x[: columns + 1] for x in bottom))
    if tables:
        h, e, f = (_unskew(x, columns, 0) for x in skewed)
        none = minus[0]  # where no gap can be
        skewed = h, e.at[1:, 0].set(none), f.at[0].set(none)
    best_j = best_j.astype(jnp.int32)
    return Strip(bottom, last, best, best_j, codes, skewed, last_gap)


class _StripInputs(NamedTuple):
    """Arrays of all diagonals: (M + 1,) by row, where row 0 is the row above."""

    i: jax.Array
    left: jax.Array
    left_gap: jax.Array
    minus: jax.Array
    top: Top
    gaps: Gaps
    m: jax.Array
    n: jax.Array
    # (A, A); fused: (A, M + 1), those of each row; of two tracks (2, …)
    scores: jax.Array
    letters: jax.Array | None
    target: jax.Array  # fused: reversed and padded, so that a diagonal is a slice


def _diagonals(
    start: tuple, skewed: tuple, inputs: _StripInputs, count: jax.Array | int, *,
    local: bool, fused: bool,
):  # fmt: skip
    """The loop over the diagonals. Each array of a step is a function of its own, so
    that it is computed once."""
    i, left, left_gap, minus, top, gaps, m, n, *_ = inputs
    columns, row = jnp.int32(top.h.shape[0] - 1), m.astype(jnp.int32)
    as_function = partial(one_function, enabled=fused)
    gaps = Gaps(*(lax.broadcast(g, i.shape) for g in gaps))

    # Row 0 and column 0 are given. What lies left of column 0 or beyond the last may
    # hold anything: no cell of the table depends on it.
    def vertical(
        e: jax.Array, h: jax.Array, gaps: Gaps, i: jax.Array, above: jax.Array
    ):
        above = lax.broadcast(above, i.shape)
        return lax.select(i == 0, above, recurrence.gap(e, h, gaps))

    def horizontal(
        f: jax.Array, h: jax.Array, gaps: Gaps, j: jax.Array, left: jax.Array
    ):
        return lax.select(j == 0, left, recurrence.gap(f, h, gaps))

    def highest(
        diag: jax.Array, s: jax.Array, e: jax.Array, f: jax.Array, j: jax.Array,
        i: jax.Array, left: jax.Array, above: jax.Array,
    ):  # fmt: skip
        h = lax.select(j == 0, left, recurrence.best(diag, s, e, f, local))
        return lax.select(i == 0, lax.broadcast(above, i.shape), h)

    def better(
        h: jax.Array,
        best: jax.Array,
        j: jax.Array,
        i: jax.Array,
        m: jax.Array,
        n: jax.Array,
    ):
        return (h > best) & (j >= 0) & (j <= n) & (i <= m)

    def code(
        h: jax.Array, e: jax.Array, f: jax.Array, diag: jax.Array, s: jax.Array,
        e_up: jax.Array, f_left: jax.Array, gaps: Gaps,
    ):  # fmt: skip
        cell = h, e, f, diag + s, e_up, f_left, gaps, gaps, None
        return directions.nibble(recurrence.compared(*cell), local, jnp.uint8)

    down, scores_of, e_of, f_of, h_of, wins_of, code_of = map(
        as_function, (_down, _scores_of, vertical, horizontal, highest, better, code)
    )

    def diagonal(d: jax.Array, state: tuple):
        carry, (codes, tables) = state
        h1, h2, e1, f1, best, best_j, last, bottom = carry  # diagonals d-1, d-2
        d = d.astype(jnp.int32)  # int64 in the mode of int64 scores
        j = d.astype(i.dtype) - i
        s = scores_of(inputs.scores, inputs.letters, inputs.target, d, minus)
        above = [lax.select(d <= columns, _at(x, lax.min(d, columns)), minus[0])
                 for x in (top.h, top.e)]  # fmt: skip
        diag, e_up = down(h2), down(e1)
        e = e_of(e_up, down(h1), gaps, i, above[1])
        f = f_of(f1, h1, gaps, j, left_gap)
        h = h_of(diag, s, e, f, j, i, left, above[0])
        wins = wins_of(h, best, j, i, m, n)
        best, best_j = lax.select(wins, h, best), lax.select(wins, j, best_j)
        last = tuple(
            x if x is None else lax.select(j == n, y, x)
            for x, y in zip(last, (h, f), strict=True)
        )
        bottom = _put(bottom, _at(h, row), _at(e, row), d - row)
        if codes is not None:
            codes = put_row(codes, code_of(h, e, f, diag, s, e_up, f1, gaps), d)
        if tables is not None:
            pairs = zip(tables, (h, e, f), strict=True)
            tables = tuple(put_row(x, y, d) for x, y in pairs)
        return (h, h1, e, f, best, best_j, last, bottom), (codes, tables)

    return lax.fori_loop(0, count, diagonal, (start, skewed))


def _scores_of(
    scores: jax.Array,
    letters: jax.Array | None,
    target: jax.Array,
    d: jax.Array,
    like: jax.Array,
):
    """Substitution scores of diagonal d, by row."""
    if scores.ndim > 2:
        parts = [
            _scores_of(
                table,
                None if letters is None else matrix_rows.track_codes(letters, k),
                matrix_rows.track_codes(target, k),
                d,
                like,
            )
            for k, table in enumerate(scores)
        ]
        return lax.add(*parts)
    if letters is None:
        first = target.shape[0] - like.shape[0] + 1 - d
        codes = lax.dynamic_slice_in_dim(target, first, like.shape[0])
        entries = [lax.index_in_dim(scores, a, keepdims=False)
                   for a in range(scores.shape[0])]  # fmt: skip
        return matrix_rows.by_code(entries, codes).astype(like.dtype)
    j = d - jnp.arange(letters.shape[0], dtype=jnp.int32)
    s = scores[letters, target[jnp.clip(j - 1, 0, target.shape[0] - 1)]]
    return s.astype(like.dtype)


def _of_rows(scores: jax.Array, letters: jax.Array):
    """The scores of each row's letter with every letter: (A, M + 1), of two tracks
    (2, A, M + 1)."""
    if scores.ndim == 2:
        return scores[letters].T
    tracks = enumerate(scores)
    return jnp.stack([x[matrix_rows.track_codes(letters, k)].T for k, x in tracks])


def _down(x: jax.Array):
    """x[i - 1] at row i: what the cell above holds, one diagonal back."""
    return lax.concatenate([lax.full((1,), neg_inf(x.dtype), x.dtype), x[:-1]], 0)


def _at(x: jax.Array, k: jax.Array):
    return lax.dynamic_index_in_dim(x, k, keepdims=False)


def _put(bottom: Top, h: jax.Array, e: jax.Array, j: jax.Array):
    """Store row m's cell where it lies on this diagonal; others behind the last."""
    columns = bottom.h.shape[0] - 1
    at = lax.select((j >= 0) & (j < columns), j, jnp.full_like(j, columns))
    put = partial(lax.dynamic_update_index_in_dim, index=at, axis=0)
    return Top(put(bottom.h, h), put(bottom.e, e))


def _unskew(diagonals: jax.Array, columns: int, first: int = 1):
    """(D, R) by diagonal and row -> (R, columns) by row and column (from ``first``)."""
    row = jnp.arange(diagonals.shape[1], dtype=jnp.int32)[:, None]
    column = jnp.arange(first, columns + 1, dtype=jnp.int32)[None, :]
    return diagonals[row + column, row]
