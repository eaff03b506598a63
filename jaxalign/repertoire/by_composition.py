"""Pairs that have enough letters in common, for metrics with gaps anywhere.

If a letter that has no partner of its kind costs at least ``cost``, and sequences
whose lengths differ by t cost ``gap(t)`` beside that, then a pair within the cutoff
has at most

    u = (cutoff - gap(t)) // cost

such letters in one of the two, and so at most 2 u + t in both.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import Any

import numpy as np

from jaxalign.model.letters import LetterCodes
from jaxalign.repertoire.by_position import LengthClasses
from jaxalign.repertoire.candidates import check_all
from jaxalign.repertoire.dp.compositions import (
    composition_words,
    kind_counts,
    merged_kinds,
)
from jaxalign.repertoire.edges import EdgeList
from jaxalign.repertoire.rectangles import EditDistances, Machine, Rectangle
from jaxalign.runtime.pipeline import in_threads

WORDS = 2
PAIRS_AT_ONCE = 2**20
SAMPLE, SEED = 2**14, 1972  # pairs on which kinds of letters are tried
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
        return composition_words(counts, WORDS)


def best_bound(costs: LetterCosts, cutoff: int, sequences: LetterCodes) -> Bound:
    """The kinds of letters that exclude most pairs of a sample."""
    levels = np.unique(np.minimum(costs.costs, costs.costs.T))
    kinds = [merged_kinds(costs.costs, int(x)) for x in levels if x > 0]
    bounds = [Bound(some, costs, cutoff) for some in kinds if some.max() > 0]
    if not bounds or not len(sequences):
        return Bound(np.zeros(20, np.int64), costs, cutoff)
    draw = np.random.default_rng(SEED)
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
        sequences = self.classes.sequences
        places = sequences.offsets[self.members][:, None] + np.arange(self.length)
        return sequences.codes[places]


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
