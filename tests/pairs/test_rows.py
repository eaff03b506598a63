"""The fill by rows and its walk, in NumPy, against the oracle: paths and directions."""

from itertools import groupby, product

import numpy as np
import oracle
import pytest
from cases import END_SETS, GAPS, SWAPPED_OPS, matrices, some_pairs, swap_sides

from jaxalign.pairs.dp import rows

WILDCARD = 2
SETTINGS = [("local", frozenset()), *(("global", ends) for ends in END_SETS)]


def stacked(sequences):
    """(codes with rubbish after each end, lengths)."""
    m = np.array([len(s) for s in sequences])
    codes = np.full((len(m), int(m.max()) + 3), 1, np.uint8)
    for row, sequence in zip(codes, sequences, strict=True):
        row[: len(sequence)] = sequence
    return codes, m


def codes_of(directions, p, m, n):
    """The directions of the cells of a pair, without row 0 and column 0."""
    i, j = np.arange(1, m + 1)[:, None], np.arange(1, n + 1)
    at = (j % directions.stripes) * directions.pairs[i] + p
    at = directions.starts[i] + at * directions.blocks + j // directions.stripes
    return directions.cells[at]


def nibbles(codes, local):
    """Directions of the fill -> those of ``oracle.directions``."""
    b = np.where(codes & rows.VERTICAL, oracle.B_UP, oracle.B_LEFT)
    b = np.where(codes & rows.DIAGONAL, oracle.DIAGONAL, b)
    b = np.where(codes & rows.STOP, 0, b) if local else b
    up, left = codes & rows.UP_GOES_ON, codes & rows.LEFT_GOES_ON
    return b + np.where(up, oracle.C_UP, 0) + np.where(left, oracle.C_LEFT, 0)


def expected(a, b, problem, tie):
    """The oracle's alignment; with tie that of (b, a), its two sides swapped back."""
    if not tie:
        return oracle.align(a, b, *problem)
    S, open, extend, mode, ends = problem
    found = oracle.align(b, a, S.T, open, extend, mode, swap_sides(ends))
    ops = [(SWAPPED_OPS[op], count) for op, count in found.operations]
    return oracle.Alignment(found.score, found.start[::-1], found.end[::-1], ops)


def same_as_oracle(queries, targets, S, gaps, mode, ends, tie, dtype):
    """All pairs at once, with paths and without."""
    order = np.argsort([-len(query) for query in queries], kind="stable")
    queries, targets = ([side[k] for k in order] for side in (queries, targets))
    problem = rows.RowsProblem(S, *gaps, ends, mode == "local", tie)
    (q, m), (t, n) = stacked(queries), stacked(targets)
    filled = rows.fill(q, m, t, n, problem, dtype, True)
    scores = rows.fill(q, m, t, n, problem, dtype, False)
    np.testing.assert_array_equal(scores.score, filled.score)
    walked = rows.walk(filled, q, t, WILDCARD)
    for p, (a, b) in enumerate(zip(queries, targets, strict=True)):
        want = expected(a, b, (S, *gaps, mode, ends), tie)
        steps = walked.steps[:, p]
        steps = steps[steps != rows.DONE][::-1].tolist()
        ops = [("MID"[op], len(list(some))) for op, some in groupby(steps)]
        ends_of_path = (walked.i[p], walked.j[p]), (filled.i[p], filled.j[p])
        assert oracle.Alignment(filled.score[p], *ends_of_path, ops) == want
        counts = oracle.columns(ops), oracle.gap_openings(ops), oracle.gaps(ops)
        counts += (oracle.identities(a, b, want.start, ops, WILDCARD),)
        names = "columns", "gap_openings", "gaps", "identities"
        assert counts == tuple(getattr(walked, name)[p] for name in names)
        if not tie:
            inside = codes_of(filled.directions, p, len(a), len(b))
            bits = oracle.directions(a, b, S, *gaps, mode, ends)
            np.testing.assert_array_equal(nibbles(inside, mode == "local"), bits)


@pytest.fixture(params=[1, 3, 8])
def stripes(request, monkeypatch):
    """Narrow rows, and wide ones of some stripes, whatever their cells."""
    monkeypatch.setattr(rows, "STRIPES", request.param)
    monkeypatch.setattr(rows, "STRIPED_CELLS", 0)


@pytest.mark.usefixtures("stripes")
@pytest.mark.parametrize("dtype", ["int16", "int32", "int64"])
def test_rows_are_the_oracles(dtype):
    rng = np.random.default_rng(11)
    tables = list(matrices().values())
    for k, ((mode, ends), gaps) in enumerate(product(SETTINGS, GAPS.values())):
        letters, S = tables[k % len(tables)]
        queries, targets = some_pairs(rng, 8, letters, longest=30)
        tie = bool(rng.integers(2))
        same_as_oracle(queries, targets, S, gaps, mode, ends, tie, dtype)


@pytest.mark.usefixtures("stripes")
@pytest.mark.parametrize("tie", [False, True])
def test_rows_of_many_ties(tie):
    """Two letters and small costs: most cells tie, so an order of comparisons shows."""
    rng = np.random.default_rng(12)
    for mode, ends in SETTINGS:
        S = rng.integers(-2, 3, (3, 3))
        extend = int(rng.integers(0, 2))
        gaps = extend + int(rng.integers(0, 2)), extend
        sides = ([rng.integers(0, 2, n) for n in rng.integers(0, 12, 30)] for _ in "ab")
        same_as_oracle(*sides, S, gaps, mode, ends, tie, "int16")


def test_wide_rows_are_striped():
    """The same paths as in one stripe, of so many pairs that rows are wide, and with
    rows laid out anew as pairs end."""
    rng = np.random.default_rng(13)
    queries, targets = some_pairs(rng, 200, 4, longest=60)
    S = rng.integers(-3, 4, (4, 4))
    (q, m), (t, n) = (stacked(side) for side in (queries, targets))
    order = np.argsort(-m, kind="stable")
    sides = q[order], m[order], t[order], n[order]
    assert len(n) * (int(n.max()) + 1) >= rows.STRIPED_CELLS
    problem = rows.RowsProblem(S, 2, 1, frozenset(), True, False)
    whole = rows.fill(*sides, problem, "int16", True)
    walked = rows.walk(whole, sides[0], sides[2], WILDCARD)
    assert whole.directions.stripes == rows.STRIPES
    for p in range(0, len(m), 10):
        alone = [side[p : p + 1] for side in sides]
        one = rows.fill(*alone, problem, "int16", True)
        assert one.directions.stripes == 1
        path = rows.walk(one, alone[0], alone[2], WILDCARD)
        assert (one.score[0], path.i[0]) == (whole.score[p], walked.i[p])
        steps = (x[x != rows.DONE] for x in (path.steps[:, 0], walked.steps[:, p]))
        np.testing.assert_array_equal(*steps)
