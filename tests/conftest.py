"""Tests start strict: rank and dtype promotion are errors, so are warnings; four
virtual CPU devices. XLA must be told before jax is imported. Small jobs are compiled
too, but in the tests that run as users do."""

import os
import sys

import pytest

os.environ["XLA_FLAGS"] = (
    os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=4"
)
# Tests change constants that programs are made of; few of them want the folder.
os.environ["JAXALIGN_CACHE_DIR"] = "off"
os.environ.setdefault("JAX_NUMPY_RANK_PROMOTION", "raise")
os.environ.setdefault("JAX_NUMPY_DTYPE_PROMOTION", "strict")
os.environ["JAXALIGN_ROWS"] = "off"  # most tests are of what XLA compiles

# Tests that run as users do: small jobs by rows.
AS_USERS = {
    "test_api.py",
    "test_cli.py",
    "test_docs.py",
    "test_entered_files.py",
    "test_inputs.py",
    "test_options.py",
    "cli/test_search.py",
    "test_small_jobs.py",
}


@pytest.fixture(autouse=True)
def as_users_run(request, monkeypatch):
    """Small jobs by rows, as in a new process, in the tests of ``AS_USERS``."""
    if any(request.path.match(name) for name in AS_USERS):
        from jaxalign.pairs import small_jobs

        monkeypatch.delenv("JAXALIGN_ROWS")
        for name, fresh in (("_sizes_ready", set()), ("_seconds_by_rows", {})):
            monkeypatch.setattr(small_jobs, name, fresh)


@pytest.fixture(autouse=True)
def few_programs():
    """All tests together compile more programs than a process may have."""
    yield
    from jaxalign.runtime.memory import maps_run_short

    if maps_run_short():
        import jax

        from jaxalign.runtime import programs

        programs.clear()
        jax.clear_caches()


@pytest.fixture(autouse=True)
def accesses_inside():
    """A kernel that leaves its arrays fails the test that ran it."""
    yield
    check = sys.modules.get("kernels_pallas.core.access_check")
    if check and check.OUTSIDE:
        outside = list(dict.fromkeys(check.OUTSIDE))
        check.OUTSIDE.clear()
        pytest.fail("a kernel left its arrays:\n" + "\n".join(outside[:20]))
