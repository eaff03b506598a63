"""A window on one device: queries against a block of targets, from codes to results.

fill (``sweep``) -> end cells and walk (``walk``), query by query, inside one compiled
program; only scores, counts and steps leave it.
"""

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxalign.affine import Gaps
from jaxalign.one_function import CPU_OPTIONS
from jaxalign.pairs.dp import matrix_rows, walk
from jaxalign.pairs.dp.sweep import TILE, difference_fill, lane_cells, lane_fill

if TYPE_CHECKING:
    from jaxalign.pairs.dp.sweep.lane_cells import Constants


TOGETHER = 128  # paths walked side by side


class WindowProblem(NamedTuple):
    """Scores, gaps and ends that all pairs of a job share: arrays of NumPy until a
    program takes them."""

    # (A, A), row = query letter; or (M or more, A), row = position; of tracks (2, A, A)
    scores: Any
    gaps: Gaps  # scalars of the score dtype
    free: dict  # four bool scalars
    wildcard: Any  # int32 (), its identities do not count; 255 for none
    # Of the score dtype (4, M or more), by position: open_e, extend_e, open_f, extend_f
    costs: Any = None


class WindowResult(NamedTuple):
    """One row a query. Scores are of the score dtype, counts int32 (Q, T); ``steps``
    is uint8 (Q, longest path, T). Without paths all but the score is None."""

    score: jax.Array
    end_i: jax.Array | None = None
    end_j: jax.Array | None = None
    walked: walk.PathCounts | None = None
    region: walk.EndRegion | None = None  # of a local score, with ``strips``


@partial(
    jax.jit,
    static_argnames=("shared", "differences"),
    donate_argnames=("room",),
    compiler_options=CPU_OPTIONS,
)
def load_block(
    block: lane_fill.Block,
    problem: WindowProblem,
    local: jax.Array | bool,
    shared: bool = True,
    room: jax.Array | None = None,
    differences: str | None = None,
):
    """Lay out the scores of packed targets: the block with its ``scores``.

    block : Block without scores
    local : bool scalar
    shared : whether all lanes meet the same letters of a query, so that a profile pays;
        not those of positions
    room : (A + 1, L + 2, B), dtype of the scores, or None; a profile is written over
        it, of the tiles in use alone
    differences : dtype of the cells of ``difference_fill``, whose profile it is; None
        where that of H is wanted
    """
    pad = -problem.gaps.open
    free = problem.free["query_start"] | local
    pad_column = jnp.where(free, jnp.zeros_like(pad), pad)
    scores = matrix_rows.padded_scores(problem.scores, pad_column, pad)
    if differences:
        scores = difference_fill.shifted(scores, problem.gaps, differences)
    if shared and room is None:
        scores = matrix_rows.database_profile(scores, block.codes)
    elif shared and room is not None:
        columns = block.tiles * TILE
        scores = matrix_rows.database_profile_in(scores, block.codes, columns, room)
    return block._replace(scores=scores)


STATIC = (
    "local", "rows", "longest", "paths", "steps", "fused", "costs", "opening", "base",
    "strips",
)  # fmt: skip


