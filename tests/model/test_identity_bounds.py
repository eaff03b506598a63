"""The least denominators of identities, and the proof that a pair cannot pass."""

from collections import Counter
from itertools import product

import numpy as np
import pytest
from cases import END_SETS, some_texts
from enumerate_alignments import best, candidates

import jaxalign
from jaxalign.model.alphabet import as_sequences
from jaxalign.model.identity import (
    IDENTITIES,
    Filters,
    IdentityBound,
    denominator,
    identity_bound,
    least_span,
    why_none,
)
from jaxalign.model.scoring import resolve_ends
from jaxalign.options import PairOptions
from jaxalign.pairs import jobs
from jaxalign.pairs.proofs import proof

TEXTS = [*some_texts(6, 24, 40), "", "", "X", "XX", "MK"]
ENDS = [
    {"mode": "local"},
    {"mode": "semiglobal"},
    *({"free_ends": sorted(e)} for e in END_SETS),  # in one order in all processes
]


def bound_of(kind, ends, **filters) -> IdentityBound | None:
    free = resolve_ends(ends.get("mode", "global"), ends.get("free_ends"))
    filters = Filters(min_identity=filters.pop("cut", 0.5), identity=kind, **filters)
    return identity_bound(filters, ends.get("mode", "global"), free)


@pytest.mark.parametrize("ends", ENDS, ids=str)
def test_no_denominator_is_below_the_least(ends):
    """Of all alignments of all pairs, and of those that a coverage keeps."""
    table = jaxalign.align_all(TEXTS, **ends)
    m, n = table.lengths()
    for kind in IDENTITIES:
        bound = bound_of(kind, ends)
        assert (bound is None) == (kind == "aligned" or _no_side_whole(kind, ends))
        if bound is not None:
            actual = denominator(kind, table.columns, m, n)
            assert (bound.least(m, n) <= actual).all()
    if ends == {"free_ends": []}:
        return  # where a coverage is always 1
    for coverage, least in product(("both", "query", "target"), (0.2, 0.7, 1.0)):
        cover = {"min_cov": least, "coverage": coverage}
        kept = jaxalign.align_all(TEXTS, **ends, **cover)
        lengths = kept.lengths()
        bound = bound_of("alignment", ends, **cover)
        assert bound is not None
        assert (bound.least(*lengths) <= kept["columns"]).all()


def _no_side_whole(kind, ends) -> bool:
    free = resolve_ends(ends.get("mode", "global"), ends.get("free_ends"))
    touched = {end.split("_")[0] for end in free}
    hang_over = ends.get("mode") == "local" or len(touched) == 2
    return kind == "alignment" and hang_over


def test_every_fraction_is_cut_as_the_filter_cuts_it():
    count, m, n = (x.ravel() for x in np.meshgrid(*[np.arange(14)] * 3))
    pairs = count <= np.minimum(m, n)
    count, m, n = count[pairs], m[pairs], n[pairs]
    columns = {"score": count, "max_identities": count}
    for cut in np.unique(np.divide.outer(np.arange(13), np.arange(1, 27)) % 1):
        for kind in ("shorter", "longer", "mean", "query", "target"):
            kept = Filters(min_identity=cut, identity=kind).mask(columns, m, n)
            bound = bound_of(kind, {}, cut=float(cut))
            possible = bound.possible(count, m, n)
            none = denominator(kind, {}, m, n) == 0
            np.testing.assert_array_equal(possible, kept | none)


def test_the_least_count_is_exact():
    m, n = (x.ravel() for x in np.meshgrid(np.arange(60), np.arange(60)))
    counts = np.arange(61)[:, None]
    for cut in (0.0, 0.1, 0.29, 0.3, 1 / 3, 0.55, 0.7, 0.999, 1.0):
        for kind in ("shorter", "longer", "mean", "query", "target", "full"):
            bound = bound_of(kind, {}, cut=cut)
            want = bound.possible(counts, m, n).argmax(axis=0)
            np.testing.assert_array_equal(bound.least_count(m, n), want)
            assert bound.symmetric == (kind not in ("query", "target"))
    whole = (bound_of("alignment", {"free_ends": x}) for x in ([], ["query_end"]))
    assert [bound.symmetric for bound in whole] == [True, False]


