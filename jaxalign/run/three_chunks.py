"""The paper's tracebacks: chunks whose faces are kept, BT1, BT2 and BT3.

Li, Ranka and Sahni, section 5: the table is cut into chunks of s x s x (lc + 1)
cells. Phase 1 fills them in the order of their anti-diagonals and keeps of each the
south and the east face, with H and the *local start point* of the best path to every
cell there: the cell before the chunk where that path came in. Phase 2 goes from the
end of the table along these pointers, chunk to chunk. Phase 3 fills again, with
choices, only what lies on the path.

=====  ====================================================================
bt1    phase 3 fills whole chunks
bt2    also keeps H on the bottoms of sub-chunks of height h; phase 3 starts at the
       topmost sub-chunk on the path
bt3    start points lie before the sub-chunk; phase 3 fills sub-chunks
=====  ====================================================================
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from jaxalign.dp import box as boxes
from jaxalign.dp import walk3
from jaxalign.dp.box import Box, Faces, Want
from jaxalign.dp.recurrence import neg_inf
from jaxalign.run import three
from jaxalign.run.three_grid import Grid, Segment, together


def aligned(grid: Grid) -> tuple[int, np.ndarray]:
    """(score, columns from start to end) of a part without an end state."""
    triple = grid.triple
    with triple.timed("phase 1"):
        kept = _phase1(grid)
        score, state, start = _end(grid, kept)
    with triple.timed("phase 2"):
        segments = _phase2(grid, kept, state, start)
    with triple.timed("phase 3"):
        pieces = _phase3(grid, kept, segments)
    return score, np.concatenate(pieces[::-1])


def _phase1(grid: Grid) -> dict:
    """Chunk -> what its fill keeps, by the anti-diagonals of the chunks."""
    kept, (rows, columns) = {}, grid.counts
    for number in range(rows + columns - 1):
        first = max(0, number - columns + 1)
        for i in range(first, min(number + 1, rows)):
            chunk = i, number - i
            size = _size(grid, chunk)
            box = _box(grid, chunk, size)
            want = Want(
                free=grid.triple.mode == "semiglobal",
                faces=True,
                pointers=True,
                height=0 if grid.way == "bt1" else grid.height,
                reset=grid.way == "bt3",
            )
            three.count(grid.triple, [n - 1 for n in size])
            kept[chunk] = _fill(grid, want, box, _faces(grid, kept, chunk))
    return kept


def _fill(grid, want, box, faces):
    triple = grid.triple
    return three.fill(triple.schedule, triple.model, want, box, triple.costs, faces)


def _size(grid: Grid, chunk):
    """Cells of a chunk along the three axes."""
    pairs = zip(grid.part.extent[:2], chunk, strict=True)
    sides = (min(grid.side, n + 1 - at * grid.side) for n, at in pairs)
    return *sides, grid.part.extent[2] + 1


def _box(grid: Grid, chunk, size, above=0, deep=None) -> Box:
    """The box of a chunk from layer ``above`` on: letters, free ends and, in the first
    chunk, the seed."""
    origin = chunk[0] * grid.side, chunk[1] * grid.side, above
    wide = tuple(
        o + n
        for o, n in zip(origin, (*grid.shape[:2], deep or grid.shape[2]), strict=True)
    )
    whole = three.box_of(grid.triple, grid.part, np.zeros(0), _covering(grid, wide))
    letters = (x[o:end] for x, o, end in zip(whole[:3], origin, wide, strict=True))
    states = (grid.part.start,) if origin == (0, 0, 0) else ()
    size = np.array([*size[:2], size[2] - above], np.int32)
    free = np.where(whole.free >= 0, whole.free - np.array(origin)[:, None], -9)
    seed = three.seed_of(grid.triple, states)
    return Box(*letters, seed, size, np.maximum(free, -9).astype(np.int32))


def _covering(grid, wide):
    """A shape that holds the part and a box that ends at ``wide``."""
    pairs = zip(grid.part.extent, wide, strict=True)
    return tuple(max(extent + 2, end) for extent, end in pairs)


def _faces(grid: Grid, kept, chunk, above=0, deep=None) -> Faces:
    """The layers before a chunk from layer ``above`` on, out of its neighbours'."""
    i, j = chunk
    states, minus = grid.triple.model.states, neg_inf(jnp.dtype(grid.triple.dtype))

    def face(neighbour, name):
        if neighbour not in kept:
            full = (states, grid.side + 1, deep or grid.shape[2])
            return np.full(full, minus, grid.triple.dtype)
        whole = getattr(kept[neighbour], name)[:states]
        return _slice(whole, above, deep, minus) if deep else whole

    return Faces(face((i - 1, j), "south"), face((i, j - 1), "east"), None)


