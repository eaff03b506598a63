"""Lay out codes and lengths as a fill reads them; plain ``jnp``, cheap beside the fill.

Letters are extended by pads that stand for what a border does. Of a row: 0 is a row
above the query, a + 1 residue a. Of a column: 0 comes before the target, 1 after it,
a + 2 is residue a. Letters of a second track follow those of the first: one pad for all
borders, then its residues.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

from kernels_pallas.core.exchange import COPY_WORDS
from kernels_pallas.pairs.config import (
    Fill,
    FillInputs,
    Numbers,
    Stacks,
    records_of_strip,
)


class Letters(NamedTuple):
    """Letters of targets of any lengths, block after block, from ``letters``."""

    starts: jax.Array  # int32 (B,), the row where each block begins
    words: jax.Array  # int32 (room * groups,)


def letters_shape(s: Fill) -> Fill:
    """A shape with the same layout of letters, shared by all shapes with that
    layout."""
    return Fill(4, s.lanes, s.columns, local=True, packed=True,
                first_letters=s.first_letters)  # fmt: skip


@partial(jax.jit, static_argnames=("shape", "room"))
def letters(codes, first, lengths, *, shape: Fill, room: int) -> Letters:
    """Lay out targets of any lengths from a flat array.

    Each block gets as many rows as its longest target needs. This is a program of its
    own, so that those of kernels do not depend on the size of a data set.

    Parameters
    ----------
    codes : uint8 (X,), or uint16 of two tracks, the second in the high byte
    first, lengths : int32 (N,), where each target begins, and how long it is
    shape : static, that of the fill
    room : static, rows of letters of all blocks, at least ``config.rows_of``
    """
    s, spare = shape, -len(lengths) % shape.block
    first, lengths = jnp.pad(first, (0, spare)), jnp.pad(lengths, (0, spare))
    ends = -(-lengths // s.columns)
    longest = ends.reshape(-1, s.groups).max(1)
    rows = jnp.where(longest > 0, longest + 1, 0)
    starts = before(rows)
    count = rows.shape[0]
    block = jnp.arange(count, dtype=jnp.int32)
    block = jnp.repeat(block, rows, total_repeat_length=room)
    step = jnp.arange(room, dtype=jnp.int32) - starts[block]
    # (row, group, column of the step)
    target = block[:, None] * s.groups + jnp.arange(s.groups, dtype=jnp.int32)[None, :]
    lead = (-lengths % s.columns)[target][:, :, None]
    j = (step[:, None] * s.columns)[:, :, None] - lead
    j = j + jnp.arange(s.columns, dtype=jnp.int32).reshape(1, 1, -1)
    at = jnp.maximum(j, 0) + first[target][:, :, None]
    letters = codes.at[at].get(mode="clip")
    words = _step_words(letters, j, lengths[target][:, :, None], s)
    return Letters(starts, words.reshape(-1))


def in_blocks(targets, n, s: Fill) -> Letters:
    """Letters of the blocks of a launch, as in ``FillInputs``."""
    if isinstance(targets, Letters):
        return targets
    words = columns(targets, n, s)
    count, steps = words.shape[0] // s.groups, words.shape[1]
    starts = jnp.arange(count, dtype=jnp.int32) * steps
    words = words.reshape(count, s.groups, steps).transpose(0, 2, 1)
    return Letters(starts, words.reshape(-1))


def columns(codes, lengths, s: Fill) -> jax.Array:
    """Letters of targets a step: words with U bytes each, (N, T)."""
    steps = -(-codes.shape[1] // s.columns) + 1
    lead = -lengths % s.columns
    place = jnp.arange(steps * s.columns, dtype=jnp.int32)[None, :]
    j = place - lead[:, None]
    letters = jnp.take_along_axis(codes, jnp.clip(j, 0), axis=1, mode="clip")
    shape = -1, steps, s.columns
    return _step_words(letters, j, lengths[:, None], s, shape)


def _step_words(codes, j, lengths, s: Fill, shape=None):
    """Letters of the extended alphabet in columns ``j`` of targets, in the words of
    steps; ``shape`` of letters by step, that of ``j`` by default."""
    first = codes if s.tracks == 1 else codes & (TRACK - 1)
    letter = jnp.where(j < lengths, first.astype(jnp.int32) + 2, 1)
    letter = jnp.where(j < 0, 0, letter)
    words = in_bytes(letter if shape is None else letter.reshape(shape))
    if s.tracks == 1:
        return words
    second = (codes >> TRACK_BITS).astype(jnp.int32) + 1
    second = jnp.where((j >= 0) & (j < lengths), second, 0) + s.first_letters + 2
    second = in_bytes(second if shape is None else second.reshape(shape))
    return words | second << (8 * s.track_bytes)


def before(sizes):
    """Place where each part begins; 0 for empty parts, so that no place is beyond
    the end."""
    return jnp.where(sizes > 0, jnp.cumsum(sizes) - sizes, 0)


def in_bytes(letters):
    """(..., k) letters -> words, the first in the lowest byte."""
    shift = 8 * jnp.arange(letters.shape[-1], dtype=jnp.int32)
    return jnp.sum(letters << shift.reshape((1,) * (letters.ndim - 1) + (-1,)), -1)


# Codes of two tracks hold the second in the high byte.
TRACK_BITS = 8
TRACK = 2**TRACK_BITS
# Columns of the table of two tracks in lists and walks, and rows in lists: 63 at most.
# So many spread the letters of a warp best over the banks of shared memory.
ROW_LETTERS = 67

# The score of a letter beside a sequence, in local mode: it takes a value below 0.
# Of joined halves (``Fill``) it sets the highest bit of a half, which is 0 before.
PAD_BIT = 2**15
COSTS = 4  # of a position: to open and to extend E, then F


class Problem(NamedTuple):
    """The scoring that all pairs of a call share.

    scores : int32 (A, A), row = query letter, or of blocks (M or more, A) with M above
    A, row = position of every query; gap_open, gap_extend : int32 (),
    non-negative, a gap of k costs gap_open + (k - 1) * gap_extend; the four free ends :
    bool (), no meaning in local mode; wildcard : int32 (), the code whose identities
    do not count, or 255; second : int32 (B, B), of a second track, whose scores are
    added and whose identities do not count; gap_costs : int32 (M or more, COSTS), for
    each position to open and to extend a gap that skips it, then one behind it, of
    which gap_open and gap_extend are the largest.
    """

    scores: jax.Array
    gap_open: jax.Array
    gap_extend: jax.Array
    query_start: jax.Array
    query_end: jax.Array
    target_start: jax.Array
    target_end: jax.Array
    wildcard: jax.Array
    second: jax.Array | None = None
    gap_costs: jax.Array | None = None


def lowest(problem: Problem) -> jax.Array:
    """The least score of two residues."""
    least = jnp.min(problem.scores)
    return least if problem.second is None else least + jnp.min(problem.second)


def highest(problem: Problem) -> jax.Array:
    """The largest score of two residues."""
    largest = jnp.max(problem.scores)
    return largest if problem.second is None else largest + jnp.max(problem.second)


def extended_scores(problem: Problem, s: Fill) -> jax.Array:
    """Scores to add to U of the diagonal neighbour: int32 (A + 1, A + 2); of two
    tracks (A + B + 2, A + B + 3), those of a track with the other 0."""
    first = _first_scores(problem, s)
    if problem.second is None:
        return first
    second = jnp.pad(problem.second, ((1, 0), (1, 0)))
    (rows, columns), size = first.shape, len(second)
    first = jnp.pad(first, ((0, size), (0, size)))
    return first + jnp.pad(second, ((rows, 0), (columns, 0)))


def _first_scores(problem: Problem, s: Fill) -> jax.Array:
    """``extended_scores`` of the first track, or of the only one."""
    rows, size = problem.scores.shape
    if s.local:
        low = -PAD_BIT if s.packed else -(2**30)
        real = problem.scores + (0 if s.gap_costs else problem.gap_open)
        return jnp.pad(real, ((1, 0), (2, 0)), constant_values=low)
    # Stored values are H + extend * (i + j): a diagonal step gains 2 * extend, a copy
    # of row or column 0 that is free gains extend. Where a border is not free, its
    # values come down as a gap, and the diagonal (here -cost) must only not win.
    cost = problem.gap_open - problem.gap_extend
    above = jnp.where(problem.target_start, problem.gap_extend, -cost) + cost
    before = jnp.where(problem.query_start, problem.gap_extend, -cost) + cost
    real = problem.scores + (2 * problem.gap_extend + cost)
    top = jnp.broadcast_to(above, (1, size))
    left = jnp.broadcast_to(before, (rows, 1))
    left = jnp.concatenate([jnp.broadcast_to(cost, (1, 1)), left])
    after = jnp.broadcast_to(cost, (rows + 1, 1))
    return jnp.concatenate([left, after, jnp.concatenate([top, real])], 1)


def _least_step(problem: Problem, s: Fill) -> jax.Array:
    """The least that a diagonal step of border modes adds (``extended_scores``)."""
    least = jnp.min(_first_scores(problem, s))
    if problem.second is None:
        return least
    of_pair = lowest(problem) + problem.gap_open + problem.gap_extend
    return jnp.minimum(least, of_pair)


def numbers(problem: Problem, s: Fill) -> Numbers:
    """The run-time scalars of a fill."""
    zero = jnp.int32(0)
    if s.local:
        floor = local_floor(problem, s)
        gap = zero if s.gap_costs else problem.gap_open
        border = floor - gap
        return Numbers(gap, problem.gap_extend, floor, border, border, zero, border,
                       zero, border, zero, zero)  # fmt: skip
    extend = problem.gap_extend
    cost = problem.gap_open - extend
    # No value may be negative (``_Values.add``). H >= -2 * cost, as two gaps reach
    # every cell; one more column after the target's end and U take a cost each.
    bias = 4 * cost + jnp.maximum(-_least_step(problem, s), 0)
    corner = bias - cost
    row = jnp.where(problem.target_start, corner, corner - cost)
    column = jnp.where(problem.query_start, corner, corner - cost)
    return Numbers(
        cost,
        zero,
        zero,
        corner,
        row,
        jnp.where(problem.target_start, extend, 0),
        column,
        jnp.where(problem.query_start, extend, 0),
        bias - 4 * cost,
        extend,
        problem.target_end.astype(jnp.int32),
    )


def local_floor(problem: Problem, s: Fill) -> jax.Array:
    """Value of a score of 0 in local mode.

    Where joined halves are added, no value less the cost of extending is negative, and
    no value of the diagonal with its score.
    """
    if not s.joined:
        return problem.gap_open
    worst = -lowest(problem)
    return jnp.maximum(problem.gap_open + problem.gap_extend, worst)


def _low_half(score, s: Fill):
    """A score as the low half of a word. Where the fill adds the word as one number,
    a negative low half borrows from the high one; local mode adds halves, unless
    they are joined."""
    if s.local and not s.joined:
        return score & 0xFFFF
    return jnp.where(score == -PAD_BIT, PAD_BIT, score) if s.local else score


def _rows(codes, lengths, strips, strip_room, s: Fill, by_position=False):
    """Row letters of queries, at the bottom of their strips: (Q, most * strip); or
    where these letters stand in their query. As of ``_row_letters``."""
    place = jnp.arange(strip_room * s.strip, dtype=jnp.int32)[None, :]
    i = place - (strips * s.strip - lengths)[:, None]
    letters = jnp.clip(i, 0)
    if not by_position:
        letters = jnp.take_along_axis(codes, letters, axis=1, mode="clip")
    inside = (i >= 0) & (i < lengths[:, None])
    return _row_letters(letters, inside, s)


def _row_letters(codes, inside, s: Fill):
    """Row letters of codes, 0 of a row outside of its query; those of a second track
    in the next byte."""
    if s.tracks == 1:
        return jnp.where(inside, codes.astype(jnp.int32) + 1, 0)
    codes = codes.astype(jnp.int32)
    first = jnp.where(inside, (codes & (TRACK - 1)) + 1, 0)
    second = jnp.where(inside, (codes >> TRACK_BITS) + 1, 0) + s.first_letters + 1
    return first | second << 8


def strips_of(lengths, s: Fill) -> jax.Array:
    """Number of strips of queries: at least one, except for local scores alone."""
    least = 0 if s.local and not s.tile else 1
    return jnp.maximum(-(-lengths // s.strip), least)


def _steps(lengths, s: Fill) -> jax.Array:
    """First step with a last column and number of steps of each block, (B * 2,); 0
    if all targets are empty, which need no fill."""
    ends = -(-lengths // s.columns)
    total = jnp.where(ends.max(1) > 0, ends.max(1) + s.lanes - 1, 0)
    return jnp.stack([ends.min(1) - 1, total], 1).reshape(-1)


def _records(strips, lengths, s: Fill):
    """``first_record`` and ``strip_records``, for lengths (B, targets of a block)."""
    each = records_of_strip(s, (-(-lengths // s.columns)).max(1))
    if not s.shared:
        return before(strips * each), each
    first = before(strips)[:, None] * each.sum()
    first += strips[:, None] * before(each)[None, :]
    return jnp.where(each > 0, first, 0).reshape(-1), each


def shared_inputs(
    problem, queries, m, targets, n, s: Fill, strip_room: int
) -> FillInputs:
    """FillInputs of a fill of every query (Q, M) against every target (N, L), or
    ``Letters``; Q is a multiple of ``s.tables`` and N of ``s.groups``."""
    pairs = m.reshape(-1, s.tables)
    strips = strips_of(pairs.max(1), s)
    rows = _rows(
        queries, m, jnp.repeat(strips, s.tables), strip_room, s, by_position(problem)
    )
    heights = jnp.stack([pairs[:, 0], pairs[:, -1]], 1).reshape(-1)
    profile = _profile(problem, rows.reshape(-1, s.tables, strip_room, s.strip), s)
    return _block_inputs(problem, strips, heights, targets, n, profile, s)


def stacked_inputs(problem, queries, m, stacks: Stacks, targets, n, s: Fill):
    """FillInputs of a fill of stacked queries against every target; the arguments are
    those of ``shared_inputs``."""
    owner, chunk = (jnp.asarray(x)[..., None] for x in (stacks.query, stacks.chunk))
    row = jnp.arange(s.rows, dtype=jnp.int32).reshape(1, 1, 1, -1)
    owner, letters = jnp.broadcast_arrays(owner, chunk * s.rows + row)
    inside = (owner >= 0) & (letters < m[jnp.maximum(owner, 0)])
    if not by_position(problem):
        at = jnp.maximum(owner, 0), letters
        letters = queries.at[at].get(mode="clip").astype(jnp.int32)
    rows = _row_letters(letters, inside, s)
    profile = _profile(problem, rows.reshape(s.stacks, s.tables, -1, s.strip), s)
    heights = jnp.zeros(2 * s.stacks, jnp.int32)
    inputs = _block_inputs(problem, stacks.strips, heights, targets, n, profile, s)
    low, *high = jnp.where(stacks.chunk > 0, -1, 0).swapaxes(0, 1)
    mask = (low & 0xFFFF) | (high[0] << 16) if high else low
    return inputs._replace(masks=mask.reshape(-1))


def by_position(problem: Problem) -> bool:
    """Whether scores are given by query position, as in a profile."""
    return problem.scores.shape[0] != problem.scores.shape[1]


def _profile(problem, rows, s: Fill):
    """Scores of row letters (Q, tables, S, strip), in the order in which lanes load
    them: (Q * S, ..., 256); gap costs by position come first, like letters."""
    table = extended_scores(problem, s)
    if s.gap_costs:
        # What is added; E and F are stored plus what opening them costs.
        open_e, extend_e, open_f, extend_f = problem.gap_costs.T
        longer_e = jnp.pad((open_e - extend_e)[1:], (0, 1)) - open_e
        added = jnp.stack([-open_e, longer_e, -open_f, -extend_f], 1)
        table = jnp.concatenate([jnp.pad(added, ((1, 0), (0, 0))), table], 1)
    # (Q, table, strip, lane, row / 4, row % 4, letter) -> lanes side by side
    profile = table[rows] if s.tracks == 1 else table[rows & 255] + table[rows >> 8]
    profile = profile.reshape(*rows.shape[:3], s.lanes, s.rows // 4, 4, table.shape[1])
    profile = profile.transpose(1, 0, 2, 6, 4, 3, 5)
    profile = profile.reshape(s.tables, rows.shape[0] * rows.shape[2], -1)
    if not s.packed:
        return _table_rows(profile[0])
    return _table_rows(_low_half(profile[0], s) + (profile[1] << 16))


def _block_inputs(problem, strips, heights, targets, n, profile, s: Fill):
    """Make the FillInputs of blocks."""
    starts, words = in_blocks(targets, n, s)
    blocks = n.reshape(-1, s.block)
    return FillInputs(
        jnp.stack(numbers(problem, s)),
        strips,
        starts,
        _steps(blocks, s),
        heights,
        jnp.stack([n, n], 1).reshape(-1),
        words,
        profile,
        _nothing(),
        *_records(strips, blocks, s),
        _nothing(),
    )


def _nothing():
    """Placeholder for an array that a fill does not read."""
    return jnp.zeros(4, jnp.int32)


def _table_rows(flat):
    """Cut (X, words) into rows of one bulk copy: (X, ..., 256)."""
    spare = -flat.shape[1] % COPY_WORDS
    return jnp.pad(flat, ((0, 0), (0, spare))).reshape(flat.shape[0], -1, COPY_WORDS)


def list_inputs(
    problem, queries, m, targets, n, s: Fill, strip_room: int
) -> FillInputs:
    """Make the FillInputs of a list: query k against target k, uint8 (N, M), (N, L).

    N is a multiple of ``s.block``; neighbours share a register.
    """
    table = extended_scores(problem, s)
    if s.tracks > 1:  # a size that does not depend on the alphabets
        table = jnp.pad(table, [(0, ROW_LETTERS - x) for x in table.shape])
    low = _low_half(table, s) if s.packed else table
    score_tables = [low.reshape(-1)] + ([(table << 16).reshape(-1)] if s.packed else [])
    per_block = m.reshape(-1, s.block)
    strips = strips_of(per_block.max(1), s)
    rows = _rows(queries, m, jnp.repeat(strips, per_block.shape[1]), strip_room, s)
    offset = rows * table.shape[1] if s.tracks == 1 else rows
    offset = offset.reshape(-1, s.groups, s.tables, strip_room, s.lanes, s.rows)
    word = offset[:, :, 0]
    if s.packed:
        second_table = table.size if s.tracks == 1 else 0
        word |= (offset[:, :, 1] + second_table) << 16
    word = word.transpose(0, 2, 1, 3, 4)  # (block, strip, group, lane, row)
    letters = columns(targets, n, s)
    letters = letters.reshape(-1, s.groups, s.tables, letters.shape[1])
    joined = letters[:, :, 0]
    if s.packed:
        joined |= letters[:, :, 1] << (8 * s.columns)
    blocks = n.reshape(-1, s.block)
    twice = [x.reshape(-1, s.tables) for x in (m, n)]
    twice = [jnp.stack([x[:, 0], x[:, -1]], 1).reshape(-1) for x in twice]
    return FillInputs(
        jnp.stack(numbers(problem, s)),
        strips,
        jnp.arange(len(strips), dtype=jnp.int32) * letters.shape[-1],
        _steps(blocks, s),
        twice[0],
        twice[1],
        joined.transpose(0, 2, 1).reshape(-1),
        _table_rows(jnp.concatenate(score_tables)[None]),
        word.reshape(-1),
        *_records(strips, blocks, s),
        _nothing(),
    )


def row_bytes(codes, lengths, tallest, strip_room, s: Fill) -> jax.Array:
    """Row letters of every query, four a word: (Q, most * strip / 4); those of a second
    track follow: (Q, most * strip / 2).

    ``tallest`` (Q,) is the longest query that stands in the same strips.
    """
    rows = _rows(codes, lengths, strips_of(tallest, s), strip_room, s)
    rows = rows.reshape(rows.shape[0], -1, 4)
    if s.tracks == 1:
        return in_bytes(rows)
    return jnp.concatenate([in_bytes(rows & 255), in_bytes(rows >> 8)], 1)


def walk_table(problem: Problem, s: Fill, scale: int, tag: int) -> jax.Array:
    """``extended_scores`` with 32 letters a row, or ``ROW_LETTERS`` of two tracks,
    scaled and, those of the first track, tagged: (1, x, 256), those of a profile
    flat."""
    table = jnp.maximum(extended_scores(problem, s), -(2**25)) * scale
    if s.tracks == 1:
        table, letters = table + tag, 32
    else:
        table, letters = table.at[: s.first_letters + 1].add(tag), ROW_LETTERS
    table = jnp.pad(table, ((0, 0), (0, letters - table.shape[1])))
    if by_position(problem):
        return table.reshape(-1)
    return _table_rows(table.reshape(1, -1))
