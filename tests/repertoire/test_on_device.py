"""The form for GPUs, run on the CPU: lists of a fixed size, and what does not fit."""

import numpy as np
import pytest
import receptor_oracle as oracle

import jaxalign
from jaxalign.repertoire import candidates, engine, on_device, rectangles
from jaxalign.repertoire.dp import hits

TEXTS = oracle.receptors(60, seed=5, lengths=(10, 13))
ROOMY = on_device.DeviceTile(32, 64, 512, 2048, 2048, 16)
NARROW = on_device.DeviceTile(32, 64, 2, 4, 2, 16)


@pytest.fixture(params=[ROOMY, NARROW], ids=["roomy", "narrow"])
def tile(request, monkeypatch):
    monkeypatch.setattr(candidates, "MAX_WITHOUT_JAX", 0)
    monkeypatch.setattr(candidates, "MAX_LISTED", 0)
    monkeypatch.setattr(candidates, "on_host", lambda device: False)
    monkeypatch.setattr(on_device, "GPU_TILE", request.param)
    monkeypatch.setattr(engine, "VARIANT_PAIRS", 10**9)
    return request.param


@pytest.mark.parametrize("metric", ["tcrdist", "levenshtein", "alignment"])
def test_edges(tile, metric):
    texts = TEXTS[:24]
    edges = jaxalign.repertoire_graph(texts, metric=metric).edges
    cutoff = {"tcrdist": 20, "alignment": 10}.get(metric, 2)
    expected = oracle.edges(texts, getattr(oracle, metric), cutoff)
    assert expected
    pairs = zip(edges.i.tolist(), edges.j.tolist(), strict=True)
    assert dict(zip(pairs, edges.distance.tolist(), strict=True)) == expected


def test_all_pairs_are_near(tile):
    graph = jaxalign.repertoire_graph(TEXTS[:30], TEXTS[20:], cutoff=10**4)
    assert graph.matrix.nnz == 30 * 40


@pytest.mark.parametrize("room", [(64, 2048), (5, 2048), (64, 3)])
def test_lists_say_what_does_not_fit(room):
    draw = np.random.default_rng(2)
    mask = np.where(draw.random((8, 8)) < 0.4, draw.integers(1, 2**32, (8, 8)), 0)
    mask = mask.astype(np.uint32)
    counts, query, target = map(np.asarray, hits.mask_pairs(mask, *room))
    expected = rectangles.pairs_of(mask)
    assert counts[0] == np.count_nonzero(mask)
    if counts[0] <= room[0]:
        assert counts[1] == len(expected[0])
    if (counts <= room).all():
        found = zip(query[: counts[1]], target[: counts[1]], strict=True)
        assert {*found} == {*zip(*expected, strict=True)}
