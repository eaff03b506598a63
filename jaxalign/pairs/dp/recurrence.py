"""The cell rules, elementwise; every fill calls them and none has its own.

Letters are those of the 2011 gpu-pairalign paper (Blazewicz et al., BMC
Bioinformatics 12:181): query = rows i, target = columns j, E vertical (consumes
query), F horizontal (consumes target), a gap of length k costs
``open + (k - 1) * extend``.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxalign.affine import Gaps


class Cell(NamedTuple):
    """One cell (or an array of them) and the comparisons a backtrack needs."""

    h: jax.Array
    e: jax.Array
    f: jax.Array
    diagonal: jax.Array  # bool: H == D (local mode: of use where H > 0)
    vertical: jax.Array  # bool: E wins over F (E >= F, or E > F where tie is 1)
    up_extends: jax.Array  # bool: E[i,j] == E[i-1,j] - extend
    left_extends: jax.Array  # bool: F[i,j] == F[i,j-1] - extend


def pair_cell(
    diag: jax.Array,
    up: jax.Array,
    left: jax.Array,
    e_up: jax.Array,
    f_left: jax.Array,
    s: jax.Array,
    vertical: Gaps,
    horizontal: Gaps,
    tie: jax.Array | None,
    local: bool,
):
    """The affine recurrence of one cell (Gotoh 1982; the 2011 paper, H, E, F).

    diag, up, left are H of the three neighbours; s the substitution score; vertical
    and horizontal are ``Gaps`` (they differ only where a border is passed through).
    tie is 1 where left goes before up (a pair computed with its two sides swapped).
    """
    e, f = gap(e_up, up, vertical), gap(f_left, left, horizontal)
    h = best(diag, s, e, f, local)
    return compared(h, e, f, diag + s, e_up, f_left, vertical, horizontal, tie)


def compared(
    h: jax.Array,
    e: jax.Array,
    f: jax.Array,
    d: jax.Array,
    e_up: jax.Array,
    f_left: jax.Array,
    vertical: Gaps,
    horizontal: Gaps,
    tie: jax.Array | None,
):
    """The cell whose H, E and F these are, with D = H[i-1,j-1] + S(q[i], t[j])."""
    e_first = e if tie is None else e - tie
    # Equalities with what is kept cost less than the comparisons that made it.
    up_extends = e == e_up - vertical.extend
    left_extends = f == f_left - horizontal.extend
    return Cell(h, e, f, h == d, lax.ge(e_first, f), up_extends, left_extends)


def gap(longer: jax.Array, h: jax.Array, gaps: Gaps):
    """E of the E and H above, F of the F and H on the left."""
    # E[i,j] = max(E[i-1,j] - ext, H[i-1,j] - open)
    # F[i,j] = max(F[i,j-1] - ext, H[i,j-1] - open)
    return lax.max(longer - gaps.extend, h - gaps.open)


def best(
    diag: jax.Array,
    s: jax.Array,
    e: jax.Array,
    f: jax.Array,
    local: bool,
    zero: int = 0,
):
    """H of the H before the pair of residues, its score, and both gaps. ``zero`` is
    what a score of 0 is held as."""
    # D      = H[i-1,j-1] + S(q[i], t[j])
    # H[i,j] = max(D, E, F)          local: max(0, D, E, F)
    h = lax.max(diag + s, lax.max(e, f))
    return lax.max(h, lax.full_like(h, zero)) if local else h


def border(index: jax.Array | int, free: jax.Array | bool, gaps: Gaps):
    """H on row 0 or column 0 at distance ``index``: 0 where that end is free.

    Shape of ``index`` (int32), dtype of the gaps.
    """
    dtype = gaps.open.dtype
    wide = jnp.int64 if dtype == jnp.int64 else jnp.int32  # int16 costs may wrap
    further = jnp.asarray(index - 1, wide)
    cost = gaps.open.astype(wide) + further * gaps.extend.astype(wide)
    return jnp.where(free | (index <= 0), 0, -cost).astype(dtype)
