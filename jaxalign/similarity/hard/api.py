"""Public functions that find the best alignments of a similarity, such as a
network's."""

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
from jaxalign.similarity.hard.small import fits, results
from jaxalign.similarity.options import HardKeywords, HitKeywords, SimilarityOptions
from jaxalign.similarity.result import HardAlignments

MAX_K = 64  # walks, one after the other


@with_options(SimilarityOptions, named=True)
def hard_alignment(
    similarity: Similarity, lengths: Lengths = None, **options: Unpack[HardKeywords]
) -> HardAlignments:
    """Find the best alignment of any similarity: the limit of ``soft_score`` as T -> 0.

    Works inside ``jit`` and ``vmap``. Takes the arguments of ``soft_score``, so a model
    trained with ``soft_score`` can be decoded with it.

    Returns
    -------
    HardAlignments
        A pytree: ``score`` (...); ``partners`` int32 (..., m), for each query residue
        the target residue paired with it, or -1; and ``spans`` int32 (..., 4).
        ``score`` is a float, exact for integers while sums stay below 2^24 (2^53 in
        float64). It is nan where the input within the lengths has nan or inf, and -inf
        where no alignment is legal; partners are then -1.

    Raises
    ------
    UsageError
        If shapes do not fit, the mode is unknown, or a gap cost is invalid.

    Notes
    -----
    Among equal alignments, it returns the one that ``align`` returns: the end cell with
    the smallest query index, then the smallest target index; from there backwards the
    diagonal, then up, then left; in local mode stop first; inside a gap extend first.
    With costs of shape (..., m, n), with ``adjacent_gaps=False`` and with a band, the
    end cell is the last pair, and between two pairs the query's residues come first.

    On a Hopper GPU or newer, float32 kernels compute alignments without a band whose
    gap costs are numbers (one per pair of a batch, too) and whose gaps may be adjacent.
    A scan in XLA computes all others.

    Small NumPy arrays need no compiler: those with m + n <= 512 whose sums over the
    batch are at most 2^17 for m (m + n) and 2^14 for m + n.

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
    return _computed(similarity, lengths, settings)


@with_options(SimilarityOptions, named=True)
def local_hits(
    k: int,
    similarity: Similarity,
    lengths: Lengths = None,
    **options: Unpack[HitKeywords],
) -> HardAlignments:
    """Find the k best local alignments that share no pair of residues.

    They show repeats and shared domains. Each is the best that shares no pair with
    those before it. The similarity may also be (query, target, ``Scoring``), with both
    sequences as letters.

    Parameters
    ----------
    k : int
        Number of alignments, 1 to 64. The time is that of k alignments.

    Returns
    -------
    HardAlignments
        As from ``k_best``: ``score`` (k, ...), in non-increasing order. Where there are
        no more hits, the score is 0 and there are no pairs.

    Raises
    ------
    UsageError
        As ``hard_alignment``, or if k is out of range.

    Notes
    -----
    Waterman and Eggert, J. Mol. Biol. 197:723 (1987). ``k_best`` considers all
    alignments, and its second often differs from the best by one pair.

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
    return _computed(similarity, lengths, settings, k, disjoint=True)


@with_options(SimilarityOptions, named=True)
def k_best(
    k: int,
    similarity: Similarity,
    lengths: Lengths = None,
    **options: Unpack[HardKeywords],
) -> HardAlignments:
    """Find the k best alignments that differ in at least one pair.

    It takes the time of one fill and k tracebacks, and 16 bytes per cell for any k.

    Parameters
    ----------
    k : int
        Number of alignments, 1 to 64.

    Returns
    -------
    HardAlignments
        ``score`` (k, ...), best first, and ``partners``, ``spans`` and ``lengths``
        with k as their first axis. Where fewer alignments exist, the score is -inf.
        The order of equal alignments is unspecified.

    Raises
    ------
    UsageError
        As ``hard_alignment``, or if k is out of range.

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
    return _computed(similarity, lengths, settings, k)


def _check_count(k: int) -> None:
    check_whole("k", k, f"1 to {MAX_K}", optional=False)
    if k > MAX_K:
        raise UsageError(f"k = {k}: must be from 1 to {MAX_K}")


def _computed(
    similarity: Similarity,
    lengths: Lengths,
    settings: SimilarityOptions,
    k: int | None = None,
    disjoint: bool = False,
) -> HardAlignments:
    """The best alignments, or ``k`` of them, ``disjoint`` or not."""
    costs = settings.gap_open, settings.gap_extend
    ends = settings.mode, settings.free_ends, settings.adjacent_gaps
    inputs = similarity, lengths, *costs
    free = resolve_ends(settings.mode, settings.free_ends)
    walks = k or 1
    is_small = fits(similarity, walks if disjoint else 1, walks)
    if is_small and not is_of_jax(inputs):
        read = arguments.read(similarity, lengths, *costs, *ends, band=settings.band)
        values = results(read, settings.band, k, disjoint)
        return HardAlignments(*values, settings.mode, free, "numpy")

    def run() -> HardAlignments:
        from jaxalign.similarity.hard import engine

        several = k is not None and not disjoint
        *read, form = _prepared(similarity, lengths, settings, several)
        if k is None:
            values = engine.alignments(*read, form)
        else:
            values = engine.several(*read, form, k, disjoint=disjoint)
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
    """Compute the similarity of the positions of two profiles.

    ``hard_alignment``, ``soft_score`` and all other functions of a similarity take it.

    Parameters
    ----------
    query : (..., m, letters) array
        Frequency of each letter of the scoring's alphabet at each position. The
        frequencies of a position sum to 1, or are all 0 in padding.
    target : (..., n, letters) array
        Likewise.
    scoring : Scoring, or the name or file of a matrix, optional
        BLOSUM62 by default.
    method : {"log_average", "average"}
        ``average`` is the mean score of a letter from either position. ``log_average``
        is the log of the mean odds (von Ohsen and Zimmer), which separates related from
        unrelated columns better.
    unit : float
        Nats per unit of the matrix: exp(unit * score) is an odds ratio.

    Returns
    -------
    float (..., m, n)
        In the unit of the matrix; for single letters, their scores in the matrix.
        Differentiable.

    Raises
    ------
    UsageError
        If the number of letters is not that of the alphabet, or the method is unknown.

    Notes
    -----
    Von Ohsen and Zimmer, WABI 2001. Edgar and Sjölander, Bioinformatics 20:1301 (2004)
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
        raise UsageError(f"method = {method!r}: must be {methods}")

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
