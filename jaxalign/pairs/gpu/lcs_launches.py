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

TARGETS = 16384  # of a launch
QUERY_SLOTS = 64  # of a launch
THREADS = 128  # targets of a program of the kernel
LEAST_ROWS = 1024  # room for letters


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

    targets: int = TARGETS  # of a launch

    @property
    def longest(self) -> int:
        """Letters of a query at most."""
        return self.kernels.MAX_QUERY

    def codes(self, device):
        """Codes of both sides on a device."""
        with self.lock:
            if device not in self.letters:
                sides = self.task.queries, self.task.targets
                with jax.default_device(device):
                    self.letters[device] = [device_arrays.load(x).codes for x in sides]
            return self.letters[device]

    def candidates(self, queries, targets, proofs, device) -> Candidates:
        """Pairs that may pass, and few others: a device decides in float32, and leaves
        what misses the cut by a hair.

        queries : indices, of one launch at most; targets : indices; longest first
        proofs : ``pairs.proofs.Proofs``
        """
        device = device or jax.devices()[0]
        codes, task = self.codes(device), self.task
        m, n = task.job.query_lengths[queries], task.job.target_lengths[targets]
        of_query, of_target, join = proofs.bound.sides(m, n)
        with jax.default_device(device):
            blocks = _blocks(self, codes[1], targets)
            lcs = _launch(self, codes[0], queries, blocks)
            sides = [(m, of_query), (n, of_target)]
            sides = [
                [np.pad(x, (0, room - len(x))).astype(np.float32) for x in side]
                for side, room in zip(sides, lcs.shape, strict=True)
            ]
            counts = np.int32(len(m)), np.int32(len(n))
            cut = np.float32(proofs.bound.cut)
            filters = task.filters
            mask, total = _mask(lcs, *sides, *counts, cut, filters=filters, join=join)
            total = int(total)
            size = min(bucket(total, 4, 1024), lcs.size)
            found = [np.asarray(x)[:total] for x in _compact(mask, lcs, size=size)]
        return Candidates(*np.divmod(found[0].astype(np.int64), lcs.shape[1]), found[1])

    def count(self, queries, targets, device) -> np.ndarray:
        """LCS of some queries with some targets, both by index and longest first.

        Returns
        -------
        int16 (queries, targets)
        """
        device = device or jax.devices()[0]
        codes = self.codes(device)
        with jax.default_device(device):
            blocks = _blocks(self, codes[1], targets)
            groups = range(0, len(queries), QUERY_SLOTS)
            some = (queries[at : at + QUERY_SLOTS] for at in groups)
            found = [(_launch(self, codes[0], few, blocks), len(few)) for few in some]
        none = np.zeros((0, len(targets)), np.int16)
        rows = [np.asarray(lcs)[:many, : len(targets)] for lcs, many in found]
        return np.concatenate([none, *rows])


# Static arguments of the kernels.
MATCH, LCS = ("words", "padding", "wildcard"), ("words", "interpret")
BLOCKS = ("padding", "room")


def _blocks(launches: LcsLaunches, codes, targets):
    """The letters of targets as the kernel reads them."""
    many = bucket(-(-len(targets) // THREADS), 4, 1) * THREADS
    first, length = _places(launches.task.targets, targets, many)
    rows = int((-(-length.reshape(-1, THREADS).max(1) // 4)).sum())
    options = {"padding": launches.task.scoring.alphabet.size}
    options |= {"room": bucket(rows, 4, LEAST_ROWS)}
    return stored(launches.kernels.target_blocks, BLOCKS)(
        codes, first, length, **options
    )


def _launch(launches: LcsLaunches, codes, queries, blocks):
    """The LCS of some queries with the targets of blocks, on the device."""
    task, kernels = launches.task, launches.kernels
    first, length = _places(task.queries, queries, bucket(len(queries), 4, 4))
    words = kernels.query_words(int(length.max(initial=1)))
    alphabet = task.scoring.alphabet
    options = {"padding": alphabet.size, "wildcard": alphabet.wildcard_code}
    match = stored(kernels.match_table, MATCH)
    table = match(codes, first, length, words=words, **options)
    lcs = stored(kernels.subsequences, LCS)
    return _narrow(lcs(table, blocks, words=words, interpret=launches.interpret))


def _places(sequences, which, size: int):
    """int32 (size,): where sequences begin, their lengths; 0 beyond the last."""
    sides = sequences.starts[which], sequences.lengths[which]
    return tuple(np.pad(x, (0, size - len(x))).astype(np.int32) for x in sides)


@program()
def _narrow(lcs):
    return lcs.astype(jnp.int16)


@program(("filters", "join"))
def _mask(lcs, queries, targets, rows, columns, cut, *, filters, join):
    """(which pairs may pass, their number); see ``LcsLaunches.candidates``.

    queries, targets : (lengths, half of the least denominator), float32
    """
    (m, of_query), (n, of_target) = queries, targets
    least = getattr(jnp, join)(of_query[:, None], of_target[None, :])
    mask = filters.length_mask(m[:, None] + 0 * least, n[None, :] + 0 * least, jnp,
                               FILTER_SLACK)  # fmt: skip
    quotient = lcs.astype(jnp.float32) / jnp.maximum(least, jnp.float32(0.5))
    mask &= (quotient >= cut - FILTER_SLACK) | (least <= 0)
    mask &= jnp.arange(len(m), dtype=jnp.int32)[:, None] < rows
    mask &= jnp.arange(len(n), dtype=jnp.int32)[None, :] < columns
    return mask, mask.sum(dtype=jnp.int32)


@program(("size",))
def _compact(mask, lcs, *, size):
    """Flat places (size,) of the pairs of a mask, and their counts."""
    (index,) = jnp.nonzero(mask.reshape(-1), size=size, fill_value=0)
    return index.astype(jnp.int32), lcs.reshape(-1)[index]
