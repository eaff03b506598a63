# pyright: strict, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
"""The options of functions of three sequences, with their defaults."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypedDict

from jaxalign.errors import UsageError
from jaxalign.model.choices import GapModel, Mode
from jaxalign.model.numbers import check_whole
from jaxalign.model.scoring import MODES, Scoring
from jaxalign.model.triple import GAP_MODELS
from jaxalign.triples import plan

Schedule = Literal["auto", "sloped", "layered"]
Traceback = Literal["auto", "store", "split", "bt1", "bt2", "bt3"]
TripleImplementation = Literal["planes", "layers", "pallas"]
Progress = Callable[[int, int], object] | None


@dataclass(frozen=True, kw_only=True)
class TripleOptions:
    """Every option of a function of three sequences, with its default."""

    gap_model: GapModel = "quasi-natural"
    mode: Mode = "global"
    memory_budget: int | str | None = None
    implementation: TripleImplementation | None = None
    schedule: Schedule = "auto"
    traceback: Traceback | None = "auto"
    chunk: int | None = None
    height: int | None = None
    depth: int | None = None
    progress: Progress = None


class ModelKeywords(TypedDict, total=False):
    """Options of every function."""

    gap_model: GapModel
    mode: Mode
    memory_budget: int | str | None
    implementation: TripleImplementation | None


class PlanThreeKeywords(ModelKeywords, total=False):
    """Options of ``plan_three``."""

    schedule: Schedule
    traceback: Traceback | None
    chunk: int | None
    height: int | None
    depth: int | None


class AlignThreeKeywords(PlanThreeKeywords, total=False):
    """Options of ``align_three``."""

    progress: Progress


class AlignTriplesKeywords(ModelKeywords, total=False):
    """Options of ``align_triples``, beside its ``traceback``."""

    progress: Progress


def check(scoring: Scoring, options: TripleOptions) -> None:
    """Refuse unknown words, chunks of what has none, and affine costs where the model
    is linear.

    Raises
    ------
    UsageError
    """
    words = {
        "gap_model": GAP_MODELS,
        "mode": MODES,
        "schedule": plan.SCHEDULES,
        "traceback": (*plan.TRACEBACKS, None),
    }
    for name, known in words.items():
        if (word := getattr(options, name)) not in known:
            names = ", ".join(map(str, known))
            raise UsageError(f"unknown {name} {word!r}: one of {names}")
    if options.gap_model == "linear" and scoring.open != scoring.extend:
        raise UsageError(
            f"gap_model 'linear' needs gap_open == gap_extend, not "
            f"{scoring.gap_open:g} and {scoring.gap_extend:g}"
        )
    for name in ("chunk", "height", "depth"):
        check_whole(name, value := getattr(options, name))
        if value is not None and options.traceback not in plan.CHUNKED:
            raise UsageError(f"{name} = {value}: only bt1, bt2 and bt3 have chunks")
