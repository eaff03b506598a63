"""A proof that a pair cannot reach an identity, before it is aligned.

The identical pairs of an alignment are a common subsequence of the two sequences, in
every mode and with every scoring, so no alignment has more of them than the longest
common subsequence (LCS), nor than the shorter length. Over the least denominator that
the lengths m and n leave, that is the largest identity a pair can have. Quotients of
float64 rise with the count and fall with the denominator, so what is below the cut here
is below it in ``model.identity`` too.

==========================  =============================================
denominator                 the least it can be
==========================  =============================================
shorter, longer, mean       itself
query, target               itself
full                        max(m, n): both sequences are in it, whole
alignment                   what a side has in the alignment for certain:
                            all of it where neither of its ends is free,
                            or what a ``min_cov`` of that side asks for
aligned                     nothing
==========================  =============================================
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from jaxalign.model.identity import BY_PATH, Filters, share

SIDES = ("query", "target")
WORDS = {
    "shorter": "min(m, n)",
    "longer": "max(m, n)",
    "mean": "((m + n) / 2)",
    "query": "m",
    "target": "n",
    "full": "max(m, n)",
}
LETTERS = {"query": "m", "target": "n"}
JOINS = {"shorter": "minimum", "longer": "maximum", "full": "maximum"}


@dataclass(frozen=True)
class IdentityBound:
    """The largest identity a pair of lengths m and n can have, and the cut.

    ``whole`` and ``covered`` are for ``alignment``: the sides that lie in it from end
    to end, and those of which at least ``min_cov`` does.
    """

    kind: str
    cut: float
    whole: tuple[str, ...] = ()
    covered: tuple[str, ...] = ()
    min_cov: float = 0.0

    def least(self, m: ArrayLike, n: ArrayLike) -> np.ndarray:
        """The least denominator of pairs of lengths m and n; 0: none is known."""
        of_query, of_target, join = self.sides(m, n)
        return getattr(np, join)(of_query, of_target)

    def sides(self, m: ArrayLike, n: ArrayLike) -> tuple[np.ndarray, np.ndarray, str]:
        """(of queries, of targets, how numpy joins them): ``least`` in two halves."""
        m, n = np.asarray(m), np.asarray(n)
        if self.kind == "mean":
            return m / 2, n / 2, "add"
        if self.kind in JOINS:
            return m, n, JOINS[self.kind]
        sides = {"query": m, "target": n}
        known = {side: np.zeros_like(length) for side, length in sides.items()}
        inside = self.whole if self.kind == "alignment" else (self.kind,)
        known |= {side: sides[side] for side in inside}
        for side in self.covered:
            known[side] = least_span(sides[side], self.min_cov)
        return known["query"], known["target"], "maximum"

    def possible(self, count: Any, m: ArrayLike, n: ArrayLike) -> np.ndarray:
        """Which pairs with at most ``count`` identical pairs may reach the cut.

        count, m, n : integers that broadcast
        """
        least = self.least(m, n)
        return (share(count, least, np) >= self.cut) | (least <= 0)

    def least_count(self, m: ArrayLike, n: ArrayLike) -> np.ndarray:
        """The fewest identical pairs with which a pair may reach the cut, int64."""
        least = np.asarray(self.least(m, n))
        count = np.ceil(self.cut * least).astype(np.int64)
        # The product is rounded, and so is the quotient: either way by one at most.
        count -= self.possible(count - 1, m, n)
        count += ~self.possible(count, m, n)
        return np.where(least > 0, np.maximum(count, 0), 0)

    @property
    def symmetric(self) -> bool:
        """Whether it is the same with the two sequences swapped."""
        if self.kind == "alignment":
            return len(self.whole) == len(SIDES)
        return self.kind in JOINS or self.kind == "mean"

    def __str__(self) -> str:
        """The denominator in the letters of the two lengths."""
        if self.kind != "alignment":
            return WORDS[self.kind]
        said = [LETTERS[side] for side in self.whole]
        said += [f"{self.min_cov:.15g} {LETTERS[side]}" for side in self.covered]
        return said[0] if len(said) == 1 else f"max({', '.join(said)})"


def least_span(length: ArrayLike, min_cov: float) -> np.ndarray:
    """The least integer k with k / length >= min_cov, by float64; 0 of no residues."""
    length = np.asarray(length)
    least = np.ceil(min_cov * length).astype(np.int64)
    # The product is rounded, and so is the quotient: either way by one at most.
    least -= share(least - 1, length, np) >= min_cov
    least += share(least, length, np) < min_cov
    return np.maximum(least, 0)


def identity_bound(
    filters: Filters, mode: str, free: frozenset
) -> IdentityBound | None:
    """The bound of some filters; None where there is no cut, or lengths say nothing."""
    if filters.min_identity is None or filters.identity == "aligned":
        return None
    if filters.identity != "alignment":
        return IdentityBound(filters.identity, filters.min_identity)
    inside = [side for side in SIDES if _lies_whole(side, mode, free)]
    covered = []
    if filters.min_cov is not None:
        sides_to_cover = SIDES if filters.coverage == "both" else (filters.coverage,)
        covered = [side for side in sides_to_cover if side not in inside]
    if not inside and not covered:
        return None
    sides = tuple(inside), tuple(covered)
    return IdentityBound(
        "alignment", filters.min_identity, *sides, filters.min_cov or 0
    )


def _lies_whole(side: str, mode: str, free: frozenset) -> bool:
    """Whether every residue of a side has a column."""
    return mode != "local" and not {f"{side}_start", f"{side}_end"} & free


def why_none(filters: Filters) -> str:
    """Why ``identity_bound`` has none for a cut."""
    if filters.identity == "aligned":
        return "an alignment may have any number of columns without a gap"
    if filters.identity in BY_PATH:
        return "ends may hang over, so an alignment may be short (min_cov bounds it)"
    return "there is no cut"