def test_the_least_span_is_exact():
    lengths = np.arange(1, 400)
    for least in (0.0, 0.1, 0.3, 0.7, 1 / 3, 0.9, 0.999, 1.0):
        span = least_span(lengths, least)
        assert (span / lengths >= least).all()
        assert ((span == 0) | ((span - 1) / lengths < least)).all()
    assert least_span(np.zeros(3, int), 0.5).tolist() == [0, 0, 0]


def test_a_bound_names_its_denominator():
    names = {kind: str(bound_of(kind, {})) for kind in IDENTITIES if kind != "aligned"}
    assert names["mean"] == "((m + n) / 2)" and names["query"] == "m"
    assert names["alignment"] == names["full"] == names["longer"] == "max(m, n)"
    one = {"free_ends": ["query_start"]}
    assert str(bound_of("alignment", one)) == "n"
    covered = bound_of("alignment", one, min_cov=0.5, coverage="query")
    assert str(covered) == "max(n, 0.5 m)"


def test_why_there_is_no_bound():
    assert "gap" in why_none(Filters(min_identity=0.5, identity="aligned"))
    assert "min_cov" in why_none(Filters(min_identity=0.5))
    assert "no cut" in why_none(Filters(identity="longer"))
    assert identity_bound(Filters(identity="longer"), "global", frozenset()) is None


@pytest.mark.parametrize("mode", ["local", "global", "semiglobal"])
def test_relative_scores_are_those_of_all_alignments(mode, monkeypatch):
    """Of an asymmetric matrix, in which a letter scores less with itself than with
    another one; pairs that the bound excludes are below the cut."""
    monkeypatch.setattr(proof, "MAX_LEFT", 1.0)  # however few are excluded
    random = np.random.default_rng(11)
    S = random.integers(-4, 5, (4, 4)) + 4 * np.eye(4, dtype=int)
    S[3, 3], S[3, 0] = -1, 6
    scoring = jaxalign.Scoring(("ACGT", S), gap_open=2, gap_extend=1)
    words = [
        ["".join(random.choice([*"ACGT"], n)) for n in sizes] + ["T", ""]
        for sizes in ((3, 2, 3, 1, 2), (4, 4, 3, 2, 1, 1))
    ]
    codes = [[["ACGT".index(x) for x in word] for word in side] for side in words]
    scores = np.array(
        [[best(candidates(a, b, S, 2, 1, mode))[0] for b in codes[1]] for a in codes[0]]
    )
    own = [np.array([sum(S[x, x] for x in word) for word in side]) for side in codes]
    m, n = own[0][:, None], own[1][None]
    lengths = {"longer": np.maximum(m, n), "shorter": np.minimum(m, n)}
    lengths |= {"mean": (m + n) / 2, "query": m + 0 * n, "target": n + 0 * m}
    sides, excluded = [as_sequences(x, scoring.alphabet) for x in words], Counter()
    for (kind, below), cut in product(lengths.items(), (0.2, 0.5, 0.75, 1.0)):
        with np.errstate(divide="ignore", invalid="ignore"):
            want = np.argwhere((below > 0) & (scores / below >= cut))
        asked = {"mode": mode, "identity": kind, "min_relative_score": cut}
        for proofs in (True, False):
            options = PairOptions(output="score", filter=proofs, **asked)
            table = jobs.run("cross", *sides, scoring, options)
            found = np.stack([table["query"], table["target"]], axis=1)
            assert found.tolist() == want.tolist(), (kind, cut)
            excluded[kind, proofs] += sum(table.info["excluded"].values())
    for (kind, proofs), count in excluded.items():
        assert (count > 0) == (proofs and kind != "shorter"), (kind, proofs)
