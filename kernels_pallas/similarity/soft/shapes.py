"""Static choices, inputs and per-thread constants of the soft kernels."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from kernels_pallas.core.mosaic import THREADS, WARPGROUP, Threads
from kernels_pallas.core.reals import WARP, Reals
from kernels_pallas.similarity.soft.cells import GapCosts, Side

LOG_ZERO = -1e30  # the log of weight 0; finite: a difference of two is 0, never nan
PAIR_NUMBERS = 16  # float32 of a pair, from ``numbers_of``


@dataclass(frozen=True)
class Soft:
    """The static choices of a soft kernel; every combination is one compilation."""

    rows: int  # K rows a lane
    lanes: int  # G lanes a pair, 32, 128 or 256
    columns: int  # U columns a step, 1, 2 or 4; K * U is a multiple of 4
    plain: bool = False  # jnp twins, for the interpreter
    dual: bool = False  # tangents beside all numbers

    @property
    def strip(self) -> int:
        """Rows of a table at most."""
        return self.rows * self.lanes

    @property
    def groups(self) -> int:
        """Pairs of a program."""
        return self.threads // self.lanes

    @property
    def threads(self) -> int:
        """Of a program."""
        return max(THREADS, self.lanes)

    @property
    def warpgroups(self) -> int:
        """Of a program; the twin has one."""
        return 1 if self.plain else self.threads // THREADS

    @property
    def cells(self) -> int:
        """Cells of a thread and step."""
        return self.rows * self.columns

    @property
    def quads(self) -> int:
        """Groups of four numbers that a thread stores of a step."""
        return 3 * self.cells * (1 + self.dual) // 4


class SoftSizes(NamedTuple):
    """Static sizes of arrays: programs, rows and columns of a table (its first step has
    forbidden columns), steps that there is room for."""

    programs: int
    rows: int
    width: int
    steps: int


class SoftInputs(NamedTuple):
    """Arrays that a launch reads; P programs of g pairs."""

    scores: jax.Array  # float32 (P * g * rows * width,)
    numbers: jax.Array  # float32 (P * g * PAIR_NUMBERS,)
    blocks: jax.Array  # int32 (P * g * 2,): of U columns, of K rows of each pair
    steps: jax.Array  # int32 (P,)
    changes: tuple = ()  # tangents of scores and numbers


class SoftView(NamedTuple):
    """A thread's place, sizes and costs, as every step needs them."""

    r: Reals
    s: Soft
    sizes: SoftSizes
    program: jax.Array
    thread: jax.Array
    pair: jax.Array
    lane: jax.Array
    first: jax.Array  # whether the lane has the first rows
    top: jax.Array  # rows above the lane's
    blocks: jax.Array  # of U columns of this table
    bands: jax.Array  # of K rows
    cost: GapCosts  # each a tuple: the cost, its tangent
    unit: jax.Array  # bases are multiples of it
    per_unit: jax.Array
    m: jax.Array
    n: jax.Array
    start: Side
    end: Side


def view_of(
    th: Threads, s: Soft, sizes: SoftSizes, numbers, blocks, *changes
) -> SoftView:
    """The constants of this thread."""
    r = Reals(th, s.dual)
    program = lax.axis_index("program")
    thread = th.index()
    if s.warpgroups > 1:
        thread = thread + th.splat(THREADS * lax.axis_index(WARPGROUP))
    lane = thread & (s.lanes - 1)
    shift = s.lanes.bit_length() - 1
    pair = program * s.groups + lax.shift_right_logical(thread, th.splat(shift))
    x = []
    for k in range(0, PAIR_NUMBERS, 4):
        x += r.load(numbers, th.splat(k), 4, pair, PAIR_NUMBERS)
    costs = [x[:4]]
    costs += [r.load(more, th.splat(0), 4, pair, PAIR_NUMBERS) for more in changes]
    costs = zip(*costs, strict=True)
    column_blocks, bands = th.load(blocks, 2 * pair, 2)
    unit, per_unit, m, n = x[4:8]
    start, end = (Side(x[k] != r.splat(0.0), *x[k + 1 : k + 3]) for k in (8, 11))
    return SoftView(
        r=r, s=s, sizes=sizes, program=program, thread=thread, pair=pair, lane=lane,
        first=lane == th.splat(0), top=(lane * s.rows).astype(jnp.float32),
        blocks=column_blocks, bands=bands, cost=GapCosts._make(costs), unit=unit,
        per_unit=per_unit, m=m, n=n, start=start, end=end,
    )  # fmt: skip


def block_of(view: SoftView, t):
    """The block of columns of a lane in step ``t``, and whether there is one."""
    c = t - view.lane
    inside = (c >= view.r.th.splat(0)) & (c < view.blocks)
    return c, inside & (view.lane < view.bands)


def load_scores(view: SoftView, arrays, t):
    """K lists of U scores, each a tuple by array; those of no column outside."""
    s, sizes = view.s, view.sizes
    c, inside = block_of(view, t)
    at = jnp.where(inside, (c + 1) * s.columns, view.r.th.splat(0))
    at = at + view.lane * (s.rows * sizes.width)
    scores = []
    for k in range(s.rows):
        where = at, s.columns, view.pair, sizes.rows * sizes.width, k * sizes.width
        loads = [view.r.load(x, *where) for x in arrays]
        scores.append(tuple(zip(*loads, strict=True)))
    return tuple(scores)


def scratch(s: Soft):
    """Words of shared memory through which warps hand over."""
    return 2 * (s.threads // WARP) * (4 * s.columns + 1)
