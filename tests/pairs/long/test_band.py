"""Paths through bands along a diagonal: the same as without, ties too, and proven."""

from functools import partial

import numpy as np
import oracle
import pytest
from long_cases import DNA, answer, dna, evolved, have_small_blocks, pair_of, wanted

from jaxalign.model.scoring import FREE_ENDS, Scoring, as_scoring
from jaxalign.pairs.dp import walk
from jaxalign.pairs.long import path
from jaxalign.pairs.long.blocks import MINUS_INFINITY, Line, LineGrid, whole
from jaxalign.pairs.long.fill import fill_by_tiles
from jaxalign.pairs.long.path import Bands, WalkPlace


@pytest.fixture(autouse=True)
def small_bands(monkeypatch):
    have_small_blocks(monkeypatch, lines=8, lanes=64)


@pytest.fixture
def counts(monkeypatch):
    """How many bands were walked, and how many were not proven."""
    counts = {True: 0, False: 0}
    run = Bands._to_line

    def counted(*args):
        place = run(*args)
        counts[place is not None] += 1
        return place

    monkeypatch.setattr(Bands, "_to_line", counted)
    return counts


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(x, marks=pytest.mark.slow) for x in range(1, 6))]
)
def test_ties_are_those_of_the_whole_table(counts, seed):
    """Of DNA, where many paths have the best score; costs of gaps of all kinds."""
    rng = np.random.default_rng(seed)
    query = dna(seed, 420)
    target = evolved(rng, query, 0.04, 3)
    costs = [(5, 2), (3, 3), (6, 0)][seed % 3]
    scoring = as_scoring(Scoring("NUC", *costs))
    free = frozenset(end for end in FREE_ENDS if rng.random() < 0.5)
    mode, ends = [("global", free), ("local", frozenset())][seed % 2]
    pair = pair_of(query, target, scoring, mode, ends or None)
    assert answer(pair) == wanted(pair, mode, ends)
    assert counts[True] > 0


@pytest.mark.parametrize(
    "size", [20, *(pytest.param(x, marks=pytest.mark.slow) for x in (60, 130))]
)
def test_a_path_that_leaves_the_band_is_found_otherwise(counts, size):
    """Gaps longer than the lanes are wide, in either sequence."""
    query = dna(1, 400)
    target = np.concatenate([query[:180], query[180 + size :]])
    for texts in ((query, target), (target, query)):
        pair = pair_of(*texts, DNA, "global")
        assert answer(pair) == wanted(pair, "global", frozenset())
    assert counts[True] and counts[False]


@pytest.fixture
def ahead(monkeypatch):
    """How many bands were filled ahead and walked, and how many were in vain."""
    counts = {True: 0, False: 0}
    taken, run, walk_through = [], Bands._next, Bands._walk

    def next_band(*args):
        taken[:] = [run(*args)]
        return taken[0]

    def counted(self, place, band, pieces):
        new = walk_through(self, place, band, pieces)
        counts[new is not None] += any(band is x for x in taken)
        return new

    monkeypatch.setattr(Bands, "_next", next_band)
    monkeypatch.setattr(Bands, "_walk", counted)
    return counts


def changed(kind, seed):
    """A sequence and its copy, with more than small indels."""
    rng = np.random.default_rng(seed)
    query = dna(seed, 460)
    copy = evolved(rng, query, 0.03, 3)
    if kind == "deletion":
        copy = np.delete(copy, slice(120, 210))
    elif kind == "inversion":
        copy[120:210] = 3 - copy[120:210][::-1]
    elif kind == "repeats":
        query, copy = np.tile(query[:11], 40), np.tile(query[:11], 37)
    return query, copy


@pytest.mark.parametrize(
    "mode, kind",
    [
        ("global", "deletion"),
        *(
            pytest.param(mode, kind, marks=pytest.mark.slow)
            for kind in ("inversion", "repeats", "deletion")
            for mode in ("local", "semiglobal", "global")
            if (mode, kind) != ("global", "deletion")
        ),
    ],
)
def test_threads_that_fill_ahead_change_nothing(ahead, mode, kind):
    pair = pair_of(*changed(kind, 4), DNA, mode)
    right = wanted(pair, mode, frozenset())
    assert answer(pair, threads=1) == right
    assert not any(ahead.values())
    for threads in (2, 5):
        assert answer(pair, threads=threads) == right
    assert ahead[True] > 0 or kind == "repeats"


