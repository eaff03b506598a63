"""The geometry of BT1, BT2 and BT3: chunks, sub-chunks, and the bytes they need."""

from typing import NamedTuple

import numpy as np

from jaxalign.errors import MemoryPlanError, UsageError
from jaxalign.runtime.devices import first_device
from jaxalign.triples import engine
from jaxalign.triples.dp import boxes
from jaxalign.triples.dp.boxes import FillOutputs
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
    return sweep, boxes.choice_bytes(grid.triple.model, steps) + sweep


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
