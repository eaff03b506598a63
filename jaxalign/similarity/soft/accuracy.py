"""The public function that makes one alignment of a posterior."""

from __future__ import annotations

from typing import Any, Unpack, overload

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from jaxalign.errors import UsageError
from jaxalign.model.alignment import Alignment
from jaxalign.model.choices import EndKeywords
from jaxalign.model.pairing import most_accurate, written
from jaxalign.model.scoring import FREE_ENDS, ScoringLike, as_scoring, resolve_ends
from jaxalign.signatures import with_options
from jaxalign.similarity import arguments
from jaxalign.similarity.arguments import Lengths
from jaxalign.similarity.options import SimilarityOptions
from jaxalign.similarity.result import HardAlignments
from jaxalign.similarity.scores import real_numbers
from jaxalign.similarity.soft import engine


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
    posterior: jax.typing.ArrayLike,
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
    posterior: jax.typing.ArrayLike,
    query: str | None = None,
    target: str | None = None,
    scoring: ScoringLike = None,
    *,
    threshold: float = 0.0,
    lengths: Lengths = None,
    **options: Unpack[EndKeywords],
) -> Alignment | HardAlignments:
    """The alignment of maximum expected accuracy under a posterior.

    Parameters
    ----------
    posterior : (..., m, n) probabilities
    query, target : str, optional
        The sequences of one pair; wildcards of the alphabet where they are left out.
    scoring : Scoring, optional
        For ``rescore`` and identities of the result; ``Scoring()`` by default.
    threshold : float
        Subtracted from every pair: higher values leave doubtful pairs out.
    lengths : (query lengths, target lengths), or (..., 2), optional
        Of a padded batch.
    mode, free_ends : how overhanging residues are written

    Returns
    -------
    Alignment, or HardAlignments of a batch, of lengths and inside ``jit``
        ``score`` is the expected number of correct pairs: the sum of the posterior
        over the pairs of the alignment.

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
    if isinstance(posterior, Tracer) or jnp.ndim(posterior) != 2 or lengths is not None:
        if query or target or scoring:
            raise UsageError("sequences and a scoring are for one pair, outside of jit")
        return _of_batch(posterior, lengths, threshold, mode, free)
    posterior = np.asarray(real_numbers("a posterior", posterior))
    scoring = as_scoring(scoring)
    letter = scoring.alphabet.wildcard or scoring.alphabet.letters[0]
    m, n = posterior.shape
    a, b = query or letter * m, target or letter * n
    if (len(a), len(b)) != (m, n):
        raise UsageError(f"sequences of {len(a)}, {len(b)} for {m} x {n}")
    partners = most_accurate(posterior, threshold)
    spans, operations = written(partners, m, n, mode, free)
    rows = np.flatnonzero(partners >= 0)
    score = float(posterior[rows, partners[rows]].sum())
    return Alignment(
        a,
        b,
        score,
        spans[0],
        spans[1],
        spans[2],
        spans[3],
        operations,
        scoring,
        mode,
        free,
        implementation="mea",
    )


def _of_batch(
    posterior: Any, lengths: Lengths, threshold: float, mode: Any, free: frozenset[str]
) -> HardAlignments:
    ends = mode, None if mode != "global" else free
    read = arguments.read(posterior, lengths, 0.0, 0.0, *ends, True)
    pair, axes, batch, fit = read
    less, axis = fit(threshold, rank=0)
    local = mode == "local"
    both = (pair.similarity, less, pair.rules.m, pair.rules.n)
    each = (axes.similarity, axis, axes.rules.m, axes.rules.n)
    flags = tuple(end in free for end in FREE_ENDS)
    values = engine.over_batch(
        engine.most_accurate, both, each, batch, None, (flags, local)
    )
    score, partners, spans, sizes = values
    return HardAlignments(score, partners, spans, sizes, True, mode, free)
