"""Pairs side by side, row by row, in NumPy: the form that needs no compiler.

A gap that opens in a cell which F itself made never beats that F going on, since open
>= extend. So F of a whole row is a running maximum of X, which is H without F:

    X[i,j] = max(H[i-1,j-1] + S(q[i], t[j]), E[i,j])                local: and 0
    F[i,j] = max over k < j of X[i,k] - open - (j - k - 1) * extend
           = max over k < j of (X[i,k] + k * extend) - open - (j - 1) * extend
    H[i,j] = max(X[i,j], F[i,j])

A row of all pairs is one flat array: the pairs one after the other, each with its
columns 0 ... N. Values of row i are held with i * extend added to them: E then goes on
as it is. Pairs come with the most rows first, so a row is that of the first of them.
"""

from typing import NamedTuple

import numpy as np

# The directions of a cell, as ``pairs.dp.rows_walk`` reads them.
LEFT_GOES_ON, UP_GOES_ON, VERTICAL, DIAGONAL, STOP = 1, 2, 4, 8, 16
END, LEFT_BORDER, UP_BORDER = 32, 33, 34  # of row 0 and column 0


class RowsProblem(NamedTuple):
    """Scores, gaps and ends of all pairs of a fill; query and target as computed."""

    scores: np.ndarray  # (A, A) int64, row = query letter; or (A, positions)
    open: int
    extend: int
    free: frozenset
    local: bool
    tie: bool  # the sides are swapped: left goes before up


class RowsFilled(NamedTuple):
    """Scores int64 (P,), end cells int64 (P,), and the directions of cell (i, j) of
    pair p in [i, p, j], uint8 (M + 1, P, N + 1); None without paths."""

    score: np.ndarray
    i: np.ndarray
    j: np.ndarray
    codes: np.ndarray | None


class _RowBuffers:
    """The rows at work, flat (P * (N + 1),), and what is remembered of them."""

    def __init__(
        self,
        m: np.ndarray,
        targets: np.ndarray,
        n: np.ndarray,
        problem: RowsProblem,
        dtype: np.dtype,
    ):
        pairs, wide = len(m), targets.shape[1] + 1
        self.wide, self.m, self.n, self.problem = wide, m, n, problem
        size, columns = pairs * wide, np.arange(wide)
        # S and a row's extend, in [letter * P + p, j]; beyond n nothing is gained
        least = min(int(problem.scores.min(initial=0)), 0)
        padded = np.pad(problem.scores, ((0, 0), (0, 1)), constant_values=least)
        padded = (padded + problem.extend).astype(dtype)
        letters = np.where(columns[:-1] < n[:, None], targets, problem.scores.shape[1])
        profile = np.zeros((len(padded), pairs, wide), dtype)
        profile[:, :, 1:] = padded[:, letters]
        self.profile = profile.reshape(-1, wide)
        self.tilt = np.tile((columns * problem.extend).astype(dtype), pairs)
        costs = problem.open + (columns - 1) * problem.extend
        self.costs = np.tile(costs.astype(dtype), pairs)
        self.lowest = np.iinfo(dtype).min // 2
        self.h, self.d, self.x, self.f, self.t = (
            np.zeros(size, dtype) for _ in range(5)
        )
        self.e = np.full(size, self.lowest, dtype)
        self.s = np.zeros((pairs, wide), dtype)
        self.bits = np.zeros(size, bool)
        top = "target_start" in problem.free or problem.local
        first = np.where(columns > 0, 0 if top else -costs, 0).astype(dtype)
        self.h[:] = np.tile(first, pairs)
        free = "query_start" in problem.free or problem.local
        self.border = None if free else problem.extend - problem.open


