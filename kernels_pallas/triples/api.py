"""Entry points for batches of triples: scores, a layer, paths."""

from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from kernels_pallas.triples.fill import fill
from kernels_pallas.triples.shapes import (
    CELL_BITS,
    COLUMNS,
    MAX_CODES,
    MINUS_INFINITY,
    QUASI,
    RULES,
    Arrays,
    Rule,
    Shape,
    arrays_of,
    fill_bytes,
    moves,
    shape_of,
    table_of,
)
from kernels_pallas.triples.walk import longest, walk

# ------------------------------------------------------------------------------
# Input and output of a launch as one array each, for one transfer each way: a dozen
# small ones take longer than the kernel on 700 residues.

WORD_BYTES = 4
COST_WORDS = 2  # of all triples


class Triples(NamedTuple):
    """A batch of triples, as arrays.

    letters : three uint8 (triples, length), garbage past the lengths
    sizes : int32 (triples, 3), lengths; the third should be the longest, for speed
    scores : int32 (3, A, A) of the pairs ab, ac, bc, A < 32, shared by all triples
    costs : int32 (2,), open and extend
    seeds : int32 (triples, 7 or 15), from ``seed``
    end : int32 (triples,), number of the state in which paths end, or -1 for any
    free : int32 (triples, 6), two indices of a, two of b, two of c at which a gap is
        free, negative for none; read with ``Shape.free``
    """

    letters: tuple
    sizes: jax.Array
    scores: jax.Array
    costs: jax.Array
    seeds: jax.Array
    end: jax.Array
    free: jax.Array


class TripleResults(NamedTuple):
    """``ends`` (triples, states or 1): scores at the end; ``layer`` (triples, states,
    rows, columns): all scores at k = lc; ``columns`` uint8 (triples, longest) from the
    **end to the start** and ``count``, -1 for a path that does not attain its score;
    ``best`` int32 (triples, 4): the best score of a cell, 0 at least, and the cell. Of
    several the one with the least i, then j, then k."""

    ends: Any  # as all fields, an array of JAX, or of NumPy once unpacked
    layer: Any = None
    columns: Any = None
    count: Any = None
    best: Any = None


def pack_triples(triples: Triples, s: Shape) -> np.ndarray:
    """Pack triples on the host into uint8: costs and scores, then a row for each
    triple, with letters padded to ``rooms``."""
    ends = np.asarray(triples.end)[:, None]
    heads = triples.sizes, triples.seeds, ends, triples.free
    head = np.concatenate(heads, axis=1, dtype=np.int32)
    rows = np.concatenate([head.view(np.uint8), *triples.letters], axis=1)
    words = [np.ravel(x).astype(np.int32) for x in (triples.costs, triples.scores)]
    return np.concatenate([*(x.view(np.uint8) for x in words), rows.ravel()])


def rooms(s: Shape) -> tuple[int, int, int]:
    """Padded lengths of a, b and c in a row."""
    return *s.face, max(s.deep, 1)


def unpack_triples(data, s: Shape, letters: int) -> Triples:
    """Undo ``pack_triples`` on the device; ``letters`` is A."""
    shared = WORD_BYTES * (COST_WORDS + 3 * letters**2)
    heads = np.cumsum([3, s.rule.seed_words - 1, 1, 6]).tolist()
    costs, scores = jnp.split(_words(data[:shared]), [COST_WORDS])
    ends = np.cumsum([heads[-1] * WORD_BYTES, *rooms(s)]).tolist()
    rows = data[shared:].reshape(s.triples, -1)
    head, *codes = jnp.split(rows, ends[:-1], axis=1)
    sizes, seeds, end, free = jnp.split(_words(head), heads[:-1], axis=1)
    scores = scores.reshape(3, letters, letters)
    return Triples(tuple(codes), sizes, scores, costs, seeds, end[:, 0], free)


def _words(data):
    pieces = data.reshape(*data.shape[:-1], -1, WORD_BYTES)
    return lax.bitcast_convert_type(pieces, jnp.int32)


def pack_results(results: TripleResults):
    """Pack ends and, with paths, count and columns into uint8 (triples, bytes); in a
    search for the best cell that."""
    if results.best is not None:
        return _bytes(results.best)
    if results.columns is None or results.count is None:
        return _bytes(results.ends)
    count = results.count[:, None]
    return jnp.concatenate([_bytes(results.ends), _bytes(count), results.columns], 1)


def _bytes(words):
    return lax.bitcast_convert_type(words, jnp.uint8).reshape(len(words), -1)


