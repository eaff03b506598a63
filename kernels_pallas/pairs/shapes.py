"""Static shapes, run-time numbers, inputs and outputs of a fill.

The words of the pair kernels, from large to small:

program       128 threads that fill an *item*: a query, or two, against one block
block         the targets of a program; of a list, its pairs
group         G lanes of a warp that share a table, or two in the halves of registers
lane          a thread of a group; it keeps K rows in registers
strip         G * K rows of a table, filled from left to right before the strip below
boundary row  the last row of a strip, in memory for the strip below
step          U columns of K rows in every lane; lane g is g steps behind lane 0
record        what a program stores of a step of a strip, for paths
checkpoint    the values of all rows of a lane in one column, stored for paths
tile          K rows of a lane by the columns between two checkpoints
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from kernels_pallas.core.mosaic import THREADS, Threads
from kernels_pallas.core.target import HOPPER, Target


@dataclass(frozen=True)
class Fill:
    """The static choices of a fill; every combination is one compilation."""

    rows: int  # K of a lane, a multiple of 4
    lanes: int  # G of a group, a power of two up to 32
    columns: int  # U of a step, 1, 2 or 4
    local: bool
    packed: bool  # two tables a register, int16
    shared: bool = True  # blocks, queries by profile; else lists, each table its query
    tile: int = 0  # steps between two checkpoints, 0 for no checkpoints
    plain: bool = False  # jnp twins, for the interpreter
    linear: bool = False  # scores alone: opening a gap costs what extending it does
    stacks: int = 0  # local scores of blocks: items of stacked queries (``stacks``)
    target: Target = HOPPER

    @property
    def strip(self) -> int:
        """Rows of a strip."""
        return self.rows * self.lanes

    @property
    def groups(self) -> int:
        """Groups of a program."""
        return THREADS // self.lanes

    @property
    def block(self) -> int:
        """Targets of a program, or pairs of a list."""
        return self.groups if self.shared else self.groups * self.tables

    @property
    def slots(self) -> int:
        """Last columns a thread stores: two tables of a list end apart."""
        return 1 if self.shared else self.tables

    @property
    def tables(self) -> int:
        """Tables a register."""
        return 2 if self.packed else 1

    @property
    def joined(self) -> bool:
        """Whether halves are added as one word: no sum is negative then, and one that
        would be has its highest bit from a score of ``layout.PAD_BIT``."""
        return self.packed and not self.target.integer_halves

    @property
    def threads(self) -> Threads:
        """The operations of the threads of a program."""
        return Threads(self.plain, integer_halves=self.target.integer_halves)


class Numbers(NamedTuple):
    """Run-time scalars of a fill, int32, from ``layout.numbers``.

    Border modes store H + extend * (i + j), where extending a gap is free, plus a bias
    that keeps every value positive; registers hold U = H - cost.
    """

    cost: jax.Array  # local: gap open; border modes: open - extend
    extend: jax.Array  # local: gap extend; border modes: 0
    floor: jax.Array  # local: what a score of 0 is stored as
    corner: jax.Array  # U of cell (0, 0)
    row_base: jax.Array  # U of (0, j) is row_base + row_slope * j
    row_slope: jax.Array
    column_base: jax.Array  # U of (i, 0) is column_base + column_slope * i
    column_slope: jax.Array
    low: jax.Array  # an E that no alignment uses
    unskew: jax.Array  # border modes: extend
    rows_end: jax.Array  # 1 where an alignment may end in row m


class FillOutput(NamedTuple):
    """Arrays that a fill writes, int32; None where its ``Fill`` has no use for one."""

    # local: (items, 128), largest H; of stacked queries (items, S, 128), of a strip
    best: jax.Array | None = None
    row_best: jax.Array | None = None  # border modes: (items, 128), best U of row m
    row_column: jax.Array | None = None  # and its column
    column: jax.Array | None = None  # border modes: (items, S, slots, 128, K), U of n
    bottom_rows: jax.Array | None = None  # (records, 128, 2U): U and E of row K - 1
    checkpoints: jax.Array | None = None  # (records / tile, 2K / 4, 128, 4): U, then F
    peaks: jax.Array | None = None  # local: (records / tile, 128), best H of a tile


class FillInputs(NamedTuple):
    """Arrays that a fill reads, int32, from ``layout``.

    Q queries (pairs of queries where two tables share a register, or items of stacked
    queries), B blocks of targets, S strips, R rows of letters: one for each step of a
    block, and one more.
    The records of an item lie strip after strip, as many as the lengths of its query
    and block need.
    """

    numbers: jax.Array  # (11,)
    strips: jax.Array  # (Q,) or, for lists, (B,)
    starts: jax.Array  # (B,): row of ``targets`` with the letters of step 0
    steps: jax.Array  # (2 * B,): first step with a last column, number of steps
    query_lengths: (
        jax.Array
    )  # (2 * Q,) or, for lists, (2 * B * groups,): m, both tables
    target_lengths: jax.Array  # (2 * B * groups,): n, both tables
    targets: jax.Array  # (R * groups,): a byte a letter, U a table
    scores: jax.Array  # (Q * S, x, 256) profiles, or (1, x, 256) the two tables
    row_offsets: jax.Array  # lists: (B * S * 128 * K,), into ``scores``, both tables
    first_record: jax.Array  # (items,)
    strip_records: Any  # (B,), of NumPy or JAX
    masks: jax.Array  # stacked: (Q * S * lanes,): what a lane takes from the one above


def records_of_strip(s: Fill, ends):
    """Records of a strip whose last column is in step ``ends`` - 1 of the first lane:
    the last lane's comes G - 1 steps later. None where there are no columns."""
    xp = jnp if isinstance(ends, jax.Array) else np
    steps = xp.where(ends > 0, ends + s.lanes, 0)
    return -(-steps // s.tile) * s.tile if s.tile else steps


def output_shapes(s: Fill, queries, blocks, strips, rows, records) -> dict:
    """Names and shapes of the arrays that a launch writes; ``rows`` of letters and
    ``records`` in all, a tile of them at least: threads without work read it."""
    records = max(records, s.tile or 1)
    items = queries * blocks
    names = ("best",) if s.local else ("row_best", "row_column")
    trailing = (strips, THREADS) if s.stacks else (THREADS,)
    shapes = {name: (items, *trailing) for name in names}
    if not s.local:
        shapes["column"] = items, strips, s.slots, THREADS, s.rows
    words = 2 * s.columns
    if not s.tile:
        room = rows if strips > 1 else 1
        return shapes | {"boundary": (queries, room, s.groups, words)}
    tiles = records // s.tile
    shapes["bottom_rows"] = records, THREADS, words
    shapes["checkpoints"] = tiles, s.rows // 2, THREADS, 4
    return shapes | ({"peaks": (tiles, THREADS)} if s.local else {})
