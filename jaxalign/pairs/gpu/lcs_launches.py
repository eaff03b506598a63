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


class Candidates(NamedTuple):
    """Places (P,) in the queries and targets of a launch, and LCS of these pairs."""

    query: np.ndarray
    target: np.ndarray
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

    def candidates(self, queries, targets, last, bound, device) -> Candidates:
        """Pairs that may pass, and few others: a device decides in float32, and leaves
        what misses the cut by a hair.

        queries, targets : indices, of one launch at most; longest first
        last : int32 (queries,), how many of the targets each query meets
        bound : ``model.identity_bounds.IdentityBound``
        """
        device = device or jax.devices()[0]
        codes, task = self.codes(device), self.task
        m, n = task.job.query_lengths[queries], task.job.target_lengths[targets]
        with jax.default_device(device):
            lcs = _launch(self, codes, queries, targets)
            last = np.pad(last, (0, len(lcs) - len(last))).astype(np.int32)
            halves = _halves(m, bound, lcs.shape[0]), _halves(n, bound, lcs.shape[1])
            static = {"filters": task.filters, "join": bound.sides(m[:1], n[:1])[2]}
            mask = _mask(lcs, *halves, last, np.float32(bound.cut), **static)
            size, total = LEAST_CANDIDATES, None
            while total is None or total > size:
                size = max(size, bucket(total or 0))
                total, *found = _compact(mask, lcs, size=min(size, lcs.size))
                total = int(total)
        place, lcs_found = (np.asarray(x)[:total] for x in found)
        return Candidates(*np.divmod(place.astype(np.int64), lcs.shape[1]), lcs_found)

    def count(self, queries, targets, device=None) -> np.ndarray:
        """LCS of some queries with some targets, both by index, longest first, and of
        one launch at most: int16 (queries, targets)."""
        device = device or jax.devices()[0]
        with jax.default_device(device):
            lcs = _launch(self, self.codes(device), queries, targets)
        return np.asarray(lcs)[: len(queries), : len(targets)]


# Static arguments of the kernels.
MATCH, LCS = ("words", "padding", "wildcard"), ("words", "interpret")
BLOCKS = ("padding", "room")


def _launch(launches: LcsLaunches, codes, queries, targets):
    """The LCS of some queries with some targets, on the device: int16, of fixed shape.

    codes : of both sides
    """
    task, kernels = launches.task, launches.kernels
    alphabet = task.scoring.alphabet
    options = {"padding": alphabet.size}
    first, length = _places(task.targets, targets, -(-launches.targets // THREADS))
    rows = int((-(-length.reshape(-1, THREADS).max(1) // 4)).sum())
    room = bucket(rows, 2, LEAST_ROWS)
    blocks = stored(kernels.target_blocks, BLOCKS)(
        codes[1], first, length, room=room, **options
    )
    few = len(queries) <= launches.queries
    slots = launches.queries * (1 if few else TIMES)
    first, length = _places(task.queries, queries, slots, 1)
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
def _mask(lcs, queries, targets, last, cut, *, filters, join):
    """Which pairs may pass; see ``LcsLaunches.candidates``.

    A pair of a set may be meant the other way round, so the lesser of both denominators
    counts.
    """
    m, n = queries[:, :, None], targets[:, None, :]
    joined = getattr(jnp, join)
    least = jnp.minimum(joined(m[1], n[2]), joined(n[1], m[2]))
    mask = filters.length_mask(m[0] + 0 * n[0], n[0] + 0 * m[0], jnp, FILTER_SLACK)
    quotient = lcs.astype(jnp.float32) / jnp.maximum(least, jnp.float32(0.5))
    mask &= (quotient >= cut - FILTER_SLACK) | (least <= 0)
    return mask & (jnp.arange(lcs.shape[1], dtype=jnp.int32)[None] < last[:, None])


@program(("size",))
def _compact(mask, lcs, *, size):
    """(number of pairs of a mask, flat places (size,) of the first, their LCS)."""
    (index,) = jnp.nonzero(mask.reshape(-1), size=size, fill_value=0)
    total = mask.sum(dtype=jnp.int32)
    return total, index.astype(jnp.int32), lcs.reshape(-1)[index]
