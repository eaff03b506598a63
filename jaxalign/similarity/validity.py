"""Inputs that mean nothing: their results are nan, and never a number."""

import jax.numpy as jnp

from jaxalign.similarity.arguments import ScoredPair
from jaxalign.similarity.arrays import Factors


def is_valid(pair: ScoredPair):
    """Whether nothing within the lengths of one pair is nan, infinite where only minus
    infinity has a meaning, or beyond the arrays; a bool scalar.

    A similarity may be -inf (forbidden), a gap cost +inf; entries of embeddings are
    finite.
    """
    rules, s = pair.rules, pair.similarity
    rows, columns = s.shape
    row = jnp.arange(rows, dtype=jnp.int32) < rules.m
    column = jnp.arange(columns, dtype=jnp.int32) < rules.n
    both = row[:, None] & column[None, :]
    valid = (rules.m >= 0) & (rules.m <= rows) & (rules.n >= 0) & (rules.n <= columns)
    if isinstance(s, Factors):
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
