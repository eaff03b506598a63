"""Gap models, static shape and input arrays of a launch over triples."""

from collections.abc import Callable
from functools import cache, partial
from math import prod
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from kernels_pallas.core.mosaic import THREADS
from kernels_pallas.core.target import Target, this_target

# ------------------------------------------------------------------------------
# The cells of a tile of three sequences, in registers: three gap models.
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

COLUMNS = (7, 6, 5, 3, 4, 2, 1)  # the first of a tie wins
# Sequences (0, 1, 2 for a, b, c) with a gap in a column, one for each of its pairs.
GAPPED = {6: (2, 2), 5: (1, 1), 3: (0, 0), 4: (1, 2), 2: (0, 2), 1: (0, 1)}
PAIRS = (0, 1), (0, 2), (1, 2)
CELL_BITS = 5  # of a number of a cell of a tile


def patterns(column: int) -> tuple[int, ...]:
    """Who of each pair has a residue: 3 for both, 2 the first, 1 the second, 0 none."""
    a, b, c = (column >> n & 1 for n in (2, 1, 0))
    return 2 * a + b, 2 * a + c, 2 * b + c


class Rule(NamedTuple):
    """A gap model. Every state has a last column and the patterns of the three pairs
    that decide which gaps the next one opens; the first state of a tie wins."""

    name: str
    columns: tuple
    before: tuple
    apart: int  # gaps that open at most after one state of a cell and not another
    shared: tuple = ()  # numbers of states of which ``factored`` makes maxima first

    @property
    def states(self) -> int:
        """Values of a cell."""
        return len(self.columns)

    @property
    def north(self):
        """States that a cell hands to those below it, of this k and then of the next;
        ``west`` to those right of it, ``layered`` to the next layer."""
        return self._of(4, 6, 5, 7)

    @property
    def west(self):
        return self._of(2, 6, 3, 7)

    @property
    def layered(self):
        return self._of(1, 5, 3, 7)

    def _of(self, *columns):
        return tuple(q for t in columns for q in range(self.states)
                     if self.columns[q] == t)  # fmt: skip

    @property
    def planes(self) -> int:
        """Values that a cell hands to a neighbour."""
        return len(self.north)

    @property
    def corners(self):
        """Those of them that cross a corner."""
        return tuple(n for n, q in enumerate(self.north) if self.columns[q] >= 6)

    @property
    def seed_words(self) -> int:
        """Words of a row of ``Arrays.seeds``: X of cell (0, 0, 0), and last D."""
        return 8 if self.states < 8 else 16


def _natural() -> Rule:
    """Find the states that paths from "all residue" reach, in the order of COLUMNS."""
    states = [(7, patterns(7))]
    for _, before in states:  # grows while it is read
        for t in COLUMNS:
            after = t, tuple(x or y for x, y in zip(patterns(t), before, strict=True))
            states += [after] * (after not in states)
    columns, before = zip(*states, strict=True)
    return Rule("natural", columns, before, 3, (2, 3))


LINEAR = Rule("linear", (7,), ((0, 0, 0),), 0)
QUASI = Rule("quasi-natural", COLUMNS, tuple(map(patterns, COLUMNS)), 2, (6,))
NATURAL = _natural()
RULES = {rule.name: rule for rule in (LINEAR, QUASI, NATURAL)}


def opened(before: tuple[int, ...], column: int) -> tuple[int, ...]:
    """Sequences in which ``column`` opens a gap after these patterns of the pairs, one
    for each pair."""
    return tuple(
        pair[current == 2]
        for pair, current, old in zip(PAIRS, patterns(column), before, strict=True)
        if current in (1, 2) and current != old
    )


@cache
def moves(rule: Rule, backwards: bool = False) -> tuple:
    """For every state the moves into it, ``{state before: sequences of the gaps that
    open}``; backwards the moves out of it."""
    into = tuple({} for _ in rule.columns)
    for p, before in enumerate(rule.before):
        for t in COLUMNS:
            after = tuple(x or y for x, y in zip(patterns(t), before, strict=True))
            for q, column in enumerate(rule.columns):
                several = rule.columns.count(column) > 1
                if column == t and (not several or rule.before[q] == after):
                    x, y = (q, p) if backwards else (p, q)
                    into[y][x] = opened(before, t)
    return into