def fill(
    queries: np.ndarray,
    m: np.ndarray,
    targets: np.ndarray,
    n: np.ndarray,
    problem: RowsProblem,
    dtype: str | np.dtype,
    paths: bool,
):
    """Fill the tables of some pairs.

    Parameters
    ----------
    queries : uint8 codes (P, M)
        What lies beyond m does not matter.
    m : int64 (P,), falling
    targets : uint8 codes (P, N)
    n : int64 (P,)
    problem : RowsProblem
    dtype : of NumPy
        Proven to hold all scores, and ``(m + n + 2) * extend`` above them.
    paths : whether end cells and directions are wanted

    Returns
    -------
    RowsFilled
    """
    rows = _RowBuffers(m, targets, n, problem, np.dtype(dtype))
    pairs, longest, wide = len(m), queries.shape[1], rows.wide
    codes = np.empty((longest + 1, pairs * wide), np.uint8) if paths else None
    ends = (_LocalEnds if problem.local else _BorderEnds)(rows, paths)
    ends.see(0, pairs)
    order = np.arange(pairs)
    counts = np.searchsorted(-m, -np.arange(1, longest + 1), "right")
    letters = queries.T.astype(np.intp) * pairs + order
    for i, count in enumerate(counts.tolist(), 1):
        if count == 0:
            break
        _row(
            rows, i, count, letters[i - 1, :count], None if codes is None else codes[i]
        )
        ends.see(i, count)
    score, i, j = ends.of_pairs()
    if codes is not None:
        codes = codes.reshape(longest + 1, pairs, wide)
        _put_borders(codes, problem)
    return RowsFilled(score, i, j, codes)


def _row(
    rows: _RowBuffers, i: int, count: int, letters: np.ndarray, codes: np.ndarray | None
) -> None:
    """Row i of the first ``count`` pairs; ``codes`` take its directions, or None."""
    problem, size = rows.problem, count * rows.wide
    h, e, d, x, f, t = (
        whole[:size] for whole in (rows.h, rows.e, rows.d, rows.x, rows.f, rows.t)
    )
    s = rows.s[:count]
    # E[i,j] = max(E[i-1,j] - extend, H[i-1,j] - open)
    np.subtract(h, problem.open - problem.extend, out=t)
    if codes is not None:
        codes = codes[:size]
        up_goes_on = np.greater_equal(e, t)
    np.maximum(e, t, out=e)
    # X[i,j] = max(H[i-1,j-1] + S(q[i], t[j]), E[i,j])
    rows.profile.take(letters, axis=0, out=s, mode="clip")
    np.add(h[:-1], s.reshape(-1)[1:], out=d[1:])
    np.maximum(d, e, out=x)
    if problem.local:
        np.maximum(x, problem.extend * i, out=x)
    border = problem.extend * i if rows.border is None else rows.border
    x.reshape(count, -1)[:, 0] = border
    # F[i,j] = max over k < j of (X[i,k] + k * extend) - open - (j - 1) * extend
    np.add(x, rows.tilt[:size], out=t)
    run = t.reshape(count, -1)
    np.maximum.accumulate(run, axis=1, out=run)
    np.subtract(t[:-1], rows.costs[1:size], out=f[1:])
    f.reshape(count, -1)[:, 0] = rows.lowest
    np.maximum(x, f, out=h)
    if codes is not None:
        _directions(rows, i, codes, up_goes_on, h, d, e, f, t)


def _directions(
    rows: _RowBuffers,
    i: int,
    codes: np.ndarray,
    up_goes_on: np.ndarray,
    h: np.ndarray,
    d: np.ndarray,
    e: np.ndarray,
    f: np.ndarray,
    run: np.ndarray,
) -> None:
    """The directions of a row, in the bits of a byte (see above)."""
    bits, bytes_of_bits = rows.bits[: len(h)], rows.bits.view(np.uint8)[: len(h)]
    first = codes.view(bool)
    if rows.problem.local:
        np.equal(h, rows.problem.extend * i, out=first)
        np.add(codes, codes, out=codes)
        np.equal(h, d, out=bits)
        np.add(codes, bytes_of_bits, out=codes)
    else:
        np.equal(h, d, out=first)
    np.add(codes, codes, out=codes)
    (np.greater if rows.problem.tie else np.greater_equal)(e, f, out=bits)
    np.add(codes, bytes_of_bits, out=codes)
    np.add(codes, codes, out=codes)
    np.add(codes, up_goes_on.view(np.uint8), out=codes)
    np.add(codes, codes, out=codes)
    # F[i,j] = F[i,j-1] - extend where the running maximum stays; not in column 1
    np.equal(run[1:-1], run[:-2], out=bits[2:])
    bits.reshape(-1, rows.wide)[:, :2] = False
    np.add(codes, bytes_of_bits, out=codes)


