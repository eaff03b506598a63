"""Links with a coverage, of paths of both orders and both strands, by the oracle."""

from typing import Any

import brute_force as bf
import numpy as np
import oracle
import pytest

import jaxalign
from jaxalign.errors import UsageError
from jaxalign.homology.certificate import definition_of
from jaxalign.options import HomologyOptions

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
