"""The soft kernels: they lower for CUDA anywhere; their values are those of
``soft.dp.free_energy`` (which enumeration proves) and of enumeration itself in the GPU
interpreter (JAX 0.11 or newer) and, marked ``gpu``, on a device; as primitives they
batch and differentiate."""

from functools import partial
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import END_SETS
from similarity_enumeration import exact

import jaxalign
import kernels_pallas as kp
from jaxalign import soft_score
from jaxalign.errors import DeviceError, UsageError
from jaxalign.runtime import backend
from jaxalign.similarity.soft import primitives
from jaxalign.similarity.soft.primitives import FLAGS
from kernels_pallas.core import mosaic
from kernels_pallas.similarity import soft_align
from kernels_pallas.similarity.soft_cells import LOG_ZERO

SCORE, PROBABILITY = 2e-5, 2e-6
MODES = [("global", ends) for ends in END_SETS] + [("local", frozenset())]
COSTS = (1.5, 0.375, 1.5, 0.375)
values = pytest.mark.skipif(
    mosaic.interpreter() is None, reason="the GPU interpreter came with JAX 0.11"
)


def flags_of(mode, free):
    names = {"local"} if mode == "local" else set(free)
    return sum(1 << k for k, name in enumerate(FLAGS) if name in names)


def tables(s, costs, temperature, lengths, flags):
    """What ``soft.dp.free_energy`` hands to the kernels; arrays of a batch."""
    m, n = np.asarray(lengths).T
    inside = np.arange(s.shape[1])[None, :, None] < m[:, None, None]
    inside = inside & (np.arange(s.shape[2])[None, None] < n[:, None, None])
    inside &= np.isfinite(s)
    t = np.broadcast_to(np.float32(temperature), len(s))
    scores = np.where(inside, np.where(inside, s, 0) / t[:, None, None], LOG_ZERO)
    unit = 2.0 ** np.maximum(np.floor(-np.log2(t)), 0)
    rules = np.stack([m, n, np.broadcast_to(flags, len(s))], 1)
    floats = scores, np.broadcast_to(costs, (len(s), 4)) / t[:, None], unit
    arrays = *(x.astype(np.float32) for x in floats), rules.astype(np.int32)
    return kp.Tables(*map(jnp.asarray, arrays))


def logs(high, rest):
    return np.float64(high) + np.float64(rest)


# Lowering, on any machine and every JAX


@pytest.mark.parametrize(
    "what, rows, columns",
    [
        ("score", 100, 90),
        ("expected", 300, 20),
        pytest.param("product", 600, 30, marks=pytest.mark.slow),
    ],
)
def test_lowers_for_cuda(what, rows, columns):
    def array(*shape, dtype=jnp.float32):
        return jax.ShapeDtypeStruct(shape, dtype)

    given = kp.Tables(array(3, rows, columns), array(3, 4), array(3),
                      array(3, 3, dtype=jnp.int32))  # fmt: skip
    more = (given.scores, given.costs) if what == "product" else ()
    run = jax.jit(getattr(kp, f"soft_{what}"))
    lowered = run.trace(given, *more).lower(lowering_platforms=("cuda",))
    assert "mosaic_gpu" in lowered.as_text()


# Values, in the interpreter

WARP = kp.Soft(2, 32, 2, plain=True)
FOUR_WARPS = kp.Soft(4, 128, 1, plain=True)


def interpreted(function, s):
    return jax.jit(partial(function, s=s, interpret=mosaic.interpreter()))


@values
def test_enumeration():
    """All modes and free ends, unequal lengths, in one batch."""
    lengths = [(3, 4), (4, 2), (1, 1), (0, 3), (4, 0), (0, 0)]
    cases = [(x, lengths[k % 6]) for k, x in enumerate(MODES * 2)]
    s = np.random.default_rng(1).normal(size=(len(cases), 4, 4)).astype(np.float32) * 2
    temperatures = np.resize([0.3, 1.0, 3.0], len(cases))
    lengths, flags = [x[1] for x in cases], [flags_of(*x[0]) for x in cases]
    given = tables(s, COSTS, temperatures, lengths, flags)
    log_z, posterior, payers = interpreted(kp.soft_expected, WARP)(given)
    found = zip(logs(*log_z), np.asarray(posterior), np.asarray(payers), strict=True)
    for k, (f, p, gaps) in enumerate(found):
        (mode, free), (m, n) = cases[k]
        t = temperatures[k]
        want = exact(np.float64(s[k, :m, :n]), *COSTS[:2], t, mode, free)
        padded = np.pad(want.posterior, ((0, 4 - m), (0, 4 - n)))
        note = f"{mode} {set(free)} {m} {n} {t}"
        np.testing.assert_allclose(f * t, want.score, atol=SCORE, err_msg=note)
        np.testing.assert_allclose(p, padded, atol=PROBABILITY, err_msg=note)
        assert not p[m:].any() and not p[:, n:].any()
        counts = [gaps[0] + gaps[2], gaps[1] + gaps[3]]
        exactly = [want.opens, want.extensions]
        np.testing.assert_allclose(counts, exactly, atol=SCORE, err_msg=note)


