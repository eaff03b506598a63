"""The soft model by its definition: every alignment of tiny sequences, one by one.

An alignment is a string over M, I, D (``enumerate_alignments``); strings with the same
pairs are one alignment, scored as the best of them. No recurrence, float64, nothing of
the project.
"""

from functools import cache, partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from enumerate_alignments import ENDS, costly_gaps, pairings, paths


class Sets(NamedTuple):
    """All sets of pairs: which pairs (K, m, n), how many gaps opened and extended."""

    pairs: np.ndarray
    opens: np.ndarray
    extensions: np.ndarray


class Exact(NamedTuple):
    score: float
    posterior: np.ndarray
    opens: float
    extensions: float
    entropy: float


@cache
def sets(m, n, mode, free, adjacent, open, extend) -> Sets:
    """Every set of pairs with the counts of its cheapest string."""
    free = frozenset(ENDS) if mode == "semiglobal" else free
    best = {}
    for path in paths(m, n):
        pairs = tuple(pairings(path))
        if mode == "local":
            path = path.strip("ID")
        if not adjacent and ("ID" in path or "DI" in path):
            continue
        gaps = costly_gaps(path, free if mode != "local" else frozenset())
        counts = len(gaps), sum(gaps) - len(gaps)
        cost = open * counts[0] + extend * counts[1]
        if pairs not in best or cost < best[pairs][0]:
            best[pairs] = cost, *counts
    shown = np.zeros((len(best), m, n))
    for k, pairs in enumerate(best):
        for i, j in pairs:
            shown[k, i, j] = 1
    counts = np.array([found[1:] for found in best.values()], float).reshape(-1, 2)
    return Sets(shown, counts[:, 0], counts[:, 1])


def exact(S, open, extend, T, mode, free=frozenset(), adjacent=True) -> Exact | None:
    """Everything about the model, or None where no alignment is legal."""
    m, n = S.shape
    every = sets(m, n, mode, frozenset(free), adjacent, open, extend)
    if not len(every.pairs):
        return None
    scores = np.einsum("kij,ij->k", every.pairs, S)
    scores = scores - open * every.opens - extend * every.extensions
    log_p = scores / T - log_sum(scores / T)
    p = np.exp(log_p)
    return Exact(
        T * log_sum(scores / T),
        np.einsum("k,kij->ij", p, every.pairs),
        p @ every.opens,
        p @ every.extensions,
        -(p @ log_p),
    )


def log_sum(x):
    return np.max(x) + np.log(np.sum(np.exp(x - np.max(x))))


# --- costs of any form: by sequence, by residue, by cell; all modes; a band


@cache
def pair_sets(m, n):
    """Every set of pairs that rise in both sequences, as tuples."""
    every = sets(m, n, "global", frozenset(), True, 1.0, 1.0).pairs
    return [tuple(zip(*np.nonzero(pairs), strict=True)) for pairs in every]


class Scored(NamedTuple):
    """``totals`` (K,), -inf where it is no alignment; ``payers`` (K, 2, 2, M, N): how
    many residues pay to open, to extend, of the query, of the target, at each cell."""

    totals: np.ndarray
    payers: np.ndarray


def every_alignment(s, costs, lengths, mode, free, adjacent, band=None) -> Scored:
    """All of ``pair_sets(*lengths)`` by the definition.

    ``s`` (M, N); ``costs`` (2, 2, M, N), those of opening by query and target, and of
    extending. ``band`` (M, N) says which pairs may be, and where gaps may stand.
    """
    s, costs = np.float64(s), np.float64(costs)
    if band is not None:
        s, costs = np.where(band, s, -np.inf), np.where(band, costs, np.inf)
    free = frozenset(ENDS) if mode == "semiglobal" else frozenset(free or ())
    totals, payers = [], []
    for pairs in pair_sets(*lengths):
        paid = payers_of(costs, pairs, lengths, mode, free, adjacent)
        points = sum(s[pair] for pair in pairs)
        totals.append(-np.inf if paid is None else points - price(costs, paid))
        payers.append(np.zeros_like(costs) if paid is None else paid)
    return Scored(np.array(totals, float), np.array(payers))


def price(costs, payers):
    return np.sum(costs[payers > 0] * payers[payers > 0])


def payers_of(costs, pairs, lengths, mode, free, adjacent):
    """Who pays in the alignment of these pairs; None where there is none."""
    m, n = lengths
    run = partial(run_of, costs.shape)
    cheaper = partial(min, key=partial(price, costs))
    if not pairs:
        if mode == "local":
            return np.zeros_like(costs)
        if not adjacent and m and n:
            return None
        q_first = run("I", m, (0, 0), "query_start" in free)
        q_first = q_first + run("D", n, (m, 0), "target_end" in free)
        t_first = run("D", n, (0, 0), "target_start" in free)
        t_first = t_first + run("I", m, (0, n), "query_end" in free)
        hangs = free & {"target_start", "query_end"}
        return cheaper([q_first, t_first]) if hangs else q_first
    paid = np.zeros_like(costs)
    for (i, j), (k, l) in pairwise(pairs):
        if not adjacent and k - i > 1 and l - j > 1:
            return None
        paid += run("I", k - i - 1, (i + 1, j + 1)) + run("D", l - j - 1, (k, j + 1))
    if mode == "local":
        return paid
    (k, l), (i, j) = pairs[0], pairs[-1]
    if not adjacent and (k and l or m - 1 - i and n - 1 - j):
        return None
    late_query, late_target = run("I", k, (0, l)), run("D", l, (k, 0))
    start = {
        (False, False): run("I", k, (0, 0)) + late_target,
        (True, False): late_target,
        (False, True): late_query,
        (True, True): cheaper([late_query, late_target]),
    }
    k, l = m - 1 - i, n - 1 - j
    first_query, first_target = run("I", k, (i + 1, j + 1)), run("D", l, (i + 1, j + 1))
    end = {
        (False, False): first_query + run("D", l, (m, j + 1)),
        (True, False): first_target,
        (False, True): first_query,
        (True, True): cheaper([first_query, first_target]),
    }
    q, t = (f"{side}_start" in free for side in ("query", "target"))
    return paid + start[q, t] + end["query_end" in free, "target_end" in free]


def run_of(shape, op, count, cell, free=False):
    """The payers among ``count`` residues against a gap, from a cell on; cells read the
    entry before them, those of a border the nearest one."""
    payers, (i, j) = np.zeros(shape), cell
    for k in range(0 if free else count):
        i, j = (i + 1, j) if op == "I" else (i, j + 1)
        payers[min(k, 1)]["ID".index(op)][max(i - 1, 0), max(j - 1, 0)] += 1
    return payers
