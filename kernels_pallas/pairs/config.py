"""Static shape of a fill, and lengths and bytes of the arrays of a launch.

Lengths are run-time values: a compilation serves all queries of a bucket and targets of
any length, and of a list all pairs of two buckets. docs/gpu-kernels.md counts them.

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

Queries may stand one below the other in the strips of a fill. A lane has K rows of one
query. Local scores of several queries may share a strip: where a query begins, a lane
takes nothing from the lane above. So at most K - 1 rows of a query are computed in
vain, and not those of half a strip.
"""

import heapq
import math
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from kernels_pallas.core.mosaic import THREADS, Threads
from kernels_pallas.core.target import HOPPER, Target, this_target


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
    first_letters: int = 0  # of two tracks, letters of the first one's alphabet
    gap_costs: bool = False  # by position, of local scores of blocks (``align``)

    @property
    def tracks(self) -> int:
        """Look-ups of a cell, whose scores add up."""
        return 2 if self.first_letters else 1

    @property
    def track_bytes(self) -> int:
        """Bytes of a track in a word of target letters."""
        return self.columns * self.slots

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
        """Last columns that a thread stores: one for each table of a list."""
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

    cost: jax.Array  # local: gap open, 0 by position; border modes: open - extend
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
    # (R * groups,): a byte a letter, U a table, and as many of a second track
    targets: jax.Array
    scores: jax.Array  # (Q * S, x, 256) profiles, or (1, x, 256) the two tables
    # lists: (B * S * 128 * K,), both tables: places in ``scores``; of two tracks a byte
    # for each row letter
    row_offsets: jax.Array
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


NO_QUERY = -1
LEAST_STRIPS, STRIPS_RATIO = 2, 4  # room for the strips of an item


class Stacks(NamedTuple):
    """Which rows of which query a lane has, int32: I items, of each table of a register
    S strips of lanes."""

    query: np.ndarray  # (I, tables, S * lanes), or NO_QUERY
    chunk: np.ndarray  # (I, tables, S * lanes): its K rows from row K * chunk on
    strips: np.ndarray  # (I,), in use


