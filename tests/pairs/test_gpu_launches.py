"""Launches for the GPU kernels, in the GPU interpreter: the table is the sweep's."""

from dataclasses import replace
from fractions import Fraction
from itertools import product
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import codes, same_tables
from draws import pairwise
from gpu_windows_cases import (
    Small,
    _drive,
    beyond_int16,
    interpreted,
    lognormal_task,
    task_of,
    times_computed,
)

import jaxalign
import kernels_pallas
import kernels_pallas as kernels
from jaxalign.database import scan
from jaxalign.model.alphabet import as_sequences
from jaxalign.model.identity import Filters
from jaxalign.model.scoring import resolve_ends
from jaxalign.model.table import join
from jaxalign.options import PairOptions
from jaxalign.pairs import compiled, engine, pair_matrix, part_stream, result
from jaxalign.pairs.gpu import device_arrays, device_job, dispatch, launches
from jaxalign.pairs.gpu.launches import Highest, Launch, cut, launch_bytes, zipped
from jaxalign.pairs.options import make_task
from jaxalign.pairs.pair_matrix import Partition, WholeJob
from jaxalign.pairs.plan import NearestOnly, Piece, Run, Task, Worker
from jaxalign.runtime.pipeline import teller

pytestmark = pytest.mark.usefixtures("compiled")


def run_all(task, monkeypatch, progress=None):
    """The result columns and paths of a task."""
    monkeypatch.setattr(launches, "QUERY_COUNTS", (4,))
    monkeypatch.setattr(launches, "TARGET_COUNTS", (8,))
    monkeypatch.setattr(launches, "LIST_SIZES", (8,))
    out = result.Output(task)
    pieces, beyond = cut(task, Small(), 2**34)
    assert not beyond
    told = teller(progress, task.job.cells)
    job = dispatch.prepare(task, Small(), kernels.interpreter())
    dispatch.run(job, pieces, out, told)
    device_job.collect([job], out)
    return out.finish()


QUICK = ("zip", "alignment", 1)
TRACKS = (("all", "alignment", 2), ("zip", "score", 2), ("cross", "score", 2))
CASES = [
    case if case == QUICK else pytest.param(*case, marks=pytest.mark.slow)
    for case in (
        *product(("all", "zip", "cross"), ("score", "alignment"), (1,)),
        *TRACKS,
    )
]


@interpreted
@pytest.mark.parametrize("kind, output, tracks", CASES)
def test_launches_give_the_sweeps_table(kind, output, tracks, monkeypatch):
    task = task_of(kind, output, tracks=tracks)
    columns, paths = run_all(task, monkeypatch)
    options = dict(scoring=task.scoring, mode=task.mode, output=output)
    if kind == "all":
        want = jaxalign.align_all(task.queries, **options)
    elif kind == "zip":
        want = jaxalign.align_pairs(task.queries, task.targets, **options)
    else:
        del options["output"]
        scores = jaxalign.scores_matrix(task.queries, task.targets, **options)
        np.testing.assert_array_equal(columns["score"], scores.ravel())
        return
    runs, offsets = (None, None) if paths is None else paths
    found = replace(want, columns=columns, operations=runs, operation_offsets=offsets)
    same_tables(found, want)


def turned_task(output: str, mode: str = "local", longest: int = 30) -> Task:
    """All pairs of a set, the first of each pair as its reverse complement."""
    rng = np.random.default_rng(4)
    scoring = jaxalign.Scoring(match=2, mismatch=-3)
    parts = [codes(rng, n, 4) for n in rng.integers(0, longest, 9)]
    parts[4] = 3 - parts[2][::-1]  # A C G T: a reverse complement
    sets = as_sequences(parts, scoring.alphabet)
    options = PairOptions(mode=mode, output=output, strand="minus")
    return make_task("all", sets, sets, scoring, options)


def turned_rows(task: Task, name: str) -> list:
    """A column of the pairs of a ``turned_task``, each aligned by rows."""
    i, j = np.triu_indices(len(task.targets), 1)
    sides = task.queries.take(i), task.targets.take(j)
    about = {"mode": task.mode, "output": task.output, "implementation": "rows"}
    return jaxalign.align_pairs(*sides, task.scoring, **about)[name].tolist()


