"""The kernels of hard alignment: they lower for CUDA anywhere; they give the values of
``hard.dp.fill`` word for word in the GPU interpreter (JAX 0.11 or newer) and, marked
``gpu``, on a device; as a primitive they batch."""

from functools import partial
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import END_SETS
from kernel_cases import inside_arrays, values

import kernels_pallas as kp
from jaxalign import hard_alignment, hard_matrix
from jaxalign.runtime import backend
from jaxalign.similarity.arguments import FORBIDDEN, Gap, ModeRules
from jaxalign.similarity.costs import no_overhang, overhang
from jaxalign.similarity.hard import engine
from kernels_pallas.core import mosaic
from kernels_pallas.similarity import hard_align
from kernels_pallas.similarity.hard_cells import Hard


def tables(s, lengths, ends, local=False, seed=0):
    """What ``hard_alignment`` hands to the kernels, with costs of one digit."""
    rng = np.random.default_rng(seed)
    costs = rng.integers(0, 4, (len(s), 2, 2)).astype(np.float32)
    m, n = np.asarray(lengths, np.int32).T
    flags = np.array([[name in one for name in engine.FLAGS] for one in ends])

    def one(s, costs, m, n, flags):
        rules = ModeRules(m, n, *flags, jnp.bool_(local), jnp.bool_(True))
        costs = tuple(Gap(*x) for x in costs)
        hang = no_overhang(s.shape, jnp.float32)
        if not local:
            hang = overhang(*costs, s.shape, rules, FORBIDDEN)
        return engine.arrays_of(s, costs, hang, rules)

    return jax.jit(jax.vmap(one))(s, *map(jnp.asarray, (costs, m, n, flags)))


def scores(dtype, shape, seed=1):
    """Small numbers, so that many alignments are equals; some forbidden."""
    rng = np.random.default_rng(seed)
    s = rng.integers(-3, 4, shape).astype(np.float32)
    if jnp.issubdtype(dtype, jnp.floating):
        s[rng.random(shape) < 0.05] = -np.inf
    return jnp.asarray(s, dtype)


def some_lengths(count, m, n, seed=2):
    """The whole table, empty ones, and any others."""
    rng = np.random.default_rng(seed)
    pairs = [(m, n), (0, n), (m, 0), (1, 1), (1, n), (m, 1)]
    more = zip(
        rng.integers(0, m + 1, count), rng.integers(0, n + 1, count), strict=True
    )
    return (pairs + [*more])[:count]


def check(given, found, local):
    """Scores, ends and partners are those of ``hard.dp.fill``, with equals and all."""
    plain = jax.jit(jax.vmap(partial(engine._plain_path, local=local)))
    want = hard_align.HardPaths(*map(np.asarray, plain(*given)))
    found = hard_align.HardPaths(*map(inside_arrays, found))
    legal = want.score > FORBIDDEN / 20
    np.testing.assert_array_equal(np.isnan(want.score), np.isnan(found.score))
    np.testing.assert_array_equal(legal, found.score > FORBIDDEN / 20)
    row = np.arange(want.partners.shape[1])
    inside = (row >= want.i[:, None]) & (row < want.end_i[:, None])
    for name in hard_align.HardPaths._fields:
        a, b = getattr(want, name), getattr(found, name)
        if name == "partners":
            a, b = np.where(inside, a, -1), np.where(inside, b, -1)
        np.testing.assert_array_equal(a[legal], b[legal], err_msg=name)
    assert legal.sum() >= len(legal) / 2


def interpreted(given, s: Hard):
    run = partial(kp.hard_paths, local=s.local, last_column=s.last_column, shape=s,
                  interpret=mosaic.interpreter())  # fmt: skip
    return jax.jit(run)(given)


# Lowering, on any machine and every JAX


@pytest.mark.parametrize(
    "dtype, shape, local, last_column",
    [
        ("int8", (5000, 40, 45), False, True),
        pytest.param("float16", (8, 30, 600), True, False, marks=pytest.mark.slow),
        pytest.param("bfloat16", (8, 40, 33), False, False, marks=pytest.mark.slow),
        ("float32", (3, 30, 30), True, False),  # fewer pairs than warps
    ],
)
def test_lowers_for_cuda(dtype, shape, local, last_column):
    batch, m, n = shape
    like = jax.ShapeDtypeStruct
    reals = [like((batch, x), jnp.float32) for x in (4, m + 1, n + 1)]
    given = like(shape, dtype), *reals, like((batch, 3), jnp.int32)
    run = partial(kp.hard_paths, local=local, last_column=last_column)
    paths = jax.eval_shape(run, given)
    assert [x.shape for x in paths] == [(batch,)] * 5 + [(batch, m)]
    text = jax.jit(run).trace(given).lower(lowering_platforms=("cuda",)).as_text()
    assert text.count("mosaic_gpu") >= 2


