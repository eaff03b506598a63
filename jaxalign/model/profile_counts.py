"""From the columns of an alignment, or the numbers of an HMM, to log-odds."""

from typing import TYPE_CHECKING

import numpy as np

from jaxalign.errors import UsageError
from jaxalign.model import matrix
from jaxalign.model.alphabet import PROTEIN

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


RESIDUES = PROTEIN[:20]  # ARNDCQEGHILKMFPSTWYV
GAP, OTHER = -1, -2  # codes beside those of the residues; B, Z, X are no evidence
LAMBDA = 0.3176  # of BLOSUM62 without gaps, nats a score
# Robinson and Robinson, PNAS 88:8880 (1991), in the order of ``RESIDUES``.
FREQUENCIES = np.array([
    0.07805, 0.05129, 0.04487, 0.05364, 0.01925, 0.04264, 0.06295, 0.07377, 0.02199,
    0.05142, 0.09019, 0.05744, 0.02243, 0.03856, 0.05203, 0.07120, 0.05841, 0.01330,
    0.03216, 0.06441,
])  # fmt: skip
FREQUENCIES /= FREQUENCIES.sum()


def codes_of(rows: list[str]) -> np.ndarray:
    """Aligned rows of ASCII, all of one length -> int8 (rows, columns)."""
    table = np.full(128, OTHER, np.int8)
    for code, letter in enumerate(RESIDUES):
        table[[ord(letter), ord(letter.lower())]] = code
    table[[ord(x) for x in "-.~"]] = GAP
    return table[np.array([list(row.encode("ascii")) for row in rows])]


def row_weights(letters: np.ndarray, weights: "ArrayLike") -> np.ndarray:
    """Weights of the rows, with sum 1.

    Henikoff and Henikoff (1994): a column with k kinds of letters gives 1 / (k n) to
    each of the n rows with a letter."""
    count = len(letters)
    if isinstance(weights, str):
        if weights not in ("henikoff", "equal"):
            raise UsageError(f"weights={weights!r}: henikoff, equal, or numbers")
        total = np.zeros(count) if weights == "henikoff" else np.ones(count)
        for column in letters.T if weights == "henikoff" else ():
            counts = np.bincount(column[column >= 0], minlength=20)
            kinds = np.count_nonzero(counts)
            seen = column >= 0
            total[seen] += 1 / (kinds * counts[column[seen]])
    else:
        try:
            total = np.asarray(weights, float)
        except (TypeError, ValueError):
            raise UsageError("weights of rows are numbers") from None
        if total.shape != (count,) or not (total >= 0).all():
            raise UsageError(f"{count} weights of rows, none below 0, are needed")
    if not 0 < total.sum() < np.inf:
        raise UsageError("the weights of the rows have no positive sum")
    return total / total.sum()


def positions(
    letters: np.ndarray, weights: np.ndarray, max_gaps: float | None
) -> np.ndarray:
    """The columns with letters, and with no more gaps than ``max_gaps``."""
    keep = (letters >= 0).any(0)
    if max_gaps is not None:
        keep &= weights @ (letters == GAP) <= max_gaps
    if not keep.any():
        raise UsageError("no column of the alignment is a position")
    return letters[:, keep]


def log_odds(
    letters: np.ndarray, weights: np.ndarray, pseudocounts: float
) -> np.ndarray:
    """ln(Q / P) of the residues, (m, 20), Q as in PSI-BLAST:

    Q_a = (alpha f_a + beta g_a) / (alpha + beta),  g_a = sum over b of f_b q_ab / P_b

    with the weighted frequencies f, target frequencies q = P P exp(lambda s) of
    BLOSUM62, alpha = mean number of kinds of letters in a column, less 1.
    """
    kinds = range(20)
    f = np.stack([weights @ (letters == kind) for kind in kinds], 1)
    f /= f.sum(1, keepdims=True)
    named, scores = matrix.load("BLOSUM62")
    at = [named.index(residue) for residue in RESIDUES]
    q = np.exp(LAMBDA * scores[np.ix_(at, at)]) * np.outer(FREQUENCIES, FREQUENCIES)
    q /= q.sum()
    conditional = q / q.sum(1, keepdims=True)
    alpha = np.mean([len(set(x[x >= 0])) for x in letters.T]) - 1
    mixed = (alpha * f + pseudocounts * (f @ conditional)) / (alpha + pseudocounts)
    return np.log(mixed / FREQUENCIES)


def odds_of_emissions(emissions: np.ndarray) -> np.ndarray:
    """-ln p by position in HMMER's order of letters -> ln(p / P) in ours."""
    order = [sorted(RESIDUES).index(residue) for residue in RESIDUES]
    return -emissions[:, order] - np.log(FREQUENCIES)


def gap_costs(transitions: np.ndarray):
    """-ln of MM, MI, MD, IM, II, DM, DD behind each position -> (opening, extending),
    each (of positions that are left out, of residues behind a position)."""
    mm, mi, md, im, ii, dm, dd = np.minimum(transitions, 50).T
    before = np.maximum(
        np.arange(len(mm)) - 1, 0
    )  # a position's D is entered from k - 1
    leave = np.maximum(md[before] + dm - mm, 0) / LAMBDA
    insert = np.maximum(mi + im - mm, 0) / LAMBDA
    more = dd[before] / LAMBDA, ii / LAMBDA
    return (leave, insert), more


def mean_of(odds: np.ndarray, kinds: str) -> np.ndarray:
    """The log-odds of a letter that means any of some residues, (m,)."""
    at = [RESIDUES.index(residue) for residue in kinds]
    share = FREQUENCIES[at] / FREQUENCIES[at].sum()
    return odds[:, at] @ share
