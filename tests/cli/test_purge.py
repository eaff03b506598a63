"""purge from the command line, and the certificate that audit verifies."""

import gzip
import json
import re
from pathlib import Path

import jax  # noqa: F401  (before main(), which else turns on a compilation cache)
import pytest

from jaxalign.errors import EXIT_CODES

DONE, FAILED, USAGE, INPUT, MEMORY, DEVICE, LEAK, FORGED, _ = EXIT_CODES
P = "MKTAYIAKQRQISFVKSHFSRQ"
CUT = ("--min-identity", "0.5")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    train = {"far off here": "GGGGGGGGWWWW", "near|it x": P[:-2] + "WW", "alone": "CC"}
    records = "".join(f">{a}\n{b[:7]}\n{b[7:]}\n" for a, b in train.items())
    Path("train.fa.gz").write_bytes(gzip.compress(records.encode()))
    Path("t.fa").write_text(f">t1 of it\n{P}\n>none\n\n>blank\nXXX\n")
    return tmp_path


def test_what_stays_has_its_heading(run, folder):
    words = ("--against", "t.fa", *CUT, "--list", "r.tsv")
    code, out, err = run("purge", "train.fa.gz", *words)
    assert code == DONE
    assert out == ">far off here\nGGGGGGG\nGWWWW\n>alone\nCC\n"
    lines = Path("r.tsv").read_text().splitlines()
    assert lines == ["name\ttest\tidentity_shorter", "near|it\tt1\t0.909091"]
    assert "1 of 3 sequences removed: similar to at least one of 3 test" in err


def test_a_certificate_that_audit_verifies(run, folder):
    words = ("--against", "t.fa", *CUT, "-o", "clean.fa", "--certificate", "c.json")
    code, out, _ = run("purge", "train.fa.gz", *words, "--json")
    about = json.loads(out)
    assert code == DONE and (about["removed"], about["stay"]) == (1, 2)
    assert run("audit", "--verify", "c.json")[0] == DONE
    Path("clean.fa").write_text(f">far\n{P}\n")
    assert run("audit", "--verify", "c.json")[0] == FORGED


def test_a_certificate_keeps_the_score_of_a_link(run, folder):
    Path("t.fa").write_text(f">t1\n{P * 4}\n")
    Path("train.fa").write_text(f">part\n{P * 3}\n>far\n{'GGWW' * 20}\n>short\nMK\n")
    words = ("--against", "t.fa", *CUT, "-o", "clean.fa", "--certificate", "c.json")
    code, _, err = run("purge", "train.fa", *words, "--link", "local")
    claim = json.loads(Path("c.json").read_text())["claim"]
    assert code == DONE and "1 of 3 sequences removed" in err
    score = re.search("identity_shorter >= 0.5, score >= ([0-9]+); local", claim)
    assert score and f"score >= {score[1]}" in err
    assert run("audit", "--verify", "c.json")[0] == DONE
    Path("more.fa").write_text(f">t1\n{P * 4}\n>t2\n{P * 40}\n")
    words = ("--against", "more.fa", *CUT, "--link", "local", "-o", "other.fa")
    _, _, err = run("purge", "train.fa", *words)
    other = re.search("score >= ([0-9]+)", err)
    assert other and int(other[1]) > int(score[1]), "that of a search of the test set"


def test_a_certificate_keeps_the_coverage_of_a_link(run, folder):
    """Parts of two sequences are alike: both stay, and the audit asks the same."""
    Path("t.fa").write_text(f">t1\n{P * 2}{'GGWW' * 9}\n")
    Path("train.fa").write_text(f">part\n{'HEAC' * 15}{P * 2}\n>near\n{P * 4}\n")
    asked = ("purge", "train.fa", "--against", "t.fa", "--min-identity", "0.4")
    words = (*asked, "--min-cov", "0.7", "--coverage", "both", "--certificate")
    code, _, err = run(*words, "c.json", "-o", "clean.fa")
    about = json.loads(Path("c.json").read_text())
    assert code == DONE and "0 of 2 sequences removed" in err
    assert "coverage of both >= 0.7" in about["claim"]
    assert run("audit", "--verify", "c.json")[0] == DONE
    assert "2 of 2 sequences removed" in run(*asked, "-o", "uncovered.fa")[2]
    Path("t.fa").write_text(f">t1\n{P * 3}\n")
    _, _, err = run(*words, "d.json", "-o", "rest.fa")
    assert "1 of 2 sequences removed" in err
    assert Path("rest.fa").read_text().startswith(">part")
    assert run("audit", "--verify", "d.json")[0] == DONE
    assert run("audit", "--verify", "c.json")[0] == FORGED  # other test sequences


