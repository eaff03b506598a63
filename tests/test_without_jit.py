"""``JAX_DISABLE_JIT=1``, with which people debug their own code, changes no result."""

import jax
import pytest
from test_read_once import CALLS, outcome

QUICK = {"align_all", "cluster", "hard_alignment", "soft_score"}


@pytest.fixture
def without_jit():
    """A function that turns JAX's compiler off, for this test alone."""
    yield lambda: jax.config.update("jax_disable_jit", True)
    jax.config.update("jax_disable_jit", False)


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize(
    "name",
    [x if x in QUICK else pytest.param(x, marks=pytest.mark.slow) for x in CALLS],
)
def test_no_result_needs_jit(name, without_jit):
    arguments, options = CALLS[name]
    want = outcome(name, arguments, options)
    assert not want.startswith("refused"), want
    without_jit()
    assert outcome(name, arguments, options) == want
