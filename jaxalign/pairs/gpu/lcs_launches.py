"""Longest common subsequences on a GPU: launches of ``kernels_pallas.subsequences``.

Queries beyond the registers of the kernel are counted on the CPU, by the same formula.
"""

import threading
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxalign.pairs.gpu import device_arrays
from jaxalign.pairs.gpu.transfer import FILTER_SLACK
from jaxalign.pairs.windows import bucket
from jaxalign.runtime.programs import program, stored

QUERIES, TARGETS = 128, 16384  # of a launch …
SHORT, TIMES = 64, 8  # … and so many times as many queries of so many letters at most
THREADS = 128  # targets of a program of the kernel
LEAST_ROWS = 2**15  # room for letters: one program for most launches
LEAST_CANDIDATES = 2**14  # room for pairs
RUN = 32  # places that are looked at together


class Candidates(NamedTuple):
    """Places (P,) in the rows and columns of a launch, and LCS of these pairs."""

    row: np.ndarray
    column: np.ndarray
    lcs: np.ndarray  # int16


@dataclass(frozen=True, eq=False)
class LcsLaunches:
    """The sequences of a task, and their letters on each device that has some."""

    task: Any
    kernels: Any
    interpret: Any = None  # parameters of the GPU interpreter, for tests
    letters: dict = field(default_factory=dict)
    lock: Any = field(default_factory=threading.Lock)

    queries: int = QUERIES  # of a launch
    targets: int = TARGETS

    @property
    def longest(self) -> int:
        """Letters of a query at most."""
        return self.kernels.MAX_QUERY

    def query_count(self, longest: int) -> int:
        """Queries of a launch whose longest has so many letters."""
        return self.queries * (TIMES if longest <= SHORT else 1)

    def codes(self, device):
        """Codes of both sides on a device."""
        with self.lock:
            if device not in self.letters:
                sides = self.task.queries, self.task.targets
                with jax.default_device(device):
                    self.letters[device] = [device_arrays.load(x).codes for x in sides]
            return self.letters[device]

    def candidates(
        self, rows, columns, met, bound, device, swapped=False
    ) -> Candidates:
        """Pairs that may pass, and few others: a device decides in float32, and leaves
        what misses the cut by a hair.

        rows, columns : indices of queries and targets, or ``swapped`` of targets and
            queries, of one launch at most; longest first
        met : (rows,), how many of the columns each row meets
        bound : ``model.identity_bounds.IdentityBound``
        """
        device = device or jax.devices()[0]
        codes, task = self.codes(device), self.task
        sides = [task.queries, task.targets]
        if swapped:
            sides, codes = sides[::-1], codes[::-1]
        m, n = sides[0].lengths[rows], sides[1].lengths[columns]
        with jax.default_device(device):
            lcs = _launch(self, sides, codes, rows, columns)
            met = np.pad(met, (0, len(lcs) - len(met))).astype(np.int32)
            halves = _halves(m, bound, lcs.shape[0]), _halves(n, bound, lcs.shape[1])
            static = {"filters": task.filters, "join": bound.sides(m[:1], n[:1])[2]}
            mask = _mask(lcs, *halves, met, np.float32(bound.cut), **static)
            size, total = LEAST_CANDIDATES, None
            while total is None or total > size:
                size = min(max(size, bucket(total or 0)), lcs.size)
                total, *found = _compact(mask, lcs, size=size)
                total = int(total)
        place, lcs_found = (np.asarray(x)[:total] for x in found)
        return Candidates(*np.divmod(place.astype(np.int64), lcs.shape[1]), lcs_found)

    def count(self, queries, targets, device=None) -> np.ndarray:
        """LCS of some queries with some targets, both by index, longest first, and of
        one launch at most: int16 (queries, targets)."""
        device = device or jax.devices()[0]
        with jax.default_device(device):
            sides = self.task.queries, self.task.targets
            lcs = _launch(self, sides, self.codes(device), queries, targets)
        return np.asarray(lcs)[: len(queries), : len(targets)]


