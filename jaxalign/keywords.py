"""The keywords of each public function, for type checkers: generated.

``tests/keywords_file.py`` writes this file from ``jaxalign.options``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

from jaxalign.model.choices import EndKeywords

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from jax.sharding import Mesh

    from jaxalign.model.choices import (
        Any,
        Coverage,
        Edges,
        FreeEnd,
        GapModel,
        Identity,
        Mode,
        Output,
        RepeatedNames,
        Statistics,
        Strand,
        UnknownLetters,
    )
    from jaxalign.model.scoring import ScoringLike
    from jaxalign.options import (
        Bad,
        By,
        Chains,
        Devices,
        Implementation,
        LengthIdentity,
        Link,
        LinkStrand,
        Metric,
        PairStrategy,
        Progress,
        Schedule,
        SearchProgress,
        Traceback,
        TripleImplementation,
    )


class HostKeywords(TypedDict, total=False):
    """Memory and threads of the host."""

    memory_budget: int | str | None
    threads: int | None


class ExecutionKeywords(HostKeywords, total=False):
    """The implementation and the devices of a job of two sequences."""

    implementation: Implementation | None
    devices: Devices


class WatchKeywords(TypedDict, total=False):
    """Callbacks of a job whose size is known."""

    progress: Progress
    busy: Progress


class MeasureKeywords(TypedDict, total=False):
    """Which pairs of linked sequences are compared, and by what length."""

    identity: LengthIdentity | None
    min_length_ratio: float | None
    min_cov: float | None
    coverage: Coverage
    strand: LinkStrand | None
    filter: bool


class NucleotidesKeywords(TypedDict, total=False):
    """Options of pairs of nucleotides."""

    strand: Strand | None


class MeshedKeywords(ExecutionKeywords, EndKeywords, total=False):
    """Options of every function of two sequences."""

    mesh: Mesh | None


class AlignKeywords(NucleotidesKeywords, WatchKeywords, MeshedKeywords, total=False):
    """Options of ``align``."""


class WindowedKeywords(MeshedKeywords, total=False):
    """Options of functions of many pairs."""

    window: int | None


class MatrixKeywords(WatchKeywords, WindowedKeywords, total=False):
    """Options of ``scores_matrix`` and ``distance_matrix``."""


class TabularKeywords(WindowedKeywords, total=False):
    """Options of functions whose pairs are rows of a table."""

    output: Output
    min_score: float | None
    min_identity: float | None
    identity: Identity | None
    min_cov: float | None
    coverage: Coverage
    min_length_ratio: float | None
    filter: bool


class PairsKeywords(NucleotidesKeywords, WatchKeywords, TabularKeywords, total=False):
    """Options of ``align_pairs``."""


class OneSetKeywords(TabularKeywords, total=False):
    """Options of functions of all pairs of a set."""

    include_self: bool
    part_rows: int | None


class AllKeywords(WatchKeywords, OneSetKeywords, total=False):
    """Options of ``align_all``."""

    cluster: str | None


class PartsKeywords(TypedDict, total=False):
    """Options of results that come part by part."""

    skip: Collection[int]
    shard: tuple[int, int] | None


class StreamKeywords(PartsKeywords, AllKeywords, total=False):
    """Options of ``stream_all``."""


class PlanKeywords(NucleotidesKeywords, OneSetKeywords, total=False):
    """Options of ``plan``."""

    parts: bool


class IndexKeywords(TypedDict, total=False):
    """How the letters of files are read."""

    unknown: UnknownLetters
    strip_stop: bool
    names: RepeatedNames


class CorpusScanKeywords(IndexKeywords, ExecutionKeywords, total=False):
    """Options of functions that read a database block by block."""

    progress: SearchProgress


class ReportedHitsKeywords(TypedDict, total=False):
    """The hits of a search that are reported."""

    top: int
    align_top: bool
    hsps: int
    statistics: Statistics


class SearchKeywords(
    CorpusScanKeywords,
    NucleotidesKeywords,
    ReportedHitsKeywords,
    EndKeywords,
    total=False,
):
    """Options of ``search``."""

    window: int | None


class StreamSearchKeywords(PartsKeywords, SearchKeywords, total=False):
    """Every option of a search, with its default."""

    part_rows: int | None


class FamilyKeywords(CorpusScanKeywords, total=False):
    """Every option of an iterated search, with its default."""

    iterations: int
    max_evalue: float
    include: float
    include_cov: float
    max_sequences: int
    strand: Strand | None
    min_cov: float
    min_query_identity: float
    max_identity: float
    hsps: int
    correct_composition: bool


class ComplexKeywords(FamilyKeywords, total=False):
    """Every option of a search with the chains of complexes, with its default."""

    pair_strategy: PairStrategy
    pair_evalue: float
    taxa: Any
    rna_database: Any


class AsLinkedKeywords(TypedDict, total=False):
    """A link of two sequences, in a word."""

    link: Link | None


class FromOutsideKeywords(TypedDict, total=False):
    """Evidence beside alignments."""

    edges: Sequence[Edges] | None


class LinkKeywords(
    AsLinkedKeywords,
    WatchKeywords,
    MeasureKeywords,
    FromOutsideKeywords,
    ExecutionKeywords,
    EndKeywords,
    total=False,
):
    """Options of functions of linked sequences: what a link is, and what computes."""

    mode: Mode | None
    min_score: float | None
    min_relative_score: float | None


class SplitKeywords(LinkKeywords, total=False):
    """Options of functions of splits."""

    together: Any


class AuditKeywords(SplitKeywords, total=False):
    """Every option of a function of linked sequences, with its default."""

    worst: int
    full_histogram: bool


class NearestKeywords(
    AsLinkedKeywords, MeasureKeywords, CorpusScanKeywords, EndKeywords, total=False
):
    """Every option of ``nearest``, with its default."""

    mode: Mode | None
    min_score: float | None
    by: By
    top: int
    bands: Sequence[float]


class PurgeKeywords(
    AsLinkedKeywords,
    MeasureKeywords,
    FromOutsideKeywords,
    CorpusScanKeywords,
    total=False,
):
    """Every option of ``purge``, with its default."""

    mode: Mode | None
    free_ends: Collection[FreeEnd] | None
    min_identity: float | None
    min_score: float | None
    min_relative_score: float | None
    max_evalue: float | None


class RepertoireKeywords(HostKeywords, total=False):
    """Every option of a repertoire graph, with its default; None is a metric's own."""

    metric: Metric
    cutoff: int | None
    scoring: ScoringLike
    weight: int | None
    gap_penalty: int | None
    ntrim: int | None
    ctrim: int | None
    fixed_gap: bool | None
    offset: int | None
    cap: int | None
    column: str | None
    chains: Chains | None
    v_distances: Any
    v_loops: Any
    bad: Bad
    devices: Any


class TripleModelKeywords(TypedDict, total=False):
    """Options of every function of three sequences."""

    gap_model: GapModel
    mode: Mode
    memory_budget: int | str | None
    implementation: TripleImplementation | None


class PlanThreeKeywords(TripleModelKeywords, total=False):
    """Options of ``plan_three``."""

    schedule: Schedule
    traceback: Traceback | None
    chunk: int | None
    height: int | None
    depth: int | None


class RunTriplesKeywords(TypedDict, total=False):
    """The devices and a callback of a job of three sequences."""

    devices: Devices
    progress: Progress


class AlignTriplesKeywords(RunTriplesKeywords, TripleModelKeywords, total=False):
    """Options of ``align_triples``, beside its ``traceback``."""


class AlignThreeKeywords(RunTriplesKeywords, PlanThreeKeywords, total=False):
    """Every option of a function of three sequences, with its default."""
