"""The paper's tracebacks: chunks whose faces are kept, BT1, BT2 and BT3.

Li, Ranka and Sahni, section 5: the table is cut into chunks of s x s x (lc + 1)
cells, or into cubes, s x s x depth. Phase 1 fills them in the order of their
anti-diagonals and keeps of each the south and the east face, of a cube the bottom too,
with H and the *local start point* of the best path to every cell there: the cell
before the chunk where that path came in. Phase 2 goes from the end of the table along
these pointers, chunk to chunk. Phase 3 fills again, with choices, only what lies on the
path.

=====  ====================================================================
bt1    phase 3 fills whole chunks
bt2    also keeps H on the bottoms of sub-chunks of height h; phase 3 starts at the
       topmost sub-chunk on the path
bt3    start points lie before the sub-chunk; phase 3 fills sub-chunks
=====  ====================================================================
"""

import jax
import numpy as np

from jaxalign.triples import engine
from jaxalign.triples.dp import boxes
from jaxalign.triples.tracebacks import chunk_faces
from jaxalign.triples.tracebacks.chunk_grid import (
    Grid,
    Segment,
    diagonals,
    group,
    together,
)


def aligned(grid: Grid) -> tuple[int, np.ndarray]:
    """(score, columns from start to end) of a part without an end state."""
    triple, whole = grid.triple, chunk_faces.whole_of(grid)
    with triple.timed("phase 1"):
        kept = _phase1(grid, whole)
        score, state = engine.best_end(grid.part, kept.end)
    with triple.timed("phase 2"):
        segments = _phase2(grid, kept, state, int(kept.begin[state]))
    with triple.timed("phase 3"):
        pieces = _phase3(grid, kept, whole, segments)
    return score, np.concatenate(pieces[::-1])


def _phase1(grid: Grid, whole) -> chunk_faces.Kept:
    """Fill all chunks, by their anti-diagonals, some at once."""
    cut, kept, count = chunk_faces.cut_of(grid), chunk_faces.nothing(grid), group(grid)
    stop = engine.FILLS[grid.triple.schedule].last_step
    for diagonal in diagonals(grid):
        for first in range(0, len(diagonal), count):
            some = diagonal[first : first + count]
            sizes = grid.sizes(some)
            cells = int(sizes.prod(axis=1, dtype=np.int64).sum())
            engine.count_cells(grid.triple, cells)
            last = np.int32(max(map(stop, sizes)))
            some, sizes = (_filled_up(x, count) for x in (some, sizes))
            kept = chunk_faces.fill(cut, kept, whole, some, sizes, last)
    return jax.block_until_ready(kept)


def _filled_up(rows, count):
    """Rows up to ``count`` of them: the first again."""
    return np.concatenate([rows, np.repeat(rows[:1], count - len(rows), axis=0)])


def _phase2(grid: Grid, kept, state, start) -> list[Segment]:
    """The path's segments from the end of the part to its start."""
    cut, chunk = chunk_faces.cut_of(grid), tuple(n - 1 for n in grid.counts)
    here, segments = (*grid.sizes(np.array(chunk)).tolist(), state), []
    while True:
        begin = None
        if start != boxes.BEGIN:
            begin = boxes.point(start, grid.shape, grid.triple.model.states)
        segments.append(Segment(chunk, begin, here))
        if begin is None:
            return segments
        chunk, here = _owner(grid, chunk, begin)
        at = np.array(chunk, np.int32), np.array(here, np.int32)
        start = int(chunk_faces.start_point(cut, kept, *at))


def _owner(grid: Grid, chunk, at):
    """The chunk a point belongs to, and the point in its indices."""
    *cell, state = at
    chunk = tuple(n - (x == 0) for n, x in zip(chunk, cell, strict=True))
    pairs = zip(cell, grid.steps, strict=True)
    return chunk, (*(x or step for x, step in pairs), state)


def _phase3(grid: Grid, kept, whole, segments) -> list[np.ndarray]:
    """The columns of every segment; segments do not depend on each other."""
    count, pieces = together(grid), []
    for first in range(0, len(segments), count):
        some = segments[first : first + count]
        walked = _again(grid, kept, whole, some, count)
        rows, counts = np.asarray(walked.columns), np.asarray(walked.count)
        pieces += [rows[n, : counts[n]][::-1] for n in range(len(some))]
    return pieces


def _again(grid: Grid, kept, whole, segments, count):
    """Fill and walk a group of segments: their chunks, or the sub-chunks on the
    path."""
    above = np.array([_above(grid, segment) for segment in segments], np.int32)
    ends = np.array([segment.end for segment in segments], np.int32)
    ends[:, 2] -= above
    for end in ends:
        engine.count(grid.triple, end[:3] - 1)
    last = np.int32(max(map(engine.FILLS[grid.triple.schedule].last_step, ends[:, :3])))
    chunks = np.array([segment.chunk for segment in segments], np.int32)
    seeded = np.array([segment.begin is None for segment in segments])
    full = (_filled_up(x, count) for x in (chunks, above, ends, seeded))
    deep = grid.height + 1 if grid.way == "bt3" else None
    return chunk_faces.again(
        chunk_faces.cut_of(grid), kept, whole, *full, deep=deep, stop=last
    )


def _above(grid: Grid, segment: Segment) -> int:
    """The layer above what is filled again, 0 for a whole chunk.

    Layer w belongs to sub-chunk (w - 1) // h; the path may stay on that of its begin.
    """
    if grid.way == "bt1":
        return 0
    w = segment.begin[2] if segment.begin and grid.way == "bt2" else 1
    w = segment.end[2] if grid.way == "bt3" else w
    return max(w - 1, 0) // grid.height * grid.height
