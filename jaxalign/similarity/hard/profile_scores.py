"""Two profiles -> the similarity of their positions."""

from typing import Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np

from jaxalign.errors import UsageError
from jaxalign.model.scoring import ScoringLike, as_scoring
from jaxalign.runtime.devices import refuse_without_threads
from jaxalign.signatures import with_options
from jaxalign.similarity.options import SimilarityOptions

ProfileMethod = Literal["average", "log_average"]
UNIT = float(np.log(2) / 2)  # of BLOSUM62 and of other matrices in half bits, in nats


@with_options(SimilarityOptions, named=True)
def profile_similarity(
    query: jax.typing.ArrayLike,
    target: jax.typing.ArrayLike,
    scoring: ScoringLike = None,
    *,
    method: ProfileMethod = "log_average",
    unit: float = UNIT,
) -> jax.Array:
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
    refuse_without_threads()
    scoring = as_scoring(scoring)
    matrix = jnp.asarray(scoring.scores / scoring.scale, float)
    query, target = (jnp.asarray(x) for x in (query, target))
    for frequencies in (query, target):
        if frequencies.ndim < 2 or frequencies.shape[-1] != len(matrix):
            raise UsageError(
                f"frequencies of shape {frequencies.shape}: (..., positions, "
                f"{len(matrix)}) is needed"
            )
    if method not in get_args(ProfileMethod):
        methods = " or ".join(get_args(ProfileMethod))
        raise UsageError(f"method {method!r}: {methods}")
    query, target = (x.astype(matrix.dtype) for x in (query, target))
    if method == "average":
        return _mean(query, matrix, target)
    odds = _mean(query, jnp.exp(unit * matrix), target)
    known = odds > 0  # of padding it is 0, and so is its similarity
    return jnp.where(known, jnp.log(jnp.where(known, odds, 1)), 0) / unit


def _mean(query: jax.Array, values: jax.Array, target: jax.Array) -> jax.Array:
    return jnp.einsum("...ia,ab,...jb->...ij", query, values, target)
