"""Options of the functions of similarities: one record, and what each takes of it."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal, Required, TypedDict

import jax

from jaxalign.model.choices import EndKeywords, FreeEnd, Mode
from jaxalign.similarity.arguments import Band, GapCost

SoftImplementation = Literal["log", "blocked", "scaled", "rows", "pallas"]


@dataclass(frozen=True, kw_only=True, eq=False)
class SimilarityOptions:
    """Every option, with its default; gap costs have none. Hard alignment has neither
    ``temperature`` nor ``implementation``."""

    gap_open: GapCost
    gap_extend: GapCost
    temperature: jax.typing.ArrayLike = 1.0
    mode: Mode = "global"
    free_ends: Collection[FreeEnd] | None = None
    adjacent_gaps: bool = True
    band: Band = None
    implementation: SoftImplementation | None = None


class HardKeywords(EndKeywords, total=False):
    """Options of the best alignments."""

    gap_open: Required[GapCost]
    gap_extend: Required[GapCost]
    adjacent_gaps: bool
    band: Band


class HitKeywords(TypedDict, total=False):
    """Options of local hits."""

    gap_open: Required[GapCost]
    gap_extend: Required[GapCost]
    adjacent_gaps: bool
    band: Band


class SharedKeywords(EndKeywords, total=False):
    """Options that are no numbers, so that models to be compared share them."""

    adjacent_gaps: bool
    band: Band
    implementation: SoftImplementation | None


class SoftKeywords(SharedKeywords, total=False):
    """Options of the soft functions."""

    gap_open: Required[GapCost]
    gap_extend: Required[GapCost]
    temperature: jax.typing.ArrayLike
