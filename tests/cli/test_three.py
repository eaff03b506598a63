"""``jaxalign three`` in process: formats, refusals, exit codes."""

import json
from pathlib import Path
from typing import get_args

import jax  # noqa: F401  (before main(), which else turns on a compilation cache)
import pytest

import jaxalign
from jaxalign import options
from jaxalign.cli.arguments import ThreeFormat
from jaxalign.cli.main import main
from jaxalign.errors import EXIT_CODES
from jaxalign.io.text_formats import TRIPLE_FORMATS
from jaxalign.model import choices
from jaxalign.model.triple import GAP_MODELS
from jaxalign.triples.options import SCHEDULE_NAMES, TRACEBACKS

ABC = ">one first\nMKTAYIAKQR\n>two\nMKTAIAKQRE\n>three\nMRTAYLAR\n"
DONE, FAILED, USAGE, INPUT, MEMORY, *_ = EXIT_CODES

PRETTY = """\
# BLOSUM62, gap(k) = 11 + 1*(k-1); quasi-natural gaps; global
"""


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Words of a command line -> (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "abc.fa").write_text(ABC)
    (tmp_path / "two.fa").write_text(">a\nMK\n>b\nMR\n")

    return lambda *words: (main(["three", *words]), *capsys.readouterr())


def test_choices_are_those_of_the_rooms():
    pairs = [
        (choices.GapModel, GAP_MODELS),
        (options.Schedule, SCHEDULE_NAMES),
        (options.Traceback, TRACEBACKS),
        (ThreeFormat, TRIPLE_FORMATS),
    ]
    for words, known in pairs:
        assert set(get_args(words)) == set(known)


def test_pretty_shows_rows_numbers_and_consensus(run):
    code, out, err = run("abc.fa")
    assert code == DONE and out.startswith(PRETTY)
    blocks = out.split("\n\n")[1].splitlines()
    names = [line.split()[0] for line in blocks]
    assert names == ["one", "two", "three", "consensus"]
    assert blocks[0].split()[1:] == ["1", "MKTAYIAKQR", "10"]
    assert "10 x 10 x 8 residues" in err and "traceback store" in err


def test_json_holds_the_result(run):
    code, out, _ = run("abc.fa", "--format", "json", "--gap-model", "natural", "-q")
    found = json.loads(out)
    assert code == DONE and found["score"] == found["score_natural"]
    assert sum(found["pair_scores"]) == found["score"]
    assert [row.replace("-", "") for row in found["rows"]] == ABC.split()[2::2][:1] + [
        "MKTAIAKQRE",
        "MRTAYLAR",
    ]


def test_fasta_and_clustal_hold_the_same_rows(run):
    _, fasta, _ = run("abc.fa", "--format", "fasta", "-q")
    _, clustal, _ = run("abc.fa", "--format", "clustal", "-q")
    rows = fasta.splitlines()[1::2]
    assert len(rows) == 3 and clustal.startswith("CLUSTAL")
    assert [line.split()[-1] for line in clustal.splitlines()[3:6]] == rows


def test_the_score_alone(run):
    code, out, _ = run("abc.fa", "--traceback", "none", "-q")
    assert code == DONE and "# score" in out and "consensus" not in out
    code, _, err = run("abc.fa", "--traceback", "none", "--format", "fasta")
    assert code == USAGE and "needs a traceback" in err


def test_all_writes_a_table_of_every_three(run):
    Path("six.fa").write_text(ABC + ">d\nMKV\n>e\nMRV\n>f g\nMK\n")
    code, out, err = run("six.fa", "--all", "--mode", "local")
    lines = [line.split("\t") for line in out.splitlines()]
    found = jaxalign.align_triples(Path("six.fa"), mode="local")
    assert code == DONE and "2 triples" in err
    assert lines[0] == list(found.columns())
    assert [line[3] for line in lines[1:]] == [f"{one.score:g}" for one in found]
    assert [line[2] for line in lines[1:]] == ["three", "f"]
    assert run("six.fa", "--all", "-o", "t.csv", "-q")[:2] == (DONE, "")
    assert Path("t.csv").read_text().count("\n") == 3
    assert run("six.fa", "--all", "-o", "t.csv", "-q")[0] == USAGE


@pytest.mark.slow
def test_linear_gaps_and_chunks(run):
    costs = ("--gap-model", "linear", "--gap-open", "4", "--gap-extend", "4")
    _, out, _ = run("abc.fa", *costs, "-q")
    chunks = ("--traceback", "bt3", "--chunk", "4", "--height", "5")
    code, again, _ = run("abc.fa", *costs, *chunks, "-q")
    assert code == DONE and again == out


def test_an_output_file_is_not_replaced_unasked(run):
    assert run("abc.fa", "-o", "out.txt", "-q")[:2] == (DONE, "")
    assert run("abc.fa", "-o", "out.txt")[0] == USAGE
    assert run("abc.fa", "-o", "out.txt", "--force", "-q")[0] == DONE
    assert Path("out.txt").read_text().startswith(PRETTY)


@pytest.mark.parametrize(
    "words, code, text",
    [
        (("two.fa",), USAGE, "two.fa has 2 records: three are needed"),
        (("abc.fa", "--gap-model", "linear"), USAGE, "--gap-open == --gap-extend"),
        (("abc.fa", "--memory-budget", "20KB"), MEMORY, "residues each"),
        (("absent.fa",), INPUT, "absent.fa"),
        (("two.fa", "--all"), INPUT, "two.fa has 2 records: --all takes three"),
        (("abc.fa", "--all", "--format", "json"), USAGE, "--all writes a table"),
        (("abc.fa", "--all", "--schedule", "sloped"), USAGE, "--schedule is for one"),
        (("abc.fa", "--all", "-o", "out.json"), USAGE, "is not a format of lists"),
    ],
)
def test_refusals(run, words, code, text):
    found, out, err = run(*words)
    assert found == code and text in err and out == ""
