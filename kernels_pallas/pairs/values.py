"""Values of a fill, and those on the borders of a table.

A value is int32 (128,), or int16 (256,) where two tables share a register.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from kernels_pallas.core.fused import Emitter
from kernels_pallas.core.mosaic import Threads, where
from kernels_pallas.pairs.shapes import Fill, Numbers


class FillView(NamedTuple):
    """A program's place and sizes, as every step needs them; lists have a word for
    each table of a register."""

    th: Threads
    s: Fill
    n: Numbers
    v: "ScoreArithmetic"
    item: jax.Array
    block: jax.Array
    thread: jax.Array
    lane: jax.Array
    group: jax.Array
    columns: tuple  # n
    ends: list  # steps up to the target's last column
    lead: list  # columns of the first step that come before the target
    pad: list  # rows of the first strip that stand above the query
    count: jax.Array  # strips
    tail: jax.Array  # first step with a last column
    total: jax.Array  # steps of a strip
    start: jax.Array  # row of the block's first letters
    room: jax.Array | int  # rows of the boundary before this query's
    targets: Any
    table: jax.Ref  # scores in shared memory
    out: dict
    strip_room: int  # strips that the longest query may take
    first_record: jax.Array
    strip_records: jax.Array
    mask: jax.Array | None = None  # stacked: bits that a lane takes from the one above

    def record(self, k):
        """The first record of strip ``k``."""
        return self.first_record + k * self.strip_records


@dataclass(frozen=True)
class ScoreArithmetic:
    """Arithmetic on values: int32 (128,), or int16 (256,) where tables are packed."""

    th: Threads | Emitter
    s: Fill

    def of(self, value) -> Any:
        """A scalar as a value. It is a word first: built of two halves, it would be
        put together again at every use."""
        return self.read(self.word(value))

    def join(self, low, *high) -> Any:
        """The words of the two tables as one value; of one where nothing is packed."""
        if not self.s.packed:
            return low
        return self.th.halves((low & 0xFFFF) | (high[0] << 16))

    def read(self, word) -> Any:
        return self.th.halves(word) if self.s.packed else word

    def word(self, value):
        """A scalar in a word, once for each table."""
        if self.s.packed:
            value = (value & 0xFFFF) + (value << 16)
        return self.th.splat(value)

    def add(self, value, word):
        """value + word as one 32-bit addition, which Hopper can do beside its min-max
        pipe. Right where no half overflows: values are biased to be positive, and a
        negative low half of ``word`` has borrowed from the high one."""
        if not self.s.packed:
            return value + word
        return self.th.halves(self.th.words(value) + word)

    def joined(self, number):
        """A word for ``plus``, of a scalar for each table."""
        return self.th.splat(number * 65537) if self.s.joined else self.word(number)

    def plus(self, value, word):
        """value + word, where halves of ``word`` are below 0: as two numbers where the
        target adds halves, else as in ``add``."""
        return self.add(value, word) if self.s.joined else value + self.read(word)

    def both(self, low: jax.Array, high: jax.Array) -> Any:
        """Two bools (128,) as a mask of values."""
        if not self.s.packed:
            return low
        yes: Any = self.th.splat(1)
        no: Any = self.th.splat(0)
        low, high = (jnp.where(x, yes, no) for x in (low, high))
        return self.join(low, high) != self.of(0)


def column_zero(view, rows):
    """U of (i, 0) for a row i of every table, int32 (128,) each; rows above the query
    are copies of row 0."""
    n = view.n
    return _border(view, rows, n.column_base, n.column_slope)


def row_zero(view, t):
    """Words U and E of row 0 in the columns of step ``t``, for the first strip."""
    n, v, s, th = view.n, view.v, view.s, view.th
    words = []
    for u in range(s.columns):
        columns = [th.splat(s.columns * t + u + 1) - x for x in view.lead]
        words.append(th.words(_border(view, columns, n.row_base, n.row_slope)))
        words.append(v.word(n.low))
    return tuple(words)


def _border(view, places, base, slope):
    """The corner up to place 0 of row 0 or column 0, and base + slope * place beyond.

    Each table by itself in int32, and joined then: where halves were compared, ptxas
    13.0 used the wrong word (docs/logs/gpu-pairs.md, "A word for another").
    """
    corner = view.n.corner
    values = (where(x <= 0, corner, base + slope * x) for x in places[: view.s.tables])
    return view.v.join(*values)


def load_words(th, ref, at, count, base, stride):
    """``Threads.load`` of any multiple of 4 words, or of 1 or 2."""
    part = min(count, 4)
    words = ()
    for k in range(0, count, part):
        words += th.load(ref, at * count + k, part, base, stride * count)
    return words


def store_words(th, ref, at, words, base, stride, where=None):
    """``Threads.store`` of as many words as ``load_words`` takes."""
    count, part = len(words), min(len(words), 4)
    for k in range(0, count, part):
        th.store(ref, at * count + k, words[k : k + part], base, stride * count, where)
