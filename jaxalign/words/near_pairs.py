"""All pairs of a set within an edit distance, without a row for each pair.

Few pairs are listed and compared. Of many, each sequence meets those that follow in the
order of falling lengths, up to a place: a pair whose lengths differ by more than the
cut is above it.

Where the cut is low, pairs come from the *variants* that they share instead. Two
sequences x and y within an edit distance k have an alignment of s substitutions, d
letters of x alone and e of y alone, s + d + e <= k. Without the s + d letters of x and
the s + e letters of y that are not paired with their like, the two are equal: so they
share a variant with at most k letters deleted (Mor and Fraenkel 1982; Bocek et al.
2007, FastSS). Equal variants have equal hashes. A hash is a sum over positions of a
random number of position and letter, so that all variants come from a few running sums.
Variants of one length are sorted together, and whoever shares a hash is compared.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import combinations
from math import comb, inf
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxalign.errors import MemoryPlanError
from jaxalign.model.alphabet import LetterCodes, begins, ranks, spans
from jaxalign.runtime.devices import at_once, by_length, refuse_without_threads
from jaxalign.runtime.pipeline import in_threads
from jaxalign.words.distances import (
    MAX_CODES,
    MAX_SECONDS,
    blocks_of,
    distances,
    seconds,
)
from jaxalign.words.edges import EdgeList, EdgeSet, least
from jaxalign.words.match_vectors import QueryLetters, edit_vectors, query_letters

if TYPE_CHECKING:
    from jaxalign.words.gpu import EditLaunches


GROUP = 4096  # queries whose letters lie side by side
LAUNCHES_AT_ONCE = 2
LEAST_CELLS_OF_A_GPU = 2e11  # fewer take less time than to compile its kernels
SEED = 1982
PAIRS_AT_ONCE, PAIR_BYTES = 2**22, 16
# Letters of sequences of one length whose hashes are summed together
HASHED_LETTERS, LETTER_BYTES = 2**22, 8
KEY_COPIES = 4  # of 8 bytes: keys, hashes and groups of them
SHARE = 4  # of the memory budget, for the keys of all threads
LEAST_KEYS = 2**17  # of a pass: fewer save no memory worth having
# Seconds of a variant, of the calls for a choice of letters, and of a pair that shares
# a variant (AMD EPYC, AVX2, NumPy 2.4); more letters are not deleted
VARIANT, CHOICE, SHARED_PAIR = 7e-8, 1e-5, 2e-7
# Cells a second of a core by compiled words, and seconds that a job takes at least
LANE_CELLS, LANE_SECONDS = 3e10, 0.02
MAX_DELETED = 3
# Times the pairs of a job without a compiler that share a variant and are compared
# without one: words in lanes are little faster, and JAX takes a second to start
PATIENCE = 10


class ManyPairs(Exception):
    """Raised when too many pairs share a variant."""


def within(sequences: LetterCodes, cut: int, threads: int, budget: int) -> EdgeSet:
    """All pairs of a set whose distance is at most ``cut``, by i and j."""
    order = by_length(sequences.lengths)
    falling = sequences.lengths[order]
    # A sequence meets those after it that are at most ``cut`` letters shorter.
    last = np.searchsorted(-falling, cut - falling, side="right")
    pairs = last - np.arange(len(order)) - 1
    if (seconds(falling, falling) * pairs).sum() <= MAX_SECONDS:
        first = np.repeat(np.arange(len(order)), pairs)
        sides = order[first], order[first + 1 + ranks(pairs)]
        return least([_near(sequences, *sides, cut, threads)])
    refuse_without_threads()
    folded, launches = sequences.folded(MAX_CODES), None
    cells = float((falling * falling * pairs).sum())
    if cells >= LEAST_CELLS_OF_A_GPU:
        from jaxalign.words.gpu import near_launches_of

        launches = near_launches_of(folded)
    if launches is None:
        by_lanes = LANE_SECONDS + cells / LANE_CELLS
        edges = _by_variants(sequences, cut, by_lanes, threads, budget)
        if edges is not None:
            return edges
    queries, edges = _Falling(folded, order, last), EdgeList(budget, "cut")
    # Only sequences up to a length can be queries of a launch, and those that follow.
    start = len(order)
    if launches is not None:
        start = int(np.searchsorted(-falling, -launches.longest))
        _look_by_launches(launches, queries, start, cut, edges)
    blocks = blocks_of(sequences.lengths, order[:start], int(falling[0]))
    look = partial(_look_at_block, queries, cut, edges)
    in_threads(look, _with_places(blocks), threads)
    if folded is sequences:
        return least(edges.parts, threads)
    # Distances of folded letters are at most the real ones.
    parts = [_near(sequences, x.i, x.j, cut, threads) for x in edges.parts]
    return least(parts, threads)


def _near(
    sequences: LetterCodes, i: np.ndarray, j: np.ndarray, cut: int, threads: int
) -> EdgeSet:
    """Keep the pairs within the cut."""
    i, j = np.minimum(i, j), np.maximum(i, j)
    edits = distances(sequences, i, j, threads)
    close = edits <= cut
    return EdgeSet(*(x[close].astype(np.int32) for x in (i, j, edits)))


@dataclass(frozen=True, eq=False)
class _Falling:
    """Sequences, longest first, and the places that each of them meets: those after it
    up to ``last``."""

    sequences: LetterCodes
    order: np.ndarray
    last: np.ndarray

    @cached_property
    def letters(self) -> list[QueryLetters]:
        """``GROUP`` sequences at a time, as ``cpu.edits_block`` reads them."""
        groups = np.split(self.order, range(GROUP, len(self.order), GROUP))
        size = self.sequences.size
        return [query_letters(self.sequences, group, size) for group in groups]


def _look_by_launches(
    launches: "EditLaunches", queries: _Falling, start: int, cut: int, edges: EdgeList
) -> None:
    """Add the near pairs of the targets from a place on, by launches on a GPU."""
    order, end = queries.order, len(queries.order)
    lengths = queries.sequences.lengths[order]

    def groups(first: int, last: int) -> Iterator[np.ndarray]:
        """Places of the queries of each launch."""
        while first < last:
            count = launches.query_count(int(lengths[first]))
            yield np.arange(first, min(first + count, last))
            first += count

    for place in range(start, end, launches.targets):
        targets = order[place : place + launches.targets]
        blocks = launches.blocks(targets)

        def look(
            queries_at: np.ndarray,
            place: int = place,
            targets: np.ndarray = targets,
            blocks: tuple[Any, np.ndarray] = blocks,
        ) -> None:
            first = (
                int(np.searchsorted(queries.last, queries_at[0], side="right")) - place
            )
            last = np.minimum(queries_at - place, len(targets))
            pairs = launches.near(order[queries_at], blocks, max(first, 0), last, cut)
            _add(
                edges, order[queries_at[pairs.row]], targets[pairs.column], pairs.value
            )

        # One waits for its launch while the other one runs.
        last = int(queries.last[place + len(targets) - 1])
        in_threads(look, groups(place, last), LAUNCHES_AT_ONCE)


def _with_places(blocks: Iterable[np.ndarray]) -> Iterator[tuple[int, np.ndarray]]:
    """Blocks with the place of their first target."""
    at = 0
    for block in blocks:
        yield at, block
        at += len(block)


def _look_at_block(
    queries: _Falling, cut: int, edges: EdgeList, block: tuple[int, np.ndarray]
) -> None:
    """Add the near pairs of a block of targets with the places after theirs."""
    from jaxalign.words import cpu

    place, targets = block
    end = int(queries.last[place + len(targets) - 1])
    longest = int(queries.sequences.lengths[targets[0]])
    vectors = edit_vectors(queries.sequences, targets, longest)
    at = place
    while at < end:
        group = at // GROUP
        first, at = at, min(end, (group + 1) * GROUP)
        run = slice(first - group * GROUP, at - group * GROUP)
        for edits in cpu.edits_block(queries.letters[group], run, vectors):
            q, t = np.nonzero(edits[:, : len(targets)] <= cut)
            after = q + first > t + place
            q, t = q[after], t[after]
            _add(edges, queries.order[q + first], targets[t], edits[q, t])
            first += len(edits)


def _add(edges: EdgeList, i: np.ndarray, j: np.ndarray, distance: np.ndarray) -> None:
    edges.add(np.minimum(i, j), np.maximum(i, j), distance)


@dataclass(frozen=True, eq=False)
class LengthClasses:
    """Sequences by their lengths."""

    sequences: LetterCodes
    tables: dict[int, np.ndarray] = field(default_factory=dict, init=False)

    @cached_property
    def members(self) -> dict[int, np.ndarray]:
        """The sequences of every length that occurs."""
        lengths = self.sequences.lengths
        if lengths.max(initial=0) < 2**16:  # which are sorted by counting
            lengths = lengths.astype(np.uint16)
        order = np.argsort(lengths, kind="stable")
        values, first = np.unique(lengths[order], return_index=True)
        return dict(zip(values.tolist(), np.split(order, first[1:]), strict=True))

    @property
    def longest(self) -> int:
        return max(self.members, default=0)

    def letters(self, length: int, which: np.ndarray) -> np.ndarray:
        """The letters of some sequences of a length, uint8 (sequences, length)."""
        starts = self.sequences.starts[which]
        return self.sequences.codes[starts[:, None] + np.arange(length)]

    def table(self, length: int) -> np.ndarray:
        """All letters of the members of a length."""
        table = self.tables.get(length)
        if table is None:
            table = self.letters(length, self.members[length])
            self.tables[length] = table
        return table


def variant_count(lengths: np.ndarray, deleted: int) -> int:
    """Count the variants with up to ``deleted`` letters deleted."""
    values, counts = np.unique(lengths, return_counts=True)
    sizes = zip(values.tolist(), counts.tolist(), strict=True)
    return sum(count * _choices(length, deleted) for length, count in sizes)


def _choices(length: int, deleted: int) -> int:
    """Count the choices of up to ``deleted`` letters."""
    return sum(comb(length, d) for d in range(min(deleted, length) + 1))


def _by_variants(
    sequences: LetterCodes, cut: int, most_seconds: float, threads: int, budget: int
) -> EdgeSet | None:
    """Near pairs of a set, by i and j; None beyond ``most_seconds`` or the budget."""
    if cut > MAX_DELETED:
        return None
    lengths = sequences.lengths
    choices = sum(_choices(n, cut) for n in np.unique(lengths).tolist())
    remaining = most_seconds - CHOICE * choices - VARIANT * variant_count(lengths, cut)
    if remaining <= 0:
        return None
    join = VariantJoin(sequences, None, cut, remaining / SHARED_PAIR)
    edges = EdgeList(budget, "cut")
    try:
        add_by_variants(join, edges, threads, budget)
    except (ManyPairs, MemoryPlanError):  # pairs may come more than once
        return None
    return least(edges.parts, threads)


@dataclass(eq=False)
class VariantJoin:
    """Sequences that are compared: all pairs of them, or pairs across two sets.

    sequences : one set, or the first and the second one.
    first : how many are of the first of two sets.
    max_pairs : how many pairs that share a variant may be compared.
    """

    sequences: LetterCodes
    first: int | None
    cutoff: int
    max_pairs: float = inf
    pairs: int = field(default=0, init=False)
    lock: Any = field(default_factory=Lock, init=False)

    @cached_property
    def classes(self) -> LengthClasses:
        """The sequences by their lengths, with few letters: hashes may be equal."""
        return LengthClasses(self.sequences.folded(MAX_CODES))

    @cached_property
    def numbers(self) -> np.ndarray:
        """Random numbers of letters at positions, uint64 (positions, letters)."""
        draw = np.random.default_rng(SEED)
        shape = self.classes.longest, self.classes.sequences.size
        return draw.integers(0, 2**64, shape, np.uint64)

    def count(self, pairs: int) -> None:
        """Count pairs that share a variant."""
        with self.lock:
            self.pairs += pairs
            if self.pairs > self.max_pairs:
                raise ManyPairs


def add_by_variants(
    join: VariantJoin, edges: EdgeList, threads: int, budget: int
) -> None:
    """Add the pairs within the cutoff; those of a second set are numbered from 0. Pairs
    may come more than once."""
    members = join.classes.members
    if not members:
        return
    room = max(budget // (SHARE * threads * 8 * KEY_COPIES), LEAST_KEYS)
    letter_bytes = LETTER_BYTES * (join.cutoff + 2) * threads
    letters = at_once(HASHED_LETTERS, letter_bytes, budget)
    pairs_at_once = at_once(PAIRS_AT_ONCE, PAIR_BYTES * threads, budget)
    bits = max(len(join.sequences) - 1, 1).bit_length()
    shortest, _ = max(min(members) - join.cutoff, 0), join.numbers

    def add_of_length(length: int) -> None:
        """Add the near pairs whose variants of a length are equal."""
        count = sum(
            len(members.get(length + d, ())) * comb(length + d, d)
            for d in range(join.cutoff + 1)
        )
        passes = -(-count // room)
        for number in range(passes):
            keys = _keys(join, length, bits, (number, passes), letters)
            for i, j in pairs_of_equals(keys, bits, pairs_at_once):
                join.count(len(i))
                _compare(join, edges, i, j)

    in_threads(add_of_length, range(shortest, join.classes.longest + 1), threads)


def _keys(
    join: VariantJoin, length: int, bits: int, share: tuple[int, int], letters: int
) -> np.ndarray:
    """Sorted keys, uint64: hashes of all variants of a length, above the number of the
    sequence; of several passes those of one.

    letters : whose hashes are summed together
    """
    keys, mask = [np.zeros(0, np.uint64)], np.uint64(2**64 - 2**bits)
    for deleted in range(join.cutoff + 1):
        members = join.classes.members.get(length + deleted, np.zeros(0, np.int64))
        step = max(letters // max(length + deleted, 1), 1)
        for at in range(0, len(members), step):
            chunk = members[at : at + step]
            rows = join.classes.letters(length + deleted, chunk)
            for hashes in deletion_hashes(rows, deleted, join.numbers):
                key = (hashes & mask) | chunk.astype(np.uint64)
                if share[1] > 1:
                    key = key[
                        (hashes >> np.uint64(32)) % np.uint64(share[1]) == share[0]
                    ]
                keys.append(key)
    joined = np.concatenate(keys)
    joined.sort()
    return joined[begins(joined)]


def deletion_hashes(
    letters: np.ndarray, deleted: int, numbers: np.ndarray
) -> Iterator[np.ndarray]:
    """Hashes of sequences of one length, for each choice of letters to delete.

    letters : uint8 (n, length)
    deleted : how many letters, at most ``length``.
    numbers : uint64 (positions, letters). Random numbers.
    Yields uint64 (n,), length over deleted times.
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


