"""How a triple is traced back: from filled boxes to a path, by one of five names.

================  ==================================================================
``store``         the choices of all cells, and a walk; the fastest, where memory
                  holds the choices
``split``         halves the longest sequence until boxes fit, divide and conquer
``bt1, bt2, bt3`` Li, Ranka and Sahni: chunks whose faces stay, filled again along
                  the path
================  ==================================================================

**split** is Hirschberg's division for triples (Huang 1993, "Alignment of three
sequences in quadratic space"): the longest sequence is cut in the middle, the first
half is filled forwards, the second backwards, and where and in which state the two meet
is where their sum is greatest.

**bt1, bt2, bt3** are section 5 of the paper: the table is cut into chunks of s x s x
(lc + 1) cells, or into cubes, s x s x depth. Phase 1 fills them in the order of their
anti-diagonals and stores of each the south and the east face, of a cube the bottom too,
with H and the *local start point* of the best path to every cell there: the cell before
the chunk where that path came in. A face is stored once, at the chunk that makes it:
the chunk below it, beside it or under it reads it from there. Phase 2 goes from the end
of the table along these pointers, chunk to chunk. Phase 3 fills again, with choices,
only the chunks on the path.

===  =============================================================================
BT1  phase 3 fills whole chunks
BT2  also stores H on the bottoms of sub-chunks of height h; phase 3 starts at the
     topmost sub-chunk on the path
BT3  start points lie before the sub-chunk; phase 3 fills sub-chunks
===  =============================================================================
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxalign.affine import neg_inf
from jaxalign.errors import MemoryPlanError, UsageError
from jaxalign.runtime.devices import first_device
from jaxalign.runtime.programs import program
from jaxalign.triples import engine, gpu
from jaxalign.triples.dp import recurrence
from jaxalign.triples.dp.recurrence import (
    Box,
    Faces,
    FillOutputs,
    Model,
    TripleScoring,
    relabel,
    turn,
)
from jaxalign.triples.engine import FILLS, padded_length, sweep
from jaxalign.triples.options import TripleRequest
from jaxalign.triples.result import NO_FREE_END, Region, Triple, batch_of

# s and h of Li, Ranka and Sahni, section 6.2.
CHUNK_SIZES = {"sloped": (31, 100), "layered": (47, 40)}
# At once on a GPU, where a step of many chunks takes as long as that of one.
MAX_SEGMENTS, MAX_SEGMENT_BYTES = 32, 2**28
MAX_CHUNKS, MAX_CHUNK_BYTES = 1024, 2**30


def align_stored(triple: Triple, region: Region) -> tuple[int, np.ndarray]:
    """(score, columns from start to end) of a best path, by ``store``."""
    if triple.kernels:
        triple.tally.add(region.cells)
        with triple.tally.timed("fill and walk"):
            solution = gpu.solve(batch_of(triple, region), True)
            assert solution.steps is not None  # for pyright: with paths
            return int(solution.score[0]), solution.steps
    with triple.tally.timed("fill"):
        filled = sweep(triple, region, choices=True)
        score, state = engine.best_end(region, filled.end)
    with triple.tally.timed("walk"):
        end_point = np.array([*(n + 1 for n in region.extent), state], np.int32)
        longest = padded_length(int(end_point[:3].sum()))
        path = walk(triple.schedule, triple.model, filled.choices, end_point, longest)
        return score, np.asarray(path.columns)[: int(path.count)][::-1]


@program(("schedule", "model", "longest"))
def walk(
    schedule: str, model: Model, choices: jax.Array, start: jax.Array, longest: int
):
    """``recurrence.walk`` to the seed, over choices in the order of a schedule."""
    choice_at = partial(FILLS[schedule].choice_at, model, choices)
    return recurrence.walk(model, choice_at, start, longest)


def device_bytes(triple: Triple, region: Region) -> int:
    """Device bytes of ``align_stored``: the choices of all planes or layers, and
    planes."""
    if triple.kernels:
        return gpu.bytes_of(triple, region, paths=True)
    cells = FILLS[triple.schedule].stored_cells(engine.shape_of(region))
    choices = recurrence.choice_bytes(triple.model, cells)
    return choices + engine.sweep_bytes(triple, region)


def align_split(
    triple: Triple, region: Region, budget: int, devices: Sequence[Any] = ()
) -> tuple[int, np.ndarray]:
    """(score, columns from start to end) of a best path, by ``split``.

    ``budget`` bounds the bytes of one stored region; 0 divides to the end. ``devices``
    share the regions of a round, whose path does not depend on them.
    """
    triple = replace(triple, limit=budget)
    # The path in pieces: columns, or a triple and a region without its columns yet.
    score, path = None, list[Any]([(triple, region)])
    while any(isinstance(piece, tuple) for piece in path):
        pieces: list[Any] = []  # and the fills that each needs
        for piece in path:
            pieces.append((piece, ()))
            if isinstance(piece, tuple):
                ordered, part = _longest_last(*piece)
                pieces[-1] = (ordered, part), _fills_of(ordered, part, budget)
        jobs = [job for _, jobs in pieces for job in jobs]
        path = []
        with engine.shared_by(devices, triple.dtype, jobs) as results:
            for piece, jobs in pieces:
                if not jobs:
                    path.append(piece)
                    continue
                ordered, part = piece
                if len(jobs) == 1:
                    value, columns = next(results)()
                    back = [ordered.order.index(axis) for axis in triple.order]
                    path.append(np.asarray(turn(columns, back), np.uint8))
                else:
                    with triple.tally.timed("split"):
                        value, cell, state = _meeting(part, *_both(results))
                    path.append((ordered, replace(part, high=cell, end=state)))
                    path.append((ordered, replace(part, low=cell, start=state)))
                score = value if score is None else score
    assert score is not None  # for pyright: there is a region at first
    return score, np.concatenate(path)


def score_by_halves(triple: Triple, region: Region, devices: Sequence[Any]) -> int:
    """The score of a region whose halves are filled by two devices."""
    jobs = _fills_of(triple, region, 0)
    with engine.shared_by(devices, triple.dtype, jobs) as results:
        return _meeting(region, *_both(results))[0]


def _longest_last(triple: Triple, region: Region) -> tuple[Triple, Region]:
    """A region with its longest axis last: its states are those of the new order."""
    order = tuple(np.argsort(region.extent, kind="stable").tolist())
    if order == (0, 1, 2):
        return triple, region
    same = relabel(triple.model, order)
    low, high = (tuple(x[n] for n in order) for x in (region.low, region.high))
    end = None if region.end is None else same[region.end]
    return triple.reordered(order), Region(low, high, same[region.start], end)


def _fills_of(triple: Triple, region: Region, budget: int) -> list[engine.Job]:
    """The fill of a region that is stored, or those of its halves, whose last layers
    meet in the middle of axis c."""
    if region.extent[2] < 2 or device_bytes(triple, region) <= budget:
        return [(region.cells, partial(align_stored, triple, region))]
    middle = (region.low[2] + region.high[2]) // 2
    upper = replace(region, high=(*region.high[:2], middle), end=None)
    lower = replace(region, low=(*region.low[:2], middle))
    return [
        (half.cells, partial(_last_layer, triple, half, reverse))
        for half, reverse in ((upper, False), (lower, True))
    ]


def _last_layer(triple: Triple, region: Region, reverse: bool) -> jax.Array:
    layer = sweep(triple, region, reverse, layer=True).layer
    assert layer is not None  # for pyright: layer=True
    return layer


def _both(results: Iterator[Callable[[], Any]]) -> tuple[jax.Array, jax.Array]:
    """The last layers of two halves, on the device of the first."""
    f, b = next(results)(), next(results)()
    return f, b if b.devices() == f.devices() else jax.device_put(b, *f.devices())


def _meeting(region: Region, f: jax.Array, b: jax.Array):
    """(score, cell, state) of a best path where it first reaches the middle of axis c.

    F_p(i, j) is the best path from the start to (i, j, middle) in state p, B_p(i, j)
    the best way on from there; any p, i, j that maximises the sum lies on a best path.
    """
    score, at = join(f, b, np.array(region.extent[:2], np.int32))
    state, u, v = (int(n) for n in np.unravel_index(int(at), f.shape))
    middle = (region.low[2] + region.high[2]) // 2
    return int(score), (region.low[0] + u - 1, region.low[1] + v - 1, middle), state


@program()
def join(f: jax.Array, b: jax.Array, extent: jax.Array):
    """(score, flat index) of the best meeting of layers (S, U, V), the second reversed.

    Cell u of the first is cell extent + 2 - u of the second; both have one shape. Two
    minus infinities would wrap, so only reachable cells are added.
    """
    u = jnp.arange(f.shape[1], dtype=jnp.int32)
    v = jnp.arange(f.shape[2], dtype=jnp.int32)
    # What is rolled in from the other end lies outside the region.
    shifts = extent + (3 - np.array(f.shape[1:], np.int32))
    b = jnp.roll(jnp.flip(b, (1, 2)), shifts, (1, 2))
    inside = ((u >= 1) & (u <= extent[0] + 1))[None, :, None]
    inside = inside & ((v >= 1) & (v <= extent[1] + 1))[None, None, :]
    minus = neg_inf(f.dtype)
    reached = (f > minus // 2) & (b > minus // 2) & jnp.broadcast_to(inside, f.shape)
    total = jnp.where(reached, f + jnp.where(reached, b, 0), minus).ravel()
    at = jnp.argmax(total)
    return total[at], at


class Grid(NamedTuple):
    """A region cut into chunks: ``side`` is s, ``height`` h, ``depth`` the cells of a
    chunk along the third axis, ``shape`` that of a box."""

    triple: Triple
    region: Region
    traceback: str
    side: int
    height: int
    depth: int
    shape: tuple

    @property
    def steps(self):
        """Cells from a chunk to the next one of each axis."""
        return self.side, self.side, self.depth

    @property
    def counts(self):
        """Chunks along the three axes."""
        pairs = zip(self.region.extent, self.steps, strict=True)
        return tuple(-(-(n + 1) // step) for n, step in pairs)

    @property
    def room(self):
        """Chunks that arrays have room for: rounded up to a sixteenth of a power of two
        and to 8, so that few programs are compiled."""

        def rounded(count: int) -> int:
            step = max(1, 2 ** (max(count - 1, 1).bit_length() - 4))
            return max(8, -(-count // step) * step)

        *face, deep = self.counts
        return *map(rounded, face), rounded(deep) if self.cubes else 1

    @property
    def cubes(self):
        """Whether the third axis is cut, too."""
        return self.counts[2] > 1

    @property
    def outputs(self) -> FillOutputs:
        """The outputs of a chunk's fill in phase 1."""
        return FillOutputs(
            free=self.triple.mode == "semiglobal",
            faces=True,
            pointers=True,
            height=self.height if self.traceback != "bt1" or self.cubes else 0,
            reset=self.traceback == "bt3",
        )

    @property
    def bottoms(self) -> int:
        """Layers w = 0, h, 2 h ... of a chunk that phase 1 stores."""
        height = self.outputs.height
        return (self.shape[2] - 1) // height + 1 if height else 0

    def sizes(self, chunks: np.ndarray):
        """Cells of chunks (n, 3) along the three axes, int32 (n, 3)."""
        ends = np.array(self.region.extent, np.int32) + 1
        steps = np.array(self.steps, np.int32)
        return np.minimum(steps, ends - chunks * steps)


