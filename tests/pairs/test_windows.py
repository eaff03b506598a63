"""Windows, threads, memory and score types change nothing; long pairs in strips."""

import re
from bisect import bisect_left
from dataclasses import replace
from fractions import Fraction
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import oracle
import pytest
from cases import (
    SETTINGS,
    check_rescored,
    check_rows,
    codes,
    expected,
    related,
    same_tables,
    some_texts,
    text_of,
)

import jaxalign
from jaxalign import MemoryPlanError, Scoring, UsageError
from jaxalign.affine import Gaps
from jaxalign.model import bounds
from jaxalign.model.alphabet import as_sequences
from jaxalign.model.operations import run_lengths
from jaxalign.model.scoring import FREE_ENDS, resolve_ends
from jaxalign.options import PairOptions
from jaxalign.pairs import by_rows, compiled, pair_matrix
from jaxalign.pairs.cpu import execute, long_pair, partition
from jaxalign.pairs.dp.sweep import TILE, lane_fill
from jaxalign.pairs.dp.window_program import WindowProblem
from jaxalign.pairs.options import make_task
from jaxalign.pairs.pair_matrix import PairMatrix, pairs
from jaxalign.runtime.devices import budget_of, by_length, parse_bytes

pytestmark = pytest.mark.usefixtures("compiled")

TEXTS = some_texts(1, 12)
ALPHABET = Scoring().alphabet
settings = pytest.mark.parametrize("mode, free", SETTINGS, ids=["g", "s", "l", "ends"])


def run_all(texts=TEXTS, output="alignment", mode="semiglobal", **options):
    return jaxalign.align_all(texts, mode=mode, output=output, **options)


def run_zip(**options):
    options = {"mode": "local", "output": "alignment"} | options
    return jaxalign.align_pairs(TEXTS, TEXTS[::-1], **options)


# ----------------------------------------------------------- the same, however computed


@pytest.mark.parametrize(
    "mode, free, outputs",
    [
        (*SETTINGS[1], ("score", "identity", "alignment")),
        pytest.param(*SETTINGS[0], ("identity",), marks=pytest.mark.slow),
        pytest.param(*SETTINGS[2], ("identity", "alignment"), marks=pytest.mark.slow),
        pytest.param(*SETTINGS[3], ("score",), marks=pytest.mark.slow),
    ],
    ids=["s", "g", "l", "ends"],
)
def test_all_implementations(mode, free, outputs):
    options = dict(mode=mode, free_ends=free)
    texts = TEXTS[:4] + TEXTS[7:8]
    for output in outputs:
        sweep = run_all(texts, output, implementation="sweep", **options)
        other = run_all(texts, output, implementation="wavefront", **options)
        assert (sweep.implementation, other.implementation) == ("sweep", "wavefront")
        same_tables(sweep, other)
        same_tables(sweep, run_all(texts, output, implementation="rows", **options))


@pytest.mark.slow
@pytest.mark.parametrize(
    "mode, output", [("global", "alignment"), ("local", "identity")]
)
def test_all_implementations_in_int64(mode, output):
    size = 30000 if output == "identity" else 32000
    big = Scoring(("ACGT", size * np.eye(4) - 20000), 30000, 10000)
    rng = np.random.default_rng(8)
    sets = [codes(rng, n, 4) for n in (60, 64, 0, 7)]
    options = dict(scoring=big, mode=mode, output=output)
    sweep = jaxalign.align_all(sets, implementation="sweep", **options)
    for name in ("wavefront", "rows"):
        same_tables(sweep, jaxalign.align_all(sets, implementation=name, **options))


@pytest.mark.parametrize(
    "threads", [2, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 3))]
)
def test_threads(threads):
    rng = np.random.default_rng(2)
    texts = [text_of(rng, n) for n in rng.integers(0, 65, 40)]
    want = run_all(texts, "stats", threads=1)
    seen = []
    table = run_all(
        texts, "stats", threads=threads, progress=lambda *cells: seen.append(cells)
    )
    same_tables(table, want)
    cells = pair_matrix.PairMatrix(
        "all", table.queries.lengths, table.queries.lengths
    ).cells
    assert [total for _, total in seen] == [cells] * len(seen)
    done = [part for part, _ in seen]
    assert done == sorted(done) and done[-1] == cells


