"""Edges of a metric that is a sum over positions."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
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
    tables: dict[int, np.ndarray] = field(default_factory=dict, init=False)

    @cached_property
    def members(self) -> dict[int, np.ndarray]:
        """The sequences of every length that occurs."""
        lengths = self.sequences.lengths
        if lengths.max(initial=0) < 2**16:  # which are sorted by counting
            lengths = lengths.astype(np.uint16)
        order = np.argsort(lengths, kind="stable")
        known, first = np.unique(lengths[order], return_index=True)
        return dict(zip(known.tolist(), np.split(order, first[1:]), strict=True))

    @property
    def longest(self) -> int:
        return max(self.members, default=0)

    def letters(self, lengths: list[int], comparison: Comparison) -> np.ndarray:
        """The letters of the members of some lengths that are compared, uint8
        (members, positions)."""
        parts = []
        for length in lengths:
            ends = (length - 1 - k for k in comparison.right)
            places = np.array([*comparison.left, *ends], np.intp)
            parts.append(np.take(self._table(length), places, axis=1))
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _table(self, length: int) -> np.ndarray:
        """All letters of the members of a length, uint8 (members, length)."""
        table = self.tables.get(length)
        if table is None:
            starts = self.sequences.offsets[self.members[length]]
            places = starts[:, None] + np.arange(length)
            table = self.tables[length] = self.sequences.codes[places]
        return table


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
    for length in a.members:
        for comparison in metric.comparisons(length, cutoff, b.longest - length):
            lengths = [length + more for more in comparison.more]
            known = [n for n in lengths if n in b.members]
            if not known or (kind == "back" and 0 in comparison.more):
                continue
            about = metric, cutoff, edges, kind
            yield partial(_rectangle, a, (b, known), comparison, *about, bits)


def _rectangle(
    a: LengthClasses,
    longer: tuple[LengthClasses, list[int]],
    comparison: Comparison,
    metric: PositionMetric,
    cutoff: int,
    edges: EdgeList,
    kind: str,
    bits: tuple[np.ndarray, Fraction],
) -> Rectangle:
    """A comparison of sequences of a length with others, of some lengths."""
    (b, lengths), (codes, scale) = longer, bits
    queries = a.members[comparison.length]
    targets = np.concatenate([b.members[n] for n in lengths])
    counts = [len(b.members[n]) for n in lengths]
    more = np.repeat(np.array(lengths) - comparison.length, counts)
    left = cutoff - metric.penalty(more)
    rows = a.letters([comparison.length], comparison), b.letters(lengths, comparison)
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
