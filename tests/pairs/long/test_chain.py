"""A path found by shared words: its score is one that a path has, and near the best."""

from functools import partial

import numpy as np
import oracle
import pytest
from long_cases import DNA, dna, evolved, pair_of

from jaxalign.model.scoring import FREE_ENDS
from jaxalign.pairs.long import align as long_align
from jaxalign.pairs.long import pruning
from jaxalign.pairs.long.fill import fill_by_tiles


@pytest.mark.parametrize("seed", range(12))
def test_no_path_has_more(seed):
    """Of random, near and repetitive pairs, of all modes and free ends."""
    rng = np.random.default_rng(seed)
    query = dna(seed, int(rng.integers(1, 260)))
    kinds = dna(seed + 99, 130), evolved(rng, query, 0.1, 3), np.tile(query[:9], 12)
    target = kinds[seed % 3] if len(kinds[seed % 3]) else query
    free = frozenset(end for end in FREE_ENDS if rng.random() < 0.5)
    for mode, ends in (("global", free), ("local", ()), ("semiglobal", ())):
        pair = pair_of(query, target, DNA, mode, ends or None)
        wanted = oracle.score(
            query, target, pair.scores, pair.open, pair.extend, mode, frozenset(ends)
        )
        assert pruning.path_score(pair) <= wanted
        assert pruning.along_border(pair) <= wanted


@pytest.mark.parametrize("mode", ["global", "local", "semiglobal"])
@pytest.mark.parametrize(
    "divergence, part", [pytest.param(0.02, 0.95, marks=pytest.mark.slow), (0.1, 0.75)]
)
def test_nearly_equal_sequences_lose_little(mode, divergence, part):
    """Even if few of the words are in the sample."""
    rng, query = np.random.default_rng(5), dna(4, 600)
    target = evolved(rng, query, divergence, 6)
    pair = pair_of(query[20:], target[:-30], DNA, mode)
    best = oracle.score(
        pair.query, pair.target, pair.scores, pair.open, pair.extend, mode, frozenset()
    )
    assert part * best <= pruning.path_score(pair) <= best


def test_words_of_a_sample_are_enough(monkeypatch):
    rng, query = np.random.default_rng(5), dna(4, 20_000)
    pair = pair_of(query, evolved(rng, query, 0.02, 40), DNA, "global")
    full = pruning.path_score(pair)
    monkeypatch.setattr(pruning, "MOST_WORDS", 800)
    assert pruning.path_score(pair) > 0.95 * full


def cells_of(pair):
    """(cells of each fill, the result)."""
    cells = []

    def fill(*args, **options):
        grid = fill_by_tiles(*args, tile=(64, 64), **options)
        cells.append(grid.cells)
        return grid

    return cells, long_align.align(pair, fill, False)


@pytest.mark.slow
def test_one_fill_is_enough(monkeypatch):
    """A fill in vain would double the time; near the diagonal lie few cells."""
    monkeypatch.setattr(pruning, "MIN_CELLS", 0)
    rng, query = np.random.default_rng(5), dna(4, 2_000)
    for target, most in ((evolved(rng, query, 0.05, 12), 0.25), (dna(9, 2_000), 1)):
        pair = pair_of(query, target, DNA, "global")
        cells, result = cells_of(pair)
        assert len(cells) == 1 and cells[0] <= most * pair.m * pair.n
        whole = partial(fill_by_tiles, tile=(512, 1024))
        assert result.score == long_align.align(pair, whole, False, False).score
