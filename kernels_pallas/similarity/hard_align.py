"""Inputs and end cells of the kernels for best alignments of many similarities.

Arrays of B pairs: scores (B, m, n) of one of ``DTYPES``, gap costs float32 (B, 4): open
and extend of the query's residues, then of the target's; ``rules`` int32 (B, 3):
lengths of both, and flags, the bits of ``FLAGS``.
"""

import math
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from kernels_pallas.core.reals import WARP, in_parts
from kernels_pallas.core.target import Target, this_target
from kernels_pallas.similarity.hard_cells import (
    COLUMNS,
    DTYPES,
    FORBIDDEN,
    QUAD_BYTES,
    WARPS,
    Hard,
    HardInputs,
    HardSizes,
)
from kernels_pallas.similarity.hard_passes import fill, walk

QUERY_START, QUERY_END, TARGET_START, TARGET_END = (1 << k for k in range(4))
DECISION_BYTES = 8 << 30  # limit of a launch
# Relative time of a pass by programs of a multiprocessor, measured on an H200 with
# int8. A lone program mostly waits.
PASS_COSTS = (0.0, 0.22, 0.165, 0.14, 0.13)
MAX_TABLES = 16  # of a warp


class HardTables(NamedTuple):
    """Scores, gap costs, H of column 0 and of row 0, and rules of a batch of pairs."""

    scores: jax.Array
    costs: jax.Array
    left: jax.Array  # float32 (B, m + 1)
    top: jax.Array  # float32 (B, n + 1)
    rules: jax.Array


class HardPaths(NamedTuple):
    """Score, end cell and first cell (B,); partners (B, m), defined between them.

    The score is nan where a score within the lengths is nan or infinite.
    """

    score: jax.Array
    end_i: jax.Array
    end_j: jax.Array
    i: jax.Array
    j: jax.Array
    partners: jax.Array


