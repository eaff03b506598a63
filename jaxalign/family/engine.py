"""The passes of an iterated search, one after the other, for some queries at once."""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from jaxalign.database import fitted, pieces
from jaxalign.database.fitted import Sample
from jaxalign.database.hits import aligned, rows, scan
from jaxalign.database.nearest_state import arrays_of_hits
from jaxalign.database.nearest_state import hits_of as hits_of_arrays
from jaxalign.database.options import pair_options
from jaxalign.database.pieces import Hits, no_hits, tell_after
from jaxalign.family import result
from jaxalign.family.options import search_options
from jaxalign.family.result import GAP, Columns, FamilyAlignment, PassSummary
from jaxalign.model import profile, statistics
from jaxalign.model.alphabet import Alphabet, Sequences, from_parts
from jaxalign.model.profile import FREQUENCIES, Profile, as_query
from jaxalign.model.scoring import Scoring
from jaxalign.model.statistics import Fit
from jaxalign.model.table import Table, compact
from jaxalign.options import FamilyOptions
from jaxalign.pairs.options import make_task
from jaxalign.pairs.plan import Arrays, SavedState, Task

# ------------------------------------------------------------------------------
# Less score for hits whose composition alone makes them score.
#
# HMMER's second null model (Eddy, HMMER User's Guide 3.4, "The biased composition score
# correction"): a random sequence with the composition that the aligned positions emit
# on average. With odds o_i(a) of letter a at position i, the positions A of a path, and
# its k residues between positions,
#
#     n(a) = (sum over i in A of o_i(a) + k) / (|A| + k),   bias = sum over x of ln n(x)
#
# over the residues x of the path. The prior of the second model is ``PRIOR``, so the
# score loses ln(1 + PRIOR exp(bias)) nats.

PRIOR = 1 / 256
RESIDUES = 20
STEPS = 60  # of bisection


def lost_score(hits: Columns, scores: np.ndarray, unit: float) -> np.ndarray:
    """Compute the score that each hit loses to its composition, float64 (hits,).

    scores : (m, letters). Of every position of the query; 1 is ``unit`` nats.
    """
    odds = np.exp(unit * scores[:, :RESIDUES])
    aligned = hits.codes != GAP
    inserted = hits.inserted.sum(1)
    total = aligned.sum(1) + inserted
    emitted = (aligned @ odds + inserted[:, None]) / np.maximum(total, 1)[:, None]
    counts = np.stack([(hits.codes == k).sum(1) for k in range(RESIDUES)], 1)
    counts = hits.inserted[:, :RESIDUES] + counts
    bias = (counts * np.log(np.maximum(emitted, 1e-300))).sum(1)
    return np.logaddexp(0, np.log(PRIOR) + bias) / unit


def unit_of(matrix: np.ndarray) -> float:
    """Find the nats of a score of 1: lambda with sum over a, b of P_a P_b exp(lambda s)
    = 1.

    matrix : (letters, letters). Of proteins, with a negative mean (Karlin and Altschul
        1990).
    """
    scores = matrix[:RESIDUES, :RESIDUES].astype(float)
    pairs = np.outer(FREQUENCIES, FREQUENCIES)
    low, high = 0.0, 1.0
    while (pairs * np.exp(high * scores)).sum() < 1:
        high *= 2
    for _ in range(STEPS):
        middle = (low + high) / 2
        above = (pairs * np.exp(middle * scores)).sum() > 1
        low, high = (low, middle) if above else (middle, high)
    return high


# ------------------------------------------------------------------------------
# Which rows of an alignment are kept, by the definitions of HH-suite's hhfilter.
#
# Remmert, Biegert, Hauser and Söding, Nature Methods 9:173 (2012); the options
# ``-cov``, ``-qid`` and ``-id``. Residues are the 20: X, B and Z are none here.

# Of two rows that are as alike as the bound says, hhfilter keeps both.
TOLERANCE = 1e-4


