"""Bit-parallel words on a GPU: launches of edit distances, and what those of common
subsequences share with them.

All letters lie on the device. The sizes of launches differ as little as can be, so that
they share programs, and few pairs of a launch are wanted. ``EditLaunches`` has queries
and targets within a cut; queries beyond the registers of the kernel are computed on the
CPU. ``EditPairLaunches`` has pairs with the same words, in the order of falling
lengths, so that the 128 pairs of a program are alike.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxalign.model.alphabet import LetterCodes
from jaxalign.runtime.backend import kernels_pallas
from jaxalign.runtime.devices import bucket, by_length, first_device
from jaxalign.runtime.programs import program, stored

if TYPE_CHECKING:
    from jaxalign.model.alphabet import CodedSequences


THREADS = 128  # columns of a program of a kernel
LETTERS_OF_WORD = 4
LEAST_ROWS = 2**15  # room for letters: one program for most launches
LEAST_PAIRS = 2**14  # room for pairs
MOST_ROOMS = 8  # of pairs, looked at one after the other by the same program
ROOM_RATIO = 8  # of the next larger room
RUN = 32  # places that are looked at together
WORD_BITS = 32
LEAST_BLOCKS, LEAST_PAIR_ROWS = 32, 2**12  # room of a launch of pairs
# A row of letters has four of each of 128 pairs. A launch has rows of both sides and of
# the edges of groups; a share of the memory so small leaves room for the one before.
ROW_BYTES, LAUNCHES_OF_MEMORY = 3 * 4 * THREADS, 8
UNKNOWN_BYTES = 2**32  # of a device that does not say
LAUNCHES_AT_ONCE = 2  # on the device, one that runs and one that waits
# Static arguments of the kernels
BLOCKS = ("padding", "room", "front")
TABLE = ("words", "padding", "stacks")
EDITS = ("words", "padding", "rows", "interpret")
PAIR_EDITS = ("words", "padding", "several", "interpret")


class FewPairs(NamedTuple):
    """Pairs of a launch: their rows and columns int64 (P,), and a value each."""

    row: np.ndarray
    column: np.ndarray
    value: np.ndarray


def places(
    sequences: "CodedSequences | LetterCodes", which: np.ndarray, room: int
) -> tuple[np.ndarray, np.ndarray]:
    """Start and length of sequences, int32 (room,) each; 0 beyond the last."""
    sides = sequences.starts[which], sequences.lengths[which]
    first, length = (np.pad(x, (0, room - len(x))).astype(np.int32) for x in sides)
    return first, length


def columns_of(
    sequences: "CodedSequences | LetterCodes",
    which: np.ndarray,
    count: int,
    least: int = LEAST_ROWS,
) -> tuple[np.ndarray, np.ndarray, int]:
    """``places`` of the columns of a launch of up to ``count``, longest first, and room
    for the rows of their letters (``kernels_pallas.target_blocks``), so many at
    least."""
    first, length = places(sequences, which, -(-count // THREADS) * THREADS)
    return first, length, bucket(int(_block_rows(length).sum()), 4, least)


def chosen(
    count_and_places: Callable, shape: tuple[int, int], least: int = LEAST_PAIRS
) -> FewPairs:
    """Fetch the selected pairs of a table of rows and columns on a device, by a
    function (``size``, ``start``) -> ``compact`` of them.

    Where there is no room for all, the same program takes the next ones, since another
    room would be another program. Only many times as many have such a room.
    """
    start, size, pieces = 0, least, []
    while True:
        count, *places = count_and_places(size=size, start=np.int32(start))
        count = int(count)
        if count > MOST_ROOMS * size:
            size = min(bucket(count, ROOM_RATIO, least), shape[0] * shape[1])
            continue
        place, values = (np.asarray(x)[:count] for x in places)
        pieces.append((place.astype(np.int64), values))
        if count <= size:
            break
        start = int(place[-1]) + 1
    place, values = (np.concatenate(x) for x in zip(*pieces, strict=True))
    return FewPairs(*np.divmod(place, shape[1]), values)


def rooms(shape: tuple[int, int], least: int = LEAST_PAIRS) -> list[int]:
    """Every size that ``chosen`` asks for."""
    sizes, total = [least], shape[0] * shape[1]
    while sizes[-1] < total:
        sizes.append(min(sizes[-1] * ROOM_RATIO, total))
    return sizes


def compact(mask: jax.Array, values: jax.Array, size: int, start: jax.Array):
    """(number of pairs of a mask from a flat place on, flat places (size,) of the first
    of them, their values), in a program."""
    rows, columns = (lax.broadcasted_iota(jnp.int32, mask.shape, k) for k in (0, 1))
    count, index = first_places(mask & (rows * mask.shape[1] + columns >= start), size)
    return count, index, values.reshape(-1)[index]


def first_places(mask: jax.Array, size: int):
    """(how many places of a mask are true, the first of them, flat: int32 (size,)), in
    a program.

    Few are, so they are found among runs of ``RUN`` places that have any.
    """
    runs = mask.reshape(-1)
    runs = jnp.pad(runs, (0, -runs.size % RUN)).reshape(-1, RUN)
    nonempty = runs.any(axis=1)
    which = _first(nonempty, min(size, len(runs)))
    inside = jnp.arange(len(which), dtype=jnp.int32) < nonempty.sum(dtype=jnp.int32)
    nonempty_runs = runs[which] & inside[:, None]
    at = _first(nonempty_runs.reshape(-1), size)
    index = (which[at // RUN] * RUN + at % RUN).astype(jnp.int32)
    return mask.sum(dtype=jnp.int32), index


def _first(mask: jax.Array, size: int):
    """int32 (size,): the first places where a mask is true, 0 beyond the last.

    ``jnp.nonzero`` adds every place to a histogram, which takes a GPU ten times as long
    as to look for each place that is wanted.
    """
    count = jnp.cumsum(mask, dtype=jnp.int32)
    numbers = jnp.arange(1, size + 1, dtype=jnp.int32)
    place = jnp.searchsorted(count, numbers).astype(jnp.int32)
    return jnp.where(numbers <= count[-1], place, 0)


def device_codes(sequences: LetterCodes) -> jax.Array:
    """Codes of up to 255 letters on JAX's default device, with some room behind them:
    sets of like sizes share programs."""
    codes = sequences.codes
    step = 2 ** max(len(codes).bit_length() - 4, 8)
    room = np.zeros((len(codes) // step + 1) * step, np.uint8)
    room[: len(codes)] = codes
    return jnp.asarray(room)


@dataclass(frozen=True, eq=False)
class EditLaunches:
    """Sequences of up to 255 letters, and their codes on JAX's default device."""

    sequences: LetterCodes
    interpret: Any = None  # parameters of the GPU interpreter, for tests
    queries: int = 1024  # of a launch at most …
    stacks: int = 128  # … in as many stacks of the kernel at most
    targets: int = 16384

    @property
    def longest(self) -> int:
        """Letters of a query at most."""
        return int(kernels_pallas.MAX_EDIT_QUERY)

    def query_count(self, longest: int) -> int:
        """Queries of a launch whose longest has so many letters."""
        return min(self.queries, self.stacks * kernels_pallas.edit_stack(longest)[1])

    @cached_property
    def codes(self) -> jax.Array:
        return device_codes(self.sequences)

    def blocks(self, targets: np.ndarray):
        """The letters of some targets, of one launch at most, longest first, and their
        lengths."""
        *where, room = columns_of(self.sequences, targets, self.targets)
        layout = stored(kernels_pallas.target_blocks, BLOCKS)
        size = self.sequences.size
        blocks = layout(self.codes, *where, padding=size, room=room, front=True)
        return blocks, where[1]

    def distances(
        self, queries: np.ndarray, blocks: tuple[jax.Array, np.ndarray], met: slice
    ):
        """Distances of one launch: int32 (``self.queries``, ``self.targets``), on the
        device; rows beyond the queries, and targets outside the slice ``met``, may hold
        anything. Queries are indices, longest first, ``query_count`` at most."""
        first, length = places(self.sequences, queries, self.queries)
        words, slots = kernels_pallas.edit_stack(int(length.max(initial=0)))
        static: Any = {"words": words, "padding": self.sequences.size}
        blocks_met = met.start // THREADS, -(-met.stop // THREADS)
        layout = np.array([slots, len(queries), *blocks_met], np.int32)
        table = stored(kernels_pallas.edit_table, TABLE)
        where = self.codes, first, length, layout[0]
        table = table(*where, stacks=self.stacks, **static)
        static |= {"rows": self.queries, "interpret": self.interpret}
        edits = stored(kernels_pallas.edit_distances, EDITS)
        return edits(table, layout, *blocks, **static)

    def near(
        self,
        queries: np.ndarray,
        blocks: tuple[jax.Array, np.ndarray],
        first: int,
        last: np.ndarray,
        cut: int,
    ) -> FewPairs:
        """Pairs of one launch within a cut, and their distances: the targets before the
        first are beyond it, and ``last`` says how many each query meets, no fewer than
        the query before."""
        met = slice(first, int(last[-1]))
        last = np.pad(last, (0, self.queries - len(last))).astype(np.int32)
        # A thread has no default device of its own.
        with jax.default_device(self.codes.device):
            edits = self.distances(queries, blocks, met)
            where = edits, np.int32(first), last, np.int32(cut)
            return chosen(partial(_within, *where), edits.shape)


