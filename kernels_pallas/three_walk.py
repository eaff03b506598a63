"""Paths of three sequences, from the lowest bytes of all scores.

A fill with ``Shape.bytes`` kept H modulo 256 of every cell and state. Of the moves into
a cell one attains its score, and two candidates that differ by less than 256 differ
modulo 256: so the bytes say which move it was, and a path costs the fill one byte a
state and hardly an instruction. Whoever gave costs so large that candidates differ by
more must compare the score of the path with the score of the fill.

A warp walks a path, a lane for each of the seven columns (linear) or states that it
may have come from, through windows of 16 x 16 x 16 cells: a whole program brings their
bytes, and the scores of their pairs of letters, to shared memory.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental.pallas import mosaic_gpu as plgpu

from kernels_pallas.exchange import first_lane, prefetch, uniform
from kernels_pallas.mosaic import THREADS, Threads, kernel, where
from kernels_pallas.three_rules import COLUMNS
from kernels_pallas.three_shape import LETTERS, Arrays, Shape

# COLUMNS, four bits each, the first lowest.
PACKED = sum(column << (4 * n) for n, column in enumerate(COLUMNS))
SIDE = 16  # cells of a window along each axis
UNITS = SIDE**3 // 16  # of four words, 4 x 4 cells (i, j) of one k
NEXT = 12  # cells along the diagonal to the next window, a multiple of 4
FACE = SIDE**2  # pairs of letters of a window, for each pair of sequences


def walk(arrays: Arrays, kept, state, s: Shape, interpret=None):
    """(columns, count) of every triple: int32 (triples, longest), **from the end to
    the start**, and (triples,); -1 where no move attains a score.

    Tiles are 4 columns wide. ``kept`` is that of ``three_fill.fill``; ``state``
    (triples,) the number of the state, in the order of COLUMNS, in which a path ends.
    """
    room = longest(s)
    run = kernel(
        partial(_program, s=s),
        [
            jax.ShapeDtypeStruct((s.triples * room,), jnp.int32),
            jax.ShapeDtypeStruct((s.triples * 4,), jnp.int32),
        ],
        [
            plgpu.SMEM((4 * UNITS * s.rule.states,), jnp.int32),
            plgpu.SMEM((3 * FACE,), jnp.int32),
        ],
        (s.triples,),
        ("triple",),
        interpret,
    )
    columns, count = run(*(x.reshape(-1) for x in arrays), kept, state)
    return columns.reshape(s.triples, room), count.reshape(s.triples, 4)[:, 0]


def longest(s: Shape) -> int:
    """Columns of a path at most."""
    return sum(s.face) + s.deep


class View(NamedTuple):
    """What a walk knows of its triple, and its window in shared memory."""

    th: Threads
    s: Shape
    triple: jax.Array
    letters: tuple
    scores: jax.Array
    kept: jax.Array
    window: jax.Array
    pairs: jax.Array


def _program(sizes, a, b, c, scores, seeds, kept, state, columns, count, window,
             pairs, s: Shape):  # fmt: skip
    """The walk of one triple."""
    th = Threads(s.plain)
    a, b, c, scores, kept = map(th.held, (a, b, c, scores, kept))
    thread = th.index()
    triple = th.splat(lax.axis_index("triple"))
    lane = thread & 31
    place = th.load(sizes, triple * 4, 4)[:3]
    (q,) = th.load(state, triple)
    (d,) = th.load(seeds, triple * 8 + 7)
    zero = th.splat(0)
    first = (thread == 0).astype(jnp.int32)
    # Lane n asks about column (linear) or state COLUMNS[n]; lanes from 7 on about none.
    mine = _column(th, lane)
    some = (mine != 0).astype(jnp.int32)

    view = View(th, s, triple, (a, b, c), scores, kept, window, pairs)

    def step(look, added, carry):
        """One column back; ``look(place, state)`` reads a byte, ``added`` are the
        scores of the cell's letters."""
        place, q, length = carry
        # Its own byte is read again: handing it on took a shuffle a column.
        held = look(place, q)
        if s.rule.states == 1:
            before = _less(place, mine)
            found = look(before, zero)
            wrong = found + _residues(mine, added) - held
            valid = _inside(before) & some & ((wrong & 255) == 0).astype(jnp.int32)
            winner = first_lane(th, valid)
            taken = _column(th, winner)
        else:
            taken = _column(th, q)
            before = _less(place, taken)
            found = look(before, jnp.minimum(lane, 6))
            wrong = found - _opened(mine, taken) * d + _residues(taken, added) - held
            valid = _inside(_less(before, mine)) & some
            valid = valid & ((wrong & 255) == 0).astype(jnp.int32)
            # Whatever the state, a path has begun at cell (0, 0, 0).
            start = before[0] + before[1] + before[2] == 0
            winner = first_lane(th, where(start, (lane == 0).astype(jnp.int32), valid))
            q = jnp.minimum(winner, 6)
        th.store(columns, length, (taken,), triple, longest(s), first)
        place = _less(place, taken)
        length = where(winner == 32, -1, length + 1)
        return place, q, length

    def windows(carry):
        _, place, q, length = carry
        base = _bring(view, place, thread)
        look = partial(_byte, view, base)

        def within(carry):
            carry = step(look, _added(view, base, carry[1]), carry[1:])
            inner = _inside(tuple(x - 1 for x in _from(carry[0], base)))
            return uniform(th, inner & _left(*carry)), *carry

        carry = carry[0], place, q, length
        carry = lax.while_loop(lambda x: x[0] != 0, within, carry)[1:]
        return uniform(th, _left(*carry)), *carry

    carry = place, q, zero
    carry = uniform(th, _left(*carry)), *carry
    # All threads hold the same place: no vote is needed to steer them.
    length = lax.while_loop(lambda x: x[0] != 0, windows, carry)[-1]
    th.store(count, triple * 4, (length,), where=first)


