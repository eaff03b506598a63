"""Tests start strict: rank and dtype promotion are errors, so are warnings; four
virtual CPU devices. XLA must be told before jax is imported. Everything else is as
users have it: a test of what XLA compiles names an implementation, or ``compiled``."""

import os
import sys
from functools import cache

import pytest

os.environ["XLA_FLAGS"] = (
    os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=4"
)
# Tests change constants that programs are made of; few of them want the folder.
os.environ["JAXALIGN_CACHE_DIR"] = "off"
os.environ.setdefault("JAX_NUMPY_RANK_PROMOTION", "raise")
os.environ.setdefault("JAX_NUMPY_DTYPE_PROMOTION", "strict")
os.environ.pop("JAXALIGN_ROWS", None)
if "TEST_CORES" in os.environ:  # as on a machine that has so many
    CORES = set(range(int(os.environ["TEST_CORES"])))
    os.sched_getaffinity = lambda process: CORES


def pytest_runtest_setup(item):
    """What is marked ``gpu`` is skipped where there is none."""
    if item.get_closest_marker("gpu") and not _has_gpu():
        pytest.skip("JAX has no GPU here")


@cache
def _has_gpu() -> bool:
    import jax

    return any(device.platform == "gpu" for device in jax.devices())


@pytest.fixture
def compiled(monkeypatch):
    """Small jobs by what XLA compiles, as large ones; users get them by rows."""
    monkeypatch.setenv("JAXALIGN_ROWS", "off")


@pytest.fixture(autouse=True)
def few_programs():
    """All tests together compile more programs than a process may have."""
    yield
    from jaxalign.runtime.devices import maps_run_short

    if maps_run_short():
        import jax

        from jaxalign.runtime import programs

        programs.clear()
        jax.clear_caches()


@pytest.fixture(autouse=True)
def accesses_inside():
    """A kernel that leaves its arrays fails the test that ran it."""
    yield
    check = sys.modules.get("kernels_pallas.core.mosaic")
    if check and check.OUTSIDE:
        outside = list(dict.fromkeys(check.OUTSIDE))
        check.OUTSIDE.clear()
        pytest.fail("a kernel left its arrays:\n" + "\n".join(outside[:20]))
