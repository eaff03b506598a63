"""Edit distances of some pairs, or of all pairs of a set within a cut.

Pairs of a small job are computed one after the other by integers of Python, which
needs no compiler. Others lie side by side in the lanes of words.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property, partial
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from jaxalign.errors import MemoryPlanError
from jaxalign.model import operations
from jaxalign.model.letters import LetterCodes
from jaxalign.pairs.dp import edit_integers
from jaxalign.pairs.windows import by_length
from jaxalign.runtime import memory
from jaxalign.runtime.devices import refuse_without_threads

MAX_SECONDS = 2.0  # of a job by integers: about as long as to compile
ROW_SECONDS, LETTER_SECONDS = 5e-7, 2e-10  # of integers: a row, a letter of it
LANE_CELLS = 3e10  # a second, of words in lanes
GROUP = 4096  # queries whose letters lie side by side
MAX_CODES = 255  # letters of a table of match words, the padding letter beside them
CELLS_OF_BYTE = 4  # of the rows that a path is read from: two bits of a cell
STEP_CODES = np.zeros(256, np.uint8)  # letters of ``edit_integers.path`` -> operations
STEP_CODES[list(b"=XID")] = operations.EQUAL, operations.DIFFER, 1, 2
LINK_BYTES = 12  # two numbers of sequences, a distance
WORK_COPIES = 5  # of the links, while a matrix is made of them


class NearPairs(NamedTuple):
    """Pairs i < j and their distances, int32 (P,) each."""

    i: np.ndarray
    j: np.ndarray
    distance: np.ndarray


def _seconds(m, n) -> np.ndarray:
    """Of pairs of these lengths by integers."""
    rows = np.minimum(m, n)
    return rows * (ROW_SECONDS + LETTER_SECONDS * np.maximum(m, n))


def distances(sequences: LetterCodes, i, j, threads: int) -> np.ndarray:
    """Distances int32 (P,) of sequences ``i`` to sequences ``j``."""
    m, n = sequences.lengths[i], sequences.lengths[j]
    if _seconds(m, n).sum() <= MAX_SECONDS:
        return _by_integers(sequences, i, j)
    refuse_without_threads()
    found = np.zeros(len(i), np.int32)
    if (i == i[0]).all() and sequences.size <= MAX_CODES:
        _one_query(sequences, int(i[0]), j, found, threads)
        return found
    # Bits along the longer one: whole words are filled better.
    i, j = np.where(m <= n, i, j), np.where(m <= n, j, i)

    def run(some):
        found[some] = _run(sequences, i[some], j[some])

    _each(run, _zip_runs(sequences.lengths, i, j), threads)
    return found


def paths(sequences: LetterCodes, i, j, budget: int) -> tuple[np.ndarray, list]:
    """Distances int32 (P,), and the operations of an alignment of each pair.

    Raises
    ------
    MemoryPlanError
        The rows of a pair exceed a budget of bytes.
    """
    cells = (sequences.lengths[i] * sequences.lengths[j]).max(initial=0)
    memory.refuse_over(int(cells) // CELLS_OF_BYTE, budget, "rows of a path")
    found = np.zeros(len(i), np.int32)
    steps, texts = [], _texts(sequences, i, j)
    for k, (a, b) in enumerate(zip(i.tolist(), j.tolist(), strict=True)):
        found[k], columns = edit_integers.path(texts[a], texts[b])
        codes = STEP_CODES[np.frombuffer(columns, np.uint8)]
        steps.append(operations.run_lengths(codes, np.array([len(codes)]))[0])
    return found, steps


def _texts(sequences: LetterCodes, i, j) -> dict[int, list]:
    return {k: sequences[k].tolist() for k in {*i.tolist(), *j.tolist()}}


def _by_integers(sequences: LetterCodes, i, j) -> np.ndarray:
    texts = _texts(sequences, i, j)
    pairs = zip(i.tolist(), j.tolist(), strict=True)
    found = (edit_integers.distance(texts[a], texts[b]) for a, b in pairs)
    return np.fromiter(found, np.int32, len(i))


def _each(function, pieces, threads: int) -> list:
    """Results of a function, in threads; the rest is dropped when one fails."""
    pool = ThreadPoolExecutor(threads)
    try:
        return list(pool.map(function, pieces))
    finally:
        pool.shutdown(cancel_futures=True)


def _zip_runs(lengths, i, j) -> Iterator[np.ndarray]:
    """Places of pairs of like sizes."""
    from jaxalign.pairs.cpu import edit_windows

    m, n = lengths[i], lengths[j]
    step, times = edit_windows.STEP_COLUMNS, edit_windows.PAIR_BLOCKS
    order, at, longest = np.lexsort((-m, n // -step)), 0, int(m.max())
    falling = n[order]
    while at < len(order):
        count = edit_windows.block_size(falling, at, longest, times)
        yield order[at : at + count]
        at += count


def _run(sequences: LetterCodes, i, j) -> np.ndarray:
    """Distances of some pairs of like sizes, in the way that takes less time."""
    from jaxalign.pairs.cpu import edit_windows

    m, n = sequences.lengths[i], sequences.lengths[j]
    cells = float(m.max()) * float(n.max()) * edit_windows.zipped_lanes(len(i))
    if _seconds(m, n).sum() <= cells / LANE_CELLS:
        return _by_integers(sequences, i, j)
    return edit_windows.edits_zipped(sequences, i, j)


def _one_query(sequences: LetterCodes, query: int, j, found, threads: int) -> None:
    """Distances of one sequence to others."""
    from jaxalign.pairs.cpu import edit_windows
    from jaxalign.pairs.cpu.lcs_windows import query_letters

    letters = query_letters(sequences, np.array([query]), sequences.size)
    order = by_length(sequences.lengths[j])
    longest = int(sequences.lengths[query])

    def block(some):
        words = edit_windows.target_words(sequences, j[some], longest)
        (edits,) = edit_windows.edits_block(letters, slice(0, 1), words)
        found[some] = edits[0, : len(some)]

    _each(block, _blocks(sequences.lengths[j], order, longest), threads)


def _blocks(lengths, order, other: int) -> Iterator[np.ndarray]:
    """Runs of an order of falling lengths, as many as are lanes."""
    from jaxalign.pairs.cpu import edit_windows

    falling, at = lengths[order], 0
    while at < len(order):
        count = edit_windows.block_size(falling, at, other)
        yield order[at : at + count]
        at += count


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
    if (_seconds(falling, falling) * pairs).sum() <= MAX_SECONDS:
        return _near(sequences, *_listed(order, pairs), cut, threads)
    refuse_without_threads()
    folded = sequences.folded(MAX_CODES)
    links = _Links(budget)
    blocks = _blocks(sequences.lengths, order, int(falling[0]))
    look = partial(_look_at_block, _Falling(folded, order, last), cut, links)
    _each(look, _places(blocks), threads)
    i, j, distance = links.joined()
    if folded is not sequences:  # distances of folded letters are at most the real ones
        return _near(sequences, i, j, cut, threads)
    return _sorted(i, j, distance)


def _places(blocks) -> Iterator[tuple[int, np.ndarray]]:
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
        from jaxalign.pairs.cpu.lcs_windows import query_letters

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

    def add(self, i, j, distance) -> None:
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


def _look_at_block(queries: _Falling, cut: int, links: _Links, block) -> None:
    """Add the near pairs of a block of targets with the places after theirs."""
    from jaxalign.pairs.cpu import edit_windows

    place, targets = block
    end = int(queries.last[place + len(targets) - 1])
    longest = int(queries.sequences.lengths[targets[0]])
    words = edit_windows.target_words(queries.sequences, targets, longest)
    at = place
    while at < end:
        group = at // GROUP
        first, at = at, min(end, (group + 1) * GROUP)
        some = slice(first - group * GROUP, at - group * GROUP)
        for edits in edit_windows.edits_block(queries.letters[group], some, words):
            q, t = np.nonzero(edits[:, : len(targets)] <= cut)
            after = q + first > t + place
            q, t = q[after], t[after]
            i, j = queries.order[q + first], targets[t]
            links.add(i.astype(np.int32), j.astype(np.int32), edits[q, t])
            first += len(edits)


def _listed(order, pairs) -> tuple[np.ndarray, np.ndarray]:
    """Every pair of places (k, k + 1 … k + pairs[k]) as sequences."""
    first = np.repeat(np.arange(len(order)), pairs)
    ends = np.cumsum(pairs)
    step = np.arange(len(first)) - np.repeat(ends - pairs, pairs)
    return order[first], order[first + 1 + step]


def _near(sequences, i, j, cut: int, threads: int) -> NearPairs:
    """Those of some pairs that are within the cut."""
    found = distances(sequences, i, j, threads)
    near = found <= cut
    return _sorted(i[near], j[near], found[near])


def _sorted(i, j, distance) -> NearPairs:
    i, j = np.minimum(i, j), np.maximum(i, j)
    order = np.lexsort((j, i))
    return NearPairs(*(x[order].astype(np.int32) for x in (i, j, distance)))
