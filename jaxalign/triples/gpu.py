"""Triples on a GPU: the fills and walks of ``kernels_pallas`` for ``triples.engine``.

``Triple.kernels`` is the package of kernels, and says that they do the work. What they
cannot do is in ``refusal``.
"""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np

from jaxalign.affine import neg_inf
from jaxalign.errors import CertificateError
from jaxalign.runtime.devices import first_device
from jaxalign.triples.dp.boxes import Filled
from jaxalign.triples.paths import letters_of, scores_of

SHARE = 0.8  # of the device memory that JAX may have
COARSE = 512  # cells of an axis up to which shapes are few
FARTHEST = 1024  # a bound on the difference of two moves with which a walk is tried


def refusal(triple, kernels) -> str | None:
    """Why the kernels cannot do a triple; None where they can."""
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


def walks(triple, kernels) -> bool:
    """Whether paths are worth a try: moves into a cell differ by little enough."""
    matrices = np.stack(triple.matrices)
    return kernels.spread(matrices, *triple.cost) < FARTHEST


def budget() -> int:
    """Device bytes that are free, but for a reserve."""
    stats = jax.devices()[0].memory_stats() or {}
    free = stats.get("bytes_limit", 2**32) - stats.get("bytes_in_use", 0)
    return int(SHARE * free)


def layer(triple, part, reverse=False) -> Filled:
    """``triples.engine.sweep`` of the last layer, forwards or backwards."""
    found = triple.kernels.solve(*launch([triple], [part], False, reverse))
    return _framed(found.ends, found.layer)


@jax.jit
def _framed(ends, layer) -> Filled:
    """Of the first triple; cell (0, 0) of a layer of kernels is (1, 1) of a box."""
    around = (0, 0), (1, 1), (1, 1)
    inner = jnp.pad(layer[0], around, constant_values=neg_inf(jnp.int32))
    return Filled(ends[0], layer=inner)


def stored(triple, part):
    """``triples.engine.stored``: (score, columns from start to end)."""
    with triple.timed("fill and walk"):
        return solved([triple], [part], True)[0]


def solved(triples, parts, paths):
    """[(score, columns or None)] of parts of triples of one model, cost and matrices.

    Raises
    ------
    CertificateError
        A path is not worth its score.
    """
    out: list = [(0, np.zeros(0, np.uint8) if paths else None)] * len(parts)
    some = [n for n, part in enumerate(parts) if any(part.extent)]
    if not some:
        return out
    triples, parts = [triples[n] for n in some], [parts[n] for n in some]
    kernels, size = triples[0].kernels, len(triples[0].matrices[0])
    letters = letters_of(triples, parts)
    data, shape = launch(triples, parts, paths, letters=letters)
    solve = kernels.solve_packed_on(first_device())
    rows = solve(kernels.pack_triples(data, shape), shape, size)
    found = kernels.unpack_results(rows, shape)
    scores, columns = _end_scores(found.ends, parts), [None] * len(parts)
    if paths:
        columns = _paths(triples, parts, letters, found, scores)
    for n, solution in zip(some, zip(scores, columns, strict=True), strict=True):
        out[n] = solution
    return out


def _end_scores(ends, parts):
    """The score in the state in which each part ends."""
    best = ends.max(axis=1).tolist()
    pairs = enumerate(parts)
    return [best[n] if p.end is None else int(ends[n, p.end]) for n, p in pairs]


def _paths(triples, parts, letters, found, scores):
    """Columns of each path from its start to its end, counted again."""
    counts = found.count[: len(parts)].tolist()
    columns = [found.columns[n, : max(x, 0)][::-1] for n, x in enumerate(counts)]
    if scores_of(triples, parts, letters, columns) != scores:
        raise CertificateError(
            "the path that the kernels found does not have the best score: scores lie "
            "too far apart for their bytes"
        )
    return columns


def bytes_of(triple, part, paths: bool, triples=1) -> int:
    """Device bytes of one part, or of a launch of so many like it."""
    kernels = triple.kernels
    extent = part.extent
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
    step = max(128, power) if count <= COARSE else power // 16
    return -(-count // step) * step


def launch(triples, parts, paths, reverse=False, letters=None):
    """(data, shape) of some parts in one launch, filled up to a power of two with the
    first; ``letters`` are those of ``triples.paths.letters_of``, if they are known."""
    triple, kernels = triples[0], triples[0].kernels
    count = 2 ** (len(parts) - 1).bit_length()
    extents = np.array([part.extent for part in parts], np.int32)
    longest = extents.max(axis=0).tolist()
    shape = launch_shape(triple, longest, count, paths, reverse)
    letters = letters or letters_of(triples, parts, reverse)
    letters = map(_padded, letters, extents.T, kernels.rooms(shape))
    cost = triple.cost[0] - triple.cost[1]
    backwards = reverse and triple.model.states > 1
    states = [part.end if reverse else part.start for part in parts]
    seeds = {state: kernels.seed(state, cost, backwards) for state in set(states)}
    ends = [-1 if part.end is None or reverse else part.end for part in parts]
    data = kernels.Triples(
        tuple(_filled_up(rows, count) for rows in letters),
        _filled_up(extents, count),
        np.array(triple.matrices, np.int32),
        np.array(triple.cost, np.int32),
        _filled_up(np.array([seeds[state] for state in states], np.int32), count),
        _filled_up(np.array(ends, np.int32), count),
    )
    return data, shape


def _padded(codes, lengths, size):
    """Codes of parts, a row each, zeros behind them."""
    rows = np.zeros((len(lengths), size), np.uint8)
    rows[np.arange(size) < lengths[:, None]] = codes
    return rows


def _filled_up(rows, count):
    """Rows with the first repeated, up to a number of them."""
    return np.concatenate([rows, rows[:1].repeat(count - len(rows), axis=0)])