@interpreted
@pytest.mark.parametrize("output, name", [("identity", "max_identities")])
def test_the_second_side_of_a_triangle_is_its_own(output, name, monkeypatch):
    task = turned_task(output)
    columns, _ = run_all(task, monkeypatch)
    assert columns[name].tolist() == turned_rows(task, name)


@pytest.mark.gpu
@pytest.mark.parametrize("mode", ["local", "global", "semiglobal"])
@pytest.mark.parametrize(
    "output, name", [("score",) * 2, ("identity", "max_identities")]
)
def test_reverse_complements_are_those_by_rows_on_a_device(mode, output, name):
    task = replace(turned_task(output, mode, 300), implementation="pallas")
    table = engine.run(engine.plan(task))
    assert table.implementation == "pallas"
    assert table[name].tolist() == turned_rows(task, name)


@interpreted
@pytest.mark.slow
def test_a_result_too_large_for_the_device(monkeypatch):
    monkeypatch.setattr(dispatch, "holds", lambda task: False)
    test_launches_give_the_sweeps_table("all", "alignment", 1, monkeypatch)


@interpreted
def test_exactly_the_scores_beyond_int16_run_again(monkeypatch):
    """Matches of 1,000 over 40 letters; the rest of the pairs stay as they are."""
    scoring, texts = beyond_int16()
    sets = as_sequences(texts, scoring.alphabet)
    task = Task("all", sets, sets, scoring, "local", frozenset(), "score",
                budget=2**30)  # fmt: skip
    seen, told, sizes = [], [], set()

    def spy(task, kernels, queries, targets, *rest, **more):
        made = zipped(task, kernels, queries, targets, *rest, **more)
        if more:
            seen.extend(zip(queries.tolist(), targets.tolist(), strict=True))
            sizes.update((x.rows, x.columns, x.places, x.shape) for x in made.blocks)
        return made

    monkeypatch.setattr(dispatch, "zipped", spy)
    columns, _ = run_all(task, monkeypatch, lambda *cells: told.append(cells))
    want = jaxalign.align_all(texts, scoring, mode="local", output="score")
    np.testing.assert_array_equal(columns["score"], want["score"])
    assert {frozenset(pair) for pair in seen} == {frozenset((0, 1)), frozenset((3, 4))}
    assert len(sizes) == 1  # whichever pairs they are
    assert told[-1] == (task.job.cells, task.job.cells)


def test_composition_proves_more_than_lengths():
    """3,000 residues of glycine fit int16 in global mode, of tryptophan they do not."""
    scoring = jaxalign.Scoring()
    for letter, mode, want in (
        ("G", "global", ("int16", True)),
        ("W", "global", ("int32", True)),
        ("G", "local", ("int16", True)),
        ("W", "local", ("int16", False)),
    ):
        sets = as_sequences([letter * 3000] * 2, scoring.alphabet)
        free = resolve_ends(mode, None)
        task = Task("all", sets, sets, scoring, mode, free, "score", budget=2**30)
        ((piece,), _) = cut(task, kernels, 2**34)
        assert (piece.dtype, piece.proven) == want
    assert Highest(task).queries.tolist() == [33000, 33000]


@pytest.mark.parametrize("output", ["score", "identity"])
def test_bounds_of_two_tracks_add_up(output, monkeypatch):
    monkeypatch.setattr(launches, "SAFE_SCORE", 1)
    task = task_of("cross", output, tracks=2)
    scoring, factor = task.scoring, 2**13 if output == "identity" else 1
    match = output == "identity"
    ends, *costs = launches.extremes(task)
    assert ends.tolist() == [factor * scoring.lowest, factor * scoring.highest + match]
    assert costs == [10 * factor, factor]
    high = Highest(task)
    for side, bounds in ((task.queries, high.queries), (task.targets, high.targets)):
        for k, bound in enumerate(bounds.tolist()):
            letters, states = side.track(0)[k], side.track(1)[k]
            best = sum(factor * scoring.scores[0][a].max() + match for a in letters)
            assert bound == best + sum(
                factor * scoring.scores[1][a].max() for a in states
            )


def test_launches_have_the_letters_of_two_tracks():
    task = task_of("all", "score", tracks=2)
    assert launches.takes(task)
    blocks = cut(task, kernels, 2**30).blocks
    assert {
        (x.shape.tracks, x.shape.first_letters, x.shape.columns) for x in blocks
    } == {(2, 24, 2)}
    alphabet = replace(task.scoring.alphabet, states=SimpleNamespace(size=31))
    scoring = SimpleNamespace(alphabet=alphabet, by_position=False, gap_costs=None)
    many = SimpleNamespace(paths=False, job=task.job, scoring=scoring)
    assert launches.letters_of(many) == 31 and not launches.takes(many)


