# pyright: strict, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
"""Check the options of an iterated search, and make those of a pass."""

from __future__ import annotations

from typing import get_args

from jaxalign.errors import UsageError
from jaxalign.model.alphabet import reading_of
from jaxalign.model.numbers import check_fraction, check_whole, is_number
from jaxalign.options import (
    ComplexOptions,
    Execution,
    FamilyOptions,
    PairStrategy,
    SearchOptions,
    shared,
)

FRACTIONS = (
    "include_cov",
    "min_cov",
    "min_query_identity",
    "max_identity",
)


def check(options: FamilyOptions) -> None:
    """Refuse values that are none."""
    counts = ("iterations", "passes"), ("max_sequences", "sequences")
    for name, text in (*counts, ("hsps", "alignments")):
        why = f"1 or more {text} are needed"
        check_whole(name, getattr(options, name), why, optional=False)
    bounds = ["max_evalue", "include"]
    if isinstance(options, ComplexOptions):
        bounds.append("pair_evalue")
        if options.pair_strategy not in (choices := get_args(PairStrategy)):
            raise UsageError(
                f"pair_strategy = {options.pair_strategy!r}: choose from "
                f"{', '.join(choices)}"
            )
    for name in bounds:
        value = getattr(options, name)
        if not (is_number(value) and value >= 0):
            raise UsageError(f"{name} = {value!r}: 0 or more is needed")
    for name in FRACTIONS:
        value = getattr(options, name)
        check_fraction(name, value)


def search_options(options: FamilyOptions) -> SearchOptions:
    """The options of one pass."""
    return SearchOptions(
        mode="local",
        top=options.max_sequences,
        hsps=options.hsps,
        statistics="fitted",
        **reading_of(options)._asdict(),
        **shared(options, Execution),
    )
