"""Arguments -> arrays of one pair, and which of their axes is the batch."""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from jaxalign.errors import UsageError
from jaxalign.model.scoring import FREE_ENDS, resolve_ends
from jaxalign.similarity.arrays import Factors, Gap, ModeRules

# A gap cost: one, or a pair (of the query's residues, of the target's).
GapCost = jax.typing.ArrayLike | Sequence[Any]
Lengths = jax.typing.ArrayLike | Sequence[Any] | None
# One array, or a tuple of those that it is made of.
Similarity = jax.typing.ArrayLike | tuple[jax.typing.ArrayLike, ...]


class ScoredPair(NamedTuple):
    """What scores the alignments of one pair, or of a batch of them."""

    similarity: jax.Array | Factors
    gap_open: Gap
    gap_extend: Gap
    rules: ModeRules


class Arguments(NamedTuple):
    """``pair``; the ``axes`` of its leaves for ``vmap``; the shape of the ``batch``;
    ``fit`` for further arrays: (array, rank) -> (array, axis)."""

    pair: ScoredPair
    axes: ScoredPair
    batch: tuple[int, ...]
    fit: Any


def read(
    similarity, lengths, gap_open, gap_extend, mode, free_ends, adjacent, scores=None
) -> Arguments:
    """Check the arguments and lay them out.

    ``scores`` is applied to an array of scores; by default it makes narrow floats and
    integers floats of the default kind.
    """
    free = resolve_ends(mode, free_ends)
    s = as_similarity(similarity, scores or floating)
    *axes, m, n = s.shape
    batch = tuple(axes)
    dtype = s.dtype if jnp.issubdtype(s.dtype, jnp.floating) else None
    fit = partial(_fitted, batch=batch, dtype=dtype)
    costs = [_gap(cost, fit, batch, m, n) for cost in (gap_open, gap_extend)]
    arrays = (
        Factors(*(fit(x, rank=2) for x in s))
        if isinstance(s, Factors)
        else fit(s, rank=2),
        *costs,
        ModeRules(*_lengths(lengths, batch, m, n), *_flags(free, mode, adjacent)),
    )
    pair, axes = (ScoredPair(*(_pick(x, k) for x in arrays)) for k in (0, 1))
    return Arguments(pair, axes, batch, fit)


def floating(x):
    """float32 and float64 as they are, everything else as the default float."""
    if x.dtype in (jnp.float32, jnp.float64):
        return x
    return x.astype(jnp.float32 if jnp.issubdtype(x.dtype, jnp.floating) else float)


def cost_shapes(pair: ScoredPair, axes: ScoredPair):
    """Shapes of gap costs, without batch axes."""
    costs = (*pair.gap_open, *pair.gap_extend), (*axes.gap_open, *axes.gap_extend)
    for x, axis in zip(*costs, strict=True):
        yield x.shape if axis is None else x.shape[1:]


def _pick(x, k):
    """The arrays (k = 0) or the axes (k = 1) of the pairs that ``_fitted`` gives."""
    return (
        type(x)(*(y[k] for y in x))
        if isinstance(x, (Factors, Gap, ModeRules))
        else x[k]
    )


def _flags(free, mode, adjacent):
    """Run-time values, so that one compiled program serves every set of free ends."""
    flags = *(end in free for end in FREE_ENDS), mode == "local", bool(adjacent)
    return [(np.bool_(flag), None) for flag in flags]


def as_similarity(similarity, scores):
    """The array of scores, or ``Factors``."""
    if isinstance(similarity, (tuple, list)) and len(similarity) == 3:
        a, b, matrix = map(jnp.asarray, similarity)
        matrix = scores(matrix)
        return matrix.at[a[..., :, None], b[..., None, :]].get(
            mode="fill", fill_value=0
        )
    if isinstance(similarity, (tuple, list)) and len(similarity) == 2:
        a, b = (floating(jnp.asarray(x)) for x in similarity)
        return Factors(a, b)
    s = scores(jnp.asarray(similarity))
    if s.ndim < 2:
        raise UsageError(f"similarity of shape {s.shape}: (..., m, n) is needed")
    return s


def _fitted(x, *, batch, dtype, rank):
    """(array with all batch axes flattened, 0), or (the same for all pairs, None)."""
    x = jnp.asarray(x)
    x = x if dtype is None else x.astype(dtype)
    if x.ndim == rank:
        return x, None
    x = jnp.broadcast_to(x, batch + x.shape[x.ndim - rank :])
    return x.reshape(-1, *x.shape[len(batch) :]), 0


def _gap(cost, fit, batch, m, n) -> Gap:
    if isinstance(cost, (tuple, list)):
        if len(cost) != 2:
            raise UsageError("gap costs: one, or a pair (query's, target's)")
        return Gap(*(_one_gap(x, fit, (m, n), axis) for axis, x in enumerate(cost)))
    shape = jnp.shape(cost)
    full = len(shape) >= 2 and shape[-2:] == (m, n)
    if shape and not full and shape != batch:
        raise UsageError(
            f"a gap cost of shape {shape}: a number, {batch}, (..., {m}, {n}), or a "
            "pair (query's, target's)"
        )
    fitted = fit(cost, rank=2 if full else 0)
    return Gap(fitted, fitted)


def _one_gap(cost, fit, size, axis):
    if jnp.ndim(cost) == 0:
        return fit(cost, rank=0)
    shape = jnp.shape(cost)
    if len(shape) >= 2 and shape[-2:] == size:
        return fit(cost, rank=2)
    if shape[-1:] != (size[axis],):
        raise UsageError(f"a gap cost of shape {shape}: (..., {size[axis]}) is needed")
    return fit(cost, rank=1)


def _lengths(lengths, batch, m, n):
    if lengths is None:
        return [(jnp.int32(m), None), (jnp.int32(n), None)]
    if not isinstance(lengths, (tuple, list)):
        lengths = jnp.asarray(lengths)
        lengths = lengths[..., 0], lengths[..., 1]
    for length, size in zip(lengths, (m, n), strict=True):
        if isinstance(length, Tracer):
            continue
        length = np.asarray(length)
        if length.size and (length.max() > size or length.min() < 0):
            raise UsageError(f"lengths {length.min()} to {length.max()}: 0 to {size}")
    return [_fitted(x, batch=batch, dtype=jnp.int32, rank=0) for x in lengths]
