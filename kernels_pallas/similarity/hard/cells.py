"""The cells of a lane's row, as one primitive (``core.fused``).

The recurrence and its ties are those of the plain form of
``jaxalign.similarity.hard.dp.fill``.
"""

from functools import partial

import jax.numpy as jnp
from jax import lax

from kernels_pallas.core.fused import fused
from kernels_pallas.core.reals import Reals
from kernels_pallas.similarity.hard.decisions import Decisions, bits_of
from kernels_pallas.similarity.hard.scores import numbers_of
from kernels_pallas.similarity.hard.shapes import FORBIDDEN, Hard, HardSizes


def first_row(r: Reals, s: Hard, ref, top, costs):
    """E of row 1 below ``top``, H of row 0, and the decisions where it opens."""
    values = tuple(top), r.splat(FORBIDDEN), costs[:2]
    like = tuple(top), r.th.splat(0)
    return fused(r.th, partial(_first_row, s=s), ref, values, like)


def _first_row(th, _, values, s: Hard):
    top, low, (open_e, extend_e) = values
    decisions = Decisions(th, s.paths)
    e, opens = [], decisions.none()
    for h in top:
        longer, new = _sub(th, low, extend_e), _sub(th, h, open_e)
        e.append(_largest(th, longer, new))
        opens = decisions.less(opens, longer, new)
    return tuple(e), opens


def row(r: Reals, s: Hard, z: HardSizes, ref, lines, left, costs, words):
    """A row of 16 cells.

    Parameters
    ----------
    lines : H of the row above, E of this row, and the decisions where it opened
    left : H of the column before the first in the row above; P and F of this row
    costs : open_e, extend_e, open_f, extend_f
    words : the bits of the scores

    Returns
    -------
    The next ``lines``; P and F of the last column; words of decisions
    """
    like = lines, left[1:], (r.th.splat(0),) * s.words
    cells = partial(_row, s=s, z=z)
    return fused(r.th, cells, ref, (lines, left, costs, words), like)


def _row(th, _, values, s: Hard, z: HardSizes):
    (h_row, e_row, opens_e), (diagonal, p, f), costs, words = values
    h_row, e_row = list(h_row), list(e_row)
    open_e, extend_e, open_f, extend_f = costs
    decisions = Decisions(th, s.paths)
    opens_next = opens_f = after = up = goes = decisions.none()
    for u, score in enumerate(numbers_of(th, z, words)):
        e = e_row[u]
        longer, new = _sub(th, f, extend_f), _sub(th, p, open_f)
        opens_f = decisions.less(opens_f, longer, new)
        f = _largest(th, longer, new)
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
        longer, new = _sub(th, e, extend_e), _sub(th, x, open_e)
        opens_next = decisions.less(opens_next, longer, new)
        e_row[u] = _largest(th, longer, new)
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
    """The largest of a, b and 0; of integers, for which that is one instruction."""
    if not th.plain:
        return th.maximum(th.maximum(a, b), th.splat(0))
    bits = jnp.maximum(jnp.maximum(bits_of(a), bits_of(b)), 0)
    return lax.bitcast_convert_type(bits, jnp.float32)
