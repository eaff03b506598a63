# pyright: strict, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
"""The options of searches, with their defaults; which function takes which."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import TypedDict

from jaxalign.model.choices import (
    EndKeywords,
    FreeEnd,
    Mode,
    Output,
    Statistics,
    Strand,
    UnknownLetters,
)
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
