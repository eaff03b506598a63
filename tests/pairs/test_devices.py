"""Several devices, a mesh, parts and filters: the rows are always the same."""

import threading
import time
from dataclasses import replace

import jax
import numpy as np
import pytest
from cases import check_rows, same_tables, some_texts

import jaxalign
import kernels_pallas
from jaxalign import DeviceError, UsageError
from jaxalign.model.alphabet import as_sequences
from jaxalign.model.identity import Filters
from jaxalign.model.scoring import Scoring
from jaxalign.options import PairOptions
from jaxalign.pairs import compiled, engine, jobs, part_stream
from jaxalign.pairs.cpu import partition
from jaxalign.pairs.gpu import dispatch, launches
from jaxalign.pairs.options import make_task
from jaxalign.pairs.pair_matrix import PairMatrix
from jaxalign.runtime import pipeline

pytestmark = pytest.mark.usefixtures("compiled")

TEXTS = some_texts(1, 30)
OPTIONS = {"output": "alignment", "mode": "local"}


@pytest.fixture(scope="module")
def whole():
    table = jaxalign.align_all(TEXTS, **OPTIONS)
    check_rows(table, every=7)
    return table


# Devices -----------------------------------------------------------------------------


@pytest.mark.slow
def test_the_default_device_is_that_of_all_threads():
    """A context of ``jax.default_device`` is not inherited by threads."""
    chosen = jax.devices()[2]
    with jax.default_device(chosen):
        found = jaxalign.align_all(TEXTS[:4], **OPTIONS)
    assert found.info["devices"] == [f"{chosen.platform}:{chosen.id}"]
    assert (
        jaxalign.align_all(TEXTS[:4], **OPTIONS).info["devices"]
        != found.info["devices"]
    )


@pytest.mark.slow
@pytest.mark.parametrize("devices", ["1,3", [2], "all"])
def test_rows_do_not_depend_on_devices(whole, devices):
    """Windows of 8, so that each device has some."""
    used = set()
    table = jaxalign.align_all(
        TEXTS,
        devices=devices,
        window=8,
        busy=lambda at_work, of: used.add((at_work, of)),
        **OPTIONS,
    )
    same_tables(table, whole)
    count = {"1,3": 2, "all": 4}.get(str(devices), 1)
    assert len(table.info["device_cells"]) == count
    assert len(table.info["devices"]) == count and table.info["windows"] > 4
    assert table.info["threads"] >= count
    assert {of for _, of in used} == {count}
    assert max(at_work for at_work, _ in used) <= count
    assert (0, count) in used


def test_each_thread_stays_on_its_device(monkeypatch):
    seen = []

    def window(task, piece, scratch):
        seen.append(jax.numpy.zeros(1).devices())
        raise RuntimeError("no further")

    monkeypatch.setattr(compiled.execute, "run_window", window)
    for device in (1, 3):
        with pytest.raises(RuntimeError, match="no further"):
            jaxalign.align_all(TEXTS, devices=device, threads=1)
    assert seen == [{jax.devices()[1]}, {jax.devices()[3]}]


@pytest.mark.parametrize(
    "devices, error, text",
    [
        (4, DeviceError, "device 4: devices of cpu are numbered 0 to 3"),
        ("0,x", UsageError, "'x'"),
        ([1, 1], UsageError, "each once"),
        ([], UsageError, "one or more"),
    ],
)
def test_devices_that_are_not(devices, error, text):
    with pytest.raises(error, match=text):
        jaxalign.align_all(TEXTS, devices=devices)


# A mesh ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def mesh():
    return jax.sharding.Mesh(np.array(jax.devices()).reshape(2, 2), ("a", "b"))


@pytest.mark.slow
def test_pairs_over_a_mesh(mesh):
    """More windows than devices, and a last round with idle ones."""
    others = some_texts(2, 30)
    options = {"output": "alignment", "mode": "semiglobal"}
    want = jaxalign.align_pairs(TEXTS, others, **options)
    table = jaxalign.align_pairs(TEXTS, others, mesh=mesh, window=6, **options)
    same_tables(table, want)
    assert table.info["windows"] == 5 and len(table.info["devices"]) == 4
    assert "mesh of 4" in table.info["reason"]
    with jax.set_mesh(mesh):
        same_tables(jaxalign.align_pairs(TEXTS, others, window=6, **options), want)


