"""Divide components that fit no part, and take out as few sequences as it can.

Members are put into parts, and of every link across parts one end is taken out. The
members of a part are gathered along the strongest links, as in GraphPart (Teufel et al.
2023), or outwards from one member; then they move to where most of their links are. A
smallest set of ends of all links between two parts is a smallest vertex cover of a
bipartite graph, which a largest matching gives (König); what has no link across any
more comes back. Several starts are tried, and the one that keeps most is taken.
"""

from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import (
    breadth_first_order,
    connected_components,
    maximum_bipartite_matching,
    maximum_flow,
)

from jaxalign.homology.assignment import aimed_tallies, assign, tally
from jaxalign.homology.links import Links, components

# ------------------------------------------------------------------------------
# Smallest vertex covers: of the links across parts, the ends that have to go.
#
# Every link needs an end in the cover, and the sum of weights is to be least. In a
# bipartite graph, as between two parts, a largest flow gives the least one (König;
# weighted: the cut of least capacity). Else the linear program has a solution of 0, 1/2
# and 1, which a flow of the bipartite double cover gives; its 0 and 1 are those of a
# least cover (Nemhauser and Trotter 1975), and its value is a bound from below. The
# halves are covered greedily, and what turns out superfluous leaves the cover again.
#
# ``fewest_removed`` is a bound that every split of a set meets, beside what a search
# takes out.

UNBOUNDED = 2**30  # a capacity that no cut has; weights add up to less
CLIQUES = 20  # vertices from which a clique is grown


@dataclass(frozen=True, eq=False)
class Cover:
    """A vertex cover: an end of every link is in it.

    Attributes
    ----------
    inside : bool (n,)
    bound : int
        No cover has a smaller sum of weights.
    """

    inside: np.ndarray
    bound: int


def least_cover(i: np.ndarray, j: np.ndarray, weight: np.ndarray) -> Cover:
    """Find a vertex cover of links (i, j) of small weight; the least where the graph is
    bipartite.

    i, j : integers (links,); no link is of a vertex with itself
    weight : integers (n,), 1 or more
    """
    count = len(weight)
    inside = np.zeros(count, bool)
    if not len(i):
        return Cover(inside, 0)
    # The copies of a vertex in the bipartite double cover have different components
    # where it is in a bipartite component, whose sides they tell apart.
    double = _graph(2 * count, [i, j], [j + count, i + count])
    labels = connected_components(double, directed=False)[1]
    first, second = labels[:count], labels[count:]
    even, left = first[i] != second[i], first < second
    a = np.where(left[i], i, j)[even]
    b = np.where(left[i], j, i)[even]
    reached_a, reached_b, bound = _cut(count, a, b, weight)
    inside[a] = ~reached_a[a]
    inside[b] = reached_b[b]
    # the linear program of the others: vertices at 1, and at 1/2
    i, j = i[~even], j[~even]
    a, b = np.concatenate([i, j]), np.concatenate([j, i])
    reached_a, reached_b, twice = _cut(count, a, b, weight)
    touched = np.zeros(count, bool)
    touched[a] = True
    halves = (touched & ~reached_a).astype(int) + (touched & reached_b)
    inside |= halves == 2
    remaining = (halves[i] == 1) & (halves[j] == 1)
    graph = _graph(count, [i[remaining], j[remaining]], [j[remaining], i[remaining]])
    # The vertex with the most open links for its weight goes in until none is open.
    covering = np.zeros(count, bool)
    open_links = np.diff(graph.indptr).astype(np.float64)
    while open_links.any():
        vertex = int(np.argmax(open_links / weight))
        covering[vertex], open_links[vertex] = True, 0
        neighbours = neighbours_of(graph, vertex)
        open_links[neighbours] -= ~covering[neighbours]
    # Each whose neighbours are all in goes out, the heaviest first.
    within = np.flatnonzero(covering)
    for v in within[np.argsort(-weight[within], kind="stable")].tolist():
        covering[v] = not covering[neighbours_of(graph, v)].all()
    return Cover(inside | covering, bound + ceil(twice / 2))


