"""The path of a long pair: blocks on it are filled again, from the end to the start.

Between the lines of a grid the path crosses few blocks. Such a block is filled again
with a grid of its own, until it is small: then it is filled with directions, and
walked. A walk that stops on the border of a block goes on in the next one, in the gap
that it was in.

Near a diagonal the path is found in bands, where that is proven. From a cell whose
score is known, the path goes up through a band of lanes to a line of the grid. Whatever
lies beside the band, or left of the block, is left out if no path of that score to the
cell comes from there (docs/recurrences.md).

*Lane* o has the cells (i, i + o) of a block, o = 1 ... W, below row 0, which is given.
What lies beside the lanes is left out: a path that leaves them passes one of the outer
lanes, whose best tells whether it can be as good as the path that is walked.
"""

from collections.abc import Callable, Generator
from contextlib import closing
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxalign.affine import Gaps, neg_inf
from jaxalign.one_function import CPU_OPTIONS, one_function
from jaxalign.pairs.dp import directions, matrix_rows, recurrence, walk, wavefront
from jaxalign.pairs.dp.matrix_rows import MAX_SELECT_CODES
from jaxalign.pairs.long.blocks import (
    MINUS_INFINITY,
    Fill,
    LineGrid,
    LongPair,
    ToCell,
    block_of,
    narrow,
)
from jaxalign.pairs.long.fill import fill_block
from jaxalign.runtime.devices import default_device, first_device, on_cpu
from jaxalign.runtime.pipeline import in_advance
from jaxalign.runtime.programs import program


class FilledBand(NamedTuple):
    """Lanes below a line, for walks from any cell of their last row.

    ``left`` and ``right`` are the most that a path scores at the last cell of lane 1,
    and of lane W, which was beside the lanes before or in this lane.
    """

    i: int  # of the line
    rows: int
    origin: int  # the column before lane 1 in row i
    codes: jax.Array  # uint8 (ROWS + W / 2 + 1, W)
    left: int
    right: int

    def holds(self, place: "WalkPlace") -> bool:
        """Whether a place is a cell of the last row."""
        lane = place.j - self.origin - self.rows
        return 0 < lane <= LANES and place.i == self.i + self.rows


class _Lanes(NamedTuple):
    """Cells of every other lane, on one anti-diagonal; all int32 (W / 2,)."""

    h: jax.Array
    e: jax.Array
    f: jax.Array
    best: jax.Array


class _BandInputs(NamedTuple):
    """Arrays of a band: the row above by the parity of lanes, scores, letters."""

    top: tuple
    scores: jax.Array  # int8 (A, M + W): of each row, reversed
    target: jax.Array  # uint8
    gaps: Gaps
    match: jax.Array


@program(("fused",), compiler_options=CPU_OPTIONS)
def fill_lanes(
    query: jax.Array,
    target: jax.Array,
    count: jax.Array,
    top: tuple[jax.Array, jax.Array],
    scores: jax.Array,
    gaps: Gaps,
    match: jax.Array,
    *,
    fused: bool,
):
    """Fill a band down to row ``count``: codes of its directions, uint8 (M + W / 2 + 1,
    W), and the best H - i * match of lane 1 and of lane W.

    query : uint8 (M,), with count <= M
    target : uint8 (M + W,)
    top : (H, E) of row 0, int32 (W,), of columns 1 ... W
    scores : int8 (A, A)
    """
    rows, half = query.shape[0], top[0].shape[0] // 2
    padding = jnp.zeros(half, query.dtype)
    letters = jnp.concatenate([padding, query, padding])[::-1]
    by_lane = [tuple(x[parity::2] for x in top) for parity in (0, 1)]
    by_row = scores[letters].T
    inputs = _BandInputs(tuple(by_lane), by_row, target, gaps, match)
    minus = jnp.full(half, neg_inf(top[0].dtype), top[0].dtype)
    start = (_Lanes(minus, minus, minus, minus),) * 2
    codes = jnp.zeros((rows + half + 1, 2 * half), jnp.uint8)
    run = one_function(partial(_steps, rows=rows, fused=fused), fused)
    (odd, even), codes = run(start, codes, inputs, count + half)
    return codes, odd.best[0], even.best[-1]


