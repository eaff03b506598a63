"""Search is an argsort of all scores, whatever the blocks, the windows or the stage."""

import gzip
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import check_rescored, check_rows, same_tables, some_texts

import jaxalign
from jaxalign.database import pieces, scan
from jaxalign.database.dp import best_hits
from jaxalign.errors import InputError, MemoryPlanError, UsageError
from jaxalign.io import fasta
from jaxalign.model import statistics
from jaxalign.model.alphabet import as_sequences
from jaxalign.model.scoring import Scoring
from jaxalign.options import PairOptions
from jaxalign.pairs.cpu import execute
from jaxalign.pairs.options import make_task

pytestmark = pytest.mark.usefixtures("compiled")

PROTEINS = Path(__file__).parents[1] / "data" / "proteins.fasta"
SETTINGS = {
    "local": dict(mode="local"),
    "global": dict(mode="global"),
    "semiglobal": dict(mode="semiglobal"),
    "ends": dict(mode="global", free_ends=["target_start", "target_end"]),
}
LIKE = "global", "semiglobal"  # programs of their own, the rules of the other two


@pytest.fixture(scope="module")
def sets():
    """Queries, and a database in which many sequences come more than once."""
    texts = some_texts(3, 40)
    return some_texts(4, 7), [*texts, *texts[::-1], *texts[10:20]]


def written(path, texts, opener=open):
    with opener(path, "wt") as file:
        file.writelines(f">d{k} x\n{text}\n" for k, text in enumerate(texts))
    return str(path)


def expected(queries, database, count, **setting):
    """(query, target, score) of every hit: a stable sort of all scores."""
    scores = jaxalign.scores_matrix(queries, database, **setting)
    rows = []
    for q, row in enumerate(scores.tolist()):
        order = sorted(range(len(row)), key=lambda t: (-row[t], t))
        hits = [t for t in order if setting["mode"] != "local" or row[t] > 0]
        rows += [(q, t, row[t]) for t in hits[:count]]
    return rows


def rows_of(table):
    columns = (table[name].tolist() for name in ("query", "target", "score"))
    return list(zip(*columns, strict=True))


@pytest.mark.parametrize(
    "name",
    [
        "local",
        *(pytest.param(x, marks=pytest.mark.slow) for x in SETTINGS if x != "local"),
    ],
)
def test_the_hits_are_the_best_of_all_scores(sets, name):
    for count in (1, 9, 1000):
        found = jaxalign.search(*sets, top=count, align_top=False, **SETTINGS[name])
        assert rows_of(found) == expected(*sets, count, **SETTINGS[name])


def test_paths_are_the_oracles(sets):
    found = jaxalign.search(*sets, top=4)
    assert rows_of(found) == expected(*sets, 4, mode="local")
    check_rows(found, every=3)
    check_rescored(found)
    assert found.info["sequences"] == len(sets[1])
    assert found.info["residues"] == sum(map(len, sets[1]))
    assert found.info["cells"] == sum(map(len, sets[0])) * sum(map(len, sets[1]))


@pytest.mark.parametrize(
    "residues, records",
    [
        (200, 99),
        *(pytest.param(*x, marks=pytest.mark.slow) for x in ((1, 99), (2**20, 7))),
    ],
)
def test_no_hit_depends_on_the_blocks(sets, monkeypatch, residues, records):
    want = expected(*sets, 5, mode="local")
    monkeypatch.setattr(pieces, "BLOCK_RESIDUES", residues)
    monkeypatch.setattr(pieces, "BLOCK_RECORDS", records)
    few = sets[0][:3] if residues == 1 else sets[0]
    found = jaxalign.search(few, sets[1], top=5, align_top=False)
    assert rows_of(found) == [row for row in want if row[0] < len(few)]


@pytest.mark.parametrize(
    "options",
    [dict(threads=3, window=8), pytest.param(dict(window=3), marks=pytest.mark.slow)],
)
def test_no_hit_depends_on_windows_or_threads(sets, options):
    found = jaxalign.search(*sets, top=5, align_top=False, **options)
    assert rows_of(found) == expected(*sets, 5, mode="local")


