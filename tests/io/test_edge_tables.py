"""Tables of edges and of groups: what others write, and what is refused."""

import gzip
from pathlib import Path

import numpy as np
import pytest

import jaxalign
from jaxalign.errors import InputError, UsageError
from jaxalign.io import delimited
from jaxalign.io.delimited import KnownNames

NAMES = KnownNames(["a", "b", "c d"])
READ = [
    ("a\tb\t0.5\nb\ta\t7\n", None, "3", [("a", "b"), ("b", "a")], [0.5, 7]),
    ("q\tt\tm\r\na\tb\t1e-3\r\n", None, "m", [("a", "b")], [1e-3]),
    ("#PDB1\tPDB2\tTM1\tTM2\na\tb\t.3\t.4\n", "TM2", "TM2", [("a", "b")], [0.4]),
    ("a,b,x,0.25\n", 4, "4", [("a", "b")], [0.25]),
    ("a\tb\t4\t5\n", "4", "4", [("a", "b")], [5]),
    ("x\ty\tp\tq\na\tc d\t5\t6\n", "4", "q", [("a", "c d")], [6]),
]  # fmt: skip


@pytest.mark.parametrize("text, column, title, pairs, values", READ)
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_edges_are_read(tmp_path, text, column, title, pairs, values, suffix):
    path = tmp_path / f"e.tsv{suffix}"
    data = text.encode()
    path.write_bytes(gzip.compress(data) if suffix else data)
    found = delimited.read_edges(str(path), NAMES, column)
    assert (found[0], found[1], found[2].tolist()) == (title, pairs, values)


REFUSED = [
    ("", None, "lists no pair"),
    ("q\tt\tv\n", "v", "lists no pair"),
    ("a\tb\n", None, "two names and a value"),
    ("a\tb\tnan\n", None, "'nan' is not a number"),
    ("q\tt\tv\na\tb\tinf\n", None, "'inf' is not a number"),
    ("q\tt\tv\na\tb\t\n", "v", "'' is not a number"),
    ("q\tt\talntmscore\na\tb\t1\n", "alntmscor", "did you mean 'alntmscore'?"),
    ("q\tt\tv\na\tb\t1\n", "2", "no column 2 of values"),
    ("q\tt\tv\na\tb\t1\n", 9, "no column 9 of values"),
    ("a\tb\tx\na\tb\t1\n", None, "line 1: 3 'x' is not a number"),
    ("q\tt\tv\n\tb\t1\n", None, "two names and a value"),
]


@pytest.mark.parametrize("text, column, message", REFUSED)
def test_edges_are_refused(tmp_path, text, column, message):
    path = tmp_path / "e.tsv"
    path.write_text(text)
    with pytest.raises(InputError) as error:
        delimited.read_edges(str(path), NAMES, column)
    assert message in str(error.value)


def test_edges_as_parquet(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = {"q": ["a", "b"], "t": ["b", "a"], "v": [0.5, float("nan")]}
    path = str(tmp_path / "e.parquet")
    parquet.write_table(pa.table(columns).slice(0, 1), path)
    assert delimited.read_edges(path, NAMES, "v")[2].tolist() == [0.5]
    parquet.write_table(pa.table(columns), path)
    with pytest.raises(InputError, match="is not a number"):
        delimited.read_edges(path, NAMES, "v")


def test_groups_have_any_number_of_columns(tmp_path):
    path = tmp_path / "g.tsv"
    path.write_text("name\tcomplex\tpatient\na\t1\tp\na\t2\t\nb\t\tp\n")
    assert delimited.read_groups(str(path), NAMES) == {
        "complex": [("a", "1"), ("a", "2")],
        "patient": [("a", "p"), ("b", "p")],
    }
    path.write_text("a\tx\nb\tx\n")
    assert delimited.read_groups(str(path), NAMES) == {"2": [("a", "x"), ("b", "x")]}
    for text, message in (("", "no group"), ("a\n", "a name and its groups")):
        path.write_text(text)
        with pytest.raises(InputError, match=message):
            delimited.read_groups(str(path), NAMES)


SOME = {"a": "MKTAYIA", "b": "WWPHGE", "c": "MRVLLK"}


@pytest.mark.parametrize(
    "edges, error, message",
    [
        (jaxalign.Edges((["a"], ["x"], [1.0]), 0.5), InputError, "1 name (x) of no"),
        (jaxalign.Edges((["y"], ["x"], [1.0]), 0.5, unknown="count"), InputError,
         "2 names (y, x) of no"),
        (jaxalign.Edges((["a"], ["b"], [1.0])), UsageError, "one of them"),
        (jaxalign.Edges((["a"], ["b"], [1.0]), 1, 2), UsageError, "one of them"),
        (jaxalign.Edges((["a"], ["b"], [1.0]), float("nan")), UsageError, "finite"),
        (jaxalign.Edges((["a"], ["b"], [np.nan]), 1), InputError, "finite values"),
        (jaxalign.Edges((["a"], ["b", "c"], [1]), 1), InputError, "as many of each"),
        (jaxalign.Edges((["a"], ["b"], [1]), 1, join="no"), UsageError, "join = 'no'"),
        (jaxalign.Edges((["a"], ["b"], [1]), 1, unknown="no"), UsageError, "unknown ="),
        (jaxalign.Edges(Path("none.tsv"), 1), InputError, "no such file"),
        ("e.tsv", UsageError, "jaxalign.Edges are needed"),
    ],
)  # fmt: skip
def test_edges_of_a_call_are_checked(edges, error, message):
    with pytest.raises(error) as raised:
        jaxalign.cluster(SOME, min_identity=0.9, edges=[edges])
    assert message in str(raised.value)


def test_names_that_two_sequences_have():
    edges = jaxalign.Edges((["a"], ["b"], [1]), 1)
    with pytest.raises(InputError, match="a is the name of two sequences"):
        jaxalign.audit([SOME, SOME], min_identity=0.9, edges=edges)


def test_whole_headings_are_names(tmp_path):
    path = tmp_path / "s.fa"
    path.write_text(">a one of\nMKTAYIA\n>b another\nWWPHGE\n")
    table = tmp_path / "e.tsv"
    table.write_text("a one of\tb\t1\n")
    edges = jaxalign.Edges(table, at_least=1)
    assert len(jaxalign.cluster(path, min_identity=0.9, edges=edges)) == 1


def test_what_edges_mean_nothing_for():
    edges = jaxalign.Edges((["a"], ["b"], [1]), 1)
    with pytest.raises(UsageError, match="edges have no identity"):
        jaxalign.identity_graph(SOME, min_identity=0.9, edges=edges)
    for method in ("complete", "average"):
        with pytest.raises(UsageError, match="components or greedy"):
            jaxalign.cluster(SOME, min_identity=0.9, edges=edges, method=method)