def unpack_results(rows, s: Shape) -> TripleResults:
    """Undo ``pack_results`` on the host; there is no layer."""
    rows, states = np.asarray(rows), s.rule.states
    if s.best:
        return TripleResults(None, best=rows.view(np.int32))
    if not s.bytes:
        return TripleResults(np.ascontiguousarray(rows).view(np.int32))
    ends = np.ascontiguousarray(rows[:, : states * WORD_BYTES]).view(np.int32)
    count = np.ascontiguousarray(
        rows[:, states * WORD_BYTES : (states + 1) * WORD_BYTES]
    )
    return TripleResults(ends, None, rows[:, -longest(s) :], count.view(np.int32)[:, 0])


MAX_MOVE_DIFFERENCE = 1024  # between two moves into a cell, for a walk to be tried
STATIC = "s", "letters", "host", "interpret"  # arguments of ``solve_packed``


def seed(
    start: int | None,
    cost: int,
    backwards: bool = False,
    free: tuple = (False,) * 3,
    rule: Rule = QUASI,
) -> list[int]:
    """Make ``Triples.seeds`` for paths that begin in a state (None: any); ``cost`` is
    open - extend, and ``free`` says of which sequences a first gap is free."""
    if backwards:
        values = {n: 0 for n in range(rule.states) if start in (None, n)}
    else:
        values = {
            q: -cost * sum(not free[x] for x in into[start or 0])
            for q, into in enumerate(moves(rule))
            if (start or 0) in into
        }
    return [values.get(n, MINUS_INFINITY) for n in range(rule.seed_words - 1)]


def reach(largest: int, gap_open: int, gap_extend: int, letters: int) -> bool:
    """Whether the scores of a table stay within a quarter of the range.

    ``largest`` is the largest absolute substitution score, ``letters`` the sum of the
    lengths. A column moves a skewed score by at most three substitutions and
    two gaps.
    """
    step = 3 * (largest + 2 * gap_extend) + 2 * gap_open
    return step * (letters + 256) < -MINUS_INFINITY // 2


def marks_fit(largest: int, letters: int) -> bool:
    """Whether the best score of any cell fits a mark with the number of its cell."""
    return 2 * largest * letters < 2 ** (31 - CELL_BITS)


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


def walks(scores, gap_open: int, gap_extend: int, rule: Rule, free: bool) -> bool:
    """Whether a walk is likely to find its path: that of these costs in a fill whose
    gaps may be ``free``.

    Where they may, or gaps are natural, the states of a cell are stored 2 D + 1
    (natural: 3 D + 1) apart at most, and two moves into a cell then 4 D + 1 (5 D + 1);
    a single state's scores of letters have to fit a byte.
    """
    if not free and spread(scores, gap_open, gap_extend) >= MAX_MOVE_DIFFERENCE:
        return False
    if free and rule.states == 1:
        return (
            np.abs(np.asarray(scores, np.int64) + 2 * gap_extend).max(initial=0) < 128
        )
    clamped = free or rule.states > 7
    return not clamped or (rule.apart + 2) * (gap_open - gap_extend) + 1 < 256


@partial(jax.jit, static_argnames=("s", "interpret"))
def solve(triples: Triples, s: Shape, interpret=None) -> TripleResults:
    """Fill all triples of a launch, and with ``s.bytes`` walk their paths.

    Without ``s.layer`` and ``s.bytes`` ``ends`` are the best of all states.
    """
    arrays = _arrays(triples, s)
    skewed, score_bytes, best = fill(arrays, s, interpret)
    if s.best:
        return TripleResults(None, best=_best_cells(best, s))
    skew = 2 * triples.costs[1]
    number = jnp.arange(s.triples, dtype=jnp.int32)
    ends = skewed[number, :, triples.sizes[:, 0], triples.sizes[:, 1]]
    if s.bytes and s.rule.states > 1:
        ends = _by_bytes(ends, score_bytes, triples.sizes, s)
    ends = ends - (skew * triples.sizes.sum(axis=1, dtype=jnp.int32))[:, None]
    if not (s.layer or s.bytes):
        return TripleResults(ends)
    if not s.bytes:
        rows, columns = (jnp.arange(n, dtype=jnp.int32) for n in s.face)
        place = rows[None, :, None] + columns[None, None, :]
        place = place + triples.sizes[:, 2, None, None]
        return TripleResults(ends, skewed - (skew * place)[:, None])
    state = jnp.where(triples.end < 0, jnp.argmax(ends, axis=1), triples.end)
    columns, count = walk(arrays, score_bytes, state.astype(jnp.int32), s, interpret)
    return TripleResults(ends, None, columns.astype(jnp.uint8), count)