# Values, in the interpreter


@values
def test_all_free_ends():
    """Each set of free ends with whole, empty and other tables."""
    ends = [one for one in END_SETS for _ in range(8)]
    lengths = some_lengths(8, 9, 20) * len(END_SETS)
    given = tables(scores(jnp.float32, (len(ends), 9, 20)), lengths, ends)
    check(given, interpreted(given, Hard(3, False, True, plain=True)), False)


@values
@pytest.mark.slow
@pytest.mark.parametrize(
    "form, dtype",
    [
        ("global", "float32"),
        ("semiglobal", "int8"),
        ("local", "int16"),
        ("global", "float16"),
        ("local", "bfloat16"),
        ("local", "int8"),
        ("global", "int8"),
    ],
)
def test_dtypes(form, dtype):
    """Tables that go on in the next pass of their warp, and rows that do not fill
    their loads."""
    local, free = form == "local", form == "semiglobal"
    count, shape = 7, (23, 301)
    ends = [engine.FLAGS if free else ()] * count
    lengths = some_lengths(count, *shape)
    given = tables(scores(dtype, (count, *shape)), lengths, ends, local)
    shape = Hard(2, local, free, plain=True)
    check(given, interpreted(given, shape), local)


@values
@pytest.mark.slow
@pytest.mark.parametrize("local", (False, True))
def test_meaningless_scores(local):
    """nan and inf anywhere within the lengths, and beyond them."""
    s = np.array(scores(jnp.float32, (12, 6, 18)))
    lengths = [(5, 16)] * 12
    places = [(0, 0), (4, 15), (4, 16), (5, 3), (2, 7), (5, 17)]
    for k, (i, j) in enumerate(places * 2):
        s[k, i, j] = np.nan if k < len(places) else np.inf
    given = tables(jnp.asarray(s), lengths, [()] * 12, local)
    found = interpreted(given, Hard(2, local, plain=True))
    assert np.isnan(found.score).tolist() == [True, True, False, False, True, False] * 2
    check(given, found, local)


@values
@pytest.mark.slow
def test_parts_of_a_batch(monkeypatch):
    given = tables(scores("int8", (6, 5, 16)), some_lengths(6, 5, 16), [()] * 6)
    monkeypatch.setattr(hard_align, "DECISION_BYTES", 1)
    check(given, interpreted(given, Hard(2, False, plain=True)), False)


@values
@pytest.mark.slow
@pytest.mark.parametrize("form", ("global", "semiglobal", "local"))
def test_scores_of_a_product(form):
    """Scores (Q, m, T, n) of two sets: those of all pairs one by one, with costs and
    free ends that differ by side."""
    local, free = form == "local", form == "semiglobal"
    queries, targets, m, n = 3, 5, 11, 308
    count = queries * targets
    ends = [("query_start", "query_end", "target_end") if free else ()] * count
    lengths = some_lengths(count, m, n)
    s = scores("float32", (count, m, n))
    given = tables(s, lengths, ends, local)
    plain = jax.jit(jax.vmap(partial(engine._plain_path, local=local)))
    want = np.asarray(plain(*given)[0])
    product = s.reshape(queries, targets, m, n).transpose(0, 2, 1, 3)
    run = partial(kp.hard_scores, local=local, last_column=free,
                  shape=Hard(2, local, free, plain=True),
                  interpret=mosaic.interpreter())  # fmt: skip
    score = inside_arrays(jax.jit(run)((product, *given[1:])))
    legal = want > FORBIDDEN / 20
    assert legal.sum() >= count / 2
    np.testing.assert_array_equal(score[legal], want[legal])
    assert (score[~legal] <= FORBIDDEN / 20).all()


def test_tables_of_a_warp_fill_its_lanes():
    """400 columns are 25 lanes: 14 tables are eleven passes of 32, where there are
    enough of them for every multiprocessor."""
    assert hard_align.choose(100_000, 400, kp.HOPPER).tables == 14
    assert hard_align.choose(8192, 400, kp.HOPPER).tables == 1
    assert hard_align.choose(64, 400, kp.HOPPER).tables == 1
    assert hard_align.choose(10**6, 16, kp.HOPPER).tables == hard_align.MAX_TABLES