def grid_of(
    triple: Triple,
    region: Region,
    traceback: str,
    chunk: int | None = None,
    height: int | None = None,
    depth: int | None = None,
) -> Grid:
    """The chunks of a region, by default as wide and high as the paper's."""
    side, high = CHUNK_SIZES[triple.schedule]
    side, height = chunk or side, height or depth or high
    if depth and depth % height:
        raise UsageError(f"depth = {depth} must be a multiple of height = {height}")
    if depth is None or depth > region.extent[2]:
        deep = padded_length(region.extent[2] + 2)
        depth = deep - 1
    else:
        deep = depth + 1
        height = depth if traceback == "bt1" else height
    points = (side + 1) ** 2 * (deep + height) * triple.model.states
    if points >= 2**31:
        raise MemoryPlanError(
            f"chunk = {side}: a chunk has {points:,} points, more than {2**31 - 1:,}; "
            "make chunks smaller"
        )
    shape = side + 1, side + 1, deep
    return Grid(triple, region, traceback, side, height, depth, shape)


def grid_for(
    triple: Triple, region: Region, request: TripleRequest, traceback: str
) -> Grid:
    """The chunks of a request; else those of the paper or, where many are filled at
    once and memory holds their faces, cubes."""
    options, problem = request.options, (triple, region, traceback)
    if not (options.height or options.depth) and many_at_once():
        side = options.chunk or CHUNK_SIZES[triple.schedule][0]
        cubes = grid_of(*problem, side, side, side)
        if sum(grid_bytes(cubes).values()) <= request.budget:
            return cubes
    return grid_of(*problem, options.chunk, options.height, options.depth)