def _by_bytes(top, score_bytes, sizes, s: Shape):
    """H of the states at the end of each triple (triples, states), from the best of
    them and their lowest bytes; below all others where a state has no such column."""
    i, j, k = (sizes[:, n, None] for n in range(3))
    state = jnp.arange(s.rule.states, dtype=jnp.int32)[None]
    # The word of a cell, as the walk finds it
    at = jnp.arange(s.triples, dtype=jnp.int32)[:, None] * s.blocks[1] + j // s.sides[1]
    at = at * s.strips + i // s.rows
    lane = j % s.sides[1] // s.columns
    at = (at * s.steps + k + lane + s.front).astype(jnp.uint32)
    number = i % s.rows * s.stored + state
    of_step = number // 4 * (4 * s.lanes) + lane * 4 + number % 4
    word = score_bytes.reshape(-1, s.step_words)[at, of_step]
    low = word >> (j % 4 * 8)
    residues = np.array(
        [[column >> (2 - n) & 1 for n in range(3)] for column in s.rule.columns]
    )
    reached = (sizes[:, None] >= residues[None]).all(axis=2)
    return jnp.where(reached, top - ((top - low) & 255), MINUS_INFINITY)


def _best_cells(best, s: Shape):
    """``TripleResults.best`` from the best of every thread."""
    marks, k = jnp.moveaxis(
        best.reshape(s.triples, *s.blocks, s.of_program, s.lanes, 2), -1, 0
    )
    cell = 2**CELL_BITS - 1 - (marks & (2**CELL_BITS - 1))
    axes = (lax.broadcasted_iota(jnp.int32, marks.shape, n) for n in (1, 2, 3, 4))
    block_i, block_j, strip, lane = axes
    i = (block_i * s.of_program + strip) * s.rows + cell // s.columns
    j = (block_j * s.lanes + lane) * s.columns + cell % s.columns
    place = i, j, k
    scores, far = marks >> CELL_BITS, jnp.int32(2**31 - 1)

    def over(reduce, values):
        return reduce(values, axis=(1, 2, 3, 4), keepdims=True)

    out = [over(jnp.max, scores)]
    first = scores == out[0]
    for axis in place:
        out.append(over(jnp.min, jnp.where(first, axis, far)))
        first = first & (axis == out[-1])
    return jnp.concatenate([x.reshape(-1, 1) for x in out], axis=1)


@partial(jax.jit, static_argnames=STATIC)
def solve_packed(data, s: Shape, letters: int, host: bool = False, interpret=None):
    """``solve`` from ``pack_triples`` to ``unpack_results``; ``letters`` is A.

    With ``host`` the device writes the result to the host's memory. A copy afterwards
    takes 0.13 to 0.36 ms more on an H200.
    """
    rows = pack_results(solve(unpack_triples(data, s, letters), s, interpret))
    return jax.device_put(rows, jax.memory.Space.Host) if host else rows


def _arrays(triples: Triples, s: Shape) -> Arrays:
    gap_open, extend = triples.costs
    # In a search letters that stand for "none" lose more than any gap that avoids them.
    outside = -4 * gap_open - 1 if s.best else 0
    tables = jax.vmap(lambda table: table_of(table, extend, outside))(triples.scores)
    tables = jnp.broadcast_to(tables, (s.triples, *tables.shape))
    cost = jnp.broadcast_to(gap_open - extend, (s.triples, 1))
    seeds = jnp.concatenate([triples.seeds, cost], axis=1)
    last = jnp.broadcast_to(jnp.stack([extend, jnp.int32(0)]), (s.triples, 2))
    borders = jnp.concatenate([triples.free, last], axis=1)
    return arrays_of(s, triples.letters, triples.sizes, tables, seeds, borders)


@lru_cache(maxsize=256)  # a call asks for the bytes of some 20 shapes
def solve_bytes(s: Shape) -> int:
    """Device bytes of ``solve``: the fill, its layer three times, the paths."""
    rows, columns = s.face
    layer = 4 * s.triples * s.planes * rows * columns
    return fill_bytes(s) + 2 * layer + 5 * s.triples * longest(s)


__all__ = [
    "COLUMNS",
    "MAX_CODES",
    "RULES",
    "TripleResults",
    "Rule",
    "Shape",
    "Triples",
    "STATIC",
    "solve_packed",
    "unpack_results",
    "marks_fit",
    "pack_triples",
    "reach",
    "rooms",
    "seed",
    "shape_of",
    "solve",
    "solve_bytes",
    "spread",
    "walks",
]
