"""Shapes of the fill of one long pair (``long_fill``), and its arrays.

lane              K rows; a warp keeps a *band* of T rows in registers: 32 lanes, or 64
                  where two share a thread, g and g + 32 in the halves of a register
step              4 columns of K rows in every lane; lane g is g steps behind lane 0
chunk             S steps of a band: what it announces, and what is pruned, at once
unit              the columns whose bottom cells a chunk writes: those of the last lane
slot              a row between two bands in memory: slot 0 is written over by each
                  band, a checkpoint has one of its own
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from kernels_pallas.core.mosaic import Threads
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
        """Steps that a row in memory has room for."""
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
    """(bands, chunks) that a block of m rows and n columns has."""
    lanes = WARP * (2 if packed else 1)
    bands = max(1, -(-m // (rows * lanes)))
    blocks = max(1, -(-n // COLUMNS)) + lanes - 1
    return bands, -(-blocks // steps)


def long_fits(scores, gap_open: int, gap_extend: int, letters: int) -> bool:
    """Whether sums stay in range: ``letters`` is that of both sequences together.

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


def target_words(target, s: LongFill):
    """Four letters a word: uint8 (4 width,) -> int32 (width,)."""
    return jax.lax.bitcast_convert_type(target.reshape(-1, COLUMNS), jnp.int32)
