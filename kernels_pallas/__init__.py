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
    "letters": "pairs.layout",
    "letters_shape": "pairs.layout",
    "Fill": "pairs.config",
    "Result": "pairs.align",
    "align": "pairs.align",
    "problem_of": "pairs.align",
    "split_identity": "pairs.align",
    "bucket": "pairs.config",
    "choose": "pairs.config",
    "few_query_shapes": "pairs.config",
    "spread": "pairs.config",
    "stack": "pairs.config",
    "fits": "pairs.config",
    "detects": "pairs.config",
    "rows_of": "pairs.config",
    "records_of": "pairs.config",
    "record_bytes": "pairs.config",
    "safe_score": "pairs.config",
    "fill_bytes": "pairs.config",
    "Soft": "similarity.soft_cells",
    "Tables": "similarity.soft_align",
    "soft_score": "similarity.soft_align",
    "soft_expected": "similarity.soft_align",
    "soft_product": "similarity.soft_align",
    "hard_paths": "similarity.hard_align",
    "hard_scores": "similarity.hard_align",
    "LongBlock": "pairs.long_fill",
    "LongFill": "pairs.long_values",
    "LongNumbers": "pairs.long_values",
    "long_block": "pairs.long_fill",
    "long_fits": "pairs.long_values",
    "long_fits_packed": "pairs.long_values",
    "long_sizes": "pairs.long_values",
    "match_table": "words.lcs",
    "target_blocks": "words.lcs",
    "subsequences": "words.lcs",
    "subsequence_counts": "words.lcs",
    "query_words": "words.lcs",
    "MAX_QUERY": "words.lcs",
    "edit_stack": "words.edits",
    "edit_table": "words.edits",
    "edit_distances": "words.edits",
    "MAX_EDIT_QUERY": "words.edits",
    "GROUP_WORD_COUNTS": "words.edits",
    "MAX_ROWS_READ": "words.edits",
    "PAIR_WORD_COUNTS": "words.edits",
    "pair_edits": "words.edits",
    "pair_padding": "words.edits",
    "NearRows": "words.near",
    "NearLimits": "words.near",
    "NearSizes": "words.near",
    "NEAR_BLOCK": "words.near",
    "match_rows": "words.near",
    "MAX_EDIT_ROWS": "words.near",
    "near_ends": "words.near",
    "near_list": "words.near",
    "AMPERE": "core.target",
    "HOPPER": "core.target",
    "TARGETS": "core.target",
    "Target": "core.target",
    "target_of": "core.target",
    "this_target": "core.target",
    "made_for": "core.target",
    "configuration": "core.target",
    "supported": "core.target",
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