def test_a_mesh_runs_one_program(mesh, monkeypatch):
    programs = []
    spmd = compiled.execute._spmd

    def watched(stacked, problem, **static):
        found = spmd(stacked, problem, **static)
        programs.append(found.score.sharding.device_set)
        return found

    monkeypatch.setattr(compiled.execute, "_spmd", watched)
    jaxalign.align_pairs(TEXTS[:8], TEXTS[8:16], mesh=mesh, window=2, output="score")
    assert programs == [set(jax.devices())]


def test_what_a_mesh_refuses(mesh):
    with pytest.raises(UsageError, match="sweep"):
        jaxalign.align_pairs(["M"], ["M"], mesh=mesh, implementation="wavefront")


# Parts -------------------------------------------------------------------------------


@pytest.mark.parametrize("include_self", [False, True])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 65, 200])
def test_parts_cover_every_row_once(n, include_self):
    lengths = np.random.default_rng(n).integers(0, 90, n)
    job = PairMatrix("all", lengths, lengths, include_self)
    for rows, cells in ((1, 10**9), (700, 10**9), (10**6, 40_000), (10**6, 10**9)):
        made = part_stream.cut(lengths, include_self, rows, cells)
        assert [part.index for part in made] == list(range(len(made)))
        edges = [part.start for part in made] + [made[-1].stop]
        assert edges[0] == 0 and edges[-1] == job.pairs
        assert edges[1:] == [part.stop for part in made]
        assert sum(part.cells for part in made) == job.cells
        for part in made:
            most = 1.5 if part is made[-1] else 1
            assert part.last - part.first <= 1 or (
                part.stop - part.start <= most * rows and part.cells <= most * cells
            )
        shares = [part_stream.shard(made, k, 3) for k in (1, 2, 3)]
        assert sorted(p.index for share in shares for p in share) == list(
            range(len(made))
        )


def test_parts_of_a_job_of_minutes_are_many():
    """So that machines end together; 64 queries at least, so few sequences are one."""
    for n, parted in ((60, 1), (1000, 9), (5000, 44), (32_071, 143)):
        made = part_stream.cut(np.full(n, 300))
        assert len(made) == parted
        assert all(part.last - part.first >= 64 for part in made) or len(made) == 1


def test_the_job_of_a_part():
    """Its rows, its cells, and which pair a row is."""
    lengths = np.arange(9) % 4 + 1
    for include_self in (False, True):
        job = PairMatrix("all", lengths[2:5], lengths[2:], include_self)
        i, j = job.index()
        pairs = [(a, b) for a in range(3) for b in range(a + 1 - include_self, 7)]
        assert list(zip(i.tolist(), j.tolist(), strict=True)) == pairs
        assert job.pairs == len(pairs)
        assert job.cells == sum(lengths[2 + a] * lengths[2 + b] for a, b in pairs)
        np.testing.assert_array_equal(job.position(i, j), np.arange(len(pairs)))
        np.testing.assert_array_equal(job.pair(np.arange(len(pairs))), (i, j))


def computed_tasks(task, some):
    """The tasks that compute the rows of some parts."""
    return [x for part in some for x in part_stream.tasks_of_part(task, part, 0)[1]]


def test_small_parts_share_their_programs():
    """As few compilations as the whole."""
    rng = np.random.default_rng(0)
    lengths = rng.lognormal(5.6, 0.6, 90).astype(int).clip(20, 900)
    sets = as_sequences([np.zeros(n, np.uint8) for n in lengths], Scoring().alphabet)
    options = PairOptions(mode="local", memory_budget=2**31, threads=2)
    task = make_task("all", sets, sets, Scoring(), options)

    def shapes(one):
        cut = [piece.content for piece in engine.plan(one).pieces if piece.group]
        sizes = ("rows", "columns", "longest", "slots", "places", "capacity")
        return {(*(getattr(w, name) for name in sizes), w.lanes) for w in cut}

    for rows in (60, 1000):
        some = part_stream.cut_of(task, rows)
        computed = computed_tasks(task, some)
        assert len(set().union(*map(shapes, computed))) <= len(shapes(task))