def _slice(face, above, deep, minus):
    """Layers ``above`` to ``above`` + ``deep`` of a face."""
    padded = jnp.pad(face, ((0, 0), (0, 0), (0, deep)), constant_values=minus)
    return padded[:, :, above : above + deep]


def _end(grid: Grid, kept):
    """(score, state, pointer) at the end of the part."""
    last = kept[tuple(n - 1 for n in grid.counts)]
    score, state = three.best_end(grid.part, last.end)
    return score, state, int(last.begin[state])


def _phase2(grid: Grid, kept, state, start) -> list[Segment]:
    """The path's segments from the end of the part to its start."""
    chunk = tuple(n - 1 for n in grid.counts)
    here, segments = (*_size(grid, chunk), state), []
    while True:
        begin = None
        if start != boxes.BEGIN:
            begin = boxes.point(start, grid.shape, grid.triple.model.states)
        segments.append(Segment(chunk, begin, here))
        if begin is None:
            return segments
        chunk, here = _owner(grid, chunk, begin)
        start = _pointer(grid, kept[chunk], here)


def _owner(grid: Grid, chunk, at):
    """The chunk a point belongs to, and the point in its indices."""
    u, v, w, state = at
    i, j = chunk[0] - (u == 0), chunk[1] - (v == 0)
    return (i, j), (u or grid.side, v or grid.side, w, state)


def _pointer(grid: Grid, filled, at) -> int:
    """The local start point kept for a cell of a face."""
    u, v, w, state = at
    channel = grid.triple.model.states + state
    if u == grid.side:
        return int(filled.south[channel, v, w])
    if v == grid.side:
        return int(filled.east[channel, u, w])
    return int(filled.bottoms[w // grid.height, channel, u, v])


def _phase3(grid: Grid, kept, segments) -> list[np.ndarray]:
    """The columns of every segment; segments do not depend on each other."""
    count, pieces = together(grid), []
    for first in range(0, len(segments), count):
        group = segments[first : first + count]
        full = group + group[:1] * (count - len(group))
        made = [_again(grid, kept, segment) for segment in full]
        walked = _fill_again(grid, *zip(*made, strict=True))
        rows, counts = np.asarray(walked.columns), np.asarray(walked.count)
        pieces += [rows[n, : counts[n]][::-1] for n in range(len(group))]
    return pieces


def _again(grid: Grid, kept, segment: Segment):
    """(box, faces, end of the path, whether it starts at the seed) of a segment: its
    chunk, or the sub-chunks on the path."""
    u, v, w, state = segment.end
    above, deep = _layers(grid, segment)
    faces = _faces(grid, kept, segment.chunk, above, deep)
    if grid.way != "bt1":
        bottoms = kept[segment.chunk].bottoms
        layer = bottoms[above // grid.height, : grid.triple.model.states]
        faces = faces._replace(top=layer)
    box = _box(grid, segment.chunk, (u, v, w), above, deep)
    three.count(grid.triple, [u - 1, v - 1, w - above - 1])
    end = np.array([u, v, w - above, state], np.int32)
    return box, faces, end, np.array(segment.begin is None)


def _fill_again(grid: Grid, box, faces, end, seeded):
    """Fill a group of segments with choices, and walk each."""
    want = Want(free=grid.triple.mode == "semiglobal", choices=True)
    stop = three.FILLS[grid.triple.schedule].last_step
    last = max(stop(one.size) for one in box)
    stacked = (jax.tree.map(lambda *x: jnp.stack(x), *each) for each in (box, faces))
    box, faces = stacked
    what = grid.triple.schedule, grid.triple.model, want, box, grid.triple.costs, faces
    return _refill(*what, np.stack(end), np.stack(seeded), last)


@partial(jax.jit, static_argnames=("schedule", "model", "want"))
def _refill(schedule, model, want, box, costs, faces, end, seeded, last):
    room = three.FILLS[schedule]
    longest = sum(letters.shape[1] for letters in box[:3])

    def one(box, faces, end, seeded):
        choices = room.fill(model, want, box, costs, faces, last).choices
        choice_at = partial(room.choice_at, model, choices)
        return walk3.walk(model, choice_at, end, longest, seeded)

    return jax.vmap(one)(box, faces, end, seeded)


def _layers(grid: Grid, segment: Segment):
    """(the layer above, layers of the box, None for a whole chunk).

    Layer w belongs to sub-chunk (w - 1) // h; the path may stay on that of its begin.
    """
    if grid.way == "bt1":
        return 0, None
    w = segment.begin[2] if segment.begin else 1
    if grid.way == "bt2":
        return max(w - 1, 0) // grid.height * grid.height, grid.shape[2]
    return (segment.end[2] - 1) // grid.height * grid.height, grid.height + 1
