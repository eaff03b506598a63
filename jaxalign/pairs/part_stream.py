"""A job run part by part: the next parts are planned and computed meanwhile.

A part in which most pairs may pass is a batch of its own. Of the others the few pairs
that may pass are aligned together with those of the parts that follow: a window needs
pairs of like lengths, of which one part may have too few.

A part is a band of the pair matrix, so its rows are consecutive rows of the result; of
two sets, as of a search, it is some queries against all targets. Parts depend on the
lengths alone, not on the machine: a run may go on elsewhere.

On many machines parts are tasks on Ray (``jaxalign[cluster]``). Each task is one part,
computed by ``pairs.engine`` with the CPUs or the GPU it was given. Some more parts are
handed out than there are workers, never all; a part whose worker or machine is lost is
computed again. Rows come back in order, so the result is the same.
"""

import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from jaxalign.errors import DeviceError, MemoryPlanError, UsageError
from jaxalign.model.alphabet import gather_runs
from jaxalign.model.numbers import check_whole
from jaxalign.pairs import engine, pair_matrix
from jaxalign.pairs.gpu import launches
from jaxalign.pairs.pair_matrix import WholeJob
from jaxalign.pairs.plan import (
    COLUMN_BYTES,
    SUMMED,
    Plan,
    Progress,
    Run,
    Task,
    WholeCodes,
    added,
)
from jaxalign.pairs.proofs import proof
from jaxalign.pairs.proofs.proof import Survivors
from jaxalign.runtime import pipeline
from jaxalign.runtime.devices import (
    Arrivals,
    Share,
    budget_of,
    connect,
    fetch,
    installed_version,
    share_of,
)

PART_ROWS = 2**22  # of a part, about; 184 MB of statistics
PART_CELLS = 2**40  # of a part; a minute or two on a few cores, a second on a GPU
MIN_PARTS = 32  # of a smaller job, so that several machines end together …
MIN_CELLS = 2**38  # … but so many cells each, and QUERIES_STEP queries
SEARCH_CELLS = 2**42  # … of a search, which may read the database for each part
LAST_RATIO = 1.5  # parts that the last one may be: a small triangle leaves lanes empty
# Times as many targets: no more cells in vain than a triangle of its own has
MIN_TARGET_RATIO = 3
MOST_ROWS = 2**61  # no job has as many; sums with it stay within int64
QUERIES_STEP = 64  # a launch on a GPU takes so many queries


@dataclass(frozen=True)
class Part:
    """Consecutive rows of a large result, computed together.

    Attributes
    ----------
    index : int
        Number of the part, from 0.
    first, last : int
        Range of its queries, ``last`` excluded.
    start, stop : int
        Range of its rows in the whole result before filters, ``stop`` excluded.
    cells : int
        Estimated cost, to compare parts.
    """

    index: int
    first: int
    last: int
    start: int
    stop: int
    cells: int