def test_an_error_in_progress_stops_the_run():
    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_all(TEXTS, "score", progress=stop)


@pytest.mark.slow
@pytest.mark.parametrize(
    "window, run",
    [(1, run_zip), (5, run_all), (11, run_zip), (12, run_all), (13, run_all)],
)
def test_any_window_gives_the_same(window, run):
    """Windows of 1, some, one less than all, all, and more."""
    same_tables(run(window=window), run())
    assert jaxalign.plan(TEXTS, window=window)["windows"] >= 12 / window


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 16, 17])
def test_around_the_lanes(count):
    """15, 16 and 17 targets, with the narrowest windows being 16 lanes; self pairs."""
    rng = np.random.default_rng(count)
    texts = [text_of(rng, n, "ACD") for n in rng.integers(20, 64, count)]
    texts[0] = text_of(rng, 64)
    one = run_all(texts, mode="local", include_self=True)
    assert len(one) == count * (count + 1) // 2
    check_rows(one, every=7)
    check_rescored(one)
    zipped = jaxalign.align_pairs(texts, texts[::-1], mode="local", output="alignment")
    check_rows(zipped, every=3)
    queries = ["ACDACAD" * 8, *texts[:2]]
    wide = jaxalign.scores_matrix(queries, texts, mode="local")
    assert wide.shape == (len(queries), count)
    for k, j in [(0, count - 1), (1, 0)]:
        a, b = (as_sequences([x], ALPHABET)[0] for x in (queries[k], texts[j]))
        assert wide[k, j] == oracle.score(a, b, Scoring().scores, 11, 1, "local")


def test_spans():
    """Columns from a target's first to the end of all that follow; none shares any."""
    lengths = np.array([100, 40, 33, 20, 16, 5, 0])
    lane, last = partition.pack(lengths, 2)
    first = last - partition.tiled(lengths)
    for one in (0, 1):
        mine = lane == one
        assert (first[mine][1:] == last[mine][:-1]).all() and first[mine][0] == 0
    assert partition.spans(lengths, 2).tolist() == [
        int(last[k:].max()) - int(first[k]) for k in range(len(lengths))
    ]


@pytest.mark.slow
def test_columns_in_chunks(monkeypatch):
    """Chunks of two tiles, through targets and between them: the same alignments."""
    rng = np.random.default_rng(9)
    texts = [text_of(rng, n, "ACDW") for n in (130, *rng.integers(0, 90, 12))]
    whole = run_all(texts, mode="local")
    check_rows(whole, every=9)
    monkeypatch.setattr(lane_fill, "CHUNK_CELLS", 2 * TILE * partition.LANES[1])
    execute.run_window_program.clear_cache()
    try:
        same_tables(run_all(texts, mode="local"), whole)
    finally:
        execute.run_window_program.clear_cache()


@pytest.mark.slow
def test_large_jobs_have_their_gap_costs_in_the_program(monkeypatch):
    """Local scores in blocks of cells, in chunks of two tiles: the same."""
    rng = np.random.default_rng(10)
    texts = [text_of(rng, n, "ACDW") for n in (130, *rng.integers(0, 90, 12))]
    whole = run_all(texts, mode="local")
    check_rows(whole, every=9)
    seen, run = [], execute.run_window_program
    monkeypatch.setattr("jaxalign.pairs.plan.LARGE_JOB_CELLS", 0)
    monkeypatch.setattr(execute, "eight_bit_limit", lambda *_: 0)  # 16 bits here
    monkeypatch.setattr(lane_fill, "CHUNK_CELLS", 2 * TILE * partition.LANES[1])
    monkeypatch.setattr(
        execute, "run_window_program",
        lambda *some, **more: seen.append(more["costs"]) or run(*some, **more),
    )  # fmt: skip
    run.clear_cache()
    try:
        scores = run_all(texts, "score", "local")["score"]
        np.testing.assert_array_equal(scores, whole["score"])
        run_all(texts[:3], "score", "global")
    finally:
        run.clear_cache()
    assert set(seen) == {(11, 1, 0), None}


