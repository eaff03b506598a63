"""Two sequences by anti-diagonals: the papers' recurrence as one ``lax.scan``.

All cells of an anti-diagonal d = i + j depend only on the two before it (Li and
Becchi; Liu et al. 2006), so a step computes one diagonal as a vector over the rows i
and carries two diagonals of H and one of E and F. ``fill`` is for one pair; ``vmap``
makes a batch of it, and it lives inside any ``jit``. It reads like the papers, gives
the tables, and takes one long pair in strips (``run.long_pair``); the fast fill on a
CPU is ``sweep``.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxalign.dp import directions, ends
from jaxalign.dp.recurrence import Gaps, border, neg_inf, pair_cell


class Top(NamedTuple):
    """H and E of the row above a strip, by column 0..N: (N + 1,)."""

    h: jax.Array
    e: jax.Array


class Strip(NamedTuple):
    """A filled strip of rows.

    ``h`` (M + 1, N + 1) only on request; ``words`` uint32 (M / 8, N) only on request;
    ``bottom`` is the row m of H and E; ``last_column`` H[0..M, n]; ``row_best`` and
    ``row_column`` (M + 1,) the maximum of each row of the strip and its first column.
    """

    bottom: Top
    last_column: jax.Array
    row_best: jax.Array
    row_column: jax.Array
    words: jax.Array | None
    tables: tuple | None


def top_border(columns, free_start, gaps) -> Top:
    """Row 0 of a whole table: borders in H, minus infinity in E; (columns + 1,)."""
    h = border(jnp.arange(columns + 1, dtype=jnp.int32), free_start, gaps)
    return Top(h, jnp.full_like(h, neg_inf(h.dtype)))


def fill(query, target, m, n, scores, gaps, free, *, local=False, words=False):
    """The whole table of one pair.

    Parameters
    ----------
    query, target : integer codes (M,), (N,); what lies beyond m, n does not matter
    m, n : int32 scalars, the lengths
    scores : (A, A), row = query letter
    gaps : Gaps of scalars; their dtype is the dtype of the scores
    free : dict of four bool scalars, ``query_start`` ... ``target_end``
    local, words : static; M is a multiple of 8 where words are wanted

    Returns
    -------
    ends.End
        Score and end cell, int32 scalars.
    words : uint32 (M / 8, N) or None
    """
    top = top_border(target.shape[0], free["target_start"] | local, gaps)
    done = strip(
        query, target, m, n, 0, top, scores, gaps, free, local=local, words=words
    )
    return strip_end(done, m, n, free, local), done.words


def strip_end(done: Strip, m, n, free, local) -> ends.End:
    """The end cell of a table filled in one strip."""
    if local:
        i = jnp.argmax(done.row_best).astype(jnp.int32)
        j = jnp.where(done.row_best[i] > 0, done.row_column[i], 0)
        return ends.End(done.row_best[i], jnp.where(j > 0, i, 0), j)
    lowest = jnp.iinfo(done.bottom.h.dtype).min
    row = jnp.where(
        jnp.arange(done.bottom.h.shape[0], dtype=jnp.int32) <= n, done.bottom.h, lowest
    )
    inside = jnp.arange(done.last_column.shape[0], dtype=jnp.int32) <= m
    column = jnp.where(inside, done.last_column, lowest)
    i, j = jnp.argmax(column).astype(jnp.int32), jnp.argmax(row).astype(jnp.int32)
    return ends.border_end(
        ends.End(done.last_column[m], m, n),
        ends.End(column[i], i, n),
        ends.End(row[j], m, j),
        free,
        0,
    )


def strip(
    query,
    target,
    m,
    n,
    above,
    top,
    scores,
    gaps,
    free,
    *,
    local=False,
    words=False,
    tables=False,
) -> Strip:
    """Rows ``above`` + 1 ... ``above`` + M of a table whose row ``above`` is ``top``.

    Parameters as in ``fill``; m counts the rows of this strip that exist.
    """
    rows, columns = query.shape[0], target.shape[0]
    i = jnp.arange(rows + 1, dtype=jnp.int32)
    left = border(above + i, free["query_start"] | local, gaps)
    left = left.at[0].set(top.h[0])
    minus = jnp.full_like(left, neg_inf(left.dtype))
    each = Gaps(*(jnp.broadcast_to(g, left.shape) for g in gaps))
    letters = jnp.concatenate([jnp.zeros(1, query.dtype), query])

    def diagonal(carry, d):
        h1, h2, e1, f1, best, best_j, last, bottom = carry  # diagonals d-1, d-2
        j = d - i
        s = scores[letters, target[jnp.clip(j - 1, 0, columns - 1)]]
        cell = pair_cell(
            _down(h2), _down(h1), h1, _down(e1), f1, s.astype(left.dtype), each, each,
            None, local,
        )  # fmt: skip
        real = (j >= 1) & (j <= columns) & (i >= 1)
        at = jnp.clip(d, 0, columns)
        h = jnp.where(real, cell.h, jnp.where(j == 0, left, minus))
        h = jnp.where((i == 0) & (d <= columns), top.h[at], h)
        e = jnp.where(real, cell.e, minus)
        e = jnp.where((i == 0) & (d <= columns), top.e[at], e)
        f = jnp.where(real, cell.f, minus)
        wins = (h > best) & (j >= 0) & (j <= n) & (i <= m)
        best, best_j = jnp.where(wins, h, best), jnp.where(wins, j, best_j)
        last = jnp.where(j == n, h, last)
        bottom = _put(bottom, h[m], e[m], d - m)
        out = (directions.nibble(cell, local, jnp.uint8) if words else None,)
        out += ((h, e, f) if tables else None,)
        return (h, h1, e, f, best, best_j, last, bottom), out

    empty = jnp.full(columns + 1, neg_inf(left.dtype), left.dtype)
    start = (minus, minus, minus, minus, minus, i * 0, minus, Top(empty, empty))

    steps = jnp.arange(rows + columns + 1, dtype=jnp.int32)
    carry, (codes, kept) = lax.scan(diagonal, start, steps)
    best, best_j, last, bottom = carry[4:]
    packed = directions.pack(_unskew(codes, columns)[1:]) if words else None
    whole = tuple(_unskew(x, columns, 0) for x in kept) if tables else None
    return Strip(bottom, last, best, best_j, packed, whole)


def _down(x):
    """x[i - 1] at row i: what the cell above holds, one diagonal back."""
    return jnp.concatenate([jnp.full(1, neg_inf(x.dtype), x.dtype), x[:-1]])


def _put(bottom, h, e, j):
    """Store row m's cell where it lies on this diagonal."""
    columns = bottom.h.shape[0]
    inside = (j >= 0) & (j < columns)
    at = jnp.clip(j, 0, columns - 1)
    keep = Top(bottom.h[at], bottom.e[at])
    return Top(
        bottom.h.at[at].set(jnp.where(inside, h, keep.h)),
        bottom.e.at[at].set(jnp.where(inside, e, keep.e)),
    )


def _unskew(diagonals, columns, first=1):
    """(D, R) by diagonal and row -> (R, columns) by row and column (from ``first``)."""
    row = jnp.arange(diagonals.shape[1], dtype=jnp.int32)[:, None]
    column = jnp.arange(first, columns + 1, dtype=jnp.int32)[None, :]
    return diagonals[row + column, row]
