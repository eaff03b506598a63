"""Choose an implementation, say why, and run a job on it.

The only importer of ``kernels_pallas``. Windows are independent, so each host thread
takes the next one; XLA's loop uses one core, so threads are what fills a CPU.
"""

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np

from jaxalign.dp import window as device
from jaxalign.dp.recurrence import Gaps
from jaxalign.errors import DeviceError, UsageError
from jaxalign.model import operations as ops
from jaxalign.model.alphabet import Sequences
from jaxalign.model.scoring import FREE_ENDS, Scoring, is_symmetric
from jaxalign.model.table import gather_runs
from jaxalign.run import bounds, long_pair, memory, windows

IMPLEMENTATIONS = ("sweep", "wavefront", "pallas")
COUNTS = ("identities", "columns", "gap_openings", "gaps")
SPANS = ("query_start", "query_end", "target_start", "target_end")
COLUMN_BYTES = {"score": 12, "identity": 16, "stats": 44, "alignment": 44 + 48}


@dataclass(frozen=True, eq=False)
class Task:
    """All that a run needs to know."""

    kind: str  # all, cross, zip
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

    @property
    def local(self) -> bool:
        return self.mode == "local"

    @property
    def paths(self) -> bool:
        return self.output in ("stats", "alignment")

    @cached_property
    def job(self) -> windows.Job:
        """The pairs, by lengths; each once where swapping its sides changes nothing."""
        once = is_symmetric(self.scoring, self.free)
        return windows.Job(
            self.kind,
            self.queries.lengths,
            self.targets.lengths,
            self.include_self,
            once,
            self.paths,
            self.output == "alignment",
        )

    @property
    def result_bytes(self) -> int:
        return self.job.pairs * COLUMN_BYTES[self.output]

    @property
    def window_budget(self) -> int:
        """Bytes for one window: what the result leaves, shared by the threads."""
        return min((self.budget - self.result_bytes) // self.threads, 2**30)


def choose(implementation: str | None, kind: str = "all") -> tuple[str, str]:
    """(implementation, why). A named one is never exchanged for another.

    Raises
    ------
    UsageError
        Unknown name.
    DeviceError
        ``pallas`` where its kernels cannot run.
    """
    if implementation is not None and implementation not in IMPLEMENTATIONS:
        names = ", ".join(IMPLEMENTATIONS)
        raise UsageError(f"unknown implementation {implementation!r}: one of {names}")
    platform = jax.default_backend()
    if implementation == "pallas":
        raise DeviceError("pallas: no kernel is built for this device yet")
    if implementation:
        return implementation, "asked for"
    return "sweep", f"one query against many targets in lanes, on {platform}"


def default_threads() -> int:
    """The cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def make_plan(task: Task) -> dict:
    """What a run will do and need, before it does: counts and bytes.

    Raises
    ------
    MemoryPlanError
        Result and one window a thread exceed the budget.
    """
    least = task.result_bytes + 2**20 * task.threads
    memory.refuse_over(least, task.budget, f"{task.job.pairs:,} pairs")
    pieces = list(windows.cut(task.job, task.window_budget))
    cut = [piece for piece in pieces if isinstance(piece, windows.Window)]
    widest = max((windows.window_bytes(w, 4, task.job.steps) for w in cut), default=0)
    return {
        "pairs": task.job.pairs,
        "cells": task.job.cells,
        "windows": len(cut),
        "checkpointed_pairs": len(pieces) - len(cut),
        "threads": task.threads,
        "result_bytes": task.result_bytes,
        "window_bytes": widest,
        "dtypes": sorted({_dtype(task, w.m, w.n) for w in cut}),
        "pieces": pieces,
    }


def run(task: Task, progress=None):
    """Run a job.

    Returns
    -------
    columns : dict of arrays, in input order
    paths : (operations, offsets) or None
    info : dict
        ``implementation``, ``reason``, seconds, cells, windows, dtypes.
    """
    name, why = choose(task.implementation, task.kind)
    plan = make_plan(task)
    pieces = plan.pop("pieces")
    if name == "wavefront":
        pieces = [pair for piece in pieces for pair in _pairs(task, piece)]
    out = _Output(task, progress)
    began = time.perf_counter()
    scratch = threading.local()

    def work(piece):
        if out.failed:
            return
        try:
            if isinstance(piece, windows.Window):
                out.put(*_run_window(task, piece, scratch))
            else:
                out.put(*_run_pair(task, piece))
        except BaseException:
            out.failed = True
            raise

    with ThreadPoolExecutor(task.threads) as pool:
        pending = [pool.submit(work, piece) for piece in pieces]
        try:
            for future in pending:
                future.result()
        except BaseException:
            out.failed = True
            raise
    plan |= {"implementation": name, "reason": why}
    plan["seconds"] = time.perf_counter() - began
    return out.columns, out.assemble(), plan


def _pairs(task, piece):
    """The single pairs of a window."""
    if not isinstance(piece, windows.Window):
        return [piece]
    if piece.zipped:
        return [(int(k), int(k)) for k in piece.queries]
    wanted, swapped = task.job.wanted(piece)
    swapped = np.zeros_like(wanted) if swapped is None else swapped
    found = [
        (int(piece.queries[q]), int(piece.targets[t]))[:: -1 if swapped[q, t] else 1]
        for q, t in zip(*np.nonzero(wanted), strict=True)
    ]
    return found


def _dtype(task, m, n) -> str:
    chosen = bounds.identity_dtype if task.output == "identity" else bounds.score_dtype
    return chosen(m, n, task.scoring, task.mode)


def _precision(dtype):
    """int64 needs JAX's 64-bit mode, for this computation only."""
    return jax.enable_x64(True) if dtype == "int64" else nullcontext()


def _problem(task, dtype) -> device.Problem:
    """Scores and gaps as device arrays of the proven dtype."""
    scores, factor = task.scoring.scores.astype(np.int64), 1
    if task.output == "identity":
        factor = bounds.IDENTITY_BASE[dtype]
        scores = scores * factor + task.scoring.identical
    pad = task.scoring.open * factor
    small = dtype == "int16" and np.abs(scores).max(initial=0) < 128 and pad < 128
    gaps = (task.scoring.open * factor, task.scoring.extend * factor)
    wildcard = task.scoring.alphabet.wildcard_code
    return device.Problem(
        jnp.asarray(scores, "int8" if small else dtype),
        Gaps(*(jnp.asarray(g, dtype) for g in gaps)),
        {end: jnp.asarray(end in task.free) for end in FREE_ENDS},
        jnp.asarray(wildcard, jnp.int32),
    )


def _padded(sequences, indices, length, count):
    """uint8 (count, length) codes and int32 (count,) lengths of some sequences."""
    codes = np.zeros((count, length), np.uint8)
    lengths = np.zeros(count, np.int32)
    for row, index in enumerate(indices):
        one = sequences[index]
        codes[row, : len(one)] = one
        lengths[row] = len(one)
    return codes, lengths


def _run_window(task, w, scratch):
    """One window on the device -> (rows of the result, columns, paths)."""
    dtype = _dtype(task, w.m, w.n)
    with _precision(dtype):
        return _on_device(task, w, scratch, dtype)


def _on_device(task, w, scratch, dtype):
    problem = _problem(task, dtype)
    codes, n = _padded(task.targets, w.targets, w.columns, w.lanes)
    block = device.load_block(
        np.ascontiguousarray(codes.T), n, problem, task.local, shared=not w.zipped
    )
    wanted, swapped = task.job.wanted(w)
    if w.zipped:
        queries, m = _padded(task.queries, w.queries, w.rows, w.lanes)
        queries, m = np.ascontiguousarray(queries.T)[None], m[None]
    else:
        queries, m = _padded(task.queries, w.queries, w.rows, w.slots)
        m = np.broadcast_to(m[:, None], (w.slots, w.lanes))
    tie = np.zeros(m.shape, bool)
    if swapped is not None and task.paths:
        tie[: swapped.shape[0], : swapped.shape[1]] = swapped
    halves = None
    if task.paths:
        halves = getattr(scratch, "halves", None)
        if halves is None or halves.shape[0] != w.capacity or halves.is_deleted():
            halves = jnp.zeros(w.capacity, jnp.uint16)
    result, halves = device.run_window(
        block,
        queries,
        m,
        np.int32(1 if w.zipped else len(w.queries)),
        tie,
        problem,
        halves,
        local=task.local,
        rows=windows.ROWS,
        paths=task.paths,
        steps=task.output == "alignment",
        fused=jax.default_backend() == "cpu",
    )
    scratch.halves = halves
    return _collect(task, w, jax.tree.map(np.asarray, result), wanted, swapped)


def _collect(task, w, result, wanted, swapped):
    """Device result -> flat columns of the pairs wanted, sides swapped back."""
    q, t = np.nonzero(wanted)
    i = w.targets[t] if w.zipped else w.queries[q]
    j = w.targets[t]
    flip = np.zeros(len(q), bool) if swapped is None else swapped[q, t]
    rows = task.job.position(np.where(flip, j, i), np.where(flip, i, j))
    columns = _scores(task, result.score[q, t].astype(np.int64), result.score.dtype)
    if not task.paths:
        return rows, columns, None
    walked = result.walked
    spans = [x[q, t] for x in (walked.i, result.end_i, walked.j, result.end_j)]
    swapped_spans = spans[2:] + spans[:2]
    for name, straight, other in zip(SPANS, spans, swapped_spans, strict=True):
        columns[name] = np.where(flip, other, straight)
    for name in COUNTS:
        columns[name] = getattr(walked, name)[q, t]
    if walked.steps is None:
        return rows, columns, None
    return rows, columns, _paths(walked.steps, q, t, columns["columns"], flip)


def _paths(steps, q, t, counts, flip):
    """Steps (Q, T, B), end to start -> (run-length operations, runs of each pair)."""
    longest = int(counts.max(initial=0))
    picked = steps[q[:, None], np.arange(longest)[None, ::-1], t[:, None]]
    kept = np.arange(longest)[None, ::-1] < counts[:, None]
    turned = np.where(flip[:, None] & (picked != ops.M), 3 - picked, picked)
    runs, offsets = ops.run_lengths(turned[kept], counts.astype(np.int64))
    return runs, np.diff(offsets)


def _scores(task, score, dtype):
    """Integer scores -> the columns a user sees."""
    if task.output == "identity":
        base = bounds.IDENTITY_BASE[str(dtype)]
        matches = (score % base).astype(np.int32)
        return {"score": _real(task, score // base), "max_identities": matches}
    return {"score": _real(task, score)}


def _real(task, score):
    if task.scoring.scale == 1:
        return score.astype(np.int32 if np.abs(score).max(initial=0) < 2**31 else None)
    return score / task.scoring.scale


def _run_pair(task, pair):
    """One pair by checkpoints -> the same triple as a window."""
    i, j = pair
    query, target = task.queries[i], task.targets[j]
    dtype = _dtype(task, len(query), len(target))
    dtype = "int32" if dtype == "int16" else dtype
    with _precision(dtype):
        problem = _problem(task, dtype)
        rows = _strip_rows(len(target), task.window_budget)
        found = long_pair.align_long(
            query, target, problem, task.local, task.paths, rows
        )
    columns = _scores(task, np.array([found.score], np.int64), np.dtype(dtype))
    if task.paths:
        spans = (found.start_i, found.end_i, found.start_j, found.end_j)
        counts = (getattr(found, name) for name in COUNTS)
        for name, value in zip(SPANS + COUNTS, (*spans, *counts), strict=True):
            columns[name] = np.array([value], np.int32)
    paths = None
    if task.output == "alignment":
        runs, _ = ops.run_lengths(found.steps, np.array([len(found.steps)]))
        paths = runs, np.array([len(runs)])
    return np.array([task.job.position(i, j)]), columns, paths


def _strip_rows(n: int, budget: int) -> int:
    """Rows of a strip whose nibbles, about 3 bytes a cell, fit half the budget."""
    rows = 64
    while rows < long_pair.ROWS and 2 * rows * n * 3 * 2 <= budget:
        rows *= 2
    return rows


class _Output:
    """Result columns, filled window by window in any order, read in input order."""

    def __init__(self, task, progress):
        self.task, self.progress = task, progress
        self.lock, self.failed, self.done = threading.Lock(), False, 0
        names = ["max_identities"] if task.output == "identity" else []
        names = [*SPANS, *COUNTS] if task.paths else names
        query, target = task.job.index()
        score = np.int32 if task.scoring.scale == 1 else np.float64
        self.columns = {"query": query, "target": target}
        self.columns["score"] = np.zeros(task.job.pairs, score)
        for name in names:
            self.columns[name] = np.zeros(task.job.pairs, np.int32)
        self.pieces = []

    def put(self, rows, columns, paths):
        """Take the rows of one window."""
        for name, values in columns.items():
            self.columns[name][rows] = values
        with self.lock:
            if paths is not None:
                self.pieces.append((rows, *paths))
            if self.progress:
                m = self.task.queries.lengths[self.columns["query"][rows]]
                n = self.task.targets.lengths[self.columns["target"][rows]]
                self.done += int((m * n).sum())
                self.progress(self.done, self.task.job.cells)

    def assemble(self):
        """Paths of all windows -> (operations, offsets) in input order."""
        if self.task.output != "alignment":
            return None
        empty = np.zeros(0, np.int64)
        rows = np.concatenate([empty, *(piece[0] for piece in self.pieces)])
        runs = np.concatenate([empty, *(piece[1] for piece in self.pieces)])
        counts = np.concatenate([empty, *(piece[2] for piece in self.pieces)])
        offsets = np.concatenate([[0], np.cumsum(counts)])
        order = np.argsort(rows, kind="stable")
        return gather_runs(runs.astype(np.uint32), offsets, order)
