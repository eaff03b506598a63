"""A band equals minus infinity outside of it: values, gradients, partners."""

from functools import partial
from itertools import cycle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxalign
from jaxalign.similarity.arguments import Gap, ModeRules
from jaxalign.similarity.band import BandTable
from jaxalign.similarity.costs import Weights, no_overhang

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


# Each mode with one of the shapes, in turn.
CASES = [(*shape, mode) for shape, mode in zip(cycle(SHAPES), MODES, strict=False)]


def gradients(costs, names, lengths, **options):
    """Score and gradients by similarity and costs, as one program."""

    def score(s, opening):
        some = dict(costs, gap_open=opening)
        return jaxalign.soft_score(s, lengths, **some, **options)

    return jax.jit(jax.value_and_grad(score, names))


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES[:2])
def test_one_gradient(mode):
    """The posterior of the band by the gradient of the full table."""
    s, costs, outside, infinite = model((7, 11), (5, 11), 2)
    options = dict(lengths=(5, 11), **mode)
    found = jax.jit(partial(jaxalign.soft_posterior, band=2, **costs, **options))(s)
    want = jax.jit(partial(jaxalign.soft_posterior, **infinite, **options))(outside)
    np.testing.assert_allclose(found, want, atol=1e-6)


def same_alignment(found, want):
    """Two hard alignments are one."""
    np.testing.assert_allclose(found.score, want.score, atol=1e-5)
    assert found.partners.tolist() == want.partners.tolist()
    assert found.spans.tolist() == want.spans.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("shape, lengths, band, mode", CASES)
