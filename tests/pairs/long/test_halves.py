"""The score of a long pair by halves, on one device or two: that of the oracle."""

import threading
from functools import partial
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from long_cases import (
    have_long_pairs,
    pair_of,
    score_by_halves,
    sequences,
    texts,
    wanted,
)

import jaxalign
from jaxalign.errors import JaxalignError
from jaxalign.model.scoring import FREE_ENDS, Scoring, as_scoring
from jaxalign.pairs import compiled
from jaxalign.pairs.long import align, pruning
from jaxalign.pairs.long import fill as tile_fill
from jaxalign.pairs.long.align import Halves, turned
from jaxalign.pairs.long.fill import fill_by_tiles


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(pruning, "MIN_CELLS", 0)


def score_of(pair, mode, free=()):
    return wanted(pair, mode, frozenset(free))[0]


@pytest.mark.parametrize("mode", ["global", "local", "semiglobal"])
@pytest.mark.parametrize("where", [0, 20, 40, 60])
def test_a_gap_that_crosses_the_middle_opens_once(where, mode):
    """A gap of 60 letters of the target, wherever the middle is in it."""
    rng = np.random.default_rng(where)
    query = rng.integers(0, 20, 90).astype(np.uint8)
    gap = rng.integers(0, 20, 60).astype(np.uint8)
    at = 75 - where
    target = np.concatenate([query[:at], gap, query[at:]])
    for sides in ((query, target), (target, query)):
        pair = pair_of(*sides, as_scoring(Scoring(gap_open=40, gap_extend=1)), mode)
        assert score_by_halves(pair, True) == score_of(pair, mode)
        assert score_by_halves(pair, False) == score_of(pair, mode)


@pytest.mark.parametrize("free", [(), *((end,) for end in FREE_ENDS)])
def test_paths_along_a_border(free):
    """Nothing is alike: gaps of all letters, along row 0 and the last one too."""
    query, target = np.zeros(9, np.uint8), np.full(90, 4, np.uint8)
    for sides in ((query, target), (target, query), (query[:1], target)):
        scoring = as_scoring(Scoring(gap_open=3, gap_extend=0))
        pair = pair_of(*sides, scoring, "global", free)
        assert score_by_halves(pair, False) == score_of(pair, "global", free)


def test_pairs_turned_round_have_their_scores():
    free = ("query_start", "target_end")
    pair = pair_of(*sequences("near", 2), as_scoring(Scoring()), "global", free)
    other = turned(pair)
    assert other.free == {"query_end", "target_start"}
    assert {end for end, x in other.problem.free.items() if x} == other.free
    assert score_of(other, "global", other.free) == score_of(pair, "global", free)
    again = turned(other)
    assert (again.query == pair.query).all() and again.free == pair.free


def test_a_half_that_is_pruned_leaves_the_other_alone():
    """With the best score as a bound, most of either half is not computed."""
    pair = pair_of(*sequences("near", 5), as_scoring(Scoring()), "global")
    best = score_of(pair, "global")
    both = Halves(pair, False)
    both._bound = best
    fill = partial(fill_by_tiles, tile=(16, 16))
    assert [both.fill(number, fill) for number in (0, 1)] == [None, best]
    cells = sum(grid.cells for grids in both._grids.values() for grid in grids)
    assert cells < pair.m * pair.n // 2
    above = Halves(pair, False)
    above._bound = best + 1
    above.fill(0, fill)
    with pytest.raises(JaxalignError, match="this is a bug"):
        above.fill(1, fill)


# Jobs --------------------------------------------------------------------------------


@pytest.fixture
def few_cells(monkeypatch):
    """Pairs of some ten thousand cells are long, and have two devices."""
    have_long_pairs(monkeypatch)
    monkeypatch.setattr(align, "HALVED_CELLS", 10_000)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["global", "local", "semiglobal"])
def test_two_devices_have_the_scores_of_one(few_cells, monkeypatch, mode):
    places, fill = [], fill_by_tiles

    def watched(*args, **options):
        places.append((jax.config.jax_default_device, threading.get_ident()))
        return fill(*args, **options)

    monkeypatch.setattr(tile_fill, "fill_by_tiles", watched)
    queries, targets = texts()
    options = {"implementation": "wavefront", "mode": mode, "output": "score"}
    one = jaxalign.align_pairs(queries, targets, devices=[1], **options)
    assert {device for device, _ in places} == {jax.devices()[1]}
    places.clear()
    told = []
    four = jaxalign.align_pairs(
        queries, targets, devices="all", progress=lambda *x: told.append(x), **options
    )
    assert {device for device, _ in places} == set(jax.devices()[:4])
    assert four["score"].tolist() == one["score"].tolist()
    total = sum(len(a) * len(b) for a, b in zip(queries, targets, strict=True))
    assert told[-1] == (total, total) and told == sorted(told)
    assert all(cells > 0 for cells in four.info["device_cells"])


def test_gpus_take_halves_of_a_large_pair_by_size_alone(few_cells, monkeypatch):
    kernels = SimpleNamespace(
        supported=lambda device: (True, "a test"), long_fits=lambda *args: True
    )
    monkeypatch.setattr(compiled, "kernels_pallas", kernels)
    monkeypatch.setattr(compiled, "_on_cpu", lambda task: False)
    monkeypatch.setattr(align, "GPU_LONG_CELLS", 10_000)
    queries, targets = texts()
    plan = jaxalign.plan(queries[:1], targets[:1], output="score", devices="0,1")
    computes = [piece.compute for piece in plan.pieces]
    assert [compute.func for compute in computes] == [align._compute] * 2
    assert sorted(compute.keywords["half"] for compute in computes) == [0, 1]
    assert {x.keywords["device"] for x in computes} == {*jax.devices()[:2]}
    assert all(x.keywords["kernels"] is kernels for x in computes)
    blocks = "long pairs by pallas, in blocks"
    assert plan["reason"] == f"{blocks}, a half on each of two devices"
    assert sum(plan["device_cells"]) == plan["cells"] and all(plan["device_cells"])
    two = jaxalign.plan(queries, targets, output="score", devices="0,1")
    assert two["reason"] == blocks and len(two.pieces) == 2


@pytest.mark.parametrize(
    "options",
    [
        {"output": "stats", "devices": "0,1"},
        {"output": "score", "devices": "0"},
        {"output": "score"},
    ],
)
def test_paths_and_single_devices_have_no_halves(few_cells, options):
    queries, targets = texts()
    one = queries[:1], targets[:1]
    plan = jaxalign.plan(*one, implementation="wavefront", **options)
    assert len(plan.pieces) == 1
    plan = jaxalign.plan(queries, targets, implementation="wavefront",
                         output="score", devices="0,1,2")  # fmt: skip
    assert len(plan.pieces) == 2


def test_small_pairs_have_no_halves(few_cells, monkeypatch):
    monkeypatch.setattr(align, "HALVED_CELLS", 10**6)
    queries, targets = texts()
    plan = jaxalign.plan(queries[:1], targets[:1], implementation="wavefront",
                         output="score", devices="0,1")  # fmt: skip
    assert len(plan.pieces) == 1
