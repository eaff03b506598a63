"""The plan of the paper's tracebacks: chunks, sub-chunks, and what they need."""

from typing import NamedTuple

import jax
import numpy as np

from jaxalign.dp import box as boxes
from jaxalign.errors import MemoryPlanError
from jaxalign.run import three
from jaxalign.run.three import Part, Triple, padded

# s and h of the paper's section 6.2.
SIZES = {"sloped": (31, 100), "layered": (47, 40)}
LARGEST_BATCH, BATCH_BYTES = 32, 2**28


class Grid(NamedTuple):
    """A part cut into chunks: ``side`` is s, ``height`` h, ``shape`` that of a box."""

    triple: Triple
    part: Part
    way: str
    side: int
    height: int
    shape: tuple

    @property
    def counts(self):
        """Chunks along the first two axes."""
        return tuple(-(-(n + 1) // self.side) for n in self.part.extent[:2])


class Segment(NamedTuple):
    """The path within a chunk: from a point before it to one in it (u, v, w, state),
    in the chunk's own indices; ``begin`` is None where the path starts at the seed."""

    chunk: tuple
    begin: tuple | None
    end: tuple


def sizes(triple: Triple, chunk=None, height=None) -> tuple[int, int]:
    """(s, h): those asked for, else the paper's."""
    side, deep = SIZES[triple.schedule]
    return chunk or side, height or deep


def grid_of(triple: Triple, part: Part, way: str, side: int, height: int) -> Grid:
    """The chunks of a part.

    Raises
    ------
    MemoryPlanError
        A chunk has more points than a 32-bit pointer can name.
    """
    shape = side + 1, side + 1, padded(part.extent[2] + 2)
    points = (side + 1) ** 2 * (shape[2] + height) * triple.model.states
    if points >= 2**31:
        raise MemoryPlanError(f"chunk = {side}: {points:,} points need smaller chunks")
    return Grid(triple, part, way, side, height, shape)


def bytes_needed(grid: Grid) -> dict:
    """Bytes kept by phase 1, and of the largest fill of phases 1 and 3."""
    states, item = grid.triple.model.states, np.dtype(grid.triple.dtype).itemsize
    rows, columns, deep = grid.shape
    chunks, each = grid.counts[0] * grid.counts[1], 2 * states * item
    faces = chunks * (rows + columns) * deep * each
    if grid.way != "bt1":
        layers = (deep - 1) // grid.height + 1
        faces += chunks * layers * rows * columns * each
    return {"faces": faces, "fill": together(grid) * _fill_bytes(grid)}


def _fill_bytes(grid: Grid) -> int:
    """Bytes of one fill: choices, faces in the order of the planes, planes."""
    states, item = grid.triple.model.states, np.dtype(grid.triple.dtype).itemsize
    (rows, columns, _), each = grid.shape, 2 * states * item
    steps = three.FILLS[grid.triple.schedule].stored_cells(grid.shape)
    fill = boxes.choice_bytes(grid.triple.model, steps)
    sweep = 3 * each * sum(grid.shape) * (rows + columns) + 8 * each * rows * columns
    return fill + sweep


def together(grid: Grid) -> int:
    """Segments filled at once in phase 3: one on a CPU, whose cores they share."""
    if jax.default_backend() == "cpu":
        return 1
    return max(1, min(LARGEST_BATCH, BATCH_BYTES // _fill_bytes(grid)))
