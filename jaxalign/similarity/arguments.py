"""Arguments -> arrays of one pair, and which of their axes is the batch.

A gap cost is a number, an array of the batch shape, (..., m, n), or a pair (of
the query's residues, of the target's) of numbers, vectors (..., m) and (..., n), or
(..., m, n).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from functools import partial
from math import prod
from operator import index
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from jaxalign.errors import UsageError
from jaxalign.model.scoring import FREE_ENDS, Scoring, as_scoring, resolve_ends

# Of the kind of the arrays that come in: NumPy's or JAX's.
Array: TypeAlias = Any
# Finite, so that a difference of two is 0 and never NaN; -inf is read as this.
FORBIDDEN = -1e30
# Costs are cut here: exp(-COSTLY) is 0 already, and FORBIDDEN minus it stays finite.
COSTLY = 1e29


class ModeRules(NamedTuple):
    """Run-time mode: scalars, so that one program serves every mode.

    ``m``, ``n`` int32 lengths; the others bool. ``first``, ``last`` int32 (M,), neither
    of which falls, are a band by rows: residue i of the query may meet those of the
    target from ``first[i]`` to ``last[i]``.
    """

    m: Any
    n: Any
    query_start: Any
    query_end: Any
    target_start: Any
    target_end: Any
    local: Any
    adjacent: Any
    first: Any = None
    last: Any = None


class Gap(NamedTuple):
    """Costs of residues that stand against a gap.

    ``e`` of the query's residues: scalar, (M,) or (M, N); ``f`` of the target's:
    scalar, (N,) or (M, N). Entry (i, j) of a full one belongs to the cell (i + 1,
    j + 1); row 0 and column 0 of the table use the nearest entry.
    """

    e: Any  # in gradients None where it is not asked for
    f: Any


class Factors(NamedTuple):
    """Similarity as dot products: ``query`` (M, K) with ``target`` (N, K)."""

    query: Any
    target: Any

    @property
    def shape(self) -> tuple[int, ...]:
        """That of the product, leading axes included."""
        leading = self.query.shape[:-2], self.target.shape[:-2]
        batch = numpy_of(self.query).broadcast_shapes(*leading)
        return (*batch, self.query.shape[-2], self.target.shape[-2])

    @property
    def dtype(self):
        return numpy_of(self.query).promote_types(self.query.dtype, self.target.dtype)


# One array, or a tuple of those that it is made of.
Similarity = ArrayLike | tuple[Any, ...]
KINDS = (
    "scores (..., m, n), (query codes, target codes, matrix), or (query, target) "
    "embeddings"
)
TRUE = ("1", "true", "t", "yes", "y", "on")  # as JAX reads its settings


def is_of_jax(x: Any) -> bool:
    """Whether an argument is an array of JAX, or holds one; imports nothing."""
    jax: Any = sys.modules.get("jax")
    if isinstance(x, (tuple, list)):
        return any(map(is_of_jax, x))
    return hasattr(jax, "Array") and isinstance(x, jax.Array)


def is_traced(x: Any) -> bool:
    """Whether a value is known only when a program runs."""
    jax: Any = sys.modules.get("jax")
    return hasattr(jax, "core") and isinstance(x, jax.core.Tracer)


def outline_of(similarity: Any) -> tuple[tuple[int, ...], bool]:
    """The shape (..., m, n) of a similarity that is not JAX's, and whether its numbers
    are float64; an empty one where it has none, which a reader refuses."""
    try:
        if isinstance(similarity, (tuple, list)) and len(similarity) in (2, 3):
            sides, depth = similarity[:2], len(similarity) - 1
            if depth == 1:
                sides = [np.shape(x)[:-1] for x in sides]
            else:
                is_text = [isinstance(x, (str, bytes)) for x in sides]
                pairs = zip(sides, is_text, strict=True)
                sides = [(len(x),) if text else np.shape(x) for x, text in pairs]
            batch = np.broadcast_shapes(*(shape[:-1] for shape in sides))
            numbers = similarity[:2] if depth == 1 else similarity[2:]
            shape = (*batch, *(shape[-1] for shape in sides))
        else:
            shape, numbers = np.shape(similarity), (similarity,)
        numbers = [x for x in numbers if not isinstance(x, (str, bytes, Scoring))]
        return shape, any(np.asarray(x).dtype == np.float64 for x in numbers)
    except (ValueError, TypeError, IndexError):
        return (), False


def compiled(inputs: Any, similarities: Iterable[Any], run: Callable[[], Any]) -> Any:
    """Run what computes by JAX: results are NumPy arrays, of 64 bits where one of the
    ``similarities`` is, unless an array of the ``inputs`` is JAX's."""
    if is_of_jax(inputs):
        return run()
    import jax

    wide = any(outline_of(x)[1] for x in similarities)
    precision = jax.enable_x64(True) if wide else nullcontext()
    with jax.ensure_compile_time_eval(), precision:  # also where a caller is traced
        return jax.tree.map(np.array, run())


