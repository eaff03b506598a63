"""Three sequences: every model, mode, schedule and traceback against an oracle written
apart, which is itself held to the enumeration of all alignments."""

import re
from functools import partial
from itertools import product
from types import SimpleNamespace

import enumerate_triples as brute
import jax
import numpy as np
import pytest
from draws import pairwise
from triple_cases import AFFINE, LINEAR, check, costs, oracle, related

import jaxalign
from jaxalign.model.alphabet import as_sequences
from jaxalign.model.bounds import triple_dtype
from jaxalign.model.scoring import Scoring
from jaxalign.options import TripleOptions
from jaxalign.triples import engine, plan, tracebacks
from jaxalign.triples.dp import planes
from jaxalign.triples.dp.recurrence import MODELS as MODELS3
from jaxalign.triples.dp.recurrence import FillOutputs
from jaxalign.triples.options import TripleRequest

MODELS = ("quasi-natural", "natural", "linear")
MODES = ("global", "semiglobal", "local")
CASES = list(product(MODELS, MODES))
SLOW = pytest.mark.slow


def cheap(model):
    equal = {"gap_extend": 2} if model == "linear" else {"gap_extend": 1}
    return Scoring(match=3, mismatch=-2, gap_open=2, alphabet="dna", **equal)


def brute_best(texts, scoring, model, mode):
    encode, S = scoring.alphabet.encode, scoring.scores

    def sub(x, y):
        return int(S[encode(x)[0], encode(y)[0]])

    return brute.best(texts, sub, scoring.open, scoring.extend, model, mode)


# The oracle itself -------------------------------------------------------------------


SMALLEST = (2, 2, 2), (1, 2, 2), (2, 0, 1), (0, 0, 2), (2, 1, 2)
LARGER = (3, 2, 2), (3, 3, 2), (1, 4, 1), (3, 1, 3)


@pytest.mark.parametrize(
    "seed, every", [(7, SMALLEST), pytest.param(8, LARGER, marks=SLOW)]
)
@pytest.mark.parametrize("model, mode", CASES)
def test_oracle_is_the_best_of_all_alignments(model, mode, seed, every):
    rng = np.random.default_rng(seed)
    scoring = cheap(model)
    for lengths in every:
        texts = ["".join(rng.choice(list("ACG"), n)) for n in lengths]
        want = brute_best(texts, scoring, model, mode)
        assert oracle(texts, scoring, model, mode) == want


# Scores and rows ---------------------------------------------------------------------


WAYS = pairwise(
    ("store", "split"), ("sloped", "layered"), MODELS, MODES, range(2),
    corners=[("store", "layered", "linear", "global", 0)],
)  # fmt: skip
FEW_RESIDUES = (9, 12, 7), (0, 5, 9), (0, 0, 0), (1, 1, 1), (2, 0, 0)


@pytest.mark.parametrize(
    "traceback, schedule, model, mode, seed",
    [WAYS[0], *(pytest.param(*way, marks=SLOW) for way in WAYS[1:])],
)
def test_paths_are_those_of_the_oracle(traceback, schedule, model, mode, seed):
    """The score is the oracle's; stored paths are one, whatever the schedule."""
    scoring, options = costs(model), {"gap_model": model, "mode": mode}
    for lengths in FEW_RESIDUES if seed else ((4, 13, 1), (11, 11, 11), *FEW_RESIDUES):
        texts = related(seed, lengths)
        found = jaxalign.align_three(
            *texts, scoring, traceback=traceback, schedule=schedule, **options
        )
        check(found, oracle(texts, scoring, model, mode))
        assert found.traceback == traceback
        assert found.implementation == ("layers" if schedule == "layered" else "planes")
        if traceback == "store":
            planes = jaxalign.align_three(
                *texts, scoring, traceback="store", schedule="sloped", **options
            )
            assert found.rows() == planes.rows() and found.spans == planes.spans
        bare = jaxalign.align_three(
            *texts, scoring, traceback=None, schedule=schedule, **options
        )
        assert bare.score == found.score and bare.gapped is None


CHUNKED = ("bt1", "bt2", "bt3")
SIZES = (1, 1, 1), (2, 5, None), (4, 3, 6), (40, 40, None)


