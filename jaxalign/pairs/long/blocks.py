"""Lines of cells of one long pair, and blocks of its table between them.

A *block* is a rectangle of the table with the cells before it. A *line* is a row or a
column of a block: H, and the gaps that cross it, E of a row and F of a column. A *fill*
computes a block from its border and keeps some of its lines, the *grid*.

*Narrow* blocks are computed in 16 bits, half as long as in 32, and nearly every block
fits. Values of a block are held less the highest H of its border. The sides of a tile
bound how far they move from it, so it is enough to look at the border.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jaxalign.affine import Gaps, neg_inf

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


MINUS_INFINITY = -(2**30)  # as ``affine.neg_inf`` of int32, and as the kernel has it
NO_BOUND = -(2**31) + 1
LOW = int(neg_inf(np.int16))


@dataclass(frozen=True, eq=False)
class LongPair:
    """Two encoded sequences and what scores them; all numbers int32."""

    query: np.ndarray  # uint8 (m,)
    target: np.ndarray  # uint8 (n,)
    scores: np.ndarray  # (A, A), row = query letter
    open: int
    extend: int
    free: frozenset[str]
    local: bool
    problem: Any  # the same as ``pairs.dp.window_program.WindowProblem``

    @property
    def m(self) -> int:
        return len(self.query)

    @property
    def n(self) -> int:
        return len(self.target)

    @cached_property
    def most_of_query(self) -> np.ndarray:
        """The most that the query's letters from each on can score, int64 (m + 1,)."""
        return _suffix_sums(self.scores.max(axis=1, initial=0), self.query)

    @cached_property
    def most_of_target(self) -> np.ndarray:
        """The same of the target's letters, int64 (n + 1,)."""
        return _suffix_sums(self.scores.max(axis=0, initial=0), self.target)


def _suffix_sums(best: np.ndarray, codes: np.ndarray) -> np.ndarray:
    sums = np.zeros(len(codes) + 1, np.int64)
    np.cumsum(best[codes[::-1]], out=sums[1:])
    return sums[::-1]


class ToCell(NamedTuple):
    """A cell, from a row above it: letters of the query between, its column, and what a
    pair scores at most and a gap costs at least for each letter."""

    rows: int
    column: int
    match: int
    extend: int

    def most(self, xp: Any, h: Any, j: Any):
        """The most that paths score at the cell that have H in columns ``j``; ``xp`` is
        NumPy, or that of JAX."""
        columns = self.column - j
        paired = xp.minimum(columns, self.rows)
        return h + self.match * paired - self.extend * xp.abs(columns - self.rows)


class Line(NamedTuple):
    """H of a row or a column, and E of the row or F of the column: int32 (k + 1,)."""

    h: np.ndarray
    gap: np.ndarray

    def part(self, first: int, last: int) -> "Line":
        """Cells ``first`` to ``last``."""
        return Line(self.h[first : last + 1], self.gap[first : last + 1])

    def most_beside(self, first: int, last: int, to: "ToCell") -> int:
        """Bound the score of a path to a cell that crosses this row outside of columns
        ``first`` to ``last``."""
        j = np.arange(1, min(len(self.h), to.column + 1))
        scores = to.most(np, self.h[1 : len(j) + 1].astype(np.int64), j)
        outside = scores[(j < first) | (j > last)]
        return int(outside.max(initial=MINUS_INFINITY))


class TableBlock(NamedTuple):
    """Rows i + 1 ... i + rows and columns j + 1 ... j + columns, and row i and column j
    as lines; both have the cell (i, j)."""

    i: int
    j: int
    rows: int
    columns: int
    top: Line
    left: Line


class Spot(NamedTuple):
    """A score, and the rows and columns (first, last) where a cell has it."""

    score: int
    rows: tuple[int, int]
    columns: tuple[int, int]


