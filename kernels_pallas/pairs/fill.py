"""The fill of many tables at once: scores, end cells, checkpoints.

A group of G lanes of a warp shares one table, or two in the 16-bit halves of its
registers. Lane g keeps K rows of a strip of G * K and works on the U columns of step
t - g, so that the lanes work on one anti-diagonal of blocks. What the last row of a
lane hands down goes to the next lane by ``shfl``; only queries longer than a strip
have a boundary row in memory.

Borders are data, not branches. Queries stand at the bottom of their strips, and the
pad rows above them copy row 0; columns before a target's first copy column 0. Both
follow from the scores of pad letters (``layout.extended_scores``), so the four free
ends are numbers given at run time, of which the inner loop knows nothing.
"""

import math
from functools import partial

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental.pallas import mosaic_gpu as plgpu

from kernels_pallas.core.copies import copy_scratch, copy_table
from kernels_pallas.core.mosaic import THREADS, kernel, where
from kernels_pallas.pairs.shapes import (
    Fill,
    FillInputs,
    FillOutput,
    Numbers,
    output_shapes,
    records_of_strip,
)
from kernels_pallas.pairs.step import fill_step, load_above
from kernels_pallas.pairs.values import FillView, ScoreArithmetic, column_zero


def fill(inputs: FillInputs, s: Fill, strips: int, records: int = 0,
         interpret=None) -> FillOutput:  # fmt: skip
    """Fill every table of a launch; ``strips`` is S. There is room for ``records``;
    left out, for targets of one length and queries of S strips."""
    blocks = inputs.steps.shape[0] // 2
    queries = inputs.strips.shape[0] if s.shared else 1
    rows = inputs.targets.shape[0] // s.groups
    all_records = queries * strips * blocks * records_of_strip(s, rows // blocks - 1)
    shapes = output_shapes(s, queries, blocks, strips, rows, records or all_records)
    run = kernel(
        partial(_fill_program, s=s, names=tuple(shapes), sizes=(blocks, strips, rows)),
        [jax.ShapeDtypeStruct((math.prod(x),), jnp.int32) for x in shapes.values()],
        [plgpu.SMEM(inputs.scores.shape[1:], jnp.int32), *copy_scratch(s.target)],
        (queries, blocks),
        ("query", "block"),
        interpret,
    )
    out = {
        name: array.reshape(shape)
        for (name, shape), array in zip(shapes.items(), run(*inputs), strict=True)
    }
    out.pop("boundary", None)
    return FillOutput(**out)


# Inputs that threads read by themselves.
READ_BY_THREADS = ("query_lengths", "target_lengths", "targets", "row_offsets", "masks")


def _fill_program(*refs, s: Fill, names, sizes):
    """One query (or two) against the targets of one block."""
    blocks, strip_room, room = sizes
    count = len(FillInputs._fields)
    given, refs = FillInputs(*refs[:count]), refs[count:]
    out = dict(zip(names, refs, strict=False))
    table, *barrier = refs[len(names) :]
    th = s.threads
    given = given._replace(
        **{name: th.read_only(getattr(given, name)) for name in READ_BY_THREADS}
    )
    query, block = lax.axis_index("query"), lax.axis_index("block")
    item = query * blocks + block
    thread = th.index()
    lane = thread & (s.lanes - 1)
    group = lax.shift_right_logical(thread, th.splat(s.lanes.bit_length() - 1))
    n = Numbers(*(given.numbers[k] for k in range(len(Numbers._fields))))
    v = ScoreArithmetic(th, s)
    place = block * s.groups + group
    at = th.splat(2 * query) if s.shared else 2 * place
    m = th.load(given.query_lengths, at, 2)
    columns = th.load(given.target_lengths, 2 * place, 2)
    # Targets end in the last column of a step: ``lead`` columns come before them.
    bits = s.columns.bit_length() - 1
    ends = [
        lax.shift_right_logical(x + (s.columns - 1), th.splat(bits)) for x in columns
    ]
    lead = [x * s.columns - y for x, y in zip(ends, columns, strict=True)]
    tail, total = given.steps[2 * block], given.steps[2 * block + 1]
    count = jnp.where(total > 0, given.strips[query if s.shared else block], 0)
    pad = [count * s.strip - x for x in m]
    view = FillView(
        th=th, s=s, n=n, v=v, item=item, block=block, thread=thread, lane=lane,
        group=group, columns=columns, ends=ends, lead=lead, pad=pad, count=count,
        tail=tail, total=total, start=given.starts[block],
        room=query * room if s.shared else 0, targets=given.targets, table=table,
        out=out, strip_room=strip_room, first_record=given.first_record[item],
        strip_records=given.strip_records[block],
    )  # fmt: skip

    def strip(k, track):
        if s.shared:
            _load_table(th, given.scores, query * strip_room + k, table, barrier)
        rows = _own_rows(view, given.row_offsets, k) if not s.shared else None
        strip_view = view._replace(table=th.read_only(table))
        if not s.stacks:
            return _strip(strip_view, k, rows, track)
        (mask,) = th.load(given.masks, lane, 1, query * strip_room + k, s.lanes)
        (best,) = _strip(strip_view._replace(mask=mask), k, rows, track)
        th.store(out["best"], thread, (th.words(best),), item * strip_room + k, THREADS)
        return track

    if not s.shared:
        _load_table(th, given.scores, 0, table, barrier)
    track = lax.fori_loop(jnp.int32(0), count, strip, _start(view, m))
    if s.stacks:
        return
    for name, value in zip(names, track[-1:] if s.local else track, strict=False):
        th.store(out[name], thread, (th.words(value),), item, THREADS)


def _load_table(th, scores, which, table, barrier):
    """Scores of a strip to shared memory, once nobody reads those before them."""
    th.wait()
    copy_table(th, scores, which, table, barrier)


def _start(view, m):
    """The best values before the first strip; of row m, H[m, 0] is known."""
    v, n = view.v, view.n
    if view.s.local:
        return (v.of(n.floor),) * (2 if view.s.tile else 1)
    return column_zero(view, m), v.of(0)


def _own_rows(view, row_offsets, k):
    """Lists: offsets of the table's rows, for the K rows of this lane."""
    s, th = view.s, view.th
    base = view.block * view.strip_room + k
    at = view.thread * s.rows
    words = ()
    for c in range(0, s.rows, 4):
        words += th.load(row_offsets, at + c, 4, base, THREADS * s.rows)
    return words


def _strip(view, k, rows, track):
    """All columns of strip ``k``."""
    s, th, v = view.s, view.th, view.v
    top = [k * s.strip + view.lane * s.rows - x for x in view.pad[: s.tables]]
    u = tuple(column_zero(view, [x + (r + 1) for x in top]) for r in range(s.rows))
    below = view.n.column_base + view.n.cost
    e = v.join(*(where(x <= -s.rows, view.n.corner, below) for x in top))
    out = (th.words(u[-1]), th.words(e)) * s.columns
    before = th.splat(BEFORE_BYTES)
    ahead = load_above(view, k, jnp.int32(0))
    carry = (u, u, column_zero(view, top), out + (before,), ahead, track)
    step = partial(fill_step, view, k, rows)
    if not s.tile:
        return lax.fori_loop(jnp.int32(0), view.total, step, carry)[-1]

    def tile(x, carry):
        _store_checkpoint(view, k, x, carry)
        carry = lax.fori_loop(x * s.tile, (x + 1) * s.tile, step, carry)
        return _store_peak(view, k, x, carry)

    tiles = lax.div(view.total + (s.tile - 1), jnp.int32(s.tile))
    return lax.fori_loop(jnp.int32(0), tiles, tile, carry)[-1]


# Letter 0 of the extended alphabet, "before the target", in every byte.
BEFORE_BYTES = 0


def _store_checkpoint(view, k, x, carry):
    """Store U and F of all rows before tile ``x``."""
    s, th = view.s, view.th
    values = [th.words(value) for value in carry[0] + carry[1]]
    base = lax.div(view.record(k), jnp.int32(s.tile)) + x
    for c in range(s.rows // 2):
        at = view.thread * 4 + c * 4 * THREADS
        words = values[4 * c : 4 * c + 4]
        th.store(view.out["checkpoints"], at, words, base, 2 * s.rows * THREADS)


def _store_peak(view, k, x, carry):
    """Local mode: store the best of tile ``x`` and begin anew."""
    s, th = view.s, view.th
    if not s.local:
        return carry
    best, total = carry[-1]
    base = lax.div(view.record(k), jnp.int32(s.tile)) + x
    th.store(view.out["peaks"], view.thread, (th.words(best),), base, THREADS)
    floor = view.v.of(view.n.floor)
    return carry[:-1] + ((floor, th.maximum(best, total)),)
