"""Complete and average linkage, by scipy: of the components of links, and of a matrix.

No cluster of either kind leaves a component: where two clusters have an average, or a
largest, distance within the cut, some pair between them is linked. So the condensed
matrix of a component is enough.
"""

from dataclasses import dataclass

import numpy as np
from scipy.cluster import hierarchy
from scipy.spatial.distance import squareform

from jaxalign.errors import MemoryPlanError
from jaxalign.homology.links import Links, PairCounts
from jaxalign.homology.options import Definition, identities, pair_options
from jaxalign.model.alphabet import Sequences
from jaxalign.model.selection import renumbered
from jaxalign.pairs import jobs
from jaxalign.runtime.devices import budget_of

APART = 2.0  # a distance above every one that identities give
MATRIX_COPIES = 4  # of 8 bytes: the square, the condensed one and that of scipy


def clusters(
    sequences: Sequences,
    definition: Definition,
    links: Links,
    component: np.ndarray,
    method: str,
    counts: PairCounts,
) -> np.ndarray:
    """Cluster labels of all sequences, int32 (n,), in the order of first members.

    Parameters
    ----------
    links : Links
    component : int32 (n,)
        Their components.
    method : {"complete", "average"}
        ``average`` aligns all pairs of a component, also those below the cut.

    Raises
    ------
    MemoryPlanError
        The matrix of the largest component exceeds the budget.
    """
    sizes = np.bincount(component)
    _check_memory(int(sizes.max(initial=0)), definition)
    order = np.argsort(component, kind="stable")
    members = np.split(order, np.cumsum(sizes)[:-1])
    of_component = _split_links(links, component, len(sizes))
    labels = np.arange(len(sequences))
    for number in np.flatnonzero(sizes > 1):
        family = members[number]
        if method == "complete":
            distance = _linked_distances(family, *of_component[number])
        else:
            distance = _all_distances(sequences, family, definition, counts)
        tree = hierarchy.linkage(squareform(distance, checks=False), method)
        groups = hierarchy.fcluster(tree, 1 - definition.cut, "distance")
        labels[family] = family[np.unique(groups, return_index=True)[1]][groups - 1]
    return renumbered(labels)


def _check_memory(largest: int, definition: Definition) -> None:
    budget = budget_of(definition.options.memory_budget)
    needed = 8 * largest**2 // 2 * MATRIX_COPIES
    if needed > budget:
        raise MemoryPlanError(
            f"the matrix of a component of {largest:,} sequences needs {needed:,} "
            f"bytes, the memory budget is {budget:,}: methods components and greedy "
            "need no matrix, and a higher cut has smaller components"
        )


def _split_links(links: Links, component: np.ndarray, count: int) -> list:
    """The links of every component."""
    of = component[links.i]
    order = np.argsort(of, kind="stable")
    ends = np.cumsum(np.bincount(of, minlength=count))[:-1]
    sides = (np.split(x[order], ends) for x in (links.i, links.j, links.identity))
    return list(zip(*sides, strict=True))


def _linked_distances(
    family: np.ndarray, i: np.ndarray, j: np.ndarray, identity: np.ndarray
) -> np.ndarray:
    """Distances of a component: its links; any other pair is farther than the cut."""
    square = np.full((len(family),) * 2, APART)
    rows, columns = np.searchsorted(family, i), np.searchsorted(family, j)
    square[rows, columns] = square[columns, rows] = 1 - identity
    np.fill_diagonal(square, 0)
    return square


def _all_distances(
    sequences: Sequences, family: np.ndarray, definition: Definition, counts: PairCounts
):
    """Distances of all pairs of a component; pairs of too unequal lengths have 1."""
    members, scoring = sequences.take(family), definition.scoring
    table = jobs.run("all", members, members, scoring, pair_options(definition, 0.0))
    counts.aligned += len(table)  # the pairs were counted with the links
    square = np.ones((len(family),) * 2)
    i, j = table["query"], table["target"]
    square[i, j] = square[j, i] = 1 - np.nan_to_num(identities(table, definition))
    np.fill_diagonal(square, 0)
    return square


@dataclass(frozen=True, eq=False)
class Dendrogram:
    """Average linkage (UPGMA) of condensed distances.

    Attributes
    ----------
    order : int64 (n,)
        The leaves, from the first place to the last.
    lines : list of (heights (4,), places (4,))
        The corners of every joint; the k-th leaf of ``order`` has the place k.
    """

    order: np.ndarray
    lines: list


def dendrogram(distances: np.ndarray) -> Dendrogram:
    """The dendrogram of float (n (n - 1) / 2,) distances, n at least 2, in scipy's
    condensed order, which is that of ``align_all``."""
    tree = hierarchy.linkage(distances, "average")
    shown = hierarchy.dendrogram(tree, no_plot=True, get_leaves=True)
    places = (np.array(shown["icoord"]) - 5) / 10  # scipy's leaves have 5, 15, 25 …
    lines = list(zip(np.array(shown["dcoord"]), places, strict=True))
    return Dendrogram(np.array(shown["leaves"]), lines)
