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
not move far. Whether most of the scores were of unrelated sequences is seen from those
of random ones: ``is_trustworthy``.
"""

from math import exp, isfinite, log
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


UNRELATED = 0.01
LEAST_SCORES = 30  # fewer say too little
ROUNDS = 10
QUARTILES = log(log(4)) - log(log(4 / 3))  # of the distribution, with lambda = 1
STEPS = 60  # of bisection
MAX_LOG_K = 700.0  # beyond it K is no double
# What a fit to a database and one to random sequences may differ by: lambda as a ratio,
# and the share of random scores at or above any score. Among Swiss-Prot's proteins they
# differ by 0.68 to 1.07, and 0.14; where two fifths are related, by 0.36 and 0.38.
LAMBDA_RATIOS, MAX_DISTANCE = (0.5, 1.3), 0.25


class Fit(NamedTuple):
    """Lambda and K of a query, or of each of some; nan where nothing is fitted."""

    lambda_: Any
    k: Any


class LogFit(NamedTuple):
    """Lambda, and the logarithm of K, which may be no double itself."""

    rate: float
    log_k: float


NO_FIT = Fit(float("nan"), float("nan"))


def fit(scores: "ArrayLike", query_length: int, lengths: "ArrayLike") -> Fit:
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
        ``NO_FIT`` of fewer than ``LEAST_SCORES`` positive scores, of equal ones, or
        where K would be no number.
    """
    scores, lengths = np.asarray(scores, np.float64), np.asarray(lengths, np.float64)
    positive = scores > 0
    scores, weights = scores[positive], query_length * lengths[positive]
    if len(scores) < LEAST_SCORES or np.ptp(scores) == 0:
        return NO_FIT
    estimate, kept = _by_quartiles(scores, weights), np.zeros(0, bool)
    for _ in range(ROUNDS):
        expected = _expected(estimate, scores, weights)
        before, kept = kept, -np.expm1(-expected) * len(scores) >= UNRELATED
        if np.array_equal(before, kept) or not kept.any() or np.ptp(scores[kept]) == 0:
            break
        estimate = _most_likely(scores[kept], weights[kept])
    rate, log_k = estimate
    known = isfinite(rate) and rate > 0 and abs(log_k) < MAX_LOG_K
    return Fit(rate, exp(log_k)) if known else NO_FIT


def _expected(estimate: LogFit, scores: np.ndarray, weights: np.ndarray):
    """How many scores as high chance gives, e^700 where it is more."""
    logarithm = estimate.log_k + np.log(weights) - estimate.rate * scores
    return np.exp(np.minimum(logarithm, MAX_LOG_K))


def is_trustworthy(
    estimate: Fit, scores: "ArrayLike", query_length: int, lengths: "ArrayLike"
) -> bool:
    """Whether scores of random sequences are as a fit says.

    They are not where it was made of the scores of related sequences.

    Parameters
    ----------
    estimate : Fit
    scores, lengths : (N,)
        Of random sequences of the same composition.
    query_length : int
    """
    own = fit(scores, query_length, lengths)
    if not (own.lambda_ > 0 and estimate.lambda_ > 0):
        return False
    low, high = LAMBDA_RATIOS
    alike = low <= estimate.lambda_ / own.lambda_ <= high
    return alike and distance(estimate, scores, query_length, lengths) <= MAX_DISTANCE


def distance(
    estimate: Fit, scores: "ArrayLike", query_length: int, lengths: "ArrayLike"
) -> float:
    """The largest difference between the share of scores at or above a score and what
    a fit expects of them."""
    scores, lengths = np.asarray(scores, np.float64), np.asarray(lengths, np.float64)
    known = LogFit(estimate.lambda_, log(estimate.k))
    at = np.unique(scores)
    weights = (query_length * lengths)[:, None]
    shares = -np.expm1(-_expected(known, at[None, :], weights)).mean(axis=0)
    seen = (scores[:, None] >= at[None, :]).mean(axis=0)
    return float(np.abs(shares - seen).max(initial=0))


def _by_quartiles(scores: np.ndarray, weights: np.ndarray) -> LogFit:
    low, high = np.quantile(scores, (0.25, 0.75))
    found = QUARTILES / max(high - low, 1.0)
    for _ in range(ROUNDS):  # scores less what their lengths add
        rest = scores - np.log(weights) / found
        low, middle, high = np.quantile(rest, (0.25, 0.5, 0.75))
        found = QUARTILES / max(high - low, 1e-9)
    rest = scores - np.log(weights) / found
    return LogFit(found, found * float(np.median(rest)) + log(log(2)))


def _most_likely(scores: np.ndarray, weights: np.ndarray) -> LogFit:
    mean, least = scores.mean(), scores.min()

    def moments(rate: float):
        parts = weights * np.exp(-rate * (scores - least))
        return parts.sum(), (parts * scores).sum()

    def too_low(rate: float):
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
    return LogFit(high, log(len(scores) / total) + high * float(least))


def bits(score: "ArrayLike", found: Fit) -> np.ndarray:
    """Bit scores, float64: (lambda S - ln K) / ln 2."""
    score = np.asarray(score, np.float64)
    return (found.lambda_ * score - np.log(found.k)) / log(2)


def evalues(
    score: "ArrayLike", query_lengths: "ArrayLike", residues: int, found: Fit
) -> np.ndarray:
    """K m n exp(-lambda S), float64, with a database of n residues: lengths are not
    shortened, since the fit knows what the ends of sequences cost."""
    space = np.asarray(query_lengths, np.float64) * residues
    return space * found.k * np.exp(-found.lambda_ * np.asarray(score, np.float64))
