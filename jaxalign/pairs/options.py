# pyright: strict, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
"""Check the options of functions of two sequences, and make a task of them."""

from collections.abc import Collection
from dataclasses import replace
from math import inf
from typing import Any, TypeVar, get_args

import numpy as np

from jaxalign.errors import UsageError
from jaxalign.model.alphabet import Sequences
from jaxalign.model.choices import FreeEnd, Mode
from jaxalign.model.identity import (
    COVERAGES,
    Filters,
    check_coverage,
    check_filters,
    usual_identity,
)
from jaxalign.model.numbers import check_fraction, check_whole, exact
from jaxalign.model.scoring import Scoring, is_symmetric, resolve_ends
from jaxalign.model.statistics import least_score, parameters
from jaxalign.model.strands import reverse_complement, strands_of
from jaxalign.model.table import OUTPUTS
from jaxalign.options import (
    HomologyOptions,
    Implementation,
    Link,
    LinkStrand,
    Measure,
    NearestOptions,
    PairOptions,
)
from jaxalign.pairs.plan import Task
from jaxalign.runtime import pipeline
from jaxalign.runtime.devices import USUAL_BYTES, budget_of, resolve_devices

LINKS: tuple[str, ...] = get_args(Link)
LINK_STRANDS: tuple[str, ...] = get_args(LinkStrand)
USUAL_STRANDS: dict[str, LinkStrand] = {"dna": "both", "rna": "plus"}
# What a definition says of the strands that are compared
STRANDS_SAID = {"both": "; either strand", "plus": "; plus strands", None: ""}
# Of ``Coverage``: of a pair without an order, either sequence may be the query.
COVERED = {"both": "both", "query": "one", "target": "one", "shorter": "the shorter"}
LOCAL = "local"
# What a link says of the alignment, and of the length that identities are divided by.
MEASURES: dict[str, dict[str, Any]] = {
    "whole": {"mode": "global", "identity": "longer", "free_ends": None},
    LOCAL: {"mode": LOCAL, "identity": "shorter", "free_ends": None},
}
CHANCE = 1e-3  # expected hits of unrelated sequences
# Times the least score of a link: a sequence is short that cannot reach so much, with
# all letters at their best. Longer ones of which 70 % are identical reach the score.
SHORT_REACH = 2
IMPLEMENTATIONS: tuple[str, ...] = get_args(Implementation)
BYTES_OF_A_THREAD = 2**21  # of the budget, at least


def make_task(
    kind: str,
    queries: Sequences,
    targets: Sequences,
    scoring: Scoring,
    options: PairOptions = PairOptions(),  # noqa: B008
) -> Task:
    """The task of some options; of ``strand="minus"`` that of the reverse complements
    of the queries."""
    free, positions = check(options), len(scoring.scores)
    if scoring.by_position and (kind == "all" or set(queries.lengths) - {positions}):
        raise UsageError(
            f"{scoring.matrix_name} is a profile of {positions} positions, and can "
            "only be a query"
        )
    if scoring.gap_costs is not None and not (
        options.mode == LOCAL and options.output != "identity"
    ):
        raise UsageError(
            f"{scoring}: for mode 'local', without the output 'identity'; give "
            "gap_open and gap_extend"
        )
    minus = options.strand == "minus"
    if minus:
        queries = reverse_complement(queries)
    devices = resolve_devices(options.devices)
    budget = budget_of(options.memory_budget)
    return Task(
        kind,
        queries,
        targets,
        scoring,
        options.mode,
        free,
        options.output,
        options.include_self,
        options.implementation,
        budget,
        USUAL_BYTES if options.memory_budget is None else budget,
        max(options.threads or _threads_of(budget), len(devices)),
        options.window,
        filters_of(options, free),
        devices,
        options.mesh,
        bounded=options.filter,
        equals_alike=options.equals_alike,
        one_set=not minus,
    )