def _steps(
    start: tuple,
    codes: jax.Array,
    inputs: _BandInputs,
    count: jax.Array,
    *,
    rows: int,
    fused: bool,
):
    """Two anti-diagonals a step: i + j = 2 s + 1, of odd lanes, and 2 s + 2, of even
    ones. In lane 2 k + 1 or 2 k + 2 both have i = s - k."""
    half = start[0].h.shape[0]
    minus = lax.full((half,), neg_inf(start[0].h.dtype), start[0].h.dtype)
    k = lax.iota(jnp.int32, half)
    gaps = Gaps(*(lax.broadcast(g, (half,)) for g in inputs.gaps))
    as_function = partial(one_function, enabled=fused)
    match = lax.broadcast(inputs.match, (half,))
    cells = as_function(partial(_cells, gaps=gaps, match=match))

    def step(s: jax.Array, state: tuple):
        (odd, even), codes = state
        i = lax.broadcast(s, (half,)) - k
        first = jnp.int32(rows + half) - s
        by_letter = [
            lax.dynamic_slice_in_dim(row, first, half)
            for row in (lax.index_in_dim(inputs.scores, a, keepdims=False)
                        for a in range(inputs.scores.shape[0]))
        ]  # fmt: skip
        left = [lax.concatenate([minus[:1], x[:-1]], 0) for x in (even.h, even.f)]
        up = even.h, even.e
        text = lax.dynamic_slice_in_dim(inputs.target, s, half)
        new_odd, code = cells(odd, up, tuple(left), i, by_letter, text, inputs.top[0])
        up = [lax.concatenate([x[1:], minus[:1]], 0) for x in (new_odd.h, new_odd.e)]
        left = new_odd.h, new_odd.f
        text = lax.dynamic_slice_in_dim(inputs.target, s + 1, half)
        new_even, code_even = cells(
            even, tuple(up), left, i, by_letter, text, inputs.top[1]
        )
        row = lax.concatenate([code, code_even], 0)
        return (new_odd, new_even), matrix_rows.put_row(codes, row, s)

    return lax.fori_loop(0, count, step, (start, codes))


def _cells(
    lanes: _Lanes,
    up: tuple,
    left: tuple,
    i: jax.Array,
    by_letter: list[jax.Array],
    text: jax.Array,
    top: tuple,
    *,
    gaps: Gaps,
    match: jax.Array,
):
    """New cells of lanes, and their directions."""
    s = matrix_rows.by_code(by_letter, text).astype(i.dtype)
    on_border = i == lax.full_like(i, 0)
    e = recurrence.gap(up[1], up[0], gaps)
    f = recurrence.gap(left[1], left[0], gaps)
    h = recurrence.best(lanes.h, s, e, f, False)
    cell = recurrence.compared(h, e, f, lanes.h + s, up[1], left[1], gaps, gaps, None)
    code = directions.nibble(cell, False, jnp.uint8)
    h, e = lax.select(on_border, top[0], h), lax.select(on_border, top[1], e)
    f = lax.select(on_border, lax.full_like(f, neg_inf(f.dtype)), f)
    return _Lanes(h, e, f, lax.max(lanes.best, h - i * match)), code


@program()
def walk_lanes(codes: jax.Array, i: jax.Array, j: jax.Array, move: jax.Array):
    """Walk through the codes of a band from (i, j) to row 0: the column there, move,
    how many steps, and these, uint8, from the end."""
    half = codes.shape[1] // 2

    def nibble_at(i: jax.Array, j: jax.Array):
        lane = j - i - 1
        column = (lane & 1) * half + (lane >> 1)
        return codes.at[i + (lane >> 1), column].get(mode="clip").astype(jnp.int32)

    longest = 2 * (codes.shape[0] - 1)
    walked = walk_to_border(nibble_at, i, j, move, longest)
    return walked.j[0], walked.move[0], walked.columns[0], walked.steps[:, 0]


def walk_to_border(
    nibble_at: Callable, i: jax.Array, j: jax.Array, move: jax.Array, longest: int
):
    """The ``walk.walk`` from one cell, in a gap or not, to row 0 or column 0."""
    steps = jnp.full((longest, 1), walk.DONE, jnp.uint8)
    initial = walk.start(i[None], j[None], steps)._replace(move=move[None])
    always = jnp.ones((), bool)

    def same_at(i: jax.Array, _: jax.Array):
        return i < 0

    rules = walk.WalkBorders(always, always, jnp.int32(-1))
    return walk.walk(initial, nibble_at, same_at, rules)


