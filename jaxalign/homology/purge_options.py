# pyright: strict, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
"""The options of ``purge``, with their defaults, and the cut that they amount to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

from jaxalign.errors import UsageError
from jaxalign.homology.options import (
    Definition,
    HomologyOptions,
    LengthIdentity,
    define,
    pair_options,
)
from jaxalign.model.choices import EndKeywords, FreeEnd, Mode, UnknownLetters
from jaxalign.model.numbers import is_number
from jaxalign.model.scoring import Scoring, resolve_ends
from jaxalign.model.statistics import parameters
from jaxalign.pairs.options import Devices, Implementation, PairOptions

LOCAL = "local"
NEEDED = "one cut is needed, and not two: max_identity, score, or max_evalue"


@dataclass(frozen=True, kw_only=True)
class PurgeOptions:
    """Every option of ``purge``, with its default."""

    max_identity: float | None = None
    score: float | None = None
    max_evalue: float | None = None
    min_cov: float | None = None
    mode: Mode | None = None
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


class PurgeKeywords(EndKeywords, total=False):
    """Options of ``purge``."""

    max_identity: float | None
    score: float | None
    max_evalue: float | None
    min_cov: float | None
    identity: LengthIdentity
    min_length_ratio: float | None
    filter: bool
    unknown: UnknownLetters
    implementation: Implementation | None
    memory_budget: int | str | None
    threads: int | None
    devices: Devices
    progress: Callable[[int, int | None], object] | None


@dataclass(frozen=True, eq=False)
class PurgeCut:
    """When a sequence is too near to a test sequence.

    Attributes
    ----------
    scoring : Scoring
    options : PurgeOptions
    definition : Definition or None
        Of a cut by identity.
    """

    scoring: Scoring
    options: PurgeOptions
    definition: Definition | None

    @property
    def column(self) -> str:
        """The name of the value that is compared with the cut."""
        if self.definition is not None:
            return f"identity_{self.options.identity}"
        return "score" if self.options.score is not None else "evalue"

    def __str__(self) -> str:
        """The sentence for a methods section."""
        options, cov = self.options, ""
        if options.min_cov is not None:
            cov = f", of both at least {options.min_cov:.15g} in the alignment"
        if self.definition is not None:
            return f"{self.definition}{cov}"
        if options.score is not None:
            cut = f"score >= {options.score:.15g}"
        else:
            cut = f"E-value <= {options.max_evalue:.15g}"
        return f"{cut}{cov}; local alignment, {self.scoring}"

    def pair_options(self) -> PairOptions:
        """The options of the pairs that may be too near; of a cut by E-value those of
        all pairs."""
        options = self.options
        if self.definition is None:
            level = "score" if options.min_cov is None else "stats"
            chosen = PairOptions(mode=LOCAL, output=level, min_score=options.score)
        else:
            chosen = pair_options(self.definition)
            if options.min_cov is not None:
                chosen = replace(chosen, output="stats")
        machine = ("implementation", "memory_budget", "threads", "devices")
        values = {name: getattr(options, name) for name in machine}
        return replace(chosen, min_cov=options.min_cov, **values)


def cut_of(options: PurgeOptions, scoring: Scoring) -> PurgeCut:
    """The checked cut of some options.

    Raises
    ------
    UsageError
    """
    cuts = options.max_identity, options.score, options.max_evalue
    if sum(cut is not None for cut in cuts) != 1:
        raise UsageError(NEEDED)
    least = options.min_cov
    if least is not None and not (is_number(least) and 0 <= least <= 1):
        raise UsageError(f"min_cov = {least!r}: a fraction from 0 to 1 is needed")
    if options.max_identity is not None:
        return PurgeCut(scoring, options, _definition(options, scoring))
    _check_local(options, scoring)
    return PurgeCut(scoring, options, None)


def _definition(options: PurgeOptions, scoring: Scoring) -> Definition:
    mode = options.mode or "global"
    if options.min_cov is not None and mode != LOCAL:
        if not resolve_ends(mode, options.free_ends):
            raise UsageError(
                f"min_cov = {options.min_cov!r}: mode {mode} spans both sequences from "
                "end to end; min_length_ratio compares their lengths, and min_cov is "
                "for mode local and for free ends"
            )
    names = ("free_ends", "identity", "min_length_ratio", "filter")
    names += ("implementation", "memory_budget", "threads", "devices")
    chosen: dict[str, Any] = {name: getattr(options, name) for name in names}
    links = HomologyOptions(mode=mode, **chosen)
    return define(scoring, links, "max_identity", options.max_identity)


def _check_local(options: PurgeOptions, scoring: Scoring) -> None:
    if options.mode not in (None, LOCAL) or options.free_ends is not None:
        raise UsageError("score and max_evalue are those of local alignments")
    if options.min_length_ratio is not None:
        raise UsageError("min_length_ratio is for max_identity")
    score, evalue = options.score, options.max_evalue
    if score is not None and not (is_number(score) and isfinite(score) and score > 0):
        raise UsageError(f"score = {score!r}: a number above 0 is needed")
    if evalue is None:
        return
    if not (is_number(evalue) and isfinite(evalue) and evalue > 0):
        raise UsageError(f"max_evalue = {evalue!r}: a number above 0 is needed")
    if parameters(scoring, LOCAL) is None:
        raise UsageError(f"max_evalue: no statistics are published for {scoring}")
