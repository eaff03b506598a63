"""A job and its plan: what will be computed, with what, and how many bytes it needs."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from jaxalign.errors import MemoryPlanError
from jaxalign.model import bounds
from jaxalign.model.alphabet import Sequences
from jaxalign.model.filters import Filters
from jaxalign.model.scoring import Scoring, is_symmetric
from jaxalign.pairs import windows
from jaxalign.pairs.cpu import long_pair, partition
from jaxalign.runtime.memory import refuse_over, show_bytes

# Result bytes a pair: indices and score, counts and spans, about 12 runs of a path.
COLUMN_BYTES = {"score": 12, "identity": 16, "stats": 44, "alignment": 44 + 48}
LARGEST_WINDOW = 2**32 - 1  # its backtrack has int32 places of two bytes


@dataclass(frozen=True, eq=False)
class Task:
    """All that a run needs to know."""

    kind: str  # all (i < j), cross (every query, every target), zip (k with k)
    queries: Sequences
    targets: Sequences
    scoring: Scoring
    mode: str
    free: frozenset
    output: str
    include_self: bool = False
    implementation: str | None = None
    budget: int = 2**31
    threads: int = 1
    window: int | None = None
    filters: Filters = Filters()
    devices: tuple = ()  # of JAX; none: the default one
    mesh: Any = None  # jax.sharding.Mesh: one program over all of it instead
    # Of a task that computes a part of another one's rows
    # (``pairs.parts.query_ranges``):
    size: int | None = None
    shift: int = 0
    whole: windows.Whole | None = None
    once: bool = True  # pairs may be computed with their sides swapped
    reserved: int | None = None  # bytes of results in memory, not only of these pairs
    top: int | None = None  # keep only the best of each query, the scores on the device

    @property
    def local(self) -> bool:
        return self.mode == "local"

    @property
    def paths(self) -> bool:
        return self.output in ("stats", "alignment")

    @cached_property
    def job(self) -> windows.Job:
        """The pairs, by lengths; each once where swapping its sides changes nothing."""
        return windows.Job(
            self.kind,
            self.queries.lengths,
            self.targets.lengths,
            self.include_self,
            self.once and is_symmetric(self.scoring, self.free),
            self.paths,
            self.output == "alignment",
            self.window,
            self.size,
            self.shift,
            self.whole,
        )

    @property
    def result_bytes(self) -> int:
        if self.reserved is not None:
            return self.reserved
        if self.top is None:
            return self.job.pairs * COLUMN_BYTES[self.output]
        kept = len(self.queries) * min(self.top, len(self.targets))
        return kept * COLUMN_BYTES["alignment"]

    @property
    def window_budget(self) -> int:
        """Bytes for one window: what the result leaves, shared by the threads."""
        return min((self.budget - self.result_bytes) // self.threads, LARGEST_WINDOW)

    def dtype(self, m: int, n: int) -> str:
        """The proven dtype of tables of up to m rows and n columns."""
        identity = self.output == "identity"
        prove = bounds.identity_dtype if identity else bounds.score_dtype
        return prove(m, n, self.scoring, self.mode)


def make_plan(task: Task) -> tuple[dict, list]:
    """What a run will do and need, before it does: counts and bytes, and the pieces.

    A piece is a ``Window``, or a pair (i, j) that only checkpoints can hold.

    Raises
    ------
    MemoryPlanError
        The result and a piece for every thread exceed the budget; or checkpoints are
        needed where another implementation was asked for.
    """
    fit = task.result_bytes + 2**20 * task.threads
    if fit <= task.budget:
        plan, pieces = _plan(task)
        if _bytes(plan) <= task.budget:
            return plan, pieces
    # Bytes of a piece follow the budget: grow it until the plan fits, and name that.
    while (needed := _bytes(_plan(replace(task, budget=fit))[0])) > fit:
        fit = needed
    refuse_over(fit, task.budget, f"{task.job.pairs:,} pairs")
    return _plan(task)


def _bytes(plan) -> int:
    return plan["result_bytes"] + plan["window_bytes"] * plan["threads"]


def _plan(task):
    """(plan, pieces) within the task's budget as far as the pieces can be cut."""
    limit = task.window_budget
    pieces = list(partition.cut(task.job, limit))
    if task.implementation is None:
        pieces = [one for piece in pieces for one in partition.lone(task.job, piece)]
    if task.implementation in ("wavefront", "striped"):
        pieces = [pair for piece in pieces for pair in windows.pairs(task.job, piece)]
    cut = [piece for piece in pieces if isinstance(piece, windows.Window)]
    alone = [piece for piece in pieces if not isinstance(piece, windows.Window)]
    sizes = [(len(task.queries[i]), len(task.targets[j])) for i, j in alone]
    if task.implementation == "sweep" and alone:
        if limit >= partition.NARROW:
            size = show_bytes(partition.NARROW)
            raise MemoryPlanError(
                f"{len(alone):,} pairs do not fit a window of {size} with "
                "their backtrack: leave the implementation open, or name wavefront"
            )
        held = [partition.least_bytes(task.job, *pair) for pair in alone]
    else:
        held = [long_pair.bytes_needed(*size, limit) for size in sizes]
    held += [partition.window_bytes(w, 4, task.job.steps) for w in cut]
    shapes = [(w.m, w.n) for w in cut] + sizes
    dtypes = {task.dtype(*shape) for shape in shapes}
    return describe(task, len(cut), len(alone), held, dtypes), pieces


def describe(task, windows: int, alone: int, held, dtypes) -> dict:
    """A plan as a user sees it: counts, bytes of the largest piece, score types."""
    return {
        "pairs": task.job.pairs,
        "cells": task.job.cells,
        "windows": windows,
        "checkpointed_pairs": alone,
        "threads": task.threads,
        "result_bytes": task.result_bytes,
        "window_bytes": max(held, default=0),
        "dtypes": sorted(dtypes),
    }


SUMS = ("pairs", "cells", "windows", "checkpointed_pairs", "seconds", "halved_launches")
LARGEST = ("window_bytes", "result_bytes", "threads")


def merge(plans: list[dict]) -> dict:
    """The plans of parts of a job -> one of all."""
    made = dict(plans[0])
    for other in plans[1:]:
        made |= {name: made[name] + other[name] for name in SUMS if name in made}
        made |= {name: max(made[name], other[name]) for name in LARGEST}
        loads = zip(made["device_cells"], other["device_cells"], strict=True)
        made["device_cells"] = [sum(pair) for pair in loads]
        made["dtypes"] = sorted({*made["dtypes"], *other["dtypes"]})
        names = (made["implementation"] + ", " + other["implementation"]).split(", ")
        made["implementation"] = ", ".join(dict.fromkeys(names))
        if len(other["reason"]) > len(made["reason"]):  # it also names what is beyond
            made["reason"] = other["reason"]
    return made
