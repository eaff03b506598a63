"""Blocks in 16 bits: half as long as in 32, and nearly every block fits.

Values of a block are held less the highest H of its border. The sides of a tile bound
how far they move from it, so it is enough to look at the border.
"""

from typing import Any, NamedTuple

import numpy as np

from jaxalign.affine import Gaps, neg_inf
from jaxalign.pairs.long.blocks import MINUS_INFINITY, Line, LongPair, TableBlock

LOW = int(neg_inf(np.int16))


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
    top, left = _shifted(block.top, base), _shifted(block.left, base)
    gaps = Gaps(np.int16(pair.open), np.int16(pair.extend))
    return Narrow(top, left, pair.problem._replace(gaps=gaps), base, least)


def _shifted(line: Line, base: int) -> Line:
    def shifted(values: np.ndarray) -> np.ndarray:
        return np.maximum(values.astype(np.int64) - base, LOW).astype(np.int16)

    return Line(shifted(line.h), shifted(line.gap))


def widened(h, gap, of: Narrow) -> Line:
    """A line of a block that was computed, in int32."""

    def wide_of(values: np.ndarray) -> np.ndarray:
        real = values.astype(np.int32) + of.base
        return np.where(values < of.least, MINUS_INFINITY, real)

    return Line(wide_of(np.asarray(h)), wide_of(np.asarray(gap)))