def test_parts_of_a_small_budget_share_their_programs():
    """Windows of one shape have backtracks of one size, whatever they need; and parts
    of sequences of one length have one shape."""
    rng = np.random.default_rng(1)
    drawn = rng.lognormal(5.6, 0.6, 300).astype(int).clip(20, 900)
    for lengths, rows, one_shape in (drawn, 6000, False), (np.full(900, 60), 9e4, True):
        sets = as_sequences(
            [np.zeros(n, np.uint8) for n in lengths], Scoring().alphabet
        )
        options = PairOptions(memory_budget=2**24, threads=2)
        task = make_task("all", sets, sets, Scoring(), options)
        sizes = set()
        for one in computed_tasks(task, part_stream.cut_of(task, int(rows))):
            blocks = partition.cut(one.job, partition.Room(one.window_budget)).blocks
            sizes |= {(w.lanes, w.columns, w.places, w.capacity) for w in blocks}
        shapes = {size[:-1] for size in sizes}
        assert len(shapes) == len(sizes) > 0
        assert not one_shape or len(shapes) == 1


def test_parts_of_a_gpu_share_their_programs():
    """Launches of all parts have the static sizes of one another."""
    rng = np.random.default_rng(0)
    lengths = rng.lognormal(5.8, 0.6, 6000).astype(int).clip(20, 5000)
    sets = as_sequences([np.zeros(n, np.uint8) for n in lengths], Scoring().alphabet)
    task = make_task(
        "all", sets, sets, Scoring(), PairOptions(mode="local", output="identity")
    )

    def shapes(one):
        made = launches.cut(one, kernels_pallas, 2**33).blocks
        return {(x.rows, x.columns, x.room, x.slots, x.places, x.shape) for x in made}

    def arrays(one):
        job = dispatch.prepare(one, kernels_pallas)
        return str([x.shape for x in jax.tree.leaves((job.sides, job.order))])

    some = part_stream.cut_of(task, 2**20)
    some = some[::4] + some[-1:]
    computed = computed_tasks(task, some)
    assert len(set().union(*map(shapes, computed))) <= len(shapes(task)) + 1
    assert len({arrays(one) for one in computed}) == 1


def test_shards_and_skipped_parts(whole):
    options = OPTIONS | {"part_rows": 100}
    by_index = {}
    for k in (1, 2):
        share = {"shard": (k, 2), "skip": [3]} | options
        by_index |= {p.index: t for p, t in jaxalign.stream_all(TEXTS, **share)}
    count = len(jobs.parts_all(whole.queries, part_rows=100))
    assert sorted(by_index) == [k for k in range(count) if k != 3]
    with pytest.raises(UsageError, match="shard 3 of 2"):
        jaxalign.stream_all(TEXTS, shard=(3, 2), **options)
    with pytest.raises(UsageError, match="part_rows"):
        jaxalign.stream_all(TEXTS, part_rows=-1)


def test_a_caller_who_leaves_stops_the_work():
    before = threading.active_count()
    stream = jaxalign.stream_all(TEXTS, part_rows=30, **OPTIONS)
    next(stream)
    stream.close()
    late = time.monotonic() + 10  # the index of a part ahead has a thread of its own
    while threading.active_count() > before and time.monotonic() < late:
        time.sleep(0.01)
    assert threading.active_count() == before


def test_only_a_few_parts_are_ahead():
    planned = []

    def works():
        for k in range(20):
            planned.append(k)
            yield pipeline.Work(k, [k])

    def worker():
        return lambda work, piece: None

    stream = pipeline.run(works(), [worker] * 2, parts_ahead=2)
    for k in range(5):
        assert next(stream).content == k
        assert max(planned) <= k + 2
    stream.close()


