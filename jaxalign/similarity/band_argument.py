"""The option ``band`` of a function of similarities, checked."""

import operator
from collections.abc import Iterable
from typing import Any

import numpy as np
from jax.core import Tracer

from jaxalign.errors import UsageError

# A half width, or (first columns, last columns) of the query's residues.
Band = int | tuple[Any, Any] | None
LANES = 16  # widths of bands by rows are rounded up to it, for few programs


def is_corridor(band: Any) -> bool:
    """Whether a band is one by rows: a pair (first columns, last columns)."""
    return isinstance(band, (tuple, list)) and len(band) == 2


def checked_band(
    band: object, shape: tuple[int, ...], cost_ranks: Iterable[int]
) -> int | None:
    """The half width, of a band by rows one less than its lanes; or None where it
    forbids nothing.

    Parameters
    ----------
    band : the option
    shape : (..., m, n)
    cost_ranks : of the gap costs, without batch axes

    Raises
    ------
    UsageError
        No band by rows, nor a positive whole number; gap costs by cell; a table whose
        cells 32 bits do not number.
    """
    if band is None:
        return None
    if max(cost_ranks) == 2:
        raise UsageError("a band takes gap costs by number or residue, not by cell")
    if is_corridor(band):
        return _lanes(band, shape) - 1
    try:
        width = operator.index(band)  # pyright: ignore[reportArgumentType]
    except TypeError:
        raise UsageError(f"band={band!r}: a whole number is needed") from None
    if width < 1:
        raise UsageError(
            f"band={width}: at least 1, since cells on the diagonal alone are no path "
            "where lengths differ"
        )
    longest = max(shape[-2:])
    if width >= longest:
        return None
    if 2 * sum(shape[-2:]) * longest >= 2**31:
        raise UsageError(f"a band in a table of {shape[-2:]}: 23,170 is the limit")
    return width


def _lanes(band: Any, shape: tuple[int, ...]) -> int:
    """How many residues of the query a diagonal has at most in a band by rows."""
    if any(isinstance(x, Tracer) for x in band):
        raise UsageError("a band by rows is of NumPy, also inside jit: it has a width")
    first, last = (np.asarray(x) for x in band)
    rows = shape[-2]
    for x in (first, last):
        if x.dtype.kind not in "iu" or x.shape[-1:] != (rows,):
            raise UsageError(
                f"a band by rows has integers (..., {rows}), not {x.dtype} {x.shape}"
            )
        if (np.diff(x) < 0).any() or x.min(initial=0) < 0:
            raise UsageError("a band by rows does not fall, and begins at 0 or later")
    first, last = (x.reshape(-1, rows) for x in np.broadcast_arrays(first, last))
    i, c = np.arange(rows), np.arange(sum(shape[-2:]))
    most = 1
    for one, other in zip(i + first, i + last, strict=True):
        before = np.searchsorted(other, c)
        most = max(
            most, int((np.searchsorted(one, c, "right") - before).max(initial=0))
        )
    return -(-most // LANES) * LANES
