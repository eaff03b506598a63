"""Launches on a GPU: codes go to the device once, results come back once.

``pairs.engine`` hands in the kernels (the package ``kernels_pallas``), so that this
file needs no GPU to be imported. Launches are issued without waiting for each other.
The result of a launch is put into the columns of the result, whole or a part, on the
device, in input order; of several devices each has its own pairs in columns of all.
What filters thin out or no device can hold goes to the host launch by launch
(``pairs.gpu.transfer``).

A launch for which a device has no memory runs again in halves; nothing of it is in the
result before all of it is there.
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from jaxalign.errors import MemoryPlanError
from jaxalign.pairs import schedule
from jaxalign.pairs.gpu import device_job, transfer
from jaxalign.pairs.gpu.device_arrays import LaunchResult
from jaxalign.pairs.gpu.device_job import DeviceJob, DeviceResult, load_sides
from jaxalign.pairs.gpu.device_memory import holds
from jaxalign.pairs.gpu.launch_call import (
    compile_all,
    failure,
    halves,
    in_int32,
    issue,
    job_words,
    launch_ids,
    launch_scores,
    within,
)
from jaxalign.pairs.gpu.launch_size import Launch
from jaxalign.pairs.plan import Piece, Task
from jaxalign.pairs.result import Output
from jaxalign.pairs.run_state import PieceScores, Run, Worker
from jaxalign.pairs.windows import cells
from jaxalign.runtime import device_errors
from jaxalign.runtime.device_errors import RuntimeFailure
from jaxalign.runtime.devices import Device
from jaxalign.runtime.lengths import bucket

GROUP = "launches"  # of pieces: they need not wait for each other
LAUNCHES_AHEAD = 3  # launches issued and not yet looked at


def pieces_of(task: Task, launches: list[Launch]) -> list[Piece]:
    """A piece for each of some launches; ``join`` makes one of several."""
    return [
        Piece(
            task, [x], schedule.estimate(task.job, x), compute, scores_of_piece, GROUP
        )
        for x in launches
    ]


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
    alone = worker.only or len(state.plan.pieces) == 1
    with device_errors.explained(f"the launches of {job_words(task)}", worker.device):
        too_large = run(job, piece.content, state.output, worker.tell, alone)
    if too_large:
        state.beyond.append((task, _as_rows(task, too_large)))
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
            with device_errors.explained(f"the sequences of {job_words(task)}", device):
                state.device_jobs[key] = prepare(task, state.kernels)
    return state.device_jobs[key]


def collect(state: Run, jobs: list[DeviceJob] | None = None) -> None:
    """Bring the rows that devices hold to the host, of all jobs or some."""
    jobs = list(state.device_jobs.values()) if jobs is None else jobs
    with device_errors.explained(f"the result of {job_words(state.plan.task)}"):
        device_job.collect(jobs, state.output)


def _as_rows(task: Task, pairs: list[tuple[int, int]]) -> tuple[np.ndarray, ...]:
    """Pairs (queries, targets) as they stand in the rows of the result."""
    i, j = np.array(pairs).T
    return (np.minimum(i, j), np.maximum(i, j)) if task.kind == "all" else (i, j)


def run(
    job: DeviceJob, launches: list[Launch], output: Output | None,
    tell: Callable[[int], object], whole: bool = True,
) -> list[tuple[int, int]]:  # fmt: skip
    """Some launches of a task; rows to ``output`` (``pairs.result.Output``).

    whole : no other thread has launches on this device for ``output``, so that rows may
        stay there until ``pairs.gpu.device_job.collect``

    Returns
    -------
    list of (query, target)
        Pairs without a row: their scores need int32, for which no launch is small
        enough.

    Raises
    ------
    MemoryPlanError
        Not even the least launch of some pairs fits.
    DeviceFailure
    """
    shared, result = job, None
    if whole and holds(job.task) and not job.spilled:
        result = _result_of(job)
    # Other threads have copies of their own.
    job = replace(job, result=result, output=output, tell=tell)
    try:
        too_large = _both(job, launches)
        if result is not None:
            result.launches.extend(launches)
            device_job.wait_for(result)
    except device_job.Lost:
        assert result is not None
        shared.result, shared.spilled = None, True
        too_large = _again(replace(job, result=None), result, launches)
    return too_large


def _result_of(job: DeviceJob) -> DeviceResult | None:
    """The result as a device holds it; None where there is no memory for it."""
    try:
        job.result = job.result or device_job.empty_result(job.task)
    except device_job.Lost:
        job.spilled = True
    return job.result


def _again(
    job: DeviceJob, result: DeviceResult, launches: list[Launch]
) -> list[tuple[int, int]]:
    """Launches whose rows a device has lost, and the others, to the host."""
    every = list({id(x): x for x in (*result.launches, *launches)}.values())
    too_large = _both(job, every, counted=True)
    job.tell(
        sum(cells(job.task.job, launch) for launch in every) - result.cells_reported
    )
    return too_large


def _both(
    job: DeviceJob, launches: list[Launch], counted: bool = False
) -> list[tuple[int, int]]:
    """Launches, and in int32 exactly the pairs whose score may have left int16; those
    of them that fit no launch come back.

    Raises
    ------
    MemoryPlanError
        There are some, and the kernels are named: nothing else may compute them.
    """
    again = _all(job, launches, counted)
    if not again:
        return []
    queries, targets = (np.concatenate(side) for side in zip(*again, strict=True))
    split = in_int32(job, queries, targets)
    if split.pairs and job.task.implementation == "pallas":
        raise MemoryPlanError(
            f"the scores of {len(split.pairs):,} pairs need int32, in which they do "
            "not fit the memory of the device: leave the implementation open"
        )
    _all(job, split.blocks, counted=True)
    return split.pairs


def prepare(task: Task, kernels: Any, interpret: Any = None) -> DeviceJob:
    """The codes and what else launches read, on JAX's default device.

    interpret : parameters of the GPU interpreter, for tests.
    """
    return DeviceJob(task, kernels, *load_sides(task, kernels), interpret=interpret)


def scores(job: DeviceJob, launch: Launch) -> Iterator[tuple]:
    """(launch, its scores on the device: int32 (slots, places)), of a launch whole or
    in halves; the scores are there.

    Raises
    ------
    MemoryPlanError, DeviceFailure
    """
    todo, tried = deque(_within(job, launch)), None
    while todo:
        launch = todo.popleft()
        try:
            values = launch_scores(job, launch).block_until_ready()
        except RuntimeFailure as error:
            # What the other thread of the device has will be gone the second time.
            parts = halves(job, launch, error, alone=launch is tried)
            tried = launch
            todo.extendleft(reversed(parts))
        else:
            yield launch, values


def _all(job: DeviceJob, launches: list[Launch], counted: bool = False) -> list:
    """Issue launches, some ahead of those looked at; pairs that have to run again."""
    todo, waiting, failed, again = deque(launches), deque(), deque(), []
    while todo or waiting or failed:
        try:
            if todo and not failed and len(waiting) < LAUNCHES_AHEAD:
                launch, *rest = _within(job, todo.popleft())
                todo.extendleft(reversed(rest))
                waiting.append((launch, *_issue(job, launch)))
            elif waiting:
                launch, result, passing = waiting.popleft()
                again += _look(job, launch, result, passing, counted)
            else:  # nothing else is in flight
                launch, error = failed.popleft()
                again += _apart(job, launch, error, counted)
        except RuntimeFailure as error:
            if not device_errors.out_of_memory(error):
                raise failure(job.task, launch, job.device, error) from error
            failed.append((launch, error))
    return again


def _within(job: DeviceJob, launch: Launch) -> list:
    """A launch, in smaller ones where one like it found no memory before."""
    parts = within(job, launch)
    job.halved.extend([launch] * (len(parts) > 1))
    return parts


def _apart(
    job: DeviceJob, launch: Launch, error: RuntimeFailure, counted: bool
) -> list:
    """A launch that found no memory beside others in halves, one after the other; pairs
    that have to run again."""
    todo, again = deque(halves(job, launch, error)), []
    while todo:
        launch = todo.popleft()
        try:
            again += _look(job, launch, *_issue(job, launch), counted)
        except RuntimeFailure as failure:
            todo.extendleft(reversed(halves(job, launch, failure, alone=True)))
    return again


def _issue(
    job: DeviceJob, launch: Launch
) -> tuple[LaunchResult, transfer.PassingPairs | None]:
    """Issue a launch and, before others stand in front of it, what chooses the rows
    that filters keep."""
    result = issue(job, launch)
    if job.result is not None or not job.task.filtered:
        return result, None
    return result, transfer.passing_of(job, launch_ids(launch), launch.zipped, result)


def _look(
    job: DeviceJob,
    launch: Launch,
    result: LaunchResult,
    passing: transfer.PassingPairs | None,
    counted: bool,
) -> list:
    """Wait for a launch, and put its rows where they belong; if its paths are longer
    than thought, issue it again before. Pairs that have to run again."""
    repeat, longest, total = (int(x) for x in np.asarray(result.totals))
    known = 0 if result.runs is None else len(result.runs)
    if job.steps and (longest > launch.path_runs or total > known):
        runs = bucket(longest, 4, launch.path_runs)
        mean = bucket(-(-total // launch.pairs), 4, launch.mean_runs)
        result = issue(job, replace(launch, path_runs=runs, mean_runs=mean))
        passing = None
        result.totals.block_until_ready()
    at = np.nonzero(np.asarray(result.again)) if repeat else None
    cells_done = 0 if counted else cells(job.task.job, launch)
    if job.result is None:
        rows = transfer.to_host(
            job, launch, launch_ids(launch), result, passing, total, cells_done
        )
        job.output.put(rows)
    else:
        device_job.put_launch(job.result, result, total)
        job.result.cells_reported += cells_done
    job.tell(cells_done)
    return [] if at is None else [(launch.queries[at[0]], launch.targets[at[-1]])]
