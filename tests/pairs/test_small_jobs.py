"""Small jobs by rows: the results of the compiled fills, and which jobs they are."""

import sys
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest
from cases import END_SETS, GAPS, check_rows, same_tables, some_texts, text_of

import jaxalign
from jaxalign import MemoryPlanError, Scoring, UsageError, inputs
from jaxalign.pairs import engine, small_jobs
from jaxalign.pairs.cpu import rows_window
from jaxalign.pairs.options import PairOptions, make_task
from jaxalign.pairs.plan import Plan

PROTEINS = Path(__file__).parents[1] / "data" / "proteins.fasta"
MODES = [("local", None), ("semiglobal", None), *(("global", e) for e in END_SETS)]
OUTPUTS = ("score", "identity", "stats", "alignment")
SKEW = ("ACDEFGHIKLMNPQRSTVWYX", np.random.default_rng(7).integers(-4, 6, (21, 21)))
SCORINGS = {name: Scoring("BLOSUM62", *gaps) for name, gaps in GAPS.items()}
SCORINGS |= {"fractions": Scoring("BLOSUM62", 10, 0.5), "skew": Scoring(SKEW, 5, 2)}
MESH = jax.make_mesh((1,), "d")


def both(function, *sets, **options):
    """The same job by rows and by lanes: equal tables; that of rows."""
    rows = function(*sets, implementation="rows", **options)
    lanes = function(*sets, implementation="sweep", **options)
    same_tables(rows, lanes)
    assert rows.implementation == "rows" and rows.info["reason"] == "asked for"
    return rows


@pytest.mark.parametrize("name", SCORINGS)
def test_pairs_are_those_of_the_lanes(name):
    """All modes and sets of free ends, each with one of the outputs."""
    queries, targets = some_texts(1, 12, 40), some_texts(2, 12, 40)[::-1]
    targets[6] = queries[6][:30]
    for k, (mode, ends) in enumerate(MODES):
        options = {"mode": mode, "free_ends": ends, "output": OUTPUTS[k % 4]}
        both(jaxalign.align_pairs, queries, targets, SCORINGS[name], **options)


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("mode", ["global", "semiglobal", "local"])
def test_sets_are_those_of_the_lanes(mode, output):
    """All pairs of a set, with and without themselves; one against all."""
    texts, options = some_texts(3, 20, 50), {"mode": mode, "output": output}
    for name in ("affine", "skew"):
        for include_self in (False, True):
            both(jaxalign.align_all, texts, SCORINGS[name],
                 include_self=include_self, **options)  # fmt: skip
        both(jaxalign.align_pairs, texts[5:6], texts, SCORINGS[name], **options)


@pytest.mark.slow
def test_proteins_are_those_of_the_lanes_and_the_oracle():
    """Real proteins, and windows of some bytes: several of them."""
    scoring = Scoring("BLOSUM62", 12, 1)
    table = both(jaxalign.align_all, PROTEINS, scoring, output="alignment")
    alone = jaxalign.align_all(
        PROTEINS, scoring, output="alignment", implementation="rows", window=1
    )
    same_tables(alone, table)
    assert alone.info["windows"] == len(table) > 1 and len(table) > 40
    longest = int(np.argmax(table["columns"]))
    check_rows(table.filter(np.array([0, longest])))


def test_filters_and_parts_are_those_of_the_lanes():
    texts = some_texts(4, 24, 40)
    for options in (
        {"min_score": 3},
        {"min_identity": 0.3, "output": "identity", "identity": "shorter"},
        {"min_cov": 0.5, "coverage": "query", "mode": "local", "output": "alignment"},
    ):
        table = both(jaxalign.align_all, texts, **options)
        assert 0 < len(table) < 276
        parts = jaxalign.stream_all(
            texts, part_rows=30, implementation="rows", **options
        )
        rows = [column for _, part in parts for column in part["score"].tolist()]
        assert rows == table["score"].tolist()


def test_scores_beyond_32_bits_have_64():
    """Gaps that 32 bits do not hold; of identities, scores sooner."""
    costly = Scoring(match=2, mismatch=-3, gap_open=2**15 - 1, gap_extend=2**15 - 1)
    texts = ["ACGTACGT", "CGTA" * 8300]
    for output in ("score", "alignment"):
        options = {"implementation": "rows", "output": output}
        table = jaxalign.align_all(texts, costly, **options)
        assert table["score"].tolist() == [16 - (33200 - 8) * (2**15 - 1)]
        assert table.info["dtypes"] == ["int64"]
    assert table.alignment(0).rescore() == table["score"][0]
    short = ["ACGTACGT", "ACGTTCGA", "CGTA"]
    for scoring, dtype in ((costly, "int64"), (Scoring(match=2, mismatch=-3), "int32")):
        table = both(jaxalign.align_all, short, scoring, output="identity")
        assert table.info["dtypes"] == [dtype]


