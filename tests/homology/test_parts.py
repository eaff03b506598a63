"""Links of large jobs, which run in parts: the same as of one part, on any devices."""

import jax
import numpy as np
import plain_launches
import pytest

import jaxalign
from jaxalign.errors import MemoryPlanError
from jaxalign.homology import across, clustering, links, options
from jaxalign.model.alphabet import from_parts
from jaxalign.pairs import part_stream
from jaxalign.pairs.options import make_task
from jaxalign.pairs.proofs import lcs_launches, proof
from jaxalign.runtime import pipeline

LETTERS = [*"ARNDCQEGHILKMFPSTWYV"]
CUT = 0.6


def drawn(count: int = 90) -> list[str]:
    """Proteins of 0 to 130 residues, of which two thirds are like an earlier one."""
    random = np.random.default_rng(4)
    texts: list[str] = ["", "W"]
    for k in range(count):
        if k % 3:
            letters = np.array([*texts[random.integers(1, len(texts))]])
            replaced = random.random(len(letters)) < random.uniform(0, 0.7)
            letters[replaced] = random.choice(LETTERS, replaced.sum())
            texts.append("".join(letters))
        else:
            texts.append("".join(random.choice(LETTERS, random.integers(1, 130))))
    return texts


TEXTS = drawn()


LAUNCHES = ("launches", "launches of two devices")


@pytest.fixture(
    params=["cpu", *[pytest.param(way, marks=pytest.mark.slow) for way in LAUNCHES]]
)
def in_parts(request, monkeypatch):
    """Options of jobs that run in many parts."""
    for name, value in {"MIN_PARTS": 12, "QUERIES_STEP": 1, "MIN_CELLS": 1}.items():
        monkeypatch.setattr(part_stream, name, value)
    if request.param == "cpu":
        return {"implementation": "sweep"}
    plain_launches.use(monkeypatch)
    monkeypatch.setattr(proof, "MAX_LEFT_OF_A_GPU", 1)
    limits = part_stream.ON_GPU._replace(looked_at=900, pairs=200)
    monkeypatch.setattr(part_stream, "ON_GPU", limits)
    devices = {"devices": [0, 2]} if "two" in request.param else {}
    return {"implementation": "sweep"} | devices


@pytest.mark.slow
def test_links_of_a_set(in_parts):
    want = jaxalign.identity_graph(TEXTS, min_identity=CUT, filter=False, link="whole")
    found = jaxalign.identity_graph(TEXTS, min_identity=CUT, **in_parts)
    assert (found != want).nnz == 0 and want.nnz > 80
    assert (found.indices == want.indices).all()
    asked = {"min_identity": CUT, "method": "complete"}  # which takes all links
    counts = jaxalign.cluster(TEXTS, **asked, **in_parts).info
    n = len(TEXTS)
    assert counts["all"] == n * (n - 1) // 2
    assert counts["aligned"] + sum(counts["excluded"].values()) == counts["all"]
    assert counts["at_or_above_cut"] == want.nnz // 2


@pytest.mark.slow
@pytest.mark.parametrize("worst", [3, 400])
def test_audits(in_parts, worst):
    parts = {"a": TEXTS[::2], "b": TEXTS[1::4], "c": TEXTS[3::4]}
    asked = {"min_identity": CUT, "worst": worst}
    want = jaxalign.audit(parts, filter=False, **asked)
    found = jaxalign.audit(parts, **asked, **in_parts)
    assert found.leaks == want.leaks > 20
    for ours, others in zip(found.leaking, want.leaking, strict=True):
        assert ours.tolist() == others.tolist()
    for name in found.worst:
        assert found.worst[name].tolist() == want.worst[name].tolist()
    assert found.info["all"] == want.info["all"]
    excluded = sum(found.info["excluded"].values())
    assert found.info["aligned"] + excluded == found.info["all"]


@pytest.mark.slow
def test_audits_are_told_of_all_cells(in_parts):
    told = []
    parts = [TEXTS[::2], TEXTS[1::2]]
    watch = {"progress": lambda cells, of: told.append((cells, of))}
    jaxalign.audit(parts, min_identity=CUT, **watch, **in_parts)
    cells = [sum(map(len, part)) for part in parts]
    assert {of for _, of in told} == {cells[0] * cells[1]}
    assert max(cells for cells, _ in told) == cells[0] * cells[1]


@pytest.mark.slow
def test_greedy_clusters(in_parts, monkeypatch):
    want = jaxalign.cluster(TEXTS, min_identity=CUT, method="greedy", link="whole")
    monkeypatch.setattr(clustering, "rows_at_once", lambda *_: 100)
    found = jaxalign.cluster(TEXTS, min_identity=CUT, method="greedy", **in_parts)
    assert found.representative_of.tolist() == want.representative_of.tolist()
    assert found.identity.tolist() == want.identity.tolist()


