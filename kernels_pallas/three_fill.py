"""The fill of three sequences, linear gaps: tiles of registers that march along k.

A thread keeps R x C cells (i, j) and walks along k, the third and longest sequence. The
32 lanes of a warp stand side by side along j, lane l one step behind lane l - 1: what a
lane computed last is what the next one needs now, and goes there by ``shfl``. Four
warps of a program stand one below the other along i, each a batch of steps behind the
one above. A program takes 4 R x 32 C cells of the (i, j) face, for all k; the rows and
columns between programs go through global memory, each overwritten in place by the one
who reads it.

In skewed coordinates H' = H + 2 gap (i + j + k) a gap costs nothing:

    H'[i,j,k] = max(H'[i-1,j,k], H'[i,j-1,k], H'[i,j,k-1],
                    H'[i-1,j-1,k] + ab, H'[i-1,j,k-1] + ac, H'[i,j-1,k-1] + bc,
                    H'[i-1,j-1,k-1] + ab + ac + bc)

with 2 gap added to every substitution score. Five min-max instructions and an addition.

Borders are data: cells outside the table hold minus infinity, one corner 0, and letters
that stand for "none" score 0.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental.pallas import mosaic_gpu as plgpu

from kernels_pallas.exchange import (
    announce,
    await_number,
    fetch,
    low_bytes,
    ticket,
    uniform,
)
from kernels_pallas.mosaic import THREADS, Threads, kernel, where

WARPS = THREADS // 32
LETTERS = 32  # of a score table; the last stands for "none"
NONE = LETTERS - 1
MINUS = -(2**29)


class Shape(NamedTuple):
    """Static shape of a launch.

    ``rows`` (R) and ``columns`` (C, 4 or 8) of a thread's tile, ``batch`` steps between
    two barriers, ``blocks`` programs along i and j of each of ``triples``, ``deep``
    letters along k at most. ``layer`` and ``bytes`` say what is kept.
    """

    rows: int
    columns: int
    batch: int
    blocks: tuple
    deep: int
    triples: int = 1
    layer: bool = True
    bytes: bool = False
    launches: int = 0  # super-steps a launch of one diagonal; 0: one launch in all
    plain: bool = False

    @property
    def sides(self):
        """Cells of a program along i and along j."""
        return WARPS * self.rows, 32 * self.columns

    @property
    def front(self):
        """Steps before k = 0 that are computed in vain."""
        return (WARPS - 1) * self.batch + 32

    @property
    def steps(self):
        """Steps that arrays have room for."""
        return self.front + self.deep + 1 + 31 + WARPS * self.batch + 1

    @property
    def strips(self):
        return self.blocks[0] * WARPS

    @property
    def held(self):
        """Words a thread carries from one launch to the next."""
        return -(-((self.rows + 1) * (self.columns + 1)) // 4) * 4

    @property
    def slot(self):
        """Words of a west face for one k: a corner, three unused, R rows."""
        return 4 + self.rows


class Arrays(NamedTuple):
    """int32. ``sizes`` (triples, 4): la, lb, lc, 0; letters a (triples, rows of
    cells), b, c (front + k); ``scores`` (3, 32, 32) ab, ac, bc with 2 gap added."""

    sizes: jax.Array
    a: jax.Array
    b: jax.Array
    c: jax.Array
    scores: jax.Array


def shape_of(lengths, rows=8, columns=4, batch=8, triples=1, **more) -> Shape:
    """The shape for sequences of at most these three lengths."""
    la, lb, lc = lengths
    one = Shape(rows, columns, batch, (1, 1), 0)
    sides = one.sides
    blocks = -(-(la + 1) // sides[0]), -(-(lb + 1) // sides[1])
    return Shape(rows, columns, batch, blocks, lc, triples, **more)


def table_of(scores, gap):
    """Scores (A, A) of a pair -> int32 (32, 32) for a fill; letters past A score 0."""
    scores = jnp.asarray(scores, jnp.int32) + 2 * jnp.asarray(gap, jnp.int32)
    spare = LETTERS - scores.shape[0]
    return jnp.pad(scores, ((0, spare), (0, spare)))


def arrays_of(s: Shape, letters, sizes, scores) -> Arrays:
    """Letters (triples, length) of a, b, c, garbage past their lengths; sizes
    (triples, 3)."""
    room = s.blocks[0] * s.sides[0], s.blocks[1] * s.sides[1], s.steps
    front = 1, 1, s.front + 1
    rows = []
    for n in range(3):
        count = min(letters[n].shape[1], room[n] - front[n])
        inside = jnp.arange(count, dtype=jnp.int32)[None] < sizes[:, n : n + 1]
        codes = jnp.where(inside, letters[n][:, :count].astype(jnp.int32), NONE)
        after = room[n] - front[n] - count
        rows.append(
            jnp.pad(codes, ((0, 0), (front[n], after)), constant_values=NONE)
        )
    sizes = jnp.pad(sizes, ((0, 0), (0, 1)))
    return Arrays(sizes, *rows, scores)


def fill(arrays: Arrays, s: Shape, interpret=None):
    """(layer, bytes) of every triple.

    ``layer`` (triples, strips * R, J * 32 C): H' at k = lc; ``bytes`` int32 words,
    (triples, J, strips, steps, 32, R C / 4): the lowest bytes of all H'.
    """
    run = kernel(
        partial(_program, s=s),
        [jax.ShapeDtypeStruct((_bytes_size(s),), jnp.int32)],
        [
            plgpu.SMEM((LETTERS * 32 * s.columns,), jnp.int32),
            plgpu.SMEM((LETTERS * WARPS * s.rows,), jnp.int32),
            plgpu.SMEM((4,), jnp.int32),
        ],
        (programs(s),),
        ("program",),
        interpret,
    )
    # The wrapper that gives ``vmap`` a rule does not take references on JAX 0.10.
    run = getattr(run, "fun", run)
    state = 1 if not s.launches else programs(s) * THREADS * s.held
    start = *_faces(s), jnp.full(_layer_size(s), MINUS), jnp.full(state, MINUS)
    refs = [jax.new_ref(x.astype(jnp.int32)) for x in start]
    refs.append(jax.new_ref(jnp.zeros(1 + programs(s), jnp.int32)))
    flat = [x.reshape(-1) for x in arrays]
    if not s.launches:
        (kept,) = run(*flat, jnp.zeros(1, jnp.int32), *refs)
    else:
        kept = None

        def one(n, _):
            run(*flat, n[None], *refs)
            return ()

        steps = -(-(s.deep + 32) // s.batch) + WARPS - 1
        count = 2 * (sum(s.blocks) - 2) - (-steps // s.launches)
        lax.fori_loop(jnp.int32(0), jnp.int32(count), one, ())
    rows, columns = s.strips * s.rows, s.blocks[1] * s.sides[1]
    layer = refs[2][...]
    return layer.reshape(s.triples, rows, columns) if s.layer else layer, kept


def programs(s: Shape) -> int:
    return s.triples * s.blocks[0] * s.blocks[1]


def _layer_size(s):
    cells = s.strips * s.rows * s.blocks[1] * s.sides[1]
    return s.triples * cells if s.layer else 4


def _bytes_size(s):
    each = 32 * s.rows * s.columns // 4
    return s.triples * s.blocks[1] * s.strips * s.steps * each if s.bytes else 4


def _faces(s):
    """North and west faces of the table: minus infinity, and a 0 that cell (0, 0, 0)
    meets as the corner before it."""
    north = jnp.full(s.triples * s.blocks[1] * s.steps * 32 * s.columns, MINUS)
    west = jnp.full((s.triples, s.strips, s.steps, s.slot), MINUS)
    west = west.at[:, 0, s.front, 0].set(0)
    return north, west.reshape(-1)


def fill_bytes(s: Shape) -> int:
    """Device bytes of a fill: faces, what is kept, letters."""
    grid = s.triples * s.blocks[0] * s.blocks[1]
    faces = s.blocks[1] * s.steps * 32 * s.columns + s.strips * s.steps * s.slot
    letters = s.strips * s.rows + s.blocks[1] * s.sides[1] + s.steps
    return 4 * (_layer_size(s) + _bytes_size(s) + s.triples * (faces + letters) + grid)


class View(NamedTuple):
    """What a program knows of its place; words a thread."""

    th: Threads
    s: Shape
    lane: jax.Array
    triple: jax.Array
    block: tuple  # of the program along i and j
    strip: jax.Array
    deep: jax.Array  # lc
    refs: dict
    ab: tuple  # scores of the tile's cells
    profiles: tuple  # of b and of this warp's rows of a, in shared memory


def _program(sizes, a, b, c, scores, launch, north, west, layer, state, progress,
             kept, *scratch, s: Shape):  # fmt: skip
    """One chunk of the (i, j) face, for all k."""
    th = Threads(s.plain)
    of_b, of_a, word = scratch
    thread = th.index()
    lane = thread & 31
    warp = lax.shift_right_logical(thread, th.splat(5))
    program = lax.axis_index("program")
    if s.launches:
        number = th.splat(program)
    else:
        number = ticket(th, progress, word, program)
    item = lax.div(number, th.splat(s.triples))
    triple = number - item * s.triples
    block_i = lax.div(item, th.splat(s.blocks[1]))
    block_j = item - block_i * s.blocks[1]
    strip = block_i * WARPS + warp
    size = th.load(th.held(sizes), triple * 4, 4)
    refs = dict(c=th.held(c), north=north, west=west, layer=layer, kept=kept)
    scores = th.held(scores)
    _profiles(th, s, a, b, scores, of_a, of_b, triple, (block_i, block_j))
    ab = _pairs(th, s, a, b, scores, triple, strip, block_j, lane)
    th.wait()
    profiles = th.held(of_b), th.held(of_a)
    view = View(th, s, lane, triple, (block_i, block_j), strip, size[2], refs, ab,
                profiles)  # fmt: skip
    if s.launches:
        _march_on(view, warp, thread, launch, state, number)
    else:
        _march(view, warp, thread, progress, number)


def _profiles(th, s, a, b, scores, of_a, of_b, triple, block):
    """Scores of c's letters with the program's rows of a and columns of b: words
    [letter][column] and [letter][row]."""
    thread = th.index()
    square = LETTERS * LETTERS
    wide, high = s.sides[1], s.sides[0]
    for first in range(0, wide, THREADS):
        column = thread + first
        (code,) = th.load(b, column, 1, triple * s.blocks[1] + block[1], wide)
        for letter in range(0, LETTERS, 4):
            at = code * LETTERS + (2 * square + letter)
            for n, value in enumerate(th.load(scores, at, 4)):
                th.store(of_b, column + (letter + n) * wide, (value,))
    count = THREADS // high  # threads a row, each some letters
    row = thread & (high - 1)
    part = lax.div(thread, th.splat(high)) * (LETTERS // count)
    (code,) = th.load(a, row, 1, triple * s.blocks[0] + block[0], high)
    for letter in range(0, LETTERS // count, 4):
        at = code * LETTERS + (square + letter) + part
        for n, value in enumerate(th.load(scores, at, 4)):
            th.store(of_a, row + (part + (letter + n)) * high, (value,))


def _pairs(th, s, a, b, scores, triple, strip, block_j, lane):
    """ab of the tile's cells, row by row."""
    rows, columns = (), ()
    for r in range(0, s.rows, 4):
        at = strip * s.rows + r
        rows += th.load(a, at, 4, triple, s.strips * s.rows)
    for x in range(0, s.columns, 4):
        at = block_j * s.sides[1] + lane * s.columns + x
        columns += th.load(b, at, 4, triple, s.blocks[1] * s.sides[1])
    return tuple(
        tuple(th.load(scores, x * LETTERS + y)[0] for y in columns) for x in rows
    )


