"""Differentiable alignment on PyTorch's tensors; needs PyTorch."""

from jaxalign.torch.api import TensorDistribution as AlignmentDistribution
from jaxalign.torch.api import alignment_entropy as alignment_entropy
from jaxalign.torch.api import alignment_log_prob as alignment_log_prob
from jaxalign.torch.api import expected_gaps as expected_gaps
from jaxalign.torch.api import hard_alignment as hard_alignment
from jaxalign.torch.api import k_best as k_best
from jaxalign.torch.api import kl_divergence as kl_divergence
from jaxalign.torch.api import mea_alignment as mea_alignment
from jaxalign.torch.api import sample_alignments as sample_alignments
from jaxalign.torch.api import soft_posterior as soft_posterior
from jaxalign.torch.api import soft_score as soft_score
from jaxalign.torch.calls import share_gpu_memory

__all__ = [
    "AlignmentDistribution",
    "alignment_entropy",
    "alignment_log_prob",
    "expected_gaps",
    "hard_alignment",
    "k_best",
    "kl_divergence",
    "mea_alignment",
    "sample_alignments",
    "soft_posterior",
    "soft_score",
]

share_gpu_memory()  # before JAX starts, which a call would have it do
