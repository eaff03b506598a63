# pyright: strict, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
"""Check the options of functions of two sequences, and make a task of them."""

from typing import get_args

from jaxalign.errors import UsageError
from jaxalign.model.alphabet import Sequences
from jaxalign.model.identity import (
    Filters,
    check_coverage,
    check_filters,
    usual_identity,
)
from jaxalign.model.numbers import check_whole
from jaxalign.model.scoring import Scoring, is_symmetric, resolve_ends
from jaxalign.model.table import OUTPUTS
from jaxalign.options import Implementation, PairOptions
from jaxalign.pairs.plan import Task
from jaxalign.runtime import pipeline
from jaxalign.runtime.devices import budget_of, resolve_devices

IMPLEMENTATIONS: tuple[str, ...] = get_args(Implementation)
BYTES_OF_A_THREAD = 2**21  # of the budget, at least


def make_task(
    kind: str,
    queries: Sequences,
    targets: Sequences,
    scoring: Scoring,
    options: PairOptions = PairOptions(),  # noqa: B008
) -> Task:
    """The task of some options."""
    free, positions = check(options), len(scoring.scores)
    if scoring.by_position and (kind == "all" or set(queries.lengths) - {positions}):
        raise UsageError(f"{scoring.matrix_name} is aligned as a query, of {positions}")
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
        max(options.threads or _threads_of(budget), len(devices)),
        options.window,
        filters_of(options, free),
        devices,
        options.mesh,
        bounded=options.filter,
        equals_alike=options.equals_alike,
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
    return Filters(
        options.min_score,
        options.min_identity,
        options.identity or usual,
        options.min_cov,
        options.coverage,
        options.min_length_ratio,
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
    thresholds = (options.min_score, options.min_identity, options.min_cov)
    if any(x is not None for x in (*thresholds, options.min_length_ratio)):
        check_filters(filters_of(options, free), options.output)
        check_coverage(options.min_cov, options.mode, free)
    if options.identity is not None and options.min_identity is None:
        raise UsageError(f"identity = {options.identity!r} is that of min_identity")
    if options.coverage != "both" and options.min_cov is None:
        raise UsageError(f"coverage = {options.coverage!r} is that of min_cov")
    if options.mesh is not None:
        if options.devices is not None:
            raise UsageError("devices and mesh: either says which devices compute")
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
                raise UsageError(
                    f"a cluster chooses devices by itself: leave out {name}"
                )
    return free


def symmetric(scoring: Scoring, options: PairOptions) -> bool:
    """Whether swapping the sides of a pair changes no score."""
    return is_symmetric(scoring, resolve_ends(options.mode, options.free_ends))
