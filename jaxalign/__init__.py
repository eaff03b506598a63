"""Exact biological sequence alignment in JAX: all pairs of a set, scores and paths.

Public names load on first use, so that ``import jaxalign`` imports no jax.
"""

# Whatever is imported here by its own name would be a name of the package.
import importlib as _importlib
import importlib.metadata as _metadata

from jaxalign.fork import watch as _watch

try:
    __version__ = _metadata.version("jaxalign")
except _metadata.PackageNotFoundError:  # a source tree that is not installed
    __version__ = "0+unknown"

_HOMES = {
    "align": "jaxalign.api",
    "align_pairs": "jaxalign.api",
    "align_all": "jaxalign.api",
    "stream_all": "jaxalign.large",
    "scores_matrix": "jaxalign.pairwise",
    "distance_matrix": "jaxalign.pairwise",
    "directions": "jaxalign.api",
    "dp_table": "jaxalign.api",
    "plan": "jaxalign.api",
    "search": "jaxalign.database",
    "stream_search": "jaxalign.search_parts",
    "index_database": "jaxalign.database",
    "open_database": "jaxalign.database",
    "align_three": "jaxalign.three",
    "align_triples": "jaxalign.three",
    "plan_three": "jaxalign.three",
    "soft_score": "jaxalign.soft",
    "soft_posterior": "jaxalign.soft",
    "expected_gaps": "jaxalign.soft",
    "alignment_entropy": "jaxalign.soft",
    "sample_alignments": "jaxalign.soft",
    "mea_alignment": "jaxalign.soft",
    "alignment_log_prob": "jaxalign.soft",
    "kl_divergence": "jaxalign.soft",
    "Scoring": "jaxalign.model.scoring",
    "Alignment": "jaxalign.model.alignment",
    "TripleAlignment": "jaxalign.model.triple",
    "Table": "jaxalign.model.table",
    "Alphabet": "jaxalign.model.alphabet",
    "Sequences": "jaxalign.model.alphabet",
    "JaxalignError": "jaxalign.errors",
    "UsageError": "jaxalign.errors",
    "InputError": "jaxalign.errors",
    "MemoryPlanError": "jaxalign.errors",
    "DeviceError": "jaxalign.errors",
    "DeviceFailure": "jaxalign.errors",
}
__all__ = sorted(_HOMES)

_watch()


def __getattr__(name: str):
    if name not in _HOMES:
        raise AttributeError(f"module 'jaxalign' has no attribute {name!r}")
    value = globals()[name] = getattr(_importlib.import_module(_HOMES[name]), name)
    return value


def __dir__():
    own = (name for name in globals() if name.startswith("__"))
    return sorted({*own, *__all__})
