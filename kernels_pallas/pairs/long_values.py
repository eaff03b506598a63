"""Values of the fill of one long pair: int32, or two of 16 bits in a register.

**Halves.** The low half of a register is a value of lane g, the high half one of lane
g + 32, in the same thread. Lanes stand on an anti-diagonal as ever, so a register goes
to the next thread by one shuffle; from the last one the low half goes to lane 32.

**A base.** Less the *base* of its band, a value fits 16 bits, although scores go into
the millions: neighbours differ by little. The base is chosen again before every chunk,
so that the highest value that enters it lies at ``top``. Memory has int32.

**Skew.** Global and semiglobal modes store H + extend (i + j). Then a longer gap costs
nothing, E and F never fall, and U falls by *open* at most. No value is below 0, so both
halves are added in one addition of words.

**Minus infinity** is ``low``. Within a chunk a value rises by ``growth`` at most, a
best pair in each column. So what comes of minus infinity stays below ``real``, and is
minus infinity again in the next chunk and in memory. A real value that is at least
``least`` where it enters a chunk stays at ``real`` or above. One below it is taken for
minus infinity, and told of (``lost``) if a path through it may reach the bound. In
local mode the base is at least that of H = 0 at ``floor``; there, all values are real.

Shapes of the fill of one long pair (``long_fill``), and its arrays.

lane             K rows; a warp keeps a *band* of T rows in registers: 32 lanes, or 64
                 where two share a thread, g and g + 32 in the halves of a register
step             4 columns of K rows in every lane; lane g is g steps behind lane 0
chunk            S steps of a band: what it announces, and what is pruned, at once
unit             the columns whose bottom cells a chunk writes: those of the last lane
slot             a row between two bands in memory: slot 0 is written over by each
                 band, a checkpoint has one of its own
"""

from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from kernels_pallas.core.mosaic import Threads, word_of
from kernels_pallas.core.target import HOPPER, Target

WARP, WARPS = 32, 4
COLUMNS = 4  # of a step: as many letters as a word has bytes
# Below half of it lie cells that no path reaches: all sums stay within a quarter of it.
MINUS_INFINITY = -(2**30)
NO_BOUND = -(2**31) + 1
# Chunks that a band is behind the one above. A chunk has as many steps as lanes at
# least, so the last lane is less than a chunk behind.
LAG = 2
BLOCK_WORDS = 2 * COLUMNS  # U and E of the columns of a step