@pytest.mark.slow
@pytest.mark.parametrize(
    "traceback, sizes, schedule, model, mode",
    pairwise(CHUNKED, SIZES, ("sloped", "layered"), MODELS, MODES),
)
def test_chunks_find_the_stored_path(traceback, sizes, schedule, model, mode):
    scoring = costs(model)
    options = {"gap_model": model, "mode": mode, "schedule": schedule}
    options |= dict(zip(("chunk", "height", "depth"), sizes, strict=True))
    for seed, lengths in enumerate([(11, 14, 17), (13, 9, 2), (0, 0, 3)]):
        texts = related(seed, lengths)
        want = jaxalign.align_three(
            *texts, scoring, traceback="store", gap_model=model, mode=mode
        )
        found = jaxalign.align_three(*texts, scoring, traceback=traceback, **options)
        check(found, want.score)
        assert found.rows() == want.rows()
        if seed == 0:  # a path, where an empty one has no phases
            assert {"phase 1", "phase 2", "phase 3"} <= set(found.seconds)
            assert found.bytes["faces"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("traceback", ["bt2", "bt3"])
def test_a_path_along_the_bottom_of_a_sub_chunk(traceback):
    """It stays in the sub-chunk: only a step down starts a new local path."""
    texts = "MKTAYIAKQR", "MKTAIAKQRE", "MRTAYLAR"
    want = jaxalign.align_three(*texts, LINEAR, gap_model="linear")
    sizes = {"chunk": 4, "height": 5, "gap_model": "linear"}
    found = jaxalign.align_three(*texts, LINEAR, traceback=traceback, **sizes)
    assert found.rows() == want.rows()


@pytest.mark.slow
@pytest.mark.parametrize(
    "traceback, depth", [("bt2", 8), *((x, None) for x in CHUNKED)]
)
def test_chunks_and_segments_filled_together(traceback, depth, monkeypatch):
    texts = related(4, (11, 12, 13))
    want = jaxalign.align_three(*texts, LINEAR, gap_model="linear")
    for name in ("segments_at_once", "chunks_at_once"):
        monkeypatch.setattr(f"jaxalign.triples.tracebacks.{name}", lambda grid: 3)
    sizes = {"chunk": 3, "height": 4, "depth": depth, "gap_model": "linear"}
    found = jaxalign.align_three(*texts, LINEAR, traceback=traceback, **sizes)
    assert found.rows() == want.rows()


@pytest.mark.slow
@pytest.mark.parametrize("at_once", [False, True], ids=["in turn", "at once"])
@pytest.mark.parametrize("model, mode", CASES[::4])
def test_batches_agree_with_single_triples(model, mode, at_once, monkeypatch):
    monkeypatch.setattr(tracebacks, "many_at_once", lambda: at_once)
    scoring, options = costs(model), {"gap_model": model, "mode": mode}
    triples = [related(s, n) for s, n in enumerate([(9, 12, 7), (0, 5, 9), (3, 3, 3)])]
    found = jaxalign.align_triples(triples, scoring, **options)
    bare = jaxalign.align_triples(triples, scoring, traceback=None, **options)
    for texts, one, score in zip(triples, found, bare, strict=True):
        check(one, oracle(texts, scoring, model, mode))
        assert score.score == one.score and score.gapped is None


@pytest.mark.parametrize(
    "model, mode",
    [
        ("quasi-natural", "semiglobal"),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in CASES),
    ],
)
def test_a_table_answers_as_its_triples_do(model, mode):
    scoring = Scoring(gap_open=4.5, gap_extend=4.5 if model == "linear" else 0.5)
    sizes = (9, 12, 7), (0, 5, 9), (9, 9, 8), (0, 0, 0)
    triples = [related(seed, lengths) for seed, lengths in enumerate(sizes)]
    table = jaxalign.align_triples(triples, scoring, gap_model=model, mode=mode)
    each = list(table)
    columns = table.columns()
    for name, values in each[0]._columns().items():
        wanted = [*values, *(one._columns()[name][0] for one in each[1:])]
        assert list(columns[name]) == wanted
    assert table.rows() == [one.rows() for one in each]
    for eqx in (False, True):
        assert table.cigar(eqx=eqx) == [one.cigar(eqx=eqx) for one in each]
    for scores in ("score", "score_natural"):
        assert getattr(table, scores).tolist() == [getattr(x, scores) for x in each]
    assert table.rescore().tolist() == table.score.tolist()
    assert [one.rows() for one in table[1:3]] == table.rows()[1:3]
    assert table[-2].sequences == each[2].sequences == tuple(triples[2])


