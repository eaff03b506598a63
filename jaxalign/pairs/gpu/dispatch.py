"""Launches on a GPU: codes go to the device once, results come back once.

``pairs.engine`` hands in the kernels (the package ``kernels_pallas``), so that this
file needs no GPU to be imported. Launches are issued without waiting for each other.
The result of a launch is put into the columns of the result, whole or a part, on the
device, in input order; of several devices each has its own pairs in columns of all.
What filters thin out or no device can hold goes to the host launch by launch
(``pairs.gpu.device_arrays``).

A launch for which a device has no memory runs again in halves; nothing of it is in the
result before all of it is there. Errors name the job and the launch.

The programs of launches can be listed from lengths alone: nothing is computed, and no
GPU is needed (``runtime.programs``).
"""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import numpy as np

from jaxalign.errors import DeviceFailure, MemoryPlanError
from jaxalign.pairs import pair_matrix
from jaxalign.pairs.gpu import device_arrays, device_job, launches
from jaxalign.pairs.gpu.device_arrays import Form, LaunchArrays, LaunchResult
from jaxalign.pairs.gpu.device_job import DeviceJob, budget, holds
from jaxalign.pairs.gpu.launches import (
    Highest,
    Launch,
    cut,
    launch_bytes,
    smaller,
    zipped,
)
from jaxalign.pairs.pair_matrix import Partition, cells
from jaxalign.pairs.plan import Piece, PieceScores, Run, Task, Worker
from jaxalign.pairs.result import Output
from jaxalign.runtime import programs
from jaxalign.runtime.devices import Device, bucket, default_device, show_bytes
from jaxalign.runtime.pipeline import in_background
from jaxalign.runtime.programs import REMEDY, RuntimeFailure, first_line, shapes_of


def within(job: DeviceJob, launch: Launch) -> list:
    """Cut a launch into smaller ones if a similar one found no memory before; into the
    smallest that hold its pairs if none fits."""
    task, limit = job.task, device_job.memory_limit(job.device)
    while limit is not None and limit < launch_bytes(task, job.kernels, launch):
        if parts := smaller(task, job.kernels, launch, limit):
            return parts
        limit *= 2
    return [launch]


