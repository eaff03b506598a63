"""Small jobs by rows: the results of the compiled fills, and which jobs they are."""

import threading
from dataclasses import replace
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from cases import END_SETS, GAPS, check_rows, same_tables, some_texts, text_of

import jaxalign
from jaxalign import MemoryPlanError, Scoring, UsageError, inputs
from jaxalign.model.identity import Filters
from jaxalign.options import PairOptions
from jaxalign.pairs import amortized, by_rows, compiled, engine, jobs
from jaxalign.pairs.amortized import Account, JobCosts
from jaxalign.pairs.cpu import execute, partition
from jaxalign.pairs.options import make_task
from jaxalign.runtime import forks

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
    assert jobs.with_kernels(usual, large).devices == [gpu]
    assert jobs.with_kernels(usual, 10**6) is usual  # by rows, both of them
    for name, value in (("implementation", "rows"), ("devices", 0), ("mesh", MESH)):
        named = replace(usual, **{name: value})
        assert jobs.with_kernels(named, large) is named
    kernels[id(gpu)] = "sweep"  # a GPU without kernels
    assert jobs.with_kernels(usual, large) is usual
    gpu.platform = "cpu"
    assert jobs.with_kernels(usual, large) is usual
    monkeypatch.setattr(by_rows, "may_have_gpu", lambda: False)
    monkeypatch.delattr(jobs, "first_device")  # no device is started to ask
    assert jobs.with_kernels(usual, large) is usual


def test_paths_of_rows_are_beside_the_table_they_belong_to(monkeypatch):
    texts, told = some_texts(6, 9), []
    table = jaxalign.align_all(texts, output="identity", mode="local")
    monkeypatch.setattr(
        jobs, "with_kernels", lambda usual, cells: told.append(cells) or usual
    )
    gate, options = Filters(min_cov=0.5), PairOptions(output="identity", mode="local")
    jobs.of_covered_rows(table, Scoring(), options, gate, "shorter")
    assert told == [table.info["cells"]] == [np.sum(np.prod(table.lengths(), axis=0))]


# Jobs that come again ---------------------------------------------------------------


def best_seconds(jobs, start):
    """The least time that calls can take, who knows all of them: each kind by rows, or
    compiled from its first call on."""
    kinds: dict = {}
    for job in jobs:
        rows, compiled = kinds.get(job.shapes, (0.0, job.price))
        kinds[job.shapes] = rows + job.rows, compiled + job.compiled
    some = start + sum(min(ways) for ways in kinds.values())
    return min(some, sum(rows for rows, _ in kinds.values()))


def calls_in_turn(jobs, start):
    """Seconds of each call in turn where no core is idle."""
    account, seconds = Account(), []
    for job in jobs:
        account, share = account.charged(job, start)
        bought = share >= 1
        price = job.price * len(job.shapes - account.bought)
        seconds.append(job.compiled + price + start if bought else job.rows)
        if bought:
            account, start = account.having(job.shapes), 0.0
    return seconds


def test_any_sequence_of_calls_takes_at_most_twice_the_best():
    """1, 3 and 30 calls of one kind and of ten, whose programs are stored or not; kinds
    of equal costs, which is the worst for what they share, and drawn ones."""
    dice, ratios = np.random.default_rng(3), []
    for count, kinds, stored, alike in product(
        (1, 3, 30, 300), (1, 10), (False, True), (False, True)
    ):
        price = amortized.LOAD if stored else amortized.COMPILE["alignment"]
        for draw in range(20):
            rows, ratio, prices = np.full((3, kinds), [[3.0], [0.1], [price]])
            if not alike:
                rows = dice.exponential(1.0, kinds) + 0.05
                ratio = dice.uniform(0.02, 1.5, kinds)
                prices = price * dice.uniform(0.3, 1.0, kinds)
            costs = [
                JobCosts(frozenset([k]), rows[k], rows[k] * ratio[k], prices[k])
                for k in range(kinds)
            ]
            order = np.arange(count) if draw % 2 else dice.integers(0, kinds, count)
            sequence = [costs[k % kinds] for k in order]
            start = amortized.START * (draw % 4 > 0)
            taken = sum(calls_in_turn(sequence, start))
            ratios.append(taken / best_seconds(sequence, start))
    assert 1.5 < max(ratios) <= 2
    assert min(ratios) == pytest.approx(1)


def test_kinds_pay_for_the_start_together():
    """What each pays beyond its own price starts JAX, which is paid once."""
    jobs = [JobCosts(frozenset([k]), 1.0, 0.0, 1.0) for k in range(4)]
    account = Account()
    for job in jobs:
        account, share = account.charged(job, start=2.0)
        assert share < 1
    shares = []
    for job in jobs[:2]:
        account, share = account.charged(job, start=2.0)
        shares.append(share)
    assert shares == [2 / 3, 1.0]
    bought = account.having(jobs[1].shapes)
    assert bought.charged(jobs[1], 0.0) == (bought, 1.0)
    assert bought.charged(jobs[3], 0.0)[1] == 1.0  # has paid its price
    slow = JobCosts(frozenset("s"), rows=1.0, compiled=1.0, price=0.1)
    assert account.charged(slow, 0.0) == (account, 0.0)


