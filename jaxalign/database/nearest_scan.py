"""The nearest sequences of a corpus by identity, exactly, block by block.

A query meets every sequence of the corpus. Of most pairs a bound proves that they are
below the best identities that are known of the query (``pairs.proofs.best_first``); all
others are aligned, those with the largest bounds first. Where many are left of a query
all of its pairs are: side by side they share more work.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import numpy as np

from jaxalign.database.hit_list import Records
from jaxalign.database.hit_list import keep as keep_records
from jaxalign.database.nearest_options import (
    NearestOptions,
    filters_of,
    identity_options,
)
from jaxalign.model.alphabet import Sequences
from jaxalign.model.identity import Filters, denominator, share
from jaxalign.model.scoring import Scoring
from jaxalign.model.selection import views
from jaxalign.pairs import engine, small_jobs
from jaxalign.pairs.options import make_task
from jaxalign.pairs.plan import Task, WholeCodes
from jaxalign.pairs.proofs import best_first, proof
from jaxalign.pairs.proofs.best_first import NO_BAR, BoundTable
from jaxalign.pairs.windows import WholeJob

NONE = -1  # the index where there is no sequence
FIRST_PAIRS = 8  # of a query, aligned before its others are looked at again …
GROWTH = 8  # … of which then so many times as many are
PAIRS_AT_ONCE = 2**20  # zipped
RUNS_AHEAD = 8  # queries whose pairs are planned while others compute
BOUNDS_AT_ONCE = 2**28  # pairs of a piece of a block
# Pairs of a query from which on a CPU aligns them side by side: they share it, and a
# cell of theirs takes a sixth of one of zipped pairs.
SHARED_QUERY = 32
# Pairs left of a query, of those of a block, beyond which a GPU aligns all of them: a
# list of pairs takes the host many times as long as a launch takes the device.
MAX_LEFT = 1 / 64
WIDE_PAIRS = 2**24  # of a piece, from which on launches on a GPU are wide
BAR_STEP = 0.02  # queries whose bars differ by no more are aligned together
DENSE_PAIRS = 2**24  # of a job of all pairs


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
    """

    identity: np.ndarray
    count: np.ndarray
    index: np.ndarray
    records: Records = field(default_factory=dict)
    sequences: int = 0
    residues: int = 0
    aligned: int = 0
    implementation: str = ""


def no_state(queries: int, top: int) -> NearestState:
    """Nothing has been read."""
    shape = queries, top
    identity, none = np.full(shape, NO_BAR), np.full(shape, NONE, np.int64)
    return NearestState(identity, np.zeros(shape, np.int64), none)


