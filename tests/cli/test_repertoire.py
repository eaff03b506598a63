"""``jaxalign repertoire``: tables in, edges, matrices and lists out."""

import json

import numpy as np
import pyarrow.parquet as parquet
import pytest
import receptor_oracle as oracle
import scipy.sparse

import jaxalign

DONE, USAGE, INPUT, MEMORY = 0, 2, 3, 4
TEXTS = oracle.receptors(40, seed=8)
EDGES = oracle.edges(TEXTS, oracle.tcrdist, 20)
HEADING = "sequence_id\tlocus\tv_call\tjunction_aa\n"
GENES = "gene\tV1\tV2\nV1\t0\t7\nV2\t7\t0\n"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [f"c{k}\tTRB\tV{k % 2 + 1}\t{text}\n" for k, text in enumerate(TEXTS)]
    (tmp_path / "cells.tsv").write_text(HEADING + "".join(rows))
    (tmp_path / "bad.tsv").write_text(HEADING + rows[0] + "x\tTRB\tV1\tCAS*F\n")
    fasta = "".join(f">c{k}\n{text}\n" for k, text in enumerate(TEXTS))
    (tmp_path / "cells.fa").write_text(fasta)
    (tmp_path / "genes.tsv").write_text(GENES)
    return tmp_path


def lines_of(edges):
    lines = [f"c{i}\tc{j}\t{d}" for (i, j), d in edges.items()]
    return "\n".join(["receptor\tneighbour\tdistance", *lines, ""])


@pytest.mark.parametrize("file", ["cells.tsv", "cells.fa"])
@pytest.mark.parametrize("block_rows", ["3", "100"])
def test_edges(run, file, block_rows):
    code, out, _ = run("repertoire", file, "--part-rows", block_rows, "-q")
    assert (code, out) == (DONE, lines_of(EDGES))


def test_every_output_has_the_same_edges(run, folder):
    assert run("repertoire", "cells.tsv", "-o", "e.tsv", "-q") == (DONE, "", "")
    assert (folder / "e.tsv").read_text() == lines_of(EDGES)
    run("repertoire", "cells.tsv", "-o", "e.parquet", "-q", "--part-rows", "7")
    table = parquet.read_table("e.parquet").to_pylist()
    assert [tuple(row.values()) for row in table] == [
        (f"c{i}", f"c{j}", d) for (i, j), d in EDGES.items()
    ]
    run("repertoire", "cells.tsv", "-o", "e.npz", "--list", "l.tsv", "-q")
    matrix = scipy.sparse.load_npz("e.npz")
    graph = jaxalign.repertoire_graph(TEXTS)
    assert (matrix != graph.matrix).nnz == 0 and matrix.nnz == graph.matrix.nnz
    scipy.sparse.save_npz("theirs.npz", graph.matrix)
    ours, theirs = np.load("e.npz"), np.load("theirs.npz")
    assert {*ours} == {*theirs} and isinstance(matrix, scipy.sparse.csr_array)
    for name in theirs:
        assert ours[name].dtype == theirs[name].dtype
        assert np.array_equal(ours[name], theirs[name])
    rows = [line.split("\t") for line in (folder / "l.tsv").read_text().splitlines()]
    assert rows[0] == ["name", "receptor", "count", "cluster"]
    assert [int(row[3]) for row in rows[1:]] == graph.labels.tolist()


def test_json(run):
    words = ("--metric", "levenshtein", "--cutoff", "1", "--json")
    code, out, _ = run("repertoire", "cells.tsv", *words)
    told = json.loads(out)
    assert code == DONE
    assert told["edges"] == len(oracle.edges(TEXTS, oracle.levenshtein, 1))
    assert told["definition"] == {
        "metric": "levenshtein", "cutoff": 1, "text": "levenshtein <= 1",
    }  # fmt: skip


def test_reference(run):
    code, out, _ = run("repertoire", "cells.tsv", "--against", "cells.fa", "-q")
    both = EDGES | {(j, i): d for (i, j), d in EDGES.items()}
    both |= {(k, k): 0 for k in range(len(TEXTS))}
    assert (code, out) == (DONE, lines_of(dict(sorted(both.items()))))


def test_gene_distances(run):
    words = ("--v-distances", "genes.tsv", "-q")
    expected = {
        (i, j): d + 7 * ((i - j) % 2)
        for (i, j), d in EDGES.items()
        if d + 7 * ((i - j) % 2) <= 20
    }
    assert run("repertoire", "cells.tsv", *words)[:2] == (DONE, lines_of(expected))


def test_bad_rows(run):
    code, out, err = run("repertoire", "bad.tsv")
    assert (code, out) == (INPUT, "") and "row 2 (x): stop codon (*), 'CAS*F'" in err
    code, out, err = run("repertoire", "bad.tsv", "--bad", "drop")
    assert code == DONE and "warning: bad.tsv: 1 row: stop codon (*) (x)" in err


@pytest.mark.parametrize(
    "words, code, message",
    [
        (("none.tsv",), INPUT, "no such file"),
        (("cells.fa", "--chains", "sum"), USAGE, "is FASTA"),
        (("cells.tsv", "--chains", "sum"), INPUT, "no column 'cell_id'"),
        (("cells.tsv", "-o", "e.xlsx"), USAGE, "unknown suffix; use one of"),
        (("cells.tsv", "-o", "cells.tsv", "--force"), USAGE, "is the input"),
        (("cells.tsv", "-o", "genes.tsv"), USAGE, "exists"),
        (("cells.tsv", "--json", "-o", "-"), USAGE, "--json takes standard output"),
        (("cells.tsv", "--list", "l", "--against", "cells.fa"), USAGE, "clusters"),
        (("cells.tsv", "--part-rows", "0"), USAGE, "--part-rows"),
        (("cells.tsv", "--memory-budget", "nan"), USAGE, "memory budget 'nan'"),
        (("cells.tsv", "--metric", "hamming", "--ntrim", "2"), USAGE, "no effect"),
        (("cells.tsv", "--v-loops", "genes.tsv"), INPUT, "has letters other than"),
        (("cells.tsv", "--v-distances", "cells.tsv"), INPUT, "comes twice|same genes"),
        (("genes.tsv",), INPUT, "no column 'junction_aa'"),
        (
            ("cells.tsv", "--memory-budget", "1", "-o", "e.tsv"),
            MEMORY,
            "exceed the memory budget",
        ),
    ],
    ids=str,
)
def test_refusals(run, words, code, message):
    found, out, err = run("repertoire", *words)
    assert found == code and not out
    assert any(part in err for part in message.split("|"))


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "is empty"),
        ("junction_aa\tjunction_aa\n", "comes twice"),
        (HEADING + "a\tTRB\n", "row 1 (a): no sequence"),
        (HEADING + "a\tTRB\t\tCAF\tx\n", "line 2: 5 fields, the heading has 4"),
        (HEADING + "a\tTRX\t\tCAF\n", "locus 'TRX' is unknown"),
    ],
)
def test_broken_tables(run, folder, text, message):
    (folder / "broken.tsv").write_text(text)
    code, _, err = run("repertoire", "broken.tsv")
    assert code == INPUT and message in err
