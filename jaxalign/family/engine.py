"""The passes of an iterated search, one after the other, for some queries at once."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from jaxalign.database.fitted import Sample
from jaxalign.family import (
    aligned_rows,
    composition,
    filters,
    passes,
    profile_building,
)
from jaxalign.family.aligned_rows import GAP
from jaxalign.family.options import FamilyOptions
from jaxalign.family.passes import PassHits, ScoredQuery, Source
from jaxalign.family.result import FamilyAlignment, PassSummary
from jaxalign.model.alphabet import Sequences
from jaxalign.model.profile import Profile, as_query
from jaxalign.model.scoring import Scoring

# Sequences of the database that lambda and K are fitted to: lambda is off by 1.7 %, and
# an E-value of 0.001 in 10^7 residues by a third.
SAMPLE = 2000


@dataclass
class Search:
    """One query on its way through the passes."""

    sequences: Sequences  # of one
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
    queries: Sequences, source: Source, scoring: Scoring, options: FamilyOptions
) -> list[FamilyAlignment]:
    """The alignment of each query."""
    unit = composition.unit_of(scoring.scores)
    sample, cells = Sample(SAMPLE), _Cells(options, queries, source)
    searches = [
        Search(one, ScoredQuery(one, scoring, unit))
        for one in (queries.between(k, k + 1) for k in range(len(queries)))
    ]
    for _ in range(options.iterations):
        running = [search for search in searches if not search.converged]
        if not running:
            break
        began, models = time.perf_counter(), [search.query for search in running]
        results = passes.hits_of(models, source, sample, options, cells.teller())
        seconds = (time.perf_counter() - began) / len(running)
        for search, hits in zip(running, results, strict=True):
            _advance(search, hits, scoring, options, seconds)
    return [_result(search, source, options) for search in searches]


def _advance(
    search: Search,
    hits: PassHits,
    scoring: Scoring,
    options: FamilyOptions,
    seconds: float,
) -> None:
    """Take the hits of a pass, and make the profile of the next one."""
    which = _included(hits, options)
    rows = hits.table["target"][which].tolist()
    names = frozenset(hits.table.targets.names[k] for k in rows)
    search.converged = names == search.included
    new = len(names - search.included)
    search.hits, search.included = hits, names
    reported = int((hits.table["evalue"] <= options.max_evalue).sum())
    lambda_, k = hits.fit
    counts = reported, len(names), new
    search.summaries.append(PassSummary(*counts, lambda_, k, hits.fitted_to, seconds))
    name, unit = search.sequences.names[0], search.query.unit
    about = name, search.codes, hits.columns.codes[which], scoring.alphabet, unit
    search.profile = profile_building.profile_of(*about)
    sequences, scored = as_query(search.profile, scoring)
    search.query = ScoredQuery(sequences, scored, unit)


def _included(hits: PassHits, options: FamilyOptions) -> np.ndarray:
    """Rows of the hits that the next profile is made of."""
    covered = (hits.columns.codes != GAP).mean(1)
    fits = hits.table["evalue"] <= options.include
    return np.flatnonzero(fits & (covered >= options.include_coverage))


def _result(search: Search, source: Source, options: FamilyOptions) -> FamilyAlignment:
    """The hits of the last pass, filtered."""
    hits, profile = search.hits, search.profile
    assert hits is not None and profile is not None
    reported = np.flatnonzero(hits.table["evalue"] <= options.max_evalue)
    passing = filters.kept(
        search.codes,
        hits.columns.codes[reported],
        options.min_coverage,
        options.min_query_identity,
        options.max_identity,
    )
    rows = reported[passing]
    query = search.codes.astype(np.int8)[None]
    table = hits.table.filter(rows)
    info = table.info | {"substituted": source.substituted[0]}
    return FamilyAlignment(
        search.sequences.names[0],
        aligned_rows.text_of(search.codes, search.sequences.alphabet),
        replace(table, info=info),
        np.vstack([query, hits.columns.codes[rows]]),
        profile,
        tuple(search.summaries),
        search.converged,
    )


class _Cells:
    """Tells of cells over all passes; in all there are as many where nobody converges
    sooner."""

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