@pytest.mark.parametrize("cost, dtype", ((100, "int16"), (32700, "int32")))
def test_costs_near_the_range_are_not_left_to_int16(cost, dtype):
    scoring = jaxalign.Scoring(match=5, mismatch=-4, gap_open=cost, gap_extend=cost)
    sets = as_sequences(["ACGT" * 10] * 2, scoring.alphabet)
    task = Task("all", sets, sets, scoring, "local", frozenset(), "score",
                budget=2**30)  # fmt: skip
    assert [x.dtype for x in cut(task, kernels, 2**34).blocks] == [dtype]
    assert not kernels.detects(scoring.scores, 10, 32767)
    assert not kernels.detects([[1, -32767]], 10, 1)


@pytest.mark.parametrize("cost, dtype", ((100, "int16"), (2200, "int32")))
def test_gap_costs_by_position_are_in_the_range_twice(cost, dtype):
    """60 matches of 500; the gap that leaves out two of the last three is stored with
    the costs of opening it on top."""
    gaps = np.where(np.arange(60) == 57, 1.0, cost)
    alphabet = jaxalign.Scoring().alphabet
    scores = 500 * np.eye(alphabet.size, dtype=int)[np.arange(60) % 20]
    costs = {"gap_open": (gaps, gaps), "gap_extend": (0 * gaps, 0 * gaps)}
    scoring = jaxalign.Scoring(jaxalign.Profile("", scores, alphabet, **costs))
    sets = [as_sequences([np.arange(n) % 20], alphabet) for n in (60, 60)]
    task = Task("cross", *sets, scoring, "local", frozenset(), "score",
                top=1, budget=2**30)  # fmt: skip
    assert launches.takes(task) and not launches.takes(replace(task, kind="zip"))
    assert not launches.takes(replace(task, output="alignment"))
    assert [x.dtype for x in cut(task, kernels, 2**34).blocks] == [dtype]


@pytest.mark.parametrize("kind", ["all", "zip", "cross"])
@pytest.mark.parametrize("output", ["score", "alignment"])
def test_window_bounds_a_launch(kind, output):
    task = replace(task_of(kind, output, count=30), window=7)
    launches, beyond = cut(task, kernels, 2**34)
    assert not beyond
    for piece in launches:
        assert max(len(piece.queries), len(piece.targets), piece.places) <= 7


def test_paths_of_a_launch_and_of_single_pairs_are_put_together():
    task = task_of("all", "alignment", count=3)
    out = result.Output(task)
    runs = np.array([16, 32, 48], np.uint32)
    out.take({}, (runs, np.array([1, 0, 2])))
    alone = np.array([64], np.uint32), np.array([1])
    out.put(result.Rows(np.array([1]), {"score": np.array([5])}, alone, 0))
    columns, (found, offsets) = out.finish()
    assert found.tolist() == [16, 64, 32, 48] and offsets.tolist() == [0, 1, 2, 4]
    assert columns["score"].tolist() == [0, 5, 0]


@pytest.fixture
def on_cpu():
    """A function that runs another one on the CPU, host threads included."""

    def run(call):
        jax.config.update("jax_default_device", jax.devices("cpu")[0])
        try:
            return call()
        finally:
            jax.config.update("jax_default_device", None)

    return run


