"""Of a launch only the nearest pairs of each query come to the host: by fractions."""

from fractions import Fraction
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest

import jaxalign
import kernels_pallas
from jaxalign.model.alphabet import as_sequences
from jaxalign.model.identity import Filters
from jaxalign.pairs.gpu import device_arrays, device_job
from jaxalign.pairs.gpu.launches import cut
from jaxalign.pairs.pair_matrix import WholeJob
from jaxalign.pairs.plan import NearestOnly, Task

BARS = np.array([-1, 0, 3 / 8, 3 / 8, 1])


def lengths_of(rng, long):
    """Of queries and of targets; some are 0, and many are alike. The products of those
    of long ones and of matches need more than 31 bits."""
    m, n = rng.integers(0, 9, len(BARS)), rng.integers(0, 9, 150)
    if long:
        m, n[120:] = rng.integers(8000, 8191, len(m)), rng.integers(0, 280_000, 30)
    return m, np.append(n, [0, 0])


def launch_of(lengths, count, filters, nearest):
    """(job, ids, result) of a launch of everything, longest first, as a device has
    it."""
    alphabet, scoring = jaxalign.Scoring().alphabet, jaxalign.Scoring()
    sets = [as_sequences([np.zeros(n, np.uint8) for n in x], alphabet) for x in lengths]
    kind = "global", frozenset(), "identity"
    task = Task("cross", *sets, scoring, *kind, filters=filters, nearest=nearest)
    job = SimpleNamespace(task=task, sides=[device_job.load_sequences(x) for x in sets])
    order = [np.argsort(-x, kind="stable") for x in lengths]
    ids = [np.append(x, [-1, -1]).astype(np.int32) for x in order]
    i, j = np.broadcast_arrays(ids[0][:, None], ids[1][None, :])
    grid = {"score": i * 0, "max_identities": count[i, j].astype(np.int32)}
    grid = {name: jnp.asarray(x) for name, x in grid.items()}
    wanted = jnp.asarray((i >= 0) & (j >= 0))
    nothing = (None,) * 3
    return job, ids, device_arrays.LaunchResult(grid, None, wanted, *nothing)


def nearest_of(m, targets, counts, bar, kind, ratio):
    """The targets of a query that reach a bar, the nearest first."""
    reaching = []
    for k, (n, count) in enumerate(zip(targets, counts, strict=True)):
        below = {"longer": max(m, n), "shorter": min(m, n), "mean": Fraction(m + n, 2)}
        low, high = sorted((m, n))
        if below[kind] and (not ratio or Fraction(low, high) >= Fraction(ratio)):
            identity = Fraction(count) / below[kind]
            if identity >= Fraction(bar):
                reaching.append((-identity, k))
    return [k for _, k in sorted(reaching)]


SLOW = pytest.mark.slow
KINDS = (
    ("longer", 0.01),
    pytest.param("shorter", 0, marks=SLOW),
    pytest.param("mean", 0, marks=SLOW),
)


@pytest.mark.parametrize("top", [1, 3, 300])
@pytest.mark.parametrize("kind, ratio", KINDS)
@pytest.mark.parametrize("long", [False, True], ids=["short", "long"])
def test_the_nearest_of_a_launch_come(long, kind, ratio, top):
    """… and few others: of equals the first, and what no float tells apart."""
    rng = np.random.default_rng(top)
    m, n = lengths_of(rng, long)
    least = np.minimum(m[:, None], n[None, :])
    count = least - rng.integers(0, 3, least.shape) * rng.integers(0, 2, least.shape)
    count = np.maximum(count, 0)
    filters = Filters(None, 0.0, kind, min_length_ratio=ratio or None)
    nearest = NearestOnly(top, BARS)
    job, ids, result = launch_of((m, n), count, filters, nearest)
    at, columns = device_arrays.columns_to_host(job, ids, False, result)
    row, column = np.divmod(at, len(ids[1]))
    query, target = ids[0][row], ids[1][column]
    assert columns["max_identities"].tolist() == count[query, target].tolist()
    assert len({*zip(query, target, strict=True)}) == len(at)
    for i, bar in enumerate(BARS.tolist()):
        sides = int(m[i]), n.tolist(), count[i].tolist()
        every = nearest_of(*sides, bar, kind, ratio)
        coming = set(target[query == i].tolist())
        assert {*every[:top]} <= coming <= {*every}
        if top <= device_arrays.NEAREST_BINS:
            # Two empty ones begin where the one after them does.
            assert len(coming) <= top * -(-len(n) // device_arrays.NEAREST_BINS) + 2


def test_of_thousands_of_equals_few_come():
    """Copies, and sequences that have nothing in common."""
    m, n = np.full(len(BARS), 9), np.full(3000, 9)
    for count in (0, 9):
        counts = np.full((len(m), len(n)), count)
        for top in (1, 3):
            nearest = NearestOnly(top, np.zeros(len(m)))
            filters = Filters(None, 0.0, "longer")
            job, ids, result = launch_of((m, n), counts, filters, nearest)
            at, _ = device_arrays.columns_to_host(job, ids, False, result)
            row, column = np.divmod(at, len(ids[1]))
            assert np.bincount(row).tolist() == [top] * len(m)
            assert {*ids[1][column].tolist()} == {*range(top)}, "the first of them"


def test_launches_are_large_though_targets_are_long():
    """A million pairs, which take a GPU longer than its host."""
    scoring = jaxalign.Scoring()
    sets = [
        as_sequences([np.zeros(n, np.uint8) for n in x], scoring.alphabet)
        for x in ([200] * 64, [3000, *[9] * 20_000])
    ]
    kind = "global", frozenset(), "identity"
    whole = WholeJob((210, 3000), 10**13, 20_001, 2**24)
    nearest = NearestOnly(1, np.zeros(64))
    task = Task("cross", *sets, scoring, *kind, whole=whole, nearest=nearest)
    launches, beyond = cut(task, kernels_pallas, device_job.LAUNCH_BYTES)
    assert launches[0].pairs == 2**20 and not beyond