class WalkPlace(NamedTuple):
    """Where a walk is, and the operation that its gap has to go on with, else M.

    ``score`` is H of the cell, or E or F where a gap goes on.
    """

    i: int
    j: int
    score: int
    move: int = walk.M
    ended: bool = False
    reach: int = 0  # rows of the next band, or 0: as long bands as there are

    def after(
        self, pair: LongPair, steps: np.ndarray, cell: tuple[int, int], move: int
    ) -> "WalkPlace":
        """The place in another cell, some steps on."""
        # The score of steps from a place. Opening a gap is paid by its last letter on
        # the way to the start, which is none of them if the gap goes on.
        pairs = steps == walk.M
        i = self.i - np.cumsum(steps != walk.D)[pairs]
        j = self.j - np.cumsum(steps != walk.I)[pairs]
        paired = int(pair.scores[pair.query[i], pair.target[j]].sum(dtype=np.int64))
        gaps = steps[~pairs]
        turns = np.ones(len(steps), bool)
        turns[1:] = steps[1:] != steps[:-1]
        opened = int((turns & ~pairs).sum()) - (move != walk.M and len(steps) > 0)
        score = self.score - (
            paired - pair.extend * len(gaps) - (pair.open - pair.extend) * opened
        )
        return WalkPlace(*cell, score, move, reach=self.reach)


LANES = 256
ROWS = 2048  # of a band at most
MOST_AHEAD = 8  # bands: with a GPU a walk takes about a tenth of the time of a band


