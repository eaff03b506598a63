"""Affine gap costs and minus infinity: the mathematics that alignments of two and
of three sequences share."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp


class Gaps(NamedTuple):
    """Gap costs, non-negative, ``open >= extend``: scalars of the score dtype, NumPy's
    until a program takes them."""

    open: Any
    extend: Any


def neg_inf(dtype: jax.typing.DTypeLike) -> int:
    """A finite minus infinity: half the range, so that one subtraction of another
    half (see ``first_column``) still cannot wrap."""
    return int(jnp.iinfo(dtype).min) // 2
