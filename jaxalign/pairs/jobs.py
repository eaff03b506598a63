"""From packed options to a table: what the public functions of pairs call; and the one
of jobs too large for one table, all pairs of a set in parts."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Unpack

from jaxalign import inputs
from jaxalign.errors import InputError, UsageError
from jaxalign.inputs import SetLike
from jaxalign.model.alphabet import Sequences
from jaxalign.model.scoring import Scoring, ScoringLike, as_scoring
from jaxalign.model.strands import MINUS, reverse_complement, strands_of
from jaxalign.model.table import Table, join
from jaxalign.pairs import engine, small_jobs, strands
from jaxalign.pairs.options import PairOptions, StreamKeywords, make_task
from jaxalign.pairs.parts import part_stream, query_ranges, ray_tasks
from jaxalign.pairs.parts.query_ranges import Part
from jaxalign.pairs.plan import Plan, QueryStrands, Task
from jaxalign.pairs.proofs import survivors
from jaxalign.pairs.result import table_of
from jaxalign.pairs.run_state import SavedState
from jaxalign.pairs.windows import WholeJob
from jaxalign.runtime import pipeline
from jaxalign.runtime.devices import ambient_mesh, first_device
from jaxalign.signatures import with_options

WRITERS = pipeline.WRITERS  # parts that a caller of ``stream_all`` may write at a time


def pairs_table(
    queries: SetLike, targets: SetLike, scoring: ScoringLike, options: PairOptions
) -> Table:
    """The table of ``align_pairs``."""
    return run_plan(plan_of(queries, targets, scoring, options), options)


def all_table(sequences: SetLike, scoring: ScoringLike, options: PairOptions) -> Table:
    """The table of ``align_all``."""
    scoring = as_scoring(scoring)
    (sequences,) = inputs.sets(scoring, sequences)
    task = make_task("all", sequences, sequences, scoring, options)
    if options.cluster is None and not task.filtered:
        if options.part_rows is not None:
            raise UsageError(
                "part_rows: there are parts with a cluster or a filter only"
            )
        return run_plan(engine.plan(task), options)
    return _joined(task, query_ranges.cut_of(task, options.part_rows), options)


def run(
    kind: str,
    queries: Sequences,
    targets: Sequences,
    scoring: Scoring,
    options: PairOptions,
    whole: WholeJob | None = None,
) -> Table:
    """The table of encoded sets.

    whole : what they are a part of; such parts share their programs
    """
    began = time.perf_counter()
    task = make_task(kind, queries, targets, scoring, options)
    plan = survivors.plan(replace(task, whole=whole))
    return engine.run(plan, options.progress, options.busy, began)


def beside(options: PairOptions, cells: int) -> PairOptions:
    """Options of a small job that belongs to a larger one.

    Where GPU kernels compute the larger one, they compute both: NumPy, which would
    spare a process the start of a GPU, takes ten times as long as they do.

    cells : of the larger job
    """
    named = options.implementation or options.devices is not None or options.mesh
    if named or small_jobs.is_short(cells):
        return options
    from jaxalign.pairs import compiled  # which imports JAX

    device = first_device()
    if device.platform != "gpu" or compiled.choose(None, (device,))[0] != "pallas":
        return options
    return replace(options, devices=[device])


def run_plan(
    plan: Plan, options: PairOptions, saved: SavedState | None = None
) -> Table:
    """The table of a plan.

    options : those of the plan; of them the cluster, and who is told of progress
    saved : the state of its very large pairs, of a run that was interrupted or may be
    """
    if plan.strands is not None:
        return strands.run(plan, plan.strands, options, _run, saved)
    if plan.parts:
        return _joined(plan.task, list(plan.parts), options)
    if options.cluster is not None:
        parts = query_ranges.cut_of(plan.task, options.part_rows)
        return _joined(plan.task, parts, options)
    return _run(plan, options, saved)


def _run(plan: Plan, options: PairOptions, saved: SavedState | None) -> Table:
    began = time.perf_counter()
    if plan.task.filtered:
        plan = survivors.plan(plan.task, plan)
    return engine.run(plan, options.progress, options.busy, began, saved)


def _joined(task: Task, parts: list[Part], options: PairOptions) -> Table:
    tables = list(stream(task, parts, options))
    return join((table for _, table in tables), part_stream.merge_all(tables))


def stream(
    task: Task, parts: list[Part], options: PairOptions
) -> Iterator[tuple[Part, Table]]:
    """Parts and their tables, computed here or on a cluster."""
    progress = options.progress, options.busy
    if options.cluster is None:
        results = part_stream.stream(task, parts, *progress)
    else:
        results = ray_tasks.stream(task, parts, options.cluster, *progress)
    for part, columns, paths, info in results:
        yield part, table_of(task, columns, paths, info)


def plan_of(
    queries: SetLike,
    targets: SetLike | None,
    scoring: ScoringLike,
    options: PairOptions,
) -> Plan:
    """The plan of ``align_pairs``, or without targets of ``align_all``."""
    scoring = as_scoring(scoring, by_position=True)
    sets = (queries,) if targets is None else (queries, targets)
    return plan_sets(*inputs.sets(scoring, *sets), scoring=scoring, options=options)


def plan_sets(
    queries: Sequences,
    targets: Sequences | None = None,
    *,
    scoring: Scoring,
    options: PairOptions,
) -> Plan:
    """``plan_of``, its sets encoded."""
    if targets is None:
        if options.strand is not None:
            raise UsageError(f"strand = {options.strand!r} is for queries and targets")
        task = make_task("all", queries, queries, scoring, options)
        if options.parts or options.part_rows is not None or task.filtered:
            parts = query_ranges.cut_of(task, options.part_rows)
            return part_stream.plan_parts(task, parts)
        return engine.plan(task)
    for name in ("include_self", "parts", "part_rows"):
        if getattr(options, name):
            raise UsageError(f"{name} is for all pairs of one set, without targets")
    if options.mesh is None and options.devices is None:
        options = replace(options, mesh=ambient_mesh())
    signs = None
    if options.strand is not None:
        signs = strands_of(options.strand, scoring, options.mode)
    aligned = reverse_complement(queries) if signs == (MINUS,) else queries
    kind, aligned, paired = _pairing(aligned, targets)
    task = make_task(kind, aligned, paired, scoring, options)
    if len(paired) != len(targets):
        task = replace(task, single_target=targets)
    plan = engine.plan(task)
    if task.filtered:
        plan = replace(plan, figures=plan.figures | survivors.bound_figures(task))
    return strands.plan(plan, QueryStrands(queries, signs)) if signs else plan


def _pairing(
    queries: Sequences, targets: Sequences
) -> tuple[str, Sequences, Sequences]:
    """zip, or one against all."""
    if len(queries) == 1 and len(targets) != 1:
        return "cross", queries, targets
    if len(targets) == 1 and len(queries) != 1:
        targets = targets.take([0] * len(queries))
    if len(queries) != len(targets):
        raise InputError(
            f"{len(queries)} queries and {len(targets)} targets: pairs are zipped, so "
            "there must be as many, or one on a side"
        )
    return "zip", queries, targets


def parts_of(
    sequences: SetLike, scoring: ScoringLike, options: PairOptions
) -> Iterator[tuple[Part, Table]]:
    """The parts and tables of ``stream_all``."""
    scoring = as_scoring(scoring)
    (sequences,) = inputs.sets(scoring, sequences)
    task = make_task("all", sequences, sequences, scoring, options)
    return stream_parts(task, query_ranges.cut_of(task, options.part_rows), options)


def stream_parts(
    task: Task, parts: Sequence[Part], options: PairOptions
) -> Iterator[tuple[Part, Table]]:
    """Those parts of a task, or of a plan by parts, that the options ask for."""
    parts = share(list(parts), options.shard)
    parts = [part for part in parts if part.index not in options.skip]
    return stream(task, parts, options)


def parts_all(
    sequences: Sequences, *, include_self: bool = False, part_rows: int | None = None
) -> list[Part]:
    """The parts that ``stream_all`` makes of some ``Sequences``."""
    return query_ranges.cut(sequences.lengths, include_self, part_rows)


def rows_at_once(count: int) -> int | None:
    """Rows of the parts of all pairs of so many sequences, to be written one after the
    other; None where all of them are fewer."""
    rows = query_ranges.PART_ROWS
    return rows if count * (count - 1) // 2 > rows else None


def share(parts: list[Part], shard: tuple[int, int] | None = None) -> list[Part]:
    """The parts of a shard (k, n); all where it is None."""
    return parts if shard is None else query_ranges.shard(parts, *shard)


@with_options(PairOptions)
def stream_all(
    sequences: SetLike, scoring: ScoringLike = None, **options: Unpack[StreamKeywords]
) -> Iterator[tuple[Part, Table]]:
    """Align all pairs of a set, part by part: for results that memory cannot hold.

    The next parts are planned and computed while the caller has one. One below the
    other, the tables are what ``align_all`` returns.

    Parameters
    ----------
    include_self, cluster, **options : as in ``align_all``
    skip : collection of int
        Parts that are not wanted, because they are there already.
    shard : (int, int), optional
        (k, n): only the k-th of n shares of the parts, from 1; each part is in one
        share, and shares are alike in cells.
    part_rows : int, optional
        Rows of a part at most, unless a single query has more, and half as many more of
        the last; by default 2^22, of a smaller job a thirty-second, of 64 queries or
        more. Parts depend on the lengths of the sequences and on this, on nothing else.

    Yields
    ------
    Part
        ``index``, and ``start`` and ``stop``: which rows of the whole result, counted
        before filters.
    Table
        Those rows, or what the filters keep of them.

    Examples
    --------
    >>> import jaxalign
    >>> sequences = ["MKTAYIA", "MKTAIA", "MRV"]
    >>> for part, table in jaxalign.stream_all(sequences, part_rows=1):
    ...     print(part.index, part.start, part.stop, table["score"].tolist())
    0 0 2 [16, -7]
    1 2 3 [-6]
    """
    return parts_of(sequences, scoring, PairOptions(**options))
