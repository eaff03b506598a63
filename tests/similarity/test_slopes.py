"""Entropies, expected gaps and divergences have gradients, in little memory."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxalign

COSTS = {"gap_open": 1.5, "gap_extend": 0.25}


def entropy(s, o, t):
    costs = {"gap_open": o, "gap_extend": 0.25}
    return jaxalign.alignment_entropy(s, **costs, temperature=t)


def gaps(s, o, t):
    """With one cost of both sequences, and one of each."""
    costs = {"gap_open": o, "gap_extend": (0.25, 0.5)}
    opens, more = jaxalign.expected_gaps(s, **costs, temperature=t)
    return opens + 2.0 * more[0] - more[1]


def divergence(s, o, t):
    p = {"similarity": s, "gap_open": o, "gap_extend": 0.25}
    q = {"similarity": s * t, "gap_open": 1.0, "gap_extend": 0.5, "temperature": t}
    return jaxalign.kl_divergence(p, q) + jaxalign.kl_divergence(q, p)


def posterior(s, o, t):
    """Of two pairs, with one cost of each pair and one of both."""
    s, costs = jnp.stack([s, s.T.reshape(s.shape)]), jnp.stack([o, 0.5 * o])
    p = jaxalign.soft_posterior(s, gap_open=costs, gap_extend=o / 8, temperature=t)
    return jnp.sum(jnp.sin(p) * jnp.arange(1.0, 1.0 + p.size).reshape(p.shape))


def vectors(s, o, t):
    """The divergence of two products of embeddings."""
    p = {"similarity": (s, 2.0 * s), "gap_open": o, "gap_extend": 0.25}
    return jaxalign.kl_divergence(p, p | {"similarity": (s, s), "temperature": t})


@pytest.mark.slow
@pytest.mark.parametrize(
    "function, twice",
    [
        (entropy, True),
        (gaps, False),
        (divergence, False),
        (vectors, False),
        (posterior, True),
    ],
)
def test_gradients_in_both_modes(function, twice):
    """Against finite differences, in float64; of some, forward and a second time."""
    with jax.enable_x64(True):
        rng = np.random.default_rng(2)
        at = [jnp.asarray(rng.normal(size=(3, 4))), jnp.float64(1.4), jnp.float64(0.8)]
        along = [jnp.asarray(rng.normal(size=x.shape)) for x in at]

        def moved(h):
            return function(*(x + h * y for x, y in zip(at, along, strict=True)))

        value = jax.jit(moved)
        first = jax.jit(jax.grad(moved))
        slope = (value(1e-5) - value(-1e-5)) / 2e-5
        np.testing.assert_allclose(first(0.0), slope, atol=1e-8)
        if not twice:  # each program more compiles for ten seconds
            return
        np.testing.assert_allclose(jax.jit(jax.jacfwd(moved))(0.0), slope, atol=1e-8)
        curvature = (first(1e-5) - first(-1e-5)) / 2e-5
        second = jax.jit(jax.grad(jax.grad(moved)))(0.0)
        np.testing.assert_allclose(second, curvature, atol=1e-7)


@pytest.mark.slow
def test_posterior_forward_and_back():
    """Forward mode is that of the gradient of the score; reverse mode its transpose."""
    s, v, w = np.random.default_rng(3).normal(size=(3, 4, 5)).astype(np.float32)
    posterior = partial(jaxalign.soft_posterior, **COSTS)
    score = partial(jaxalign.soft_score, **COSTS)
    change = jax.jit(lambda s: jax.jvp(posterior, (s,), (v,))[1])(s)
    want = jax.jit(lambda s: jax.jvp(jax.grad(score), (s,), (v,))[1])(s)
    np.testing.assert_allclose(change, want, atol=1e-6)
    back = jax.jit(jax.grad(lambda s: jnp.vdot(posterior(s), w)))(s)
    assert abs(np.vdot(change, w) - np.vdot(back, v)) < 1e-5


def one_divergence(s, o, t):
    p = {"similarity": s, "gap_open": o, "gap_extend": 0.25, "temperature": t}
    return jaxalign.kl_divergence(p, p | {"similarity": s * s, "gap_open": 1.0})


@pytest.mark.slow
@pytest.mark.parametrize(
    "function, megabytes",
    [
        (entropy, 100),
        (gaps, 140),
        (one_divergence, 150),
    ],
)
def test_memory_of_gradients(function, megabytes):
    """At 2,000 x 2,000, a table of 16 MB; reverse mode through both passes needs 2,300
    to 4,100."""
    s = jax.ShapeDtypeStruct((2000, 2000), np.float32)
    f = partial(function, o=5.5, t=1.3)
    compiled = jax.jit(jax.grad(f)).lower(s).compile()
    assert compiled.memory_analysis().temp_size_in_bytes < megabytes * 1e6
