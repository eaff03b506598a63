"""The passes of an iterated search, one after the other, for some queries at once."""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from jaxalign.database import fitted, pieces
from jaxalign.database.fitted import Sample
from jaxalign.database.hits import aligned, rows, scan, with_further
from jaxalign.database.nearest_state import arrays_of_hits
from jaxalign.database.nearest_state import hits_of as hits_of_arrays
from jaxalign.database.options import pair_options
from jaxalign.database.pieces import Hits, no_hits, tell_after
from jaxalign.errors import UsageError
from jaxalign.family import result
from jaxalign.family.options import search_options
from jaxalign.family.result import GAP, Columns, FamilyAlignment, PassSummary
from jaxalign.model import profile, statistics
from jaxalign.model.alphabet import NUCLEIC, Alphabet, Sequences, from_parts, ranks
from jaxalign.model.profile import FREQUENCIES, Profile, as_query
from jaxalign.model.scoring import Scoring
from jaxalign.model.statistics import Fit
from jaxalign.model.strands import (
    MINUS,
    PLUS,
    complement_codes,
    nucleic_kind,
    reverse_complement,
)
from jaxalign.model.table import Table, compact
from jaxalign.options import FamilyOptions
from jaxalign.pairs.by_rows import may_have_gpu
from jaxalign.pairs.options import make_task
from jaxalign.pairs.pair_matrix import WholeJob
from jaxalign.pairs.plan import Arrays, SavedState, Task, merge
from jaxalign.runtime.devices import parts_budget
from jaxalign.runtime.pipeline import in_advance, in_threads

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
STEPS = 60  # of bisection


def lost_score(
    hits: Columns, scores: np.ndarray, unit: float, residues: int = 20
) -> np.ndarray:
    """Compute the score that each hit loses to its composition, float64 (hits,).

    scores : (m, letters). Of every position of the query; 1 is ``unit`` nats.
    residues : how many letters count, the first ones
    """
    odds = np.exp(unit * scores[:, :residues])
    aligned = hits.codes != GAP
    inserted = hits.inserted.sum(1)
    total = aligned.sum(1) + inserted
    emitted = (aligned @ odds + inserted[:, None]) / np.maximum(total, 1)[:, None]
    size = hits.inserted.shape[1] + 1  # that of a gap, -1, comes first
    place = np.arange(len(total))[:, None] * size + 1 + hits.codes
    counts = np.bincount(place.ravel(), minlength=len(total) * size)
    counts = counts.reshape(-1, size)[:, 1 : residues + 1]
    counts = hits.inserted[:, :residues] + counts
    bias = (counts * np.log(np.maximum(emitted, 1e-300))).sum(1)
    return np.logaddexp(0, np.log(PRIOR) + bias) / unit


def unit_of(matrix: np.ndarray, frequencies: np.ndarray = FREQUENCIES) -> float:
    """Find the nats of a score of 1: lambda with sum over a, b of P_a P_b exp(lambda s)
    = 1 (Karlin and Altschul 1990).

    matrix : (letters, letters)
    frequencies : (residues,). P, of the first letters.

    Raises UsageError: the mean score by chance is not negative, or none is positive
    """
    scores = matrix[: len(frequencies), : len(frequencies)].astype(float)
    pairs = np.outer(frequencies, frequencies)
    if (mean := (pairs * scores).sum()) >= 0 or scores.max() <= 0:
        raise UsageError(
            f"the mean score of two random letters is {mean:.3g}, the largest score "
            f"{scores.max():g}: a local search needs a mean below 0, and a score above"
        )
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
# ``-cov``, ``-qid`` and ``-id``. X, B and Z are no residues here, nor N, R and so on of
# nucleotides.

# Of two rows that are as alike as the bound says, hhfilter keeps both.
TOLERANCE = 1e-4


