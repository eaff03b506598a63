"""Clusters and deduplication against their definitions, by brute force."""

import brute_force as bf
import numpy as np
import pytest
from scipy.cluster import hierarchy
from scipy.spatial.distance import squareform

import jaxalign
from jaxalign.homology import clustering, links, options
from jaxalign.homology.links import Links, PairCounts
from jaxalign.pairs.options import MEASURES

SCORING = jaxalign.Scoring(match=2, mismatch=-1, gap_open=bf.OPEN, gap_extend=bf.EXTEND)
SEEDS = range(12)


def drawn(seed: int, count: int = 12):
    random = np.random.default_rng(seed)
    words = bf.random_words(random, count)
    cut = float(random.choice([0.3, 0.5, 2 / 3, 0.75, 1.0]))
    kind = str(random.choice(["longer", "shorter", "mean"]))
    link, shares = bf.drawn_link(seed, words, kind)
    return words, shares, cut, link


def partition(labels):
    return {frozenset(np.flatnonzero(labels == x)) for x in np.unique(labels)}


@pytest.mark.parametrize("seed", SEEDS)
def test_components_are_those_of_the_links(seed):
    words, shares, cut, link = drawn(seed)
    found = jaxalign.cluster(words, SCORING, min_identity=cut, **link)
    label = list(range(len(words)))
    for i, j in np.argwhere(shares >= cut):
        label = [label[i] if x == label[j] else x for x in label]
    assert partition(found.labels) == partition(np.array(label))
    firsts = np.unique(found.labels, return_index=True)[1]
    assert (np.diff(firsts) > 0).all(), "numbered by their first members"
    for number, one in enumerate(found.representatives):
        members = np.flatnonzero(found.labels == number)
        assert one == max(members, key=lambda k: (len(words[k]), -k))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("band", [1, 3, 64])
def test_greedy_is_what_it_says(seed, band, monkeypatch):
    from jaxalign.homology import clustering

    monkeypatch.setattr(clustering, "MIN_BAND", band)
    words, shares, cut, link = drawn(seed)
    found = jaxalign.cluster(words, SCORING, min_identity=cut, **link, method="greedy")
    representatives, want = [], {}
    for k in sorted(range(len(words)), key=lambda k: (-len(words[k]), k)):
        linked = [r for r in representatives if shares[k, r] >= cut]
        want[k] = linked[0] if linked else k
        representatives += [] if linked else [k]
    assert found.representative_of.tolist() == [want[k] for k in range(len(words))]
    for k, r in enumerate(found.representative_of):
        assert found.identity[k] == (1 if k == r else shares[k, r])
    assert found.info["all"] == len(words) * (len(words) - 1) // 2
    assert found.info["aligned"] + sum(found.info["excluded"].values()) <= 66


@pytest.mark.parametrize("seed", SEEDS)
def test_complete_linkage_has_links_between_all_members(seed):
    words, shares, cut, link = drawn(seed)
    found = jaxalign.cluster(
        words, SCORING, min_identity=cut, **link, method="complete"
    )
    groups = [np.flatnonzero(found.labels == x) for x in range(len(found))]
    for some in groups:
        square = shares[np.ix_(some, some)]
        assert (square[~np.eye(len(some), dtype=bool)] >= cut).all()
    for a in range(len(groups)):  # and no two clusters could be one
        for b in range(a):
            assert not (shares[np.ix_(groups[a], groups[b])] >= cut).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_average_linkage_within_components_is_that_of_all(seed, monkeypatch):
    """Distances are made to differ, so that no tie is broken in two ways."""
    words, shares, cut, link = drawn(seed)
    n = len(words)
    unequal = np.triu(np.random.default_rng(seed).random((n, n)), 1) * 1e-6
    unequal += unequal.T
    plain = clustering._all_distances

    def distances(sequences, some, *rest):
        return plain(sequences, some, *rest) + unequal[np.ix_(some, some)]

    monkeypatch.setattr(clustering, "_all_distances", distances)
    found = jaxalign.cluster(words, SCORING, min_identity=cut, **link, method="average")
    distance = 1 - np.nan_to_num(shares)
    np.fill_diagonal(distance, 0)
    tree = hierarchy.linkage(squareform(distance + unequal), "average")
    groups = hierarchy.fcluster(tree, 1 - cut, "distance")
    assert partition(found.labels) == partition(groups)


@pytest.mark.parametrize("method", ["complete", "average"])
def test_a_matrix_beyond_the_budget_is_refused(method):
    one_component = np.zeros(4000, np.int32)
    few = options.HomologyOptions(memory_budget=10**6)
    none = Links(np.zeros(0, int), np.zeros(0, int), np.zeros(0))
    arguments = options.define(SCORING, few, 0.5), none, one_component, method
    with pytest.raises(jaxalign.MemoryPlanError, match="4,000 sequences.*greedy"):
        clustering.linkage_clusters(jaxalign.Sequences, *arguments, PairCounts())


