"""Smallest vertex covers: of the links across parts, the ends that have to go.

Every link needs an end in the cover, and the sum of weights is to be least. In a
bipartite graph, as between two parts, a largest flow gives the least one (König;
weighted: the cut of least capacity). Else the linear program has a solution of 0, 1/2
and 1, which a flow of the bipartite double cover gives; its 0 and 1 are those of a
least cover (Nemhauser and Trotter 1975), and its value is a bound from below. The
halves are covered greedily, and what turns out superfluous leaves the cover again.

``fewest_removed`` is a bound that every split of a set meets, beside what a search
takes out.
"""

from dataclasses import dataclass
from math import ceil

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import (
    breadth_first_order,
    connected_components,
    maximum_flow,
)

UNBOUNDED = 2**30  # a capacity that no cut has; weights add up to less
CLIQUES = 20  # vertices from which a clique is grown


@dataclass(frozen=True, eq=False)
class Cover:
    """Vertices that hold an end of every link.

    Attributes
    ----------
    inside : bool (n,)
    bound : int
        No cover has a smaller sum of weights.
    """

    inside: np.ndarray
    bound: int


def least_cover(i: np.ndarray, j: np.ndarray, weight: np.ndarray) -> Cover:
    """A vertex cover of links (i, j) of small weight; the least where the graph is
    bipartite.

    Parameters
    ----------
    i, j : integers (links,)
        No link is of a vertex with itself.
    weight : integers (n,), 1 or more
    """
    count = len(weight)
    inside = np.zeros(count, bool)
    if not len(i):
        return Cover(inside, 0)
    first, second = _sides(count, i, j)
    even = first[i] != second[i]  # of a bipartite component
    chosen, bound = _of_bipartite(i[even], j[even], first < second, weight)
    inside |= chosen
    ones, halves, twice = _of_program(i[~even], j[~even], weight)
    inside |= ones
    left = ~even & halves[i] & halves[j]
    inside |= _greedily(i[left], j[left], weight)
    return Cover(inside, bound + ceil(twice / 2))


def _sides(count: int, i: np.ndarray, j: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Components of the two copies of every vertex in the bipartite double cover: they
    differ where the vertex is in a bipartite component, whose sides they tell apart."""
    graph = _graph(2 * count, [i, j], [j + count, i + count])
    labels = connected_components(graph, directed=False)[1]
    return labels[:count], labels[count:]


def _of_bipartite(
    i: np.ndarray, j: np.ndarray, left: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, int]:
    """The least cover, and its weight; ``left`` tells the sides apart."""
    a, b = np.where(left[i], i, j), np.where(left[i], j, i)
    near, far, value = _cut(len(weight), a, b, weight)
    inside = np.zeros(len(weight), bool)
    inside[a] = ~near[a]
    inside[b] = far[b]
    return inside, value


def _of_program(
    i: np.ndarray, j: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray, int]:
    """(vertices at 1, at 1/2, twice the value) of the linear program."""
    count = len(weight)
    a, b = np.concatenate([i, j]), np.concatenate([j, i])
    near, far, value = _cut(count, a, b, weight)
    touched = np.zeros(count, bool)
    touched[a] = True
    parts = (touched & ~near).astype(int) + (touched & far)
    return parts == 2, parts == 1, value


def _cut(
    count: int, a: np.ndarray, b: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray, int]:
    """The least cut of source - a - b - sink: (copies of a on the side of the source,
    copies of b there, its capacity)."""
    none = np.zeros(count, bool)
    if not len(a):
        return none, none, 0
    source, sink = 2 * count, 2 * count + 1
    of_a, of_b = np.unique(a), np.unique(b)
    rows = np.concatenate([np.full(len(of_a), source), a, of_b + count])
    columns = np.concatenate([of_a, b + count, np.full(len(of_b), sink)])
    inner = np.full(len(a), UNBOUNDED)
    capacities = np.concatenate([weight[of_a], inner, weight[of_b]]).astype(np.int32)
    shape = (2 * count + 2,) * 2
    graph = csr_array(coo_array((capacities, (rows, columns)), shape=shape))
    flow = maximum_flow(graph, source, sink)
    left = csr_array(graph - flow.flow)
    left.data = np.maximum(left.data, 0)
    left.eliminate_zeros()
    reached = np.zeros(2 * count + 2, bool)
    reached[breadth_first_order(left, source, return_predecessors=False)] = True
    return reached[:count], reached[count : 2 * count], int(flow.flow_value)


def _greedily(i: np.ndarray, j: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """A cover: the vertex with the most open links for its weight goes in, again and
    again; then each leaves whose links have another end there, the heaviest first."""
    count = len(weight)
    inside = np.zeros(count, bool)
    graph = _graph(count, [i, j], [j, i])
    open_links = np.diff(graph.indptr).astype(np.float64)
    while open_links.any():
        chosen = int(np.argmax(open_links / weight))
        inside[chosen], open_links[chosen] = True, 0
        near = graph.indices[graph.indptr[chosen] : graph.indptr[chosen + 1]]
        open_links[near] -= ~inside[near]
    within = np.flatnonzero(inside)
    for v in within[np.argsort(-weight[within], kind="stable")].tolist():
        near = graph.indices[graph.indptr[v] : graph.indptr[v + 1]]
        inside[v] = not inside[near].all()
    return inside


def _graph(count: int, rows: list, columns: list) -> csr_array:
    sides = np.concatenate(rows), np.concatenate(columns)
    ones = np.ones(len(sides[0]), np.int32)
    graph = csr_array(coo_array((ones, sides), shape=(count, count)))
    graph.sum_duplicates()
    return graph


def fewest_removed(
    graph: csr_array, component: np.ndarray, divided: np.ndarray, room: int
) -> int:
    """Vertices that have to go so that no part has more than ``room`` and no link is
    across parts.

    A component with more members than a part may have loses one at least. Members of a
    clique that stay are in one part, so all but ``room`` of them go.

    Parameters
    ----------
    graph : csr_array (n, n), both directions of every link
    component : int32 (n,)
    divided : bool (components,)
        Components that are looked at.
    room : int
    """
    sizes = np.bincount(component)
    many = 0
    for number in np.flatnonzero(divided & (sizes > room)).tolist():
        clique = largest_clique(graph, np.flatnonzero(component == number))
        many += max(1, clique - room)
    return many


def largest_clique(graph: csr_array, members: np.ndarray) -> int:
    """The size of a large clique among some vertices: grown from each of those with the
    most links, the neighbour with the most links first."""
    degree = np.diff(graph.indptr)
    order = members[np.argsort(-degree[members], kind="stable")]
    best = min(len(members), 1)
    for start in order[:CLIQUES].tolist():
        left, size = _near(graph, start), 1
        while len(left):
            chosen = int(left[np.argmax(degree[left])])
            left, size = np.intersect1d(left, _near(graph, chosen)), size + 1
        best = max(best, size)
    return best


def _near(graph: csr_array, v: int) -> np.ndarray:
    return graph.indices[graph.indptr[v] : graph.indptr[v + 1]]
