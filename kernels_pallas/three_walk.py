"""Paths of three sequences, from the lowest bytes of all scores.

A fill with ``Shape.bytes`` kept H modulo 256 of every cell and state. Of the moves into
a cell one attains its score, and two candidates that differ by less than 256 differ
modulo 256: so the bytes say which move it was, and a path costs the fill one byte a
state and hardly an instruction. Whoever gave costs so large that candidates differ by
more must compare the score of the path with the score of the fill.

A warp walks a path, a lane for each of the seven columns (linear) or states it may come
from; meanwhile the other lanes fetch bytes that the path will need soon.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax

from kernels_pallas.exchange import first_lane, from_lane, prefetch
from kernels_pallas.mosaic import THREADS, Threads, kernel, where
from kernels_pallas.three_fill import LETTERS, Arrays, Shape
from kernels_pallas.three_rules import COLUMNS

# COLUMNS, four bits each, the first lowest.
PACKED = sum(column << (4 * n) for n, column in enumerate(COLUMNS))
AHEAD = 10  # cells along the diagonal; the latency of memory, in steps


def walk(arrays: Arrays, kept, state, s: Shape, interpret=None):
    """(columns, count) of every triple: int32 (triples, longest), **from the end to
    the start**, and (triples,); -1 where no move attains a score.

    ``kept`` is that of ``three_fill.fill``; ``state`` (triples,) the number of the
    state, in the order of COLUMNS, in which a path ends.
    """
    room = longest(s)
    run = kernel(
        partial(_program, s=s),
        [
            jax.ShapeDtypeStruct((s.triples * room,), jnp.int32),
            jax.ShapeDtypeStruct((s.triples * 4,), jnp.int32),
        ],
        [],
        (s.triples,),
        ("triple",),
        interpret,
    )
    columns, count = run(*(x.reshape(-1) for x in arrays), kept, state)
    return columns.reshape(s.triples, room), count.reshape(s.triples, 4)[:, 0]


def longest(s: Shape) -> int:
    """Columns of a path at most."""
    return sum(s.face) + s.deep


def _program(sizes, a, b, c, scores, seeds, kept, state, columns, count, *,
             s: Shape):  # fmt: skip
    """The walk of one triple."""
    th = Threads(s.plain)
    a, b, c, scores, kept = map(th.held, (a, b, c, scores, kept))
    thread = th.index()
    triple = th.splat(lax.axis_index("triple"))
    lane = thread & 31
    place = th.load(sizes, triple * 4, 4)[:3]
    (q,) = th.load(state, triple)
    (d,) = th.load(seeds, triple * 8 + 7)
    (held,) = _bytes(th, s, kept, triple, place, q)
    zero = th.splat(0)
    # Lane n asks about column (linear) or state COLUMNS[n]; lanes from 7 on about none.
    mine = lax.shift_right_logical(th.splat(PACKED), jnp.minimum(lane, 7) * 4) & 7

    def score(first, second, number):
        """Substitution score of a pair of letters."""
        row = (triple * 3 + number) * LETTERS + first
        return th.load(scores, row * LETTERS + second)[0]

    def letters(i, j, k):
        (x,) = th.load(a, i, 1, triple, s.face[0])
        (y,) = th.load(b, j, 1, triple, s.face[1])
        (z,) = th.load(c, k + s.front, 1, triple, s.steps)
        return score(x, y, 0), score(x, z, 1), score(y, z, 2)

    def step(carry):
        _, place, held, q, length = carry
        pairs = letters(*place)
        _look_ahead(th, s, kept, triple, place, lane)
        if s.rule.states == 1:
            before = tuple(x - bit for x, bit in zip(place, _bits(mine), strict=True))
            (found,) = _bytes(th, s, kept, triple, before, zero)
            wrong = found + _residues(mine, pairs) - held
            valid = _inside(before) & (mine != 0).astype(jnp.int32)
        else:
            column = _column(th, q)
            before = tuple(x - bit for x, bit in zip(place, _bits(column), strict=True))
            state = jnp.minimum(lane, 6)
            (found,) = _bytes(th, s, kept, triple, before, state)
            cost = _opened(mine, column) * d
            wrong = found - cost + _residues(column, pairs) - held
            source = tuple(x - bit for x, bit in zip(before, _bits(mine), strict=True))
            start = before[0] + before[1] + before[2] == 0
            valid = _inside(source) & (mine != 0).astype(jnp.int32)
            valid = where(start, (lane == 0).astype(jnp.int32), valid)
            wrong = where(start, 0, wrong)
        winner = first_lane(th, valid & ((wrong & 255) == 0).astype(jnp.int32))
        lost = winner == 32
        held = from_lane(th, found, jnp.minimum(winner, 31))
        taken = _column(th, winner) if s.rule.states == 1 else column
        first = (thread == 0).astype(jnp.int32)
        th.store(columns, length, (taken,), triple, longest(s), first)
        place = tuple(x - bit for x, bit in zip(place, _bits(taken), strict=True))
        length = where(lost, -1, length + 1)
        return _going(th, place, length), place, held, winner, length

    start = _going(th, place, zero)
    if not s.plain:  # one warp is enough
        start = start * th.any((thread < 32).astype(jnp.int32))
    carry = start, place, held, q, zero
    length = lax.while_loop(lambda carry: carry[0] != 0, step, carry)[-1]
    first = (thread == 0).astype(jnp.int32)
    th.store(count, triple * 4, (length,), where=first)


def _going(th, place, length):
    left = place[0] + place[1] + place[2]
    return th.any(where(length < 0, 0, left))


def _bits(column):
    """Residues of a, b and c in a column."""
    return (
        (column >= 4).astype(jnp.int32),
        ((column & 2) != 0).astype(jnp.int32),
        column & 1,
    )


def _column(th, state):
    """The column of a state, or of a lane; that of 32 is 0."""
    return lax.shift_right_logical(th.splat(PACKED), jnp.minimum(state, 7) * 4) & 7


def _residues(column, pairs):
    """What the residue pairs of a column add."""
    ab, ac, bc = pairs
    out = where((column & 6) == 6, ab, 0)
    out = out + where((column & 5) == 5, ac, 0)
    return out + where((column & 3) == 3, bc, 0)


def _opened(before, column):
    """``three_rules.opened``: columns are near where one has the other's residues."""
    both = before & column
    near = ((both == before) | (both == column)) & (before != 7)
    cost = where(near, 1, 2)
    return where((before == column) | (column == 7), 0, cost)


