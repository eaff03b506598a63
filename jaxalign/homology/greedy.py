"""Greedy clusters, longest first: what CD-HIT means, without its word filter.

Sequences are taken from the longest to the shortest, of equals in input order. One that
is linked to a representative joins the first one it is linked to; any other one becomes
a representative. So every member is linked to its representative, and no two
representatives are linked.
"""

from dataclasses import dataclass

import numpy as np

from jaxalign.homology.links import PairCounts
from jaxalign.homology.options import Definition, identities, pair_options
from jaxalign.model.alphabet import Sequences
from jaxalign.pairs import tables
from jaxalign.pairs.parts.query_ranges import PART_ROWS

MIN_BAND = 64  # sequences taken at once …
BANDS = 64  # … and bands of a job, about: the last ones meet the fewest
WIDEST = 4096


@dataclass(frozen=True, eq=False)
class Greedy:
    """Who stands for whom.

    Attributes
    ----------
    representative : int64 (n,)
        Of every sequence; of a representative itself.
    identity : float64 (n,)
        With the representative; 1 of a representative.
    """

    representative: np.ndarray
    identity: np.ndarray


def greedy(sequences: Sequences, definition: Definition, counts: PairCounts) -> Greedy:
    """Clusters of a set; no more than a band of pairs is in memory.

    A band of sequences that have no representative yet is aligned among itself, and
    its representatives with all shorter sequences that have none. A sequence that has
    a representative is not aligned again.
    """
    n, lengths = len(sequences), sequences.lengths
    order = np.lexsort((np.arange(n), -lengths))
    state = Greedy(np.full(n, -1, np.int64), np.ones(n))
    tell = definition.options.progress
    whole, at = int(lengths.sum()), 0
    for band in _bands(n):
        free = _without(state, order[band])
        counts.pairs += _pairs_of(len(order[band]), n - band.start)
        _join(state, free, free, sequences, definition, counts)
        state.representative[_without(state, free)] = _without(state, free)
        chosen = free[state.representative[free] == free]
        later = _without(state, order[band.stop :])
        for piece in _pieces(chosen, max(len(later), 1)):
            later = _without(state, later)
            _join(state, piece, later, sequences, definition, counts)
        at += int(lengths[order[band]].sum())
        if tell:
            tell(at * whole, whole * whole)
    return state


def _pairs_of(band: int, rest: int) -> int:
    """Pairs of a band with itself and with all that follow it."""
    return band * (band - 1) // 2 + band * (rest - band)


def _bands(n: int):
    width = min(max(MIN_BAND, n // BANDS), WIDEST)
    return [slice(first, min(first + width, n)) for first in range(0, n, width)]


def _pieces(chosen: np.ndarray, targets: int):
    """Queries whose pairs fit into a part."""
    width = max(PART_ROWS // targets, 1)
    return [chosen[first : first + width] for first in range(0, len(chosen), width)]


def _without(state: Greedy, some: np.ndarray) -> np.ndarray:
    """Those of some sequences that have no representative."""
    return some[state.representative[some] < 0]


def _join(state, queries, targets, sequences, definition, counts) -> None:
    """Let targets join the first query they are linked to.

    Queries that are the targets become representatives one after the other; a query
    that has joined another one is none.
    """
    if not len(queries) or not len(targets):
        return
    same, sides = queries is targets, (sequences.take(queries), sequences.take(targets))
    kind, scoring = "all" if same else "cross", definition.scoring
    table = tables.run(kind, *sides, scoring, pair_options(definition))
    shares, before = identities(table, definition), counts.pairs
    counts.add(table.info, shares, definition)
    counts.pairs = before  # pairs with a member count as settled, not as aligned
    for i, j, share in _rows(queries, targets, table, shares):
        # Rows are in the order of queries: what comes first is the first to be joined.
        if state.representative[i] in (-1, i) and state.representative[j] < 0:
            state.representative[i] = i
            state.representative[j], state.identity[j] = i, share


def _rows(queries, targets, table, shares):
    i, j = queries[table["query"]].tolist(), targets[table["target"]].tolist()
    return zip(i, j, shares.tolist(), strict=True)
