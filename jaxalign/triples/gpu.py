"""Triples on a GPU: the fills and walks of ``kernels_pallas`` for ``triples.engine``.

``Triple.kernels`` is the package of kernels, and says that they do the work;
``refusal`` names the triples that they do not take.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxalign.affine import neg_inf
from jaxalign.errors import CertificateError, UsageError
from jaxalign.model.alphabet import ranks
from jaxalign.runtime.programs import program, stored
from jaxalign.triples.dp.recurrence import (
    BOTH,
    COLUMN_ORDER,
    FIRST_ONLY,
    SECOND_ONLY,
    SEQUENCE_PAIRS,
    BoxFill,
    Model,
    pattern,
)
from jaxalign.triples.result import Region, RegionBatch, Solution, Triple, gapped_rows

RESIDUES_OF_COLUMN = (np.arange(8)[:, None] >> np.array([2, 1, 0])) & 1  # (8, 3)
MEMORY_SHARE = 0.8  # of the device memory that JAX may have
COARSE_UP_TO_CELLS = 512  # of an axis: up to it shapes are few
# Cells of each axis of a launch, and triples, of which ``program_table`` has programs.
# All but the first and those of one triple keep a GPU busy: a triple of 256 cells has
# 32 programs. Those outside a table end at once, so what is rounded up costs memory.
# Programs are 128 columns wide, but for 64 and 192 cells: 151 columns need no 256.
ROOMS = {64: (256,), 128: (256,), 192: (128,), 256: (1, 8, 64, 128), 512: (1, 8)}
ROOMS |= {1024: (1,), 2048: (1,)}
PATHS_UP_TO_CELLS = 512  # of an axis of ``ROOMS``: paths store bytes of all cells
EVEN = 2  # times as long as the shortest sequence the longest of a cube is


def refusal(triple: Triple, kernels: Any, named: bool, paths: bool) -> str | None:
    """Name the reason why the kernels refuse a triple, or None; raise it where they
    were named. A refused triple implies refusal of longer ones with the same costs."""
    largest = int(max(np.abs(matrix).max(initial=0) for matrix in triple.matrices))
    letters, size = len(triple.matrices[0]), sum(triple.lengths)
    why = None
    if letters >= kernels.MAX_CODES:
        why = f"{letters} letters: the kernels know fewer than 32"
    elif (
        triple.dtype != "int32"
        or not kernels.reach(largest, *triple.cost, size)
        or (triple.mode == "local" and not kernels.marks_fit(largest, size))
    ):
        why = "scores beyond 32 bits"
    elif paths and not kernels.walks(
        np.stack(triple.matrices),
        *triple.cost,
        kernels.RULES[triple.model.name],
        triple.mode == "semiglobal",
    ):
        why = "scores and costs too large for the kernels' paths"
    if why and named:
        raise UsageError(f"implementation pallas: {why}")
    return why


def budget(device: Any = None) -> int:
    """Bytes of a device, by default the first one, that are free, but for a reserve."""
    stats = (device or jax.devices()[0]).memory_stats() or {}
    free = stats.get("bytes_limit", 2**32) - stats.get("bytes_in_use", 0)
    return int(MEMORY_SHARE * free)


def layer(batch: RegionBatch, reverse: bool = False) -> BoxFill:
    """``triples.engine.sweep`` of the last layer, forwards or backwards."""
    data, shape = launch(batch, False, reverse, layer=True)
    answer = stored(batch.triple.kernels.solve, ("s",))(data, s=shape)
    return _frame(answer.ends, answer.layer)


@program()
def _frame(ends: jax.Array, layer: jax.Array) -> BoxFill:
    """The first triple; cell (0, 0) of a layer of the kernels is (1, 1) of a box."""
    around = (0, 0), (1, 1), (1, 1)
    inner = jnp.pad(layer[0], around, constant_values=neg_inf(jnp.int32))
    return BoxFill(ends[0], layer=inner)


def best_cells(
    batch: RegionBatch, reverse: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """(scores, cells (n, 3)) of the best local end of each region, or start going
    back."""
    data, shape = launch(batch, False, reverse, best=True)
    best = _launched(data, shape, batch.triple).best[: len(batch)].astype(np.int64)
    steps = best[:, 1:]
    return best[:, 0], batch.high - steps if reverse else batch.low + steps


def _launched(data: Any, shape: Any, triple: Triple):
    """The results of a launch, on the host."""
    return triple.kernels.unpack_results(_rows(data, shape, triple), shape)


def _rows(data: Any, shape: Any, triple: Triple):
    """The results of a launch as the kernels pack them."""
    kernels = triple.kernels
    launched = stored(kernels.solve_packed, kernels.STATIC)
    rows = kernels.pack_triples(data, shape)
    return launched(rows, s=shape, letters=len(triple.matrices[0]), host=True)


def outlined(batch: RegionBatch, paths: bool) -> None:
    """Call the programs of ``plan.align_batch`` while an outline is drawn."""
    triple = batch.triple
    if triple.mode == "local":
        _rows(*launch(batch, False, best=True), triple)
        if not paths:
            return
        _rows(*launch(batch, False, True, best=True), triple)
        batch = replace(batch, triple=replace(triple, mode="global"))
    _rows(*launch(batch, paths), triple)


def solve(batch: RegionBatch, paths: bool) -> Solution:
    """The best path of each region, or its score; a path has to be worth it."""
    filled = np.any(batch.extents, axis=1)
    if not filled.all():
        return _with_empty(batch, filled, paths)
    letters = batch.letters()
    one_state = not paths and bool((batch.end >= 0).any())
    data, shape = launch(batch, paths, letters=letters, layer=one_state)
    answers = _launched(data, shape, batch.triple)
    ends = answers.ends[: len(batch)].astype(np.int64)
    scores = ends.max(axis=1)
    if (batch.end >= 0).any():
        of_state = ends[np.arange(len(batch)), batch.end]
        scores = np.where(batch.end < 0, scores, of_state)
    solution = Solution(scores, batch.low, batch.high, batch.cells)
    if not paths:
        return solution
    counts = np.maximum(answers.count[: len(batch)], 0).astype(np.int64)
    width = answers.columns.shape[1]
    last = np.arange(len(batch)) * width + counts - 1  # which comes first
    steps = answers.columns.ravel()[np.repeat(last, counts) - ranks(counts)]
    counted = scores_of(batch, letters, steps, counts)
    if counted is None or (counted != scores).any():
        raise CertificateError(
            "the kernels cannot store this path, since its scores lie too far apart: "
            "use implementation='planes'"
        )
    return solution._replace(steps=steps, counts=counts)


def _with_empty(batch: RegionBatch, filled: Any, paths: bool) -> Solution:
    """``solve`` of regions of which some are empty."""
    steps, (score, counts) = np.zeros(0, np.uint8), np.zeros((2, len(batch)), np.int64)
    if filled.any():
        answer = solve(batch.take(filled), paths)
        score[filled] = answer.score
        if answer.steps is not None and answer.counts is not None:
            steps, counts[filled] = answer.steps, answer.counts
    out = Solution(score, batch.low, batch.high, batch.cells)
    return out._replace(steps=steps, counts=counts) if paths else out


def scores_of(
    batch: RegionBatch,
    letters: Sequence[np.ndarray],
    steps: np.ndarray,
    counts: np.ndarray,
) -> np.ndarray | None:
    """Scores of paths, counted from their columns alone; None where a path does not
    lead from the start of its region to its end, in its end state.

    No region is empty. ``letters`` are those of the batch; ``steps`` are uint8 columns
    from the start of each region to its end, ``counts`` of each.
    """
    triple, ends = batch.triple, np.cumsum(counts)
    starts = ends - counts
    if not len(steps) or steps.max() > 7 or (counts == 0).any():
        return None
    path = np.repeat(np.arange(len(batch)), counts)
    owner = 8 * path + steps
    taken = np.bincount(owner, minlength=8 * len(batch)).reshape(-1, 8)
    if (taken @ RESIDUES_OF_COLUMN != batch.extents).any():
        return None
    if triple.model.name == "natural":
        gaps = _natural_gaps(batch, steps, counts)
    else:
        gaps = _gaps_of_columns(batch, steps, counts)
    if gaps is None:
        return None
    # Sum of residue-pair scores of every column, int32
    size = len(triple.matrices[0]) + 1
    rows = gapped_rows(size - 1, letters, steps)
    pairs = np.zeros(len(steps), np.int32)
    for (x, y), matrix in zip(SEQUENCE_PAIRS, triple.matrices, strict=True):
        scores = np.zeros((size, size), np.int32)  # no score for a gap
        scores[:-1, :-1] = matrix
        pairs += scores.ravel().take(rows[x] * np.uint16(size) + rows[y])
    return np.add.reduceat(pairs, starts, dtype=np.int64) - gaps


def _gaps_of_columns(batch: RegionBatch, steps: np.ndarray, counts: np.ndarray):
    """Costs of the gaps of each path where the column before decides which open; None
    where a path does not end in its end state."""
    triple, ends = batch.triple, np.cumsum(counts)
    # Columns before the first of each path, and last ones; 0 for any. The only state of
    # a model is no column.
    first, last = COLUMN_ORDER[0], np.zeros(len(batch), np.uint8)
    if triple.model.states > 1:
        columns = np.array([*COLUMN_ORDER, 0], np.uint8)  # the last for any state, -1
        first, last = columns[batch.start], columns[batch.end]
    if not ((last == 0) | (last == steps[ends - 1])).all():
        return None
    before = np.append(np.uint8(0), steps[:-1])
    before[ends - counts] = first
    if triple.mode == "semiglobal":
        return _gaps_between_ends(batch, before, steps, counts)
    owner = np.repeat(np.arange(0, 64 * len(batch), 64), counts)
    moves = np.bincount(owner + (8 * before + steps), minlength=64 * len(batch))
    costs = _gap_costs(*triple.cost).sum(axis=0)
    return (moves.reshape(-1, 8, 8) * costs).sum(axis=(1, 2))


def _natural_gaps(batch: RegionBatch, steps: np.ndarray, counts: np.ndarray):
    """``_gaps_of_columns`` with natural gaps: in each pair the last column before that
    is not gap/gap decides which open."""
    triple, ends = batch.triple, np.cumsum(counts)
    starts, number = ends - counts, np.arange(len(steps))
    origins = np.repeat(starts, counts)
    gap_open, gap_extend = triple.cost
    paid = np.stack([_paid(batch, steps, counts, axis) for axis in range(3)])
    total = np.zeros(len(steps), np.int64)
    states = _remembered(triple.model)
    for n, (x, y) in enumerate(SEQUENCE_PAIRS):
        current = RESIDUES_OF_COLUMN[steps] @ (
            np.array([2, 1]) @ np.eye(3, dtype=int)[[x, y]]
        )
        last = np.maximum.accumulate(np.where(current > 0, number, -1))
        final = np.where(last[ends - 1] >= starts, current[last[ends - 1]],
                         states[batch.start, n])  # fmt: skip
        if not ((batch.end < 0) | (final == states[batch.end, n])).all():
            return None
        last = np.append(-1, last[:-1])
        first = np.repeat(states[batch.start, n], counts)
        before = np.where(last >= origins, current[last], first)
        cost = np.where(current == before, gap_extend, gap_open)
        for sequence, gap in ((y, FIRST_ONLY), (x, SECOND_ONLY)):
            total += (current == gap) * paid[sequence] * cost
    return np.add.reduceat(total, starts)


@cache
def _remembered(model: Model) -> np.ndarray:
    """(13, 3): the last pattern other than gap/gap of each pair in each state."""
    after = {
        (m.source, m.column): q for q, into in enumerate(model.moves) for m in into
    }
    patterns = {0: (BOTH,) * 3}
    while len(patterns) < model.states:
        for state, column in product([*patterns], COLUMN_ORDER):
            current = (pattern(column, pair) for pair in SEQUENCE_PAIRS)
            pairs = zip(current, patterns[state], strict=True)
            patterns.setdefault(after[state, column], tuple(x or y for x, y in pairs))
    return np.array([patterns[state] for state in range(model.states)])


def _paid(batch: RegionBatch, steps: np.ndarray, counts: np.ndarray, axis: int):
    """Whether a gap in a sequence is not free in each column of the paths."""
    if batch.triple.mode != "semiglobal":
        return np.ones(len(steps), bool)
    # The index of the axis at the end of every column, from that of the region
    taken = np.cumsum(RESIDUES_OF_COLUMN[steps, axis])
    starts = np.cumsum(counts) - counts
    at = taken - np.repeat(np.append(0, taken)[starts], counts)
    low, high = np.repeat(batch.free_ends()[:, :, axis], counts, axis=1)
    return (at != low) & (at != high)


def _gaps_between_ends(
    batch: RegionBatch, before: np.ndarray, steps: np.ndarray, counts: np.ndarray
):
    """Costs of the gaps of each path, int64, but of those that are free."""
    total = np.zeros(len(steps), np.int64)
    for axis, of_axis in enumerate(_gap_costs(*batch.triple.cost)):
        total += _paid(batch, steps, counts, axis) * of_axis[before, steps]
    return np.add.reduceat(total, np.cumsum(counts) - counts)


@cache
def _gap_costs(gap_open: int, gap_extend: int) -> np.ndarray:
    """(3, 8, 8): the costs of the gaps of a column in each sequence, [sequence, the
    column before, column]."""
    costs = np.zeros((3, 8, 8), np.int64)
    for x, y in SEQUENCE_PAIRS:
        pair = RESIDUES_OF_COLUMN[:, [x, y]]
        goes_on = (pair[:, None] == pair[None]).all(axis=2)
        cost = np.where(goes_on, gap_extend, gap_open)
        for gapped, column in ((y, (1, 0)), (x, (0, 1))):
            costs[gapped] += (pair == column).all(axis=1) * cost
    return costs


def bytes_of(triple: Triple, region: Region, paths: bool, triples: int = 1) -> int:
    """Device bytes of a launch of ``triples`` regions of this size; without paths, of
    its last layer as well as of scores."""
    stored = ({},) if paths else ({}, {"layer": True})
    shapes = (launch_shape(triple, region.extent, triples, paths, **x) for x in stored)
    return max(map(triple.kernels.solve_bytes, shapes))


def launch_shape(
    triple: Triple,
    extent: Sequence[int],
    triples: int,
    paths: bool,
    backwards: bool = False,
    **stored: bool,
):
    """The static shape of a launch: of ``ROOMS`` what takes the fewest bytes, within
    the triple's limit, or else lengths rounded up, so that few shapes are compiled."""
    kernels = triple.kernels
    shape = partial(
        kernels.shape_of,
        rule=kernels.RULES[triple.model.name],
        bytes=paths,
        backwards=backwards and triple.model.states > 1,
        free=triple.mode == "semiglobal",
        **stored,
    )
    if not stored.get("layer"):  # which is the size of its region
        shapes = [
            shape((side - 1,) * 3, triples=count)
            for side, count in rooms_for(max(extent), triples, paths)
        ]
        smallest = min(shapes, key=kernels.solve_bytes, default=None)
        if smallest and kernels.solve_bytes(smallest) <= triple.limit:
            return smallest
    return shape(rounded(extent), triples=2 ** (triples - 1).bit_length())


