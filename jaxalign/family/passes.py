"""One pass: several queries against a database in blocks, and the hits of each.

A query is a sequence with a matrix, or the consensus of a profile with the scores of
its positions. A database of FASTA is read once a pass, whatever the number of queries.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from jaxalign.database import fitted, hit_list, hit_tables
from jaxalign.database.hit_list import Hits
from jaxalign.database.options import SearchOptions, pair_options
from jaxalign.family import aligned_rows, composition
from jaxalign.family.options import FamilyOptions, search_options
from jaxalign.model import fitted_statistics
from jaxalign.model.alphabet import Sequences, from_parts
from jaxalign.model.fitted_statistics import Fit
from jaxalign.model.scoring import Scoring
from jaxalign.model.table import Table, compact
from jaxalign.pairs.options import make_task
from jaxalign.pairs.plan import Task, merge


class ScoredQuery(NamedTuple):
    """A set of one sequence, and what scores it; 1 of the scores is ``unit`` nats."""

    sequences: Sequences
    scoring: Scoring
    unit: float

    @property
    def position_scores(self) -> np.ndarray:
        """(m, letters)."""
        scores = self.scoring.scores / self.scoring.scale
        if self.scoring.by_position:
            return scores
        return scores[self.sequences.codes.astype(np.intp)]


@dataclass(frozen=True, eq=False)
class Source:
    """Where the database comes from, every time it is read.

    ``sequences`` where it is in memory or mapped; else ``read`` gives its blocks, and
    ``substituted[0]`` counts the letters of them that are read as the wildcard.
    """

    sequences: Sequences | None
    read: Callable[[], Iterator[Sequences]]
    substituted: list[int]

    def rounds(self) -> Iterator[list[Sequences]]:
        """Blocks that all queries meet before the next ones are read."""
        if self.sequences is not None:
            yield hit_list.blocks_of(self.sequences)
            return
        for block in self.read():
            yield [block]


class PassHits(NamedTuple):
    """The hits of a query in one pass.

    Attributes
    ----------
    table : Table
        From the smallest E-value, with paths, ``bits``, ``evalue`` and ``bias``, the
        score that the composition costs.
    columns : Columns
    fit : Fit
        Lambda and K.
    fitted_to : str
        ``database``, ``shuffled`` or ``none``.
    """

    table: Table
    columns: aligned_rows.Columns
    fit: Fit
    fitted_to: str


def hits_of(
    queries: Sequence[ScoredQuery],
    source: Source,
    sample: fitted.Sample,
    options: FamilyOptions,
    tell: Callable[[int], object] | None = None,
) -> list[PassHits]:
    """The hits of each query with E-values up to ``options.largest_evalue``.

    sample : of the database; filled by the first pass
    tell : called with the cells so far
    """
    search = search_options(options)
    tasks = [_task(query, search) for query in queries]
    scans = _scan(tasks, int(search.top), source, sample, tell)
    pairs = zip(queries, tasks, scans, strict=True)
    return [_hits(*pair, source.sequences, sample, options) for pair in pairs]


def _task(query: ScoredQuery, search: SearchOptions) -> Task:
    nothing = from_parts((), [], query.scoring.alphabet)
    scan = pair_options(search, "score")
    task = make_task("cross", query.sequences, nothing, query.scoring, scan)
    return replace(task, top=int(search.top))


def _scan(
    tasks: list[Task],
    top: int,
    source: Source,
    sample: fitted.Sample,
    tell: Callable[[int], object] | None,
) -> list[Hits]:
    """The best ``top`` hits of each task in the whole database."""
    keep, known = source.sequences is None, sample.seen > 0
    scans, cells = [_no_hits() for _ in tasks], 0
    for blocks in source.rounds():
        if not known:
            blocks = list(sample.watch(blocks))
        for k, task in enumerate(tasks):
            tells = tell and _Teller(tell, cells)
            hits = hit_tables.scan(task, iter(blocks), keep, tells)
            scans[k] = _joined(scans[k], hits, top)
            cells += hits.info["cells"]
    return scans


def _no_hits() -> Hits:
    """Of one query."""
    return Hits(np.zeros((1, 0), np.int64), np.zeros((1, 0), np.int64))


class _Teller(NamedTuple):
    """Tells of cells behind those that are done."""

    tell: Callable[[int], object]
    before: int

    def __call__(self, cells: int) -> None:
        self.tell(self.before + cells)


def _joined(first: Hits, second: Hits, top: int) -> Hits:
    """The best of two parts of a database; equal scores in its order."""
    later = second.index.astype(np.int64)
    later = np.where(later == hit_list.NO_HIT, later, later + first.sequences)
    index = np.concatenate([first.index, later], axis=1)
    score = np.concatenate([first.score, second.score.astype(np.int64)], axis=1)
    order = np.lexsort((index, -score, index == hit_list.NO_HIT), axis=1)[:, :top]
    index, score = (np.take_along_axis(x, order, axis=1) for x in (index, score))
    records = {k + first.sequences: record for k, record in second.records.items()}
    best = set(index[0].tolist())
    records = {k: x for k, x in (first.records | records).items() if k in best}
    known = first.info["implementation"]
    return Hits(
        score,
        index,
        first.residues + second.residues,
        first.sequences + second.sequences,
        records,
        merge([first.info, second.info]) if known else second.info,
    )


def _hits(
    query: ScoredQuery,
    task: Task,
    scan: Hits,
    database: Sequences | None,
    sample: fitted.Sample,
    options: FamilyOptions,
) -> PassHits:
    """E-values, then the paths of what they leave, then what composition leaves."""
    search = search_options(options)
    table = hit_tables.rows(task, scan, database)
    about = query.sequences, sample, query.scoring, pair_options(search, "score")
    fits = fitted.fits(*about, scan.info["implementation"])
    fit = Fit(*(float(x[0]) for x in fits.values))
    space = len(query.sequences.codes), scan.residues
    evalues = _evalues(table["score"], space, fit)
    table = compact(table.filter(evalues <= options.largest_evalue))
    table = hit_tables.aligned(table, search) if len(table) else _no_paths(table)
    hits = aligned_rows.columns(table, space[0])
    bias = np.zeros(len(table))
    if options.correct_composition and len(table):
        bias = composition.lost_score(hits, query.position_scores, query.unit)
    score = table["score"] - bias
    more = {"bits": fitted_statistics.bits(score, fit), "bias": bias}
    more |= {"evalue": _evalues(score, space, fit)}
    table = replace(table, columns=table.columns | more)
    order = np.lexsort((-score, more["evalue"]))
    order = order[more["evalue"][order] <= options.largest_evalue]
    hits = aligned_rows.Columns(*(x[order] for x in hits))
    info = table.info | {"residues": scan.residues, "sequences": scan.sequences}
    table = replace(table.filter(order), info=info)
    return PassHits(table, hits, fit, str(fits.sources[0]))


def _evalues(score: np.ndarray, space: tuple[int, int], fit: Fit) -> np.ndarray:
    return fitted_statistics.evalues(score, *space, fit)


def _no_paths(table: Table) -> Table:
    """A table without rows, as one with paths."""
    names = ("query_start", "query_end", "target_start", "target_end")
    empty = {name: np.zeros(0, np.int32) for name in names}
    paths = np.zeros(0, np.uint32), np.zeros(1, np.int64)
    return replace(table, columns=table.columns | empty, operations=paths[0],
                   operation_offsets=paths[1])  # fmt: skip
