# pyright: strict, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
"""The options of an iterated search, with their defaults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

from jaxalign.database.options import SearchOptions, SearchProgress
from jaxalign.errors import UsageError
from jaxalign.model.choices import UnknownLetters
from jaxalign.model.numbers import check_whole, is_number
from jaxalign.pairs.options import Devices, Implementation

FRACTIONS = (
    "include_coverage",
    "min_coverage",
    "min_query_identity",
    "max_identity",
)


@dataclass(frozen=True, kw_only=True)
class FamilyOptions:
    """Every option of an iterated search, with its default."""

    iterations: int = 3
    max_evalue: float = 1e-3
    include: float = 1e-2
    include_coverage: float = 0.3
    max_sequences: int = 10_000
    min_coverage: float = 0.0
    min_query_identity: float = 0.0
    max_identity: float = 1.0
    correct_composition: bool = True
    unknown: UnknownLetters = "error"
    implementation: Implementation | None = None
    memory_budget: int | str | None = None
    threads: int | None = None
    devices: Devices = None
    progress: SearchProgress = None

    @property
    def largest_evalue(self) -> float:
        """The largest E-value of a hit that is reported or included."""
        return max(self.max_evalue, self.include)


class FamilyKeywords(TypedDict, total=False):
    """Options of ``search_family``."""

    iterations: int
    max_evalue: float
    include: float
    include_coverage: float
    max_sequences: int
    min_coverage: float
    min_query_identity: float
    max_identity: float
    correct_composition: bool
    unknown: UnknownLetters
    implementation: Implementation | None
    memory_budget: int | str | None
    threads: int | None
    devices: Devices
    progress: SearchProgress


def check(options: FamilyOptions) -> None:
    """Refuse values that are none.

    Raises
    ------
    UsageError
    """
    for name, text in (("iterations", "passes"), ("max_sequences", "sequences")):
        why = f"1 or more {text} are needed"
        check_whole(name, getattr(options, name), why, optional=False)
    for name in ("max_evalue", "include"):
        value = getattr(options, name)
        if not (is_number(value) and value >= 0):
            raise UsageError(f"{name} = {value!r}: 0 or more is needed")
    for name in FRACTIONS:
        value = getattr(options, name)
        if not (is_number(value) and 0 <= value <= 1):
            raise UsageError(f"{name} = {value!r}: a fraction from 0 to 1 is needed")


def search_options(options: FamilyOptions) -> SearchOptions:
    """The options of one pass."""
    return SearchOptions(
        mode="local",
        top=options.max_sequences,
        statistics="fitted",
        unknown=options.unknown,
        implementation=options.implementation,
        memory_budget=options.memory_budget,
        threads=options.threads,
        devices=options.devices,
    )
