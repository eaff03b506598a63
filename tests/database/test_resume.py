"""A search into a folder of parts: killed, torn and shared, it ends with the rows of
one table."""

import json
import random
from pathlib import Path

import numpy as np
import pytest
from cases import killed, parts_in, same_tables, some_texts, start

import jaxalign
from jaxalign.cli.main import main
from jaxalign.errors import EXIT_CODES
from jaxalign.io import runs
from jaxalign.model.table import join
from jaxalign.pairs import part_stream

pq = pytest.importorskip("pyarrow.parquet")
DONE, FAILED, USAGE, INPUT, *_ = EXIT_CODES
TOP, ROWS = 4, 12
WORDS = ["--top", str(TOP), "--output", "alignment"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("search")
    for name, seed, count in (("q.fa", 1, 25), ("d.fa", 2, 30)):
        texts = some_texts(seed, count)
        records = (f">{name[0]}{k}\n{text}\n" for k, text in enumerate(texts))
        (folder / name).write_text("".join(records))
    return [str(folder / name) for name in ("q.fa", "d.fa")]


@pytest.fixture(scope="module")
def want(files, tmp_path_factory):
    """The same search as one file."""
    out = str(tmp_path_factory.mktemp("whole") / "hits.parquet")
    assert main(["search", *files, "-o", out, "-q", *WORDS]) == DONE
    return rows(out)


def rows(path):
    """All rows in the order of the files; names as text."""
    table = pq.read_table(path)
    for k, name in enumerate(("query", "target")):
        table = table.set_column(k, name, table[name].cast("string"))
    return table.replace_schema_metadata(None).combine_chunks()


def folder_of(files, path, *words, part_rows=ROWS):
    usual = [*WORDS, "-q", "--part-rows", str(part_rows)]
    return main(["search", *files, "-o", f"{path}/", *usual, *words])


def test_parts_are_the_whole(files, want, tmp_path, capsys):
    out = tmp_path / "out"
    assert folder_of(files, out) == DONE
    assert rows(out).equals(want) and len(parts_in(out)) == 9
    assert folder_of(files, out) == USAGE
    assert "--resume" in capsys.readouterr().err
    assert folder_of(files, out, "--resume", "--json") == DONE
    found = json.loads(capsys.readouterr().out)
    assert found["cells"] == found["hits"]["found"] == 0  # nothing is searched again
    before = [path.read_bytes() for path in parts_in(out)]
    parts_in(out)[4].unlink()
    torn = parts_in(out)[6]
    torn.write_bytes(torn.read_bytes()[:300])
    assert folder_of(files, out, "--resume", "--json") == DONE
    found = json.loads(capsys.readouterr().out)
    assert 0 < found["hits"]["found"] <= 2 * ROWS
    assert rows(out).equals(want)
    assert [path.read_bytes() for path in parts_in(out)] == before


def test_an_index_and_shards_fill_one_folder(files, want, tmp_path):
    index, out = str(tmp_path / "d.jaxdb"), tmp_path / "out"
    jaxalign.index_database(files[1], index)
    for k in (2, 3, 1):
        assert folder_of([files[0], index], out, "--shard", f"{k}/3") == DONE
    assert rows(out).equals(want)


@pytest.mark.parametrize(
    "words, said",
    [
        (["--gap-open", "12"], "scoring"),
        (["--top", "5"], "top"),
        (["--max-evalue", "1e-3"], "--max-evalue"),
        (["--part-rows", "20"], "parts"),
        (["--unknown", "X"], "unknown"),
    ],
)
def test_another_run_is_refused(files, tmp_path, capsys, words, said):
    out = tmp_path / "out"
    assert folder_of(files, out, "--shard", "1/9") == DONE
    usual = dict(zip(WORDS[::2], WORDS[1::2], strict=True))
    usual |= {"--part-rows": str(ROWS)} | dict([words])
    given = [word for pair in usual.items() for word in pair]
    capsys.readouterr()
    assert main(["search", *files, "-o", f"{out}/", "--resume", *given]) == USAGE
    assert said in capsys.readouterr().err


def test_another_database_is_refused(files, tmp_path, capsys):
    mine, out = tmp_path / "d.fa", tmp_path / "out"
    mine.write_bytes(Path(files[1]).read_bytes())
    assert folder_of([files[0], str(mine)], out, "--shard", "1/9") == DONE
    mine.write_text(mine.read_text().replace("A", "C", 1))
    assert folder_of([files[0], str(mine)], out, "--resume") == USAGE
    assert "database" in capsys.readouterr().err


def test_what_cannot_be_a_folder(files, tmp_path, capsys):
    assert folder_of([files[0], "-"], tmp_path / "out") == USAGE
    assert "several times" in capsys.readouterr().err
    assert folder_of([files[0], "none.fa"], tmp_path / "out") == INPUT
    assert main(["search", *files, "--resume"]) == USAGE
    assert not (tmp_path / "out").exists()


# In Python ----------------------------------------------------------------------------


def test_a_stream_is_the_search(files):
    want = jaxalign.search(*files, top=TOP)
    residues = want.info["residues"]
    seen, cells = [], []
    options = dict(top=TOP, part_rows=ROWS, progress=lambda *x: cells.append(x))
    for part, table in jaxalign.stream_search(*files, skip=[2], **options):
        assert set(table["query"].tolist()) <= set(range(part.first, part.last))
        seen.append((part, table))
    assert [part.index for part, _ in seen] == [0, 1, 3, 4, 5, 6, 7, 8]
    kept = want.filter(~np.isin(want["query"], range(6, 9)))
    found = join((table for _, table in seen), {})
    names = [t.targets.names[k] for _, t in seen for k in t["target"]]
    assert names == [kept.targets.names[k] for k in kept["target"]]
    same = {"target": kept["target"]}
    same_tables(jaxalign.Table(found.columns | same, *[None] * 4,
                               operations=found.operations,
                               operation_offsets=found.operation_offsets),
                kept)  # fmt: skip
    m = kept.queries.lengths.sum() - kept.queries.lengths[6:9].sum()
    assert cells[-1] == (m * residues, None)
    texts = some_texts(2, 30)
    cells.clear()
    list(jaxalign.stream_search(files[0], texts, skip=[2], **options))
    assert cells[-1] == (m * residues,) * 2


@pytest.mark.parametrize("bad", [{"top": 0}, {"part_rows": 0}, {"shard": (3, 2)}])
def test_refusals(files, bad):
    with pytest.raises(jaxalign.UsageError):
        next(jaxalign.stream_search(*files, **bad))


def test_parts_hold_their_share():
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 900, 500)
    made = part_stream.cut_search(lengths, 10, 1000, rows=1500, cells=3 * 10**7)
    assert [x.first for x in made[1:]] == [x.last for x in made[:-1]]
    assert made[0].first == 0 and made[-1].last == 500
    for x in made:
        assert x.stop - x.start == 10 * (x.last - x.first) <= 1500
        assert x.cells == lengths[x.first : x.last].sum() * 1000 <= 3 * 10**7
    (alone,) = part_stream.cut_search([5], 10**9, 10**13)
    assert (alone.first, alone.last) == (0, 1)
    (empty,) = part_stream.cut_search([], 10, 10)
    assert (empty.first, empty.last, empty.stop) == (0, 0, 0)


