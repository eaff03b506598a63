"""The nearest sequence of another part, of every sequence, as pairs come in."""

from dataclasses import dataclass

import numpy as np

NONE = -1


@dataclass(frozen=True, eq=False)
class NearestAcross:
    """Of every sequence of a set the nearest one of other sets, of equals the first.

    Attributes
    ----------
    part, place : int64 (n,)
        Its set and its number there, -1 where none is known.
    identity : float64 (n,)
        Of the two; -1 where none is known.
    """

    part: np.ndarray
    place: np.ndarray
    identity: np.ndarray

    def add(
        self, rows: np.ndarray, part: int, places: np.ndarray, identity: np.ndarray
    ) -> None:
        """Regard pairs of sequences ``rows`` with ``places`` of another set."""
        known = ~np.isnan(identity)
        rows, places, identity = rows[known], places[known], identity[known]
        order = np.lexsort((places, -identity, rows))
        rows, places, identity = rows[order], places[order], identity[order]
        first = np.ones(len(rows), bool)
        first[1:] = rows[1:] != rows[:-1]
        rows, places, identity = rows[first], places[first], identity[first]
        before = self.identity[rows]
        earlier = (part < self.part[rows]) | (
            (part == self.part[rows]) & (places < self.place[rows])
        )
        nearer = (identity > before) | ((identity == before) & earlier)
        rows = rows[nearer]
        self.part[rows], self.place[rows] = part, places[nearer]
        self.identity[rows] = identity[nearer]


def none_yet(count: int) -> NearestAcross:
    """Of ``count`` sequences nothing is known."""
    return NearestAcross(
        np.full(count, NONE), np.full(count, NONE), np.full(count, float(NONE))
    )
