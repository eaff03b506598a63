"""Parts of pairs, as of interactions, by their proteins: the mathematics.

Proteins that are linked are one *unit*, and so is every group of a second column that
is not of proteins; a pair joins two units. With ``both`` (C3) units are put into parts,
and a pair stays where both of its units are in one part. With ``one`` (C2) a pair has a
side that no earlier part knows. With ``none`` (C1) pairs are dealt out.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array, diags_array
from scipy.sparse.csgraph import breadth_first_order, connected_components
from scipy.sparse.linalg import ArpackError, eigsh

from jaxalign.homology.assignment import assign, wanted

STARTS = 4  # orders of units that are cut into parts
CUTS, PASSES = 30, 30  # rounds that even the parts of an order; that move units
IMBALANCE = 5.0  # what a pair that a part has beyond its share counts, kept pairs 1
SEEN = 1.1  # a part may have a tenth more than its share
SMALL = 20_000  # units, parts and pairs multiplied, that are moved one by one
DENSE = 200  # units whose eigenvalues are computed at once
# The eigenvalues that an iteration looks for, and how exactly.
LARGEST: dict[str, Any] = {"which": "LA", "tol": 1e-4}
EIGENVALUE_ERROR = 1e-3  # what an iteration may leave, added to be safe


@dataclass(frozen=True, eq=False)
class UnitGraph:
    """Pairs of units.

    Attributes
    ----------
    count : int
        Units.
    a, b : int64 (pairs,)
        The units of every pair.
    """

    count: int
    a: np.ndarray
    b: np.ndarray

    def matrix(self) -> csr_array:
        """How many pairs every two units have, (count, count), symmetric; a pair within
        a unit counts twice on the diagonal."""
        rows = np.concatenate([self.a, self.b])
        columns = np.concatenate([self.b, self.a])
        shape = (self.count,) * 2
        graph = csr_array(coo_array((np.ones(len(rows)), (rows, columns)), shape=shape))
        graph.sum_duplicates()
        return graph


def dealt(keys: np.ndarray, ratios: np.ndarray, seed: int) -> np.ndarray:
    """C1: a part for every pair, int32 (pairs,); equal keys stay together."""
    _, of_key, sizes = np.unique(keys, return_inverse=True, return_counts=True)
    order = np.random.default_rng(seed).permutation(len(sizes))
    ends = np.cumsum(sizes[order])
    bounds = np.cumsum(ratios) * len(keys)
    place = np.searchsorted(bounds[:-1], ends - sizes[order] / 2, side="right")
    part = np.zeros(len(sizes), np.int32)
    part[order] = place
    return part[of_key.reshape(-1)]


def by_first(graph: UnitGraph, ratios: np.ndarray, seed: int) -> np.ndarray:
    """C2 where the second column is of groups: a part for every unit of the first
    column, int32 (count,); shares are of pairs."""
    tallies = np.bincount(graph.a, minlength=graph.count).astype(np.float64)[:, None]
    present = np.flatnonzero(tallies[:, 0])
    part = np.zeros(graph.count, np.int32)
    part[present] = assign(tallies[present], wanted(ratios, tallies), seed)[0]
    return part


def by_last(graph: UnitGraph, ratios: np.ndarray, seed: int) -> np.ndarray:
    """C2 of two columns of proteins: a part for every unit, int32 (count,). A pair is
    in the later of the parts of its units, so that this unit is new to all earlier
    parts. Parts are filled from the last to the second."""
    matrix, random = graph.matrix(), np.random.default_rng(seed)
    part = np.zeros(graph.count, np.int32)
    diagonal = matrix.diagonal() / 2
    for number in range(len(ratios) - 1, 0, -1):
        aim, pairs = ratios[number] * len(graph.a), 0.0
        for unit in random.permutation(np.flatnonzero(part == 0)).tolist():
            span = slice(matrix.indptr[unit], matrix.indptr[unit + 1])
            near = matrix.indices[span]
            fresh = (part[near] == 0) & (near != unit)
            more = float(matrix.data[span][fresh].sum()) + diagonal[unit]
            if not more or pairs + more > max(aim * SEEN, aim + 1):
                continue
            part[unit], pairs = number, pairs + more
            if pairs >= aim:
                break
    return part


def pairs_by_last(graph: UnitGraph, part: np.ndarray) -> np.ndarray:
    """The part of every pair, int32 (pairs,), by ``by_last``."""
    return np.maximum(part[graph.a], part[graph.b])


def apart(graph: UnitGraph, ratios: np.ndarray, seed: int) -> np.ndarray:
    """C3: a part for every unit, int32 (count,), so that many pairs have both of their
    units in one part and parts have their shares of these."""
    matrix = graph.matrix()
    blocks = connected_components(matrix, directed=False)[1]
    pairs = np.bincount(blocks[graph.a], minlength=int(blocks.max(initial=-1)) + 1)
    tallies = pairs.astype(np.float64)[:, None]
    chosen, large = assign(tallies, wanted(ratios, tallies), seed)
    best, highest = chosen[blocks].astype(np.int32), -np.inf
    if not large.any():
        return best
    for order in _orders(matrix, seed):
        part = _cut(order, graph, ratios)
        part = _moved(part, graph, matrix, ratios, seed)
        if graph.count * len(ratios) * len(graph.a) <= SMALL:
            part = _one_by_one(part, graph, ratios)
        value = _value(part, graph, ratios)
        if value > highest:
            best, highest = part, value
    return best


def pairs_apart(graph: UnitGraph, part: np.ndarray) -> np.ndarray:
    """The part of every pair, int32 (pairs,), -1 where its units are in two."""
    return np.where(part[graph.a] == part[graph.b], part[graph.a], -1).astype(np.int32)


def _orders(matrix: csr_array, seed: int):
    """Orders of units in which neighbours are near: outwards from one, and by the
    second eigenvector of the random walk; and a random one."""
    random = np.random.default_rng(seed)
    count = matrix.shape[0]
    for _ in range(STARTS - 2):
        yield _outwards(matrix, random)
    vector = _second(matrix)[1]
    if vector is not None:
        yield np.argsort(vector, kind="stable")
    yield random.permutation(count)


def _outwards(matrix: csr_array, random: np.random.Generator) -> np.ndarray:
    seen, order = np.zeros(matrix.shape[0], bool), []
    for start in random.permutation(matrix.shape[0]).tolist():
        if not seen[start]:
            reached = breadth_first_order(matrix, start, return_predecessors=False)
            far = breadth_first_order(matrix, reached[-1], return_predecessors=False)
            seen[far] = True
            order.append(far)
    return np.concatenate(order)


def _cut(order: np.ndarray, graph: UnitGraph, ratios: np.ndarray) -> np.ndarray:
    """Parts of consecutive units of an order, with shares of the pairs inside."""
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    low = np.minimum(place[graph.a], place[graph.b])
    high = np.maximum(place[graph.a], place[graph.b])
    widths = np.sqrt(ratios) / np.sqrt(ratios).sum()
    best, error = widths, np.inf
    for _ in range(CUTS):
        ends = np.ceil(np.cumsum(widths) * len(order)).astype(np.int64)
        of_low = np.searchsorted(ends[:-1], low, side="right")
        of_high = np.searchsorted(ends[:-1], high, side="right")
        inside = np.bincount(of_low[of_low == of_high], minlength=len(ratios))
        shares = (inside + 1) / (inside + 1).sum()
        away = float(np.abs(shares - ratios).max())
        if away < error:
            best, error = widths, away
        widths = widths * np.sqrt(ratios / shares)
        widths = widths / widths.sum()
    ends = np.ceil(np.cumsum(best) * len(order)).astype(np.int64)
    return np.searchsorted(ends[:-1], place, side="right").astype(np.int32)


def _value(part: np.ndarray, graph: UnitGraph, ratios: np.ndarray) -> float:
    """Pairs kept, less those beyond the shares of parts; an empty part is worst."""
    inside = _inside(part, graph, len(ratios))
    over = np.maximum(inside - ratios * inside.sum(), 0).sum()
    empty = int((inside == 0).sum()) * len(graph.a)
    return float(inside.sum() - IMBALANCE * over - empty)


def _inside(part: np.ndarray, graph: UnitGraph, parts: int) -> np.ndarray:
    """Pairs of every part."""
    of_pair = pairs_apart(graph, part)
    return np.bincount(of_pair[of_pair >= 0], minlength=parts)


def _moved(
    part: np.ndarray,
    graph: UnitGraph,
    matrix: csr_array,
    ratios: np.ndarray,
    seed: int,
) -> np.ndarray:
    """Units move to where most of their pairs are, many at a time, while that helps.

    Parts with more than their share lend no help: a unit needs the more pairs to go
    there. Of those that would move, fewer are moved after a step that made it worse.
    """
    random, parts = np.random.default_rng(seed), len(ratios)
    best, highest, share = part, _value(part, graph, ratios), 0.5
    for _ in range(PASSES):
        inside = _inside(best, graph, parts)
        price = inside / np.maximum(ratios * max(inside.sum(), 1), 1)
        near = matrix @ np.eye(parts)[best] / np.maximum(price, 0.25)
        new = near.argmax(axis=1).astype(np.int32)
        gain = near[np.arange(len(best)), new] - near[np.arange(len(best)), best]
        movers = (gain > 0) & (random.random(len(best)) < share)
        part = np.where(movers, new, best)
        value = _value(part, graph, ratios)
        if value > highest:
            best, highest = part, value
        elif share < 0.01:
            break
        else:
            share /= 2
    return best


def _one_by_one(part: np.ndarray, graph: UnitGraph, ratios: np.ndarray) -> np.ndarray:
    """Of a small graph: units move, or two are swapped, as long as one step helps."""
    best, highest, helps = part.copy(), _value(part, graph, ratios), True
    while helps:
        helps = False
        steps = [((v, p),) for v in range(graph.count) for p in range(len(ratios))]
        steps += [
            ((v, best[u]), (u, best[v]))
            for v in range(graph.count)
            for u in range(v)
            if best[u] != best[v]
        ]
        for step in steps:
            part = best.copy()
            for unit, new in step:
                part[unit] = new
            value = _value(part, graph, ratios)
            if value > highest + 1e-9:
                best, highest, helps = part, value, True
    return best


def most_apart(graph: UnitGraph, shares: np.ndarray) -> int:
    """C3: no split with these shares of kept pairs keeps more pairs.

    Of two sets of units with volumes v and w, the sums of their pairs at either end, at
    least mu v w / (v + w) pairs are across (Chung 1997, section 2.3), where mu is the
    second least eigenvalue of the normalized Laplacian. Parts are joined to two sets of
    nearly equal shares; pairs outside the largest connected block count as kept.
    """
    matrix, total = graph.matrix(), len(graph.a)
    if not total:
        return 0
    value, _, block = _second(matrix)
    inner = int(block[graph.a].sum())
    # Beyond 1 the inequality would not rise with what is across.
    mu, share, outer = min(max(1 - value, 0.0), 1.0), _even_share(shares), total - inner

    def allowed(across: int) -> bool:
        within, least = total - across, np.inf
        for part in (share, 1 - share):
            pairs = min(max(part * within - outer, 0.0), inner - across)
            v = 2 * pairs + across
            least = min(least, mu * v * (2 * inner - v) / (2 * inner))
        return across >= least - 1e-6 * total

    low, high = 0, inner
    while low < high:
        across = (low + high) // 2
        low, high = (low, across) if allowed(across) else (across + 1, high)
    return total - low


def _even_share(shares: np.ndarray) -> float:
    """The share of some parts together that is nearest to a half."""
    if len(shares) > 12:
        order = np.sort(shares)[::-1]
        sums = np.cumsum(order)
        return float(sums[np.argmin(np.abs(sums - 0.5))])
    masks = (np.arange(2 ** len(shares))[:, None] >> np.arange(len(shares))) & 1
    sums = masks @ shares
    return float(sums[np.argmin(np.abs(sums - 0.5))])


def _second(matrix: csr_array) -> tuple[float, np.ndarray | None, np.ndarray]:
    """The second largest eigenvalue of the normalized adjacency of the largest
    connected block; its vector, over all units, 0 elsewhere; the block, bool (count,).
    """
    labels = connected_components(matrix, directed=False)[1]
    weights = np.bincount(labels, matrix.sum(axis=1))
    block = labels == int(np.argmax(weights))
    members = np.flatnonzero(block)
    if len(members) < 2:
        return -1.0, None, block
    inner = csr_array(matrix[members][:, members])
    scale = diags_array(1 / np.sqrt(inner.sum(axis=1)))
    normal = csr_array(scale @ inner @ scale)
    if len(members) < DENSE:
        values, vectors = np.linalg.eigh(normal.toarray())
    else:
        start = np.random.default_rng(0).random(len(members))
        try:
            values, vectors = eigsh(normal, 2, v0=start, **LARGEST)
        except ArpackError:  # it did not converge: the trivial bound
            return 1.0, None, block
    order = np.argsort(values)
    vector = np.zeros(len(labels))
    vector[members] = vectors[:, order[-2]] / np.sqrt(inner.sum(axis=1))
    return float(values[order[-2]]) + EIGENVALUE_ERROR, vector, block
