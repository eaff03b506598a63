"""Run pair jobs from checked options; also ``stream_all``, all pairs of a set in parts.

Where a pair may be aligned along either strand of its query, the scores of both strands
are one job, and the rows of the better ones another.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack

import numpy as np

from jaxalign import inputs
from jaxalign.errors import InputError, MemoryPlanError, UsageError
from jaxalign.inputs import SetLike
from jaxalign.keywords import StreamKeywords
from jaxalign.model.alphabet import Sequences, from_parts, views
from jaxalign.model.identity import Filters, of_lengths
from jaxalign.model.scoring import Scoring, ScoringLike, as_scoring
from jaxalign.model.strands import MINUS, PLUS, reverse_complement, strands_of
from jaxalign.model.table import Table, along_plus, by_strands, join
from jaxalign.options import Execution, LengthIdentity, PairOptions, shared
from jaxalign.pairs import by_rows, engine, part_stream
from jaxalign.pairs.options import make_task
from jaxalign.pairs.pair_matrix import WholeJob
from jaxalign.pairs.part_stream import Part
from jaxalign.pairs.plan import (
    COLUMN_BYTES,
    Plan,
    QueryStrands,
    SavedState,
    Task,
    merge,
)
from jaxalign.pairs.proofs import proof
from jaxalign.pairs.result import table_of
from jaxalign.runtime import pipeline
from jaxalign.runtime.devices import (
    ambient_mesh,
    budget_of,
    first_device,
    show_bytes,
)
from jaxalign.signatures import with_options


def plan_strands(plan: Plan, strands: QueryStrands) -> Plan:
    """Plan the alignment of some strands of the queries.

    plan : of the rows of one strand, that which is aligned or the plus strand of both
    """
    plan = replace(plan, strands=strands)
    if len(strands.signs) == 1:
        return plan
    task, strand_queries = plan.task, by_strands(strands.queries, strands.signs)
    targets = task.targets
    if task.kind == "zip":
        targets = views(targets, np.tile(np.arange(len(targets)), 2))
    about = {"output": "score", "filters": Filters(), "single_target": None}
    scores = engine.plan(
        replace(task, queries=strand_queries, targets=targets, **about)
    )
    return replace(plan, figures=_of_both(scores, plan, task), scores=scores)


def _of_both(
    scores: Mapping[str, Any], rows: Mapping[str, Any], task: Task
) -> dict[str, Any]:
    """Merge the figures of the scores of both strands and of the rows of one."""
    if task.output == "score":
        return {**scores, "pairs": task.job.pairs}
    shared = {name: value for name, value in rows.items() if name in scores}
    figures = {**rows, **merge([dict(scores), shared])}
    figures |= {"pairs": rows["pairs"], "cells": scores["cells"]}
    if "aligned_cells" in rows:
        figures["aligned_cells"] = scores["cells"]
    return figures


def _better_strands(
    task: Task, scores_plan: Plan, options: PairOptions, saved: SavedState | None
) -> tuple[Table, np.ndarray]:
    """Align the better strand of each query: (rows, strands).

    task : of the rows of one strand
    scores_plan : of the scores of both
    """
    paths, cells = task.output != "score", scores_plan["cells"]
    total = cells + paths * task.job.cells
    first, second = (saved and saved.part(name) for name in ("scores", "rows"))
    scores = _run(scores_plan, _told_after(options, 0, total), first)
    plus, minus = scores["score"].reshape(2, -1)
    pair, is_minus = np.arange(len(plus)), minus > plus
    signs = np.where(is_minus, MINUS, PLUS).astype(np.int8)
    zipped = task.kind == "zip"
    if not paths:  # the scores of the better strands, as rows of the task
        rows = scores.filter(pair + is_minus * len(pair))
        pair = pair.astype(np.int32)
        columns = rows.columns | {"query": pair if zipped else 0 * pair}
        columns["target"] = pair if task.single_target is None else 0 * pair
        targets = task.targets if task.single_target is None else task.single_target
        info = rows.info | {"pairs": len(pair)}
        table = replace(rows, columns=columns, targets=targets, info=info)
        passing = task.filters.mask(table.columns, *table.lengths())
        return table.filter(passing), signs[passing]
    query = pair + is_minus * len(pair) if zipped else is_minus.astype(int)
    queries = views(scores_plan.task.queries, query)
    plan = engine.plan(replace(task, kind="zip", queries=queries))
    table = _run(plan, _told_after(options, cells, total), second)
    info = _of_both(scores.info, table.info, task)
    pair = table["query"]
    columns = table.columns | {"query": pair if zipped else 0 * pair}
    return replace(table, columns=columns, info=info), signs[pair]


def _told_after(options: PairOptions, cells: int, total: int) -> PairOptions:
    """Options of a job that begins when so many cells are done of a total."""
    if (progress := options.progress) is None:
        return options

    def report_progress(cells_done: int, _all: int) -> None:
        progress(cells + cells_done, total)

    return replace(options, progress=report_progress)


JOINED_COPIES = 2  # of rows in memory while tables are joined
WRITERS = pipeline.WRITERS  # parts that a caller of ``stream_all`` may write at a time


def pairs_table(
    queries: SetLike, targets: SetLike, scoring: ScoringLike, options: PairOptions
) -> Table:
    """The table of ``align_pairs``."""
    return run_plan(plan_of(queries, targets, scoring, options), options)


def all_table(sequences: SetLike, scoring: ScoringLike, options: PairOptions) -> Table:
    """The table of ``align_all``."""
    scoring = as_scoring(scoring, tracks=True)
    (sequences,) = inputs.sets(scoring, sequences)
    task = make_task("all", sequences, sequences, scoring, options)
    if options.cluster is None and not task.filtered:
        if options.part_rows is not None:
            raise UsageError("part_rows has no effect without a cluster or a filter")
        return run_plan(proof.planned(task, engine.plan), options)
    return _joined(task, part_stream.cut_within(task, options.part_rows), options)


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
    start_time = time.perf_counter()
    task = proof.with_room(make_task(kind, queries, targets, scoring, options))
    plan = proof.plan_survivors(replace(task, whole=whole))
    return engine.run(plan, options.progress, options.busy, start_time)


PATHS_AT_ONCE = 2**16  # pairs whose coverage is measured


def of_covered_paths(
    task: Task,
    i: np.ndarray,
    j: np.ndarray,
    largest: np.ndarray,
    gate: Filters,
    length: str,
    minus: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """Align pairs (i, j) of a task in both orders, with their paths: (identity, nan
    where neither order has the coverage of a gate; its identical pairs). The larger
    identity of the orders that have it is that of the pair.

    largest : the most identical pairs of any optimal path. Equal texts, of which these
        are all residues, are covered whole.
    minus : whether the queries are reverse complements; of the other order, the targets
        are turned.
    """
    settings = {"kind": "zip", "output": "stats", "filters": Filters(), "whole": None}
    task = replace(task, **settings, reserved=None, whole_codes=())
    m, n = task.queries.lengths[i], task.targets.lengths[j]
    equal = (m == n) & (largest == m)
    count = np.where(equal, largest, 0).astype(np.int64)
    covered = equal.copy()
    (rows,), alphabet = np.nonzero(~equal), task.scoring.alphabet
    for first in range(0, len(rows), PATHS_AT_ONCE):
        block = rows[first : first + PATHS_AT_ONCE]
        queries, targets = (
            from_parts(("",) * len(block), [side[k] for k in places], alphabet)
            for side, places in ((task.queries, i[block]), (task.targets, j[block]))
        )
        orders = [(queries, targets), (targets, queries)]
        if minus:
            orders[1] = reverse_complement(targets), reverse_complement(queries)
        for sides in orders:
            sides = dict(zip(("queries", "targets"), sides, strict=True))
            paths = engine.run(engine.plan(proof.with_room(replace(task, **sides))))
            passing = gate.mask(paths.columns, *paths.lengths())
            identical = np.where(passing, paths["identities"], 0)
            count[block] = np.maximum(count[block], identical)
            covered[block] |= passing
    return np.where(covered, of_lengths(length, count, m, n), np.nan), count


def of_covered_rows(
    table: Table,
    scoring: Scoring,
    options: PairOptions,
    gate: Filters,
    length: LengthIdentity,
) -> tuple[np.ndarray, np.ndarray]:
    """``of_covered_paths`` of the rows of a table, whose options are of output
    ``identity``."""
    ends = {"mode": options.mode, "free_ends": options.free_ends, "output": "stats"}
    settings = PairOptions(**ends, **shared(options, Execution))
    settings = with_kernels(settings, table.info["cells"])
    task = make_task("cross", table.queries, table.targets, scoring, settings)
    pairs = table["query"], table["target"], table["max_identities"]
    return of_covered_paths(task, *pairs, gate, length, options.strand == "minus")


# Options of output ``identity``, the length that identities are divided by, the
# coverage that a pair needs, and which pairs are measured so, int64.
PairMeasure = tuple[PairOptions, LengthIdentity, Filters, np.ndarray]


def by_measures(
    queries: Sequences,
    targets: Sequences,
    scoring: Scoring,
    measures: Sequence[PairMeasure],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the largest identity of pairs (k, k) by some measures, float64 (n,), nan
    where there is none; its identical pairs, int64 (n,); and whose it is, the first of
    equals, int64 (n,).
    """
    shares = np.full(len(queries), np.nan)
    counts, which = np.zeros((2, len(queries)), np.int64)
    for number, (options, length, gate, rows) in enumerate(measures):
        if not len(rows):
            continue
        sides = queries.take(rows), targets.take(rows)
        table = run("zip", *sides, scoring, options)
        places, identical = rows[table["query"]], table["max_identities"]
        identity = of_lengths(length, identical, *table.lengths())
        if gate:
            measure = scoring, options, gate, length
            identity, identical = of_covered_rows(table, *measure)
        larger = ~np.isnan(identity) & ~(identity <= shares[places])
        at = places[larger]
        shares[at], counts[at] = identity[larger], identical[larger]
        which[at] = number
    return shares, counts, which


