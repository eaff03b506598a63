"""All pairs as square or rectangular matrices, for guide trees and clusterings."""

import numpy as np

from jaxalign import inputs
from jaxalign.errors import UsageError
from jaxalign.model.identity import BY_PATH, denominator, ratio
from jaxalign.model.scoring import as_scoring
from jaxalign.pairs.api import align_all
from jaxalign.pairs.options import every_pair, run, symmetric


def scores_matrix(queries, targets=None, scoring=None, **options) -> np.ndarray:
    """Scores of all queries against all targets, or of a set against itself.

    Returns
    -------
    (n, m) int32, or float64 where the scoring is fractional

    Examples
    --------
    >>> import jaxalign
    >>> jaxalign.scores_matrix(["MKV", "MRV"])
    array([[14, 11],
           [11, 14]], dtype=int32)
    """
    scoring = as_scoring(scoring)
    given = (queries,) if targets is None else (queries, targets)
    queries, *rest = inputs.sets(scoring, *given)
    options = every_pair(options) | {"output": "score"}
    if not rest and symmetric(scoring, options):
        return _square(align_all(queries, scoring, include_self=True, **options))
    targets = rest[0] if rest else queries
    table = run("cross", queries, targets, scoring, **options)
    return table["score"].reshape(len(queries), len(targets))


def distance_matrix(
    sequences, scoring=None, *, identity="shorter", **options
) -> np.ndarray:
    """1 - identity of all pairs, for guide trees; symmetric, zero diagonal.

    Identities are ``max_identities``: no path, no dependence on argument order.

    Parameters
    ----------
    identity : {"shorter", "longer", "mean"}

    Returns
    -------
    (n, n) float64, 1 where the denominator is 0
    """
    if identity in BY_PATH or identity in ("query", "target"):
        raise UsageError(f"identity {identity!r} is not symmetric, or needs a path")
    scoring = as_scoring(scoring)
    if not symmetric(scoring, options):
        raise UsageError("a distance needs a symmetric matrix and symmetric free ends")
    options = every_pair(options) | {"output": "identity"}
    table = align_all(sequences, scoring, **options)
    below = denominator(identity, table.columns, *table.lengths())
    distance = np.zeros((len(table.queries),) * 2)
    values = 1 - np.nan_to_num(ratio(table["max_identities"], below))
    distance[table["query"], table["target"]] = values
    return distance + distance.T


def _square(table):
    n = len(table.queries)
    matrix = np.zeros((n, n), table["score"].dtype)
    matrix[table["query"], table["target"]] = table["score"]
    matrix[table["target"], table["query"]] = table["score"]
    return matrix
