"""The same call has the same programs, which are few: on a GPU by a list that is drawn
without one, on a CPU by counting what JAX compiles."""

from collections import Counter
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gpu_windows_cases import _drive, interpreted, task_of

import jaxalign
import kernels_pallas
from jaxalign import program_table
from jaxalign.database import scan
from jaxalign.model.alphabet import as_sequences
from jaxalign.options import PairOptions
from jaxalign.pairs.gpu import device_job, dispatch, launches
from jaxalign.pairs.options import make_task
from jaxalign.runtime import backend, devices, program_key, programs
from jaxalign.runtime.programs import outline
from jaxalign.triples import gpu
from kernels_pallas import three
from kernels_pallas.pairs.align import Result

OF_TRIPLES = 76  # programs of three gap models and modes
OF_RECEPTORS = 26  # four rooms of sums and of edits, six of lists
OF_LONG_PAIRS = 26  # three sizes, two modes, and parts of lines
OTHERS = OF_TRIPLES + OF_RECEPTORS + OF_LONG_PAIRS
MOST = 210 + OTHERS  # of everything that a GPU does with a set of proteins, too
# Of four sets, and searches of many numbers and lengths
MOST_OF_A_PACK = 350 + OTHERS
OF_LENGTHS = 6  # programs of local links that lengths unlike the table's need
LOCAL = PairOptions(mode="local", output="score")
ONE_SET = {"sets": program_table.SETS[:1], "searches": (program_table.CUDASW,)}
COMPILED = "/jax/core/compile/backend_compile_duration"
MEMORY = 2**32, 2**34, 2**36  # bytes that a machine, or a device, has
ALIGN = ("shape", "runs", "records", "interpret")
COUNTS = ("words", "padding", "wildcard", "interpret")


def zeros(*shape):
    return jnp.zeros(shape, jnp.int32)


@partial(jax.jit, static_argnames=ALIGN)
def align(problem, queries, m, targets, n, tie=None, stacks=None, *, shape, runs=0,
          records=0, interpret=None):  # fmt: skip
    """Arrays as those of ``kernels_pallas.align``, without its kernels."""
    pairs = (len(m), len(n)) if shape.shared else (len(m),)
    unproven = shape.local and shape.packed
    result = Result(
        zeros(*pairs), overflow=jnp.zeros(pairs, bool) if unproven else None
    )
    if not shape.tile:
        return result
    names = set(Result._fields) - {"runs", "overflow"}
    columns = {name: zeros(*pairs) for name in names}
    return result._replace(**columns, runs=zeros(runs, *pairs) if runs else None)


@partial(jax.jit, static_argnames=COUNTS)
def subsequence_counts(codes, first, lengths, blocks, *, words, padding, wildcard,
                       interpret=None):  # fmt: skip
    return jnp.zeros((len(first), 128 * len(blocks.starts)), jnp.int16)


class OutlinesOfTriples:
    """As ``Outlines``, of ``kernels_pallas.three``."""

    @staticmethod
    @partial(jax.jit, static_argnames=three.STATIC)
    def solve_packed(data, s, letters, host=False, interpret=None):
        return jnp.zeros((s.triples, 1), jnp.uint8)

    def __getattr__(self, name):
        return getattr(three, name)


class Outlines:
    """The kernels, of which those that take long to trace are arrays alone."""

    three = OutlinesOfTriples()
    align = staticmethod(align)
    subsequence_counts = staticmethod(subsequence_counts)

    def __getattr__(self, name):
        return getattr(kernels_pallas, name)


def key_of(call):
    """What the program of a call depends on."""
    static, *dynamic = call.program.split(call.args, call.kwargs)
    leaves, tree = jax.tree.flatten(dynamic)
    types = tuple(map(programs.type_of, leaves))
    return call.name, str(tree), types, program_key._text(static)


@pytest.fixture(scope="module")
def table():
    return dict(program_table.calls_of(Outlines(), **ONE_SET))


@pytest.mark.slow
def test_the_programs_of_usual_jobs_are_few(table):
    """Everything that the verbs do with proteins, and ``repertoire`` with receptors."""
    seen = {key_of(call) for calls in table.values() for call in calls}
    counts = Counter(name for name, *_ in seen)
    assert len(seen) <= MOST
    assert counts == {
        "launched_scores": 40,  # searches of blocks of two sizes, and of families
        "add": 4,
        "launched": 70,  # of hits, also of profiles, of all pairs, of linked ones
        "put": 26,  # of all pairs at once, of parts, of the nearest
        "zeros": 7,
        "in_order": 2,
        "piece": 3,
        "passing": 31,
        "subsequence_counts": 9,
        "near": 12,  # of the denominators of two links, and of `nearest`
        "highest": 1,
        "reaching": 1,
        "target_blocks": 1,
        "no_letters": 1,
        "with_piece": 1,
        "part": 17,  # of lines of long pairs
        "most_beside": 3,
        "long_block": 6,
        "near_ends": 8,
        "near_list": 8,
        "match_rows": 4,
        "first_columns": 6,
        "solve_packed": OF_TRIPLES,
    }