def with_kernels(options: PairOptions, cells: int) -> PairOptions:
    """Options of a small job that belongs to a larger one.

    Where GPU kernels compute the larger one, they compute both: NumPy, which would
    spare a process the start of a GPU, takes ten times as long as they do.

    cells : of the larger job
    """
    named = options.implementation or options.devices is not None or options.mesh
    if named or not by_rows.may_have_gpu() or by_rows.is_short(cells):
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
    if (strands := plan.strands) is not None:
        # The strand asked for, or of both the one that scores more (on ties, plus)
        if plan.scores is None:
            table = _run(replace(plan, strands=None), options, saved)
            signs = np.full(len(table), strands.signs[0], np.int8)
        else:
            table, signs = _better_strands(plan.task, plan.scores, options, saved)
        table = replace(table, info=table.info | {"strands": strands.signs})
        return along_plus(table, strands.queries, signs)
    if plan.parts:
        return _joined(plan.task, list(plan.parts), options)
    if options.cluster is not None:
        parts = part_stream.cut_of(plan.task, options.part_rows)
        return _joined(plan.task, parts, options)
    return _run(plan, options, saved)


def _run(plan: Plan, options: PairOptions, saved: SavedState | None) -> Table:
    start_time = time.perf_counter()
    if plan.task.filtered:
        plan = proof.plan_survivors(plan.task, plan)
    return engine.run(plan, options.progress, options.busy, start_time, saved)


