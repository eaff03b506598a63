"""Less score for hits whose composition alone makes them score.

HMMER's second null model (Eddy, HMMER User's Guide 3.4, "The biased composition score
correction"): a random sequence with the composition that the aligned positions emit on
average. With odds o_i(a) of letter a at position i, the positions A of a path, and its
k residues between positions,

    n(a) = (sum over i in A of o_i(a) + k) / (|A| + k),   bias = sum over x of ln n(x)

over the residues x of the path. The prior of the second model is ``PRIOR``, so the
score loses ln(1 + PRIOR exp(bias)) nats.
"""

import numpy as np

from jaxalign.family.aligned_rows import GAP, Columns
from jaxalign.model.profile_counts import FREQUENCIES

PRIOR = 1 / 256
RESIDUES = 20
STEPS = 60  # of bisection


def lost_score(hits: Columns, scores: np.ndarray, unit: float) -> np.ndarray:
    """The score that each hit loses, float64 (hits,).

    Parameters
    ----------
    hits : Columns
    scores : (m, letters)
        Of every position of the query; 1 is ``unit`` nats.
    """
    odds = np.exp(unit * scores[:, :RESIDUES])
    aligned = hits.codes != GAP
    inserted = hits.inserted.sum(1)
    total = aligned.sum(1) + inserted
    emitted = (aligned @ odds + inserted[:, None]) / np.maximum(total, 1)[:, None]
    counts = hits.inserted[:, :RESIDUES] + _counts(hits.codes)
    bias = (counts * np.log(np.maximum(emitted, 1e-300))).sum(1)
    return np.logaddexp(0, np.log(PRIOR) + bias) / unit


def _counts(codes: np.ndarray) -> np.ndarray:
    """How often each residue stands in each row, (rows, 20)."""
    return np.stack([(codes == k).sum(1) for k in range(RESIDUES)], 1)


def unit_of(matrix: np.ndarray) -> float:
    """Nats of a score of 1: lambda with sum over a, b of P_a P_b exp(lambda s) = 1.

    Parameters
    ----------
    matrix : (letters, letters)
        Of proteins, with a negative mean (Karlin and Altschul 1990).
    """
    scores = matrix[:RESIDUES, :RESIDUES].astype(float)
    pairs = np.outer(FREQUENCIES, FREQUENCIES)
    low, high = 0.0, 1.0
    while (pairs * np.exp(high * scores)).sum() < 1:
        high *= 2
    for _ in range(STEPS):
        middle = (low + high) / 2
        above = (pairs * np.exp(middle * scores)).sum() > 1
        low, high = (low, middle) if above else (middle, high)
    return high
