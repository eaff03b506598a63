"""What is equal, what has no distance, which chains make a distance."""

import numpy as np
import pytest
import receptor_oracle as oracle

import jaxalign
from jaxalign.errors import InputError, MemoryPlanError, UsageError
from jaxalign.repertoire import graph as joins

BAD = {
    "CASS*EQYF": "stop codon (*)",
    "CASS_EQYF": "shifted frame (_)",
    "CASSleqyf": "lower-case letters",
    "": "no sequence",
    None: "no sequence",
    float("nan"): "no sequence",
    "CASSXEQYF": "letters outside the twenty",
    "CASS EQYF": "letters outside the twenty",
    "CASSÄEQYF": "letters outside the twenty",
    7: "no text",
}
GOOD = ["CASSLGQAYEQYF", "CASSLGTAYEQYF", "CASSLGQAYEQYF"]


@pytest.mark.parametrize("text", BAD, ids=repr)
@pytest.mark.parametrize("metric", ["tcrdist", "levenshtein", "hamming", "alignment"])
def test_no_silent_distance(text, metric):
    texts = [GOOD[0], text, *GOOD[1:], text]
    with pytest.raises(InputError, match=r"2 of 5 rows .*row 2 \(seq2\)"):
        jaxalign.repertoire_graph(texts, metric=metric, cutoff=100)
    kept = jaxalign.repertoire_graph(texts, metric=metric, cutoff=100, bad="keep")
    assert kept.receptors.vertex.tolist() == [0, 1, 2, 0, 3]
    assert kept.matrix[[1, 3]].nnz == 0 and kept.matrix.nnz == 2
    assert {k: v.tolist() for k, v in kept.receptors.problems.items()} == {
        BAD[text]: [1, 4]
    }
    dropped = jaxalign.repertoire_graph(texts, metric=metric, cutoff=100, bad="drop")
    assert dropped.receptors.vertex.tolist() == [0, -1, 1, 0, -1]
    assert dropped.counts.tolist() == [2, 1] and dropped.matrix.nnz == 2
    assert str(dropped).endswith(f"2 rows: {BAD[text]}")


def test_all_rows_are_bad():
    graph = jaxalign.repertoire_graph(["*", "x"], bad="drop")
    assert len(graph) == 0 and graph.matrix.shape == (0, 0)
    assert graph.labels.tolist() == [] and graph.of_rows().shape == (2, 2)
    assert jaxalign.repertoire_graph([]).matrix.shape == (0, 0)


def test_rows_of_equal_receptors():
    graph = jaxalign.repertoire_graph([*GOOD, "CSARDRTGNGYTF", "?"], bad="keep")
    rows = graph.of_rows().tocoo()
    found = dict(zip(zip(*rows.coords, strict=True), rows.data.tolist(), strict=True))
    expected = {(0, 1): 12, (0, 2): 0, (1, 2): 12}
    assert found == expected | {(j, i): d for (i, j), d in expected.items()}
    assert graph.columns()["cluster"].tolist() == [0, 0, 0, 1, 2]
    assert graph.columns()["count"].tolist() == [2, 1, 2, 1, 1]


def test_stored_zeros_join_clusters():
    graph = jaxalign.repertoire_graph(["CAAALGQAYEQYF", "CCCALGQAYEQYF"])
    assert graph.matrix.nnz == 2 and graph.matrix.sum() == 0
    assert graph.labels.tolist() == [0, 0]


CELLS = {
    "cell_id": ["a", "a", "b", "b", "c", "d", "d", "d"],
    "locus": ["TRA", "TRB", "TRB", "TRA", "TRB", "TRA", "TRB", "TRB"],
    "v_call": ["A1", "B1", "B1", "A2", "B2", "A1", "B2", "B1*01"],
    "junction_aa": [
        "CAVRDSNYQLIW", "CASSLGQAYEQYF",
        "CASSLGTAYEQYF", "CAVRDTNYQLIW",
        "CASSLGTAYEQYF",
        "CAVRDSNYQLIW", "CASSAAAAAAAAAEQYF", "CASSLGTAYEQYF",
    ],
    "duplicate_count": [1, 1, 1, 1, 1, 1, 1, 5],
}  # fmt: skip
PAIRS = [
    ("CAVRDSNYQLIW", "CASSLGQAYEQYF"),
    ("CAVRDTNYQLIW", "CASSLGTAYEQYF"),
    (None, "CASSLGTAYEQYF"),
    ("CAVRDSNYQLIW", "CASSLGTAYEQYF"),
]


