"""The nearest sequences of a corpus by identity, exactly, block by block.

A query meets every sequence of the corpus. Of most pairs a bound proves that they are
below the best identities that are known of the query; all others are aligned, those
with the largest bounds first (on a CPU ``pairs.proofs.best_first``, on GPUs
``nearest_launches``).
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain, product
from typing import Any, NamedTuple

import numpy as np

from jaxalign.database import pieces
from jaxalign.database.hits import scan as hit_tables_scan
from jaxalign.database.nearest_state import (
    NONE,
    QUERIES_AT_ONCE,
    NearestState,
    align,
    bars_of,
    join_pairs,
    no_state,
    rectangles,
    some_of,
    zipped,
)
from jaxalign.database.options import LOCAL, divided, gated_options
from jaxalign.database.pieces import BlockPiece, Hits, Records
from jaxalign.model.alphabet import Sequences, begins, best_rows, from_parts
from jaxalign.model.scoring import Scoring
from jaxalign.model.strands import SIGNS, reverse_complement
from jaxalign.model.table import by_strands
from jaxalign.options import Execution, NearestOptions, PairOptions, shared
from jaxalign.pairs import by_rows, part_stream
from jaxalign.pairs.jobs import tables_of, with_kernels
from jaxalign.pairs.options import make_task
from jaxalign.pairs.plan import Task, WholeCodes
from jaxalign.pairs.proofs import best_first, proof
from jaxalign.pairs.result import equal_texts
from jaxalign.runtime.devices import at_once, by_length, parts_budget
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

    Where no pair of residues of two sequences scores above 0, their score is 0; of such
    sequences the first of the corpus come first. ``blocks`` follow ``saved_hits``, the
    hits so far and the first records of the corpus, which ``on_block`` takes after each
    block.
    """
    pairs = PairOptions(mode=LOCAL, output="score", **shared(options, Execution))
    nothing = from_parts((), [], scoring.alphabet)
    signs = SIGNS[options.strand or "plus"]
    stranded = by_strands(tests, signs)
    task = make_task("cross", stranded, nothing, scoring, pairs)
    task = replace(task, top=options.top)
    hits, first = saved_hits or (None, {})

    def with_first_records() -> Iterator[Sequences]:
        for block in blocks:
            for k in range(min(options.top - len(first), len(block))):
                first[len(first)] = block.names[k], np.array(block[k])
            yield block

    on_hits = None if on_block is None else lambda so_far: on_block(so_far, first)
    hits = hit_tables_scan(
        task,
        with_first_records(),
        True,
        lambda cells: report_progress(cells // len(signs)),
        hits,
        on_hits,
    )
    state = no_state(len(tests), options.top)
    row, place = np.nonzero(hits.index >= 0)
    index, score = hits.index[row, place], hits.score[row, place]
    row %= max(len(tests), 1)
    # A sequence of both strands is a hit once, with its larger score.
    order = np.lexsort((-score, index, row))
    order = order[begins(row[order], index[order])]
    row, index, score = row[order], index[order], score[order]
    best, rank = best_rows(row, (-score, index), options.top)
    state.index[row[best], rank] = index[best]
    state.records = {k: hits.records[k] for k in np.unique(index[best]).tolist()}
    for row in np.flatnonzero((state.index == NONE).any(axis=1)).tolist():
        scored = state.index[row, state.index[row] != NONE]
        unscored = np.setdiff1d(np.fromiter(first, np.int64), scored)
        count = min(options.top - len(scored), len(unscored))
        state.index[row, len(scored) : len(scored) + count] = unscored[:count]
        state.records |= {k: first[k] for k in unscored[:count].tolist()}
    state.sequences, state.residues = hits.sequences, hits.residues
    state.implementation = hits.info["implementation"]
    state.aligned = hits.sequences * len(tests)
    return state


FIRST_PAIRS = 8  # of a query, aligned before its others are looked at again …
GROWTH = 8  # … of which then so many times as many are
RUNS_AHEAD = 8  # queries whose pairs are planned while others compute
BOUNDS_AT_ONCE = 2**28  # pairs of a piece of a block …
BOUND_BYTES, CANDIDATE_BYTES = 2, 16  # … and of a pair, and of one that may be aligned
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
    """Join the blocks of a corpus, which follow what ``state`` has seen, with the
    nearest so far; yield the state after each."""
    of_strands = [queries]
    if options.strand == "both":
        of_strands.append(reverse_complement(queries))
    letters = [WholeCodes(x.codes) for x in of_strands]
    budget, every = parts_budget(options.memory_budget), max(len(queries), 1)
    targets_at_once = max(at_once(BOUNDS_AT_ONCE, BOUND_BYTES, budget) // every, 1)

    def parts() -> Iterator[BlockPiece]:
        """Yield pieces of blocks, each with its regions; GPUs start to count at
        once."""
        for block in blocks:
            whole = (*letters, WholeCodes(block.codes))
            step = -(-len(block) // max(-(-len(block) // targets_at_once), 1)) or 1
            for start in range(0, len(block), step):
                stop = min(start + step, len(block))
                targets = block.between(start, stop)
                regions = regions_of(of_strands, targets, scoring, options)
                if len(regions) == len(of_strands):
                    tasks = [replace(x.task, whole_codes=whole) for x in regions]
                    pairs = zip(regions, tasks, strict=True)
                    regions = [x._replace(task=task) for x, task in pairs]
                if options.filter:
                    regions = [_begun(region) for region in regions]
                whole_block = block if stop == len(block) else None
                yield BlockPiece(targets, whole_block, regions)

    fold = partial(_fold, options)
    read = read_ahead(parts())
    return pieces.scan(state, read, fold, len(queries.codes), report_progress)


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


class PieceRegion(NamedTuple):
    """Pairs of a piece of which the same is asked.

    task : of kind ``cross``; one with a ``min_score`` is computed whole
    places : (rows, columns), int64, the queries and the targets; None for all
    minus : whether the queries are reverse complements
    bounds : on a GPU, of a task without a ``min_score``
    """

    task: Task
    places: tuple[np.ndarray, np.ndarray] | None = None
    minus: bool = False
    bounds: Any = None


def regions_of(
    of_strands: list[Sequences],
    targets: Sequences,
    scoring: Scoring,
    options: NearestOptions,
) -> list[PieceRegion]:
    """Divide the pairs of a piece by what is asked of them, and by the strands of the
    queries."""
    parts = divided(of_strands[0], targets, scoring, options)
    regions, cells = [], len(of_strands[0].codes) * len(targets.codes)
    for (choice, rows, columns), queries in product(parts, of_strands):
        places, sides = None, (queries, targets)
        if len(parts) > 1 or len(of_strands) > 1:
            places = rows, columns
        if len(parts) > 1:
            sides = queries.take(rows), targets.take(columns)
        gated = gated_options(choice)
        if gated.min_score is not None:
            gated = with_kernels(gated, cells)
        task = make_task("cross", *sides, scoring, gated)
        gate = {"min_cov": choice.min_cov, "coverage": choice.coverage}
        filters = replace(task.filters, identity=choice.identity, **gate)
        minus = queries is not of_strands[0]
        regions.append(PieceRegion(replace(task, filters=filters), places, minus))
    return regions


def _begun(region: PieceRegion) -> PieceRegion:
    """Start to count the bounds of a region on GPUs."""
    task = region.task
    if task.filters.min_score is not None or not min(task.shape):
        return region
    if (launches := _launches(task)) is None:
        return region
    from jaxalign.database import nearest_launches

    bounds = nearest_launches.begin(task, task.filters.identity, launches)
    return region._replace(bounds=bounds)


def _fold(
    options: NearestOptions,
    state: NearestState,
    piece: BlockPiece,
    report_progress: Any,
) -> None:
    """Join the pairs of a piece of a block with the nearest so far."""
    cells, strands = 0, 1 + (options.strand == "both")
    report_plus, report_progress = report_progress, None
    if report_plus is not None:
        report_progress = partial(_report_share, report_plus, strands)
    for region in piece.work:
        report_region = pieces.tell_after(report_progress, cells)
        state.minus = region.minus
        if region.places is None:
            _fold_region(options, state, region, report_region)
        else:
            with some_of(state, *region.places) as part:
                _fold_region(options, part, region, report_region)
        cells += len(region.task.queries.codes) * len(region.task.targets.codes)
        if report_progress is not None:
            report_progress(cells)


def _report_share(report_progress: Any, strands: int, cells: int) -> None:
    """Report the cells of all strands as those of one."""
    report_progress(cells // strands)


def _fold_region(
    options: NearestOptions,
    state: NearestState,
    region: PieceRegion,
    report_progress: Any,
) -> None:
    """Join the pairs of a region with the nearest so far."""
    task, bounds = region.task, region.bounds
    if not min(task.shape):
        return
    top = state.index.shape[1]
    i, j = equal_texts(task)  # which no bound finds where they have wildcards
    if len(i):
        info = {"pairs": 0, "implementation": state.implementation}
        join_pairs(task, i, j, task.queries.lengths[i], info, state)
    if task.filters.min_score is not None:
        step, letters = len(task.targets), len(task.queries.codes)
        if by_rows.seems_small(task):  # whose windows are planned at once
            budget = task.parts_budget
            pairs_at_once = at_once(by_rows.MAX_PAIRS, by_rows.PAIR_BYTES, budget)
            step = max(pairs_at_once // task.shape[0], 1)
        for first in range(0, len(task.targets), step):
            part = replace(task, targets=task.targets.between(first, first + step))
            part = replace(part, filters=replace(part.filters, min_cov=None))
            cells = letters * int(task.targets.offsets[first])
            report_part = pieces.tell_after(report_progress, cells)
            pairs = PairOptions(progress=report_part)
            for table in tables_of(part, pairs, partial(part_stream.cut_cross, part)):
                i, j, count = (table[x] for x in ("query", "target", "max_identities"))
                aligned = table.info.get("aligned_pairs", table.info["pairs"])
                info = table.info | {"pairs": aligned}
                join_pairs(task, i, j + first, count, info, state)
        return
    if not options.filter:
        queries, targets = (by_length(x.lengths) for x in (task.queries, task.targets))
        bars, step = bars_of(state)[0], QUERIES_AT_ONCE
        batches = (queries[at : at + step] for at in range(0, len(queries), step))
        of_batches = (rectangles(task, x, targets, bars[x], top) for x in batches)
        align(task, chain.from_iterable(of_batches), state)
        return
    if bounds is not None:
        from jaxalign.database import nearest_launches

        nearest_launches.fold(bounds, state)
        return
    table = best_first.bound_table(task, task.filters.identity)
    pairs_at_once = at_once(BOUNDS_AT_ONCE, CANDIDATE_BYTES, task.parts_budget)
    room = pairs_at_once // task.shape[0]
    limit = max(FIRST_PAIRS, 2 * top)
    while True:
        limit = max(min(limit, room), 1)
        candidates = best_first.candidates(table, *bars_of(state), limit)
        if not len(candidates.query):
            return
        query, target = candidates.query, table.order[candidates.column]
        dense = np.bincount(query, minlength=task.shape[0])[query] >= SHARED_QUERY
        # the pairs of a query in one job; ``query`` rises
        rows, first = np.unique(query[dense], return_index=True)
        columns, bars = np.split(target[dense], first)[1:], bars_of(state)[0]
        sides = zip(rows[:, None], columns, strict=True)
        of_rows = (rectangles(task, x, y, bars[x], top) for x, y in sides)
        align(task, chain.from_iterable(of_rows), state, RUNS_AHEAD)
        align(task, zipped(task, query[~dense], target[~dense]), state)
        table.counts[query, candidates.column] = best_first.ALIGNED
        limit *= GROWTH