def near_launches_of(sequences: LetterCodes) -> EditLaunches | None:
    """Launches on JAX's default device, if that is a GPU."""
    return EditLaunches(sequences) if kernels_pallas.supported()[0] else None


@program(("size",))
def _within(
    edits: jax.Array,
    first: jax.Array,
    last: jax.Array,
    cut: jax.Array,
    start: jax.Array,
    *,
    size: int,
):
    """Select the pairs within the cut (``compact``)."""
    column = jnp.arange(edits.shape[1], dtype=jnp.int32)[None]
    mask = (edits <= cut) & (first <= column) & (column < last[:, None])
    return compact(mask, edits, size, start)


class _Launch(NamedTuple):
    """Some pairs whose columns have so many words."""

    pairs: np.ndarray
    words: int
    several: bool  # whether they may have more columns
    blocks: int  # room for so many times 128 pairs
    rooms: tuple[int, ...]  # for rows of letters of the columns, and of the others


@dataclass(frozen=True, eq=False)
class EditPairLaunches:
    """Sequences of up to 255 letters, and their codes on JAX's default device."""

    sequences: LetterCodes
    interpret: Any = None  # parameters of the GPU interpreter, for tests
    pairs: int = 2**18  # of a launch
    rows: int = 2**21  # of letters of a side of a launch, at most

    @cached_property
    def codes(self) -> jax.Array:
        return device_codes(self.sequences)

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
        for pairs, edits in waiting:
            collect(pairs, edits)
        return results

    def _edits(self, launch: _Launch, i: np.ndarray, j: np.ndarray):
        """Distances on the device, int32 (pairs and more,)."""
        padding = kernels_pallas.pair_padding(self.sequences.size)
        layout, sides = stored(kernels_pallas.target_blocks, BLOCKS), []
        for which, room, front in zip((j, i), launch.rooms, (False, True), strict=True):
            where = places(self.sequences, which, launch.blocks * THREADS)
            static = {"padding": padding, "room": room, "front": front}
            sides += [layout(self.codes, *where, **static), where[1]]
        edits = stored(kernels_pallas.pair_edits, PAIR_EDITS)
        static = {"words": launch.words, "several": launch.several, "padding": padding}
        return edits(*sides, interpret=self.interpret, **static)

    def _launches(self, m: np.ndarray, n: np.ndarray) -> Iterator[_Launch]:
        """Launches of pairs of m letters and n columns."""
        # The words that columns take: of registers, or of groups, the fewest in all
        package: Any = kernels_pallas
        single, groups = package.PAIR_WORD_COUNTS, package.GROUP_WORD_COUNTS
        words = -(-n // WORD_BITS)
        several = words > single[-1]
        grouped = np.array([-(-words // count) * count for count in groups])
        columns = np.array(single)[np.searchsorted(single[:-1], words)]
        columns = np.where(several, grouped.min(0), columns)
        kinds = columns.copy()
        for count in groups:
            kinds[several & (columns % count == 0)] = count
        order = by_length(m)
        order = order[by_length(columns[order])]
        for words, grouped in sorted(
            {*zip(kinds.tolist(), several.tolist(), strict=True)}
        ):
            alike = order[((kinds == words) & (several == grouped))[order]]
            rows = [_block_rows(x[alike]) for x in (n, m)]
            cuts = [*_cuts(rows, self.pairs // THREADS, _rows_of_device(self.rows))]
            blocks = bucket(max(b - a for a, b in cuts), 4, LEAST_BLOCKS)
            row_counts = [max(int(x[a:b].sum()) for a, b in cuts) for x in rows]
            row_counts[0] += int(kernels_pallas.MAX_ROWS_READ)
            rooms = tuple(bucket(x, 2, LEAST_PAIR_ROWS) for x in row_counts)
            for a, b in cuts:
                pairs = alike[a * THREADS : b * THREADS]
                yield _Launch(pairs, words, grouped, blocks, rooms)


def pair_launches_of(sequences: LetterCodes) -> EditPairLaunches | None:
    """Launches on JAX's default device, if that is a GPU."""
    works, _ = kernels_pallas.supported(first_device())
    return EditPairLaunches(sequences) if works else None


def _block_rows(lengths: np.ndarray) -> np.ndarray:
    """Rows of letters of each 128 sequences."""
    room = -len(lengths) % THREADS
    longest = np.pad(lengths, (0, room)).reshape(-1, THREADS).max(1)
    return -(-longest // LETTERS_OF_WORD)


def _cuts(
    rows: list[np.ndarray], blocks: int, max_rows: int
) -> Iterator[tuple[int, int]]:
    """First and last block of each launch, as many as fit."""
    ends = [np.concatenate([[0], np.cumsum(x)]) for x in rows]
    at, count = 0, len(rows[0])
    while at < count:
        last = (np.searchsorted(x, x[at] + max_rows, "right") - 1 for x in ends)
        end = max(min(at + blocks, count, *map(int, last)), at + 1)
        yield at, end
        at = end


def _rows_of_device(max_rows: int) -> int:
    """Letter rows per side of a launch that fit the device, a power of two."""
    stats = first_device().memory_stats() or {}
    limit = stats.get("bytes_limit", UNKNOWN_BYTES)
    rows = limit // (LAUNCHES_OF_MEMORY * ROW_BYTES)
    return min(max_rows, 2 ** (rows.bit_length() - 1))
