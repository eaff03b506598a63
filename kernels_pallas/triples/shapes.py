"""Gap models, static shape and input arrays of a launch over triples."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from kernels_pallas.core.mosaic import THREADS
from kernels_pallas.core.target import Target, this_target

# ------------------------------------------------------------------------------
# The cells of a tile of three sequences, in registers: two gap models.
#
# Letters are those of Li, Ranka and Sahni (Optimal Alignment of Three Sequences On A
# GPU, section 3). A column is a number t = 4a + 2b + c, a bit where that sequence has a
# residue. Scores are skewed: H' = H + 2 extend (i + j + k), so that a gap that goes on
# costs nothing; 2 extend is in every substitution score.
#
# ``linear``, open == extend, five min-max instructions and an addition a cell:
#
#     H[i,j,k] = max(H[i-1,j,k], H[i,j-1,k], H[i,j,k-1],
#                    H[i-1,j-1,k] + ab, H[i-1,j,k-1] + ac, H[i,j-1,k-1] + bc,
#                    H[i-1,j-1,k-1] + ab + ac + bc)
#
# ``quasi-natural`` (Altschul 1989) has a state for every last column, and 49 moves. A
# column t with a gap opens gaps in 0, 1 or 2 of its pairs: none after t itself, one
# after the two columns of ``NEAR``, two after the others; t = 7 opens none. So one
# maximum a state is enough, taken where the move begins:
#
#     X_7 = M = max of all H_p
#     X_t = max(H_t, H_p - D for p in NEAR[t], M - 2 D)            D = open - extend
#     H_t[i,j,k] = X_t[i-t_a, j-t_b, k-t_c] + its residue pairs
#
# 15 min-max instructions. From the end backwards the same sweep gives B_p, the best way
# on from state p, with Y_t = B_t[...] + residue pairs and
#
#     B_7 = max(Y_7, max of the other Y_t - 2 D)
#     B_p = max(B_7, Y_p, Y_t - D for t in NEAR[p])
#
# A gap of sequence x leaves x's index as it is. So where a gap of x is free, at x's
# first and last index, D of x is 0 both where the move begins and where it ends, and
# the move earns E = extend for each pair, which the skew took for granted. In local
# mode a path starts in state 7 wherever H' would be below the skew alone.

COLUMNS = (7, 6, 5, 3, 4, 2, 1)  # states in this order; the first of a tie wins
NEAR = {6: (4, 2), 5: (4, 1), 3: (2, 1), 4: (6, 5), 2: (6, 3), 1: (5, 3)}
# Sequences (0, 1, 2 for a, b, c) with a gap in a column, one for each of its pairs.
GAPPED = {6: (2, 2), 5: (1, 1), 3: (0, 0), 4: (1, 2), 2: (0, 2), 1: (0, 1)}
CELL_BITS = 5  # of a number of a cell of a tile


class Rule(NamedTuple):
    """A gap model: a cell has ``states`` values and hands ``planes`` values to a
    neighbour, of which ``corners`` cross a corner."""

    name: str
    planes: int
    corners: tuple
    states: int


LINEAR = Rule("linear", 1, (0,), 1)
QUASI = Rule("quasi-natural", 4, (1, 3), 7)
RULES = {rule.name: rule for rule in (LINEAR, QUASI)}


class Around(NamedTuple):
    """Cells around a tile for one k: planes x columns above it, planes x rows before
    it, and corners."""

    north: tuple
    west: tuple
    corner: tuple


def opened(before: int, column: int) -> tuple[int, ...]:
    """Sequences in which ``column`` opens a gap after the column ``before``, one for
    each pair."""
    if column == 7 or before == column:
        return ()
    if before not in NEAR[column]:
        return GAPPED[column]
    pairs = [(x, y) for x in range(3) for y in range(x + 1, 3)]

    def pattern(column, pair):
        return tuple(column >> (2 - x) & 1 for x in pair)

    return tuple(
        pair[pattern(column, pair).index(0)]
        for pair in pairs
        if sum(pattern(column, pair)) == 1
        and pattern(column, pair) != pattern(before, pair)
    )


class Ends(NamedTuple):
    """How paths may begin and end, for the cells of a tile at one k; None for nothing.

    ``gaps``: D of a gap in a (rows,), b (columns,) and c (); ``free``: E likewise;
    ``clamped`` (static): the states of a cell are stored 2 D + 1 apart at most.
    ``skew`` (rows + columns - 1,): the skew of the cells with one row + column, or so
    little that no path starts; ``floor`` (static): whether paths start anywhere.
    """

    gaps: tuple | None = None
    free: tuple | None = None
    skew: tuple | None = None
    floor: bool = False
    clamped: bool = False

    def at(self, words: tuple, r: int, x: int) -> tuple:
        """Words of a, b and c at a cell of the tile."""
        of_a, of_b, of_c = words
        return of_a[r], of_b[x], of_c

    def earn(self, h, column: int, r: int, x: int):
        """H of the end of a column at a cell, with what its free gaps spare."""
        if self.free is None:
            return h
        words = self.at(self.free, r, x)
        first, second = (words[sequence] for sequence in GAPPED[column])
        return h + (first + second)

    def started(self, h, r: int, x: int):
        """H of state 7 of a cell, where a path may start."""
        return jnp.maximum(h, self.skew[r + x]) if self.floor else h

    def mark(self, tops):
        """The best score of the cells of a tile, not skewed, 0 at least; then as
        ``CELL_BITS`` the number of its cell, backwards."""
        marks, last = [], 2**CELL_BITS - 1
        for r, row in enumerate(tops):
            for x, top in enumerate(row):
                skew = self.skew[r + x]
                top = top if self.floor else jnp.maximum(top, skew)
                number = last - (r * len(row) + x)
                marks.append((top - skew) * (last + 1) + number)
        return _largest(marks)


def cells(
    rule: Rule,
    old,
    around: Around,
    past: Around,
    scores,
    parameters,
    ends: Ends | None = None,
    keep: Callable[[Any], Any] = tuple,
):
    """Compute one layer; returns (tile, south, east, values, tops).

    ``old`` and ``tile`` (rows, columns, planes) are the values of cells for the next
    layer; ``south`` and ``east`` as ``Around.north`` and ``west``; ``values`` (rows,
    columns, states). ``scores`` are ab (rows, columns), ac (rows,), bc (columns,);
    ``parameters`` the step's origin mask, seeds, D, and whether it goes backwards.
    ``tops`` (rows, columns) are the best values of cells, of all states. ``keep`` is
    called on the ``values`` of each row at once: registers are few.
    """
    step = _linear if rule.states == 1 else _quasi
    return step(old, around, past, scores, parameters, ends or Ends(), keep)


def _linear(old, around, past, scores, parameters, ends, keep):
    ab, ac, bc = scores
    origin, seeds, *_ = parameters
    (north,), (west,), (corner,) = around
    (north_old,), (west_old,), (corner_old,) = past
    above, above_old = (corner, *north), (corner_old, *north_old)
    tile = []
    for r in range(len(ac)):
        row = [west[r]]
        row_old = (west_old[r], *(x for (x,) in old[r]))
        for x in range(len(bc)):
            earn = partial(ends.earn, r=r, x=x)
            m = jnp.maximum(earn(above_old[x + 1] + ac[r], 5), earn(row_old[x + 1], 1))
            m = jnp.maximum(earn(row_old[x] + bc[x], 3), m)
            ab_moves = jnp.maximum(above_old[x] + (ac[r] + bc[x]), earn(above[x], 6))
            m = jnp.maximum(ab_moves + ab[r][x], m)
            m = jnp.maximum(jnp.maximum(m, earn(above[x + 1], 4)), earn(row[-1], 2))
            m = ends.started(m, r, x)
            m = jnp.where(origin, seeds[0], m) if r == x == 0 else m
            row.append(m)
        above, above_old = tuple(row), row_old
        tile.append(tuple((x,) for x in row[1:]))
    south = (tuple(x for (x,) in tile[-1]),)
    east = (tuple(row[-1][0] for row in tile),)
    tops = [[m for (m,) in row] for row in tile]
    return tuple(tile), south, east, list(map(keep, tile)), tops


def _quasi(old, around, past, scores, parameters, ends, keep):
    # South X_4, X_6, X_5, X_7; east X_2, X_6, X_3, X_7; kept X_1, X_5, X_3, X_7.
    ab, ac, bc = scores
    x4, x6, *_ = around.north
    _, _, x5, x7 = past.north
    x6, x7 = (around.corner[0], *x6), (past.corner[1], *x7)
    tile, values, east, tops = [], [], [], []
    for r in range(len(ac)):
        x2 = around.west[0][r]
        row4, row6, row5, row7 = [], [around.west[1][r]], [], [past.west[3][r]]
        before3 = past.west[2][r]
        row, row_values = [], []
        for x in range(len(bc)):
            x1, *old_values = old[r][x]
            h = {
                7: x7[x] + (ab[r][x] + (ac[r] + bc[x])),
                6: x6[x] + ab[r][x],
                5: x5[x] + ac[r],
                3: before3 + bc[x],
                4: x4[x],
                2: x2,
                1: x1,
            }
            h |= {t: ends.earn(h[t], t, r, x) for t in GAPPED}
            h[7] = ends.started(h[7], r, x)
            gaps = None if ends.gaps is None else ends.at(ends.gaps, r, x)
            go, value = _leave(h, parameters, r == x == 0, gaps)
            if ends.clamped:
                # No path goes on from a state further down: whoever reads bytes of
                # states of one cell can tell them apart.
                low = _largest(list(h.values())) - (2 * parameters[2] + 1)
                value = tuple(jnp.maximum(x, low) for x in value)
            row4.append(go[4])
            row6.append(go[6])
            row5.append(old_values[0])
            row7.append(old_values[2])
            before3, x2 = old_values[1], go[2]
            row.append((go[1], go[5], go[3], go[7]))
            row_values.append(value)
        x4, x6, x5, x7 = row4, row6, row5, row7
        east.append((go[2], go[6], go[3], go[7]))
        tile.append(tuple(row))
        tops.append([x for *_, x in row])
        values.append(keep(row_values))
    last = tile[-1]
    south = (
        tuple(x4),
        tuple(x6[1:]),
        tuple(x[1] for x in last),
        tuple(x[3] for x in last),
    )
    return tuple(tile), south, tuple(zip(*east, strict=True)), values, tops


def _leave(h, parameters, first, gaps):
    """X of all columns from H of all states, and the values to store; ``gaps`` are D of
    a gap in a, b and c, where they differ."""
    origin, seeds, d, backwards = parameters
    alike, gaps, less = gaps is None, gaps or (d,) * 3, {}

    def without(value, of, sequences):
        """A value, that ``of`` some states, less the gaps opened in two sequences or
        one."""
        key = of, tuple(id(gaps[x]) for x in sequences)
        if key not in less:
            cost = gaps[sequences[0]]
            less[key] = value - (cost + gaps[sequences[1]] if sequences[1:] else cost)
        return less[key]

    if not backwards:
        go = {7: _largest(list(h.values()))}
    elif alike:
        best = _largest([h[t] for t in COLUMNS[1:]])
        go = {7: jnp.maximum(best - 2 * d, h[7])}
    else:
        go = {7: _largest([h[7], *(without(h[t], t, GAPPED[t]) for t in NEAR)])}
    for t in COLUMNS[1:]:
        top = h[t]
        for p in NEAR[t]:
            opens = opened(t, p) if backwards else opened(p, t)
            top = jnp.maximum(top, without(h[p], p, opens))
        low = go[7] if backwards else without(go[7], 0, GAPPED[t])
        go[t] = jnp.maximum(top, low)
    if first:
        go = {
            t: jnp.where(origin, seed, go[t])
            for t, seed in zip(COLUMNS, seeds, strict=True)
        }
    value = go if backwards else h
    return go, tuple(value[t] for t in COLUMNS)


def _largest(values):
    top = values[0]
    for x in values[1:]:
        top = jnp.maximum(top, x)
    return top


WARPS = THREADS // 32
MAX_CODES = 32  # letters of a score table; the last stands for "none"
PAD_CODE = MAX_CODES - 1
MINUS_INFINITY = -(2**29)
SEED_WORDS = 8  # words: X of cell (0, 0, 0), and D
# At a time on a multiprocessor: fewer programs wait for each other's batches, more for
# arithmetic.
RESIDENT_PROGRAMS = 2


class Shape(NamedTuple):
    """Static shape of a launch.

    ``rows`` (R) and ``columns`` (C, 4 or 8) of a thread's tile, ``batch`` steps between
    two barriers, ``blocks`` programs along i and j of each of ``triples``, at most
    ``deep`` letters along k. ``layer`` says whether the layer k = lc is stored in all
    states, not their best alone; ``bytes`` whether the lowest bytes of all cells are.
    ``free``: gaps may be free; ``best``: the best cell is searched; ``floor``: paths
    start anywhere.
    """

    rule: Rule
    rows: int
    columns: int
    batch: int
    blocks: tuple
    deep: int
    triples: int = 1
    layer: bool = False
    bytes: bool = False
    backwards: bool = False
    free: bool = False
    best: bool = False
    floor: bool = False
    early: int = 2  # steps between reading memory and needing it
    unroll: int = 2  # steps a turn of the loop
    plain: bool = False

    @property
    def sides(self):
        """Cells of a program along i and along j."""
        return WARPS * self.rows, 32 * self.columns

    @property
    def front(self):
        """Steps before k = 0, whose cells lie outside the table."""
        return (WARPS - 1) * self.batch + 32

    @property
    def steps(self):
        """Capacity of arrays in steps."""
        return self.front + self.deep + 1 + 31 + WARPS * self.batch + self.early

    @property
    def strips(self):
        return self.blocks[0] * WARPS

    @property
    def planes(self):
        """Values of a cell of the layer k = lc that are stored."""
        return self.rule.states if self.layer else int(not self.best)

    @property
    def stored(self):
        """Bytes of a cell. Where gaps are free two moves into a cell at the end of a
        sequence may differ by any number, and with a single state one byte is not
        enough."""
        return 2 if self.free and self.rule.states == 1 else self.rule.states

    @property
    def slot(self):
        """Words of a west face for one k: four for corners, R rows of each plane."""
        return 4 + self.rule.planes * self.rows

    @property
    def programs(self):
        return self.triples * self.blocks[0] * self.blocks[1]

    @property
    def face(self):
        """Cells (i, j) of a table, padded."""
        return self.strips * self.rows, self.blocks[1] * self.sides[1]


class Arrays(NamedTuple):
    """int32. ``sizes`` (triples, 4): la, lb, lc, 0; letters a, b, c (triples, room);
    ``scores`` (triples, 3, 32, 32) of ab, ac, bc; ``seeds`` (triples, 8): X at cell
    (0, 0, 0) in the order of ``COLUMNS``, and D; ``borders`` (triples, 8): two indices
    of a, two of b and two of c at which a gap is free, then extend and 0."""

    sizes: jax.Array
    a: jax.Array
    b: jax.Array
    c: jax.Array
    scores: jax.Array
    seeds: jax.Array
    borders: jax.Array


def shape_of(lengths, rule=LINEAR, rows=None, columns=4, batch=None, triples=1,
             target: Target | None = None, **options: Any) -> Shape:  # fmt: skip
    """Choose the shape for sequences up to these three lengths; ``target`` is the GPU,
    by default JAX's first device."""
    la, lb, lc = lengths
    if rule.states > 1:  # registers are few
        options = {"early": 1, "unroll": 1} | options
    rows = rows or (8 if rule.states == 1 else 4)
    sides = WARPS * rows, 32 * columns
    blocks = -(-(la + 1) // sides[0]), -(-(lb + 1) // sides[1])
    # A quasi-natural step takes so long that the waits at its barriers count for less.
    resident = RESIDENT_PROGRAMS * (target or this_target()).cores
    underfilled = triples * blocks[0] * blocks[1] < resident or rule.states > 1
    batch = batch or (4 if underfilled else 8)
    return Shape(rule, rows, columns, batch, blocks, lc, triples, **options)


def table_of(scores, extend, outside=0):
    """Pad scores (A, A) of a pair to int32 (32, 32) for a fill, with those of letters
    that stand for "none"."""
    scores = jnp.asarray(scores, jnp.int32) + 2 * jnp.asarray(extend, jnp.int32)
    spare = MAX_CODES - scores.shape[0]
    return jnp.pad(scores, ((0, spare), (0, spare)), constant_values=outside)


def arrays_of(s: Shape, letters, sizes, scores, seeds, borders) -> Arrays:
    """Lay out the arrays of a launch.

    letters : a, b, c (triples, length), garbage past their lengths
    sizes : (triples, 3)
    """
    room = *s.face, s.steps
    front = 1, 1, s.front + 1
    rows = []
    for n in range(3):
        count = min(letters[n].shape[1], room[n] - front[n])
        inside = jnp.arange(count, dtype=jnp.int32)[None] < sizes[:, n : n + 1]
        codes = jnp.where(inside, letters[n][:, :count].astype(jnp.int32), PAD_CODE)
        after = room[n] - front[n] - count
        rows.append(
            jnp.pad(codes, ((0, 0), (front[n], after)), constant_values=PAD_CODE)
        )
    sizes = jnp.pad(sizes, ((0, 0), (0, 1)))
    a, b, c = rows
    return Arrays(sizes, a, b, c, scores, seeds, borders)


def face_sizes(s: Shape) -> tuple[int, int, int]:
    """Words of the north faces, of the west faces and of the layer."""
    north = s.triples * s.steps * s.face[1] * s.rule.planes
    west = s.triples * s.strips * s.steps * s.slot
    layer = max(s.triples * s.planes * s.face[0] * s.face[1], 4)
    return north, west, layer


def bytes_size(s: Shape) -> int:
    """Words of the lowest bytes of all H."""
    each = 32 * s.rows * s.columns // 4 * s.stored
    return s.triples * s.blocks[1] * s.strips * s.steps * each if s.bytes else 4


def best_size(s: Shape) -> int:
    """Words of the best cells of all threads: a mark and k each."""
    return s.programs * THREADS * 2 if s.best else 4


def fill_bytes(s: Shape) -> int:
    """Device bytes of a fill: faces, stored scores, letters."""
    letters = s.triples * (sum(s.face) + s.steps + 4 + 2 * SEED_WORDS)
    words = sum(face_sizes(s)) + bytes_size(s) + best_size(s) + letters + s.programs
    return 4 * words


# ------------------------------------------------------------------------------
# Scores that a program of ``triples.fill`` reads: of letters of c with the program's
# rows of a and columns of b from shared memory, of rows with columns from registers.

PAD_WORDS = 4  # of a row; lanes with different letters then meet in different banks


def store_profiles(th, s, arrays, profiles, triple, block):
    """Store scores of c's letters with the program's columns of b and rows of a, as
    words [letter][column] and [letter][row] of the two ``profiles``."""
    a, b, scores, (of_b, of_a) = arrays.a, arrays.b, arrays.scores, profiles
    thread = th.index()
    square = MAX_CODES * MAX_CODES
    high, wide = s.sides
    for first in range(0, wide, THREADS):
        column = thread + first
        (code,) = th.load(b, column, 1, triple * s.blocks[1] + block[1], wide)
        for letter in range(0, MAX_CODES, 4):
            at = (triple * 3 + 2) * square + code * MAX_CODES + letter
            for n, value in enumerate(th.load(scores, at, 4)):
                th.store(of_b, column + (letter + n) * wide, (value,))
    count = MAX_CODES * high // THREADS  # letters a thread
    row = thread & (high - 1)
    part = lax.div(thread, th.splat(high)) * count
    (code,) = th.load(a, row, 1, triple * s.blocks[0] + block[0], high)
    for letter in range(0, count, 4):
        at = (triple * 3 + 1) * square + code * MAX_CODES + letter + part
        values = th.load(scores, at, 4)
        for n, value in enumerate(values):
            at = row + (part + (letter + n)) * (high + PAD_WORDS)
            th.store(of_a, at, (value,))


def pair_scores(th, s, arrays, triple, strip, block_j, lane):
    """Load scores ab of the tile's cells, row by row."""
    a, b, scores = arrays.a, arrays.b, arrays.scores
    rows, columns = (), ()
    for r in range(0, s.rows, 4):
        rows += th.load(a, strip * s.rows + r, 4, triple, s.face[0])
    for x in range(0, s.columns, 4):
        at = block_j * s.sides[1] + lane * s.columns + x
        columns += th.load(b, at, 4, triple, s.face[1])
    first = triple * (3 * MAX_CODES * MAX_CODES)
    return tuple(
        tuple(th.load(scores, first + x * MAX_CODES + y)[0] for y in columns)
        for x in rows
    )


def letter_scores(view, letter):
    """Load scores of a letter of c: ac of the tile's rows, bc of its columns."""
    th, s = view.th, view.s
    ac, bc = (), ()
    for x in range(0, s.columns, 4):
        at = letter * s.sides[1] + view.lane * s.columns + x
        bc += th.load(view.profiles[0], at, 4)
    for x in range(0, s.rows, 4):
        at = letter * (s.sides[0] + PAD_WORDS) + (view.strip & (WARPS - 1)) * s.rows + x
        ac += th.load(view.profiles[1], at, 4)
    return ac, bc
