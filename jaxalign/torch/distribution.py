"""The distribution over the alignments of a pair, of tensors."""

from __future__ import annotations

from typing import Any, Unpack

import torch

from jaxalign.errors import UsageError
from jaxalign.model.alignment import Alignment
from jaxalign.similarity.distribution.api import (
    AlignmentDistribution,
    AlignmentSupport,
)
from jaxalign.similarity.options import SoftKeywords
from jaxalign.similarity.result import HardAlignments
from jaxalign.torch import api

COSTS = ("gap_open", "gap_extend", "temperature")


class TensorDistribution:
    """``jaxalign.AlignmentDistribution`` of tensors; ``jaxalign.torch`` has it under
    that name.

    Parameters
    ----------
    similarity, lengths, **options : as in ``soft_score``
        Any leading batch axes: then this is a batch of distributions.

    Examples
    --------
    >>> import torch, jaxalign.torch
    >>> p = jaxalign.torch.AlignmentDistribution(
    ...     torch.zeros(5, 7), gap_open=0.0, gap_extend=0.0
    ... )
    >>> round(p.log_partition().exp().item()), round(p.entropy().exp().item())
    (792, 792)
    """

    def __init__(
        self, similarity: Any, lengths: Any = None, **options: Unpack[SoftKeywords]
    ):
        self.model = AlignmentDistribution(similarity, lengths, **options)
        self._arrays = similarity, lengths

    def __repr__(self) -> str:
        return repr(self.model)

    @property
    def support(self) -> AlignmentSupport:
        """Which sets of pairs are alignments."""
        return self.model.support

    def score(self) -> torch.Tensor:
        """The soft score, temperature times ``log_partition``."""
        return api.soft_score(*self._arrays, **self.model.soft_options())

    def log_partition(self) -> torch.Tensor:
        """The log of the sum of exp(score / temperature) over all alignments."""
        temperature: Any = self.model.temperature
        return self.score() / temperature

    def log_prob(self, alignment: Alignment | torch.Tensor) -> torch.Tensor:
        """Log probability of an ``Alignment``, or of partners (..., m)."""
        options = self.model.soft_options()
        return api.alignment_log_prob(alignment, *self._arrays, **options)

    def marginals(self) -> torch.Tensor:
        """The posterior (..., m, n): the probability of every pair."""
        return api.soft_posterior(*self._arrays, **self.model.soft_options())

    def expected_gaps(self) -> tuple[Any, Any]:
        """Expected numbers of residues that open a gap, and that extend one."""
        return api.expected_gaps(*self._arrays, **self.model.soft_options())

    def entropy(self) -> torch.Tensor:
        """In nats."""
        return api.alignment_entropy(*self._arrays, **self.model.soft_options())

    def sample(
        self, count: int, generator: torch.Generator | None = None
    ) -> torch.Tensor:
        """Partners int32 (count, ..., m) of alignments that are drawn."""
        options = self.model.soft_options()
        return api.sample_alignments(
            count, *self._arrays, generator=generator, **options
        )

    def mode(self) -> HardAlignments:
        """The most probable alignment."""
        return api.hard_alignment(*self._arrays, **self.model.hard_options())

    def top_k(self, k: int) -> HardAlignments:
        """The k most probable alignments, the first one first."""
        return api.k_best(k, *self._arrays, **self.model.hard_options())

    def mea(self, threshold: float = 0.0) -> Alignment | HardAlignments:
        """The alignment of maximum expected accuracy: ``mea_alignment``."""
        options, (_, lengths) = self.model.hard_options(), self._arrays
        ends = {name: options[name] for name in ("mode", "free_ends")}
        more = {"threshold": threshold, "lengths": lengths}
        return api.mea_alignment(self.marginals(), **more, **ends)

    def kl(self, other: TensorDistribution) -> torch.Tensor:
        """The Kullback-Leibler divergence from this to another distribution, in nats.

        Raises
        ------
        UsageError
            Their supports or shapes differ.
        """
        if self.support != other.support:
            raise UsageError(
                f"distributions over other alignments: {self.support} and "
                f"{other.support}"
            )
        options = self.model.soft_options()
        shared = {name: x for name, x in options.items() if name not in COSTS}
        models = (
            {name: getattr(x.model, name) for name in ("similarity", *COSTS)}
            for x in (self, other)
        )
        return api.kl_divergence(*models, lengths=self.model.lengths, **shared)

    def cross_entropy(
        self, reference: TensorDistribution | Alignment | torch.Tensor
    ) -> torch.Tensor:
        """The mean of -``log_prob`` over a reference: a distribution, or an alignment
        that is certain; what a model is trained to lower."""
        if isinstance(reference, TensorDistribution):
            return reference.entropy() + reference.kl(self)
        return -self.log_prob(reference)