def _joined(task: Task, parts: list[Part], options: PairOptions) -> Table:
    tables, rows, budget = [], 0, task.budget
    for _, table in stream(task, parts, options):
        tables.append(table)
        rows += len(table)
        needed = rows * COLUMN_BYTES[task.output] * JOINED_COPIES
        if task.filtered and needed > budget:
            raise MemoryPlanError(
                f"{rows:,} rows so far pass {task.filters}: they exceed the memory "
                f"budget of {show_bytes(budget)}; raise the threshold, or use "
                "stream_all or `-o FOLDER/`, which hold one part at a time"
            )
    figures = merge([table.info for table in tables]) | {"parts": len(tables)}
    return join(tables, figures)


def stream(
    task: Task, parts: list[Part], options: PairOptions
) -> Iterator[tuple[Part, Table]]:
    """Parts and their tables, computed here or on a cluster."""
    progress = options.progress, options.busy
    if options.cluster is None:
        results = part_stream.stream(task, parts, *progress)
    else:
        results = part_stream.stream_on_cluster(task, parts, options.cluster, *progress)
    for part, columns, paths, info in results:
        yield part, table_of(task, columns, paths, info)


def plan_of(
    queries: SetLike,
    targets: SetLike | None,
    scoring: ScoringLike,
    options: PairOptions,
) -> Plan:
    """The plan of ``align_pairs``, or without targets of ``align_all``."""
    scoring = as_scoring(scoring, by_position=True, tracks=True)
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
            raise UsageError(f"strand = {options.strand!r} needs queries and targets")
        task = make_task("all", queries, queries, scoring, options)
        if options.parts or options.part_rows is not None or task.filtered:
            of_task = part_stream.cut_of if options.parts else part_stream.cut_within
            return part_stream.plan_parts(task, of_task(task, options.part_rows))
        return proof.planned(task, engine.plan)
    for name in ("include_self", "parts", "part_rows"):
        if getattr(options, name):
            raise UsageError(
                f"{name} is for all pairs of one set: leave out {name}, or the targets"
            )
    if options.mesh is None and options.devices is None:
        options = replace(options, mesh=ambient_mesh())
    signs = None
    if options.strand is not None:
        signs = strands_of(options.strand, scoring, options.mode)
    # Pairs are zipped, or one is paired with all.
    kind, paired = "zip", targets
    if len(queries) == 1 and len(targets) != 1:
        kind = "cross"
    elif len(targets) == 1 and len(queries) != 1:
        paired = targets.take([0] * len(queries))
    elif len(queries) != len(targets):
        raise InputError(
            f"{len(queries)} queries and {len(targets)} targets: query k is aligned "
            "with target k, so the numbers must be equal, or one of them 1"
        )
    task = make_task(kind, queries, paired, scoring, options)
    if len(paired) != len(targets):
        task = replace(task, single_target=targets)
    plan = proof.planned(task, engine.plan)
    if task.filtered:
        plan = replace(plan, figures=plan.figures | proof.bound_figures(task))
    return plan_strands(plan, QueryStrands(queries, signs)) if signs else plan