@cache
def factored(rule: Rule, backwards: bool = False, alike: bool = True) -> tuple:
    """Find maxima that states share: steps that make X of all states from their H.

    The values are numbered, H of all states first. A step makes the next one as the
    maximum of ``parts``, (value, gaps of a, b and c that open), where gaps that are
    ``alike`` count as those of a. X of a state is a maximum of H_p less what opens
    after p. Whatever costs each p at least as much can take part in it, so greedily
    the value is taken that settles most states. Returns (steps, values that are X).
    """
    count = range(rule.states)
    targets = [
        {p: (len(x), 0, 0) if alike else tuple(map(x.count, range(3)))
         for p, x in into.items()}
        for into in moves(rule, backwards)
    ]  # fmt: skip
    groups = {
        frozenset(p for p in costs if costs[p] == cost)
        for costs in targets for cost in costs.values()
    }  # fmt: skip
    free = (0, 0, 0)
    shared = sorted((sorted(x) for x in groups if len(x) in rule.shared),
                    key=lambda x: (len(x), x))  # fmt: skip
    values = [{p: free} for p in count]
    steps = []
    sought: list[dict] = [*({p: free for p in group} for group in shared), *targets]
    for target in sought:
        parts, missing = [], set(target)
        while missing:
            number, less, settled = max(
                _settling(target, values),
                key=lambda x: (len(x[2] & missing), -sum(x[1]), x[0]),
            )
            parts.append((number, less))
            missing -= settled
        values.append(target)
        steps.append(tuple(sorted(parts, key=lambda x: (sum(x[1]), x[0]))))
    return tuple(steps), range(len(values) - rule.states, len(values))


def _settling(target: dict, values: list):
    """Yield (value, gaps opened besides, states that it settles) for what may be part
    of a maximum with these gaps opened after each state."""
    for number, costs in enumerate(values):
        if not costs.keys() <= target.keys():
            continue
        besides = {
            p: tuple(x - y for x, y in zip(target[p], cost, strict=True))
            for p, cost in costs.items()
        }
        for less in {*besides.values()}:
            enough = all(x >= y for cost in besides.values()
                         for x, y in zip(less, cost, strict=True))  # fmt: skip
            if enough and min(less) >= 0:
                yield number, less, {p for p, cost in besides.items() if cost == less}


class Around(NamedTuple):
    """Cells around a tile for one k: planes x columns above it, planes x rows before
    it, and corners."""

    north: tuple
    west: tuple
    corner: tuple


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
    keep: Callable[[Any, Any], Any] | None = None,
):
    """Compute one layer; returns (tile, south, east, values, tops).

    ``old`` and ``tile`` (rows, columns, planes) are the values of cells for the next
    layer; ``south`` and ``east`` as ``Around.north`` and ``west``. ``scores`` are ab
    (rows, columns), ac (rows,), bc (columns,); ``parameters`` the step's origin mask,
    seeds, D, and whether it goes backwards. ``tops`` (rows, columns) are the best
    values of cells, of all states. ``keep`` takes its value for the cells before (at
    first None) and the values of the next one, row by row, at once: registers are few.
    Without it ``values`` are those of all cells (cells, states).
    """
    keep = keep or (lambda values, cell: (*(values or ()), cell))
    step = _linear if rule.states == 1 else partial(_affine, rule)
    return step(old, around, past, scores, parameters, ends or Ends(), keep)


def _linear(old, around, past, scores, parameters, ends, keep):
    ab, ac, bc = scores
    origin, seeds, *_ = parameters
    (north,), (west,), (corner,) = around
    (north_old,), (west_old,), (corner_old,) = past
    above, above_old = (corner, *north), (corner_old, *north_old)
    tile, values = [], None
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
            values = keep(values, (m,))
        above, above_old = tuple(row), row_old
        tile.append(tuple((x,) for x in row[1:]))
    south = (tuple(x for (x,) in tile[-1]),)
    east = (tuple(row[-1][0] for row in tile),)
    tops = [[m for (m,) in row] for row in tile]
    return tuple(tile), south, east, values, tops


