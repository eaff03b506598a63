"""Inputs that mean nothing: their results are nan, and never a number."""

from typing import Any

import jax
import jax.numpy as jnp

from jaxalign.similarity.arrays import Factors


def is_valid(pair: Any, product: jax.Array | None = None) -> jax.Array:
    """Whether nothing within the lengths of one pair is nan, infinite where only minus
    infinity has a meaning, or beyond the arrays; a bool scalar.

    A similarity may be -inf (forbidden), a gap cost +inf; entries of embeddings are
    finite. With ``product``, the scores of the pair, somebody else looks for nan and
    inf among them: only whether embeddings are finite is read off its borders, since a
    vector that is not makes all of its row or column so.
    """
    rules, s = pair.rules, pair.similarity
    rows, columns = s.shape
    row = jnp.arange(rows, dtype=jnp.int32) < rules.m
    column = jnp.arange(columns, dtype=jnp.int32) < rules.n
    both = row[:, None] & column[None, :]
    valid = (rules.m >= 0) & (rules.m <= rows) & (rules.n >= 0) & (rules.n <= columns)
    if product is not None:
        wrong = _wrong_vectors(s, product, row, column)
    elif isinstance(s, Factors):
        vectors = zip(s, (row, column), strict=True)
        wrong = [~jnp.isfinite(x) & inside[:, None] for x, inside in vectors]
    elif jnp.issubdtype(s.dtype, jnp.integer):
        wrong = []
    else:
        wrong = [(jnp.isnan(s) | jnp.isposinf(s)) & both]
    for gap in (pair.gap_open, pair.gap_extend):
        for cost, inside in zip(gap, (row, column), strict=True):
            inside = (jnp.any(inside), inside, both)[cost.ndim]
            wrong.append((jnp.isnan(cost) | jnp.isneginf(cost)) & inside)
    for one in wrong:
        valid &= ~jnp.any(one)
    return valid


def _wrong_vectors(
    similarity: Any, product: jax.Array, row: jax.Array, column: jax.Array
):
    if not isinstance(similarity, Factors):
        return []
    borders = (product[:, 0], row, column), (product[0], column, row)
    return [~jnp.isfinite(x) & own & other[0] for x, own, other in borders]
