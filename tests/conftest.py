"""Tests start strict: rank and dtype promotion are errors, so are warnings; four
virtual CPU devices. XLA must be told before jax is imported."""

import gc
import os
from itertools import count
from pathlib import Path

import pytest

os.environ["XLA_FLAGS"] = (
    os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=4"
)
os.environ.setdefault("JAX_NUMPY_RANK_PROMOTION", "raise")
os.environ.setdefault("JAX_NUMPY_DTYPE_PROMOTION", "strict")

MAPS = 2**15  # Linux lets a process have twice as many; a test adds up to 2,700
TESTS = count(1)


@pytest.fixture(autouse=True)
def few_programs():
    """A compiled program takes three memory maps or more, and XLA ends the process
    where the system refuses one: so it forgets its programs in time. Counting maps
    takes up to 0.05 s, hence after every eighth test only."""
    yield
    maps = Path("/proc/self/maps")
    if next(TESTS) % 8 == 0 and maps.exists() and maps.read_bytes().count(b"\n") > MAPS:
        import jax

        jax.clear_caches()
        gc.collect()
