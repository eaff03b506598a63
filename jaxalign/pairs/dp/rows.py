"""Pairs side by side, row by row, in NumPy: the form that needs no compiler.

A gap that opens in a cell which F itself made never beats that F going on, since open
>= extend. So F of a whole row is a running maximum of X, which is H without F:

    X[i,j] = max(H[i-1,j-1] + S(q[i], t[j]), E[i,j])                local: and 0
    F[i,j] = max over k < j of X[i,k] - open - (j - k - 1) * extend
           = max over k < j of (X[i,k] + k * extend) - open - (j - 1) * extend
    H[i,j] = max(X[i,j], F[i,j])

A row of all pairs is an array (stripes, P * blocks): column j of pair p stands in
stripe j % stripes, at p * blocks + j // stripes. So a running maximum goes from stripe
to stripe, all blocks at once, and element by element over the maxima of blocks only:
the striped order of Farrar (2007), with a prefix scan in place of its lazy loop. A
narrow row is one stripe. Values of row i are held with i * extend added to them: E then
goes on as it is. Pairs come with the most rows first, so a row is that of the first of
them; it is laid out anew when an eighth of them has ended, since NumPy is slow with
holes.

Costs by position of a profile, whose positions are the columns, are those of
``hard_alignment``, in which between two pairs the query's residues come first. So F,
which skips positions, opens behind a pair alone. With A[j] the sum of the costs to
extend up to position j, and values held as they are:

    F[i,j] = max over k < j of (D[i,k] + A[k+1] - open[k+1]) - A[j]
    X[i,j] = max(D[i,j], F[i,j])                                    local: and 0
    E[i,j] = max(E[i-1,j] - extend[j], X[i-1,j] - open[j])
    H[i,j] = max(X[i,j], E[i,j])

The walk of ``pairs.dp.walk`` in NumPy: all pairs of a fill by rows step together.

What a step does depends on the directions of its cell and on the move that a gap must
go on with, so tables say it: the operation, the move after it, and whether the cell
before is a row or a column away.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

STRIPES, STRIPED_CELLS = 8, 2**12  # stripes of a row of so many cells or more

TRACK = 256  # of two tracks a code has the second in its high byte (``Sequences``)
# The directions of a cell, as the walk reads them.
LEFT_GOES_ON, UP_GOES_ON, VERTICAL, DIAGONAL, STOP = 1, 2, 4, 8, 16
END, LEFT_BORDER, UP_BORDER = 32, 33, 34  # of row 0 and column 0


class RowsProblem(NamedTuple):
    """Scores, gaps and ends of all pairs of a fill; query and target as computed."""

    # (A, A) int64, row = query letter; of a profile (A, positions), of tracks (2, A, A)
    scores: np.ndarray
    open: int
    extend: int
    free: frozenset
    local: bool
    tie: bool  # the sides are swapped: left goes before up
    # Of positions, int32 (n,), that are the columns of local tables: open and extend
    # along a row, and down a column; extend is then 0
    costs: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None = None


class Directions(NamedTuple):
    """The directions of all cells, uint8, row after row: those of cell (i, j) of pair p
    are at starts[i] + ((j % stripes) * pairs[i] + p) * blocks + j // stripes."""

    cells: np.ndarray
    starts: np.ndarray  # int64 (M + 1,)
    pairs: np.ndarray  # int64 (M + 1,): how many a row has room for
    stripes: int
    blocks: int
    pair_before_f: bool = False  # a gap F follows a pair, not the other gap


class RowsFilled(NamedTuple):
    """Scores int64 (P,), end cells int64 (P,), and directions; None without paths."""

    score: np.ndarray
    i: np.ndarray
    j: np.ndarray
    directions: Directions | None


