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
Numbers are. ``implementation="scaled"`` gives nan where it cannot prove its result.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Any, Unpack

import jax
import torch

import jaxalign
from jaxalign.errors import UsageError
from jaxalign.model.alignment import Alignment, partners_of
from jaxalign.model.choices import EndKeywords
from jaxalign.model.scoring import ScoringLike
from jaxalign.signatures import with_options
from jaxalign.similarity.options import (
    HardKeywords,
    SharedKeywords,
    SimilarityOptions,
    SoftKeywords,
)
from jaxalign.similarity.result import HardAlignments
from jaxalign.torch.arguments import check_numbers, function_of
from jaxalign.torch.calls import call


def _call(public: Any, *arguments: Any, **options: Any) -> Any:
    """A public function of JAX's arrays, of tensors."""
    check_numbers(options)
    function, values = function_of(public, arguments, options)
    leaves = call(function, *values)
    return jax.tree.unflatten(function.tree, leaves)


@with_options(SimilarityOptions, named=True)
def soft_score(
    similarity: Any, lengths: Any = None, **options: Unpack[SoftKeywords]
) -> torch.Tensor:
    """T log of the sum of exp(score / T) over all alignments, of the batch shape.

    Parameters as in ``jaxalign.soft_score``, tensors for arrays. The first derivative
    is computed with the score, where a gradient is wanted.

    Raises
    ------
    UsageError
        Shapes, mode or implementation break a rule; a number is no cost.
    DeviceError
        A device that JAX does not see.

    Examples
    --------
    >>> import torch, jaxalign.torch
    >>> s = torch.zeros(5, 7, requires_grad=True)
    >>> score = jaxalign.torch.soft_score(s, gap_open=0.0, gap_extend=0.0)
    >>> score.backward()
    >>> round(score.exp().item()), round(s.grad.sum().item(), 3)
    (792, 2.917)
    """
    return _call(jaxalign.soft_score, similarity, lengths, **options)


@with_options(SimilarityOptions, named=True)
def soft_posterior(
    similarity: Any, lengths: Any = None, **options: Unpack[SoftKeywords]
) -> torch.Tensor:
    """Probability of every pair (..., m, n): ``jaxalign.soft_posterior``.

    Examples
    --------
    >>> import torch, jaxalign.torch
    >>> s = 9.0 * torch.eye(3)
    >>> jaxalign.torch.soft_posterior(s, gap_open=5, gap_extend=1).round(decimals=2)[0]
    tensor([1., 0., 0.])
    """
    return _call(jaxalign.soft_posterior, similarity, lengths, **options)


@with_options(SimilarityOptions, named=True)
def expected_gaps(
    similarity: Any, lengths: Any = None, **options: Unpack[SoftKeywords]
) -> tuple[Any, Any]:
    """Expected number of residues that open a gap, and of those that extend one:
    ``jaxalign.expected_gaps``."""
    opens, extensions = _call(jaxalign.expected_gaps, similarity, lengths, **options)
    return opens, extensions


@with_options(SimilarityOptions, named=True)
def alignment_entropy(
    similarity: Any, lengths: Any = None, **options: Unpack[SoftKeywords]
) -> torch.Tensor:
    """Entropy of the distribution over alignments, in nats, of the batch shape:
    ``jaxalign.alignment_entropy``."""
    return _call(jaxalign.alignment_entropy, similarity, lengths, **options)


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
    similarity, lengths, **options : as in ``soft_score``
    """
    if isinstance(alignment, Alignment):
        alignment = partners_of(alignment)
    arguments = alignment, similarity, lengths
    return _call(jaxalign.alignment_log_prob, *arguments, **options)


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
    return _call(jaxalign.kl_divergence, dict(p), dict(q), lengths, **options)


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
    similarity, lengths, **options : as in ``soft_score``
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
        return _call(_sampler(count), seeds, similarity, lengths, **options)


@lru_cache
def _sampler(count: int) -> Any:
    def sample(seeds: list[int], *arguments: Any, **options: Any):
        key = jax.random.fold_in(jax.random.key(seeds[0]), seeds[1])
        return jaxalign.sample_alignments(key, count, *arguments, **options)

    return sample


@with_options(SimilarityOptions, named=True)
def hard_alignment(
    similarity: Any, lengths: Any = None, **options: Unpack[HardKeywords]
) -> HardAlignments:
    """The best alignment, its fields tensors: ``jaxalign.hard_alignment``; without a
    gradient.

    Examples
    --------
    >>> import torch, jaxalign.torch
    >>> s = torch.tensor([[5.0, 0, 0, 0], [0, 0, 0, 5.0]])
    >>> best = jaxalign.torch.hard_alignment(s, gap_open=2.0, gap_extend=0.5)
    >>> best.score.item(), best.alignment("MK", "MAAK").rows()
    (7.5, ('M--K', 'MAAK'))
    """
    with torch.no_grad():
        return _call(jaxalign.hard_alignment, similarity, lengths, **options)


@with_options(SimilarityOptions, named=True)
def k_best(
    k: int, similarity: Any, lengths: Any = None, **options: Unpack[HardKeywords]
) -> HardAlignments:
    """The k best alignments, all different: ``jaxalign.k_best``; without a gradient."""
    with torch.no_grad():
        return _call(_several(k), similarity, lengths, **options)


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
        raise UsageError("sequences and a scoring are for one pair without lengths")
    numbers = {"threshold": threshold, "lengths": lengths}
    with torch.no_grad():
        return _call(jaxalign.mea_alignment, posterior, **numbers, **options)
