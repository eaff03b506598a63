"""A window on one device: queries against a block of targets, from codes to results.

fill (``sweep``) -> end cells (``ends``) -> walk (``walk``), query by query, inside one
compiled program; only scores, counts and steps leave it.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxalign.dp import ends, profile, sweep, walk
from jaxalign.dp.call import CPU_OPTIONS, one_function
from jaxalign.dp.recurrence import Gaps


class Problem(NamedTuple):
    """What all pairs of a job share."""

    scores: jax.Array  # (A, A), row = query letter
    gaps: Gaps  # scalars of the score dtype
    free: dict  # four bool scalars
    wildcard: jax.Array  # int32 (), its identities do not count; 255 for none


class Result(NamedTuple):
    """One row a query. Scores are of the score dtype, counts int32 (Q, B); ``steps``
    is uint8 (Q, T, B), ``end`` and ``walked`` are None for score-only windows."""

    score: jax.Array
    end_i: jax.Array | None = None
    end_j: jax.Array | None = None
    walked: walk.Walked | None = None


@partial(jax.jit, static_argnames=("shared",), compiler_options=CPU_OPTIONS)
def load_block(codes, lengths, problem: Problem, local, shared: bool = True):
    """Right-align targets, lay out their scores.

    Parameters
    ----------
    codes : uint8 (L, B), left-aligned residues, anything after the end
    lengths : int32 (B,)
    local : bool scalar
    shared : whether all lanes meet the same query, so that a profile pays
    """
    columns = jnp.max(lengths)
    offset = columns - lengths
    size = problem.scores.shape[0]
    row = jnp.arange(codes.shape[0], dtype=jnp.int32)[:, None] - offset[None, :]
    moved = jnp.take_along_axis(codes, jnp.clip(row, 0), axis=0, mode="clip")
    moved = jnp.where((row >= 0) & (row < lengths[None, :]), moved, size)
    moved = moved.astype(jnp.uint8)
    pad = -problem.gaps.open
    free = problem.free["query_start"] | local
    pad_column = jnp.where(free, jnp.zeros_like(pad), pad)
    scores = profile.padded_scores(problem.scores, pad_column, pad)
    if shared:
        scores = profile.database_profile(scores, moved)
    return sweep.Block(moved, offset, columns, scores)


STATIC = ("local", "rows", "paths", "steps", "fused")


@partial(
    jax.jit,
    static_argnames=STATIC,
    donate_argnames=("halves",),
    compiler_options=CPU_OPTIONS,
)
def run_window(
    block, queries, lengths, count, tie, problem, halves=None, **static
) -> tuple[Result, jax.Array | None]:
    """Align the first ``count`` queries against every lane.

    Parameters
    ----------
    block : sweep.Block
    queries : uint8 (Q, M) or, a query a lane, (Q, M, B); anything after the end
    lengths : int32 (Q, B)
    count : int32 (), rows beyond it are not computed
    tie : bool (Q, B), pairs whose two sides are swapped
    halves : uint16 (capacity,) scratch, given back; needed for paths, holds at least
        ceil(m / rows) * (rows / 4) * columns * B
    local, rows, paths, steps, fused : static; ``paths`` walks and counts, ``steps``
        keeps the operations too
    """
    shape = queries.shape[0], block.offset.shape[0]
    out = _empty(shape, block, queries, problem, **static)

    def one(q, state):
        out, halves = state
        result, halves = _one_query(
            block, queries[q], lengths[q], tie[q], problem, halves, **static
        )
        place = partial(lax.dynamic_update_index_in_dim, index=q, axis=0)
        return jax.tree.map(place, out, result), halves

    return lax.fori_loop(0, count, one, (out, halves))


def _empty(shape, block, queries, problem, *, paths, steps, **_):
    count = jnp.zeros(shape, jnp.int32)
    score = jnp.zeros(shape, problem.gaps.open.dtype)
    if not paths:
        return Result(score)
    kept = None
    if steps:
        longest = queries.shape[1] + block.codes.shape[0]
        kept = jnp.zeros((shape[0], longest, shape[1]), jnp.uint8)
    return Result(score, count, count, walk.Walked(*[count] * 8, kept))


def _one_query(
    block, codes, m, tie, problem, halves, *, local, rows, paths, steps, fused
):
    size = problem.scores.shape[0]
    below = jnp.arange(codes.shape[0], dtype=jnp.int32).reshape(
        (-1,) + (1,) * (codes.ndim - 1)
    )
    below = below >= (jnp.max(m) if codes.ndim == 1 else m[None, :])
    codes = jnp.where(below, size, codes.astype(jnp.int32))
    dtype = problem.gaps.open.dtype
    query = sweep.Query(codes, m, -(-jnp.max(m) // rows), tie.astype(dtype))
    filled = sweep.fill(
        block,
        query,
        problem.gaps,
        problem.free,
        halves,
        local=local,
        rows=rows,
        fused=fused,
    )
    end = ends.sweep_end(filled, block, m, problem.gaps, problem.free, query.tie, local)
    if not paths:
        return Result(end.score), None
    walked = _walk(block, codes, end, filled.halves, problem, local, steps, fused)
    return Result(end.score, end.i, end.j, walked), filled.halves


def _walk(block, codes, end, halves, problem, local, keep_steps, fused):
    """Walk all lanes; their nibbles lie in ``halves`` as ``sweep`` stored them."""
    lanes = block.offset.shape[0]
    lane = jnp.arange(lanes, dtype=jnp.int32)
    rules = walk.Rules(
        problem.free["target_start"] | local,
        problem.free["query_start"] | local,
        jnp.int32(-1),
    )
    steps = None
    if keep_steps:
        longest = codes.shape[0] + block.codes.shape[0]
        steps = jnp.full((longest, lanes), walk.DONE, jnp.uint8)

    def run(i, j, steps, halves, codes, targets, offset, columns, wildcard, rules):
        def nibble_at(i, j):
            place = ((i - 1) // 4 * columns + j - 1 + offset) * lanes + lane
            half = halves.at[place].get(mode="clip").astype(jnp.int32)
            return (half >> (4 * (3 - (i - 1) % 4))) & 15

        def same_at(i, j):
            row = jnp.clip(i - 1, 0)
            a = codes[row] if codes.ndim == 1 else codes[row, lane]
            b = targets.at[jnp.clip(j - 1 + offset, 0), lane].get(mode="clip")
            b = b.astype(jnp.int32)
            return (a == b) & (a != wildcard)

        return walk.walk(walk.start(i, j, steps), nibble_at, same_at, rules)

    return one_function(run, enabled=False)(
        end.i,
        end.j,
        steps,
        halves,
        codes,
        block.codes,
        block.offset,
        block.columns,
        problem.wildcard,
        rules,
    )