def filtered(
    query: np.ndarray,
    codes: np.ndarray,
    min_cov: float = 0.0,
    min_query_identity: float = 0.0,
    max_identity: float = 1.0,
) -> np.ndarray:
    """Select rows by coverage and identity: their numbers, int64, in their order.

    query : uint8 (m,)
    codes : int8 (rows, m). Of the residues at its positions.
    min_cov : ``-cov``: residues of a row over m.
    min_query_identity : ``-qid``: residues that are the query's over residues of the
        row.
    max_identity : ``-id``: of two rows, equal residues over positions at which both
        have one. The row with fewer residues goes, of rows with as many the later one;
        a row is compared with those that stay, the query is the first of them.
    """
    residues = (codes >= 0) & (codes < RESIDUES)
    count = residues.sum(1)
    equal = (residues & (codes == query.astype(np.int8))).sum(1)
    keep = (count >= min_cov * len(query)) & (count > 0)
    keep &= equal >= min_query_identity * count - TOLERANCE
    rows = np.flatnonzero(keep)
    if max_identity >= 1:
        return rows
    order = rows[np.argsort(-count[rows], kind="stable")]
    # Rows stay that differ enough from the query and all rows that stay before them.
    letters = np.where(codes[order] < RESIDUES, codes[order], -1).astype(np.int8)
    staying = np.empty((len(letters) + 1, len(query)), np.int8)
    staying[0] = np.where(query < RESIDUES, query.astype(np.int8), -1)
    size, stay = 1, np.zeros(len(letters), bool)
    for k, row in enumerate(letters):
        at = np.flatnonzero(row >= 0)
        compared = staying[:size, at]
        shared = (compared >= 0).sum(1)
        differing = shared - (compared == row[at]).sum(1)
        alike = (shared > 0) & (differing <= (1 - TOLERANCE - max_identity) * shared)
        if not alike.any():
            staying[size], stay[k] = row, True
            size += 1
    return np.sort(order[stay])


# ------------------------------------------------------------------------------
# From the aligned hits of a query to the profile that searches next.

PSEUDOCOUNTS = 10.0


def profile_of(
    name: str, query: np.ndarray, hits: np.ndarray, alphabet: Alphabet, unit: float
) -> Profile:
    """Compute the log-odds of the positions of a query.

    query : uint8 (m,). Its codes.
    hits : int8 (hits, m). Codes of the residues at its positions, ``GAP`` where there
        is none.
    unit : nats of a score of 1.
    """
    rows = np.vstack([query.astype(np.int8)[None], hits])
    letters = np.where(rows < RESIDUES, rows, profile.OTHER_CODE).astype(np.int8)
    letters[rows == GAP] = profile.GAP_CODE
    # ln(Q / P) of the residues (m, 20), as PSI-BLAST has it (``model.profile``); 0 at a
    # position without a residue.
    occupied = (letters >= 0).any(0)
    odds = np.zeros((len(query), RESIDUES))
    if occupied.any():
        share = profile.row_weights(letters, "henikoff")
        odds[occupied] = profile.log_odds_of(letters[:, occupied], share, PSEUDOCOUNTS)
    return Profile(name, profile.whole_scores(odds, unit), alphabet, unit)


# ------------------------------------------------------------------------------
# One pass: several queries against a database in blocks, and the hits of each.
#
# A query is a sequence with a matrix, or the consensus of a profile with the scores of
# its positions. A database of FASTA is read once a pass, whatever the number of
# queries.


class ScoredQuery(NamedTuple):
    """A query and its scoring; a score of 1 is ``unit`` nats."""

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
    """The source of the database, which every pass reads again.

    ``sequences`` where it is in memory or mapped; else ``read`` gives its blocks, and
    ``substituted[0]`` counts the letters of them that are read as the wildcard.
    """

    sequences: Sequences | None
    read: Callable[[], Iterator[Sequences]]
    substituted: list[int]

    def rounds(self) -> Iterator[list[Sequences]]:
        """Yield blocks that all queries meet before the next ones are read."""
        if self.sequences is not None:
            yield pieces.blocks_of(self.sequences)
            return
        for block in self.read():
            yield [block]


class PassHits(NamedTuple):
    """The hits of a query in one pass.

    table : from the smallest E-value, with paths, ``bits``, ``evalue`` and ``bias``,
        the score that the composition costs.
    records : int64 (hits,). Their numbers in the database.
    fit : lambda and K.
    fitted_to : ``database``, ``shuffled`` or ``none``.
    """

    table: Table
    columns: result.Columns
    records: np.ndarray
    fit: Fit
    fitted_to: str


