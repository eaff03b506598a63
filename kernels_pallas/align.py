"""Scores and paths of many pairs in a few launches: what an engine calls."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from kernels_pallas import ends, layout, pair_walk
from kernels_pallas.layout import Problem
from kernels_pallas.pair_fill import Fill, fill


class Result(NamedTuple):
    """Of every pair: (Q, N) for a block, (N,) for a list; int32.

    Without paths only ``score`` is there. ``runs`` is (R, Q, N) or (R, N), length << 4
    | operation (0 M, 1 I, 2 D, as BAM does), from the end of the path to its start;
    the first ``count`` are valid.
    """

    score: jax.Array
    end_i: jax.Array | None = None
    end_j: jax.Array | None = None
    start_i: jax.Array | None = None
    start_j: jax.Array | None = None
    identities: jax.Array | None = None
    columns: jax.Array | None = None
    gap_openings: jax.Array | None = None
    gaps: jax.Array | None = None
    count: jax.Array | None = None
    runs: jax.Array | None = None


def run(problem: Problem, queries, m, targets, n, tie, s: Fill, paths, runs,
        interpret=None) -> Result:  # fmt: skip
    """Fill, end cells and walks of one launch; sizes fit ``s`` (see ``layout``)."""
    most = -(-queries.shape[1] // s.strip)
    make = layout.shared_inputs if s.shared else layout.list_inputs
    inputs = make(problem, queries, m, targets, n, s, most)
    filled = fill(inputs, s, most, interpret)
    numbers = layout.numbers(problem, s)
    if s.shared:
        shape = m.shape[0], n.shape[0]
        rows, columns = jnp.broadcast_to(m[:, None], shape), jnp.broadcast_to(n, shape)
    else:
        rows, columns = m, n
    if s.local:
        score = ends.local_score(filled, numbers, s, m.shape[0])
        end = ends.End(score, jnp.zeros_like(score), jnp.zeros_like(score))
    else:
        end = ends.border_end(filled, problem, numbers, s, rows, columns, tie)
    if not paths:
        return Result(end.score)
    pairs = _pairs(problem, queries, m, end, tie, most, s)
    if s.local:
        i, j = pair_walk.find(inputs, filled, pairs, s, interpret)
        pairs = pairs._replace(i=i, j=j)
    walks = pair_walk.walk(inputs, filled, pairs, s, runs, interpret)

    def back(words):
        values = words.reshape(-1, s.groups, s.tables)
        return ends.by_pair(values, s, m.shape[0])

    found = walks._asdict()
    kept = found.pop("runs")
    kept = None if kept is None else jax.vmap(back)(kept)
    found = {name: back(words) for name, words in found.items()}
    start = {"start_i": found.pop("i"), "start_j": found.pop("j")}
    return Result(end.score, back(pairs.i), back(pairs.j), **start, **found, runs=kept)


def _pairs(problem, queries, m, end, tie, most, s: Fill) -> pair_walk.Pairs:
    """Inputs of the walks; words of pairs in the order (item, group, table)."""

    def words(values):
        return ends.by_item(values.astype(jnp.int32), s).reshape(-1)

    local = jnp.asarray(s.local)
    free = jnp.stack([problem.target_start | local, problem.query_start | local])
    return pair_walk.Pairs(
        layout.row_bytes(queries, m, ends.tallest(m, s), most, s),
        layout.walk_table(problem, s, pair_walk.SCALE, pair_walk.DIAGONAL),
        words(end.score),
        words(end.i),
        words(end.j),
        words(tie),
        free.astype(jnp.int32),
        (problem.wildcard + 1).reshape(1),
    )
