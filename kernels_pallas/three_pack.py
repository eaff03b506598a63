"""What a launch over triples takes and gives, as one array each: one transfer there and
one back, where a dozen small ones took longer than the kernel on 700 residues."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from kernels_pallas.three_shape import Shape
from kernels_pallas.three_walk import longest

WORD = 4  # bytes
HEAD = 3 + 2 + 7 + 1  # words: sizes, costs, seeds, end


class Triples(NamedTuple):
    """Some triples, as data.

    letters : three uint8 (triples, length), garbage past the lengths
    sizes : int32 (triples, 3), lengths; the third is the longest, or not far from it
    scores : int32 (triples, 3, A, A) of the pairs ab, ac, bc, A < 32
    costs : int32 (2,), open and extend
    seeds : int32 (triples, 7), what ``seed`` gives
    end : int32 (triples,), the number of the state in which paths end, or -1 for any
    """

    letters: tuple
    sizes: jax.Array
    scores: jax.Array
    costs: jax.Array
    seeds: jax.Array
    end: jax.Array


class Found(NamedTuple):
    """``ends`` (triples, states): scores at the end cell; ``layer`` (triples, states,
    rows, columns): all scores at k = lc; ``columns`` uint8 (triples, longest) from the
    **end to the start** and ``count``, -1 for a path that was not found."""

    ends: jax.Array
    layer: jax.Array | None = None
    columns: jax.Array | None = None
    count: jax.Array | None = None


def packed(triples: Triples, s: Shape) -> np.ndarray:
    """Triples on the host -> uint8 (triples, bytes), a row each; letters as wide as
    ``rooms`` says."""
    count = s.triples
    costs = np.broadcast_to(triples.costs, (count, 2))
    head = [triples.sizes, costs, triples.seeds, np.asarray(triples.end)[:, None]]
    words = [*head, np.asarray(triples.scores).reshape(count, -1)]
    rows = [np.ascontiguousarray(x, np.int32).view(np.uint8) for x in words]
    return np.concatenate([*rows, *triples.letters], axis=1)


def rooms(s: Shape) -> tuple[int, int, int]:
    """Letters of a, b and c in a row."""
    return *s.face, max(s.deep, 1)


def unpacked(rows, s: Shape, letters: int) -> Triples:
    """The inverse of ``packed`` on the device; ``letters`` is A."""
    ends = np.cumsum([HEAD * WORD, 3 * letters**2 * WORD, *rooms(s)]).tolist()
    head, scores, *codes = jnp.split(rows, ends[:-1], axis=1)
    sizes, costs, seeds, end = jnp.split(_words(head), (3, 5, 12), axis=1)
    scores = _words(scores).reshape(-1, 3, letters, letters)
    return Triples(tuple(codes), sizes, scores, costs[0], seeds, end[:, 0])


def _words(rows):
    return lax.bitcast_convert_type(rows.reshape(len(rows), -1, WORD), jnp.int32)


def folded(found: Found):
    """uint8 (triples, bytes): ends and, where there are paths, count and columns."""
    if found.columns is None:
        return _bytes(found.ends)
    count = found.count[:, None]
    return jnp.concatenate([_bytes(found.ends), _bytes(count), found.columns], axis=1)


def _bytes(words):
    return lax.bitcast_convert_type(words, jnp.uint8).reshape(len(words), -1)


def answers(rows, s: Shape) -> Found:
    """The inverse of ``folded`` on the host, without a layer."""
    rows, states = np.asarray(rows), s.rule.states
    ends = np.ascontiguousarray(rows[:, : states * WORD]).view(np.int32)
    if not s.bytes:
        return Found(ends)
    count = np.ascontiguousarray(rows[:, states * WORD : (states + 1) * WORD])
    return Found(ends, None, rows[:, -longest(s) :], count.view(np.int32)[:, 0])
