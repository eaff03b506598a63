"""A task, the pieces that its pairs are computed in, the plan of all of them, and the
state of a plan while it runs: of the whole run and of each of its threads."""

import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jaxalign.model import bounds
from jaxalign.model.alphabet import Sequences, first_letters, views
from jaxalign.model.identity import Filters
from jaxalign.model.scoring import Scoring, is_symmetric
from jaxalign.pairs import pair_matrix
from jaxalign.runtime.devices import USUAL_BYTES

if TYPE_CHECKING:  # a job by rows imports no JAX
    import jax


# Who is told: (cells done, cells in all), or (devices at work, devices in all).
Progress = Callable[[int, int], object] | None
# Result bytes a pair: indices and score, counts and spans, about 12 runs of a path.
COLUMN_BYTES = {"score": 12, "identity": 16, "stats": 44, "alignment": 44 + 48}
# Cells of a job that is worth a program more, and one for its gap costs alone: a second
# of a core with AVX2.
LARGE_JOB_CELLS = 4 * 10**9
MAX_WINDOW_BYTES = 2**31 - 1  # its backtrack has int32 places of a byte


@dataclass(frozen=True, eq=False)
class WholeCodes:
    """Letters of a set that several tasks share. While this object lives, they stay on
    each device that has loaded them (``pairs.gpu.device_job``)."""

    codes: np.ndarray

    def begin(self, codes: np.ndarray) -> int | None:
        """Place where a view of these letters begins; None if it is not a view."""
        first = codes.ctypes.data - self.codes.ctypes.data
        inside = 0 <= first <= len(self.codes) - len(codes)
        return first if inside and len(codes) else None


