"""Edit distances of pairs on a GPU, by launches of ``kernels_pallas.pair_edits``.

All letters lie on the device. Pairs of a launch have the same words and lie in the
order of falling lengths, so that the 128 pairs of a program are alike.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxalign.bits.few_pairs import LETTERS_OF_WORD, THREADS, places
from jaxalign.model.letters import LetterCodes
from jaxalign.runtime.backend import kernels_pallas
from jaxalign.runtime.devices import first_device
from jaxalign.runtime.lengths import bucket, by_length
from jaxalign.runtime.programs import stored

BLOCKS = ("padding", "room", "front")  # static arguments of the kernels
EDITS = ("words", "padding", "several", "interpret")
WORD_BITS = 32
LEAST_BLOCKS, LEAST_ROWS = 32, 2**12  # room of a launch: few sizes, few programs
# A row of letters has four of each of 128 pairs. A launch has rows of both sides and of
# the edges of groups; a share of the memory so small leaves room for the one before.
ROW_BYTES, LAUNCHES_OF_MEMORY = 3 * 4 * THREADS, 8
UNKNOWN_BYTES = 2**32  # of a device that does not say
LAUNCHES_AT_ONCE = 2  # on the device, one that runs and one that waits


class _Launch(NamedTuple):
    """Some pairs whose columns have so many words."""

    pairs: np.ndarray
    words: int
    several: bool  # whether they may have more columns
    blocks: int  # room for so many times 128 pairs
    rooms: tuple[int, int]  # for rows of letters of the columns, and of the others


@dataclass(frozen=True, eq=False)
class EditPairLaunches:
    """Sequences of up to 255 letters, and their codes on JAX's default device."""

    sequences: LetterCodes
    interpret: Any = None  # parameters of the GPU interpreter, for tests
    pairs: int = 2**18  # of a launch
    rows: int = 2**21  # of letters of a side of a launch, at most

    @cached_property
    def codes(self):
        """On the device, with some room behind them: sets of like sizes share
        programs."""
        codes = self.sequences.codes
        step = 2 ** max(len(codes).bit_length() - 4, 8)
        room = np.zeros(-(-max(len(codes), 1) // step) * step, np.uint8)
        room[: len(codes)] = codes
        return jnp.asarray(room)

    def distances(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Distances int32 (P,) of sequences ``i`` to sequences ``j``, not shorter."""
        results, waiting = np.zeros(len(i), np.int32), []

        def collect(pairs: np.ndarray, edits: jax.Array):
            results[pairs] = np.asarray(edits)[: len(pairs)]

        m, n = self.sequences.lengths[i], self.sequences.lengths[j]
        for launch in self._launches(m, n):
            if len(waiting) == LAUNCHES_AT_ONCE:
                collect(*waiting.pop(0))
            pairs = launch.pairs
            waiting.append((pairs, self._edits(launch, i[pairs], j[pairs])))
        for one in waiting:
            collect(*one)
        return results

    def _edits(self, launch: _Launch, i: np.ndarray, j: np.ndarray):
        """Distances on the device, int32 (pairs and more,)."""
        padding = kernels_pallas.pair_padding(self.sequences.size)
        layout, sides = stored(kernels_pallas.target_blocks, BLOCKS), []
        for which, room, front in zip((j, i), launch.rooms, (False, True), strict=True):
            where = places(self.sequences, which, launch.blocks * THREADS)
            static = {"padding": padding, "room": room, "front": front}
            sides += [layout(self.codes, *where, **static), where[1]]
        edits = stored(kernels_pallas.pair_edits, EDITS)
        static = {"words": launch.words, "several": launch.several, "padding": padding}
        return edits(*sides, interpret=self.interpret, **static)

    def _launches(self, m: np.ndarray, n: np.ndarray) -> Iterator[_Launch]:
        """Launches of pairs of m letters and n columns."""
        columns = words_of_columns(n)
        order = by_length(m)
        order = order[by_length(columns[order])]
        kinds = program_words(columns)
        several = columns > _word_counts()[0][-1]
        for words, more in sorted(
            {*zip(kinds.tolist(), several.tolist(), strict=True)}
        ):
            alike = order[((kinds == words) & (several == more))[order]]
            rows = [_block_rows(x[alike]) for x in (n, m)]
            cuts = [*_cuts(rows, self.pairs // THREADS, _rows_of_device(self.rows))]
            blocks = bucket(max(b - a for a, b in cuts), 4, LEAST_BLOCKS)
            most = [max(int(x[a:b].sum()) for a, b in cuts) for x in rows]
            most[0] += int(kernels_pallas.MAX_ROWS_READ)
            rooms = bucket(most[0], 2, LEAST_ROWS), bucket(most[1], 2, LEAST_ROWS)
            for a, b in cuts:
                pairs = alike[a * THREADS : b * THREADS]
                yield _Launch(pairs, words, more, blocks, rooms)


def launches_of(sequences: LetterCodes) -> EditPairLaunches | None:
    """Launches on JAX's default device, if that is a GPU."""
    works, _ = kernels_pallas.supported(first_device())
    return EditPairLaunches(sequences) if works else None


def words_of_columns(n: np.ndarray) -> np.ndarray:
    """Words of the registers and groups that columns (P,) take, int64."""
    words, (single, groups) = -(-n // WORD_BITS), _word_counts()
    few = np.array(single)[np.searchsorted(single[:-1], words)]
    many = np.min([-(-words // count) * count for count in groups], 0)
    return np.where(words > single[-1], many, few)


def program_words(words: np.ndarray) -> np.ndarray:
    """Words of a group of the columns that take so many."""
    (single, groups), group = _word_counts(), np.zeros_like(words)
    for count in groups:
        group = np.where(words % count == 0, count, group)
    return np.where(words > single[-1], group, words)


def _word_counts() -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Words of all columns, and of a group, that the kernel has programs of; rising."""
    package: Any = kernels_pallas
    return package.PAIR_WORD_COUNTS, package.GROUP_WORD_COUNTS


def _block_rows(lengths: np.ndarray) -> np.ndarray:
    """Rows of letters of each 128 sequences."""
    room = -len(lengths) % THREADS
    longest = np.pad(lengths, (0, room)).reshape(-1, THREADS).max(1)
    return -(-longest // LETTERS_OF_WORD)


def _cuts(rows: list[np.ndarray], blocks: int, most: int) -> Iterator[tuple[int, int]]:
    """First and last block of each launch, as many as fit."""
    ends = [np.concatenate([[0], np.cumsum(x)]) for x in rows]
    at, count = 0, len(rows[0])
    while at < count:
        last = (np.searchsorted(x, x[at] + most, "right") - 1 for x in ends)
        end = max(min(at + blocks, count, *map(int, last)), at + 1)
        yield at, end
        at = end


def _rows_of_device(most: int) -> int:
    """Rows of a side of a launch that the device has memory for, a power of two."""
    stats = first_device().memory_stats() or {}
    limit = stats.get("bytes_limit", UNKNOWN_BYTES)
    rows = limit // (LAUNCHES_OF_MEMORY * ROW_BYTES)
    return min(most, 2 ** (rows.bit_length() - 1))