@pytest.mark.gpu
@pytest.mark.parametrize(
    "mode, output",
    [*product(("local", "global", "semiglobal"), ("score", "alignment"))]
    + [("local", "identity")],
)
def test_tables_are_the_sweeps_on_a_device(mode, output, on_cpu):
    rng = np.random.default_rng(7)
    parts = [codes(rng, n, 20) for n in rng.integers(0, 384, 70)]
    parts[3] = parts[30][: len(parts[30]) // 2]
    if (mode, output) == ("local", "score"):  # other heights of strips, and int32
        parts += [codes(rng, n, 20) for n in (500, 900, 2000)]
        parts += [np.full(n, 17, np.uint8) for n in (3000, 2990, 40)]  # tryptophan
    sets = as_sequences(parts, jaxalign.Scoring().alphabet)
    options = dict(mode=mode, output=output)
    found = jaxalign.align_all(sets, implementation="pallas", **options)
    assert found.implementation == "pallas"
    options["implementation"] = "sweep"
    same_tables(found, on_cpu(lambda: jaxalign.align_all(sets, **options)))


@pytest.mark.gpu
@pytest.mark.parametrize(
    "gaps, longest, ends",
    pairwise(
        ((11, 1), (10, 0.5), (4, 4)),
        (90, 190, 380, 640, 1500),
        (("global", None), ("global", ["query_end", "target_end"]), ("local", None)),
    ),
)
def test_paths_of_lists_are_the_sweeps_on_a_device(gaps, longest, ends, on_cpu):
    """A thousand pairs of each shape of strips: all of their rows, not a sample."""
    mode, free = ends
    rng = np.random.default_rng(longest)
    m, n = np.exp(rng.uniform(0, np.log(longest), (2, 1000))).astype(int)
    m[:2] = n[:2] = longest
    alphabet = jaxalign.Scoring().alphabet
    sides = [as_sequences([codes(rng, k, 20) for k in x], alphabet) for x in (m, n)]
    options = dict(mode=mode, free_ends=free, output="alignment")
    scoring = jaxalign.Scoring("BLOSUM62", *gaps)
    found = jaxalign.align_pairs(*sides, scoring, implementation="pallas", **options)
    options["implementation"] = "sweep"
    want = on_cpu(lambda: jaxalign.align_pairs(*sides, scoring, **options))
    same_tables(found, want)


@interpreted
@pytest.mark.slow
def test_the_engine_drives_launches(monkeypatch):
    """Several devices and a filter: the rows are the sweep's."""
    _drive(monkeypatch)
    task = task_of("all", "alignment", "local", count=8)
    options = {"mode": "local", "output": "alignment", "min_score": 5}
    found = jaxalign.align_all(task.queries, devices=[0, 1], **options)
    assert found.implementation == "pallas"
    want = jaxalign.align_all(task.queries, implementation="sweep", **options)
    assert 0 < len(found) == len(want)
    same_tables(found, want)


@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("pairs", [0, 1])
def test_rows_are_held_where_no_other_thread_has_launches(alone, pairs, monkeypatch):
    given, task = [], task_of("all", "score", count=2)
    monkeypatch.setattr(dispatch, "run", lambda *args: given.append(args[-1]))
    monkeypatch.setattr(dispatch, "job_of", lambda *_: None)
    monkeypatch.setattr(dispatch, "compile_all", lambda *_: None)
    pair = SimpleNamespace(cells=1)
    monkeypatch.setattr(compiled.execute, "run_pair", lambda *_: pair)
    output = SimpleNamespace(put=lambda rows: given.append(rows))
    launches = Piece(task, [], 1, dispatch.compute, None, dispatch.GROUP)
    single = Piece(task, (0, 1), 1, compiled.execute.compute_pair, None)
    plan = SimpleNamespace(task=task, pieces=[launches, *[single] * pairs])
    for piece in plan.pieces:
        piece.compute(Run(plan, output), Worker(only=alone), piece)
    assert given == [alone or not pairs, *[pair] * pairs]


def test_launches_compile_for_their_device_and_once(monkeypatch):
    """In threads JAX's default device is another one."""
    device, seen = jax.devices()[1], []

    def prepare(*_, **__):
        seen.append(jax.config.jax_default_device)

    def compile_all(job, launches):
        for future in dispatch.compile_all(job, launches):
            future.result()

    monkeypatch.setattr(device_arrays, "launched", SimpleNamespace(prepare=prepare))
    for name in ("_arrays", "_form"):
        monkeypatch.setattr(dispatch, name, lambda *_: None)
    one, task = np.zeros(1, int), SimpleNamespace(paths=False, top=None, devices=())
    launches = [Launch(one, one, rows=rows) for rows in (32, 64, 32)]
    for chosen in (device, None):  # none: where JAX's default is, it compiles for none
        job = SimpleNamespace(compiled=set(), interpret=None, problem=None, task=task,
                              device=device)  # fmt: skip
        for _ in range(2):
            with jax.default_device(chosen):
                compile_all(job, launches)
    assert seen == [device] * 2 + [None] * 2
    wide = [Launch(one, one, rows=128)]
    monkeypatch.setattr(dispatch, "in_int32", lambda *_: Partition(wide, []))
    for _ in range(2):
        compile_all(job, [*launches, replace(launches[0], rows=96, proven=False)])
        monkeypatch.setattr(dispatch, "in_int32", None)  # asked for once
    assert len(seen) == 6


@interpreted
@pytest.mark.slow
@pytest.mark.parametrize(
    "output, devices, scoring",
    [("score", [0, 1], "asymmetric"), ("alignment", None, None)],
)
def test_parts_by_launches(output, devices, scoring, monkeypatch):
    """Parts whose queries are few meet each other twice and have the static sizes of
    the whole; the last ones are two tasks, or one of their own."""
    sets = task_of("all", output, "local", count=12).queries
    scores = jaxalign.Scoring().scores.copy()
    scores[0, 1] += 1
    letters = sets.alphabet.letters
    scoring = scoring and jaxalign.Scoring((letters, scores), 11, 1)
    options = {"mode": "local", "output": output}
    want = jaxalign.align_all(sets, scoring, **options)
    monkeypatch.setattr(part_stream, "MIN_TARGET_RATIO", 3)
    _drive(monkeypatch)
    options |= {"part_rows": 15, "devices": devices}
    found = list(jaxalign.stream_all(sets, scoring, **options))
    assert len(found) > 3 and all("pallas" in x.implementation for _, x in found)
    same_tables(join((table for _, table in found), {}), want)


@interpreted
@pytest.mark.slow
@pytest.mark.parametrize("count, options", [(3, {}), (9, {}), (9, {"devices": [0, 1]})])
def test_a_search_by_launches(count, options, monkeypatch):
    """Few queries and many, one device and two: the hits are those of the sweep, and
    scores are still on the device when the best are picked."""
    task, seen = task_of("cross", "score", "local"), []
    queries = task.queries.take(range(count))
    want = jaxalign.search(queries, task.targets, top=4)
    _drive(monkeypatch)
    add = scan.add_hits
    monkeypatch.setattr(scan, "add_hits", lambda *x: seen.append(x[1]) or add(*x))
    found = jaxalign.search(queries, task.targets, top=4, **options)
    assert "pallas" in found.implementation and len(found) == len(want) > 9
    assert len(seen) > 1 and all(isinstance(x, jax.Array) for x in seen)
    same_tables(found, want)


def test_an_empty_slot_of_a_search_takes_no_strip():
    """Few queries have as many slots as many, so that they are one program."""
    task = replace(task_of("cross", "score", "local", count=3), top=4)
    ((piece, *_), _) = cut(task, kernels, 2**34)
    stacks = launches.stacks_of(task, kernels, piece)
    assert piece.slots == launches.QUERY_COUNTS[0]
    assert set(np.unique(stacks.query).tolist()) == {-1, 0, 1, 2}
    rows = (stacks.query >= 0).sum() * piece.shape.rows
    letters = int(task.queries.lengths.sum())
    assert letters <= rows < letters + 3 * piece.shape.rows


@pytest.mark.parametrize(
    "kind, output",
    [
        *((kind, "score") for kind in ("all", "zip", "cross")),
        pytest.param("zip", "alignment", marks=pytest.mark.slow),
        pytest.param("all", "identity", marks=pytest.mark.slow),
    ],
)
def test_every_pair_comes_once(kind, output):
    """Whatever the budget; each launch within it, in few compilations."""
    task = lognormal_task(kind, output, "local")
    lengths = task.queries.lengths
    for budget in (2**22, 2**28, 2**35):
        sizes, cells = set(), 0
        launches, beyond = cut(task, kernels, budget)
        seen = times_computed(task, launches)
        for pair in beyond:
            np.add.at(seen, task.job.position(*pair), 1)
            cells += int(lengths[pair[0]] * lengths[pair[1]])
        for piece in launches:
            cells += pair_matrix.cells(task.job, piece)
            assert launch_bytes(task, kernels, piece) <= budget
            assert len(piece.queries) <= piece.slots or piece.zipped
            assert len(piece.targets) <= piece.places
            if piece.room:
                rows = kernels.rows_of(lengths[piece.targets], piece.shape)
                assert rows[-1] <= piece.room
            if output == "alignment":
                rooms = piece.places if kind == "zip" else piece.slots, piece.places
                of_sides = zip((piece.queries, piece.targets), rooms, strict=True)
                sides = (np.pad(lengths[x], (0, n - len(x))) for x, n in of_sides)
                assert kernels.records_of(*sides, piece.shape)[-1] <= piece.records
            shape = piece.rows, piece.columns, piece.room, piece.slots, piece.places
            sizes.add((*shape, piece.records, piece.shape))
        assert (seen == 1).all() and cells == task.job.cells
    assert len(sizes) <= 9


def test_rows_are_chosen_right_behind_their_launch(monkeypatch):
    """… and not behind those that are issued before it is looked at."""
    seen, job = [], SimpleNamespace(task=SimpleNamespace(filtered=True), result=None)
    monkeypatch.setattr(dispatch, "_within", lambda _, launch: [launch])
    monkeypatch.setattr(dispatch, "launch_ids", lambda _: [])
    monkeypatch.setattr(dispatch, "issue", lambda *_: seen.append("launch"))
    monkeypatch.setattr(device_arrays, "passing_of", lambda *_: seen.append("rows"))
    monkeypatch.setattr(dispatch, "_look", lambda *_: seen.append("look") or [])
    dispatch._all(job, [SimpleNamespace(zipped=False)] * 4)
    both = ["launch", "rows"]
    assert seen == both * 3 + ["look", *both] + ["look"] * 3


@pytest.mark.parametrize("output", ["stats", "identity"])
def test_what_a_filter_drops_stays_on_the_device(output):
    """A launch's findings as they lie on the device, made from the sweep's table."""
    filters = {"stats": Filters(5, 0.2, "full", 0.3), "identity": Filters(-30, 0.2)}
    chosen = replace(filters[output], identity="full" if output == "stats" else "mean")
    task = replace(task_of("all", output, count=20), filters=chosen)
    want = jaxalign.align_all(task.queries, mode=task.mode, output=output)
    ids, row, found = as_found(task, want)
    job = SimpleNamespace(
        task=task, sides=(device_job.load_sequences(task.queries),) * 2
    )
    at, columns = device_arrays.columns_to_host(job, ids, False, found)
    mask = chosen.mask(want.columns, *want.lengths())
    assert 0 < mask.sum() == len(at) < len(want)
    out = result.Output(task)
    out.put(result.Rows(row.reshape(-1)[at], columns, None, 0))
    for name, values in out.finish()[0].items():
        np.testing.assert_array_equal(values, want[name][mask], err_msg=name)


def as_found(task, table):
    """(ids of both sides, rows of the table, findings); the grid has more."""
    order = np.argsort(-task.queries.lengths, kind="stable").astype(np.int32)
    ids = np.append(order, [-1, -1]).astype(np.int32)
    i, j = np.broadcast_arrays(ids[:, None], ids[None, :])
    wanted = np.triu(np.ones(i.shape, bool), 1) & (i >= 0) & (j >= 0)
    row = task.job.position(np.minimum(i, j), np.maximum(i, j))
    row = np.where(wanted, row, 0)
    names = [name for name in table.columns if name not in ("query", "target")]
    columns = {name: jnp.asarray(table[name][row]) for name in names}
    ids = jnp.asarray(ids)
    nothing = (None,) * 2
    found = device_arrays.LaunchResult(
        columns, None, jnp.asarray(wanted), *nothing, None
    )
    return (ids, ids), row, found


# The nearest pairs of a launch --------------------------------------------------------


BARS = np.array([-1, 0, 3 / 8, 3 / 8, 1])


def lengths_of(rng, long):
    """Of queries and of targets; some are 0, and many are alike. The products of those
    of long ones and of matches need more than 31 bits."""
    m, n = rng.integers(0, 9, len(BARS)), rng.integers(0, 9, 150)
    if long:
        m, n[120:] = rng.integers(8000, 8191, len(m)), rng.integers(0, 280_000, 30)
    return m, np.append(n, [0, 0])


def launch_of(lengths, count, filters, nearest):
    """(job, ids, result) of a launch of everything, longest first, as a device has
    it."""
    alphabet, scoring = jaxalign.Scoring().alphabet, jaxalign.Scoring()
    sets = [as_sequences([np.zeros(n, np.uint8) for n in x], alphabet) for x in lengths]
    kind = "global", frozenset(), "identity"
    task = Task("cross", *sets, scoring, *kind, filters=filters, nearest=nearest)
    job = SimpleNamespace(task=task, sides=[device_job.load_sequences(x) for x in sets])
    order = [np.argsort(-x, kind="stable") for x in lengths]
    ids = [np.append(x, [-1, -1]).astype(np.int32) for x in order]
    i, j = np.broadcast_arrays(ids[0][:, None], ids[1][None, :])
    grid = {"score": i * 0, "max_identities": count[i, j].astype(np.int32)}
    grid = {name: jnp.asarray(x) for name, x in grid.items()}
    wanted = jnp.asarray((i >= 0) & (j >= 0))
    nothing = (None,) * 3
    return job, ids, device_arrays.LaunchResult(grid, None, wanted, *nothing)


def nearest_of(m, targets, counts, bar, kind, ratio):
    """The targets of a query that reach a bar, the nearest first."""
    reaching = []
    for k, (n, count) in enumerate(zip(targets, counts, strict=True)):
        below = {"longer": max(m, n), "shorter": min(m, n), "mean": Fraction(m + n, 2)}
        low, high = sorted((m, n))
        if below[kind] and (not ratio or Fraction(low, high) >= Fraction(ratio)):
            identity = Fraction(count) / below[kind]
            if identity >= Fraction(bar):
                reaching.append((-identity, k))
    return [k for _, k in sorted(reaching)]


SLOW = pytest.mark.slow
KINDS = (
    ("longer", 0.01),
    pytest.param("shorter", 0, marks=SLOW),
    pytest.param("mean", 0, marks=SLOW),
)


@pytest.mark.parametrize("top", [1, 3, 300])
@pytest.mark.parametrize("kind, ratio", KINDS)
@pytest.mark.parametrize("long", [False, True], ids=["short", "long"])
def test_the_nearest_of_a_launch_come(long, kind, ratio, top):
    """… and few others: of equals the first, and what no float tells apart."""
    rng = np.random.default_rng(top)
    m, n = lengths_of(rng, long)
    least = np.minimum(m[:, None], n[None, :])
    count = least - rng.integers(0, 3, least.shape) * rng.integers(0, 2, least.shape)
    count = np.maximum(count, 0)
    filters = Filters(None, 0.0, kind, min_length_ratio=ratio or None)
    nearest = NearestOnly(top, BARS)
    job, ids, result = launch_of((m, n), count, filters, nearest)
    at, columns = device_arrays.columns_to_host(job, ids, False, result)
    row, column = np.divmod(at, len(ids[1]))
    query, target = ids[0][row], ids[1][column]
    assert columns["max_identities"].tolist() == count[query, target].tolist()
    assert len({*zip(query, target, strict=True)}) == len(at)
    for i, bar in enumerate(BARS.tolist()):
        sides = int(m[i]), n.tolist(), count[i].tolist()
        every = nearest_of(*sides, bar, kind, ratio)
        coming = set(target[query == i].tolist())
        assert {*every[:top]} <= coming <= {*every}
        if top <= device_arrays.NEAREST_BINS:
            # Two empty ones begin where the one after them does.
            assert len(coming) <= top * -(-len(n) // device_arrays.NEAREST_BINS) + 2


def test_of_thousands_of_equals_few_come():
    """Copies, and sequences that have nothing in common."""
    m, n = np.full(len(BARS), 9), np.full(3000, 9)
    for count in (0, 9):
        counts = np.full((len(m), len(n)), count)
        for top in (1, 3):
            nearest = NearestOnly(top, np.zeros(len(m)))
            filters = Filters(None, 0.0, "longer")
            job, ids, result = launch_of((m, n), counts, filters, nearest)
            at, _ = device_arrays.columns_to_host(job, ids, False, result)
            row, column = np.divmod(at, len(ids[1]))
            assert np.bincount(row).tolist() == [top] * len(m)
            assert {*ids[1][column].tolist()} == {*range(top)}, "the first of them"


def test_launches_are_large_though_targets_are_long():
    """A million pairs, which take a GPU longer than its host."""
    scoring = jaxalign.Scoring()
    sets = [
        as_sequences([np.zeros(n, np.uint8) for n in x], scoring.alphabet)
        for x in ([200] * 64, [3000, *[9] * 20_000])
    ]
    kind = "global", frozenset(), "identity"
    whole = WholeJob((210, 3000), 10**13, 20_001, 2**24)
    nearest = NearestOnly(1, np.zeros(64))
    task = Task("cross", *sets, scoring, *kind, whole=whole, nearest=nearest)
    launches, beyond = cut(task, kernels_pallas, device_job.LAUNCH_BYTES)
    assert launches[0].pairs == 2**20 and not beyond
