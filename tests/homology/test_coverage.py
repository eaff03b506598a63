"""Links with a coverage, of paths of both orders and both strands, by the oracle."""

from typing import Any

import brute_force as bf
import numpy as np
import oracle
import pytest

import jaxalign
from jaxalign.database import nearest_scan, nearest_state
from jaxalign.errors import UsageError
from jaxalign.homology.certificate import definition_of
from jaxalign.options import HomologyOptions
from jaxalign.pairs import options

SCORING = jaxalign.Scoring(match=2, mismatch=-1, gap_open=bf.OPEN, gap_extend=bf.EXTEND)


def path(a: str, b: str, mode: str) -> tuple[int, int, int]:
    """Identical pairs of the path that the tie rule chooses, and its spans."""
    codes = [[bf.LETTERS.index(x) for x in word] for word in (a, b)]
    about = *codes, bf.matrix(), bf.OPEN, bf.EXTEND, mode
    H, _, _ = oracle.tables(*about)
    end = oracle.end_cell(H, mode)
    (i, j), stop, runs = oracle.walk(oracle.directions(*about), end, mode)
    first, identical = (i, j), 0
    for operation in "".join(letter * length for letter, length in runs):
        if operation == "M":
            identical += a[i] == b[j] != "N"
        i, j = i + (operation != "D"), j + (operation != "I")
    return identical, stop[0] - first[0], stop[1] - first[1]


def of_order(a: str, b: str, mode: str, kind: str, coverage: str, least: float):
    """The identity of a path that covers enough, else nan."""
    if a == b:
        return 1.0
    identical, *spans = path(a, b, mode)
    sizes = len(a), len(b)
    if not min(sizes):
        return float("nan")
    shares = [span / size for span, size in zip(spans, sizes, strict=True)]
    shorter = shares[sizes[0] > sizes[1]] if sizes[0] != sizes[1] else max(shares)
    covered = {"both": min(shares), "query": shares[0], "target": shares[1]}
    if (covered | {"shorter": shorter})[coverage] < least:
        return float("nan")
    return identical / bf.below(kind, *sizes)


def either(a: str, b: str, *about) -> float:
    """Of both orders and both strands; the first sequence is turned."""
    sides = (a, b), (b, a), (bf.turned(a), b), (bf.turned(b), a)
    values = [of_order(*pair, *about) for pair in sides]
    return float(np.nanmax(values)) if np.isfinite(values).any() else float("nan")


COVERAGES = ("both", "query", "target", "shorter")


@pytest.mark.parametrize("mode", ["local", "semiglobal"])
@pytest.mark.parametrize("coverage", COVERAGES)
@pytest.mark.parametrize("seed", range(3))
def test_links_are_those_of_either_order_that_is_covered(mode, coverage, seed):
    random = np.random.default_rng([seed, COVERAGES.index(coverage)])
    words = bf.random_words(random, 16, 12)
    kind = str(random.choice(["longer", "shorter", "mean"]))
    cut, least = float(random.choice([0.3, 0.5])), float(random.choice([0.5, 0.75, 1]))
    shares = bf.identities(words, mode, kind, coverage, least, of=either)
    want = np.nan_to_num(np.where(shares >= cut, shares, 0))
    asked: Any = {
        "mode": mode,
        "identity": kind,
        "min_cov": least,
        "coverage": coverage,
    }
    graph = jaxalign.identity_graph(words, SCORING, min_identity=cut, **asked)
    np.testing.assert_allclose(graph.toarray(), want, rtol=1e-15)
    ungated = jaxalign.identity_graph(
        words, SCORING, min_identity=cut, mode=mode, identity=kind
    )
    assert ungated.nnz >= graph.nnz
    kept = jaxalign.deduplicate(words, SCORING, min_identity=cut, **asked)
    for k, of in enumerate(kept.representative_of.tolist()):
        assert k == of or want[k, of]
    halves = [*range(8)], [*range(8, 16)]
    parts = {x: [words[k] for k in y] for x, y in zip("ab", halves, strict=True)}
    audit = jaxalign.audit(parts, SCORING, min_identity=cut, **asked)
    across = shares[np.ix_(*halves)]
    assert audit.leaks == (across >= cut).sum()
    ranked = -np.sort(-across[np.isfinite(across)])[: len(audit.worst["identity"])]
    np.testing.assert_allclose(audit.worst["identity"], ranked, rtol=1e-15)
    groups = jaxalign.cluster(words, SCORING, min_identity=cut, **asked)
    label = np.arange(len(words))
    for i, j in np.argwhere(want > 0):
        label[label == label[i]] = label[j]
    assert len({*zip(label.tolist(), groups.labels.tolist(), strict=True)}) == len(
        groups
    )
    assert len({*label.tolist()}) == len(groups)
    asked["too_large"] = "remove"
    divided = jaxalign.split(words, SCORING, folds=2, min_identity=cut, **asked)
    assert bf.leaks(divided.part, np.nan_to_num(shares), cut) == 0