@pytest.mark.slow
def test_a_pack_serves_lengths_that_are_not_its_own():
    """… and has few programs: a set whose lengths are ln N(5.7, 0.6)."""
    known = {key_of(x) for _, calls in program_table.calls_of(Outlines())
             for x in calls}  # fmt: skip
    assert len(known) <= MOST_OF_A_PACK
    lengths = np.exp(np.random.default_rng(7).normal(5.7, 0.6, 12_071))
    some = program_table.proteins(np.clip(lengths, 20, 5000).astype(np.int64))
    with outline() as calls:
        for options in (PairOptions(output="score"), LOCAL):
            every = make_task("all", some, some, jaxalign.Scoring(), options)
            dispatch.outline_of_task(every, Outlines())
            program_table.by_parts(every, Outlines(), seed=9)
        for _, job in program_table.linked(some, Outlines()):
            job()
    assert {call.name for call in calls} >= {"launched", "subsequence_counts", "near"}
    others = {key_of(call) for call in calls} - known
    assert len(others) <= OF_LENGTHS and {name for name, *_ in others} == {"launched"}
    calls = list(_calls_of_searches(np.random.default_rng(8)))
    assert {call.name for call in calls} == {"launched_scores", "add", "with_piece",
                                             "no_letters"}  # fmt: skip
    assert {key_of(call) for call in calls} <= known


def _calls_of_searches(dice):
    """The programs of searches of 1 to 64 queries in blocks of a database, which have
    2**26 letters at most."""
    nothing = program_table.proteins(np.zeros(0, np.int64))
    for count in (1, 1, 2, 4, 7, 15, 25, 40, 60, 64):
        lengths = np.exp(dice.normal(5.7, 0.7, count)).astype(np.int64)
        queries = program_table.proteins(np.clip(lengths, 20, 6000))
        task = make_task("cross", queries, nothing, jaxalign.Scoring(), LOCAL)
        task = replace(task, top=program_table.TOP)
        for size in dice.integers(9_000, 155_000, 2):
            block = program_table.proteins(program_table.usual_lengths(size))
            with outline() as calls:
                scan.outlined(task, block, Outlines())
            yield from calls


@pytest.mark.slow
def test_lists_are_drawn_without_compiling_or_running(table):
    """… and say the same when they are drawn again, whatever was drawn before."""
    again = dict(program_table.calls_of(Outlines(), **ONE_SET))
    assert list(map(key_of, again["hits of a search"])) == list(
        map(key_of, table["hits of a search"])
    )


@pytest.mark.parametrize("output", ["score", "alignment", "identity"])
@pytest.mark.parametrize("kind", ["all", "zip", "cross"])
def test_launches_do_not_depend_on_memory(kind, output):
    """Neither on how much JAX may have of a device, nor on how many there are."""
    some = program_table.proteins(program_table.usual_lengths(2000))
    options = PairOptions(mode="local", output=output)
    task = make_task(kind, some, some, jaxalign.Scoring(), options)
    seen = []
    for gib in (17, 30, 60, 130):
        device = SimpleNamespace(memory_stats=lambda n=gib: {"bytes_limit": n * 2**30})
        object.__setattr__(task, "devices", (device,) * (1 + gib % 2))
        cut = launches.cut(task, kernels_pallas, device_job.budget(task))
        seen.append([(*x.sizes, len(x.queries), len(x.targets)) for x in cut.blocks])
    assert all(sizes == seen[0] for sizes in seen)


@pytest.mark.parametrize("count", [900, 1000, 1900])
def test_sets_of_like_sizes_have_the_same_programs(count):
    """A set that grows by some sequences compiles nothing."""
    sizes = []
    for more in (0, 20):
        some = program_table.proteins(program_table.usual_lengths(count + more))
        task = make_task("all", some, some, jaxalign.Scoring(), PairOptions())
        cut = launches.cut(task, kernels_pallas, 2**33)
        sizes.append({x.sizes for x in cut.blocks})
    assert sizes[0] == sizes[1]


# Triples


def as_launched(seen):
    """``triples.gpu._launched`` without a kernel: it notes the program, and the answer
    is a local core of three quarters, or a path of gaps alone."""

    def launched(data, shape, triple):
        with outline() as calls:
            gpu._rows(data, shape, triple)
        seen.update(map(key_of, calls))
        if shape.best:
            cells = data.sizes * 3 // 4
            return three.TripleResults(None, best=np.insert(cells, 0, 1, axis=1))
        width = int(data.sizes.sum(axis=1).max())
        columns = np.zeros((shape.triples, width), np.uint8)
        for row, (a, b, c) in zip(columns, data.sizes, strict=True):
            row[: a + b + c] = np.repeat([4, 2, 1], [a, b, c])
        ends = np.zeros((shape.triples, shape.rule.states), np.int32)
        return three.TripleResults(ends, None, columns, data.sizes.sum(axis=1))

    return launched


