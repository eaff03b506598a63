"""The kernels of three sequences: they lower for CUDA anywhere; in the GPU interpreter
(JAX 0.11 or newer) and, marked ``gpu``, on a device their scores are the oracle's, and
their paths are worth them."""

from dataclasses import replace
from functools import partial
from threading import Lock
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from triple_cases import check, costs, oracle, related

import jaxalign
from jaxalign.errors import CertificateError, DeviceError, UsageError
from jaxalign.model.alphabet import as_sequences
from jaxalign.model.scoring import Scoring
from jaxalign.options import TripleOptions
from jaxalign.runtime import backend
from jaxalign.triples import engine, gpu, tracebacks
from jaxalign.triples.dp import recurrence
from jaxalign.triples.dp.recurrence import COLUMN_ORDER
from jaxalign.triples.gpu import scores_of
from jaxalign.triples.options import TripleRequest
from jaxalign.triples.plan import triples_of
from jaxalign.triples.result import batch_of
from kernels_pallas.core import mosaic
from kernels_pallas.triples import api, shapes

MODELS = ("linear", "quasi-natural", "natural")
ONE_AT_A_TIME = Lock()  # all threads share the interpreter's memory
slow = pytest.mark.slow
values = pytest.mark.skipif(
    mosaic.interpreter() is None, reason="the GPU interpreter came with JAX 0.11"
)


def lowered(shape):
    """The program of a launch for CUDA, as text."""
    number, letters = shape.triples, 24
    triples = api.Triples(
        tuple(np.zeros((number, size), np.uint8) for size in api.rooms(shape)),
        np.ones((number, 3), np.int32),
        np.zeros((3, letters, letters), np.int32),
        np.ones(2, np.int32),
        np.zeros((number, shape.rule.seed_words - 1), np.int32),
        np.zeros(number, np.int32),
        np.zeros((number, 6), np.int32),
    )
    traced = api.solve_packed.trace(api.pack_triples(triples, shape), shape, letters)
    return traced.lower(lowering_platforms=("cuda",)).as_text()


ENDS = {"best": True, "floor": True}
STARTS = {"best": True}


@pytest.mark.parametrize(
    "model, options",
    [
        ("linear", {"bytes": True, "free": True}),
        ("quasi-natural", ENDS),
        *(
            pytest.param(model, options, marks=slow)
            for model in MODELS[:2]
            for options in ({}, {"bytes": True}, {"free": True}, ENDS, STARTS)
        ),
        pytest.param("quasi-natural", {"bytes": True, "free": True}, marks=slow),
        pytest.param("natural", {"bytes": True, "free": True}, marks=slow),
        pytest.param("natural", ENDS, marks=slow),
    ],
)
def test_kernels_lower_for_cuda(model, options):
    shape = api.shape_of((40, 130, 33), api.RULES[model], triples=2, **options)
    assert lowered(shape).count("mosaic_gpu") >= 1 + shape.bytes


def test_backwards_lowers_for_cuda():
    shape = api.shape_of(
        (9, 9, 9), api.RULES["quasi-natural"], backwards=True, layer=True
    )
    assert "mosaic_gpu" in lowered(shape)


class Small:
    """The kernels as they run in the interpreter, in tiles of few rows."""

    def __init__(self, **more):
        self.more = more
        self.shapes = []

    def __getattr__(self, name):
        return getattr(api, name)

    def shape_of(self, lengths, rule, **more):
        shape = api.shape_of(
            lengths, rule, rows=4, batch=4, unroll=1, early=1, plain=True, **more
        )._replace(**self.more)
        self.shapes.append(shape)
        return shape

    def solve(self, triples, s):
        with ONE_AT_A_TIME:
            answer = api.solve(triples, s, mosaic.interpreter())
            return jax.block_until_ready(answer)

    def solve_packed(self, rows, s, letters, host):
        with ONE_AT_A_TIME:  # which has one memory
            answer = api.solve_packed(rows, s, letters, False, mosaic.interpreter())
            return jax.block_until_ready(answer)


def put(monkeypatch, made):
    """Let the engine have these kernels of triples, which are no programs."""
    package = SimpleNamespace(three=made)
    monkeypatch.setattr(backend, "kernels", lambda: (package, "made here"))
    monkeypatch.setattr(gpu, "stored", lambda function, static: function)


