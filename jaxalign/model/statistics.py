"""Bits and E-values of local alignments, where the parameters were published.

Karlin and Altschul (PNAS 1990, 87:2264): E = K m' n' exp(-lambda S), bits =
(lambda S - ln K) / ln 2. For gapped alignments lambda and K are known only by
simulation, for some matrices and gap costs (Altschul and Gish, Methods in Enzymology
1996, 266:460; the values are those of NCBI BLAST 2.12, ``blast_stat.c``). The effective
lengths m', n' take off the expected length of an alignment (Altschul, Bundschuh, Olsen
and Hwa, Nucleic Acids Research 2001, 29:351). Where nothing is published the answer is
nan, never a guess. Then ``fit`` takes lambda and K from the scores of one query.

Scores of unrelated sequences follow the distribution of extreme values,

    P(S >= x) = 1 - exp(-K m n exp(-lambda x)),

with a query of m and a sequence of n residues. Pearson (1998, J. Mol. Biol. 276:71)
estimates both from the scores of a search, and takes out the high scores of related
sequences. Here the estimate is that of maximum likelihood: with w = m n, K is N /
sum(w exp(-lambda S)), and lambda solves

    1 / lambda = mean(S) - sum(w S exp(-lambda S)) / sum(w exp(-lambda S)),

of which the right side less the left rises with lambda. A score that fewer than
``UNRELATED`` of so many unrelated sequences would reach is taken out, and the rest is
fitted again. The first fit is by quartiles, which a quarter of related sequences does
not move far. Whether most of the scores were of unrelated sequences is seen from
those of random ones: ``is_trustworthy``.
"""

from math import ceil, exp, isfinite, log
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from jaxalign.model.alphabet import NUCLEIC
from jaxalign.model.scoring import ALIASES, Scoring


class Parameters(NamedTuple):
    """Karlin-Altschul parameters of one matrix and gap cost; E-values round scores down
    to multiples of ``step`` (the published values of match 2, mismatch -3 are for even
    scores)."""

    lambda_: float
    k: float
    alpha: float
    beta: float
    step: int = 1


