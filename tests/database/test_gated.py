"""What is near by a local alignment that reaches a score: ``nearest`` and ``purge``."""

import sys
from pathlib import Path

import numpy as np
import oracle
import pytest

import jaxalign
from jaxalign.pairs import by_rows, plan

sys.path.append(str(Path(__file__).parents[1] / "homology"))
import brute_force as bf  # noqa: E402

SCORING = jaxalign.Scoring(match=2, mismatch=-1, gap_open=bf.OPEN, gap_extend=bf.EXTEND)


def share(a: str, b: str, least: float) -> float:
    """The identity of two words, by loops over cells; nan below the score.

    Short ones, whose letters cannot score twice as much, are also compared from end to
    end, and the larger identity counts.
    """
    reach = min(2 * (len(x) - x.count("N")) for x in (a, b)) / least
    whole = bf.identity(a, b) if a == b or reach < 2 else float("nan")
    if a == b or reach < 1:
        return whole
    codes = [[bf.LETTERS.index(x) for x in word] for word in (a, b)]
    score, count = oracle.max_identities(
        *codes, bf.matrix(), bf.OPEN, bf.EXTEND, "local", wildcard=bf.WILDCARD
    )
    local = count / min(len(a), len(b)) if score >= least else float("nan")
    return float(np.fmax(local, whole))


def drawn(seed: int):
    """(tests, corpus, least score): peptides, and words that some are parts of."""
    random = np.random.default_rng(seed)
    words = bf.random_words(random, 12, 8 + 6 * (seed % 2))
    ends = bf.random_words(random, 3, 9)
    words += [a + b for a, b in zip(ends, words, strict=False)]
    words = [words[k] for k in random.permutation(len(words))]
    return words[:5], words[5:], int(random.integers(3, 8))


@pytest.fixture(params=["one table", "by parts"])
def scans(request, monkeypatch):
    """Jobs are one table, or large: scores come before identities."""
    if request.param == "by parts":
        request.getfixturevalue("compiled")
        monkeypatch.setattr(plan, "LARGE_JOB_CELLS", 0)
        monkeypatch.setattr(by_rows, "MAX_SECONDS", {False: -1.0, True: -1.0})


@pytest.mark.parametrize("seed", range(8))
def test_near_is_what_reaches_the_score(scans, seed):
    tests, corpus, least = drawn(seed)
    asked = {"link": "local", "min_score": least}
    table = np.array([[share(a, b, least) for b in corpus] for a in tests])
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