@dataclass(frozen=True, eq=False)
class LineGrid:
    """Lines of a block, by their numbers in the whole table, and what was computed.

    The last row and the last column of the block are among them. In local mode
    ``spots`` has the best of parts of the block.
    """

    block: TableBlock
    rows: dict[int, Line]
    columns: dict[int, Line]
    spots: tuple[Spot, ...] = ()
    cells: int = 0  # computed, not pruned


# (pair, block, bound, whether lines are kept, progress) -> grid
Fill = Callable[..., LineGrid]


def border(length: int, free: bool, pair: LongPair) -> Line:
    """Row 0 or column 0 of the whole table."""
    h = np.zeros(length + 1, np.int64)
    if not free:
        h[1:] = -(pair.open + pair.extend * np.arange(length))
    return Line(h.astype(np.int32), np.full(length + 1, MINUS_INFINITY, np.int32))


def whole(pair: LongPair) -> TableBlock:
    """The table of a pair."""
    top = border(pair.n, pair.local or "target_start" in pair.free, pair)
    left = border(pair.m, pair.local or "query_start" in pair.free, pair)
    return TableBlock(0, 0, pair.m, pair.n, top, left)


def block_of(grid: LineGrid, i: int, j: int) -> TableBlock:
    """The block between lines of a grid that ends in cell (i, j), where both are > 0 in
    the block of the grid."""
    outer = grid.block
    i0 = max((k for k in grid.rows if k < i), default=outer.i)
    j0 = max((k for k in grid.columns if k < j), default=outer.j)
    top = outer.top if i0 == outer.i else grid.rows[i0]
    left = outer.left if j0 == outer.j else grid.columns[j0]
    return TableBlock(
        i0,
        j0,
        i - i0,
        j - j0,
        top.part(j0 - outer.j, j - outer.j),
        left.part(i0 - outer.i, i - outer.i),
    )


class Narrow(NamedTuple):
    """The border of a block and its problem in some dtype, less ``base``; what is
    below ``least`` no path reaches."""

    top: Line
    left: Line
    problem: Any
    base: int
    least: int


def wide(pair: LongPair, block: TableBlock) -> Narrow:
    """The block as it is, in int32."""
    return Narrow(block.top, block.left, pair.problem, 0, MINUS_INFINITY // 2)


def narrow(pair: LongPair, block: TableBlock) -> Narrow:
    """The block in int16 if that holds it, else in int32.

    From a cell of the border at most min(rows, columns) pairs are gained, and at most a
    gap of either side is lost. Minus infinity gains no more. So if the border spans
    less than what is left between both, no path is taken for none, nor none for a path.
    """
    rows, columns = block.rows, block.columns
    best = max(int(pair.scores.max(initial=0)), 0)
    worst = max(-int(pair.scores.min(initial=0)), 0)
    gain = best * min(rows, columns)
    loss = 3 * pair.open + pair.extend * (rows + columns) + worst
    h = np.concatenate([block.top.h, block.left.h])
    h = h[h > MINUS_INFINITY // 2]
    base = 0 if pair.local or not len(h) else int(h.max())
    span = 0 if pair.local or not len(h) else base - int(h.min())
    high = (int(h.max()) if len(h) else 0) - base + gain + worst
    least = LOW + gain + best
    holds = span + loss < -least and high < 2**15 - 1 and loss < 2**14 - 1
    if not holds or pair.problem.scores.dtype != np.int8:
        return wide(pair, block)
    top, left = (
        Line(
            *(np.maximum(x.astype(np.int64) - base, LOW).astype(np.int16) for x in line)
        )
        for line in (block.top, block.left)
    )
    gaps = Gaps(np.int16(pair.open), np.int16(pair.extend))
    return Narrow(top, left, pair.problem._replace(gaps=gaps), base, least)


def widened(h: "ArrayLike", gap: "ArrayLike", of: Narrow) -> Line:
    """A line of a block that was computed, in int32."""

    def wide_of(values: np.ndarray) -> np.ndarray:
        real = values.astype(np.int32) + of.base
        return np.where(values < of.least, MINUS_INFINITY, real)

    return Line(wide_of(np.asarray(h)), wide_of(np.asarray(gap)))