def test_scores_alone_are_a_table_without_paths():
    table = jaxalign.align_triples([("MK", "MR", "M")], traceback=None)
    assert list(table.columns()) == ["a", "b", "c", "score"]
    assert table[0].gapped is None and table[0].score == table.score[0]
    for call in (table.rows, table.cigar, table.rescore):
        with pytest.raises(jaxalign.UsageError, match="only the score"):
            call()


@pytest.mark.slow
def test_devices_share_the_batches(monkeypatch):
    monkeypatch.setattr(plan, "MAX_TRIPLES", 2)
    used = []

    def batch(one, paths):
        used.append(jax.config.jax_default_device)
        return align_batch(one, paths)

    align_batch = plan.align_batch
    monkeypatch.setattr(plan, "align_batch", batch)
    triples = [related(seed, (7, 6, 5)) for seed in range(9)]
    want = jaxalign.align_triples(triples)
    used.clear()
    found = jaxalign.align_triples(triples, devices=[1, 2])
    assert found.rows() == want.rows() and len(used) == 5
    assert set(used) == set(jax.devices()[1:3])
    with pytest.raises(jaxalign.DeviceError):
        jaxalign.align_triples(triples, devices=99)


@pytest.mark.parametrize(
    "model, mode",
    [
        pytest.param(*case, marks=SLOW)
        for case in CASES
        if case[0] != "natural" or case[1] == "semiglobal"  # each compiles anew
    ],
)
def test_devices_share_one_triple(model, mode, monkeypatch):
    used, sweep = [], tracebacks.sweep

    def swept(*args, **words):
        device = jax.config.jax_default_device
        used.append((0 if device is None else device.id, words.get("layer")))
        return sweep(*args, **words)

    monkeypatch.setattr(tracebacks, "sweep", swept)
    texts, results = related(3, (14, 17, 19)), []
    words = {"gap_model": model, "mode": mode}
    for devices in (None, 2, [2, 1], [0, 1, 2]):
        used.clear()
        path, score = (
            jaxalign.align_three(
                *texts, costs(model), traceback=way, devices=devices, **words
            )
            for way in ("split", None)
        )
        check(path, oracle(texts, costs(model), model, mode))
        assert score.score == path.score
        results.append((path.rows(), path.spans, path.cells))
        named = [0] if devices is None else np.ravel(devices).tolist()
        assert {device for device, _ in used} <= set(named)
        # Half of the layers on each of two, whatever the pieces of a path are.
        layers = [device for device, layer in used if layer]
        assert len(layers) > 2 and len(set(layers)) >= min(len(named), 2)
    assert results == results[:1] * len(results)


@pytest.mark.slow
def test_a_path_without_memory_is_divided(monkeypatch):
    texts, sizes = related(2, (12, 14, 200)), []
    stored = jaxalign.align_three(*texts)

    def short(triple, region, limit=30_000):
        sizes.append(region.cells)
        if region.cells > limit:
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: no more")
        return align_stored(triple, region)

    align_stored = tracebacks.align_stored
    monkeypatch.setattr(tracebacks, "align_stored", short)
    for budget in (None, "1GiB"):
        found = jaxalign.align_three(*texts, memory_budget=budget)
        check(found, stored.score)
        assert found.traceback == "split" and max(sizes) == stored.cells
    for traceback in ("store", "split"):
        monkeypatch.setattr(tracebacks, "align_stored", partial(short, limit=0))
        with pytest.raises(jaxalign.MemoryPlanError, match="no memory for three"):
            jaxalign.align_three(*texts, traceback=traceback)