def hits_of(
    queries: Sequence[ScoredQuery],
    source: Source,
    sample: fitted.Sample,
    options: FamilyOptions,
    report_progress: Callable[[int], object] | None = None,
    saved: SavedState | None = None,
) -> list[PassHits]:
    """Find the hits of each query with E-values up to ``options.largest_evalue``.

    sample : of the database; filled by the first pass
    report_progress : called with the cells so far
    saved : the state of a run that was interrupted, or may be: scores of all queries,
        and of a pass that is over the sample
    """
    search = search_options(options)
    scores, tasks = pair_options(search, "score"), []
    for query in queries:
        nothing = from_parts((), [], query.scoring.alphabet)
        task = make_task("cross", query.sequences, nothing, query.scoring, scores)
        tasks.append(replace(task, top=int(search.top)))
    keep, is_sampled = source.sequences is None, sample.seen > 0
    before = {} if saved is None else saved.all()
    scans = [_restored(before, k) if before else no_hits(1) for k in range(len(tasks))]

    def state() -> Arrays:
        """Return the hits so far as arrays."""
        arrays: Arrays = {}
        for k, hits in enumerate(scans):
            info = {
                "info": np.array(json.dumps(hits.info, default=lambda x: x.tolist()))
            }
            of_query = arrays_of_hits(hits, {}) | info
            arrays |= {f"{k}.{name}": array for name, array in of_query.items()}
        return arrays

    def save(_: Hits) -> None:
        if saved is not None:
            saved.put_if_due(state)

    cells, read = sum(hits.info["cells"] for hits in scans), 0
    if "seen" in before:  # the pass is over
        sample.restore(before)
        source.substituted[0] = int(before["substituted"])
    for blocks in source.rounds() if "seen" not in before else ():
        if not is_sampled:
            blocks = list(sample.watch(blocks))
        for task, hits in zip(tasks, scans, strict=True):
            cells_before = hits.info["cells"]
            report = tell_after(report_progress, cells)
            scan(task, _from(blocks, hits.sequences - read), keep, report, hits, save)
            cells += hits.info["cells"] - cells_before
        read += sum(map(len, blocks))
    if saved is not None and "seen" not in before:
        substituted = {"substituted": np.array(source.substituted[0])}
        saved.put(state() | sample.saved() | substituted, without=before)
    pairs = zip(queries, tasks, scans, strict=True)
    return [_hits(*pair, source.sequences, sample, options) for pair in pairs]


def _restored(arrays: Arrays, query: int) -> Hits:
    """The hits of a query in a state."""
    prefix = f"{query}."
    of_query = {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name.startswith(prefix)
    }
    hits, _ = hits_of_arrays(of_query)
    hits.info = json.loads(str(of_query["info"]))
    return hits


def _from(blocks: Iterable[Sequences], first: int) -> Iterator[Sequences]:
    """Yield blocks from a sequence on."""
    for block in blocks:
        if first <= 0:
            yield block
        elif first < len(block):
            yield block.between(first, len(block))
        first -= len(block)


def _hits(
    query: ScoredQuery,
    task: Task,
    scan: Hits,
    database: Sequences | None,
    sample: fitted.Sample,
    options: FamilyOptions,
) -> PassHits:
    """Compute E-values, align the hits that pass, and correct them for composition."""
    search = search_options(options)
    table = rows(task, scan, database)
    about = query.sequences, sample, query.scoring, pair_options(search, "score")
    fits = fitted.fits_scores(*about, scan.info["implementation"])
    fit = Fit(*(float(x[0]) for x in fits.values))
    space = len(query.sequences.codes), scan.residues
    fits_bound = _evalues(table["score"], space, fit) <= options.largest_evalue
    table = compact(table.filter(fits_bound))
    records = scan.index[scan.index >= 0][fits_bound]
    if len(table):
        table = aligned(table, search)
    else:  # no rows have no paths
        names = ("query_start", "query_end", "target_start", "target_end")
        spans = {name: np.zeros(0, np.int32) for name in names}
        paths = np.zeros(0, np.uint32), np.zeros(1, np.int64)
        table = replace(table, columns=table.columns | spans, operations=paths[0],
                        operation_offsets=paths[1])  # fmt: skip
    hits = result.columns(table, space[0])
    bias = np.zeros(len(table))
    if options.correct_composition and len(table):
        bias = lost_score(hits, query.position_scores, query.unit)
    score = table["score"] - bias
    columns = {"bits": statistics.fitted_bits(score, fit), "bias": bias}
    columns |= {"evalue": _evalues(score, space, fit)}
    table = replace(table, columns=table.columns | columns)
    order = np.lexsort((-score, columns["evalue"]))
    order = order[columns["evalue"][order] <= options.largest_evalue]
    hits = result.Columns(*(x[order] for x in hits))
    info = table.info | {"residues": scan.residues, "sequences": scan.sequences}
    table = replace(table.filter(order), info=info)
    return PassHits(table, hits, records[order], fit, str(fits.sources[0]))


def _evalues(score: np.ndarray, space: tuple[int, int], fit: Fit) -> np.ndarray:
    return statistics.fitted_evalues(score, *space, fit)


# Sequences of the database that lambda and K are fitted to: lambda is off by 1.7 %, and
# an E-value of 0.001 in 10^7 residues by a third.
SAMPLE = 2000


