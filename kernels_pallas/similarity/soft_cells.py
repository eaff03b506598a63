"""One cell of the soft recurrence, forwards and backwards, and its overhangs.

States as in the 2011 paper's letters: M, residues i and j are a pair; E, residue i of
the query stands against a gap; F, residue j of the target does. Everything is divided
by the temperature and relative to a base.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from kernels_pallas.core.mosaic import THREADS, WARPGROUP, Threads
from kernels_pallas.core.reals import WARP, Reals


class GapCosts(NamedTuple):
    """Gap costs, float32 (128,)."""

    open_e: Any  # each a number, or (number, tangent) in ``SoftView``
    extend_e: Any
    open_f: Any
    extend_f: Any


class Side(NamedTuple):
    """Cost of the overhangs on one side: the cheaper one if both ends are ``free``,
    else by weights (0 or 1) of the query's and the target's."""

    free: jax.Array
    query: jax.Array
    target: jax.Array


def apply(function, *arguments):
    """Apply ``function`` to numbers, or to pairs (number, tangent) by forward mode.

    Every argument and every result is a tuple of one or two arrays.
    """
    if len(arguments[0]) == 1:
        return tuple((x,) for x in function(*(x for (x,) in arguments)))
    values, changes = zip(*arguments, strict=True)
    return tuple(zip(*jax.jvp(function, values, changes), strict=True))


def forward_cell(r: Reals, open_e, extend_e, open_f, extend_f, s, diagonal, e, f,
                 start):  # fmt: skip
    """M, A, B of a cell, E of the cell below and F of the cell to its right.

    M[i,j] = s[i,j] + B[i-1,j-1]
    A[i,j] = lse(M, E, F);  B[i,j] = lse(start[i,j], A[i,j])
    E[i+1,j] = lse(M[i,j] - open, E[i,j] - extend)
    F[i,j+1] = lse(lse(M, E)[i,j] - open, F[i,j] - extend)
    """
    lse = smooth(r, lse_of, lse_tangent)
    m = s + diagonal
    me = lse(m, e)
    a = lse(me, f)
    b = lse(start, a)
    below = lse(m - open_e, e - extend_e)
    right = lse(me - open_f, f - extend_f)
    return m, a, b, below, right


def reverse_cell(r: Reals, open_e, extend_e, open_f, extend_f, m, e, f, start, ending,
                 to_e, to_f, to_m):  # fmt: skip
    """Posteriors of M, E, F of a cell, of each gap move from it, and of a path that
    starts behind it.

    ``ending`` is the probability that a path ends here. ``to_e``, ``to_f``, ``to_m``
    are the posteriors of E[i+1,j], F[i,j+1] and M[i+1,j+1], each split by the weights
    of its predecessors.
    """
    split = smooth(r, split_of, split_tangent)
    of_e = split(to_e, m - open_e, e - extend_e)
    of_f = split(to_f, m - open_f, e - open_f, f - extend_f)
    of_m = split(to_m, m, e, f, start)
    new_m = ending + of_e[0] + of_f[0] + of_m[0]
    new_e = of_e[1] + of_f[1] + of_m[1]
    new_f = of_f[2] + of_m[2]
    return new_m, new_e, new_f, *of_e, of_f[0] + of_f[1], of_f[2], of_m[3]


def smooth(r: Reals, function, tangent):
    """Attach an explicit derivative ``tangent`` to a function of numbers."""

    @jax.custom_jvp
    def run(*values):
        return function(r, *values)[0]

    @run.defjvp
    def rule(values, changes):
        value, parts = function(r, *values)
        return value, tangent(parts, values, changes)

    def call(*values):
        # Without ``dual`` the kernel's compiler must not meet the rule.
        return run(*values) if r.dual else function(r, *values)[0]

    return call


def lse_of(r: Reals, a, b):
    """log(exp(a) + exp(b)), and with ``dual`` the share of a."""
    value, less = r.lse(a, b)
    if not r.dual:
        return value, None
    share = r.inverse(less + 1.0)
    return value, jnp.where(a >= b, share, less * share)


def lse_tangent(share, values, changes):
    a, b = changes
    return b + share * (a - b)


def split_of(r: Reals, total, *values):
    """Split ``total`` by log weights of predecessors; with ``dual`` also the shares."""
    largest = values[0]
    for value in values[1:]:
        largest = jnp.maximum(largest, value)
    parts = [r.exp(value - largest) for value in values]
    inverse = r.inverse(sum(parts[1:], parts[0]))
    if not r.dual:
        scale = total * inverse
        return tuple(part * scale for part in parts), None
    parts = [part * inverse for part in parts]
    return tuple(total * part for part in parts), parts


def split_tangent(parts, values, changes):
    """Tangent of ``split_of``, by differences from the first change: they are small
    even if changes are not, and the shares they multiply do not quite sum to 1."""
    total, (d_total, first, *d_logs) = values[0], changes
    moved = [x - first for x in d_logs]
    mean = sum(p * x for p, x in zip(parts[1:], moved, strict=True))
    derivatives = (
        p * (d_total + total * (x - mean))
        for p, x in zip(parts[1:], moved, strict=True)
    )
    return parts[0] * (d_total - total * mean), *derivatives


def exp_tangent(value, _, changes):
    return value * changes[0]


def exp_of(r: Reals, x):
    value = r.exp(x)
    return value, value


def run_cost(length, opening, extending):
    """Cost of an overhang of ``length`` residues, float32 (128,)."""
    return opens(length) * opening + extensions(length) * extending


def opens(length):
    """1 where there is an overhang, else 0."""
    return jnp.clip(length, 0.0, 1.0)


def extensions(length):
    """Residues of an overhang after the first."""
    return jnp.maximum(length - 1.0, 0.0)


def shares(r: Reals, side: Side, query, target):
    """Weights with which two overhangs of these costs are paid: 0 or 1, or 0.5 each in
    a tie."""
    full, half, zero = (r.splat(x) for x in (1.0, 0.5, 0.0))
    cheaper = jnp.where(query == target, half, jnp.where(query < target, full, zero))
    a = jnp.where(side.free, cheaper, side.query)
    b = jnp.where(side.free, full - cheaper, side.target)
    return a, b


# ------------------------------------------------------------------------------
# Static choices, inputs and per-thread constants of the soft kernels.

LOG_ZERO = -1e30  # the log of weight 0; finite: a difference of two is 0, never nan
PAIR_NUMBERS = 16  # float32 of a pair, from ``numbers_of``


@dataclass(frozen=True)
class Soft:
    """The static choices of a soft kernel; every combination is one compilation."""

    rows: int  # K rows a lane
    lanes: int  # G lanes a pair, 32, 128 or 256
    columns: int  # U columns a step, 1, 2 or 4; K * U is a multiple of 4
    plain: bool = False  # jnp twins, for the interpreter
    dual: bool = False  # whether numbers have tangents

    @property
    def strip(self) -> int:
        """Largest number of rows of a table."""
        return self.rows * self.lanes

    @property
    def groups(self) -> int:
        """Pairs of a program."""
        return self.threads // self.lanes

    @property
    def threads(self) -> int:
        """Threads of a program."""
        return max(THREADS, self.lanes)

    @property
    def warpgroups(self) -> int:
        """Warpgroups of a program; the twin has one."""
        return 1 if self.plain else self.threads // THREADS

    @property
    def cells(self) -> int:
        """Cells of a thread and step."""
        return self.rows * self.columns

    @property
    def quads(self) -> int:
        """Groups of four numbers that a thread stores a step."""
        return 3 * self.cells * (1 + self.dual) // 4


class SoftSizes(NamedTuple):
    """Static sizes of arrays. Columns of a table include a first step of forbidden
    ones; ``steps`` is the capacity."""

    programs: int
    rows: int
    width: int
    steps: int


class SoftInputs(NamedTuple):
    """Arrays that a launch reads: P programs of g pairs."""

    scores: jax.Array  # float32 (P * g * rows * width,)
    numbers: jax.Array  # float32 (P * g * PAIR_NUMBERS,)
    blocks: jax.Array  # int32 (P * g * 2,): of U columns, of K rows of each pair
    steps: jax.Array  # int32 (P,)
    changes: tuple = ()  # tangents of scores and numbers


class SoftView(NamedTuple):
    """A thread's place, sizes and costs, the same for every step."""

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
    """Load the constants of this thread."""
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
    costs += [r.load(change, th.splat(0), 4, pair, PAIR_NUMBERS) for change in changes]
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
    """Block of columns of a lane in step ``t``, and whether it exists."""
    c = t - view.lane
    inside = (c >= view.r.th.splat(0)) & (c < view.blocks)
    return c, inside & (view.lane < view.bands)


def load_scores(view: SoftView, arrays, t):
    """K lists of U scores, each a tuple by array; padding outside the table."""
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
    """Words of shared memory for the exchange between warps."""
    return 2 * (s.threads // WARP) * (4 * s.columns + 1)