def _cut(
    count: int, a: np.ndarray, b: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray, int]:
    """Find the least cut of source - a - b - sink: (copies of a on the side of the
    source, copies of b there, its capacity)."""
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
    residual = csr_array(graph - flow.flow)
    residual.data = np.maximum(residual.data, 0)
    residual.eliminate_zeros()
    reached = np.zeros(2 * count + 2, bool)
    reached[breadth_first_order(residual, source, return_predecessors=False)] = True
    return reached[:count], reached[count : 2 * count], int(flow.flow_value)


def neighbours_of(graph: csr_array, v: int) -> np.ndarray:
    """Return the vertices that a vertex is linked with."""
    return graph.indices[graph.indptr[v] : graph.indptr[v + 1]]


def parts_linked(v: int, graph: csr_array, part: np.ndarray) -> np.ndarray:
    """Return the parts that a vertex has links into."""
    parts = part[neighbours_of(graph, v)]
    return np.unique(parts[parts >= 0])


def _graph(count: int, rows: list, columns: list) -> csr_array:
    sides = np.concatenate(rows), np.concatenate(columns)
    ones = np.ones(len(sides[0]), np.int32)
    graph = csr_array(coo_array((ones, sides), shape=(count, count)))
    graph.sum_duplicates()
    return graph


def fewest_removed(
    graph: csr_array, component: np.ndarray, divided: np.ndarray, room: int
) -> int:
    """Bound from below the vertices that have to go so that no part has more than
    ``room`` and no link is across parts.

    A component with more members than a part may have loses one at least. Members of a
    clique that stay are in one part, so all but ``room`` of them go.

    graph : csr_array (n, n), both directions of every link
    component : int32 (n,)
    divided : bool (components,); components that are looked at
    """
    sizes, degree = np.bincount(component), np.diff(graph.indptr)
    total = 0
    for number in np.flatnonzero(divided & (sizes > room)).tolist():
        members = np.flatnonzero(component == number)
        clique = min(len(members), 1)
        # grown from each of the vertices with the most links, by their neighbour with
        # the most links first
        order = members[np.argsort(-degree[members], kind="stable")]
        for start in order[:CLIQUES].tolist():
            common, size = neighbours_of(graph, start), 1
            while len(common):
                vertex = int(common[np.argmax(degree[common])])
                common = np.intersect1d(common, neighbours_of(graph, vertex))
                size += 1
            clique = max(clique, size)
        total += max(1, clique - room)
    return total


# ------------------------------------------------------------------------------
# Improve what is taken out of a graph so that its parts have no link across.
#
# The search of Fiduccia and Mattheyses (1982) for separators, as graph partitioners
# have it: a vertex that was taken out goes into a part, its neighbours in other parts
# are taken out, the step that costs least first, and the best state on the way is kept.

SLACK = 1 / 3  # of its share, that a part may have more or less
PASSES = 8
STALLED = 300  # steps without a better state, after which a pass ends


@dataclass(frozen=True, eq=False)
class Shares:
    """Target sizes of the parts of the divided members.

    Attributes
    ----------
    target : float64 (parts,)
        Of all sequences, those that are not divided here too.
    remaining : int
        Sequences that will be put beside them, in any part.
    weight : int64 (n,) or None
        What every member counts, where they do not count the same.
    """

    target: np.ndarray
    remaining: int
    weight: np.ndarray | None = None

    @property
    def room(self) -> np.ndarray:
        """Largest size of every part, (parts,)."""
        return most_members(self.target)

    def room_beside(self, count: int) -> np.ndarray:
        """Return the largest size of each part, (parts,), out of ``count`` members,
        where every other part gets its least size."""
        least = np.maximum(self.least, 1)
        return np.clip(count - (least.sum() - least), 1, self.room)

    @property
    def least(self) -> np.ndarray:
        """Least size of every part, (parts,), the remaining sequences included."""
        return np.floor(self.target * (1 - SLACK))

    def value(self, part: np.ndarray) -> float:
        """Value a division: members kept, by their weight, less those for which a part
        has no room, and those that parts lack and the remaining sequences cannot fill
        in; an empty part is worst."""
        inside = part >= 0
        sizes = np.bincount(part[inside], minlength=len(self.target))
        lacking = np.maximum(self.least - sizes, 0).sum()
        empty = max((sizes == 0).sum() - self.remaining, 0) * len(part)
        over = np.maximum(sizes - self.room, 0).sum()
        loss = float(over + max(lacking - self.remaining, 0) + empty)
        if self.weight is None:
            return float(sizes.sum()) - loss
        return float(self.weight[inside].sum()) - loss * float(self.weight.max())

    def imbalance(self, part: np.ndarray) -> float:
        """Measure how far sizes are from shares: it decides between divisions that keep
        as many."""
        sizes = np.bincount(part[part >= 0], minlength=len(self.target))
        return float(np.abs(sizes - self.target).sum())

    def begin(self, part: np.ndarray) -> None:
        """Begin a pass."""

    def move(self, vertex: int, source: int, target: int) -> None:
        """Count a move: nothing to do, a pass has the sizes."""

    def cost(
        self, out: np.ndarray, cost: np.ndarray, leaving: np.ndarray, sizes: np.ndarray
    ) -> np.ndarray:
        """Return the cost of every step into a part, infinite into a part without
        room."""
        if self.weight is not None:  # who costs nothing comes first
            free = (leaving == 0) * float(self.weight.sum())
            cost -= self.weight[out][:, None] + free
        cost[:, sizes + 1 > self.room] = np.inf
        return cost