def numpy_of(x: Any) -> Any:
    """NumPy, or its namesake of JAX: the functions for an array."""
    if isinstance(x, (np.ndarray, np.generic)):
        return np
    import jax.numpy

    return jax.numpy


def default_float() -> Any:
    """float32, or what JAX has been told: the dtype of numbers that are no floats."""
    jax: Any = sys.modules.get("jax")
    if hasattr(jax, "config"):
        return np.float64 if jax.config.jax_enable_x64 else np.float32
    wide = os.environ.get("JAX_ENABLE_X64", "").lower() in TRUE
    return np.float64 if wide else np.float32


def _is_integer(dtype: Any) -> bool:
    return np.dtype(dtype).kind in "iu"


def real_numbers(what: str, x: Any, xp: Any) -> Any:
    """An array of real numbers, or of truth values; refuse anything else. ``xp`` is
    NumPy, or ``jax.numpy``."""
    try:
        kind = getattr(x, "dtype", type(x).__name__)
        x = xp.asarray(x)
        # By name, since to NumPy a bfloat16 is void.
        real = any(word in x.dtype.name for word in ("bool", "int", "float"))
    except (TypeError, ValueError):
        real = False
    if not real:
        raise UsageError(f"{what} of {kind}: real numbers are needed")
    return x


def floating(x: Any) -> Any:
    """float32 and float64 as they are, everything else as the default float."""
    if x.dtype in (np.float32, np.float64):
        return x
    return x.astype(default_float() if x.dtype.kind in "biu" else np.float32)


def as_similarity(
    similarity: Similarity,
    lengths: Any,
    scores: Callable[[Any], Any],
    xp: Any,
    look_up: Callable[..., Any],
):
    """Check a similarity; ``scores`` is applied to an array of scores, or to
    embeddings that are floats of one dtype."""
    if isinstance(similarity, (str, bytes, Scoring)):
        raise UsageError(f"a similarity is {KINDS}, not {type(similarity).__name__}")
    if isinstance(similarity, (tuple, list)) and len(similarity) in (2, 3):
        texts = any(isinstance(x, (str, bytes)) for x in similarity[:2])
        if len(similarity) == 3:
            query, target, matrix = similarity
            sides = _codes_of(query, target, matrix, lengths, xp)
            return look_up(*sides)
        if texts:
            raise UsageError("two strings need a scoring: (query, target, Scoring())")
        a, b = (real_numbers("embeddings", x, xp) for x in similarity)
        # Floats of one dtype as ``scores`` takes them, others as floats.
        alike = a.dtype == b.dtype and a.dtype.kind not in "biu"
        a, b = map(scores if alike else floating, (a, b))
        if a.ndim < 2 or b.ndim < 2 or a.shape[-1] != b.shape[-1]:
            raise UsageError(
                f"embeddings of shapes {a.shape} and {b.shape}: (..., m, k) and "
                "(..., n, k) are needed"
            )
        return Factors(a, b)
    s = scores(real_numbers("a similarity", similarity, xp))
    if s.ndim < 2:
        raise UsageError(f"a similarity of shape {s.shape}: {KINDS}")
    return s


def _codes_of(query: Any, target: Any, matrix: Any, lengths: Any, xp: Any):
    """The matrix and codes for a look-up; ``jit`` alone hides those beyond it."""
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
                raise UsageError(f"{where}: {scoring.alphabet.rule()}")
        matrix = (scoring.scores / scoring.scale).astype(default_float())
    if any(isinstance(x, (str, bytes)) for x in sides):
        raise UsageError("strings need a Scoring, or its name, instead of a matrix")
    matrix = floating(real_numbers("a matrix", matrix, xp))
    if matrix.ndim != 2:
        raise UsageError(f"a matrix of shape {matrix.shape}: (A, A) is needed")
    for k, (codes, size) in enumerate(zip(sides, matrix.shape, strict=True)):
        # Codes within the lengths need a row, or column.
        pair = isinstance(lengths, (tuple, list))
        ends = None if lengths is None else lengths[k] if pair else lengths[..., k]
        if is_traced(codes) or is_traced(ends):
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
        codes = xp.asarray(sides[k])
        if not _is_integer(codes.dtype):
            raise UsageError(f"codes of {codes.dtype}: integers are needed")
        # ``size`` is beyond the matrix.
        sides[k] = xp.where(codes < 0, size, codes.astype(np.int32))
    return matrix, *sides


