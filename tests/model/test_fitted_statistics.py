"""Lambda and K fitted to scores that are drawn from the distribution itself."""

import numpy as np
import pytest

from jaxalign.model.statistics import (
    NO_FIT,
    Fit,
    fit,
    fit_distance,
    fitted_bits,
    fitted_evalues,
    is_trustworthy,
)

LAMBDA, K = 0.18, 0.03


def drawn(seed, count=4000, m=250):
    """(scores, lengths): whole numbers, as scores are."""
    dice = np.random.default_rng(seed)
    lengths = dice.integers(40, 900, count)
    scores = np.log(K * m * lengths / dice.exponential(1, count)) / LAMBDA
    return np.rint(scores), lengths


@pytest.mark.parametrize("related", [0, 40, 800])
def test_the_parameters_come_back(related):
    dice, found = np.random.default_rng(1), []
    for seed in range(8):
        scores, lengths = drawn(seed)
        scores[:related] = dice.integers(140, 900, related)
        found.append(fit(scores, 250, lengths))
    rates, factors = np.array(found).T
    assert abs(rates.mean() / LAMBDA - 1) < 0.02 and np.ptp(rates) < 0.03
    assert abs(np.log(factors).mean() - np.log(K)) < 0.15


def test_nothing_is_fitted_to_too_little():
    assert fit([5] * 10, 20, [30] * 10) is NO_FIT
    assert fit([7] * 100, 20, [30] * 100) is NO_FIT
    assert fit([0] * 100, 20, [30] * 100) is NO_FIT
    assert np.isnan(fitted_evalues([3], [20], 500, NO_FIT)).all()


def test_bits_and_evalues_agree():
    found = Fit(np.array([0.2, 0.3]), np.array([0.02, 0.05]))
    score, m = [50, 60], [100, 200]
    want = np.array(m) * 5000 * 2.0 ** -fitted_bits(score, found)
    np.testing.assert_allclose(fitted_evalues(score, m, 5000, found), want)


@pytest.mark.parametrize("shorter", [0, 1, 2])
def test_clones_have_no_fit_and_no_overflow(shorter):
    """Scores that are all alike but for a few: K would be no number."""
    scores, lengths = np.full(1100, 6700.0), np.full(1100, 1273)
    scores[:shorter] -= 5
    lengths[:shorter] -= 1
    assert fit(scores, 1273, lengths) is NO_FIT
    assert not is_trustworthy(NO_FIT, scores, 1273, lengths)


@pytest.mark.parametrize("related, trusted", [(0, True), (40, True), (4000, False)])
def test_a_fit_to_related_sequences_is_not_trusted(related, trusted):
    scores, lengths = drawn(2)
    decoys, decoy_lengths = drawn(3, 200)
    scores[:related] = np.random.default_rng(4).normal(900, 40, related)
    estimate = fit(scores, 250, lengths)
    assert is_trustworthy(estimate, decoys, 250, decoy_lengths) == trusted
    assert (fit_distance(estimate, decoys, 250, decoy_lengths) < 0.15) == trusted


def test_the_distance_by_its_definition():
    scores, lengths = drawn(5, 90, 80)
    estimate = Fit(0.15, 0.04)
    largest = 0.0
    for x in scores:
        share = np.mean(
            [1 - np.exp(-0.04 * 80 * n * np.exp(-0.15 * x)) for n in lengths]
        )
        largest = max(largest, abs(share - np.mean(scores >= x)))
    assert fit_distance(estimate, scores, 80, lengths) == pytest.approx(largest)
