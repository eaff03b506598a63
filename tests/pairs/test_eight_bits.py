"""Local scores that a CPU tries in 8 bits first are the same as without."""

import numpy as np
import pytest
from cases import same_tables, text_of

import jaxalign
from jaxalign import Scoring
from jaxalign.model import bounds
from jaxalign.pairs.cpu import execute
from jaxalign.runtime import pipeline

pytestmark = pytest.mark.usefixtures("compiled")

HIGH = 232  # of BLOSUM62 with 11/1
HIGH_OF_PATHS = 116


def sequences():
    """Empty ones, wildcards, and pairs on both sides of the limit: W with itself scores
    11, C 9."""
    rng = np.random.default_rng(3)
    texts = [text_of(rng, n, "ACDEWX") for n in (0, 1, 40, 70, 20, 0)]
    limit, one_more = "W" * 17 + "C" * 5, "W" * 13 + "C" * 10
    return [*texts, limit, limit, one_more, one_more, "W" * 40, "W" * 70]


def scores(texts, **options):
    return jaxalign.align_all(texts, **({"mode": "local", "output": "score"} | options))


@pytest.mark.slow
@pytest.mark.parametrize("output", ["stats", "alignment"])
def test_paths_beyond_eight_bits(output, monkeypatch):
    """Rows and operations of pairs on both sides of the limit, of threads and parts."""
    limit, one_more = "W" * 4 + "C" * 8, "W" * 9 + "C" * 2
    texts = [*sequences(), limit, limit, one_more, one_more, "ACD" * 9]
    want = scores(texts, output=output)
    assert {HIGH_OF_PATHS, HIGH_OF_PATHS + 1} <= {*want["score"].tolist()}
    monkeypatch.setattr("jaxalign.pairs.plan.LARGE_JOB_CELLS", 0)
    monkeypatch.setattr(execute, "MAX_OVERFLOW_RATIO", 1)
    for options in ({}, {"include_self": True, "threads": 2}, {"min_score": 50}):
        options["output"] = output
        with monkeypatch.context() as without:
            without.setattr("jaxalign.pairs.plan.LARGE_JOB_CELLS", np.inf)
            want = scores(texts, **options)
        found = scores(texts, **options)
        same_tables(found, want)
        assert found.info["dtypes"] == ["int16", "int8"]


@pytest.mark.slow
@pytest.mark.parametrize("ratio", [1, 2**20], ids=["regrouped", "refilled"])
def test_tables_of_scores_beyond_eight_bits(ratio, monkeypatch):
    tried, narrow = [], execute._narrow_rows

    def watched(*some):
        found = narrow(*some)
        tried.append(found)
        return found

    monkeypatch.setattr(execute, "_narrow_rows", watched)
    monkeypatch.setattr(execute, "MAX_OVERFLOW_RATIO", ratio)
    for options in ({}, {"include_self": True, "threads": 2}, {"min_score": HIGH}):
        monkeypatch.setattr("jaxalign.pairs.plan.LARGE_JOB_CELLS", np.inf)
        want = scores(sequences(), **options)
        assert not tried and want.info["dtypes"] == ["int16"]
        monkeypatch.setattr("jaxalign.pairs.plan.LARGE_JOB_CELLS", 0)
        cells = []
        options["progress"] = lambda *some, cells=cells: cells.append(some)
        found = scores(sequences(), **options)
        same_tables(found, want)
        assert found.info["dtypes"] == ["int16", "int8"]
        assert cells[-1] == (found.info["cells"],) * 2
        assert {rows is None for rows, _ in tried} == {ratio > 1}
        tried.clear()
    assert {HIGH, HIGH + 1} < {*want["score"].tolist()}  # the limit, and one beyond


@pytest.mark.slow
def test_parts_of_large_jobs(monkeypatch):
    """Each part computes its own pairs beyond 8 bits."""
    *texts, last = sequences()
    texts = [last, *texts]  # now two parts have such pairs
    want = scores(texts, implementation="rows")
    monkeypatch.setattr("jaxalign.pairs.plan.LARGE_JOB_CELLS", 0)
    monkeypatch.setattr(execute, "MAX_OVERFLOW_RATIO", 1)
    again, run = [], pipeline.run
    monkeypatch.setattr(
        pipeline, "run", lambda *some, **more: again.append(some) or run(*some, **more)
    )
    start = 0
    options = {"mode": "local", "output": "score", "part_rows": 20}
    for _, table in jaxalign.stream_all(texts, **options):
        part = slice(start, start := start + len(table))
        for name in ("query", "target", "score"):
            np.testing.assert_array_equal(table[name], want[name][part])
    assert start == len(want) and len(again) == 3


def test_costs_that_8_bits_do_not_hold():
    assert bounds.narrow_high(Scoring(), "local", "int8", -116) == HIGH
    wide = Scoring(gap_open=130)
    zero = bounds.least_zero(wide, "int8")
    assert zero == 3 and bounds.narrow_high(wide, "local", "int8", zero) == 0