@pytest.mark.slow
def test_batches_keep_the_order_and_send_large_ones_alone():
    sizes = [(3, 4, 5), (9, 20, 30), (2, 2, 2)]
    triples = [related(seed, lengths) for seed, lengths in enumerate(sizes)]
    alone = [jaxalign.align_three(*texts).score for texts in triples]
    for budget in ("1GiB", "320KiB"):
        found = jaxalign.align_triples(triples, memory_budget=budget)
        assert [one.score for one in found] == alone
        assert [one.sequences for one in found] == [tuple(t) for t in triples]
    assert list(jaxalign.align_triples([])) == []


# Properties --------------------------------------------------------------------------


def test_bounds_of_the_score():
    texts = related(7, (12, 9, 13))
    pairs = [(0, 1), (0, 2), (1, 2)]
    best = [jaxalign.align(texts[x], texts[y]).score for x, y in pairs]
    natural = jaxalign.align_three(*texts, gap_model="natural")
    quasi = jaxalign.align_three(*texts)
    assert quasi.score <= quasi.score_natural <= natural.score <= sum(best)
    assert all(got <= most for got, most in zip(natural.pair_scores, best, strict=True))


@pytest.mark.parametrize("mode", MODES)
def test_identical_sequences(mode):
    text = "MKTAYIAKQRWN"
    alone = jaxalign.align(text, text).score
    found = jaxalign.align_three(text, text, text, mode=mode)
    assert found.rows() == (text,) * 3 and found.score == 3 * alone
    two = jaxalign.align_three(text, text, text[:7])
    assert two.rows()[0] == two.rows()[1] == text
    check(two)


@pytest.mark.parametrize("model", [*MODELS[:2], pytest.param("linear", marks=SLOW)])
def test_empty_sequences_and_single_residues(model):
    scoring = costs(model)
    open, gap = scoring.gap_open, scoring.gap_extend
    cases = {
        ("", "", ""): 0,
        ("W", "", ""): -2 * open,
        ("", "WW", ""): -2 * (open + gap),
        ("W", "W", ""): 11 - 2 * open,
        ("W", "W", "W"): 33,
    }
    for texts, want in cases.items():
        found = jaxalign.align_three(*texts, scoring, gap_model=model)
        check(found, want)
    nothing = jaxalign.align_three("", "W", "", scoring, gap_model=model, mode="local")
    assert nothing.score == 0 and nothing.rows() == ("", "", "")
    free = jaxalign.align_three(
        "", "WA", "A", scoring, gap_model=model, mode="semiglobal"
    )
    check(free, 4)


@pytest.mark.slow
def test_an_asymmetric_matrix_is_read_in_the_order_of_the_arguments():
    rng = np.random.default_rng(9)
    matrix = ("ABCD", rng.integers(-4, 6, (4, 4)))
    scoring = Scoring(matrix, gap_open=3, gap_extend=1)
    for lengths in [(9, 12, 7), (12, 7, 9), (7, 9, 12)]:
        texts = related(1, lengths, "ABCD")
        found = jaxalign.align_three(*texts, scoring)
        check(found, oracle(texts, scoring, "quasi-natural", "global"))


@pytest.mark.parametrize("skewed, count", [(False, 1), (True, 3)])
def test_a_batch_has_one_set_of_matrices(skewed, count):
    scores = np.arange(16).reshape(4, 4)
    scoring = Scoring(("ABCD", scores if skewed else scores + scores.T), 3, 1)
    lengths = (9, 12, 7), (12, 7, 9), (7, 9, 12), (12, 7, 9)
    texts = [text for some in lengths for text in related(1, some, "ABCD")]
    sequences = as_sequences(texts, scoring.alphabet)
    request = TripleRequest(
        TripleOptions(gap_model="natural", schedule="sloped"), 2**30
    )
    triples = plan.triples_of(sequences, scoring, request)
    batches = plan.batches(triples)
    assert len(batches) == count
    assert sorted(np.concatenate(batches).tolist()) == [0, 1, 2, 3]
    for triple in triples:
        for pair, matrix in zip(((0, 1), (0, 2), (1, 2)), triple.matrices, strict=True):
            x, y = (triple.order[axis] for axis in pair)
            want = scoring.scores if x < y else scoring.scores.T
            assert matrix.tolist() == want.tolist()


