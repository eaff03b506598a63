"""Connected components of links that come in parts: never the matrix of all pairs."""

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from jaxalign.model.groups import renumbered

MIN_BUFFER = 2**20  # links that are merged at once, at least: a merge visits all labels


def components(count: int, links) -> np.ndarray:
    """Components of a graph.

    Parameters
    ----------
    count : int
        Vertices.
    links : iterable of (i, j)
        Arrays of vertices of equal length, part by part.

    Returns
    -------
    int32 (count,)
        Numbered from 0 in the order of their first vertices.
    """
    labels = np.arange(count, dtype=np.int32)
    waiting, many = [], 0
    for i, j in links:
        waiting.append((i, j))
        many += len(i)
        if many >= max(MIN_BUFFER, count):
            labels, waiting, many = _merged(labels, waiting), [], 0
    return renumbered(_merged(labels, waiting))


def components_by_cut(count: int, parts, cuts) -> tuple[list, list]:
    """Components of a graph at every one of some cuts, as ``components``.

    Parameters
    ----------
    parts : iterable of Links
    cuts : sequence of float

    Returns
    -------
    (list of int32 (count,), list of int)
        Components, and how many links there are, at each cut.
    """
    labels = [np.arange(count, dtype=np.int32) for _ in cuts]
    waiting, many, linked = [], 0, [0] * len(cuts)

    def merge() -> None:
        for k, cut in enumerate(cuts):
            some = [x.identity >= cut for x in waiting]
            pairs = zip(waiting, some, strict=True)
            linked[k] += int(sum(x.sum() for x in some))
            labels[k] = _merged(labels[k], [(x.i[y], x.j[y]) for x, y in pairs])

    for part in parts:
        waiting.append(part)
        many += len(part)
        if many >= max(MIN_BUFFER, count):
            merge()
            waiting, many = [], 0
    merge()
    return [renumbered(x) for x in labels], linked


def _merged(labels: np.ndarray, waiting: list) -> np.ndarray:
    """Components of the components so far, linked by some more links."""
    if not waiting:
        return labels
    i, j = (np.concatenate(side) for side in zip(*waiting, strict=True))
    edges = labels[i], labels[j]
    shape = (len(labels),) * 2
    graph = coo_array((np.ones(len(i), bool), edges), shape=shape)
    return connected_components(graph, directed=False)[1][labels]


def longest_members(labels: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The longest member of every group, of equals the first: int64 (groups,)."""
    order = np.lexsort((np.arange(len(labels)), -lengths, labels))
    _, first = np.unique(labels[order], return_index=True)
    return order[first]
