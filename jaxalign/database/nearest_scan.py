"""The nearest sequences of a corpus by identity, exactly, block by block.

A query meets every sequence of the corpus. Of most pairs a bound proves that they are
below the best identities that are known of the query; all others are aligned, those
with the largest bounds first (on a CPU ``pairs.proofs.best_first``, on GPUs
``nearest_launches``).
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from jaxalign.database import pieces
from jaxalign.database.hits import scan as hit_tables_scan
from jaxalign.database.nearest_state import (
    NONE,
    QUERIES_AT_ONCE,
    NearestState,
    PairJob,
    align,
    bars_of,
    no_state,
    rectangles,
    zipped,
)
from jaxalign.database.options import identity_options, nearest_filters, score_options
from jaxalign.database.pieces import BlockPiece, Hits, Records
from jaxalign.model.alphabet import Sequences, from_parts
from jaxalign.model.scoring import Scoring
from jaxalign.options import NearestOptions
from jaxalign.pairs import by_rows
from jaxalign.pairs.options import make_task
from jaxalign.pairs.plan import Task, WholeCodes
from jaxalign.pairs.proofs import best_first, proof
from jaxalign.runtime.devices import by_length
from jaxalign.runtime.pipeline import read_ahead

# ------------------------------------------------------------------------------
# The nearest sequences of a corpus by score: an exhaustive search, local mode.


def scan_by_score(
    tests: Sequences,
    blocks: Iterable[Sequences],
    scoring: Scoring,
    options: NearestOptions,
    report_progress: Callable[[int], object],
    saved_hits: tuple[Hits, Records] | None = None,
    on_block: Callable[[Hits, Records], object] | None = None,
) -> NearestState:
    """Find the best ``options.top`` of each test sequence in all blocks of a corpus.

    Where no pair of residues of the two scores above 0, every score is 0, and the first
    sequence of the corpus is the nearest.

    Parameters
    ----------
    blocks : iterable of Sequences
        Those that follow what is known.
    saved_hits : (hits so far, the first record of the corpus), optional
    on_block : callable, optional
        Takes the same after each block.
    """
    nothing = from_parts((), [], scoring.alphabet)
    task = make_task("cross", tests, nothing, scoring, score_options(options))
    task = replace(task, top=options.top)
    hits, first = saved_hits or (None, {})
    on_hits = None if on_block is None else lambda so_far: on_block(so_far, first)
    hits = hit_tables_scan(
        task, _noting(blocks, first), True, report_progress, hits, on_hits
    )
    state = no_state(len(tests), options.top)
    width = min(hits.index.shape[1], options.top)
    state.index[:, :width] = hits.index[:, :width]
    state.records = dict(hits.records)
    if first and (state.index[:, 0] == NONE).any():
        state.index[state.index[:, 0] == NONE, 0] = 0
        state.records |= first
    state.sequences, state.residues = hits.sequences, hits.residues
    state.implementation = hits.info["implementation"]
    state.aligned = hits.sequences * len(tests)
    return state


def _noting(blocks: Iterable[Sequences], first: Records) -> Iterator[Sequences]:
    """Pass the blocks through, and store the first record of all in ``first``."""
    for block in blocks:
        if not first and len(block):
            first[0] = block.names[0], np.array(block[0])
        yield block


FIRST_PAIRS = 8  # of a query, aligned before its others are looked at again …
GROWTH = 8  # … of which then so many times as many are
RUNS_AHEAD = 8  # queries whose pairs are planned while others compute
BOUNDS_AT_ONCE = 2**28  # pairs of a piece of a block
# Pairs of a query from which on a CPU aligns them side by side: they share it, and a
# cell of theirs takes a sixth of one of zipped pairs.
SHARED_QUERY = 32
WIDE_PAIRS = 2**24  # of a piece, from which on launches on a GPU are wide


def scan_by_identity(
    queries: Sequences,
    blocks: Iterable[Sequences],
    scoring: Scoring,
    options: NearestOptions,
    state: NearestState,
    report_progress: Callable[[int], object],
) -> Iterator[NearestState]:
    """Join the blocks of a corpus with the nearest so far; yield the state after each.

    Parameters
    ----------
    blocks : iterable of Sequences
        Those that follow what ``state`` has seen.
    report_progress : callable
        Takes the cells so far.
    """
    parts = read_ahead(_pieces(queries, blocks, scoring, options))
    fold = partial(_fold, options)
    return pieces.scan(state, parts, fold, len(queries.codes), report_progress)


def _pieces(
    queries: Sequences,
    blocks: Iterable[Sequences],
    scoring: Scoring,
    options: NearestOptions,
) -> Iterator[BlockPiece]:
    """Cut blocks into pieces, each with its task and, on a GPU, its bounds; GPUs start
    to count at once."""
    letters = WholeCodes(queries.codes)
    for block in blocks:
        whole = letters, WholeCodes(block.codes)
        targets_at_once = max(BOUNDS_AT_ONCE // max(len(queries), 1), 1)
        step = -(-len(block) // max(-(-len(block) // targets_at_once), 1)) or 1
        for start in range(0, len(block), step):
            stop = min(start + step, len(block))
            targets = block.between(start, stop)
            about = scoring, identity_options(options)
            task = make_task("cross", queries, targets, *about)
            task = replace(task, filters=nearest_filters(options), whole_codes=whole)
            whole_block = block if stop == len(block) else None
            yield BlockPiece(targets, whole_block, (task, _bounds(task, options)))


def _bounds(task: Task, options: NearestOptions) -> Any:
    """Start the bounds of a piece on a GPU; None without a GPU, or where all pairs are
    aligned."""
    launches = _launches(task) if options.filter and min(task.shape) else None
    if launches is None:
        return None
    from jaxalign.database import nearest_launches

    return nearest_launches.begin(task, options.identity, launches)


def _fold(
    options: NearestOptions,
    state: NearestState,
    piece: BlockPiece,
    _report_progress: Any,
) -> None:
    """Join the pairs of a piece of a block with the nearest so far."""
    task, bounds = piece.work
    if not min(task.shape):
        return
    if not options.filter:
        align(task, _every_pair(task, state), state)
        return
    if bounds is not None:
        from jaxalign.database import nearest_launches

        nearest_launches.fold(bounds, state)
        return
    table = best_first.bound_table(task, options.identity)
    limit = max(FIRST_PAIRS, 2 * state.index.shape[1])
    while True:
        candidates = best_first.candidates(table, *bars_of(state), limit)
        if not len(candidates.query):
            return
        query, target = candidates.query, table.order[candidates.column]
        shared = np.bincount(query, minlength=task.shape[0])[query] >= SHARED_QUERY
        together = _by_query(task, query[shared], target[shared], state)
        align(task, together, state, RUNS_AHEAD)
        align(task, zipped(task, query[~shared], target[~shared]), state)
        table.counts[query, candidates.column] = best_first.ALIGNED
        limit *= GROWTH


def _launches(task: Task) -> Any:
    """Plan launches that count common subsequences on a GPU; None without one."""
    named, is_small = task.implementation, task.job.total < proof.LEAST_CELLS
    if named not in (None, "pallas") or by_rows.seems_small(task):
        return None
    if named is None and is_small and not by_rows.may_have_gpu():
        return None
    from jaxalign.pairs import compiled

    launches = compiled.lcs_launches(task)
    if launches is None or task.job.pairs < WIDE_PAIRS:
        return launches
    from jaxalign.pairs.proofs.lcs_launches import WIDE

    return replace(launches, sizes=WIDE)


def _every_pair(task: Task, state: NearestState) -> Iterator[PairJob]:
    """Yield jobs of all pairs of a piece."""
    queries, targets = (
        by_length(side.lengths) for side in (task.queries, task.targets)
    )
    bars, top = bars_of(state)[0], state.index.shape[1]
    for at in range(0, len(queries), QUERIES_AT_ONCE):
        batch = queries[at : at + QUERIES_AT_ONCE]
        yield from rectangles(task, batch, targets, bars[batch], top)


def _by_query(
    task: Task, query: np.ndarray, target: np.ndarray, state: NearestState
) -> Iterator[PairJob]:
    """Yield jobs of selected pairs, the pairs of a query in one job; ``query``
    rises."""
    bars, top = bars_of(state)[0], state.index.shape[1]
    for query_row in np.unique(query)[:, None]:
        first, last = np.searchsorted(query, (query_row[0], query_row[0] + 1))
        yield from rectangles(task, query_row, target[first:last], bars[query_row], top)
