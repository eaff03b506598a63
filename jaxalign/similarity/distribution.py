"""The distribution over the alignments of a pair, as one object."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, ClassVar, NamedTuple

import jax
import numpy as np
from numpy.typing import ArrayLike

from jaxalign.errors import UsageError
from jaxalign.model.alignment import Alignment
from jaxalign.model.choices import FreeEnd, Mode
from jaxalign.model.scoring import resolve_ends
from jaxalign.similarity.arguments import (
    Array,
    Band,
    GapCost,
    Lengths,
    Similarity,
    is_corridor,
)
from jaxalign.similarity.hard.api import hard_alignment, k_best
from jaxalign.similarity.options import SoftImplementation
from jaxalign.similarity.result import HardAlignments
from jaxalign.similarity.soft.api import (
    alignment_entropy,
    alignment_log_prob,
    expected_gaps,
    kl_divergence,
    mea_alignment,
    sample_alignments,
    soft_posterior,
    soft_score,
)

NUMBERS = ("similarity", "lengths", "gap_open", "gap_extend", "temperature")


class AlignmentSupport(NamedTuple):
    """Which sets of pairs are alignments; hashable, constant under ``jit``."""

    mode: Mode
    free_ends: frozenset[FreeEnd]
    adjacent_gaps: bool
    band: Any


@jax.tree_util.register_pytree_node_class
class AlignmentDistribution:
    """A distribution over alignments, with p proportional to exp(score / temperature).

    It is a pytree that passes through ``jit``, ``grad`` and ``vmap`` (if all arguments
    have the batch axis). Its leaves are the numbers; its structure says which sets of
    pairs are alignments.

    Parameters
    ----------
    similarity : as in ``soft_score``
        Leading batch axes make it a batch of distributions.
    lengths, gap_open, gap_extend, temperature, mode, free_ends : as in ``soft_score``
    adjacent_gaps, band, implementation : as in ``soft_score``

    Attributes
    ----------
    support : AlignmentSupport
        Which sets of pairs are alignments: ``mode``, ``free_ends``, ``adjacent_gaps``
        and ``band``.

    Raises
    ------
    UsageError
        If the mode or an end is unknown. Numbers and shapes are checked by the methods.

    Examples
    --------
    >>> import jax, jax.numpy as jnp, jaxalign
    >>> p = jaxalign.AlignmentDistribution(jnp.zeros((5, 7)), gap_open=0, gap_extend=0)
    >>> round(float(jnp.exp(p.log_partition()))), round(float(jnp.exp(p.entropy())))
    (792, 792)
    >>> best = jaxalign.AlignmentDistribution(9 * jnp.eye(3), gap_open=5, gap_extend=1)
    >>> best.mode().partners.tolist(), best.sample(jax.random.key(0), 2).tolist()
    ([0, 1, 2], [[0, 1, 2], [0, 1, 2]])
    """

    functions: ClassVar[dict[str, Any]] = {  # a subclass has those of other arrays
        function.__name__: function
        for function in (
            soft_score,
            soft_posterior,
            expected_gaps,
            alignment_entropy,
            alignment_log_prob,
            kl_divergence,
            sample_alignments,
            hard_alignment,
            k_best,
            mea_alignment,
        )
    }

    def __init__(
        self,
        similarity: Similarity,
        lengths: Lengths = None,
        *,
        gap_open: GapCost,
        gap_extend: GapCost,
        temperature: ArrayLike = 1.0,
        mode: Mode = "global",
        free_ends: Collection[FreeEnd] | None = None,
        adjacent_gaps: bool = True,
        band: Band = None,
        implementation: SoftImplementation | None = None,
    ):
        self.similarity, self.lengths = similarity, lengths
        self.gap_open, self.gap_extend = gap_open, gap_extend
        self.temperature = temperature
        free = resolve_ends(mode, free_ends)
        if isinstance(band, (tuple, list)) and is_corridor(band):
            # A band by rows is hashable as nested tuples.
            def tuples(x: Any) -> Any:
                return tuple(map(tuples, x)) if isinstance(x, list) else x

            band = tuple(tuples(np.asarray(x).tolist()) for x in band)
        self.support = AlignmentSupport(mode, free, bool(adjacent_gaps), band)
        self.implementation = implementation

    def tree_flatten(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Return the leaves and the structure, for JAX."""
        numbers = tuple(getattr(self, name) for name in NUMBERS)
        return numbers, (self.support, self.implementation)

    @classmethod
    def tree_unflatten(cls, structure: Any, numbers: Any) -> AlignmentDistribution:
        """Rebuild from structure and leaves, unchecked: JAX may pass any leaves."""
        self = object.__new__(cls)
        for name, number in zip(NUMBERS, numbers, strict=True):
            setattr(self, name, number)
        self.support, self.implementation = structure
        return self

    def __repr__(self) -> str:
        return f"AlignmentDistribution({self.support!r})"

    def _call(self, name: str, *first: Any, **options: Any) -> Any:
        """Call a function of ``functions`` with the similarity and the lengths."""
        arrays = self.similarity, self.lengths
        return self.functions[name](*first, *arrays, **options)

    def score(self) -> Array:
        """Compute the soft score, temperature times ``log_partition``."""
        return self._call("soft_score", **self.soft_options())

    def log_partition(self) -> Array:
        """Compute the log of the sum of exp(score / temperature) over all
        alignments."""
        return self.score() / self.temperature

    def log_prob(self, alignment: Alignment | ArrayLike) -> Array:
        """Compute the log probability of ``alignment``: an ``Alignment``, or partners
        (..., m)."""
        return self._call("alignment_log_prob", alignment, **self.soft_options())

    def marginals(self) -> Array:
        """Compute the posterior (..., m, n): the probability of every pair."""
        return self._call("soft_posterior", **self.soft_options())

    def expected_gaps(self) -> tuple[Any, Any]:
        """Compute the expected numbers of residues that open a gap and that extend
        one, in the form of the costs."""
        return self._call("expected_gaps", **self.soft_options())

    def entropy(self) -> Array:
        """Compute the entropy, in nats."""
        return self._call("alignment_entropy", **self.soft_options())

    def sample(self, key: jax.Array | int, count: int) -> Array:
        """Draw ``count`` alignments with a JAX random ``key`` or a seed, as partners
        int32 (count, ..., m)."""
        return self._call("sample_alignments", key, count, **self.soft_options())

    def mode(self) -> HardAlignments:
        """Find the most probable alignment."""
        return self._call("hard_alignment", **self.hard_options())

    def top_k(self, k: int) -> HardAlignments:
        """Find the ``k`` most probable alignments, most probable first."""
        return self._call("k_best", k, **self.hard_options())

    def mea(self, threshold: float = 0.0) -> Any:
        """Find the alignment of maximum expected accuracy (``mea_alignment``) among
        pairs of a probability above ``threshold``."""
        options = self.hard_options()
        ends = {name: options[name] for name in ("mode", "free_ends")}
        settings = {"threshold": threshold, "lengths": self.lengths}
        return self.functions["mea_alignment"](self.marginals(), **settings, **ends)

    def kl(self, other: AlignmentDistribution) -> Array:
        """Compute the Kullback-Leibler divergence from this distribution to the
        ``other``, in nats.

        Raises
        ------
        UsageError
            If the supports or shapes differ.
        """
        if self.support != other.support:
            raise UsageError(
                f"distributions over different alignments have no divergence: "
                f"{self.support} and {other.support}"
            )
        costs = ("gap_open", "gap_extend", "temperature")
        options = self.soft_options()
        options = {name: x for name, x in options.items() if name not in costs}
        models = (
            {name: getattr(x, name) for name in ("similarity", *costs)}
            for x in (self, other)
        )
        divergence = self.functions["kl_divergence"]
        return divergence(*models, lengths=self.lengths, **options)

    def cross_entropy(
        self, reference: AlignmentDistribution | Alignment | ArrayLike
    ) -> Array:
        """Compute the mean of -``log_prob`` over a ``reference``, a training loss.

        The reference is a distribution, or one alignment taken as certain."""
        if isinstance(reference, AlignmentDistribution):
            return reference.entropy() + reference.kl(self)
        return -self.log_prob(reference)

    def hard_options(self) -> dict[str, Any]:
        """Return the options of this distribution for ``hard_alignment``."""
        support = self.support
        band = support.band
        band = tuple(map(np.asarray, band)) if is_corridor(band) else band
        return {
            "gap_open": self.gap_open,
            "gap_extend": self.gap_extend,
            "mode": support.mode,
            "free_ends": support.free_ends if support.mode == "global" else None,
            "adjacent_gaps": support.adjacent_gaps,
            "band": band,
        }

    def soft_options(self) -> dict[str, Any]:
        """Return the options of this distribution for ``soft_score``."""
        soft = {name: getattr(self, name) for name in ("temperature", "implementation")}
        return self.hard_options() | soft