def test_links_beyond_the_budget_are_refused(monkeypatch):
    monkeypatch.setattr(links, "LINK_BYTES", 10**12)
    with pytest.raises(jaxalign.MemoryPlanError, match="raise the budget or the cut"):
        jaxalign.cluster(
            ["ACGT"] * 9, SCORING, min_identity=0.5, method="complete", link="whole"
        )


def test_links_that_come_in_parts_are_merged(monkeypatch):
    monkeypatch.setattr(links, "MIN_BUFFER", 1)
    parts = [(np.array([0, 1]), np.array([1, 2])), (np.array([5]), np.array([2]))]
    assert links.components(6, parts).tolist() == [0, 0, 0, 1, 2, 0]
    assert links.components(3, []).tolist() == [0, 1, 2]


@pytest.mark.parametrize("method", options.METHODS)
def test_few_and_equal_sequences(method):
    asked = {"min_identity": 0.9, "method": method}
    assert len(jaxalign.cluster([], SCORING, **asked, link="whole")) == 0
    one = jaxalign.cluster(["ACGT"], SCORING, **asked, link="whole")
    assert (one.labels.tolist(), one.representatives.tolist()) == ([0], [0])
    same = jaxalign.cluster(["ACGT"] * 5, SCORING, **asked, link="whole")
    assert (same.labels.tolist(), same.representatives.tolist()) == ([0] * 5, [0])
    empty = jaxalign.cluster(["", "ACGT", ""], SCORING, **asked, link="whole")
    assert empty.labels.tolist() == [0, 1, 0], "equal texts are alike"


def test_length_ratio_and_denominator():
    """A short sequence inside a long one: ``shorter`` links them, a ratio does not."""
    words = ["ACGTACGTACGTACGT", "ACGTACGT"]
    asked = {"min_identity": 0.8}
    assert len(jaxalign.cluster(words, SCORING, **asked, link="whole")) == 2
    assert len(jaxalign.cluster(words, SCORING, identity="shorter", **asked)) == 1
    asked |= {"identity": "shorter", "min_length_ratio": 0.8}
    assert len(jaxalign.cluster(words, SCORING, **asked)) == 2


def test_deduplication_says_who_stands_for_whom():
    words = {"a": "ACGTACGT", "b": "ACGTACGTA", "c": "ACGTACGT", "d": "GGGG"}
    found = jaxalign.deduplicate(words, SCORING, min_identity=0.8, link="whole")
    assert found.kept().names == ("b", "d")
    columns = found.columns()
    assert columns["representative"].tolist() == ["b", "b", "b", "d"]
    assert columns["identity"].round(3).tolist() == [0.889, 1, 0.889, 1]
    assert found.to_pandas().shape == (4, 5)
    assert repr(found) == "<Clusters: 2 clusters of 4 sequences, the largest of 3>"
    assert "identity_longer >= 0.8; global alignment" in str(found)
    assert "<br>" in found._repr_html_()


@pytest.mark.parametrize(
    "asked, message",
    [
        ({"min_identity": 0}, "above 0"),
        ({"min_identity": 1.5}, "up to 1"),
        ({"min_identity": float("nan")}, "up to 1"),
        ({"min_identity": True}, "up to 1"),
        ({"method": "single"}, "components, greedy, complete, average"),
        ({"identity": "full"}, "order of two sequences"),
        ({"identity": "query"}, "order of two sequences"),
        ({"min_length_ratio": 2}, "min_length_ratio = 2"),
        ({"free_ends": ("query_start",)}, "symmetric free ends"),
        ({"min_cov": 0.8}, "every coverage is 1"),
        ({"mode": "glocal"}, "glocal"),
    ],
)
def test_refusals(asked, message):
    with pytest.raises(jaxalign.UsageError, match=message):
        usual = {} if {*asked} & {*MEASURES["whole"]} else {"link": "whole"}
        jaxalign.cluster(["ACGT"], SCORING, **{"min_identity": 0.5, **usual, **asked})


def test_progress_reaches_the_whole_job():
    for method in options.METHODS:
        told = []
        words = bf.random_words(np.random.default_rng(0), 20)
        jaxalign.cluster(
            words,
            SCORING,
            min_identity=0.5,
            method=method,
            progress=lambda done, whole, told=told: told.append((done, whole)),
            link="whole",
        )
        assert told and told[-1][0] == told[-1][1], method


@pytest.mark.parametrize("seed", SEEDS)
def test_a_graph_has_the_links_and_nothing_else(seed):
    words, shares, cut, link = drawn(seed)
    graph = jaxalign.identity_graph(words, SCORING, min_identity=cut, **link)
    want = np.where(shares >= cut, shares, 0)
    assert graph.toarray().tolist() == want.tolist() and graph.nnz == (want > 0).sum()