# matrix: (gap_open, gap_extend, lambda, K, alpha, beta) in BLAST's numbers, in which a
# gap of k costs gap_open + k * gap_extend.
PUBLISHED = {
    "BLOSUM45": (
        (13, 3, 0.207, 0.049, 1.5, -22), (12, 3, 0.199, 0.039, 1.8, -34),
        (11, 3, 0.190, 0.031, 2.0, -38), (10, 3, 0.179, 0.023, 2.4, -51),
        (16, 2, 0.210, 0.051, 1.5, -24), (15, 2, 0.203, 0.041, 1.7, -31),
        (14, 2, 0.195, 0.032, 1.9, -36), (13, 2, 0.185, 0.024, 2.2, -45),
        (12, 2, 0.171, 0.016, 2.8, -65), (19, 1, 0.205, 0.040, 1.9, -43),
        (18, 1, 0.198, 0.032, 2.0, -43), (17, 1, 0.189, 0.024, 2.4, -57),
        (16, 1, 0.176, 0.016, 2.8, -67),
    ),
    "BLOSUM50": (
        (13, 3, 0.212, 0.063, 1.1, -16), (12, 3, 0.206, 0.055, 1.2, -18),
        (11, 3, 0.197, 0.042, 1.4, -25), (10, 3, 0.186, 0.031, 1.7, -34),
        (9, 3, 0.172, 0.022, 2.1, -48), (16, 2, 0.215, 0.066, 1.05, -15),
        (15, 2, 0.210, 0.058, 1.2, -20), (14, 2, 0.202, 0.045, 1.4, -27),
        (13, 2, 0.193, 0.035, 1.6, -32), (12, 2, 0.181, 0.025, 1.9, -41),
        (19, 1, 0.212, 0.057, 1.2, -21), (18, 1, 0.207, 0.050, 1.4, -28),
        (17, 1, 0.198, 0.037, 1.6, -33), (16, 1, 0.186, 0.025, 1.9, -42),
        (15, 1, 0.171, 0.015, 2.7, -76),
    ),
    "BLOSUM62": (
        (11, 2, 0.297, 0.082, 1.1, -10), (10, 2, 0.291, 0.075, 1.3, -15),
        (9, 2, 0.279, 0.058, 1.5, -19), (8, 2, 0.264, 0.045, 1.8, -26),
        (7, 2, 0.239, 0.027, 2.5, -46), (6, 2, 0.201, 0.012, 3.3, -58),
        (13, 1, 0.292, 0.071, 1.2, -11), (12, 1, 0.283, 0.059, 1.5, -19),
        (11, 1, 0.267, 0.041, 1.9, -30), (10, 1, 0.243, 0.024, 2.5, -44),
        (9, 1, 0.206, 0.010, 4.0, -87),
    ),
    "BLOSUM80": (
        (25, 2, 0.342, 0.17, 0.52, -1.6), (13, 2, 0.336, 0.15, 0.59, -3),
        (9, 2, 0.319, 0.11, 0.76, -6), (8, 2, 0.308, 0.090, 0.89, -9),
        (7, 2, 0.293, 0.070, 1.1, -14), (6, 2, 0.268, 0.045, 1.4, -19),
        (11, 1, 0.314, 0.095, 0.90, -9), (10, 1, 0.299, 0.071, 1.1, -14),
        (9, 1, 0.279, 0.048, 1.4, -19),
    ),
    "BLOSUM90": (
        (9, 2, 0.310, 0.12, 0.67, -6), (8, 2, 0.300, 0.099, 0.76, -7),
        (7, 2, 0.283, 0.072, 0.93, -11), (6, 2, 0.259, 0.048, 1.2, -16),
        (11, 1, 0.302, 0.093, 0.78, -8), (10, 1, 0.290, 0.075, 1.04, -15),
        (9, 1, 0.265, 0.044, 1.3, -19),
    ),
    "PAM250": (
        (15, 3, 0.205, 0.049, 1.6, -23), (14, 3, 0.200, 0.043, 1.7, -26),
        (13, 3, 0.194, 0.036, 1.9, -31), (12, 3, 0.186, 0.029, 2.2, -41),
        (11, 3, 0.174, 0.020, 2.5, -48), (17, 2, 0.204, 0.047, 1.7, -28),
        (16, 2, 0.198, 0.038, 1.8, -29), (15, 2, 0.191, 0.031, 2.2, -44),
        (14, 2, 0.182, 0.024, 2.5, -53), (13, 2, 0.171, 0.017, 2.9, -64),
        (21, 1, 0.205, 0.045, 1.8, -34), (20, 1, 0.199, 0.037, 1.9, -35),
        (19, 1, 0.192, 0.029, 2.3, -52), (18, 1, 0.183, 0.021, 2.6, -60),
        (17, 1, 0.171, 0.014, 3.3, -86),
    ),
    "PAM30": (
        (7, 2, 0.305, 0.15, 0.35, -3), (6, 2, 0.287, 0.11, 0.42, -4),
        (5, 2, 0.264, 0.079, 0.59, -7), (10, 1, 0.309, 0.15, 0.35, -3),
        (9, 1, 0.294, 0.11, 0.48, -6), (8, 1, 0.270, 0.072, 0.68, -10),
    ),
    "PAM70": (
        (8, 2, 0.301, 0.12, 0.56, -5), (7, 2, 0.286, 0.093, 0.67, -7),
        (6, 2, 0.264, 0.064, 0.90, -12), (11, 1, 0.305, 0.12, 0.59, -6),
        (10, 1, 0.291, 0.091, 0.71, -9), (9, 1, 0.270, 0.060, 0.97, -14),
    ),
}  # fmt: skip
MATCH_2_MISMATCH_3 = (
    (4, 4, 0.63, 0.42, 0.75, -2), (2, 4, 0.615, 0.37, 0.85, -3),
    (3, 3, 0.615, 0.37, 0.9, -3), (6, 2, 0.63, 0.42, 0.75, -2),
    (5, 2, 0.625, 0.41, 0.8, -2), (4, 2, 0.61, 0.35, 0.9, -3),
    (2, 2, 0.515, 0.14, 1.55, -9),
)  # fmt: skip


