# pyright: strict, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
"""The public function that aligns similarities from anywhere: a network's, say."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Required, Unpack

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from jaxalign.model.choices import EndKeywords, FreeEnd, Mode
from jaxalign.model.scoring import resolve_ends
from jaxalign.pairs import scored_pairs
from jaxalign.pairs.hard_result import HardAlignments
from jaxalign.pairs.scored_pairs import ScoredForm
from jaxalign.runtime.devices import refuse_without_threads
from jaxalign.signatures import with_options
from jaxalign.similarity import arguments
from jaxalign.similarity.arguments import (
    GapCost,
    Lengths,
    ScoredPair,
    Similarity,
)

INT_LIMIT = 2**30  # of a sum of scores and costs in int32


@dataclass(frozen=True, kw_only=True, eq=False)
class HardOptions:
    """Every option, with its default; gap costs have none."""

    gap_open: GapCost
    gap_extend: GapCost
    mode: Mode = "global"
    free_ends: Iterable[FreeEnd] | None = None
    adjacent_gaps: bool = True


class HardKeywords(EndKeywords, total=False):
    """Options of ``hard_alignment``."""

    gap_open: Required[GapCost]
    gap_extend: Required[GapCost]
    adjacent_gaps: bool


@with_options(HardOptions)
def hard_alignment(
    similarity: Similarity, lengths: Lengths = None, **options: Unpack[HardKeywords]
) -> HardAlignments:
    """The best alignment of any similarity: the limit of ``soft_score`` as T -> 0.

    A JAX function of arrays, for use inside ``jit`` and ``vmap`` too. All parameters
    are those of ``soft_score`` (``jaxalign.soft.api``), so that what was trained with
    it is decoded with this.

    Parameters
    ----------
    similarity : (..., m, n) array, or (query codes, target codes, matrix), or (query,
        target) embeddings (..., m, k), (..., n, k), whose dot products are meant
        Any leading batch axes. float32, float64, or narrower floats and integers.
        Entries at or below -1e29 (and -inf) forbid the pair.
    lengths : (query lengths, target lengths), each of the batch shape; or (..., 2)
        What lies beyond them never counts.
    gap_open, gap_extend : number, an array of the batch shape, (..., m, n), or a pair
        A pair gives (costs of the query's residues, costs of the target's): a number, a
        vector (..., m) or (..., n) over the sequence, or (..., m, n). Not negative.
    mode, free_ends : as in ``align``
    adjacent_gaps : False forbids an insertion next to a deletion (biotite's rule)

    Returns
    -------
    HardAlignments
        A pytree: ``score`` (...), ``partners`` int32 (..., m), for each residue of the
        query that of the target it is paired with, or -1, and ``spans`` int32 (..., 4).
        ``score`` is int32 where similarity and costs are known integers of which no sum
        reaches 2^30, else a float. It is nan for what means nothing (nan or inf within
        the lengths), -inf where no alignment is legal; partners are -1 then.

    Raises
    ------
    UsageError
        Shapes or the mode break a rule.

    Notes
    -----
    Of equal alignments the one that ``align`` would return: the end cell with the
    smallest query index, then the smallest target index; from there back the diagonal,
    then up, then left; in local mode stop first; inside a gap extend first. With costs
    of shape (..., m, n) and with ``adjacent_gaps=False`` an alignment ends with a pair,
    which is its end cell, and between two pairs the query's residues come first.

    Examples
    --------
    >>> import jax.numpy as jnp, jaxalign
    >>> s = jnp.array([[5.0, 0, 0, 0], [0, 0, 0, 5.0]])
    >>> best = jaxalign.hard_alignment(s, gap_open=2, gap_extend=0.5)
    >>> float(best.score), best.partners.tolist()
    (7.5, [0, 3])
    >>> best.alignment("MK", "MAAK").rows()
    ('M--K', 'MAAK')
    """
    given = HardOptions(**options)
    refuse_without_threads()
    ends = given.mode, given.free_ends, given.adjacent_gaps
    costs = given.gap_open, given.gap_extend
    similarity = _narrowed(similarity)
    read = arguments.read(similarity, lengths, *costs, *ends, scores=_as_they_are)
    pair, axes, batch, _ = read
    by_cell = any(len(shape) == 2 for shape in arguments.cost_shapes(pair, axes))
    ordered = by_cell or not given.adjacent_gaps
    integers = not ordered and _fits_integers(pair.similarity, costs)
    dtype = "int32" if integers else _float_of(pair)
    form = ScoredForm(given.mode == "local", ordered, dtype)
    values = scored_pairs.alignments(pair, axes, batch, form)
    score, partners, spans, sizes = values
    free = resolve_ends(given.mode, given.free_ends)
    return HardAlignments(score, partners, spans, sizes, ordered, given.mode, free)


def _as_they_are(x: jax.Array) -> jax.Array:
    """Integers as they are, narrow floats as float32."""
    return x if jnp.issubdtype(x.dtype, jnp.integer) else arguments.floating(x)


def _float_of(pair: ScoredPair) -> str:
    dtype = pair.similarity.dtype
    if jnp.issubdtype(dtype, jnp.floating):
        return str(dtype)
    return str(arguments.floating(jnp.zeros((), dtype)).dtype)


def _narrowed(similarity: Any) -> Any:
    """A look-up in a matrix of small integers that are known: in 16 bits."""
    if not isinstance(similarity, (tuple, list)) or len(similarity) != 3:
        return similarity
    query, target, matrix = similarity
    largest = _largest(matrix)
    if largest is None or largest >= 2**15:
        return similarity
    return query, target, np.asarray(matrix).astype(np.int16)


def _fits_integers(similarity: Any, costs: Any) -> bool:
    """Whether sums of scores and costs are integers that int32 is proved to hold."""
    leaves = jax.tree.leaves((similarity, costs))
    largest = [_largest(x) for x in leaves]
    known = [x for x in largest if x is not None]
    steps = sum(similarity.shape[-2:]) + 1
    return len(known) == len(largest) and steps * max(known) < INT_LIMIT


def _largest(x: Any) -> int | None:
    """The largest magnitude of integers; None where it is not known."""
    kind = jax.typeof(x).dtype
    if not jnp.issubdtype(kind, jnp.integer):
        return None
    if kind in (jnp.int8, jnp.int16, jnp.uint8):
        return int(jnp.iinfo(kind).max) + 1
    if isinstance(x, Tracer):
        return None
    values = np.asarray(x)
    return max(int(values.max(initial=0)), -int(values.min(initial=0)))
