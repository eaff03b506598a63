"""The similarity that a caller gives -> an array of scores, or ``Factors``."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from jaxalign.errors import UsageError
from jaxalign.model.scoring import Scoring, as_scoring
from jaxalign.similarity import mesh_batch
from jaxalign.similarity.arrays import Factors

# One array, or a tuple of those that it is made of.
Similarity = jax.typing.ArrayLike | tuple[Any, ...]
KINDS = (
    "scores (..., m, n), (query codes, target codes, matrix), or (query, target) "
    "embeddings"
)


def real_numbers(what: str, x: Any) -> jax.Array:
    """An array of real numbers, or of truth values.

    Raises
    ------
    UsageError
        It is something else.
    """
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


def _vectors(a: jax.Array, b: jax.Array, scores: Callable[[jax.Array], jax.Array]):
    """Embeddings: floats of one dtype as ``scores`` takes them, others as floats."""
    alike = a.dtype == b.dtype and jnp.issubdtype(a.dtype, jnp.floating)
    return map(scores if alike else floating, (a, b))


def as_similarity(
    similarity: Similarity, lengths: Any, scores: Callable[[jax.Array], jax.Array]
):
    """Check a similarity; ``scores`` is applied to an array of scores, or to
    embeddings that are floats of one dtype.

    Raises
    ------
    UsageError
        It is of no known kind, or a code is outside of the matrix.
    """
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
        a, b = _vectors(a, b, scores)
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
    if isinstance(matrix, (Scoring, str)):
        scoring = as_scoring(matrix)
        query, target = (_encoded(x, scoring) for x in (query, target))
        matrix = scoring.scores / scoring.scale
    if any(isinstance(x, (str, bytes)) for x in (query, target)):
        raise UsageError("strings need a Scoring, or its name, in place of a matrix")
    matrix = floating(real_numbers("a matrix", matrix))
    if matrix.ndim != 2:
        raise UsageError(f"a matrix of shape {matrix.shape}: (A, A) is needed")
    sides = zip((query, target), ("query", "target"), matrix.shape, strict=True)
    for k, (codes, side, size) in enumerate(sides):
        _check_codes(codes, side, size, lengths, k)
    a, b = (
        _marked(jnp.asarray(x), size)
        for x, size in zip((query, target), matrix.shape, strict=True)
    )
    if a.ndim == b.ndim == 2 and mesh_batch.divided(a, b):
        axes = {"matrix": None, "a": 0, "b": 0}
        arrays = {"matrix": matrix, "a": a, "b": b}
        return mesh_batch.over_batch(lambda x: _gathered(**x), arrays, axes)
    return _gathered(matrix, a, b)


def _gathered(matrix: jax.Array, a: jax.Array, b: jax.Array):
    at = matrix.at[a[..., :, None], b[..., None, :]]
    return at.get(mode="fill", fill_value=jnp.nan)


def _marked(codes: jax.Array, size: int):
    """Codes in int32; ``size``, which is beyond the matrix, for negative ones."""
    if not jnp.issubdtype(codes.dtype, jnp.integer):
        raise UsageError(f"codes of {codes.dtype}: integers are needed")
    return jnp.where(codes < 0, size, codes.astype(jnp.int32))


def _encoded(sequence: Any, scoring: Scoring):
    if isinstance(sequence, bytes):
        sequence = sequence.decode("latin-1")
    if not isinstance(sequence, str):
        return sequence
    codes = np.asarray(scoring.alphabet.encode(sequence))
    wrong = np.flatnonzero(codes >= scoring.alphabet.size)
    if wrong.size:
        letter = sequence[wrong[0]]
        raise UsageError(f"letter {letter!r} at {wrong[0] + 1}: not in the alphabet")
    return codes


def _check_codes(codes: Any, side: str, size: int, lengths: Any, k: int) -> None:
    """Refuse codes within the lengths that have no row (or column)."""
    if isinstance(codes, Tracer):
        return
    codes = np.asarray(codes)
    inside = np.ones(codes.shape, bool)
    if lengths is not None:
        ends = lengths[k] if isinstance(lengths, (tuple, list)) else lengths[..., k]
        if isinstance(ends, Tracer):
            return
        ends = np.asarray(ends)[..., None]
        inside = np.arange(codes.shape[-1]) < ends
        codes = np.broadcast_to(codes, inside.shape)
    wrong = codes[inside & ((codes < 0) | (codes >= size))]
    if wrong.size:
        raise UsageError(f"{side} code {wrong[0]}: the matrix has {size} of them")
