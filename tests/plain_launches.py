"""Launches of subsequences whose kernel is plain ``jnp``, so that CPUs run them."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

import kernels_pallas
from jaxalign.pairs import compiled
from jaxalign.pairs.proofs import lcs_launches
from jaxalign.pairs.proofs.lcs_launches import NARROW, LcsLaunches
from kernels_pallas.core.mosaic import Threads
from kernels_pallas.words import lcs

FEW = NARROW._replace(queries=8, short_queries=64, targets=20)


def by_plain_rows(table, blocks, *, words, interpret=None):
    """``subsequences`` of the kernels, row by row in ``jnp``."""
    steps = np.asarray(blocks.steps)
    rows = np.asarray(blocks.letters).view(np.uint8).reshape(-1, lcs.THREADS, 4)
    next_row, found = jax.jit(partial(lcs.next_row, Threads(plain=True))), []
    for flat in np.asarray(table):
        match, columns = flat.reshape(-1), []
        for start, count in zip(np.asarray(blocks.starts), steps, strict=True):
            v = (jnp.full(lcs.THREADS, -1, jnp.int32),) * words
            for four in rows[start : start + count]:
                for k in range(lcs.LETTERS_OF_WORD):
                    at = four[:, k].astype(int) * lcs.row_words(words)
                    v = next_row(v, tuple(match[at + w] for w in range(words)))
            columns.append(
                sum(np.bitwise_count(~np.asarray(x).view(np.uint32)) for x in v)
            )
        found.append(np.concatenate(columns))
    return jnp.asarray(np.array(found, np.int32))


class PlainKernels:
    """The kernels, but what only a GPU runs; long queries are left to the CPU."""

    MAX_QUERY = 100

    @staticmethod
    def subsequence_counts(codes, first, lengths, blocks, *, words, interpret, **more):
        table = kernels_pallas.match_table(codes, first, lengths, words=words, **more)
        return by_plain_rows(table, blocks, words=words).astype(jnp.int16)

    def __getattr__(self, name):
        return getattr(kernels_pallas, name)


def use(monkeypatch) -> list[tuple]:
    """Have jobs look at their pairs by small launches; (device, swapped) of each."""
    seen: list[tuple] = []
    candidates = LcsLaunches.candidates

    def chosen(launches, rows, columns, met, bound, device, swapped):
        seen.append((device, swapped))
        return candidates(launches, rows, columns, met, bound, device, swapped)

    def launches_of(task):
        return LcsLaunches(task, PlainKernels(), sizes=FEW)

    monkeypatch.setattr(LcsLaunches, "candidates", chosen)
    monkeypatch.setattr(LcsLaunches, "prepare", lambda _: None)
    monkeypatch.setattr(lcs_launches, "stored", lambda function, _: function)
    monkeypatch.setattr(compiled, "lcs_launches", launches_of)
    return seen