@pytest.mark.parametrize("kind", ["all", "cross", "zip"])
def test_each_pair_is_computed_once(kind):
    """Whatever the budget: the cut covers every pair, and none twice."""
    rng = np.random.default_rng(5)
    for budget in (2**19, 2**20, 2**24, 2**30):
        for count, self_too, once in (
            (0, 0, 1),
            (1, 1, 1),
            (70, 0, 1),
            (70, 1, 0),
            (71, 1, 1),
        ):
            lengths = rng.integers(0, 400, count)
            job = pair_matrix.PairMatrix(
                kind, lengths, lengths, bool(self_too), bool(once), True, True
            )
            seen = np.zeros(job.pairs, int)
            blocks, single = partition.cut(job, partition.Room(budget))
            for some in [single, *(pair_matrix.pairs(job, block) for block in blocks)]:
                np.add.at(seen, rows_of(job, some), 1)
            assert (seen == 1).all()


@pytest.mark.parametrize("team, columns", [(2, 1024), (4, 1024), (8, 1024), (2, 64)])
def test_teams_meet_each_pair_once(team, columns, monkeypatch):
    """One block of all sequences, or several, which meet each other without teams."""
    monkeypatch.setattr(partition, "TEAM_COST", {team: 0})
    monkeypatch.setattr(partition, "TEAM_PROGRAM_CELLS", 0)
    monkeypatch.setattr(partition, "WINDOW_COLUMNS", columns)
    rng, room = np.random.default_rng(team), partition.Room(2**30)
    options, begins = PairOptions(mode="local", output="alignment"), set()
    for count in (0, 1, 2, 3, 4, 9, 70, 331, 345):
        texts = ["A" * n for n in rng.integers(0, 40, count)]
        sequences = as_sequences(texts, ALPHABET)
        task = make_task("all", sequences, sequences, Scoring(), options)
        blocks, single = partition.cut(task.job, room, teams=True)
        found = [pair for block in blocks for pair in pairs(task.job, block)]
        assert sorted(found) == [
            (i, j) for i in range(count) for j in range(i + 1, count)
        ]
        teams = {block.team for block in blocks}
        assert not single and teams <= {1, team} and (team in teams or count < 2)
        assert (1 in teams) == (columns < 1024 and count > 300)
        for block in blocks:
            if block.team == 1:
                continue
            # Each target meets the query of the team that the pair is of.
            met, begin = task.job.meets(block), task.job.rank[block.targets[0]]
            member = execute.window_inputs(task, block, met).member
            row, target = np.nonzero(met.mask)
            query = block.queries[row * team + member[row, target]]
            assert (query == met.query[met.mask]).all()
            begins.add(int(begin) % team)
    assert begins == ({0, 1} if columns < 1024 else {0})


