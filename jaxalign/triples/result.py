"""From the columns of paths to rows, to scores counted anew, and to results.

Paths stand one after the other in one array, so that a batch takes as many steps in
Python as one path.
"""

from functools import cache
from itertools import accumulate
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from jaxalign.model.triple import TripleAlignment
from jaxalign.triples.dp.recurrence import COLUMN_ORDER, SEQUENCE_PAIRS

RESIDUES_OF_COLUMN = (np.arange(8)[:, None] >> np.array([2, 1, 0])) & 1  # (8, 3)


class ScoredPath(NamedTuple):
    """A score, the region it belongs to, and its path: the columns from start to end,
    or None for scores alone."""

    score: int
    region: Any
    columns: np.ndarray | None = None


def alignments(texts, names, scoring, plan, triples, paths) -> list[TripleAlignment]:
    """The results of triples from their ``ScoredPath``: rows in the caller's order,
    scores unscaled."""
    rows, out = _rows(scoring.alphabet, triples, paths), []
    for n, (triple, (score, region, _)) in enumerate(zip(triples, paths, strict=True)):
        back, tally = _back(triple.order), triple.tally
        spans = tuple(zip(back(region.low), back(region.high), strict=True))
        alignment = TripleAlignment(
            sequences=texts[n],
            names=names[n],
            score=score if scoring.scale == 1 else score / scoring.scale,
            gapped=None if rows is None else back(rows[n]),
            spans=None if rows is None else spans,
            scoring=scoring,
            gap_model=triple.model.name,
            mode=triple.mode,
            schedule=plan.schedule,
            traceback=plan.traceback,
            implementation=plan.implementation,
            cells=tally.cells,
            seconds=dict(tally.seconds),
            bytes=tally.face_bytes | {"planned": plan.bytes},
        )
        out.append(alignment)
    return out


def _rows(alphabet, triples, paths):
    """The gapped rows of every path, or None for scores alone."""
    _, regions, columns = zip(*paths, strict=True)
    if columns[0] is None:
        return None
    return texts_of(alphabet, letters_of(triples, regions), columns)


@cache
def _back(order):
    """Three things in the order of the axes -> in the caller's."""
    return itemgetter(*(order.index(n) for n in range(3)))


def letters_of(triples, regions, reverse=False) -> list[np.ndarray]:
    """Along each axis the codes of all regions, one after the other."""
    step, pairs = -1 if reverse else 1, list(zip(triples, regions, strict=True))
    return [
        np.concatenate([t.codes[n][p.low[n] : p.high[n]][::step] for t, p in pairs])
        for n in range(3)
    ]


def scores_of(triples, regions, letters, paths) -> list[int] | None:
    """Scores of paths, counted from their columns alone; None where a path does not
    lead from the start of its region to its end, in its end state.

    The triples have one model, cost and matrices, and no region is empty. ``letters``
    are those of ``letters_of``; ``paths`` are uint8 columns from the start of each
    region to its end.
    """
    steps, (starts, ends) = _join(paths)
    if not len(steps) or steps.max() > 7 or (starts == ends).any():
        return None
    first, last = _states(triples[0], regions)
    before = np.append(np.uint8(0), steps[:-1])
    before[starts] = first
    owner = np.repeat(np.arange(0, 64 * len(paths), 64), ends - starts)
    moves = np.bincount(owner + (8 * before + steps), minlength=64 * len(paths))
    moves = moves.reshape(-1, 8, 8)
    residues = moves.sum(axis=1) @ RESIDUES_OF_COLUMN
    if residues.tolist() != [list(region.extent) for region in regions]:
        return None
    if not ((last == 0) | (last == steps[ends - 1])).all():
        return None
    gaps = (moves * _gap_costs(*triples[0].cost)).sum(axis=(1, 2))
    pairs = _pair_scores(triples[0].matrices, letters, steps)
    return (np.add.reduceat(pairs, starts, dtype=np.int64) - gaps).tolist()


def texts_of(alphabet, letters, paths) -> list:
    """For each path its three gapped rows, as texts."""
    steps, bounds = _join(paths)
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


def _join(paths):
    """(all columns, (starts, ends) of the paths in them)."""
    ends = np.fromiter(accumulate(map(len, paths), initial=0), np.intp)
    return np.concatenate(paths), np.stack([ends[:-1], ends[1:]])


def _states(triple, regions):
    """Columns before the first of each path, and last ones; 0 for any."""
    if triple.model.states == 1:  # its only state is no column
        return COLUMN_ORDER[0], np.zeros(len(regions), np.uint8)
    first = [COLUMN_ORDER[region.start] for region in regions]
    last = [0 if region.end is None else COLUMN_ORDER[region.end] for region in regions]
    return np.array(first, np.uint8), np.array(last, np.uint8)


@cache
def _gap_costs(gap_open: int, gap_extend: int) -> np.ndarray:
    """(8, 8): the costs of the gaps of a column, [the column before, column]."""
    costs = np.zeros((8, 8), np.int64)
    for x, y in SEQUENCE_PAIRS:
        pair = RESIDUES_OF_COLUMN[:, [x, y]]
        gap = pair[:, 0] != pair[:, 1]
        goes_on = (pair[:, None] == pair[None]).all(axis=2)
        costs += gap * np.where(goes_on, gap_extend, gap_open)
    return costs


def _pair_scores(matrices, letters, steps):
    """Of every column the scores of its pairs of residues, int32."""
    size = len(matrices[0]) + 1
    rows = _rows_of(size - 1, letters, steps)
    total = np.zeros(len(steps), np.int32)
    for (x, y), matrix in zip(SEQUENCE_PAIRS, matrices, strict=True):
        scores = np.zeros((size, size), np.int32)  # no score for a gap
        scores[:-1, :-1] = matrix
        total += scores.ravel().take(rows[x] * np.uint16(size) + rows[y])
    return total
