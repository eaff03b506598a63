"""Alignment kernels for NVIDIA GPUs (Hopper and newer) in Pallas Mosaic GPU.

They import jax and numpy alone. ``align_block`` aligns queries with targets, all with
all, ``align_list`` pairs that share no side, ``three`` is the module of triples;
``supported`` says whether they run here.
Importing the package imports nothing; a name is loaded when it is first used.
"""

from importlib import import_module

_HOMES = {
    "Problem": "layout",
    "letters": "target_letters",
    "Fill": "shapes",
    "Result": "align",
    "align_block": "align",
    "align_list": "align",
    "problem_of": "align",
    "identity_problem": "align",
    "split_identity": "align",
    "bucket": "config",
    "choose": "config",
    "spread": "config",
    "fits": "config",
    "detects": "config",
    "rows_of": "config",
    "records_of": "config",
    "record_bytes": "config",
    "safe_score": "config",
    "fill_bytes": "config",
    "Soft": "soft_shapes",
    "Tables": "soft_align",
    "soft_score": "soft_align",
    "soft_expected": "soft_align",
    "soft_product": "soft_align",
    "supported": "support",
    "three": "three",
    "interpreter": "mosaic",
}
__all__ = sorted(_HOMES)


def __getattr__(name: str):
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f"{__name__}.{_HOMES[name]}")
    found = module if name == _HOMES[name] else getattr(module, name)
    globals()[name] = found  # the next look finds it without this function
    return found


def __dir__():
    return __all__
