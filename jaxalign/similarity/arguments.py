"""Arguments -> arrays of one pair, and which of their axes is the batch.

A gap cost is a number, an array of the batch shape, (..., m, n), or a pair (of
the query's residues, of the target's) of numbers, vectors (..., m) and (..., n), or
(..., m, n).
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from math import prod
from operator import index, itemgetter
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from jaxalign.errors import UsageError
from jaxalign.model.scoring import FREE_ENDS, Scoring, as_scoring, resolve_ends
from jaxalign.similarity.arrays import (
    Factors,
    Gap,
    ModeRules,
    divided,
    map_batch,
)

# One array, or a tuple of those that it is made of.
Similarity = jax.typing.ArrayLike | tuple[Any, ...]
KINDS = (
    "scores (..., m, n), (query codes, target codes, matrix), or (query, target) "
    "embeddings"
)


def real_numbers(what: str, x: Any) -> jax.Array:
    """An array of real numbers, or of truth values; refuse anything else."""
    try:
        x = jnp.asarray(x)
    except (TypeError, ValueError):
        kind = getattr(x, "dtype", type(x).__name__)
        raise UsageError(f"{what} of {kind}: real numbers are needed") from None
    if jnp.issubdtype(x.dtype, jnp.complexfloating):
        raise UsageError(f"{what} of {x.dtype}: real numbers are needed")
    return x


def floating(x: jax.Array):
    """float32 and float64 as they are, everything else as the default float."""
    if x.dtype in (jnp.float32, jnp.float64):
        return x
    return x.astype(jnp.float32 if jnp.issubdtype(x.dtype, jnp.floating) else float)


def as_similarity(
    similarity: Similarity, lengths: Any, scores: Callable[[jax.Array], jax.Array]
):
    """Check a similarity; ``scores`` is applied to an array of scores, or to
    embeddings that are floats of one dtype."""
    if isinstance(similarity, (str, bytes, Scoring)):
        raise UsageError(f"a similarity is {KINDS}, not {type(similarity).__name__}")
    if isinstance(similarity, (tuple, list)) and len(similarity) in (2, 3):
        texts = any(isinstance(x, (str, bytes)) for x in similarity[:2])
        if len(similarity) == 3:
            query, target, matrix = similarity
            return _looked_up(query, target, matrix, lengths)
        if texts:
            raise UsageError("two strings need a scoring: (query, target, Scoring())")
        a, b = (real_numbers("embeddings", x) for x in similarity)
        # Floats of one dtype as ``scores`` takes them, others as floats.
        alike = a.dtype == b.dtype and jnp.issubdtype(a.dtype, jnp.floating)
        a, b = map(scores if alike else floating, (a, b))
        if a.ndim < 2 or b.ndim < 2 or a.shape[-1] != b.shape[-1]:
            raise UsageError(
                f"embeddings of shapes {a.shape} and {b.shape}: (..., m, k) and "
                "(..., n, k) are needed"
            )
        return Factors(a, b)
    s = scores(real_numbers("a similarity", similarity))
    if s.ndim < 2:
        raise UsageError(f"a similarity of shape {s.shape}: {KINDS}")
    return s


def _looked_up(query: Any, target: Any, matrix: Any, lengths: Any):
    """S[a[i], b[j]]; nan for a code beyond the matrix, which only ``jit`` hides."""
    sides = [query, target]
    if isinstance(matrix, (Scoring, str)):
        scoring = as_scoring(matrix)
        for k, text in enumerate(sides):
            text = text.decode("latin-1") if isinstance(text, bytes) else text
            if not isinstance(text, str):
                continue
            sides[k] = codes = np.asarray(scoring.alphabet.encode(text))
            wrong = np.flatnonzero(codes >= scoring.alphabet.size)
            if wrong.size:
                where = f"letter {text[wrong[0]]!r} at {wrong[0] + 1}"
                raise UsageError(f"{where}: not in the alphabet")
        matrix = scoring.scores / scoring.scale
    if any(isinstance(x, (str, bytes)) for x in sides):
        raise UsageError("strings need a Scoring, or its name, in place of a matrix")
    matrix = floating(real_numbers("a matrix", matrix))
    if matrix.ndim != 2:
        raise UsageError(f"a matrix of shape {matrix.shape}: (A, A) is needed")
    for k, (codes, size) in enumerate(zip(sides, matrix.shape, strict=True)):
        # Codes within the lengths need a row, or column.
        pair = isinstance(lengths, (tuple, list))
        ends = None if lengths is None else lengths[k] if pair else lengths[..., k]
        if isinstance(codes, Tracer) or isinstance(ends, Tracer):
            continue
        codes = np.asarray(codes)
        inside = np.ones(codes.shape, bool)
        if ends is not None:
            inside = np.arange(codes.shape[-1]) < np.asarray(ends)[..., None]
            codes = np.broadcast_to(codes, inside.shape)
        wrong = codes[inside & ((codes < 0) | (codes >= size))]
        if wrong.size:
            side = ("query", "target")[k]
            raise UsageError(f"{side} code {wrong[0]}: the matrix has {size} of them")
    for k, size in enumerate(matrix.shape):
        codes = jnp.asarray(sides[k])
        if not jnp.issubdtype(codes.dtype, jnp.integer):
            raise UsageError(f"codes of {codes.dtype}: integers are needed")
        # ``size`` is beyond the matrix.
        sides[k] = jnp.where(codes < 0, size, codes.astype(jnp.int32))
    a, b = sides

    if a.ndim == b.ndim == 2 and divided(a, b):
        axes = {"matrix": None, "a": 0, "b": 0}
        arrays = {"matrix": matrix, "a": a, "b": b}
        return map_batch(lambda x: _entries(**x), arrays, axes)
    return _entries(matrix, a, b)


@jax.custom_jvp
def _entries(matrix: jax.Array, a: jax.Array, b: jax.Array) -> jax.Array:
    """``matrix[a[i], b[j]]`` (..., m, n), nan for a code beyond it.

    A derivative is a product with one-hot codes: the transpose of a gather adds to few
    numbers from many places, which takes a GPU hundreds of times as long.
    """
    at = matrix.at[a[..., :, None], b[..., None, :]]
    return at.get(mode="fill", fill_value=jnp.nan)


@_entries.defjvp
def _entries_jvp(primals: tuple[jax.Array, ...], tangents: tuple[jax.Array, ...]):
    matrix, a, b = primals
    change, precision = tangents[0], jax.lax.Precision.HIGHEST
    first, second = (
        jax.nn.one_hot(codes, size, dtype=change.dtype)
        for codes, size in zip((a, b), matrix.shape, strict=True)
    )
    change = jnp.einsum("...ia,ab->...ib", first, change, precision=precision)
    change = jnp.einsum("...ib,...jb->...ij", change, second, precision=precision)
    return _entries(matrix, a, b), change


# A gap cost: one, or a pair (of the query's residues, of the target's).
GapCost = jax.typing.ArrayLike | Sequence[Any]


def gap(
    name: str,
    cost: GapCost,
    fit: Callable[..., tuple[jax.Array, int | None]],
    batch: tuple[int, ...],
    m: int,
    n: int,
) -> Gap:
    """The two sides of a cost, each (array, axis) as ``fit`` gives it."""
    if isinstance(cost, str):
        raise UsageError(
            f"{name}={cost!r}: a number, or an array of numbers, is needed"
        )
    if isinstance(cost, (tuple, list)):
        if len(cost) != 2:
            raise UsageError(f"{name}: one cost, or a pair (query's, target's)")

        def one_side(cost: GapCost, side: str, length: int):
            cost = real_numbers(name, cost)
            shape = cost.shape
            if not shape:
                return fit(cost, rank=0)
            full = len(shape) >= 2 and shape[-2:] == (m, n)
            vector = shape[-1:] == (length,)
            residues = f"each of {length} residues of the {side}, as (..., {length})"
            if vector and shape == batch:
                each = f"one cost for each pair of the batch {batch}"
                raise _two_ways(name, shape, each, f"for {residues}")
            if full and vector and shape[:-1] == batch[-len(shape) + 1 :]:
                cells = f"for each cell {m, n}"
                raise _two_ways(name, shape, cells, f"for {residues}")
            if full:
                return fit(cost, rank=2)
            if not vector:
                raise UsageError(f"{name} of shape {shape}: (..., {length}) is needed")
            return fit(cost, rank=1)

        query, target = cost
        return Gap(one_side(query, "query", m), one_side(target, "target", n))
    cost = real_numbers(name, cost)
    shape = cost.shape
    full = len(shape) >= 2 and shape[-2:] == (m, n)
    each = f"one cost for each pair of the batch {batch}"
    if full and shape == batch:
        raise _two_ways(name, shape, each, f"for each cell {m, n}, as (..., {m}, {n})")
    if shape and not full and shape != batch:
        raise UsageError(
            f"{name} of shape {shape}: a number, {batch}, (..., {m}, {n}), or a "
            "pair (query's, target's)"
        )
    fitted = fit(cost, rank=2 if full else 0)
    return Gap(fitted, fitted)


def _two_ways(name: str, shape: tuple[int, ...], first: str, second: str) -> UsageError:
    return UsageError(
        f"{name} of shape {shape} can be read two ways: {first}, or {second}; give it "
        "all axes, those of the batch first, with 1 where it is the same"
    )


def check_costs(
    opening: GapCost, extending: GapCost, lengths: Any, batch: tuple[int, ...]
) -> None:
    """Refuse negative costs within the lengths and, of numbers, extending that costs
    more than opening, as far as they are known: inside ``jit`` they may not be. By
    place it may, and an infinite one forbids to extend."""
    # Costs of the query's residues and of the target's; None inside ``jit``.
    pairs = [
        cost if isinstance(cost, (tuple, list)) else (cost, cost)
        for cost in (opening, extending)
    ]
    sides = [
        [None if isinstance(x, Tracer) else np.asarray(x).astype(float) for x in pair]
        for pair in pairs
    ]
    for name, pair in zip(("gap_open", "gap_extend"), sides, strict=True):
        for side, cost in enumerate(pair):
            if cost is None:
                continue
            # The lowest entry within the lengths, where these are not hidden.
            inside = np.bool_(True)
            by_place = lengths is not None and cost.shape not in ((), batch)
            if by_place and (cost < 0).any():
                pair = isinstance(lengths, (tuple, list))
                ends = lengths if pair else (lengths[..., 0], lengths[..., 1])
                if any(isinstance(x, Tracer) for x in ends):
                    continue
                m, n = (np.asarray(x)[..., None] for x in ends)
                rank = cost.ndim - len(batch) if cost.ndim > len(batch) else cost.ndim
                if rank == 1:
                    inside = np.arange(cost.shape[-1]) < (m, n)[side]
                else:
                    i, j = (np.arange(k) for k in cost.shape[-2:])
                    inside = (i < m)[..., :, None] & (j < n)[..., None, :]
            low = np.where(inside, cost, np.inf).min(initial=np.inf)
            if low < 0:
                raise UsageError(f"{name} = {low:g}: a cost is a number, 0 or more")
    for first, second in zip(*sides, strict=True):
        if first is None or second is None:
            continue
        if {first.shape, second.shape} <= {(), batch}:
            first, second = np.broadcast_arrays(first, second)
            wrong = (second > first) & np.isfinite(second)
            if wrong.any():
                raise UsageError(
                    f"gap_extend = {second[wrong][0]:g} exceeds gap_open = "
                    f"{first[wrong][0]:g}: extending may not cost more than opening"
                )


# A half width, or (first columns, last columns) of the query's residues.
Band = int | tuple[Any, Any] | None
LANES = 16  # widths of bands by rows are rounded up to it, for few programs


def is_corridor(band: Any) -> bool:
    """Whether a band is one by rows: a pair (first columns, last columns)."""
    return isinstance(band, (tuple, list)) and len(band) == 2


def checked_band(
    band: object, shape: tuple[int, ...], cost_ranks: Iterable[int]
) -> int | None:
    """The half width of a band in a table of ``shape`` (..., m, n), of a band by rows
    one less than its lanes; or None where it forbids nothing."""
    if band is None:
        return None
    if max(cost_ranks) == 2:
        raise UsageError("a band takes gap costs by number or residue, not by cell")
    if isinstance(band, (tuple, list)) and is_corridor(band):
        if any(isinstance(x, Tracer) for x in band):
            raise UsageError(
                "a band by rows is of NumPy, also inside jit: it has a width"
            )
        first, last = (np.asarray(x) for x in band)
        rows = shape[-2]
        for x in (first, last):
            if x.dtype.kind not in "iu" or x.shape[-1:] != (rows,):
                kind = f"not {x.dtype} {x.shape}"
                raise UsageError(f"a band by rows has integers (..., {rows}), {kind}")
            if (np.diff(x) < 0).any() or x.min(initial=0) < 0:
                raise UsageError(
                    "a band by rows does not fall, and begins at 0 or later"
                )
        first, last = (x.reshape(-1, rows) for x in np.broadcast_arrays(first, last))
        i, c, widest = np.arange(rows), np.arange(sum(shape[-2:])), 1
        # How many residues of the query a diagonal has at most.
        for starts, stops in zip(i + first, i + last, strict=True):
            before = np.searchsorted(stops, c)
            lanes = np.searchsorted(starts, c, "right") - before
            widest = max(widest, int(lanes.max(initial=0)))
        return -(-widest // LANES) * LANES - 1
    try:
        width = index(band)  # pyright: ignore[reportArgumentType]
    except TypeError:
        raise UsageError(f"band={band!r}: a whole number is needed") from None
    if width < 1:
        raise UsageError(
            f"band={width}: at least 1, since cells on the diagonal alone are no path "
            "where lengths differ"
        )
    longest = max(shape[-2:])
    if width >= longest:
        return None
    if 2 * sum(shape[-2:]) * longest >= 2**31:
        raise UsageError(f"a band in a table of {shape[-2:]}: 23,170 is the limit")
    return width


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
    rows: Any = ()
    if band is not None and is_corridor(band):
        rows = [_fitted(x, batch=batch, dtype=jnp.int32, rank=1) for x in band]
    table = partial(_fitted, batch=batch, dtype=s.dtype, rank=2)
    scored: Any = Factors._make(map(table, s)) if isinstance(s, Factors) else table(s)
    # Run-time values, so that one compiled program serves every set of free ends.
    flags = *(end in free for end in FREE_ENDS), mode == "local", bool(adjacent)
    words: Any = ((np.bool_(flag), None) for flag in flags)
    words = *_lengths(lengths, batch, m, n), *words, *rows
    rules = ModeRules(*words)
    check_costs(gap_open, gap_extend, lengths, batch)
    # Of the pairs (array, axis) the arrays, and the axes.
    opening, extending = costs
    pairs = ScoredPair(scored, opening, extending, rules)
    pair, axes = (
        jax.tree.map(itemgetter(k), pairs, is_leaf=lambda x: type(x) is tuple)
        for k in (0, 1)
    )
    return Arguments(pair, axes, batch, fit)


def cost_shapes(pair: ScoredPair, axes: ScoredPair):
    """Shapes of gap costs, without batch axes."""
    costs = (*pair.gap_open, *pair.gap_extend), (*axes.gap_open, *axes.gap_extend)
    for x, axis in zip(*costs, strict=True):
        yield x.shape if axis is None else x.shape[1:]


def _fitted(x: jax.typing.ArrayLike, *, batch: tuple[int, ...], dtype: Any, rank: int):
    """(array with all batch axes flattened, 0), or (the same for all pairs, None)."""
    x = jnp.asarray(x).astype(dtype)
    if x.ndim == rank:
        return x, None
    pair_shape = x.shape[max(x.ndim - rank, 0) :]
    leading = x.shape[: max(x.ndim - rank, 0)]
    pairs = zip(leading[::-1], batch[::-1], strict=False)
    fits = len(leading) <= len(batch) and all(size in (1, y) for size, y in pairs)
    if x.ndim < rank or not fits:
        raise UsageError(f"an array of shape {x.shape} beside a batch of shape {batch}")
    x = jnp.broadcast_to(x, batch + pair_shape)
    return x.reshape(prod(batch), *x.shape[len(batch) :]), 0


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