@pytest.mark.slow
@pytest.mark.parametrize(
    "many, enough",
    [(1, 3), (2**20, 3)],
)
def test_scores_beyond_eight_bits(sets, monkeypatch, many, enough):
    """Tried in 8 bits, computed again in windows of such pairs or in whole windows."""
    monkeypatch.setattr("jaxalign.pairs.plan.LARGE_JOB_CELLS", 0)
    monkeypatch.setattr(execute, "MAX_OVERFLOW_RATIO", many)
    monkeypatch.setattr(scan, "PAIRS_TO_REGROUP", enough)
    seen, real = [], execute.window_scores

    def watched(task, window, worker):
        scores, beyond = real(task, window, worker)
        seen.append((worker.byte_limit, beyond))
        return scores, beyond

    filled, fill = [], execute._scores
    monkeypatch.setattr(execute, "window_scores", watched)
    monkeypatch.setattr(
        execute, "_scores", lambda *some: filled.append(some[-1]) or fill(*some)
    )
    queries, database = (
        [*sets[0], "W" * 64, "W" * 12],
        [*sets[1], *["W" * 30] * 9, "W" * 64],
    )
    options = dict(top=12, align_top=False, window=16, threads=2)
    found = jaxalign.search(queries, database, **options)
    assert rows_of(found) == expected(queries, database, 12, mode="local")
    assert max(score for _, _, score in rows_of(found)) > 600  # wraps twice
    assert found.info["dtypes"] == ["int16", "int8"]
    whole = [pairs is None for high, pairs in seen if high]  # filled twice, or skipped
    assert any(whole) == (many > 1) and {high for high, _ in seen} <= {0, 232}
    tried = [dtype for dtype in filled if dtype == "int8"]
    assert len(tried) == len(whole) if many == 1 else len(tried) < len(whole)
    assert any(high == 0 for high, _ in seen) == (many == 1)


def test_the_second_stage_changes_nothing(sets, monkeypatch):
    """Long subjects by wavefront: here every one is worth it, up to the last lane."""
    monkeypatch.setattr(scan, "STAGE_COSTS", {"cpu": scan.StageCosts(99, 0.01, 0)})
    few = [text[:20] for text in sets[0][:3]], sets[1][:6]
    found = jaxalign.search(*few, top=5, align_top=False)
    assert "wavefront" in found.implementation
    assert rows_of(found) == expected(*few, 5, mode="local")


def test_sources_of_a_database(sets, tmp_path):
    """A list, Sequences, FASTA, gz and an index give the same hits."""
    queries, texts = sets
    named = [(f"d{k}", text) for k, text in enumerate(texts)]
    plain = written(tmp_path / "d.fa", texts)
    packed = written(tmp_path / "d.fa.gz", texts, gzip.open)
    jaxalign.index_database(packed, tmp_path / "d.jaxdb")
    index = jaxalign.open_database(tmp_path / "d.jaxdb")
    want = jaxalign.search(queries, named, top=5)
    same_tables(
        jaxalign.search(written(tmp_path / "q.fa", queries), index, top=5), want
    )
    for database in (index, tmp_path / "d.jaxdb", plain, packed):
        found = jaxalign.search(queries, database, top=5)
        names = [found.targets.names[t] for t in found["target"]]
        assert names == [f"d{t}" for t in want["target"]]
        target = {"target": want["target"]}
        same_tables(jaxalign.Table(found.columns | target, *[None] * 4,
                                   operations=found.operations,
                                   operation_offsets=found.operation_offsets),
                    want)  # fmt: skip
        if database in (plain, packed):  # of FASTA only the hits are kept
            used = sorted(set(want["target"].tolist()))
            assert list(found.targets.names) == [f"d{t}" for t in used]


@pytest.mark.slow
def test_the_hits_of_a_stream_are_kept_from_block_to_block(sets, tmp_path, monkeypatch):
    want = jaxalign.search(*sets, top=3)
    monkeypatch.setattr(pieces, "BLOCK_RESIDUES", 300)
    found = jaxalign.search(sets[0], written(tmp_path / "d.fa", sets[1]), top=3)
    texts = [found.targets.text(t) for t in found["target"]]
    assert texts == [want.targets.text(t) for t in want["target"]]
    assert found["score"].tolist() == want["score"].tolist()
    check_rescored(found)


