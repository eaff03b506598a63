"""One triple on the device: boxes of it, filled and walked; see ``triples.dp.boxes``.

Inside, the sequences are ordered by length, the longest last: planes are kept over
the two shortest, and ties depend on that order, not on the caller's.
"""

import time
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxalign.affine import Gaps, neg_inf
from jaxalign.triples import gpu
from jaxalign.triples.dp import boxes, choice_walk, layers, planes
from jaxalign.triples.dp.boxes import Box, Costs, Want
from jaxalign.triples.dp.recurrence import Model, backwards, matrices_in

FILLS = {"sloped": planes, "layered": layers}
NO_INDEX = -9  # no free end here
# A fill whose progress is watched goes in so many pieces, or in pieces of so many cells
# where that makes fewer.
PIECE_CELLS, PIECES = 2**22, 50


@dataclass(frozen=True, eq=False)
class Triple:
    """A triple in an order of its axes; ``order[n]`` is the caller's number of axis n.

    ``matrices`` are the scores (A, A) of the pairs ab, ac, bc of this order, ``cost``
    the scaled (open, extend); ``done`` collects cells and seconds of all orders.
    """

    codes: tuple
    order: tuple
    matrices: tuple
    cost: tuple
    dtype: str
    model: Model
    mode: str
    schedule: str
    kernels: Any = (
        None  # ``kernels_pallas.triples.api`` where it does what there is to do
    )
    done: dict = field(default_factory=dict)

    @contextmanager
    def timed(self, phase: str):
        """Add the seconds of a block to those of a phase."""
        began = time.perf_counter()
        yield
        seconds = self.done.setdefault("seconds", {})
        seconds[phase] = seconds.get(phase, 0.0) + time.perf_counter() - began

    @cached_property
    def lengths(self):
        a, b, c = self.codes
        return len(a), len(b), len(c)

    def reordered(self, order) -> "Triple":
        """The same triple with axis n taken from axis ``order[n]``."""
        return replace(
            self,
            codes=tuple(self.codes[n] for n in order),
            order=tuple(self.order[n] for n in order),
            matrices=matrices_in(order, self.matrices),
        )

    @property
    def costs(self) -> Costs:
        gaps = Gaps(*(jnp.asarray(cost, self.dtype) for cost in self.cost))
        return Costs(*(jnp.asarray(m, self.dtype) for m in self.matrices), gaps)


@dataclass(frozen=True)
class Part:
    """The cells from ``low`` to ``high``, both included, of a triple's table, entered
    in state ``start`` and left in state ``end`` (None: any)."""

    low: tuple
    high: tuple
    start: int = 0
    end: int | None = None

    @cached_property
    def extent(self):
        """Residues of each axis that the part consumes."""
        (a, b, c), (to_a, to_b, to_c) = self.low, self.high
        return to_a - a, to_b - b, to_c - c


NOTHING = Part((0, 0, 0), (0, 0, 0))


def whole(triple: Triple) -> Part:
    return Part((0, 0, 0), triple.lengths)