@pytest.fixture
def interpreted(monkeypatch):
    """``align_three`` by the kernels, without a GPU."""
    small = Small()
    put(monkeypatch, small)
    monkeypatch.setattr(gpu, "_rounded", lambda count: -(-count // 16) * 16)
    monkeypatch.setattr(gpu, "rooms_for", lambda *_: [])
    return small


FEW = (1, 1, 1), (5, 6, 7)
MORE = (0, 0, 0), (0, 0, 1), (0, 5, 9), (11, 17, 36), (16, 4, 47), (9, 9, 2)


@values
@pytest.mark.parametrize(
    "model, lengths",
    [
        ("linear", FEW),
        pytest.param("linear", MORE, marks=slow),
        pytest.param("quasi-natural", FEW + MORE, marks=slow),
        pytest.param("natural", [(16, 4, 21)], marks=slow),  # each shape takes long
        # Of strips of 16 threads, in six programs
        pytest.param("quasi-natural", [(61, 130, 9), (9, 70, 12)], marks=slow),
    ],
)
def test_paths_have_the_oracles_score(model, lengths, interpreted):
    triples = [related(n, some) for n, some in enumerate(lengths)]
    found = jaxalign.align_triples(triples, costs(model), gap_model=model)
    for one, texts in zip(found, triples, strict=True):
        check(one, oracle(texts, costs(model), model, "global"))
        assert (one.implementation, one.schedule) == ("pallas", "tiles")
    assert all(shape.bytes for shape in interpreted.shapes)


@values
@slow
def test_many_triples_by_an_asymmetric_matrix(interpreted):
    matrix = ("ABCD", np.random.default_rng(9).integers(-4, 6, (4, 4)))
    scoring = Scoring(matrix, gap_open=3, gap_extend=3)
    lengths = (5, 6, 7), (6, 7, 5), (7, 5, 6), (6, 5, 7)
    triples = [related(n, some, "ABCD") for n, some in enumerate(lengths)]
    found = jaxalign.align_triples(triples, scoring, gap_model="linear")
    for one, texts in zip(found, triples, strict=True):
        check(one, oracle(texts, scoring, "linear", "global"))
        assert one.implementation == "pallas"


@values
@slow
@pytest.mark.parametrize("mode", ["semiglobal", "local"])
@pytest.mark.parametrize("model", MODELS)
def test_free_ends_and_local_paths(model, mode, interpreted):
    lengths = (0, 0, 1), (1, 1, 1), (0, 5, 9), (5, 6, 7), (16, 4, 21), (11, 17, 36)
    lengths = lengths[1:4] if model == "natural" else lengths  # a shape takes long
    triples = [related(n, some, "ACDE") for n, some in enumerate(lengths)]
    scoring = Scoring(gap_open=5, gap_extend=5 if model == "linear" else 2)
    words = {"gap_model": model, "mode": mode}
    found = jaxalign.align_triples(triples, scoring, **words)
    planes = jaxalign.align_triples(triples, scoring, implementation="planes", **words)
    scores = jaxalign.align_triples(triples, scoring, traceback=None, **words)
    for one, same, score, texts in zip(found, planes, scores, triples, strict=True):
        check(one, oracle(texts, scoring, model, mode))
        assert (one.rows(), one.spans) == (same.rows(), same.spans)
        assert (one.implementation, score.implementation) == ("pallas",) * 2
        assert score.score == one.score


def marched(texts, scoring, model, mode="global"):
    """The score by one tile as large as the face, marching along k on the host."""
    rule = api.RULES[model]
    a, b, c = (scoring.alphabet.encode(text) for text in texts)
    extend, cost = scoring.extend, scoring.open - scoring.extend

    def score(x, n, y, m):
        inside = n > 0 and m > 0
        return jnp.int32(
            scoring.scores[x[n - 1], y[m - 1]] + 2 * extend if inside else 0
        )

    rows, columns = range(len(a) + 1), range(len(b) + 1)
    minus = jnp.int32(shapes.MINUS_INFINITY)
    past = shapes.Around(
        ((minus,) * len(columns),) * rule.planes,
        ((minus,) * len(rows),) * rule.planes,
        (minus,) * len(rule.corners),
    )
    ab = [[score(a, i, b, j) for j in columns] for i in rows]
    seeds = [jnp.int32(x) for x in api.seed(0, cost, rule=rule)[: rule.states]]
    tile = (((minus,) * rule.planes,) * len(columns),) * len(rows)

    def costs_at(index, text, free):
        """D and E of a gap at an index of a text."""
        is_free = mode == "semiglobal" and index in (0, len(text))
        return jnp.int32(extend * is_free if free else cost * (not is_free))

    def ends_at(k):
        gaps, earned = (
            (
                [costs_at(i, a, free) for i in rows],
                [costs_at(j, b, free) for j in columns],
                costs_at(k, c, free),
            )
            for free in (False, True)
        )
        if mode == "local":
            count = len(rows) + len(columns) - 1
            skew = tuple(jnp.int32(2 * extend * (n + k)) for n in range(count))
            return shapes.Ends(skew=skew, floor=True)
        return shapes.Ends(gaps, earned) if mode == "semiglobal" else None

    # At cell (0, 0, 0) all gaps are free.
    if mode == "semiglobal":
        seeds = [jnp.int32(x) for x in api.seed(0, 0, rule=rule)[: rule.states]]
    marks = []
    for k in range(len(c) + 1):
        scores = (
            ab,
            [score(a, i, c, k) for i in rows],
            [score(b, j, c, k) for j in columns],
        )
        more = jnp.bool_(k == 0), seeds, jnp.int32(cost), False
        ends = ends_at(k)
        tile, _, _, found, tops = shapes.cells(
            rule, tile, past, past, scores, more, ends
        )
        if mode == "local":
            marks.append(ends.mark(tops))
    if mode == "local":
        return max(map(int, marks)) >> shapes.CELL_BITS
    return max(map(int, found[-1])) - 2 * extend * sum(map(len, (a, b, c)))


@pytest.mark.parametrize("model", MODELS[1:])
@pytest.mark.parametrize("backwards", [False, True], ids=["forwards", "backwards"])
@pytest.mark.parametrize("alike", [True, False], ids=["alike", "apart"])
def test_shared_maxima_are_those_of_all_moves(model, backwards, alike):
    """Of 49 and 91 moves, with one cost of an opening or one for each sequence."""
    rule, plain = api.RULES[model], recurrence.MODELS[model]
    assert list(rule.columns) == [moves[0].column for moves in plain.moves]
    into = (recurrence.backwards(plain) if backwards else plain).moves
    rng = np.random.default_rng(3)
    for _ in range(100):
        h = dict(enumerate(rng.integers(-50, 50, rule.states).tolist()))
        d, *apart = rng.integers(0, 20, 4).tolist()
        costs = (d,) * 3 if alike else tuple(apart)
        want = [
            max(h[move.source] - sum(costs[x] for x, opens in move.gaps if opens)
                for move in moves)
            for moves in into
        ]  # fmt: skip
        parameters = False, (), d, backwards
        found = shapes.leave(rule, h, parameters, False, None if alike else costs)
        assert list(map(int, found)) == want
    steps, _ = shapes.factored(rule, backwards, alike)
    assert sum(len(parts) - 1 for parts in steps) < (30 if rule.states == 7 else 75)


@pytest.mark.parametrize("lengths", [(3, 4, 5), (2, 0, 3), (0, 1, 1)])
@pytest.mark.parametrize("mode", ["global", "semiglobal", "local"])
@pytest.mark.parametrize("model", MODELS)
def test_the_rules_of_a_tile(model, mode, lengths):
    texts = related(sum(lengths), lengths)
    found = marched(texts, costs(model), model, mode)
    assert found == oracle(texts, costs(model), model, mode)


@values
@slow
@pytest.mark.parametrize("model", MODELS)
def test_scores_without_paths(model, interpreted):
    texts = related(3, (11, 17, 36))
    words = {"gap_model": model, "traceback": None, "implementation": "pallas"}
    found = jaxalign.align_three(*texts, costs(model), **words)
    assert found.score == oracle(texts, costs(model), model, "global")
    assert found.gapped is None and found.implementation == "pallas"


def triple_of(texts, model="quasi-natural"):
    sequences = as_sequences([(str(n), text) for n, text in enumerate(texts)],
                             costs(model).alphabet)  # fmt: skip
    request = TripleRequest(TripleOptions(gap_model=model, schedule="sloped"), 2**30)
    return triples_of(sequences, costs(model), request)[0]


@values
@slow
@pytest.mark.parametrize(
    "model, start, end, reverse",
    [
        ("quasi-natural", 0, None, False),
        ("quasi-natural", 4, None, False),
        ("quasi-natural", 3, 2, True),
        ("natural", 8, None, False),
        ("natural", 3, 7, True),
    ],
)
def test_layers_are_those_of_planes(model, start, end, reverse, monkeypatch):
    put(monkeypatch, small := Small())
    triple = triple_of(related(5, (9, 13, 18)), model)
    part = replace(engine.whole(triple), start=start, end=end)
    want = np.asarray(engine.sweep(triple, part, reverse, layer=True).layer)
    by_kernels = replace(triple, kernels=small)
    found = np.asarray(engine.sweep(by_kernels, part, reverse, layer=True).layer)
    inside = np.s_[:, 1:11, 1:15]
    reached = want[inside] > -(2**28)
    assert (found[inside] > -(2**28)).tolist() == reached.tolist()
    assert found[inside][reached].tolist() == want[inside][reached].tolist()


@values
@slow
@pytest.mark.parametrize("model", MODELS)
def test_splits_by_kernels(model, interpreted):
    texts = related(6, (7, 9, 12))
    triple = replace(triple_of(texts, model), kernels=interpreted)
    part = engine.whole(triple)
    budget = tracebacks.device_bytes(triple, part) - 1
    score, columns = tracebacks.align_split(triple, part, budget)
    assert score == oracle(texts, costs(model), model, "global")
    if model == "linear":
        devices = jax.devices()[1:3]
        shared = tracebacks.align_split(triple, part, budget, devices)
        assert (shared[0], shared[1].tolist()) == (score, columns.tolist())
    assert counted(triple, [part], [columns]) == [score]
    assert sum(shape.bytes for shape in interpreted.shapes) > 2  # two halves and plans


@values
@slow
def test_a_local_core_by_kernels(interpreted):
    texts = related(8, (12, 15, 15))
    found = jaxalign.align_three(
        *texts, costs("linear"), gap_model="linear", mode="local"
    )
    check(found, oracle(texts, costs("linear"), "linear", "local"))
    assert found.implementation == "pallas"


def counted(triple, parts, paths):
    """Scores of paths through regions of one triple, as the certificate counts them."""
    batch = batch_of(triple, parts[0])
    ends = np.array([-1 if part.end is None else part.end for part in parts])
    batch = replace(batch.take(np.zeros(len(parts), int)), end=ends)
    counts = np.array(list(map(len, paths)))
    scores = scores_of(batch, batch.letters(), np.concatenate(paths), counts)
    return None if scores is None else scores.tolist()


class Wrong(Small):
    """Kernels whose paths are all gaps."""

    def solve_packed(self, rows, s, letters, host):
        return rows

    def unpack_results(self, rows, shape):
        shared = 4 * (2 + 3 * 24**2)  # bytes of costs and scores
        la, lb, lc = rows[shared : shared + 12].view(np.int32)
        columns = np.array([[4] * la + [2] * lb + [1] * lc], np.uint8)
        ends = np.zeros((1, shape.rule.states), np.int32)
        return api.TripleResults(
            ends, None, columns, np.array([la + lb + lc], np.int32)
        )


def test_a_path_without_its_score_is_not_returned(monkeypatch):
    put(monkeypatch, Wrong())
    texts = related(4, (5, 6, 7))
    found = jaxalign.align_three(*texts)
    assert found.implementation == "layers"
    check(found, oracle(texts, costs("quasi-natural"), "quasi-natural", "global"))
    with pytest.raises(CertificateError, match="cannot store this path"):
        jaxalign.align_three(*texts, implementation="pallas")
    (many,) = jaxalign.align_triples([texts])
    assert (many.score, many.implementation) == (found.score, "planes")


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("start", [0, 4])
def test_the_certificate_counts_as_rescoring_does(model, start):
    triple = triple_of(related(9, (7, 9, 11)), model)
    start = start if model != "linear" else 0
    part = replace(engine.whole(triple), start=start)
    score, columns = tracebacks.align_stored(triple, part)
    count = partial(counted, triple)
    assert count([part] * 2, [columns] * 2) == [score] * 2
    assert count([part] * 2, [columns, columns[:-1]]) is None
    assert count([part] * 2, [columns[:0], columns]) is None
    assert count([part] * 2, [columns, columns + 8]) is None
    other = replace(part, end=(COLUMN_ORDER.index(columns[-1]) + 1) % 7)
    if model != "linear":
        assert count([other, part], [columns] * 2) is None


@pytest.mark.parametrize(
    "words, why",
    [
        ({"traceback": "bt1"}, "traceback"),
        ({"schedule": "layered"}, "schedule"),
        ({"scoring": Scoring(match=3000, mismatch=-900, alphabet="dna")}, "large"),
        (
            {"scoring": Scoring(gap_open=70, gap_extend=1), "mode": "semiglobal"},
            "large",
        ),
    ],
)
def test_what_the_kernels_do_not_know_is_refused_by_name(words, why, interpreted):
    texts = "ACGTAC", "ACTTAC", "AGGTAC"
    with pytest.raises(UsageError, match=why):
        jaxalign.plan_three(*texts, implementation="pallas", **words)
    plan = jaxalign.plan_three(*texts, **words)
    assert plan["implementation"].startswith(("planes", "layers"))


def test_the_range_of_the_kernels_is_proved():
    assert api.reach(11, 11, 1, 15_000)
    assert not api.reach(32_767, 40_000, 40_000, 2_000)
    # One residue more or less: two substitutions and two gaps, three times.
    assert api.spread(np.array([[5, -4], [-4, 5]]), 3, 3) == 6 * 11
    assert api.marks_fit(11, 15_000) and not api.marks_fit(1000, 40_000)


def test_pallas_by_name_needs_a_gpu():
    if jax.default_backend() == "cpu":
        with pytest.raises(DeviceError, match="pallas"):
            jaxalign.align_three("MK", "MR", "MK", implementation="pallas")


def test_planes_and_layers_by_name():
    found = [
        jaxalign.align_three("MKTA", "MTA", "MKT", implementation=name)
        for name in ("planes", "layers")
    ]
    assert [one.implementation for one in found] == ["planes", "layers"]
    assert [one.schedule for one in found] == ["sloped", "layered"]
    with pytest.raises(UsageError, match="sloped"):
        jaxalign.plan_three("M", "M", "M", implementation="planes", schedule="layered")
    with pytest.raises(UsageError, match="one of planes, layers, pallas"):
        jaxalign.plan_three("M", "M", "M", implementation="cuda")
    with pytest.raises(UsageError, match="layers"):
        jaxalign.align_triples([("M", "M", "M")], implementation="layers")


def test_a_plan_states_the_bytes_of_the_kernels(interpreted):
    texts = related(2, (11, 17, 36))
    plans = [jaxalign.plan_three(*texts, traceback=way) for way in ("store", None)]
    for plan, paths in zip(plans, (True, False), strict=True):
        shape = interpreted.shape_of(
            (15, 31, 47), api.RULES["quasi-natural"], bytes=paths, layer=not paths
        )
        assert plan["bytes"] == api.solve_bytes(shape)
        assert (plan["implementation"], plan["schedule"]) == ("pallas", "tiles")


# On a device -------------------------------------------------------------------------


@pytest.mark.gpu
@pytest.mark.parametrize("model", MODELS)
def test_a_device_agrees_with_planes(model):
    texts = related(1, (113, 166, 364))
    scores = [
        jaxalign.align_three(*texts, costs(model), gap_model=model, **words).score
        for words in ({"traceback": None, "implementation": "planes"}, {})
    ]
    assert scores[0] == scores[1]
    found = jaxalign.align_three(*texts, costs(model), gap_model=model)
    assert found.implementation == "pallas"
    check(found, scores[0])


@pytest.mark.gpu
def test_many_triples_on_a_device():
    rng = np.random.default_rng(1)
    triples = [related(n, rng.integers(66, 95, 3)) for n in range(60)]
    found = jaxalign.align_triples(triples, costs("linear"), gap_model="linear")
    assert {one.implementation for one in found} == {"pallas"}
    for one in found:
        check(one)
    want = jaxalign.align_triples(
        triples, costs("linear"), gap_model="linear", implementation="planes",
        traceback=None,
    )  # fmt: skip
    assert [one.score for one in found] == [one.score for one in want]
