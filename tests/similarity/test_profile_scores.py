"""Similarities of profiles, against sums over letters."""

import jax
import numpy as np
import pytest

import jaxalign
from jaxalign.errors import UsageError

SCORES = jaxalign.Scoring().scores.astype(float)


def profiles():
    rng = np.random.default_rng(0)
    return (rng.dirichlet(np.ones(24) / 4, n).astype(np.float32) for n in (3, 4))


@pytest.mark.parametrize("method", ["average", "log_average"])
def test_means_over_letters(method):
    a, b = profiles()
    unit = 0.3
    want = np.zeros((3, 4))
    for i, j in np.ndindex(3, 4):
        for x, y in np.ndindex(24, 24):
            score = SCORES[x, y]
            value = score if method == "average" else np.exp(unit * score)
            want[i, j] += float(a[i, x]) * float(b[j, y]) * value
    if method == "log_average":
        want = np.log(want) / unit
    shown = jaxalign.profile_similarity(a, b, method=method, unit=unit)
    np.testing.assert_allclose(shown, want, rtol=1e-5, atol=1e-5)
    batch = jaxalign.profile_similarity(a[None], b[None], method=method, unit=unit)
    np.testing.assert_allclose(batch[0], shown, rtol=1e-5)


@pytest.mark.parametrize("method", ["average", "log_average"])
def test_single_letters_have_the_matrix(method):
    single = np.eye(24, dtype=np.float32)
    shown = jaxalign.profile_similarity(single, single, method=method)
    np.testing.assert_allclose(shown, SCORES, atol=1e-4)


def test_padding_is_zero_with_its_gradient():
    a, b = profiles()
    a[2] = 0

    def total(a):
        return jaxalign.profile_similarity(a, b).sum()

    assert (jaxalign.profile_similarity(a, b)[2] == 0).all()
    gradient = jax.grad(total)(a)
    assert np.isfinite(gradient).all() and (gradient[2] == 0).all()


def test_refused():
    a, b = profiles()
    with pytest.raises(UsageError, match="24"):
        jaxalign.profile_similarity(a[:, :20], b)
    with pytest.raises(UsageError, match="log_average"):
        jaxalign.profile_similarity(a, b, method="dot")
