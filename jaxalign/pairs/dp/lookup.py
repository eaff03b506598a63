"""A table read at many codes at once, without a gather: vectors of any width do it."""

from jax import lax

MAX_SELECT_CODES = 32  # entries: beyond them a gather is better


def by_code(entries, codes):
    """``entries[c]`` wherever ``codes`` is c: one bit of the code halves the choice.

    Parameters
    ----------
    entries : list of at most ``MAX_SELECT_CODES`` arrays of the shape of ``codes``
    codes : integers below ``len(entries)``
    """
    bit = 1
    while len(entries) > 1:
        on = (codes & lax.full_like(codes, bit)) != lax.full_like(codes, 0)
        pairs = (entries[k : k + 2] for k in range(0, len(entries), 2))
        entries = [lax.select(on, *x[::-1]) if len(x) == 2 else x[0] for x in pairs]
        bit *= 2
    return entries[0]