@dataclass(frozen=True, eq=False)
class NearestOnly:
    """Limit of the rows of a query to its nearest targets: a device may leave out
    others that pass the filters.

    top : int, rows of each query; of equal ones those whose targets begin first
    bars : float64 (queries,), identities below which no row of a query is wanted
    """

    top: int
    bars: np.ndarray


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
    parts_budget: int = USUAL_BYTES  # above ``budget`` only where no budget is named
    threads: int = 1
    window: int | None = None
    filters: Filters = Filters()
    devices: tuple = ()  # of JAX; none: the default one
    mesh: Any = None  # jax.sharding.Mesh: one program over all of it instead
    single_target: Sequences | None = None  # which ``targets`` repeats for every query
    # Of a task that computes a part of another one's rows
    # (``pairs.part_stream``):
    size: int | None = None
    shift: int = 0
    whole: pair_matrix.WholeJob | None = None
    rows: Any = None  # of zipped pairs that are some of a task: int64, which they are
    once: bool = True  # pairs may be computed with their sides swapped
    reserved: int | None = None  # bytes of results in memory, not only of these pairs
    bounded: bool = True  # pairs that provably cannot pass are not aligned
    whole_codes: tuple[WholeCodes, ...] = ()
    top: int | None = None  # keep only the best of each query, the scores on the device
    nearest: NearestOnly | None = None  # of a task ``cross`` with a ``min_identity``
    later_filters: Filters | None = None  # of rows that only pairs kept here can have
    equals_alike: bool = False  # all residues of pairs of equal texts are identical
    # Whether query k of a task ``all`` is target k; else it is the reverse complement
    one_set: bool = True

    @cached_property
    def local(self) -> bool:
        return self.mode == "local"

    @cached_property
    def filtered(self) -> bool:
        """Whether rows are left out."""
        return bool(self.filters)

    @cached_property
    def proved(self) -> Filters:
        """The filters that proofs apply: all that a pair has to pass in the end."""
        return self.later_filters or self.filters

    @cached_property
    def scores_first(self) -> bool:
        """Whether the scores of all pairs are computed before the rows of those that
        reach a least score: local scores take a fraction of the time of identities or
        paths (8 bits on a CPU), which pays for a program more."""
        filters = self.filters
        cuts = filters.min_score, filters.min_relative_score
        rows = self.output != "score" and cuts != (None, None)
        free = self.local and self.bounded and self.mesh is None
        return rows and free and self.job.total >= LARGE_JOB_CELLS

    @cached_property
    def self_scores(self) -> tuple[np.ndarray, np.ndarray]:
        """Self scores of the queries and of the targets, float64."""
        score, (queries, targets) = (
            self.scoring.self_scores,
            (self.queries, self.targets),
        )
        of_queries = score(queries)
        return of_queries, of_queries if targets is queries else score(targets)

    @cached_property
    def large(self) -> bool:
        """Whether a CPU tries it in 8 bits, which takes more programs."""
        return self.job.cells >= LARGE_JOB_CELLS

    @cached_property
    def letters(self) -> tuple[Any, Any]:
        """Queries and targets by the letters that identities are of."""
        sides = self.queries, self.targets
        first = first_letters(sides[0])
        return first, first if sides[0] is sides[1] else first_letters(sides[1])

    @cached_property
    def shape(self) -> tuple[int, int]:
        """How many queries and targets there are."""
        return len(self.queries), len(self.targets)

    @cached_property
    def paths(self) -> bool:
        return self.output in ("stats", "alignment")

    @cached_property
    def job(self) -> pair_matrix.PairMatrix:
        """The pairs, by lengths; each once where swapping its sides changes nothing."""
        return pair_matrix.PairMatrix(
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
            self.rows,
        )

    @cached_property
    def result_bytes(self) -> int:
        if self.reserved is not None:
            return self.reserved
        if self.top is None:
            return self.job.pairs * COLUMN_BYTES[self.output]
        queries, targets = self.shape
        hits = queries * min(self.top, targets)
        return hits * COLUMN_BYTES["alignment"]

    @cached_property
    def window_budget(self) -> int:
        """Bytes for one window: what the result leaves, shared by the threads."""
        return min((self.budget - self.result_bytes) // self.threads, MAX_WINDOW_BYTES)

    def dtype(self, m: int, n: int) -> str:
        """The proven dtype of tables of up to m rows and n columns."""
        if (m, n) not in self._dtypes:
            identity = self.output == "identity"
            prove = bounds.identity_dtype if identity else bounds.score_dtype
            self._dtypes[m, n] = prove(m, n, self.scoring, self.mode)
        return self._dtypes[m, n]

    @cached_property
    def _dtypes(self) -> dict[tuple[int, int], str]:
        return {}


@dataclass(frozen=True, eq=False)
class Piece:
    """Some pairs of a task that one host thread computes at once.

    ``compute(run, worker, piece)`` puts their rows into the result of the run.
    ``scores(run, worker, piece)`` yields ``PieceScores`` for a search. Pieces of one
    ``group`` may be computed together; those of None are not.
    """

    task: Task
    content: Any  # a window, a pair (i, j), or a list of launches
    cells: int  # about: what it costs beside the other pieces
    compute: Callable
    scores: Any = None  # a function like ``compute``; of rows there is none
    group: Hashable = None


@dataclass(frozen=True, eq=False, repr=False)
class Plan(Mapping):
    """The work and the memory of a job, before it runs.

    It reads like a dict: ``plan["pairs"]``, ``dict(plan)``; ``print`` shows one figure
    per line. A plan by parts has ``parts`` instead of pieces; its bytes and windows are
    those of the largest part. A plan for both strands has ``scores``, the plan of the
    scores of both; its pieces are those of the rows of one strand.
    """

    task: Task
    pieces: tuple[Piece, ...]
    figures: dict
    parts: tuple = ()  # of ``pairs.part_stream.Part``
    strands: "QueryStrands | None" = None
    scores: "Plan | None" = None

    @cached_property
    def by_rows(self) -> bool:
        """Whether nothing of it is compiled."""
        ran = self.figures.get("ran", self.figures.get("implementation"))
        return ran == "rows"

    def __getitem__(self, name: str) -> Any:
        return self.figures[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.figures)

    def __len__(self) -> int:
        return len(self.figures)

    def __or__(self, figures: Mapping) -> dict:
        return {**self.figures, **figures}

    def __repr__(self) -> str:
        pairs, cells = self.figures["pairs"], self.figures["cells"]
        return f"<Plan of {pairs:,} pairs, {cells:,} cells: {self['implementation']}>"

    def __str__(self) -> str:
        return "\n".join(
            f"{name.replace('_', ' ')}: {_shown(value)}" for name, value in self.items()
        )


@dataclass(frozen=True, eq=False)
class QueryStrands:
    """The queries as they were given, and which of their strands are aligned."""

    queries: Sequences
    signs: tuple[int, ...]  # of ``model.strands``


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return f"{value:,}" if isinstance(value, int) else str(value)


def describe(
    task: Task,
    windows: int,
    single_pairs: int,
    needed: Iterable[int],
    dtypes: Iterable[str],
) -> dict:
    """A plan as a user sees it: counts, bytes of the largest piece, score types."""
    return {
        "pairs": task.job.pairs,
        "cells": task.job.cells,
        "windows": windows,
        "checkpointed_pairs": single_pairs,
        "threads": task.threads,
        "result_bytes": task.result_bytes,
        "window_bytes": max(needed, default=0),
        "dtypes": sorted(dtypes),
    }


SUMMED = (
    "pairs",
    "cells",
    "aligned_pairs",
    "aligned_cells",
    "windows",
    "checkpointed_pairs",
    "seconds",
    "halved_launches",
)
MAX_FIGURES = ("window_bytes", "result_bytes", "threads")


def merge(plans: list[dict]) -> dict:
    """Merge the plans of the parts of a job."""
    merged = dict(plans[0])
    for plan in plans[1:]:
        merged |= {name: merged[name] + plan[name] for name in SUMMED if name in merged}
        merged |= {name: max(merged[name], plan[name]) for name in MAX_FIGURES}
        loads = zip(merged["device_cells"], plan["device_cells"], strict=True)
        merged["device_cells"] = [sum(pair) for pair in loads]
        merged["dtypes"] = sorted({*merged["dtypes"], *plan["dtypes"]})
        for kind in ("implementation", "ran"):
            if kind in merged and kind in plan:
                names = f"{merged[kind]}, {plan[kind]}".split(", ")
                merged[kind] = ", ".join(dict.fromkeys(names))
        if len(plan["reason"]) > len(merged["reason"]):  # it also names what is beyond
            merged["reason"] = plan["reason"]
        if "excluded" in plan:
            merged["excluded"] = added(merged["excluded"], plan["excluded"])
    return merged


def added(counts: dict, extra: dict) -> dict:
    """Add up counts by name."""
    return {name: counts.get(name, 0) + extra.get(name, 0) for name in counts | extra}


def zipped(task: Task, queries: np.ndarray, targets: np.ndarray) -> Task:
    """Make a task of some pairs of another one, with the row numbers of that task.

    queries, targets : integers (P,), indices of both sides of each pair
    """
    job = task.job
    whole = task.whole or pair_matrix.WholeJob(
        job.most, job.cells, task.shape[1], len(task.targets.codes)
    )
    # What is aligned of the whole: of a part as large a share as of itself.
    cells = int((job.query_lengths[queries] * job.target_lengths[targets]).sum())
    part_cells = round(whole.cells * cells / max(job.cells, 1))
    whole = whole._replace(cells=part_cells)
    return replace(
        task,
        kind="zip",
        queries=views(task.queries, queries),
        targets=views(task.targets, targets),
        size=None,
        shift=0,
        whole=whole,
        rows=job.position(queries, targets),
        single_target=None,
    )


Arrays = dict[str, np.ndarray]


@dataclass(eq=False)
class SavedState:
    """Arrays from which an interrupted run resumes; each part has its own.

    ``arrays`` are those of the run that was interrupted, and what is put beside them.
    ``save`` is called whenever there are more, with a function that returns them all.
    """

    arrays: Arrays = field(default_factory=dict)
    save: Callable[[Callable[[], Arrays]], object] = lambda _arrays: None
    prefix: str = ""
    _lock: Any = field(default_factory=threading.Lock)

    def part(self, name: str) -> "SavedState":
        """The state of a part of the run."""
        return SavedState(self.arrays, self.save, f"{self.prefix}{name}.", self._lock)

    def all(self) -> Arrays:
        """The arrays of this part, by their names in it."""
        with self._lock:
            entries = [x for x in self.arrays.items() if x[0].startswith(self.prefix)]
        return {name.removeprefix(self.prefix): array for name, array in entries}

    def put(self, arrays: Arrays, without: Iterable[str] = ()) -> None:
        """Arrays of this part, after some that are not needed any more are dropped."""
        with self._lock:
            for name in without:
                self.arrays.pop(self.prefix + name, None)
            self.arrays.update({self.prefix + name: x for name, x in arrays.items()})
            self.save(lambda: dict(self.arrays))

    def put_if_due(self, arrays: Callable[[], Arrays]) -> None:
        """Arrays of this part, which are made where a state is written, and are in no
        later one unless they are put again."""

        def every() -> Arrays:
            part = {self.prefix + name: x for name, x in arrays().items()}
            return self.arrays | part

        with self._lock:
            self.save(every)


@dataclass(eq=False)
class Run:
    """A plan while it runs: its rows so far, and what its devices hold."""

    plan: Plan
    output: Any  # ``pairs.result.Output``; None: scores of a search stay on the devices
    kernels: Any = None  # the package ``kernels_pallas``
    saved: SavedState | None = None  # of very large pairs; None: nobody goes on
    device_jobs: dict = field(default_factory=dict)  # (id of a task, device) -> its job
    locks: dict = field(default_factory=dict)  # the same -> a lock
    # (task, (queries, targets)) of the pairs of windows whose scores left 8 bits
    beyond: list = field(default_factory=list)
    # (task, ``execute.LiveEnds``) of the pairs of windows whose paths come later
    live: list = field(default_factory=list)
    halves: dict = field(default_factory=dict)  # (id of a task, i, j) -> ``Halves``
    other_implementations: set = field(default_factory=set)  # beside the plan's
    seconds: float = 0.0

    def lock(self, key: tuple) -> threading.Lock:
        """The lock of one entry of ``device_jobs`` or ``halves``."""
        return self.locks.setdefault(key, threading.Lock())


@dataclass(eq=False)
class Worker:
    """A host thread of a run, its device, and what it leaves to its next piece."""

    device: Any = None  # None: JAX chooses
    report_progress: Callable = lambda _cells: None  # of cells that are done
    only: bool = True  # no other thread has this device
    backtrack: "jax.Array | None" = None  # the buffer of the last window
    profile: "jax.Array | None" = None  # and its database profile
    byte_limit: int = 0  # local scores up to it are tried in 8 bits; 0: none are
    windows_to_skip: int = 0  # that are not tried in 8 bits


class PieceScores(NamedTuple):
    """The scores of some pairs of a search, on the device, and the pairs among them
    that left 8 bits, or None."""

    queries: np.ndarray
    targets: np.ndarray
    score: "jax.Array"  # (slots, places): the first rows and columns are theirs
    beyond: tuple | None = None