@dataclass
class Search:
    """One query on its way through the passes."""

    sequences: Sequences  # of one
    text: str  # its letters, as the alignment shows them
    query: ScoredQuery
    included: frozenset[str] = frozenset()
    profile: Profile | None = None
    hits: PassHits | None = None
    summaries: list[PassSummary] = field(default_factory=list)
    converged: bool = False

    @property
    def codes(self) -> np.ndarray:
        return self.sequences.codes


def run(
    queries: Sequences,
    source: Source,
    scoring: Scoring,
    options: FamilyOptions,
    texts: Sequence[str] | None = None,
    saved: SavedState | None = None,
) -> list[Search]:
    """Search with each query, pass after pass; ``texts`` are the letters of the
    queries, some of which may be encoded as others.

    saved : the state of a run that was interrupted, or may be
    """
    unit = unit_of(scoring.scores)
    sample, cells = Sample(SAMPLE), _Cells(options, queries, source)
    searches = []
    for k, text in enumerate(queries.texts() if texts is None else texts):
        query, text = queries.between(k, k + 1), result.letters_of(text)
        searches.append(Search(query, text, ScoredQuery(query, scoring, unit)))
    for number in range(options.iterations):
        running = [search for search in searches if not search.converged]
        if not running:
            break
        start, models = time.perf_counter(), [search.query for search in running]
        state = None if saved is None else saved.part(f"pass{number}")
        results = hits_of(models, source, sample, options, cells.teller(), state)
        seconds = (time.perf_counter() - start) / len(running)
        for search, hits in zip(running, results, strict=True):
            _advance(search, hits, scoring, options, seconds)
    return searches


def _advance(
    search: Search,
    hits: PassHits,
    scoring: Scoring,
    options: FamilyOptions,
    seconds: float,
) -> None:
    """Take the hits of a pass, and make the profile of the next one."""
    covered = (hits.columns.codes != GAP).mean(1)
    fits = hits.table["evalue"] <= options.include
    which = np.flatnonzero(fits & (covered >= options.include_cov))
    rows = hits.table["target"][which].tolist()
    names = frozenset(hits.table.targets.names[k] for k in rows)
    search.converged = names == search.included
    new_count = len(names - search.included)
    search.hits, search.included = hits, names
    reported = int((hits.table["evalue"] <= options.max_evalue).sum())
    lambda_, k = hits.fit
    counts = reported, len(names), new_count
    search.summaries.append(PassSummary(*counts, lambda_, k, hits.fitted_to, seconds))
    name, unit = search.sequences.names[0], search.query.unit
    about = name, search.codes, hits.columns.codes[which], scoring.alphabet, unit
    search.profile = profile_of(*about)
    sequences, scored = as_query(search.profile, scoring)
    search.query = ScoredQuery(sequences, scored, unit)


def rows_of(search: Search, options: FamilyOptions) -> np.ndarray:
    """Filter the hits of the last pass: int64 (rows,), numbers of hits."""
    hits = search.hits
    assert hits is not None
    reported = np.flatnonzero(hits.table["evalue"] <= options.max_evalue)
    passing = filtered(
        search.codes,
        hits.columns.codes[reported],
        options.min_cov,
        options.min_query_identity,
        options.max_identity,
    )
    return reported[passing]


def alignment_of(
    search: Search, rows: np.ndarray, source: Source, options: FamilyOptions
) -> FamilyAlignment:
    """Make the alignment of some hits of the last pass.

    rows : of ``rows_of``
    """
    hits, profile = search.hits, search.profile
    assert hits is not None and profile is not None
    query = search.codes.astype(np.int8)[None]
    table = hits.table.filter(rows)
    info = table.info | {"substituted": source.substituted[0]}
    return FamilyAlignment(
        search.sequences.names[0],
        search.text,
        replace(table, info=info, cuts=(options.max_evalue, options.include)),
        np.vstack([query, hits.columns.codes[rows]]),
        profile,
        tuple(search.summaries),
        search.converged,
    )


class _Cells:
    """Report cells over all passes; the total assumes that no query converges early."""

    def __init__(self, options: FamilyOptions, queries: Sequences, source: Source):
        self.progress, self.before, self.last = options.progress, 0, 0
        self.total = None
        if source.sequences is not None:
            cells = int(queries.lengths.sum()) * int(source.sequences.lengths.sum())
            self.total = cells * options.iterations

    def teller(self) -> Callable[[int], object] | None:
        self.before += self.last
        self.last = 0
        progress = self.progress
        return None if progress is None else partial(self._tell, progress)

    def _tell(self, progress: Callable[[int, int | None], object], cells: int) -> None:
        self.last = cells
        progress(self.before + cells, self.total)
