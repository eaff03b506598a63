"""Scores and paths of many pairs in a few launches: the functions for an engine.

Every function is compiled for the shapes of its arrays and its static arguments; the
lengths are data. Nothing waits for the device.
"""

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from kernels_pallas.pairs import config, ends, layout, walk
from kernels_pallas.pairs.config import Fill
from kernels_pallas.pairs.ends import end_tiles
from kernels_pallas.pairs.fill import fill
from kernels_pallas.pairs.layout import Letters, Problem


class Result(NamedTuple):
    """Results of every pair, int32: (Q, N) for a block, (N,) for a list.

    Without paths only ``score`` is there. ``runs`` is (R, Q, N) or (R, N), length << 4
    | operation (0 M, 1 I, 2 D, as BAM does), from the end of the path to its start;
    the first ``count`` are valid. ``overflow`` (bool; local int16 only) marks pairs
    that have to be aligned again in int32; all others are right.
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
    overflow: jax.Array | None = None


IDENTITY_BITS = 13  # of the matches in an int32 score


def problem_of(scores, gap_open, gap_extend, free_ends=(), wildcard=255, second=None,
               gap_costs=None) -> Problem:  # fmt: skip
    """Make a ``Problem`` from plain numbers.

    Parameters
    ----------
    scores : int (A, A), row = query letter, A <= 30; for scores of blocks also (M or
        more, A), M above A, row = position in the query: those of a profile
    gap_open, gap_extend : int, a gap of k costs gap_open + (k - 1) * gap_extend
    free_ends : some of query_start, query_end, target_start, target_end: residues of
        that sequence which hang over there cost nothing; without meaning in local mode
    wildcard : code that is identical to nothing
    second : int (B, B), optional, B <= 30, of a second track; then codes are uint16,
        the second track's in the high byte, and a shape's ``first_letters`` is A
    gap_costs : int (4, M), optional, for local scores of blocks of a profile: to open
        and to extend a gap that skips each position, then one behind it. No position
        has an extension that costs more than opening; gap_open and gap_extend are the
        largest costs
    """

    def number(value):  # converted in NumPy: JAX would compile that
        return np.asarray(value, np.int32)

    names = ("query_start", "query_end", "target_start", "target_end")
    ends_free = (np.asarray(name in free_ends) for name in names)
    costs = number(gap_open), number(gap_extend)
    numbers = number(scores), *costs, *ends_free, number(wildcard)
    if gap_costs is not None:
        gap_costs = np.asarray(gap_costs, np.int32)
        gap_costs = np.pad(gap_costs, ((0, 0), (0, len(scores) - gap_costs.shape[1]))).T
    states = None if second is None else number(second)
    return Problem(*jax.device_put((*numbers, states, gap_costs)))


def split_identity(score) -> tuple[jax.Array, jax.Array]:
    """(score, matches) of an int32 score that counts matches, too: that of scores times
    2^13, one more where letters are identical, and of gap costs times 2^13.

    The best such score is the best score, and the most identities over all alignments
    that have it; min(m, n) is below 2^13.
    """
    return score >> IDENTITY_BITS, score & (2**IDENTITY_BITS - 1)


@partial(jax.jit, static_argnames=("shape", "runs", "records", "interpret"))
def align(problem: Problem, queries, m, targets, n, tie=None, stacks=None, *,
          shape: Fill, runs: int = 0, records: int = 0,
          interpret=None) -> Result:  # fmt: skip
    """Every query against every target; query k against target k where the shape is not
    ``shared``. Neighbours of such a list share registers and warps, so they should have
    similar lengths.

    Parameters
    ----------
    problem : Problem, see ``problem_of``
    queries, targets : uint8 (Q, M) and (N, L), or uint16 of two tracks, anything after
        a sequence's end; targets that are shared may be ``Letters`` instead, of
        ``letters`` with the same shape
    m, n : int32 (Q,) and (N,), their lengths; 0 is a length too
    tie : bool (Q, N), or (N,) of a list: pairs computed with their two sides swapped
    stacks : ``config.stack`` of the lengths of the queries, where the shape has such
    shape : static, of ``config.choose`` or ``config.spread``; one with checkpoints is
        for paths. ``config.fits`` says whether the values stay in its range,
        ``config.safe_score`` which local int16 scores do
    runs : static, the runs of operations stored of a path at most; 0 for counts alone
    records : static, with paths, room for records, at least ``config.records_of``;
        left out, for targets of L letters and queries of M

    Returns
    -------
    Result
        (Q, N) int32, ``runs`` (runs, Q, N); of a list without Q. A path of more runs
        than there is room for has a ``count`` above ``runs``: call again with more.
    """
    s, q, t = shape, m.shape[0], n.shape[0]
    if problem.gap_costs is not None:
        assert s.local and s.shared and not s.tile, "local scores of blocks"
        s = replace(s, gap_costs=True, linear=False)
    pairs = (q, t) if s.shared else (q,)
    queries, m = _pad(s.tables if s.shared else s.block, queries, m)
    targets, n = _pad(s.block, targets, n)
    tie = jnp.zeros(pairs, bool) if tie is None else tie
    room = zip(pairs, (m.shape[0], n.shape[0]), strict=False)
    tie = jnp.pad(tie, [(0, padded - size) for size, padded in room])
    if isinstance(targets, Letters):
        assert records or not s.tile, "no size for the records of Letters"
    sides = Sides(queries, m, targets, n)
    result = run(problem, sides, tie, stacks, s, runs, records, interpret)
    return jax.tree.map(lambda x: x[(..., *map(slice, pairs))], result)


def _pad(multiple, codes, lengths):
    """Add empty sequences up to the next multiple."""
    spare = -lengths.shape[0] % multiple
    lengths = jnp.pad(lengths, (0, spare))
    if isinstance(codes, Letters):
        return codes, lengths
    return jnp.pad(codes, ((0, spare), (0, 0))), lengths


class Sides(NamedTuple):
    """Queries and targets of a launch, with their lengths, as ``align`` takes them."""

    queries: Any  # uint8 (Q, M)
    m: jax.Array
    targets: Any  # uint8 (N, L), or ``Letters``
    n: jax.Array


def run(
    problem: Problem, sides: Sides, tie, stacks, s: Fill, runs, records, interpret
) -> Result:
    """Fill, end cells and walks of one launch; sizes fit ``s`` (see ``layout``)."""
    queries, m, targets, n = sides
    strips = max(-(-queries.shape[1] // s.strip), 1)
    if s.stacks:
        strips = stacks.query.shape[2] // s.lanes
        inputs = layout.stacked_inputs(problem, queries, m, stacks, targets, n, s)
    elif s.shared:
        inputs = layout.shared_inputs(problem, queries, m, targets, n, s, strips)
    else:
        inputs = layout.list_inputs(problem, queries, m, targets, n, s, strips)
    output = fill(inputs, s, strips, records, interpret)
    numbers = layout.numbers(problem, s)
    if s.shared:
        shape = m.shape[0], n.shape[0]
        rows, columns = jnp.broadcast_to(m[:, None], shape), jnp.broadcast_to(n, shape)
    else:
        rows, columns = m, n
    if s.stacks:
        score = ends.stacked_score(output, numbers, s, stacks, m.shape[0])
        score = jnp.where((rows > 0) & (columns > 0), score, 0)
        end = ends.EndCells(score, jnp.zeros_like(score), jnp.zeros_like(score))
    elif s.local:
        score = ends.local_score(output, numbers, s, m.shape[0])
        end = ends.EndCells(score, jnp.zeros_like(score), jnp.zeros_like(score))
    else:
        end = ends.border_end(output, problem, numbers, s, rows, columns, tie)
    overflow = None
    if s.local and s.packed:
        highest = layout.highest(problem)
        if s.gap_costs:  # which E and F have on them
            highest += problem.gap_open
        overflow = end.score > config.safe(highest, numbers.floor, s.target)
    if not s.tile:
        return Result(end.score, overflow=overflow)
    pairs = _walk_inputs(problem, queries, m, end, tie, strips, s)
    if s.local:
        score, ties = (ends.by_item(x, s) for x in (end.score, tie))
        first, last = end_tiles(inputs, output, s, score, ties, interpret)
        pairs = pairs._replace(i=first.reshape(-1), j=last.reshape(-1))
        i, j = walk.find(inputs, output, pairs, s, interpret)
        pairs = pairs._replace(i=i, j=j)
    walks = walk.walk(inputs, output, pairs, s, runs, interpret)

    def back(words):
        values = words.reshape(-1, s.groups, s.tables)
        return ends.by_pair(values, s, m.shape[0])

    columns = walks._asdict()
    words = columns.pop("runs")
    operations = None if words is None else jax.vmap(back)(words)
    columns = {name: back(words) for name, words in columns.items()}
    start = {"start_i": columns.pop("i"), "start_j": columns.pop("j")}
    return Result(end.score, back(pairs.i), back(pairs.j), **start, **columns,
                  runs=operations, overflow=overflow)  # fmt: skip


def _walk_inputs(problem, queries, m, end, tie, strips, s: Fill) -> walk.WalkInputs:
    """FillInputs of the walks; words of pairs in the order (item, group, table)."""

    def words(values):
        return ends.by_item(values.astype(jnp.int32), s).reshape(-1)

    local = jnp.asarray(s.local)
    free = jnp.stack([problem.target_start | local, problem.query_start | local])
    return walk.WalkInputs(
        layout.row_bytes(queries, m, ends.tallest(m, s), strips, s),
        layout.walk_table(problem, s, walk.TILE_SCALE, walk.TILE_DIAGONAL),
        words(end.score),
        words(end.i),
        words(end.j),
        words(tie),
        free.astype(jnp.int32),
        (problem.wildcard + 1).reshape(1),
    )
