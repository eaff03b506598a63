"""From a piece's results to the rows of the table, in input order."""

from collections.abc import Iterator
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from jaxalign.model import bounds, operations
from jaxalign.model.alignment import SPANS
from jaxalign.model.alphabet import CodedSequences, gather_runs
from jaxalign.model.table import Table
from jaxalign.pairs.pair_matrix import contained
from jaxalign.pairs.plan import Task
from jaxalign.runtime.pipeline import in_background

if TYPE_CHECKING:
    from jaxalign.pairs.pair_matrix import WindowPairs


MIN_LARGE_ROWS = 2**18  # of a result whose memory and index are made in the background
MEMORY_PAGE = 4096  # bytes; an item of each is written so that there is memory for it
PATH_COUNTS = ("identities", "columns", "gap_openings", "gaps")


class Rows(NamedTuple):
    """Rows of a result: their places, columns and paths."""

    at: np.ndarray
    columns: dict
    paths: tuple | None  # (run-length operations, runs of each row)
    cells: int = 0  # of all pairs computed, also those a device has filtered


def collect(task: Task, result: Any, met: "WindowPairs") -> Rows:
    """A window's device result -> the pairs wanted, sides swapped back."""
    q, t = np.nonzero(met.mask)
    i, j, flip = (x[q, t] for x in (met.query, met.target, met.swapped))
    at = task.job.position(np.where(flip, j, i), np.where(flip, i, j))
    score, walked, cells = result.score[q, t], result.walked, cells_of(task, met)
    columns = _scores(task, score.astype(np.int64), score.dtype)
    if not task.paths:
        return Rows(at, columns, None, cells)
    spans = [x[q, t] for x in (walked.i, result.end_i, walked.j, result.end_j)]
    turned = spans[2:] + spans[:2]
    for name, span, swapped_span in zip(SPANS, spans, turned, strict=True):
        columns[name] = np.where(flip, swapped_span, span)
    columns |= {name: getattr(walked, name)[q, t] for name in PATH_COUNTS}
    if walked.steps is None:
        return Rows(at, columns, None, cells)
    # Steps (Q, T, B), end to start -> run-length operations, and the runs of each pair
    counts = columns["columns"]
    longest = int(counts.max(initial=0))
    # (pairs, steps) bytes: rows of the transpose are contiguous, so reading is cheap.
    steps = walked.steps[:, :longest].transpose(0, 2, 1)[..., ::-1]
    steps = np.ascontiguousarray(steps)[q, t]
    on_path = np.arange(longest)[::-1] < counts[:, None]
    turned = np.where(flip[:, None] & (steps != operations.M), 3 - steps, steps)
    runs, offsets = operations.run_lengths(turned[on_path], counts.astype(np.int64))
    return Rows(at, columns, (runs, np.diff(offsets)), cells)


def cells_of(task: Task, met: "WindowPairs") -> int:
    """Cells of the pairs wanted."""
    m = task.queries.lengths[met.query[met.mask]]
    return int((m * task.targets.lengths[met.target[met.mask]]).sum())


def of_pair(
    task: Task, pair: tuple[int, int], pair_result: Any, dtype: np.dtype
) -> Rows:
    """The result of a pair computed alone (``long_pair.PairResult``)."""
    columns = _scores(task, np.array([pair_result.score], np.int64), dtype)
    at = np.array([task.job.position(*pair)])
    cells = int(task.queries.lengths[pair[0]] * task.targets.lengths[pair[1]])
    if not task.paths:
        return Rows(at, columns, None, cells)
    fields = ("start_i", "end_i", "start_j", "end_j", *PATH_COUNTS)
    for name, field in zip(SPANS + PATH_COUNTS, fields, strict=True):
        columns[name] = np.array([getattr(pair_result, field)], np.int32)
    steps = pair_result.steps
    if task.output != "alignment":
        return Rows(at, columns, None, cells)
    runs, _ = operations.run_lengths(steps, np.array([len(steps)]))
    return Rows(at, columns, (runs, np.array([len(runs)])), cells)


