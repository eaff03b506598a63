"""BT1, BT2 and BT3, the tracebacks of Li, Ranka and Sahni: chunks whose faces stay.

Section 5 of the paper: the table is cut into chunks of s x s x (lc + 1) cells, or into
cubes, s x s x depth. Phase 1 fills them in the order of their anti-diagonals and stores
of each the south and the east face, of a cube the bottom too, with H and the *local
start point* of the best path to every cell there: the cell before the chunk where that
path came in. Phase 2 goes from the end of the table along these pointers, chunk to
chunk. Phase 3 fills again, with choices, only the chunks on the path.

===  =============================================================================
BT1  phase 3 fills whole chunks
BT2  also stores H on the bottoms of sub-chunks of height h; phase 3 starts at the
     topmost sub-chunk on the path
BT3  start points lie before the sub-chunk; phase 3 fills sub-chunks
===  =============================================================================
"""

import jax
import numpy as np

from jaxalign.triples import engine
from jaxalign.triples.dp import boxes
from jaxalign.triples.tracebacks import chunk_faces
from jaxalign.triples.tracebacks.chunk_grid import (
    Grid,
    Segment,
    chunks_at_once,
    diagonals,
    segments_at_once,
)


def align(grid: Grid) -> tuple[int, np.ndarray]:
    """(score, columns from start to end) of a region without an end state."""
    triple, padded = grid.triple, chunk_faces.padded_region(grid)
    with triple.tally.timed("phase 1"):
        store = _phase1(grid, padded)
        score, state = engine.best_end(grid.region, store.end)
    with triple.tally.timed("phase 2"):
        segments = _phase2(grid, store, state, int(store.begin[state]))
    with triple.tally.timed("phase 3"):
        pieces = _phase3(grid, store, padded, segments)
    return score, np.concatenate(pieces[::-1])


def _phase1(grid: Grid, padded: chunk_faces.PaddedRegion) -> chunk_faces.FaceStore:
    """Fill all chunks, by their anti-diagonals, some at once."""
    static, store = chunk_faces.static_of(grid), chunk_faces.empty_store(grid)
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
            store = chunk_faces.fill(static, store, padded, chunks, sizes, last)
    return jax.block_until_ready(store)


def _fill_up(rows: np.ndarray, count: int):
    """Rows up to ``count`` of them: the first again."""
    return np.concatenate([rows, np.repeat(rows[:1], count - len(rows), axis=0)])


def _phase2(
    grid: Grid, store: chunk_faces.FaceStore, state: int, start: int
) -> list[Segment]:
    """The path's segments from the end of the region to its start."""
    static, chunk = chunk_faces.static_of(grid), tuple(n - 1 for n in grid.counts)
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
        start = int(chunk_faces.start_point(static, store, *at))


def _owner(grid: Grid, chunk: tuple[int, ...], at: tuple[int, int, int, int]):
    """The chunk a point belongs to, and the point in its indices."""
    *cell, state = at
    chunk = tuple(n - (x == 0) for n, x in zip(chunk, cell, strict=True))
    pairs = zip(cell, grid.steps, strict=True)
    return chunk, (*(x or step for x, step in pairs), state)


def _phase3(
    grid: Grid,
    store: chunk_faces.FaceStore,
    padded: chunk_faces.PaddedRegion,
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
    store: chunk_faces.FaceStore,
    padded: chunk_faces.PaddedRegion,
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
    return chunk_faces.fill_and_walk(
        chunk_faces.static_of(grid), store, padded, *group, deep=deep, stop=last
    )


def _above(grid: Grid, segment: Segment) -> int:
    """The layer above the cells that are filled again, 0 for a whole chunk.

    Layer w belongs to sub-chunk (w - 1) // h; the path may stay on that of its begin.
    """
    if grid.traceback == "bt1":
        return 0
    w = segment.begin[2] if segment.begin and grid.traceback == "bt2" else 1
    w = segment.end[2] if grid.traceback == "bt3" else w
    return max(w - 1, 0) // grid.height * grid.height
