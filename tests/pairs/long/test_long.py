"""One long pair by blocks: score, end cell and path equal the oracle's, with and
without pruning, on random, nearly equal and repetitive sequences."""

import random
from functools import partial

import numpy as np
import oracle
import pytest
from draws import pairwise
from long_cases import (
    KINDS,
    TILE,
    answer,
    have_small_blocks,
    pair_of,
    score_by_halves,
    sequences,
    wanted,
)

from jaxalign.model.scoring import FREE_ENDS, Scoring, as_scoring
from jaxalign.pairs.long import pruning
from jaxalign.pairs.long.align import Slabs
from jaxalign.pairs.long.blocks import NO_BOUND, whole
from jaxalign.pairs.long.fill import fill_by_tiles


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    have_small_blocks(monkeypatch)


MODES = ("global", "semiglobal", "local")
CASES = pairwise(KINDS, MODES, (True, False), corners=[("near", "global", True)])


def by_halves(pair, pruned):
    """The score alone."""
    return (score_by_halves(pair, pruned),)


def by_slabs(pair, pruned):
    return answer(pair, pruned, slabs=Slabs(9000, 8))


def by_blocks(pair, pruned):
    return answer(pair, pruned, partial(fill_by_tiles, tile=TILE, threads=2))


@pytest.fixture(params=[by_blocks, by_slabs, by_halves])
def computed(request):
    """Score, ends and path of a pair, as far as a way has them."""
    return request.param


@pytest.mark.parametrize(
    "kind, mode, pruned",
    [
        *(("near", mode, k == 0) for k, mode in enumerate(MODES)),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in CASES),
    ],
)
def test_a_pair_has_the_answer_of_the_oracle(computed, kind, mode, pruned):
    pair = pair_of(*sequences(kind, 3), as_scoring(Scoring()), mode)
    found = computed(pair, pruned)
    assert found == wanted(pair, mode, frozenset())[: len(found)]


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(x, marks=pytest.mark.slow) for x in range(2, 6))]
)
def test_some_free_ends(computed, seed):
    """Ends that are free on a side or two; of gaps, extending costs nothing or more."""
    choose = random.Random(seed)
    free = frozenset(end for end in FREE_ENDS if choose.random() < 0.5)
    costs = choose.choice([(11, 1), (5, 0), (4, 4), (30, 1)])
    scoring = as_scoring(Scoring(gap_open=costs[0], gap_extend=costs[1]))
    pair = pair_of(*sequences(KINDS[seed % 3], seed), scoring, "global", free)
    for pruned in (True, False):
        found = computed(pair, pruned)
        assert found == wanted(pair, "global", free)[: len(found)]


@pytest.mark.parametrize("sizes", [(1, 200), (200, 2), (64, 64), (65, 129)])
def test_sides_of_any_length(computed, sizes):
    rng = np.random.default_rng(1)
    query, target = (rng.integers(0, 20, k).astype(np.uint8) for k in sizes)
    for mode in ("global", "local", "semiglobal"):
        pair = pair_of(query, target, as_scoring(Scoring()), mode)
        found = computed(pair, True)
        assert found == wanted(pair, mode, frozenset())[: len(found)]


@pytest.mark.parametrize(
    "mode", ["global", pytest.param("local", marks=pytest.mark.slow)]
)
def test_tiles_that_no_best_path_enters_are_not_computed(mode):
    query, target = sequences("near", 5)
    pair = pair_of(query, target, as_scoring(Scoring()), mode)
    best, *_ = answer(pair, False)
    fill = partial(fill_by_tiles, tile=(16, 16))
    grid = fill(pair, whole(pair), best, keep=False)
    assert 0 < grid.cells < pair.m * pair.n // 2
    if mode == "global":
        assert grid.rows[pair.m].h[-1] == best
        above = fill(pair, whole(pair), best + 1, keep=False)
        assert above.rows[pair.m].h[-1] < best + 1
    everything = fill(pair, whole(pair), NO_BOUND, keep=False)
    assert everything.cells == pair.m * pair.n


def test_a_bound_of_the_rest_is_one():
    """From random cells on, no path scores more."""
    rng = np.random.default_rng(2)
    scoring = as_scoring(Scoring())
    for _ in range(40):
        m, n = rng.integers(1, 12, 2)
        query, target = (rng.integers(0, 20, k).astype(np.uint8) for k in (m, n))
        free = frozenset(end for end in FREE_ENDS if rng.random() < 0.5)
        pair = pair_of(query, target, scoring, "global", free)
        i, j = int(rng.integers(0, m)), int(rng.integers(0, n))
        ends = free & {"query_end", "target_end"}
        score = oracle.score(
            query[i:], target[j:], pair.scores, pair.open, pair.extend, "global", ends
        )
        assert score <= pruning.rest(pair, i, j)


def test_progress_tells_of_every_cell():
    query, target = sequences("random", 4)
    pair = pair_of(query, target, as_scoring(Scoring()), "global")
    cells = []
    fill_by_tiles(pair, whole(pair), tile=TILE, progress=cells.append)
    assert sum(cells) == len(query) * len(target)