def most_members(target: np.ndarray) -> np.ndarray:
    """Return the largest size, (parts,), of parts with these target sizes."""
    return np.maximum(np.ceil(target * (1 + SLACK)), 1)


def improve(
    part: np.ndarray,
    graph: csr_array,
    gain: "Shares | Surplus",
    random: np.random.Generator,
    passes: int,
    value: float = -np.inf,
) -> np.ndarray:
    """Move the borders of parts, pass by pass, as long as one is worth more.

    part : int32 (n,); -1 for a vertex that is taken out; no link lies across
    graph : csr_array (n, n); both directions of every link
    gain : what a step costs, and what a state is worth
    value : that a pass has to exceed
    """
    best = part
    for _ in range(passes):
        moved, worth = _one_pass(best.copy(), graph, gain, random)
        if worth <= value:
            break
        best, value = moved, worth
    return best


def _one_pass(
    part: np.ndarray,
    graph: csr_array,
    gain: "Shares | Surplus",
    random: np.random.Generator,
) -> tuple[np.ndarray, float]:
    """Run a pass, in which no vertex enters a part twice: (the best state, its value).

    A vertex that is out goes into a part, and its neighbours elsewhere go out: the step
    that costs least first.
    """
    weight, parts = gain.weight, len(gain.target)
    # near[v, p]: neighbours of v in part p, by their weight
    inside = np.zeros((len(part), parts), np.int64)
    placed = np.flatnonzero(part >= 0)
    inside[placed, part[placed]] = 1 if weight is None else weight[placed]
    neighbours = (graph @ inside).astype(np.int64)
    sizes = np.bincount(part[placed], minlength=parts).astype(np.float64)

    def put(v: int, target: int) -> None:
        """Put a vertex into a part, or take it out with -1."""
        linked = neighbours_of(graph, v)
        counted = 1 if weight is None else int(weight[v])
        source = int(part[v])
        if source >= 0:
            neighbours[linked, source] -= counted
            sizes[source] -= 1
        if target >= 0:
            neighbours[linked, target] += counted
            sizes[target] += 1
        gain.move(v, source, target)
        part[v] = target

    gain.begin(part)
    entered = np.zeros(len(part), bool)
    best, highest, stalled = part.copy(), gain.value(part), 0
    while stalled < STALLED:
        out = np.flatnonzero((part < 0) & ~entered)
        if not len(out):
            break
        # leaving[v, p]: neighbours that leave where v goes into part p
        leaving = neighbours[out].sum(axis=1)[:, None] - neighbours[out]
        cost = leaving + random.random((len(out), 1))
        cost = gain.cost(out, cost, leaving, sizes)
        at, target = np.unravel_index(np.argmin(cost), cost.shape)
        if not np.isfinite(cost[at, target]):
            break
        v = int(out[at])
        linked = neighbours_of(graph, v)
        for u in linked[(part[linked] >= 0) & (part[linked] != target)].tolist():
            put(u, -1)
        put(v, int(target))
        entered[v], value = True, gain.value(part)
        stalled = 0 if value > highest else stalled + 1
        if value > highest:
            best, highest = part.copy(), value
    return best, highest


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

    Returns int32 (count,), a part, -1 for a vertex that is taken out
    """
    graph, room = graph_of(count, links), shares.room
    best, highest = np.full(count, -1, np.int32), (-count - 1, 0.0)
    for start in range(min(STARTS, max(FEWEST, VERTICES // max(count, 1)))):
        random = np.random.default_rng((seed, start))
        # a first division; links may lie across its parts
        if start < 6:
            rooms = room if start < 3 else shares.room_beside(count)
            sizes = rooms.max(), rooms.min(), max(count // len(rooms), 1)
            limit = min(sizes[start % 3], rooms.max())
            first = _by_groups(graph, rooms, *along_links(count, links, limit))
        elif start == 6:
            pieces = round(shares.target.sum() / shares.target.min())
            groups = along_links(count, links, count // pieces)
            first = _by_groups(None, shares.room_beside(count), *groups)
        else:
            # One part after the other takes its share or its least size of the
            # vertices in some order; the last part takes the rest.
            order = np.arange(count) if start == 7 else outwards(graph, random)
            first, at = np.zeros(count, np.int32), 0
            sizes = shares.least if start % 4 < 2 else shares.target
            parts = np.argsort(-sizes if start % 2 else sizes, kind="stable").tolist()
            for number in parts:
                take = int(np.ceil(sizes[number]))
                take = count - at if number == parts[-1] else take
                first[order[at : at + take]] = number
                at += take
        for rounds in (0, ROUNDS):
            part = move_to_neighbours(first.copy(), graph, room, rounds, random)
            part = cover(part, graph, len(room), shares.weight)
            part = come_back(part, graph, room, shares.weight)
            part = improve(part, graph, shares, random, PASSES, shares.value(part))
            value = shares.value(part), -shares.imbalance(part)
            if value > highest:
                best, highest = part, value
    return best


def graph_of(count: int, links: Links) -> csr_array:
    """Return a sparse matrix with both directions of every link."""
    return _graph(count, [links.i, links.j], [links.j, links.i])


def along_links(count: int, links: Links, limit: float):
    """Merge vertices to groups of at most ``limit`` along links, the strongest first.

    Returns groups : int64 (count,), a member of each
    Returns order : vertices, those of the largest group first
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
    """Put each group into the part with room where most of its links are, of equals
    into the one with the most room; cut a group that fits no part. Without ``graph``
    only room counts."""
    part, room_left = np.full(len(groups), -1, np.int32), room.astype(np.float64).copy()
    sizes = np.bincount(groups, minlength=len(groups))
    at = 0
    while at < len(order):
        members = order[at : at + sizes[groups[order[at]]]]
        at += len(members)
        while len(members):
            parts = members[:0] if graph is None else part[graph[members].indices]
            linked = np.bincount(parts[parts >= 0], minlength=len(room))
            fits = room_left >= len(members)
            score = np.where(fits, linked * (1 + room_left.max()) + room_left, -np.inf)
            target = int(np.argmax(score if fits.any() else room_left))
            leaving = (
                members if fits.any() else members[: max(int(room_left[target]), 1)]
            )
            part[leaving], members = target, members[len(leaving) :]
            room_left[target] -= len(leaving)
    return part


