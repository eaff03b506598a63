"""The path through a part of a table that is near a diagonal, where that is proven.

From a cell whose score is known, the path goes up through a band of lanes to a line of
the grid. Whatever lies beside the band, or left of the block, is left out if no path of
that score to the cell comes from there (docs/recurrences.md).

*Lane* o has the cells (i, i + o) of a block, o = 1 ... W, below row 0, which is given.
What lies beside the lanes is left out: a path that leaves them passes one of the outer
lanes, whose best tells whether it can be as good as the path that is walked.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxalign.affine import Gaps, neg_inf
from jaxalign.one_function import CPU_OPTIONS, one_function
from jaxalign.pairs.dp import directions, matrix_rows, recurrence, walk
from jaxalign.pairs.dp.matrix_rows import MAX_SELECT_CODES
from jaxalign.pairs.long.blocks import MINUS_INFINITY, Line, LineGrid, LongPair, ToCell
from jaxalign.runtime.devices import first_device, on_cpu
from jaxalign.runtime.programs import program


class BandWalk(NamedTuple):
    """Where a walk leaves a band on row 0, and the best H - i * match of the cells of
    either outer lane."""

    j: jax.Array
    move: jax.Array
    count: jax.Array
    steps: jax.Array  # uint8 (T,), from the end
    below: jax.Array  # lane 1
    above: jax.Array  # lane W


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
def fill_and_walk(
    query: jax.Array,
    target: jax.Array,
    i: jax.Array,
    j: jax.Array,
    move: jax.Array,
    top: tuple[jax.Array, jax.Array],
    scores: jax.Array,
    gaps: Gaps,
    match: jax.Array,
    *,
    fused: bool,
):
    """Fill a band, and walk from cell (i, j) to row 0.

    Parameters
    ----------
    query : uint8 (M,), with i <= M
    target : uint8 (M + W,)
    top : (H, E) of row 0, int32 (W,), of columns 1 ... W
    scores : int8 (A, A)
    """
    rows, half = query.shape[0], top[0].shape[0] // 2
    beside = jnp.zeros(half, query.dtype)
    letters = jnp.concatenate([beside, query, beside])[::-1]
    by_lane = [tuple(x[parity::2] for x in top) for parity in (0, 1)]
    by_row = scores[letters].T
    given = _BandInputs(tuple(by_lane), by_row, target, gaps, match)
    minus = jnp.full(half, neg_inf(top[0].dtype), top[0].dtype)
    start = (_Lanes(minus, minus, minus, minus),) * 2
    codes = jnp.zeros((rows + half + 1, 2 * half), jnp.uint8)
    steps = i + ((j - i - 1) >> 1) + 1
    run = one_function(partial(_steps, rows=rows, fused=fused), fused)
    (odd, even), codes = run(start, codes, given, steps)
    walked = _walk(codes, i, j, move, half, 2 * rows + 2 * half)
    return BandWalk(
        walked.j[0], walked.move[0], walked.columns[0], walked.steps[:, 0],
        odd.best[0], even.best[-1],
    )  # fmt: skip


def _steps(
    start: tuple,
    codes: jax.Array,
    given: _BandInputs,
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
    gaps = Gaps(*(lax.broadcast(g, (half,)) for g in given.gaps))
    alone = partial(one_function, enabled=fused)
    cells = alone(partial(_cells, gaps=gaps, match=lax.broadcast(given.match, (half,))))

    def step(s: jax.Array, state: tuple):
        (odd, even), codes = state
        i = lax.broadcast(s, (half,)) - k
        first = jnp.int32(rows + half) - s
        by_letter = [
            lax.dynamic_slice_in_dim(row, first, half)
            for row in (lax.index_in_dim(given.scores, a, keepdims=False)
                        for a in range(given.scores.shape[0]))
        ]  # fmt: skip
        left = [lax.concatenate([minus[:1], x[:-1]], 0) for x in (even.h, even.f)]
        up = even.h, even.e
        text = lax.dynamic_slice_in_dim(given.target, s, half)
        new_odd, code = cells(odd, up, tuple(left), i, by_letter, text, given.top[0])
        up = [lax.concatenate([x[1:], minus[:1]], 0) for x in (new_odd.h, new_odd.e)]
        left = new_odd.h, new_odd.f
        text = lax.dynamic_slice_in_dim(given.target, s + 1, half)
        new_even, more = cells(even, tuple(up), left, i, by_letter, text, given.top[1])
        row = lax.concatenate([code, more], 0)
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
    given = i == lax.full_like(i, 0)
    e = recurrence.gap(up[1], up[0], gaps)
    f = recurrence.gap(left[1], left[0], gaps)
    h = recurrence.best(lanes.h, s, e, f, False)
    cell = recurrence.compared(h, e, f, lanes.h + s, up[1], left[1], gaps, gaps, None)
    code = directions.nibble(cell, False, jnp.uint8)
    h, e = lax.select(given, top[0], h), lax.select(given, top[1], e)
    f = lax.select(given, lax.full_like(f, neg_inf(f.dtype)), f)
    return _Lanes(h, e, f, lax.max(lanes.best, h - i * match)), code


def _walk(
    codes: jax.Array,
    i: jax.Array,
    j: jax.Array,
    move: jax.Array,
    half: int,
    longest: int,
):
    def nibble_at(i: jax.Array, j: jax.Array):
        lane = j - i - 1
        column = (lane & 1) * half + (lane >> 1)
        return codes.at[i + (lane >> 1), column].get(mode="clip").astype(jnp.int32)

    return walk_to_border(nibble_at, i, j, move, longest)


def walk_to_border(
    nibble_at: Callable, i: jax.Array, j: jax.Array, move: jax.Array, longest: int
):
    """The ``walk.walk`` from one cell, in a gap or not, to row 0 or column 0."""
    steps = jnp.full((longest, 1), walk.DONE, jnp.uint8)
    begin = walk.start(i[None], j[None], steps)._replace(move=move[None])
    always = jnp.ones((), bool)

    def same_at(i: jax.Array, _: jax.Array):
        return i < 0

    rules = walk.WalkBorders(always, always, jnp.int32(-1))
    return walk.walk(begin, nibble_at, same_at, rules)


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
        score = self.score - _score(pair, self, steps, move)
        return WalkPlace(*cell, score, move, reach=self.reach)


def _score(pair: LongPair, place: WalkPlace, steps: np.ndarray, move: int) -> int:
    """The score of steps from a place. Opening a gap is paid by its last letter on the
    way to the start, which is none of them if the gap goes on."""
    pairs = steps == walk.M
    i = place.i - np.cumsum(steps != walk.D)[pairs]
    j = place.j - np.cumsum(steps != walk.I)[pairs]
    paired = int(pair.scores[pair.query[i], pair.target[j]].sum(dtype=np.int64))
    gaps = steps[~pairs]
    turns = np.ones(len(steps), bool)
    turns[1:] = steps[1:] != steps[:-1]
    opened = int((turns & ~pairs).sum()) - (move != walk.M and len(steps) > 0)
    return paired - pair.extend * len(gaps) - (pair.open - pair.extend) * opened


LANES = 256
ROWS = 2048  # of a band at most


def through(
    pair: LongPair, grid: LineGrid, place: WalkPlace, pieces: list[np.ndarray]
) -> WalkPlace | None:
    """Walk to a line of a grid above a cell, or None where no band leads to one."""
    if pair.scores.shape[1] > MAX_SELECT_CODES or pair.problem.scores.dtype != np.int8:
        return None
    lines = {grid.block.i: grid.block.top, **grid.rows}
    most = place.reach or ROWS
    while near := [i for i in lines if 0 < place.i - i <= most]:
        i = min(near)
        new = _to_line(pair, grid, place, i, lines[i], pieces)
        if new is not None:
            return new._replace(reach=min(2 * most, ROWS))
        most = (place.i - i) // 2
    return None


def _to_line(
    pair: LongPair,
    grid: LineGrid,
    place: WalkPlace,
    i: int,
    line: Line,
    pieces: list[np.ndarray],
) -> WalkPlace | None:
    outer, rows = grid.block, place.i - i
    # The end lies in the middle lane; column 0 of the band is a column of the block.
    origin = place.j - rows - LANES // 2
    if origin < outer.j or rows > ROWS:
        return None
    first, last = origin + 1, min(origin + LANES, outer.j + outer.columns)
    inside = line.part(first - outer.j, last - outer.j)
    top = np.full((2, LANES), MINUS_INFINITY, np.int32)
    top[0, : len(inside.h)], top[1, : len(inside.gap)] = inside
    if _reaches_beside(pair, grid, place, i, line, (first, last)):
        return None
    query, target = np.zeros(ROWS, np.uint8), np.zeros(ROWS + LANES, np.uint8)
    query[:rows] = pair.query[i : place.i]
    letters = pair.target[origin : origin + rows + LANES]
    target[: len(letters)] = letters
    match = max(int(pair.scores.max(initial=0)), 0)
    with on_cpu():
        walked = fill_and_walk(
            query, target, np.int32(rows), np.int32(place.j - origin),
            np.int32(place.move), (top[0], top[1]), pair.problem.scores,
            pair.problem.gaps, np.int32(match),
            fused=first_device().platform == "cpu",
        )  # fmt: skip
    beside = LANES // 2
    below = int(walked.below) + match * rows - pair.extend * (beside - 1)
    above = int(walked.above) + match * (rows - beside) - pair.extend * beside
    if max(below, above) >= place.score:
        return None
    steps = np.asarray(walked.steps)[: int(walked.count)]
    pieces.append(steps)
    return place.after(pair, steps, (i, origin + int(walked.j)), int(walked.move))


def _reaches_beside(
    pair: LongPair,
    grid: LineGrid,
    place: WalkPlace,
    i: int,
    line: Line,
    lanes: tuple[int, int],
) -> bool:
    """Whether a path of the score of a place may come from beside the lanes: from
    elsewhere in the line, from the left of the block, or, in local mode, from a cell
    below the line, where it begins."""
    outer, rows = grid.block, place.i - i
    match = max(int(pair.scores.max(initial=0)), 0)
    if pair.local and match * rows >= place.score:
        return True
    first, last = (column - outer.j for column in lanes)
    to = ToCell(rows, place.j - outer.j, match, pair.extend)
    if line.most_beside(first, last, to) >= place.score:
        return True
    left = outer.left.h[i - outer.i : place.i - outer.i + 1].astype(np.int64)
    across = ToCell(place.j - outer.j, rows, match, pair.extend)
    return int(across.most(np, left, np.arange(rows + 1)).max()) >= place.score