def related_lengths(dice, count, longest):
    """Lengths of so many triples; the shortest has two thirds of the longest."""
    return [int(n) for n in longest - dice.integers(0, longest // 3, 3 * count)]


SCORES = (
    ("global", 100, ("quasi-natural", "linear")),
    ("global", 500, ("quasi-natural", "linear")),
    ("global", 1_400, ("quasi-natural", "linear")),
    ("semiglobal", 500, ("quasi-natural",)),
    ("local", 500, ("quasi-natural", "natural", "linear")),
)


@pytest.mark.parametrize("model", ["quasi-natural", "natural", "linear"])
def test_a_pack_has_the_programs_of_triples(model, monkeypatch):
    """… that calls of ``align_three`` and ``align_triples`` ask for."""
    known = {key_of(call) for call in _calls_of_triples(model)}
    package, seen = SimpleNamespace(three=Outlines.three), set()
    dice = np.random.default_rng(4)
    monkeypatch.setattr(backend, "kernels", lambda: (package, "made here"))
    monkeypatch.setattr(gpu, "_launched", as_launched(seen))
    monkeypatch.setattr(gpu, "scores_of", lambda batch, *_: np.zeros(len(batch), int))
    cost = {"gap_open": 4, "gap_extend": 4} if model == "linear" else {}

    def run(lengths, **options):
        texts = ["A" * n for n in lengths]
        options |= {"gap_model": model, "memory_budget": "40GiB"}
        if len(texts) == 3:
            jaxalign.align_three(*texts, jaxalign.Scoring(**cost), **options)
            return
        triples = list(zip(*[iter(texts)] * 3, strict=True))
        jaxalign.align_triples(triples, jaxalign.Scoring(**cost), **options)

    for mode in ("global", "semiglobal", "local"):
        for longest in (100, 127, 250, 400, 511):
            run(related_lengths(dice, 1, longest), mode=mode)
        if mode == "global" or model == "quasi-natural":
            for count, longest in ((2, 90), (70, 120), (300, 150), (10, 500)):
                run(related_lengths(dice, count, longest), mode=mode)
    for mode, longest, models in SCORES:
        if model in models:
            run(related_lengths(dice, 1, longest), mode=mode, traceback=None)
    assert len(seen) > 10 and seen <= known
    run((20, 90, 300))
    assert seen <= known
    run((20, 90, 600))
    assert not seen <= known


def _calls_of_triples(model):
    for name, job in program_table.threes(Outlines()):
        if f", {model}," in name:
            with outline() as calls:
                job()
            yield from calls


# What JAX compiles


@pytest.fixture
def compilations(monkeypatch):
    """A function (call) that counts what JAX compiles while it runs."""
    seen = []

    def listen(event, _seconds, **_):
        seen.append(event == COMPILED)

    jax.monitoring.register_event_duration_secs_listener(listen)

    def count(call):
        before = sum(seen)
        call()
        return sum(seen) - before

    yield count
    jax.monitoring.unregister_event_duration_listener(listen)


def some_proteins(count, longest):
    rng = np.random.default_rng(count)
    parts = [
        rng.integers(0, 20, n).astype(np.uint8) for n in rng.integers(9, longest, count)
    ]
    parts[1] = np.append(parts[0], parts[0][:3])
    return as_sequences(parts, jaxalign.Scoring().alphabet)


def jobs(some):
    """Everything that is done with proteins."""
    queries = some.take(range(3))
    half = [some.take(range(k, len(some), 2)) for k in (0, 1)]
    yield "search", lambda: jaxalign.search(queries, some, top=3, align_top=False)
    yield "search, aligned", lambda: jaxalign.search(queries, some, top=3)
    yield "all", lambda: jaxalign.align_all(some, output="score")
    yield "cluster", lambda: jaxalign.cluster(some, min_identity=0.4)
    yield "split", lambda: jaxalign.split(some, min_identity=0.4, folds=2)
    parts = dict(zip("ab", half, strict=True))
    yield "audit", lambda: jaxalign.audit(parts, min_identity=0.4)
    yield "dedup", lambda: jaxalign.cluster(some, min_identity=0.9, method="greedy")


def check_jobs(some, compilations, monkeypatch):
    for name, job in jobs(some):
        counts = []
        for available in (MEMORY[-1], *MEMORY):
            monkeypatch.setattr(devices, "_free_memory", lambda size=available: size)
            counts.append(compilations(job))
        assert counts[1:] == [0, 0, 0], name


@pytest.mark.slow
def test_the_second_call_compiles_nothing_on_a_cpu(compilations, compiled, monkeypatch):
    check_jobs(some_proteins(24, 60), compilations, monkeypatch)


@interpreted
@pytest.mark.slow
def test_the_second_call_compiles_nothing_on_a_gpu(compilations, compiled, monkeypatch):
    """… in the interpreter: what is around the kernels compiles there, too."""
    _drive(monkeypatch)
    queries = task_of("cross", "score", "local").queries
    check_jobs(queries, compilations, monkeypatch)
