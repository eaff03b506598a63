"""Three sequences, many triples at once: scores, a layer, paths."""

from functools import cache, partial

import jax
import jax.numpy as jnp

from kernels_pallas.triples.fill import fill
from kernels_pallas.triples.packing import (
    Found,
    Triples,
    answers,
    folded,
    packed,
    rooms,
    unpacked,
)
from kernels_pallas.triples.rules import COLUMNS, RULES, Rule, opened
from kernels_pallas.triples.shapes import (
    LETTERS,
    MINUS,
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
        return [0 if start in (None, n) else MINUS for n in range(len(COLUMNS))]
    return [-cost * opened(COLUMNS[start or 0], column) for column in COLUMNS]


def reach(largest: int, gap_open: int, gap_extend: int, letters: int) -> bool:
    """Whether the scores of a table stay within a quarter of the range.

    ``largest`` is the largest substitution score without its sign, ``letters`` the sum
    of the lengths. A column moves a skewed score by at most three substitutions and
    two gaps.
    """
    step = 3 * (largest + 2 * gap_extend) + 2 * gap_open
    return step * (letters + 256) < -MINUS // 2


def spread(scores, gap_open: int, gap_extend: int) -> int:
    """A bound on how much two moves into a cell differ; paths need it below 256.

    Without a residue an alignment loses at most two substitutions, and opens at most
    two gaps more in each of the residue's two pairs: there and in the column after. A
    move has up to three residues and opens two gaps.
    """
    best = max(int(scores.max(initial=0)) + 2 * gap_extend, 0)
    worst = min(int(scores.min(initial=0)) + 2 * gap_extend, 0)
    cost = gap_open - gap_extend
    return 6 * best - 3 * worst + 14 * cost


@partial(jax.jit, static_argnames=("s", "interpret"))
def solve(triples: Triples, s: Shape, interpret=None) -> Found:
    """Fill all triples of a launch, and with ``s.bytes`` walk their paths."""
    arrays = _arrays(triples, s)
    skewed, kept = fill(arrays, s, interpret)
    skew = 2 * triples.costs[1]
    number = jnp.arange(s.triples, dtype=jnp.int32)
    ends = skewed[number, :, triples.sizes[:, 0], triples.sizes[:, 1]]
    ends = ends - (skew * triples.sizes.sum(axis=1, dtype=jnp.int32))[:, None]
    if not s.bytes:
        rows, columns = (jnp.arange(n, dtype=jnp.int32) for n in s.face)
        place = rows[None, :, None] + columns[None, None, :]
        place = place + triples.sizes[:, 2, None, None]
        return Found(ends, skewed - (skew * place)[:, None])
    state = jnp.where(triples.end < 0, jnp.argmax(ends, axis=1), triples.end)
    found, count = walk(arrays, kept, state.astype(jnp.int32), s, interpret)
    return Found(ends, None, found.astype(jnp.uint8), count)


def _answer(data, s: Shape, letters: int, interpret=None):
    """``solve`` of what ``packed`` gave, for ``answers``; ``letters`` is A."""
    return folded(solve(unpacked(data, s, letters), s, interpret))


answer = jax.jit(_answer, static_argnames=STATIC)


@cache
def answering(device):
    """``answer`` whose result comes to the host's memory with the launch.

    Fetching it afterwards took 0.13 to 0.36 ms more on an H200.
    """
    kinds = {memory.kind for memory in device.addressable_memories()}
    if device.platform == "cpu" or HOST not in kinds:
        return answer
    sharding = jax.sharding.SingleDeviceSharding(device, memory_kind=HOST)
    return jax.jit(_answer, static_argnames=STATIC, out_shardings=sharding)


def _arrays(triples: Triples, s: Shape) -> Arrays:
    gap_open, extend = triples.costs
    tables = jax.vmap(lambda one: table_of(one, extend))(triples.scores)
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
    "LETTERS",
    "RULES",
    "Found",
    "Rule",
    "Shape",
    "Triples",
    "answer",
    "answering",
    "answers",
    "packed",
    "reach",
    "rooms",
    "seed",
    "shape_of",
    "solve",
    "solve_bytes",
    "spread",
]