@pytest.mark.slow
def test_wide_launches_without_memory_run_narrow(monkeypatch):
    """Nothing is lost or comes twice; other errors are told in one line."""
    some = TEXTS[:45]
    want = jaxalign.identity_graph(some, min_identity=CUT, filter=False, link="whole")
    plain_launches.use(monkeypatch)
    monkeypatch.setattr(proof, "MAX_LEFT_OF_A_GPU", 1)
    wide, failed = plain_launches.FEW._replace(queries=20, targets=40), []
    monkeypatch.setattr(plain_launches, "FEW", wide)
    monkeypatch.setattr(lcs_launches, "NARROW", wide._replace(queries=7, targets=9))
    one_launch, message = lcs_launches._launch, "RESOURCE_EXHAUSTED: of memory"

    def launch(launches, *arguments):
        if launches.sizes == wide:
            failed.append(message)
            raise jax.errors.JaxRuntimeError(message)
        return one_launch(launches, *arguments)

    monkeypatch.setattr(lcs_launches, "_launch", launch)
    asked = {"min_identity": CUT, "implementation": "sweep"}
    found = jaxalign.identity_graph(some, **asked)
    assert (found != want).nnz == 0 and want.nnz and len(failed) > 2
    message = "INTERNAL: illegal address"
    with pytest.raises(jaxalign.DeviceFailure, match="common subsequences of a job"):
        jaxalign.identity_graph(some, **asked)


@pytest.mark.parametrize("kind", [pytest.param("all", marks=pytest.mark.slow), "cross"])
def test_parts_that_are_held_fit_the_budget(kind, monkeypatch):
    """As many devices hold more parts, which are smaller, then."""
    monkeypatch.setattr(pipeline, "PARTS_AHEAD", 4)  # as of twice as many devices
    lengths = np.arange(20000) % 3
    some = from_parts(
        [""] * len(lengths), [np.zeros(n, np.uint8) for n in lengths],
        jaxalign.Scoring().alphabet,
    )  # fmt: skip
    few = options.HomologyOptions(memory_budget=10**9, devices="all")
    definition = options.define(jaxalign.Scoring(), few, 0.5)
    pairs = options.pair_options(definition)
    task = make_task(kind, some, some, definition.scoring, pairs)
    assert len(task.devices) == 4
    parts = links.parts_of(task, definition)
    held = part_stream.parts_held(len(task.devices))
    assert part_stream.reserved_bytes(task, parts, held) < 10**9
    assert len(parts) > 32
    with pytest.raises(MemoryPlanError):
        jaxalign.cluster(
            some, min_identity=0.5, memory_budget=1000, devices=[0], link="whole"
        )


def test_words_are_those_of_each_sequence():
    random = np.random.default_rng(0)
    alphabet = jaxalign.Scoring().alphabet
    for word in (2, 4):
        for count in [*range(8)] * 4:
            some = [
                random.integers(0, 3, random.integers(0, 9)).astype(np.uint8)
                for _ in range(count)
            ]
            found = across._words(from_parts([""] * count, some, alphabet), word, 25)
            assert found.shape == (count, 25**word) and set(found.data) <= {1}
            for codes, row in zip(some, found.toarray(), strict=True):
                starts = range(len(codes) - word + 1)
                digits = [codes[k : k + word].tolist() for k in starts]
                want = {sum(x * 25**p for p, x in enumerate(d[::-1])) for d in digits}
                assert set(np.flatnonzero(row)) == want


def test_likely_pairs_share_the_most_words(monkeypatch):
    random, alphabet = np.random.default_rng(1), jaxalign.Scoring().alphabet
    monkeypatch.setattr(across, "BLOCK", 3)
    a, b = (
        from_parts(
            [""] * count,
            [random.integers(0, 4, n).astype(np.uint8) for n in sizes],
            alphabet,
        )
        for count in (5, 8)
        for sizes in [random.integers(0, 30, count)]
    )
    words = [
        [
            {tuple(x[k : k + across.SHORT_WORD]) for k in range(len(x) - 1)}
            for x in (side[k].tolist() for k in range(len(side)))
        ]
        for side in (a, b)
    ]
    both, longer = across.likely_pairs(a, b, 4, 3, 2), across.likely_pairs(a, b, 4)
    turned = across.likely_pairs(b, a, 4)[0][::-1]
    assert not any(map(len, longer[1]))
    for (i, j), join, count in (
        (both[0], max, 4),
        (both[1], min, 3),
        (longer[0], max, 4),
        (turned, max, 4),
    ):
        share = np.array(
            [
                [
                    len(x & y) / join(max(int(m), 1), max(int(n), 1))
                    for y, n in zip(words[1], b.lengths, strict=True)
                ]
                for x, m in zip(words[0], a.lengths, strict=True)
            ]
        )
        which, best = j, share.max(axis=0)  # b is the larger set
        assert share[i, j].tolist() == best[which].tolist()
        assert len(set(which.tolist())) == count
        assert sorted(best[which]) == sorted(best)[-count:]
