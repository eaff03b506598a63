"""Fill the table of three sequences by tiles of registers along the longest one.

A thread keeps R x C cells (i, j) and walks along k, the third and longest sequence. The
32 lanes of a warp stand side by side along j, lane l one step behind lane l - 1: what a
lane computed last is what the next one needs now, and goes there by ``shfl``. Four
warps of a program stand one below the other along i, each a batch of steps behind the
one above. A program takes 4 R x 32 C cells of the (i, j) face, for all k; the rows and
columns between programs go through global memory, each overwritten in place by its
reader. The rule of a cell is in ``triples.shapes``.

All in one launch, in which programs wait for those above and before them
(``exchange``): a launch for every anti-diagonal of chunks took three times as long.

Borders are data: cells outside the table hold minus infinity, letters that stand for
"none" score 0, and cell (0, 0, 0) is an input. Where gaps may be free, every row and
column of a tile has its own costs, and so has every step along k. In a search for the
best cell each thread keeps its own best, and letters that stand for "none" score so
little that no cell outside the table is better than all inside.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental.pallas import mosaic_gpu as plgpu

from kernels_pallas.core.exchange import (
    announce,
    await_number,
    fetch,
    ticket,
    uniform,
    with_byte,
)
from kernels_pallas.core.mosaic import THREADS, Threads, kernel, where
from kernels_pallas.triples.shapes import (
    BORDER_WORDS,
    MAX_CODES,
    MINUS_INFINITY,
    PAD_WORDS,
    Around,
    Arrays,
    Ends,
    Shape,
    best_size,
    bytes_size,
    cells,
    face_sizes,
    letter_scores,
    pair_scores,
    store_profiles,
)


class MarchState(NamedTuple):
    """Values that a thread carries from step to step."""

    tile: tuple
    past: Around
    east: tuple  # planes x rows: the tile's last column
    best: tuple  # the best mark, and its step along k


def fill(arrays: Arrays, s: Shape, interpret=None):
    """Fill every triple; returns (layer, score_bytes, best).

    ``layer`` (triples, states, rows, columns): skewed H (backwards: B) at k = lc, or
    without ``Shape.layer`` (triples, 1, rows, columns) the best of them;
    ``score_bytes`` int32 (triples, J, strips, steps, states, R C / 16, 32, 4): the
    lowest bytes of all H; ``best`` int32 (triples, blocks, threads, 2): the best
    ``Ends.mark`` of each thread and its k.
    """
    refs = [
        jax.new_ref(jnp.full(size, MINUS_INFINITY, jnp.int32)) for size in face_sizes(s)
    ]
    refs.append(jax.new_ref(jnp.zeros(1 + s.programs, jnp.int32)))
    run = kernel(
        partial(_program, s=s),
        [(bytes_size(s),), (best_size(s),)],
        [
            plgpu.SMEM((MAX_CODES * s.sides[1],), jnp.int32),
            plgpu.SMEM((MAX_CODES * (s.sides[0] + PAD_WORDS),), jnp.int32),
            plgpu.SMEM((4,), jnp.int32),
            plgpu.SMEM((2 * sum(s.sides) if s.free else 4,), jnp.int32),
        ],
        (s.programs,),
        ("program",),
        interpret,
        refs=refs,
    )
    score_bytes, best = run(*(x.reshape(-1) for x in arrays))
    layer = refs[2][...]
    layer = layer.reshape(s.triples, -1, *s.face) if s.planes else layer
    return layer, score_bytes, best


class TripleFillView(NamedTuple):
    """The place and inputs of a program, words a thread."""

    th: Threads
    s: Shape
    lane: jax.Array
    triple: jax.Array
    block: tuple  # of the program along i and j
    strip: jax.Array
    size: tuple  # la, lb, lc
    refs: dict
    ab: tuple  # scores of the tile's cells
    profiles: tuple  # of b and of the program's rows of a, in shared memory
    seeds: tuple
    corner: jax.Array  # whether the thread's tile begins at (0, 0)
    borders: tuple  # two indices of c with free gaps, extend
    costs: jax.Array  # of free gaps, in shared memory: D and E of rows and of columns
    skew: jax.Array  # of the tile's first cell in step 0


def _program(*refs, s: Shape):
    """Fill one chunk of the (i, j) face."""
    th, inputs = Threads(s.plain), len(Arrays._fields)
    arrays, refs = Arrays(*refs[:inputs]), refs[inputs:]
    north, west, layer, progress, score_bytes, best, of_b, of_a, word, costs = refs
    thread = th.index()
    lane = thread & (s.lanes - 1)
    own_strip = lax.shift_right_logical(thread, th.splat(s.lanes.bit_length() - 1))
    program = lax.axis_index("program")
    number = ticket(th, progress, word, program)
    item = lax.div(number, th.splat(s.triples))
    triple = number - item * s.triples
    block_i = lax.div(item, th.splat(s.blocks[1]))
    block_j = item - block_i * s.blocks[1]
    strip = block_i * s.of_program + own_strip
    size = th.load(arrays.sizes, triple * 4, 4)
    arrays = arrays._replace(scores=th.read_only(arrays.scores))
    store_profiles(th, s, arrays, (of_b, of_a), triple, (block_i, block_j))
    rows = (arrays.seeds, s.rule.seed_words), (arrays.borders, BORDER_WORDS)
    seeds, borders = (
        tuple(w for k in range(0, n, 4) for w in th.load(ref, triple * n + k, 4))
        for ref, n in rows
    )
    if s.free:
        _store_costs(th, s, costs, borders, seeds[-1], (block_i, block_j))
    skew = strip * s.rows + block_j * s.sides[1] + lane * (s.columns - 1) - s.front
    view = TripleFillView(
        th=th, s=s, lane=lane, triple=triple, block=(block_i, block_j), strip=strip,
        size=size[:3],
        refs=dict(c=th.read_only(arrays.c), north=north, west=west, layer=layer,
                  score_bytes=score_bytes),
        ab=pair_scores(th, s, arrays, triple, strip, block_j, lane),
        profiles=(of_b, of_a), seeds=seeds,
        corner=strip + block_j + lane == 0,
        borders=borders[4:7], costs=costs, skew=skew * (2 * borders[6]),
    )  # fmt: skip
    th.wait()
    view = view._replace(profiles=(th.read_only(of_b), th.read_only(of_a)))
    marks = _march(view, own_strip, thread, progress, number)
    if s.best:
        at = (triple * s.blocks[0] + block_i) * s.blocks[1] + block_j
        th.store(best, thread * 2, marks, at, 2 * THREADS)


def _store_costs(th, s, costs, borders, d, block):
    """Store D and E of a program's rows, then of its columns, in ``costs``."""
    for side, first, index in zip(s.sides, (0, 2 * s.sides[0]), (0, 1), strict=True):
        low, high = borders[2 * index : 2 * index + 2]
        for start in range(0, side, THREADS):
            at = (th.index() & (side - 1)) + start
            cell = block[index] * side + at
            free = (cell == low) | (cell == high)
            th.store(costs, at + first, (where(free, 0, d),))
            th.store(costs, at + (first + side), (where(free, borders[6], 0),))


