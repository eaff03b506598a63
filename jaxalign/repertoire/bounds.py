"""Rectangles of pairs that may be near, by bounds that no near pair exceeds.

Of a metric that is a sum over positions, letters have codes. A bit divides the letters
in two: a *cut*. If letters a and b are apart in c(a, b) of the cuts, and
c(a, b) <= scale * D(a, b) for all a and b, then of two rows of letters

    differing bits of their codes <= scale * (sum of D over their positions),

and the left side is a XOR and a population count of words. (A sum of cut metrics below
a metric: Deza and Laurent 1997, Geometry of Cuts and Metrics.)

Of a metric with gaps anywhere, near pairs have enough letters in common. If a letter
that has no partner of its kind costs at least ``cost``, and sequences whose lengths
differ by t cost ``gap(t)`` beside that, then a pair within the cutoff has at most

    u = (cutoff - gap(t)) // cost

such letters in one of the two, and so at most 2 u + t in both. The words say how often
each kind of letter occurs: bit k of a kind that it occurs more than k times. Two rows
of bits then differ in as many places as their sequences have letters without a partner,
or in fewer, where a letter occurs more often than it has bits.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from threading import Lock
from typing import Any

import numpy as np

from jaxalign.model.alphabet import LetterCodes
from jaxalign.repertoire.metrics import Comparison, PositionMetric, pair_sums
from jaxalign.repertoire.rectangles import (
    Machine,
    Rectangle,
    RowDistances,
    check_all,
)
from jaxalign.runtime import devices
from jaxalign.runtime.pipeline import in_threads
from jaxalign.words.edges import EdgeList
from jaxalign.words.near_pairs import LengthClasses

WORDS = 2  # of a row
BITS = 5  # of a letter's code: a row has room for twelve letters
APART = 4  # cuts between the letters that are farthest apart, at most
STARTS = 24  # of the search for a cut, each from other random sides
CUT_SEED = 1997
PAIRS_AT_ONCE, PAIR_BYTES = 2**20, 64  # that wait to be compared
SAMPLE, SAMPLE_SEED = 2**14, 1972  # pairs on which kinds of letters are tried
# Distances int (P,) of sequences i and j of the two sets.
Distances = Callable[[np.ndarray, np.ndarray], np.ndarray]


def linked_groups(links: np.ndarray) -> np.ndarray:
    """Connected groups of letters, from their links: int (letters,)."""
    groups = np.arange(len(links))
    for i, j in zip(*np.nonzero(links), strict=True):
        groups[groups == groups[i]] = groups[j]
    return np.unique(groups, return_inverse=True)[1]


def letter_bits(table: np.ndarray, bits: int) -> tuple[np.ndarray, Fraction]:
    """Embed a distance table in bits: (codes uint32 (letters,), scale).

    table : int (letters, letters). Distances, symmetric, 0 on the diagonal and nowhere
        negative.
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
    """Search for the cut, bool (letters,), that separates most pairs with room, and no
    pair without room."""
    groups = linked_groups(room < 1)
    count = int(groups.max()) + 1
    weights = np.zeros((count, count))
    np.add.at(weights, (groups[:, None], groups[None, :]), np.sqrt(np.maximum(room, 0)))
    np.fill_diagonal(weights, 0)
    best, largest = np.zeros(count, bool), 0.0
    for _ in range(STARTS):
        sides = draw.random(count) < 0.5
        while True:  # move the group to the other side that gains most
            signs = np.where(sides, 1.0, -1.0)
            gains = signs * (weights @ signs)
            place = int(gains.argmax())
            if gains[place] <= 1e-9:
                break
            sides[place] = ~sides[place]
        parted = weights[sides][:, ~sides].sum()
        if parted > largest:
            best, largest = sides, parted
    return best[groups]