@partial(
    jax.jit,
    static_argnames=STATIC,
    donate_argnames=("backtrack",),
    compiler_options=CPU_OPTIONS,
)
def run_window(
    block: lane_fill.Block, queries: jax.Array, lengths: jax.Array, start: jax.Array,
    count: jax.Array, tie: jax.Array, problem: WindowProblem,
    backtrack: jax.Array | None = None, costs: "Constants | None" = None,
    opening: int | None = None, base: int = 1, strips: bool = False,
    member: jax.Array | None = None, **static: Any,
) -> tuple[WindowResult, jax.Array | None]:  # fmt: skip
    """Align the first ``count`` queries against targets of a block.

    block : Block
    queries : uint8 (Q, M, W), anything after the end; W = 1, or a query a lane (W =
        B), or with ``member`` a team of W
    lengths : int32 (Q, W)
    start : int32 (Q,), targets before it are not computed for that query
    count : int32 (), rows beyond it are not computed
    tie : bool (Q, T), pairs whose two sides are swapped
    backtrack : uint8 (capacity,) scratch, given back; needed for paths, holds at least
        ceil(m / rows) * (rows / 2) * TILE * tiles * B
    local, rows, longest, paths, steps, fused, costs : static; ``longest`` target there
        can be, ``paths`` walks and counts, ``steps`` keeps the operations too,
        ``costs`` as in ``lane_fill.fill``
    opening : static, gap_open - gap_extend where a global table is filled by
        differences (``difference_fill``), else None
    base : static, as in ``difference_fill.fill``
    strips : static, as in ``lane_fill.fill``; the result then has a ``region``
    member : uint8 (Q, T), which query of a team each target meets, of ``strips``
    """
    shape = queries.shape[0], block.lane.shape[0]
    out = WindowResult(jnp.zeros(shape, problem.gaps.open.dtype))
    if static["paths"]:
        zero, operations = jnp.zeros(shape, jnp.int32), None
        if static["steps"]:
            longest = queries.shape[1] + static["longest"]
            operations = jnp.zeros((shape[0], longest, shape[1]), jnp.uint8)
        walked = walk.PathCounts._make([*[zero] * 8, operations])
        out = WindowResult(out.score, zero, zero, walked)

    if strips:
        zero = jnp.zeros(shape, jnp.int16)
        out = out._replace(region=walk.EndRegion(zero, zero, zero, zero))

    def run_query(q: jax.Array, state: tuple):
        out, backtrack = state
        result, backtrack = _one_query(
            block, queries[q], lengths[q], start[q], tie[q], problem, backtrack,
            costs, opening, base, strips, None if member is None else member[q],
            **static,
        )  # fmt: skip
        place = partial(lax.dynamic_update_index_in_dim, index=q, axis=0)
        return jax.tree.map(place, out, result), backtrack

    result, backtrack = lax.fori_loop(0, count, run_query, (out, backtrack))
    if costs is not None and costs.zero:
        score = result.score.astype(jnp.int16) - costs.zero
        result = result._replace(score=score)
    return result, backtrack


