"""Three sequences, many triples at once: scores, a layer, paths."""

from functools import cache, partial

import jax
import jax.numpy as jnp

from kernels_pallas.triples.fill import fill
from kernels_pallas.triples.packing import (
    TripleResults,
    Triples,
    pack_results,
    pack_triples,
    rooms,
    unpack_results,
    unpack_triples,
)
from kernels_pallas.triples.rules import COLUMNS, RULES, Rule, opened
from kernels_pallas.triples.shapes import (
    MAX_CODES,
    MINUS_INFINITY,
    Arrays,
    Shape,
    arrays_of,
    fill_bytes,
    shape_of,
    table_of,
)
from kernels_pallas.triples.walk import longest, walk

STATIC = "s", "letters", "interpret"
HOST = "pinned_host"  # the kind of memory that a device writes and the host reads


def seed(start: int | None, cost: int, backwards=False) -> list[int]:
    """``Triples.seeds`` of paths that begin in a state (None: any); ``cost`` is open -
    extend."""
    if backwards:
        return [
            0 if start in (None, n) else MINUS_INFINITY for n in range(len(COLUMNS))
        ]
    return [-cost * opened(COLUMNS[start or 0], column) for column in COLUMNS]


def reach(largest: int, gap_open: int, gap_extend: int, letters: int) -> bool:
    """Whether the scores of a table stay within a quarter of the range.

    ``largest`` is the largest substitution score without its sign, ``letters`` the sum
    of the lengths. A column moves a skewed score by at most three substitutions and
    two gaps.
    """
    step = 3 * (largest + 2 * gap_extend) + 2 * gap_open
    return step * (letters + 256) < -MINUS_INFINITY // 2


def spread(scores, gap_open: int, gap_extend: int) -> int:
    """A bound on the difference of two moves into a cell; paths need it below 256.

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
    """``solve_packed`` whose result comes to the host's memory with the launch.

    Copying it afterwards takes 0.13 to 0.36 ms more on an H200.
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
