"""A folder of parts: killed, full, torn and shared, it ends with the same rows."""

import itertools
import json
import random
import resource
from pathlib import Path

import numpy as np
import pytest
from cases import killed, parts_in, start, text_of

import jaxalign
from jaxalign.cli.main import main
from jaxalign.errors import EXIT_CODES
from jaxalign.io import output, runs
from jaxalign.pairs import pair_matrix, part_stream

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
DONE, FAILED, USAGE, INPUT, *_ = EXIT_CODES
OPTIONS = {"--mode": "local", "--output": "alignment", "--part-rows": "150"}
WORDS = [*(word for pair in OPTIONS.items() for word in pair), "-q"]


@pytest.fixture(scope="module")
def texts():
    rng = np.random.default_rng(8)
    return [text_of(rng, n) for n in rng.integers(1, 60, 60)]


@pytest.fixture(scope="module")
def fasta(texts, tmp_path_factory):
    path = tmp_path_factory.mktemp("resume") / "some.fa"
    path.write_text("".join(f">s{k}\n{text}\n" for k, text in enumerate(texts)))
    return str(path)


@pytest.fixture(scope="module")
def want(fasta, tmp_path_factory):
    """The same result as one file, written without parts."""
    out = str(tmp_path_factory.mktemp("whole") / "all.parquet")
    words = [word for word in WORDS if word not in ("--part-rows", "150")]
    assert main(["all", fasta, "-o", out, *words]) == DONE
    return rows(out)


def rows(path):
    """All rows in the order of the files: names as text, nan as null."""
    table = pq.read_table(path)
    for k, name in enumerate(table.schema.names):
        column = table[name]
        if name in ("query", "target"):
            column = column.cast("string")
        elif name.startswith("identity_"):
            column = pa.array(column.to_numpy(), from_pandas=True)
        table = table.set_column(k, name, column)
    return table.replace_schema_metadata(None).combine_chunks()


def folder_of(fasta, path, *words):
    """Later words take the place of the usual ones."""
    usual = [w for pair in OPTIONS.items() if pair[0] not in words for w in pair]
    return main(["all", fasta, "-o", f"{path}/", "-q", *usual, *words])


def test_parts_are_the_whole(fasta, want, tmp_path, capsys):
    assert folder_of(fasta, tmp_path / "out") == DONE
    assert rows(tmp_path / "out").equals(want)
    assert len(parts_in(tmp_path / "out")) > 8
    assert runs.complete(str(tmp_path / "out")) == (13, 13)
    assert folder_of(fasta, tmp_path / "out") == USAGE
    assert "--resume" in capsys.readouterr().err
    before = [path.stat().st_mtime_ns for path in parts_in(tmp_path / "out")]
    assert folder_of(fasta, tmp_path / "out", "--resume", "--json") == DONE
    found = json.loads(capsys.readouterr().out)
    assert found["pairs"]["computed"] == 0  # nothing finished is computed again
    assert before == [path.stat().st_mtime_ns for path in parts_in(tmp_path / "out")]
    assert folder_of(fasta, tmp_path / "out", "--force") == DONE
    assert rows(tmp_path / "out").equals(want)


def test_what_is_missing_or_torn_is_computed_again(fasta, want, tmp_path, capsys):
    out = tmp_path / "out"
    assert folder_of(fasta, out) == DONE
    parts_in(out)[4].unlink()
    torn = parts_in(out)[7]
    torn.write_bytes(torn.read_bytes()[:500])
    Path(f"{output._prefix(str(torn))}1.tmp").write_bytes(b"half")
    capsys.readouterr()
    assert folder_of(fasta, out, "--resume", "--json") == DONE
    assert 0 < json.loads(capsys.readouterr().out)["pairs"]["computed"] <= 300
    assert rows(out).equals(want)
    assert not list(out.glob(".*.tmp"))


def test_a_part_that_is_computed_again_has_the_same_bytes(fasta, tmp_path):
    """Whoever computes it: nothing in it depends on that."""
    out = tmp_path / "out"
    assert folder_of(fasta, out) == DONE
    before = [path.read_bytes() for path in parts_in(out)]
    for part, how in ((2, ()), (5, ("--implementation", "wavefront"))):
        parts_in(out)[part].unlink()
        assert folder_of(fasta, out, "--resume", *how) == DONE
        assert [path.read_bytes() for path in parts_in(out)] == before