def _put_borders(codes: np.ndarray, problem: RowsProblem) -> None:
    """Row 0 and column 0, where a walk ends or goes on along the border."""
    top = problem.local or "target_start" in problem.free
    left = problem.local or "query_start" in problem.free
    codes[:, :, 0] = END if left else UP_BORDER
    codes[0] = END if top else LEFT_BORDER
    codes[0, :, 0] = END


class _LocalEnds:
    """The best cell of each pair: the first row, then the first column; with tie the
    first column, then the first row."""

    def __init__(self, rows: _RowBuffers, paths: bool):
        self.rows, self.paths = rows, paths
        self.score, self.i, self.j = np.zeros((3, len(rows.m)), np.int64)

    def see(self, i: int, count: int) -> None:
        rows = self.rows
        h = rows.h[: count * rows.wide].reshape(count, -1)
        most = np.maximum.reduce(h, axis=1).astype(np.int64) - rows.problem.extend * i
        best = self.score[:count]
        if not self.paths:
            np.maximum(best, most, out=best)
            return
        tie = rows.problem.tie
        some = np.flatnonzero(most >= np.maximum(best, 1) if tie else most > best)
        if len(some) == 0:
            return
        columns = h[some].argmax(axis=1)
        if tie:
            better = (most[some] > best[some]) | (columns < self.j[some])
            some, columns = some[better], columns[better]
        self.score[some], self.i[some], self.j[some] = most[some], i, columns

    def of_pairs(self):
        return self.score, self.i, self.j


class _BorderEnds:
    """H[m, n], or the best of row m and column n where those ends are free."""

    def __init__(self, rows: _RowBuffers, paths: bool):
        self.rows, pairs = rows, len(rows.m)
        self.last = np.empty((pairs, rows.wide), rows.h.dtype)
        self.begin = np.searchsorted(-rows.m, -np.arange(int(rows.m.max()) + 1), "left")
        self.corner = np.arange(pairs) * rows.wide + rows.n
        self.column = None
        if "query_end" in rows.problem.free:
            size = int(rows.m.max()) + 1, pairs
            self.column = np.zeros(size, rows.h.dtype)

    def see(self, i: int, count: int) -> None:
        rows, begin = self.rows, self.begin[i]
        if self.column is not None:
            self.column[i, :count] = rows.h.take(self.corner[:count])
        if begin < count:
            h = rows.h[begin * rows.wide : count * rows.wide]
            self.last[begin:count] = h.reshape(count - begin, -1)

    def of_pairs(self):
        rows, problem = self.rows, self.rows.problem
        m, n = rows.m, rows.n
        lowest, pair = np.iinfo(np.int64).min, np.arange(len(m))
        last = self.last.astype(np.int64) - problem.extend * m[:, None]
        corner = last[pair, n]
        by_column = by_row = np.zeros(len(m), bool)
        row_score, row_j, column_score, column_i = corner, n, corner, m
        if "target_end" in problem.free:
            last[np.arange(rows.wide) > n[:, None]] = lowest
            row_j = last.argmax(axis=1)
            row_score, by_row = last[pair, row_j], row_j < n
        if self.column is not None:
            i = np.arange(len(self.column))[:, None]
            column = self.column.astype(np.int64) - problem.extend * i
            column[i > m] = lowest
            column_i = column.argmax(axis=0)
            column_score, by_column = column[column_i, pair], column_i < m
        # Equal ends: that of column n has the smaller row, that of row m the column.
        row_first = row_score > column_score
        row_first |= (row_score == column_score) & problem.tie
        by_column = by_column & ~(by_row & row_first)
        score = np.where(by_column, column_score, np.where(by_row, row_score, corner))
        i = np.where(by_column, column_i, m)
        return score, i, np.where(by_column | ~by_row, n, row_j)
