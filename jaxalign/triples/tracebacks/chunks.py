"""The geometry of BT1, BT2 and BT3: chunks, sub-chunks, and the bytes they need."""

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
from jaxalign.triples import engine
from jaxalign.triples.dp import recurrence
from jaxalign.triples.dp.recurrence import Box, Faces, FillOutputs, Model, TripleScoring
from jaxalign.triples.engine import padded_length
from jaxalign.triples.options import TripleRequest
from jaxalign.triples.result import Region, Triple

# s and h of Li, Ranka and Sahni, section 6.2.
CHUNK_SIZES = {"sloped": (31, 100), "layered": (47, 40)}
# BoxFill at once on a GPU, where a step of many chunks takes as long as that of one.
MAX_SEGMENTS, MAX_SEGMENT_BYTES = 32, 2**28
MAX_CHUNKS, MAX_CHUNK_BYTES = 1024, 2**30


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
        """Chunks that arrays have room for: rounded up, so that few programs are
        compiled."""
        *face, deep = self.counts
        return *map(_rounded, face), _rounded(deep) if self.cubes else 1

    @property
    def cubes(self):
        """Whether the third axis is cut, too."""
        return self.counts[2] > 1

    def sizes(self, chunks: np.ndarray):
        """Cells of chunks (n, 3) along the three axes, int32 (n, 3)."""
        ends = np.array(self.region.extent, np.int32) + 1
        steps = np.array(self.steps, np.int32)
        return np.minimum(steps, ends - chunks * steps)


