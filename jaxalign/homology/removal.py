"""Divide components that fit no part, and take out as few sequences as it can.

Members are put into parts, and of every link across parts one end is taken out. The
members of a part are gathered along the strongest links, as in GraphPart (Teufel et al.
2023), or outwards from one member; then they move to where most of their links are. A
smallest set of ends of all links between two parts is a smallest vertex cover of a
bipartite graph, which a largest matching gives (König); what has no link across any
more comes back. Several starts are tried, and the one that keeps most is taken.
"""

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import breadth_first_order, maximum_bipartite_matching

from jaxalign.homology.cover import least_cover
from jaxalign.homology.links import Links
from jaxalign.homology.separator import Shares, improve

STARTS = 40  # at most, and as many as so many vertices allow, but a few
VERTICES, FEWEST = 60_000, 8
ROUNDS = 10  # of moves towards neighbours


def divide(
    count: int,
    links: Links,
    shares: Shares,
    seed: int,
) -> np.ndarray:
    """Put vertices into parts so that no link is left across them.

    Parameters
    ----------
    count : int
        Vertices.
    links : Links
        Among them.
    shares : Shares
    seed : int

    Returns
    -------
    int32 (count,)
        A part, -1 for a vertex that is taken out.
    """
    graph, room = graph_of(count, links), shares.room
    best, highest = np.full(count, -1, np.int32), (-count - 1, 0.0)
    for start in range(min(STARTS, max(FEWEST, VERTICES // max(count, 1)))):
        random = np.random.default_rng((seed, start))
        first = _first_parts(start, count, links, graph, shares, random)
        for rounds in (0, ROUNDS):
            part = move_to_neighbours(first.copy(), graph, room, rounds, random)
            part = cover(part, graph, len(room), shares.weight)
            part = come_back(part, graph, room, shares.weight)
            part = improve(part, graph, shares, random)
            value = shares.value(part), -shares.imbalance(part)
            if value > highest:
                best, highest = part, value
    return best


def _first_parts(
    start: int,
    count: int,
    links: Links,
    graph: csr_array,
    shares: Shares,
    random: np.random.Generator,
) -> np.ndarray:
    """Parts to begin with; links may lie across them."""
    if start < 6:
        room = shares.room if start < 3 else shares.room_beside(count)
        sizes = room.max(), room.min(), max(count // len(room), 1)
        groups = along_links(count, links, min(sizes[start % 3], room.max()))
        return _by_groups(graph, room, *groups)
    if start == 6:
        pieces = round(shares.target.sum() / shares.target.min())
        groups = along_links(count, links, count // pieces)
        return _by_groups(None, shares.room_beside(count), *groups)
    order = np.arange(count) if start == 7 else _outwards(graph, random)
    return _by_filling(shares, order, start)


def graph_of(count: int, links: Links) -> csr_array:
    """Both directions of every link."""
    rows = np.concatenate([links.i, links.j])
    columns = np.concatenate([links.j, links.i])
    ones = np.ones(len(rows), np.int32)
    return csr_array(coo_array((ones, (rows, columns)), shape=(count, count)))


def along_links(count: int, links: Links, limit: float):
    """Groups of at most ``limit`` vertices, merged along links, the strongest first.

    Returns
    -------
    groups : int64 (count,), a member of each
    order : vertices, those of the largest group first
    """
    parent = np.arange(count)
    size = np.ones(count, np.int64)

    def root(v: int) -> int:
        while parent[v] != v:
            parent[v] = parent[parent[v]]
            v = int(parent[v])
        return v

    for edge in np.argsort(-links.identity, kind="stable").tolist():
        a, b = root(int(links.i[edge])), root(int(links.j[edge]))
        if a != b and size[a] + size[b] <= limit:
            parent[b], size[a] = a, size[a] + size[b]
    groups = np.array([root(v) for v in range(count)])
    return groups, np.lexsort((groups, -size[groups]))


def _by_groups(
    graph: csr_array | None, room: np.ndarray, groups: np.ndarray, order: np.ndarray
) -> np.ndarray:
    """Groups to the part with room where most of their links are, of equals to the one
    with the most room; one that fits in no part is cut. Links count for nothing where
    ``graph`` is None."""
    part, left = np.full(len(groups), -1, np.int32), room.astype(np.float64).copy()
    sizes = np.bincount(groups, minlength=len(groups))
    at = 0
    while at < len(order):
        members = order[at : at + sizes[groups[order[at]]]]
        at += len(members)
        while len(members):
            near = members[:0] if graph is None else part[graph[members].indices]
            linked = np.bincount(near[near >= 0], minlength=len(room))
            fits = left >= len(members)
            score = np.where(fits, linked * (1 + left.max()) + left, -np.inf)
            chosen = int(np.argmax(score if fits.any() else left))
            leaving = members if fits.any() else members[: max(int(left[chosen]), 1)]
            part[leaving], members = chosen, members[len(leaving) :]
            left[chosen] -= len(leaving)
    return part


def _outwards(graph: csr_array, random: np.random.Generator) -> np.ndarray:
    """All vertices, each start's neighbours before those farther away."""
    n, seen, order = graph.shape[0], np.zeros(graph.shape[0], bool), []
    for start in random.permutation(n).tolist():
        if not seen[start]:
            # From the far end of where a first walk leads the frontiers are short.
            far = breadth_first_order(graph, start, return_predecessors=False)[-1]
            reached = breadth_first_order(graph, far, return_predecessors=False)
            seen[reached] = True
            order.append(reached)
    return np.concatenate(order)


def _by_filling(shares: Shares, order: np.ndarray, start: int) -> np.ndarray:
    """One part after the other is filled with the vertices, in that order, to its share
    or as little as it may have; the last one has what is left."""
    part, at = np.zeros(len(order), np.int32), 0
    sizes = shares.least if start % 4 < 2 else shares.target
    parts = np.argsort(-sizes if start % 2 else sizes, kind="stable").tolist()
    for number in parts:
        take = len(order) - at if number == parts[-1] else int(np.ceil(sizes[number]))
        part[order[at : at + take]] = number
        at += take
    return part


def move_to_neighbours(
    part: np.ndarray,
    graph: csr_array,
    room: np.ndarray,
    rounds: int,
    random: np.random.Generator,
) -> np.ndarray:
    """Vertices go to the part where most of their neighbours are, while it has room."""
    filled = np.bincount(part, minlength=len(room)).astype(np.float64)
    for _ in range(rounds):
        moved = 0
        for v in random.permutation(len(part)).tolist():
            near = graph.indices[graph.indptr[v] : graph.indptr[v + 1]]
            linked = np.bincount(part[near], minlength=len(room))
            linked[filled + 1 > room] = -1
            new, old = int(np.argmax(linked)), part[v]
            if new != old and linked[new] > np.count_nonzero(part[near] == old):
                part[v], moved = new, moved + 1
                filled[old], filled[new] = filled[old] - 1, filled[new] + 1
        if not moved:
            break
    return part


def cover(
    part: np.ndarray, graph: csr_array, parts: int, weight: np.ndarray | None = None
) -> np.ndarray:
    """Take out a smallest set of ends of the links between each two parts, or one of
    the least weight."""
    part = part.copy()
    for a in range(parts):
        for b in range(a + 1, parts):
            left, right = np.flatnonzero(part == a), np.flatnonzero(part == b)
            across = csr_array(graph[left][:, right])
            if across.nnz and weight is not None:
                rows, columns = _lightest_cover(across, weight[left], weight[right])
                part[left[rows]] = part[right[columns]] = -1
            elif across.nnz:
                rows, columns = _smallest_cover(across)
                part[left[rows]] = part[right[columns]] = -1
    return part


def _smallest_cover(across: csr_array) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns, masks, that hold an entry of every link: König's theorem.

    From the rows that a largest matching leaves out, walk to columns along any link
    and back to rows along the matching. The cover is the rows not reached and the
    columns reached.
    """
    partner = maximum_bipartite_matching(across, perm_type="column")  # of each row
    row_of = np.full(across.shape[1], -1)
    row_of[partner[partner >= 0]] = np.flatnonzero(partner >= 0)
    rows = (partner < 0) & (np.diff(across.indptr) > 0)
    columns = np.zeros(across.shape[1], bool)
    frontier = np.flatnonzero(rows)
    while len(frontier):
        reached = np.unique(across[frontier].indices)
        reached = reached[~columns[reached]]
        columns[reached] = True
        frontier = row_of[reached]
        frontier = frontier[frontier >= 0]
        frontier = frontier[~rows[frontier]]
        rows[frontier] = True
    return (np.diff(across.indptr) > 0) & ~rows, columns


def _lightest_cover(
    across: csr_array, of_rows: np.ndarray, of_columns: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns, masks, as ``_smallest_cover``, of the least weight."""
    rows, columns = across.tocoo().coords
    weights = np.concatenate([of_rows, of_columns])
    inside = least_cover(rows, columns + len(of_rows), weights).inside
    return inside[: len(of_rows)], inside[len(of_rows) :]


def come_back(
    part: np.ndarray,
    graph: csr_array,
    room: np.ndarray,
    weight: np.ndarray | None = None,
) -> np.ndarray:
    """Put what has links into one part at most there, the heaviest first, while there
    is room."""
    part = part.copy()
    filled = np.bincount(part[part >= 0], minlength=len(room)).astype(np.float64)
    out = np.flatnonzero(part < 0)
    if weight is not None:
        out = out[np.argsort(-weight[out], kind="stable")]
    for v in out.tolist():
        near = part[graph.indices[graph.indptr[v] : graph.indptr[v + 1]]]
        places = np.unique(near[near >= 0])
        if len(places) > 1:
            continue
        new = int(places[0]) if len(places) else int(np.argmax(room - filled))
        if filled[new] < room[new]:
            part[v] = new
            filled[new] += 1
    return part
