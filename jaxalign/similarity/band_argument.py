"""The option ``band`` of a function of similarities, checked."""

import operator

from jaxalign.errors import UsageError


def checked_band(band: object, shape: tuple[int, ...], cost_ranks) -> int | None:
    """The half width, or None where it forbids nothing.

    Parameters
    ----------
    band : the option
    shape : (..., m, n)
    cost_ranks : of the gap costs, without batch axes

    Raises
    ------
    UsageError
        No positive whole number; gap costs by cell; a table whose cells 32 bits do not
        number.
    """
    if band is None:
        return None
    try:
        width = operator.index(band)  # pyright: ignore[reportArgumentType]
    except TypeError:
        raise UsageError(f"band={band!r}: a whole number is needed") from None
    if width < 1:
        raise UsageError(f"band={width}: at least 1")
    if max(cost_ranks) == 2:
        raise UsageError("a band takes gap costs by number or residue, not by cell")
    longest = max(shape[-2:])
    if width >= longest:
        return None
    if 2 * sum(shape[-2:]) * longest >= 2**31:
        raise UsageError(f"a band in a table of {shape[-2:]}: 23,170 is the limit")
    return width
