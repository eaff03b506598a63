"""What crosses from a GPU to the host: of the pairs asked for those a filter may keep.

A filter is decided twice: on the device in float32 with some slack, so that most of
what it drops never crosses, then on the host exactly (``run.results``).
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from jaxalign.run import bounds, results
from jaxalign.run.windows import bucket

SLACK = 1e-5  # of a threshold, above what float32 loses


def crossed(task, found, made):
    """(pairs, results (P,)) on the host. Where the task has filters, pairs that they
    are sure to drop stay on the device; the host decides on the rest exactly."""
    if not task.filters:
        return found, jax.tree.map(partial(asked, found.wanted), made)
    shape = made.score.shape
    grids = [grid(x, shape) for x in (found.wanted, found.swapped)]
    m, n = (
        grid(side.lengths[ids].astype(np.float32), shape)
        for side, ids in ((task.queries, found.query), (task.targets, found.target))
    )
    base = bounds.IDENTITY_BASE["int32"] if task.output == "identity" else 1
    options = {"filters": task.filters, "scale": task.scoring.scale, "base": base}
    mask, count = _pass(made, m, n, *grids, **options)
    size = bucket(int(count), 4, 256)
    index, made = _compact(mask, made, size=min(size, mask.size))
    index = np.asarray(index)[: int(count)]
    keep = np.zeros(shape, bool)
    keep.reshape(-1)[index] = True
    keep = keep.reshape(-1, shape[-1])[: len(found.wanted), : found.wanted.shape[1]]
    made = jax.tree.map(lambda values: np.asarray(values)[: int(count)], made)
    return found._replace(wanted=keep), made


@partial(jax.jit, static_argnames=("filters", "scale", "base"))
def _pass(made, m, n, wanted, swapped, *, filters, scale, base):
    """(mask, count): all pairs that pass, and some that miss by a hair (float32)."""
    score = made.score // base
    columns = {"score": score.astype(jnp.float32) / scale}
    if base > 1:
        columns["max_identities"] = (made.score % base).astype(jnp.float32)
    if made.columns is not None:
        for name in (*results.COUNTS, "start_i", "end_i", "start_j", "end_j"):
            columns[name] = getattr(made, name).astype(jnp.float32)
        for end in ("start", "end"):
            own, other = columns.pop(f"{end}_i"), columns.pop(f"{end}_j")
            columns[f"query_{end}"] = jnp.where(swapped, other, own)
            columns[f"target_{end}"] = jnp.where(swapped, own, other)
    sides = jnp.where(swapped, n, m), jnp.where(swapped, m, n)
    mask = wanted & filters.mask(columns, *sides, jnp, SLACK)
    return mask, mask.sum(dtype=jnp.int32)


@partial(jax.jit, static_argnames=("size",))
def _compact(mask, made, size):
    """Indices (size,) of the pairs of a mask, and their results."""
    (index,) = jnp.nonzero(mask.reshape(-1), size=size, fill_value=0)
    return index, jax.tree.map(lambda values: values.reshape(-1)[index], made)


def grid(values, shape):
    """(Q, T) in the static size of a launch, False beyond."""
    wide = np.zeros(shape, values.dtype)
    wide.reshape(-1, shape[-1])[: values.shape[0], : values.shape[1]] = values
    return wide


def asked(wanted, values):
    """Values of the pairs that are asked for (P,), row by row."""
    values = np.asarray(values)
    values = values.reshape(-1, values.shape[-1])
    return values[: wanted.shape[0], : wanted.shape[1]][wanted]
