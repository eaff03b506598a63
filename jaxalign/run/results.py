"""From a piece's results to the rows of the table, in input order."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from jaxalign.model import operations as ops
from jaxalign.model.table import SPANS, gather_runs
from jaxalign.run import bounds

COUNTS = ("identities", "columns", "gap_openings", "gaps")


class Rows(NamedTuple):
    """Some rows of the result: where they go, their columns, their paths."""

    at: np.ndarray
    columns: dict
    paths: tuple | None  # (run-length operations, runs of each row)


def collect(task, result, found) -> Rows:
    """A window's device result -> the pairs wanted, sides swapped back."""
    q, t = np.nonzero(found.wanted)
    walked, spans = result.walked, ()
    if task.paths:
        spans = walked.i, result.end_i, walked.j, result.end_j
    spans = [x[q, t] for x in spans]
    counts = [getattr(walked, name)[q, t] for name in COUNTS] if task.paths else ()
    at, columns = _columns(task, found, result.score[q, t], spans, counts)
    if not task.paths or walked.steps is None:
        return Rows(at, columns, None)
    paths = _paths(walked.steps, q, t, columns["columns"], found.swapped[q, t])
    return Rows(at, columns, paths)


def _columns(task, found, score, spans, counts):
    """(rows, columns) of the pairs wanted (P,), sides swapped back. ``spans`` as
    computed, in the order of SPANS, and ``counts`` of COUNTS; both empty without paths.
    """
    i, j, flip = (x[found.wanted] for x in (found.query, found.target, found.swapped))
    at = task.job.position(np.where(flip, j, i), np.where(flip, i, j))
    columns = _scores(task, score.astype(np.int64), score.dtype)
    if spans:
        others = spans[2:] + spans[:2]
        for name, own, other in zip(SPANS, spans, others, strict=True):
            columns[name] = np.where(flip, other, own)
        columns |= dict(zip(COUNTS, counts, strict=True))
    return at, columns


def _paths(steps, q, t, counts, flip):
    """Steps (Q, T, B), end to start -> (run-length operations, runs of each pair)."""
    longest = int(counts.max(initial=0))
    # (pairs, steps) bytes: rows of the transpose are contiguous, so reading is cheap.
    by_lane = np.ascontiguousarray(steps[:, :longest].transpose(0, 2, 1)[..., ::-1])
    picked = by_lane[q, t]
    kept = np.arange(longest)[::-1] < counts[:, None]
    turned = np.where(flip[:, None] & (picked != ops.M), 3 - picked, picked)
    runs, offsets = ops.run_lengths(turned[kept], counts.astype(np.int64))
    return runs, np.diff(offsets)


def of_pair(task, pair, found, dtype) -> Rows:
    """The result of a pair computed alone (``long_pair.Pair``)."""
    columns = _scores(task, np.array([found.score], np.int64), dtype)
    at = np.array([task.job.position(*pair)])
    if not task.paths:
        return Rows(at, columns, None)
    spans = (found.start_i, found.end_i, found.start_j, found.end_j)
    counts = (getattr(found, name) for name in COUNTS)
    for name, value in zip(SPANS + COUNTS, (*spans, *counts), strict=True):
        columns[name] = np.array([value], np.int32)
    if task.output != "alignment":
        return Rows(at, columns, None)
    runs, _ = ops.run_lengths(found.steps, np.array([len(found.steps)]))
    return Rows(at, columns, (runs, np.array([len(runs)])))


def _scores(task, score, dtype):
    """Integer scores -> the columns a user sees, still scaled integers."""
    if task.output == "identity":
        base = bounds.IDENTITY_BASE[str(dtype)]
        matches = (score % base).astype(np.int32)
        return {"score": score // base, "max_identities": matches}
    return {"score": score}


class Output:
    """Result columns, filled piece by piece in any order, read in input order."""

    def __init__(self, task, progress):
        self.task, self.progress = task, progress
        self.lock, self.failed, self.done = threading.Lock(), False, 0
        pool = ThreadPoolExecutor(1)
        self._index = pool.submit(task.job.index)  # while the first pieces run
        pool.shutdown(wait=False)
        self.values = {"score": np.zeros(task.job.pairs, self._score_dtype())}
        names = ("max_identities",) if task.output == "identity" else ()
        for name in (*SPANS, *COUNTS) if task.paths else names:
            self.values[name] = np.zeros(task.job.pairs, np.int32)
        self.pieces = []

    @property
    def columns(self) -> dict:
        """All columns of the result."""
        query, target = self._index.result()
        return {"query": query, "target": target} | self.values

    def _score_dtype(self):
        """int32, or what a proof asks for; float64 where scores are fractions."""
        task = self.task
        if task.scoring.scale > 1:
            return np.float64
        longest = (int(x.lengths.max(initial=0)) for x in (task.queries, task.targets))
        limit = bounds.score_range(*longest, task.scoring, task.mode)
        return np.int32 if bounds.fits(limit, "int32") else np.int64

    def put(self, rows: Rows, cells: int | None = None) -> None:
        """Take the rows of one piece, and how many cells it had where that is known."""
        for name, values in rows.columns.items():
            scaled = name == "score" and self.task.scoring.scale > 1
            values = values / self.task.scoring.scale if scaled else values
            self.values[name][rows.at] = values
        if rows.paths is not None:
            with self.lock:
                self.pieces.append((rows.at, *rows.paths))
        if self.progress:
            self.tell(self._cells(rows.at) if cells is None else cells)

    def _cells(self, at) -> int:
        query, target = self._index.result()
        m = self.task.queries.lengths[query[at]]
        n = self.task.targets.lengths[target[at]]
        return int((m * n).sum())

    def take(self, copies: dict) -> None:
        """Take whole columns (but for pairs that are put later): ``copies`` fill an
        int32 array each."""
        for name, copy in copies.items():
            column = self.values[name]
            plain = column.dtype == np.int32
            whole = column if plain else np.empty(len(column), np.int32)
            copy(whole)
            if not plain:
                column[:] = whole / self.task.scoring.scale

    def tell(self, cells: int) -> None:
        """Report that so many cells more are done."""
        with self.lock:
            self.done += cells
            if self.progress:
                self.progress(self.done, self.task.job.cells)

    def assemble(self):
        """Paths of all pieces -> (operations, offsets) in input order."""
        if self.task.output != "alignment":
            return None
        if len(self.pieces) == 1 and self.pieces[0][0] is None:  # in order already
            _, runs, counts = self.pieces[0]
            return runs, np.concatenate([[0], np.cumsum(counts)])
        empty = np.zeros(0, np.int64)
        at, runs, counts = (
            np.concatenate([empty, *(piece[k] for piece in self._placed())])
            for k in range(3)
        )
        offsets = np.concatenate([[0], np.cumsum(counts)])
        order = np.argsort(at, kind="stable")
        return gather_runs(runs.astype(np.uint32), offsets, order)

    def _placed(self):
        """Pieces with the rows they are: a piece of all rows lacks those that others
        have."""
        others = [piece[0] for piece in self.pieces if piece[0] is not None]
        missing = np.concatenate([np.zeros(0, np.int64), *others])
        for at, runs, counts in self.pieces:
            if at is None:
                at = np.delete(np.arange(len(counts)), missing)
                counts = counts[at]
            yield at, runs, counts
