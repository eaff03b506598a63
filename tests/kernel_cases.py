"""Launches of the pair kernels in the interpreter, for several files of tests."""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kernels_pallas as kp
from kernels_pallas.core import access_check, mosaic
from kernels_pallas.pairs import match_words

LETTERS = 5
KINDS = list(product((True, False), repeat=3))  # local, packed, shared
values = pytest.mark.skipif(
    mosaic.interpreter() is None, reason="the GPU interpreter came with JAX 0.11"
)


def name(kind):
    words = ("border", "local"), ("int32", "int16"), ("list", "block")
    return "-".join(pair[which] for pair, which in zip(words, kind, strict=True))


def matrix(seed=0):
    rng = np.random.default_rng(seed)
    scores = rng.integers(-4, 3, (LETTERS, LETTERS))
    np.fill_diagonal(scores, rng.integers(3, 8, LETTERS))
    return scores.astype(np.int32)


def padded(rng, lengths, letters=LETTERS):
    """Random residues, garbage after each sequence's end included."""
    return rng.integers(0, letters, (len(lengths), max(*lengths, 1))).astype(np.uint8)


def flat(t, n, s):
    """Padded targets one after the other, the last first, as ``letters`` of them."""
    order = range(len(n) - 1, -1, -1)
    parts = [t[k, : n[k]] for k in order]
    ends = np.cumsum([len(part) for part in parts])[::-1]
    codes = np.concatenate([*parts, np.zeros(1, np.uint8)])
    first = jnp.asarray(ends - np.array(n), jnp.int32)
    room = int(kp.rows_of(n, s)[-1]) + 3
    n = jnp.asarray(n, jnp.int32)
    return kp.letters(jnp.asarray(codes), first, n, shape=s, room=room)


def aligned(s, q, m, t, n, scores, gaps, free, tie=None, wildcard=255, runs=0,
            ragged=False):  # fmt: skip
    problem = kp.problem_of(scores, *gaps, free, wildcard)
    more = {}
    if ragged:
        t = flat(t, n, s)
        more["records"] = int(kp.records_of(m, n, s)[-1])
    interpret = mosaic.interpreter() if s.plain else None
    m, n = jnp.asarray(m, jnp.int32), jnp.asarray(n, jnp.int32)
    more |= {"runs": runs, "shape": s, "interpret": interpret}
    found = kp.align(problem, q, m, t, n, tie, **more)
    return jax.tree.map(np.asarray, found)


def joined(sequences):
    """(codes, where each sequence begins, lengths) of some arrays of codes."""
    lengths = np.array([len(one) for one in sequences], np.int32)
    first = (np.cumsum(lengths) - lengths).astype(np.int32)
    codes = np.concatenate([*sequences, np.zeros(1, np.uint8)])
    return jnp.asarray(codes), jnp.asarray(first), jnp.asarray(lengths)


def target_blocks(targets, padding, **options):
    """``match_words.target_blocks`` of some arrays of codes, and room for more."""
    size, letters = mosaic.THREADS, match_words.LETTERS_OF_WORD
    targets = [*targets, *[np.zeros(0, np.uint8)] * (-len(targets) % size)]
    blocks = (targets[k : k + size] for k in range(0, len(targets), size))
    rows = sum(-(-max(map(len, block)) // letters) for block in blocks)
    options |= {"padding": padding, "room": rows + 3}
    return match_words.target_blocks(*joined(targets), **options)


def inside_arrays(result) -> np.ndarray:
    """A result of the interpreter, no access of which has left its array."""
    jax.effects_barrier()
    outside = list(access_check.OUTSIDE)
    access_check.OUTSIDE.clear()
    assert outside == []
    return np.asarray(result)
