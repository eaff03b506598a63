"""The nearest sequences known so far by identity, and what joins pairs with them."""

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np

from jaxalign.database.pieces import Hits, Records
from jaxalign.model.alphabet import best_rows, join_best, views
from jaxalign.model.identity import Filters, of_lengths
from jaxalign.pairs import engine, jobs
from jaxalign.pairs.options import gate_of
from jaxalign.pairs.pair_matrix import WholeJob
from jaxalign.pairs.plan import NearestOnly, Run, Task
from jaxalign.pairs.proofs.best_first import NO_BAR
from jaxalign.runtime.devices import at_once

NONE = -1  # the index where there is no sequence
FIELDS = ("identity", "count", "index")  # of a state, a row a query …
COUNTS = ("sequences", "residues", "aligned")  # … and numbers of all
PAIR_BYTES = 128  # of a job, with what joins it
PAIRS_AT_ONCE = 2**20  # zipped
DENSE_PAIRS = 2**23  # of a job of all pairs …
QUERIES_AT_ONCE = 64  # … and its queries: as many as a launch on a GPU takes
PATHS_GROWTH = 8  # of a query, times as many in a round as in the one before
JOBS_AHEAD = 2  # planned or computed beyond the one whose pairs are joined


@dataclass
class NearestState:
    """The nearest of each query so far; it changes while the corpus is read.

    Attributes
    ----------
    identity : float64 (queries, top)
        From the best; ``NO_BAR`` where there is none.
    count : int64 (queries, top)
        Identical pairs.
    index : int64 (queries, top)
        Of the corpus; of equals the first comes first. ``NONE`` where there is none.
    records : dict
        Index to (name, codes), of these.
    columns : int64 (targets,), optional
        Places in the piece of the targets that are joined, rising; None for all.
    minus : bool
        Whether the queries that are joined are reverse complements.
    """

    identity: np.ndarray
    count: np.ndarray
    index: np.ndarray
    records: Records = field(default_factory=dict)
    sequences: int = 0
    residues: int = 0
    aligned: int = 0
    implementation: str = ""
    columns: np.ndarray | None = None
    minus: bool = False


def no_state(queries: int, top: int) -> NearestState:
    """Make the state before anything is read."""
    shape = queries, top
    identity, none = np.full(shape, NO_BAR), np.full(shape, NONE, np.int64)
    return NearestState(identity, np.zeros(shape, np.int64), none)


def bars_of(state: NearestState) -> tuple[np.ndarray, np.ndarray]:
    """Return, for each query, the identity that a further pair has to reach, and the
    place in the piece before which a pair of just that identity has to stand."""
    last = state.identity[:, -1].copy()
    places = np.maximum(state.index[:, -1] - state.sequences, 0)
    if state.columns is not None:
        places = np.searchsorted(state.columns, places)
    return last, places


@dataclass(frozen=True, eq=False)
class PairJob:
    """Pairs of a piece that are aligned in one job.

    Attributes
    ----------
    task : Task
    queries, targets : int64
        The index in the piece of each query and target of the task.
    """

    task: Task
    queries: np.ndarray
    targets: np.ndarray


def zipped(task: Task, query: np.ndarray, target: np.ndarray) -> Iterator[PairJob]:
    """Yield jobs of single pairs of a task."""
    pairs = replace(task, kind="zip", filters=Filters(), whole=whole_of(task))
    step = at_once(PAIRS_AT_ONCE, PAIR_BYTES, task.budget)
    for at in range(0, len(query), step):
        i, j = (x[at : at + step] for x in (query, target))
        yield _job(pairs, i, j)


