"""How many different sequences an alignment has: Neff."""

import numpy as np

from jaxalign.model import profile_counts

RESIDUES = 20
CLUSTER_IDENTITY = 0.8
ROWS_AT_ONCE = 2**9


def by_entropy(rows: np.ndarray) -> float:
    """The exponential of the mean entropy of the columns, from 1 to 20.

    As HH-suite's Neff (Söding 2005), with one position-based weight a row in place of
    one a row and column. Frequencies are those of the residues, gaps left out.

    Parameters
    ----------
    rows : int8 (rows, m)
        Codes; the first row is the query.
    """
    letters = np.where(rows < RESIDUES, rows, profile_counts.OTHER).astype(np.int8)
    letters[rows < 0] = profile_counts.GAP
    if not (letters >= 0).any():
        return 1.0
    share = profile_counts.row_weights(letters, "henikoff")
    counts = np.stack([share @ (letters == k) for k in range(RESIDUES)], 1)
    total = counts.sum(1)
    parts = counts[total > 0] / total[total > 0][:, None]
    entropy = -(parts * np.log(np.where(parts > 0, parts, 1))).sum(1)
    return float(np.exp(entropy.mean()))


def by_clusters(rows: np.ndarray, identity: float = CLUSTER_IDENTITY) -> float:
    """The median over positions of the summed weights of the rows with a residue
    there; a row's weight is 1 over the number of rows that are alike, itself included.

    As AlphaFold 2 counts the depth of an alignment (Jumper et al. 2021, fig. 5; weights
    of Wu et al. 2020). Two rows are alike where equal residues are ``identity`` or more
    of the positions at which either has one.

    Parameters
    ----------
    rows : int8 (rows, m)
    """
    some = np.where((rows >= 0) & (rows < RESIDUES), rows, -1).astype(np.int8)
    weights = np.concatenate(
        [
            1 / np.maximum(_alike(some[k : k + ROWS_AT_ONCE], some, identity), 1)
            for k in range(0, len(some), ROWS_AT_ONCE)
        ]
    )
    return float(np.median(weights @ (some >= 0)))


def _alike(some: np.ndarray, rows: np.ndarray, identity: float) -> np.ndarray:
    """How many of the rows each of some is alike to."""
    present, others = (some >= 0), (rows >= 0)
    both = present.astype(np.float32) @ others.T.astype(np.float32)
    either = present.sum(1)[:, None] + others.sum(1)[None] - both
    equal = np.zeros_like(both)
    for k in range(RESIDUES):
        equal += (some == k).astype(np.float32) @ (rows == k).T.astype(np.float32)
    return (equal >= identity * either - 1e-3).sum(1)
