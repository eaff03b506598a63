"""Alignment kernels for NVIDIA GPUs (Ampere and newer) in Pallas Mosaic GPU.

They import jax and numpy alone. ``align`` aligns queries with targets, all with all or
pair by pair, ``three`` is the module of triples; ``supported`` says whether they run
here.
Importing the package imports nothing; a name is loaded when it is first used.
"""

from importlib import import_module
from typing import Any

_HOMES = {
    "Problem": "pairs.layout",
    "letters": "pairs.target_letters",
    "letters_shape": "pairs.target_letters",
    "Fill": "pairs.shapes",
    "Result": "pairs.align",
    "align": "pairs.align",
    "problem_of": "pairs.align",
    "split_identity": "pairs.align",
    "bucket": "pairs.config",
    "choose": "pairs.config",
    "few_query_shapes": "pairs.config",
    "spread": "pairs.config",
    "stack": "pairs.stacks",
    "fits": "pairs.config",
    "detects": "pairs.config",
    "rows_of": "pairs.config",
    "records_of": "pairs.config",
    "record_bytes": "pairs.config",
    "safe_score": "pairs.config",
    "fill_bytes": "pairs.config",
    "Soft": "similarity.soft.shapes",
    "Tables": "similarity.soft.align",
    "soft_score": "similarity.soft.align",
    "soft_expected": "similarity.soft.align",
    "soft_product": "similarity.soft.align",
    "hard_paths": "similarity.hard.align",
    "hard_scores": "similarity.hard.align",
    "LongBlock": "pairs.long_block",
    "LongFill": "pairs.long_shapes",
    "LongNumbers": "pairs.long_shapes",
    "long_block": "pairs.long_block",
    "long_fits": "pairs.long_shapes",
    "long_fits_packed": "pairs.long_values",
    "long_sizes": "pairs.long_shapes",
    "match_table": "bits.lcs",
    "target_blocks": "bits.match_words",
    "subsequences": "bits.lcs",
    "subsequence_counts": "bits.lcs",
    "query_words": "bits.lcs",
    "MAX_QUERY": "bits.lcs",
    "edit_stack": "edits.edits",
    "edit_table": "edits.edits",
    "edit_distances": "edits.edits",
    "MAX_EDIT_QUERY": "edits.edits",
    "GROUP_WORD_COUNTS": "edits.edit_pairs",
    "MAX_ROWS_READ": "edits.edit_pairs",
    "PAIR_WORD_COUNTS": "edits.edit_pairs",
    "pair_edits": "edits.edit_pairs",
    "pair_padding": "edits.edit_pairs",
    "NearRows": "near.sums",
    "NearLimits": "near.sums",
    "NearSizes": "near.sums",
    "NEAR_BLOCK": "near.sums",
    "match_rows": "near.sums",
    "MAX_EDIT_ROWS": "near.sums",
    "near_ends": "near.sums",
    "near_list": "near.sums",
    "AMPERE": "core.target",
    "HOPPER": "core.target",
    "TARGETS": "core.target",
    "Target": "core.target",
    "target_of": "core.target",
    "this_target": "core.target",
    "made_for": "core.target",
    "configuration": "core.target",
    "supported": "core.support",
    "three": "triples.api",
    "interpreter": "core.mosaic",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f"{__name__}.{_HOMES[name]}")
    value = module if name == "three" else getattr(module, name)
    globals()[name] = value  # the next look finds it without this function
    return value


def __dir__():
    return __all__
