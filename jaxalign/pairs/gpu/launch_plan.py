"""Launches of the GPU kernels: which queries meet which targets.

Pure and on the host. In what arrays they meet, ``pairs.gpu.launch_size`` says.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from jaxalign.errors import MemoryPlanError
from jaxalign.model import bounds
from jaxalign.pairs.gpu import launch_size
from jaxalign.pairs.gpu.launch_size import (
    COARSE_CELLS,
    Launch,
    LaunchSizes,
    launch_bytes,
    targets_in,
)
from jaxalign.pairs.gpu.score_types import Highest, least_type
from jaxalign.pairs.plan import Task, describe
from jaxalign.pairs.windows import Partition, pairs
from jaxalign.runtime.devices import refuse_over, show_bytes
from jaxalign.runtime.lengths import by_length

# Launches of queries; fewer are full: each waits for its longest program
MIN_GROUPS = 8
THREADS_OF_A_DEVICE = 2  # host threads of a device, but where its result is kept there


def make_plan(task: Task, kernels: Any, limit: int) -> tuple[dict, Partition]:
    """As for windows (``pairs.compiled``): launches of ``limit`` device bytes at
    most; a pair (i, j) beyond the kernels needs checkpointed strips.

    Raises
    ------
    MemoryPlanError
        The result exceeds the budget, or a pair does what is asked of the kernels
        alone.
    """
    refuse_over(task.result_bytes, task.budget, f"{task.job.pairs:,} pairs")
    launches, beyond = split = cut(task, kernels, limit)
    alone = len(beyond)
    if alone and task.implementation == "pallas":
        raise MemoryPlanError(
            f"{alone:,} pairs are beyond the kernels (letters, range of scores, or "
            f"{show_bytes(limit)} of device memory): leave the implementation open"
        )
    taken = [launch_bytes(task, kernels, launch) for launch in launches]
    dtypes = {launch.dtype for launch in launches}
    figures = describe(task, len(launches), alone, taken, dtypes)
    return figures | {"threads": min(task.threads, THREADS_OF_A_DEVICE)}, split


def cut(task: Task, kernels: Any, budget: int) -> Partition:
    """Launches of at most ``budget`` device bytes, and the pairs that none can hold."""
    job, high = task.job, Highest(task)
    if job.kind == "zip":
        order = by_length(job.query_lengths * (job.target_lengths + 1))
        return zipped(task, kernels, order, order, budget, high)
    order, queries = by_length(job.target_lengths), by_length(job.query_lengths)
    parts = _by_range(task, order)
    sizes, split = LaunchSizes(task, kernels, budget), Partition([], [])
    limits = [_Limit(high, some) for some in parts]
    half = job.kind == "all" and job.once
    for start, stop in _alike(task, kernels, queries):
        before = start if half else 0
        group = queries[start:stop]
        for some, limit in zip(parts, limits, strict=True):
            if before < len(some):
                most = limit.of(group, before)
                _rectangle(sizes, split, group, some[before:], most)
            before = max(before - len(some), 0)
    return split


@dataclass(frozen=True)
class _Limit:
    """Upper bounds of scores with some targets, longest first."""

    high: Highest
    targets: np.ndarray

    def of(self, queries: np.ndarray, first: int) -> Iterator[int]:
        """Limits of the scores of queries with the targets from ``first`` on: a quick
        one, and the least that is known."""
        own = int(self.high.queries[queries].max())
        yield own
        yield int(min(own, self._most[first]))

    @cached_property
    def _most(self) -> np.ndarray:
        """Upper bounds of the scores of each target and of those after it."""
        return np.maximum.accumulate(self.high.targets[self.targets][::-1])[::-1]


def _alike(task: Task, kernels: Any, queries: np.ndarray):
    """(start, stop) of queries, longest first, of one launch; at most as many as the
    largest takes. Where there are many, their best shapes are one, too."""
    lengths = task.job.query_lengths[queries].tolist()
    most, large = launch_size.QUERY_COUNTS[0], task.job.total >= COARSE_CELLS
    many = large and len(lengths) >= MIN_GROUPS * most
    kind = _kind if many else _range
    known = {length: kind(task, kernels, length) for length in set(lengths)}
    start = 0
    while start < len(lengths):
        stop, limit = start + 1, min(len(lengths), start + most)
        while stop < limit and known[lengths[stop]] == known[lengths[start]]:
            stop += 1
        yield start, stop
        start = stop


def _kind(task: Task, kernels: Any, length: int):
    """The shape, array sizes and range that queries of a launch have in common."""
    s = launch_size.shape(task, kernels, length, "int16")
    return (
        s,
        launch_size.array_rows(task, kernels, length),
        _range(task, kernels, length),
    )


def _range(task: Task, kernels: Any, length: int):
    """Whether matches of a query cannot be counted beside those of long targets."""
    return task.output == "identity" and length >= bounds.IDENTITY_BASE["int32"]


def _by_range(task: Task, order: np.ndarray):
    """Targets that one launch may hold, longest first: matches cannot be counted beside
    long ones."""
    lengths = task.job.target_lengths[order]
    beyond = (lengths >= bounds.IDENTITY_BASE["int32"]) & (task.output == "identity")
    return np.split(order, np.flatnonzero(np.diff(beyond)) + 1)


def _rectangle(
    sizes: LaunchSizes,
    split: Partition,
    queries: np.ndarray,
    targets: np.ndarray,
    most: Iterator[int],
):
    """Launches for some queries against targets of one range, both longest first; no
    score is above any of ``most``."""
    task, kernels = sizes.task, sizes.kernels
    m = int(task.job.query_lengths[queries[0]])
    n = int(task.job.target_lengths[targets[0]])
    chosen = least_type(task, kernels, m, n, most)
    launch = sizes.largest(queries, targets, (m, n), chosen)
    if launch is None:
        split.pairs.extend(pairs(task.job, Launch(queries, targets)))
    else:
        split.blocks.extend(_filled(sizes, launch, queries, targets))


def _filled(
    sizes: LaunchSizes, launch: Launch, queries: np.ndarray, targets: np.ndarray
):
    """Launches like one, as many as queries and targets fill."""
    for q in range(0, len(queries), launch.slots):
        rest = targets
        while len(rest):
            part = queries[q : q + launch.slots]
            count = targets_in(sizes.task, sizes.kernels, launch, part, rest)
            yield replace(launch, queries=part, targets=rest[:count])
            rest = rest[count:]


def smaller(task: Task, kernels: Any, launch: Launch, budget: int) -> list[Launch]:
    """The pairs of a launch in launches of at most so many device bytes, and of fewer
    pairs or checkpoints; none where the least one takes more."""
    sizes = LaunchSizes(task, kernels, budget, listed=launch.zipped)
    like = sizes.smaller(launch)
    if like is None:
        return []
    queries, targets = launch.queries, launch.targets
    if not launch.zipped:
        return list(_filled(sizes, like, queries, targets))
    launches = []
    while len(queries):
        count = targets_in(task, kernels, like, queries, targets)
        launches.append(replace(like, queries=queries[:count], targets=targets[:count]))
        queries, targets = queries[count:], targets[count:]
    return launches


def _highest(high: Highest, queries: np.ndarray, targets: np.ndarray) -> Iterator[int]:
    """Upper bounds of the scores of some queries with some targets."""
    yield min(int(high.queries[queries].max()), int(high.targets[targets].max()))


def zipped(
    task: Task,
    kernels: Any,
    queries: np.ndarray,
    targets: np.ndarray,
    budget: int,
    high: Highest,
    wide: bool = False,
) -> Partition:
    """Launches of pairs that share no side, of similar size; ``wide`` those that run
    again in int32, for scores in arrays for any pair of the job: they compile once."""
    sizes, split = LaunchSizes(task, kernels, budget, listed=True), Partition([], [])
    while len(queries):
        most = launch_size.LIST_SIZES[0]
        some = queries[:most], targets[:most]
        sides = task.job.query_lengths, task.job.target_lengths
        m, n = (int(x[of].max()) for x, of in zip(sides, some, strict=True))
        longest = m, n
        chosen = least_type(task, kernels, m, n, _highest(high, *some))
        if chosen is not None and wide:
            longest = longest if task.paths else task.job.most
            chosen = "int32", True
        launch = sizes.largest(*some, longest, chosen)
        if launch is None:
            split.pairs.append((int(queries[0]), int(targets[0])))
            queries, targets = queries[1:], targets[1:]
            continue
        count = targets_in(task, kernels, launch, queries, targets)
        own = {"queries": queries[:count], "targets": targets[:count]}
        split.blocks.append(replace(launch, **own))
        queries, targets = queries[count:], targets[count:]
    return split
