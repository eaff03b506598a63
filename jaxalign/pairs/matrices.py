# pyright: strict, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
"""Matrices of all pairs, for guide trees and clusterings, and tables of one pair."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, Unpack, get_args, overload

import numpy as np

from jaxalign import inputs
from jaxalign.errors import UsageError
from jaxalign.inputs import SequenceLike, SetLike
from jaxalign.model.choices import EndKeywords
from jaxalign.model.identity import denominator, ratio, usual_identity
from jaxalign.model.scoring import ScoringLike, as_scoring, resolve_ends
from jaxalign.model.table import Table
from jaxalign.pairs.jobs import all_table, run
from jaxalign.pairs.options import MatrixKeywords, PairOptions, symmetric
from jaxalign.signatures import with_options

SymmetricIdentity = Literal["shorter", "longer", "mean"]  # and without a path


@with_options(PairOptions)
def scores_matrix(
    queries: SetLike,
    targets: SetLike | None = None,
    scoring: ScoringLike = None,
    **options: Unpack[MatrixKeywords],
) -> np.ndarray:
    """Scores of all queries against all targets, or of a set against itself.

    Returns
    -------
    (n, m) int32, or float64 where the scoring is fractional

    Options and errors are those of ``align_pairs``, without ``output`` and filters.

    Examples
    --------
    >>> import jaxalign
    >>> jaxalign.scores_matrix(["MKV", "MRV"])
    array([[14, 11],
           [11, 14]], dtype=int32)
    """
    scoring = as_scoring(scoring)
    sets = (queries,) if targets is None else (queries, targets)
    queries, *rest = inputs.sets(scoring, *sets)
    chosen = PairOptions(**options, output="score")
    if not rest and symmetric(scoring, chosen):
        return _square(all_table(queries, scoring, replace(chosen, include_self=True)))
    targets = rest[0] if rest else queries
    table = run("cross", queries, targets, scoring, chosen)
    return table["score"].reshape(len(queries), len(targets))


@with_options(PairOptions)
def distance_matrix(
    sequences: SetLike,
    scoring: ScoringLike = None,
    *,
    identity: SymmetricIdentity | None = None,
    **options: Unpack[MatrixKeywords],
) -> np.ndarray:
    """1 - identity of all pairs, for guide trees; symmetric, zero diagonal.

    Identities are ``max_identities``: no path, no dependence on argument order.

    Parameters
    ----------
    identity : {"shorter", "longer", "mean"}, optional
        By default ``longer``; ``shorter`` in mode local and where an end is free.
    **options : as in ``scores_matrix``

    Returns
    -------
    (n, n) float64, 1 where the denominator is 0
    """
    scoring = as_scoring(scoring)
    chosen = PairOptions(**options, output="identity")
    if identity is None:
        free = resolve_ends(chosen.mode, chosen.free_ends)
        identity = usual_identity(chosen.mode, free)
    if identity not in get_args(SymmetricIdentity):
        raise UsageError(f"identity {identity!r} is not symmetric, or needs a path")
    if not symmetric(scoring, chosen):
        raise UsageError("a distance needs a symmetric matrix and symmetric free ends")
    table = all_table(sequences, scoring, chosen)
    below = denominator(identity, table.columns, *table.lengths())
    distance = np.zeros((len(table.queries),) * 2)
    values = 1 - np.nan_to_num(ratio(table["max_identities"], below))
    distance[table["query"], table["target"]] = values
    return distance + distance.T


def _square(table: Table) -> np.ndarray:
    n = len(table.queries)
    matrix = np.zeros((n, n), table["score"].dtype)
    matrix[table["query"], table["target"]] = table["score"]
    matrix[table["target"], table["query"]] = table["score"]
    return matrix


@overload
def dp_table(
    query: SequenceLike,
    target: SequenceLike,
    scoring: ScoringLike = None,
    *,
    gaps: Literal[False] = False,
    **options: Unpack[EndKeywords],
) -> np.ndarray: ...


@overload
def dp_table(
    query: SequenceLike,
    target: SequenceLike,
    scoring: ScoringLike = None,
    *,
    gaps: Literal[True],
    **options: Unpack[EndKeywords],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...


@with_options(PairOptions)
def dp_table(
    query: SequenceLike,
    target: SequenceLike,
    scoring: ScoringLike = None,
    *,
    gaps: bool = False,
    **options: Unpack[EndKeywords],
) -> np.ndarray | tuple[np.ndarray, np.ndarray, np.ndarray]:
    """H of one pair, and E, F on request: (m + 1, n + 1) int32, scaled integers.

    E ends in a gap in the target (vertical), F in the query (horizontal); minus
    infinity is a large negative number. Divide by ``scoring.scale`` for real scores.

    Examples
    --------
    >>> import jaxalign
    >>> jaxalign.dp_table("MK", "MK", mode="local")
    array([[ 0,  0,  0],
           [ 0,  5,  0],
           [ 0,  0, 10]], dtype=int32)
    """
    from jaxalign.pairs.dp_table import whole

    h, e, f = whole(*_one_pair(query, target, scoring, options))
    return (h, e, f) if gaps else h


@with_options(PairOptions)
def directions(
    query: SequenceLike,
    target: SequenceLike,
    scoring: ScoringLike = None,
    **options: Unpack[EndKeywords],
) -> dict[str, np.ndarray]:
    """The four boolean matrices of one pair, (m, n) each, as the 2011 paper has them.

    Keys ``b_left, b_up, c_up, c_left``; also ``words``, uint32 (ceil(m / 8), n), the
    packed form the walk reads (``pairs.dp.directions``).
    """
    from jaxalign.pairs.dp_table import directions_of

    return directions_of(*_one_pair(query, target, scoring, options))


def _one_pair(
    query: SequenceLike, target: SequenceLike, scoring: ScoringLike, ends: EndKeywords
) -> tuple[Any, ...]:
    """Codes, scoring, mode and free ends of one pair."""
    scoring, options = as_scoring(scoring), PairOptions(**ends)
    free = resolve_ends(options.mode, options.free_ends)
    a, b = (one[0] for one in inputs.singles(scoring, query=query, target=target))
    return a, b, scoring, options.mode, free