def _inside(place):
    """1 where no index is negative."""
    i, j, k = place
    return (jnp.minimum(jnp.minimum(i, j), k) >= 0).astype(jnp.int32)


def _bytes(th, s, kept, triple, place, state):
    """(lowest byte of H of a cell,); of some byte where the cell is none."""
    i, j, k = (jnp.maximum(x, 0) for x in place)
    index, base, x = _home(th, s, triple, i, j, k, state)
    (word,) = th.load(kept, index, 1, base, _stride(s))
    return (lax.shift_right_logical(word, (x & 3) * 8) & 255,)


def _stride(s):
    return s.rule.states * s.rows * s.columns * 8


def _home(th, s, triple, i, j, k, state):
    """(index, base, column in the tile) of a cell in what the fill kept."""
    strip, r = _split(th, i, s.rows)
    block, rest = _split(th, j, s.sides[1])
    lane, x = _split(th, rest, s.columns)
    word = r * (s.columns // 4) + lax.shift_right_logical(x, th.splat(2))
    base = (triple * s.blocks[1] + block) * s.strips + strip
    base = base * s.steps + k + lane + s.front
    group = state * (s.rows * s.columns // 16) + lax.shift_right_logical(
        word, th.splat(2)
    )
    return group * THREADS + lane * 4 + (word & 3), base, x


def _split(th, value, size):
    """(value // size, value % size) for a power of two."""
    bits = size.bit_length() - 1
    return lax.shift_right_logical(value, th.splat(bits)), value & (size - 1)


def _look_ahead(th, s, kept, triple, place, lane):
    """Fetch what lies on the diagonal: all states, or the tiles around."""
    n = jnp.maximum(lane - 8, 0)
    if s.rule.states == 1:
        third = lax.div(n, th.splat(3))
        shift = (n - third * 3 - 1) * 4, (third - 1) * 8
        state, used = th.splat(0), (lane >= 8) & (lane < 17)
    else:
        third = lax.div(n, th.splat(7))
        state, used = n - third * 7, (lane >= 8) & (lane < 29)
        shift = where(third == 1, 4, 0), where(third == 2, 8, 0)
    i, j, k = (x - AHEAD for x in place)
    i, j = jnp.minimum(i + shift[0], place[0]), jnp.minimum(j + shift[1], place[1])
    inside = _inside((i, j, k)) & used.astype(jnp.int32)
    i, j, k = (jnp.maximum(x, 0) for x in (i, j, k))
    index, base, _ = _home(th, s, triple, i, j, k, state)
    prefetch(th, kept, index, base, _stride(s), inside)
