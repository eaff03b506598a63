"""Components without an alignment of every link are those of all links."""

from itertools import pairwise
from typing import Any

import brute_force as bf
import numpy as np
import pytest

import jaxalign
from jaxalign import inputs
from jaxalign.homology import clustering, options
from jaxalign.pairs import part_stream
from jaxalign.pairs.proofs import proof

SCORING = jaxalign.Scoring(match=2, mismatch=-1, gap_open=bf.OPEN, gap_extend=bf.EXTEND)
SEEDS = range(8)
WAYS = {
    "few forests": {},
    "forests": {"LEAST_OF_A_FOREST": 0},
    "some pairs at a time": {"MOST_WAITING": 3, "LEAST_OF_A_FOREST": 0},
    "all pairs of a part": {"MAX_LEFT": 0},
}


def drawn(seed: int, of=bf.identity) -> tuple[list[str], Any, float, np.ndarray]:
    random = np.random.default_rng(seed)
    words = bf.random_words(random, 14)
    kind = str(random.choice(["longer", "shorter", "mean"]))
    cut = float(random.choice([0.3, 0.5, 2 / 3, 0.75]))
    return words, kind, cut, bf.identities(words, kind, of=of)


@pytest.fixture
def aligned(monkeypatch):
    """The pairs that are aligned one by one, as they come."""
    pairs, align = [], clustering._align

    def watched(state, some):
        pairs.extend(zip(some.i.tolist(), some.j.tolist(), strict=True))
        return align(state, some)

    monkeypatch.setattr(clustering, "_align", watched)
    monkeypatch.setattr(proof, "LEAST_CELLS_BY_ROWS", 0)
    for name, value in {"MIN_PARTS": 5, "QUERIES_STEP": 1, "MIN_CELLS": 1}.items():
        monkeypatch.setattr(part_stream, name, value)
    return pairs


def set_way(monkeypatch, way: str) -> None:
    for name, value in WAYS[way].items():
        where = proof if name == "MAX_LEFT" else clustering
        monkeypatch.setattr(where, name, value)


STRANDS = {"plus": bf.plus_identity, "both": bf.identity}


@pytest.mark.parametrize("strand", STRANDS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", SEEDS)
def test_components_are_those_of_all_links(seed, way, strand, aligned, monkeypatch):
    set_way(monkeypatch, way)
    words, kind, cut, shares = drawn(seed, STRANDS[strand])
    asked: Any = {"min_identity": cut, "identity": kind, "strand": strand}
    clusters = jaxalign.cluster(words, SCORING, **asked)
    want = bf.labels_of(shares >= cut)
    assert clusters.labels.tolist() == want.tolist()
    if way != "all pairs of a part" and strand == "plus":
        assert len(set(aligned)) == len(aligned) == clusters.info["aligned"]
    pairs = len(words) * (len(words) - 1) // 2
    assert clusters.info["all"] == pairs
    info = clusters.info
    assert info["aligned"] + sum(info["excluded"].values()) <= pairs
    assert info["at_or_above_cut"] <= np.count_nonzero(np.triu(shares >= cut))


def test_links_of_connected_sequences_are_not_aligned(aligned):
    """All pairs of equal sequences are links, and a tree of them is enough."""
    words = ["ACGTACGT"] * 20 + ["TTTTTTTT"] * 9
    clusters = jaxalign.cluster(words, SCORING, min_identity=0.8, link="whole")
    assert clusters.labels.tolist() == [0] * 20 + [1] * 9
    assert len(aligned) == 19 + 8 == clusters.info["aligned"]


def test_forests_take_the_largest_bounds():
    """Kruskal's forest of a square with both diagonals, and of two vertices apart."""
    i, j = np.array([0, 1, 2, 0, 0, 1, 4]), np.array([1, 2, 3, 3, 2, 3, 5])
    bound = np.array([0.9, 0.5, 0.8, 0.7, 0.6, 0.95, 0.1])
    pairs = clustering.OpenPairs(i, j, bound)
    forest = clustering._forest(np.arange(7, dtype=np.int32), pairs)
    assert sorted(forest.tolist()) == [0, 2, 5, 6]
    # Of two pairs between the same components one is taken, the one with the larger.
    labels = np.array([0, 1, 0, 1, 2, 2, 2], np.int32)
    forest = clustering._forest(labels, pairs.some(np.array([0, 1, 2, 3])))
    assert forest.tolist() == [0]


def test_every_link_is_counted_where_it_is_wanted(aligned):
    """As the summary of a run for programs has it."""
    words, kind, cut, shares = drawn(3)
    chosen = options.HomologyOptions(identity=kind, strand="both")
    definition = options.define(SCORING, chosen, cut)
    (data,) = inputs.sets(SCORING, words)
    every = clustering.clusters_of(data, definition, "components", every_link=True)
    assert every.info["at_or_above_cut"] == np.count_nonzero(np.triu(shares >= cut))
    few = clustering.clusters_of(data, definition, "components")
    assert few.labels.tolist() == every.labels.tolist()
    assert few.info["aligned"] <= every.info["aligned"]


def test_progress_ends_with_all_cells(aligned):
    words = drawn(1)[0]
    steps = []

    def progress(cells: int, of: int) -> None:
        steps.append((cells, of))

    jaxalign.cluster(words, SCORING, min_identity=0.5, progress=progress, link="whole")
    total = (sum(map(len, words)) ** 2 - sum(len(x) ** 2 for x in words)) // 2
    assert steps[-1] == (2 * total, 2 * total), "of both strands"
    assert all(before <= after for (before, _), (after, _) in pairwise(steps))
