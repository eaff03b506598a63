"""One pair by vectors: striped query profile, lazy gaps, partitions (CUDASW++ 2.0).

Liu, Schmidt and Maskell (BMC Research Notes 2010, 3:93), after Farrar (Bioinformatics
2007, 23:156). The query is cut into partitions of ``PL`` rows, and a partition into
``VL`` stripes of T = PL / VL rows; a vector holds row t of every stripe. Down a stripe
the vertical gap E goes from step to step; that it may also enter the next stripe is
ignored at first and corrected afterwards by a loop that seldom runs (lazy F: the
papers call the vertical gap F and the horizontal one E; here E is vertical, as
everywhere in this project).

A partition hands down, per column, H of its last row and E of the row below it.
The correction stops where E can no longer raise any H, so E of the last row itself may
be too small; what is handed down is right all the same (their Theorem 1), because it is
the larger of that E extended and H opened, and H is right.

``python -m benchmarks.search --stages`` compares it with the forms of the package.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxalign.affine import Gaps, neg_inf
from jaxalign.model.scoring import FREE_ENDS
from jaxalign.pairs.dp.recurrence import border

# (VL, PL) on a CPU, the first from queries of its PL on: docs/logs/search-cpu.md.
SHAPES = ((64, 512), (16, 128), (8, 64))


class Boundary(NamedTuple):
    """What a partition hands down, by column: H of its last row for columns 0..N,
    E of the row below for columns 1..N."""

    h: jax.Array
    e: jax.Array


class Stripes(NamedTuple):
    """A column of a partition, its row k * T + t at [t, k]: (T, VL)."""

    h: jax.Array
    e: jax.Array
    f: jax.Array  # of the next column


class ScoreCandidates(NamedTuple):
    """Candidates for the score so far: scalars."""

    cell: jax.Array  # any H, local mode
    column: jax.Array  # H[0..m, n]
    row: jax.Array  # H[m, 0..n]
    corner: jax.Array  # H[m, n]


def score(query, target, scoring) -> int:
    """The local score of a pair of codes, uint8 (m,) and (n,), as a Scoring has it."""
    lanes, part = next((s for s in SHAPES if len(query) >= s[1]), SHAPES[-1])
    padded = np.zeros(max(1, -(-len(query) // part)) * part, np.int32)
    padded[: len(query)] = query
    lengths = np.int32(len(query)), np.int32(len(target))
    gaps = Gaps(np.int32(scoring.open), np.int32(scoring.extend))
    free = dict.fromkeys(FREE_ENDS, np.bool_(False))
    return int(_fill(padded, target.astype(np.int32), *lengths, scoring.scores, gaps,
                     free, local=True, lanes=lanes, part=part))  # fmt: skip


@partial(jax.jit, static_argnames=("local", "lanes", "part"))
def _fill(query, target, m, n, scores, gaps, free, **static):
    return fill(query, target, m, n, scores, gaps, free, **static)


def query_profile(query, scores, lanes):
    """Scores of every letter against every residue of a query, striped (Farrar 2007):
    it is cut into ``lanes`` pieces of T = ceil(m / lanes) residues, and residue t of
    all pieces is put side by side, so that the lanes of a vector lie T rows apart and
    depend on each other only once in T steps.

    Parameters
    ----------
    query : integer codes (m,), m >= 1
    scores : (A, A), row = query letter
    lanes : int
        Lanes of a vector; m is padded to a multiple of it, and padding scores 0.

    Returns
    -------
    (A, T, lanes), P[r, t, k] = S(Q[k * T + t], r)

    Examples
    --------
    >>> scores = jnp.arange(9).reshape(3, 3)
    >>> query_profile(jnp.array([0, 1, 2]), scores, lanes=2)[1].tolist()
    [[1, 7], [4, 0]]
    """
    steps = -(-query.shape[0] // lanes)
    profile = jnp.pad(scores[query].T, ((0, 0), (0, steps * lanes - query.shape[0])))
    return jnp.swapaxes(profile.reshape(-1, lanes, steps), 1, 2)


def fill(query, target, m, n, scores, gaps, free, *, local=False, lanes=16, part=128):
    """The score of one pair.

    Parameters
    ----------
    query, target : integer codes (M,), (N,); what lies beyond m, n does not matter
    m, n : int32 scalars, the lengths
    scores : (A, A), row = query letter
    gaps : Gaps of scalars; their dtype is the dtype of the scores
    free : dict of four bool scalars, ``query_start`` ... ``target_end``
    local : static
    lanes, part : static, the papers' VL and PL; ``lanes`` divides ``part``, and
        ``part`` divides M

    Returns
    -------
    score : scalar of the dtype of the gaps
        Right as long as no value leaves the range of that dtype (``model.bounds``).
    """
    j = jnp.arange(target.shape[0] + 1, dtype=jnp.int32)
    row0 = border(j, free["target_start"] | local, gaps)
    top = Boundary(row0, row0[1:] - gaps.open)
    best = _borders(row0, j, m, n, free, gaps, local)
    # Rows below m score 0 (one letter more), so that they never raise a local score.
    i = jnp.arange(query.shape[0], dtype=jnp.int32)
    codes = jnp.where(i < m, query, scores.shape[0]).reshape(-1, part)
    wide = jnp.pad(scores, ((0, 1), (0, 0))).astype(gaps.open.dtype)

    def partition(p, carry):
        profile = query_profile(codes[p], wide, lanes)
        args = (*carry, profile, p * part, target, m, n, gaps, free)
        return _partition(*args, local=local)

    _, best = lax.fori_loop(0, -(-m // part), partition, (top, best))
    if local:
        return best.cell
    ends = (best.corner, jnp.where(free["query_end"], best.column, best.corner),
            jnp.where(free["target_end"], best.row, best.corner))  # fmt: skip
    return jnp.max(jnp.stack(ends))


def _borders(row0, j, m, n, free, gaps, local) -> ScoreCandidates:
    """The candidates in row 0 and column 0."""
    below = border(m, free["query_start"] | local, gaps)  # H[m, 0]
    along = jnp.max(jnp.where(j <= n, row0, neg_inf(row0.dtype)))
    row = jnp.where(m == 0, along, below)
    corner = jnp.where(m == 0, row0[n], below)
    return ScoreCandidates(jnp.zeros_like(below), row0[n], row, corner)


def _partition(top, best, profile, above, target, m, n, gaps, free, *, local):
    """The columns of one partition, left to right: (Boundary, Best)."""
    steps, lanes = profile.shape[1:]
    t = jnp.arange(steps, dtype=jnp.int32)[:, None]
    i = above + 1 + t + steps * jnp.arange(lanes, dtype=jnp.int32)[None, :]
    h = border(i, free["query_start"] | local, gaps)
    minus = jnp.full_like(h, neg_inf(h.dtype))

    def column(carry, values):
        stripes, best = carry
        diagonal, e_above, letter, j = values
        stripes = _sweep(stripes, diagonal, e_above, profile[letter], gaps, local)
        stripes = _correct(stripes, gaps)
        best = _follow(best, stripes.h, i, j, m, n, local)
        last = stripes.h[-1, -1], stripes.e[-1, -1]
        # C_E = max(H - open, E - extend): right although E may be too small.
        below = jnp.maximum(last[0] - gaps.open, last[1] - gaps.extend)
        return (stripes, best), (last[0], below)

    start = Stripes(h, minus, h - gaps.open), best
    j = jnp.arange(1, target.shape[0] + 1, dtype=jnp.int32)
    (_, best), (h_row, e_row) = lax.scan(column, start, (top.h[:-1], top.e, target, j))
    return Boundary(jnp.concatenate([h[-1:, -1], h_row]), e_row), best


def _sweep(before: Stripes, diagonal, e_above, scores, gaps, local) -> Stripes:
    """A column, as if no gap went on from one stripe into the next."""
    # H[i,j] = max(0, H[i-1,j-1] + P[i], E[i,j], F[i,j])
    # E[i+1,j] = max(E[i,j] - ext, H[i,j] - open)     the papers' F
    # F[i,j+1] = max(F[i,j] - ext, H[i,j] - open)     the papers' E
    h_diagonal = _shift(before.h[-1], diagonal)
    e = _shift(jnp.full_like(h_diagonal, neg_inf(h_diagonal.dtype)), e_above)
    column = []
    for t in range(scores.shape[0]):
        h = jnp.maximum(h_diagonal + scores[t], jnp.maximum(e, before.f[t]))
        h = jnp.maximum(h, 0) if local else h
        opened = h - gaps.open
        column.append((h, e, jnp.maximum(before.f[t] - gaps.extend, opened)))
        e = jnp.maximum(e - gaps.extend, opened)
        h_diagonal = before.h[t]
    h, kept, f = (jnp.stack(rows) for rows in zip(*column, strict=True))
    return Stripes(h, jnp.concatenate([kept, e[None]]), f)


def _correct(made: Stripes, gaps) -> Stripes:
    """The lazy loop: gaps go on into the next stripe while they raise an H.

    The exit test compares E with H - open before the update: Farrar's. A test of the
    next E after the update gives wrong scores where open equals extend.
    """
    steps = made.h.shape[0]
    minus = jnp.asarray(neg_inf(made.h.dtype), made.h.dtype)

    def raises(state):
        stripes, e, t = state
        return jnp.any(e > stripes.h[t] - gaps.open)

    def step(state):
        stripes, e, t = state
        h = jnp.maximum(stripes.h[t], e)
        stripes = Stripes(
            stripes.h.at[t].set(h),
            stripes.e.at[t].max(e),
            stripes.f.at[t].max(h - gaps.open),
        )
        e = jnp.maximum(e - gaps.extend, minus)  # many steps must not wrap
        e = jnp.where(t == steps - 1, _shift(e, minus), e)
        return stripes, e, jnp.where(t == steps - 1, 0, t + 1)

    stripes = made._replace(e=made.e[:-1])
    start = stripes, _shift(made.e[-1], minus), jnp.int32(0)
    return lax.while_loop(raises, step, start)[0]


def _shift(vector, first):
    """Every lane takes the value of the lane before it, lane 0 takes ``first``."""
    return jnp.concatenate([first[None].astype(vector.dtype), vector[:-1]])


def _follow(best: ScoreCandidates, h, i, j, m, n, local) -> ScoreCandidates:
    """Column j joins the candidates."""
    lowest = neg_inf(h.dtype)
    if local:
        return best._replace(
            cell=jnp.where(j <= n, jnp.maximum(best.cell, h.max()), best.cell)
        )
    real = jnp.max(jnp.where(i <= m, h, lowest))
    on_row = jnp.max(jnp.where(i == m, h, lowest))
    last = (j == n) & jnp.any(i == m)
    return ScoreCandidates(
        best.cell,
        jnp.where(j == n, jnp.maximum(best.column, real), best.column),
        jnp.where(j <= n, jnp.maximum(best.row, on_row), best.row),
        jnp.where(last, on_row, best.corner),
    )