def grid_bytes(grid: Grid) -> dict:
    """Bytes of the faces of all chunks, and of the largest fill of phases 1 and 3."""
    states, item = grid.triple.model.states, np.dtype(grid.triple.dtype).itemsize
    (rows, columns, deep), each = grid.shape, 2 * states * item
    chunk = (rows + columns) * deep + grid.bottoms * rows * columns
    faces = int(np.prod(grid.room, dtype=object)) * chunk * each
    first, refill = _fill_bytes(grid)
    fill = max(chunks_at_once(grid) * first, segments_at_once(grid) * refill)
    return {"faces": faces, "fill": fill}


def _fill_bytes(grid: Grid) -> tuple[int, int]:
    """Bytes of one fill of phases 1 and 3: faces in the order of the planes, planes,
    and in phase 3 choices."""
    states, item = grid.triple.model.states, np.dtype(grid.triple.dtype).itemsize
    (rows, columns, _), each = grid.shape, 2 * states * item
    steps = FILLS[grid.triple.schedule].stored_cells(grid.shape)
    fill = 3 * each * sum(grid.shape) * (rows + columns) + 8 * each * rows * columns
    fill += grid.bottoms * rows * columns * each
    return fill, recurrence.choice_bytes(grid.triple.model, steps) + fill


def many_at_once() -> bool:
    """Whether boxes are filled together: not on a CPU, whose caches they share."""
    return first_device().platform != "cpu"


