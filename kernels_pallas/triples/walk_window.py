"""A window of a walk of three sequences: the bytes of 16 x 16 x 16 cells, and the
scores of their pairs of letters, in shared memory, where a move is one subtraction.

A place (i, j, k) of a window is (i ROW, j, k SLAB), bytes: their sum is the address of
the byte of a cell. Of 20 bytes of a row 16 are cells, so that the words a warp
stores lie in different banks, and rows of 16 slabs as well:

    GUARD + number CUBE + i ROW + j + k SLAB    H modulo 256 in state ``number``, 1 to 7
    GUARD + i ROW + 16 + k SLAB                 score of the letters of a and c
    GUARD + j + k SLAB                          of b and c
    i ROW + j                                   of a and b
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental.pallas import mosaic_gpu as plgpu

from kernels_pallas.core.access_check import check_access
from kernels_pallas.core.mosaic import THREADS, WORD_LAYOUT, WORD_TYPE, Threads
from kernels_pallas.core.registers import as_word, dialects, inline, register
from kernels_pallas.triples.rules import COLUMNS
from kernels_pallas.triples.shapes import MAX_CODES, Shape

SIDE = 16  # cells of a window along each axis
COPY_UNITS = SIDE**3 // 16  # of four words, 4 x 4 cells (i, j) of one k
WINDOW_SHIFT = 12  # cells along i and j to the next window, a multiple of 4
FACE_PAIRS = SIDE**2  # pairs of letters of a window, for each pair of sequences
ROW, SLAB, CUBE = 20, 320, 5120  # bytes
AXIS_BYTES = ROW, 1, SLAB
GUARD = 384  # bytes, more than from a cell before the window to its first cell


class TripleWalkView(NamedTuple):
    """The triple of a walk, and its window in shared memory."""

    th: Threads
    s: Shape
    triple: jax.Array
    letters: tuple
    scores: jax.Array
    score_bytes: jax.Array
    window: jax.Array


def window_words(s: Shape) -> int:
    """Words of a window: scores, then a cube for each state."""
    return (GUARD + CUBE * (s.rule.states + 1)) // 4


def number_of(s: Shape, state: int) -> int:
    """The number of a state's bytes: that of its column; 1, if it is the only state."""
    return COLUMNS[state] if s.rule.states > 1 else 1


def load_byte(view, where, more=0):
    """The byte at an address of the window, 0 to 255; ``more`` is static."""
    th, ref = view.th, view.window
    if th.plain:
        at = where + more
        (word,) = th.load(ref, lax.shift_right_logical(at, th.splat(2)))
        return lax.shift_right_logical(word, (at & 3) * 8) & 255

    @inline(arg_types=(plgpu.RefType(), WORD_LAYOUT), return_type=WORD_TYPE)
    def load(_, ref, at):
        mgpu, utils, ir, arith, llvm, _ = dialects()
        i8, i32 = (ir.IntegerType.get_signless(n) for n in (8, 32))
        index = utils.bitcast(register(at), i32)
        pointer = utils.getelementptr(utils.memref_ptr(ref), [index], i8)
        pointer = utils.getelementptr(pointer, [more], i8) if more else pointer
        value = llvm.load(i8, pointer, alignment=1)
        return as_word(mgpu, utils, ir, arith.extui(i32, value))

    return load(ref, where)


def _store_byte(view, where, value):
    """Store the lowest byte of a word at an address of the window."""
    ref = view.window
    if view.th.plain:
        cells = lax.bitcast_convert_type(ref[...], jnp.uint8).reshape(-1)
        check_access(cells.size, where)
        cells = cells.at[where].set((value & 255).astype(jnp.uint8))
        ref[...] = lax.bitcast_convert_type(cells.reshape(-1, 4), jnp.int32)
        return

    @inline(arg_types=(plgpu.RefType(), WORD_LAYOUT, WORD_LAYOUT))
    def store(_, ref, at, value):
        _, utils, ir, _, llvm, _ = dialects()
        i8, i32 = (ir.IntegerType.get_signless(n) for n in (8, 32))
        index, bits = (utils.bitcast(register(x), i32) for x in (at, value))
        pointer = utils.getelementptr(utils.memref_ptr(ref), [index], i8)
        void = ir.Type.parse("!llvm.void")
        asm = "st.shared.b8 [$0], $1;"
        llvm.inline_asm(void, [pointer, bits], asm, "r,r", has_side_effects=True)

    store(ref, where, value)


