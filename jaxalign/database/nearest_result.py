"""The result of ``nearest``: a row a test sequence, and bands of identity; and a report
of it for people, one page of HTML that needs no network."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from html import escape
from itertools import pairwise
from typing import Any

import numpy as np

from jaxalign.database.nearest_state import NONE, NearestState
from jaxalign.database.options import (
    LOCAL,
    gated_options,
    nearest_definition,
)
from jaxalign.database.pieces import sequences_of
from jaxalign.errors import JaxalignError
from jaxalign.model import frames, show, statistics
from jaxalign.model.alphabet import Sequences, first_track
from jaxalign.model.choices import Strand
from jaxalign.model.identity import ratio
from jaxalign.model.names import written
from jaxalign.model.numbers import exact, printed_beside
from jaxalign.model.scoring import Scoring
from jaxalign.model.show import counted, page
from jaxalign.model.strands import MINUS, PLUS
from jaxalign.model.system import package_versions
from jaxalign.options import Execution, NearestOptions, PairOptions, shared
from jaxalign.pairs import jobs
from jaxalign.pairs.options import SHORT_REACH, end_to_end, gate_of, reach

NO_BAND = "none"
EMPTY, UNKNOWN = "the test sequence is empty", "the test sequence has no known residue"
NOTHING = "no sequence of the corpus can be compared"
BELOW = "no alignment with a sequence of the corpus scores"
BINS, SHOWN = 50, 20  # of the report: bins of identity, rows
PACKAGES = ("jaxalign", "jax", "jaxlib", "numpy")


@dataclass(frozen=True, eq=False, repr=False)
class Nearest:
    """The nearest sequences of a corpus to each test sequence.

    Attributes
    ----------
    tests, corpus : Sequences
        The test sequences, and the sequences of the corpus that are in a row.
    test, rank : int32 (rows,)
        Index of the test sequence, and rank from 1 to ``top``; rows are sorted by both.
        A test sequence has fewer rows if fewer sequences can be compared, and one row
        without a nearest if none can.
    nearest : int32 (rows,)
        Index into ``corpus``; -1 without a nearest.
    index : int64 (rows,)
        Index into the whole corpus.
    identity : float64 (rows,)
        Identity by ``definition``, 0 to 1. ``nan`` without a nearest, for example if no
        alignment reaches ``min_score``; and, in results by score, if the length that
        identities are divided by is 0.
    identities : int32 (rows,)
        Number of identical pairs, the numerator of ``identity``.
    score, bits, evalue, test_coverage, nearest_coverage : float64 (rows,)
        Of the best local alignment of the two sequences; ``nan`` without a nearest. If
        no pair of residues scores above 0, score and coverages are 0, and bits and
        E-value ``nan``. They are also ``nan`` if the scoring has no published
        statistics, as is the coverage of an empty sequence.
    bands : tuple of float
        Edges of the bands of identity, 0 to 1.
    top : int
        Largest number of rows per test sequence.
    definition : str
        Definition of the identity, as a sentence.
    by : str
        ``identity``, ``score`` or ``bits``.
    info : dict
        ``sequences`` and ``residues`` of the corpus, pairs ``compared`` and
        ``aligned``, letters ``substituted``, ``min_score``, ``seconds``,
        ``implementation``.
    strand : int8 (rows,) or None
        Of both strands, 1, or -1 if identity, score and coverages are those of the
        reverse complement of the test sequence.
    """

    tests: Sequences
    corpus: Sequences
    test: np.ndarray
    rank: np.ndarray
    nearest: np.ndarray
    index: np.ndarray
    identity: np.ndarray
    identities: np.ndarray
    score: np.ndarray
    bits: np.ndarray
    evalue: np.ndarray
    test_coverage: np.ndarray
    nearest_coverage: np.ndarray
    bands: tuple[float, ...]
    top: int
    definition: str
    by: str
    info: dict
    strand: np.ndarray | None = None

    to_pandas, to_arrow, to_polars, write, __repr__, _repr_html_ = frames.METHODS

    def __len__(self) -> int:
        return len(self.test)

    @property
    def cuts(self) -> tuple[float, ...]:
        """The edges of bands, across which no identity is rounded."""
        return tuple(map(float, self.bands))

    @property
    def band_names(self) -> tuple[str, ...]:
        """Name the bands, from the lowest identities to the highest, and ``none``."""
        inner = (f"{exact(a)}-{exact(b)}" for a, b in pairwise(self.bands))
        return (
            f"<{exact(self.bands[0])}",
            *inner,
            f">={exact(self.bands[-1])}",
            NO_BAND,
        )

    @property
    def band(self) -> np.ndarray:
        """Return the band of each row, an int64 index into ``band_names``. An identity
        at an edge is in the band above it."""
        place = np.searchsorted(self.bands, self.identity, side="right")
        return np.where(np.isnan(self.identity), len(self.bands) + 1, place)

    @property
    def band_counts(self) -> np.ndarray:
        """Count the test sequences of each band, by their nearest: int64."""
        first = self.band[self.rank == 1]
        return np.bincount(first, minlength=len(self.band_names))

    @property
    def notes(self) -> list[str]:
        """Describe unusual rows, in sentences; usually empty."""
        wildcard, empty = self.tests.alphabet.wildcard_code, self.tests.lengths == 0
        letters = first_track(self.tests.codes)
        counts = np.concatenate([[0], np.cumsum(letters != wildcard)])
        blank = counts[self.tests.offsets[1:]] == counts[self.tests.offsets[:-1]]
        rows = zip(empty[self.test], blank[self.test], self.nearest < 0, strict=True)
        least = self.info["min_score"]
        nothing = NOTHING if least is None else f"{BELOW} {exact(least)}"
        return [
            EMPTY if no else UNKNOWN if x else nothing if far else ""
            for no, x, far in rows
        ]

    def columns(self) -> dict[str, Any]:
        """Return the rows as columns, with names, and bands as text."""
        names = np.array([*self.corpus.names, ""], object)
        ranks = {"rank": self.rank} if self.top > 1 else {}
        n = np.append(self.corpus.lengths, 0)[self.nearest]
        return {
            "test": np.array(self.tests.names, object)[self.test],
            **ranks,
            "nearest": names[self.nearest],
            "identity": self.identity,
            "identities": self.identities,
            "band": np.array(self.band_names, object)[self.band],
            "score": self.score,
            "bits": self.bits,
            "evalue": self.evalue,
            "test_coverage": self.test_coverage,
            "nearest_coverage": self.nearest_coverage,
            "test_length": self.tests.lengths[self.test],
            "nearest_length": n,
            **({} if self.strand is None else {"strand": self.strand}),
            "note": np.array(self.notes, object),
        }

    def heading(self) -> str:
        """Say how many sequences were compared with how many."""
        tests = counted(len(self.tests), "test sequence")
        corpus = counted(self.info["sequences"], "corpus sequence")
        return f"{tests} against {corpus}, by {self.by}"

    def comparisons(self) -> str:
        """Say how many pairs there are, and how many of them were aligned."""
        pairs, aligned = self.info["compared"], self.info["aligned"]
        if aligned == pairs:
            return f"{pairs:,} pairs, all aligned"
        proof = "the rest proved to be no nearer"
        return f"{pairs:,} pairs, {aligned:,} aligned, {proof}"

    def band_lines(self) -> list[str]:
        """Format the table of bands: identity, test sequences, share."""
        total, counts = max(len(self.tests), 1), self.band_counts.tolist()
        rows = [
            (name, count)
            for name, count in zip(self.band_names, counts, strict=True)
            if count or name != NO_BAND
        ]
        wide = max(len(name) for name, _ in rows)
        return [
            f"{name:>{max(wide, 8)}} {count:>10,} {count / total:>7.1%}"
            for name, count in rows
        ]

    def __str__(self) -> str:
        lines = [self.heading(), self.definition, "identity       tests   share"]
        return "\n".join([*lines, *self.band_lines()])

    def lines(self, count: int) -> list[str]:
        """Format the ``count`` test sequences with the nearest sequences, one per
        line."""
        first = np.flatnonzero((self.rank == 1) & (self.nearest >= 0))
        first = first[np.argsort(-self.identity[first], kind="stable")][:count]
        shown = printed_beside(self.identity[first], 4, *self.bands, 1).tolist()
        return [
            f"{identity:.4f} {written(self.tests.names[self.test[k]])}, "
            f"{written(self.corpus.names[self.nearest[k]])}"
            for identity, k in zip(shown, first.tolist(), strict=True)
        ]


def nearest_report(nearest: Nearest) -> str:
    """Write the whole page."""
    return page(nearest.heading(), [_report_lines(nearest)])


def histogram(nearest: Nearest) -> tuple[np.ndarray, np.ndarray]:
    """Count test sequences by the identity of their nearest: (counts, edges)."""
    identity = nearest.identity[(nearest.rank == 1) & ~np.isnan(nearest.identity)]
    edges = np.arange(BINS + 1) / BINS
    bins = np.searchsorted(edges, identity, side="right") - 1
    return np.bincount(np.clip(bins, 0, BINS - 1), minlength=BINS), edges


def _report_lines(nearest: Nearest) -> Iterator[str]:
    """Yield bands, identities, the tests with the nearest, and how it was computed."""
    heading, definition = escape(nearest.heading()), escape(nearest.definition)
    yield f"<h1>Nearest sequences</h1><p><strong>{heading}.</strong></p>"
    yield f"<p>Identity is <code>{definition}</code>: the largest of the "
    yield "whole corpus, exactly." if nearest.by == "identity" else "nearest by score."
    yield "</p><h2>Bands</h2><table><tr><th>identity</th><th class=n>tests</th>"
    yield "<th class=n>share</th></tr>"
    total = max(len(nearest.tests), 1)
    bands = nearest.band_counts.tolist()
    for name, count in zip(nearest.band_names, bands, strict=True):
        yield f"<tr><td>{escape(name)}</td><td class=n>{count:,}</td>"
        yield f"<td class=n>{count / total:.1%}</td></tr>"
    yield "</table>"
    counts, edges = histogram(nearest)
    tenths = [f"{k / BINS:.1f}" if k % (BINS // 10) == 0 else "" for k in range(BINS)]
    bars = show.log_bars(
        "Identity of the nearest",
        [f"{edge:.2f}" for edge in edges[:-1]],
        counts.tolist(),
        [show.COLOURS[0]] * BINS,
        marks=tenths,
        unit="test sequences",
    )
    yield "<h2>Identities</h2>"
    yield show.figure(bars, "Test sequences by the identity of their nearest.")
    lines = nearest.lines(SHOWN)
    yield f"<h2>The {len(lines)} with the nearest</h2><pre>"
    yield escape("\n".join(lines))
    yield "</pre>"
    yield "<h2>How it was computed</h2>"
    yield f"<p>{nearest.comparisons()}.</p><table>"
    for name, number in package_versions(PACKAGES).items():
        yield f"<tr><td>{escape(name)}</td><td>{escape(number)}</td></tr>"
    yield "</table>"


# ------------------------------------------------------------------------------
# From a scanned corpus to rows: who is nearest, and how the two align.


def result(
    tests: Sequences,
    state: NearestState,
    scoring: Scoring,
    options: NearestOptions,
    about: dict[str, Any],
) -> Nearest:
    """Make the rows of a scanned corpus."""
    indices, corpus = sequences_of(state.records, scoring.alphabet)
    # A test sequence without a near one has one row.
    filled = state.index != NONE
    filled[:, 0] = True
    test, rank = np.nonzero(filled)
    index = state.index[test, rank]
    nearest = np.where(index == NONE, -1, np.searchsorted(indices, index))
    paired = _aligned(tests, corpus, test, nearest, scoring, options)
    m, n = tests.lengths[test], np.append(corpus.lengths, 0)[nearest]
    sizes = state.residues, state.sequences
    published = statistics.parameters(scoring, LOCAL)
    none = nearest < 0
    if options.by == "identity" and not np.array_equal(
        state.identity[test, rank][~none], paired["identity"][~none]
    ):
        raise JaxalignError("a pair's identity differs from its scan's: this is a bug")
    score = np.where(none, np.nan, paired["score"])
    positive = np.where(score > 0, score, np.nan)  # else there is no alignment
    return Nearest(
        tests=tests,
        corpus=corpus,
        test=test.astype(np.int32),
        rank=(rank + 1).astype(np.int32),
        nearest=nearest.astype(np.int32),
        index=index,
        identity=np.where(none, np.nan, paired["identity"]),
        identities=paired["identities"].astype(np.int32),
        score=score,
        bits=statistics.bits(positive, published),
        evalue=statistics.evalues(positive, m, *sizes, published),
        test_coverage=ratio(paired["test_span"], np.where(none, 0, m)),
        nearest_coverage=ratio(paired["nearest_span"], np.where(none, 0, n)),
        bands=tuple(float(x) for x in options.bands),
        top=options.top,
        definition=nearest_definition(options, scoring),
        by=options.by,
        info={
            "sequences": state.sequences,
            "residues": state.residues,
            "compared": state.sequences * len(tests),
            "aligned": min(state.aligned, state.sequences * len(tests)),
            "substituted": about["substituted"],
            "min_score": options.min_score,
            "implementation": state.implementation,
            "seconds": time.perf_counter() - about["began"],
        },
        strand=paired["strand"].astype(np.int8) if options.strand == "both" else None,
    )


def _aligned(
    tests: Sequences,
    corpus: Sequences,
    test: np.ndarray,
    nearest: np.ndarray,
    scoring: Scoring,
    options: NearestOptions,
) -> dict[str, np.ndarray]:
    """Compute the identity and the best local alignment of the pairs of all rows."""
    names = ("identity", "identities", "score", "test_span", "nearest_span")
    columns = {name: np.zeros(len(test)) for name in names}
    columns["strand"] = np.full(len(test), PLUS)
    (rows,) = np.nonzero(nearest >= 0)
    if not len(rows):
        return columns
    queries = tests.take(test[rows].tolist())
    targets = corpus.take(nearest[rows].tolist())
    local = PairOptions(mode=LOCAL, output="stats", **shared(options, Execution))
    strands: tuple[Strand | None, ...] = (None,)
    if options.strand == "both":
        strands = None, "minus"
    tables = [
        jobs.run("zip", queries, targets, scoring, replace(local, strand=x))
        for x in strands
    ]
    scores = np.stack([table["score"] for table in tables])
    # With a short sequence the larger identity counts; each strand needs the score.
    reached = (reach(x, scoring, options) for x in (queries, targets))
    short = np.minimum(*reached) < SHORT_REACH
    measures: list[jobs.PairMeasure] = []
    for number, strand in enumerate(strands):
        # By score, all is of the strand that scores more.
        meant = scores.argmax(axis=0) == number
        meant |= options.by == "identity"
        for choice, mask in (options, meant), (end_to_end(options), meant & short):
            of_strand = replace(gated_options(choice), strand=strand)
            places, length = np.flatnonzero(mask), choice.identity or "longer"
            measures.append((of_strand, length, gate_of(choice), places))
    identity, count, which = jobs.by_measures(queries, targets, scoring, measures)
    columns["identity"][rows], columns["identities"][rows] = identity, count
    which = which // 2 if options.by == "identity" else scores.argmax(axis=0)
    for number, table in enumerate(tables):
        (of_strand,) = np.nonzero(which == number)
        places = rows[of_strand]
        columns["strand"][places] = MINUS if number else PLUS
        columns["score"][places] = table["score"][of_strand]
        for name, side in (("test_span", "query"), ("nearest_span", "target")):
            span = table[f"{side}_end"] - table[f"{side}_start"]
            columns[name][places] = span[of_strand]
    return columns