@pytest.mark.parametrize("mode", ["local", "semiglobal"])
@pytest.mark.parametrize("coverage", COVERAGES)
@pytest.mark.parametrize("seed", range(3))
def test_purge_and_nearest_ask_for_the_same(monkeypatch, mode, coverage, seed):
    """A sequence is removed, or nearest, by the best of those that are covered."""
    random = np.random.default_rng([seed, COVERAGES.index(coverage), 7])
    words = bf.random_words(random, 18, 12)
    tests, corpus = words[:6], words[6:]
    kind = str(random.choice(["longer", "shorter", "mean"]))
    cut, least = float(random.choice([0.3, 0.5])), float(random.choice([0.5, 0.75, 1]))
    about = mode, kind, coverage, least
    shares = np.array([[either(a, b, *about) for b in corpus] for a in tests])
    asked: Any = {"mode": mode, "identity": kind, "min_cov": least}
    asked["coverage"] = coverage
    known = np.where(np.isnan(shares), -1, shares)
    clean = jaxalign.purge(corpus, tests, SCORING, min_identity=cut, **asked)
    removed = np.flatnonzero(known.max(axis=0) >= cut)
    assert clean.removed.tolist() == removed.tolist()
    assert clean.test.tolist() == known.argmax(axis=0)[removed].tolist()
    assert clean.value.tolist() == known.max(axis=0)[removed].tolist()
    monkeypatch.setattr(nearest_scan, "FIRST_PAIRS", 1)
    monkeypatch.setattr(nearest_scan, "SHARED_QUERY", (2, 32)[seed % 2])
    monkeypatch.setattr(nearest_state, "PATHS_GROWTH", 2)
    scored = {"min_score": 0}  # which all pairs reach, on a way of their own
    for top, given in ((1, {}), (3, {}), (2, scored), (2, {"filter": False})):
        near = jaxalign.nearest(tests, corpus, SCORING, top=top, **asked, **given)
        assert f"coverage of {options.COVERED[coverage]} >= " in near.definition
        for i, row in enumerate(known):
            order = np.argsort(-row, kind="stable")[:top]
            order = order[row[order] >= 0]
            rows = (near.test == i) & (near.index >= 0)
            assert near.index[rows].tolist() == order.tolist(), (seed, i, given)
            assert near.identity[rows].tolist() == row[order].tolist()
            counts = [row[k] * bf.below(kind, len(tests[i]), len(corpus[k]))
                      for k in order.tolist()]  # fmt: skip
            np.testing.assert_allclose(near.identities[rows], counts, atol=1e-9)


@pytest.mark.parametrize("coverage", COVERAGES)
@pytest.mark.parametrize("seed", range(3))
def test_scores_that_remove_are_of_alignments_that_cover(coverage, seed):
    words = bf.random_words(np.random.default_rng(seed), 14, 12)
    tests, train = words[:5], words[5:]
    codes = {word: [bf.LETTERS.index(x) for x in word] for word in words}
    costs = bf.matrix(), bf.OPEN, bf.EXTEND, "local"

    def score(a: str, b: str) -> float:
        """Of the better strand that is covered; whatever it is of equal texts."""
        best = -1.0
        for turned in (a, bf.turned(a)):
            sides = [bf.LETTERS.index(x) for x in turned], codes[b]
            reached = oracle.max_identities(*sides, *costs, wildcard=bf.WILDCARD)[0]
            other = b if turned == a else bf.turned(b)
            both = (turned, b), (other, a)
            paths = [of_order(*x, "local", "longer", coverage, 0.6) for x in both]
            if turned == b or (reached >= 4 and np.isfinite(paths).any()):
                best = max(best, float(reached))
        return best

    scores = np.array([[score(a, b) for a in tests] for b in train])
    clean = jaxalign.purge(
        train, tests, SCORING, min_score=4, min_cov=0.6, coverage=coverage
    )
    removed = np.flatnonzero(scores.max(axis=1) >= 0)
    assert clean.removed.tolist() == removed.tolist()
    assert clean.value.tolist() == scores.max(axis=1)[removed].tolist()
    ungated = jaxalign.purge(train, tests, SCORING, min_score=4)
    assert {*removed.tolist()} <= {*ungated.removed.tolist()}


