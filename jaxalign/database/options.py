# pyright: strict, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
"""Check the options of ``nearest``, and make those of the pairs that searches align."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, get_args

import numpy as np

from jaxalign.errors import UsageError
from jaxalign.model.choices import Output
from jaxalign.model.numbers import check_fraction, check_whole, exact, is_number
from jaxalign.model.scoring import Scoring, resolve_ends
from jaxalign.model.statistics import parameters
from jaxalign.options import (
    AlignedEnds,
    By,
    Execution,
    LengthIdentity,
    NearestOptions,
    PairOptions,
    SearchOptions,
    shared,
)

MAX_TOP = 10_000  # of each test sequence, all of which are kept
LOCAL = "local"


def pair_options(options: SearchOptions, output: Output) -> PairOptions:
    """The options of the scan, or of its hits."""
    chosen = shared(options, AlignedEnds, Execution)
    return PairOptions(**chosen, window=options.window, output=output)


def check_nearest(options: NearestOptions, scoring: Scoring) -> None:
    """Refuse values that are none, before anything is read."""
    for name, value, choices in (
        ("by", options.by, get_args(By)),
        ("identity", options.identity, get_args(LengthIdentity)),
    ):
        if value not in choices:
            raise UsageError(
                f"{name} = {value!r}: one of {', '.join(choices)} is needed"
            )
    needed = f"1 to {MAX_TOP:,} are needed"
    check_whole("top", options.top, needed, optional=False)
    if options.top > MAX_TOP:
        raise UsageError(f"top = {options.top}: {needed}")
    resolve_ends(options.mode, options.free_ends)
    bands: Any = options.bands
    bands = list(bands) if isinstance(bands, (Sequence, np.ndarray)) else []
    fractions = all(is_number(x) and 0 < x <= 1 for x in bands)
    if not bands or not fractions or any(a >= b for a, b in pairwise(bands)):
        raise UsageError(
            f"bands = {options.bands!r}: rising fractions above 0, up to 1, are needed"
        )
    least = options.min_length_ratio
    if least is not None:
        check_fraction("min_length_ratio", least)
    if least is not None and options.by != "identity":
        raise UsageError("min_length_ratio is for by = 'identity'")
    if options.by == "bits" and parameters(scoring, LOCAL) is None:
        raise UsageError(
            f"by = 'bits': no statistics are published for {scoring}; by = 'score' "
            "needs none"
        )


def nearest_definition(options: NearestOptions, scoring: Scoring) -> str:
    """The identity that is meant, for a methods section."""
    ratio, free = "", options.free_ends
    if options.min_length_ratio is not None:
        least = exact(options.min_length_ratio)
        ratio = f", length ratio (shorter / longer) >= {least}"
    ends = f"{options.mode} alignment"
    if free:
        ends = f"{ends} with free {', '.join(sorted(free))}"
    return f"identity_{options.identity}{ratio}; {ends}, {scoring}"


def identity_options(options: NearestOptions) -> PairOptions:
    """The options of an alignment that counts identical pairs."""
    free = None if options.free_ends is None else tuple(options.free_ends)
    chosen = shared(options, Execution)
    chosen |= {"output": "identity", "equals_alike": True}
    return PairOptions(mode=options.mode, free_ends=free, **chosen)
