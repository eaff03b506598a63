"""Edges of a metric that is a sum over positions."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial

import numpy as np

from jaxalign.model.letters import LetterCodes
from jaxalign.repertoire.dp.letter_bits import letter_bits, words
from jaxalign.repertoire.edges import EdgeList
from jaxalign.repertoire.metrics import Comparison, PositionMetric
from jaxalign.repertoire.rectangles import PositionSums, Rectangle

BITS, WORDS = 5, 2  # of a letter's code; of a row: it has room for twelve letters


@dataclass(frozen=True, eq=False)
class LengthClasses:
    """Sequences by their lengths.

    Attributes
    ----------
    sequences : LetterCodes
    """

    sequences: LetterCodes

    @cached_property
    def members(self) -> dict[int, np.ndarray]:
        """The sequences of every length that occurs."""
        lengths = self.sequences.lengths
        order = np.argsort(lengths, kind="stable")
        known, first = np.unique(lengths[order], return_index=True)
        return dict(zip(known.tolist(), np.split(order, first[1:]), strict=True))

    @property
    def longest(self) -> int:
        return max(self.members, default=0)

    def letters(self, some: np.ndarray, comparison: Comparison) -> np.ndarray:
        """The letters that are compared, uint8 (some, positions)."""
        left = np.array(comparison.left, np.int64)
        right = np.array(comparison.right, np.int64)
        starts = self.sequences.offsets[some][:, None]
        ends = self.sequences.offsets[some + 1][:, None]
        places = np.concatenate([starts + left, ends - 1 - right], axis=1)
        return self.sequences.codes[places]


def rectangles(
    a: LengthClasses,
    b: LengthClasses | None,
    metric: PositionMetric,
    cutoff: int,
    edges: EdgeList,
) -> Iterator[Callable[[], Rectangle]]:
    """Functions that make a rectangle each: all comparisons of a set with itself, or,
    with ``b``, across two sets.

    Edges i < j of one set, (i of a, j of b) of two.
    """
    if b is None:
        yield from _of_shorter(a, a, metric, cutoff, edges, "same")
    else:
        yield from _of_shorter(a, b, metric, cutoff, edges, "across")
        yield from _of_shorter(b, a, metric, cutoff, edges, "back")


def _of_shorter(
    a: LengthClasses,
    b: LengthClasses,
    metric: PositionMetric,
    cutoff: int,
    edges: EdgeList,
    kind: str,
) -> Iterator[Callable[[], Rectangle]]:
    """Sequences of ``a`` against those of ``b`` that are as long or longer."""
    bits = letter_bits(metric.table, BITS)
    for length, queries in a.members.items():
        for comparison in metric.comparisons(length, cutoff, b.longest - length):
            lengths = [length + more for more in comparison.more]
            known = [b.members[n] for n in lengths if n in b.members]
            if not known or (kind == "back" and 0 in comparison.more):
                continue
            targets = np.concatenate(known)
            sides = (a, queries), (b, targets)
            about = metric, cutoff, edges, kind
            yield partial(_rectangle, length, *sides, comparison, *about, bits)


def _rectangle(
    length: int,
    shorter: tuple[LengthClasses, np.ndarray],
    longer: tuple[LengthClasses, np.ndarray],
    comparison: Comparison,
    metric: PositionMetric,
    cutoff: int,
    edges: EdgeList,
    kind: str,
    bits: tuple[np.ndarray, Fraction],
) -> Rectangle:
    """A comparison of sequences of a length with others."""
    (a, queries), (b, targets), (codes, scale) = shorter, longer, bits
    more: np.ndarray = b.sequences.lengths[targets] - length
    left = cutoff - metric.penalty(more)
    rows = a.letters(queries, comparison), b.letters(targets, comparison)
    add = _Adder(queries, targets, cutoff - left, edges, kind)
    sums = PositionSums(metric.table, *rows, left, add)
    return Rectangle(
        words(codes, rows[0], BITS, WORDS),
        words(codes, rows[1], BITS, WORDS),
        np.floor_divide(left * scale.numerator, scale.denominator),
        kind == "same" and 0 in comparison.more,
        sums.check,
        sums,
    )


@dataclass(frozen=True, eq=False)
class _Adder:
    """Adds near pairs of a rectangle as edges."""

    queries: np.ndarray
    targets: np.ndarray
    penalties: np.ndarray
    edges: EdgeList
    kind: str

    def __call__(self, q: np.ndarray, t: np.ndarray, sums: np.ndarray) -> None:
        i, j = self.queries[q], self.targets[t]
        if self.kind == "same":
            i, j = np.minimum(i, j), np.maximum(i, j)
        elif self.kind == "back":
            i, j = j, i
        self.edges.add(i, j, sums + self.penalties[t])
