"""Static choices, sizes and per-thread constants of the hard kernels."""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from kernels_pallas.core.mosaic import Threads, check_access
from kernels_pallas.core.reals import WARP, Reals, fused

COLUMNS = 16  # of a lane; a word holds two decisions of each
FORBIDDEN = -1e30  # as in ``jaxalign.similarity.arrays``
WARPS = 4  # of a program
DTYPES = ("int8", "int16", "float16", "bfloat16", "float32")
QUAD_BYTES = 16  # of a load


@dataclass(frozen=True)
class Hard:
    """The static choices of a hard kernel; every combination is one compilation."""

    tables: int  # of a warp, whose lanes lie one after the other
    local: bool
    last_column: bool = False  # whether a path may end in any row of it
    plain: bool = False  # jnp twins, for the interpreter
    paths: bool = True  # whether to store decisions for paths

    @property
    def words(self) -> int:
        """Words of decisions that a lane stores a row; the fourth repeats the third."""
        if not self.paths:
            return 0
        return 4 if self.local else 2


class HardSizes(NamedTuple):
    """Static sizes of a launch.

    A table has ``lanes`` lanes of 16 columns. The lanes of a warp's tables make
    ``passes`` passes of 32, one after the other.
    """

    batch: int
    rows: int
    columns: int  # with padding to whole loads
    lanes: int
    passes: int
    warps: int
    dtype: str
    # Tables whose rows lie side by side: the scores are (batch / across, rows, across,
    # columns).
    across: int = 1

    @property
    def quads(self) -> int:
        """Loads of 16 bytes that hold a lane's row."""
        return COLUMNS * self.itemsize // QUAD_BYTES

    @property
    def itemsize(self) -> int:
        return jnp.dtype(self.dtype).itemsize

    @property
    def steps(self) -> int:
        """Steps of a pass."""
        return self.rows + WARP - 1


class HardInputs(NamedTuple):
    """Arrays that a launch reads: B pairs, T tables a warp, W warps, P passes."""

    scores: jax.Array  # (B * rows * columns,), in the dtype of the similarity
    costs: jax.Array  # float32 (B * 4,): open, extend of the query's, the target's
    # int32 (B * 4,): both lengths, whether queries begin freely, the table's first row
    sizes: jax.Array
    left: jax.Array  # float32 (B * (rows + 1),): H of column 0
    top: jax.Array  # float32 (B * (columns + 1),): H of row 0
    places: jax.Array  # int32 (P * 32 * 2,): of each lane, its table and its rank
    steps: jax.Array  # int32 (W / 4 * 2,): least and most rows of a program's tables


class HardView(NamedTuple):
    """A thread's place, sizes and costs during a pass."""

    r: Reals
    s: Hard
    z: HardSizes
    inputs: HardInputs
    thread: jax.Array
    lane: jax.Array
    slot: jax.Array  # number of the warp's pass among all
    warp: jax.Array  # among all
    number: jax.Array  # the table's number; tables beyond the batch have one too
    table: jax.Array  # whose inputs are read
    first_row: jax.Array  # of its scores
    rank: jax.Array  # of the lane among those of its table
    first: jax.Array  # whether it is the first of them
    real: jax.Array  # whether it has columns of the table
    m: jax.Array
    n: jax.Array
    open_left: jax.Array
    costs: tuple[jax.Array, ...]  # open_e, extend_e, open_f, extend_f
    quads: tuple[jax.Array, ...]  # first words of its loads within a row
    keep: tuple[jax.Array, ...]  # local: ones where a column is within the length
    start: tuple  # H of row 0, E and its decisions for row 1, H of the corner


# ------------------------------------------------------------------------------
# Decisions of cells, collected in words of 16: each enters at the lowest bit.
#
# A comparison is the sign of a difference, which a funnel shift takes: two
# instructions, where a selection by a predicate takes three. No number is minus zero.

LESS = """{ .reg .f32 a, b, d; .reg .b32 x; mov.b32 a, $2; mov.b32 b, $3;
sub.rn.f32 d, a, b; mov.b32 x, d; shf.l.wrap.b32 $0, x, $1, 1; }"""
POSITIVE = "{ .reg .b32 x; neg.s32 x, $2; shf.l.wrap.b32 $0, x, $1, 1; }"
LARGEST = """{{ .reg .pred p; .reg .f32 a, b, c; mov.b32 a, $2; mov.b32 b, $3;
mov.b32 c, $4; setp.gt.f32 p, a, b; setp.ge.and.f32 p, a, c, p; mov.b32 $0, $1;
@p add.s32 $0, $0, {0}; }}"""