@pytest.mark.parametrize("where", ["plan", "piece"])
def test_a_failure_reaches_the_caller(where):
    def works():
        yield pipeline.Work("fine", [1, 2])
        if where == "plan":
            raise ValueError("no plan")
        yield pipeline.Work("bad", [1, 0])

    def worker():
        return lambda work, piece: 1 // piece

    with pytest.raises((ValueError, ZeroDivisionError)):
        list(pipeline.run(works(), [worker] * 2))


@pytest.mark.parametrize("alone", [lambda n: False, lambda n: n % 3 == 0])
def test_results_in_advance_are_in_order_and_errors_behind_them(alone):
    def items():
        yield from range(1, 9)
        raise ValueError("no item")

    found, callers = [], set()

    def tenth(number):
        if threading.current_thread() is threading.main_thread():
            callers.add(number)
        return 10 / number

    with pytest.raises(ValueError, match="no item"):
        for result in pipeline.in_advance(tenth, items(), 2, alone):
            found.append(result)
    assert found == [10 / number for number in range(1, 9)]
    assert callers == {number for number in range(1, 9) if alone(number)}
    with pytest.raises(ZeroDivisionError):
        list(pipeline.in_advance(tenth, range(3), 2, alone))


# Filters -----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("output", ["score", "alignment"])
def test_a_ratio_of_lengths_is_exact_for_every_output(output):
    table = jaxalign.align_all(TEXTS, output=output)
    m, n = table.lengths()
    with np.errstate(invalid="ignore"):
        ratios = np.minimum(m, n) / np.maximum(m, n)
    for least in (0.0, float(np.nanmedian(ratios)), 1.0):
        kept = jaxalign.align_all(TEXTS, output=output, min_length_ratio=least)
        same_tables(kept, table.filter(ratios >= least))
        zipped = jaxalign.align_pairs(TEXTS, TEXTS[::-1], output=output)
        m, n = zipped.lengths()
        want = zipped.filter((m >= least * n) & (n >= least * m) & (m + n > 0))
        options = {"output": output, "min_length_ratio": least}
        same_tables(jaxalign.align_pairs(TEXTS, TEXTS[::-1], **options), want)


@pytest.mark.parametrize(
    "ends",
    [
        {},
        pytest.param({"mode": "semiglobal"}, marks=pytest.mark.slow),
        pytest.param({"mode": "local"}, marks=pytest.mark.slow),
    ],
)
def test_the_usual_denominator_without_paths(ends):
    table = jaxalign.align_all(TEXTS, output="identity", **ends)
    usual = "shorter" if ends else "longer"
    kept = jaxalign.align_all(TEXTS, output="identity", min_identity=0.25, **ends)
    same_tables(kept, table.filter(table.identity(usual) >= 0.25))
    want = 1 - np.nan_to_num(table.identity(usual))
    distance = jaxalign.distance_matrix(TEXTS, **ends)
    np.testing.assert_array_equal(distance[np.triu_indices(len(TEXTS), 1)], want)


def test_a_coverage_that_is_always_1_is_refused():
    for ends in ({}, {"free_ends": ()}):
        with pytest.raises(UsageError, match="min_length_ratio"):
            jaxalign.align_all(["MK", "MR"], min_cov=0.5, **ends)
    one_end = {"free_ends": ["query_start"]}
    assert len(jaxalign.align_all(["MK", "MR"], min_cov=0.5, **one_end))


def test_each_filter_names_its_column():
    filters = Filters(50, 0.4, "shorter", 0.8)
    text = "score >= 50, identity_shorter >= 0.4, qcov and tcov >= 0.8"
    assert str(filters) == text and filters
    assert not Filters() and str(Filters()) == ""
    assert str(replace(filters, coverage="query")).endswith("qcov >= 0.8")
    lengths = Filters(min_length_ratio=0.8)
    assert str(lengths) == "shorter / longer length >= 0.8" and lengths