def combined(combine, cutoff, i, j):
    """The distance of two cells, None where they have none within the cutoff."""
    parts = [
        oracle.tcrdist(x, y) for x, y in zip(PAIRS[i], PAIRS[j], strict=True) if x and y
    ]
    if combine != "any" and len(parts) < 2:
        return None
    distance = {"sum": sum, "all": max, "any": min}[combine](parts)
    return distance if distance <= cutoff else None


@pytest.mark.parametrize("combine", ["sum", "all", "any"])
@pytest.mark.parametrize(
    "cutoff", [12, *(pytest.param(x, marks=pytest.mark.slow) for x in (0, 11, 18, 30))]
)
@pytest.mark.parametrize("pairs_at_once", [1, 2**22])
def test_both_chains(combine, cutoff, pairs_at_once, monkeypatch):
    monkeypatch.setattr(joins, "PAIRS_AT_ONCE", pairs_at_once)
    options = {"chains": combine, "cutoff": cutoff}
    graph = jaxalign.repertoire_graph(CELLS, bad="keep", **options)
    found = dict(
        zip(
            zip(graph.edges.i.tolist(), graph.edges.j.tolist(), strict=True),
            graph.edges.distance.tolist(),
            strict=True,
        )
    )
    pairs = [(i, j) for i in range(4) for j in range(i + 1, 4)]
    distances = {pair: combined(combine, cutoff, *pair) for pair in pairs}
    assert found == {pair: d for pair, d in distances.items() if d is not None}
    blocks = jaxalign.stream_repertoire(CELLS, bad="keep", part_rows=1, **options)
    assert [j for block in blocks for j in block.edges.j.tolist()] == list(
        graph.edges.j
    )
    assert graph.receptors.rows.notes == ("1 further chains of cells are left out",)
    problems = {} if combine == "any" else {"no sequence of a chain": [2]}
    assert {k: v.tolist() for k, v in graph.receptors.problems.items()} == problems


@pytest.mark.parametrize(
    "arm, names", [("VJ", "a b d"), ("VDJ", "a b c d:7 d:8")], ids=["VJ", "VDJ"]
)
def test_one_arm(arm, names):
    graph = jaxalign.repertoire_graph(CELLS, chains=arm)
    assert graph.receptors.rows.names == names.split()
    assert "left out" in graph.receptors.rows.notes[0]


def test_arms_are_not_mixed():
    with pytest.raises(UsageError, match="chains of both arms"):
        jaxalign.repertoire_graph(CELLS)


@pytest.mark.parametrize(
    "columns, error, words",
    [
        ({"locus": ["TRX"] * 8}, InputError, "locus 'TRX' is unknown"),
        ({"cell_id": [None] * 8}, InputError, r"row 1 \(row1\): no cell_id"),
        ({"junction_aa": ["CAF"]}, InputError, "differ in length"),
        ({"duplicate_count": ["many"] * 8}, InputError, "'many' is not a number"),
    ],
)
def test_refused_tables(columns, error, words):
    with pytest.raises(error, match=words):
        jaxalign.repertoire_graph(CELLS | columns, chains="sum")


GENES = {("A1", "A2"): 6, ("A1", "B1"): 99, ("A1", "B2"): 99, ("A2", "B1"): 99,
         ("A2", "B2"): 99, ("B1", "B2"): 9}  # fmt: skip


