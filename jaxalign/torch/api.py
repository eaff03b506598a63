"""The functions of similarities on PyTorch's tensors, on a CPU and on CUDA devices.

Each is the function of the same name of ``jaxalign``, with tensors in the place of
JAX's arrays. They share memory with JAX, and results lie on the device of the inputs.
``backward``, ``create_graph=True`` and ``torch.autograd.gradcheck`` work, by every
tensor of floats: similarity or embeddings, gap costs, temperature.

float64 is computed in float64, whatever JAX's settings are, and bfloat16 and float16 in
float32, so ``torch.autocast`` changes nothing here: a network's embeddings may come in
bfloat16, the result is float32, and each gradient has the dtype of its input. Lengths,
codes and partners may be int64.

A program is compiled at the first call for each shape and each set of options. Tensors
are not checked, as inside ``jax.jit``: the result for what means nothing is nan.
Numbers are. The first derivative is computed with the value, where one is wanted.

Examples
--------
>>> import torch, jaxalign.torch
>>> s = torch.zeros(5, 7, requires_grad=True)
>>> score = jaxalign.torch.soft_score(s, gap_open=0.0, gap_extend=0.0)
>>> score.backward()
>>> round(score.exp().item()), round(s.grad.sum().item(), 3)
(792, 2.917)
>>> s = 9.0 * torch.eye(3)
>>> jaxalign.torch.soft_posterior(s, gap_open=5, gap_extend=1).round(decimals=2)[0]
tensor([1., 0., 0.])
>>> s = torch.tensor([[5.0, 0, 0, 0], [0, 0, 0, 5.0]])
>>> best = jaxalign.torch.hard_alignment(s, gap_open=2.0, gap_extend=0.5)
>>> best.score.item(), best.alignment("MK", "MAAK").rows()
(7.5, ('M--K', 'MAAK'))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from inspect import signature
from typing import Any, Protocol, TypeVar, Unpack

import jax
import torch

import jaxalign
from jaxalign.errors import UsageError
from jaxalign.model.alignment import Alignment, partners_of
from jaxalign.model.choices import EndKeywords
from jaxalign.model.scoring import ScoringLike
from jaxalign.signatures import with_options
from jaxalign.similarity.distribution import AlignmentDistribution
from jaxalign.similarity.options import (
    HardKeywords,
    SharedKeywords,
    SimilarityOptions,
    SoftKeywords,
)
from jaxalign.similarity.result import HardAlignments
from jaxalign.torch.calls import call_public, check_numbers

Result = TypeVar("Result", covariant=True)


class SoftFunction(Protocol[Result]):
    """A function of a similarity that has a gradient."""

    def __call__(
        self, similarity: Any, lengths: Any = None, **options: Unpack[SoftKeywords]
    ) -> Result: ...


class HardFunction(Protocol):
    """A function of a similarity that finds paths."""

    def __call__(
        self, similarity: Any, lengths: Any = None, **options: Unpack[HardKeywords]
    ) -> HardAlignments: ...


def _of_tensors(public: Callable[..., Any], gradient: bool = True) -> Any:
    """``public`` of tensors, with its signature; and its text, whose examples have
    arrays of JAX."""

    def function(*arguments: Any, **options: Any) -> Any:
        with torch.set_grad_enabled(gradient and torch.is_grad_enabled()):
            return call_public(public, arguments, options)

    name, text = public.__name__, str(public.__doc__).partition("    Examples\n")[0]
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"``jaxalign.{name}`` of tensors.\n\n    {text}"
    shown = signature(public)
    if shown.return_annotation == "jax.Array":
        shown = shown.replace(return_annotation="torch.Tensor")
    vars(function)["__signature__"] = shown
    return with_options(SimilarityOptions, named=True)(function)


soft_score: SoftFunction[torch.Tensor] = _of_tensors(jaxalign.soft_score)
soft_posterior: SoftFunction[torch.Tensor] = _of_tensors(jaxalign.soft_posterior)
expected_gaps: SoftFunction[tuple[Any, Any]] = _of_tensors(jaxalign.expected_gaps)
alignment_entropy: SoftFunction[torch.Tensor] = _of_tensors(jaxalign.alignment_entropy)
hard_alignment: HardFunction = _of_tensors(jaxalign.hard_alignment, gradient=False)


@with_options(SimilarityOptions, named=True)
def alignment_log_prob(
    alignment: Any,
    similarity: Any,
    lengths: Any = None,
    **options: Unpack[SoftKeywords],
) -> torch.Tensor:
    """Log probability of a given alignment, of the batch shape:
    ``jaxalign.alignment_log_prob``, a network's loss.

    Parameters
    ----------
    alignment : Alignment, or integers (..., m)
        Partners: for each residue of the query that of the target, or -1.
    """
    if isinstance(alignment, Alignment):
        alignment = partners_of(alignment)
    arguments = alignment, similarity, lengths
    return call_public(jaxalign.alignment_log_prob, arguments, options)


@with_options(SimilarityOptions, named=True)
def kl_divergence(
    p: Mapping[str, Any],
    q: Mapping[str, Any],
    lengths: Any = None,
    **options: Unpack[SharedKeywords],
) -> torch.Tensor:
    """Kullback-Leibler divergence of two models of alignments, in nats:
    ``jaxalign.kl_divergence``."""
    for model in (p, q):
        check_numbers(dict(model))
    return call_public(jaxalign.kl_divergence, (dict(p), dict(q), lengths), options)


@with_options(SimilarityOptions, named=True)
def sample_alignments(
    count: int,
    similarity: Any,
    lengths: Any = None,
    *,
    generator: torch.Generator | None = None,
    **options: Unpack[SoftKeywords],
) -> torch.Tensor:
    """Partners int32 (count, ..., m) of alignments that are drawn:
    ``jaxalign.sample_alignments``.

    Parameters
    ----------
    count : int
    generator : torch.Generator, optional
        PyTorch's usual one by default, which ``torch.manual_seed`` sets.

    Examples
    --------
    >>> import torch, jaxalign.torch
    >>> s, gaps = 50.0 * torch.eye(3), {"gap_open": 5, "gap_extend": 1}
    >>> jaxalign.torch.sample_alignments(2, s, **gaps).tolist()
    [[0, 1, 2], [0, 1, 2]]
    """
    device = "cpu" if generator is None else generator.device
    seeds = torch.randint(2**31, (2,), generator=generator, device=device).tolist()
    with torch.no_grad():
        return call_public(_sampler(count), (seeds, similarity, lengths), options)


@lru_cache
def _sampler(count: int) -> Any:
    def sample(seeds: list[int], *arguments: Any, **options: Any):
        key = jax.random.fold_in(jax.random.key(seeds[0]), seeds[1])
        return jaxalign.sample_alignments(key, count, *arguments, **options)

    return sample


@with_options(SimilarityOptions, named=True)
def k_best(
    k: int, similarity: Any, lengths: Any = None, **options: Unpack[HardKeywords]
) -> HardAlignments:
    """The k best alignments, all different: ``jaxalign.k_best``; without a gradient."""
    with torch.no_grad():
        return call_public(_several(k), (similarity, lengths), options)


@lru_cache
def _several(k: int) -> Any:
    return partial(jaxalign.k_best, k)


@with_options(SimilarityOptions, named=True)
def mea_alignment(
    posterior: torch.Tensor,
    query: str | None = None,
    target: str | None = None,
    scoring: ScoringLike = None,
    *,
    threshold: float = 0.0,
    lengths: Any = None,
    **options: Unpack[EndKeywords],
) -> Alignment | HardAlignments:
    """The alignment of maximum expected accuracy under a posterior:
    ``jaxalign.mea_alignment``, an ``Alignment`` of one pair, ``HardAlignments`` of a
    batch or of lengths; without a gradient."""
    if posterior.ndim == 2 and lengths is None:
        array = posterior.detach().cpu().float().numpy()
        texts = query, target, scoring
        return jaxalign.mea_alignment(array, *texts, threshold=threshold, **options)
    if query or target or scoring:
        raise UsageError("sequences and a scoring need one pair, without lengths")
    options |= {"threshold": threshold, "lengths": lengths}
    with torch.no_grad():
        return call_public(jaxalign.mea_alignment, (posterior,), options)


class TensorDistribution(AlignmentDistribution):
    """``jaxalign.AlignmentDistribution`` of tensors; ``jaxalign.torch`` has it under
    that name.

    Examples
    --------
    >>> import torch, jaxalign.torch
    >>> p = jaxalign.torch.AlignmentDistribution(
    ...     torch.zeros(5, 7), gap_open=0.0, gap_extend=0.0
    ... )
    >>> round(p.log_partition().exp().item()), round(p.entropy().exp().item())
    (792, 792)
    """

    functions = {
        function.__name__: function
        for function in (
            soft_score,
            soft_posterior,
            expected_gaps,
            alignment_entropy,
            alignment_log_prob,
            kl_divergence,
            hard_alignment,
            k_best,
            mea_alignment,
        )
    }

    def sample(
        self, count: int, generator: torch.Generator | None = None
    ) -> torch.Tensor:
        """Partners int32 (count, ..., m) of alignments that are drawn."""
        arrays, options = (self.similarity, self.lengths), self.soft_options()
        return sample_alignments(count, *arrays, generator=generator, **options)
