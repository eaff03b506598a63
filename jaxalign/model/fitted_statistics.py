"""Lambda and K of local scores, fitted to the scores of one query where no table has
them.

Scores of unrelated sequences follow the distribution of extreme values,

    P(S >= x) = 1 - exp(-K m n exp(-lambda x)),

with a query of m and a sequence of n residues. Pearson (1998, J. Mol. Biol. 276:71)
estimates both from the scores of a search, and takes out the high scores of related
sequences. Here the estimate is that of maximum likelihood: with w = m n, K is
N / sum(w exp(-lambda S)), and lambda solves

    1 / lambda = mean(S) - sum(w S exp(-lambda S)) / sum(w exp(-lambda S)),

of which the right side less the left rises with lambda. A score that fewer than
``UNRELATED`` of so many unrelated sequences would reach is taken out, and the rest is
fitted again. The first fit is by quartiles, which a quarter of related sequences does
not move far.
"""

from math import exp, log
from typing import Any, NamedTuple

import numpy as np

UNRELATED = 0.01
LEAST_SCORES = 30  # fewer say too little
ROUNDS = 10
QUARTILES = log(log(4)) - log(log(4 / 3))  # of the distribution, with lambda = 1
STEPS = 60  # of bisection


class Fit(NamedTuple):
    """Lambda and K of a query, or of each of some; nan where nothing is fitted."""

    lambda_: Any
    k: Any


NO_FIT = Fit(float("nan"), float("nan"))


def fit(scores, query_length: int, lengths) -> Fit:
    """Lambda and K of the local scores of one query.

    Parameters
    ----------
    scores : (N,)
    query_length : int
    lengths : int (N,)
        Of the sequences.

    Returns
    -------
    Fit
        ``NO_FIT`` of fewer than ``LEAST_SCORES`` positive scores, or of equal ones.
    """
    scores, lengths = np.asarray(scores, np.float64), np.asarray(lengths, np.float64)
    positive = scores > 0
    scores, weights = scores[positive], query_length * lengths[positive]
    if len(scores) < LEAST_SCORES or np.ptp(scores) == 0:
        return NO_FIT
    found, kept = _by_quartiles(scores, weights), np.zeros(0, bool)
    for _ in range(ROUNDS):
        expected = found.k * weights * np.exp(-found.lambda_ * scores)
        before, kept = kept, -np.expm1(-expected) * len(scores) >= UNRELATED
        if np.array_equal(before, kept) or not kept.any() or np.ptp(scores[kept]) == 0:
            break
        found = _most_likely(scores[kept], weights[kept])
    return found


def _by_quartiles(scores, weights) -> Fit:
    low, high = np.quantile(scores, (0.25, 0.75))
    found = QUARTILES / max(high - low, 1.0)
    for _ in range(ROUNDS):  # scores less what their lengths add
        rest = scores - np.log(weights) / found
        low, middle, high = np.quantile(rest, (0.25, 0.5, 0.75))
        found = QUARTILES / max(high - low, 1e-9)
    rest = scores - np.log(weights) / found
    return Fit(found, exp(found * float(np.median(rest)) + log(log(2))))


def _most_likely(scores, weights) -> Fit:
    mean, least = scores.mean(), scores.min()

    def moments(rate):
        parts = weights * np.exp(-rate * (scores - least))
        return parts.sum(), (parts * scores).sum()

    def too_low(rate):
        total, product = moments(rate)
        return 1 / rate > mean - product / total

    high = 1.0
    while too_low(high):
        high *= 2
    low = 0.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if too_low(middle) else (low, middle)
    total, _ = moments(high)
    return Fit(high, len(scores) / total * exp(high * least))


def bits(score, found: Fit) -> np.ndarray:
    """Bit scores, float64: (lambda S - ln K) / ln 2."""
    score = np.asarray(score, np.float64)
    return (found.lambda_ * score - np.log(found.k)) / log(2)


def evalues(score, query_lengths, residues: int, found: Fit) -> np.ndarray:
    """K m n exp(-lambda S), float64, with a database of n residues: lengths are not
    shortened, since the fit knows what the ends of sequences cost."""
    space = np.asarray(query_lengths, np.float64) * residues
    return space * found.k * np.exp(-found.lambda_ * np.asarray(score, np.float64))
