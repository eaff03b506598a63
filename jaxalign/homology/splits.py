"""Components to parts: what is too large for a part, and how near the shares are.

Bounds that every split of a set meets stand beside what a greedy search gives, so that
a reader sees how far it may be from the optimum.
"""

from math import isclose
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from jaxalign.errors import UsageError
from jaxalign.homology import stratified
from jaxalign.homology.assignment import Wanted, assign, tally, wanted
from jaxalign.homology.links import Links
from jaxalign.homology.removal import Shares, divide
from jaxalign.homology.split_tables import REMOVED, Labels
from jaxalign.homology.stratified import Balance
from jaxalign.model.names import CONTROL
from jaxalign.model.numbers import check_whole, is_number

MAX_FOLDS = 10_000
CLIQUES = 20  # vertices from which a clique is grown


def shares_of(parts: Any, folds: int | None) -> dict[str, float]:
    """Names of parts and their shares, from ``parts`` or a number of ``folds``.

    Raises
    ------
    UsageError
        Both are given, shares do not sum to 1, or a name is not fit for a file.
    """
    if folds is not None:
        if parts is not None:
            raise UsageError("folds and parts exclude each other")
        needed = f"2 to {MAX_FOLDS:,} are needed"
        check_whole("folds", folds, needed)
        if not 2 <= folds <= MAX_FOLDS:
            raise UsageError(f"folds = {folds}: {needed}")
        return {f"fold{number}": 1 / folds for number in range(1, folds + 1)}
    if not hasattr(parts, "items"):
        raise UsageError(
            "parts or folds are needed: parts={'train': 0.8, 'test': 0.2}, or folds=5"
        )
    shares = {str(name): share for name, share in parts.items()}
    for name, share in shares.items():
        odd = CONTROL.search(name) or "/" in name or name != name.strip()
        if not name or name == REMOVED or odd:
            raise UsageError(f"part {name!r}: this is no name for a part")
        if not (is_number(share) and 0 < share <= 1):
            raise UsageError(f"part {name}: {share!r} is no share above 0, up to 1")
    total = sum(shares.values())
    if len(shares) < 2 or not isclose(total, 1, abs_tol=1e-6):
        raise UsageError(
            f"{len(shares)} parts with shares that sum to {total:g}: two or more are "
            "needed, and a sum of 1"
        )
    return shares


def place(
    component: np.ndarray,
    links: Links | None,
    shares: dict[str, float],
    labels: Labels | None,
    seed: int,
    too_large: str,
    weight: np.ndarray | None = None,
) -> np.ndarray:
    """A part for every sequence, so that no link is left across parts.

    Parameters
    ----------
    component : int32 (n,)
    links : Links, or None
        Needed where something may be removed.
    shares : dict
    labels : Labels or None
    seed : int
    too_large : {"error", "keep", "remove"}
    weight : int64 (n,), optional
        Priorities: what is removed is to have as little as can be.

    Returns
    -------
    int32 (n,)
        Numbers of parts, -1 for what is removed.

    Raises
    ------
    UsageError
        A component fits no part, or a part would be empty.
    """
    ratios = np.array(list(shares.values()))
    numbers = None if labels is None else labels.numbers
    tallies = tally(component, numbers)
    aim = wanted(ratios, tallies)
    chosen, large = assign(tallies, aim, seed)
    if large.any() and too_large == "error":
        raise _too_large(tallies[:, 0], chosen, large, shares)
    part = chosen[component]
    if too_large == "remove" and len(np.unique(chosen)) < len(shares) and len(chosen):
        large[np.argmax(tallies[:, 0])] = True  # whole, it would leave a part empty
    if large.any() and too_large == "remove":
        assert links is not None
        inside = large[component]
        inner = None if weight is None else weight[inside]
        if numbers is None:
            part = _divided(
                component, links, (ratios, seed, inner), large, tallies, aim
            )
        else:
            part = stratified.divide(links, Balance(ratios, numbers, weight), seed)
    check_parts(part, shares, tallies, too_large)
    return part


def check_parts(
    part: np.ndarray, shares: dict[str, float], tallies: np.ndarray, too_large: str
) -> None:
    """Refuse a split with an empty part, unless sizes may be as they come.

    Raises
    ------
    UsageError
    """
    sizes = np.bincount(part[part >= 0], minlength=len(shares))
    if (sizes == 0).any() and too_large != "keep":
        empty = list(shares)[int(np.argmin(sizes))]
        largest = int(tallies.max(initial=0))
        raise UsageError(
            f"part {empty} would be empty: {len(part):,} sequences have "
            f"{len(tallies):,} components, the largest of {largest:,}; "
            "a higher cut has more components, too_large='keep' allows empty parts"
        )


def _too_large(
    sizes: np.ndarray, chosen: np.ndarray, large: np.ndarray, shares: dict[str, float]
) -> UsageError:
    worst = int(np.argmax(np.where(large, sizes, -1)))
    name, share = list(shares.items())[int(chosen[worst])]
    return UsageError(
        f"{int(large.sum()):,} of {len(sizes):,} components fit into no part; the "
        f"largest of them has {int(sizes[worst]):,} of {int(sizes.sum()):,} sequences, "
        f"where part {name} should have {share:.1%} and larger components come "
        "first\nhint: too_large='keep' lets parts differ from their shares, "
        "too_large='remove' takes sequences out; a higher cut has smaller components"
    )


def _divided(
    component: np.ndarray,
    links: Links,
    chosen: tuple,
    large: np.ndarray,
    tallies: np.ndarray,
    aim: Wanted,
):
    """Parts where the components that are too large are divided, the others placed
    beside them.

    chosen : ratios, seed, priorities of those that are divided
    """
    ratios, seed, weight = chosen
    inside = large[component]
    members = np.flatnonzero(inside)
    number = np.cumsum(inside) - 1
    linked = inside[links.i]  # and so is j: a link stays in its component
    inner = Links(
        number[links.i[linked]], number[links.j[linked]], links.identity[linked]
    )
    missing = len(component) - len(members)
    shares = Shares(ratios * len(component), missing, weight)
    part = np.full(len(component), -1, np.int32)
    part[members] = divide(len(members), inner, shares, seed)
    before = np.zeros_like(aim.counts)
    counts = tally(part, None)
    before[: len(counts)] = counts
    places, _ = assign(tallies[~large], aim, seed, before)
    of_rest = np.cumsum(~large) - 1
    part[~inside] = places[of_rest[component[~inside]]]
    return part


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