def test_fractional_costs_are_exact():
    scoring = Scoring(gap_open=10, gap_extend=0.5)
    texts = related(1, (9, 12, 7))
    found = jaxalign.align_three(*texts, scoring)
    check(found)
    assert 2 * found.score == oracle(texts, scoring, "quasi-natural", "global")


@pytest.mark.slow
def test_wide_scores_give_the_same_answer(monkeypatch):
    texts, options = related(1, (9, 12, 7)), {"gap_model": "linear"}
    want = jaxalign.align_three(*texts, LINEAR, traceback="split", **options)
    monkeypatch.setattr("jaxalign.model.bounds.triple_dtype", lambda *_: "int64")
    for sizes in (
        {"traceback": "split"},
        {"traceback": "bt3", "chunk": 5, "height": 6},
    ):
        found = jaxalign.align_three(*texts, LINEAR, **sizes, **options)
        check(found, want.score)


def test_range_is_proved():
    big = Scoring(match=30000, mismatch=-30000, gap_open=30000, gap_extend=1)
    assert triple_dtype([300] * 3, big) == "int32"
    assert triple_dtype([3000] * 3, big) == "int64"
    assert triple_dtype([10000] * 3, AFFINE) == "int32"


def test_states_and_moves_of_the_models():
    sizes = {m.name: (m.states, sum(map(len, m.moves))) for m in MODELS3.values()}
    assert sizes == {"linear": (1, 7), "quasi-natural": (7, 49), "natural": (13, 91)}
    assert {m.column for moves in MODELS3["linear"].moves for m in moves} == {
        *range(1, 8)
    }


@pytest.mark.parametrize("schedule", ["sloped", "layered"])
def test_a_fill_in_pieces_tells_how_far_it_is(schedule, monkeypatch):
    """Progress rises within one fill to all cells, and changes no result."""
    texts = related(3, (9, 12, 7))
    options = {"gap_model": "linear", "schedule": schedule}
    want = jaxalign.align_three(*texts, LINEAR, **options)
    monkeypatch.setattr("jaxalign.triples.engine.MIN_PIECE_CELLS", 200)
    seen = []
    found = jaxalign.align_three(
        *texts, LINEAR, progress=lambda *told: seen.append(told), **options
    )
    assert found.rows() == want.rows() and found.score == want.score
    assert found.cells == want.cells == 10 * 13 * 8
    done, totals = zip(*seen, strict=True)
    assert set(totals) == {want.cells} and done[-1] == want.cells
    assert len(done) == 5 and list(done) == sorted(set(done))


def test_the_order_of_the_cells_is_chosen_by_device(monkeypatch):
    texts = related(3, (9, 12, 7))
    assert jaxalign.plan_three(*texts)["schedule"] == "layered"
    gpu = SimpleNamespace(platform="gpu")
    monkeypatch.setattr("jaxalign.triples.options.first_device", lambda: gpu)
    assert jaxalign.plan_three(*texts)["schedule"] == "sloped"


# Plans and refusals ------------------------------------------------------------------


@pytest.mark.slow
def test_auto_stores_what_fits_and_splits_what_does_not():
    texts = related(3, (30, 33, 40))
    roomy = jaxalign.plan_three(*texts, schedule="sloped")
    tight = jaxalign.plan_three(
        *texts, schedule="sloped", memory_budget=roomy["bytes"] - 1
    )
    assert (roomy["traceback"], tight["traceback"]) == ("store", "split")
    found = jaxalign.align_three(
        *texts, schedule="sloped", memory_budget=roomy["bytes"] - 1
    )
    check(found, jaxalign.align_three(*texts).score)
    assert found.traceback == "split"