def _scores(task: Task, score: np.ndarray, dtype: Any) -> dict[str, Any]:
    """Integer scores -> the columns a user sees, still scaled integers."""
    if task.output == "identity":
        base = bounds.IDENTITY_BASE[str(dtype)]
        matches = (score % base).astype(np.int32)
        return {"score": score // base, "max_identities": matches}
    return {"score": score}


def score_dtype(task: Task):
    """int32, or what a proof asks for; float64 where scores are fractions."""
    if task.scoring.scale > 1:
        return np.float64
    m, n = task.job.most
    dtype = bounds.score_dtype(m, n, task.scoring, task.mode, widest=True)
    return np.int32 if dtype == "int32" else np.int64


def dtypes(task: Task) -> dict:
    """Name and dtype of every column of a result, in order."""
    names = ("max_identities",) if task.output == "identity" else ()
    names = (*SPANS, *PATH_COUNTS) if task.paths else names
    types = {"query": np.int32, "target": np.int32, "score": score_dtype(task)}
    return types | dict.fromkeys(names, np.int32)


class Output:
    """Result columns, filled piece by piece in any order, read in input order.

    All rows have their places from the start, unless filters decide which there are:
    then the pieces are joined at the end. Columns and paths may also come whole.
    """

    def __init__(self, task: Task):
        self.task, self.dtypes = task, dtypes(task)
        self.columns, self.pieces, self.whole = {}, [], None
        if not task.filtered:
            for name, dtype in list(self.dtypes.items())[2:]:
                self.columns[name] = np.zeros(task.job.pairs, dtype)
            self._touched: Future | None = None
            self._index: Future | None = None
            if task.job.pairs > MIN_LARGE_ROWS:  # while the first pieces run
                touch = partial(_touch, list(self.columns.values()))
                calls = in_background(lambda call: call(), [touch, task.job.index], 1)
                self._touched, self._index = calls

    def put(self, rows: Rows) -> None:
        """Take the rows of one piece; threads may do so together."""
        score = rows.columns["score"]
        if self.task.scoring.scale > 1:
            score = score / self.task.scoring.scale
        rows = rows._replace(columns=rows.columns | {"score": score})
        if self.task.filtered:
            # The rows that pass the filters of the task, and who their pairs are.
            task = self.task
            i, j = task.job.pair(rows.at)
            columns = {"query": i, "target": j} | rows.columns
            m, n = task.queries.lengths[i], task.targets.lengths[j]
            scored = None
            if task.filters.min_relative_score is not None:
                scored = task.self_scores[0][i], task.self_scores[1][j]
            mask = task.filters.mask(columns, m, n, self_scores=scored)
            passing = np.flatnonzero(mask)
            columns = {name: values[passing] for name, values in columns.items()}
            paths = rows.paths
            if paths is not None:
                runs, counts = paths
                offsets = np.concatenate([[0], np.cumsum(counts)])
                paths = gather_runs(runs, offsets, passing)[0], counts[passing]
            rows = Rows(rows.at[passing], columns, paths, rows.cells)
            self.pieces.append(rows)
            return
        self._wait_for_memory()
        for name, values in rows.columns.items():
            self.columns[name][rows.at] = values
        if rows.paths is not None:
            self.pieces.append(rows._replace(columns={}))

    def take(self, copies: dict, paths: tuple | None = None) -> None:
        """Take whole columns, 0 in the rows that are put one by one.

        copies : name -> function that adds to an int32 array
        paths : (runs, how many of each row), in order
        """
        self._wait_for_memory()
        for name, copy in copies.items():
            column = self.columns[name]
            plain = column.dtype == np.int32
            whole = column if plain else np.zeros(len(column), np.int32)
            copy(whole)
            if not plain:
                column += (whole / self.task.scoring.scale).astype(column.dtype)
        self.whole = paths

    def finish(self):
        """All pieces are here -> (columns, (operations, offsets) or None)."""
        pieces = self.pieces
        if self.whole is not None and not pieces:
            runs, counts = self.whole
            return self._columns(), (runs, np.concatenate([[0], np.cumsum(counts)]))
        if self.whole is not None:
            # Whole paths without the rows of pieces, which they lack
            runs, counts = self.whole
            put = np.concatenate([x.at for x in pieces])
            at = np.delete(np.arange(len(counts)), put)
            pieces = [Rows(at, {}, (runs, counts[at]), 0), *pieces]
        at = np.concatenate([np.zeros(0, np.int64), *(x.at for x in pieces)])
        order = np.argsort(at, kind="stable")
        columns = self._joined(order) if self.task.filtered else self._columns()
        if self.task.equals_alike and len((pairs := equal_texts(self.task))[0]):
            columns = _with_equal_texts(self.task, columns, *pairs)
        if self.task.output != "alignment":
            return columns, None
        paths = [x.paths for x in pieces]
        runs = np.concatenate([np.zeros(0, np.uint32), *(runs for runs, _ in paths)])
        counts = [np.zeros(0, np.int64), *(count for _, count in paths)]
        offsets = np.concatenate([[0], np.cumsum(np.concatenate(counts))])
        return columns, gather_runs(runs.astype(np.uint32), offsets, order)

    def _columns(self):
        index = self._index
        query, target = self.task.job.index() if index is None else index.result()
        return {"query": query, "target": target} | self.columns

    def _wait_for_memory(self) -> None:
        if self._touched is not None:
            self._touched.result()

    def _joined(self, order: np.ndarray):
        def whole(name: str, dtype: Any):
            parts = [x.columns[name] for x in self.pieces]
            return np.concatenate([np.zeros(0, dtype), *parts])[order].astype(dtype)

        return {name: whole(name, dtype) for name, dtype in self.dtypes.items()}


def equal_texts(task: Task, every: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Pairs (i, j) of a task, int64, whose texts are equal, by a hash; j rises.

    Unless ``every`` one is asked for, those of two sets, or of one, are left out in
    which every alignment with the best score has all residues identical: where letters
    score more with themselves than with any other, and are no wildcards. None are left
    out where a score may decide.
    """
    queries, targets = task.letters
    if task.kind == "zip":
        numbers = np.arange(len(queries.lengths))
        (like,) = np.nonzero(_marks(queries, numbers) == _marks(targets, numbers))
        sides = zip(_texts(queries, like), _texts(targets, like), strict=True)
        pairs = like[np.array([query == target for query, target in sides], bool)]
        return pairs, pairs
    scores = task.proved.min_score, task.proved.min_relative_score
    every |= scores != (None, None)  # which a short text may not reach
    every |= task.scoring.tracks is not None  # the second may lead off the diagonal
    scores = task.scoring.scores[0] if task.scoring.tracks else task.scoring.scores
    best = scores.diagonal()
    certain = (best > 0) & (best >= scores.max(axis=0)) & (best >= scores.max(axis=1))
    certain &= np.arange(len(best)) != task.scoring.alphabet.wildcard_code
    (places,) = np.nonzero(~certain[queries.codes])
    ends = queries.starts, queries.starts + queries.lengths
    first, last = (np.searchsorted(places, x) for x in ends)
    (unclear,) = np.nonzero((first < last) | (queries.lengths == 0) | every)
    if not len(unclear):
        return unclear, unclear
    texts: dict[bytes, list[int]] = {}
    for k, text in zip(unclear.tolist(), _texts(queries, unclear), strict=True):
        texts.setdefault(text, []).append(k)
    members = {text: np.array(numbers) for text, numbers in texts.items()}
    (like,) = np.nonzero(np.isin(targets.lengths, queries.lengths[unclear]))
    marks = _marks(queries, unclear)
    like = like[np.isin(_marks(targets, like), marks)]
    none = np.zeros(0, np.int64)
    equal = [members.get(text, none) for text in _texts(targets, like)]
    i, j = np.concatenate([none, *equal]), np.repeat(like, [len(x) for x in equal])
    met = i < j if task.kind == "all" else np.ones(len(i), bool)
    return i[met], j[met]


def _marks(sequences: CodedSequences, numbers: np.ndarray) -> np.ndarray:
    """A number of each numbered sequence, int64, made of its length and of three of its
    letters: those of equal texts are equal."""
    codes, lengths = sequences.codes, sequences.lengths[numbers].astype(np.int64)
    starts, marks = sequences.starts[numbers], lengths
    for place in (0, lengths // 2, lengths - 1) if len(codes) else ():
        letters = np.take(codes, starts + place, mode="clip")
        marks = marks * 256 + np.where(lengths > 0, letters, 0)
    return marks


def _texts(sequences: CodedSequences, numbers: np.ndarray) -> Iterator[bytes]:
    """Yield the codes of numbered sequences."""
    codes, starts = sequences.codes, sequences.starts[numbers]
    ends = starts + sequences.lengths[numbers]
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        yield codes[start:end].tobytes()


def _with_equal_texts(task: Task, columns: dict, i: np.ndarray, j: np.ndarray) -> dict:
    """Give the rows of equal texts all their residues as identical, and add those that
    filters left out. Their scores, and the ends of their paths, stay 0: verbs that ask
    for such rows read identities alone."""
    at = task.job.position(columns["query"], columns["target"])
    rows = task.job.position(i, j)
    lacking = ~contained(rows, at)
    if lacking.any():
        order = np.argsort(np.concatenate([at, rows[lacking]]), kind="stable")
        added = {"query": i[lacking], "target": j[lacking]}
        none = np.zeros(len(added["query"]), np.int64)
        columns = {
            name: np.concatenate([values, added.get(name, none).astype(values.dtype)])
            for name, values in columns.items()
        }
        columns = {name: values[order] for name, values in columns.items()}
        at = task.job.position(columns["query"], columns["target"])
    name = "max_identities" if task.output == "identity" else "identities"
    columns[name][np.searchsorted(at, rows)] = task.queries.lengths[i]
    return columns


def _touch(columns: list[np.ndarray]) -> None:
    """Have the system find memory for columns before results are waiting for it."""
    for column in columns:
        column[:: MEMORY_PAGE // column.itemsize] = 0


def table_of(task: Task, columns: dict, paths: tuple | None, info: dict) -> Table:
    """Columns, paths and figures of a run as a table."""
    operations, offsets = paths or (None, None)
    targets = task.targets
    if task.single_target is not None:
        targets = task.single_target
        columns = columns | {"target": np.zeros_like(columns["target"])}
    return Table(
        columns,
        task.queries,
        targets,
        task.scoring,
        task.mode,
        task.free,
        info["implementation"],
        info,
        operations,
        offsets,
        task.filters.cuts if task.filtered else (),
    )