def test_rows_in_16_bits_do_not_wrap():
    """Up to the last lengths that 16 bits are proved for, and beyond."""
    scoring, dtypes = Scoring(match=30, mismatch=-30, gap_open=20, gap_extend=20), []
    for length in range(380, 480, 9):
        texts = ["A" * length, "A" * (length - 1), "C" * length]
        table = jaxalign.align_all(
            texts, scoring, implementation="rows", output="alignment"
        )
        paired = 30 * (length - 1)
        assert table["score"].tolist() == [paired - 20, -30 * length, -paired - 20]
        assert table.cigar(0) == f"1I{length - 1}M"
        dtypes += table.info["dtypes"]
    assert {"int16", "int32"} == {*dtypes}


def task_of(*sets, kind="zip", **options):
    scoring = Scoring()
    sides = [inputs.sets(scoring, side)[0] for side in sets]
    return make_task(kind, sides[0], sides[-1], scoring, PairOptions(**options))


def test_windows_keep_to_the_budget():
    """As few pairs as fit; none where not even one does."""
    rng = np.random.default_rng(5)
    texts = [text_of(rng, n) for n in rng.integers(0, 90, 40)]
    task = task_of(texts, texts[::-1])
    whole = rows_window.partition(task, 2**30)
    few = rows_window.partition(task, 2**17)
    assert whole and few and len(few) > len(whole)
    assert all(rows_window.window_bytes(task, one) <= 2**17 for one in few)
    pairs = sorted(int(k) for one in few for k in one.query)
    assert pairs == list(range(40))
    assert rows_window.partition(task, 2**12) is None
    with pytest.raises(MemoryPlanError, match="bytes would fit"):
        engine.plan(replace(task, implementation="rows", budget=2**12))


def test_what_a_small_job_is(monkeypatch):
    """Fewer seconds than a compiler needs to start; after it has, fewer than a call."""
    monkeypatch.setattr(small_jobs, "NVIDIA", "/no/such/file")

    def is_small(cells, rows, **more):
        job = task_of(["MK" * 100] * 2, kind="all", threads=2, **more)
        return small_jobs.choose_way(cells, rows, job)[0]

    monkeypatch.setattr(small_jobs, "_sizes_ready", set())
    assert is_small(1e8, 1000) and not is_small(1e9, 1000)
    assert is_small(3.9e8, 9e3, output="score") and not is_small(1e4, 2e5)
    sizes = small_jobs._sizes(task_of(["MK" * 100] * 2, kind="all"))
    monkeypatch.setattr(small_jobs, "_sizes_ready", set(sizes))
    assert is_small(1e5, 100) and not is_small(1e8, 1000)
    monkeypatch.setattr(small_jobs, "_sizes_ready", set())
    for spent, want in ((1.9, True), (2.1, False)):
        monkeypatch.setattr(small_jobs, "_seconds_by_rows", {sizes: spent})
        assert is_small(1e8, 1000) == want and is_small(1e5, 300)


def test_the_start_of_what_is_compiled(monkeypatch, tmp_path):
    """Importing JAX and compiling, or loading; a GPU's programs take longer."""
    monkeypatch.setattr(small_jobs, "NVIDIA", "/no/such/file")
    monkeypatch.setattr(small_jobs, "_sizes_ready", set())
    monkeypatch.setenv("JAXALIGN_CACHE_DIR", str(tmp_path / "programs"))
    job = task_of(["MK"] * 2, kind="all", threads=2)
    zipped = task_of(["MK", "A" * 99, "A" * 999], ["MK"] * 3, threads=2)
    start = small_jobs.START[False]
    assert small_jobs.seconds_to_start(job) == start.program  # JAX is here
    assert small_jobs.seconds_to_start(zipped) == 1.5 * start.program  # three sizes
    monkeypatch.delitem(sys.modules, "jax")
    cold = small_jobs.seconds_to_start(job)
    assert cold == start.jax + start.program
    engine.run(engine.plan(replace(job, implementation="rows")))
    assert small_jobs.seconds_to_start(job, 1.0) == cold  # rows leave no programs
    small_jobs.note(Plan(job, (), {"implementation": "sweep"}), 1.0)
    assert small_jobs.seconds_to_start(job) == 0
    monkeypatch.setattr(small_jobs, "_sizes_ready", set())  # as in another process
    assert small_jobs.seconds_to_start(job, 1.0) == start.jax + start.load
    assert small_jobs.seconds_to_start(replace(job, output="score"), 1.0) == cold
    monkeypatch.setattr(small_jobs, "NVIDIA", __file__)
    start = small_jobs.START[True]
    cold = small_jobs.seconds_to_start(replace(job, output="score"))
    assert cold == start.jax + start.program