@dataclass(frozen=True)
class LongFill:
    """The static choices and sizes of a fill; every combination is one compilation."""

    rows: int  # K of a lane: 8, 16 or 32
    local: bool
    bands: int  # R, a multiple of the warps of a program
    chunks: int  # Q
    letters: int  # of the profile, the padding letter too
    slots: int = 1  # of rows in memory
    captures: int = 1  # columns in memory
    steps: int = 64  # S of a chunk
    last_row: bool = False  # whether H of row m is stored
    packed: bool = False  # 16 bits a value, two a register (``long_values``)
    plain: bool = False  # jnp twins, for the interpreter
    target: Target = HOPPER

    @property
    def halves(self) -> int:
        """Values of a register."""
        return 2 if self.packed else 1

    @property
    def lanes(self) -> int:
        return WARP * self.halves

    @property
    def band(self) -> int:
        """T, rows of a band."""
        return self.rows * self.lanes

    @property
    def skewed(self) -> bool:
        """Whether H + extend (i + j) stands for H, so that longer gaps cost nothing."""
        return self.packed and not self.local

    @property
    def width(self) -> int:
        """Capacity of a row in memory, in steps."""
        return self.chunks * self.steps + 1

    @property
    def quad(self) -> int:
        """Words of a load from the profile, four rows each."""
        return min(4, self.rows // 4)

    @property
    def groups(self) -> int:
        """Loads of a lane for a letter."""
        return self.rows // (4 * self.quad)

    @property
    def letter_words(self) -> int:
        """Words of the profile of a band for a letter."""
        return self.band // 4

    @property
    def programs(self) -> int:
        return self.bands // WARPS

    @property
    def threads(self) -> Threads:
        """The operations of the threads of a program."""
        halves = self.target.integer_halves
        return Threads(self.plain, integer_halves=halves)


class LongNumbers(NamedTuple):
    """Run-time numbers of a fill, int32."""

    n: jax.Array  # columns
    m: jax.Array  # rows
    open: jax.Array
    extend: jax.Array
    chunks: jax.Array  # of every band, at most Q
    bands: jax.Array  # at most R
    capture: jax.Array  # every so many columns one is stored, and column n
    bound: jax.Array  # what cannot reach this score is not computed
    rest_rows: jax.Array  # from the first row of the block to the pair's last
    rest_columns: jax.Array
    step_score: jax.Array  # the most that two letters score, at least 0
    query_extend: jax.Array  # what a letter of the query in a gap costs at the end
    target_extend: jax.Array
    stored_chunks: jax.Array  # a segment: so many chunks have a best of their own


class LongInputs(NamedTuple):
    """Arrays that a launch reads, flat int32."""

    numbers: jax.Array
    profile: jax.Array  # (R, letters, halves, groups, 32, quad): four scores a word
    target: jax.Array  # (width,): four letters a word
    left: jax.Array  # (R, lanes, K, 2): U and F of column 0
    corners: jax.Array  # (R, lanes): U of column 0 above each lane's first row
    slots: jax.Array  # (R + 1,): the slot of the row above each band, and of the last


class LongOutput(NamedTuple):
    """Arrays that a launch writes."""

    columns: jax.Array  # (captures, R, lanes, K, 2): U and F
    best: jax.Array  # (R, segments, 32): local mode, of the threads
    last_row: jax.Array  # (4 width,): U of row m
    rows: jax.Array  # (slots, width, 4, 2): U and E
    computed: jax.Array  # (R,): chunks that were not pruned
    lost: jax.Array  # (R,): not 0 where values left the range of 16 bits


def long_sizes(
    m: int, n: int, rows: int, steps: int, packed: bool = False
) -> tuple[int, int]:
    """(bands, chunks) of a block of m rows and n columns."""
    lanes = WARP * (2 if packed else 1)
    bands = max(1, -(-m // (rows * lanes)))
    blocks = max(1, -(-n // COLUMNS)) + lanes - 1
    return bands, -(-blocks // steps)


def long_fits(scores, gap_open: int, gap_extend: int, letters: int) -> bool:
    """Whether sums stay in range; ``letters`` counts those of both sequences.

    No H is beyond the lengths times the largest step, and as long a run of steps from
    minus infinity stays below half of it.
    """
    scores = np.asarray(scores)
    biased = scores + gap_open
    inside = biased.max(initial=0) < 128 and biased.min(initial=0) >= -128
    step = max(int(np.abs(scores).max(initial=0)), gap_open, gap_extend)
    return bool(inside) and step * (letters + 4096) < 2**28


def opening(numbers: LongNumbers, s: LongFill) -> jax.Array:
    """By how much U is less than H: it opens both gaps. What the first letter of a gap
    costs; where H is skewed that letter brings *extend*."""
    return numbers.open - numbers.extend if s.skewed else numbers.open


def profile_words(scores, query, numbers: LongNumbers, s: LongFill):
    """Profile of a block: biased scores of every row for every letter, as bytes.

    Parameters
    ----------
    scores : int32 (A, A), A = ``s.letters`` - 1; the padding letter scores least
    query : uint8 (R * T,), the padding letter A behind the end
    """
    bias, low = opening(numbers, s), -128
    if s.skewed:  # a pair brings it twice
        bias, low = bias + 2 * numbers.extend, 0
    table = jnp.pad(scores + bias, ((0, 1), (0, 1)), constant_values=low)
    by_row = table.astype(jnp.int8)[query.astype(jnp.int32)]  # (R T, A + 1)
    shape = s.bands, s.halves, WARP, s.groups, s.quad, 4, s.letters
    order = by_row.reshape(shape).transpose(0, 6, 1, 3, 2, 4, 5)
    return jax.lax.bitcast_convert_type(order, jnp.int32).reshape(-1)


NO_VALUE = MINUS_INFINITY // 2  # nothing real lies below it


class PackedRange(NamedTuple):
    """Limits of numbers of 16 bits; each is an int, or a word of every thread."""

    low: Any  # U, E and F of minus infinity
    floor: Any  # H of minus infinity; local mode
    real: Any
    least: Any
    top: Any


def packed_range(best: Any, gap_open: Any, gap_extend: Any, s: LongFill) -> PackedRange:
    """Limits for these costs; ``best`` is the largest score of a pair of letters, at
    least 0."""
    columns = COLUMNS * s.steps
    growth = columns * (best + 2 * gap_extend if s.skewed else best)
    fall = 2 * gap_open + (0 if s.skewed else gap_extend * (s.band + columns))
    low = gap_open + gap_extend
    real = low + growth + 1
    top = s.target.half_limit - growth - gap_open
    return PackedRange(low, low + gap_open, real, real + fall, top)


def long_fits_packed(
    scores: np.ndarray, gap_open: int, gap_extend: int, letters: int, s: LongFill
) -> bool:
    """Whether 16 bits hold the values of a fill, where ``s`` has the sizes.

    What enters a chunk lies in T rows and the columns of two chunks and of the lanes.
    Between two of its cells, paths gain a best pair a step, or lose a gap each.
    """
    scores = np.asarray(scores)
    best = max(int(scores.max(initial=0)), 0)
    n = packed_range(best, gap_open, gap_extend, s)
    places = s.band + COLUMNS * (s.lanes + 2 * s.steps)
    apart = places * (best + 2 * gap_extend) + 4 * gap_open
    bias = gap_open + gap_extend
    bytes_hold = s.local or 0 <= scores.min(initial=0) + bias <= best + bias < 128
    bytes_hold = bytes_hold and (s.local or gap_open >= gap_extend)
    return (
        long_fits(scores, gap_open, gap_extend, letters)
        and (s.skewed or s.target.integer_halves)
        and s.steps >= s.lanes
        and bool(bytes_hold)
        and n.top - n.least >= apart
    )


@dataclass(frozen=True)
class LongArithmetic:
    """Arithmetic on the values of cells (``core.reals``)."""

    th: Any  # Threads, or an Emitter
    s: LongFill

    def read(self, word: Any) -> Any:
        return self.th.halves(word) if self.s.packed else word

    def longer(self, gap: Any, extend: Any) -> Any:
        """Extend a gap by one letter; ``extend`` is below 0."""
        return gap if self.s.skewed else gap + extend

    def plus(self, value: Any, score: Any) -> Any:
        """A value and a score. Where both halves are at least 0 words are added, which
        Hopper does beside its min-max pipe."""
        if self.s.skewed:
            return self.by_words(value, score)
        return value + self.read(score)

    def by_words(self, value: Any, word: Any) -> Any:
        """Add words; neither half carries into or borrows from the other."""
        return self.read(self.th.words(value) + word)

    def score(self, words: tuple, k: int) -> Any:
        """Byte k of each lane's word, sign-extended."""
        if not self.s.packed:
            return signed_byte(self.th, words[0], k)
        if self.th.plain:
            low, high = (signed_byte(self.th, word, k) for word in words)
            return (low & 0xFFFF) | (high << 16)
        sign = f"0x{k + 12:x}{k + 4}{k + 8:x}{k}"
        return self.th.asm(f"prmt.b32 $0, $1, $2, {sign};", *words)


def signed_byte(th: Any, word: Any, k: int) -> Any:
    """Byte k of a word, sign-extended."""
    if th.plain:
        return lax.shift_right_arithmetic(word << (24 - 8 * k), th.splat(24))
    sign = f"{k | 8:x}"
    return th.asm(f"prmt.b32 $0, $1, 0, 0x{3 * sign}{k};", word)


@dataclass(frozen=True)
class LongNumberForm:
    """Numbers of a lane in registers and in memory; ``base`` is one of the band."""

    th: Threads
    s: LongFill
    range: PackedRange

    def everywhere(self, number: Any) -> jax.Array:
        """Repeat the low half of a word in both halves; int32 stays."""
        return (number & 0xFFFF) * 0x10001 if self.s.packed else number

    @property
    def minus_infinity(self) -> jax.Array:
        """U, E and F of a cell that no path reaches, in every lane."""
        low = self.range.low if self.s.packed else self.th.splat(MINUS_INFINITY)
        return self.everywhere(low)

    @property
    def floor(self) -> jax.Array:
        """H of local mode at least."""
        floor = self.range.floor if self.s.packed else self.th.splat(0)
        return self.everywhere(floor)

    @property
    def first_base(self) -> jax.Array:
        """The base where H = 0 is at the floor, the least of local mode."""
        return -self.range.floor

    def base_of(self, high: jax.Array, base: jax.Array) -> jax.Array:
        """Base for the highest number ``high``; the previous base if there is none."""
        next_base = jnp.where(high > NO_VALUE, high - self.range.top, base)
        return jnp.maximum(next_base, self.first_base) if self.s.local else next_base

    def least_real(self, base: jax.Array) -> jax.Array:
        """Least value that is not minus infinity."""
        if not self.s.local:
            return self.range.real
        return jnp.where(base > self.first_base, self.range.real, self.th.splat(0))

    def least_entering(self, base: jax.Array) -> jax.Array:
        """The least value that enters a chunk as it is."""
        if not self.s.local:
            return self.range.least
        low = self.th.splat(-(2**20))
        return jnp.where(base > self.first_base, self.range.least, low)

    def height(self, number: Any) -> Any:
        """A stored number as an offset in which minus infinity is the largest, so
        that a minimum finds the least real one."""
        # Not a maximum of -2 U, which wraps minus infinity away: ptxas 13.0 forgets the
        # sign of some of them (docs/logs/long-pairs.md).
        return (number - NO_VALUE) & 0x7FFFFFFF

    def lanes(self, word: jax.Array) -> list[jax.Array]:
        """The values of the lanes of a thread, int32."""
        if not self.s.packed:
            return [word]
        return [word & 0xFFFF, self.th.shift_right(word, 16)]

    def join(self, words: list[jax.Array]) -> jax.Array:
        """Values of the lanes of a thread as a word."""
        return words[0] if len(words) == 1 else (words[0] & 0xFFFF) | (words[1] << 16)

    def number(self, value: jax.Array, base: Any, like: Any = None) -> jax.Array:
        """A value of one lane in the format of memory. ``like`` is the value that
        says whether it is real, by default itself."""
        if not self.s.packed:
            return value
        like = value if like is None else like
        minus = self.th.splat(MINUS_INFINITY)
        return jnp.where(like >= self.least_real(base), value + base, minus)

    def value(self, number: jax.Array, base: jax.Array) -> jax.Array:
        """A number of memory as a value of one lane."""
        if not self.s.packed:
            return number
        return jnp.maximum(number - base, self.range.low)

    def mask(self, flags: list[jax.Array]) -> jax.Array:
        """Bits of the lanes whose flag (0 or 1) is 1."""
        if not self.s.packed:
            return -flags[0]
        return (flags[0] + (flags[1] << 16)) * 0xFFFF


def largest(th: Any, _: Any, words: tuple, s: LongFill):
    """Largest of some values, by lane (``core.reals``)."""
    v = LongArithmetic(th, s)
    return th.words(reduce(th.maximum, map(v.read, words)))


def shifted(th: Any, _: Any, values: Any):
    """Move values to another base (``core.reals``): U, gaps, and a word with the
    highest bit of each half set if a U was lost.

    values : U, gaps, and words of two numbers each: minus what was real, minus what is
        the least that stays, minus by how much the base rises; minus infinity
    """
    halves, ones = th.halves, th.splat(-1)
    heads, gaps, (real, limit, change, low) = values
    lost = th.splat(0)

    def moved(word):
        below = th.words(halves(word) + halves(limit))
        mask = (th.shift_right(below, 15) & 0x10001) * 0xFFFF
        value = th.words(halves(word) + halves(change))
        return (value & (ones - mask)) | (low & mask), below

    results = []
    for word in heads:
        value, below = moved(word)
        unreal = th.words(halves(word) + halves(real))
        lost = lost | (below & (ones - unreal))
        results.append(value)
    return tuple(results), tuple(moved(word)[0] for word in gaps), lost


def warp_max(th: Threads, word: jax.Array):
    """Largest word of the warp, in all of its threads."""
    if th.plain:
        return jnp.repeat(jnp.max(word.reshape(-1, WARP), 1), WARP)
    # By ``shfl``, which every generation has.
    asm = "{ .reg .b32 x, y; mov.b32 x, $1;"
    for step in (16, 8, 4, 2, 1):
        asm += f" shfl.sync.bfly.b32 y, x, {step}, 31, -1; max.s32 x, x, y;"
    return word_of(asm + " mov.b32 $0, x; }", word)


def before(th: Threads, lane: Any, word: jax.Array, first: jax.Array, s: LongFill):
    """Values of the previous lanes; lane 0 gets those of ``first``.

    Lane 32 is in thread 0 and has those of lane 31, which is in thread 31.
    """
    if not s.packed:
        return jnp.where(lane == 0, first, th.shift_up(word, WARP))
    if th.plain:
        turned = jnp.roll(word.reshape(-1, WARP), 1, axis=1).reshape(-1)
        return jnp.where(lane == 0, (first & 0xFFFF) | (turned << 16), turned)
    source = (lane - 1) & (WARP - 1)
    order = jnp.where(lane == 0, th.splat(0x1054), th.splat(0x3210))
    asm = "{ .reg .b32 x; shfl.sync.idx.b32 x, $1, $3, 31, -1;"
    return word_of(asm + " prmt.b32 $0, x, $2, $4; }", word, first, source, order)
