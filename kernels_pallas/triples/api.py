"""Entry points for batches of triples: scores, a layer, paths."""

from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from kernels_pallas.triples.fill import fill
from kernels_pallas.triples.shapes import (
    COLUMNS,
    MAX_CODES,
    MINUS_INFINITY,
    RULES,
    Arrays,
    Rule,
    Shape,
    arrays_of,
    fill_bytes,
    opened,
    shape_of,
    table_of,
)
from kernels_pallas.triples.walk import longest, walk

# ------------------------------------------------------------------------------
# Input and output of a launch as one array each, for one transfer each way: a dozen
# small ones take longer than the kernel on 700 residues.

WORD_BYTES = 4
HEAD_WORDS = 3 + 7 + 1  # of a triple: sizes, seeds, end
COST_WORDS = 2  # of all triples


class Triples(NamedTuple):
    """A batch of triples, as arrays.

    letters : three uint8 (triples, length), garbage past the lengths
    sizes : int32 (triples, 3), lengths; the third should be the longest, for speed
    scores : int32 (3, A, A) of the pairs ab, ac, bc, A < 32, shared by all triples
    costs : int32 (2,), open and extend
    seeds : int32 (triples, 7), from ``seed``
    end : int32 (triples,), number of the state in which paths end, or -1 for any
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

    ends: Any  # as all fields, an array of JAX, or of NumPy once unpacked
    layer: Any = None
    columns: Any = None
    count: Any = None


def pack_triples(triples: Triples, s: Shape) -> np.ndarray:
    """Pack triples on the host into uint8: costs and scores, then a row for each
    triple, with letters padded to ``rooms``."""
    ends = np.asarray(triples.end)[:, None]
    head = np.concatenate([triples.sizes, triples.seeds, ends], axis=1, dtype=np.int32)
    rows = np.concatenate([head.view(np.uint8), *triples.letters], axis=1)
    words = [np.ravel(x).astype(np.int32) for x in (triples.costs, triples.scores)]
    return np.concatenate([*(x.view(np.uint8) for x in words), rows.ravel()])


def rooms(s: Shape) -> tuple[int, int, int]:
    """Padded lengths of a, b and c in a row."""
    return *s.face, max(s.deep, 1)


def unpack_triples(data, s: Shape, letters: int) -> Triples:
    """Undo ``pack_triples`` on the device; ``letters`` is A."""
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
    """Pack ends and, with paths, count and columns into uint8 (triples, bytes)."""
    if results.columns is None or results.count is None:
        return _bytes(results.ends)
    count = results.count[:, None]
    return jnp.concatenate([_bytes(results.ends), _bytes(count), results.columns], 1)


def _bytes(words):
    return lax.bitcast_convert_type(words, jnp.uint8).reshape(len(words), -1)


def unpack_results(rows, s: Shape) -> TripleResults:
    """Undo ``pack_results`` on the host; there is no layer."""
    rows, states = np.asarray(rows), s.rule.states
    ends = np.ascontiguousarray(rows[:, : states * WORD_BYTES]).view(np.int32)
    if not s.bytes:
        return TripleResults(ends)
    count = np.ascontiguousarray(
        rows[:, states * WORD_BYTES : (states + 1) * WORD_BYTES]
    )
    return TripleResults(ends, None, rows[:, -longest(s) :], count.view(np.int32)[:, 0])


STATIC = "s", "letters", "interpret"
HOST = "pinned_host"  # host memory that a device can write


def seed(start: int | None, cost: int, backwards=False) -> list[int]:
    """Make ``Triples.seeds`` for paths that begin in a state (None: any); ``cost`` is
    open - extend."""
    if backwards:
        return [
            0 if start in (None, n) else MINUS_INFINITY for n in range(len(COLUMNS))
        ]
    return [-cost * opened(COLUMNS[start or 0], column) for column in COLUMNS]


def reach(largest: int, gap_open: int, gap_extend: int, letters: int) -> bool:
    """Whether the scores of a table stay within a quarter of the range.

    ``largest`` is the largest absolute substitution score, ``letters`` the sum of the
    lengths. A column moves a skewed score by at most three substitutions and
    two gaps.
    """
    step = 3 * (largest + 2 * gap_extend) + 2 * gap_open
    return step * (letters + 256) < -MINUS_INFINITY // 2


def spread(scores, gap_open: int, gap_extend: int) -> int:
    """Bound the difference of two moves into a cell; paths need less than 256.

    Without a residue an alignment loses at most two substitutions, and opens at most
    two gaps more in each of the residue's two pairs: there and in the column after. A
    move has up to three residues and opens two gaps.
    """
    best = max(int(scores.max(initial=0)) + 2 * gap_extend, 0)
    worst = min(int(scores.min(initial=0)) + 2 * gap_extend, 0)
    cost = gap_open - gap_extend
    return 6 * best - 3 * worst + 14 * cost


@partial(jax.jit, static_argnames=("s", "interpret"))
def solve(triples: Triples, s: Shape, interpret=None) -> TripleResults:
    """Fill all triples of a launch, and with ``s.bytes`` walk their paths."""
    arrays = _arrays(triples, s)
    skewed, score_bytes = fill(arrays, s, interpret)
    skew = 2 * triples.costs[1]
    number = jnp.arange(s.triples, dtype=jnp.int32)
    ends = skewed[number, :, triples.sizes[:, 0], triples.sizes[:, 1]]
    ends = ends - (skew * triples.sizes.sum(axis=1, dtype=jnp.int32))[:, None]
    if not s.bytes:
        rows, columns = (jnp.arange(n, dtype=jnp.int32) for n in s.face)
        place = rows[None, :, None] + columns[None, None, :]
        place = place + triples.sizes[:, 2, None, None]
        return TripleResults(ends, skewed - (skew * place)[:, None])
    state = jnp.where(triples.end < 0, jnp.argmax(ends, axis=1), triples.end)
    columns, count = walk(arrays, score_bytes, state.astype(jnp.int32), s, interpret)
    return TripleResults(ends, None, columns.astype(jnp.uint8), count)


def _solve_packed(data, s: Shape, letters: int, interpret=None):
    """``solve`` from ``pack_triples`` to ``unpack_results``; ``letters`` is A."""
    return pack_results(solve(unpack_triples(data, s, letters), s, interpret))


solve_packed = jax.jit(_solve_packed, static_argnames=STATIC)


@cache
def solve_packed_on(device):
    """``solve_packed`` for a device that writes the result to the host's memory.

    A copy afterwards takes 0.13 to 0.36 ms more on an H200.
    """
    kinds = {memory.kind for memory in device.addressable_memories()}
    if device.platform == "cpu" or HOST not in kinds:
        return solve_packed
    sharding = jax.sharding.SingleDeviceSharding(device, memory_kind=HOST)
    return jax.jit(_solve_packed, static_argnames=STATIC, out_shardings=sharding)


def _arrays(triples: Triples, s: Shape) -> Arrays:
    gap_open, extend = triples.costs
    tables = jax.vmap(lambda table: table_of(table, extend))(triples.scores)
    tables = jnp.broadcast_to(tables, (s.triples, *tables.shape))
    cost = jnp.broadcast_to(gap_open - extend, (s.triples, 1))
    seeds = jnp.concatenate([triples.seeds, cost], axis=1)
    return arrays_of(s, triples.letters, triples.sizes, tables, seeds)


def solve_bytes(s: Shape) -> int:
    """Device bytes of ``solve``: the fill, its layer three times, the paths."""
    rows, columns = s.face
    layer = 4 * s.triples * s.rule.states * rows * columns
    return fill_bytes(s) + 2 * layer + 5 * s.triples * longest(s)


__all__ = [
    "COLUMNS",
    "MAX_CODES",
    "RULES",
    "TripleResults",
    "Rule",
    "Shape",
    "Triples",
    "solve_packed",
    "solve_packed_on",
    "unpack_results",
    "pack_triples",
    "reach",
    "rooms",
    "seed",
    "shape_of",
    "solve",
    "solve_bytes",
    "spread",
]
