# pyright: strict, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
"""The options of functions of two sequences, and a task of them.

``PairOptions`` is where an option has its default. A typed dictionary names the options
that a function takes; ``pairs.api.align_pairs`` says what each means.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypedDict, get_args

from jaxalign.errors import UsageError
from jaxalign.model.alphabet import Sequences
from jaxalign.model.choices import (
    Coverage,
    EndKeywords,
    FreeEnd,
    Identity,
    Mode,
    Output,
    Strand,
)
from jaxalign.model.identity import (
    Filters,
    check_coverage,
    check_filters,
    usual_identity,
)
from jaxalign.model.numbers import check_whole
from jaxalign.model.scoring import Scoring, is_symmetric, resolve_ends
from jaxalign.model.table import OUTPUTS
from jaxalign.pairs.plan import Progress, Task
from jaxalign.runtime import pipeline
from jaxalign.runtime.devices import budget_of, resolve_devices

if TYPE_CHECKING:  # a job by rows imports no JAX
    from jax import Device
    from jax.sharding import Mesh
else:
    Device = Mesh = Any

Implementation = Literal["rows", "sweep", "wavefront", "pallas"]
IMPLEMENTATIONS: tuple[str, ...] = get_args(Implementation)
BYTES_OF_A_THREAD = 2**21  # of the budget, at least
Devices = str | int | Sequence[int | Device] | None


@dataclass(frozen=True, kw_only=True)
class PairOptions:
    """Every option of a function of two sequences, with its default."""

    mode: Mode = "global"
    free_ends: Iterable[FreeEnd] | None = None
    strand: Strand | None = None
    implementation: Implementation | None = None
    memory_budget: int | str | None = None
    threads: int | None = None
    devices: Devices = None
    mesh: Mesh | None = None
    window: int | None = None
    output: Output = "stats"
    min_score: float | None = None
    min_identity: float | None = None
    identity: Identity | None = None
    min_cov: float | None = None
    coverage: Coverage = "both"
    min_length_ratio: float | None = None
    filter: bool = True
    progress: Progress = None
    busy: Progress = None
    include_self: bool = False
    cluster: str | None = None
    part_rows: int | None = None
    parts: bool = False
    skip: Collection[int] = ()
    shard: tuple[int, int] | None = None

    @property
    def leaves_open_who_computes(self) -> bool:
        """Whether nothing says what computes, which strand, or who is told of it."""
        named = self.implementation, self.devices, self.mesh, self.memory_budget
        named += (self.strand,)
        watched = self.progress, self.busy
        return all(value is None for value in named + watched)


class MachineKeywords(EndKeywords, total=False):
    """Options of every function: ends, and what computes."""

    implementation: Implementation | None
    memory_budget: int | str | None
    threads: int | None
    devices: Devices
    mesh: Mesh | None


class ProgressKeywords(TypedDict, total=False):
    """Options of what computes a whole job."""

    progress: Progress
    busy: Progress


class StrandKeywords(TypedDict, total=False):
    """Options of functions of pairs of nucleotides."""

    strand: Strand | None


class AlignKeywords(MachineKeywords, ProgressKeywords, StrandKeywords, total=False):
    """Options of ``align``."""


class WindowKeywords(MachineKeywords, total=False):
    """Options of functions of many pairs."""

    window: int | None


class MatrixKeywords(WindowKeywords, ProgressKeywords, total=False):
    """Options of ``scores_matrix`` and ``distance_matrix``."""


class TableKeywords(WindowKeywords, total=False):
    """Options of functions whose pairs are rows of a table."""

    output: Output
    min_score: float | None
    min_identity: float | None
    identity: Identity | None
    min_cov: float | None
    coverage: Coverage
    min_length_ratio: float | None
    filter: bool


class PairsKeywords(TableKeywords, ProgressKeywords, StrandKeywords, total=False):
    """Options of ``align_pairs``."""


class AllKeywords(TableKeywords, ProgressKeywords, total=False):
    """Options of ``align_all``."""

    include_self: bool
    cluster: str | None
    part_rows: int | None


class StreamKeywords(AllKeywords, total=False):
    """Options of ``stream_all``."""

    skip: Collection[int]
    shard: tuple[int, int] | None


class PlanKeywords(TableKeywords, StrandKeywords, total=False):
    """Options of ``plan``."""

    include_self: bool
    parts: bool
    part_rows: int | None


def make_task(
    kind: str,
    queries: Sequences,
    targets: Sequences,
    scoring: Scoring,
    options: PairOptions = PairOptions(),  # noqa: B008
) -> Task:
    """The task of some options.

    Raises
    ------
    UsageError, DeviceError
    """
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

    Returns
    -------
    frozenset of str
        The free ends.

    Raises
    ------
    UsageError
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
        from jaxalign.pairs.cpu import execute

        execute.check_mesh(options.mesh, options.implementation)
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