def parameters(scoring: Scoring, mode: str) -> Parameters | None:
    """The published parameters of a scoring, None where there are none.

    Examples
    --------
    >>> from jaxalign.model.scoring import Scoring
    >>> parameters(Scoring.blast(11, 1), "local")
    Parameters(lambda_=0.267, k=0.041, alpha=1.9, beta=-30, step=1)
    """
    if mode != "local" or scoring.gap_costs is not None:
        return None
    rows, step = _rows(scoring)
    costs = scoring.gap_open - scoring.gap_extend, scoring.gap_extend
    rows_of_costs = (row[2:] for row in rows if row[:2] == costs)
    return next((Parameters._make((*values, step)) for values in rows_of_costs), None)


def _rows(scoring: Scoring):
    """(rows of the table, step of the scores)."""
    if scoring.match is not None:
        is_published = (scoring.match, scoring.mismatch) == (2, -3)
        nucleic = scoring.alphabet.kind in NUCLEIC
        return (MATCH_2_MISMATCH_3, 2) if is_published and nucleic else ((), 1)
    if not isinstance(scoring.matrix, str):
        return (), 1
    name = scoring.matrix.upper()
    name = name.removeprefix("E") if name.startswith(("EBLOSUM", "EPAM")) else name
    return PUBLISHED.get(ALIASES.get(name, name), ()), 1


def bits(score: ArrayLike, karlin: Parameters | None) -> np.ndarray:
    """Bit scores, float64: (lambda S - ln K) / ln 2; nan without parameters.

    Examples
    --------
    >>> from jaxalign.model.scoring import Scoring
    >>> karlin = parameters(Scoring.blast(11, 1), "local")
    >>> bits([60, 716], karlin).round(1).tolist()
    [27.7, 280.4]
    """
    score = np.asarray(score, np.float64)
    if karlin is None:
        return np.full(score.shape, np.nan)
    return (karlin.lambda_ * score - log(karlin.k)) / log(2)


def evalues(
    score: ArrayLike,
    query_lengths: np.ndarray,
    residues: int,
    count: int,
    karlin: Parameters | None,
) -> np.ndarray:
    """Expected number of random hits with at least this score, float64.

    score, query_lengths : arrays of one shape. Of every hit.
    residues, count : residues and sequences of the whole database.
    karlin : nan where None.
    """
    score = np.asarray(score, np.float64)
    if karlin is None:
        return np.full(score.shape, np.nan)
    spaces = {
        int(m): search_space(int(m), residues, count, karlin)
        for m in np.unique(query_lengths)
    }
    space = np.array([spaces[int(m)] for m in query_lengths], np.float64)
    # Round scores down to the step for which the parameters were published.
    rounded = np.floor(score / karlin.step) * karlin.step
    return space * karlin.k * np.exp(-karlin.lambda_ * rounded)


def least_score(
    evalue: float, query_length: int, residues: int, count: int, karlin: Parameters
) -> int:
    """The smallest score whose E-value is at most ``evalue``, of a query and a whole
    database as in ``evalues``.

    Examples
    --------
    >>> from jaxalign.model.scoring import Scoring
    >>> karlin = parameters(Scoring.blast(11, 1), "local")
    >>> least_score(1e-3, 300, 600_000, 2000, karlin)
    83
    """
    expected = karlin.k * search_space(query_length, residues, count, karlin)
    score = max(log(expected / evalue) / karlin.lambda_, 1.0)
    return ceil(score / karlin.step) * karlin.step


def search_space(m: int, residues: int, count: int, karlin: Parameters) -> int:
    """BLAST's effective search space, (m - l) (residues - count * l)."""
    length = length_adjustment(m, residues, count, karlin)
    return max(residues - count * length, 1) * max(m - length, 1)


