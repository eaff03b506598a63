"""``AlignmentDistribution``: what the functions return, and what pytrees do."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxalign
from jaxalign import AlignmentDistribution
from jaxalign.errors import UsageError

S = np.random.default_rng(3).normal(size=(2, 4, 5)).astype(np.float32)
LENGTHS = np.array([[4, 5], [3, 2]], np.int32)
COSTS = {"gap_open": (1.5, 1.0), "gap_extend": 0.5}
CORRIDOR = np.array([0, 0, 1, 1]), np.array([1, 3, 4, 4])


def same(one, other):
    for x, y in zip(*map(jax.tree.leaves, (one, other)), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-6, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    "turn, options",
    [
        (0, {"mode": "local", "band": CORRIDOR}),
        (1, {"free_ends": ["query_end"], "adjacent_gaps": False, "temperature": 0.7}),
    ],
)
def test_methods_are_the_functions(turn, options):
    """Of a padded batch; each inside ``jit`` by one of the two kinds of options."""
    p = AlignmentDistribution(S, LENGTHS, **COSTS, **options)
    soft = partial(dict, **COSTS, **options)
    hard = {k: v for k, v in soft().items() if k != "temperature"}
    ends = {k: v for k, v in options.items() if k in ("mode", "free_ends")}
    key, partners = jax.random.key(5), np.full((2, 4), -1, np.int32)
    partners[:, 0] = 0
    posterior = jaxalign.soft_posterior(S, LENGTHS, **soft())
    t = options.get("temperature", 1.0)
    q = AlignmentDistribution(2 * S, LENGTHS, **COSTS, **options)
    want = {
        "log_partition": lambda: jaxalign.soft_score(S, LENGTHS, **soft()) / t,
        "marginals": lambda: posterior,
        "expected_gaps": lambda: jaxalign.expected_gaps(S, LENGTHS, **soft()),
        "entropy": lambda: jaxalign.alignment_entropy(S, LENGTHS, **soft()),
        "mode": lambda: jaxalign.hard_alignment(S, LENGTHS, **hard),
        "mea": lambda: jaxalign.mea_alignment(posterior, lengths=LENGTHS, **ends),
    }
    for name in [*want][turn::2]:
        same(jax.jit(lambda p, name=name: getattr(p, name)())(p), want[name]())
    log_p = jaxalign.alignment_log_prob(partners, S, LENGTHS, **soft())
    same(p.log_prob(partners), log_p)
    same(p.cross_entropy(partners), -log_p)
    same(p.sample(key, 3), jaxalign.sample_alignments(key, 3, S, LENGTHS, **soft()))
    same(p.top_k(2), jaxalign.k_best(2, S, LENGTHS, **hard))
    same(p.cross_entropy(q), q.entropy() + q.kl(p))
    assert (np.asarray(p.kl(p)) < 1e-5).all() and (np.asarray(p.kl(q)) > 0).all()


def test_a_pytree():
    """Through ``vmap``, and by ``tree.map``."""
    p = AlignmentDistribution(jnp.asarray(S), gap_open=1.5, gap_extend=0.5)
    leaves, tree = jax.tree.flatten(p)
    assert len(leaves) == 4 and jax.tree.unflatten(tree, leaves).support == p.support
    p = jax.tree.map(lambda x: jnp.broadcast_to(x, (2, *jnp.shape(x)[1:])), p)
    each = jax.eval_shape(jax.vmap(AlignmentDistribution.score), p)
    assert each.shape == (2,)


@pytest.mark.slow
def test_gradients_of_a_pytree():
    """Through ``jit`` and ``vmap``; a gradient is a distribution of gradients."""
    p = AlignmentDistribution(jnp.asarray(S), gap_open=1.5, gap_extend=0.5)
    p = jax.tree.map(lambda x: jnp.broadcast_to(x, (2, *jnp.shape(x)[1:])), p)
    each = jax.jit(jax.vmap(AlignmentDistribution.score))(p)
    slopes = jax.grad(lambda p: p.score().sum())(p)
    assert each.shape == (2,) and isinstance(slopes, AlignmentDistribution)
    np.testing.assert_allclose(slopes.similarity, p.marginals(), atol=1e-6)


def test_distributions_over_other_alignments_are_not_compared():
    p, q = (
        AlignmentDistribution(S, **COSTS, mode=mode) for mode in ("global", "local")
    )
    with pytest.raises(UsageError, match="over different alignments"):
        p.kl(q)
    with pytest.raises(UsageError, match="mode"):
        AlignmentDistribution(S, **COSTS, mode="nowhere")
    bands = AlignmentDistribution(S, **COSTS, band=CORRIDOR).support
    assert (
        hash(bands)
        and bands == AlignmentDistribution(S, **COSTS, band=CORRIDOR).support
    )