@pytest.mark.parametrize(
    "shift", [-31, *(pytest.param(x, marks=pytest.mark.slow) for x in (31, -20, 200))]
)
def test_bands_in_the_wrong_place_are_filled_again(ahead, counts, monkeypatch, shift):
    """Beside the path, or with the path in one of their outer lanes."""
    guess = Bands._best_near
    monkeypatch.setattr(Bands, "_best_near", lambda *args: guess(*args) + shift)
    pair = pair_of(*changed("deletion", 5), DNA, "global")
    assert answer(pair, threads=3) == wanted(pair, "global", frozenset())
    assert counts[True] > 0
    assert ahead[False] > 0 or abs(shift) != 31


@pytest.mark.parametrize("high", [-5, 5])
def test_no_cell_of_a_band_has_more_from_beside(high):
    """Of any cell of the last row; the line is high on one side of the lanes."""
    rng, pair = (
        np.random.default_rng(6),
        pair_of(dna(6, 300), dna(7, 400), DNA, "global"),
    )
    h = np.cumsum(rng.integers(-9, 9, pair.n + 1)).astype(np.int32)
    match = int(pair.scores.max())
    for rows, j in ((120, 210), (20, 300), (40, 350)):
        origin = j - rows - path.LANES // 2
        beside = h.copy()
        beside[origin + high + (path.LANES if high > 0 else 0)] += 5000
        line = Line(beside, np.full_like(h, MINUS_INFINITY))
        bands = Bands(pair, LineGrid(whole(pair), {100: line}, {}))
        filled = bands._fill(100 + rows, 100, j)
        assert filled is not None
        for lane in range(1, path.LANES + 1):
            column = origin + rows + lane
            most = max(
                beside[k] + match * min(column - k, rows)
                - pair.extend * abs(column - k - rows)
                for k in range(1, min(column, pair.n) + 1)
                if not 0 < k - origin <= path.LANES
            )  # fmt: skip
            bound = bands._most_outside(filled.left, filled.right, lane)
            assert bound == most if most > 2500 else bound >= most


def test_parts_of_a_path_have_its_score():
    """Wherever it is cut, within a gap or between."""
    rng = np.random.default_rng(3)
    query = dna(2, 60)
    pair = pair_of(query, evolved(rng, query, 0.1, 3), DNA, "global")
    score, start, end, operations = oracle.align(
        pair.query, pair.target, pair.scores, pair.open, pair.extend, "global"
    )
    text = "".join(op * length for op, length in operations)
    steps = np.array(["MID".index(op) for op in text][::-1], np.uint8)
    assert tuple(start) == (0, 0) and {1, 2} & set(steps.tolist())
    for cut in range(len(steps) + 1):
        inside = 0 < cut < len(steps) and steps[cut - 1] == steps[cut] != walk.M
        move = int(steps[cut]) if inside else walk.M
        first, second = steps[:cut], steps[cut:]
        i, j = (len(second) - int((second == x).sum()) for x in (walk.D, walk.I))
        place = WalkPlace(*map(int, end), score).after(pair, first, (i, j), move)
        assert place.after(pair, second, (0, 0), walk.M).score == 0


def test_blocks_on_the_path_are_pruned():
    """Of a block only what lies near the path to its last cell is computed."""
    query = dna(5, 600)
    pair = pair_of(
        query, evolved(np.random.default_rng(1), query, 0.03, 2), DNA, "local"
    )
    fill = partial(fill_by_tiles, tile=(32, 32))
    everything = fill(pair, whole(pair))
    end = pair.m, pair.n
    score = int(everything.rows[pair.m].h[-1])
    pruned = fill(pair, whole(pair), score, until=end)
    assert pruned.cells < everything.cells // 2
    assert pruned.rows[pair.m].h[-1] == score