@pytest.mark.parametrize("chains", ["VDJ", "sum", "all", "any"])
@pytest.mark.parametrize("cutoff", [11, 18, 24, 40])
def test_v_genes_add_up(chains, cutoff):
    options = {"chains": chains, "cutoff": cutoff, "v_distances": GENES, "bad": "drop"}
    graph = jaxalign.repertoire_graph(CELLS, **options)
    rows = graph.receptors.rows
    chains_of = [[*zip(c.cdr3, c.v_genes, strict=True)] for c in rows.chains]
    genes = GENES | {(b, a): d for (a, b), d in GENES.items()}

    def distance(one, other):
        (x, v), (y, w) = one, other
        v, w = (gene.partition("*")[0] for gene in (v, w))
        return oracle.tcrdist(x, y) + genes.get((v, w), 0)

    for i, a in enumerate(graph.receptors.first):
        for j, b in enumerate(graph.receptors.first):
            parts = [
                distance(c[a], c[b])
                for c in chains_of
                if c[a][0] is not None and c[b][0] is not None
            ]
            total = {"all": max, "any": min}.get(chains, sum)(parts)
            row = graph.matrix[[i]].tocoo()
            linked = dict(zip(row.coords[1].tolist(), row.data.tolist(), strict=True))
            if i != j and total <= cutoff:
                assert linked[j] == total
            else:
                assert j not in linked


def test_unknown_v_genes():
    table = CELLS | {"v_call": ["A1", "B9", None, *CELLS["v_call"][3:]]}
    graph = jaxalign.repertoire_graph(
        table, chains="VDJ", v_distances=GENES, bad="drop"
    )
    found = {k: v.tolist() for k, v in graph.receptors.problems.items()}
    assert found == {"unknown V gene": [0], "no V gene": [1]}


LOOPS = {"V1": ("SGH..DT", "FNN-EL"), "V2": ("SGHD", "FNNNEL"), "V3": ("SGHDT", "YNEL")}


def test_v_loops():
    table = {"junction_aa": [GOOD[0]] * 3, "v_call": [*LOOPS]}
    graph = jaxalign.repertoire_graph(table, v_loops=LOOPS, cutoff=100)
    plain = {
        gene: [x.replace(".", "").replace("-", "") for x in some]
        for gene, some in LOOPS.items()
    }
    options = {"weight": 1, "ntrim": 0, "ctrim": 0}
    expected = [
        sum(
            oracle.tcrdist(x, y, **options)
            for x, y in zip(plain[a], plain[b], strict=True)
        )
        for a, b in (("V1", "V2"), ("V1", "V3"), ("V2", "V3"))
    ]
    assert graph.edges.distance.tolist() == expected


@pytest.mark.parametrize(
    "table",
    [
        {("A", "B"): 1.5},
        {("A", "B"): -1},
        {("A", "B"): 1, ("B", "A"): 2},
        {("A", "A"): 1},
        {("A", "B"): 1, ("B", "C"): 1},
        {("A", "B"): "far"},
    ],
)
def test_refused_gene_distances(table):
    with pytest.raises(InputError, match="V genes"):
        jaxalign.repertoire_graph(CELLS, chains="VDJ", v_distances=table)


@pytest.mark.parametrize(
    "options",
    [
        {"metric": "euclid"},
        {"cutoff": -1},
        {"cutoff": 2.5},
        {"cutoff": True},
        {"metric": "hamming", "gap_penalty": 3},
        {"metric": "levenshtein", "weight": 3},
        {"metric": "alignment", "fixed_gap": True},
        {"ntrim": -1},
        {"fixed_gap": 1},
        {"offset": 0},
        {"bad": "ignore"},
        {"chains": "both"},
        {"chains": "sum"},
        {"metric": "alignment", "scoring": jaxalign.Scoring(), "gap_penalty": 3},
        {
            "metric": "alignment",
            "scoring": jaxalign.Scoring(gap_open=0.5, gap_extend=0),
        },
        {"v_distances": GENES, "v_loops": LOOPS},
        {"v_distances": [1, 2]},
        {"threads": 0},
        {"memory_budget": "much"},
        {"cutof": 3},
    ],
    ids=str,
)
def test_refused_options(options):
    with pytest.raises(UsageError):
        jaxalign.repertoire_graph(GOOD, **options)


def test_edges_beyond_the_budget():
    texts = oracle.receptors(200, seed=3)
    with pytest.raises(MemoryPlanError, match="stream_repertoire"):
        jaxalign.repertoire_graph(texts, cutoff=1000, memory_budget=10_000)


def test_reference_has_no_clusters():
    graph = jaxalign.repertoire_graph(GOOD, GOOD)
    assert np.asarray(graph.matrix.sum(axis=1)).ravel().tolist() == [12, 12]
    assert graph.matrix.nnz == 4
    with pytest.raises(UsageError, match="clusters"):
        _ = graph.labels