def looked_up(matrix: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """``similarity.arrays.looked_up`` of NumPy arrays."""
    a, b = (x.clip(max=size) for x, size in zip((a, b), matrix.shape, strict=True))
    padded = np.pad(matrix, ((0, 1), (0, 1)), constant_values=np.nan)
    return padded[a[..., :, None], b[..., None, :]]


# A gap cost: one, or a pair (of the query's residues, of the target's).
GapCost = ArrayLike | Sequence[Any]


def gap(
    name: str,
    cost: Any,
    fit: Callable[..., tuple[Any, int | None]],
    batch: tuple[int, ...],
    shape: tuple[int, ...],
    xp: Any,
) -> Gap:
    """The two sides of a cost, each (array, axis) as ``fit`` gives it."""
    m, n = shape
    if isinstance(cost, str):
        raise UsageError(
            f"{name}={cost!r}: a number, or an array of numbers, is needed"
        )
    if isinstance(cost, (tuple, list)):
        if len(cost) != 2:
            raise UsageError(f"{name}: one cost, or a pair (query's, target's)")

        def one_side(cost: Any, side: str, length: int):
            cost = real_numbers(name, cost, xp)
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
    cost = real_numbers(name, cost, xp)
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
        [None if is_traced(x) else np.asarray(x).astype(float) for x in pair]
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
                if any(is_traced(x) for x in ends):
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
                raise UsageError(f"{name} = {low:g}: a cost must be 0 or more")
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


# Scores over the temperature are cut at 1e29, and the soft score is a float32.
MIN_TEMPERATURE, MAX_TEMPERATURE = 1e-20, 1e20


def check_temperature(temperature: Any, xp: Any) -> None:
    """Refuse what is no temperature, as far as it is known."""
    real_numbers("the temperature", temperature, xp)
    if is_traced(temperature):
        return
    values = np.asarray(temperature, np.float64)
    if not np.all((values >= MIN_TEMPERATURE) & (values <= MAX_TEMPERATURE)):
        raise UsageError(
            f"the temperature must be above 0, from {MIN_TEMPERATURE:g} to "
            f"{MAX_TEMPERATURE:g}; `align` is the limit at 0"
        )


# A half width, or (first columns, last columns) of the query's residues.
Band = int | tuple[Any, Any] | None
LANES = 16  # widths of bands by rows are rounded up to it, for few programs


def is_corridor(band: Any) -> bool:
    """Whether a band is one by rows: a pair (first columns, last columns)."""
    return isinstance(band, (tuple, list)) and len(band) == 2


def checked_band(
    band: Any, shape: tuple[int, ...], cost_ranks: Iterable[int]
) -> int | None:
    """The half width of a band in a table of ``shape`` (..., m, n), of a band by rows
    one less than its lanes; or None where it forbids nothing."""
    if band is None:
        return None
    if max(cost_ranks) == 2:
        raise UsageError(
            "a band excludes gap costs by cell: give numbers, or costs by residue"
        )
    if isinstance(band, (tuple, list)) and is_corridor(band):
        if any(map(is_traced, band)):
            raise UsageError(
                "a band by rows must be NumPy arrays, also inside jit, which needs its "
                "width"
            )
        first, last = (np.asarray(x) for x in band)
        rows = shape[-2]
        for x in (first, last):
            if x.dtype.kind not in "iu" or x.shape[-1:] != (rows,):
                kind = f"not {x.dtype} {x.shape}"
                raise UsageError(f"a band by rows has integers (..., {rows}), {kind}")
            if (np.diff(x) < 0).any() or x.min(initial=0) < 0:
                raise UsageError(
                    "a band by rows needs columns of 0 or more that never decrease"
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
            f"band={width}: must be at least 1, since the diagonal alone is no path "
            "where lengths differ"
        )
    longest = max(shape[-2:])
    if width >= longest:
        return None
    if 2 * sum(shape[-2:]) * longest >= 2**31:
        raise UsageError(
            f"a table of {shape[-2:]} is too long for a band, which takes up to "
            "23,170 residues on each side: leave out band"
        )
    return width


Lengths = ArrayLike | Sequence[Any] | None


class ScoredPair(NamedTuple):
    """The numbers that score the alignments of one pair, or of a batch of them."""

    similarity: Any  # or ``Factors``
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
    scores: Callable[[Any], Any] | None = None,
    band: Any = None,
    xp: Any = np,
    look_up: Callable[..., Any] = looked_up,
) -> Arguments:
    """Check the arguments and lay them out.

    Of ``band`` only the form by rows is read here, a pair of arrays.
    ``scores`` is applied to an array of scores, and to embeddings; by default it makes
    narrow floats and integers floats of the default kind. ``xp`` is NumPy, or
    ``jax.numpy``, whose arrays they become, and ``look_up`` finds the scores of codes.
    """
    free = resolve_ends(mode, free_ends)
    s = as_similarity(similarity, lengths, scores or floating, xp, look_up)
    *leading, m, n = s.shape
    batch = tuple(leading)
    dtype = floating(np.zeros((), s.dtype)).dtype
    fit = partial(_fitted, batch=batch, dtype=dtype, xp=xp)
    costs = [
        gap(name, cost, fit, batch, (m, n), xp)
        for name, cost in (("gap_open", gap_open), ("gap_extend", gap_extend))
    ]
    rows: Any = ()
    if band is not None and is_corridor(band):
        rows = [fit(x, dtype=np.int32, rank=1) for x in band]
    table = partial(fit, dtype=s.dtype, rank=2)
    scored: Any = Factors._make(map(table, s)) if isinstance(s, Factors) else table(s)
    # Run-time values, so that one compiled program serves every set of free ends.
    flags = *(end in free for end in FREE_ENDS), mode == "local", bool(adjacent)
    words: Any = ((np.bool_(flag), None) for flag in flags)
    words = *_lengths(lengths, fit, batch, (m, n), xp), *words, *rows
    check_costs(gap_open, gap_extend, lengths, batch)

    def part(k: int) -> ScoredPair:
        """Of the pairs (array, axis) the arrays, or the axes."""
        of_scores = scored[k] if type(scored) is tuple else _each(Factors, scored, k)
        opening, extending = (_each(Gap, cost, k) for cost in costs)
        return ScoredPair(of_scores, opening, extending, _each(ModeRules, words, k))

    return Arguments(part(0), part(1), batch, fit)


