"""Longest common subsequences on a GPU: launches of ``kernels_pallas.subsequences``.

Two sequences that are both too long for the registers of the kernel are left to the
alignment (``pairs.proofs.blocks``).
"""

import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxalign.model.alphabet import CodedSequences
from jaxalign.model.identity import Filters, IdentityBound, identity_bound
from jaxalign.pairs.gpu import device_job
from jaxalign.pairs.gpu.device_arrays import FILTER_SLACK
from jaxalign.pairs.gpu.dispatch import job_words
from jaxalign.pairs.plan import Task
from jaxalign.runtime import programs
from jaxalign.runtime.devices import Device
from jaxalign.runtime.pipeline import default_threads, in_background
from jaxalign.runtime.programs import RuntimeFailure, program, stored
from jaxalign.words import gpu

WORD_BITS = 32  # of the kernels' words
SHORT = 64  # letters of queries of which a launch may have more
# Cells of a job from which on launches are wide, which take half a GB of a device each,
# or widest, 2 GB: each holds Python's lock as long, and four devices wait for it
WIDE_CELLS, WIDEST_CELLS = 10**14, 10**15


class LcsSizes(NamedTuple):
    """The most that a launch takes, and the room that it has at least."""

    queries: int
    short_queries: int  # of a job of up to ``SHORT`` letters
    targets: int
    letter_rows: int  # of ``kernels_pallas.target_blocks``
    pairs: int  # that may pass


NARROW = LcsSizes(128, 1024, 2**14, 2**15, 2**14)
WIDE = LcsSizes(512, 512, 2**16, 2**17, 2**17)
WIDEST = LcsSizes(2048, 2048, 2**16, 2**17, 2**18)


def sizes_of(task: Task) -> LcsSizes:
    """The sizes of the launches of a task, or of all parts of one."""
    cells = task.job.total
    return WIDEST if cells >= WIDEST_CELLS else WIDE if cells >= WIDE_CELLS else NARROW


