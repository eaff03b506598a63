# pyright: strict, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
"""The public function that makes one alignment of a posterior."""

from __future__ import annotations

from typing import Unpack

import jax
import numpy as np

from jaxalign.errors import UsageError
from jaxalign.model.alignment import Alignment
from jaxalign.model.choices import EndKeywords
from jaxalign.model.pairing import most_accurate, written
from jaxalign.model.scoring import ScoringLike, as_scoring, resolve_ends
from jaxalign.signatures import with_options
from jaxalign.soft.options import SoftOptions


@with_options(SoftOptions, named=True)
def mea_alignment(
    posterior: jax.typing.ArrayLike,
    query: str | None = None,
    target: str | None = None,
    scoring: ScoringLike = None,
    *,
    threshold: float = 0.0,
    **options: Unpack[EndKeywords],
) -> Alignment:
    """The alignment of maximum expected accuracy under a posterior.

    Parameters
    ----------
    posterior : (m, n) probabilities, without padding
    query, target : str, optional
        The sequences; wildcards of the alphabet where they are left out.
    scoring : Scoring, optional
        For ``rescore`` and identities of the result; ``Scoring()`` by default.
    threshold : float
        Subtracted from every pair: higher values leave doubtful pairs out.
    mode, free_ends : how overhanging residues are written

    Returns
    -------
    Alignment
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
    posterior = np.asarray(posterior)
    if posterior.ndim != 2:
        raise UsageError(f"a posterior of shape {posterior.shape}: one pair is needed")
    scoring, mode = as_scoring(scoring), options.get("mode", SoftOptions.mode)
    free = resolve_ends(mode, options.get("free_ends"))
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
