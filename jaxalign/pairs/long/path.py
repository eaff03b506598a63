"""The path of a long pair: blocks on it are filled again, from the end to the start.

Between the lines of a grid the path crosses few blocks. Such a block is filled again
with a grid of its own, until it is small: then it is filled with directions, and
walked. A walk that stops on the border of a block goes on in the next one, in the gap
that it was in.
"""

from contextlib import closing
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np

from jaxalign.one_function import CPU_OPTIONS
from jaxalign.pairs.dp import walk, wavefront
from jaxalign.pairs.long import band
from jaxalign.pairs.long.band import Bands, WalkPlace
from jaxalign.pairs.long.blocks import (
    Fill,
    LineGrid,
    LongPair,
    TableBlock,
    block_of,
    narrow,
)
from jaxalign.pairs.long.tile_fill import padded
from jaxalign.runtime.devices import first_device, on_cpu
from jaxalign.runtime.lengths import bucket
from jaxalign.runtime.programs import program

if TYPE_CHECKING:
    from jaxalign.pairs.dp.window_program import WindowProblem


LEAF_ROWS, LEAF_COLUMNS = 512, 1024
empty_codes = program(("rows", "columns"))(wavefront.empty_codes)


def path(
    pair: LongPair,
    grids: list[LineGrid],
    end: tuple[int, int],
    score: int,
    fill: Fill,
    threads: int = 1,
) -> tuple:
    """The path to a cell of some score: start cell, and operations in reading order,
    uint8.

    grids : of slabs of columns that make up the table, the first on the left
    threads : that fill bands of the path ahead, which changes nothing of it
    """
    pieces: list[np.ndarray] = []
    place = WalkPlace(*end, score)
    for grid in reversed(grids):
        if grid.block.j < place.j:
            place = _through(pair, grid, place, fill, threads, pieces)
    i, j = place.i, place.j
    if not place.ended:
        if i == 0 and j and not (pair.local or "target_start" in pair.free):
            pieces.append(np.full(j, walk.D, np.uint8))
            j = 0
        elif j == 0 and i and not (pair.local or "query_start" in pair.free):
            pieces.append(np.full(i, walk.I, np.uint8))
            i = 0
    steps = np.concatenate([np.zeros(0, np.uint8), *pieces])[::-1]
    return (i, j), steps


def _through(
    pair: LongPair,
    grid: LineGrid,
    place: WalkPlace,
    fill: Fill,
    threads: int,
    pieces: list[np.ndarray],
) -> WalkPlace:
    """Walk to the border of the block of a grid, or to the start."""
    outer = grid.block
    with closing(Bands(pair, grid, threads)) as bands:
        while not place.ended and place.i > outer.i and place.j > outer.j:
            above = bands.through(place, pieces)
            if above is not None:
                place = above
                continue
            block = block_of(grid, place.i, place.j)
            if block.rows <= LEAF_ROWS and block.columns <= LEAF_COLUMNS:
                with on_cpu():
                    place = _walk_leaf(pair, block, place, pieces)
            else:
                # No other path to this cell is asked for.
                end = place.i, place.j
                inner = fill(pair, block, place.score, until=end)
                place = _through(pair, inner, place, fill, threads, pieces)
    return place


def _walk_leaf(
    pair: LongPair, block: TableBlock, place: WalkPlace, pieces: list
) -> WalkPlace:
    """Fill a small block with directions, and walk from its last cell."""
    rows = bucket(block.rows, size=64)
    columns = bucket(block.columns, size=64)
    query, target = np.zeros(rows, np.int32), np.zeros(columns, np.int32)
    query[: block.rows] = pair.query[block.i : place.i]
    target[: block.columns] = pair.target[block.j : place.j]
    given = query, target, np.int32(block.rows), np.int32(block.columns)
    lines = narrow(pair, block)
    codes = _directions(
        *given,
        padded(lines.top, columns),
        padded(lines.left, rows),
        lines.problem,
        empty_codes(rows=rows, columns=columns),
        local=pair.local, fused=first_device().platform == "cpu",
    ).codes  # fmt: skip
    walked = _walk(codes, *given[2:], np.int32(place.move), columns=columns)
    i, j, move, ended, count, steps = map(np.asarray, walked)
    steps = steps[: int(count)]
    pieces.append(steps)
    cell = block.i + int(i), block.j + int(j)
    return place.after(pair, steps, cell, int(move))._replace(ended=bool(ended))


@program(("local", "fused"), donate_argnames=("codes",), compiler_options=CPU_OPTIONS)
def _directions(
    query: jax.Array,
    target: jax.Array,
    m: jax.Array,
    n: jax.Array,
    top: tuple[jax.Array, jax.Array],
    left: tuple[jax.Array, jax.Array],
    problem: "WindowProblem",
    codes: jax.Array,
    *,
    local: bool,
    fused: bool,
):
    """The ``wavefront.Strip`` of a block, with directions. All of it is the result:
    what nobody asks for XLA:CPU would take out of its loop, and stop there."""
    return wavefront.strip(
        query, target, m, n, 0, wavefront.Top(*top), problem.scores, problem.gaps,
        problem.free, m + n + 1 if fused else None, codes, left=left, local=local,
        fused=fused,
    )  # fmt: skip


@program(("columns",))
def _walk(
    codes: jax.Array, m: jax.Array, n: jax.Array, move: jax.Array, *, columns: int
):
    """Where a walk from (m, n) leaves a block: i, j, move, whether it ended before, how
    many steps, and these."""

    def nibble_at(i: jax.Array, j: jax.Array):
        return codes.at[i + j, i].get(mode="clip").astype(jnp.int32)

    longest = codes.shape[1] - 1 + columns
    walked = band.walk_to_border(nibble_at, m, n, move, longest)
    i, j, count = walked.i[0], walked.j[0], walked.columns[0]
    return i, j, walked.move[0], (i > 0) & (j > 0), count, walked.steps[:, 0]


def counts_of(pair: LongPair, start: tuple[int, int], steps: np.ndarray) -> dict:
    """The counts of a path, as a ``PairResult`` has them."""
    gap = steps != walk.M
    opens = gap.copy()
    opens[1:] &= steps[1:] != steps[:-1]
    i = start[0] + np.cumsum(steps != walk.D)[~gap] - 1
    j = start[1] + np.cumsum(steps != walk.I)[~gap] - 1
    letters = pair.query[i]
    same = (letters == pair.target[j]) & (letters != int(pair.problem.wildcard))
    return {
        "identities": int(same.sum()),
        "columns": len(steps),
        "gap_openings": int(opens.sum()),
        "gaps": int(gap.sum()),
    }
