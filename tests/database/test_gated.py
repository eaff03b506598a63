"""What is near by a local alignment that reaches a score: ``nearest`` and ``purge``."""

import sys
from pathlib import Path

import numpy as np
import oracle
import pytest

import jaxalign
from jaxalign.database import nearest_scan
from jaxalign.io import corpus_files
from jaxalign.pairs import by_rows, plan

sys.path.append(str(Path(__file__).parents[1] / "homology"))
import brute_force as bf  # noqa: E402

SCORING = jaxalign.Scoring(match=2, mismatch=-1, gap_open=bf.OPEN, gap_extend=bf.EXTEND)


def drawn(seed: int):
    """(tests, corpus, least score): peptides, and words that some are parts of."""
    random = np.random.default_rng(seed)
    words = bf.random_words(random, 12, 8 + 6 * (seed % 2))
    ends = bf.random_words(random, 3, 9)
    words += [a + b for a, b in zip(ends, words, strict=False)]
    words = [words[k] for k in random.permutation(len(words))]
    return words[:5], words[5:], int(random.integers(3, 8))


@pytest.fixture(params=["one table", pytest.param("by parts", marks=pytest.mark.slow)])
def scans(request, monkeypatch):
    """Jobs are one table, or large: scores come before identities."""
    if request.param == "by parts":
        request.getfixturevalue("compiled")
        monkeypatch.setattr(plan, "LARGE_JOB_CELLS", 0)
        monkeypatch.setattr(by_rows, "MAX_SECONDS", {False: -1.0, True: -1.0})


# Of 157 one strand alone reaches the score, and the other is more identical.
@pytest.mark.parametrize("seed", [*range(8), 157])
def test_near_is_what_reaches_the_score(scans, seed):
    check_near(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100, 500, 200))
def test_near_is_what_reaches_the_score_of_many(scans, first):
    for seed in range(first, first + 50):
        check_near(seed)


def check_near(seed):
    tests, corpus, least = drawn(seed)
    asked = {"min_score": least}
    table = np.array([[bf.local_identity(a, b, least) for b in corpus] for a in tests])
    top = 1 + seed % 3
    near = jaxalign.nearest(tests, corpus, SCORING, top=top, **asked)
    for i, row in enumerate(table):
        known = np.flatnonzero(~np.isnan(row))
        order = known[np.lexsort((known, -row[known]))][:top]
        rows = near.test == i
        if not len(order):
            assert near.index[rows].tolist() == [-1]
            assert near.columns()["band"][rows].tolist() == ["none"]
            continue
        assert near.index[rows].tolist() == order.tolist(), (seed, i)
        assert near.identity[rows].tolist() == row[order].tolist()
    cut = float(np.nanmedian(table)) or 0.5
    clean = jaxalign.purge(corpus, tests, SCORING, min_identity=cut, **asked)
    shares = np.where(np.isnan(table), -1, table)
    removed = np.flatnonzero(shares.max(axis=0) >= cut)
    assert clean.removed.tolist() == removed.tolist()
    assert clean.test.tolist() == shares.argmax(axis=0)[removed].tolist()
    assert clean.value.tolist() == shares.max(axis=0)[removed].tolist()
    kept = [corpus[k] for k in np.flatnonzero(clean.kept)]
    after = jaxalign.nearest(tests, kept, SCORING, **asked)
    assert not (after.identity >= cut).any(), "what purge leaves is not near"
    unfiltered = jaxalign.nearest(
        tests, corpus, SCORING, top=top, filter=False, **asked
    )
    assert unfiltered.index.tolist() == near.index.tolist()


def test_blocks_change_nothing(monkeypatch, tmp_path):
    """Short sequences and long ones are in all blocks, and in pieces of blocks."""
    tests, corpus, least = drawn(5)
    asked = {"min_score": least, "top": 3}
    names = [f"c{k}" for k in range(len(corpus))]
    whole = jaxalign.nearest(
        tests, [*zip(names, corpus, strict=True)], SCORING, **asked
    )
    records = (f">{a}\n{b}\n" for a, b in zip(names, corpus, strict=True))
    (tmp_path / "c.fa").write_text("".join(records))
    monkeypatch.setattr(nearest_scan, "BOUNDS_AT_ONCE", 10)
    default = corpus_files.blocks.__defaults__
    monkeypatch.setattr(corpus_files.blocks, "__defaults__", (default[0], 60, 4))
    blocks = jaxalign.nearest(tests, tmp_path / "c.fa", SCORING, **asked)
    assert blocks.index.tolist() == whole.index.tolist()
    assert blocks.identity.tolist() == whole.identity.tolist()
    assert blocks.columns()["score"].tolist() == whole.columns()["score"].tolist()


@pytest.mark.parametrize("free", [None, ("query_start", "target_end")])
def test_a_score_of_alignments_whose_ends_hang_over(free):
    """``min_score`` alone leaves out pairs, and nothing else of them changes."""
    tests, corpus, _ = drawn(2)
    ends = {"mode": "global", "free_ends": free} if free else {"mode": "semiglobal"}
    asked = {"identity": "mean", "top": 12, "strand": "plus", **ends}
    near = jaxalign.nearest(tests, corpus, SCORING, min_score=3, **asked)
    every = jaxalign.nearest(tests, corpus, SCORING, **asked)
    codes = [[[bf.LETTERS.index(x) for x in y] for y in z] for z in (tests, corpus)]
    sides = bf.matrix(), bf.OPEN, bf.EXTEND, ends["mode"], frozenset(free or ())
    passing = [
        tests[i] == corpus[j] or oracle.score(codes[0][i], codes[1][j], *sides) >= 3
        for i, j in zip(every.test.tolist(), every.index.tolist(), strict=True)
    ]
    rows = near.index >= 0
    assert near.test[rows].tolist() == every.test[passing].tolist()
    assert near.index[rows].tolist() == every.index[passing].tolist()
    assert 0 < sum(passing) < len(passing)


def test_planted_fragments_are_near_and_chance_is_not():
    """Fragments of 40 residues and more inside others; nothing else has a nearest."""
    random = np.random.default_rng(11)
    letters = list("ACDEFGHIKLMNPQRSTVWY")
    tests, corpus = (
        ["".join(random.choice(letters, n)) for n in random.integers(80, 200, count)]
        for count in (12, 60)
    )
    for k in range(6):
        size = int(random.integers(40, 60))
        at = int(random.integers(0, len(tests[k]) - size))
        ends = ["".join(random.choice(letters, 30)) for _ in range(2)]
        corpus[7 * k] = ends[0] + tests[k][at : at + size] + ends[1]
    near = jaxalign.nearest(tests, corpus, link="local")
    assert near.index.tolist() == [*range(0, 42, 7), *[-1] * 6]
    clean = jaxalign.purge(corpus, tests, min_identity=0.2, link="local")
    assert clean.removed.tolist() == [*range(0, 42, 7)]
    assert f"score >= {near.info['min_score']};" in str(clean.cut)
    kept = [corpus[k] for k in np.flatnonzero(clean.kept)]
    again = jaxalign.nearest(tests, kept, link="local")
    assert again.info["min_score"] == near.info["min_score"], "whatever the corpus"
    assert not (again.identity >= 0.2).any(), "what purge leaves is not near"
