"""The public functions that find the best alignments of a similarity, from a network,
say.
"""

from __future__ import annotations

from typing import Any, Literal, Unpack, get_args

import numpy as np
from numpy.typing import ArrayLike

from jaxalign.errors import UsageError
from jaxalign.model.numbers import check_whole
from jaxalign.model.scoring import ScoringLike, as_scoring, resolve_ends
from jaxalign.runtime import backend
from jaxalign.runtime.devices import refuse_without_threads
from jaxalign.signatures import with_options
from jaxalign.similarity import arguments, small
from jaxalign.similarity.arguments import (
    Array,
    Lengths,
    Similarity,
    checked_band,
    is_of_jax,
)
from jaxalign.similarity.options import HardKeywords, HitKeywords, SimilarityOptions
from jaxalign.similarity.result import HardAlignments

MAX_K = 64  # walks, one after the other


@with_options(SimilarityOptions, named=True)
def hard_alignment(
    similarity: Similarity, lengths: Lengths = None, **options: Unpack[HardKeywords]
) -> HardAlignments:
    """Find the best alignment of any similarity: the limit of ``soft_score`` as T -> 0.

    A JAX function of arrays, for use inside ``jit`` and ``vmap`` too. It takes what
    ``soft_score`` takes, so that what was trained with it is decoded with this.

    Returns
    -------
    HardAlignments
        A pytree: ``score`` (...), ``partners`` int32 (..., m), for each residue of the
        query that of the target it is paired with, or -1, and ``spans`` int32 (..., 4).
        ``score`` is a float, exact for integers as long as sums stay below 2^24 (2^53
        in float64). It is nan for what means nothing (nan or inf within the lengths),
        -inf where no alignment is legal; partners are -1 then.

    Raises
    ------
    UsageError
        Shapes or the mode break a rule.

    Notes
    -----
    Of equal alignments the one that ``align`` would return: the end cell with the
    smallest query index, then the smallest target index; from there back the diagonal,
    then up, then left; in local mode stop first; inside a gap extend first. With costs
    of shape (..., m, n), with ``adjacent_gaps=False`` and with a band an alignment ends
    with a pair, which is its end cell, and between two pairs the query's residues come
    first.

    On a Hopper GPU or newer, kernels in float32 compute what has gap costs that are
    numbers (of the batch shape, too), adjacent gaps and no band. XLA's scan does the
    rest.

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
    settings = SimilarityOptions(**options)
    return _computed("alignments", similarity, lengths, settings)


@with_options(SimilarityOptions, named=True)
def local_hits(
    k: int,
    similarity: Similarity,
    lengths: Lengths = None,
    **options: Unpack[HitKeywords],
) -> HardAlignments:
    """Find the best local alignment, the best that shares no pair with it, and so on.

    The hits are repeats and shared domains. Takes arrays, or letters as (query, target,
    ``Scoring``).

    Parameters
    ----------
    k : int
        1 to 64. Takes the time of k alignments.

    Returns
    -------
    HardAlignments
        As of ``k_best``: ``score`` (k, ...), which does not rise. 0, without pairs,
        where there are no more hits.

    Notes
    -----
    Waterman and Eggert, J. Mol. Biol. 197:723 (1987). ``k_best`` has all alignments,
    of which the second often differs from the best by a pair.

    Examples
    --------
    >>> import jaxalign
    >>> pair = "MKTAYWWWMKTAY", "MKTAY", jaxalign.Scoring()
    >>> hits = jaxalign.local_hits(3, pair, gap_open=11, gap_extend=1)
    >>> hits.score.tolist(), hits.spans[:2].tolist()
    ([26.0, 26.0, 2.0], [[0, 5, 0, 5], [8, 13, 0, 5]])
    """
    _check_count(k)
    settings = SimilarityOptions(**options, mode="local")
    return _computed("several", similarity, lengths, settings, k, disjoint=True)


@with_options(SimilarityOptions, named=True)
def k_best(
    k: int,
    similarity: Similarity,
    lengths: Lengths = None,
    **options: Unpack[HardKeywords],
) -> HardAlignments:
    """Find the k best alignments, which all differ.

    Two alignments are different where their pairs are. It takes the time of one
    alignment and of k walks, and 16 bytes a cell, for any k.

    Parameters
    ----------
    k : int
        1 to 64.

    Returns
    -------
    HardAlignments
        ``score`` (k, ...), from the best down, and ``partners``, ``spans``, ``lengths``
        with k as their first axis. Where fewer alignments exist, the score is -inf.
        Of equals any may come first.

    Raises
    ------
    UsageError
        As ``hard_alignment``, or k is out of range.

    Examples
    --------
    >>> import jax.numpy as jnp, jaxalign
    >>> s = jnp.array([[5.0, 3.0], [0, 0]])
    >>> best = jaxalign.k_best(2, s, gap_open=1, gap_extend=1)
    >>> best.score.tolist(), best.partners.tolist()
    ([5.0, 3.0], [[0, 1], [0, -1]])
    """
    _check_count(k)
    settings = SimilarityOptions(**options)
    return _computed("several", similarity, lengths, settings, k, disjoint=False)


def _check_count(k: int) -> None:
    check_whole("k", k, f"1 to {MAX_K}", optional=False)
    if k > MAX_K:
        raise UsageError(f"k = {k}: 1 to {MAX_K}")


def _computed(
    name: str,
    similarity: Similarity,
    lengths: Lengths,
    settings: SimilarityOptions,
    *count: int,
    **kind: bool,
) -> HardAlignments:
    """A function of ``hard.engine`` of all pairs."""
    inputs = similarity, lengths, settings.gap_open, settings.gap_extend
    free = resolve_ends(settings.mode, settings.free_ends)

    def run() -> HardAlignments:
        from jaxalign.similarity.hard import engine

        several = not kind.get("disjoint", True)
        *read, form = _prepared(similarity, lengths, settings, several)
        values = getattr(engine, name)(*read, form, *count, **kind)
        score, partners, spans, sizes = values
        return HardAlignments(
            score, partners, spans, sizes, form.ordered, settings.mode, free
        )

    return arguments.compiled(inputs, [similarity], run)


def _prepared(
    similarity: Similarity,
    lengths: Lengths,
    settings: SimilarityOptions,
    several: bool,
) -> tuple[Any, ...]:
    """(pair, axes, batch, form) of the best alignment, or of several."""
    import jax.numpy as jnp

    from jaxalign.similarity.arrays import looked_up
    from jaxalign.similarity.hard import engine

    refuse_without_threads()
    ends = settings.mode, settings.free_ends, settings.adjacent_gaps
    costs = settings.gap_open, settings.gap_extend

    def narrow(x: Any) -> Any:
        """Numbers of 8 and 16 bits as they are: a fill reads them so."""
        return x if x.dtype.name in engine.DTYPES else arguments.floating(x)

    forms = {"scores": narrow, "band": settings.band, "xp": jnp}
    forms["look_up"] = looked_up
    pair, axes, batch, _ = arguments.read(similarity, lengths, *costs, *ends, **forms)
    ranks = [len(shape) for shape in arguments.cost_shapes(pair, axes)]
    band = checked_band(settings.band, pair.similarity.shape, ranks)
    ordered = 2 in ranks or not settings.adjacent_gaps or band is not None
    local, kernels = settings.mode == "local", False
    if several:
        form = engine.ScoredForm(local, ordered=True, band=band)
        return pair, axes, batch, form
    if not ordered and engine.takes(pair, batch, ranks):
        kernels = backend.kernels()[0] is not None
    free = resolve_ends(settings.mode, settings.free_ends)
    last_column = kernels and not local and "query_end" in free
    form = engine.ScoredForm(local, ordered, band, kernels, last_column)
    return pair, axes, batch, form


ProfileMethod = Literal["average", "log_average"]
UNIT = float(np.log(2) / 2)  # of BLOSUM62 and of other matrices in half bits, in nats


@with_options(SimilarityOptions, named=True)
def profile_similarity(
    query: ArrayLike,
    target: ArrayLike,
    scoring: ScoringLike = None,
    *,
    method: ProfileMethod = "log_average",
    unit: float = UNIT,
) -> Array:
    """The similarity of the positions of two profiles, for ``hard_alignment``,
    ``soft_score`` and all that take one.

    Parameters
    ----------
    query : (..., m, letters) frequencies
        Of each letter of the scoring's alphabet at each position; they add up to 1, or
        are all 0 in padding.
    target : (..., n, letters) frequencies
    scoring : Scoring, or the name or file of a matrix, optional
        BLOSUM62 by default.
    method : {"log_average", "average"}
        ``average``: the mean score of two letters, one from either position.
        ``log_average``: the log of the mean odds (von Ohsen and Zimmer), which tells
        related columns better from others.
    unit : float
        Nats in a unit of the matrix: exp(unit * score) are odds.

    Returns
    -------
    float (..., m, n)
        In the unit of the matrix; the matrix itself for single letters. Differentiable.

    Raises
    ------
    UsageError
        Frequencies of another number of letters, or another method.

    Notes
    -----
    von Ohsen and Zimmer, WABI 2001. Edgar and Sjolander, Bioinformatics 20:1301 (2004)
    compare such scores.

    Examples
    --------
    >>> import jax, jaxalign
    >>> letters = jaxalign.Scoring().alphabet.encode("MK")
    >>> single = jax.nn.one_hot(letters, 24)
    >>> jaxalign.profile_similarity(single, single).round(3).tolist()
    [[5.0, -1.0], [-1.0, 5.0]]
    """
    scoring = as_scoring(scoring)
    if method not in get_args(ProfileMethod):
        methods = " or ".join(get_args(ProfileMethod))
        raise UsageError(f"method {method!r}: {methods}")

    def run(xp: Any) -> Any:
        arrays = [arguments.floating(xp.asarray(x)) for x in sides]
        dtype = xp.promote_types(*(x.dtype for x in arrays))
        matrix = xp.asarray(scoring.scores / scoring.scale, dtype)
        for frequencies in arrays:
            if frequencies.ndim < 2 or frequencies.shape[-1] != len(matrix):
                raise UsageError(
                    f"frequencies of shape {frequencies.shape}: (..., positions, "
                    f"{len(matrix)}) is needed"
                )
        first, second = (x.astype(dtype) for x in arrays)

        def mean(values: Any) -> Any:
            half = xp.einsum("...ia,ab->...ib", first, values)
            return xp.einsum("...ib,...jb->...ij", half, second)

        if method == "average":
            return mean(matrix)
        odds = mean(xp.exp(unit * matrix))
        present = odds > 0  # of padding it is 0, and so is its similarity
        return xp.where(present, xp.log(xp.where(present, odds, 1)), 0) / unit

    sides = query, target
    if not is_of_jax(sides) and small.fits(sides):
        return run(np)

    def compiled() -> Any:
        import jax.numpy as jnp

        refuse_without_threads()
        return run(jnp)

    return arguments.compiled(sides, [sides], compiled)
