"""Small jobs by rows: the results of the compiled fills, and which jobs they are."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from cases import END_SETS, GAPS, check_rows, same_tables, some_texts, text_of

import jaxalign
from jaxalign import MemoryPlanError, Scoring, UsageError, inputs
from jaxalign.options import PairOptions
from jaxalign.pairs import by_rows, compiled, engine, jobs
from jaxalign.pairs.options import make_task

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


@pytest.mark.slow
@pytest.mark.parametrize("name", SCORINGS)
def test_pairs_are_those_of_the_lanes(name):
    """Modes and sets of free ends in turn, each with one of the outputs."""
    queries, targets = some_texts(1, 12, 40), some_texts(2, 12, 40)[::-1]
    targets[6] = queries[6][:30]
    for mode, ends in MODES[list(SCORINGS).index(name) % 3 :: 3]:
        output = OUTPUTS[MODES.index((mode, ends)) % 4]
        options = {"mode": mode, "free_ends": ends, "output": output}
        both(jaxalign.align_pairs, queries, targets, SCORINGS[name], **options)


@pytest.mark.slow
@pytest.mark.parametrize(
    "mode, output",
    [*zip(("global", "semiglobal", "local", "local"), OUTPUTS, strict=True)],
)
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


@pytest.mark.slow
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


@pytest.mark.parametrize("match, mismatch, gap", [(30, -30, 20), (60, -15, 10)])
def test_rows_in_16_bits_do_not_wrap(match, mismatch, gap):
    """Up to the last lengths that 16 bits are proved for, and beyond: low and high."""
    scoring = Scoring(match=match, mismatch=mismatch, gap_open=gap, gap_extend=gap)
    dtypes = []
    for length in range(380, 480, 9):
        texts = ["A" * length, "A" * (length - 1), "C" * length]
        table = jaxalign.align_all(
            texts, scoring, implementation="rows", output="alignment"
        )
        a, b = match * (length - 1) - gap, mismatch * (length - 1) - gap
        assert table["score"].tolist() == [a, mismatch * length, b]
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
    whole = by_rows.partition(task, 2**30)
    few = by_rows.partition(task, 2**17)
    assert whole and few and len(few) > len(whole)
    assert all(by_rows.window_bytes(task, one) <= 2**17 for one in few)
    pairs = sorted(int(k) for one in few for k in one.query)
    assert pairs == list(range(40))
    assert by_rows.partition(task, 2**12) is None
    with pytest.raises(MemoryPlanError, match="bytes would fit"):
        engine.plan(replace(task, implementation="rows", budget=2**12))


def test_what_a_small_job_is(monkeypatch):
    """So many seconds by rows, and fewer where a GPU may be."""
    seconds = by_rows.MAX_SECONDS
    for gpu, path in ((False, "/no/such/file"), (True, __file__)):
        monkeypatch.setattr(by_rows, "NVIDIA", path)
        cells, rows = (
            seconds[gpu] / cost for cost in (by_rows.CELL_SECONDS, by_rows.ROW_SECONDS)
        )
        ratio = 1 if gpu else by_rows.PATHS_RATIO
        assert by_rows.is_short(0.99 * ratio * cells, 0, paths=True)
        assert not by_rows.is_short(1.01 * ratio * cells, 0, paths=True)
        assert by_rows.is_short(1.49 * cells, 0, paths=False)
        assert not by_rows.is_short(0, 1.01 * rows, paths=False)


def test_the_choice_does_not_depend_on_what_ran_before(monkeypatch, tmp_path):
    """Calls before, compiled or not, and programs in the folder change nothing."""
    monkeypatch.setattr(by_rows, "NVIDIA", "/no/such/file")
    monkeypatch.setenv("JAXALIGN_CACHE_DIR", str(tmp_path / "programs"))
    texts = some_texts(6, 12, 60)
    small = task_of(texts, kind="all")
    monkeypatch.setattr(by_rows, "MAX_SECONDS", {False: 0.004})
    large = task_of(texts + some_texts(7, 40, 60), kind="all")
    chosen = []
    for _ in range(3):
        chosen.append([engine.plan(x)["implementation"] for x in (small, large)])
        for one in (small, replace(small, implementation="sweep")):
            engine.run(engine.plan(one))
    assert chosen == [["rows", "sweep"]] * 3


@pytest.mark.parametrize(
    "mode, ends, few",
    [
        *((*x, 1) for x in MODES if x[0] == "global"),
        pytest.param("semiglobal", None, 1, marks=pytest.mark.slow),
        *(pytest.param(*x, 4, marks=pytest.mark.slow) for x in MODES[::4]),
    ],
)
def test_an_alignment_alone_is_that_of_a_table(mode, ends, few):
    """``align`` has its own short way; either side longer, empty, and with ties."""
    long, short = some_texts(9, 2, 70)
    options = {"mode": mode, "free_ends": ends}
    pairs = (long, short[:30]), (short[:30], long), ("", short), ("ACA", "")
    for pair in pairs[:few]:
        for scoring in (SCORINGS["skew"], SCORINGS["fractions"], SCORINGS["linear"]):
            table = jaxalign.align_pairs(
                [("query", pair[0])],
                [("target", pair[1])],
                scoring,
                output="alignment",
                implementation="sweep",
                **options,
            )
            want = replace(table.alignment(0), implementation="rows")
            one = jaxalign.align(*pair, scoring, **options)
            assert {**vars(one), "operations": one.operations.tolist()} == {
                **vars(want),
                "operations": want.operations.tolist(),
            }


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


def test_progress_is_told():
    told = []
    table = jaxalign.align_all(some_texts(8, 9), progress=lambda *x: told.append(x))
    cells = np.sum(table.lengths()[0] * table.lengths()[1])
    assert table.implementation == "rows" and told[-1] == (cells, cells)


def test_a_small_job_is_beside_the_larger_one_it_belongs_to(monkeypatch):
    gpu = SimpleNamespace(platform="gpu")
    monkeypatch.setattr(by_rows, "may_have_gpu", lambda: True)
    monkeypatch.setattr(jobs, "first_device", lambda: gpu)
    kernels, usual = {id(gpu): "pallas"}, PairOptions(output="identity")
    monkeypatch.setattr(
        compiled, "choose", lambda _name, devices: (kernels[id(devices[0])], "")
    )
    large = 10**12
    assert jobs.beside(usual, large).devices == [gpu]
    assert jobs.beside(usual, 10**6) is usual  # by rows, both of them
    for name, value in (("implementation", "rows"), ("devices", 0), ("mesh", MESH)):
        named = replace(usual, **{name: value})
        assert jobs.beside(named, large) is named
    kernels[id(gpu)] = "sweep"  # a GPU without kernels
    assert jobs.beside(usual, large) is usual
    gpu.platform = "cpu"
    assert jobs.beside(usual, large) is usual