@cache
def rooms_for(longest: int, triples: int, paths: bool) -> list[tuple[int, int]]:
    """Those of ``ROOMS``, (cells, triples), with room for so many triples; the smallest
    cube first."""
    return [
        (side, count)
        for side, counts in ROOMS.items()
        if side > longest and not (paths and side > PATHS_UP_TO_CELLS)
        for count in counts
        if count >= triples
    ]


def rounded(extent: Sequence[int]) -> tuple:
    """Lengths rounded up for a launch."""
    a, b, c = extent
    return _rounded(a + 1) - 1, _rounded(b + 1) - 1, _rounded(c + 1) - 1


@cache
def _rounded(count: int) -> int:
    """``count`` rounded up to 128, 256, 512; beyond, to sixteenths of the next power.

    Programs outside a table end at once, so what is rounded up costs memory, and each
    shape that is compiled some seconds.
    """
    power = 1 << max(count - 1, 1).bit_length()
    step = max(128, power) if count <= COARSE_UP_TO_CELLS else power // 16
    return -(-count // step) * step


def cube_of(extent: Sequence[int], paths: bool) -> int | None:
    """Cells of an axis of the launches of many triples of about this size, if
    ``ROOMS`` has them and no sequence is much shorter than another."""
    longest = max(extent)
    even = longest <= EVEN * min(extent) and rooms_for(longest, 2, paths)
    return even[0][0] if even else None


def most_triples(triple: Triple, extent: tuple, paths: bool) -> int:
    """How many regions of this size a launch takes within the triple's limit: as many
    as ``ROOMS`` has, if they fit, or so many that fit."""
    region, cube = Region((0, 0, 0), extent), cube_of(extent, paths)
    if cube:
        count = max(ROOMS[cube])
        if bytes_of(triple, region, paths, count) <= triple.limit:
            return count
    return triple.limit // bytes_of(replace(triple, limit=0), region, paths)


def launch(
    batch: RegionBatch,
    paths: bool,
    reverse: bool = False,
    letters: list[np.ndarray] | None = None,
    best: bool = False,
    layer: bool = False,
):
    """(data, shape) of some regions in one launch, filled up with the first, cut to a
    letter of each sequence; ``letters`` are those of the batch, if the caller has them.
    With ``best`` it searches the best ends of local paths, or starts; with ``layer`` it
    gives all scores of the last layer."""
    triple, kernels = batch.triple, batch.triple.kernels
    longest = batch.extents.max(axis=0).tolist()
    search = {"best": True, "floor": not reverse} if best else {"layer": layer}
    shape = launch_shape(triple, longest, len(batch), paths, reverse, **search)
    count = shape.triples
    letters = letters or batch.letters(reverse)
    codes = batch.padded(kernels.rooms(shape), 0, letters)
    backwards = reverse and triple.model.states > 1
    states = batch.end if reverse else batch.start
    free = batch.free_ends(reverse)
    # Seeds depend on the state and the axes of which a first gap is free.
    kinds = np.column_stack([states, (free == 0).any(axis=0)])
    each, kind = np.unique(kinds, axis=0, return_inverse=True)
    cost = triple.cost[0] - triple.cost[1]
    seeds = [
        kernels.seed(None if state < 0 else state, cost, backwards, ends, shape.rule)
        for state, *ends in each.tolist()
    ]
    ends = np.full(len(batch), -1) if reverse else batch.end
    sizes = filled_up(batch.extents.astype(np.int32), count)
    sizes[len(batch) :] = np.minimum(sizes[len(batch) :], 1)
    data = kernels.Triples(
        tuple(filled_up(rows, count) for rows in codes),
        sizes,
        np.array(triple.matrices, np.int32),
        np.array(triple.cost, np.int32),
        filled_up(np.array(seeds, np.int32)[kind.ravel()], count),
        filled_up(ends.astype(np.int32), count),
        filled_up(free.transpose(1, 2, 0).reshape(-1, 6).astype(np.int32), count),
    )
    return data, shape


def filled_up(rows: np.ndarray, count: int):
    """Rows with the first repeated, up to a number of them."""
    return np.concatenate([rows, rows[:1].repeat(count - len(rows), axis=0)])