def scan(
    queries: Sequences,
    blocks: Iterable[Sequences],
    scoring: Scoring,
    options: NearestOptions,
    state: NearestState,
    tell: Callable[[int], object],
) -> Iterator[NearestState]:
    """Join blocks of a corpus with what is known; yields it after each.

    Parameters
    ----------
    blocks : iterable of Sequences
        Those that follow what ``state`` has seen.
    tell : callable
        Takes the cells so far.
    """
    cells, letters = 0, WholeCodes(queries.codes)
    for block in blocks:
        first, whole = state.sequences, (letters, WholeCodes(block.codes))
        most = max(BOUNDS_AT_ONCE // max(len(queries), 1), 1)
        step = -(-len(block) // max(-(-len(block) // most), 1)) or 1
        for start in range(0, len(block), step):
            piece = block.between(start, min(start + step, len(block)))
            _fold(_task(queries, piece, scoring, options, whole), options, state)
            state.sequences += len(piece)
            state.residues += len(piece.codes)
            cells += len(queries.codes) * len(piece.codes)
            tell(cells)
        keep_records(state.records, np.unique(state.index), first, block)
        yield state


def _task(
    queries: Sequences,
    piece: Sequences,
    scoring: Scoring,
    options: NearestOptions,
    whole: tuple[WholeCodes, ...],
) -> Task:
    chosen = identity_options(options)
    task = make_task("cross", queries, piece, scoring, chosen)
    return replace(task, filters=filters_of(options), whole_codes=whole)


def _fold(task: Task, options: NearestOptions, state: NearestState) -> None:
    """Join the pairs of a piece of a block with what is known."""
    if not min(task.shape):
        return
    launches = _launches(task) if options.filter else None
    table = best_first.bound_table(task, options.identity, launches)
    if not options.filter:
        _align_all(table, state)
        return
    most = max(FIRST_PAIRS, 2 * state.index.shape[1])
    for number in count(1):
        bars, places = _bars(state)
        chosen = best_first.candidates(table, bars, places, most)
        if not len(chosen.query):
            return
        many = chosen.left > MAX_LEFT * task.shape[1]
        many &= (number > 1) & (launches is not None)
        for group in _groups(np.flatnonzero(many), bars):
            _align_group(table, group, bars, state)
        few = ~many[chosen.query]
        query, column = chosen.query[few], chosen.column[few]
        if launches is None:
            query, column = _align_sharing(table, query, column, state)
        _align_zipped(table, query, column, state)
        most *= GROWTH


def _launches(task: Task) -> Any:
    """Launches that count common subsequences on a GPU; None where there is none."""
    named, few = task.implementation, task.job.total < proof.LEAST_CELLS
    if named not in (None, "pallas") or small_jobs.seems_small(task):
        return None
    if named is None and few and not small_jobs.may_have_gpu():
        return None
    from jaxalign.pairs import compiled

    launches = compiled.lcs_launches(task)
    if launches is None or task.job.pairs < WIDE_PAIRS:
        return launches
    from jaxalign.pairs.proofs.lcs_launches import WIDE

    return replace(launches, sizes=WIDE)


def _bars(state: NearestState) -> tuple[np.ndarray, np.ndarray]:
    """The identity that a further pair of a query has to reach, and where, in the
    block, it has to stand before at that identity."""
    last = state.identity[:, -1].copy()
    return last, np.maximum(state.index[:, -1] - state.sequences, 0)


def _groups(queries: np.ndarray, bars: np.ndarray) -> Iterator[np.ndarray]:
    """Queries whose bars are about the same."""
    rising = queries[np.argsort(bars[queries], kind="stable")]
    start = 0
    while start < len(rising):
        reach = bars[rising[start]] + BAR_STEP
        stop = int(np.searchsorted(bars[rising], reach, side="right"))
        yield rising[start:stop]
        start = stop


def _align_sharing(
    table: BoundTable, query: np.ndarray, column: np.ndarray, state: NearestState
) -> tuple[np.ndarray, np.ndarray]:
    """Align the pairs of each query that has many; those of the others are returned.

    query : int64 (pairs,)
        Rising.
    """
    task, pieces = table.task, []
    sizes = np.bincount(query, minlength=task.shape[0])
    shared = sizes[query] >= SHARED_QUERY
    for number in np.flatnonzero(sizes >= SHARED_QUERY).tolist():
        first = int(np.searchsorted(query, number))
        columns = column[first : first + int(sizes[number])]
        pieces.append((number, columns))
    alone = replace(task, filters=Filters(), whole=_whole(task), reserved=0)
    runs = (engine.start(engine.plan(_of_query(alone, table, *x))) for x in pieces)
    for (number, columns), run in zip(
        pieces, engine.compute(runs, alone, 0, None, None, RUNS_AHEAD), strict=True
    ):
        table.counts[number, columns] = best_first.ALIGNED
        rows, _ = run.output.finish()
        i, j = np.full(len(columns), number), table.order[columns]
        j = j[rows["target"]]
        _join(task, i, j, rows["max_identities"], engine.summary(run), state)
    return query[~shared], column[~shared]


def _of_query(alone: Task, table: BoundTable, number: int, columns: np.ndarray) -> Task:
    """The task of some pairs of one query."""
    query = views(alone.queries, np.array([number]))
    return replace(
        alone, queries=query, targets=views(alone.targets, table.order[columns])
    )


def _align_zipped(
    table: BoundTable, query: np.ndarray, column: np.ndarray, state: NearestState
) -> None:
    """Align some pairs, one by one."""
    task = table.task
    for at in range(0, len(query), PAIRS_AT_ONCE):
        i, j = (x[at : at + PAIRS_AT_ONCE] for x in (query, column))
        sides = {
            "queries": views(task.queries, i),
            "targets": views(task.targets, table.order[j]),
        }
        pairs = replace(
            task, kind="zip", filters=Filters(), whole=_whole(task), **sides
        )
        table.counts[i, j] = best_first.ALIGNED
        result = engine.run(engine.plan(pairs))
        _join(task, i, table.order[j], result["max_identities"], result.info, state)


def _align_group(
    table: BoundTable, queries: np.ndarray, bars: np.ndarray, state: NearestState
) -> None:
    """Align queries with all targets of the columns where many pairs reach the bars."""
    start, stop = best_first.crowded(table, bars, queries, MAX_LEFT / 2)
    step = max(DENSE_PAIRS // max(stop - start, 1), 1)
    for at in range(0, len(queries) if stop > start else 0, step):
        few = queries[at : at + step]
        _align_dense(table, few, start, stop, float(bars[few].min()), state)
    table.counts[queries, start:stop] = best_first.ALIGNED


def _align_all(table: BoundTable, state: NearestState) -> None:
    """Align every pair."""
    queries, targets = table.task.shape
    step = max(DENSE_PAIRS // targets, 1)
    for at in range(0, queries, step):
        few = np.arange(at, min(at + step, queries))
        _align_dense(table, few, 0, targets, NO_BAR, state)


def _align_dense(
    table: BoundTable,
    few: np.ndarray,
    start: int,
    stop: int,
    bar: float,
    state: NearestState,
) -> None:
    """Align some queries with all targets of some columns."""
    task, targets = table.task, table.order[start:stop]
    filters = replace(task.filters, min_identity=max(bar, 0.0))
    sides = {
        "queries": views(task.queries, few),
        "targets": views(task.targets, targets),
    }
    pairs = replace(task, filters=filters, whole=_whole(task), bounded=False, **sides)
    result = engine.run(engine.plan(pairs))
    i, j = few[result["query"]], targets[result["target"]]
    _join(task, i, j, result["max_identities"], result.info, state)


def _whole(task: Task) -> WholeJob:
    """So that all pairs of a block share programs."""
    return WholeJob(
        task.job.most, task.job.cells, task.shape[1], len(task.targets.codes)
    )


def _join(
    task: Task,
    i: np.ndarray,
    j: np.ndarray,
    count: np.ndarray,
    info: dict,
    state: NearestState,
) -> None:
    """Join pairs (i, j) of a piece, and their identical pairs, with what is known."""
    state.aligned += info["pairs"]
    state.implementation = state.implementation or info["implementation"]
    m, n = task.queries.lengths[i], task.targets.lengths[j]
    identity = share(count, denominator(task.filters.identity, {}, m, n), np)
    better = identity >= state.identity[i, -1]
    better &= task.filters.length_mask(m, n)
    i, identity, count = i[better], identity[better], count[better]
    join(state, i, identity, count, j[better] + state.sequences)


def join(
    state: NearestState,
    query: np.ndarray,
    identity: np.ndarray,
    count: np.ndarray,
    index: np.ndarray,
) -> None:
    """The nearest with some pairs more; a pair that is there may come again."""
    known = np.nonzero(state.index != NONE)
    fields = state.identity, state.count, state.index
    before = (known[0], *(x[known] for x in fields))
    both = zip(before, (query, identity, count, index), strict=True)
    query, identity, count, index = (np.concatenate(pair) for pair in both)
    order = np.lexsort((index, -identity, query))
    query, index = query[order], index[order]
    first = np.ones(len(query), bool)
    first[1:] = (query[1:] != query[:-1]) | (index[1:] != index[:-1])
    order, query, index = order[first], query[first], index[first]
    rank = np.arange(len(query)) - np.searchsorted(query, query)
    some = rank < state.index.shape[1]
    query, rank, order = query[some], rank[some], order[some]
    state.identity[query, rank] = identity[order]
    state.count[query, rank] = count[order]
    state.index[query, rank] = index[some]
