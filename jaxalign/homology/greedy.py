"""Greedy clusters, longest first: what CD-HIT means, without its word filter.

Sequences are taken from the longest to the shortest, of equals in input order. One that
is linked to a representative joins the first one it is linked to; any other one becomes
a representative. So every member is linked to its representative, and no two
representatives are linked.
"""

from dataclasses import dataclass
from math import isqrt

import numpy as np

from jaxalign.homology.links import PairCounts, rows_at_once
from jaxalign.homology.options import Definition, identities, pair_options
from jaxalign.model.alphabet import Sequences
from jaxalign.model.table import Table
from jaxalign.pairs import jobs
from jaxalign.pairs.windows import WholeJob
from jaxalign.runtime.lengths import by_length

MIN_BAND, MAX_BAND = 64, 2**14  # sequences taken at once


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
    a representative is not aligned again. So bands are narrow where most sequences
    find one, and wide where few do, since a wide one computes faster.
    """
    n, lengths = len(sequences), sequences.lengths
    later = by_length(lengths)
    state = Greedy(np.full(n, -1, np.int64), np.ones(n))
    tell, letters = definition.options.progress, int(lengths.sum())
    rows, width = rows_at_once(definition, 1), MIN_BAND
    while len(later):
        band, later = later[:width], later[width:]
        _join(state, band, band, sequences, definition, counts)
        chosen = _without(state, band)
        state.representative[chosen] = chosen
        chosen = band[state.representative[band] == band]
        for piece in _pieces(chosen, max(len(later), 1), rows):
            _join(state, piece, later, sequences, definition, counts)
            later = _without(state, later)
        wide = len(chosen) * 2 > len(band)
        width = width * 2 if wide else max(width // 2, MIN_BAND)
        width = min(width, MAX_BAND, max(isqrt(rows), MIN_BAND))
        if tell:
            tell((letters - int(lengths[later].sum())) * letters, letters * letters)
    counts.pairs += n * (n - 1) // 2
    return state


def _pieces(chosen: np.ndarray, targets: int, rows: int):
    """Queries whose pairs are ``rows`` at most."""
    width = max(rows // targets, 1)
    return [chosen[first : first + width] for first in range(0, len(chosen), width)]


def _without(state: Greedy, gone: np.ndarray) -> np.ndarray:
    """Those of some sequences that have no representative."""
    return gone[state.representative[gone] < 0]


def _join(
    state: Greedy,
    queries: np.ndarray,
    targets: np.ndarray,
    sequences: Sequences,
    definition: Definition,
    counts: PairCounts,
) -> None:
    """Let targets join the first query they are linked to.

    Queries that are the targets become representatives one after the other; a query
    that has joined another one is none.
    """
    if not len(queries) or not len(targets):
        return
    same, sides = queries is targets, (sequences.take(queries), sequences.take(targets))
    kind, scoring = "all" if same else "cross", definition.scoring
    most = int(sequences.lengths.max())
    letters = len(sequences.codes)
    whole = WholeJob((most, most), letters**2 // 2, len(sequences), letters)
    table = jobs.run(kind, *sides, scoring, pair_options(definition), whole)
    shares, before = identities(table, definition), counts.pairs
    counts.add(table.info, shares, definition)
    counts.pairs = before  # pairs with a member count as settled, not as aligned
    for i, j, share in _rows(queries, targets, table, shares):
        # Rows are in the order of queries: what comes first is the first to be joined.
        if state.representative[i] in (-1, i) and state.representative[j] < 0:
            state.representative[i] = i
            state.representative[j], state.identity[j] = i, share


def _rows(queries: np.ndarray, targets: np.ndarray, table: Table, shares: np.ndarray):
    i, j = queries[table["query"]].tolist(), targets[table["target"]].tolist()
    return zip(i, j, shares.tolist(), strict=True)