@dataclass(frozen=True, eq=False)
class LcsLaunches:
    """The sequences of a task, and their letters on each device that has some."""

    task: Any
    kernels: Any
    interpret: Any = None  # parameters of the GPU interpreter, for tests
    letters: dict = field(default_factory=dict)
    locks: dict = field(default_factory=lambda: defaultdict(threading.Lock))
    sizes: LcsSizes = NARROW

    @property
    def longest(self) -> int:
        """Letters of a query at most."""
        return self.kernels.MAX_QUERY

    @property
    def targets(self) -> int:
        """Targets of a launch."""
        return self.sizes.targets

    @cached_property
    def query_count(self) -> int:
        """Queries of a launch: more where all of the job, or of the whole that it is a
        part of, are short."""
        short = max(self.task.job.most) <= SHORT
        return self.sizes.short_queries if short else self.sizes.queries

    def codes(self, device: Device | None) -> list[tuple]:
        """Load both sides on a device: (codes, place where the side begins) each."""
        with self.locks[device]:
            if device not in self.letters:
                task = self.task
                with jax.default_device(device):
                    sides = [
                        device_job.letters_of(x, task.whole_codes)
                        for x in (task.queries, task.targets)
                    ]
                self.letters[device] = [
                    (jax.device_put(codes, device), start) for codes, start in sides
                ]
            return self.letters[device]

    def prepare(self) -> None:
        """Start to compile the kernels of the task in parallel, on each device those of
        the longest queries first; a launch waits for its own alone."""
        if self.interpret is not None:
            return
        lengths = _taken(self).tolist()
        longest_of = {self.kernels.query_words(x): x for x in lengths[::-1]}
        devices = self.task.devices or jax.devices()[:1]
        lengths = sorted(longest_of.values(), reverse=True)
        kernels, alphabet = self.kernels, self.task.scoring.alphabet
        padding, room = alphabet.size, self.sizes.letter_rows
        size = -(-self.targets // gpu.THREADS) * gpu.THREADS
        columns = jax.ShapeDtypeStruct((size,), np.int32)
        rows = jax.ShapeDtypeStruct((self.query_count,), np.int32)
        layout = partial(kernels.target_blocks, padding=padding, room=room)
        counts = stored(kernels.subsequence_counts, COUNTS)

        def prepare_one(arguments: tuple[int, Device]) -> None:
            longest, device = arguments
            (codes, _), _ = self.codes(device)
            blocks = jax.eval_shape(layout, codes, columns, columns)
            options = {"words": kernels.query_words(longest), "padding": padding}
            options["wildcard"] = alphabet.wildcard_code
            # What fails here fails again where the launch is issued.
            with suppress(RuntimeFailure), jax.default_device(device):
                counts.prepare(codes, rows, rows, blocks, interpret=None, **options)

        # A second of XLA each, which takes no lock, after a tenth of Python.
        kinds = [(length, device) for device in devices for length in lengths]
        in_background(prepare_one, kinds, default_threads())

    def candidates(
        self, rows: np.ndarray, columns: np.ndarray, met: np.ndarray,
        bound: IdentityBound, device: Device | None, swapped: bool = False,
    ) -> gpu.FewPairs:  # fmt: skip
        """Find pairs that may pass, and few others: a device decides in float32, and
        keeps pairs that miss the cut by its slack.

        rows, columns : indices of queries and targets, or ``swapped`` of targets and
            queries, of one launch at most; longest first
        met : (rows,), how many of the columns each row meets
        bound : ``model.identity.IdentityBound``
        """
        device = device or jax.devices()[0]
        arguments = rows, columns, met, bound, device, swapped
        subject = f"common subsequences of {job_words(self.task)}"
        with programs.explained(subject, device):
            try:
                return self._candidates(*arguments)
            except RuntimeFailure as error:
                small = self.sizes.queries <= NARROW.queries
                if small or not programs.out_of_memory(error):
                    raise
            # Launches that take less memory
            narrow, pieces = replace(self, sizes=NARROW), []
            for i in range(0, len(rows), NARROW.queries):
                queries = rows[i : i + NARROW.queries]
                met_rows = met[i : i + NARROW.queries]
                for j in range(0, len(columns), NARROW.targets):
                    targets = columns[j : j + NARROW.targets]
                    first = np.clip(met_rows - j, 0, len(targets))
                    passing = narrow._candidates(
                        queries, targets, first, *arguments[3:]
                    )
                    pieces.append((passing.row + i, passing.column + j, passing.value))
            sides = zip(*pieces, strict=True)
            return gpu.FewPairs(*(np.concatenate(side) for side in sides))

    def _candidates(
        self, rows: np.ndarray, columns: np.ndarray, met: np.ndarray,
        bound: IdentityBound, device: Device | None, swapped: bool,
    ):  # fmt: skip
        """``candidates`` by one launch."""
        codes, task = self.codes(device), self.task
        sides = [task.queries, task.targets]
        if swapped:
            sides, codes = sides[::-1], codes[::-1]
        m, n = sides[0].lengths[rows], sides[1].lengths[columns]
        with jax.default_device(device):
            lcs = _launch(self, sides, codes, rows, columns)
            search = _near_of(task, lcs, m, n, met, bound)
            return gpu.chosen(search, lcs.shape, self.sizes.pairs)

    def counted(
        self, queries: np.ndarray, targets: np.ndarray, device: Device | None = None
    ) -> jax.Array:
        """LCS of some queries with some targets, both by index, longest first, and of
        one launch at most: int16, on the device, with the room of a launch."""
        device = device or jax.devices()[0]
        subject = f"common subsequences of {job_words(self.task)}"
        with programs.explained(subject, device), jax.default_device(device):
            sides = self.task.queries, self.task.targets
            return _launch(self, sides, self.codes(device), queries, targets)


# Static arguments of the kernels.
COUNTS = "words", "padding", "wildcard", "interpret"
BLOCKS = "padding", "room"


def _launch(
    launches: LcsLaunches, sides: Sequence[CodedSequences], codes: list[tuple],
    rows: np.ndarray, columns: np.ndarray,
):  # fmt: skip
    """The LCS of some rows with some columns, on the device: int16, of fixed shape.

    sides : (sequences of the rows, of the columns); codes : theirs on the device, as of
    ``LcsLaunches.codes``
    """
    kernels, alphabet = launches.kernels, launches.task.scoring.alphabet
    options, sizes = {"padding": alphabet.size}, launches.sizes
    (row_codes, of_rows), (column_codes, of_columns) = codes
    first, length, room = gpu.columns_of(
        sides[1], columns, sizes.targets, sizes.letter_rows
    )
    blocks = stored(kernels.target_blocks, BLOCKS)(
        column_codes, first + np.int32(of_columns), length, room=room, **options
    )
    slots = launches.query_count
    first, length = gpu.places(sides[0], rows, slots)
    words = kernels.query_words(int(length.max(initial=1)))
    options |= {"words": words, "wildcard": alphabet.wildcard_code}
    counts = stored(kernels.subsequence_counts, COUNTS)
    where = row_codes, first + np.int32(of_rows), length
    return counts(*where, blocks, interpret=launches.interpret, **options)


def _near_of(
    task: Task, lcs: jax.Array, m: np.ndarray, n: np.ndarray, met: np.ndarray,
    bound: IdentityBound,
):  # fmt: skip
    """``_near`` of a launch of lengths m and n, which takes ``size`` and ``start``."""
    met = np.pad(met, (0, len(lcs) - len(met))).astype(np.int32)
    sides = halves(m, bound, lcs.shape[0]), halves(n, bound, lcs.shape[1])
    least = np.float32(bound.cut), task.filters.thresholds
    static = {"filters": task.filters.of_lengths, "join": bound.sides(m[:1], n[:1])[2]}
    return partial(_near, lcs, *sides, met, *least, **static)


def outlined(launches: LcsLaunches) -> Iterator[jax.Array]:
    """The programs that count common subsequences of queries of all lengths, a launch
    each (``runtime.programs.outline``); yields what they count."""
    task, lengths = launches.task, launches.task.queries.lengths
    sides = task.queries, task.targets
    codes = [(device_job.outlined(x, wholes=task.whole_codes).codes, 0) for x in sides]
    words = {launches.kernels.query_words(int(x)) for x in _taken(launches)}
    for count in sorted(words, reverse=True):
        longest = int(lengths[lengths <= count * WORD_BITS].max())
        row = np.flatnonzero(lengths == longest)[:1]
        yield _launch(launches, sides, codes, row, np.arange(1))


def outlined_candidates(launches: LcsLaunches) -> None:
    """``outlined``, and the programs that find candidates among what is counted."""
    task, length = launches.task, np.ones(1, np.int64)
    bound = identity_bound(task.filters, task.mode, task.free)
    assert bound is not None
    for lcs in outlined(launches):
        search = _near_of(task, lcs, length, length, length, bound)
        rows, columns = lcs.shape
        for size in gpu.rooms((rows, columns), launches.sizes.pairs):
            search(size=size, start=np.int32(0))


def _taken(launches: LcsLaunches) -> np.ndarray:
    """The lengths of queries that the kernel takes, longest first."""
    lengths = np.unique(launches.task.queries.lengths)[::-1]
    return lengths[lengths <= launches.longest]


def halves(lengths: np.ndarray, bound: IdentityBound, room: int) -> np.ndarray:
    """float32 (3, room): lengths, and the denominator's halves if these are the
    queries' and the targets' (``IdentityBound.sides``)."""
    rows = lengths, *bound.sides(lengths, lengths)[:2]
    padded = np.zeros((len(rows), room), np.float32)
    padded[:, : len(lengths)] = rows
    return padded


@program(("filters", "join", "size"))
def _near(
    lcs: jax.Array, rows: jax.Array, columns: jax.Array, met: jax.Array, cut: jax.Array,
    thresholds: jax.Array, start: jax.Array, *, filters: Filters, join: str, size: int,
):  # fmt: skip
    """Which pairs may pass (``gpu.compact``); see ``LcsLaunches.candidates``.

    A pair of a set may be meant the other way round, so the lesser of both denominators
    counts.
    """
    filters = filters.with_thresholds(thresholds)
    m, n = rows[:, :, None], columns[:, None, :]
    joined = getattr(jnp, join)
    least = jnp.minimum(joined(m[1], n[2]), joined(n[1], m[2]))
    mask = filters.length_mask(m[0] + 0 * n[0], n[0] + 0 * m[0], jnp, FILTER_SLACK)
    quotient = lcs.astype(jnp.float32) / jnp.maximum(least, jnp.float32(0.5))
    mask &= (quotient >= cut - FILTER_SLACK) | (least <= 0)
    mask &= jnp.arange(lcs.shape[1], dtype=jnp.int32)[None] < met[:, None]
    return gpu.compact(mask, lcs, size, start)
