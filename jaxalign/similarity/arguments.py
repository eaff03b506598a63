"""Arguments -> arrays of one pair, and which of their axes is the batch."""

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from math import prod
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from jaxalign.errors import UsageError
from jaxalign.model.scoring import FREE_ENDS, resolve_ends
from jaxalign.similarity.arrays import CorridorRules, Factors, Gap, ModeRules
from jaxalign.similarity.band_argument import is_corridor
from jaxalign.similarity.cost_argument import GapCost, check_costs, gap
from jaxalign.similarity.scores import Similarity, as_similarity, floating

Lengths = jax.typing.ArrayLike | Sequence[Any] | None


class ScoredPair(NamedTuple):
    """The numbers that score the alignments of one pair, or of a batch of them."""

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
    similarity: Similarity,
    lengths: Any,
    gap_open: GapCost,
    gap_extend: GapCost,
    mode: str,
    free_ends: Iterable[str] | None,
    adjacent: bool,
    scores: Callable[[jax.Array], jax.Array] | None = None,
    band: Any = None,
) -> Arguments:
    """Check the arguments and lay them out.

    Of ``band`` only the form by rows is read here, a pair of arrays.
    ``scores`` is applied to an array of scores, and to embeddings; by default it makes
    narrow floats and integers floats of the default kind.
    """
    free = resolve_ends(mode, free_ends)
    s = as_similarity(similarity, lengths, scores or floating)
    *leading, m, n = s.shape
    batch = tuple(leading)
    dtype = floating(jnp.zeros((), s.dtype)).dtype
    fit = partial(_fitted, batch=batch, dtype=dtype)
    costs = [
        gap(name, cost, fit, batch, m, n)
        for name, cost in (("gap_open", gap_open), ("gap_extend", gap_extend))
    ]
    kind: Any = ModeRules
    rows = []
    if band is not None and is_corridor(band):
        rows = [_fitted(x, batch=batch, dtype=jnp.int32, rank=1) for x in band]
        kind = CorridorRules
    arrays = (
        Factors._make(_fitted(x, batch=batch, dtype=s.dtype, rank=2) for x in s)
        if isinstance(s, Factors)
        else _fitted(s, batch=batch, dtype=s.dtype, rank=2),
        *costs,
        kind(*_lengths(lengths, batch, m, n), *_flags(free, mode, adjacent), *rows),
    )
    check_costs(gap_open, gap_extend, lengths, batch)
    pair, axes = (ScoredPair._make(_pick(x, k) for x in arrays) for k in (0, 1))
    return Arguments(pair, axes, batch, fit)


def cost_shapes(pair: ScoredPair, axes: ScoredPair):
    """Shapes of gap costs, without batch axes."""
    costs = (*pair.gap_open, *pair.gap_extend), (*axes.gap_open, *axes.gap_extend)
    for x, axis in zip(*costs, strict=True):
        yield x.shape if axis is None else x.shape[1:]


def _pick(x: Any, k: int) -> Any:
    """The arrays (k = 0) or the axes (k = 1) of the pairs that ``_fitted`` gives."""
    return (
        type(x)(*(y[k] for y in x))
        if isinstance(x, (Factors, Gap, ModeRules, CorridorRules))
        else x[k]
    )


def _flags(free: Collection[str], mode: str, adjacent: bool):
    """Run-time values, so that one compiled program serves every set of free ends."""
    flags = *(end in free for end in FREE_ENDS), mode == "local", bool(adjacent)
    return [(np.bool_(flag), None) for flag in flags]


def _fitted(x: jax.typing.ArrayLike, *, batch: tuple[int, ...], dtype: Any, rank: int):
    """(array with all batch axes flattened, 0), or (the same for all pairs, None)."""
    x = jnp.asarray(x).astype(dtype)
    if x.ndim == rank:
        return x, None
    own = x.shape[max(x.ndim - rank, 0) :]
    if x.ndim < rank or not _broadcasts(x.shape[: x.ndim - rank], batch):
        raise UsageError(f"an array of shape {x.shape} beside a batch of shape {batch}")
    x = jnp.broadcast_to(x, batch + own)
    return x.reshape(prod(batch), *x.shape[len(batch) :]), 0


def _broadcasts(shape: tuple[int, ...], batch: tuple[int, ...]) -> bool:
    pairs = zip(shape[::-1], batch[::-1], strict=False)
    return len(shape) <= len(batch) and all(x in (1, y) for x, y in pairs)


def _lengths(lengths: Any, batch: tuple[int, ...], m: int, n: int):
    if lengths is None:
        return [(jnp.int32(m), None), (jnp.int32(n), None)]
    rows = isinstance(lengths, list) and [isinstance(x, (list, tuple)) for x in lengths]
    if rows == [True, True] and batch == (2,):
        raise UsageError(
            f"lengths {lengths} can be read two ways: a pair (query lengths, target "
            "lengths), which is a tuple, or a row for each pair, which is an array"
        )
    if not isinstance(lengths, (tuple, list)):
        lengths = jnp.asarray(lengths)
        if lengths.shape[-1:] != (2,):
            raise UsageError(f"lengths of shape {lengths.shape}: (..., 2) is needed")
        lengths = lengths[..., 0], lengths[..., 1]
    if len(lengths) != 2:
        raise UsageError(f"{len(lengths)} arrays of lengths: (query's, target's)")
    for length, size in zip(lengths, (m, n), strict=True):
        if isinstance(length, Tracer):
            continue
        length = np.asarray(length)
        if length.size and (length.max() > size or length.min() < 0):
            raise UsageError(f"lengths {length.min()} to {length.max()}: 0 to {size}")
    return [_fitted(x, batch=batch, dtype=jnp.int32, rank=0) for x in lengths]