def _one_query(
    block: lane_fill.Block, codes: jax.Array, m: jax.Array, start: jax.Array,
    tie: jax.Array, problem: WindowProblem, backtrack: jax.Array | None,
    costs: "Constants | None", opening: int | None, base: int, strips: bool,
    member: jax.Array | None, **static: Any,
):  # fmt: skip
    """One row of queries: the scores of their targets, and what the paths say."""
    # Tiles up to the end of the last of the targets from ``start`` on: the longest
    # ones, which stand first, may end far behind all others.
    last = -(-(block.first + block.length) // TILE)
    met = jnp.arange(len(last), dtype=jnp.int32) >= start
    block = block._replace(
        tiles=jnp.minimum(block.tiles, jnp.max(jnp.where(met, last, 0)))
    )
    local, paths, rows = static["local"], static["paths"], static["rows"]
    size, dtype = matrix_rows.padding(problem.scores), problem.gaps.open.dtype
    row = jnp.arange(codes.shape[0], dtype=jnp.int32)[:, None]
    codes = codes.astype(jnp.int32)
    rows_of = matrix_rows.score_rows(problem.scores, codes)
    codes, rows_of = (jnp.where(row >= m[None, :], size, x) for x in (codes, rows_of))
    query_index = jnp.zeros_like(block.lane) if codes.shape[1] == 1 else block.lane
    query = lane_fill.Query(
        rows_of,
        m,
        -(-jnp.max(m) // rows),
        jnp.minimum(block.first, block.first + block.length - 1)[start] // TILE,
        tie[block.target].astype(dtype),
        member=None if member is None else member[block.target],
    )
    if problem.costs is not None:
        by_row = lane_cells.position_costs(problem.costs, row[:, 0])
        query = query._replace(costs=by_row)
    gaps, free = problem.gaps, problem.free
    fused = static["fused"]
    if opening is not None:
        cells, backtrack = difference_fill.fill(
            block, query, gaps, free, backtrack,
            opening=opening, base=base, rows=rows, fused=fused,
        )  # fmt: skip
        end = walk.corner(cells, block, m[query_index])
    else:
        filled = lane_fill.fill(
            block, query, gaps, free, backtrack,
            local=local, rows=rows, fused=fused, costs=costs, strips=strips,
        )  # fmt: skip
        if strips:
            best, region = walk.end_regions(filled, block, tie, query.tile, fused)
            return WindowResult(best, region=region), None
        tie = tie.astype(jnp.int32)
        end = walk.sweep_end(
            filled, block, m[query_index], gaps, free, tie, local=local, fused=fused
        )
        backtrack = filled.backtrack
    if not paths or backtrack is None:
        return WindowResult(end.score), None
    walked = _walk_all(
        block, codes, query_index, start, end, backtrack, problem, **static
    )
    return WindowResult(end.score, end.i, end.j, walked), backtrack


def _walk_all(
    block: lane_fill.Block, codes: jax.Array, query_index: jax.Array, start: jax.Array,
    end: walk.EndCell, backtrack: jax.Array, problem: WindowProblem, *, local: bool,
    steps: bool, longest: int, **_: Any,
):  # fmt: skip
    """Walk the targets from ``start`` on, ``TOGETHER`` neighbours at a time: they
    have similar lengths, and a walk takes as long as its longest path. Nibbles lie in
    ``backtrack`` as ``sweep`` stored them.

    query_index : which of the W queries each target meets
    """
    count, lanes = end.i.shape[0], block.codes.shape[1]
    together = min(TOGETHER, count)
    operations = None
    if steps:
        operations = jnp.full((codes.shape[0] + longest, count), walk.DONE, jnp.uint8)
    zero = jnp.zeros_like(end.i)
    empty = walk.PathCounts._make([*[zero] * 8, operations])
    rules = walk.WalkBorders(
        problem.free["target_start"] | local,
        problem.free["query_start"] | local,
        jnp.int32(-1),
    )

    def part(k: jax.Array, walked: walk.PathCounts):
        def part_of(x: jax.Array):
            return lax.dynamic_slice_in_dim(x, k * together, together)

        lane, first, query = map(part_of, (block.lane, block.first, query_index))
        columns = block.tiles * TILE

        def nibble_at(i: jax.Array, j: jax.Array):
            place = ((i - 1) // 2 * columns + j - 1 + first) * lanes + lane
            byte = backtrack.at[place].get(mode="clip").astype(jnp.int32)
            return (byte >> (4 * (i % 2))) & 15

        def same_at(i: jax.Array, j: jax.Array):
            a = codes.at[jnp.clip(i - 1, 0), query].get(mode="clip")
            b = block.codes.at[jnp.clip(j - 1 + first, 0), lane].get(mode="clip")
            b = b.astype(jnp.int32)
            if problem.scores.ndim > 2:
                a, b = (matrix_rows.track_codes(x, 0) for x in (a, b))
            return (a == b) & (a != problem.wildcard)

        def put(whole: jax.Array, values: jax.Array):
            axis = whole.ndim - 1
            return lax.dynamic_update_slice_in_dim(whole, values, k * together, axis)

        room = None if operations is None else operations[:, :together]
        initial = walk.start(part_of(end.i), part_of(end.j), room)
        paths = walk.walk(initial, nibble_at, same_at, rules)
        return jax.tree.map(put, walked, paths)

    parts = -(-block.targets // together)
    return lax.fori_loop(start // together, parts, part, empty)
