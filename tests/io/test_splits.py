"""Formats of homology splitters, read back as their tools read them.

The readers below follow the documented ones step by step; where the tool is installed
its own reader is asked too.
"""

import csv
import importlib.util
from pathlib import Path

import numpy as np
import pytest
from cases import some_texts

import jaxalign
from jaxalign import UsageError
from jaxalign.io import formats

NAMES = [f"P{k:05}" for k in range(12)]
TEXTS = list(zip(NAMES, some_texts(5, 12), strict=True))


@pytest.fixture(scope="module")
def table():
    return jaxalign.align_all(TEXTS, output="identity")


def written(table, path, format, identity="shorter"):
    formats.write(table, path, format, identity=identity)
    return path


def square(table):
    found = np.eye(len(NAMES))
    values = np.nan_to_num(table.identity("shorter"))
    found[table["query"], table["target"]] = values
    found[table["target"], table["query"]] = values
    return found


def graphpart_edges(path, threshold, known):
    """graph_part.precomputed_utils.load_edge_list with --transformation one-minus."""
    edges = {}
    for line in path.read_text().splitlines():
        query, target, metric, *_ = line.strip().split(",")
        distance = 1 - float(metric)
        if query != target and distance <= threshold and {query, target} <= set(known):
            edges[query, target] = distance
    return edges


def test_graphpart(table, tmp_path):
    path = written(table, tmp_path / "edges.csv", "graphpart")
    edges = graphpart_edges(path, 1 - 0.3, NAMES)
    identity = square(table)
    want = {
        (NAMES[i], NAMES[j]): 1 - identity[i, j]
        for i, j in zip(table["query"], table["target"], strict=True)
        if 1 - identity[i, j] <= 1 - 0.3
    }
    assert edges == want and 0 < len(want) < len(table)


def test_a_threshold_below_the_cut_leaves_no_pair_at_it(table, tmp_path):
    """GraphPart removes ends of pairs with ``metric < threshold``, in
    ``graph_part.py``, and so allows one at the threshold. The page says what to do."""
    identity = square(table)
    row = int(np.argmax(table["max_identities"] > 0))
    cut = float(identity[table["query"][row], table["target"][row]])
    chosen = table.filter(table.identity("shorter") >= cut)
    path = written(chosen, tmp_path / "edges.csv", "graphpart")
    distances = [
        1 - float(line.split(",")[2]) for line in path.read_text().splitlines()
    ]
    assert 0 < len(distances) and not all(x < 1 - cut for x in distances)
    assert all(x < 1 - (cut - 0.01) for x in distances)
    page = Path(__file__).parents[2] / "docs" / "how-to" / "homology-split.md"
    recipe = page.read_text().split("--format graphpart")
    least = float(recipe[0].rsplit("--min-identity ", 1)[1].split()[0])
    threshold = float(recipe[1].split("--threshold ", 1)[1].split()[0])
    assert threshold < least


def test_graphparts_own_reader(table, tmp_path):
    if importlib.util.find_spec("graph_part") is None:
        pytest.skip("graph-part is not installed")
    import networkx
    from graph_part.precomputed_utils import load_edge_list

    path = written(table, tmp_path / "edges.csv", "graphpart")
    graph = networkx.Graph()
    graph.add_nodes_from(NAMES)
    load_edge_list(str(path), graph, "one-minus", 1 - 0.3, 2)
    edges = graphpart_edges(path, 1 - 0.3, NAMES)
    found = {(a, b): data["metric"] for a, b, data in graph.edges(data=True)}
    assert found == edges


def test_ids_of_graphpart_end_at_the_bar(tmp_path):
    named = [("A|label=x|priority=1", "MKTAYIA"), ("B|label=y", "MKTAIA")]
    found = jaxalign.align_all(named, output="identity")
    path = written(found, tmp_path / "edges.csv", "graphpart")
    assert path.read_text() == "A,B,1.0\n"


def test_hestia(table, tmp_path):
    """hestia.similarity.sim_df2mtx: record numbers into a sparse square, symmetric."""
    path = written(table, tmp_path / "sim.csv", "hestia")
    rows = list(csv.DictReader(path.read_text().splitlines()))
    assert list(rows[0]) == ["query", "target", "metric"]
    found = np.eye(len(NAMES))
    for row in rows:
        found[int(row["query"]), int(row["target"])] = float(row["metric"])
    np.testing.assert_array_equal(np.maximum(found, found.T), square(table))


def test_hestias_own_reader(table, tmp_path):
    if importlib.util.find_spec("hestia") is None:
        pytest.skip("hestia-good is not installed")
    import pandas
    from hestia.similarity import sim_df2mtx

    sim = pandas.read_csv(written(table, tmp_path / "sim.csv", "hestia"))
    found = sim_df2mtx(sim, size_query=len(NAMES), boolean_out=False).toarray()
    np.testing.assert_allclose(found + np.eye(len(NAMES)), square(table), rtol=1e-6)


def test_datasail(table, tmp_path):
    """datasail.reader.utils.read_clustering_file: a heading, then name and numbers."""
    path = written(table, tmp_path / "sim.tsv", "datasail")
    lines = [line.strip().split("\t") for line in path.read_text().splitlines()]
    assert lines[0][1:] == [line[0] for line in lines[1:]] == NAMES
    found = np.array([[float(x) for x in line[1:]] for line in lines[1:]])
    np.testing.assert_allclose(found, square(table), rtol=1e-5)


def test_datasails_own_reader(table, tmp_path):
    if importlib.util.find_spec("datasail") is None:
        pytest.skip("datasail is not installed")
    from datasail.reader.utils import read_clustering_file

    names, found = read_clustering_file(written(table, tmp_path / "s.tsv", "datasail"))
    assert names == NAMES
    np.testing.assert_allclose(found, square(table), rtol=1e-5)


def test_pairs_that_a_filter_dropped_are_0_for_datasail(tmp_path):
    kept = jaxalign.align_all(TEXTS, output="identity", min_identity=0.3)
    lines = written(kept, tmp_path / "s.tsv", "datasail").read_text().splitlines()
    values = np.array([line.split("\t")[1:] for line in lines[1:]], float)
    assert ((values == 0) | (values >= 0.3)).all()
    assert np.count_nonzero(values) == 2 * len(kept) + len(NAMES)


@pytest.mark.parametrize("format", ["graphpart", "hestia", "datasail"])
def test_scores_alone_are_refused(format, tmp_path):
    scores = jaxalign.align_all(TEXTS, output="score")
    with pytest.raises(UsageError, match="identity"):
        written(scores, tmp_path / "x", format)


@pytest.mark.parametrize(
    "names, format",
    [(("a,b", "c"), "graphpart"), (("a", "a"), "graphpart"),
     (("a|1", "a|2"), "graphpart"), (("a\tb", "c"), "datasail"),
     (("a", "a"), "datasail")],
)  # fmt: skip
def test_names_that_the_tool_would_misread(names, format, tmp_path):
    sequences = list(zip(names, ("MK", "MR"), strict=True))
    found = jaxalign.align_all(sequences, output="identity")
    with pytest.raises(UsageError, match="name"):
        written(found, tmp_path / "x", format)
    assert not (tmp_path / "x").exists()


def test_a_square_is_of_one_set(tmp_path):
    found = jaxalign.align_pairs(["MK"], ["MR"], output="identity")
    with pytest.raises(UsageError, match="square"):
        written(found, tmp_path / "x", "datasail")