def bits_of(number):
    """float32 -> int32, the same registers."""
    return lax.bitcast_convert_type(number, jnp.int32)


class Decisions:
    """Collect decisions in words, unless not ``enabled``; ``th`` comes from a fused
    function."""

    def __init__(self, th, enabled: bool):
        self.th, self.enabled = th, enabled

    def none(self):
        """No decisions yet."""
        return self.th.splat(0)

    def less(self, word, a, b):
        """Append to ``word`` whether a < b."""
        if not self.enabled:
            return word
        if self.th.plain:
            return (word << 1) | (a < b).astype(jnp.int32)
        return self.th.asm(LESS, word, a, b)

    def choice(self, after, up, p, f, e, column):
        """Append to ``after`` whether p < f; set in ``up``, at the place of one of 16
        columns, whether e > p and e >= f."""
        if not self.enabled:
            return after, up
        bit = 1 << (15 - column)
        if self.th.plain:
            up = up + jnp.where((e > p) & (e >= f), bit, 0)
        else:
            up = self.th.asm(LARGEST.format(bit), up, e, p, f)
        return self.less(after, p, f), up

    def positive(self, word, h):
        """Append to ``word`` whether h, at least 0, is positive."""
        if not self.enabled:
            return word
        if self.th.plain:
            return (word << 1) | (bits_of(h) > 0).astype(jnp.int32)
        return self.th.asm(POSITIVE, word, h)

    def both(self, low, high):
        """Pack two words of 16 decisions into one."""
        return low | (high << 16)


# ------------------------------------------------------------------------------
# A lane's scores of a row: loads of 16 bytes, and float32 numbers from their bits.

# Scores beyond a length in local mode: no path gains by them.
LOWEST_BITS = {
    "int8": 0x80808080,
    "int16": 0x80008000,
    "bfloat16": 0xFF80FF80,
    "float16": 0xFC00FC00,
    "float32": 0xFF800000,
}
HALF = "{{ .reg .b16 x, y; .reg .f32 f; mov.b32 {{x, y}}, $1;"
HALF += " cvt.f32.f16 f, {0}; mov.b32 $0, f; }}"
INTEGER = "{{ .reg .b32 x; .reg .f32 f; shr.s32 x, $1, {0}; cvt.rn.f32.s{1} f, x;"
INTEGER += " mov.b32 $0, f; }}"