@pytest.mark.slow
@pytest.mark.parametrize("mode, reverse", [("semiglobal", True), ("local", False)])
def test_a_plan_has_room_for_what_xla_takes(mode, reverse):
    """Linear gaps, whose few planes leave the least room for the rest."""
    options = TripleOptions(gap_model="linear", mode=mode, schedule="sloped")
    texts, scoring = related(0, (40, 45, 50)), costs("linear")
    sequences = as_sequences(list(zip("abc", texts, strict=True)), scoring.alphabet)
    triple = plan.triples_of(sequences, scoring, TripleRequest(options, 2**30))[0]
    region = engine.whole(triple)
    box = engine.box_of(triple, region, engine.seed_of(triple, None), reverse=reverse)
    outputs = engine.best_outputs(triple, reverse) if mode == "local" else {"layer": 1}
    static = FillOutputs(free=mode == "semiglobal", **outputs)

    def fill(box, scoring):
        return planes.fill(triple.model, static, box, scoring, None)

    memory = jax.jit(fill).lower(box, triple.scoring).compile().memory_analysis()
    needed = memory.temp_size_in_bytes + memory.output_size_in_bytes
    needed += memory.argument_size_in_bytes
    assert needed <= engine.sweep_bytes(triple, region) < 1.5 * needed


@pytest.mark.parametrize("schedule, way", [("sloped", "split"), ("layered", "store")])
def test_a_plan_that_does_not_fit_is_refused_with_one_that_would(schedule, way):
    texts = related(3, (30, 33, 40))
    with pytest.raises(jaxalign.MemoryPlanError, match="residues each") as refused:
        jaxalign.plan_three(*texts, memory_budget="64KiB", schedule=schedule)
    fits = int(re.search(r"budget of (\d+) bytes", str(refused.value))[1])
    plan = jaxalign.plan_three(*texts, memory_budget=fits, schedule=schedule)
    assert plan["traceback"] == way and plan["bytes"] == fits


@pytest.mark.parametrize(
    "options, words",
    [
        ({"gap_model": "linear"}, "gap_open == gap_extend"),
        ({"gap_model": "cubic"}, "quasi-natural, natural, linear"),
        ({"mode": "glocal"}, "global, semiglobal, local"),
        ({"schedule": "random"}, "auto, sloped, layered"),
        ({"traceback": "bt4"}, "bt1, bt2, bt3"),
        ({"traceback": "bt1", "chunk": 0}, "1 or more"),
        ({"traceback": "split", "chunk": 9}, "bt1, bt2 and bt3"),
        ({"traceback": "bt3", "height": 2, "depth": 3}, "must be a multiple of"),
    ],
)
def test_words_are_refused(options, words):
    with pytest.raises(jaxalign.UsageError, match=words):
        jaxalign.align_three("MK", "MK", "MK", **options)


def test_chunks_that_do_not_fit_are_refused():
    texts, sizes = related(3, (30, 33, 40)), {"chunk": 200, "traceback": "bt2"}
    with pytest.raises(jaxalign.MemoryPlanError, match="with traceback bt2"):
        jaxalign.plan_three(*texts, memory_budget="1MiB", **sizes)


def test_a_gpu_fills_cubes_where_memory_holds_them(monkeypatch):
    gpu = SimpleNamespace(platform="gpu")
    monkeypatch.setattr("jaxalign.triples.tracebacks.first_device", lambda: gpu)
    texts = related(3, (60, 70, 90))

    def needed(**words):
        return jaxalign.plan_three(*texts, traceback="bt1", **words)["bytes"]

    cubes, slabs = needed(height=47, depth=47), needed(height=40)
    assert needed() == cubes > slabs
    assert needed(memory_budget=cubes) == cubes
    assert needed(memory_budget=cubes - 1) == slabs


def test_pointers_that_32_bits_cannot_name_are_refused():
    with pytest.raises(jaxalign.MemoryPlanError, match="make chunks smaller"):
        jaxalign.align_three("MK", "MK", "MK", traceback="bt1", chunk=5000)


def test_consensus_and_agreement():
    found = jaxalign.align_three("MKWI", "MKWL", "MRWV")
    assert found.agreement() == ["three", "similar", "three", "similar"]
    assert found.consensus() == "MkW+"


@pytest.mark.slow
@pytest.mark.parametrize(
    "model, traceback", [*zip(MODELS, ("split", "bt3", "bt1"), strict=True)]
)
def test_unequal_lengths_of_the_paper(model, traceback):
    texts, options = related(1, (113, 166, 364)), {"gap_model": model}
    want = jaxalign.align_three(*texts, costs(model), traceback="store", **options)
    found = jaxalign.align_three(*texts, costs(model), traceback=traceback, **options)
    check(found, want.score)
    if traceback != "split":
        assert found.rows() == want.rows()
