"""A small database by rows, in NumPy: all scores, and of each query the best.

The scores come as a table, queries times sequences, so nothing stays on a device.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np

from jaxalign.database import pieces
from jaxalign.database.options import pair_options
from jaxalign.database.pieces import BlockPiece, Hits, no_hits, sequences_of
from jaxalign.errors import JaxalignError
from jaxalign.model.alphabet import Sequences, begins, best_rows, from_parts, ranks
from jaxalign.model.operations import M
from jaxalign.model.scoring import Scoring
from jaxalign.model.table import Table, along_plus, join, steps_of
from jaxalign.options import PairOptions, SearchOptions
from jaxalign.pairs import by_rows, engine, jobs
from jaxalign.pairs.api import pairs_table
from jaxalign.pairs.options import make_task
from jaxalign.pairs.plan import Plan, Task
from jaxalign.pairs.proofs import proof
from jaxalign.runtime.devices import at_once
from jaxalign.runtime.pipeline import read_ahead


def with_room(
    blocks: Iterable[Sequences],
    queries: Sequences,
    scoring: Scoring,
    options: PairOptions,
    top: int,
) -> Iterator[Sequences]:
    """Yield blocks of a database after their longest sequence has been found to fit the
    budget beside the longest query, as a hit.

    Raises MemoryPlanError: it does not.
    """
    for block in blocks:
        task = make_task("cross", queries, block, scoring, options)
        proof.with_room(replace(task, top=top))
        yield block


def small_plan(task: Task, block: Sequences) -> Plan | None:
    """Plan a database of one block by rows; None where ``database.scan`` is to compute
    it.

    Raises UsageError, MemoryPlanError: rows are named, and cannot compute it
    """
    residues, records = pieces.sizes_of(task.parts_budget)
    whole = len(block) < records and len(block.codes) < residues
    if not whole and task.implementation != "rows":
        return None
    return by_rows.plan_by_rows(replace(task, targets=block, top=None))


def _pieces_by_rows(task: Task, block: Sequences) -> Iterator[BlockPiece]:
    """Yield pieces of a block, as many pairs as the budget has room for."""
    pairs = at_once(by_rows.MAX_PAIRS, by_rows.PAIR_BYTES, task.budget)
    step = max(pairs // max(task.shape[0], 1), 1)
    for start in range(0, len(block), step):
        last = start + step >= len(block)
        yield BlockPiece(block.between(start, start + step), block if last else None)


def _fold_by_rows(
    task: Task, hits: Hits, piece: BlockPiece, report_progress: Any
) -> None:
    """Join the scores of a block with the best so far."""
    block = piece.targets
    plan = engine.plan(replace(task, targets=block, top=None))
    table = engine.run(plan, report_progress)
    hits.count(table.info)
    scores = np.rint(table["score"] * task.scoring.scale).astype(np.int64)
    scores = scores.reshape(task.shape[0], len(block))
    least = 1 if task.local else np.iinfo(np.int64).min
    query, target = np.nonzero(scores >= least)
    longest = (int(x.lengths.max(initial=0)) for x in (task.queries, block))
    wide = hits.score.dtype == np.int64 or task.dtype(*longest) == "int64"
    index = (target + hits.sequences).astype(np.int32)
    dtype = "int64" if wide else "int32"
    hits.add(task.top or 0, query, scores[query, target], index, dtype)


# ------------------------------------------------------------------------------
# The hits of a scan as a table, the same with their paths, and those of both strands:
# each query twice, and its best hits of both together.


Strands = tuple[int, ...] | None


def scan(
    task: Task,
    blocks: Iterator[Sequences],
    keep: bool | Callable[[Hits], np.ndarray],
    report_progress: Any = None,
    hits: Hits | None = None,
    on_block: Callable[[Hits], object] | None = None,
) -> Hits:
    """Find the best ``task.top`` of each query in all blocks of a database, by rows
    where it is small.

    The task is of kind ``cross`` and output ``score``, and its targets are not used.
    Blocks come in the order of the database.

    keep : keep names and codes of the hits, of a database that cannot be read twice, or
        of those that a function selects
    """
    hits, small = no_hits(task.shape[0]) if hits is None else hits, False
    open_to_rows = hits.info["implementation"] in ("", "rows")
    if task.implementation in (None, "rows") and open_to_rows:
        first = list(islice(blocks, 1))
        blocks = chain(first, blocks)
        small = all(small_plan(task, block) is not None for block in first)
    if small:
        parts = chain.from_iterable(map(partial(_pieces_by_rows, task), blocks))
        fold = partial(_fold_by_rows, task)
    else:
        from jaxalign.database.scan import BestOnDevice, prepared

        parts = read_ahead(prepared(task, blocks, hits.sequences))
        fold = BestOnDevice(task, hits).fold
    letters = int(task.queries.lengths.sum())
    for so_far in pieces.scan(hits, parts, fold, letters, report_progress, keep):
        if on_block is not None:
            on_block(so_far)
    return hits


def rows(task: Task, hits: Any, database: Sequences | None) -> Table:
    """Return the hits as a table of scores."""
    query, place = np.nonzero(hits.index >= 0)
    index, score = hits.index[query, place], hits.score[query, place]
    targets = database
    if targets is None:
        indices, targets = sequences_of(hits.records, task.scoring.alphabet)
        index = np.searchsorted(indices, index)
    scale = task.scoring.scale
    columns = {
        "query": query.astype(np.int32),
        "target": index.astype(np.int32),
        "score": score if scale == 1 else score / scale,
    }
    return Table(
        columns=columns,
        queries=task.queries,
        targets=targets,
        scoring=task.scoring,
        mode=task.mode,
        free_ends=task.free,
        implementation=hits.info["implementation"],
        info=hits.info,
    )


def _path_options(options: SearchOptions, table: Table) -> PairOptions:
    """Return the options of the paths of the hits. Rows alone have those with gap
    costs by position."""
    if table.scoring.gap_costs is not None:
        options = replace(options, implementation="rows", devices=None)
    return jobs.with_kernels(pair_options(options, "alignment"), table.info["cells"])


def aligned(table: Table, options: SearchOptions) -> Table:
    """Align the hits with their paths, in blocks."""
    path_options = _path_options(options, table)
    parts = []
    for hits in _blocks(table, pieces.BLOCK_RESIDUES):
        align, queries = _path_job(table, table.columns["query"][hits])
        targets = table.targets.take(table.columns["target"][hits])
        paths = align(queries, targets, table.scoring, path_options)
        if (paths.columns["score"] != table.columns["score"][hits]).any():
            text = "a hit's path scores other than its scan: this is a bug"
            raise JaxalignError(text)
        parts.append(paths)
    paths = join(parts, {})
    seconds = sum(part.info["seconds"] for part in parts)
    info = table.info | {"align_seconds": seconds}
    info["seconds"] += seconds
    info["halved_launches"] += sum(part.info["halved_launches"] for part in parts)
    columns = paths.columns | {
        name: table.columns[name] for name in ("query", "target")
    }
    return replace(table, columns=columns, info=info, operations=paths.operations,
                   operation_offsets=paths.operation_offsets)  # fmt: skip


def _path_job(
    table: Table, query: np.ndarray
) -> tuple[Callable[..., Table], Sequences]:
    """Return the function of a job that aligns queries of a table, int (hits,), with a
    target each, and its queries: a ``zip`` job. The targets of a profile are one block,
    which the GPU kernels take; a list they do not."""
    if table.scoring.by_position and len(table.queries) == 1:
        return partial(jobs.run, "cross"), table.queries
    return pairs_table, table.queries.take(query)


def _blocks(table: Table, residues: int) -> list[np.ndarray]:
    """Rows in blocks of about as many residues."""
    m, n = table.lengths()
    block = np.cumsum(m + n) // residues
    return np.split(np.arange(len(table)), np.flatnonzero(np.diff(block)) + 1)


# ------------------------------------------------------------------------------
# Further alignments of a hit, as Waterman and Eggert define them (J. Mol. Biol.
# 197:723, 1987): each is the best local alignment that pairs no residues which an
# earlier one pairs.
#
# A path enters a cell by its diagonal if and only if it pairs the residues of the cell.
# So with D at minus infinity in the cells of earlier paths, Gotoh's recurrence runs
# over exactly the alignments that are left; gaps may cross an earlier path. Rows in
# NumPy fill such tables: what XLA compiles has no costs of cells, and is no faster for
# zipped pairs. Most hits have no further alignment that passes: scores precede paths,
# and a GPU computes those of many hits (``further_scores``).
#
# Not all columns of a long target are filled. Let U be the sum of the best scores of
# the residues of the query. An alignment that scores above 0 has k target residues in
# gaps, open + (k - 1) * extend < U (of costs by position, the least ones), and spans at
# most R = m + k columns. If it shares a column with an earlier path in columns [a, b),
# it lies in the window [a - R, b + R). Otherwise it lies between the columns of earlier
# paths, where no cell is forbidden and any implementation computes it.

SIDES = "query", "target"
FURTHER_EVALUE = 1.0  # one of a search by chance, in all hits together
FURTHER_RESIDUES = 2**23  # of hits whose paths are in memory residue by residue

Evalues = Callable[[np.ndarray, np.ndarray], np.ndarray]


def with_further(
    table: Table,
    options: SearchOptions,
    evalues: Evalues,
    max_evalue: float = FURTHER_EVALUE,
) -> tuple[Table, np.ndarray]:
    """Add the further alignments of each hit behind its best one.

    table : of local alignments with paths
    options : ``hsps`` is the largest number of alignments of a hit
    evalues : function of scores and of the hits that they are of, rows of ``table``
    max_evalue : of a further alignment, and of the one before
    Returns the table, and the hit of each of its rows, int64.
    """
    start, tables, hits = time.perf_counter(), [table], [np.arange(len(table))]
    passing = evalues(table["score"], hits[0]) <= max_evalue
    (_, n), reach = table.lengths(), _reach(table)
    for block in _blocks(table, FURTHER_RESIDUES):
        hit = block[passing[block]]
        latest, earlier = table.filter(hit), EarlierPaths.none(table, hit)
        spans: dict[int, list[tuple[int, int]]] = {k: [] for k in hit.tolist()}
        for _ in range(options.hsps - 1):
            if not len(hit):
                break
            earlier = earlier.and_those_of(latest, hit)
            ends = (latest[f"target_{end}"].tolist() for end in ("start", "end"))
            for k, *span in zip(hit.tolist(), *ends, strict=True):
                spans[k].append(tuple(span))
            sizes = reach[hit].tolist(), n[hit].tolist()
            windows = [
                (k, *window)
                for k, *size in zip(hit.tolist(), *sizes, strict=True)
                for window in _windows(spans[k], *size)
            ]
            latest, hit = _best(
                table, np.array(windows).T, earlier, options, evalues, max_evalue
            )
            tables.append(latest)
            hits.append(hit)
    hit = np.concatenate(hits)
    order, seconds = np.argsort(hit, kind="stable"), time.perf_counter() - start
    names = "seconds", "align_seconds"
    info = table.info | {name: table.info[name] + seconds for name in names}
    return join(tables, info).filter(order), hit[order]


class EarlierPaths(NamedTuple):
    """Paths of some hits, whose cells are forbidden.

    hit : int64 (hits,). Rows of a table, rising.
    start : int64 (hits,). Where the residues of the query of each begin.
    partners : int32 (paths, residues). Which residue of the target each of the query is
        paired with in each path; -1 where it is in none.
    """

    hit: np.ndarray
    start: np.ndarray
    partners: np.ndarray

    @classmethod
    def none(cls, table: Table, hit: np.ndarray) -> "EarlierPaths":
        """No paths of rows of a table."""
        ends = np.cumsum([0, *table.queries.lengths[table["query"][hit]]])
        return cls(hit, ends[:-1], np.zeros((0, ends[-1]), np.int32))

    def and_those_of(self, latest: Table, hit: np.ndarray) -> "EarlierPaths":
        """Add the paths of a table, of hits int64 (rows,)."""
        steps = steps_of(latest)
        pairs = steps.kind == M
        path = np.full(self.partners.shape[1], -1, np.int32)
        path[self.begins(hit)[steps.row[pairs]] + steps.query[pairs]] = steps.target[
            pairs
        ]
        return self._replace(partners=np.concatenate([self.partners, path[None]]))

    def begins(self, hit: np.ndarray) -> np.ndarray:
        """``start`` of some hits, int64."""
        return self.start[np.searchsorted(self.hit, hit)]

    def cells(self, table: Table, windows: np.ndarray) -> np.ndarray:
        """The cells in windows, int64 (3, cells): window, residue of the query, residue
        of the window."""
        hit, first, stop, _ = windows
        m = table.queries.lengths[table["query"][hit]]
        window, i = np.repeat(np.arange(len(hit)), m), ranks(m)
        j = self.partners[:, self.begins(hit)[window] + i] - first[window]
        path, cell = np.nonzero((j >= 0) & (j < (stop - first)[window]))
        return np.stack([window[cell], i[cell], j[path, cell]])


def _reach(table: Table) -> np.ndarray:
    """The most columns that an alignment of each hit spans, int64 (hits,)."""
    scoring, queries = table.scoring, table.queries
    used, of_hit = np.unique(table["query"], return_inverse=True)
    if scoring.by_position:
        sums = [scoring.scores.max(axis=1).clip(0).sum()] * len(used)
    else:
        sums = [scoring.best_scores(queries[k]).sum() for k in used.tolist()]
    opening, extending = scoring.open, scoring.extend
    if scoring.gap_costs is not None:
        *_, opening, extending = (int(x.min()) for x in scoring.gap_costs)
    room = (np.array(sums, np.int64) - opening)[of_hit]
    gaps = table.lengths()[1]
    if extending:
        gaps = np.maximum(room // extending + 1, 0)
    return queries.lengths[used][of_hit] + gaps


def _windows(
    spans: list[tuple[int, int]], reach: int, n: int
) -> list[tuple[int, int, bool]]:
    """List the windows of a target in which a further alignment of a hit may lie:
    (first column, end, whether cells are forbidden).

    spans : columns of the earlier paths
    reach : as of ``_reach``
    n : columns of the target
    """
    windows, free, last = [], [], 0
    for start, end in sorted(spans):
        first, stop = max(start - reach, 0), min(end + reach, n)
        if windows and first <= windows[-1][1]:
            windows[-1][1] = max(windows[-1][1], stop)
        else:
            windows.append([first, stop])
        free.append((last, start))
        last = max(last, end)
    free = [
        (a, b)
        for a, b in [*free, (last, n)]
        if a < b and not any(first <= a and b <= stop for first, stop in windows)
    ]
    return [(a, b, True) for a, b in windows] + [(a, b, False) for a, b in free]


def _best(
    table: Table,
    windows: np.ndarray,
    earlier: EarlierPaths,
    options: SearchOptions,
    evalues: Evalues,
    max_evalue: float,
) -> tuple[Table, np.ndarray]:
    """Find the best alignments in all windows of each hit that pass the bound.

    windows : int64 (4, windows), as of ``_windows``
    Returns them, and the hits.
    """
    scores, windows = _scores_in_windows(table, windows, earlier, options)
    hits, place = np.unique(windows[0], return_inverse=True)
    best = np.zeros(len(hits), scores.dtype)
    np.maximum.at(best, place, scores)
    passing = (best > 0) & (evalues(best, hits) <= max_evalue)
    passing = passing[place] & (scores == best[place])
    if not passing.any():
        return table.filter(np.zeros(0, np.int64)), np.zeros(0, np.int64)
    windows = windows[:, passing]
    paths, windows = _in_windows(table, windows, earlier, options, "alignment")
    hit, first, _, is_forbidden = windows
    columns = paths.columns | {name: table[name][hit] for name in ("query", "target")}
    for name in ("target_start", "target_end"):
        columns[name] = columns[name] + first.astype(np.int32)
    # Of equal ones the first end, as in one table; its path there is that of a window
    # with forbidden cells if it reaches into one.
    ends = columns["query_end"], columns["target_end"]
    order = np.lexsort((1 - is_forbidden, *ends[::-1], hit))
    order = order[begins(hit[order])]
    paths = replace(
        paths, columns=columns, queries=table.queries, targets=table.targets
    )
    return paths.filter(order), hit[order]


def _scores_in_windows(
    table: Table, windows: np.ndarray, earlier: EarlierPaths, options: SearchOptions
) -> tuple[np.ndarray, np.ndarray]:
    """Return the best score in each window, and the windows in the order of these."""
    on_gpu = np.zeros(windows.shape[1], bool)
    if (
        by_rows.may_have_gpu()
        and options.implementation is None
        and options.devices is None
    ):
        from jaxalign.database import further_scores

        hit, first, stop, is_forbidden = windows
        query, target = (table[side][hit].astype(np.int64) for side in SIDES)
        sizes = table.queries.lengths[query], stop - first
        largest = int(table["score"].max(initial=0))  # none is above the first
        taken = further_scores.taken(table.scoring, *sizes, largest)
        on_gpu = taken & (is_forbidden == 1)
    parts, in_order = [], [windows[:, ~on_gpu]]
    if not on_gpu.all():
        rows, in_order[0] = _in_windows(table, in_order[0], earlier, options, "score")
        parts.append(rows["score"].astype(np.int64))
    if on_gpu.any():
        places = [x[on_gpu] for x in (query, target, first, stop)]
        sides = table.queries, table.targets, table.scoring
        places += [earlier.partners, earlier.begins(hit[on_gpu])]
        of_gpu = further_scores.Windows._make(places)
        parts.append(further_scores.scores(*sides, of_gpu))
        in_order.append(windows[:, on_gpu])
    return np.concatenate(parts), np.concatenate(in_order, axis=1)


def _in_windows(
    table: Table,
    windows: np.ndarray,
    earlier: EarlierPaths,
    options: SearchOptions,
    output: Any,
) -> tuple[Table, np.ndarray]:
    """Align the query of each window with it. Returns the rows, and the windows in the
    order of the rows."""
    parts, in_order = [], []
    usual = replace(_path_options(options, table), output=output)
    rows_options = replace(usual, implementation="rows", devices=None, threads=1)
    for is_forbidden in (True, False):
        group = windows[:, windows[3] == is_forbidden]
        if group.shape[1] == 0:
            continue
        in_order.append(group)
        hit, first, stop, _ = group
        spans = table["target"][hit].tolist(), first.tolist(), stop.tolist()
        texts = [table.targets[k][a:b] for k, a, b in zip(*spans, strict=True)]
        targets = from_parts([""] * len(texts), texts, table.targets.alphabet)
        sides = table.queries.take(table["query"][hit]), targets, table.scoring
        if not is_forbidden:
            align, queries = _path_job(table, table["query"][hit])
            parts.append(align(queries, *sides[1:], usual))
            continue
        task = make_task("zip", *sides, rows_options)
        forbidden = earlier.cells(table, group)
        parts.append(engine.run(by_rows.plan_forbidding(task, forbidden)))
    return join(parts, {}), np.concatenate(in_order, axis=1)


def best_of_strands(
    table: Table, queries: Sequences, strands: Strands, top: int
) -> Table:
    """Select the best ``top`` rows of each query over all its strands: by score, then
    by the order of the database, then plus before minus."""
    if strands is None or len(strands) == 1:
        return table
    strand, query = np.divmod(table.columns["query"], max(len(queries), 1))
    keys = -table.columns["score"], table.columns["target"], strand
    return table.filter(best_rows(query, keys, top)[0])


def with_strands(table: Table, queries: Sequences, strands: Strands) -> Table:
    """Number the queries as the caller gave them (``model.table.along_plus``); ``info``
    says which strands were aligned."""
    if strands is None:
        return table
    which, query = np.divmod(table.columns["query"], max(len(queries), 1))
    columns = table.columns | {"query": query.astype(np.int32)}
    table = replace(table, columns=columns, info=table.info | {"strands": strands})
    return along_plus(table, queries, np.array(strands, np.int8)[which])