# Static arguments of the kernels.
MATCH, LCS = ("words", "padding", "wildcard"), ("words", "interpret")
BLOCKS = ("padding", "room")


def _launch(launches: LcsLaunches, sides, codes, rows, columns):
    """The LCS of some rows with some columns, on the device: int16, of fixed shape.

    sides : (sequences of the rows, of the columns); codes : theirs on the device
    """
    kernels, alphabet = launches.kernels, launches.task.scoring.alphabet
    options = {"padding": alphabet.size}
    first, length = _places(sides[1], columns, -(-launches.targets // THREADS))
    steps = int((-(-length.reshape(-1, THREADS).max(1) // 4)).sum())
    room = bucket(steps, 2, LEAST_ROWS)
    blocks = stored(kernels.target_blocks, BLOCKS)(
        codes[1], first, length, room=room, **options
    )
    slots = launches.queries * (1 if len(rows) <= launches.queries else TIMES)
    first, length = _places(sides[0], rows, slots, 1)
    words = kernels.query_words(int(length.max(initial=1)))
    options |= {"words": words, "wildcard": alphabet.wildcard_code}
    table = stored(kernels.match_table, MATCH)(codes[0], first, length, **options)
    lcs = stored(kernels.subsequences, LCS)
    return _narrow(lcs(table, blocks, words=words, interpret=launches.interpret))


def _places(sequences, which, count: int, each: int = THREADS):
    """int32 (count * each,): where sequences begin, and their lengths."""
    sides = sequences.starts[which], sequences.lengths[which]
    room = count * each - len(which)
    return tuple(np.pad(x, (0, room)).astype(np.int32) for x in sides)


def _halves(lengths, bound, room: int) -> np.ndarray:
    """float32 (3, room): lengths, and the denominator's halves if these are the
    queries' and the targets' (``IdentityBound.sides``)."""
    rows = lengths, *bound.sides(lengths, lengths)[:2]
    some = np.zeros((len(rows), room), np.float32)
    some[:, : len(lengths)] = rows
    return some


@program()
def _narrow(lcs):
    return lcs.astype(jnp.int16)


@program(("filters", "join"))
def _mask(lcs, rows, columns, met, cut, *, filters, join):
    """Which pairs may pass; see ``LcsLaunches.candidates``.

    A pair of a set may be meant the other way round, so the lesser of both denominators
    counts.
    """
    m, n = rows[:, :, None], columns[:, None, :]
    joined = getattr(jnp, join)
    least = jnp.minimum(joined(m[1], n[2]), joined(n[1], m[2]))
    mask = filters.length_mask(m[0] + 0 * n[0], n[0] + 0 * m[0], jnp, FILTER_SLACK)
    quotient = lcs.astype(jnp.float32) / jnp.maximum(least, jnp.float32(0.5))
    mask &= (quotient >= cut - FILTER_SLACK) | (least <= 0)
    return mask & (jnp.arange(lcs.shape[1], dtype=jnp.int32)[None] < met[:, None])


@program(("size",))
def _compact(mask, lcs, *, size):
    """(number of pairs of a mask, flat places (size,) of the first, their LCS).

    Few are set, so those are found among runs of ``RUN`` places that have any.
    """
    runs = mask.reshape(-1, RUN)
    some = runs.any(axis=1)
    (which,) = jnp.nonzero(some, size=min(size, len(runs)), fill_value=0)
    inside = jnp.arange(len(which), dtype=jnp.int32) < some.sum(dtype=jnp.int32)
    few = runs[which] & inside[:, None]
    (at,) = jnp.nonzero(few.reshape(-1), size=size, fill_value=0)
    index = (which[at // RUN] * RUN + at % RUN).astype(jnp.int32)
    return mask.sum(dtype=jnp.int32), index, lcs.reshape(-1)[index]