def code_words(codes: np.ndarray, letters: np.ndarray) -> np.ndarray:
    """Codes uint32 (letters,) of the middle positions of rows of letters, uint8 (rows,
    positions), in words: uint32 (words, rows).

    Positions that they have no room for are left out, from both ends.
    """
    room = 32 // BITS * WORDS
    first = max(letters.shape[1] - room, 0) // 2
    packed = np.zeros((WORDS, len(letters)), np.uint32)
    for k in range(min(letters.shape[1], room)):
        place = np.uint32(k // WORDS * BITS)
        packed[k % WORDS] |= codes[letters[:, first + k]] << place
    return packed


def position_rectangles(
    a: LengthClasses,
    b: LengthClasses | None,
    metric: PositionMetric,
    cutoff: int,
    edges: EdgeList,
) -> Iterator[Callable[[], Rectangle]]:
    """Yield functions that build the rectangles of a set with itself or, with ``b``, of
    two sets.

    Edges i < j of one set, (i of a, j of b) of two.
    """
    if b is None:
        sides = ((a, a, "same"),)
    else:
        sides = (a, b, "across"), (b, a, "back")
    bits = letter_bits(metric.table, BITS)
    for shorter, longer, kind in sides:
        for length in shorter.members:
            largest_surplus = longer.longest - length
            for comparison in metric.comparisons(length, cutoff, largest_surplus):
                lengths = [length + surplus for surplus in comparison.surplus]
                lengths = [n for n in lengths if n in longer.members]
                if lengths and not (kind == "back" and 0 in comparison.surplus):
                    about = metric, cutoff, edges, kind, bits
                    parts = shorter, longer, lengths, comparison
                    yield partial(_position_rectangle, *parts, *about)


def _position_rectangle(
    a: LengthClasses,
    b: LengthClasses,
    lengths: list[int],
    comparison: Comparison,
    metric: PositionMetric,
    cutoff: int,
    edges: EdgeList,
    kind: str,
    bits: tuple[np.ndarray, Fraction],
) -> Rectangle:
    """Build the rectangle of sequences of one length against several lengths."""
    codes, scale = bits
    queries = a.members[comparison.length]
    targets = np.concatenate([b.members[n] for n in lengths])
    counts = [len(b.members[n]) for n in lengths]
    surplus = np.repeat(np.array(lengths) - comparison.length, counts)
    largest = cutoff - metric.penalty(surplus)
    penalties = cutoff - largest

    def letters(classes: LengthClasses, length: int) -> np.ndarray:
        """Letters at the compared positions, uint8 (sequences, positions)."""
        ends = (length - 1 - k for k in comparison.from_end)
        places = np.array([*comparison.from_start, *ends], np.intp)
        return np.take(classes.table(length), places, axis=1)

    def add(q: np.ndarray, t: np.ndarray, sums: np.ndarray) -> None:
        i, j = queries[q], targets[t]
        if kind == "same":
            i, j = np.minimum(i, j), np.maximum(i, j)
        elif kind == "back":
            i, j = j, i
        edges.add(i, j, sums + penalties[t])

    x = letters(a, comparison.length)
    parts = [letters(b, n) for n in lengths]
    y = parts[0] if len(parts) == 1 else np.concatenate(parts)

    def check(q: np.ndarray, t: np.ndarray) -> None:
        sums = pair_sums(metric.table, x, y, q, t)
        within = sums <= largest[t]
        add(q[within], t[within], sums[within])

    limits = np.floor_divide(largest * scale.numerator, scale.denominator)
    triangle = kind == "same" and 0 in comparison.surplus
    distances = RowDistances(x, y, largest, add, metric.table)
    words = code_words(codes, x), code_words(codes, y)
    return Rectangle(*words, limits, triangle, check, distances)


@dataclass(frozen=True, eq=False)
class LetterCosts:
    """Least costs by a metric, which the bound needs.

    costs : int (20, 20). At least so much costs letter a of one sequence beside b of
        the other one, whichever of the two the distance is measured by; 0 on the
        diagonal.
    unpaired : at least so much costs a letter beside a gap, the gap itself not counted.
    open, extend : of a gap.
    """

    costs: np.ndarray
    unpaired: int
    open: int
    extend: int


@dataclass(frozen=True, eq=False)
class Bound:
    """Kinds of letters, and how many bits of their counts a near pair differs in."""

    kinds: np.ndarray
    costs: LetterCosts
    cutoff: int

    def limits(self, surplus: np.ndarray) -> np.ndarray:
        """Bits that may differ at a length difference, int32; -1 if no pair is near."""
        costs = self.costs
        apart = self.kinds[:, None] != self.kinds[None, :]
        least = int(min(costs.costs[apart].min(initial=2**30), costs.unpaired))
        gap = np.where(surplus > 0, costs.open + (surplus - 1) * costs.extend, 0)
        allowance = self.cutoff - gap
        unlike = allowance // max(least, 1)
        return np.where(allowance < 0, -1, 2 * unlike + surplus).astype(np.int32)

    def words(self, sequences: LetterCodes) -> np.ndarray:
        """Encode how often each kind of letter occurs, uint32 (words, n)."""
        count, kinds = len(sequences), int(self.kinds.max()) + 1
        rows = np.repeat(np.arange(count), sequences.lengths)
        flat = rows * kinds + self.kinds[sequences.codes]
        counts = np.bincount(flat, minlength=count * kinds).reshape(count, kinds)
        each, remainder = divmod(32 * WORDS, kinds)
        packed = np.zeros((WORDS, count), np.uint32)
        bit = 0
        for kind in range(kinds):
            for level in range(each + (kind < remainder)):
                flags = (counts[:, kind] > level).astype(np.uint32)
                packed[bit // 32] |= flags << np.uint32(bit % 32)
                bit += 1
        return packed


def best_bound(costs: LetterCosts, cutoff: int, sequences: LetterCodes) -> Bound:
    """Choose the kinds of letters that exclude most pairs of a sample.

    A mismatch of two kinds costs at least one level.
    """
    either = np.minimum(costs.costs, costs.costs.T)
    kinds = [linked_groups(either < x) for x in np.unique(either) if x > 0]
    bounds = [Bound(groups, costs, cutoff) for groups in kinds if groups.max() > 0]
    if not bounds or not len(sequences):
        return Bound(np.zeros(20, np.int64), costs, cutoff)
    draw = np.random.default_rng(SAMPLE_SEED)
    i, j = draw.integers(0, len(sequences), (2, SAMPLE))
    surplus = np.abs(sequences.lengths[i] - sequences.lengths[j])

    def passing(bound: Bound) -> int:
        words = bound.words(sequences)
        differ = np.bitwise_count(words[:, i] ^ words[:, j]).sum(axis=0)
        return int((differ <= bound.limits(surplus)).sum())

    return min(bounds, key=passing)


@dataclass(eq=False)
class Comparer:
    """Computes distances of candidate pairs and keeps those within the cutoff.

    ``at_once`` says that pairs of two lengths are compared as they come; others wait
    until they are ``pairs_at_once``, since distances of many take less time each.
    """

    distances: Distances
    cutoff: int
    edges: EdgeList
    one_set: bool
    at_once: bool
    pairs_at_once: int = PAIRS_AT_ONCE
    waiting: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)
    count: int = 0
    lock: Any = field(default_factory=Lock)

    def __call__(self, i: np.ndarray, j: np.ndarray) -> None:
        """Compare some pairs, now or later."""
        if self.at_once:
            self._compare([(i, j)])
            return
        with self.lock:
            self.waiting.append((i, j))
            self.count += len(i)
            if self.count < self.pairs_at_once:
                return
            pairs, self.waiting, self.count = self.waiting, [], 0
        self._compare(pairs)

    def finish(self) -> None:
        """Compare the pairs that wait."""
        if self.waiting:
            self._compare(self.waiting)

    def _compare(self, pairs: list[tuple[np.ndarray, np.ndarray]]) -> None:
        i, j = (np.concatenate(side) for side in zip(*pairs, strict=True))
        if len(i):
            distance = self.distances(i, j)
            within = distance <= self.cutoff
            self.add(i[within], j[within], distance[within])

    def add(self, i: np.ndarray, j: np.ndarray, distance: np.ndarray) -> None:
        """Add pairs that are near."""
        if self.one_set:
            i, j = np.minimum(i, j), np.maximum(i, j)
        self.edges.add(i, j, distance)


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
    pairs_at_once = devices.at_once(
        PAIRS_AT_ONCE, PAIR_BYTES * machine.threads, machine.budget
    )
    compare = Comparer(
        distances, bound.cutoff, edges, b is None, at_once, pairs_at_once
    )
    second = a if b is None else b
    x_words = bound.words(a.sequences)
    y_words = x_words if b is None else bound.words(second.sequences)

    def rectangle(m: int, n: int, limit: int) -> Rectangle:
        """The sequences of two lengths against each other."""
        queries, targets = a.members[m], second.members[n]

        def check(q: np.ndarray, t: np.ndarray) -> None:
            compare(queries[q], targets[t])

        def add(q: np.ndarray, t: np.ndarray, distance: np.ndarray) -> None:
            compare.add(queries[q], targets[t], distance)

        exact = None
        if edits:
            largest = np.full(len(targets), bound.cutoff, np.int32)
            exact = RowDistances(a.table(m), second.table(n), largest, add)
        words = x_words[:, queries], y_words[:, targets]
        limits = np.full(len(targets), limit, np.int32)
        return Rectangle(*words, limits, b is None and m == n, check, exact)

    making = [
        partial(rectangle, m, n, limit)
        for m in a.members
        for n in second.members
        if (limit := int(bound.limits(np.array(abs(n - m))))) >= 0
        and (b is not None or n >= m)
    ]
    rectangles = in_threads(lambda make: make(), making, machine.threads)
    check_all(rectangles, machine)
    compare.finish()