def padded(count: int) -> int:
    """``count`` rounded up to sixteenths of its power of two, and to 16: few shapes
    are compiled, little of a plane is in vain."""
    step = max(16, 2 ** (max(count - 1, 1).bit_length() - 4))
    return -(-count // step) * step


def shape_of(part: Part) -> tuple[int, int, int]:
    """Axes of the box that holds a part."""
    u, v, w = (padded(extent + 2) for extent in part.extent)
    return u, v, w


def box_of(triple: Triple, part: Part, seed, shape=None, reverse=False) -> Box:
    """A part as a box; reversed, cell (1, 1, 1) is ``part.high``."""
    shape = shape or shape_of(part)
    letters, free = [], []
    for n, (low, high) in enumerate(zip(part.low, part.high, strict=True)):
        codes = triple.codes[n][low:high][:: -1 if reverse else 1]
        row = np.zeros(shape[n], np.int32)
        row[2 : len(codes) + 2] = codes
        letters.append(row)
        ends = (0, len(triple.codes[n])) if triple.mode == "semiglobal" else ()
        at = [high - x + 1 if reverse else x - low + 1 for x in ends]
        free.append(at or [NO_INDEX] * 2)
    size = np.array(part.extent, np.int32) + 1
    return Box(*letters, seed, size, np.array(free, np.int32))


def seed_of(triple: Triple, states) -> np.ndarray:
    """0 in the given states (None: all of them), minus infinity elsewhere."""
    minus = neg_inf(jnp.dtype(triple.dtype))
    seed = np.full(triple.model.states, minus, triple.dtype)
    seed[slice(None) if states is None else list(states)] = 0
    return seed


@partial(jax.jit, static_argnames=("schedule", "model", "want"))
def fill(schedule, model, want, box, costs, faces=None):
    return FILLS[schedule].fill(model, want, box, costs, faces)


@partial(jax.jit, static_argnames=("schedule", "model", "want"))
def begin(schedule, model, want, box, costs):
    return FILLS[schedule].begin(model, want, box, costs, None)


@partial(
    jax.jit, static_argnames=("schedule", "model", "want"), donate_argnames="state"
)
def advance(schedule, model, want, box, costs, state, first, last):
    room = FILLS[schedule]
    return room.advance(model, want, box, costs, None, state, first, last)


@partial(jax.jit, static_argnames=("schedule", "model", "want"))
def finish(schedule, model, want, box, state):
    return FILLS[schedule].finish(model, want, box, state)


@partial(jax.jit, static_argnames=("schedule", "model", "longest"))
def walk(schedule, model, choices, begin, seeded, longest):
    choice_at = partial(FILLS[schedule].choice_at, model, choices)
    return choice_walk.walk(model, choice_at, begin, longest, seeded=seeded)


def sweep(triple: Triple, part: Part, reverse=False, **what):
    """Fill a part, forwards from its start or backwards from its end."""
    if triple.kernels and any(part.extent) and what.get("layer"):
        count(triple, part.extent)
        return gpu.layer(triple, part, reverse)
    states = (part.end,) if part.end is not None else None
    seed = seed_of(triple, states if reverse else (part.start,))
    box = box_of(triple, part, seed, reverse=reverse)
    want = Want(free=triple.mode == "semiglobal", **what)
    model = backwards(triple.model) if reverse else triple.model
    what = triple.schedule, model, want, box, triple.costs
    cells = prod(n + 1 for n in part.extent)
    pieces = min(PIECES, cells // PIECE_CELLS)
    if not triple.done.get("progress") or pieces < 2:
        count(triple, part.extent)
        return fill(*what)
    return _in_pieces(triple, cells, pieces, what)


def _in_pieces(triple: Triple, cells: int, pieces: int, what):
    """A fill that tells how far it is, and can be interrupted, after each piece."""
    first, last = FILLS[triple.schedule].steps(what[3].size)
    ends = np.linspace(first - 1, last, pieces + 1).astype(np.int32)
    before, state = triple.done["cells"], begin(*what)
    for n in range(pieces):
        state = advance(*what, state, ends[n] + 1, ends[n + 1])
        jax.block_until_ready(state)
        triple.done["cells"] = before + cells * (n + 1) // pieces
        triple.done["progress"](triple.done["cells"])
    return finish(*what[:4], state)


def count(triple: Triple, extent) -> None:
    """Note the cells of a fill, and tell whoever listens."""
    a, b, c = extent
    count_cells(triple, (a + 1) * (b + 1) * (c + 1))


def count_cells(triple: Triple, cells: int) -> None:
    """``count``, of cells."""
    triple.done["cells"] = triple.done.get("cells", 0) + cells
    if triple.done.get("progress"):
        triple.done["progress"](triple.done["cells"])


def best_end(part: Part, end) -> tuple[int, int]:
    """(score, state) at the end of a part from H of its states there."""
    end = np.asarray(end)
    state = int(end.argmax()) if part.end is None else part.end
    return int(end[state]), state


def score(triple: Triple, part: Part) -> int:
    """The score of a part, nothing kept."""
    if triple.kernels:
        count(triple, part.extent)
        return gpu.solved([triple], [part], False)[0][0]
    return best_end(part, sweep(triple, part).end)[0]


def best_cell(triple: Triple, part: Part, reverse=False):
    """(score, cell) of the best local end, or going back the best local start."""
    filled = sweep(triple, part, reverse, **best_wanted(triple, reverse))
    return found_cell(part, filled.best, filled.best_w, reverse)


def best_wanted(triple: Triple, reverse: bool) -> dict:
    """Ends are sought in all states; a start has all residues before it, state 0."""
    states = 1 if reverse else triple.model.states
    return {"local": not reverse, "best": states}


def found_cell(part: Part, best, best_w, reverse):
    """(score, cell of the table) of the greatest ``best`` within a part."""
    rows, columns, _ = (extent + 2 for extent in part.extent)
    inside = np.asarray(best)[1:rows, 1:columns]
    u, v = (int(n) + 1 for n in np.unravel_index(inside.argmax(), inside.shape))
    near, sign = (part.high, -1) if reverse else (part.low, 1)
    steps = u - 1, v - 1, int(best_w[u, v]) - 1
    cell = tuple(n + sign * step for n, step in zip(near, steps, strict=True))
    return int(inside[u - 1, v - 1]), cell


def local_part(triple: Triple) -> tuple[int, Part]:
    """(score, the part that a best local alignment covers), by two sweeps."""
    score, high = best_cell(triple, whole(triple))
    if score <= 0:
        return 0, NOTHING
    low = best_cell(triple, Part((0, 0, 0), high), reverse=True)[1]
    return score, Part(low, high)


def store_bytes(triple: Triple, part: Part) -> int:
    """Device bytes of ``stored``: the choices of all planes or layers, and planes."""
    if triple.kernels:
        return gpu.bytes_of(triple, part, paths=True)
    shape = shape_of(part)
    steps = FILLS[triple.schedule].stored_cells(shape)
    return boxes.choice_bytes(triple.model, steps) + sweep_bytes(triple, part)


def sweep_bytes(triple: Triple, part: Part) -> int:
    """Device bytes of a fill that keeps nothing but one layer."""
    if triple.kernels:
        return gpu.bytes_of(triple, part, paths=False)
    u, v, w = shape_of(part)
    item, states = np.dtype(triple.dtype).itemsize, triple.model.states
    scores = u * (u + 2 * v + w) + v * (2 * u + v + w)
    return item * (10 * states * u * v + scores)


def stored(triple: Triple, part: Part) -> tuple[int, np.ndarray]:
    """(score, columns from start to end) of a part, with all its choices kept."""
    if triple.kernels:
        count(triple, part.extent)
        return gpu.stored(triple, part)
    with triple.timed("fill"):
        filled = sweep(triple, part, choices=True)
        score, state = best_end(part, filled.end)
    with triple.timed("walk"):
        begin = np.array([*(n + 1 for n in part.extent), state], np.int32)
        return score, walked(triple, filled.choices, begin)[0]


def walked(triple: Triple, choices, begin, seeded=True, longest=None):
    """(columns from start to end, the point where the walk ended)."""
    longest = longest or padded(int(begin[:3].sum()))
    found = walk(triple.schedule, triple.model, choices, begin, seeded, longest)
    return np.asarray(found.columns)[: int(found.count)][::-1], np.asarray(found.at)
