"""Exact biological sequence alignment in JAX: all pairs of a set, scores and paths.

Public names load on first use, so that ``import jaxalign`` imports no jax.
"""

# Whatever is imported here by its own name would be a name of the package.
import importlib as _importlib

from jaxalign.model import WRITERS as _WRITERS
from jaxalign.runtime.forks import watch_forks as _watch_forks

_HOMES = {
    "align": "jaxalign.pairs.api",
    "align_pairs": "jaxalign.pairs.api",
    "align_all": "jaxalign.pairs.api",
    "hard_alignment": "jaxalign.similarity.hard.api",
    "k_best": "jaxalign.similarity.hard.api",
    "local_hits": "jaxalign.similarity.hard.api",
    "profile_similarity": "jaxalign.similarity.hard.api",
    "hard_matrix": "jaxalign.similarity.hard.matrices",
    "stream_hard_matrix": "jaxalign.similarity.hard.matrices",
    "ScoreBlock": "jaxalign.similarity.hard.matrices",
    "align_profile": "jaxalign.pairs.profile_alignments",
    "HardAlignments": "jaxalign.similarity.hard.api",
    "stream_all": "jaxalign.pairs.jobs",
    "scores_matrix": "jaxalign.pairs.api",
    "distance_matrix": "jaxalign.pairs.api",
    "edit_distance": "jaxalign.words.api",
    "edit_distance_graph": "jaxalign.words.api",
    "directions": "jaxalign.pairs.api",
    "dp_table": "jaxalign.pairs.api",
    "plan": "jaxalign.pairs.api",
    "search": "jaxalign.database.api",
    "stream_search": "jaxalign.database.api",
    "nearest": "jaxalign.database.nearest",
    "Nearest": "jaxalign.database.nearest_result",
    "index_database": "jaxalign.database.api",
    "open_database": "jaxalign.database.api",
    "read_structures": "jaxalign.database.api",
    "search_complexes": "jaxalign.family.api",
    "search_family": "jaxalign.family.api",
    "cluster": "jaxalign.homology.api",
    "deduplicate": "jaxalign.homology.api",
    "identity_graph": "jaxalign.homology.api",
    "split": "jaxalign.homology.api",
    "split_pairs": "jaxalign.homology.api",
    "split_series": "jaxalign.homology.api",
    "audit_pairs": "jaxalign.homology.api",
    "audit": "jaxalign.homology.api",
    "purge": "jaxalign.homology.purge",
    "Purge": "jaxalign.homology.purge_scan",
    "repertoire_graph": "jaxalign.repertoire.api",
    "stream_repertoire": "jaxalign.repertoire.api",
    "align_three": "jaxalign.triples.api",
    "align_triples": "jaxalign.triples.api",
    "plan_three": "jaxalign.triples.api",
    "soft_score": "jaxalign.similarity.soft.api",
    "soft_posterior": "jaxalign.similarity.soft.api",
    "expected_gaps": "jaxalign.similarity.soft.api",
    "alignment_entropy": "jaxalign.similarity.soft.api",
    "sample_alignments": "jaxalign.similarity.soft.api",
    "mea_alignment": "jaxalign.similarity.soft.api",
    "AlignmentDistribution": "jaxalign.similarity.distribution",
    "alignment_log_prob": "jaxalign.similarity.soft.api",
    "kl_divergence": "jaxalign.similarity.soft.api",
    "bucket_lengths": "jaxalign.similarity.soft.buckets",
    "LengthBucket": "jaxalign.similarity.soft.buckets",
    "Profile": "jaxalign.model.profile",
    "Scoring": "jaxalign.model.scoring",
    "Alignment": "jaxalign.model.alignment",
    "TripleAlignment": "jaxalign.model.triple",
    "TripleTable": "jaxalign.model.triple",
    "Table": "jaxalign.model.table",
    "ComplexAlignment": "jaxalign.family.pairing",
    "FamilyAlignment": "jaxalign.family.result",
    "RepertoireGraph": "jaxalign.repertoire.result",
    "EdgeBlock": "jaxalign.repertoire.graph",
    "Plan": "jaxalign.pairs.plan",
    "Part": "jaxalign.pairs.part_stream",
    "TriplePlan": "jaxalign.triples.plan",
    "Clusters": "jaxalign.homology.result",
    "Split": "jaxalign.homology.result",
    "PairSplit": "jaxalign.homology.pair_splits",
    "PairAudit": "jaxalign.homology.pair_splits",
    "Audit": "jaxalign.homology.audit",
    "Edges": "jaxalign.model.choices",
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

_WRITERS["Table"] = "jaxalign.io.formats"
_WRITERS["Table columns"] = "jaxalign.io.columns"
_WRITERS["columns"] = "jaxalign.io.delimited"
_watch_forks()


def _version() -> str:
    from importlib import metadata  # which takes longer than all the rest here

    try:
        return metadata.version("jaxalign")
    except metadata.PackageNotFoundError:  # a source tree that is not installed
        return "0+unknown"


def __getattr__(name: str):
    if name == "__version__":
        return globals().setdefault(name, _version())
    if name not in _HOMES:
        raise AttributeError(f"module 'jaxalign' has no attribute {name!r}")
    value = globals()[name] = getattr(_importlib.import_module(_HOMES[name]), name)
    return value


def __dir__():
    dunders = (name for name in globals() if name.startswith("__"))
    return sorted({*dunders, "__version__", *__all__})
