"""All pairs of a set within an edit distance, without a row for each pair.

Sequences lie in the order of falling lengths. A pair whose lengths differ by more than
the cut is above it, so each sequence meets those that follow, up to a place.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import combinations
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jaxalign.errors import MemoryPlanError
from jaxalign.model.alphabet import LetterCodes, begins, ranks, spans
from jaxalign.runtime.devices import by_length, refuse_without_threads
from jaxalign.runtime.pipeline import in_threads
from jaxalign.words.distances import (
    MAX_CODES,
    MAX_SECONDS,
    blocks_of,
    distances,
    seconds,
)

if TYPE_CHECKING:
    from jaxalign.words.gpu import EditLaunches


# ------------------------------------------------------------------------------
# Hashes of sequences with some letters deleted, and pairs that share one.
#
# Two sequences x and y within an edit distance k have an alignment of s substitutions,
# d letters of x alone and e of y alone, s + d + e <= k. Without the s + d letters of x
# and the s + e letters of y that are not paired with their like, the two are equal: so
# they share a variant with at most k letters deleted (Mor and Fraenkel 1982; Bocek et
# al. 2007, FastSS). Equal variants have equal hashes. A hash is a sum over positions of
# a random number of position and letter, so that all variants come from a few running
# sums.

SEED = 1982
PAIRS_AT_ONCE = 2**22


def random_numbers(positions: int, letters: int) -> np.ndarray:
    """uint64 (positions, letters)."""
    draw = np.random.default_rng(SEED)
    return draw.integers(0, 2**64, (positions, letters), np.uint64)


def deletion_hashes(
    letters: np.ndarray, deleted: int, numbers: np.ndarray
) -> Iterator[np.ndarray]:
    """Hashes of sequences of one length, for each choice of letters to delete.

    Parameters
    ----------
    letters : uint8 (n, length)
    deleted : int
        How many letters, at most ``length``.
    numbers : uint64 (positions, letters)
        Of ``random_numbers``.

    Yields
    ------
    uint64 (n,), length over deleted times
    """
    count, length = letters.shape
    running = np.zeros((deleted + 1, length + 1, count), np.uint64)
    for shift in range(deleted + 1):
        for place in range(shift, length):
            value = numbers[place - shift][letters[:, place]]
            np.add(running[shift, place], value, out=running[shift, place + 1])
    for places in combinations(range(length), deleted):
        ends = (*places, length)
        hashes = running[0, ends[0]].copy()
        for shift, (place, end) in enumerate(zip(places, ends[1:], strict=True), 1):
            hashes += running[shift, end]
            hashes -= running[shift, place + 1]
        yield hashes


def pairs_of_equals(keys: np.ndarray, bits: int) -> Iterator[tuple[np.ndarray, ...]]:
    """Pairs of numbers whose keys agree above them.

    Parameters
    ----------
    keys : uint64 (n,), sorted
        A hash above a number of ``bits`` bits; none twice.
    bits : int

    Yields
    ------
    (uint64 (p,), uint64 (p,))
        The smaller number first, some pairs at a time.
    """
    hashes = keys >> np.uint64(bits)
    first = np.flatnonzero(begins(hashes))
    sizes = np.diff(np.append(first, len(keys)))
    shared = sizes > 1
    first, sizes = first[shared], sizes[shared]
    numbers = keys & np.uint64(2**bits - 1)
    # Each member of a group is paired with those after it.
    places = np.repeat(first, sizes) + ranks(sizes)
    partners = np.repeat(first + sizes, sizes) - places - 1
    places, partners = places[partners > 0], partners[partners > 0]
    for start, stop in spans(partners, PAIRS_AT_ONCE):
        left = np.repeat(places[start:stop], partners[start:stop])
        yield numbers[left], numbers[left + 1 + ranks(partners[start:stop])]


GROUP = 4096  # queries whose letters lie side by side
LINK_BYTES = 12  # two numbers of sequences, a distance
WORK_COPIES = 5  # of the links, while a matrix is made of them
LAUNCHES_AT_ONCE = 2
LEAST_CELLS_OF_A_GPU = 2e11  # fewer take less time than to compile its kernels


class NearPairs(NamedTuple):
    """Pairs i < j and their distances, int32 (P,) each."""

    i: np.ndarray
    j: np.ndarray
    distance: np.ndarray


def within(sequences: LetterCodes, cut: int, threads: int, budget: int) -> NearPairs:
    """All pairs of a set whose distance is at most ``cut``.

    Raises
    ------
    MemoryPlanError
        They exceed a budget of bytes.
    """
    order = by_length(sequences.lengths)
    falling = sequences.lengths[order]
    # A sequence meets those after it that are at most ``cut`` letters shorter.
    last = np.searchsorted(-falling, cut - falling, side="right")
    pairs = last - np.arange(len(order)) - 1
    if (seconds(falling, falling) * pairs).sum() <= MAX_SECONDS:
        return _near(sequences, *_listed(order, pairs), cut, threads)
    refuse_without_threads()
    folded = sequences.folded(MAX_CODES)
    queries, links = _Falling(folded, order, last), _Links(budget)
    launches = _launches(folded, float((falling * falling * pairs).sum()))
    # Only sequences up to a length can be queries of a launch, and those that follow.
    begin = len(order)
    if launches is not None:
        begin = int(np.searchsorted(-falling, -launches.longest))
        _look_by_launches(launches, queries, begin, cut, links)
    blocks = blocks_of(sequences.lengths, order[:begin], int(falling[0]))
    look = partial(_look_at_block, queries, cut, links)
    in_threads(look, _places(blocks), threads)
    i, j, distance = links.joined()
    if folded is not sequences:  # distances of folded letters are at most the real ones
        return _near(sequences, i, j, cut, threads)
    return _sorted(i, j, distance)


def _launches(sequences: LetterCodes, cells: float):
    """Launches that compute so many cells on a GPU; None without one, or for few."""
    if cells < LEAST_CELLS_OF_A_GPU:
        return None
    from jaxalign.words.gpu import near_launches_of

    return near_launches_of(sequences)


def _look_by_launches(
    launches: "EditLaunches", queries: "_Falling", begin: int, cut: int, links: "_Links"
):
    """Add the near pairs of the targets from a place on, by launches on a GPU."""
    order, end = queries.order, len(queries.order)
    lengths = queries.sequences.lengths[order]

    def groups(first: int, last: int):
        """Places of the queries of each launch."""
        while first < last:
            count = launches.query_count(int(lengths[first]))
            yield np.arange(first, min(first + count, last))
            first += count

    for place in range(begin, end, launches.targets):
        targets = order[place : place + launches.targets]
        blocks = launches.blocks(targets)

        def look(
            some: np.ndarray,
            place: int = place,
            targets: np.ndarray = targets,
            blocks: tuple[Any, np.ndarray] = blocks,
        ):
            first = int(np.searchsorted(queries.last, some[0], side="right")) - place
            last = np.minimum(some - place, len(targets))
            near = launches.near(order[some], blocks, max(first, 0), last, cut)
            links.add(order[some[near.row]], targets[near.column], near.value)

        # One waits for its launch while the other one runs.
        last = int(queries.last[place + len(targets) - 1])
        in_threads(look, groups(place, last), LAUNCHES_AT_ONCE)


def _places(blocks: Iterable[np.ndarray]) -> Iterator[tuple[int, np.ndarray]]:
    """Blocks with the place of their first target."""
    at = 0
    for block in blocks:
        yield at, block
        at += len(block)


@dataclass(frozen=True, eq=False)
class _Falling:
    """Sequences, longest first, and the places that each of them meets: those after it
    up to ``last``."""

    sequences: LetterCodes
    order: np.ndarray
    last: np.ndarray

    @cached_property
    def letters(self) -> list:
        """``GROUP`` sequences at a time, as ``edit_windows.edits_block`` reads them."""
        from jaxalign.words.match_vectors import query_letters

        groups = np.split(self.order, range(GROUP, len(self.order), GROUP))
        size = self.sequences.size
        return [query_letters(self.sequences, some, size) for some in groups]


@dataclass(eq=False)
class _Links:
    """Pairs that threads find, as far as a budget of bytes allows."""

    budget: int
    pairs: list = field(default_factory=list)
    count: int = 0
    lock: Any = field(default_factory=Lock)

    def add(self, *pairs: np.ndarray) -> None:
        """Add i, j and distances of some."""
        i, j, distance = (x.astype(np.int32) for x in pairs)
        with self.lock:
            self.pairs.append((i, j, distance))
            self.count += len(i)
            if self.count * LINK_BYTES * WORK_COPIES > self.budget:
                raise MemoryPlanError(
                    f"{self.count:,} pairs, and more to come, are within the cut: they "
                    f"exceed the memory budget of {self.budget:,} bytes; a lower cut "
                    "has fewer"
                )

    def joined(self) -> list[np.ndarray]:
        """i, j and distances of all."""
        none = (np.zeros(0, np.int32),) * 3
        return [np.concatenate(x) for x in zip(none, *self.pairs, strict=True)]


def _look_at_block(
    queries: _Falling, cut: int, links: _Links, block: tuple[int, np.ndarray]
) -> None:
    """Add the near pairs of a block of targets with the places after theirs."""
    from jaxalign.words import cpu

    place, targets = block
    end = int(queries.last[place + len(targets) - 1])
    longest = int(queries.sequences.lengths[targets[0]])
    words = cpu.target_words(queries.sequences, targets, longest)
    at = place
    while at < end:
        group = at // GROUP
        first, at = at, min(end, (group + 1) * GROUP)
        some = slice(first - group * GROUP, at - group * GROUP)
        for edits in cpu.edits_block(queries.letters[group], some, words):
            q, t = np.nonzero(edits[:, : len(targets)] <= cut)
            after = q + first > t + place
            q, t = q[after], t[after]
            i, j = queries.order[q + first], targets[t]
            links.add(i, j, edits[q, t])
            first += len(edits)


def _listed(order: np.ndarray, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Every pair of places (k, k + 1 … k + pairs[k]) as sequences."""
    first = np.repeat(np.arange(len(order)), pairs)
    return order[first], order[first + 1 + ranks(pairs)]


def _near(
    sequences: LetterCodes, i: np.ndarray, j: np.ndarray, cut: int, threads: int
) -> NearPairs:
    """Those of some pairs that are within the cut."""
    edit_counts = distances(sequences, i, j, threads)
    near = edit_counts <= cut
    return _sorted(i[near], j[near], edit_counts[near])


def _sorted(i: np.ndarray, j: np.ndarray, distance: np.ndarray) -> NearPairs:
    i, j = np.minimum(i, j), np.maximum(i, j)
    order = np.lexsort((j, i))
    return NearPairs(*(x[order].astype(np.int32) for x in (i, j, distance)))