def _march(view, warp, thread, progress, number):
    """All steps, a batch after the other, each warp a batch behind the one above."""
    th, s = view.th, view.s
    batches = lax.div(view.deep + (32 + s.batch - 1), th.splat(s.batch))
    total = batches + (WARPS - 1)
    item, behind = number, -(-31 // s.batch)
    above = (view.block[0] > 0).astype(jnp.int32)
    before = (view.block[1] > 0).astype(jnp.int32)
    above_at = 1 + where(above != 0, item - s.blocks[1] * s.triples, 0)
    before_at = 1 + where(before != 0, item - s.triples, 0)
    first = (thread == 0).astype(jnp.int32)
    minus = th.splat(MINUS)
    tile = ((minus,) * s.columns,) * s.rows
    edges = (minus,) * s.columns, (minus,) * (s.rows + 1)
    last = uniform(th, total)

    def batch(n, carry):
        seen, tile, edges = carry
        now = th.splat(n)
        need = [
            jnp.minimum(now + ahead, total) * flag
            for ahead, flag in ((WARPS, above), (1 + behind, before))
        ]
        seen = tuple(
            await_number(th, progress, at, least, old)
            for at, least, old in zip((above_at, before_at), need, seen, strict=True)
        )
        t = (now - warp) * s.batch + s.front
        ahead = _ahead(view, t)
        loop = partial(_step, view, t)
        tile, edges, _ = lax.fori_loop(
            jnp.int32(0), jnp.int32(s.batch), loop, (tile, edges, ahead)
        )
        th.wait()
        announce(th, progress, item + 1, now + 1, first)
        return seen, tile, edges

    start = ((th.splat(0), th.splat(0)), tile, edges)
    lax.fori_loop(jnp.int32(0), last, batch, start)


def _march_on(view, warp, thread, launch, state, number):
    """Some steps of a launch of many: program (I, J) is two launches behind those
    above and before it."""
    th, s = view.th, view.s
    total = lax.div(view.deep + (32 + s.batch - 1), th.splat(s.batch)) + (WARPS - 1)
    late = 2 * (view.block[0] + view.block[1])
    first = (th.splat(launch[0]) - late) * s.launches
    last = uniform(th, jnp.minimum(first + s.launches, total))
    first = uniform(th, jnp.maximum(first, 0))
    words = ()
    for x in range(0, s.held, 4):
        words += th.load(state, thread * 4 + x * THREADS, 4, number, s.held * THREADS)

    def batch(n, words):
        t = (th.splat(n) - warp) * s.batch + s.front
        cells = s.rows * s.columns
        tile = tuple(
            tuple(words[x : x + s.columns]) for x in range(0, cells, s.columns)
        )
        edges = words[cells : cells + s.columns], words[cells + s.columns :][: s.rows + 1]
        loop = partial(_step, view, t)
        tile, edges, _ = lax.fori_loop(
            jnp.int32(0), jnp.int32(s.batch), loop, (tile, edges, _ahead(view, t))
        )
        th.wait()
        flat = tuple(x for row in tile for x in row) + edges[0] + edges[1]
        return flat + words[len(flat) :]

    words = lax.fori_loop(first, last, batch, words)
    for x in range(0, s.held, 4):
        at = thread * 4 + x * THREADS
        th.store(state, at, words[x : x + 4], number, s.held * THREADS)


def _ahead(view, t):
    """What step ``t`` reads from memory: letter, north row, west column."""
    th, s = view.th, view.s
    (letter,) = th.load(view.refs["c"], t - view.lane, 1, view.triple, s.steps)
    base = (view.triple * s.blocks[1] + view.block[1]) * s.steps + t
    north = ()
    for x in range(0, s.columns, 4):
        at = view.lane * 4 + x * 32
        north += fetch(th, view.refs["north"], at, 4, base, 32 * s.columns)
    base = (view.triple * s.strips + view.strip) * s.steps + t
    west = ()
    for x in range(0, s.slot, 4):
        west += fetch(th, view.refs["west"], th.splat(x), 4, base, s.slot)
    return letter, north, (west[0], *west[4:])


def _step(view, start, n, carry):
    """One layer of the tile: R x C cells at k = t - lane."""
    th, s = view.th, view.s
    old, (north_old, west_old), (letter, north, face) = carry
    t = start + n
    ahead = _ahead(view, t + 1)
    # The lane before computed its last column for this k in the step before.
    lasts = (north_old[-1], *(row[-1] for row in old))
    edge = view.lane == 0
    west = tuple(
        jnp.where(edge, x, th.shift_up(y, 32))
        for x, y in zip(face, lasts, strict=True)
    )
    bc = ()
    for x in range(0, s.columns, 4):
        at = letter * s.sides[1] + view.lane * s.columns + x
        bc += th.load(view.profiles[0], at, 4)
    ac = ()
    for x in range(0, s.rows, 4):
        at = letter * s.sides[0] + (view.strip & (WARPS - 1)) * s.rows + x
        ac += th.load(view.profiles[1], at, 4)
    above, above_old = (west[0], *north), (west_old[0], *north_old)
    new = []
    for r in range(s.rows):
        row, row_old = [west[r + 1]], (west_old[r + 1], *old[r])
        for x in range(s.columns):
            m = jnp.maximum(above_old[x + 1] + ac[r], row_old[x + 1])
            m = jnp.maximum(row_old[x] + bc[x], m)
            both = jnp.maximum(above_old[x] + (ac[r] + bc[x]), above[x])
            m = jnp.maximum(both + view.ab[r][x], m)
            row.append(jnp.maximum(jnp.maximum(m, above[x + 1]), row[-1]))
        above, above_old = tuple(row), row_old
        new.append(tuple(row[1:]))
    _hand_on(view, t, north[-1], new)
    return tuple(new), (north, west), ahead


def _hand_on(view, t, corner, new):
    """Store the tile's last row and column for those who need them, and what is
    kept."""
    th, s = view.th, view.s
    base = (view.triple * s.blocks[1] + view.block[1]) * s.steps + t
    for x in range(0, s.columns, 4):
        at = view.lane * 4 + x * 32
        th.store(view.refs["north"], at, new[-1][x : x + 4], base, 32 * s.columns)
    place = view.triple * s.strips + view.strip
    last = (view.lane == 31).astype(jnp.int32)
    east = (corner,) * 4 + tuple(row[-1] for row in new)
    for x in range(0, s.slot, 4):
        th.store(view.refs["west"], th.splat(x), east[x : x + 4],
                 place * s.steps + t - 31, s.slot, last)  # fmt: skip
    if s.layer:
        here = (t - view.lane == view.deep + s.front).astype(jnp.int32)
        wide = s.blocks[1] * s.sides[1]
        for r, row in enumerate(new):
            for x in range(0, s.columns, 4):
                at = view.block[1] * s.sides[1] + view.lane * s.columns + x
                th.store(view.refs["layer"], at, row[x : x + 4],
                         place * s.rows + r, wide, here)  # fmt: skip
    if s.bytes:
        base = (view.triple * s.blocks[1] + view.block[1]) * s.strips + view.strip
        words = [
            low_bytes(th, *row[x : x + 4])
            for row in new
            for x in range(0, s.columns, 4)
        ]
        each = len(words)
        for x in range(0, each, 4):
            at = view.lane * 4 + x * 32
            th.store(view.refs["kept"], at, tuple(words[x : x + 4]),
                     base * s.steps + t, 32 * each)  # fmt: skip