def chunks_at_once(grid: Grid) -> int:
    """Chunks filled at once in phase 1."""
    if not many_at_once():
        return 1
    i, j, k = (np.ones(n, np.int64) for n in grid.counts)
    widest = int(np.convolve(np.convolve(i, j), k).max())
    each = _fill_bytes(grid)[0]
    return max(1, min(widest, MAX_CHUNKS, MAX_CHUNK_BYTES // each))


def segments_at_once(grid: Grid) -> int:
    """Segments filled at once in phase 3."""
    if not many_at_once():
        return 1
    return max(1, min(MAX_SEGMENTS, MAX_SEGMENT_BYTES // _fill_bytes(grid)[1]))


class Segment(NamedTuple):
    """The path within a chunk: from a point before it to one in it (u, v, w, state),
    in the chunk's own indices; ``start`` is None where the path starts at the seed."""

    chunk: tuple
    start: tuple | None
    end: tuple


class FaceStore(NamedTuple):
    """H of every chunk's last layers and, as many channels again, start points.

    south (I, J, K, C, V, W), east (I, J, K, C, U, W), bottoms (I, J, K, L, C, U, V);
    ``end`` and ``start_points`` (S,) are H and start points at the end of the region.
    """

    south: jax.Array
    east: jax.Array
    bottoms: jax.Array
    end: jax.Array
    start_points: jax.Array


class PaddedRegion(NamedTuple):
    """A region that is cut into chunks: its letters, with padding, its free ends, and
    the ``seed`` of its first cell."""

    letters: tuple
    free: Any  # as ``seed``: of NumPy until a program takes it
    seed: Any
    costs: TripleScoring


class StaticGrid(NamedTuple):
    """The static part of a ``Grid``, for which programs are compiled."""

    schedule: str
    model: Model
    outputs: FillOutputs
    steps: tuple
    shape: tuple
    cubes: bool  # whether the third axis is cut, too


def static_of(grid: Grid) -> StaticGrid:
    """The static part of a grid."""
    triple = grid.triple
    words = triple.schedule, triple.model, grid.outputs
    return StaticGrid(*words, grid.steps, grid.shape, grid.cubes)


def padded_region(grid: Grid) -> PaddedRegion:
    """The letters of a region, with room for its last chunk's box."""
    pairs = zip(grid.room, grid.steps, grid.shape, strict=True)
    room = tuple(count * step + size + grid.height for count, step, size in pairs)
    box = engine.box_of(grid.triple, grid.region, np.zeros(0), room)
    seed = engine.seed_of(grid.triple, (grid.region.start,))
    return PaddedRegion(tuple(box[:3]), box.free, seed, grid.triple.scoring)


def empty_store(grid: Grid) -> FaceStore:
    """Faces of minus infinity, before the first chunk."""
    (rows, columns, deep), states = grid.shape, grid.triple.model.states
    dtype = jnp.dtype(grid.triple.dtype)
    full = partial(jnp.full, fill_value=neg_inf(dtype), dtype=dtype)
    return FaceStore(
        full((*grid.room, 2 * states, columns, deep)),
        full((*grid.room, 2 * states, rows, deep)),
        full((*grid.room, grid.bottoms, 2 * states, rows, columns)),
        full((states,)),
        jnp.zeros(states, jnp.int32),
    )


def align_chunks(grid: Grid) -> tuple[int, np.ndarray]:
    """(score, columns from start to end) of a region without an end state."""
    triple, padded = grid.triple, padded_region(grid)
    static, store = static_of(grid), empty_store(grid)
    last_step = FILLS[triple.schedule].last_step

    with triple.tally.timed("phase 1"):
        # Chunks of one anti-diagonal of the grid do not need each other.
        every = np.indices(grid.counts).reshape(3, -1).T.astype(np.int32)
        number = every.sum(axis=1)
        ends = np.cumsum(np.bincount(number))[:-1]
        count = chunks_at_once(grid)
        for diagonal in np.split(every[np.argsort(number, kind="stable")], ends):
            for first in range(0, len(diagonal), count):
                chunks = diagonal[first : first + count]
                sizes = grid.sizes(chunks)
                triple.tally.add(int(sizes.prod(axis=1, dtype=np.int64).sum()))
                stop = np.int32(max(map(last_step, sizes)))
                chunks, sizes = (gpu.filled_up(x, count) for x in (chunks, sizes))
                store = fill_chunks(static, store, padded, chunks, sizes, stop)
        store = jax.block_until_ready(store)
        score, state = engine.best_end(grid.region, store.end)

    with triple.tally.timed("phase 2"):
        start, segments = int(store.start_points[state]), []
        chunk = tuple(n - 1 for n in grid.counts)
        position = *grid.sizes(np.array(chunk)).tolist(), state
        while start != recurrence.BEGIN:
            point = recurrence.point(start, grid.shape, triple.model.states)
            segments.append(Segment(chunk, point, position))
            # The chunk that the point belongs to, and the point in its indices.
            *cell, state = point
            chunk = tuple(n - (x == 0) for n, x in zip(chunk, cell, strict=True))
            pairs = zip(cell, grid.steps, strict=True)
            position = *(x or step for x, step in pairs), state
            at = np.array(chunk, np.int32), np.array(position, np.int32)
            start = int(start_point(static, store, *at))
        segments.append(Segment(chunk, None, position))

    with triple.tally.timed("phase 3"):
        # Segments do not depend on each other.
        count, pieces = segments_at_once(grid), []
        for first in range(0, len(segments), count):
            group = segments[first : first + count]
            ends = np.array([segment.end for segment in group], np.int32)
            # The layer above the cells that are filled again, 0 for a whole chunk.
            # Layer w belongs to sub-chunk (w - 1) // h; the path may stay on that of
            # its start.
            w = np.ones(len(group), np.int32)
            if grid.traceback == "bt2":
                starts = (segment.start for segment in group)
                w = np.array([x[2] if x else 1 for x in starts], np.int32)
            w = ends[:, 2] if grid.traceback == "bt3" else w
            above = np.maximum(w - 1, 0) // grid.height * grid.height
            ends[:, 2] -= above
            for end in ends:
                triple.tally.add(int(end[:3].prod(dtype=np.int64)))
            stop = np.int32(max(map(last_step, ends[:, :3])))
            chunks = np.array([segment.chunk for segment in group], np.int32)
            seeded = np.array([segment.start is None for segment in group])
            rows = (gpu.filled_up(x, count) for x in (chunks, above, ends, seeded))
            deep = grid.height + 1 if grid.traceback == "bt3" else None
            paths = fill_and_walk(static, store, padded, *rows, deep=deep, stop=stop)
            columns, counts = np.asarray(paths.columns), np.asarray(paths.count)
            pieces += [columns[n, : counts[n]][::-1] for n in range(len(group))]
    return score, np.concatenate(pieces[::-1])


@program(("static",), donate_argnames="store")
def fill_chunks(
    static: StaticGrid,
    store: FaceStore,
    padded: PaddedRegion,
    chunks: jax.Array,
    sizes: jax.Array,
    stop: jax.Array,
) -> FaceStore:
    """Fill some chunks (n, 3) of ``sizes`` (n, 3) that do not need each other."""
    fill = FILLS[static.schedule].fill

    def fill_chunk(chunk: jax.Array, size: jax.Array):
        box, faces = _inputs(static, store, padded, chunk, size)
        return fill(static.model, static.outputs, box, padded.costs, faces, stop)

    filled = jax.vmap(fill_chunk)(chunks, sizes)
    at = tuple(chunks.T)
    lowest = store.bottoms
    if filled.bottoms is not None:
        lowest = lowest.at[at].set(filled.bottoms)
    return FaceStore(
        store.south.at[at].set(filled.south),
        store.east.at[at].set(filled.east),
        lowest,
        filled.end[0],
        filled.start_points[0].astype(jnp.int32),
    )


def _inputs(
    static: StaticGrid,
    store: FaceStore,
    padded: PaddedRegion,
    chunk: jax.Array,
    size: jax.Array,
    above: jax.Array | None = None,
    deep: int | None = None,
):
    """(box, faces) of a chunk; of its layers from ``above`` on, ``deep`` with the one
    before them."""
    (rows, columns, all_deep), states = static.shape, static.model.states
    minus, zero = neg_inf(store.south.dtype), jnp.zeros((), jnp.int32)
    first = zero if above is None else above
    shape = rows, columns, deep or all_deep
    steps = jnp.asarray(static.steps, jnp.int32)
    origin = chunk * steps + jnp.stack([zero, zero, first])
    a, b, c = (
        lax.dynamic_slice(x, (origin[n],), (shape[n],))
        for n, x in enumerate(padded.letters)
    )
    seed = jnp.where(jnp.all(origin == 0), jnp.asarray(padded.seed), minus)
    inside = padded.free >= 0
    free = jnp.where(inside, padded.free - origin[:, None], NO_FREE_END)
    box = Box(a, b, c, seed, size, jnp.maximum(free, NO_FREE_END))

    def face(array: jax.Array, axis: int):
        before = chunk.at[axis].add(-1)
        h = array[tuple(before)][..., :states, :, :]  # of the last one, for none
        h = jnp.where(before[axis] >= 0, h, minus)
        if above is None:
            return h
        padding = [(0, 0)] * 2 + [(0, shape[2])]
        h = jnp.pad(h, padding, constant_values=minus)
        return lax.dynamic_slice_in_dim(h, first, shape[2], axis=2)

    north, west = face(store.south, 0), face(store.east, 1)
    height = static.outputs.height
    if not height or (not static.cubes and above is None):
        return box, Faces(north, west, None)
    # The layer before a chunk, or before its layer ``above``.
    before = chunk.at[2].add(-1)
    last = static.steps[2] // height if static.cubes else 0
    top = jnp.where(before[2] >= 0, store.bottoms[tuple(before)][last, :states], minus)
    if above is not None:
        layer = store.bottoms[tuple(chunk)][above // height, :states]
        top = jnp.where(above > 0, layer, top)
    return box, Faces(north, west, top)


@program(("static",))
def start_point(static: StaticGrid, store: FaceStore, chunk: jax.Array, at: jax.Array):
    """The start point stored for a point (u, v, w, state) of a chunk's last layers."""
    (u, v, w, state), place = at, tuple(chunk)
    channel = static.model.states + state
    rows, columns = static.shape[:2]
    south, east = (x[place][channel] for x in (store.south, store.east))
    start = jnp.where(u == rows - 1, south[v, w], east[u, w])
    if static.outputs.height:
        lowest = store.bottoms[place][w // static.outputs.height, channel, u, v]
        start = jnp.where((u == rows - 1) | (v == columns - 1), start, lowest)
    return start.astype(jnp.int32)


@program(("static", "deep"))
def fill_and_walk(
    static: StaticGrid,
    store: FaceStore,
    padded: PaddedRegion,
    chunks: jax.Array,
    above: jax.Array,
    ends: jax.Array,
    seeded: jax.Array,
    deep: int | None,
    stop: jax.Array,
):
    """Fill segments once more, with choices, and walk each from its end."""
    outputs = FillOutputs(free=static.outputs.free, choices=True)
    fills = FILLS[static.schedule]
    shape = *static.shape[:2], deep or static.shape[2]

    def segment_path(
        chunk: jax.Array, above: jax.Array, end: jax.Array, seeded: jax.Array
    ):
        first = None if deep is None and static.outputs.height == 0 else above
        box, faces = _inputs(static, store, padded, chunk, end[:3], first, deep)
        filled = fills.fill(static.model, outputs, box, padded.costs, faces, stop)
        choice_at = partial(fills.choice_at, static.model, filled.choices)
        return recurrence.walk(static.model, choice_at, end, sum(shape), seeded)

    return jax.vmap(segment_path)(chunks, above, ends, seeded)