def _start(view) -> MarchState:
    """State before the first step: minus infinity everywhere."""
    s, minus = view.s, view.th.splat(MINUS_INFINITY)
    planes = s.rule.planes
    past = Around(
        ((minus,) * s.columns,) * planes,
        ((minus,) * s.rows,) * planes,
        (minus,) * len(s.rule.corners),
    )
    tile = (((minus,) * planes,) * s.columns,) * s.rows
    return MarchState(tile, past, past.west, (view.th.splat(-1),) * 2)


def _march(view, own_strip, thread, progress, number):
    """Run all steps in batches, each strip a batch behind the one above; returns the
    thread's best mark and its k."""
    th, s = view.th, view.s
    # Batches of a program: none where it lies outside its table.
    batches = lax.div(view.size[2] + (s.lanes + s.batch - 1), th.splat(s.batch))
    inside = (view.block[0] * s.sides[0] <= view.size[0]) & (
        view.block[1] * s.sides[1] <= view.size[1]
    )
    total = where(inside, batches + (s.of_program - 1), 0)
    behind = -(-(s.lanes - 1) // s.batch)
    above = (view.block[0] > 0).astype(jnp.int32)
    before = (view.block[1] > 0).astype(jnp.int32)
    above_at = 1 + where(above != 0, number - s.blocks[1] * s.triples, 0)
    before_at = 1 + where(before != 0, number - s.triples, 0)
    first = (thread == 0).astype(jnp.int32)
    last = uniform(th, total)

    def batch(n, carry):
        seen, state = carry
        index = th.splat(n)
        need = [
            jnp.minimum(index + lead, total) * flag
            for lead, flag in ((s.of_program, above), (1 + behind, before))
        ]
        seen = tuple(
            await_number(th, progress, at, least, old)
            for at, least, old in zip((above_at, before_at), need, seen, strict=True)
        )
        state = _batch(view, (index - own_strip) * s.batch + s.front, state)
        announce(th, progress, number + 1, index + 1, first)
        return seen, state

    start = (th.splat(0), th.splat(0)), _start(view)
    _, state = lax.fori_loop(jnp.int32(0), last, batch, start)
    return state.best


def _batch(view, t, state: MarchState) -> MarchState:
    """Run a batch of steps, and wait for all warps."""
    s = view.s

    def turn(n, carry):
        for x in range(s.unroll):
            carry = _step(view, t + (n * s.unroll + x), carry)
        return carry

    letters = tuple(_letter(view, t + n) for n in range(max(s.early, 1)))
    queue = tuple(_ahead(view, t + n) for n in range(s.early))
    carry = state, (letters, queue), letter_scores(view, letters[0])
    turns = jnp.int32(s.batch // s.unroll)
    state, *_ = lax.fori_loop(jnp.int32(0), turns, turn, carry)
    view.th.wait()
    return state


def _ahead(view, t):
    """Load the inputs of step ``t``: planes above, corners, planes before."""
    th, s = view.th, view.s
    planes = s.rule.planes
    base = (view.triple * s.blocks[1] + view.block[1]) * s.steps + t
    north, west = (), ()
    for x in range(0, s.columns * planes, 4):
        at = view.lane * 4 + x * s.lanes
        north += fetch(th, view.refs["north"], at, base, s.sides[1] * planes)
    base = (view.triple * s.strips + view.strip) * s.steps + t
    for x in range(0, s.slot, 4):
        west += fetch(th, view.refs["west"], th.splat(x), base, s.slot)
    corner = west[: len(s.rule.corners)]
    return _cut(north, s.columns), corner, _cut(west[4:], s.rows)


def _letter(view, t):
    """Load the letter of step ``t``."""
    steps = view.s.steps
    return view.th.load(view.refs["c"], t - view.lane, 1, view.triple, steps)[0]


def _cut(values, size):
    return tuple(tuple(values[x : x + size]) for x in range(0, len(values), size))


def _step(view, t, carry):
    """Fill one layer of the tile: R x C cells at k = t - lane."""
    th, s = view.th, view.s
    state, (letters, queue), profile = carry
    _, *letters = *letters, _letter(view, t + max(s.early, 1))
    (north, corner, face), *queue = *queue, _ahead(view, t + s.early)
    next_profile = letter_scores(view, letters[0])
    edge = view.lane == 0

    # The lane before computed its last column for this k in the step before.
    def from_west(memory, lane):
        return jnp.where(edge, memory, th.shift_up(lane, s.lanes))

    corner = tuple(
        from_west(x, state.past.north[p][-1])
        for x, p in zip(corner, s.rule.corners, strict=True)
    )
    west = tuple(
        tuple(map(from_west, *pair)) for pair in zip(face, state.east, strict=True)
    )
    around = Around(north, west, corner)
    origin = view.corner & (t == s.front)
    parameters = origin, view.seeds[: s.rule.states], view.seeds[-1], s.backwards
    scores, ends = (view.ab, *profile), _ends(view, t)
    keep = partial(_keep_bytes, view, t) if s.bytes else None
    tile, south, east, values, tops = cells(
        s.rule, state.tile, around, state.past, scores, parameters, ends, keep
    )
    _store_faces(view, t, around, south, east)
    _store_layer(view, t, values, tops)
    best = _best(view, t, ends.mark(tops), state.best) if s.best else state.best
    later = tuple(letters), tuple(queue)
    return MarchState(tile, around, east, best), later, next_profile


def _ends(view, t):
    """How paths may begin and end in the step ``t``."""
    th, s = view.th, view.s
    low, high, extend = view.borders
    gaps = free = skew = None
    if s.free:
        k = t - view.lane - s.front
        at_border = (k == low) | (k == high)
        strip = (view.strip & (s.of_program - 1)) * s.rows
        words = []
        for first, at in ((0, strip), (2 * s.sides[0], view.lane * s.columns)):
            size = s.rows if first == 0 else s.columns
            side = s.sides[0] if first == 0 else s.sides[1]
            for start in (first, first + side):
                parts = (th.load(view.costs, at + (start + x), 4)
                         for x in range(0, size, 4))  # fmt: skip
                words.append(sum(parts, ()))
        gaps = words[0], words[2], where(at_border, 0, view.seeds[-1])
        free = words[1], words[3], where(at_border, extend, 0)
    if s.best:
        inside = t - view.lane >= s.front
        rise = 2 * extend
        first = where(inside, view.skew + t * rise, MINUS_INFINITY)
        skew = tuple(first + n * rise for n in range(s.rows + s.columns - 1))
    clamped = s.bytes and (s.rule.states > 7 or (s.free and s.rule.states > 1))
    return Ends(gaps, free, skew, s.floor, clamped)


def _best(view, t, mark, best):
    """The best mark of a thread so far and its k; of equal marks the first."""
    k = t - view.lane - view.s.front
    better = (mark > best[0]) & (k >= 0) & (k <= view.size[2])
    return where(better, mark, best[0]), where(better, k, best[1])


def _store_faces(view, t, around, south, east):
    """Store the tile's last row and column for the programs below and behind."""
    th, s = view.th, view.s
    planes = s.rule.planes
    base = (view.triple * s.blocks[1] + view.block[1]) * s.steps + t
    flat = [x for plane in south for x in plane]
    for x in range(0, len(flat), 4):
        at = view.lane * 4 + x * s.lanes
        th.store(view.refs["north"], at, tuple(flat[x : x + 4]), base,
                 s.sides[1] * planes)  # fmt: skip
    place = (view.triple * s.strips + view.strip) * s.steps + t - (s.lanes - 1)
    last = (view.lane == s.lanes - 1).astype(jnp.int32)
    corners = [around.north[p][-1] for p in s.rule.corners]
    flat = (corners * 4)[:4] + [x for plane in east for x in plane]
    for x in range(0, s.slot, 4):
        th.store(view.refs["west"], th.splat(x), tuple(flat[x : x + 4]), place,
                 s.slot, last)  # fmt: skip


def _store_layer(view, t, values, tops):
    """Store the layer k = lc, or its best."""
    th, s = view.th, view.s
    in_layer = (t - view.lane == view.size[2] + s.front).astype(jnp.int32)
    at = view.block[1] * s.sides[1] + view.lane * s.columns

    for q in range(s.planes):
        base = (view.triple * s.planes + q) * s.face[0] + view.strip * s.rows
        for r in range(s.rows):
            for x in range(0, s.columns, 4):
                row = (values[r * s.columns + x + n][q] if s.layer else tops[r][x + n]
                       for n in range(4))  # fmt: skip
                th.store(view.refs["layer"], at + x, tuple(row), base + r, s.face[1],
                         in_layer)  # fmt: skip


def _keep_bytes(view, t, row, cell):
    """Pack the bytes of one more cell of a tile and store what is whole: words of four
    cells of a row, in each state, or of the only one the lowest two bytes. ``row`` has
    the cells so far, words not stored yet, and those of the row that fills."""
    th, s = view.th, view.s
    count, whole, words = row or (0, (), ())
    kinds = [(n, 0) if s.rule.states > 1 else (0, n) for n in range(s.stored)]
    place = count % 4
    if place == 0:
        words = tuple(cell[q] for q, _ in kinds)
    words = tuple(
        with_byte(th, word, cell[q], place, byte) if place or byte else word
        for word, (q, byte) in zip(words, kinds, strict=True)
    )
    if place < 3:
        return count + 1, whole, words
    base = (view.triple * s.blocks[1] + view.block[1]) * s.strips + view.strip
    base, first = base * s.steps + t, (count + 1) // 4 * s.stored
    whole += words
    first -= len(whole)
    while len(whole) >= 4:
        at = view.lane * 4 + first * s.lanes
        th.store(view.refs["score_bytes"], at, whole[:4], base, s.step_words)
        whole, first = whole[4:], first + 4
    return count + 1, whole, ()