def pairs_of_equals(
    keys: np.ndarray, bits: int, pairs_at_once: int = PAIRS_AT_ONCE
) -> Iterator[tuple[np.ndarray, ...]]:
    """Pairs of numbers whose keys agree above them.

    keys : uint64 (n,), sorted. A hash above a number of ``bits`` bits; none twice.
    Yields (uint64 (p,), uint64 (p,)). The smaller number first, about
        ``pairs_at_once`` at a time.
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
    for start, stop in spans(partners, pairs_at_once):
        lower = np.repeat(places[start:stop], partners[start:stop])
        yield numbers[lower], numbers[lower + 1 + ranks(partners[start:stop])]


def _compare(join: VariantJoin, edges: EdgeList, i: np.ndarray, j: np.ndarray) -> None:
    """Compare candidate pairs and add the near ones."""
    if join.first is not None:
        across = (i < join.first) & (j >= join.first)
        i, j = i[across], j[across]
    pairs = (i << np.uint64(32)) | j
    pairs.sort()
    pairs = pairs[begins(pairs)]
    i = (pairs >> np.uint64(32)).astype(np.int64)
    j = (pairs & np.uint64(2**32 - 1)).astype(np.int64)
    if len(i):
        distance = distances(join.sequences, i, j, 1, PATIENCE)
        close = distance <= join.cutoff
        edges.add(i[close], j[close] - (join.first or 0), distance[close])