class Bands:
    """The bands of a grid one after the other, from below.

    The fill of a band needs no more of the walk than about where it enters. So threads
    fill the next bands meanwhile, around the best of the line that each ends in. What
    the walk does not enter or cannot prove is filled again: the path is the same for
    any number of threads.
    """

    def __init__(self, pair: LongPair, grid: LineGrid, threads: int = 1):
        self.pair, self.grid = pair, grid
        self.threads, self.device = min(threads, MOST_AHEAD), default_device()
        self.match = max(int(pair.scores.max(initial=0)), 0)
        self.lines = {grid.block.i: grid.block.top, **grid.rows}
        few_codes = pair.scores.shape[1] <= MAX_SELECT_CODES
        self.fits = few_codes and pair.problem.scores.dtype == np.int8
        self.prefetch: Generator | None = None
        self.place = WalkPlace(0, 0, 0)
        # That of the last band which was filled ahead. If that proved nothing, the walk
        # goes there alone.
        self.line = grid.block.i + grid.block.rows

    def through(self, place: WalkPlace, pieces: list[np.ndarray]) -> WalkPlace | None:
        """Walk to a line of the grid above a cell, or None where no band leads to
        one."""
        if not self.fits:
            return None
        self.place, limit = place, place.reach or ROWS
        if self.threads > 1 and place.i <= self.line:
            band = self._next(place)
            next_place = None if band is None else self._walk(place, band, pieces)
            if next_place is not None:
                return next_place._replace(reach=ROWS)
            limit = limit if band is None else band.rows // 2
        least = self.line if self.line < place.i else self.grid.block.i
        while (i := self._line_above(place.i, limit, least)) is not None:
            next_place = self._to_line(place, i, pieces)
            if next_place is not None:
                return next_place._replace(reach=min(2 * limit, ROWS))
            limit = (place.i - i) // 2
        return None

    def close(self) -> None:
        """Drop the bands that are filled ahead."""
        if self.prefetch is not None:
            self.prefetch.close()
        self.prefetch = None

    def _line_above(self, i: int, reach: int, least: int) -> int | None:
        return min((k for k in self.lines if least <= k < i <= k + reach), default=None)

    def _next(self, place: WalkPlace) -> FilledBand | None:
        """The band above a place, filled ahead, if there is one."""
        for _ in range(2):
            self.prefetch = self.prefetch or self._filled_ahead(place.i)
            self.line, band = next(self.prefetch, (place.i, None))
            if band is not None and band.holds(place):
                return band
            if band is None and self.line < place.i:  # it has no room
                return None
            self.close()
        return None

    def _filled_ahead(self, end: int) -> Generator:
        """Lines above a row and the bands below them, filled in threads."""

        def guesses():
            below = end
            while (i := self._line_above(below, ROWS, self.grid.block.i)) is not None:
                yield below, i, self.place.j - (self.place.i - below)
                below = i

        def filled(guess: tuple[int, int, int]) -> tuple[int, FilledBand | None]:
            below, i, j = guess
            with jax.default_device(self.device):  # threads do not inherit it
                j = self._best_near(below, j) if below < end else j
                return i, self._fill(below, i, j)

        return in_advance(filled, guesses(), self.threads)

    def _best_near(self, i: int, j: int) -> int:
        """The column of the highest H of a line near a diagonal: most probably the path
        passes there, or nearly."""
        outer, around = self.grid.block, 4 * LANES
        first = max(j - outer.j - around, 0)
        last = min(j - outer.j + around, outer.columns)
        if first > last:
            return j
        return outer.j + first + int(self.lines[i].part(first, last).h.argmax())

    def _to_line(
        self, place: WalkPlace, i: int, pieces: list[np.ndarray]
    ) -> WalkPlace | None:
        if self._begins_beside(place, i):
            return None
        band = self._fill(place.i, i, place.j, place.score)
        return None if band is None else self._walk(place, band, pieces)

    def _fill(
        self, end: int, i: int, j: int, score: int | None = None
    ) -> FilledBand | None:
        """The band from a line to the cell (end, j) in its middle lane, or None where
        it has no room, or proves nothing of paths of some score."""
        pair, outer, rows = self.pair, self.grid.block, end - i
        # Column 0 of the band is a column of the block.
        origin = j - rows - LANES // 2
        if origin < outer.j or rows > ROWS:
            return None
        line, start = self.lines[i], origin - outer.j
        last = min(start + LANES, outer.columns)
        to = ToCell(rows, start + rows + 1, self.match, pair.extend)
        left = line.most_beside(start + 1, outer.columns, to)
        to = to._replace(column=start + rows + LANES)
        right = line.most_beside(0, last, to)
        if score is not None and self._most_outside(left, right, LANES // 2) >= score:
            return None
        inside = line.part(start + 1, last)
        top = np.full((2, LANES), MINUS_INFINITY, np.int32)
        top[0, : len(inside.h)], top[1, : len(inside.gap)] = inside
        query, target = np.zeros(ROWS, np.uint8), np.zeros(ROWS + LANES, np.uint8)
        query[:rows] = pair.query[i:end]
        letters = pair.target[origin : origin + rows + LANES]
        target[: len(letters)] = letters
        with on_cpu():
            codes, below, above = fill_lanes(
                query, target, np.int32(rows), (top[0], top[1]), pair.problem.scores,
                pair.problem.gaps, np.int32(self.match),
                fused=first_device().platform == "cpu",
            )  # fmt: skip
        left = max(left, int(below) + self.match * rows)
        right = max(right, int(above) + self.match * rows)
        return FilledBand(i, rows, origin, codes, left, right)

    def _walk(
        self, place: WalkPlace, band: FilledBand, pieces: list[np.ndarray]
    ) -> WalkPlace | None:
        """Walk through a band, if no path of the score of the place leaves it."""
        lane = place.j - band.origin - band.rows
        outside = self._most_outside(band.left, band.right, lane)
        if outside >= place.score or self._begins_beside(place, band.i):
            return None
        j = np.int32(place.j - band.origin)
        with on_cpu():
            walked = walk_lanes(
                band.codes, np.int32(band.rows), j, np.int32(place.move)
            )
        j, move, count, steps = map(np.asarray, walked)
        steps = steps[: int(count)]
        pieces.append(steps)
        cell = band.i, band.origin + int(j)
        return place.after(self.pair, steps, cell, int(move))

    def _most_outside(self, left: int, right: int, lane: int) -> int:
        """Bound the score, at the last cell of a lane, of paths that leave the band.
        Further right a gap from the left is longer, and one from the right shorter,
        with more pairs."""
        extend, away = self.pair.extend, LANES - lane
        return max(left - extend * (lane - 1), right - (self.match + extend) * away)

    def _begins_beside(self, place: WalkPlace, i: int) -> bool:
        """Whether a path of the score of a place may come from the left of the block,
        or, in local mode, from a cell below a line, where it begins."""
        outer, rows = self.grid.block, place.i - i
        if self.pair.local and self.match * rows >= place.score:
            return True
        left = outer.left.h[i - outer.i : place.i - outer.i + 1].astype(np.int64)
        across = ToCell(place.j - outer.j, rows, self.match, self.pair.extend)
        return int(across.most(np, left, np.arange(rows + 1)).max()) >= place.score


LEAF_ROWS, LEAF_COLUMNS = 512, 1024
empty_codes = program(("rows", "columns"))(wavefront.empty_codes)


def path(
    pair: LongPair,
    grids: list[LineGrid],
    end: tuple[int, int],
    score: int,
    fill: Fill,
    threads: int = 1,
) -> tuple:
    """The path to a cell of some score: start cell, and operations in reading order,
    uint8.

    grids : of slabs of columns that make up the table, the first on the left
    threads : that fill bands of the path ahead, which changes nothing of it
    """
    pieces: list[np.ndarray] = []
    place = WalkPlace(*end, score)
    for grid in reversed(grids):
        if grid.block.j < place.j:
            place = _through(pair, grid, place, fill, threads, pieces)
    i, j = place.i, place.j
    if not place.ended:
        if i == 0 and j and not (pair.local or "target_start" in pair.free):
            pieces.append(np.full(j, walk.D, np.uint8))
            j = 0
        elif j == 0 and i and not (pair.local or "query_start" in pair.free):
            pieces.append(np.full(i, walk.I, np.uint8))
            i = 0
    steps = np.concatenate([np.zeros(0, np.uint8), *pieces])[::-1]
    return (i, j), steps


def _through(
    pair: LongPair,
    grid: LineGrid,
    place: WalkPlace,
    fill: Fill,
    threads: int,
    pieces: list[np.ndarray],
) -> WalkPlace:
    """Walk to the border of the block of a grid, or to the start."""
    outer = grid.block
    with closing(Bands(pair, grid, threads)) as bands:
        while not place.ended and place.i > outer.i and place.j > outer.j:
            above = bands.through(place, pieces)
            if above is not None:
                place = above
                continue
            block = block_of(grid, place.i, place.j)
            if block.rows > LEAF_ROWS or block.columns > LEAF_COLUMNS:
                # No other path to this cell is asked for.
                end = place.i, place.j
                inner = fill(pair, block, place.score, until=end)
                place = _through(pair, inner, place, fill, threads, pieces)
                continue
            # A small block is filled with directions, and walked from its last cell.
            # All have room for the largest: another program takes longer to compile.
            rows, columns = LEAF_ROWS, LEAF_COLUMNS
            query, target = np.zeros(rows, np.int32), np.zeros(columns, np.int32)
            query[: block.rows] = pair.query[block.i : place.i]
            target[: block.columns] = pair.target[block.j : place.j]
            size = np.int32(block.rows), np.int32(block.columns)
            with on_cpu():
                codes = empty_codes(rows=rows, columns=columns)
                inputs = narrow(pair, block)
                leaf = fill_block(pair, inputs, query, target, *size, codes)
                walked = _walk(leaf.codes, *size, np.int32(place.move), columns=columns)
                i, j, move, ended, count, steps = map(np.asarray, walked)
            pieces.append(steps[: int(count)])
            cell = block.i + int(i), block.j + int(j)
            place = place.after(pair, pieces[-1], cell, int(move))
            place = place._replace(ended=bool(ended))
    return place


@program(("columns",))
def _walk(
    codes: jax.Array, m: jax.Array, n: jax.Array, move: jax.Array, *, columns: int
):
    """Where a walk from (m, n) leaves a block: i, j, move, whether it ended before, how
    many steps, and these."""

    def nibble_at(i: jax.Array, j: jax.Array):
        return codes.at[i + j, i].get(mode="clip").astype(jnp.int32)

    longest = codes.shape[1] - 1 + columns
    walked = walk_to_border(nibble_at, m, n, move, longest)
    i, j, count = walked.i[0], walked.j[0], walked.columns[0]
    return i, j, walked.move[0], (i > 0) & (j > 0), count, walked.steps[:, 0]


def counts_of(pair: LongPair, start: tuple[int, int], steps: np.ndarray) -> dict:
    """The counts of a path, as a ``PairResult`` has them."""
    gap = steps != walk.M
    opens = gap.copy()
    opens[1:] &= steps[1:] != steps[:-1]
    i = start[0] + np.cumsum(steps != walk.D)[~gap] - 1
    j = start[1] + np.cumsum(steps != walk.I)[~gap] - 1
    letters = pair.query[i]
    same = (letters == pair.target[j]) & (letters != int(pair.problem.wildcard))
    return {
        "identities": int(same.sum()),
        "columns": len(steps),
        "gap_openings": int(opens.sum()),
        "gaps": int(gap.sum()),
    }
