"""The best scores of each query, kept on the device while windows come and go.

The order is total: a higher score first, then the smaller database index. So the best K
do not depend on how targets were dealt to windows, or on which window came first.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

NO_HIT = -1  # the index where there is no hit
GROUP, LEAST_RATIO = 64, 4  # columns looked at together; of all to those sorted


class BestHits(NamedTuple):
    """The best K of every query, best first; ``NO_HIT`` and the lowest score where
    there are fewer: (Q, K)."""

    score: jax.Array
    index: jax.Array  # int32, of the database


def empty(queries: int, top: int, dtype: Any = "int32") -> BestHits:
    """No hits yet."""
    shape, lowest = (queries, top), jnp.iinfo(dtype).min
    # Made in NumPy, since JAX would compile a program for each.
    hits = np.full(shape, lowest, dtype), np.full(shape, NO_HIT, np.int32)
    return BestHits(*jax.device_put(hits))


@partial(jax.jit, donate_argnames=("best",))
def add(
    best: BestHits,
    scores: jax.Array,
    queries: jax.Array,
    targets: jax.Array,
    index: jax.Array,
    least: Any,
) -> BestHits:
    """The best hits with those of a window.

    ``scores`` (S, P) has whatever dtype the fill had. ``queries`` int32 (S,) are rows
    of ``best``, beyond its end where a row is not used, as the last ones may be;
    ``targets`` int32 (P,) are columns of ``scores`` in the order of the database, those
    that are not used last, and ``index`` int32 (P,) their database indices, or
    ``NO_HIT``. Scores lower than ``least``, a scalar of the dtype of ``best``, are no
    hits.
    """
    lowest = jnp.iinfo(best.score.dtype).min
    used = min(len(scores), len(best.score))  # at most: no query has two rows
    queries, scores = queries[:used], scores[:used, targets].astype(best.score.dtype)
    hit = (index >= 0)[None, :] & (scores >= least)
    scores = jnp.where(hit, scores, lowest)
    # Columns are in database order.
    highest, place = top_k(scores, min(best.score.shape[1], scores.shape[1]))
    highest_index = jnp.where(highest == lowest, NO_HIT, index[place])
    rows = jnp.minimum(queries, best.score.shape[0] - 1)
    merged = merge(
        BestHits(best.score[rows], best.index[rows]), BestHits(highest, highest_index)
    )
    return jax.tree.map(lambda x, y: x.at[queries].set(y, mode="drop"), best, merged)


def top_k(scores: jax.Array, count: int) -> tuple[jax.Array, jax.Array]:
    """``lax.top_k`` of every row, which takes the first column among equals.

    A column is among the best only if its group of ``GROUP`` neighbours is among the
    best groups by their highest scores, since each group before it has a column that is
    better, or as good and before it. So few columns are sorted where there are many.
    """
    rows, columns = scores.shape
    if columns % GROUP or count * GROUP * LEAST_RATIO > columns:
        return lax.top_k(scores, count)
    groups = scores.reshape(rows, -1, GROUP)
    _, which = lax.top_k(groups.max(2), count)
    which = jnp.sort(which, axis=1)
    leading = jnp.take_along_axis(groups, which[:, :, None], axis=1)
    highest, at = lax.top_k(leading.reshape(rows, -1), count)
    group = jnp.take_along_axis(which, at // GROUP, axis=1)
    return highest, group * GROUP + at % GROUP


@jax.jit
def merge(first: BestHits, second: BestHits) -> BestHits:
    """The best K of two sets of hits, K as in ``first``."""
    score, index = (jnp.concatenate(x, axis=1) for x in zip(first, second, strict=True))
    # ~score falls as score rises and, unlike -score, never wraps.
    falling, index = lax.sort((~score, index), dimension=1, num_keys=2)
    top = first.score.shape[1]
    return BestHits(~falling[:, :top], index[:, :top])
