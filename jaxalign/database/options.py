# pyright: strict, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
"""Check the options of ``nearest``, and make those of the pairs that searches align."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from math import isfinite
from typing import Any, get_args

import numpy as np

from jaxalign.errors import UsageError
from jaxalign.model.alphabet import Sequences
from jaxalign.model.choices import Output
from jaxalign.model.numbers import check_fraction, check_whole, exact, is_number
from jaxalign.model.scoring import Scoring, is_symmetric, resolve_ends
from jaxalign.model.statistics import parameters
from jaxalign.options import (
    AlignedEnds,
    By,
    Execution,
    LengthIdentity,
    Measure,
    NearestOptions,
    PairOptions,
    SearchOptions,
    shared,
)
from jaxalign.pairs.options import (
    SHORT_REACH,
    STRANDS_SAID,
    check_gate,
    coverage_said,
    end_to_end,
    reach,
    with_link,
)

MAX_TOP = 10_000  # of each test sequence, all of which are kept
LOCAL = "local"


def pair_options(options: SearchOptions, output: Output) -> PairOptions:
    """The options of the scan, or of its hits."""
    chosen = shared(options, AlignedEnds, Execution)
    return PairOptions(**chosen, window=options.window, output=output)


def check_hsps(options: SearchOptions, scoring: Scoring) -> None:
    """Refuse further alignments where no bound on E-values tells how many there are."""
    said = f"hsps = {options.hsps!r}"
    check_whole("hsps", options.hsps, "1 or more alignments are needed", optional=False)
    if options.hsps == 1:
        return
    if options.mode != LOCAL or not options.align_top:
        raise UsageError(f"{said}: needs local alignments with paths")
    if options.statistics == "published" and parameters(scoring, LOCAL) is None:
        raise UsageError(
            f"{said}: no statistics are published for {scoring}; give "
            "statistics = 'fitted'"
        )


def check_nearest(options: NearestOptions, scoring: Scoring) -> None:
    """Refuse values that are none, before anything is read."""
    for name, value, choices in (
        ("by", options.by, get_args(By)),
        ("identity", options.identity or "longer", get_args(LengthIdentity)),
    ):
        if value not in choices:
            raise UsageError(
                f"{name} = {value!r}: one of {', '.join(choices)} is needed"
            )
    needed = f"1 to {MAX_TOP:,} are needed"
    check_whole("top", options.top, needed, optional=False)
    if options.top > MAX_TOP:
        raise UsageError(f"top = {options.top}: {needed}")
    resolve_ends(options.mode or "global", options.free_ends)
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
        raise UsageError("min_length_ratio needs by = 'identity'")
    score = options.min_score
    if score is not None and not (is_number(score) and isfinite(score)):
        raise UsageError(f"min_score = {score!r}: a finite number is needed")
    if score is not None and options.by != "identity":
        raise UsageError("min_score needs by = 'identity'")
    if options.min_cov is not None and options.by != "identity":
        raise UsageError("min_cov needs by = 'identity'")
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
    if options.min_score is not None:
        ratio += f", score >= {exact(options.min_score)}"
    ratio += coverage_said(options)
    ends = f"{options.mode} alignment"
    if free:
        ends = f"{ends} with free {', '.join(sorted(free))}"
    said = f"identity_{options.identity}{ratio}; {ends}, {scoring}"
    if options.link == LOCAL:
        whole = end_to_end(options)
        also = f"identity_{whole.identity}; {whole.mode} alignment"
        said = f"{said}; or, with a short sequence, {also}"
    return f"{said}{STRANDS_SAID[options.strand]}"


def identity_options(options: NearestOptions) -> PairOptions:
    """The options of an alignment that counts identical pairs."""
    free = None if options.free_ends is None else tuple(options.free_ends)
    chosen = shared(options, Execution)
    chosen |= {"output": "identity", "equals_alike": True}
    return PairOptions(mode=options.mode or "global", free_ends=free, **chosen)


def linked(
    options: NearestOptions, scoring: Scoring, tests: Sequences
) -> NearestOptions:
    """Write ``link`` out; the search that finds a score by chance is of the test set,
    so that a score is the same whatever the corpus. By score a link says identities
    alone.

    Raises UsageError: a coverage that is none, has no effect or depends on the order
    """
    if options.by == "identity":
        options = with_link(options, scoring, [tests])
        mode, free = options.mode or "global", options.free_ends
        check_gate(options, mode, free)
        ends = resolve_ends(mode, free)
        if options.min_cov is not None and not is_symmetric(scoring, ends):
            raise UsageError(
                f"min_cov = {exact(options.min_cov)}: a coverage is that of either "
                "order of two sequences, and needs a symmetric matrix and symmetric "
                "free ends"
            )
        return options
    check_gate(options, LOCAL, None)
    written_out = with_link(replace(options, min_score=0), scoring, [tests])
    return replace(written_out, min_score=options.min_score, link=None)


def divided(
    queries: Sequences, targets: Sequences, scoring: Scoring, options: NearestOptions
) -> list[tuple[NearestOptions, np.ndarray, np.ndarray]]:
    """Divide the pairs of two sets by what is asked of them: (options, queries,
    targets), one part at least. Pairs with a short sequence that reaches the score of
    ``link="local"`` are in two parts: the larger identity counts."""
    sides = [reach(x, scoring, options) for x in (queries, targets)]
    able, others = (np.flatnonzero(x >= 1) for x in sides)
    short, few = (np.flatnonzero(x < SHORT_REACH) for x in sides)
    whole, long = end_to_end(options), np.flatnonzero(sides[0] >= SHORT_REACH)
    every = np.arange(len(targets))
    parts = [(options, able, others), (whole, short, every), (whole, long, few)]
    return [x for x in parts if len(x[1]) and len(x[2])] or parts[:1]


def gated_options(options: NearestOptions) -> PairOptions:
    """The options of the pairs that reach ``min_score``."""
    measure = shared(options, Measure) | {"identity": None, "strand": None}
    measure |= {"min_cov": None, "coverage": "both"}  # of paths: ``PieceRegion``
    return replace(identity_options(options), min_score=options.min_score, **measure)
