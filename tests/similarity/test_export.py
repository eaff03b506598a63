"""Functions of similarities under ``jax.export``, with sizes that are symbols."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

import jaxalign

COSTS = {"gap_open": (1.5, 1.0), "gap_extend": 0.5}
FUNCTIONS = {
    "score": jaxalign.soft_score,
    "scaled": partial(jaxalign.soft_score, implementation="scaled"),
    "posterior": jaxalign.soft_posterior,
    "gradient": lambda s, **options: jax.grad(
        lambda s: jaxalign.soft_score(s, **options).sum()
    )(s),
    "blocked": partial(jaxalign.soft_posterior, implementation="blocked"),
    "gaps": jaxalign.expected_gaps,
    "entropy": jaxalign.alignment_entropy,
    "best": jaxalign.hard_alignment,
    "best two": partial(jaxalign.k_best, 2),
    "probability": partial(jaxalign.alignment_log_prob, jnp.arange(5)),
    "divergence": lambda s, **options: jaxalign.kl_divergence(
        {"similarity": s, **options}, {"similarity": 2 * s, **options}
    ),
}


def same(function, s, sizes):
    """Export for these sizes; call with ``s``; compare with the function itself."""
    run = jax.jit(partial(function, **COSTS))
    shape = export.symbolic_shape(sizes)
    exported = export.export(run)(jax.ShapeDtypeStruct(shape, jnp.float32))
    values = zip(*map(jax.tree.leaves, (exported.call(s), run(s))), strict=True)
    for one, other in values:
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["score", "gradient", "blocked", "gaps", "best two", "divergence"]
)
def test_a_symbolic_batch(name):
    s = np.random.default_rng(1).normal(size=(3, 5, 6)).astype(np.float32)
    same(FUNCTIONS[name], s, "b, 5, 6")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["posterior", "best"])
def test_symbolic_lengths(name):
    s = np.random.default_rng(2).normal(size=(2, 4, 7)).astype(np.float32)
    same(FUNCTIONS[name], s, "b, m, n")
