"""Global tables by differences: scores and identities of the oracle, the same paths."""

from itertools import product

import numpy as np
import oracle
import pytest
from cases import same_tables, text_of

import jaxalign
from jaxalign import Scoring
from jaxalign.model import bounds

pytestmark = pytest.mark.usefixtures("compiled")

LETTERS = "ACDW"
STARTS = ([], ["query_start"], ["target_start"], ["query_start", "target_start"])


def scoring_of(same, other, gap_open, gap_extend):
    S = np.where(np.eye(len(LETTERS), dtype=bool), same, other)
    return Scoring((LETTERS, S), gap_open, gap_extend)


def one_way():
    """Scores that depend on the order of the two letters."""
    S = np.where(np.eye(len(LETTERS), dtype=bool), 5, -3) - np.tri(4, k=-1, dtype=int)
    return Scoring((LETTERS, S), 11, 1)


# What is computed lies in 0 ... max(S) + 2 * gap_open, and min(S) at the other limit.
HIGHEST = 255 - 2 * 40, -41, 40, 1
HIGHEST_OF_PATHS = 254 - 2 * 40, -40, 40, 1
CASES = {
    "blosum": Scoring(),
    "linear": Scoring(gap_open=4, gap_extend=4),
    "limits": scoring_of(*HIGHEST),
    "free extension": scoring_of(255 - 2 * 39, -39, 39, 0),
    "negative": scoring_of(-1, -3, 2, 2),
    "one way": one_way(),
}


def some_cases(quick, *slow):
    return [quick, *(pytest.param(x, marks=pytest.mark.slow) for x in slow)]


def sequences(scoring):
    """Empty ones and short ones, longer than a strip and than a tile; some alike, some
    without a letter in common, and wildcards."""
    letters = "ACDEWX" if scoring.alphabet == Scoring().alphabet else LETTERS
    rng = np.random.default_rng(8)
    texts = [text_of(rng, n, letters) for n in (0, 1, 2, 7, 8, 9, 16, 17, 33, 0)]
    alike = text_of(rng, 200, letters)
    return [*texts, "W" * 30, "A" * 41, alike, alike[:90] + alike[130:]]


def problem_of(a, b, scoring, free=()):
    """Codes and costs of a pair, as the oracle takes them."""
    codes = scoring.alphabet.encode(a), scoring.alphabet.encode(b)
    return *codes, scoring.scores, scoring.open, scoring.extend, "global", set(free)


def score_of(a, b, scoring, free=()):
    return oracle.score(*problem_of(a, b, scoring, free))


def identities_of(a, b, scoring):
    wildcard = scoring.alphabet.wildcard_code
    return oracle.max_identities(*problem_of(a, b, scoring), wildcard=wildcard)


def check(found, texts, scoring, free=()):
    """Every score of a table is that of the oracle."""
    assert "uint8" in found.info["dtypes"]
    rows = zip(found["query"], found["target"], found["score"], strict=True)
    for i, j, score in rows:
        assert score == score_of(texts[i], texts[j], scoring, free)


@pytest.mark.parametrize("name", some_cases("limits", "linear", "free extension"))
def test_scores_by_differences(name, monkeypatch):
    monkeypatch.setattr("jaxalign.pairs.plan.LARGE_JOB_CELLS", 0)
    scoring = CASES[name]
    texts = sequences(scoring)
    options = {"output": "score", "scoring": scoring}
    check(jaxalign.align_all(texts, **options), texts, scoring)


@pytest.mark.parametrize("name", some_cases("limits", "negative", "one way"))
def test_identities_by_differences(name):
    """In 16 bits, whatever the size of the job; matches fill the low digits."""
    scoring = CASES[name]
    texts = sequences(scoring)
    found = jaxalign.align_all(texts, scoring, output="identity")
    assert "uint16" in found.info["dtypes"]
    for i, j, *values in zip(
        *(found[x] for x in ("query", "target", "score", "max_identities")), strict=True
    ):
        assert tuple(values) == identities_of(texts[i], texts[j], scoring)


def zipped(texts):
    """Every ordered pair of some sequences: (queries, targets)."""
    return [list(side) for side in zip(*product(texts, texts), strict=True)]


@pytest.mark.parametrize("name", some_cases("blosum", "linear", "limits"))
def test_pairs_of_a_lane_each_by_differences(name):
    """Identities in 16 bits where a byte holds a score and a match."""
    scoring = CASES[name]
    queries, targets = zipped(sequences(scoring))
    found = jaxalign.align_pairs(queries, targets, scoring, output="identity")
    largest = max(int(scoring.scores.max()), 0) + 2 * scoring.open
    assert ("uint16" in found.info["dtypes"]) == (2 * largest + 1 <= 255)
    values = zip(found["score"], found["max_identities"], strict=True)
    for a, b, value in zip(queries, targets, values, strict=True):
        assert value == identities_of(a, b, scoring)


@pytest.mark.slow
@pytest.mark.parametrize("free", STARTS[1::2], ids="-".join)
def test_scores_of_a_lane_each_by_differences(free, monkeypatch):
    monkeypatch.setattr("jaxalign.pairs.plan.LARGE_JOB_CELLS", 0)
    scoring = one_way() if len(free) == 2 else Scoring()
    queries, targets = zipped(sequences(scoring))
    options = {"output": "score", "scoring": scoring, "free_ends": free, "threads": 2}
    found = jaxalign.align_pairs(queries, targets, **options)
    assert "uint8" in found.info["dtypes"]
    for a, b, score in zip(queries, targets, found["score"], strict=True):
        assert score == score_of(a, b, scoring, free)


