"""LPT against the best schedule of all, found by brute force."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from jaxalign.pairs import pair_matrix
from jaxalign.pairs.cpu import partition
from jaxalign.pairs.pair_matrix import PairMatrix, pairs


def best(cells, devices):
    """The least makespan: branch and bound over every assignment."""
    cells, least = sorted(cells, reverse=True), [sum(cells)]

    def place(k, loads):
        if max(loads) >= least[0]:
            return
        if k == len(cells):
            least[0] = max(loads)
            return
        for load in set(loads):  # devices of one load are alike
            at = loads.index(load)
            place(k + 1, [*loads[:at], load + cells[k], *loads[at + 1 :]])

    place(0, [0] * devices)
    return least[0]


def pulled(cells, devices):
    """A second witness: time runs, and whoever is idle takes the heaviest left."""
    queue, ends = sorted(cells, reverse=True), [0] * devices
    while queue:
        first = ends.index(min(ends))
        ends[first] += queue.pop(0)
    return max(ends)


def bound(devices):
    return Fraction(4, 3) - Fraction(1, 3 * devices)


def test_best_is_the_best():
    cells = [7, 5, 4, 4, 3, 2]
    assignments = product(range(3), repeat=len(cells))
    loads = ([sum(c for c, d in zip(cells, a, strict=True) if d == k)
              for k in range(3)] for a in assignments)  # fmt: skip
    assert best(cells, 3) == min(map(max, loads))


def test_within_grahams_bound():
    rng, reached = np.random.default_rng(0), 0
    for _ in range(300):
        count, devices = rng.integers(1, 11), int(rng.integers(2, 5))
        cells = (np.exp(rng.normal(3, 1, count)) + 1).astype(int).tolist()
        found = pair_matrix.schedule(cells, devices)
        assert found.makespan == pulled(cells, devices)
        least = best(cells, devices)
        assert found.least <= least <= found.makespan <= bound(devices) * least
        reached += found.makespan > least
    assert reached  # or the bound was never at stake


@pytest.mark.parametrize("devices", [2, 3, 4])
def test_the_bound_is_reached(devices):
    """Graham's family: 2m - 1, 2m - 1, 2m - 2, 2m - 2 ... m + 1, m + 1, m, m, m."""
    cells = [x for x in range(2 * devices - 1, devices, -1) for _ in range(2)]
    cells += [devices] * 3
    least = best(cells, devices)
    assert least == 3 * devices
    assert pair_matrix.schedule(cells, devices).makespan == bound(devices) * least


def test_every_window_is_taken_once():
    cells = [3, 1, 2, 2, 9]
    made = pair_matrix.schedule(cells, 2)
    assert sorted(k for taken in made.windows for k in taken) == list(range(5))
    assert made.order == (4, 0, 2, 3, 1)
    assert sum(made.loads) == sum(cells)
    assert pair_matrix.schedule([], 3).makespan == 0
    assert "0 windows" in str(pair_matrix.schedule([], 3))


@pytest.mark.parametrize("kind", ["zip", "cross", "all"])
def test_estimates_hold_the_cells_of_a_piece(kind):
    lengths = np.random.default_rng(1).integers(0, 300, 60)
    job = PairMatrix(kind, lengths, lengths, paths=False)
    total = 0
    windows, single = partition.cut(job, 2**24)
    assert not single
    for piece in windows:
        wanted = pairs(job, piece)
        cells = sum(int(lengths[i] * lengths[j]) for i, j in wanted)
        assert cells <= pair_matrix.estimate(job, piece)
        total += cells
    assert total == job.cells


@pytest.mark.parametrize("devices", [1, 2, 3, 4])
@pytest.mark.parametrize("count", [0, 1, 2, 7, 100, 1000])
def test_lists_halve_and_end_together(count, devices):
    cells = sorted(np.random.default_rng(count).integers(50, 100, count))[::-1]
    pieces = list(enumerate(cells))
    lists = pair_matrix.lists(pieces, devices)
    assert sorted(piece for some in lists for piece in some) == pieces
    assert [len(some) for some in lists] == sorted(map(len, lists), reverse=True)
    idle = [0.0] * devices
    for some in lists:  # whoever is idle takes the next; the last device is slower
        k = int(np.argmin(idle))
        idle[k] += sum(c for _, c in some) * (1.1 if k == devices - 1 else 1)
    if count >= 100:
        assert max(idle) - min(idle) <= 1.1 * 2 * sum(c for _, c in lists[-1])
