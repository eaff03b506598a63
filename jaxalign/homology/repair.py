"""Repair an existing split: no link across its parts, and as little changed as can be.

Without removal every component goes, whole, to the part that holds most of it: no
repair moves fewer. With removal of every link across parts an end has to change, so
that the least weight that changes is that of a least vertex cover (``cover``); what
then has its links into one part goes there, and the others are in no part. A sequence
that the split does not have goes where its links lead.
"""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from jaxalign.homology.assignment import assign, tally, wanted
from jaxalign.homology.cover import least_cover
from jaxalign.homology.links import Links, components
from jaxalign.homology.removal import graph_of
from jaxalign.model.selection import renumbered


@dataclass(frozen=True, eq=False)
class Repair:
    """Parts of sequences after a repair.

    Attributes
    ----------
    part : int32 (n,)
        -1 for what is removed, or, of ``free`` sequences, may go anywhere.
    free : bool (n,)
    bound : int
        The weight of sequences that any repair changes, at least.
    """

    part: np.ndarray
    free: np.ndarray
    bound: int


def by_moves(
    component: np.ndarray, known: np.ndarray, weight: np.ndarray, parts: int
) -> Repair:
    """Move members of components to the part that holds most of their weight.

    Parameters
    ----------
    component : int32 (n,)
    known : int32 (n,)
        The part of every sequence before, -1 for none.
    weight : int64 (n,)
    parts : int
    """
    count = int(component.max(initial=-1)) + 1
    listed = known >= 0
    flat = component[listed].astype(np.int64) * parts + known[listed]
    weights = np.bincount(flat, weight[listed], minlength=count * parts)
    weights = weights.reshape(count, parts)
    part = weights.argmax(axis=1).astype(np.int32)[component]
    free = weights.sum(axis=1)[component] == 0
    part[free] = -1
    bound = int(weights.sum() - weights.max(axis=1, initial=0).sum())
    return Repair(part, free, bound)


def by_removal(
    graph: csr_array, links: Links, known: np.ndarray, weight: np.ndarray
) -> Repair:
    """Take out, or move, an end of every link across parts.

    graph : csr_array (n, n), both directions of every link
    """
    a, b = known[links.i], known[links.j]
    across = (a >= 0) & (b >= 0) & (a != b)
    cover = least_cover(links.i[across], links.j[across], weight)
    part = known.astype(np.int32).copy()
    part[cover.inside] = -1
    order = np.flatnonzero(cover.inside)
    order = order[np.argsort(-weight[order], kind="stable")]
    for v in order.tolist():  # a move is better than to be in no part
        near = _parts_near(v, graph, part)
        if len(near) == 1:
            part[v] = near[0]
    free = _join(graph, part, known < 0)
    return Repair(part, free, cover.bound)


def _parts_near(v: int, graph: csr_array, part: np.ndarray) -> np.ndarray:
    """The parts where a vertex has links."""
    near = part[graph.indices[graph.indptr[v] : graph.indptr[v + 1]]]
    return np.unique(near[near >= 0])


def _join(graph: csr_array, part: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Put new vertices where their links lead, from vertex to vertex; those whose links
    lead into two parts are removed. Those that no link leads to are free: bool (n,)."""
    open_vertices = new.copy()
    frontier = np.flatnonzero(part >= 0)
    while len(frontier):
        reached = np.unique(np.concatenate(
            [graph.indices[graph.indptr[v] : graph.indptr[v + 1]] for v in frontier]
        ))  # fmt: skip
        reached = reached[open_vertices[reached]]
        for v in reached.tolist():
            near = _parts_near(v, graph, part)
            part[v] = near[0] if len(near) == 1 else -1
        open_vertices[reached] = False
        frontier = reached[part[reached] >= 0]
    return open_vertices


def repaired(
    component: np.ndarray,
    links: Links | None,
    known: np.ndarray,
    weight: np.ndarray,
    ratios: np.ndarray,
    labels: np.ndarray | None,
    seed: int,
) -> tuple[np.ndarray, dict[str, int]]:
    """(a part for every sequence, -1 for none; what changed, in numbers).

    Parameters
    ----------
    component : int32 (n,)
    links : Links or None
        None where nothing may be removed.
    known : int32 (n,)
        The part of every sequence before, -1 of a new one.
    weight : int64 (n,)
    ratios : float64 (parts,)
        Shares by which what has no link to any part is placed.
    labels : int32 (n,) or None
    seed : int
    """
    if links is None:
        repair, groups = by_moves(component, known, weight, len(ratios)), component
    else:
        repair = by_removal(graph_of(len(known), links), links, known, weight)
        inner = repair.free[links.i] & repair.free[links.j]
        sides = (links.i[inner], links.j[inner])
        groups = components(len(known), [sides])
    part = repair.part.copy()
    if repair.free.any():
        part[repair.free] = _placed(part, groups, repair.free, ratios, labels, seed)
    old = known >= 0
    moved, gone = old & (part >= 0) & (part != known), part < 0
    changed = moved | (old & gone)
    return part, {
        "kept": int((old & ~changed).sum()),
        "moved": int(moved.sum()),
        "removed": int((old & gone).sum()),
        "new": int((~old & ~gone).sum()),
        "new_removed": int((~old & gone).sum()),
        "changed_weight": int(weight[changed].sum()),
        "bound": repair.bound,
    }


def _placed(
    part: np.ndarray,
    groups: np.ndarray,
    free: np.ndarray,
    ratios: np.ndarray,
    labels: np.ndarray | None,
    seed: int,
) -> np.ndarray:
    """Parts of the free sequences, by whole groups and as shares ask for."""
    aim = wanted(ratios, tally(np.zeros(len(part), np.int32), labels))
    before = np.zeros_like(aim.counts)
    counts = tally(part, labels)
    before[: len(counts), : counts.shape[1]] = counts
    of_free = renumbered(groups[free])
    tallies = np.zeros((int(of_free.max()) + 1, aim.counts.shape[1]))
    counts = tally(of_free, None if labels is None else labels[free])
    tallies[:, : counts.shape[1]] = counts
    chosen, _ = assign(tallies, aim, seed, before)
    return chosen[of_free]
