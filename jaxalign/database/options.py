# pyright: strict, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
"""The options of searches, with their defaults; which function takes which."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, TypedDict, get_args

from jaxalign.errors import UsageError
from jaxalign.model.choices import (
    EndKeywords,
    FreeEnd,
    Mode,
    Output,
    Statistics,
    Strand,
    UnknownLetters,
)
from jaxalign.model.identity import Filters
from jaxalign.model.numbers import check_whole, is_number
from jaxalign.model.scoring import Scoring, resolve_ends
from jaxalign.model.statistics import parameters
from jaxalign.pairs.options import Devices, Implementation, PairOptions

# Cells done, and cells in all, or None where the size of the database is not known.
SearchProgress = Callable[[int, int | None], object] | None


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """Every option of a search, with its default."""

    mode: Mode = "local"
    free_ends: Iterable[FreeEnd] | None = None
    top: int = 300
    align_top: bool = True
    strand: Strand | None = None
    statistics: Statistics = "published"
    unknown: UnknownLetters = "error"
    implementation: Implementation | None = None
    memory_budget: int | str | None = None
    threads: int | None = None
    devices: Devices = None
    window: int | None = None
    progress: SearchProgress = None
    part_rows: int | None = None
    skip: Collection[int] = ()
    shard: tuple[int, int] | None = None


class SearchKeywords(EndKeywords, total=False):
    """Options of ``search``."""

    top: int
    align_top: bool
    strand: Strand | None
    statistics: Statistics
    unknown: UnknownLetters
    implementation: Implementation | None
    memory_budget: int | str | None
    threads: int | None
    devices: Devices
    window: int | None
    progress: SearchProgress


class StreamSearchKeywords(SearchKeywords, total=False):
    """Options of ``stream_search``."""

    part_rows: int | None
    skip: Collection[int]
    shard: tuple[int, int] | None


class IndexKeywords(TypedDict, total=False):
    """Options of ``index_database`` that searches have, too."""

    unknown: UnknownLetters


# What a search shares with functions of two sequences.
SHARED = {
    "mode", "free_ends", "implementation", "memory_budget", "threads", "devices",
    "window",
}  # fmt: skip


def pair_options(options: SearchOptions, output: Output) -> PairOptions:
    """The options of the scan, or of its hits."""
    shared = {name: getattr(options, name) for name in SHARED}
    return PairOptions(**shared, output=output)


# ------------------------------------------------------------------------------
# The options of ``nearest``, with their defaults.

By = Literal["identity", "score", "bits"]
LengthIdentity = Literal["longer", "shorter", "mean"]
MAX_TOP = 10_000  # of each test sequence, all of which are kept
BANDS = (0.3, 0.5, 0.7, 0.9)
LOCAL = "local"


@dataclass(frozen=True, kw_only=True)
class NearestOptions:
    """Every option of ``nearest``, with its default."""

    by: By = "identity"
    top: int = 1
    bands: Sequence[float] = BANDS
    mode: Mode = "global"
    free_ends: Iterable[FreeEnd] | None = None
    identity: LengthIdentity = "longer"
    min_length_ratio: float | None = None
    filter: bool = True
    unknown: UnknownLetters = "error"
    implementation: Implementation | None = None
    memory_budget: int | str | None = None
    threads: int | None = None
    devices: Devices = None
    progress: Callable[[int, int | None], object] | None = None


class NearestKeywords(EndKeywords, total=False):
    """Options of ``nearest``."""

    by: By
    top: int
    bands: Sequence[float]
    identity: LengthIdentity
    min_length_ratio: float | None
    filter: bool
    unknown: UnknownLetters
    implementation: Implementation | None
    memory_budget: int | str | None
    threads: int | None
    devices: Devices
    progress: Callable[[int, int | None], object] | None


def check_nearest(options: NearestOptions, scoring: Scoring) -> None:
    """Refuse values that are none, before anything is read.

    Raises
    ------
    UsageError
    """
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
    _check_bands(options.bands)
    least = options.min_length_ratio
    if least is not None and not (is_number(least) and 0 <= least <= 1):
        raise UsageError(f"min_length_ratio = {least!r}: a fraction from 0 to 1")
    if least is not None and options.by != "identity":
        raise UsageError("min_length_ratio is for by = 'identity'")
    if options.by == "bits" and parameters(scoring, LOCAL) is None:
        raise UsageError(
            f"by = 'bits': no statistics are published for {scoring}; by = 'score' "
            "needs none"
        )


def _check_bands(bands: Sequence[float]) -> None:
    fractions = all(is_number(x) and 0 < x <= 1 for x in bands)
    if not bands or not fractions or any(a >= b for a, b in pairwise(bands)):
        raise UsageError(
            f"bands = {bands!r}: rising fractions above 0, up to 1, are needed"
        )


def nearest_definition(options: NearestOptions, scoring: Scoring) -> str:
    """The identity that is meant, for a methods section."""
    ratio, free = "", options.free_ends
    if options.min_length_ratio is not None:
        least = f"{options.min_length_ratio:.15g}"
        ratio = f", length ratio (shorter / longer) >= {least}"
    ends = f"{options.mode} alignment"
    if free:
        ends = f"{ends} with free {', '.join(sorted(free))}"
    return f"identity_{options.identity}{ratio}; {ends}, {scoring}"


def nearest_filters(options: NearestOptions) -> Filters:
    """The pairs that are compared."""
    return Filters(identity=options.identity, min_length_ratio=options.min_length_ratio)


def identity_options(options: NearestOptions) -> PairOptions:
    """The options of an alignment that counts identical pairs."""
    free = None if options.free_ends is None else tuple(options.free_ends)
    return PairOptions(
        mode=options.mode, free_ends=free, output="identity", **_machine(options)
    )


def score_options(options: NearestOptions) -> PairOptions:
    """The options of the search by score."""
    return PairOptions(mode=LOCAL, output="score", **_machine(options))


def local_options(options: NearestOptions) -> PairOptions:
    """The options of the local alignment that score and coverages are of."""
    return PairOptions(mode=LOCAL, output="stats", **_machine(options))


def _machine(options: NearestOptions) -> dict[str, Any]:
    return {
        "implementation": options.implementation,
        "memory_budget": options.memory_budget,
        "threads": options.threads,
        "devices": options.devices,
    }