def hard_paths(tables, *, local, last_column, shape: Hard | None = None,
               interpret=None) -> HardPaths:  # fmt: skip
    """Find the best path of every pair.

    last_column : whether paths may end in any row of the last column

    Raises
    ------
    ValueError
        A dtype that the kernels do not read.
    """
    tables = HardTables._make(tables)
    if tables.scores.dtype.name not in DTYPES:
        raise ValueError(f"scores of {tables.scores.dtype}: one of {DTYPES}")
    batch, _, columns = tables.scores.shape
    s = shape or choose(batch, columns, this_target(), local, last_column)
    # A row of scores is a number of whole loads of 16 bytes.
    padding = -columns % (QUAD_BYTES // tables.scores.dtype.itemsize)
    if padding:
        widths = (0, 0), (0, 0), (0, padding)
        tables = tables._replace(scores=jnp.pad(tables.scores, widths))
    z = sizes_of(tables.scores, s)
    largest = max(1, DECISION_BYTES // (z.passes * z.steps * s.words * WARP * 4))
    each = largest * s.tables
    return in_parts(partial(_paths, s=s, interpret=interpret), (tables,), each)


def hard_scores(tables, *, local, last_column, shape: Hard | None = None,
                interpret=None) -> jax.Array:  # fmt: skip
    """Compute the best score of every query with every target, float32 (Q T,), nan as
    in ``hard_paths``.

    tables : ``HardTables`` of Q T pairs, with scores float32 (Q, m, T, n), the layout
        of a product of two sets of residues; n a multiple of 4
    """
    tables = HardTables._make(tables)
    queries, rows, targets, columns = tables.scores.shape
    batch = queries * targets
    s = shape or choose(batch, columns, this_target(), local, last_column)
    s = replace(s, paths=False)
    z = sizes_of(tables.scores.reshape(batch, rows, columns), s)
    z = z._replace(across=targets)
    out = fill(inputs_of(tables, s, z), s, z, interpret)
    if local:
        score = jnp.max(_by_table(out["best"], s, z), 1)
    else:
        score = _border_ends(tables, out, s, z)[0]
    return jnp.where(jnp.isposinf(score), jnp.nan, score)


def choose(batch: int, n: int, target: Target, local=False, last_column=False) -> Hard:
    """Choose the number of tables a warp by the least time.

    A multiprocessor with r programs takes ``PASS_COSTS[r]`` for a pass of each of them;
    programs beyond its capacity run afterwards.
    """
    lanes, largest = -(-n // COLUMNS), len(PASS_COSTS) - 1

    def cost(tables):
        programs = -(-batch // (tables * WARPS)) / target.cores
        resident = min(math.ceil(programs), largest)
        return max(programs, resident) * passes_of(tables, lanes) * PASS_COSTS[resident]

    best = min(range(1, MAX_TABLES + 1), key=cost)
    return Hard(best, local, last_column)


def passes_of(tables: int, lanes: int) -> int:
    """Passes of a warp."""
    return -(-tables * lanes // WARP)


def sizes_of(scores, s: Hard) -> HardSizes:
    """Sizes of a launch for scores with rows of whole loads."""
    batch, m, n = scores.shape
    lanes = -(-n // COLUMNS)
    warps = -(-batch // (s.tables * WARPS)) * WARPS
    passes = passes_of(s.tables, lanes)
    return HardSizes(batch, m, n, lanes, passes, warps, scores.dtype.name)


def _paths(tables: HardTables, s: Hard, interpret) -> HardPaths:
    z = sizes_of(tables.scores, s)._replace(batch=len(tables.scores))
    inputs = inputs_of(tables, s, z)
    out = fill(inputs, s, z, interpret)
    ends = _local_ends if s.local else _border_ends
    score, i, j = ends(tables, out, s, z)
    spare = z.warps * s.tables - z.batch
    last_i, last_j = (jnp.pad(x, (0, spare)) for x in (i, j))
    partners, *starts = walk(out["decisions"], last_i, last_j, s, z, interpret)
    score = jnp.where(jnp.isposinf(score), jnp.nan, score)
    starts = [x[: z.batch] for x in starts]
    return HardPaths(score, i, j, *starts, partners[: z.batch])


def inputs_of(tables: HardTables, s: Hard, z: HardSizes) -> HardInputs:
    """Lay out the arrays of a launch."""
    m, n, flags = tables.rules.T
    m, n = jnp.clip(m, 0, z.rows), jnp.clip(n, 0, z.columns)
    begins = (flags & QUERY_START) != 0
    table = jnp.arange(z.batch, dtype=jnp.int32)
    group, place = table // z.across, table % z.across
    first = group * (z.across * z.rows) + place
    sizes = jnp.stack([m, n, begins.astype(jnp.int32), first], 1)
    index = jnp.arange(z.passes * WARP, dtype=jnp.int32)
    of_warp = jnp.minimum(index // z.lanes, s.tables - 1)
    # Lanes beyond the last table's have the rank after its last one.
    rank = jnp.minimum(index - of_warp * z.lanes, z.lanes)
    each = s.tables * WARPS
    spare = z.warps * s.tables - z.batch
    rows = jnp.pad(m, (0, spare), mode="edge").reshape(-1, each)
    steps = jnp.stack([rows.min(1), rows.max(1)], 1)
    top = jnp.pad(tables.top, ((0, 0), (0, z.columns + 1 - tables.top.shape[1])))
    return HardInputs(
        tables.scores.reshape(-1),
        tables.costs.reshape(-1),
        sizes.reshape(-1),
        _plus_zero(tables.left).reshape(-1),
        _plus_zero(top).reshape(-1),
        jnp.stack([of_warp, rank], 1).reshape(-1),
        steps.reshape(-1),
    )


def _plus_zero(x):
    """Replace minus zeros by zeros: their differences have the wrong sign."""
    return jnp.where(x == 0, jnp.zeros_like(x), x)


def _by_table(x, s: Hard, z: HardSizes):
    """Arrange an output by table: (W, P, 32, ...) -> (B, lanes, ...)."""
    x = x.reshape(z.warps, z.passes * WARP, *x.shape[3:])[:, : s.tables * z.lanes]
    return x.reshape(-1, z.lanes, *x.shape[2:])[: z.batch]


def _local_ends(tables: HardTables, out, s: Hard, z: HardSizes):
    """Score and end cell of local mode; ties go to the first row, then column."""
    best, row = (_by_table(out[name], s, z) for name in ("best", "best_row"))
    h = _by_table(out["rows"], s, z)
    score = jnp.max(best, 1)
    is_best = best == score[:, None]
    row = jnp.where(is_best, row, z.rows)
    first = jnp.argmin(row, 1).astype(jnp.int32)
    at = first[:, None]
    i = jnp.take_along_axis(row, at, 1)[:, 0] + 1
    h = jnp.take_along_axis(h, at[:, :, None], 1)[:, 0]
    j = first * COLUMNS + jnp.argmax(h == score[:, None], 1).astype(jnp.int32) + 1
    empty = ~(score > 0)
    return score, jnp.where(empty, 0, i), jnp.where(empty, 0, j)


def _border_ends(tables: HardTables, out, s: Hard, z: HardSizes):
    """Score and end cell of paths that end in row m or in column n."""
    m, n, flags = (x[:, None] for x in tables.rules.T)
    m, n = jnp.clip(m, 0, z.rows), jnp.clip(n, 0, tables.top.shape[1] - 1)
    columns = jnp.arange(tables.top.shape[1], dtype=jnp.int32)[None]
    h = _by_table(out["rows"], s, z).reshape(z.batch, -1)[:, : tables.top.shape[1] - 1]
    at_left = jnp.take_along_axis(tables.left, m, 1)
    h = jnp.concatenate([at_left, h], 1)
    h = jnp.where(m == 0, tables.top, h)
    corner = jnp.take_along_axis(h, n, 1)[:, 0]
    ends = (columns == n) | (((flags & TARGET_END) != 0) & (columns < n))
    score, j = _first_best(jnp.where(ends, h, FORBIDDEN))
    i = m[:, 0]
    if s.last_column:
        at_top = jnp.take_along_axis(tables.top, n, 1)
        values = out["column"][: z.batch]
        h = jnp.take_along_axis(values, ((n - 1) & 3)[:, :, None], 2)[:, :, 0]
        h = jnp.where(n == 0, tables.left, jnp.concatenate([at_top, h], 1))
        rows = jnp.arange(z.rows + 1, dtype=jnp.int32)[None]
        ends = ((flags & QUERY_END) != 0) & (rows < m)
        column_score, at = _first_best(jnp.where(ends, h, FORBIDDEN))
        earlier = jnp.any(ends, 1) & (column_score >= score)
        score = jnp.where(earlier, column_score, score)
        i, j = jnp.where(earlier, at, i), jnp.where(earlier, n[:, 0], j)
    # A nan or infinity anywhere reaches the last cell.
    wrong = jnp.isnan(corner) | jnp.isposinf(corner)
    return jnp.where(wrong, jnp.nan, score), i, j


def _first_best(values):
    at = jnp.argmax(values, 1).astype(jnp.int32)
    return jnp.take_along_axis(values, at[:, None], 1)[:, 0], at