def _rounded(count: int) -> int:
    """Up to a sixteenth of its power of two, and to 8."""
    step = max(1, 2 ** (max(count - 1, 1).bit_length() - 4))
    return max(8, -(-count // step) * step)


class Segment(NamedTuple):
    """The path within a chunk: from a point before it to one in it (u, v, w, state),
    in the chunk's own indices; ``begin`` is None where the path starts at the seed."""

    chunk: tuple
    begin: tuple | None
    end: tuple


def chunk_sizes(
    triple: Triple,
    chunk: int | None = None,
    height: int | None = None,
    depth: int | None = None,
) -> tuple:
    """(s, h, depth or None): those of a call, else the paper's.

    Raises
    ------
    UsageError
        Sub-chunks do not fill a chunk.
    """
    side, deep = CHUNK_SIZES[triple.schedule]
    height = height or depth or deep
    if depth and depth % height:
        raise UsageError(f"height = {height} does not divide depth = {depth}")
    return chunk or side, height, depth


def grid_of(
    triple: Triple,
    region: Region,
    traceback: str,
    side: int,
    height: int,
    depth: int | None = None,
):
    """The chunks of a region.

    Raises
    ------
    MemoryPlanError
        A chunk has more points than a 32-bit pointer can name.
    """
    if depth is None or depth > region.extent[2]:
        deep = padded_length(region.extent[2] + 2)
        depth = deep - 1
    else:
        deep = depth + 1
        height = depth if traceback == "bt1" else height
    shape = side + 1, side + 1, deep
    points = (side + 1) ** 2 * (shape[2] + height) * triple.model.states
    if points >= 2**31:
        raise MemoryPlanError(f"chunk = {side}: {points:,} points need smaller chunks")
    return Grid(triple, region, traceback, side, height, depth, shape)


def grid_for(
    triple: Triple, region: Region, request: TripleRequest, traceback: str
) -> Grid:
    """The chunks of a request; else those of the paper or, where many are filled at
    once and memory holds their faces, cubes."""
    options = request.options
    sizes = options.chunk, options.height, options.depth
    sizes = chunk_sizes(triple, *sizes)
    problem = triple, region, traceback
    if not (options.height or options.depth) and many_at_once():
        cubes = grid_of(*problem, *sizes[:1] * 3)
        if sum(grid_bytes(cubes).values()) <= request.budget:
            return cubes
    return grid_of(*problem, *sizes)


def outputs_of(grid: Grid) -> FillOutputs:
    """The outputs of a chunk's fill in phase 1."""
    return FillOutputs(
        free=grid.triple.mode == "semiglobal",
        faces=True,
        pointers=True,
        height=grid.height if grid.traceback != "bt1" or grid.cubes else 0,
        reset=grid.traceback == "bt3",
    )


def bottom_count(grid: Grid) -> int:
    """Layers w = 0, h, 2 h ... of a chunk that phase 1 stores."""
    height = outputs_of(grid).height
    return (grid.shape[2] - 1) // height + 1 if height else 0


def grid_bytes(grid: Grid) -> dict:
    """Bytes of the faces of all chunks, and of the largest fill of phases 1 and 3."""
    states, item = grid.triple.model.states, np.dtype(grid.triple.dtype).itemsize
    (rows, columns, deep), each = grid.shape, 2 * states * item
    chunk = (rows + columns) * deep + bottom_count(grid) * rows * columns
    faces = int(np.prod(grid.room, dtype=object)) * chunk * each
    first, again = _fill_bytes(grid)
    fill = max(chunks_at_once(grid) * first, segments_at_once(grid) * again)
    return {"faces": faces, "fill": fill}


def _fill_bytes(grid: Grid) -> tuple[int, int]:
    """Bytes of one fill of phases 1 and 3: faces in the order of the planes, planes,
    and in phase 3 choices."""
    states, item = grid.triple.model.states, np.dtype(grid.triple.dtype).itemsize
    (rows, columns, _), each = grid.shape, 2 * states * item
    steps = engine.FILLS[grid.triple.schedule].stored_cells(grid.shape)
    sweep = 3 * each * sum(grid.shape) * (rows + columns) + 8 * each * rows * columns
    sweep += bottom_count(grid) * rows * columns * each
    return sweep, recurrence.choice_bytes(grid.triple.model, steps) + sweep


def diagonals(grid: Grid):
    """Chunks (n, 3) of every anti-diagonal of the grid; they do not need each other."""
    every = np.indices(grid.counts).reshape(3, -1).T.astype(np.int32)
    number = every.sum(axis=1)
    order = np.argsort(number, kind="stable")
    return np.split(every[order], np.cumsum(np.bincount(number))[:-1])


def many_at_once() -> bool:
    """Whether chunks are filled together: not on a CPU, whose cores they share."""
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


# ------------------------------------------------------------------------------
# The faces of all chunks of BT1, BT2 and BT3 in a few arrays, and the fills that read
# them.
#
# A face is stored once, at the chunk that makes it: the chunk below it, beside it or
# under it reads it from there.


class FaceStore(NamedTuple):
    """H of every chunk's last layers and, as many channels again, start points.

    south (I, J, K, C, V, W), east (I, J, K, C, U, W), bottoms (I, J, K, L, C, U, V);
    ``end`` and ``begin`` (S,) are H and start points at the end of the region.
    """

    south: jax.Array
    east: jax.Array
    bottoms: jax.Array
    end: jax.Array
    begin: jax.Array


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
    words = triple.schedule, triple.model, outputs_of(grid)
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
        full((*grid.room, bottom_count(grid), 2 * states, rows, columns)),
        full((states,)),
        jnp.zeros(states, jnp.int32),
    )


@program(("static",), donate_argnames="store")
def fill(
    static: StaticGrid,
    store: FaceStore,
    padded: PaddedRegion,
    chunks: jax.Array,
    sizes: jax.Array,
    stop: jax.Array,
) -> FaceStore:
    """Fill some chunks (n, 3) of ``sizes`` (n, 3) that do not need each other."""

    def one(chunk: jax.Array, size: jax.Array):
        box, faces = _inputs(static, store, padded, chunk, size)
        fills = engine.FILLS[static.schedule]
        return fills.fill(static.model, static.outputs, box, padded.costs, faces, stop)

    filled = jax.vmap(one)(chunks, sizes)
    at = tuple(chunks.T)
    lowest = store.bottoms
    if filled.bottoms is not None:
        lowest = lowest.at[at].set(filled.bottoms)
    return FaceStore(
        store.south.at[at].set(filled.south),
        store.east.at[at].set(filled.east),
        lowest,
        filled.end[0],
        filled.begin[0].astype(jnp.int32),
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
    origin = chunk * jnp.asarray(static.steps, jnp.int32) + jnp.stack(
        [zero, zero, first]
    )
    letters = [
        lax.dynamic_slice(x, (origin[n],), (shape[n],))
        for n, x in enumerate(padded.letters)
    ]
    seed = jnp.where(jnp.all(origin == 0), jnp.asarray(padded.seed), minus)
    inside = padded.free >= 0
    free = jnp.where(inside, padded.free - origin[:, None], engine.NO_FREE_END)
    a, b, c = letters
    box = Box(a, b, c, seed, size, jnp.maximum(free, engine.NO_FREE_END))

    def face(array: jax.Array, axis: int):
        before = chunk.at[axis].add(-1)
        h = array[tuple(before)][..., :states, :, :]  # of the last one, for none
        h = jnp.where(before[axis] >= 0, h, minus)
        if above is None:
            return h
        padding = [(0, 0)] * 2 + [(0, shape[2])]
        h = jnp.pad(h, padding, constant_values=minus)
        return lax.dynamic_slice_in_dim(h, first, shape[2], axis=2)

    return box, Faces(
        face(store.south, 0), face(store.east, 1), _top(static, store, chunk, above)
    )


def _top(
    static: StaticGrid, store: FaceStore, chunk: jax.Array, above: jax.Array | None
):
    """The layer before a chunk, or before its layer ``above``; None at the table's
    edge, where chunks are as deep as it."""
    height, states = static.outputs.height, static.model.states
    if not height or (not static.cubes and above is None):
        return None
    minus = neg_inf(store.bottoms.dtype)
    before = chunk.at[2].add(-1)
    last = static.steps[2] // height if static.cubes else 0
    top = jnp.where(before[2] >= 0, store.bottoms[tuple(before)][last, :states], minus)
    if above is None:
        return top
    layer = store.bottoms[tuple(chunk)][above // height, :states]
    return jnp.where(above > 0, layer, top)


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
    fills = engine.FILLS[static.schedule]
    shape = *static.shape[:2], deep or static.shape[2]

    def one(chunk: jax.Array, above: jax.Array, end: jax.Array, seeded: jax.Array):
        first = None if deep is None and static.outputs.height == 0 else above
        box, faces = _inputs(static, store, padded, chunk, end[:3], first, deep)
        filled = fills.fill(static.model, outputs, box, padded.costs, faces, stop)
        choice_at = partial(fills.choice_at, static.model, filled.choices)
        return recurrence.walk(static.model, choice_at, end, sum(shape), seeded)

    return jax.vmap(one)(chunks, above, ends, seeded)


# ------------------------------------------------------------------------------
# BT1, BT2 and BT3, the tracebacks of Li, Ranka and Sahni: chunks whose faces stay.
#
# Section 5 of the paper: the table is cut into chunks of s x s x (lc + 1) cells, or
# into cubes, s x s x depth. Phase 1 fills them in the order of their anti-diagonals and
# stores of each the south and the east face, of a cube the bottom too, with H and the
# *local start point* of the best path to every cell there: the cell before the chunk
# where that path came in. Phase 2 goes from the end of the table along these pointers,
# chunk to chunk. Phase 3 fills again, with choices, only the chunks on the path.
#
# ===  =============================================================================
# BT1  phase 3 fills whole chunks
# BT2  also stores H on the bottoms of sub-chunks of height h; phase 3 starts at the
#      topmost sub-chunk on the path
# BT3  start points lie before the sub-chunk; phase 3 fills sub-chunks
# ===  =============================================================================


def align(grid: Grid) -> tuple[int, np.ndarray]:
    """(score, columns from start to end) of a region without an end state."""
    triple, padded = grid.triple, padded_region(grid)
    with triple.tally.timed("phase 1"):
        store = _phase1(grid, padded)
        score, state = engine.best_end(grid.region, store.end)
    with triple.tally.timed("phase 2"):
        segments = _phase2(grid, store, state, int(store.begin[state]))
    with triple.tally.timed("phase 3"):
        pieces = _phase3(grid, store, padded, segments)
    return score, np.concatenate(pieces[::-1])


def _phase1(grid: Grid, padded: PaddedRegion) -> FaceStore:
    """Fill all chunks, by their anti-diagonals, some at once."""
    static, store = static_of(grid), empty_store(grid)
    count = chunks_at_once(grid)
    stop = engine.FILLS[grid.triple.schedule].last_step
    for diagonal in diagonals(grid):
        for first in range(0, len(diagonal), count):
            chunks = diagonal[first : first + count]
            sizes = grid.sizes(chunks)
            cells = int(sizes.prod(axis=1, dtype=np.int64).sum())
            grid.triple.tally.add(cells)
            last = np.int32(max(map(stop, sizes)))
            chunks, sizes = (_fill_up(x, count) for x in (chunks, sizes))
            store = fill(static, store, padded, chunks, sizes, last)
    return jax.block_until_ready(store)


def _fill_up(rows: np.ndarray, count: int):
    """Rows up to ``count`` of them: the first again."""
    return np.concatenate([rows, np.repeat(rows[:1], count - len(rows), axis=0)])


def _phase2(grid: Grid, store: FaceStore, state: int, start: int) -> list[Segment]:
    """The path's segments from the end of the region to its start."""
    static, chunk = static_of(grid), tuple(n - 1 for n in grid.counts)
    here, segments = (*grid.sizes(np.array(chunk)).tolist(), state), []
    while True:
        begin = None
        if start != recurrence.BEGIN:
            begin = recurrence.point(start, grid.shape, grid.triple.model.states)
        segments.append(Segment(chunk, begin, here))
        if begin is None:
            return segments
        chunk, here = _owner(grid, chunk, begin)
        at = np.array(chunk, np.int32), np.array(here, np.int32)
        start = int(start_point(static, store, *at))


def _owner(grid: Grid, chunk: tuple[int, ...], at: tuple[int, int, int, int]):
    """The chunk a point belongs to, and the point in its indices."""
    *cell, state = at
    chunk = tuple(n - (x == 0) for n, x in zip(chunk, cell, strict=True))
    pairs = zip(cell, grid.steps, strict=True)
    return chunk, (*(x or step for x, step in pairs), state)


def _phase3(
    grid: Grid,
    store: FaceStore,
    padded: PaddedRegion,
    segments: list[Segment],
) -> list[np.ndarray]:
    """The columns of every segment; segments do not depend on each other."""
    count, pieces = segments_at_once(grid), []
    for first in range(0, len(segments), count):
        chunks = segments[first : first + count]
        paths = _fill_again(grid, store, padded, chunks, count)
        rows, counts = np.asarray(paths.columns), np.asarray(paths.count)
        pieces += [rows[n, : counts[n]][::-1] for n in range(len(chunks))]
    return pieces


def _fill_again(
    grid: Grid,
    store: FaceStore,
    padded: PaddedRegion,
    segments: list[Segment],
    count: int,
):
    """Fill and walk a group of segments: their chunks, or the sub-chunks on the
    path."""
    above = np.array([_above(grid, segment) for segment in segments], np.int32)
    ends = np.array([segment.end for segment in segments], np.int32)
    ends[:, 2] -= above
    for end in ends:
        grid.triple.tally.add(int(end[:3].prod(dtype=np.int64)))
    last = np.int32(max(map(engine.FILLS[grid.triple.schedule].last_step, ends[:, :3])))
    chunks = np.array([segment.chunk for segment in segments], np.int32)
    seeded = np.array([segment.begin is None for segment in segments])
    group = (_fill_up(x, count) for x in (chunks, above, ends, seeded))
    deep = grid.height + 1 if grid.traceback == "bt3" else None
    return fill_and_walk(static_of(grid), store, padded, *group, deep=deep, stop=last)


def _above(grid: Grid, segment: Segment) -> int:
    """The layer above the cells that are filled again, 0 for a whole chunk.

    Layer w belongs to sub-chunk (w - 1) // h; the path may stay on that of its begin.
    """
    if grid.traceback == "bt1":
        return 0
    w = segment.begin[2] if segment.begin and grid.traceback == "bt2" else 1
    w = segment.end[2] if grid.traceback == "bt3" else w
    return max(w - 1, 0) // grid.height * grid.height
