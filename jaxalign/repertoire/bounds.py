"""Codes of letters whose differing bits bound a distance of letters from below.

A bit divides the letters in two: a *cut*. If letters a and b are apart in c(a, b) of
the cuts, and c(a, b) <= scale * D(a, b) for all a and b, then of two rows of letters

    differing bits of their codes <= scale * (sum of D over their positions),

and the left side is a XOR and a population count of words. (A sum of cut metrics below
a metric: Deza and Laurent 1997, Geometry of Cuts and Metrics.)
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from threading import Lock
from typing import Any

import numpy as np

from jaxalign.model.alphabet import LetterCodes
from jaxalign.repertoire.metrics import Comparison, PositionMetric
from jaxalign.repertoire.rectangles import (
    EditDistances,
    Machine,
    PositionSums,
    Rectangle,
    check_all,
)
from jaxalign.runtime.pipeline import in_threads
from jaxalign.words.edges import EdgeList
from jaxalign.words.near_pairs import LengthClasses

APART = 4  # cuts between the letters that are farthest apart, at most
STARTS = 24  # of the search for a cut, each from other random sides
CUT_SEED = 1997


def letter_bits(table: np.ndarray, bits: int) -> tuple[np.ndarray, Fraction]:
    """(codes uint32 (letters,) of so many bits, their scale).

    Parameters
    ----------
    table : int (letters, letters)
        Distances, symmetric, 0 on the diagonal and nowhere negative.
    bits : int
    """
    scale = Fraction(APART, max(int(table.max()), 1))
    room = table * scale.numerator // scale.denominator
    codes = np.zeros(len(table), np.uint32)
    draw = np.random.default_rng(CUT_SEED)
    for bit in range(bits):
        sides = _cut(room, draw)
        room = room - (sides[:, None] != sides[None, :])
        codes |= sides.astype(np.uint32) << np.uint32(bit)
    return codes, scale


def _cut(room: np.ndarray, draw: np.random.Generator) -> np.ndarray:
    """Sides, bool (letters,), that part as many pairs with room as a search finds, and
    no pair without."""
    groups = _joined(room < 1)
    count = int(groups.max()) + 1
    weights = np.zeros((count, count))
    np.add.at(weights, (groups[:, None], groups[None, :]), np.sqrt(np.maximum(room, 0)))
    np.fill_diagonal(weights, 0)
    best, most = np.zeros(count, bool), 0.0
    for _ in range(STARTS):
        sides = _local_search(weights, draw.random(count) < 0.5)
        parted = weights[sides][:, ~sides].sum()
        if parted > most:
            best, most = sides, parted
    return best[groups]


def _joined(near: np.ndarray) -> np.ndarray:
    """Groups of letters that must be on one side, int (letters,)."""
    groups = np.arange(len(near))
    for i, j in zip(*np.nonzero(near), strict=True):
        groups[groups == groups[i]] = groups[j]
    return np.unique(groups, return_inverse=True)[1]


def _local_search(weights: np.ndarray, sides: np.ndarray) -> np.ndarray:
    """Move the group to the other side that gains most, while one gains."""
    while True:
        signs = np.where(sides, 1.0, -1.0)
        gains = signs * (weights @ signs)
        best = int(gains.argmax())
        if gains[best] <= 1e-9:
            return sides
        sides[best] = ~sides[best]


def code_words(
    codes: np.ndarray, letters: np.ndarray, bits: int, count: int
) -> np.ndarray:
    """Codes of the middle positions of rows of letters, in words: uint32 (count, rows).

    Parameters
    ----------
    codes : uint32 (letters,)
    letters : uint8 (rows, positions)
    bits : int
        Of a code.
    count : int
        Words; positions that they have no room for are left out, from both ends.
    """
    room = 32 // bits
    first = max(letters.shape[1] - count * room, 0) // 2
    packed = np.zeros((count, len(letters)), np.uint32)
    for k in range(min(letters.shape[1], count * room)):
        packed[k % count] |= codes[letters[:, first + k]] << np.uint32(
            k // count * bits
        )
    return packed


# ------------------------------------------------------------------------------
# How often each letter occurs, as bits: a bound of the letters that have no like.
#
# Bit k of a letter says that it occurs more than k times. Two rows of bits then differ
# in as many places as their sequences have letters without a partner of the same kind
# in the other one, or in fewer, where a letter occurs more often than it has bits.


def composition_words(counts: np.ndarray, words: int) -> np.ndarray:
    """Words of how often each kind of letter occurs: uint32 (words, n).

    Parameters
    ----------
    counts : int (n, kinds)
        At most ``32 * words`` kinds.
    words : int
    """
    kinds = counts.shape[1]
    each, more = divmod(32 * words, kinds)
    room = each + (np.arange(kinds) < more)
    packed = np.zeros((words, len(counts)), np.uint32)
    bit = 0
    for kind in range(kinds):
        for level in range(int(room[kind])):
            place = np.uint32(bit % 32)
            packed[bit // 32] |= (counts[:, kind] > level).astype(np.uint32) << place
            bit += 1
    return packed


def kind_counts(
    codes: np.ndarray, offsets: np.ndarray, kinds: np.ndarray
) -> np.ndarray:
    """How often each kind of letter occurs in each sequence, int32 (n, kinds).

    Parameters
    ----------
    codes, offsets : uint8 (letters,), int64 (n + 1,)
    kinds : int (size,)
        The kind of each code, from 0 on.
    """
    count, many = len(offsets) - 1, int(kinds.max()) + 1
    rows = np.repeat(np.arange(count), np.diff(offsets))
    flat = rows * many + kinds[codes]
    counts = np.bincount(flat, minlength=count * many)
    return counts.reshape(count, many).astype(np.int32)


def merged_kinds(costs: np.ndarray, least: int) -> np.ndarray:
    """Kinds of letters, so that a letter with one of another kind costs ``least`` or
    more: int (letters,).

    Parameters
    ----------
    costs : int (letters, letters)
    """
    kinds = np.arange(len(costs))
    for a, b in zip(*np.nonzero(np.minimum(costs, costs.T) < least), strict=True):
        kinds[kinds == kinds[a]] = kinds[b]
    return np.unique(kinds, return_inverse=True)[1]


# ------------------------------------------------------------------------------
# Edges of a metric that is a sum over positions.

# Of a letter's code; of a row: it has room for twelve letters
BITS, POSITION_WORDS = 5, 2


def compared_letters(
    classes: LengthClasses, lengths: list[int], comparison: Comparison
) -> np.ndarray:
    """The letters of the members of some lengths that are compared, uint8 (members,
    positions)."""
    parts = []
    for length in lengths:
        ends = (length - 1 - k for k in comparison.right)
        places = np.array([*comparison.left, *ends], np.intp)
        parts.append(np.take(classes.table(length), places, axis=1))
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def position_rectangles(
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
            yield partial(_position_rectangle, a, (b, known), comparison, *about, bits)


def _position_rectangle(
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
    rows = (
        compared_letters(a, [comparison.length], comparison),
        compared_letters(b, lengths, comparison),
    )
    add = _Adder(queries, targets, cutoff - left, edges, kind)
    sums = PositionSums(metric.table, *rows, left, add)
    return Rectangle(
        code_words(codes, rows[0], BITS, POSITION_WORDS),
        code_words(codes, rows[1], BITS, POSITION_WORDS),
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


# ------------------------------------------------------------------------------
# Pairs that have enough letters in common, for metrics with gaps anywhere.
#
# If a letter that has no partner of its kind costs at least ``cost``, and sequences
# whose lengths differ by t cost ``gap(t)`` beside that, then a pair within the cutoff
# has at most
#
#     u = (cutoff - gap(t)) // cost
#
# such letters in one of the two, and so at most 2 u + t in both.

COMPOSITION_WORDS = 2
PAIRS_AT_ONCE = 2**20
SAMPLE, SAMPLE_SEED = 2**14, 1972  # pairs on which kinds of letters are tried
# Distances int (P,) of sequences i and j of the two sets.
Distances = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True, eq=False)
class LetterCosts:
    """Least costs by a metric, which the bound needs.

    Attributes
    ----------
    costs : int (20, 20)
        At least so much costs letter a of one sequence beside b of the other one,
        whichever of the two the distance is measured by; 0 on the diagonal.
    alone : int
        At least so much costs a letter beside a gap, the gap itself not counted.
    open, extend : int
        Of a gap.
    """

    costs: np.ndarray
    alone: int
    open: int
    extend: int

    def gap(self, more: np.ndarray) -> np.ndarray:
        """The least that so many letters more cost."""
        return np.where(more > 0, self.open + (more - 1) * self.extend, 0)

    def least(self, kinds: np.ndarray) -> int:
        """The cost of a letter that has no partner of its kind."""
        apart = kinds[:, None] != kinds[None, :]
        return int(min(self.costs[apart].min(initial=2**30), self.alone))


@dataclass(frozen=True, eq=False)
class Bound:
    """Kinds of letters, and how many bits of their counts a near pair differs in."""

    kinds: np.ndarray
    costs: LetterCosts
    cutoff: int

    def limits(self, more: np.ndarray) -> np.ndarray:
        """int32, of pairs whose lengths differ by so much; -1 where none is near."""
        left = self.cutoff - self.costs.gap(more)
        unlike = left // max(self.costs.least(self.kinds), 1)
        return np.where(left < 0, -1, 2 * unlike + more).astype(np.int32)

    def words(self, sequences: LetterCodes) -> np.ndarray:
        """uint32 (words, n)."""
        counts = kind_counts(sequences.codes, sequences.offsets, self.kinds)
        return composition_words(counts, COMPOSITION_WORDS)


def best_bound(costs: LetterCosts, cutoff: int, sequences: LetterCodes) -> Bound:
    """The kinds of letters that exclude most pairs of a sample."""
    levels = np.unique(np.minimum(costs.costs, costs.costs.T))
    kinds = [merged_kinds(costs.costs, int(x)) for x in levels if x > 0]
    bounds = [Bound(some, costs, cutoff) for some in kinds if some.max() > 0]
    if not bounds or not len(sequences):
        return Bound(np.zeros(20, np.int64), costs, cutoff)
    draw = np.random.default_rng(SAMPLE_SEED)
    i, j = draw.integers(0, len(sequences), (2, SAMPLE))
    more = np.abs(sequences.lengths[i] - sequences.lengths[j])
    return min(bounds, key=lambda one: _passing(one, sequences, i, j, more))


def _passing(
    bound: Bound, sequences: LetterCodes, i: np.ndarray, j: np.ndarray, more: np.ndarray
) -> int:
    words = bound.words(sequences)
    differ = np.bitwise_count(words[:, i] ^ words[:, j]).sum(axis=0)
    return int((differ <= bound.limits(more)).sum())


@dataclass(eq=False)
class Waiting:
    """Pairs that wait until they are many: distances of many take less time each."""

    pairs: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)
    count: int = 0
    lock: Any = field(default_factory=Lock)

    def add(self, i: np.ndarray, j: np.ndarray) -> tuple[np.ndarray, ...] | None:
        """All pairs that wait, if they are many now; they wait no more."""
        with self.lock:
            self.pairs.append((i, j))
            self.count += len(i)
            return self._all() if self.count >= PAIRS_AT_ONCE else None

    def rest(self) -> tuple[np.ndarray, ...]:
        """All pairs that wait."""
        with self.lock:
            return self._all()

    def _all(self) -> tuple[np.ndarray, ...]:
        none = (np.zeros(0, np.int64),) * 2
        sides = zip(none, *self.pairs, strict=True)
        self.pairs, self.count = [], 0
        return tuple(np.concatenate(side) for side in sides)


@dataclass(frozen=True, eq=False)
class Comparer:
    """Adds those of some pairs that are within the cutoff.

    ``at_once`` says that pairs of two lengths are compared as they come; others wait
    until they are many.
    """

    distances: Distances
    cutoff: int
    edges: EdgeList
    one_set: bool
    at_once: bool
    waiting: Waiting

    def __call__(self, i: np.ndarray, j: np.ndarray) -> None:
        if self.at_once:
            self.compare(i, j)
        elif many := self.waiting.add(i, j):
            self.compare(*many)

    def compare(self, i: np.ndarray, j: np.ndarray) -> None:
        if len(i):
            distance = self.distances(i, j)
            near = distance <= self.cutoff
            self.add(i[near], j[near], distance[near])

    def add(self, i: np.ndarray, j: np.ndarray, distance: np.ndarray) -> None:
        """Add pairs that are near."""
        if self.one_set:
            i, j = np.minimum(i, j), np.maximum(i, j)
        self.edges.add(i, j, distance)

    def finish(self) -> None:
        self.compare(*self.waiting.rest())


def add_near(
    a: LengthClasses,
    b: LengthClasses | None,
    bound: Bound,
    distances: Distances,
    edges: EdgeList,
    machine: Machine,
    at_once: bool = False,
    edits: bool = False,
) -> None:
    """Add the pairs within the cutoff: i < j of one set, (i of a, j of b) of two.

    at_once : whether distances are asked for pairs of two lengths at a time
    edits : whether they are edit distances, which a GPU can compute itself
    """
    compare = Comparer(distances, bound.cutoff, edges, b is None, at_once, Waiting())
    making = _rectangles(a, b, bound, compare, edits)
    rectangles = in_threads(lambda make: make(), making, machine.threads)
    check_all(rectangles, machine.threads, machine.devices)
    compare.finish()


def _rectangles(
    a: LengthClasses,
    b: LengthClasses | None,
    bound: Bound,
    compare: Comparer,
    edits: bool,
) -> Iterator[Callable[[], Rectangle]]:
    """Functions that make a rectangle of two lengths each."""
    queries_words = bound.words(a.sequences)
    targets_words = queries_words if b is None else bound.words(b.sequences)
    for length in a.members:
        for other in (b or a).members:
            limit = int(bound.limits(np.array(abs(other - length))))
            if limit >= 0 and (b is not None or other >= length):
                sides = (
                    _Side(a, length, queries_words),
                    _Side(b or a, other, targets_words),
                )
                yield partial(_rectangle, *sides, limit, compare, edits)


@dataclass(frozen=True, eq=False)
class _Side:
    """The sequences of a length, and the words of all."""

    classes: LengthClasses
    length: int
    all_words: np.ndarray

    @property
    def members(self) -> np.ndarray:
        return self.classes.members[self.length]

    @property
    def words(self) -> np.ndarray:
        return self.all_words[:, self.members]

    @property
    def letters(self) -> np.ndarray:
        """uint8 (sequences, length)."""
        return self.classes.letters(self.length, self.members)


def _rectangle(
    a: _Side, b: _Side, limit: int, compare: Comparer, edits: bool
) -> Rectangle:
    """The sequences of two lengths against each other."""
    sides, count = (a.members, b.members), len(b.members)
    distances = None
    if edits:
        left = np.full(count, compare.cutoff, np.int32)
        add = partial(_add, *sides, compare)
        distances = EditDistances(a.letters, b.letters, left, add)
    return Rectangle(
        a.words,
        b.words,
        np.full(count, limit, np.int32),
        compare.one_set and a.length == b.length,
        partial(_check, *sides, compare),
        edits=distances,
    )


def _add(
    queries: np.ndarray,
    targets: np.ndarray,
    compare: Comparer,
    q: np.ndarray,
    t: np.ndarray,
    distance: np.ndarray,
) -> None:
    compare.add(queries[q], targets[t], distance)


def _check(
    queries: np.ndarray,
    targets: np.ndarray,
    compare: Comparer,
    q: np.ndarray,
    t: np.ndarray,
) -> None:
    compare(queries[q], targets[t])
