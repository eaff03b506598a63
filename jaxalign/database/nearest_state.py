"""The nearest sequences known so far by identity, and what joins pairs with them."""

from dataclasses import dataclass, field, replace

import numpy as np

from jaxalign.database.hit_list import Records
from jaxalign.model.identity import Filters, denominator, share
from jaxalign.model.selection import views
from jaxalign.pairs import engine
from jaxalign.pairs.plan import Task
from jaxalign.pairs.proofs.best_first import NO_BAR
from jaxalign.pairs.windows import WholeJob

NONE = -1  # the index where there is no sequence
PAIRS_AT_ONCE = 2**20  # zipped
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


def bars_of(state: NearestState) -> tuple[np.ndarray, np.ndarray]:
    """The identity that a further pair of a query has to reach, and where, in the
    piece, it has to stand before at that identity."""
    last = state.identity[:, -1].copy()
    return last, np.maximum(state.index[:, -1] - state.sequences, 0)


def align_zipped(
    task: Task, query: np.ndarray, target: np.ndarray, state: NearestState
) -> None:
    """Align some pairs of a task, one by one."""
    for at in range(0, len(query), PAIRS_AT_ONCE):
        i, j = (x[at : at + PAIRS_AT_ONCE] for x in (query, target))
        sides = {"queries": views(task.queries, i), "targets": views(task.targets, j)}
        pairs = replace(
            task, kind="zip", filters=Filters(), whole=whole_of(task), **sides
        )
        result = engine.run(engine.plan(pairs))
        join_pairs(task, i, j, result["max_identities"], result.info, state)


def align_all(
    task: Task,
    queries: np.ndarray,
    targets: np.ndarray,
    bars: np.ndarray,
    state: NearestState,
) -> None:
    """Align queries with all of some targets, those with like bars together."""
    if not len(targets):
        return
    rising = np.argsort(bars, kind="stable")
    step = max(DENSE_PAIRS // len(targets), 1)
    for at in range(0, len(queries), step):
        some = rising[at : at + step]
        _align_dense(task, queries[some], targets, float(bars[some].min()), state)


def _align_dense(
    task: Task, few: np.ndarray, targets: np.ndarray, bar: float, state: NearestState
) -> None:
    """Align some queries with all of some targets."""
    filters = replace(task.filters, min_identity=max(bar, 0.0))
    sides = {
        "queries": views(task.queries, few),
        "targets": views(task.targets, targets),
    }
    pairs = replace(task, filters=filters, whole=whole_of(task), bounded=False, **sides)
    result = engine.run(engine.plan(pairs))
    i, j = few[result["query"]], targets[result["target"]]
    join_pairs(task, i, j, result["max_identities"], result.info, state)


def whole_of(task: Task) -> WholeJob:
    """So that all pairs of a piece share programs."""
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