def length_adjustment(m: int, residues: int, count: int, karlin: Parameters) -> int:
    """The expected length l of an alignment between random sequences.

    The largest integer l >= 0 with l <= alpha / lambda * ln(K (m - l) (n - N l)) + beta
    that leaves K (m - l) (n - N l) >= max(m, n): n residues in N sequences.
    """

    def allowed(length: int) -> bool:
        effective = m - length, residues - count * length
        space = karlin.k * effective[0] * effective[1]
        if min(effective) <= 0 or space < max(m, residues):
            return False
        return length <= karlin.alpha / karlin.lambda_ * log(space) + karlin.beta

    # Both conditions hold up to some l and fail from there on: bisection.
    low, high = 0, m
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if allowed(middle) else (low, middle - 1)
    return low


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

    scores : (N,)
    lengths : int (N,). Of the sequences.
    Returns Fit. ``NO_FIT`` of fewer than ``LEAST_SCORES`` positive scores, of equal
    ones, or where K would be no number.
    """
    scores, lengths = np.asarray(scores, np.float64), np.asarray(lengths, np.float64)
    positive = scores > 0
    scores, weights = scores[positive], query_length * lengths[positive]
    if len(scores) < LEAST_SCORES or np.ptp(scores) == 0:
        return NO_FIT
    # The first fit is by quartiles.
    low, high = np.quantile(scores, (0.25, 0.75))
    rate = QUARTILES / max(high - low, 1.0)
    for _ in range(ROUNDS):  # scores less what their lengths add
        residuals = scores - np.log(weights) / rate
        low, middle, high = np.quantile(residuals, (0.25, 0.5, 0.75))
        rate = QUARTILES / max(high - low, 1e-9)
    residuals = scores - np.log(weights) / rate
    estimate = LogFit(rate, rate * float(np.median(residuals)) + log(log(2)))
    unrelated = np.zeros(0, bool)
    for _ in range(ROUNDS):
        expected = _expected(estimate, scores, weights)
        previous, unrelated = unrelated, -np.expm1(-expected) * len(scores) >= UNRELATED
        if (
            np.array_equal(previous, unrelated)
            or not unrelated.any()
            or np.ptp(scores[unrelated]) == 0
        ):
            break
        estimate = most_likely(scores[unrelated], weights[unrelated])
    rate, log_k = estimate
    is_valid = isfinite(rate) and rate > 0 and abs(log_k) < MAX_LOG_K
    return Fit(rate, exp(log_k)) if is_valid else NO_FIT


def _expected(estimate: LogFit, scores: np.ndarray, weights: np.ndarray):
    """Expected number of chance scores at least as high, at most e^700."""
    logarithm = estimate.log_k + np.log(weights) - estimate.rate * scores
    return np.exp(np.minimum(logarithm, MAX_LOG_K))


def is_trustworthy(
    estimate: Fit, scores: "ArrayLike", query_length: int, lengths: "ArrayLike"
) -> bool:
    """Whether scores of random sequences agree with a fit.

    They do not if the fit was made from scores of related sequences.

    scores, lengths : (N,). Of random sequences of the same composition.
    """
    reference = fit(scores, query_length, lengths)
    if not (reference.lambda_ > 0 and estimate.lambda_ > 0):
        return False
    low, high = LAMBDA_RATIOS
    alike = low <= estimate.lambda_ / reference.lambda_ <= high
    return (
        alike and fit_distance(estimate, scores, query_length, lengths) <= MAX_DISTANCE
    )


def fit_distance(
    estimate: Fit, scores: "ArrayLike", query_length: int, lengths: "ArrayLike"
) -> float:
    """Largest difference between the observed and the fitted share of scores at or
    above a score."""
    scores, lengths = np.asarray(scores, np.float64), np.asarray(lengths, np.float64)
    log_fit = LogFit(estimate.lambda_, log(estimate.k))
    at = np.unique(scores)
    weights = (query_length * lengths)[:, None]
    shares = -np.expm1(-_expected(log_fit, at[None, :], weights)).mean(axis=0)
    seen = (scores[:, None] >= at[None, :]).mean(axis=0)
    return float(np.abs(shares - seen).max(initial=0))


def most_likely(scores: np.ndarray, weights: np.ndarray) -> LogFit:
    """The estimate of maximum likelihood; weights (N,) of 1 are those of a distribution
    whose mode is ``log_k / rate``."""
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


def fitted_bits(score: "ArrayLike", estimate: Fit) -> np.ndarray:
    """Bit scores, float64: (lambda S - ln K) / ln 2."""
    score = np.asarray(score, np.float64)
    return (estimate.lambda_ * score - np.log(estimate.k)) / log(2)


def fitted_evalues(
    score: "ArrayLike", query_lengths: "ArrayLike", residues: int, estimate: Fit
) -> np.ndarray:
    """K m n exp(-lambda S), float64, with a database of n residues: lengths are not
    shortened, since the fit knows what the ends of sequences cost."""
    space = np.asarray(query_lengths, np.float64) * residues
    return (
        space * estimate.k * np.exp(-estimate.lambda_ * np.asarray(score, np.float64))
    )