def halves(
    job: DeviceJob, launch: Launch, error: RuntimeFailure, exclusive: bool = False
) -> list:
    """Halve a launch that found no memory; repeat it unchanged if it cannot be cut and
    other launches were in flight."""
    task, kernels = job.task, job.kernels
    if not programs.out_of_memory(error):
        raise failure(task, launch, job.device, error) from error
    device_job.forget_sequences(job.device)
    needed = launch_bytes(task, kernels, launch)
    half = device_job.power(needed // 2)
    parts = smaller(task, kernels, launch, half)
    parts = parts or smaller(task, kernels, launch, needed - 1)
    if parts:
        largest = max(launch_bytes(task, kernels, part) for part in parts)
        device_job.lower_limit(job.device, max(half, largest))
        job.halved.append(launch)
    elif exclusive:
        raise MemoryPlanError(
            f"{job.device}: no memory for {_launch(task, launch)}, of "
            f"{job_words(task)}; it cannot be cut further and needs about "
            f"{show_bytes(needed)} beside the result ({first_line(error)}); free "
            "memory of the GPU, or compute on a CPU (`--device cpu`)"
        ) from error
    return parts or [launch]


def failure(
    task: "Task", launch: Launch, device: Device, error: RuntimeFailure
) -> DeviceFailure:
    """Anything else that ends a launch; whatever ran beside it has ended, too."""
    return DeviceFailure(
        f"{device} failed at {_launch(task, launch)} of {job_words(task)}: "
        f"{first_line(error)}; {REMEDY}"
    )


def _launch(task: "Task", launch: Launch) -> str:
    """``a launch of 64 queries x 4,096 targets (up to 900 x 812 letters, int16)``."""
    sides = (
        (task.job.query_lengths, launch.queries),
        (task.job.target_lengths, launch.targets),
    )
    m, n = (int(lengths[indices].max(initial=0)) for lengths, indices in sides)
    count = f"{len(launch.queries):,} queries x {len(launch.targets):,} targets"
    if launch.zipped:
        count = f"{len(launch.queries):,} pairs"
    return f"a launch of {count} (up to {m:,} x {n:,} letters, {launch.dtype})"


def job_words(task: "Task") -> str:
    return f"a job of {task.job.pairs:,} pairs, {task.mode}, output {task.output}"


# Compilations side by side: tracing and lowering hold Python's lock, so that more would
# all end late, and no launch could begin meanwhile.
COMPILE_THREADS = 4


def issue(job: DeviceJob, launch: Launch) -> LaunchResult:
    """Issue a launch; nothing waits."""
    return device_arrays.launched(_arrays(job, launch), form=_form(job, launch))


def launch_scores(job: DeviceJob, launch: Launch) -> jax.Array:
    return device_arrays.launched_scores(_arrays(job, launch), form=_form(job, launch))


def compile_all(job: DeviceJob, launches: list[Launch]) -> list[Future]:
    """Start to compile new programs of launches in parallel: a kernel takes seconds,
    and a launch waits for its own program alone. Scores that may overflow int16 will
    need int32, too, on any device."""
    launches = [part for launch in launches for part in within(job, launch)]
    distinct = _new(job, launches)
    unproven = next((x for x in launches if not x.proven), None)
    if distinct and unproven and not job.task.paths:
        first = unproven.queries[:1], unproven.targets[:1]
        wide = in_int32(job, *first, budget(job.task)).blocks
        distinct |= _new(job, wide)
    job.compiled.update(distinct)
    if len(distinct) < 2 or job.interpret is not None:
        return []

    # Of this thread; others have JAX's own, and what is compiled for one is compiled
    # again when it is called with another.
    device = default_device()

    def prepare_one(launch: Launch):
        # What fails here fails again where the launch is issued.
        with suppress(RuntimeFailure), jax.default_device(device):
            arrays, form = _arrays(job, launch), _form(job, launch)
            call = device_arrays.launched
            if job.task.top is not None:
                call = device_arrays.launched_scores
            call.prepare(arrays, form=form)

    return in_background(prepare_one, distinct.values(), COMPILE_THREADS)


def _new(job: DeviceJob, launches: list[Launch]) -> dict:
    """Launches of static sizes that are not compiled, one of each."""
    distinct = {x.sizes: x for x in launches}
    return {key: x for key, x in distinct.items() if key not in job.compiled}


def in_int32(
    job: DeviceJob, queries: np.ndarray, targets: np.ndarray, limit: int
) -> Partition:
    """Make int32 launches of pairs that share no side, with the pairs that fit none.
    They take twice the memory of int16.

    limit : bytes of a launch
    """
    sides, high = (queries, targets), Highest(job.task)
    return zipped(job.task, job.kernels, *sides, limit, high, wide=True)


def launch_ids(launch: Launch) -> list:
    """Of both sides of a launch."""
    queries = launch.places if launch.zipped else launch.slots
    return [
        device_arrays.padded_ids(launch.queries, queries),
        device_arrays.padded_ids(launch.targets, launch.places),
    ]


def _arrays(job: DeviceJob, launch: Launch) -> LaunchArrays:
    """The arrays that a launch reads."""
    stacks = None
    if launch.shape.stacks:
        stacks = launches.stacks_of(job.task, job.kernels, launch)
    pairs = np.int32(min(job.task.job.pairs, device_arrays.MAX_ROWS))
    (queries, targets), (i, j) = job.sides, launch_ids(launch)
    return LaunchArrays(job.problem, queries, targets, i, j, job.order, pairs, stacks)


def _form(job: DeviceJob, launch: Launch) -> Form:
    """The static arguments of the program of a launch."""
    letters, kernels = None, job.kernels
    if launch.room:
        like = kernels.letters_shape(launch.shape)
        letters = kernels.letters, (("room", launch.room), ("shape", like))
    options = {
        "runs": launch.path_runs,
        "shape": launch.shape,
        "interpret": job.interpret,
    }
    options |= {"records": launch.records} if launch.records else {}
    return Form(
        sizes=(launch.rows, launch.columns),
        letters=letters,
        zipped=launch.zipped,
        align=kernels.align,
        options=tuple(options.items()),
        split=kernels.split_identity if job.task.output == "identity" else None,
        capacity=launch.mean_runs * launch.pairs,
        proven=launch.proven,
    )


# Room for the rows of a launch that pass filters
FILTER_RUNGS = device_arrays.LEAST_ROWS_SENT, 16 * device_arrays.LEAST_ROWS_SENT


def outline_of_task(task: "Task", kernels: Any) -> None:
    """The programs of a task of pairs, from the sequences to the columns on the host;
    with int32 where int16 may not hold all scores."""
    job = outlined_job(task, kernels)
    launches, _ = cut(task, kernels, device_job.LAUNCH_BYTES)
    outlines = _distinct(launches)
    if unproven := [x for x in outlines if not x.proven]:
        first = unproven[0].queries[:1], unproven[0].targets[:1]
        wide = in_int32(job, *first, device_job.LAUNCH_BYTES)
        outlines += _distinct(wide.blocks)
    if not device_job.holds(task):
        for launch in outlines:
            result = issue(job, launch)
            # Few rows of a launch, or more, go to the host where filters keep them.
            sizes = {min(size, launch.pairs) for size in FILTER_RUNGS}
            for size in sorted(sizes) if task.filtered else ():
                ids, zipped = launch_ids(launch), launch.zipped
                device_arrays.passing_of(job, ids, zipped, result, size)
        return
    columns = device_arrays.columns(device_job.names_of(task), task.job.pairs)
    capacity = max(launch.mean_runs * launch.pairs for launch in outlines)
    size = bucket(capacity, device_job.RUNS_RATIO, device_job.LEAST_RUNS)
    runs = jax.ShapeDtypeStruct((size,), np.uint32)
    end = jax.ShapeDtypeStruct((), np.int32)
    for launch in outlines:
        columns, *_ = device_arrays.put(columns, runs, end, issue(job, launch))
    copied = [columns["score"]]
    if task.output == "alignment":
        order = columns["count"], columns["first"]
        copied.insert(0, device_arrays.in_order(runs, *order, size=size))
    for column in copied:
        if column.size > device_arrays.SMALL_ROWS:
            size = device_arrays.piece_rows(column)
            device_arrays.piece(column, np.int32(0), size=size)


def outline_of_scores(task: "Task", kernels: Any) -> list:
    """The programs of the scores of a search; these, as shapes, launch by launch."""
    job = outlined_job(task, kernels)
    launches, _ = cut(task, kernels, device_job.LAUNCH_BYTES)
    return [launch_scores(job, launch) for launch in _distinct(launches)]


def outlined_job(task: "Task", kernels: Any) -> DeviceJob:
    """``dispatch.prepare`` in shapes."""
    job = task.job
    sizes = (job.whole.letters, job.whole.targets) if job.whole else (0, 0)
    targets = device_job.outlined(task.targets, *sizes, task.whole_codes)
    queries = targets
    if job.kind != "all" or not task.one_set:
        queries = device_job.outlined(task.queries, *sizes, task.whole_codes)
    order = shapes_of(device_job.order_of(task, *map(np.zeros, task.shape)))
    problem = shapes_of(device_job.problem_of(task, kernels))
    return DeviceJob(task, kernels, (queries, targets), order, problem)


def _distinct(launches: list[Launch]) -> list[Launch]:
    """A launch of each static size."""
    return list({x.sizes: x for x in launches}.values())


GROUP = "launches"  # of pieces: they need not wait for each other
LAUNCHES_AHEAD = 3  # launches issued and not yet looked at


def pieces_of(task: Task, launches: list[Launch]) -> list[Piece]:
    """A piece for each of some launches; ``join`` makes one of several."""
    how = compute, scores_of_piece, GROUP
    estimate = pair_matrix.estimate
    return [Piece(task, [x], estimate(task.job, x), *how) for x in launches]


def join(pieces: list[Piece]) -> Piece:
    """One piece of the launches of several pieces of a task."""
    launches = [launch for piece in pieces for launch in piece.content]
    cells = sum(piece.cells for piece in pieces)
    return replace(pieces[0], content=launches, cells=cells)


def compute(state: Run, worker: Worker, piece: Piece) -> None:
    """Run the launches of a piece, and put their rows into the result of the run."""
    task = piece.task
    job = job_of(state, task, worker.device)
    # What other threads have may be next here.
    compile_all(job, launches_of(state, task))
    # Rows are held there if no other thread has launches for them on this device.
    exclusive = worker.only or len(state.plan.pieces) == 1
    with programs.explained(f"the launches of {job_words(task)}", worker.device):
        too_large = run(
            job, piece.content, state.output, worker.report_progress, exclusive
        )
    if too_large:
        i, j = np.array(too_large).T
        if task.kind == "all":  # as they stand in the rows of the result
            i, j = np.minimum(i, j), np.maximum(i, j)
        state.beyond.append((task, (i, j)))
        state.other_implementations.add("sweep")
    if task.reserved is not None:
        collect(state, [job])


def scores_of_piece(state: Run, worker: Worker, piece: Piece) -> Iterator[PieceScores]:
    """The scores of the launches of a piece, for a search."""
    job = job_of(state, piece.task, worker.device)
    for launch in piece.content:
        for part, values in scores(job, launch):
            yield PieceScores(part.queries, part.targets, values)


def launches_of(state: Run, task: Task) -> list[Launch]:
    """All launches of a task in a run."""
    pieces = (x for x in state.plan.pieces if x.task is task and x.group == GROUP)
    return [launch for piece in pieces for launch in piece.content]


def job_of(state: Run, task: Task, device: Device | None) -> DeviceJob:
    """The job of a task on a device, prepared by the first thread that asks."""
    key = id(task), device
    with state.lock(key):  # devices prepare at once
        if key not in state.device_jobs:
            with programs.explained(f"the sequences of {job_words(task)}", device):
                state.device_jobs[key] = prepare(task, state.kernels)
    return state.device_jobs[key]


def collect(state: Run, jobs: list[DeviceJob] | None = None) -> None:
    """Bring the rows that devices hold to the host, of all jobs or some."""
    jobs = list(state.device_jobs.values()) if jobs is None else jobs
    with programs.explained(f"the result of {job_words(state.plan.task)}"):
        device_job.collect(jobs, state.output)


def run(
    job: DeviceJob, launches: list[Launch], output: Output | None,
    report_progress: Callable[[int], object], whole: bool = True,
) -> list[tuple[int, int]]:  # fmt: skip
    """Run launches of a task and send their rows to ``output``
    (``pairs.result.Output``).

    whole : no other thread has launches on this device for ``output``, so that rows may
        stay there until ``pairs.gpu.device_job.collect``

    Returns list of (query, target), pairs without a row: their scores need int32, for
    which no launch is small enough.

    Raises MemoryPlanError: not even the least launch of some pairs fits.
    """
    shared, result = job, None
    if whole and holds(job.task) and not job.spilled:
        # The result as a device holds it; None where there is no memory for it.
        try:
            job.result = job.result or device_job.empty_result(job.task)
        except device_job.Lost:
            job.spilled = True
        result = job.result
    # Other threads have copies of their own.
    job = replace(job, result=result, output=output, report_progress=report_progress)
    try:
        too_large = _both(job, launches)
        if result is not None:
            result.launches.extend(launches)
            device_job.wait_for(result)
    except device_job.Lost:
        assert result is not None
        shared.result, shared.spilled = None, True
        # Launches whose rows a device has lost, and the others, to the host.
        job = replace(job, result=None)
        every = list({id(x): x for x in (*result.launches, *launches)}.values())
        too_large = _both(job, every, counted=True)
        job.report_progress(
            sum(cells(job.task.job, launch) for launch in every) - result.cells_reported
        )
    return too_large


def _both(
    job: DeviceJob, launches: list[Launch], counted: bool = False
) -> list[tuple[int, int]]:
    """Run launches, and repeat in int32 the pairs that may have overflowed int16.
    Returns the pairs that fit no launch.

    Raises MemoryPlanError: there are some, and the kernels are named: nothing else may
    compute them.
    """
    repeats = _all(job, launches, counted)
    if not repeats:
        return []
    queries, targets = (np.concatenate(side) for side in zip(*repeats, strict=True))
    split = in_int32(job, queries, targets, budget(job.task))
    if split.pairs and job.task.implementation == "pallas":
        raise MemoryPlanError(
            f"pallas cannot compute {len(split.pairs):,} of the pairs, whose scores "
            "need int32: they exceed the device memory; leave out the implementation"
        )
    _all(job, split.blocks, counted=True)
    return split.pairs


def prepare(task: Task, kernels: Any, interpret: Any = None) -> DeviceJob:
    """Load the codes and other inputs of launches on JAX's default device.

    interpret : parameters of the GPU interpreter, for tests
    """
    job, count = task.job, task.shape[0]
    sizes = (job.whole.letters, job.whole.targets) if job.whole else (0, 0)
    load = partial(device_job.load_sequences, wholes=task.whole_codes)
    if task.top is None:
        targets = load(task.targets, *sizes)
    else:
        targets = device_job.load_block(task.targets)
    queries = targets  # or the first of them
    if task.scoring.by_position and not any(sizes):  # it meets many blocks
        queries = device_job.load_block(task.queries)
    elif job.kind != "all" or not task.one_set:
        queries = load(task.queries, *sizes)
    rank = job.rank if job.kind == "all" and job.once else np.arange(task.shape[1])
    base = np.zeros(count) if job.kind == "zip" else job.position(np.arange(count), 0)
    order = jax.device_put(device_job.order_of(task, base, rank))
    problem = device_job.problem_of(task, kernels)
    return DeviceJob(task, kernels, (queries, targets), order, problem, interpret)


def scores(job: DeviceJob, launch: Launch) -> Iterator[tuple]:
    """Yield (launch, scores) of a launch, whole or in halves: int32 (slots, places),
    complete on the device.
    """

    def run_one(launch: Launch) -> jax.Array:
        return launch_scores(job, launch).block_until_ready()

    return _in_halves(job, _within(job, launch), run_one)


def _in_halves(
    job: DeviceJob, launches: list[Launch], run_one: Callable, exclusive: bool = False
) -> Iterator[tuple]:
    """Run launches one after the other, each in halves if it finds no memory; yield
    (launch, result).

    exclusive : whether nothing else is in flight; else what the other thread of the
        device holds will be gone the second time
    """
    todo, tried = deque(launches), None
    while todo:
        launch = todo.popleft()
        try:
            result = run_one(launch)
        except RuntimeFailure as error:
            parts = halves(job, launch, error, exclusive=exclusive or launch is tried)
            tried = launch
            todo.extendleft(reversed(parts))
        else:
            yield launch, result


def _all(job: DeviceJob, launches: list[Launch], counted: bool = False) -> list:
    """Issue launches, several ahead of those looked at; return the pairs to run
    again."""
    todo, waiting, failed, repeats = deque(launches), deque(), deque(), []

    def run_one(launch: Launch) -> list:
        return _look(job, launch, *_issue(job, launch), counted)

    while todo or waiting or failed:
        try:
            if todo and not failed and len(waiting) < LAUNCHES_AHEAD:
                launch, *remaining = _within(job, todo.popleft())
                todo.extendleft(reversed(remaining))
                waiting.append((launch, *_issue(job, launch)))
            elif waiting:
                launch, result, passing = waiting.popleft()
                repeats += _look(job, launch, result, passing, counted)
            else:  # nothing else is in flight
                launch, error = failed.popleft()
                parts = halves(job, launch, error)
                for _, repeated in _in_halves(job, parts, run_one, exclusive=True):
                    repeats += repeated
        except RuntimeFailure as error:
            if not programs.out_of_memory(error):
                raise failure(job.task, launch, job.device, error) from error
            failed.append((launch, error))
    return repeats


def _within(job: DeviceJob, launch: Launch) -> list:
    """A launch, in smaller ones where one like it found no memory before."""
    parts = within(job, launch)
    job.halved.extend([launch] * (len(parts) > 1))
    return parts


def _issue(
    job: DeviceJob, launch: Launch
) -> tuple[LaunchResult, device_arrays.PassingPairs | None]:
    """Issue a launch, then, before others queue up, the choice of the rows that filters
    keep."""
    result = issue(job, launch)
    if job.result is not None or not job.task.filtered:
        return result, None
    return result, device_arrays.passing_of(
        job, launch_ids(launch), launch.zipped, result
    )


def _look(
    job: DeviceJob,
    launch: Launch,
    result: LaunchResult,
    passing: device_arrays.PassingPairs | None,
    counted: bool,
) -> list:
    """Wait for a launch, and put its rows where they belong; if its paths are longer
    than thought, issue it again before. Pairs that have to run again."""
    repeat, longest, total = (int(x) for x in np.asarray(result.totals))
    capacity = 0 if result.runs is None else len(result.runs)
    steps = job.task.output == "alignment"
    if steps and (longest > launch.path_runs or total > capacity):
        runs = bucket(longest, 4, launch.path_runs)
        mean = bucket(-(-total // launch.pairs), 4, launch.mean_runs)
        result = issue(job, replace(launch, path_runs=runs, mean_runs=mean))
        passing = None
        result.totals.block_until_ready()
    at = np.nonzero(np.asarray(result.overflow)) if repeat else None
    cells_done = 0 if counted else cells(job.task.job, launch)
    if job.result is None:
        rows = device_arrays.to_host(
            job, launch, launch_ids(launch), result, passing, total, cells_done
        )
        job.output.put(rows)
    else:
        device_job.put_launch(job.result, result, total)
        job.result.cells_reported += cells_done
    job.report_progress(cells_done)
    return [] if at is None else [(launch.queries[at[0]], launch.targets[at[-1]])]
