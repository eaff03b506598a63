"""The plan of windows: how the pair matrix is cut, and in how many bytes."""

from dataclasses import replace

from jaxalign.errors import MemoryPlanError
from jaxalign.pairs import windows
from jaxalign.pairs.cpu import eight_bits, long_pair, partition
from jaxalign.pairs.plan import Task, describe
from jaxalign.pairs.windows import Partition
from jaxalign.runtime.memory import refuse_over, show_bytes


def make_plan(task: Task) -> tuple[dict, Partition]:
    """The figures of a run, before it begins, and its windows and single pairs.

    Raises
    ------
    MemoryPlanError
        The result and a piece for every thread exceed the budget; or checkpoints are
        needed where another implementation is named.
    """
    fit = task.result_bytes + 2**20 * task.threads
    if fit <= task.budget:
        figures, split = _plan(task)
        if _bytes(figures) <= task.budget:
            return figures, split
    # Bytes of a piece follow the budget: grow it until the plan fits, and name that.
    while (needed := _bytes(_plan(replace(task, budget=fit))[0])) > fit:
        fit = needed
    refuse_over(fit, task.budget, f"{task.job.pairs:,} pairs")
    return _plan(task)


def _bytes(figures) -> int:
    return figures["result_bytes"] + figures["window_bytes"] * figures["threads"]


def _plan(task):
    """(figures, partition) within the task's budget, as far as the pairs can be cut."""
    limit = task.window_budget
    split = partition.cut(task.job, limit)
    if task.implementation is None:
        split = partition.without_lone(task.job, split)
    if task.implementation in ("wavefront", "striped"):
        single = [pair for w in split.blocks for pair in windows.pairs(task.job, w)]
        split = Partition([], [*single, *split.pairs])
    sizes = [(len(task.queries[i]), len(task.targets[j])) for i, j in split.pairs]
    if task.implementation == "sweep" and sizes:
        if limit >= partition.MAX_NARROW_BYTES:
            size = show_bytes(partition.MAX_NARROW_BYTES)
            raise MemoryPlanError(
                f"{len(sizes):,} pairs do not fit a window of {size} with "
                "their backtrack: leave the implementation open, or name wavefront"
            )
        needed = [partition.least_bytes(task.job, *pair) for pair in split.pairs]
    else:
        needed = [long_pair.bytes_needed(*size, limit) for size in sizes]
    needed += [partition.window_bytes(w, 4, task.job.steps) for w in split.blocks]
    dtypes = {task.dtype(*shape) for shape in sizes}
    dtypes |= {task.dtype(w.m, w.n) for w in split.blocks}
    if split.blocks and eight_bits.limit(task):
        dtypes.add("int8")
    if any(eight_bits.opening(task, w) is not None for w in split.blocks):
        dtypes.add("uint8")
    return describe(task, len(split.blocks), len(sizes), needed, dtypes), split
