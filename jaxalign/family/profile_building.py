"""From the aligned hits of a query to the profile that searches next."""

import numpy as np

from jaxalign.family.aligned_rows import GAP
from jaxalign.model import profile_counts
from jaxalign.model.alphabet import PROTEIN, Alphabet
from jaxalign.model.profile import Profile

RESIDUES = 20
PSEUDOCOUNTS = 10.0


def profile_of(
    name: str, query: np.ndarray, hits: np.ndarray, alphabet: Alphabet, unit: float
) -> Profile:
    """Log-odds of the positions of a query.

    Parameters
    ----------
    query : uint8 (m,)
        Its codes.
    hits : int8 (hits, m)
        Codes of the residues at its positions, ``GAP`` where there is none.
    unit : float
        Nats of a score of 1.
    """
    rows = np.vstack([query.astype(np.int8)[None], hits])
    letters = np.where(rows < RESIDUES, rows, profile_counts.OTHER).astype(np.int8)
    letters[rows == GAP] = profile_counts.GAP
    known = (letters >= 0).any()
    odds = log_odds(letters, PSEUDOCOUNTS) if known else np.zeros((len(query), 20))
    return Profile(name, whole_scores(odds, unit), alphabet, unit)


def log_odds(letters: np.ndarray, pseudocounts: float) -> np.ndarray:
    """ln(Q / P) of the residues, (m, 20), as PSI-BLAST has them
    (``model.profile_counts``); 0 at a position at which no row has one."""
    share = profile_counts.row_weights(letters, "henikoff")
    known = (letters >= 0).any(0)
    odds = np.zeros((letters.shape[1], RESIDUES))
    odds[known] = profile_counts.log_odds(letters[:, known], share, pseudocounts)
    return odds


def whole_scores(odds: np.ndarray, unit: float) -> np.ndarray:
    """Log-odds of the 20 residues in nats -> int32 (m, 24), 1 is ``unit`` nats."""
    others = [
        profile_counts.mean_of(odds, kinds) for kinds in ("ND", "QE", PROTEIN[:20])
    ]
    scores = np.rint(np.column_stack([odds, *others]) / unit)
    return np.column_stack([scores, scores.min(1)]).astype(np.int32)