def load_row(th: Threads, scores, z: HardSizes, quads, row):
    """Load 16 scores a thread of row ``row``, as bits in words (the twin: as float32).
    ``quads`` are the first words of the loads within a row."""
    stride = z.columns * z.itemsize // 4
    if not th.plain:
        loads = [th.load(scores, at, 4, row, stride) for at in quads]
        return tuple(word for load in loads for word in load)
    numbers, per_word = [], 4 // z.itemsize
    for at in quads:
        first = at + row * stride
        check_access(scores.size * z.itemsize // 4, first, 4)
        for k in range(QUAD_BYTES // z.itemsize):
            x = scores.at[first * 4 // z.itemsize + k].get(mode="fill", fill_value=0)
            numbers.append(x.astype(jnp.float32))
    assert len(numbers) == 4 * len(quads) * per_word
    return tuple(numbers)


def keep_masks(th: Threads, z: HardSizes, first, n):
    """Masks for the words of ``load_row``, with ones for columns within length ``n``;
    ``first`` is the lane's first column."""
    per_word = 1 if th.plain else 4 // z.itemsize
    bits = 32 // per_word
    masks = []
    for word in range(COLUMNS // per_word):
        mask = th.splat(0)
        for k in range(per_word):
            ones = ((1 << bits) - 1) << (bits * k)
            inside = first + (word * per_word + k) < n
            mask = mask | jnp.where(inside, th.splat(_signed(ones)), th.splat(0))
        masks.append(mask)
    return tuple(masks)


def masked(th: Threads, z: HardSizes, words, keep):
    """Replace scores by the lowest one where ``keep`` has zeros."""
    if th.plain:
        low = float(jnp.iinfo(z.dtype).min) if "int" in z.dtype else -jnp.inf
        return tuple(
            jnp.where(k != 0, x, low) for x, k in zip(words, keep, strict=True)
        )
    low = th.splat(_signed(LOWEST_BITS[z.dtype]))
    return tuple(((x ^ low) & k) ^ low for x, k in zip(words, keep, strict=True))


def numbers_of(th, z: HardSizes, words):
    """Unpack 16 float32 from words; ``th`` comes from a fused function."""
    if th.plain or z.dtype == "float32":
        return list(words)
    out = []
    for word in words:
        if z.dtype == "bfloat16":
            out += [word << 16, word & _signed(0xFFFF0000)]
        elif z.dtype == "float16":
            out += [th.asm(HALF.format(half), word) for half in "xy"]
        else:
            bits = 8 * z.itemsize
            out += [th.asm(INTEGER.format(x, bits), word) for x in range(0, 32, bits)]
    return out


def _signed(bits: int) -> int:
    return bits - (1 << 32) if bits >= 1 << 31 else bits


# ------------------------------------------------------------------------------
# The cells of a lane's row, as one primitive (``core.reals``).
#
# The recurrence and its ties are those of the plain form of
# ``jaxalign.similarity.hard.dp.fill``.


def first_row(r: Reals, s: Hard, ref, top, costs):
    """E of row 1 below H of row 0 (``top``), and the decisions where it opens."""

    def cells(th, _, values):
        top, low, (open_e, extend_e) = values
        decisions = Decisions(th, s.paths)
        e, opens = [], decisions.none()
        for h in top:
            longer, opened = _sub(th, low, extend_e), _sub(th, h, open_e)
            e.append(_largest(th, longer, opened))
            opens = decisions.less(opens, longer, opened)
        return tuple(e), opens

    values = tuple(top), r.splat(FORBIDDEN), costs[:2]
    return fused(r.th, cells, ref, values, (tuple(top), r.th.splat(0)))


def row(r: Reals, s: Hard, z: HardSizes, ref, lines, left_column, costs, words):
    """Compute a row of 16 cells: the next ``lines`` (H, E of the next row, and the
    decisions where it opened), P and F of the last column, words of decisions.

    left_column : H of the column before the first in the row above; P and F of this row
    costs : open_e, extend_e, open_f, extend_f
    words : the bits of the scores
    """
    like = lines, left_column[1:], (r.th.splat(0),) * s.words
    cells = partial(_row, s=s, z=z)
    return fused(r.th, cells, ref, (lines, left_column, costs, words), like)


def _row(th, _, values, s: Hard, z: HardSizes):
    (h_row, e_row, opens_e), (diagonal, p, f), costs, words = values
    h_row, e_row = list(h_row), list(e_row)
    open_e, extend_e, open_f, extend_f = costs
    decisions = Decisions(th, s.paths)
    opens_next = opens_f = after = up = goes = decisions.none()
    for u, score in enumerate(numbers_of(th, z, words)):
        e = e_row[u]
        longer, opened = _sub(th, f, extend_f), _sub(th, p, open_f)
        opens_f = decisions.less(opens_f, longer, opened)
        f = _largest(th, longer, opened)
        p = _add(th, score, diagonal)
        x = _largest(th, p, f)
        after, up = decisions.choice(after, up, p, f, e, u)
        diagonal = h_row[u]
        if s.local:
            h = _largest_positive(th, x, e)
            goes = decisions.positive(goes, h)
        else:
            h = _largest(th, x, e)
        h_row[u] = h
        longer, opened = _sub(th, e, extend_e), _sub(th, x, open_e)
        opens_next = decisions.less(opens_next, longer, opened)
        e_row[u] = _largest(th, longer, opened)
    pairs = [(opens_e, opens_f), (after, up)] + [(goes, goes)] * 2
    decided = tuple(decisions.both(*pair) for pair in pairs[: s.words])
    return (tuple(h_row), tuple(e_row), opens_next), (p, f), decided


def _add(th, a, b):
    return a + b if th.plain else th.real("addf", a, b)


def _sub(th, a, b):
    return a - b if th.plain else th.real("subf", a, b)


def _largest(th, a, b):
    return jnp.maximum(a, b) if th.plain else th.real("maximumf", a, b)


def _largest_positive(th, a, b):
    """The largest of a, b and 0, as integers: that is one instruction."""
    if not th.plain:
        return th.maximum(th.maximum(a, b), th.splat(0))
    bits = jnp.maximum(jnp.maximum(bits_of(a), bits_of(b)), 0)
    return lax.bitcast_convert_type(bits, jnp.float32)
