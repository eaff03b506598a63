"""One pair by rows: from two sequences to their alignment, with nothing in between."""

from dataclasses import replace

import numpy as np

from jaxalign.model import bounds, operations
from jaxalign.model.alignment import Alignment
from jaxalign.model.alphabet import Sequences
from jaxalign.model.scoring import Scoring
from jaxalign.pairs.dp import rows, rows_walk

OTHER_SIDE = {"query": "target", "target": "query"}
DTYPES = ("int16", "int32", "int64")


def alignment(
    query: Sequences, target: Sequences, scoring: Scoring, mode: str, free: frozenset
) -> Alignment:
    """The alignment of the first sequences of two sets.

    free : the free ends
    """
    m, n = len(query.codes), len(target.codes)
    swapped = m > n or scoring.by_position  # the longer side has the columns
    dtype = score_dtype(m, n, scoring, mode)
    codes = [query.codes[None], target.codes[None]][:: -1 if swapped else 1]
    lengths = [np.array([m]), np.array([n])][:: -1 if swapped else 1]
    columns = codes[1]
    if scoring.by_position:
        columns = np.broadcast_to(np.arange(m), columns.shape)
    problem = problem_of(scoring, dtype, free, mode == "local", swapped)
    filled = rows.fill(codes[0], lengths[0], columns, lengths[1], problem, dtype, True)
    wildcard = scoring.alphabet.wildcard_code
    walked = rows_walk.walk(filled, codes[0], codes[1], wildcard)
    steps = walked.steps[::-1, 0]
    steps = steps[steps != rows_walk.DONE]
    rows_span, columns_span = (
        (int(start[0]), int(end[0]))
        for start, end in ((walked.i, filled.i), (walked.j, filled.j))
    )
    if swapped:
        rows_span, columns_span = columns_span, rows_span
        steps = rows_walk.OTHER[steps]
    runs, _ = operations.run_lengths(steps, np.array([len(steps)]))
    score = int(filled.score[0])
    return Alignment(
        query.text(0),
        target.text(0),
        score if scoring.scale == 1 else score / scoring.scale,
        *rows_span,
        *columns_span,
        runs,
        scoring,
        mode,
        free,
        query.names[0],
        target.names[0],
        "rows",
    )


def score_dtype(m: int, n: int, scoring: Scoring, mode: str) -> str:
    """The narrowest dtype that holds all scores; rows are held with their extend."""
    known = _range(m, n, scoring, mode)
    return next((d for d in DTYPES if bounds.fits(known, d)), DTYPES[-1])


def identities_fit(m: int, n: int, scoring: Scoring, mode: str) -> bool:
    """Whether int32 holds all scores with identities in their low digits."""
    factor = bounds.IDENTITY_BASE["int32"]
    return bounds.fits(_range(m, n, scoring, mode), "int32", factor)


def _range(m: int, n: int, scoring: Scoring, mode: str) -> bounds.Range:
    known = bounds.score_range(m, n, scoring, mode)
    return replace(known, high=known.high + (m + n + 2) * scoring.extend)


def problem_of(
    scoring: Scoring,
    dtype: str,
    free: frozenset,
    local: bool,
    swapped: bool,
    identity: bool = False,
) -> rows.RowsProblem:
    """The problem of a fill: scores, gaps and free ends.

    swapped : rows of the fill are the target
    """
    scores, opening, extending = bounds.scaled(scoring, dtype, identity)
    scores = np.asarray(scores, np.int64)
    if swapped:
        ends = (end.split("_") for end in free)
        scores = np.ascontiguousarray(scores.T)
        free = frozenset(f"{OTHER_SIDE[side]}_{which}" for side, which in ends)
    return rows.RowsProblem(scores, opening, extending, free, local, swapped)
