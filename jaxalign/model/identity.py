"""Identity of a pair, and the filters of rows by it, by score, coverage and lengths.

An identity is one count over one of eight denominators, each under its own name.

==========  ==================================================================
alignment   columns of the alignment (BLAST, MMseqs2 mode 0)
full        columns and overhanging residues (needle, GraphPart's ``full``)
aligned     columns without a gap (GraphPart's ``no_gaps``)
shorter     the shorter sequence (CD-HIT, MMseqs2 mode 1)
longer      the longer sequence (MMseqs2 mode 2)
mean        the mean of the two lengths
query       the query
target      the target
==========  ==================================================================

Of a filter there is one formula for the host (numpy, exact) and for a device
(``xp=jax.numpy``, float32 with a slack, so that it drops only what the host would drop
too).

A relative score is the score of a pair over the self scores of its two sequences, by
the same words: over the smaller (``shorter``), the larger (``longer``) or their mean.
A self score is the sum of the scores of all residues with themselves
(``model.scoring.self_scores``); docs/conventions.md has the bound that proves a pair to
be below a cut.

``IdentityBound`` proves that a pair cannot reach an identity, before it is aligned. The
identical pairs of an alignment are a common subsequence of the two sequences, in every
mode and with every scoring, so no alignment has more of them than the longest common
subsequence (LCS), nor than the shorter length. Over the least denominator that the
lengths m and n leave, that is the largest identity a pair can have. Quotients of
float64 rise with the count and fall with the denominator, so what the bound has below
the cut is below it in ``share`` too. The least denominators are

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

from dataclasses import dataclass, replace
from math import isfinite
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from jaxalign.errors import UsageError
from jaxalign.model.choices import Coverage, Identity
from jaxalign.model.numbers import check_fraction, exact, is_number

IDENTITIES: tuple[str, ...] = get_args(Identity)
BY_PATH = ("alignment", "full", "aligned")
THRESHOLDS = "min_score", "min_identity", "min_cov", "min_length_ratio"
COVERAGES: tuple[str, ...] = get_args(Coverage)


def usual_identity(mode: str, free: frozenset) -> Literal["shorter", "longer"]:
    """The denominator of identities without paths, where none is named.

    From end to end an alignment spreads a short sequence over a long one, so that
    unrelated ones look alike over the shorter length; not where ends may hang over.
    """
    return "longer" if mode != "local" and not free else "shorter"


def denominator(kind: str, columns: dict, m: Any, n: Any, xp: Any = np):
    """The denominator of ``kind``; ``columns`` are a table's, m and n the lengths;
    ``xp`` is numpy, or jax.numpy on a device."""
    by_length = {
        "shorter": lambda: xp.minimum(m, n),
        "longer": lambda: xp.maximum(m, n),
        "mean": lambda: (m + n) / 2,
        "query": lambda: m,
        "target": lambda: n,
    }
    if kind in by_length:
        return by_length[kind]()
    if kind not in BY_PATH:
        raise UsageError(f"unknown identity {kind!r}: one of {', '.join(IDENTITIES)}")
    if "columns" not in columns:
        raise UsageError(
            f"identity {kind!r} needs the path's columns: use output='stats', or one "
            "of shorter, longer, mean, query, target"
        )
    if kind == "alignment":
        return columns["columns"]
    if kind == "aligned":
        return columns["columns"] - columns["gaps"]
    spans = columns["query_end"] - columns["query_start"]
    spans = spans + columns["target_end"] - columns["target_start"]
    return columns["columns"] + (m + n - spans)


@dataclass(frozen=True)
class Filters:
    """Thresholds, None for none; a row whose value is ``nan`` is not kept.

    ``coverage`` says of whom at least ``min_cov`` must be covered: of both sequences,
    of the query or of the target (MMseqs2's coverage modes 0, 2 and 1), or of the
    shorter sequence, of two that are equally long of the one that is covered more.
    ``min_length_ratio`` is about the shorter length over the longer one (CD-HIT's -s).
    ``cut_name`` is written in place of ``min_identity`` where pairs below it are
    counted, as where it rises while a job runs. ``min_relative_score`` is about the
    score over the self scores, joined by the word ``self_score``; a device leaves it to
    the host.
    """

    min_score: float | None = None
    min_identity: float | None = None
    identity: str = "alignment"
    min_cov: float | None = None
    coverage: str = "both"
    min_length_ratio: float | None = None
    cut_name: str | None = None
    min_relative_score: float | None = None
    self_score: str = "shorter"

    def __bool__(self) -> bool:
        values = *self._least().values(), self.min_relative_score
        return any(value is not None for value in values)

    def __str__(self) -> str:
        """The columns and their thresholds: ``identity_shorter >= 0.4``."""
        said = []
        if self.min_score is not None:
            said.append(f"score >= {exact(self.min_score)}")
        if self.min_relative_score is not None:
            said.append(relative_said(self.self_score, self.min_relative_score))
        if self.min_identity is not None:
            said.append(f"identity_{self.identity} >= {exact(self.min_identity)}")
        if self.min_cov is not None:
            columns = {"query": "qcov", "target": "tcov", "shorter": "cov of shorter"}
            column = columns.get(self.coverage, "qcov and tcov")
            said.append(f"{column} >= {exact(self.min_cov)}")
        if self.min_length_ratio is not None:
            said.append(f"shorter / longer length >= {exact(self.min_length_ratio)}")
        return ", ".join(said)

    @property
    def cuts(self) -> tuple[float, ...]:
        """The least shares: of identities, coverages and lengths."""
        shares = self.min_identity, self.min_cov, self.min_length_ratio
        return tuple(float(share) for share in shares if share is not None)

    @property
    def form(self) -> "Filters":
        """Reduce filters to the set of thresholds in use; one program serves all their
        values."""
        thresholds = {
            name: None if x is None else 0.0 for name, x in self._least().items()
        }
        return replace(self, cut_name=None, min_relative_score=None, **thresholds)

    @property
    def of_lengths(self) -> "Filters":
        """The ``form`` of the threshold that lengths decide."""
        return Filters(min_length_ratio=self.min_length_ratio).form

    @property
    def thresholds(self) -> np.ndarray:
        """The thresholds, float32, 0 for none."""
        return np.array([x or 0.0 for x in self._least().values()], np.float32)

    def with_thresholds(self, values: Any) -> "Filters":
        """Filters of this form with other ``thresholds``, numbers of a program."""
        pairs = zip(self._least().items(), values, strict=True)
        return replace(self, **{name: x for (name, old), x in pairs if old is not None})

    def _least(self) -> dict[str, float | None]:
        return {name: getattr(self, name) for name in THRESHOLDS}

    def mask(
        self,
        columns: dict,
        m: Any,
        n: Any,
        xp: Any = np,
        slack: float = 0.0,
        self_scores: tuple[np.ndarray, np.ndarray] | None = None,
    ):
        """Which rows are kept.

        columns : dict of arrays. Of a table; scores as a user sees them.
        m, n : arrays. Lengths of the query and of the target of every row.
        xp : numpy or jax.numpy
        slack : a value that misses its threshold by so little still passes.
        self_scores : of the query and of the target of every row, for
            ``min_relative_score``
        Returns bool array.
        """
        passing = self.length_mask(m, n, xp, slack)
        if self.min_score is not None:
            least = self.min_score - slack * (1 + abs(self.min_score))
            passing &= columns["score"] >= least
        if self.min_relative_score is not None:
            assert self_scores is not None
            below = denominator(self.self_score, {}, *self_scores)
            passing &= share(columns["score"], below, xp) >= self.min_relative_score
        if self.min_identity is not None:
            counts = columns.get("identities", columns.get("max_identities"))
            below = denominator(self.identity, columns, m, n, xp)
            passing &= share(counts, below, xp) >= self.min_identity - slack
        if self.min_cov is not None:
            spans = [columns[f"{x}_end"] - columns[f"{x}_start"] for x in SIDES]
            larger = xp.maximum(*spans)
            for side, span, length, rival in zip(
                SIDES, spans, (m, n), (n, m), strict=True
            ):
                if self.coverage in ("both", side):
                    passing &= share(span, length, xp) >= self.min_cov - slack
                if self.coverage == "shorter":  # of equal lengths, the larger span
                    span = xp.where(m == n, larger, span)
                    covered = share(span, length, xp) >= self.min_cov - slack
                    passing &= covered | (length > rival)
        return passing

    def length_mask(self, m: Any, n: Any, xp: Any = np, slack: float = 0.0):
        """Which pairs of lengths m and n ``min_length_ratio`` keeps; see ``mask``."""
        if self.min_length_ratio is None:
            return xp.ones(m.shape, bool)
        ratio = share(xp.minimum(m, n), xp.maximum(m, n), xp)
        return ratio >= self.min_length_ratio - slack


def relative_said(self_score: str, least: float) -> str:
    """Say a cut by relative score: ``score / smaller self score >= 0.4``."""
    which = LARGER.get(self_score, self_score)
    return f"score / {which} self score >= {exact(least)}"


def share(count: Any, below: Any, xp: Any):
    """count / below, ``nan`` where there is nothing to divide by."""
    return xp.where(below > 0, count / xp.where(below > 0, below, 1), xp.nan)


def ratio(count: ArrayLike, below: ArrayLike):
    """``share`` of numbers of any type, as float64."""
    return share(np.asarray(count, float), np.asarray(below, float), np)


def of_lengths(kind: str, count: ArrayLike, m: np.ndarray, n: np.ndarray):
    """Identities over a length, float64. Two empty sequences are equal: they have 1."""
    return np.where(np.maximum(m, n) > 0, ratio(count, denominator(kind, {}, m, n)), 1)


def check_filters(filters: Filters, output: str) -> None:
    """Refuse thresholds that are meaningless or need columns that are not computed."""
    for name in ("min_identity", "min_cov", "min_length_ratio", "min_relative_score"):
        value = getattr(filters, name)
        if value is not None:
            check_fraction(name, value)
    least = filters.min_score
    if least is not None and not (is_number(least) and isfinite(least)):
        raise UsageError(f"min_score = {least!r}: a number is needed")
    if filters.coverage not in COVERAGES:
        names = ", ".join(COVERAGES)
        raise UsageError(f"unknown coverage {filters.coverage!r}: one of {names}")
    if filters.identity not in IDENTITIES:
        names = ", ".join(IDENTITIES)
        raise UsageError(f"unknown identity {filters.identity!r}: one of {names}")
    paths = output in ("stats", "alignment")
    if filters.min_cov is not None and not paths:
        raise UsageError(f"min_cov needs the spans of output='stats', not {output!r}")
    if filters.min_identity is None or paths:
        return
    if output == "score":
        raise UsageError("min_identity needs output='identity' or 'stats', not 'score'")
    if filters.identity in BY_PATH:
        raise UsageError(
            f"identity {filters.identity!r} needs a path: use output='stats', or one "
            "of shorter, longer, mean, query, target"
        )


def check_coverage(min_cov: float | None, mode: str, free: frozenset) -> None:
    """Refuse a coverage that is always 1: spans are whole sequences where no end is
    free."""
    if min_cov is not None and mode != "local" and not free:
        raise UsageError(
            f"min_cov = {min_cov!r}: mode global spans both sequences from end to end, "
            "so every coverage is 1; min_length_ratio compares their lengths, and "
            "min_cov is for mode local and for free ends"
        )


SIDES = ("query", "target")
LARGER = {"shorter": "smaller", "longer": "larger"}
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
        """Split ``least``: (query half, target half, NumPy function joining them)."""
        m, n = np.asarray(m), np.asarray(n)
        if self.kind == "mean":
            return m / 2, n / 2, "add"
        if self.kind in JOINS:
            return m, n, JOINS[self.kind]
        sides = {"query": m, "target": n}
        halves = {side: np.zeros_like(length) for side, length in sides.items()}
        inside = self.whole if self.kind == "alignment" else (self.kind,)
        halves |= {side: sides[side] for side in inside}
        for side in self.covered:
            halves[side] = least_span(sides[side], self.min_cov)
        return halves["query"], halves["target"], "maximum"

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
        """Whether the bound is unchanged with the two sequences swapped."""
        if self.kind == "alignment":
            return len(self.whole) == len(SIDES)
        return self.kind in JOINS or self.kind == "mean"

    def __str__(self) -> str:
        """The denominator in the letters of the two lengths."""
        if self.kind != "alignment":
            return WORDS[self.kind]
        said = [LETTERS[side] for side in self.whole]
        said += [f"{exact(self.min_cov)} {LETTERS[side]}" for side in self.covered]
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
    """Derive the bound of filters; None without a cut or if lengths bound nothing."""
    if filters.min_identity is None or filters.identity == "aligned":
        return None
    if filters.identity != "alignment":
        return IdentityBound(filters.identity, filters.min_identity)
    # A side lies in the alignment from end to end where neither of its ends is free.
    ends = {side: {f"{side}_start", f"{side}_end"} for side in SIDES}
    inside = [side for side in SIDES if mode != "local" and not ends[side] & free]
    covered = []
    if filters.min_cov is not None:
        sides_to_cover = {"both": SIDES, "shorter": ()}.get(
            filters.coverage, (filters.coverage,)
        )
        covered = [side for side in sides_to_cover if side not in inside]
    if not inside and not covered:
        return None
    sides = tuple(inside), tuple(covered)
    return IdentityBound(
        "alignment", filters.min_identity, *sides, filters.min_cov or 0
    )


def why_none(filters: Filters) -> str:
    """Explain why ``identity_bound`` is None for a cut."""
    if filters.identity == "aligned":
        return "an alignment may have any number of columns without a gap"
    if filters.identity in BY_PATH:
        return "ends may hang over, so an alignment may be short (min_cov bounds it)"
    return "there is no cut"
