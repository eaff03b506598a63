"""Scores of further alignments of hits on a GPU.

The kernels of pairs have no scores of single cells; those of ``similarity.hard`` read
one of each cell, four bytes in float32, and whole numbers below 2^24 are exact there.
Rows in NumPy take a hundred times as long for thousands of hits
(docs/logs/search-cpu.md), and find the paths of the few whose scores pass.
"""

from collections import deque
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxalign.model.alphabet import Sequences, SequenceViews, stacked, views
from jaxalign.model.scoring import Scoring
from jaxalign.runtime import backend
from jaxalign.runtime.devices import bucket
from jaxalign.runtime.programs import program

CELLS = 2**28  # of a window, a GiB of scores
# Of a launch of smaller windows. All of a size have as many, the last of them empty:
# a program more takes a second, a launch a millisecond.
LAUNCH_CELLS = 2**26
LEAST_CELLS = 2**25  # of a job, for which rows take a tenth of a second
EXACT = 2**24  # whole numbers of float32 up to here
FORBIDDEN = -1e30  # as in ``kernels_pallas``


class Windows(NamedTuple):
    """Pairs of a query and a part of a target, with the paths that they have already.

    query, target : int64 (windows,). Numbers of the sequences.
    first, stop : int64 (windows,). The part of the target.
    partners : int32 (paths, residues). The residue of the target that a path pairs with
        each residue of a query; -1 for none.
    start : int64 (windows,). Where the residues of the query begin there.
    """

    query: np.ndarray
    target: np.ndarray
    first: np.ndarray
    stop: np.ndarray
    partners: np.ndarray
    start: np.ndarray


def taken(scoring: Scoring, m: np.ndarray, n: np.ndarray, best: int) -> np.ndarray:
    """Which pairs of lengths m and n a GPU takes; none where there is no GPU, or the
    job is small.

    best : no score is larger
    """
    fits = _padded(m) * _padded(n) <= CELLS
    whole = np.issubdtype(scoring.scores.dtype, np.integer) and best < EXACT
    is_small = int((m * n)[fits].sum()) < LEAST_CELLS
    usual = scoring.tracks is None and scoring.gap_costs is None
    if is_small or not whole or not usual:
        return np.zeros(len(m), bool)
    return fits & (backend.kernels()[0] is not None)


def scores(
    queries: Sequences,
    targets: Sequences,
    scoring: Scoring,
    windows: Windows,
) -> np.ndarray:
    """Compute the best local scores, int64 (windows,), that pair no residues which an
    earlier path pairs."""
    matrix = jnp.asarray(scoring.scores, jnp.float32)
    costs = jnp.asarray([scoring.open, scoring.extend] * 2, jnp.float32)
    m, n = queries.lengths[windows.query], windows.stop - windows.first
    best, issued = np.zeros(len(m), np.int64), deque()
    of_queries = views(queries, windows.query)
    if scoring.by_position:
        positions = np.arange(m.max(initial=0), dtype=np.int32)
        of_queries = SequenceViews(positions, np.zeros(len(m), np.int64), m)
    starts = targets.starts[windows.target] + windows.first
    of_targets = SequenceViews(targets.codes, starts, n)

    def collect() -> None:
        at, values = issued.popleft()
        best[at] = np.asarray(values)[: len(at)]

    paths = [SequenceViews(x, windows.start, m) for x in windows.partners]
    for at, (count, rows, columns) in _launches(m, n):
        a = stacked(of_queries, at, shape=(count, rows))
        b = stacked(of_targets, at, shape=(count, columns))
        lengths = np.zeros((3, count), np.int32)
        lengths[:, : len(at)] = m[at], n[at], windows.first[at]
        partners = np.full((bucket(len(paths), 4, 1), count, rows), -1, np.int32)
        for number, path in enumerate(paths):
            partners[number] = stacked(path, at, -1, (count, rows))
        issued.append((at, _scores(matrix, costs, a, b, lengths, partners)))
        if len(issued) > 1:  # the device computes the next launch meanwhile
            collect()
    while issued:
        collect()
    return best


def _launches(m: np.ndarray, n: np.ndarray) -> Iterator[tuple[np.ndarray, tuple]]:
    """Windows of like sizes, and the shape of their scores."""
    sizes = np.stack([_padded(m), _padded(n)])
    shapes, which = np.unique(sizes[0] * CELLS + sizes[1], return_inverse=True)
    for number, shape in enumerate(shapes.tolist()):
        (alike,), (rows, columns) = np.nonzero(which == number), divmod(shape, CELLS)
        count = max(LAUNCH_CELLS // (rows * columns), 1)
        for first in range(0, len(alike), count):
            yield alike[first : first + count], (count, rows, columns)


def _padded(lengths: np.ndarray) -> np.ndarray:
    """The sizes of arrays that hold lengths: 128, 512, 2,048 …"""
    used, which = np.unique(lengths, return_inverse=True)
    return np.array([bucket(x, 4, 128) for x in used.tolist()], np.int64)[which]


@program(())
def _scores(
    matrix: jax.Array, costs: jax.Array, a: jax.Array, b: jax.Array,
    places: jax.Array, partners: jax.Array,
):  # fmt: skip
    """Scores (B,) of pairs a (B, M), b (B, N).

    places : int32 (3, B). Lengths of both, and where b begins in its target.
    partners : int32 (paths, B, M). Residues of the target that a pairs with already.
    """
    (count, m), n = a.shape, b.shape[1]
    *lengths, first = places
    a, b = a.astype(jnp.int32), b.astype(jnp.int32)
    s = matrix[a[:, :, None], b[:, None, :]]
    columns = partners - first[None, :, None]
    column = jnp.arange(n, dtype=jnp.int32)[None, None, None, :]
    forbidden = (columns[..., None] == column).any(0)
    s = jnp.where(forbidden, FORBIDDEN, s)[:, :, None]
    zeros = partial(jnp.zeros, dtype=jnp.float32)
    rules = jnp.stack([*lengths, jnp.zeros(count, jnp.int32)], 1)
    tables = (
        s,
        jnp.tile(costs, (count, 1)),
        zeros((count, m + 1)),
        zeros((count, n + 1)),
    )
    run = backend.kernels()[0].hard_scores
    return run((*tables, rules), local=True, last_column=False).astype(jnp.int32)