def outwards(graph: csr_array, random: np.random.Generator) -> np.ndarray:
    """Order all vertices, each start's neighbours before those farther away."""
    n, seen, order = graph.shape[0], np.zeros(graph.shape[0], bool), []
    for start in random.permutation(n).tolist():
        if not seen[start]:
            # From the far end of where a first walk leads the frontiers are short.
            far = breadth_first_order(graph, start, return_predecessors=False)[-1]
            reached = breadth_first_order(graph, far, return_predecessors=False)
            seen[reached] = True
            order.append(reached)
    return np.concatenate(order)


def move_to_neighbours(
    part: np.ndarray,
    graph: csr_array,
    room: np.ndarray,
    rounds: int,
    random: np.random.Generator,
) -> np.ndarray:
    """Move vertices to the part where most of their neighbours are, while it has
    room."""
    filled = np.bincount(part, minlength=len(room)).astype(np.float64)
    for _ in range(rounds):
        moved = 0
        for v in random.permutation(len(part)).tolist():
            neighbours = neighbours_of(graph, v)
            linked = np.bincount(part[neighbours], minlength=len(room))
            linked[filled + 1 > room] = -1
            target, source = int(np.argmax(linked)), part[v]
            if target != source and linked[target] > np.count_nonzero(
                part[neighbours] == source
            ):
                part[v], moved = target, moved + 1
                filled[source], filled[target] = filled[source] - 1, filled[target] + 1
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
            if not across.nnz:
                continue
            if weight is None:
                rows, columns = _smallest_cover(across)
            else:
                rows, columns = across.tocoo().coords
                weights = np.concatenate([weight[left], weight[right]])
                inside = least_cover(rows, columns + len(left), weights).inside
                rows, columns = inside[: len(left)], inside[len(left) :]
            part[left[rows]] = part[right[columns]] = -1
    return part


