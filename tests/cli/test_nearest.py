"""nearest from the command line."""

import json
from pathlib import Path

import jax  # noqa: F401  (before main(), which else turns on a compilation cache)
import pytest

from jaxalign.errors import EXIT_CODES

DONE, FAILED, USAGE, INPUT, *_ = EXIT_CODES
P = "MKTAYIAKQRQISFVKSHFSRQ"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tests = {"near of it": P, "far": "CCCCHHHH", "none\there": "", "blank": "XXX"}
    Path("t.fa").write_text("".join(f">{a}\n{b}\n" for a, b in tests.items()))
    corpus = {"x": "GGGGGGGG", "copy1 of it": P[:-2] + "WW", "copy2": P[:-2] + "WW"}
    Path("c.fa").write_text("".join(f">{a}\n{b}\n" for a, b in corpus.items()))
    return tmp_path


def rows(text: str) -> list[list[str]]:
    return [line.split("\t") for line in text.splitlines()]


def test_a_row_for_every_test_sequence(run):
    code, out, err = run("nearest", "t.fa", "c.fa")
    heading, *body = rows(out)
    assert code == DONE and heading[:5] == [
        "test", "nearest", "identity", "identities", "band",
    ]  # fmt: skip
    assert [row[0] for row in body] == ["near", "far", "none", "blank"]
    assert body[0][1:5] == ["copy1", "0.909091", "20", ">=0.9"]
    assert [row[4] for row in body[1:]] == ["<0.3"] * 3
    assert "empty" in body[2][-1] and "no known residue" in body[3][-1]
    assert "4 test sequences against 3 corpus sequences, by identity" in err
    assert ">=0.9          1   25.0%" in err and "identity_longer; global" in err


def test_files_and_json(run):
    words = ("-o", "n.tsv", "--report", "n.html", "--plot", "n.svg", "--json", "-q")
    code, out, err = run("nearest", "t.fa", "c.fa", *words)
    about = json.loads(out)
    assert code == DONE and about["bands"][">=0.9"] == 1 and err == ""
    assert about["corpus"]["records"] == 3 and about["pairs"]["compared"] == 12
    assert len(rows(Path("n.tsv").read_text())) == 5
    assert "Bands" in Path("n.html").read_text() and Path("n.svg").exists()
    assert run("nearest", "t.fa", "c.fa", "-o", "n.tsv")[0] == USAGE
    _, again, _ = run("nearest", "t.fa", "c.fa", "-q")
    assert again == Path("n.tsv").read_text()


def test_by_score_and_top(run):
    code, out, _ = run("nearest", "t.fa", "c.fa", "--by", "score", "--top", "2", "-q")
    body = rows(out)[1:]
    assert code == DONE and [row[:3] for row in body[:2]] == [
        ["near", "1", "copy1"],
        ["near", "2", "copy2"],
    ]


def test_nucleotides_against_proteins_are_no_nucleotides(run):
    Path("n.fa").write_text(">a\nACGTACGTACGTACGT\n")
    code, _, err = run("nearest", "n.fa", "c.fa")
    assert code == DONE and "scored as protein" in err


@pytest.mark.parametrize(
    "words, code, text",
    [
        (("t.fa", "none.fa"), INPUT, "no such file"),
        (("t.fa", "bad.fa"), INPUT, "bad.fa, line 4, column 3"),
        (("t.fa", "c.fa", "--bands", "x"), USAGE, "fractions are needed"),
        (("t.fa", "c.fa", "--bands", "0.5,0.5"), USAGE, "rising"),
        (("t.fa", "c.fa", "-o", "c.fa", "--force"), USAGE, "is the input"),
        (("-", "-"), USAGE, "twice"),
        (("t.fa", "empty"), INPUT, "the folder has no file"),
    ],
)
def test_refusals(run, words, code, text):
    Path("bad.fa").write_text(">a\nMK\n>b\nMK1\n")
    Path("empty").mkdir()
    found, out, err = run("nearest", *words, "--mode", "local")
    assert (found, out) == (code, "") and text in err


def test_nothing_is_half_written(run):
    Path("c.fa").write_text(Path("c.fa").read_text() + ">z\nMK1\n")
    assert run("nearest", "t.fa", "c.fa", "-o", "n.tsv")[0] == INPUT
    assert sorted(p.name for p in Path().iterdir()) == ["c.fa", "t.fa"]