# As a primitive: elsewhere than on a GPU it is ``hard.dp.fill``


@pytest.mark.slow
@pytest.mark.parametrize("mode", ("local", "semiglobal"))
def test_chosen_where_they_run(monkeypatch, mode):
    """With and without the kernels, in and out of ``vmap``; costs by residue have
    none."""
    s = scores(jnp.bfloat16, (3, 2, 6, 7))
    lengths = np.array([[6, 7], [4, 2], [0, 3]])[:, None].repeat(2, 1)
    options = {"gap_extend": 0.5, "mode": mode}

    def outer(s, lengths):
        return hard_alignment(s, lengths, gap_open=1.5, **options)

    want = outer(s, lengths)
    monkeypatch.setattr(backend, "kernels", lambda: (kp, ""))
    bound = []
    kept = engine.best_path
    monkeypatch.setattr(engine, "best_path", lambda *x: bound.append(x) or kept(*x))
    for function in (outer, jax.jit(jax.vmap(outer))):
        found = function(s, lengths)
        for a, b in zip(*map(jax.tree.leaves, (want, found)), strict=True):
            np.testing.assert_array_equal(a, b)
    assert len(bound) == 2
    hard_alignment(s, lengths, gap_open=(np.ones(6), 1.0), **options)
    assert len(bound) == 2


# On a device


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", engine.DTYPES)
@pytest.mark.parametrize("local", (False, True), ids=("border", "local"))
def test_device_agrees(dtype, local):
    """All free ends; lengths; one warp a table and several tables a warp."""
    sets = [()] * len(END_SETS) if local else END_SETS
    for shape, times in (((137, 141), 6), ((70, 45), 70), ((40, 700), 2)):
        ends = [one for one in sets for _ in range(times)]
        lengths = some_lengths(len(ends), *shape)
        given = tables(scores(dtype, (len(ends), *shape)), lengths, ends, local)
        form = {"local": local, "last_column": not local}
        check(given, jax.jit(partial(kp.hard_paths, **form))(given), local)


@pytest.mark.gpu
@pytest.mark.parametrize("tables_of_a_warp", (1, 2, 5))
def test_passes_on_a_device(tables_of_a_warp):
    """Random floats, which have no equals; a table in two passes."""
    s = np.random.default_rng(4).normal(size=(37, 90, 400)).astype(np.float32) * 4
    lengths = some_lengths(37, 90, 400)
    for local in (False, True):
        given = tables(jnp.asarray(s), lengths, [()] * 37, local)
        shape = Hard(tables_of_a_warp, local)
        run = partial(kp.hard_paths, local=local, last_column=False, shape=shape)
        check(given, jax.jit(run)(given), local)


@pytest.mark.gpu
@pytest.mark.parametrize("mode", ("global", "semiglobal", "local"))
def test_matrices_on_a_device(mode):
    """Two sets of several lengths, with costs that differ by side, against the kernels
    that find paths."""
    rng = np.random.default_rng(5)
    lengths = [rng.integers(1, longest + 1, 40) for longest in (60, 190)]
    sets = [rng.normal(size=(40, k.max(), 24)).astype(np.float32) for k in lengths]
    costs = {"gap_open": (2.0, 3.0), "gap_extend": (0.25, 1.0), "mode": mode}
    pairs = np.stack(np.broadcast_arrays(lengths[0][:, None], lengths[1][None]), -1)
    some = [
        [x[:k] for x, k in zip(*one, strict=True)]
        for one in zip(sets, lengths, strict=True)
    ]
    with jax.default_matmul_precision("highest"):
        score = hard_matrix(*some, **costs)
        factors = jnp.asarray(sets[0])[:, None], jnp.asarray(sets[1])[None]
        want = hard_alignment(factors, pairs, **costs).score
    np.testing.assert_allclose(score, want, rtol=1e-5, atol=1e-3)


@pytest.mark.gpu
def test_meaningless_scores_on_a_device():
    for local, value in product((False, True), (np.nan, np.inf, -np.inf)):
        s = np.array(scores(jnp.float32, (64, 40, 40)))
        s[:32, 7, 9] = value
        given = tables(jnp.asarray(s), [(40, 40)] * 64, [()] * 64, local)
        run = partial(kp.hard_paths, local=local, last_column=False)
        found = jax.jit(run)(given)
        check(given, found, local)
        assert np.isnan(found.score).sum() == (0 if value < 0 else 32)
