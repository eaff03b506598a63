"""Every metric against its definition, on all pairs, by every way to compare."""

import pytest
import receptor_oracle as oracle

import jaxalign
from jaxalign.model.scoring import Scoring
from jaxalign.repertoire import bounds, rectangles
from jaxalign.repertoire import graph as engine
from jaxalign.words import near_pairs

TEXTS = oracle.receptors(60, seed=1)
SHORT = ["", "C", "CA", "CF", "CAF", "CAS", "CASF", "CASSF", "CASSFF", "CAWSFF"][1:]
TCRDISTS = [
    {},
    {"fixed_gap": False},
    {"ntrim": 0, "ctrim": 0, "gap_penalty": 7},
    {"ntrim": 5, "ctrim": 1, "weight": 1, "gap_penalty": 1, "fixed_gap": False},
    {"offset": 5, "cap": 6, "weight": 2, "gap_penalty": 3, "ntrim": 1, "ctrim": 4},
    {"gap_penalty": 0, "fixed_gap": False},
]


def as_dict(edges):
    sides = (x.tolist() for x in edges.sides)
    return {(i, j): d for i, j, d in zip(*sides, strict=True)}


@pytest.fixture(params=["listed", "tiles"])
def way(request, monkeypatch):
    """Small jobs list their pairs; with these numbers they go through tiles."""
    if request.param == "tiles":
        monkeypatch.setattr(rectangles, "MAX_WITHOUT_JAX", 0)
        monkeypatch.setattr(rectangles, "MAX_LISTED", 0)
        monkeypatch.setattr(rectangles, "CPU_TILE", rectangles.TileSize(16, 64))
    return request.param


@pytest.mark.parametrize("options", TCRDISTS, ids=str)
@pytest.mark.parametrize(
    "cutoff", [20, *(pytest.param(x, marks=pytest.mark.slow) for x in (0, 37))]
)
def test_tcrdist(options, cutoff, way):
    texts = SHORT + TEXTS
    graph = jaxalign.repertoire_graph(texts, cutoff=cutoff, **options)
    expected = oracle.edges(texts, lambda x, y: oracle.tcrdist(x, y, **options), cutoff)
    assert as_dict(graph.edges) == expected


@pytest.mark.parametrize("cutoff", [0, 1, 3, 30])
def test_hamming(cutoff, way):
    texts = SHORT + TEXTS
    graph = jaxalign.repertoire_graph(texts, metric="hamming", cutoff=cutoff)
    assert as_dict(graph.edges) == oracle.edges(texts, oracle.hamming, cutoff)


@pytest.mark.parametrize("cutoff", [0, 1, 2, 3, 7])
@pytest.mark.parametrize("deletions", [False, True])
def test_levenshtein(cutoff, deletions, way, monkeypatch):
    if deletions and cutoff > 3:
        pytest.skip("all choices of seven letters are too many")
    monkeypatch.setattr(engine, "VARIANT_PAIRS", 0 if deletions else 10**9)
    texts = SHORT + TEXTS[:40]
    graph = jaxalign.repertoire_graph(texts, metric="levenshtein", cutoff=cutoff)
    assert as_dict(graph.edges) == oracle.edges(texts, oracle.levenshtein, cutoff)


@pytest.mark.parametrize("cutoff", [0, 10, 25])
@pytest.mark.parametrize(
    "gap_penalty", [4, *(pytest.param(x, marks=pytest.mark.slow) for x in (1, 11))]
)
def test_linear_alignment(cutoff, gap_penalty, way):
    texts = SHORT[::2] + TEXTS[:16]
    options = {"metric": "alignment", "cutoff": cutoff, "gap_penalty": gap_penalty}
    graph = jaxalign.repertoire_graph(texts, **options)

    def distance(x, y):
        return oracle.alignment(x, y, gap_penalty, gap_penalty)

    assert as_dict(graph.edges) == oracle.edges(texts, distance, cutoff)


@pytest.mark.parametrize("costs", [(5, 2), (11, 1)])
def test_affine_alignment(costs, way):
    texts, cutoff = SHORT[::2] + TEXTS[:16], 24
    scoring = Scoring("BLOSUM62", *costs)
    options = {"metric": "alignment", "cutoff": cutoff, "scoring": scoring}
    graph = jaxalign.repertoire_graph(texts, **options)

    def distance(x, y):
        return oracle.alignment(x, y, *costs)

    assert as_dict(graph.edges) == oracle.edges(texts, distance, cutoff)


@pytest.mark.parametrize("metric", ["tcrdist", "hamming", "levenshtein", "alignment"])
@pytest.mark.parametrize("deletions", [False, True])
def test_against_a_reference(metric, deletions, way, monkeypatch):
    monkeypatch.setattr(engine, "VARIANT_PAIRS", 0 if deletions else 10**9)
    texts, others = TEXTS[:16], TEXTS[10:24] + SHORT[::2]
    graph = jaxalign.repertoire_graph(texts, others, metric=metric)
    cutoff = graph.plan.definition.cutoff
    expected = oracle.edges(texts, getattr(oracle, metric), cutoff, others)
    assert as_dict(graph.edges) == expected
    assert graph.matrix.shape == (len(texts), len(others))


@pytest.mark.parametrize("metric", ["tcrdist", "levenshtein", "alignment"])
@pytest.mark.parametrize(
    "block_rows",
    [7, 1000, *(pytest.param(x, marks=pytest.mark.slow) for x in (1, 59))],
)
def test_blocks_have_the_same_edges(metric, block_rows):
    texts = TEXTS[:12] if block_rows == 1 else TEXTS
    whole = jaxalign.repertoire_graph(texts, metric=metric).edges
    blocks = [*jaxalign.stream_repertoire(texts, metric=metric, part_rows=block_rows)]
    for side in range(3):
        joined = [x for block in blocks for x in block.edges.sides[side].tolist()]
        assert joined == whole.sides[side].tolist()
    rows = [row for block in blocks for row in block.rows]
    assert rows == [*range(len(texts))]


@pytest.mark.parametrize("passes", [1, 3])
def test_passes_over_hashes_miss_nothing(passes, monkeypatch):
    monkeypatch.setattr(engine, "VARIANT_PAIRS", 0)
    monkeypatch.setattr(near_pairs, "LEAST_KEYS", 2**20 if passes == 1 else 2**8)
    graph = jaxalign.repertoire_graph(TEXTS, metric="levenshtein", memory_budget=10**6)
    assert as_dict(graph.edges) == oracle.edges(TEXTS, oracle.levenshtein, 2)


def test_many_waiting_pairs_are_compared_in_between(monkeypatch):
    monkeypatch.setattr(bounds, "PAIRS_AT_ONCE", 5)
    monkeypatch.setattr(engine, "VARIANT_PAIRS", 10**9)
    graph = jaxalign.repertoire_graph(TEXTS, metric="levenshtein")
    assert as_dict(graph.edges) == oracle.edges(TEXTS, oracle.levenshtein, 2)
