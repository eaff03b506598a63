"""Local mode: the tiles in which an end cell may lie, from the best of every tile.

One program an item: its 128 threads read the bests of their own lanes, strip after
strip, tile after tile; plain ``jnp`` compares the lanes of a group.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax

from kernels_pallas.core.mosaic import THREADS, kernel, where
from kernels_pallas.pairs.shapes import Fill, FillInputs, FillOutput, Numbers

NO_TILE = 2**30  # above all places of tiles, and all scores


def end_tiles(
    inputs: FillInputs, output: FillOutput, s: Fill, score, tie, interpret=None
):
    """First and last tile in which a local end cell may lie, (items, groups, tables).

    Score and tie come as ``ends.by_item`` gives them. A smaller row wins: tiles are
    counted by strip, lane, then column, and only those of the first lane with a cell
    of the score matter. For swapped pairs a smaller column does: they are counted by
    column first, and only those matter that begin before the first of them ends. Tiles
    in between may lack the score. First is above last where the score is 0.
    """
    items, blocks, peaks = score.shape[0], inputs.strip_records.shape[0], output.peaks
    assert peaks is not None  # a local fill with tiles
    run = kernel(
        partial(_end_program, s=s, blocks=blocks),
        [jax.ShapeDtypeStruct((items * s.tables * 3 * THREADS,), jnp.int32)],
        [],
        (items,),
        ("item",),
        interpret,
    )
    floor = inputs.numbers[Numbers._fields.index("floor")]
    goals = jnp.where(score > 0, score + floor, NO_TILE)
    ties = tie.astype(jnp.int32)
    (places,) = run(inputs.strips, inputs.steps, inputs.first_record,
                    inputs.strip_records, goals.reshape(-1), ties.reshape(-1),
                    peaks.reshape(-1))  # fmt: skip
    places = places.reshape(items, s.tables, 3, s.groups, s.lanes)
    key, first, last = (x.swapaxes(1, 2) for x in jnp.moveaxis(places, 2, 0))
    lane = lax.broadcasted_iota(jnp.int32, key.shape, key.ndim - 1)
    tie = tie[..., None].astype(bool)
    exists = first < NO_TILE
    line = jnp.where(exists, key * s.lanes + lane, NO_TILE)
    # A tile begins at step x * tile - lane of its lane.
    begin = jnp.where(exists, key * s.tile - lane, NO_TILE)
    by_column = begin < begin.min(-1, keepdims=True) + s.tile
    here = exists & jnp.where(tie, by_column, line == line.min(-1, keepdims=True))
    first = jnp.where(here, first, NO_TILE).min(-1)
    return first, jnp.where(here, last, -1).max(-1)


def _end_program(strips, steps, first_record, strip_records, scores, ties, peaks, out,
                 *, s: Fill, blocks: int):  # fmt: skip
    """Of every lane: the first strip (of swapped pairs: column of tiles) whose best is
    the score, and the first and last place in it."""
    th, item = s.threads, lax.axis_index("item")
    scores, ties, peaks = map(th.read_only, (scores, ties, peaks))
    query = lax.div(item, jnp.int32(blocks))
    block = item - query * blocks if s.shared else item
    count = strips[query if s.shared else item]
    tile = jnp.int32(s.tile)
    tiles = lax.div(strip_records[block], tile)
    used = lax.div(steps[2 * block + 1] + (s.tile - 1), tile)
    thread = th.index()
    bits = th.splat(s.lanes.bit_length() - 1)
    lane, group = thread & (s.lanes - 1), lax.shift_right_logical(thread, bits)
    at = group * s.tables
    stride = s.groups * s.tables
    goals = [th.load(scores, at + c, 1, item, stride)[0] for c in range(s.tables)]
    swaps = [th.load(ties, at + c, 1, item, stride)[0] for c in range(s.tables)]
    base = lax.div(first_record[item], tile)

    def tile_of(k, x, state):
        (word,) = th.load(peaks, thread, 1, base + k * tiles + x, THREADS)
        line = lane + k * s.lanes
        by_row, by_column = line * tiles + x, line + x * (count * s.lanes)
        after = []
        for c, (goal, swap) in enumerate(zip(goals, swaps, strict=True)):
            key, first, last = state[3 * c : 3 * c + 3]
            place = where(swap != 0, by_column, by_row)
            line_key = where(swap != 0, th.splat(x), th.splat(k))
            here = _best(th, word, c, s) == goal
            better, same = here & (line_key < key), here & (line_key == key)
            first = where(better, place, first)
            last = where(better | same, place, last)
            after += [where(better, line_key, key), first, last]
        return tuple(after)

    def strip(k, state):
        return lax.fori_loop(jnp.int32(0), used, partial(tile_of, k), state)

    none = th.splat(NO_TILE)
    state = (none, none, th.splat(-1)) * s.tables
    state = lax.fori_loop(jnp.int32(0), count, strip, state)
    for k, value in enumerate(state):
        th.store(out, thread + k * THREADS, (value,), item, 3 * s.tables * THREADS)


def _best(th, word, table, s: Fill):
    """The best of a tile of one table."""
    if not s.packed:
        return word
    return lax.shift_right_arithmetic(word << 16 if table == 0 else word, th.splat(16))