def test_what_was_damaged_or_has_no_checksum_is_computed_again(
    fasta, want, tmp_path, capsys
):
    out = tmp_path / "out"
    assert folder_of(fasta, out) == DONE
    before, parts = [path.read_bytes() for path in parts_in(out)], parts_in(out)
    flipped = bytearray(before[2])
    flipped[len(flipped) // 3] ^= 4
    parts[2].write_bytes(flipped)
    parts[1].write_bytes(before[0])
    Path(runs.entry_path(str(out), 5)).unlink()
    capsys.readouterr()
    assert folder_of(fasta, out, "--resume") == DONE
    err = capsys.readouterr().err
    assert "1 part is without a checksum and computed again: part-00005" in err
    assert "2 parts are damaged and computed again: part-00001" in err
    assert before == [path.read_bytes() for path in parts_in(out)]
    (out / "part-99999.parquet").write_bytes(before[0])
    assert folder_of(fasta, out, "--resume") == USAGE
    assert "part-99999.parquet" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words, said",
    [
        (["--gap-open", "12"], "scoring"),
        (["--min-score", "3"], "filters"),
        (["--include-self"], "--include-self"),
        (["--part-rows", "200"], "parts"),
        (["--columns", "query,target,score"], "columns"),
        (["--mode", "global"], "mode"),
    ],
)
def test_another_run_is_refused(fasta, tmp_path, capsys, words, said, monkeypatch):
    out = tmp_path / "out"
    _interrupt(monkeypatch, after=1)
    assert folder_of(fasta, out) == FAILED
    held = {path: path.read_bytes() for path in out.iterdir()}
    capsys.readouterr()
    assert folder_of(fasta, out, "--resume", *words) == USAGE
    err = capsys.readouterr().err
    assert "another run" in err and said in err and "--force" in err
    assert held == {path: path.read_bytes() for path in out.iterdir()}


def _interrupt(monkeypatch, after):
    """Fail when so many parts are written."""
    write = runs.SavedRun.write_part
    number = itertools.count()  # of threads that write side by side

    def limited(*args):
        if next(number) >= after:
            raise RuntimeError("stopped")
        write(*args)

    monkeypatch.setattr(runs.SavedRun, "write_part", limited)


def test_other_inputs_are_refused(fasta, tmp_path, capsys, monkeypatch):
    out, other = tmp_path / "out", tmp_path / "other.fa"
    _interrupt(monkeypatch, after=1)
    assert folder_of(fasta, out) == FAILED
    other.write_text(Path(fasta).read_text().replace(">s1\n", ">t1\n"))
    capsys.readouterr()
    assert folder_of(str(other), out, "--resume") == USAGE
    assert "inputs" in capsys.readouterr().err


def test_a_full_disk(fasta, want, tmp_path, capsys):
    """No file may grow beyond what a part needs; then it may."""
    out = tmp_path / "out"
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4000, limits[1]))
    try:
        code = folder_of(fasta, out)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    err = capsys.readouterr().err
    assert code == FAILED and "cannot be written" in err and "--resume" in err
    assert not list(out.glob(".*.tmp")) and not parts_in(out)
    assert folder_of(fasta, out, "--resume") == DONE
    assert rows(out).equals(want)


def test_shards_fill_one_folder(fasta, want, tmp_path, capsys):
    out = tmp_path / "out"
    for k in (2, 3, 1):
        assert folder_of(fasta, out, "--shard", f"{k}/3") == DONE
    assert rows(out).equals(want)
    assert folder_of(fasta, out, "--shard", "1/3") == USAGE
    assert "--resume" in capsys.readouterr().err
    assert folder_of(fasta, out, "--shard", "1/3", "--resume") == DONE
    for wrong in ("0/3", "4/3", "x", f"1/1{'0' * 5000}"):
        assert folder_of(fasta, out, "--shard", wrong) == USAGE


def test_shards_of_no_rows_end_at_once(fasta, want, tmp_path):
    for k in (1, 10**20):
        words = ["--shard", f"{k}/{10**20}", "--part-rows", str(10**20)]
        assert folder_of(fasta, tmp_path / "out", *words) == DONE
    assert rows(tmp_path / "out").equals(want)


@pytest.mark.parametrize("count", [1, 2, 12, 13, 14, 40])
def test_each_part_is_in_one_shard(count):
    parts = part_stream.cut(np.arange(1, 61), rows=150)
    shards = [part_stream.shard(parts, k + 1, count) for k in range(count)]
    assert sorted(sum(shards, []), key=lambda part: part.index) == parts
    plan = pair_matrix.schedule([part.cells for part in parts], count)
    assert [{p.index for p in one} for one in shards] == list(map(set, plan.windows))


