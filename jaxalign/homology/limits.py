"""How good a split can be at best: bounds that every split of a set meets.

They stand beside what a greedy search gives, so that a reader sees how far it may be
from the optimum.
"""

import numpy as np
from scipy.sparse import csr_array

CLIQUES = 20  # vertices from which a clique is grown


def least_share_error(sizes: np.ndarray, ratios: np.ndarray) -> float:
    """The least share_error of parts that hold components whole.

    The part with the largest component has its share of all at least.

    Parameters
    ----------
    sizes : integers (components,)
    ratios : float64 (parts,)
        Shares that are asked for.
    """
    total = max(int(sizes.sum()), 1)
    return max(float(sizes.max(initial=0)) / total - float(ratios.max()), 0.0)


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