# kill -9 ------------------------------------------------------------------------------


def begin(files, out, cache):
    words = [*files, "-o", f"{out}/", *WORDS, "--part-rows", str(ROWS), "-q"]
    return start(["search", *words, "--resume"], cache)


@pytest.mark.slow
@pytest.mark.parametrize("kills", [1, 20])
def test_kill_at_random_moments(files, want, tmp_path, kills):
    dice, count, held = random.Random(kills), 0, {}
    for _ in range(4 * kills):
        out = tmp_path / f"out{count // 4}"
        process = begin(files, out, tmp_path / "cache")
        more, pause = dice.choice((1, 2, 0)), dice.uniform(0, 0.05)
        count += killed(process, out, more, pause)
        for path in parts_in(out):  # what was finished stays as it was
            written = path.stat().st_mtime_ns
            assert held.setdefault(path, written) == written
        if count == kills:
            break
    assert count == kills
    for k in range((kills - 1) // 4 + 1):
        out = tmp_path / f"out{k}"
        process = begin(files, out, tmp_path / "cache")
        assert (process.communicate()[1], process.returncode) == (b"", DONE)
        assert rows(out).equals(want)
        for path, written in held.items():
            assert path.stat().st_mtime_ns == written
        assert runs.complete(str(out)) == (9, 9)