def test_thresholds_hold_exactly_on_the_host_and_never_drop_more_on_a_device():
    """Every fraction of small numbers as a threshold of every other one."""
    count, length = (x.ravel() for x in np.meshgrid(np.arange(12), np.arange(12)))
    columns = {"score": count / 10, "max_identities": count}
    narrow = {name: values.astype(np.float32) for name, values in columns.items()}
    sides = [length.astype(np.float32)] * 2
    for least in np.unique(count[length > 0] / length[length > 0]):
        if least <= 1:
            filters = Filters(None, float(least), "shorter")
            with np.errstate(all="ignore"):
                want = count / length >= least
            want &= length > 0
            found = filters.mask(columns, length, length)
            np.testing.assert_array_equal(found, want)
            device = filters.mask(narrow, *sides, jax.numpy, 1e-5)
            assert not (want & ~np.asarray(device)).any()
        filters = Filters(min_score=float(least))
        want = columns["score"] >= least
        assert (filters.mask(columns, length, length) == want).all()
        device = filters.mask(narrow, *sides, jax.numpy, 1e-5)
        assert not (want & ~np.asarray(device)).any()


@pytest.mark.parametrize(
    "options, text",
    [
        ({"min_identity": 1.5}, "fraction"),
        ({"min_cov": -0.1}, "fraction"),
        ({"min_score": np.inf}, "number"),
        ({"min_cov": 0.5, "output": "score"}, "spans"),
        ({"min_identity": 0.5, "output": "score"}, "identity"),
        ({"min_identity": 0.5, "output": "identity", "identity": "full"}, "path"),
        ({"min_cov": 0.5, "coverage": "any"}, "coverage"),
        ({"min_identity": 0.5, "identity": "any"}, "unknown identity"),
    ],
)
def test_filters_that_mean_nothing(options, text):
    with pytest.raises(UsageError, match=text):
        jaxalign.align_all(["MK", "MR"], **options)


def test_filters_are_refused_where_every_pair_is_needed():
    for verb in (jaxalign.scores_matrix, jaxalign.distance_matrix):
        with pytest.raises(UsageError, match="min_score"):
            verb(["MK", "MR"], min_score=3)
    with pytest.raises(UsageError, match="min_cov"):
        jaxalign.align("MK", "MR", min_cov=0.5)


# Plans -------------------------------------------------------------------------------


def test_the_plan_of_parts():
    sequences = as_sequences(TEXTS, jaxalign.Scoring().alphabet)
    plan = jaxalign.plan(sequences, part_rows=100, threads=1)
    some = jobs.parts_all(sequences, part_rows=100)
    assert plan["parts"] == len(some) and plan["pairs"] == some[-1].stop
    assert plan["budget_bytes"] > plan["result_bytes"]
    rows = sorted((part.stop - part.start for part in some), reverse=True)
    assert plan["result_bytes"] == 44 * sum(
        rows[: pipeline.PARTS_AHEAD + pipeline.WRITERS]
    )
    with pytest.raises(jaxalign.MemoryPlanError):
        jaxalign.plan(sequences, part_rows=100, threads=1, memory_budget=4000)


def test_an_interrupt_does_not_wait_for_a_piece(monkeypatch):
    """The threads end by themselves after what they do."""
    at_work, free, done = threading.Event(), threading.Event(), []

    def worker():
        def compute(work, piece):
            at_work.set()
            free.wait(20)
            done.append(piece)

        return compute

    class Begun:
        """The caller's queue: its reader is interrupted while a piece is computed."""

        def put(self, work):
            pass

        def get(self):
            at_work.wait(20)
            raise KeyboardInterrupt

    monkeypatch.setattr(pipeline.queue, "SimpleQueue", _after(Begun(), 1))
    with pytest.raises(KeyboardInterrupt):
        next(pipeline.run([pipeline.Work(None, [1, 2, 3])], [worker]))
    assert not done
    free.set()
    for thread in threading.enumerate():
        if thread.name.startswith("Thread-") and thread is not threading.main_thread():
            thread.join(20)
    assert done == [1]


def _after(second, count):
    """A maker of queues, of which number ``count`` is another thing."""
    made, real = [], pipeline.queue.SimpleQueue

    def make():
        made.append(None)
        return second if len(made) == count + 1 else real()

    return make
