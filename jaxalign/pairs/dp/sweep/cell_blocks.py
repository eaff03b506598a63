"""Local scores on a CPU: two rows and two columns of cells in one loop over the lanes.

XLA:CPU makes a loop of its own of every array, so that a value which more than one
array needs goes by way of memory. Only a reduction of several arrays at once is one
loop for all of them: here each array is the maximum of two copies of itself. What they
share stays in registers: E and H between the two rows, F between the two columns.

LLVM makes vectors of such a loop as long as it has to ask at most 128 times whether two
of its arrays overlap, which it cannot know: eight are written and twelve read, so there
is no room for a third row or column, nor for gap costs that are not constants of the
program (docs/logs/cpu-sweep.md, rung 18; ``tests/pairs/test_vector_width.py``).
"""

from collections.abc import Sequence
from functools import partial, reduce
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxalign.affine import Gaps
from jaxalign.one_function import one_function
from jaxalign.pairs.dp import recurrence
from jaxalign.pairs.dp.matrix_rows import row_of
from jaxalign.pairs.dp.sweep.lane_scores import from_profile

BLOCK_ROWS, BLOCK_COLUMNS = 2, 2  # of a block


class Constants(NamedTuple):
    """Integers that are constants of a program of local scores. ``zero`` is what a
    score of 0 is held as: far below 0, a narrow dtype holds scores twice as high."""

    open: int
    extend: int
    zero: int = 0

    @property
    def least(self) -> int:
        """The start of E and F: no lower than a gap that opens at a score of 0."""
        return self.zero - self.open


def together(*values: Any):
    """The same values (pytrees of (B,) arrays), computed by one loop."""
    flat, tree = jax.tree.flatten(values)
    low = [jnp.iinfo(x.dtype).min for x in flat]
    init = [jnp.asarray(x, y.dtype) for x, y in zip(low, flat, strict=True)]
    twice = [lax.broadcast(x, (2,)) for x in flat]

    def larger(some: Sequence[jax.Array], others: Sequence[jax.Array]):
        return [lax.max(x, y) for x, y in zip(some, others, strict=True)]

    return jax.tree.unflatten(tree, lax.reduce(twice, init, larger, (0,)))


def columns_of(
    rows: int,
    scores: jax.Array,
    letters: Sequence[jax.Array],
    dtype: jax.typing.DTypeLike,
    costs: Constants,
    first: jax.Array | None = None,
):
    """The step over two columns of all lanes: a function (p, carry).

    Parameters
    ----------
    rows : of the strip
    scores : (A + 1, L / 2, 2 * B), the database profile, two columns a row
    letters : int32 (1,) for each row
    dtype : of H, E and F
    costs : Constants
    first : row p of the first two columns in ``scores``; None for 0

    The carry is that of ``sweep``: H and F of the rows, the diagonal, then H and E of
    the row above, (L / 2, 2 * B) each, and the best H so far.
    """
    lanes = scores.shape[2] // BLOCK_COLUMNS

    def halves(pair: jax.Array):
        return [lax.slice_in_dim(pair, c * lanes, (c + 1) * lanes)
                for c in range(BLOCK_COLUMNS)]  # fmt: skip

    # Functions of their own, so that the loops of a block read plain arrays.
    score = one_function(partial(from_profile, dtype=dtype))
    row, last = one_function(row_of), one_function(lambda pair: halves(pair)[-1])

    def step(p: jax.Array, carry: tuple):
        h, f, diag, above_h, above_e, nothing, (best,) = carry
        pair_h, pair_e = row(above_h, p), row(above_e, p)
        up, e, left, new_h, new_f = halves(pair_h), halves(pair_e), diag, [], []
        at = p if first is None else p - first
        for k in range(0, rows, BLOCK_ROWS):
            some = slice(k, k + BLOCK_ROWS)
            s = [halves(score(scores, x, at)) for x in letters[some]]
            h_k, f_k, up, e, best = _block(
                h[some], f[some], left, up, e, s, best, costs
            )
            left = h[k + BLOCK_ROWS - 1]
            new_h += h_k
            new_f += f_k
        for c in range(BLOCK_COLUMNS):
            above_h = put_column(above_h, up[c], p, c)
            above_e = put_column(above_e, e[c], p, c)
        diag = last(pair_h)
        return tuple(new_h), tuple(new_f), diag, above_h, above_e, nothing, (best,)

    return step


def _block(
    h: Sequence[jax.Array],
    f: Sequence[jax.Array],
    diag: jax.Array,
    up: Sequence[jax.Array],
    e: Sequence[jax.Array],
    s: Sequence[Sequence[jax.Array]],
    best: jax.Array,
    costs: Constants,
):
    """H and F of the last column, H and E of the last row, and the best of all cells.

    Lists by row (``h``, ``f``, to the left of the block) or by column (``up``, ``e``,
    above it); ``diag`` is H above and to the left; ``s`` scores by row and column.
    """
    gaps = Gaps(lax.full_like(diag, costs.open), lax.full_like(diag, costs.extend))
    h, f, up, e, h_cells = list(h), list(f), list(up), list(e), []
    for k in range(BLOCK_ROWS):
        corner, diag = diag, h[k]  # H to the left of the row above, and of this row
        for c in range(BLOCK_COLUMNS):
            e[c] = recurrence.gap(e[c], up[c], gaps)
            f[k] = recurrence.gap(f[k], h[k], gaps)
            h[k] = recurrence.best(corner, s[k][c], e[c], f[k], True, costs.zero)
            corner, up[c] = up[c], h[k]
            h_cells.append(h[k])
    *first, _ = up  # H of the last row and column is also the last of ``h``
    best = lax.max(best, reduce(lax.max, h_cells))
    h, f, first, e, best = together(h, f, first, e, best)
    return h, f, [*first, h[-1]], e, best


def put_column(array: jax.Array, values: jax.Array, p: jax.Array, c: int):
    start = p, jnp.int32(c * values.shape[0])
    return lax.dynamic_update_slice(
        array, values[None], start, allow_negative_indices=False
    )
