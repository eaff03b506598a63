"""What is near to a test set, by brute force over tiny sets; blocks, ties, refusals."""

import brute_force as bf
import numpy as np
import oracle
import pytest

import jaxalign
from jaxalign.io import corpus_files
from jaxalign.model import statistics

SCORING = jaxalign.Scoring(match=2, mismatch=-1, gap_open=bf.OPEN, gap_extend=bf.EXTEND)
KINDS, MODES = ("longer", "shorter", "mean"), ("global", "local", "semiglobal")


def drawn(seed: int):
    words = bf.random_words(np.random.default_rng(seed), 12)
    return words[:9], words[9:]


def expected(values: np.ndarray, cut: float):
    """(removed, test, value) of a table (train, tests): the first of the best."""
    values = np.where(np.isnan(values), -1, values)
    best = values.argmax(axis=1)
    removed = np.flatnonzero(values.max(axis=1) >= cut)
    return (
        removed.tolist(),
        best[removed].tolist(),
        values.max(axis=1)[removed].tolist(),
    )


def result(clean):
    return clean.removed.tolist(), clean.test.tolist(), clean.value.tolist()


@pytest.mark.parametrize("seed", range(18))
def test_by_identity(seed):
    train, tests = drawn(seed)
    kind, mode = KINDS[seed % 3], MODES[seed // 3 % 3]
    shares = np.array([[bf.identity(a, b, kind, mode) for b in tests] for a in train])
    known = shares[(shares > 0) & np.isfinite(shares)]
    cut = float(np.median(known)) if len(known) else 0.5
    options = {"min_identity": cut, "identity": kind, "mode": mode}
    clean = jaxalign.purge(train, tests, SCORING, **options)
    assert result(clean) == expected(shares, cut), (train, tests)
    assert clean.names == tuple(f"seq{k + 1}" for k in clean.removed)
    unfiltered = jaxalign.purge(train, tests, SCORING, filter=False, **options)
    assert result(unfiltered) == result(clean)
    if mode == "global" and clean.kept.any():
        stay = [train[k] for k in np.flatnonzero(clean.kept)]
        audit = jaxalign.audit([stay, tests], SCORING, min_identity=cut, identity=kind)
        assert audit.holds


def local_scores(train, tests):
    def score(a, b):
        codes = [[bf.LETTERS.index(x) for x in word] for word in (a, b)]
        sides = *codes, bf.matrix(), bf.OPEN, bf.EXTEND, "local"
        return oracle.max_identities(*sides, wildcard=bf.WILDCARD)[0]

    of_pairs = [[bf.either_strand(score, b, a) for b in tests] for a in train]
    return np.array(of_pairs, float)


@pytest.mark.parametrize("seed", range(6))
def test_by_score(seed):
    train, tests = drawn(seed)
    clean = jaxalign.purge(train, tests, SCORING, min_score=6)
    scores = local_scores(train, tests)
    equal = np.array([[a in (b, bf.turned(b)) for b in tests] for a in train])
    assert result(clean) == expected(np.where(equal | (scores >= 6), scores, -1), 0)


@pytest.mark.parametrize("seed", range(4))
def test_by_evalue(seed):
    random = np.random.default_rng(seed)
    tests = ["".join(random.choice([*"ARNDCQEGHILK"], n)) for n in (60, 30, 9)]
    train = [tests[k % 3][: int(random.integers(8, 40))] for k in range(12)]
    scoring = jaxalign.Scoring.blast(11, 1)
    known = statistics.parameters(scoring, "local")
    table = np.array(
        [[jaxalign.align(b, a, scoring, mode="local").score for b in tests]
         for a in train]
    )  # fmt: skip
    size = sum(map(len, train)), len(train)
    m = np.array([[len(b) for b in tests]] * len(train))
    evalues = statistics.evalues(table.ravel(), m.ravel(), *size, known)
    evalues = evalues.reshape(table.shape)
    for cut in (1e-3, float(np.median(evalues.min(axis=1)))):
        clean = jaxalign.purge(train, tests, scoring, max_evalue=cut)
        equal = np.array(train)[:, None] == tests  # and alike whatever they score
        within = np.where(equal | (evalues <= cut), evalues, np.inf)
        near = np.flatnonzero(within.min(axis=1) < np.inf)
        assert clean.removed.tolist() == near.tolist()
        assert clean.test.tolist() == within.argmin(axis=1)[near].tolist()
        assert clean.value.tolist() == within.min(axis=1)[near].tolist()


@pytest.mark.parametrize(
    "cut",
    [
        {"min_identity": 0.5, "link": "whole"},
        {"min_identity": 0.5, "min_score": 4},
        {"min_score": 2},
    ],
)
def test_blocks_and_files_change_nothing(monkeypatch, tmp_path, cut):
    train, tests = drawn(3)
    records = [f">c{k}\n{word}\n" for k, word in enumerate(train)]
    (tmp_path / "a.fa").write_text("".join(records[:4]))
    (tmp_path / "rest.fasta").write_text("".join(records[4:]))
    whole = jaxalign.purge(train, tests, SCORING, **cut)
    jaxalign.index_database(tmp_path / "rest.fasta", tmp_path / "b.jaxdb", SCORING)
    (tmp_path / "rest.fasta").unlink()
    default = corpus_files.blocks.__defaults__
    monkeypatch.setattr(corpus_files.blocks, "__defaults__", (default[0], 9, 2))
    parts = jaxalign.purge(tmp_path, tests, SCORING, **cut)
    assert result(parts) == result(whole) and len(whole)
    assert parts.names == tuple(f"c{k}" for k in parts.removed)


def test_odd_sets():
    clean = jaxalign.purge(["", "XX", "MKTAYIAK"], ["X", "XXX"], min_identity=0.1)
    assert not len(clean) and clean.kept.all() and "3 kept" in str(clean)
    clean = jaxalign.purge(["", "XX", "MKTAYIAK"], ["", "XX"], min_identity=0.1)
    assert clean.kept.tolist() == [False, False, True]
    assert not len(jaxalign.purge(["MK"], [], min_score=1))
    assert not len(jaxalign.purge([], ["MK"], max_evalue=1))


@pytest.mark.parametrize(
    "options, text",
    [
        ({}, "one cut is needed, and not two: min_identity"),
        ({"min_identity": 0.5, "max_evalue": 3}, "and not two"),
        ({"min_score": 5, "max_evalue": 3}, "and not two"),
        (
            {"min_score": 5, "link": "local"},
            "link local needs a cut by min_identity",
        ),
        (
            {"min_identity": 1, "link": "local", "scoring": SCORING},
            "give min_score or min_relative_score, or compare",
        ),
        ({"min_identity": 0}, "min_identity = 0"),
        ({"min_score": 0}, "min_score = 0"),
        ({"max_evalue": float("nan")}, "max_evalue = nan"),
        ({"min_score": 5, "mode": "global"}, "local alignments"),
        ({"min_score": 5, "min_length_ratio": 0.5}, "needs min_identity"),
        ({"min_identity": 0.5, "min_cov": 0.5, "link": "whole"}, "end to end"),
        ({"min_identity": 0.5, "min_cov": 5, "mode": "local"}, "min_cov = 5"),
        ({"max_evalue": 1, "scoring": SCORING}, "no statistics are published"),
    ],
)
def test_refusals(options, text):
    with pytest.raises(jaxalign.UsageError) as error:
        jaxalign.purge(["ACGT"], ["ACGT"], **options)
    assert text in str(error.value)