@pytest.mark.slow
def test_fractional_scores(sets):
    scoring = Scoring("BLOSUM62", 10, 0.5)
    queries, database = sets[0][:3], sets[1][:30]
    found = jaxalign.search(queries, database, scoring, top=4, mode="global")
    want = jaxalign.scores_matrix(queries, database, scoring)
    assert found["score"].dtype == np.float64
    assert found["score"][:4].tolist() == sorted(want[0], reverse=True)[:4]
    assert np.isnan(found["bits"]).all() and np.isnan(found["evalue"]).all()


def test_scores_beyond_int32(sets, monkeypatch):
    """The best are kept in 64 bits where they need it, and from then on."""
    scoring = Scoring(("AB", np.array([[32767, -32767], [-32767, 32767]])), 9, 9)
    long, short = ["A" * 70000], ["AB"]
    tasks = (scanning_task((long, x), scoring) for x in (long, short))
    first = scan._dtype(next(tasks), None)
    assert first == "int64"
    assert scan._dtype(next(tasks), None) == "int32"
    kept = [best_hits.empty(1, 2, "int32")]
    real = scan._dtype

    def widen(task, best):
        kept.append(best)
        return "int64" if len(kept) == 4 else real(task, best)

    monkeypatch.setattr(scan, "_dtype", widen)
    monkeypatch.setattr(pieces, "BLOCK_RESIDUES", 300)
    found = jaxalign.search(*sets, top=5, align_top=False)
    assert {str(best.score.dtype) for best in kept[2:]} == {"int32", "int64"}
    assert str(kept[-1].score.dtype) == "int64"
    assert rows_of(found) == expected(*sets, 5, mode="local")


@pytest.mark.parametrize(
    "queries, database", [([], ["A"]), (["A"], []), ([], []), ([""], ["A", ""])]
)
@pytest.mark.parametrize("align_top", [True, False])
def test_nothing_to_find(queries, database, align_top):
    found = jaxalign.search(queries, database, align_top=align_top)
    assert len(found) == len(found["evalue"]) == 0
    assert ("columns" in found.columns) == align_top


def test_an_empty_sequence_is_a_hit_in_global_mode():
    found = jaxalign.search(["AA"], ["", "AA"], mode="global")
    assert rows_of(found) == [(0, 1, 8), (0, 0, -12)]


def test_bits_and_evalues_are_those_of_the_whole_database(sets):
    found = jaxalign.search(*sets, top=2, align_top=False)
    size = found.info["residues"], found.info["sequences"]
    known = statistics.parameters(Scoring(), "local")  # BLAST's 10, 1
    m = found.lengths()[0]
    want = statistics.evalues(found["score"], m, *size, known)
    np.testing.assert_array_equal(found["evalue"], want)


@pytest.mark.parametrize("bad", [0, -1, 2.5, None])
def test_top_is_a_number(bad):
    with pytest.raises(UsageError, match="top"):
        jaxalign.search(["A"], ["A"], top=bad)