def stack(lengths, s: Fill) -> Stacks:
    """Queries of these lengths in ``s.stacks`` items; S is 2, 8, 32 …"""
    chunks = -(-np.asarray(lengths, np.int64) // s.rows)
    tables = _tables(chunks, s)
    strips = _strips(chunks, tables, s)
    strip_room = LEAST_STRIPS
    while strip_room < strips.max():
        strip_room *= STRIPS_RATIO
    query = np.full((len(tables), strip_room * s.lanes), NO_QUERY, np.int32)
    chunk = np.zeros_like(query)
    for owner, place, taken in zip(query, chunk, tables, strict=True):
        each = [np.arange(chunks[q], dtype=np.int32) for q in taken]
        count = sum(map(len, each))
        owner[:count] = np.repeat(taken, [len(x) for x in each])
        place[:count] = np.concatenate([place[:0], *each])
    shape = s.stacks, s.tables, strip_room * s.lanes
    return Stacks(query.reshape(shape), chunk.reshape(shape), strips.astype(np.int32))


def stacked_strips(lengths, s: Fill) -> np.ndarray:
    """Number of strips of every item, int64 (I,)."""
    chunks = -(-np.asarray(lengths, np.int64) // s.rows)
    return _strips(chunks, _tables(chunks, s), s)


def _tables(chunks, s: Fill) -> list[list[int]]:
    """The queries of every table of every item, fullest first: longest first, each to
    the table with the least."""
    least = [(0, k) for k in range(s.stacks * s.tables)]
    tables: list[list[int]] = [[] for _ in least]
    for q in np.argsort(-chunks, kind="stable").tolist():
        load, k = heapq.heappop(least)
        tables[k].append(q)
        heapq.heappush(least, (load + int(chunks[q]), k))
    return [tables[k] for _, k in sorted(least, reverse=True)]


def _strips(chunks, tables, s: Fill) -> np.ndarray:
    loads = np.array([sum(chunks[q] for q in taken) for taken in tables])
    return -(-loads.reshape(s.stacks, s.tables).max(1) // s.lanes)


# Rows a lane and lanes a group of score-only blocks: strips of 256, 320 and 384 rows.
# Queries take as many strips of the height that fits them best; few heights, since each
# is a compilation. Measured in docs/logs/gpu-pairs.md.
LOCAL_SHAPES = ((96, 4), (80, 4), (64, 4))
LOW_LOCAL_SHAPES = ((80, 4), (48, 8), (64, 4))  # where 96 rows would spill
BORDER_SHAPES = ((48, 8), (40, 8), (32, 8))
MAX_FITTED_LENGTH = 1536  # letters; longer queries take the first height
# Longer queries than this have a whole warp a group, or all would wait for one program;
# and no more rows, since their scores have to fit shared memory.
MAX_STRIP_LENGTH = 9216  # letters
LONG_QUERY_SHAPES = (48, 32), (40, 32), (24, 32), (12, 32)  # the first that has room
# Words of a row of a profile: 30 letters and two pads. Two tracks take twice as many:
# those of the second track have a pad, too.
PROFILE_LETTERS = 32
PROGRAM_BYTES = 1024  # of shared memory beside the profile
# Few queries: all must not wait for the program of the longest targets, so more lanes
# take its rows. A step takes the time of its cells and of LONE_STEP_CELLS more; of
# BUSY_STEP_CELLS more where programs run side by side, so many in the time of one.
# Fitted to the shapes of docs/logs/gpu-pairs.md. 96 rows and several strips spill.
FEW_QUERY_SHAPES = (48, 8), (48, 16), (16, 32)
# … of stacked queries, with their items. In 400 searches of 1 to 64 proteins the best
# of these takes 1.003 times as long as of 12 shapes in the mean, 1.14 times at most.
STACKED_SHAPES = (64, 4, 1), (48, 8, 1), (16, 32, 1), (48, 16, 4), (64, 4, 16)
LONE_STEP_CELLS, BUSY_STEP_CELLS, STACKED_STEP_CELLS = 27, (6, 170), (15, 181)
NOT_ALONE = 1.5  # times the longest program's time: others run beside it
CONFLICT_FREE_LANES, BANK_CONFLICTS = 8, 1.02  # two lanes in four meet in a bank
STACKED_COLUMNS = 4  # of a step
# (longest query of a launch, rows, lanes); longer queries take strips of the last.
LIST_SHAPES = ((96, 24, 4), (192, 48, 4), (384, 48, 8))
TILE_SHAPES = ((96, 24, 4), (192, 24, 8), (384, 24, 16))  # beyond: BORDER_SHAPES
STEP_COLUMNS = 2
WORD_LETTERS = 4  # of a step, which has fewer columns where two tracks need more
TILE_STEPS = 8  # 16 columns between checkpoints
LENGTH_BUCKETS = (384, 1536, 9216, 36864)  # letters


def bucket(length: int) -> int:
    """Static length of arrays for ``length`` letters."""
    for size in LENGTH_BUCKETS:
        if length <= size:
            return size
    return -(-length // LENGTH_BUCKETS[-1]) * LENGTH_BUCKETS[-1]


def choose(longest: int, *, local: bool, packed: bool, shared: bool = True,
           paths: bool = False, plain: bool = False, linear: bool = False,
           few_pairs: bool = False, target: Target | None = None,
           first_letters: int = 0) -> Fill:  # fmt: skip
    """Choose the shape for queries of at most ``longest`` letters, for scores or paths.

    target : the GPU, that of JAX's first device by default
    few_pairs : the pairs of a list leave most of a GPU idle, so each has a whole warp
    linear : opening a gap costs what extending it does; then scores need no E and F
    first_letters : of two tracks, as in ``Fill``
    """
    target = target or this_target()
    tracks = 2 if first_letters else 1
    short = paths and longest <= TILE_SHAPES[-1][0]
    if shared and not short:
        heights = BORDER_SHAPES
        # Four lanes meet in a bank, which costs too much where each has two look-ups.
        if local and not paths and tracks == 1:
            heights = LOCAL_SHAPES if target.tall_lanes else LOW_LOCAL_SHAPES
        rows, lanes = _fitted(heights, longest, target, tracks)
    elif few_pairs and longest > LIST_SHAPES[-1][0]:
        rows, lanes = LONG_QUERY_SHAPES[0]
    elif paths and not short:
        rows, lanes = BORDER_SHAPES[0]
    else:
        # 48 rows spill where each of their tables has two look-ups.
        table = TILE_SHAPES if paths or tracks > 1 else LIST_SHAPES
        rows, lanes = next((x[1:] for x in table if longest <= x[0]), table[-1][1:])
    tile = TILE_STEPS if paths else 0
    linear = linear and not paths
    tables = 2 if packed and not shared else 1
    columns = min(STEP_COLUMNS, WORD_LETTERS // (tables * tracks))
    return Fill(rows, lanes, columns, local, packed, shared, tile, plain, linear,
                target=target, first_letters=first_letters)  # fmt: skip


def _fitted(heights, longest: int, target: Target, tracks: int) -> tuple[int, int]:
    """Choose the height of strips with the fewest unused rows."""
    if longest > MAX_STRIP_LENGTH:
        return next(x for x in LONG_QUERY_SHAPES if has_room(*x, target, tracks))
    if longest > MAX_FITTED_LENGTH:
        return heights[0]
    return min(heights, key=lambda x: -(-longest // (x[0] * x[1])) * x[0] * x[1])


def has_room(rows: int, lanes: int, target: Target, tracks: int = 1) -> bool:
    """Whether the profile of a strip fits the shared memory of a program."""
    profile = rows * lanes * PROFILE_LETTERS * tracks * 4
    return profile + PROGRAM_BYTES <= target.shared_bytes


def spread(m, n, *, local: bool, packed: bool, linear: bool = False,
           target: Target | None = None, first_letters: int = 0,
           ) -> Fill:  # fmt: skip
    """The shape in which all of some queries meet all of some targets soonest, scores
    alone: for few queries. Those of local mode are stacked.

    m, n : lengths, longest first
    linear, target, first_letters : as of ``choose``
    """
    target = target or this_target()
    shapes = few_query_shapes(len(m), local, packed, linear, target, first_letters)
    m, n = (np.asarray(lengths, np.int64) for lengths in (m, n))

    @cache
    def strips(s):
        return stacked_strips(m, s) if s.stacks else -(-m[:: s.tables] // s.strip)

    @cache
    def steps(groups, columns):
        """Steps of the targets of a program in its first lane: the most, all of all
        programs, and how many programs."""
        each = -(-n[::groups] // columns)
        return each.max(initial=0), each.sum(), len(each)

    def time(s):
        # Strips are the same whatever the columns of a step.
        return soonest(strips(replace(s, columns=0)), steps(s.groups, s.columns), s)

    return min(shapes, key=time)


def few_query_shapes(
    queries: int, local: bool, packed: bool, linear: bool = False,
    target: Target | None = None, first_letters: int = 0,
) -> list[Fill]:  # fmt: skip
    """Shapes that ``spread`` chooses from, for up to this many queries."""
    target = target or this_target()
    largest = -(-max(queries, 1) // (2 if packed else 1))
    table = [x for x in STACKED_SHAPES if x[2] <= largest]
    if not local:
        table = [(*x, 0) for x in FEW_QUERY_SHAPES]
    tracks = 2 if first_letters else 1
    if tracks > 1:
        table = [x for x in table if x[1] >= CONFLICT_FREE_LANES]
    table = [x for x in table if has_room(*x[:2], target, tracks)]
    columns = STACKED_COLUMNS if local else STEP_COLUMNS
    columns = min(columns, WORD_LETTERS // tracks)
    return [
        Fill(
            rows,
            lanes,
            columns,
            local,
            packed,
            linear=linear,
            stacks=stacks,
            target=target,
            first_letters=first_letters,
        )
        for rows, lanes, stacks in table
    ]


def soonest(strips, steps, s: Fill) -> float:
    """The time of a launch, in cells of a lane: that of its longest program, which
    begins first, or of all of them side by side. For ``strips`` and ``steps`` see
    ``spread``."""
    largest, every, programs = steps
    later = s.lanes - 1  # of the last lane
    cells = s.rows * s.columns
    idle, cell_rate = STACKED_STEP_CELLS if s.stacks else BUSY_STEP_CELLS
    cell_rate = cell_rate * s.target.cores / HOPPER.cores
    longest = strips.max(initial=0) * (largest + later) * (cells + LONE_STEP_CELLS)
    shared = strips.sum() * (every + programs * later) * (cells + idle) / cell_rate
    shared *= 1 if s.lanes >= CONFLICT_FREE_LANES else BANK_CONFLICTS
    return float(max(longest * NOT_ALONE, shared))


def rows_of(lengths, s: Fill) -> np.ndarray:
    """Rows of ``Letters`` that targets of these lengths take up to the end of
    every block, int64 (blocks,)."""
    largest = -(-_highest(lengths, s.block) // s.columns)
    return np.cumsum((largest + 1) * (largest > 0))


def records_of(m, n, s: Fill) -> np.ndarray:
    """Records of a launch up to the end of every block, int64 (blocks,): queries and
    targets of a block call, or pairs, of lengths m and n."""
    ends = -(-_highest(n, s.block) // s.columns)
    rows = _highest(m, s.tables if s.shared else s.block)
    strips = np.maximum(-(-rows // s.strip), 1)
    return np.cumsum((strips.sum() if s.shared else strips) * records_of_strip(s, ends))


def _highest(values, size: int) -> np.ndarray:
    """Largest of each group of consecutive values, none of them negative, int64."""
    values = np.asarray(values, np.int64)
    return np.maximum.reduceat(values, np.arange(0, len(values), size))


def record_bytes(s: Fill) -> int:
    """Device bytes of a record of a fill with checkpoints."""
    single, double = (
        sum_bytes(output_shapes(s, 1, 1, 1, 1, k * s.tile)) for k in (1, 2)
    )
    return (double - single) // s.tile


def sum_bytes(shapes) -> int:
    """Device bytes of arrays of 32-bit words."""
    return 4 * sum(map(math.prod, shapes.values()))


def fits(scores, gap_open: int, gap_extend: int, m: int, n: int, local: bool,
         highest: int | None = None, dtype: str = "int16", paths: bool = False,
         target: Target | None = None) -> bool:  # fmt: skip
    """Whether no stored value of a table of m rows and n columns leaves ``dtype``.

    Parameters
    ----------
    scores : int (A, A)
    highest : a bound on the score of every pair of prefixes, by composition say; left
        out, min(m, n) times the largest score
    target : as of ``choose``

    Border modes store H + gap_extend * (i + j) with a bias (``layout.numbers``), local
    mode H + gap_open.
    """
    scores = np.asarray(scores, np.int64)
    if highest is None:
        highest = min(m, n) * max(int(scores.max(initial=0)), 0)
    target = target or this_target()
    limit = target.half_limit if dtype == "int16" else 2**30
    low = max(-int(scores.min(initial=0)), gap_extend)
    if low >= limit - gap_open or (not local and max(m, n) >= limit // 2):
        return False
    if paths:  # tags take 5 bits of a tile that is filled again
        limit = min(limit, 2**25)
    best = max(int(scores.max(initial=0)), 0)
    if local:
        floor = gap_open
        if dtype == "int16":
            floor = floor_of(scores, gap_open, gap_extend, target)
        return highest + best + floor < limit
    # Rows and columns are counted in the same type; values are skewed and biased.
    cost = gap_open - gap_extend
    worst = max(-int(scores.min(initial=0)) - 2 * gap_extend - cost, 0)
    skew = gap_extend * (m + n + 8)
    # What is compared along row m is not skewed any more: it may be negative.
    low = gap_extend * (m + n) + 4 * cost
    return max(highest, 0) + best + skew + 4 * cost + worst < limit and low < limit


def safe_score(scores, gap_open: int, gap_extend: int,
               target: Target | None = None) -> int:  # fmt: skip
    """Largest score of local int16 that proves that no value wrapped; a pair with a
    larger one must be filled in int32."""
    target = target or this_target()
    highest = max(int(np.asarray(scores).max(initial=0)), 0)
    return safe(highest, floor_of(scores, gap_open, gap_extend, target), target)


def detects(scores, gap_open: int, gap_extend: int,
            target: Target | None = None) -> bool:  # fmt: skip
    """Whether local int16 can go unproved: ``safe_score`` leaves a range worth having,
    and no single score or cost leaves it."""
    target = target or this_target()
    largest = max(int(np.abs(np.asarray(scores, np.int64)).max(initial=0)), gap_extend)
    safe_from = safe_score(scores, gap_open, gap_extend, target)
    return safe_from >= 2**10 and largest + gap_open < target.half_limit


def floor_of(scores, gap_open: int, gap_extend: int, target: Target) -> int:
    """``layout.local_floor`` for a fill of int16."""
    if target.integer_halves:
        return gap_open
    return max(gap_open + gap_extend, -int(np.asarray(scores).min(initial=0)))


def safe(highest, floor, target: Target):
    """``safe_score`` for the highest substitution score. A value that wraps was before
    that within one substitution of the limit; ``floor`` is added to each."""
    return target.half_limit - 1 - floor - highest


def fill_bytes(s: Fill, queries: int, targets: int, m: int, n: int,
               room: int = 0, records: int = 0, strips: int = 0,
               ) -> int:  # fmt: skip
    """Device bytes of the output of a fill, for arrays of lengths m and n, or ``room``
    rows of ``Letters``, and ``records``; of stacked queries for so many ``strips``."""
    strips = strips or -(-m // s.strip)
    blocks = -(-targets // s.block)
    queries = s.stacks or (-(-queries // s.tables) if s.shared else 1)
    ends = -(-n // s.columns)
    all_records = queries * strips * blocks * records_of_strip(s, ends)
    rows = room or blocks * (ends + 1)
    return sum_bytes(
        output_shapes(s, queries, blocks, strips, rows, records or all_records)
    )