def parts_of(
    sequences: SetLike, scoring: ScoringLike, options: PairOptions
) -> Iterator[tuple[Part, Table]]:
    """The parts and tables of ``stream_all``."""
    scoring = as_scoring(scoring, tracks=True)
    (sequences,) = inputs.sets(scoring, sequences)
    task = make_task("all", sequences, sequences, scoring, options)
    return stream_parts(task, part_stream.cut_of(task, options.part_rows), options)


def stream_parts(
    task: Task, parts: Sequence[Part], options: PairOptions
) -> Iterator[tuple[Part, Table]]:
    """Stream the parts of a task, or of a plan by parts, that the options select."""
    parts = share(list(parts), options.shard)
    parts = [part for part in parts if part.index not in options.skip]
    return stream(task, parts, options)


def tables_of(
    task: Task, options: PairOptions, parts: Callable[[], list[Part]]
) -> Iterator[Table]:
    """Yield the tables of all parts of a task; a small job is one table, and plans no
    parts ahead.

    parts : function that cuts the task
    """
    if by_rows.is_short(task.job.total):
        plan = proof.plan_survivors(task)
        yield engine.run(plan, options.progress, options.busy)
        return
    for _, table in stream_parts(task, parts(), options):
        yield table


def parts_all(
    sequences: Sequences, *, include_self: bool = False, part_rows: int | None = None
) -> list[Part]:
    """The parts that ``stream_all`` makes of some ``Sequences``."""
    return part_stream.cut(sequences.lengths, include_self, part_rows)


def rows_at_once(count: int, options: PairOptions) -> int | None:
    """Rows per part when streaming all pairs of ``count`` sequences; None if one part
    is enough."""
    budget, parts = budget_of(options.memory_budget), part_stream.parts_held(1)
    within = part_stream.rows_within(budget, options.output, parts)
    rows = min(part_stream.PART_ROWS, within)
    return rows if count * (count - 1) // 2 > rows else None


def share(parts: list[Part], shard: tuple[int, int] | None = None) -> list[Part]:
    """The parts of a shard (k, n); all where it is None."""
    return parts if shard is None else part_stream.shard(parts, *shard)


@with_options(PairOptions)
def stream_all(
    sequences: SetLike, scoring: ScoringLike = None, **options: Unpack[StreamKeywords]
) -> Iterator[tuple[Part, Table]]:
    """Align all pairs of a set part by part, for results that memory cannot hold.

    The next parts are computed while the caller uses one. Together, the tables are the
    result of ``align_all``.

    Parameters
    ----------
    skip : collection of int
        Numbers of parts to leave out, such as those already written.
    shard : (int, int), optional
        (k, n) computes only the k-th of n shares of the parts, counted from 1. Each
        part is in one share, and shares have about the same number of cells.
    part_rows : int, optional
        Maximum rows per part; a single query may have more, and the last part half as
        many more. Default 2^22; smaller jobs use 1/32 of all rows, but at least 64
        queries. Parts depend only on this and on the lengths of the sequences.

    Yields
    ------
    Part
        Which rows of the whole result: ``index``, ``start`` and ``stop``, counted
        before filters.
    Table
        The rows of the part that pass the filters.

    Raises
    ------
    InputError, UsageError, MemoryPlanError, DeviceError
        As ``align_all``.

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
