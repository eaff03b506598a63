"""A band equals minus infinity outside of it: values, gradients, partners."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxalign

ENDS = {"mode": "global", "free_ends": ("query_start", "target_end")}
FREE = {"mode": "semiglobal"}
APART = {"mode": "global", "free_ends": ("target_start",), "adjacent_gaps": False}
MODES = [{"mode": "local"}, {"mode": "global"}, ENDS, FREE, APART]
# Padded shape, lengths, half width.
SHAPES = [((6, 6), (6, 6), 1), ((7, 11), (5, 11), 2), ((9, 5), (9, 4), 2)]
SHAPES += [((8, 8), (0, 3), 1)]


def model(shape, lengths, band):
    """Similarity and costs with a band, and the same with infinities outside of it."""
    rng = np.random.default_rng(sum(lengths) + band)
    rows, (m, n) = shape[0], lengths
    s = rng.normal(size=shape).astype(np.float32)
    by_row = rng.uniform(0.5, 1.5, rows).astype(np.float32)
    i, j = np.indices(shape)
    inside = np.abs((2 * i + 1) * n - (2 * j + 1) * m) <= band * (m + n)
    opening = np.where(inside, by_row[:, None], np.inf), np.where(inside, 1.25, np.inf)
    more = np.where(inside, 0.25, np.inf)
    costs = {"gap_open": (by_row, 1.25), "gap_extend": 0.25}
    infinite = {"gap_open": opening, "gap_extend": (more, more)}
    return s, costs, np.where(inside, s, -np.inf), infinite


CASES = [
    pytest.param(*shape, mode, marks=pytest.mark.slow)
    for shape in SHAPES
    for mode in MODES
]


def gradients(costs, names, lengths, **options):
    """Score and gradients by similarity and costs, as one program."""

    def score(s, opening):
        some = dict(costs, gap_open=opening)
        return jaxalign.soft_score(s, lengths, **some, **options)

    return jax.jit(jax.value_and_grad(score, names))


@pytest.mark.parametrize("mode", MODES[:2])
def test_one_gradient(mode):
    """The posterior of the band by the gradient of the full table."""
    s, costs, outside, infinite = model((7, 11), (5, 11), 2)
    options = dict(lengths=(5, 11), **mode)
    found = jax.jit(partial(jaxalign.soft_posterior, band=2, **costs, **options))(s)
    want = jax.jit(partial(jaxalign.soft_posterior, **infinite, **options))(outside)
    np.testing.assert_allclose(found, want, atol=1e-6)


@pytest.mark.parametrize("shape, lengths, band, mode", CASES)
def test_a_band_is_minus_infinity_outside(shape, lengths, band, mode):
    s, costs, outside, infinite = model(shape, lengths, band)
    names = (0, 1)
    value, want = gradients(infinite, names, lengths, **mode)(
        outside, infinite["gap_open"]
    )
    by_residue = want[1][0].sum(1), want[1][1].sum()
    for implementation in ("log", "blocked"):
        options = mode | {"band": band, "implementation": implementation}
        run = gradients(costs, names, lengths, **options)
        found, (pairs, opens) = run(s, costs["gap_open"])
        np.testing.assert_allclose(found, value, atol=1e-5)
        np.testing.assert_allclose(pairs, want[0], atol=1e-5)
        for x, y in zip(opens, by_residue, strict=True):
            np.testing.assert_allclose(x, y, atol=1e-5)
    hard = jaxalign.hard_alignment(s, lengths, **costs, **mode, band=band)
    best = jaxalign.hard_alignment(outside, lengths, **infinite, **mode)
    np.testing.assert_allclose(hard.score, best.score, atol=1e-5)
    assert hard.partners.tolist() == best.partners.tolist()
    assert hard.spans.tolist() == best.spans.tolist()
    if not np.isfinite(hard.score):
        return
    given = hard.partners, s, lengths
    log_p = jaxalign.alignment_log_prob(*given, **costs, **mode, band=band)
    np.testing.assert_allclose(log_p, hard.score - value, atol=1e-5)


def test_partners_beyond_the_band_are_no_alignment():
    flat, costs = np.zeros((6, 6), np.float32), {"gap_open": 1, "gap_extend": 1}
    far = np.array([3, 4, 5, -1, -1, -1])
    log_p = partial(jaxalign.alignment_log_prob, far, flat, mode="local", **costs)
    assert np.isfinite(log_p()) and np.isneginf(log_p(band=2))


def test_a_batch_with_a_band_is_its_pairs():
    s = np.random.default_rng(4).normal(size=(3, 9, 8)).astype(np.float32)
    lengths = np.array([[9, 8], [4, 8], [9, 3]], np.int32)
    options = {"gap_open": 1.5, "gap_extend": 0.5, "mode": "local", "band": 2}
    p = jaxalign.soft_posterior(s, lengths, **options)
    hard = jaxalign.hard_alignment(s, lengths, **options)
    for k in range(3):
        alone = jaxalign.soft_posterior(s[k], lengths[k], **options)
        np.testing.assert_allclose(p[k], alone, atol=1e-6)
        one = jaxalign.hard_alignment(s[k], lengths[k], **options)
        assert hard.partners[k].tolist() == one.partners.tolist()


@pytest.mark.parametrize(
    "options, text",
    [
        ({"band": 0}, "at least 1"),
        ({"band": 1.5}, "whole number"),
        ({"band": 2, "gap_open": np.ones((6, 6))}, "not by cell"),
        ({"band": 2, "implementation": "scaled"}, "log or blocked"),
    ],
)
def test_bands_that_are_refused(options, text):
    costs = {"gap_open": 1.0, "gap_extend": 1.0}
    with pytest.raises(jaxalign.UsageError, match=text):
        jaxalign.soft_score(np.zeros((6, 6), np.float32), **(costs | options))


@pytest.mark.slow
def test_a_band_saves_memory():
    s = jax.ShapeDtypeStruct((2000, 2000), jnp.float32)
    costs = {"gap_open": 11.0, "gap_extend": 1.0, "band": 128}
    run = jax.jit(jax.grad(partial(jaxalign.soft_score, **costs)))
    assert run.lower(s).compile().memory_analysis().temp_size_in_bytes < 12e6
