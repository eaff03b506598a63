"""A file is whole or not there; temporaries are nobody else's, inputs are kept."""

import os
import stat
from contextlib import suppress

import pytest

import jaxalign
from jaxalign.cli.main import main
from jaxalign.errors import EXIT_CODES, JaxalignError, UsageError
from jaxalign.io import formats, output

_, FAILED, USAGE, *_ = EXIT_CODES


def put(text):
    def fill(path):
        with open(path, "w") as handle:
            handle.write(text)

    return fill


def test_temporaries_cannot_be_foreseen(tmp_path):
    path, names = str(tmp_path / ("x" * 200)), []
    for _ in range(2):
        output.write_file(path, names.append)
    assert len(set(names)) == 2 and len(os.listdir(tmp_path)) == 1


def test_modes_are_those_of_any_new_file(tmp_path):
    output.write_file(str(tmp_path / "a"), put("a"))
    put("b")(tmp_path / "b")
    a, b = (stat.S_IMODE((tmp_path / name).stat().st_mode) for name in "ab")
    assert a == b


def test_two_writers_of_one_file(tmp_path):
    path = str(tmp_path / "out.tsv")

    def fill(temporary):
        put("first")(temporary)
        output.write_file(path, put("second"))
        assert os.path.exists(temporary)

    output.write_file(path, fill)
    with open(path) as handle:
        assert handle.read() == "first"
    assert os.listdir(tmp_path) == ["out.tsv"]


def test_temporaries_of_killed_runs_are_removed(tmp_path, monkeypatch):
    path = str(tmp_path / "out.tsv")
    (tmp_path / f"{output._prefix(path)}1.tmp").write_text("half")
    monkeypatch.setattr(output.platform, "node", lambda: "another")
    kept = tmp_path / f"{output._prefix(path)}1.tmp"
    kept.write_text("at work, for all that is known here")
    monkeypatch.undo()
    output.write_file(path, put("new"))
    assert {kept.name, "out.tsv"} == set(os.listdir(tmp_path))


def test_a_failure_leaves_nothing(tmp_path):
    def fill(temporary):
        put("half")(temporary)
        raise RuntimeError

    with pytest.raises(RuntimeError):
        output.write_file(str(tmp_path / "out"), fill)
    assert not os.listdir(tmp_path)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
def test_a_full_disk_has_a_name():
    with pytest.raises(JaxalignError, match="^/dev/full: cannot be written") as caught:
        output.write_text("/dev/full", ["text"])
    assert caught.value.exit_code == 1


@pytest.mark.parametrize("link", [os.symlink, os.link, None])
def test_an_input_is_never_the_output(tmp_path, link):
    source, path = tmp_path / "db.fa", tmp_path / "db.fa"
    source.write_text(">a\nMK\n")
    if link:
        path = tmp_path / "other"
        link(source, path)
    with pytest.raises(UsageError, match="is the input"):
        output.check_inputs(str(path), ["BLOSUM62", None, "none.fa", str(source)])


def test_other_outputs_pass(tmp_path):
    (tmp_path / "a").write_text("a")
    (tmp_path / "b").write_text("a")
    for path in ("-", None, "/dev/null", str(tmp_path / "c"), str(tmp_path / "b")):
        output.check_inputs(path, [str(tmp_path / "a"), "/dev/null", "-"])


# The command line ---------------------------------------------------------------------


VERBS = [
    "index db.fa -o db.fa",
    "index db.fa -o link.fa",
    "all link.fa -o hard.fa",
    "all db.fa -o db.fa/",
    "search other.fa db.fa -o db.fa/",
    "align db.fa other.fa -o db.fa",
    "align other.fa other.fa --matrix costs.txt -o costs.txt --format tsv",
    "search other.fa db.fa -o link.fa",
    "three db.fa -o hard.fa",
    "soft other.fa db.fa -o link.fa",
    "soft other.fa db.fa --plot db.fa",
]


@pytest.mark.parametrize("words", VERBS)
def test_no_verb_replaces_its_input(tmp_path, monkeypatch, capsys, words):
    monkeypatch.chdir(tmp_path)
    text = ">a\nMK\n>b\nMR\n>c\nMM\n"
    for name in ("db.fa", "other.fa"):
        (tmp_path / name).write_text(text)
    (tmp_path / "link.fa").symlink_to("db.fa")
    os.link("db.fa", "hard.fa")
    (tmp_path / "costs.txt").write_text(
        "   M  K  R\nM  5 -1 -1\nK -1  5  2\nR -1  2  5\n"
    )
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert main([*words.split(), "--force"]) == USAGE
    assert "is the input" in capsys.readouterr().err
    assert before == {path.name: path.read_bytes() for path in tmp_path.iterdir()}


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
@pytest.mark.parametrize("out, name", [("-", "standard output"), ("/dev/full",) * 2])
def test_a_full_disk_is_one_line(tmp_path, monkeypatch, capsys, out, name):
    (tmp_path / "some.fa").write_text(">a\nMK\n>b\nMR\n")
    full = open("/dev/full", "w")
    monkeypatch.setattr("sys.stdout", full)
    words = ["all", str(tmp_path / "some.fa"), "-q", "--format", "tsv", "-o", out]
    assert main(words) == FAILED
    with suppress(OSError):
        full.close()
    said = f"{name}: cannot be written (No space left on device)"
    assert capsys.readouterr().err == f"jaxalign: error: {said}\n"


def test_parquet_has_ranges_of_numbers_alone(tmp_path):
    """Ranges of names cost three quarters of the time of writing, and skip nothing."""
    pq = pytest.importorskip("pyarrow.parquet")
    table = jaxalign.align_all(["MKTAYIA", "MKTAIA", "MRV"], output="alignment")
    formats.write(table, tmp_path / "t.parquet")
    group = pq.ParquetFile(tmp_path / "t.parquet").metadata.row_group(0)
    columns = [group.column(k) for k in range(group.num_columns)]
    ranges = {x.path_in_schema: x.is_stats_set for x in columns}
    assert not ranges["query"] and not ranges["target"] and not ranges["cigar"]
    assert ranges["score"] and ranges["identities"]
