"""Triples on a GPU: the fills and walks of ``kernels_pallas`` for ``triples.engine``.

``Triple.kernels`` is the package of kernels, and says that they do the work;
``refusal`` names the triples that they do not take.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxalign.affine import neg_inf
from jaxalign.errors import CertificateError, UsageError
from jaxalign.runtime.devices import first_device
from jaxalign.runtime.programs import program
from jaxalign.triples.dp.recurrence import COLUMN_ORDER, SEQUENCE_PAIRS, BoxFill
from jaxalign.triples.result import (
    Region,
    Triple,
    free_ends,
    gapped_rows,
    joined,
    letters_of,
)

RESIDUES_OF_COLUMN = (np.arange(8)[:, None] >> np.array([2, 1, 0])) & 1  # (8, 3)
MEMORY_SHARE = 0.8  # of the device memory that JAX may have
COARSE_UP_TO_CELLS = 512  # of an axis: up to it shapes are few


def refusal(triple: Triple, kernels: Any, named: bool, paths: bool) -> str | None:
    """Name the reason why the kernels refuse a triple, or None; raise it where they
    were named. A refused triple implies refusal of longer ones with the same costs."""
    largest = int(max(np.abs(matrix).max(initial=0) for matrix in triple.matrices))
    letters, size = len(triple.matrices[0]), sum(triple.lengths)
    why = None
    if triple.model.name not in kernels.RULES:
        why = f"gap model {triple.model.name}: the kernels know linear, quasi-natural"
    elif letters >= kernels.MAX_CODES:
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


def budget() -> int:
    """Device bytes that are free, but for a reserve."""
    stats = jax.devices()[0].memory_stats() or {}
    free = stats.get("bytes_limit", 2**32) - stats.get("bytes_in_use", 0)
    return int(MEMORY_SHARE * free)


def layer(triple: Triple, region: Region, reverse: bool = False) -> BoxFill:
    """``triples.engine.sweep`` of the last layer, forwards or backwards."""
    data, shape = launch([triple], [region], False, reverse, layer=True)
    answer = triple.kernels.solve(data, shape)
    return _frame(answer.ends, answer.layer)


@program()
def _frame(ends: jax.Array, layer: jax.Array) -> BoxFill:
    """The first triple; cell (0, 0) of a layer of the kernels is (1, 1) of a box."""
    around = (0, 0), (1, 1), (1, 1)
    inner = jnp.pad(layer[0], around, constant_values=neg_inf(jnp.int32))
    return BoxFill(ends[0], layer=inner)


def best_cells(
    triples: list[Triple], regions: list[Region], reverse: bool = False
) -> list[tuple[int, tuple[int, int, int]]]:
    """``engine.best_cell`` of regions of triples of one model, cost and matrices."""
    letters = letters_of(triples, regions, reverse)
    data, shape = launch(triples, regions, False, reverse, letters, best=True)
    best = _launched(data, shape, triples[0]).best
    out = []
    for region, (score, *steps) in zip(regions, best.tolist(), strict=False):
        corner, sign = (region.high, -1) if reverse else (region.low, 1)
        i, j, k = (n + sign * step for n, step in zip(corner, steps, strict=True))
        out.append((score, (i, j, k)))
    return out


def _launched(data: Any, shape: Any, triple: Triple):
    """The results of a launch, on the host."""
    kernels, size = triple.kernels, len(triple.matrices[0])
    program = kernels.solve_packed_on(first_device())
    rows = program(kernels.pack_triples(data, shape), shape, size)
    return kernels.unpack_results(rows, shape)


def solve(triples: list[Triple], regions: list[Region], paths: bool):
    """[(score, columns or None)] of regions of triples of one model, cost and matrices;
    a path has to be worth its score."""
    out: list = [(0, np.zeros(0, np.uint8) if paths else None)] * len(regions)
    filled = [n for n, region in enumerate(regions) if any(region.extent)]
    if not filled:
        return out
    triples, regions = [triples[n] for n in filled], [regions[n] for n in filled]
    letters = letters_of(triples, regions)
    one_state = not paths and any(region.end is not None for region in regions)
    data, shape = launch(triples, regions, paths, letters=letters, layer=one_state)
    answers = _launched(data, shape, triples[0])
    best = answers.ends.max(axis=1).tolist()
    scores = [
        best[n] if region.end is None else int(answers.ends[n, region.end])
        for n, region in enumerate(regions)
    ]
    columns: list[Any] = [None] * len(regions)
    if paths:
        counts = answers.count[: len(regions)].tolist()
        columns = [answers.columns[n, : max(x, 0)][::-1] for n, x in enumerate(counts)]
        if scores_of(triples, regions, letters, columns) != scores:
            raise CertificateError(
                "the path that the kernels found does not have the best score: scores "
                "lie too far apart for their bytes"
            )
    for n, solution in zip(filled, zip(scores, columns, strict=True), strict=True):
        out[n] = solution
    return out


def scores_of(
    triples: Sequence[Triple],
    regions: Sequence[Region],
    letters: Sequence[np.ndarray],
    paths: Sequence[np.ndarray],
) -> list[int] | None:
    """Scores of paths, counted from their columns alone; None where a path does not
    lead from the start of its region to its end, in its end state.

    The triples have one model, cost and matrices, and no region is empty. ``letters``
    are those of ``letters_of``; ``paths`` are uint8 columns from the start of each
    region to its end.
    """
    steps, (starts, ends) = joined(paths)
    if not len(steps) or steps.max() > 7 or (starts == ends).any():
        return None
    # Columns before the first of each path, and last ones; 0 for any. The only state of
    # a model is no column.
    if triples[0].model.states == 1:
        first, last = COLUMN_ORDER[0], np.zeros(len(regions), np.uint8)
    else:
        first = np.array([COLUMN_ORDER[region.start] for region in regions], np.uint8)
        ends_in = [region.end for region in regions]
        columns = [0 if end is None else COLUMN_ORDER[end] for end in ends_in]
        last = np.array(columns, np.uint8)
    before = np.append(np.uint8(0), steps[:-1])
    before[starts] = first
    owner = np.repeat(np.arange(0, 64 * len(paths), 64), ends - starts)
    moves = np.bincount(owner + (8 * before + steps), minlength=64 * len(paths))
    moves = moves.reshape(-1, 8, 8)
    residues = moves.sum(axis=1) @ RESIDUES_OF_COLUMN
    if residues.tolist() != [list(region.extent) for region in regions]:
        return None
    if not ((last == 0) | (last == steps[ends - 1])).all():
        return None
    if triples[0].mode == "semiglobal":
        gaps = _gaps_between_ends(triples, regions, before, steps, (starts, ends))
    else:
        costs = _gap_costs(*triples[0].cost).sum(axis=0)
        gaps = (moves * costs).sum(axis=(1, 2))
    # Sum of residue-pair scores of every column, int32
    matrices = triples[0].matrices
    size = len(matrices[0]) + 1
    rows = gapped_rows(size - 1, letters, steps)
    pairs = np.zeros(len(steps), np.int32)
    for (x, y), matrix in zip(SEQUENCE_PAIRS, matrices, strict=True):
        scores = np.zeros((size, size), np.int32)  # no score for a gap
        scores[:-1, :-1] = matrix
        pairs += scores.ravel().take(rows[x] * np.uint16(size) + rows[y])
    return (np.add.reduceat(pairs, starts, dtype=np.int64) - gaps).tolist()


def _gaps_between_ends(
    triples: Sequence[Triple],
    regions: Sequence[Region],
    before: np.ndarray,
    steps: np.ndarray,
    bounds: tuple[np.ndarray, np.ndarray],
):
    """Costs of the gaps of each path, int64, but of those that are free."""
    starts, ends = bounds
    total = np.zeros(len(steps), np.int64)
    for axis, of_axis in enumerate(_gap_costs(*triples[0].cost)):
        # The index of the axis at the end of every column, from that of the region
        taken = np.cumsum(RESIDUES_OF_COLUMN[steps, axis])
        at = taken - np.repeat(np.append(0, taken)[starts], ends - starts)
        low, high = (
            np.repeat([end[axis] for end in indices], ends - starts)
            for indices in zip(*map(free_ends, triples, regions), strict=True)
        )
        paid = (at != low) & (at != high)
        total += paid * of_axis[before, steps]
    return np.add.reduceat(total, starts)


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
    """Device bytes of a launch of ``triples`` regions of this size."""
    kernels = triple.kernels
    extent = region.extent
    shape = launch_shape(triple, extent, triples, paths, layer=not paths)
    return kernels.solve_bytes(shape)


def launch_shape(
    triple: Triple,
    extent: Sequence[int],
    triples: int,
    paths: bool,
    backwards: bool = False,
    **stored: bool,
):
    """The static shape of a launch: lengths rounded up, so that few are compiled."""
    kernels = triple.kernels
    return kernels.shape_of(
        rounded(extent),
        kernels.RULES[triple.model.name],
        triples=triples,
        bytes=paths,
        backwards=backwards and triple.model.states > 1,
        free=triple.mode == "semiglobal",
        **stored,
    )


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


def launch(
    triples: list[Triple],
    regions: list[Region],
    paths: bool,
    reverse: bool = False,
    letters: list[np.ndarray] | None = None,
    best: bool = False,
    layer: bool = False,
):
    """(data, shape) of some regions in one launch, filled up to a power of two with the
    first; ``letters`` are those of ``triples.result.letters_of``, if the caller has
    them. With ``best`` it searches the best ends of local paths, or starts; with
    ``layer`` it gives all scores of the last layer."""
    triple, kernels = triples[0], triples[0].kernels
    count = 2 ** (len(regions) - 1).bit_length()
    extents = np.array([region.extent for region in regions], np.int32)
    longest = extents.max(axis=0).tolist()
    search = {"best": True, "floor": not reverse} if best else {"layer": layer}
    shape = launch_shape(triple, longest, count, paths, reverse, **search)
    letters = letters or letters_of(triples, regions, reverse)
    # Codes of regions, a row each, zeros behind them
    rooms = kernels.rooms(shape)
    codes = [np.zeros((len(regions), size), np.uint8) for size in rooms]
    for rows, lengths, of_side in zip(codes, extents.T, letters, strict=True):
        rows[np.arange(rows.shape[1]) < lengths[:, None]] = of_side
    cost = triple.cost[0] - triple.cost[1]
    backwards = reverse and triple.model.states > 1
    states = [region.end if reverse else region.start for region in regions]
    free = [free_ends(*each, reverse) for each in zip(triples, regions, strict=True)]
    first = [
        (state, tuple(0 in border for border in zip(*ends, strict=True)))
        for state, ends in zip(states, free, strict=True)
    ]
    seeds = {
        state: kernels.seed(state[0], cost, backwards, state[1]) for state in set(first)
    }
    ends = [-1 if region.end is None or reverse else region.end for region in regions]
    data = kernels.Triples(
        tuple(filled_up(rows, count) for rows in codes),
        filled_up(extents, count),
        np.array(triple.matrices, np.int32),
        np.array(triple.cost, np.int32),
        filled_up(np.array([seeds[state] for state in first], np.int32), count),
        filled_up(np.array(ends, np.int32), count),
        filled_up(np.array(free, np.int32).swapaxes(1, 2).reshape(-1, 6), count),
    )
    return data, shape


def filled_up(rows: np.ndarray, count: int):
    """Rows with the first repeated, up to a number of them."""
    return np.concatenate([rows, rows[:1].repeat(count - len(rows), axis=0)])
