"""Numbers that a caller gives as options: which are numbers at all, and whole ones."""

from typing import Any, TypeGuard

import numpy as np

from jaxalign.errors import UsageError


def is_number(value: Any) -> bool:
    """Whether a value is a Python or NumPy number; booleans are not."""
    is_numeric = isinstance(value, (int, float, np.integer, np.floating))
    return is_numeric and not isinstance(value, bool)


def _is_whole(value: Any) -> TypeGuard[int]:
    return isinstance(value, (int, np.integer)) and is_number(value)


def check_whole(
    name: str,
    value: Any,
    needed: str = "1 or more are needed",
    optional: bool = True,
    least: int = 1,
) -> None:
    """Refuse an option that is no whole number from ``least`` on, or None."""
    if value is None and optional:
        return
    if not (_is_whole(value) and value >= least):
        raise UsageError(f"{name} = {value!r}: {needed}")


def check_between(name: str, value: Any, least: int, largest: int) -> None:
    """Refuse an option that is no whole number in a range, both ends included."""
    if not (_is_whole(value) and least <= value <= largest):
        raise UsageError(
            f"{name} = {value!r}: a whole number from {least} to {largest} is needed"
        )


def check_fraction(name: str, value: Any, positive: bool = False) -> None:
    """Refuse an option that is no number from 0 to 1, or is 0 where it is to be
    ``positive``; a percentage is answered with its fraction."""
    if is_number(value) and (0 < value <= 1 or value == 0 and not positive):
        return
    needed = "a fraction above 0, up to 1," if positive else "a fraction from 0 to 1"
    percent = is_number(value) and 2 <= value <= 100
    hint = f"; did you mean {value / 100:g}?" if percent else ""
    raise UsageError(f"{name} = {value!r}: {needed} is needed{hint}")


def exact(value: float) -> str:
    """Write a number with as few digits as read back to it: 0.4, 1, 1e-10."""
    return repr(float(value)).removesuffix(".0")


def printed_beside(values: Any, decimals: int, *cuts: Any) -> Any:
    """Move fractions that a text of so many decimals would have on the other side of a
    cut: beside 1, 29,899 of 29,900 are 0.9999."""
    values, scale = np.asarray(values, float), 10.0**decimals
    for cut in cuts:
        least = np.round(np.multiply(cut, scale))
        least = least + (least / scale < cut)  # of texts at the cut or above it
        lower = (values < cut) & (values * scale > least - 0.500001)
        higher = (values >= cut) & (values * scale < least - 0.499999)
        values = np.where(lower, (least - 1) / scale, values)
        values = np.where(higher, least / scale, values)
    return values


def texts_beside(values: Any, digits: int, *cuts: float) -> list[str]:
    """Write numbers to some digits, and with all of theirs where that text would be on
    the other side of a cut: one of ``cuts``, or one of a single digit, as 1e-3."""
    values = np.asarray(values, float)
    texts = [f"{x:.{digits}g}" for x in values.tolist()]
    with np.errstate(all="ignore"):
        leading = values / 10.0 ** np.floor(np.log10(np.abs(values)))
        close = 10.0 ** (1 - digits)
        close_values = np.abs(leading - np.round(leading)) < close
        for cut in cuts:
            close_values |= np.abs(values - cut) < close * abs(cut)
    for k in np.flatnonzero(close_values).tolist():
        value, shown = float(values[k]), float(texts[k])
        sides = (*cuts, float(f"{value:.0e}"))
        if any((shown <= cut) != (value <= cut) for cut in sides):
            texts[k] = repr(value)
    return texts
