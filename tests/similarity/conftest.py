"""Tests of compiled functions, whatever arrays they give them."""

import pytest

from jaxalign.similarity import small


@pytest.fixture(autouse=True)
def _compiled(request, monkeypatch):
    """Nothing is small, but in the tests of small problems."""
    if request.path.name != "test_small.py":
        monkeypatch.setattr(small, "MAX_LANES", -1)
