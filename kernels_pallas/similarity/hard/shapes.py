"""Static choices, sizes and per-thread constants of the hard kernels."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from kernels_pallas.core.reals import WARP, Reals

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
    paths: bool = True  # whether they are wanted, too

    @property
    def words(self) -> int:
        """Words of decisions that a lane stores of a row; the fourth is the third."""
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
        """Of a pass."""
        return self.rows + WARP - 1


class HardInputs(NamedTuple):
    """Arrays that a launch reads; B pairs, T tables of a warp, W warps, P passes."""

    scores: jax.Array  # (B * rows * columns,), of the similarity's own dtype
    costs: jax.Array  # float32 (B * 4,): open, extend of the query's, the target's
    # int32 (B * 4,): both lengths, whether queries begin freely, the table's first row
    sizes: jax.Array
    left: jax.Array  # float32 (B * (rows + 1),): H of column 0
    top: jax.Array  # float32 (B * top_width,): H of row 0
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


def top_width(columns: int) -> int:
    """Numbers of a table's row 0 as the kernel reads them."""
    return columns + 1