class _RowBuffers:
    """The rows at work, (stripes, pairs * blocks), and what is remembered of them.

    ``before`` is H[j-1]; ``run_before`` and ``run_two_before`` are the running maximum
    one and two columns before, in the memory of H and of the maximum.
    """

    def __init__(
        self,
        m: np.ndarray,
        targets: np.ndarray,
        n: np.ndarray,
        problem: RowsProblem,
        dtype: np.dtype,
    ):
        pairs, wide = len(m), targets.shape[1] + 1
        self.stripes = STRIPES if pairs * wide >= STRIPED_CELLS else 1
        self.blocks = -(-wide // self.stripes)
        self.m, self.n, self.problem, self.every = m, n, problem, pairs
        tracks = problem.scores if problem.scores.ndim > 2 else problem.scores[None]
        mask = np.arange(targets.shape[1]) < n[:, None]
        self.scores, self.letters = [], []  # of each track; extend is in the first
        for k, scores in enumerate(tracks):
            least = min(int(scores.min(initial=0)), 0)
            padded = np.pad(scores, ((0, 0), (0, 1)), constant_values=least)
            extend = 0 if k else problem.extend
            self.scores.append((padded + extend).astype(dtype))
            letters = np.full((pairs, self.stripes * self.blocks), scores.shape[1])
            codes = targets[mask]
            codes = codes if len(tracks) == 1 else codes >> (8 * k) & (TRACK - 1)
            letters[:, 1 : targets.shape[1] + 1][mask] = codes
            self.letters.append(self.ordered(letters).swapaxes(0, 1))  # (stripes, P, …)
        self.lowest = np.iinfo(dtype).min // 2
        top = "target_start" in problem.free or problem.local
        columns = self.ordered(np.arange(self.stripes * self.blocks))
        costs = problem.open + (columns - 1) * problem.extend
        first = np.where(columns > 0, 0 if top else -costs, 0)
        tilt, self._of_e = columns * problem.extend, []
        if problem.costs is not None:
            beyond = self.stripes * self.blocks - len(problem.costs[0])
            before = [np.pad(x, (1, beyond)) for x in problem.costs]  # of column 0
            sums = np.cumsum(before[1])
            tilt = self.ordered((sums - before[0])[1:])
            costs = self.ordered(sums[:-1])
            each = (self.ordered(x[:-1]) for x in before[2:])
            self._of_e = [x.astype(dtype) for x in each]
        self._tilt, self._costs = tilt.astype(dtype), costs.astype(dtype)
        self.h = np.tile(first.astype(dtype), pairs)
        self.e = np.full(self.h.shape, self.lowest, dtype)
        self.x = self.h
        free = "query_start" in problem.free or problem.local
        self.border = None if free else problem.extend - problem.open
        self.lay_out(pairs)

    def lay_out(self, pairs: int) -> None:
        """Have rows of so many pairs, the first of those so far."""
        size, dtype = pairs * self.blocks, self.h.dtype
        shape, self.pairs = (self.stripes, size), pairs
        self.column_0 = slice(0, size, self.blocks)  # of each pair, in the first stripe
        h, self.e = self.h[:, :size], self.e[:, :size].copy()
        x = self.x[:, :size]
        self.h, self.before = _columns(shape, 2, dtype)
        self.h[:] = h
        self.run, self.run_before, self.run_two_before = _columns(shape, 3, dtype)
        self.d, self.x, self.f = (np.empty(shape, dtype) for _ in range(3))
        self.x[:] = x
        self.floor = np.empty(size, dtype)
        self.s = np.empty((self.stripes, pairs, self.blocks), dtype)
        self.s_of_track = [np.empty_like(self.s) for _ in self.scores[1:]]
        self.bits, self.up_goes_on = (np.empty(shape, bool) for _ in range(2))
        self.tilt, self.costs = (np.tile(x, pairs) for x in (self._tilt, self._costs))
        self.of_e = [np.tile(x, pairs) for x in self._of_e]
        self.block_run = np.full((pairs, self.blocks), self.lowest, dtype)
        places = np.arange(self.stripes)[:, None] * self.every + np.arange(pairs)
        self.places = places  # of each stripe and pair in the profile, of letter 0

    def ordered(self, columns: np.ndarray) -> np.ndarray:
        """(..., columns) as (..., stripes, blocks)."""
        shape = *columns.shape[:-1], self.blocks, self.stripes
        return columns.reshape(shape).swapaxes(-1, -2)

    def look_up(self, first: int, end: int) -> None:
        """Have S and a row's extend of some letters of the queries as ``profile``, in
        [(letter * stripes + stripe) * P + p, block]; beyond n nothing is gained."""
        self.profiles = []
        for scores, letters in zip(self.scores, self.letters, strict=True):
            profile = scores[first:end].take(letters, axis=1)
            profile[:, 0, :, 0] = 0
            self.profiles.append(profile.reshape(-1, self.blocks))


def _columns(shape: tuple[int, int], count: int, dtype: np.dtype) -> list[np.ndarray]:
    """A row at columns j, j - 1, j - 2 ..., in one memory: of stripes but the first,
    these are the stripe before; of a single one, the element before."""
    size = shape[0] * shape[1]
    step = shape[1] if shape[0] > 1 else 1
    whole = np.zeros((count - 1) * step + size, dtype)
    starts = (k * step for k in reversed(range(count)))
    return [whole[start : start + size].reshape(shape) for start in starts]


def fill(
    queries: np.ndarray | None,
    m: np.ndarray,
    targets: np.ndarray,
    n: np.ndarray,
    problem: RowsProblem,
    dtype: str | np.dtype,
    paths: bool,
    forbidden: np.ndarray | None = None,
):
    """Fill the tables of some pairs.

    queries : codes (P, M), what lies beyond m does not matter; None where the
        rows of all pairs are those of the scores, in their order
    m : int64 (P,), falling
    targets : codes (P, N), of the dtype of the queries
    n : int64 (P,)
    problem : RowsProblem
    dtype : of NumPy, proven to hold all scores, and ``(m + n + 2 + STRIPES) * extend``
        above them
    paths : whether end cells and directions are wanted
    forbidden : int64 (3, cells), or None. Row i, which rises, pair, and column j of the
        cells of local tables whose residues must not be paired.
    """
    rows = _RowBuffers(m, targets, n, problem, np.dtype(dtype))
    # How many pairs each row is laid out for: those that it has, or up to an eighth
    # more that have ended
    room = np.searchsorted(-m, -np.arange(int(m.max(initial=0)) + 1), "right")
    room[0] = last = len(m)
    for row, count in enumerate(room.tolist()):
        last = room[row] = count if 8 * count <= 7 * last else last
    directions = None
    if paths:  # those of row 0, and room for the others
        stops = np.cumsum(room) * (rows.stripes * rows.blocks)
        cells, starts = np.empty(int(stops[-1]), np.uint8), np.append(0, stops[:-1])
        about = rows.stripes, rows.blocks, problem.costs is not None
        directions = Directions(cells, starts, room, *about)
        first = row_of(directions, 0)
        free = problem.local or "target_start" in problem.free
        first[:] = END if free else LEFT_BORDER
        first[0, rows.column_0] = END
    ends = (_LocalEnds if problem.local else _BorderEnds)(rows, paths)
    ends.see(0, len(m))
    counts = np.searchsorted(-m, -np.arange(len(room)), "right").tolist()
    # Forbidden cells of each row, as indices of D
    cells_of_row: list = [None] * len(room)
    if forbidden is not None:
        block, stripe = np.divmod(forbidden[2], rows.stripes)
        cells = stripe, forbidden[1] * rows.blocks + block
        bounds = np.searchsorted(forbidden[0], np.arange(len(room) + 1)).tolist()
        cells_of_row = [tuple(x[a:b] for x in cells) for a, b in pairwise(bounds)]
    letters = None
    if queries is not None:
        rows.look_up(0, problem.scores.shape[-2])
        codes, step = queries.T.astype(np.intp), rows.stripes * len(m)
        letters = [codes] if len(rows.scores) == 1 else divmod(codes, TRACK)[::-1]
        letters = [x * step for x in letters]
    for i, pairs in enumerate(room[1:].tolist(), 1):
        if pairs < rows.pairs:
            rows.lay_out(pairs)
        places = [rows.places]
        if letters is None:  # a table of all rows would be as large as the cells
            rows.look_up(i - 1, i)
        else:
            places = [rows.places + x[i - 1, :pairs] for x in letters]
        codes = None if directions is None else row_of(directions, i)
        _row(rows, i, places, codes, cells_of_row[i])
        ends.see(i, counts[i])
    score, i, j = ends.of_pairs()
    return RowsFilled(score, i, j, directions)


def row_of(directions: Directions, i: int) -> np.ndarray:
    """The directions of row i, (stripes, pairs * blocks)."""
    size = int(directions.pairs[i]) * directions.blocks
    start, stripes = int(directions.starts[i]), directions.stripes
    return directions.cells[start : start + stripes * size].reshape(stripes, size)


def _row(
    rows: _RowBuffers,
    i: int,
    places: list[np.ndarray],
    codes: np.ndarray | None,
    forbidden: tuple[np.ndarray, np.ndarray] | None,
) -> None:
    """Row i, whose scores are at ``places`` (stripes, pairs) of the profile of each
    track; ``codes`` take its directions, or None. D is minus infinity at ``forbidden``
    indices."""
    problem, h, e, d, x, f, t = (
        rows.problem, rows.h, rows.e, rows.d, rows.x, rows.f, rows.run
    )  # fmt: skip
    # E[i,j] = max(E[i-1,j] - extend, H[i-1,j] - open)
    if problem.costs is None:
        np.subtract(h, problem.open - problem.extend, out=t)
    else:
        np.subtract(e, rows.of_e[1], out=e)
        np.subtract(x, rows.of_e[0], out=t)
    if codes is not None:
        np.greater_equal(e, t, out=rows.up_goes_on)
    np.maximum(e, t, out=e)
    # X[i,j] = max(H[i-1,j-1] + S(q[i], t[j]), E[i,j])
    rows.profiles[0].take(places[0], axis=0, out=rows.s, mode="clip")
    for k, s in enumerate(rows.s_of_track, 1):
        rows.profiles[k].take(places[k], axis=0, out=s, mode="clip")
        np.add(rows.s, s, out=rows.s)
    if rows.stripes > 1:
        rows.before[0, 1:] = h[-1, :-1]
    np.add(rows.before, rows.s.reshape(d.shape), out=d)
    if forbidden is not None:
        d[forbidden] = rows.lowest
    if problem.costs is None:
        opening, second = x, f
        _start(rows, i, e)
    else:
        opening, second = d, e
        d[0, rows.column_0] = rows.lowest
    # F[i,j] = max over k < j of (X[i,k] + k * extend) - open - (j - 1) * extend
    np.add(opening, rows.tilt, out=t)
    by_pair = t[-1].reshape(rows.pairs, -1)
    if rows.stripes == 1:
        np.maximum.accumulate(by_pair, axis=1, out=by_pair)
    else:
        for before, stripe in pairwise(t):
            np.maximum(before, stripe, out=stripe)
        np.maximum.accumulate(by_pair[:, :-1], axis=1, out=rows.block_run[:, 1:])
        np.maximum(t, rows.block_run.reshape(-1), out=t)
        rows.run_before[0, 1:] = t[-1, :-1]
        rows.run_two_before[0, 1:] = t[-2, :-1]
    np.subtract(rows.run_before, rows.costs, out=f)
    f[0, rows.column_0] = rows.lowest
    if problem.costs is not None:
        _start(rows, i, f)
    np.maximum(x, second, out=h)
    if codes is not None:
        _directions(rows, i, codes)


def _start(rows: _RowBuffers, i: int, gap: np.ndarray) -> None:
    """X of a row, of D and the gap that the other one may follow; and column 0."""
    problem, x = rows.problem, rows.x
    np.maximum(rows.d, gap, out=x)
    if problem.local:  # an array, since NumPy is slow to compare with a number
        rows.floor.fill(problem.extend * i)
        np.maximum(x, rows.floor, out=x)
    x[0, rows.column_0] = problem.extend * i if rows.border is None else rows.border


def _directions(rows: _RowBuffers, i: int, codes: np.ndarray) -> None:
    """The directions of a row, in the bits of a byte (see above)."""
    h, d, e, f, bits = rows.h, rows.d, rows.e, rows.f, rows.bits
    first, bytes_of_bits = codes.view(bool), bits.view(np.uint8)
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
    np.add(codes, rows.up_goes_on.view(np.uint8), out=codes)
    np.add(codes, codes, out=codes)
    # F[i,j] = F[i,j-1] - extend where the running maximum stays; not in column 1
    np.equal(rows.run_before, rows.run_two_before, out=bits)
    block, stripe = divmod(1, rows.stripes)
    bits[stripe, block :: rows.blocks] = False
    np.add(codes, bytes_of_bits, out=codes)
    codes[0, rows.column_0] = UP_BORDER if rows.border is not None else END


class _LocalEnds:
    """The best cell of each pair: the first row, then the first column; with tie the
    first column, then the first row."""

    def __init__(self, rows: _RowBuffers, paths: bool):
        self.rows, self.paths = rows, paths
        self.best = np.zeros(len(rows.m), rows.h.dtype)  # held like the values of a row
        self.i, self.j = np.zeros((2, len(rows.m)), np.int64)

    def see(self, i: int, count: int) -> None:
        rows, best, floor = self.rows, self.best[:count], self.rows.problem.extend * i
        if i:
            best += rows.problem.extend
        of_block = np.maximum.reduce(rows.h, axis=0).reshape(rows.pairs, -1)
        largest = np.maximum.reduce(of_block, axis=1)[:count]
        if not self.paths:
            np.maximum(best, largest, out=best)
            return
        tie = rows.problem.tie
        is_better = (largest >= best) & (largest > floor) if tie else largest > best
        pairs = is_better.nonzero()[0]
        if len(pairs) == 0:
            return
        block = of_block[pairs].argmax(axis=1)
        stripe = rows.h[:, pairs * rows.blocks + block].argmax(axis=0)
        columns = block * rows.stripes + stripe
        if tie:
            better = (largest[pairs] > best[pairs]) | (columns < self.j[pairs])
            pairs, columns = pairs[better], columns[better]
        best[pairs], self.i[pairs], self.j[pairs] = largest[pairs], i, columns

    def of_pairs(self):
        score = self.best.astype(np.int64) - self.rows.problem.extend * self.rows.m
        return score, self.i, self.j


class _BorderEnds:
    """H[m, n], or the best of row m and column n where those ends are free."""

    def __init__(self, rows: _RowBuffers, paths: bool):
        self.rows, pairs = rows, len(rows.m)
        self.wide = rows.stripes * rows.blocks
        self.last = np.empty((pairs, self.wide), rows.h.dtype)
        self.starts = np.searchsorted(
            -rows.m, -np.arange(int(rows.m.max()) + 1), "left"
        )
        self.block, self.stripe = np.divmod(rows.n, rows.stripes)
        self.block += np.arange(pairs) * rows.blocks
        self.column = None
        if "query_end" in rows.problem.free:
            size = int(rows.m.max()) + 1, pairs
            self.column = np.zeros(size, rows.h.dtype)

    def see(self, i: int, count: int) -> None:
        rows, start = self.rows, self.starts[i]
        if self.column is not None:
            corner = rows.h[self.stripe[:count], self.block[:count]]
            self.column[i, :count] = corner
        if start < count:
            row = rows.h.reshape(rows.stripes, rows.pairs, rows.blocks)
            row = row[:, start:count].transpose(1, 2, 0)
            self.last[start:count] = row.reshape(count - start, -1)

    def of_pairs(self):
        rows, problem = self.rows, self.rows.problem
        m, n = rows.m, rows.n
        lowest, pair = np.iinfo(np.int64).min, np.arange(len(m))
        last = self.last.astype(np.int64) - problem.extend * m[:, None]
        corner = last[pair, n]
        by_column = by_row = np.zeros(len(m), bool)
        row_score, row_j, column_score, column_i = corner, n, corner, m
        if "target_end" in problem.free:
            last[np.arange(self.wide) > n[:, None]] = lowest
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


M, I, D, DONE = 0, 1, 2, 3  # noqa: E741  (as in ``pairs.dp.walk``)
PAIR = 3  # a move: with costs by position, a gap F that closes follows a pair
MOVES = 64  # the key of a step is its directions + MOVES * the move of an open gap
STEPS_BETWEEN_LOOKS = 16
OTHER = np.array([M, D, I, DONE], np.uint8)  # an operation with the sides swapped


class RowsPaths(NamedTuple):
    """Where paths start, counts, int32 (P,), and uint8 operations (T, P) **from the end
    to the start**, ``DONE`` after the last."""

    i: np.ndarray
    j: np.ndarray
    identities: np.ndarray
    columns: np.ndarray
    gap_openings: np.ndarray
    gaps: np.ndarray
    steps: np.ndarray | None


def _step(directions: int, move: int) -> tuple[int, int]:
    """(operation, move after it) of a cell; ``move`` is M where no gap must go on, and
    PAIR where a pair must come."""
    border = {END: DONE, LEFT_BORDER: D, UP_BORDER: I}
    if directions >= END:
        return border.get(directions, DONE), M
    operation = M if move == PAIR else move
    if move == M and directions & STOP:
        operation = DONE
    elif move == M and not directions & DIAGONAL:
        operation = I if directions & VERTICAL else D
    goes_on = {I: UP_GOES_ON, D: LEFT_GOES_ON}.get(operation, 0)
    return operation, operation if directions & goes_on else M


STEPS = np.array([[_step(x, move) for x in range(MOVES)] for move in (M, I, D, PAIR)])
OPERATION = STEPS[..., 0].reshape(-1).astype(np.uint8)
NEXT_MOVE = STEPS[..., 1].reshape(-1).astype(np.intp) * MOVES
CLOSES_F = (OPERATION == D) & (NEXT_MOVE == M)
NEXT_MOVE_BY_POSITION = np.where(CLOSES_F, PAIR * MOVES, NEXT_MOVE)


def walk(
    filled: RowsFilled, queries: np.ndarray, targets: np.ndarray, wildcard: int
) -> RowsPaths:
    """Walk every pair to its start cell.

    filled : RowsFilled, with its codes
    queries, targets : uint8 codes (P, M), (P, N)
    wildcard : int, a letter whose pairs are not identical; 255 for none
    """
    steps = _steps(filled)
    going = steps != DONE
    is_gap = going & (steps != M)
    # Rows and columns left of each step; a cell is that of its step before it is left.
    i = filled.i - np.cumsum(going & (steps != D), axis=0)
    j = filled.j - np.cumsum(going & (steps != I), axis=0)
    pair = np.arange(steps.shape[1])
    start = (i[-1], j[-1]) if len(steps) else (filled.i, filled.j)
    t, p = np.nonzero(steps == M)
    query_codes, target_codes = queries[p, i[t, p]], targets[p, j[t, p]]
    same = (query_codes == target_codes) & (query_codes != wildcard)
    before = np.vstack([np.full((1, len(pair)), DONE, np.uint8), steps[:-1]])[
        : len(steps)
    ]
    opened = is_gap & (steps != before)
    start_i, start_j = (x.astype(np.int32) for x in start)
    columns, openings, gaps = (
        x.sum(axis=0, dtype=np.int32) for x in (going, opened, is_gap)
    )
    return RowsPaths(
        start_i,
        start_j,
        np.bincount(p[same], minlength=len(pair)).astype(np.int32),
        columns,
        openings,
        gaps,
        steps,
    )


def _steps(filled: RowsFilled) -> np.ndarray:
    """Operations, uint8 (T, P), from the end to the start."""
    table = filled.directions
    assert table is not None
    pairs, stripes, blocks = len(filled.i), table.stripes, table.blocks
    row_step = np.array([1, 1, 0, 0])[OPERATION]
    column_step = np.array([1, 0, 1, 0])[OPERATION]
    block, stripe = np.divmod(np.arange(stripes * blocks), stripes)
    row_wide = table.pairs * blocks  # of a stripe
    of_pair = np.arange(pairs) * blocks
    i, j = filled.i.copy(), filled.j.copy()
    # Of rows alike in one stripe, each cell is as far from the one before it.
    plain = stripes == 1 and table.pairs[-1] == pairs
    row = pairs * blocks
    away = np.array([row + 1, row, 1, 0])[OPERATION]
    at = i * row + of_pair + j
    longest = int((filled.i + filled.j).max(initial=0))
    steps = np.full((longest, pairs), DONE, np.uint8)
    move = np.zeros(pairs, np.intp)
    next_move = NEXT_MOVE_BY_POSITION if table.pair_before_f else NEXT_MOVE
    for t in range(longest):
        if not plain:
            at = table.starts.take(i) + stripe.take(j) * row_wide.take(i)
            at += of_pair + block.take(j)
        key = table.cells.take(at) + move
        OPERATION.take(key, out=steps[t], mode="clip")
        if plain:
            at -= away.take(key)
        else:
            i -= row_step.take(key)
            j -= column_step.take(key)
        move = next_move.take(key)
        if t % STEPS_BETWEEN_LOOKS == 0 and (steps[t] == DONE).all():
            break
    active = (steps != DONE).any(axis=1)
    return steps[: int(active.sum())]