def filtered(
    query: np.ndarray,
    codes: np.ndarray,
    min_cov: float = 0.0,
    min_query_identity: float = 0.0,
    max_identity: float = 1.0,
    residues: int = 20,
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
    residues : how many codes are residues, the first ones.
    """
    present = (codes >= 0) & (codes < residues)
    count = present.sum(1)
    equal = (present & (codes == query.astype(np.int8))).sum(1)
    keep = (count >= min_cov * len(query)) & (count > 0)
    keep &= equal >= min_query_identity * count - TOLERANCE
    rows = np.flatnonzero(keep)
    if max_identity >= 1:
        return rows
    order = rows[np.argsort(-count[rows], kind="stable")]
    # Rows stay that differ enough from the query and all rows that stay before them.
    letters = np.where(codes[order] < residues, codes[order], -1).astype(np.int8)
    staying = np.empty((len(letters) + 1, len(query)), np.int8)
    staying[0] = np.where(query < residues, query.astype(np.int8), -1)
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
    residues, prior = alphabet.residues, profile.prior_of(alphabet)
    letters = np.where(rows < residues, rows, profile.OTHER_CODE).astype(np.int8)
    letters[rows == GAP] = profile.GAP_CODE
    # ln(Q / P) of the residues (m, residues), as PSI-BLAST has it (``model.profile``);
    # 0 at a position without a residue.
    occupied = (letters >= 0).any(0)
    odds = np.zeros((len(query), residues))
    if occupied.any():
        share = profile.row_weights(letters, "henikoff")
        about = letters[:, occupied], share, prior.pseudocounts, prior
        odds[occupied] = profile.log_odds_of(*about)
    return Profile(name, profile.whole_scores(odds, unit, alphabet), alphabet, unit)


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

    def minus(self) -> "ScoredQuery":
        """The minus strand, by its positions: of any matrix a sequence scores as the
        reverse complement of it does with this strand."""
        alphabet = self.scoring.alphabet
        scores = self.position_scores[::-1, complement_codes(alphabet)]
        turned = Profile(self.sequences.names[0], scores, alphabet, self.unit)
        return ScoredQuery(*as_query(turned, self.scoring), self.unit)


@dataclass(frozen=True, eq=False)
class Source:
    """The source of the database, which every pass reads again.

    ``sequences`` where it is in memory or mapped; else ``read`` gives its blocks, and
    ``substituted[0]`` counts the letters of them that are read as the wildcard.
    ``strands`` are those that are searched, 1 and -1; of proteins there is one.
    ``window`` is the length at which sequences of nucleotides are cut.
    """

    sequences: Sequences | None
    read: Callable[[], Iterator[Sequences]]
    substituted: list[int]
    strands: tuple[int, ...] = (PLUS,)
    window: int | None = None

    @cached_property
    def whole(self) -> Sequences | None:
        """The database in memory, if none of its sequences is cut into windows."""
        if self.sequences is None or self.window is None:
            return self.sequences
        is_cut = int(self.sequences.lengths.max(initial=0)) > self.window
        return None if is_cut else self.sequences

    def rounds(self) -> Iterator[list[Sequences]]:
        """Yield blocks that all queries meet before the next ones are read."""
        if self.whole is not None:
            yield pieces.blocks_of(self.whole)
            return
        stored = self.sequences
        for block in self.read() if stored is None else pieces.blocks_of(stored):
            yield [block if self.window is None else windows_of(block, self.window)]


# A long sequence of nucleotides is cut into windows, each of which has its own hit. A
# window is 16 to 32 times as long as the longest query, and an eighth of it is in the
# next one, too: a hit has room for as many insertions as the query has letters.
WINDOW, OVERLAP = 16, 8
SAMPLED = 1024  # letters of a window, or an eighth, that lambda and K are fitted to
CUT = "\0"  # between the name of a sequence and the place of a window in it


def window_of(queries: Sequences) -> int:
    """The length of windows for some queries, a power of 2."""
    longest = max(int(queries.lengths.max(initial=1)), 1)
    return WINDOW * 2 ** (longest - 1).bit_length()


def windows_of(sequences: Sequences, length: int) -> Sequences:
    """Cut sequences that are longer than a window; a name then ends in the place of the
    window, but the first's."""
    step = length - length // OVERLAP
    counts = np.maximum(-(-(sequences.lengths - length) // step) + 1, 1)
    if (counts == 1).all():
        return sequences
    record, start = np.repeat(np.arange(len(counts)), counts), ranks(counts) * step
    first = sequences.starts[record] + start
    last = np.minimum(first + length, sequences.offsets[record + 1])
    places = zip(record.tolist(), start.tolist(), strict=True)
    names = [sequences.names[k] + (f"{CUT}{x}" if x else "") for k, x in places]
    ends = zip(first.tolist(), last.tolist(), strict=True)
    parts = [sequences.codes[a:b] for a, b in ends]
    return from_parts(names, parts, sequences.alphabet)


class PassHits(NamedTuple):
    """The hits of a query in one pass.

    table : from the smallest E-value, with paths, ``bits``, ``evalue`` and ``bias``,
        the score that the composition costs. A target of the minus strand is its
        reverse complement.
    records : int64 (hits,). Their numbers in the database.
    spans : int64 (hits, 2). First and last letter in the sequence of the database, from
        1; first > last on the minus strand.
    fit : lambda and K.
    fitted_to : ``database``, ``shuffled`` or ``none``.
    """

    table: Table
    columns: result.Columns
    records: np.ndarray
    spans: np.ndarray
    fit: Fit
    fitted_to: str


class QueryScan(NamedTuple):
    """The scan of one query: hits of each strand whose scores have E-values up to
    ``options.largest_evalue``, before they are aligned."""

    hits: tuple[Hits, ...]
    fit: Fit
    fitted_to: str

    def arrays(self, prefix: str) -> Arrays:
        """Return it as arrays, for a state."""
        arrays = {"fit": np.array(self.fit), "fitted_to": np.array(self.fitted_to)}
        for k, hits in enumerate(self.hits):
            arrays |= _arrays(hits, f"{k}.")
        return {prefix + name: array for name, array in arrays.items()}


def scans_of(
    queries: Mapping[int, ScoredQuery],
    batch: Sequences,
    source: Source,
    sample: fitted.Sample,
    options: FamilyOptions,
    report_progress: Callable[[int], object] | None = None,
    saved: SavedState | None = None,
) -> dict[int, QueryScan]:
    """Scan the database for queries, by their numbers in the run.

    Queries of one scoring, as in a first pass, are one job.

    batch : all queries that the passes began with
    sample : of the database; filled by the first pass
    report_progress : called with the cells so far
    saved : the state of a run that was interrupted, or may be: scores of all queries,
        and of a pass that is over the scan of each, and the sample
    """
    before, strands = {} if saved is None else saved.all(), source.strands
    if "seen" in before:  # the pass is over
        sample.restore(before)
        source.substituted[0] = int(before["substituted"])
        return {k: _restored_scan(before, f"{k}.", len(strands)) for k in queries}
    by_strand = {
        (k, sign): query.minus() if sign == MINUS else query
        for k, query in queries.items()
        for sign in strands
    }
    search = search_options(options)
    scores, tasks = pair_options(search, "score"), []
    keys: list[list[tuple[int, int]]] = []
    for of_task, together, scoring in _by_scoring(by_strand):
        together.codes.flags.writeable = False
        nothing = from_parts((), [], together.alphabet)
        task = make_task("cross", together, nothing, scoring, scores)
        keys.append(of_task)
        tasks.append(replace(task, top=int(search.top)))
    scans = [
        _restored(before, f"scan{k}.") if before else no_hits(task.shape[0])
        for k, task in enumerate(tasks)
    ]

    def state() -> Arrays:
        """Return the hits so far as arrays."""
        each = (_arrays(hits, f"scan{k}.") for k, hits in enumerate(scans))
        return {name: array for arrays in each for name, array in arrays.items()}

    def save(_: Hits) -> None:
        if saved is not None:
            saved.put_if_due(state)

    keep, is_sampled = source.whole is None, sample.seen > 0
    cells, read = sum(hits.info["cells"] for hits in scans), 0
    rounds, at_once, fits = source.rounds(), 1, None
    keeps: list[Any] = [keep] * len(tasks)
    if may_have_gpu() and len(tasks) > 1:
        at_once, rounds = SCANS_AT_ONCE, map(_on_gpu, chain.from_iterable(rounds))
        if is_sampled and sample.scan:  # only hits that may be reported have records
            fits = _fits(queries, sample, scores, at_once)
            for number, of_task in enumerate(keys if keep else ()):
                about = [
                    (fits[k][0], len(queries[k].sequences.codes)) for k, _ in of_task
                ]
                keeps[number] = partial(_may_pass, about, options.largest_evalue)
    for blocks in rounds:
        if not is_sampled:
            blocks = list(sample.watch(blocks))
        whole = _whole_of(batch, blocks)
        if at_once > 1:
            scan_task = partial(_scan_task, blocks, read)
            in_threads(scan_task, zip(tasks, scans, keeps, strict=True), at_once)
            cells = sum(hits.info["cells"] for hits in scans)
            if report_progress is not None:
                report_progress(cells)
            save(scans[-1])
        for task, hits in zip(tasks, scans, strict=True) if at_once == 1 else ():
            task, cells_before = replace(task, whole=whole), hits.info["cells"]
            report = tell_after(report_progress, cells)
            scan(task, _from(blocks, hits.sequences - read), keep, report, hits, save)
            cells += hits.info["cells"] - cells_before
        read += sum(map(len, blocks))
    places = {
        key: (hits, row)
        for of_task, hits in zip(keys, scans, strict=True)
        for row, key in enumerate(of_task)
    }
    if fits is None:
        sample.scan = scans[0].info["implementation"]
        fits = _fits(queries, sample, scores, at_once)
    query_scans = {}
    for k, (fit, fitted_to) in fits.items():
        each, of_strands = [places[k, sign] for sign in strands], []
        m = len(queries[k].sequences.codes)
        space = m, sum(hits.residues for hits, _ in each)
        for hits, row in each:
            filled = hits.index[row] >= 0
            score, index = hits.score[row, filled], hits.index[row, filled]
            passing = _evalues(score, space, fit) <= options.largest_evalue
            score, index = score[passing], index[passing]
            records = {i: hits.records[i] for i in index.tolist() if keep}
            counts = {"pairs": hits.sequences, "cells": m * hits.residues}
            about = hits.residues, hits.sequences, records, hits.info | counts
            of_strands.append(Hits(score[None], index[None], *about))
        query_scans[k] = QueryScan(tuple(of_strands), fit, fitted_to)
    if saved is not None:
        arrays = sample.saved() | {"substituted": np.array(source.substituted[0])}
        for k, query_scan in query_scans.items():
            arrays |= query_scan.arrays(f"{k}.")
        saved.put(arrays, without=before)
    return query_scans


def _on_gpu(block: Sequences) -> list[Sequences]:
    """A round of one block, which stays on a GPU (``pairs.gpu.device_job``) until all
    queries have met it."""
    block.codes.flags.writeable = False
    return [block]


def _scan_task(
    blocks: Sequence[Sequences], read: int, scanned: tuple[Task, Hits, Any]
) -> None:
    """Scan some blocks, which come after ``read`` sequences, for one task; the last of
    ``scanned`` is ``keep`` of ``scan``."""
    task, hits, keep = scanned
    scan(task, _from(blocks, hits.sequences - read), keep, hits=hits)


def _fits(
    queries: Mapping[int, ScoredQuery], sample: Sample, options: Any, threads: int
) -> dict[int, tuple[Fit, str]]:
    """Fit lambda and K of each query; return them with what they are fitted to."""
    groups = list(_by_scoring(queries))

    def fits_of(group: tuple[list[Any], Sequences, Scoring]) -> fitted.Fits:
        _, together, scoring = group
        return fitted.fits_scores(together, sample, scoring, options, sample.scan)

    each = in_threads(fits_of, groups, threads)
    return {
        k: (Fit(*(float(x[place]) for x in fits.values)), str(fits.sources[place]))
        for (numbers, *_), fits in zip(groups, each, strict=True)
        for place, k in enumerate(numbers)
    }


def _may_pass(
    queries: Sequence[tuple[Fit, int]], largest: float, hits: Hits
) -> np.ndarray:
    """Whether hits so far may have E-values up to ``largest`` when all is read, which
    more residues raise.

    queries : fit and length of each
    """
    passing = hits.index >= 0
    for mask, score, (fit, m) in zip(passing, hits.score, queries, strict=True):
        mask[mask] = _evalues(score[mask], (m, hits.residues), fit) <= largest
    return passing


def _by_scoring(
    queries: Mapping[Any, ScoredQuery],
) -> Iterator[tuple[list[Any], Sequences, Scoring]]:
    """Group queries that share a scoring: their keys, their sequences, and it."""
    groups: dict[int, list[Any]] = {}
    for key, query in queries.items():
        groups.setdefault(id(query.scoring), []).append(key)
    for keys in groups.values():
        sets, scorings = zip(*(queries[key][:2] for key in keys), strict=True)
        names, codes = [x.names[0] for x in sets], [x.codes for x in sets]
        yield keys, from_parts(names, codes, sets[0].alphabet), scorings[0]


def _whole_of(batch: Sequences, blocks: Sequence[Sequences]) -> WholeJob | None:
    """Return sizes that the jobs of all passes share: together they are worth programs
    that no single one is. None of a single query, and on a GPU, whose programs take any
    size."""
    if len(batch) < 2 or may_have_gpu():
        return None
    longest = max((int(block.lengths.max(initial=0)) for block in blocks), default=0)
    cells = len(batch.codes) * sum(len(block.codes) for block in blocks)
    sizes = (max(map(f, blocks), default=0) for f in (len, lambda x: len(x.codes)))
    return WholeJob((int(batch.lengths.max()), longest), cells, *sizes)


def _arrays(hits: Hits, prefix: str) -> Arrays:
    info = np.array(json.dumps(hits.info, default=lambda x: x.tolist()))
    arrays = arrays_of_hits(hits, {}) | {"info": info}
    return {prefix + name: array for name, array in arrays.items()}


def _restored(arrays: Arrays, prefix: str) -> Hits:
    """The hits of a state."""
    names = _arrays(no_hits(1), "")
    hits, _ = hits_of_arrays({name: arrays[prefix + name] for name in names})
    hits.info = json.loads(str(arrays[f"{prefix}info"]))
    return hits


def _restored_scan(arrays: Arrays, prefix: str, strands: int) -> QueryScan:
    fit = Fit(*arrays[f"{prefix}fit"].tolist())
    hits = tuple(_restored(arrays, f"{prefix}{k}.") for k in range(strands))
    return QueryScan(hits, fit, str(arrays[f"{prefix}fitted_to"]))


def _from(blocks: Iterable[Sequences], first: int) -> Iterator[Sequences]:
    """Yield blocks from a sequence on."""
    for block in blocks:
        if first <= 0:
            yield block
        elif first < len(block):
            yield block.between(first, len(block))
        first -= len(block)


def hits_of(
    query: ScoredQuery, query_scan: QueryScan, source: Source, options: FamilyOptions
) -> PassHits:
    """Align the hits of a scan, correct them for composition, and compute E-values."""
    search, alphabet = search_options(options), query.scoring.alphabet
    scans, fit, fitted_to = query_scan
    space = len(query.sequences.codes), sum(scan.residues for scan in scans)
    about = query.sequences, query.sequences, query.scoring
    task = make_task("cross", *about, pair_options(search, "score"))
    tables = [compact(rows(task, hits, source.whole)) for hits in scans]
    records = np.concatenate([hits.index[0] for hits in scans])
    strand = np.repeat(source.strands, [len(table) for table in tables])
    table, seen = tables[0], scans[0]
    if alphabet.kind in NUCLEIC:
        # The strands that are aligned, in letters of the query's alphabet.
        sets = [
            reverse_complement(x.targets) if sign == MINUS else x.targets
            for sign, x in zip(source.strands, tables, strict=True)
        ]
        names = [name for x in sets for name in x.names]
        parts = [x[k] for x in sets for k in range(len(x))]
        targets = from_parts(names, parts, alphabet)
        first = np.cumsum([0, *map(len, sets)]).astype(np.int32)
        columns = {"target": [x["target"] + k for x, k in zip(tables, first)]}  # noqa: B905
        columns |= {x: [y[x] for y in tables] for x in ("query", "score")}
        columns = {name: np.concatenate(x) for name, x in columns.items()}
        ran = [x.info for x in scans if x.info["implementation"]]
        info = merge(ran) if ran else table.info
        table = replace(table, columns=columns, targets=targets, info=info,
                        queries=query.sequences, scoring=query.scoring)  # fmt: skip
        best = np.argsort(-table["score"], kind="stable")[: options.max_sequences]
        table, records, strand = table.filter(best), records[best], strand[best]
    if len(table):
        table, hit = with_further(
            aligned(table, search),
            search,
            lambda score, _: _evalues(score, space, fit),
            options.largest_evalue,
        )
        records, strand = records[hit], strand[hit]
    else:  # no rows have no paths
        names = ("query_start", "query_end", "target_start", "target_end")
        spans = {name: np.zeros(0, np.int32) for name in names}
        paths = np.zeros(0, np.uint32), np.zeros(1, np.int64)
        table = replace(table, columns=table.columns | spans, operations=paths[0],
                        operation_offsets=paths[1])  # fmt: skip
    hits = result.columns(table, space[0])
    bias = np.zeros(len(table))
    if options.correct_composition and len(table):
        about = query.position_scores, query.unit, alphabet.residues
        bias = lost_score(hits, *about)
    score = table["score"] - bias
    columns = {"bits": statistics.fitted_bits(score, fit), "bias": bias}
    columns |= {"evalue": _evalues(score, space, fit)}
    table = replace(table, columns=table.columns | columns)
    order = np.lexsort((-score, columns["evalue"]))
    order = order[columns["evalue"][order] <= options.largest_evalue]
    is_cut = any(CUT in name for name in table.targets.names)
    table, spans = _along_records(table, strand)
    if is_cut:
        order = order[_apart(table, spans, order)]
    hits = result.Columns(*(x[order] for x in hits))
    info = table.info | {"residues": seen.residues, "sequences": seen.sequences}
    table = replace(table.filter(order), info=info)
    about = table, hits, records[order], spans[order]
    return PassHits(*about, fit, fitted_to)


def _along_records(table: Table, strand: np.ndarray) -> tuple[Table, np.ndarray]:
    """Name targets as their sequences in the database; return spans in these, too."""
    parts = [name.partition(CUT) for name in table.targets.names]
    index = table["target"].astype(np.intp)
    before = np.array([int(x or 0) for *_, x in parts], np.int64)[index]
    start, end = (table[x].astype(np.int64) for x in ("target_start", "target_end"))
    length = table.targets.lengths[index]
    first = np.where(strand == MINUS, length - start, start + 1)
    last = np.where(strand == MINUS, length - end + 1, end)
    targets = replace(table.targets, names=tuple(name for name, *_ in parts))
    return replace(table, targets=targets), np.stack([first, last], 1) + before[:, None]


def _apart(table: Table, spans: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Whether each row, from the best, has no letter of a strand of a sequence in
    common with a better one: of windows that overlap."""
    taken: dict[tuple[str, bool], list[tuple[int, int]]] = {}
    apart = np.ones(len(order), bool)
    for place, row in enumerate(order.tolist()):
        first, last = spans[row].tolist()
        name = table.targets.names[table["target"][row]]
        low, high = min(first, last), max(first, last)
        intervals = taken.setdefault((name, first > last), [])
        apart[place] = all(high < a or low > b for a, b in intervals)
        if apart[place]:
            intervals.append((low, high))
    return apart


def _evalues(score: np.ndarray, space: tuple[int, int], fit: Fit) -> np.ndarray:
    return statistics.fitted_evalues(score, *space, fit)


# Sequences of the database that lambda and K are fitted to: lambda is off by 1.7 %, and
# an E-value of 0.001 in 10^7 residues by a third.
SAMPLE = 2000

# Of a hit of a scan: score and index, twice while hits are joined; and its name and
# residues, where the database is read in blocks.
HIT_BYTES, RECORD_BYTES = 24, 700
MOST_AT_ONCE = 2**12  # queries
SCANS_AT_ONCE = 3  # of a block, by queries of profiles of their own, on a GPU
HITS_AT_ONCE = 8  # queries whose hits are aligned there side by side


@dataclass
class Search:
    """One query on its way through the passes."""

    sequences: Sequences  # of one
    text: str  # its letters, as the alignment shows them
    query: ScoredQuery
    included: frozenset[tuple[int, bool]] = frozenset()
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
    finish: Callable[[int, Search], Any] = lambda _, search: search,
) -> list[Any]:
    """Search with each query, pass after pass, with as many of them at once as the
    memory budget has room for; ``texts`` are the letters of the queries, some of which
    may be encoded as others.

    saved : the state of a run that was interrupted, or may be
    finish : takes the number of a query and its search as soon as its passes are over.
        A text that it returns is in the state in place of the query's hits, so a
        resumed run does not finish it again.

    Returns what ``finish`` returns of each query.
    """
    alphabet = scoring.alphabet
    unit = unit_of(scoring.scores, profile.prior_of(alphabet).frequencies)
    length = source.window and max(source.window // OVERLAP, SAMPLED)
    sample, cells = Sample(SAMPLE, length), _Cells(options, queries, source)
    scorings = {alphabet.kind: scoring}
    if alphabet.kind in NUCLEIC:
        scorings = {x: replace(scoring, alphabet_name=x) for x in ("dna", "rna")}
    texts = queries.texts() if texts is None else texts
    results: dict[int, Any] = {}
    if saved is not None:
        results = {int(k): str(x) for k, x in saved.part("done").all().items()}
    each, targets = HIT_BYTES, np.inf
    if source.whole is None:
        each += RECORD_BYTES + (source.window or 0)
    else:
        targets = len(source.whole)
    each *= len(source.strands) * max(min(options.max_sequences, targets), 1)
    room = parts_budget(options.memory_budget) // (2 * int(each))
    at_once = max(min(room, MOST_AT_ONCE), 1)
    for first in range(0, len(queries), at_once):
        batch = queries.between(first, min(first + at_once, len(queries)))
        running = {}
        for k in range(first, first + len(batch)):
            if k not in results:
                query, text = queries.between(k, k + 1), result.letters_of(texts[k])
                kind = alphabet.kind
                if kind in NUCLEIC:  # rows have T if the query has
                    kind = nucleic_kind(text)
                    query = replace(query, alphabet=scorings[kind].alphabet)
                    text = text.replace("T", "U") if kind == "rna" else text
                scored = ScoredQuery(query, scorings[kind], unit)
                running[k] = Search(query, text, scored)
        passes = list[str]()
        for number in range(options.iterations):
            if not running:
                break
            passes.append(f"batch{first}.pass{number}")
            start = time.perf_counter()
            models = {k: search.query for k, search in running.items()}
            state = None if saved is None else saved.part(passes[-1])
            about = models, batch, source, sample, options, cells.teller(), state
            scans = scans_of(*about)
            shared_seconds = (time.perf_counter() - start) / len(running)
            about = running, scans, source, options, shared_seconds
            end_pass = partial(_end_pass, *about)
            each = map(end_pass, models)
            if may_have_gpu():  # it works for one query, the host for the others
                each = in_advance(end_pass, models, HITS_AT_ONCE)
            for k in each:
                search = running[k]
                if not search.converged and number < options.iterations - 1:
                    continue
                results[k] = finish(k, running.pop(k))
                if saved is not None and isinstance(results[k], str):
                    none = tuple(no_hits(1) for _ in source.strands)
                    assert search.hits is not None
                    names = QueryScan(none, search.hits.fit, "").arrays("")
                    arrays = [f"{x}.{k}.{y}" for x in passes for y in names]
                    saved.put({f"done.{k}": np.array(results[k])}, without=arrays)
    return [results[k] for k in range(len(queries))]


def _end_pass(
    running: Mapping[int, Search],
    scans: dict[int, QueryScan],
    source: Source,
    options: FamilyOptions,
    shared_seconds: float,
    k: int,
) -> int:
    """Align the hits of query k, and take them; return k."""
    start, search = time.perf_counter(), running[k]
    hits = hits_of(search.query, scans.pop(k), source, options)
    _advance(search, hits, options, shared_seconds + time.perf_counter() - start)
    return k


def _advance(
    search: Search,
    hits: PassHits,
    options: FamilyOptions,
    seconds: float,
) -> None:
    """Take the hits of a pass, and make the profile of the next one."""
    covered = (hits.columns.codes != GAP).mean(1)
    fits = hits.table["evalue"] <= options.include
    which = np.flatnonzero(fits & (covered >= options.include_cov))
    minus = hits.spans[which, 0] > hits.spans[which, 1]
    pairs = zip(hits.records[which].tolist(), minus.tolist(), strict=True)
    included = frozenset(pairs)
    search.converged = included == search.included
    new_count = len(included - search.included)
    search.hits, search.included = hits, included
    reported = int((hits.table["evalue"] <= options.max_evalue).sum())
    lambda_, k = hits.fit
    counts = reported, len(included), new_count
    search.summaries.append(PassSummary(*counts, lambda_, k, hits.fitted_to, seconds))
    name, scoring, unit = search.sequences.names[0], *search.query[1:]
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
        search.query.scoring.alphabet.residues,
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
        hits.spans[rows],
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
            self.total = cells * options.iterations * len(source.strands)

    def teller(self) -> Callable[[int], object] | None:
        self.before += self.last
        self.last = 0
        progress = self.progress
        return None if progress is None else partial(self._tell, progress)

    def _tell(self, progress: Callable[[int, int | None], object], cells: int) -> None:
        self.last = cells
        progress(self.before + cells, self.total)