def batch(seed, shape, flags=(0, 15, 16, 6, 9), temperatures=(0.3, 1.0, 30.0)):
    """Random tables with forbidden pairs; lengths 0, 1, unequal, full."""
    rng = np.random.default_rng(seed)
    m, n = shape
    lengths = [(m, n), (0, n), (m, 0), (1, 1), (1, n), (m, 1), (m - 1, n // 2)]
    cases = [*product(flags, temperatures, lengths)]
    s = rng.normal(size=(len(cases), m, n)).astype(np.float32) * 3
    s[rng.random(s.shape) < 0.02] = -np.inf
    costs = rng.uniform(0.2, 4, (len(cases), 4)).astype(np.float32)
    flags, t, lengths = zip(*cases, strict=True)
    return tables(s, costs, t, lengths, flags)


def in_double(function, *given):
    """``soft.dp.free_energy`` in float64 on the same numbers, on the CPU: XLA takes
    minutes to compile it for a GPU."""
    with jax.enable_x64(True), jax.default_device(jax.devices("cpu")[0]):
        wide = (
            jnp.asarray(np.asarray(x), None if x.dtype == jnp.int32 else jnp.float64)
            for x in given
        )
        return [np.asarray(x) for x in jax.jit(function)(*wide)]


def size_of_numbers(given):
    """What is added up and partly cancels: scores, overhangs, logs of counts."""
    m, n = np.asarray(given.rules)[:, :2].T
    scores = np.where(np.asarray(given.scores) > LOG_ZERO / 10, given.scores, 0)
    hang = (m + n) * (1 + np.asarray(given.costs).max(1))
    return 1 + np.abs(scores).max((1, 2)) * np.minimum(m, n) + hang


def check_values(run, given):
    """Rounding grows with what is added up, and no probability is off by 1e-4."""
    log_z, posterior, payers = map(np.asarray, run(given)[0]), *run(given)[1:]
    _, f, p, gaps = in_double(partial(primitives._by_logs, 4), *given)
    scale = size_of_numbers(given)
    assert (np.abs(logs(*log_z) - f) <= 1e-6 * scale).all()
    error = np.abs(np.asarray(posterior) - p).max((1, 2))
    assert (error <= np.minimum(1e-6 * scale, 2e-4)).all()
    assert (np.abs(np.asarray(payers) - gaps).max(1) <= 1e-5 * scale).all()


def check_product(run, given, seed=0):
    rng = np.random.default_rng(seed)
    d_scores, d_costs = (
        jnp.asarray(rng.normal(size=x.shape), jnp.float32) for x in given[:2]
    )
    found = run(given, d_scores, d_costs)
    want = in_double(primitives._plain_product, *given, d_scores, d_costs)
    for x, y in zip(found, want, strict=True):
        x = np.asarray(x)
        assert np.isfinite(x).all()
        np.testing.assert_allclose(x, y, rtol=1e-3, atol=2e-4 * (1 + np.abs(y).max()))


@values
@pytest.mark.slow
@pytest.mark.parametrize("s", (WARP, FOUR_WARPS), ids=("warp", "four warps"))
def test_values(s):
    check_values(interpreted(kp.soft_expected, s), batch(2, (9, 7), (6, 16), (0.3,)))


@values
@pytest.mark.slow
@pytest.mark.parametrize("s", (WARP, FOUR_WARPS), ids=("warp", "four warps"))
def test_products(s):
    check_product(interpreted(kp.soft_product, s), batch(3, (6, 7), (15, 16), (1.0,)))


@values
@pytest.mark.slow
def test_parts_of_a_batch(monkeypatch):
    given = batch(4, (5, 6), (15,))
    whole = kp.soft_expected(given, WARP, mosaic.interpreter())
    monkeypatch.setattr(soft_align, "FORWARD_BYTES", 1)
    parts = kp.soft_expected(given, WARP, mosaic.interpreter())
    for x, y in zip(jax.tree.leaves(whole), jax.tree.leaves(parts), strict=True):
        np.testing.assert_allclose(x, y, atol=1e-6)


# As primitives: elsewhere than on a GPU they are ``soft.dp.free_energy``, rules and all


@pytest.fixture
def kernels(monkeypatch):
    """A batch with unequal lengths, and a way to have the kernels chosen for it."""
    s = jnp.asarray(np.random.default_rng(5).normal(size=(2, 4, 5)), jnp.float32) * 2
    lengths = jnp.array([[4, 5], [3, 1]], jnp.int32)
    options = {"gap_extend": 0.5, "temperature": 0.7, "mode": "semiglobal"}

    def score(s, o):
        return soft_score(s, lengths, gap_open=o, **options).sum()

    def both(function):
        without = function(score, s)
        with monkeypatch.context() as patch:
            patch.setattr(backend, "kernels", lambda: (kp, ""))
            found = function(score, s)
        for x, y in zip(*map(jax.tree.leaves, (found, without)), strict=True):
            np.testing.assert_allclose(x, y, atol=1e-5)

    return both


@pytest.mark.slow
def test_gradients(kernels):
    kernels(lambda f, s: jax.value_and_grad(f, (0, 1))(s, 1.5))


@pytest.mark.slow
def test_vmap(kernels):
    kernels(lambda f, s: jax.vmap(f, (None, 0))(s, jnp.array([0.5, 1.5, 2.5])))


@pytest.mark.slow
def test_forward_over_reverse(kernels):
    kernels(lambda f, s: jax.jvp(jax.grad(f), (s, 1.5), (s[::-1], 0.0))[1])


@pytest.mark.slow
def test_reverse_over_reverse_and_third_order(kernels):
    def square(f, s):
        gradient = jax.grad(f, (0, 1))
        return sum(jnp.sum(x**2) for x in gradient(s, 1.5))

    kernels(lambda f, s: jax.jvp(jax.grad(partial(square, f)), (s,), (s[::-1],)))


@pytest.mark.slow
def test_entropy_and_temperature(kernels):
    """They stay with ``soft.dp.free_energy``."""
    s = jnp.ones((3, 4))

    def entropy(f, _):
        return jaxalign.alignment_entropy(s, gap_open=1.0, gap_extend=0.5)

    kernels(entropy)


def test_what_the_kernels_do_not_take(monkeypatch):
    """Asked for by name they never fall back; by default they do."""
    monkeypatch.setattr(backend, "kernels", lambda: (None, "no GPU here"))
    s, gaps = jnp.zeros((3, 4)), {"gap_open": 1.0, "gap_extend": 0.5}
    with pytest.raises(DeviceError, match="no GPU here"):
        soft_score(s, **gaps, implementation="pallas")
    by_position = gaps | {"gap_open": (jnp.ones(3), 1.0)}
    refused = [
        (s, gaps | {"adjacent_gaps": False}, "adjacent_gaps"),
        (s, by_position, "by position"),
        (jnp.zeros((0, 4)), gaps, "empty"),
        (jnp.zeros((5000, 1)), gaps, "4096 rows"),
    ]
    monkeypatch.setattr(backend, "kernels", lambda: (kp, ""))
    for similarity, options, why in refused:
        with pytest.raises(UsageError, match=why):
            soft_score(similarity, **options, implementation="pallas")
    soft_score(s, **by_position)


# On a device


@pytest.mark.gpu
def test_device_agrees():
    """Modes and free ends, lengths, forbidden pairs, temperatures; four warps a
    table."""
    given = batch(6, (137, 41), range(17), (1e-4, 0.3, 1.0, 1e3))
    check_values(jax.jit(kp.soft_expected), given)


@pytest.mark.gpu
@pytest.mark.parametrize("what", ("expected", "product"))
def test_eight_warps_on_a_device(what):
    """Tables that cross all of them, and shorter ones."""
    given = batch(8, (520, 33), (15, 16), (1.0,))
    assert soft_align.choose(*given.scores.shape).lanes == 256
    check = check_values if what == "expected" else check_product
    check(jax.jit(getattr(kp, f"soft_{what}")), given)


@pytest.mark.gpu
def test_products_on_a_device():
    """A warp a table."""
    given = batch(7, (37, 41), (0, 6, 15, 16), (0.7, 1e3))
    check_product(jax.jit(kp.soft_product), given)
