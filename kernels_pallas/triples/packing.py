"""Input and output of a launch over triples as one array each: one transfer there and
one back, where a dozen small ones take longer than the kernel on 700 residues."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from kernels_pallas.triples.shapes import Shape
from kernels_pallas.triples.walk import longest

WORD_BYTES = 4
HEAD_WORDS = 3 + 7 + 1  # of a triple: sizes, seeds, end
COST_WORDS = 2  # of all triples


class Triples(NamedTuple):
    """Some triples, as arrays.

    letters : three uint8 (triples, length), garbage past the lengths
    sizes : int32 (triples, 3), lengths; the third is the longest, or not far from it
    scores : int32 (3, A, A) of the pairs ab, ac, bc, A < 32, the same for all
    costs : int32 (2,), open and extend
    seeds : int32 (triples, 7), from ``seed``
    end : int32 (triples,), the number of the state in which paths end, or -1 for any
    """

    letters: tuple
    sizes: jax.Array
    scores: jax.Array
    costs: jax.Array
    seeds: jax.Array
    end: jax.Array


class TripleResults(NamedTuple):
    """``ends`` (triples, states): scores at the end cell; ``layer`` (triples, states,
    rows, columns): all scores at k = lc; ``columns`` uint8 (triples, longest) from the
    **end to the start** and ``count``, -1 for a path that does not attain its score."""

    ends: Any  # as the others: of JAX, or of NumPy once they are unpacked
    layer: Any = None
    columns: Any = None
    count: Any = None


def pack_triples(triples: Triples, s: Shape) -> np.ndarray:
    """Triples on the host -> uint8: costs and scores, then a row for each triple, with
    letters as wide as ``rooms`` says."""
    ends = np.asarray(triples.end)[:, None]
    head = np.concatenate([triples.sizes, triples.seeds, ends], axis=1, dtype=np.int32)
    rows = np.concatenate([head.view(np.uint8), *triples.letters], axis=1)
    words = [np.ravel(x).astype(np.int32) for x in (triples.costs, triples.scores)]
    return np.concatenate([*(x.view(np.uint8) for x in words), rows.ravel()])


def rooms(s: Shape) -> tuple[int, int, int]:
    """Letters of a, b and c in a row."""
    return *s.face, max(s.deep, 1)


def unpack_triples(data, s: Shape, letters: int) -> Triples:
    """The inverse of ``pack_triples`` on the device; ``letters`` is A."""
    shared = WORD_BYTES * (COST_WORDS + 3 * letters**2)
    costs, scores = jnp.split(_words(data[:shared]), [COST_WORDS])
    ends = np.cumsum([HEAD_WORDS * WORD_BYTES, *rooms(s)]).tolist()
    rows = data[shared:].reshape(s.triples, -1)
    head, *codes = jnp.split(rows, ends[:-1], axis=1)
    sizes, seeds, end = jnp.split(_words(head), (3, 10), axis=1)
    scores = scores.reshape(3, letters, letters)
    return Triples(tuple(codes), sizes, scores, costs, seeds, end[:, 0])


def _words(data):
    pieces = data.reshape(*data.shape[:-1], -1, WORD_BYTES)
    return lax.bitcast_convert_type(pieces, jnp.int32)


def pack_results(results: TripleResults):
    """uint8 (triples, bytes): ends and, where there are paths, count and columns."""
    if results.columns is None or results.count is None:
        return _bytes(results.ends)
    count = results.count[:, None]
    return jnp.concatenate([_bytes(results.ends), _bytes(count), results.columns], 1)


def _bytes(words):
    return lax.bitcast_convert_type(words, jnp.uint8).reshape(len(words), -1)


def unpack_results(rows, s: Shape) -> TripleResults:
    """The inverse of ``pack_results`` on the host, without a layer."""
    rows, states = np.asarray(rows), s.rule.states
    ends = np.ascontiguousarray(rows[:, : states * WORD_BYTES]).view(np.int32)
    if not s.bytes:
        return TripleResults(ends)
    count = np.ascontiguousarray(
        rows[:, states * WORD_BYTES : (states + 1) * WORD_BYTES]
    )
    return TripleResults(ends, None, rows[:, -longest(s) :], count.view(np.int32)[:, 0])
