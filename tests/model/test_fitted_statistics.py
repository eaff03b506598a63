"""Lambda and K fitted to scores that are drawn from the distribution itself."""

import numpy as np
import pytest

from jaxalign.model.fitted_statistics import NO_FIT, Fit, bits, evalues, fit

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
    assert np.isnan(evalues([3], [20], 500, NO_FIT)).all()


def test_bits_and_evalues_agree():
    found = Fit(np.array([0.2, 0.3]), np.array([0.02, 0.05]))
    score, m = [50, 60], [100, 200]
    want = np.array(m) * 5000 * 2.0 ** -bits(score, found)
    np.testing.assert_allclose(evalues(score, m, 5000, found), want)
