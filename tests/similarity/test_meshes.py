"""A batch over four devices, by explicit axes of a mesh and by ``shard_map``."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec

import jaxalign
import kernels_pallas
from jaxalign.runtime import backend

COSTS = {"gap_open": 1.5, "gap_extend": 0.25}
BATCH = PartitionSpec("pairs")


def by_score(s, lengths, **options):
    def f(s):
        return jaxalign.soft_score(s, lengths, **COSTS, **options).sum()

    return jax.grad(f)(s)


def by_costs(s, lengths, **options):
    """The cost of all pairs: each device adds its share."""
    opening = jnp.abs(s[..., 0])
    return jaxalign.expected_gaps(
        s, lengths, gap_open=(opening, 1.0), gap_extend=0.5, **options
    )[0][0]


def log_prob(s, lengths, **options):
    diagonal = jnp.arange(6, dtype=jnp.int32)
    return jaxalign.alignment_log_prob(diagonal, s, lengths, **COSTS, **options)


def partners(s, lengths):
    return jaxalign.hard_alignment(s, lengths, **COSTS, mode="local").partners


def of(function):
    return lambda s, lengths, **options: function(s, lengths, **COSTS, **options)


FUNCTIONS = {
    "score": of(jaxalign.soft_score),
    "gradient": by_score,
    "posterior": of(jaxalign.soft_posterior),
    "entropy": of(jaxalign.alignment_entropy),
    "gaps": by_costs,
    "log_prob": log_prob,
}
CASES = [(name, "log") for name in FUNCTIONS if name not in ("gradient", "posterior")]
CASES += [("gradient", "blocked"), ("gradient", "scaled"), ("gradient", "pallas")]


@pytest.fixture(scope="module")
def shares():
    """A mesh with explicit axes, the default of JAX 0.12, and a batch divided by it."""
    mesh = jax.make_mesh((4,), ("pairs",), axis_types=(AxisType.Explicit,))
    s = np.random.default_rng(1).normal(size=(8, 6, 7)).astype(np.float32)
    lengths = np.arange(8, dtype=np.int32) % 4 + 3, np.full(8, 7, np.int32)
    return mesh, jax.device_put((s, lengths), NamedSharding(mesh, BATCH)), (s, lengths)


def check(run, shares):
    mesh, given, plain = shares
    want = run(*plain)
    sharded = jax.shard_map(run, mesh=mesh, in_specs=BATCH, out_specs=BATCH)
    with jax.set_mesh(mesh):
        for function in (run, sharded):
            compiled = jax.jit(function).lower(*given).compile()
            assert "all-gather" not in compiled.as_text()
            found = compiled(*given)
            np.testing.assert_allclose(found, want, atol=1e-5)
            assert found.sharding.spec[0] == "pairs"


@pytest.mark.slow
@pytest.mark.parametrize("name, implementation", CASES)
def test_each_device_computes_its_share(name, implementation, shares, monkeypatch):
    if implementation == "pallas":  # on a CPU the primitives have another lowering
        monkeypatch.setattr(backend, "kernels", lambda: (kernels_pallas, ""))
    run = FUNCTIONS[name]
    check(lambda s, lengths: run(s, lengths, implementation=implementation), shares)


@pytest.mark.slow
def test_outside_of_jit(shares):
    """No mesh has to be set where nothing but the function runs."""
    _, given, plain = shares
    found = FUNCTIONS["score"](*given)
    np.testing.assert_allclose(found, FUNCTIONS["score"](*plain), atol=1e-5)
    assert found.sharding.spec[0] == "pairs"


@pytest.mark.slow
def test_codes_are_looked_up_where_they_are(shares):
    mesh, *_ = shares
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 20, (8, 6)), rng.integers(0, 20, (8, 7))
    scores = jaxalign.Scoring().scores

    def run(query, target):
        lookup = query, target, scores
        return jaxalign.soft_score(lookup, gap_open=11.0, gap_extend=1.0)

    check(run, (mesh, jax.device_put(codes, NamedSharding(mesh, BATCH)), codes))


@pytest.mark.slow
def test_hard_alignments_too(shares):
    check(partners, shares)


@pytest.mark.slow
def test_costs_that_all_devices_share(shares):
    """Their gradient is the sum over the devices."""
    mesh, (s, lengths), plain = shares

    def loss(cost, s, lengths):
        return jaxalign.soft_score(s, lengths, gap_open=cost, gap_extend=0.25).sum()

    want = jax.grad(loss)(1.5, *plain)
    with jax.set_mesh(mesh):
        np.testing.assert_allclose(jax.grad(loss)(1.5, s, lengths), want, rtol=1e-5)

    def one(cost, s, lengths):
        return jax.grad(loss)(cost, s, lengths)

    # check_vma adds up what each device finds for the cost, which does not vary.
    specs = PartitionSpec(), BATCH, BATCH
    run = jax.shard_map(one, mesh=mesh, in_specs=specs, out_specs=PartitionSpec())
    np.testing.assert_allclose(jax.jit(run)(1.5, s, lengths), want, rtol=1e-5)