def _each(kind: Any, pairs: Iterable[Any], k: int) -> Any:
    return kind(*(pair[k] for pair in pairs))


def cost_shapes(pair: ScoredPair, axes: ScoredPair):
    """Shapes of gap costs, without batch axes."""
    costs = (*pair.gap_open, *pair.gap_extend), (*axes.gap_open, *axes.gap_extend)
    for x, axis in zip(*costs, strict=True):
        yield x.shape if axis is None else x.shape[1:]


def _fitted(
    x: Any, *, batch: tuple[int, ...], dtype: Any, rank: int, xp: Any
) -> tuple[Any, int | None]:
    """(array with all batch axes flattened, 0), or (the same for all pairs, None)."""
    x = xp.asarray(x).astype(dtype)
    if x.ndim == rank:
        return x, None
    pair_shape = x.shape[max(x.ndim - rank, 0) :]
    leading = x.shape[: max(x.ndim - rank, 0)]
    pairs = zip(leading[::-1], batch[::-1], strict=False)
    fits = len(leading) <= len(batch) and all(size in (1, y) for size, y in pairs)
    if x.ndim < rank or not fits:
        raise UsageError(
            f"an array of shape {x.shape} does not fit a batch of shape {batch}"
        )
    x = xp.broadcast_to(x, batch + pair_shape)
    return x.reshape(prod(batch), *x.shape[len(batch) :]), 0


def _lengths(
    lengths: Any, fit: Any, batch: tuple[int, ...], shape: tuple[int, ...], xp: Any
):
    if lengths is None:
        return [(xp.asarray(size, np.int32), None) for size in shape]
    rows = isinstance(lengths, list) and [isinstance(x, (list, tuple)) for x in lengths]
    if rows == [True, True] and batch == (2,):
        raise UsageError(
            f"lengths {lengths} can be read in two ways: give a tuple for (query "
            "lengths, target lengths), or an array with a row for each pair"
        )
    if not isinstance(lengths, (tuple, list)):
        lengths = xp.asarray(lengths)
        if lengths.shape[-1:] != (2,):
            raise UsageError(f"lengths of shape {lengths.shape}: (..., 2) is needed")
        lengths = lengths[..., 0], lengths[..., 1]
    if len(lengths) != 2:
        raise UsageError(
            f"{len(lengths)} arrays of lengths: a pair (query's, target's) is needed"
        )
    for length, size in zip(lengths, shape, strict=True):
        if is_traced(length):
            continue
        length = np.asarray(length)
        if length.size and (length.max() > size or length.min() < 0):
            raise UsageError(
                f"lengths {length.min()} to {length.max()}: must be from 0 to {size}"
            )
    return [fit(x, dtype=np.int32, rank=0) for x in lengths]
