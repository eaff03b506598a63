"""Longest common subsequences on a GPU: launches of ``kernels_pallas.subsequences``.

Two sequences that are both too long for the registers of the kernel are left to the
alignment (``pairs.lcs_blocks``).
"""

import threading
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxalign.pairs.gpu import device_sequences, few_pairs
from jaxalign.pairs.gpu.transfer import FILTER_SLACK
from jaxalign.runtime.programs import program, stored

QUERIES, TARGETS = 128, 16384  # of a launch …
SHORT, TIMES = 64, 8  # … and so many times as many queries of so many letters at most


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
                    self.letters[device] = [
                        device_sequences.load(x).codes for x in sides
                    ]
            return self.letters[device]

    def candidates(
        self, rows, columns, met, bound, device, swapped=False
    ) -> few_pairs.FewPairs:
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
            return few_pairs.chosen(mask, lcs)

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
    first, length, room = few_pairs.columns_of(sides[1], columns, launches.targets)
    blocks = stored(kernels.target_blocks, BLOCKS)(
        codes[1], first, length, room=room, **options
    )
    slots = launches.queries * (1 if len(rows) <= launches.queries else TIMES)
    first, length = few_pairs.places(sides[0], rows, slots)
    words = kernels.query_words(int(length.max(initial=1)))
    options |= {"words": words, "wildcard": alphabet.wildcard_code}
    table = stored(kernels.match_table, MATCH)(codes[0], first, length, **options)
    lcs = stored(kernels.subsequences, LCS)
    return _narrow(lcs(table, blocks, words=words, interpret=launches.interpret))


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
