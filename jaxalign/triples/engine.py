"""One triple on the device: regions of its table as boxes (``dp.recurrence``), and
their fills.

Inside, the sequences are ordered by length, the longest last: planes lie over
the two shortest, and ties depend on that order, not on the caller's.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from queue import SimpleQueue
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxalign.affine import neg_inf
from jaxalign.runtime.devices import precision
from jaxalign.runtime.programs import program
from jaxalign.triples import gpu
from jaxalign.triples.dp import layers, planes
from jaxalign.triples.dp.recurrence import (
    Box,
    Carry,
    FillOutputs,
    FillProblem,
    Model,
    TripleScoring,
    backwards,
)
from jaxalign.triples.result import Region, Triple, batch_of, free_ends
from jaxalign.triples.result import whole as whole

FILLS = {"sloped": planes, "layered": layers}
# A fill whose progress is watched goes in so many pieces, or in pieces of so many cells
# where that makes fewer.
MIN_PIECE_CELLS, MAX_PIECES = 2**22, 50


def padded_length(count: int) -> int:
    """``count`` rounded up to sixteenths of its power of two, and to 16: few shapes
    are compiled, little of a plane is in vain."""
    step = max(16, 2 ** (max(count - 1, 1).bit_length() - 4))
    return -(-count // step) * step


def shape_of(region: Region) -> tuple[int, int, int]:
    """Axes of the box that holds a region."""
    return shape_of_extent(region.extent)


def shape_of_extent(extent: Iterable[int]) -> tuple[int, int, int]:
    """Axes of the box that holds so many residues of each sequence."""
    u, v, w = (padded_length(count + 2) for count in extent)
    return u, v, w


def box_of(
    triple: Triple,
    region: Region,
    seed: np.ndarray,
    shape: tuple[int, ...] | None = None,
    reverse: bool = False,
) -> Box:
    """A region as a box; reversed, cell (1, 1, 1) is ``region.high``."""
    shape = shape or shape_of(region)
    letters = []
    for n, (low, high) in enumerate(zip(region.low, region.high, strict=True)):
        codes = triple.codes[n][low:high][:: -1 if reverse else 1]
        row = np.zeros(shape[n], np.int32)
        row[2 : len(codes) + 2] = codes
        letters.append(row)
    size = np.array(region.extent, np.int32) + 1
    free = np.array(free_ends(triple, region, reverse), np.int32).T + 1
    a, b, c = letters
    return Box(a, b, c, seed, size, free)


def seed_of(triple: Triple, states: Iterable[int] | None) -> np.ndarray:
    """0 in some states (None: in all of them), minus infinity elsewhere."""
    minus = neg_inf(jnp.dtype(triple.dtype))
    seed = np.full(triple.model.states, minus, triple.dtype)
    seed[slice(None) if states is None else list(states)] = 0
    return seed


class FillForm(NamedTuple):
    """The static part of a fill, for which it is compiled."""

    schedule: str
    model: Model
    outputs: FillOutputs


@program(("form",))
def fill(form: FillForm, box: Box, costs: TripleScoring):
    """``fill`` of the planes or layers, compiled for each shape; so are the next three,
    the same fill in pieces."""
    return FILLS[form.schedule].fill(*form[1:], box, costs, None)


@program(("form",))
def begin(form: FillForm, box: Box, costs: TripleScoring):
    return FILLS[form.schedule].begin(FillProblem(*form[1:], box, costs))


@program(("form",), donate_argnames="state")
def advance(
    form: FillForm,
    box: Box,
    costs: TripleScoring,
    state: Carry,
    first: jax.Array,
    last: jax.Array,
):
    problem = FillProblem(*form[1:], box, costs)
    return FILLS[form.schedule].advance(problem, state, first, last)


@program(("form",))
def finish(form: FillForm, box: Box, costs: TripleScoring, state: Carry):
    return FILLS[form.schedule].finish(FillProblem(*form[1:], box, costs), state)


def sweep(triple: Triple, region: Region, reverse: bool = False, **outputs: Any):
    """Fill a region, forwards from its start or backwards from its end."""
    if triple.kernels and any(region.extent) and outputs.get("layer"):
        triple.tally.add(region.cells)
        return gpu.layer(batch_of(triple, region), reverse)
    states = (region.end,) if region.end is not None else None
    seed = seed_of(triple, states if reverse else (region.start,))
    box = box_of(triple, region, seed, reverse=reverse)
    static = FillOutputs(free=triple.mode == "semiglobal", **outputs)
    model = backwards(triple.model) if reverse else triple.model
    problem = FillForm(triple.schedule, model, static), box, triple.scoring
    tally, cells = triple.tally, region.cells
    pieces = min(MAX_PIECES, cells // MIN_PIECE_CELLS)
    if not (tally.listener or tally.saved) or pieces < 2:
        tally.add(cells)
        return fill(*problem)
    # A fill in pieces tells how far it is, and can be interrupted, after each of them.
    fills = FILLS[triple.schedule]
    steps = fills.FIRST_STEP - 1, fills.last_step(box.size)
    ends = np.linspace(*steps, pieces + 1).astype(np.int32)
    state, first, saved = begin(*problem), 0, None
    tree = jax.tree.structure(state)
    if tally.saved is not None:
        corners = triple.order, region.low, region.high, region.start, region.end
        saved = tally.saved.part("-".join(map(str, (*corners, reverse, *outputs))))
        if before := saved.all():
            first = int(before["pieces"])
            leaves = (before[f"leaf{k}"] for k in range(tree.num_leaves))
            state = jax.tree.unflatten(tree, leaves)
            tally.add(cells * first // pieces)

    def arrays(pieces_done: int) -> dict[str, np.ndarray]:
        """The fill so far, for a state."""
        leaves = {f"leaf{k}": np.array(x) for k, x in enumerate(jax.tree.leaves(state))}
        return leaves | {"pieces": np.array(pieces_done)}

    for n in range(first, pieces):
        state = advance(*problem, state, ends[n] + 1, ends[n + 1])
        jax.block_until_ready(state)
        tally.add(cells * (n + 1) // pieces - cells * n // pieces)
        if saved is not None:
            saved.put_if_due(partial(arrays, n + 1))
    if saved is not None and not outputs.get("choices"):  # which are walked at once
        saved.put(arrays(pieces))
    return finish(*problem, state)


def best_end(region: Region, end: np.ndarray | jax.Array) -> tuple[int, int]:
    """(score, state) at the end of a region from H of its states there."""
    end = np.asarray(end)
    state = int(end.argmax()) if region.end is None else region.end
    return int(end[state]), state


def score(triple: Triple, region: Region) -> int:
    """The score of a region, without its path."""
    if triple.kernels:
        triple.tally.add(region.cells)
        return int(gpu.solve(batch_of(triple, region), False).score[0])
    return best_end(region, sweep(triple, region).end)[0]


def best_cell(triple: Triple, region: Region, reverse: bool = False):
    """(score, cell) of the best local end, or going back the best local start."""
    if triple.kernels and any(region.extent):
        triple.tally.add(region.cells)
        scores, cells = gpu.best_cells(batch_of(triple, region), reverse)
        i, j, k = cells[0].tolist()
        return int(scores[0]), (i, j, k)
    filled = sweep(triple, region, reverse, **best_outputs(triple, reverse))
    best, best_w = filled.best, filled.best_w
    assert best is not None and best_w is not None  # for pyright: best_outputs
    return greatest_cell(region, best, best_w, reverse)


def best_outputs(triple: Triple, reverse: bool) -> dict:
    """Outputs of a search for local ends (all states) or starts (state 0 only)."""
    states = 1 if reverse else triple.model.states
    return {"local": not reverse, "best": states}


def greatest_cell(
    region: Region,
    best: np.ndarray | jax.Array,
    best_w: np.ndarray | jax.Array,
    reverse: bool,
):
    """(score, cell of the table) of the greatest ``best`` within a region."""
    rows, columns, _ = (extent + 2 for extent in region.extent)
    inside = np.asarray(best)[1:rows, 1:columns]
    u, v = (int(n) + 1 for n in np.unravel_index(inside.argmax(), inside.shape))
    corner, sign = (region.high, -1) if reverse else (region.low, 1)
    steps = u - 1, v - 1, int(best_w[u, v]) - 1
    cell = tuple(n + sign * step for n, step in zip(corner, steps, strict=True))
    return int(inside[u - 1, v - 1]), cell


def sweep_bytes(triple: Triple, region: Region) -> int:
    """Device bytes of a fill that gives one layer, or no more than a score."""
    if triple.kernels:
        return gpu.bytes_of(triple, region, paths=False)
    u, v, w = shape_of(region)
    item, states = np.dtype(triple.dtype).itemsize, triple.model.states
    scores = u * (u + 2 * v + w) + v * (2 * u + v + w)
    # Of each state three planes, the next one and what XLA keeps for a step; of all
    # together the best cells of a local fill, and masks.
    return item * ((10 * states + 4) * u * v + scores)


Job = tuple[int, Callable[[], Any]]  # cells, and what fills them


@contextmanager
def shared_by(
    devices: Sequence[Any], dtype: str, jobs: Sequence[Job]
) -> Iterator[Iterator[Callable[[], Any]]]:
    """Functions that wait for the results of jobs, in order: an idle device takes the
    job with the most cells. Without two devices each job begins when it is waited for.
    """
    if len(devices) < 2:
        yield (call for _, call in jobs)
        return
    idle = SimpleQueue()
    for device in devices:
        idle.put(device)

    def on_idle(call: Callable[[], Any]) -> Any:
        device = idle.get()
        try:  # threads know neither the precision nor the device of their caller
            with jax.default_device(device), precision(dtype):
                return jax.block_until_ready(call())
        finally:
            idle.put(device)

    pool = ThreadPoolExecutor(len(devices))
    heaviest = sorted(range(len(jobs)), key=lambda n: -jobs[n][0])
    futures = {n: pool.submit(on_idle, jobs[n][1]) for n in heaviest}
    try:
        yield (futures[n].result for n in range(len(jobs)))
    finally:  # also where one fails
        pool.shutdown(cancel_futures=True)
