"""Paths of three sequences, from the lowest bytes of all scores.

A fill with ``Shape.bytes`` stores H modulo 256 of every cell and state. Of the moves
into a cell one attains its score, and two candidates that differ by less than 256
differ modulo 256: so the bytes identify the move, and a path costs the fill one byte a
state and hardly an instruction. With costs so large that candidates differ by more, the
caller must compare the score of the path with the score of the fill. Where gaps are
free the fill sees to it that the states of a cell differ by less, and of a single state
it stores two bytes (``Shape.stored``).

A warp walks a path, a lane for each of the seven columns (linear) or the states that it
may have come from, through windows of 16 x 16 x 16 cells. The time is that of the chain
from a place to the next one: addresses and a load, a vote, and by the lowest bit of the
vote the subtractions.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental.pallas import mosaic_gpu as plgpu

from kernels_pallas.core.exchange import ballot, uniform
from kernels_pallas.core.mosaic import (
    THREADS,
    WORD_LAYOUT,
    WORD_TYPE,
    Threads,
    as_word,
    bits_of,
    check_access,
    dialects,
    emitted,
    inline,
    kernel,
    where,
)
from kernels_pallas.triples.shapes import (
    BORDER_WORDS,
    COLUMNS,
    GAPPED,
    MAX_CODES,
    Arrays,
    Rule,
    Shape,
    moves,
)

# ------------------------------------------------------------------------------
# A window of a walk: the bytes of 16 x 16 x 16 cells and the scores of their pairs of
# letters, in shared memory, where a move is one subtraction.
#
# A place (i, j, k) of a window is (i ROW, j, k SLAB), bytes: their sum is the address
# of the byte of a cell. Of 20 bytes of a row 16 are cells, so that the words a warp
# stores lie in different banks, and rows of 16 slabs as well:
#
#   GUARD + number CUBE + i ROW + j + k SLAB    H modulo 256 in state ``number``, from 1
#   GUARD + i ROW + 16 + k SLAB                 score of the letters of a and c
#   GUARD + j + k SLAB                          of b and c
#   i ROW + j                                   of a and b

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
    borders: tuple  # as of ``Arrays``
    d: jax.Array  # open - extend


def number_of(s: Shape, state: int) -> int:
    """Number of a state's bytes: its column where each has one state; 1 for the only
    state, 2 for its second."""
    return s.rule.columns[state] if s.rule.states == len(COLUMNS) else 1 + state


def load_byte(view, where, offset=0):
    """Load the byte at an address of the window, 0 to 255; ``offset`` is static."""
    th, ref = view.th, view.window
    if th.plain:
        at = where + offset
        (word,) = th.load(ref, lax.shift_right_logical(at, th.splat(2)))
        return lax.shift_right_logical(word, (at & 3) * 8) & 255

    @inline(arg_types=(plgpu.RefType(), WORD_LAYOUT), return_type=WORD_TYPE)
    def load(_, ref, at):
        mgpu, utils, ir, arith, llvm, _ = dialects()
        i8, i32 = (ir.IntegerType.get_signless(n) for n in (8, 32))
        index = bits_of(at)
        pointer = utils.getelementptr(utils.memref_ptr(ref), [index], i8)
        pointer = utils.getelementptr(pointer, [offset], i8) if offset else pointer
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
        _, utils, ir, *_ = dialects()
        i8, (index, bits) = ir.IntegerType.get_signless(8), map(bits_of, (at, value))
        pointer = utils.getelementptr(utils.memref_ptr(ref), [index], i8)
        emitted("st.shared.b8 [$0], $1;", "r,r", 0, [pointer, bits])

    store(ref, where, value)


def first_cell(th, place):
    """First cell of the window that ends at a cell, or up to three behind it."""
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
        for q in range(s.stored)
    ]
    source = view.score_bytes
    words = [th.load(source, index, 4, line, s.step_words) for index, line in places]
    pairs = [thread + first for first in range(0, FACE_PAIRS, THREADS)]
    scores = [_pairs(view, base, pair) for pair in pairs]
    th.wait()  # no thread reads the previous window now
    for unit in units:
        for q in range(s.stored):
            at = _sixteenth(th, unit) * (SLAB // 4) + (unit & 3)
            at = at + (_quarter(th, unit) & 3) * ROW + GUARD // 4
            for n, word in enumerate(words.pop(0), 4 * q):
                row, state = divmod(n, s.stored)
                place = row * (ROW // 4) + number_of(s, state) * (CUBE // 4)
                th.store(view.window, at + place, (word,))
    for pair, (ab, ac, bc) in zip(pairs, scores, strict=True):
        high, low = _sixteenth(th, pair), pair & (SIDE - 1)
        _store_byte(view, high * ROW + low, ab)
        _store_byte(view, high * ROW + low * SLAB + (GUARD + SIDE), ac)
        _store_byte(view, high + low * SLAB + GUARD, bc)
    th.wait()


def _pairs(view, base, pair):
    """Load scores ab, ac and bc, each of one pair of letters of a window."""
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
    """First cell of a unit of a window."""
    shift = (_quarter(th, unit) & 3) * 4, (unit & 3) * 4, _sixteenth(th, unit)
    return tuple(x + offset for x, offset in zip(base, shift, strict=True))


def _sixteenth(th, value):
    return lax.shift_right_logical(value, th.splat(4))


def _source(th, s, triple, place, quad):
    """(index, line) of four words of a unit in ``score_bytes``, in which each row has a
    word of every state."""
    i, j, k = (jnp.maximum(x, 0) for x in place)
    strip, r = _split(th, i, s.rows)
    block, remainder = _split(th, j, s.sides[1])
    lane = _quarter(th, remainder)
    line = (triple * s.blocks[1] + block) * s.strips + strip
    line = line * s.steps + k + lane + s.front
    group = _quarter(th, r) * s.stored + quad
    return group * (4 * s.lanes) + lane * 4, line


def _split(th, value, size):
    """(value // size, value % size) for a power of two."""
    bits = size.bit_length() - 1
    return lax.shift_right_logical(value, th.splat(bits)), value & (size - 1)


STEPS_PER_TURN = 4  # of the loop; steps after leaving the window do nothing
MOST_NEGATIVE = -(2**31)


def walk(arrays: Arrays, score_bytes, state, s: Shape, interpret=None):
    """Walk the path of every triple: columns int32 (triples, longest), **from the end
    to the start**, and count (triples,), -1 where no move attains a score.

    Tiles are 4 columns wide. ``score_bytes`` is that of ``triples.fill``; ``state``
    (triples,) the number of the state in which a path ends.
    """
    room = longest(s)
    # Of a window: scores, then a cube for each state.
    window_words = (GUARD + CUBE * (s.stored + 1)) // 4
    run = kernel(
        partial(_program, s=s),
        [(s.triples, room), (s.triples, 4)],
        [plgpu.SMEM((window_words,), jnp.int32)],
        (s.triples,),
        ("triple",),
        interpret,
    )
    columns, count = run(*(x.reshape(-1) for x in arrays), score_bytes, state)
    return columns, count[:, 0]


def longest(s: Shape) -> int:
    """Largest number of columns of a path."""
    return sum(s.face) + s.deep


class Lane(NamedTuple):
    """The move that a lane tests: column COLUMNS[n] (linear) or from state n in lane n,
    none in lanes that are left. ``opens`` are a sequence (None: any), a number of gaps,
    and the set of states that open so many in it after the lane's, a bit each;
    ``never`` the set of states that do not follow it. ``gapped`` are the pairs in which
    the lane's column has a gap of a, b, c.
    """

    bit: jax.Array
    none: jax.Array  # 1 where it tests none
    residues: tuple
    pairs: tuple
    number: jax.Array
    opens: tuple  # (int or None, int, word)
    never: jax.Array | None  # where all do
    gapped: tuple  # of words


class Walk(NamedTuple):
    """A path from its end to ``place``, counted in a window. ``state``: the bit of the
    state there (linear: any), 0 if no move attained the score."""

    place: tuple
    state: jax.Array
    length: jax.Array


def _program(*refs, s: Shape):
    """Walk one triple."""
    th, inputs = Threads(s.plain), len(Arrays._fields)
    sizes, a, b, c, scores, seeds, borders = Arrays(*refs[:inputs])
    score_bytes, state, columns, count, window = refs[inputs:]
    a, b, c, scores, score_bytes = map(th.read_only, (a, b, c, scores, score_bytes))
    thread = th.index()
    triple = th.splat(lax.axis_index("triple"))
    place = th.load(sizes, triple * 4, 4)[:3]
    (q,) = th.load(state, triple)
    (d,) = th.load(seeds, triple * s.rule.seed_words + (s.rule.seed_words - 1))
    borders = [th.load(borders, triple * BORDER_WORDS + k, 4) for k in (0, 4)]
    first = (thread == 0).astype(jnp.int32)
    view = TripleWalkView(th, s, triple, (a, b, c), scores, score_bytes, window,
                          sum(borders, ()), d)  # fmt: skip
    lane = _lane(th, s, thread & 31)

    def store_column(length, column):
        th.store(columns, length, (column,), triple, longest(s), first)

    def windows(carry):
        _, cell, state, length = carry
        base = first_cell(th, cell)
        load_window(view, base, thread)
        zero = tuple(-x * size for x, size in zip(base, AXIS_BYTES, strict=True))
        if s.rule.states == 1:
            step = partial(_linear, view, lane, zero, store_column)
            inner = _may_go
        else:
            step = partial(_affine, view, lane, zero, store_column)
            inner = partial(_inner, zero=zero)

        def within(carry):
            path = carry[1]
            for _ in range(STEPS_PER_TURN):
                path = step(path)
            on = inner(path.place) & (path.state != 0)
            return uniform(th, on.astype(jnp.int32)), path

        offsets = zip(_from(cell, base), AXIS_BYTES, strict=True)
        place = tuple(x * size for x, size in offsets)
        carry = carry[0], Walk(place, state, length)
        _, path = lax.while_loop(lambda x: x[0] != 0, within, carry)
        cells = (
            lax.div(x, th.splat(n)) for x, n in zip(path.place, AXIS_BYTES, strict=True)
        )
        cell = tuple(x + y for x, y in zip(base, cells, strict=True))
        return uniform(th, _goes_on(cell, path.state)), cell, path.state, path.length

    # All threads hold the same place: no vote is needed to steer them.
    carry = place, lax.shift_left(th.splat(1), q), th.splat(0)
    carry = uniform(th, _goes_on(*carry[:2])), *carry
    _, cell, state, length = lax.while_loop(lambda x: x[0] != 0, windows, carry)
    lost = _goes_on(cell, th.splat(1)) & (state == 0).astype(jnp.int32)
    th.store(count, triple * 4, (where(lost != 0, -1, length),), where=first)


def _lane(th, s, lane):
    """The move that a lane tests."""
    columns = _columns(s.rule)
    lanes = [lane == n for n in range(len(columns))]

    def of_lane(values):
        """A word of each lane's own; 0 in lanes that are left."""
        word = th.splat(0)
        for mine, x in zip(lanes, values, strict=True):
            word = where(mine, x, word) if x else word
        return word

    mine = of_lane(columns)
    bits = tuple((mine & bit) != 0 for bit in (4, 2, 1))
    residues = tuple(where(bit, n, 0) for bit, n in zip(bits, AXIS_BYTES, strict=True))
    pairs = tuple(where((mine & two) == two, -1, 0) for two in (6, 5, 3))
    none = (mine == 0).astype(jnp.int32)
    gapped = tuple(
        sum(where(mine == t, pairs.count(x), 0) for t, pairs in GAPPED.items())
        for x in range(3)
    )
    opens, never = (), None
    if s.rule.states > 1:
        into = moves(s.rule)
        sequences = (0, 1, 2) if s.free else (None,)

        def openers(x, gaps):
            def opening(p, q):
                opens = into[q].get(p, ())
                return (len(opens) if x is None else opens.count(x)) == gaps

            return [
                _set(s.rule, lambda q, p=p: opening(p, q)) for p in range(len(columns))
            ]

        opens = tuple(
            (x, gaps, of_lane(openers(x, gaps))) for x in sequences for gaps in (1, 2)
        )
        barred = [
            _set(s.rule, lambda q, p=p: p not in into[q]) for p in range(len(columns))
        ]
        never = of_lane(barred) if any(barred) else None
    numbers = [number_of(s, n) * CUBE for n in range(s.rule.states)]
    number = of_lane(numbers) if s.rule.states > 1 else th.splat(CUBE)
    bit = where(mine == 0, 0, lax.shift_left(th.splat(1), lane & 15))
    return Lane(bit, none, residues, pairs, number, opens, never, gapped)


def _columns(rule: Rule):
    """Column of each of a lane's bits: of a state, or all columns of the only one."""
    return rule.columns if rule.states > 1 else COLUMNS


def _set(rule: Rule, test):
    """States (linear: columns) with a number that passes a test, a bit each."""
    return sum(test(n) << n for n in range(len(_columns(rule))))


def _has(rule: Rule, residues):
    """Those whose column has these residues, a bit each."""
    columns = _columns(rule)
    return _set(rule, lambda n: columns[n] & residues == residues)


def _linear(view, lane, zero, store_column, path):
    """Take one column back, in a window in which cell (0, 0, 0) is ``zero``."""
    i, j, k = place = path.place
    before, free, bits = (i + j) + (k - sum(lane.residues)), view.s.free, 255
    wrong = load_byte(view, before, GUARD + CUBE)
    wrong = wrong - load_byte(view, i + j + k, GUARD + CUBE)
    scores = _scores(view, place)
    if free:
        high = load_byte(view, before, GUARD + 2 * CUBE)
        high = high - load_byte(view, i + j + k, GUARD + 2 * CUBE)
        wrong, bits = wrong + high * 256, 2**16 - 1
        scores = [(score ^ 128) - 128 for score in scores]  # with their signs
    for score, mask in zip(scores, lane.pairs, strict=True):
        wrong = wrong + (score & mask)
    if free:
        _, earned = _free(view, place, zero)
        for pairs, extend in zip(lane.gapped, earned, strict=True):
            wrong = wrong + pairs * extend
    # What forbids a move is known before the bytes: it joins them in one instruction.
    remaining = _or(_from(_from(place, lane.residues), zero))
    remaining = remaining | _or(_from(place, AXIS_BYTES))
    go = _may_go(place)
    valid = ((wrong & bits) | ((remaining & MOST_NEGATIVE) | lane.none)) == 0
    # The first lane wins; where none may move, at cell (0, 0, 0) too, nothing does.
    votes = ballot(view.th, valid.astype(jnp.int32))
    taken = votes & -votes
    store_column(path.length, _column(view, taken))
    length = path.length + (taken != 0).astype(jnp.int32)
    return Walk(_less(view, place, taken), where(go, taken, path.state), length)


def _free(view, place, zero):
    """D and E of a gap in a, b and c at a place, as of ``shapes``."""
    costs, borders, extend = [], view.borders, view.borders[6]
    for n, (at, origin) in enumerate(zip(place, zero, strict=True)):
        low, high = (origin + x * AXIS_BYTES[n] for x in borders[2 * n : 2 * n + 2])
        free = (at == low) | (at == high)
        costs.append((where(free, 0, view.d), where(free, extend, 0)))
    return tuple(zip(*costs, strict=True))


def _affine(view, lane, zero, store_column, path):
    """Take one column back, given by the state, and vote on the state before it. If no
    move is possible, the path stays."""
    i, j, k = place = path.place
    go = _inner(place, zero)
    taken = where(go, path.state, 0)
    before = _less(view, place, taken)
    numbers = [number_of(view.s, n) for n in range(view.s.rule.states)]
    number = CUBE * sum(
        where((path.state & bits) != 0, bit, 0)
        for bit in (1, 2, 4, 8)
        if (bits := _set(view.s.rule, lambda n, bit=bit: (numbers[n] & bit) != 0))
    )
    wrong = load_byte(view, sum(before) + lane.number, GUARD)
    wrong = wrong - load_byte(view, (i + j + k) + number, GUARD)
    gaps = earned = ()
    if view.s.free:
        gaps, earned = _free(view, place, zero)
    for sequence, count, columns in lane.opens:
        d = view.d if sequence is None else gaps[sequence]
        wrong = wrong - where((taken & columns) != 0, count * d, 0)
    for sequence, extend in enumerate(earned):
        for count in (1, 2):
            columns = _set(
                view.s.rule,
                lambda q, x=sequence, n=count: (
                    GAPPED.get(view.s.rule.columns[q], ()).count(x) == n
                ),
            )
            wrong = wrong + where((taken & columns) != 0, count * extend, 0)
    for score, two in zip(_scores(view, place), (6, 5, 3), strict=True):
        wrong = wrong + where((taken & _has(view.s.rule, two)) != 0, score, 0)
    remaining = _from(before, zero)
    go = go & (path.state != 0)
    # Whatever the state, a path has begun at cell (0, 0, 0).
    start = go & (_or(remaining) == 0) & (lane.bit == 1)
    sure = start | (~go & ((lane.bit & path.state) != 0))
    barred = (_or(_from(remaining, lane.residues)) & MOST_NEGATIVE) | lane.none
    if lane.never is not None:
        barred = barred | where((taken & lane.never) != 0, 1, 0)
    barred = where(sure, 0, barred | where(go, 0, 1))
    valid = ((wrong & where(sure, 0, 255)) | barred) == 0
    votes = ballot(view.th, valid.astype(jnp.int32))
    store_column(path.length, _column(view, taken))
    return Walk(before, votes & -votes, path.length + go.astype(jnp.int32))


def _scores(view, place):
    """Scores of the letters of a cell, modulo 256: ab, ac, bc."""
    i, j, k = place
    ab = load_byte(view, i + j)
    return ab, load_byte(view, i + k, GUARD + SIDE), load_byte(view, j + k, GUARD)


def _may_go(place):
    """Whether all cells before a place are in the window."""
    return inside(_from(place, AXIS_BYTES))


def _inner(place, zero):
    """Whether ``_may_go`` and the place is not cell (0, 0, 0)."""
    return _may_go(place) & (_or(_from(place, zero)) != 0)


def _or(place):
    """A word that is negative if an index is, and 0 if all are."""
    i, j, k = place
    return i | j | k


def _less(view, place, taken):
    """Subtract the residues of the column with bit ``taken`` from a place."""
    residues = (where((taken & _has(view.s.rule, bit)) != 0, size, 0)
                for bit, size in zip((4, 2, 1), AXIS_BYTES, strict=True))  # fmt: skip
    return _from(place, residues)


def _column(view, taken):
    """Column of a bit."""
    rule = view.s.rule
    return sum(where((taken & _has(rule, bit)) != 0, bit, 0) for bit in (4, 2, 1))


def _goes_on(cell, state):
    """1 if a path goes on: it is not at cell (0, 0, 0), and a move attains H."""
    return ((_or(cell) != 0) & (state != 0)).astype(jnp.int32)


def _from(place, origin):
    """Coordinates of a place relative to ``origin``."""
    return tuple(x - y for x, y in zip(place, origin, strict=True))