def cut(
    lengths: np.ndarray,
    include_self: bool = False,
    rows: int | None = None,
    cells: int | None = None,
) -> list[Part]:
    """The parts of all pairs i < j (i <= j with ``include_self``) of some sequences.

    lengths : int64 (n,)
    rows, cells : int, optional, of a part at most, unless a single query has more; of
        the last half as many more. By default ``PART_ROWS`` and ``PART_CELLS``, or a
        share of a smaller job.

    Returns list of Part, one at least; where there is no pair, it has no rows.
    """
    n, follow = len(lengths), 0 if include_self else 1
    lengths = np.asarray(lengths, np.int64)
    partners = n - np.arange(n) - follow
    after = np.cumsum(lengths[::-1])[::-1] - follow * lengths
    row = np.concatenate([[0], np.cumsum(partners)])
    cell = np.concatenate([[0], np.cumsum(lengths * after)])
    rows = checked(rows) or min(
        PART_ROWS, max(int(row[n]) // MIN_PARTS, QUERIES_STEP * n, 1)
    )
    cells = cells or min(PART_CELLS, max(int(cell[n]) // MIN_PARTS, MIN_CELLS))
    return _bands(row, cell, rows, cells, LAST_RATIO)


def cut_search(
    lengths: np.ndarray,
    top: int,
    residues: int,
    rows: int = PART_ROWS,
    cells: int = SEARCH_CELLS,
) -> list[Part]:
    """The parts of a search: some queries against the whole database.

    lengths : int64 (n,), of the queries
    top : int, rows of a query at most; ``start`` and ``stop`` count so many of each
    residues : int, of the database, about; the same whenever the run goes on
    rows, cells : int, of a part at most, unless a single query has more
    """
    lengths = np.asarray(lengths, np.int64)
    row = np.arange(len(lengths) + 1, dtype=np.int64) * top
    cell = np.concatenate([[0], np.cumsum(lengths * max(residues, 1))])
    return _bands(row, cell, rows, cells)


def cut_cross(task: Task) -> list[Part]:
    """The parts of a task ``cross``, of which several fit its budget if all their rows
    are kept: of a run that nobody resumes. A launch on a GPU has all its queries."""
    count = parts_held(len(task.devices))
    limit = rows_within(task.parts_budget, task.output, count)
    rows = min(max(PART_ROWS, QUERIES_STEP * task.shape[1]), limit)
    sizes = task.shape[1], len(task.targets.codes)
    return cut_search(task.queries.lengths, *sizes, rows)


def _bands(
    row: np.ndarray, cell: np.ndarray, rows: int, cells: int, share: float = 1
) -> list[Part]:
    """Some queries a part; ``row`` and ``cell`` count those of all queries before; the
    last is up to ``share`` parts."""
    bands, first, n = [], 0, len(row) - 1
    totals = (row, rows), (cell, cells)
    while row[first] < row[n] or not bands:
        # The largest end up to which the running total grows by the limit at most.
        last = min(
            (int(np.searchsorted(total, total[first] + limit, "right")) - 1)
            for total, limit in totals
        )
        if all(total[n] - total[first] <= share * limit for total, limit in totals):
            last = n
        last = max(last, min(first + 1, n))
        if last < n and last - first > QUERIES_STEP:
            last = first + (last - first) // QUERIES_STEP * QUERIES_STEP
        start, stop = int(row[first]), int(row[last])
        part_cells = int(cell[last] - cell[first])
        bands.append(Part(len(bands), first, last, start, stop, part_cells))
        first = last
    return bands


def cut_of(task: Task, rows: int | None = None) -> list[Part]:
    """The parts of a task of all pairs of a set.

    Raises UsageError: ``rows`` below 1.
    """
    return cut(task.queries.lengths, task.include_self, rows)


def cut_within(task: Task, rows: int | None = None) -> list[Part]:
    """The parts of a task of all pairs of a set, as its budget allows unless their rows
    are given: of a run that nobody resumes."""
    parts, count = cut_of(task, rows), parts_held(len(task.devices))
    row_limit = rows_within(task.parts_budget, task.output, count)
    if rows is None and any(part.stop - part.start > row_limit for part in parts):
        return cut_of(task, row_limit)
    return parts


def rows_within(budget: int, output: str, count: int) -> int:
    """Rows of a part, of which ``count`` are in memory in half of a budget; one at
    least."""
    return max(budget // (2 * COLUMN_BYTES[output] * count), 1)


def checked(rows: int | None) -> int | None:
    """Rows of a part, None where none are asked for.

    Raises UsageError: below 1.
    """
    check_whole("part_rows", rows)
    return rows and min(rows, MOST_ROWS)


def shard(parts: list[Part], k: int, n: int) -> list[Part]:
    """The k-th of n shares, from 1: parts by LPT on n machines that are alike; no
    machine beyond the number of parts has one.

    Raises UsageError: there is no such share.
    """
    if not 1 <= k <= n:
        raise UsageError(f"shard {k} of {n}: must be from 1 to {n}")
    if k > len(parts):
        return []
    machines = min(n, len(parts))
    schedule = pair_matrix.schedule([part.cells for part in parts], machines)
    taken = schedule.windows[k - 1]
    return [parts[index] for index in sorted(taken)]


def tasks_of_part(task: Task, part: Part, reserved: int) -> tuple[Task, list[Task]]:
    """Make the task whose result is the rows of a part, and the tasks that compute
    them.

    Of two sets that is one task. Of one set it is one where its queries are few beside
    those they meet: they meet each other twice then. Else two: the queries against all
    that follow the part, and those of the part among themselves.

    reserved : bytes of results in memory while parts are at work
    """
    n = task.shape[0]
    if (part.first, part.last) == (0, n):
        whole = replace(task, reserved=reserved)
        return whole, [whole]
    if task.kind == "cross":
        letters = max(len(task.queries.codes), len(task.targets.codes))
        whole = WholeJob(task.job.most, task.job.cells, task.shape[1], letters)
        band = task.queries.between(part.first, part.last)
        rows = replace(task, queries=band, whole=whole, reserved=reserved)
        return rows, [rows]
    longest = int(task.queries.lengths.max(initial=0))
    whole = WholeJob((longest, longest), task.job.cells, n, len(task.queries.codes))
    same = replace(task, whole=whole, reserved=reserved)
    band = task.queries.between(part.first, part.last)
    rows = replace(same, queries=band, targets=task.targets.between(part.first, n))
    if len(band) * MIN_TARGET_RATIO <= len(rows.targets):
        rows = replace(rows, once=False)
        return rows, [rows]
    targets = band if task.one_set else task.targets.between(part.first, part.last)
    corner = replace(same, queries=band, targets=targets, size=n - part.first)
    if part.last == n:
        return replace(corner, size=None), [corner]
    later = task.targets.between(part.last, n)
    square = replace(corner, kind="cross", targets=later, shift=len(band))
    return rows, [square, corner]


def parts_held(devices: int) -> int:
    """Parts whose rows are in memory at a time, while some devices compute."""
    return pipeline.PARTS_AHEAD * max(devices, 1) + pipeline.WRITERS


def reserved_bytes(task: Task, parts: list[Part], count: int) -> int:
    """Bytes of the ``count`` largest parts, all rows kept; of those of a filtered job
    without a named budget, half of the memory at most: few of their rows are."""
    rows = sorted((part.stop - part.start for part in parts), reverse=True)
    needed = sum(rows[:count]) * COLUMN_BYTES[task.output]
    guessed = task.filtered and task.parts_budget > task.budget
    return min(needed, task.budget // 2) if guessed else needed


class Limits(NamedTuple):
    """How much is done at once."""

    looked_at: int  # pairs of parts that are looked at together; 0: each part alone
    pairs: int  # of a batch, which then takes no further part …
    parts: int  # … nor beyond so many: an interrupted run computes them again
    # Groups of parts a device, looked at while what was found before is planned:
    # a group may be a single launch, and ends with its longest one.
    groups_ahead: int = 0


# A core counts the subsequences of 10^6 pairs a second, a GPU of 1,000 times as many;
# few pairs at a time would leave it idle.
ON_CPU, ON_GPU = Limits(0, 2**16, 8), Limits(2**27, 2**18, 64, 2)
LEAST_GROUPS = 64  # of a large job, whose parts are looked at by wider launches
AFTER_SCORES = Limits(0, 2**18, 32)


class Batch(NamedTuple):
    """Consecutive parts, the plan of their rows, and what is said of each alone."""

    parts: list[Part]
    plan: Plan
    figures: list[dict]


class _Looked(NamedTuple):
    """A part, the task of its rows and those that compute all of them, and its pairs
    that may pass, ``Survivors``; None: all are to be aligned."""

    part: Part
    tasks: tuple[Task, list[Task]]
    passing: Any


def stream(
    task: Task, parts: list[Part], progress: Progress = None, busy: Progress = None
):
    """Run parts of a task of all pairs of a set, or of two; the next ones are planned
    and computed while the caller has one.

    Yields part, columns, paths, info, as of ``run``, part by part, in order; indices
    are those of the whole set. ``seconds`` is the time since the part before.
    """
    runs_ahead, reserved = _room(task, parts)
    task = proof.with_room(task, reserved)
    task = replace(task, whole_codes=task.whole_codes or whole_codes(task))
    # Kernels compute identities as fast as scores and subsequences, but not paths.
    by_kernels = task.scores_first and engine.by_kernels(task)
    if task.scores_first and (task.paths or not by_kernels):
        yield from _after_scores(task, parts, reserved, progress, busy)
        return
    batches: deque[Batch] = deque()

    def runs():
        limits = ON_CPU
        if proof.on_gpu(task, prepare=True):
            together = max(ON_GPU.looked_at, task.job.pairs // LEAST_GROUPS)
            limits = ON_GPU._replace(looked_at=together)
        looked = looked_at(task, parts, reserved, limits)
        for batch in batches_of(task, looked, reserved, limits):
            batches.append(batch)
            yield engine.start(batch.plan)

    cells, start_time = sum(part.cells for part in parts), time.perf_counter()
    whole = replace(task, reserved=reserved)
    for run in engine.compute(runs(), whole, cells, progress, busy, runs_ahead):
        stop_time = time.perf_counter()
        run.seconds, start_time = stop_time - start_time, stop_time
        yield from parts_of(batches.popleft(), run)


def _after_scores(
    task: Task, parts: list[Part], reserved: int, progress: Progress, busy: Progress
):
    """Run parts as ``stream`` does: the scores of their pairs, and then the rows of
    those that reach the score of the filters, while the next scores are computed."""
    by_score = replace(
        task.filters, min_identity=None, min_cov=None, min_length_ratio=None
    )
    scores = replace(
        task,
        output="score",
        equals_alike=False,  # which the rows are
        filters=by_score,
        later_filters=None if engine.by_kernels(task) else task.filters,
    )

    def looked() -> Iterator[_Looked]:
        for part, columns, _, info in stream(scores, parts, progress, busy):
            tasks = tasks_of_part(task, part, reserved)
            pairs = Survivors(columns["query"], columns["target"])
            i, j = proof.shifted(task, pairs, -part.first)
            below = info.get("aligned_pairs", info["pairs"]) - len(i)
            name = str(by_score).replace(">=", "<")
            excluded = {**info.get("excluded", {}), name: below}
            passing = proof.worthwhile(tasks[0], Survivors(i, j, excluded))
            yield _Looked(part, tasks, passing)

    for batch in batches_of(task, looked(), reserved, AFTER_SCORES):
        start_time, run = time.perf_counter(), engine.start(batch.plan)
        for _ in engine.compute([run], task, 0, None, busy):
            run.seconds = time.perf_counter() - start_time
            yield from parts_of(batch, run)


def whole_codes(task: Task) -> tuple[WholeCodes, ...]:
    """The letters that the parts of a task share on a device."""
    sides = task.queries.codes, task.targets.codes
    return tuple(map(WholeCodes, sides[:1] if sides[0] is sides[1] else sides))


def _room(task: Task, parts: list[Part]) -> tuple[int, int]:
    """Parts that are planned or at work ahead, and the bytes of parts in memory."""
    count = parts_held(len(task.devices))
    runs_ahead = count - pipeline.WRITERS
    return runs_ahead, reserved_bytes(task, parts, count)


def tasks_of(task: Task, parts: list[Part]) -> Iterator[Task]:
    """The tasks that compute some parts, as ``stream`` has them."""
    task = replace(task, whole_codes=whole_codes(task))
    _, reserved = _room(task, parts)
    for part in parts:
        yield from tasks_of_part(task, part, reserved)[1]


def plan_parts(task: Task, parts: list[Part]) -> Plan:
    """Plan a streamed run: the plan of its heaviest part, and the number of parts."""
    _, reserved = _room(task, parts)
    heaviest = max(parts, key=lambda part: part.cells)
    try:
        of_part = proof.planned(
            task,
            lambda fitted: engine.plan_rows(*tasks_of_part(fitted, heaviest, reserved)),
            reserved,
        )
        task = proof.with_room(task, reserved)
    except MemoryPlanError as error:
        rows = rows_within(task.budget, task.output, parts_held(len(task.devices)))
        if rows >= heaviest.stop - heaviest.start:
            raise
        raise MemoryPlanError(
            f"one part of {len(parts):,} has {error}; make smaller parts with "
            f"part_rows={rows}"
        ) from error
    whole = {"pairs": sum(part.stop - part.start for part in parts)}
    whole |= {"cells": sum(part.cells for part in parts), "parts": len(parts)}
    whole |= proof.bound_figures(task)
    return Plan(task, (), of_part.figures | whole, tuple(parts))


def looked_at(
    task: Task, all_parts: list[Part], reserved: int, limits: Limits
) -> Iterator[_Looked]:
    """Parts with their pairs that may pass, by proofs that need no alignment."""
    groups_ahead = limits.groups_ahead * max(len(task.devices), 1)
    places = proof.places_on_gpus(task) if groups_ahead else None

    def look(parts: list[Part]) -> list[_Looked]:
        tasks = [tasks_of_part(task, part, reserved) for part in parts]
        rows_tasks = [entry for entry, _ in tasks]
        if len(parts) > 1:
            band, _ = tasks_of_part(task, _band(parts), reserved)
            starts = [part.first - parts[0].first for part in parts]
            passing = proof.look_at_parts(band, rows_tasks, starts, places)
        else:
            passing = [proof.look(rows_tasks[0], places)]
        return list(map(_Looked, parts, tasks, passing))

    groups = _groups(all_parts, limits)
    looked: Iterable[list[_Looked]] = map(look, groups)
    if groups_ahead:
        looked = pipeline.in_advance(look, groups, groups_ahead)
    return chain.from_iterable(looked)


def batches_of(
    task: Task, looked: Iterable[_Looked], reserved: int, limits: Limits
) -> Iterator[Batch]:
    """The batches of some parts of a task, in order."""
    waiting: list[_Looked] = []
    for entry in looked:
        if waiting:
            pairs = sum(len(x.passing.i) for x in waiting)
            full = pairs >= limits.pairs or len(waiting) >= limits.parts
            apart = waiting[-1].part.last != entry.part.first
            if full or entry.passing is None or apart:
                yield _batch(task, waiting, reserved)
                waiting = []
        if entry.passing is not None:
            waiting.append(entry)
            continue
        rows_task, computed = entry.tasks
        plan = engine.plan_rows(rows_task, computed)
        figures = plan.figures | proof.figures_of(rows_task, None)
        yield Batch([entry.part], replace(plan, figures=figures), [{}])
    if waiting:
        yield _batch(task, waiting, reserved)


def _groups(parts: list[Part], limits: Limits) -> Iterator[list[Part]]:
    """Consecutive parts that are looked at together."""
    group: list[Part] = []
    for part in parts:
        pairs = part.stop - group[0].start if group else 0
        if group and (group[-1].last != part.first or pairs > limits.looked_at):
            yield group
            group = []
        group.append(part)
    if group:
        yield group


def _band(parts: list[Part]) -> Part:
    """Consecutive parts as one."""
    cells = sum(part.cells for part in parts)
    return replace(parts[0], last=parts[-1].last, stop=parts[-1].stop, cells=cells)


def _batch(task: Task, looked: list[_Looked], reserved: int) -> Batch:
    """One plan of the pairs of some parts."""
    parts = [entry.part for entry in looked]
    rows_task, _ = tasks_of_part(task, _band(parts), reserved)
    sides = [
        proof.shifted(task, entry.passing, entry.part.first - parts[0].first)
        for entry in looked
    ]
    i, j = (np.concatenate(side) for side in zip(*sides, strict=True))
    excluded = reduce(added, (entry.passing.excluded for entry in looked))
    plan = proof.plan_of_survivors(rows_task, Survivors(i, j, excluded))
    each = [proof.figures_of(entry.tasks[0], entry.passing) for entry in looked]
    return Batch(parts, plan, each)


def parts_of(batch: Batch, run: Run) -> Iterator[tuple]:
    """(part, columns, paths, info) of the parts of a batch that has run; the first one
    says what was computed for all."""
    columns, paths = run.output.finish()
    pairs = Survivors(columns["query"], columns["target"])
    shift = batch.parts[0].first
    sides = proof.shifted(batch.plan.task, pairs, shift)
    columns |= dict(zip(("query", "target"), sides, strict=True))
    info: dict[str, Any] = engine.summary(run)
    if len(batch.parts) == 1:
        yield batch.parts[0], columns, paths, info | batch.figures[0]
        return
    ends = np.searchsorted(columns["query"], [part.last for part in batch.parts])
    start = 0
    for part, stop, figures in zip(batch.parts, ends, batch.figures, strict=True):
        rows = np.arange(start, stop)
        part_columns = {name: values[start:stop] for name, values in columns.items()}
        runs = None if paths is None else gather_runs(paths[0], paths[1], rows)
        yield part, part_columns, runs, info | figures
        info = info | {name: 0 for name in SUMMED if name in info}
        info["device_cells"] = [0] * len(info["device_cells"])
        start = stop


MAX_RETRIES = 20  # times a part is computed anew after a loss
PARTS_PER_WORKER = 2  # parts handed out for each worker; those beyond one wait


def stream_on_cluster(
    task: Task,
    parts: list[Part],
    address: str,
    progress: Progress = None,
    busy: Progress = None,
):
    """As ``stream``, on the machines of a Ray cluster.

    address : str, "auto" for the cluster this machine belongs to, or "HOST:PORT"

    Raises UsageError: Ray is not installed, or devices are named: Ray gives each part
    its device; DeviceError: no cluster answers, or its machines have another version of
    jaxalign.
    """
    if task.devices:
        raise UsageError("a cluster chooses its devices: leave out devices")
    ray = connect(address)
    share = share_of(ray.nodes())
    work = ray.remote(num_cpus=share.cpus, num_gpus=share.gpus, max_retries=MAX_RETRIES)
    work = work(_compute)
    whole = ray.put(task)
    ready = Arrivals(ray, sum(part.cells for part in parts), progress, busy, share)
    todo, pending = iter(parts), []
    try:
        while True:
            while len(pending) < PARTS_PER_WORKER * share.workers:
                if (part := next(todo, None)) is None:
                    break
                pending.append(
                    (part, work.remote(whole, part, share, installed_version()))
                )
            if not pending:
                return
            part, coming = pending[0]
            ready.wait(pending)
            yield part, *fetch(ray, coming)
            pending.pop(0)
    finally:
        for _, reference in pending:
            ray.cancel(reference, force=False)


def _compute(task: Task, part: Part, share: Share, version: str):
    """One part, on a worker."""
    if version != installed_version():
        raise DeviceError(
            f"a worker has jaxalign {installed_version()}, and this machine {version}: "
            "install the same"
        )
    # Ray limits OpenMP to the CPUs of a task; XLA's loops are threads of our own.
    threads = launches.THREADS_OF_A_DEVICE if share.gpus else share.cpus
    budget = min(task.budget, budget_of() // share.on_a_node)
    task = replace(task, threads=threads, budget=budget)
    ((_, columns, paths, info),) = stream(task, [part])
    return columns, paths, info
