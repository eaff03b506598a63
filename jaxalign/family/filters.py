"""Which rows of an alignment are kept, by the definitions of HH-suite's hhfilter.

Remmert, Biegert, Hauser and Söding, Nature Methods 9:173 (2012); the options ``-cov``,
``-qid`` and ``-id``. Residues are the 20: X, B and Z are none here.
"""

import numpy as np

RESIDUES = 20
# Of two rows that are as alike as the bound says, hhfilter keeps both.
TOLERANCE = 1e-4


def kept(
    query: np.ndarray,
    codes: np.ndarray,
    min_coverage: float = 0.0,
    min_query_identity: float = 0.0,
    max_identity: float = 1.0,
) -> np.ndarray:
    """Numbers of the rows that are kept, int64, in their order.

    Parameters
    ----------
    query : uint8 (m,)
    codes : int8 (rows, m)
        Of the residues at its positions.
    min_coverage : float
        ``-cov``: residues of a row over m.
    min_query_identity : float
        ``-qid``: residues that are the query's over residues of the row.
    max_identity : float
        ``-id``: of two rows, equal residues over positions at which both have one. The
        row with fewer residues goes, of rows with as many the later one; a row is
        compared with those that stay, the query is the first of them.
    """
    residues = (codes >= 0) & (codes < RESIDUES)
    count = residues.sum(1)
    equal = (residues & (codes == query.astype(np.int8))).sum(1)
    keep = (count >= min_coverage * len(query)) & (count > 0)
    keep &= equal >= min_query_identity * count - TOLERANCE
    rows = np.flatnonzero(keep)
    if max_identity >= 1:
        return rows
    order = rows[np.argsort(-count[rows], kind="stable")]
    return np.sort(order[_different(query, codes[order], max_identity)])


def _different(query: np.ndarray, codes: np.ndarray, most: float) -> np.ndarray:
    """Which rows are unlike the query and all rows before them that stay."""
    some = np.where(codes < RESIDUES, codes, -1).astype(np.int8)
    staying = np.empty((len(some) + 1, len(query)), np.int8)
    staying[0] = np.where(query < RESIDUES, query.astype(np.int8), -1)
    count, stay = 1, np.zeros(len(some), bool)
    for k, row in enumerate(some):
        at = np.flatnonzero(row >= 0)
        others = staying[:count, at]
        pairs = (others >= 0).sum(1)
        differing = pairs - (others == row[at]).sum(1)
        alike = (pairs > 0) & (differing <= (1 - TOLERANCE - most) * pairs)
        if not alike.any():
            staying[count], stay[k] = row, True
            count += 1
    return stay