def _affine(rule, old, around, past, scores, parameters, ends, keep):
    ab, ac, bc = scores
    t, north, west = rule.columns, rule.north, rule.west

    def lines(side, states, corners=()):
        """Values of states around the tile, of this k or, with a residue of c, of the
        one before."""
        taken = {}
        for n, q in enumerate(states):
            of = past if t[q] & 1 else around
            line = getattr(of, side)[n]
            taken[q] = (of.corner[corners.index(n)], *line) if n in corners else line
        return taken

    above, before = lines("north", north, rule.corners), lines("west", west)
    tile, east, tops, values = [], [], [], None
    for r in range(len(ac)):
        left = {q: line[r] for q, line in before.items()}
        below = {q: [left[q]] if t[q] >= 6 else [] for q in north}
        row = []
        for x in range(len(bc)):
            same = dict(zip(rule.layered, old[r][x], strict=True))
            residues = {
                7: lambda r=r, x=x: ab[r][x] + (ac[r] + bc[x]),
                6: lambda r=r, x=x: ab[r][x],
                5: lambda r=r: ac[r],
                3: lambda x=x: bc[x],
            }
            h = {}
            for q, column in enumerate(t):
                if column & 4:
                    h[q] = above[q][x]
                else:
                    h[q] = left[q] if column & 2 else same[q]
                if column in residues:
                    h[q] = h[q] + residues[column]()
                if column in GAPPED:
                    h[q] = ends.earn(h[q], column, r, x)
            h[0] = ends.started(h[0], r, x)
            gaps = None if ends.gaps is None else ends.at(ends.gaps, r, x)
            go = leave(rule, h, parameters, r == x == 0, gaps)
            value = go if parameters[3] else tuple(h.values())
            if ends.clamped:
                # No path goes on from a state further down: whoever reads bytes of
                # states of one cell can tell them apart.
                low = go[0] if not parameters[3] else _largest(value)
                low = low - (rule.apart * parameters[2] + 1)
                value = tuple(jnp.maximum(x, low) for x in value)
            for q in north:
                below[q].append(same[q] if t[q] & 1 else go[q])
            for q in west:
                left[q] = same[q] if t[q] & 1 else go[q]
            row.append(tuple(go[q] for q in rule.layered))
            values = keep(values, value)
        above = below
        east.append(tuple(go[q] for q in west))
        tile.append(tuple(row))
        tops.append([cell[rule.layered.index(0)] for cell in row])
    south = tuple(
        tuple(x[rule.layered.index(q)] for x in tile[-1])
        if t[q] & 1
        else tuple(above[q][t[q] >= 6 :])
        for q in north
    )
    return tuple(tile), south, tuple(zip(*east, strict=True)), values, tops


def leave(rule, h, parameters, first, gaps):
    """X of all states from H of all; ``gaps`` are D of a gap in a, b and c, where they
    differ."""
    origin, seeds, d, backwards = parameters
    alike, gaps, less = gaps is None, gaps or (d,) * 3, {}
    values = list(h.values())

    def without(number, opens):
        """A value less the cost of gaps that open; each once."""
        costs = [
            gap for gap, count in zip(gaps, opens, strict=True) for _ in range(count)
        ]
        if costs and (number, opens) not in less:
            less[number, opens] = values[number] - sum(costs[1:], costs[0])
        return less[number, opens] if costs else values[number]

    steps, taken = factored(rule, backwards, alike)
    for parts in steps:
        values.append(_largest([without(*part) for part in parts]))
    go = [values[n] for n in taken]
    if first:
        go = [jnp.where(origin, *x) for x in zip(seeds, go, strict=True)]
    return tuple(go)


def _largest(values):
    top = values[0]
    for x in values[1:]:
        top = jnp.maximum(top, x)
    return top


MAX_CODES = 32  # letters of a score table; the last stands for "none"
PAD_CODE = MAX_CODES - 1
MINUS_INFINITY = -(2**29)
BORDER_WORDS = 8
# At a time on a multiprocessor: fewer programs wait for each other's batches, more for
# arithmetic.
RESIDENT_PROGRAMS = 2