def test_what_a_byte_of_a_lane_holds():
    """The largest score and two gaps, and a match beside them."""
    assert bounds.fits_bytes(scoring_of(55, -41, 100, 1), 1)
    assert not bounds.fits_bytes(scoring_of(56, -41, 100, 1), 1)
    assert bounds.fits_bytes(scoring_of(27, -41, 50, 1), 500)
    assert not bounds.fits_bytes(scoring_of(28, -41, 50, 1), 500)


@pytest.mark.slow
def test_more_matches_than_16_bits_hold():
    """A base has room for fewer matches than itself: longer pairs are filled as before,
    and so is a window with one."""
    scoring = scoring_of(*HIGHEST)
    base = bounds.differences_base(scoring, "uint16")
    assert base * (175 + 2 * 40) + 1 <= 2**16 - 1 < (base + 1) * (175 + 2 * 40) + 1
    for matches in (base - 1, base):
        texts = ["A" * matches, "A" * matches, "ACDW"]
        options = {"output": "identity", "implementation": "sweep"}
        found = jaxalign.align_all(texts, scoring, **options)
        assert ("uint16" in found.info["dtypes"]) == (matches < base)
        assert found["max_identities"].tolist() == [matches, 1, 1]
        assert int(found["score"][0]) == matches * 175


def test_scorings_beyond_16_bits():
    assert bounds.differences_base(scoring_of(5, -43, 40, 2), "uint16") == 0
    assert bounds.differences_base(scoring_of(1, -1, 1, 1), "uint16") == 2**13


@pytest.mark.parametrize(
    "free",
    [STARTS[-1], *(pytest.param(x, marks=pytest.mark.slow) for x in STARTS[1:-1])],
    ids="-".join,
)
def test_free_starts(free, monkeypatch):
    monkeypatch.setattr("jaxalign.pairs.plan.LARGE_JOB_CELLS", 0)
    texts = sequences(Scoring())
    options = {"output": "score", "free_ends": free, "threads": 2}
    check(jaxalign.align_all(texts, **options), texts, Scoring(), free)


@pytest.mark.slow
def test_a_matrix_of_scores(monkeypatch):
    monkeypatch.setattr("jaxalign.pairs.plan.LARGE_JOB_CELLS", 0)
    texts = sequences(Scoring())
    found = jaxalign.scores_matrix(texts[:5], texts)
    for (i, a), (j, b) in product(enumerate(texts[:5]), enumerate(texts)):
        assert found[i, j] == score_of(a, b, Scoring())


@pytest.mark.parametrize(
    "scoring, options",
    [
        (Scoring(), {"free_ends": ["query_start", "target_start"]}),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in (
                (Scoring(gap_open=4, gap_extend=4), {"output": "stats", "threads": 2}),
                (scoring_of(*HIGHEST_OF_PATHS), {}),
                (one_way(), {}),
            )
        ),
    ],
    ids=["free starts", "linear", "limits", "one way"],
)
def test_paths_by_differences(scoring, options, monkeypatch):
    """Rows and operations are those of the scores themselves, by rows."""
    texts = sequences(scoring)
    texts += [text[::-1] for text in texts[2:]]  # alike in length: ties, swapped sides
    options = {"output": "alignment", "scoring": scoring} | options
    want = jaxalign.align_all(texts, implementation="rows", **options)
    monkeypatch.setattr("jaxalign.pairs.plan.LARGE_JOB_CELLS", 0)
    found = jaxalign.align_all(texts, **options)
    assert "uint8" in found.info["dtypes"]
    same_tables(found, want)


def test_what_8_bits_of_differences_hold():
    for paths, limits in ((False, HIGHEST), (True, HIGHEST_OF_PATHS)):
        same, other, gap_open, gap_extend = limits
        assert bounds.fits_differences(scoring_of(*limits), "uint8", paths)
        for beyond in ((same + 1, other), (same, other - 1)):
            wide = scoring_of(*beyond, gap_open, gap_extend)
            assert not bounds.fits_differences(wide, "uint8", paths)
    free_extension = Scoring(gap_open=11, gap_extend=0)
    assert bounds.fits_differences(free_extension, "uint8", False)
    assert not bounds.fits_differences(free_extension, "uint8", True)


def test_jobs_that_are_filled_as_they_are(monkeypatch):
    """Free ends behind the sequences, identities, and scorings beyond."""
    monkeypatch.setattr("jaxalign.pairs.plan.LARGE_JOB_CELLS", 0)
    texts = ["ACD", "ACW"] * 9
    same, other, *gaps = HIGHEST
    for options in (
        {"mode": "semiglobal"},
        {"free_ends": ["query_end"]},
        {"output": "identity", "mode": "semiglobal"},
        {"output": "identity", "mode": "local"},
        {"output": "stats", "scoring": scoring_of(*HIGHEST)},
        {"scoring": scoring_of(same + 1, other, *gaps)},
    ):
        plan = jaxalign.plan(texts, **{"output": "score"} | options)
        assert not {"uint8", "uint16"} & set(plan["dtypes"])