def rectangles(
    task: Task, queries: np.ndarray, targets: np.ndarray, bars: np.ndarray, top: int
) -> Iterator[PairJob]:
    """Yield jobs of queries with all of the targets; of each query only the ``top``
    nearest that reach its bar are returned, or all that may be without a coverage.

    bars : float64 (queries,)
    """
    least = max(float(bars.min(initial=1)), 0.0)
    filters = replace(task.filters, min_identity=least, min_cov=None)
    gated = task.filters.min_cov is not None
    nearest = None if gated else NearestOnly(top, bars)
    pairs = replace(task, filters=filters, nearest=nearest)
    pairs = replace(pairs, whole=whole_of(task), bounded=False)
    pairs_at_once = at_once(DENSE_PAIRS, PAIR_BYTES, task.budget)
    step = max(pairs_at_once // max(len(queries), 1), 1)
    for at in range(0, len(targets), step):
        yield _job(pairs, queries, targets[at : at + step])


def _job(pairs: Task, queries: np.ndarray, targets: np.ndarray) -> PairJob:
    """Make the job of a task whose sequences are not set yet."""
    sides = {
        "queries": views(pairs.queries, queries),
        "targets": views(pairs.targets, targets),
    }
    return PairJob(replace(pairs, reserved=0, **sides), queries, targets)


def align(
    task: Task,
    jobs: Iterable[PairJob],
    state: NearestState,
    jobs_ahead: int = JOBS_AHEAD,
) -> None:
    """Align the pairs of jobs, and join them with the nearest so far.

    jobs : read in a thread, ``jobs_ahead`` of those that are joined
    """
    waiting: deque[PairJob] = deque()

    def runs() -> Iterator[Run]:
        for job in jobs:
            waiting.append(job)
            yield engine.start(engine.plan(job.task))

    for run in engine.compute(runs(), task, 0, None, None, jobs_ahead):
        rows, _ = run.output.finish()
        job = waiting.popleft()
        i, j = job.queries[rows["query"]], job.targets[rows["target"]]
        join_pairs(task, i, j, rows["max_identities"], engine.summary(run), state)


def whole_of(task: Task) -> WholeJob:
    """Return sizes of the whole piece, so that all its jobs share programs."""
    return WholeJob(
        task.job.most, task.job.cells, task.shape[1], len(task.targets.codes)
    )


def join_pairs(
    task: Task,
    i: np.ndarray,
    j: np.ndarray,
    count: np.ndarray,
    info: dict,
    state: NearestState,
) -> None:
    """Join pairs (i, j) of a piece, with their identical pairs, with the nearest so
    far.

    With a coverage, paths are aligned of the pairs of a query with most identical
    pairs: those that pass leave fewer of the others.
    """
    state.aligned += info["pairs"]
    state.implementation = state.implementation or info["implementation"]
    m, n = task.queries.lengths[i], task.targets.lengths[j]
    identity = of_lengths(task.filters.identity, count, m, n)
    better = identity >= state.identity[i, -1]
    better &= task.filters.length_mask(m, n) | (m == n)
    index = (j if state.columns is None else state.columns[j]) + state.sequences
    rows = i, j, identity, count, index
    i, j, identity, count, index = (x[better] for x in rows)
    if task.filters.min_cov is None:
        _join(state, i, identity, count, index)
        return
    gate, length = gate_of(task.filters), task.filters.identity
    limit = 2 * state.index.shape[1]
    while len(i):
        best, _ = best_rows(i, (-identity, index), limit)
        about = i[best], j[best], count[best], gate, length, state.minus
        values, counts = jobs.of_covered_paths(task, *about)
        passing = ~np.isnan(values)
        covered = best[passing]
        _join(state, i[covered], values[passing], counts[passing], index[covered])
        left = identity >= state.identity[i, -1]
        left[best] = False
        rows = i, j, identity, count, index
        i, j, identity, count, index = (x[left] for x in rows)
        limit *= PATHS_GROWTH


def _join(
    state: NearestState,
    i: np.ndarray,
    identity: np.ndarray,
    count: np.ndarray,
    index: np.ndarray,
) -> None:
    """Join pairs with the nearest so far; a pair may come twice."""
    if state.columns is not None:
        raised = _raised(state, i, identity, index)
        columns = i, identity, count, index
        i, identity, count, index = (x[raised] for x in columns)
    join_best(
        (state.identity, state.count, state.index),
        state.index != NONE,
        i,
        (identity, count, index),
        lambda identity, _count, index: (-identity, index),
    )


def _raised(
    state: NearestState, i: np.ndarray, identity: np.ndarray, index: np.ndarray
) -> np.ndarray:
    """Which pairs are not known with so large an identity by another measure; the
    state forgets those that it knows with less."""
    row, place = np.nonzero(state.index != NONE)
    stored = state.index[row, place]
    size = 1 + max(int(stored.max(initial=0)), int(index.max(initial=0)))
    order = np.argsort(row * size + stored)
    row, place, stored = row[order], place[order], stored[order]
    at = np.searchsorted(row * size + stored, i * size + index)
    inside = np.flatnonzero(at < len(stored))
    at = at[inside]
    same = (row[at] == i[inside]) & (stored[at] == index[inside])
    inside, at = inside[same], at[same]
    raised, lower = np.ones(len(i), bool), state.identity[row[at], place[at]]
    raised[inside] = identity[inside] > lower
    at = at[raised[inside]]
    state.index[row[at], place[at]] = NONE
    return raised


@contextmanager
def some_of(
    state: NearestState, rows: np.ndarray, columns: np.ndarray
) -> Iterator[NearestState]:
    """Hold the state of some queries, with which some targets of a piece are joined;
    afterwards it stands in that of all queries.

    rows, columns : int64, the queries, and the targets by their places in the piece
    """
    fields = {name: getattr(state, name)[rows] for name in FIELDS}
    part = replace(state, columns=columns, **fields)
    yield part
    for name in FIELDS:
        getattr(state, name)[rows] = getattr(part, name)
    state.aligned, state.implementation = part.aligned, part.implementation


# ------------------------------------------------------------------------------
# The state of an interrupted ``nearest`` as arrays, and back.

Arrays = dict[str, np.ndarray]


def arrays_of(state: NearestState) -> Arrays:
    """Save the state of a scan by identity as arrays."""
    fields = {name: getattr(state, name) for name in FIELDS}
    counts = np.array([getattr(state, name) for name in COUNTS], np.int64)
    about = {"counts": counts, "implementation": np.array(state.implementation)}
    return fields | about | _of_records(state.records)


def state_of(arrays: Arrays) -> NearestState:
    """Restore the state of an interrupted scan by identity."""
    fields = (arrays[name].copy() for name in FIELDS)
    state = NearestState(*fields, records=_records(arrays))
    for name, value in zip(COUNTS, arrays["counts"].tolist(), strict=True):
        setattr(state, name, value)
    state.implementation = str(arrays["implementation"])
    return state


def arrays_of_hits(hits: Hits, first: Records) -> Arrays:
    """Save the hits of a search as arrays; ``first`` has the first record of the
    corpus."""
    counts = np.array([hits.sequences, hits.residues], np.int64)
    info = np.array(hits.info["implementation"])
    about = {"score": hits.score, "index": hits.index, "counts": counts}
    named = _of_records(hits.records) | {"implementation": info}
    return about | named | _of_records(first, "first_")


def hits_of(arrays: Arrays) -> tuple[Hits, Records]:
    """Restore (hits, first record) of an interrupted search."""
    sequences, residues = arrays["counts"].tolist()
    sides = arrays["score"], arrays["index"]
    hits = Hits(*sides, residues, sequences, _records(arrays))
    return hits, _records(arrays, "first_")


def _of_records(records: Records, prefix: str = "") -> Arrays:
    indices = sorted(records)
    codes = [np.asarray(records[i][1]) for i in indices]
    ends = np.cumsum([0, *map(len, codes)]).astype(np.int64)
    names = "\n".join(records[i][0] for i in indices).encode()
    return {
        f"{prefix}records": np.array(indices, np.int64),
        f"{prefix}names": np.frombuffer(names, np.uint8),
        f"{prefix}codes": np.concatenate([np.zeros(0, np.uint8), *codes]),
        f"{prefix}ends": ends,
    }


def _records(arrays: Arrays, prefix: str = "") -> Records:
    """A name is the first word of a line, so it has no newline."""
    indices = arrays[f"{prefix}records"].tolist()
    names = arrays[f"{prefix}names"].tobytes().decode().split("\n")
    codes, ends = arrays[f"{prefix}codes"], arrays[f"{prefix}ends"].tolist()
    return {
        index: (name, codes[start:stop])
        for index, name, start, stop in zip(
            indices, names, ends, ends[1:], strict=False
        )
    }