def _smallest_cover(across: csr_array) -> tuple[np.ndarray, np.ndarray]:
    """Find rows and columns, masks, that hold an entry of every link: König's theorem.

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


def come_back(
    part: np.ndarray,
    graph: csr_array,
    room: np.ndarray,
    weight: np.ndarray | None = None,
) -> np.ndarray:
    """Put back vertices whose links lead into at most one part, the heaviest first,
    while there is room."""
    part = part.copy()
    filled = np.bincount(part[part >= 0], minlength=len(room)).astype(np.float64)
    out = np.flatnonzero(part < 0)
    if weight is not None:
        out = out[np.argsort(-weight[out], kind="stable")]
    for v in out.tolist():
        places = parts_linked(v, graph, part)
        if len(places) > 1:
            continue
        target = int(places[0]) if len(places) else int(np.argmax(room - filled))
        if filled[target] < room[target]:
            part[v] = target
            filled[target] += 1
    return part


# ------------------------------------------------------------------------------
# Divide a set so that parts have their shares of every label too.
#
# Pieces along the strongest links are put into parts as whole groups are, by labels
# too; then an end of every link across goes, and a search moves the borders. It weighs
# what is kept against the surplus of labels, less and less of it. What is left falls
# into pieces, which are put into parts once more. Several sizes of pieces and orders
# are tried; the division that keeps most, less its distance from the shares of labels,
# is taken.

PIECES = (1.0, 1.3, 1.6, 2.0, 3.0, 5.0)  # of a part, at most
ORDERS = 6  # tried a size at most: as many as so many vertices allow, but a few
BALANCED_VERTICES, BALANCED_FEWEST = 25_000, 2
SURPLUS = (1.0, 0.5, 0.25)  # what a sequence too many of a label counts, in turn
DEVIATION = 0.5  # what (sequences - share)^2 / share of a part and label counts
BALANCED_PASSES = 12
OVER = 1.1  # a part may have a tenth more than its share


@dataclass(frozen=True, eq=False)
class Balance:
    """Target shares of parts, label by label.

    Attributes
    ----------
    ratios : float64 (parts,)
    labels : int32 (n,)
    weight : int64 (n,) or None
    """

    ratios: np.ndarray
    labels: np.ndarray
    weight: np.ndarray | None

    @property
    def target(self) -> np.ndarray:
        """Sequences of every part and label, float64 (parts, labels)."""
        return self.ratios[:, None] * np.bincount(self.labels)

    @property
    def room(self) -> np.ndarray:
        return np.maximum(np.ceil(self.ratios * len(self.labels) * OVER), 1)

    def value(self, part: np.ndarray) -> float:
        """Value a division: sequences kept, less how far labels are from their shares
        of these."""
        counts = self.counts(part)
        shares = self.ratios[:, None] * counts.sum(axis=0)
        away = float(((counts - shares) ** 2 / np.maximum(shares, 0.5)).sum())
        empty = int((counts.sum(axis=1) == 0).sum()) * len(part)
        return self.kept(part) - DEVIATION * away - empty

    def kept(self, part: np.ndarray) -> float:
        inside = part >= 0
        return float(inside.sum() if self.weight is None else self.weight[inside].sum())

    def counts(self, part: np.ndarray) -> np.ndarray:
        """Count the sequences of every part and label, float64 (parts, labels)."""
        counts, inside = np.zeros_like(self.target), part >= 0
        np.add.at(counts, (part[inside], self.labels[inside]), 1)
        return counts


class Surplus:
    """The gain of a pass that weighs labels: sequences kept, less ``surplus`` for each
    sequence too many of a label."""

    def __init__(self, balance: Balance, surplus: float):
        self.balance, self.surplus = balance, surplus
        self.weight, self.target = balance.weight, balance.target

    def begin(self, part: np.ndarray) -> None:
        """Count the sequences of a state."""
        self.counts, self.total = self.balance.counts(part), self.balance.kept(part)

    def move(self, vertex: int, source: int, target: int) -> None:
        """Count a move."""
        label = self.balance.labels[vertex]
        weight = 1 if self.weight is None else int(self.weight[vertex])
        for number, step in ((source, -1), (target, 1)):
            if number >= 0:
                self.counts[number, label] += step
                self.total += step * weight

    def cost(
        self, out: np.ndarray, cost: np.ndarray, _leaving: Any, _sizes: Any
    ) -> np.ndarray:
        """Return the cost of every step into a part."""
        labels = self.balance.labels[out]
        cost = cost + self.surplus * (self.counts >= self.target).T[labels]
        return cost if self.weight is None else cost - self.weight[out][:, None]

    def value(self, _part: np.ndarray) -> float:
        """Return the value of the state."""
        over = float(np.maximum(self.counts - self.target, 0).sum())
        return self.total - self.surplus * over


def divide_balanced(links: Links, balance: Balance, seed: int) -> np.ndarray:
    """Put every sequence into a part, int32 (n,); -1 for one that is taken out."""
    count = len(balance.labels)
    graph = graph_of(count, links)
    orders = min(ORDERS, max(BALANCED_FEWEST, BALANCED_VERTICES // max(count, 1)))
    best, highest = np.full(count, -1, np.int32), -np.inf
    for pieces in PIECES:
        limit = max(count / len(balance.ratios) / pieces, 1)
        groups, _ = along_links(count, links, limit)
        groups = np.unique(groups, return_inverse=True)[1].astype(np.int32)
        tallies = tally(groups, balance.labels)
        aim, room = aimed_tallies(balance.ratios, tallies), balance.room
        for order in range(orders):
            random = np.random.default_rng((seed, order))
            # groups in parts, by labels; then an end of every link across goes
            part_of_group, _ = assign(tallies, aim, (seed, order))
            part = part_of_group[groups].astype(np.int32)
            part = move_to_neighbours(part, graph, room, ROUNDS, random)
            part = cover(part, graph, len(room), balance.weight)
            part = come_back(part, graph, room, balance.weight)
            for surplus in SURPLUS:
                gain = Surplus(balance, surplus)
                part = improve(part, graph, gain, random, BALANCED_PASSES)
                refined = _placed_again(part, links, graph, balance, seed)
                value = balance.value(refined)
                if value > highest:
                    best, highest = refined, value
    return best


def _placed_again(
    part: np.ndarray, links: Links, graph: csr_array, balance: Balance, seed: int
) -> np.ndarray:
    """Put the pieces of the kept sequences into parts once more; then put back
    sequences whose links lead into at most one part."""
    inside = part >= 0
    among = inside[links.i] & inside[links.j]
    pieces = components(len(part), [(links.i[among], links.j[among])])
    pieces = np.unique(pieces[inside], return_inverse=True)[1].astype(np.int32)
    shape = int(pieces.max(initial=-1)) + 1, balance.target.shape[1] + 1
    tallies = tally(pieces, balance.labels[inside], shape)
    part_of_piece, _ = assign(tallies, aimed_tallies(balance.ratios, tallies), seed)
    placed = part.copy()
    placed[inside] = part_of_piece[pieces]
    placed = placed if balance.value(placed) >= balance.value(part) else part
    back = come_back(placed, graph, balance.room, balance.weight)
    return back if balance.value(back) >= balance.value(placed) else placed
