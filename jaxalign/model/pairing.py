"""Alignments as pairs of positions: most accurate pairs of a posterior, operations.

*Partners* of an alignment: int32 (m,), for each residue of the query the residue of the
target it is paired with (from 0, rising), -1 for none.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from jaxalign.model import operations

if TYPE_CHECKING:
    from jaxalign.model.alignment import Alignment


def most_accurate(posterior: ArrayLike, threshold: float = 0.0) -> np.ndarray:
    """The alignment with the largest sum of ``posterior - threshold`` over its pairs.

    The recurrence of a longest common subsequence with weights: gaps cost nothing.

    Parameters
    ----------
    posterior : (m, n) probabilities
    threshold : float
        Pairs below it never pay; 0.5 keeps only pairs that are likelier than not.

    Returns
    -------
    int32 (m,)
        Partners.
    """
    gain = np.asarray(posterior, np.float64) - threshold
    m, n = gain.shape
    best = np.zeros((m + 1, n + 1))
    for i in range(m):
        # best[i+1, j] = max(best[i, j], best[i, j-1] + gain, best[i+1, j-1])
        row = np.maximum(best[i, 1:], best[i, :-1] + gain[i])
        np.maximum.accumulate(row, out=best[i + 1, 1:])
        np.maximum(best[i + 1, 1:], 0, out=best[i + 1, 1:])
    return _trace(best, gain)


def _trace(best: np.ndarray, gain: np.ndarray) -> np.ndarray:
    i, j = gain.shape
    partners = np.full(i, -1, np.int32)
    while i and j:
        if best[i, j] == best[i - 1, j]:
            i -= 1
        elif best[i, j] == best[i, j - 1]:
            j -= 1
        else:
            i, j = i - 1, j - 1
            partners[i] = j
    return partners


def partners_of(alignment: "Alignment") -> np.ndarray:
    """Partners of an ``Alignment``, int32 (m,)."""
    steps = operations.expand(alignment.operations)
    i = alignment.query_start + np.cumsum(steps != operations.D) - 1
    j = alignment.target_start + np.cumsum(steps != operations.I) - 1
    partners = np.full(len(alignment.query), -1, np.int32)
    partners[i[steps == operations.M]] = j[steps == operations.M]
    return partners


def written(partners: np.ndarray, m: int, n: int, mode: str, free: frozenset):
    """Partners -> (spans, operations): what hangs over freely is outside the spans.

    Between two pairs the query's residues come first. Where both sequences hang over
    at one end and both may, the longer piece is the one left outside.

    Returns
    -------
    (query_start, query_end, target_start, target_end), uint32 operations
    """
    i = np.flatnonzero(partners >= 0)
    j = partners[i].astype(np.int64)
    if not len(i):
        if mode == "local" or len(free) == 4:
            return (0, 0, 0, 0), np.zeros(0, np.uint32)
        return (0, m, 0, n), _packed([(operations.I, m), (operations.D, n)])
    q0, t0 = _outside(i[0], j[0], mode, free, "start")
    q1, t1 = _outside(m - 1 - i[-1], n - 1 - j[-1], mode, free, "end")
    spans = q0, m - q1, t0, n - t1
    k, l = np.diff(i, prepend=q0 - 1) - 1, np.diff(j, prepend=t0 - 1) - 1
    steps = [
        run
        for a, b in zip(k, l, strict=True)
        for run in ((operations.I, a), (operations.D, b), (operations.M, 1))
    ]
    tail = [(operations.I, spans[1] - 1 - i[-1]), (operations.D, spans[3] - 1 - j[-1])]
    return tuple(int(x) for x in spans), _packed(steps + tail)


def between(
    partners: np.ndarray, spans: Sequence[int], query_first: bool
) -> np.ndarray:
    """Operations, uint32, of the alignment with these partners and spans.

    ``query_first`` says which of two gaps between two pairs comes first.
    """
    q0, q1, t0, t1 = spans
    i = np.flatnonzero(partners >= 0)
    j = partners[i].astype(np.int64)
    k = np.diff(i, prepend=q0 - 1, append=q1) - 1
    l = np.diff(j, prepend=t0 - 1, append=t1) - 1
    steps = []
    for a, b in zip(k, l, strict=True):
        gaps = (operations.I, a), (operations.D, b)
        steps += [*(gaps if query_first else gaps[::-1]), (operations.M, 1)]
    return _packed(steps[:-1])


def _outside(k: int, l: int, mode: str, free: frozenset[str], end: str):
    """How many of k and l overhanging residues are outside the alignment."""
    if mode == "local":
        return k, l
    query, target = f"query_{end}" in free, f"target_{end}" in free
    if query and target:
        return (k, 0) if k >= l else (0, l)
    return (k if query else 0), (l if target else 0)


def _packed(runs: list[tuple[int, int]]) -> np.ndarray:
    steps = np.repeat(*np.array(runs, np.int64).T).astype(np.uint8)
    return operations.run_lengths(steps, np.array([len(steps)]))[0]
