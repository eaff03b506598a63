"""Triples on a GPU: the fills and walks of ``kernels_pallas`` for ``triples.engine``.

``Triple.kernels`` is the package of kernels, and says that they do the work;
``refusal`` names the triples that they do not take.
"""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np

from jaxalign.affine import neg_inf
from jaxalign.errors import CertificateError, UsageError
from jaxalign.runtime.devices import first_device
from jaxalign.runtime.programs import program
from jaxalign.triples.dp.boxes import BoxFill
from jaxalign.triples.result import letters_of, scores_of

MEMORY_SHARE = 0.8  # of the device memory that JAX may have
COARSE_UP_TO_CELLS = 512  # of an axis: up to it shapes are few
MAX_MOVE_DIFFERENCE = 1024  # between two moves into a cell, for a walk to be tried


def refusal(triple, kernels, named: bool, paths: bool) -> str | None:
    """Why the kernels do not take a triple, or None; what refuses one refuses a longer
    one of the same costs.

    Raises
    ------
    UsageError
        The kernels were named.
    """
    why = _beyond_kernels(triple, kernels)
    if why is None and triple.mode == "local" and (named or not paths):
        why = "mode local: the kernels know global, and the core of local"
    if why is None and paths and not _paths_are_tried(triple, kernels):
        why = "scores and costs too large for the kernels' paths"
    if why and named:
        raise UsageError(f"implementation pallas: {why}")
    return why


def _beyond_kernels(triple, kernels) -> str | None:
    """The property of a triple that the kernels do not know, or None."""
    largest = int(max(np.abs(matrix).max(initial=0) for matrix in triple.matrices))
    if triple.model.name not in kernels.RULES:
        return f"gap model {triple.model.name}: the kernels know linear, quasi-natural"
    if triple.mode == "semiglobal":
        return "mode semiglobal: the kernels know global, and the core of local"
    if len(triple.matrices[0]) >= kernels.MAX_CODES:
        return f"{len(triple.matrices[0])} letters: the kernels know fewer than 32"
    if triple.dtype != "int32" or not kernels.reach(
        largest, *triple.cost, sum(triple.lengths)
    ):
        return "scores beyond 32 bits"
    return None


def _paths_are_tried(triple, kernels) -> bool:
    """Whether moves into a cell differ by little enough for the kernels' walks."""
    matrices = np.stack(triple.matrices)
    return kernels.spread(matrices, *triple.cost) < MAX_MOVE_DIFFERENCE


def budget() -> int:
    """Device bytes that are free, but for a reserve."""
    stats = jax.devices()[0].memory_stats() or {}
    free = stats.get("bytes_limit", 2**32) - stats.get("bytes_in_use", 0)
    return int(MEMORY_SHARE * free)


def layer(triple, region, reverse=False) -> BoxFill:
    """``triples.engine.sweep`` of the last layer, forwards or backwards."""
    answer = triple.kernels.solve(*launch([triple], [region], False, reverse))
    return _frame(answer.ends, answer.layer)


@program()
def _frame(ends, layer) -> BoxFill:
    """The first triple; cell (0, 0) of a layer of the kernels is (1, 1) of a box."""
    around = (0, 0), (1, 1), (1, 1)
    inner = jnp.pad(layer[0], around, constant_values=neg_inf(jnp.int32))
    return BoxFill(ends[0], layer=inner)


def solve(triples, regions, paths):
    """[(score, columns or None)] of regions of triples of one model, cost and matrices.

    Raises
    ------
    CertificateError
        A path is not worth its score.
    """
    out: list = [(0, np.zeros(0, np.uint8) if paths else None)] * len(regions)
    filled = [n for n, region in enumerate(regions) if any(region.extent)]
    if not filled:
        return out
    triples, regions = [triples[n] for n in filled], [regions[n] for n in filled]
    kernels, size = triples[0].kernels, len(triples[0].matrices[0])
    letters = letters_of(triples, regions)
    data, shape = launch(triples, regions, paths, letters=letters)
    program = kernels.solve_packed_on(first_device())
    rows = program(kernels.pack_triples(data, shape), shape, size)
    answers = kernels.unpack_results(rows, shape)
    scores, columns = _end_scores(answers.ends, regions), [None] * len(regions)
    if paths:
        columns = _paths(triples, regions, letters, answers, scores)
    for n, solution in zip(filled, zip(scores, columns, strict=True), strict=True):
        out[n] = solution
    return out


def _end_scores(ends, regions):
    """The score in the state in which each region ends."""
    best = ends.max(axis=1).tolist()
    pairs = enumerate(regions)
    return [best[n] if p.end is None else int(ends[n, p.end]) for n, p in pairs]


def _paths(triples, regions, letters, answers, scores):
    """Columns of each path from its start to its end, their scores counted again."""
    counts = answers.count[: len(regions)].tolist()
    columns = [answers.columns[n, : max(x, 0)][::-1] for n, x in enumerate(counts)]
    if scores_of(triples, regions, letters, columns) != scores:
        raise CertificateError(
            "the path that the kernels found does not have the best score: scores lie "
            "too far apart for their bytes"
        )
    return columns


def bytes_of(triple, region, paths: bool, triples=1) -> int:
    """Device bytes of one region, or of a launch of so many like it."""
    kernels = triple.kernels
    extent = region.extent
    return kernels.solve_bytes(launch_shape(triple, extent, triples, paths))


def launch_shape(triple, extent, triples, paths, backwards=False):
    """The static shape of a launch: lengths rounded up, so that few are compiled."""
    kernels = triple.kernels
    return kernels.shape_of(
        rounded(extent),
        kernels.RULES[triple.model.name],
        triples=triples,
        bytes=paths,
        backwards=backwards and triple.model.states > 1,
    )


def rounded(extent) -> tuple:
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


def launch(triples, regions, paths, reverse=False, letters=None):
    """(data, shape) of some regions in one launch, filled up to a power of two with the
    first; ``letters`` are those of ``triples.result.letters_of``, if the caller has
    them."""
    triple, kernels = triples[0], triples[0].kernels
    count = 2 ** (len(regions) - 1).bit_length()
    extents = np.array([region.extent for region in regions], np.int32)
    longest = extents.max(axis=0).tolist()
    shape = launch_shape(triple, longest, count, paths, reverse)
    letters = letters or letters_of(triples, regions, reverse)
    letters = map(_rows_of, letters, extents.T, kernels.rooms(shape))
    cost = triple.cost[0] - triple.cost[1]
    backwards = reverse and triple.model.states > 1
    states = [region.end if reverse else region.start for region in regions]
    seeds = {state: kernels.seed(state, cost, backwards) for state in set(states)}
    ends = [-1 if region.end is None or reverse else region.end for region in regions]
    data = kernels.Triples(
        tuple(_fill_up(rows, count) for rows in letters),
        _fill_up(extents, count),
        np.array(triple.matrices, np.int32),
        np.array(triple.cost, np.int32),
        _fill_up(np.array([seeds[state] for state in states], np.int32), count),
        _fill_up(np.array(ends, np.int32), count),
    )
    return data, shape


def _rows_of(codes, lengths, size):
    """Codes of regions, a row each, zeros behind them."""
    rows = np.zeros((len(lengths), size), np.uint8)
    rows[np.arange(size) < lengths[:, None]] = codes
    return rows


def _fill_up(rows, count):
    """Rows with the first repeated, up to a number of them."""
    return np.concatenate([rows, rows[:1].repeat(count - len(rows), axis=0)])
