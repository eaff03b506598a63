"""Longest common subsequences on a GPU: launches of ``kernels_pallas.subsequences``.

Queries beyond the registers of the kernel are counted on the CPU, by the same formula.
"""

import threading
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxalign.pairs.gpu import device_arrays
from jaxalign.pairs.windows import bucket
from jaxalign.runtime.programs import program, stored

TARGETS = 16384  # of a launch
QUERY_SLOTS = 64  # of a launch
THREADS = 128  # targets of a program of the kernel
LEAST_ROWS = 1024  # room for letters


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
