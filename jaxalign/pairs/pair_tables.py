# pyright: strict, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
"""The public functions that show the tables of one small pair."""

from __future__ import annotations

from typing import Any, Literal, Unpack, overload

import numpy as np

from jaxalign import inputs
from jaxalign.inputs import SequenceLike
from jaxalign.model.choices import EndKeywords
from jaxalign.model.scoring import ScoringLike, as_scoring, resolve_ends
from jaxalign.pairs.options import PairOptions
from jaxalign.signatures import with_options


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
