"""The public functions of soft (differentiable) alignment.

They take the same modes, free ends and gap costs as the hard functions (a gap of k
residues costs ``gap_open + (k - 1) * gap_extend``). They are JAX functions, and work
under ``jit``, ``vmap``, ``grad``, ``jacfwd``, ``jvp`` and ``hessian``. An alignment is
a set of pairs of residues, and every set counts once.

Results are JAX arrays if any argument is one, else NumPy arrays. They are float64 if
the similarity is, else float32. Small NumPy arrays (``similarity.small``) need no
compiler, and do not import JAX.

Under ``jax.export`` the size of a batch may be symbolic; with ``log``, so may lengths.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike

from jaxalign.errors import UsageError
from jaxalign.model.alignment import Alignment, most_accurate, packed_path, partners_of
from jaxalign.model.choices import EndKeywords
from jaxalign.model.scoring import FREE_ENDS, ScoringLike, as_scoring, resolve_ends
from jaxalign.signatures import with_options
from jaxalign.similarity import arguments, small
from jaxalign.similarity.arguments import (
    Array,
    Lengths,
    Similarity,
    is_of_jax,
    is_traced,
    real_numbers,
)
from jaxalign.similarity.options import SharedKeywords, SimilarityOptions, SoftKeywords
from jaxalign.similarity.result import HardAlignments
from jaxalign.similarity.small import SmallProblem

MODEL = ("gap_open", "gap_extend", "temperature")
REQUIRED = ("similarity", "gap_open", "gap_extend")


@with_options(SimilarityOptions, named=True)
def soft_score(
    similarity: Similarity, lengths: Lengths = None, **options: Unpack[SoftKeywords]
) -> Array:
    """Compute the soft score: T log of the sum of exp(score / T) over all alignments.

    T is the temperature.

    Returns
    -------
    (...) array of the batch shape, in the unit of the similarity
        At least the score of the best alignment, which is its limit as T -> 0. -inf,
        with gradients 0, only where no alignment is legal (global without adjacent
        gaps). Its gradient is ``soft_posterior`` by the similarity, minus
        ``expected_gaps`` by a gap cost, and ``alignment_entropy`` by the temperature.

    Raises
    ------
    UsageError
        If shapes do not fit, the mode or implementation is unknown or does not support
        the arguments, or the temperature is out of range.

    Notes
    -----
    Miyazawa, Protein Eng. 8:999 (1995); Mensch and Blondel, ICML 2018.

    Examples
    --------
    With nothing to gain or to pay, exp(score) counts alignments: C(5 + 7, 5).

    >>> import jax.numpy as jnp, jaxalign
    >>> f = jaxalign.soft_score(jnp.zeros((5, 7)), gap_open=0, gap_extend=0)
    >>> round(float(jnp.exp(f)))
    792
    """
    model = SimilarityOptions(**options)
    problem = _small(similarity, lengths, model)
    if problem is not None:
        return problem.score()
    return _compiled("score", similarity, lengths, model)


@with_options(SimilarityOptions, named=True)
def soft_posterior(
    similarity: Similarity, lengths: Lengths = None, **options: Unpack[SoftKeywords]
) -> Array:
    """Compute the probability of every pair of residues: the expected alignment.

    Returns
    -------
    (..., m, n) array
        Probabilities; rows and columns sum to at most 1, and entries beyond the lengths
        are exactly 0. Its derivative, in forward or reverse mode, takes one
        forward-mode pass.

    Raises
    ------
    UsageError
        As ``soft_score``.

    Examples
    --------
    >>> import jax.numpy as jnp, jaxalign
    >>> p = jaxalign.soft_posterior(9.0 * jnp.eye(3), gap_open=5, gap_extend=1)
    >>> p.round(2).tolist()[0]
    [1.0, 0.0, 0.0]
    """
    model = SimilarityOptions(**options)
    problem = _small(similarity, lengths, model)
    if problem is not None:
        return problem.posterior()
    return _compiled("posterior", similarity, lengths, model)


@with_options(SimilarityOptions, named=True)
def expected_gaps(
    similarity: Similarity, lengths: Lengths = None, **options: Unpack[SoftKeywords]
) -> tuple[Any, Any]:
    """Compute the expected numbers of residues that open a gap and that extend one.

    Returns
    -------
    opens, extensions : array of the batch shape each
        Where a cost is a pair, or is given by position, its expectation has the same
        form and shape: how often each entry is paid.

    Raises
    ------
    UsageError
        As ``soft_score``.

    Examples
    --------
    >>> import jax.numpy as jnp, jaxalign
    >>> s = jnp.array([[5.0, 0, 0, 0], [0, 0, 0, 5.0]])
    >>> opens, extensions = jaxalign.expected_gaps(s, gap_open=2, gap_extend=0.5)
    >>> round(float(opens), 2), round(float(extensions), 2)
    (1.0, 1.0)
    """
    model = SimilarityOptions(**options)
    costs = model.gap_open, model.gap_extend
    shared = tuple(not isinstance(cost, (tuple, list)) for cost in costs)
    problem = _small(similarity, lengths, model)
    if problem is not None:
        return problem.gaps(shared)
    return _compiled("gaps", similarity, lengths, model, shared)


@with_options(SimilarityOptions, named=True)
def alignment_entropy(
    similarity: Similarity, lengths: Lengths = None, **options: Unpack[SoftKeywords]
) -> Array:
    """Compute the entropy of the distribution over alignments, in nats.

    It is the sum of the entropies of single choices, none of them negative, so it is
    accurate at any temperature.

    Returns
    -------
    (...) array of the batch shape, at least 0

    Raises
    ------
    UsageError
        As ``soft_score``.

    Examples
    --------
    >>> import jax.numpy as jnp, jaxalign
    >>> h = jaxalign.alignment_entropy(jnp.zeros((5, 7)), gap_open=0, gap_extend=0)
    >>> round(float(jnp.exp(h)))
    792
    """
    model = SimilarityOptions(**options)
    problem = _small(similarity, lengths, model)
    if problem is not None:
        return problem.entropy()
    return _compiled("entropy", similarity, lengths, model)


@with_options(SimilarityOptions, named=True)
def soft_summary(
    similarity: Similarity, lengths: Lengths = None, **options: Unpack[SoftKeywords]
) -> tuple[Array, Array, Array]:
    """Soft score, posterior and entropy, by one program: half of the time of three.

    Returns
    -------
    what ``soft_score``, ``soft_posterior`` and ``alignment_entropy`` do
    """
    model = SimilarityOptions(**options)
    problem = _small(similarity, lengths, model)
    if problem is not None:
        return problem.summary()
    return _compiled("summary", similarity, lengths, model)


@with_options(SimilarityOptions, named=True)
def sample_alignments(
    key: Array,
    count: int,
    similarity: Similarity,
    lengths: Lengths = None,
    **options: Unpack[SoftKeywords],
) -> Array:
    """Draw alignments from the distribution, by stochastic traceback.

    Parameters
    ----------
    key : JAX random key, or int
        An int is a seed, for ``numpy.random.default_rng`` with small NumPy arrays and
        for ``jax.random.key`` otherwise.
    count : int
        Number of alignments to draw.

    Returns
    -------
    int32 (count, ..., m)
        Partners: for each query residue, the target residue paired with it, counted
        from 0, or -1.

    Raises
    ------
    UsageError
        As ``soft_score``, or if ``key`` or ``count`` is invalid.

    Examples
    --------
    >>> import jax, jax.numpy as jnp, jaxalign
    >>> gaps, key = {"gap_open": 5, "gap_extend": 1}, jax.random.key(0)
    >>> jaxalign.sample_alignments(key, 2, 50.0 * jnp.eye(3), **gaps).tolist()
    [[0, 1, 2], [0, 1, 2]]
    """
    model = SimilarityOptions(**options)
    seed = isinstance(key, (int, np.integer)) and not isinstance(key, bool)
    if seed and (problem := _small(similarity, lengths, model)) is not None:
        return problem.draw(int(key), count)

    def run() -> Any:
        import jax
        import jax.numpy as jnp

        from jaxalign.similarity.soft import engine
        from jaxalign.similarity.soft.options import prepare

        pair, axes, batch, settings = prepare(similarity, lengths, model)
        start = jax.random.key(int(key)) if seed else key
        keys = jax.random.split(start, prod(batch))
        inputs = (pair, keys if batch else keys[0]), (axes, 0)
        partners = engine.over_batch(engine.draw, *inputs, batch, settings, (count,))
        return jnp.moveaxis(partners, len(batch), 0)

    return _by_kind(run, similarity, lengths, model, key)


@with_options(SimilarityOptions, named=True)
def alignment_log_prob(
    alignment: Alignment | ArrayLike,
    similarity: Similarity,
    lengths: Lengths = None,
    **options: Unpack[SoftKeywords],
) -> Array:
    """Compute the log probability of an alignment: (score - soft score) / T.

    Its negative is the loss of a conditional random field (CRF).

    Parameters
    ----------
    alignment : Alignment, or int32 (..., m) partners as from ``sample_alignments``
        Partners of padding must be -1.

    Returns
    -------
    (...) array of the batch shape, at most 0
        Differentiable. -inf where partners do not increase, lie beyond the lengths,
        form no alignment of the mode, or pay an infinite cost: so everywhere where no
        alignment is legal.

    Raises
    ------
    UsageError
        As ``soft_score``, or if partners are not integers of the shape (..., m).

    Examples
    --------
    >>> import jax.numpy as jnp, jaxalign
    >>> flat, gaps = jnp.zeros((5, 7)), {"gap_open": 0, "gap_extend": 0}
    >>> log_p = jaxalign.alignment_log_prob(jnp.arange(5), flat, **gaps)
    >>> round(float(jnp.exp(-log_p)))
    792
    """
    model = SimilarityOptions(**options)
    if isinstance(alignment, Alignment):
        alignment = partners_of(alignment)
    problem = _small(similarity, lengths, model, alignment)
    if problem is not None:
        return problem.log_prob(_partners(alignment, problem.shape, np))

    def run() -> Any:
        import jax.numpy as jnp

        from jaxalign.similarity.soft import engine
        from jaxalign.similarity.soft.options import prepare

        pair, axes, batch, settings = prepare(similarity, lengths, model)
        partners = _partners(alignment, (*batch, *pair.similarity.shape[-2:]), jnp)
        inputs = (pair, partners if batch else partners[0]), (axes, 0)
        return engine.over_batch(engine.log_prob, *inputs, batch, settings)

    return _by_kind(run, similarity, lengths, model, alignment)


def _partners(alignment: Any, shape: tuple[int, ...], xp: Any) -> Any:
    """Partners int32 (pairs of the batch, m), checked."""
    *batch, m, _ = shape
    partners = real_numbers("partners", alignment, xp)
    if partners.size and partners.dtype.kind not in "iu":
        raise UsageError(f"partners of {partners.dtype}: integers are needed")
    partners = partners.astype(np.int32)
    if partners.shape[-1:] != (m,):
        raise UsageError(f"partners of shape {partners.shape}, not {(*batch, m)}")
    return xp.broadcast_to(partners, (*batch, m)).reshape(prod(batch), m)


@with_options(SimilarityOptions, named=True)
def kl_divergence(
    p: Mapping[str, Any],
    q: Mapping[str, Any],
    lengths: Lengths = None,
    **options: Unpack[SharedKeywords],
) -> Array:
    """Compute the Kullback-Leibler divergence KL(p || q) over alignments, in nats.

    Parameters
    ----------
    p, q : dict of ``similarity``, ``gap_open``, ``gap_extend``, ``temperature``
        The two models. Shapes are as in ``soft_score``, and the batch shapes are equal.

    Returns
    -------
    (...) array of the batch shape, at least 0
        inf where q forbids an alignment that p allows; nan where p allows none.

    Notes
    -----
    (F_q / T_q - F_p / T_p) + E_p[score_p / T_p - score_q / T_q], where F is the soft
    score. Expected scores are directional derivatives of F_p, because scores are linear
    in similarity and costs. Where both starts or both ends are free, only the smaller
    of two overhangs counts, which is linear only cell by cell: then four arrays of the
    size of the table are needed, and neither kernels nor a band save work.

    Examples
    --------
    >>> import jax.numpy as jnp, jaxalign
    >>> p = dict(similarity=jnp.eye(4), gap_open=2.0, gap_extend=1.0)
    >>> round(float(jaxalign.kl_divergence(p, p | {"gap_open": 3.0})), 3)
    0.053
    """
    models = [_model(x, options) for x in (p, q)]
    inputs = [_numbers(x, lengths, model) for x, model in models]
    problems = [_small(x, lengths, model, inputs) for x, model in models]
    if problems[0] is not None and problems[1] is not None:
        if problems[0].shape != problems[1].shape:
            raise UsageError(
                f"two models of shapes {problems[0].shape} and {problems[1].shape}: "
                "one shape is needed"
            )
        return problems[0].divergence(problems[1])
    # Whether both sequences may hang over freely at one end.
    mode = options.get("mode", SimilarityOptions.mode)
    free = resolve_ends(mode, options.get("free_ends"))
    ends = ({"query_start", "target_start"}, {"query_end", "target_end"})
    cells = mode != "local" and any(end <= free for end in ends)

    def run() -> Any:
        from jaxalign.similarity.soft import engine
        from jaxalign.similarity.soft.options import prepare

        first, second = (prepare(x, lengths, model) for x, model in models)
        pairs, axes = zip(first[:2], second[:2], strict=True)
        if first[2] != second[2] or len({x.similarity.shape for x in pairs}) > 1:
            sizes = ((*x[2], *x[0].similarity.shape[-2:]) for x in (first, second))
            shapes = " and ".join(map(str, sizes))
            raise UsageError(f"two models of shapes {shapes}: one shape is needed")
        return engine.over_batch(engine.divergence, pairs, axes, *first[2:], (cells,))

    return arguments.compiled(inputs, [x for x, _ in models], run)


def _model(
    model: Mapping[str, Any], shared: SharedKeywords
) -> tuple[Similarity, SimilarityOptions]:
    """Similarity and options of one of two models."""
    numbers = {name: value for name, value in model.items() if name != "similarity"}
    if unknown := numbers.keys() - MODEL:
        raise UsageError(f"a model has similarity, {', '.join(MODEL)}, not {unknown}")
    if missing := [name for name in REQUIRED if name not in model]:
        raise UsageError(f"a model needs {' and '.join(missing)}")
    return model["similarity"], SimilarityOptions(**numbers, **shared)


def _numbers(similarity: Any, lengths: Any, model: SimilarityOptions) -> Any:
    """The arguments that may be arrays."""
    costs = model.gap_open, model.gap_extend, model.temperature
    return (similarity, lengths, *costs)


def _small(
    similarity: Any, lengths: Any, model: SimilarityOptions, *extra: Any
) -> SmallProblem | None:
    """The problem in NumPy; None where it is large, or for JAX."""
    named = model.implementation == "numpy"
    if not (named or model.implementation is None):
        return None
    if is_of_jax((_numbers(similarity, lengths, model), *extra)):
        return None
    if not (named or small.fits(similarity)):
        return None
    return small.problem(similarity, lengths, model)


def _by_kind(
    run: Any, similarity: Any, lengths: Any, model: SimilarityOptions, *extra: Any
) -> Any:
    """Run what compiles, with results of the kind and dtype of the arguments."""
    inputs = _numbers(similarity, lengths, model), extra
    return arguments.compiled(inputs, [similarity], run)


def _compiled(
    name: str, similarity: Any, lengths: Any, model: SimilarityOptions, *extra: Any
) -> Any:
    """A function of ``soft.engine`` of all pairs."""

    def run() -> Any:
        from jaxalign.similarity.soft import engine
        from jaxalign.similarity.soft.options import prepare

        arrays = prepare(similarity, lengths, model)
        return engine.over_batch(getattr(engine, name), *arrays, extra)

    return _by_kind(run, similarity, lengths, model)


@overload
def mea_alignment(
    posterior: np.ndarray,
    query: str | None = None,
    target: str | None = None,
    scoring: ScoringLike = None,
    *,
    threshold: float = 0.0,
    lengths: None = None,
    **options: Unpack[EndKeywords],
) -> Alignment: ...


@overload
def mea_alignment(
    posterior: ArrayLike,
    query: str | None = None,
    target: str | None = None,
    scoring: ScoringLike = None,
    *,
    threshold: float = 0.0,
    lengths: Lengths = None,
    **options: Unpack[EndKeywords],
) -> Any: ...


@with_options(SimilarityOptions, named=True)
def mea_alignment(
    posterior: ArrayLike,
    query: str | None = None,
    target: str | None = None,
    scoring: ScoringLike = None,
    *,
    threshold: float = 0.0,
    lengths: Lengths = None,
    **options: Unpack[EndKeywords],
) -> Alignment | HardAlignments:
    """Find the alignment of maximum expected accuracy under a posterior.

    Parameters
    ----------
    posterior : (..., m, n) array
        Probability of each pair, as from ``soft_posterior``.
    query, target : str, optional
        The sequences of one pair; wildcards of the alphabet by default.
    scoring : Scoring, optional
        For ``rescore`` and identities of the result; ``Scoring()`` by default.
    threshold : float
        Probability subtracted from every pair; higher values leave out doubtful pairs.
    lengths : (query lengths, target lengths), or (..., 2), optional
        Lengths of the sequences of a padded batch.
    mode, free_ends
        Determine which residues outside the first and last pair are written as
        overhang.

    Returns
    -------
    Alignment, or HardAlignments for a batch, with ``lengths``, and inside ``jit``
        ``score`` is the expected number of correct pairs: the sum of the posterior
        over the pairs of the alignment.

    Raises
    ------
    UsageError
        If shapes do not fit, or sequences or a scoring come with a batch.

    Notes
    -----
    Do et al., Genome Res. 15:330 (2005).

    Examples
    --------
    >>> import jax.numpy as jnp, jaxalign
    >>> p = jaxalign.soft_posterior(9.0 * jnp.eye(3), gap_open=5, gap_extend=1)
    >>> jaxalign.mea_alignment(p, "MKV", "MRV").rows()
    ('MKV', 'MRV')
    """
    mode = options.get("mode", SimilarityOptions.mode)
    free = resolve_ends(mode, options.get("free_ends"))
    if is_traced(posterior) or np.ndim(posterior) != 2 or lengths is not None:
        if query or target or scoring:
            raise UsageError("sequences and a scoring need one pair, outside jit")
        ends = mode, None if mode != "global" else free
        inputs = posterior, lengths, threshold
        if not is_of_jax(inputs) and small.fits(posterior):
            read = arguments.read(posterior, lengths, 0.0, 0.0, *ends, True)
            values = small.most_accurate_of(read, threshold, mode, free)
            return HardAlignments(*values, True, mode, free, "numpy")

        def run() -> HardAlignments:
            import jax.numpy as jnp

            from jaxalign.similarity.soft import engine

            read = arguments.read(posterior, lengths, 0.0, 0.0, *ends, True, xp=jnp)
            pair, axes, batch, fit = read
            less, axis = fit(threshold, rank=0)
            arrays = (pair.similarity, less, pair.rules.m, pair.rules.n)
            each = (axes.similarity, axis, axes.rules.m, axes.rules.n)
            extra = tuple(end in free for end in FREE_ENDS), mode == "local"
            function = engine.most_accurate
            values = engine.over_batch(function, arrays, each, batch, None, extra)
            score, partners, spans, sizes = values
            return HardAlignments(score, partners, spans, sizes, True, mode, free)

        return arguments.compiled(inputs, [posterior], run)
    posterior = np.asarray(real_numbers("a posterior", posterior, np))
    scoring = as_scoring(scoring)
    letter = scoring.alphabet.wildcard or scoring.alphabet.letters[0]
    m, n = posterior.shape
    a, b = query or letter * m, target or letter * n
    if (len(a), len(b)) != (m, n):
        raise UsageError(
            f"sequences of {len(a)} and {len(b)} letters, where the posterior is of "
            f"{m} x {n}"
        )
    partners = most_accurate(posterior, threshold)
    spans, operations = packed_path(partners, m, n, mode, free)
    rows = np.flatnonzero(partners >= 0)
    score = float(posterior[rows, partners[rows]].sum())
    ends = spans[0], spans[1], spans[2], spans[3]
    words = operations, scoring, mode, free
    return Alignment(a, b, score, *ends, *words, implementation="mea")
