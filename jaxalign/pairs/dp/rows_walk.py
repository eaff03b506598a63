"""The walk of ``pairs.dp.walk`` in NumPy: all pairs of a fill by rows step together.

What a step does depends on the directions of its cell and on the move that a gap must
go on with, so tables say it: the operation, the move after it, and whether the cell
before is a row or a column away.
"""

from typing import NamedTuple

import numpy as np

from jaxalign.pairs.dp import rows

M, I, D, DONE = 0, 1, 2, 3  # noqa: E741  (as in ``pairs.dp.walk``)
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
    """(operation, move after it) of a cell; ``move`` is M where no gap must go on."""
    border = {rows.END: DONE, rows.LEFT_BORDER: D, rows.UP_BORDER: I}
    if directions >= rows.END:
        return border.get(directions, DONE), M
    operation = move
    if move == M and directions & rows.STOP:
        operation = DONE
    elif move == M and not directions & rows.DIAGONAL:
        operation = I if directions & rows.VERTICAL else D
    goes_on = {I: rows.UP_GOES_ON, D: rows.LEFT_GOES_ON}.get(operation, 0)
    return operation, operation if directions & goes_on else M


STEPS = np.array([[_step(x, move) for x in range(MOVES)] for move in (M, I, D)])
OPERATION = STEPS[..., 0].reshape(-1).astype(np.uint8)
NEXT_MOVE = STEPS[..., 1].reshape(-1).astype(np.intp) * MOVES


def walk(
    filled: rows.RowsFilled, queries: np.ndarray, targets: np.ndarray, wildcard: int
) -> RowsPaths:
    """Walk every pair to its start cell.

    Parameters
    ----------
    filled : RowsFilled
        With its codes.
    queries, targets : uint8 codes (P, M), (P, N)
    wildcard : int
        A letter whose pairs are not identical; 255 for none.
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
    one, other = queries[p, i[t, p]], targets[p, j[t, p]]
    same = (one == other) & (one != wildcard)
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


def _steps(filled: rows.RowsFilled) -> np.ndarray:
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
    for t in range(longest):
        if not plain:
            at = table.begin.take(i) + stripe.take(j) * row_wide.take(i)
            at += of_pair + block.take(j)
        key = table.cells.take(at) + move
        OPERATION.take(key, out=steps[t], mode="clip")
        if plain:
            at -= away.take(key)
        else:
            i -= row_step.take(key)
            j -= column_step.take(key)
        move = NEXT_MOVE.take(key)
        if t % STEPS_BETWEEN_LOOKS == 0 and (steps[t] == DONE).all():
            break
    left = (steps != DONE).any(axis=1)
    return steps[: int(left.sum())]
