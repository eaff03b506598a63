"""A profile with the rows of a matrix is aligned, bit for bit, as its sequence is."""

import numpy as np
import pytest
from cases import same_tables
from gpu_windows_cases import _drive, interpreted

import jaxalign
from jaxalign import Profile, Scoring
from jaxalign.errors import UsageError

pytestmark = pytest.mark.usefixtures("compiled")

LETTERS = "ARNDCQEGHILKMFPSTWYV"
MODES = ("local", "global", "semiglobal")
FORMS = [
    *[(mode, "rows") for mode in MODES],
    ("local", "wavefront"),
    *[pytest.param(mode, "wavefront", marks=pytest.mark.slow) for mode in MODES[1:]],
    *[pytest.param(mode, "sweep", marks=pytest.mark.slow) for mode in MODES],
]


def protein(rng, size):
    return "".join(rng.choice(list(LETTERS), size))


def problem(seed=3, m=45, count=6):
    """A query, and targets of which some are near it, one is empty of likeness and
    some have equal scores."""
    rng = np.random.default_rng(seed)
    query = protein(rng, m)
    near = query[5:20] + protein(rng, 4) + query[24:], query[:30] + query[33:]
    targets = [*near, query, query, "W", query[8:11] * 5]
    targets += [protein(rng, n) for n in rng.integers(1, 60, count)]
    return query, targets


def same_hits(query, targets, scoring=None, **options):
    """The tables of a search of both kinds; they differ in published statistics."""
    profile = Profile.from_sequence(query, scoring)
    want = jaxalign.search([("sequence", query)], targets, scoring, **options)
    found = jaxalign.search(profile, targets, scoring, **options)
    assert len(found) > 3
    for name in want.columns.keys() - {"bits", "evalue"}:
        np.testing.assert_array_equal(found[name], want[name], name)
    if want.operations is not None:
        np.testing.assert_array_equal(found.operations, want.operations)
        np.testing.assert_array_equal(found.rescore(), found["score"])
    return found, want


@pytest.mark.parametrize("mode, implementation", FORMS)
def test_hits_and_their_paths(mode, implementation):
    options = {"mode": mode, "implementation": implementation}
    found, _ = same_hits(*problem(), **options)
    assert found.implementation == implementation


@pytest.mark.slow
@pytest.mark.parametrize("factor, dtype", [(1, "int8"), (40, "int32")])
def test_large_jobs_of_narrow_and_wide_scores(factor, dtype, monkeypatch):
    monkeypatch.setattr("jaxalign.pairs.plan.LARGE_JOB_CELLS", 0)
    base = Scoring()
    matrix = base.alphabet.letters, base.scores * factor
    scoring = Scoring(matrix, 11 * factor, factor)
    options = {"implementation": "sweep", "align_top": False}
    found, _ = same_hits(*problem(m=90), scoring, **options)
    assert dtype in found.info["dtypes"]


@pytest.mark.slow
def test_a_long_query_in_strips():
    query, targets = problem(m=700)
    same_hits(query, targets[:4], implementation="wavefront", align_top=False)


def test_fitted_statistics():
    found, want = same_hits(*problem(), statistics="fitted", implementation="rows")
    assert np.isfinite(want["evalue"]).all()
    for name in ("bits", "evalue"):
        np.testing.assert_array_equal(found[name], want[name])


@interpreted
@pytest.mark.slow
@pytest.mark.parametrize("mode", ["local", "semiglobal"])
def test_scores_by_the_gpu_kernels(mode, monkeypatch):
    _drive(monkeypatch)
    query, targets = problem(m=20, count=2)
    profile = Profile.from_sequence(query)
    found = jaxalign.search(profile, targets, mode=mode, implementation="pallas")
    want = jaxalign.search([query], targets, mode=mode, implementation="rows")
    assert found.implementation == "pallas"
    for name in ("score", "target", "query_start", "target_end", "gaps"):
        np.testing.assert_array_equal(found[name], want[name], name)


@pytest.mark.slow
def test_any_rows_score_what_the_general_fill_finds():
    rng = np.random.default_rng(1)
    rows = ["MKV-LAGEHW", "MKI-LAGDHW", "MRVGL-GEHF", "LKVALAGE-W"]
    profile = Profile.from_alignment(rows)
    targets = ["GG" + row.replace("-", "") + protein(rng, 5) for row in rows]
    for mode in ("local", "global"):
        found = jaxalign.align_profile(
            profile, targets, gap_open=5, gap_extend=2, mode=mode
        )
        for target, one in zip(targets, found, strict=True):
            codes = profile.alphabet.encode(target).astype(np.int32)
            pair = profile.positions, codes, profile.scores
            best = jaxalign.hard_alignment(pair, gap_open=5, gap_extend=2, mode=mode)
            assert one.score == best.score == one.rescore()
            assert one.cigar() == best.alignment(profile.consensus, target).cigar()


@pytest.mark.slow
def test_parts_of_a_search_and_single_alignments():
    query, targets = problem()
    profile = Profile.from_sequence(query)
    want = jaxalign.search(profile, targets)
    ((_, found),) = jaxalign.stream_search(profile, targets)
    same_tables(found, want)
    one = jaxalign.align(profile, targets[0], mode="local")
    assert one.score == jaxalign.align(query, targets[0], mode="local").score
    again = jaxalign.align_pairs([profile.consensus], targets, one.scoring)
    assert again["score"].tolist() == [
        x.score for x in jaxalign.align_profile(profile, targets, mode="global")
    ]


@pytest.mark.slow
def test_signs_are_those_of_positions():
    """A position that likes W only, whose consensus is W, beside one that likes all."""
    profile = Profile.from_sequence("WW")
    scores = profile.scores.copy()
    scores[1] = 1
    scores[1, LETTERS.index("W")] = 2
    mixed = Profile("mixed", scores, profile.alphabet)
    text = str(jaxalign.align(mixed, "AA"))
    assert text.splitlines()[3].split() == [".:"]


@pytest.mark.parametrize(
    "call",
    [
        lambda p: jaxalign.align_pairs(p, ["MKV"]),
        lambda p: jaxalign.align_all(["MKV"], Scoring(p)),
        lambda p: jaxalign.align_pairs(["MKVA"], ["MKV"], Scoring(p)),
        lambda p: jaxalign.align("MKV", "MKV", Scoring(p)),
        lambda p: jaxalign.align(p, "MKV", return_directions=True),
        lambda p: jaxalign.align_three("MKV", "MKV", "MKV", Scoring(p)),
        lambda p: jaxalign.cluster(["MKV"], Scoring(p), min_identity=0.5),
        lambda p: jaxalign.search(p, ["MKV"], strand="minus"),
        lambda p: jaxalign.align_profile(p, ["MKV"], gap_open=1, gap_extend=2),
    ],
)
def test_what_a_profile_is_not(call):
    with pytest.raises(UsageError, match=r"profile|gap_extend"):
        call(Profile.from_sequence("MKV"))
