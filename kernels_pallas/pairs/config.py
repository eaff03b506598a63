"""The shape that a fill takes, and the lengths and bytes of the arrays of a launch.

Lengths are run-time values: a compilation serves all queries of a bucket and targets of
any length, and of a list all pairs of two buckets. docs/gpu-kernels.md counts them.
"""

import math
from dataclasses import replace
from functools import cache

import numpy as np

from kernels_pallas.core.target import HOPPER, Target, this_target
from kernels_pallas.pairs.shapes import Fill, output_shapes, records_of_strip
from kernels_pallas.pairs.stacks import stacked_strips

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
LONG_QUERY_SHAPES = (48, 32), (40, 32), (24, 32)  # the first that a target has room for
PROFILE_LETTERS = 32  # words of a row of a profile: 30 letters and two pads
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
TILE_STEPS = 8  # 16 columns between checkpoints
LENGTH_BUCKETS = (384, 1536, 9216, 36864)  # letters


def bucket(length: int) -> int:
    """The static length of arrays that hold ``length`` letters."""
    for size in LENGTH_BUCKETS:
        if length <= size:
            return size
    return -(-length // LENGTH_BUCKETS[-1]) * LENGTH_BUCKETS[-1]


def choose(longest: int, *, local: bool, packed: bool, shared: bool = True,
           paths: bool = False, plain: bool = False, linear: bool = False,
           few: bool = False, target: Target | None = None) -> Fill:  # fmt: skip
    """The shape for queries of at most ``longest`` letters, for scores or paths.

    target : the GPU, that of JAX's first device by default
    few : the pairs of a list leave most of a GPU idle, so each has a whole warp
    linear : opening a gap costs what extending it does; then scores need no E and F
    """
    target = target or this_target()
    short = paths and longest <= TILE_SHAPES[-1][0]
    if shared and not short:
        heights = BORDER_SHAPES
        if local and not paths:
            heights = LOCAL_SHAPES if target.tall_lanes else LOW_LOCAL_SHAPES
        rows, lanes = _fitted(heights, longest, target)
    elif few and longest > LIST_SHAPES[-1][0]:
        rows, lanes = LONG_QUERY_SHAPES[0]
    elif paths and not short:
        rows, lanes = BORDER_SHAPES[0]
    else:
        table = TILE_SHAPES if paths else LIST_SHAPES
        rows, lanes = next((x[1:] for x in table if longest <= x[0]), table[-1][1:])
    tile = TILE_STEPS if paths else 0
    linear = linear and not paths
    return Fill(rows, lanes, STEP_COLUMNS, local, packed, shared, tile, plain, linear,
                target=target)  # fmt: skip


def _fitted(heights, longest: int, target: Target) -> tuple[int, int]:
    """The height of strips that leaves the fewest rows unused."""
    if longest > MAX_STRIP_LENGTH:
        return next(x for x in LONG_QUERY_SHAPES if has_room(*x, target))
    if longest > MAX_FITTED_LENGTH:
        return heights[0]
    return min(heights, key=lambda x: -(-longest // (x[0] * x[1])) * x[0] * x[1])


def has_room(rows: int, lanes: int, target: Target) -> bool:
    """Whether the profile of a strip fits the shared memory of a program."""
    profile = rows * lanes * PROFILE_LETTERS * 4
    return profile + PROGRAM_BYTES <= target.shared_bytes


def spread(m, n, *, local: bool, packed: bool, linear: bool = False,
           target: Target | None = None) -> Fill:  # fmt: skip
    """The shape in which all of some queries meet all of some targets soonest, scores
    alone: for few queries. Those of local mode are stacked.

    m, n : lengths, longest first
    linear, target : as of ``choose``
    """
    target = target or this_target()
    shapes = few_query_shapes(len(m), local, packed, linear, target)
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
    target: Target | None = None,
) -> list[Fill]:  # fmt: skip
    """The shapes that ``spread`` chooses from for so many queries at most."""
    target = target or this_target()
    largest = -(-max(queries, 1) // (2 if packed else 1))
    table = [x for x in STACKED_SHAPES if x[2] <= largest]
    if not local:
        table = [(*x, 0) for x in FEW_QUERY_SHAPES]
    columns = STACKED_COLUMNS if local else STEP_COLUMNS
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
    idle, beside = STACKED_STEP_CELLS if s.stacks else BUSY_STEP_CELLS
    beside = beside * s.target.cores / HOPPER.cores
    longest = strips.max(initial=0) * (largest + later) * (cells + LONE_STEP_CELLS)
    shared = strips.sum() * (every + programs * later) * (cells + idle) / beside
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
    """The highest of every so many values that are not negative, int64."""
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
    """The largest score of local int16 that proves that nothing wrapped on the way; a
    pair with a larger one has to be filled in int32."""
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
    """``layout.local_floor`` of a fill of int16."""
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
