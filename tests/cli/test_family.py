"""``jaxalign family``: files, folders, messages and refusals."""

import json
from importlib.resources import files

import pytest

import jaxalign

DONE, USAGE, INPUT = 0, 2, 3
GLOBINS = str(files("jaxalign.data") / "globins.fasta")
ALPHA = "VLSPADKTNVKAAWGKVGAHAGEYGAEALERMFLSFPTTKTYFPHFDLSHGSAQVKGHGKKVADALTNAV"
ONCE = ("--iterations", "1")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "q.fa").write_text(f">alpha\n{ALPHA}\n")
    (tmp_path / "rev.fa").write_text(f">rev\n{ALPHA[::-1]}\n")
    (tmp_path / "both.fa").write_text(f">a|b\n{ALPHA[20:]}\n>rev\n{ALPHA[::-1]}\n")
    return tmp_path


def test_a_file(run, folder):
    code, out, err = run("family", "q.fa", GLOBINS, "-o", "a.a3m")
    assert (code, out) == (DONE, "")
    (expected,) = jaxalign.search_family([("alpha", ALPHA)], GLOBINS)
    lines = (folder / "a.a3m").read_text().splitlines()
    assert lines[1::2] == expected.rows()
    assert lines[0] == ">alpha" and lines[2].startswith(">P69905 2-71 E=")
    assert "pass 1: 11 hits, 11 included, 11 of them new" in err
    assert f"Neff {expected.neff:.2f}" in err


def test_standard_output_is_a3m(run):
    code, out, _ = run("family", "q.fa", GLOBINS, "-q", *ONCE)
    assert code == DONE and out.startswith(f">alpha\n{ALPHA}\n>P69905 ")


def test_no_relatives_are_said(run, folder):
    code, _, err = run("family", "rev.fa", GLOBINS, "-o", "a.a3m")
    assert code == DONE and "the alignment is the query alone" in err
    assert (folder / "a.a3m").read_text() == f">rev\n{ALPHA[::-1]}\n"


def test_a_folder_of_files(run, folder):
    code, _, err = run("family", "both.fa", GLOBINS, "-o", "out/", *ONCE)
    assert code == DONE
    assert sorted(x.name for x in (folder / "out").iterdir()) == ["a_b.a3m", "rev.a3m"]
    assert run("family", "both.fa", GLOBINS, "-o", "out/", *ONCE)[0] == USAGE
    again = run("family", "both.fa", GLOBINS, "-o", "out", "--force", *ONCE)
    assert again[0] == DONE


def test_json(run):
    code, out, _ = run("family", "q.fa", GLOBINS, "--json", "-q", *ONCE, "-id", "0.9")
    about = json.loads(out)
    assert code == DONE and about["database"]["sequences"] == 16
    (family,) = about["families"]
    assert family["passes"][0]["fitted_to"] == "database"
    assert not family["converged"] and family["rows"] == 11


@pytest.mark.parametrize(
    "words, code, why",
    [
        (("both.fa", GLOBINS, "-o", "a.a3m"), USAGE, "-o FOLDER/"),
        (("q.fa", GLOBINS, "-o", "a.xyz"), USAGE, "one of a3m, stockholm, hmm, pssm"),
        (("q.fa", GLOBINS, "-o", "q.fa", "--format", "a3m"), USAGE, "is the input"),
        (("q.fa", GLOBINS, "-o", "-", "--json"), USAGE, "-o FILE"),
        (("-", "-"), USAGE, "twice"),
        (("q.fa", GLOBINS, "--iterations", "0"), USAGE, "--iterations"),
        (("q.fa", GLOBINS, "--include", "-1"), USAGE, "include"),
        (("q.fa", "missing.fa"), INPUT, "missing.fa"),
    ],
)
def test_refusals(run, words, code, why):
    done, _, err = run("family", *words)
    assert done == code and why in err


def test_nucleotides_are_scored_as_protein_with_a_warning(run, folder):
    (folder / "dna.fa").write_text(">d\n" + "ACGTTGCAAC" * 6 + "\n")
    (folder / "rows.a3m").write_text(f">a\n{ALPHA}\n>b\n{ALPHA}\n")
    calls = {
        ("family", "dna.fa", GLOBINS): "dna.fa are",
        ("family", "q.fa", "dna.fa"): "dna.fa are",
        ("search", "--profile", "rows.a3m", "dna.fa"): "dna.fa are",
        ("align", "--profile", "rows.a3m", "dna.fa"): "dna.fa are",
    }
    for words, what in calls.items():
        code, _, err = run(*words, "-q")
        assert (
            code == DONE and f"{what} nucleotides and are scored as protein" in err
        ), words
        assert "nucleotides" not in run(*words, "-q", "--alphabet", "protein")[2]
    for words in (("family", "q.fa", GLOBINS), ("align", *list(calls)[3][1:3], "q.fa")):
        assert "nucleotides" not in run(*words, "-q")[2]