def first_cell(th, place):
    """The first cell of the window that ends in a cell, or up to three behind it."""
    i, j, k = place
    return (
        _quarter(th, i) * 4 - WINDOW_SHIFT,
        _quarter(th, j) * 4 - WINDOW_SHIFT,
        k - (SIDE - 1),
    )


def inside(place):
    """Whether no index is negative: then no sign bit is set."""
    i, j, k = place
    return (i | j | k) >= 0


def _quarter(th, value):
    return lax.shift_right_arithmetic(value, th.splat(2))


def load_window(view, base, thread):
    """Load the window whose first cell is ``base``."""
    th, s = view.th, view.s
    # All loads before the first store: a store that the compiler cannot look into
    # would make each load wait for the one before.
    units = [thread + first for first in range(0, COPY_UNITS, THREADS)]
    places = [
        _source(th, s, view.triple, _unit(th, base, unit), q)
        for unit in units
        for q in range(s.rule.states)
    ]
    source = view.score_bytes
    words = [th.load(source, index, 4, line, _stride(s)) for index, line in places]
    pairs = [thread + first for first in range(0, FACE_PAIRS, THREADS)]
    scores = [_pairs(view, base, pair) for pair in pairs]
    th.wait()  # nobody reads the window before any more
    for unit in units:
        for q in range(s.rule.states):
            _put_unit(view, unit, number_of(s, q), words.pop(0))
    for pair, (ab, ac, bc) in zip(pairs, scores, strict=True):
        high, low = _sixteenth(th, pair), pair & (SIDE - 1)
        _store_byte(view, high * ROW + low, ab)
        _store_byte(view, high * ROW + low * SLAB + (GUARD + SIDE), ac)
        _store_byte(view, high + low * SLAB + GUARD, bc)
    th.wait()


def _put_unit(view, unit, number, words):
    """Four words, one of each row."""
    th = view.th
    at = _sixteenth(th, unit) * (SLAB // 4) + (unit & 3)
    at = at + (_quarter(th, unit) & 3) * ROW + (GUARD + number * CUBE) // 4
    for row, word in enumerate(words):
        th.store(view.window, at + row * (ROW // 4), (word,))


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
        row = (view.triple * 3 + n) * MAX_CODES + letter(x, high)
        out += th.load(view.scores, row * MAX_CODES + letter(y, low))
    return out


def _unit(th, base, unit):
    """The first cell of a unit of a window."""
    shift = (_quarter(th, unit) & 3) * 4, (unit & 3) * 4, _sixteenth(th, unit)
    return tuple(x + more for x, more in zip(base, shift, strict=True))


def _sixteenth(th, value):
    return lax.shift_right_logical(value, th.splat(4))


def _stride(s):
    return s.rule.states * s.rows * s.columns * 8


def _source(th, s, triple, place, state):
    """(index, line) of the first word of a unit in ``score_bytes``."""
    i, j, k = (jnp.maximum(x, 0) for x in place)
    strip, r = _split(th, i, s.rows)
    block, remainder = _split(th, j, s.sides[1])
    lane = _quarter(th, remainder)
    line = (triple * s.blocks[1] + block) * s.strips + strip
    line = line * s.steps + k + lane + s.front
    group = _quarter(th, r) + state * (s.rows // 4)
    return group * THREADS + lane * 4, line


def _split(th, value, size):
    """(value // size, value % size) for a power of two."""
    bits = size.bit_length() - 1
    return lax.shift_right_logical(value, th.splat(bits)), value & (size - 1)