@pytest.mark.parametrize("blocks", [pytest.param(1, marks=pytest.mark.slow), 3])
def test_more_hits_than_sequences_take_no_room(sets, tmp_path, monkeypatch, blocks):
    """10^8 places for each of seven queries would be 8 GB."""
    queries, database = sets
    monkeypatch.setattr(pieces, "BLOCK_RECORDS", -(-len(database) // blocks))
    monkeypatch.setattr(scan, "MIN_PLACES", 1)
    options = dict(align_top=False, mode="global")
    want = rows_of(jaxalign.search(queries, database, top=90, **options))
    assert len(want) == len(queries) * len(database)
    path = written(tmp_path / "d.fa", database)
    for source in (database, path):
        found = jaxalign.search(queries, source, top=10**8, **options)
        assert rows_of(found) == want


def test_hits_that_have_no_room_are_refused(sets):
    queries, database = sets
    with pytest.raises(MemoryPlanError, match="the best 1,024 hits of 7 queries"):
        options = dict(top=10**8, align_top=False, memory_budget=10**5)
        jaxalign.search(queries, database, **options)


def test_refusals(sets, tmp_path):
    with pytest.raises(InputError, match="no such file"):
        jaxalign.search(["A"], str(tmp_path / "none.fa"))
    with pytest.raises(MemoryPlanError):
        jaxalign.search(*sets, memory_budget="1kB")
    path = tmp_path / "d.jaxdb"
    jaxalign.index_database(written(tmp_path / "d.fa", ["ACGT"]), path)
    with pytest.raises(InputError, match="letters"):
        jaxalign.search(["ACGT"], path, Scoring.preset("blastn"))


def test_progress_adds_up(sets, tmp_path):
    seen = []
    jaxalign.search(*sets, progress=lambda *x: seen.append(x), align_top=False)
    cells = sum(map(len, sets[0])) * sum(map(len, sets[1]))
    assert seen[-1] == (cells, cells)
    seen.clear()
    path = written(tmp_path / "d.fa", sets[1])
    jaxalign.search(sets[0], path, progress=lambda *x: seen.append(x), align_top=False)
    assert seen[-1] == (cells, None)


def test_a_failure_in_a_window_is_raised(sets, monkeypatch):
    def fail(*_):
        raise RuntimeError("lost")

    monkeypatch.setattr(execute, "window_scores", fail)
    with pytest.raises(RuntimeError, match="lost"):
        jaxalign.search(*sets)


# ------------------------------------------------------------------------ on the device


@pytest.mark.parametrize("dtype", ["int16", "int32"])
def test_the_best_of_windows_in_any_order(dtype):
    """Against a sort on the host, with many ties."""
    rng = np.random.default_rng(0)
    scores = rng.integers(-3, 4, (5, 40)).astype(dtype)
    best = best_hits.empty(5, 6)
    places = np.split(rng.permutation(40), [7, 8, 30])
    for part in places:
        column = np.zeros(32, np.int32)
        index = np.full(32, best_hits.NO_HIT, np.int32)
        order = np.argsort(part)
        column[: len(part)], index[: len(part)] = order, part[order]
        wide = np.full((8, 32), 99, dtype)
        wide[:5, : len(part)] = scores[:, part]
        rows = np.array([0, 1, 2, 3, 4, 5, 5, 5], np.int32)
        best = best_hits.add(best, wide, rows, column, index, np.int32(-1))
    for q in range(5):
        want = sorted((-s, t) for t, s in enumerate(scores[q].tolist()) if s >= -1)[:6]
        assert list(zip((-best.score[q]).tolist(), best.index[q].tolist(),
                        strict=True)) == want  # fmt: skip


def test_scores_of_windows_stay_device_arrays(sets, monkeypatch):
    seen = []
    real = scan.add_hits
    monkeypatch.setattr(scan, "add_hits", lambda *x: seen.append(x[1]) or real(*x))
    run = scan.prepare(scanning_task(sets))
    best, _ = scan._fold(run, np.arange(len(sets[1])), None, None)
    assert seen and all(isinstance(scores, jax.Array) for scores in seen)
    assert len(sets[0]) <= 16 and best.score.shape == best.index.shape == (16, 5)


def scanning_task(sets, scoring=None):
    scoring = scoring or Scoring()
    both = (as_sequences(x, scoring.alphabet) for x in sets)
    task = make_task("cross", *both, scoring, PairOptions(mode="local", output="score"))
    return replace(task, top=5)


@pytest.mark.parametrize("rows", [1, 10**9])
def test_which_subjects_are_set_apart(rows):
    """The threshold is the cheapest of all."""
    rng = np.random.default_rng(rows)
    costs = scan.StageCosts(160, 11, 2e9)
    for lengths in ([], [5], [300] * 50, [35000, *rng.integers(50, 900, 400)],
                    rng.integers(1, 9000, 3000)):  # fmt: skip
        lengths = np.array(lengths, np.int64)
        found = scan.longest_in_lanes(lengths, rows, costs)

        def cost(limit, lengths=lengths):
            rest, apart = lengths[lengths <= limit], lengths[lengths > limit]
            columns = max(rest.max(initial=0), rest.sum() / scan.STAGE_LANES)
            start = costs.start if len(apart) else 0
            return (
                rows * (columns * costs.lanes + apart.sum() * costs.wavefront) + start
            )

        assert cost(found) <= min(map(cost, [0, *lengths])) * (1 + 1e-9)
    if rows > 1:
        assert scan.longest_in_lanes(np.array([35000, 300, 300]), rows, costs) < 35000


# ---------------------------------------------------------------------------- witnesses


def real_proteins():
    """The shipped globins and proteins; more where benchmarks/fetch.py has been run."""
    alphabet = Scoring().alphabet
    globins = fasta.read(str(files("jaxalign.data") / "globins.fasta"), alphabet)
    more = Path(__file__).parents[2] / "benchmarks" / "data" / "swissprot12071.fasta"
    records = [(name, s.text(k)) for s in (globins, fasta.read(PROTEINS, alphabet))
               for k, name in enumerate(s.names)]  # fmt: skip
    if more.exists():
        drawn = fasta.read(more, alphabet, "mask")
        short = np.flatnonzero(drawn.lengths <= 400)[::30][:250]
        records += [(f"more {k}", drawn.text(k)) for k in short]
    return records


@pytest.mark.slow
def test_hits_and_scores_are_parasails():
    """Every query, every hit, and every tie in database order."""
    parasail = pytest.importorskip("parasail")
    records = real_proteins()
    queries = [record for record in records if len(record[1]) <= 400][::6]
    found = jaxalign.search(queries, records, top=10)
    ties = 0
    for q, (_, query) in enumerate(queries):
        profile = parasail.profile_create_16(query, parasail.blosum62)
        scores = [parasail.sw_scan_profile_16(profile, text, 11, 1).score
                  for _, text in records]  # fmt: skip
        order = sorted(range(len(scores)), key=lambda t: (-scores[t], t))[:10]
        rows = found["query"] == q
        assert found["target"][rows].tolist() == order
        assert found["score"][rows].tolist() == [scores[t] for t in order]
        ties += len(order) - len({scores[t] for t in order})
    assert ties > 0
    check_rescored(found)


@pytest.mark.parametrize(
    "name, residues",
    [
        ("local", 2**26),
        *(
            pytest.param(x, 200, marks=pytest.mark.slow)
            for x in ("local", "ends", *LIKE)
        ),
    ],
)
def test_rows_find_the_same_hits(monkeypatch, sets, name, residues):
    """All scores by rows, in one block or several: the hits of the lanes."""
    monkeypatch.setattr(pieces, "BLOCK_RESIDUES", residues)
    for scoring in (Scoring(), Scoring("BLOSUM62", 10.5, 0.5)):
        options = dict(SETTINGS[name], top=9)
        lanes = jaxalign.search(*sets, scoring, **options)
        rows = jaxalign.search(*sets, scoring, **options, implementation="rows")
        same_tables(rows, lanes)
        assert rows.implementation == "rows" and lanes.implementation != "rows"


def test_a_small_search_needs_no_compiler(monkeypatch, sets, tmp_path):
    """The whole of it: a file is read once, the hits of it are kept and aligned."""
    path = written(tmp_path / "db.fa", sets[1])
    lanes = jaxalign.search(sets[0], path, top=9)
    monkeypatch.delenv("JAXALIGN_ROWS")
    rows = jaxalign.search(sets[0], path, top=9)
    same_tables(rows, lanes)
    assert rows.info["reason"].startswith("a small job")
    assert rows.targets.names == lanes.targets.names
    assert rows.info["cells"] == lanes.info["cells"]


@pytest.mark.parametrize(
    "count, columns",
    [
        (3, 1000),
        (9, 64),
        *(pytest.param(*x, marks=pytest.mark.slow) for x in ((1, 512), (10, 4096))),
    ],
)
def test_the_best_columns_are_those_of_a_sort(count, columns):
    """… the first of equals, whether columns are looked at in groups or not."""
    rng = np.random.default_rng(count)
    for highest in (2, 40, 10**9):
        scores = rng.integers(-highest, highest, (3, columns)).astype(np.int32)
        found = best_hits.top_k(jnp.asarray(scores), count)
        place = np.argsort(-scores.astype(np.int64), axis=1, kind="stable")[:, :count]
        np.testing.assert_array_equal(found[1], place)
        np.testing.assert_array_equal(found[0], np.take_along_axis(scores, place, 1))
