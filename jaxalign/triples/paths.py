"""Paths through triples, many at once: their gapped rows, and their scores counted anew
from their columns.

Paths stand one after the other in one array, so that a batch takes as many steps in
Python as one path.
"""

from functools import cache
from itertools import accumulate

import numpy as np

from jaxalign.triples.dp.recurrence import COLUMNS, PAIRS

BITS = (np.arange(8)[:, None] >> np.array([2, 1, 0])) & 1  # of columns: residues


def letters_of(triples, parts, reverse=False) -> list[np.ndarray]:
    """Along each axis the codes of all parts, one after the other."""
    step, pairs = -1 if reverse else 1, list(zip(triples, parts, strict=True))
    return [
        np.concatenate([t.codes[n][p.low[n] : p.high[n]][::step] for t, p in pairs])
        for n in range(3)
    ]


def scores_of(triples, parts, letters, paths) -> list[int] | None:
    """Scores of paths, counted from their columns alone.

    Parameters
    ----------
    triples, parts
        Of one model, cost and matrices; no part is empty.
    letters : three uint8 arrays
        What ``letters_of`` gives.
    paths : list of uint8 arrays
        Columns from the start of each part to its end.

    Returns
    -------
    list of int, or None
        None where a path does not lead from the start of its part to its end in the
        state asked for.
    """
    steps, (starts, ends) = _joined(paths)
    if not len(steps) or steps.max() > 7 or (starts == ends).any():
        return None
    first, last = _states(triples[0], parts)
    before = np.append(np.uint8(0), steps[:-1])
    before[starts] = first
    owner = np.repeat(np.arange(0, 64 * len(paths), 64), ends - starts)
    moves = np.bincount(owner + (8 * before + steps), minlength=64 * len(paths))
    moves = moves.reshape(-1, 8, 8)
    residues = moves.sum(axis=1) @ BITS
    if residues.tolist() != [list(part.extent) for part in parts]:
        return None
    if not ((last == 0) | (last == steps[ends - 1])).all():
        return None
    gaps = (moves * _gap_costs(*triples[0].cost)).sum(axis=(1, 2))
    pairs = _pair_scores(triples[0].matrices, letters, steps)
    return (np.add.reduceat(pairs, starts, dtype=np.int64) - gaps).tolist()


def texts_of(alphabet, letters, paths) -> list:
    """For each path its three gapped rows, as texts."""
    steps, bounds = _joined(paths)
    ascii_of = np.frombuffer((alphabet.letters + "-").encode(), np.uint8)
    rows = _rows_of(alphabet.size, letters, steps)
    a, b, c = (ascii_of[row].tobytes().decode() for row in rows)
    pairs = zip(*bounds.tolist(), strict=True)
    return [(a[at:to], b[at:to], c[at:to]) for at, to in pairs]


def _rows_of(gap, letters, steps):
    """Of each sequence the rows of all paths, uint8 codes, ``gap`` for a gap."""
    rows = np.full((3, len(steps)), gap, np.uint8)
    for axis, row in enumerate(rows):
        row[steps & (4 >> axis) > 0] = letters[axis]
    return rows


def _joined(paths):
    """(all columns, (starts, ends) of the paths in them)."""
    ends = np.fromiter(accumulate(map(len, paths), initial=0), np.intp)
    return np.concatenate(paths), np.stack([ends[:-1], ends[1:]])


def _states(triple, parts):
    """Columns before the first of each path, and last ones; 0 for any."""
    if triple.model.states == 1:  # its only state is no column
        return COLUMNS[0], np.zeros(len(parts), np.uint8)
    first = [COLUMNS[part.start] for part in parts]
    last = [0 if part.end is None else COLUMNS[part.end] for part in parts]
    return np.array(first, np.uint8), np.array(last, np.uint8)


@cache
def _gap_costs(gap_open: int, gap_extend: int) -> np.ndarray:
    """(8, 8): what the gaps of a column cost, [the column before, column]."""
    costs = np.zeros((8, 8), np.int64)
    for x, y in PAIRS:
        pair = BITS[:, [x, y]]
        gap = pair[:, 0] != pair[:, 1]
        goes_on = (pair[:, None] == pair[None]).all(axis=2)
        costs += gap * np.where(goes_on, gap_extend, gap_open)
    return costs


def _pair_scores(matrices, letters, steps):
    """Of every column the scores of its pairs of residues, int32."""
    size = len(matrices[0]) + 1
    rows = _rows_of(size - 1, letters, steps)
    total = np.zeros(len(steps), np.int32)
    for (x, y), matrix in zip(PAIRS, matrices, strict=True):
        scores = np.zeros((size, size), np.int32)  # no score for a gap
        scores[:-1, :-1] = matrix
        total += scores.ravel().take(rows[x] * np.uint16(size) + rows[y])
    return total