def _threads_of(budget: int) -> int:
    """All cores, but no more than a budget has room for: else a job that fits it would
    be refused on a machine of many cores."""
    return min(pipeline.default_threads(), max(budget // BYTES_OF_A_THREAD, 1))


def filters_of(options: PairOptions, free: frozenset[str] | None = None) -> Filters:
    """Which rows are kept.

    free : the free ends, where they are known already
    """
    usual = "alignment"
    if options.output == "identity":
        if free is None:
            free = resolve_ends(options.mode, options.free_ends)
        usual = usual_identity(options.mode, free)
    identity = options.identity or usual
    return Filters(
        options.min_score,
        options.min_identity,
        identity,
        options.min_cov,
        options.coverage,
        options.min_length_ratio,
        min_relative_score=options.min_relative_score,
        self_score=identity,
    )


def check(options: PairOptions) -> frozenset[str]:
    """Refuse values that are none, and options that mean nothing beside the others.

    Returns frozenset of str, the free ends.
    """
    if options.output not in OUTPUTS:
        names = ", ".join(OUTPUTS)
        raise UsageError(f"unknown output {options.output!r}: one of {names}")
    for name in ("threads", "window"):
        if (value := getattr(options, name)) is not None:
            check_whole(name, value)
    free = resolve_ends(options.mode, options.free_ends)
    relative = options.min_relative_score
    thresholds = (options.min_score, options.min_identity, options.min_cov, relative)
    if any(x is not None for x in (*thresholds, options.min_length_ratio)):
        check_filters(filters_of(options, free), options.output)
        check_coverage(options.min_cov, options.mode, free)
    cuts = options.min_identity, relative
    if options.identity is not None and cuts == (None, None):
        raise UsageError(
            f"identity = {options.identity!r} has no effect without min_identity"
        )
    if options.coverage != "both" and options.min_cov is None:
        raise UsageError(
            f"coverage = {options.coverage!r} has no effect without min_cov"
        )
    if options.mesh is not None:
        if options.devices is not None:
            raise UsageError("devices and mesh exclude each other: give one")
        name = options.implementation
        if name not in (None, "sweep"):
            raise UsageError(f"a mesh runs implementation 'sweep', not {name!r}")
        if not hasattr(options.mesh, "is_multi_process"):
            raise UsageError(f"mesh = {options.mesh!r}: a jax.sharding.Mesh is needed")
        if options.mesh.is_multi_process:
            raise UsageError("all devices of a mesh must belong to this process")
    if options.cluster is not None:
        for name in ("devices", "mesh", "threads"):
            if getattr(options, name) is not None:
                raise UsageError(f"a cluster chooses its devices: leave out {name}")
    return free


def symmetric(scoring: Scoring, options: PairOptions) -> bool:
    """Whether swapping the sides of a pair changes no score."""
    return is_symmetric(scoring, resolve_ends(options.mode, options.free_ends))


def gate_of(options: Measure | Filters) -> Filters:
    """The coverage that links ask for; one that is false for none."""
    return Filters(min_cov=options.min_cov, coverage=options.coverage)


def coverage_said(options: Measure) -> str:
    """The coverage that links ask for, in the sentence of a definition."""
    if options.min_cov is None:
        return ""
    return f", coverage of {COVERED[options.coverage]} >= {exact(options.min_cov)}"


def check_gate(options: Measure, mode: Mode, free: Collection[FreeEnd] | None) -> None:
    """Refuse a coverage that is none, or has no effect."""
    coverage = options.coverage
    if coverage not in COVERAGES:
        names = ", ".join(COVERAGES)
        raise UsageError(f"unknown coverage {coverage!r}: one of {names}")
    if options.min_cov is not None:
        check_fraction("min_cov", options.min_cov)
        check_coverage(options.min_cov, mode, resolve_ends(mode, free))
    elif coverage != "both":
        raise UsageError(f"coverage = {coverage!r} has no effect without min_cov")


Asked = TypeVar("Asked", HomologyOptions, NearestOptions)


def link_strand(
    strand: LinkStrand | None, scoring: Scoring, mode: Mode
) -> LinkStrand | None:
    """The strands that links of some letters compare; None: they have no strands.

    Raises UsageError: a word that is none, or letters without complements
    """
    if strand not in (None, *LINK_STRANDS):
        names = ", ".join(LINK_STRANDS)
        raise UsageError(f"strand = {strand!r}: one of {names} is needed")
    kind = scoring.alphabet.kind
    if strand is not None:
        strands_of(strand, scoring, mode)  # refuses letters without complements
        return strand
    return USUAL_STRANDS.get(kind)


def with_link(options: Asked, scoring: Scoring, sets: Collection[Sequences]) -> Asked:
    """Write ``link`` and ``strand`` out, as ``_with_link`` and ``link_strand`` do."""
    options = _with_link(options, scoring, sets)
    strand = link_strand(options.strand, scoring, options.mode or "global")
    return replace(options, strand=strand)


def _with_link(options: Asked, scoring: Scoring, sets: Collection[Sequences]) -> Asked:
    """Write ``link`` out as mode, length and score; what is written out stays as it is.
    Where nothing says what a link is, it is local.

    A local alignment counts whose score a search of all sets, by a sequence of their
    mean length, finds by chance once in 1,000 (``model.statistics``), unless
    ``min_relative_score`` says which.

    Raises UsageError: other options say otherwise, or no statistics are published
    """
    link, ends = options.link, {x: getattr(options, x) for x in MEASURES[LOCAL]}
    is_open = all(x is None for x in ends.values())
    if link is None and not is_open:
        mode, identity = options.mode or "global", options.identity or "longer"
        return replace(options, mode=mode, identity=identity)
    link = link or LOCAL
    if link not in LINKS:
        raise UsageError(f"link = {link!r}: one of {', '.join(LINKS)} is needed")
    usual, measure = type(options)(), MEASURES[link]
    if not is_open and ends not in ({x: getattr(usual, x) for x in measure}, measure):
        raise UsageError(
            f"link {link} sets the mode and the length: leave out mode, identity and "
            "free_ends"
        )
    if link == "whole":
        return replace(options, link=None, **measure)
    options = replace(options, link=LOCAL, **measure)
    relative = getattr(options, "min_relative_score", None)
    if options.min_score is not None or relative is not None:
        return options
    if (karlin := parameters(scoring, LOCAL)) is None:
        raise UsageError(
            f"link local: no statistics are published for {scoring}, so nothing says "
            "which scores chance reaches\nhint: give min_score or min_relative_score, "
            "or compare from end to end with link whole"
        )
    count, residues = sum(map(len, sets)), sum(len(x.codes) for x in sets)
    mean = round(residues / max(count, 1))
    score = least_score(CHANCE, mean, residues, count, karlin)
    return replace(options, min_score=score)


def reach(
    sequences: Sequences, scoring: Scoring, options: HomologyOptions | NearestOptions
) -> np.ndarray:
    """Divide what sequences can score at most, the sum of the best scores of their
    letters, by the least score of ``link="local"``: float64 (n,), infinity where there
    is none."""
    least = options.min_score
    if options.link != LOCAL or least is None or least <= 0:
        return np.full(len(sequences), inf)
    return scoring.highest_scores(sequences) / (least * scoring.scale)


def by_reach(reached: np.ndarray) -> list[np.ndarray]:
    """Which sequences, or pairs, cannot reach the score, which are short though they
    can, and which are long."""
    group = np.digitize(reached, [1, SHORT_REACH])
    return [np.flatnonzero(group == k) for k in range(3)]


def end_to_end(options: Asked) -> Asked:
    """The other link of pairs with a short sequence: ``link="whole"``."""
    gates = {"min_score": None, "min_cov": None}
    return replace(options, link=None, **gates, **MEASURES["whole"])