def test_a_certificate_keeps_the_edges_of_a_link(run, folder):
    """Rows of what is removed are of unknown names then, and the same is found."""
    Path("e.tsv").write_text("t1\tfar\t0.9\nalone\tblank\t0.2\nalone\tnear|it\t1\n")
    words = (
        "purge",
        "train.fa.gz",
        "--against",
        "t.fa",
        *CUT,
        "--edges",
        "e.tsv:3>=0.5",
    )
    more = ("-o", "clean.fa", "--list", "r.tsv", "--certificate", "c.json", "--json")
    code, out, err = run(*words, *more)
    assert code == DONE, err
    assert "or 3 >= 0.5 in e.tsv" in err and "2 pairs by 3 >= 0.5" in err
    assert Path("clean.fa").read_text() == ">alone\nCC\n"
    rows = [x.split("\t") for x in Path("r.tsv").read_text().splitlines()]
    assert rows[1:] == [["far", "t1", "nan"], ["near|it", "t1", "0.909091"]]
    (edges,) = json.loads(out)["edges"]
    assert (edges["pairs"], edges["rows_of_unknown_names"]) == (2, 0)
    (edges,) = json.loads(Path("c.json").read_text())["definition"]["edges"]
    assert (edges["pairs"], edges["rows_of_unknown_names"]) == (0, 2)
    assert run("audit", "--verify", "c.json")[0] == DONE
    Path("e.tsv").write_text("t1\tfar\t0.9\nalone\tblank\t0.6\nalone\tnear|it\t1\n")
    assert run("audit", "--verify", "c.json")[0] == FORGED
    assert run(*words[:-1], "e.tsv:3>=0.5,and", "-o", "all.fa")[0] == DONE
    assert Path("all.fa").read_text().count(">") == 3  # no row pairs near|it and t1
    code, _, err = run("nearest", "t.fa", "train.fa.gz", "--edges", "e.tsv:3>=0.5")
    assert code == USAGE and "purge and audit take edges" in err


def test_a_certificate_where_nothing_stays(run, folder):
    """What stays is written, and no certificate; the message says so."""
    Path("train.fa").write_text(f">a\n{P}\n>b\n{P.lower()}\n")
    words = ("purge", "train.fa", "--against", "t.fa", *CUT, "-o", "clean.fa")
    code, out, err = run(*words, "--list", "r.tsv", "--certificate", "c.json")
    assert (code, out) == (INPUT, "") and "clean.fa: no sequence is kept" in err
    assert Path("clean.fa").read_text() == "" and not Path("c.json").exists()
    assert len(Path("r.tsv").read_text().splitlines()) == 3
    assert run(*words, "--force", "-q") == (DONE, "", "")


def test_the_summary_alone(run, folder):
    code, out, _ = run("purge", "train.fa.gz", "--against", "t.fa", *CUT, "--json")
    assert code == DONE and json.loads(out)["removed"] == 1


def test_folders_and_indices(run, folder):
    Path("many").mkdir()
    assert run("index", "train.fa.gz", "-o", "many/a.jaxdb", "-q")[0] == DONE
    Path("many/b.fa").write_text(f">again\n{P}\n>other\nWWWW\n")
    words = ("--against", "t.fa", *CUT, "-o", "clean.fa", "-q")
    assert run("purge", "many", *words) == (DONE, "", "")
    names = [x for x in Path("clean.fa").read_text().splitlines() if x[0] == ">"]
    assert names == [">far", ">alone", ">other"]


@pytest.mark.parametrize("cut", [("--min-score", "999"), ("--max-evalue", "1e-99")])
def test_equal_texts_are_near_whatever_their_score(run, folder, cut):
    Path("train.fa").write_text(">x\nxxx\n>a\nMK\n>p\nMKT\n>empty\n\n")
    Path("t.fa").write_text(">t\nMK\n>u\nXXX\n>none\n\n")
    words = ("purge", "train.fa", "--against", "t.fa", *cut, "--list", "r.tsv")
    code, out, err = run(*words)
    assert code == DONE and out == ">p\nMKT\n" and ", or equal texts;" in err
    assert Path("r.tsv").read_text().split()[3::3] == ["x", "a", "empty"]


@pytest.mark.parametrize("cut", [("--min-score", "40"), ("--max-evalue", "1e-3")])
def test_local_cuts(run, folder, cut):
    words = ("--against", "t.fa", *cut, "--list", "r.tsv", "-q")
    code, out, _ = run("purge", "train.fa.gz", *words)
    assert code == DONE and ">near" not in out and out.count(">") == 2


@pytest.mark.parametrize(
    "words, code, text",
    [
        ((), USAGE, "one cut is needed"),
        ((*CUT, "--max-evalue", "3"), USAGE, "and not two"),
        (
            ("--min-score", "3", "--link", "local"),
            USAGE,
            "about a cut by --min-identity",
        ),
        ((*CUT, "-o", "t.fa", "--force"), USAGE, "is the input"),
        ((*CUT, "-o", "train.fa.gz", "--force"), USAGE, "is the input"),
        ((*CUT, "--certificate", "c.json"), USAGE, "the file that -o writes"),
        (
            ("--min-score", "3", "-o", "a.fa", "--certificate", "c"),
            USAGE,
            "needs --min-id",
        ),
        (("--min-score", "3", "--mode", "global"), USAGE, "local alignments"),
    ],
)
def test_refusals(run, folder, words, code, text):
    found, out, err = run("purge", "train.fa.gz", "--against", "t.fa", *words)
    assert (found, out) == (code, "") and text in err


def test_nothing_is_half_written(run, folder):
    whole = Path("train.fa.gz").read_bytes()
    Path("train.fa.gz").write_bytes(whole[:-9])
    words = ("--against", "t.fa", *CUT, "-o", "clean.fa", "--list", "r.tsv")
    code, _, err = run("purge", "train.fa.gz", *words)
    assert code == INPUT and "truncated" in err
    assert sorted(p.name for p in folder.iterdir()) == ["t.fa", "train.fa.gz"]