def test_zipped_pairs_have_a_program_for_each_side(monkeypatch, tmp_path):
    """Those of a job of many sizes serve one of few, in another process, too."""
    monkeypatch.setattr(small_jobs, "NVIDIA", "/no/such/file")
    monkeypatch.setattr(small_jobs, "_sizes_ready", set())
    monkeypatch.setenv("JAXALIGN_CACHE_DIR", str(tmp_path / "programs"))
    wide = task_of(["", "A" * 65, "A" * 64, "A" * 999], ["MK"] * 4, threads=1)
    few = task_of(["A" * 128], ["A" * 5], threads=1)
    other = task_of(["A" * 129], ["A" * 5], threads=1)
    assert [len(small_jobs._sizes(x)) for x in (wide, few, other)] == [3, 1, 1]
    assert not small_jobs._sizes(task_of([], []))
    small_jobs.note(Plan(wide, (), {"implementation": "sweep"}), 1.0)
    load, compiled = small_jobs.START[False].load, small_jobs.START[False].program
    for ready in (True, False):
        assert small_jobs.seconds_to_start(few, 1.0) == (0.0 if ready else load)
        assert small_jobs.seconds_to_start(other, 1.0) == compiled
        monkeypatch.setattr(small_jobs, "_sizes_ready", set())


def test_who_computes_a_small_job(monkeypatch):
    """Rows, unless somebody names another implementation, a device or a mesh."""
    for options in (
        {"implementation": "sweep"},
        {"devices": 0},
        {"mesh": jax.make_mesh((1,), "d")},
    ):
        assert (
            engine.plan(task_of(["MK"], ["MK"], **options))["implementation"] != "rows"
        )
    plan = engine.plan(task_of(["MK"], ["MK"]))
    assert (plan["implementation"], plan["devices"]) == ("rows", ["cpu"])
    with jax.default_device(jax.devices()[1]):
        assert engine.plan(task_of(["MK"], ["MK"]))["implementation"] != "rows"
    for value in ("off", "0", "OFF"):
        monkeypatch.setenv("JAXALIGN_ROWS", value)
        assert engine.plan(task_of(["MK"], ["MK"]))["implementation"] != "rows"
        named = engine.plan(task_of(["MK"], ["MK"], implementation="rows"))
        assert named["implementation"] == "rows"


@pytest.mark.parametrize(
    "options", [{"devices": 0}, {"mesh": jax.make_mesh((1,), "d")}]
)
def test_rows_take_no_device(options):
    with pytest.raises(UsageError, match="rows|sweep"):
        engine.plan(task_of(["MK"], ["MK"], implementation="rows", **options))


def test_programs_that_are_there_are_used(monkeypatch):
    """After a compiled job of that size the next one need not wait for a compiler."""
    monkeypatch.setattr(small_jobs, "CELL_SECONDS", 1e-6)
    rng = np.random.default_rng(6)
    texts = [text_of(rng, 60) for _ in range(12)]
    task = task_of(texts, kind="all")
    assert engine.plan(task)["implementation"] == "rows"
    engine.run(engine.plan(replace(task, implementation="sweep")))
    assert engine.plan(task)["implementation"] == "sweep"
    local = replace(task, mode="local")
    assert engine.plan(local)["implementation"] == "rows"
    engine.run(engine.plan(local))
    assert engine.plan(local)["implementation"] == "rows"
    small_jobs.note(engine.plan(local), 10.0)
    assert engine.plan(local)["implementation"] == "sweep"


def test_progress_is_told():
    told = []
    table = jaxalign.align_all(some_texts(8, 9), progress=lambda *x: told.append(x))
    cells = np.sum(table.lengths()[0] * table.lengths()[1])
    assert table.implementation == "rows" and told[-1] == (cells, cells)