def _left(place, _, length):
    """1 where a path goes on: it is not at cell (0, 0, 0), and a move was found."""
    some = place[0] + place[1] + place[2] > 0
    return (some & (length >= 0)).astype(jnp.int32)


def _from(place, base):
    """A cell counted from another."""
    return tuple(x - y for x, y in zip(place, base, strict=True))


def _less(place, column):
    """A cell without the residues of a column."""
    bits = ((column & 4) != 0, (column & 2) != 0, (column & 1) != 0)
    return tuple(x - bit.astype(jnp.int32) for x, bit in zip(place, bits, strict=True))


def _column(th, state):
    """The column of a state, or of a lane; that of 7 and more is 0."""
    return lax.shift_right_logical(th.splat(PACKED), jnp.minimum(state, 7) * 4) & 7


def _residues(column, added):
    """What the residue pairs of a column add."""
    ab, ac, bc = added
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


def _byte(view, base, place, state):
    """The lowest byte of H of a cell of the window that begins at ``base``; of some
    byte where the cell is none."""
    th = view.th
    i, j, k = _from(place, base)
    unit = ((k & 15) * 4 + (_quarter(th, i) & 3)) * 4 + (_quarter(th, j) & 3)
    (word,) = th.load(view.window, (state * UNITS + unit) * 4 + (i & 3))
    return lax.shift_right_logical(word, (j & 3) * 8) & 255


def _added(view, base, place):
    """Scores of the letters of a cell: ab, ac, bc."""
    i, j, k = (x & (SIDE - 1) for x in _from(place, base))
    at = i * SIDE + j, i * SIDE + k + FACE, j * SIDE + k + 2 * FACE
    return tuple(view.th.load(view.pairs, one)[0] for one in at)


def _quarter(th, value):
    return lax.shift_right_arithmetic(value, th.splat(2))


def _bring(view, place, thread):
    """Bring the window that ends in a cell; returns its first cell."""
    th, s, kept = view.th, view.s, view.kept
    i, j, k = place
    base = _quarter(th, i) * 4 - 12, _quarter(th, j) * 4 - 12, k - 15
    # All loads before the first store: a store that the compiler cannot look into
    # would make each load wait for the one before.
    units = [thread + first for first in range(0, UNITS, THREADS)]
    homes = [
        _home(th, s, view.triple, _unit(th, base, unit), q)
        for unit in units
        for q in range(s.rule.states)
    ]
    found = [th.load(kept, index, 4, line, _stride(s)) for index, line in homes]
    pairs = [thread + first for first in range(0, FACE, THREADS)]
    scores = [_pairs(view, base, pair) for pair in pairs]
    th.wait()  # nobody reads the window before any more
    for unit in units:
        for q in range(s.rule.states):
            th.store(view.window, (unit + q * UNITS) * 4, found.pop(0))
    for pair, three in zip(pairs, scores, strict=True):
        for n, score in enumerate(three):
            th.store(view.pairs, pair + n * FACE, (score,))
    th.wait()
    _expect(view, base, thread)
    return base


def _pairs(view, base, pair):
    """Scores ab, ac and bc of one pair of letters each of a window."""
    th, s = view.th, view.s
    rooms = (s.face[0], 0), (s.face[1], 0), (s.steps, s.front)

    def letter(axis, shift):
        room, front = rooms[axis]
        index = jnp.maximum(base[axis] + shift, 0) + front
        return th.load(view.letters[axis], index, 1, view.triple, room)[0]

    high, low = _sixteenth(th, pair), pair & (SIDE - 1)
    out = []
    for n, (x, y) in enumerate(((0, 1), (0, 2), (1, 2))):
        row = (view.triple * 3 + n) * LETTERS + letter(x, high)
        out += th.load(view.scores, row * LETTERS + letter(y, low))
    return out


def _unit(th, base, unit):
    """The first cell of a unit of a window."""
    shift = (_quarter(th, unit) & 3) * 4, (unit & 3) * 4, _sixteenth(th, unit)
    return tuple(x + more for x, more in zip(base, shift, strict=True))


def _sixteenth(th, value):
    return lax.shift_right_logical(value, th.splat(4))


def _expect(view, base, thread):
    """Fetch to the second-level cache what lies on the diagonal: a path leaves a
    window by a face, up to three cells from the others."""
    th, s = view.th, view.s
    soon = base[0] - NEXT, base[1] - NEXT, base[2] - SIDE
    units = UNITS // SIDE * (SIDE + SIDE - NEXT)
    for first in range(0, units, THREADS):
        at = _unit(th, soon, thread + first)
        wanted = _inside(at) & (thread + first < units).astype(jnp.int32)
        for q in range(s.rule.states):
            index, line = _home(th, s, view.triple, at, q)
            prefetch(th, view.kept, index, line, _stride(s), wanted)


def _stride(s):
    return s.rule.states * s.rows * s.columns * 8


def _home(th, s, triple, place, state):
    """(index, line) of the first word of a unit in what the fill kept."""
    i, j, k = (jnp.maximum(x, 0) for x in place)
    strip, r = _split(th, i, s.rows)
    block, rest = _split(th, j, s.sides[1])
    lane = _quarter(th, rest)
    line = (triple * s.blocks[1] + block) * s.strips + strip
    line = line * s.steps + k + lane + s.front
    group = _quarter(th, r) + state * (s.rows // 4)
    return group * THREADS + lane * 4, line


def _split(th, value, size):
    """(value // size, value % size) for a power of two."""
    bits = size.bit_length() - 1
    return lax.shift_right_logical(value, th.splat(bits)), value & (size - 1)