@pytest.fixture
def process(monkeypatch, tmp_path):
    """A new process by its account, in which ten calls of a small job pay for its
    programs; the function makes another one with the same folder."""
    monkeypatch.setenv("JAXALIGN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(by_rows, "NVIDIA", "/no/such/file")
    monkeypatch.setattr(engine, "WORTH_CELLS", 0)
    monkeypatch.setattr(amortized, "CALL", 0.0)
    monkeypatch.setattr(amortized, "costs_of", costs_of_three_calls)
    monkeypatch.setattr(amortized, "_has_idle_core", lambda: False)

    def begin():
        monkeypatch.setattr(amortized, "_process", amortized._Process())

    begin()
    return begin


COSTS_OF = amortized.costs_of


def costs_of_three_calls(tasks, rows):
    """The costs of a job whose programs cost as much as three calls."""
    job = COSTS_OF(tasks, 1e9)
    return job and replace(job, rows=1.0, compiled=0.1, price=2.6)


def ran(texts, count, **options):
    """Who computed each of some calls, whose tables are those of rows."""
    want = jaxalign.align_all(texts, implementation="rows", **options)
    names = []
    for _ in range(count):
        table = jaxalign.align_all(texts, **options)
        same_tables(table, want)
        about = ("ran", "seconds", "reason", "threads", "budget_bytes")
        assert {k: v for k, v in table.info.items() if k not in about} == {
            k: v for k, v in want.info.items() if k not in about
        }
        assert table.implementation == table.info["implementation"] == "rows"
        names.append(table.info["ran"])
    return names


def test_a_job_that_comes_again_is_compiled(process, tmp_path):
    """From the third call on; at once in a process that finds its programs, and what
    is said of the job but for ``ran`` stays the same."""
    texts = some_texts(4, 12, 60)
    assert ran(texts, 4) == ["rows", "rows", "sweep", "sweep"]
    assert ran(texts, 2, output="score") == ["rows", "rows"]  # a kind of its own
    process()
    assert ran(texts, 2) == ["sweep", "sweep"]
    for entry in (tmp_path / "jaxalign").glob("kind-*"):
        entry.unlink()
    process()
    assert ran(texts, 1) == ["rows"]
    for named in ({"implementation": "rows"}, {"implementation": "sweep"}):
        table = jaxalign.align_all(texts, **named)
        assert table.info["ran"] == named["implementation"]


@pytest.mark.slow
def test_few_long_sequences_come_again(process, monkeypatch):
    """They pay for scores by teams, passes back and boxes, which are all there then."""
    monkeypatch.setattr(partition, "LIVE_CELLS", 0)
    monkeypatch.setattr(partition, "TEAM_JOB_CELLS", 0)
    teams, live_ends, live_starts = [], execute._live_ends, execute._live_starts

    def ends(task, window, *options):
        teams.append(window.team)
        return live_ends(task, window, *options)

    def starts(task, pairs):
        teams.append("back")
        return live_starts(task, pairs)

    monkeypatch.setattr(execute, "_live_ends", ends)
    monkeypatch.setattr(execute, "_live_starts", starts)
    texts = some_texts(4, 12, 60)
    named = ran(texts, 9, mode="local", output="alignment")
    assert named == ["rows"] * 8 + ["sweep"] and teams == [8, "back"] * 2


def test_an_idle_core_compiles_beside_the_rows(process, monkeypatch):
    """No call waits for it."""
    monkeypatch.setattr(amortized, "_has_idle_core", lambda: True)
    go, buy = threading.Event(), amortized._buy

    def buy_later(*args):
        go.wait()
        return buy(*args)

    monkeypatch.setattr(amortized, "_buy", buy_later)
    threads = {*threading.enumerate()}
    texts = some_texts(4, 12, 60)
    assert ran(texts, 5) == ["rows"] * 5
    go.set()
    (thread,) = {*threading.enumerate()} - threads
    thread.join()
    assert ran(texts, 1) == ["sweep"]


def test_what_fails_to_compile_stays_by_rows(process, monkeypatch):
    def fail(_task):
        raise RuntimeError("no compiler")

    monkeypatch.setattr(amortized, "_compiled_plan", fail)
    assert ran(some_texts(4, 12, 60), 5) == ["rows"] * 5


def test_forked_children_and_machines_with_a_gpu_stay_by_rows(process, monkeypatch):
    texts = some_texts(4, 12, 60)
    with monkeypatch.context() as patched:
        patched.setattr(by_rows, "NVIDIA", __file__)
        assert ran(texts, 4) == ["rows"] * 4
    monkeypatch.setattr(forks, "threads_lost", False)
    before = amortized._process
    amortized._forget()
    assert not forks.threads_lost and amortized._process is not before
    amortized._process.compiling.add(frozenset())  # as a thread that starts JAX
    amortized._forget()
    assert forks.threads_lost
    assert ran(texts, 4) == ["rows"] * 4
