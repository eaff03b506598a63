"""Distances of CDR3 sequences that are sums over positions: Hamming and TCRdist.

Two sequences of one length are compared position by position. Of two others the longer
one has a gap: its letters before a place are compared from the left, those after it
from the right, and each letter between them costs the same. So what is compared is
always two rows of as many letters, and a distance is a sum of table entries and a
number.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxalign.errors import UsageError
from jaxalign.model.scoring import Scoring
from jaxalign.model.show import brief

LETTERS = "ACDEFGHIKLMNPQRSTVWY"
STRETCH = 2**16  # pairs at a time: they stay in the cache
LOWEST = -(2**30)


@dataclass(frozen=True, eq=False)
class Comparison:
    """Sequences of one length against those of that length, or against longer ones.

    length : of the shorter sequence.
    surplus : range. How many letters the other one may have more.
    from_start, from_end : range. Positions that are compared, counted from the start
        and from the end.
    """

    length: int
    surplus: range
    from_start: range
    from_end: range


@dataclass(frozen=True, eq=False)
class PositionMetric:
    """A distance that is a sum over positions.

    table : int32 (20, 20). Distances of letters, in the order of ``LETTERS``.
    gap_penalty : cost of each letter that the longer sequence has more; None where
        sequences of two lengths have no distance.
    ntrim, ctrim : letters at both ends that count for nothing.
    fixed_gap : whether the gap is at one place; else at the best of several.
    """

    table: np.ndarray
    gap_penalty: int | None = None
    ntrim: int = 0
    ctrim: int = 0
    fixed_gap: bool = True

    __repr__ = brief

    def max_surplus(self, cutoff: int, longest: int) -> int:
        """Largest length difference within the cutoff."""
        if self.gap_penalty is None:
            return 0
        return min(cutoff // self.gap_penalty, longest) if self.gap_penalty else longest

    def penalty(self, surplus: Any) -> Any:
        """Cost of a length difference."""
        return surplus * (self.gap_penalty or 0)

    def gap_places(self, length: int) -> range:
        """Letters of the shorter sequence before the gap."""
        if self.fixed_gap:
            place = min(6, 3 + (length - 5) // 2)
            return range(place, place + 1)
        first, last = 5, length - 5
        away = max(-(-(first - last) // 2), 0)
        return range(first - away, last + away + 1)

    def comparisons(
        self, length: int, cutoff: int, longest: int
    ) -> Iterator[Comparison]:
        """Every way in which a sequence of a length may be compared."""
        positions = range(self.ntrim, max(length - self.ctrim, self.ntrim))
        yield Comparison(length, range(0, 1), positions, range(0))
        surplus = range(1, self.max_surplus(cutoff, longest) + 1)
        for place in self.gap_places(length) if surplus else ():
            from_start = range(self.ntrim, place)
            yield Comparison(
                length, surplus, from_start, range(self.ctrim, length - place)
            )


def hamming() -> PositionMetric:
    """Count differing letters; sequences of two lengths have no distance."""
    return PositionMetric(np.ones((20, 20), np.int32) - np.eye(20, dtype=np.int32))


def tcrdist_table(scoring: Scoring, offset: int, cap: int, weight: int) -> np.ndarray:
    """``weight * min(cap, offset - S)`` of two different letters, int32 (20, 20)."""
    scores = letter_scores(scoring)
    table = np.minimum(cap, offset - scores) * weight
    np.fill_diagonal(table, 0)
    if (table < 0).any() or (table != table.T).any():
        raise UsageError(
            f"{scoring.matrix_name}, offset {offset}: distances of letters must be 0 "
            "or more and the same in both orders"
        )
    return table.astype(np.int32)


def letter_scores(scoring: Scoring) -> np.ndarray:
    """Scores of the twenty letters with each other, in the order of ``LETTERS``."""
    if scoring.scale != 1:
        raise UsageError(f"{scoring}: distances need whole scores and gap costs")
    letters = scoring.alphabet.letters
    if missing := [letter for letter in LETTERS if letter not in letters]:
        raise UsageError(
            f"{scoring.matrix_name} has no scores for {', '.join(missing)}"
        )
    places = [letters.index(letter) for letter in LETTERS]
    return np.asarray(scoring.scores)[np.ix_(places, places)].astype(np.int64)


def pair_sums(
    table: np.ndarray, x: np.ndarray, y: np.ndarray, i: np.ndarray, j: np.ndarray
) -> np.ndarray:
    """Sum table entries over the positions of row pairs (i, j), int32 (P,).

    table : int (letters, letters)
    x, y : uint8 (rows, positions)
    i, j : int (P,)
    """
    letters = len(table)
    flat = np.ascontiguousarray(table, np.int32).reshape(-1)
    sums = np.zeros(len(i), np.int32)
    rows = x.astype(np.uint16) * np.uint16(letters)
    for start in range(0, len(i), STRETCH):
        span = slice(start, start + STRETCH)
        sums[span] = flat[rows[i[span]] + y[j[span]]].sum(axis=1, dtype=np.int32)
    return sums


def banded_scores(
    scores: np.ndarray, x: np.ndarray, y: np.ndarray, gap: int, band: range
) -> np.ndarray:
    """Best scores of alignments that stay in a band, int32 (P,).

    With H(i, j) the best score of i letters of x and j letters of y,

        H(i, j) = max(H(i-1, j-1) + S(x_i, y_j), H(i-1, j) - gap, H(i, j-1) - gap)

    (Needleman and Wunsch 1970, with linear costs), where j - i is in the band and
    H is lower than any score elsewhere. All pairs are computed side by side.

    scores : int (letters, letters)
    x, y : uint8 (P, m), uint8 (P, n)
    gap : cost of each letter beside a gap.
    band : range. Values of j - i; 0 and n - m are among them.
    """
    (count, m), n = x.shape, y.shape[1]
    letters = len(scores)
    flat = np.ascontiguousarray(scores, np.int32).reshape(-1)
    rows = np.ascontiguousarray(x.T).astype(np.uint16) * np.uint16(letters)
    columns = np.ascontiguousarray(y.T)
    # One value a diagonal: that of the row above until it is replaced.
    values = [
        np.full(count, -d * gap if 0 <= d <= n else LOWEST, np.int32) for d in band
    ]
    for i in range(m):
        for k, d in enumerate(band):
            j = i + d
            if j == -1:
                values[k] = np.full(count, -(i + 1) * gap, np.int32)
            if not 0 <= j < n:
                continue
            best = values[k] + flat[rows[i] + columns[j]]
            if k + 1 < len(values) and j + 1 <= n:
                np.maximum(best, values[k + 1] - gap, out=best)
            if k and j >= 0:
                np.maximum(best, values[k - 1] - gap, out=best)
            values[k] = best
    return values[band.index(n - m)]