@pytest.mark.parametrize("steps", [False, True])
def test_windows_share_their_programs(steps):
    """One size of backtrack, where the budget has room for it, and of all else one
    where no operations are kept."""
    lengths = np.random.default_rng(8).lognormal(5.8, 0.7, 900).astype(int)
    sides = lengths, lengths
    job = pair_matrix.PairMatrix("all", *sides, False, True, True, steps)
    assert job.cells > 2 * 10**10
    for budget, alike in ((2**31, True), (2**26, False)):
        blocks = partition.cut(job, partition.Room(budget)).blocks
        sizes = {(w.rows, w.columns, w.longest, w.slots, w.places) for w in blocks}
        assert (len({w.capacity for w in blocks}) == 1) == alike
        assert (len(sizes) == 1) == (alike and not steps)
        for window in blocks:
            used = int(window.last.max())
            assert window.capacity >= -(-window.m // 8) * 4 * used * window.lanes
            room = partition.Room(budget)
            assert partition.window_bytes(window, steps, room) <= budget


def rows_of(job, pairs):
    """Rows of the result that belong to some pairs."""
    sides = np.array(pairs, int).reshape(-1, 2)
    return job.position(sides[:, 0], sides[:, 1])


# ------------------------------------------------------------------------------ memory


@pytest.mark.slow
def test_small_budgets_give_the_same():
    """Fewer lanes, then single pairs by checkpoints: one table."""
    rng = np.random.default_rng(6)
    texts = [text_of(rng, n, "ACDW") for n in (250, 200, 140, 90, 30, 0)]
    for mode in ("global", "local"):
        want = run_all(texts, mode=mode)
        small = run_all(texts, mode=mode, memory_budget=2**20 + 2000, threads=1)
        assert want.info["checkpointed_pairs"] == 0
        assert small.info["checkpointed_pairs"] > 0
        same_tables(small, want)
        check_rows(want, every=6)


@pytest.mark.slow
def test_fewer_lanes():
    """70 targets in wide windows, and in windows of 16 lanes: the same."""
    rng = np.random.default_rng(7)
    texts = [text_of(rng, n, "ACDW") for n in rng.integers(0, 65, 70)]
    plans, tables = [], []
    for budget in (2**30, 2**20 + 70 * 92):
        options = dict(memory_budget=budget, threads=1, output="alignment")
        plans.append(jaxalign.plan(texts[:1], texts, **options))
        tables.append(jaxalign.align_pairs(texts[:1], texts, **options))
    assert plans[0]["windows"] < plans[1]["windows"] == 5
    assert not plans[1]["checkpointed_pairs"]
    same_tables(*tables)


@pytest.mark.parametrize(
    "output", ["score", pytest.param("alignment", marks=pytest.mark.slow)]
)
def test_a_plan_over_the_budget_is_refused(output):
    """Before it starts, with the size that would fit; and that size does."""
    options = dict(threads=1, output=output)
    with pytest.raises(MemoryPlanError, match="66 pairs: .* needed") as refused:
        jaxalign.align_all(TEXTS, memory_budget=1000, **options)
    size = int(re.search(r"budget of (\d+) bytes would fit", str(refused.value))[1])
    for budget in (size - 1, f"{size - 1} B"):
        with pytest.raises(MemoryPlanError):
            jaxalign.plan(TEXTS, memory_budget=budget, **options)
    fitting = jaxalign.align_all(TEXTS, memory_budget=size, **options)
    assert len(fitting) == 66 and issubclass(MemoryPlanError, MemoryError)
    same_tables(fitting, jaxalign.align_all(TEXTS, **options))


def test_what_kernels_do_not_take_is_filled_by_the_host(monkeypatch):
    """… where no device is named."""
    letters = "ACDEFGHIKLMNPQRSTVWYacdefghiklmnpqrstvwy"
    scores = np.where(np.eye(len(letters), dtype=bool), 4, -3)
    scoring = Scoring((letters, scores), 5, 1)
    texts = as_sequences(["ACD", "ACe", "Aa"], scoring.alphabet)
    task = make_task("all", texts, texts, scoring, PairOptions())
    monkeypatch.setattr(compiled, "choose", lambda *_: ("pallas", "GPU kernels"))
    plan = compiled.plan_compiled(task)
    assert plan["reason"].startswith("40 letters; ") and "on the host" in plan["reason"]
    assert [x.platform for x in plan.task.devices] == ["cpu"]
    assert all(piece.task is plan.task for piece in plan.pieces)
    device = jax.devices()[0]
    named = compiled.plan_compiled(replace(task, devices=(device,)))
    assert named.task.devices == (device,) and "host" not in named["reason"]


def test_a_large_result_over_the_budget_is_refused_before_it_is_cut(monkeypatch):
    """A folder of its parts is, too, and the rows of a part that would fit are said."""
    rng = np.random.default_rng(3)
    lengths = rng.integers(1, 40, 1500)
    codes, offsets = rng.integers(0, 20, lengths.sum()), np.cumsum([0, *lengths])
    some, cuts = (codes.astype(np.uint8), offsets), []
    cut = partition.cut

    def counted(*args, **options):
        cuts.append(1)
        return cut(*args, **options)

    monkeypatch.setattr(partition, "cut", counted)
    options = dict(threads=1, output="alignment")
    with pytest.raises(MemoryPlanError, match="1,124,250 pairs: ") as refused:
        jaxalign.plan(some, memory_budget="10MB", **options)
    assert not cuts
    size = int(re.search(r"budget of (\d+) bytes would fit", str(refused.value))[1])
    assert jaxalign.plan(some, memory_budget=size, **options)["windows"] and cuts
    with pytest.raises(MemoryPlanError, match="one part of .* pairs: ") as refused:
        jaxalign.plan(some, memory_budget="30MB", parts=True, **options)
    rows = int(re.search(r"part_rows=(\d+)", str(refused.value))[1])
    assert jaxalign.plan(some, memory_budget="30MB", part_rows=rows, **options)["parts"]


@pytest.mark.parametrize("implementation", [None, "sweep", "wavefront", "rows"])
def test_a_long_pair_over_the_budget_is_refused(implementation):
    """The size that is named holds the pair too."""
    long = ["A" * 6000]
    options = dict(implementation=implementation, threads=1, output="alignment")
    for budget in (1000, 2**21):
        with pytest.raises(MemoryPlanError, match="would fit") as refused:
            jaxalign.plan(long, long, memory_budget=budget, **options)
        size = int(re.search(r"budget of (\d+) bytes", str(refused.value))[1])
        assert jaxalign.plan(long, long, memory_budget=size, **options)["pairs"] == 1


def test_a_pair_too_long_for_any_window_needs_the_wavefront():
    long = ["A" * 20000]
    with pytest.raises(MemoryPlanError, match="name wavefront"):
        jaxalign.plan(
            long, long, implementation="sweep", output="alignment", memory_budget=2**33
        )
    plan = jaxalign.plan(long, long, output="alignment", memory_budget=2**33)
    assert plan["implementation"] == "wavefront" and plan["checkpointed_pairs"] == 1


def test_a_few_long_pairs_are_aligned_one_by_one():
    long, short = ["A" * 600] * 6, ["A" * 500]
    for count, found in ((1, 0), (3, 0), (6, 1)):
        assert jaxalign.plan(long[:count], long[:count])["windows"] == found
    assert jaxalign.plan(short, short)["windows"] == 1
    assert jaxalign.plan(long[:1], long[:1], implementation="sweep")["windows"] == 1
    plan = jaxalign.plan(long[:2], long[:2])
    assert plan["implementation"] == "wavefront" and "too few" in plan["reason"]
    few = [["A" * 5000, "", "A" * 4600, "MKV"], ["A" * 1000] * 8, ["A" * 1000] * 16]
    few.append(["A" * 150] * 30)
    assert [jaxalign.plan(texts)["windows"] for texts in few] == [0, 0, 1, 1]


def test_budgets_are_read():
    assert parse_bytes("2GiB") == 2**31 and parse_bytes("1.5 kB") == 1500
    assert parse_bytes(77) == 77 and parse_bytes("64mib") == 2**26
    assert budget_of() > 2**20
    for bad in ("", "2 apples", "-1", "GiB", 0, -5, "0"):
        with pytest.raises(UsageError, match="memory budget"):
            parse_bytes(bad)


# --------------------------------------------------------------------------- long pairs


def strips(a, b, scoring, mode, free, rows, paths=True):
    """align_long of two code arrays, as the row that ``expected`` gives."""
    ends = resolve_ends(mode, free)
    problem = WindowProblem(
        jnp.asarray(scoring.scores),
        Gaps(jnp.int32(scoring.open), jnp.int32(scoring.extend)),
        {end: jnp.asarray(end in ends) for end in FREE_ENDS},
        jnp.int32(scoring.alphabet.wildcard_code),
    )
    found = long_pair.align_long(a, b, problem, mode == "local", paths, rows)
    if not paths:
        return found.score
    runs, _ = run_lengths(found.steps, np.array([len(found.steps)]))
    return {
        "score": found.score,
        "query_start": found.start_i,
        "query_end": found.end_i,
        "target_start": found.start_j,
        "target_end": found.end_j,
        "columns": found.columns,
        "identities": found.identities,
        "gap_openings": found.gap_openings,
        "gaps": found.gaps,
        "operations": [("MID"[run & 15], run >> 4) for run in runs.tolist()],
    }


@settings
def test_strips(mode, free):
    """Strips of 16 rows: lengths around their edges, gaps across them, ties."""
    rng = np.random.default_rng(9)
    flat = Scoring(gap_open=2, gap_extend=0)
    for m, n in [(0, 0), (0, 9), (9, 0), (15, 40), (16, 16), (17, 40), (33, 64),
                 (64, 33), (64, 5)]:  # fmt: skip
        a, b = codes(rng, m, 3), codes(rng, n, 3)
        for scoring in (Scoring(), flat):
            ends = resolve_ends(mode, free)
            want = expected(a, b, scoring, mode, ends)
            assert strips(a, b, scoring, mode, free, 16) == want
            assert strips(a, b, scoring, mode, free, 16, False) == want["score"]


def test_a_gap_of_whole_strips():
    """Insertions of 200 residues pass strips of 16 rows without a column of target."""
    rng = np.random.default_rng(11)
    core = codes(rng, 60, 20)
    a = np.concatenate([core[:30], codes(rng, 200, 3), core[30:]])
    for mode in ("global", "local"):
        scoring = Scoring(gap_open=5, gap_extend=0)
        want = expected(a, core, scoring, mode)
        assert ("I", 200) in want["operations"] or want["gaps"] >= 100
        assert strips(a, core, scoring, mode, None, 16) == want


@pytest.mark.slow
@pytest.mark.parametrize("mode, length", [("global", 30000), ("local", 12000)])
def test_a_long_pair_in_little_memory(mode, length):
    rng = np.random.default_rng(12)
    a = codes(rng, length, 20)
    b = related(rng, a, 20).astype(np.uint8)[:length]
    options = dict(memory_budget="256MiB", output="alignment", mode=mode, threads=1)
    table = jaxalign.align_pairs([a], [b], **options)
    assert table.info["checkpointed_pairs"] == 1
    check_rescored(table)
    score = jaxalign.align_pairs([a], [b], mode=mode, output="score")
    assert score["score"][0] == table["score"][0] > 20000


# -------------------------------------------------------------------------- score types


@pytest.mark.parametrize("mode", ["global", "semiglobal", "local"])
def test_bounds_are_proofs(mode):
    """Brute force: no H, E or F of any small table leaves the range."""
    rng = np.random.default_rng(13)
    for _ in range(150):
        size = int(rng.integers(1, 5))
        low, high = np.sort(rng.integers(-9, 10, 2))
        S = rng.integers(low, high + 1, (size, size))
        open = int(rng.integers(0, 9))
        extend = int(rng.integers(0, open + 1))
        letters = "ACGTW"[:size]
        scoring = Scoring((letters, S), open, extend)
        a, b = (rng.integers(0, size, n) for n in rng.integers(0, 9, 2))
        found = bounds.score_range(len(a), len(b), scoring, mode)
        tables = oracle.tables(a, b, S, open, extend, mode)
        for values in tables:
            finite = values[values > oracle.NEG_INF // 2]
            if finite.size:
                assert found.low <= finite.min() and finite.max() <= found.high


def longest(scoring, mode, dtype="int16"):
    """The longest n x n table that is proven for a dtype."""

    def is_wider(n):
        return bounds.score_dtype(n, n, scoring, mode) != dtype

    return bisect_left(range(1, 2**15), True, key=is_wider)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["global", "local"])
def test_tryptophans_are_never_saturated(mode):
    """W against itself: the last length of int16, the first of int32, and 3,000."""
    last = longest(Scoring(), mode)
    assert 2900 < last < 2**15 // 11
    texts = ["W" * n for n in (last, last + 1, 3000)]
    for text in texts:
        table = jaxalign.align_pairs([text], [text], mode=mode, output="score")
        dtype = "int16" if len(text) == last else "int32"
        assert table.info["dtypes"] == [dtype]
        assert table["score"].tolist() == [11 * len(text)]
    assert 11 * 3000 == 33000 > np.iinfo(np.int16).max


@pytest.mark.slow
def test_a_local_pair_is_tried_in_int16(monkeypatch):
    """Where the score found proves that nothing has wrapped it is kept, paths too."""
    tried, align = [], long_pair.align_long

    def watched(query, target, problem, *some, **more):
        found = align(query, target, problem, *some, **more)
        tried.append((str(problem.gaps.open.dtype), found is None))
        return found

    monkeypatch.setattr(long_pair, "align_long", watched)
    rng = np.random.default_rng(15)
    text = text_of(rng, 3000)
    part = text[:1400] + text[1500:]
    for a, b, score in (("W" * 2990, "W" * 3000, 32890), (text, part, None)):
        options = dict(mode="local", output="alignment", implementation="wavefront")
        one = jaxalign.align_pairs([a], [b], **options)
        check_rescored(one)
        assert one["score"].dtype == np.int32
        assert one["score"][0] == score or one["score"][0] > 10_000
    assert tried == [("int16", True), ("int32", False), ("int16", False)]


@pytest.mark.slow
def test_the_low_end_of_int16():
    """The longest pair of 8 residues and many that is proven: gaps of 16,000."""

    def is_wider(n):
        return bounds.score_dtype(8, n, Scoring(), "global") != "int16"

    n = bisect_left(range(2**15), True, key=is_wider) - 1
    assert n > 16000
    table = jaxalign.align_pairs(["ARNDARND"], ["W" * n])
    assert table.info["dtypes"] == ["int16"]
    a, b = table.queries[0], table.targets[0]
    assert table["score"][0] == oracle.score(a, b, Scoring().scores, 11, 1, "global")


@pytest.mark.slow
def test_wide_gaps_in_int16():
    """Costs beyond int8 beside scores within it."""
    for scoring in (Scoring(gap_open=300, gap_extend=1), Scoring(match=200,
                    mismatch=-150, gap_open=200, gap_extend=90)):  # fmt: skip
        texts = ["ARND" * 4, "ARNDDARN" * 2, "", "DDD", "A" * 64]
        table = jaxalign.align_all(
            texts, scoring, mode="semiglobal", output="alignment"
        )
        check_rows(table)


def test_dtypes():
    plain = Scoring()
    assert bounds.score_dtype(64, 64, plain, "global") == "int16"
    assert bounds.score_dtype(2**17, 1, plain, "local") == "int16"
    assert bounds.score_dtype(64, 64, plain, "global", widest=True) == "int32"
    big = Scoring(("AC", [[32767, -32767], [0, 0]]), 32767, 32767)
    assert bounds.score_dtype(10, 10, big, "local") == "int32"
    assert bounds.score_dtype(40000, 40000, big, "global") == "int64"


@pytest.mark.slow
def test_a_score_beyond_int32():
    """A gap of 70,000 at 32,767 each: the cost does not fit int32."""
    scoring = Scoring("BLOSUM62", 32767, 32767)
    for text in ("A", ""):
        table = jaxalign.align_pairs([text], ["W" * 70000], scoring, output="score")
        gap = 70000 - len(text)
        assert table["score"].tolist() == [-3 * len(text) - 32767 * gap]


def test_zipped_pairs_of_like_sides_share_windows():
    """As the hits of a few queries do: most of the cells of a window are theirs."""
    rng = np.random.default_rng(12)
    m = np.repeat([33, 82, 195, 588], 300)
    n = rng.integers(50, 1500, len(m))
    order = partition.alike(m, n, 128)
    assert sorted(order.tolist()) == list(range(len(m)))

    def filled(order):
        parts = [order[k : k + 128] for k in range(0, len(order), 128)]
        return 128 * sum(int(m[part].max() * n[part].max()) for part in parts)

    by_cells = by_length(m * n)
    assert (m * n).sum() > 0.55 * filled(order)
    assert (m * n).sum() < 0.45 * filled(by_cells)
    assert len(partition.alike(m[:0], n[:0], 128)) == 0


@pytest.mark.slow
def test_pairs_too_few_for_a_window_are_computed_by_rows(monkeypatch):
    """Long ones by anti-diagonals, unless all of them are a small job."""
    monkeypatch.delenv("JAXALIGN_ROWS")
    rng = np.random.default_rng(13)
    texts = [text_of(rng, n) for n in (700, 690, 1500, 30)]
    sides = texts[:3], [*texts[1:3], texts[0]]
    monkeypatch.setattr(by_rows, "plan_by_rows", lambda task: None)
    options = {"output": "alignment", "mode": "local"}
    want = jaxalign.align_pairs(*sides, implementation="wavefront", **options)
    for seconds, names in ((9, "rows"), (0, "rows, wavefront")):
        monkeypatch.setattr(by_rows, "MAX_SECONDS", dict.fromkeys((0, 1), seconds))
        found = jaxalign.align_pairs(*sides, **options)
        assert found.implementation == names
        same_tables(found, want)


# Schedules, against the best of all ---------------------------------------------------


def best(cells, devices):
    """The least makespan: branch and bound over every assignment."""
    cells, least = sorted(cells, reverse=True), [sum(cells)]

    def place(k, loads):
        if max(loads) >= least[0]:
            return
        if k == len(cells):
            least[0] = max(loads)
            return
        for load in set(loads):  # devices of one load are alike
            at = loads.index(load)
            place(k + 1, [*loads[:at], load + cells[k], *loads[at + 1 :]])

    place(0, [0] * devices)
    return least[0]


def pulled(cells, devices):
    """A second witness: time runs, and whoever is idle takes the heaviest left."""
    queue, ends = sorted(cells, reverse=True), [0] * devices
    while queue:
        first = ends.index(min(ends))
        ends[first] += queue.pop(0)
    return max(ends)


def bound(devices):
    return Fraction(4, 3) - Fraction(1, 3 * devices)


def test_best_is_the_best():
    cells = [7, 5, 4, 4, 3, 2]
    assignments = product(range(3), repeat=len(cells))
    loads = ([sum(c for c, d in zip(cells, a, strict=True) if d == k)
              for k in range(3)] for a in assignments)  # fmt: skip
    assert best(cells, 3) == min(map(max, loads))


def test_within_grahams_bound():
    rng, reached = np.random.default_rng(0), 0
    for _ in range(300):
        count, devices = rng.integers(1, 11), int(rng.integers(2, 5))
        cells = (np.exp(rng.normal(3, 1, count)) + 1).astype(int).tolist()
        found = pair_matrix.schedule(cells, devices)
        assert found.makespan == pulled(cells, devices)
        least = best(cells, devices)
        assert found.least <= least <= found.makespan <= bound(devices) * least
        reached += found.makespan > least
    assert reached  # or the bound was never at stake


@pytest.mark.parametrize("devices", [2, 3, 4])
def test_the_bound_is_reached(devices):
    """Graham's family: 2m - 1, 2m - 1, 2m - 2, 2m - 2 ... m + 1, m + 1, m, m, m."""
    cells = [x for x in range(2 * devices - 1, devices, -1) for _ in range(2)]
    cells += [devices] * 3
    least = best(cells, devices)
    assert least == 3 * devices
    assert pair_matrix.schedule(cells, devices).makespan == bound(devices) * least


def test_every_window_is_taken_once():
    cells = [3, 1, 2, 2, 9]
    made = pair_matrix.schedule(cells, 2)
    assert sorted(k for taken in made.windows for k in taken) == list(range(5))
    assert made.order == (4, 0, 2, 3, 1)
    assert sum(made.loads) == sum(cells)
    assert pair_matrix.schedule([], 3).makespan == 0
    assert "0 windows" in str(pair_matrix.schedule([], 3))


@pytest.mark.parametrize("kind", ["zip", "cross", "all"])
def test_estimates_hold_the_cells_of_a_piece(kind):
    lengths = np.random.default_rng(1).integers(0, 300, 60)
    job = PairMatrix(kind, lengths, lengths, paths=False)
    total = 0
    windows, single = partition.cut(job, partition.Room(2**24))
    assert not single
    for piece in windows:
        wanted = pairs(job, piece)
        cells = sum(int(lengths[i] * lengths[j]) for i, j in wanted)
        assert cells <= pair_matrix.estimate(job, piece)
        total += cells
    assert total == job.cells


@pytest.mark.parametrize("devices", [1, 2, 3, 4])
@pytest.mark.parametrize("count", [0, 1, 2, 7, 100, 1000])
def test_lists_halve_and_end_together(count, devices):
    cells = sorted(np.random.default_rng(count).integers(50, 100, count))[::-1]
    pieces = list(enumerate(cells))
    lists = pair_matrix.lists(pieces, devices)
    assert sorted(piece for some in lists for piece in some) == pieces
    assert [len(some) for some in lists] == sorted(map(len, lists), reverse=True)
    idle = [0.0] * devices
    for some in lists:  # whoever is idle takes the next; the last device is slower
        k = int(np.argmin(idle))
        idle[k] += sum(c for _, c in some) * (1.1 if k == devices - 1 else 1)
    if count >= 100:
        assert max(idle) - min(idle) <= 1.1 * 2 * sum(c for _, c in lists[-1])