def test_filters_and_an_empty_set(tmp_path, fasta, want, capsys):
    out = tmp_path / "kept"
    assert folder_of(fasta, out, "--min-score", "20", "--json") == DONE
    found = json.loads(capsys.readouterr().out)
    kept = want.filter(np.asarray(want["score"]) >= 20)
    assert rows(out).equals(kept.combine_chunks())
    assert found["pairs"] == {"computed": 1770, "kept": len(kept)}
    one = tmp_path / "one.fa"
    one.write_text(">a\nMK\n")
    assert folder_of(str(one), tmp_path / "none") == DONE
    assert rows(tmp_path / "none").num_rows == 0
    assert rows(tmp_path / "none").schema.equals(want.schema)


@pytest.mark.slow
def test_parts_of_which_proofs_exclude_pairs(fasta, tmp_path, capsys):
    """Some are lost, the others came from two shards: the rows are those of one run."""
    words = ("--mode", "global", "--output", "identity", "--min-identity", "0.3")
    whole, out = tmp_path / "whole.parquet", tmp_path / "out"
    every = ["all", fasta, *words, "-o", str(whole), "-q", "--no-filter"]
    assert main(every) == DONE
    for number in (1, 2):
        shard = ("--shard", f"{number}/2", "--implementation", "sweep")
        assert folder_of(fasta, out, *words, *shard) == DONE
    for number in (2, 3, 9):
        parts_in(out)[number].unlink()
    capsys.readouterr()
    sweep = ("--implementation", "sweep")
    assert folder_of(fasta, out, *words, *sweep, "--resume", "--json") == DONE
    found = json.loads(capsys.readouterr().out)
    left = found["pairs"]["computed"] - sum(found["excluded"].values())
    assert 0 < found["aligned"] == left < found["pairs"]["computed"] < 700
    assert rows(out).equals(rows(whole)) and rows(out).num_rows > 0


@pytest.mark.parametrize(
    "out, words",
    [
        ("-", ["--resume"]),
        ("x.tsv", ["--resume", "--format", "tsv"]),
        ("no/such/", []),
        (".", ["--resume"]),
        ("mine.txt", ["--resume"]),
        ("new/", ["--part-rows", "0"]),
    ],
)
def test_folders_that_cannot_be(fasta, tmp_path, monkeypatch, out, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.txt").write_text("not a part")
    assert main(["all", fasta, "-o", out, "-q", *words]) == USAGE
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


# kill -9 -----------------------------------------------------------------------------


def begin(fasta, out, cache):
    return start(["all", fasta, "-o", f"{out}/", *WORDS, "--resume"], cache)


@pytest.mark.slow
@pytest.mark.parametrize("kills", [2, 20])
def test_kill_at_random_moments(fasta, want, tmp_path, kills):
    dice, count, held = random.Random(kills), 0, {}
    for _ in range(4 * kills):
        out = tmp_path / f"out{count // 6}"
        process = begin(fasta, out, tmp_path / "cache")
        count += killed(process, out, dice.randint(0, 2), dice.uniform(0, 0.05))
        for path in parts_in(out):  # what was finished stays as it was
            assert held.setdefault(path, path.stat().st_mtime_ns) == (
                path.stat().st_mtime_ns
            )
        if count == kills:
            break
    assert count == kills
    for out in sorted(tmp_path.glob("out*")):
        process = begin(fasta, out, tmp_path / "cache")
        assert (process.communicate()[1], process.returncode) == (b"", DONE)
        assert rows(out).equals(want)
        pairs = rows(out).select(["query", "target"]).to_pandas()
        assert len(pairs.drop_duplicates()) == len(pairs) == 60 * 59 // 2
        for path, time_written in held.items():
            assert path.stat().st_mtime_ns == time_written


def test_the_manifest_says_what_was_run(fasta, tmp_path):
    out = tmp_path / "out"
    assert folder_of(fasta, out, "--min-cov", "0.5") == DONE
    held = runs.read_manifest(str(out))
    assert held["jaxalign"] == jaxalign.__version__ and held["mode"] == "local"
    assert held["filters"]["min_cov"] == 0.5 and held["rows"] == 1770
    assert len(held["inputs"][0]["sha256"]) == 64
    part = pq.read_metadata(parts_in(out)[0]).metadata
    assert part[b"jaxalign.run"].decode() == runs.digest(held)
    assert part[b"jaxalign.rows"].startswith(b"0:")