def test_a_band_is_minus_infinity_outside(shape, lengths, band, mode):
    s, costs, outside, infinite = model(shape, lengths, band)
    names = (0, 1)
    value, want = gradients(infinite, names, lengths, **mode)(
        outside, infinite["gap_open"]
    )
    by_residue = want[1][0].sum(1), want[1][1].sum()
    implementation = ("log", "blocked")[sum(shape) // 2 % 2]
    options = mode | {"band": band, "implementation": implementation}
    run = gradients(costs, names, lengths, **options)
    found, (pairs, opens) = run(s, costs["gap_open"])
    np.testing.assert_allclose(found, value, atol=1e-5)
    np.testing.assert_allclose(pairs, want[0], atol=1e-5)
    for x, y in zip(opens, by_residue, strict=True):
        np.testing.assert_allclose(x, y, atol=1e-5)
    hard = jaxalign.hard_alignment(s, lengths, **costs, **mode, band=band)
    best = jaxalign.hard_alignment(outside, lengths, **infinite, **mode)
    same_alignment(hard, best)
    if not np.isfinite(hard.score):
        return
    given = hard.partners, s, lengths
    log_p = jaxalign.alignment_log_prob(*given, **costs, **mode, band=band)
    np.testing.assert_allclose(log_p, hard.score - value, atol=1e-5)


@pytest.mark.slow
def test_of_equal_ends_in_a_band_the_first_row_counts():
    """Whatever diagonal is filled first."""
    s = np.full((4, 4), -9, np.float32)
    s[1, 0] = s[0, 2] = 5
    costs = dict(gap_open=9, gap_extend=9, mode="local")
    hard = jaxalign.hard_alignment(s, band=2, **costs)
    same_alignment(hard, jaxalign.hard_alignment(s, **costs))
    assert hard.partners.tolist() == [2, -1, -1, -1]


@pytest.mark.slow
def test_of_equal_overhangs_in_a_band_the_targets_are_outside():
    s = np.full((3, 3), -9, np.float32)
    s[1, 1] = 20
    costs = dict(gap_open=2, gap_extend=1, mode="semiglobal")
    hard = jaxalign.hard_alignment(s, band=1, **costs)
    assert hard.score == 16 and hard.spans.tolist() == [0, 3, 1, 2]


@pytest.mark.slow
def test_partners_beyond_the_band_are_no_alignment():
    flat, costs = np.zeros((6, 6), np.float32), {"gap_open": 1, "gap_extend": 1}
    far = np.array([3, 4, 5, -1, -1, -1])
    log_p = partial(jaxalign.alignment_log_prob, far, flat, mode="local", **costs)
    assert np.isfinite(log_p()) and np.isneginf(log_p(band=2))


@pytest.mark.slow
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


def corridor(rng, rows, columns):
    """First and last columns of rows, of any chain of blocks."""
    first, last = (np.sort(rng.integers(0, columns, rows)) for _ in range(2))
    return np.maximum(first - 2, 0), np.maximum(first, last)


def limited(rng, shape, rows):
    """Similarity, costs, and those with infinities outside of a band by rows."""
    s = rng.normal(size=shape).astype(np.float32)
    first, last = rows
    j = np.arange(shape[1])
    inside = (first[:, None] <= j) & (j <= last[:, None])
    opening = rng.uniform(0.5, 1.5, shape[0]).astype(np.float32)
    by_cell = np.where(inside, opening[:, None], np.inf), np.where(inside, 1.25, np.inf)
    more = np.where(inside, 0.25, np.inf)
    costs = {"gap_open": (opening, 1.25), "gap_extend": 0.25}
    infinite = {"gap_open": by_cell, "gap_extend": (more, more)}
    return s, costs, np.where(inside, s, -np.inf), infinite


ROWS = [(0, (9, 7), (9, 7)), (1, (7, 11), (5, 9)), (2, (5, 6), (1, 6))]
ROWS += [(3, (8, 5), (8, 0))]
BY_ROWS = [(*row, mode) for row, mode in zip(cycle(ROWS), MODES[::-1], strict=False)]


@pytest.mark.slow
@pytest.mark.parametrize("seed, shape, lengths, mode", BY_ROWS)
def test_a_band_by_rows_is_minus_infinity_outside(seed, shape, lengths, mode):
    rng = np.random.default_rng(seed)
    rows = corridor(rng, *shape)
    s, costs, outside, infinite = limited(rng, shape, rows)
    names = 0
    run = gradients(infinite, names, lengths, **mode)
    value, want = run(outside, infinite["gap_open"])
    options = mode | {"band": rows, "implementation": ("log", "blocked")[seed % 2]}
    found, pairs = gradients(costs, names, lengths, **options)(s, costs["gap_open"])
    np.testing.assert_allclose(found, value, atol=1e-5)
    np.testing.assert_allclose(pairs, want, atol=1e-5)
    hard = jaxalign.hard_alignment(s, lengths, **costs, **mode, band=rows)
    best = jaxalign.hard_alignment(outside, lengths, **infinite, **mode)
    same_alignment(hard, best)
    if np.isfinite(hard.score):
        given = hard.partners, s, lengths
        log_p = jaxalign.alignment_log_prob(*given, **costs, **mode, band=rows)
        np.testing.assert_allclose(log_p, hard.score - value, atol=1e-5)


@pytest.mark.slow
def test_bands_by_rows_of_a_batch():
    """Each pair has its own, and one of the width of a band is that band."""
    rng = np.random.default_rng(7)
    s = rng.normal(size=(2, 9, 9)).astype(np.float32)
    i = np.arange(9)
    near = np.maximum(i - 2, 0), i + 2
    other = np.maximum(i - 4, 0), np.maximum(i, 1)
    rows = tuple(np.stack(both) for both in zip(near, other, strict=True))
    options = {"gap_open": 1.5, "gap_extend": 0.5}
    run = jax.jit(partial(jaxalign.hard_alignment, band=rows, **options))
    found, alone = run(s), partial(jaxalign.hard_alignment, **options)
    for k, band in enumerate((2, other)):
        one = alone(s[k], band=band)
        assert found.score[k] == one.score
        assert found.partners[k].tolist() == one.partners.tolist()
    scores = (jaxalign.soft_score(s[0], band=band, **options) for band in (near, 2))
    np.testing.assert_allclose(*scores, atol=1e-5)


@pytest.mark.parametrize(
    "options, text",
    [
        ({"band": (np.zeros(6, int), np.zeros(5, int))}, "integers"),
        ({"band": (np.zeros(6), np.zeros(6))}, "integers"),
        ({"band": (np.arange(6)[::-1], np.full(6, 5))}, "never decrease"),
        ({"band": (np.arange(6) - 1, np.full(6, 5))}, "of 0 or more"),
        ({"band": 0}, "at least 1"),
        ({"band": 1.5}, "whole number"),
        ({"band": 2, "gap_open": np.ones((6, 6))}, "by cell: give"),
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


@pytest.mark.slow
@pytest.mark.parametrize(
    "shape, lengths, band",
    [
        ((70, 90), (60, 90), 7),
        ((200, 30), (200, 30), 4),
        ((150, 40), (1, 40), 5),
        ((90, 80), (90, 80), None),
    ],
)
def test_sums_of_lanes_by_row_and_by_column(shape, lengths, band):
    """Of several blocks of diagonals: what stands in the same row, added up."""
    rows = np.arange(shape[0], dtype=np.int32)
    edges = (None, None) if band else (np.maximum(rows - 7, 0), np.minimum(rows, 72))
    true, zero = jnp.bool_(True), jnp.float32(0)
    rules = ModeRules(*map(jnp.int32, lengths), *[true] * 6, *map(_array, edges))
    gap, hang = Gap(zero, zero), no_overhang(shape, jnp.float32)
    weights = Weights(jnp.zeros(shape), gap, gap, hang)
    table = BandTable(weights, rules, band or 15)
    count = sum(shape) + 1
    lanes = np.random.default_rng(9).integers(-9, 10, (count, table.rows))
    *places, inside = map(np.asarray, table.places(jnp.arange(count)))
    for axis, size in enumerate(shape):
        want = np.zeros(size + 1)
        within = (places[axis] >= 0) & (places[axis] <= size)
        np.add.at(want, places[axis][within], lanes[within])
        sums = jax.jit(partial(table.as_vector, size=size + 1, axis=axis))
        np.testing.assert_array_equal(sums(jnp.float32(lanes)), want)
    want = np.zeros(shape)
    want[tuple(x[inside] - 1 for x in places)] = lanes[inside]
    found = jax.jit(table.as_table)(jnp.float32(lanes))
    np.testing.assert_array_equal(found, want)


def _array(x):
    return None if x is None else jnp.asarray(x)