class Shape(NamedTuple):
    """Static shape of a launch.

    ``rows`` (R) and ``columns`` (C, 4 or 8) of a thread's tile, ``lanes`` threads (16
    or 32) of a strip of R rows, ``batch`` steps between two barriers, ``blocks``
    programs along i and j of each of ``triples``, at most ``deep`` letters along k.
    ``layer`` says whether the layer k = lc is stored in all states, not their best
    alone; ``bytes`` whether the lowest bytes of all cells are. ``free``: gaps may be
    free; ``best``: the best cell is searched; ``floor``: paths start anywhere.
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
    lanes: int = 32
    plain: bool = False

    @property
    def of_program(self):
        """Strips of a program."""
        return THREADS // self.lanes

    @property
    def sides(self):
        """Cells of a program along i and along j."""
        return self.of_program * self.rows, self.lanes * self.columns

    @property
    def front(self):
        """Steps before k = 0, whose cells lie outside the table."""
        return (self.of_program - 1) * self.batch + self.lanes

    @property
    def steps(self):
        """Capacity of arrays in steps."""
        after = self.lanes + self.of_program * self.batch + self.early
        return self.front + self.deep + after

    @property
    def strips(self):
        return self.blocks[0] * self.of_program

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
    def step_words(self):
        """Words of the bytes of a strip for one step."""
        return self.lanes * self.rows * self.columns // 4 * self.stored

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
    ``scores`` (triples, 3, 32, 32) of ab, ac, bc; ``seeds`` (triples, 8 or 16): X of
    all states at cell (0, 0, 0), and last D; ``borders`` (triples, 8): two indices of
    a, two of b and two of c at which a gap is free, then extend and 0."""

    sizes: jax.Array
    a: jax.Array
    b: jax.Array
    c: jax.Array
    scores: jax.Array
    seeds: jax.Array
    borders: jax.Array


def shape_of(lengths, rule=LINEAR, rows=None, columns=4, batch=None, triples=1,
             lanes: int | None = None, target: Target | None = None, **options: Any
             ) -> Shape:  # fmt: skip
    """Choose the shape for sequences up to these three lengths; ``target`` is the GPU,
    by default JAX's first device."""
    la, lb, lc = lengths
    if rule.states > 1:  # registers are few
        early = int(rule.states <= 7 or not options.get("bytes"))
        options = {"early": early, "unroll": 1} | options
    rows = rows or (8 if rule.states == 1 else 4)

    def blocks_of(lanes: int) -> tuple[int, int]:
        sides = THREADS // lanes * rows, lanes * columns
        return -(-(la + 1) // sides[0]), -(-(lb + 1) // sides[1])

    # Programs have as many cells either way: fewer of them leave less empty.
    narrow = rule.states > 1 and prod(blocks_of(16)) < prod(blocks_of(32))
    lanes = lanes or (16 if narrow else 32)
    blocks = blocks_of(lanes)
    # A quasi-natural step takes so long that the waits at its barriers count for less.
    resident = RESIDENT_PROGRAMS * (target or this_target()).cores
    underfilled = triples * blocks[0] * blocks[1] < resident or rule.states > 1
    batch = batch or (4 if underfilled else 8)
    sizes = rows, columns, batch, blocks, lc, triples
    return Shape(rule, *sizes, lanes=lanes, **options)


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
    lines = s.triples * s.blocks[1] * s.strips * s.steps
    return lines * s.step_words if s.bytes else 4


def best_size(s: Shape) -> int:
    """Words of the best cells of all threads: a mark and k each."""
    return s.programs * THREADS * 2 if s.best else 4


def fill_bytes(s: Shape) -> int:
    """Device bytes of a fill: faces, stored scores, letters."""
    rows = 4 + s.rule.seed_words + BORDER_WORDS
    letters = s.triples * (sum(s.face) + s.steps + rows)
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
    thread, (high, wide) = th.index(), s.sides
    square = MAX_CODES * MAX_CODES
    sides = (of_b, b, 2, 1, wide, wide), (of_a, a, 1, 0, high, high + PAD_WORDS)
    for profile, letters, pair, axis, side, line in sides:
        span = min(side, THREADS)
        count = MAX_CODES * span // THREADS  # letters of c a thread
        part = lax.div(thread, th.splat(span)) * count
        for first in range(0, side, THREADS):
            cell = (thread & (span - 1)) + first
            base = triple * s.blocks[axis] + block[axis]
            (code,) = th.load(letters, cell, 1, base, side)
            for letter in range(0, count, 4):
                at = (triple * 3 + pair) * square + code * MAX_CODES + letter + part
                for n, value in enumerate(th.load(scores, at, 4)):
                    th.store(profile, cell + (part + (letter + n)) * line, (value,))


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
        strip = view.strip & (s.of_program - 1)
        at = letter * (s.sides[0] + PAD_WORDS) + strip * s.rows + x
        ac += th.load(view.profiles[1], at, 4)
    return ac, bc
