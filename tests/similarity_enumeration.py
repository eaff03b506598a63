"""The soft model by its definition: every alignment of tiny sequences, one by one.

An alignment is a string over M, I, D (``enumerate_alignments``); strings with the same
pairs are one alignment, scored as the best of them. No recurrence, float64, nothing of
the project.
"""

from functools import cache
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


def positional(S, opening, extending, T, mode):
    """Score and expected costs where gap costs depend on the place.

    ``opening`` and ``extending`` are pairs of (m, n): of the query's residues and of
    the target's. Between two pairs the query's residues come first. Modes ``local``
    and ``global``; also returns the expected counts, in the order of the costs.
    """
    m, n = S.shape
    scores, counts = [], []
    for path in paths(m, n):
        if "DI" in path:
            continue
        start, end = 0, len(path)
        if mode == "local":
            core = path.strip("ID")
            lead = path[: path.index(core)] if core else path
            # One string of all those that differ in what lies outside the core.
            if lead != "I" * lead.count("I") + "D" * lead.count("D"):
                continue
            start, end = len(lead), len(lead) + len(core)
        score, count = 0.0, np.zeros((2, 2, m, n))
        for k in range(start, end):
            i, j = end_of(path[: k + 1])
            if path[k] == "M":
                score += S[i - 1, j - 1]
                continue
            at = max(i - 1, 0), max(j - 1, 0)
            more, side = path[k] == path[k - 1] and k > start, "ID".index(path[k])
            score -= (extending if more else opening)[side][at]
            count[int(more), side][at] += 1
        scores.append(score / T)
        counts.append(count)
    p = np.exp(np.array(scores) - log_sum(np.array(scores)))
    return T * log_sum(np.array(scores)), np.einsum("k,kabij->abij", p, counts)


def end_of(path):
    return len(path) - path.count("D"), len(path) - path.count("I")
