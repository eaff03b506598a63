"""Numbers in order by threads, and the edges and matrices made of them."""

import numpy as np
import pytest
from scipy.sparse import coo_array, csr_array

from jaxalign.repertoire import result
from jaxalign.words import edges
from jaxalign.words.edges import EdgeSet, least


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("sizes", [(), (0,), (7,), (500, 0, 1, 4000)], ids=str)
def test_ranges_follow_each_other(sizes, threads):
    """And numbers that share a unit are in one range, however many they are."""
    draw = np.random.default_rng(len(sizes))
    parts = [draw.integers(0, 300, n).astype(np.uint64) << np.uint64(3) for n in sizes]
    parts = [part | draw.integers(0, 8, len(part)).astype(np.uint64) for part in parts]
    every = np.sort(np.concatenate([np.zeros(0, np.uint64), *parts]))
    ranges = edges.in_order([part.copy() for part in parts], 3, threads)
    assert np.concatenate([np.zeros(0, np.uint64), *ranges]).tolist() == every.tolist()
    units = [{*(part >> np.uint64(3)).tolist()} for part in ranges]
    assert sum(map(len, units)) == len(set().union(*units))


def random_edges(seed: int, count: int, size: int) -> list[EdgeSet]:
    """Parts of edges i < j, many of them twice with two distances."""
    draw = np.random.default_rng(seed)
    i, j = np.sort(draw.choice(size, (count, 2)), axis=1).astype(np.int32).T
    distance = draw.integers(0, 21, count).astype(np.int32)
    near = i < j
    sides = i[near], j[near], distance[near]
    cuts = np.sort(draw.integers(0, near.sum() + 1, 4))
    return [EdgeSet(*some) for some in zip(*(np.split(x, cuts) for x in sides))]  # noqa: B905


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("size", [30, 2**31 - 2])
def test_the_least_distance_of_each_pair_is_kept(size, threads):
    """Also where an edge does not fit one number of 64 bits."""
    parts = random_edges(3, 4000, 30)
    parts = [EdgeSet(x.i + size - 30, x.j + size - 30, x.distance) for x in parts]
    expected: dict[tuple, int] = {}
    for part in parts:
        for i, j, d in zip(*(x.tolist() for x in part.sides), strict=True):
            expected[i, j] = min(d, expected.get((i, j), 99))
    edges = least(parts, threads)
    found = zip(*(x.tolist() for x in edges.sides), strict=True)
    assert [*found] == [(*pair, d) for pair, d in sorted(expected.items())]
    assert least([], threads).sides[0].tolist() == []


@pytest.mark.parametrize("count", [0, 1, 3000])
def test_matrices_are_those_of_scipy(monkeypatch, count):
    monkeypatch.setattr(result, "EDGES_AT_ONCE", 100)
    edges = least(random_edges(5, count, 90))
    i, j, distance = edges.sides
    both = np.concatenate([j, i]), np.concatenate([i, j])
    expected = csr_array(coo_array((np.tile(distance, 2), both), shape=(90, 90)))
    for threads in (1, result.MANY_THREADS):
        matrix = result.matrix_of(edges, 90, 90, True, threads)
        for name in ("indptr", "indices", "data"):
            ours, theirs = getattr(matrix, name), getattr(expected, name)
            assert ours.tolist() == theirs.tolist() and ours.dtype == theirs.dtype