def test_a_fragment_may_be_in_the_test_where_coverage_is_of_both():
    """A third of a protein is a link of the shorter, and none of both."""
    random = np.random.default_rng(1)
    whole = "".join(random.choice([*"ACDEFGHIKLMNPQRSTVWY"], 180))
    parts = {"train": [whole], "test": [whole[60:120]]}
    assert not jaxalign.audit(parts, min_identity=0.5).holds
    for coverage, holds in (("both", True), ("shorter", False), ("query", False)):
        asked: Any = {"min_cov": 0.5, "coverage": coverage}
        audit = jaxalign.audit(parts, min_identity=0.5, **asked)
        assert audit.holds == holds, coverage
        about = audit.certificate()["definition"]
        assert about["min_cov"] == 0.5 and about["coverage"] == coverage
        again = definition_of({"definition": about}, HomologyOptions())
        assert {x: about[x] for x in again.about()} == again.about() | {
            x: about[x] for x in ("short_sequences",) if x in about
        }


@pytest.mark.parametrize(
    "coverage, end",
    [("both", "both"), ("query", "either"), ("shorter", "the shorter")],
)
def test_the_question_has_the_coverage(coverage, end):
    asked = {"min_identity": 0.5, "mode": "local", "min_cov": 0.75}
    clusters = jaxalign.cluster(["MKTAYIA", "MKT"], coverage=coverage, **asked)
    question = clusters.definition.question()
    assert question.endswith(f": it links what is aligned over 0.75 of {end}")


@pytest.mark.parametrize(
    "asked, message",
    [
        ({"min_cov": 0.5, "link": "whole"}, "every coverage is 1"),
        ({"min_cov": 1.5}, "min_cov"),
        ({"coverage": "query"}, "no effect without min_cov"),
        ({"min_cov": 0.5, "coverage": "all"}, "unknown coverage 'all'"),
    ],
)
def test_refusals(asked, message):
    with pytest.raises(UsageError, match=message):
        jaxalign.cluster(["MKTAYIAKQR"], min_identity=0.5, **asked)
    with pytest.raises(UsageError, match=message):
        jaxalign.purge(["MKTAYIAKQR"], ["MKTAYIAK"], min_identity=0.5, **asked)
    with pytest.raises(UsageError, match=message):
        jaxalign.nearest(["MKTAYIAKQR"], ["MKTAYIAK"], **asked)


def test_a_nearest_by_score_has_no_coverage():
    for asked, message in (
        ({"min_cov": 0.5}, "min_cov needs by"),
        ({"coverage": "query"}, "no effect without min_cov"),
    ):
        with pytest.raises(UsageError, match=message):
            jaxalign.nearest(["MKT"], ["MKT"], by="score", **asked)


def test_rows_of_all_pairs_whose_shorter_sequence_is_covered():
    texts = ["MKTAYIAKQRGGGG", "WWWWMKTAYIAKQR", "MKTAYIAKQRGGGGWWWWWWWWWWWW", "MKT"]
    asked: Any = {"mode": "local", "output": "stats"}
    every = jaxalign.align_all(texts, **asked)
    rows = jaxalign.align_all(texts, min_cov=0.7, coverage="shorter", **asked)
    (m, n), spans = every.lengths(), {}
    for side, size in (("query", m), ("target", n)):
        spans[side] = (every[f"{side}_end"] - every[f"{side}_start"]) / size
    covered = np.where(m < n, spans["query"], spans["target"])
    covered = np.where(m == n, np.maximum(*spans.values()), covered)
    assert len(rows) == (covered >= 0.7).sum() > 0
