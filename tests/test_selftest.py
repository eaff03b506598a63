"""The self test of GPU kernels, on machines that have none."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import kernels_pallas as kp
from jaxalign import selftest
from jaxalign.errors import DeviceError
from jaxalign.model import bounds


def test_jobs_are_of_every_mode_output_and_scoring():
    count = 3 * len(selftest.OUTPUTS) * len(selftest.SCORINGS)
    jobs = [selftest.random_job(number) for number in range(count)]
    for key, kinds in (("mode", 3), ("output", len(selftest.OUTPUTS))):
        assert len({options[key] for *_, options in jobs}) == kinds
    assert {str(scoring) for _, scoring, _ in jobs} == {
        str(scoring) for scoring in selftest.SCORINGS
    }
    for sequences, *_ in jobs:
        lengths = np.diff(sequences.offsets)
        assert lengths.min() == 1 and lengths.max() == selftest.LONGEST


def test_the_kernels_take_every_job():
    """Also with matches counted beside scores, on all cards."""
    long = (selftest.LONGEST,) * 2
    for scoring in selftest.SCORINGS:
        for card, local, paths in product(kp.TARGETS, (True, False), (True, False)):
            identity = dict(dtype="int32", target=card)
            given = bounds.scaled(scoring, "int32", False)
            assert kp.fits(*given, *long, local, paths=paths, **identity)
            given = bounds.scaled(scoring, "int32", True)
            assert kp.fits(*given, *long, local, **identity)


def test_some_local_scores_leave_16_bits():
    number = 3 * len(selftest.OUTPUTS) * (len(selftest.SCORINGS) - 1)
    sequences, scoring, options = selftest.random_job(number)
    assert options["mode"] == "local"
    table = selftest.api.align_all(sequences, scoring, implementation="rows", **options)
    assert table["score"].max() > 2**15
    scaled = bounds.scaled(scoring, "int32", False)
    assert all(kp.detects(*scaled, card) for card in kp.TARGETS)


@pytest.mark.parametrize("wrong", [None, "score", "operations"])
def test_a_difference_is_found_and_named(monkeypatch, wrong):
    """NumPy's answers stand for those of the kernels, one of them changed."""
    align_all, told = selftest.api.align_all, []

    def changed(*sets, implementation, **options):
        table = align_all(*sets, implementation="rows", **options)
        if implementation == "rows" or wrong is None:
            return table
        if wrong == "operations":
            return replace(table, operations=table.operations + 1)
        return replace(table, columns=table.columns | {wrong: table[wrong] + 1})

    monkeypatch.setattr(selftest, "COUNT", 5)
    monkeypatch.setattr(selftest, "LONGEST", 20)
    monkeypatch.setattr(selftest.api, "align_all", changed)
    options = {"mode": "local", "output": "alignment"}
    job = selftest.random_job(0)[:2]
    monkeypatch.setattr(selftest, "random_job", lambda _: (*job, options))
    findings = selftest.compare(0, told.append)
    assert (findings.jobs, findings.pairs) == (1, 10)
    assert findings.different == told == ([f"job 0: {wrong}"] if wrong else [])
    differ = "1 jobs differ" if wrong else "equal"
    line = selftest.report(findings, 12.0, "compute capability 8.6")
    assert f"1 jobs, 10 pairs: {differ}" in line and "8.6" in line


def test_without_kernels_there_is_nothing_to_test():
    with pytest.raises(DeviceError, match="no GPU kernels run here"):
        selftest.selftest(0, print)
